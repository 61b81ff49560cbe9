#!/bin/bash
# Loss curves of every optimiser against PyTorch. Skipped (77) where python3-torch or the
# program is missing.
set -u

python=${PYTHON:-/usr/bin/python3}
here=$(cd "$(dirname "$0")" && pwd)
stint=${STINT:?set by ctest}

if ! "$python" -c 'import importlib.util as u; u.find_spec("torch") or exit(1)'; then
    echo "skipped: $python has no torch (Debian: python3-torch)"
    exit 77
fi
if [ ! -x "$stint" ]; then
    echo "skipped: $stint is not built"
    exit 77
fi

folder=$(mktemp -d) || exit 5
trap 'rm -rf "$folder"' EXIT
"$python" "$here/pytorch_curve.py" "$stint" "$folder"
