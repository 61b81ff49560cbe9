#!/usr/bin/env python3
"""MovieLens 100k (RecBole's ml-100k.inter) by Stint and by PyTorch from the same weights, on the
same batches: losses of 200 steps, the test AUC after two epochs with three seeds, and the AUC
itself beside scikit-learn's.

    bench/embed_movielens.py ml-100k.inter [--stint build/release/stint]     # a minute

Run it by a Python that has NumPy, PyTorch and, for the last line, scikit-learn (or name one by
--sklearn). A seed shuffles the lines, and draws the first weights."""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH, EPOCHS = 256, 2
RECIPE = """[model]
name = dlrm
width = 16
bottom = none
top = 64,32
[data]
format = csv
separator = tab
label = rating>=4
categorical = user_id,item_id
dense = none
validation = 0.2
[train]
order = file
epochs = %d
batch = %d
shards = 4
[optimizer]
name = %s
lr = %g
momentum = 0
[schedule]
name = constant
[embedding]
optimizer = adagrad
lr = 0.05
epsilon = 0.01
[run]
log_every = 1
"""


def tensors(path):
    data = open(path, "rb").read()
    n = int.from_bytes(data[:8], "little")
    kinds = {"F32": np.float32, "U8": np.uint8, "I64": np.int64, "I32": np.int32}
    out = {}
    for name, row in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            a, e = row["data_offsets"]
            out[name] = np.frombuffer(data[8 + n + a:8 + n + e],
                                      kinds[row["dtype"]]).reshape(row["shape"]).copy()
    return out


class Peer(torch.nn.Module):
    """The same model: rows of user and film, their dot product, a perceptron. Without numbers
    the rows stand in for the bottom's vector."""

    def __init__(self, folder):
        super().__init__()
        table = tensors(folder + "/rows.safetensors")
        self.rows = torch.nn.Parameter(torch.tensor(table["embeddings"]))
        self.dense = torch.nn.ParameterDict(
            {k.replace(".", "_"): torch.nn.Parameter(torch.tensor(v))
             for k, v in tensors(folder + "/model.safetensors").items()})
        text, start = table["ids"].tobytes().decode(), table["id_start"]
        self.rank = {(int(f), text[start[r]:start[r + 1]]): r
                     for r, f in enumerate(table["field"]) if f >= 0}
        self.other = {-1 - int(f): r for r, f in enumerate(table["field"]) if f < 0}

    def ids(self, lines):
        return torch.tensor([[self.rank.get((f, line[f]), self.other[f]) for f in range(2)]
                             for line in lines])

    def forward(self, ids):
        e = torch.nn.functional.embedding(ids, self.rows)
        x = torch.cat([e.reshape(len(ids), -1), (e[:, 0] * e[:, 1]).sum(1, keepdim=True)], 1)
        if x.shape[1] != self.dense["top0_weight"].shape[0]:
            x = x[:, -1:]  # dot products alone
        for i in range(3):
            x = x @ self.dense["top%d_weight" % i] + self.dense["top%d_bias" % i]
            x = torch.relu(x) if i < 2 else x
        return x


def train_peer(folder, cells, label, train, name, lr, steps):
    """In the precision of the labels: the model and its losses."""
    peer = Peer(folder + "/first").to(label.dtype)
    ids = peer.ids(cells)
    top = (torch.optim.SGD if name == "sgd" else torch.optim.Adam)(peer.dense.values(), lr=lr)
    rows = torch.optim.Adagrad([peer.rows], lr=0.05, eps=0.01)
    losses = []
    for k in range(steps):
        which = torch.arange(k * BATCH, (k + 1) * BATCH) % train
        loss = torch.nn.functional.binary_cross_entropy_with_logits(peer(ids[which]),
                                                                    label[which])
        losses.append(loss.item())
        top.zero_grad()
        rows.zero_grad()
        loss.backward()
        top.step()
        rows.step()
    return peer, losses


def apart(a, b):
    return max(abs(x - y) for x, y in zip(a, b))


