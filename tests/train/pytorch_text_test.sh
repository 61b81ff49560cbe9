#!/bin/bash
# A tiny gpt and a tiny llama against PyTorch: the same initial weights and windows, losses
# of every step and weights after a few steps of AdamW with warm-up, cosine and clipping.
# The same of rounded weights, of tokens held out, of a loss against another model, and of
# a penalty on its gradient.
# Skipped (77) where python3-torch or the program is missing.
set -u

python=${PYTHON:-/usr/bin/python3}
stint=${STINT:?set by ctest}
source=${STINT_SOURCE:?}
export -n STINT STINT_SOURCE STINT_BUILD

if ! "$python" -c 'import importlib.util as u; u.find_spec("torch") or exit(1)'; then
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
# compare NAME SETTING...: a line for the program below, a comparison
compare() {
    local name=$1 setting
    shift
    printf '%s %s %s' "$stint" "$folder/tiny.ini" "$folder/text.txt"
    for setting; do printf ' --set %s' "$setting"; done
    printf ' --tokens 3072 --seeds 1 --threads 1 --tolerance 2e-4 --folder %s\n' "$folder/$name"
}
{
    for model in gpt llama; do # 16 steps are more than two epochs
        compare $model model.name=$model model.kv_heads=2
        compare steady-$model model.name=$model model.kv_heads=2 loss.gradient_penalty=20
    done
    for model in gpt llama; do
        compare rounded-$model model.name=$model quantise.bits=5 train.validation=0.2
        compare taught-$model model.name=$model loss.reference="$folder/gpt/run-1" \
            loss.hard=0.5 loss.pairing=0.1 loss.soft=2 loss.temperature=3
    done
    compare taught-by-llama model.name=gpt loss.reference="$folder/llama/run-1" loss.top=4 \
        loss.pairing=0
    compare taught-and-steady model.name=gpt loss.reference="$folder/llama/run-1" loss.top=4 \
        quantise.bits=5 loss.gradient_penalty=20
} >"$folder/lines"
# All in one process: torch takes two seconds to come in.
PYTHONDONTWRITEBYTECODE=1 "$python" - "$source/bench/text_pytorch.py" "$folder/lines" <<'PY'
import importlib, os, sys

program, lines = sys.argv[1:]
sys.path.insert(0, os.path.dirname(program))
bench = importlib.import_module(os.path.basename(program)[:-3])
failed = count = 0
for line in open(lines):
    sys.argv = [program, *line.split()]
    try:
        failed |= bool(bench.main())
    except SystemExit as end:
        failed |= end.code not in (None, 0)
    count += 1
sys.exit(failed or count != 10)
PY
