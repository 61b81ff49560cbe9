#!/usr/bin/env python3
"""Fine-tuning beside its peers: memory, time and what is learnt. Results are kept in --state,
a JSON file, line by line; a part that was done is not done again.

    bench/tune_bench.py [--stint PROGRAM] [--torch PYTHON] [--state FILE] [--rounds N] [--small] PART...

    memory-model   the ten published budgets and two more, mcunet's from our own layers   2 s
    budgets        15 budgets of each of mcunet, resnet18, gpt and llama: peak, plan, gain
                   (--images FOLDER or TAR, --text FILE; a few hundred pictures and 200 KB
                   are enough, as each of 60 runs evaluates its test part)             15 min
    int8           frozen weights in a byte against float32 on a small gpt (--text)    1 min
    mcunet         mcunet (--weights mcunet-5fps.pkl) to --images at 128 pixels, the classifier
                   first, then sparse, full, last, bias, four rates each; peak and accuracy,
                   --seeds 3 (with 2,000 pictures and 3 epochs 15 min)                   2 h
    text           a gpt of --text FILE goes on with --more FILE, equal seconds: full, last,
                   bias, LoRA r8 and sparse over one grid of rates, --seeds 3          90 min
    gpt2           a step of GPT-2 124M, 4 x 256: attention and c_fc of the last four blocks
                   beside full and LoRA r8, ours and PyTorch (--torch)                  15 min
    mcunet-step    a step of mcunet, batch 8, the scheme of 99 KB, likewise              3 min
    llama          a Llama of 1.1 billion random weights, int8, last 4 blocks, SGD, 256
                   tokens: the peak (needs 10 GB of disk)                               20 min

--small makes everything so little that it only shows that it runs. Parts that measure time
go A B A B and print every pair; on a loaded machine only the ratios mean anything."""
import argparse
import json
import os
import pickle
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Stages of mcunet-5fps: expansion, channels, window, stride, repeats; the stem has 16.
MCUNET = [16, [1, 8, 3, 1, 1], [4, 16, 3, 2, 1], [3, 16, 3, 1, 1], [3, 24, 7, 2, 1],
          [5, 24, 3, 1, 1], [5, 40, 3, 2, 1], [4, 40, 7, 1, 1], [4, 48, 5, 1, 1],
          [3, 48, 3, 1, 1], [4, 48, 3, 1, 1], [5, 96, 7, 2, 1], [4, 96, 5, 1, 2],
          [6, 160, 3, 1, 1]]
# Published schemes: biases of the last so many convolutions, shares of weights by number.
SCHEMES = {
    "49.8": (20, {24: .25, 27: .5, 30: .5}), "74.8": (21, {21: 1, 24: 1, 27: .5, 30: 1}),
    "99.8": (22, {21: 1, 24: 1, 27: 1, 30: 1, 36: .125, 39: .25}),
    "125.0": (24, {21: .25, 24: 1, 27: 1, 30: 1, 33: .5, 39: .5}),
    "148.4": (23, {21: 1, 24: 1, 27: 1, 30: 1, 36: 1, 39: .5}),
    "448.0": (12, {i: 1 for i in range(30, 42)}), "1400.4": (42, {i: 1 for i in range(42)})}
# MobileNetV2 of width 0.35, without its last convolution.
MBV2 = [[1, 8, 3, 1, 1], [6, 8, 3, 2, 2], [6, 16, 3, 2, 3], [6, 24, 3, 2, 4], [6, 32, 3, 1, 3],
        [6, 56, 3, 2, 3], [6, 112, 3, 1, 1]]
LATE = (27, 30, 33, 36, 39, 42, 45, 48)
MBV2_SCHEMES = {
    "49.8": (16, {36: 1, 39: 1, 41: .25, 42: .125, 45: .125, 48: .125, 49: .125}),
    "73.9": (20, {32: .125, 33: .5, 36: .5, 39: 1, 41: .25, 42: .125, 45: .125, 48: 1}),
    "99.4": (25, dict(zip(LATE, (1, 1, 1, 1, 1, .125, .5, 1)))),
    "123.6": (31, dict(zip(LATE, (1, 1, 1, 1, 1, .5, 1, 1)))),
    "138.2": (34, dict(zip(LATE, (1,) * 8)))}


