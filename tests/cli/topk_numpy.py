"""stint topk beside NumPy's stable sort, on many arrays of every type.

    topk_numpy.py STINT FOLDER ARRAYS SEED

Each file has the same number of arrays, one a row, of one type, length, content and way
of lying in the file (byte order, order of axes, .npz). A failure prints how to ask again.
"""
import subprocess
import sys

import numpy as np

STINT, FOLDER, ARRAYS, SEED = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
TYPES = "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1".split()
ROWS = 20
rng = np.random.default_rng(SEED)


def ends(dtype):
    """What lies at the ends of a type, and what other types would take as equal."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "f":
        i = np.finfo(dtype)
        return np.array([i.max, i.min, i.tiny, -i.tiny, i.smallest_subnormal, 0, -0.0, 1, 1 + i.eps,
                         1 - i.epsneg, np.inf, -np.inf, np.nan, -np.nan], dtype)
    i = np.iinfo(dtype)
    return np.array([i.max, i.max - 1, i.min, i.min + 1, 0, 1, i.max // 2, i.max // 2 + 1], dtype)


def random_bits(dtype, shape):
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    raw = rng.bytes(int(np.prod(shape)) * dtype.itemsize)
    return np.frombuffer(raw, dtype).reshape(shape).copy()


def neighbours(dtype, shape):
    """Values that differ in their last bits alone."""
    if dtype.kind == "b":
        return random_bits(dtype, shape)
    unsigned = np.dtype("u%d" % dtype.itemsize)
    high = random_bits(unsigned, (1,)) & ~unsigned.type(15)
    return (high | rng.integers(0, 16, shape).astype(unsigned)).view(dtype)


def make(kind, dtype, shape):
    with np.errstate(all="ignore"):
        if kind == "bits":
            return random_bits(dtype, shape)
        if kind == "ends":
            return rng.choice(ends(dtype), shape)
        if kind == "neighbours":
            return neighbours(dtype, shape)
        if kind == "equal":
            return np.broadcast_to(random_bits(dtype, (shape[0], 1)), shape).copy()
        ramp = np.broadcast_to(np.arange(shape[1]), shape)
        if kind == "ascending":
            return ramp.astype(dtype)
        if kind == "descending":
            return ramp[:, ::-1].astype(dtype)
        return (100 * rng.standard_normal(shape)).astype(np.float32).astype(dtype)


KINDS = "bits ends neighbours equal ascending descending normal".split()


def size_of(x, key):
    """What is ordered: the values, or their magnitudes, which unsigned integers hold."""
    if x.dtype.kind == "b":
        return x.astype("u1")
    if key != "abs" or x.dtype.kind == "u":
        return x
    if x.dtype.kind == "f":
        return np.abs(x)
    u = x.view("u%d" % x.itemsize)
    return np.where(x < 0, ~u + u.dtype.type(1), u)


def want_of(x, key, nan, k, by_key):
    size = size_of(x, key)
    if key == "min":
        order = np.argsort(size, kind="stable")
    else:  # largest first, of equals the first
        order = len(x) - 1 - np.argsort(size[::-1], kind="stable")[::-1]
    if x.dtype.kind == "f":
        bad = np.isnan(x[order])
        nans = np.flatnonzero(np.isnan(x))
        order = np.concatenate([nans, order[~bad]] if nan == "first" else [order[~bad], nans])
    best = order[:k]
    return best if by_key else np.sort(best)


def save(x, way):
    """The array as a file; how to name it."""
    path = FOLDER + "/x.npy"
    if way == "big-endian":
        np.save(path, x.astype(x.dtype.newbyteorder(">")))
    elif way == "fortran":
        np.save(path, np.asfortranarray(x))
    elif way in ("npz", "npz compressed"):
        path = FOLDER + "/x.npz"
        (np.savez if way == "npz" else np.savez_compressed)(path, other=np.zeros(3), x=x)
        path += ":x"
    else:
        np.save(path, x)
    return path


WAYS = "plain plain big-endian fortran npz".split() + ["npz compressed"]


def check(dtype, kind):
    n = int(rng.integers(1, 40)) if rng.random() < 0.4 else int(rng.integers(40, 6000))
    k = int(rng.choice([1, 2, n, max(1, n - 1), rng.integers(1, n + 1)]))
    k = min(k, n)
    key, nan, way = rng.choice(["max", "min", "abs"]), rng.choice(["first", "last"]), rng.choice(WAYS)
    by_key = rng.random() < 0.5
    x = make(kind, np.dtype(dtype), (ROWS, n))
    command = [STINT, "topk", save(x, way), "-k", str(k), "--rows", "--key", key, "--nan", nan, "--zeros-equal",
               "-j", str(rng.integers(1, 4)), "--out", FOLDER + "/i.npy", "--values", FOLDER + "/v.npy"]
    subprocess.run(command + (["--sorted"] if by_key else []), check=True)
    index, values = np.load(FOLDER + "/i.npy"), np.load(FOLDER + "/v.npy")
    assert values.dtype == x.dtype and index.shape == (ROWS, k), (values.dtype, index.shape)
    for row in range(ROWS):
        want = want_of(x[row], key, nan, k, by_key)
        if not np.array_equal(index[row], want) or values[row].tobytes() != x[row][want].tobytes():
            sys.exit("%s %s %s, n %d, row %d: %s gives other winners than NumPy's stable sort"
                     % (dtype, kind, way, n, row, " ".join(command)))
    return ROWS


done, round_ = 0, 0
while done < ARRAYS:
    done += check(TYPES[round_ % len(TYPES)], KINDS[round_ // len(TYPES) % len(KINDS)])
    round_ += 1
print("%d arrays of %d types: equal" % (done, len(TYPES)))
