# Tokenisers that travel: from a run to the next, to and from Hugging Face's layout; special
# tokens; what is said about odd characters; memory of learning.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
words "the cat sat on a mat and was seen by the rat" 3000 >a.txt
words "a rat sat on the cat and saw the mat" 2000 >b.txt
cat >a.ini <<'INI'
[model]
name = gpt
depth = 1
width = 16
heads = 2
context = 8

[data]
tokenizer = char

[train]
steps = 2
batch = 4
INI
sed '/tokenizer/d' a.ini >plain.ini

# The start model's tokeniser is taken; another one is refused and both are named.
run 0 train a.ini --data a.txt --out first
run 0 info first
characters=$(sed -n 's/^tokeniser \(char, [0-9]* tokens\).*/\1/p' out)
[ -n "$characters" ] || fail "no character tokeniser in: $(cat out)"
run 0 train a.ini --data b.txt --start first --out second
says err "tokens are those of first: $characters"
run 0 info second
says out "tokeniser $characters"
run 0 train plain.ini --data b.txt --start first --out third
run 0 info third
says out "tokeniser $characters"
run 0 data tokens a.txt --vocabulary 270 -o pairs.json
run 4 train a.ini --data b.txt --start first --out no --set data.tokenizer_path=pairs.json
says err "train.start: the tokeniser of first ($characters"
says err "pairs.json (bpe, 270 tokens"
run 4 train a.ini --data b.txt --start first --out no --set data.tokenizer=byte
says err "but data.tokenizer is byte"
# So is another network, in words: by plan, too.
for command in plan train; do
    run 4 $command a.ini --data b.txt --start first --out no --set model.width=32
    says err "first/model.safetensors holds the network gpt of "
    says err ", depth 1, width 16, 2 heads ("
    says err ", depth 1, width 32, 2 heads ("
    says err "give the same model.name, vocabulary, depth, width and heads"
done
[ ! -e no ] || fail "a refused run left a folder"

# A run's tokeniser for another run, and as a file.
run 0 train plain.ini --data b.txt --out fourth --set data.tokenizer_path=first
run 0 info fourth
says out "tokeniser $characters"
run 0 data tokens a.txt --from first -o chars.json --ids one.npy
run 0 data tokens a.txt --from chars.json --ids two.npy
cmp -s one.npy two.npy || fail "a run's tokeniser differs from its file"
run 0 data tokens a.txt --from first/model.safetensors

# To Hugging Face's layout: no end-of-text where there is none.
run 0 train plain.ini --data a.txt --out pairs --set data.tokenizer_path=pairs.json
run 0 export hf pairs --out hf
python3 - <<'PY' || fail "tokenizer_config.json"
import json
c = json.load(open("hf/tokenizer_config.json"))
assert all(c[k] is None for k in ("eos_token", "bos_token", "unk_token")), c
assert len(json.load(open("hf/vocab.json"))) == json.load(open("hf/config.json"))["vocab_size"]
PY
run 4 train plain.ini --data a.txt --start hf --out no
says err "stint import hf hf --out FILE.safetensors"
run 0 import hf hf --out hf.safetensors
run 0 train plain.ini --data a.txt --start hf.safetensors --out fifth
says err "tokens are those of hf.safetensors: bpe, 270 tokens"

# Characters as tokenizer.json, there and back.
run 0 export hf first --out chars
says err "tokenizer.json"
run 0 import hf chars --out chars.safetensors
run 0 info chars.safetensors
says out "tokeniser $characters"
run 0 data tokens a.txt --from chars --ids two.npy
cmp -s one.npy two.npy || fail "characters differ after the way there and back"
sed 's/"vocab":{/"vocab":{"Q":99,/' chars/tokenizer.json >chars/other.json
mv chars/other.json chars/tokenizer.json
run 4 data tokens a.txt --from chars
says err "no character has the identity"

# Added tokens are one token each, of those that begin alike the longest, in every form of
# the files, and across the pieces that a text is encoded in.
python3 - <<'PY'
import json, os
vocab = json.load(open("hf/vocab.json"))
merges = open("hf/merges.txt").read()
base = len(vocab)
added = {"<|endoftext|>": base, "<persona>": base + 1, "<p": base + 2, "gr\u00fcn ich": base + 3}
entries = [{"id": i, "content": c, "lstrip": False, "rstrip": False, "single_word": False,
            "normalized": False, "special": True} for c, i in added.items()]
