# train, plan, eval, run, info, report on a small set: what scripts rely on, and the ways
# a run can be refused, stopped and resumed.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python3 "$STINT_SOURCE/tests/cli/cli_data.py" data
cat >r.ini <<'INI'
[model]
name = lenet5
[data]
path = data
[train]
epochs = 3
batch = 32
shards = 2
[optimizer]
lr = 0.05
INI

# ---- plan
run 0 plan r.ini --json
json 'j["fits"] is True and j["peak_bytes"] == sum(p["bytes"] for p in j["parts"])'
json 'len(j["parts"]) >= 6 and all(p["name"] for p in j["parts"])'
json 'len(j["timeline_bytes"]) > 5'
peak=$(python3 -c 'import json; print(json.load(open("out"))["peak_bytes"])')
run 0 plan r.ini --memory $((peak + 1048576))
says out "fits"
run 3 plan r.ini --memory 1M --json
json 'j["fits"] is False and j["smallest_bytes"] > 2**20'
says err "short by"
# What it says would fit does.
run 0 plan r.ini --memory $(grep -o -- '--memory [0-9]*M' err | cut -d' ' -f2)
run 0 plan r.ini --svg plan.svg
grep -q '</svg>' plan.svg || fail "plan --svg"
[ ! -e runs ] || fail "plan wrote something"

# ---- train
run 0 train r.ini --out a --json
json 'j["test_accuracy"] > 0.9 and j["test_loss"] > 0 and j["images_per_s"] > 0'
json 'j["planned_peak_bytes"] > 0 and j["peak_rss_bytes"] > 0 and j["seed"] == 1'
json 'len(j["weights_sha256"]) == 64 and j["threads"] >= 1 and j["shards"] == 2'
says err "planned peak"
sha=$(python3 -c 'import json; print(json.load(open("out"))["weights_sha256"])')
for file in model.safetensors log.jsonl recipe.ini report.html; do
    [ -s a/$file ] || fail "a/$file is missing"
done
python3 - <<'PY' || fail "log.jsonl"
import json
events = [json.loads(line)["event"] for line in open("a/log.jsonl")]
assert events[0] == "start" and events[-1] == "end" and events.count("epoch") == 3
PY
run 0 train a/recipe.ini --out b --quiet --json -j 1
silent err
json "j['weights_sha256'] == '$sha' and j['threads'] == 1"
run 5 train a --out b2
says err "a: is a folder, the file of a recipe is wanted; that of the run in it is a/recipe.ini"
run 5 plan data
says err "data: is a folder, the file of a recipe is wanted"
grep -q "recipe.ini" err && fail "points to a recipe that is not there"
run 0 train r.ini --out c -q
says out "test accuracy"
silent err
run 0 train r.ini --out d --epochs 1 --seed 5 --set optimizer.lr=0.01 --json
json "j['weights_sha256'] != '$sha' and j['seed'] == 5 and j['epochs'] == 1"
grep -q '^lr = 0.01' d/recipe.ini || fail "the resolved recipe is not the one used"
STINT_SEED=6 run 0 train r.ini --out d2 --epochs 1 --json -q
json 'j["seed"] == 6'
STINT_SEED=6 run 0 train r.ini --out d3 --epochs 1 --json -q --seed 7
json 'j["seed"] == 7'
run 3 train r.ini --out e --memory 1M --json
json 'j["error"]["code"] == 3'
says err "memory"
[ ! -e e ] || fail "a refused run wrote something"

# ---- a finished run is not replaced by mistake
before=$(sha256sum <a/model.safetensors)
run 2 train r.ini --out a --seed 9
says err "--force"
[ "$before" = "$(sha256sum <a/model.safetensors)" ] || fail "the model was touched"
run 0 train r.ini --out a --force --seed 1 --json
json "j['weights_sha256'] == '$sha'"

