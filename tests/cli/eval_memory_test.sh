# stint eval --memory: peaks within budgets and near their plans, from the least that does
# up, and the answers of an evaluation without one.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python3 "$STINT_SOURCE/tests/cli/cli_data.py" data 32 64 140 || fail "no data"
printf '[data]\npath = data\n[model]\nname = resnet18\nwidth = 16\n[train]\nbatch = 32\nshards = 2\n' >r.ini
printf 'steps = 1\neval_every = 0\n[optimizer]\nlr = 0.1\n' >>r.ini
run 0 train r.ini -o images -q
sed 's/resnet18/resnet20/' r.ini >c.ini
run 0 train c.ini -o many -q --set quantise.bits=4 --sparsity 0.8
run 0 export compact many --out compact.safetensors -q
words "the cat sat on a mat and saw the rat" 3000 >text.txt
cat >t.ini <<'INI'
[model]
name = gpt
depth = 2
width = 128
heads = 4
context = 64
[data]
path = text.txt
tokenizer = byte
[train]
steps = 1
batch = 4
shards = 1
eval_every = 0
[optimizer]
name = adamw
lr = 1e-3
INI
run 0 train t.ini -o text -q

# The same answers, and with a plan of its own the peak within it.
cat >check.py <<'PY'
import json, sys
plain, j, budget, planned = json.load(open(sys.argv[1])), json.load(open("out")), int(sys.argv[2]), sys.argv[3] == "1"
varies = {"planned_peak_bytes", "peak_rss_bytes", "images_per_s", "tokens_per_s"}
for key in plain.keys() | j.keys():
    assert key in varies or plain[key] == j[key], (key, plain.get(key), j.get(key))
if planned:
    plan, peak = j["planned_peak_bytes"], j["peak_rss_bytes"]
    assert peak <= plan <= budget, (peak, plan, budget)
    assert plan - peak <= max(2 << 20, 0.03 * peak), (peak, plan)
PY
planned=1
sanitized && planned=0

for model in images text compact.safetensors; do
    data=data split=test threads=2
    [ $model = compact.safetensors ] && threads=3
    [ $model = text ] && data=text.txt split=train
    evaluate="eval $model --data $data --split $split -j $threads"
    # shellcheck disable=SC2086 # several words
    run 0 $evaluate --json -q
    cp out plain.json
    python3 check.py plain.json 999999999999 $planned || fail "$model: the plan without a budget"
    # shellcheck disable=SC2086
    run 3 $evaluate --memory 2M
    says err "what fits"
    least=$(least_mib)
    [ -n "$least" ] || { fail "$model: no least" && break; }
    # shellcheck disable=SC2086
    run 3 $evaluate --memory $((least - (planned ? 1 : 5)))M
    most=$(python3 -c 'import json; print((json.load(open("plain.json"))["planned_peak_bytes"] >> 20) + 1)')
    [ "$most" -gt $((least + (planned ? 2 : 0))) ] || fail "$model: a budget makes no difference"
    for memory in $least $(((least + most) / 2)) "$most"; do
        # shellcheck disable=SC2086
        run 0 $evaluate --memory "${memory}M" --json -q
        python3 check.py plain.json $((memory << 20)) $planned || fail "$model within $memory MiB"
    done
    # shellcheck disable=SC2086
    run 0 $evaluate --memory "${least}M"
    says err "planned of"
    says err ", budget $least.0 MiB"
done

# ---- any number of threads
for batch in 0 7; do
    run 0 eval images --data data -j 1 --batch $batch --json -q
    cp out one.json
    run 0 eval images --data data -j 3 --batch $batch --json -q
    cp out three.json
    python3 -c '
import json
one, three = (json.load(open(n)) for n in ("one.json", "three.json"))
assert one["loss"] == three["loss"] and one["accuracy"] == three["accuracy"]' || fail "-j changes the loss of batches of $batch"
done

# ---- what is not planned for
run 8 eval images --data data --samples 2 --memory 900M
says err "several networks"
run 8 eval images --data data --ensemble images --memory 900M
run 2 eval images --data data --memory 10X
finish
