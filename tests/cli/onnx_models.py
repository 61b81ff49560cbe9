"""ONNX files and what NumPy makes of the same networks, for onnx_cmd_test.sh: a file NAME.onnx,
inputs NAME.IN.npy and the wanted NAME.want.npz, by loops that share nothing with Stint."""

import os
import sys

import numpy as np

from onnx_file import Model

random = np.random.default_rng(7)


def draw(*shape):
    return random.normal(size=shape).astype(np.float32)


def conv(x, w, b=None, stride=(1, 1), pads=(0, 0, 0, 0), dilation=(1, 1), groups=1):
    n, c, height, width = x.shape
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    co, cig, kh, kw = w.shape
    oh = (x.shape[2] - (kh - 1) * dilation[0] - 1) // stride[0] + 1
    ow = (x.shape[3] - (kw - 1) * dilation[1] - 1) // stride[1] + 1
    y = np.zeros((n, co, oh, ow))
    for o in range(co):
        first = o // (co // groups) * cig
        for i in range(oh):
            for j in range(ow):
                patch = x[:, first:first + cig, i * stride[0]:i * stride[0] + (kh - 1) * dilation[0] + 1:dilation[0],
                          j * stride[1]:j * stride[1] + (kw - 1) * dilation[1] + 1:dilation[1]]
                y[:, o, i, j] = (patch * w[o]).sum((1, 2, 3))
    return y if b is None else y + b[None, :, None, None]


