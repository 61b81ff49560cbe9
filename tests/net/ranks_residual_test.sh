# What compressed sums owe belongs to ranks; a run goes on by any number of them all the
# same: the residuals are shared out, or left out by one process. What a run that lost a rank
# saves owes nothing, and knows the bits of its layers.
. "$(dirname "$0")/ranks_lib.sh"
cat >owed.py <<'PY'
import json, struct


def owed(path):
    """Residuals of all ranks, then bits of the layers."""
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        begin, end = json.loads(f.read(size))["net.residuals"]["data_offsets"]
        f.seek(8 + size + begin)
        return struct.unpack(f"<{(end - begin) // 4}f", f.read(end - begin))


def summed(flat, ranks, each):
    return [sum(owe) for owe in zip(*(flat[r * each : (r + 1) * each] for r in range(ranks)))]


def far(a, b):
    return (sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b)) ** 0.5
PY

# Next to nothing is sent (another number of ranks sends other values of that) and weights
# stay: residuals grow by a gradient a step, whoever brings it.
slow=(net.ini --set model.name=mlp --set model.dropout=0 --lr 1e-12 --set net.keep=1e-6
    --set run.checkpoint_every=1 --set run.keep=20 --set data.flip=false)
begin 2 "${slow[@]}" --out two
all_end 0
cp -r two three
rm three/checkpoints/step-0000001[12].safetensors
begin 3 "${slow[@]}" --out three --resume
all_end 0
speaks 0 "shared out anew"
python3 - <<'PY' || fail "3 ranks owe something else than 2"
from owed import far, owed, summed
two, three = (owed(f"{n}/checkpoints/step-00000011.safetensors") for n in ("two", "three"))
each = len(three) - len(two)
before = summed(owed("two/checkpoints/step-00000010.safetensors"), 2, each)
a, b = summed(two, 2, each), summed(three, 3, each)
assert far(a, b) < 0.05 < far(before, b), (far(a, b), far(before, b))
PY

# One process owes nothing; then two go on again.
rm two/checkpoints/step-0000001[12].safetensors
run 0 train "${slow[@]}" --out two --resume --quiet
says err "left out"
rm two/checkpoints/step-0000001[12].safetensors
begin 2 "${slow[@]}" --out two --resume
all_end 0

# Bits that never owe take no memory for it, planned or in the checkpoint.
for feedback in true false; do
    begin 2 net.ini --set model.name=mlp --out "eight_$feedback" --set net.bits=8 \
        --set net.feedback=$feedback
    all_end 0
done
python3 - <<'PY' || fail "8 bits plan for what they would owe"
import json, os


def planned(out):
    """Parts of the plan but the process itself, whose figure is taken as found."""
    parts = json.loads(open(f"{out}/log.jsonl").readline())["parts"]
    return {p["name"]: p["bytes"] for p in parts if p["name"] != "process"}


outs = [f"eight_{feedback}" for feedback in ("true", "false")]
plans = [planned(out) for out in outs]
files = [os.path.getsize(f"{out}/checkpoints/step-00000012.safetensors") for out in outs]
assert "network" in plans[0] and plans[0] == plans[1], plans
assert abs(files[0] - files[1]) < 4096, files
PY

# Only tensors of two dimensions and 1024 values and more are compressed: not
# biases, norms, their statistics or the loss.
begin 2 net.ini --out list --set net.bits=4 --set train.steps=1
all_end 0
python3 - <<'PY' || fail "other tensors are compressed than should be"
import json, struct
from math import prod
from owed import owed
path = "list/checkpoints/step-00000001.safetensors"
with open(path, "rb") as f:
    tensors = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
shapes = [t["shape"] for name, t in tensors.items()
          if not name.startswith(("__metadata__", "optimizer.", "net."))]
large = sum(len(s) > 1 and prod(s) >= 1024 for s in shapes)
bits = owed(path)[-len(shapes) - 2 :] # and of two sums, the loss and the right answers
assert large > 3 and bits.count(4) == large, (large, bits)
assert bits.count(32) == len(bits) - large, bits
PY

# A rank is lost: what rounding owed is lost with it, the bits chosen are not.
begin 2 net.ini --set model.name=mlp --out lost --net 1Mbit --set net.time=10ms --lr 1e-6 \
    --set train.steps=100000 --set run.checkpoint_every=100000 --net-timeout 5s
until_file lost/log.jsonl
for _ in $(seq 200); do grep -q '"event":"net"' lost/log.jsonl && break; sleep 0.05; done
sleep 0.3
kill -KILL "${pids[1]}"
wait "${pids[1]}" 2>/dev/null
ends 0 6
speaks 0 "is saved without what its compressed sums still owe"
python3 - <<'PY' || fail "the checkpoint of a run that lost a rank"
import glob
from owed import owed
flat = owed(max(glob.glob("lost/checkpoints/*")))
assert not any(flat[:-8]) and 2 in flat[-8:] and 32 in flat[-8:], flat[-8:]
PY

finish
