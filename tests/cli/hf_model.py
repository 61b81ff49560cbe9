"""Transformers for tests of the Hugging Face layout: files, a forward pass in double
precision by numpy alone, and libstint's logits through its public calls."""

import ctypes
import json
import os
import struct

import numpy as np


# ---- safetensors ----

def bf16_bits(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def bf16_value(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def write_tensors(path, tensors, dtype="F32"):
    """tensors: name -> f32 array, stored as F32, F16 or BF16."""
    header, blobs, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, x in tensors.items():
        x = np.ascontiguousarray(x, np.float32)
        blob = {"F32": lambda: x, "F16": lambda: x.astype(np.float16),
                "BF16": lambda: bf16_bits(x)}[dtype]().tobytes()
        header[name] = {"dtype": dtype, "shape": list(x.shape),
                        "data_offsets": [at, at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def rounded(x, dtype):
    """What a reader gets of x stored so."""
    x = np.asarray(x, np.float32)
    if dtype == "F16":
        return x.astype(np.float16).astype(np.float32)
    return bf16_value(bf16_bits(x)) if dtype == "BF16" else x


def read_tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    out = {}
    for name, row in header.items():
        if name == "__metadata__":
            continue
        assert row["dtype"] == "F32", row
        begin, end = (8 + length + o for o in row["data_offsets"])
        out[name] = np.frombuffer(data[begin:end], np.float32).reshape(row["shape"])
    return out


# ---- random models: config and tensors under Hugging Face's names ----

def gpt2(seed, tied=True, inner=None, vocabulary=97, context=24, width=48, depth=2,
         heads=3):
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
              "vocab_size": vocabulary, "n_positions": context, "n_embd": width,
              "n_layer": depth, "n_head": heads, "n_inner": inner,
              "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
              "tie_word_embeddings": tied, "eos_token_id": 3, "bos_token_id": 3}
    rng = np.random.default_rng(seed)
    hidden = inner or 4 * width
    t = {"transformer.wte.weight": (vocabulary, width),
         "transformer.wpe.weight": (context, width)}
    for i in range(depth):
        p = "transformer.h.%d." % i
        for norm in ("ln_1", "ln_2"):
            t[p + norm + ".weight"] = t[p + norm + ".bias"] = (width,)
        for name, k, n in (("attn.c_attn", width, 3 * width),
                           ("attn.c_proj", width, width),
                           ("mlp.c_fc", width, hidden), ("mlp.c_proj", hidden, width)):
            t[p + name + ".weight"], t[p + name + ".bias"] = (k, n), (n,)
    t["transformer.ln_f.weight"] = t["transformer.ln_f.bias"] = (width,)
    if not tied:
        t["lm_head.weight"] = (vocabulary, width)
    return config, fill(t, rng)


def llama(seed, tied=False, kv_heads=2, vocabulary=101, context=70, width=64, depth=2,
          heads=4, hidden=88, base=10000.0, eps=1e-6, **others):
    """others: further keys of config.json, those of Mistral and Qwen too."""
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"],
              "vocab_size": vocabulary, "max_position_embeddings": context,
              "hidden_size": width, "intermediate_size": hidden,
              "num_hidden_layers": depth, "num_attention_heads": heads,
              "num_key_value_heads": kv_heads, "rms_norm_eps": eps, "rope_theta": base,
              "hidden_act": "silu", "attention_bias": False, "mlp_bias": False,
              "tie_word_embeddings": tied, "eos_token_id": 2, "bos_token_id": 1}
    config.update(others)
    rng = np.random.default_rng(seed)
    size = others.get("head_dim", width // heads)
    keys, queries = kv_heads * size, heads * size
    attention = config["attention_bias"]
    first = attention or config["model_type"] == "qwen2"
    biased = {"self_attn.o_proj": attention and config["model_type"] != "qwen2",
              **{"self_attn.%s_proj" % x: first for x in "qkv"},
              **{"mlp.%s_proj" % x: config["mlp_bias"] for x in ("gate", "up", "down")}}
    t = {"model.embed_tokens.weight": (vocabulary, width)}
    for i in range(depth):
        p = "model.layers.%d." % i
        t[p + "input_layernorm.weight"] = (width,)
        t[p + "post_attention_layernorm.weight"] = (width,)
        if config["model_type"] == "qwen3":
            t[p + "self_attn.q_norm.weight"] = t[p + "self_attn.k_norm.weight"] = (size,)
        for name, n, k in (("self_attn.q_proj", queries, width),
                           ("self_attn.k_proj", keys, width),
                           ("self_attn.v_proj", keys, width),
                           ("self_attn.o_proj", width, queries),
                           ("mlp.gate_proj", hidden, width),
                           ("mlp.up_proj", hidden, width),
                           ("mlp.down_proj", width, hidden)):
            t[p + name + ".weight"] = (n, k)
            if biased[name]:
                t[p + name + ".bias"] = (n,)
    t["model.norm.weight"] = (width,)
    if not tied:
        t["lm_head.weight"] = (vocabulary, width)
    return config, fill(t, rng)


def fill(shapes, rng):
    out = {}
    for name, shape in shapes.items():
        x = rng.standard_normal(shape) * 0.15
        norm = len(shape) == 1 and name.endswith("weight")
        out[name] = (1 + x if norm else x).astype(np.float32)
    return out


def write_folder(path, config, tensors, dtype="F32", shards=1):
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "config.json"), "w") as file:
        json.dump(config, file)
    if shards == 1:
        write_tensors(os.path.join(path, "model.safetensors"), tensors, dtype)
        return
    names, where = list(tensors), {}
    for s in range(shards):
        file = "model-%05d-of-%05d.safetensors" % (s + 1, shards)
        part = {n: tensors[n] for n in names[s::shards]}
        where.update({n: file for n in part})
        write_tensors(os.path.join(path, file), part, dtype)
    with open(os.path.join(path, "model.safetensors.index.json"), "w") as file:
        json.dump({"metadata": {}, "weight_map": where}, file)


# ---- forward passes in double precision ----

def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(q, k, v, window=0):
    """q [t, heads, size], k and v [t, kv_heads, size]; window: keys seen; 0: all."""
    t, heads, size = q.shape
    k, v = (np.repeat(x, heads // x.shape[1], 1) for x in (k, v))
    scores = np.einsum("ihs,jhs->hij", q, k) / np.sqrt(size)
    seen = np.tril(np.ones((t, t), bool))
    if window:
        seen &= ~np.tril(np.ones((t, t), bool), -window)
    scores = np.where(seen, scores, -np.inf)
    return np.einsum("hij,jhs->ihs", softmax(scores), v).reshape(t, -1)


def gpt2_logits(config, tensors, tokens):
    w = {n: x.astype(np.float64) for n, x in tensors.items()}
    heads, t = config["n_head"], len(tokens)

    def norm(x, name):
        d = x - x.mean(-1, keepdims=True)
        s = d / np.sqrt((d * d).mean(-1, keepdims=True) + config["layer_norm_epsilon"])
        return s * w[name + ".weight"] + w[name + ".bias"]

    def linear(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][:t]
    for i in range(config["n_layer"]):
        p = "transformer.h.%d." % i
        q, k, v = np.split(linear(norm(x, p + "ln_1"), p + "attn.c_attn"), 3, -1)
        q, k, v = (a.reshape(t, heads, -1) for a in (q, k, v))
        x = x + linear(attend(q, k, v), p + "attn.c_proj")
        h = linear(norm(x, p + "ln_2"), p + "mlp.c_fc")
        h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h ** 3)))
        x = x + linear(h, p + "mlp.c_proj")
    head = w.get("lm_head.weight", w["transformer.wte.weight"])
    return norm(x, "transformer.ln_f") @ head.T


