#!/usr/bin/env python3
"""The same recipe, initial weights and tokens in Stint and in PyTorch: loss of every step
and of the validation part.

    text_pytorch.py STINT RECIPE TEXT [--tokens N] [--seeds 1,2,3] [--set KEY=VALUE]...
                    [--threads N] [--tolerance T] [--folder DIR] [--bf16] [--estimate STEPS]

For text recipes with characters as tokens, adamw, a cosine or constant schedule and no
dropout; with quantise.bits, train.validation, loss.reference (another run) and
loss.gradient_penalty, if wanted. The model is written from the formulas with
torch.nn.functional alone; windows come from our generator (Philox), written out here.
--tolerance makes a difference above it an error: of single losses, relative, and of the
final weights, absolute.

With --folder a comparison that was broken off goes on where it was when the same command is
given again: both sides keep checkpoints there, and the result of each seed that is done.
--bf16 trains both in bfloat16 (Stint's precision = bf16, torch.autocast). --estimate says
what a seed will take, from that many steps of each.

    text_pytorch.py stint recipes/shakespeare-6x384.ini tinyshakespeare.txt --folder 6x384
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


class Rounded(torch.autograd.Function):
    """A weight as so many bits and a scale a column hold it; straight-through."""

    @staticmethod
    def forward(_, w, bits):
        step = w.abs().amax(0, keepdim=True) / (2 ** (bits - 1) - 1)
        return torch.where(step > 0, (w / step).round() * step, torch.zeros_like(w))

    @staticmethod
    def backward(_, dy):
        return dy, None


class Transformer:
    bf16 = False
    bits = 0
    reference = None  # another one, that is not trained
    parts = None  # what its recipe says of [loss]
    penalty = 0  # what the squared slope of the loss by the embeddings counts

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
        w = self.w[name + ".weight"]
        y = x @ (Rounded.apply(w, self.bits) if self.bits else w)
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
        # (That one is differentiated once.)
        if hasattr(F, "scaled_dot_product_attention") and not self.penalty:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(size)
            hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
            y = scores.masked_fill(hidden, -math.inf).softmax(-1) @ v
        return self.linear(y.transpose(1, 2).reshape(b, t, -1), name + ".c_proj")

    def feed(self, x, name):
        if self.llama:
            return self.linear(F.silu(self.linear(x, name + ".gate"))
                               * self.linear(x, name + ".up"), name + ".down")
        u = F.gelu(self.linear(x, name + ".c_fc"), approximate="tanh")
        return self.linear(u, name + ".c_proj")

    def loss(self, tokens, labels, reduction="mean"):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            return self.loss_within(tokens, labels, reduction)

    def logits(self, tokens):
        x = self.embedded = F.embedding(tokens, self.w["wte.weight"])
        if not self.llama:
            x = x + self.w["wpe.weight"][:tokens.shape[1]]
        for i in range(self.depth):
            h = f"h.{i}."
            x = x + self.attend(self.norm(x, h + "ln_1"), h + "attn")
            x = x + self.feed(self.norm(x, h + "ln_2"), h + "mlp")
        x = self.norm(x, "ln_f")
        logits = x @ self.w["lm_head.weight" if self.llama else "wte.weight"].T
        return logits.flatten(0, 1).float()

    def loss_within(self, tokens, labels, reduction):
        return F.cross_entropy(self.logits(tokens), labels.flatten(), reduction=reduction)

    def losses(self, tokens, labels):
        """The whole and the part against the labels: that, the reference's logits and its
        probabilities, by their factors."""
        if not self.reference:
            return (self.loss(tokens, labels),) * 2
        with torch.no_grad():
            v = self.reference.logits(tokens)
        u, p = self.logits(tokens), self.parts
        t, top = p["temperature"], int(p["top"])
        target = v / t
        if top:
            target = target.masked_fill(v < v.topk(top, 1).values[:, -1:], -math.inf)
        hard = F.cross_entropy(u, labels.flatten())
        return (p["hard"] * hard + p["pairing"] * F.mse_loss(u, v)
                + p["soft"] * t * t * F.cross_entropy(u / t, target.softmax(1))), hard

    def objective(self, tokens, labels):
        """The loss, and what is to fall: with the mean over the sequences of the squared
        norm of their own loss's slope by their embeddings."""
        loss, hard = self.losses(tokens, labels)
        if not self.penalty:
            return loss, loss
        slope, = torch.autograd.grad(hard, self.embedded, create_graph=True)
        return loss, loss + self.penalty * len(tokens) * slope.square().sum()

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


