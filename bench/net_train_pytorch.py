#!/usr/bin/python3
"""Data-parallel training with PyTorch's DDP over gloo, the peer of `mpirun stint train`.

    net_train_pytorch.py --rank R --ranks 2 --root ADDRESS:PORT --net resnet18|vgg16
                         [--hook none|fp16|powersgd] [--batch 32] [--steps 4]

Random images in memory; networks of step_pytorch.py; one thread a rank. Every rank prints
one JSON object: images_per_s of all ranks (median of the steps after the warm-up). PowerSGD
of rank 2, its compression running from the third step on, so warm up at least 3.
"""
import argparse
import json
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd
from torch.nn.parallel import DistributedDataParallel

import step_pytorch


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rank", type=int, required=True)
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--root", required=True)
    p.add_argument("--net", choices=("resnet18", "vgg16"), default="resnet18")
    p.add_argument("--hook", choices=("none", "fp16", "powersgd"), default="none")
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--warmup", type=int, default=1)
    a = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    host, port = a.root.rsplit(":", 1)
    os.environ.update(MASTER_ADDR=host, MASTER_PORT=port)
    dist.init_process_group("gloo", rank=a.rank, world_size=a.ranks)
    net = (step_pytorch.resnet((2, 2, 2, 2), 64, False, 32, 10) if a.net == "resnet18"
           else step_pytorch.vgg16(32, 10))
    net = net.to(memory_format=torch.channels_last)
    parameters = sum(q.numel() for q in net.parameters())
    # Its sums of several buckets may start in another order on the other rank, which gloo
    # does not survive; one bucket changes none of its bits.
    one_bucket = a.data and a.hook == "powersgd"
    ddp = DistributedDataParallel(net, bucket_cap_mb=1000 if one_bucket else None)
    if a.hook == "fp16":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    if a.hook == "powersgd":
        ddp.register_comm_hook(powersgd.PowerSGDState(None, matrix_approximation_rank=2,
                                                      start_powerSGD_iter=2),
                               powersgd.powerSGD_hook)
    opt = torch.optim.SGD(ddp.parameters(), lr=0.01, momentum=0.9, nesterov=True,
                          weight_decay=5e-4)
    x = torch.randn(a.batch, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (a.batch,))
    times = []
    for _ in range(a.warmup + a.steps):
        start = time.perf_counter()
        opt.zero_grad()
        F.cross_entropy(ddp(x), y).backward()
        opt.step()
        times.append(time.perf_counter() - start)
    middle = sorted(times[a.warmup:])[a.steps // 2]
    print(json.dumps({"images_per_s": a.ranks * a.batch / middle, "median_s": middle,
                      "parameters": parameters, "torch": torch.__version__}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
