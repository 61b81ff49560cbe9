"""A writer of ONNX files in a page, for tests: no package but NumPy is needed.

    w = Model(opset=17)
    w.input("x", 1, ["n", 3, 8, 8]); w.tensor("w", array)
    w.node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    w.output("y", 1, [None]); w.write("m.onnx")
"""

import struct

import numpy as np

TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
         "float64": 11}


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while True:
        out += bytes([n & 127 | (128 if n > 127 else 0)])
        n >>= 7
        if not n:
            return out


def number(field, n):
    return varint(field << 3) + varint(n)


def block(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def word(field, x):
    return varint(field << 3 | 5) + struct.pack("<f", x)


def tensor(name, array, kind=None, external=None):
    """A TensorProto; external: (file, offset), whose bytes the caller writes."""
    array = np.asarray(array)
    out = b"".join(number(1, d) for d in array.shape)
    out += number(2, kind or TYPES[array.dtype.name])
    if external:
        for key, value in (("location", external[0]), ("offset", str(external[1])),
                           ("length", str(array.nbytes))):
            out += block(13, block(1, key) + block(2, value))
        out += number(14, 1)
    else:
        out += block(9, array.tobytes())
    return out + block(8, name)


def attribute(name, value):
    out = block(1, name)
    if isinstance(value, Model):
        return out + block(6, value.graph()) + number(20, 5)
    if isinstance(value, np.ndarray):
        return out + block(5, tensor("", value)) + number(20, 4)
    if isinstance(value, float):
        return out + word(2, value) + number(20, 1)
    if isinstance(value, int):
        return out + number(3, value) + number(20, 2)
    if isinstance(value, str):
        return out + block(4, value) + number(20, 3)
    if value and isinstance(value[0], float):
        return out + b"".join(word(7, x) for x in value) + number(20, 6)
    return out + b"".join(number(8, x) for x in value) + number(20, 7)


def port(name, kind, shape):
    dims = b"".join(block(1, block(2, d) if isinstance(d, str) else number(1, d)) for d in shape)
    return block(1, name) + block(2, block(1, number(1, kind) + block(2, dims)))


class Model:
    def __init__(self, opset=17):
        self.opset, self.parts = opset, []

    def node(self, op, inputs, outputs, name="", **attributes):
        out = b"".join(block(1, i) for i in inputs) + b"".join(block(2, o) for o in outputs)
        out += block(3, name or "/" + op.lower() + "/" + outputs[0]) + block(4, op)
        out += b"".join(block(5, attribute(k, v)) for k, v in attributes.items())
        self.parts.append(block(1, out))

    def tensor(self, name, array, kind=None, external=None):
        self.parts.append(block(5, tensor(name, array, kind, external)))

    def input(self, name, kind, shape):
        self.parts.append(block(11, port(name, kind, shape)))

    def output(self, name, kind=1, shape=()):
        self.parts.append(block(12, port(name, kind, shape)))

    def graph(self):
        return b"".join(self.parts) + block(2, "test")

    def bytes(self):
        return (number(1, 8) + block(2, "onnx_file.py") + block(7, self.graph())
                + block(8, block(1, "") + number(2, self.opset)))

    def write(self, path):
        with open(path, "wb") as file:
            file.write(self.bytes())
