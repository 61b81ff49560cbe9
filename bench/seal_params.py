#!/usr/bin/env python3
"""Noise of encrypted gates by the formulas, and the cheapest parameter sets.

Variances are in turns squared. A bootstrap's result has the noise of n external products,
whose digits are uniform and rounded to nearest, and of a key switch; its phase is rounded to
2 N parts before the next. A cell of weights w with margin m fails with probability
erfc(m / sqrt(2 (sum w^2 out + rounding))). Formulas after Chillotti, Gama, Georgieva and
Izabachene (2020); fresh noise by the curve for 132 bits of TFHE-rs's secure_noise.rs (binary
keys, Gaussian noise), which docs/seal.md holds against the lattice estimator.

usage: seal_params.py           the sets of the program, cell by cell, beside `stint seal sets`
       seal_params.py --search  the cheapest sets for 2^-64 and 2^-128 with every cell
       seal_params.py --tried   noise of a choice with one key switch; the cheapest sets
                                if sum and carry came from one rotation; TFHEpp's fastest
"""

import json
import math
import os
import subprocess
import sys

CELLS = {  # sum of squares of the weights, margin in turns
    "and": (2, 1 / 8), "xor": (8, 1 / 4), "majority": (3, 1 / 8), "differ": (3, 1 / 8),
    "xor3": (12, 1 / 4), "xor4": (16, 1 / 4), "and_xor": (6, 1 / 8), "and_xor2": (10, 1 / 8),
    "majority_xor": (7, 1 / 8), "equal_xor": (7, 1 / 8), "two_or_three": (4, 1 / 8)}


def curve(dimension):
    """Least variance of fresh noise for 132 bits, q = 2^32."""
    return (4 / 2**32) ** 2 + 2 ** (5.31469187675068 - 0.0497829131652661 * dimension)


def noise_parts(n, k, size, levels, bits, ks_levels, ks_bits):
    """Variances of a rotation, a key switch and the rounding."""
    base, ks_base, long_n = 2.0**bits, 2.0**ks_bits, k * size
    products = n * (levels * size * (k + 1) * curve(long_n) * (base**2 + 2) / 12
                    + (long_n / 2 + 1) * base ** (-2 * levels) / 24)
    switch = (ks_levels * long_n * curve(n) * (ks_base**2 + 2) / 12
              + long_n * ks_base ** (-2 * ks_levels) / 24)
    rounding = (n / 24 + 1 / 12) / (2 * size) ** 2
    return products, switch, rounding


def noise(*shape):
    """Variances of a bootstrap's result and of the rounding."""
    products, switch, rounding = noise_parts(*shape)
    return products + switch, rounding


def log2_erfc(x):
    if x < 20:
        return math.log2(math.erfc(x))
    return (-x * x - math.log(x * math.sqrt(math.pi))) / math.log(2)


def failure(margin, variance):
    return log2_erfc(margin / math.sqrt(2 * variance))


def failures(*shape):
    out, rounding = noise(*shape)
    return {cell: failure(margin, squares * out + rounding)
            for cell, (squares, margin) in CELLS.items()}


def megaflop(n, k, size, levels, bits, ks_levels, ks_bits):
    """Work of a bootstrap: transforms, products, key switch."""
    del bits, ks_bits
    points = size / 2
    return (n * ((k + 1) * (levels + 1) * 5 * points * math.log2(points)
                 + (k + 1) ** 2 * levels * points * 8)
            + 2 * k * size * ks_levels * (n + 1)) / 1e6


def shapes():
    """Dimensions and digits among which sets are searched."""
    for n in range(640, 860, 10):
        for k, size in ((4, 256), (5, 256), (6, 256), (2, 512), (3, 512), (4, 512), (2, 1024)):
            for levels, bits in ((1, 12), (1, 14), (2, 8), (2, 9), (2, 10), (3, 6), (3, 7)):
                for ks_levels, ks_bits in ((6, 2), (7, 2), (4, 3), (5, 3), (3, 4), (4, 4)):
                    yield n, k, size, levels, bits, ks_levels, ks_bits


def search():
    found = [(megaflop(*s), max(failures(*s).values()), s) for s in shapes()]
    found.sort()
    for limit in (-64, -128):
        print(f"every cell below 2^{limit}: Mflop, worst cell, (n, k, N, digits, bits, "
              "key switch digits, bits)")
        for flop, worst, shape in [f for f in found if f[1] <= limit][:8]:
            print(f"  {flop:7.1f}  2^{worst:.1f}  {shape}")


