# The commands of docs/memory.md, run in their order in an empty folder.
. "$(dirname "$0")/cli_lib.sh"
mkdir "$work/place" && cd "$work/place" || exit 1
ln -s "$STINT_SOURCE/recipes" recipes
mkdir "$work/bin" && ln -s "$STINT" "$work/bin/stint"
PATH=$work/bin:$PATH

awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$STINT_SOURCE/docs/memory.md" >commands
[ "$(wc -l <commands)" -gt 6 ] || fail "few commands found in memory.md"
{ echo 'set -e'; cat commands; } >script
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
says out "recomputed"
says out "The least this recipe runs in"
says err "what fits"
for picture in before after; do
    grep -q '</svg>' $picture.svg || fail "no $picture.svg"
done
python3 - <<'PY' || fail "what came out"
import json
free, tight = json.load(open("free.json")), json.load(open("tight.json"))
assert free["weights_sha256"] == tight["weights_sha256"]
assert tight["peak_rss_bytes"] <= 54 << 20 < free["peak_rss_bytes"]
PY
finish
