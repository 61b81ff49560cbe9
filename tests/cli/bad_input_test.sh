# Bad input of every kind: the cause, the object and the way out are named, the exit code
# is that of the table in docs, and nothing is lost or left half-written.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python3 "$STINT_SOURCE/tests/cli/cli_data.py" data
cat >r.ini <<'INI'
[model]
name = lenet5
[data]
path = data
[train]
epochs = 1
batch = 8
shards = 2
[optimizer]
lr = 0.05
INI
run 0 train r.ini --out ok -q
python3 "$STINT_SOURCE/tests/cli/bad_files.py" bad ok/model.safetensors || fail "bad_files.py"

# refused DATA STATUS WORDS...: training and checking both refuse, and say the words.
refused() {
    local data=$1 status=$2 words
    shift 2
    run "$status" train r.ini --data "$data" --out "x_$(basename "$data")" -q
    for words; do says err "$words"; done
    silent out
    [ ! -e "x_$(basename "$data")/model.safetensors" ] || fail "$data: left a model"
    run "$status" data check "$data" -q
    for words; do says out "$words"; done
}

# ---- folders, files, classes
refused nowhere 4 "nowhere does not exist" "stint data get"
mkdir empty
refused empty 4 "empty has no train split" "train/<class>"
run 4 train r.ini --data r.ini --out x_file -q
says err "is a file; give the folder"
run 2 data check r.ini -q # a text, as far as it can tell
says err "holds no images"
refused /dev/null 4 "is no folder"
refused bad/cut 4 "train/cat/3.png" "cut short"
refused bad/nothing 4 "train/cat/3.png" "an empty file"
refused bad/text 4 "train/cat/3.png" "not a JPEG, PNG, WebP or BMP image"
refused bad/gif 4 "train/cat/3.png" "not a JPEG, PNG, WebP or BMP image"
refused bad/huge 4 "train/cat/3.png" "possible size"
refused bad/size 4 "train/cat/3.png" "13x12" "12x12" "\`size\` in [data]"
run 0 train r.ini --data bad/size --set data.size=12 --out resized -q
refused bad/noimage 4 "class 'dog' has no images"
refused bad/more 4 "class 'bird'" "not one of the 2 training classes"
refused bad/fewer 4 "training class 'bird' is missing"
refused bad/one 4 "one class, 'cat'" "two or more"
run 4 train r.ini --batch 512 --out x
says err "512 images"
says err "only 256"
says err "--batch 256 or less"
run 4 train r.ini --batch 512 --shards 512 --out x # not even an image a shard
says err "only 256; use --batch 256 --shards 4"
run 0 plan r.ini --batch 256 --shards 4
# A run that failed on its data is no obstacle to the next.
run 0 train r.ini --data bad/good --out x_cut -q

# ---- tar, IDX, CIFAR
refused bad/tar_cut 4 "train.tar" "cut short: it ends before the archive does"
refused bad/tar_noise 4 "train.tar" "plain, whole tar"
refused bad/tar_empty 4 "train.tar is empty"
refused bad/tar_zip 4 "train.tar" "plain, whole tar"
refused bad/tar_large 4 "train.tar" "overflow"
refused bad/tar_negative 4 "train.tar" "negative"
refused bad/idx_cut 4 "has 5016 bytes, its header promises 9232"
refused bad/idx_kind 4 "begins with 00000903, wanted 00000803"
refused bad/idx_large 4 "cannot be right"
refused bad/idx_labels 4 "63" "64"
refused bad/cifar 4 "data_batch_2.bin: record 6 has the label 77" "10 class names"
run 0 train r.ini --data bad/cifar_missing --out cm -q
says err "warning: "
says err "data_batch_3.bin is missing"
[ "$(grep -c data_batch_3 err)" -eq 1 ] || fail "the warning is repeated: $(cat err)"

