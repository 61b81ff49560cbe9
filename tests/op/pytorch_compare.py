"""Compares results, gradients and second gradients written by op_dump with PyTorch.

PyTorch computes the truth in float64, and once more in float32 for scale. An element may
differ from the truth by
    eps * (8 + 2 * sqrt(longest)) * (|truth| + rms of truth),
where `longest` is the count of the largest input (no sum of the operator is longer), or by
four times the worst error of PyTorch's own float32, whichever is larger. Second gradients
are those of s = sum(direction * gradient) over all inputs, and beside that must lie within
1e-5 of the truth, as vectors, but for 1e-6.

usage: pytorch_compare.py FOLDER
"""
import json
import math
import sys

import numpy
import torch
import torch.nn.functional as F

EPS = 2.0 ** -24


def nchw(x):
    """Channels-last [n, h, w, c] to PyTorch's order."""
    return x.permute(0, 3, 1, 2).contiguous()


def nhwc(x):
    """And back."""
    return x.permute(0, 2, 3, 1).contiguous()


def oihw(w):
    """Weights [kh, kw, in, out] to PyTorch's order."""
    return w.permute(3, 2, 0, 1).contiguous()


def conv2d(x, w, *rest):
    """As F.conv2d, which in float64 wants contiguous operands."""
    return F.conv2d(x.contiguous(), w.contiguous(), *rest)


