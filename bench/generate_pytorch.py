"""Tokens a second of one stream in PyTorch: GPT-2 124M with random weights, keys and
values kept in buffers made once, the peer of generate_bench.
usage: generate_pytorch.py [THREADS [TOKENS]]"""

import resource
import sys
import time

import torch
import torch.nn.functional as F

DEPTH, WIDTH, HEADS, VOCABULARY, CONTEXT, PROMPT = 12, 768, 12, 50257, 1024, 64


def weights():
    def normal(*shape):
        return torch.randn(*shape) * 0.02

    layers = []
    for _ in range(DEPTH):
        layers.append({
            "ln1": (torch.ones(WIDTH), torch.zeros(WIDTH)),
            "qkv": (normal(3 * WIDTH, WIDTH), torch.zeros(3 * WIDTH)),
            "proj": (normal(WIDTH, WIDTH), torch.zeros(WIDTH)),
            "ln2": (torch.ones(WIDTH), torch.zeros(WIDTH)),
            "fc": (normal(4 * WIDTH, WIDTH), torch.zeros(4 * WIDTH)),
            "down": (normal(WIDTH, 4 * WIDTH), torch.zeros(WIDTH)),
            "keys": torch.zeros(HEADS, CONTEXT, WIDTH // HEADS),
            "values": torch.zeros(HEADS, CONTEXT, WIDTH // HEADS),
        })
    return (normal(VOCABULARY, WIDTH), normal(CONTEXT, WIDTH), layers,
            (torch.ones(WIDTH), torch.zeros(WIDTH)))


def step(model, tokens, position):
    """Logits of what follows the last of the tokens, which stand from position on."""
    words, places, layers, last = model
    count, end = len(tokens), position + len(tokens)
    x = words[tokens] + places[position:end]
    seen = torch.ones(count, end, dtype=torch.bool).tril(position)
    for w in layers:
        a = F.layer_norm(x, (WIDTH,), *w["ln1"])
        q, k, v = F.linear(a, *w["qkv"]).view(count, 3, HEADS, -1).permute(1, 2, 0, 3)
        w["keys"][:, position:end] = k
        w["values"][:, position:end] = v
        scores = q @ w["keys"][:, :end].transpose(1, 2) * (WIDTH // HEADS) ** -0.5
        if count > 1:
            scores = scores.masked_fill(~seen, float("-inf"))
        a = (scores.softmax(-1) @ w["values"][:, :end]).transpose(0, 1)
        x = x + F.linear(a.reshape(count, WIDTH), *w["proj"])
        a = F.layer_norm(x, (WIDTH,), *w["ln2"])
        x = x + F.linear(F.gelu(F.linear(a, *w["fc"]), approximate="tanh"), *w["down"])
    return F.linear(F.layer_norm(x[-1:], (WIDTH,), *last), words)


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 24
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    with torch.inference_mode():
        model = weights()
        token = step(model, torch.zeros(PROMPT, dtype=torch.long), 0).argmax(-1)
        times = []
        for i in range(count):
            start = time.perf_counter()
            token = step(model, token, PROMPT + i).argmax(-1)
            times.append(time.perf_counter() - start)
    times.sort()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print("PyTorch %s, %d threads: %.1f tokens/s (median %.1f); peak resident %.0f MiB"
          % (torch.__version__, threads, 1 / times[0], 1 / times[len(times) // 2], peak))


main()
