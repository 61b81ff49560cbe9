"""Matrices of solve_cmd_test.sh, and answers by NumPy.
usage: solve_data.py make | check FILE
lines of FILE: MATRIX X.npy TOLERANCE [lower|upper] [transpose] [unit]
"""
import sys

import numpy as np


def write(name, a, symmetry="general", field="real", array=False):
    n, m = a.shape
    with open(name + ".mtx", "w") as f:
        kind = "array" if array else "coordinate"
        f.write("%%%%MatrixMarket matrix %s %s %s\n%% made\n" % (kind, field, symmetry))
        places = [(i, j) for j in range(m) for i in range(n)
                  if symmetry == "general" or i > j or (i == j and symmetry == "symmetric")]
        if array:
            f.write("%d %d\n" % (n, m))
            f.writelines("%r\n" % float(a[p]) for p in places)
            return
        places = [p for p in places if a[p] != 0]
        np.random.default_rng(len(places)).shuffle(places)  # in no order
        f.write("%d %d %d\n" % (n, m, len(places)))
        for i, j in places:
            value = "" if field == "pattern" else " %r" % float(a[i, j])
            if field == "integer":
                value = " %d" % a[i, j]
            f.write("%d\t%d%s\n" % (i + 1, j + 1, value))


def make():
    r = np.random.default_rng(1)
    n = 60
    a = np.where(r.random((n, n)) < 0.1, r.standard_normal((n, n)), 0)
    general = a + np.diag(6 + r.random(n))
    spd = (a + a.T) + np.diag(14 + r.random(n))
    write("general", general)
    write("spd", spd, "symmetric")
    write("spd_general", spd)
    write("array", general, array=True)
    write("spd_array", spd, "symmetric", array=True)
    write("skew", a - a.T, "skew-symmetric")
    write("whole", np.round(general), field="integer")
    np.save("whole", np.round(general))
    pattern = (np.tril(np.abs(a)) > 0) | np.eye(n, dtype=bool)
    write("pattern", pattern.astype(float), field="pattern")
    np.save("pattern", pattern.astype(float))
    for name, matrix in (("general", general), ("spd", spd)):
        np.save(name, matrix)
    np.save("array", general)
    np.save("spd_array", spd)
    np.save("spd_general", spd)
    indefinite = spd - 14 * np.eye(n)
    write("indefinite", indefinite, "symmetric")
    np.save("b", r.standard_normal(n))
    b = r.standard_normal((n, 11))
    np.save("b11", b)
    np.save("b11f", b.astype("f4"))
    write("b11", b, array=True)
    np.save("short", b[:5])
    bad = b.copy()
    bad[3, 2] = np.nan
    np.save("nan", bad)


def check(matrix, answer, tolerance, words):
    a = np.load(matrix + ".npy")
    x = np.load(answer)
    if "lower" in words:
        a = np.tril(a)
    if "upper" in words:
        a = np.triu(a)
    if "unit" in words:
        np.fill_diagonal(a, 1)
    if "transpose" in words:
        a = a.T
    b = np.load("b11.npy" if x.ndim == 2 else "b.npy")
    wanted = np.linalg.solve(a, b)
    worst = np.abs(x - wanted).max() / np.abs(wanted).max()
    if not worst <= tolerance:
        sys.exit("%s %s: %g from NumPy's answer" % (matrix, words, worst))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make()
    else:
        for line in open(sys.argv[2]):
            matrix, answer, tolerance, *words = line.split()
            check(matrix, answer, float(tolerance), words)
