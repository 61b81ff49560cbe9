#!/bin/bash
# Whole encrypted programs on two threads, stint's and TFHEpp's in turns: circuit files of
# Bristol, which TFHEpp evaluates level by level.
#
#   TFHEPP=DIR BRISTOL=DIR bench/seal_whole.sh [CIRCUIT [TURNS [SET]]]        mult64, 1, p64
#
# TFHEPP: a tree of TFHEpp, built in its folders build-RS (-DUSE_TFHE_RS=ON: TFHE-rs's
# default set) and build-CONCRETE (-DUSE_CONCRETE=ON: its fastest), both with AVX-512 and
# without link-time optimisation, by Ninja. PEERS ("build-RS build-CONCRETE") names those to run.
# BRISTOL: a folder with CIRCUIT.txt. THREADS (2) and STINT may be set. Prints seconds of
# each, and the peer's over stint's.
set -euo pipefail
circuit=${1:-mult64} turns=${2:-1} set=${3:-p64} threads=${THREADS:-2}
here=$(cd "$(dirname "$0")/.." && pwd)
stint=${STINT:-$here/build/release/stint}
tree=$(cd "${TFHEPP:?the folder of TFHEpp}" && pwd)
file=$(cd "${BRISTOL:?the folder of the circuits}" && pwd)/$circuit.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
peers=()
for name in ${PEERS:-build-RS build-CONCRETE}; do
    build=$tree/$name peer=$work/$name
    # The definitions by which the library itself was built.
    defines=$(grep -h '^  DEFINES' "$build/build.ninja" | grep -v USE_AVX512 | grep -m 1 USE_SPQLIOS)
    # shellcheck disable=SC2086
    g++ -std=gnu++20 -march=native -O3 -funroll-loops -fopenmp -w ${defines#*=} \
        -I"$tree/include" -I"$tree/thirdparties/spqlios-intl" -I"$tree/thirdparties/cereal/include" \
        -I"$tree/thirdparties/BLAKE3/c" -I"$tree/thirdparties/AES/src" "$here/bench/seal_tfhepp.cpp" \
        -Wl,--start-group $(find "$build" -name '*.a') -Wl,--end-group -o "$peer"
    peers+=("$peer")
done
"$stint" seal keygen --set-name "$set" --out "$work/keys" >/dev/null
# Values of all inputs: bytes, or one number where they fit.
"$stint" seal import "$file" --out "$work/c.seal" --json | python3 -c '
import json, sys
print(json.dumps({p["name"]: 81985529216486895 % 2 ** p["bits"] if p["count"] == 1
                  else [i * 37 % 256 for i in range(p["count"])] for p in json.load(sys.stdin)["inputs"]}))' \
    >"$work/v.json"
"$stint" seal encrypt "$work/c.seal" --key "$work/keys/secret.key" --values "$work/v.json" \
    --out "$work/in.ct" >/dev/null
"$stint" seal sim "$work/c.seal" --values "$work/v.json" --json >"$work/want"
for ((turn = 0; turn < turns; turn++)); do
    "$stint" seal run "$work/c.seal" --key "$work/keys/eval.key" --in "$work/in.ct" --out "$work/out.ct" \
        -j "$threads" -q --json >"$work/ours"
    "$stint" seal decrypt "$work/c.seal" --key "$work/keys/secret.key" --in "$work/out.ct" --json |
        cmp - "$work/want"
    ours=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["seconds"])' <"$work/ours")
    printf '%s, stint %s: %.2f s, as the plain run\n' "$circuit" "$set" "$ours"
    for peer in "${peers[@]}"; do
        line=$("$peer" "$file" "$threads")
        printf '%s, %s: %s; ' "$circuit" "$(basename "$peer")" "$line"
        awk -v ours="$ours" '{ for (i = 2; i <= NF; i++) if ($i == "s,") printf "%.2f x\n", $(i - 1) / ours }' \
            <<<"$line"
    done
done
