# stint data tokens beside a plain Python model of byte-pair encoding; refusals.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python=/usr/bin/python3
$python -c 'import numpy' || { fail "no NumPy"; finish; }

cat >model.py <<'PY'
import json
import random
import unicodedata

SPACE = set(map(chr, [9, 10, 11, 12, 13, 32, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F,
                      0x205F, 0x3000])) | {chr(c) for c in range(0x2000, 0x200B)}

def kind(c):
    if c in SPACE:
        return "s"
    return {"L": "l", "N": "n"}.get(unicodedata.category(c)[0], "o")

def words(text):
    """GPT-2's pattern, one alternative after the other."""
    at = 0
    while at < len(text):
        end = at
        for short in ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d"):
            if text.startswith(short, at):
                end = at + len(short)
                break
        for want in "lno":
            if end > at:
                break
            first = at + (text[at] == " ")
            end = first
            while end < len(text) and kind(text[end]) == want:
                end += 1
            if end == first:
                end = at
        if end == at:
            while end < len(text) and kind(text[end]) == "s":
                end += 1
            if end < len(text) and end - at > 1:
                end -= 1
        yield text[at:end].encode()
        at = end

def alphabet():
    shown = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    table = {b: chr(b) for b in shown}
    for b in range(256):
        if b not in table:
            table[b] = chr(256 + len(table) - len(shown))
    return table

def join(word, pair, new):
    out, i = [], 0
    while i < len(word):
        hit = tuple(word[i:i + 2]) == pair
        out.append(new if hit else word[i])
        i += 2 if hit else 1
    return out

def learn(text, size):
    table = alphabet()
    order = sorted(range(256), key=lambda b: table[b])
    tokens = [bytes([b]) for b in order]
    of_byte = {b: i for i, b in enumerate(order)}
    corpus = [[of_byte[b] for b in w] for w in words(text)]
    merges = []
    while len(tokens) < size:
        count = {}
        for w in corpus:
            for pair in zip(w, w[1:]):
                count[pair] = count.get(pair, 0) + 1
        best = min(count, key=lambda p: (-count[p], p), default=None)
        if best is None or count[best] < 2:
            break
        merges.append(best)
        tokens.append(tokens[best[0]] + tokens[best[1]])
        corpus = [join(w, best, len(tokens) - 1) for w in corpus]
    return tokens, merges, [t for w in corpus for t in w]
PY

cat >make.py <<'PY'
import random
random.seed(4)
common = ["the ", "then", " there's", "we'll ", "\n\n", "  ", " 12", "\u00e9t\u00e9 ", "\u6f22\u5b57", "\U0001f600", "...",
          "\u0663\u00bd", "\u3000 ", "I'D ", "x" * 70, "\x1c", "\u200b"]
open("text.txt", "w", newline="").write("".join(random.choice(common) for _ in range(1500)))
PY
$python make.py

run 0 data tokens text.txt --vocabulary 400 --gpt2 gpt2 -o ours.json --ids ids.npy --json
json_ok
$python - <<'PY' || fail "learning and encoding differ from the model"
import json
import numpy as np
import model
text = open("text.txt", newline="").read()
tokens, merges, ids = model.learn(text, 400)
table = model.alphabet()
show = lambda t: "".join(table[b] for b in t)
vocab = json.load(open("gpt2/vocab.json"))
assert vocab == {show(t): i for i, t in enumerate(tokens)}, "vocabulary"
lines = open("gpt2/merges.txt").read().split("\n")[1:-1]
assert lines == [f"{show(tokens[a])} {show(tokens[b])}" for a, b in merges], "merges"
assert np.load("ids.npy").tolist() == ids, "tokens"
PY
cp ids.npy first.npy
for from in ours.json gpt2; do
    run 0 data tokens text.txt --from $from --ids ids.npy
    cmp -s ids.npy first.npy || fail "tokens differ after reading $from"
done
run 0 data tokens text.txt --from gpt2 -o again.json
cmp -s ours.json again.json || fail "GPT-2's files do not give the same tokeniser"

# A word longer than any that merges are learned from, and data that is no text.
$python -c 'print("x" * 200001, end="")' >long.txt
run 0 data tokens long.txt --from ours.json --json
json 'j["tokens"] < j["bytes"] / 30'
run 0 data tokens text.txt --tokenizer char -o char.json --json
json 'j["vocabulary"] == j["vocabulary_used"]'
run 0 data tokens text.txt --from char.json --ids ids.npy
says out "written      ids.npy"
$python -c '
import numpy as np
t = open("text.txt", newline="").read()
assert np.load("ids.npy").tolist() == [sorted(set(t)).index(c) for c in t]' ||
    fail "characters are not numbered in order"
printf 'abc\377def' >binary
run 0 data tokens binary --tokenizer byte -o byte.json --json
json 'j["tokens"] == 7'
run 0 data tokens binary --from byte.json

# Refusals.
run 2 data tokens text.txt --tokenizer char -o one --ids one
says err "are both one"
[ ! -e one ] || fail "one file for two answers was written"
run 4 data tokens binary
says err "byte 3 (0xff) is no UTF-8"
says err "byte tokeniser"
: >empty
run 4 data tokens empty --tokenizer char
says err "empty"
printf 'Q' >q
run 4 data tokens q --from char.json
says err "'Q' (U+0051) at byte 0"
run 2 data tokens text.txt --vocabulary 100
mkdir broken
cp gpt2/vocab.json broken
sed '40s/.*/no such/' gpt2/merges.txt >broken/merges.txt
run 4 data tokens text.txt --from broken
says err "merge 38"
head -c 500 gpt2/vocab.json >broken/vocab.json
run 4 data tokens text.txt --from broken
says err "broken/vocab.json"
echo '{"a": 1, "b": 1}' >broken/vocab.json
run 4 data tokens text.txt --from broken
says err "wanted identities 0 to 1"
echo '{"format": "stint-tokenizer", "version": 1, "kind": "bpe", "tokens": ["a"], "merges": []}' >bad.json
run 4 data tokens text.txt --from bad.json
says err "has no token"
echo '[]' >bad.json
run 4 data tokens text.txt --from bad.json -o not-there.json
says err "wanted one JSON object"
[ ! -e not-there.json ] || fail "a file was written after a failure"
cp text.txt text.kept
run 2 data tokens text.txt -o ./text.txt
run 2 data tokens text.txt --ids text.txt
says err "its own answer"
cmp -s text.txt text.kept || fail "a text was written over"

finish
