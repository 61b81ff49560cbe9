#!/usr/bin/env python3
"""Edits of fields, and pictures that are known by their gradients, beside direct methods of SciPy.

    bench/field_edit.py STINT PICTURES [--size 128] [--epochs 300] [--steps 2000] [--only edit,gradient,paste,outline]

PICTURES: a folder of photographs; the first four are learnt from, the next two are not seen.
edit      Gaussian blur and Sobel edges: mean square of the edited unseen fields beside the filter's
          own result, and of the unedited ones. Wanted: 3 dB nearer.
gradient  a picture fitted to another's differences alone, against the least-squares solution of the
          same differences (sparse normal equations). Wanted: 30 dB and more.
paste     seamless pasting: gradients of one picture inside of a mask, values of another outside, against
          the direct solution of Poisson's equation. Wanted: 30 dB and more.
outline   distances from the outline of a glyph, against SciPy's distance transform: mean error in a band
          of 5 % of the box. Wanted: 0.5 % of the box and less.
Status 1 where a row misses. Wants numpy, scipy and PIL."""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import scipy.ndimage
import scipy.sparse
import scipy.sparse.linalg
from PIL import Image, ImageDraw, ImageFont

parser = argparse.ArgumentParser()
parser.add_argument("stint")
parser.add_argument("pictures")
parser.add_argument("--size", type=int, default=128)
parser.add_argument("--epochs", type=int, default=300)
parser.add_argument("--steps", type=int, default=2000)
parser.add_argument("--fine", type=int, default=2, help="points a pixel and direction of a pasting")
parser.add_argument("--only", default="edit,gradient,paste,outline")
args = parser.parse_args()
stint, size = os.path.abspath(args.stint), args.size
source = os.path.abspath(args.pictures)
recipe_path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "recipes/field-outline.ini")
work = tempfile.mkdtemp()
os.chdir(work)
missed = False


