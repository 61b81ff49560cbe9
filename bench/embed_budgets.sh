#!/bin/bash
# Trainings of clicks within 20 budgets, from the smallest to one that holds all rows: is the
# peak of the kernel's figures below the budget, how far is the planned one above it, and are
# the weights the same?
#
#     bench/embed_budgets.sh [BUDGETS]        # 20: a minute
set -euo pipefail
cd "$(dirname "$0")/.."
stint=${STINT:-$PWD/build/release/stint} budgets=${1:-20}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
cd "$dir"
"$stint" data clicks --out c.csv --rows 40000 --fields 60000,20000,3000,100 --seed 3 -q >/dev/null
cat >r.ini <<'INI'
[model]
name = dlrm
width = 32
bottom = 32
top = 32
[data]
format = csv
[train]
batch = 128
steps = 120
shards = 4
[optimizer]
name = adam
lr = 0.003
[embedding]
optimizer = rowwise-adagrad
lr = 0.02
[run]
checkpoint_every = 50
INI
field() { /usr/bin/python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }
"$stint" plan r.ini --data c.csv --json -q >plan.json
least=$(field plan.json smallest_bytes) all=$(field plan.json peak_bytes) bad=0 want= worst=0
for ((k = 0; k < budgets; k++)); do
    budget=$((least + (all + all / 50 - least) * k / (budgets > 1 ? budgets - 1 : 1)))
    "$stint" train r.ini --data c.csv --out run --force --json -q --memory $budget >run.json
    peak=$(field run.json peak_rss_bytes) planned=$(field run.json planned_peak_bytes)
    sha=$(field run.json weights_sha256)
    want=${want:-$sha}
    over=$((planned * 1000 / peak - 1000))
    [ $over -le $worst ] || worst=$over
    [ "$peak" -le $budget ] && [ "$planned" -le $budget ] && [ "$sha" = "$want" ] || bad=$((bad + 1))
    echo "budget $budget  planned $planned  peak $peak ($((over / 10)).$((over % 10 < 0 ? -over % 10 : over % 10)) %)  rows $(field run.json cache_rows)  missed $(field run.json rows_missed)"
done
echo "$budgets budgets: $bad above it or with other weights; planned at most $((worst / 10)).$((worst % 10)) % above the peak"
exit $((bad > 0))
