#!/bin/bash
# Least-squares machines beside svm-train, svm-predict, PLSSVM and scikit-learn's KernelRidge:
# seconds to the model, budgets, the preconditioner, predictions. Two threads, medians of
# RUNS, the same memory for both sides (svm-train -m).
#
#     bench/svm_bench.sh [FOLDER]        data and models go there (/tmp/svm_bench)
#     ROWS=10000 RUNS=3 A9A=a9a PYTHON=venv/bin/python PLSSVM=plssvm-train bench/svm_bench.sh
#
# Standard sizes take some minutes. A9A: the adult data set in LIBSVM's format; without it
# the row is left out, as are KernelRidge without scikit-learn and PLSSVM without its program
# (github.com/SC-SGS/PLSSVM, OpenMP, Release).
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
stint=${STINT:-$here/build/release/stint}
folder=${1:-/tmp/svm_bench}
rows=${ROWS:-3000} runs=${RUNS:-1} python=${PYTHON:-python3} memory_mb=${MEMORY_MB:-4000}
mkdir -p "$folder" && cd "$folder" || exit 1

median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
seconds() { # COMMAND...: the median of RUNS
    for _ in $(seq "$runs"); do
        local start
        start=$(date +%s.%N)
        "$@" >said 2>&1 || { echo "failed: $*: $(tail -1 said)" >&2; return 1; }
        date +%s.%N | awk -v s="$start" '{print $1 - s}'
    done | median
}
field() { grep -o "\"$2\":[^,}]*" "$1" | cut -d: -f2; }

[ -f glyphs.libsvm ] || {
    "$stint" data glyphs --out pictures --train 20160 --test 3600 >/dev/null 2>&1
    "$stint" data table pictures --count "$rows" --out words.libsvm -q >/dev/null
    "$stint" data table pictures --split test --count 1000 --out words_test.libsvm -q >/dev/null
    # svm-train wants numbers as labels: one a word, the same in both files.
    cut -d' ' -f1 words.libsvm | sort -u >words
    for name in "" _test; do
        awk 'NR == FNR {n[$1] = NR; next} {$1 = n[$1]; print}' words "words$name.libsvm" \
            >"glyphs$name.libsvm"
    done
}

echo "== seconds to the model, reading and writing included; -m $memory_mb for both"
compare() { # NAME DATA ARGUMENT...
    local name=$1 data=$2 ours theirs
    shift 2
    ours=$(seconds "$stint" svm train -q -j 2 --memory "${memory_mb}MiB" "$@" "$data" "$name.model")
    theirs=$(seconds svm-train -q -m "$memory_mb" "$@" "$data" "$name.theirs")
    echo "$name $ours $theirs" |
        awk '{printf "%-10s stint %8.2f s   svm-train %8.2f s   %6.1f x\n", $1, $2, $3, $3 / $2}'
}
compare glyphs glyphs.libsvm -g 0.02 -c 10
[ -n "${CIFAR:-}" ] && compare cifar "$CIFAR" -g 0.005 -c 10
[ -n "${A9A:-}" ] && compare a9a "$A9A" -g 0.01 -c 10

echo "== budgets from the smallest to all: peak, seconds, model"
"$stint" svm plan --json -j 2 -a oaa -g 0.02 glyphs.libsvm >plan
least=$(field plan smallest_bytes)
"$stint" svm plan --json -j 2 -a oaa -g 0.02 -l explicit glyphs.libsvm >plan_all
most=$(field plan_all peak_bytes)
for i in 0 1 2 3 4 5 6 7; do
    budget=$((least + (most - least) * i / 7 + (i == 7) * 1048576))
    "$stint" svm train --json -j 2 -a oaa -g 0.02 --memory $budget glyphs.libsvm b.model >said 2>/dev/null ||
        { echo "budget $budget fails"; continue; }
    echo "$budget $(field said planned_peak_bytes) $(field said peak_rss_bytes) $(field said solve_s) $(field said model_sha256)" |
        awk '{printf "%8.1f MiB  planned %8.1f  peak %8.1f (%3.0f %%)  %7.2f s  %s%s\n", $1 / 2^20, $2 / 2^20,
            $3 / 2^20, 100 * $3 / $2, $4, substr($5, 2, 12),
            $3 <= $1 && $3 >= 0.9 * $2 ? "" : "  PEAK BEYOND BUDGET OR BELOW 90 % OF THE PLAN"}'
done

echo "== iterations at C = 1e4, one against the rest"
for rank in 0 auto; do
    "$stint" svm train --json -a oaa -g 0.02 -c 1e4 --rank $rank glyphs.libsvm r.model >said 2>/dev/null
    echo "rank $rank: $(field said iterations) iterations, $(field said solve_s) s"
done

echo "== predictions"
ours=$(seconds "$stint" svm predict -q -j 2 glyphs_test.libsvm glyphs.theirs ours)
theirs=$(seconds svm-predict glyphs_test.libsvm glyphs.theirs theirs)
cmp -s ours theirs && same="the same answers" || same="OTHER ANSWERS"
echo "$ours $theirs" | awk -v s="$same" '{printf "stint %.2f s   svm-predict %.2f s   %.1f x, %s\n", $1, $2, $2 / $1, s}'

echo "== 5,000 x 2,000 to a residual of 1e-5, solving alone"
"$python" - <<'PYTHON' || echo "(no scikit-learn: KernelRidge is left out)"
import time
import numpy as np
from sklearn.kernel_ridge import KernelRidge
rng = np.random.default_rng(1)
x = np.round(rng.standard_normal((5000, 2000)), 3)
y = np.where(x[:, 0] + x[:, 1] * x[:, 2] > 0, 1, -1)
with open("ridge.libsvm", "w") as out:
    for label, row in zip(y, x):
        out.write("%d %s\n" % (label, " ".join("%d:%g" % (j + 1, v) for j, v in enumerate(row))))
start = time.time()
KernelRidge(kernel="rbf", gamma=1 / 2000, alpha=1).fit(x, y)
print("KernelRidge %.2f s" % (time.time() - start))
PYTHON
[ -f ridge.libsvm ] || exit 0
"$stint" svm train --json -j 2 ridge.libsvm ridge.model >said 2>/dev/null &&
    echo "stint $(field said solve_s) s, residual $(field said residual), reading and writing $(
        field said read_s), $(field said write_s) s"
if [ -n "${PLSSVM:-}" ]; then
    # Its stopping rule is relative to a far start: the first -e that reaches the true residual.
    for e in 1e-5 1e-6 1e-7 1e-8 1e-9 1e-10; do
        OMP_NUM_THREADS=2 "$PLSSVM" -b openmp -t 2 -g 0.0005 -c 1 -e $e -a oao ridge.libsvm plssvm.model >said 2>&1 ||
            { echo "PLSSVM fails: $(tail -1 said)"; break; }
        true=$("$python" "$here/bench/svm_residual.py" plssvm.model 1)
        echo "PLSSVM -e $e: residual $true"
        grep -iE "solved minimization|optimized the|Total .*runtime|total_runtime|assembl" said | sed 's/^/    /'
        awk -v r="$true" 'BEGIN {exit !(r <= 1e-5)}' && break
    done
fi
exit 0
