#!/bin/sh
# Top-k beside x86-simd-sort, std::nth_element, std::partial_sort and the heap of faiss
# (topk_peers.cpp), or beside NumPy and PyTorch (topk_peers.py). The peers are built or
# installed outside of the tree; none is a dependency.
#   bench/topk_peers.sh BUILD cpp [TYPE [LOG2N,... [ORDER,... [THREADS [RUNS [K,...]]]]]]
#   bench/topk_peers.sh BUILD python [the same; ORDER rows: 32 rows of 50257]
# BUILD holds libstint.so. Needs g++, git, python3-venv; libfaiss-dev is used where it is
# installed. XSS is a clone of x86-simd-sort, made where there is none; PYTHON a Python
# with the NumPy and PyTorch to compare with, else their newest wheels. CSV on stdout.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] || { sed -n '2,10s/^# //p' "$0" >&2; exit 2; }
build=$(cd "$1" && pwd)
what=$2
shift 2
work=${TMPDIR:-/tmp}/stint-topk-peers
mkdir -p "$work"
if [ "$what" = python ]; then
    python=${PYTHON:-$work/venv/bin/python}
    if [ ! -x "$python" ]; then
        python3 -m venv "$work/venv"
        "$work/venv/bin/pip" install --quiet numpy torch
    fi
    exec "$python" "$here/topk_peers.py" "$build/libstint.so" "$@"
fi
xss=${XSS:-$work/x86-simd-sort}
[ -d "$xss" ] || git clone --quiet --depth 1 https://github.com/numpy/x86-simd-sort "$xss"
if [ ! "$work/topk_peers" -nt "$here/topk_peers.cpp" ]; then
    g++ -O3 -march=native -std=c++17 -I"$xss/src" -I"$here/../include" \
        -o "$work/topk_peers" "$here/topk_peers.cpp" "$build/libstint.so"
fi
LD_LIBRARY_PATH="$build" exec "$work/topk_peers" "$@"
