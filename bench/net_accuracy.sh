#!/usr/bin/env bash
# Does a compressed sum cost accuracy? ResNet-20 on CIFAR-10, two processes of one thread on
# this host, one seed a call:
#   bench/net_accuracy.sh DATA SEED [WAY...]     WAY: 32 4 2 (bits; all of them)
# DATA: a folder with train.tar and test.tar. 2 bits and 4 bits keep what rounding took
# (net.feedback). STEPS=N trains for N steps only, to see how long a whole run would take;
# TIMEOUT=1h lets the processes be halted and go on.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
data=${1:?usage: bench/net_accuracy.sh DATA SEED [WAY...]} seed=${2:?a seed}
shift 2
[ $# -gt 0 ] || set -- 32 4 2
work=$(mktemp -d) port=$((29600 + $$ % 1000))
trap 'rm -rf "$work"' EXIT
trap 'exit 143' TERM INT
for bits; do
    port=$((port + 1))
    for rank in 1 0; do
        taskset -c $((rank % $(nproc))) "$build/stint" train recipes/cifar10-resnet20.ini --data "$data" --seed "$seed" \
            ${STEPS:+--steps "$STEPS"} --out "$work/$bits" -j 1 --quiet --json --set "net.bits=$bits" \
            --net-timeout "${TIMEOUT:-30s}" \
            --net-root "127.0.0.1:$port" --net-ranks 2 --net-rank "$rank" >"$work/$bits.$rank" &
    done
    wait
    python3 - "$work/$bits.0" "$bits" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
print(f"{sys.argv[2]:>2} bits, seed {r['seed']}: test accuracy {100 * r['test_accuracy']:.2f} %, "
      f"{r['steps']} steps in {r['seconds'] / 60:.1f} min, {r['images_per_s']:.0f} images/s", flush=True)
PY
done
