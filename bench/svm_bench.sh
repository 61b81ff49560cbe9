#!/bin/bash
# Support vector machines beside svm-train, svm-predict, PLSSVM and scikit-learn's
# KernelRidge, a row of the table in docs/svm.md a word:
#
#     bench/svm_bench.sh [ROW...]          all that need nothing from outside, without a word
#
#     time        seconds to the model of ls_svc, reading and writing included, beside
#                 svm-train with the same memory: SETS (glyphs cifar a9a)
#     accuracy    of ls_svc on test rows, best of one grid of C and gamma by 5 folds, beside
#                 c_svc's of svm-train: SETS (digits breast_cancer a9a glyphs)
#     solve       SOLVE_ROWS x SOLVE_FEATURES to a true residual of 1e-5, beside PLSSVM
#                 (OpenMP) and KernelRidge
#     budgets     eight budgets from the smallest to all; threads, instruction sets, ranks:
#                 peaks and one model
#     iterations  at C = 1e4, with and without the preconditioner
#     predict     beside svm-predict, with svm-train's model
#     tiles       an rbf tile as a share of the peak (needs build/release/bench/gram_bench)
#     expect      what svm plan expects beside what training takes
#
# environment, with standard values:
#     ROWS=3000           of glyphs (1,024 features, 36 classes); cifar: CIFAR_ROWS=2000 of
#                         3,072; a9a: A9A_ROWS=5000 of 123; a grid is of GRID_ROWS=600
#     SOLVE_ROWS=2000 SOLVE_FEATURES=2000
#     RUNS=1              in turns with the peer; the ratio is the median of the turns'
#     MEMORY_MB=4000      for both sides (svm-train -m)
#     FOLDER=/tmp/svm_bench   data and models go there; data that is there is used again
#     CIFAR=folder        of CIFAR-10's train.tar; A9A=file in LIBSVM's format, both parts in
#                         one (github.com/SofianeTanji/snacks, "a9a"): the first 32,561 rows
#                         are for training. Without them these sets are left out
#     PYTHON=python3      with scikit-learn, or KernelRidge, digits and breast_cancer are left out
#     PLSSVM=plssvm-train github.com/SC-SGS/PLSSVM, OpenMP, Release; or it is left out
#     STINT=program
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
stint=$(realpath "${STINT:-$here/build/release/stint}")
folder=${FOLDER:-/tmp/svm_bench} rows=${ROWS:-3000} cifar_rows=${CIFAR_ROWS:-2000}
a9a_rows=${A9A_ROWS:-5000} grid_rows=${GRID_ROWS:-600} solve_rows=${SOLVE_ROWS:-2000}
solve_features=${SOLVE_FEATURES:-2000} runs=${RUNS:-1} memory_mb=${MEMORY_MB:-4000}
python=${PYTHON:-python3}
for path in CIFAR A9A PLSSVM; do # before the folder is another
    [ -n "${!path:-}" ] && declare "$path=$(realpath "$(command -v "${!path}" || echo "${!path}")")"
done
[ -e "$python" ] && python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python")
mkdir -p "$folder" && cd "$folder" || exit 1

# ---- measuring ----

one_s() { # COMMAND...: its seconds; what it says goes to the file said
    local start
    start=$(date +%s.%N)
    "$@" >said 2>&1 || { echo "failed: $*: $(tail -1 said)" >&2; return 1; }
    date +%s.%N | awk -v s="$start" '{print $1 - s}'
}

# turns NAME PEER: the functions ours and theirs, one after the other RUNS times.
turns() {
    local a b i
    for i in $(seq "$runs"); do
        a=$(one_s ours) && b=$(one_s theirs) || return 1
        echo "$a $b"
    done >turns
    awk -v n="$1" -v p="$2" '{a[NR] = $1; b[NR] = $2; r[NR] = $2 / $1}
        function middle(x,   i, j, t) {
            for (i = 1; i <= NR; i++) for (j = i + 1; j <= NR; j++)
                if (x[j] < x[i]) { t = x[i]; x[i] = x[j]; x[j] = t }
            return x[int((NR + 1) / 2)]
        }
        END {printf "%-24s stint %8.2f s   %s %8.2f s   %6.1f x\n", n, middle(a), p, middle(b), middle(r)}' turns
}
field() { grep -o "\"$2\":[^,}]*" "$1" | cut -d: -f2; }

