#!/bin/bash
# 200 losses of each rule for rows against PyTorch from the same first weights.
set -euo pipefail
/usr/bin/python3 -c 'import importlib.util as u; u.find_spec("torch") or exit(1)' || { echo "no PyTorch"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
cd "$dir"
"$STINT" data clicks --out c.csv --rows 4000 --fields 400,60,9 --bags 3 --seed 5 -q >/dev/null
cat >r.ini <<'INI'
[model]
name = dlrm
width = 8
bottom = 16
top = 16,8
[data]
format = csv
bags = C1,C2,C3
[train]
batch = 64
steps = 200
order = file
[optimizer]
momentum = 0
lr = 0.05
[schedule]
name = constant
[run]
log_every = 1
[embedding]
# The first steps of adagrad and adam are signs of gradients, rounded ones of zero too:
# what keeps those small is a large epsilon.
epsilon = 0.01
INI
for rule in sgd adagrad rowwise-adagrad lazy-adam; do
    run=("$STINT" train r.ini --data c.csv -q --set embedding.optimizer=$rule)
    "${run[@]}" --out first-$rule --steps 1 --lr 1e-30 >/dev/null
    "${run[@]}" --out run-$rule >/dev/null
    "$STINT" export embeddings first-$rule --out first-$rule/rows.safetensors -q >/dev/null
done
# All in one process: torch takes two seconds to come in.
/usr/bin/python3 - "$STINT_SOURCE/tests/recommend/pytorch_dlrm.py" <<'PY'
import runpy, sys
program = sys.argv[1]
for rule in ("sgd", "adagrad", "rowwise-adagrad", "lazy-adam"):
    sys.argv = [program, "first-" + rule, "run-" + rule, "c.csv", rule, "64"]
    print(rule, end=": ", flush=True)
    try:
        runpy.run_path(program, run_name="__main__")
        sys.exit("no verdict")
    except SystemExit as end:
        if end.code != 0:
            raise
PY
