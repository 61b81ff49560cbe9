#!/usr/bin/env bash
# Accuracy of training with every activation packed (error.pack = all) beside exact
# training: the same recipe and seeds, loss curves side by side, test accuracy at the end.
#   bench/packed_accuracy.sh DATA [STINT] [NET] [EPOCHS] [SEEDS] [WIDTH]
# DATA: a folder with CIFAR-10's train.tar and test.tar. By default ResNet-18 for one epoch
# with one seed, which only shows that the curves lie together; the comparison that the
# error target is about is
#   bench/packed_accuracy.sh DATA build/release/stint resnet18 30 3 64
# and the same of vgg16: many hours on two cores. One command a seed does as well: SEED is
# the one to train, OUT a folder that keeps what was trained; the table is of all in it:
#   SEED=2 OUT=out/packed bench/packed_accuracy.sh DATA build/release/stint resnet18 10
# A run that OUT has already is not trained again, one that was cut off is resumed.
# BASE=3: both arms of every seed begin from one model, trained exactly for three epochs at
# a constant rate (0.05), and go on from 0.02 down to 0, as the end of a training does.
# Accuracies spread ten times less then than between whole short trainings, where early
# chaos decides, so that EPOCHS=1 tells more in less time.
set -euo pipefail
data=${1:?usage: bench/packed_accuracy.sh DATA [STINT] [NET] [EPOCHS] [SEEDS] [WIDTH]}
stint=${2:-build/release/stint} net=${3:-resnet18} epochs=${4:-1} seeds=${5:-1} width=${6:-64}
steps=${STEPS:-0} # of a run, instead of epochs
batch=${BATCH:-128}
base=${BASE:-0} # epochs of the model to begin from
case $base in *[!0-9]*)
    echo "packed_accuracy.sh: BASE is '$base', but is a number of epochs (0: none)" >&2
    exit 2
    ;;
esac
python=${PYTHON:-/usr/bin/python3}
list=$(seq 1 "$seeds")
[ -z "${SEED:-}" ] || list=$SEED
if [ -n "${OUT:-}" ]; then
    work=$OUT
    mkdir -p "$work"
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
cat >"$work/net.ini" <<INI
[data]
crop_pad = 4
flip = true
[model]
name = $net
stem = small
width = $width
[train]
batch = $batch
shards = 1
epochs = $epochs
eval_every = 0
[optimizer]
name = sgd
momentum = 0.9
lr = 0.05
weight_decay = 5e-4
[schedule]
name = cosine
[run]
log_every = 10
INI
train() { # OUT OPTION...
    local out=$1
    shift
    "$stint" train "$work/net.ini" --data "$data" --out "$work/$out" --json --quiet "$@" \
        >"$work/json"
    mv "$work/json" "$work/$out.json"
}

start=()
if [ "$base" -gt 0 ]; then
    start=(--start "$work/base/model.safetensors" --lr 0.02)
    [ -s "$work/base.json" ] || train base --force --error 0 --epochs "$base" --seed 100 \
        --set schedule.name=constant --set schedule.warmup=0.3
fi
for seed in $list; do
    for arm in exact packed; do
        [ ! -s "$work/$arm.$seed.json" ] || continue
        extra=("${start[@]}" --error 0)
        [ $arm = exact ] || extra=("${start[@]}" --set error.pack=all)
        [ "$steps" -eq 0 ] || extra+=(--steps "$steps")
        # One that was cut off goes on from its last epoch, to the same bits.
        if compgen -G "$work/$arm.$seed/checkpoints/*" >/dev/null; then
            extra+=(--resume)
        else
            rm -rf "$work/$arm.$seed"
        fi
        train "$arm.$seed" --seed "$seed" "${extra[@]}"
    done
done
"$python" - "$work" <<'PY'
import glob, json, statistics, sys

work = sys.argv[1]
seeds = sorted(int(name.split(".")[-2]) for name in glob.glob(f"{work}/packed.*.json"))


def lines(arm, seed):
    with open(f"{work}/{arm}.{seed}/log.jsonl") as f:
        return [json.loads(line) for line in f]


for seed in seeds:
    exact, packed = lines("exact", seed), lines("packed", seed)
    curve = [{line["step"]: line["loss"] for line in run if line["event"] == "step"}
             for run in (exact, packed)]
    steps = sorted(set(curve[0]) & set(curve[1]))
    print(f"seed {seed}: loss of the training batches")
    for step in steps[:: max(1, len(steps) // 20)]:
        print(f"  step {step:6}  exact {curve[0][step]:.4f}  packed {curve[1][step]:.4f}")
    last = [line for line in packed if line["event"] == "bounds"][-1]["rows"]
    plain, held = (sum(row[key] for row in last) for key in ("plain_bytes", "bytes"))
    print(f"  saved activations {plain / held:.1f} x smaller at the last choice of bounds")
accuracy = {}
for arm in ("exact", "packed"):
    results = [json.load(open(f"{work}/{arm}.{s}.json")) for s in seeds]
    accuracy[arm] = [r["test_accuracy"] for r in results if r["test_accuracy"] is not None]
    shown = " ".join(f"{100 * a:.2f}" for a in accuracy[arm]) or "not tested"
    loss = " ".join(f"{r['train_loss']:.4f}" for r in results)
    print(f"{arm:7} test accuracy {shown} %, training loss {loss}, "
          f"peak {max(r['peak_rss_bytes'] for r in results) / 2**20:.0f} MiB")
if all(accuracy.values()):
    means = [statistics.mean(a) for a in accuracy.values()]
    print(f"packed less exact: {100 * (means[1] - means[0]):+.2f} points over {len(seeds)} seed(s)")
PY
