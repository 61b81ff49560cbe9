# stint finetune with frozen weights in a byte, and with updates within the step: what
# that changes in memory, and that it changes no bit, or next to nothing.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
sha() { sed 's/.*"weights_sha256":"\([0-9a-f]*\)".*/\1/' out; }
# (A sanitizer's own memory is in no plan.)
plain() { grep -q '^STINT_SANITIZE:.*=$' "$STINT_BUILD/CMakeCache.txt"; }
python3 - <<'PY'
import random
draw = random.Random(4)
words = "the cat sat on a mat and saw the rat run to its den by night".split()
for name, n in (("one.txt", 500), ("two.txt", 400)):
    with open(name, "w") as f:
        f.write(" ".join(draw.choice(words) + (" then" if name == "two.txt" and i % 3 == 0 else "")
                         for i in range(n)) + ".\n")
PY
text() { # FILE WIDTH DEPTH STEPS
    cat >"$1" <<INI
[model]
name = gpt
depth = $3
width = $2
heads = 4
context = 24
[data]
path = one.txt
tokenizer = byte
[train]
steps = $4
batch = 4
shards = 1
[optimizer]
name = adamw
lr = 3e-3
INI
}
text small.ini 32 2 60
run 0 train small.ini -o small -q
text wide.ini 256 4 1
run 0 train wide.ini -o wide -q
tune="--data two.txt --batch 4 --shards 1 --steps 12 --lr 1e-3"

# A byte a number: the loss is that of float32 within 0.01, the bits do not depend on how
# it is run, and what is not trained is off by half a scale at most.
# shellcheck disable=SC2086
for what in "--tensors h.1.*" "--what lora --rank 4" "--what bias"; do
    full || [ "$what" != "--what bias" ] || continue
    run 0 finetune small $tune $what -o f32 --force --json -q
    loss=$(sed 's/.*"test_loss":\([0-9.]*\).*/\1/' out)
    run 0 finetune small $tune $what --frozen int8 -o int8 --force -j 1 --json -q
    json "abs(j['test_loss'] - $loss) <= 0.01"
    want=$(sha)
    STINT_ISA=ref run 0 finetune small $tune $what --frozen int8 -o other --force -j 2 --json -q
    [ "$(sha)" = "$want" ] || fail "$what: int8 has other bits with other threads"
    run 0 eval int8 --data two.txt --json # the file holds what was trained with
    plain || break
done
run 0 finetune small $tune --tensors 'h.1.*' --frozen int8 -o int8 --force --json -q
want=$(sha)
run 0 finetune small $tune --tensors 'h.1.*' --frozen int8 --steps 8 --set schedule.name=constant -o cut -q
run 0 finetune small $tune --tensors 'h.1.*' --frozen int8 --set schedule.name=constant -o cut --resume --json -q
cut=$(sha)
run 0 finetune small $tune --tensors 'h.1.*' --frozen int8 --set schedule.name=constant -o whole --json -q
[ "$(sha)" = "$cut" ] || fail "int8 resumed has other bits"
run 0 train int8/recipe.ini -o again --json -q
[ "$(sha)" = "$want" ] || fail "the recipe of an int8 run has other bits"
python3 - <<'PY' || fail "weights of an int8 run"
import json, struct
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    head.pop("__metadata__")
    out = {}
    for k, v in head.items():
        a, b = v["data_offsets"]
        out[k] = (v["shape"], struct.unpack(f"<{(b - a) // 4}f", data[8 + n + a:8 + n + b]))
    return out
a, b = load("small/model.safetensors"), load("int8/model.safetensors")
held = 0
for k, (shape, x) in a.items():
    y = b[k][1]
    if k.startswith("h.1."):
        assert x != y, k
    elif len(shape) == 2 and k.startswith("h."):
        columns = shape[1]
        for j in range(columns):
            most = max(abs(v) for v in x[j::columns])
            assert all(abs(u - v) <= most / 254 * 1.001 for u, v in zip(x[j::columns], y[j::columns])), k
        assert x != y, k
        held += 1
    else:
        assert x == y, k
assert held == 4, held
PY
# A folder of images: convolutions, too, are held so.
python3 - <<'PY'
import os, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for part, n in (("train", 12), ("test", 4)):
    for c in ("dark", "light"):
        os.makedirs(f"images/{part}/{c}", exist_ok=True)
        for i in range(n):
            px = b"".join(b"\0" + bytes((i * 7 + (x + 16 * y) * 13) % 90 + (120 if c == "light" else 0)
                                        for x in range(16)) for y in range(16))
            open(f"images/{part}/{c}/{i}.png", "wb").write(
                b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 0, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(px)) + chunk(b"IEND", b""))
