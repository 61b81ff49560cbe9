#!/usr/bin/env python3
"""Texts that are drawn together, beside one alone and beside transformers: tokens a second.

A model of GPT-2's shape (124 M values, drawn at random; every text takes the same work) is
served by `stint serve`; 1, 2, 4, 8, .. clients ask for texts, each as soon as its last one
came. With --peer, `transformers` draws the same number of texts in one batch, with its keys
and values kept, in this process (pip install transformers torch).
usage: serve_texts.py [--stint PROGRAM] [--streams 1,8] [--tokens 64] [-j N] [--peer] [--json]
"""
import argparse
import http.client
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

DEPTH, WIDTH, HEADS, CONTEXT, VOCABULARY = 12, 768, 12, 1024, 50257
PROMPT = "The fox "  # 8 tokens of a byte


def tensors():
    yield "wte.weight", (VOCABULARY, WIDTH)
    yield "wpe.weight", (CONTEXT, WIDTH)
    for i in range(DEPTH):
        for name, shape in (("ln_1.weight", (WIDTH,)), ("ln_1.bias", (WIDTH,)),
                            ("attn.c_attn.weight", (WIDTH, 3 * WIDTH)), ("attn.c_attn.bias", (3 * WIDTH,)),
                            ("attn.c_proj.weight", (WIDTH, WIDTH)), ("attn.c_proj.bias", (WIDTH,)),
                            ("ln_2.weight", (WIDTH,)), ("ln_2.bias", (WIDTH,)),
                            ("mlp.c_fc.weight", (WIDTH, 4 * WIDTH)), ("mlp.c_fc.bias", (4 * WIDTH,)),
                            ("mlp.c_proj.weight", (4 * WIDTH, WIDTH)), ("mlp.c_proj.bias", (WIDTH,))):
            yield f"h.{i}.{name}", shape
    yield "ln_f.weight", (WIDTH,)
    yield "ln_f.bias", (WIDTH,)


def byte_letters():
    """GPT-2's letter of each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(other)) for b in range(256)]


def make_model(folder):
    rng = np.random.default_rng(1)
    head, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors():
        size = 4 * int(np.prod(shape))
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(head).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors():
            x = rng.standard_normal(shape, np.float32) * 0.02 + ("ln" in name and name.endswith("weight"))
            f.write(x.astype("<f4").tobytes())
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": VOCABULARY,
              "n_positions": CONTEXT, "n_ctx": CONTEXT, "n_embd": WIDTH, "n_layer": DEPTH, "n_head": HEADS,
              "activation_function": "gelu_new"}
    json.dump(config, open(os.path.join(folder, "config.json"), "w"))
    json.dump({c: i for i, c in enumerate(byte_letters())}, open(os.path.join(folder, "vocab.json"), "w"))
    open(os.path.join(folder, "merges.txt"), "w").write("#version: 0.2\n")


def ask(address, seed, tokens):
    c = http.client.HTTPConnection(address, timeout=600)
    c.request("POST", "/v2/models/m/generate", json.dumps(
        {"text_input": PROMPT, "parameters": {"max_tokens": tokens, "seed": seed}}))
    r = c.getresponse()
    body = json.loads(r.read())
    assert r.status == 200 and body["details"]["tokens"] == tokens, body


def rate(address, streams, tokens, rounds):
    """Tokens drawn a second, the reading of the prompts counted in."""
    def client(number):
        for i in range(rounds):
            ask(address, number * rounds + i, tokens)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(streams)]
    begin = time.time()
    [t.start() for t in threads]
    [t.join() for t in threads]
    return streams * rounds * tokens / (time.time() - begin)


def peer(folder, streams, tokens, rounds, threads):
    import torch
    import transformers
    torch.set_num_threads(threads)
    model = transformers.GPT2LMHeadModel.from_pretrained(folder, local_files_only=True)
    ids = torch.tensor([list(PROMPT.encode())] * streams)
    begin = time.time()
    for i in range(rounds):
        torch.manual_seed(i)
        out = model.generate(ids, do_sample=True, temperature=0.8, top_k=0, min_new_tokens=tokens,
                             max_new_tokens=tokens, pad_token_id=0, eos_token_id=VOCABULARY - 1)
        assert out.shape == (streams, len(PROMPT) + tokens)
    return streams * rounds * tokens / (time.time() - begin)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--stint", default="stint")
    p.add_argument("--streams", default="1,2,4,8,16")
    p.add_argument("--tokens", type=int, default=64)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("-j", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--peer", action="store_true")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder, address = os.path.join(place, "m"), os.path.join(place, "address")
        os.mkdir(folder)
        make_model(folder)
        server = subprocess.Popen([a.stint, "serve", f"m={folder}", "--sla", "600s", "--cut", str(a.j), "-j", str(a.j),
                                   "--listen", "127.0.0.1:0", "--address-file", address], 
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not os.path.exists(address):
                if server.poll() is not None:
                    sys.exit("stint serve did not begin")
                time.sleep(0.1)
            at = open(address).read().strip()
            for streams in map(int, a.streams.split(",")):
                row = {"streams": streams, "stint_tokens_per_s": rate(at, streams, a.tokens, a.rounds)}
                rows.append(row)
        finally:
            server.terminate()
            server.wait()
        for row in rows:
            if a.peer:
                row["transformers_tokens_per_s"] = peer(folder, row["streams"], a.tokens, a.rounds, a.j)
    for row in rows:
        row["times_one"] = row["stint_tokens_per_s"] / rows[0]["stint_tokens_per_s"]
    if a.json:
        print(json.dumps({"threads": a.j, "tokens": a.tokens, "rows": rows}))
        return
    print(f"GPT-2's shape, {a.j} threads, texts of {a.tokens} tokens behind {len(PROMPT)}; tokens/s")
    for r in rows:
        other = r.get("transformers_tokens_per_s")
        print(f"{r['streams']:4d} together: {r['stint_tokens_per_s']:8.1f} ({r['times_one']:.2f} times one)"
              + (f"; transformers {other:8.1f}" if other else ""))


main()
