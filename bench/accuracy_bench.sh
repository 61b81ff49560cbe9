#!/usr/bin/env bash
# Test accuracy of a recipe over several seeds: mean and each.
#   bench/accuracy_bench.sh RECIPE DATA [SEEDS [OPTION...]]
# for example recipes/cifar10-resnet20.ini out/cifar10 3 --precision bf16. Options go to
# `stint train`.
set -euo pipefail
cd "$(dirname "$0")/.."

recipe=${1:?usage: bench/accuracy_bench.sh RECIPE DATA [SEEDS [OPTION...]]}
data=${2:?usage: bench/accuracy_bench.sh RECIPE DATA [SEEDS [OPTION...]]}
seeds=${3:-3}
options=("${@:4}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for seed in $(seq "$seeds"); do
    build/release/stint train "$recipe" --data "$data" --out "$work/run$seed" --seed "$seed" \
        --json --quiet "${options[@]}" >"$work/$seed.json"
    python3 - "$work/$seed.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
print(f"seed {r['seed']}: test accuracy {100 * r['test_accuracy']:.2f} %, {r['images_per_s']:.0f} images/s, "
      f"peak {r['peak_rss_bytes'] / 2**20:.1f} MiB (planned {r['planned_peak_bytes'] / 2**20:.1f})", flush=True)
PY
done
python3 - "$work" "$seeds" <<'PY'
import json, statistics, sys
a = [100 * json.load(open(f"{sys.argv[1]}/{i + 1}.json"))["test_accuracy"] for i in range(int(sys.argv[2]))]
print(f"mean of {len(a)} seeds: {statistics.mean(a):.2f} %, deviation {statistics.pstdev(a):.2f}")
PY
