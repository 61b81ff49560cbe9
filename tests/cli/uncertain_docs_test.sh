# The commands of docs/uncertainty.md, run in their order in an empty folder.
. "$(dirname "$0")/cli_lib.sh"
mkdir "$work/place" "$work/bin" && cd "$work/place" || exit 1
ln -s "$STINT" "$work/bin/stint"
PATH=$work/bin:$PATH
export XDG_CACHE_HOME=$work/cache
page=$STINT_SOURCE/docs/uncertainty.md
{
    echo 'set -e'
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$page"
} >script
[ "$(wc -l <script)" -gt 10 ] || fail "few commands found"
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
says out "20 networks: entropy"
says out "260 strangers: entropy"
says out "weights: deviations 5 % below"
says out "of it from the weights"
grep -q "How sure the answers are" sure.html || fail "no page"
cp ensemble.json "$work/out"
json 'j["networks"] == 2 and j["samples"] == 0 and j["ood_count"] == 260'
# Strangers are seen, and disagreement is what they differ in most.
json 'j["ood_auroc"] > 0.6 and j["ood_mutual_information"] > j["mutual_information"]'
finish
