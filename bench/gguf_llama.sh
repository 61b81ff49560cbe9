#!/bin/bash
# GGUF files through Stint and llama.cpp: logits of small random networks, of both beside each
# other and beside NumPy in double precision; then tokens a second of one stream of a random
# Llama of a billion parameters, in turns, and the share of memory's bandwidth that ours
# takes. Needs a build with libstint.so, `bench/generate_bench`
# (which measures bandwidth), a C compiler, and Python with numpy and gguf.
#
# llama.cpp, from its sources (those of the package llama-cpp-python are in vendor/llama.cpp):
#   cmake -S llama.cpp -B llama.build -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON \
#     -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_SERVER=OFF -DCMAKE_C_FLAGS_RELEASE='-O3 -march=native' \
#     -DCMAKE_CXX_FLAGS_RELEASE='-O3 -march=native'
#   cmake --build llama.build --target llama-bench
#
# usage: gguf_llama.sh LLAMA_SOURCE LLAMA_BUILD [BUILD [PYTHON [ROUNDS [THREADS]]]]
# 3 GB in $TMPDIR. Logits alone: ROUNDS 0.
set -eu
source=$1 llama=$2 build=${3:-build/release} python=${4:-python3} rounds=${5:-5} threads=${6:-2}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$llama/bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# ---- logits
cc -O2 -I"$source/include" -I"$source/ggml/include" "$here/gguf_llama_logits.c" \
    -o "$work/logits" -L"$llama/bin" -lllama -lggml -lggml-base
tokens="1 17 300 42 999 7 7 512 63 128 5 800"
for arch in llama gpt2; do
    for type in F32 Q8_0 Q4_0; do
        "$python" "$here/gguf_llama_model.py" "$work/$arch.gguf" "$arch" "$type"
        "$work/logits" "$work/$arch.gguf" $tokens >"$work/theirs"
        for mode in plain table; do
            "$python" "$here/gguf_reference.py" "$work/$arch.gguf" $mode $tokens >"$work/$mode"
        done
        STINT_LIBRARY=$build/libstint.so PYTHONPATH=$here/../python "$python" - \
            "$work/$arch.gguf" "$work" "$arch $type" $tokens <<'PY'
import sys

import numpy as np
import stint

work, name = sys.argv[2:4]
theirs = np.fromfile(f"{work}/theirs", np.float32)
double, table = (np.fromfile(f"{work}/{mode}") for mode in ("plain", "table"))
with stint.load(sys.argv[1]) as model:
    ours = model.logits(np.array(sys.argv[4:], np.int32))


def off(a, b):
    return np.abs(a.astype(np.float64) - b).max() / np.abs(double).max()


print(f"{name:11} of the largest logit: Stint and llama.cpp {off(ours, theirs):.1e} apart; from "
      f"double precision Stint {off(ours, double):.1e}, llama.cpp {off(theirs, double):.1e}"
      + (f" (from it with llama.cpp's GELU {off(theirs, table):.1e})" if "gpt2" in name else "")
      + f"; same best token: {ours.argmax() == theirs.argmax()}", flush=True)
# llama.cpp rounds what packed weights are multiplied with to 8 bits, and looks GELU, which
# GPT-2 has, up in a table of half precision; ours stays float32.
if off(ours, double) > 1e-5:
    sys.exit("Stint is more than 1e-5 from double precision")
if name == "llama F32" and off(ours, theirs) > 1e-4:
    sys.exit("more than 1e-4 apart")
PY
    done
done
[ "$rounds" -gt 0 ] || exit 0

# ---- speed
for type in Q8_0 Q4_0; do
    "$python" "$here/gguf_llama_model.py" "$work/$type.gguf" llama $type large
done
"$python" - "$work" "$llama/bin/llama-bench" "$build" "$rounds" "$threads" <<'PY'
import json
import os
import re
import subprocess
import sys

work, peer, build, rounds, threads = sys.argv[1:]


def say(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr[-600:]}")
    return done.stdout


for kind, ours_kind in ("Q8_0", "q8"), ("Q4_0", "q4"):
    file = f"{work}/{kind}.gguf"
    ours, theirs, read = [], [], []
    for _ in range(int(rounds)):
        said = json.loads(say(peer, "-m", file, "-p", "0", "-n", "48", "-t", threads, "-r", "1",
                              "-o", "json"))
        theirs.append(said[0]["avg_ts"])
        said = json.loads(say(f"{build}/stint", "run", file, "--prompt-ids", "1,17", "--tokens",
                              "48", "--temperature", "0", "--weights", ours_kind, "-j", threads,
                              "--json"))
        ours.append(said["tokens_per_s"])
        told = say(f"{build}/bench/generate_bench", threads, "4")
        read.append(float(re.search(r"([0-9.]+) GB/s", told).group(1)) * 1e9)
    # A token reads every matrix but the embeddings: rows of the vocabulary once, as output.
    matrices = 16 * (2048 * 2048 * 2 + 2 * 512 * 2048 + 3 * 8192 * 2048) + 32000 * 2048
    bytes_a_token = matrices * {"Q8_0": 36 / 32, "Q4_0": 20 / 32}[kind]
    quotients = sorted(a / b for a, b in zip(ours, theirs))
    share = sorted(a * bytes_a_token / b for a, b in zip(ours, read))
    middle = len(quotients) // 2
    print(f"{kind}: Stint best {max(ours):.1f} tokens/s, llama.cpp best {max(theirs):.1f}; "
          f"best to best {max(ours) / max(theirs):.2f}x, in turns {quotients[middle]:.2f}x "
          f"({quotients[0]:.2f} to {quotients[-1]:.2f}); {bytes_a_token / 1e9:.2f} GB a token, "
          f"{100 * share[middle]:.0f} % of bandwidth in turns ({max(read) / 1e9:.1f} GB/s); load "
          f"{os.getloadavg()[0]:.1f}", flush=True)
PY
