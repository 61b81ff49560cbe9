#!/bin/bash
# Noise of many bootstraps of every cell against the formulas, in rounds of which each has
# fresh keys, so that a long run says what it has after each round and can be stopped:
#
#   bench/seal_noise.sh [ROUNDS [GATES [SET]]]        100, 1000 of each cell a round, p128
#
# 100 rounds are 10^5 bootstraps a cell. Prints deviation over all rounds, by how much it is
# off, and failures. Needs build/release/bench/seal_noise_bench; NOISE names another one.
set -euo pipefail
rounds=${1:-100} gates=${2:-1000} set=${3:-p128}
here=$(cd "$(dirname "$0")/.." && pwd)
noise=${NOISE:-$here/build/release/bench/seal_noise_bench}
all=$(mktemp)
trap 'rm -f "$all"' EXIT
for ((round = 1; round <= rounds; round++)); do
    # Status 1: one round is off by more than its luck allows; the sum of all decides.
    "$noise" 8 "$gates" 8 "$set" >"$all.round" || true
    grep ' gates, sd ' "$all.round" >>"$all"
    rm -f "$all.round"
    python3 - "$all" "$round" "$set" <<'PY'
import re, sys
cells = {}
for line in open(sys.argv[1]):
    m = re.match(r"(\w+) +(\d+) gates, sd 2\^(\S+), by the formula 2\^(\S+) .*, (\d+) failures", line)
    c = cells.setdefault(m[1], [0, 0.0, 2 ** float(m[4]), 0])
    c[0] += int(m[2])
    c[1] += int(m[2]) * 4 ** float(m[3])
    c[3] += int(m[5])
print(f"{sys.argv[3]}, {sys.argv[2]} pairs of keys:", ", ".join(
    f"{name} {100 * ((c[1] / c[0]) ** 0.5 / c[2] - 1):+.1f} %" for name, c in cells.items()),
    f"of the predicted deviation; {sum(c[3] for c in cells.values())} failures in "
    f"{sum(c[0] for c in cells.values())} bootstraps", flush=True)
PY
done
