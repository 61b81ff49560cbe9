"""The same recipe, initial weights and tokens in Stint and in PyTorch: loss of every step
and of the validation part.

    text_pytorch.py STINT RECIPE TEXT [--tokens N] [--seeds 1,2,3] [--set KEY=VALUE]...
                    [--threads N] [--tolerance T] [--folder DIR]

For text recipes with characters as tokens, adamw, a cosine or constant schedule and no
dropout. The model is written from the formulas with torch.nn.functional alone; windows
come from our generator (Philox), written out here. --tolerance makes a difference above it
an error: of single losses, relative, and of the final weights, absolute.
"""
import argparse
import configparser
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F

SHUFFLE, AUGMENT = 2, 3
MASK = 0xFFFFFFFF


def philox(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK, (p0 >> 32) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


def random4(seed, stream, a, b):
    low, high = seed & MASK, seed >> 32
    key = (low ^ high, ((stream * 0x9E3779B9) & MASK) ^ high)
    return philox((a & MASK, a >> 32, b & MASK, b >> 32), key)


def shuffled(seed, epoch, n):
    order = list(range(n))
    for i in range(1, n):
        if i == 1 or i % 4 == 0:
            words = random4(seed, SHUFFLE, epoch, i // 4)
        j = (words[i % 4] * (i + 1)) >> 32
        order[i], order[j] = order[j], order[i]
    return order


class Batches:
    """Windows of the training part in the order in which Stint visits them."""

    def __init__(self, tokens, context, batch, seed):
        self.tokens, self.context, self.batch, self.seed = tokens, context, batch, seed
        n = len(tokens)
        self.count = 1 if n < 2 * context else n // context - 1
        self.spare = n - 1 - self.count * context
        self.per_epoch = self.count // batch
        self.epoch = -1

    def __getitem__(self, step):
        epoch, at = divmod(step, self.per_epoch)
        if epoch != self.epoch:
            self.epoch, self.order = epoch, shuffled(self.seed, epoch, self.count)
            self.shift = 0
            if self.spare >= 1:
                choices = min(self.spare + 1, self.context)
                self.shift = (random4(self.seed, AUGMENT, epoch, 0)[0] * choices) >> 32
        rows = [self.tokens[self.shift + w * self.context:][:self.context + 1]
                for w in self.order[at * self.batch:(at + 1) * self.batch]]
        x = torch.stack(rows)
        return x[:, :-1], x[:, 1:]


def rotate(x, base):  # [batch, heads, length, size]
    half = x.shape[-1] // 2
    turn = base ** (-torch.arange(half, dtype=torch.float64) * 2 / x.shape[-1])
    angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * turn
    cos, sin = angle.cos().float(), angle.sin().float()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Transformer:
    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        n = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + n])
        meta = header.pop("__metadata__")
        self.w = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            a = np.frombuffer(data[8 + n + begin:8 + n + end], np.float32)
            self.w[name] = torch.tensor(a.reshape(entry["shape"]).copy(),
                                        requires_grad=True)
        self.llama = meta["network"] == "llama"
        size = meta["text"].split()
        self.depth, self.width, self.heads, self.kv_heads = (int(s) for s in size[2:6])
        self.epsilon, self.base = float(size[7]), float(size[8])
        self.characters = json.loads(meta["tokenizer"])["characters"]

    def linear(self, x, name):
        y = x @ self.w[name + ".weight"]
        return y if self.llama else y + self.w[name + ".bias"]

    def norm(self, x, name):
        scale = self.w[name + ".scale"]
        if self.llama:
            return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.epsilon) * scale
        return F.layer_norm(x, (self.width,), scale, self.w[name + ".shift"], self.epsilon)

    def attend(self, x, name):
        b, t, _ = x.shape
        size = self.width // self.heads
        qkv = self.linear(x, name + ".c_attn")
        q, k, v = (part.view(b, t, -1, size).transpose(1, 2) for part in
                   qkv.split([self.width, self.kv_heads * size, self.kv_heads * size], -1))
        if self.llama:
            q, k = rotate(q, self.base), rotate(k, self.base)
        k, v = (z.repeat_interleave(self.heads // self.kv_heads, 1) for z in (k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(size)
        hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
        y = scores.masked_fill(hidden, -math.inf).softmax(-1) @ v
        return self.linear(y.transpose(1, 2).reshape(b, t, -1), name + ".c_proj")

    def feed(self, x, name):
        if self.llama:
            return self.linear(F.silu(self.linear(x, name + ".gate"))
                               * self.linear(x, name + ".up"), name + ".down")
        u = self.linear(x, name + ".c_fc")
        u = 0.5 * u * (1 + torch.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u ** 3)))
        return self.linear(u, name + ".c_proj")

    def loss(self, tokens, labels, reduction="mean"):
        x = F.embedding(tokens, self.w["wte.weight"])
        if not self.llama:
            x = x + self.w["wpe.weight"][:tokens.shape[1]]
        for i in range(self.depth):
            h = f"h.{i}."
            x = x + self.attend(self.norm(x, h + "ln_1"), h + "attn")
            x = x + self.feed(self.norm(x, h + "ln_2"), h + "mlp")
        x = self.norm(x, "ln_f")
        logits = x @ self.w["lm_head.weight" if self.llama else "wte.weight"].T
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction=reduction)

    def groups(self, decay):
        decayed = [p for n, p in self.w.items()
                   if n.endswith(".weight") and n not in ("wte.weight", "wpe.weight")]
        ids = {id(p) for p in decayed}
        return [{"params": decayed, "weight_decay": decay},
                {"params": [p for p in self.w.values() if id(p) not in ids],
                 "weight_decay": 0.0}]


