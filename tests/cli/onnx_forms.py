"""Forms of single operators as ONNX files, for onnx_forms_test.sh: those that are refused, one file
each, and what loops in NumPy make of the others: NAME.IN.npy, NAME.want.npz."""

import sys

import numpy as np

from onnx_file import Model

random = np.random.default_rng(3)


def draw(*shape):
    return random.normal(size=shape).astype(np.float32)


def one(name, op, inputs, tensors=(), **attributes):
    """A file of one node; inputs are shapes or indices, read before the tensors, which are known."""
    m = Model(18)
    names = []
    for i, operand in enumerate(inputs):
        names.append(f"x{i}")
        m.input(names[-1], 1 if isinstance(operand, list) else 7,
                operand if isinstance(operand, list) else list(operand))
    for i, operand in enumerate(tensors):
        names.append(f"t{i}")
        m.tensor(names[-1], operand)
    m.node(op, names, ["y"], name="/node", **attributes)
    m.output("y")
    m.write(f"{name}.onnx")


def refused():
    one("cubic", "GridSample", [[1, 2, 5, 6], [1, 3, 4, 2]], mode="bicubic")
    one("wrap", "GridSample", [[1, 2, 5, 6], [1, 3, 4, 2]], padding_mode="wrap")
    one("volume", "GridSample", [[1, 2, 4, 5, 6], [1, 2, 3, 4, 3]])
    # As many updates as indices, lying otherwise; (5, 4) are indices, [5, 4] numbers.
    one("turned", "ScatterElements", [[5, 4], (2, 3), [3, 2]])
    one("flat", "ScatterElements", [[5, 4], (2, 3), [6]])
    one("rows", "ScatterND", [[5, 4], (3, 1), [4, 3]])
    one("cells", "ScatterND", [[5, 4], (2, 3, 2), [3, 2]])
    for name, op, index, updates in (
            ("known turned", "ScatterElements", np.zeros((2, 3), np.int64), draw(3, 2)),
            ("known rows", "ScatterND", np.zeros((3, 1), np.int64), draw(4, 3))):
        one(name, op, [], (draw(5, 4), index, updates))


def conv3(x, w, b, stride, before, after, dilation, groups):
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0)] + list(zip(before, after)))
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation)]
    out = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, stride)]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    each = w.shape[0] // groups
    for o, *at in np.ndindex(w.shape[0], *out):
        first = o // each * w.shape[1]
        cut = tuple(slice(i * s, i * s + r, d) for i, s, r, d in zip(at, stride, reach, dilation))
        y[(slice(None), o, *at)] = (x[(slice(None), slice(first, first + w.shape[1]), *cut)] * w[o]).sum((1, 2, 3, 4))
    return y + b[None, :, None, None, None]


def volumes():
    """Convolutions over three axes of pixels, with a normalisation and poolings of as many."""
    x, w1, b1, w2, b2 = draw(2, 4, 9, 7, 6), draw(6, 2, 3, 2, 3), draw(6), draw(5, 6, 1, 1, 1), draw(5)
    scale, shift, mean, var = draw(6), draw(6), draw(6), np.abs(draw(6)) + 0.5
    m = Model()
    m.input("x", 1, list(x.shape))
    for name, array in (("w1", w1), ("b1", b1), ("w2", w2), ("b2", b2), ("s", scale), ("t", shift),
                        ("m", mean), ("v", var)):
        m.tensor(name, array)
    m.node("Conv", ["x", "w1", "b1"], ["a"], group=2, strides=[2, 2, 2], dilations=[2, 1, 1],
           pads=[2, 0, 1, 1, 1, 1])
    m.node("BatchNormalization", ["a", "s", "t", "m", "v"], ["n"])
    m.node("Relu", ["n"], ["r"])
    m.node("MaxPool", ["r"], ["p"], kernel_shape=[2, 3, 2], strides=[1, 2, 1])
    m.node("Conv", ["p", "w2", "b2"], ["c"])
    m.node("AveragePool", ["c"], ["q"], kernel_shape=[2, 1, 1])
    m.node("GlobalAveragePool", ["c"], ["g"])
    for name in ("c", "q", "g"):
        m.output(name)
    m.write("volumes.onnx")
    a = conv3(x, w1, b1, (2, 2, 2), (2, 0, 1), (1, 1, 1), (2, 1, 1), 2)
    along = (slice(None), None, None, None)
    r = np.maximum((a - mean[along]) / np.sqrt(var + 1e-5)[along] * scale[along] + shift[along], 0)
    d, h, w = r.shape[2] - 1, (r.shape[3] - 3) // 2 + 1, r.shape[4] - 1
    p = np.max([r[:, :, i:i + d, j:j + 2 * h - 1:2, k:k + w] for i, j, k in np.ndindex(2, 3, 2)], 0)
    c = conv3(p, w2, b2, (1, 1, 1), (0, 0, 0), (0, 0, 0), (1, 1, 1), 1)
    np.save("volumes.x.npy", x)
    np.savez("volumes.want.npz", c=c, q=(c[:, :, :-1] + c[:, :, 1:]) / 2, g=c.mean((2, 3, 4), keepdims=True))


