# stint finetune: parts of a model, the same bits however it is run, and what is refused.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python3 - <<'PY'
# Two sets of pictures with nothing in common: bars of one or two directions.
import os, struct, zlib
def chunk(kind, data):
    return (struct.pack(">I", len(data)) + kind + data +
            struct.pack(">I", zlib.crc32(kind + data)))
def write(path, size, seed, kind):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    px = bytearray()
    for y in range(size):
        px.append(0)
        for x in range(size):
            seed = (seed * 1103515245 + 12345) % (1 << 31)
            on = (x // 2 if kind == 0 else y // 2 if kind == 1 else (x + y) // 2) % 2
            px.append(150 * on + (seed >> 16) % 100)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" +
                chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(bytes(px))) + chunk(b"IEND", b""))
for part, n in (("train", 24), ("test", 8)):
    for i in range(n):
        for k, c in enumerate(("across", "down")):
            write(f"two/{part}/{c}/{i}.png", 12, 97 * i + k, k)
        for k, c in enumerate(("across", "down", "slanted")):
            write(f"three/{part}/{c}/{i}.png", 16, 89 * i + k + 5, k)
PY
cat >base.ini <<'INI'
[model]
name = resnet8
[data]
path = two
[train]
epochs = 2
batch = 12
shards = 2
INI
run 0 train base.ini -o base -q
tune="finetune base --data three --batch 12 --shards 2 --epochs 2"

# Other classes and another size: everything fits, and the plan is kept.
run 0 $tune --what bias -o bias --json -q
json_ok
json '[t["tensor"] for t in j["scheme"]][-2:] == ["fc.weight", "fc.bias"]'
json 'j["trained_parameters"] < j["parameters"] and 0.3 < j["step_share"] < 0.8'
json 'all(t["share"] == 1 and t["bytes"] > 0 for t in j["scheme"])'
if grep -q '^STINT_SANITIZE:.*=$' "$STINT_BUILD/CMakeCache.txt"; then # no sanitizer
    json 'j["smallest_bytes"] <= j["planned_peak_bytes"] < j["full_peak_bytes"]'
fi
json 'len(j["start_sha256"]) == 64 and j["step_s"] > 0'

# The key counts as the option does, and a batch is looked at before a search.
run 0 $tune --set update.what=bias --plan --json -q
json '"conv1.weight" not in {t["tensor"] for t in j["scheme"]}'
run 2 $tune --set update.what=bias --what last --plan
says err "give one of the two"
run 2 $tune --memory 200M --batch 3 -o none
says err "cannot be cut into 2 equal shards"

# Nothing but the list has changed, and of a list a new classifier is a part.
run 0 $tune --tensors 'layer3.0.conv2.weight,*.bn1.shift' -o part --json -q
json '{t["tensor"] for t in j["scheme"]} >= {"layer3.0.conv2.weight", "layer1.0.bn1.shift", "fc.weight"}'
python3 - <<'PY' || fail "others than those of the list have changed, or they have not"
import json, os, struct
def tensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    head.pop("__metadata__")
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]
            for k, v in head.items()}
a, b = tensors("base/model.safetensors"), tensors("part/model.safetensors")
c = tensors("part/checkpoints/" + sorted(os.listdir("part/checkpoints"))[-1])
trained = {t["tensor"] for t in json.load(open("out"))["scheme"]}
states = {k for k in a if k.endswith((".mean", ".variance"))}
for k in a:
    assert k not in b or k.startswith("fc.") or (a[k] == b[k]) == (k not in trained), k
held = {k for k in c if not k.startswith("optimizer.")}
assert held == trained | states, (held, trained, states)
assert {k[12:] for k in c if k.startswith("optimizer.0.")} == trained
PY

