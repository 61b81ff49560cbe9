#!/bin/sh
# Learning and compressing in turn beside PyTorch, from the same trained network.
#
#     bench/shrink_lc.sh [STINT] [DATA] [WIDTH] [SEEDS] [EPOCHS] [STEPS]
#
# VGG-11 of WIDTH (16) is trained for EPOCHS (3) on DATA (a folder with train.tar and
# test.tar; without one glyphs are rendered), then 95 % of its weights are removed in
# STEPS (12) compressions with an epoch of learning before the second and half of one
# before each further, by both programs with the same mu, rates and batches (one shard, so
# that norms are of all 100 images, as PyTorch's are). Prints test accuracy and seconds
# for each of SEEDS (1) seeds, or of SEED alone. FINISH (0.4) of ours trains what the best
# compression left; with 0 both do the same. A quarter of an hour for CIFAR-10 on two
# CPUs, a minute for glyphs; the published schedule is 35 steps. PyTorch and Pillow are
# those of /usr/bin/python3.
set -e
here=$(cd "$(dirname "$0")" && pwd)
stint=$(command -v "${1:-build/release/stint}")
case $stint in /*) ;; *) stint=$PWD/$stint ;; esac
data=${2:+$(cd "$2" && pwd)} width=${3:-16} seeds=${4:-1} epochs=${5:-3} steps=${6:-12}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
if [ -z "$data" ]; then
    data=$work/g
    "$stint" data glyphs --out g --train 3600 --test 720 --min-faces 10 -q >/dev/null
fi
cat >base.ini <<INI
[model]
name = vgg11
stem = small
width = $width
dropout = 0
[data]
path = $data
[train]
epochs = $epochs
batch = 100
shards = 1
validation = 0.1
[optimizer]
name = sgd
lr = 0.05
momentum = 0.9
nesterov = true
weight_decay = 0
INI
factor=1.5
for seed in ${SEED:-$(seq "$seeds")}; do
    "$stint" train base.ini -o "base$seed" --seed "$seed" -q >/dev/null 2>&1
    "$stint" export dense "base$seed" --out dense.safetensors -q >/dev/null 2>&1
    epoch=$(python3 - "base$seed/log.jsonl" "$epochs" <<'PY'
import json, sys
steps = [json.loads(l).get("step", 0) or 0 for l in open(sys.argv[1])]
print(max(steps) // int(sys.argv[2]))
PY
    )
    half=$((epoch / 2))
    # A tenth of what would close the gap in a learning step, as shrink.mu 0 would have it.
    mu=$(python3 -c "
import math
print(0.1 * 0.1 / sum(0.05 * (1e-4 / 0.05) ** (i / $half) for i in range($half)))")
    "$stint" shrink "base$seed" --data "$data" -o "ours$seed" --scheme "prune(0.95)" \
        --set shrink.steps="$steps" --set shrink.first="$epoch" --set shrink.batches="$half" \
        --set shrink.mu=$mu --set shrink.mu_factor=$factor \
        --set shrink.finish="${FINISH:-0.4}" --seed "$seed" -q --json >ours.json
    /usr/bin/python3 "$here/shrink_lc_pytorch.py" dense.safetensors "$data" --sparsity 0.95 \
        --steps "$steps" --first "$epoch" --batches "$half" --batch 100 --lr 0.05 --lr-end 1e-4 \
        --mu $mu --mu-factor $factor --seed "$seed" >theirs.json
    python3 - "$seed" "ours$seed" <<'PY'
import glob, json, sys
ours, theirs = json.load(open("ours.json")), json.load(open("theirs.json"))
log = [json.loads(l) for l in open(glob.glob(sys.argv[2] + "/samples/*/log.jsonl")[0])]
seconds = [l["seconds"] for l in log if l["event"] == "end"][0]
print(f"seed {sys.argv[1]}: network {100 * ours['base_test_accuracy']:.2f} %; lc "
      f"{100 * ours['test_accuracy']:.2f} % in {seconds:.1f} s; PyTorch "
      f"{100 * theirs['accuracy']:.2f} % in {theirs['seconds']:.1f} s (direct "
      f"{100 * theirs['direct']:.2f} %); time {seconds / theirs['seconds']:.2f}x")
PY
done
