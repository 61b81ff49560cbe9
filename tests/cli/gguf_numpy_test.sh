# GGUF files in every type of numbers, in and out, against numpy; what is refused; and the
# commands of docs/gguf.md.
. "$(dirname "$0")/cli_lib.sh"
python=${PYTHON:-/usr/bin/python3}
"$python" -c "import numpy" 2>/dev/null || { echo "skipped: $python has no numpy"; exit 77; }
grep -q '^STINT_SANITIZE:STRING=.' "$STINT_BUILD/CMakeCache.txt" &&
    { echo "skipped: Python cannot load a library with sanitizers"; exit 77; }
cmake --build "$STINT_BUILD" --target stint_shared >"$work/log" 2>&1 ||
    fail "no library: $(tail -3 "$work/log")"
PYTHONDONTWRITEBYTECODE=1 "$python" "$(dirname "$0")/gguf_numpy.py" "$work" "$STINT" \
    "$STINT_BUILD/libstint.so" || fail "see above"

mkdir "$work/place" "$work/bin" && ln -s "$STINT" "$work/bin/stint"
awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$STINT_SOURCE/docs/gguf.md" \
    >"$work/commands"
[ "$(wc -l <"$work/commands")" -ge 6 ] || fail "few commands found in gguf.md"
{ echo 'set -e'; cat "$work/commands"; } >"$work/script"
(cd "$work/place" && PATH=$work/bin:$PATH bash "$work/script") >"$work/out" 2>"$work/err" ||
    fail "docs/gguf.md: $(tail -5 "$work/err")"
says out "0 of 17 tensors differ"
finish
