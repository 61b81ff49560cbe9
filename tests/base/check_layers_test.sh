#!/bin/bash
# The house is in order, and a house that is not is told with file and line.
set -u
source=${STINT_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
check="$source/scripts/check_layers.py"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0

# expect STATUS WORDS: the check of $tree ends so and says so
expect() {
    local out status
    out=$(python3 "$check" "$tree" 2>&1)
    status=$?
    if [ $status -ne "$1" ] || ! grep -qF -- "$2" <<<"$out"; then
        echo "wanted status $1 and '$2', got $status and: $out"
        bad=1
    fi
}

python3 "$check" "$source" || bad=1

# The table of rooms in docs/architecture.md has each room and each family of kernels.
page="$source/docs/architecture.md"
for folder in "$source"/src/*/; do
    grep -qF "| \`$(basename "$folder")/\` |" "$page" || { echo "$page: no row for $folder"; bad=1; }
done
for folder in "$source"/src/kernel/*/; do
    grep -F '| `kernel/` |' "$page" | grep -qF "\`$(basename "$folder")\`" ||
        { echo "$page: the row of kernel/ has no $folder"; bad=1; }
done

mkdir -p "$tree/src/base" "$tree/src/graph" "$tree/src/data" "$tree/include/stint"
printf '#include "base/a.h"\n#include <stdio.h>\n' >"$tree/src/graph/g.c"
printf '#include <ini.h>\n' >"$tree/src/base/a.h"
printf '#include "stint/status.h"\n' >"$tree/src/base/a.c"
touch "$tree/include/stint/status.h"
expect 0 "layers: 4 files"

printf '\n  #  include "graph/g.h"\n' >"$tree/src/base/up.c"
expect 1 'src/base/up.c:2: base may not use graph: "graph/g.h"'
printf '#include <stint/graph.h>\n' >"$tree/src/base/up.c"
expect 1 'src/base/up.c:1: base may not use graph'
printf '#include "stint/secret.h"\n' >"$tree/src/base/up.c"
expect 1 'src/base/up.c:1: "stint/secret.h" is of no known room'
printf '#include "nowhere/x.h"\n' >"$tree/src/base/up.c"
expect 1 'src/base/up.c:1: "nowhere/x.h" is of no known room'
printf '#include "a.h"\n' >"$tree/src/base/up.c"
expect 1 'src/base/up.c:1: "a.h" is named without its room'
rm "$tree/src/base/up.c"
printf '#include "graph/g.h"\n' >"$tree/src/data/d.c"
expect 1 'src/data/d.c:1: data may not use graph'
rm "$tree/src/data/d.c"
touch "$tree/src/data/a.c"
expect 1 'src/data/a.c: the name is taken by src/base/a.c'
rm "$tree/src/data/a.c"
printf '#include "base/a3.h"\n' >"$tree/src/base/a2.h"
printf '#include "base/a2.h"\n' >"$tree/src/base/a3.h"
expect 1 'a circle of #include: src/base/a2.h -> src/base/a3.h -> src/base/a2.h'
printf '#include <math.h>\n' >"$tree/src/base/a3.h"
expect 0 "layers: 6 files"
rm "$tree/src/base/a2.h" "$tree/src/base/a3.h"
touch "$tree/include/stint/odd.h"
expect 1 'include/stint/odd.h: is of no known room'
rm "$tree/include/stint/odd.h"
printf '#include "base/a.h"\n#include "recipe_sections.h"\n' >"$tree/src/recipe_sections.c"
printf 'STI_SECTION(tea)\n' >"$tree/src/recipe_sections.h"
printf '#include "graph/tea_section.h"\n' >"$tree/src/graph/tea_section.c"
touch "$tree/src/graph/tea_section.h" "$tree/src/graph/own.h"
mkdir "$tree/src/train"
touch "$tree/src/train/oven.h"
expect 0 "layers: "
printf '#include "graph/own.h"\n#include "data/d.h"\n' >>"$tree/src/graph/tea_section.c"
printf '#include "base/a.h"\n#include "graph/tea_section.h"\n' >"$tree/src/train/cake_section.c"
echo 'STI_SECTION(cake)' >>"$tree/src/recipe_sections.h"
expect 1 'src/graph/tea_section.c:3: graph may not use data: "data/d.h"'
printf '#include "graph/tea_section.h"\n' >"$tree/src/graph/tea_section.c"
expect 0 "layers: "
printf '#include "train/oven.h"\n#include "graph/own.h"\n' >>"$tree/src/train/cake_section.c"
expect 1 'src/train/cake_section.c:4: a section of a recipe may not use graph: "graph/own.h"'
rm "$tree/src/train/cake_section.c"
expect 1 'src/recipe_sections.h: cake has no file ROOM/cake_section.c'
echo 'STI_SECTION(tea)' >"$tree/src/recipe_sections.h"
printf '#include "base/a.h"\n' >"$tree/src/train/bread_section.c"
expect 1 'src/train/bread_section.c: has no line in src/recipe_sections.h'
rm "$tree/src/train/bread_section.c"
printf '#include "recipe_sections.h"\n' >"$tree/src/train/t.c"
expect 1 'src/train/t.c:1: "recipe_sections.h" is for src/recipe_sections.c alone'
rm "$tree/src/train/t.c"
echo '#include "graph/tea_section.h"' >>"$tree/src/recipe_sections.c"
expect 1 'src/recipe_sections.c:3: the table may use base alone: "graph/tea_section.h"'
rm "$tree"/src/recipe_sections.*
mkdir "$tree/src/cellar"
expect 1 'src/cellar: is no known room'
exit $bad
