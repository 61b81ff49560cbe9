#!/bin/bash
# One SHA-256 of all weights, however few rows are in memory, whichever policy, way of I/O,
# threads, lanes and prefetch, and after kills; planned misses are what happens.
. "$(dirname "$0")/clicks_lib.sh"
want=
check() { # NAME, then options
    local name=$1 sha
    shift
    "$STINT" train r.ini --data c.csv --out "run-$name" --json -q "$@" >"$name.json"
    sha=$(field "$name.json" weights_sha256)
    [ -n "$want" ] || want=$sha
    [ "$sha" = "$want" ] || { echo "$name: $sha, wanted $want"; exit 1; }
    [ "$(field "$name.json" rows_missed)" = "$(field "$name.json" rows_missed_planned)" ] ||
        { echo "$name: planned other misses"; exit 1; }
    echo "$name: $(field "$name.json" rows_missed) missing of $(field "$name.json" rows_touched)"
}
missing() { [ "$(field "$1.json" rows_missed)" -gt 500 ] || { echo "$1: all in memory"; exit 1; }; }
check all
/usr/bin/python3 -c "import sys; sys.exit(not float(sys.argv[1]) > 0.6)" \
    "$(field all.json test_auc)" || { echo "nothing was learned"; exit 1; }
for policy in future static lfu lru; do
    check $policy --set embedding.policy=$policy --set embedding.cache=260k
    missing $policy
done
check least --set embedding.policy=static --set embedding.cache=190k -j1
missing least
check uring --set embedding.policy=lru --set embedding.io=uring --set embedding.cache=250k -j2
check threads --set embedding.policy=lru --set embedding.io=threads --set embedding.cache=250k \
    --set embedding.prefetch=1 -j3
check mmap --set embedding.policy=static --set embedding.io=mmap --set embedding.cache=300k \
    --set embedding.prefetch=5
missing mmap
least=$("$STINT" plan r.ini --data c.csv --json -q | /usr/bin/python3 -c \
    'import json,sys; print(json.load(sys.stdin)["smallest_bytes"])')
if ! grep -q __asan_init "$STINT"; then # budgets of a process that carries no sanitizer
    check budget --set embedding.policy=static --memory "$least"
    [ "$(field budget.json peak_rss_bytes)" -le "$least" ] || { echo "over budget"; exit 1; }
    rc=0
    "$STINT" train r.ini --data c.csv --out run-small --set embedding.policy=static \
        --memory $((least - 400000)) -q 2>small.txt || rc=$?
    [ $rc = 3 ] && grep -q 'the least' small.txt || { cat small.txt; exit 1; }
fi
# Killed at any moment, a run goes on to the same bits.
for delay in 0.02 0.05 0.08 0.12 0.16 0.2 0.25; do
    rm -rf run-kill
    options=(--data c.csv --out run-kill --json -q --set embedding.policy=lfu
             --set embedding.cache=260k --set run.checkpoint_every=10)
    "$STINT" train r.ini "${options[@]}" >kill.json 2>/dev/null &
    pid=$!
    sleep $delay
    kill -9 $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    "$STINT" train r.ini "${options[@]}" --resume >kill.json
    [ "$(field kill.json weights_sha256)" = "$want" ] || { echo "killed after $delay s"; exit 1; }
done
echo "kills: the same bits"

# An end by epochs is one by as many steps, also for rates that fall towards it.
sed 's/^steps = .*/epochs = 1/' r.ini >epochs.ini
for name in one-cycle cosine; do
    options=(--data c.csv --json -q --set schedule.name=$name)
    "$STINT" train epochs.ini "${options[@]}" --out run-epoch-$name >epoch.json
    "$STINT" train r.ini "${options[@]}" --out run-steps-$name \
        --steps "$(field epoch.json steps)" >steps.json
    [ "$(field epoch.json weights_sha256)" = "$(field steps.json weights_sha256)" ] ||
        { echo "$name: an epoch is not its steps"; exit 1; }
done