# The same bits: threads, instruction set, a stop and a resume, stint train of the recipe.
sha() { sed 's/.*"weights_sha256":"\([0-9a-f]*\)".*/\1/' out; }
list="--tensors layer3.*"
run 0 $tune $list -o one -j 1 --json -q && want=$(sha)
STINT_ISA=ref run 0 $tune $list -o two_j -j 2 --json -q && [ "$(sha)" = "$want" ] || fail "-j 2 has other bits"
run 0 train one/recipe.ini -o again --json -q && [ "$(sha)" = "$want" ] || fail "train has other bits"
run 0 $tune $list -o stop --steps 5 --set schedule.name=constant -q
run 0 finetune base --data three --batch 12 --shards 2 $list -o whole --steps 9 --set schedule.name=constant --json -q
want=$(sha)
run 0 finetune base --data three --batch 12 --shards 2 $list -o stop --steps 9 --set schedule.name=constant --resume --json -q
[ "$(sha)" = "$want" ] || fail "a resumed run has other bits"
# A resume takes what it did not train from that very model.
run 0 train base.ini -o other --seed 2 -q
run 2 finetune other --data three --batch 12 --shards 2 $list -o stop --steps 12 --set schedule.name=constant --resume
says err "give that run's model"

# A share of a weight saves a slice of the layer's input, and nothing else changes.
run 0 $tune --tensors 'layer3.0.conv2.weight@1/4' -o share --json -q
json '[(t["tensor"], t["share"]) for t in j["scheme"]] == [("layer3.0.conv2.weight", 0.25), ("fc.weight", 1), ("fc.bias", 1)]'
json 'j["scheme"][0]["bytes"] == 2 * 4 * 9 * 16 * 64'
run 0 plan share/recipe.ini --tensors
says out "take_channels"

# A search: three budgets have three schemes, less budget has no more gain, and no run is
# above its budget, gains included.
run 0 $tune --what sparse --plan --json
json 'len(j["budgets"]) == 5 and len({b["gain"] for b in j["budgets"]}) >= 3'
json 'all(a["gain"] <= b["gain"] for a, b in zip(j["budgets"], j["budgets"][1:]))'
json 'all(b["planned_peak_bytes"] <= b["budget_bytes"] for b in j["budgets"])'
json 'all(t["gain"] >= 0 for t in j["scheme"])'
# (A sanitizer's own memory is in no plan.)
plain() { grep -q '^STINT_SANITIZE:.*=$' "$STINT_BUILD/CMakeCache.txt"; }
search_within_budgets() {
    budget=$(python3 -c 'import json; print(json.load(open("out"))["budgets"][2]["budget_bytes"] + 200000)')
    run 0 $tune --memory "$budget" -o sparse -j 2 --json -q
    json 'j["trained_parameters"] < j["parameters"]'
    json "j['peak_rss_bytes'] is None or j['peak_rss_bytes'] <= $budget"
    want=$(sha)
    grep -q 'What is trained' sparse/report.html || fail "the report does not show what is trained"
    run 0 $tune --memory "$budget" -o sparse1 -j 1 --json -q
    [ "$(sha)" = "$want" ] || fail "-j 1 finds another scheme"
    grep -h '^tensors' sparse/recipe.ini sparse1/recipe.ini | sort -u | wc -l | grep -qx 1 ||
        fail "-j 1 finds another list"
    run 0 train sparse/recipe.ini -o sparse2 --json -q
    [ "$(sha)" = "$want" ] || fail "the recipe of a search has other bits"
    run 2 $tune --memory "$budget" -o sparse -q
    run 0 $tune --memory "$budget" -o sparse --resume --json -q
    [ "$(sha)" = "$want" ] || fail "a search resumed has other bits"
    run 0 $tune --memory "$budget" --gains sparse/gains.json -o given --json -q
    [ "$(sha)" = "$want" ] || fail "gains that are given choose another scheme"
    # Other gains choose other channels, which a resume does not take for the same.
    share="train share/recipe.ini -o guard --set schedule.name=constant -q"
    sed 's/"channels":\[[^],]*,/"channels":[9,/g' sparse/gains.json >others.json
    run 0 $share --steps 3 --set update.gains=sparse/gains.json
    run 0 $share --steps 4 --set update.gains=sparse/gains.json --resume
    run 2 $share --steps 5 --set update.gains=others.json --resume
    says err "update.gains"
    run 4 finetune other --data three --batch 12 --shards 2 --memory "$budget" --gains sparse/gains.json -o none
    run 2 $tune --what bias --gains sparse/gains.json -o none
    head -c 300 sparse/gains.json >short.json
    run 4 train sparse/recipe.ini -o none --set update.gains=short.json
    run 4 train sparse/recipe.ini -o none --start other --set update.gains=sparse/gains.json
    says err "is of weights of SHA-256"
}
! plain || search_within_budgets
run 0 $tune --step-time 0.5x -o timed --json -q
json 'j["step_share"] <= 0.5'

