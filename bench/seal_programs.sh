#!/bin/bash
# Random programs of C against gcc -fwrapv, each on 16 inputs:
#
#   bench/seal_programs.sh [PROGRAMS]        1000; the row of the docs has 10000
#
# Needs the test program: cmake --build --preset release --target cc_test.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
STINT_SEAL_PROGRAMS=${1:-1000} "$here/build/release/tests/cc_test"
echo "${1:-1000} programs, 16 inputs each: none differs"