def train_ours(args, seed, steps, out, extra=(), resume=False):
    sets = [f"--set={s}" for s in list(args.set) + list(extra)]
    sets += ["--precision=bf16"] * args.bf16
    sets.append("--resume" if resume else "--force")
    r = subprocess.run([args.stint, "train", args.recipe, "--data", args.text, "--out", out,
                        "--quiet", "--json", "--error=0", f"--seed={seed}",
                        f"--steps={steps}", f"-j{args.threads}", "--set=run.log_every=1",
                        *sets], check=True, stdout=subprocess.PIPE)
    with open(f"{out}/log.jsonl") as f:
        lines = [json.loads(line) for line in f]
    losses = {e["step"]: e["loss"] for e in lines if e["event"] == "step"}
    return json.loads(r.stdout), [losses[s] for s in sorted(losses)]


def train_theirs(net, tokens, r, steps, seed, kept=None):
    context, batch = int(r["model.context"]), int(r["train.batch"])
    test = int(len(tokens) * r["data.validation"])
    held = int((len(tokens) - test) * r["train.validation"])
    batches = Batches(tokens[:len(tokens) - test - held], context, batch, seed)
    warmup = min(int(r["schedule.warmup"] * batches.per_epoch + 0.5), steps)
    optimizer = torch.optim.AdamW(
        net.groups(r["optimizer.weight_decay"]), lr=1.0,
        betas=(r["optimizer.beta1"], r["optimizer.beta2"]), eps=r["optimizer.epsilon"])
    losses = []
    if kept and os.path.exists(kept):
        weights, moments, losses = torch.load(kept)
        optimizer.load_state_dict(moments)
        with torch.no_grad():
            for name, p in net.w.items():
                p.copy_(weights[name])
    for step in range(len(losses), steps):
        for group in optimizer.param_groups:
            group["lr"] = rate(r, step, steps, warmup)
        loss, objective = net.objective(*batches[step])
        optimizer.zero_grad()
        objective.backward()
        if r["optimizer.clip"] > 0:
            torch.nn.utils.clip_grad_norm_(list(net.w.values()), r["optimizer.clip"])
        optimizer.step()
        losses.append(loss.item())
        if kept and (step + 1) % 50 == 0:
            torch.save((net.w, optimizer.state_dict(), losses), kept + ".new")
            os.replace(kept + ".new", kept)
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


def read_tokens(args, characters):
    index = {c: i for i, c in enumerate(characters)}
    with open(args.text, newline="", encoding="utf-8") as f:
        return torch.tensor([index[ord(c)] for c in f.read()])


def begin(args, seed, folder):
    """The initial model, in PyTorch, with its recipe."""
    first = f"{folder}/first-{seed}"
    # A rate too small to move a weight: what is left are the initial ones.
    train_ours(args, seed, 1, first, ["optimizer.lr=1e-30", "optimizer.weight_decay=0"])
    net = Transformer(f"{first}/model.safetensors")
    net.bf16 = args.bf16
    r = read_recipe(f"{first}/recipe.ini")
    net.bits = int(r["quantise.bits"])
    net.penalty = r["loss.gradient_penalty"]
    for s in args.set:  # (a path of this machine is not part of the resolved recipe)
        if s.startswith("loss.reference="):
            net.reference = Transformer(s.split("=", 1)[1] + "/model.safetensors")
    if net.reference:
        net.parts = {k: r["loss." + k] for k in
                     ("hard", "pairing", "soft", "temperature", "top")}
    return net, r