# What the help says is what is done.
run 0 finetune base --data three --what last -o usual -q
run 0 finetune -h
for row in epochs:3 batch:32 lr:0.02; do
    says out "(default ${row#*:})"
    grep -q "^${row%:*} = ${row#*:}$" usual/recipe.ini || fail "another default of $row"
done
says out "runs/<network>-tuned"

# A batch that fills the memory is one number for plan, answer and training. (A sanitizer
# holds back what batches that are tried gave back.)
if ! sanitized; then
    auto="finetune base --data three --shards 2 --epochs 2 --what bias --batch auto --memory 60M"
    run 0 $auto -o auto --json -q
    want=$(sha)
    json 'j["batch"] > 0 and j["step_share"] < 1'
    run 0 $auto -o auto --resume --json -q
    [ "$(sha)" = "$want" ] || fail "a batch that was found is another after a resume"
    run 0 train auto/recipe.ini -o auto_again --json -q
    [ "$(sha)" = "$want" ] || fail "the recipe of a batch that was found has other bits"
    run 0 $auto -o none --plan
fi
run 2 $tune --memory 60M --batch auto -o none
says err "a search shares out"

# A search that was stopped has nothing to resume, and is begun again.
run 0 $tune --step-time 0.5x -o timed2 --resume --json -q
json 'j["step_share"] <= 0.5'
run 2 $tune --memory 60M --set bayes.samples=2 -o none --plan
says err "bayes.samples"

# Refused, with nothing written.
run 0 $tune --what last --plan
says out "parameters trained, in 2 tensors"
run 2 $tune --tensors 'layer3.0.conv2.wieght' -o none
says err "did you mean 'layer3.0.conv2.weight'?"
run 2 $tune --what bias --tensors fc.bias -o none
run 2 $tune --what tensors -o none
run 2 $tune --what bias --step-time 0.5x -o none
run 2 $tune --step-time soon -o none
run 3 $tune --step-time 0.1x -o none
says err "the classifier alone"
run 2 $tune --tensors 'layer3.0.conv2.weight@1/3' -o none
says err "1/8, 1/4, 1/2 or 1 was wanted"
run 2 $tune --what some -o none
run 2 $tune --what bias --rank 4 -o none
says err "update.what = lora alone"
run 2 finetune base -o none
says err "--data"
run 2 $tune -o base
says err "written over by its own answer"
run 3 $tune --what last --memory 5M -o none
run 3 $tune --memory 5M -o none
says err "it would train 2 tensors, of which the last is fc.bias"
run 2 $tune --what last --gains measured -o none
run 2 $tune --frozen int8 -o none
says err "no weight is frozen"
head -c 400 base/model.safetensors >broken.safetensors
run 4 finetune broken.safetensors --data three -o none
printf 'no images, but words\n%.0s' 1 2 3 4 5 6 7 8 9 >words.txt
run 4 finetune base --data words.txt -o none
cat >text.ini <<'INI'
[model]
name = gpt
depth = 1
width = 16
heads = 2
context = 16
[data]
path = words.txt
tokenizer = byte
[train]
steps = 3
batch = 2
shards = 1
INI
run 0 train text.ini -o text -q
run 4 finetune text --data three --what bias -o none
run 4 finetune text --data three/train/down/1.png --what bias --batch 2 --shards 1 --set data.tokenizer=char -o none
[ ! -e none ] || fail "a refused run left a folder"
run 2 train base.ini -o none --set update.what=bias
says err "there is no model that the others come from"
run 2 train base.ini -o none --start base --set update.what=bias --set prune.sparsity=0.5

