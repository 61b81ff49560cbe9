#!/usr/bin/python3
"""Train ResNet-20 with PyTorch on 32x32 images: the peer of recipes/cifar10-resnet20.ini.

Same network (1x1 projection shortcuts), batch 128, SGD 0.9 Nesterov, decay 5e-4,
channels-last, float32. The images are random and in memory, so PyTorch pays for no
decoding and no augmentation (Stint does, where the two are compared). Prints one JSON
object: images_per_s (median of the timed steps), peak_rss_bytes, torch, threads.
"""
import argparse
import json
import resource
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.c1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.b1 = nn.BatchNorm2d(cout)
        self.c2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.b2 = nn.BatchNorm2d(cout)
        self.short = None
        if stride != 1 or cin != cout:
            self.short = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False),
                                       nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.b1(self.c1(x)), inplace=True)
        y = self.b2(self.c2(y))
        return F.relu(y + (x if self.short is None else self.short(x)), inplace=True)


class ResNet20(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.c = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.b = nn.BatchNorm2d(16)
        layers, cin = [], 16
        for width, stride in ((16, 1), (32, 2), (64, 2)):
            for i in range(3):
                layers.append(Block(cin, width, stride if i == 0 else 1))
                cin = width
        self.blocks = nn.Sequential(*layers)
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        x = self.blocks(F.relu(self.b(self.c(x)), inplace=True))
        return self.fc(x.mean((2, 3)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--warmup", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    net = ResNet20().to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, nesterov=True,
                          weight_decay=5e-4)
    x = torch.randn(4 * a.batch, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (4 * a.batch,))
    times = []
    for step in range(a.warmup + a.steps):
        i = (step % 4) * a.batch
        start = time.perf_counter()
        opt.zero_grad()
        loss = F.cross_entropy(net(x[i:i + a.batch]), y[i:i + a.batch])
        loss.backward()
        opt.step()
        times.append(time.perf_counter() - start)
    times = sorted(times[a.warmup:])
    print(json.dumps({
        "images_per_s": a.batch / times[len(times) // 2],
        "images_per_s_mean": a.batch * len(times) / sum(times),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "torch": torch.__version__, "threads": a.threads,
    }))


if __name__ == "__main__":
    main()
