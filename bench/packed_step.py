#!/usr/bin/env python3
"""What holding every activation packed costs a training step: exact training and training
with error.pack = all, in one shard of 128 images, a step of the one and a step of the
other in turns, so that both see the same minutes of a shared machine.

    packed_step.py STINT DATA NET [--other STINT]... [--steps N] [--threads N]

DATA is a folder with CIFAR-10's train.tar, NET vgg16, resnet18, ... with a stem for small
images, --other another build that trains packed in the same turns. All processes but one
are always halted; a step is timed from where its process goes on to the line that it
logs. Turns from the fifth step on count in which none ran a step again nor chose bounds,
which costs more and is rare later. Printed: the median step of each, the median and the
quarters of the ratios to the exact step (with --other also between the builds), and peak
resident memory. Run it on a machine that does nothing else.
"""
import argparse
import atexit
import json
import os
import signal
import statistics
import subprocess
import tempfile
import time

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


class Arm:
    """One training, halted but while `step` runs."""

    def __init__(self, args, folder, name, stint, options):
        self.name, self.log, self.read = name, f"{folder}/{name}/log.jsonl", 0
        self.json = open(f"{folder}/{name}.json", "w+")
        self.process = subprocess.Popen(
            [stint, "train", f"{folder}/net.ini", "--data", f"{folder}/data", "--set",
             f"model.name={args.net}", "--steps", str(args.steps), "-j", str(args.threads),
             "--out", f"{folder}/{name}", "--force", "--json", "--quiet", *options],
            stdout=self.json, text=True)
        atexit.register(self.process.kill)  # a halted one would stay for good
        self.step()

    def events(self):
        """What was logged since the last look, whole lines only."""
        if not os.path.exists(self.log):
            return []
        with open(self.log) as f:
            f.seek(self.read)
            text = f.read()
        text = text[: text.rfind("\n") + 1]
        self.read += len(text)
        return [json.loads(line) for line in text.splitlines()]

    def step(self):
        """Go on to the next step's line: seconds, and whether the step was like most."""
        plain = True
        self.process.send_signal(signal.SIGCONT)
        begin = time.monotonic()
        while self.process.poll() is None:
            for event in self.events():
                plain = plain and event["event"] not in ("bounds", "growth", "plan")
                if event["event"] == "step":
                    self.process.send_signal(signal.SIGSTOP)
                    return time.monotonic() - begin, plain
            time.sleep(0.001)
        raise SystemExit(f"the {self.name} training ended: exit code {self.process.returncode}")

    def finish(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.wait()
        self.json.seek(0)
        return json.load(self.json)["peak_rss_bytes"] / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stint")
    parser.add_argument("data")
    parser.add_argument("net")
    parser.add_argument("--other", action="append", default=[])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if args.steps < FIRST + 4:
        parser.error(f"--steps: {args.steps} leaves too few after the first {FIRST}")
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/data")
        os.symlink(os.path.abspath(f"{args.data}/train.tar"), f"{folder}/data/train.tar")
        with open(f"{folder}/net.ini", "w") as f:
            f.write(RECIPE)
        arms = [Arm(args, folder, "exact", args.stint, ["--error", "0"])]
        for i, stint in enumerate([args.stint] + args.other):
            arms.append(Arm(args, folder, f"packed{i}" if i else "packed", stint,
                            ["--set", "error.pack=all"]))
        turns = []
        for at in range(2, args.steps):
            times = [arm.step() for arm in arms]
            if at >= FIRST and all(plain for _, plain in times):
                turns.append([seconds for seconds, _ in times])
        if len(turns) < 3:
            raise SystemExit("packed_step: fewer than 3 turns without bounds chosen; "
                             "more --steps")
        for i in range(2, len(arms)):
            low, middle, high = statistics.quantiles([t[1] / t[i] for t in turns], n=4)
            print(f"{args.net} packed: {middle:.3f} times {arms[i].name} (quarters {low:.3f} "
                  f"and {high:.3f} of {len(turns)} turns)")
        for i, arm in enumerate(arms):
            low, middle, high = statistics.quantiles([t[i] / t[0] for t in turns], n=4)
            print(f"{args.net} {arm.name:7} {statistics.median(t[i] for t in turns):.3f} s a step, "
                  f"least {min(t[i] for t in turns):.3f}, peak {arm.finish():.0f} MiB, "
                  f"{middle:.3f} times the exact one (quarters {low:.3f} and {high:.3f} of "
                  f"{len(turns)} turns)")


main()
