# `cmake --install` into a DESTDIR; a small program builds against the result with
# pkg-config (shared and static) and with find_package(Stint), and runs.
. "$(dirname "$0")/cli_lib.sh"
if ! grep -q '^STINT_SANITIZE:.*=$' "$STINT_BUILD/CMakeCache.txt"; then
    echo "a build with sanitizers: skipped" && exit 77
fi
cmake --build "$STINT_BUILD" --target stint stint_shared stint_static stint_docs \
    >"$work/log" 2>&1 || fail "does not build: $(tail -5 "$work/log")"
dest=$work/dest
DESTDIR=$dest cmake --install "$STINT_BUILD" >"$work/log" 2>&1 || fail "$(tail -5 "$work/log")"
prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:[A-Z]*=//p' "$STINT_BUILD/CMakeCache.txt")
root=$dest$prefix
pc=$(find "$dest" -name stint.pc)
lib=$(dirname "$(dirname "$pc")")
for file in bin/stint share/man/man1/stint.1 share/man/man1/stint-train.1 \
    share/bash-completion/completions/stint include/stint/stint.h include/stint/version.h \
    share/stint/recipes/cifar10-resnet20.ini; do
    [ -f "$root/$file" ] || fail "$file is not installed"
done
"$root/bin/stint" --version >/dev/null || fail "the installed program does not run"

cat >"$work/use.c" <<'C'
#include <stdio.h>
#include <string.h>
#include "stint/stint.h"

int main(void)
{
    stint_graph *graph = NULL;
    stint_shape shape = STINT_SHAPE(2, 32, 32, 3);
    if (strcmp(stint_version(), STINT_VERSION) != 0 ||
        stint_graph_create(STINT_TRAIN, &graph) != STINT_OK)
        return 1;
    stint_value images = stint_input(graph, "images", &shape);
    stint_value logits = stint_model_build(graph, "resnet20",
                                           &(stint_model_desc){.classes = 10}, images);
    if (stint_graph_check(graph) != STINT_OK)
        return printf("%s\n", stint_last_error()), 1;
    printf("%d\n", (int)stint_value_shape(graph, logits).dim[1]);
    stint_graph_destroy(graph);
    return 0;
}
C
export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dest
[ "$(pkg-config --modversion stint)" = "$("$STINT" --version --json | sed 's/.*"version": *"\([^"]*\)".*/\1/')" ] ||
    fail "stint.pc gives another version"
cc -std=c11 "$work/use.c" -o "$work/shared" $(pkg-config --cflags --libs stint) ||
    fail "no build with pkg-config"
[ "$(LD_LIBRARY_PATH=$lib "$work/shared")" = 10 ] || fail "wrong answer (shared)"
unset PKG_CONFIG_SYSROOT_DIR
libs=$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --libs --static stint | sed "s|-L$prefix|-L$root|g; s|-lstint|$lib/libstint.a|")
cc -std=c11 "$work/use.c" -o "$work/static" -I"$root/include" $libs || fail "no static build"
[ "$("$work/static")" = 10 ] || fail "wrong answer (static)"

mkdir "$work/package"
cat >"$work/package/CMakeLists.txt" <<'C'
cmake_minimum_required(VERSION 3.22)
project(use C)
find_package(Stint 0.1 REQUIRED)
add_executable(use ../use.c)
target_link_libraries(use Stint::stint)
add_executable(use_static ../use.c)
target_link_libraries(use_static Stint::stint_static)
C
unset PKG_CONFIG_PATH
# With the build program that this build has: CMake's usual one need not be there.
generator=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$STINT_BUILD/CMakeCache.txt")
{ cmake -G "$generator" -S "$work/package" -B "$work/package/build" -DCMAKE_PREFIX_PATH="$root" &&
    cmake --build "$work/package/build"; } >"$work/log" 2>&1 || fail "find_package: $(tail -8 "$work/log")"
[ "$(LD_LIBRARY_PATH=$lib "$work/package/build/use")" = 10 ] || fail "wrong answer (CMake)"
[ "$("$work/package/build/use_static")" = 10 ] || fail "wrong answer (CMake, static)"
finish
