# --net auto measures, says what and why, and records the options that repeat the run.
. "$(dirname "$0")/ranks_lib.sh"

begin 2 net.ini --out auto --json --net auto --set train.steps=3 --set net.every=2
all_end 0
want=$(sha out.0)
options=$(python3 - auto/log.jsonl <<'PY'
import json, re, sys
events = [json.loads(line) for line in open(sys.argv[1])]
why = [e["why"] for e in events if e["event"] == "net"]
assert len(why) == 2 and why[0].startswith("measured "), why
assert "by a clock" in why[0] and "the link carries" in why[0], why
print(re.search(r"(--net \S+ --set net\.time=\S+) repeats", why[0]).group(1))
PY
) || fail "the log does not say what was measured"
grep -q "repeats this run" auto/report.html || fail "the report does not say it"
begin 2 net.ini --out again --json $options --set train.steps=3 --set net.every=2
all_end 0
[ "$(sha out.0)" = "$want" ] || fail "$options does not repeat the run"

# Without overlap the time is net.time's.
begin 2 net.ini --out after --json --net auto --set net.overlap=false --set net.time=3ms --set train.steps=1
all_end 0
grep -q 'given by net.time; by a clock: --net [0-9]*kbit --set net.time=3000us' after/log.jsonl ||
    fail "without overlap: $(grep '"net"' after/log.jsonl)"

# One process has no links.
run 0 train net.ini --out one --net auto --set train.steps=1
says err "this is one process, so nothing is sent"

finish
