# stint solve --device cuda with a stand-in for the plug-in: what is handed over, told and
# refused. solve_cuda_test.sh has the device itself.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
python=/usr/bin/python3 # Debian's, which has python3-numpy
$python "$STINT_SOURCE/tests/cli/solve_data.py" make || { fail "no NumPy"; finish; }
make_device() { # VERSION FILE
    ${CC:-cc} -std=gnu11 -O1 -Wall -fPIC -shared -ffp-contract=off -DDEVICE_VERSION="$1" \
        -I"$STINT_SOURCE/src" -I"$STINT_SOURCE/include" \
        "$STINT_SOURCE/tests/cli/solve_device.c" -o "$2" -lm || fail "the stand-in does not build"
}
make_device STI_TRSV_CUDA_PLUGIN device.so
make_device 999 other.so
export STINT_CUDA_PLUGIN=$work/device.so
told() { grep -oE '"(x_sha256|backward_error|levels)": *[^,}]*' out; }

run 0 data matrix weighted2d:30 --out p.mtx
for form in "--triangle lower" "--triangle upper" "--triangle lower --transpose" \
    "--triangle upper --transpose --unit-diagonal" "--triangle lower --precision float"; do
    for rhs in "p.mtx" "general.mtx --rhs b11.npy"; do
        run 0 solve $rhs $form --strategy level --json
        wanted=$(told)
        grep -q '"device": *"cpu"' out || fail "$rhs $form: not on the CPU"
        run 0 solve $rhs $form --device cuda --json --solves 3
        [ "$(told)" = "$wanted" ] || fail "$rhs $form: another answer"
    done
    json 'j["device"] == "cuda" and j["strategy"] is None and j["tasks"] is None'
    json 'j["peak_rss_bytes"] <= j["planned_peak_bytes"]'
done
run 0 solve p.mtx --triangle lower --device cuda --report page.html --out x.npy
says out "on a CUDA device"
run 0 solve p.mtx --triangle lower --out y.npy
cmp -s x.npy y.npy || fail "--out of a device: another answer"

# ---- refused ----
rm -f x.npy
run 8 solve p.mtx --device cuda --out x.npy
says err "--device cuda is for triangular solves"
run 2 solve p.mtx --triangle lower --strategy pool --device cuda
run 3 solve p.mtx --triangle lower --device cuda --memory 4M
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 1 1\n' >bad.mtx
run 4 solve bad.mtx --triangle lower --device cuda
says err "row 2 has no diagonal"
DEVICE_FAILS=devices run 8 solve p.mtx --triangle lower --device cuda
says err "no CUDA device"
DEVICE_FAILS=begin run 8 solve p.mtx --triangle lower --device cuda
says err "it does not begin"
for call in create solve; do
    DEVICE_FAILS=$call run 5 solve p.mtx --triangle lower --device cuda --out x.npy
    says err "the CUDA device failed"
    [ ! -e x.npy ] || fail "a device that failed wrote an answer"
done
STINT_CUDA_PLUGIN=$work/other.so run 8 solve p.mtx --triangle lower --device cuda
says err "another version"
STINT_CUDA_PLUGIN=$work/none.so run 8 solve p.mtx --triangle lower --device cuda
says err "--device cpu gives the same bits"
"$STINT" solve p.mtx --triangle lower --device cuda --net-root @dev$$ --net-ranks 2 --net-rank 1 \
    >out.1 2>err.1 </dev/null &
run 8 solve p.mtx --triangle lower --device cuda --net-root @dev$$ --net-ranks 2
wait $!
finish
