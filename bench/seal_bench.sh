#!/bin/bash
# Bootstraps a second of one core in turns with TFHEpp, and whole programs.
#
#   bench/seal_bench.sh [SECONDS]        3, on each set of ours
#
# PEER_RS and PEER_FAST: TFHEpp's program test/tfhe/pbs_tfhers.cpp, built beside the tree
# with AVX-512 and -DUSE_TFHE_RS=ON (TFHE-rs's default set, which seal_speed_bench has as
# "tfhers") and -DUSE_CONCRETE=ON (its fastest); left out where they are not given. Both
# print milliseconds of a NAND. BRISTOL: a folder with adder64.txt, mult64.txt,
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

# 2^16 / (1 + e^(-x / 2^11)) of 16 bits, of which 11 are behind the point: eight pieces
# by squares and halves, symmetric about 0, within 2^-8 (this script looks).
cat >sigmoid.c <<'END'
#include <stdint.h>
uint16_t sigmoid(int16_t x)
{
    static const uint16_t at[17] = {32768, 36841, 40792, 44511, 47911, 50939, 53571, 55813, 57687,
                                    59230, 60484, 61491, 62293, 62928, 63428, 63819, 64125};
    uint16_t size = (uint16_t)(x < 0 ? -x : x);
    uint16_t y;
    if (size >= 8192 * 2) {
        y = 65410;
        if (size < 11000 * 2)
            y = 64880;
    } else {
        uint16_t piece = size >> 9;
        uint16_t low = at[(piece >> 1) & 15];
        uint16_t high = at[((piece >> 1) & 15) + 1];
        y = piece & 1 ? (uint16_t)((low >> 1) + (high >> 1)) : low;
    }
    return x < 0 ? (uint16_t)(65535 - y) : y;
}
END
if [ -n "${BRISTOL:-}" ]; then
    for name in adder64 mult64 aes_128; do
        "$stint" seal import "$BRISTOL/$name.txt" --out "$name.seal"
    done
    whole adder64 adder64.seal p64 "in0=123456789 in1=987654321"
    whole mult64 mult64.seal p64 "in0=123456789 in1=987654321"
    whole aes_128 aes_128.seal p64 "in0=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15 in1=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
fi
