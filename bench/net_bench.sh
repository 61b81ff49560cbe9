#!/usr/bin/env bash
# Sums of gradients of two processes over a link of 1 Gbit/s and of 100 Mbit/s: two network
# namespaces joined by a veth pair that tc shapes, set up and torn down here. Needs root.
#
#   bench/net_bench.sh [VALUES [RUNS [RATE...]]]      (11000000 5 1gbit 100mbit)
#
# Prints for each rate and way the median and best seconds of a sum, bytes that a rank
# sends, and how many times faster than the exact float32 sum. With DATA=folder also trains
# recipes/cifar10-resnet20.ini for some steps, exact and in 4 bits. Peers that start their
# ranks by rsh (mpirun) do not reach into namespaces and are left out.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
values=${1:-11000000} runs=${2:-5}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- 1gbit 100mbit
[ "$(id -u)" = 0 ] || { echo "net_bench.sh: network namespaces need root" >&2; exit 8; }
a=stint-a-$$ b=stint-b-$$ port=29400
work=$(mktemp -d)
tidy() {
    ip netns del "$a" 2>/dev/null || true
    ip netns del "$b" 2>/dev/null || true
    rm -rf "$work"
}
trap tidy EXIT
trap 'exit 143' TERM INT

ip netns add "$a"
ip netns add "$b"
ip link add v0 netns "$a" type veth peer name v1 netns "$b"
ip -n "$a" addr add 10.77.0.1/24 dev v0
ip -n "$b" addr add 10.77.0.2/24 dev v1
for side in "$a v0" "$b v1"; do
    ns=${side% *} dev=${side#* }
    ip -n "$ns" link set "$dev" up
    ip -n "$ns" link set lo up
    tc -n "$ns" qdisc add dev "$dev" root tbf rate 1gbit burst 128kb latency 50ms
done
shape() {
    tc -n "$a" qdisc change dev v0 root tbf rate "$1" burst 128kb latency 50ms
    tc -n "$b" qdisc change dev v1 root tbf rate "$1" burst 128kb latency 50ms
}
# both OUTPUT COMMAND...: with @ROOT and @RANK in its words, one rank a namespace.
both() {
    local out=$1 rank ns
    shift
    port=$((port + 1))
    for rank in 1 0; do
        ns=$([ $rank = 0 ] && echo "$a" || echo "$b")
        local words=("${@//@PORT/$port}")
        words=("${words[@]//@RANK/$rank}")
        timeout 300 ip netns exec "$ns" taskset -c $((rank % $(nproc))) "${words[@]}" \
            >"$work/rank$rank" 2>"$work/err$rank" &
    done
    wait
    [ -s "$work/rank0" ] || { cat "$work"/err* >&2; return 1; }
    mv "$work/rank0" "$out"
}
for rate; do
    shape "$rate"
    both "$work/ours" "$build/bench/net_exchange_bench" 10.77.0.1:@PORT 2 @RANK "$values" \
        "$runs"
    echo "== $rate, 2 ranks, $values values"
    awk -F'\t' '
        NR == 1 { base = $2 }
        { printf "%-22s median %8.3f s, best %8.3f s, a rank sends %11s bytes, %6.2f times\n",
                 $1, $2, $3, $4, base / $2 }' "$work/ours"
    if [ -n "${DATA:-}" ]; then
        for bits in 32 4; do
            both "$work/train" "$build/stint" train recipes/cifar10-resnet20.ini \
                --data "$DATA" --out "$work/run-$rate-$bits-@RANK" --steps "${STEPS:-20}" \
                --set "net.bits=$bits" -j 1 --net-root 10.77.0.1:@PORT --net-ranks 2 \
                --net-rank @RANK --json -q
            python3 - "$work/train" "$bits" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
print(f"resnet20, net.bits = {sys.argv[2]}: {r['images_per_s']:.0f} images/s")
PY
        done
    fi
done
