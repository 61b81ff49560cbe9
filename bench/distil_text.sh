#!/bin/bash
# A gpt of half the depth, taught by the whole one: 6 blocks of 128 columns teach 3, which
# begin with its first, third and last, on a text in characters. Beside it 3 new blocks
# trained plainly, at equal cost: a step against the reference has its forward pass of
# twice the depth besides the student's forward and backward one, 5 against 3, so that
# plain training gets 5/3 of the steps. The teacher's own training counts for neither.
#
#   distil_text.sh STINT TEXT FOLDER [SEEDS [STEPS]]
#
# Prints for each seed both losses on the validation part with the paired interval of their
# difference, and how many next tokens either has other than the reference. FOLDER keeps
# the runs: the same command goes on where it was. 3 seeds by default, of 1800 steps.
# ALSO, words of: begun (from the teacher's blocks, but plainly, as many steps as plain), new
# (taught, with new weights); of each seed's the loss and the changed next tokens.
set -eu
[ $# -ge 3 ] || { sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2; }
stint=$1 text=$2 folder=$3 seeds=${4:-1,2,3} steps=${5:-1800}
recipe=$(dirname "$0")/../recipes/shakespeare-small.ini
mkdir -p "$folder"
train() { # OUT STEPS SEED OPTION...
    local out=$1 steps=$2 seed=$3
    shift 3
    grep -qs '"event":"end"' "$folder/$out/log.jsonl" ||
        "$stint" train "$recipe" --data "$text" --out "$folder/$out" --resume --quiet \
            --steps "$steps" --seed "$seed" --error 0 --set model.width=128 --set model.heads=4 \
            --set model.context=64 --batch 32 --shards 2 --set train.eval_every=0 \
            --set run.checkpoint_every=100 "$@" >/dev/null
}
line='%-5s %10s %10s %22s %9s %9s %6s\n'
# shellcheck disable=SC2059
printf "$line" seed plain taught 'taught less plain' 'plain' 'taught' ratio
# shellcheck disable=SC2059
printf "$line" '' nats nats '(95 %)' 'changed' 'changed' ''
for seed in ${seeds//,/ }; do
    train "teacher-$seed" $((steps * 5 / 3)) "$seed" --set model.depth=6
    train "plain-$seed" $((steps * 5 / 3)) "$seed" --set model.depth=3
    train "taught-$seed" "$steps" "$seed" --set model.depth=3 \
        --start "$folder/teacher-$seed" --set train.start_blocks=even \
        --reference "$folder/teacher-$seed" --set loss.hard=0.2 --set loss.soft=0.8 \
        --set loss.pairing=0
    for other in plain taught; do
        "$stint" compare "$folder/teacher-$seed" "$folder/$other-$seed" --data "$text" --json \
            --quiet >"$folder/$other-$seed.json"
    done
    "$stint" compare "$folder/plain-$seed" "$folder/taught-$seed" --data "$text" --json \
        --quiet >"$folder/both-$seed.json"
    python3 - "$seed" "$folder" <<'PY'
import json
import sys
seed, folder = sys.argv[1:]
plain, taught, both = (json.load(open(f"{folder}/{name}-{seed}.json"))
                       for name in ("plain", "taught", "both"))
change = f"{both['loss_difference']:+.4f} ({both['loss_low']:+.4f} to {both['loss_high']:+.4f})"
print(f"{seed:5} {both['reference_loss']:10.4f} {both['new_loss']:10.4f} {change:>28} "
      f"{100 * plain['mismatch_rate']:7.2f} % {100 * taught['mismatch_rate']:7.2f} % "
      f"{taught['mismatch_rate'] / plain['mismatch_rate']:6.3f}")
PY
    for other in ${ALSO:-}; do
        teacher="$folder/teacher-$seed"
        case $other in
        begun) more=($((steps * 5 / 3)) "$seed" --start "$teacher" --set train.start_blocks=even) ;;
        new) more=("$steps" "$seed" --reference "$teacher" --set loss.hard=0.2
            --set loss.soft=0.8 --set loss.pairing=0) ;;
        *) echo "distil_text.sh: ALSO is of begun and new, not '$other'" >&2; exit 2 ;;
        esac
        train "$other-$seed" "${more[@]}" --set model.depth=3
        "$stint" compare "$teacher" "$folder/$other-$seed" --data "$text" --json --quiet |
            python3 -c 'import json, sys; r = json.load(sys.stdin); print("%-5s %s: %.4f nats, "
"%.2f %% changed" % (*sys.argv[1:], r["new_loss"], 100 * r["mismatch_rate"]))' "$seed" "$other"
    done
done
