"""DLRM in PyTorch from the first weights of a Stint run, on the same batches: losses.

usage: pytorch_dlrm.py FIRST RUN CLICKS.csv RULE BATCH
FIRST: a run of one step at next to no rate, with rows.safetensors exported beside; RUN: the
run to compare with, logged each step, in the order of the file. The csv has 13 numbers and
bags of ids apart by |. Prints the largest difference of a loss.
"""
import csv
import json
import struct
import sys

import numpy as np
import torch

torch.set_num_threads(1)


def tensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    kinds = {"F32": np.float32, "U8": np.uint8, "I64": np.int64, "I32": np.int32}
    out = {}
    for name, row in head.items():
        if name != "__metadata__":
            a, e = row["data_offsets"]
            out[name] = np.frombuffer(data[8 + n + a:8 + n + e],
                                      kinds[row["dtype"]]).reshape(row["shape"]).copy()
    return out


first, run, clicks, rule, batch = sys.argv[1:6]
batch = int(batch)
dense = {k: torch.nn.Parameter(torch.tensor(v))
         for k, v in tensors(first + "/model.safetensors").items()}
table = tensors(first + "/rows.safetensors")
rows = torch.nn.Parameter(torch.tensor(table["embeddings"]))
text, start = table["ids"].tobytes().decode(), table["id_start"]
rank = {(int(f), text[start[r]:start[r + 1]]): r for r, f in enumerate(table["field"])}
lines = list(csv.reader(open(clicks)))[1:]
fields = len(lines[0]) - 14
labels = torch.tensor([[float(r[0])] for r in lines])
numbers = torch.tensor([[float(x) if x else 0.0 for x in r[1:14]] for r in lines])
other = {-1 - int(f): r for r, f in enumerate(table["field"]) if f < 0}
bags = [[[rank.get((f, i), other[f]) for i in r[14 + f].split("|")] for f in range(fields)] for r in lines]


def perceptron(x, name, last):
    for i in range(99):
        if f"{name}{i}.weight" not in dense:
            return x
        x = x @ dense[f"{name}{i}.weight"] + dense[f"{name}{i}.bias"]
        if last or f"{name}{i + 1}.weight" in dense:
            x = torch.relu(x)


def forward(which):
    x = perceptron(numbers[which], "bottom", True)
    flat, offsets = [], []
    for i in which:
        for f in range(fields):
            offsets.append(len(flat))
            flat += bags[i][f]
    e = torch.nn.functional.embedding_bag(torch.tensor(flat), rows, torch.tensor(offsets),
                                          mode="sum", sparse=True)
    e = e.reshape(len(which), fields, -1)
    z = torch.cat([x[:, None], e], 1)
    i, j = torch.triu_indices(fields + 1, fields + 1, 1)
    x = torch.cat([x, torch.bmm(z, z.transpose(1, 2))[:, i, j]], 1)
    return perceptron(x, "top", False)


steps = [json.loads(l) for l in open(run + "/log.jsonl")]
want = [s["loss"] for s in steps if s["event"] == "step"]
top = torch.optim.SGD(dense.values(), lr=0.05)
own = {"sgd": lambda: torch.optim.SGD([rows], lr=0.05),
       "adagrad": lambda: torch.optim.Adagrad([rows], lr=0.05, eps=1e-2),
       "lazy-adam": lambda: torch.optim.SparseAdam([rows], lr=0.05, eps=1e-2),
       "rowwise-adagrad": lambda: None}[rule]()
sums = torch.zeros(len(rows))
worst = 0.0
for step, loss_there in enumerate(want):
    which = [(step * batch + i) % (len(lines) - len(lines) // 10) for i in range(batch)]
    loss = torch.nn.functional.binary_cross_entropy_with_logits(forward(which),
                                                                labels[which])
    worst = max(worst, abs(loss.item() - loss_there))
    top.zero_grad()
    rows.grad = None
    loss.backward()
    top.step()
    if own:
        own.step()
    else:
        g = rows.grad.coalesce()
        at, value = g.indices()[0], g.values()
        sums[at] += value.pow(2).mean(1)
        with torch.no_grad():
            rows[at] -= 0.05 * value / (sums[at].sqrt() + 1e-2)[:, None]
print("%d steps, largest difference %.3g, losses %.4f to %.4f"
      % (len(want), worst, want[0], want[-1]))
sys.exit(0 if worst <= 1e-5 and len(want) >= 200 else 1)
