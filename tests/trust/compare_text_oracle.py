"""What `stint compare` of two models of text says, against PyTorch in double.

usage: compare_text_oracle.py BENCH REFERENCE NEW TEXT ANSWER.json"""
import collections
import configparser
import json
import math
import sys

import torch

bench, reference, changed, text, answer = sys.argv[1:]
sys.path.insert(0, bench)
from text_pytorch import Transformer  # noqa: E402


def model(path):
    net = Transformer(path + "/model.safetensors")
    net.w = {name: w.detach().double() for name, w in net.w.items()}
    recipe = configparser.ConfigParser()
    recipe.read(path + "/recipe.ini")
    net.bits = recipe.getint("quantise", "bits")
    return net


torch.set_default_dtype(torch.float64)
r, c = model(reference), model(changed)
got = json.load(open(answer))
index = {ch: i for i, ch in enumerate(r.characters)}
tokens = torch.tensor([index[ord(ch)] for ch in open(text, encoding="utf-8").read()])
test = tokens[len(tokens) - int(len(tokens) * 0.1):]
context = min(net.w["wpe.weight"].shape[0] for net in (r, c))
seen = collections.Counter(test[1:].tolist())
rows, windows = [], []
for at in range(0, len(test) - 1, context):
    row = test[at:at + context + 1]
    with torch.no_grad():
        z = [net.logits(row[None, :-1]) for net in (r, c)]
    log_p = [v.log_softmax(1) for v in z]
    label = row[1:]
    loss = [-q.gather(1, label[:, None])[:, 0] for q in log_p]
    kl = (log_p[0].exp() * (log_p[0] - log_p[1])).sum(1)
    best = [v.argmax(1) for v in z]
    windows.append((loss[1] - loss[0]).sum().item())
    for i in range(len(label)):
        rows.append((i, label[i].item(), best[0][i].item(), best[1][i].item(),
                     loss[0][i].item(), loss[1][i].item(), kl[i].item()))
n = len(rows)


def close(name, value, want, within=1e-5):
    if not abs(value - want) <= within * max(1, abs(want)):
        sys.exit(f"{name}: {value}, PyTorch {want}")


close("tokens", got["tokens"], n, 0)
close("windows", got["windows"], len(windows), 0)
close("mismatch_rate", got["mismatch_rate"], sum(a != b for _, _, a, b, *_ in rows) / n, 1e-12)
close("nfr", got["nfr"], sum(a == y != b for _, y, a, b, *_ in rows) / n, 1e-12)
close("pfr", got["pfr"], sum(b == y != a for _, y, a, b, *_ in rows) / n, 1e-12)
close("kl", got["kl"], sum(row[6] for row in rows) / n)
close("reference_loss", got["reference_loss"], sum(row[4] for row in rows) / n)
difference = sum(row[5] - row[4] for row in rows) / n
close("loss_difference", got["loss_difference"], difference)
# The bootstrap's interval beside the normal one over windows.
each = [w * len(windows) / n for w in windows]
error = 1.96 * math.sqrt(sum((w - difference) ** 2 for w in each) / (len(each) - 1) / len(each))
for end, sign in (("loss_low", -1), ("loss_high", 1)):
    if abs(got[end] - difference - sign * error) > 0.25 * error:
        sys.exit(f"{end}: {got[end]}, about {difference + sign * error}")


def kind(row):
    return sum(seen[row[1]] >= least for least in (2, 10, 100, 1000))


def parts(name, of, count):
    table = got[name]
    for k in range(count):
        some = [row for row in rows if of(row) == k]
        close(f"{name} {k}", table[k]["tokens"], len(some), 0)
        if some:
            close(f"{name} {k} mismatch", table[k]["mismatch"]["rate"],
                  sum(row[2] != row[3] for row in some) / len(some), 1e-12)
            close(f"{name} {k} loss", table[k]["new_loss"],
                  sum(row[5] for row in some) / len(some))


parts("per_position", lambda row: row[0] * 8 // context, 8)
parts("per_frequency", kind, 5)
order = sorted(range(n), key=lambda i: -rows[i][6])[:10]
for change, i in zip(got["changes"], order):
    close("change", change["kl"], rows[i][6], 1e-4)
first = order[0]
whole = "".join(chr(r.characters[t]) for t in test.tolist())
begin = first // context * context
assert got["changes"][0]["token"] == first + 1, (got["changes"][0], first)
assert whole[begin:first + 1].endswith(got["changes"][0]["before"][-20:])
assert got["changes"][0]["follows"] == whole[first + 1]
print(f"{n} tokens agree")