def compare(args, seed, folder):
    done = f"{folder}/result-{seed}.json"
    if os.path.exists(done):
        with open(done) as f:
            line, *differences = json.load(f)
        print(line, "(from before)", flush=True)
        return differences
    net, r = begin(args, seed, folder)
    batch_tokens = int(r["train.batch"] * r["model.context"])
    steps = max(1, round(args.tokens / batch_tokens))
    started = time.time()
    result, ours = train_ours(args, seed, steps, f"{folder}/run-{seed}", resume=True)
    middle = time.time()
    r = read_recipe(f"{folder}/run-{seed}/recipe.ini")
    tokens = read_tokens(args, net.characters)
    theirs, validation = train_theirs(net, tokens, r, steps, seed, f"{folder}/torch-{seed}.pt")
    last = Transformer(f"{folder}/run-{seed}/model.safetensors")
    weights = max((last.w[n] - net.w[n]).abs().max().item() for n in net.w)
    off = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    assert len(ours) == len(theirs) == steps
    validation_ours = math.nan if result["test_loss"] is None else result["test_loss"]
    line = (f"seed {seed}, {steps} steps of {batch_tokens} tokens: "
            f"validation loss {validation_ours:.4f}, PyTorch {validation:.4f}; last training "
            f"loss {ours[-1]:.4f}, {theirs[-1]:.4f}; steps differ by {off:.1e}, weights by "
            f"{weights:.1e}; {middle - started:.0f} s, {time.time() - middle:.0f} s")
    with open(done, "w") as f:
        json.dump([line, off, weights], f)
    print(line, flush=True)
    return off, weights


def estimate(args, seed, folder):
    """Minutes a seed of each side: the time of a step, without the first, times steps."""
    net, r = begin(args, seed, folder)
    steps = max(1, round(args.tokens / (r["train.batch"] * r["model.context"])))
    train_ours(args, seed, args.estimate + 1, f"{folder}/short",
               ["train.eval_every=0"])
    with open(f"{folder}/short/log.jsonl") as f:
        lines = [json.loads(line) for line in f]
    own = [r["train.batch"] / e["images_per_s"] for e in lines if e["event"] == "step"][1:]
    tokens, times = read_tokens(args, net.characters), []
    r = read_recipe(f"{folder}/short/recipe.ini")
    test = int(len(tokens) * r["data.validation"])
    batches = Batches(tokens[:len(tokens) - test], int(r["model.context"]),
                      int(r["train.batch"]), seed)
    for step in range(args.estimate + 1):
        started = time.time()
        net.loss(*batches[step]).backward()
        times.append(time.time() - started)
    for name, seconds in (("Stint", own), ("PyTorch", times[1:])):
        each = sorted(seconds)[len(seconds) // 2]
        print(f"{name}: {each:.2f} s a step, {steps} steps: {each * steps / 60:.0f} minutes a "
              "seed, without validation", flush=True)


def claim(args, folder):
    """A folder belongs to one comparison: what is in it goes on."""
    os.makedirs(folder, exist_ok=True)
    with open(args.recipe) as f:
        settings = [f.read(), os.path.abspath(args.text), args.set, args.tokens, args.bf16]
    kept = f"{folder}/settings.json"
    if not os.path.exists(kept):
        with open(kept, "w") as f:
            json.dump(settings, f)
    with open(kept) as f:
        if json.load(f) != settings:
            sys.exit(f"{folder} holds a comparison of other settings; give another --folder")


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
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--estimate", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    seeds = [int(seed) for seed in args.seeds.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or scratch
        claim(args, folder)
        if args.estimate:
            return estimate(args, seeds[0], folder)
        worst = [compare(args, seed, folder) for seed in seeds]
    if max(max(pair) for pair in worst) > args.tolerance:
        sys.exit("Stint and PyTorch differ")
    return None


# The C library gives large blocks back at once and PyTorch asks for them again at every
# step: half of its time went by in page faults.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
               "MALLOC_TOP_PAD_": str(1 << 29)}


if __name__ == "__main__":
    os.environ.pop("OMP_NUM_THREADS", None)
    if KEEP_MEMORY.items() - os.environ.items():
        os.environ.update(KEEP_MEMORY)
        os.execv(sys.executable, [sys.executable, *sys.argv])
    main()
