#!/usr/bin/python3
"""Learning and compressing in turn by PyTorch, after Condensa's published description: the
peer of `stint shrink --scheme "prune(S)" --method lc`.

    shrink_lc_pytorch.py MODEL DATA --sparsity S --steps N --first N --batches N --batch N
                         --lr LR --lr-end LR --mu MU --mu-factor F [--hold-out 0.1] [--seed 1]

MODEL: full tensors of an mlp or a small vgg of Stint (`stint export dense`); DATA: a folder of
train.tar and test.tar with a folder of images a class. Prints JSON: test accuracy of the
compression with the least loss on held-out images, of the direct one, and seconds of
training."""
import argparse
import io
import json
import os
import struct
import tarfile
import time

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image


def read_model(path):
    raw = open(path, "rb").read()
    length = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + length])
    meta = head.pop("__metadata__")
    tensors = {}
    for name, t in head.items():
        begin, end = t["data_offsets"]
        if t["dtype"] == "F32":
            tensors[name] = np.frombuffer(raw[8 + length + begin:8 + length + end],
                                          np.float32).reshape(t["shape"]).copy()
    return tensors, meta


def read_tar(path, mode, mean, deviation):
    images, names = [], []
    with tarfile.open(path) as tar:
        for member in tar:
            if member.isfile():
                image = Image.open(io.BytesIO(tar.extractfile(member).read()))
                images.append(np.asarray(image.convert(mode), np.float32) / 255)
                names.append(os.path.basename(os.path.dirname(member.name)))
    classes = sorted(set(names))
    x = np.stack(images)
    x = x[..., None] if x.ndim == 3 else x
    x = (x - np.array(mean, np.float32)) / np.array(deviation, np.float32)
    return (torch.from_numpy(x.transpose(0, 3, 1, 2).copy()),
            torch.tensor([classes.index(n) for n in names]))


class Network(torch.nn.Module):
    """The layers of the file in their order; a pooling behind each stage of a vgg."""

    def __init__(self, tensors):
        super().__init__()
        self.names = [n for n in tensors if n.endswith(".weight")]
        self.value = torch.nn.ParameterDict()
        for name, x in tensors.items():
            x = torch.from_numpy(x.transpose(3, 2, 0, 1).copy() if x.ndim == 4 else x)
            if name.endswith((".mean", ".variance")):
                self.register_buffer(name.replace(".", "_"), x)
            else:
                self.value[name.replace(".", "_")] = torch.nn.Parameter(x)

    def weights(self):
        return [self.value[n.replace(".", "_")] for n in self.names]

    def forward(self, x):
        for i, name in enumerate(self.names):
            stem = name[:-7]
            key = stem.replace(".", "_")
            w = self.value[key + "_weight"]
            if w.dim() == 4:
                bn = key.rsplit("_", 1)[0] + "_bn"
                x = F.conv2d(x, w, padding=1)
                x = F.batch_norm(x, getattr(self, bn + "_mean"),
                                 getattr(self, bn + "_variance"), self.value[bn + "_scale"],
                                 self.value[bn + "_shift"], self.training, 0.1)
                x = F.relu(x)
                if self.names[i + 1].split(".")[0] != stem.split(".")[0]:
                    x = F.max_pool2d(x, 2)
                continue
            if x.dim() == 4:
                x = (x.mean((2, 3)) if w.shape[0] == x.shape[1]
                     else x.permute(0, 2, 3, 1).flatten(1))
            x = x @ w + self.value[key + "_bias"]
            if i + 1 < len(self.names):
                x = F.relu(x)
        return x


@torch.no_grad()
def judge(net, x, y):
    net.eval()
    out = torch.cat([net(part) for part in x.split(500)])
    net.train()
    return F.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


@torch.no_grad()
def project(targets, sparsity):
    flat = torch.cat([t.flatten() for t in targets]).abs()
    keep = int((1 - sparsity) * flat.numel() + 1e-9)
    limit = flat.topk(keep).values[-1]
    for t in targets:
        t[t.abs() < limit] = 0


def run(net, args, train, held, test):
    x, y = train
    weights = net.weights()
    theta = [w.detach().clone() for w in weights]
    multiplier = [torch.zeros_like(w) for w in weights]
    best, direct, mu, order, at = None, None, 0.0, None, 0
    generator = torch.Generator().manual_seed(args.seed)
    for step in range(args.steps):
        batches = 0 if step == 0 else args.first if step == 1 else args.batches
        optimizer = torch.optim.SGD(net.parameters(), args.lr, 0.9, nesterov=True)
        for i in range(batches):
            if order is None or at + args.batch > len(order):
                order, at = torch.randperm(len(y), generator=generator), 0
            part = order[at:at + args.batch]
            at += args.batch
            optimizer.zero_grad()
            F.cross_entropy(net(x[part]), y[part]).backward()
            for w, t, m in zip(weights, theta, multiplier):
                w.grad += mu * (w.detach() - t) - m
            optimizer.step()
            optimizer.param_groups[0]["lr"] = args.lr * (args.lr_end / args.lr)**(
                (i + 1) / batches)
        with torch.no_grad():
            for w, t, m in zip(weights, theta, multiplier):
                t.copy_(w - m / mu if mu > 0 else w)
            project(theta, args.sparsity)
            kept = [w.clone() for w in weights]
            for w, t in zip(weights, theta):
                w.copy_(t)
            loss, _ = judge(net, *held)
            if best is None or loss < best[0]:
                best = (loss, judge(net, *test)[1])
            direct = best[1] if step == 0 else direct
            for w, k, t, m in zip(weights, kept, theta, multiplier):
                w.copy_(k)
                if mu > 0:
                    m -= mu * (w - t)
        mu = args.mu if mu == 0 else mu * args.mu_factor
    return best[1], direct


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("data")
    for name, kind in (("sparsity", float), ("steps", int), ("first", int),
                       ("batches", int), ("batch", int), ("lr", float), ("lr-end", float),
                       ("mu", float), ("mu-factor", float)):
        parser.add_argument("--" + name, type=kind, required=True)
    parser.add_argument("--hold-out", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    tensors, meta = read_model(args.model)
    numbers = [[float(v) for v in meta[k].split()] for k in ("mean", "deviation")]
    mode = "L" if len(numbers[0]) == 1 else "RGB"
    x, y = read_tar(os.path.join(args.data, "train.tar"), mode, *numbers)
    test = read_tar(os.path.join(args.data, "test.tar"), mode, *numbers)
    order = torch.randperm(len(y))
    held, rest = order[:int(args.hold_out * len(y))], order[int(args.hold_out * len(y)):]
    net = Network(tensors)
    start = time.time()
    accuracy, direct = run(net, args, (x[rest], y[rest]), (x[held], y[held]), test)
    print(json.dumps({"accuracy": accuracy, "direct": direct,
                      "seconds": time.time() - start}))


if __name__ == "__main__":
    main()
