#!/bin/sh
# How small a file of an AlexNet for CIFAR-10 becomes at 0.3 points lost.
#
#     bench/shrink_alexnet.sh STINT DATA [SEEDS] [EPOCHS] [STEPS] [WIDTH]
#
# DATA: CIFAR-10 (`stint data get cifar10`). The network is trained for EPOCHS (30) with
# 10 % of the images held out, then the search looks for the largest share that loses no
# more, by compressions of STEPS (35, as published) each. Prints bytes, times smaller, and
# points lost on the test images for each of SEEDS (1). About an hour a seed on two quiet
# CPUs; 3 epochs and 6 steps are ten minutes, and say whether it works. Published: 97.8
# times without positions of weights, 49 times with 16 bits for each.
set -e
stint=$(command -v "$1")
case $stint in /*) ;; *) stint=$PWD/$stint ;; esac
data=$(cd "$2" && pwd)
seeds=${3:-1} epochs=${4:-30} steps=${5:-35} width=${6:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >base.ini <<INI
[model]
name = alexnet
stem = small
width = $width
[data]
path = $data
crop_pad = 4
flip = true
[train]
epochs = $epochs
batch = 128
validation = 0.1
[optimizer]
name = sgd
lr = 0.02
momentum = 0.9
nesterov = true
weight_decay = 5e-4
[schedule]
name = one-cycle
INI
for seed in $(seq "$seeds"); do
    "$stint" train base.ini -o "base$seed" --seed "$seed" -q >/dev/null
    "$stint" shrink "base$seed" --data "$data" -o "small$seed" --accuracy-drop 0.3 \
        --scheme "prune(auto)+quantise(int8)" --samples 4 --seed "$seed" -q --json \
        --set shrink.steps="$steps" --set optimizer.lr=0.01 --set schedule.name=constant \
        --set optimizer.weight_decay=0 >out || cat out >&2
    python3 - "$seed" "$(stat -c %s "small$seed/model.safetensors")" <<'PY'
import json, sys
r = json.load(open("out"))
print(f"seed {sys.argv[1]}: {sys.argv[2]} bytes, {r['base_bytes'] / int(sys.argv[2]):.1f} times "
      f"smaller, {100 * r['accuracy_drop']:.2f} points lost of images that judge, "
      f"{100 * (r['base_test_accuracy'] - r['test_accuracy']):.2f} of the test images "
      f"({100 * r['base_test_accuracy']:.2f} %), share {r['sparsity']:.4f}")
PY
done
