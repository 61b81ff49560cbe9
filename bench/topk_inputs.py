#!/usr/bin/env python3
"""Writes real inputs for top-k, raw float32, for topk_peers.sh to read as an ORDER.

usage: topk_inputs.py gradient|distance IMAGES.tar OUT.f32
       topk_inputs.py logits RUN TOKENS.npy OUT.f32
gradient: of all 1.9 million weights of a small network of convolutions, after 12 steps of
training on the images (magnitudes: what is selected from when gradients are made
sparse). distance: minus the squared distance of 16 patches of 8x8 pixels of each image to
one of them. logits: of 32 contexts of a gpt that `stint train` left in RUN, with the
token numbers that `stint data tokens --ids` wrote.
IMAGES.tar holds CLASS/NAME.jpg. Needs PyTorch, Pillow; the weights must be float32.
"""

import io
import json
import sys
import tarfile

import numpy as np
import torch
from PIL import Image


def read_images(path, most):
    """[count, 3, 32, 32] in 0..1, and labels, in an order that mixes the classes."""
    pixels, names = [], []
    with tarfile.open(path) as tar:
        members = [m for m in tar.getmembers() if m.isfile()]
        for m in members[::max(1, len(members) // most)]:
            image = Image.open(io.BytesIO(tar.extractfile(m).read())).convert("RGB")
            pixels.append(np.asarray(image, np.float32) / 255)
            names.append(m.name.split("/")[-2])
    classes = sorted(set(names))
    mixed = np.random.default_rng(1).permutation(len(names))
    labels = np.array([classes.index(n) for n in names])[mixed]
    return torch.from_numpy(np.stack(pixels)[mixed]).permute(0, 3, 1, 2), torch.from_numpy(labels)


def gradient(tar):
    torch.manual_seed(1)
    x, y = read_images(tar, 1000)
    layers, width = [], 3
    for out in (32, 64, 128):
        layers += [torch.nn.Conv2d(width, out, 3, padding=1), torch.nn.BatchNorm2d(out),
                   torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
        width = out
    net = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(2048, 896),
                              torch.nn.ReLU(), torch.nn.Linear(896, 10))
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    for step in range(12):
        at = step * 64 % 900
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x[at:at + 64] - 0.5), y[at:at + 64]).backward()
        optimizer.step()
    return torch.cat([p.grad.reshape(-1) for p in net.parameters()]).abs().numpy()


def distance(tar):
    x, _ = read_images(tar, 10000)
    patches = x.unfold(2, 8, 8).unfold(3, 8, 8).permute(0, 2, 3, 1, 4, 5).reshape(-1, 192)
    return -((patches - patches[777]) ** 2).sum(1).numpy()


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8:8 + size])
    return {name: torch.from_numpy(np.frombuffer(
        data[8 + size + v["data_offsets"][0]:8 + size + v["data_offsets"][1]],
        np.float32).reshape(v["shape"]).copy())
        for name, v in head.items() if name != "__metadata__" and v["dtype"] == "F32"}


def logits(run, tokens):
    """Of the last position of 32 contexts; GPT-2's form, by the names of its weights."""
    w = read_safetensors(run + "/model.safetensors")
    with open(run + "/recipe.ini") as file:
        heads = next(int(line.split("=")[1]) for line in file if line.startswith("heads"))
    context, width = w["wpe.weight"].shape
    ids = torch.from_numpy(np.load(tokens)[:32 * context].astype(np.int64)).reshape(32, -1)

    def linear(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    def norm(x, name):
        return torch.nn.functional.layer_norm(x, (width,), w[name + ".scale"],
                                              w[name + ".shift"])

    x = w["wte.weight"][ids] + w["wpe.weight"]
    hidden = torch.triu(torch.full((context, context), -np.inf), 1)
    for h in range(sum(name.endswith("c_attn.weight") for name in w)):
        q, k, v = (part.reshape(32, context, heads, -1).transpose(1, 2) for part in linear(
            norm(x, "h.%d.ln_1" % h), "h.%d.attn.c_attn" % h).split(width, -1))
        mixed = torch.softmax(q @ k.transpose(2, 3) / (width / heads) ** 0.5 + hidden, -1) @ v
        x = x + linear(mixed.transpose(1, 2).reshape(32, context, width),
                       "h.%d.attn.c_proj" % h)
        up = linear(norm(x, "h.%d.ln_2" % h), "h.%d.mlp.c_fc" % h)
        x = x + linear(torch.nn.functional.gelu(up), "h.%d.mlp.c_proj" % h)
    all_logits = norm(x, "ln_f") @ w["wte.weight"].T
    loss = torch.nn.functional.cross_entropy(all_logits[:, :-1].reshape(-1, all_logits.shape[-1]),
                                             ids[:, 1:].reshape(-1))
    print("loss of these contexts: %.3f nats a token" % loss)
    return all_logits[:, -1].reshape(-1).numpy()


def main():
    what, source, out = sys.argv[1], sys.argv[2], sys.argv[-1]
    x = (gradient(source) if what == "gradient" else
         distance(source) if what == "distance" else logits(source, sys.argv[3]))
    x.astype(np.float32).tofile(out)
    print("%s: %d values" % (out, x.size))


main()
