"""Iterations beside those with ilupp's IC(0) and ILU(0) (PyPI) in SciPy's methods, of Matrix
Market files: b = A 1, to 1e-8.

    krylov_ilupp.py STINT FILE.mtx...

A line a matrix: symmetric ones by cg with ic0, others by bicgstab with ilu0; iterations and
seconds of the factor and of all iterations, ours on one thread. ILU(0) by ilupp chooses no
other pivots, so iterations should differ by one at most. Used by bench/krylov_bench.sh.
"""

import json
import os
import subprocess
import sys
import time

import ilupp
import numpy as np
import scipy.io
import scipy.sparse
import scipy.sparse.linalg as linalg


def theirs(a, symmetric):
    b = a @ np.ones(a.shape[0])
    count = [0]

    def step(_):
        count[0] += 1

    begun = time.perf_counter()
    make = ilupp.IChol0Preconditioner if symmetric else ilupp.ILU0Preconditioner
    m = make(a)
    factor = time.perf_counter() - begun
    begun = time.perf_counter()
    method = linalg.cg if symmetric else linalg.bicgstab
    x, failed = method(a, b, rtol=1e-8, atol=0, maxiter=10000, M=m, callback=step)
    seconds = time.perf_counter() - begun
    good = not failed and np.linalg.norm(b - a @ x) <= 2e-8 * np.linalg.norm(b)
    return count[0] if good else None, factor, seconds


def ours(stint, path, symmetric):
    how = ["cg", "ic0"] if symmetric else ["bicgstab", "ilu0"]
    out = subprocess.run([stint, "solve", path, "--method", how[0], "--precond", how[1], "-j", "1",
                          "--json", "-q"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    j = json.loads(out.stdout) if out.stdout else {}
    good = j.get("converged")
    return j["iterations"] if good else None, j.get("factor_s", 0), j.get("solve_s", 0)


def main():
    stint, paths = sys.argv[1], sys.argv[2:]
    print("%-30s %8s %9s %6s %6s %10s %10s %10s %10s" % (
        "matrix", "rows", "method", "iter", "ilupp", "factor", "ilupp", "solve", "scipy"))
    for path in paths:
        a = scipy.sparse.csr_matrix(scipy.io.mmread(path))
        symmetric = a.shape[0] == a.shape[1] and abs(a - a.T).max() == 0
        a.sort_indices()
        mine, peer = ours(stint, path, symmetric), theirs(a, symmetric)
        words = ["-" if k is None else str(k) for k in (mine[0], peer[0])]
        print("%-30s %8d %9s %6s %6s %10.5f %10.5f %10.5f %10.5f" % (
            os.path.basename(path)[:-4], a.shape[0], "cg" if symmetric else "bicgstab", *words,
            mine[1], peer[1], mine[2], peer[2]), flush=True)


if __name__ == "__main__":
    main()
