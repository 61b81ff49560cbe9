#!/usr/bin/env python3
"""LoRA adapters beside PEFT's: ours read by peft, peft's read by us, for GPT-2 and Llama in
Hugging Face's layout; and a timm folder beside timm, if it is given.

    PYTHON bench/tune_peft.py [--stint PROGRAM] [--timm NAME]...

PYTHON has torch, transformers and peft (and timm for --timm). Prints, for each model, the largest
difference of logits between peft's model with our adapter and our merged model, and of the
test loss between ours and peft's with an adapter that peft wrote; status 1 where one is above
its limit. About a minute."""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM

CONTEXT, LOGITS, LOSS = 16, 2e-5, 2e-6
RECIPE = """[model]
name = %s
depth = 2
width = 32
heads = 4
kv_heads = %s
context = %d
[data]
path = words.txt
tokenizer = byte
[train]
steps = 40
batch = 4
shards = 1
[optimizer]
name = adamw
lr = 3e-3
"""


def stint(args, *command):
    done = subprocess.run([args.stint, *map(str, command), "--json", "-q"], text=True,
                          capture_output=True, cwd=args.folder)
    if done.returncode:
        sys.exit("%s: status %d: %s" % (command, done.returncode, done.stderr.strip()))
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}


def load(args, folder):
    path = os.path.join(args.folder, folder)
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()


def logits(model, ids):
    with torch.no_grad():
        return model(ids).logits


def loss_of(model, text):
    """Mean over windows as stint eval cuts them: one behind the other."""
    data, total, count = list(text), 0.0, 0
    for at in range(0, len(data) - 1, CONTEXT):
        ids = torch.tensor([data[at:at + CONTEXT + 1]])
        lost = torch.nn.functional.cross_entropy(logits(model, ids[:, :-1])[0], ids[0, 1:],
                                                 reduction="sum")
        total, count = total + float(lost), count + ids.shape[1] - 1
    return total / count


def check(name, what, value, limit):
    print("%-6s %-44s %.3g (limit %.0e)" % (name, what, value, limit))
    return value <= limit


def adapters(args, name):
    with open(os.path.join(args.folder, name + ".ini"), "w") as f:
        f.write(RECIPE % ("gpt" if name == "gpt" else "llama", 4 if name == "gpt" else 2,
                          CONTEXT))
    stint(args, "train", name + ".ini", "-o", name)
    stint(args, "export", "hf", name, "--out", "hf_" + name)
    stint(args, "finetune", name, "--data", "words.txt", "--what", "lora", "--rank", 4, "--alpha",
          12, "--lr", "0.02", "--steps", 20, "--batch", 4, "--shards", 1, "--set",
          "update.attention=false", "-o", "lora_" + name)
    stint(args, "export", "hf", "lora_" + name, "--out", "hf_lora_" + name)
    ids = torch.tensor([list(b"the cat sat on a")])
    with_ours = PeftModel.from_pretrained(load(args, "hf_" + name),
                                          os.path.join(args.folder, "lora_" + name)).eval()
    merged, plain = logits(load(args, "hf_lora_" + name), ids), logits(load(args, "hf_" + name), ids)
    changed = float((merged - plain).abs().max())
    good = check(name, "our adapter in peft, logits beside ours merged",
                 float((logits(with_ours, ids) - merged).abs().max()), LOGITS)
    torch.manual_seed(3)
    parts = (["c_attn", "c_proj", "c_fc"] if name == "gpt" else
             ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])
    theirs = get_peft_model(load(args, "hf_" + name), LoraConfig(
        task_type="CAUSAL_LM", r=4, lora_alpha=8, target_modules=parts, init_lora_weights=False,
        fan_in_fan_out=name == "gpt")).eval()
    theirs.save_pretrained(os.path.join(args.folder, "peft_" + name))
    ours = stint(args, "eval", name, "--adapter", "peft_" + name, "--data", "test.txt",
                 "--split", "all")
    want = loss_of(theirs, open(os.path.join(args.folder, "test.txt"), "rb").read())
    alone = stint(args, "eval", name, "--data", "test.txt", "--split", "all")
    good &= check(name, "peft's adapter in ours, loss beside peft's", abs(ours["loss"] - want),
                  LOSS * max(1, want))
    if changed < 1e-3 or abs(alone["loss"] - ours["loss"]) < 1e-4:
        print("%s: an adapter changes nothing" % name)
        good = False
    return good


def timm_folder(args, name):
    """Random weights as timm saves them, read by us: logits of a picture beside timm's."""
    import timm
    from PIL import Image
    from safetensors.torch import save_file
    torch.manual_seed(5)
    model = timm.create_model(name, num_classes=7).eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.8, 1.2)
            module.weight.data.uniform_(0.8, 1.2)
            module.bias.data.normal_(0, 0.1)
    folder = os.path.join(args.folder, name)
    os.makedirs(folder)
    size, mean, std = 224, [0.48, 0.46, 0.41], [0.23, 0.22, 0.225]
    random.seed(2)
    picture = Image.frombytes("RGB", (size, size), random.randbytes(3 * size * size))
    picture.save(os.path.join(args.folder, "picture.png"))
    x = torch.tensor(list(picture.tobytes()), dtype=torch.float32).reshape(size, size, 3) / 255
    x = ((x - torch.tensor(mean)) / torch.tensor(std)).permute(2, 0, 1)[None]
    with torch.no_grad():  # no class so likely that nothing else counts
        model.get_classifier().weight.data /= model(x).std()
        want = torch.softmax(model(x), 1)[0]
    save_file(model.state_dict(), os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"architecture": name, "num_classes": 7, "pretrained_cfg": {
            "input_size": [3, size, size], "mean": mean, "std": std, "num_classes": 7}}, f)
    stint(args, "import", "hf", name, "--out", name + ".safetensors")
    answer = stint(args, "run", name + ".safetensors", "picture.png", "--top", 7)
    top = {str(t["class"]): t["probability"] for t in answer["predictions"][0]["classes"]}
    worst = max(abs(p - float(want[int(k.split("_")[-1].split()[-1])])) for k, p in top.items())
    return check(name, "probabilities beside timm's, largest %.2f" % want.max(), worst, 2e-5)


def main():
    args = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--stint", default="build/release/stint")
    args.add_argument("--timm", action="append", default=[])
    args = args.parse_args()
    args.stint = os.path.abspath(args.stint)
    random.seed(4)
    words = "the cat sat on a mat and saw the rat run to its den by night".split()
    with tempfile.TemporaryDirectory() as args.folder:
        for name, count in (("words.txt", 600), ("test.txt", 120)):
            with open(os.path.join(args.folder, name), "w") as f:
                f.write(" ".join(random.choice(words) for _ in range(count)) + ".\n")
        good = all([adapters(args, name) for name in ("gpt", "llama")] +
                   [timm_folder(args, name) for name in args.timm])
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
