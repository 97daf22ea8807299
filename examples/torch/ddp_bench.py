# SPDX-License-Identifier: Apache-2.0
"""Times a DDP training step with Peal, with Gloo and with free communication, alternating in one run.

    /usr/bin/python3 examples/torch/ddp_bench.py [--world 2] [--layers 2x256,4x512,8x1024] [--batch 32] [--steps 20]
                                                 [--kinds peal,symmetric,gloo,free]

Prints the median step of the slowest rank. symmetric: buckets in symmetric memory (peal_torch.BucketHook). free: a backend that does
nothing, which leaves the work of DDP itself. mpi: torch's MPI backend, if torch has it.
"""
import argparse
import statistics
import time

import launch
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import peal_torch


def network(layers, width):
    torch.manual_seed(0)
    return nn.Sequential(*[part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())])


def new_group(kind):
    return dist.new_group(backend={"gloo": "gloo", "mpi": "mpi", "free": "peal_free"}.get(kind, "peal"))


def new_model(kind, group, layers, width):
    model = DistributedDataParallel(network(layers, width), process_group=group)
    if kind == "symmetric":
        model.register_comm_hook(peal_torch.BucketHook(group), peal_torch.BucketHook.reduce)
    return model


def step(model, optimizer, x):
    """Seconds of one training step, with its optimizer step."""
    start = time.perf_counter()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    return time.perf_counter() - start


def run(rank, world, layers, width, groups, options):
    models = {kind: new_model(kind, group, layers, width) for kind, group in groups.items()}
    optimizers = {kind: torch.optim.SGD(model.parameters(), lr=1e-3) for kind, model in models.items()}
    x = torch.randn(options.batch, width, generator=torch.Generator().manual_seed(rank))
    times = {kind: [] for kind in models}
    for i in range(options.steps + 3):
        for kind, model in models.items():
            dist.barrier()
            seconds = torch.tensor([step(model, optimizers[kind], x)], dtype=torch.float64)
            dist.all_reduce(seconds, dist.ReduceOp.MAX)
            if i >= 3:  # DDP builds its buckets in the first steps
                times[kind].append(seconds.item() * 1e3)
    if rank == 0:
        medians = {kind: statistics.median(t) for kind, t in times.items()}
        size = sum(p.numel() for p in network(layers, width).parameters()) * 4 / 1e6
        launch.keep(options, "ddp", megabytes=size, batch=options.batch, world=world, **medians)
        print(f"{layers}x{width}, batch {options.batch} ({size:.1f} MB of gradients) {world} ranks  " +
              "  ".join(f"{kind} {ms:.2f} ms ({ms / medians.get('free', ms):.2f})" for kind, ms in medians.items()), flush=True)


def worker(rank, world_size, rendezvous, options):
    torch.set_num_threads(1)
    peal_torch.register_free()
    dist.init_process_group("peal", init_method=f"file://{rendezvous}", rank=rank, world_size=world_size)
    groups = {kind: new_group(kind) for kind in options.kinds.split(",")}
    for text in options.layers.split(","):
        layers, width = map(int, text.split("x"))
        run(rank, world_size, layers, width, groups, options)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", default="2")
    parser.add_argument("--layers", default="2x256,4x512,8x1024")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--kinds", default="peal,symmetric,gloo,free")
    launch.add_options(parser)
    arguments = parser.parse_args()
    launch.start(worker, arguments.world, arguments, "mpi" in arguments.kinds.split(","))
