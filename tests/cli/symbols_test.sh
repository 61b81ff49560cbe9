# The shared library exports only stint_*, and stays; the static one has only stint_* and sti_*.
. "$(dirname "$0")/cli_lib.sh"
if ! grep -q '^STINT_SANITIZE:.*=$' "$STINT_BUILD/CMakeCache.txt"; then
    echo "a build with sanitizers: skipped" && exit 77
fi
cmake --build "$STINT_BUILD" --target stint_shared stint_static >"$work/log" 2>&1 ||
    fail "the libraries do not build: $(tail -5 "$work/log")"
nm -D --defined-only "$STINT_BUILD/libstint.so" | awk '{ print $NF }' |
    grep -v '^stint_' | grep -vx '_init\|_fini' >"$work/odd"
[ ! -s "$work/odd" ] || fail "libstint.so exports $(tr '\n' ' ' <"$work/odd")"
nm -g --defined-only "$STINT_BUILD/libstint.a" 2>/dev/null | awk 'NF == 3 { print $3 }' |
    grep -v '^stint_\|^sti_' | sort -u >"$work/odd"
[ ! -s "$work/odd" ] || fail "libstint.a has $(tr '\n' ' ' <"$work/odd")"
count=$(nm -D --defined-only "$STINT_BUILD/libstint.so" | grep -c ' stint_')
[ "$count" -gt 50 ] || fail "only $count exported functions"

# Threads wait in it, and so it must stay when a host closes it.
readelf -d "$STINT_BUILD/libstint.so" | grep -q NODELETE || fail "libstint.so can be unloaded"

# What the headers declare is there.
cat "$STINT_SOURCE"/include/stint/*.h | tr '\n' ' ' |
    grep -o 'STINT_API [^;(]*\bstint_[a-z0-9_]*(' | grep -o 'stint_[a-z0-9_]*($' |
    tr -d '(' | sort -u >"$work/declared"
nm -D --defined-only "$STINT_BUILD/libstint.so" | awk '{ print $NF }' | sort -u >"$work/there"
missing=$(comm -23 "$work/declared" "$work/there" | tr '\n' ' ')
[ -z "$missing" ] || fail "declared but not exported: $missing"
finish
