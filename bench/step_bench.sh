#!/usr/bin/env bash
# Whole training steps on random images in memory, Stint beside PyTorch (channels-last),
# in turns: ResNet-20 on 32x32 batch 128, VGG-16 on 32x32 batch 16, ResNet-50 on 224x224
# batch 16. Prints medians of all rounds that FOLDER holds.
#   bench/step_bench.sh [-n "resnet20 vgg16 resnet50"] [-t "1 2"] [-r ROUNDS] [-s STINT]
#                       [-p PYTHON]... [-k FOLDER]
# -p may be given several times, for several versions of PyTorch; default /usr/bin/python3.
# -k keeps the measurements, so that rounds can be taken one by one: a round of one
# network on one number of threads takes 20 to 90 seconds.
set -euo pipefail
cd "$(dirname "$0")/.."

nets="resnet20 vgg16 resnet50" threads="1 2" rounds=3 stint=build/release/stint folder=
pythons=()
while getopts n:t:r:s:p:k: flag; do
    case $flag in
    n) nets=$OPTARG ;;
    t) threads=$OPTARG ;;
    r) rounds=$OPTARG ;;
    s) stint=$OPTARG ;;
    p) pythons+=("$OPTARG") ;;
    k) folder=$OPTARG ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
done
[ ${#pythons[@]} -gt 0 ] || pythons=(/usr/bin/python3)
if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"

# A network's image side, classes, batch, shards and timed steps.
shape() {
    case $1 in
    resnet20) echo 32 10 128 4 12 ;;
    vgg16) echo 32 10 16 1 12 ;;
    resnet50) echo 224 1000 16 1 2 ;;
    *) echo "no such network here: $1" >&2 && exit 2 ;;
    esac
}

round() { # NETWORK THREADS
    local side classes batch shards steps at python name
    read -r side classes batch shards steps <<<"$(shape "$1")"
    at=$folder/$1.$2.$(date +%s%N)
    "$stint" bench step recipes/cifar10-resnet20.ini --set model.name="$1" -j "$2" --quiet \
        --set train.batch="$batch" --set train.shards="$shards" --image-size "$side" \
        --image-channels 3 --classes "$classes" --runs "$steps" --json >"$at.stint.json"
    for python in "${pythons[@]}"; do
        name=$("$python" -c 'import torch; print(torch.__version__)') || continue
        "$python" bench/step_pytorch.py --net "$1" --threads "$2" --image "$side" \
            --classes "$classes" --batch "$batch" --steps "$steps" --warmup 1 >"$at.$name.json"
    done
}

for i in $(seq "$rounds"); do
    for net in $nets; do
        for n in $threads; do
            round "$net" "$n"
        done
    done
done

"$stint" --version >"$folder/version.txt"
python3 - "$folder" <<'PY'
import collections, glob, json, os, statistics, sys
folder = sys.argv[1]
rows = collections.defaultdict(list)
for path in sorted(glob.glob(folder + "/*.json")):
    net, threads, _, who = os.path.basename(path)[:-5].split(".", 3)
    rows[net, int(threads), who].append(json.load(open(path)))
print(" ".join(open(folder + "/version.txt").read().split("\n")).strip())
cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "?")
print(f"{cpu}, {os.cpu_count()} CPUs; PyTorch channels-last, float32; medians (best)")
print(f"{'network':10}{'threads':>8}  {'who':22}{'rounds':>6}{'images/s':>18}{'peak MiB':>10}{'Stint is':>10}")
for (net, threads, who), found in sorted(rows.items(), key=lambda r: (r[0][0], r[0][1], r[0][2] != "stint")):
    rate = statistics.median(r["images_per_s"] for r in found)
    best = max(r["images_per_s"] * r["median_s"] / r["best_s"] for r in found)
    peak = statistics.median(r["peak_rss_bytes"] for r in found) / 2**20
    ours = rows.get((net, threads, "stint"))
    ratio = ""
    if ours and who != "stint":
        ratio = f"{statistics.median(r['images_per_s'] for r in ours) / rate:9.2f}x"
    name = "Stint" if who == "stint" else "PyTorch " + who
    print(f"{net:10}{threads:8}  {name:22}{len(found):6}{rate:10.1f} ({best:6.1f}){peak:10.0f}{ratio:>10}")
PY
