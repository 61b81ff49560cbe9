#!/bin/bash
# Fine-tuning a compressed network: plainly, and with the loss against a reference, by
# equally many steps from the same weights. Prints, for each network, each way to compress
# and each weighting of the loss, medians over the seeds: accuracy, inputs whose answer is
# not the reference's, negative flips, how many times fewer than plainly, and the excess
# over the noise floor (the reference itself, fine-tuned plainly with the same schedule).
#
#   bench/fidelity_bench.sh STINT FOLDER [CIFAR10]
#
# It takes an hour of one core, and with CIFAR10 another one. CIFAR10 is a
# folder with train.tar and test.tar, images by class (train/NAME/0000.jpg); without it
# the networks that learn them are left out.
#
# Everything is chosen by images that are held out of training, never by the test images:
# for each row the rate by the first seed, the epoch of each run, and, for the summary, the
# weighting of a setting (network and way to compress). Plain fine-tuning is chosen by
# accuracy there; the others by answers that are not the reference's, rates among what is
# not less accurate there than plain fine-tuning, if any is. Of rates that are equally
# good the smallest is taken, which changes least. Plain fine-tuning has each rate with and
# without weight decay (RATE:0); the others have none, since it pulls weights away from the
# answers that they are to give. Networks with batch-norm have each rate without decay also
# with its statistics kept as they are (RATE:0:f). The "untrained" rows are compressed and
# not trained at all.
#
# Runs that are in FOLDER already are not repeated, so that it can be stopped and called
# again. NETWORKS, SEEDS, SETTINGS, WEIGHTINGS, RATES, EPOCHS and REFERENCE_EPOCHS may be
# set; REPORT_ONLY=1 prints what is there.
set -eu
stint=$(readlink -f "${1:?stint}")
mkdir -p "${2:?folder}"
cifar10=${3:+$(readlink -f "$3")}
script=$(readlink -f "$0")
cd "$2"
networks=${NETWORKS:-mlp mlp-1024 lenet5 vgg11-16} # NAME-WIDTH; 512 where none is given
seeds=${SEEDS:-1 2 3 4 5}
settings=${SETTINGS:-prune0.95 int8}
weightings=${WEIGHTINGS:-plain uniform}
first=${seeds%% *}

# What a network learns.
images() { case $1 in mlp* | lenet5*) echo glyphs ;; *) echo cifar10 ;; esac; }
kept=
for network in $networks; do
    if [ "$(images "$network")" = glyphs ] || [ -d cifar10 ] || [ -n "$cifar10" ]; then
        kept="$kept $network"
    else
        echo "$network is left out: it needs CIFAR10" >&2
    fi
done
networks=$kept

# Letters and digits of many fonts: 9,720 to learn and 1,080 held out, 5,400 of other
# fonts to be asked.
if [[ $networks == *mlp* || $networks == *lenet5* ]] && [ ! -d glyphs ]; then
    "$stint" data glyphs --out making --train 10800 --test 5400 --size 16 -q >glyphs.log
    mv making glyphs
fi
# The first 500 photographs of each class: 4,500 to learn and 500 held out; all of the test
# set, 10,000, to be asked.
if [ -n "$cifar10" ] && [ ! -d cifar10 ]; then
    rm -rf making
    mkdir making
    tar xf "$cifar10/train.tar" -C making --wildcards 'train/*/0[0-4]*'
    tar xf "$cifar10/test.tar" -C making
    mv making cifar10
fi

recipe() { # IMAGES CROP FLIP
    cat >"$1.ini" <<INI
[data]
path = $1
crop_pad = $2
flip = $3
[train]
batch = 100
shards = 2
eval_every = 0
validation = 0.1
[optimizer]
lr = 0.1
weight_decay = 5e-4
[schedule]
name = cosine
warmup = 1
[loss]
pairing = 0.1
temperature = 2
INI
}
recipe glyphs 1 false
recipe cifar10 4 true

train() { # NETWORK NAME ARGUMENTS
    local network=$1 name=$1-$2 width=512
    shift 2
    case $network in *-*) width=${network#*-} ;; esac
    [ ! -f "$name.json" ] && [ -z "${REPORT_ONLY:-}" ] || return 0
    rm -rf "$name"
    "$stint" train "$(images "$network").ini" --set model.name="${network%-*}" --set model.width="$width" \
        --out "$name" -j 1 -q --json "$@" >"$name.train" || { echo "$name did not finish" >&2; return 0; }
    if [ "$name" = "$network-reference" ]; then
        cp "$name.train" "$name.json"
    else
        "$stint" compare "$network-reference" "$name" -j 1 --json -q \
            --data "$(images "$network")" >"$name.part"
        mv "$name.part" "$name.json"
    fi
    rm -rf "$name/checkpoints"
}

