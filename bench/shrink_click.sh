#!/bin/bash
# Kernels and shapes pruned within a training: accuracy and time beside a dense training, a
# random choice, and learning and compressing after a training.
#
#     bench/shrink_click.sh STINT DATA [SEEDS] [EPOCHS] [WIDTH]
#
# WAYS: those to train (dense gradient magnitude random lc; lc begins from dense).
# VGG-11 of WIDTH (32) on CIFAR-10, EPOCHS (6; the numbers to reach are of 24), at shares of
# 30 to 70 % a layer, which leave 5.7 times fewer weights; equal schedules. Prints test
# accuracy and seconds of each. Some minutes a seed for 6 epochs on two quiet CPUs.
set -e
stint=$(command -v "$1")
case $stint in /*) ;; *) stint=$PWD/$stint ;; esac
data=$(cd "$2" && pwd)
seeds=${3:-1} epochs=${4:-6} width=${5:-32}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >vgg.ini <<INI
[model]
name = vgg11
stem = small
width = $width
dropout = 0
[data]
path = $data
crop_pad = 4
flip = true
[train]
epochs = $epochs
batch = 128
[optimizer]
name = sgd
lr = 0.1
momentum = 0.9
nesterov = true
weight_decay = 5e-4
[schedule]
name = one-cycle
INI
scheme="pattern(4)+kernel(0.3/0.4/0.45/0.5/0.6/0.65/0.7)"
tell() { # what, seed, folder
    python3 - "$1" "$2" "$3" <<'PY'
import json, struct, sys
what, seed, folder = sys.argv[1:]
end = [json.loads(l) for l in open(folder + "/log.jsonl")][-1]
raw = open(folder + "/model.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
total = left = 0
for name, t in json.loads(raw[8:8 + n]).items():
    if name.endswith("conv.weight") and not name.startswith(("mask", "product")):
        a, b = t["data_offsets"]
        x = memoryview(raw[8 + n + a:8 + n + b]).cast("I")
        total, left = total + len(x), left + sum(v != 0 for v in x)
print(f"seed {seed} {what:10} test accuracy {100 * end['test_accuracy']:6.2f} %  "
      f"{end['seconds']:7.1f} s  {total / left:.2f} times fewer weights of convolutions")
PY
}
for seed in $(seq "$seeds"); do
    for way in ${WAYS:-dense gradient magnitude random lc}; do
        case $way in
        dense) more=(dense) ;;
        # As many epochs of learning again as the training had, after it.
        lc)
            more=(lc --start dense --scheme "$scheme" --set shrink.method=lc
                --set train.validation=0.1 --set optimizer.lr=0.02
                --set "shrink.steps=$((2 * epochs))" --set optimizer.weight_decay=0)
            ;;
        *) more=(click --scheme "$scheme" --set "shrink.importance=$way") ;;
        esac
        "$stint" train vgg.ini -o "${more[@]}" --seed "$seed" --force -q >/dev/null
        tell "$way" "$seed" "${more[0]}"
    done
done
