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
says out "0 of 10 tensors differ"
says out "Beyond chance"
grep -q "What changed" changed.html || fail "no page"
finish
