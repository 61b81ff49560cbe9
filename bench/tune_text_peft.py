#!/usr/bin/env python3
"""LoRA of a text model by peft, for the seconds that tune_bench.py's text row gives each way.

    PYTHON bench/tune_text_peft.py FOLDER TEXT [--seconds 15] [--rates 1e-4,3e-4,1e-3,3e-3]
                                   [--seed 1] [--window 128] [--batch 8] [--what lora|full|bias]

FOLDER is the text row's base model in Hugging Face's layout, of single bytes (`stint export
hf TEXT-BASE --out FOLDER`). Trains adapters of rank 8 on the products of attention, as
`--what lora --rank 8`, or all parameters, or biases, on the first nine tenths of TEXT, with
AdamW and a rate that falls to 0 by a cosine of the time, as ours by steps, and prints steps, seconds a step and the loss of the last tenth in
windows side by side. PYTHON has torch, transformers and peft; 2 threads."""
import argparse
import math
import time

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM


def parse():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("text")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--rates", default="1e-4,3e-4,1e-3,3e-3")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--window", type=int, default=128)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--what", default="lora", choices=("lora", "full", "bias"))
    return p.parse_args()


def load(args):
    torch.manual_seed(args.seed)
    model = AutoModelForCausalLM.from_pretrained(args.folder, dtype=torch.float32)
    if args.what == "lora":
        parts = [n for n, m in model.named_modules()
                 if n.endswith(("attn.c_attn", "attn.c_proj"))]
        model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=8, lora_alpha=16,
                                                 lora_dropout=0, target_modules=parts))
    elif args.what == "bias":
        for name, p in model.named_parameters():
            p.requires_grad_(name.endswith(".bias"))
    return model


def loss_of(model, ids, window):
    """Every token of the part but its first, in windows side by side."""
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for at in range(0, len(ids) - 1, window):
            x = ids[None, at:at + window + 1]
            total += float(torch.nn.functional.cross_entropy(
                model(x[:, :-1]).logits[0], x[0, 1:], reduction="sum"))
            count += x.shape[1] - 1
    return total / count


def main():
    args = parse()
    torch.set_num_threads(2)
    ids = torch.tensor(list(open(args.text, "rb").read()))
    cut = len(ids) - len(ids) // 10
    train, test = ids[:cut], ids[cut:]
    for rate in args.rates.split(","):
        model = load(args)
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=float(rate), weight_decay=0)
        draw = torch.Generator().manual_seed(args.seed)
        model.train()
        steps, begin = 0, None
        while begin is None or time.monotonic() - begin < args.seconds:
            at = torch.randint(len(train) - args.window - 1, (args.batch,), generator=draw)
            x = torch.stack([train[i:i + args.window + 1] for i in at.tolist()])
            logits = model(x[:, :-1]).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            if begin is not None:
                part = min((time.monotonic() - begin) / args.seconds, 1)
                optimizer.param_groups[0]["lr"] = float(rate) * (1 + math.cos(math.pi * part)) / 2
            optimizer.step()
            if begin is None:  # the first step makes what later ones keep
                begin = time.monotonic()
            else:
                steps += 1
        step_s = (time.monotonic() - begin) / max(steps, 1)
        print(f"peft {args.what} rate {rate} seed {args.seed}: {steps} steps of {step_s:.3f} s, "
              f"loss {loss_of(model, test, args.window):.4f}", flush=True)


main()
