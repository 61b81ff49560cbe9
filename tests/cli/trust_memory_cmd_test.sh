# stint trust memory on clusters with a long tail: what is found, kills, jobs, refusals.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python3 "$STINT_SOURCE/tests/cli/memory_data.py" data
cat >a.ini <<'INI'
[model]
name = mlp
width = 32
depth = 1
[data]
path = data
[train]
epochs = 12
batch = 16
shards = 1
[optimizer]
lr = 0.05
INI
run 0 trust memory a.ini --runs 60 --out one --json -j 1
json_ok
json 'j["runs"] == 60 and j["runs_done"] == 60 and j["members"] == 134 and j["decoded_once"]'
json 'j["pairs"] == 192 * 40 // 4 == sum(j["influence_histogram"]) + j["undefined_pairs"]'
# The twelve odd ones, and nothing else; samples are in the order of their classes.
json 'sorted(m["index"] for m in j["most_memorised"][:12]) == sorted(i % 4 * 48 + i // 4 for i in range(0, 192, 17))'
json 'j["most_memorised"][11]["memorisation"] > 0.4 > 0.2 > j["most_memorised"][12]["memorisation"]'
json 'j["memorised"] == 12 and j["memorised_by_chance"] < 0.05 and j["influences"] >= 1'
[ "$(wc -l <one/memorised.tsv)" -eq 13 ] || fail "memorised.tsv lists others than twelve"
sed -n 2p one/influence.tsv | awk '$4 == 0 && $5 == 0 && $1 > 0.5 { found = 1 } END { exit !found }' ||
    fail "the test image that rests on training image 0 is not the first pair"
grep -q "data:image/png" one/memory.html || fail "no image on the page"

# Killed in the middle, gone on with other jobs: the same bytes everywhere.
"$STINT" trust memory a.ini --runs 60 --out two -q --jobs 2 >killed 2>&1 </dev/null &
pid=$!
for _ in $(seq 400); do
    [ "$(ls two/runs 2>/dev/null | grep -c 'bits$')" -ge 5 ] && break
    sleep 0.02
done
kill -9 $pid
wait $pid 2>/dev/null
echo broken >two/runs/00001.bits # a damaged run is made again
run 0 trust memory a.ini --runs 30 --out two -j 2 --jobs 2 --json
json 'j["runs"] == 30 and 0 < j["runs_done"] < 30'
says err "the run is done again"
run 0 trust memory a.ini --runs 60 --out two -j 3 --jobs 3 --json
json 'j["runs_done"] <= 30'
diff -r one two >differ || fail "after a kill: $(head -3 differ)"
run 0 trust memory a.ini --runs 60 --out two --json
json 'j["runs_done"] == 0'

# A folder of another kind is named and left alone.
run 2 trust memory a.ini --runs 60 --out one --fraction 0.5
says err "fraction 0.69999999999999996"
run 2 trust memory a.ini --runs 60 --out one --set optimizer.lr=0.1
says err "lr = 0.05"
mkdir other && cp data/* other && printf '\001' | dd of=other/t10k-images-idx3-ubyte bs=1 seek=100 conv=notrunc 2>/dev/null
run 2 trust memory a.ini --runs 60 --out one --data other
says err "its runs are of another kind: 'test "
mkdir full && echo x >full/mine
run 2 trust memory a.ini --runs 60 --out full
says err "holds files"
[ "$(ls full)" = mine ] || fail "something was written to a folder of others"
diff -r one two >differ || fail "a refusal changed the folder"

run 2 trust memory a.ini --runs 3
run 2 trust memory a.ini --runs 8 --fraction 1 --out no
says err "fraction 1"
run 2 trust memory a.ini --runs 8 --fraction 0.05 --out no
says err "less than a batch"
run 2 trust memory a.ini --runs 8 --out no --set train.batch=auto --memory 1G
run 2 trust memory a.ini --runs 8 --out no --set train.validation=0.1 --set train.select=accuracy
says err "train.validation: runs are plain trainings"
run 2 trust memory a.ini --runs 8 --out no --reference a.safetensors
says err "loss.reference: runs are plain trainings"
run 2 trust memory a.ini --runs 8 --out no --set prune.sparsity=0.5
says err "prune.sparsity: runs are plain trainings"
run 3 trust memory a.ini --runs 8 --out no --memory 1M
says err "budget"
least=$(least_mib)M
run 0 trust memory a.ini --runs 8 --out least --memory "$least"
run 1 trust memory a.ini --runs 8 --out nan --set optimizer.lr=1e6
says err "not finite"
[ -e no ] && fail "a refused study made its folder"

# Too few runs say so: nothing but NaN where an image is in all runs or in none.
run 0 trust memory a.ini --runs 4 --out few
says out "fewer than two runs"
# A budget changes nothing but how many run side by side.
run 0 trust memory a.ini --runs 30 --out tight --memory "$least" --jobs 2
run 0 trust memory a.ini --runs 30 --out wide --jobs 2
diff -r tight wide >differ || fail "a budget changed: $(head -3 differ)"

# The long tail: models of two seeds and a third for the noise floor.
for seed in 1 2 3; do
    run 0 train a.ini --set train.seed=$seed --set train.epochs=4 --out r$seed -q
done
run 0 compare r1 r2 --data data --floor r3 --memory one --json
json_ok
json 'j["long_tail"]["train"]["count"] == 192 and j["long_tail"]["train"]["marked"] == 12'
json 'j["long_tail"]["test"]["count"] == 40 and j["long_tail"]["floor_test"]["count"] == 40'
json 'j["long_tail"]["train"]["lift"] > 2 and j["long_tail"]["train"]["auroc"] > 0.6'
run 0 compare r1 r2 --data data --memory one
says out "memorised training inputs"
run 4 compare r1 r2 --data other --memory one
says err "are not those that one was made from"
run 4 compare r1 r2 --data data --memory full
says err "no memory.txt"
finish
