#!/bin/bash
# Fine-tuning a compressed network: plainly, and with the loss against a reference, by
# equally many steps from the same weights. Prints, for each way to compress and each
# weighting of the loss, medians over the seeds: accuracy, inputs whose answer is not the
# reference's, negative flips, how many times fewer than plainly, and the excess over the
# noise floor (the reference itself, fine-tuned plainly with the same schedule).
#
#   bench/fidelity_bench.sh STINT FOLDER      (about an hour of one core)
#
# Runs that are in FOLDER already are not repeated, so that it can be stopped and called
# again. SEEDS, SETTINGS, WEIGHTINGS, EPOCHS and REFERENCE_EPOCHS may be set.
set -eu
stint=$(readlink -f "${1:?stint}")
mkdir -p "${2:?folder}"
cd "$2"
seeds=${SEEDS:-1 2 3 4 5}
settings=${SETTINGS:-prune0.95 prune0.9 int8 prune0.98 int4}
weightings=${WEIGHTINGS:-plain uniform learnable softadapt focal soft}

# Digits of many fonts: 10,000 to learn, 5,000 of other fonts to be asked.
if [ ! -d data ]; then
    "$stint" data glyphs --out glyphs --train 36000 --test 18000 -q >glyphs.log
    mkdir part
    for split in train test; do
        tar xf glyphs/$split.tar -C part --wildcards "$split/[0-9]/*"
    done
    mv part data
fi
cat >run.ini <<INI
[model]
name = mlp
[data]
path = data
crop_pad = 1
[train]
batch = 100
eval_every = 0
[optimizer]
lr = 0.05
weight_decay = 5e-4
[schedule]
name = cosine
warmup = 2
[loss]
pairing = 0.1
temperature = 4
INI

train() { # NAME ARGUMENTS
    local name=$1
    shift
    [ -f "$name.json" ] && return
    rm -rf "$name"
    "$stint" train run.ini --out "$name" -j 1 -q "$@" >"$name.log" ||
        { echo "$name: $(tail -1 "$name.log")" >&2; return; }
    [ "$name" = reference ] ||
        "$stint" compare reference "$name" --data data -j 1 --json -q >"$name.part"
    [ "$name" = reference ] && touch reference.json || mv "$name.part" "$name.json"
    rm -rf "$name/checkpoints"
}

train reference --epochs "${REFERENCE_EPOCHS:-30}"
for seed in $seeds; do
    train "floor-$seed" --start reference --epochs "${EPOCHS:-30}" --seed "$seed"
done
for setting in $settings; do
    case $setting in
    int*) compress="--set quantise.bits=${setting#int}" ;;
    *) compress="--sparsity ${setting#prune}" ;;
    esac
    for weighting in $weightings; do
        for seed in $seeds; do
            case $weighting in
            plain) loss= ;;
            soft) loss="--reference reference --set loss.hard=0" ;;
            *) loss="--reference reference --set loss.weighting=$weighting" ;;
            esac
            # shellcheck disable=SC2086
            train "$setting-$weighting-$seed" --start reference --epochs "${EPOCHS:-30}" \
                --seed "$seed" $compress $loss
        done
    done
done
python3 - "$seeds" "$settings" "$weightings" <<'PY'
import json
import os
import statistics
import sys

seeds, settings, weightings = (text.split() for text in sys.argv[1:4])


def runs(name):
    found = [f"{name}-{seed}.json" for seed in seeds]
    return [json.load(open(path)) for path in found if os.path.exists(path)]


def median(rows, key):
    return statistics.median(row[key] for row in rows)


floor = runs("floor")
noise = median(floor, "mismatch_rate") if len(floor) >= 3 else None
if floor:
    print(f"reference: accuracy {100 * floor[0]['reference_accuracy']:.2f} %; noise floor "
          f"of {len(floor)} seeds: {100 * median(floor, 'mismatch_rate'):.2f} % other "
          f"answers at accuracy {100 * median(floor, 'new_accuracy'):.2f} %")
print(f"{'compressed':<12}{'loss':<11}{'seeds':>5}{'accuracy':>10}{'others':>9}"
      f"{'lost':>8}{'fewer':>8}{'excess':>9}   percent; medians")
ratios = []
for setting in settings:
    plain = runs(f"{setting}-plain")
    for weighting in weightings:
        rows = runs(f"{setting}-{weighting}")
        if not rows:
            continue
        others = median(rows, "mismatch_rate")
        fold, excess = "", ""
        if noise is not None:
            excess = f"{100 * (others - noise):+.2f}"
        # No "times fewer" from less than three seeds, or without a floor.
        if weighting != "plain" and min(len(rows), len(plain)) >= 3 and noise is not None:
            ratio = median(plain, "mismatch_rate") / others if others else float("inf")
            worse = median(rows, "new_accuracy") < median(plain, "new_accuracy")
            ratios.append((ratio, setting, weighting, worse))
            fold = f"{ratio:.2f}x"
        print(f"{setting:<12}{weighting:<11}{len(rows):>5}"
              f"{100 * median(rows, 'new_accuracy'):>10.2f}{100 * others:>9.2f}"
              f"{100 * median(rows, 'nfr'):>8.2f}{fold:>8}{excess:>9}")
if ratios:
    ratios.sort()
    best = ratios[-1]
    print(f"times fewer: median {statistics.median(r[0] for r in ratios):.2f}, best "
          f"{best[0]:.2f} ({best[1]}, {best[2]}); accuracy below plain fine-tuning in "
          f"{sum(r[3] for r in ratios)} of {len(ratios)} settings")
PY
