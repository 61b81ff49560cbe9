"""A small data set as IDX files: images whose brightest columns say the class."""
import struct

import numpy as np

SIDE, CLASSES = 8, 3


def write_idx(path, array):
    with open(path, "wb") as file:
        file.write(bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape))
        file.write(array.tobytes())


def make_data(folder, train=240, test=60, seed=1):
    """Train and test images of SIDE x SIDE, CLASSES classes, into a folder that is there."""
    rng = np.random.default_rng(seed)
    for split, count in (("train", train), ("t10k", test)):
        labels = np.arange(count, dtype=np.uint8) % CLASSES
        images = rng.integers(0, 100, (count, SIDE, SIDE), np.uint8)
        for image, label in zip(images, labels):
            image[:, label * 2:label * 2 + 3] += 120
        write_idx(f"{folder}/{split}-images-idx3-ubyte", images)
        write_idx(f"{folder}/{split}-labels-idx1-ubyte", labels)
