# The noise laboratory on a text: a control without noise, seeds that change next tokens,
# figures that stint compare of two of the runs gives, too, and runs that are kept.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
words "the cat sat on a mat and saw" 800 >text.txt
cat >tiny.ini <<'INI'
[model]
name = gpt
width = 16
depth = 1
heads = 2
context = 16
[data]
tokenizer = char
[optimizer]
name = adam
lr = 0.01
[train]
steps = 30
batch = 8
shards = 4
INI
noise() {
    run 0 trust noise tiny.ini --data text.txt --out lab --runs 2 --json --quiet
}
noise
json_ok
json "j['control_zero'] and j['made'] == 8"
json "[a['varies'] for a in j['arms']] == ['ALGO+IMPL', 'ALGO', 'IMPL', 'CONTROL']"
json "j['arms'][1]['churn'] > 0.05 and j['arms'][3]['churn'] == 0"
json "len(j['arms'][0]['per_class']) == 13 and any(c['name'] == 't' for c in j['arms'][0]['per_class'])"
cp out noise.json
run 0 compare lab/algo-01 lab/algo-02 --data text.txt --json
python3 - <<'PY' || fail "churn is not the share of other next tokens"
import json
arm = json.load(open("noise.json"))["arms"][1]
pair = json.load(open("out"))
assert abs(arm["churn"] - pair["mismatch_rate"]) < 1e-12, (arm["churn"], pair["mismatch_rate"])
got, want = arm["accuracies"], [pair["reference_accuracy"], pair["new_accuracy"]]
assert all(abs(a - b) < 1e-12 for a, b in zip(got, want)), (got, want)
PY
noise
json "j['made'] == 0 and j['kept'] == 8"
printf 'ab' >short.txt
run 4 trust noise tiny.ini --data short.txt --out other --runs 2 --set model.context=1
says err 'its test part has no two tokens'
finish