def rate(r, step, steps, warmup):
    lr, start, final = r["optimizer.lr"], r["schedule.start_factor"], r["schedule.final_factor"]
    if step < warmup:
        return lr * (start + (1 - start) * step / warmup)
    if r["schedule.name"] == "constant":
        return lr
    p = (step - warmup) / (steps - warmup)
    return lr * (final + (1 - final) * (1 + math.cos(math.pi * p)) / 2)


def read_recipe(path):
    """The resolved recipe of a run, numbers as numbers."""
    ini = configparser.ConfigParser()
    ini.read(path)
    out = {}
    for section in ini.sections():
        for key, value in ini[section].items():
            try:
                out[f"{section}.{key}"] = float(value)
            except ValueError:
                out[f"{section}.{key}"] = value
    return out


def train_ours(args, seed, steps, out, extra=()):
    sets = [f"--set={s}" for s in list(args.set) + list(extra)]
    r = subprocess.run([args.stint, "train", args.recipe, "--data", args.text, "--out", out,
                        "--force", "--quiet", "--json", "--error=0", f"--seed={seed}",
                        f"--steps={steps}", f"-j{args.threads}", "--set=run.log_every=1",
                        *sets], check=True, stdout=subprocess.PIPE)
    with open(f"{out}/log.jsonl") as f:
        lines = [json.loads(line) for line in f]
    return json.loads(r.stdout), [e["loss"] for e in lines if e["event"] == "step"]


def train_theirs(net, tokens, r, steps, seed):
    context, batch = int(r["model.context"]), int(r["train.batch"])
    test = int(len(tokens) * r["data.validation"])
    batches = Batches(tokens[:len(tokens) - test], context, batch, seed)
    warmup = min(int(r["schedule.warmup"] * batches.per_epoch + 0.5), steps)
    optimizer = torch.optim.AdamW(
        net.groups(r["optimizer.weight_decay"]), lr=1.0,
        betas=(r["optimizer.beta1"], r["optimizer.beta2"]), eps=r["optimizer.epsilon"])
    losses = []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate(r, step, steps, warmup)
        loss = net.loss(*batches[step])
        optimizer.zero_grad()
        loss.backward()
        if r["optimizer.clip"] > 0:
            torch.nn.utils.clip_grad_norm_(list(net.w.values()), r["optimizer.clip"])
        optimizer.step()
        losses.append(loss.item())
    return losses, evaluate(net, tokens[len(tokens) - test:], context)


@torch.no_grad()
def evaluate(net, tokens, context):
    if len(tokens) < 2:
        return math.nan
    total = 0.0
    for at in range(0, len(tokens) - 1, context):
        row = tokens[at:at + context + 1]
        total += net.loss(row[None, :-1], row[None, 1:], "sum").item()
    return total / (len(tokens) - 1)


def compare(args, seed, folder):
    first = f"{folder}/first-{seed}"
    # A rate too small to move a weight: what is left are the initial ones.
    train_ours(args, seed, 1, first, ["optimizer.lr=1e-30", "optimizer.weight_decay=0"])
    net = Transformer(f"{first}/model.safetensors")
    r = read_recipe(f"{first}/recipe.ini")
    steps = max(1, round(args.tokens / (r["train.batch"] * r["model.context"])))
    started = time.time()
    result, ours = train_ours(args, seed, steps, f"{folder}/run-{seed}")
    middle = time.time()
    r = read_recipe(f"{folder}/run-{seed}/recipe.ini")
    index = {c: i for i, c in enumerate(net.characters)}
    with open(args.text, newline="", encoding="utf-8") as f:
        tokens = torch.tensor([index[ord(c)] for c in f.read()])
    theirs, validation = train_theirs(net, tokens, r, steps, seed)
    last = Transformer(f"{folder}/run-{seed}/model.safetensors")
    weights = max((last.w[n] - net.w[n]).abs().max().item() for n in net.w)
    off = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    assert len(ours) == len(theirs) == steps
    validation_ours = math.nan if result["test_loss"] is None else result["test_loss"]
    print(f"seed {seed}, {steps} steps of {int(r['train.batch'] * r['model.context'])} tokens: "
          f"validation loss {validation_ours:.4f}, PyTorch {validation:.4f}; last training loss "
          f"{ours[-1]:.4f}, {theirs[-1]:.4f}; steps differ by {off:.1e}, weights by "
          f"{weights:.1e}; {middle - started:.0f} s, {time.time() - middle:.0f} s", flush=True)
    return off, weights


def main():
    parser = argparse.ArgumentParser()
    for name in ("stint", "recipe", "text"):
        parser.add_argument(name)
    parser.add_argument("--tokens", type=float, default=5e6)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tolerance", type=float, default=math.inf)
    parser.add_argument("--folder")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as scratch:
        worst = [compare(args, int(seed), args.folder or scratch)
                 for seed in args.seeds.split(",")]
    if max(max(pair) for pair in worst) > args.tolerance:
        sys.exit("Stint and PyTorch differ")


if __name__ == "__main__":
    os.environ.pop("OMP_NUM_THREADS", None)
    main()
