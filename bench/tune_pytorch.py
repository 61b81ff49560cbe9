#!/usr/bin/env python3
"""The peer of tune_bench.py: steps of fine-tuning in PyTorch, eager, on the CPU.

    tune_pytorch.py gpt MODE DEPTH WIDTH HEADS VOCABULARY BATCH CONTEXT STEPS
    tune_pytorch.py mcunet MODE BLOCKS BATCH SIDE STEPS

MODE: full, lora (rank 8 beside the products of attention) or scheme: attention and c_fc of
the last four blocks; of mcunet biases and weights as in the published scheme of 99 KB. BLOCKS
is a JSON list of [expand, out, size, stride, repeats] with the stem's channels in front.

Prints one JSON line: seconds of a step (median, least), the loss, the peak of the process."""
import json
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

THREADS = 2


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        n, t, c = x.shape
        q, k, v = self.c_attn(x).split(c, 2)
        q, k, v = (y.view(n, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            p = (q @ k.transpose(-2, -1)) * (q.shape[-1] ** -0.5)
            mask = torch.ones(t, t, dtype=torch.bool).tril()
            y = p.masked_fill(~mask, float("-inf")).softmax(-1) @ v
        return self.c_proj(y.transpose(1, 2).reshape(n, t, c))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, depth, width, heads, vocabulary, context):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.ln_f = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, labels):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        logits = self.ln_f(x) @ self.wte.weight.T
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class Lora(nn.Module):
    def __init__(self, inner, rank, alpha):
        super().__init__()
        self.inner, self.scale = inner, alpha / rank
        self.a = nn.Parameter(torch.randn(rank, inner.in_features) * 0.02)
        self.b = nn.Parameter(torch.zeros(inner.out_features, rank))

    def forward(self, x):
        return self.inner(x) + self.scale * (x @ self.a.T @ self.b.T)


class Residual(nn.Module):
    def __init__(self, into, expand, out, size, stride):
        super().__init__()
        wide = into * expand
        self.pw = nn.Conv2d(into, wide, 1) if expand > 1 else None
        self.dw = nn.Conv2d(wide, wide, size, stride, size // 2, groups=wide)
        self.pwl = nn.Conv2d(wide, out, 1)
        self.adds = stride == 1 and into == out

    def forward(self, x):
        y = F.relu6(self.pw(x)) if self.pw else x
        y = self.pwl(F.relu6(self.dw(y)))
        return x + y if self.adds else y


class Mcunet(nn.Module):
    def __init__(self, blocks, classes=10):
        super().__init__()
        into = blocks[0]
        self.stem = nn.Conv2d(3, into, 3, 2, 1)
        rows = []
        for expand, out, size, stride, repeats in blocks[1:]:
            for i in range(repeats):
                rows.append(Residual(into, expand, out, size, stride if i == 0 else 1))
                into = out
        self.blocks = nn.Sequential(*rows)
        self.classifier = nn.Linear(into, classes)

    def forward(self, x, labels):
        y = self.blocks(F.relu6(self.stem(x)))
        return F.cross_entropy(self.classifier(y.mean((2, 3))), labels)


# Convolutions of the scheme of 99 KB by their number, and the biases of the last so many.
MCUNET_WEIGHTS, MCUNET_BIASES = (21, 24, 27, 30, 36, 39), 22


def freeze_mcunet(model):
    layers = [m for m in model.modules() if isinstance(m, nn.Conv2d)]
    for i, m in enumerate(layers):
        m.weight.requires_grad_(i in MCUNET_WEIGHTS)
        m.bias.requires_grad_(i >= len(layers) - MCUNET_BIASES)


def freeze_gpt(model, mode):
    if mode == "full":
        return
    for p in model.parameters():
        p.requires_grad_(False)
    if mode == "lora":
        for b in model.h:
            b.c_attn, b.c_proj = Lora(b.c_attn, 8, 16), Lora(b.c_proj, 8, 16)
        return
    for b in model.h[-4:]:
        for m in (b.c_attn, b.c_proj, b.c_fc):
            m.weight.requires_grad_(True)


def measure(model, x, labels, steps):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=1e-3)
    seconds = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = model(x, labels)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    seconds = sorted(seconds[1:])
    print(json.dumps({
        "torch": torch.__version__, "step_s": seconds[len(seconds) // 2], "least_s": seconds[0],
        "loss": loss.item(), "trained": sum(p.numel() for p in trained),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    kind, mode, *rest = sys.argv[1:]
    if kind == "gpt":
        depth, width, heads, vocabulary, batch, context, steps = map(int, rest)
        model = Gpt(depth, width, heads, vocabulary, context)
        freeze_gpt(model, mode)
        x = torch.randint(vocabulary, (batch, context + 1))
        measure(model, x[:, :-1], x[:, 1:].contiguous(), steps)
    else:
        blocks, (batch, side, steps) = json.loads(rest[0]), map(int, rest[1:])
        model = Mcunet(blocks)
        if mode != "full":
            freeze_mcunet(model)
        measure(model, torch.randn(batch, 3, side, side), torch.randint(10, (batch,)), steps)


if __name__ == "__main__":
    main()
