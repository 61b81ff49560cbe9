# The commands of docs/text.md, run in their order in an empty folder.
. "$(dirname "$0")/cli_lib.sh"
mkdir "$work/place" "$work/bin" && cd "$work/place" || exit 1
ln -s "$STINT" "$work/bin/stint"
PATH=$work/bin:$PATH
{
    echo 'set -e'
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$STINT_SOURCE/docs/text.md"
} >script
[ "$(wc -l <script)" -gt 6 ] || fail "few commands found in text.md"
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
[ "$(grep -c '^tokens ' "$work/out")" -eq 5 ] || fail "five counts of tokens wanted"
[ -s words.npy ] && [ -s gpt2/merges.txt ] || fail "files are missing"
finish
