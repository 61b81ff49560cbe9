"""What stint eval --samples says of two-layer perceptrons, against NumPy: every network
is made here from its counters (Philox, masks of dropout, Box and Muller), in double.
usage: uncertain_numpy.py data FOLDER       images of three classes, and strangers
       uncertain_numpy.py check ANSWER.json FOLDER STRANGERS SAMPLES SEED MODEL..."""
import json
import os
import struct
import sys

import numpy as np

SIZE, CLASSES = 8, 3
DROPOUT, WEIGHTS = 4, 48  # streams of random numbers
BINS = 15


# ---- data ----

def write_set(folder, rng, images, labels):
    os.makedirs(folder, exist_ok=True)
    for prefix in ("train", "t10k"):
        with open(f"{folder}/{prefix}-images-idx3-ubyte", "wb") as f:
            f.write(struct.pack(">IIII", 0x803, len(images), SIZE, SIZE))
            f.write(images.astype(np.uint8).tobytes())
        with open(f"{folder}/{prefix}-labels-idx1-ubyte", "wb") as f:
            f.write(struct.pack(">II", 0x801, len(labels)))
            f.write(bytes(labels))


def make_data(folder):
    rng = np.random.default_rng(5)
    labels = [i % CLASSES for i in range(150)]
    light = np.full((150, SIZE, SIZE), 90.0)
    for i, label in enumerate(labels):
        light[i, label * 2:label * 2 + 3] += 50
    light += rng.normal(0, 60, light.shape)
    write_set(f"{folder}/known", rng, np.clip(light, 0, 255), labels)
    strange = rng.integers(0, 2, (90, SIZE, SIZE)) * 255
    write_set(f"{folder}/strange", rng, strange, [i % 2 for i in range(90)])


def read_set(folder):
    with open(f"{folder}/t10k-images-idx3-ubyte", "rb") as f:
        images = np.frombuffer(f.read()[16:], np.uint8).reshape(-1, SIZE * SIZE)
    with open(f"{folder}/t10k-labels-idx1-ubyte", "rb") as f:
        labels = np.frombuffer(f.read()[8:], np.uint8)
    return images.astype(np.float64) / 255, labels


def read_model(path):
    with open(path, "rb") as f:
        blob = f.read()
    n = struct.unpack("<Q", blob[:8])[0]
    head, tensors = json.loads(blob[8:8 + n]), {}
    for name, row in head.items():
        if name != "__metadata__":
            first, end = row["data_offsets"]
            flat = np.frombuffer(blob[8 + n + first:8 + n + end], np.float32)
            tensors[name] = flat.reshape(row["shape"]).astype(np.float64)
    return head["__metadata__"], tensors


# ---- random numbers ----

def philox(seed, stream, a, b):
    """Words [4, len(b)] of Philox4x32-10 for counters (a, b)."""
    mask = np.uint64(0xFFFFFFFF)
    b = np.asarray(b, np.uint64)
    c = [np.full(b.shape, a & 0xFFFFFFFF, np.uint64), np.full(b.shape, a >> 32, np.uint64),
         b & mask, b >> np.uint64(32)]
    low, high = seed & 0xFFFFFFFF, seed >> 32
    k0, k1 = low ^ high, (stream * 0x9E3779B9 & 0xFFFFFFFF) ^ high
    for _ in range(10):
        p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(q >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), q & mask,
             (p >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c)


def normal(seed, layer, step, n):
    """The first n numbers of a layer's stream, by units of 64 words."""
    units = (n + 63) // 64
    words = philox(seed, WEIGHTS, layer << 48 | step, np.arange(units * 16))
    words = words.reshape(4, units, 16).transpose(1, 0, 2).reshape(units, 64)
    length, turn = words[:, :32], words[:, 32:]
    u = ((length & np.uint64(0x7FFFFFFF)) | np.uint64(1)).astype(np.float64) / 2**31
    x = ((turn & np.uint64(0x7FFFFF)).astype(np.float64) / 2**23 - 0.5) * np.pi / 2
    r = np.sqrt(-2 * np.log(u))
    c = np.where(turn >> np.uint64(31), -np.cos(x), np.cos(x))
    swap = (turn >> np.uint64(30) & np.uint64(1)) == 1
    both = np.where(swap, np.sin(x), c), np.where(swap, c, np.sin(x))
    return np.concatenate([r * both[0], r * both[1]], axis=1).ravel()[:n]


