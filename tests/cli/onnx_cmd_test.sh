# Networks from ONNX files: what NumPy makes of them, within a budget, the same bits for
# any threads; files that are damaged, hostile or of operators that there are not, refused.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python=/usr/bin/python3
PYTHONPATH=$STINT_SOURCE/tests/cli $python "$STINT_SOURCE/tests/cli/onnx_models.py" || fail "no models"

same() { # FILE.npz WANTED.npz
    $python - "$1" "$2" <<'PY' || fail "$1 is not $2"
import sys, numpy as np
a, b = np.load(sys.argv[1]), np.load(sys.argv[2])
assert sorted(a.files) == sorted(b.files), (a.files, b.files)
for name in b.files:
    assert a[name].shape == b[name].shape, (name, a[name].shape, b[name].shape)
    if b[name].dtype.kind == "i":
        assert a[name].dtype == np.int64 and (a[name] == b[name]).all(), name
    else:
        off = np.abs(a[name] - b[name]).max() / np.abs(b[name]).max()
        assert off < 2e-6, (name, off)
PY
}

# ---- results, and what is said of them
run 4 import onnx conv.onnx --out conv.st
says err "--shape image=1x3x224x224"
[ ! -e conv.st ] || fail "a refused import wrote a file"
run 4 import onnx conv.onnx --out conv.st --shape image=2x4x11x9
run 2 import onnx conv.onnx --out conv.st --shape picture=2x3x11x9
says err "image"
run 2 import onnx conv.onnx --out conv.st --shape image=2by3
run 2 import onnx conv.onnx --out conv.onnx --shape image=2x3x11x9
run 0 import onnx conv.onnx --out conv.st --shape image=2x3x11x9 --json
json_ok
json "j['inputs'] == [{'name': 'image', 'shape': [2, 3, 11, 9], 'type': 'f32'}]"
json "[o['name'] for o in j['outputs']] == ['probabilities', 'g']"
json "j['nodes'] == 15 and j['folded'] == 5 and j['unsupported'] == []"
json "j['operators']['Conv'] == 3 and 'Shape' not in j['operators']"
run 0 run conv.st --input image=conv.image.npy --out conv.npz --json
json "j['seconds'] > 0 and j['planned_peak_bytes'] > 1e6"
same conv.npz conv.want.npz
for threads in 1 2 3; do
    run 0 run conv.st --input image=conv.image.npy --out again.npz -j $threads -q
    cmp -s conv.npz again.npz || fail "$threads threads give other bits"
done
# Elements move at the way in and out, not around each of the convolutions.
run 0 info conv.st --json
json "j['operators']['conv2d'] == 3 and j['transposes'] <= 2 and j['kind'] == 'network'"
run 0 info conv.st --graph text
says out "conv2d"
run 0 info conv.st
says out "input    image"

# One convolution with its normalisation, and chains for what is element by element.
run 0 import onnx mobile.onnx --out mobile.st
run 0 run mobile.st --input x=mobile.x.npy --out mobile.npz -q
same mobile.npz mobile.want.npz
for threads in 1 3; do
    run 0 run mobile.st --input x=mobile.x.npy --out again.npz -j $threads -q
    cmp -s mobile.npz again.npz || fail "$threads threads give other bits of chains"
done
run 0 info mobile.st --json
json "j['operators']['conv2d'] == 2 and j['operators']['chain'] == 2"
json "not {'batch_norm', 'mul', 'add', 'sigmoid', 'relu', 'div'} & set(j['operators'])"
run 0 bench step mobile.st --runs 2 -j 1 --json
json "j['best_s'] > 0 and j['planned_peak_bytes'] > 1e6"
json "'chain' in str(j['operators'])"
run 0 bench step mobile.st --runs 1
says out "peak memory"

# Channels that are split and joined move once, not there and back.
run 0 import onnx shuffled.onnx --out shuffled.st
run 0 run shuffled.st --input x=shuffled.x.npy --out shuffled.npz -q
same shuffled.npz shuffled.want.npz
run 0 info shuffled.st --json
json "j['transposes'] <= 6"

run 0 import onnx attention.onnx --out attention.st --shape tokens=2x5 --json
json "'If' not in j['operators'] and 'Range' not in j['operators']"
run 0 run attention.st --input tokens=attention.tokens.npy --out attention.npz -q
same attention.npz attention.want.npz
run 0 import onnx types.onnx --out types.st
run 0 run types.st --input x=types.x.npy --out types.npz -q
same types.npz types.want.npz
run 0 run types.st --input x=types.x.npy
says out "y [3, 6] f32:"

