#!/bin/sh
# Normal numbers a second of Stint's generators and of std::normal_distribution, both
# programs in turns, best of them each, and the ratio to the faster of C++'s engines.
#   bench/normal_bench.sh BUILD [TURNS]
# BUILD: a build folder with the target `bench` (or normal_bench) built. Needs g++.
# STINT_ISA is obeyed; ours run at what the CPU has otherwise, and so does the peer, which
# is compiled for it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,8s/^# //p' "$0" >&2; exit 2; }
build=$(cd "$1" && pwd)
turns=${2:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
g++ -O3 -march=native -std=c++17 -o "$work/peers" "$here/normal_peers.cpp"
turn=0
while [ $turn -lt "$turns" ]; do
    "$build/bench/normal_bench"
    "$work/peers"
    turn=$((turn + 1))
done > "$work/csv"
echo 'who,million a second,beside std::normal_distribution'
awk -F, '{ if ($2 > most[$1]) most[$1] = $2; if (!($1 in seen)) { seen[$1]; order[++n] = $1 } }
    /^std/ && $2 > peer { peer = $2 }
    END { for (i = 1; i <= n; i++) printf "%s,%.0f,%.1f\n", order[i], most[order[i]], most[order[i]] / peer }' \
    "$work/csv"
