"""A small image set in IDX files, two classes that are easy to tell apart:
cli_data.py FOLDER [SIZE [TRAIN [TEST]]]"""
import os
import random
import struct
import sys

folder = sys.argv[1]
size, train, test = (int(a) for a in (sys.argv[2:] + ["12", "256", "64"][len(sys.argv) - 2:]))
os.makedirs(folder, exist_ok=True)
rng = random.Random(1)


def image(label):
    """Class 0 is bright above, class 1 bright below, both in noise."""
    rows = []
    for y in range(size):
        light = 150 if (y < size // 2) == (label == 0) else 20
        rows += [max(0, min(255, light + rng.randrange(-60, 60))) for _ in range(size)]
    return bytes(rows)


for prefix, count in (("train", train), ("t10k", test)):
    labels = bytes(i % 2 for i in range(count))
    with open(f"{folder}/{prefix}-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">IIII", 0x803, count, size, size))
        for label in labels:
            f.write(image(label))
    with open(f"{folder}/{prefix}-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">II", 0x801, count) + labels)
