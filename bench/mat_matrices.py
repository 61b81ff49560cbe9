"""Matrices of .mat files, those of PyAMG's wheel for one, as Matrix Market files:

    mat_matrices.py FOLDER OUT      writes OUT/NAME.mtx for each FOLDER/NAME.mat

and prints their names. Symmetric ones are stored so (to 1e-10 of their largest entry); of
complex ones the real part is taken, as stint has no complex arithmetic. Needs SciPy; used by
bench/sptrsv_bench.sh and bench/krylov_bench.sh.
"""

import glob
import os
import sys

import scipy.io
import scipy.sparse


def take(path):
    found = [v for v in scipy.io.loadmat(path).values() if scipy.sparse.issparse(v)]
    return max(found, key=lambda v: v.nnz) if found else None


def main():
    folder, out = sys.argv[1:3]
    for path in sorted(glob.glob(os.path.join(folder, "*.mat"))):
        a = take(path)
        if a is None or a.shape[0] != a.shape[1]:
            continue
        a = scipy.sparse.csr_matrix(a.real, dtype=float)
        a.sum_duplicates()
        symmetric = abs(a - a.T).max() <= 1e-10 * abs(a).max()
        if symmetric:
            a = scipy.sparse.csr_matrix((a + a.T) / 2)
        name = os.path.join(out, os.path.basename(path)[:-4] + ".mtx")
        scipy.io.mmwrite(name, a, symmetry="symmetric" if symmetric else "general", precision=17)
        print(name)


if __name__ == "__main__":
    main()
