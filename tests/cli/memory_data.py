"""Clusters with a long tail in IDX files: memory_data.py FOLDER.
Four classes, each a pattern in noise; every 17th training image is a pattern of its own
with a label of its own choice, and test image 0 is near training image 0 of these."""
import os
import random
import struct
import sys

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
rng = random.Random(3)
PIXELS = 64


def pattern():
    return [rng.choice((40, 210)) for _ in range(PIXELS)]


def near(p, spread):
    return bytes(max(0, min(255, v + rng.randrange(-spread, spread + 1))) for v in p)


classes = [pattern() for _ in range(4)]
odd = {i: pattern() for i in range(0, 192, 17)}
train = [(i % 4, near(odd[i], 5) if i in odd else near(classes[i % 4], 40)) for i in range(192)]
test = [(j % 4, near(odd[0], 5) if j == 0 else near(classes[j % 4], 40)) for j in range(40)]
for prefix, images in (("train", train), ("t10k", test)):
    with open(f"{folder}/{prefix}-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">IIII", 0x803, len(images), 8, 8))
        f.write(b"".join(pixels for _, pixels in images))
    with open(f"{folder}/{prefix}-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">II", 0x801, len(images)) + bytes(label for label, _ in images))
