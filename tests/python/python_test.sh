# The Python package over the library that was built: its unittest cases, an installation
# by pip into a virtual environment, and the C example that does the same.
. "$(dirname "$0")/../cli/cli_lib.sh"
if ! grep -q '^STINT_SANITIZE:.*=$' "$STINT_BUILD/CMakeCache.txt"; then
    echo "a build with sanitizers: skipped" && exit 77
fi
python3 -c 'import numpy' 2>/dev/null || { echo "no NumPy: skipped" && exit 77; }
library=$STINT_BUILD/libstint.so
cmake --build "$STINT_BUILD" --target stint_shared >"$work/log" 2>&1 ||
    fail "does not build: $(tail -5 "$work/log")"
export PYTHONDONTWRITEBYTECODE=1
STINT_LIBRARY=$library PYTHONPATH=$STINT_SOURCE/python \
    STINT_INCLUDES=$STINT_SOURCE/include:$STINT_BUILD/include \
    python3 -m unittest discover -s "$STINT_SOURCE/tests/python" -p 'test_*.py' \
    >"$work/log" 2>&1 || fail "unittest: $(tail -40 "$work/log")"
grep -q 'skipped' "$work/log" && fail "a case was skipped: $(grep skipped "$work/log")"

# An installed package finds an installed library, here beside itself.
if python3 -m venv --system-site-packages "$work/venv" 2>/dev/null; then
    cp -r "$STINT_SOURCE/python" "$work/python"
    "$work/venv/bin/pip" install --no-deps --disable-pip-version-check --quiet "$work/python" \
        >"$work/log" 2>&1 || fail "pip: $(tail -5 "$work/log")"
    site=$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    cp "$library" "$site/stint/"
    [ "$(cd "$work" && "$work/venv/bin/python" -c 'import stint; print(stint.__version__)')" = \
        "$("$STINT" --version | awk '{ print $2; exit }')" ] || fail "the installed package"
else
    echo "no python3-venv: pip is not tried"
fi

# docs/python.md: its commands and its code, one after the other.
mkdir "$work/place" "$work/bin" && ln -s "$STINT" "$work/bin/stint"
awk '/^```(sh|python)$/ { on = 1; print $0; next } /^```/ { if (on) print "```"; on = 0 } on' \
    "$STINT_SOURCE/docs/python.md" >"$work/blocks"
[ "$(grep -c '^```python' "$work/blocks")" -ge 4 ] || fail "few blocks in python.md"
(cd "$work/place" && PATH=$work/bin:$PATH STINT_LIBRARY=$library \
    PYTHONPATH=$STINT_SOURCE/python python3 - "$work/blocks" <<'PY'
import re, subprocess, sys
for kind, code in re.findall(r"^```(sh|python)\n(.*?)^```$", open(sys.argv[1]).read(), re.M | re.S):
    subprocess.run([sys.executable, "-"] if kind == "python" else ["sh", "-e"], input=code,
                   text=True, check=True)
PY
) >"$work/out" 2>"$work/err" || fail "docs/python.md: $(tail -5 "$work/err")"
says out "fits: True"
says out "IO nowhere.safetensors"

# The example in C, on a network and images made here.
cc -std=c11 -Wall -Wextra -Werror -I"$STINT_SOURCE/include" -I"$STINT_BUILD/include" \
    "$STINT_SOURCE/docs/examples/run_buffer.c" -o "$work/run_buffer" "$library" -Wl,-rpath,"$STINT_BUILD" ||
    fail "the example does not compile"
python3 - "$work" "$STINT_SOURCE" <<'PY' || fail "no data"
import os, sys
sys.path.insert(0, sys.argv[2] + "/tests/python")
os.mkdir(sys.argv[1] + "/data")
import idx_data
idx_data.make_data(sys.argv[1] + "/data")
PY
run 0 train --data "$work/data" --set model.name=mlp --epochs 1 --out "$work/run"
[ -f "$work/run/model.safetensors" ] || fail "no model: $(cat "$work/err")"
"$work/run_buffer" "$work/run/model.safetensors" >"$work/out" 2>"$work/err" ||
    fail "the example: $(cat "$work/err")"
grep -q '^grey: class [012], ' "$work/out" || fail "the example said: $(cat "$work/out")"
"$work/run_buffer" /nowhere >"$work/out" 2>"$work/err"
[ $? -eq 5 ] || fail "the example's status"
finish