# ---- eval, run, info, report
run 0 eval a --json
json "j['accuracy'] > 0.9 and j['loss'] > 0 and j['weights_sha256'] == '$sha'"
json 'len(j["per_class"]) == 2 and j["per_class"][0]["count"] == 32'
run 0 eval a/model.safetensors --data data --split train --confusion
says out "accuracy"
mkdir plain # black and white: nothing is mistaken, and nothing stands under that heading
python3 - <<'PY'
import os, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for split in "train", "test":
    for name, grey in ("black", 0), ("white", 255):
        os.makedirs(f"plain/{split}/{name}")
        for i in range(8):
            rows = (b"\0" + bytes([abs(grey - i)] * 8)) * 8
            open(f"plain/{split}/{name}/{i}.png", "wb").write(
                b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PY
run 0 train r.ini --data plain --set model.name=mlp --set model.width=8 --steps 20 --batch 16 --out plain-run -q
run 0 eval plain-run --data plain --confusion
says out "accuracy 100.00 %"
grep -q mistaken out && fail "a heading without anything under it"
cp plain/test/white/0.png plain/test/black/w.png
run 0 eval plain-run --data plain --confusion
says out "Most often mistaken:"
says out "taken for white"
run 4 eval r.ini --data data
run 5 eval nothing.safetensors --data data
run 0 info a --json
json "j['parameters'] > 100 and j['weights_sha256'] == '$sha' and len(j['tensors']) == 10"
run 0 info a --graph dot
says out "digraph"
run 0 info r.ini --graph text --mode train
says out "conv2d"
run 0 info r.ini
says out "parameters"
rm a/report.html
run 0 report a --json
json 'j["report"].endswith("/a/report.html")'
[ -s a/report.html ] || fail "no report"
run 4 report data
says err "--out"
python3 - <<'PY'
import struct, zlib
def chunk(t, d): return struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
for name, bright in (("top", 0), ("bottom", 6)):
    rows = b"".join(b"\0" + bytes([200 if y // 6 * 6 == bright else 20] * 12) for y in range(12))
    open(name + ".png", "wb").write(b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 12, 12, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PY
run 0 run a top.png bottom.png --json
json '[p["classes"][0]["class"] for p in j["predictions"]] == ["0", "1"]'
printf 'top.png\nbottom.png\n' >list
"$STINT" run a - <list >out 2>err || fail "run -"
[ "$(grep -c 'png' out)" -eq 2 ] || fail "run - printed $(cat out)"
run 5 run a top.png no.png --top 1
says out "top.png"
says err "no.png"
run 4 run a r.ini
says err "r.ini"

# ---- stopping and going on: the bits are those of a run in one piece
sed 's/epochs = 3/epochs = 200/' r.ini >long.ini
"$STINT" train long.ini --out s --json >out 2>err &
pid=$!
for i in $(seq 100); do grep -q '"epoch"' s/log.jsonl 2>/dev/null && break; sleep 0.1; done
kill -INT $pid
wait $pid
[ $? -eq 130 ] || fail "SIGINT: wrong status"
json_ok
"$STINT" train long.ini --out s --resume >out 2>err &
pid=$!
sleep 0.3
kill -TERM $pid
wait $pid
[ $? -eq 143 ] || fail "SIGTERM: wrong status"
# A first signal ends it, too, before training has begun: a deep network is planned yet.
"$STINT" train long.ini --out s_early --set model.name=mlp --set model.depth=300 >out 2>err &
pid=$!
sleep 0.2
kill -TERM $pid
wait $pid
[ $? -eq 143 ] || fail "SIGTERM before training: wrong status"
# A profile of what was run until then.
"$STINT" train long.ini --out s_timed --profile >out 2>err &
pid=$!
for i in $(seq 100); do grep -q '"epoch"' s_timed/log.jsonl 2>/dev/null && break; sleep 0.1; done
kill -INT $pid
wait $pid
[ $? -eq 130 ] || fail "SIGINT with --profile: wrong status"
says out "whole step"
says err "stopped after step"
# A second signal ends the program at once: both are waiting when it wakes up.
"$STINT" train long.ini --out s2 >out 2>err &
pid=$!
for i in $(seq 100); do [ -s s2/log.jsonl ] && break; sleep 0.1; done
kill -STOP $pid
kill -INT $pid
kill -TERM $pid
kill -CONT $pid
wait $pid
case $? in 130 | 143) ;; *) fail "two signals: wrong status" ;; esac
# SIGUSR1 writes a checkpoint now and the run goes on (there would be none until its end).
"$STINT" train long.ini --out s3 --set run.checkpoint_every=1000000 >out 2>err &
pid=$!
for i in $(seq 100); do grep -q '"step"' s3/log.jsonl 2>/dev/null && break; sleep 0.1; done
[ -z "$(ls s3/checkpoints 2>/dev/null)" ] || fail "a checkpoint before SIGUSR1"
kill -USR1 $pid
for i in $(seq 100); do [ -n "$(ls s3/checkpoints 2>/dev/null)" ] && break; sleep 0.1; done
[ -n "$(ls s3/checkpoints 2>/dev/null)" ] || fail "SIGUSR1: no checkpoint"
kill -0 $pid || fail "SIGUSR1 ended the run"
kill -TERM $pid
wait $pid
[ $? -eq 143 ] || fail "SIGTERM after SIGUSR1: wrong status"
run 2 bench step r.ini --runs 1 --batch auto
says err "train.batch: auto is found by training only"
run 2 bench step r.ini --runs 1 --batch 1
says err "fewer --shards"
run 2 bench step r.ini --runs 1 --batch 9
says err "use --batch 10 or other --shards"
run 2 bench step r.ini --runs 1 --image-channels 2
says err "--image-channels: 2 is neither grey (1) nor colour (3)"
run 2 bench step r.ini --runs 1 --set data.channels=2 --set data.size=20 --classes 4
says err "data.channels: 2 is neither"
run 2 bench step r.ini --runs 1 --image-size 20
says err "give all of them or none"
run 0 bench step r.ini --runs 1 --image-size 20 --image-channels 3 --classes 7 --json
json 'j["images_per_s"] > 0'
if ! grep -qE '__(asan|msan|tsan)_init' "$STINT"; then # which take terabytes of addresses
    (ulimit -v 4000000 && "$STINT" bench step r.ini --runs 1 --batch 1000000 -j 1) >out 2>err
    [ $? -eq 7 ] || fail "no memory for a step: wrong status"
    says err "a step of batch 1000000 in 2 shards on 1 lane takes"
    says err "take a smaller --batch or more --shards; \`stint plan\` says"
fi
run 0 bench step r.ini --runs 1 --memory 16M
says err "the budget of 16.0 MiB is not kept"
says out "1 step of 2 shards"
run 0 bench step r.ini --runs 1 --json
json 'j["images_per_s"] > 0 and len(j["operators"]) > 5'
# The parts of a step add up to it, on one lane and on two, and profiling changes no bit.
parts='sum(o["s_a_step"] for o in j["operators"]) + sum(p["s_a_step"] for p in j["parts"])'
json "abs($parts - j['step_s']) < 1e-6 * j['step_s']"
run 0 train r.ini --out timed --steps 20 --profile -j 2 --json
json "abs($parts - j['step_s']) < 1e-6 * j['step_s'] and j['profiled_steps'] == 20"
timed=$(python3 -c 'import json; print(json.load(open("out"))["weights_sha256"])')
run 0 train r.ini --out words --steps 2 --profile
says out "whole step"
run 0 train r.ini --out one --steps 20 --json
json 'j["steps"] == 20 and "operators" not in j'
json "j['weights_sha256'] == '$timed'"
sha=$(python3 -c 'import json; print(json.load(open("out"))["weights_sha256"])')
"$STINT" train r.ini --out two --steps 20 --set run.checkpoint_every=1 2>/dev/null >out &
pid=$!
for i in $(seq 100); do ls two/checkpoints/* >/dev/null 2>&1 && break; sleep 0.02; done
kill -KILL $pid
wait $pid 2>/dev/null
run 0 train r.ini --out two --steps 20 --resume --json
json "j['weights_sha256'] == '$sha'"

# ---- no output folder, no data, wrong data
run 5 train r.ini --out /proc/nowhere
run 4 train r.ini --data /nowhere --out f
says err "/nowhere"
mkdir empty
run 4 train r.ini --data empty --out f
says err "empty"
run 4 train r.ini --batch 512 --out f
says err "512"
printf '[model]\nnmae = lenet5\n[trian]\nbatch = 3\n[train]\nshards = two\n' >bad.ini
run 2 train bad.ini
says err "bad.ini:2"
says err "'name'"
says err "bad.ini:3"
says err "bad.ini:6"
run 2 train r.ini --batch 33
says err "34"
run 5 train nowhere.ini
says err "nowhere.ini"

# ---- stderr's reader goes away: the run goes on
"$STINT" train r.ini --out g --json 2> >(head -c 1 >/dev/null) >out || fail "closed stderr"
json "j['test_accuracy'] > 0.9"
finish
