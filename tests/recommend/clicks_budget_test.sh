#!/bin/bash
# Five budgets from the smallest one on: all are kept, the plan is near the peak, the bits are
# the same. bench/embed_budgets.sh takes twenty.
set -euo pipefail
if grep -q __asan_init "$STINT"; then
    echo "a sanitizer's own memory is not planned"
    exit 77
fi
script=$STINT_SOURCE/bench/embed_budgets.sh
unset STINT_SOURCE STINT_BUILD
"$script" 5
