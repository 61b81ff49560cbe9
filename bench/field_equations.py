#!/usr/bin/env python3
"""Equations with known solutions: the recipes and two that no recipe has, the error of each, and a step's
time beside PyTorch's (the same network, points and loss by nested autograd), in turns.

    bench/field_equations.py STINT [--steps 6000] [--torch-steps 30] [--by reverse|jets|auto] [--only poisson,helmholtz,wave,beam,burgers]

beam: u_xxxx = f, fourth order in one coordinate. burgers: u_t + u u_x = 0.05 u_xx with the solution that
travels. Wanted: relative L2 error 1e-3, 1e-2, 1e-2 for the three recipes. Wants torch."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("stint")
parser.add_argument("--steps", type=int, default=6000)
parser.add_argument("--torch-steps", type=int, default=30)
parser.add_argument("--by", default="reverse")
parser.add_argument("--only", default="poisson,helmholtz,wave,beam,burgers")
args = parser.parse_args()
stint = os.path.abspath(args.stint)
recipes = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "recipes")
work = tempfile.mkdtemp()
COMMON = """[model]
name = field
activation = tanh
width = 48
depth = 3
[train]
steps = 6000
epochs = 60
batch = 512
shards = 2
eval_every = 10
[optimizer]
name = adam
lr = 3e-3
[schedule]
name = cosine
[field]
"""
OWN = {
    "beam": "coordinates = x\noutputs = u\ndomain = 0:1\ninside = (u_xxxx - pi^4*sin(pi*x))/50\n"
            "border = 10*u, u_xx\nborder_weight = 10\nexact = sin(pi*x)\n",
    "burgers": "coordinates = x,t\noutputs = u\ndomain = -1:1,0:1\ninside = u_t + u*u_x - 0.05*u_xx\n"
               "border = u - 0.5*(1 - tanh((x - 0.5*t)/0.2))\nstart = u - 0.5*(1 - tanh(x/0.2))\n"
               "border_weight = 10\nstart_weight = 10\nexact = 0.5*(1 - tanh((x - 0.5*t)/0.2))\n",
}
WANTED = {"poisson": 1e-3, "helmholtz": 1e-2, "wave": 1e-2, "beam": 1e-2, "burgers": 1e-2}
missed = False


class Sine(torch.nn.Module):
    def forward(self, x):
        return torch.sin(x)


def torch_step(name, width=64, depth=3, points=1024, others=512):
    """Seconds of a step of the usual code: values, nested derivatives, loss, backward, Adam."""
    sizes, parts = [2] + [width] * depth + [1], []
    for a, b in zip(sizes, sizes[1:]):
        parts += [torch.nn.Linear(a, b), Sine() if name == "poisson" else torch.nn.Tanh()]
    net = torch.nn.Sequential(*parts[:-1])
    rule = torch.optim.Adam(net.parameters(), lr=1e-3)

    def derive(y, x):
        return torch.autograd.grad(y.sum(), x, create_graph=True)[0]

    def step():
        x = (torch.rand(points, 2) * 2 - 1).requires_grad_()
        u = net(x)
        g = derive(u, x)
        first, second = (derive(g[:, d], x)[:, d] for d in range(2))
        if name == "wave":
            inside = second - first
        else:
            wave = torch.sin(torch.pi * x[:, 0]) * torch.sin(torch.pi * x[:, 1])
            inside = first + second + (9 * u[:, 0] if name == "helmholtz" else 0) + 19.7 * wave
        loss = (inside ** 2).mean() + 500 * (net(torch.rand(others, 2)) ** 2).mean()
        if name == "wave":
            x = torch.rand(others, 2).requires_grad_()
            u = net(x)
            start = (u[:, 0] - torch.sin(torch.pi * x[:, 0])) ** 2 + derive(u, x)[:, 1] ** 2
            loss = loss + 500 * start.mean()
        rule.zero_grad()
        loss.backward()
        rule.step()

    step()
    start = time.perf_counter()
    for _ in range(args.torch_steps):
        step()
    return (time.perf_counter() - start) / args.torch_steps


for name in args.only.split(","):
    path = f"{recipes}/field-{name}.ini"
    if name in OWN:
        path = f"{work}/{name}.ini"
        open(path, "w").write(COMMON + OWN[name])
    start = time.perf_counter()
    done = subprocess.run([stint, "train", path, "--out", f"{work}/{name}", "--set", f"train.steps={args.steps}", "--set", f"field.by={args.by}",
                           "--json", "-q"], capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    error = json.loads(done.stdout)["relative_l2"]
    line = f"{name:10s} relative L2 {error:.2e} (wanted {WANTED[name]:.0e})   {1e3 * seconds / args.steps:7.2f} ms a step"
    if name not in OWN:
        peer = torch_step(name)
        line += f"   PyTorch {1e3 * peer:7.2f} ms ({seconds / args.steps / peer:.2f} x; wanted 0.33)"
    print(line, flush=True)
    missed = missed or error > WANTED[name]
sys.exit(int(missed))