# A damaged JPEG does not spoil the one that the same decoder reads next.
python3 - <<'PY'
import base64
# 8 x 8 grey, made by libjpeg.
j = base64.b64decode("""
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4p
LSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//wAALCAAIAAgBAREA/8QAHwAAAQUBAQEB
AQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1Fh
ByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZ
WmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXG
x8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/AM/wtp/3Plr/2Q==""")
import os
for c in "ab":
    for i in range(6):
        os.makedirs(f"jpeg/train/{c}", exist_ok=True)
        cut = j.index(b"\xff\xda") if (c, i) == ("a", 2) else len(j)
        open(f"jpeg/train/{c}/{i}.jpg", "wb").write(j[:cut])
PY
run 4 data check jpeg -q
[ "$(grep -c '^problem: ' out)" -eq 1 ] || fail "one JPEG is damaged, found: $(cat out)"
says out "train/a/2.jpg"

# ---- models
for name in cut short header noise deep shape overlap missing recipe foreign flip; do
    for command in eval info; do
        run 4 $command bad/m_$name.safetensors --json
        says err "m_$name.safetensors"
        json 'j["error"]["code"] == 4'
    done
    run 4 run bad/m_$name.safetensors bad/good/train/cat/0.png
done
# Numbers that nothing can be computed with: the tensor or the key is named.
for name in nan infinite mean deviation image; do
    for command in eval info; do
        run 4 $command bad/m_$name.safetensors --json
        json 'j["error"]["code"] == 4'
        case $name in
        nan | infinite) says err "element 2 of '" "m_$name.safetensors" ;;
        *) says err "'$name'" "m_$name.safetensors" ;;
        esac
    done
    run 4 run bad/m_$name.safetensors bad/good/train/cat/0.png
    run 4 train r.ini --start bad/m_$name.safetensors --out x_start
done
# Such as can, but the answers are none.
run 4 eval bad/m_large.safetensors --data data
says err "m_large.safetensors: its answers are no finite numbers"
run 4 run bad/m_large.safetensors bad/good/train/cat/0.png
says err "m_large.safetensors: its answers are no finite numbers"
run 4 eval bad/m_flip.safetensors
says err "SHA-256"
mkdir unfinished unfinished/checkpoints
for folder in empty unfinished; do
    run 4 eval $folder
    says err "$folder holds no model.safetensors"
    run 4 diff ok $folder
    says err "$folder holds no model.safetensors"
    run 4 train r.ini --start $folder --out x_start
    says err "$folder holds no model.safetensors"
done
run 4 run unfinished bad/good/train/cat/0.png
says err "--resume"
run 4 eval ok --data bad/good
says err "class 'cat' is not one of the 2"
run 4 eval ok --data nowhere
says err "nowhere does not exist"
run 2 eval ok --data bad/good --episodes 3
says err "--episodes: is of agents, and this is a network"
run 2 eval ok --data bad/good --scores scores.npy
says err "--scores: is of models of clicks"
run 4 run ok bad/gif/train/cat/3.png bad/good/train/cat/0.png
says out "cat/0.png"
says err "cat/3.png: not a JPEG"
# A checkpoint whose bytes changed is passed over for the one before it.
run 0 train r.ini --out cp --epochs 3 -q --json
sha=$(python3 -c 'import json; print(json.load(open("out"))["weights_sha256"])')
run 0 train r.ini --out cp2 --epochs 3 --steps 64 -q
printf '\377\377\377\377' | dd of=cp2/checkpoints/step-00000064.safetensors bs=1 seek=20000 conv=notrunc status=none
run 0 train r.ini --out cp2 --epochs 3 --resume -q --json
json "j['weights_sha256'] == '$sha'"
# One whose recipe is damaged is bad input, in one line and without help for the command.
python3 - <<'PY'
import json, struct
name = "cp2/checkpoints/step-00000096.safetensors"
data = open(name, "rb").read()
n = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + n])
recipe = head["__metadata__"]["recipe"]
head["__metadata__"]["recipe"] = recipe.replace("batch = 8", "batsh = 8").replace("lr = ", "rl = ")
text = json.dumps(head).encode()
open(name, "wb").write(struct.pack("<Q", len(text)) + text + data[8 + n:])
PY
run 4 train r.ini --out cp2 --epochs 4 --resume
says err "step-00000096.safetensors"
says err "unknown key 'batsh' in [train]; did you mean 'batch'?; "
says err "unknown key 'rl' in [optimizer]"
grep -qF '\n' err && fail "an escaped newline: $(cat err)"
[ "$(grep -c . err)" = 2 ] || fail "a damaged recipe takes more than a line after that of the plan: $(cat err)"
run 4 eval bad/m_recipe.safetensors --data data
says err "a damaged recipe: "
grep -qF '\n' err && fail "an escaped newline: $(cat err)"
for rest in gz:gunzip xz:unxz bz2:bunzip2; do
    mkdir -p packed_${rest%:*}
    case $rest in gz*) tool=gzip ;; xz*) tool=xz ;; *) tool=bzip2 ;; esac
    command -v $tool >/dev/null || continue
    $tool -c bad/tar_noise/train.tar >packed_${rest%:*}/train.tar
    refused packed_${rest%:*} 4 "it is compressed" "unpack it with ${rest#*:} "