run 0 import onnx constants.onnx --out constants.st
run 0 run constants.st --input x=constants.x.npy --out constants.npz -q
same constants.npz constants.want.npz
run 0 import onnx scattered.onnx --out scattered.st --json
json "j['folded'] == 3"
run 0 run scattered.st --input x=scattered.x.npy --input rows=scattered.rows.npy --input ones=scattered.ones.npy \
    --input image=scattered.image.npy --input grid=scattered.grid.npy --out scattered.npz -q
same scattered.npz scattered.want.npz
run 0 import onnx alone.onnx --out alone.st
run 0 run alone.st
run 2 run alone.st --input x=constants.x.npy
says err "no inputs"

# ---- memory
run 0 plan conv.st --json
json "j['fits'] and sum(p['bytes'] for p in j['parts']) == j['planned_peak_bytes']"
run 3 plan conv.st --memory 1M
run 3 run conv.st --input image=conv.image.npy --memory 1M --out no.npz
[ ! -e no.npz ] || fail "a refused run wrote a file"
run 0 run conv.st --input image=conv.image.npy --memory 100M -q

# ---- inputs that do not fit
run 2 run conv.st
says err "--input image=FILE.npy"
run 2 run conv.st --input picture=conv.image.npy
run 4 run conv.st --input image=types.x.npy
says err "[2, 3, 11, 9]"
run 5 run conv.st --input image=nowhere.npy
run 5 run conv.st cat.png
run 2 run conv.st --prompt x
$python -c "
import numpy as np
np.save('far.npy', np.full((2, 5), 1 << 40))"
run 4 run attention.st --input tokens=far.npy
says err "32 bits"

# ---- files to refuse
for file in short empty text; do
    run 4 import onnx $file.onnx --out no.st
done
run 8 import onnx opset6.onnx --out no.st
run 8 import onnx opset22.onnx --out no.st
says err "opset 22"
run 8 import onnx unknown.onnx --out no.st
says err "/layer/hard"
says err "/other/draw"
run 4 import onnx circle.onnx --out no.st
says err "circle"
run 4 import onnx shapes.onnx --out no.st
says err "/fc/MatMul"
run 4 import onnx up.onnx --out no.st
says err "../far.bin"
run 4 import onnx root.onnx --out no.st
run 5 import onnx gone.onnx --out no.st
run 8 import onnx branch.onnx --out no.st
says err "/gate"
run 4 import onnx deep.onnx --out no.st
for file in hostile/*.onnx; do
    timeout 20 "$STINT" import onnx "$file" --out no.st >out 2>err
    got=$?
    [ $got -eq 4 ] || [ $got -eq 8 ] || fail "$file: exit $got, $(cat err)"
done
mkfifo hostile/pipe
sed 's/little.bin/pipe\x00\x00\x00\x00\x00\x00/' hostile/little.onnx >hostile/waits.onnx
run 4 import onnx hostile/waits.onnx --out no.st
run 0 import onnx nan.onnx --out nan.st
says err "not finite"
[ ! -e no.st ] || fail "a refused file was written"

# ---- model files that were changed
$python - <<'PY'
import json, struct
data = open("conv.st", "rb").read()
n, = struct.unpack("<Q", data[:8])
head = json.loads(data[8:8 + n])
text = head["__metadata__"]["stint.network"]
def write(name, words):
    head["__metadata__"]["stint.network"] = words
    new = json.dumps(head, ensure_ascii=False).encode()
    new += b" " * (-len(new) % 8)
    open(name, "wb").write(struct.pack("<Q", len(new)) + new + data[8 + n:])
write("version.st", text.replace("stint network 1", "stint network 2"))
write("word.st", text.replace('node "Relu"', 'knot "Relu"'))
write("shape.st", text.replace('tensor "w1" f32 8 3 3 3', 'tensor "w1" f32 8 3 3 4'))
write("order.st", text.replace("order 2 3 1 0", "order 2 3 1 1"))
write("input.st", text.replace('input "image" f32 2 3 11 9', 'input "image" f32 2 3 10 9'))
write("same.st", text)
open("cut.st", "wb").write(data[:-100])
PY
for file in word shape order input cut; do
    run 4 run $file.st --input image=conv.image.npy
done
run 8 run version.st --input image=conv.image.npy
run 0 run same.st --input image=conv.image.npy --out again.npz -q
cmp -s conv.npz again.npz || fail "the same network has other results"
# What takes pictures is no classifier of squares.
run 8 eval conv.st --data nowhere
finish
