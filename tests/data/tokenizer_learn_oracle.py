"""Records what tokenizer_learn_test.c compares with: merges of Hugging Face's
`tokenizers` (PyPI; written with 0.23.3) on the texts of learn_texts.h.

    python tokenizer_learn_oracle.py > tokenizer_learn_oracle.h

One word of 10 MB takes `tokenizers` more than a day (its time is quadratic in a word), so
that text goes through `merges_of_word`, the same rule in NumPy, which is first compared
with `tokenizers` on words of 20,000 letters."""
import hashlib
import json
import struct
import sys

import numpy as np
import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

BYTES, LONG_BYTES = 20000, 10_000_000
SIZES = (300, 1000, 8000)
ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
TEXTS = [  # as learn_texts.h has them
    ("dna", list("ACGT"), 1, 1, ""),
    ("fasta", list("ACGT"), 60, 60, "\n"),
    ("one letter", ["a"], 1, 1, ""),
    ("runs", ["a", "ab"], 1, 30, " "),
    ("letters", [chr(97 + i) for i in range(26)], 1, 1, ""),
    ("base64", list("AbCdEfGh0123+/"), 76, 76, "\n"),
    ("emoji", [chr(0x1F600 + i) for i in range(80)], 1, 1, ""),
    ("thai", [chr(0xE01 + i) for i in range(58)], 200, 400, " "),
    ("chinese", [chr(0x4E00 + i) for i in range(2000)], 100, 900, "\u3002"),
    ("japanese", [chr(0x3041 + i) for i in range(180)], 50, 500, "\u3001"),
    ("arabic", [chr(0x621 + i) for i in range(42)], 2, 8, " "),
    ("hindi", [chr(0x904 + i) for i in range(74)], 2, 8, " "),
    ("english", "e|th|a|o|in|er|t|n's|s|re|h|ou|'ll|42|ing|.".split("|"), 1, 5, " "),
    ("code", "(|x|int |i|;\n    |1|)| = |for |{\n|}\n\n|->|return |0x|\t|\"%d\"".split("|"),
     1, 3, ""),
]
MASK = (1 << 64) - 1


def randoms():
    state = 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        yield z ^ z >> 31


def make(text, n_bytes):
    _, atoms, lo, hi, separator = text
    atoms, separator = [a.encode() for a in atoms], separator.encode()
    random, out = randoms(), bytearray()
    while True:
        left = lo + (next(random) % (hi - lo + 1) if hi > lo else 0)
        for _ in range(left):
            r = next(random)
            if n_bytes - len(out) < 16:
                return bytes(out)
            out += atoms[(r >> 32) % len(atoms) * ((r & 15) + 1) // 16]
        out += separator


def byte_of():
    shown = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    table = {chr(b): b for b in shown}
    for b in range(256):
        if b not in shown:
            table[chr(256 + len(table) - len(shown))] = b
    return table


BYTE_OF = byte_of()


def merges_of(text, size):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.train_from_iterator([text.decode()], trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, show_progress=False, special_tokens=[],
        initial_alphabet=ALPHABET))
    model = json.loads(t.to_str())["model"]
    assert len(model["vocab"]) == 256 + len(model["merges"])
    return [[bytes(BYTE_OF[c] for c in side) for side in m] for m in model["merges"]]


def merges_of_word(word, size):
    ids = {BYTE_OF[c]: i for i, c in enumerate(ALPHABET)}
    tokens = [bytes([BYTE_OF[c]]) for c in ALPHABET]
    seq = np.array([ids[b] for b in range(256)], np.int64)[np.frombuffer(word, np.uint8)]
    merges = []
    while len(tokens) < size and len(seq) > 1:
        keys, counts = np.unique(seq[:-1] << 32 | seq[1:], return_counts=True)
        best = keys[counts == counts.max()].min()
        if counts.max() < 2:
            break
        left, right = int(best >> 32), int(best & 0xFFFFFFFF)
        at = np.flatnonzero((seq[:-1] == left) & (seq[1:] == right))
        if left == right:  # of a run, the first, third, ...
            new_run = np.r_[True, np.diff(at) != 1]
            start = np.maximum.accumulate(np.where(new_run, np.arange(len(at)), 0))
            at = at[(np.arange(len(at)) - start) % 2 == 0]
        seq[at] = len(tokens)
        seq = np.delete(seq, at + 1)
        merges.append([tokens[left], tokens[right]])
        tokens.append(tokens[left] + tokens[right])
    return merges


def digest(merges):
    h = hashlib.sha256()
    for merge in merges:
        for side in merge:
            h.update(struct.pack("<I", len(side)) + side)
    return h.hexdigest()[:16]


print(f"/* Written by tokenizer_learn_oracle.py with tokenizers {tokenizers.__version__}: "
      "text,\n * bytes, vocabulary, number of merges and the beginning of their SHA-256. */")
print("static const learn_case learn_cases[] = {")
for i, text in enumerate(TEXTS):
    made = make(text, BYTES)
    for size in SIZES:
        merges = merges_of(made, size)
        if text[0] in ("dna", "one letter", "letters"):
            assert merges_of_word(made, size) == merges, (text[0], size)
        print(f'    {{{i}, {BYTES}, {size}, {len(merges)}, "{digest(merges)}"}},')
    sys.stdout.flush()
for name, size in (("dna", 300), ("one letter", 8000)):
    i = [t[0] for t in TEXTS].index(name)
    merges = merges_of_word(make(TEXTS[i], LONG_BYTES), size)
    print(f'    {{{i}, {LONG_BYTES}, {size}, {len(merges)}, "{digest(merges)}"}},')
print("};")
