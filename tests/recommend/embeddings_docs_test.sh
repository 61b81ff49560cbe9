#!/bin/bash
# The commands of docs/embeddings.md, as they stand there, with the recipe that it shows.
set -euo pipefail
page=$STINT_SOURCE/docs/embeddings.md
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/bin"
ln -s "$STINT" "$dir/bin/stint"
export PATH=$dir/bin:$PATH XDG_CACHE_HOME=$dir/cache
cd "$dir"
sed -n '/^with `clicks.ini`/,/^`recipes/p' "$page" | sed -n 's/^    //p' >clicks.ini
sed -n '/<!-- embeddings example -->/,/<!-- end -->/p' "$page" | sed -n 's/^    //p' >commands
[ "$(wc -l <commands)" -ge 8 ]
if grep -q __asan_init "$STINT"; then # budgets are of a process without a sanitizer
    sed -i 's/--memory 19M//' commands
fi
unset STINT_SOURCE STINT_BUILD
while read -r line; do
    echo "$line"
    $line >out.txt 2>err.txt || { cat out.txt err.txt; exit 1; }
done <commands
grep -q 'svg' curve.svg
[ -s scores.npy ] && [ -s embeddings.safetensors ] && [ -s runs/clicks/report.html ]
# The example learns: the hidden model's own AUC is 0.816, and a dead one's is 0.5.
stint eval runs/clicks --data clicks.csv --json >eval.json
/usr/bin/python3 -c 'import json; j = json.load(open("eval.json")); assert j["auc"] > 0.65, j'
