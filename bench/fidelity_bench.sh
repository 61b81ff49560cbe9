#!/bin/bash
# Fine-tuning a compressed network: plainly, and with the loss against a reference, by
# equally many steps from the same weights. Prints, for each way to compress and each
# weighting of the loss, medians over the seeds: accuracy, inputs whose answer is not the
# reference's, negative flips, how many times fewer than plainly, and the excess over the
# noise floor (the reference itself, fine-tuned plainly with the same schedule).
#
#   bench/fidelity_bench.sh STINT FOLDER      (about half an hour of one core)
#
# Everything is chosen by images that are held out of training, never by the test images:
# the rate of each row by its first seed, and the epoch of each run. Plain fine-tuning is
# chosen by accuracy there, the others by answers that are not the reference's. The
# "untrained" rows are compressed and not trained at all.
#
# Runs that are in FOLDER already are not repeated, so that it can be stopped and called
# again. SEEDS, SETTINGS, WEIGHTINGS, RATES, EPOCHS and REFERENCE_EPOCHS may be set;
# REPORT_ONLY=1 prints what is there.
set -eu
stint=$(readlink -f "${1:?stint}")
mkdir -p "${2:?folder}"
cd "$2"
seeds=${SEEDS:-1 2 3 4 5}
settings=${SETTINGS:-prune0.95 int8}
weightings=${WEIGHTINGS:-plain uniform soft learnable focal}

# Letters and digits of many fonts: 9,720 to learn and 1,080 held out, 5,400 of other
# fonts to be asked.
if [ ! -d glyphs ]; then
    "$stint" data glyphs --out making --train 10800 --test 5400 --size 16 -q >glyphs.log
    mv making glyphs
fi
cat >run.ini <<INI
[model]
name = mlp
width = 512
[data]
path = glyphs
crop_pad = 1
[train]
batch = 100
shards = 2
eval_every = 0
validation = 0.1
[optimizer]
lr = 0.05
weight_decay = 5e-4
[schedule]
name = cosine
warmup = 1
[loss]
pairing = 0.1
temperature = 4
INI

train() { # NAME ARGUMENTS
    local name=$1
    shift
    [ ! -f "$name.json" ] && [ -z "${REPORT_ONLY:-}" ] || return 0
    rm -rf "$name"
    "$stint" train run.ini --out "$name" -j 1 -q --json "$@" >"$name.train" ||
        { echo "$name did not finish" >&2; return 0; }
    if [ "$name" = reference ]; then
        cp "$name.train" reference.json
    else
        "$stint" compare reference "$name" --data glyphs -j 1 --json -q >"$name.part"
        mv "$name.part" "$name.json"
    fi
    rm -rf "$name/checkpoints"
}

tune() { # NAME RATE SEED ARGUMENTS: a fine-tuning from the reference
    local name=$1 rate=$2 seed=$3
    shift 3
    train "$name-$rate-$seed" --start reference --reference reference --lr "$rate" \
        --seed "$seed" --epochs "${EPOCHS:-15}" "$@"
}

# The rate of those that were run which is best by the held-out images.
best_rate() { # NAME KEY SIGN SEED
    python3 - "$@" "$rates" <<'PY'
import json, os, sys
name, key, sign, seed, rates = sys.argv[1:]
found = [r for r in rates.split() if os.path.exists(f"{name}-{r}-{seed}.train")
         and os.path.getsize(f"{name}-{r}-{seed}.train")]
of = lambda r: float(sign) * json.load(open(f"{name}-{r}-{seed}.train"))[key]
print(min(found, key=of) if found else "")
PY
}

