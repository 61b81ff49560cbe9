# The commands of docs/shrink.md, run in their order in an empty folder.
. "$(dirname "$0")/cli_lib.sh"
mkdir "$work/place" && cd "$work/place" || exit 1
mkdir "$work/bin" && ln -s "$STINT" "$work/bin/stint"
PATH=$work/bin:$PATH

awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$STINT_SOURCE/docs/shrink.md" >commands
[ "$(wc -l <commands)" -gt 15 ] || fail "few commands found in shrink.md"
{ echo 'set -e'; cat commands; } >script
# In quick tests with half of the letters.
full || sed -i 's/--train 3600 --test 720/--train 1800 --test 360/' script
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
[ "$(stat -c %s runs/small/model.safetensors)" -le 12288 ] || fail "more than 12 KiB"
for run in small good; do
    [ -s "runs/$run/shrink.html" ] || fail "runs/$run/shrink.html is missing"
done
says out "times smaller than float32"
"$STINT" diff runs/small/model.safetensors dense.safetensors >/dev/null || fail "dense is another"
finish
