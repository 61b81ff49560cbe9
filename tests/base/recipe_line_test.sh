#!/bin/bash
# A section that has two lines in src/recipe_sections.h does not compile, and the compiler
# names both.
set -u
source=${STINT_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cp "$source/src/recipe_sections.c" "$source/src/recipe_sections.h" "$tree"

compile() {
    ${CC:-cc} -std=c17 -fsyntax-only -I "$source/src" -I "$source/include" \
        "$tree/recipe_sections.c" 2>&1
}

compile || { echo "does not compile as it is"; exit 1; }
lines=$(wc -l <"$tree/recipe_sections.h")
first=$(grep -n '^STI_SECTION(data)' "$tree/recipe_sections.h" | cut -d: -f1)
echo 'STI_SECTION(data)' >>"$tree/recipe_sections.h"
if out=$(compile); then
    echo "a section with two lines compiles"
    exit 1
fi
for line in $first $((lines + 1)); do
    grep -q "recipe_sections.h:$line:" <<<"$out" || { echo "line $line is not named: $out"; exit 1; }
done
