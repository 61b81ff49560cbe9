#!/bin/bash
# Hundreds of kills and simulated power cuts of a training of clicks (tests/recommend/crash.py
# says what a cut may leave): how many are lost.
#
#     cmake --build --preset release --target stint write_log
#     bench/embed_crash.sh [KILLS] [CUTS] [SEED]      # 200 200 1: some minutes
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
exec /usr/bin/python3 tests/recommend/crash.py "$build/stint" "$build/tests/libwrite_log.so" \
    --kills "${1:-200}" --cuts "${2:-200}" --seed "${3:-1}"
