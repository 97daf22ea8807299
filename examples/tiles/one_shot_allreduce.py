# SPDX-License-Identifier: Apache-2.0
"""Allreduce in one shot: every rank reads the inputs of all ranks, and adds them up. For small messages.

Programs of the same number meet twice: before they read, so that all inputs are there, and afterwards, so that nobody writes the next
input while a peer still reads this one.
"""
import torch
import torch.distributed as dist
import triton
import triton.language as tl
from common import everybody, meet, of_rank, symmetric


@triton.jit
def one_shot(xs, pads, y, n, rank: tl.constexpr, world: tl.constexpr, BLOCK: tl.constexpr):
    meet(pads, rank, world)
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(of_rank(xs, 0, tl.float32) + offsets, mask=mask)
    for peer in range(1, world):
        total += tl.load(of_rank(xs, peer, tl.float32) + offsets, mask=mask)
    tl.store(y + offsets, total, mask=mask)
    meet(pads, rank, world)


dist.init_process_group("nccl")
n, block = 1000, 256
x, handle = symmetric(n)
given = torch.randn(n, dtype=torch.float32, device="cuda")
y = torch.empty(n, dtype=torch.float32, device="cuda")


def allreduce():
    x.copy_(given)
    one_shot[(triton.cdiv(n, block),)](handle.buffer_ptrs_dev, handle.signal_pad_ptrs_dev, y, n, rank=handle.rank, world=handle.world_size,
                                       BLOCK=block)


allreduce()
torch.testing.assert_close(y, everybody(given))
