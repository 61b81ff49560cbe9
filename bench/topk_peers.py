#!/usr/bin/env python3
"""Times stint_topk beside NumPy and PyTorch, in turn, wall-clock, least of the runs.

usage: topk_peers.py LIBSTINT.so [TYPE [LOG2N,... [ORDER,... [THREADS [RUNS [K,...]]]]]]
TYPE: f32 f16 bf16 i32 i8 (bf16: PyTorch alone). Every call gives values and 64-bit
indices of the k largest; np.partition gives values only, and is here because it is
x86-simd-sort's quickselect with a copy. ORDER may be a file of raw elements. THREADS are
those of stint and of PyTorch. A way that took 40 times as long as stint on a smaller k of
the same n and order is left out from there on.
CSV: type,order,n,k,threads,who,us,ratio (ratio: who / stint).
"""

import ctypes
import os
import sys
import time

import numpy as np

try:
    import torch
except ImportError:
    torch = None

TYPES = {"f32": (0, np.float32), "f16": (1, np.float16), "bf16": (2, np.uint16),
         "i32": (3, np.int32), "i8": (4, np.int8)}


class Desc(ctypes.Structure):
    """stint_topk_desc"""

    _fields_ = [
        ("type", ctypes.c_int), ("key", ctypes.c_int), ("nan", ctypes.c_int),
        ("zeros_equal", ctypes.c_bool), ("sorted", ctypes.c_bool),
        ("rows", ctypes.c_int64), ("n", ctypes.c_int64), ("stride", ctypes.c_int64),
        ("k", ctypes.c_int64), ("index_base", ctypes.c_int64), ("threads", ctypes.c_int),
        ("method", ctypes.c_int), ("exponent", ctypes.c_int), ("part", ctypes.c_int64),
        ("has_addend", ctypes.c_bool), ("costs", ctypes.c_void_p),
    ]


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


class Stint:
    """The library, with outputs and workspace allocated outside of the time."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.stint_last_error.restype = ctypes.c_char_p
        self.costs = (ctypes.c_double * 16)()
        self.lib.stint_topk_costs_host(self.costs)

    def prepare(self, x, k, kind, threads, rows=1):
        self.desc = Desc(type=TYPES[kind][0], n=x.size // rows, rows=rows, k=k,
                         threads=threads, costs=ctypes.addressof(self.costs))
        need = ctypes.c_size_t()
        if self.lib.stint_topk_workspace_bytes(ctypes.byref(self.desc), ctypes.byref(need)):
            raise RuntimeError(self.lib.stint_last_error())
        self.workspace = np.zeros(need.value, np.uint8)
        self.index = np.zeros(k * rows, np.int64)
        self.values = np.zeros(k * rows, x.dtype)
        self.x = x

    def __call__(self):
        if self.lib.stint_topk(ctypes.byref(self.desc), pointer(self.x), None,
                               pointer(self.index), pointer(self.values),
                               pointer(self.workspace),
                               ctypes.c_size_t(self.workspace.size)):
            raise RuntimeError(self.lib.stint_last_error())
        return self.values


def ways(stint, x, k, kind, threads):
    stint.prepare(x, k, kind, threads)
    n = x.size

    def argpartition():
        index = np.argpartition(x, n - k)[n - k:]
        return x[index]

    found = {"stint": stint}
    if kind != "bf16":
        found["np.argpartition"] = argpartition
        found["np.partition (values only)"] = lambda: np.partition(x, n - k)[n - k:]
    if torch is not None:
        tensor = torch.from_numpy(x.view(np.int16) if kind == "bf16" else x)
        if kind == "bf16":
            tensor = tensor.view(torch.bfloat16)
        try:
            torch.topk(tensor, k, sorted=False)
        except RuntimeError:
            return found  # a type that this version does not select from
        found["torch.topk"] = lambda: torch.topk(tensor, k, sorted=False)[0]
    return found


def make(order, n, k, kind, rng):
    if os.path.exists(order):
        return np.fromfile(order, TYPES[kind][1])
    x = rng.random(n, dtype=np.float32)
    if order == "normal":
        x = rng.standard_normal(n, dtype=np.float32)
    elif order == "ascending":
        x = np.arange(n, dtype=np.float32) / n
    elif order == "descending":
        x = np.arange(n, 0, -1).astype(np.float32) / n
    elif order == "equal":
        x[:] = 1
    elif order == "two":
        x = np.round(x)
    elif order == "cluster":
        x[n // 3:n // 3 + k] += 1
    elif order == "scattered":
        x[n // k // 2::n // k] += 1
    if kind == "bf16":
        return (x.view(np.uint32) >> 16).astype(np.uint16)
    if kind in ("i32", "i8"):
        x = x * (1e8 if kind == "i32" else 127 / max(float(x.max()), 1))
    return x.astype(TYPES[kind][1])


def measure(found, x, runs):
    """Least time of each, taken in turn; values must be those of stint."""
    best = dict.fromkeys(found, 1e9)
    want = np.sort(found["stint"]())
    for run in range(runs + 1):
        for who, call in found.items():
            if run >= 2 and best[who] > 20 * best["stint"]:
                continue
            repeats = 1 + int(2e-4 / best[who])
            start = time.perf_counter()
            for _ in range(repeats):
                got = call()
            seconds = (time.perf_counter() - start) / repeats
            if run > 0:  # the first one warms up
                best[who] = min(best[who], seconds)
                continue
            best[who] = seconds * 2
            if torch is not None and isinstance(got, torch.Tensor):
                got = (got.view(torch.int16) if got.dtype == torch.bfloat16 else got).numpy()
                got = got.view(x.dtype)
            if not np.array_equal(np.sort(got), want):
                raise RuntimeError("%s disagrees, n %d" % (who, x.size))
    return best


def rows_beside(stint, threads, runs):
    """32 rows of logits as long as GPT-2's vocabulary."""
    x = np.random.default_rng(1).standard_normal((32, 50257), dtype=np.float32)
    stint.prepare(x.reshape(-1), 50, "f32", threads, rows=32)
    found = {"stint": stint,
             "np.argpartition": lambda: np.take_along_axis(
                 x, np.argpartition(x, 50257 - 50, axis=-1)[:, -50:], -1).reshape(-1)}
    if torch is not None:
        tensor = torch.from_numpy(x)
        found["torch.topk"] = lambda: torch.topk(tensor, 50, sorted=False)[0].reshape(-1)
    report("f32", "rows 32 x 50257", x.size // 32, 50, threads,
           measure(found, x.reshape(-1), runs))


