#!/usr/bin/env bash
# ResNet-20 on 32x32 images, batch 128: Stint (whole pipeline: decoding, augmentation,
# training) beside PyTorch (random images in memory), in turns, medians of ROUNDS.
#   bench/train_bench.sh DATA [ROUNDS] [THREADS]     DATA: a folder with train.tar
set -euo pipefail
cd "$(dirname "$0")/.."

data=${1:?usage: bench/train_bench.sh DATA [ROUNDS] [THREADS]}
rounds=${2:-5}
threads=${3:-2}
python=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for i in $(seq "$rounds"); do
    build/release/stint train recipes/cifar10-resnet20.ini --data "$data" --out "$work/run$i" \
        --steps 60 -j "$threads" --set train.eval_every=0 --json --quiet >"$work/stint$i.json"
    "$python" bench/step_pytorch.py --threads "$threads" >"$work/torch$i.json"
done
"$python" - "$work" "$rounds" <<'PY'
import json, platform, statistics, sys
work, rounds = sys.argv[1], int(sys.argv[2])
load = lambda name: [json.load(open(f"{work}/{name}{i + 1}.json")) for i in range(rounds)]
stint, torch = load("stint"), load("torch")
cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "?")
mid = lambda rows, key: statistics.median(r[key] for r in rows)
mib = 1 << 20
print(f"{cpu}, {torch[0]['threads']} threads, medians of {rounds} rounds in turns")
print(f"{'':24}{'images/s':>10}{'peak MiB':>10}")
print(f"{'Stint':24}{mid(stint, 'images_per_s'):10.0f}{mid(stint, 'peak_rss_bytes') / mib:10.1f}"
      f"   (planned {mid(stint, 'planned_peak_bytes') / mib:.1f} MiB)")
print(f"{'PyTorch ' + torch[0]['torch']:24}{mid(torch, 'images_per_s'):10.0f}"
      f"{mid(torch, 'peak_rss_bytes') / mib:10.1f}")
print(f"{'ratio':24}{mid(stint, 'images_per_s') / mid(torch, 'images_per_s'):9.2f}x"
      f"{mid(stint, 'peak_rss_bytes') / mid(torch, 'peak_rss_bytes'):9.2f}x")
PY
