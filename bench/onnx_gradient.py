#!/usr/bin/env python3
"""Gradients of imported CNNs beside PyTorch's autograd in double precision.

usage: onnx_gradient.py PROGRAM [NAME ...]

PROGRAM is build/release/bench/onnx_gradient_bench, NAME a model of torchvision (resnet18,
mobilenet_v3_small, efficientnet_b0, resnet50). Random weights, normalisations by random
running statistics, two images of 64 x 64; the gradient of the mean output with respect to
every weight. Prints the largest difference over each gradient's largest number, the worst of
all; exit code 1 above 1e-4. Needs torch, torchvision and onnx.
"""

import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
import torchvision


def made(name):
    model = getattr(torchvision.models, name)(weights=None)
    for layer in model.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(layer.running_mean, -0.2, 0.2)
            torch.nn.init.uniform_(layer.running_var, 0.6, 1.5)
        if isinstance(layer, torch.nn.Linear):
            torch.nn.init.normal_(layer.weight, 0, 0.05)
    return model.eval()


def read(path):
    found = {}
    with open(path, "rb") as file:
        while words := file.readline().decode().split():
            rank = int(words[1])
            dims = [int(w) for w in words[2:2 + 2 * rank:2]]
            order = [int(w) for w in words[3:3 + 2 * rank:2]]
            x = np.frombuffer(file.read(4 * int(np.prod(dims))), "<f4").reshape(dims)
            found[words[0]] = x.transpose(np.argsort(order)) if rank else x
    return found


def main():
    warnings.filterwarnings("ignore")
    torch.manual_seed(3)
    worst = 0.0
    with tempfile.TemporaryDirectory() as work:
        onnx, given, out = (os.path.join(work, n) for n in ("m.onnx", "x", "g"))
        for name in sys.argv[2:] or ["resnet18", "mobilenet_v3_small", "efficientnet_b0"]:
            model, x = made(name), torch.randn(2, 3, 64, 64)
            x.numpy().tofile(given)
            torch.onnx.export(model, (x,), onnx, dynamo=False, opset_version=17,
                              training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
            subprocess.run([sys.argv[1], onnx, given, out], check=True)
            model.double()(x.double()).mean().backward()
            found, off = read(out), 0.0
            for key, weight in model.named_parameters():
                want = weight.grad.numpy()
                off = max(off, np.abs(found[key] - want).max() / max(np.abs(want).max(), 1e-30))
            print("%-20s %d gradients, off by %.1e" % (name, len(list(model.parameters())), off))
            worst = max(worst, off)
    return 1 if worst > 1e-4 else 0


if __name__ == "__main__":
    sys.exit(main())
