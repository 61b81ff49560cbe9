# stint finetune --gains measured: the same numbers however they are measured, in parts,
# too; what trains most comes first; partial and damaged files are refused.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
sha() { sed 's/.*"weights_sha256":"\([0-9a-f]*\)".*/\1/' out; }
words "the cat sat on a mat and saw rats" 400 >one.txt
words "a dog ran in fog and met frogs" 400 >two.txt
cat >base.ini <<'INI'
[model]
name = gpt
depth = 2
width = 16
heads = 2
context = 16
[data]
path = one.txt
tokenizer = byte
[train]
steps = 40
batch = 4
shards = 1
[optimizer]
name = adamw
lr = 3e-3
INI
run 0 train base.ini -o base -q
tune="finetune base --data two.txt --batch 4 --shards 1 --steps 5 --lr 3e-3 --step-time 0.7x --gains measured"
run 0 $tune -o whole -j 1 --json -q
want=$(sha)
json 'j["step_share"] <= 0.7 and any(t["gain"] > 0 for t in j["scheme"])'
STINT_ISA=ref run 0 $tune -o other -j 2 --json -q
[ "$(sha)" = "$want" ] || fail "other threads measure other gains"
cmp -s whole/gains.json other/gains.json || fail "other threads measure other gains"
python3 - <<'PY' || fail "what gains.json says"
import json
g = json.load(open("whole/gains.json"))
assert g["kind"] == "measured" and g["base_loss"] > 0
for t in g["tensors"]:
    assert len(t["shares"]) == 4, t
    known = t["shares"] if len(t["channels"]) > 1 else t["shares"][3:]
    assert all(x is not None and x >= 0 for x in known), t
best = max(g["tensors"], key=lambda t: t["shares"][3])
# All of a matrix can do what an eighth of it can, and more.
whole = [t["shares"] for t in g["tensors"] if len(t["channels"]) > 1]
assert sum(s[3] > s[0] for s in whole) > len(whole) / 2, whole
g["tensors"][-1]["shares"] = [None] * 4
json.dump(g, open("part.json", "w"))
g["tensors"][-1]["shares"] = [1, 2, 3]
json.dump(g, open("short.json", "w"))
g["tensors"][-1]["shares"] = [0, 0, 0, -1]
json.dump(g, open("less.json", "w"))
PY
# Stopped in the midst, and gone on with: what was measured is not measured again.
"$STINT" $tune -o stopped -q >out 2>err &
stint=$!
for _ in $(seq 400); do
    [ -s stopped/gains.json ] && break
    sleep 0.05
done
kill -INT $stint
wait $stint
[ $? -eq 130 ] || fail "a measurement that is stopped has another status"
grep -q 'goes on' err || fail "it does not say how it goes on: $(cat err)"
cp stopped/gains.json before.json
run 0 $tune -o stopped --json -q
[ "$(sha)" = "$want" ] || fail "gains measured in parts are others"
cmp -s whole/gains.json stopped/gains.json || fail "gains measured in parts are others"
grep -q null before.json || fail "it was not stopped in the midst"
# Files that are not whole.
given="finetune base --data two.txt --batch 4 --shards 1 --steps 5 --lr 3e-3 --step-time 0.7x"
run 0 $given --gains whole/gains.json -o given --json -q
[ "$(sha)" = "$want" ] || fail "gains that are given choose another scheme"
for file in part short less; do
    run 4 $given --gains $file.json -o none
done
run 2 finetune base --data two.txt --what bias --gains measured -o none
[ ! -e none ] || fail "a refused run left a folder"
finish
