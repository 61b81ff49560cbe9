# stint seal network: a small network of ternary weights, its C program built by gcc and
# as a circuit, and NumPy's floating-point network on the same images: the same classes.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
python3 -c 'import numpy' 2>/dev/null || { echo "no numpy"; exit 77; }
python3 - <<'PY'
# A stroke at an angle of its own a class, with noise: 8 x 8 grey pictures as PNG.
import os, struct, zlib, numpy as np
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def png(path, p):
    head = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in p)
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
pixels = {}
rng = np.random.default_rng(7)
yy, xx = np.mgrid[0:8, 0:8] - 3.5
for split, count in ("train", 60), ("test", 12):
    for c in range(5):
        os.makedirs(f"set/{split}/c{c}", exist_ok=True)
        for k in range(count):
            a = np.pi * c / 5 + rng.normal(0, .08)
            d = np.abs(xx * np.sin(a) - yy * np.cos(a) + rng.normal(0, .5))
            p = np.clip(255 * np.exp(-d * d) + rng.normal(0, 20, d.shape), 0, 255)
            png(f"set/{split}/c{c}/{k}.png", p.astype(np.uint8))
            pixels[f"{split}{c}{k}"] = p.astype(np.uint8).ravel()
np.savez("pixels.npz", **pixels)
PY
cat >r.ini <<'END'
[model]
name = mlp
width = 12
depth = 2
activation = sign
input_bits = 2
[quantise]
bits = 2
[data]
path = set
flip = false
crop_pad = 0
[train]
epochs = 12
batch = 32
[optimizer]
name = adamw
lr = 0.01
END
run 0 train r.ini --out run -q
run 0 seal network run --out net.c --json
json 'j["layers"] == 3 and j["inputs"] == 64 and j["input_bits"] == 2 and j["classes"] == 5'
json '0 < j["nonzero"] < j["weights"] == 64 * 12 + 12 * 12 + 12 * 5'
run 0 seal compile net.c --entry classify --out net.seal --json
json '[(p["name"], p["count"]) for p in j["inputs"]] == [("input", 64)]'
gcc -std=c17 -Wall -Wextra -Werror -O1 -fwrapv -shared -fPIC net.c -o net.so || fail "gcc refuses the program"
for c in 0 1 2 3 4; do
    for k in 0 1 2; do
        run 0 seal network run --image "set/test/c$c/$k.png" --values "v$c$k.json"
        "$STINT" seal sim net.seal --values "v$c$k.json" --json >"s$c$k.json"
    done
done
cat >oracle.py <<'PY'
import ctypes, json, re, struct, sys
import numpy as np
lib = ctypes.CDLL("./net.so")
raw = open("run/model.safetensors", "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
head = json.loads(raw[8:8 + size])
def tensor(name):
    row = head[name]; a, b = row["data_offsets"]
    return np.frombuffer(raw[8 + size + a:8 + size + b], np.float32).reshape(row["shape"]).astype(float)
def ternary(name):
    w = tensor(name); s = np.abs(w).max(0)
    return np.rint(w / s) * s
meta = head["__metadata__"]
mean, deviation = float(meta["mean"].split()[0]), float(meta["deviation"].split()[0])
def classify(pixels, wide):
    x = np.clip(np.rint(((pixels / 255 - mean) / deviation + 2) / 4 * 3), 0, 3) * 4 / 3 - 2
    assert list(np.rint((x + 2) / 4 * 3).astype(int)) == wide, "inputs"
    for i in 0, 1:
        z = x @ ternary(f"hidden{i}.weight")
        z = (z - tensor(f"hidden{i}.norm.mean")) / np.sqrt(tensor(f"hidden{i}.norm.variance") + 1e-5)
        x = np.where(z * tensor(f"hidden{i}.norm.scale") + tensor(f"hidden{i}.norm.shift") < 0, -1, 1)
    return int(np.argmax(x @ ternary("fc.weight") + tensor("fc.bias")))
right, stored = 0, np.load("pixels.npz")
for c in range(5):
    for k in range(3):
        q = json.load(open(f"v{c}{k}.json"))["input"]
        pixels = stored[f"test{c}{k}"]
        got = [lib.classify((ctypes.c_uint8 * 64)(*q)),
               json.load(open(f"s{c}{k}.json"))["values"]["return"], classify(pixels.astype(float), q)]
        if len(set(got)) != 1:
            sys.exit(f"gcc, circuit and NumPy say {got}")
        right += got[0] == c
if right < 12:
    sys.exit(f"{right} of 15 right: nothing was learnt")
PY
python3 oracle.py || fail "classes differ"

# What is no such network, and what is missing.
sed 's/activation = sign/activation = relu/' r.ini >relu.ini
run 0 train relu.ini --out relu --epochs 1 -q
run 4 seal network relu --out x.c
says err "model.activation = sign"
[ ! -e x.c ] || fail "a program of a network that has none"
run 2 seal network run
says err "--out"
run 2 seal network run --image set/test/c0/0.png
says err "--values"
run 4 seal network set --out x.c
run 2 train r.ini --set model.name=lenet5 --out no
says err "model.activation"
finish
