# Pruning within a training: shares of layers for a ratio, a size or a latency, which
# stay with the run; the same bits however it is run; zeros that stay zeros.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
run 0 data glyphs --out g --train 720 --test 180 --min-faces 10 -q
cat >conv.ini <<'INI'
[model]
name = smallcnn
[data]
path = g
size = 14
[train]
epochs = 3
batch = 48
shards = 4
[optimizer]
name = sgd
lr = 0.05
momentum = 0.9
nesterov = true
[shrink]
scheme = pattern(4)+kernel(auto)
importance_batches = 8
INI
sha() { python3 -c 'import json; print(json.load(open("out"))["weights_sha256"])'; }

# A size: never above, most of it used; the shares stand in recipe.ini, by which a repeat
# comes to the same weights; so does a run that was killed on its way.
every="--set run.checkpoint_every=5 --set run.keep=20"
run 0 train conv.ini -o size --set shrink.size=20K $every --json
one=$(sha)
grep -q "^scheme = pattern(4)+kernel(0\.[0-9/.]*)$" size/recipe.ini ||
    fail "no shares in recipe.ini: $(grep "^scheme" size/recipe.ini)"
run 0 export compact size --out size.safetensors
bytes=$(stat -c %s size.safetensors)
[ "$bytes" -le 20480 ] && [ "$bytes" -ge 18432 ] || fail "$bytes bytes, where 20480 are allowed"
run 0 train size/recipe.ini -o again --json
[ "$(sha)" = "$one" ] || fail "the shares of recipe.ini give other weights"
for recipe in conv.ini size/recipe.ini; do
    # From before the choice (step 15 of 45) and after it.
    for step in 10 20; do
        rm -rf part && cp -r size part && rm part/model.safetensors
        ls part/checkpoints | awk -v s=$step -F'[-.]' '$2 + 0 > s' | sed 's,^,part/checkpoints/,' | xargs rm -f
        [ "$(ls part/checkpoints | wc -l)" = $((step / 5)) ] || fail "checkpoints: $(ls part/checkpoints)"
        run 0 train $recipe -o part --set shrink.size=20K $every --resume --json
        [ "$(sha)" = "$one" ] || fail "$recipe after step $step goes on to other weights"
    done
done
# A latency that every share keeps costs nothing; its shares are those of the run, too.
run 0 train conv.ini -o slow --set shrink.latency=1min --epochs 0 --steps 12 -q
grep -q "kernel(0/0)" slow/recipe.ini || fail "shares for a minute: $(grep "^scheme" slow/recipe.ini)"

# What cannot be had is said before the first step.
for limit in ratio=500 size=2K latency=1ns; do
    run 3 train conv.ini -o bad --set shrink.$limit
    says err "out of reach"
    says err "shrink.${limit%%=*}"
    [ ! -e bad/log.jsonl ] || fail "$limit: it began to train"
    rm -rf bad
done
run 2 train conv.ini -o bad
says err "one of them"
run 2 train conv.ini -o bad --set shrink.ratio=2 --set shrink.size=20K
says err "one of them"
run 2 train conv.ini -o bad --set shrink.latency=fast
says err "neither a time"
run 2 train conv.ini -o bad --set shrink.latency=0ms
says err "nothing is that fast"
run 2 train conv.ini -o bad --set shrink.ratio=2 --set grow.by=schedule
says err "grow.by"

# Micro-batches that are summed one after another count as shards do.
run 0 train conv.ini -o sum --set shrink.ratio=2 --epochs 0 --steps 14 --json
one=$(sha)
run 0 train conv.ini -o sum2 --set shrink.ratio=2 --epochs 0 --steps 14 --shards 2 --set train.accumulate=2 --json
[ "$(sha)" = "$one" ] || fail "accumulating changes the bits"

# What was made zero is zero at the end of each epoch, of the steps before the last, too.
run 0 train conv.ini -o zero --set shrink.scheme="pattern(4)+kernel(0.5)" --set shrink.select=0.2 \
    --set shrink.hard=0.4 --set run.checkpoint_every=1 --set run.keep=100 -q
python3 - <<'PY' || fail "masked weights"
import glob, json, struct
def tensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]
            for k, v in head.items() if k != "__metadata__"}
files = sorted(glob.glob("zero/checkpoints/*"))
checked = 0
for f in files:
    if int(f[-20:-12]) < 18:
        continue
    t = tensors(f)
    for name in t:
        if name.startswith("mask."):
            x = struct.unpack("<%dI" % (len(t[name[5:]]) // 4), t[name[5:]])
            bits = t[name]
            assert all(v == 0 for i, v in enumerate(x) if not bits[i // 8] >> i % 8 & 1), (f, name)
            checked += sum(not bits[i // 8] >> i % 8 & 1 for i in range(len(x)))
assert len(files) > 20 and checked > 1000, (len(files), checked)
PY

# One hash on 1 to 3 threads, any lanes, ISA and memory, killed, on 2 and 3 processes.
sed '/^\[shrink/,$d' conv.ini >plain.ini
run 0 train plain.ini -o base --epochs 1 -q
run 0 trust bits conv.ini -o bits --set shrink.ratio=2 --set shrink.importance_batches=2 --steps 8
says out "1 value in" # 15 runs with AVX-512, 14 without
run 0 trust bits plain.ini -o bits2 --start base --scheme "prune(0.7)+quantise(int8)" \
    --set shrink.steps=3 --set shrink.first=4 --set shrink.batches=2
says out "1 value in" # 15 runs with AVX-512, 14 without
says out "2 processes"
finish
