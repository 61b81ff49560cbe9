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


if __name__ == "__main__":
    refused()
    sys.exit(0)
