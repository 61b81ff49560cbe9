# Two models of text side by side: figures against PyTorch in double, threads and batches
# that change nothing, a model beside itself, the page, and what is refused.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
words "the cat sat on a mat and saw" 4000 >text.txt
model() { # OUT SETTING...
    local out=$1 sets=()
    shift
    for setting; do sets+=(--set "$setting"); done
    run 0 train --data text.txt --out "$out" --set model.name=gpt --set model.width=16 \
        --set model.depth=1 --set model.context=24 --set data.tokenizer=char \
        --set train.steps=60 --set optimizer.lr=0.01 --batch 16 --quiet "${sets[@]}"
}
model a
model b model.depth=2 model.context=16 quantise.bits=3 train.steps=20
run 0 compare a b --data text.txt --json --page page.html
cp out answer.json
json_ok
if /usr/bin/python3 -c 'import importlib.util as u; u.find_spec("torch") or exit(1)'; then
    /usr/bin/python3 "$STINT_SOURCE/tests/trust/compare_text_oracle.py" "$STINT_SOURCE/bench" \
        a b text.txt answer.json || fail "PyTorch says otherwise"
fi
json "j['mismatch_rate'] > 0 and j['loss_low'] < j['loss_difference'] < j['loss_high']"
grep -q 'Where probabilities moved farthest' page.html || fail "no contexts on the page"
[ "$(grep -o 'token [0-9]*<' page.html | wc -l)" -eq 10 ] || fail "not ten contexts on the page"
for other in "-j 1" "--batch 16" "-j 2 --batch 4096"; do
    run 0 compare a b --data text.txt --json $other
    cmp -s out answer.json || fail "$other: other figures"
done
run 0 compare a b --data text.txt
says out 'other next tokens'
says out 'seen 100 to 999 times'
run 0 compare a a --data text.txt --split all --json
json "j['mismatch_rate'] == 0 and j['kl'] < 1e-9 and j['loss_difference'] == 0 and j['tokens'] > 9 * 1000"

# Refused.
run 2 compare a b --data text.txt --saliency 3
says err '--floor, --groups and --saliency are of models of images'
run 2 compare a b --data text.txt --memory a
model bytes data.tokenizer=byte
run 4 compare a bytes --data text.txt
says err 'tokenisers of their own'
printf x >short.txt
run 4 compare a b --data short.txt
finish
