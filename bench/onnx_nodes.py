#!/usr/bin/env python3
"""The node tests of the `onnx` package through `stint import onnx` and `stint run`.

usage: onnx_nodes.py STINT [--only WORD] [--list] [--suite node|pytorch-converted|pytorch-operator|simple]

Each folder of onnx/backend/test/data/SUITE holds one small model with inputs and expected
outputs. Of the operators that `stint import onnx` takes every test of float32 counts;
tests of other element types, of sequences and of strings are counted apart, by reason.
Prints a line an operator and the sums; exit code 1 if a test that counts fails. Of
NonMaxSuppression the rows of -1 behind the boxes are cut off first: its shape is static here.
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

ALIKE = 1e-3, 1e-7  # relative and absolute, as onnx's own runner has them


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    tensor = onnx.TensorProto()
    tensor.ParseFromString(data)
    return numpy_helper.to_array(tensor)


def reason_to_skip(model):
    """Why this test is not one of ours, or None."""
    opsets = {o.domain: o.version for o in model.opset_import}
    if set(opsets) - {"", "ai.onnx"}:
        return "another domain"
    if model.functions:
        return "functions"
    for port in list(model.graph.input) + list(model.graph.output):
        if not port.type.HasField("tensor_type"):
            return "no tensor"
        kind = port.type.tensor_type.elem_type
        if kind not in (1, 6, 7, 9):
            return "elements " + onnx.TensorProto.DataType.Name(kind).lower()
    return None


def run(stint, folder, work):
    """(verdict, words): "pass", "fail", "unsupported" or "skip"."""
    model = onnx.load(os.path.join(folder, "model.onnx"))
    why = reason_to_skip(model)
    if why:
        return "skip", why
    version = model.opset_import[0].version
    if version > 21:  # what these tests use of later opsets is what opset 21 has
        model.opset_import[0].version = 21
    windows = {"Conv", "ConvTranspose", "AveragePool", "MaxPool"}  # the same in opsets 6 and 7
    if version == 6 and {node.op_type for node in model.graph.node} <= windows:
        model.opset_import[0].version = 7
    source, out, result = (os.path.join(work, name) for name in ("m.onnx", "m.st", "o.npz"))
    inner = {tensor.name for tensor in model.graph.initializer}
    names = [port.name for port in model.graph.input if port.name not in inner]
    data = os.path.join(folder, "test_data_set_0")
    arrays = [load(os.path.join(data, f"input_{i}.pb")) for i in range(len(names))]
    # Operands that are to be known when a network is built (shapes, axes) are whole numbers
    # of the test's inputs; there they become initialisers, as in exported networks.
    from onnx import helper
    keep, flags = [], []
    known = set()
    for node in model.graph.node:
        for k, name in enumerate(node.input):
            if name in names and is_structure(node.op_type, k):
                known.add(name)
    for port, array in zip([port for port in model.graph.input if port.name in names], arrays):
        if port.name in known:
            model.graph.initializer.append(numpy_helper.from_array(array, port.name))
        else:
            keep.append((port.name, array))
    onnx.save(model, source)
    shape = [f"--shape={name}=" + "x".join(map(str, a.shape)) for name, a in keep]
    done = subprocess.run([stint, "import", "onnx", source, "--out", out, *shape],
                          capture_output=True, text=True)
    if done.returncode == 8:
        return "unsupported", done.stderr.strip().replace("\n", " ")[-160:]
    if done.returncode:
        return "fail", done.stderr.strip()[-200:]
    for i, (name, array) in enumerate(keep):
        path = os.path.join(work, f"i{i}.npy")
        np.save(path, array)
        flags.append(f"--input={name}={path}")
    done = subprocess.run([stint, "run", out, "--out", result, *flags], capture_output=True, text=True)
    if done.returncode:
        return "fail", done.stderr.strip()[-200:]
    made = np.load(result)
    for i, port in enumerate(model.graph.output):
        want = load(os.path.join(data, f"output_{i}.pb"))
        got = made[port.name]
        if model.graph.node[0].op_type == "NonMaxSuppression":
            got = got[:len(want)] if (got[len(want):] == -1).all() else got
        if got.shape != want.shape:
            return "fail", f"{port.name}: shape {got.shape}, wanted {want.shape}"
        if not np.allclose(got.astype(np.float64), want.astype(np.float64), *ALIKE, equal_nan=True):
            return "fail", f"{port.name}: off by {np.abs(got.astype(np.float64) - want).max():.3g}"
    return "pass", ""


STRUCTURE = {"Reshape": {1}, "Slice": {1, 2, 3, 4}, "Squeeze": {1}, "Unsqueeze": {1}, "Expand": {1},
             "Tile": {1}, "Pad": {1, 2, 3}, "Split": {1}, "TopK": {1}, "Resize": {1, 2, 3}, "Upsample": {1},
             "ReduceSum": {1}, "ReduceMean": {1}, "ReduceMax": {1}, "ReduceMin": {1}, "ReduceProd": {1},
             "ReduceL1": {1}, "ReduceL2": {1}, "ReduceLogSum": {1}, "ReduceLogSumExp": {1},
             "ReduceSumSquare": {1}, "ConstantOfShape": {0}, "Range": {0, 1, 2}, "OneHot": {1}, "CumSum": {1},
             "Clip": {1, 2}, "NonMaxSuppression": {2, 3, 4}, "Trilu": {1}, "Dropout": {1, 2}, "LSTM": {4}, "GRU": {4}, "CenterCropPad": {1},
             "QuantizeLinear": {1, 2}, "DequantizeLinear": {1, 2}}


def is_structure(op, operand):
    return operand in STRUCTURE.get(op, ())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stint")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--suite", default="node")
    args = parser.parse_args()
    root = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", args.suite)
    table = collections.defaultdict(collections.Counter)
    sums, skipped = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as work:
        for name in sorted(os.listdir(root)):
            folder = os.path.join(root, name)
            if args.only not in name or not os.path.exists(os.path.join(folder, "model.onnx")):
                continue
            try:
                verdict, words = run(args.stint, folder, work)
            except (ValueError, TypeError, AttributeError) as error:
                verdict, words = "skip", "not read by this script: " + type(error).__name__
            model = onnx.load(os.path.join(folder, "model.onnx"))
            op = model.graph.node[-1].op_type if len(model.graph.node) == 1 else "(several)"
            table[op][verdict] += 1
            sums[verdict] += 1
            if verdict == "skip":
                skipped[words] += 1
            elif args.list and verdict != "pass":
                print(f"{verdict:12} {name}: {words}")
    for op in sorted(table):
        row = table[op]
        if row["pass"] or row["fail"]:
            print(f"{op:28} passed {row['pass']:4}  failed {row['fail']:4}  "
                  f"not taken {row['unsupported']:4}  not float32 {row['skip']:4}")
    print("sums:", dict(sums))
    print("not counted:", dict(skipped))
    return 1 if sums["fail"] else 0


if __name__ == "__main__":
    sys.exit(main())
