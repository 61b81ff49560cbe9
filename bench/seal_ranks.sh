#!/bin/bash
# Two ranks and one on a wide circuit: two network namespaces, joined by a link that is
# shaped, a rank and a core each. Needs root.
#
#   bench/seal_ranks.sh [RATE [SET]]        100mbit, p128
#
# 512 multiplications of 4 bits side by side. Prints the seconds of one rank on one core,
# of two, and the ratio; the encrypted outputs must be the same.
set -euo pipefail
rate=${1:-100mbit} set=${2:-p128}
here=$(cd "$(dirname "$0")/.." && pwd)
stint=${STINT:-$here/build/release/stint} limit=900
. "$here/bench/link_pair.sh"
link_pair_up "$rate"
cat >"$work/wide.c" <<'END'
#include <stdint.h>
void wide(const uint8_t a[512], const uint8_t b[512], uint8_t out[512])
{
    for (int i = 0; i < 512; i++)
        out[i] = (uint8_t)((a[i] & 3) * (b[i] & 3));
}
END
"$stint" seal compile "$work/wide.c" --entry wide --out "$work/wide.seal"
"$stint" seal keygen --set-name "$set" --out "$work/keys" >/dev/null
python3 -c '
import json
json.dump({"a": [i % 4 for i in range(512)], "b": [i // 4 % 4 for i in range(512)]}, open("'"$work"'/v.json", "w"))'
"$stint" seal encrypt "$work/wide.seal" --key "$work/keys/secret.key" --values "$work/v.json" --out "$work/in.ct" >/dev/null
run=("$stint" seal run "$work/wide.seal" --key "$work/keys/eval.key" --in "$work/in.ct" -j 1 -q --json)
taskset -c 0 "${run[@]}" --out "$work/one.ct" >"$work/one.json"
both "${run[@]}" --out "$work/two.ct" --net-root @ROOT --net-ranks 2 --net-rank @RANK
python3 - "$work" <<'PY'
import json, sys
one, two = (json.load(open(f"{sys.argv[1]}/{n}")) for n in ("one.json", "rank0"))
print(f"{one['bootstraps']} bootstraps: one rank {one['seconds']:.2f} s, two {two['seconds']:.2f} s, "
      f"{one['seconds'] / two['seconds']:.2f} x; same outputs: {one['output_sha256'] == two['output_sha256']}")
PY
