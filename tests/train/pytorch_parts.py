"""One step of training random parts of a network, and one of all of it with a gradient
penalty, against PyTorch's autograd.

    pytorch_parts.py STINT FOLDER

A network of convolutions and dense layers is trained for one step of plain SGD on all its
images at once, with a random list of parameters and shares; the change of every number is
the gradient of the very same loss in float64, or nothing."""

import json
import random
import struct
import subprocess
import sys
import zlib

import torch
import torch.nn.functional as F

stint, folder = sys.argv[1:3]
SIDE, COUNT, RATE = 16, 12, 0.5


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_images():
    import os

    pixels, labels = [], []
    rng = random.Random(5)
    for c, name in enumerate(("a", "b", "c")):
        os.makedirs(f"{folder}/data/train/{name}", exist_ok=True)
        for i in range(COUNT):
            rows = [[(rng.randrange(120) + 45 * c * ((x >> c) & 1)) % 256 for x in range(SIDE)]
                    for _ in range(SIDE)]
            raw = b"".join(b"\0" + bytes(r) for r in rows)
            with open(f"{folder}/data/train/{name}/{i:02}.png", "wb") as f:
                f.write(b"\x89PNG\r\n\x1a\n"
                        + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0))
                        + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))
            pixels.append(rows)
            labels.append(c)
    return torch.tensor(pixels, dtype=torch.float64)[:, None], torch.tensor(labels)


def run(*args):
    done = subprocess.run([stint, *args], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"stint {' '.join(args)}: {done.stderr}")
    return done.stdout


def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    meta = head.pop("__metadata__")
    out = {}
    for name, t in head.items():
        a, b = t["data_offsets"]
        x = torch.frombuffer(bytearray(data[8 + n + a:8 + n + b]), dtype=torch.float32)
        out[name] = x.reshape(t["shape"]).double()
    return out, meta


def loss_of(w, x, labels):
    for i in (1, 2, 3):
        x = F.conv2d(x, w[f"conv{i}.weight"].permute(3, 2, 0, 1), w[f"conv{i}.bias"], padding=1)
        x = F.max_pool2d(F.relu(x), 2)
    x = x.mean((2, 3))
    x = F.relu(x @ w["fc1.weight"] + w["fc1.bias"])
    return F.cross_entropy(x @ w["fc2.weight"] + w["fc2.bias"], labels)


pixels, labels = write_images()
with open(f"{folder}/start.ini", "w") as f:
    f.write(f"""[model]
name = smallcnn
convolution = direct
[data]
path = {folder}/data
[train]
epochs = 3
batch = 12
shards = 1
[optimizer]
lr = 0.05
""")
run("train", f"{folder}/start.ini", "-o", f"{folder}/start", "-q")
start, meta = load(f"{folder}/start/model.safetensors")
x = (pixels / 255 - float(meta["mean"])) / float(meta["deviation"])
for t in start.values():
    t.requires_grad_(True)
loss_of(start, x, labels).backward()
shares = {"": 1, "@1/2": 2, "@1/4": 4, "@1/8": 8}
worst = 0
for seed in range(30):
    rng = random.Random(seed)
    chosen = {}
    for name in start:
        if rng.random() < 0.1 + 0.02 * seed:
            chosen[name] = rng.choice(list(shares)) if name.endswith(".weight") else ""
    if not chosen:
        chosen["fc2.bias"] = ""
    out = f"{folder}/part"
    run("finetune", f"{folder}/start", "--data", f"{folder}/data", "--tensors",
        ",".join(n + s for n, s in chosen.items()), "--batch", str(3 * COUNT), "--shards", "1",
        "--steps", "1", "--lr", str(RATE), "--set", "optimizer.momentum=0", "--set",
        "schedule.name=constant", "-o", out, "--force", "-q")
    after, _ = load(f"{out}/model.safetensors")
    for name, before in start.items():
        change = (before.detach() - after[name]) / RATE
        if name not in chosen:
            assert not change.any(), f"{name} has changed"
            continue
        wanted = before.grad.clone()
        part = shares[chosen[name]]
        if part > 1:
            axis = 0 if before.dim() == 2 else 3 if before.shape[2] == 1 else 2
            size = before.detach().transpose(axis, 0).flatten(1).square().sum(1)
            count = max(1, len(size) // part)
            off = size.argsort(descending=True)[count:]
            wanted.index_fill_(axis, off, 0)
            assert not change.index_select(axis, off).any(), f"{name}: other channels changed"
        # A change is rounded as a weight is.
        slack = 1.2e-7 * before.detach().abs().max() / RATE
        error = (change - wanted).abs().max()
        assert error <= 1e-5 * before.grad.abs().max() + slack, (seed, name, float(error))
        worst = max(worst, float(error / (before.grad.abs().max() + 1e-30)))
print(f"30 parts, worst difference {worst:.1e} of the largest gradient")

# The loss and FACTOR times the mean over the images of |d own loss / d image|^2.
FACTOR = 0.3
for t in start.values():
    t.grad = None
x.requires_grad_(True)
loss = loss_of(start, x, labels)
slope, = torch.autograd.grad(loss, x, create_graph=True)
(loss + FACTOR * len(x) * slope.square().sum()).backward()
run("train", f"{folder}/start.ini", "--start", f"{folder}/start", "--batch", str(3 * COUNT), "--shards",
    "1", "--steps", "1", "--set", f"optimizer.lr={RATE}", "--set", "optimizer.momentum=0", "--set",
    "schedule.name=constant", "--set", f"loss.gradient_penalty={FACTOR}", "--set",
    "optimizer.weight_decay=0", "-o", f"{folder}/penalty", "-q")
after, _ = load(f"{folder}/penalty/model.safetensors")
worst = 0
for name, before in start.items():
    change = (before.detach() - after[name]) / RATE
    slack = 1.2e-7 * before.detach().abs().max() / RATE
    error = (change - before.grad).abs().max()
    assert error <= 1e-5 * before.grad.abs().max() + slack, (name, float(error))
    worst = max(worst, float(error / (before.grad.abs().max() + 1e-30)))
print(f"gradient penalty, worst difference {worst:.1e} of the largest gradient")
