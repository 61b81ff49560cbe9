# net simulate, net predict, net measure, net check; training with compressed sums, by
# processes that meet at a port of this machine.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1

# Closed forms: a ring of 2 (n - 1) hops; scatter, two rounds of n - 1 slices.
run 0 net simulate -n 16 --values 1000000 --bits 32 --scheme ring --rate 1Gbit --whole \
    --latency 50us --decode 0ns --json
json 'abs(j["sums"][0]["seconds"] - 30 * (50e-6 + 4e6 / 16 * 8e-9)) < 1e-9'
run 0 net simulate -n 16 --values 1000000 --bits 32 --latency 50us --decode 0ns --whole --json
json 'abs(j["sums"][0]["seconds"] - 2 * (50e-6 + 15 * 4e6 / 16 * 8e-9)) < 1e-9'
json 'j["sums"][0]["messages"] == 16 * 15 * 2'
run 0 net simulate --topology fat-tree -n 256 --group 16 --scheme two-level --table --json
json '[s["ranks"] for s in j["sums"]][::2] == [16, 32, 64, 128, 256]'
json 'j["sums"][-2]["seconds"] * 4 < j["sums"][-1]["seconds"]'
run 0 net simulate -n 4 --table --json
json '[s["ranks"] for s in j["sums"]] == [4, 4]'
# What would take all memory, or hours, does not begin; longer sums go in larger parts.
run 7 net simulate -n 65536 --topology dumbbell
says err "of memory, this host has"
run 0 net simulate -n 2 --values 1000000000000 --json
json '1000 < j["sums"][0]["parts"] <= 4096'
run 2 net simulate -n 9 --group 2
says err "multiple"
run 2 net simulate --bits 9
run 2 net simulate --rate fast
says err "100Mbit"

cat >links.json <<'END'
{"format": "stint links", "version": 1, "kind": "tcp", "ranks": 2, "seconds": 1,
 "encode_s_per_value": 0, "decode_s_per_value": 0, "links": [
  {"from": 0, "to": 1, "samples": 100, "p95_over_median": 1.1, "median_interval": 0.01,
   "segments": [{"from_bytes": 0, "alpha_s": 1e-4, "beta_s_per_byte": 8e-8,
    "alpha_bounded": false, "quantiles": [0.9,0.92,0.94,0.98,1,1.02,1.06,1.08,1.1,1.2]}]}]}
END
run 0 net predict links.json -n 2 --values 1000000 --bits 32 --json
# (in parts: the answers to the first ones hide the latency of the last)
json '-1e-9 < j["seconds"] - (2 * 2e6 * 8e-8 + 1e-4) < 1e-4'
json 'abs(j["seconds_95"] / j["seconds"] - 1.06) < 1e-9'
# Thousands of processes that do alike are few to look at.
run 0 net predict links.json -n 4096 --bits 4 --json
json '1.9 < j["seconds"] / (25e6 * 0.508 * 8e-8) < 2.1'
json 'j["way"] == "scatter"'
run 0 net predict links.json -n 4 --bits 2 --scheme ring
says out "in 2 bits by ring, 4 processes; 5 % to 95 %: "
run 4 net predict /dev/null
run 5 net predict nowhere.json
sed 's/1e-4/-1/' links.json >bad.json
run 4 net predict bad.json
says err "alpha_s"
run 2 net measure
says err "mpirun"
run 2 net measure --largest 1K
says err "at least 64.0 KiB"
run 2 net measure --pattern star
says err "must be pairs, at-once, neighbours, all-to-all, incast, fan-out or allreduce"
run 2 net check --time 0
says err "above 0"
for timeout in 1ms 1e300s; do
    run 2 net check --net-timeout $timeout
    says err "must be from 0.1 s to 100 days"
done
run 6 net check --net-root '[fe80::1]:2000' --net-ranks 2 --net-rank 0
says err "no address of that name"

# ---- two processes ----

port=$((10000 + $$ % 22000)) # below those of connections
# both STATUS ARGS...: the program as ranks 0 and 1; the status of rank 0.
both() {
    local want=$1 got
    shift
    port=$((port + 1))
    timeout 60 $STINT "$@" --net-root 127.0.0.1:$port --net-ranks 2 --net-rank 1 \
        >other.out 2>other.err &
    timeout 60 $STINT "$@" --net-root 127.0.0.1:$port --net-ranks 2 --net-rank 0 \
        >out 2>err
    got=$?
    wait $!
    [ $got = "$want" ] || fail "stint $* gave $got: $(tail -3 err)"
}

