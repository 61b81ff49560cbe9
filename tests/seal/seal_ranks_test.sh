# stint seal run over several ranks: the bytes of one, whatever their number and threads;
# ranks that have other files, and one that is lost.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
cat >h.c <<'END'
unsigned char h(unsigned char x, unsigned char y) { return x + y == 77 ? x : x ^ y; }
END
cat >long.c <<'END'
unsigned f(unsigned x, unsigned y) { for (int i = 0; i < 40; i++) x = (x + y) ^ x >> 7; return x; }
END
run 0 seal compile h.c --entry h --out h.seal
run 0 seal keygen --set-name p64 --out k
run 0 seal encrypt h.seal --key k/secret.key --value "x=70 y=7" --out h.ct
run 0 seal run h.seal --key k/eval.key --in h.ct --out one.ct -j 2 --json
sha=$(python3 -c 'import json; print(json.load(open("out"))["output_sha256"])')

# ranks N NAME WORD...: rank R has R + 1 threads; its answer is in NAME.R, its status too.
ranks() {
    local n=$1 name=$2 r pids=()
    shift 2
    for r in $(seq $((n - 1)) -1 0); do
        "$STINT" seal run "${@//@RANK/$r}" -j $((r + 1)) --net-root "@seal-$$-$name" \
            --net-ranks "$n" --net-rank "$r" >"$name.$r" 2>"$name.err$r" </dev/null &
        pids[r]=$!
    done
    for r in $(seq 0 $((n - 1))); do
        wait "${pids[r]}"
        echo $? >"$name.status$r"
    done
}

ranks 2 two h.seal --key k/eval.key --in h.ct --out two.ct --json
cp two.0 out
json "j['ranks'] == 2 and j['output_sha256'] == '$sha' and j['bootstraps'] > 25"
sanitized || json 'j["peak_rss_bytes"] <= j["planned_peak_bytes"]'
cmp -s one.ct two.ct || fail "two ranks, other bytes: $(cat two.err0 two.err1)"
[ ! -s two.1 ] || fail "rank 1 speaks"
ranks 3 three h.seal --key k/eval.key --in h.ct --out three.ct --order levels --net-sockets --json
cmp -s one.ct three.ct || fail "three ranks, other bytes: $(cat three.err*)"

# Ranks of other inputs.
run 0 seal encrypt h.seal --key k/secret.key --value "x=70 y=7" --out in0.ct
run 0 seal encrypt h.seal --key k/secret.key --value "x=70 y=7" --out in1.ct
ranks 2 other h.seal --key k/eval.key --in in@RANK.ct --out other.ct
grep -q "rank 1 has another" other.err0 || fail "not said: $(cat other.err0)"
[ "$(cat other.status0 other.status1)" = "4
4" ] || fail "status of ranks of other inputs"
[ ! -e other.ct ] || fail "a result of ranks of other inputs"

# A rank that is killed.
run 0 seal compile long.c --entry f --out long.seal
run 0 seal encrypt long.seal --key k/secret.key --value "x=1 y=3" --out long.ct
for r in 1 0; do
    "$STINT" seal run long.seal --key k/eval.key --in long.ct --out long.out -j 1 \
        --net-root "@seal-$$-lost" --net-ranks 2 --net-rank $r >lost.$r 2>lost.err$r </dev/null &
    pid[r]=$!
done
sleep 2
kill -KILL "${pid[1]}"
wait "${pid[0]}"
[ $? -eq 6 ] || fail "not 6 after a rank was lost: $(cat lost.err0)"
ls long.out* >/dev/null 2>&1 && fail "something was left of a run that lost a rank"

run 0 seal plan long.seal --net-ranks 2 -j 1 --json
json 'j["sent_bytes"] > 0'
run 0 seal plan long.seal -j 1 --json
json "j['sent_bytes'] == 0"
finish
