#!/bin/bash
# Known answers: AES-128 and SHA-256 in C (FIPS 197 and 180), divisions against gcc, and
# Bristol's circuits before and after mapping, by random inputs and by the equivalence check
# of abc:
#
#   bench/seal_standards.sh
#
# BRISTOL: a folder with circuit files NAME.txt, which are left out without it. Needs gcc,
# and berkeley-abc for the latter, which gets CEC (600) seconds for each. STINT names another
# program.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
stint=${STINT:-$here/build/release/stint}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# The table of AES is computed when the program is unrolled: nothing of it is secret.
cat >aes.c <<'END'
#include <stdint.h>
static uint8_t twice(uint8_t x)
{
    return (uint8_t)(x << 1 ^ (x >> 7) * 0x1b);
}
static uint8_t turn(uint8_t x, int n)
{
    return (uint8_t)(x << n | x >> (8 - n));
}
/* sbox[p] for all powers p of 3 in GF(2^8), whose inverses are the powers of 0xf6. */
static void fill(uint8_t sbox[256])
{
    uint8_t p = 1, q = 1;
    for (int i = 0; i < 255; i++) {
        p ^= twice(p);
        q ^= (uint8_t)(q << 1);
        q ^= (uint8_t)(q << 2);
        q ^= (uint8_t)(q << 4);
        if (q & 0x80)
            q ^= 9;
        sbox[p] = q ^ turn(q, 1) ^ turn(q, 2) ^ turn(q, 3) ^ turn(q, 4) ^ 0x63;
    }
    sbox[0] = 0x63;
}
void aes(const uint8_t key[16], const uint8_t block[16], uint8_t out[16])
{
    uint8_t sbox[256], k[16], s[16], t[16], factor = 1;
    fill(sbox);
    for (int i = 0; i < 16; i++) {
        k[i] = key[i];
        s[i] = block[i] ^ key[i];
    }
    for (int round = 1; round <= 10; round++) {
        for (int i = 0; i < 4; i++)
            k[i] ^= sbox[k[12 + (i + 1) % 4]];
        k[0] ^= factor;
        factor = twice(factor);
        for (int i = 4; i < 16; i++)
            k[i] ^= k[i - 4];
        for (int i = 0; i < 16; i++)
            t[i] = sbox[s[(i + 4 * (i % 4)) % 16]];
        for (int c = 0; c < 16; c += 4)
            for (int i = 0; i < 4; i++) {
                uint8_t a = t[c + i], b = t[c + (i + 1) % 4];
                uint8_t rest = t[c + (i + 2) % 4] ^ t[c + (i + 3) % 4];
                s[c + i] = (round < 10 ? twice(a ^ b) ^ b ^ rest : a) ^ k[c + i];
            }
    }
    for (int i = 0; i < 16; i++)
        out[i] = s[i];
}
END

