#!/bin/bash
# Does `stint trust memory` find mislabelled images? 200 of 3,000 rendered digits get the
# label of another digit; 512 networks are trained on random parts of them; the area under
# the curve of memorisation for telling the 200 is printed (1: all of them come first).
#
#   bench/memory_tail_bench.sh [FOLDER [RUNS]]    STINT=path of the program
#
# A stopped call goes on where it was. Needs python3 with numpy and some minutes.
set -eu
stint=${STINT:-$(dirname "$0")/../build/release/stint}
folder=${1:-/tmp/stint-memory-tail}
runs=${2:-512}
mkdir -p "$folder"
cd "$folder"
[ -e glyphs/train.tar ] || "$stint" data glyphs --out glyphs --train 10800 --test 3600 -q

# Ten classes of 300 training images, 20 in each from other classes; deterministic.
[ -e digits/done ] || python3 - <<'PY'
import collections, os, random, tarfile

digits = "0123456789"
for split, most in (("train", 300), ("test", 100)):
    count = collections.Counter()
    with tarfile.open(f"glyphs/{split}.tar") as tar:
        for member in sorted(tar.getmembers(), key=lambda m: m.name):
            parts = member.name.split("/")
            digit = parts[-2] if len(parts) > 1 else ""
            if member.isfile() and digit and digit in digits and count[digit] < most:
                count[digit] += 1
                os.makedirs(f"digits/{split}/{digit}", exist_ok=True)
                with open(f"digits/{split}/{digit}/{parts[-1]}", "wb") as f:
                    f.write(tar.extractfile(member).read())
rng = random.Random(1)
names = sorted((d, f) for d in digits for f in os.listdir(f"digits/train/{d}"))
for digit, name in rng.sample(names, 200):
    other = rng.choice([d for d in digits if d != digit])
    os.rename(f"digits/train/{digit}/{name}", f"digits/train/{other}/planted-{digit}-{name}")
open("digits/done", "w").close()
PY

cat >tail.ini <<'INI'
[model]
name = mlp
width = 512
depth = 1
[data]
path = digits
size = 16
[train]
epochs = 40
batch = 50
shards = 1
[optimizer]
lr = 0.05
momentum = 0.9
[schedule]
name = cosine
INI
"$stint" trust memory tail.ini --runs "$runs" --out study --json >study.json

python3 - <<'PY'
import json, os
import numpy as np

study = json.load(open("study.json"))
mem = np.load("study/memorisation.npy")
names = [f for d in sorted(os.listdir("digits/train")) for f in sorted(os.listdir(f"digits/train/{d}"))]
planted = np.array([f.startswith("planted-") for f in names])
assert len(names) == len(mem) and planted.sum() == 200 and not np.isnan(mem).any()
# Every planted image against every other; ties count half.
a, b = mem[planted][:, None], mem[~planted][None, :]
auroc = (a > b).mean() + (a == b).mean() / 2
print(f"{study['runs']} runs, each on {study['members']} of {study['train']} images")
print(f"memorisation of the 200: mean {mem[planted].mean():.3f}, least {mem[planted].min():.3f}; "
      f"of the others: mean {mem[~planted].mean():.3f}, {(mem[~planted] >= 0.25).sum()} from 0.25 on")
print(f"AUROC {auroc:.4f} (wanted 0.99)")
print(f"standard error at most {study['error_bound']:.3f}; "
      f"{100 * study['memorised_by_chance']:.2f} % of the memorised expected by chance; "
      f"strong influences {study['influences']} from {study['influence_from']}")
print(f"{study['runs_done']} runs in this call, {study['seconds']:.0f} s, {study['jobs']} side by side, "
      f"peak {study['peak_rss_bytes'] / 2**20:.1f} MiB, planned {study['planned_peak_bytes'] / 2**20:.1f} MiB")
PY