def folder(name, **files):
    os.makedirs(name)
    for file, data in files.items():
        open(f"{name}/{file.replace('__', '.')}", "w").write(
            data if isinstance(data, str) else json.dumps(data))
whole = {"added_tokens": entries, "normalizer": None,
         "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
         "model": {"type": "BPE", "vocab": vocab,
                   "merges": merges.split("\n")[1:-1]}}
folder("whole", tokenizer__json=whole)
folder("map", vocab__json=vocab, merges__txt=merges, added_tokens__json=added)
folder("decoder", vocab__json=vocab, merges__txt=merges, tokenizer_config__json={
    "added_tokens_decoder": {str(e["id"]): e for e in entries}})
folder("inside", vocab__json={**vocab, **added}, merges__txt=merges, tokenizer__json=whole)
entries[1]["id"] = base
folder("twice", tokenizer__json=whole)
entries[1]["id"] = base + 1
entries.append({"id": 5, "content": "a"})
folder("taken", tokenizer__json=whole)
text = "sea<persona> boat<|endoftext|> tide<p>gr\u00fcn ich<personal"
open("special.txt", "w").write(text)
open("long.txt", "w").write((text + "<persona> mat ") * 40000)
PY
for from in whole map decoder inside; do
    run 0 data tokens special.txt --from $from --ids $from.npy -o $from.json --gpt2 $from-again
    /usr/bin/python3 - $from <<'PY' || fail "special tokens of $from"
import json, sys
import numpy as np
ids = np.load(sys.argv[1] + ".npy").tolist()
found = [i for i in ids if i >= 270]
assert found == [271, 270, 272, 273, 272], found
assert len(ids) < 30, len(ids)
PY
    for again in $from.json $from-again; do
        run 0 data tokens special.txt --from $again --ids again.npy
        cmp -s $from.npy again.npy || fail "$again encodes differently"
    done
done
run 0 data tokens long.txt --from whole --ids long.npy
rm -rf cache
run 0 train plain.ini --data long.txt --out sixth --set data.tokenizer_path=whole
/usr/bin/python3 - <<'PY' || fail "tokens of a text in pieces differ from those of the whole"
import glob, struct
import numpy as np
data = open(glob.glob("cache/stint/tokens/*.tokens")[0], "rb").read()
tokens = np.frombuffer(data[96 + struct.unpack("<Q", data[88:96])[0]:-64], "<u2")
assert np.array_equal(tokens, np.load("long.npy"))
PY
run 4 data tokens special.txt --from twice
says err "wanted identities 0 to"
run 4 data tokens special.txt --from taken
says err "added token 'a' has the identity 5"

# Odd characters, prompts of any bytes.
printf '\357\273\277the cat\r\nsat\r\n' >odd.txt
run 0 data tokens odd.txt --tokenizer char
says err "carriage returns"
says err "byte order mark"
run 0 run first --prompt $'the\ncat' --tokens 3 --seed 1
cp out prompt.out
printf 'the\ncat' >prompt
run 0 run first --prompt-file prompt --tokens 3 --seed 1
cmp -s out prompt.out || fail "--prompt and --prompt-file differ"

# One long word under a budget, under a limit of the system, and interrupted.
python3 -c '
import random
r = random.Random(1)
open("dna.txt", "w").write("".join(r.choice("ACGT") for _ in range(600)))
open("word.txt", "w").write("".join(r.choice("ACGT") for _ in range(4000000)))'
# (Sanitizers take terabytes of addresses, and memory of their own, so that another
# refusal may come first.)
sanitized=$(grep -qE '__(asan|msan|tsan)_init' "$STINT" && echo yes)
[ "$sanitized" ] || ulimit -v 4000000
run 0 data tokens dna.txt --vocabulary 400
run 3 plan plain.ini --data word.txt --set model.vocabulary=600 --memory 30M
[ "$sanitized" ] || says err "learning byte pairs needs"
# What learning takes, a multiple of the text's 4 MB, is in the plan and kept to.
if [ ! "$sanitized" ]; then
    rm -rf cache
    run 0 train plain.ini --data word.txt --set model.vocabulary=600 --memory 110M --out learnt --json -q
    json "8 * 4e6 < j['peak_rss_bytes'] <= j['planned_peak_bytes'] <= 110 * 2**20"
fi
"$STINT" data tokens word.txt --vocabulary 20000 >out 2>err &
sleep 0.5
kill -TERM $!
wait $!
[ $? -eq 143 ] || fail "SIGTERM while learning: $(cat err)"
says err "stopped while"

finish
