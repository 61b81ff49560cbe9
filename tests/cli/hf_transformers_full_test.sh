# The same against the package `transformers`, where there is one: set HF_PYTHON to a
# Python that has it and torch.
. "$(dirname "$0")/cli_lib.sh"
python=${HF_PYTHON:-python3}
"$python" -c 'import torch, transformers' 2>/dev/null ||
    { echo "skipped: $python has no transformers"; exit 77; }
grep -q '^STINT_SANITIZE:STRING=.' "$STINT_BUILD/CMakeCache.txt" &&
    { echo "skipped: Python cannot load a library with sanitizers"; exit 77; }
cmake --build "$STINT_BUILD" --target stint_shared >"$work/log" 2>&1 ||
    fail "no library: $(tail -3 "$work/log")"
PYTHONDONTWRITEBYTECODE=1 "$python" "$(dirname "$0")/hf_transformers.py" "$work" \
    "$STINT" "$STINT_BUILD/libstint.so" || fail "see above"
finish
