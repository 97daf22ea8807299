# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training of a small model: every rank its share of the batch, gradients averaged by Peal.

    /usr/bin/python3 examples/torch/ddp.py [WORLD_SIZE]

Trains the same model with "peal" and with "gloo" and compares the gradients of the first step and the weights after the
last: they agree within rounding.
"""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import peal_torch  # noqa: F401  registers the backend


def batch(rank, world, step, n=64):
    """This rank's share of a batch of y = sin(3x)."""
    generator = torch.Generator().manual_seed(step * world + rank)
    x = torch.rand(n, 1, generator=generator) * 2 - 1
    return x, torch.sin(3 * x)


def train(rank, world, backend, rendezvous, steps=200):
    dist.init_process_group(backend, init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, gradients = [], []
    for step in range(steps):
        x, y = batch(rank, world, step)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        gradients = gradients or [p.grad.clone() for p in model.parameters()]
        optimizer.step()
        losses.append(loss.item())
    dist.destroy_process_group()
    return losses, gradients, [p.detach().clone() for p in model.parameters()]


def worker(rank, world, folder):
    losses, *peal = train(rank, world, "peal", os.path.join(folder, "peal"))
    _, *gloo = train(rank, world, "gloo", os.path.join(folder, "gloo"))
    gradients, weights = [max((a - b).abs().max().item() for a, b in zip(*pair)) for pair in zip(peal, gloo)]
    if rank == 0:
        print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f} on {world} ranks; "
              f"largest difference from gloo: gradients {gradients:.1e}, weights at the end {weights:.1e}")
        assert losses[-1] < losses[0] / 4
    assert gradients < 1e-6 and weights < 1e-4


if __name__ == "__main__":
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with tempfile.TemporaryDirectory() as scratch:
        mp.spawn(worker, args=(ranks, scratch), nprocs=ranks)
