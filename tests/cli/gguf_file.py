"""GGUF files for tests, written and read here by the format's description: numbers in
blocks, keys, tensors, and models of hf_model.py under GGUF's names."""

import struct

import numpy as np

TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34),
         "Q4_K": (12, 256, 144), "Q6_K": (14, 256, 210), "BF16": (30, 1, 2)}
NAMES = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
         "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
         "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv",
         "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}


def random_blocks(rng, shape, kind):
    """Bytes of a tensor [rows, n] of a type, and its values number by number."""
    _, block, size = TYPES[kind]
    raw = rng.integers(0, 256, (shape[0], shape[1] // block, size), np.uint8)
    for at in {"Q4_0": [0], "Q8_0": [0], "Q4_K": [0, 2], "Q6_K": [208]}[kind]:
        scale = (rng.random(raw.shape[:2]) * 2e-3).astype(np.float16)
        raw[..., at:at + 2] = scale.view(np.uint8).reshape(raw.shape[:2] + (2,))
    values = np.stack(values_of(raw.reshape(-1, size).T, kind), 1)
    return raw.tobytes(), values.astype(np.float32).reshape(shape)


def signed(byte):
    return byte - 256 * (byte > 127)


def values_of(raw, kind):
    """Number by number of a block, each product rounded to float32. raw [size, blocks]: a
    byte of all blocks is a row, so a number is a row of those of all blocks."""
    f, b = np.float32, raw.astype(np.int64)

    def half(at):
        pair = np.ascontiguousarray(raw[at:at + 2].T)
        return pair.view(np.float16)[:, 0].astype(f)

    if kind == "Q8_0":
        d = half(0)
        return [d * f(signed(x)) for x in b[2:]]
    if kind == "Q4_0":
        d = half(0)
        return [d * f((b[2 + i % 16] >> (0 if i < 16 else 4) & 15) - 8) for i in range(32)]
    d, m = half(0 if kind == "Q4_K" else 208), half(2)
    out = []
    for i in range(256):
        if kind == "Q4_K":
            g, s = i // 32, b[4:16]
            scale = s[g] & 63 if g < 4 else s[g + 4] & 15 | (s[g - 4] >> 6) << 4
            least = s[g + 4] & 63 if g < 4 else s[g + 4] >> 4 | (s[g] >> 6) << 4
            q = b[16 + g // 2 * 32 + i % 32] >> (4 if g % 2 else 0) & 15
            out.append(d * f(scale) * f(q) - m * f(least))
        else:
            h, r = divmod(i, 128)
            low = b[h * 64 + r % 64] >> (0 if r < 64 else 4) & 15
            high = b[128 + h * 32 + r % 32] >> 2 * (r // 32) & 3
            out.append(d * f(signed(b[192 + i // 16])) * f((low | high << 4) - 32))
    return out


def rounded(x, bits):
    """x [rows, n] as blocks of Q8_0 or Q4_0 along n have it."""
    b = x.astype(np.float32).reshape(x.shape[0], -1, 32)
    if bits == 8:
        d = np.abs(b).max(-1, keepdims=True) / np.float32(127)
    else:
        at = np.abs(b).argmax(-1, keepdims=True)
        d = np.take_along_axis(b, at, -1) / np.float32(-8)
    inverse = np.divide(np.float32(1), d, where=d != 0, out=np.zeros_like(d))
    q = b * inverse
    q = np.trunc(q + np.copysign(np.float32(0.5), q)) if bits == 8 else (
        np.clip(np.trunc(q + np.float32(8.5)), 0, 15) - 8)
    return (d.astype(np.float16).astype(np.float32) * q).astype(np.float32).reshape(x.shape)


def plain(x, kind):
    if kind == "F32":
        return x.astype("<f4").tobytes(), x.astype(np.float32)
    if kind == "F16":
        return x.astype(np.float16).tobytes(), x.astype(np.float16).astype(np.float32)
    bits = x.astype(np.float32).view(np.uint32) >> 16
    return bits.astype("<u2").tobytes(), (bits << 16).astype(np.uint32).view(np.float32)


# ---- files ----

def text(word):
    data = word if isinstance(word, bytes) else word.encode()
    return struct.pack("<Q", len(data)) + data


def value(x):
    if isinstance(x, bool):
        return struct.pack("<IB", 7, x)
    if isinstance(x, int):
        return struct.pack("<II", 4, x)
    if isinstance(x, float):
        return struct.pack("<If", 6, x)
    if isinstance(x, str):
        return struct.pack("<I", 8) + text(x)
    kind, code = (8, None) if isinstance(x[0], str) else ((6, "f") if isinstance(x[0], float)
                                                          else (5, "i"))
    body = b"".join(map(text, x)) if kind == 8 else struct.pack("<%d%s" % (len(x), code), *x)
    return struct.pack("<IIQ", 9, kind, len(x)) + body


def write(path, keys, tensors, version=3):
    """keys {name: value}; tensors {name: (type, shape, bytes)}, outermost first."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    head += b"".join(text(k) + value(v) for k, v in keys.items())
    data = b""
    for name, (kind, shape, raw) in tensors.items():
        head += text(name) + struct.pack("<I%dQIQ" % len(shape), len(shape), *shape[::-1],
                                         TYPES[kind][0], len(data))
        data += raw + b"\0" * (-len(raw) % 32)
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % 32) + data)


def write_parts(path, keys, tensors, parts):
    """PATH-00001-of-0000N.gguf and so on, tensors dealt out; the first one's path."""
    names = list(tensors)
    for i in range(parts):
        own = {"split.no": i, "split.count": parts, "split.tensors.count": len(names)}
        write("%s-%05d-of-%05d.gguf" % (path, i + 1, parts), {**keys, **own} if i == 0 else own,
              {n: tensors[n] for n in names[i::parts]})
    return "%s-00001-of-%05d.gguf" % (path, parts)


def turned(w, heads):
    """Rows of a llama's queries or keys, the halves of a head in turns."""
    return w.reshape(heads, 2, -1, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def turned_back(w, heads):
    return w.reshape(heads, -1, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def name_of(name):
    base, last = name.rsplit(".", 1)
    base = base.replace("transformer.", "").replace("model.", "")
    whole = {"embed_tokens": "token_embd", "wte": "token_embd", "wpe": "position_embd",
             "norm": "output_norm", "ln_f": "output_norm", "lm_head": "output"}
    if base in whole:
        return "%s.%s" % (whole[base], last)
    _, block, rest = base.split(".", 2)
    return "blk.%s.%s.%s" % (block, NAMES[rest], last)


def write_model(path, config, tensors, kind, rng, more=None, parts=0):
    """A model of hf_model.py with matrices of a type; the values that a reader gets."""
    family = config["model_type"]
    gpt = family == "gpt2"
    heads = config["n_head" if gpt else "num_attention_heads"]
    keys = {"general.architecture": family}
    sizes = {"context_length": "n_positions", "embedding_length": "n_embd",
             "block_count": "n_layer", "attention.head_count": "n_head",
             "attention.layer_norm_epsilon": "layer_norm_epsilon"} if gpt else {
        "context_length": "max_position_embeddings", "embedding_length": "hidden_size",
        "block_count": "num_hidden_layers", "feed_forward_length": "intermediate_size",
        "attention.head_count": "num_attention_heads",
        "attention.head_count_kv": "num_key_value_heads",
        "attention.layer_norm_rms_epsilon": "rms_norm_eps", "rope.freq_base": "rope_theta"}
    keys.update({"%s.%s" % (family, k): config[v] for k, v in sizes.items()})
    if gpt:
        keys["gpt2.feed_forward_length"] = config["n_inner"]
    if "head_dim" in config:
        keys[family + ".attention.key_length"] = config["head_dim"]
    keys.update(more or {"tokenizer.ggml.model": "none"})
    rows, values = {}, {}
    for name, x in tensors.items():
        theirs = name_of(name)
        count = {"attn_q": heads, "attn_k": config.get("num_key_value_heads")}.get(
            theirs.split(".")[-2]) if family == "llama" else None
        y = x.T if gpt and x.ndim == 2 and "blk" in theirs else x
        y = turned(y, count) if count else y
        of = kind if y.ndim == 2 and "position" not in theirs else "F32"
        raw, y = (random_blocks(rng, y.shape, of) if TYPES[of][1] > 1
                  else plain(np.ascontiguousarray(y), of))
        rows[theirs] = (of, y.shape if y.ndim == 2 else y.shape, raw)
        y = turned_back(y, count) if count else y
        values[name] = np.ascontiguousarray(y.T if gpt and y.ndim == 2 and "blk" in theirs
                                            else y)
    if parts:
        write_parts(path, keys, rows, parts)
    else:
        write(path, keys, rows)
    return values


def read_tensors(path):
    """{name: (type, array)} of a file whose types are F32, F16 and Q8_0; Q8_0 as (d, q)."""
    with open(path, "rb") as file:
        data = file.read()
    at = 24
    magic, version, tensors, keys = struct.unpack_from("<4sIQQ", data)
    assert magic == b"GGUF" and version == 3

    def take(code):
        nonlocal at
        out = struct.unpack_from("<" + code, data, at)
        at += struct.calcsize("<" + code)
        return out[0] if len(out) == 1 else out

    def word():
        nonlocal at
        length = take("Q")
        at += length
        return data[at - length:at].decode()

    def item(kind):
        if kind == 8:
            return word()
        if kind == 9:
            of, count = take("IQ")
            return [item(of) for _ in range(count)]
        return take({4: "I", 5: "i", 6: "f", 7: "B"}[kind])

    found = {}
    for _ in range(keys):
        key = word()
        found[key] = item(take("I"))
    rows = []
    for _ in range(tensors):
        name, rank = word(), take("I")
        shape = [take("Q") for _ in range(rank)][::-1]
        rows.append((name, shape, take("I"), take("Q")))
    base = at + -at % 32
    out = {}
    for name, shape, kind, offset in rows:
        count, begin = int(np.prod(shape)), base + offset
        assert begin % 32 == 0
        if kind == 8:
            raw = np.frombuffer(data, np.uint8, count // 32 * 34, begin).reshape(-1, 34)
            d = np.ascontiguousarray(raw[:, :2]).view(np.float16).astype(np.float32)
            out[name] = "Q8_0", (d * raw[:, 2:].view(np.int8)).reshape(shape)
        else:
            of = {0: np.float32, 1: np.float16}[kind]
            out[name] = of.__name__, np.frombuffer(data, of, count, begin).reshape(shape)
    return found, out
