#!/bin/sh
# Top-k beside NumPy (the newest wheel, whose partition and argpartition are
# x86-simd-sort), torch.topk, std::nth_element, std::partial_sort and the heap of faiss.
# The peers are built or installed outside of the tree; none is a dependency.
#   bench/topk_peers.sh BUILD [LOG2N,...] [ORDER,...] [RUNS]
# BUILD holds libstint.so. Needs g++, python3-venv; python3-torch and libfaiss-dev are used
# where they are installed. CSV on stdout.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,8s/^# //p' "$0" >&2; exit 2; }
build=$1
shift
work=${TMPDIR:-/tmp}/stint-topk-peers
mkdir -p "$work"
g++ -O3 -march=native -shared -fPIC -o "$work/peers.so" "$here/topk_peers.cpp" -lfaiss \
    2>"$work/faiss.log" || g++ -O3 -march=native -shared -fPIC -o "$work/peers.so" \
    "$here/topk_peers.cpp"
if [ ! -x "$work/venv/bin/python" ]; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet numpy
fi
"$work/venv/bin/python" "$here/topk_peers.py" "$build/libstint.so" "$work/peers.so" "$@"
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    /usr/bin/python3 "$here/topk_peers.py" "$build/libstint.so" "$work/peers.so" "$@" |
        sed 1d
fi
