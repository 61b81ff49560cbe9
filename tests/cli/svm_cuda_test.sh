# Least-squares machines with tiles from a CUDA device: the models of the CPU, to the bit.
# Skipped where this build or this machine has none.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
sha() { sed -n 's/.*"model_sha256":"\([^"]*\).*/\1/p' out; }

for classes in 2 3; do
    awk -v k=$classes 'BEGIN {
        srand(3)
        for (i = 0; i < 700; i++) {
            printf "%d", i % k
            for (j = 1; j <= 21; j++) printf " %d:%.4f", j, 2 * rand() - 1 + (i % k) / 4
            printf "\n"
        }
    }' >$classes.libsvm
done
"$STINT" svm train -q --device cuda 2.libsvm m.model 2>err
[ $? = 8 ] && cat err && exit 77

same() { # ARGUMENT...
    run 0 svm train --json "$@" m.model
    local want
    want=$(sha)
    run 0 svm train --json --device cuda "$@" m.model
    [ "$(sha)" = "$want" ] || fail "--device cuda changes the model of $*"
    json 'j["device"] == "cuda" and j["stored_share"] == 0'
    json 'j["peak_rss_bytes"] <= j["planned_peak_bytes"]'
}
same -g 0.05 -c 10 2.libsvm
same -g 0.05 -c 10 --precision float 2.libsvm
same -g 0.05 -c 10 -e 1e-8 3.libsvm
same -g 0.05 -a oaa 3.libsvm
same -t polynomial -g 0.05 -r 1 -d 2 -s ls_svr 3.libsvm
same -t sigmoid -g 0.001 -c 0.1 2.libsvm
same -g 0.05 -b 1 2.libsvm

run 0 svm train -g 0.05 -v 3 3.libsvm
cp out want
run 0 svm train -g 0.05 -v 3 --device cuda 3.libsvm
cmp -s out want || fail "--device cuda changes folds: $(cat out)"

# Two ranks, each with the device.
run 0 svm train --json -g 0.05 -c 10 2.libsvm m.model
want=$(sha)
"$STINT" svm train -q -g 0.05 -c 10 --device cuda --net-root @svmcuda$$ --net-ranks 2 --net-rank 1 \
    2.libsvm none.model >rank.out 2>rank.err &
run 0 svm train --json -g 0.05 -c 10 --device cuda --net-root @svmcuda$$ --net-ranks 2 2.libsvm m.model
wait $! || fail "rank 1 fails: $(cat rank.err)"
[ "$(sha)" = "$want" ] || fail "two ranks with a device change the model"
finish
