#!/bin/sh
# The activation codec beside SZ3 and zfp, on the layers of a real network.
#   bench/codec_bench.sh BUILD DATA WORK [SZ3]
# BUILD holds bench/codec_bench (cmake --build BUILD --target codec_bench). DATA holds
# mcunet-5fps.pkl and imagenet-sample.tar. WORK receives the activations (written once,
# with python3-torch) and results. SZ3: folder of its source, built with cmake in
# SZ3/build; without it, or without libzfp-dev and libzstd-dev, the peers are left out.
# A table on stdout, with averages over ReLU layers; then a table of the same values rounded
# to bfloat16, with what packing and unpacking gain where no copies in float32 are made.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 3 ] || { sed -n '3,10s/^# //p' "$0" >&2; exit 2; }
build=$1 data=$2 work=$3 sz3=${4:-}
python=${PYTHON:-/usr/bin/python3}
[ -s "$work/act/list.txt" ] || "$python" "$here/codec_activations.py" "$data" "$work/act"
"$build/bench/codec_bench" "$work/act" --runs 3 >"$work/ours.tsv"
"$build/bench/codec_bench" "$work/act" --runs 3 --dither >"$work/dither.tsv"
"$build/bench/codec_bench" "$work/act" --runs 3 --dither --bf16 >"$work/half.tsv"
if [ -n "$sz3" ] && [ ! -s "$work/peers.tsv" ]; then
    if g++ -O3 -march=native -std=c++17 -I"$sz3/include" -I"$sz3/build/include" \
        "$here/codec_peers.cpp" -o "$work/codec_peers" -lzfp -lzstd 2>"$work/peers.log"; then
        "$work/codec_peers" "$work/act" >"$work/peers.tsv"
    else
        echo "SZ3 or zfp is missing (see $work/peers.log): no peers" >&2
    fi
fi
[ -s "$work/peers.tsv" ] || : >"$work/peers.tsv"
"$python" - "$work" <<'PY'
import sys

work = sys.argv[1]


def rows(name):
    with open("%s/%s.tsv" % (work, name)) as file:
        return {line.split("\t")[0]: line.rstrip("\n").split("\t") for line in file}


ours, dither, peers = rows("ours"), rows("dither"), rows("peers")
print("%-15s %-6s %8s %6s %7s %6s %5s %6s %5s %5s %5s %7s %7s" % (
    "layer", "kind", "values", "bits", "dither", "SZ3", "ratio", "zfp", "pred", "GB/s",
    "GB/s", "SZ3MB/s", "MB/s"))
ratios, pack, unpack = [], [], []
for file, row in ours.items():
    n, size = int(row[2]), int(row[3])
    text = "%-15s %-6s %8d %6.3f %7.3f" % (file[:-4], row[1], n, 8 * size / n,
                                          8 * int(dither[file][3]) / n)
    if file in peers:
        p = peers[file]
        text += " %6.3f %5.3f %6.2f %6s %5s %5s %7s %7s  %s" % (
            8 * int(p[1]) / n, size / int(p[1]), 8 * int(p[6]) / n, row[5], row[9],
            row[10], p[3], p[4], p[2])
        if row[1] == "relu":
            ratios.append(size / int(p[1]))
    else:
        text += " %6s %5s %6s %6s %5s %5s" % ("-", "-", "-", row[5], row[9], row[10])
    print(text)
    if float(row[7]) > 1 or float(dither[file][7]) > 1:
        print("%s: BEYOND THE BOUND" % file)
total = sum(int(r[3]) for r in ours.values())
values = sum(int(r[2]) for r in ours.values())
time = [sum(int(r[2]) * 4e-9 / float(r[k]) for r in ours.values()) for k in (9, 10)]
print("all layers: %.3f bits a value, 1/%.2f; packs %.2f GB/s, unpacks %.2f GB/s" % (
    8 * total / values, 4 * values / total, values * 4e-9 / time[0],
    values * 4e-9 / time[1]))
if ratios:
    print("size beside SZ3's best mode, ReLU layers: mean %.3f, least %.3f, most %.3f" % (
        sum(ratios) / len(ratios), min(ratios), max(ratios)))

half = rows("half")
print("\nbfloat16, with dither; GB of float32 a second, and beside it through copies in float32")
print("%-15s %-6s %8s %7s %7s %6s %6s %6s %6s" % (
    "layer", "kind", "values", "float32", "bf16", "packs", "copies", "unpack", "copies"))
for file, row in half.items():
    print("%-15s %-6s %8d %7.3f %7.3f %6s %6s %6s %6s" % (
        file[:-4], row[1], int(row[2]), float(dither[file][4]), float(row[4]), row[9], row[11],
        row[10], row[12]))
    if float(row[7]) > 1:
        print("%s: BEYOND THE BOUND" % file)
took = [sum(int(r[2]) * 4e-9 / float(r[k]) for r in half.values()) for k in (9, 11, 10, 12)]
print("all layers: %.3f bits a value, as float32 %.3f; packing takes %.3f of the time with "
      "copies, unpacking %.3f" % (
          8 * sum(int(r[3]) for r in half.values()) / values,
          8 * sum(int(r[3]) for r in dither.values()) / values, took[0] / took[1],
          took[2] / took[3]))
PY
