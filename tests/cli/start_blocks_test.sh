# A text model that begins with some blocks of a deeper or a shallower one.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
words "the cat sat on a mat and was seen by the rat" 3000 >a.txt
cat >a.ini <<'INI'
[model]
name = gpt
depth = 4
width = 16
heads = 2
context = 8
[data]
tokenizer = char
[train]
steps = 2
batch = 4
INI
sed 's/gpt/llama/' a.ini >llama.ini
run 0 train a.ini --data a.txt --out deep
run 0 train llama.ini --data a.txt --out deep-llama

# After a step of no rate the weights are those of the start, under their new numbers; the
# file is read without Stint.
begins() { # MODEL START BLOCKS
    python3 - "$@" <<'PY' || fail "$1 does not begin with blocks $3 of $2"
import json, struct, sys
def read(path):
    raw = open(path + "/model.safetensors", "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + n])
    head.pop("__metadata__")
    return {name: struct.unpack("<%df" % ((t["data_offsets"][1] - t["data_offsets"][0]) // 4),
                                raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]])
            for name, t in head.items()}
new, old = read(sys.argv[1]), read(sys.argv[2])
blocks = sys.argv[3].split(",")
seen = set()
for name, values in new.items():
    there = name
    if name.startswith("h."):
        _, block, rest = name.split(".", 2)
        seen.add(int(block))
        there = "h.%s.%s" % (blocks[int(block)], rest)
    assert all(abs(a - b) < 1e-20 for a, b in zip(values, old[there], strict=True)), name
assert seen == set(range(len(blocks))), seen
different = [n for n in old if n.startswith("h.0.")]
assert any(old[n] != old["h.1" + n[3:]] for n in different), "all blocks are alike"
PY
}
still="--steps 1 --set optimizer.lr=1e-30"
run 0 train a.ini --data a.txt --start deep --out one --set model.depth=2 \
    --set train.start_blocks=3,1 $still
says err "train.start: blocks 3, 1 of the 4 of deep/model.safetensors are taken"
begins one deep 3,1
run 0 train a.ini --data a.txt --start deep --out even --set model.depth=3 \
    --set train.start_blocks=even $still
says err "blocks 0, 1, 3 of the 4 of"
begins even deep 0,1,3
run 0 train a.ini --data a.txt --start deep --out first --set model.depth=1 \
    --set train.start_blocks=even $still
begins first deep 0
run 0 train llama.ini --data a.txt --start deep-llama --out more --set model.depth=6 \
    --set "train.start_blocks=0, 0,1,2 ,3,3" $still
begins more deep-llama 0,0,1,2,3,3
run 0 plan a.ini --data a.txt --start deep --set model.depth=2 --set train.start_blocks=even
says err "blocks 0, 3 of the 4 of"

# With a reference, adapters, frozen bytes and resumption: one run and one in two are the same.
for more in "--reference deep --set loss.pairing=0 --set loss.soft=0.5" \
    "--set update.what=lora --set update.rank=2" \
    "--set update.what=bias --set update.frozen=int8"; do
    rm -rf whole half
    # shellcheck disable=SC2086
    set -- a.ini --data a.txt --start deep --set model.depth=2 --set train.start_blocks=2,0 $more
    run 0 train "$@" --out whole --steps 4 --json
    mv out whole.json
    run 0 train "$@" --out half --steps 2
    run 0 train "$@" --out half --steps 4 --resume --json
    same=$(sed -n 's/.*\("weights_sha256": *"[0-9a-f]*"\).*/\1/p' whole.json)
    [ -n "$same" ] || fail "no hash in $(cat whole.json)"
    says out "$same"
done

# What is no such list, and where there are no such blocks.
bad() { # BLOCKS WORDS
    run 2 train a.ini --data a.txt --start deep --out no --set model.depth=2 \
        --set "train.start_blocks=$1"
    says err "train.start_blocks: $2"
}
bad 0,4 "there is no block 4 in deep/model.safetensors, which has 4, 0 to 3"
bad 0,-1 "there is no block -1 in"
bad 0 "1 block for the 2 of model.depth"
bad 0,1,2 "3 blocks for the 2 of model.depth"
bad 0,x "'0,x' at 'x': write numbers of blocks"
bad 0,99999999999999999999 "there is no block"
bad "0 1" "'0 1' at '1': a comma belongs between"
bad odd "'odd' at 'odd'"
bad 0,1, "'0,1,' at ',': a comma belongs between"
run 2 train a.ini --data a.txt --out no --set train.start_blocks=even
says err "train.start_blocks: are blocks of a model to begin from"
run 4 train a.ini --data a.txt --start deep --out no --set model.depth=2
says err "(train.start_blocks takes blocks of a model of another depth)"
run 4 train a.ini --data a.txt --start deep --out no --set model.depth=2 \
    --set model.width=32 --set train.start_blocks=even
says err "holds the network gpt of"
run 4 train llama.ini --data a.txt --start deep --out no --set train.start_blocks=even
python3 "$STINT_SOURCE/tests/cli/cli_data.py" images
run 2 train --data images --out no --set train.start_blocks=even --start deep
says err "train.start_blocks (some of the blocks of the model to begin from): is not for"
[ ! -e no ] || fail "a refused run left a folder"
finish
