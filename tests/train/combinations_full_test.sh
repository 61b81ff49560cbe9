# Whatever is not refused by its sentence goes together: a covering set of trainings.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
python3 "$STINT_SOURCE/tests/cli/cli_data.py" images 16 "${IMAGES:-320}" 32 || fail "no images"
words "the cat sat on a mat and saw" 1500 >text.txt
python3 - <<'PY' || fail "no picture"
import struct
side = 16
head = struct.pack("<2sIHHI", b"BM", 54 + side * side * 3, 0, 0, 54)
head += struct.pack("<IiiHHIIiiII", 40, side, side, 1, 24, 0, side * side * 3, 2835, 2835, 0, 0)
open("field.bmp", "wb").write(head + bytes((x * 16, y * 16, x * y)[c] for y in range(side)
                                           for x in range(side) for c in range(3)))
PY
# A sanitizer's memory is in no plan.
grep -q __asan_init "$STINT" && export STINT_ASAN=1
for kind in images:images text:text.txt field:field.bmp; do
    mkdir "run-${kind%%:*}" && cd "run-${kind%%:*}" || exit 1
    python3 "$STINT_SOURCE/tests/train/combinations.py" "$STINT" "../${kind#*:}" "${kind%%:*}" ${COMBINATIONS:-} ||
        fail "${kind%%:*}"
    cd ..
done
finish
