# Imported classifiers on pictures: run, eval and compare against NumPy, with what the file
# keeps of scale, means, deviations and layout.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
PYTHONPATH=$STINT_SOURCE/tests/cli PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 \
    "$STINT_SOURCE/tests/cli/onnx_images.py" || fail "no models"
form="--mean 0.5,0.4,0.3 --std 0.2,0.25,0.5 --scale 0.0078125"

for name in first last; do
    # shellcheck disable=SC2086
    run 0 import onnx $name.onnx --out $name.st $form -q
    run 0 eval $name.st --data data --json
    json "(w:=json.load(open('want.json'))) and j['count'] == w['count'] == 12"
    json "abs(j['accuracy'] - json.load(open('want.json'))['accuracy']) < 1e-9"
    json "abs(j['loss'] - json.load(open('want.json'))['loss']) < 1e-5"
    json "[c['count'] for c in j['per_class']] == [3, 4, 5]"
    run 0 run $name.st data/test/a/0.png --top 3 --json
    json "sorted(c['class'] for c in j['predictions'][0]['classes']) == ['0', '1', '2']"
    json "all(abs(c['probability'] - json.load(open('want.json'))['first'][int(c['class'])]) < 1e-5
             for c in j['predictions'][0]['classes'])"
done
run 0 eval first.st --data data --confusion
says out "accuracy"
# Within a budget the answers are the same, and the peak is what the plan says at most.
run 0 eval first.st --data data --json
cp out plain.json
run 3 eval first.st --data data --memory 1M
least=$(least_mib)
run 0 eval first.st --data data --memory "${least}M" --json
json "all(j[k] == w for k, w in json.load(open('plain.json')).items() if k not in ('planned_peak_bytes', 'peak_rss_bytes', 'images_per_s'))"
sanitized || json "j['peak_rss_bytes'] <= j['planned_peak_bytes'] <= $least << 20"
# Two at a time are the answers of one at a time.
run 0 run first.st data/test/a/0.png data/test/b/1.png --out two.npz -q
run 0 run last.st data/test/b/1.png --out one.npz -q
python3 - <<'PY' || fail "a batch gives other answers"
import numpy as np
a, b = np.load("two.npz")["logits"][1], np.load("one.npz")["p"][0]
e = np.exp(a - a.max())
assert np.abs(e / e.sum() - b).max() < 1e-6
PY
run 0 compare first.st last.st --data data --json
json "j['mismatch_rate'] == 0 and j['kl_mean'] < 1e-6 and j['reference_accuracy'] == j['new_accuracy']"
run 8 compare first.st last.st --data data --saliency 2

# ---- what is refused
run 2 run first.st data/test/a/0.png data/test/a/1.png data/test/a/2.png --out three.npz
says err "2 at a time"
run 2 run first.st data/test/a/0.png --input x=x.npy
run 4 run first.st want.json
run 5 run first.st none.png
run 0 import onnx wide.onnx --out wide.st -q
run 8 eval wide.st --data data
says err "squares"
run 0 run wide.st data/test/a/0.png
run 0 import onnx deep.onnx --out deep.st -q
run 8 run deep.st data/test/a/0.png
says err "--input"
run 8 eval deep.st --data data
run 2 eval first.st
run 2 eval first.st --data data --samples 3
run 2 eval first.st --data data --batch 3
mkdir -p other/test other/train && cp -r data/train/a data/train/b other/train && cp -r data/test/a data/test/b other/test
run 4 eval first.st --data other
says err "2 classes"
run 2 import onnx first.onnx --out bad.st --std 0,1,1
run 2 import onnx first.onnx --out bad.st --mean 1,2
[ ! -e bad.st ] || fail "a refused import wrote a file"
sed 's/image_layout/image_layouT/' first.st > half.st
run 0 info half.st
finish
