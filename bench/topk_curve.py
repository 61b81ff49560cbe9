#!/usr/bin/env python3
"""Draws the time of top-k by delegates over the block size, measured and predicted.

usage: topk_bench exponents 24 | topk_curve.py [K,...] > docs/topk_blocks.svg
"""

import csv
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 62, 150, 34, 46
COLOURS = ["#1b6ca8", "#c0392b", "#1e8449", "#8e44ad", "#b9770e"]


def read(lines, wanted):
    curves, chosen, floor = {}, {}, None
    for row in csv.DictReader(lines):
        k = int(row["k"])
        point = (int(row["exponent"]), float(row["us"]), float(row["predicted_us"]))
        floor = min(float(row["maximum_us"]), floor or 1e30)
        if k not in wanted or row["asked"] != "delegate":
            continue
        if row["order"] == "chosen":
            chosen[k] = point
        else:
            curves.setdefault(k, []).append(point)
        n = int(row["n"])
    return n, curves, chosen, floor


def main():
    wanted = [int(k) for k in (sys.argv[1] if len(sys.argv) > 1 else
                               "16,1024,4096,16384").split(",")]
    n, curves, chosen, floor = read(sys.stdin, wanted)
    exponents = sorted({p[0] for c in curves.values() for p in c})
    highest = max(max(p[1], p[2]) for c in curves.values() for p in c)
    top_us = min(highest, 5 * floor) * 1.05

    def at_x(a):
        return LEFT + (a - exponents[0]) / (exponents[-1] - exponents[0]) * (
            WIDTH - LEFT - RIGHT)

    def at_y(us):
        return HEIGHT - BOTTOM - min(us, top_us) / top_us * (HEIGHT - TOP - BOTTOM)

    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" '
           'font-family="sans-serif" font-size="13">' % (WIDTH, HEIGHT),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="%d" y="20" font-size="15">Top-k of %s values by delegates: time over '
           'block size</text>' % (LEFT, format(n, ","))]
    for a in exponents:
        out.append('<text x="%.1f" y="%d" text-anchor="middle">2<tspan dy="-5" '
                   'font-size="9">%d</tspan></text>' % (at_x(a), HEIGHT - BOTTOM + 20, a))
    out.append('<text x="%.1f" y="%d" text-anchor="middle">elements a block</text>' % (
        (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8))
    step = 1000 if top_us > 4000 else 500
    for tick in range(0, int(top_us) + 1, step):
        y = at_y(tick)
        out.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>' % (
            LEFT, y, WIDTH - RIGHT, y))
        out.append('<text x="%d" y="%.1f" text-anchor="end">%g ms</text>' % (
            LEFT - 6, y + 4, tick / 1000))
    y = at_y(floor)
    out.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#555" '
               'stroke-width="1.5"/>' % (LEFT, y, WIDTH - RIGHT, y))
    out.append('<text x="%d" y="%.1f" fill="#555">bare maximum</text>' % (
        WIDTH - RIGHT + 8, y + 4))
    for i, (k, points) in enumerate(sorted(curves.items())):
        colour = COLOURS[i % len(COLOURS)]
        points.sort()
        for column, dash in ((1, ""), (2, ' stroke-dasharray="5 4"')):
            path = " ".join("%.1f,%.1f" % (at_x(p[0]), at_y(p[column])) for p in points
                            if p[column] <= top_us)
            out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>'
                       % (path, colour, dash))
        if k in chosen:
            out.append('<circle cx="%.1f" cy="%.1f" r="5" fill="%s"/>' % (
                at_x(chosen[k][0]), at_y(chosen[k][1]), colour))
        out.append('<text x="%d" y="%d" fill="%s">k = %s</text>' % (
            WIDTH - RIGHT + 8, TOP + 18 * i + 10, colour, format(k, ",")))
    out.append('<text x="%d" y="%d" fill="#333" font-size="11">solid: measured</text>' % (
        WIDTH - RIGHT + 8, TOP + 18 * len(curves) + 18))
    out.append('<text x="%d" y="%d" fill="#333" font-size="11">dashed: predicted</text>' % (
        WIDTH - RIGHT + 8, TOP + 18 * len(curves) + 33))
    out.append('<text x="%d" y="%d" fill="#333" font-size="11">dot: chosen</text>' % (
        WIDTH - RIGHT + 8, TOP + 18 * len(curves) + 48))
    out.append("</svg>")
    print("\n".join(out))


main()