# The loss against a reference with the labels alone has the bits of plain training.
plain="--set loss.pairing=0 --set loss.soft=0 --set train.select=accuracy"
train reference --epochs "${REFERENCE_EPOCHS:-20}"
for setting in $settings; do
    case $setting in
    int*)
        compress="--set quantise.bits=${setting#int}"
        rates=${RATES:-0.05 0.005}
        ;;
    *)
        compress="--sparsity ${setting#prune} --set prune.epochs=6"
        rates=${RATES:-0.1 0.05}
        ;;
    esac
    # (a rate that changes no bit of a weight)
    train "$setting-untrained" --start reference ${compress% --set prune.epochs=6} \
        --epochs 1 --lr 1e-30
    for weighting in $weightings; do
        key=validation_mismatch sign=1
        case $weighting in
        plain) loss=$plain key=validation_accuracy sign=-1 ;;
        soft) loss="--set loss.hard=0 --set loss.pairing=0 --set train.select=mismatch" ;;
        *) loss="--set loss.weighting=$weighting --set train.select=mismatch" ;;
        esac
        first=${seeds%% *}
        for rate in $rates; do
            # shellcheck disable=SC2086
            tune "$setting-$weighting" "$rate" "$first" $compress $loss
        done
        rate=$(best_rate "$setting-$weighting" $key $sign "$first")
        [ -n "$rate" ] || continue
        for seed in $seeds; do
            # shellcheck disable=SC2086
            tune "$setting-$weighting" "$rate" "$seed" $compress $loss
        done
        echo "$rate" >"$setting-$weighting.rate"
    done
done
for seed in $seeds; do
    # shellcheck disable=SC2086
    tune floor 0.05 "$seed" $plain
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


def line(setting, weighting, rate, rows, fold, noise):
    others = median(rows, "mismatch_rate")
    excess = f"{100 * (others - noise):+.2f}" if noise is not None else ""
    print(f"{setting:<11}{weighting:<11}{rate:>6}{len(rows):>6}"
          f"{100 * median(rows, 'new_accuracy'):>10.2f}{100 * others:>8.2f}"
          f"{100 * median(rows, 'nfr'):>7.2f}{fold:>8}{excess:>8}")


floor = runs("floor-0.05")
noise = median(floor, "mismatch_rate") if len(floor) >= 3 else None
if floor:
    print(f"reference: accuracy {100 * floor[0]['reference_accuracy']:.2f} %; noise floor "
          f"of {len(floor)} seeds: {100 * median(floor, 'mismatch_rate'):.2f} % other "
          f"answers at accuracy {100 * median(floor, 'new_accuracy'):.2f} %")
print(f"{'compressed':<11}{'loss':<11}{'rate':>6}{'seeds':>6}{'accuracy':>10}{'others':>8}"
      f"{'lost':>7}{'fewer':>8}{'excess':>8}   percent; medians")
ratios = []
for setting in settings:
    if os.path.exists(f"{setting}-untrained.json"):
        line(setting, "untrained", "", [json.load(open(f"{setting}-untrained.json"))], "",
             noise)
    plain = None
    for weighting in weightings:
        if not os.path.exists(f"{setting}-{weighting}.rate"):
            continue
        rate = open(f"{setting}-{weighting}.rate").read().strip()
        rows = runs(f"{setting}-{weighting}-{rate}")
        fold = ""
        if weighting == "plain":
            plain = rows
        # No "times fewer" from less than three seeds, or without a floor.
        elif plain and min(len(rows), len(plain)) >= 3 and noise is not None:
            others = median(rows, "mismatch_rate")
            ratio = median(plain, "mismatch_rate") / others if others else float("inf")
            worse = median(rows, "new_accuracy") < median(plain, "new_accuracy")
            ratios.append((ratio, setting, weighting, worse))
            fold = f"{ratio:.2f}x"
        line(setting, weighting, rate, rows, fold, noise)
if ratios:
    ratios.sort()
    best = ratios[-1]
    print(f"times fewer: median {statistics.median(r[0] for r in ratios):.2f}, best "
          f"{best[0]:.2f} ({best[1]}, {best[2]}); accuracy below plain fine-tuning in "
          f"{sum(r[3] for r in ratios)} of {len(ratios)} settings")
PY