def run(*words):
    done = subprocess.run([stint, *map(str, words), "--json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def row(name, value, wanted, good, note=""):
    global missed
    missed = missed or not good
    print(f"{name:38s} {value:>12s}   wanted {wanted:12s} {'' if good else 'MISSED'} {note}", flush=True)


def recipe(path, **sections):
    with open(path, "w") as f:
        for section, keys in sections.items():
            print(f"[{section}]", file=f)
            for key, value in keys.items():
                print(f"{key} = {value}", file=f)


def photo(path, name):
    picture = Image.open(path).convert("L")
    side = min(picture.size)
    picture = picture.crop(((picture.width - side) // 2, (picture.height - side) // 2,
                            (picture.width + side) // 2, (picture.height + side) // 2))
    picture.resize((size, size), Image.LANCZOS).save(name)
    return np.asarray(Image.open(name), float) / 127.5 - 1


def show(name, a):
    Image.fromarray(np.uint8(np.clip(a * 127.5 + 127.5, 0, 255) + 0.5)).save(name)


def psnr(a, b):
    return 10 * np.log10(4 / np.mean((a - b) ** 2))


def field(name, data, epochs, **field_keys):
    recipe(f"{name}.ini", model=dict(name="siren", width=128, depth=3), data=dict(size=0),
           field=field_keys or dict(coordinates="x,y"),
           train=dict(epochs=epochs, batch=min(4096, size * size), shards=4, eval_every=epochs),
           optimizer=dict(name="adam", lr=5e-4), schedule=dict(name="cosine"))
    return run("train", f"{name}.ini", "--data", data, "--out", name, "-q")


def values(name, w=None):
    run("field", "eval", name, "--grid", f"{w or size}x{w or size}", "--order", 0, "--out", "v.npy")
    return np.load("v.npy")[:, 0].reshape(w or size, w or size).astype(float)


paths = sorted(p for e in ("jpg", "jpeg", "png") for p in glob.glob(f"{source}/**/*.{e}", recursive=True))
if len(paths) < 6:
    sys.exit(f"{source}: {len(paths)} pictures; six are wanted")
only = args.only.split(",")

if "edit" in only:
    filters = {"blur": lambda a: scipy.ndimage.gaussian_filter(a, 1.5, mode="nearest"),
               "edges": lambda a: np.clip(np.hypot(scipy.ndimage.sobel(a, 0), scipy.ndimage.sobel(a, 1)) / 4,
                                          0, 2) - 1}
    pictures = []
    for i, path in enumerate(paths[:6]):
        pictures.append(photo(path, f"p{i}.png"))
        got = field(f"f{i}", f"p{i}.png", args.epochs)
        print(f"  field {i} ({os.path.basename(path)}): {got['psnr']:.1f} dB", flush=True)
    for name, apply in filters.items():
        for i, a in enumerate(pictures):
            show(f"{name}{i}.png", apply(a))
        run("field", "edit", "--fields", "f0,f1,f2,f3", "--targets", ",".join(f"{name}{i}.png" for i in range(4)),
            "--order", 3, "--steps", args.steps, "--out", f"{name}.safetensors")
        for i in (4, 5):
            run("field", "edit", f"f{i}", "--edit", f"{name}.safetensors", "--size", f"{size}x{size}",
                "--out", "edited.png")
            edited = np.asarray(Image.open("edited.png"), float) / 127.5 - 1
            want = np.clip(apply(pictures[i]), -1, 1)
            gain = psnr(edited, want) - psnr(values(f"f{i}"), want)
            row(f"{name}, unseen photograph {i}", f"+{gain:.1f} dB", "+3 dB", gain >= 3,
                f"({psnr(edited, want):.1f} dB to the filter)")



def differences(a):
    """Central differences in units of the coordinates, at the edges one-sided: as data with R_x have."""
    gy, gx = np.gradient(a)
    return gx * size / 2, gy * size / 2


def operators():
    """The same differences as sparse matrices over flattened pictures."""
    def one(n):
        d = scipy.sparse.lil_matrix((n, n))
        for i in range(n):
            low, high = max(i - 1, 0), min(i + 1, n - 1)
            d[i, high] += n / 2 / (high - low)
            d[i, low] -= n / 2 / (high - low)
        return d.tocsr()
    eye = scipy.sparse.identity(size)
    return scipy.sparse.kron(eye, one(size)).tocsr(), scipy.sparse.kron(one(size), eye).tocsr()


def fit(name, data, epochs, expression, outputs):
    recipe(f"{name}.ini", model=dict(name="siren", width=128, depth=3), data=dict(size=0),
           field=dict(coordinates="x,y", outputs=outputs, data=expression),
           train=dict(epochs=epochs, batch=min(2048, size * size), shards=4, eval_every=epochs),
           optimizer=dict(name="adam", lr=5e-4), schedule=dict(name="cosine"))
    run("train", f"{name}.ini", "--data", data, "--out", name, "-q")


if "gradient" in only:
    a = photo(paths[0], "gradient.png")
    fit("gradient", "gradient.png", args.epochs, "u_x - U_x, u_y - U_y", "u")
    got = values("gradient")
    dx, dy = operators()
    gx, gy = differences(a)
    normal = dx.T @ dx + dy.T @ dy + 1e-9 * scipy.sparse.identity(size * size)
    direct = scipy.sparse.linalg.spsolve(normal.tocsc(), dx.T @ gx.ravel() + dy.T @ gy.ravel()).reshape(size, size)
    got, direct = got - got.mean(), direct - direct.mean()  # a gradient knows no constant
    row("picture from its gradient", f"{psnr(got, direct):.1f} dB", "30 dB", psnr(got, direct) >= 30,
        f"(direct solution to the picture: {psnr(direct, a - a.mean()):.1f} dB)")

if "paste" in only:
    a, b = photo(paths[1], "under.png"), photo(paths[2], "over.png")
    y, x = np.mgrid[0:size, 0:size]
    mask = (np.hypot(x - size / 2, y - size / 2) < size / 4).astype(float)
    gx, gy = differences(b)
    show("mask.png", 2 * mask - 1)
    run("field", "paste", "--under", "under.png", "--over", "over.png", "--mask", "mask.png", "--fine", args.fine,
        "--out", "pasted")
    # With derivatives at pixels' centres alone a field bends in between, the more the longer it is trained.
    fit("paste", "pasted", max(1, 2 * args.epochs // args.fine ** 2),
        "10*(1-M)*(v - V), 0.2*M*(v_x - G), 0.2*M*(v_y - H)", "v,g,h,m")
    got = values("paste")
    dx, dy = operators()
    m = mask.ravel() > 0
    known = scipy.sparse.diags((~m).astype(float))
    inside = scipy.sparse.diags(m.astype(float))
    normal = 1e4 * known + (dx.T @ inside @ dx + dy.T @ inside @ dy) * 0.04 + 1e-9 * scipy.sparse.identity(size * size)
    right = 1e4 * known @ a.ravel() + 0.04 * (dx.T @ inside @ gx.ravel() + dy.T @ inside @ gy.ravel())
    direct = scipy.sparse.linalg.spsolve(normal.tocsc(), right).reshape(size, size)
    row("seamless pasting", f"{psnr(got, direct):.1f} dB", "30 dB", psnr(got, direct) >= 30)

if "outline" in only:
    large = 4
    side = 2 * size
    for letter in "BS8":
        picture = Image.new("L", (side * large, side * large), 255)
        font = ImageFont.truetype("/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf", side * large * 3 // 4)
        box = font.getbbox(letter)
        ImageDraw.Draw(picture).text(((side * large - box[0] - box[2]) / 2, (side * large - box[1] - box[3]) / 2),
                                     letter, font=font, fill=0)
        full = np.asarray(picture) > 127
        picture.resize((side, side), Image.BOX).save("glyph.png")
        run("train", recipe_path, "--data", "glyph.png", "--out", f"glyph-{ord(letter)}", "--set",
            f"train.steps={args.steps}", "-q")
        got = values(f"glyph-{ord(letter)}", side)
        far = scipy.ndimage.distance_transform_edt(full) - scipy.ndimage.distance_transform_edt(~full)
        far = far[large // 2::large, large // 2::large] / (side * large) * 2
        band = np.abs(far) < 0.1
        error = np.abs(got[band] - far[band]).mean() / 2
        row(f"distances from a {letter}", f"{100 * error:.2f} %", "0.5 %", error <= 0.005)

sys.exit(int(missed))
