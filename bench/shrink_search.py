#!/usr/bin/env python3
"""Searches of `stint shrink` beside what is known.

    bench/shrink_search.py BUILD [GRID]

BUILD: a build folder, of whose programs `search_bench` (made by target bench) and `stint`
are run. Prints the largest differences of Gaussian processes from scikit-learn's (left
out where that is missing), how often searches come within 0.01 of the answer of 100 noisy
curves, and how far searches for an mlp on glyphs end from the crossing of a grid of GRID
trainings (0, the default, leaves that out; 50 takes some minutes)."""
import json
import os
import subprocess
import sys
import tempfile

LIMIT = 4.0  # points that may be lost


def processes(cases):
    try:
        import numpy as np
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern
    except ImportError:
        print("scikit-learn is missing: Gaussian processes are not compared")
        return
    worst = {"mean": 0.0, "variance": 0.0, "log likelihood": 0.0}
    for case in cases:
        kernel = ConstantKernel(case["variance"]) * Matern(case["length"], nu=2.5)
        peer = GaussianProcessRegressor(kernel, alpha=np.array(case["noise"]) + 1e-10,
                                        optimizer=None)
        peer.fit(np.array(case["x"])[:, None], np.array(case["y"]))
        mean, deviation = peer.predict(np.array(case["at"])[:, None], return_std=True)
        off = {"mean": np.abs(mean - case["mean"]).max(),
               "variance": np.abs(deviation**2 - case["posterior"]).max(),
               "log likelihood": abs(peer.log_marginal_likelihood_value_
                                     - case["log_likelihood"])}
        worst = {k: max(worst[k], off[k]) for k in worst}
    print(f"{len(cases)} Gaussian processes beside scikit-learn's, largest differences: "
          + ", ".join(f"{k} {v:.1e}" for k, v in worst.items()))
    if max(worst.values()) > 1e-8:
        sys.exit("more than 1e-8")


def searches(rows):
    print("100 curves, at most 10 looks: search, noise, within 0.01, looks on average")
    for r in rows:
        end = (f", within 2 % of the least cost: {r['within_2_percent_of_least_cost']}"
               if r["costs"] else "")
        print(f"  {r['search']:7} {r['noise']:<6g} {r['within_0.01']:4} "
              f"{r['mean_samples']:6.2f}{end}")


BASE = """[model]
name = mlp
width = 32
[data]
path = g
[train]
epochs = 8
batch = 48
validation = 0.2
[optimizer]
name = sgd
lr = 0.05
momentum = 0.9
nesterov = true
"""


def shrink(stint, out, *options):
    run = subprocess.run([stint, "shrink", "base", "--data", "g", "-o", out, "--json", "-q",
                          "--accuracy-drop", str(LIMIT), "--method", "fine-tune",
                          "--set", "train.epochs=2", *options],
                         capture_output=True, text=True)
    if run.returncode not in (0, 3) or not run.stdout:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def glyphs(stint, grid):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([stint, "data", "glyphs", "--out", "g", "--train", "7200", "--test",
                        "720", "-q"], check=True)
        open("base.ini", "w").write(BASE)
        subprocess.run([stint, "train", "base.ini", "-o", "base", "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        r = shrink(stint, "grid", "--search", "grid", "--samples", str(grid))
        kept = [s["sparsity"] for s in r["samples"]
                if r["base_accuracy"] - s["accuracy"] <= LIMIT / 100]
        lost = [s["sparsity"] for s in r["samples"] if s["sparsity"] not in kept]
        print(f"mlp on glyphs, {LIMIT:g} points of {r['judged']} images: a grid of {grid} "
              f"keeps all up to {min(lost, default=1) - 1 / (grid + 1):.3f} and none beyond "
              f"{max(kept, default=0):.3f}")
        for way in ("bisect", "bayes"):
            r = shrink(stint, way, "--search", way)
            print(f"  {way:7} {r['sparsity']:.4f} in {len(r['samples'])} trainings, bracket "
                  f"{r['bracket'][0]:.4f} to {r['bracket'][1]:.4f}")


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/release")
    grid = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    told = subprocess.run([os.path.join(build, "bench", "search_bench")], check=True,
                          capture_output=True, text=True).stdout
    told = json.loads(told)
    processes(told["cases"])
    searches(told["searches"])
    if grid > 0:
        glyphs(os.path.join(build, "stint"), grid)


if __name__ == "__main__":
    main()
