#!/bin/bash
# Results and gradients of every operator against PyTorch on random shapes. Skipped (77)
# where python3-torch or the dump program is missing.
set -u

python=${PYTHON:-/usr/bin/python3}
here=$(cd "$(dirname "$0")" && pwd)
dump=${STINT_BUILD:?set by ctest}/tests/op_dump

if ! "$python" -c 'import importlib.util as u; u.find_spec("torch") or exit(1)'; then
    echo "skipped: $python has no torch (Debian: python3-torch)"
    exit 77
fi
if [ ! -x "$dump" ]; then
    echo "skipped: $dump is not built (cmake --build ... --target op_dump)"
    exit 77
fi

folder=$(mktemp -d) || exit 5
trap 'rm -rf "$folder"' EXIT
"$dump" "$folder" 101 102 103 && "$python" "$here/pytorch_compare.py" "$folder"
