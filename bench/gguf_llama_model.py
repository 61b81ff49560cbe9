#!/usr/bin/env python3
"""A GGUF file of random weights, for bench/gguf_llama.sh.

usage: gguf_llama_model.py OUT llama|gpt2 F32|Q8_0|Q4_0 [large]

Small ones have 4 layers of width 256; a large Llama has a billion parameters (16 layers of
width 2048, 32 heads on 8 keys, 8192 wide within, 32,000 tokens). Tensors of one shape hold
the same numbers in the large one, each for itself. No tokeniser goes along.
"""

import sys

import gguf
import numpy as np

SMALL = dict(layers=4, width=256, heads=8, kv=4, inner=704, tokens=1000, context=256)
LARGE = dict(layers=16, width=2048, heads=32, kv=8, inner=8192, tokens=32000, context=2048)


def shapes(arch, s):
    """Name of each tensor of a layer: its shape, rows first."""
    w, i, kv = s["width"], s["inner"], s["width"] // s["heads"] * s["kv"]
    if arch == "llama":
        return {"attn_norm.weight": (w,), "attn_q.weight": (w, w), "attn_k.weight": (kv, w),
                "attn_v.weight": (kv, w), "attn_output.weight": (w, w), "ffn_norm.weight": (w,),
                "ffn_gate.weight": (i, w), "ffn_up.weight": (i, w), "ffn_down.weight": (w, i)}
    return {"attn_norm.weight": (w,), "attn_norm.bias": (w,), "attn_qkv.weight": (3 * w, w),
            "attn_qkv.bias": (3 * w,), "attn_output.weight": (w, w), "attn_output.bias": (w,),
            "ffn_norm.weight": (w,), "ffn_norm.bias": (w,), "ffn_up.weight": (4 * w, w),
            "ffn_up.bias": (4 * w,), "ffn_down.weight": (w, 4 * w), "ffn_down.bias": (w,)}


def main():
    out, arch, kind = sys.argv[1:4]
    large = sys.argv[4:] == ["large"]
    s = LARGE if large else SMALL
    matrices = gguf.GGMLQuantizationType[kind]
    random = np.random.default_rng(5)
    made = {}

    def numbers(name, shape):
        if large and shape in made:
            return made[shape]
        x = random.standard_normal(shape, np.float32)
        # A scale of 1 for norms, sums of about 1 for products.
        x = 1 + 0.1 * x if "norm.weight" in name else x * np.float32(shape[-1] ** -0.5)
        plain = len(shape) == 1 or "position" in name
        made[shape] = (x, None) if plain else (gguf.quants.quantize(x, matrices), matrices)
        return made[shape]

    writer = gguf.GGUFWriter(out, arch)
    writer.add_context_length(s["context"])
    writer.add_embedding_length(s["width"])
    writer.add_block_count(s["layers"])
    writer.add_feed_forward_length(s["inner"] if arch == "llama" else 4 * s["width"])
    writer.add_head_count(s["heads"])
    writer.add_vocab_size(s["tokens"])
    writer.add_tokenizer_model("none")
    if arch == "llama":
        writer.add_head_count_kv(s["kv"])
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_dimension_count(s["width"] // s["heads"])
        writer.add_rope_freq_base(10000.0)
    else:
        writer.add_layer_norm_eps(1e-5)
    ends = {"token_embd.weight": (s["tokens"], s["width"]),
            "output.weight": (s["tokens"], s["width"]), "output_norm.weight": (s["width"],)}
    if arch == "gpt2":
        ends["position_embd.weight"] = (s["context"], s["width"])
        ends["output_norm.bias"] = (s["width"],)
    for layer in range(s["layers"]):
        ends.update({f"blk.{layer}.{name}": shape for name, shape in shapes(arch, s).items()})
    for name, shape in ends.items():
        values, packed = numbers(name, shape)
        writer.add_tensor(name, values, raw_dtype=packed)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
