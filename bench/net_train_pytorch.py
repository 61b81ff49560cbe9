#!/usr/bin/python3
"""Data-parallel training with PyTorch's DDP over gloo, the peer of `mpirun stint train`.

    net_train_pytorch.py --rank R --ranks 2 --root ADDRESS:PORT --net resnet18|vgg16
                         [--hook none|fp16|powersgd] [--batch 32] [--steps 4] [--data DIR]

Networks of step_pytorch.py; one thread and --batch images a rank. Every rank prints one JSON
object: images_per_s of all ranks (median of the steps after the warm-up). PowerSGD of rank 2,
its compression running from the third step on, so warm up at least 3. Random images in memory;
or with --data (train.tar and test.tar of CIFAR-10, needs Pillow) those, by the recipe of
net_link_accuracy.sh, and test_accuracy, test_loss too.
"""
import argparse
import io
import json
import os
import tarfile
import time

import numpy
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd
from torch.nn.parallel import DistributedDataParallel

import step_pytorch


def read_tar(path):
    """Images [n, 3, h, w] as bytes and labels, classes by name."""
    from PIL import Image
    images, names = [], []
    with tarfile.open(path) as tar:
        for member in tar:
            if member.isfile():
                image = Image.open(io.BytesIO(tar.extractfile(member).read()))
                images.append(numpy.asarray(image.convert("RGB")).transpose(2, 0, 1))
                names.append(os.path.basename(os.path.dirname(member.name)))
    classes = {name: i for i, name in enumerate(sorted(set(names)))}
    return (torch.from_numpy(numpy.stack(images)),
            torch.tensor([classes[name] for name in names]))


class Images:
    """Batches of this rank: every rank makes the same order and takes its part of it."""

    def __init__(self, a):
        self.a = a
        self.x, self.y = read_tar(os.path.join(a.data, "train.tar"))
        pixels = self.x.float() / 255
        self.mean = pixels.mean((0, 2, 3)).view(1, 3, 1, 1)
        self.deviation = pixels.std((0, 2, 3)).view(1, 3, 1, 1)
        self.rng = torch.Generator().manual_seed(a.seed)
        self.order = torch.empty(0, dtype=torch.int64)

    def normal(self, x):
        x = (x.float() / 255 - self.mean) / self.deviation
        return x.contiguous(memory_format=torch.channels_last)

    def __call__(self):
        a, all_ranks = self.a, self.a.batch * self.a.ranks
        if len(self.order) < all_ranks:
            self.order = torch.randperm(len(self.y), generator=self.rng)
        mine, self.order = self.order[:all_ranks], self.order[all_ranks:]
        at = torch.randint(0, 9, (all_ranks, 2), generator=self.rng)
        mirror = torch.rand(all_ranks, generator=self.rng) < 0.5
        part = slice(a.rank * a.batch, (a.rank + 1) * a.batch)
        x = F.pad(self.normal(self.x[mine[part]]), (4, 4, 4, 4))
        crops = [i[:, top:top + 32, left:left + 32].flip(2) if m else
                 i[:, top:top + 32, left:left + 32]
                 for i, (top, left), m in zip(x, at[part].tolist(), mirror[part])]
        return (torch.stack(crops).contiguous(memory_format=torch.channels_last),
                self.y[mine[part]])

    def test(self, net):
        x, y = read_tar(os.path.join(self.a.data, "test.tar"))
        net.eval()
        with torch.no_grad():
            out = torch.cat([net(self.normal(part)) for part in x.split(250)])
        return {"test_accuracy": (out.argmax(1) == y).float().mean().item(),
                "test_loss": F.cross_entropy(out, y).item()}


def one_cycle(step, steps, highest):
    """A straight rise from 0.04 over 0.3 of the steps, a straight fall to 0."""
    rise = 0.3 * steps
    if step < rise:
        return highest * (0.04 + 0.96 * step / rise)
    return highest * (steps - step) / (steps - rise)


def initialise(net):
    for m in net.modules():
        if isinstance(m, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(m.weight, nonlinearity="relu")


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
    p.add_argument("--data")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    host, port = a.root.rsplit(":", 1)
    os.environ.update(MASTER_ADDR=host, MASTER_PORT=port)
    dist.init_process_group("gloo", rank=a.rank, world_size=a.ranks)
    net = (step_pytorch.resnet((2, 2, 2, 2), 64, False, 32, 10) if a.net == "resnet18"
           else step_pytorch.vgg16(32, 10))
    if a.data:
        initialise(net)
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
    images = Images(a) if a.data else None
    x = torch.randn(a.batch, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (a.batch,))
    times = []
    for step in range(a.warmup + a.steps):
        start = time.perf_counter()
        if images:
            x, y = images()
            opt.param_groups[0]["lr"] = one_cycle(step, a.warmup + a.steps, 0.1)
        opt.zero_grad()
        F.cross_entropy(ddp(x), y).backward()
        opt.step()
        times.append(time.perf_counter() - start)
    middle = sorted(times[a.warmup:])[a.steps // 2]
    result = {"images_per_s": a.ranks * a.batch / middle, "median_s": middle,
              "parameters": parameters, "torch": torch.__version__}
    if images:
        result.update(images.test(net), steps=a.warmup + a.steps)
    print(json.dumps(result))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
