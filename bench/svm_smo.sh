#!/bin/bash
# c_svc beside svm-train: seconds of whole programs, support vectors and objectives, at the
# standard -e and the same -m. usage: bench/svm_smo.sh [TABLE...]; a TABLE is LIBSVM text
# with labels that are numbers. Without one: rendered letters in three sizes (and for a
# program that trains longer than LIMIT seconds, no line).
# environment: STINT, SVM_TRAIN (programs), CACHE (MB, 100), THREADS (2), LIMIT (600)
set -u
stint=${STINT:-build/release/stint} theirs=${SVM_TRAIN:-svm-train}
cache=${CACHE:-100} threads=${THREADS:-2} limit=${LIMIT:-600}
command -v "$theirs" >/dev/null || { echo "no $theirs (Debian: libsvm-tools)" >&2; exit 1; }
work=$(mktemp -d /tmp/svm-smo-XXXXXX)
trap 'rm -rf "$work"' EXIT

# Words as labels become numbers, in the order in which they come up.
letters() { # NAME TRAIN SIZE
    "$stint" data glyphs -q --out "$work/$1.tar" --train "$2" --test 36 --size "$3" &&
        "$stint" data table -q "$work/$1.tar" --out "$work/words.libsvm" >/dev/null &&
        awk '{ if (!($1 in n)) n[$1] = ++count; $1 = n[$1]; print }' "$work/words.libsvm" >"$work/$1"
}

tables=("$@")
if [ $# -eq 0 ]; then
    letters letters_8 7200 8 && letters letters_16 3600 16 && letters letters_32 1800 32
    tables=("$work/letters_8" "$work/letters_16" "$work/letters_32")
fi

seconds() { # FILE COMMAND...
    local out=$1 begin end
    shift
    begin=$(date +%s.%N)
    timeout "$limit" "$@" >"$out" 2>/dev/null || return 1
    end=$(date +%s.%N)
    awk -v a="$begin" -v b="$end" 'BEGIN { printf "%.3f\n", b - a }'
}

sum_of() { awk '/^obj = / { sub(",", "", $3); s += $3 } END { printf "%.6g\n", s }' "$1"; }
vectors() { sed -n 's/^Total nSV = //p' "$1"; }

printf '%-12s %9s %9s %7s   %7s %7s   %12s %12s\n' table svm-train stint ratio SV SV objective objective
product=1 count=0
for table in "${tables[@]}"; do
    a=$(seconds "$work/a" "$theirs" -m "$cache" "$table" "$work/a.model") || continue
    b=$(seconds "$work/b" "$stint" svm train -s c_svc -m "$cache" -j "$threads" "$table" "$work/b.model") ||
        continue
    ratio=$(awk -v a="$a" -v b="$b" 'BEGIN { printf "%.2f", a / b }')
    printf '%-12s %9s %9s %7s   %7s %7s   %12s %12s\n' "$(basename "$table")" "$a" "$b" "$ratio" \
        "$(vectors "$work/a")" "$(vectors "$work/b")" "$(sum_of "$work/a")" "$(sum_of "$work/b")"
    product=$(awk -v p="$product" -v r="$ratio" 'BEGIN { print p * r }')
    count=$((count + 1))
done
[ $count -eq 0 ] || awk -v p="$product" -v n="$count" \
    'BEGIN { printf "geometric mean of %d: %.2f\n", n, p ^ (1 / n) }'
