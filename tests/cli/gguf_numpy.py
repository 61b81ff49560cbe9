"""GGUF files against numpy: models in every type of numbers, read and run; ours written.
usage: gguf_numpy.py FOLDER PROGRAM LIBRARY"""

import json
import os
import struct
import subprocess
import sys

import numpy as np

import gguf_file as gguf
import hf_model as hf

SIZES = dict(vocabulary=40, width=256, heads=8)


def model(family):
    if family == "gpt2":
        return hf.gpt2(3, inner=256, depth=1, **SIZES)
    extra = {} if family == "llama" else {"model_type": family}
    if family == "qwen3":
        extra["head_dim"] = 64
    return hf.llama(4, hidden=256, depth=1, kv_heads=2, tied=family == "qwen2", **SIZES,
                    **extra)


CASES = [("llama", k) for k in gguf.TYPES] + [("gpt2", "F32"), ("gpt2", "Q8_0"),
                                              ("gpt2", "Q6_K"), ("qwen2", "Q4_0"),
                                              ("qwen3", "F16"), ("qwen3", "Q4_K")]


def stint(*words, status=0):
    run = subprocess.run([sys.argv[2], *words], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == status, (words, run.returncode, run.stderr)
    return run


def check_out(source, out, kind):
    """What `export gguf` wrote against the values that it began with."""
    stint("export", "gguf", source, "--out", out, "--type", kind.lower(), "-q")
    keys, tensors = gguf.read_tensors(out)
    return keys, tensors


def main():
    root, rng = sys.argv[1], np.random.default_rng(7)
    lib = hf.library(sys.argv[3])
    for family, kind in CASES:
        config, tensors = model(family)
        path = os.path.join(root, "%s-%s.gguf" % (family, kind))
        values = gguf.write_model(path, config, tensors, kind, rng)
        tokens = rng.integers(0, 40, 20)
        want = hf.logits(config, values, tokens)
        hf.check("%s, %s" % (family, kind), hf.stint_logits(lib, path, tokens, 40), want)
        ours = path + ".safetensors"
        found = json.loads(stint("import", "gguf", path, "--out", ours, "--json").stdout)
        assert found["types"][kind] >= 5, found
        stint("export", "hf", ours, "--out", path + "-hf", "-q")
        back = hf.read_tensors(os.path.join(path + "-hf", "model.safetensors"))
        for name in back:
            assert np.array_equal(back[name], values[name]), (family, kind, name)
        if kind not in ("F32", "Q6_K", "F16"):
            continue
        again = path + ".again.gguf"
        keys, written = check_out(ours, again, "F32")
        assert keys["general.architecture"] == family
        hf.check("  and out again", hf.stint_logits(lib, again, tokens, 40), want)
        _, halves = check_out(ours, again, "F16")
        _, blocks = check_out(ours, again, "Q8_0")
        for name, (of, x) in written.items():
            if x.ndim == 1 or "position" in name:
                assert of == "float32" == halves[name][0] == blocks[name][0]
                continue
            assert np.array_equal(halves[name][1], x.astype(np.float16)), name
            # half a step, and what rounding the step to F16 moves 127 of them by
            most = np.abs(x.reshape(-1, 32)).max(1) / 127 * (0.5 + 127 * 2.0 ** -11)
            error = np.abs(blocks[name][1] - x).reshape(-1, 32).max(1)
            assert (error <= most * 1.001 + 127 * 2.0 ** -25).all(), name
    kept(root, rng, lib)
    packed(root, rng, lib)
    parts(root, rng, lib)
    within(root, rng)
    bad(root, rng)


# ---- what is refused ----

def kept(root, rng, lib):
    """Weights that stay in few bits: the logits of weights that numpy rounds."""
    for family, kind in (("llama", "F32"), ("qwen2", "Q8_0"), ("gpt2", "F32")):
        config, tensors = model(family)
        path = os.path.join(root, "kept.gguf")
        values = gguf.write_model(path, config, tensors, kind, rng)
        tokens = rng.integers(0, 40, 20)
        for bits in (8, 4):
            other = {n: x if x.ndim == 1 or "wpe" in n else gguf.rounded(x.T, bits).T
                     if family == "gpt2" and "wte" not in n else gguf.rounded(x, bits)
                     for n, x in values.items()}
            hf.check("%s, kept in %d bits" % (family, bits),
                     hf.stint_logits(lib, path, tokens, 40, bits),
                     hf.logits(config, other, tokens))
        other = {n: x if x.ndim == 1 or "wpe" in n else hf.rounded(x, "BF16")
                 for n, x in values.items()}
        hf.check("%s, kept in bfloat16" % family, hf.stint_logits(lib, path, tokens, 40, 16),
                 hf.logits(config, other, tokens))
        for w in ("bf16", "q8"):
            drawn = [stint("run", path, "--prompt-ids", "1,2,3", "--tokens", "9", "--weights", w,
                           "-j", j, "-t", "0").stdout for j in ("1", "3")]
            assert drawn[0] == drawn[1]


def packed(root, rng, lib):
    """Model files whose matrices are in few bits: values, logits and sizes."""
    for family, kind in (("llama", "F32"), ("gpt2", "F32"), ("qwen2", "Q8_0")):
        config, tensors = model(family)
        path, out = os.path.join(root, "packed.gguf"), os.path.join(root, "packed.safetensors")
        values = gguf.write_model(path, config, tensors, kind, rng)
        tokens = rng.integers(0, 40, 20)
        turned = family == "gpt2"
        for word, bits, most in (("q8", 8, 0.36), ("q4", 4, 0.24), ("bf16", 16, 0.58)):
            other = {n: x if x.ndim == 1 or "wpe" in n else hf.rounded(x, "BF16") if bits == 16
                     else gguf.rounded(x.T, bits).T if turned and "wte" not in n
                     else gguf.rounded(x, bits) for n, x in values.items()}
            stint("import", "gguf", path, "--out", out, "--weights", word, "-q")
            whole = sum(x.size * 4 for x in values.values())
            assert os.path.getsize(out) < most * whole + 9000, (word, os.path.getsize(out), whole)
            want = hf.logits(config, other, tokens)
            for asked in (0, 32, bits):
                hf.check("%s, a file of %s, run as %d" % (family, word, asked),
                         hf.stint_logits(lib, out, tokens, 40, asked), want)
            stint("export", "hf", out, "--out", out + "-hf", "-q")
            back = hf.read_tensors(os.path.join(out + "-hf", "model.safetensors"))
            for name in back:
                assert np.array_equal(back[name], other[name]), (family, word, name)
            assert json.loads(stint("info", out, "--json").stdout)["parameters"] * 4 == whole
            for damage in (b"down", b"Q8_0 along", b"packed"):
                broken(out, damage, bits)


def broken(path, word, bits):
    """A file whose text of blocks does not fit its tensors is refused."""
    data = open(path, "rb").read()
    if bits != 8 or word not in data:
        return
    other = path + ".broken"
    with open(other, "wb") as file:
        file.write(data.replace(word, word[:-1] + b"x", 1))
    said = stint("run", other, "--prompt-ids", "1", "--tokens", "1", status=4).stderr
    assert "take another copy" in said or "no tensor" in said or "has another" in said, said


def parts(root, rng, lib):
    """A model in three files is that of one; a part that is missing or another is named."""
    config, tensors = model("llama")
    path = os.path.join(root, "parts")
    values = gguf.write_model(path, config, tensors, "Q8_0", rng, parts=3)
    first, second = (path + "-%05d-of-00003.gguf" % i for i in (1, 2))
    tokens = rng.integers(0, 40, 20)
    hf.check("three files", hf.stint_logits(lib, first, tokens, 40),
             hf.logits(config, values, tokens))
    assert "give the first part" in stint("run", second, "--prompt-ids", "1", status=4).stderr
    held = open(second, "rb").read()
    os.remove(second)
    assert "00002-of-00003" in stint("run", first, "--prompt-ids", "1", status=5).stderr
    with open(second, "wb") as file:
        file.write(open(first, "rb").read())
    assert "is not part 2 of 3" in stint("run", first, "--prompt-ids", "1", status=4).stderr
    with open(second, "wb") as file:
        file.write(held)
    moved = os.path.join(root, "moved.gguf")
    os.rename(first, moved)
    assert "whose name should end" in stint("run", moved, "--prompt-ids", "1", status=4).stderr


def within(root, rng):
    """The same bytes within a budget, which tensors go through in parts; less is refused."""
    config, tensors = hf.llama(4, hidden=8192, depth=1, kv_heads=2, tied=True, **SIZES)
    path, out = os.path.join(root, "wide.gguf"), os.path.join(root, "wide.safetensors")
    gguf.write_model(path, config, tensors, "Q8_0", rng)
    for word in ("f32", "q4"):
        stint("import", "gguf", path, "--out", out, "--weights", word, "-q")
        want = open(out, "rb").read()
        said = stint("import", "gguf", path, "--out", out + "2", "--weights", word, "--memory",
                     "1M", status=3).stderr
        assert not os.path.exists(out + "2")
        least = said.rsplit("give it ", 1)[1].split()
        budget = "%dM" % (float(least[0]) + 1)
        found = json.loads(stint("import", "gguf", path, "--out", out + "2", "--weights", word,
                                 "--memory", budget, "--json").stdout)
        assert open(out + "2", "rb").read() == want
        os.remove(out + "2")
        assert found["peak_rss_bytes"] <= int(budget[:-1]) << 20, (found, budget)


def bad(root, rng):
    path, out = os.path.join(root, "bad.gguf"), os.path.join(root, "none.safetensors")
    config, tensors = model("llama")
    gguf.write_model(path, config, tensors, "F16", rng)
    whole = open(path, "rb").read()

    def refuse(data, status, *words):
        with open(path, "wb") as file:
            file.write(data)
        said = stint("import", "gguf", path, "--out", out, status=status).stderr
        assert not os.path.exists(out), words
        for word in words:
            assert word in said, (word, said)

    refuse(whole[:-40], 4, "cut short")
    refuse(whole[:100], 4, "than it has room for")
    refuse(whole[:300], 4, "take another copy")
    refuse(whole[:4] + struct.pack("<I", 1) + whole[8:], 8, "version 1")
    refuse(whole[:4] + struct.pack(">I", 3) + whole[8:], 8, "big-endian")
    refuse(whole.replace(b"general.architecture", b"general.architectura"), 8, "(none)")
    refuse(whole.replace(b"blk.0.ffn_up.weight", b"blk.0.ffn_xx.weight"), 4,
           "no tensor 'blk.0.ffn_up.weight'")
    head = struct.pack("<Q", 13) + b"output.weight"
    assert head in whole
    refuse(whole.replace(head, head[:-6] + b"weighs"), 8, "'output.weighs'", "no part")
    refuse(whole.replace(b"llama.block_count", b"llama.block_counx"), 4,
           "llama.block_count", "is missing")
    at = whole.index(b"blk.0.ffn_up.weight") + len(b"blk.0.ffn_up.weight")
    refuse(whole[:at + 20] + struct.pack("<I", 99) + whole[at + 24:], 8, "type 99",
           "Q4_K")
    refuse(whole[:at + 24] + struct.pack("<Q", 32) + whole[at + 32:], 4,
           "lies over another tensor")
    refuse(whole[:at + 24] + struct.pack("<Q", 33) + whole[at + 32:], 4, "bad.gguf")
    refuse(whole[:at + 24] + struct.pack("<Q", 1 << 40) + whole[at + 32:], 4,
           "begins behind its end")
    refuse(whole[:8] + struct.pack("<Q", 1 << 50) + whole[16:], 4, "than it has room for")
    nan = bytearray(whole)
    nan[-64:] = b"\xff" * 64
    refuse(bytes(nan), 4, "infinite or NaN")
    refuse(b"not one at all", 4, "no GGUF file")
    with open(path, "wb") as file:
        file.write(whole)
    assert "`stint import gguf` makes one" in stint("eval", path, status=4).stderr
    said = stint("run", path, "--prompt", "x", status=4).stderr
    assert "holds no tokeniser" in said
    stint("run", path, "--prompt-ids", "1,2,3", "--tokens", "3")


main()
