#!/usr/bin/env python3
"""A SIREN fitted to a photograph, and to a sound if one is given, from the same first weights as PyTorch:
PSNR, time and peak memory of both, all points in every step.

    bench/field_fit.py STINT PICTURE [--sound WORD.wav] [--size 256] [--steps 500] [--width 256] [--depth 4] [--threads 2]

Wanted: PSNR within 0.3 dB, 0.8 of the time, a fifth of the peak. Each runs in a process of its own.
Wants numpy, torch and PIL; run it by the Python of the PyTorch that is meant."""
import argparse
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
import wave

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("stint")
parser.add_argument("picture")
parser.add_argument("--sound")
parser.add_argument("--size", type=int, default=256)
parser.add_argument("--steps", type=int, default=500)
parser.add_argument("--width", type=int, default=256)
parser.add_argument("--depth", type=int, default=4)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--torch", help=argparse.SUPPRESS)
args = parser.parse_args()


def load(path):
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + length])
    return {k: np.frombuffer(data, "<f4", int(np.prod(v["shape"])), 8 + length + v["data_offsets"][0])
            .reshape(v["shape"]).copy() for k, v in head.items()}


def torch_fit(job):
    """The peer: prints its PSNR, seconds and peak."""
    import torch
    torch.set_num_threads(args.threads)
    tensors = {k: torch.from_numpy(v).requires_grad_() for k, v in load(job["weights"]).items()}
    x, y = torch.from_numpy(np.load(job["points"])), torch.from_numpy(np.load(job["values"]))
    count = len(tensors) // 2

    def net(v):
        for k in range(count):
            v = v @ tensors[f"net.{k}.weight"].T + tensors[f"net.{k}.bias"]
            if k < count - 1:
                v = torch.sin((job["omega"] if k == 0 else 30) * v)
        return v

    rule = torch.optim.Adam(tensors.values(), lr=1e-4)
    start = time.perf_counter()
    for _ in range(args.steps):
        loss = ((net(x) - y) ** 2).mean()
        rule.zero_grad()
        loss.backward()
        rule.step()
    seconds = time.perf_counter() - start
    with torch.no_grad():
        psnr = 10 * np.log10(4 / ((net(x) - y) ** 2).mean().item())
    print(json.dumps(dict(psnr=psnr, seconds=seconds, peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)))


if args.torch:
    torch_fit(json.loads(args.torch))
    sys.exit()
stint, picture = os.path.abspath(args.stint), os.path.abspath(args.picture)
sound = os.path.abspath(args.sound) if args.sound else None
script = os.path.abspath(__file__)
os.chdir(tempfile.mkdtemp())
missed = False


def first_weights(path, inputs, outputs):
    rng = np.random.default_rng(3)
    sizes, head, body = [inputs] + [args.width] * args.depth + [outputs], {}, b""
    for k, (a, b) in enumerate(zip(sizes, sizes[1:])):
        bound = 1 / a if k == 0 else np.sqrt(6 / a) / 30
        for name, value in (("weight", rng.uniform(-bound, bound, (b, a))),
                            ("bias", rng.uniform(-1, 1, b) / np.sqrt(a))):
            data = value.astype("<f4").tobytes()
            head[f"net.{k}.{name}"] = {"dtype": "F32", "shape": list(value.shape),
                                       "data_offsets": [len(body), len(body) + len(data)]}
            body += data
    text = json.dumps(head).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)


def compare(what, data, points, values, omega):
    global missed
    inputs, outputs, count = points.shape[1], values.shape[1], len(points)
    first_weights("first.safetensors", inputs, outputs)
    names = ",".join("xyzt"[:inputs])
    subprocess.run([stint, "import", "field", "first.safetensors", "--omega", "30", "--coordinates", names,
                    "--out", "first.model"], check=True, stdout=subprocess.DEVNULL)
    shards = next(s for s in (16, 15, 12, 10, 8, 6, 5, 4, 3, 2, 1) if count % s == 0)
    start = time.perf_counter()
    done = subprocess.run([stint, "train", "fit.ini", "--data", data, "--start", "first.model", "--out", what, "--json",
                           "-q", "-j", str(args.threads)] + sum((["--set", s] for s in (
                               "model.name=siren", f"model.width={args.width}", f"model.depth={args.depth}",
                               f"model.omega={omega}", f"field.coordinates={names}", f"train.batch={count}",
                               f"train.shards={shards}", f"train.epochs={args.steps}",
                               f"train.eval_every={args.steps}", f"data.size={args.size}", "optimizer.name=adam",
                               "optimizer.lr=1e-4")), []), capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(done.stderr)
    ours = json.loads(done.stdout.strip().splitlines()[-1])
    np.save("points.npy", points.astype("f4"))
    np.save("values.npy", values.astype("f4"))
    job = dict(weights="first.safetensors", points="points.npy", values="values.npy", omega=omega)
    peer = json.loads(subprocess.run([sys.executable, script, stint, picture, "--steps", str(args.steps), "--threads",
                                      str(args.threads), "--torch", json.dumps(job)], capture_output=True, text=True,
                                     check=True).stdout)
    print(f"{what}: PSNR {ours['psnr']:.2f} dB beside PyTorch's {peer['psnr']:.2f} (wanted within 0.3); "
          f"{seconds:.1f} s beside {peer['seconds']:.1f} ({seconds / peer['seconds']:.2f} x, wanted 0.8); peak "
          f"{ours['peak_rss_bytes'] / 2**20:.0f} MiB beside {peer['peak'] / 2**20:.0f} "
          f"({ours['peak_rss_bytes'] / peer['peak']:.2f} x, wanted 0.2)", flush=True)
    missed = missed or ours["psnr"] < peer["psnr"] - 0.3


open("fit.ini", "w").write("[model]\nname = siren\n")
from PIL import Image
side = (np.arange(args.size) + 0.5) / args.size * 2 - 1
shown = Image.open(picture).convert("RGB").resize((args.size, args.size), Image.BILINEAR)
shown.save("shown.png")
y, x = np.meshgrid(side, side, indexing="ij")
compare("photograph", "shown.png", np.stack([x.ravel(), y.ravel()], 1),
        np.asarray(shown, float).reshape(-1, 3) / 127.5 - 1, 30)
if sound:
    with wave.open(sound) as w:
        raw = np.frombuffer(w.readframes(w.getnframes()), "<i2").reshape(-1, w.getnchannels()) / 32768
    n = len(raw)
    compare("sound", sound, ((np.arange(n) + 0.5) / n * 2 - 1)[:, None], raw, 3000)
sys.exit(int(missed))
