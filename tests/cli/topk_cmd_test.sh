# stint topk on NumPy files, beside NumPy's own stable sort; refusals.
. "$(dirname "$0")/cli_lib.sh"
export XDG_CACHE_HOME="$work/cache"
cd "$work" || exit 1
python=/usr/bin/python3 # Debian's, which has python3-numpy
$python -c 'import numpy' || { fail "no NumPy"; finish; }

$python - <<'PY'
import numpy as np
rng = np.random.default_rng(3)
np.save("x.npy", rng.standard_normal((7, 300)).astype(np.float32))
np.save("half.npy", rng.standard_normal(500).astype(np.float16))
np.save("int8.npy", rng.integers(-128, 128, 4000).astype(np.int8))
np.save("brain.npy", (rng.standard_normal(400).astype(np.float32).view(np.uint32) >> 16)
        .astype(np.uint16))
np.save("double.npy", np.array([16777216, 16777217, 3.0]))
np.save("whole.npy", np.array([[2**63, 2**64 - 1], [2**64 - 2, 5]], np.uint64))
np.save("fortran.npy", np.asfortranarray(rng.integers(-9, 9, (40, 70, 3), np.int64).astype(">i8")))
np.save("complex.npy", np.ones(3, np.complex64))
np.savez("both.npz", a=np.arange(5.0), b=np.array([3, 1, 2], np.uint16))
np.savez_compressed("one.npz", np.array([True, False, True]))
np.save("empty.npy", np.ones((0, 4), np.float32))
np.save("few.npy", np.ones(4, np.float32))
x = np.ones(9, np.float32)
x[5] = np.nan
np.save("nan.npy", x)
PY

# same ARRAY.npy INDEX.npy VALUES.npy K KEY SORTED ROWS
same() {
    $python - "$@" <<'PY' || fail "stint topk $* is not what NumPy's stable sort gives"
import sys
import numpy as np
x, index, values = (np.load(f) for f in sys.argv[1:4])
k, key, by_key, rows = int(sys.argv[4]), sys.argv[5], sys.argv[6] == "1", sys.argv[7] == "1"
assert index.dtype == np.int64 and values.dtype == x.dtype.newbyteorder("=")
if x.dtype == np.uint16:
    x = (x.astype(np.uint32) << 16).view(np.float32)
    values = (values.astype(np.uint32) << 16).view(np.float32)
if not rows:
    x = x.reshape(-1)
wide = x.astype(np.float64)
wide = {"max": -wide, "min": wide, "abs": -np.abs(wide)}[key]
want = np.argsort(wide, axis=-1, kind="stable")[..., :k]
if not by_key:
    want = np.sort(want, axis=-1)
assert index.shape == want.shape and np.array_equal(index, want)
assert np.array_equal(values, np.take_along_axis(x, want, -1))
PY
}

run 0 topk x.npy -k 20 --out i.npy --values v.npy
silent out
same x.npy i.npy v.npy 20 max 0 0
run 0 topk x.npy -k 9 --key abs --rows --sorted --out i.npy --values v.npy -j 2
same x.npy i.npy v.npy 9 abs 1 1
run 0 topk x.npy -k 5000 --key min --sorted --out i.npy --values v.npy
same x.npy i.npy v.npy 5000 min 1 0
says err "warning: x.npy: -k 5000 asks for more than the 2100 elements of the array; as many are given"
run 0 topk x.npy -k 301 --rows --out i.npy -q
says err "-k 301 asks for more than the 300 elements of a row"
run 0 topk x.npy -k 300 --rows --out i.npy
silent err
run 0 topk half.npy -k 30 --out i.npy --values v.npy --part 64
same half.npy i.npy v.npy 30 max 0 0
run 0 topk int8.npy -k 700 --key abs --out i.npy --values v.npy
same int8.npy i.npy v.npy 700 abs 0 0
run 0 topk brain.npy -k 33 --type bf16 --key min --out i.npy --values v.npy
same brain.npy i.npy v.npy 33 min 0 0
for method in pack delegate beta threshold radix narrow; do
    run 0 topk x.npy -k 20 --method $method --out i.npy --values v.npy
    same x.npy i.npy v.npy 20 max 0 0