def auc(score, label):
    """By ranks, ties half."""
    order = np.argsort(score, kind="stable")
    s, ranks = score[order], np.empty(len(score))
    edges = np.flatnonzero(np.r_[True, s[1:] != s[:-1], True])
    for a, b in zip(edges, edges[1:]):
        ranks[order[a:b]] = (a + b + 1) / 2
    ones = label.sum()
    return (ranks[label == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(label) - ones))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inter")
    parser.add_argument("--stint", default=os.path.join(HERE, "../build/release/stint"))
    parser.add_argument("--sklearn", default=sys.executable)
    args = parser.parse_args()
    stint, source = os.path.abspath(args.stint), os.path.abspath(args.inter)
    folder = tempfile.mkdtemp(prefix="stint-ml-")
    env = dict(os.environ, XDG_CACHE_HOME=folder)

    def run(*words):
        done = subprocess.run([stint, *words, "-q"], cwd=folder, env=env, capture_output=True,
                              text=True)
        if done.returncode:
            sys.exit("%s: %s" % (" ".join(words), done.stderr.strip()))
        return done.stdout

    torch.set_num_threads(1)
    head, *lines = open(source).read().splitlines()
    for seed in (1, 2, 3):
        random.Random(seed).shuffle(lines)
        with open(folder + "/ml.inter", "w") as f:
            f.write("\n".join([head, *lines]) + "\n")
        cells = [line.split("\t") for line in lines]
        label = torch.tensor([[float(float(c[2]) >= 4)] for c in cells])
        train = len(lines) - int(0.2 * len(lines))
        for what, name, lr in (("losses", "sgd", 0.05), ("auc", "adam", 0.001)):
            with open(folder + "/r.ini", "w") as f:
                f.write(RECIPE % (EPOCHS, BATCH, name, lr))
            words = ["train", "r.ini", "--data", "ml.inter", "--seed", str(seed), "--force"]
            run(*words, "--out", "first", "--steps", "1", "--lr", "1e-30", "--set",
                "embedding.lr=1e-30")
            run("export", "embeddings", "first", "--out", "first/rows.safetensors")
            more = ["--steps", "200"] if what == "losses" else []
            ours = json.loads(run(*words, "--out", "run", "--json", *more))
            log = [json.loads(line) for line in open(folder + "/run/log.jsonl")]
            losses = [e["loss"] for e in log if e["event"] == "step"]
            peer, theirs = train_peer(folder, cells, label, train, name, lr, ours["steps"])
            ids = peer.ids(cells)
            if what == "losses":
                _, exact = train_peer(folder, cells, label.double(), train, name, lr,
                                      ours["steps"])
                worst = apart(losses, theirs)
                print("seed %d: %d losses, ours and PyTorch's apart %.2g  %s  (from float64: "
                      "ours %.2g, PyTorch's float32 %.2g)" %
                      (seed, ours["steps"], worst, "ok" if worst <= 1e-5 else "DIFFERS",
                       apart(losses, exact), apart(theirs, exact)))
                continue
            with torch.no_grad():
                theirs = auc(peer(ids[train:]).numpy()[:, 0], label[train:].numpy()[:, 0])
            run("eval", "run", "--data", "ml.inter", "--scores", "s.npy", "--json")
            np.save(folder + "/label.npy", label[train:].numpy()[:, 0])
            print("seed %d: test AUC ours %.5f, PyTorch %.5f, apart %.5f  %s" %
                  (seed, ours["test_auc"], theirs, abs(ours["test_auc"] - theirs),
                   "ok" if abs(ours["test_auc"] - theirs) <= 0.002 else "DIFFERS"))
            own = json.loads(run("eval", "run", "--data", "ml.inter", "--json"))["auc"]
            code = ("import numpy as np; from sklearn.metrics import roc_auc_score as f; "
                    "print(repr(float(f(np.load('label.npy'), np.load('s.npy').astype(float)))))")
            done = subprocess.run([args.sklearn, "-c", code], cwd=folder, capture_output=True,
                                  text=True)
            if done.returncode == 0:
                print("seed %d: AUC of the scores ours %.12f, scikit-learn %.12f, apart %.1g" %
                      (seed, own, float(done.stdout), abs(own - float(done.stdout))))
    shutil.rmtree(folder, ignore_errors=True)


main()
