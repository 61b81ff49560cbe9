# stint field, stint import field, and training of fields: every derivative beside nested
# dual numbers, fits beside NumPy, and refusals.
. "$(dirname "$0")/cli_lib.sh"
export XDG_CACHE_HOME="$work/cache"
oracle="$(cd "$(dirname "$0")" && pwd)/field_oracle.py"
cd "$work" || exit 1
python=/usr/bin/python3 # Debian's, which has python3-numpy
$python "$oracle" make . || { fail "no NumPy"; finish; }

# ---- derivatives ----

run 0 import field wave.safetensors --omega 9 --out wave.model
run 0 import field plain.safetensors --omega 1 --activation tanh --out plain.model
run 0 import field four.safetensors --omega 2 --activation softplus --out four.model
run 0 import field bend.safetensors --omega 1 --activation relu --out bend.model

# agrees NAME SCALE ARGUMENT...: by both ways.
agrees() {
    local name=$1 scale=$2
    shift 2
    for way in reverse jets; do
        run 0 field eval "$name.model" --points "$name.npy" --by $way --scale "$scale" --out o.npy --json "$@"
        json_ok
        json "j['by'] == '$way' and j['points'] == 150"
        $python "$oracle" check "$name" o.npy out "$scale" || fail "$name $* by $way"
    done
}
agrees wave 189 --order 3 --list all
json "j['outputs'] == 45 and j['columns'][10] == 'r_xy' and j['columns'][11] == 'r_yx'"
agrees wave 1 --order 4
agrees wave 1 --laplacian
agrees plain 2.5 --order 3
agrees four 1 --order 2
agrees wave 1 --order 4 --list 65
json "len(j['columns']) == 65"
run 0 field eval bend.model --points bend.npy --order 2 --out o.npy
says err "zeros"
$python -c "import numpy as np; a = np.load('o.npy'); assert a.shape == (150, 3) and not a[:, 2].any() and a[:, 1].any()" \
    || fail "second derivatives of a ReLU"

# ---- the choice, the plan, the memory ----

run 0 field plan four.model --order 1 --json
json "j['by'] == 'jets' or j['multiply_adds']['reverse'] < j['multiply_adds']['jets']"
run 0 field plan plain.model --order 1 --json
json "j['by'] == 'reverse' and j['multiply_adds']['reverse'] < j['multiply_adds']['jets'] and 'reverse' in j['why']"
run 0 field plan wave.model --order 3 --json
json "j['by'] == 'jets' and j['coefficients'] == 10 and j['outputs'] == 30"
run 0 field plan wave.model --order 3 --list all --by reverse --json
json "j['nodes']['built'] > j['nodes']['common_subexpression'] > j['nodes']['symmetric']"
run 0 field plan wave.model --order 10 --list all --json
json "j['by'] == 'jets' and j['multiply_adds']['reverse'] is None and 'more than 6000' in j['why']"
if ! grep -q __asan_init "$STINT"; then
    run 0 field eval wave.model --grid 4x4 --order 7 --memory 20M --out a.npy --json
    json "j['peak_rss_bytes'] <= 20 << 20"
fi
run 2 field plan wave.model --order 10 --by reverse
says err "take more than 100000 nodes"
run 0 field eval wave.model --grid 40x30 --order 2 --out a.npy -j 1
run 0 field eval wave.model --grid 40x30 --order 2 --out b.npy -j 3
cmp a.npy b.npy || fail "other bits with other threads"
STINT_ISA=ref run 0 field eval wave.model --grid 40x30 --order 2 --out b.npy
cmp a.npy b.npy || fail "other bits with another instruction set"
run 3 field eval wave.model --grid 40x30 --order 2 --out no.npy --memory 1M
says err "what fits"
run 0 field eval wave.model --grid 40x30 --order 2 --out b.npy --memory "$(least_mib)M"
cmp a.npy b.npy || fail "other bits in other tiles"

# ---- chains, stages and rings ----

run 0 field plan wave.model --order 3 --list all --by reverse --json
json "j['nodes']['chain'] < j['nodes']['symmetric'] / 2 and 'streams' not in j"
for way in reverse jets; do
    run 0 field eval wave.model --grid 23x9 --order 3 --by $way --out a.npy -j 2
    for stages in 1 2 5; do
        run 0 field eval wave.model --grid 23x9 --order 3 --by $way --pipeline $stages --out b.npy
        cmp a.npy b.npy || fail "other bits by $way in $stages stages"
    done
done
run 0 field plan wave.model --order 3 --by reverse --pipeline 4 --streams --dot rings.dot --json
json "j['threads'] == 4 and j['latency'] > 0 and len(j['streams']) > 3"
json "all(s['depth'] >= 1 and s['bytes'] > 0 and s['name'] for s in j['streams'])"
json "sum(s['bytes'] for s in j['streams']) < j['arena_bytes']"
[ "$(grep -c -- '->' rings.dot)" -eq "$(python3 -c "import json; print(len(json.load(open('out'))['streams']))")" ] ||
    fail "a ring without an edge"
