# Several processes: machines of LIBSVM's types, folds, probabilities and the grid have
# the answers of one process; who fails or stops ends all of them.
. "$(dirname "$0")/cli_lib.sh"
. "$(dirname "$0")/svm_lib.sh"
cd "$work" || exit 1
oracles svm_smo_data.py || { fail "no NumPy"; finish; }

# ranks N OPTIONS ...: of N processes; what rank 0 prints is in ranks.out
ranks() {
    n=$1
    shift
    pids=
    for rank in $(seq 1 $((n - 1))); do
        "$STINT" svm "$@" -q --net-root @svmr$$ --net-ranks "$n" --net-rank "$rank" \
            >"rank$rank.out" 2>rank.err &
        pids="$pids $!"
    done
    "$STINT" svm "$@" --net-root @svmr$$ --net-ranks "$n" >ranks.out 2>ranks.err ||
        fail "rank 0 of $n: $* fails: $(cat ranks.err)"
    for pid in $pids; do wait "$pid" || fail "a rank of $n: $* fails: $(cat rank.err)"; done
    [ ! -s rank1.out ] || fail "rank 1 speaks: $*"
}

# ---- the same model; large2: one machine of several working sets ----
n=2
for how in "-s 0 -c 5 -m 0.2 large2" "-s 3 smallr" "-s 0 large3" "-s 0 -b 1 small3" \
    "-s 0 -b 1 small2" "-s 4 -b 1 smallr" "-s ls_svc -b 1 small3"; do
    # shellcheck disable=SC2086
    run 0 svm train -q -j 1 $how alone.model
    # shellcheck disable=SC2086
    ranks $n train -j 1 $how ranks.model
    cmp -s alone.model ranks.model || fail "$n ranks change the model of $how"
    n=$((5 - n)) # 2 and 3 in turn
done

# ---- the same answers of folds and of a grid ----
for how in "train -s 0 -v 4 small3" "train -b 1 -s 0 -v 2 small3" \
    "grid -v 3 --log2c 1,3,2 --log2g -1,-3,-2 small3"; do
    # shellcheck disable=SC2086
    run 0 svm $how
    # shellcheck disable=SC2086
    ranks $n $how
    cmp -s out ranks.out || fail "$n ranks change the answers of $how"
    n=$((5 - n))
done

# ---- all of them fail alike, and stop together ----
for rank in 1 0; do
    "$STINT" svm train -q -s 0 -i 5 large2 none.model --net-root @svmf$$ --net-ranks 2 \
        --net-rank $rank >"fails$rank" 2>&1 &
    eval "pid$rank=\$!"
done
for rank in 0 1; do
    eval "wait \$pid$rank"
    [ $? = 1 ] || fail "rank $rank is solved in 5 iterations"
done
grep -q "still missed by" fails0 || fail "no reason: $(cat fails0)"
[ ! -e none.model ] || fail "a model without a solution"
"$STINT" svm train -q -s 0 -c 1e7 -e 1e-12 -g 0.0001 large2 none.model --net-root @svms$$ \
    --net-ranks 2 --net-rank 1 >stops1 2>&1 &
pid=$!
"$STINT" svm train -q -s 0 -c 1e7 -e 1e-12 -g 0.0001 large2 none.model --net-root @svms$$ \
    --net-ranks 2 >stops0 2>&1 &
other=$!
sleep 0.7
kill -INT $pid
wait $pid
[ $? = 130 ] || fail "rank 1 does not stop: $(cat stops1)"
wait $other
[ $? = 130 ] || fail "rank 0 does not stop with rank 1: $(cat stops0)"
run 0 svm plan --net-ranks 2 large2
finish
