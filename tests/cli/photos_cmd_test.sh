# Photographs as people have them: orientation, mixed sizes, fits, layouts, lists.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
cat >photos.py <<'PY'
"""photos.py FILE WIDTH HEIGHT [ORIENTATION]: a PNG of its own noise."""
import os, random, struct, sys, zlib
path, w, h = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(path)
os.makedirs(os.path.dirname(path), exist_ok=True)
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = b"".join(b"\0" + bytes(random.randrange(256) for _ in range(3 * w)) for _ in range(h))
exif = b""
if len(sys.argv) > 4:
    tag = struct.pack(">HHIHH", 0x0112, 3, 1, int(sys.argv[4]), 0)
    exif = chunk(b"eXIf", b"MM\0*\0\0\0\x08\0\x01" + tag + b"\0\0\0\0")
open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0))
                       + exif + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PY
photo() { python3 photos.py "$@"; }
for c in a b; do
    for i in 1 2 3 4; do photo p/train/$c/$i.png 40 30; done
    photo p/train/$c/5.png 24 36
    photo p/train/$c/6.png 30 40 6 # stored lying, so 40 x 30
    photo p/validation/$c/1.png 40 30
done
photo p/train/a/7.png 40 30 9 # means nothing

run 0 data info p --size 16 --json
json 'j["splits"]["train"].endswith("/p/train") and j["splits"]["test"].endswith("/p/validation")'
json 'j["test"]["count"] == 2'
run 0 data info p --size 16
says out "from validation"
run 0 data check p --size 16
says out "note: train/a/7.png has an orientation tag that means nothing"
says out "note: train: 2 of 13 images are stored lying or mirrored"
says out "sizes from 24x36 to 40x30"
says out "fit = squash distorts proportions by up to 1.50, crop cuts off up to 33 %"
says out "there is no test/; validation/ is the test split"

# without a size they are looked at all the same, and what would be needed is said
run 0 data info p
says out "train  13 images of mixed sizes, colour, 2 classes"
says out "test   2 images of 40 x 30"
says out "add \`size = 224\` under [data]"
says out "--size 224 looks at them so"
run 0 data info p --json
json 'j["train"]["mixed_sizes"] and not j["test"]["mixed_sizes"]'
mkdir -p unsorted && cp -r p/train/a p/train/b unsorted
run 0 data info unsorted
says out "of mixed sizes"
says out "add \`size = 224\` under [data]"
run 0 data info unsorted --json --size 16
json 'not j["train"]["mixed_sizes"] and j["train"]["width"] == 16'
mkdir -p two/train two/test && cp -r p/validation/* two/train && for c in a b; do photo two/test/$c/1.png 20 20; done
run 0 data info two # each split of one size, but not of the same
says out "images of 40 x 30"
says out "images of 20 x 20"
says out "add \`size = 224\` under [data]"
run 4 train --data two --set data.size=0 --out two-run --steps 1 --set train.batch=2
run 0 data info two --size 20
grep -q "size = 224" out && fail "images of one size are called mixed"

cat >r.ini <<'INI'
[model]
name = resnet18
width = 4
[data]
path = p
[train]
steps = 2
batch = 4
shards = 2
INI
run 4 train r.ini --out no
says err "add \`size = 224\` under [data]"
for fit in squash crop pad; do
    run 0 train r.ini --out $fit --json -q --set data.size=16 --set data.fit=$fit --set data.scale_crop=0.08 --set data.flip=true
    cp out $fit.json
    run 0 train r.ini --out $fit-2 --json -q -j 2 --set data.size=16 --set data.fit=$fit --set data.scale_crop=0.08 --set data.flip=true
    cmp -s $fit/model.safetensors $fit-2/model.safetensors || fail "$fit: other bits on other threads"
    run 0 eval $fit --data p --json
    json 'j["count"] == 2'
    run 0 run $fit p/train/a/6.png p/train/a/5.png --json
done
python3 - <<'PY' || fail "all fits give the same weights"
import json, sys
sys.exit(len({json.load(open(f"{n}.json"))["weights_sha256"] for n in ("squash", "crop", "pad")}) != 3)
PY

# One photo in two orientations is one answer; a class folder alone is a data set.
mkdir -p flat && cp -r p/train/a p/train/b flat
run 0 data info flat --size 16 --json
json 'j["train"]["count"] + j["test"]["count"] == 13 and j["splits"]["train"] == j["splits"]["test"] == j["path"]'
run 0 train r.ini --out flat-run --json -q --data "$PWD/flat" --set data.size=16 --set data.validation=0.3
json 'j["test_accuracy"] is not None'

# A list, and its mistakes with their lines.
mkdir list && cp -r p/train/a list/images
printf 'file,label\r\n1.png,"x, y"\r\n2.png,z\r\n3.png,z\r\n4.png,"x, y"\r\n' >list/train.csv
run 0 data info list --json
json 'j["format"] == "csv" and j["train"]["count"] == 4 and j["train"]["class_names"] == ["x, y", "z"]'
json 'j["splits"]["train"].endswith("/list/train.csv")'
printf '9.png,z\n1.png,\nimages/1.png,z\n' >>list/train.csv
run 4 data check list
says out "train.csv:6: there is no image 9.png"
says out "train.csv:7: the label is empty"
says out "train.csv:8: images/1.png is there twice, also on line 2"
mkdir packed && tar -czf packed/train.tar.gz p
run 4 data info packed
says err "gunzip -k $PWD/packed/train.tar.gz"
finish
