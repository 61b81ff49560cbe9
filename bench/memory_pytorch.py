#!/usr/bin/python3
"""Peak memory of training with PyTorch, plain or with torch.utils.checkpoint: the peer of
bench/memory_bench.sh. Random images in memory, SGD with momentum, channels-last, float32.

  memory_pytorch.py resnet20|vgg16 [--batch N] [--checkpoint] [--width N]

Prints one JSON object: peak_rss_bytes, start_rss_bytes (libraries and network, before the
first step), seconds a step, torch.
"""
import argparse
import json
import resource
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from step_pytorch import conv_norm, stages


class Segments(nn.Module):
    """A chain of modules; with `again`, each is run again in the backward pass."""

    def __init__(self, parts, head, again):
        super().__init__()
        self.parts, self.head, self.again = nn.ModuleList(parts), head, again

    def forward(self, x):
        if self.again:
            x.requires_grad_(True)
        for part in self.parts:
            x = checkpoint(part, x) if self.again and self.training else part(x)
        return self.head(x)


class GlobalMean(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def resnet20(again):
    blocks, _ = stages((3, 3, 3), 16, 16, False)
    head = nn.Sequential(GlobalMean(), nn.Linear(64, 10))
    return Segments([conv_norm(3, 16, 3)] + blocks, head, again)


def vgg16(again, width):
    parts, c = [], 3
    for count, times in ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8)):
        layers = []
        for _ in range(count):
            layers += [nn.Conv2d(c, width * times, 3, 1, 1, bias=False),
                       nn.BatchNorm2d(width * times), nn.ReLU(inplace=True)]
            c = width * times
        parts.append(nn.Sequential(*layers, nn.MaxPool2d(2)))
    return Segments(parts, nn.Sequential(GlobalMean(), nn.Linear(c, 10)), again)


def rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    p = argparse.ArgumentParser()
    p.add_argument("net", choices=["resnet20", "vgg16"])
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--width", type=int, default=64)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--checkpoint", action="store_true")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    net = resnet20(a.checkpoint) if a.net == "resnet20" else vgg16(a.checkpoint, a.width)
    net = net.to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    x = torch.randn(a.batch, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (a.batch,))
    start, times = rss(), []
    for _ in range(a.steps):
        begin = time.perf_counter()
        opt.zero_grad()
        F.cross_entropy(net(x.detach()), y).backward()
        opt.step()
        times.append(time.perf_counter() - begin)
    print(json.dumps({"peak_rss_bytes": rss(), "start_rss_bytes": start,
                      "step_s": min(times), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
