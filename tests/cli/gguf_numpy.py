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
    said = stint("import", "gguf", path, "--out", out, "--weights", "q8", status=8).stderr
    assert "f32 alone" in said
    assert "`stint import gguf` makes one" in stint("eval", path, status=4).stderr
    said = stint("run", path, "--prompt", "x", status=4).stderr
    assert "holds no tokeniser" in said
    stint("run", path, "--prompt-ids", "1,2,3", "--tokens", "3")


main()