class State:
    """What has been measured, by a key that says everything it depends on."""

    def __init__(self, path):
        self.path, self.rows = path, {}
        if path and os.path.exists(path):
            self.rows = json.load(open(path))

    def get(self, key, make):
        if key not in self.rows:
            self.rows[key] = make()
            if self.path:
                with open(self.path + ".new", "w") as f:
                    json.dump(self.rows, f, indent=1)
                os.replace(self.path + ".new", self.path)
        return self.rows[key]


def stint(args, *command, status=0):
    done = subprocess.run([args.stint, *map(str, command), "--json", "-q"], capture_output=True,
                          text=True, cwd=args.folder)
    if done.returncode != status:
        sys.exit("%s: status %d: %s" % (command, done.returncode, done.stderr.strip()))
    return json.loads(done.stdout.splitlines()[-1]) if status == 0 else done.stderr


def torch(args, *command):
    if not args.torch:
        return None
    done = subprocess.run([args.torch, os.path.join(HERE, "tune_pytorch.py"),
                           *map(str, command)], capture_output=True, text=True)
    if done.returncode:
        sys.exit("PyTorch: " + done.stderr.strip())
    return json.loads(done.stdout)


def write(args, name, text):
    path = os.path.join(args.folder, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def mib(n):
    return "%.1f MiB" % (n / 2 ** 20) if n else "?"


# ---- memory model ----

def layers_of(first, rows):
    """(in, out, window, groups, side in, side out) of each convolution, at 128 pixels."""
    side, into, layers = 64, first, [(3, first, 3, 1, 128, 64)]
    for expand, out, size, stride, repeats in rows:
        for i in range(repeats):
            wide, after = into * expand, side // (stride if i == 0 else 1)
            if expand > 1:
                layers.append((into, wide, 1, 1, side, side))
            layers.append((wide, wide, size, wide, side, after))
            layers.append((wide, out, 1, 1, after, after))
            into, side = out, after
    return layers


def kilobytes(layers, biases, shares):
    """A mask bit an output and 32 a bias of the last layers; of a trained weight 8 an input
    that is kept for it and 8 a weight; 8 an input of the classifier."""
    bits = 8 * layers[-1][1]
    for n, (i, o, k, g, before, after) in enumerate(layers):
        if n >= len(layers) - biases:
            bits += 32 * o + after * after * o
        if n in shares:
            part = int(shares[n] * i)
            bits += 8 * (before * before * part + k * k * part * (o if g == 1 else 1))
    return bits / 8192


def memory_model(args, state):
    del state
    layers = layers_of(MCUNET[0], MCUNET[1:])
    recipe = write(args, "mcunet.ini", "[model]\nname = mcunet-5fps\n[data]\nsize = 128\n")
    ours = stint(args, "info", recipe, "--image-size", 128, "--image-channels", 3, "--classes", 1000)
    weights = [t["shape"] for t in ours["tensors"] if len(t["shape"]) == 4]
    if weights != [[k, k, i // g, o] for i, o, k, g, _, _ in layers]:
        sys.exit("memory-model: our network has other layers")
    for name, of, schemes in (("mcunet-5fps", layers, SCHEMES),
                              ("mbv2-w0.35", layers_of(16, MBV2), MBV2_SCHEMES)):
        for want, (biases, shares) in schemes.items():
            have = "%.1f" % kilobytes(of, biases, shares)
            print("memory-model: %s, published %s KB, ours %s KB  %s" %
                  (name, want, have, "ok" if have == want else "DIFFERS"))


# ---- models to begin with ----

def plain_pickle(path):
    """The published weights: a pickle of NumPy arrays and plain values, nothing else."""
    allowed = {("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"),
               ("numpy", "dtype"), ("_codecs", "encode"),
               ("numpy.core.multiarray", "scalar")}

    class Reader(pickle.Unpickler):
        def find_class(self, module, name):
            if (module, name) not in allowed:
                raise ValueError("%s.%s in %s" % (module, name, path))
            return super().find_class(module, name)

    import io
    with zipfile.ZipFile(path) as z:
        return Reader(io.BytesIO(z.read("archive/data.pkl"))).load()


def write_tensors(path, tensors, texts):
    head, at = {"__metadata__": texts}, 0
    for name, (shape, data) in tensors.items():
        head[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, data in tensors.values():
            f.write(data)


def mcunet_model(args):
    """The published network as a model file of ours, its weights made float32."""
    import numpy as np
    path = os.path.join(args.folder, "mcunet.safetensors")
    if os.path.exists(path):
        return path
    d = plain_pickle(args.weights)
    tensors = {}

    def add(name, layer, dense=False):
        p = layer["params"]
        scale = np.asarray(p["w_scales"], np.float32).reshape(-1)
        w = p["weight"].astype(np.float32) * scale.reshape(-1, 1, 1, 1)
        b = p["bias"].astype(np.float32) * scale * np.float32(p["x_scale"])
        w = w[:, :, 0, 0].T if dense else w.transpose(2, 3, 1, 0)
        for end, x in (("weight", w), ("bias", b)):
            tensors[name + "." + end] = (x.shape, np.ascontiguousarray(x).tobytes())

    add("conv_stem", d["first_conv"])
    names = [(s, i) for s, row in enumerate(MCUNET[1:]) for i in range(row[4])]
    for (s, i), block in zip(names, d["blocks"]):
        widens = block["pointwise1"] is not None
        if widens:
            add("blocks.%d.%d.conv_pw" % (s, i), block["pointwise1"])
        add("blocks.%d.%d.conv_dw" % (s, i), block["depthwise"])
        add("blocks.%d.%d.%s" % (s, i, "conv_pwl" if widens else "conv_pw"), block["pointwise2"])
    add("classifier", d["classifier"], dense=True)
    write_tensors(path, tensors, {
        "stint.version": "bench", "stint.kind": "model", "stint.numerics": "7",
        "network": "mcunet-5fps", "classes": json.dumps([str(i) for i in range(1000)]),
        "image": "128 128 3", "mean": "0.5 0.5 0.5", "deviation": "0.5 0.5 0.5",
        "recipe": "[model]\nname = mcunet-5fps\n[data]\nsize = 128\nchannels = 3\n"})
    return path


def trained(args, name, text):
    """A model that a recipe makes here, once."""
    out = os.path.join(args.folder, "runs", name)
    if not os.path.exists(os.path.join(out, "model.safetensors")):
        stint(args, "train", write(args, name + ".ini", text), "--out", out)
    return out


def text_recipe(family, text, depth, width, heads, context, steps, batch=4, lr=1e-3):
    return ("[model]\nname = %s\ndepth = %d\nwidth = %d\nheads = %d\ncontext = %d\n"
            "[data]\npath = %s\ntokenizer = byte\n[train]\nsteps = %d\nbatch = %d\nshards = 1\n"
            "[optimizer]\nname = adamw\nlr = %g\n" %
            (family, depth, width, heads, context, text, steps, batch, lr))


# ---- budgets ----

def budgets(args, state):
    small = args.small
    bases = [("gpt", ["--batch", 4, "--shards", 1, "--data", args.text]),
             ("llama", ["--batch", 4, "--shards", 1, "--data", args.text])]
    if args.images:
        image = ["--batch", 8, "--shards", 1, "--data", args.images]
        bases = [("resnet18", image), ("mcunet", image)] + bases
    for name, flags in bases:
        if name in ("gpt", "llama"):
            sizes = (2, 64, 4, 32, 2) if small else (6, 256, 8, 128, 5)
            base = trained(args, "budget-" + name, text_recipe(name, args.text, *sizes))
        elif name == "mcunet" and args.weights:
            base = mcunet_model(args)
        else:
            net = "mcunet-5fps" if name == "mcunet" else name
            base = trained(args, "budget-" + name,
                           "[model]\nname = %s\n%s[data]\npath = %s\nsize = %d\n[train]\nsteps = 1"
                           "\nepochs = 1\nbatch = 8\nshards = 1\n" %
                           (net, "width = 16\n" if small else "", args.images,
                            32 if small else 128))
        plan = stint(args, "finetune", base, "--what", "sparse", "--plan", *flags)
        least, full = plan["smallest_bytes"], plan["full_peak_bytes"]
        count, last = 3 if small else 15, -1.0
        for i in range(count):
            budget = int(least + (full - least) * (i + 1) / count) + 600000

            def one():
                r = stint(args, "finetune", base, "--memory", budget, "--steps", 3, "-j", 2,
                          "--out", "runs/budget", "--force", *flags)
                return {"peak": r["peak_rss_bytes"], "plan": r["planned_peak_bytes"],
                        "gain": sum(t["gain"] or 0 for t in r["scheme"]),
                        "trained": r["trained_parameters"]}
            r = state.get("budgets %s %d/%d %d" % (name, i, count, budget), one)
            ratio = r["plan"] / r["peak"] if r["peak"] else float("nan")
            print("budgets: %-9s %2d  budget %s  peak %s  plan %s (%.3f)  gain %.4g  %s" %
                  (name, i + 1, mib(budget), mib(r["peak"]), mib(r["plan"]), ratio, r["gain"],
                   "ok" if r["peak"] <= budget and r["gain"] >= last and ratio <= 1.03
                   else "kept, plan above 3 %" if r["peak"] <= budget and r["gain"] >= last
                   else "FAILS"))
            last = r["gain"]


# ---- int8 ----

def int8(args, state):
    steps = 40 if args.small else 400
    base = trained(args, "int8-base", text_recipe("gpt", args.text, 4, 128, 4, 64, steps))
    flags = ["--data", args.text, "--tensors", "h.3.*", "--batch", 4, "--shards", 1, "--steps",
             20 if args.small else 200, "--seed", 1]
    for kind in ("f32", "int8"):
        r = state.get("int8 %s %d" % (kind, steps), lambda: stint(
            args, "finetune", base, *flags, "--frozen", kind, "--out", "runs/" + kind, "--force"))
        print("int8: %-4s test loss %.5f, planned %s, peak %s" %
              (kind, r["test_loss"], mib(r["planned_peak_bytes"]), mib(r["peak_rss_bytes"])))


# ---- mcunet to other pictures ----

def mcunet_first(args, base, flags, seed):
    """The classifier alone for an epoch: a new one's gradients undo a network without norms."""
    out = os.path.join(args.folder, "runs", "mcunet-first-%d" % seed)
    if not os.path.exists(os.path.join(out, "model.safetensors")):
        stint(args, "finetune", base, *flags, "--epochs", 1, "--what", "last", "--lr", "1e-2",
              "--seed", seed, "--out", out)
    return out


def mcunet(args, state):
    base = mcunet_model(args)
    small = args.small
    epochs, seeds = (1, 1) if small else (args.epochs, args.seeds)
    flags = ["--data", args.images, "--batch", 8, "--shards", 1, "-j", 2]
    whole = stint(args, "finetune", base, "--what", "full", "--plan", *flags)
    rates = ("1e-3",) if small else ("3e-4", "1e-3", "3e-3", "1e-2")
    firsts = [mcunet_first(args, base, flags, seed) for seed in range(1, seeds + 1)]
    idle = stint(args, "eval", firsts[0], "--data", args.images, "--batch", 8, "-j", 2,
                 "--memory", "1G")["peak_rss_bytes"]
    print("mcunet: evaluation takes %s" % mib(idle))
    budget = int(idle + (whole["planned_peak_bytes"] - idle) / 6)
    kinds = {"sparse": ["--memory", budget], "full": [], "last": ["--what", "last"],
             "bias": ["--what", "bias"]}
    for kind, more in kinds.items():
        means = {}
        for rate in rates:
            scores = []
            for seed, first in enumerate(firsts, 1):
                r = state.get("mcunet %s %s %d %d" % (kind, rate, epochs, seed), lambda: stint(
                    args, "finetune", first, *flags, *more, "--epochs", epochs, "--lr", rate,
                    "--set", "optimizer.clip=1", "--seed", seed, "--out", "runs/mcunet",
                    "--force"))
                scores.append(100 * r["test_accuracy"])
                print("mcunet: %-6s rate %s seed %d  accuracy %.2f  peak %s  step %.3f s" %
                      (kind, rate, seed, scores[-1], mib(r["peak_rss_bytes"]), r["step_s"]))
            means[rate] = statistics.mean(scores)
        print("mcunet: %-6s best rate, mean of seeds %.2f, peak above evaluation's %s" %
              (kind, max(means.values()), mib(r["peak_rss_bytes"] - idle)))


# ---- text ----

def text(args, state):
    small = args.small
    sizes = (2, 64, 4, 32, 30) if small else (6, 256, 8, 128, 3000)
    base = trained(args, "text-base", text_recipe("gpt", args.text, *sizes, batch=8))
    seconds = 2 if small else args.seconds
    rates = ("1e-3",) if small else ("1e-4", "3e-4", "1e-3", "3e-3")
    probe = ["--data", args.more, "--batch", 8, "--shards", 1, "-j", 2]
    full = stint(args, "finetune", base, "--what", "full", "--plan", *probe)
    kinds = {"full": ["--what", "full"], "last": ["--what", "last"], "bias": ["--what", "bias"],
             "lora": ["--what", "lora", "--rank", 8],
             "sparse": ["--memory", int(full["full_peak_bytes"] * 0.9), "--step-time", "0.6x"]}
    for kind, more in kinds.items():
        step_s = state.get("text step %s" % kind, lambda: stint(
            args, "finetune", base, *probe, *more, "--steps", 10, "--out", "runs/probe",
            "--force"))["step_s"]
        steps = max(int(seconds / step_s), 5)
        best = []
        for seed in range(1, (1 if small else args.seeds) + 1):
            losses = {rate: state.get("text %s %s %d %d" % (kind, rate, seed, steps),
                                      lambda: stint(args, "finetune", base, *probe, *more,
                                                    "--steps", steps, "--lr", rate, "--seed",
                                                    seed, "--out", "runs/text", "--force"))
                      ["test_loss"] for rate in rates}
            best.append(min(losses.values()))
            print("text: %-6s seed %d  %d steps of %.3f s  %s" % (kind, seed, steps, step_s, "  ".join(
                "%s: %.4f" % x for x in losses.items())))
        print("text: %-6s best rate, mean of seeds %.4f" % (kind, statistics.mean(best)))


# ---- steps beside PyTorch ----

def beside(args, state, name, base, flags, kinds, peer):
    """Ours and the peer's in turns, and the ratio of each pair."""
    rounds = 1 if args.small else args.rounds
    for kind, more in kinds.items():
        for i in range(rounds):
            ours = state.get("%s ours %s %d" % (name, kind, i), lambda: stint(
                args, "finetune", base, *flags, *more, "--out", "runs/step", "--force"))
            theirs = state.get("%s torch %s %d" % (name, kind, i), lambda: torch(args, *peer(kind)))
            line = "%s: %-7s ours %.3f s, %s" % (name, kind, ours["step_s"],
                                                 mib(ours["peak_rss_bytes"]))
            if theirs:
                line += "  PyTorch %s %.3f s, %s  ratio %.2f" % (
                    theirs["torch"], theirs["step_s"], mib(theirs["peak_rss_bytes"]),
                    theirs["step_s"] / ours["step_s"])
            print(line)


def gpt2(args, state):
    size = (4, 64, 4, 512, 2, 32) if args.small else (12, 768, 12, 50257, 4, 256)
    depth, width, heads, vocabulary, batch, context = size
    words = write(args, "words.txt", " ".join(
        "%x" % random.Random(1).randrange(1 << 30) for _ in range(30000)))
    base = trained(args, "gpt2-base", "[model]\nname = gpt\ndepth = %d\nwidth = %d\nheads = %d\n"
                   "context = %d\nvocabulary = %d\n[data]\npath = %s\ntokenizer = byte\n[train]\n"
                   "steps = 1\nbatch = 1\nshards = 1\n" %
                   (depth, width, heads, context, vocabulary, words))
    steps = 3 if args.small else 6
    lowest = max(depth - 4, 0)
    blocks = "h.%d-%d" % (lowest, depth - 1)
    scheme = "%s.attn.*.weight,%s.mlp.c_fc.weight" % (blocks, blocks)
    flags = ["--data", words, "--batch", batch, "--shards", 1, "--steps", steps, "-j", 2, "--set",
             "optimizer.name=sgd", "--set", "optimizer.momentum=0", "--lr", "1e-4"]
    kinds = {"scheme": ["--tensors", scheme, "--set", "update.at_once=true"],
             "full": ["--what", "full"], "lora": ["--what", "lora", "--rank", 8]}
    beside(args, state, "gpt2", base, flags, kinds,
           lambda kind: ("gpt", kind, depth, width, heads, vocabulary, batch, context, steps))


def mcunet_name(n):
    """Our weight of a published number of a convolution that widens."""
    blocks = [(s, i) for s, row in enumerate(MCUNET[1:]) for i in range(row[4])]
    return "blocks.%d.%d.conv_pw.weight" % blocks[(n - 3) // 3 + 1]


def mcunet_step(args, state):
    base = mcunet_model(args)
    words = {1: "", .5: "@1/2", .25: "@1/4", .125: "@1/8"}
    biases, shares = SCHEMES["99.8"]
    del biases  # of the last 22 convolutions: from blocks.6 on
    scheme = ",".join([mcunet_name(n) + words[s] for n, s in shares.items()] +
                      ["blocks.7-12.*.bias", "blocks.6.0.conv_pwl.bias", "classifier.*"])
    flags = ["--data", args.images, "--batch", 8, "--shards", 1, "--steps", 5 if args.small else 20,
             "-j", 2, "--set", "optimizer.momentum=0"]
    kinds = {"scheme": ["--tensors", scheme, "--set", "update.at_once=true"],
             "full": ["--what", "full"]}
    beside(args, state, "mcunet-step", base, flags, kinds,
           lambda kind: ("mcunet", kind, json.dumps(MCUNET), 8, 128, 5 if args.small else 20))
    r = {k: state.get("mcunet-step ours %s 0" % k, None) for k in kinds}
    print("mcunet-step: our step is %.2f of our full one; its arithmetic %.2f" %
          (r["scheme"]["step_s"] / r["full"]["step_s"], r["scheme"]["step_share"]))


# ---- a large Llama ----

def llama_folder(args):
    """A folder in Hugging Face's layout with random weights in BF16, a tensor at a time."""
    size = (4, 64, 4, 2, 176, 512) if args.small else (22, 2048, 32, 4, 5632, 32000)
    depth, width, heads, kv, hidden, vocabulary = size
    folder = os.path.join(args.folder, "llama-random")
    os.makedirs(folder, exist_ok=True)
    head_size = width // heads
    shapes = {"model.embed_tokens.weight": (vocabulary, width), "model.norm.weight": (width,),
              "lm_head.weight": (vocabulary, width)}
    for i in range(depth):
        p = "model.layers.%d." % i
        shapes.update({
            p + "input_layernorm.weight": (width,), p + "post_attention_layernorm.weight": (width,),
            p + "self_attn.q_proj.weight": (width, width),
            p + "self_attn.k_proj.weight": (kv * head_size, width),
            p + "self_attn.v_proj.weight": (kv * head_size, width),
            p + "self_attn.o_proj.weight": (width, width), p + "mlp.gate_proj.weight": (hidden, width),
            p + "mlp.up_proj.weight": (hidden, width), p + "mlp.down_proj.weight": (width, hidden)})
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
                   "hidden_size": width, "intermediate_size": hidden, "num_hidden_layers": depth,
                   "num_attention_heads": heads, "num_key_value_heads": kv,
                   "vocab_size": vocabulary, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
                   "hidden_act": "silu", "rope_theta": 10000.0, "tie_word_embeddings": False,
                   "torch_dtype": "bfloat16"}, f)
    head, at = {}, 0
    for name, shape in shapes.items():
        n = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        head[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    draw = random.Random(2)
    # A few thousand small numbers, again and again: only sizes and times count.
    some = b"".join(struct.pack("<H", struct.unpack("<I", struct.pack("<f", draw.gauss(0, .02)))[0]
                                >> 16) for _ in range(65536))
    one = struct.pack("<H", 0x3f80)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            n = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
            data = one * (n // 2) if len(shape) == 1 else some
            for begin in range(0, n, len(data)):
                f.write(data[:min(len(data), n - begin)])
    return folder, depth


def llama(args, state):
    folder, depth = llama_folder(args)
    # Any text will do: its bytes are ids below the vocabulary. A short one, since all of
    # its test part is evaluated at the end.
    words = write(args, "short.txt", open(args.text, encoding="latin-1").read()[:6000])
    for frozen in ("int8",) if not args.small else ("int8", "f32"):
        r = state.get("llama %s %d" % (frozen, depth), lambda: stint(
            args, "finetune", folder, "--data", words, "--set", "data.tokenizer=byte",
            "--tensors", "h.%d-%d.*" % (depth - min(4, depth - 1), depth - 1), "--frozen", frozen,
            "--window", 16 if args.small else 256, "--batch", 1, "--shards", 1, "--steps", 2,
            "--set", "optimizer.name=sgd", "--set", "optimizer.momentum=0", "--set",
            "update.at_once=true", "-j", 2, "--out", "runs/llama-" + frozen, "--force"))
        print("llama: frozen %s: planned %s, peak %s, a step of %.1f s, %d of %d parameters" %
              (frozen, mib(r["planned_peak_bytes"]), mib(r["peak_rss_bytes"]), r["step_s"],
               r["trained_parameters"], r["parameters"]))


PARTS = {"memory-model": memory_model, "budgets": budgets, "int8": int8, "mcunet": mcunet,
         "text": text, "gpt2": gpt2, "mcunet-step": mcunet_step, "llama": llama}


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("parts", nargs="+", choices=sorted(PARTS), metavar="PART")
    p.add_argument("--stint", default=os.path.join(HERE, "..", "build", "release", "stint"))
    p.add_argument("--torch", help="a Python with PyTorch, for the peer")
    p.add_argument("--state", help="JSON file of what is done")
    p.add_argument("--folder", help="where models and runs are kept (default: a new one)")
    p.add_argument("--images")
    p.add_argument("--text")
    p.add_argument("--more")
    p.add_argument("--weights")
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--rounds", type=int, default=3, help="pairs of runs where time is measured")
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--seconds", type=float, default=120)
    p.add_argument("--small", action="store_true")
    args = p.parse_args()
    for name in ("stint", "images", "text", "more", "weights", "state", "folder"):
        if getattr(args, name):
            setattr(args, name, os.path.abspath(getattr(args, name)))
    if args.folder:
        os.makedirs(args.folder, exist_ok=True)
    else:
        args.folder = tempfile.mkdtemp(prefix="stint-tune-")
    needs = {"budgets": ["text"], "int8": ["text"], "mcunet": ["images", "weights"],
             "text": ["text", "more"], "mcunet-step": ["images", "weights"], "llama": ["text"]}
    for part in args.parts:
        for need in needs.get(part, []):
            if not getattr(args, need):
                p.error("%s wants --%s" % (part, need))
    state = State(args.state)
    for part in args.parts:
        PARTS[part](args, state)


if __name__ == "__main__":
    main()