# ---- data: NAME.train and NAME.test of a set, with labels that are numbers ----

numbered() { # NAME: words.train and words.test; one number a word, the same in both
    cut -d' ' -f1 words.train | sort -u >words
    for part in train test; do
        awk 'NR == FNR {n[$1] = NR; next} {$1 = n[$1]; print}' words words.$part >"$1.$part"
    done
    rm -f words words.train words.test
}
images() { # NAME FOLDER ROWS
    "$stint" data table "$2" --count "$3" --out words.libsvm -q >/dev/null &&
        mv words.libsvm words.train &&
        "$stint" data table "$2" --split test --count 1000 --out words.libsvm -q >/dev/null &&
        mv words.libsvm words.test && numbered "$1"
}
from_scikit() { # NAME: two thirds for training, columns to [0, 1]
    "$python" - "$1" <<'PYTHON'
import sys
import numpy as np
from sklearn import datasets
name = sys.argv[1]
x, y = getattr(datasets, "load_" + name)(return_X_y=True)
order = np.random.default_rng(1).permutation(len(y))
x = (x - x.min(0)) / np.where(np.ptp(x, 0) > 0, np.ptp(x, 0), 1)
cut = len(y) * 2 // 3
for part, chosen in ("train", order[:cut]), ("test", order[cut:]):
    with open(name + "." + part, "w") as out:
        for i in chosen:
            out.write("%d %s\n" % (y[i], " ".join("%d:%g" % (j + 1, v) for j, v in enumerate(x[i]) if v)))
PYTHON
}
get() { # SET: sets $set to the name of its files; false: it cannot be had
    set=$1
    case $1 in
    glyphs) set=glyphs_$rows ;;
    cifar) set=cifar_$cifar_rows ;;
    a9a) set=a9a_$a9a_rows ;;
    esac
    [ -f "$set.test" ] && return
    case $1 in
    glyphs)
        [ -d pictures ] ||
            "$stint" data glyphs --out pictures --train 20160 --test 3600 >/dev/null 2>&1
        images "$set" pictures "$rows" ;;
    cifar) [ -n "${CIFAR:-}" ] && images "$set" "$CIFAR" "$cifar_rows" ;;
    a9a)
        [ -f "${A9A:-}" ] && head -32561 "$A9A" |
            awk -v n="$a9a_rows" 'int(NR * n / 32561) > int((NR - 1) * n / 32561)' >"$set.train" &&
            tail -n +32562 "$A9A" >"$set.test" ;;
    *) from_scikit "$1" 2>/dev/null ;;
    esac || { rm -f "$set".*; echo "$1: the data is not there; left out"; return 1; }
}
gamma_of() { case $1 in cifar) echo 0.005 ;; a9a) echo 0.01 ;; *) echo 0.02 ;; esac; }

# ---- rows ----

row_time() {
    local name product=1 count=0
    for name in ${SETS:-glyphs cifar a9a}; do
        get "$name" || continue
        ours() { "$stint" svm train -q -j 2 --memory "${memory_mb}MiB" -g "$(gamma_of "$name")" -c 10 \
            "$set.train" "$set.model"; }
        theirs() { svm-train -q -m "$memory_mb" -g "$(gamma_of "$name")" -c 10 "$set.train" "$set.theirs"; }
        turns "$set" svm-train | tee line
        product=$(awk -v p="$product" '{print p * $(NF - 1)}' line) count=$((count + 1))
    done
    awk -v p="$product" -v n=$count 'BEGIN {if (n) printf "geometric mean of %d: %.1f\n", n, p ^ (1 / n)}'
}

