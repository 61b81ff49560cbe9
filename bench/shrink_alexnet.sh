#!/bin/sh
# How much smaller a file of an AlexNet for CIFAR-10 becomes, and what accuracy it loses.
#
#     bench/shrink_alexnet.sh STINT DATA [SEEDS] [EPOCHS] [STEPS] [SHARE]
#
# DATA: CIFAR-10 (`stint data get cifar10`). The network is trained for EPOCHS (12) with
# 10 % of the images held out, then SHARE (0.972) of its weights goes and the rest is in
# eight bits, by learning and compressing in STEPS (24; an epoch, then half a one each).
# SHARE may be a list; `search` looks for the largest share that loses no more than 0.3
# points, by four compressions. Prints bytes, times smaller, and points lost on the test
# images for each seed of SEEDS (a number or a list as 2,3; 1). About an hour a seed and
# share on two CPUs of a Zen 4. Published, by several times as many epochs: 97.8 times
# without positions of weights, 49 times with 16 bits for each.
set -e
stint=$(command -v "$1")
case $stint in /*) ;; *) stint=$PWD/$stint ;; esac
data=$(cd "$2" && pwd)
seeds=${3:-1} epochs=${4:-12} steps=${5:-24} shares=${6:-0.972}
case $seeds in *,*) seeds=$(echo "$seeds" | tr , ' ') ;; *) seeds=$(seq "$seeds") ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >base.ini <<INI
[model]
name = alexnet
stem = small
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
for seed in $seeds; do
    "$stint" train base.ini -o "base$seed" --seed "$seed" -q >/dev/null
    for share in $(echo "$shares" | tr , ' '); do
        case $share in
        search) set -- --accuracy-drop 0.3 --samples 4 --scheme "prune(auto)+quantise(int8)" ;;
        *) set -- --scheme "prune($share)+quantise(int8)" ;;
        esac
        "$stint" shrink "base$seed" --data "$data" -o "small$seed" --seed "$seed" -q --json \
            --force "$@" --set shrink.steps="$steps" --set optimizer.lr=0.01 \
            --set schedule.name=constant --set optimizer.weight_decay=0 >out || cat out >&2
        python3 - "$seed" "$(stat -c %s "small$seed/model.safetensors")" <<'PY'
import json, sys
r = json.load(open("out"))
print(f"seed {sys.argv[1]}: {sys.argv[2]} bytes, {r['base_bytes'] / int(sys.argv[2]):.1f} times "
      f"smaller, {100 * r['accuracy_drop']:.2f} points lost of images that judge, "
      f"{100 * (r['base_test_accuracy'] - r['test_accuracy']):.2f} of the test images "
      f"({100 * r['base_test_accuracy']:.2f} %), share {r['sparsity']:.4f}", flush=True)
PY
    done
done
