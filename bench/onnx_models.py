#!/usr/bin/env python3
"""ONNX files through Stint and onnxruntime: do they agree, in what time and memory?

usage: onnx_models.py STINT FILE.onnx=NAME:1x3x224x224[+NAME:SHAPE...] ... [--rounds N]

Inputs are drawn: normal numbers, or whole numbers below 100. Prints a line a file: largest
difference over the largest output, time of a run in turns (minimum of N, 2 threads), peak
memory against the plan. Exit code 1 where a difference is above 1e-4.
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stint")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    worst = 0.0
    random = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as work:
        for model in args.models:
            path, _, inputs = model.partition("=")
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 2
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
            for _ in range(args.rounds):
                begin = time.perf_counter()
                session.run(None, feed)
                theirs.append(time.perf_counter() - begin)
                done = subprocess.run([args.stint, "run", out, *flags, "--out", os.path.join(work, "o.npz"),
                                       "-j2", "--json"], capture_output=True, text=True)
                said = json.loads(done.stdout)
                if "seconds" not in said:
                    break
                ours.append(said["seconds"])
            if not ours:
                print(f"{os.path.basename(path):36} {done.stderr.strip()[:600]}")
                worst = 1.0
                continue
            made = np.load(os.path.join(work, "o.npz"))
            off = 0.0
            for port, w in zip(session.get_outputs(), want):
                w = np.asarray(w, np.float64)
                off = max(off, np.abs(made[port.name] - w).max() / max(np.abs(w).max(), 1e-30))
            worst = max(worst, off)
            info = json.loads(subprocess.run([args.stint, "info", out, "--json"], capture_output=True,
                                             text=True).stdout)
            print(f"{os.path.basename(path):36} off by {off:.1e}  {min(ours) * 1e3:8.2f} ms, onnxruntime "
                  f"{min(theirs) * 1e3:8.2f} ms  peak {said['peak_rss_bytes'] / 2**20:6.1f} MiB, planned "
                  f"{said['planned_peak_bytes'] / 2**20:6.1f} MiB  transposes {info['transposes']}")
    return 1 if worst > 1e-4 else 0


if __name__ == "__main__":
    sys.exit(main())
