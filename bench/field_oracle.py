#!/usr/bin/env python3
"""Every derivative that `stint field eval` gives beside PyTorch's autograd in double precision:
45 columns to order 3 at 256 points, 65 to order 4 at 512 (of autograd's 4,096 points keep more than
20 GB), by jets and by reverse, and other
activations, coordinates and orders.

    bench/field_oracle.py STINT [WORKDIR]

Prints the worst relative L2 error of a column in each row; status 1 where one is above 1e-4.
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
os.chdir(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
rng = np.random.default_rng(1)
ACTIVATIONS = {
    "sin": torch.sin, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": torch.relu,
    "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "softplus": torch.nn.functional.softplus, "silu": torch.nn.functional.silu,
}


def write(path, tensors):
    head, body = {}, b""
    for key, value in tensors.items():
        data = np.ascontiguousarray(value, "<f4").tobytes()
        head[key] = {"dtype": "F32", "shape": list(value.shape),
                     "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


def network(d, k, width, depth, activation, omega):
    sizes, tensors = [d] + [width] * depth + [k], {}
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        bound = 1 / a if i == 0 else (6 / a) ** 0.5 / omega
        if activation != "sin":
            bound = 1.5 / a ** 0.5
        tensors[f"net.{i}.weight"] = rng.uniform(-bound, bound, (b, a)).astype("<f4")
        tensors[f"net.{i}.bias"] = rng.uniform(-0.3, 0.3, b).astype("<f4")
    return tensors


def reference(tensors, points, activation, omega, order, scale, names):
    x = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    h, layers = x, len(tensors) // 2
    for i in range(layers):
        w, b = (torch.tensor(tensors[f"net.{i}.{part}"], dtype=torch.float64) for part in ("weight", "bias"))
        h = h @ w.T + b
        if i + 1 < layers:
            h = ACTIVATIONS[activation](omega * h)
    front = {name: h[:, o] for o, name in enumerate(names)}
    found = dict(front)
    for _ in range(order):
        new = {}
        for name, value in front.items():
            g, = torch.autograd.grad(value.sum(), x, create_graph=True) if value.requires_grad \
                else (torch.zeros_like(x),)
            for c, letter in enumerate("xyzt"[:points.shape[1]]):
                new[name + ("" if "_" in name else "_") + letter] = g[:, c] / scale
        found.update(new)
        front = new
    return found


def case(d, k, width, depth, activation, omega, order, points=256, columns="distinct", scale=1.0):
    tensors = network(d, k, width, depth, activation, omega)
    p = rng.uniform(-1, 1, (points, d)).astype("<f4")
    write("f.safetensors", tensors)
    np.save("p.npy", p)
    subprocess.run([stint, "import", "field", "f.safetensors", "--omega", str(omega), "--activation", activation,
                    "--out", "model", "-q"], check=True, stdout=subprocess.DEVNULL)
    names = {1: ["u"], 2: ["u", "v"], 3: ["r", "g", "b"]}[k]
    parts = []
    for at in range(0, points, 64):  # a few points keep little
        part = reference(tensors, p[at:at + 64], activation, omega, order, scale, names)
        parts.append({name: value.detach().numpy() for name, value in part.items()})
        del part
    want = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    worst = 0
    for way in ("reverse", "jets"):
        r = subprocess.run([stint, "field", "eval", "model", "--points", "p.npy", "--order", str(order), "--list",
                            columns, "--by", way, "--scale", str(scale), "--out", "o.npy", "--json", "-q"],
                           check=True, stdout=subprocess.PIPE)
        j, got = json.loads(r.stdout), np.load("o.npy")
        errors = []
        for c, name in enumerate(j["columns"]):
            w = want[name]
            errors.append(np.linalg.norm(got[:, c] - w) / max(np.linalg.norm(w), 1e-30))
        worst = max(worst, max(errors))
        print(f"{activation:9s} omega {omega:<3g} {d} coordinates, {k} outputs, {depth} x {width}, order {order}, "
              f"{len(errors):3d} columns, {points:5d} points, by {way:7s}: worst {max(errors):.1e}")
    return worst


rows = [
    case(2, 3, 256, 4, "sin", 30, 3, 256, "all", 189), case(2, 3, 256, 4, "sin", 30, 4, 512, "65", 189),
    case(2, 3, 64, 3, "sin", 1, 3), case(1, 1, 64, 3, "tanh", 1, 5), case(3, 2, 64, 3, "gelu", 1, 3),
    case(4, 1, 64, 3, "softplus", 2, 4), case(2, 1, 64, 2, "sigmoid", 1, 4), case(2, 1, 64, 2, "silu", 1, 4),
    case(2, 1, 64, 2, "relu", 1, 1),
]
sys.exit(int(max(rows) > 1e-4))
