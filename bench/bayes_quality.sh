#!/bin/bash
# Does a Bayesian LeNet-5 know what it does not know? CIFAR-10, glyphs as strangers:
# accuracy, loss (NLL) and calibration error of averaged answers, AUROC of the entropy;
# ours beside a loop in PyTorch (bench/bayes_torch.py), plain LeNet-5, Monte-Carlo
# dropout and an ensemble of five.
#   bench/bayes_quality.sh CIFAR_FOLDER [EPOCHS [SEEDS [NETWORKS]]]
# CIFAR_FOLDER: train.tar and test.tar, a folder a class. Needs Pillow. EPOCHS 30, SEEDS 3, NETWORKS 20. Variables:
# STINT, PYTHON (with PyTorch; without it ours alone), OUT (a folder that is kept).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=$(cd "$1" && pwd)
epochs=${2:-30}
seeds=${3:-3}
networks=${4:-20}
stint=${STINT:-$here/../build/release/stint}
python=${PYTHON:-python3}
work=${OUT:-$(mktemp -d)}
[ -n "${OUT:-}" ] || trap 'rm -rf "$work"' EXIT
mkdir -p "$work"
cd "$work"
cat >lenet.ini <<INI
[data]
path = $data
[model]
name = lenet5
[train]
epochs = $epochs
batch = 64
shards = 2
[optimizer]
name = adam
lr = 0.002
[schedule]
name = cosine
[bayes]
deviation = 0.1
INI
[ -d glyphs ] || "$stint" data glyphs --out glyphs --train 72 --test 2000 --quiet
# The same images as arrays, for the peer.
[ -f arrays.npz ] || python3 - "$data" <<'PY'
import io, sys, tarfile
import numpy as np
from PIL import Image

def read(path, size=None):
    images, labels, names = [], [], []
    with tarfile.open(path) as tar:
        for m in sorted(tar.getmembers(), key=lambda m: m.name):
            if not m.isfile():
                continue
            image = Image.open(io.BytesIO(tar.extractfile(m).read())).convert("RGB")
            images.append(np.asarray(image).transpose(2, 0, 1))
            names.append(m.name.split("/")[-2])
    order = sorted(set(names))
    return np.stack(images), np.array([order.index(n) for n in names])

train, labels = read(sys.argv[1] + "/train.tar")
test, test_labels = read(sys.argv[1] + "/test.tar")
strangers, _ = read("glyphs/test.tar")
np.savez("arrays.npz", train=train, labels=labels, test=test, test_labels=test_labels,
         strangers=strangers)
PY
train() { # NAME SEED OPTION...
    [ -f "$1-$2/model.safetensors" ] ||
        "$stint" train lenet.ini --seed "$2" --out "$1-$2" --quiet "${@:3}" >/dev/null
}
judge() { # NAME SEED MODEL OPTION...
    "$stint" eval "$3" --ood glyphs --json --quiet "${@:4}" | tail -1 >"$1-$2.json"
}
for ((s = 1; s <= seeds; s++)); do
    train bayes $s --bayes 1
    judge bayes $s bayes-$s --samples "$networks"
    # One network is judged where something is random: dropout of one in a million.
    train plain $s --set model.dropout=1e-6
    judge plain $s plain-$s --samples 1
    train dropout $s --set model.dropout=0.25
    judge dropout $s dropout-$s --samples "$networks"
    "$python" "$here/bayes_torch.py" quality arrays.npz "$epochs" $s 1 "$networks" \
        >torch-$s.json 2>/dev/null || rm -f torch-$s.json
done
for ((s = 2; s <= 5; s++)); do train plain $s --set model.dropout=1e-6; done
judge ensemble 1 plain-1 --ensemble plain-2,plain-3,plain-4,plain-5
python3 - <<'PY'
import glob, json, statistics
keys = ("accuracy", "loss", "ece", "ood_auroc")
print("%-10s" % "" + "".join("%20s" % k for k in keys))
for name in ("bayes", "torch", "plain", "dropout", "ensemble"):
    runs = [json.load(open(f)) for f in sorted(glob.glob(name + "-*.json"))]
    if not runs:
        continue
    def cell(k):
        v = [r[k] for r in runs if r.get(k) is not None]
        error = statistics.stdev(v) / len(v) ** 0.5 if len(v) > 1 else 0
        return "%11.4f +- %.4f " % (statistics.mean(v), error) if v else "%20s" % "-"
    print("%-10s" % name + "".join("%20s" % cell(k) for k in keys))
PY