# Constants are the first bits of roots of primes, computed with whole numbers.
cat >sha.c <<'END'
#include <stdint.h>
static uint32_t turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}
/* 32 bits after the point of the square or cube root of p. */
static uint32_t root(uint64_t p, int cube)
{
    uint64_t x = 0;
    for (int bit = 36; bit >= 0; bit--) {
        uint64_t y = x | (uint64_t)1 << bit, hi, lo, top;
        lo = (y & 0xffffffff) * (y & 0xffffffff); /* y^2 = hi 2^64 + lo */
        top = (y >> 32) * (y & 0xffffffff) * 2;
        hi = (y >> 32) * (y >> 32) + (top >> 32) + (lo + (top << 32) < lo);
        lo += top << 32;
        if (cube) { /* y^3 / 2^96, rounded up, against p */
            uint64_t a = (lo >> 32) * (y & 0xffffffff) + ((lo & 0xffffffff) * (y & 0xffffffff) >> 32);
            uint64_t b = hi * (y & 0xffffffff) + (lo >> 32) * (y >> 32) + (a >> 32);
            b += ((a & 0xffffffff) + (lo & 0xffffffff) * (y >> 32) >> 32);
            if (hi * (y >> 32) + (b >> 32) < p)
                x = y;
        } else if (hi < p) {
            x = y;
        }
    }
    return (uint32_t)x;
}
void sha256(const uint8_t block[64], uint32_t out[8])
{
    uint32_t w[64], h[8], v[8], k[64];
    int primes = 0;
    for (int p = 2; primes < 64; p++) {
        int prime = 1;
        for (int d = 2; d * d <= p; d++)
            if (p % d == 0)
                prime = 0;
        if (prime) {
            if (primes < 8)
                h[primes] = root(p, 0);
            k[primes++] = root(p, 1);
        }
    }
    for (int i = 0; i < 16; i++) {
        w[i] = 0;
        for (int j = 0; j < 4; j++)
            w[i] = w[i] << 8 | block[4 * i + j];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
               (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    for (int i = 0; i < 8; i++)
        v[i] = h[i];
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t one = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
                       ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
        uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
                       ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        for (int j = 7; j > 0; j--)
            v[j] = v[j - 1];
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        out[i] = h[i] + v[i];
}
END

cat >divide.c <<'END'
#include <stdint.h>
uint64_t divide(int64_t a, uint64_t b, int16_t c, int64_t out[3])
{
    out[0] = (int64_t)((uint64_t)a % b);
    out[1] = a / (c | 1);
    out[2] = a % (c | 1);
    return (uint64_t)a / b;
}
END
"$stint" seal compile aes.c --entry aes --effort 4 --out aes.seal
"$stint" seal compile sha.c --entry sha256 --effort 4 --out sha.seal
"$stint" seal compile divide.c --entry divide --effort 4 --out divide.seal
for name in aes sha divide; do
    gcc -O1 -w -fwrapv -shared -fPIC "$name.c" -o "$name.so"
done
python3 - "$stint" <<'PY'
import ctypes, hashlib, json, random, subprocess, sys

def sim(circuit, values):
    json.dump(values, open("v.json", "w"))
    return json.loads(subprocess.check_output(
        [sys.argv[1], "seal", "sim", circuit, "--values", "v.json", "--json"]))["values"]

# FIPS 197, appendix B and C.1.
for key, block, want in (
        ("2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734", "3925841d02dc09fbdc118597196a0b32"),
        ("000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff", "69c4e0d86a7b0430d8cdb78070b4c55a")):
    got = sim("aes.seal", {"key": list(bytes.fromhex(key)), "block": list(bytes.fromhex(block))})["out"]
    assert bytes(got).hex() == want, bytes(got).hex()
aes = ctypes.CDLL("./aes.so").aes
random.seed(1)
for _ in range(20):
    key, block, out = random.randbytes(16), random.randbytes(16), (ctypes.c_uint8 * 16)()
    aes(key, block, out)
    assert sim("aes.seal", {"key": list(key), "block": list(block)})["out"] == list(out)
print("AES-128 in C: FIPS 197's two vectors, and gcc's answers on 20 random inputs")

# FIPS 180: "abc", the empty message, and random ones of a block.
for message in [b"abc", b""] + [random.randbytes(n) for n in range(37, 56)]:
    block = message + b"\x80" + bytes(55 - len(message)) + (8 * len(message)).to_bytes(8, "big")
    got = sim("sha.seal", {"block": list(block)})["out"]
    assert b"".join(w.to_bytes(4, "big") for w in got) == hashlib.sha256(message).digest()
print('SHA-256 in C: "abc", the empty message and 19 others')

divide = ctypes.CDLL("./divide.so").divide
divide.restype = ctypes.c_uint64
for i in range(100):
    a, c = random.randrange(-2**63, 2**63) >> random.randrange(63), random.randrange(-2**15, 2**15)
    b, out = max(random.randrange(2**64) >> random.randrange(64), 1), (ctypes.c_int64 * 3)()
    want = divide(ctypes.c_int64(a), ctypes.c_uint64(b), ctypes.c_int16(c), out)
    got = sim("divide.seal", {"a": a, "b": b, "c": c})
    assert got == {"return": want, "out": list(out)}, (a, b, c, got, want, list(out))
print("divisions of 64 bits: gcc's answers on 100 inputs")
PY
# Bristol's file as BLIF without any part of stint.
to_blif() {
    awk 'NR == 1 { gates = $1; wires = $2; print ".model original" }
        NR == 2 { printf ".inputs"; for (i = 2; i <= 1 + $1; i++) all += $i
                  for (i = 0; i < all; i++) printf " w%d", i; print "" }
        NR == 3 { printf ".outputs"; for (i = 2; i <= 1 + $1; i++) out += $i
                  for (i = wires - out; i < wires; i++) printf " w%d", i; print "" }
        $NF == "AND" { printf ".names w%d w%d w%d\n11 1\n", $3, $4, $5 }
        $NF == "XOR" { printf ".names w%d w%d w%d\n01 1\n10 1\n", $3, $4, $5 }
        $NF == "INV" { printf ".names w%d w%d\n0 1\n", $3, $4 }
        $NF == "EQW" { printf ".names w%d w%d\n1 1\n", $3, $4 }
        $NF == "EQ" { printf ".names w%d\n%s", $4, $3 ? "1\n" : "" }
        END { print ".end" }' "$1"
}
[ -n "${BRISTOL:-}" ] || exit 0
cat >plain.py <<'PY'
import json, random, subprocess, sys
lines = [line.split() for line in open(sys.argv[2])]
wires, inputs, outputs = int(lines[0][1]), sum(map(int, lines[1][1:])), sum(map(int, lines[2][1:]))
gates = [line for line in lines[3:] if line]

def run(bits):
    wire = bits + [0] * (wires - inputs)
    for g in gates:
        a, b = wire[int(g[2])], wire[int(g[3])]
        wire[int(g[-2])] = {"AND": a & b, "XOR": a ^ b, "INV": 1 - a, "EQW": a, "EQ": int(g[2]) & 1}[g[-1]]
    return wire[-outputs:]

def values(ports, bits):
    out, at = {}, 0
    for p in ports:
        numbers = [sum(bits[at + k * p["bits"] + i] << i for i in range(p["bits"])) for k in range(p["count"])]
        at += p["bits"] * p["count"]
        out[p["name"]] = numbers if p["count"] > 1 else numbers[0]
    return out

shape = json.load(open("mapped.json"))
for _ in range(20):
    bits = [random.getrandbits(1) for _ in range(inputs)]
    json.dump(values(shape["inputs"], bits), open("v.json", "w"))
    got = json.loads(subprocess.check_output(
        [sys.argv[1], "seal", "sim", "mapped.seal", "--values", "v.json", "--json"]))["values"]
    assert got == values(shape["outputs"], run(bits)), bits
print(f"{shape['bootstraps']} bootstraps, the same on 20 random inputs as gate by gate;", end=" ", flush=True)
PY
for file in "$BRISTOL"/*.txt; do
    name=$(basename "$file" .txt)
    to_blif "$file" >original.blif
    "$stint" seal import "$file" --out mapped.seal --json >mapped.json
    "$stint" seal export mapped.seal --out mapped.blif -q >/dev/null
    printf '%s: ' "$name"
    python3 plain.py "$stint" "$file"
    printf 'abc &cec: '
    for side in original mapped; do
        berkeley-abc -q "read_blif $side.blif; strash; write_aiger $side.aig"
    done
    timeout "${CEC:-600}" berkeley-abc -q "&cec original.aig mapped.aig" | grep -o 'Networks are[a-zA-Z ]*equivalent' ||
        echo 'not decided in the time'
done
