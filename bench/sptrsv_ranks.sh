#!/bin/bash
# Triangular solves over ranks: one process, two ranks of one thread that share memory, two
# through sockets, and pushes of single entries by MPI's one-sided calls; seconds, memory,
# messages beside those counted beforehand.
#
#     bench/sptrsv_ranks.sh [FOLDER]          the matrix goes there (/tmp/sptrsv_ranks)
#     KIND=poisson3d:120 ROUNDS=3 bench/sptrsv_ranks.sh
#
# poisson3d:80, the standard, takes about a minute; :120 some 4. Needs mpicc and mpirun.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
stint=${STINT:-$here/build/release/stint}
folder=${1:-/tmp/sptrsv_ranks}
kind=${KIND:-poisson3d:80} rounds=${ROUNDS:-3}
mkdir -p "$folder" && cd "$folder" || exit 1
mpicc -O3 -march=native -o sptrsv_rma "$here/bench/sptrsv_rma.c" -lm || exit 1
file=${kind/:/_}.mtx
[ -e "$file" ] || "$stint" data matrix "$kind" --out "$file" -q || exit 1
field() { grep -o "\"$2\":[^,}]*" "$1" | cut -d: -f2; }
run="mpirun --allow-run-as-root --oversubscribe -n 2"
ask="--triangle lower --solves 100 --json"

printf '%10s %10s %10s %10s | %8s | %s\n' "1 process" "2 shared" "2 sockets" "rma" "peak MiB" \
    "messages and bytes: sent, counted beforehand"
# shellcheck disable=SC2086
for _ in $(seq "$rounds"); do
    "$stint" solve "$file" $ask -j 1 >one || exit 1
    $run "$stint" solve "$file" $ask -j 1 >shared || exit 1
    $run "$stint" solve "$file" $ask -j 1 --net-sockets >sockets || exit 1
    $run ./sptrsv_rma "$file" 1 >rma || exit 1
    [ "$(field one x_sha256)" = "$(field shared x_sha256)" ] &&
        [ "$(field one x_sha256)" = "$(field sockets x_sha256)" ] ||
        { echo "another answer on ranks" >&2; exit 1; }
    printf '%10.5f %10.5f %10.5f %10.5f | %3d %3d | %d, %d; %d, %d\n' "$(field one solve_s)" \
        "$(field shared solve_s)" "$(field sockets solve_s)" "$(field rma solve_s)" \
        $(($(field one peak_rss_bytes) >> 20)) $(($(field shared peak_rss_bytes) >> 20)) \
        "$(field sockets messages)" "$(field sockets planned_messages)" \
        "$(field sockets bytes_sent)" "$(field sockets planned_bytes)"
done
