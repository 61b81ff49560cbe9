# Activations packed with errors on several processes: all hold the same tensors in the
# same blocks, so that their weights are those of one process; blocks that turn out too
# small on one of them are made larger on all; and a run goes on by another number.
. "$(dirname "$0")/ranks_lib.sh"
packed=(net.ini --json --set error.pack=all --set error.every=3)

alone() { # FOLDER [ARGUMENT...]: one process
    "$STINT" train --out "$1" --quiet -j 1 "${@:2}" >out.0 2>err.0 </dev/null || fail "$1: $(cat err.0)"
}

alone one "${packed[@]}"
want=$(sha out.0)
alone exact "${packed[@]}" --error 0
[ "$(sha out.0)" != "$want" ] || fail "nothing is packed"
for ranks in 2 3; do
    begin $ranks "${packed[@]}" --out "of_$ranks" -j $((4 - ranks))
    all_end 0
    [ "$(sha out.0)" = "$want" ] || fail "$ranks ranks: other weights than one process"
done
python3 - <<'PY' || fail "the ranks' log has other bounds than that of one process"
import json


def bounds(out):
    return [line for line in open(f"{out}/log.jsonl") if '"event":"bounds"' in line]


assert bounds("one") == bounds("of_2") == bounds("of_3") and len(bounds("one")) > 3
PY

# An error at which blocks are too small for some shards and not for others: the mean of
# what they want is less than there is.
some() {
    python3 - "$1" <<'PY'
import json, sys
rows = [row for line in open(f"{sys.argv[1]}/log.jsonl") if '"event":"growth"' in line
        for row in json.loads(line)["rows"]]
sys.exit(not any(row["bytes"] < row["capacity"] for row in rows))
PY
}
found=
for error in 1.86e-3 1.84e-3 1.88e-3 1.82e-3; do
    alone some "${packed[@]}" --force --error $error
    some some || continue
    found=$error want=$(sha out.0)
    begin 3 "${packed[@]}" --out some_of_3 --error $error
    all_end 0
    some some_of_3 || fail "no block of a part of the ranks is too small"
    [ "$(sha out.0)" = "$want" ] || fail "blocks that grow: 3 ranks have other weights"
    break
done
[ -n "$found" ] || fail "no error at which some blocks are too small"

# Blocks have grown by the first step; from there by 2, by 3 and by 1.
tight=("${packed[@]}" --error 1e-5 --set run.checkpoint_every=1 --set run.keep=20)
alone whole "${tight[@]}"
want=$(sha out.0)
begin 2 "${tight[@]}" --out parts
all_end 0
grep -q '"event":"growth"' parts/log.jsonl || fail "no block grows"
rm parts/checkpoints/step-000000{0[4-9],1?}.safetensors
begin 3 "${tight[@]}" --out parts --resume
all_end 0
[ "$(sha out.0)" = "$want" ] || fail "resumed by 3 ranks: other weights"
rm parts/checkpoints/step-000000{0[89],1?}.safetensors
alone parts "${tight[@]}" --resume
[ "$(sha out.0)" = "$want" ] || fail "resumed by one process: other weights"

# Budgets of their own: the least decides, and rank 0 says so.
wide=(net.ini --set error.pack=all --set error.every=3 --out budgets --net-root "@$(basename "$work")-budgets"
    --net-ranks 2)
"$STINT" train "${wide[@]}" --net-rank 1 --memory 300M >out.1 2>err.1 </dev/null &
"$STINT" train "${wide[@]}" --net-rank 0 --memory 400M --json --verbose >out.0 2>err.0 </dev/null ||
    fail "ranks of different budgets: $(cat err.0)"
wait
speaks 0 "rank 1 ("
speaks 0 "which has the least, 300.0 MiB"
[ "$(grep -c 'has the least' err.0)" = 1 ] || fail "it is not said once"

# What a plan of ranks says is what they take.
"$STINT" plan net.ini --json --set error.pack=all --memory 300M --net-ranks 2 >out || fail "plan"
json "j['fits'] and j['budget_bytes'] == 300 << 20"
json "any(t['form'] == 'packed' for t in j['tensors'])"
"$STINT" plan net.ini --set error.pack=all --memory 300M --net-ranks 2 >out || fail "plan in words"
says out "Budget of each process 300.0 MiB: fits"

finish
