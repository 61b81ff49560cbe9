"""Folders in Hugging Face's layout against a forward pass in numpy.
usage: hf_numpy.py FOLDER PROGRAM LIBRARY"""

import os
import subprocess
import sys

import numpy as np

import hf_model as hf

CASES = [
    ("gpt2", hf.gpt2(1), "F32", 1),
    ("gpt2, own output, 50 hidden units", hf.gpt2(2, tied=False, inner=50), "F32", 3),
    ("gpt2, F16", hf.gpt2(3), "F16", 1),
    ("llama, 2 heads of keys", hf.llama(4), "F32", 1),
    ("llama, tied, 1 head of keys, base 500",
     hf.llama(5, tied=True, kv_heads=1, base=500.0, eps=1e-5), "F32", 2),
    ("llama, biases, heads of 20 columns",
     hf.llama(7, attention_bias=True, mlp_bias=True, head_dim=20), "F32", 1),
    ("llama, waves of llama3",
     hf.llama(8, base=500.0, rope_scaling={
         "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
         "high_freq_factor": 4.0, "original_max_position_embeddings": 32}), "F32", 1),
    ("llama, linear waves",
     hf.llama(9, rope_scaling={"rope_type": "linear", "factor": 4.0}), "F32", 1),
    ("llama, waves of yarn",
     hf.llama(10, base=500.0, rope_scaling={
         "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}),
     "F32", 1),
    ("mistral, a window of 9",
     hf.llama(11, model_type="mistral", sliding_window=9), "F32", 1),
    ("qwen2, a window of 20 from block 1",
     hf.llama(12, model_type="qwen2", use_sliding_window=True, sliding_window=20,
              max_window_layers=1), "F32", 1),
    ("qwen3, tied", hf.llama(13, model_type="qwen3", head_dim=12, tied=True), "F32", 1),
    ("llama, BF16", hf.llama(6, kv_heads=4, hidden=50), "BF16", 1),
]


def stint(*words):
    subprocess.run([sys.argv[2], *words, "--quiet"], check=True)


def main():
    lib, root = hf.library(sys.argv[3]), sys.argv[1]
    for i, (what, (config, tensors), dtype, shards) in enumerate(CASES):
        source = os.path.join(root, "m%d" % i)
        hf.write_folder(source, config, tensors, dtype, shards)
        tensors = {n: hf.rounded(x, dtype) for n, x in tensors.items()}
        tokens = np.random.default_rng(i).integers(
            0, config["vocab_size"],
            config.get("n_positions") or config["max_position_embeddings"])
        want = hf.logits(config, tensors, tokens)
        vocabulary = config["vocab_size"]
        hf.check(what, hf.stint_logits(lib, source, tokens, vocabulary), want)
        # imported, then exported again: the same bits, the same tensors
        stint("import", "hf", source, "--out", source + ".safetensors")
        hf.check("  imported",
                 hf.stint_logits(lib, source + ".safetensors", tokens, vocabulary), want)
        stint("export", "hf", source + ".safetensors", "--out", source + "-back")
        back = hf.read_tensors(os.path.join(source + "-back", "model.safetensors"))
        assert set(back) == set(tensors), set(back) ^ set(tensors)
        for name in back:
            assert np.array_equal(back[name], tensors[name]), name
        hf.check("  exported",
                 hf.stint_logits(lib, source + "-back", tokens, vocabulary), want)


main()
