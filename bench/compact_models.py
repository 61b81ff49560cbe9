#!/usr/bin/env python3
"""Compact files beside their entropy, and networks from which filters are cut out.

    bench/compact_models.py STINT MODEL [--turns 3]

MODEL is a vgg11 or vgg13 that `stint train` left. Of its weights three compact files are made:
a tenth of the single weights in float32; the same as integers of 8 bits; kernels of four taps
in eight shapes, two thirds of them removed, in float32. Each is held against the entropy of what
it stores: of which weights, kernels and shapes are kept at their shares in each tensor, of each
tensor's integers at their frequencies, and 32 bits for a float. Then every other filter is
removed, with its normalisation: the share of multiply-adds that is saved beside the share of time
(batch 1 and 32, one thread, medians over turns). Wants NumPy; takes about a minute."""
import argparse
import json
import os
import subprocess
import tempfile

import numpy as np

from shrink_vgg13 import SHAPES, latency, read, write


def entropy(counts):
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log2(p)).sum() * counts.sum())


def is_large(x):
    return x.ndim > 1


def singles(tensors, rng, bits):
    """One weight in ten; bits of it all."""
    total = 0
    for x in tensors.values():
        if not is_large(x):
            total += 32 * x.size
            continue
        x[rng.random(x.shape) >= 0.1] = 0
        if bits == 8:
            scale = np.abs(x).reshape(-1, x.shape[-1]).max(0) / np.float32(127)
            scale[scale == 0] = 1
            level = np.rint(x / scale)
            x[:] = level.astype("f4") * scale.astype("f4")
            x[x == 0] = 0  # (no -0)
            total += 32 * x.shape[-1] + entropy(
                np.unique(level[level != 0], return_counts=True)[1])
        else:
            total += 32 * np.count_nonzero(x)
        kept = np.count_nonzero(x)
        total += entropy(np.array([kept, x.size - kept]))
    return total


def patterns(tensors, rng):
    total = 0
    for x in tensors.values():
        if x.ndim != 4 or x.shape[2] < 16:
            total += 32 * x.size
            continue
        kernels = x.shape[2] * x.shape[3]
        shape = rng.choice(SHAPES, kernels)
        shape[rng.random(kernels) < 2 / 3] = 0
        x *= np.array([[s >> t & 1 for s in shape] for t in range(9)], "f4").reshape(x.shape)
        x[x == 0] = 0
        total += entropy(np.unique(shape, return_counts=True)[1]) + 32 * np.count_nonzero(x)
    return total


def halve(tensors):
    """Every other filter nothing; multiply-adds by layer are in proportion to live weights."""
    for name, x in tensors.items():
        if x.ndim == 4 or ".bn." in name:
            x[..., 1::2] = 0


def products(tensors, halved):
    """Multiply-adds of the network, of all or of every other channel."""
    total, side = 0, 32
    for name, x in tensors.items():
        if x.ndim == 4:
            side = 32 >> int(name[5]) - 1  # stageN
            first = x.shape[2] <= 4
            total += x.size * side * side / ((2 if first else 4) if halved else 1)
        elif x.ndim == 2:
            total += x.size / (2 if halved else 1)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("stint")
    parser.add_argument("model")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    model = args.model
    if os.path.isdir(model):
        model = os.path.join(model, "model.safetensors")
    makers = {"1 in 10, float32": lambda t, r: singles(t, r, 32),
              "1 in 10, 8 bits": lambda t, r: singles(t, r, 8),
              "patterns, float32": patterns}
    with tempfile.TemporaryDirectory() as folder:
        dense, compact = os.path.join(folder, "d"), os.path.join(folder, "c")
        for name, maker in makers.items():
            meta, tensors = read(model)
            least = maker(tensors, np.random.default_rng(1)) / 8
            write(dense, meta, tensors)
            j = json.loads(subprocess.check_output(
                [args.stint, "export", "compact", dense, "--out", compact, "--json"]))
            print(f"{name:18} {j['bytes']:9} bytes, entropy {least:11.0f}: "
                  f"{j['bytes'] / least:.4f}; with the head {j['head_bytes']} bytes")
        meta, tensors = read(model)
        halve(tensors)
        write(compact, *read(model))
        write(dense, meta, tensors)
        thin = os.path.join(folder, "t")
        subprocess.check_call([args.stint, "export", "compact", dense, "--out", thin, "-q"])
        saved = 1 - products(tensors, True) / products(tensors, False)
        for batch in (1, 32):
            ratio = np.median([latency(args.stint, [compact, thin], batch, 1)["ratio"]
                               for _ in range(args.turns)])
            print(f"half of the filters, batch {batch}: {saved:.3f} of the products saved, "
                  f"{1 - ratio:.3f} of the time: {(1 - ratio) / saved:.3f}")


if __name__ == "__main__":
    main()
