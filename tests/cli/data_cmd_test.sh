# data info, data check, data glyphs on small sets.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python3 "$STINT_SOURCE/tests/cli/cli_data.py" data 12 64 32

run 0 data info data --json
json 'j["format"] == "idx" and j["train"]["count"] == 64 and j["test"]["count"] == 32'
json 'j["train"]["height"] == 12 and len(j["test"]["class_names"]) == 2'
run 0 data info data
says out "64 images of 12 x 12, grey"
run 0 data check data --json
json 'j["problems"] == 0 and j["train_count"] == 64'

mkdir -p bad/train/cat bad/train/dog bad/test/cat bad/test/dog
echo "no picture" >bad/train/cat/a.png
run 4 data check bad
says out "problem: "
says out "a.png"
run 4 data check bad --json
json 'j["problems"] >= 2 and any("a.png" in f["text"] for f in j["findings"])'
run 4 data info bad
run 4 data info nowhere
says err "nowhere"

# Pictures in a layout that is not ours are no text; what is neither says so.
mkdir -p flat classes/cat classes/dog
echo "no picture" | tee flat/a.PNG >classes/cat/a.png
run 4 data info flat
says err "flat has no train split; wanted one of: train/<class>"
run 4 data check flat
says out "flat has no train split; wanted one of: train/<class>"
run 4 data info classes # a class a folder: read, and this is no picture
says err "cat/a.png is not a JPEG, PNG, WebP or BMP image"
run 4 data check classes
says out "cat/a.png: not a JPEG, PNG, WebP or BMP image"
echo "no archive" >some.tar
run 4 data info some.tar
says err "tar -xf $PWD/some.tar -C $PWD/some"
cp some.tar train.tar
run 4 data info train.tar
says err "give the folder that holds train.tar"
printf '\377\n' >noise
run 0 data info noise
says out "no UTF-8: byte 0 (0xff)"
says out "For images give a folder"
printf 'x' >one.txt
run 0 data info one.txt
says out "1 byte in 1 file"
says out "UTF-8: 1 character, 1 different"

if "$STINT" --version --json | grep -q '"freetype":true'; then
    run 0 data glyphs --out g --train 72 --test 36 --min-faces 3 --json -q
    silent err
    json 'j["train_count"] == 72 and j["test_count"] == 36 and j["test_families"] >= 1'
    run 0 data info g --json
    json 'j["format"] == "tar" and len(j["train"]["class_names"]) == 36'
    run 0 data glyphs --out g --train 36 --test 36 --min-faces 3 -q # once more
    mkdir own && tar -cf own/test.tar data
    cp own/test.tar own.kept
    run 2 data glyphs --out own --train 72 --test 36 --min-faces 3
    says err "own/test.tar was not rendered by Stint"
    cmp -s own/test.tar own.kept || fail "data glyphs wrote over an archive of others"
    [ ! -e own/train.tar ] || fail "data glyphs wrote a half"
    mkdir none
    run 4 data glyphs --fonts none --out h
    says err "fonts"
fi
run 2 data get nosuchset
says err "cifar10"
finish