PY
cat >net.ini <<'INI'
[model]
name = resnet8
width = 16
[data]
path = images
[train]
epochs = 1
batch = 8
shards = 1
INI
run 0 train net.ini -o net -q
run 0 finetune net --data images --batch 8 --shards 1 --epochs 1 --tensors 'layer3.*' --frozen int8 -o net8 --json -q -j 1
want=$(sha)
STINT_ISA=ref run 0 finetune net --data images --batch 8 --shards 1 --epochs 1 --tensors 'layer3.*' --frozen int8 -o net8b --json -q -j 2
[ "$(sha)" = "$want" ] || fail "int8 convolutions have other bits with other threads"
# A model whose frozen weights are the rounded ones, trained on in float32, is the oracle.
rounded() { # MODEL RUN OUT: the model with what the run did not train from it
    python3 - "$@" <<'PY'
import json, struct, sys
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return head.pop("__metadata__"), head, data[8 + n:]
model, run, out = sys.argv[1:]
texts, head, data = load(model + "/model.safetensors")
_, theirs, other = load(run + "/model.safetensors")
trained = {t["tensor"] for t in json.load(open(run + ".json"))["scheme"]}
data = bytearray(data)
changed = 0
for k, v in head.items():
    a, b = v["data_offsets"]
    c, d = theirs[k]["data_offsets"]
    if k not in trained and data[a:b] != other[c:d]:
        data[a:b] = other[c:d]
        changed += 1
texts.pop("weights_sha256")
head["__metadata__"] = texts
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
open(out, "wb").write(struct.pack("<Q", len(text)) + text + bytes(data))
assert changed >= 4, changed
PY
}
run 0 finetune small $tune --tensors 'h.0.attn.*,h.1.mlp.*' --frozen int8 -o q --json -q
want=$(sha) && cp out q.json
rounded small q rounded.safetensors || fail "nothing was rounded"
run 0 finetune rounded.safetensors $tune --tensors 'h.0.attn.*,h.1.mlp.*' -o q32 --json -q
[ "$(sha)" = "$want" ] || fail "int8 is not float32 with the rounded weights"
tune_net="--data images --batch 8 --shards 1 --epochs 1 --tensors layer1.0.conv2.weight,layer3.* --set update.fold_norm=false"
run 0 finetune net $tune_net --frozen int8 -o qn --json -q
want=$(sha) && cp out qn.json
rounded net qn rounded.safetensors || fail "no convolution was rounded"
run 0 finetune rounded.safetensors $tune_net -o qn32 --json -q
[ "$(sha)" = "$want" ] || fail "int8 convolutions are not float32 with the rounded weights"
# Memory falls in the plan and in fact.
memory() { # NAME FLAGS: planned and measured peak
    name=$1
    shift
    run 0 finetune wide --data two.txt --batch 4 --shards 1 --steps 3 --tensors 'h.3.*' -o "$name" --json -q -j 1 "$@"
    planned=$(sed 's/.*"planned_peak_bytes":\([0-9]*\).*/\1/' out)
    rss=$(sed 's/.*"peak_rss_bytes":\([0-9a-z]*\).*/\1/' out)
    memory_sha=$(sha)
}
memory m_f32
f32_planned=$planned f32_rss=$rss f32_sha=$memory_sha
memory m_int8 --frozen int8
# Three blocks of 12 width^2 numbers: 9 MiB less of 2.25 MiB a million.
! plain || [ $((f32_planned - planned)) -gt 6000000 ] || fail "int8 plans $planned, float32 $f32_planned"
if plain && [ "$rss" != null ]; then
    [ $((f32_rss - rss)) -gt 5000000 ] || fail "int8 takes $rss, float32 $f32_rss"
    [ "$rss" -le "$planned" ] || fail "int8 takes $rss, planned $planned"
fi

# An update within the step: the same bits after 12 steps for each optimiser, shares,
# adapters and all parameters; less memory in the plan and in fact.
for rule in "optimizer.name=sgd optimizer.momentum=0" "optimizer.name=sgd optimizer.momentum=0.9" \
    "optimizer.name=adamw optimizer.weight_decay=0.1" "optimizer.name=rmsprop"; do
    full || [ "${rule#*=}" != "sgd optimizer.momentum=0" ] || continue
    sets=
    for s in $rule; do sets="$sets --set $s"; done
    for what in "--tensors h.0.attn.*,h.1.mlp.c_fc.weight@1/4,*.bias" "--what full" "--what lora"; do
        case "$rule $what" in *sgd*lora | *rmsprop*lora | *momentum=0\ *full | *momentum=0.9\ *full | *rmsprop*full) continue ;; esac
        # shellcheck disable=SC2086
        run 0 finetune small $tune $sets $what -o late --force --json -q
        want=$(sha)
        # shellcheck disable=SC2086
        run 0 finetune small $tune $sets $what --set update.at_once=true -o soon --force --json -q
        [ "$(sha)" = "$want" ] || fail "$rule $what: an update within the step has other bits"
    done
