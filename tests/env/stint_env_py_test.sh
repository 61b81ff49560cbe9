#!/bin/bash
# The Python binding over the shared library. Skipped (77) where there is no NumPy, or the
# library was built with a sanitizer, which Python is not.
set -u
python=${PYTHON:-/usr/bin/python3}
library=${STINT_BUILD:?set by ctest}/libstint.so
if ! "$python" -c 'import numpy' 2>/dev/null; then
    echo "skipped: $python has no numpy (Debian: python3-numpy)"
    exit 77
fi
if [ ! -e "$library" ]; then
    echo "skipped: $library is not built (cmake --build ... --target stint_shared)"
    exit 77
fi
if grep -q __asan_init "$library" || grep -q __tsan_init "$library"; then
    echo "skipped: the library is built with a sanitizer"
    exit 77
fi
STINT_LIBRARY=$library PYTHONPATH=${STINT_SOURCE:?}/bindings PYTHONDONTWRITEBYTECODE=1 \
    "$python" "$STINT_SOURCE/tests/env/stint_env_test.py" "$STINT_SOURCE/recipes/roms/rally.bin"
