# SPDX-License-Identifier: Apache-2.0
"""Times a DDP training step with "peal", with "gloo" and with no communication, alternating in one run.

    /usr/bin/python3 examples/torch/ddp_bench.py [--world 2] [--layers 2x256,4x512,8x1024] [--steps 20]

Prints the median step of the slowest rank. "free" is the same step inside no_sync: gradients stay on their rank.
"""
import argparse
import contextlib
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import peal_torch

BATCH = 32


def network(layers, width):
    torch.manual_seed(0)
    return nn.Sequential(*[part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())])


def step(model, optimizer, x, free):
    """Seconds of one step. The optimizer is part of it, as in training."""
    start = time.perf_counter()
    with model.no_sync() if free else contextlib.nullcontext():
        loss = model(x).square().mean()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    return time.perf_counter() - start


def run(rank, world, layers, width, steps):
    kinds = {"peal": "peal", "gloo": "gloo", "free": "gloo"}
    groups = {name: dist.new_group(backend=name) for name in ("peal", "gloo")}
    models = {kind: DistributedDataParallel(network(layers, width), process_group=groups[backend])
              for kind, backend in kinds.items()}
    optimizers = {kind: torch.optim.SGD(model.parameters(), lr=1e-3) for kind, model in models.items()}
    x = torch.randn(BATCH, width, generator=torch.Generator().manual_seed(rank))
    times = {kind: [] for kind in kinds}
    for i in range(steps + 3):
        for kind, model in models.items():
            dist.barrier()
            seconds = torch.tensor([step(model, optimizers[kind], x, kind == "free")], dtype=torch.float64)
            dist.all_reduce(seconds, dist.ReduceOp.MAX)
            if i >= 3:  # DDP builds its buckets in the first steps
                times[kind].append(seconds.item() * 1e3)
    if rank == 0:
        peal, gloo, free = (statistics.median(times[kind]) for kind in ("peal", "gloo", "free"))
        size = sum(p.numel() for p in models["peal"].parameters()) * 4 / 1e6
        print(f"{layers}x{width} ({size:.1f} MB of gradients) {world} ranks  peal {peal:8.2f} ms  gloo {gloo:8.2f} ms  "
              f"free {free:8.2f} ms  peal / free {peal / free:5.2f}", flush=True)


def worker(rank, world, rendezvous, models, steps, overlap):
    torch.set_num_threads(1)
    peal_torch.set_async(overlap)
    dist.init_process_group("peal", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    for layers, width in models:
        run(rank, world, layers, width, steps)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", default="2")
    parser.add_argument("--layers", default="2x256,4x512,8x1024")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--overlap", action="store_true", help="with Peal's progress thread")
    arguments = parser.parse_args()
    shapes = [tuple(int(n) for n in text.split("x")) for text in arguments.layers.split(",")]
    for ranks in arguments.world.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            mp.spawn(worker, nprocs=int(ranks),
                     args=(int(ranks), os.path.join(scratch, "store"), shapes, arguments.steps, arguments.overlap))
