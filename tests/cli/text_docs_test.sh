# The commands of docs/text.md, run in their order in an empty folder.
. "$(dirname "$0")/cli_lib.sh"
# (A sanitizer's own memory does not fit the example's budget.)
grep -q '^STINT_SANITIZE:.*=$' "$STINT_BUILD/CMakeCache.txt" || exit 77
mkdir "$work/place" "$work/bin" && cd "$work/place" || exit 1
ln -s "$STINT" "$work/bin/stint"
PATH=$work/bin:$PATH
export XDG_CACHE_HOME=$work/cache
{
    echo 'set -e'
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$STINT_SOURCE/docs/text.md"
} >script
[ "$(wc -l <script)" -gt 6 ] || fail "few commands found in text.md"
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
[ "$(grep -c '^tokens ' "$work/out")" -eq 5 ] || fail "five counts of tokens wanted"
grep -q '^test loss .* nats a token' "$work/out" || fail "no test loss"
grep -q '"bits_per_byte":' "$work/out" || fail "no bits a byte"
grep -q '^gpt, .* text$' "$work/out" || fail "no text model"
[ -s words.npy ] && [ -s gpt2/merges.txt ] || fail "files are missing"
finish
