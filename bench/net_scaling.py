#!/usr/bin/env python3
"""Simulated time of a sum of gradients, 8 to 4096 processes, 4 bits and float32, on plain
Ethernet and on a fat tree: a table on stdout, the picture in docs/net-scaling.svg.

    bench/net_scaling.py [STINT [SVG]]      (build/release/stint docs/net-scaling.svg)

8 processes a host, 25 million values, 1 Gbit/s a host, 50 us, two levels; the fat tree has
16 hosts a leaf switch and half of their rate upwards.
"""
import json
import math
import subprocess
import sys

STINT = sys.argv[1] if len(sys.argv) > 1 else "build/release/stint"
SVG = sys.argv[2] if len(sys.argv) > 2 else "docs/net-scaling.svg"
COMMON = ["--scheme", "two-level", "--group", "8", "-n", "4096", "--table", "--json"]
WAYS = [("Ethernet", ["--topology", "ethernet"]),
        ("fat tree", ["--topology", "fat-tree", "--taper", "2"])]
COLOURS = {("Ethernet", 32): "#c0504d", ("Ethernet", 4): "#4f81bd",
           ("fat tree", 32): "#e0a090", ("fat tree", 4): "#90b0d8"}
LEFT, TOP, WIDTH, HEIGHT = 70, 20, 560, 280


def curves():
    out = {}
    for name, options in WAYS:
        text = subprocess.run([STINT, "net", "simulate", *COMMON, *options], check=True,
                              capture_output=True, text=True).stdout
        for row in json.loads(text)["sums"]:
            out.setdefault((name, row["bits"]), {})[row["ranks"]] = row["seconds"]
    return out


def shown(seconds):
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def picture(lines):
    """Both axes logarithmic."""
    ranks = sorted(next(iter(lines.values())))
    values = [s for line in lines.values() for s in line.values()]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x(n):
        return LEFT + WIDTH * math.log(n / ranks[0]) / math.log(ranks[-1] / ranks[0])

    def y(s):
        return TOP + HEIGHT * (high - math.log10(s)) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 150}" '
           f'height="{TOP + HEIGHT + 45}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>']
    for power in range(low, high + 1):
        out.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(10 ** power):.1f}" '
                   f'y2="{y(10 ** power):.1f}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{y(10 ** power) + 4:.1f}" text-anchor="end">'
                   f'{shown(10 ** power)}</text>')
    for n in ranks:
        out.append(f'<text x="{x(n):.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{n}</text>')
    out.append(f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 38}" text-anchor="middle">'
               'processes, 8 a host</text>')
    for key, line in lines.items():
        points = " ".join(f"{x(n):.1f},{y(s):.1f}" for n, s in sorted(line.items()))
        name = f'{key[0]}, {"float32" if key[1] == 32 else "4 bits"}'
        out.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[key]}" '
                   f'stroke-width="2"/><text x="{LEFT + WIDTH + 8}" '
                   f'y="{y(line[ranks[-1]]) + (14 if key[0] == "Ethernet" else -4):.1f}" '
                   f'fill="{COLOURS[key]}">{name}</text>')
    return "\n".join(out) + "\n</svg>\n"


def main():
    lines = curves()
    heads = [f'{name}, {"float32" if bits == 32 else "4 bits"}' for name, bits in lines]
    print("| processes | " + " | ".join(heads) + " |")
    print("|---" * (len(heads) + 1) + "|")
    for n in sorted(next(iter(lines.values()))):
        print(f"| {n} | " + " | ".join(shown(line[n]) for line in lines.values()) + " |")
    with open(SVG, "w") as out:
        out.write(picture(lines))


if __name__ == "__main__":
    main()