# A search in bfloat16 has layers to choose from, too.
run 0 finetune text --data words.txt --step-time 0.8x --set train.precision=bf16 --steps 2 --batch 2 --shards 1 -o text16 --json -q
json 'j["step_share"] <= 0.8 and any(t["tensor"].startswith("h.0.") and t["tensor"].endswith(".weight") for t in j["scheme"])'

# Shorter windows than the context, which the model keeps.
run 0 finetune text --data words.txt --window 6 --steps 2 --batch 2 --shards 1 -o short -q
run 0 info short
says out "context 16"
run 4 finetune text --data words.txt --window 17 --steps 2 -o none
run 2 $tune --window 6 -o none

# Adapters: merged in the model file, as PEFT has them beside it, the same bits again.
# For Llama the three parts of a packed matrix share A.
cat >llama.ini <<'INI'
[model]
name = llama
depth = 2
width = 16
heads = 4
kv_heads = 2
context = 8
[data]
path = words.txt
tokenizer = byte
[train]
steps = 3
batch = 2
shards = 1
INI
run 0 train llama.ini -o llama -q
for model in text llama; do
    lora="finetune $model --data words.txt --what lora --rank 2 --alpha 6 --lr 0.05 --batch 2 --shards 1 --set schedule.name=constant --set update.attention=false"
    run 0 $lora --steps 4 -o "lora_$model" --json -q
    want=$(sha)
    run 0 $lora --steps 2 -o "lora_half_$model" -q
    run 0 $lora --steps 4 -o "lora_half_$model" --resume --json -q
    [ "$(sha)" = "$want" ] || fail "$model: adapters resumed have other bits"
    run 0 train "lora_$model/recipe.ini" -j 1 -o "lora_again_$model" --json -q
    [ "$(sha)" = "$want" ] || fail "$model: adapters trained again have other bits"
    run 0 eval "lora_$model" --data words.txt --json
    /usr/bin/python3 - "$model" <<'PY' || fail "$model: the files of an adapter"
import json, struct, sys
try:
    import numpy as np
except ImportError:
    sys.exit(0)
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    head.pop("__metadata__", None)
    out = {}
    for k, v in head.items():
        a, b = v["data_offsets"]
        out[k] = np.frombuffer(data[8 + n + a:8 + n + b], np.float32).reshape(v["shape"]).astype(float)
    return out
model = sys.argv[1]
base, tuned = load(model + "/model.safetensors"), load(f"lora_{model}/model.safetensors")
peft = load(f"lora_{model}/adapter_model.safetensors")
config = json.load(open(f"lora_{model}/adapter_config.json"))
assert config["r"] == 2 and config["lora_alpha"] == 6 and config["peft_type"] == "LORA"
assert config["fan_in_fan_out"] == (model == "text")
assert set(base) == set(tuned)
def delta(module):
    name = "base_model.model." + module
    a, b = peft.pop(name + ".lora_A.weight"), peft.pop(name + ".lora_B.weight")
    return config["lora_alpha"] / config["r"] * (b @ a).T
names = {"attn.c_proj": "self_attn.o_proj", "mlp.gate": "mlp.gate_proj", "mlp.up": "mlp.up_proj", "mlp.down": "mlp.down_proj"}
changed = 0
for k in base:
    scope = k[:-7]
    if not k.startswith("h.") or not k.endswith(".weight"):
        assert (base[k] == tuned[k]).all(), k
        continue
    layer, rest = scope.split(".")[1], scope.split(".", 2)[2]
    if model == "text":
        d = delta("transformer." + scope)
    elif rest == "attn.c_attn":
        d = np.concatenate([delta(f"model.layers.{layer}.self_attn.{p}_proj") for p in "qkv"], 1)
    else:
        d = delta(f"model.layers.{layer}.{names[rest]}")
    assert abs(base[k] + d - tuned[k]).max() < 1e-6 and abs(d).max() > 1e-4, k
    changed += 1
