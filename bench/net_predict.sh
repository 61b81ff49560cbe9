#!/usr/bin/env bash
# Does `stint net predict` foresee sums that nobody has measured? Two network namespaces, joined by
# a veth pair that tc shapes: the link is measured, then 20 sums of gradients of 5 sizes that
# measuring knew nothing of are predicted from links.json, and run. Needs root.
#
#   bench/net_predict.sh [RATE...]      (1gbit 100mbit)
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release} runs=${RUNS:-5}
[ $# -gt 0 ] || set -- 1gbit 100mbit
. bench/link_pair.sh
burst=40kb # as little as real links: a bucket is a loan that a stream of messages gets once
link_pair_up 1gbit
for rate; do
    shape "$rate"
    both "$build/stint" net measure -o "$work/links-@RANK.json" --net-root @ROOT \
        --net-ranks 2 --net-rank @RANK -q
    sizes="310007 740011 1750013 3200017 6400003"
    case $rate in [0-9][0-9]mbit | [0-9][0-9][0-9]mbit) sizes="150001 310007 740011 1200007 1750013" ;; esac
    : >"$work/sums"
    for values in $sizes; do
        both "$build/bench/net_exchange_bench" @ROOT 2 @RANK "$values" "$runs"
        grep -E '^(float32, exact tree|[248] bits)' "$work/rank0" |
            while IFS=$'\t' read -r way median _; do
                bits=${way% bits}
                [ "$bits" != "$way" ] || bits=32
                echo "$values $bits $median $("$build/stint" net predict "$work/links-0.json" \
                    --values "$values" --bits "$bits" --json |
                    python3 -c 'import json,sys; print(json.load(sys.stdin)["seconds"])')"
            done >>"$work/sums"
    done
    python3 - "$work/sums" "$rate" <<'PY'
import statistics
import sys

rows = [line.split() for line in open(sys.argv[1])]
print(f"== {sys.argv[2]}: {len(rows)} sums of two ranks\n"
      f"{'values':>9} {'bits':>4} {'measured':>10} {'predicted':>10}  error")
errors = []
for values, bits, measured, predicted in rows:
    error = float(predicted) / float(measured) - 1
    errors.append(abs(error))
    print(f"{values:>9} {bits:>4} {1e3 * float(measured):>7.2f} ms {1e3 * float(predicted):>7.2f} ms"
          f"  {100 * error:+.1f} %")
print(f"median error {100 * statistics.median(errors):.1f} %, largest {100 * max(errors):.1f} %")
PY
done
