"""Fields by nested dual numbers in double precision, which share nothing with series or
with reverse: make FOLDER writes networks and points; check NAME OUT.npy OUT.json SCALE
compares every column."""
import json
import struct
import sys

import numpy as np

NETS = {  # coordinates, outputs, width, depth, activation, omega
    "wave": (2, 3, 24, 2, "sin", 9.0),
    "plain": (3, 1, 16, 2, "tanh", 1.0),
    "four": (4, 2, 12, 1, "softplus", 2.0),
    "bend": (1, 1, 16, 2, "relu", 1.0),
}


def layers(name):
    d, k, width, depth, _, _ = NETS[name]
    rng = np.random.default_rng(len(name))
    sizes = [d] + [width] * depth + [k]
    return [((rng.uniform(-1, 1, (o, i)) / np.sqrt(i)).astype("<f4"),
             rng.uniform(-0.5, 0.5, o).astype("<f4")) for i, o in zip(sizes, sizes[1:])]


def write(path, tensors):
    head, body = {}, b""
    for key, value in tensors.items():
        data = np.ascontiguousarray(value).tobytes()
        head[key] = {"dtype": "F32", "shape": list(value.shape),
                     "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


class Dual:
    """a + b e with e e = 0; a and b are numbers of any kind."""

    def __init__(self, a, b):
        self.a, self.b = a, b


def add(x, y):
    if isinstance(x, Dual):
        return Dual(add(x.a, y.a), add(x.b, y.b)) if isinstance(y, Dual) else Dual(add(x.a, y), x.b)
    return add(y, x) if isinstance(y, Dual) else x + y


def mul(x, y):
    if isinstance(x, Dual) and isinstance(y, Dual):
        return Dual(mul(x.a, y.a), add(mul(x.a, y.b), mul(x.b, y.a)))
    if isinstance(x, Dual):
        return Dual(mul(x.a, y), mul(x.b, y))
    return mul(y, x) if isinstance(y, Dual) else x * y


def apply(x, f, df):
    return Dual(f(x.a), mul(df(x.a), x.b)) if isinstance(x, Dual) else f(x)


def of(f, df):
    return lambda x: apply(x, lambda v: of(f, df)(v) if isinstance(v, Dual) else f(v), df)


def sin(x):
    return Dual(sin(x.a), mul(cos(x.a), x.b)) if isinstance(x, Dual) else np.sin(x)


def cos(x):
    return Dual(cos(x.a), mul(mul(sin(x.a), -1.0), x.b)) if isinstance(x, Dual) else np.cos(x)


def tanh(x):
    if not isinstance(x, Dual):
        return np.tanh(x)
    t = tanh(x.a)
    return Dual(t, mul(add(mul(mul(t, t), -1.0), 1.0), x.b))


def sigmoid(x):
    return add(mul(tanh(mul(x, 0.5)), 0.5), 0.5)


def softplus(x):
    return Dual(softplus(x.a), mul(sigmoid(x.a), x.b)) if isinstance(x, Dual) else np.logaddexp(x, 0)


def relu(x):
    return Dual(relu(x.a), mul(step(x.a), x.b)) if isinstance(x, Dual) else np.maximum(x, 0)


def step(x):
    return Dual(step(x.a), mul(x.b, 0.0)) if isinstance(x, Dual) else (x > 0) * 1.0


def linear(x, w, b):
    if isinstance(x, Dual):
        return Dual(linear(x.a, w, b), linear(x.b, w, 0 * b))
    return x @ w.T.astype(float) + b


def nest(value, sequence):
    """The points, differentiated along each coordinate of the sequence in turn."""
    if not sequence:
        return value
    inner = nest(value, sequence[1:])
    return Dual(inner, nest(np.eye(value.shape[1])[sequence[0]] + 0 * value, [])
                if len(sequence) == 1 else constant(value, sequence))


def constant(value, sequence):
    one = np.eye(value.shape[1])[sequence[0]] + 0 * value
    for _ in sequence[1:]:
        one = Dual(one, 0 * value)
    return one


def derivative(name, points, sequence):
    x = nest(points, sequence)
    act = {"sin": sin, "tanh": tanh, "softplus": softplus, "relu": relu}[NETS[name][4]]
    net = layers(name)
    for i, (w, b) in enumerate(net):
        x = linear(x, w, b)
        if i + 1 < len(net):
            x = act(mul(x, NETS[name][5]))
    for _ in sequence:
        x = x.b
    return x


def check(name, out, answer, scale):
    got, j = np.load(out), json.load(open(answer))
    points = np.load(f"{name}.npy").astype(float)
    outputs = {1: ["u"], 2: ["u", "v"], 3: ["r", "g", "b"]}[NETS[name][1]]
    assert got.dtype == np.float32 and got.shape == (len(points), len(j["columns"]))
    cache = {}
    for c, column in enumerate(j["columns"]):
        base, _, along = column.partition("_")
        if along == "laplacian":
            want = sum(derivative(name, points, [i, i]) for i in range(NETS[name][0]))
            order = 2
        else:
            sequence = ["xyzt".index(letter) for letter in along]
            key, order = tuple(sorted(sequence)), len(sequence)
            if key not in cache:
                cache[key] = derivative(name, points, sequence)
            want = cache[key]
        want = want[:, outputs.index(base)] / scale ** order
        error = np.linalg.norm(got[:, c] - want) / max(np.linalg.norm(want), 1e-12)
        assert error < 2e-5, (name, column, error)


if sys.argv[1] == "make":
    for net in NETS:
        tensors = {}
        for i, (w, b) in enumerate(layers(net)):
            tensors[f"net.{i}.weight"], tensors[f"net.{i}.bias"] = w, b
        write(f"{net}.safetensors", tensors)
        np.save(f"{net}.npy", np.random.default_rng(9).uniform(-1, 1, (150, NETS[net][0])).astype("<f4"))
    w, b = layers("wave")[0]
    write("chain.safetensors", {"net.0.weight": w, "net.0.bias": b, "net.1.weight": w, "net.1.bias": b})
    bad = w.copy()
    bad[0, 0] = np.nan
    w1, b1 = layers("wave")[1]
    write("nan.safetensors", {"net.0.weight": bad, "net.0.bias": b, "net.1.weight": w1, "net.1.bias": b1})
    y, x = np.mgrid[0:24, 0:32]
    picture = np.stack([8 * x, 10 * y, 4 * (x + y)], -1).astype(np.uint8)
    import zlib

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    for path, pixels in (("picture.png", picture), ("flat.png", 0 * picture + 7)):
        rows = b"".join(b"\0" + row.tobytes() for row in pixels)
        with open(path, "wb") as f:
            f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 32, 24, 8, 2, 0, 0, 0))
                    + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    np.save("picture.npy", picture)
else:
    check(sys.argv[2], sys.argv[3], sys.argv[4], float(sys.argv[5]))
