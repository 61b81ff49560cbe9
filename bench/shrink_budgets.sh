#!/usr/bin/env bash
# Does `stint shrink` keep the sizes and latencies that it is asked for, and use them?
#
#     bench/shrink_budgets.sh [STINT] [WIDTH] [METHOD] [CONV_WIDTH]
#
# 12 sizes of an mlp of WIDTH (512) on glyphs, from a fifth to a hundredth of its float32
# bytes, and 12 latencies from 0.8 to 0.25 of that of a VGG-11 of CONV_WIDTH (32); METHOD
# (fine-tune, of one epoch) wins the accuracy back. Sizes are those of `stat`; latencies
# those that the search measured, and once more those of `stint bench latency`. Last, half
# of the filters of each layer of that VGG-11 are removed: the share of its time that is
# saved, beside the share of its products. Prints a row each; about seven minutes on two
# CPUs.
set -e
stint=$(command -v "${1:-build/release/stint}")
case $stint in /*) ;; *) stint=$PWD/$stint ;; esac
width=${2:-512} method=${3:-fine-tune} conv_width=${4:-32}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$stint" data glyphs --out g --train 3600 --test 720 --min-faces 10 -q
cat >base.ini <<INI
[model]
name = mlp
width = $width
depth = 2
[data]
path = g
[train]
epochs = 6
batch = 60
validation = 0.1
[optimizer]
name = sgd
lr = 0.05
momentum = 0.9
nesterov = true
INI
"$stint" train base.ini -o base -q >/dev/null 2>&1
"$stint" train base.ini -o conv --set model.name=vgg11 --set model.width="$conv_width" \
    --set model.stem=small --set model.dropout=0 -q >/dev/null 2>&1
shrink() { # MODEL OPTION...
    "$stint" shrink "$1" --data g --method "$method" --set train.epochs=1 --json -q "${@:2}"
}
bytes=$($stint info base --json | python3 -c 'import json,sys; print(4 * json.load(sys.stdin)["parameters"])')
echo "sizes: asked, of it used, trainings, accuracy lost"
for share in 0.2 0.17 0.14 0.12 0.1 0.08 0.06 0.05 0.04 0.03 0.02 0.01; do
    size=$(python3 -c "print(int($bytes * $share))")
    shrink base -o "s$share" --size "$size" >out
    python3 - "$size" "$(stat -c %s "s$share/model.safetensors")" <<'PY'
import json, sys
r, size, file = json.load(open("out")), *map(int, sys.argv[1:])
print(f"  {size:8} {file / size:7.4f} {len(r['samples']):3} {100 * r['accuracy_drop']:7.2f}"
      + ("" if 0.95 * size <= file <= size else "   MISSED"))
PY
done
echo "latencies: asked, of it used, trainings, accuracy lost, by bench latency"
for share in 0.8 0.75 0.7 0.65 0.6 0.55 0.5 0.45 0.4 0.35 0.3 0.25; do
    shrink conv -o "l$share" --latency "${share}x" --scheme "structure(auto,align=16)" \
        >out 2>/dev/null || true
    "$stint" bench latency conv "l$share" --rounds 100 --json >times 2>/dev/null
    python3 - "$share" <<'PY'
import json, sys
share, text = float(sys.argv[1]), open("out").read()
if not text:
    print(f"  {share:5} was not reached")
    sys.exit()
r, t = json.loads(text), json.load(open("times"))
used = r["latency_ratio"] / share
print(f"  {share:5} {used:7.4f} {len(r['samples']):3} {100 * r['accuracy_drop']:7.2f} "
      f"{t['ratio'] / share:7.4f}" + ("" if 0.95 <= used <= 1 else "   MISSED"))
PY
done
echo "half of the filters: batch, threads, products saved, time saved, time by products"
shrink conv -o half --method direct --scheme "filter(0.5,layer)" >out
for batch in 1 32; do
    for threads in 1 2; do
        "$stint" bench latency conv half --batch $batch -j $threads --rounds 40 --json \
            >times 2>/dev/null
        python3 - $batch $threads <<'PY'
import json, sys
# Pixels of a side after each convolution of a VGG-11 for images of 32 x 32.
sides = [32, 16, 8, 8, 4, 4, 2, 2, 1]
layers, t = json.load(open("out"))["layers"], json.load(open("times"))
whole = [l["weights"] * s * s for l, s in zip(layers, sides)]
# The first layer's inputs stay, and the classifier's outputs: a half there, else a quarter.
half = sum(whole[1:-1]) / 4 + (whole[0] + whole[-1]) / 2
products, saved = 1 - half / sum(whole), 1 - t["ratio"]
print(f"  {sys.argv[1]:>3} {sys.argv[2]:>2} {products:7.4f} {saved:7.4f} {saved / products:7.4f}"
      + ("" if saved >= 0.8 * products else "   MISSED"))
PY
    done
done
