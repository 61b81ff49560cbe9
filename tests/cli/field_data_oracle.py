"""Data whose fields are known: make writes a sound, a disc and a ball; check NAME compares what a
field says with a closed form, and sound with the samples."""
import sys
import wave

import numpy as np

SIDE = 64
COUNT = 600
centres = (np.arange(SIDE) + 0.5) / SIDE * 2 - 1
Y, X = [a.ravel() for a in np.meshgrid(centres, centres, indexing="ij")]
disc = np.hypot(X - 0.1, Y + 0.05) - 0.5
t = (np.arange(COUNT) + 0.5) / COUNT * 2 - 1
left, right = 0.5 * np.sin(9 * t), 0.25 * np.cos(20 * t)


def write_sound():
    with wave.open("tone.wav", "wb") as w:
        w.setnchannels(2)
        w.setsampwidth(2)
        w.setframerate(8000)
        w.writeframes((np.stack([left, right], 1) * 32768).astype("<i2").tobytes())


def write_disc():
    """As a portable pixmap is no picture of Stint's: an uncompressed BMP, rows from the bottom."""
    pixels = np.uint8(np.clip(127.5 + disc * SIDE / 2 * 127.5, 0, 255)).reshape(SIDE, SIDE)[::-1]
    body = np.repeat(pixels[:, :, None], 3, 2).tobytes()
    head = b"BM" + (54 + len(body)).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    info = (40).to_bytes(4, "little") + SIDE.to_bytes(4, "little") * 2 + b"\1\0\x18\0" + bytes(24)
    open("disc.bmp", "wb").write(head + info + body)
    open("grey.bmp", "wb").write(head + info + bytes([9]) * len(body))


def bmp(name, values):
    """Values 0 to 255 as a grey BMP."""
    pixels = np.uint8(np.rint(values)).reshape(SIDE, SIDE)[::-1]
    body = np.repeat(pixels[:, :, None], 3, 2).tobytes()
    head = b"BM" + (54 + len(body)).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    open(name, "wb").write(head + (40).to_bytes(4, "little") + SIDE.to_bytes(4, "little") * 2 + b"\1\0\x18\0"
                           + bytes(24) + body)


def waves(x, y):
    return 0.9 * np.sin(3 * x) * np.cos(2 * y)


def write_pasting():
    bmp("over.bmp", (waves(X, Y) + 1) * 127.5)
    bmp("under.bmp", (X + 1) * 127.5)
    bmp("where.bmp", np.where(np.hypot(X, Y) < 0.5, 255, 0))
    bmp("dark.bmp", 0 * X)


def check_pasting(fine):
    """Columns V, G, H, M beside the functions that the pictures were made of, which bytes have within 1 / 255."""
    p, v = np.load("pasted/points.npy").astype(float), np.load("pasted/values.npy").astype(float)
    side = SIDE * fine
    at = (np.arange(side) + 0.5) / side * 2 - 1
    x, y = p.T
    assert len(p) == side * side and np.allclose(x.reshape(side, side)[0], at) and np.allclose(y.reshape(side, side).T[0], at)
    inner = (np.abs(x) < 0.85) & (np.abs(y) < 0.85)  # seven pixels reach beyond the edge elsewhere
    rms = lambda a: np.sqrt((a[inner] ** 2).mean())
    assert np.abs(v[:, 0] - x)[inner].max() < 0.012
    assert rms(v[:, 1] - 2.7 * np.cos(3 * x) * np.cos(2 * y)) < 0.15
    assert rms(v[:, 2] + 1.8 * np.sin(3 * x) * np.sin(2 * y)) < 0.15
    assert abs(v[:, 3].mean() - np.pi / 16) < 0.005 and set(np.unique(v[:, 3])) == {0, 1}


def write_ball(rings=16, sectors=24):
    """A sphere of radius 2 about (3, 1, 0): placed and scaled it has radius 0.9 about 0."""
    corner, face = [], []
    for i in range(rings + 1):
        for j in range(sectors):
            a, b = np.pi * i / rings, 2 * np.pi * j / sectors
            corner.append((3 + 2 * np.sin(a) * np.cos(b), 1 + 2 * np.sin(a) * np.sin(b), 2 * np.cos(a)))
    for i in range(rings):
        for j in range(sectors):
            k, n = i * sectors + j, i * sectors + (j + 1) % sectors
            face += [(k, k + sectors, n + sectors), (k, n + sectors, n)]
    with open("ball.obj", "w") as f:
        f.writelines("v %f %f %f\n" % c for c in corner)
        f.writelines("f %d %d %d\n" % tuple(k + 1 for k in c) for c in face)
    open("lines.obj", "w").write("v 0 0 0\nv 1 0 0\nl 1 2\n")


if sys.argv[1] == "make":
    write_sound()
    write_disc()
    write_ball()
    np.save("ball.npy", np.random.default_rng(1).uniform(-1, 1, (2000, 3)).astype("f4"))
    np.save("times.npy", t[:, None].astype("f4"))
    write_pasting()
elif sys.argv[1] == "pasting":
    check_pasting(int(sys.argv[2]))
elif sys.argv[1] == "sound":
    got, want = np.load("s.npy"), np.stack([left, right], 1)
    got = got[:, 0] if sys.argv[2] == "mean" else got
    want = want.mean(1) if sys.argv[2] == "mean" else want
    rms = np.sqrt(np.mean((got - want) ** 2))
    print("sound", rms)
    sys.exit(not rms < 0.05)
else:
    got = np.load(f"{sys.argv[1]}-out.npy")
    points = np.load("ball.npy").astype(float)
    radius = np.linalg.norm(points, axis=1)
    distance = disc if sys.argv[1] == "disc" else radius - 0.9
    normal = (np.stack([X - 0.1, Y + 0.05], 1) / np.hypot(X - 0.1, Y + 0.05)[:, None]
              if sys.argv[1] == "disc" else points / radius[:, None])
    band = np.abs(distance) < 0.1
    error = np.abs(got[band, 0] - distance[band]).mean()
    along = (got[band, 1:] * normal[band]).sum(1) / np.linalg.norm(got[band, 1:], axis=1)
    print(sys.argv[1], "distance", error, "cosine", along.mean())
    sys.exit(not (error < 0.03 and along.mean() > 0.95))
