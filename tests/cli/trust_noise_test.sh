# stint trust noise: arms, resuming after a kill, refusals.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
run 0 data glyphs --out g --train 288 --test 72 --min-faces 10 -q
cat >a.ini <<'INI'
[model]
name = smallcnn-bn
dropout = 0.3
[data]
path = g
crop_pad = 2
[train]
steps = 4
batch = 36
shards = 4
[optimizer]
name = adam
lr = 0.01
INI
lab() { run "$1" trust noise a.ini --runs 2 --out lab -q "${@:2}"; }

# Killed in the middle: the same call goes on, and the result is that of one go.
"$STINT" trust noise a.ini --runs 2 --out lab -q >/dev/null 2>&1 &
child=$!
while kill -0 $child 2>/dev/null && [ ! -e lab/algo-01/answers.npy ]; do sleep 0.01; done
kill -9 $child
wait $child 2>/dev/null
awk 'BEGIN { for (i = 0; i < 72; i++) print i % 3 ? "odd" : "even" }' >groups
# Its runs end with it; they give their folder free in a moment.
for try in 1 2 3 4 5 6 7 8 9 10; do
    "$STINT" trust noise a.ini --runs 2 --out lab -q --json --groups groups >out 2>err && break
    sleep 0.3
done
json_ok
json 'j["made"] + j["kept"] == 8 and j["kept"] >= 1 and j["control_zero"]'
json '[a["varies"] for a in j["arms"]] == ["ALGO+IMPL", "ALGO", "IMPL", "CONTROL"]'
json 'all(j["arms"][3][k] == 0 for k in ("accuracy_stdev", "fpr_stdev", "fnr_stdev", "churn", "distance", "distance_normalised"))'
json 'j["arms"][3]["onset_step"] == -1'
json 'all(p[k] == 0 for p in j["arms"][3]["per_class"] + j["arms"][3]["per_group"] for k in p if k.endswith("stdev") or k.endswith("spread"))'
json 'j["arms"][0]["onset_step"] == j["arms"][1]["onset_step"] == 0'
json 'j["arms"][2]["onset_step"] >= 1 and 0 < j["arms"][2]["distance"] < j["arms"][1]["distance"]'
json 'all(a["churn"] >= a["churn_least"] for a in j["arms"])'
json '[g["inputs"] for g in j["arms"][0]["per_group"]] == [24, 48]'
grep -q "How much is luck" lab/noise.html && grep -q "<svg" lab/noise.svg || fail "no page"
cp out first
run 0 trust noise a.ini --runs 2 --out whole -q --json --groups groups
python3 - <<'PY' || fail "killed and gone on with: other figures than in one go"
import json, sys
a, b = json.load(open("first")), json.load(open("out"))
sys.exit(a["arms"] != b["arms"])
PY
lab 0 --json
json 'j["made"] == 0 and j["kept"] == 8'

# One kind of chance alone; its own seed leaves the others as they are.
lab 0 --vary dropout --json
json 'len(j["arms"]) == 1 and j["arms"][0]["varies"] == "dropout"'
json 'j["arms"][0]["onset_step"] >= 1'
json 'j["arms"][0]["distance"] > 0'
lab 0 --vary init,impl --json
json 'j["arms"][0]["onset_step"] == 0 and j["arms"][0]["onset_tensor"] == "conv1.weight"'
run 0 trust noise a.ini --runs 2 --vary impl --impl ulp --out ulp -q --json
json 'j["arms"][0]["onset_step"] == 0 and j["arms"][0]["distance"] > 0'

# Two at once in a budget for everything: the same runs.
run 0 trust noise a.ini --runs 2 --vary order --memory 400M --jobs 2 -j 2 --out pair -q --json
cp out first
run 0 trust noise a.ini --runs 2 --vary order --jobs 1 -j 1 --out alone -q --json
python3 -c 'import json, sys; sys.exit(json.load(open("first"))["arms"] != json.load(open("out"))["arms"])' ||
    fail "other runs side by side"
# The four seeds are all there is to a seed.
run 0 train a.ini --seed 5 --out five -q
run 0 train a.ini --seed 9 --out four -q --set train.seed_init=5 --set train.seed_order=5 \
    --set train.seed_augment=5 --set train.seed_dropout=5
run 0 diff five four

lab 2 --vary init,ordr
says err "did you mean order"
run 2 trust noise a.ini --runs 1 --out lab
run 2 trust noise a.ini --runs 2 --out five
says err "five holds a run, whose recipe would be overwritten"
lab 2 --shards 2
says err "--impl ulp"
lab 4 --set optimizer.lr=0.02
says err "optimizer.lr (now 0.02, was 0.01)"
lab 4 --epochs 7
says err "train.epochs (now 7, was"
lab 4 --impl ulp
says err "--impl order"
lab 3 --memory 20M --vary augment
says err "give --memory"
sed -i 's/"numerics": "[^"]*"/"numerics": "0"/' lab/noise.json
lab 4
says err "other numerics (0,"
echo even >few
run 4 trust noise a.ini --runs 2 --out other -q --groups few
says err "1 group names for 72 inputs"
sed -i 's/even//' groups
run 4 trust noise a.ini --runs 2 --out other -q --groups groups
says err "line 1 is empty"
printf '%s\n' '[model]' 'name = siren' '[data]' 'path = picture.png' >field.ini
run 8 trust noise field.ini --runs 2 --out other -q
says err "is a field"
run 8 trust noise "$STINT_SOURCE/recipes/rally-ram.ini" --runs 2 --out other -q
says err "is that of an agent"
mkdir -p untested/train/a untested/train/b
run 4 trust noise a.ini --runs 2 --out other -q --data untested
finish
