#!/bin/bash
# Files of a room that need each other in a circle are told with the symbols that tie them;
# an order of files, and what two rooms share, passes.
set -u
source=${STINT_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
check="$source/scripts/check_circles.py"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0
objects="$tree/src/CMakeFiles"

# compile ROOM/FILE.c CODE: its object file where CMake would put it
compile() {
    local object="$objects/stint_${1%%/*}.dir/$1.o"
    mkdir -p "$(dirname "$object")"
    printf '%s\n' "$2" | "${CC:-cc}" -fPIC -x c -c -o "$object" - || bad=1
}

# expect STATUS WORDS...: the check of $tree ends so and says each of the words
expect() {
    local out status wanted=$1
    shift
    out=$(python3 "$check" "$tree" 2>&1)
    status=$?
    [ $status -eq "$wanted" ] || { echo "wanted status $wanted, got $status and: $out"; bad=1; }
    for words; do
        grep -qxF -- "$words" <<<"$out" || { echo "wanted '$words' in: $out"; bad=1; }
    done
}

expect 1 "$tree: no object files in src/CMakeFiles/stint_ROOM.dir; build it first"

compile kernel/low/low.c 'static int own(void) { return 1; } int low(void) { return own(); }'
compile kernel/mid/mid.c 'int low(void); int mid(void) { return low(); }'
compile kernel/top/top.c 'int low(void), mid(void); int top(void) { return low() + mid(); }'
compile op/op.c 'int top(void), puts(const char *); int op(void) { return top() + puts(""); }'
expect 0 "circles: none between 4 files of 2 rooms"

# A circle through two families of kernels, and a file that hangs on it without being in it.
compile kernel/low/low.c 'int top(void); int low(void) { return top(); }'
compile kernel/low/hanger.c 'int top(void); int hanger(void) { return top(); }'
expect 1 "kernel: a circle of 3 files: kernel/low/low.c kernel/mid/mid.c kernel/top/top.c" \
    "  kernel/low/low.c uses top of kernel/top/top.c" \
    "  kernel/top/top.c uses low of kernel/low/low.c"

# Data ties as functions do: a table of rows, and a row that asks the table's file.
compile kernel/low/low.c 'int low(void) { return 1; }'
compile op/row.c 'int count(void); const struct { int (*call)(void); } row = {count};'
compile op/table.c 'extern const int row; const void *const rows[] = {&row}; int count(void) { return 1; }'
expect 1 "op: a circle of 2 files: op/row.c op/table.c" "  op/row.c uses count of op/table.c" \
    "  op/table.c uses row of op/row.c"

# The table of recipe sections is handed to base on purpose.
compile base/recipe.c 'extern const void *const sections[]; int recipe(void) { return sections[0] != 0; }'
compile base/a_section.c 'int recipe(void); int section(void) { return recipe(); }'
compile base/recipe_sections.c 'int section(void); const void *const sections[] = {section};'
rm "$objects/stint_op.dir/op/row.c.o"
expect 0 "circles: none between 8 files of 3 rooms"
rm -r "$objects/stint_base.dir"

# Over the border of a room it is no matter of this check (the layers forbid it).
compile kernel/low/low.c 'int count(void); int low(void) { return count(); }'
expect 0 "circles: none between 6 files of 2 rooms"
exit $bad
