# Imported networks are trained: a step beside NumPy's, the same bits for any threads, after a
# resume and from a file that was written, other classes, parts, and what is refused.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
PYTHONPATH=$STINT_SOURCE/tests/cli PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 \
    "$STINT_SOURCE/tests/cli/onnx_train.py" || fail "no models"
for name in linear conv wide attention together bare; do
    run 0 import onnx $name.onnx --out $name.st --mean 0.5 --std 0.25 -q
done
sha() { python3 -c "import json; print(json.load(open('$work/out'))['weights_sha256'])"; }

# ---- one step of all images, whatever it is cut into
for shards in 1 4; do
    run 0 train --start linear.st --data data --steps 1 --batch 24 --shards $shards --out one --force \
        --set optimizer.name=sgd --set optimizer.lr=0.5 --set optimizer.momentum=0 --set optimizer.nesterov=false \
        --set optimizer.weight_decay=0 --set schedule.name=constant --set schedule.warmup=0 --set data.flip=false \
        --set data.crop_pad=0 --set data.scale_crop=0 --set train.label_smoothing=0 --json -q
    python3 - "$work/out" <<'PY' || fail "another step than NumPy's"
import json, struct, sys
import numpy as np
want, j = np.load("want.npz"), json.load(open(sys.argv[1]))
data = open("one/model.safetensors", "rb").read()
n, = struct.unpack("<Q", data[:8])
head = json.loads(data[8:8 + n])
assert head["__metadata__"]["stint.kind"] == "network" and head["__metadata__"]["network"] == "imported"
for name in "wb":
    begin, end = head[name]["data_offsets"]
    got = np.frombuffer(data[8 + n + begin:8 + n + end], "f4").reshape(head[name]["shape"])
    assert got.shape == want[name].shape and np.abs(got - want[name]).max() < 1e-6, name
assert abs(j["train_loss"] - want["loss"]) < 1e-5, (j["train_loss"], float(want["loss"]))
PY
done
grep -q '^name = imported$' one/recipe.ini || fail "the recipe does not say whose network it is"
grep -q 'start = .*linear.st$' one/recipe.ini || fail "the recipe does not name the file"

# ---- it learns; threads, resume, a way on
for name in conv attention; do
    tune="finetune $name.st --data data --set optimizer.lr=0.1 --set schedule.name=constant --batch 12 --shards 4 --json -q"
    run 0 $tune --steps 60 --out $name -j 2
    json "j['test_loss'] < 0.6 and j['test_accuracy'] >= 0.8"
    whole=$(sha)
    cp out $name.json
    run 0 eval $name --data data --json
    json "(w:=json.load(open('$name.json'))) and abs(j['loss'] - w['test_loss']) < 1e-5 and j['accuracy'] == w['test_accuracy']"
    run 0 $tune --steps 60 --out $name.1 -j 1
    [ "$(sha)" = "$whole" ] || fail "$name: other bits on another number of threads"
    run 0 $tune --steps 25 --out $name.2
    run 0 $tune --steps 60 --out $name.2 --resume
    [ "$(sha)" = "$whole" ] || fail "$name: other bits after a resume"
    run 0 $tune --steps 1 --what last --out $name.3
    run 0 $tune --steps 1 --what bias --out $name.4
    run 0 finetune $name --data four --steps 2 --batch 4 --out $name.5 --json -q
    run 0 run $name.5/model.safetensors data/test/a/0.png --top 9 --json
    json "len(j['predictions'][0]['classes']) == 4"
    run 0 compare $name.st $name --data data --json
    run 0 plan $name/model.safetensors --json
    run 0 info $name/model.safetensors
    says out "imported network"
    run 0 export onnx $name --out $name.5/out.onnx --normalise
    run 0 import onnx $name.5/out.onnx --out $name.6.st -q
    run 0 eval $name.6.st --data data --json
    json "abs(j['loss'] - json.load(open('$name.json'))['test_loss']) < 1e-5"
done
# What is added is told by the network's nodes: names say nothing here. In a bias training it
# alone changes, beside the classifier; a sparse one trains it, too.
cat >changed.py <<'PY'
import json, struct, sys
def tensors(path):
    data = open(path, "rb").read()
    n, = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + n])
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]
            for k, v in head.items() if k != "__metadata__"}
old, new = tensors(sys.argv[1]), tensors(sys.argv[2])
assert sorted(old) == sorted(new)
print(*sorted(k for k in old if new[k] != old[k]))
PY
run 0 finetune conv.st --data data --batch 12 --steps 2 --what bias --out bias --json -q
[ "$(python3 changed.py conv.st bias/model.safetensors)" = "b1 fb fc shift" ] ||
    fail "a bias training changes other tensors"
run 0 finetune conv.st --data data --batch 12 --steps 2 --what sparse --out sparse --json -q
json "{'b1', 'shift', 'fb', 'fc'} <= {t['tensor'] for t in j['scheme']}"
python3 changed.py conv.st sparse/model.safetensors >changed
for name in b1 fb fc shift; do
    grep -qw $name changed || fail "a sparse training leaves $name as it was: $(cat changed)"
done

# What a training takes is what was planned, with weights that lie in a mapped file and those
# that are made ready once, of what is not trained. (A sanitizer's own memory is in no plan.)
if grep -q '^STINT_SANITIZE:.*=$' "$STINT_BUILD/CMakeCache.txt"; then
    for what in "--what last" "--what bias" "--what bias --set update.keep=no" "--tensors w3,*3,fc,fb" "--what full"; do
        # shellcheck disable=SC2086
        run 0 finetune wide.st --data data --batch 8 --shards 1 --steps 2 $what -j 1 --out wide --force --json -q
        json "(p:=j['peak_rss_bytes']) is None or 0.97 * j['planned_peak_bytes'] <= p <= j['planned_peak_bytes']"
    done
fi

# The classifier alone is new, and it alone was trained.
run 0 finetune conv --data four --what last --steps 2 --batch 4 --out last --json -q
python3 - <<'PY' || fail "more than the classifier changed"
import json, struct
def tensors(path):
    data = open(path, "rb").read()
    n, = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + n])
    return {k: (v["shape"], data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
            for k, v in head.items() if k != "__metadata__"}
old, new = tensors("conv/model.safetensors"), tensors("last/model.safetensors")
changed = sorted(k for k in old if new[k] != old[k])
assert changed == ["fb", "fc"] and new["fc"][0] == [8, 4] and sorted(old) == sorted(new), changed
PY

# ---- what is refused
run 8 finetune together.st --data data --out no
says err "ReduceMean"
run 0 finetune bare.st --data data --what full --batch 12 --steps 1 --plan
run 8 finetune bare.st --data four --batch 4 --out no
says err "begin anew"
printf '[model]\nname = resnet8\n[data]\npath = data\n' >r.ini
run 2 train r.ini --start linear.st --out no
says err "imported"
printf '[model]\nname = imported\n[data]\npath = data\n' >r.ini
run 2 train r.ini --out no
says err "train.start"
run 2 train r.ini --start linear.st --set quantise.bits=8 --out no
run 2 train r.ini --start linear.st --set model.heads=2 --batch 12 --out no
run 4 train r.ini --start linear.st --set data.size=16 --out no
run 4 train r.ini --start conv.onnx --out no
sed 's/node "MatMul"/node "MatMuL"/' conv.st >bad.st
run 4 train r.ini --start bad.st --out no
[ ! -e no ] || fail "a refused training made a folder"
finish
