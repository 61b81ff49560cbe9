#!/usr/bin/env bash
# Exact sums of gradients over several hosts: network namespaces at one bridge, each with a link
# that tc shapes both ways, set up and torn down here. Needs root.
#
#   bench/net_ranks.sh [HOSTS [EACH [VALUES [RUNS [RATE]]]]]      (8 1 1000000 5 100mbit)
#
# EACH: processes a host, which share memory. Prints median and best seconds of a sum along
# the tree and by the scatter of compressed sums (float32), bytes that rank 0 sends, and the
# seconds that the links alone need for what a host must send. BENCH: another build's
# net_exchange_bench, which takes turns with ours.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "net_ranks.sh: network namespaces need root" >&2; exit 8; }
build=${BUILD:-build/release}
hosts=${1:-8} each=${2:-1} values=${3:-1000000} runs=${4:-5} rate=${5:-100mbit}
switch=stint-s-$$ port=29500 work=$(mktemp -d)
tidy() {
    local i
    for ((i = 0; i < hosts; i++)); do ip netns del "stint-$i-$$" 2>/dev/null || true; done
    ip netns del "$switch" 2>/dev/null || true
    rm -rf "$work"
}
trap tidy EXIT
trap 'exit 143' TERM INT

shape() { # NAMESPACE DEVICE
    tc -n "$1" qdisc add dev "$2" root tbf rate "$rate" burst 128kb latency 50ms
}

ip netns add "$switch"
ip -n "$switch" link add b0 type bridge
ip -n "$switch" link set b0 up
for ((i = 0; i < hosts; i++)); do
    ns=stint-$i-$$
    ip netns add "$ns"
    ip link add v0 netns "$ns" type veth peer name "p$i" netns "$switch"
    ip -n "$switch" link set "p$i" master b0 up
    ip -n "$ns" addr add "10.77.0.$((i + 1))/24" dev v0
    ip -n "$ns" link set v0 up
    ip -n "$ns" link set lo up
    shape "$ns" v0
    shape "$switch" "p$i"
done

sums() { # PROGRAM NAME
    local rank pid pids=() failed=0 ranks=$((hosts * each))
    port=$((port + 1))
    for ((rank = ranks - 1; rank >= 0; rank--)); do
        # Hosts have names of their own.
        timeout 300 ip netns exec "stint-$((rank / each))-$$" unshare -u sh -c \
            'hostname "$0" && exec "$@"' "host$((rank / each))" \
            "$1" "10.77.0.1:$port" "$ranks" "$rank" "$values" "$runs" exact \
            >"$work/rank$rank" 2>"$work/err$rank" </dev/null &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    [ $failed = 0 ] || { cat "$work"/err* >&2; return 1; }
    awk -F'\t' -v name="$2" '/^float32/ {
        printf "%-6s %-20s median %8.3f s, best %8.3f s, rank 0 sends %11s bytes\n", name, $1, $2, $3, $4
    }' "$work/rank0"
}

echo "== $rate, $hosts hosts of $each, $values values"
[ -z "${BENCH:-}" ] || sums "$BENCH" before
sums "$build/bench/net_exchange_bench" ours
[ -z "${BENCH:-}" ] || sums "$BENCH" before
[ -z "${BENCH:-}" ] || sums "$build/bench/net_exchange_bench" ours
python3 - "$rate" "$hosts" "$values" <<'PY'
import re
import sys

number, unit = re.fullmatch(r"([0-9.]+)([kmg]?)bit", sys.argv[1]).groups()
rate = float(number) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[unit] / 8
hosts, values = int(sys.argv[2]), int(sys.argv[3])
print(f"       the link alone              {2 * (hosts - 1) / hosts * 4 * values / rate:8.3f} s")
PY
