# Gradients of random parts of a network against PyTorch. Skipped (77) where python3-torch
# is absent.
set -u
python=/usr/bin/python3
if ! "$python" -c 'import importlib.util as u; u.find_spec("torch") or exit(1)'; then
    echo "skipped: $python has no torch (Debian: python3-torch)"
    exit 77
fi
folder=$(mktemp -d /tmp/stint-parts-XXXXXX)
trap 'rm -rf "$folder"' EXIT
export OMP_NUM_THREADS=1
export -n STINT STINT_SOURCE STINT_BUILD
"$python" "$STINT_SOURCE/tests/train/pytorch_parts.py" "$STINT" "$folder"
