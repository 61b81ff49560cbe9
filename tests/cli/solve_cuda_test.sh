# Triangular solves on a CUDA device: the answers of the CPU, to the bit. Skipped where this
# build or this machine has none.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
hash() { sed -n 's/.*"x_sha256": *"\([^"]*\).*/\1/p' out; }

run 0 data matrix weighted2d:100 --out grid.mtx
run 0 data matrix rmat:10 --out graph.mtx
"$STINT" solve -q --device cuda --triangle lower grid.mtx >out 2>err
[ $? = 8 ] && cat err && exit 77

for matrix in grid graph; do
    for form in "--triangle lower" "--triangle upper" "--triangle lower --transpose" \
        "--triangle upper --unit-diagonal" "--triangle lower --precision float"; do
        run 0 solve $matrix.mtx $form --json
        want=$(hash)
        run 0 solve $matrix.mtx $form --json --device cuda --solves 5
        [ "$(hash)" = "$want" ] || fail "--device cuda changes the answer of $matrix $form"
        json 'j["device"] == "cuda" and j["peak_rss_bytes"] <= j["planned_peak_bytes"]'
    done
done
finish