def stretched(f, base, size, context, rope):
    """Angles of one position f [size / 2] by the papers of the kinds, and a gain."""
    kind, factor = rope.get("rope_type"), rope.get("factor", 1.0)
    original = rope.get("original_max_position_embeddings", context)
    if kind == "linear":
        return f / factor, 1.0
    if kind == "llama3":
        turns = original * f / (2 * np.pi)
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        keep = np.clip((turns - low) / (high - low), 0, 1)
        return keep * f + (1 - keep) * f / factor, 1.0
    if kind == "yarn":
        def index(turns):
            return size * np.log(original / (turns * 2 * np.pi)) / (2 * np.log(base))
        begin, end = max(np.floor(index(32)), 0), min(np.ceil(index(1)), size - 1)
        ramp = np.clip((np.arange(size // 2) - begin) / (end - begin), 0, 1)
        return ramp * f / factor + (1 - ramp) * f, 0.1 * np.log(factor) + 1
    return f, 1.0


def rotate(x, config):
    """x [t, heads, size]: element i goes with i + size / 2."""
    t, _, size = x.shape
    base = config["rope_theta"]
    f, gain = stretched(base ** (-np.arange(0, size, 2) / size), base, size,
                        config["max_position_embeddings"], config.get("rope_scaling", {}))
    angle = np.outer(np.arange(t), f)
    cos, sin = (gain * g(np.concatenate([angle, angle], -1))[:, None]
                for g in (np.cos, np.sin))
    half = np.concatenate([-x[..., size // 2:], x[..., :size // 2]], -1)
    return x * cos + half * sin


def llama_logits(config, tensors, tokens):
    w = {n: x.astype(np.float64) for n, x in tensors.items()}
    heads, kv, t = (config["num_attention_heads"], config["num_key_value_heads"],
                    len(tokens))
    window = config.get("sliding_window", 0)

    def linear(x, name):
        return x @ w[name + ".weight"].T + w.get(name + ".bias", 0)

    def norm(x, name):
        return w[name] * x / np.sqrt((x * x).mean(-1, keepdims=True) +
                                     config["rms_norm_eps"])

    x = w["model.embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        p = "model.layers.%d." % i
        a = norm(x, p + "input_layernorm.weight")
        q, k, v = (linear(a, p + "self_attn.%s_proj" % n).reshape(t, c, -1)
                   for n, c in (("q", heads), ("k", kv), ("v", kv)))
        if config["model_type"] == "qwen3":
            q, k = (norm(y, p + "self_attn.%s_norm.weight" % n)
                    for n, y in (("q", q), ("k", k)))
        a = attend(rotate(q, config), rotate(k, config), v,
                   window if i >= config.get("max_window_layers", 0) else 0)
        x = x + linear(a, p + "self_attn.o_proj")
        a = norm(x, p + "post_attention_layernorm.weight")
        gate, up = (linear(a, p + "mlp.%s_proj" % n) for n in ("gate", "up"))
        x = x + linear(gate / (1 + np.exp(-gate)) * up, p + "mlp.down_proj")
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return norm(x, "model.norm.weight") @ head.T


def logits(config, tensors, tokens):
    return (gpt2_logits if config["model_type"] == "gpt2" else llama_logits)(
        config, tensors, tokens)


# ---- libstint ----

class GeneratorDesc(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_int), ("tokens", ctypes.c_int64),
                ("temperature", ctypes.c_double), ("top_k", ctypes.c_int64),
                ("top_p", ctypes.c_double), ("seed", ctypes.c_uint64),
                ("memory_bytes", ctypes.c_size_t), ("weight_bits", ctypes.c_int)]


def library(path):
    lib = ctypes.CDLL(path)
    lib.stint_last_error.restype = ctypes.c_char_p
    lib.stint_generator_logits.restype = ctypes.POINTER(ctypes.c_float)
    return lib


def stint_logits(lib, path, tokens, vocabulary, bits=0):
    """Of every position, reading the tokens one after the other; bits of weights."""
    def need(status):
        if status:
            raise RuntimeError(lib.stint_last_error().decode())

    model, generator = ctypes.c_void_p(), ctypes.c_void_p()
    need(lib.stint_text_model_open(path.encode(), ctypes.byref(model)))
    need(lib.stint_generator_create(model, 
        ctypes.byref(GeneratorDesc(threads=2, weight_bits=bits)), ctypes.byref(generator)))
    lib.stint_text_model_close(model)
    rows = []
    for n in range(1, len(tokens) + 1):
        need(lib.stint_generator_prompt(generator, (ctypes.c_int32 * n)(*tokens[:n]),
                                        ctypes.c_int64(n)))
        at = lib.stint_generator_logits(generator)
        rows.append(np.ctypeslib.as_array(at, (vocabulary,)).copy())
    lib.stint_generator_destroy(generator)
    return np.array(rows)


def check(what, got, want):
    worst = np.abs(got - want).max() / np.abs(want).max()
    print("%-44s worst difference %.1e of the largest logit" % (what, worst))
    assert got.shape == want.shape and worst < 1e-4, what
