#!/usr/bin/env python3
"""Learning byte pairs, and encoding with them: Stint beside Hugging Face's `tokenizers`, on
one thread.

    python bench/tokenizer_bench.py [STINT] [--mb 10] [--vocabulary 300,8000] [--texts A,B]
        [--limit SECONDS] [--encode]

Wants `tokenizers` (PyPI). Every learning is a process of its own; seconds are of the
processor, peaks are the kernel's. Stint's `data tokens` also encodes the text, which
`tokenizers` is spared: the seconds of a second run, which only encodes, are taken off. A
text of one long word takes `tokenizers` a time that is quadratic in the word: what exceeds
the limit is given up and shown as such. --encode times encoding by the merges that Stint
learnt instead, whole processes that read tokeniser and text; the numbers of tokens are
compared."""
import argparse
import base64
import json
import os
import random
import resource
import subprocess
import sys
import tempfile

LEARN = """
import json, sys
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
text = open(sys.argv[1], newline="", encoding="utf-8").read()
t = Tokenizer(models.BPE())
t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
t.train_from_iterator([text], trainers.BpeTrainer(
    vocab_size=int(sys.argv[2]), min_frequency=2, show_progress=False, special_tokens=[],
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
merges = json.loads(t.to_str())["model"]["merges"]
open(sys.argv[3], "w", encoding="utf-8").write("".join(f"{a} {b}\\n" for a, b in merges))
"""

ENCODE = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
text = open(sys.argv[1], newline="", encoding="utf-8").read()
t = Tokenizer(models.BPE.from_file(sys.argv[2] + "/vocab.json", sys.argv[2] + "/merges.txt"))
t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
print(len(t.encode(text, add_special_tokens=False).ids))
"""


def letters(first, count):
    return [chr(first + i) for i in range(count)]


def words(r, alphabet, lo, hi, count):
    return ["".join(r.choices(alphabet, k=r.randint(lo, hi))) for _ in range(count)]


def zipf(r, vocabulary, separator, n_bytes):
    weights = [1 / (i + 1) for i in range(len(vocabulary))]
    out, size = [], 0
    while size < n_bytes:
        piece = separator.join(r.choices(vocabulary, weights, k=1000)) + separator
        out.append(piece)
        size += len(piece.encode())
    return "".join(out).encode()[:n_bytes].decode(errors="ignore")


def make(name, n):
    r = random.Random(1)
    han, kana = letters(0x4E00, 3000), letters(0x3041, 86) + letters(0x30A1, 90)
    latin = "etaoinshrdlcumwfgypbvkjxqz"
    code = ["int ", "for (", "i", "x", " = ", ";\n    ", ")", "0", "->", "return ", "{\n",
            "}\n\n", "if (", "size_t ", "_count", "++"]
    return {
        "word": lambda: "".join(r.choices(latin, k=n)),
        "dna": lambda: "\n".join("".join(r.choices("ACGT", k=60)) for _ in range(n // 61)),
        "base64": lambda: base64.encodebytes(r.randbytes(n * 3 // 4)).decode()[:n],
        "letter": lambda: "a" * n,
        "emoji": lambda: "".join(r.choices(letters(0x1F600, 80), k=n // 4)),
        "thai": lambda: zipf(r, words(r, letters(0xE01, 46), 2, 7, 5000), "", n),
        "chinese": lambda: zipf(r, words(r, han, 1, 3, 20000) + ["\u3002"] * 9, "", n),
        "japanese": lambda: zipf(r, words(r, kana + han[:500], 1, 4, 20000) + ["\u3001"] * 9,
                                 "", n),
        "arabic": lambda: zipf(r, words(r, letters(0x621, 26), 2, 8, 20000), " ", n),
        "hindi": lambda: zipf(r, words(r, letters(0x904, 60), 2, 8, 20000), " ", n),
        "english": lambda: zipf(r, words(r, latin, 1, 9, 30000), " ", n),
        "code": lambda: zipf(r, code + words(r, latin, 2, 8, 5000), "", n),
    }[name]()


def run(command, limit):
    """Seconds of the processor, KiB at the peak and what was printed, or None."""
    try:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(["/usr/bin/time", "-f", "%M"] + command, capture_output=True,
                              text=True, timeout=limit,
                              env={**os.environ, "RAYON_NUM_THREADS": "1",
                                   "TOKENIZERS_PARALLELISM": "false"})
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        sys.exit(f"{command[0]}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, int(done.stderr.split()[-1]), done.stdout


def encode_row(stint, text, ours, line, n_bytes, limit):
    s, kib, said = run([stint, "data", "tokens", text, "--from", ours, "--json"], None)
    line += f" {s:8.2f} {kib * 1024 / n_bytes:7.1f}"
    peer = run([sys.executable, "-c", ENCODE, text, ours], limit)
    if not peer:
        return f"{line}     > {limit:.0f} s, given up"
    same = json.loads(said)["tokens"] == int(peer[2])
    return (f"{line} {peer[0]:10.2f} {peer[1] * 1024 / n_bytes:7.1f}   {s / peer[0]:5.2f}   "
            f"{'as many tokens' if same else 'OTHER TOKENS'}")


def row(stint, folder, name, n, size, limit, encode):
    text, theirs, ours = (os.path.join(folder, f) for f in ("text.txt", "theirs", "ours"))
    with open(text, "w", newline="", encoding="utf-8") as f:
        f.write(make(name, n))
    n_bytes = os.path.getsize(text)
    s, kib, _ = run([stint, "data", "tokens", text, "--vocabulary", str(size), "--gpt2",
                     ours], None)
    if encode:
        return encode_row(stint, text, ours, f"{name:9} {size:6}", n_bytes, limit)
    s -= run([stint, "data", "tokens", text, "--from", ours], None)[0]
    line = f"{name:9} {size:6} {s:8.2f} {kib * 1024 / n_bytes:7.1f}"
    peer = run([sys.executable, "-c", LEARN, text, str(size), theirs], limit)
    if not peer:
        return f"{line}     > {limit:.0f} s, given up"
    merges = open(os.path.join(ours, "merges.txt"), encoding="utf-8").read()
    same = merges.split("\n", 1)[1] == open(theirs, encoding="utf-8").read()
    return (f"{line} {peer[0]:10.2f} {peer[1] * 1024 / n_bytes:7.1f}   {s / peer[0]:5.2f}   "
            f"{'equal' if same else 'DIFFERENT'}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("stint", nargs="?", default="build/release/stint")
    p.add_argument("--mb", type=float, default=10)
    p.add_argument("--vocabulary", default="300,8000")
    p.add_argument("--texts", default="word,dna,base64,letter,emoji,thai,chinese,japanese,"
                   "arabic,hindi,english,code")
    p.add_argument("--limit", type=float, default=300)
    p.add_argument("--encode", action="store_true")
    a = p.parse_args()
    print("text      tokens   seconds  bytes/byte  tokenizers: seconds  bytes/byte  ratio  "
          "merges")
    with tempfile.TemporaryDirectory() as folder:
        for name in a.texts.split(","):
            for size in a.vocabulary.split(","):
                print(row(a.stint, folder, name, int(a.mb * 1e6), int(size), a.limit,
                          a.encode),
                      flush=True)


if __name__ == "__main__":
    main()
