#!/usr/bin/env python3
"""Gradients of weights through losses with derivatives: one step of plain gradient descent by jets and by
reverse over reverse, beside PyTorch's autograd in double precision from the same weights and points.

    bench/field_gradients.py STINT

Prints, for each network and loss, the relative L2 distance of the gradient of all weights from PyTorch's;
wanted: 1e-5 beside reverse, and 1e-4 beside PyTorch (float32 beside float64). Status 1 where one misses.
Wants numpy and torch."""
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch

stint = os.path.abspath(sys.argv[1])
os.chdir(tempfile.mkdtemp())
POINTS = 96
NETS = {"sin": (lambda x: torch.sin(x), 6.0), "tanh": (torch.tanh, 1.0), "sigmoid": (torch.sigmoid, 1.0),
        "softplus": (torch.nn.functional.softplus, 1.0), "silu": (torch.nn.functional.silu, 1.0),
        "gelu": (lambda x: torch.nn.functional.gelu(x, approximate="tanh")
                 if "approximate" in (torch.nn.functional.gelu.__doc__ or "") else torch.nn.functional.gelu(x), 1.0)}
LOSSES = {  # expression of [field] data, and the same of u, d(u, "xy") and x, y
    "order 1": ("u_x - y, u_y", lambda u, d, x, y: [d("x") - y, d("y")]),
    "Laplacian": ("u_xx + u_yy + u^2 - x", lambda u, d, x, y: [d("xx") + d("yy") + u ** 2 - x]),
    "wave": ("u_xx - u_yy + u*u_xy", lambda u, d, x, y: [d("xx") - d("yy") + u * d("xy")]),
    "order 3": ("u_xxx + u_xyy - u", lambda u, d, x, y: [d("xxx") + d("xyy") - u]),
    "order 4": ("u_xxxx - x, u_yy", lambda u, d, x, y: [d("xxxx") - x, d("yy")]),
}
RATE = 100.0  # so large that the step, not the weight, is what float32 rounds


def write(path, tensors):
    head, body = {}, b""
    for key, value in tensors.items():
        data = np.ascontiguousarray(value, "<f4").tobytes()
        head[key] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(head).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)


def read(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + n])
    return {k: np.frombuffer(raw[8 + n:][v["data_offsets"][0]:v["data_offsets"][1]], "<f4").reshape(v["shape"])
            for k, v in head.items() if k.startswith("net.")}


def call(*words):
    done = subprocess.run([stint, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")


def step(way, expression, activation, omega):
    """The gradient that a step of plain gradient descent took, as one vector by layers."""
    with open("step.ini", "w") as f:
        f.write(f"[model]\nname = field\nactivation = {activation}\nwidth = 24\ndepth = 2\nomega = {omega}\n"
                f"omega_hidden = {omega}\n[field]\noutputs = u\ndata = {expression}\nby = {way}\n"
                f"[train]\nsteps = 1\nepochs = 1\nbatch = {POINTS}\nshards = 1\neval_every = 0\n"
                f"[optimizer]\nname = sgd\nlr = {RATE}\nmomentum = 0\nweight_decay = 0\n[schedule]\nname = constant\n")
    call("train", "step.ini", "--data", "points", "--start", "start.model", "--out", "run", "--force", "-q")
    before, after = read("start.model"), read("run/model.safetensors")
    return {k: (before[k].astype(float) - after[k]) / RATE for k in sorted(before)}


def autograd(tensors, points, function, omega, terms):
    weights = {k: torch.tensor(v.astype(float), requires_grad=True) for k, v in tensors.items()}
    p = torch.tensor(points.astype(float), requires_grad=True)
    h, layers = p, len(weights) // 2
    for k in range(layers):
        h = h @ weights[f"net.{k}.weight"] + weights[f"net.{k}.bias"]
        h = function(omega * h) if k < layers - 1 else h
    u = h[:, 0]

    def d(names):
        v = u
        for name in names:
            v = torch.autograd.grad(v.sum(), p, create_graph=True)[0][:, "xy".index(name)]
        return v
    loss = sum((e ** 2).mean() for e in terms(u, d, p[:, 0], p[:, 1]))
    loss.backward()
    return {k: np.zeros(w.shape) if w.grad is None else w.grad.numpy() for k, w in weights.items()}


def distance(a, b):
    a, b = (np.concatenate([x[k].ravel() for k in sorted(x)]) for x in (a, b))
    return np.linalg.norm(a - b) / np.linalg.norm(b)


rng = np.random.default_rng(3)
os.makedirs("points")
points = rng.uniform(-1, 1, (POINTS, 2)).astype("f4")
np.save("points/points.npy", points)
np.save("points/values.npy", np.zeros((POINTS, 1), "f4"))
missed = False
for activation, (function, omega) in NETS.items():
    sizes = [2, 24, 24, 1]
    tensors = {}
    for k, (a, b) in enumerate(zip(sizes, sizes[1:])):
        tensors[f"net.{k}.weight"] = (rng.uniform(-1, 1, (b, a)) / np.sqrt(a)).astype("f4")
        tensors[f"net.{k}.bias"] = rng.uniform(-0.5, 0.5, b).astype("f4")
    write("start.safetensors", tensors)
    call("import", "field", "start.safetensors", "--omega", omega, "--activation", activation, "--out", "start.model",
         "--outputs", "u")
    for name, (expression, terms) in LOSSES.items():
        jets, reverse = (step(way, expression, activation, omega) for way in ("jets", "reverse"))
        peer = autograd(read("start.model"), points, function, omega, terms)
        far = distance(jets, reverse), distance(jets, peer), distance(reverse, peer)
        bad = far[0] > 1e-5 or far[1] > 1e-4
        missed = missed or bad
        print(f"{activation:9s} {name:10s} jets beside reverse {far[0]:.1e}; beside PyTorch jets {far[1]:.1e}, "
              f"reverse {far[2]:.1e}{'   MISSED' if bad else ''}", flush=True)
sys.exit(int(missed))
