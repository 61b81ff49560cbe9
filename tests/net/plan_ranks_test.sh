# stint plan --net-ranks: what several processes take and send is said beforehand, and is
# what they then announce and send.
. "$(dirname "$0")/ranks_lib.sh"
# (A sanitizer's own memory is not planned.)
grep -q '^STINT_SANITIZE:.*=$' "$STINT_BUILD/CMakeCache.txt" && exact=1 || exact=
has() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"; }

cat >sent.py <<'END'
import json, sys
net, run = json.load(open("plan"))["net"], json.load(open("out.0"))
own, = [s for s in net["sums"] if s["own"]]
more = run["net_bytes"] - run["steps"] * net["ranks"] * own["rank_bytes"]
sys.exit(not 0 <= more < 5000 * net["ranks"])
END

# same RANKS ARGUMENT...: a run of two steps announces the peak that its plan says, and
# sends what it says, beside small messages at the start, the steps and the end.
same() {
    local n=$1
    shift
    run 0 plan net.ini --net-ranks "$n" --json "$@"
    cp out plan
    begin "$n" net.ini --out "runs/$((runs += 1))" --json --set train.steps=2 "$@" "${links[@]}"
    all_end 0
    python3 sent.py || fail "$n ranks $*: sent $(has out.0 net_bytes)"
    [ ! "$exact" ] || [ "$(has plan peak_bytes)" = "$(has out.0 planned_peak_bytes)" ] ||
        fail "$n ranks $*: $(has out.0 planned_peak_bytes) announced, not $(has plan peak_bytes)"
}
runs=0 links=(--net-sockets)
echo 'width = 4' | sed -i '/^name = resnet8/r /dev/stdin' net.ini
same 2
run 0 plan net.ini --net-ranks 2 --error 0 --memory 1G --json
[ ! "$exact" ] || same 2 --error 0 --memory "$(has out smallest_bytes)"
same 3 --set net.bits=4 --set net.feedback=false # (a checkpoint sends what is fed back)
links=()                                         # memory that processes of a host share
same 4 --set net.bits=5 --set net.feedback=false --set net.scheme=two-level --set net.group=4

# Bytes of all ways; times and what is short enough where a rate is named.
sed 's/resnet8/mlp/; s/width = 4/width = 64/' net.ini >mlp.ini
run 0 plan mlp.ini --net-ranks 3 --net 100Mbit --json
json '[s["bits"] for s in j["net"]["sums"]] == [32, 8, 4, 2]'
json 'all(s["fits"] and s["seconds"] > s["rank_bytes"] * 8e-8 for s in j["net"]["sums"])'
run 0 plan mlp.ini --net-ranks 3 --net 1Mbit --set net.time=20ms
says out "None is short enough for net.time (20 ms)"
says out "--set net.keep="
run 0 plan mlp.ini --net-ranks 3 --net auto --json
json 'all(s["seconds"] is None and not s["own"] for s in j["net"]["sums"])'
run 0 plan mlp.ini --net-ranks 3 --set net.keep=0.01
says out "3 processes, of which this one has 2 of 8 shards"
says out "largest 1 %"
says out "--net 100Mbit"
run 0 plan mlp.ini --json
json '"net" not in j'

# What ranks cannot do is refused as a run would.
run 2 plan net.ini --net-ranks 0
says err "must be from 1 to 65536"
run 2 plan net.ini --net-ranks 9
says err "cannot be shared out to 9 processes; start at most 8"
says err "or train with --shards 16 (which is another run"
run 2 plan net.ini --net-ranks 9000
says err "9000 processes; start at most 8"
grep -q -e "--shards" err && fail "a batch of 32 cannot be cut into 9000 shards: $(cat err)"
run 2 plan net.ini --net-ranks 2 --batch auto --memory 1G
says err "every rank would find its own; give a number by --batch"
run 2 plan net.ini --net-ranks 4 --set net.scheme=two-level --set net.group=3
says err "4 ranks in groups of 3"
run 3 plan net.ini --net-ranks 2 --memory 4M
says err "memory: needs"
finish
