"""A Bayesian network in PyTorch, for bench/bayes_bench.sh and bench/bayes_quality.sh.

Weights w = mu + softplus(rho) eps with eps of torch.randn, a Gaussian prior whose
divergence is closed, summed over the weights and divided by the training images.

  bayes_torch.py speed WIDTH SAMPLES held|each STEPS   peak and seconds of a step of an
      mlp on 32 x 32 x 3 images, batch 128, Adam. held: one backward pass through all
      samples; each: one for each sample.
  bayes_torch.py quality ARRAYS EPOCHS SEED SAMPLES NETWORKS [plain]
      LeNet-5 on CIFAR-10: accuracy, loss, calibration error, AUROC of the entropy.
"""
import json, math, os, resource, sys, time

import numpy as np
import torch
import torch.nn.functional as F

PRIOR, SIGMA = 0.1, 0.02


class Drawn(torch.nn.Module):
    """The weight of a layer as a distribution; its bias is a number."""

    def __init__(self, shape, fan_in, bias, plain=False):
        super().__init__()
        bound = fan_in ** -0.5
        self.mu = torch.nn.Parameter(torch.empty(shape).uniform_(-bound, bound))
        self.rho = None if plain else torch.nn.Parameter(
            torch.full(shape, math.log(math.expm1(SIGMA))))
        self.bias = torch.nn.Parameter(torch.empty(bias).uniform_(-bound, bound))
        self.mean = False

    def weight(self):
        if self.rho is None or self.mean:
            return self.mu
        return self.mu + F.softplus(self.rho) * torch.randn_like(self.mu)

    def kl(self):
        if self.rho is None:
            return 0
        sigma = F.softplus(self.rho)
        return (torch.log(PRIOR / sigma) +
                (sigma * sigma + self.mu * self.mu) / (2 * PRIOR * PRIOR) - 0.5).sum()


class Mlp(torch.nn.Module):
    def __init__(self, width, plain=False):
        super().__init__()
        sizes = [3072, width, width, 10]
        self.layers = torch.nn.ModuleList(
            Drawn((b, a), a, b, plain) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = F.relu(F.linear(x, layer.weight(), layer.bias))
        return F.linear(x, self.layers[-1].weight(), self.layers[-1].bias)


class LeNet5(torch.nn.Module):
    """As published in 1998: tanh, average pooling; 5 x 5 filters on 32 x 32 images. First weights
    as Stint has them: Glorot's uniform ones and no biases below the last layer."""

    def __init__(self, plain=False):
        super().__init__()
        self.layers = torch.nn.ModuleList([
            Drawn((6, 3, 5, 5), 75, 6, plain), Drawn((16, 6, 5, 5), 150, 16, plain),
            Drawn((120, 400), 400, 120, plain), Drawn((84, 120), 120, 84, plain),
            Drawn((10, 84), 84, 10, plain)])
        for layer in self.layers[:-1]:
            weight = layer.mu.data
            taps = weight[0, 0].numel()
            bound = math.sqrt(6 / (taps * (weight.shape[0] + weight.shape[1])))
            weight.uniform_(-bound, bound)
            layer.bias.data.zero_()

    def forward(self, x):
        for layer in self.layers[:2]:
            x = F.avg_pool2d(torch.tanh(F.conv2d(x, layer.weight(), layer.bias)), 2)
        x = x.flatten(1)
        for layer in self.layers[2:4]:
            x = torch.tanh(F.linear(x, layer.weight(), layer.bias))
        return F.linear(x, self.layers[4].weight(), self.layers[4].bias)


def kl(net):
    return sum(layer.kl() for layer in net.layers)


def step(net, optimizer, x, y, samples, kl_weight, held):
    optimizer.zero_grad(set_to_none=True)
    if held:
        loss = sum(F.cross_entropy(net(x), y) for _ in range(samples)) / samples
        (loss + kl_weight * kl(net)).backward()
    else:
        for _ in range(samples):
            (F.cross_entropy(net(x), y) / samples).backward()
        divergence = kl(net)
        if torch.is_tensor(divergence):
            (kl_weight * divergence).backward()
    optimizer.step()


def speed(width, samples, how, steps):
    torch.manual_seed(1)
    net = Mlp(width)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    x, y = torch.randn(128, 3, 32, 32), torch.randint(0, 10, (128,))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        step(net, optimizer, x, y, samples, 1 / 50000, how == "held")
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"peak_bytes": peak * 1024, "start_bytes": before * 1024,
                      "step_s": min(times[1:]),
                      "weights": sum(l.mu.numel() for l in net.layers)}))


