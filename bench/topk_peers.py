#!/usr/bin/env python3
"""Times stint_topk beside its peers, in turn, by processor time of one thread.

usage: topk_peers.py LIBSTINT.so PEERS.so [LOG2N,...] [ORDER,...] [RUNS]
Every call gives values and 64-bit indices of the k largest of n float32, and the time
includes the copy where a peer destroys its input. np.partition gives no indices; it is
here because it is x86-simd-sort's quickselect with a copy. A peer that took 40 times
the best on a smaller k of the same n and order is left out from there on.
CSV: order,n,k,who,us,ratio (ratio: who / stint).
"""

import ctypes
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None


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
        self.costs = (ctypes.c_double * 13)()
        self.lib.stint_topk_costs_host(self.costs)

    def prepare(self, x, k):
        self.desc = Desc(n=x.size, k=k, costs=ctypes.addressof(self.costs))
        need = ctypes.c_size_t()
        if self.lib.stint_topk_workspace_bytes(ctypes.byref(self.desc), ctypes.byref(need)):
            raise RuntimeError(self.lib.stint_last_error())
        self.workspace = np.zeros(need.value, np.uint8)
        self.index = np.zeros(k, np.int64)
        self.values = np.zeros(k, np.float32)
        self.x = x

    def __call__(self):
        if self.lib.stint_topk(ctypes.byref(self.desc), pointer(self.x), None,
                               pointer(self.index), pointer(self.values),
                               pointer(self.workspace),
                               ctypes.c_size_t(self.workspace.size)):
            raise RuntimeError(self.lib.stint_last_error())
        return self.values


def cpp_peer(function, x, k):
    values, index = np.zeros(k, np.float32), np.zeros(k, np.int64)
    function.restype = None

    def call():
        function(pointer(x), ctypes.c_int64(x.size), ctypes.c_int64(k), pointer(values),
                 pointer(index))
        return values

    return call


def peers(stint, cpp, x, k):
    stint.prepare(x, k)
    n = x.size

    def argpartition():
        index = np.argpartition(x, n - k)[n - k:]
        return x[index]

    found = {"stint": stint}
    if torch is None:
        found["np.argpartition"] = argpartition
        found["np.partition"] = lambda: np.partition(x, n - k)[n - k:]
        found["nth_element"] = cpp_peer(cpp.peer_nth_element, x, k)
        if k <= n // 16:
            found["partial_sort"] = cpp_peer(cpp.peer_partial_sort, x, k)
            if cpp.peer_has_faiss():
                found["faiss heap"] = cpp_peer(cpp.peer_faiss_heap, x, k)
    else:
        tensor = torch.from_numpy(x)
        found["torch.topk"] = lambda: torch.topk(tensor, k, sorted=False)[0].numpy()
    return found


def make(order, n, k, rng):
    x = rng.random(n, dtype=np.float32)
    if order == "normal":
        x = rng.standard_normal(n, dtype=np.float32)
    elif order == "ascending":
        x = np.arange(n, dtype=np.float32)
    elif order == "descending":
        x = np.arange(n, 0, -1).astype(np.float32)
    elif order == "equal":
        x[:] = 1
    elif order == "two":
        x = np.round(x)
    elif order == "cluster":
        x[n // 3:n // 3 + k] += 2
    elif order == "scattered":
        x[n // k // 2::n // k] += 2
    elif order == "peak":
        x = (1e8 + 10 * rng.standard_normal(n)).astype(np.float32)
    return x


def measure(found, x, k, runs):
    """Least time of each, taken in turn; all results are checked against the first."""
    best = dict.fromkeys(found, 1e9)
    want = np.sort(found["stint"]())
    for run in range(runs):
        for who, call in found.items():
            if run >= 2 and best[who] > 20 * best["stint"]:
                continue
            start = time.process_time()
            got = call()
            best[who] = min(best[who], time.process_time() - start)
            if run == 0 and not np.array_equal(np.sort(got), want):
                raise RuntimeError("%s disagrees, n %d, k %d" % (who, x.size, k))
    return best


def main():
    stint, cpp = Stint(sys.argv[1]), ctypes.CDLL(sys.argv[2])
    sizes = [int(s) for s in (sys.argv[3] if len(sys.argv) > 3 else "16,20,24").split(",")]
    orders = (sys.argv[4] if len(sys.argv) > 4 else "uniform").split(",")
    runs = int(sys.argv[5]) if len(sys.argv) > 5 else 7
    rng = np.random.default_rng(1)
    print("order,n,k,who,us,ratio")
    for order in orders:
        for n in (1 << s for s in sizes):
            slow = set()
            k = 1
            while k <= n // 4:
                x = make(order, n, k, rng)
                found = {w: c for w, c in peers(stint, cpp, x, k).items() if w not in slow}
                best = measure(found, x, k, runs)
                for who, seconds in best.items():
                    ratio = seconds / best["stint"]
                    print("%s,%d,%d,%s,%.1f,%.2f" % (order, n, k, who, seconds * 1e6, ratio),
                          flush=True)
                    if ratio > 40 and seconds > 0.5:
                        slow.add(who)
                k *= 8 if n > 1 << 22 else 4


main()