# The best C and gamma of 5 folds on every k-th row: "C gamma rate".
best_of() { # PROGRAM
    local c g rate
    for c in 1 10 100; do
        for g in 0.003 0.02 0.1; do
            if [ "$1" = ours ]; then
                "$stint" svm train -q -j 2 -v 5 -c $c -g $g grid.libsvm
            else
                svm-train -q -v 5 -c $c -g $g grid.libsvm
            fi 2>/dev/null | sed -n "s/.*Accuracy = \(.*\)%/$c $g \1/p"
        done
    done | sort -k3,3gr -s | head -1
}
row_accuracy() {
    local name who best c g rate
    for name in ${SETS:-digits breast_cancer a9a glyphs}; do
        get "$name" || continue
        awk -v n="$grid_rows" -v all="$(wc -l <"$set.train")" \
            'all <= n || int(NR * n / all) > int((NR - 1) * n / all)' "$set.train" >grid.libsvm
        for who in ours theirs; do
            best=$(best_of $who)
            read -r c g _ <<<"$best"
            if [ $who = ours ]; then
                "$stint" svm train -q -j 2 -c "$c" -g "$g" "$set.train" a.model >/dev/null 2>&1
            else
                svm-train -q -m "$memory_mb" -c "$c" -g "$g" "$set.train" a.model
            fi
            rate=$(svm-predict "$set.test" a.model answers | sed 's/Accuracy = \([^%]*\)%.*/\1/')
            echo "$who C = $c, gamma = $g: $rate %"
        done | paste -sd' ' |
            awk -v n="$set" '{gsub("ours", "ls_svc"); gsub("theirs", "  svm-train"); printf "%-16s %s\n", n, $0}'
    done
}

row_solve() {
    local e true ours
    ours=ridge_${solve_rows}x$solve_features
    "$python" - "$ours" "$solve_rows" "$solve_features" <<'PYTHON' ||
import sys, time
import numpy as np
name, n, d = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(1)
x = np.round(rng.standard_normal((n, d)), 3)
y = np.where(x[:, 0] + x[:, 1] * x[:, 2] > 0, 1, -1)
with open(name, "w") as out:
    for label, row in zip(y, x):
        out.write("%d %s\n" % (label, " ".join("%d:%g" % (j + 1, v) for j, v in enumerate(row))))
from sklearn.kernel_ridge import KernelRidge
start = time.time()
KernelRidge(kernel="rbf", gamma=1 / d, alpha=1).fit(x, y)
print("KernelRidge     %8.2f s" % (time.time() - start))
PYTHON
        echo "(no scikit-learn: KernelRidge is left out)"
    [ -f "$ours" ] || { echo "no NumPy: no data"; return; }
    "$stint" svm train --json -j 2 "$ours" ridge.model >said 2>/dev/null &&
        printf 'stint           %8.2f s, residual %s; reading %.2f s, writing %.2f s\n' "$(field said solve_s)" \
            "$(field said residual)" "$(field said read_s)" "$(field said write_s)"
    [ -n "${PLSSVM:-}" ] || { echo "(PLSSVM is left out)"; return; }
    # Its stopping rule is relative to a far start: the first -e that reaches the true residual.
    for e in 1e-5 1e-6 1e-7 1e-8 1e-9 1e-10; do
        OMP_NUM_THREADS=2 "$PLSSVM" -b openmp -t 2 -g "$(awk -v d="$solve_features" 'BEGIN {print 1 / d}')" \
            -c 1 -e $e -a oao "$ours" plssvm.model >said 2>&1 ||
            { echo "PLSSVM fails: $(tail -1 said)"; break; }
        true=$("$python" "$here/bench/svm_residual.py" plssvm.model 1)
        echo "PLSSVM -e $e: residual $true"
        grep -iE "solved minimization|optimized the|runtime|assembl|^Learned|ms" said | sed 's/^/    /'
        awk -v r="$true" 'BEGIN {exit !(r <= 1e-5)}' && break
    done
}