def report(kind, order, n, k, threads, best):
    for who, seconds in best.items():
        print("%s,%s,%d,%d,%d,%s,%.1f,%.2f" % (kind, os.path.basename(order), n, k, threads,
                                               who, seconds * 1e6, seconds / best["stint"]),
              flush=True)


def choose_ks(n, asked):
    """Those asked for, or from 1 to n / 4 in steps of 8 (16 for long arrays)."""
    if asked:
        return [min(int(k), n // 4) for k in asked.split(",")]
    step = 4 if n > 1 << 22 else 3
    return [1 << b for b in range(0, 60, step) if 1 << b <= n // 4]


def main():
    stint = Stint(sys.argv[1])
    kind = sys.argv[2] if len(sys.argv) > 2 else "f32"
    sizes = [int(s) for s in (sys.argv[3] if len(sys.argv) > 3 else "16,20,24").split(",")]
    orders = (sys.argv[4] if len(sys.argv) > 4 else "uniform").split(",")
    threads = int(sys.argv[5]) if len(sys.argv) > 5 else 1
    runs = int(sys.argv[6]) if len(sys.argv) > 6 else 5
    if torch is not None:
        torch.set_num_threads(threads)
    rng = np.random.default_rng(1)
    print("type,order,n,k,threads,who,us,ratio")
    if orders == ["rows"]:
        rows_beside(stint, threads, runs)
        return
    for order in orders:
        for n in [os.path.getsize(order) // np.dtype(TYPES[kind][1]).itemsize] \
                if os.path.exists(order) else [1 << s for s in sizes]:
            slow = set()
            for k in choose_ks(n, sys.argv[7] if len(sys.argv) > 7 else ""):
                x = make(order, n, k, kind, rng)
                found = {w: c for w, c in ways(stint, x, k, kind, threads).items()
                         if w not in slow}
                best = measure(found, x, runs)
                report(kind, order, n, k, threads, best)
                slow |= {w for w in best if best[w] > max(40 * best["stint"], 0.05)}


main()
