"""What embed_bench.py compares with: a DLRM in PyTorch, one id a field, SGD.

    embed_pytorch.py ram ROWS WIDTH FIELDS BATCH STEPS
    embed_pytorch.py mapped RANKS WIDTH BATCH STEPS TABLE ROWS

ram: all rows in an EmbeddingBag(sparse=True), ids uniform over the rows of their field.
mapped: rows in a mapped file (torch.from_file, shared; it begins as a hole), ids of a file of
ranks spread over its rows; rows are gathered, and updated in their place. Prints JSON."""
import json
import os
import struct
import sys
import time

import numpy as np
import torch


def model(fields, width):
    pairs = fields * (fields - 1) // 2
    return torch.nn.Sequential(torch.nn.Linear(pairs, 64), torch.nn.ReLU(),
                               torch.nn.Linear(64, 1))


def loss_of(top, rows, label):
    i, j = torch.triu_indices(rows.shape[1], rows.shape[1], 1)
    dots = torch.bmm(rows, rows.transpose(1, 2))[:, i, j]
    return torch.nn.functional.binary_cross_entropy_with_logits(top(dots), label)


def ram(rows, width, fields, batch, steps):
    table = torch.nn.EmbeddingBag(rows, width, mode="sum", sparse=True)
    top = model(fields, width)
    step = torch.optim.SGD([*top.parameters(), *table.parameters()], lr=0.01)
    per = rows // fields
    generator = torch.Generator().manual_seed(1)
    times = []
    for _ in range(steps):
        ids = torch.randint(per, (batch, fields), generator=generator) + torch.arange(
            fields) * per
        label = torch.randint(2, (batch, 1), generator=generator).float()
        start = time.perf_counter()
        step.zero_grad()
        out = table(ids.reshape(-1), torch.arange(batch * fields))
        loss_of(top, out.reshape(batch, fields, width), label).backward()
        step.step()
        times.append(time.perf_counter() - start)
    return {"step_s": sum(times[5:]) / len(times[5:])}


def read_ranks(path):
    """Ids of a file of ranks (version 2) without numbers: [samples, fields]."""
    data = open(path, "rb").read()
    samples, _, rows, _ = struct.unpack_from("<QQQQ", data, 144)
    dense, fields, slots = struct.unpack_from("<III", data, 176)
    body, at = bytearray(), 192 + 72 * fields
    while at < len(data):
        body += data[at:min(at + 16384, len(data) - 4)]
        at += 16388
    record = np.frombuffer(bytes(body[:samples * 4 * (1 + dense + slots)]), np.uint32)
    return record.reshape(samples, -1)[:, 1 + dense:].astype(np.int64), rows


def mapped(path, width, batch, steps, file, rows):
    ids, there = read_ranks(path)
    if os.path.exists(file):
        os.remove(file)
    with open(file, "wb") as f:
        f.truncate(rows * width * 4)
    table = torch.from_file(file, shared=True, size=rows * width,
                            dtype=torch.float32).reshape(rows, width)
    spread = rows // there
    top = model(ids.shape[1], width)
    step = torch.optim.SGD(top.parameters(), lr=0.01)
    order = np.random.default_rng(1).permutation(len(ids))
    start = time.perf_counter()
    for k in range(steps):
        which = torch.from_numpy(ids[order[np.arange(k * batch, (k + 1) * batch) % len(ids)]])
        which = which * spread
        label = torch.randint(2, (batch, 1)).float()
        step.zero_grad()
        unique, place = torch.unique(which, return_inverse=True)
        rows_here = table[unique].requires_grad_()
        loss_of(top, rows_here[place], label).backward()
        step.step()
        with torch.no_grad():
            table[unique] = rows_here - 0.01 * rows_here.grad
    seconds = time.perf_counter() - start
    del table
    os.remove(file)
    return {"examples_per_s": steps * batch / seconds}


if sys.argv[1] == "ram":
    result = ram(*map(int, sys.argv[2:7]))
else:
    result = mapped(sys.argv[2], *map(int, sys.argv[3:6]), sys.argv[6], int(sys.argv[7]))
print(json.dumps({"version": torch.__version__, **result}))