row_budgets() {
    local least most budget i how sha
    get glyphs || return
    "$stint" svm plan --json -j 2 -a oaa -g 0.02 "$set.train" >plan 2>/dev/null
    least=$(field plan smallest_bytes)
    "$stint" svm plan --json -j 2 -a oaa -g 0.02 -l explicit "$set.train" >plan_all 2>/dev/null
    most=$(field plan_all peak_bytes)
    for i in 0 1 2 3 4 5 6 7; do
        budget=$((least + (most - least) * i / 7 + (i == 7) * 1048576))
        "$stint" svm train --json -j 2 -a oaa -g 0.02 --memory $budget "$set.train" b.model >said 2>/dev/null ||
            { echo "budget $budget fails"; continue; }
        echo "$budget $(field said planned_peak_bytes) $(field said peak_rss_bytes) $(field said solve_s) $(
            field said model_sha256)" |
            awk '{within = ($3 <= $1 && $3 >= 0.9 * $2)
                printf "%8.1f MiB  planned %8.1f  peak %8.1f (%3.0f %%)  %7.2f s  %s%s\n", $1 / 2^20,
                    $2 / 2^20, $3 / 2^20, 100 * $3 / $2, $4, substr($5, 2, 12),
                    within ? "" : "  PEAK BEYOND BUDGET OR BELOW 90 % OF THE PLAN"}'
    done
    for how in "-j 1" "-j 3" "isa avx2" "isa avx512" "ranks 2" "ranks 3"; do
        case $how in
        isa*) STINT_ISA=${how#isa } "$stint" svm train --json -a oaa -g 0.02 "$set.train" b.model ;;
        ranks*)
            for i in $(seq 1 $((${how#ranks } - 1))); do
                "$stint" svm train -q -j 1 -a oaa -g 0.02 --net-root @bench$$ --net-ranks "${how#ranks }" \
                    --net-rank "$i" "$set.train" none.model >/dev/null 2>&1 &
            done
            "$stint" svm train --json -j 1 -a oaa -g 0.02 --net-root @bench$$ --net-ranks "${how#ranks }" \
                "$set.train" b.model
            wait ;;
        *) # shellcheck disable=SC2086
            "$stint" svm train --json $how -a oaa -g 0.02 "$set.train" b.model ;;
        esac >said 2>/dev/null
        sha=$(field said model_sha256)
        printf '%-12s %7.2f s  %s\n' "$how" "$(field said solve_s)" "${sha:1:12}"
    done
}

row_iterations() {
    local rank
    get glyphs || return
    for rank in 0 auto; do
        "$stint" svm train --json -j 2 -a oaa -g 0.02 -c 1e4 --rank $rank "$set.train" r.model >said 2>/dev/null
        echo "rank $rank: $(field said iterations) iterations, $(field said solve_s) s"
    done
}

row_predict() {
    get glyphs || return
    [ -f "$set.theirs" ] || svm-train -q -m "$memory_mb" -g 0.02 -c 10 "$set.train" "$set.theirs"
    ours() { "$stint" svm predict -q -j 2 "$set.test" "$set.theirs" ours.answers; }
    theirs() { svm-predict "$set.test" "$set.theirs" theirs.answers; }
    turns "$set, 1,000 rows" svm-predict
    cmp -s ours.answers theirs.answers && echo "the same answers" || echo "OTHER ANSWERS"
}

row_tiles() {
    [ -x "$here/build/release/bench/gram_bench" ] ||
        { echo "not built: cmake --build --preset release --target gram_bench"; return; }
    "$here/build/release/bench/gram_bench" | grep -E 'peak|features|linear|rbf'
}

row_expect() {
    local how
    get glyphs || return
    for how in "-c 10" "-a oaa -c 10" "-a oaa -c 10 -l implicit" "-a oaa -c 1000" "-t linear -a oaa" "-s c_svc -c 10"; do
        # shellcheck disable=SC2086
        "$stint" svm plan --json -j 2 -g 0.02 $how "$set.train" >plan 2>/dev/null
        # shellcheck disable=SC2086
        "$stint" svm train --json -j 2 -g 0.02 $how "$set.train" e.model >said 2>/dev/null
        echo "$(field plan expected_s) $(field said seconds)" |
            awk -v h="$how" '{printf "%-26s expected %8.2f s   took %8.2f s   ratio %.2f\n", h, $1, $2, $2 / $1}'
    done
}

[ $# -gt 0 ] || set -- time accuracy solve budgets iterations predict tiles expect
for row in "$@"; do
    echo "== $row"
    "row_$row"
done
