"""The table of fidelity_bench.sh, from the runs in the current folder.

usage: fidelity_bench.py NETWORKS SEEDS SETTINGS WEIGHTINGS   (each a list in one argument)
"""
import json
import os
import statistics
import sys

networks, seeds, settings, weightings = (text.split() for text in sys.argv[1:5])


def read(path):
    return json.load(open(path)) if os.path.exists(path) and os.path.getsize(path) else None


def runs(name):
    """What `stint compare` and `stint train` say of each seed's run."""
    found = []
    for seed in seeds:
        told, trained = read(f"{name}-{seed}.json"), read(f"{name}-{seed}.train")
        if told and trained:
            found.append({**told, "held_out_accuracy": trained["validation_accuracy"],
                          "held_out_others": trained["validation_mismatch"]})
    return found


def median(rows, key):
    return statistics.median(row[key] for row in rows)


def line(setting, weighting, rate, rows, fold, noise):
    others = median(rows, "mismatch_rate")
    excess = f"{100 * (others - noise):+.2f}" if noise is not None else ""
    print(f"{setting:<11}{weighting:<11}{rate:>8}{len(rows):>6}"
          f"{100 * median(rows, 'new_accuracy'):>10.2f}{100 * others:>8.2f}"
          f"{100 * median(rows, 'nfr'):>7.2f}{fold:>8}{excess:>8}")


def table(network):
    """Prints a network's rows; returns for each setting what weightings came to."""
    floor = runs(f"{network}-floor-0.05")
    noise = median(floor, "mismatch_rate") if len(floor) >= 3 else None
    print(f"\n{network}", end="")
    if floor:
        print(f": reference {100 * floor[0]['reference_accuracy']:.2f} %; noise floor of "
              f"{len(floor)} seeds: {100 * median(floor, 'mismatch_rate'):.2f} % other "
              f"answers at accuracy {100 * median(floor, 'new_accuracy'):.2f} %", end="")
    print(f"\n{'compressed':<11}{'loss':<11}{'rate':>8}{'seeds':>6}{'accuracy':>10}"
          f"{'others':>8}{'lost':>7}{'fewer':>8}{'excess':>8}   percent; medians")
    told = {}
    for setting in settings:
        untrained = read(f"{network}-{setting}-untrained.json")
        if untrained:
            line(setting, "untrained", "", [untrained], "", noise)
        plain, candidates = None, []
        for weighting in weightings:
            path = f"{network}-{setting}-{weighting}.rate"
            rate = open(path).read().strip() if os.path.exists(path) else ""
            rows = runs(f"{network}-{setting}-{weighting}-{rate}")
            if not rows:
                continue
            fold = ""
            if weighting == "plain":
                plain = rows
            # No "times fewer" from less than three seeds, or without a floor.
            elif plain and min(len(rows), len(plain)) >= 3 and noise is not None:
                others = median(rows, "mismatch_rate")
                ratio = median(plain, "mismatch_rate") / others if others else float("inf")
                gain = median(rows, "new_accuracy") - median(plain, "new_accuracy")
                good = median(rows, "held_out_accuracy") >= median(plain, "held_out_accuracy")
                candidates.append((not good, median(rows, "held_out_others"),
                                   ratio, gain, weighting))
                fold = f"{ratio:.2f}x"
            line(setting, weighting, rate, rows, fold, noise)
        if candidates:
            told[network, setting] = candidates
    return told


def summary(found):
    """The first of the weightings that are equally good on the held-out images."""
    print("\nby setting, the weighting chosen by the held-out images:")
    chosen = {place: min(candidates, key=lambda c: c[:2])
              for place, candidates in found.items()}
    for (network, setting), (_, _, ratio, gain, weighting) in chosen.items():
        print(f"  {network + ', ' + setting + ', ' + weighting:<34}{ratio:>6.2f}x fewer, "
              f"accuracy {100 * gain:+.2f} points")
    for kind in settings:
        ratios = [choice[2] for (_, setting), choice in chosen.items() if setting == kind]
        if ratios:
            print(f"  {kind}: median {statistics.median(ratios):.2f}x")
    ratios = [choice[2] for choice in chosen.values()]
    print(f"  {len(ratios)} settings: median {statistics.median(ratios):.2f}x, best "
          f"{max(ratios):.2f}x; accuracy below plain fine-tuning in "
          f"{sum(choice[3] < 0 for choice in chosen.values())}")


found = {}
for network in networks:
    found.update(table(network))
if found:
    summary(found)
