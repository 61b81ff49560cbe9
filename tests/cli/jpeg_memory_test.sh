# Large photographs: what a plan says of their decoding is what is taken, within a tenth and
# never less, whether they are of one scan or of several.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
if ! grep -q "^STINT_SANITIZE:.*=$" "$STINT_BUILD/CMakeCache.txt"; then
    echo "a build with sanitizers, whose own memory is not planned: skipped" && exit 77
fi
cat >photos.py <<'PY'
"""Four photographs of 3000 x 2000 a kind, by the library that will read them."""
import ctypes, os
tj = ctypes.CDLL("libturbojpeg.so.0")
tj.tjInitCompress.restype = ctypes.c_void_p
handle = ctypes.c_void_p(tj.tjInitCompress())
width, height, progressive = 3000, 2000, 16384
def save(kind, form, channels, sampling, flags):
    row = bytes((x * x // 700 + 40 * c) % 256 for x in range(width) for c in range(channels))
    pixels = b"".join(row[3 * y % 900:] + row[:3 * y % 900] for y in range(height))
    out, n = ctypes.c_void_p(), ctypes.c_ulong()
    if tj.tjCompress2(handle, pixels, width, 0, height, form, ctypes.byref(out), ctypes.byref(n), sampling, 88, flags):
        raise SystemExit("no JPEG")
    for i in range(4):
        os.makedirs(f"{kind}/train/{i % 2}", exist_ok=True)
        open(f"{kind}/train/{i % 2}/{i}.jpg", "wb").write(ctypes.string_at(out, n.value))
save("base420", 0, 3, 2, 0)
save("base444", 0, 3, 0, 0)
save("scans420", 0, 3, 2, progressive)
save("scans444", 0, 3, 0, progressive)
save("grey", 6, 1, 3, 0)
PY
python3 photos.py || fail "no photographs"
printf '[data]\nsize = 64\n[model]\nname = mlp\nwidth = 4\n[train]\nbatch = 4\nshards = 4\nsteps = 2\n' >r.ini
for kind in base420 base444 scans420 scans444 grey; do
    run 0 train r.ini --data $kind --out out-$kind -q --json -j 2
    json "0.9 * j['planned_peak_bytes'] < j['peak_rss_bytes'] <= j['planned_peak_bytes']"
    bytes=$((2 * 3000 * 2000))
    [ $kind = grey ] || bytes=$((3 * bytes))
    json "j['planned_peak_bytes'] > $bytes"
done
finish
