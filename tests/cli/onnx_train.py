"""Pictures, classifiers of them as ONNX, and what one step of gradient descent makes of the
simplest, by NumPy in double, for onnx_train_test.sh."""

import os

import numpy as np

from onnx_file import Model
from onnx_images import png, softmax

SIDE, CLASSES, MEAN, STD, RATE = 8, 3, 0.5, 0.25, 0.5
random = np.random.default_rng(5)


def draw(*shape):
    return (random.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def pictures(folder, classes, count):
    """A band of rows on noise; its colour tells the class."""
    all_x, all_y = [], []
    for label in range(classes):
        os.makedirs(os.path.join(folder, "abcdef"[label]))
        for i in range(count):
            pixels = random.integers(0, 120, (SIDE, SIDE, 3))
            band = random.integers(0, SIDE - 2)
            pixels[band:band + 3, :, [label] if label < 3 else [0, 1, 2]] += 130
            png(os.path.join(folder, "abcdef"[label], "%d.png" % i), pixels.astype(np.uint8))
            all_x.append(pixels)
            all_y.append(label)
    return np.array(all_x), np.array(all_y)


def linear(x, y):
    """Flatten and Gemm; and its weights after a step."""
    w, b = draw(CLASSES, 3 * SIDE * SIDE), draw(CLASSES)
    m = Model()
    m.input("x", 1, [1, 3, SIDE, SIDE])
    m.tensor("w", w)
    m.tensor("b", b)
    m.node("Flatten", ["x"], ["flat"])
    m.node("Gemm", ["flat", "w", "b"], ["logits"], transB=1)
    m.output("logits")
    m.write("linear.onnx")
    rows = ((x / 255 - MEAN) / STD).transpose(0, 3, 1, 2).reshape(len(x), -1)
    p = softmax(rows @ w.T.astype(np.float64) + b)
    loss = -np.log(p[np.arange(len(y)), y]).mean()
    p[np.arange(len(y)), y] -= 1
    np.savez("want.npz", loss=loss, w=w - RATE * p.T @ rows / len(y), b=b - RATE * p.mean(0))


def convolutional():
    """Channels last, a normalisation in use, a list that names the batch, a softmax."""
    m = Model(13)
    m.input("x", 1, [1, SIDE, SIDE, 3])
    for name, array in (("c1", draw(8, 3, 3, 3)), ("b1", draw(8, 1)[:, 0]), ("c2", draw(8, 8, 3, 3)),
                        ("scale", np.ones(8, np.float32)), ("shift", draw(8, 1)[:, 0]),
                        ("mean", draw(8, 1)[:, 0] * 0.1), ("var", np.ones(8, np.float32)),
                        ("fc", draw(8, CLASSES)), ("fb", draw(CLASSES, 1)[:, 0]),
                        ("to", np.array([1, 8]))):
        m.tensor(name, array)
    m.node("Transpose", ["x"], ["first"], perm=[0, 3, 1, 2])
    m.node("Conv", ["first", "c1", "b1"], ["a"], pads=[1, 1, 1, 1])
    m.node("Relu", ["a"], ["ar"])
    m.node("Conv", ["ar", "c2"], ["c"], pads=[1, 1, 1, 1], strides=[2, 1])
    m.node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"])
    m.node("Relu", ["n"], ["nr"])
    m.node("GlobalMaxPool", ["nr"], ["p"])
    m.node("Reshape", ["p", "to"], ["flat"])
    m.node("MatMul", ["flat", "fc"], ["z"])
    m.node("Add", ["z", "fb"], ["logits"])
    m.node("Softmax", ["logits"], ["y"], axis=-1)
    m.output("y")
    m.write("conv.onnx")


def wide():
    """Weights of 19 MB, which is most of what a training takes."""
    m = Model(13)
    m.input("x", 1, [1, 3, SIDE, SIDE])
    channels, at = (3, 64, 512, 512, 512), "x"
    for i in range(4):
        m.tensor("w%d" % i, draw(channels[i + 1], channels[i], 3, 3))
        for name, array in (("scale", np.ones), ("shift", np.zeros), ("mean", np.zeros), ("var", np.ones)):
            m.tensor(name + str(i), array(channels[i + 1], np.float32))
        m.node("Conv", [at, "w%d" % i], ["c%d" % i], pads=[1, 1, 1, 1])
        m.node("BatchNormalization", ["c%d" % i] + [n + str(i) for n in ("scale", "shift", "mean", "var")], ["n%d" % i])
        m.node("Relu", ["n%d" % i], ["r%d" % i])
        at = "r%d" % i
    m.node("GlobalAveragePool", [at], ["p"])
    m.node("Flatten", ["p"], ["flat"])
    m.tensor("fc", draw(CLASSES, 512))
    m.tensor("fb", np.zeros(CLASSES, np.float32))
    m.node("Gemm", ["flat", "fc", "fb"], ["logits"], transB=1)
    m.output("logits")
    m.write("wide.onnx")


def attention():
    """Rows as tokens behind one of classes; tokens in front of the batch, as
    MultiheadAttention has them, heads joined with it."""
    width, heads, tokens = 8, 2, SIDE + 1
    m = Model(14)
    m.input("x", 1, [1, 3, SIDE, SIDE])
    for name, array in (("patch", draw(width, 3, 1, SIDE)), ("token", draw(1, 1, width)),
                        ("q", draw(width, width)), ("k", draw(width, width)), ("v", draw(width, width)),
                        ("fc", draw(CLASSES, width)), ("fb", draw(CLASSES)),
                        ("rows", np.array([1, width, SIDE])), ("flat", np.array([tokens, width])),
                        ("split", np.array([tokens, heads, width // heads])),
                        ("joined", np.array([tokens, 1, width])), ("zero", np.array(0))):
        m.tensor(name, array)
    m.node("Conv", ["x", "patch"], ["p"])
    m.node("Reshape", ["p", "rows"], ["pr"])
    m.node("Transpose", ["pr"], ["pt"], perm=[0, 2, 1])
    m.node("Concat", ["token", "pt"], ["all"], axis=1)
    m.node("Transpose", ["all"], ["front"], perm=[1, 0, 2])
    m.node("Reshape", ["front", "flat"], ["f"])
    for part in "qkv":
        m.node("MatMul", ["f", part], [part + "1"])
        m.node("Reshape", [part + "1", "split"], [part + "2"])
        m.node("Transpose", [part + "2"], [part + "3"], perm=[1, 2, 0] if part == "k" else [1, 0, 2])
    m.node("MatMul", ["q3", "k3"], ["s"])
    m.node("Softmax", ["s"], ["sp"], axis=-1)
    m.node("MatMul", ["sp", "v3"], ["o"])
    m.node("Transpose", ["o"], ["ot"], perm=[1, 0, 2])
    m.node("Reshape", ["ot", "joined"], ["oj"])
    m.node("Gather", ["oj", "zero"], ["first"], axis=0)
    m.node("Gemm", ["first", "fc", "fb"], ["logits"], transB=1)
    m.output("logits")
    m.write("attention.onnx")


def refused():
    """The samples' mean; and scores that no product makes."""
    for name, op in (("together", "ReduceMean"), ("bare", None)):
        m = Model(13)
        m.input("x", 1, [1, 3, SIDE, SIDE])
        m.tensor("w", draw(3 * SIDE * SIDE, CLASSES))
        at = "x"
        if op:
            m.node(op, ["x"], ["mean"], axes=[0], keepdims=1)
            m.node("Sub", ["x", "mean"], ["centred"])
            at = "centred"
        if op:
            m.node("Flatten", [at], ["flat"])
            m.node("MatMul", ["flat", "w"], ["logits"])
        else:
            m.node("GlobalAveragePool", [at], ["pooled"])
            m.node("Flatten", ["pooled"], ["logits"])
        m.output("logits")
        m.write(name + ".onnx")


x, y = pictures("data/train", CLASSES, 8)
pictures("data/test", CLASSES, 2)
pictures("four/train", 4, 4)
pictures("four/test", 4, 1)
linear(x, y)
convolutional()
wide()
attention()
refused()
