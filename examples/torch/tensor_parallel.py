# SPDX-License-Identifier: Apache-2.0
"""Tensor-parallel inference of an MLP: the first layer is cut by columns, the second by rows, one all_reduce a block.

    /usr/bin/python3 examples/torch/tensor_parallel.py [WORLD_SIZE]
"""
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import peal_torch  # noqa: F401  registers the backend

WIDTH, HIDDEN, LAYERS, BATCH = 512, 2048, 4, 8


def weights(layer):
    """The same on every rank, as from a checkpoint."""
    generator = torch.Generator().manual_seed(layer)
    up = torch.randn(WIDTH, HIDDEN, generator=generator) / WIDTH**0.5
    down = torch.randn(HIDDEN, WIDTH, generator=generator) / HIDDEN**0.5
    return up, down


def worker(rank, world, rendezvous):
    torch.set_num_threads(1)
    dist.init_process_group("peal", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    layers = [weights(i) for i in range(LAYERS)]
    mine = [(up.chunk(world, 1)[rank].contiguous(), down.chunk(world, 0)[rank].contiguous()) for up, down in layers]
    x = torch.randn(BATCH, WIDTH, generator=torch.Generator().manual_seed(99))

    def forward(value):
        for up, down in mine:
            partial = torch.relu(value @ up) @ down
            dist.all_reduce(partial)  # the only communication of a block
            value = value + partial
        return value

    whole = x
    for up, down in layers:
        whole = whole + torch.relu(whole @ up) @ down
    assert torch.allclose(forward(x), whole, rtol=1e-3, atol=1e-3)
    start = time.perf_counter()
    for _ in range(20):
        forward(x)
    if rank == 0:
        print(f"{(time.perf_counter() - start) / 20 * 1e3:.2f} ms a forward pass on {world} ranks; equal to one rank's")
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with tempfile.TemporaryDirectory() as scratch:
        mp.spawn(worker, args=(ranks, os.path.join(scratch, "store")), nprocs=ranks)
