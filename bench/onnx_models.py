#!/usr/bin/env python3
"""ONNX files through Stint and onnxruntime: do they agree, in what time and memory?

usage: onnx_models.py STINT FILE.onnx=NAME:1x3x224x224[+NAME:SHAPE...] ... [--rounds N]

Inputs are drawn: normal numbers, or whole numbers below 100. Prints a line a file: largest
difference over the largest output; time of a warm run, in turns of five each (the best of
N turns, 2 threads or --threads, `stint bench step` beside the session) and the quotient, above 1 where
Stint is faster; peak memory of `stint run`, its plan, and that of onnxruntime, which opens
and runs the network in a process of its own. What that process had taken before it knew of
onnxruntime (Python, NumPy, the inputs) is subtracted; nothing is from Stint's. The last lines
have the geometric means of the quotients. Exit code 1 where a difference is above 1e-4.
--rounds 0 measures memory alone.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime


# In a process of its own: peak resident bytes before onnxruntime and after a run.
PEAK = """
import sys
import numpy as np
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
feed = dict(np.load(sys.argv[2]))
before = peak()
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[3])
onnxruntime.InferenceSession(sys.argv[1], options).run(None, feed)
print(before, peak())
"""


def peak_of_peer(path, feed, work, threads):
    file = os.path.join(work, "feed.npz")
    np.savez(file, **feed)
    done = subprocess.run([sys.executable, "-c", PEAK, path, file, str(threads)], check=True,
                          capture_output=True, text=True)
    before, after = map(int, done.stdout.split())
    return after - before


def mean(quotients):
    return np.exp(np.mean(np.log(quotients)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stint")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    worst, quotients, memory, plans = 0.0, [], [], []
    random = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as work:
        for model in args.models:
            path, _, inputs = model.partition("=")
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = args.threads
            session = onnxruntime.InferenceSession(path, options)
            kinds = {i.name: i.type for i in session.get_inputs()}
            feed, shapes, flags = {}, [], []
            for i, part in enumerate(inputs.split("+")):
                name, _, shape = part.rpartition(":")
                dims = [int(d) for d in shape.split("x")]
                feed[name] = (random.normal(size=dims).astype(np.float32) if "float" in kinds[name]
                              else random.integers(0, 100, dims).astype(kinds[name][7:-1]))
                file = os.path.join(work, f"{i}.npy")
                np.save(file, feed[name])
                shapes.append(f"--shape={name}={shape}")
                flags.append(f"--input={name}={file}")
            out = os.path.join(work, "m.st")
            done = subprocess.run([args.stint, "import", "onnx", path, "--out", out, *shapes],
                                  capture_output=True, text=True)
            if done.returncode:
                print(f"{os.path.basename(path):36} {done.stderr.strip()[:900]}")
                worst = 1.0
                continue
            theirs, ours = [], []
            want = session.run(None, feed)
            threads = f"-j{args.threads}"
            done = subprocess.run([args.stint, "run", out, *flags, "--out",
                                   os.path.join(work, "o.npz"), threads, "--json"],
                                  capture_output=True, text=True)
            if done.returncode:
                print(f"{os.path.basename(path):36} {done.stderr.strip()[:600]}")
                worst = 1.0
                continue
            said = json.loads(done.stdout)
            for _ in range(args.rounds):
                for _ in range(5):
                    begin = time.perf_counter()
                    session.run(None, feed)
                    theirs.append(time.perf_counter() - begin)
                done = subprocess.run([args.stint, "bench", "step", out, "--runs", "5", threads,
                                       "--json"], capture_output=True, text=True)
                ours.append(json.loads(done.stdout)["best_s"])
            if args.rounds:
                quotients.append(min(theirs) / min(ours))
            peer = peak_of_peer(path, feed, work, args.threads)
            memory.append(said["peak_rss_bytes"] / peer)
            plans.append(said["planned_peak_bytes"] / said["peak_rss_bytes"])
            made = np.load(os.path.join(work, "o.npz"))
            off = 0.0
            for port, w in zip(session.get_outputs(), want):
                w = np.asarray(w, np.float64)
                off = max(off, np.abs(made[port.name] - w).max() / max(np.abs(w).max(), 1e-30))
            worst = max(worst, off)
            info = json.loads(subprocess.run([args.stint, "info", out, "--json"], capture_output=True,
                                             text=True).stdout)
            speed = (f"{min(ours) * 1e3:8.2f} ms, onnxruntime {min(theirs) * 1e3:8.2f} ms, "
                     f"{quotients[-1]:4.2f}x  " if args.rounds else "")
            print(f"{os.path.basename(path):36} off by {off:.1e}  {speed}peak "
                  f"{said['peak_rss_bytes'] / 2**20:6.1f} MiB, planned "
                  f"{said['planned_peak_bytes'] / 2**20:6.1f} MiB, onnxruntime "
                  f"{peer / 2**20:6.1f} MiB, {memory[-1]:4.2f}x  transposes "
                  f"{info['transposes']}", flush=True)
    if quotients:
        print(f"speed: geometric mean {mean(quotients):.2f}x of {len(quotients)}")
    if memory:
        print(f"peak memory: geometric mean {mean(memory):.2f}x of {len(memory)}; planned "
              f"{min(plans):.3f} to {max(plans):.3f} of measured")
    return 1 if worst > 1e-4 else 0


if __name__ == "__main__":
    sys.exit(main())
