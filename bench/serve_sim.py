#!/usr/bin/env python3
"""Simulated: the rate at which 95 of 100 queries are in time on 8 devices of 7 units, by PARIS's cut or the
climb from it with ELSA, beside the best cut into equal partitions with one queue (first in, first served).

    bench/serve_sim.py STINT [--requests N] [--merge]

Profiles have a throughput of b / (b + knee / 4) of their highest, with the knees that are published for 1 and 7
units (16 and 128, 4 and 32, 2 and 16) and two between; sizes of queries are rounded logarithmic normal with mean
of the logarithm ln 4. The deadline is 1.5 times what the largest batch takes on seven units. Without --merge
queries are never merged, as in the paper."""
import argparse
import json
import math
import statistics
import subprocess
import tempfile

KNEES = {"16..128": (16, 128), "8..64": (8, 64), "4..32": (4, 32), "3..24": (3, 24), "2..16": (2, 16)}
SIZES = [1, 2, 3, 4, 7]


def tables(low, high, path):
    batches = list(range(1, 33))
    rows = [[(b + (low + (high - low) * (k - 1) / 6) / 4) / (k * 100) for b in batches] for k in SIZES]
    json.dump({"format": "stint-serve-tables", "units": 56, "legal": "mig7",
               "models": [{"name": "m", "sla_s": 1.5 * rows[-1][-1], "sizes": SIZES, "batches": batches,
                           "p50_s": rows, "p95_s": rows}]}, open(path, "w"))


def rate(stint, path, args, sigma, *more):
    merge = [] if args.merge else ["--batch-max", "1"]
    out = subprocess.run([stint, "bench", "serve", "--simulate", path, "--batch", f"lognormal:{math.log(4)},{sigma}",
                          "--find-rate", "--requests", str(args.requests), "--admit", "all", "--late", "serve",
                          "--json", *merge, *more], capture_output=True, text=True)
    if out.returncode:
        return 0, 0
    j = json.loads(out.stdout)
    return j["max_rate_per_s"], j["bound_per_s"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("stint")
    p.add_argument("--requests", type=int, default=60000)
    p.add_argument("--merge", action="store_true")
    args = p.parse_args()
    gains, shares = [], []
    print(f"{'knees':8} {'sigma':>5} {'auto, ELSA':>11} {'of bound':>9} {'PARIS, ELSA':>12} {'best equal, FIFS':>17} {'gain':>6}")
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        for name, (low, high) in KNEES.items():
            tables(low, high, file.name)
            for sigma in (0.3, 0.9, 1.8):
                ours, bound = rate(args.stint, file.name, args, sigma)
                paris, _ = rate(args.stint, file.name, args, sigma, "--cut", "paris")
                equal = {f"{n}x{k}": rate(args.stint, file.name, args, sigma, "--cut", f"{n}x{k}", "--policy", "fifs")[0]
                         for k, n in ((1, 56), (2, 24), (3, 16), (4, 8), (7, 8))}
                best = max(equal, key=equal.get)
                gains.append(ours / equal[best])
                shares.append(ours / bound)
                print(f"{name:8} {sigma:5} {ours:9.1f}/s {shares[-1]:9.2f} {paris:10.1f}/s {equal[best]:9.1f}/s {best:>6} {gains[-1]:6.2f}")
    print(f"median gain {statistics.median(gains):.2f}, least {min(gains):.2f}; of the bound {statistics.median(shares):.2f}")


if __name__ == "__main__":
    main()