def chosen(boxes, scores, most, overlap, least):
    """Boxes [count, 4] by corners, chosen by one class's scores."""
    best = []
    for i in sorted(range(len(scores)), key=lambda i: (-scores[i], i)):
        if scores[i] <= least or len(best) == most:
            continue
        (t, l), (b, r) = np.minimum(boxes[i, :2], boxes[i, 2:]), np.maximum(boxes[i, :2], boxes[i, 2:])
        free = True
        for k in best:
            (t2, l2), (b2, r2) = np.minimum(boxes[k, :2], boxes[k, 2:]), np.maximum(boxes[k, :2], boxes[k, 2:])
            both = max(0, min(b, b2) - max(t, t2)) * max(0, min(r, r2) - max(l, l2))
            free = free and both <= overlap * ((b - t) * (r - l) + (b2 - t2) * (r2 - l2) - both)
        if free:
            best.append(i)
    return best


def suppressed():
    """Boxes that are chosen, as the network's end; and where other operators would read them."""
    count, most = 30, 8
    boxes, scores = random.uniform(0, 4, (2, count, 4)).astype(np.float32), draw(2, 3, count)

    def begin():
        m = Model()
        m.input("boxes", 1, [2, count, 4])
        m.input("scores", 1, [2, 3, count])
        for tensor, value in (("most", np.array([most])), ("overlap", np.array([0.2], np.float32)),
                              ("least", np.array([0.6], np.float32)), ("column", np.array(2))):
            m.tensor(tensor, value)
        m.node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["picked"])
        return m

    m = begin()
    m.node("Gather", ["picked", "column"], ["index"], axis=1)
    m.node("Cast", ["index"], ["number"], to=1)
    for name, kind in (("picked", 7), ("index", 7), ("number", 1)):
        m.output(name, kind)
    m.write("chosen.onnx")
    rows = [(n, c, i) for n, c in np.ndindex(2, 3) for i in chosen(boxes[n], scores[n, c], most, np.float32(0.2), np.float32(0.6))]
    want = np.full((2 * 3 * most, 3), -1)
    want[:len(rows)] = rows
    assert 6 < len(rows) < len(want)
    np.save("chosen.boxes.npy", boxes)
    np.save("chosen.scores.npy", scores)
    np.savez("chosen.want.npz", picked=want, index=want[:, 2], number=want[:, 2].astype(np.float32))
    for name, op, inputs, attributes in (("read boxes", "Gather", ["boxes", "index"], {"axis": 1}),
                                         ("read shape", "Shape", ["picked"], {}),
                                         ("read rows", "Gather", ["picked", "column"], {"axis": 0})):
        m = begin()
        m.node("Gather", ["picked", "column"], ["index"], axis=-1)
        m.node(op, inputs, ["y"], name="/reader", **attributes)
        m.output("y")
        m.write(f"{name}.onnx")


if __name__ == "__main__":
    refused()
    volumes()
    suppressed()
    sys.exit(0)
