#!/usr/bin/env python3
"""VGG-13 for 32 x 32 images with kernels and patterns at the shares of ClickTrain's 9x list:
the fast form beside the dense network and, where they are there, PyTorch's and oneDNN's.

    bench/shrink_vgg13.py STINT MODEL [--onednn build/release/bench/vgg13_bench]
                          [--turns 3] [--layers]

MODEL is a vgg13 of width 64 that `stint train` left (one step is enough: times do not depend on
what was learnt). Kernels are removed at random and the rest keep one of eight shapes of four
taps. Prints the medians over turns of milliseconds at batch 32 on one thread and at batch 1 on
two; --layers adds the layers' times of the last turn. Wants NumPy; takes about a minute."""
import argparse
import json
import os
import struct
import subprocess
import tempfile
import time

import numpy as np

SHARES = [0, 40, 50, 55, 60, 65, 70, 75, 75, 85]  # percent of kernels removed, by layer
SHAPES = [0b110110, 0b11011, 0b110110000, 0b11011000, 0b111001000, 0b100111, 0b1111,
          0b111100000]


def read(path):
    raw = open(path, "rb").read()
    length = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + length])
    meta = head.pop("__metadata__")
    meta.pop("weights_sha256", None)
    tensors = {}
    for name in sorted(head, key=lambda n: head[n]["data_offsets"][0]):
        begin, end = head[name]["data_offsets"]
        data = np.frombuffer(raw, "<f4", (end - begin) // 4, 8 + length + begin)
        tensors[name] = data.reshape(head[name]["shape"]).copy()
    return meta, tensors


def write(path, meta, tensors):
    head, offset = {"__metadata__": meta}, 0
    for name, x in tensors.items():
        head[name] = {"dtype": "F32", "shape": list(x.shape),
                      "data_offsets": [offset, offset + x.nbytes]}
        offset += x.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for x in tensors.values():
            out.write(x.tobytes())


def prune(tensors):
    rng = np.random.default_rng(1)
    convolutions = [n for n, x in tensors.items() if x.ndim == 4]
    for layer, name in enumerate(convolutions[1:], 1):
        w = tensors[name]
        kernels = w.shape[2] * w.shape[3]
        shape = rng.choice(SHAPES, kernels)
        mask = np.array([[s >> t & 1 for s in shape] for t in range(9)], "f4")
        gone = -(-SHARES[layer] * kernels // 100)
        mask[:, rng.permutation(kernels)[:gone]] = 0
        w *= mask.reshape(w.shape)
        w[w == 0] = 0
    kept = sum(np.count_nonzero(tensors[n]) for n in convolutions)
    return sum(tensors[n].size for n in convolutions) / kept


def latency(stint, paths, batch, threads):
    out = subprocess.check_output([stint, "bench", "latency", *paths, "--json", "--rounds",
                                   "9", "--batch", str(batch), "-j", str(threads)])
    return json.loads(out)


class PyTorch:
    def __init__(self):
        import torch
        self.torch = torch
        layers, channels = [], 3
        for width in (64, 128, 256, 512, 512):
            for _ in range(2):
                layers += [torch.nn.Conv2d(channels, width, 3, padding=1, bias=False),
                           torch.nn.BatchNorm2d(width), torch.nn.ReLU(True)]
                channels = width
            layers.append(torch.nn.MaxPool2d(2))
        self.net = torch.nn.Sequential(*layers, torch.nn.Flatten(),
                                       torch.nn.Linear(512, 10)).eval()

    def ms(self, batch, threads):
        self.torch.set_num_threads(threads)
        x, times = self.torch.randn(batch, 3, 32, 32), []
        with self.torch.no_grad():
            for _ in range(9):
                start = time.perf_counter()
                self.net(x)
                times.append(time.perf_counter() - start)
        return 1e3 * float(np.median(times[2:]))


class OneDnn:
    def __init__(self, program):
        self.program = program

    def ms(self, batch, threads):
        return float(subprocess.check_output([self.program, str(batch), str(threads), "7"],
                                             stderr=subprocess.DEVNULL))


def peers(args):
    found = {}
    try:
        found["PyTorch"] = PyTorch()
    except ImportError:
        pass
    if args.onednn:
        found["oneDNN"] = OneDnn(args.onednn)
    return found


def measure(args, others, paths, batch, threads):
    turns = {"dense": [], "fast": [], **{name: [] for name in others}}
    for _ in range(args.turns):
        j = latency(args.stint, paths, batch, threads)
        turns["dense"].append(j["models"][0]["ms"])
        turns["fast"].append(j["models"][1]["ms"])
        for name, peer in others.items():
            turns[name].append(peer.ms(batch, threads))
    ms = {name: float(np.median(t)) for name, t in turns.items()}
    print(f"batch {batch}, {threads} thread(s), {j['cpu']}, {j['isa']}")
    for name, t in ms.items():
        print(f"  {name:8} {t:8.2f} ms   {t / ms['fast']:5.2f} times the fast form's")
    for layer in j["models"][1]["layers"] if args.layers else []:
        print(f"    {layer['name']:24} {layer['form']:24} {layer['ms']:8.3f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("stint")
    parser.add_argument("model")
    parser.add_argument("--onednn", metavar="PROGRAM")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--layers", action="store_true")
    args = parser.parse_args()
    model, others = args.model, peers(args)
    if os.path.isdir(model):
        model = os.path.join(model, "model.safetensors")
    with tempfile.TemporaryDirectory() as folder:
        dense, compact = os.path.join(folder, "d"), os.path.join(folder, "c")
        meta, tensors = read(model)
        print(f"{prune(tensors):.2f}x fewer weights in convolutions")
        write(dense, meta, tensors)
        subprocess.check_call([args.stint, "export", "compact", dense, "--out", compact, "-q"])
        for batch, threads in ((32, 1), (1, 2)):
            measure(args, others, [dense, compact], batch, threads)


if __name__ == "__main__":
    main()