run 0 field plan wave.model --order 3 --by reverse --pipeline 4 --streams
says out "ring 0-3"
run 0 field plan wave.model --order 1 --by reverse --dot nodes.dot
grep -q chain nodes.dot && grep -q digraph nodes.dot || fail "no drawing of the graph"
if ! grep -q __asan_init "$STINT"; then
    run 0 field eval wave.model --grid 400x300 --order 2 --pipeline 3 --memory 20M --out b.npy --json
    json "j['peak_rss_bytes'] <= 20 << 20"
fi
run 3 field eval wave.model --grid 40x30 --order 2 --pipeline 3 --out no.npy --memory 1M
run 2 field plan wave.model --pipeline 17
run 2 field plan wave.model --order 0 --pipeline 16
says err "fewer stages"
run 2 field plan wave.model --streams
says err "give --pipeline P"
run 5 field eval wave.model --grid 2000x2000 --order 0 --pipeline 2 --out /dev/full/no.npy
[ ! -e no.npy ] || fail "a refused budget left a file"

# ---- training ----

cat >photo.ini <<'INI'
[model]
name = siren
width = 32
depth = 2

[train]
epochs = 60
batch = 768
shards = 2
eval_every = 30

[optimizer]
name = adam
lr = 2e-3
INI
run 0 train photo.ini --data picture.png --out fit --json -q
json "j['psnr'] > 20 and j['test_accuracy'] is None"
sha=$(sed 's/.*"weights_sha256":"\([0-9a-f]*\)".*/\1/' out)
run 0 eval fit --json
json "abs(j['psnr'] - 10 * __import__('math').log10(4 / j['test_loss'])) < 1e-9 and j['count'] == 768"
cp out eval.json
run 0 field eval fit --grid 32x24 --order 0 --out fit.npy
$python - <<'PY' || fail "psnr beside NumPy"
import json, numpy as np
got, want = np.load("fit.npy").astype(float), np.load("picture.npy").reshape(-1, 3) / 127.5 - 1
psnr = -10 * np.log10((((got - want) / 2) ** 2).mean())
assert abs(psnr - json.load(open("eval.json"))["psnr"]) < 1e-3, psnr
PY
run 0 train photo.ini --data picture.png --out again --json -q -j 1
json "j['weights_sha256'] == '$sha'"
run 0 train photo.ini --data picture.png --out half --set train.steps=30 -q
run 0 field draw fit --size 48x36 --show gradient --out gradient.png
[ "$(head -c 4 gradient.png | tail -c 3)" = PNG ] || fail "no picture"
run 0 field draw fit --size 16x16 --show normals --out normals.png
run 0 info fit --json
json "j['coordinates'] == 2 and j['outputs'] == 3"
mkdir pairs
cp plain.npy pairs/points.npy
$python -c "import numpy as np; p = np.load('pairs/points.npy'); np.save('pairs/values.npy', np.sin(3 * p.sum(1, keepdims=True)).astype('f4'))"
run 0 train photo.ini --data pairs --out pairs-fit --set field.coordinates=x,y,z --set train.batch=150 \
    --set model.name=field --set model.activation=tanh --set model.skip=true --set model.features=8 --json -q
json "j['psnr'] > 5"
run 0 field eval pairs-fit --points plain.npy --order 2 --by reverse --out a.npy
run 0 field eval pairs-fit --points plain.npy --order 2 --by jets --out b.npy
$python -c "import numpy as np; a, b = np.load('a.npy'), np.load('b.npy'); assert a.shape == (150, 10) and (np.linalg.norm(a - b, axis=0) < 1e-4 * np.linalg.norm(a, axis=0)).all()" \
    || fail "both ways agree with features and a skip"

# ---- refusals ----

run 2 field plan wave.model --order 11
says err "at most 10, which has 66"
run 2 field eval wave.model --grid 4x4
run 2 field eval wave.model --order 1 --out o.npy
run 2 field eval plain.model --grid 4x4 --out o.npy
says err "--points FILE.npy"
run 4 field eval wave.model --points plain.npy --out o.npy
run 2 field eval wave.model --grid 0x4 --out o.npy
run 2 field plan wave.model --list some
run 2 field edit wave.model
run 4 import field chain.safetensors --out no.model
says err "layers must chain"
run 4 import field nan.safetensors --out no.model
run 2 import field wave.safetensors --coordinates x,y,z --out no.model
[ ! -e no.model ] || fail "a refused import left a file"
run 4 train photo.ini --data flat.png --out no
says err "the same value"
echo RIFF >sound.wav
"$STINT" train photo.ini --data sound.wav --out no 2>err
case $? in 4 | 8) ;; *) fail "a sound that is none" ;; esac
run 4 train photo.ini --data photo.ini --out no
run 4 train photo.ini --data pairs --out no
says err "field.coordinates"
run 4 run fit picture.png
run 8 shrink fit --data picture.png -o no --scheme "prune(0.5)"
finish