done

# ---- recipes and flags
printf '[model]\nnmae = lenet5\n[trian]\nbatch = 3\n[train]\nbatch = 0\nshards = two\n' >bad.ini
run 2 train bad.ini
says err "bad.ini:2: unknown key 'nmae' in [model]; did you mean 'name'?"
says err "bad.ini:3: unknown section [trian]; did you mean [train]?"
says err "bad.ini:6: batch: 0 is out of range, must be from 1"
says err "bad.ini:7: shards: 'two' is no whole number"
run 2 train r.ini --batsh 3
says err "did you mean --batch?"
for flag in "--batch 0" "--batch -5" "--batch 8.5" "--batch 99999999999999999999" "--lr nan" \
    "--lr -1" "--lr 1,5" "--shards 0" "--seed -1" "-j 100000" "--memory 10Q" "--steps -3" \
    "--set train.bach=3" "--set foo.bar=1" "--set train.batch" "--set data.format=xyz"; do
    # shellcheck disable=SC2086 # two words
    run 2 train r.ini $flag --out x
    says err "${flag%% *}"
done
[ ! -e x ] || fail "a refused flag left a folder"
for command in "plan r.ini" "tune gemm 8 8 8" "bench step r.ini --runs 1" "bench gemm 8x8x8" \
    "eval ok" "info ok"; do
    # shellcheck disable=SC2086
    STINT_ISA=none run 2 $command
    says err "STINT_ISA is 'none', but must be"
    silent out
done
head -c 2000 /dev/urandom >noise.ini
run 4 plan noise.ini
run 3 train r.ini --memory 1M --out x
says err "short by"
run 1 train r.ini --lr 1e6 --set optimizer.weight_decay=10 --epochs 9 --out nan
says err "not finite"
says err "optimizer.lr"

# ---- one figure: what plan says, what the run announces, what the report and log hold
if ! grep -q __asan_init "$STINT"; then # whose own memory grows from plan to plan
    run 0 plan r.ini --json
    planned=$(python3 -c 'import json; print(json.load(open("out"))["peak_bytes"])')
    run 0 train r.ini --out figure --json -q
    json "j['planned_peak_bytes'] == $planned"
    grep -q "\"planned_peak_bytes\":$planned[,}]" figure/log.jsonl ||
        fail "log.jsonl: another plan"
fi

# ---- places that cannot be written
touch file
run 5 train r.ini --out file/x
run 5 train r.ini --out /proc/x
XDG_CACHE_HOME=/proc run 5 tune gemm 32 32 32 -j 1
says out "without a string"
says out "nothing kept"
says err "/proc/stint"
for command in "plan r.ini" "--version" "eval ok" "info ok" "train r.ini --out full --json"; do
    # shellcheck disable=SC2086
    "$STINT" $command >/dev/full 2>err
    [ $? -eq 5 ] || fail "$command >/dev/full: wrong status"