def choice_failure(*shape):
    """Worst cell if all inputs are choices: two rotations, added, and one key switch."""
    products, switch, rounding = noise_parts(*shape)
    return max(failure(margin, squares * (2 * products + switch) + rounding)
               for squares, margin in CELLS.values())


def adder_failure(*shape):
    """Worst cell if bits are +-1/16, so that the sum of three lies in half a turn.

    The carry is its sign F(x). The sum modulo two is F(x + 1/8) + F(x - 1/8) - F(x): three
    coefficients of the same rotated polynomial. All other cells take weights twice as large.
    """
    products, switch, rounding = noise_parts(*shape)
    out = 3 * products + switch
    return max([failure(1 / 16, 3 * out + rounding)]
               + [failure(margin, 4 * squares * out + rounding)
                  for squares, margin in CELLS.values()])


def fastest_of_tfhepp():
    """Worst of AND and XOR in TFHEpp's fastest set (include/params/concrete.hpp of 03ee2dd).

    Ternary polynomials, two digits of 8 bits for masks and one of 10 for bodies; a key
    switch that stores each digit's multiples; ciphertexts of bits in 16-bit words.
    """
    n, k, size, sd, poly_sd = 630, 2, 512, 2**-13.4, 2**-24.8
    masks, bodies = 2.0**8, 2.0**10
    products = n * (size * poly_sd**2 * (k * 2 * (masks**2 + 2) + (bodies**2 + 2)) / 12
                    + (2 / 3 * k * size * masks**-4 + bodies**-2) / 24)
    switch = 5 * k * size * sd**2 * 3 / 4 + 2 / 3 * k * size * 4.0**-10 / 24
    out, rounding = products + switch, (n / 24 + 1 / 12) / (2 * size) ** 2
    return max(failure(CELLS[cell][1], CELLS[cell][0] * out + rounding) for cell in ("and", "xor"))


def tried():
    sets = program_sets()
    for name, shape, _ in sets:
        print(f"{name}: with every input a choice of one key switch 2^{choice_failure(*shape):.1f}")
    print(f"TFHEpp's fastest set: 2^{fastest_of_tfhepp():.0f}; its noise 2^-13.4 and 2^-24.8, by the "
          f"curve 2^{math.log2(curve(630)) / 2:.1f} and 2^{math.log2(curve(1024)) / 2:.1f}")
    for (name, now, _), limit in zip(sets, (-128, -64)):
        flop, shape = min((megaflop(*s), s) for s in shapes() if adder_failure(*s) <= limit)
        n, k, size, ks_levels = shape[0], shape[1], shape[2], shape[5]
        adder = flop + 2 * k * size * ks_levels * (n + 1) / 1e6
        print(f"sum and carry from one rotation, every cell below 2^{limit}: {shape}, "
              f"{flop:.1f} Mflop, {flop / megaflop(*now):.2f} of {name}'s; both outputs "
              f"{adder / (2 * megaflop(*now)):.2f} of two bootstraps")


def program_sets():
    """(name, shape, what the program says of it) of every set."""
    stint = os.environ.get("STINT", "build/release/stint")
    sets = json.loads(subprocess.check_output([stint, "seal", "sets", "--json"]))["sets"]
    keys = ("n", "k", "size", "levels", "bits", "ks_levels", "ks_bits")
    return [(s["name"], tuple(s[key] for key in keys), s) for s in sets]


def main():
    if "--search" in sys.argv[1:]:
        return search()
    if "--tried" in sys.argv[1:]:
        return tried()
    for name, shape, says in program_sets():
        of_cell = failures(*shape)
        print(f"{name}: {shape}, {megaflop(*shape):.1f} Mflop, deviation of a result "
              f"2^{math.log2(noise(*shape)[0]) / 2:.2f} (program 2^{says['sd_log2']:.2f})")
        for cell, fail in of_cell.items():
            print(f"  {cell:14s} 2^{fail:.1f}")
        if abs(max(of_cell.values()) - says["fail_log2"]) > 0.2:
            sys.exit(f"{name}: the program says 2^{says['fail_log2']:.1f}")
    return None


if __name__ == "__main__":
    sys.exit(main())
