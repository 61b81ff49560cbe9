#!/bin/bash
# Random programs of C against gcc -fwrapv, each on 16 inputs:
#
#   bench/seal_programs.sh [PROGRAMS [FIRST]]        1000 0; the row of the docs has 10000
#
# FIRST programs, a multiple of 20, are left out before: so a long run can be cut into
# several. Says after every 500 how far it is. Needs the test program: cmake --build
# --preset release --target cc_test; TEST names another one.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
test=${TEST:-$here/build/release/tests/cc_test}
programs=${1:-1000} first=${2:-0}
for ((done = 0; done < programs; done += 500)); do
    left=$((programs - done < 500 ? programs - done : 500))
    log=$(STINT_SEAL_PROGRAMS=$left STINT_SEAL_FIRST=$((first + done)) "$test" 2>&1) ||
        { echo "$log"; exit 1; }
    echo "programs $first to $((first + done + left - 1)), 16 inputs each: none differs"
done
