# stint compare on models that are not of one task, or hardly.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
run 0 data glyphs --out g --train 720 --test 180 --min-faces 10 -q
cat >a.ini <<'INI'
[model]
name = mlp
width = 8
[data]
path = g
[train]
steps = 2
batch = 36
INI
for seed in 1 2; do
    run 0 train a.ini --set train.seed=$seed --out r$seed -q
done

# Images are resized as the models want them, without a word.
for seed in 1 2; do
    run 0 train a.ini --set train.seed=$seed --set data.size=16 --out s$seed -q
done
run 0 compare s1 s2 --data g --page small.html --json
json 'j["count"] == 180'
run 0 compare s1 s2 --data g --size 16 --json
run 4 compare s1 s2 --data g --size 20
says err "20x20"
run 4 compare s1 r1 --data g
says err "takes images of"
# Other classes, other names, scores that are no numbers, images prepared in another way.
edit() { # FROM TO PATTERN REPLACEMENT [END]: bytes of a model file
    python3 - "$@" <<'PY'
import re, sys
data = open(sys.argv[1], "rb").read()
new = re.sub(sys.argv[3].encode(), sys.argv[4].encode(), data, count=1)
assert len(new) == len(data) and new != data
new += bytes.fromhex(sys.argv[5]) if len(sys.argv) > 5 else b""
open(sys.argv[2], "wb").write(new[:len(data) - 4] + new[-4:])
PY
}
mkdir digits
tar xf g/train.tar -C digits --wildcards 'train/[0-9]/*'
tar xf g/test.tar -C digits --wildcards 'test/[0-9]/*'
run 0 train a.ini --data digits --out ten -q
run 4 compare r1 ten --data g
says err "tells 10 classes apart, the reference 36"
run 4 train a.ini --data digits --out taught --reference r1 -q
says err "tells 36 classes apart, the data have 10"
edit r1/model.safetensors renamed '"B' '"b'
run 4 compare r1 renamed --data g
says err "is 'b', in the reference 'B'"
edit r1/model.safetensors infinite weights_sha256 weights_sha25x 0000807f
run 4 compare r1 infinite --data g
says err "infinite: element"
says err "is infinite, no finite number"
run 4 compare infinite r1 --data g
says err "infinite: element"
edit r1/model.safetensors prepared 'test_accuracy":"0[.].' 'test_accuracy":"0.9'
run 0 compare prepared r1 --data g
says err "prepared in another way?"
cp r1/model.safetensors kept
for page in r1 r2; do
    run 2 compare r1 r2 --data g --floor $page --page $page/model.safetensors
    says err "written over"
done
run 5 compare r1 r2 --data g --page none/page.html
cmp -s kept r1/model.safetensors || fail "a page is written over the model"
run 0 compare r1 r2 --data g
! grep -q "prepared" err || fail "a warning without reason"
run 2 train a.ini --set loss.weighting=focal --out parts
says err "give one by --reference"
# A checkpoint of other numerics is not gone on with.
checkpoint=$(ls r1/checkpoints/*.safetensors | tail -1)
edit "$checkpoint" changed 'stint.numerics":"[0-9]' 'stint.numerics":"0'
mv changed "$checkpoint"
run 4 train a.ini --set train.seed=1 --out r1 --resume -q --steps 3
says err "other numerics (0, this one has"
finish
