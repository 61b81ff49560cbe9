"""Tokenisers of every kind that is known, made by Hugging Face's `tokenizers`, against it
on a megabyte of mixed text; read, written in our form, and exported again.
usage: hf_tokenizers.py FOLDER PROGRAM SOURCE"""

import glob
import json
import os
import random
import subprocess
import sys

import numpy as np
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, trainers)

import hf_model as hf

ODD = ["\u00e9t\u00e9 na\u00efve co\u00f6perate", "e\u0301te\u0301", "\u4e2d\u6587\u5b57\u7b26",
       "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!", "\u05e2\u05d1\u05e8\u05d9\u05ea",
       "\u0939\u093f\u0928\u094d\u0926\u0940", "\u0e44\u0e17\u0e22", "\u65e5\u672c\u8a9e\u306e\u30c6\u30b9\u30c8",
       "\ud55c\uad6d\uc5b4", "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u00a0nbsp",
       "a\u200bb", "tabs\tand\r\nCRLF\n\n\n  spaces   ", "12345 1,234.56 \u0663\u0664 \u00bd \u2167",
       "don't CAN'T we'll I'D 'Re 'S", "for(i=0;i<n;++i){x[i]+=y;}\n\tif (a&&b) return;",
       "http://a.b/c?d=e&f=%20", "\ufb01ne \ufdfa \u2460", "\u2581low\u2581line",
       "<s>hi</s> <|im_start|>user", "\x01\x02\x7f", "\u017f'\u017f K", "   leading",
       "trailing   ", "\n", "\n \n", "  \n  x"]
SPACE = "\u2581"


def llama3(numbers):
    return (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + numbers +
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def texts(source):
    plain = "".join(open(f, encoding="utf-8").read()
                    for f in sorted(glob.glob(os.path.join(source, "docs", "*.md"))))
    rng = random.Random(3)
    parts, size = [], 0
    while size < 1_000_000:
        at = rng.randrange(len(plain) - 400)
        part = plain[at:at + rng.randrange(10, 400)] if rng.random() < 0.5 else rng.choice(ODD)
        if rng.random() < 0.05:
            part = "".join(chr(rng.choice([rng.randrange(32, 0x250), rng.randrange(0x370, 0x7b0),
                                           rng.randrange(0x3000, 0x9fff),
                                           rng.randrange(0x1f300, 0x1f6ff)]))
                           for _ in range(30))
        part += rng.choice([" ", "", "\n"])
        parts.append(part)
        size += len(part.encode())
    return [plain[k:k + 2000] for k in range(0, 300000, 2000)] + ODD * 30, "".join(parts)


def add(tokenizer, *words):
    tokenizer.add_special_tokens([AddedToken(w, normalized=False, special=True) for w in words])
    return tokenizer


def byte_level(train, pre, norm=None, ignore=False):
    t = Tokenizer(models.BPE(ignore_merges=ignore))
    if norm:
        t.normalizer = norm
    t.pre_tokenizer, t.decoder = pre, decoders.ByteLevel()
    t.train_from_iterator(train, trainers.BpeTrainer(
        vocab_size=3000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False, special_tokens=["<|endoftext|>"]))
    return add(t, "<|im_start|>", "<s>")


def split(numbers):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(llama3(numbers)), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def pieces(train, kind, scheme=None, norm=None, cut=True, in_bytes=True, fuse=False):
    pairs = kind == "bpe"
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse) if pairs else models.Unigram())
    if norm:
        t.normalizer = norm
    if scheme:
        t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=cut)
    specials = ["<unk>", "<s>", "</s>"]
    t.train_from_iterator(train, trainers.BpeTrainer(
        vocab_size=3000, show_progress=False, special_tokens=specials, limit_alphabet=400,
        max_token_length=16) if pairs else trainers.UnigramTrainer(
        vocab_size=2500, show_progress=False, special_tokens=specials, unk_token="<unk>"))
    j = json.loads(t.to_str())
    vocabulary = j["model"]["vocab"]
    if in_bytes:
        j["model"]["byte_fallback"] = True
        for b in range(256):
            if pairs:
                vocabulary.setdefault("<0x%02X>" % b, len(vocabulary))
            else:
                vocabulary.append(["<0x%02X>" % b, -30.0])
    return add(Tokenizer.from_str(json.dumps(j)), "</s>", "<s>")


def cases(train):
    byte = pre_tokenizers.ByteLevel(add_prefix_space=False)
    old = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    nmt = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(),
                                normalizers.Replace(Regex(" {2,}"), " ")])
    digits = pre_tokenizers.Digits(individual_digits=True)
    return [
        ("gpt2", lambda: byte_level(train, byte)),
        ("llama3", lambda: byte_level(train, split(r"\p{N}{1,3}"), ignore=True)),
        ("qwen2", lambda: byte_level(train, split(r"\p{N}"), normalizers.NFC())),
        ("smollm", lambda: byte_level(train, pre_tokenizers.Sequence([digits, byte]))),
        ("pieces, prepended", lambda: pieces(train, "bpe", norm=old, fuse=True)),
        ("pieces, first, whole", lambda: pieces(train, "bpe", "first", cut=False)),
        ("pieces, always, cut", lambda: pieces(train, "bpe", "always")),
        ("pieces, never, fused unknown",
         lambda: pieces(train, "bpe", "never", in_bytes=False, fuse=True)),
        ("pieces, unknown", lambda: pieces(train, "bpe", "always", in_bytes=False)),
        ("unigram", lambda: pieces(train, "unigram", "always", in_bytes=False)),
        ("unigram, bytes", lambda: pieces(train, "unigram", "always")),
        ("unigram, nmt, nfkc",
         lambda: pieces(train, "unigram", "always", nmt, in_bytes=False)),
    ]


def main():
    root, program, source = sys.argv[1:4]
    train, mixed = texts(source)
    text = os.path.join(root, "mixed.txt")
    with open(text, "w", encoding="utf-8", newline="") as file:
        file.write(mixed)

    def ids(of, *more):
        out = os.path.join(root, "ids.npy")
        subprocess.run([program, "data", "tokens", text, "--from", of, "--ids", out, "-q",
                        *more], check=True, stdout=subprocess.DEVNULL)
        return np.load(out)

    for i, (what, make) in enumerate(cases(train)):
        tokenizer, folder = make(), os.path.join(root, "t%d" % i)
        config, tensors = hf.llama(i, vocabulary=tokenizer.get_vocab_size(), width=16,
                                   heads=2, kv_heads=1, hidden=16, depth=1)
        hf.write_folder(folder, config, tensors)
        tokenizer.save(os.path.join(folder, "tokenizer.json"))
        want = np.array(tokenizer.encode(mixed, add_special_tokens=False).ids)
        assert np.array_equal(ids(folder, "-o", folder + ".json"), want), what
        assert np.array_equal(ids(folder + ".json"), want), what + ", in our form"
        for command, of, to in (("import", folder, folder + ".safetensors"),
                                ("export", folder + ".safetensors", folder + "-back")):
            subprocess.run([program, command, "hf", of, "--out", to, "-q"], check=True)
        assert np.array_equal(ids(folder + ".safetensors"), want), what + ", imported"
        if what != "gpt2":
            back = Tokenizer.from_file(os.path.join(folder + "-back", "tokenizer.json"))
            assert back.get_vocab() == tokenizer.get_vocab(), what + ", exported"
            got = np.array(back.encode(mixed, add_special_tokens=False).ids)
            assert np.array_equal(got, want), what + ", exported"
        print("%-30s %d bytes, %d tokens, equal" % (what, len(mixed.encode()), len(want)))


main()
