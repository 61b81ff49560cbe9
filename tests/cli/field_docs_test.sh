# The commands of docs/fields.md, run in their order in an empty folder.
. "$(dirname "$0")/cli_lib.sh"
if grep -q __asan_init "$STINT"; then
    echo "budgets of a process that carries no sanitizer: skipped" && exit 77
fi
oracle="$(cd "$(dirname "$0")" && pwd)/field_oracle.py"
mkdir "$work/place" "$work/bin" && cd "$work/place" || exit 1
ln -s "$STINT" "$work/bin/stint"
PATH=$work/bin:$PATH
export XDG_CACHE_HOME=$work/cache
/usr/bin/python3 "$oracle" make . || { fail "no NumPy"; finish; }
mv picture.png photo.png
page=$STINT_SOURCE/docs/fields.md
{
    echo 'set -e'
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$page"
} >script
[ "$(wc -l <script)" -gt 10 ] || fail "few commands found"
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
says out "psnr"
says out "by jets"
says out "relative L2 error"
/usr/bin/python3 - <<'PY' || fail "what the commands left"
import json, numpy as np
j, a, l = json.load(open("answer.json")), np.load("derivatives.npy"), np.load("laplacian.npy")
assert j["outputs"] == 30 and a.shape == (64 * 64, 30) and l.shape == (512 * 512, 12)
assert j["columns"][:4] == ["r", "g", "b", "r_x"] and np.isfinite(a).all() and np.isfinite(l).all()
PY
for f in large.png gradient.png edges.png edited.png pasted/points.npy pasted/values.npy; do
    [ -s $f ] || fail "no $f"
done
says out "Derivatives of field.inside by"
for words in "the picture" "the field" "length of its gradient"; do
    grep -q "$words" runs/photo/report.html || fail "the report lacks: $words"
done
grep -q "image/png;base64" runs/photo/report.html || fail "no pictures in the report"
finish
