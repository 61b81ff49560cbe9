#!/bin/bash
# Training on clicks where something is wrong: the right exit code, and words that name it.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
unset STINT_SOURCE STINT_BUILD
cd "$dir"
"$STINT" data clicks --out c.csv --rows 4000 --fields 1000,300 --seed 3 -q >/dev/null
"$STINT" data clicks --out d.csv --rows 4000 --fields 1000,300 --seed 4 -q >/dev/null
printf '[model]\nname = dlrm\nwidth = 8\nbottom = 8\ntop = 8\n[train]\nbatch = 64\nsteps = 60\n' >r.ini
printf '[optimizer]\nlr = 0.005\n[run]\ncheckpoint_every = 20\nkeep = 3\n' >>r.ini
refused() { # RC WORDS, then the command
    local want=$1 words=$2 rc=0
    shift 2
    "$STINT" "$@" >out.txt 2>err.txt || rc=$?
    [ $rc = "$want" ] || { echo "$*: exit $rc, wanted $want"; cat err.txt; exit 1; }
    grep -qF -- "$words" err.txt || { echo "$*: no '$words' in:"; cat err.txt; exit 1; }
}
field() { /usr/bin/python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }

"$STINT" train r.ini --data c.csv --out a -q --json >a.json
# 26 fields are read as they were written, by either name.
for name in k.csv k.txt; do
    "$STINT" data clicks --out $name --rows 50 -q >/dev/null
    "$STINT" data rank $name -q | grep -q '13 numbers, 26 fields'
done
# What does not go together, before anything is read.
refused 2 'optimizer.clip' train r.ini --data c.csv --out x --set optimizer.clip=1
refused 2 'train.batch: auto' train r.ini --data c.csv --out x --batch auto --memory 1G
refused 2 'data.path' train r.ini --out x
refused 2 'model.bottom' train r.ini --data c.csv --out x --set model.bottom=8,x
refused 5 'nowhere' train r.ini --data nowhere.csv --out x
refused 2 'data.format' train r.ini --data c.csv --out x --set data.format=cifar
refused 2 'data.format' train r.ini --data c.csv --out x --set data.format=criteo --set model.name=resnet20
[ ! -e x ]
# A run that is there, a recipe or data of another, two at once.
refused 2 'holds a run already' train r.ini --data c.csv --out a
refused 2 'embedding.optimizer' train r.ini --data c.csv --out a --resume --set embedding.optimizer=sgd --steps 80
refused 4 'is another table' train r.ini --data d.csv --out a --resume
# Answers in the place of what they are made from.
cp c.csv kept.csv
refused 2 'written over' eval a --data c.csv --scores c.csv
refused 2 'written over' plan r.ini --data c.csv --svg c.csv
cmp c.csv kept.csv
refused 2 'written over' eval a --data c.csv --scores a/model.safetensors
refused 2 "the model's table" eval a --data c.csv --scores a/embeddings/rows.bin
refused 2 "the model's table" export embeddings a --out a/embeddings/ids.ranks
refused 5 'cannot be' eval a --data c.csv --scores nowhere/s.npy
refused 8 'is a model of clicks' info a
refused 8 'not planned for' eval a --data c.csv --memory 1G
refused 2 'holds a table already' train r.ini --data c.csv --out x --set embedding.path=a/embeddings
refused 2 'is the label' train r.ini --data c.csv --out x --set data.categorical=label,C1
refused 2 'one character' train r.ini --data c.csv --out x --set data.separator=ab
# One class has no AUC, and that is said; words and JSON.
sed 's/^[01],/1,/' c.csv >ones.csv
"$STINT" eval a --data ones.csv --split all >out.txt
grep -q 'no AUC' out.txt
"$STINT" eval a --data ones.csv --split all --json >ones.json
[ "$(field ones.json auc)" = None ]
# Data of other columns; ranks of other data.
cut -d, -f1-15 c.csv >narrow.csv
refused 4 'the model was trained on' eval a --data narrow.csv
"$STINT" data rank d.csv --out d.ranks -q >/dev/null
refused 4 'ranks of other data' eval a --data d.ranks
# A damaged page, a table cut short, a damaged newest checkpoint.
cp -r a b
printf 'x' | dd of=b/embeddings/rows.bin bs=1 seek=8300 conv=notrunc 2>/dev/null
refused 4 'page 2' eval b --data c.csv
truncate -s 9000 b/embeddings/rows.bin
refused 4 'cut short' eval b --data c.csv
cp -r a e
printf 'garbage' >e/checkpoints/step-00000060.safetensors
rm e/model.safetensors
"$STINT" train r.ini --data c.csv --out e --resume -q --json >e.json 2>err.txt
grep -q 'passed over' err.txt
[ "$(field e.json weights_sha256)" = "$(field a.json weights_sha256)" ]
# A finished run that goes on and is stopped: its model was of other rows.
cp -r a h
"$STINT" train r.ini --data c.csv --out h --resume --steps 1000000 -q 2>err.txt &
trainer=$!
for _ in $(seq 100); do [ -e h/model.safetensors ] || break; sleep 0.1; done
kill -TERM $trainer
wait $trainer || [ $? = 143 ]
refused 4 'holds no model.safetensors yet' eval h --data c.csv
# O_DIRECT that the file system refuses: said, and the same bits.
if [ -w /dev/shm ] && ! dd if=/dev/zero of=/dev/shm/stint-odirect bs=4096 count=1 oflag=direct 2>/dev/null; then
    "$STINT" train r.ini --data c.csv --out t --set embedding.path=/dev/shm/stint-rows-$$ \
        -q --json >t.json 2>err.txt || { cat err.txt; exit 1; }
    rm -rf /dev/shm/stint-rows-$$
    [ "$(field t.json weights_sha256)" = "$(field a.json weights_sha256)" ]
fi
rm -f /dev/shm/stint-odirect
# A disk that is full while rows are written back: the checkpoint before holds.
cat >full.sh <<'SH'
mkdir disk
mount -t tmpfs -o size=140k none disk || exit 77
set -e
rc=0
"$STINT" train r.ini --data c.csv --out full -q --set embedding.path="$PWD/disk/rows" \
    2>err.txt || rc=$?
[ $rc = 5 ] && grep -qi 'full\|no space' err.txt || { echo "exit $rc"; cat err.txt; exit 1; }
[ "$(ls full/checkpoints | wc -l)" -ge 1 ]
mount -o remount,size=4m disk
"$STINT" train r.ini --data c.csv --out full -q --set embedding.path="$PWD/disk/rows" \
    --resume --json >full.json
SH
export STINT
rc=0
unshare -m true 2>/dev/null && { unshare -m bash full.sh || rc=$?; } || rc=77
if [ $rc != 77 ]; then
    [ $rc = 0 ] || exit 1
    [ "$(field full.json weights_sha256)" = "$(field a.json weights_sha256)" ]
fi
# Ctrl-C while a file is made: no half of it stays. (A shell's background jobs ignore
# SIGINT, so it is SIGTERM here.)
"$STINT" data clicks --out long.csv --rows 100000000 -q 2>err.txt &
maker=$!
for _ in $(seq 100); do [ -e long.csv.part ] && break; sleep 0.1; done
kill -TERM $maker
rc=0
wait $maker || rc=$?
[ $rc = 143 ] && grep -q stopped err.txt && [ -z "$(ls | grep long.csv)" ]