assert changed >= 4 and not peft, peft.keys()
for module in config["target_modules"]:
    assert module.count(".") == 1
PY
done
# An adapter on its model is the merged model, to the bit, in either layout.
for model in text llama; do
    run 0 eval "lora_$model" --data words.txt --json
    want=$(sed 's/.*"loss":\([0-9.]*\).*/\1/' out)
    run 0 eval "$model" --adapter "lora_$model" --data words.txt --json
    [ "$(sed 's/.*"loss":\([0-9.]*\).*/\1/' out)" = "$want" ] || fail "$model: eval --adapter is another model"
    json 'j["weights_sha256"] is None' # (the file's are not those evaluated)
    ids="--prompt-ids 110,111,32 --tokens 6 --seed 4 --temperature 2 --json -q"
    run 0 run "lora_$model" $ids
    want=$(sed 's/.*"ids":\(\[[0-9,]*\]\).*/\1/' out)
    run 0 run "$model" --adapter "lora_$model" $ids
    [ "$(sed 's/.*"ids":\(\[[0-9,]*\]\).*/\1/' out)" = "$want" ] || fail "$model: run --adapter is another model"
    run 0 export hf "$model" --out "hf_$model"
    run 0 run "hf_$model" --adapter "lora_$model" $ids
    [ "$(sed 's/.*"ids":\(\[[0-9,]*\]\).*/\1/' out)" = "$want" ] || fail "$model: the folder with an adapter is another model"
    run 0 run "$model" $ids
    [ "$(sed 's/.*"ids":\(\[[0-9,]*\]\).*/\1/' out)" != "$want" ] || fail "$model: the adapter changes nothing"
done
run 4 eval text --adapter lora_llama --data words.txt
says err "give the adapter of this model"
run 4 eval base --adapter lora_text --data two
run 2 run base two/test/down/1.png --adapter lora_text
run 5 eval text --adapter nowhere --data words.txt
bad_adapter() { # STATUS SED-PROGRAM
    mkdir -p bad && cp lora_text/adapter_model.safetensors bad/
    sed "$2" lora_text/adapter_config.json >bad/adapter_config.json
    run "$1" eval text --adapter bad --data words.txt
}
bad_adapter 4 '5,$d'
bad_adapter 4 's/"r": 2/"r": 3/'
bad_adapter 4 's/"r": 2/"r": -2/'
bad_adapter 8 's/LORA/IA3/'
bad_adapter 8 's/"inference_mode"/"use_dora"/'
head -c 900 lora_text/adapter_model.safetensors >bad/adapter_model.safetensors
cp lora_text/adapter_config.json bad/
run 4 eval text --adapter bad --data words.txt
run 8 $tune --what lora -o none
run 2 finetune text --data words.txt --what lora --rank 0 -o none

# A folder in Hugging Face's layout.
run 0 export hf text --out hf
run 0 finetune hf --data words.txt --set data.tokenizer=byte --what last --steps 2 --batch 2 --shards 1 -o from_hf --json -q
json 'j["trained_parameters"] == 32 and len(j["start_sha256"]) == 64'
[ -s from_hf/start.safetensors ] || fail "no start.safetensors"
# What is refused, or only planned, changes no beginning that lies there, and leaves none.
cp from_hf/start.safetensors begun
other="finetune hf_llama --data words.txt --set data.tokenizer=byte --steps 2 --batch 2 --shards 1"
run 2 $other --what last -o from_hf
run 0 $other --what last -o from_hf --plan
run 2 $other --tensors nowhere -o from_hf --force
cmp -s begun from_hf/start.safetensors || fail "a refused run changed what another began with"
[ "$(ls from_hf | grep -c start)" = 1 ] || fail "a beginning was left: $(ls from_hf)"
run 0 $other --what last -o none --plan
run 2 $other --tensors nowhere -o none
[ ! -e none ] || fail "a plan or a refused run left a folder"
run 0 $other --what last -o from_hf --force -q
! cmp -s begun from_hf/start.safetensors || fail "--force kept the other's beginning"
run 0 train from_hf/recipe.ini -o from_hf_again -q
finish
