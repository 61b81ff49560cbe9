"""Tables for svm_smo_test.sh, and the conditions of optimality from a model file alone, in
NumPy. usage: svm_smo_data.py make | kkt TYPE DATA MODEL C NU P E | near A B LIMIT"""

import numpy as np

import svm_serve

GAMMA = 0.2


def make():
    rng = np.random.default_rng(7)
    for name, n, spread in (("small", 240, 1.2), ("large", 1500, 1.0)):
        d = 6
        x = rng.standard_normal((n, d))
        x[rng.random((n, d)) < 0.3] = 0
        k = rng.integers(0, 3, n)
        x[:, 0] += spread * k
        x[:, 1] -= 0.5 * spread * (k == 1)
        write(name + "3", k + 1, x)
        write(name + "2", np.where(k > 0, 1, -1), x)
        write(name + "r", np.round(x @ np.arange(d) / 3 + np.sin(3 * x[:, 0]), 3), x)
    wide = rng.random((600, 400)) < 0.02
    write("sparse2", np.where(wide[:, :40].sum(1) > 0, 1, -1), wide * 1.0)


def write(path, y, x):
    with open(path, "w") as out:
        for label, row in zip(y, x):
            out.write("%r %s\n" % (label.item(), " ".join(
                "%d:%r" % (j + 1, v.item()) for j, v in enumerate(row) if v)))


def read_rows(lines, columns):
    x = np.zeros((len(lines), columns))
    head = []
    for i, line in enumerate(lines):
        words = line.split()
        head.append([float(w) for w in words if ":" not in w])
        for w in words:
            if ":" in w:
                index, value = w.split(":")
                x[i, int(index) - 1] = float(value)
    return np.array(head), x


def rbf(u, v):
    apart = (u ** 2).sum(1)[:, None] + (v ** 2).sum(1)[None] - 2 * u @ v.T
    return np.exp(-GAMMA * np.maximum(apart, 0))


def kkt(kind, data, model, c, nu, p, e):
    """Every row's alpha against what its decision value asks for, with e to spare."""
    c, nu, p, e = float(c), float(nu), float(p), float(e)
    y, x = read_rows(open(data).read().splitlines(), 400 if "sparse" in data else 6)
    y = y[:, 0]
    text = open(model).read()
    head, points = text.split("\nSV\n")
    head = {line.split()[0]: line.split()[1:] for line in head.splitlines()}
    coef, sv = read_rows(points.splitlines(), x.shape[1])
    coef = coef[:, 0]
    f = rbf(x, sv) @ coef - float(head["rho"][0])
    # alphas of all rows: those of a support vector go to the rows that are the same
    beta = np.zeros(len(x))
    places = {}
    for i, row in enumerate(x):
        places.setdefault((row + 0.0).tobytes(), []).append(i)
    for j in range(len(sv)):
        rows = [i for i in places[(sv[j] + 0.0).tobytes()] if beta[i] == 0]
        rows = [i for i in rows if kind in ("one_class", "epsilon_svr", "nu_svr") or
                y[i] * coef[j] > 0]
        beta[rows[0]] = coef[j]
    assert np.count_nonzero(beta) == len(sv)
    a = abs(beta)
    slack = 2 * e
    if kind in ("c_svc", "nu_svc"):
        assert abs(beta.sum()) < 1e-8 * a.sum()
        top = c if kind == "c_svc" else a.max()
        m = y * f - 1
        if kind == "nu_svc":  # its scale is r = 1 / top: sum a = nu l r
            slack *= top
            assert abs(a.sum() / top - nu * len(x)) < 1e-6 * len(x)
    elif kind == "one_class":
        assert abs(a.sum() - nu * len(x)) < 1e-8 * len(x) and a.max() <= 1
        top, m = 1, f
    else:
        if kind == "nu_svr":
            free = (a > 0) & (a < c)
            p = abs(y - f)[free].mean()
            assert abs(a.sum() - c * nu * len(x)) < 1e-6 * len(x)
        assert abs(beta.sum()) < 1e-8 * a.sum() and a.max() <= c
        assert (beta * (y - f) >= -slack)[a > 0].all()
        top, m = c, p - abs(y - f)
    assert (m[a == 0] >= -slack).all(), m[a == 0].min()
    bound = a >= top * (1 - 1e-12)
    assert (m[bound] <= slack).all(), m[bound].max()
    free = (a > 0) & ~bound
    assert (abs(m[free]) <= slack).all(), abs(m[free]).max()


def near(a, b, limit):
    a, b = (np.load(n) if n.endswith(".npy") else np.loadtxt(n) for n in (a, b))
    assert a.shape == b.shape
    error = np.abs(a - b).max() / max(1, np.abs(b).max())
    assert error <= float(limit), error


if __name__ == "__main__":
    svm_serve.run({"make": make, "kkt": kkt, "near": near})