def convolutional():
    """Convolutions of every sort, a normalisation, poolings, shape arithmetic, a classifier."""
    x = draw(2, 3, 11, 9)
    w1, b1, w2, w3 = draw(8, 3, 3, 3), draw(8), draw(8, 1, 3, 2), draw(6, 8, 3, 3)
    scale, shift, mean, var = draw(6), draw(6), draw(6), np.abs(draw(6)) + 0.5
    fc, bias = draw(5, 6 * 3 * 3) * 0.3, draw(5)
    m = Model()
    m.input("image", 1, ["batch", 3, "height", "width"])
    for name, array in (("w1", w1), ("b1", b1), ("w2", w2), ("w3", w3), ("s", scale), ("t", shift),
                        ("m", mean), ("v", var), ("fc/weight", fc), ("fc/bias", bias)):
        m.tensor(name, array)
    m.node("Conv", ["image", "w1", "b1"], ["a"], pads=[2, 0, 1, 1], strides=[2, 1])
    m.node("LeakyRelu", ["a"], ["b"], alpha=0.2)
    m.node("Conv", ["b", "w2"], ["c"], group=8, auto_pad="SAME_UPPER")
    m.node("Conv", ["c", "w3"], ["d"], dilations=[2, 2], pads=[1, 2, 2, 1])
    m.node("BatchNormalization", ["d", "s", "t", "m", "v"], ["e"], epsilon=0.001)
    m.node("Relu", ["e"], ["f"])
    m.node("MaxPool", ["f"], ["g"], kernel_shape=[2, 3], strides=[2, 3], ceil_mode=1)
    # flatten as exporters write it: the batch read from the shape, then [batch, -1]
    m.node("Shape", ["g"], ["shape"])
    m.node("Constant", [], ["zero"], value=np.array(0))
    m.node("Gather", ["shape", "zero"], ["n"], axis=0)
    m.tensor("axes", np.array([0]))
    m.node("Unsqueeze", ["n", "axes"], ["n1"])
    m.tensor("rest", np.array([-1]))
    m.node("Concat", ["n1", "rest"], ["to"], axis=0)
    m.node("Reshape", ["g", "to"], ["h"])
    m.node("Gemm", ["h", "fc/weight", "fc/bias"], ["logits"], transB=1)
    m.node("Softmax", ["logits"], ["probabilities"], axis=-1)
    m.output("probabilities")
    m.output("g")
    m.write("conv.onnx")
    a = conv(x, w1, b1, (2, 1), (2, 0, 1, 1))
    b = np.where(a > 0, a, np.float32(0.2) * a)
    c = conv(b, w2, None, (1, 1), (1, 0, 1, 1), groups=8)
    d = conv(c, w3, None, (1, 1), (1, 2, 2, 1), (2, 2))
    e = (d - mean[:, None, None]) / np.sqrt(var + np.float32(0.001))[:, None, None]
    f = np.maximum(e * scale[:, None, None] + shift[:, None, None], 0)
    oh, ow = -(-(f.shape[2] - 2) // 2) + 1, -(-(f.shape[3] - 3) // 3) + 1
    g = np.zeros(f.shape[:2] + (oh, ow))
    for i in range(oh):
        for j in range(ow):
            g[:, :, i, j] = f[:, :, 2 * i:2 * i + 2, 3 * j:3 * j + 3].max((2, 3))
    logits = g.reshape(2, -1) @ fc.T + bias
    p = np.exp(logits - logits.max(1, keepdims=True))
    np.save("conv.image.npy", x)
    np.savez("conv.want.npz", probabilities=p / p.sum(1, keepdims=True), g=g)


def mobile():
    """What the passes for use join: normalisation behind a convolution, hard-swish written out,
    x * sigmoid(x), factors of channels, an addition and its activation; images of one column."""
    x, w1, w2 = draw(1, 4, 13, 1), draw(8, 4, 5, 1), draw(8, 1, 3, 1)
    scale, shift, mean, var = draw(8), draw(8), draw(8), np.abs(draw(8)) + 0.5
    gate = draw(1, 8, 1, 1)
    m = Model()
    m.input("x", 1, [1, 4, 13, 1])
    for name, array in (("w1", w1), ("w2", w2), ("s", scale), ("t", shift), ("m", mean), ("v", var),
                        ("gate", gate), ("three", np.float32(3)), ("six", np.float32(6))):
        m.tensor(name, array)
    m.node("Conv", ["x", "w1"], ["a"], pads=[2, 0, 1, 0], strides=[2, 1])
    m.node("BatchNormalization", ["a", "s", "t", "m", "v"], ["b"])
    m.node("Mul", ["b", "gate"], ["c"])
    m.node("Add", ["c", "three"], ["d"])
    m.node("Relu", ["d"], ["e"])
    m.node("Min", ["e", "six"], ["f"])
    m.node("Mul", ["c", "f"], ["g"])
    m.node("Div", ["g", "six"], ["h"])
    m.node("Conv", ["h", "w2"], ["i"], group=8, pads=[1, 0, 1, 0])
    m.node("Sigmoid", ["i"], ["j"])
    m.node("Mul", ["i", "j"], ["k"])
    m.node("Add", ["k", "h"], ["l"])
    m.node("Relu", ["l"], ["y"])
    m.output("y")
    m.write("mobile.onnx")
    a = conv(x, w1, None, (2, 1), (2, 0, 1, 0))
    b = (a - mean[:, None, None]) / np.sqrt(var + 1e-5)[:, None, None]
    c = (b * scale[:, None, None] + shift[:, None, None]) * gate
    h = c * np.minimum(np.maximum(c + 3, 0), 6) / 6
    i = conv(h, w2, None, (1, 1), (1, 0, 1, 0), groups=8)
    np.save("mobile.x.npy", x)
    np.savez("mobile.want.npz", y=np.maximum(i / (1 + np.exp(-i)) + h, 0))


def shuffled():
    """Channels shuffled between convolutions, LRN, a Dropout with its mask, Einsum of two and one."""
    x, w1, w2, mix = draw(2, 3, 6, 5), draw(8, 3, 1, 1), draw(8, 2, 1, 1), draw(8, 6, 4)
    m = Model()
    m.input("x", 1, [2, 3, 6, 5])
    for name, array in (("w1", w1), ("w2", w2), ("mix", mix), ("split", np.array([0, 4, 2, 6, 5])),
                        ("join", np.array([0, 8, 6, 5]))):
        m.tensor(name, array)
    m.node("Conv", ["x", "w1"], ["a"])
    m.node("LRN", ["a"], ["b"], size=3, alpha=0.5, beta=0.6, bias=1.5)
    m.node("Reshape", ["b", "split"], ["c"])
    m.node("Transpose", ["c"], ["d"], perm=[0, 2, 1, 3, 4])
    m.node("Reshape", ["d", "join"], ["e"])
    m.node("Conv", ["e", "w2"], ["f"], group=4)
    m.node("Dropout", ["f"], ["g", "mask"])
    m.node("Einsum", ["g", "mix"], ["h"], equation="bchw, chk -> bkw")
    m.node("Einsum", ["h"], ["y"], equation="bkw->wb")
    for name in ("h", "y"):
        m.output(name)
    m.output("mask", 9)
    m.write("shuffled.onnx")
    a = conv(x, w1)
    square = np.pad(a * a, ((0, 0), (1, 1), (0, 0), (0, 0)))
    b = a / (1.5 + 0.5 / 3 * (square[:, :-2] + square[:, 1:-1] + square[:, 2:])) ** 0.6
    e = b.reshape(2, 4, 2, 6, 5).swapaxes(1, 2).reshape(2, 8, 6, 5)
    h = np.einsum("bchw,chk->bkw", conv(e, w2, groups=4), mix.astype(np.float64))
    np.save("shuffled.x.npy", x)
    np.savez("shuffled.want.npz", h=h, y=h.sum(1).T, mask=np.ones((2, 8, 6, 5)))


def attention():
    """A block of a transformer as exporters write it: tokens, heads, a mask by Where, a branch."""
    vocabulary, width, heads, length = 11, 12, 3, 5
    table, qkv, out = draw(vocabulary, width), draw(width, 3 * width), draw(width, width)
    g1, g2 = draw(width), draw(width)
    tokens = random.integers(0, vocabulary, size=(2, length))
    mask = np.tril(np.ones((length, length), bool))
    m = Model()
    m.input("tokens", 7, ["batch", "length"])
    for name, array in (("table", table), ("qkv", qkv), ("out", out), ("g1", g1), ("g2", g2)):
        m.tensor(name, array)
    m.node("Gather", ["table", "tokens"], ["x"])
    m.node("LayerNormalization", ["x", "g1", "g2"], ["n"], axis=-1, epsilon=1e-5)
    m.node("MatMul", ["n", "qkv"], ["p"])
    m.node("Split", ["p"], ["q", "k", "v"], axis=2)
    m.tensor("heads", np.array([0, 0, heads, width // heads]))
    for name in "qkv":
        m.node("Reshape", [name, "heads"], [name + "1"])
        m.node("Transpose", [name + "1"], [name + "2"], perm=[0, 2, 1, 3])
    m.node("Transpose", ["k2"], ["k3"], perm=[0, 1, 3, 2])
    m.node("MatMul", ["q2", "k3"], ["scores"])
    m.tensor("root", np.float32(np.sqrt(width / heads)))
    m.node("Div", ["scores", "root"], ["scaled"])
    # the mask by shape arithmetic: arange(length) <= arange(length)[:, None]
    m.node("Shape", ["tokens"], ["ts"], start=1, end=2)
    m.tensor("none", np.array([], np.int64))
    m.node("Reshape", ["ts", "none"], ["t"])
    m.tensor("0", np.array(0))
    m.tensor("1", np.array(1))
    m.node("Range", ["0", "t", "1"], ["r"])
    m.tensor("ax1", np.array([1]))
    m.node("Unsqueeze", ["r", "ax1"], ["rows"])
    m.node("LessOrEqual", ["r", "rows"], ["mask"])
    m.tensor("low", np.float32(-np.inf))
    m.node("Where", ["mask", "scaled", "low"], ["masked"])
    m.node("Softmax", ["masked"], ["weights"], axis=-1)
    m.node("MatMul", ["weights", "v2"], ["mixed"])
    m.node("Transpose", ["mixed"], ["back"], perm=[0, 2, 1, 3])
    m.tensor("flat", np.array([0, 0, -1]))
    m.node("Reshape", ["back", "flat"], ["joined"])
    m.node("MatMul", ["joined", "out"], ["o"])
    yes, no = Model(), Model()
    yes.node("Add", ["o", "x"], ["sum"])
    yes.output("sum")
    no.node("Identity", ["o"], ["same"])
    no.output("same")
    m.node("Equal", ["t", "t"], ["is"])
    m.node("If", ["is"], ["y"], then_branch=yes, else_branch=no)
    m.node("ArgMax", ["y"], ["best"], axis=-1, keepdims=0)
    m.output("y")
    m.output("best", 7)
    m.write("attention.onnx")
    x = table[tokens].astype(np.float64)
    n = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g1 + g2
    q, k, v = (t.reshape(2, length, heads, -1).transpose(0, 2, 1, 3) for t in np.split(n @ qkv, 3, -1))
    s = np.where(mask, q @ k.transpose(0, 1, 3, 2) / np.sqrt(width / heads), -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    o = (e / e.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(2, length, width) @ out
    np.save("attention.tokens.npy", tokens)
    np.savez("attention.want.npz", y=o + x, best=(o + x).argmax(-1))


def types():
    """Element types, external data, typed lists: y = f16 + f64 + external, by int32 indices."""
    half, double, far = draw(4, 6).astype(np.float16), draw(4, 6).astype(np.float64), draw(4, 6)
    index = np.array([3, -1, 0], np.int32)
    with open("far.bin", "wb") as file:
        file.write(b"12345678" + far.tobytes())
    m = Model()
    m.input("x", 1, [4, 6])
    m.tensor("half", half)
    m.tensor("double", double)
    m.tensor("far", far, external=("far.bin", 8))
    m.tensor("index", index)
    m.node("Cast", ["half"], ["h"], to=1)
    m.node("Cast", ["double"], ["d"], to=1)
    m.node("Sum", ["x", "h", "d", "far"], ["s"])
    m.node("Gather", ["s", "index"], ["y"], axis=0)
    m.output("y")
    m.write("types.onnx")
    x = draw(4, 6)
    np.save("types.x.npy", x)
    np.savez("types.want.npz", y=(x + half.astype(np.float64) + double + far)[index])


def one(name, op, operands, results=1, **attributes):
    """A file of one node of tensors alone."""
    m = Model()
    names = []
    for i, operand in enumerate(operands):
        names.append("" if operand is None else f"t{i}")
        if operand is not None:
            m.tensor(f"t{i}", operand)
    m.node(op, names, [f"y{i}" for i in range(results)], name="/node", **attributes)
    m.output("y0")
    m.write(f"hostile/{name}.onnx")


def hostile():
    """Operands that are left out, empty, of other types, or count beyond any tensor."""
    os.mkdir("hostile")
    a, far = draw(2, 3), 1 << 62
    one("hole", "Max", [a, None, a])
    one("gap", "Concat", [a, None], axis=0)
    one("list", "Squeeze", [draw(1, 3), draw(1)])
    one("perm", "Transpose", [a], perm=[0.0, 1.0])
    one("range", "Range", [np.array(0), np.array(9), np.array([], np.int64)])
    one("mixed", "Range", [np.array(0), np.array(9), np.float32(1)])
    one("diagonal", "Trilu", [a, np.array([], np.int64)])
    one("again", "Slice", [a, np.zeros(9, np.int64), np.full(9, far), np.zeros(9, np.int64)])
    one("split", "Split", [np.arange(4), np.array([1, far * 2 - 1])], results=2)
    one("tile", "Tile", [np.zeros((0, 2), np.float32), np.array([1, far])])
    one("lengths", "ConstantOfShape", [np.array([1 << 40, 1 << 40, 0])])
    m = Model()
    m.input("x", 1, [2, 3])
    m.node("Pad", ["x"], ["y"], pads=[-far * 2, 0, 0, 0])
    m.output("y")
    m.write("hostile/pads.onnx")
    m = Model()
    m.input("x", 1, [3])
    m.tensor("t", draw(2, 2, 3, 4))
    m.node("MatMul", ["x", "t"], ["p"])
    m.node("MatMul", ["p", "x"], ["y"])
    m.output("y")
    m.write("hostile/vector.onnx")
    m = Model()
    m.tensor("t", a, external=("little.bin", 0))
    m.node("Relu", ["t"], ["y"])
    m.output("y")
    m.write("hostile/little.onnx")
    open("hostile/little.bin", "wb").write(b"little")


def constants():
    """Results that depend on nothing: views and products of what is known."""
    a, b = draw(4, 3), draw(3, 5)
    m = Model()
    m.input("x", 1, [2])
    m.tensor("a", a)
    m.tensor("b", b)
    m.node("MatMul", ["a", "b"], ["y"])
    m.node("Relu", ["x"], ["z"])
    m.output("y")
    m.output("z")
    m.write("constants.onnx")
    x = draw(2)
    np.save("constants.x.npy", x)
    np.savez("constants.want.npz", y=a.astype(np.float64) @ b, z=np.maximum(x, 0))


def sampled(x, grid, corners, padding):
    """Four pixels around each point, by their areas."""
    n, c, h, w = x.shape
    y = np.zeros((n, c, *grid.shape[1:3]))
    for b, i, j in np.ndindex(*grid.shape[:3]):
        at = []
        for g, side in zip(grid[b, i, j].astype(np.float64), (w, h)):
            p = (g + 1) / 2 * (side - 1) if corners else ((g + 1) * side - 1) / 2
            at.append(min(max(p, 0), side - 1) if padding == "border" else p)
        left, top = int(np.floor(at[0])), int(np.floor(at[1]))
        for yy, xx in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
            if 0 <= yy < h and 0 <= xx < w:
                y[b, :, i, j] += x[b, :, yy, xx] * (1 - abs(at[1] - yy)) * (1 - abs(at[0] - xx))
    return y


def scattered():
    """Elements written to places that the data say, and to those of constants; pictures read at
    points."""
    m = Model(18)
    x, u, image, grid = draw(5, 4), draw(3, 4), draw(2, 3, 5, 6), draw(2, 3, 4, 2) * 0.8
    rows, ones = np.array([[4], [1], [4]]), np.array([[0, 3, 0], [-1, 2, 2]])
    m.input("x", 1, [5, 4])
    m.input("rows", 7, [3, 1])
    m.input("ones", 7, [2, 3])
    m.input("image", 1, [2, 3, 5, 6])
    m.input("grid", 1, [2, 3, 4, 2])
    m.tensor("u", u)
    m.node("ScatterND", ["x", "rows", "u"], ["sum"], reduction="add")
    m.node("Slice", ["u", "zero", "two"], ["two rows"])
    m.tensor("zero", np.array([0, 0]))
    m.tensor("two", np.array([2, 3]))
    m.node("ScatterElements", ["x", "ones", "two rows"], ["most"], axis=1, reduction="max")
    m.tensor("mask", np.zeros((5, 4), np.float32))
    m.tensor("places", np.array([[0, 1], [-1, -1]]))
    m.tensor("both", np.array([3, -2], np.float32))
    m.node("ScatterND", ["mask", "places", "both"], ["marked"])
    m.tensor("columns", np.array([[1, 1, 0, 2]]))
    m.tensor("row", np.array([[9, 8, 7, 6]], np.float32))
    m.node("ScatterElements", ["marked", "columns", "row"], ["more"], axis=0)
    m.node("Add", ["x", "more"], ["masked"])
    m.node("GridSample", ["image", "grid"], ["plain"])
    m.node("GridSample", ["image", "grid"], ["edge"], align_corners=1, padding_mode="border")
    for name in ("sum", "most", "masked", "plain", "edge"):
        m.output(name)
    m.write("scattered.onnx")
    total, most, mask = x.astype(np.float64), x.copy(), np.zeros((5, 4))
    for i, (r,) in enumerate(rows):
        total[r] += u[i]
    for i, j in np.ndindex(2, 3):
        most[i, ones[i, j]] = max(most[i, ones[i, j]], u[i, j])
    mask[0, 1], mask[4, 3] = 3, -2
    for j, r in enumerate((1, 1, 0, 2)):
        mask[r, j] = 9 - j
    for name, array in (("x", x), ("rows", rows), ("ones", ones), ("image", image), ("grid", grid)):
        np.save(f"scattered.{name}.npy", array)
    np.savez("scattered.want.npz", sum=total, most=most, masked=x + mask, plain=sampled(image, grid, False, "zeros"),
             edge=sampled(image, grid, True, "border"))


def alone():
    """A network without inputs."""
    m = Model()
    m.tensor("t", draw(2, 3))
    m.node("Relu", ["t"], ["y"])
    m.output("y")
    m.write("alone.onnx")


def bad():
    """Files to be refused."""
    good = open("conv.onnx", "rb").read()
    open("short.onnx", "wb").write(good[:len(good) // 2])
    open("empty.onnx", "wb").write(b"")
    open("text.onnx", "wb").write(b"this is no model at all, but text\n" * 9)
    for opset in (6, 22):
        m = Model(opset)
        m.input("x", 1, [2])
        m.node("Relu", ["x"], ["y"])
        m.output("y")
        m.write(f"opset{opset}.onnx")
    m = Model()
    m.input("x", 1, [2, 3])
    m.node("Hardmax", ["x"], ["e"], name="/layer/hard")
    m.node("Relu", ["e"], ["r"])
    m.node("Bernoulli", ["x"], ["b"], name="/other/draw")
    m.output("r")
    m.output("b")
    m.write("unknown.onnx")
    m = Model()
    m.input("x", 1, [2, 3])
    m.node("Add", ["x", "b"], ["a"])
    m.node("Relu", ["a"], ["b"])
    m.output("b")
    m.write("circle.onnx")
    m = Model()
    m.input("x", 1, [2, 3])
    m.node("MatMul", ["x", "weight"], ["y"], name="/fc/MatMul")
    m.tensor("weight", draw(4, 5))
    m.output("y")
    m.write("shapes.onnx")
    for name, place in (("up", "../far.bin"), ("root", "/etc/passwd"), ("gone", "nowhere.bin")):
        m = Model()
        m.input("x", 1, [4, 6])
        m.tensor("far", draw(4, 6), external=(place, 8))
        m.node("Add", ["x", "far"], ["y"])
        m.output("y")
        m.write(f"{name}.onnx")
    m = Model()
    m.input("x", 9, [])
    yes, no = Model(), Model()
    for branch in (yes, no):
        branch.node("Constant", [], ["c"], value=draw(2))
        branch.output("c")
    m.node("If", ["x"], ["y"], name="/gate", then_branch=yes, else_branch=no)
    m.output("y")
    m.write("branch.onnx")
    m = Model()
    m.input("x", 1, [2])
    m.tensor("nan", np.array([1, np.nan], np.float32))
    m.node("Mul", ["x", "nan"], ["y"])
    m.output("y")
    m.write("nan.onnx")
    hostile()
    inner = Model()
    inner.output("x")
    for _ in range(40):
        outer = Model()
        outer.node("If", ["c"], ["x"], then_branch=inner, else_branch=inner)
        outer.output("x")
        inner = outer
        if len(inner.bytes()) > 1 << 20:
            break
    inner.write("deep.onnx")


if __name__ == "__main__":

    convolutional()
    mobile()
    shuffled()
    attention()
    types()
    constants()
    scattered()
    alone()
    bad()
    sys.exit(0)
