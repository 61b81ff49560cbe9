#!/bin/bash
# Memory and time of Bayesian training: an mlp of 10 million weights, Adam, batch 128,
# beside two loops in PyTorch: one that holds all samples until its backward pass, and
# one with a backward pass for each sample (bench/bayes_torch.py).
#   bench/bayes_bench.sh DATA [SAMPLES...]
# DATA: CIFAR-10. SAMPLES: 1 16 64 unless given. Variables: STINT, PYTHON, STEPS (8).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
data=$1
shift
[ $# -gt 0 ] || set -- 1 16 64
stint=${STINT:-$here/../build/release/stint}
python=${PYTHON:-python3}
steps=${STEPS:-8}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ours() { # SAMPLES [OPTION...]
    local samples=$1
    shift
    rm -rf "$work/out"
    "$stint" train "$work/mlp.ini" --data "$data" --bayes "$samples" --out "$work/out" \
        --json --quiet "$@"
}
cat >"$work/mlp.ini" <<INI
[model]
name = mlp
width = 1976
[train]
batch = 128
shards = 1
steps = $steps
[optimizer]
name = adam
lr = 0.001
[bayes]
deviation = 0.1
INI
figures() { # peak in MiB, milliseconds of a step
    python3 -c '
import json, sys
r = json.loads(sys.stdin.readline())
step = r.get("step_s") or r["batch"] / r["images_per_s"]
print("%10.0f %10.0f" % (r.get("peak_bytes", r.get("peak_rss_bytes")) / 2**20, 1e3 * step))'
}
printf '%-28s %10s %10s\n' "" "peak MiB" "step ms"
for samples in "$@"; do
    for generator in ars philox lfsr256; do
        printf '%-28s' "stint, S = $samples, $generator"
        ours "$samples" --set "bayes.generator=$generator" | figures
    done
    if "$python" -c 'import torch' 2>/dev/null; then
        for how in each held; do
            printf '%-28s' "PyTorch, S = $samples, $how"
            "$python" "$here/bayes_torch.py" speed 1976 "$samples" $how "$((steps / 2))" | figures
        done
    fi
done
