# Training on text: it learns and says so in nats a token; the model file knows its
# tokeniser and evaluates to the loss that training named.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache

words "the cat sat on a mat and saw some red hats" 4000 >text.txt

cat >gpt.ini <<'INI'
[model]
name = gpt
depth = 1
width = 32
heads = 2
context = 32
dropout = 0.1
[data]
path = text.txt
tokenizer = char
[train]
steps = 60
batch = 16
[optimizer]
name = adamw
lr = 3e-3
INI

# Timing steps on random tokens wants no text.
run 0 bench step gpt.ini --runs 1 --json
json 'j["tokens_per_s"] > 0 and "images_per_s" not in j and len(j["operators"]) > 5'
run 0 bench step gpt.ini --runs 1 --data ''
says out "tokens/s"
says err "no text is given: a vocabulary of 50,257 tokens"

run 2 bench step gpt.ini --runs 1 --image-size 20
says err "are of images; text has none of them"

run 0 train gpt.ini --out run --json
json 'j["test_accuracy"] is None and 0.2 < j["test_loss"] < 2.2'
json 'abs(j["bits_per_byte"] - j["test_loss"] / 0.6931471805599453) < 1e-6'
json 'abs(j["tokens_per_s"] / j["images_per_s"] - 32) < 1e-6'
says err "tokens/s"
loss=$(python3 -c 'import json; print(json.load(open("out"))["test_loss"])')
run 0 info run --json
json 'j["context"] == 32 and j["tokenizer"] == "char" and j["vocabulary"] == j["tokens"]'
run 0 eval run --json -j 1
bytes=$(wc -c <text.txt)
json "abs(j['loss'] - $loss) < 1e-6 and j['tokens'] == $bytes // 10 - 1"
run 0 eval run --data text.txt --split all --json
json "j['tokens'] == $bytes - 1"
# In bfloat16 it learns as well, and threads and instruction sets show in no bit.
run 0 train gpt.ini --out half --precision bf16 --json
json "abs(j['test_loss'] - $loss) < 0.1"
half=$(python3 -c 'import json; print(json.load(open("out"))["weights_sha256"])')
STINT_ISA=avx2 run 0 train gpt.ini --out half2 --precision bf16 --json -j 1
json "j['weights_sha256'] == '$half'"
run 0 bench step gpt.ini --runs 1 --precision bf16 --json
json 'any(o["operator"] == "linear_cross_entropy_bf16" for o in j["operators"])'
# A text is encoded in pieces of a mebibyte: the tokens are those of the whole.
python3 - <<'PY'
import random
random.seed(5)
words = ["the", " cat's", "  ", "\n\n", " été", " 12", "漢字", "\u3000", "\u00a0 ", "...", " we'll", "\t"]
with open("big.txt", "w", newline="") as f:
    f.write("".join(random.choice(words) for _ in range(450000)))
PY
[ "$(wc -c <big.txt)" -gt 1300000 ] || fail "no big text"
for kind in byte char bpe; do
    rm -rf cache
    run 0 data tokens big.txt --tokenizer $kind --vocabulary 280 -o t.json --ids ids.npy
    run 0 plan gpt.ini --data big.txt --set data.tokenizer_path=t.json
    /usr/bin/python3 - cache/stint/tokens/*.tokens <<'PY' || fail "$kind: other tokens in pieces"
import struct, sys
import numpy as np
data = open(sys.argv[1], "rb").read()
first = 96 + struct.unpack("<Q", data[88:96])[0]
tokens = np.frombuffer(data[first:-64], "<u2")
assert np.array_equal(tokens, np.load("ids.npy"))
PY
done
finish
