"""The table of long_tail_bench.sh, from the files in the current folder.

usage: long_tail_bench.py NETWORKS SETTINGS SEEDS   (each a list in one argument)
"""
import json
import statistics
import sys

networks, settings, seeds = (text.split() for text in sys.argv[1:4])


def told(value, form):
    return "none" if value is None else format(value, form)


def median(sides, key):
    values = [side[key] for side in sides if side[key] is not None]
    return statistics.median(values) if values else None


def lift(sides):
    """Of all seeds together: their counts are small."""
    changed = sum(side["changed"] for side in sides)
    both = sum(side["changed_marked"] for side in sides)
    share = sides[0]["marked"] / sides[0]["count"]
    return both / changed / share if changed and share else None


def line(network, setting, what, sides):
    worst = [side["p"] for side in sides if side["p"] is not None]
    print(f"{network:<10}{setting:<11}{what:<30}{sides[0]['marked']:>7}"
          f"{sum(side['changed'] for side in sides):>9}"
          f"{sum(side['changed_marked'] for side in sides):>6}"
          f"{told(lift(sides), '.2f'):>7}"
          f"{told(median(sides, 'partial_lift'), '.2f'):>9}"
          f"{told(median(sides, 'auroc'), '.3f'):>7}"
          f"{told(median(sides, 'spearman'), '.3f'):>10}"
          f"{told(max(worst, default=None), '.6f'):>10}")


reached = cells = 0
for network in networks:
    study = json.load(open(f"memory-{network}.json"))
    print(f"{network}: {study['runs']} runs, standard error {study['error_bound']:.3f} at "
          f"most; {study['memorised']} of {study['train']} images memorised, "
          f"{100 * (study['memorised_by_chance'] or 0):.1f} % of these by chance")
print(f"{'network':<10}{'setting':<11}{'which':<30}{'marked':>7}{'changed':>9}{'both':>6}"
      f"{'lift':>7}{'partial':>9}{'AUROC':>7}{'Spearman':>10}{'p, worst':>10}   "
      f"changed, both and lift of {len(seeds)} seeds together, else medians")
for network in networks:
    floor = []
    for setting in settings:
        tails = [json.load(open(f"{network}-{setting}-tail-{seed}.json"))["long_tail"]
                 for seed in seeds]
        train = [tail["train"] for tail in tails]
        line(network, setting, "memorised training inputs", train)
        line(network, setting, "influenced test inputs", [tail["test"] for tail in tails])
        floor = tails
        cells += 1
        reached += ((lift(train) or 0) >= 1.5 and median(train, "auroc") >= 0.65
                    and max(side["p"] for side in train) < 0.001)
    line(network, "floor", "memorised training inputs", [t["floor_train"] for t in floor])
    line(network, "floor", "influenced test inputs", [t["floor_test"] for t in floor])
print(f"lift >= 1.5, AUROC >= 0.65 and p < 0.001 on the training side in {reached} of "
      f"{cells} cells")
