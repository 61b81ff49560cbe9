# The commands of docs/trust.md, run in their order in an empty folder.
. "$(dirname "$0")/cli_lib.sh"
mkdir "$work/place" "$work/bin" && cd "$work/place" || exit 1
ln -s "$STINT" "$work/bin/stint"
PATH=$work/bin:$PATH
{
    echo 'set -e'
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$STINT_SOURCE/docs/trust.md"
} >script
[ "$(wc -l <script)" -gt 12 ] || fail "few commands found in trust.md"
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
says out "1 value in "
says out "2 values in "
says out "0 of 10 tensors differ"
says out "CONTROL         3"
grep -q "How much is luck" noise/noise.html || fail "no page of noise"
says out "Beyond chance"
says out "memorised training inputs"
grep -q "What was memorised" memory/memory.html || fail "no page of memorised images"
grep -q "What changed" changed.html || fail "no page"
finish