done
[ -s full/model.safetensors ] || fail "the model is lost with the answer"
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
if [ "$(id -u)" -eq 0 ] && "${nobody[@]}" true 2>/dev/null; then
    chmod 755 "$work"
    cp "$STINT" stint_copy # may lie where nobody may look
    mkdir -p ro locked
    as_nobody() { "${nobody[@]}" ./stint_copy "$@" 2>err >out; }
    as_nobody train r.ini --out ro/x
    [ $? -eq 5 ] || fail "unwritable out: wrong status"
    says err "Permission denied; change"
    as_nobody train r.ini --out ok --force
    [ $? -eq 5 ] || fail "another's run: wrong status"
    cp data/* locked/ && chmod 0 locked
    as_nobody plan r.ini --data "$work/locked"
    [ $? -eq 5 ] || fail "unreadable data: wrong status"
    says err "locked: cannot be read"
    chmod 755 locked
fi
# A disk that is full in the midst: the run stops with the last checkpoint whole, and goes
# on from there once there is room.
mkdir disk
if mount -t tmpfs -o size=600k tmpfs disk 2>/dev/null; then
    run 5 train r.ini --out disk/d --epochs 3 --set run.checkpoint_every=3 --set run.keep=50
    says err "the disk is full"
    says err "--resume"
    find disk -name '*.part' | grep -q . && fail "a half-written file is left"
    mount -o remount,size=2m disk
    run 0 train r.ini --out disk/d --epochs 3 --resume --set run.keep=2 --json -q
    json "j['weights_sha256'] == '$sha'"
    umount disk
fi

# ---- streams that are closed or go away
rm -rf c
"$STINT" train r.ini --out c <&- >&- 2>&-
case $? in 0 | 5) ;; *) fail "closed streams: wrong status" ;; esac
run 0 eval c -q
python3 - <<'PY' || fail "closed streams: something else is in log.jsonl"
import json
[json.loads(line) for line in open("c/log.jsonl")]
PY
"$STINT" run ok - <&- >out 2>err || fail "closed stdin: wrong status"
silent err
"$STINT" info ok --json | head -c 1 >/dev/null
"$STINT" train r.ini --out pipe 2>&1 | head -1 >/dev/null
[ -s pipe/model.safetensors ] || fail "a broken pipe ended the run"

# ---- names with blanks and letters beyond ASCII; a path beside its recipe
mkdir -p "dä ta/rö"
cp data/* "dä ta/rö"
sed 's#path = data#path = rö#' r.ini >"dä ta/r e.ini"
(cd / && "$STINT" train "$work/dä ta/r e.ini" --out "$work/dä ta/öut put" -q >/dev/null) ||
    fail "names with blanks"
run 0 eval "dä ta/öut put" -q

# ---- a slow string of one's own leaves what is kept
XDG_CACHE_HOME=$work/cache run 0 tune gemm 40 40 40 -j 1 --seconds 0.001
echo "gemm f32 48 48 48 nn 1 = cba 14x32x16" >>cache/stint/loops.txt
XDG_CACHE_HOME=$work/cache run 0 tune gemm 48 48 48 -j 1 --string "abc 1x1x1" --seconds 0.001
says out "nothing kept: the string does not beat"
says out "2 candidates, 2 measured"
grep -q "^cba 14x32x16  *[0-9]" out || fail "what is kept was not measured"
grep -qx "gemm f32 48 48 48 nn 1 = cba 14x32x16" cache/stint/loops.txt || fail "what was kept is lost"
XDG_CACHE_HOME=$work/cache run 2 tune gemm 48 48 48 -j 1 --string "abc 14x32x16 b4"
says err "takes 0 block sizes"
# ---- a pipe in place of what is kept is refused, and not waited for
rm cache/stint/loops.txt
mkfifo cache/stint/loops.txt
export XDG_CACHE_HOME=$work/cache
timeout 30 "$STINT" tune gemm 40 40 40 -j 1 --seconds 0.001 >out 2>err
[ $? -eq 5 ] || fail "a pipe for loops.txt: wrong status"
says err "loops.txt: is a pipe, a file is wanted"
silent out
timeout 30 "$STINT" tune gemm 40 40 40 -j 1 --seconds 0.001 --no-keep >out 2>err ||
    fail "nothing is to be kept: $(cat err)"
unset XDG_CACHE_HOME

finish
