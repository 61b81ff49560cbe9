#!/usr/bin/env python3
"""The latency curve of docs/serving.md: simulated 95th percentiles over the rate that is offered, on 8 devices of 7
units, of PARIS's cut with ELSA beside the best equal cut with one queue.

    bench/serve_curve.py STINT OUT.svg

Profile 4..32 of bench/serve_sim.py, sizes of sigma 0.9, nothing merged or refused. It takes some seconds."""
import json
import math
import subprocess
import sys
import tempfile

from serve_sim import KNEES, tables

LINES = {"PARIS and ELSA": ("paris", "elsa", "#1f5fa8"), "16 partitions of 3 units, one queue": ("16x3", "fifs", "#b0532a")}


def p95(stint, path, rate, cut, policy):
    out = subprocess.run([stint, "bench", "serve", "--simulate", path, "--batch", f"lognormal:{math.log(4)},0.9",
                          "--arrivals", f"poisson:{rate}", "--requests", "20000", "--batch-max", "1", "--admit", "all",
                          "--late", "serve", "--cut", cut, "--policy", policy, "--json"],
                         capture_output=True, text=True, check=True)
    return 1e3 * json.loads(out.stdout)["p95_s"]


def svg(curves, sla, most):
    w, h, left, right, top, bottom = 640, 330, 64, 16, 16, 48
    x = lambda r: left + (w - left - right) * r / most
    y = lambda ms: h - bottom - (h - top - bottom) * min(ms / (2 * sla), 1)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" font-family="sans-serif" font-size="12">',
           f'<rect width="{w}" height="{h}" fill="#fff"/>']
    for i in range(5):
        ms = 2 * sla * i / 4
        out.append(f'<path d="M{left} {y(ms):.1f}H{w - right}" stroke="#ddd"/><text x="{left - 6}" y="{y(ms) + 4:.1f}" '
                   f'text-anchor="end">{ms:.0f} ms</text>')
    for r in range(0, int(most) + 1, 100):
        out.append(f'<text x="{x(r):.1f}" y="{h - bottom + 18}" text-anchor="middle">{r}</text>')
    out.append(f'<path d="M{left} {y(sla):.1f}H{w - right}" stroke="#444" stroke-dasharray="5 4"/>'
               f'<text x="{left + 6}" y="{y(sla) - 5:.1f}">deadline</text>')
    for i, (name, points) in enumerate(curves.items()):
        colour = LINES[name][2]
        path = " ".join(f"{x(r):.1f},{y(ms):.1f}" for r, ms in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
                   f'<text x="{left + 6}" y="{top + 14 + 16 * i}" fill="{colour}">{name}</text>')
    out.append(f'<text x="{(w + left) / 2}" y="{h - 10}" text-anchor="middle">queries a second offered (simulated)</text></svg>')
    return "\n".join(out) + "\n"


def main():
    stint, path = sys.argv[1:3]
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        tables(*KNEES["4..32"], f.name)
        sla = 1e3 * json.load(open(f.name))["models"][0]["sla_s"]
        curves = {name: [(r, p95(stint, f.name, r, cut, policy)) for r in range(25, 701, 25)]
                  for name, (cut, policy, _) in LINES.items()}
    for name, points in curves.items():
        print(f"{name}: 95 of 100 within {sla:.0f} ms up to {max(r for r, ms in points if ms <= sla)}/s")
    open(path, "w").write(svg(curves, sla, 700))


if __name__ == "__main__":
    main()
