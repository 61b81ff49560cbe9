#!/bin/bash
# Least-squares machines with tiles from a CUDA device beside the CPU: seconds of solving
# with no tile kept, and whether the models are the same to the bit.
#
#     bench/svm_cuda.sh [FOLDER]           data and models go there (/tmp/svm_cuda)
#     ROWS=8000 FEATURES=784 THREADS=8 STINT=build/release/stint bench/svm_cuda.sh
#     bench/svm_cuda.sh --pack FOLDER      what another machine needs, without building there:
#                                          FOLDER/svm_cuda.sh runs on it (x86-64, glibc 2.36)
#
# Ends with status 1 where a model differs, and 77 where there is no device.
set -u
self=$(cd "$(dirname "$0")" && pwd)

# The program, the plug-in, the test of its kernels, and their libraries but those of glibc.
pack() { # FOLDER
    local build=$self/../build/release file
    mkdir -p "$1/lib" || exit 1
    cp "$self/svm_cuda.sh" "$build/stint" "$build/libstint_cuda.so" "$1" || exit 1
    [ -x "$build/kernel_tile_cuda_test" ] && cp "$build/kernel_tile_cuda_test" "$1"
    for file in "$1"/stint "$1"/*.so "$1"/kernel_tile_cuda_test; do
        [ -e "$file" ] && ldd "$file"
    done | awk '$3 ~ /^\// {print $3}' | sort -u |
        grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux-x86-64)\.so' |
        xargs cp -Lt "$1/lib"
    strip "$1/stint" "$1"/kernel_tile_cuda_test
    tar -C "$1" -czf "$1/lib.tar.gz" lib && rm -r "$1/lib" # for unpacking there
    du -sh "$1"
}
if [ "${1:-}" = --pack ]; then
    pack "$2"
    exit
fi
folder=${1:-/tmp/svm_cuda}
mkdir -p "$folder" || exit 1
if [ -f "$self/lib.tar.gz" ]; then
    tar -C "$folder" -xzf "$self/lib.tar.gz" || exit 1
    export LD_LIBRARY_PATH=$(realpath "$folder")/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    stint=${STINT:-$self/stint}
else
    stint=${STINT:-$self/../build/release/stint}
fi
stint=$(realpath "$stint")
rows=${ROWS:-8000} features=${FEATURES:-784} threads=${THREADS:-$(nproc)}
cd "$folder" || exit 1
if [ -x "$self/kernel_tile_cuda_test" ]; then
    "$self/kernel_tile_cuda_test" 2>&1 | grep -vE '^\[ (RUN|  ...)'
fi

# make NAME ROWS FEATURES CLASSES: numbers of three digits around a centre for each class.
make() {
    awk -v n="$2" -v d="$3" -v k="$4" 'BEGIN {
        srand(7)
        for (c = 0; c < k; c++) for (j = 1; j <= d; j++) at[c, j] = rand()
        for (i = 0; i < n; i++) {
            c = i % k; printf "%d", c + 1
            for (j = 1; j <= d; j++) printf " %d:%.3f", j, at[c, j] + 4 * rand() - 2
            printf "\n"
        }
    }' >"$1.libsvm"
}
make odd 1531 33 3
"$stint" svm train -q --device cuda odd.libsvm m.model 2>err || {
    status=$?
    cat err >&2
    [ $status = 8 ] && exit 77
    exit 1
}
make two "$rows" "$features" 2
make ten $((rows / 2)) "$features" 10
gamma=$(awk -v d="$features" 'BEGIN {print 1 / d}')

field() { grep -o "\"$1\":[^,}]*" said | cut -d: -f2; }
failures=0
compare() { # NAME ARGUMENT...: on the CPU, then on the device
    local name=$1 device seconds=() sha=()
    shift
    for device in cpu cuda; do
        "$stint" svm train --json -q -j "$threads" -l implicit --device $device "$@" m.model \
            >said 2>err || {
            tail -1 err >&2
            failures=$((failures + 1))
            return
        }
        seconds+=("$(field solve_s)") sha+=("$(field model_sha256)")
    done
    local same="the same model"
    [ "${sha[0]}" = "${sha[1]}" ] || { same="ANOTHER MODEL" failures=$((failures + 1)); }
    echo "${seconds[*]}" | awk -v n="$name" -v s="$same" -v h="${sha[1]}" '{
        printf "%-34s cpu %8.2f s   cuda %8.2f s   %6.1f x   %s %s\n", n, $1, $2, $1 / $2, s,
            substr(h, 2, 12)}'
}
echo "== $rows x $features and smaller, tiles made anew in every iteration, $threads threads"
compare "rbf, two classes" -g "$gamma" -c 10 two.libsvm
compare "rbf, two classes, float" -g "$gamma" -c 10 --precision float two.libsvm
compare "rbf, C = 1e4" -g "$gamma" -c 1e4 two.libsvm
compare "rbf, ten against the rest" -g "$gamma" -a oaa ten.libsvm
compare "rbf, ten classes, all pairs" -g "$gamma" ten.libsvm
compare "sigmoid" -t sigmoid -g 1e-4 -r -1e-3 -c 0.1 odd.libsvm
compare "polynomial, regression" -s ls_svr -t polynomial -d 3 -g 0.03 -r 1 -c 0.1 odd.libsvm
compare "1,531 x 33, three classes, pairs" -g 0.03 -c 100 -e 1e-8 odd.libsvm
[ $failures = 0 ]
