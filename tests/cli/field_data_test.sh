# Fields of sounds, outlines and meshes beside closed forms, and what is wrong with such
# files. Without a library its files are refused with status 8.
. "$(dirname "$0")/cli_lib.sh"
export XDG_CACHE_HOME="$work/cache"
oracle="$(cd "$(dirname "$0")" && pwd)/field_data_oracle.py"
cd "$work" || exit 1
python=/usr/bin/python3
$python "$oracle" make || { fail "no NumPy"; finish; }

# ---- outlines ----

small="--set model.width=32 --set model.depth=2 --set field.inside_points=256"
run 0 train "$STINT_SOURCE/recipes/field-outline.ini" --data disc.bmp --out disc --set train.steps=600 $small --json -q
run 0 field eval disc --grid 64x64 --order 1 --out disc-out.npy
$python "$oracle" disc || fail "distances from a circle"
run 0 field draw disc --size 32x32 --show normals --out normals.png
run 0 eval disc --json
json "j['test_loss'] < 0.001"
run 4 train "$STINT_SOURCE/recipes/field-outline.ini" --data grey.bmp --out no
says err "no outline"

# ---- sounds ----

cat >sound.ini <<'INI'
[model]
name = siren
width = 32
depth = 2
[field]
coordinates = t
[train]
epochs = 150
batch = 600
shards = 1
eval_every = 150
[optimizer]
name = adam
lr = 2e-3
INI
sounds=4 # the status of one where a picture is wanted: it is read, or cannot be
if "$STINT" train sound.ini --data tone.wav --out stereo -q 2>err; then
    run 0 field eval stereo --points times.npy --order 0 --out s.npy
    $python "$oracle" sound both || fail "a sound of two channels"
    run 0 train sound.ini --data tone.wav --out mean --set data.channels=1 -q
    run 0 field eval mean --points times.npy --order 0 --out s.npy
    $python "$oracle" sound mean || fail "the mean of two channels"
    head -c 1500 tone.wav >cut.wav
    run 4 train sound.ini --data cut.wav --out no
    says err "cut short"
    echo RIFF >junk.wav
    run 4 train sound.ini --data junk.wav --out no
    $python - <<'PY'
import struct
samples = [0.1] * 600
samples[100] = float("nan")
data = struct.pack("<600f", *samples)
head = struct.pack("<IHHIIHH", 16, 3, 2, 8000, 64000, 8, 32)
open("nan.wav", "wb").write(b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + head + b"data" +
                            struct.pack("<I", len(data)) + data)
PY
    run 4 train sound.ini --data nan.wav --out no
    says err "sample 50 of channel 1 is not finite"
else
    sounds=8
    run 8 train sound.ini --data tone.wav --out no
    says err "libsndfile"
fi

# ---- meshes ----

set -- --set field.coordinates=x,y,z --set "field.data=30*u, u_x - nx, u_y - ny, u_z - nz" \
    --set "field.inside=(u_x^2 + u_y^2 + u_z^2)^0.5 - 1" $small --set train.steps=450
if "$STINT" train "$STINT_SOURCE/recipes/field-outline.ini" --data ball.obj --out ball "$@" -q 2>err; then
    run 0 field eval ball --points ball.npy --order 1 --out ball-out.npy
    $python "$oracle" ball || fail "distances from a sphere"
    run 4 train "$STINT_SOURCE/recipes/field-outline.ini" --data lines.obj --out no "$@"
    says err "without triangles"
    echo "not a mesh" >junk.ply
    run 4 train "$STINT_SOURCE/recipes/field-outline.ini" --data junk.ply --out no "$@"
else
    run 8 train "$STINT_SOURCE/recipes/field-outline.ini" --data ball.obj --out no "$@"
    says err "libassimp"
fi
[ ! -e no ] || fail "a refused run left a folder"
# ---- pastings ----

paste() { run "$1" field paste --under under.bmp --over over.bmp --mask "${@:2}"; }
for fine in 1 3; do
    paste 0 where.bmp --fine $fine --out pasted --json
    json "j['points'] == (64 * $fine) ** 2"
    $python "$oracle" pasting $fine || fail "a pasting of $fine points a pixel"
done
run 0 train "$STINT_SOURCE/recipes/field-paste.ini" --data pasted --set train.steps=1 --set model.width=8 --out paste -q
paste 4 dark.bmp --out no
says err "dark everywhere"
paste $sounds tone.wav --out no
[ $sounds = 8 ] || says err "no picture"
run 0 field paste --under under.bmp --over over.bmp --mask where.bmp --size 16 --out small
run 4 field paste --under under.bmp --over paste/report.html --mask where.bmp --out no
run 2 field paste --under under.bmp --over over.bmp --out no
paste 2 where.bmp --fine 9 --out no
[ ! -e no ] || fail "a refused pasting left a folder"

# A mesh that libassimp breaks down on.
printf 'v 0 0 0\nv 1 0 0\nf 1 2 9\nf 1 2\nf 1\n' >broken.obj
"$STINT" train "$STINT_SOURCE/recipes/field-outline.ini" --data broken.obj --out no 2>err && fail "a broken mesh"
finish
