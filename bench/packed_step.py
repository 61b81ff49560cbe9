"""What holding every activation packed costs a training step: steps of exact training and
with error.pack = all, in turns, in one shard of 128 images.

    packed_step.py STINT DATA NET [--rounds N] [--steps N] [--threads N]

DATA is a folder with CIFAR-10's train.tar, NET vgg16, resnet18, ... with a stem for small
images. Of each run the median of the steps from the fifth on that choose no bounds, since
those cost more and are rare later; peak resident memory of the process; the ratio of each
round. Run it on a machine that does nothing else.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

RECIPE = """[data]
crop_pad = 4
flip = true
[model]
stem = small
[train]
batch = 128
shards = 1
eval_every = 0
[optimizer]
name = sgd
momentum = 0.9
lr = 0.02
weight_decay = 5e-4
[schedule]
name = cosine
warmup = 0.3
[run]
log_every = 1
"""
FIRST = 5


def run(args, folder, arm):
    out = f"{folder}/{arm}"
    packing = ["--error", "0"] if arm == "exact" else ["--set", "error.pack=all"]
    result = json.loads(subprocess.run(
        [args.stint, "train", f"{folder}/net.ini", "--data", f"{folder}/data", "--set",
         f"model.name={args.net}", "--steps", str(args.steps), "-j", str(args.threads),
         "--out", out, "--force", "--json", "--quiet", *packing],
        check=True, stdout=subprocess.PIPE, text=True).stdout)
    with open(f"{out}/log.jsonl") as f:
        log = [json.loads(line) for line in f]
    busy = {e["step"] + late for e in log if e["event"] in ("bounds", "growth") for late in (0, 1)}
    seconds = [128 / e["images_per_s"] for e in log
               if e["event"] == "step" and e["step"] >= FIRST and e["step"] not in busy]
    if not seconds:
        raise SystemExit(f"all of {args.steps} steps choose bounds or come before the {FIRST}th; 16 will do")
    median = statistics.median(seconds)
    print(f"{args.net} {arm:6} {median:.3f} s a step (median of {len(seconds)}, least "
          f"{min(seconds):.3f}), peak {result['peak_rss_bytes'] / 2**20:.0f} MiB", flush=True)
    return median


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("stint")
    parser.add_argument("data")
    parser.add_argument("net")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/data")  # without the test images, whose evaluation takes long
        os.symlink(os.path.realpath(f"{args.data}/train.tar"), f"{folder}/data/train.tar")
        with open(f"{folder}/net.ini", "w") as f:
            f.write(RECIPE)
        ratios = []
        for _ in range(args.rounds):
            exact = run(args, folder, "exact")
            ratios.append(run(args, folder, "packed") / exact)
    print(f"{args.net}: packed takes " + ", ".join(f"{r:.2f}" for r in ratios) + " times as long")


main()
