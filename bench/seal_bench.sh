#!/bin/bash
# Bootstraps a second of one core in turns with TFHEpp, and whole programs.
#
#   bench/seal_bench.sh [SECONDS]        3, on each set of ours
#
# PEER_RS and PEER_FAST: TFHEpp's program test/tfhe/pbs_tfhers.cpp, built beside the tree
# with AVX-512 and -DUSE_TFHE_RS=ON (TFHE-rs's default set, which seal_speed_bench has as
# "tfhers") and -DUSE_CONCRETE=ON (its fastest); left out where they are not given. Both
# print milliseconds of a NAND. TFHEpp's submodules BLAKE3, cereal and AES are enough;
# with gcc 12 its link-time optimisation must be off. BRISTOL: a folder with adder64.txt, mult64.txt,
# aes_128.txt; with it whole encrypted runs of p64 on two threads. Needs
# build/release/bench/seal_speed_bench; STINT names another program.
set -euo pipefail
seconds=${1:-3}
here=$(cd "$(dirname "$0")/.." && pwd)
stint=${STINT:-$here/build/release/stint} ours=$here/build/release/bench/seal_speed_bench
for turn in 1 2; do
    for set in tfhers p64 p128; do
        taskset -c 0 "$ours" "$set" "$seconds"
    done
    for peer in "${PEER_RS:-}" "${PEER_FAST:-}"; do
        [ -z "$peer" ] || echo "$(basename "$peer"): $(taskset -c 0 "$peer" | tr '\n' ' ')"
    done
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$stint" bench seal -j 2 --seconds "$seconds"

# whole NAME CIRCUIT SET VALUES: an encrypted run on two threads.
whole() {
    [ -d "keys-$3" ] || "$stint" seal keygen --set-name "$3" --out "keys-$3" >/dev/null
    "$stint" seal encrypt "$2" --key "keys-$3/secret.key" --value "$4" --out in.ct >/dev/null
    printf '%s, %s: ' "$1" "$3"
    "$stint" seal run "$2" --key "keys-$3/eval.key" --in in.ct --out out.ct -j 2 -q
    printf '    sim %s, ' "$("$stint" seal sim "$2" --value "$4" | head -c 200)"
    printf 'decrypted %s\n' "$("$stint" seal decrypt "$2" --key "keys-$3/secret.key" --in out.ct | head -c 200)"
}

# 2^16 / (1 + e^(-x / 2^11)): straight lines between 33 points, 65525 beyond the last.
cat >sigmoid.c <<'END'
#include <stdint.h>
uint16_t sigmoid(int16_t x)
{
    static const uint16_t at[32] = {
        32768, 36843, 40793, 44511, 47911, 50941, 53581, 55834, 57724, 59287, 60565,
        61598, 62428, 63090, 63615, 64030, 64357, 64614, 64816, 64974, 65097,
        65194, 65269, 65328, 65374, 65410, 65438, 65459, 65476, 65489, 65500, 65508};
    static const uint16_t rise[32] = {
        4075, 3950, 3718, 3400, 3030, 2640, 2253, 1890, 1563, 1278, 1033,
        830, 662, 525, 415, 327, 257, 202, 158, 123, 97,
        75, 59, 46, 36, 28, 21, 17, 13, 11, 8, 6};
    uint16_t size = (uint16_t)(x < 0 ? -x : x);
    uint16_t part = (uint16_t)(2 * (size >> 5 & 15) + 1);
    uint16_t y = (uint16_t)(at[size >> 9 & 31] + (rise[size >> 9 & 31] * part >> 5));
    if (size >= 16384)
        y = 65525;
    return x < 0 ? (uint16_t)(65535 - y) : y;
}
END
gcc -O1 -fwrapv -shared -fPIC sigmoid.c -o sigmoid.so
python3 -c '
import ctypes, math
f = ctypes.CDLL("./sigmoid.so").sigmoid
f.restype = ctypes.c_uint16
e = max(abs(f(ctypes.c_int16(x)) / 65536 - 1 / (1 + math.exp(-x / 2048))) for x in range(-32768, 32768))
print(f"sigmoid: error of the worst of all 65,536 inputs {e * 256:.2f} / 2^8")'
"$stint" seal compile sigmoid.c --entry sigmoid --out sigmoid.seal
whole sigmoid sigmoid.seal p128 x=-1234
if [ -n "${BRISTOL:-}" ]; then
    for name in adder64 mult64 aes_128; do
        "$stint" seal import "$BRISTOL/$name.txt" --out "$name.seal"
    done
    whole adder64 adder64.seal p64 "in0=123456789 in1=987654321"
    whole mult64 mult64.seal p64 "in0=123456789 in1=987654321"
    whole aes_128 aes_128.seal p64 "in0=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15 in1=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
fi
