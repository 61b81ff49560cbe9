#!/bin/bash
# Handwritten digits, classified encrypted: scikit-learn's 1,797 digits of 8 x 8 as image
# files, an mlp of signs and ternary weights, its C program, and runs on encrypted images.
#
#   bench/seal_digits.sh [IMAGES [SET]]        5 images, p128; the row of the docs has 50
#
# Prints the accuracy on the test images, bootstraps of an image, how many of the classes
# are those of the program built by gcc, and seconds an image. Needs python3 with
# scikit-learn and Pillow (PYTHON names another python3); STINT names another program.
set -euo pipefail
count=${1:-5} set=${2:-p128}
here=$(cd "$(dirname "$0")/.." && pwd)
stint=${STINT:-$here/build/release/stint} python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$python" - <<'PY'
import os
import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
d = load_digits()
order = np.random.RandomState(0).permutation(len(d.images))
for k, i in enumerate(order):
    folder = f"digits/{'train' if k < len(order) * 4 // 5 else 'test'}/{d.target[i]}"
    os.makedirs(folder, exist_ok=True)
    Image.fromarray(np.minimum(d.images[i] * 16, 255).astype("uint8")).save(f"{folder}/{i:04d}.png")
PY
cat >digits.ini <<'END'
[model]
name = mlp
width = 64
depth = 1
activation = sign
input_bits = 3
[quantise]
bits = 2
[data]
path = digits
crop_pad = 0
flip = false
[train]
epochs = 100
batch = 64
seed = 1
[optimizer]
name = adamw
lr = 0.01
[schedule]
name = cosine
END
"$stint" train digits.ini --out run -q | grep accuracy
"$stint" seal network run --out digits.c
"$stint" seal compile digits.c --entry classify --out digits.seal
gcc -O1 -fwrapv -shared -fPIC digits.c -o digits.so
"$stint" seal keygen --set-name "$set" --out keys >/dev/null
for image in $(find digits/test -name '*.png' | LC_ALL=C sort | awk -v n="$count" \
    '{ line[NR] = $0 } END { for (i = 0; i < n; i++) print line[1 + int(i * NR / n)] }'); do
    "$stint" seal network run --image "$image" --values values.json >/dev/null
    "$stint" seal encrypt digits.seal --key keys/secret.key --values values.json --out in.ct >/dev/null
    "$stint" seal run digits.seal --key keys/eval.key --in in.ct --out out.ct -j 2 -q --json >run.json
    "$stint" seal decrypt digits.seal --key keys/secret.key --in out.ct --json >out.json
    python3 -c '
import ctypes, json, sys
x = json.load(open("values.json"))["input"]
want = ctypes.CDLL("./digits.so").classify((ctypes.c_uint8 * len(x))(*x))
got = json.load(open("out.json"))["values"]["return"]
print(int(got == want), json.load(open("run.json"))["seconds"], got, sys.argv[1].split("/")[-2])
' "$image"
done | awk '{ same += $1; seconds += $2; right += $3 == $4 }
    END { printf "%d of %d classes are those of gcc, %d right; %.2f s an image\n", same, NR, right, seconds / NR }'
