# The commands of docs/exchange.md, run in their order in an empty folder with a small network
# that NumPy knows, and the page's operators beside those of the code.
. "$(dirname "$0")/cli_lib.sh"
tests=$(cd "$(dirname "$0")" && pwd)
page=$STINT_SOURCE/docs/exchange.md
mkdir "$work/place" "$work/bin" && cd "$work/place" || exit 1
ln -s "$STINT" "$work/bin/stint"
ln -s /usr/bin/python3 "$work/bin/python3"
PATH=$work/bin:$PATH
export PYTHONPATH=$tests PYTHONDONTWRITEBYTECODE=1
python3 - <<'PY' || { fail "no NumPy"; finish; }
import numpy as np
from onnx_file import Model
from onnx_models import conv, draw

x, w, b, fc = draw(1, 3, 224, 224), draw(8, 3, 8, 8), draw(8), draw(5, 8)
m = Model()
m.input("image", 1, ["batch", 3, 224, 224])
for name, array in (("w", w), ("b", b), ("fc", fc)):
    m.tensor(name, array)
m.node("Conv", ["image", "w", "b"], ["c"], strides=[8, 8])
m.node("Relu", ["c"], ["r"])
m.node("GlobalAveragePool", ["r"], ["p"])
m.node("Flatten", ["p"], ["f"])
m.node("Gemm", ["f", "fc"], ["logits"], transB=1)
m.output("logits")
m.write("net.onnx")
np.save("picture.npy", x)
np.save("want.npy", np.maximum(conv(x, w, b, (8, 8)), 0).mean((2, 3)) @ fc.T)
PY
{
    echo 'set -e'
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$page"
} >script
[ "$(wc -l <script)" -gt 15 ] || fail "few commands found"
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
python3 - <<'PY' || fail "what the commands left"
import numpy as np
got, want = np.load("answers.npz")["logits"], np.load("want.npy")
assert got.shape == want.shape and np.abs(got - want).max() < 1e-5 * np.abs(want).max(), (got, want)
logits = np.load("logits.npz")["logits"]
assert logits.ndim == 2 and len(logits) == 1 and np.isfinite(logits).all() and logits.std() > 0
PY
run 0 import onnx letters8.onnx --out letters8.safetensors --json
json "j['inputs'][0]['shape'] == [8, 1, 32, 32]"

# Operators: the page names what the tables have, and the tables what the page names.
listed() { # from TEXT on, the names of the paragraph
    sed -n "/^$1/p" "$page" | grep -o '`[A-Za-z0-9]*`' | tr -d '`' | sort
}
rows() { sed -n "s/^$1(\([A-Za-z0-9]*\),.*/\1/p" "$STINT_SOURCE/src/exchange/$2" | sort; }
rows STI_LOWER lower_list.h >lowered
listed 'In the run: ' >said
diff lowered said >differ || fail "operators in the run: $(cat differ)"
rows STI_FOLD fold_list.h >folded
{
    comm -23 folded lowered
    echo If
} | sort >alone
listed 'On constants alone: ' >said
diff alone said >differ || fail "operators on constants: $(cat differ)"
finish
