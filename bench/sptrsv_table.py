"""The table of bench/sptrsv_bench.sh, from its rows: name, then JSON of ours on one and two
threads, of two threads planned for one solve, and of the peers; a line a round."""

import json
import math
import statistics
import sys


def middle(values):
    return statistics.median(values)


def mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def main():
    rounds = {}
    for line in sys.stdin:
        name, *parts = line.rstrip("\n").split("\t")
        one, two, once = (json.loads(p)["rows"][0] for p in parts[:3])
        rounds.setdefault(name, []).append((one, two, once, json.loads(parts[3])))
    print("milliseconds; best: the fastest peer, which may be MKL on that many threads")
    print("%-24s %8s %8s %8s %8s %8s %8s %8s %7s %7s %7s %7s %6s %7s" % (
        "matrix", "loop", "cxsparse", "cholmod", "mkl 1", "mkl 2", "ours 1", "ours 2",
        "best/1", "best/2", "ours/nat", "once", "pred", "analysis"))
    ratios = {1: [], 2: []}
    beside, once_all, predicted, analyses, worst = [], [], [], [], 0
    for name, row in rounds.items():
        by = {1: [], 2: []}
        for one, two, _, peer in row:
            serial = [peer["cxsparse_s"], peer.get("cholmod_s", 1e9)]
            by[1].append(min(serial + [peer.get("mkl1_s", 1e9)]) / one["chosen_s"])
            by[2].append(min(serial + [peer.get("mkl1_s", 1e9), peer.get("mkl2_s", 1e9)])
                         / two["chosen_s"])
        for threads in (1, 2):
            ratios[threads].append(middle(by[threads]))
        natural = [r[1]["chosen_s"] / r[1]["natural_s"] for r in row]
        once = [(r[2]["chosen_s"] + r[2]["analysis_s"]) / r[2]["natural_s"] for r in row]
        guess = [r[k]["predicted_s"] / r[k]["chosen_s"] for r in row for k in (0, 1)]
        analysis = [r[1]["analysis_s"] / r[1]["natural_s"] for r in row]
        beside.append(middle(natural))
        once_all.append(middle(once))
        predicted += [middle(guess[k::2]) for k in (0, 1)]
        analyses.append(middle(analysis))
        worst = max(worst, max(r[3]["backward"] for r in row))

        def ms(k, key):
            return "%8.3f" % (1e3 * middle([r[k][key] for r in row])) if key in row[0][k] else "%8s" % "-"
        print("%-24s %s %s %s %s %s %s %s %7.2f %7.2f %7.2f %7.2f %6.2f %7.1f" % (
            name[:24], ms(3, "loop_s"), ms(3, "cxsparse_s"), ms(3, "cholmod_s"),
            ms(3, "mkl1_s"), ms(3, "mkl2_s"), ms(0, "chosen_s"), ms(1, "chosen_s"),
            ratios[1][-1], ratios[2][-1], beside[-1], once_all[-1], middle(guess),
            analyses[-1]))
    for threads in (1, 2):
        print("%d thread%s: geometric mean over %d matrices %.2f times the best peer, least %.2f" % (
            threads, "s" if threads > 1 else "", len(rounds), mean(ratios[threads]),
            min(ratios[threads])))
    print("chosen / serial loop: most %.2f; with analysis for one solve: most %.2f" % (
        max(beside), max(once_all)))
    near = sum(0.8 <= p <= 1.25 for p in predicted)
    print("predicted within 25 %%: %d of %d; analysis for 1000: most %.0f serial solves, median %.0f" % (
        near, len(predicted), max(analyses), middle(analyses)))
    print("backward error of the peers: at most %.2g" % worst)


main()
