"""A short training of LeNet-5 against PyTorch: same data, same initial weights, whole-set
batches (so that the order of samples does not matter). The losses of every step must
agree, for each optimiser.

    pytorch_curve.py STINT FOLDER
"""
import json
import os
import struct
import subprocess
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS, COUNT, CLASSES = 12, 120, 10
CASES = {
    "sgd": {"optimizer.name": "sgd", "optimizer.lr": 0.05, "optimizer.momentum": 0.0},
    "nesterov": {"optimizer.name": "sgd", "optimizer.lr": 0.05,
                 "optimizer.momentum": 0.9, "optimizer.nesterov": "true",
                 "optimizer.weight_decay": 0.01, "optimizer.decay_all": "true"},
    "adam": {"optimizer.name": "adam", "optimizer.lr": 0.002,
             "optimizer.weight_decay": 0.01, "optimizer.decay_all": "true"},
    "adamw": {"optimizer.name": "adamw", "optimizer.lr": 0.002,
              "optimizer.weight_decay": 0.1, "optimizer.decay_all": "true",
              "train.label_smoothing": 0.1},
}


def write_data(folder):
    rng = np.random.default_rng(7)
    images = rng.integers(0, 120, (COUNT, 28, 28), dtype=np.uint8)
    labels = (np.arange(COUNT) % CLASSES).astype(np.uint8)
    for i in range(COUNT):
        images[i, 2 * labels[i]:2 * labels[i] + 3] += 100
    with open(f"{folder}/train-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">IIII", 0x803, COUNT, 28, 28) + images.tobytes())
    with open(f"{folder}/train-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">II", 0x801, COUNT) + labels.tobytes())
    x = images.astype(np.float32) / 255
    x = (x - x.mean()) / x.std()
    return torch.tensor(x[:, None]), torch.tensor(labels.astype(np.int64))


def read_tensors(path):
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    header.pop("__metadata__")
    out = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        out[name] = np.frombuffer(data[8 + n + begin:8 + n + end], np.float32).reshape(
            entry["shape"])
    return out


def run(stint, folder, out, settings):
    with open(f"{folder}/recipe.ini", "w") as f:
        f.write("[model]\nname = lenet5\n[data]\nformat = idx\n")
    sets = [f"--set={k}={v}" for k, v in settings.items()]
    subprocess.run([stint, "train", f"{folder}/recipe.ini", "--data", folder, "--out", out,
                    "--force", "--quiet", "--json", f"--batch={COUNT}", "--shards=3",
                    "--set=run.log_every=1", *sets], check=True,
                   stdout=subprocess.DEVNULL)


class Net(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.c1, self.c3 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.c5, self.f6 = nn.Linear(400, 120), nn.Linear(120, 84)
        self.output = nn.Linear(84, CLASSES)
        with torch.no_grad():
            for name, layer in self.named_children():
                a = torch.tensor(w[name + ".weight"].copy())
                layer.weight.copy_(a.permute(3, 2, 0, 1) if a.dim() == 4 else a.T)
                layer.bias.copy_(torch.tensor(w[name + ".bias"].copy()))

    def forward(self, x):
        x = F.avg_pool2d(torch.tanh(self.c1(x)), 2)
        x = F.avg_pool2d(torch.tanh(self.c3(x)), 2)
        x = x.permute(0, 2, 3, 1).flatten(1)  # channels last
        return self.output(torch.tanh(self.f6(torch.tanh(self.c5(x)))))


def optimizer_of(net, s):
    decay = s.get("optimizer.weight_decay", 0.0)
    if s["optimizer.name"] == "sgd":
        return torch.optim.SGD(net.parameters(), lr=s["optimizer.lr"],
                               momentum=s["optimizer.momentum"], weight_decay=decay,
                               nesterov="optimizer.nesterov" in s)
    kind = torch.optim.Adam if s["optimizer.name"] == "adam" else torch.optim.AdamW
    return kind(net.parameters(), lr=s["optimizer.lr"], weight_decay=decay)


def main():
    stint, folder = sys.argv[1:3]
    torch.set_num_threads(1)
    x, y = write_data(folder)
    worst = 0.0
    # A rate too small to move a weight: what is left are the initial ones.
    run(stint, folder, f"{folder}/first",
        {"optimizer.lr": 1e-30, "train.steps": 1, "optimizer.momentum": 0})
    weights = read_tensors(f"{folder}/first/model.safetensors")
    for name, settings in CASES.items():
        out = f"{folder}/{name}"
        run(stint, folder, out, {**settings, "train.steps": STEPS})
        with open(f"{out}/log.jsonl") as f:
            lines = [json.loads(line) for line in f]
        ours = [line["loss"] for line in lines if line["event"] == "step"]
        net = Net(weights)
        optimizer = optimizer_of(net, settings)
        theirs = []
        for _ in range(STEPS):
            loss = F.cross_entropy(net(x), y,
                                   label_smoothing=settings.get("train.label_smoothing",
                                                                0.0))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            theirs.append(loss.item())
        off = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
        print(f"{name:9s} loss {ours[0]:.5f} -> {ours[-1]:.5f}, PyTorch {theirs[-1]:.5f}, "
              f"largest difference {off:.1e}")
        assert len(ours) == STEPS and theirs[-1] < theirs[0]
        worst = max(worst, off)
    if worst > 1e-4:
        sys.exit("the curves differ")


if __name__ == "__main__":
    os.environ.pop("OMP_NUM_THREADS", None)
    main()
