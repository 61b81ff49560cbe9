#!/usr/bin/python3
"""One training step with PyTorch on random images in memory: the peer of `stint bench step`.

    step_pytorch.py --net resnet20|vgg16|resnet50 [--image 32] [--batch 128] [--threads 2]

Same networks as Stint's (VGG-16 with batch-norm and, below 96 pixels, one dense layer
after the global average; ResNet-20 with 1x1 projections), SGD 0.9 Nesterov, decay 5e-4,
channels-last, float32. Stops after --steps, or after --seconds if that is sooner. Prints
one JSON object: images_per_s (median of the timed steps), peak_rss_bytes, torch, threads.
"""
import argparse
import json
import resource
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def conv_norm(cin, cout, size, stride=1, relu=True):
    """Convolution, batch-norm and ReLU."""
    parts = [nn.Conv2d(cin, cout, size, stride, size // 2, bias=False), nn.BatchNorm2d(cout)]
    return nn.Sequential(*parts, *([nn.ReLU(inplace=True)] if relu else []))


class Block(nn.Module):
    """Residual block: a plain one, or a bottleneck to four times the width."""

    def __init__(self, cin, width, stride, bottleneck):
        super().__init__()
        cout = 4 * width if bottleneck else width
        if bottleneck:
            self.branch = nn.Sequential(conv_norm(cin, width, 1),
                                        conv_norm(width, width, 3, stride),
                                        conv_norm(width, cout, 1, relu=False))
        else:
            self.branch = nn.Sequential(conv_norm(cin, width, 3, stride),
                                        conv_norm(width, cout, 3, relu=False))
        self.short = None
        if stride != 1 or cin != cout:
            self.short = conv_norm(cin, cout, 1, stride, relu=False)

    def forward(self, x):
        y = self.branch(x)
        return F.relu(y + (x if self.short is None else self.short(x)), inplace=True)


def stages(blocks, cin, width, bottleneck):
    layers = []
    for stage, count in enumerate(blocks):
        for i in range(count):
            layers.append(Block(cin, width, 2 if stage and not i else 1, bottleneck))
            cin = 4 * width if bottleneck else width
        width *= 2
    return layers, cin


def resnet(blocks, width, bottleneck, image, classes):
    stem = [conv_norm(3, width, 3)]
    if image >= 96:
        stem = [conv_norm(3, width, 7, 2), nn.MaxPool2d(3, 2, 1)]
    layers, cout = stages(blocks, width, width, bottleneck)
    return nn.Sequential(*stem, *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(cout, classes))


def vgg16(image, classes):
    layers, cin = [], 3
    for count, width in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(count):
            layers.append(conv_norm(cin, width, 3))
            cin = width
        layers.append(nn.MaxPool2d(2))
    if image < 96:
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                             nn.Linear(512, classes))
    side = image // 32
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512 * side * side, 4096),
                         nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(4096, 4096),
                         nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(4096, classes))


def build(a):
    if a.net == "resnet20":
        return resnet((3, 3, 3), 16, False, a.image, a.classes)
    if a.net == "resnet50":
        return resnet((3, 4, 6, 3), 64, True, a.image, a.classes)
    return vgg16(a.image, a.classes)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--net", choices=("resnet20", "vgg16", "resnet50"), default="resnet20")
    p.add_argument("--image", type=int, default=32)
    p.add_argument("--classes", type=int, default=10)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--seconds", type=float, default=1e9)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    net = build(a).to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, nesterov=True,
                          weight_decay=5e-4)
    x = torch.randn(2 * a.batch, 3, a.image, a.image)
    x = x.contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, a.classes, (2 * a.batch,))
    times, begin = [], time.perf_counter()
    for step in range(a.warmup + a.steps):
        if step > a.warmup and time.perf_counter() - begin > a.seconds:
            break
        i = (step % 2) * a.batch
        start = time.perf_counter()
        opt.zero_grad()
        loss = F.cross_entropy(net(x[i:i + a.batch]), y[i:i + a.batch])
        loss.backward()
        opt.step()
        times.append(time.perf_counter() - start)
    times = sorted(times[a.warmup:])
    print(json.dumps({
        "images_per_s": a.batch / times[len(times) // 2],
        "median_s": times[len(times) // 2], "best_s": times[0], "steps": len(times),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "torch": torch.__version__, "threads": a.threads,
        "parameters": sum(p.numel() for p in net.parameters()),
    }))


if __name__ == "__main__":
    main()
