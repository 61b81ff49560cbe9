# Forms of single operators: against loops in NumPy; those that are not taken are refused by
# what they are and what would be taken.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
PYTHONPATH=$STINT_SOURCE/tests/cli PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 \
    "$STINT_SOURCE/tests/cli/onnx_forms.py" || fail "no models"

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
