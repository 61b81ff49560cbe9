#!/bin/bash
# Triangular solves beside CXSparse, CHOLMOD and MKL over a set of 30 matrices and more:
# seconds of a solve on one and two threads, the chosen strategy beside the serial loop,
# what is predicted, what analysis takes. Each round runs ours, then the peers; figures are
# medians of ROUNDS, ratios are taken round by round.
#
#     bench/sptrsv_bench.sh [FOLDER]             matrices go there (/tmp/sptrsv_bench)
#     ROUNDS=3 SIZE=small MKL=venv MATRICES="a.mtx b.mtx" bench/sptrsv_bench.sh
#     PYTHON=venv/bin/python MATS=FOLDER bench/sptrsv_bench.sh
#
# SIZE=small (the standard) takes about 5 minutes, SIZE=full some 25. Needs libsuitesparse-dev.
# MKL: a virtual environment with the packages mkl and mkl-devel; without it MKL is left
# out. MATRICES: more files, taken by their lower triangles; PYTHON (with scipy) and MATS: a
# folder of .mat files, as those of PyAMG's wheel. SIZE=none: those alone.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
stint=${STINT:-$here/build/release/stint}
folder=${1:-/tmp/sptrsv_bench}
rounds=${ROUNDS:-3} size=${SIZE:-small} mkl=${MKL:-}
mkdir -p "$folder" && cd "$folder" || exit 1

flags="-I/usr/include -lcxsparse -lcholmod -lm"
if [ -n "$mkl" ] && [ -e "$mkl/include/mkl_spblas.h" ]; then
    library=$(find "$mkl/lib" -name 'libmkl_rt.so*' | head -1)
    flags="$flags -DHAVE_MKL -I$mkl/include $library -Wl,-rpath,$(dirname "$library")"
    export MKL_THREADING_LAYER=GNU MKL_INTERFACE_LAYER=LP64
fi
# shellcheck disable=SC2086
gcc -O3 -march=native -o peers "$here/bench/sptrsv_peers.c" $flags || exit 1

if [ "$size" = full ]; then
    made="poisson2d:300 poisson2d:700 poisson3d:40 poisson3d:80 poisson3d:120 weighted2d:500
        weighted3d:60 rmat:14 rmat:16 rmat:18 geometric:100000 geometric:500000 random:100000
        random:500000 chain:1000000 band:100000 band:500000 arrow:500000"
    factors="poisson2d:300 poisson2d:500 poisson3d:20 poisson3d:30 weighted2d:300 weighted3d:20
        geometric:20000 geometric:50000 rmat:9 rmat:10 arrow:100000 poisson2d:100"
elif [ "$size" = none ]; then
    made='' factors=''
else
    made="poisson2d:100 poisson2d:300 poisson3d:20 poisson3d:40 poisson3d:60 weighted2d:200
        weighted3d:30 rmat:12 rmat:14 rmat:16 geometric:20000 geometric:100000 random:20000
        random:100000 chain:20000 chain:200000 band:20000 band:100000 arrow:20000 arrow:200000"
    factors="poisson2d:60 poisson2d:150 poisson2d:250 poisson3d:10 poisson3d:16 weighted2d:120
        weighted3d:12 geometric:5000 geometric:20000 rmat:8 rmat:9 arrow:20000"
fi
set_of=
for kind in $made; do
    file=${kind/:/_}.mtx
    [ -e "$file" ] || "$stint" data matrix "$kind" --out "$file" -q || exit 1
    set_of="$set_of $file"
done
for kind in $factors; do
    file=${kind/:/_}.mtx factor=cholesky_${kind/:/_}.mtx
    [ -e "$file" ] || "$stint" data matrix "$kind" --out "$file" -q || exit 1
    [ -e "$factor" ] || ./peers --factor "$file" "$factor" || exit 1
    set_of="$set_of $factor"
done

real=
if [ "${PYTHON:-}" ] && [ "${MATS:-}" ]; then
    mkdir -p real
    real=$("$PYTHON" "$here/bench/mat_matrices.py" "$MATS" real) || exit 1
fi

rm -f rows
# shellcheck disable=SC2086
for file in $set_of ${MATRICES:-} $real; do
    for _ in $(seq "$rounds"); do
        "$stint" bench sptrsv "$file" --json -j 1 >one || exit 1
        ./peers "$file" 11 >peers.json || exit 1
        "$stint" bench sptrsv "$file" --json -j 2 >two || exit 1
        "$stint" bench sptrsv "$file" --json -j 2 --solves 1 >once || exit 1
        printf '%s\t%s\t%s\t%s\t%s\n' "$(basename "$file" .mtx)" "$(cat one)" "$(cat two)" \
            "$(cat once)" "$(cat peers.json)" >>rows
    done
done
python3 "$here/bench/sptrsv_table.py" <rows
