# A model of text that was trained with rounded weights is so wherever it is read: what is
# exported is on the grid, and imported again it has the loss that it had.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
words "the cat sat on a mat and saw" 1500 >text.txt
for model in gpt llama; do
    run 0 train --data text.txt --out $model --set model.name=$model --set model.width=32 \
        --set model.depth=2 --set model.heads=4 --set model.context=16 --set data.tokenizer=char --set quantise.bits=3 \
        --set train.steps=40 --set optimizer.lr=0.01 --batch 16 --quiet --json
    run 0 eval $model --data text.txt --json
    loss=$(python3 -c 'import json; print(json.load(open("out"))["loss"])')
    run 0 run $model --prompt 'the cat' --tokens 40 --temperature 0 --json
    python3 -c 'import json; print(json.load(open("out"))["text"])' >$model.said
    run 0 export hf $model -o $model-hf
    python3 - $model-hf <<'PY' || fail "$model: what is exported is not rounded"
import array, json, struct, sys
data = open(sys.argv[1] + "/model.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header, matrices = json.loads(data[8:8 + n]), 0
for name, e in header.items():
    if name == "__metadata__" or len(e["shape"]) != 2:
        continue
    begin, end = e["data_offsets"]
    x, (rows, columns) = array.array("f", data[8 + n + begin:8 + n + end]), e["shape"]
    table = any(word in name for word in ("wte", "wpe", "embed", "lm_head"))
    if "proj" in name and "c_" not in name:  # Linear of PyTorch: a row an output channel
        channels = [x[r * columns:(r + 1) * columns] for r in range(rows)]
    else:
        channels = [x[c::columns] for c in range(columns)]
    levels = max(len(set(channel)) for channel in channels)
    assert (levels <= 7) != table, (name, levels)
    matrices += not table
assert matrices >= 8, matrices
PY
    run 0 import hf $model-hf -o $model-back.safetensors
    run 0 eval $model-back.safetensors --data text.txt --json
    python3 -c 'import json, sys
sys.exit(abs(json.load(open("out"))["loss"] - float(sys.argv[1])) > 1e-6)' "$loss" ||
        fail "$model: exported and imported: another loss than $loss"
    run 0 run $model-back.safetensors --prompt 'the cat' --tokens 40 --temperature 0 --json
    python3 -c 'import json; print(json.load(open("out"))["text"])' | cmp - $model.said ||
        fail "$model: draws another text than its rounded weights"
done
finish
