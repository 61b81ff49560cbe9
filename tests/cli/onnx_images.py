"""Pictures and a classifier of them as ONNX, and what NumPy makes of both, for
onnx_images_test.sh: data/{train,test}/CLASS/N.png, NAME.onnx, want.json."""

import json
import os
import struct
import zlib

import numpy as np

from onnx_file import Model

SIDE, CLASSES = 8, 3
MEAN, STD, SCALE = [0.5, 0.4, 0.3], [0.2, 0.25, 0.5], 1 / 128


def png(path, pixels):
    height, width, _ = pixels.shape

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    lines = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2,
                                                                    0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def model(name, shape, w, b, last, ends):
    m = Model()
    m.input("x", 1, shape)
    m.tensor("w", w)
    m.tensor("b", b)
    at = "x"
    if last:
        m.node("Transpose", ["x"], ["first"], perm=[0, 3, 1, 2])
        at = "first"
    m.node("Flatten", [at], ["flat"])
    m.node("Gemm", ["flat", "w", "b"], ["logits"])
    if ends:
        m.node("Softmax", ["logits"], ["p"], axis=-1)
    m.output("p" if ends else "logits")
    m.write(name)


def main():
    random = np.random.default_rng(11)
    w = random.normal(size=(3 * SIDE * SIDE, CLASSES)).astype(np.float32) * 0.1
    b = random.normal(size=CLASSES).astype(np.float32)
    model("first.onnx", [2, 3, SIDE, SIDE], w, b, False, False)
    model("last.onnx", [1, SIDE, SIDE, 3], w, b, True, True)
    model("wide.onnx", [1, 3, SIDE, 2 * SIDE], np.concatenate([w, w]), b, False, False)
    model("deep.onnx", [1, 4, SIDE, SIDE], random.normal(size=(4 * SIDE * SIDE, 3)).astype(np.float32),
          b, False, False)
    losses, correct, count = 0.0, 0, 0
    for split in ("train", "test"):
        for label in range(CLASSES):
            folder = os.path.join("data", split, "abc"[label])
            os.makedirs(folder)
            for i in range(1 if split == "train" else 3 + label):
                pixels = random.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
                png(os.path.join(folder, "%d.png" % i), pixels)
                if split == "train":
                    continue
                x = (pixels * SCALE - MEAN) / STD
                p = softmax(x.transpose(2, 0, 1).reshape(-1) @ w.astype(np.float64) + b)
                losses -= np.log(p[label])
                correct += p.argmax() == label
                count += 1
                if label == 0 and i == 0:
                    first = p
    with open("want.json", "w") as file:
        json.dump({"loss": losses / count, "accuracy": correct / count, "count": count,
                   "first": first.tolist()}, file)


if __name__ == "__main__":
    main()
