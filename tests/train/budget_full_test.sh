# The budget is a promise: for each network 30 budgets from the least possible to a
# generous one. Measured peak within the budget every time, the plan within 3 % of it, a
# smaller budget never a higher peak, and the same weights as without any budget.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
nm "$STINT" 2>/dev/null | grep -q __asan_init && exit 77 # whose own memory is not planned
python3 "$STINT_SOURCE/tests/cli/cli_data.py" data 32 520 32 || fail "no data"

# recipe MODEL BATCH SHARDS [LINE-OF-MODEL...]
recipe() {
    {
        printf '[data]\npath = data\n[model]\nname = %s\n' "$1"
        [ $# -le 3 ] || printf '%s\n' "${@:4}"
        printf '[train]\nsteps = 2\nbatch = %s\nshards = %s\neval_every = 0\n' "$2" "$3"
        printf '[optimizer]\nlr = 0.01\n'
    } >"$1.ini"
}

value() { python3 -c 'import json, sys; print(json.load(open("out"))[sys.argv[1]])' "$1"; }

sweep() { # MODEL STEPS
    local model=$1 count=$2 sha last=0 budget
    run 0 plan "$model.ini" --json $exact
    python3 - "$count" >budgets <<'PY'
import json, sys
j, last = json.load(open("out")), int(sys.argv[1]) - 1
least, most = j["smallest_bytes"], j["peak_bytes"] * 1.1
for i in range(last + 1):
    print(int(least * (most / least) ** (i / last)))
PY
    run 0 train "$model.ini" --out run --json --quiet --force
    sha=$(value weights_sha256)
    while read -r budget; do
        rm -rf run
        run 0 train "$model.ini" --out run --json --quiet --memory "$budget" $exact
        last=$(python3 - "$model" "$budget" "$sha" "$last" <<'PY'
import json, sys
model, budget, sha, last = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
j = json.load(open("out"))
planned, peak = j["planned_peak_bytes"], j["peak_rss_bytes"]
print("%-9s budget %7.2f  planned %7.2f  measured %7.2f MiB  %+.2f %%" % (
    model, budget / 2**20, planned / 2**20, peak / 2**20, 100 * (planned - peak) / peak),
    file=sys.stderr)
bad = []
if peak > budget: bad.append("measured above the budget")
if planned > budget: bad.append("planned above the budget")
if abs(planned - peak) > 0.03 * peak: bad.append("plan off by more than 3 %")
if j["weights_sha256"] != sha: bad.append("other weights")
if planned < last: bad.append("a larger budget, a lower peak")
for b in bad: print("   ", b, file=sys.stderr)
print(planned)
sys.exit(bool(bad))
PY
        ) || fail "$model, budget $budget"
    done <budgets
    [ "$(wc -l <budgets)" -eq "$count" ] || fail "$model: no budgets"
}

exact="--error 0"
recipe resnet20 64 1
recipe vgg16 64 2 "width = 16"
recipe lenet5 256 4
for model in resnet20 vgg16 lenet5; do sweep $model "${BUDGETS:-30}"; done
finish
