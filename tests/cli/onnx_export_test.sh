# Our networks as ONNX files: read back by the importer, which NumPy has judged
# (onnx_cmd_test.sh), they give the classes and tokens that they give here.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python=/usr/bin/python3
run 0 data glyphs --out g --train 240 --test 60 --min-faces 5 -q
mkdir img && tar xf g/test.tar -C img || fail "no pictures"
picture=$(find img -name '*.png' | sort | head -1)

recipe() { # NAME LINE...
    printf '[model]\nname = %s\n%s\n[data]\npath = %s\n%s\n[train]\nsteps = %s\nbatch = 12\n' "$@"
}

for name in mlp lenet5 resnet8 smallcnn; do
    recipe $name "" g "" 3 >a.ini
    run 0 train a.ini --out r_$name -q
    run 0 export onnx r_$name --out $name.onnx --json
    json_ok
    json "j['network'] == '$name' and j['opset'] == 17"
    run 0 import onnx $name.onnx --out $name.st --shape images=1x1x32x32 -q
    run 0 run r_$name "$picture" --top 100 --json
    cp out $name.json
    $python - $name <<'PY' || fail "no input"
import json, struct, sys, zlib
import numpy as np
name = sys.argv[1]
data = open(f"r_{name}/model.safetensors", "rb").read()
n, = struct.unpack("<Q", data[:8])
meta = json.loads(data[8:8 + n])["__metadata__"]
path = json.load(open(f"{name}.json"))["predictions"][0]["file"]
png, at, raw = open(path, "rb").read(), 8, b""
while at < len(png):
    size, = struct.unpack(">I", png[at:at + 4])
    if png[at + 4:at + 8] == b"IDAT":
        raw += png[at + 8:at + 8 + size]
    at += size + 12
raw, rows, last = zlib.decompress(raw), [], np.zeros(32, int)
for y in range(32):
    kind, row = raw[33 * y], [int(v) for v in raw[33 * y + 1:33 * y + 33]]
    for x in range(32):
        left, up, corner = row[x - 1] if x else 0, int(last[x]), int(last[x - 1]) if x else 0
        near = min((left, up, corner), key=lambda v: (abs(left + up - corner - v), (left, up, corner).index(v)))
        row[x] = (row[x] + [0, left, up, (left + up) // 2, near][kind]) & 255
    last = np.array(row)
    rows.append(last)
image = (np.array(rows) / 255 - float(meta["mean"])) / float(meta["deviation"])
np.save("x.npy", image.astype(np.float32)[None, None])
json.dump(json.loads(meta["classes"]), open("classes.json", "w"))
PY
    run 0 run $name.st --input images=x.npy --out $name.npz -q
    $python - $name <<'PY' || fail "$name gives other answers as ONNX"
import json, sys
import numpy as np
logits = np.load(sys.argv[1] + ".npz")["logits"][0].astype(np.float64)
p = np.exp(logits - logits.max())
p /= p.sum()
names = json.load(open("classes.json"))
said = {c["class"]: c["probability"] for c in json.load(open(sys.argv[1] + ".json"))["predictions"][0]["classes"]}
want = np.array([said[n] for n in names])
seen = want > 1e-20
assert seen.sum() > 1
off = np.log(p[seen] / want[seen])
assert np.abs(off - off.mean()).max() < 1e-5 * max(1, np.abs(logits).max()), off
PY
done

words "alpha beta gamma delta epsilon" 4000 >t.txt
for name in gpt llama; do
    recipe $name "$(printf 'depth = 2\nwidth = 32\nheads = 4\nkv_heads = %s\ncontext = 16' \
        $([ $name = gpt ] && echo 4 || echo 2))" t.txt "tokenizer = char" 120 >a.ini
    run 0 train a.ini --out r_$name -q
    run 0 export onnx r_$name --out $name.onnx --batch 1 --opset 21
    run 0 import onnx $name.onnx --out $name.st -q
    run 0 run r_$name --prompt-ids 1,2,3,4 --tokens 12 --temperature 0 --json
    cp out $name.json
    $python - "$STINT" $name <<'PY' || fail "$name writes another text as ONNX"
import json, subprocess, sys
import numpy as np
stint, name = sys.argv[1:]
want = json.load(open(name + ".json"))
want = want.get("ids", want.get("tokens"))
text, seen = [1, 2, 3, 4], set()
for _ in range(12):
    x = np.zeros((1, 16), np.int64)
    x[0, :len(text)] = text
    np.save("t.npy", x)
    subprocess.run([stint, "run", name + ".st", "--input", "tokens=t.npy", "--out", "t.npz", "-q"], check=True)
    text.append(int(np.load("t.npz")["logits"][0, len(text) - 1].argmax()))
assert text[4:] == list(want), (text, want)
assert len(set(text[4:])) > 3, text
PY
done

# ---- weights of few bits are int8, and the normalisation is in front
for name in mlp lenet5; do
    recipe $name "" g "" 3 >a.ini
    printf '[quantise]\nbits = 4\n' >>a.ini
    run 0 train a.ini --out q_$name -q
    run 0 export onnx q_$name --out q.onnx --normalise
    [ "$(wc -c <q.onnx)" -lt $(($(wc -c <$name.onnx) / 3)) ] || fail "$name: its weights are no bytes"
    run 0 import onnx q.onnx --out q.st --shape images=1x1x32x32 --json
    json "j['operators']['DequantizeLinear'] >= 3"
    run 0 eval q_$name --data g --json
    cp out q.json
    run 0 eval q.st --data g --json
    json "abs(j['loss'] - json.load(open('q.json'))['loss']) < 1e-5"
done

# ---- what is imported goes out as it is: its own opset and batch are those that are named
run 0 export onnx gpt.st --out again.onnx --json
json "j['opset'] == 21"
run 0 export onnx gpt.st --out again.onnx --opset 21 --batch 1
run 0 export onnx mlp.st --out again.onnx --opset 17

# Its normalisation takes no name that it has, though the names be those of such nodes.
run 0 import onnx lenet5.onnx --out form.st --shape images=20x1x32x32 --mean 0.4 --std 0.3 -q
run 0 eval form.st --data g --json
cp out want.json
for from in form once; do
    run 0 export onnx $from.st --out n.onnx --normalise
    run 0 import onnx n.onnx --out once.st -q
    run 0 eval once.st --data g --json
    json "abs(j['loss'] - json.load(open('want.json'))['loss']) < 1e-5"
done

# ---- refusals
run 2 export onnx r_mlp --out r_mlp/model.safetensors
run 2 export onnx r_mlp --out no.onnx --batch many
run 2 export onnx r_mlp --out no.onnx --opset 16
run 8 export onnx mlp.st --out no.onnx --batch 8
says err "leave --batch out"
run 8 export onnx mlp.st --out no.onnx --batch dynamic
says err "leave --batch out"
run 8 export onnx mlp.st --out no.onnx --opset 21
run 8 export onnx gpt.st --out no.onnx --opset 17
says err "keeps its own, 21; leave --opset out"
run 8 export onnx r_gpt --out no.onnx --normalise
run 5 export onnx nowhere --out no.onnx
[ ! -e no.onnx ] || fail "a refused export wrote a file"
finish
