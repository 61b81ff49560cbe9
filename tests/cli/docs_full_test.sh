# The commands of docs/getting-started.md, run in their order in an empty folder.
. "$(dirname "$0")/cli_lib.sh"
mkdir "$work/place" && cd "$work/place" || exit 1
ln -s "$STINT_SOURCE/recipes" recipes
mkdir "$work/bin" && ln -s "$STINT" "$work/bin/stint"
PATH=$work/bin:$PATH

awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' \
    "$STINT_SOURCE/docs/getting-started.md" >commands
[ "$(wc -l <commands)" -gt 20 ] || fail "few commands found in getting-started.md"
{ echo 'set -e'; cat commands; } >script
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
says out "images of 32 x 32"
says err "what fits"
grep -q '</svg>' plan.svg || fail "no plan.svg"
for run in letters stopped short glyphs-resnet8 abc; do
    for file in model.safetensors log.jsonl recipe.ini report.html; do
        [ -s "runs/$run/$file" ] || fail "runs/$run/$file is missing"
    done
done
python3 - <<'PY' || fail "what came out"
import json
end = [json.loads(line) for line in open("runs/letters/log.jsonl")][-1]
assert end["test_accuracy"] >= 0.95, end["test_accuracy"]
assert end["peak_rss_bytes"] <= 60 << 20, end["peak_rss_bytes"]
assert json.load(open("short.json"))["steps"] == 20
sevens = json.load(open("sevens.json"))["predictions"]
assert len(sevens) == 10 and sum(p["classes"][0]["class"] == "7" for p in sevens) >= 7
PY
finish