done
# Elements are ranked in their own type: float32 takes the first two as equal.
run 0 topk double.npy -k 2 --sorted
says out "$(printf '1\t16777217')"
run 0 topk whole.npy -k 2 --sorted --json
json 'j["index"] == [1, 2] and j["values"] == [2**64 - 1, 2**64 - 2] and j["method"] == "radix"'
run 0 topk fortran.npy -k 900 --sorted --out i.npy --values v.npy
same fortran.npy i.npy v.npy 900 max 1 0
run 0 topk both.npz:b -k 1
says out "$(printf '0\t3')"
run 0 topk one.npz -k 2 --out i.npy --values v.npy
$python -c 'import numpy as np; v = np.load("v.npy"); assert v.dtype == bool and v.all()' ||
    fail "values of a bool are no bool"
run 4 topk both.npz -k 1
says err "several arrays, a, b"
run 4 topk both.npz:c -k 1
says err "no array 'c'; there are a, b"
run 4 topk both.npz:a:b -k 1
head -c 300 both.npz >cut.npz
run 4 topk cut.npz:b -k 1
says err "no whole .npz file"
run 2 topk both.npz:a -k 1 --out both.npz
says err "written over"
# The example of docs/topk.md.
sed -n '/^## Types and files/,/^## How/p' "$STINT_SOURCE/docs/topk.md" |
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' >example
[ "$(wc -l <example)" -eq 2 ] || fail "no example in docs/topk.md"
sed 's#^python3#/usr/bin/python3#; s#^stint#"$STINT"#' example >commands
STINT=$STINT bash commands >said || fail "the example of docs/topk.md"
[ "$(cat said)" = "$(printf '1\t16777217')" ] || fail "the example of docs/topk.md says $(cat said)"
# More arrays: topk_numpy_full_test.sh.
mkdir many
$python "$STINT_SOURCE/tests/cli/topk_numpy.py" "$STINT" many 1500 2 || fail "not NumPy's winners"

[ -s "$XDG_CACHE_HOME/stint/topk-costs.txt" ] || fail "costs are not kept"

run 0 topk x.npy -k 3 --sorted
[ "$(wc -l <"$work/out")" -eq 3 ] || fail "not three lines"
run 0 topk x.npy -k 3 --sorted --json
json 'len(j["index"]) == 3 and j["values"][0] >= j["values"][1] and j["n"] == 2100'
run 0 topk empty.npy -k 3 --json
json 'j["index"] == []'
run 0 topk empty.npy -k 3 --rows --out i.npy
run 0 topk x.npy --rows --out i.npy -k 0
silent err
run 0 topk few.npy
silent err
run 0 topk x.npy -k 0
silent out
run 0 topk nan.npy -k 1 --nan first
says out 5

run 4 topk nan.npy -k 1
says err "NaN at row 0, index 5"
says err "--nan"
run 8 topk complex.npy -k 1
says err "'c8'"
run 4 topk half.npy -k 1 --type bf16
says err "cannot be bfloat16"
run 5 topk missing.npy -k 1
says err "missing.npy"
run 2 topk x.npy -k -1
run 2 topk
head -c 100 x.npy >cut.npy
run 4 topk cut.npy -k 1
run 5 topk x.npy -k 1 --out /nowhere/i.npy
ln -s x.npy link.npy
for name in x.npy ./x.npy link.npy; do
	run 2 topk x.npy -k 1 --out $name
	says err "written over"
done
run 2 topk x.npy -k 1 --out same.npy --values same.npy
says err "both same.npy"
run 2 topk x.npy -k 1 --key most
says err "most"

run 0 bench topk --largest 14
says out quickselect
run 0 bench topk --largest 12 --json --order equal
json 'all(c["stint"]["best_s"] > 0 for c in j["cases"])'

finish
