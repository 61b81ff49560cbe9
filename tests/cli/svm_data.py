"""Tables for svm_cmd_test.sh, and the dense KKT system in NumPy.
usage: svm_data.py make | check DATA KERNEL HOW | near A B"""

import itertools

import numpy as np

import svm_serve


def tables():
    rng = np.random.default_rng(1)
    n, d = 330, 7
    x = rng.standard_normal((n, d)) + 3
    x[rng.random((n, d)) < 0.2] = 0
    k = rng.integers(0, 3, n)
    x[:, 0] += k * 1.5
    x[:, 1] -= k
    y = {"three": np.array([3, 1, 2])[k], "two": np.where(k > 0, 1, -1),
         "reg": x @ np.arange(d) + np.sin(x[:, 0])}
    return x, y


def point_weights():
    return np.random.default_rng(3).random(300) * 3 + 0.1


def write(path, y, x, first=1):
    with open(path, "w") as out:
        for label, row in zip(y, x):
            out.write(repr(label.item()) + "".join(
                " %d:%r" % (j + first, v.item()) for j, v in enumerate(row) if v or not first) + "\n")


def make():
    x, y = tables()
    for name, labels in y.items():
        write(name + ".libsvm", labels[:300], x[:300])
    write("test.libsvm", y["three"][300:], x[300:])
    write("positive.libsvm", y["two"][:300], abs(x[:300]))
    write("positive_test.libsvm", y["two"][300:], abs(x[300:]))
    for name, rows in (("values", x[:300]), ("values_test", x[300:])):
        numbered = np.column_stack([np.arange(len(rows)) + 1, rows @ x[:300].T])
        write(name + ".libsvm", y["two"][:len(rows)], numbered, first=0)
    np.savetxt("weights", point_weights())
    rng = np.random.default_rng(2)
    large = rng.standard_normal((1100, 12)) + 1000
    write("large.libsvm", np.where(large[:, 0] > 1000, 1, 2), large)
    with open("wide.libsvm", "w") as out:
        for i in range(2000):
            at = np.sort(rng.choice(100000, 20, replace=False)) + 1
            out.write("%d %s\n" % (i % 2, " ".join("%d:1" % c for c in at)))
    with open("words.arff", "w") as out:
        out.write("@relation r\n@attribute a numeric\n@attribute Class {small,'big'}\n"
                  "@attribute b real\n@data\n0.1,big,-3\n{0 2.5}\n% none\n7,small,0\n")


def kernel(name, u, v):
    if name == "linear":
        return u @ v.T
    apart = u[:, None] - v[None]
    if name == "laplacian":
        return np.exp(-0.1 * abs(apart).sum(-1))
    if name == "chi_squared":
        both = u[:, None] + v[None]
        return np.exp(-0.1 * (apart ** 2 / np.where(both > 0, both, 1)).sum(-1))
    if name == "polynomial":
        return (0.1 * (u @ v.T) + 1) ** 2
    return np.exp(-0.1 * (apart ** 2).sum(-1))


def solve(name, x, y, c, test):
    """Decision values by the bordered system."""
    n = len(y)
    m = np.zeros((n + 1, n + 1))
    m[:n, :n] = kernel(name, x, x) + np.diag(1 / c)
    m[:n, n] = m[n, :n] = 1
    s = np.linalg.solve(m, np.append(y, 0))
    return kernel(name, test, x) @ s[:n] + s[n]


def check(data, name, how):
    x, labels = tables()
    if data == "positive":
        x, data = abs(x), "two"
    train, test, y = x[:300], x[300:], labels[data][:300]
    c = np.full(300, 3.0)
    if how == "points":
        c *= point_weights()
    if data == "reg":
        want = [solve(name, train, y, c, test)]
    else:
        classes = [1, -1] if data == "two" else list(dict.fromkeys(y.tolist()))
        if how == "weighted":
            c *= np.where(y == 1, 4, 0.5)
        if how == "oaa":
            want = [solve(name, train, np.where(y == a, 1, -1), c, test) for a in classes]
        else:
            want = []
            for a, b in itertools.combinations(classes, 2):
                rows = (y == a) | (y == b)
                want.append(solve(name, train[rows], np.where(y[rows] == a, 1, -1), c[rows],
                                  test))
    want = np.array(want).T
    got = np.load("values.npy")
    assert got.shape == want.shape and got.dtype == np.float64
    error = np.abs(got - want).max() / np.abs(want).max()
    assert error < 1e-7, error


def near(a, b):
    a, b = np.loadtxt(a), np.loadtxt(b)
    assert a.shape == b.shape and np.abs(a - b).max() <= 1e-9 * np.abs(b).max()


if __name__ == "__main__":
    svm_serve.run({"make": make, "check": check, "near": near})