both 0 net measure --time 0.3s --largest 256K -o measured.json
grep -q "rank" out || grep -q " to 1 " out || fail "no link told: $(cat out)"
run 0 net predict measured.json --values 100000
both 0 net measure --pattern all-to-all --time 0.2s --largest 64K -o nothing.json
says out "all-to-all, 2 ranks over shared memory; no file is written"
says out "bus"
both 7 net measure --pattern all-to-all --largest 900G
says err "of memory for them, this host has"
[ ! -e nothing.json ] || fail "a pattern wrote a file"
both 0 net measure --pattern allreduce --time 0.2s --largest 64K --net-sockets --json
json 'j["pattern"] == "allreduce" and j["kind"] == "tcp" and len(j["sizes"]) == 8'
# A busy machine may leave a size without a time, and then without a rate.
json 'any(s["bus_bits_per_s"] for s in j["sizes"])'
json 'all(abs(s["bus_bits_per_s"] / s["algorithm_bits_per_s"] - 1) < 1e-9 for s in j["sizes"] if s["bus_bits_per_s"])'
both 0 net check --time 0.2s
grep -q "rank 1 on" out || fail "no rank told: $(cat out)"
both 0 net check --time 0.2s --json
json '[p["rank"] for p in j["places"]] == [0, 1] and all(p["cpus"] for p in j["places"])'
json '[(l["from"], l["to"]) for l in j["links"]] == [(0, 1), (1, 0)]'
json 'all(l["bits_per_s"] > 0 and l["byte_s"] > 0 for l in j["links"])'
[ ! -s other.out ] || fail "rank 1 answers, too"
# Bound to one CPU, both of them; and a file that cannot be written: told before, and once.
if command -v taskset >/dev/null; then
    cpu=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')
    STINT="taskset -c $cpu $STINT" both 0 net check --time 0.2s
    grep -q "(${cpu}); more ranks here than CPUs" out || fail "bound to one CPU: $(cat out)"
    STINT="taskset -c $cpu $STINT" both 0 net measure --time 0.2s --largest 64K -o crowded.json
    says err "than CPUs for them: these times are no measure of the links"
    [ ! -s other.err ] || fail "rank 1 says it, too: $(cat other.err)"
fi
both 5 net measure --time 100s -o nowhere/links.json
says err "nowhere/links.json: cannot be written"
[ ! -s other.err ] || fail "rank 1 says it, too: $(cat other.err)"

python3 "$STINT_SOURCE/tests/cli/cli_data.py" data 12 256 32
cat >r.ini <<'END'
[data]
path = data
[model]
name = mlp
[train]
steps = 24
batch = 32
shards = 4
[optimizer]
lr = 0.05
[run]
checkpoint_every = 12
keep = 9
[net]
bits = 4
END
sha() { # of the weights after a run
    python3 -c 'import json, sys
print([json.loads(l) for l in open(sys.argv[1])][-1]["weights_sha256"])' "$1/log.jsonl"
}
both 0 train r.ini --out one -j 1
both 0 train r.ini --out two -j 2
[ "$(sha one)" = "$(sha two)" ] || fail "the same run gave other weights"
both 0 train r.ini --out exact -j 1 --set net.bits=32
[ "$(sha one)" != "$(sha exact)" ] || fail "4 bits changed nothing"

# From the checkpoint of step 12, with the residuals it holds.
mkdir -p again/checkpoints
cp one/checkpoints/step-00000012.safetensors again/checkpoints/
both 0 train r.ini --out again -j 1 --resume
[ "$(sha one)" = "$(sha again)" ] || fail "a resumed run gave other weights"
run 2 train r.ini --out alone --set net.bits=9
says err "net.bits"
run 2 train r.ini --out alone --set net.bits=4 --set net.keep=0.1 --set net.feedback=false
says err "net.keep"
run 2 train r.ini --out alone --net 100Mbit
says err "net.bits"
run 2 train r.ini --out alone --set net.keep=0.1
says err "leaves nothing to compress: remove net.bits"
run 2 train r.ini --out alone --set net.bits=32 --net 1Gbit --set net.time=1e300s
says err "at most a day"

# An error budget of one's own: more bits for less error, and the other way round.
for times in 0.1 1 10; do
    both 0 train r.ini --out "error$times" -j 1 --set net.bits=auto --set net.error=$times \
        --set train.steps=2 --json
    cp out "error$times.json"
done
python3 - <<'PY' || fail "net.error: bytes and errors do not follow it"
import json, re
bytes_sent, error = [], []
for times in ("0.1", "1", "10"):
    lines = [json.loads(line) for line in open(f"error{times}/log.jsonl")]
    why = next(line["why"] for line in lines if line["event"] == "net")
    bytes_sent.append(json.load(open(f"error{times}.json"))["net_bytes"])
    error.append(float(re.search(r"error (\S+) of the gradient", why).group(1)))
    assert (f"with {times} times the error" in why) == (times != "1"), why
assert bytes_sent[0] > bytes_sent[1] > bytes_sent[2], bytes_sent
assert error[0] < error[1] < error[2], error
PY
run 2 train r.ini --out alone --set net.error=2
says err "net.error: is the budget of net.bits = auto"

# Bits chosen for a link, and told.
both 0 train r.ini --out linked -j 1 --set net.bits=32 --net 100Mbit --set net.time=2ms -v
grep -q "the link carries" err || fail "no word on what was chosen: $(cat err)"
finish
