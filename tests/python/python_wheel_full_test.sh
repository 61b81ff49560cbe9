# A wheel is built of the package, has what a wheel has, and installed into an environment of
# its own beside the library it answers as `stint run` does.
. "$(dirname "$0")/../cli/cli_lib.sh"
if ! grep -q '^STINT_SANITIZE:.*=$' "$STINT_BUILD/CMakeCache.txt"; then
    echo "a build with sanitizers: skipped" && exit 77
fi
cd "$work" || exit 1
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "no NumPy: skipped" && exit 77; }
/usr/bin/python3 -m venv --system-site-packages "$work/venv" >"$work/log" 2>&1 ||
    { echo "no python3-venv: skipped" && exit 77; }
cmake --build "$STINT_BUILD" --target stint_shared >"$work/log" 2>&1 ||
    fail "does not build: $(tail -5 "$work/log")"
cp -r "$STINT_SOURCE/python" package
venv/bin/pip wheel --no-deps --no-index --disable-pip-version-check --quiet ./package -w wheels \
    >log 2>&1 || fail "pip wheel: $(tail -5 log)"
wheel=$(echo wheels/stint-*-py3-none-any.whl)
[ -f "$wheel" ] || fail "no wheel: $(ls wheels)"
venv/bin/python - "$wheel" "$STINT_SOURCE/python/stint" <<'PY' || fail "the wheel"
import base64, csv, hashlib, io, os, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
names = wheel.namelist()
assert wheel.testzip() is None
for name in os.listdir(sys.argv[2]):
    if name.endswith(".py") or name == "py.typed":
        assert wheel.read("stint/" + name) == open(os.path.join(sys.argv[2], name), "rb").read(), name
info, = {n.split("/")[0] for n in names if n.endswith(".dist-info/METADATA")}
meta = wheel.read(info + "/METADATA").decode()
assert "\nName: stint\n" in "\n" + meta and "Requires-Dist: numpy" in meta, meta
rows = list(csv.reader(io.StringIO(wheel.read(info + "/RECORD").decode())))
assert {r[0] for r in rows} == set(names), set(names) ^ {r[0] for r in rows}
for name, digest, size in rows:
    if name != info + "/RECORD":
        data = wheel.read(name)
        want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert digest == "sha256=" + want and int(size) == len(data), name
PY
venv/bin/pip install --no-deps --no-index --disable-pip-version-check --quiet "$wheel" >log 2>&1 ||
    fail "pip install: $(tail -5 log)"
cp "$STINT_BUILD/libstint.so" "$(venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/stint/"
PYTHONPATH=$STINT_SOURCE/tests/cli PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 - <<'PY' || fail "no model"
import numpy as np
from onnx_file import Model
r = np.random.default_rng(1)
m = Model()
m.input("x", 1, [2, 5])
m.tensor("w", r.normal(size=(5, 3)).astype(np.float32))
m.node("MatMul", ["x", "w"], ["y"])
m.output("y")
m.write("m.onnx")
np.save("x.npy", r.normal(size=(2, 5)).astype(np.float32))
PY
run 0 import onnx m.onnx --out m.safetensors -q
run 0 run m.safetensors --input x=x.npy --out y.npz -q
env -u STINT_LIBRARY -u PYTHONPATH venv/bin/python - <<'PY' || fail "the installed package"
import numpy as np
import stint
y = stint.load("m.safetensors")(np.load("x.npy"))
y = y["y"] if isinstance(y, dict) else y
assert np.array_equal(np.asarray(y), np.load("y.npz")["y"])
PY
venv/bin/pip uninstall --yes --quiet stint >log 2>&1 || fail "pip uninstall: $(cat log)"
finish