def kept(seed, step, rate, n):
    words = philox(seed, DROPOUT, step, np.arange((n + 3) // 4)).T.ravel()[:n]
    uniform = (words >> np.uint64(8)).astype(np.float32) * np.float32(2**-24)
    return np.where(uniform >= np.float32(rate), 1 / (1 - rate), 0)


# ---- networks ----

def setting(recipe, key):
    section, name = key.split(".")
    part = recipe.split(f"[{section}]")[1].split("\n[")[0]
    return next(line.split("=")[1].strip() for line in part.splitlines()
                if line.startswith(name + " ="))


def weights_of(meta, tensors, name, number, seed, step, samples):
    mu = tensors[name]
    if samples == 0 or name + ".rho" not in tensors:
        return mu
    assert setting(meta["recipe"], "bayes.generator") == "philox"
    eps = normal(seed, number, step, mu.size).reshape(mu.shape)
    return mu + np.log1p(np.exp(tensors[name + ".rho"])) * eps


def probabilities(meta, tensors, x, seed, step, samples):
    x = (x - float(meta["mean"])) / float(meta["deviation"])
    for i in range(2):
        w = weights_of(meta, tensors, f"hidden{i}.weight", i, seed, step, samples)
        x = np.maximum(x @ w + tensors[f"hidden{i}.bias"], 0)
    rate = float(setting(meta["recipe"], "model.dropout"))
    if samples > 0 and rate > 0:
        x = x * kept(seed, step, rate, x.shape[1])
    w = weights_of(meta, tensors, "fc.weight", 2, seed, step, samples)
    z = x @ w + tensors["fc.bias"]
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def entropy(p):
    return -np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(axis=-1)


def hear(models, x, samples, seed):
    each = max(samples, 1)
    return np.stack([probabilities(meta, tensors, x, seed, m * each + k, samples)
                     for m, (meta, tensors) in enumerate(models) for k in range(each)])


def figures(models, known, strange, samples, seed):
    x, labels = known
    all_p, all_s = hear(models, x, samples, seed), hear(models, strange[0], samples, seed)
    p, s = all_p.mean(axis=0), all_s.mean(axis=0)
    confidence, right = p.max(axis=1), p.argmax(axis=1) == labels
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    ece = sum(abs(confidence[bins == b].sum() - right[bins == b].sum())
              for b in range(BINS)) / len(labels)
    above = entropy(s)[:, None] - entropy(p)[None, :]
    sigma = [np.log1p(np.exp(t)).ravel() for n, t in models[0][1].items()
             if n.endswith(".rho")]
    found = {
        "accuracy": right.mean(),
        "loss": -np.log(p[np.arange(len(labels)), labels]).mean(),
        "ece": ece,
        "entropy": entropy(p).mean(),
        "mutual_information": entropy(p).mean() - entropy(all_p).mean(),
        "ood_entropy": entropy(s).mean(),
        "ood_mutual_information": entropy(s).mean() - entropy(all_s).mean(),
        "ood_auroc": (above > 0).mean() + (above == 0).mean() / 2,
    }
    if sigma:
        sigma = np.concatenate(sigma)
        mu = np.concatenate([t.ravel() for n, t in models[0][1].items()
                             if n + ".rho" in models[0][1]])
        found["kl"] = (-np.log(sigma) + (sigma**2 + mu**2) / 2 - 0.5).sum()
        found["sigma"] = np.quantile(sigma, [0.05, 0.5, 0.95])
    return found


def main():
    if sys.argv[1] == "data":
        make_data(sys.argv[2])
        return
    answer = json.load(open(sys.argv[2]))
    known, strange = read_set(sys.argv[3]), read_set(sys.argv[4])
    samples, seed = int(sys.argv[5]), int(sys.argv[6])
    models = [read_model(path) for path in sys.argv[7:]]
    assert answer["networks"] == len(models) * max(samples, 1)
    found = figures(models, known, strange, samples, seed)
    assert ("kl" in found) == (answer["kl"] is not None)
    for key, want in found.items():
        near = np.allclose(answer[key], want, rtol=2e-4, atol=2e-5)
        assert near, f"{key}: {answer[key]}, by NumPy {want}"


main()
