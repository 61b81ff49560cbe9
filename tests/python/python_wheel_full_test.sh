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
run 0 data glyphs --out g --train 240 --test 60 --min-faces 5 -q
mkdir img && tar xf g/test.tar -C img || fail "no pictures"
picture=$(find img -name '*.png' | sort | head -1)
printf '[model]\nname = lenet5\n[data]\npath = g\n[train]\nsteps = 3\nbatch = 12\n' >a.ini
run 0 train a.ini --out r -q
run 0 run r "$picture" --top 100 --json
env -u STINT_LIBRARY -u PYTHONPATH venv/bin/python - "$picture" "$work/out" <<'PY' || fail "the installed package"
import json, struct, sys, zlib
import numpy as np
import stint
png, at, raw = open(sys.argv[1], "rb").read(), 8, b""
while at < len(png):
    size, = struct.unpack(">I", png[at:at + 4])
    raw += png[at + 8:at + 8 + size] if png[at + 4:at + 8] == b"IDAT" else b""
    at += size + 12
raw, rows, last = zlib.decompress(raw), [], np.zeros(32, int)
for y in range(32):
    kind, row = raw[33 * y], [int(v) for v in raw[33 * y + 1:33 * y + 33]]
    for x in range(32):
        left, up, corner = row[x - 1] if x else 0, int(last[x]), int(last[x - 1]) if x else 0
        near = min((left, up, corner), key=lambda v: (abs(left + up - corner - v), (left, up, corner).index(v)))
        row[x] = (row[x] + [0, left, up, (left + up) // 2, near][kind]) & 255
    last = np.array(row)
    rows.append(last)
model = stint.load("r")
p = model.probabilities(np.array(rows, np.uint8)[None, :, :, None])[0]
said = {c["class"]: c["probability"] for c in json.load(open(sys.argv[2]))["predictions"][0]["classes"]}
assert len(said) == len(model.classes) and max(abs(said[n] - p[i]) for i, n in enumerate(model.classes)) < 1e-6
PY
venv/bin/pip uninstall --yes --quiet stint >log 2>&1 || fail "pip uninstall: $(cat log)"
finish