# ---- quality

def probabilities(net, x, networks, plain):
    total = 0
    with torch.no_grad():
        for k in range(1 if plain else networks):
            state = torch.random.get_rng_state()
            parts = []
            for i in range(0, len(x), 500):
                torch.random.set_rng_state(state)  # the same network for all images
                parts.append(F.softmax(net(x[i:i + 500]).double(), 1))
            total = total + torch.cat(parts)
    return (total / (1 if plain else networks)).numpy()


def entropy(p):
    return -(p * np.log(np.maximum(p, 1e-300))).sum(1)


def calibration(p, y, bins=15):
    best, right = p.max(1), p.argmax(1) == y
    at = np.minimum((best * bins).astype(int), bins - 1)
    return sum(abs(best[at == b].sum() - right[at == b].sum())
               for b in range(bins)) / len(y)


def auroc(low, high):
    both = np.concatenate([low, high])
    order = both.argsort(kind="stable")
    ranks = np.empty(len(both))
    values, first, count = np.unique(both[order], return_index=True, return_counts=True)
    ranks[order] = np.repeat(first + (count + 1) / 2, count)
    n = len(high)
    return (ranks[len(low):].sum() - n * (n + 1) / 2) / (n * len(low))


def quality(arrays, epochs, seed, samples, networks, plain):
    torch.manual_seed(seed)
    data = np.load(arrays)
    train, labels = data["train"], data["labels"]
    test, test_labels = data["test"], data["test_labels"]
    mean = train.mean((0, 2, 3), keepdims=True) / 255
    deviation = train.std((0, 2, 3), keepdims=True) / 255
    ready = lambda a: torch.from_numpy(((a / 255 - mean) / deviation).astype(np.float32))
    x, y, tx = ready(train), torch.from_numpy(labels.astype(np.int64)), ready(test)
    net = LeNet5(plain)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    batches = len(x) // 64
    for s in range(epochs * batches):
        epoch, at = divmod(s, batches)
        if at == 0:
            order = torch.randperm(len(x))
        rate = 0.5 * (1 + math.cos(math.pi * s / (epochs * batches)))
        optimizer.param_groups[0]["lr"] = 2e-3 * rate
        rows = order[at * 64:at * 64 + 64]
        step(net, optimizer, x[rows], y[rows], samples, 1 / len(x), False)
    p = probabilities(net, tx, networks, plain)
    other = ready(data["strangers"])
    q = probabilities(net, other, networks, plain)
    sigma = [] if plain else torch.cat([F.softplus(layer.rho).flatten() for layer in net.layers])
    picked = p[np.arange(len(p)), test_labels]
    print(json.dumps({"accuracy": float((p.argmax(1) == test_labels).mean()),
                      "loss": float(-np.log(picked).mean()),
                      "ece": float(calibration(p, test_labels)), "kl": 0 if plain else kl(net).item(),
                      "sigma": [] if plain else np.quantile(sigma.detach().numpy(), (0.05, 0.5, 0.95)).tolist(),
                      "ood_auroc": float(auroc(entropy(p), entropy(q)))}))


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 2)))
    torch.set_flush_denormal(True)
    if sys.argv[1] == "speed":
        speed(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
    else:
        quality(sys.argv[2], *(int(a) for a in sys.argv[3:7]), "plain" in sys.argv[7:])
