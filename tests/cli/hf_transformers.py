"""The Hugging Face layout against the `transformers` package, both directions.
usage: hf_transformers.py FOLDER PROGRAM LIBRARY"""

import os
import subprocess
import sys

import numpy as np
import torch
import transformers

import hf_model as hf


def variants():
    for tied in (True, False):
        yield "gpt2, tied %s" % tied, transformers.GPT2LMHeadModel, \
            transformers.GPT2Config(
                vocab_size=97, n_positions=40, n_embd=48, n_layer=2, n_head=3,
                tie_word_embeddings=tied, bos_token_id=1, eos_token_id=1)
        for heads in (4, 2, 1):
            yield "llama, tied %s, %d heads of keys" % (tied, heads), \
                transformers.LlamaForCausalLM, transformers.LlamaConfig(
                    vocab_size=101, max_position_embeddings=70, hidden_size=64,
                    intermediate_size=88, num_hidden_layers=2, num_attention_heads=4,
                    num_key_value_heads=heads, tie_word_embeddings=tied)


def theirs(model, tokens):
    model = model.eval().to(torch.float32)
    with torch.no_grad():
        return model(torch.tensor(tokens)[None]).logits[0].numpy()


def stint(*words):
    subprocess.run([sys.argv[2], *words, "--quiet"], check=True)


def main():
    lib, root = hf.library(sys.argv[3]), sys.argv[1]
    torch.manual_seed(1)
    for i, (what, family, config) in enumerate(variants()):
        model = family(config)
        with torch.no_grad():  # as made, weights are so small that nothing shows
            for p in model.parameters():
                if p.dim() > 1:
                    p.mul_(8)
                else:
                    p.add_(0.1 * torch.randn_like(p))
        shape = config.vocab_size
        tokens = np.random.default_rng(i).integers(0, shape, 40)
        saved, back = (os.path.join(root, "%s%d" % (n, i)) for n in ("saved", "back"))
        half = i % 3  # as f32, f16 and bf16, with and without shards
        model = model.to((torch.float32, torch.float16, torch.bfloat16)[half])
        model.save_pretrained(saved, **({"max_shard_size": "60KB"} if i % 2 else {}))
        want = theirs(family.from_pretrained(saved), tokens)
        hf.check(what, hf.stint_logits(lib, saved, tokens, shape), want)
        stint("import", "hf", saved, "--out", back + ".safetensors")
        stint("export", "hf", back + ".safetensors", "--out", back)
        again = transformers.AutoModelForCausalLM.from_pretrained(back)
        assert type(again) is family, type(again)
        hf.check("  and back", theirs(again, tokens), want)


main()
