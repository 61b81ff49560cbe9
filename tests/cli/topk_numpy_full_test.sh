# stint topk on 10,000 random and adversarial arrays of every type, byte order, order of
# axes and kind of file, beside NumPy's stable sort.
. "$(dirname "$0")/cli_lib.sh"
export XDG_CACHE_HOME="$work/cache"
/usr/bin/python3 "$STINT_SOURCE/tests/cli/topk_numpy.py" "$STINT" "$work" 10000 1 ||
    fail "stint topk and NumPy's stable sort differ"
finish
