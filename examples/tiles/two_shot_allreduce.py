# SPDX-License-Identifier: Apache-2.0
"""Allreduce in two shots: every rank adds up one part of the elements, and writes the sum to all ranks. For large messages.

The input goes to symmetric memory first, and the result comes from there: the sums replace the inputs.
"""
import torch
import torch.distributed as dist
import triton
import triton.language as tl
from common import everybody, meet, of_rank, symmetric


@triton.jit
def two_shot(x, boxes, pads, y, n, rank: tl.constexpr, world: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * BLOCK * world  # of the elements of this program, on all ranks
    for part in range(world):
        offsets = first + part * BLOCK + tl.arange(0, BLOCK)
        tl.store(of_rank(boxes, rank, tl.float32) + offsets, tl.load(x + offsets, mask=offsets < n), mask=offsets < n)
    meet(pads, rank, world)
    offsets = first + rank * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(of_rank(boxes, 0, tl.float32) + offsets, mask=mask)
    for peer in range(1, world):
        total += tl.load(of_rank(boxes, peer, tl.float32) + offsets, mask=mask)
    for peer in range(world):
        tl.store(of_rank(boxes, peer, tl.float32) + offsets, total, mask=mask)
    meet(pads, rank, world)
    for part in range(world):
        offsets = first + part * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + offsets, tl.load(of_rank(boxes, rank, tl.float32) + offsets, mask=offsets < n), mask=offsets < n)


dist.init_process_group("nccl")
n, block = 1000, 64
boxes, handle = symmetric(n)
x = torch.randn(n, dtype=torch.float32, device="cuda")
y = torch.empty(n, dtype=torch.float32, device="cuda")
two_shot[(triton.cdiv(n, block * handle.world_size),)](x, handle.buffer_ptrs_dev, handle.signal_pad_ptrs_dev, y, n, rank=handle.rank,
                                                       world=handle.world_size, BLOCK=block)
torch.testing.assert_close(y, everybody(x))
