# stint codec on NumPy files: round trips within the bound, and refusals.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python=/usr/bin/python3 # Debian's, which has python3-numpy
$python -c 'import numpy' || { fail "no NumPy"; finish; }

$python - <<'PY'
import numpy as np
rng = np.random.default_rng(3)
x = np.maximum(rng.standard_normal((6, 20, 20, 32)).astype(np.float32), 0)
np.save("relu.npy", x)
np.save("plane.npy", rng.standard_normal((90, 70)).astype(np.float32).cumsum(0))
np.save("row.npy", rng.standard_normal(5000).astype(np.float32))
odd = rng.standard_normal((30, 40)).astype(np.float32)
odd[3, 4:9] = [np.nan, np.inf, -np.inf, 3.4e38, 1e-45]
np.save("odd.npy", odd)
np.save("empty.npy", np.ones((0, 4), np.float32))
np.save("equal.npy", np.ones((4, 4), np.float32))
np.save("nothing.npy", np.full((4, 4), np.nan, np.float32))
np.save("zeros.npy", np.zeros((50, 40), np.float32))
np.save("tiny.npy", np.full(100, 1e-42, np.float32))
np.save("far.npy", (1e6 * (1 + rng.random(5000))).astype(np.float32))
np.save("nan.npy", np.full(5000, np.nan, np.float32))
deep = 1e3 + rng.standard_normal((40, 50))
deep[3, 4:9] = [np.nan, np.inf, 1e300, 1e-300, 0]
np.save("double.npy", deep)
np.save("fortran.npy", np.asfortranarray(rng.standard_normal((20, 30, 3)).astype(">f8")))
np.savez("both.npz", a=np.ones(3), relu=x)
np.save("half.npy", np.ones(3, np.float16))
np.save("scalar.npy", np.float32(1))
np.save("five.npy", np.ones((1, 2, 1, 2, 1), np.float32))
PY

# within A.npy B.npy BOUND: same shape; within BOUND, or the same bits; zeros are zeros
within() {
    $python - "$@" <<'PY' || fail "$1 and $2 are not within $3"
import sys
import numpy as np
a, b = np.load(sys.argv[1]), np.load(sys.argv[2])
assert a.shape == b.shape and b.dtype == np.float32
near = np.abs(a.astype(np.float64) - b) <= float(sys.argv[3])
assert (near | (a.view(np.uint32) == b.view(np.uint32))).all()
assert (b[a == 0] == 0).all()
PY
}

for file in relu plane row odd empty equal nothing; do
    run 0 codec pack $file.npy --bound 0.01 -o $file.stq
    silent out
    run 0 codec unpack $file.stq -o back.npy
    within $file.npy back.npy 0.01
done
# Doubles: in other orders, and by bounds that float32 does not hold.
double() {
    $python - "$@" <<'PY' || fail "$1 and $2 are not within $3"
import sys
import numpy as np
a, b, bound = np.load(sys.argv[1]), np.load(sys.argv[2]), float(sys.argv[3])
assert a.shape == b.shape and b.dtype == np.float64
a = a.astype(np.float64)
with np.errstate(all="ignore"):
    near = np.abs(a.astype(np.longdouble) - b) <= bound
assert (near | (a.view(np.uint64) == b.view(np.uint64))).all()
assert (b[a == 0] == 0).all()
PY
}
for bound in 1 1e-3 1e-6 1e-12; do
    for file in double fortran; do
        run 0 codec pack $file.npy --bound $bound -o $file.stq
        run 0 codec unpack $file.stq -o back.npy
        double $file.npy back.npy $bound
    done
done
run 0 codec pack fortran.npy --bound 1e-3 -o f.stq --json
json 'j["ratio"] > 4 and 0 < j["max_error"] <= 1e-3 and j["outliers"] == 0'
run 0 codec info f.stq
says out "20 x 30 x 3 float64"
run 0 codec bench double.npy --bound 1e-3 --runs 1
head -c 700 f.stq >cutf.stq
run 4 codec unpack cutf.stq -o no.npy
says err "packed block of doubles"
run 0 codec pack both.npz:relu --bound 0.01 -o z.stq
cmp -s z.stq relu.stq || fail "an array of a .npz is packed otherwise"
run 0 codec pack relu.npy --bound 0.01 -o one.stq -j 1
cmp -s one.stq relu.stq || fail "threads change the bytes"
# Each of the last 96 bytes is looked at, which are under no checksum.
for back in 1 50 96; do
    python3 -c 'import sys; b = bytearray(open("one.stq", "rb").read()); b[-int(sys.argv[1])] ^= 1; open("end.stq", "wb").write(b)' $back
    run 4 codec unpack end.stq -o end.npy
    says err "the zeros at its end"
    [ ! -e end.npy ] || fail "a damaged end left an output"
