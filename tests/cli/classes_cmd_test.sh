# Rare classes, test sets without images of some classes, and a model whose classes are
# others than the data's.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
cat >bars.py <<'PY'
"""bars.py FOLDER COUNT NAME...: PNGs of 12 x 12 in FOLDER/NAME, COUNT each, bars in
noise whose direction goes by NAME, at the same places for every FOLDER but of its own
noise."""
import os, random, struct, sys, zlib
folder, count, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def level(way, x, y, at):
    d = {"across": y - at, "down": x - at, "fall": y - x + at - 6, "rise": x + y - 5 - at,
         "cross": min(abs(x - at), abs(y - at))}[way]
    return 130 if abs(d) <= 1 else 0
for name in names:
    random.seed(folder + name)
    os.makedirs(f"{folder}/{name}", exist_ok=True)
    for i in range(count):
        at = random.randrange(3, 9)
        rows = b"".join(b"\0" + bytes(level(name, x, y, at) + random.randrange(100) for x in range(12))
                        for y in range(12))
        open(f"{folder}/{name}/{i:03}.png", "wb").write(
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 12, 12, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PY
bars() { python3 bars.py "$@"; }
cat >r.ini <<'INI'
[model]
name = smallcnn-bn
[train]
epochs = 2
batch = 20
shards = 2
[optimizer]
lr = 0.02
[run]
threads = 1
INI

# ---- 190 images of one class and 10 of another
bars rare/train 190 across && bars rare/train 10 down && bars rare/test 20 across down
run 0 train r.ini --data rare --out plain --json
json 'j["lowest_class"] == "down" and j["lowest_recall"] == 0 and j["balanced_accuracy"] == 0.5'
json 'j["test_accuracy"] == 0.5'
for key in data.sampling loss.class_weights; do
    run 0 train r.ini --data rare --out even --force --json --set $key=balanced
    cp out even.json
    run 0 eval even --data rare --json
    json '[c["accuracy"] for c in j["per_class"] if c["class"] == "down"][0] >= 0.6'
    json 'abs(j["balanced_accuracy"] - sum(c["accuracy"] for c in j["per_class"]) / 2) < 1e-12'
    json 'j["lowest_recall"] == min(c["accuracy"] for c in j["per_class"])'
    json 'all(j[k] == json.load(open("even.json"))[k] for k in ("balanced_accuracy", "lowest_class", "lowest_recall"))'
done
# The line is there where a class is 20 points under the mean, and only there.
run 0 eval plain --data rare
says out "accuracy 50.00 % of 40 images, balanced 50.00 %, loss"
says out "lowest: class 'down', of which 0.00 % are found"
run 0 train r.ini --data rare --out plain --force
says out ", balanced accuracy 50.00 %"
says out "lowest: class 'down', of which 0.00 % are found"
bars same/train 60 across down && bars same/test 20 across down
run 0 train r.ini --data same --out same
grep -q "lowest:" out && fail "a lowest class of: $(cat out)"
run 2 train r.ini --data rare --out no --set loss.class_weights=1,-1
says err "loss.class_weights: '1,-1' is neither none"
run 4 train r.ini --data rare --out no --set loss.class_weights=1,1,1
says err "3 weights, but"
says err "has 2 classes, from 'across' to 'down'"
run 4 plan r.ini --data rare --set loss.class_weights=1
says err "1 weights, but"
mkdir rare/train/fall
run 4 train r.ini --data rare --out no --set data.sampling=balanced
says err "class 'fall' has no images"
rmdir rare/train/fall

# ---- the same bits by two processes as by one, and after a kill
balanced=(r.ini --data rare --set data.sampling=balanced --set loss.class_weights=1,3)
run 0 train "${balanced[@]}" --out one --json
sha() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["weights_sha256"])' "$1"; }
want=$(sha out)
run 0 train "${balanced[@]}" --out three --json -j 3
[ "$(sha out)" = "$want" ] || fail "three threads give other weights"
"$STINT" train "${balanced[@]}" --out two --json -q --net-root "@${work##*/}" --net-ranks 2 \
    --net-rank 1 >two.1 2>&1 </dev/null &
