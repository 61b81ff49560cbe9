# A pipe where a file is meant is refused at once, whatever reads it, though nobody
# writes to it; one that the shell gives is read.
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
batch = 32
[run]
checkpoint_every = 2
INI
run 0 train r.ini --out a -q
mkfifo pipe part.npy.part

# refused ARGUMENT...: status 4 or 5, with the name and what it is.
refused() {
    local got=0
    timeout 10 "$STINT" "$@" >out 2>err </dev/null || got=$?
    [ $got -eq 4 ] || [ $got -eq 5 ] || fail "stint $*: status $got"
    says err "is a pipe, a file is wanted"
}
refused info pipe
refused eval pipe --data data
refused run pipe a/model.safetensors
refused run a pipe
refused compare a pipe --data data
refused diff a/model.safetensors pipe
refused topk pipe -k 1
refused codec pack pipe --out x --bound 1e-3
refused codec unpack pipe --out x.npy
refused codec info pipe
refused plan pipe
refused train r.ini --out b --start pipe
refused train r.ini --out b --set loss.reference=pipe
for file in a/checkpoints/*.safetensors; do # a checkpoint is a pipe: the one before it serves, or none
    rm "$file" && mkfifo "$file"
done
timeout 20 "$STINT" train r.ini --out a --resume >out 2>err </dev/null
[ $? -le 5 ] || fail "--resume from a pipe: status $?"
grep -q "is a pipe" err || fail "a checkpoint that is a pipe is not told"

# What the shell gives is read.
run 0 plan <(cat r.ini) --data data

# The part of a file to be written.
python3 - <<'PY'
import struct
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }".ljust(117) + "\n"
open("v.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.encode() + struct.pack("<4f", 1, 3, 2, 0))
PY
timeout 10 "$STINT" topk v.npy -k 2 --out i.npy --values part.npy >out 2>err
[ $? -eq 5 ] || fail "a part that is a pipe: wrong status"
says err "part.npy.part: is no file"
finish
