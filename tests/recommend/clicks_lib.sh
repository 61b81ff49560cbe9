# Sourced by scripts here: a folder of its own, 12,000 clicks with bags in c.csv, a model of
# them in r.ini that learns, and what reads an answer.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
unset STINT_SOURCE STINT_BUILD
cd "$dir"
"$STINT" data clicks --out c.csv --rows 12000 --fields 3000,900,200 --bags 2 --seed 3 -q \
    >/dev/null
cat >r.ini <<'INI'
[model]
name = dlrm
width = 12
bottom = 16
top = 16
[data]
format = csv
bags = C1,C2,C3
[train]
batch = 96
steps = 160
shards = 4
[optimizer]
lr = 0.005
[embedding]
optimizer = lazy-adam
hot = 0.3
[run]
checkpoint_every = 20
keep = 2
INI
field() { /usr/bin/python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }
fail() { echo "$*" >&2; exit 1; }
