#!/usr/bin/env python3
"""Draws the operators of a training step under the roofline of the machine.

usage: stint bench step RECIPE ... -j 1 --json | roofline.py > docs/roofline.svg

Rates are of one thread. An operator stands at its arithmetic per byte that it reads and
writes; the ceilings are what `stint` measured of the machine.
"""

import json
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 440, 70, 24, 40, 52
X = (0.05, 200.0)
LABELS = {"conv2d": "convolution", "conv2d_grad_x": "its data gradient",
          "conv2d_grad_w": "its weight gradient", "batch_norm": "batch norm",
          "batch_norm_grad": "batch norm, backward", "add": "sum of gradients"}


def at_x(intensity):
    low, high = math.log(X[0]), math.log(X[1])
    return LEFT + (math.log(intensity) - low) / (high - low) * (WIDTH - LEFT - RIGHT)


def main():
    step = json.load(sys.stdin)
    machine = step["machine"]
    peak = machine["f32_gflop_per_s"]
    y_low, y_high = 0.3, peak * 1.7

    def at_y(rate):
        share = (math.log(rate) - math.log(y_low)) / (math.log(y_high) - math.log(y_low))
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" '
           'font-family="sans-serif" font-size="12">' % (WIDTH, HEIGHT),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="%d" y="22" font-size="15">One training step of ResNet-20, operator by '
           'operator: %.0f images/s on %d thread(s)</text>' % (
               LEFT, step["images_per_s"], step["threads"])]
    for value in (0.1, 1, 10, 100):
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%g</text>' % (
            at_x(value), HEIGHT - BOTTOM + 18, value))
    for value in (1, 10, 100):
        out.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#e4e4e4"/>' % (
            LEFT, at_y(value), WIDTH - RIGHT, at_y(value)))
        out.append('<text x="%d" y="%.1f" text-anchor="end">%g</text>' % (
            LEFT - 6, at_y(value) + 4, value))
    out.append('<text x="%.1f" y="%d" text-anchor="middle">arithmetic per byte (FLOP/B)'
               '</text>' % ((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12))
    out.append('<text x="16" y="%.1f" transform="rotate(-90 16 %.1f)" '
               'text-anchor="middle">GFLOP/s</text>' % (HEIGHT / 2, HEIGHT / 2))
    for key, name, colour in (("l2_gbyte_per_s", "second-level cache", "#1e8449"),
                              ("llc_gbyte_per_s", "last-level cache", "#b9770e"),
                              ("dram_gbyte_per_s", "memory", "#c0392b")):
        bandwidth = machine[key]
        corner = min(peak / bandwidth, X[1])
        start = max(X[0], y_low / bandwidth)
        out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>' % (
            at_x(start), at_y(start * bandwidth), at_x(corner), at_y(corner * bandwidth),
            colour))
        out.append('<text x="%.1f" y="%.1f" fill="%s">%s, %.0f GB/s</text>' % (
            at_x(start) + 4, at_y(start * bandwidth) - 6, colour, name, bandwidth))
    lowest = peak / machine["l2_gbyte_per_s"]
    out.append('<line x1="%.1f" y1="%.1f" x2="%d" y2="%.1f" stroke="#333"/>' % (
        at_x(lowest), at_y(peak), WIDTH - RIGHT, at_y(peak)))
    out.append('<text x="%d" y="%.1f" text-anchor="end">multiply-adds, %.0f GFLOP/s</text>'
               % (WIDTH - RIGHT, at_y(peak) - 6, peak))
    whole = sum(o["s_a_step"] for o in step["operators"])
    points = [(at_x(o["gflop_per_s"] / o["gbyte_per_s"]), at_y(max(o["gflop_per_s"], y_low)),
               o["s_a_step"] / whole, LABELS.get(o["operator"], o["operator"]))
              for o in step["operators"]
              if o["s_a_step"] > 0.01 * whole and o["gflop_per_s"] > 0]
    taken = []
    for x, y, share, label in sorted(points, key=lambda point: point[1]):
        out.append('<circle cx="%.1f" cy="%.1f" r="%.1f" fill="#1b6ca8" '
                   'fill-opacity="0.7"/>' % (x, y, 4 + 14 * math.sqrt(share)))
        right = x < WIDTH - 190
        at = y + 4
        while any(abs(at - other) < 15 and right == side and abs(x - near) < 190
                  for other, side, near in taken):
            at += 1
        taken.append((at, right, x))
        out.append('<text x="%.1f" y="%.1f" text-anchor="%s">%s, %.0f %% of the time</text>'
                   % (x + (22 if right else -22), at, "start" if right else "end", label,
                      100 * share))
    out.append("</svg>")
    print("\n".join(out))


if __name__ == "__main__":
    main()
