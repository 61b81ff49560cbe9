# Forms of single operators: against loops in NumPy; those that are not taken are refused by
# what they are and what would be taken.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
PYTHONPATH=$STINT_SOURCE/tests/cli PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 \
    "$STINT_SOURCE/tests/cli/onnx_forms.py" || fail "no models"

same() { # NAME FLAG...: import, run on threads, compare
    local name=$1
    shift
    run 0 import onnx "$name.onnx" --out "$name.st" -q
    for threads in 1 3; do
        run 0 run "$name.st" "$@" --out "$name.npz" -j $threads -q
        python3 - "$name" <<'PY' || fail "$name: $threads threads"
import sys, numpy as np
a, b = (np.load(sys.argv[1] + end) for end in (".npz", ".want.npz"))
assert sorted(a.files) == sorted(b.files)
for name in b.files:
    assert a[name].shape == b[name].shape and a[name].dtype.kind == b[name].dtype.kind, name
    assert np.abs(a[name] - b[name]).max() <= 2e-6 * np.abs(b[name]).max(), name
PY
    done
}

# ---- three axes of pixels
same volumes --input x=volumes.x.npy
run 0 info volumes.st --json
json "j['operators']['conv2d'] == 2 and 'batch_norm' not in j['operators']"

# ---- boxes without those that overlap: rows that are left are -1
same chosen --input boxes=chosen.boxes.npy --input scores=chosen.scores.npy
run 0 export onnx chosen.st --out again.onnx
grep -q "chosen" again.onnx || fail "its number of boxes is not left open"
run 0 import onnx again.onnx --out again.st -q
for file in "read boxes" "read shape" "read rows"; do
    run 8 import onnx "$file.onnx" --out no.st
    says err "'/reader': it reads"
    says err "let the network end there"
done

# ---- refused
run 8 import onnx cubic.onnx --out no.st
says err "mode 'bicubic'; taken are: linear, bilinear, nearest"
run 8 import onnx wrap.onnx --out no.st
says err "padding_mode 'wrap'; taken are: zeros, border, reflection"
run 8 import onnx volume.onnx --out no.st
says err "pictures of 5 axes and points of 5; four each"
run 4 import onnx turned.onnx --out no.st
says err "updates of [3, 2] f32, where the indices want [2, 3]"
run 4 import onnx flat.onnx --out no.st
run 4 import onnx rows.onnx --out no.st
says err "updates of [4, 3] f32, where the indices want [3, 4]"
run 4 import onnx cells.onnx --out no.st
says err "the indices want [2, 3]"
for file in "known turned" "known rows"; do
    run 4 import onnx "$file.onnx" --out no.st
    says err "/node"
done
[ ! -e no.st ] || fail "a refused import wrote a file"
finish
