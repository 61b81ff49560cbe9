#!/usr/bin/env bash
# Sums of gradients of two processes over a link of 1 Gbit/s and of 100 Mbit/s: two network
# namespaces joined by a veth pair that tc shapes, set up and torn down here. Needs root.
#
#   bench/net_bench.sh [VALUES [RUNS [RATE...]]]      (11000000 5 1gbit 100mbit)
#
# Prints for each rate and way the median and best seconds of a sum, bytes that a rank
# sends and whether the formula says the same, and how many times faster than the exact
# float32 sum. With DATA=folder also trains
# recipes/cifar10-resnet20.ini for some steps, exact and in 4 bits. Peers that start their
# ranks by rsh (mpirun) do not reach into namespaces and are left out.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
values=${1:-11000000} runs=${2:-5}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- 1gbit 100mbit
. bench/link_pair.sh
link_pair_up 1gbit
for rate; do
    shape "$rate"
    both "$build/bench/net_exchange_bench" @ROOT 2 @RANK "$values" "$runs"
    echo "== $rate, 2 ranks, $values values"
    awk -F'\t' '
        NR == 1 { base = $2 }
        { printf "%-22s median %8.3f s, best %8.3f s, a rank sends %11s bytes (%s), %6.2f times\n",
                 $1, $2, $3, $4, $4 == $5 ? "as by formula" : "formula: " $5, base / $2 }' "$work/rank0"
    if [ -n "${DATA:-}" ]; then
        for bits in 32 4; do
            both "$build/stint" train recipes/cifar10-resnet20.ini \
                --data "$DATA" --out "$work/run-$rate-$bits-@RANK" --steps "${STEPS:-20}" \
                --set "net.bits=$bits" -j 1 --net-root @ROOT --net-ranks 2 \
                --net-rank @RANK --json -q
            python3 - "$work/rank0" "$bits" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
print(f"resnet20, net.bits = {sys.argv[2]}: {r['images_per_s']:.0f} images/s")
PY
        done
    fi
done
