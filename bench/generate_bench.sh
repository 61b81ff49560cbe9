#!/bin/bash
# Tokens a second of one stream, GPT-2 124M shape, against the bandwidth of memory and
# PyTorch; the programs take turns. Threads of PyTorch's that wait do so asleep
# (OMP_WAIT_POLICY), as ours do: where a machine is shared, those that spin keep the
# others from their core.
# usage: generate_bench.sh [BUILD [PYTHON...]]
set -u
build=${1:-build/release}
[ $# -gt 0 ] && shift
here=$(cd "$(dirname "$0")" && pwd)
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
for round in 1 2; do
    for threads in 1 2; do
        "$build/bench/generate_bench" "$threads" 24
        for python in "$@"; do
            "$python" "$here/generate_pytorch.py" "$threads" 24
        done
    done
done
