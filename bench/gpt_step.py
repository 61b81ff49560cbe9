#!/usr/bin/env python3
"""Training tokens a second and peak memory of the GPT-2 124M shape, batch 4 x 256, beside
PyTorch and llm.c, one after the other, --rounds times in turns.

    gpt_step.py STINT TEXT [--torch PYTHON]... [--llmc SOURCES] [--steps N] [--threads N]
                [--rounds N] [--precision f32|bf16] [--memory SIZE]
                [--depth 12 --width 768 --heads 12 --vocabulary 50257 --context 256 --batch 4]

Ours is `stint train` on TEXT (a byte tokeniser; the model's vocabulary is the one asked
for). --torch names an interpreter that has torch, as often as there are versions; --llmc a
checkout of karpathy/llm.c, whose train_gpt2.c is built in a scratch folder with its own flags
and the batch shape asked for, on random weights and tokens. bf16 is autocast in PyTorch, and
nothing in llm.c. --memory is our budget: the same step to the last bit, with fewer
activations held. The rate is that of the median step after the first, peak memory that
of the process (getrusage).
"""
import argparse
import json
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile

import_torch = """
import json, math, resource, sys, time
import torch, torch.nn.functional as F
a = json.loads(sys.argv[1])
torch.set_num_threads(a["threads"])
torch.manual_seed(1)
B, T, C, H, L, V = (a[k] for k in ("batch", "context", "width", "heads", "depth", "vocabulary"))
w = lambda *s: (0.02 * torch.randn(*s)).requires_grad_()
b = lambda *s: torch.zeros(*s, requires_grad=True)
o = lambda *s: torch.ones(*s, requires_grad=True)
wte, wpe = w(V, C), w(T, C)
blocks = [dict(g1=o(C), s1=b(C), qkv=w(3 * C, C), qb=b(3 * C), proj=w(C, C), pb=b(C), g2=o(C),
               s2=b(C), fc=w(4 * C, C), fb=b(4 * C), out=w(C, 4 * C), ob=b(C))
          for _ in range(L)]
g, s = o(C), b(C)
params = [wte, wpe, g, s] + [p for k in blocks for p in k.values()]
optimizer = torch.optim.AdamW(params, lr=1e-4, weight_decay=0.1)
mask = torch.ones(T, T, dtype=torch.bool).triu(1)
fused = hasattr(F, "scaled_dot_product_attention")


def attend(q, k, v):
    if fused:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = q @ k.transpose(-2, -1) / math.sqrt(C // H)
    return scores.masked_fill(mask, -math.inf).softmax(-1) @ v


def loss_of(tokens):
    x = F.embedding(tokens[:, :-1], wte) + wpe
    for k in blocks:
        qkv = F.linear(F.layer_norm(x, (C,), k["g1"], k["s1"]), k["qkv"], k["qb"])
        q, key, v = (z.view(B, T, H, -1).transpose(1, 2) for z in qkv.split(C, -1))
        y = attend(q, key, v).transpose(1, 2).reshape(B, T, C)
        x = x + F.linear(y, k["proj"], k["pb"])
        u = F.linear(F.layer_norm(x, (C,), k["g2"], k["s2"]), k["fc"], k["fb"])
        u = 0.5 * u * (1 + torch.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u ** 3))) \\
            if not a["gelu"] else F.gelu(u, approximate="tanh")
        x = x + F.linear(u, k["out"], k["ob"])
    logits = F.linear(F.layer_norm(x, (C,), g, s), wte)
    return F.cross_entropy(logits.view(-1, V), tokens[:, 1:].reshape(-1))


def step():
    tokens = torch.randint(V, (B, T + 1))
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a["precision"] == "bf16"):
        loss = loss_of(tokens)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.item()


seconds = []
for _ in range(a["steps"] + 1):
    begin = time.perf_counter()
    step()
    seconds.append(time.perf_counter() - begin)
print(json.dumps({"name": "PyTorch " + torch.__version__, "seconds": seconds[1:],
                  "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


def peak_of(command, **options):
    """Output, and peak memory of the child alone."""
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdout=out, **options)
        _, status, usage = os.wait4(child.pid, 0)
        out.seek(0)
        text = out.read().decode()
    if status != 0:
        sys.exit(f"{command[0]} failed:\n{text[-2000:]}")
    return text, usage.ru_maxrss * 1024


def ours(a, folder):
    recipe = f"{folder}/step.ini"
    with open(recipe, "w") as f:
        f.write(f"""[model]
