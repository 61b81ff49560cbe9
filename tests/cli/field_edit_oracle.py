"""Sums of waves as fields, and a linear edit of them by closed form: make writes networks and
targets, check PICTURE compares the edit of the field that was not learnt from."""
import json
import struct
import sys
import zlib

import numpy as np

SIDE = 24
WAVES = 4


def parts(seed):
    """Frequencies [WAVES, 2], phases and heights of u = sum h sin(w x + b)."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-3, 3, (WAVES, 2)), rng.uniform(-3, 3, WAVES), rng.uniform(0.1, 0.2, WAVES)


def grid():
    c = (np.arange(SIDE) + 0.5) / SIDE * 2 - 1
    y, x = np.meshgrid(c, c, indexing="ij")
    return np.stack([x.ravel(), y.ravel()], 1)


def edited(seed):
    """u + 0.2 u_x - 0.05 (u_xx + u_yy)"""
    w, b, h = parts(seed)
    at = grid() @ w.T + b
    return (h * (np.sin(at) + 0.2 * w[:, 0] * np.cos(at) + 0.05 * (w ** 2).sum(1) * np.sin(at))).sum(1)


def plain(seed):
    w, b, h = parts(seed)
    return (h * np.sin(grid() @ w.T + b)).sum(1)


def write_png(path, values):
    rows = np.uint8(np.clip(values * 127.5 + 127.5, 0, 255) + 0.5).reshape(SIDE, SIDE)
    raw = b"".join(b"\0" + row.tobytes() for row in rows)

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def read_png(path):
    """Eight bits, grey, not interlaced; filters 0 to 4."""
    data, at, body = open(path, "rb").read(), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body += data[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    raw, before, out = zlib.decompress(body), [0] * SIDE, []
    for y in range(SIDE):
        kind, line = raw[y * (SIDE + 1)], list(raw[y * (SIDE + 1) + 1:(y + 1) * (SIDE + 1)])
        for x in range(SIDE):
            a, b, c = line[x - 1] if x else 0, before[x], before[x - 1] if x else 0
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[x] = (line[x] + (0, a, b, (a + b) // 2, paeth)[kind]) % 256
        out.append(line)
        before = line
    return np.array(out, float).ravel() / 127.5 - 1


def write_field(path, seed):
    w, b, h = parts(seed)
    tensors = {"net.0.weight": w, "net.0.bias": b, "net.1.weight": h[None], "net.1.bias": np.zeros(1)}
    head, body = {}, b""
    for key, value in tensors.items():
        data = np.ascontiguousarray(value, "<f4").tobytes()
        head[key] = {"dtype": "F32", "shape": list(value.shape),
                     "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


if sys.argv[1] == "make":
    for seed in (1, 2, 3):
        write_field(f"w{seed}.safetensors", seed)
        write_png(f"t{seed}.png", edited(seed))
else:
    got, want = read_png(sys.argv[2]), np.clip(edited(3), -1, 1)
    error, before = np.sqrt(np.mean((got - want) ** 2)), np.sqrt(np.mean((plain(3) - want) ** 2))
    print(f"error {error:.4f}, unedited {before:.4f}")
    sys.exit(not (error < 0.01 < 0.05 < before))
