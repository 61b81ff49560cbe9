#!/bin/bash
# A tiny gpt and a tiny llama against PyTorch: the same initial weights and windows, losses
# of every step and weights after a few steps of AdamW with warm-up, cosine and clipping.
# The same of rounded weights, of tokens held out, and of a loss against another model.
# Skipped (77) where python3-torch or the program is missing.
set -u

python=${PYTHON:-/usr/bin/python3}
stint=${STINT:?set by ctest}
source=${STINT_SOURCE:?}
export -n STINT STINT_SOURCE STINT_BUILD

if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "skipped: $python has no torch (Debian: python3-torch)"
    exit 77
fi
if [ ! -x "$stint" ]; then
    echo "skipped: $stint is not built"
    exit 77
fi

folder=$(mktemp -d) || exit 5
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=$folder/cache
cat >"$folder/tiny.ini" <<'INI'
[model]
depth = 2
width = 32
heads = 4
context = 24
[data]
tokenizer = char
[train]
batch = 8
shards = 2
[optimizer]
name = adamw
lr = 3e-3
weight_decay = 0.2
clip = 0.7
[schedule]
name = cosine
warmup = 0.5
INI
awk 'BEGIN { s = 1; n = split("the cat sat on a mat and saw some red hats", w, " ")
    for (i = 0; i < 400; i++) { s = (s * 16807) % 2147483647
        printf "%s%s", w[1 + (i + s % 3) % n], s % 13 == 0 ? "\n" : " " } }' >"$folder/text.txt"
status=0
for model in gpt llama; do # 16 steps are more than two epochs
    "$python" "$source/bench/text_pytorch.py" "$stint" "$folder/tiny.ini" \
        "$folder/text.txt" --set model.name=$model --set model.kv_heads=2 --tokens 3072 \
        --seeds 1 --threads 1 --tolerance 2e-4 --folder "$folder/$model" || status=1
done
run() { # NAME SETTING...: another comparison of the tiny gpt
    local name=$1 sets=()
    shift
    for setting; do sets+=(--set "$setting"); done
    "$python" "$source/bench/text_pytorch.py" "$stint" "$folder/tiny.ini" \
        "$folder/text.txt" "${sets[@]}" --tokens 3072 --seeds 1 --threads 1 \
        --tolerance 2e-4 --folder "$folder/$name" || status=1
}
for model in gpt llama; do
    run rounded-$model model.name=$model quantise.bits=5 train.validation=0.2
    run taught-$model model.name=$model loss.reference="$folder/gpt/run-1" loss.hard=0.5 \
        loss.pairing=0.1 loss.soft=2 loss.temperature=3
done
run taught-by-llama model.name=gpt loss.reference="$folder/llama/run-1" loss.top=4 \
    loss.pairing=0
exit $status