done
run 0 codec pack relu.npy --bound 0.01 --no-dither -o small.stq --json
json_ok
json 'j["ratio"] > 5 and j["max_error"] <= 0.01 and j["outliers"] == 0'
[ "$(stat -c %s small.stq)" -lt "$(stat -c %s relu.stq)" ] || fail "dither is free"
run 0 codec pack plane.npy --bound 1e-3 --relative -o plane.stq --json
json '0.001 < j["bound"] < 1'
# A part of no range is no change: zeros and equal values come back to the bit.
for file in empty equal nothing zeros tiny; do
    run 0 codec pack $file.npy --bound 0.01 --relative -o $file.stq
    run 0 codec unpack $file.stq -o back.npy
    cmp -s $file.npy back.npy || fail "$file --relative: other bits"
done
# What gains nothing says why, and the bound that it names gains.
run 0 codec pack far.npy --bound 1e-3 -o far.stq
says err "nothing gained: 5,000 of 5,000 values are 2^21 steps (of twice the bound) or more from zero"
bound=$(sed -n 's/.*--bound \([^ ]*\) halves the file.*/\1/p' err)
run 0 codec pack far.npy --bound "$bound" -o far.stq --json
json 'j["outliers"] == 0 and j["raw"] == 0 and j["ratio"] > 2'
silent err
run 0 codec pack nan.npy --bound 1 -o nan.stq --json
says err "5,000 of 5,000 values are NaN or infinite"
json 'j["values"] == 5000'
for predictor in direct left plane mean; do
    run 0 codec pack plane.npy --bound 0.1 --predictor $predictor -o p.stq -q
    silent err
    run 0 codec unpack p.stq -o back.npy
    within plane.npy back.npy 0.1
    run 0 codec info p.stq
    says out "predictor  $predictor"
done
run 0 codec info relu.stq
says out "6 x 20 x 20 x 32 float32"
says out "of the values' 300.0 KiB"
run 0 codec info odd.stq --json
json 'j["shape"] == [30, 40] and j["bound"] == 0.01 and j["outliers"] + j["raw"] >= 4'
run 0 codec bench relu.npy --bound 0.02 --runs 2
says out "GB/s"
run 0 codec bench relu.npy --bound 0.02 --runs 1 --json
json 'j["pack_gb_per_s"] > 0'

for bound in 0 -1 nan inf x; do
    run 2 codec pack relu.npy --bound $bound -o no.stq
done
run 2 codec pack relu.npy -o no.stq
says err "wants --bound B"
run 2 codec pack relu.npy --bound 1
says err "-o FILE"
run 8 codec pack half.npy --bound 1 -o no.stq
says err "'f2'"
run 8 codec pack five.npy --bound 1 -o no.stq
says err "5 axes"
run 8 codec pack scalar.npy --bound 1 -o no.stq
run 5 codec pack missing.npy --bound 1 -o no.stq
run 5 codec pack relu.npy --bound 1 -o /nowhere/no.stq
run 4 codec bench empty.npy --bound 1
run 4 codec unpack relu.npy -o no.npy
says err "packed block"
run 4 codec info relu.npy
run 2 codec unpack relu.stq
head -c 100 relu.stq >cut.stq
run 4 codec unpack cut.stq -o no.npy
head -c 9000 relu.stq >cut.stq
run 4 codec unpack cut.stq -o no.npy
says err "cut short"
(cat relu.stq && echo) >long.stq
run 4 codec unpack long.stq -o no.npy
says err "follow its end"
: >none.stq
run 4 codec unpack none.stq -o no.npy

# A bit flipped anywhere; sizes beyond all memory with a head that is otherwise right.
$python - <<'PY'
data = bytearray(open("relu.stq", "rb").read())
for n, at in enumerate((9, 17, 30, 60, 130, 150, 1200, len(data) - 300)):
    bad = bytearray(data)
    bad[at] ^= 16
    open("flip%d.stq" % n, "wb").write(bad)


def crc32c(b):
    crc = 0xFFFFFFFF
    for x in b:
        crc ^= x
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


front = int.from_bytes(data[120:124], "little")
for n, dim in enumerate((1 << 39, 1 << 62, 0, (1 << 64) - 1)):
    bad = bytearray(data)
    bad[24:32] = dim.to_bytes(8, "little")
    bad[12:16] = crc32c(bad[16:front]).to_bytes(4, "little")
    open("forged%d.stq" % n, "wb").write(bad)
PY
for file in flip? forged?; do
    for bad in $file.stq; do
        got=0
        "$STINT" codec unpack "$bad" -o no.npy >out 2>err </dev/null || got=$?
        [ $got -eq 4 ] || [ $got -eq 8 ] || fail "$bad: status $got"
        says err "packed block"
    done
done
[ ! -e no.npy ] && [ ! -e no.stq ] && [ ! -e no.npy.part ] && [ ! -e no.stq.part ] ||
    fail "something was written"
# nothing takes the place of what it was made from, by whatever name
run 0 codec pack row.npy --bound 1e-2 -o own.stp
cp row.npy row.kept && cp own.stp own.kept && ln row.npy other.npy && ln -s own.stp other.stp
for out in row.npy ./row.npy other.npy; do
    run 2 codec pack row.npy --bound 1e-2 -o $out
    says err "its own answer"
done
run 2 codec unpack own.stp -o other.stp
says err "its own answer"
cmp -s row.npy row.kept && cmp -s own.stp own.kept || fail "an input was written over"
finish
