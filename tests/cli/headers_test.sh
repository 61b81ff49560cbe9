# Every public header compiles alone, as C and as C++, without a warning.
. "$(dirname "$0")/cli_lib.sh"
flags=(-I"$STINT_SOURCE/include" -I"$STINT_BUILD/include" -Wall -Wextra -Wpedantic -Werror
    -fsyntax-only)
for header in "$STINT_SOURCE"/include/stint/*.h "$STINT_BUILD"/include/stint/version.h; do
    name=$(basename "$header")
    printf '#include "stint/%s"\nint here;\n' "$name" >"$work/one.c"
    cp "$work/one.c" "$work/one.cpp"
    for standard in c11 c17; do
        ${CC:-cc} -std=$standard "${flags[@]}" "$work/one.c" || fail "$name as $standard"
    done
    if command -v "${CXX:-c++}" >/dev/null; then
        ${CXX:-c++} -std=c++17 "${flags[@]}" "$work/one.cpp" || fail "$name as C++"
    fi
    [ "$name" = stint.h ] || [ "$name" = version.h ] ||
        grep -q "stint/$name" "$STINT_SOURCE/include/stint/stint.h" ||
        fail "stint.h does not include $name"
done
grep -q "stint/version.h" "$STINT_SOURCE/include/stint/stint.h" || fail "no version.h"
finish
