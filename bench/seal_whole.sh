#!/bin/bash
# Whole encrypted programs on two threads, stint's and TFHEpp's in turns: circuit files of
# Bristol, which TFHEpp evaluates level by level.
#
#   TFHEPP=DIR BRISTOL=DIR bench/seal_whole.sh [CIRCUIT [TURNS [SET]]]        mult64, 1, p64
#
# TFHEPP: a tree of TFHEpp, built in its folders build-RS (-DUSE_TFHE_RS=ON: TFHE-rs's
# default set) and build-CONCRETE (-DUSE_CONCRETE=ON: its fastest), both with AVX-512 and
# without link-time optimisation, by Ninja. PEERS ("build-RS build-CONCRETE") names those to run.
# BRISTOL: a folder with CIRCUIT.txt. GATES: the peers stop after so many, and the time of
# all is in proportion. THREADS (2) and STINT may be set. Prints seconds by the clock and of
# CPU time, which other work on the machine changes less, and the peer's over stint's.
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
    # Seconds by the clock and of CPU time; the latter with reading and unpacking the key.
    TIMEFORMAT='%U %S'
    cpu=$({ time "$stint" seal run "$work/c.seal" --key "$work/keys/eval.key" --in "$work/in.ct" \
        --out "$work/out.ct" -j "$threads" -q --json >"$work/ours" 2>"$work/err"; } 2>&1) ||
        { cat "$work/err"; exit 1; }
    "$stint" seal decrypt "$work/c.seal" --key "$work/keys/secret.key" --in "$work/out.ct" --json |
        cmp - "$work/want"
    ours=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["seconds"])' <"$work/ours")
    cpu=$(awk '{ print $1 + $2 }' <<<"$cpu")
    printf '%s, stint %s: %.2f s, CPU %.2f s\n' "$circuit" "$set" "$ours" "$cpu"
    for peer in "${peers[@]}"; do
        "$peer" "$file" "$threads" ${GATES:+"$GATES"} >"$work/theirs"
        awk -v what="$circuit, $(basename "$peer")" -v ours="$ours" -v cpu="$cpu" '{
            printf "%s: %d of %d gates, %.2f s, CPU %.2f s", what, $1, $2, $3, $4
            if ($1 < $2)
                printf "; all of them %.2f s, CPU %.2f s", $3 * $2 / $1, $4 * $2 / $1
            printf "; %.2f x by the clock, %.2f x by CPU time\n", $3 * $2 / $1 / ours, $4 * $2 / $1 / cpu
        }' "$work/theirs"
    done
done
