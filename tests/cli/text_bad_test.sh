# What can be wrong with a text, its tokeniser or its cache: the words, the exit code.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
awk 'BEGIN { for (i = 0; i < 600; i++) printf "%s ", "the cat sat on a mat" }' >text.txt
cat >r.ini <<'INI'
[model]
name = gpt
depth = 1
width = 16
heads = 2
context = 16
[data]
tokenizer = char
[train]
steps = 2
batch = 4
[optimizer]
name = adamw
lr = 1e-3
INI
bad() { # STATUS WORDS ARGUMENT...
    local status=$1 words=$2
    shift 2
    run "$status" train r.ini --out bad --force -q "$@"
    says err "$words"
    [ ! -e bad/model.safetensors ] || fail "$words: a model was written"
}

# ---- the text
: >empty.txt
bad 4 "empty.txt: empty" --data empty.txt
head -c 5000 text.txt >broken.txt
printf '\377\376' >>broken.txt
bad 4 "5000" --data broken.txt
says err "broken.txt"
run 0 data info broken.txt
says out "no UTF-8"
run 0 train r.ini --data broken.txt --set data.tokenizer=byte --out bytes -q
bad 4 "does not exist" --data nowhere.txt
mkfifo pipe.txt
for data in /dev/zero pipe.txt; do # which never end, or never begin
    timeout 10 "$STINT" bench step r.ini --runs 1 --data $data >out 2>err
    [ $? -eq 4 ] || fail "$data: wrong status"
    says err "is no file and no folder"
done
rm pipe.txt
printf 'a' >letter.txt
bad 4 "letter.txt: the text has 1 token to train on, but two are needed" --data letter.txt
printf '%0500d' 0 >zeros.txt
bad 4 "zeros.txt: all of the text is one and the same character" --data zeros.txt --set data.tokenizer=char
run 0 plan r.ini --data zeros.txt --set data.tokenizer=byte
bad 4 "context of 20000 tokens is longer" --data text.txt --set model.context=20000
mkdir folder images
head -c 3000 text.txt >folder/b.txt
head -c 4000 text.txt >folder/a.txt
printf 'x' >folder/notes.md
run 0 train r.ini --data folder --out folders -q --json
run 0 data info folder --json
json "j['files'] == 2 and j['bytes'] == 7000 and j['utf8'] and j['different'] == 10"
cat folder/a.txt folder/b.txt >both.txt
run 0 data info both.txt --json
sha=$(python3 -c 'import json; print(json.load(open("out"))["sha256"])')
run 0 data info folder --json
json "j['sha256'] == '$sha'"

# ---- the recipe
bad 2 "crop_pad" --data text.txt --set data.flip=true
bad 2 "is of images" --data text.txt --set data.format=tar
bad 2 "label_smoothing" --data text.txt --set train.label_smoothing=0.1
bad 2 "divides by the heads" --data text.txt --set model.heads=3
bad 2 "model.heads" --data text.txt --set model.width=40 --set model.heads=0
bad 2 "are of text models" --data text.txt --set model.name=lenet5 --set model.stem=auto
bad 2 "text is not what" --data text.txt --set model.name=resnet8 --set data.format=text
bad 4 "model.vocabulary: 5, but the tokeniser has" --data text.txt --set model.vocabulary=5
bad 2 "at least 256" --data text.txt --set data.tokenizer=bpe --set model.vocabulary=100

# ---- the tokeniser
run 0 data tokens text.txt --vocabulary 270 --gpt2 gpt2
run 0 train r.ini --data text.txt --set data.tokenizer_path=gpt2 --out gpt -q
echo 'Ġt notthere' >>gpt2/merges.txt
bad 4 "merges.txt: merge" --data text.txt --set data.tokenizer_path=gpt2
run 0 data tokens both.txt --tokenizer char -o chars.json
printf 'Zebra %s' "$(cat text.txt)" >other.txt
bad 4 "'Z' (U+005A)" --data other.txt --set data.tokenizer_path=chars.json
bad 5 "nothere.json" --data text.txt --set data.tokenizer_path=nothere.json

# ---- the cache
run 0 train r.ini --data text.txt --out good --force -q --json
first=$(python3 -c 'import json; print(json.load(open("out"))["weights_sha256"])')
again() { # WORDS
    run 0 train r.ini --data text.txt --out good --force --json
    json "j['weights_sha256'] == '$first'"
    says err "$1"
    says err "made anew"
    run 0 train r.ini --data text.txt --out good --force --json
    grep -q "made anew" err && fail "made anew a second time"
}
for file in cache/stint/tokens/*.tokens; do
    head -c 3000 "$file" >cut && mv cut "$file"
done
again "damaged"
for file in cache/stint/tokens/*.tokens; do
    printf 'X' | dd of="$file" bs=1 seek=2000 conv=notrunc 2>/dev/null
done
again "damaged"
other=$(ls -S cache/stint/tokens/*.tokens | tail -1)
for file in cache/stint/tokens/*.tokens; do
    [ "$file" = "$other" ] || cp "$other" "$file"
done
run 0 train r.ini --data text.txt --out good --force --json
json "j['weights_sha256'] == '$first'"
says err "another text or another tokeniser"
chmod 500 cache/stint/tokens
rm -rf nocache && XDG_CACHE_HOME=/proc/nothing run 0 train r.ini --data text.txt --out good \
    --force --json
json "j['weights_sha256'] == '$first'"
says err "kept in memory"
chmod 700 cache/stint/tokens

# ---- models and data that do not belong together
run 0 eval good --data text.txt
run 4 eval good --data other.txt
says err "'Z' (U+005A)"
run 2 eval good --confusion --data text.txt
printf 'a' >one.txt
run 4 eval good --data one.txt
says err "two are needed"
run 2 run good text.txt
run 2 data check text.txt
run 0 plan r.ini --data text.txt
says out "a sequence forward"
python3 "$STINT_SOURCE/tests/cli/cli_data.py" images
printf '[model]\nname = lenet5\n[train]\nepochs = 1\nbatch = 32\n' >images.ini
for key in train.start loss.reference; do
    run 4 train images.ini --data images --out bad --force -q \
        --set $key=good/model.safetensors
    says err "$key" "is a text model, the data are images"
done
finish
