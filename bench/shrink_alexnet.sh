#!/bin/sh
# How much smaller a file of an AlexNet for CIFAR-10 becomes, and what accuracy it loses.
#
#     bench/shrink_alexnet.sh STINT DATA [SEEDS] [EPOCHS] [STEPS] [SCHEMES]
#
# DATA: CIFAR-10 (`stint data get cifar10`). The network is trained for EPOCHS (12) with
# 10 % of the images held out, then compressed by learning and compressing in STEPS (14; an
# epoch, then half a one each), most of which train what is left, without dropout. SCHEMES,
# separated by spaces, are tried one after the other; standard is one that makes the file
# some 90 times smaller. Its thresholds are each layer's: under one for all of them the big
# dense layers, whose weights are small, lose so much that no signal passes. The scheme
# `search` looks for the largest share of all weights that loses no more than 0.3 points,
# by four compressions. Prints bytes, times smaller, and points lost on the test images for
# each of SEEDS (a number, or a list as 2,3; 1). An hour a seed and scheme on two
# CPUs of a Zen 4 with other work on them; 1 epoch and 2 steps show that it runs. Published,
# by several times as many epochs: 97.8 times without positions of weights, 49 times with
# 16 bits for each.
set -ef # no names of files for a scheme
stint=$(command -v "$1")
case $stint in /*) ;; *) stint=$PWD/$stint ;; esac
data=$(cd "$2" && pwd)
seeds=${3:-1} epochs=${4:-12} steps=${5:-14}
schemes=${6:-prune(0.98,layer)@fc[12].*+prune(0.95,layer)@conv[2-5].*+quantise(int6)}
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
    for scheme in $schemes; do
        case $scheme in
        search) set -- --accuracy-drop 0.3 --samples 4 --scheme "prune(auto,layer)+quantise(int6)" ;;
        *) set -- --scheme "$scheme" ;;
        esac
        "$stint" shrink "base$seed" --data "$data" -o "small$seed" --seed "$seed" -q --json \
            --force "$@" --set shrink.steps="$steps" --set shrink.finish=0.8 \
            --set model.dropout=0 --set optimizer.lr=0.02 --set schedule.name=constant \
            --set optimizer.weight_decay=0 >out || cat out >&2
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
