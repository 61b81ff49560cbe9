#!/bin/bash
# A table shared out to 1 to 4 processes has the bits of one process: over sockets of this
# host and under mpirun, with few rows in memory, killed and gone on with; what does not go
# together is refused by all.
. "$(dirname "$0")/clicks_lib.sh"
begin() { # NAME RANKS OPTION...: in the background, pids
    local name=$1 ranks=$2 r
    shift 2
    pids=()
    for ((r = ranks - 1; r >= 0; r--)); do
        "$STINT" train r.ini --data c.csv --out "run-$name" --json -q -j1 --net-ranks "$ranks" \
            --net-root "@$(basename "$dir")-$name" --net-rank "$r" "$@" \
            >"$name.$r" 2>"$name.err$r" </dev/null &
        pids[r]=$!
    done
}
ends() { # NAME STATUS: of all ranks
    local r got
    for r in "${!pids[@]}"; do
        got=0
        wait "${pids[r]}" || got=$?
        [ "$got" = "$2" ] || fail "$1, rank $r: status $got, wanted $2: $(cat "$1".err*)"
    done
}
same() { # FILE
    [ "$(field "$1" weights_sha256)" = "$want" ] || fail "$1: other weights"
    [ "$(field "$1" test_auc)" = "$auc" ] || fail "$1: another AUC"
}

"$STINT" train r.ini --data c.csv --out run-one --json -q >one.json
want=$(field one.json weights_sha256) auc=$(field one.json test_auc)
/usr/bin/python3 -c "import sys; sys.exit(not float(sys.argv[1]) > 0.6)" "$auc" ||
    fail "nothing was learned"

policies=(- - future lfu static)
for ranks in 2 3 4; do
    begin "of$ranks" $ranks --set embedding.cache=$((340 / ranks))k \
        --set embedding.policy=${policies[ranks]}
    ends "of$ranks" 0
    same "of$ranks.0"
    [ "$(field "of$ranks.0" ranks)" = "$ranks" ] || fail "not $ranks ranks"
    [ "$(field "of$ranks.0" rows_missed)" -gt 500 ] || fail "$ranks: all in memory"
    [ "$(field "of$ranks.0" rows_missed)" = "$(field "of$ranks.0" rows_missed_planned)" ] ||
        fail "$ranks ranks: planned other misses"
    [ "$(field "of$ranks.0" rows_touched)" = "$(field one.json rows_touched)" ] ||
        fail "$ranks ranks touch other rows"
    for ((r = 1; r < ranks; r++)); do
        [ ! -s "of$ranks.$r" ] || fail "rank $r answers, too"
    done
done
# The parts are one model at the end.
"$STINT" eval run-of3 --data c.csv --json -q >eval.json
[ "$(field eval.json auc)" = "$auc" ] || fail "the model of 3 ranks judges otherwise"
"$STINT" export embeddings run-one --out one.st -q >/dev/null
"$STINT" export embeddings run-of3 --out of3.st -q >/dev/null
cmp one.st of3.st || fail "other embeddings"

# Killed at any moment, all of them or one, which ends the others.
for delay in 0.05 0.15 0.3; do
    rm -rf run-kill
    begin kill 3 --set embedding.cache=120k
    sleep $delay
    kill -9 "${pids[1]}" 2>/dev/null || true
    [ $delay = 0.15 ] || kill -9 "${pids[0]}" "${pids[2]}" 2>/dev/null || true
    for r in 0 1 2; do wait "${pids[r]}" 2>/dev/null || true; done
    begin kill 3 --set embedding.cache=130k --resume
    ends kill 0
    same kill.0
done

# What does not go together.
begin of3 2 --resume
ends of3 2
grep -q 'is of 3 processes, each with its part of the rows, not of 2' of3.err0 ||
    fail "$(cat of3.err0)"
run=0
"$STINT" train r.ini --data c.csv --out run-of3 --resume -q 2>err || run=$?
[ $run = 2 ] && grep -q 'not of 1; go on with as many' err || fail "$(cat err)"
begin five 5
ends five 2
grep -q 'cannot be shared out to 5 processes; start at most 4' five.err0 || fail "$(cat five.err*)"
[ ! -e run-five ] || fail "a folder was made"
begin time 2 --set train.time=1s
ends time 2
grep -q 'the clocks of several processes differ' time.err0 || fail "$(cat time.err0)"
"$STINT" data clicks --out d.csv --rows 12000 --fields 3000,900,200 --bags 2 --seed 4 -q >/dev/null
root=@$(basename "$dir")-data
"$STINT" train r.ini --data d.csv --out run-d -q --net-ranks 2 --net-root "$root" --net-rank 1 \
    2>d.err1 </dev/null & other=$!
run=0
"$STINT" train r.ini --data c.csv --out run-d -q --net-ranks 2 --net-root "$root" --net-rank 0 \
    2>d.err0 </dev/null || run=$?
wait $other && fail "rank 1 has other data"
[ $run = 2 ] && grep -q 'data: clicks of SHA-256' d.err0 || fail "$(cat d.err0)"

# One process again into a folder of three, and the other way round: nothing is left over.
"$STINT" train r.ini --data c.csv --out run-of3 --force --json -q >again.json
same again.json
[ ! -e run-of3/embeddings/part-0-of-3 ] || fail "an old part is left"
begin of3 2 --force
ends of3 0
same of3.0

mpi() {
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0 \
        timeout 100 mpirun --oversubscribe -n "$@" </dev/null
}
if command -v mpirun >/dev/null && mpi 1 "$STINT" version >/dev/null 2>&1 &&
    [ -e "$(dirname "$STINT")/libstint_mpi.so" ]; then
    mpi 3 "$STINT" train r.ini --data c.csv --out run-mpi --json -q -j1 >mpi.json ||
        fail "3 ranks under mpirun"
    same mpi.json
else
    echo "no mpirun here"
fi
echo "1 to 4 ranks: the same bits"
