# Text that is held out of training: what is trained on without it, its loss, the epoch
# that is chosen by it, and the end of a run that gets no better.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
# What is held out is of other habits, so that a later epoch may be worse there. Shares are
# whole numbers of the 5000 characters.
words "the cat sat on a mat and saw" 1500 | head -c 3600 >text.txt
words "the cat sat on a mat and saw" 1500 | rev | head -c 1400 >>text.txt
settings=(--set model.name=gpt --set model.width=16 --set model.depth=1
    --set model.context=16 --set data.tokenizer=char --set train.steps=0
    --set optimizer.lr=0.02 --set optimizer.name=adam --batch 16 --shards 2 --quiet --json)
train_text() { # OUT SETTING...: a training; its answer on stdout
    local out=$1 sets=()
    shift
    for setting; do sets+=(--set "$setting"); done
    "$STINT" train --data text.txt --out "$out" "${settings[@]}" "${sets[@]}" 2>"$out.err"
}
field() { # NAME: of the JSON object on stdin
    python3 -c 'import json, sys; print(json.loads(sys.stdin.readlines()[-1])[sys.argv[1]])' "$1"
}

# What is held out is not trained on: weights are those of a text whose training part ends
# there. (9/10 of 4/5, and one minus that.)
one=$(train_text held train.epochs=2 train.validation=0.2 | field weights_sha256)
[ ${#one} = 64 ] || fail "no weights: $(cat held.err)"
[ "$one" = "$(train_text cut train.epochs=2 data.validation=0.28 | field weights_sha256)" ] ||
    fail "with tokens held out: other weights than without these tokens"
[ "$one" != "$(train_text all train.epochs=2 | field weights_sha256)" ] ||
    fail "tokens held out change nothing"

# The chosen epoch is that of the lowest loss, and the loss that of its model on a text that
# is what was held out.
train_text best train.epochs=6 train.validation=0.2 train.select=loss optimizer.lr=0.3 schedule.name=constant optimizer.clip=0 >best.json ||
    fail "select: $(cat best.err)"
python3 - <<'PY' || fail "the epoch chosen"
import json
end = json.loads(open("best.json").readlines()[-1])
epochs = [json.loads(line) for line in open("best/log.jsonl")]
loss = [e["validation_loss"] for e in epochs if e.get("event") == "epoch"]
assert len(loss) == 6 and min(loss) != loss[-1], loss
assert end["validation_loss"] == min(loss) == loss[end["chosen_epoch"] - 1], (end, loss)
assert end["validation_accuracy"] is None
text = open("text.txt").read()
rest = len(text) - int(len(text) * 0.1)
open("held.txt", "w").write(text[rest - int(rest * 0.2):rest])
PY
loss=$("$STINT" eval best --data held.txt --split all --json | field loss)
python3 -c 'import json, sys
want = json.loads(open("best.json").readlines()[-1])["validation_loss"]
sys.exit(abs(float(sys.argv[1]) - want) > 1e-6 * want)' "$loss" ||
    fail "loss of the held-out text: $loss"

# Threads, ranks' lanes and an interruption change nothing of the choice.
sha=$(field weights_sha256 <best.json)
[ "$sha" = "$(train_text again train.epochs=6 train.validation=0.2 train.select=loss \
    optimizer.lr=0.3 schedule.name=constant optimizer.clip=0 run.threads=1 | field weights_sha256)" ] || fail "one thread chooses otherwise"
rm "$(ls best/checkpoints/*.safetensors | tail -1)"
"$STINT" train --data text.txt --out best "${settings[@]}" --set train.epochs=6 \
    --set train.validation=0.2 --set train.select=loss --set optimizer.lr=0.3 --set schedule.name=constant \
    --set optimizer.clip=0 --resume \
    >resumed.json 2>resumed.err
[ "$sha" = "$(field weights_sha256 <resumed.json)" ] || fail "resumed: $(cat resumed.err)"

train_text bored train.epochs=60 train.validation=0.2 train.select=loss train.patience=2 \
    optimizer.lr=0.3 schedule.name=constant optimizer.clip=0 >bored.json || fail "patience: $(cat bored.err)"
python3 - <<'PY' || fail "patience"
import json
log = [json.loads(line) for line in open("bored/log.jsonl")]
loss = [e["validation_loss"] for e in log if e.get("event") == "epoch"]
assert len(loss) < 60 and min(loss[:-2]) < min(loss[-2:]), loss
PY

# The noise of a text's gradients is measured where batches grow by it, of pruned ones, too.
for sparsity in 0 0.5; do
    train_text noisy train.epochs=2 grow.by=noise prune.sparsity=$sparsity >noisy.json ||
        fail "noise: $(cat noisy.err)"
    python3 -c 'import json, sys
sys.exit(not json.loads(open("noisy.json").readlines()[-1])["noise_scale"] > 0)' ||
        fail "no scale of noise at sparsity $sparsity"
    rm -r noisy
done

# Refused, each by its sentence.
train_text no train.epochs=1 train.validation=0.2 train.select=accuracy && fail "accuracy of text"
grep -q "train.select: accuracy and mismatch count classes" no.err || fail "$(cat no.err)"
train_text no train.epochs=1 train.validation=0.00001 && fail "less than a token held out"
grep -q "train.validation: 0 of the" no.err || fail "$(cat no.err)"
finish
