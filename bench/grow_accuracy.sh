#!/usr/bin/env bash
# What growing batches cost in accuracy and save in bytes: ResNet-20 on CIFAR-10, in EPOCHS
# (10) epochs from 128 images on.
#   bench/grow_accuracy.sh DATA [SEED...]      accuracies; DATA: CIFAR-10, as stint train has it
#   bench/grow_accuracy.sh bytes               what two ranks send, on a small rendered set
# Ways, in turn for each seed (1): `schedule` and `noise`, batches that grow to 2048 at a rate
# x 0.75 a stage; `fixed`, 128 throughout at x 0.375; `large`, 2048 throughout at x 0.375. WAYS
# names some of them; NET (resnet20), BUILD (build/release), THREADS (all), EPOCHS (10), of which a
# stage is a fifth; SHARE (0.3) of the noise scale that the batch follows.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${BUILD:-build/release}")
data=${1:?usage: bench/grow_accuracy.sh DATA [SEED...] | bytes}
shift
epochs=${EPOCHS:-10} net=${NET:-resnet20} ways=${WAYS:-schedule noise fixed large}
work=$(mktemp -d) port=$((29800 + $$ % 1000))
trap 'rm -rf "$work"' EXIT
trap 'exit 143' TERM INT
recipe=recipes/cifar10-resnet20-grow.ini
settings() { # WAY
    echo "--set model.name=$net --epochs $epochs --set grow.every=$(((epochs + 4) / 5))"
    case $1 in
    schedule) ;;
    noise) echo "--set grow.by=noise --set grow.most=2048 --set grow.share=${SHARE:-0.3}" ;;
    fixed) echo "--set grow.factor=1 --set grow.lr=0.375" ;;
    large) echo "--set grow.factor=1 --set grow.lr=0.375 --batch 2048 --set train.accumulate=16" ;;
    *) echo "grow_accuracy.sh: no way '$1'" >&2; exit 2 ;;
    esac
}

if [ "$data" = bytes ]; then
    # A tenth of the images and of the batches: the same share of updates.
    "$build/stint" data glyphs --out "$work/data" --train 5040 --test 36 --size 32 >/dev/null 2>&1
    sends() { # NAME ARGUMENT...
        local name=$1 rank
        shift
        port=$((port + 1))
        for rank in 1 0; do
            "$build/stint" train $recipe --data "$work/data" --out "$work/$name" -j 1 --quiet --json \
                --set "model.name=${NET:-lenet5}" --set data.channels=3 --epochs "$epochs" --batch 12 \
                --set train.shards=4 --set grow.most=192 --set grow.every=$(((epochs + 4) / 5)) \
                --net-root "127.0.0.1:$port" --net-ranks 2 --net-rank $rank "$@" \
                >"$work/$name.$rank" &
        done
        wait
    }
    sends fixed --set grow.factor=1
    sends grow
    sends bits --set net.bits=4
    "$build/stint" plan $recipe --data "$work/data" --set "model.name=${NET:-lenet5}" --set data.channels=3 \
        --epochs "$epochs" --batch 12 --set train.shards=4 --set grow.most=192 \
        --set grow.every=$(((epochs + 4) / 5)) --net-ranks 2 --json >"$work/plan"
    python3 - "$work" <<'PY'
import json, sys
read = lambda name: json.load(open(f"{sys.argv[1]}/{name}"))
fixed, grow, bits, plan = read("fixed.0"), read("grow.0"), read("bits.0"), read("plan")
share = plan["run_rank_bytes"] / plan["run_rank_bytes_fixed"]
print(f"128 throughout   {fixed['net_bytes']:>14,} bytes in {fixed['steps']} updates")
for name, run in (("growing", grow), ("growing, 4 bits", bits)):
    part = run["net_bytes"] / fixed["net_bytes"]
    print(f"{name:16} {run['net_bytes']:>14,} bytes in {run['steps']} updates: {part:.4f}, 1/{1 / part:.1f}")
print(f"planned          {share:.4f}; as planned to {100 * abs(grow['net_bytes'] / fixed['net_bytes'] / share - 1):.2f} %")
PY
    exit
fi

[ $# -gt 0 ] || set -- 1
for seed; do
    for way in $ways; do
        # shellcheck disable=SC2046
        "$build/stint" train $recipe --data "$data" --out "$work/$way$seed" --quiet --json \
            --seed "$seed" ${THREADS:+-j "$THREADS"} $(settings "$way") >"$work/$way.$seed"
        python3 - "$work/$way.$seed" "$way" "$seed" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
print(f"{sys.argv[2]:8} seed {sys.argv[3]}: {100 * r['test_accuracy']:.2f} %, {r['steps']} updates, last batch "
      f"{r['batch']}, {r['seconds'] / 60:.1f} min", flush=True)
PY
    done
done
