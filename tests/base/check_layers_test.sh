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
mkdir "$tree/src/cellar"
expect 1 'src/cellar: is no known room'
exit $bad