run 0 train "${balanced[@]}" --out two --json -q --net-root "@${work##*/}" --net-ranks 2
wait $! || fail "rank 1: $(cat two.1)"
[ "$(sha out)" = "$want" ] || fail "two processes give other weights"
"$STINT" train "${balanced[@]}" --out killed -q --set run.checkpoint_every=1 >/dev/null 2>&1 </dev/null &
pid=$!
for _ in $(seq 300); do
    [ -z "$(ls killed/checkpoints 2>/dev/null)" ] || break
    sleep 0.01
done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
run 0 train "${balanced[@]}" --out killed --resume --force --json --set run.checkpoint_every=1
[ "$(sha out)" = "$want" ] || fail "killed and resumed gives other weights"

# ---- a test set without images of some classes
bars four/train 60 across down fall rise && bars four/test 8 across down fall rise
run 0 train r.ini --data four --out four.run --epochs 4
cp four.run/model.safetensors four.safetensors
cp -r four less && rm -r less/test/down less/test/fall/* # one is not there, one is empty
run 0 eval four.safetensors --data less --json
json 'j["count"] == 16 and [c["count"] for c in j["per_class"]] == [8, 0, 0, 8]'
json '[c["accuracy"] is None for c in j["per_class"]] == [False, True, True, False]'
json 'abs(j["balanced_accuracy"] - j["accuracy"]) < 1e-12'
cp out less.json
run 0 eval four.safetensors --data four --json
json 'all(j["per_class"][c] == json.load(open("less.json"))["per_class"][c] for c in (0, 3))'
run 0 eval four.safetensors --data less --confusion
says err "less/test: no images of 2 of the 4 classes ('down', 'fall');"
[ "$(grep -c 'no images of' err)" -eq 1 ] || fail "said more than once: $(cat err)"
says out "down             no images"
run 0 compare four.safetensors four.safetensors --data less --json
json 'j["mismatch"]["count"] == 0 and [c["count"] for c in j["per_class"]] == [8, 0, 0, 8]'
[ "$(grep -c "no images of 2 of the 4 classes ('down', 'fall')" err)" -eq 1 ] ||
    fail "the line of compare: $(cat err)"
run 0 run four.safetensors less/test/*/*.png --json
json 'len(j["predictions"]) == 16'
rm less/test/*/*.png
run 4 eval four.safetensors --data less
says err "no images in any"
run 4 train r.ini --data less --out no # a training is held to all of its classes
says err "has no images"

# ---- a model of other classes to begin with
# Two epochs from it are worth more than four from new weights.
bars three/train 10 cross fall rise && bars three/test 40 cross fall rise
for seed in 1 2 3; do
    few=(r.ini --data three --batch 10 --lr 0.003 --seed $seed --force --json)
    run 0 train "${few[@]}" --out new --epochs 4
    cp out new.json
    run 0 train "${few[@]}" --out next --epochs 2 --start four.safetensors
    json 'j["test_accuracy"] > json.load(open("new.json"))["test_accuracy"]'
done
says err "train.start: four.safetensors tells 4 classes apart ('across' to 'rise'), these images are of 3 ('cross' to 'rise')"
says err "kept but for the classifier, which begins anew"
run 0 info next --json
json 'j["class_names"] == ["cross", "fall", "rise"]'
# As many classes, but of other names: the old answers would mean nothing.
bars other/train 12 cross down fall rise && bars other/test 8 cross down fall rise
run 0 train r.ini --data other --out other.run --start four.safetensors
says err "these images are of 4 ('cross' to 'rise')"
run 0 train r.ini --data four --out again --start four.safetensors
grep -q "begins anew" err && fail "the same classes begin anew: $(cat err)"
run 4 train r.ini --data three --out no --start four.safetensors --set model.name=resnet8
says err "four.safetensors holds the network smallcnn-bn ("
says err "the recipe's is resnet8 ("
finish
