#!/usr/bin/env python3
"""Simulated mean waits beside closed forms: M/D/1, M/G/1 with two times, and Erlang's formula C for three servers.

    bench/serve_theory.py STINT [--requests N]

With the 10,000,000 queries of the standard it takes a minute or two. Fails where one is off by 1 % or more."""
import argparse
import json
import math
import subprocess
import sys
import tempfile


def tables(path, units, batches, seconds, share):
    json.dump({"format": "stint-serve-tables", "units": units, "legal": "any",
               "models": [{"name": "m", "sla_s": 1000, "sizes": [1], "batches": batches, "p50_s": [seconds],
                           "p95_s": [seconds], "share": share}]}, open(path, "w"))


def wait(stint, path, rate, cut, requests, *more):
    out = subprocess.run([stint, "bench", "serve", "--simulate", path, "--arrivals", f"poisson:{rate}", "--cut", cut,
                          "--policy", "fifs", "--batch-max", "1", "--requests", str(requests), "--admit", "all",
                          "--late", "serve", "--json", *more], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)["wait_mean_s"]


def erlang_c(servers, load):
    top = load ** servers / math.factorial(servers) * servers / (servers - load)
    return top / (sum(load ** n / math.factorial(n) for n in range(servers)) + top)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("stint")
    p.add_argument("--requests", type=int, default=10000000)
    a = p.parse_args()
    worst = 0
    print(f"{'queue':28} {'rho':>4} {'simulated':>12} {'closed form':>13} {'off by':>8}")
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        for rho in (0.6, 0.8):
            rows = []
            tables(f.name, 1, [1], [1.0], [1])
            rows.append(("M/D/1", wait(a.stint, f.name, rho, "1", a.requests), rho / (2 * (1 - rho))))
            # Times of 1 and 3 s, each of half the queries: mean 2, mean square 5.
            tables(f.name, 1, [1, 2], [1.0, 3.0], [0.5, 0.5])
            rows.append(("M/G/1, times of 1 and 3 s", wait(a.stint, f.name, rho / 2, "1", a.requests),
                         rho / 2 * 5 / (2 * (1 - rho))))
            tables(f.name, 3, [1], [1.0], [1])
            rows.append(("M/M/3, Erlang C", wait(a.stint, f.name, 3 * rho, "3x1", a.requests, "--service", "exponential"),
                         erlang_c(3, 3 * rho) / (3 - 3 * rho)))
            for name, got, wanted in rows:
                worst = max(worst, abs(got / wanted - 1))
                print(f"{name:28} {rho:4} {got:10.4f} s {wanted:11.4f} s {100 * (got / wanted - 1):+6.2f} %", flush=True)
    sys.exit(worst >= 0.01)


main()
