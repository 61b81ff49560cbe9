"""Networks of timm_test.sh in PyTorch, written from their papers' tables.

usage: timm_torch.py images | folder NAME DIR | compare NAME MODEL PREDICTIONS STEPPED"""
import json
import os
import random
import struct
import sys
import zlib

import torch
from torch import nn
from torch.nn import functional as F

SIDE, CLASSES, MEAN, STD = 96, 4, (0.5, 0.4, 0.3), (0.25, 0.2, 0.3)


def conv_bn(module, conv, bn, into, out, size, stride=1, groups=1):
    setattr(module, conv, nn.Conv2d(into, out, size, stride, size // 2, groups=groups, bias=False))
    setattr(module, bn, nn.BatchNorm2d(out))


class Basic(nn.Module):
    def __init__(self, into, width, stride, wide):
        super().__init__()
        self.wide, out = wide, 4 * width if wide else width
        if wide:
            conv_bn(self, "conv1", "bn1", into, width, 1)
            conv_bn(self, "conv2", "bn2", width, width, 3, stride)
            conv_bn(self, "conv3", "bn3", width, out, 1)
        else:
            conv_bn(self, "conv1", "bn1", into, width, 3, stride)
            conv_bn(self, "conv2", "bn2", width, out, 3)
        self.downsample = None
        if stride != 1 or into != out:
            self.downsample = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False),
                                            nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.wide:
            y = self.bn3(self.conv3(F.relu(y)))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
    def __init__(self, blocks, wide):
        super().__init__()
        conv_bn(self, "conv1", "bn1", 3, 64, 7, 2)
        into = 64
        for s, n in enumerate(blocks):
            width, rows = 64 << s, []
            for i in range(n):
                rows.append(Basic(into, width, 2 if s and i == 0 else 1, wide))
                into = 4 * width if wide else width
            setattr(self, "layer%d" % (s + 1), nn.Sequential(*rows))
        self.fc = nn.Linear(into, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for s in range(4):
            x = getattr(self, "layer%d" % (s + 1))(x)
        return self.fc(x.mean((2, 3)))


class Inverted(nn.Module):
    """With timm's names; bias: without batch-norm."""

    def __init__(self, into, expand, out, size, stride, bias):
        super().__init__()
        wide = into * expand
        self.adds, self.bias, self.expand = stride == 1 and into == out, bias, expand
        rows = [("conv_pw", "bn1", into, wide, 1, 1, 1)] if expand > 1 else []
        rows.append(("conv_dw", "bn2" if expand > 1 else "bn1", wide, wide, size, stride, wide))
        rows.append(("conv_pwl", "bn3", wide, out, 1, 1, 1) if expand > 1 else
                    ("conv_pw", "bn2", wide, out, 1, 1, 1))
        self.rows = [r[:2] for r in rows]
        for conv, bn, i, o, k, s, g in rows:
            if bias:
                setattr(self, conv, nn.Conv2d(i, o, k, s, k // 2, groups=g))
            else:
                conv_bn(self, conv, bn, i, o, k, s, g)

    def forward(self, x):
        y = x
        for n, (conv, bn) in enumerate(self.rows):
            y = getattr(self, conv)(y)
            y = y if self.bias else getattr(self, bn)(y)
            y = F.relu6(y) if n < len(self.rows) - 1 else y
        return x + y if self.adds else y


class Mobile(nn.Module):
    def __init__(self, first, rows, head, bias):
        super().__init__()
        self.bias, self.head = bias, head
        self.conv_stem = nn.Conv2d(3, first, 3, 2, 1, bias=bias)
        if not bias:
            self.bn1 = nn.BatchNorm2d(first)
        stages, into = [], first
        for expand, out, size, stride, n in rows:
            stage = []
            for i in range(n):
                stage.append(Inverted(into, expand, out, size, stride if i == 0 else 1, bias))
                into = out
            stages.append(nn.Sequential(*stage))
        self.blocks = nn.Sequential(*stages)
        if head:
            conv_bn(self, "conv_head", "bn2", into, head, 1)
        self.classifier = nn.Linear(head or into, CLASSES)

    def forward(self, x):
        x = self.conv_stem(x)
        x = self.blocks(F.relu6(x if self.bias else self.bn1(x)))
        if self.head:
            x = F.relu6(self.bn2(self.conv_head(x)))
        return self.classifier(x.mean((2, 3)))


def network(name):
    if name.startswith("resnet"):
        return ResNet((2, 2, 2, 2) if name == "resnet18" else (3, 4, 6, 3), name == "resnet50")
    if name == "mcunet":
        return Mobile(16, [(1, 8, 3, 1, 1), (4, 16, 3, 2, 1), (3, 16, 3, 1, 1), (3, 24, 7, 2, 1),
                           (5, 24, 3, 1, 1), (5, 40, 3, 2, 1), (4, 40, 7, 1, 1), (4, 48, 5, 1, 1),
                           (3, 48, 3, 1, 1), (4, 48, 3, 1, 1), (5, 96, 7, 2, 1), (4, 96, 5, 1, 2),
                           (6, 160, 3, 1, 1)], 0, True)
    return Mobile(32, [(1, 16, 3, 1, 1), (6, 24, 3, 2, 2), (6, 32, 3, 2, 3), (6, 64, 3, 2, 4),
                       (6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 3, 1, 1)], 1280, False)


# ---- files ----

def png(path, rows):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    raw = b"".join(b"\0" + bytes(r) for r in rows)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(
            ">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(raw)) +
            chunk(b"IEND", b""))


def picture(seed):
    draw = random.Random(seed)
    base = [[draw.randrange(256) for _ in range(3)] for _ in range(64)]
    return [[v for x in range(SIDE) for v in base[y // 12 * 8 + x // 12]] for y in range(SIDE)]


def images():
    for part, n in (("train", 1), ("test", 2)):
        for c in range(CLASSES):
            os.makedirs("images/%s/%d" % (part, c), exist_ok=True)
            for i in range(n):
                png("images/%s/%d/%d.png" % (part, c, i), picture(c * 10 + i + (part == "test") * 100))


def as_tensor(seed):
    x = torch.tensor(picture(seed), dtype=torch.float32).view(SIDE, SIDE, 3) / 255
    return ((x - torch.tensor(MEAN_NOW)) / torch.tensor(STD_NOW)).permute(2, 0, 1)


def write_folder(name, folder):
    torch.manual_seed(len(name))
    net = network(name)
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.weight.data.uniform_(0.5, 1.5)
            m.bias.data.normal_(std=0.2)
            m.running_mean.normal_(std=0.2)
            m.running_var.uniform_(0.5, 2)
    os.makedirs(folder)
    with open(folder + "/config.json", "w") as f:
        json.dump({"architecture": name, "num_classes": CLASSES, "num_features": 512,
                   "pretrained_cfg": {"input_size": [3, SIDE, SIDE], "mean": MEAN, "std": STD,
                                      "crop_pct": 0.875, "num_classes": CLASSES}}, f)
    head, data = {}, b""
    for k, v in net.state_dict().items():
        v = v.contiguous()
        kind = "I64" if v.dtype == torch.int64 else "F32"
        head[k] = {"dtype": kind, "shape": list(v.shape),
                   "data_offsets": [len(data), len(data) + v.numel() * v.element_size()]}
        data += v.numpy().tobytes()
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(folder + "/model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def load(path):
    data = open(path, "rb").read()
    n, = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + n])
    texts = head.pop("__metadata__")
    return texts, {k: torch.frombuffer(bytearray(data[8 + n + v["data_offsets"][0]:
                                                      8 + n + v["data_offsets"][1]]),
                                       dtype=torch.float32).view(v["shape"]) for k, v in head.items()}


def ours_of(name, x):
    """Our name and order of a tensor of PyTorch's."""
    scope, last = name.rsplit(".", 1)
    scope = scope.replace("downsample.0", "downsample.conv").replace("downsample.1", "downsample.bn")
    norm = ".bn" in "." + scope
    last = {"weight": "scale", "bias": "shift", "running_mean": "mean",
            "running_var": "variance"}[last] if norm else last
    return scope + "." + last, (x.permute(2, 3, 1, 0) if x.dim() == 4 else
                                x.T if x.dim() == 2 else x)


def compare(name, model, predictions, stepped):
    global MEAN_NOW, STD_NOW
    path = model if model.endswith(".st") else model + "/model.safetensors"
    texts, first = load(path)
    MEAN_NOW, STD_NOW = ([float(v) for v in texts[k].split()] for k in ("mean", "deviation"))
    net = network(name).eval()
    with torch.no_grad():
        for k, v in net.state_dict().items():
            if k.endswith("num_batches_tracked"):
                continue
            ours, _ = ours_of(k, v)
            x = first.pop(ours)
            v.copy_(x.permute(3, 2, 0, 1) if x.dim() == 4 else x.T if x.dim() == 2 else x)
    assert not first, first.keys()
    for row in json.load(open(predictions))["predictions"]:
        c, i = int(row["file"].split("/")[-2]), int(row["file"].split("/")[-1][0])
        want = net(as_tensor(c * 10 + i + 100)[None]).softmax(1)[0]
        for k in row["classes"]:
            if abs(k["probability"] - want[int(k["class"])].item()) > 2e-4:
                sys.exit("%s: %r, PyTorch has %s" % (name, row, want))
    loss = F.cross_entropy(net(torch.stack([as_tensor(c * 10) for c in range(CLASSES)])),
                           torch.arange(CLASSES))
    loss.backward()
    _, before = load(path)
    _, after = load(stepped)
    worst = 0.0
    for k, p in net.named_parameters():
        ours, gradient = ours_of(k, p.grad)
        have, most = before[ours] - after[ours], gradient.abs().max().item()
        # The difference of two numbers of 24 bits is off by a last place of theirs.
        room = 2e-3 * most + 2e-7 * before[ours].abs().max().item()
        wrong = (have - gradient).abs().max().item()
        worst = max(worst, (wrong - 2e-7 * before[ours].abs().max().item()) / (most + 1e-30))
        if wrong > room:
            sys.exit("%s: gradient of %s is off by %g of %g" % (name, ours, wrong, most))
    print("%s: gradients within %.2g" % (name, worst))


MEAN_NOW, STD_NOW = MEAN, STD
if __name__ == "__main__":
    {"images": images, "folder": write_folder, "compare": compare}[sys.argv[1]](*sys.argv[2:])
