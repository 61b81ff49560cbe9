#!/usr/bin/env bash
# VGG-16 on two processes over a slow link, one core each: batches that grow in five equal
# stages (x 16 in all) beside batches like the first throughout, exact sums both, and
# PyTorch's DDP over gloo with such batches, in turns. Two network namespaces joined by a veth
# pair that tc shapes, set up and torn down here. Needs root; a Python with torch (PYTHON) for ddp.
#
#   bench/grow_link.sh [WAY...]       WAY: grow fixed ddp (all)
#
# FIRST (128) images of the first batch, IMAGES (16 x FIRST) of the training set, RATE (100mbit)
# as tc has it, ROUNDS (1). A run is five epochs, a stage each. Seconds of the steps of a whole
# run; DDP's are the median of STEPS (4) steps times those of the fixed run. Exchanges alone would
# make the ratio 0.3875.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${BUILD:-build/release}")
python=${PYTHON:-/usr/bin/python3} first=${FIRST:-128} rate=${RATE:-100mbit} steps=${STEPS:-4}
images=${IMAGES:-$((16 * first))} rounds=${ROUNDS:-1}
[ $# -gt 0 ] || set -- grow fixed ddp
port=29700 limit=${LIMIT:-7200}
. bench/link_pair.sh
link_pair_up "$rate"

"$build/stint" data glyphs --out "$work/data" --train "$(((images + 35) / 36 * 36))" --test 36 \
    --size 32 >/dev/null 2>&1
cat >"$work/recipe.ini" <<INI
[model]
name = vgg16
stem = small
[data]
path = $work/data
[train]
batch = $first
shards = 2
epochs = 5
eval_every = 0
[grow]
by = schedule
every = 1
most = $((16 * first))
[optimizer]
lr = 0.001
[run]
log_every = 1
INI

ours() { # ARGUMENT...: seconds of all steps
    both "$build/stint" train "$work/recipe.ini" --out "$work/run" --force -j 1 --quiet \
        --net-root @ROOT --net-ranks 2 --net-rank @RANK "$@"
    python3 - "$work/run/log.jsonl" <<'PY'
import json, sys
steps = [e for e in map(json.loads, open(sys.argv[1])) if e["event"] == "step"]
print("%.1f %d" % (sum(e["batch"] / e["images_per_s"] for e in steps), len(steps)))
PY
}
ddp() { # half a batch each process
    both "$python" bench/net_train_pytorch.py --rank @RANK --root @ROOT --net vgg16 \
        --batch "$((first / 2))" --steps "$steps" --warmup 2
    python3 -c 'import json, sys; n = 5 * (int(sys.argv[2]) // int(sys.argv[3]))
print("%.1f %d" % (json.load(open(sys.argv[1]))["median_s"] * n, n))' "$work/rank0" "$images" "$first"
}
echo "vgg16, 2 ranks, $rate, from batches of $first over $images images, 5 epochs"
for ((round = 0; round < rounds; round++)); do
    for way; do
        case $way in
        grow) got=$(ours) ;;
        fixed) got=$(ours --set grow.factor=1 --set grow.lr=0.375) ;;
        ddp) got=$(ddp) ;;
        *) echo "grow_link.sh: no way '$way'" >&2; exit 2 ;;
        esac
        echo "$way $got" >>"$work/table"
        echo "  $way: ${got% *} s in ${got#* } updates"
    done
done
python3 - "$work/table" <<'PY'
import statistics, sys
times = {}
for line in open(sys.argv[1]):
    way, seconds, _ = line.split()
    times.setdefault(way, []).append(float(seconds))
middle = {way: statistics.median(t) for way, t in times.items()}
for way in middle:
    if way != "grow" and "grow" in middle:
        print(f"grow takes {middle['grow'] / middle[way]:.3f} of the time of {way}")
PY