tune() { # NETWORK NAME RATE[:0[:f]] SEED ARGUMENTS: a fine-tuning from the reference
    local network=$1 name=$2 rate=$3 seed=$4
    shift 4
    case $rate in *:0*) set -- "$@" --set optimizer.weight_decay=0 ;; esac
    case $rate in *:f) set -- "$@" --set train.freeze_norm=true ;; esac
    train "$network" "$name-$rate-$seed" --start "$network-reference" \
        --reference "$network-reference" --lr "${rate%%:*}" --seed "$seed" \
        --epochs "$epochs" "$@"
}

# The rate of those that were run which is best by the held-out images.
best_rate() { # NETWORK-SETTING WEIGHTING RATES
    python3 - "$@" "$first" <<'PY'
import json, os, sys
setting, weighting, rates, seed = sys.argv[1:]
def run(weighting, rate):
    path = f"{setting}-{weighting}-{rate}-{seed}.train"
    return json.load(open(path)) if os.path.exists(path) and os.path.getsize(path) else None
found = {rate: run(weighting, rate) for rate in rates.split()}
found = {rate: r for rate, r in found.items() if r and "error" not in r}
found = dict(sorted(found.items(), key=lambda r: float(r[0].split(":")[0])))
if weighting == "plain":
    print(max(found, key=lambda r: found[r]["validation_accuracy"], default=""))
    sys.exit()
try:
    least = run("plain", open(f"{setting}-plain.rate").read().strip())["validation_accuracy"]
except OSError:  # plain fine-tuning was not asked for
    least = 0
good = [r for r in found if found[r]["validation_accuracy"] >= least]
print(min(good or found, key=lambda r: found[r]["validation_mismatch"], default=""))
PY
}

# The loss against a reference with the labels alone has the bits of plain training.
plain="--set loss.hard=1 --set loss.pairing=0 --set loss.soft=0 --set train.select=accuracy"
for network in $networks; do
    # A photograph takes ten times as long as a glyph.
    epochs=${EPOCHS:-15}
    [ "$(images "$network")" = glyphs ] || epochs=${EPOCHS:-10}
    stages=$((2 * epochs / 5)) # in which weights are pruned
    train "$network" reference --epochs "${REFERENCE_EPOCHS:-60}"
    for setting in $settings; do
        case $setting in
        int*)
            compress="--set quantise.bits=${setting#int}"
            rates=${RATES:-0.05 0.005 0.0005}
            ;;
        *)
            compress="--sparsity ${setting#prune} --set prune.epochs=$stages"
            rates=${RATES:-0.1 0.05 0.02}
            ;;
        esac
        # (a rate that changes no bit of a weight)
        # shellcheck disable=SC2086
        train "$network" "$setting-untrained" --start "$network-reference" \
            ${compress% --set prune.epochs=*} --epochs 1 --lr 1e-30 \
            --set train.freeze_norm=true
        for weighting in $weightings; do
            # Labels are not what is asked for: the reference gets some of them wrong.
            loss="--set loss.hard=0 --set train.select=mismatch"
            case $weighting in
            plain) loss=$plain ;;
            soft) loss="$loss --set loss.pairing=0" ;;
            *) loss="$loss --set loss.weighting=$weighting" ;;
            esac
            tried=${rates// /:0 }:0
            case $network in vgg*) tried="$tried ${tried// /:f }:f" ;; esac
            [ "$weighting" = plain ] && tried="$rates $tried"
            for rate in $tried; do
                # shellcheck disable=SC2086
                tune "$network" "$setting-$weighting" "$rate" "$first" $compress $loss
            done
            rate=$(best_rate "$network-$setting" "$weighting" "$tried")
            [ -n "$rate" ] || continue
            echo "$rate" >"$network-$setting-$weighting.rate"
            for seed in $seeds; do
                # shellcheck disable=SC2086
                tune "$network" "$setting-$weighting" "$rate" "$seed" $compress $loss
            done
        done
    done
    for seed in $seeds; do
        # shellcheck disable=SC2086
        tune "$network" floor 0.05 "$seed" $plain
    done
done
python3 "${script%.sh}.py" "$networks" "$seeds" "$settings" "$weightings"
