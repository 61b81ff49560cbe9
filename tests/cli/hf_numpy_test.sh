# Folders in Hugging Face's layout, in and out, against a forward pass in numpy.
. "$(dirname "$0")/cli_lib.sh"
python=${PYTHON:-/usr/bin/python3}
"$python" -c "import numpy" 2>/dev/null || { echo "skipped: $python has no numpy"; exit 77; }
grep -q '^STINT_SANITIZE:STRING=.' "$STINT_BUILD/CMakeCache.txt" &&
    { echo "skipped: Python cannot load a library with sanitizers"; exit 77; }
cmake --build "$STINT_BUILD" --target stint_shared >"$work/log" 2>&1 ||
    fail "no library: $(tail -3 "$work/log")"
PYTHONDONTWRITEBYTECODE=1 "$python" "$(dirname "$0")/hf_numpy.py" "$work" "$STINT" \
    "$STINT_BUILD/libstint.so" || fail "see above"
finish
