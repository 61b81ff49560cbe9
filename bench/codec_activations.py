#!/usr/bin/env python3
"""Activations of a real, trained network on real photographs, as .npy files in NHWC.

The network is mcunet-5fps (int8 weights with scales, run in float32 at 128 x 128), the
photographs are the 1,000 of imagenet-sample.tar. Each layer's input is written with the
error bound that COMET's model gives it for tau = 0.01: eb = tau mean|dW| sqrt(3 / G), G
the sum of dY^2 where X is not zero. OUT/list.txt has a line a layer: file, bound, relu
or linear.

usage: codec_activations.py DATA OUT [--images 128]     (DATA has both files)
"""

import argparse
import io
import os
import pickle
import tarfile
import zipfile

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

TAU = 0.01
SIDE = 128


class Loader(pickle.Unpickler):
    """The file is a torch zip whose tensors are all NumPy arrays."""

    def persistent_load(self, pid):
        return pid

    def find_class(self, module, name):
        if module.split(".")[0] not in ("numpy", "collections", "_codecs"):
            raise pickle.UnpicklingError("no %s.%s in weights" % (module, name))
        return super().find_class(module, name)


def load_weights(path):
    with zipfile.ZipFile(path) as archive:
        return Loader(io.BytesIO(archive.read("archive/data.pkl"))).load()


def load_images(path, count):
    images, labels = [], []
    with tarfile.open(path) as tar:
        members = sorted((m for m in tar.getmembers() if m.isfile()), key=lambda m: m.name)
        step = len(members) // count
        for label in range(0, step * count, step):
            image = Image.open(tar.extractfile(members[label])).convert("RGB")
            side = min(image.size)
            left, top = (image.width - side) // 2, (image.height - side) // 2
            image = image.crop((left, top, left + side, top + side))
            image = image.resize((SIDE, SIDE), Image.BILINEAR)
            images.append(np.asarray(image, dtype=np.float32) / 127.5 - 1)
            labels.append(label)
    x = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous()
    return x, torch.tensor(labels)


class Net:
    def __init__(self, weights):
        self.weights = weights
        self.layers = []  # (name, weight, input, output, relu input)
        self.relu = False

    def conv(self, name, x, c):
        p = c["params"]
        scale = torch.from_numpy(np.asarray(p["w_scales"], dtype=np.float32))
        w = torch.from_numpy(p["weight"].astype(np.float32)) * scale.view(-1, 1, 1, 1)
        b = torch.from_numpy(p["bias"].astype(np.float32)) * scale * p["x_scale"]
        w.requires_grad_(True)
        k = c["kernel_size"][0] if isinstance(c["kernel_size"], tuple) else c["kernel_size"]
        y = F.conv2d(x, w, b, stride=c["stride"], padding=k // 2, groups=c["groups"])
        y.retain_grad()
        self.layers.append((name, w, x, y, self.relu))
        self.relu = p["y_zero"] == -128 and not name.endswith("pointwise2")
        return F.relu6(y) if self.relu else y

    def forward(self, x):
        w = self.weights
        x = self.conv("first", x, w["first_conv"])
        for i, block in enumerate(w["blocks"]):
            y = x
            for part in ("pointwise1", "depthwise", "pointwise2"):
                if block[part] is not None:
                    y = self.conv("%02d_%s" % (i, part), y, block[part])
            x = x + y if block["residual"] is not None else y
        if w.get("feature_mix") is not None:
            x = self.conv("mix", x, w["feature_mix"])
        x = x.mean((2, 3), keepdim=True)
        return self.conv("head", x, w["classifier"]).flatten(1)


def bound_of(w, x, y):
    """COMET's bound for a layer's input, from this batch's gradients."""
    nonzero = (x != 0).float().mean().item()
    g = (y.grad.double() ** 2).sum((0, 2, 3)).mean().item() * nonzero
    return TAU * w.grad.abs().mean().item() * (3 / g) ** 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("out")
    parser.add_argument("--images", type=int, default=128)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    net = Net(load_weights(os.path.join(args.data, "mcunet-5fps.pkl")))
    x, labels = load_images(os.path.join(args.data, "imagenet-sample.tar"), args.images)
    logits = net.forward(x)
    right = (logits.argmax(1) == labels).float().mean().item()
    print("%d images, top-1 %.1f %%" % (len(labels), 100 * right))
    F.cross_entropy(logits, labels).backward()
    with open(os.path.join(args.out, "list.txt"), "w") as out:
        for name, w, x, y, relu in net.layers[1:-1]:
            bound = bound_of(w, x, y)
            array = x.detach().permute(0, 2, 3, 1).contiguous().numpy()
            np.save(os.path.join(args.out, name + ".npy"), array)
            out.write("%s.npy %.9g %s\n" % (name, bound, "relu" if relu else "linear"))
            print("%-16s %-18s R %.2f bound %.3g, %.4f of the range" % (
                name, "x".join(map(str, array.shape)), (array != 0).mean(), bound,
                bound / float(array.max() - array.min())))


if __name__ == "__main__":
    main()
