# The commands of docs/compact-models.md, run in their order in an empty folder.
. "$(dirname "$0")/cli_lib.sh"
mkdir "$work/place" && cd "$work/place" || exit 1
ln -s "$STINT_SOURCE/recipes" recipes
mkdir "$work/bin" && ln -s "$STINT" "$work/bin/stint"
export PATH=$work/bin:$PATH XDG_CACHE_HOME=$work/cache
awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' \
    "$STINT_SOURCE/docs/compact-models.md" >commands
[ "$(wc -l <commands)" -ge 7 ] || fail "few commands found in compact-models.md"
{ echo 'set -e'; cat commands; } >script
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
says out "0 of 47 tensors differ"
says out "the last takes"
[ "$(wc -l <"$work/cache/stint/latency.txt")" -eq 2 ] || fail "latencies are not kept"
[ "$(stat -c %s small.safetensors)" -lt "$(($(stat -c %s full.safetensors) / 8))" ] ||
    fail "the compact file is not small"
run 0 bench latency small.safetensors --rounds 5 -j 1 --json
json "j['models'][0]['kept_ms'] > 0 and j['ratio'] == 1 and len(j['models'][0]['layers']) > 10"
json "j['models'][0]['low_ms'] <= j['models'][0]['ms'] <= j['models'][0]['high_ms']"
finish
