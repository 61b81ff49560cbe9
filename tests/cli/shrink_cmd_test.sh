# stint shrink and train --scheme: limits that are kept, bits that never change, and
# what is refused.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
run 0 data glyphs --out g --train 1440 --test 360 --min-faces 10 -q
cat >small.ini <<'INI'
[model]
name = mlp
width = 32
depth = 1
[data]
path = g
[train]
epochs = 5
batch = 48
shards = 4
validation = 0.1
[optimizer]
name = sgd
lr = 0.05
momentum = 0.9
nesterov = true
INI
run 0 train small.ini -o base -q
lc="--set shrink.steps=5 --set shrink.mu_factor=1.5"

# A scheme as it is: the file is what stat says, its weights are what a dense export has.
run 0 shrink base --data g -o plain --scheme "prune(0.8)+quantise(int8)" --method direct --json
cp out plain.json
run 0 export dense plain/model.safetensors --out dense.safetensors
run 0 eval plain --data g --json
cp out eval.json
python3 - <<'PY' || fail "a scheme as it is"
import json, os, struct
r = json.load(open("plain.json"))
assert r["bytes"] == os.path.getsize("plain/model.safetensors"), r["bytes"]
assert r["met"] and r["method"] == "direct" and len(r["samples"]) == 1
assert r["sparsity"] == r["samples"][0]["sparsity"] == 1 - r["nonzeros"] / r["weights"]
assert r["judged_by"] == "validation" and r["judged"] == 144
data = open("dense.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + n])
assert head["__metadata__"]["weights_sha256"] == r["weights_sha256"]
zeros = total = 0
for name in ("hidden0.weight", "fc.weight"):
    a, b = head[name]["data_offsets"]
    x = struct.unpack("<%df" % ((b - a) // 4), data[8 + n + a:8 + n + b])
    zeros += sum(v == 0 for v in x)
    total += len(x)
    columns = head[name]["shape"][1]
    for c in range(columns): # few levels, evenly spaced
        levels = sorted({abs(v) for v in x[c::columns] if v})
        assert len(levels) <= 127
# What rounds to zero is zero, too.
assert zeros >= int(0.8 * total) and r["weights"] == total, (zeros, total)
assert r["nonzeros"] == total - zeros
assert abs(json.load(open("eval.json"))["accuracy"] - r["test_accuracy"]) < 1e-9
PY

# Products of thin matrices are in the file as such: fewer bytes than multiplied out,
# the same numbers to the bit, and they are those of the training's own file.
for method in direct lc; do
    run 0 shrink base --data g -o thin-$method --scheme "lowrank(0.8)+quantise(int8)" \
        --method $method --set shrink.steps=3 --json
    cp out thin.json
    run 0 export dense thin-$method/model.safetensors --out thin.safetensors
    run 1 diff thin.safetensors thin-$method/samples/*/model.safetensors
    says out "0 of 4 tensors differ" # (factors are in the second alone)
    python3 - <<'PY' || fail "products"
import json, os
r = json.load(open("thin.json"))
assert 0.78 < r["sparsity"] < 0.85, r["sparsity"]
assert all("product of rank" in l["form"] and "int8" in l["form"] for l in r["layers"])
held = sum(l["weights"] for l in r["layers"]) * (1 - r["sparsity"])
assert sum(l["bytes"] for l in r["layers"]) < 1.05 * held
assert r["bytes"] < held + 2000
PY
done

# A size: never above, and used.
run 0 shrink base --data g -o size --size 6K $lc --json
python3 - "$work/out" <<'PY' || fail "a size"
import json, os, sys
r = json.load(open(sys.argv[1]))
assert r["bytes"] == os.path.getsize("size/model.safetensors") <= 6144
assert r["bytes"] >= 0.95 * 6144 and r["met"] and r["size_ratio"] > 10
assert os.path.getsize("size/shrink.html") > 2000
PY
# The same again is the same, whatever the threads; and nothing is replaced unasked.
sha=$(python3 -c 'import json; print(json.load(open("out"))["weights_sha256"])')
run 2 shrink base --data g -o size --size 6K $lc
says err "holds a shrunk model"
run 0 shrink base --data g -o again --size 6K $lc -j 1 --json
grep -q "$sha" out || fail "another number of threads, another model"
run 0 shrink base --data g -o size --size 6K $lc --resume --json
grep -q "$sha" out || fail "going on with a finished search changes it"

! grep -q "no checkpoint" err || fail "it speaks of checkpoints"
# A search whose last sample was not begun goes on without a word of checkpoints.
mv size/samples sized && mkdir size/samples
run 0 shrink base --data g -o size --size 6K $lc --resume --json
grep -q "$sha" out || fail "going on with no samples changes it"
! grep -q "no checkpoint" err || fail "it speaks of checkpoints"

# The page shows what changed.
for words in "Size of the file" "Images with another answer" "was taken for"; do
    grep -q "$words" size/shrink.html || fail "the page has no '$words'"
done

# More than all of it takes: nothing is removed, by one training.
run 0 shrink base --data g -o ample --size 1M --method direct --json
python3 - "$work/out" <<'PY' || fail "an ample size"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["sparsity"] == 0 and len(r["samples"]) == 1 and r["met"], r
PY

# An accuracy: a bracket, no sample twice, and what is kept is within it.
run 0 shrink base --data g -o drop --accuracy-drop 4 --samples 4 $lc --json
python3 - "$work/out" <<'PY' || fail "an accuracy"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["met"] and r["accuracy_drop"] <= 0.04 + 1e-9, r["accuracy_drop"]
made = [(s["sparsity"], s["seed"]) for s in r["samples"]]
assert len(set(made)) == len(made) <= 4
low, high = r["bracket"]
assert low <= high and r["bytes"] == min(s["bytes"] for s in r["samples"] if s["met"])
PY

# Ctrl-C holds whenever it comes: here a sample is trained and its report being drawn.
want=$(sed 's/.*"weights_sha256":"\([0-9a-f]*\)".*/\1/' out)
"$STINT" shrink base --data g -o cut --accuracy-drop 4 --samples 4 $lc -q >/dev/null 2>err &
pid=$!
for i in $(seq 2000); do
    grep -q '"event":"end"' cut/samples/*/log.jsonl 2>/dev/null && break
    sleep 0.005
done
kill -INT $pid 2>/dev/null
wait $pid
[ $? -eq 130 ] || fail "Ctrl-C between two trainings is lost"
says err "--resume goes on"
run 0 shrink base --data g -o cut --accuracy-drop 4 --samples 4 $lc --resume --json
grep -q "$want" out || fail "a search that was stopped goes on to another model"

# Learning and compressing in turn: multipliers, a gap that closes, the best one taken.
python3 - <<'PY' || fail "the log of lc"
import glob, json
log = glob.glob("size/samples/*/log.jsonl")[0]
rows = [r for r in map(json.loads, open(log)) if r["event"] == "shrink"]
assert [r["compression"] for r in rows] == list(range(5)), rows
assert rows[0]["mu"] == 0 and rows[0]["multipliers"] == 0 and rows[1]["multipliers"] > 0
assert abs(rows[2]["mu"] / rows[1]["mu"] - 1.5) < 1e-9
assert rows[2]["distance"] < rows[0]["distance"]
best = min(r["compressed_loss"] for r in rows)
assert [r["compressed_loss"] for r in rows if r["chosen"]][-1] == best
PY

# Half of the test images judge a model that held nothing out. Labels of the others
# choose nothing: where these images change places among themselves, and so classes, the
# model is the same, and only what is reported is another.
sed '/^validation/d' small.ini >all.ini
run 0 train all.ini -o all -q
cp -r g moved
python3 - <<'PY' || fail "no test images"
import io, tarfile
tar = tarfile.open("g/test.tar")
files = sorted((m for m in tar if m.isfile()), key=lambda m: m.name)
data = [tar.extractfile(m).read() for m in files]
data[1::2] = data[1::2][37:] + data[1::2][:37]
out = tarfile.open("moved/test.tar", "w")
for m, d in zip(files, data):
    m.size = len(d)
    out.addfile(m, io.BytesIO(d))
out.close()
PY
for data in g moved; do
    run 0 shrink all --data $data -o half-$data --accuracy-drop 6 --samples 2 $lc --json
    cp out half-$data.json
done
[ "$(ls half-g/samples | wc -l)" -le 2 ] || fail "more samples than --samples allows"
run 0 eval half-g --data g --json
python3 - <<'PY' || fail "halves of the test images"
import json
r, e, m = (json.load(open(f)) for f in ("half-g.json", "out", "half-moved.json"))
assert r["judged_by"] == "half of the test images" and r["judged"] == 180
both = (r["accuracy"] + r["test_accuracy"]) / 2
assert abs(both - e["accuracy"]) < 1e-9, (both, e["accuracy"])
for key in ("weights_sha256", "base_accuracy", "accuracy", "mismatch_rate", "bracket"):
    assert r[key] == m[key], key
assert m["base_test_accuracy"] < r["base_test_accuracy"] - 0.1
PY

# Times that were measured are kept: a search that goes on chooses by the same ones, and
# measures anew what it cannot read.
run 0 shrink base --data g -o timed --latency 100x --scheme "row(auto)" --method direct --json
cp out timed.json
for change in true "cp $work/out" "truncate -s 37"; do
    $change timed/samples/times.txt
    run 0 shrink base --data g -o timed --latency 100x --scheme "row(auto)" --method direct \
        --resume --json
    python3 - "$work/out" "$change" <<'PY' || fail "a timed search goes on otherwise"
import json, sys
a, b = json.load(open("timed.json")), json.load(open(sys.argv[1]))
assert a["weights_sha256"] == b["weights_sha256"]
assert sys.argv[2] != "true" or a["latency_ms"] == b["latency_ms"]
PY
done

# Those of another scheme are none of this search's.
sed -i 's/^sample .*/sample 0 1 777777 777777/' timed/samples/times.txt
run 0 shrink base --data g -o timed --latency 100x --scheme "prune(auto)" --method direct \
    --resume --json
json 'j["latency_ms"] < 777777'

# What a model was trained by, of which a scheme knows nothing, is not asked of it again.
run 0 train small.ini -o averaged --epochs 1 --set train.average=0.9 \
    --set grow.by=schedule -q
run 0 finetune base --data g --what last --epochs 1 -o tuned -q
for model in averaged tuned; do
    run 0 shrink $model --data g -o of-$model --scheme "prune(0.5)" --set shrink.steps=2 --json
    json 'j["nonzeros"] == j["weights"] // 2'
done
# The scheme for a time is one that the network can have.
mkdir few
for part in train test; do tar -xf g/$part.tar -C few; done
rm -r few/*/[A-Z]
sed 's/name = mlp/name = mobilenetv2/; s/^path.*/&\nsize = 32/; s/^width.*//; s/^depth.*//' small.ini >mobile.ini
run 0 train mobile.ini -o mobile --data few --epochs 0 --steps 1 -q
run 0 shrink mobile --data few -o fast --latency 100x --method direct --json
json 'j["scheme"].startswith("structure(")'

# Each method, and ranks that share the shards, end with the bits of one process.
for method in fine-tune rewind lc; do
    run 0 train small.ini --start base -o m-$method --scheme "prune(0.7)" \
        --set shrink.method=$method --epochs 2 --set shrink.steps=4 --json
    one=$(python3 -c 'import json; print(json.load(open("out"))["weights_sha256"])')
    run 0 train small.ini --start base -o m-$method-j --scheme "prune(0.7)" \
        --set shrink.method=$method --epochs 2 --set shrink.steps=4 --json -j 2 --set run.lanes=2
    grep -q "$one" out || fail "$method: lanes change the bits"
    port=$((20000 + $$ % 20000))
    "$STINT" train small.ini --start base -o m-$method-r --scheme "prune(0.7)" \
        --set shrink.method=$method --epochs 2 --set shrink.steps=4 --net-root 127.0.0.1:$port \
        --net-ranks 2 --net-rank 1 -q >/dev/null 2>rank1 &
    run 0 train small.ini --start base -o m-$method-r --scheme "prune(0.7)" \
        --set shrink.method=$method --epochs 2 --set shrink.steps=4 --net-root 127.0.0.1:$port \
        --net-ranks 2 --net-rank 0 --json
    wait $! || fail "$method: rank 1: $(cat rank1)"
    grep -q "$one" out || fail "$method: ranks change the bits"
done

# From new weights: what goes is exactly zero, and is as much as was asked for.
sed 's/name = mlp/name = smallcnn/; s/^path.*/&\nsize = 14/; s/^width.*//; s/^depth.*//; s/validation.*//' small.ini >conv.ini
run 0 train conv.ini -o click --scheme "pattern(4)+kernel(0.5)" --epochs 3 \
    --set shrink.importance_batches=10 --json
one=$(python3 -c 'import json; print(json.load(open("out"))["weights_sha256"])')
run 0 train conv.ini -o click2 --scheme "pattern(4)+kernel(0.5)" --epochs 3 \
    --set shrink.importance_batches=10 --json -j 2 --set run.lanes=2
grep -q "$one" out || fail "click: lanes change the bits"
python3 - <<'PY' || fail "click"
import json, struct
data = open("click/model.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + n])
convs = [k for k, v in head.items() if k != "__metadata__" and len(v["shape"]) == 4
         and not k.startswith("mask")]
shapes = set()
for i, name in enumerate(convs):
    a, b = head[name]["data_offsets"]
    h, w, c, co = head[name]["shape"]
    x = struct.unpack("<%df" % ((b - a) // 4), data[8 + n + a:8 + n + b])
    kept = 0
    for k in range(c * co):
        taps = frozenset(t for t in range(h * w) if x[t * c * co + k] != 0)
        kept += bool(taps)
        if i > 0 and h == 3 and taps:
            assert len(taps) <= 4
            if len(taps) == 4:
                shapes.add(taps)
    assert kept == (c * co if i == 0 else c * co - -(-c * co // 2)), (name, kept)
assert 1 <= len(shapes) <= 4
rows = [r for r in map(json.loads, open("click/log.jsonl")) if r["event"] == "shrink"]
assert [r["phase"] for r in rows] == ["select", "hard"]
assert -1 <= rows[0]["correlation"] <= 1
PY

# Shares of layers by what is to be left: never more, and most of it used.
run 0 train conv.ini -o shared --scheme "pattern(4)+kernel(auto)" --set shrink.ratio=3 \
    --epochs 3 --set shrink.importance_batches=10 -q
python3 - <<'PY' || fail "kernel(auto)"
import json, struct
data = open("shared/model.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + n])
total = left = 0
for k, v in head.items():
    if k != "__metadata__" and not k.startswith("mask") and len(v["shape"]) == 4:
        a, b = v["data_offsets"]
        x = struct.unpack("<%df" % ((b - a) // 4), data[8 + n + a:8 + n + b])
        total += len(x)
        left += sum(i != 0 for i in x)
assert 0.9 * total / 3 <= left <= total / 3, (left, total)
PY
run 3 train conv.ini -o bad --scheme "kernel(auto)" --set shrink.ratio=500 --epochs 4
says err "the most is about 1"
rm -rf bad
run 2 train conv.ini -o bad --scheme "kernel(auto)"
says err "shrink.ratio"

# The last steps of learning and compressing train what is left: zeros stay, and
# the weights that are left move.
cat >finish.py <<'PY'
import glob, json, sys
lines = [json.loads(l) for l in open(glob.glob(sys.argv[1] + "/samples/*/log.jsonl")[0])]
lines = [l for l in lines if l["event"] == "shrink"]
assert len(lines) == 8, lines
drawn = [l["mu"] > 0 for l in lines]
assert drawn == [False] + [True] * int(sys.argv[2]) + [False] * (7 - int(sys.argv[2])), lines
for l, draws in zip(lines, drawn):
    assert (l["distance"] > 0 and l["multipliers"] > 0) == draws or l["compression"] == 0, l
    assert l["nonzeros"] == lines[0]["nonzeros"], l
print(min(l["compressed_loss"] for l in lines))
PY
for case in "0 7" "0.4 4" "0.9 1"; do
    # shellcheck disable=SC2086 # share, and steps that draw
    set -- $case
    run 0 shrink base --data g -o finish --force --scheme "prune(0.9)" --set shrink.steps=8 \
        --set shrink.finish="$1" -q
    python3 finish.py finish "$2" >"loss$2" || fail "shrink.finish=$1"
done
python3 -c 'assert float(open("loss4").read()) < float(open("loss7").read()) - 0.1' ||
    fail "training what is left gains nothing: $(cat loss4) and $(cat loss7)"
# Nothing of it where a scheme leaves no zeros.
run 0 shrink base --data g -o finish --force --scheme "quantise(int2)" --set shrink.steps=8 -q
python3 - <<'PY' || fail "multipliers end early without zeros"
import glob, json
lines = [json.loads(l) for l in open(glob.glob("finish/samples/*/log.jsonl")[0])]
assert all(l["mu"] > 0 for l in lines if l["event"] == "shrink" and l["compression"] > 0)
PY

# A training that is stopped goes on to the same model, wherever it stopped.
run 0 train small.ini --start base -o whole --scheme "row(0.5)" --set shrink.method=lc $lc --json
one=$(python3 -c 'import json; print(json.load(open("out"))["weights_sha256"])')
for compressions in 2 4; do
    rm -rf parts
    "$STINT" train small.ini --start base -o parts --scheme "row(0.5)" --set shrink.method=lc $lc -q \
        --set run.checkpoint_every=7 >/dev/null 2>&1 &
    pid=$!
    for i in $(seq 400); do
        made=$(grep -c '"shrink"' parts/log.jsonl 2>/dev/null)
        [ "${made:-0}" -ge $compressions ] && break
        sleep 0.01
    done
    kill -INT $pid 2>/dev/null
    wait $pid
    run 0 train small.ini --start base -o parts --scheme "row(0.5)" --set shrink.method=lc $lc \
        --set run.checkpoint_every=7 --resume --json
    grep -q "$one" out || fail "a run stopped after $compressions compressions goes on to another model"
done

# What is refused: words, budgets, data, models.
run 2 shrink base --data g -o bad --scheme "prun(0.5)"
says err "did you mean prune"
run 2 shrink base --data g -o bad --scheme "prune(0.5)@hiden0"
says err "did you mean hidden0"
run 2 shrink base --data g -o bad
says err "say what is wanted"
run 2 shrink base -o bad --size 6K
says err "data.path"
run 2 shrink base --data g -o bad --latency fast
says err "neither a time"
run 3 shrink base --data g -o bad --size 500
says err "the least is about"
# With other classes it would be another network.
run 4 shrink base --data few -o bad --scheme "prune(0.5)" --method direct
says err "are of 10 classes"
says err "tells 36 apart"
run 4 shrink base --data few -o bad --size 6K --plan
[ ! -e bad ] || fail "a refused search left a folder"
# The model itself is not replaced by what is made of it.
run 2 shrink base --data g -o base --scheme "prune(0.5)" --method direct --force
says err "written over"
run 2 shrink base --data g -o bad --accuracy-drop -0.5
says err "-1 for any"
run 3 shrink base --data g -o both --size 1500 --accuracy-drop 0 $lc --samples 2 --json
says err "the nearest is in"
json 'not j["met"] and j["out"].endswith("/both") and len(j["samples"]) == 2'
[ -s both/model.safetensors ] || fail "the nearest model did not stay"
# A latency that nothing keeps is known before anything is trained; where the share is
# given, the sample that is too slow stays.
run 3 shrink base --data g -o slow --latency 1ns --scheme "row(auto)" --method direct
says err "the least is about"
[ ! -e slow ] || fail "a latency out of reach was searched for"
run 3 shrink base --data g -o slow --latency 1ns --scheme "row(0.5)" --method direct
says err "the nearest is in"
[ -s slow/model.safetensors ] || fail "the nearest model did not stay"
# Nothing is no limit.
for nothing in "--size 0" "--latency 0" "--latency 0x" "--latency 0ms"; do
    run 2 shrink base --data g -o bad $nothing
    says err "nothing is that"
done
# Each fault is told once.
run 2 train conv.ini -o bad --scheme "prune(auto)"
[ "$(grep -c "shrink\." err)" = 1 ] || fail "complaints about one word: $(cat err)"
run 2 train small.ini -o bad --scheme "prune(0.5)"
says err "click prunes by"
run 2 train small.ini --start base -o bad --scheme "prune(auto)"
says err "auto is what stint shrink"
run 2 train conv.ini -o bad --scheme "kernel(0.5)" --set shrink.hard=0.2
says err "shrink.hard"
run 4 train conv.ini -o bad --scheme "kernel(0.5)" --epochs 0 --steps 4
says err "no room"
run 1 train small.ini --start base -o bad --scheme "prune(0.5)" --set shrink.method=lc --set shrink.mu=1e12
says err "mu = 1e+12"
rm -rf bad
mkdir empty && run 4 shrink base --data empty -o bad --size 6K

# A plan trains and writes nothing.
run 0 shrink base --data g -o never --size 6K --plan --json
[ ! -e never ] || fail "a plan wrote something"
! grep -q warning err || fail "a plan warns of shares that nobody asked for"
python3 - "$work/out" <<'PY' || fail "a plan"
import json, sys
p = json.load(open(sys.argv[1]))
sizes = [s["bytes"] for s in p["shares"]]
assert sizes == sorted(sizes, reverse=True) and p["samples"] == 10
assert all(s["latency_ms"] > 0 and s["base_ms"] > 0 for s in p["shares"])
assert p["sample_steps"] > 0 and p["sample_s"] > 0
PY

# Judging keeps to the memory as the trainings do: 128 images of 64 pixels, of which a step
# has two at a time.
within() { # BYTES ARGUMENT...
    python3 - "$STINT" "$@" <<'PY' || fail "stint $*"
import resource, subprocess, sys
done = subprocess.run([sys.argv[1], *sys.argv[3:]], stdout=subprocess.DEVNULL)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
if done.returncode or peak > int(sys.argv[2]):
    sys.exit("status %d, peak %d" % (done.returncode, peak))
PY
}
python3 "$STINT_SOURCE/tests/cli/cli_data.py" pixels 64 128 128
run 0 train -o of-pixels --data pixels --set model.name=resnet8 --epochs 1 --batch 8 --shards 4 \
    --set train.validation=0.3
sanitized || within $((24 << 20)) shrink of-pixels --data pixels --scheme "prune(0.5)" \
    --method fine-tune -o few --memory 24M -j 2 --set train.epochs=1 -q
finish
