#!/usr/bin/env python3
"""Packed activations: size, time, memory, and the error made against the error predicted.

    bench/comet_bench.py sigma  [--stint build/release/stint] [--data DIR] [--net resnet20] [--steps 20]
    bench/comet_bench.py memory [--stint ...] [--data DIR] [--net vgg16] [--batch 128] [--steps 12]

sigma: a run that measures every gradient's error beside predicting it (error.check), the
squares averaged over its steps; one line a gradient. memory: the same recipe with every
activation packed and with none, one after the other in one shard: bytes of the saved
tensors against the same as float32, time a step, planned and measured peak. Everything
is read from the log that the run writes."""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile


def run(args, out, steps, extra):
    os.makedirs(out, exist_ok=True)
    recipe = out + ".ini"
    with open(recipe, "w") as f:
        f.write(f"[model]\nname = {args.net}\nstem = small\n")
    command = [args.stint, "train", recipe, "--data", args.data, "--out", out, "--force",
               "--steps", str(steps), "--set", "train.eval_every=0",
               "--set", "run.checkpoint_every=1000000", "--set", "run.log_every=1",
               "--set", "optimizer.lr=0.05", "--batch", str(args.batch)]
    for key in extra:
        command += ["--set", key]
    done = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            text=True)
    log = os.path.join(out, "log.jsonl")
    error = done.stderr.read() if not args.stop_after else wait_for_step(done, log, steps)
    if done.wait() not in (0, 130, 143, -15):
        sys.exit(f"{' '.join(command)}\n{error}")
    with open(log) as f:
        return [json.loads(line) for line in f]


def wait_for_step(process, log, steps):
    """The last steps are what counts; the evaluation at the end is not waited for."""
    import time
    while process.poll() is None:
        time.sleep(0.2)
        if os.path.exists(log):
            with open(log) as f:
                if any(f'"step": {steps}' in line or f'"step":{steps}' in line
                       for line in f if '"event"' in line and '"step"' in line):
                    process.terminate()
                    return ""
    return process.stderr.read()


def rows_of(lines):
    return [line for line in lines if line["event"] == "bounds"]


def sigma(args, folder):
    lines = run(args, os.path.join(folder, "sigma"), args.steps,
                ["error.pack=all", "error.check=true", "error.every=1",
                 f"train.shards={args.shards}"])
    sums = {}
    for line in rows_of(lines)[1:]:
        # Several blocks have a part in the error of a gradient that reads a sum, which is
        # measured once.
        for row in line["rows"]:
            for g in row["gradients"]:
                s = sums.setdefault(g["param"], ["", 0.0, 0.0, 0.0, 0])
                s[1] += g["predicted"] ** 2
                s[3] = max(s[3], row["error_share"])
                if "measured" in g:
                    s[0] = row["layer"]
                    s[2] += g["measured"] ** 2
                    s[4] += 1
    print(f"{args.net}, batch {args.batch}, {args.steps} steps; deviations a weight")
    print(f"{'packed at':26} {'gradient of':34} {'predicted':>10} {'measured':>10} {'ratio':>6}")
    outside = 0
    for param, (layer, p, m, _, n) in sums.items():
        ratio = math.sqrt(m / p) if p > 0 else float("nan")
        outside += not 0.9 <= ratio <= 1.1
        print(f"{layer or 'input':26} {param:34} {math.sqrt(p / n):10.3e} "
              f"{math.sqrt(m / n):10.3e} {ratio:6.3f}")
    worst = max(s[3] for s in sums.values())
    print(f"{len(sums)} gradients, {outside} outside of 0.9..1.1; "
          f"largest error {worst:.4f} of the bound")


def figures(lines):
    steps = [line for line in lines if line["event"] == "step"]
    late = sorted(1.0 / line["images_per_s"] for line in steps[2:])
    return late[0], late[len(late) // 2]


def peak_of(lines, kind):
    ends = [line for line in lines if line["event"] == "end"]
    return ends[-1][kind] / 2**20 if ends else float("nan")


def memory(args, folder):
    shards = [f"train.shards={args.shards}"]
    packed = run(args, os.path.join(folder, "packed"), args.steps,
                 shards + ["error.pack=all", "error.every=1000000"] + args.set)
    plain = run(args, os.path.join(folder, "plain"), args.steps,
                shards + ["error.tau=0"] + args.set)
    rows = rows_of(packed)[-1]["rows"]
    raw = sum(row["plain_bytes"] for row in rows)
    held = sum(row["bytes"] for row in rows)
    blocks = sum(row["capacity"] for row in rows)
    bits = sum(row["bits_bytes"] for row in rows)
    print(f"{args.net}, batch {args.batch}, {args.shards} shard(s), {len(rows)} blocks, "
          f"{rows_of(packed)[-1]['step']} steps")
    print(f"saved as float32 {raw / 2**20:.1f} MiB, packed {held / 2**20:.2f} MiB "
          f"({raw / held:.1f} x), with sign bits {(held + bits) / 2**20:.2f} MiB "
          f"({raw / (held + bits):.1f} x), blocks reserved {blocks / 2**20:.2f} MiB "
          f"({raw / (blocks + bits):.1f} x with sign bits)")
    for name, at in (("least", 0), ("median", 1)):
        a, b = figures(packed)[at] * args.batch, figures(plain)[at] * args.batch
        print(f"step, {name}: packed {a:.3f} s, plain {b:.3f} s, {a / b:.3f} x")
    for name, lines in (("packed", packed), ("plain", plain)):
        print(f"peak {name}: planned {peak_of(lines, 'planned_peak_bytes'):.1f} MiB, "
              f"measured {peak_of(lines, 'peak_rss_bytes'):.1f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["sigma", "memory"])
    parser.add_argument("--stint", default="build/release/stint")
    parser.add_argument("--data", default="out/cifar10")
    parser.add_argument("--net", default="resnet20")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--stop-after", action="store_true",
                        help="do not wait for the evaluation (no measured peak then)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        {"sigma": sigma, "memory": memory}[args.what](args, folder)


if __name__ == "__main__":
    main()
