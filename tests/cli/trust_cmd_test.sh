# stint diff and stint compare on models of two seeds.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
run 0 data glyphs --out g --train 720 --test 180 --min-faces 10 -q
cat >a.ini <<'INI'
[model]
name = lenet5
[data]
path = g
[train]
epochs = 1
batch = 36
INI
for seed in 1 2 3; do
    run 0 train a.ini --set train.seed=$seed --out r$seed -q
done
run 0 train a.ini --set train.seed=1 --out again -q

run 0 diff r1 again
says out "0 of 10 tensors differ"
run 1 diff r1 r2/model.safetensors --json
json_ok
json 'j["tensors"] == j["different"] == 10 and j["only_a"] == j["only_b"] == 0'
json 'all(sum(d["ulp_histogram"]) == d["elements"] for d in j["differences"])'
# One bit of one weight, by hand: the tensors are the last bytes of the file.
cp r1/model.safetensors flipped
python3 - <<'PY'
data = bytearray(open("flipped", "rb").read())
data[-4] ^= 1
open("flipped", "wb").write(data)
PY
run 1 diff r1 flipped --json
json 'j["different"] == 1 and j["differences"][0]["different"] == 1'
json 'j["differences"][0]["ulp_histogram"][1] == 1'
run 4 diff r1 a.ini
run 5 diff r1 nowhere

run 0 compare r1 again --data g --json
json 'j["mismatch_rate"] == j["kl_mean"] == j["logit_max"] == 0 and j["mcnemar_p"] == 1'
run 0 compare r1 r3 --data g --json
chance=$(python3 -c "import json; print(json.load(open('out'))['mismatch_rate'])")
run 0 compare r1 r2 --data g --floor r3,r3 --page page.html --json
json_ok
json 'abs(j["new_accuracy"] - j["reference_accuracy"] + j["nfr"] - j["pfr"]) < 1e-12'
json 'j["nfr"] + j["pfr"] <= j["mismatch_rate"] and j["mismatch_rate"] > 0'
json 'j["mismatch"]["low"] <= j["mismatch_rate"] <= j["mismatch"]["high"]'
json 'sum(c["count"] for c in j["per_class"]) == j["count"] == 180'
json 'sum(c["mismatch"]["count"] for c in j["per_class"]) == j["mismatch"]["count"]'
json "abs(j['floor']['mismatch_rate'] - $chance) < 1e-12"
json "abs(j['floor']['excess'] - j['mismatch_rate'] + $chance) < 1e-6"
accuracy=$(python3 -c "import json; print(json.load(open('out'))['new_accuracy'])")
run 0 eval r2 --data g --json
json "abs(j['accuracy'] - $accuracy) < 1e-12"
grep -q "What changed" page.html || fail "no page"
# A floor of one of the two models would say that nothing, or all, is chance.
run 4 compare r1 r2 --data g --floor r3,again
says err "again/model.safetensors has the weights of the reference model"
run 4 compare r1 r2 --data g --floor r2
says err "of another seed"
run 5 compare r1 r2 --data g --floor nowhere
[ -s out ] && fail "a model that is not there is known before the others are asked"
seq 180 | awk '{print $1 % 2 ? "odd" : "even"}' >groups
run 0 compare r1 r2 --data g --groups groups --json
json '[g["count"] for g in j["per_group"]] == [90, 90] and "odds_gap" in j'
head -5 groups >few
run 4 compare r1 r2 --data g --groups few
says err "5 group names for 180 inputs"
sed 's/$/\r/; 3s/^/ /' groups >returns # as some editors leave lines
run 0 compare r1 r2 --data g --groups returns --json
json '[g["name"] for g in j["per_group"]] == ["odd", "even"]'
sed 's/even/ /' groups >gaps
run 4 compare r1 r2 --data g --groups gaps
says err "groups: line 2 is empty"
run 2 compare r1 r2
says err "--data"
mkdir -p other/test/only other/test/two
run 4 compare r1 r2 --data other
finish
