# Compact model files where models are taken: the same answers, hash and metadata as the
# model they came of. Damaged ones, newer ones and text models are refused by their codes.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
run 0 data glyphs --out g --train 720 --test 180 --min-faces 10 -q
cat >a.ini <<'INI'
[model]
name = mlp
width = 64
[data]
path = g
[train]
steps = 12
batch = 36
INI
run 0 train a.ini --sparsity 0.9 --out r -q

run 0 export compact r --out c.safetensors --json
json_ok
json "j['bytes'] == $(stat -c %s c.safetensors) and j['head_bytes'] < 1100"
# kept numbers at four bytes each and their places at their entropy, and the head
json "j['weights_bytes'] < 1.06 * (j['base_bytes'] * 0.1 * (1 + 0.47 * 10 / 32)) + 2000"
for model in r c.safetensors; do
    run 0 eval $model --data g --json
    python3 - <<'PY' >"$work/$model.eval"
import json
j = json.load(open("out"))
print(j["accuracy"], j["loss"], j["weights_sha256"], j["per_class"])
PY
    run 0 info $model --json
    cp out "$model.info"
done
cmp -s r.eval c.safetensors.eval || fail "the answers of the compact model are others"
python3 - <<'PY' || fail "the compact model tells other things of itself"
import json
a, b = json.load(open("r.info")), json.load(open("c.safetensors.info"))
a["tensors"] = [t for t in a["tensors"] if not t["name"].startswith("mask.")]
assert a == b and a["recipe"].count("\n") > 50
PY
run 0 compare r c.safetensors --data g --json
json "j['mismatch_rate'] == 0"
# Where most weights are left the dense kernels are faster, and stay.
run 0 train a.ini --sparsity 0.3 --steps 2 --out most -q
run 0 export compact most --out most.safetensors
XDG_CACHE_HOME=$work/cache run 0 bench latency most most.safetensors --rounds 5 -j 1 --json
json "[l['form'] for l in j['models'][1]['layers']].count('planar_conv') == 0"
# A wide one runs in the fast form: no dense product but the small classifier's is left.
run 0 train a.ini --set model.width=1024 --sparsity 0.98 --steps 12 --out wide -q
run 0 export compact wide --out wide.safetensors
XDG_CACHE_HOME=$work/cache run 0 bench latency wide wide.safetensors --rounds 5 -j 1 --json
json "[l['form'] for l in j['models'][0]['layers']].count('planar_conv') == 0"
json "[l['form'] for l in j['models'][1]['layers']].count('planar_conv') >= 1"
json "[l['form'] for l in j['models'][1]['layers']].count('matmul') <= 2"
run 0 compare wide wide.safetensors --data g --json
json "j['mismatch_rate'] == 0"
# What was compact is full again, and safetensors for others.
run 0 export dense c.safetensors --out d.safetensors --json
json "len(j['weights_sha256']) == 64"
run 0 diff c.safetensors d.safetensors
python3 - <<'PY' || fail "the dense file is not what NumPy reads of it"
import hashlib, json, struct
raw = open("d.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
head = json.loads(raw[8:8 + n])
texts = head.pop("__metadata__")
shared = json.loads(open("r.info").read())
assert texts["recipe"] == shared["recipe"] and texts["network"] == "mlp"
zeros = sum(raw[8 + n + i:8 + n + i + 4] == b"\0\0\0\0"
            for i in range(0, len(raw) - 8 - n, 4))
total = (len(raw) - 8 - n) // 4
assert 0.85 < zeros / total < 0.95, zeros / total
PY
# --start and --reference take it.
run 0 train a.ini --set train.start=c.safetensors --out s -q
run 0 train a.ini --set loss.reference=c.safetensors --set loss.pairing=1 --out t -q

# Ctrl-C is told. (--foreground: else timeout signals twice, and the second ends at once.)
timeout --foreground --preserve-status -s INT 4 "$STINT" bench latency r --rounds 10000 --batch 8000 \
    >out 2>err </dev/null
[ $? -eq 130 ] || fail "an interrupted measurement ends otherwise"
says err "stopped before all rounds"

# An answer is not written over what it is made from, and wants a place.
run 2 export dense c.safetensors --out c.safetensors
run 2 export compact r
# Cut off or flipped anywhere: 4, but where the format itself is no longer to be seen.
python3 - <<'PY'
data = open("c.safetensors", "rb").read()
for i, at in enumerate([40, 300, len(data) // 2, len(data) - 5]):
    open(f"cut{i}", "wb").write(data[:at])
    open(f"flip{i}", "wb").write(data[:at] + bytes([data[at] ^ 16]) + data[at + 1:])
assert data.count(b'"stint.compact":"1"') == 1
open("newer", "wb").write(data.replace(b'"stint.compact":"1"', b'"stint.compact":"2"'))
PY
for i in 0 1 2 3; do
    run 4 eval cut$i --data g
    run 4 eval flip$i --data g
done
run 8 eval newer --data g
says err "newer Stint"
words "the cat sat on a mat" 2000 >text.txt
cat >t.ini <<'INI'
[model]
name = gpt
depth = 1
width = 16
heads = 2
context = 16
[data]
path = text.txt
tokenizer = char
[train]
steps = 1
batch = 4
INI
run 0 train t.ini --out text -q
run 8 bench latency text
run 8 export compact text --out x.safetensors
says err "text model"
[ ! -e x.safetensors ] || fail "a refused export left a file"
finish
