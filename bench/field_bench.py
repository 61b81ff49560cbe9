#!/usr/bin/env python3
"""Values and all derivatives of a SIREN (2-256-256-256-256-3) at many points beside PyTorch and JAX, in
turns on the same machine.

    bench/field_bench.py STINT [--points 256] [--order 3] [--rounds 5] [--threads 1,2]

Prints for each number of threads: the best and the median time of `stint field eval` by jets and by
reverse (its own seconds: model and plan included, process start not), of ten forward passes of PyTorch,
of nested torch.autograd and of nested torch.func.jacrev, and of jax.jit of nested jacfwd where JAX is
there; then the arena of a thread and the peak for 4,096 and 4 million points. Wants numpy and torch."""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

parser = argparse.ArgumentParser()
parser.add_argument("stint")
parser.add_argument("--points", type=int, default=256)
parser.add_argument("--order", type=int, default=3)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--threads", default="1,2")
parser.add_argument("--many", type=int, default=1 << 22)
args = parser.parse_args()
stint = os.path.abspath(args.stint)
os.chdir(tempfile.mkdtemp())
rng = np.random.default_rng(1)
sizes = [2, 256, 256, 256, 256, 3]
layers = []
for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
    bound = 1 / a if i == 0 else np.sqrt(6 / a) / 30
    layers.append((rng.uniform(-bound, bound, (b, a)).astype("f4"), rng.uniform(-0.1, 0.1, b).astype("f4")))
head, body = {}, b""
for k, pair in enumerate(layers):
    for name, value in zip(("weight", "bias"), pair):
        data = value.tobytes()
        head[f"net.{k}.{name}"] = {"dtype": "F32", "shape": list(value.shape),
                                   "data_offsets": [len(body), len(body) + len(data)]}
        body += data
text = json.dumps(head).encode()
open("siren.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + body)
subprocess.run([stint, "import", "field", "siren.safetensors", "--out", "siren.model"], check=True, stdout=subprocess.DEVNULL)
points = rng.uniform(-1, 1, (args.points, 2)).astype("f4")
np.save("points.npy", points)
weights = [(torch.from_numpy(w), torch.from_numpy(b)) for w, b in layers]


def net(x):
    for k, (w, b) in enumerate(weights):
        x = x @ w.T + b
        x = torch.sin(30 * x) if k < len(weights) - 1 else x
    return x


def ours(way, threads, where=("--points", "points.npy")):
    done = subprocess.run([stint, "field", "eval", "siren.model", *where, "--order", str(args.order), "--list", "all",
                           "--by", way, "-j", str(threads), "--out", "out.npy", "--json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def autograd():
    x = torch.from_numpy(points).requires_grad_()
    y = net(x)
    level = [y[:, c] for c in range(3)]
    out = list(level)
    for _ in range(args.order):
        level = [g[:, d] for u in level for g in [torch.autograd.grad(u.sum(), x, create_graph=True)[0]] for d in (0, 1)]
        out += level
    return torch.stack(out, 1)


def functional():
    def single(x):
        return net(x[None])[0]
    f, out = single, []
    for _ in range(args.order):
        f = torch.func.jacrev(f)
        out.append(torch.func.vmap(f)(torch.from_numpy(points)))
    return out


rivals = {"10 forward passes": lambda: [net(torch.from_numpy(points)) for _ in range(10)],
          "torch.autograd": autograd}
if hasattr(torch, "func"):  # from version 2 on
    rivals["torch.func"] = functional
try:
    import jax
    import jax.numpy as jnp

    def jax_net(x):
        for k, (w, b) in enumerate(layers):
            x = w @ x + b
            x = jnp.sin(30 * x) if k < len(layers) - 1 else x
        return x

    functions = [jax_net]
    for _ in range(args.order):
        functions.append(jax.jacfwd(functions[-1]))
    compiled = jax.jit(jax.vmap(lambda x: [f(x) for f in functions]))
    jax.block_until_ready(compiled(points))
    rivals["jax (jit, nested jacfwd)"] = lambda: jax.block_until_ready(compiled(points))
except ImportError:
    print("no JAX here")

for threads in map(int, args.threads.split(",")):
    torch.set_num_threads(threads)
    seconds = {}
    for _ in range(args.rounds):
        for way in ("jets", "reverse"):
            seconds.setdefault(f"stint, {way}", []).append(ours(way, threads)["seconds"])
        for name, call in rivals.items():
            start = time.perf_counter()
            call()
            seconds.setdefault(name, []).append(time.perf_counter() - start)
    print(f"{args.points} points, order {args.order}, {threads} threads")
    best = min(seconds["stint, jets"])
    for name, taken in seconds.items():
        print(f"  {name:28s} best {1e3 * min(taken):9.2f} ms   median {1e3 * statistics.median(taken):9.2f} ms"
              f"   {min(taken) / best:6.2f} x jets")
got, want = np.load("out.npy"), autograd().detach().numpy()
print("  largest relative L2 error of a column beside autograd:",
      max(np.linalg.norm(got[:, c] - want[:, c]) / np.linalg.norm(want[:, c]) for c in range(want.shape[1])))
few = ours("auto", 2, ("--grid", "64x64"))
side = int(args.many ** 0.5)
many = ours("auto", 2, ("--grid", f"{side}x{side}"))
print(f"arena {few['arena_bytes'] / 2**20:.3f} MiB a thread; peak of {few['points']} points "
      f"{few['peak_rss_bytes'] / 2**20:.2f} MiB, of {many['points']} {many['peak_rss_bytes'] / 2**20:.2f} MiB "
      f"({many['peak_rss_bytes'] / few['peak_rss_bytes']:.4f} x)")
