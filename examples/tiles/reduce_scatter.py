# SPDX-License-Identifier: Apache-2.0
"""Reduce-scatter: every rank reads its own part of the inputs of all ranks, and adds it up."""
import torch
import torch.distributed as dist
import triton
import triton.language as tl
from common import meet, of_rank, symmetric


@triton.jit
def reduce_scatter(xs, pads, y, n, rank: tl.constexpr, world: tl.constexpr, BLOCK: tl.constexpr):
    meet(pads, rank, world)
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(of_rank(xs, 0, tl.float32) + rank * n + offsets, mask=mask)
    for peer in range(1, world):
        total += tl.load(of_rank(xs, peer, tl.float32) + rank * n + offsets, mask=mask)
    tl.store(y + offsets, total, mask=mask)
    meet(pads, rank, world)


dist.init_process_group("nccl")
n, block = 300, 128
world = dist.get_world_size()
x, handle = symmetric(n * world)
given = torch.randn(n * world, dtype=torch.float32, device="cuda")
y = torch.empty(n, dtype=torch.float32, device="cuda")


def reduce():
    x.copy_(given)
    reduce_scatter[(triton.cdiv(n, block),)](handle.buffer_ptrs_dev, handle.signal_pad_ptrs_dev, y, n, rank=handle.rank, world=world,
                                             BLOCK=block)


reduce()
golden = torch.empty_like(y)
dist.reduce_scatter_tensor(golden, given)
torch.testing.assert_close(y, golden)