done
run 0 finetune net --data images --batch 8 --shards 1 --epochs 4 --tensors 'layer2.*,layer3.*' -o late --force --json -q
want=$(sha)
run 0 finetune net --data images --batch 8 --shards 1 --epochs 4 --tensors 'layer2.*,layer3.*' --set update.at_once=true -o soon --force --json -q
[ "$(sha)" = "$want" ] || fail "of images an update within the step has other bits"
memory m_soon --set update.at_once=true
[ "$memory_sha" = "$f32_sha" ] || fail "an update within the step has other bits"
! plain || [ $((f32_planned - planned)) -gt 1500000 ] || fail "at once plans $planned, at the end $f32_planned"
if plain && [ "$rss" != null ]; then
    [ $((f32_rss - rss)) -gt 1000000 ] || fail "at once takes $rss, at the end $f32_rss"
fi
# Where no gradient is whole before the end of a step, that is where updates come; it is
# said, and the bits are those of a run that does not ask. What that takes is in the plan.
within_plan() { # the run that answered in `out`
    ! plain || json "j['peak_rss_bytes'] is None or j['peak_rss_bytes'] <= j['planned_peak_bytes']"
}
# A search collects gains in steps that take more than what it then trains.
for limits in "--step-time 0.5x" "--step-time 0.5x --memory 1G" "--what sparse"; do
    # shellcheck disable=SC2086
    run 0 finetune wide --data two.txt --batch 4 --shards 1 --steps 3 -j 1 $limits -o searched \
        --force --json -q
    within_plan
done
late_updates() { # KEY FLAG...: of `tune` in $common
    key=$1
    shift
    # shellcheck disable=SC2086
    run 0 finetune $common "$@" -o late --force --json -q
    want=$(sha)
    within_plan
    # shellcheck disable=SC2086
    run 0 finetune $common "$@" --set update.at_once=true -o soon --force --json
    [ "$(sha)" = "$want" ] || fail "$key: update.at_once has other bits"
    within_plan
    says err "$key"
    says err "so parameters are updated at the end of a step"
}
common="small $tune --steps 6"
for set in train.shards=2 train.accumulate=2 optimizer.clip=0.5 grow.by=schedule; do
    late_updates ${set%=*} --tensors 'h.0.attn.*,h.1.*' --set $set
done
late_updates prune.sparsity --what full --set prune.sparsity=0.5
common="net --data images --batch 8 --shards 1 --epochs 2"
late_updates error.pack --tensors 'layer2.*,layer3.*' --set error.pack=all
late_updates bayes.samples --what full --set bayes.samples=2
for scheme in 'kernel(0.5)+quantise(int8)' 'prune(0.5)'; do
    full || [ "$scheme" != 'prune(0.5)' ] || continue
    late_updates shrink.scheme --what full --set "shrink.scheme=$scheme" --set shrink.steps=3
done

# What is frozen made ready once: the same bits, resumed and with an update within the
# step, too, and more memory, which the plan names.
kept() { # OUT FLAG...
    out=$1 && shift
    # shellcheck disable=SC2086
    run 0 finetune $model $common "$@" -o "$out" --force --json -q
}
for model in net small; do
    common="--data images --batch 8 --shards 1 --epochs 2 --tensors layer2.*shift,layer3.*"
    [ $model = net ] || common="$tune --steps 8 --what lora"
    kept k_no --set update.keep=no
    want=$(sha)
    kept k_yes --set update.keep=yes
    [ "$(sha)" = "$want" ] || fail "$model: what is kept changes bits"
    kept k_soon --set update.keep=yes --set update.at_once=true -j 1
    [ "$(sha)" = "$want" ] || fail "$model: what is kept and updates within the step change bits"
    run 0 plan k_no/recipe.ini --json
    cp out plan_no
    run 0 plan k_yes/recipe.ini --json
    python3 - <<'PY' || fail "$model: what is kept in the plan"
import json
no, yes = json.load(open("plan_no")), json.load(open("out"))
kept = [p["bytes"] for p in yes["parts"] if p["name"] == "kept constants"]
assert len(kept) == 1 and kept[0] > 0, yes["parts"]
assert not [p for p in no["parts"] if p["name"] == "kept constants"]
PY
done
model=net
common="--data images --batch 8 --shards 1 --tensors layer3.* --set schedule.name=constant --set update.keep=yes"
kept k_whole --epochs 3
want=$(sha)
kept k_cut --epochs 2
# shellcheck disable=SC2086
run 0 finetune net $common --epochs 3 -o k_cut --resume --json -q
[ "$(sha)" = "$want" ] || fail "what is kept is other after a resume"
kept k_apart --epochs 3 --set update.fold_norm=false
[ "$(sha)" != "$want" ] || fail "norms in convolutions have the bits of others"

# A gradient that is not finite stops the run, and the last checkpoint counts.
run 1 finetune small $tune --what full --set update.at_once=true --lr 1e6 --set schedule.name=constant --set optimizer.name=sgd -o burst
says err "update.at_once"

# Refused, with nothing written.
bad="finetune small $tune --tensors h.1.* -o none"
run 8 $bad --frozen int8 --set train.precision=bf16
says err "update.frozen: int8 weights are widened to float32"
run 2 finetune small $tune --what full --frozen int8 -o none
says err "no weight is frozen"
run 2 $bad --frozen int7
[ ! -e none ] || fail "a refused run left a folder"
finish
