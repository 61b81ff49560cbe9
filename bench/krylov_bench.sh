#!/bin/bash
# CG with IC(0) to 1e-8 beside PETSc: iterations, seconds of the factor and of the solve, on
# one thread beside one process and on two beside two, in turns; and two ranks of ours.
#
#     bench/krylov_bench.sh [FOLDER]              matrices go there (/tmp/krylov_bench)
#     ROUNDS=3 SIZE=60 MATRICES="a.mtx b.mtx" bench/krylov_bench.sh
#     PYTHON=venv/bin/python MATS=FOLDER bench/krylov_bench.sh
#
# SIZE: the side of poisson3d (60; 100 is the standard of docs/solve.md and takes some 4
# minutes). Needs libpetsc-real-dev and mpirun. MATRICES: symmetric, positive definite ones.
# PYTHON: of a virtual environment with ilupp and scipy: iterations beside those with ilupp's
# factors (bench/krylov_ilupp.py) of all matrices and of the .mat files of MATS, as those of
# PyAMG's wheel.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
stint=${STINT:-$here/build/release/stint}
folder=${1:-/tmp/krylov_bench}
rounds=${ROUNDS:-3} side=${SIZE:-60}
mkdir -p "$folder" && cd "$folder" || exit 1
petsc=$(find /usr/lib/petscdir -maxdepth 1 -name '3*' | sort | tail -1)
[ -d "$petsc" ] || petsc=/usr/lib/petsc
pc=$(find /usr/lib -name 'PETSc.pc' -o -name 'petsc.pc' 2>/dev/null | grep -i real | head -1)
[ "$pc" ] || pc=$(find /usr/lib -iname 'petsc*.pc' 2>/dev/null | head -1)
[ "$pc" ] || { echo "libpetsc-real-dev is not there" >&2; exit 1; }
flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs "$(basename "$pc" .pc)") || exit 1
# shellcheck disable=SC2086
mpicc -O3 -march=native -o krylov_petsc "$here/bench/krylov_petsc.c" $flags || exit 1

set_of=
for kind in "poisson3d:$side" "weighted3d:$((side / 2))" geometric:50000 poisson2d:300; do
    file=${kind/:/_}.mtx
    [ -e "$file" ] || "$stint" data matrix "$kind" --out "$file" -q || exit 1
    set_of="$set_of $file"
done
field() { grep -o "\"$2\":[^,}]*" "$1" | cut -d: -f2; }
root="--allow-run-as-root --oversubscribe"
export OMPI_MCA_btl_base_warn_component_unused=0

printf '%-22s %6s %6s | %9s %9s %6s | %9s %9s %6s | %9s\n' "matrix, seconds" iter petsc \
    "1 thread" "1 proc" ratio "2 threads" "2 procs" ratio "2 ranks"
# shellcheck disable=SC2086
for file in $set_of ${MATRICES:-}; do
    rm -f turns
    for _ in $(seq "$rounds"); do
        "$stint" solve "$file" --tol 1e-8 -j 1 --json >one || exit 1
        mpirun $root -n 1 ./krylov_petsc "$file" 1 >peer1 || exit 1
        "$stint" solve "$file" --tol 1e-8 -j 2 --json >two || exit 1
        mpirun $root -n 2 ./krylov_petsc "$file" 1 >peer2 || exit 1
        mpirun $root -n 2 "$stint" solve "$file" --tol 1e-8 -j 1 --json >ranks || exit 1
        [ "$(field one x_sha256)" = "$(field two x_sha256)" ] &&
            [ "$(field one x_sha256)" = "$(field ranks x_sha256)" ] ||
            { echo "$file: another answer on other threads or ranks" >&2; exit 1; }
        echo "$(field one solve_s) $(field peer1 solve_s) $(field two solve_s)" \
            "$(field peer2 solve_s) $(field ranks solve_s)" >>turns
    done
    sort -g turns | awk -v name="$(basename "$file" .mtx)" -v i="$(field one iterations)" \
        -v p="$(field peer1 iterations)" '
        { for (k = 1; k <= 5; k++) v[k, NR] = $k; r1[NR] = $2 / $1; r2[NR] = $4 / $3 }
        function middle(a, n,   j, k, t) {
            for (j = 1; j <= n; j++) for (k = j + 1; k <= n; k++)
                if (a[k] < a[j]) { t = a[j]; a[j] = a[k]; a[k] = t }
            return a[int((n + 1) / 2)]
        }
        function column(k,   j, a) { for (j = 1; j <= NR; j++) a[j] = v[k, j]; return middle(a, NR) }
        END { printf "%-22s %6d %6d | %9.4f %9.4f %6.2f | %9.4f %9.4f %6.2f | %9.4f\n", name, i, p,
              column(1), column(2), middle(r1, NR), column(3), column(4), middle(r2, NR), column(5) }'
done

if [ "${PYTHON:-}" ]; then
    real=
    if [ "${MATS:-}" ]; then
        mkdir -p real
        real=$("$PYTHON" "$here/bench/mat_matrices.py" "$MATS" real) || exit 1
    fi
    # shellcheck disable=SC2086
    "$PYTHON" "$here/bench/krylov_ilupp.py" "$stint" $set_of ${MATRICES:-} $real
fi