def attention(x, heads, kv_heads, causal, window=0):
    """Packed rows [batch, length, (heads + 2 kv_heads) size]."""
    size = x.shape[2] // (heads + 2 * kv_heads)
    parts = x.split([heads * size, kv_heads * size, kv_heads * size], 2)
    q, k, v = (p.unflatten(2, (-1, size)).transpose(1, 2) for p in parts)
    k, v = (p.repeat_interleave(heads // kv_heads, 1) for p in (k, v))
    score = q @ k.transpose(2, 3) / math.sqrt(size)
    if causal:
        later = torch.ones(score.shape[2:], dtype=torch.bool).triu(1)
        score = score.masked_fill(later, -math.inf)
    if window:
        behind = torch.ones(score.shape[2:], dtype=torch.bool).tril(-window)
        score = score.masked_fill(behind, -math.inf)
    return (score.softmax(3) @ v).transpose(1, 2).flatten(2)


def distillation(x, table, y, ref_x, ref_table, weights, t, base, right, top=0):
    """Labels, logit pairing and forward KL (but for its constant) of two classifiers."""
    u, v = x @ table.T, ref_x @ ref_table.T
    there = y >= 0
    focus = base + right * (v.argmax(1) == y)
    target = v / t
    if top:
        target = target.masked_fill(v < v.topk(top, 1).values[:, -1:], -math.inf)
    q = target.softmax(1)
    hard = F.cross_entropy(u, y.long(), ignore_index=-1, reduction='none')
    pairing = ((u - v) ** 2).mean(1) * focus * there
    soft = -t * t * (q * (u / t).log_softmax(1)).sum(1) * there
    return (weights[0] * hard + weights[1] * pairing + weights[2] * soft).mean()


def vtrace(ratio, reward, discount, weight, value, rho, c, lam):
    """Targets and advantages; value has a step more than the others."""
    ratio = ratio.exp()
    rho = weight * ratio.clamp(max=rho)
    through = discount * weight * lam * ratio.clamp(max=c)
    delta = rho * (reward + discount * value[1:] - value[:-1])
    error = [torch.zeros_like(value[0])]
    for t in reversed(range(len(delta))):
        error.insert(0, delta[t] + through[t] * error[0])
    target = torch.stack(error) + value
    return target[:-1], rho * (reward + discount * target[1:] - value[:-1])


def gae(reward, discount, weight, value, lam):
    """Targets and advantages, likewise."""
    delta = reward + discount * value[1:] - value[:-1]
    advantage = [torch.zeros_like(value[0])]
    for t in reversed(range(len(delta))):
        advantage.insert(0, weight[t] * (delta[t] + lam * discount[t] * advantage[0]))
    advantage = torch.stack(advantage[:-1])
    return advantage + value[:-1], advantage


def read(data, entry):
    count = int(numpy.prod(entry["shape"], dtype=numpy.int64))
    values = numpy.frombuffer(data, "<" + entry["type"], count, entry["at"])
    return torch.from_numpy(values.reshape(entry["shape"]).copy())


def evaluate(case, data, dtype):
    """Result and gradients by PyTorch in this precision, as float64."""
    scope = {"torch": torch, "F": F, "nchw": nchw, "nhwc": nhwc, "oihw": oihw,
             "conv2d": conv2d, "attention": attention, "vtrace": vtrace, "gae": gae,
             "distillation": distillation}
    for name, entry in case["in"].items():
        x = read(data, entry)
        if entry["type"] == "i4":
            scope[name] = x.long()
        else:
            scope[name] = x.to(dtype).requires_grad_(name in case["grad"])
    y = eval(case["torch"].replace("F.conv2d", "conv2d"), scope)
    wanted = list(case["grad"])
    out = {"y": y}
    if wanted:
        inputs = [scope[n] for n in wanted]
        weight = read(data, case["weight"]).to(dtype)
        grads = torch.autograd.grad((y * weight).sum(), inputs, create_graph=True)
        out.update({"gradient of " + n: g for n, g in zip(wanted, grads)})
        s = sum((g * read(data, case["direction"][n]).to(dtype)).sum()
                for n, g in zip(wanted, grads))
        twice = [None] * len(inputs)
        if s.requires_grad:
            twice = torch.autograd.grad(s, inputs, allow_unused=True)
        out.update({"second gradient of " + n: torch.zeros_like(x) if h is None else h
                    for n, x, h in zip(wanted, inputs, twice)})
    return {n: v.detach().double() for n, v in out.items()}


def compare(case, what, got, truth, single):
    """A line of complaint, or None."""
    if got.shape != truth.shape:
        return f"shape {list(got.shape)}, PyTorch {list(truth.shape)}"
    if truth.numel() == 0:
        return None
    longest = max(math.prod(e["shape"]) for e in case["in"].values())
    rms = truth.square().mean().sqrt()
    scale = EPS * case["loose"] * (8 + 2 * math.sqrt(longest))
    floor = 4 * (single - truth).abs().max()
    allowed = torch.maximum(scale * (truth.abs() + rms), floor) + 1e-12
    excess = (got - truth).abs() / allowed
    excess[torch.isnan(excess)] = math.inf
    worst = int(excess.argmax())
    if what.startswith("second") and (got - truth).norm() > 1e-5 * truth.norm() + 1e-6:
        return f"{(got - truth).norm() / truth.norm():.3g} of PyTorch's apart"
    if excess.flatten()[worst] <= 1:
        return None
    return (f"rms {got.square().mean().sqrt():.9g}, PyTorch {rms:.9g}; worst at "
            f"{worst} of {truth.numel()}: {got.flatten()[worst]:.9g}, PyTorch "
            f"{truth.flatten()[worst]:.9g}, {excess.flatten()[worst]:.3g} times allowed")


def main(folder):
    with open(folder + "/cases.json", encoding="utf-8") as f:
        cases = json.load(f)
    with open(folder + "/data.bin", "rb") as f:
        data = f.read()
    bad = compared = 0
    for case in cases:
        truth = evaluate(case, data, torch.float64)
        single = evaluate(case, data, torch.float32)
        ours = {"y": case["y"]}
        ours.update({"gradient of " + n: e for n, e in case["grad"].items()})
        ours.update({"second gradient of " + n: e for n, e in case["second"].items()})
        for what, entry in ours.items():
            got = read(data, entry).double()
            complaint = compare(case, what, got, truth[what], single[what])
            compared += 1
            if complaint:
                bad += 1
                print(f"{case['name']}, seed {case['seed']}: {what}: {complaint}")
    names = len({case["name"] for case in cases})
    print(f"{names} cases, {compared} tensors compared with PyTorch "
          f"{torch.__version__}, {bad} differ")
    return 1 if bad or compared == 0 else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(sys.argv[1]))
