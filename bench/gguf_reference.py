#!/usr/bin/env python3
"""Logits of a GGUF file in double precision by NumPy, after a prompt, for bench/gguf_llama.sh.

usage: gguf_reference.py MODEL.gguf plain|table TOKEN...   (float64 on stdout)

Llama and GPT-2 as bench/gguf_llama_model.py writes them; packed weights are what the package `gguf`
unpacks. table: GELU as llama.cpp's CPU takes it, half-precision numbers of a half-precision
argument, and all else in double.
"""

import sys

import gguf
import numpy as np


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(x, table):
    def plain(x):
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * x * (1 + 0.044715 * x * x)))
    if not table:
        return plain(x)
    looked_up = plain(x.astype(np.float16).astype(np.float64)).astype(np.float16).astype(np.float64)
    return np.where(x <= -10, 0, np.where(x >= 10, x, looked_up))


def turned(x, base):
    """Rotary positions of neighbouring pairs; x [tokens, heads, size]."""
    n, _, size = x.shape
    angle = np.arange(n)[:, None] * base ** (-np.arange(0, size, 2) / size)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)


def attend(q, k, v):
    """q [tokens, heads, size], k and v of as many heads or fewer; causal."""
    n, heads, size = q.shape
    k, v = (np.repeat(t, heads // t.shape[1], 1) for t in (k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(size)
    scores = np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf)
    return np.einsum("hqk,khd->qhd", softmax(scores), v).reshape(n, -1)


def main():
    path, mode, tokens = sys.argv[1], sys.argv[2], np.array(sys.argv[3:], int)
    reader = gguf.GGUFReader(path)
    w = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}

    def said(key):
        return reader.fields[key].contents()
    arch = said("general.architecture")
    heads, layers = said(f"{arch}.attention.head_count"), said(f"{arch}.block_count")

    def norm(x, name):
        if arch == "llama":
            root = np.sqrt((x * x).mean(-1, keepdims=True) + said("llama.attention.layer_norm_rms_epsilon"))
            return x / root * w[name + ".weight"]
        root = np.sqrt(x.var(-1, keepdims=True) + said("gpt2.attention.layer_norm_epsilon"))
        return (x - x.mean(-1, keepdims=True)) / root * w[name + ".weight"] + w[name + ".bias"]

    def product(x, name):
        return x @ w[name + ".weight"].T + w.get(name + ".bias", 0)

    x = w["token_embd.weight"][tokens]
    if arch == "gpt2":
        x = x + w["position_embd.weight"][:len(tokens)]
    size = x.shape[1] // heads
    for i in range(layers):
        at = f"blk.{i}."
        h = norm(x, at + "attn_norm")
        if arch == "llama":
            q, k, v = (product(h, at + "attn_" + c).reshape(len(tokens), -1, size) for c in "qkv")
            q, k = (turned(t, said("llama.rope.freq_base")) for t in (q, k))
        else:
            q, k, v = (t.reshape(len(tokens), heads, size) for t in np.split(product(h, at + "attn_qkv"), 3, -1))
        x = x + product(attend(q, k, v), at + "attn_output")
        h = norm(x, at + "ffn_norm")
        if arch == "llama":
            gate = product(h, at + "ffn_gate")
            h = gate / (1 + np.exp(-gate)) * product(h, at + "ffn_up")
        else:
            h = gelu(product(h, at + "ffn_up"), mode == "table")
        x = x + product(h, at + "ffn_down")
    sys.stdout.buffer.write(product(norm(x, "output_norm"), "output")[-1].tobytes())


if __name__ == "__main__":
    main()
