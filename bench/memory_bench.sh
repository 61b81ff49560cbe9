#!/usr/bin/env bash
# What a memory budget buys: ResNet-20 at batch 128 in the least memory, and the largest
# batch of VGG-16 in 256 MiB, beside PyTorch plain and with torch.utils.checkpoint.
#   bench/memory_bench.sh DATA [STINT]     DATA: a folder with CIFAR-10's train.tar
# Times are of a few steps and only tell the order of things on a machine that is busy.
set -euo pipefail
cd "$(dirname "$0")/.."

data=${1:?usage: bench/memory_bench.sh DATA [STINT]}
stint=${2:-build/release/stint}
python=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/data" # without the test images, whose evaluation would take the time
ln -s "$(realpath "$data")/train.tar" "$work/data/train.tar"
common=(--data "$work/data" --json --quiet -j 2)

get() { "$python" -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }
row() { # LABEL FILE: peak and time of a step
    "$python" - "$1" "$2" "${3:-}" <<'PY'
import json, sys
label, path, batch = sys.argv[1:4]
j = json.load(open(path))
s = j.get("step_s") or j["batch"] / j["images_per_s"]
planned = f"  planned {j['planned_peak_bytes'] / 2**20:.1f}" if "planned_peak_bytes" in j else ""
print(f"  {label:58}{j['peak_rss_bytes'] / 2**20:8.1f} MiB {s * 1000:8.0f} ms a step{planned}")
PY
}
train() { # LABEL RECIPE ARGUMENT...
    local label=$1 recipe=$2
    shift 2
    "$stint" train "recipes/$recipe" "${common[@]}" --out "$work/run" --force --steps 4 \
        --set train.eval_every=0 "$@" >"$work/out.json"
    row "$label" "$work/out.json"
}
least() { # RECIPE ARGUMENT...: smallest budget
    "$stint" plan "recipes/$1" "${common[@]}" "${@:2}" >"$work/plan.json"
    get "$work/plan.json" smallest_bytes
}
torch() { "$python" bench/memory_pytorch.py "$@" >"$work/torch.json"; }

echo "ResNet-20, batch 128, one shard: peak resident memory of the whole process"
r=cifar10-resnet20.ini
train "Stint, no budget" $r --shards 1
train "Stint, smallest budget met exactly (--error 0)" $r --shards 1 --error 0 \
    --memory "$(least $r --shards 1 --error 0)"
train "Stint, smallest budget with --error 0.01" $r --shards 1 --memory "$(least $r --shards 1)"
train "Stint, 4 shards as in the recipe, exactly" $r --error 0 --memory "$(least $r --error 0)"
torch resnet20 && row "PyTorch" "$work/torch.json"
torch resnet20 --checkpoint && row "PyTorch, torch.utils.checkpoint a block" "$work/torch.json"

# largest WIDTH ARGUMENT...: the largest batch that PyTorch trains in 256 MiB, by halving
largest() {
    local low=0 high=4096 mid
    while [ $((low + 1)) -lt $high ]; do
        mid=$((low == 0 ? 1 : (low + high) / 2))
        [ $low -gt 0 ] && [ $mid -gt $((low * 2)) ] && mid=$((low * 2))
        torch vgg16 --steps 2 --batch $mid --width "$@"
        if [ "$(get "$work/torch.json" peak_rss_bytes)" -le 268435456 ]; then
            low=$mid
        else
            high=$mid
            [ $low -eq 0 ] && break
        fi
    done
    echo "$low"
}
for width in 64 16; do
    echo "VGG-16 of $width channels, one shard, 256 MiB: largest batch"
    for error in 0 0.01; do
        "$stint" plan recipes/cifar10-vgg16.ini "${common[@]}" --shards 1 --batch auto \
            --memory 256M --error $error --set model.width=$width \
            --set train.reference_batch=1024 >"$work/plan.json" 2>/dev/null
        batch=$(get "$work/plan.json" batch)
        "$stint" train recipes/cifar10-vgg16.ini "${common[@]}" --shards 1 --batch "$batch" \
            --memory 256M --error $error --set model.width=$width --steps 2 \
            --set train.eval_every=0 --out "$work/run" --force >"$work/out.json"
        row "Stint, --error $error: $batch images" "$work/out.json"
    done
    for mode in "" --checkpoint; do
        echo "  PyTorch${mode:+, }$mode: $(largest $width $mode) images; with one image it takes" \
            "$(torch vgg16 --steps 2 --batch 1 --width $width $mode &&
                echo $(($(get "$work/torch.json" peak_rss_bytes) >> 20))) MiB"
    done
done