name = gpt
depth = {a.depth}
width = {a.width}
heads = {a.heads}
context = {a.context}
vocabulary = {a.vocabulary}
[data]
tokenizer = byte
validation = 0
[train]
batch = {a.batch}
shards = 1
eval_every = 0
[optimizer]
name = adamw
lr = 1e-4
weight_decay = 0.1
[error]
tau = 0
[run]
checkpoint_every = 1000000
""")
    text, peak = peak_of([a.stint, "train", recipe, "--data", a.text, "--out",
                          f"{folder}/out", "--force", "--json", "-q", f"-j{a.threads}",
                          f"--steps={a.steps + 1}", "--set=run.log_every=1",
                          "--precision", a.precision]
                         + (["--memory", a.memory] if a.memory else []))
    with open(f"{folder}/out/log.jsonl") as f:
        lines = [json.loads(line) for line in f]
    seconds = [a.batch / e["images_per_s"] for e in lines if e["event"] == "step"][1:]
    return {"name": "Stint " + json.loads(text)["isa"], "seconds": seconds, "peak": peak}


def torch_peer(a, python):
    probe = subprocess.run([python, "-c", "import torch"], capture_output=True)
    if probe.returncode != 0:
        print(f"{python}: no torch; left out")
        return None
    args = {k: getattr(a, k) for k in ("threads", "batch", "context", "width", "heads", "depth",
                                       "vocabulary", "steps", "precision")}
    args["gelu"] = True
    text, _ = peak_of([python, "-c", import_torch, json.dumps(args)])
    return json.loads(text)


def write_random(path, header, count, kind):
    """header: the first of 256 int32; then count random numbers of kind 'f' or 'H'."""
    import random
    random.seed(3)
    with open(path, "wb") as f:
        f.write(struct.pack("<256i", *(header + [0] * (256 - len(header)))))
        piece = 1 << 16
        if kind == "f":
            values = struct.pack(f"<{piece}f", *(random.gauss(0, 0.02) for _ in range(piece)))
        while count > 0:
            n = min(count, piece)
            if kind == "H":
                values = struct.pack(f"<{n}H", *(random.randrange(256) for _ in range(n)))
            f.write(values[:n * (4 if kind == "f" else 2)])
            count -= n


def llmc_peer(a, folder):
    if a.precision != "f32":
        return None
    if not a.llmc or not os.path.exists(f"{a.llmc}/train_gpt2.c"):
        print("llm.c: no sources given; left out")
        return None
    top = f"{folder}/llmc"
    shutil.copytree(a.llmc, top, ignore=shutil.ignore_patterns(".git"))
    with open(f"{top}/train_gpt2.c") as f:
        source = f.read()
    source = source.replace("int B = 4;", f"int B = {a.batch};")
    source = source.replace("int T = 64;", f"int T = {a.context};")
    source = source.replace("step <= 40", f"step <= {a.steps}")
    source = source.replace("int val_num_batches = 5;", "int val_num_batches = 0;")
    with open(f"{top}/train_gpt2.c", "w") as f:
        f.write(source)
    subprocess.run(["make", "-C", top, "train_gpt2"], check=True, capture_output=True)
    padded = (a.vocabulary + 127) // 128 * 128
    c, layers = a.width, a.depth
    count = padded * c + a.context * c + 2 * c + layers * (12 * c * c + 13 * c)
    write_random(f"{top}/gpt2_124M.bin", [20240326, 3, a.context, a.vocabulary, layers, a.heads,
                                          c, padded], count, "f")
    data = f"{top}/dev/data/tinyshakespeare"
    os.makedirs(data, exist_ok=True)
    for part in ("train", "val"):
        tokens = a.batch * a.context * 8 + 1
        write_random(f"{data}/tiny_shakespeare_{part}.bin", [20240520, 1, tokens], tokens, "H")
    text, peak = peak_of([f"{top}/train_gpt2"], cwd=top,
                         env={**os.environ, "OMP_NUM_THREADS": str(a.threads)})
    took = [float(t) / 1e3 for t in re.findall(r"took ([0-9.]+) ms", text)]
    return {"name": "llm.c", "seconds": took[1:], "peak": peak}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stint")
    parser.add_argument("text")
    parser.add_argument("--torch", action="append", default=[])
    parser.add_argument("--llmc")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--memory", help="budget of our run, such as 2340M")
    for name, value in (("rounds", 1), ("steps", 3), ("threads", 2), ("depth", 12), ("width", 768),
                        ("heads", 12), ("vocabulary", 50257), ("context", 256), ("batch", 4)):
        parser.add_argument(f"--{name}", type=int, default=value)
    a = parser.parse_args()
    a.stint, a.text = os.path.abspath(a.stint), os.path.abspath(a.text)
    tokens = a.batch * a.context
    results = {}
    for _ in range(a.rounds):
        with tempfile.TemporaryDirectory() as folder:
            for r in [ours(a, folder), *(torch_peer(a, python) for python in a.torch),
                      llmc_peer(a, folder)]:
                if r:
                    of = results.setdefault(r["name"], {**r, "seconds": [], "peak": 0})
                    of["seconds"] += r["seconds"]
                    of["peak"] = max(of["peak"], r["peak"])
    results = list(results.values())
    own = statistics.median(results[0]["seconds"])
    print(f"{'':22} {'tokens/s':>9} {'peak MiB':>9} {'x time':>7} {'x memory':>9}")
    for r in results:
        each = statistics.median(r["seconds"])
        print(f"{r['name']:22} {tokens / each:9.1f} {r['peak'] / 2**20:9.0f} {each / own:7.2f} "
              f"{r['peak'] / results[0]['peak']:9.2f}")


if __name__ == "__main__":
    main()
