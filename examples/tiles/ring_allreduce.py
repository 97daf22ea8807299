# SPDX-License-Identifier: Apache-2.0
"""Allreduce on a ring: running sums of chunks go round once, then the whole sums go round once.

A rank writes to two boxes of its right neighbour in turn. `sent` counts the messages that came into this rank's boxes, `taken` those
that the right neighbour took: a box is written again when the message in it has been taken. The ring holds as many chunks as it
has boxes, and one in each rank's hands: with more, rank 0 would wait for itself.
"""
import torch
import torch.distributed as dist
import triton
import triton.language as tl
from common import everybody, flags, of_rank, symmetric, tell, wait


@triton.jit
def put(boxes, sent, taken, value, message, n, rank: tl.constexpr, world: tl.constexpr, offsets, mask):
    right = (rank + 1) % world
    wait(of_rank(taken, rank, tl.int32), message - 2)
    tl.store(of_rank(boxes, right, tl.float32) + message % 2 * n + offsets, value, mask=mask)
    tell(of_rank(sent, right, tl.int32), message)


@triton.jit
def take(boxes, sent, taken, message, n, rank: tl.constexpr, world: tl.constexpr, offsets, mask):
    wait(of_rank(sent, rank, tl.int32), message)
    value = tl.load(of_rank(boxes, rank, tl.float32) + message % 2 * n + offsets, mask=mask)
    tell(of_rank(taken, (rank + world - 1) % world, tl.int32), message)
    return value


@triton.jit
def ring(x, boxes, sent, taken, y, n, before, rank: tl.constexpr, world: tl.constexpr, CHUNKS: tl.constexpr, BLOCK: tl.constexpr):
    """`before`: the messages of earlier calls."""
    first = before + 1
    second = first + CHUNKS
    for chunk in range(CHUNKS):
        offsets = tl.arange(0, BLOCK)
        mask = chunk * BLOCK + offsets < n
        total = tl.load(x + chunk * BLOCK + offsets, mask=mask)
        if rank > 0:
            total += take(boxes, sent, taken, first + chunk, BLOCK, rank, world, offsets, mask)
        put(boxes, sent, taken, total, first + chunk, BLOCK, rank, world, offsets, mask)
    for chunk in range(CHUNKS):
        offsets = tl.arange(0, BLOCK)
        mask = chunk * BLOCK + offsets < n
        message = first + chunk if rank == 0 else second + chunk
        total = take(boxes, sent, taken, message, BLOCK, rank, world, offsets, mask)
        tl.store(y + chunk * BLOCK + offsets, total, mask=mask)
        put(boxes, sent, taken, total, second + chunk, BLOCK, rank, world, offsets, mask)
    if rank == 0:  # the sums come back to where they started
        for chunk in range(CHUNKS):
            offsets = tl.arange(0, BLOCK)
            take(boxes, sent, taken, second + chunk, BLOCK, rank, world, offsets, chunk * BLOCK + offsets < n)


dist.init_process_group("nccl")
n, block, chunks = 1000, 256, 4
boxes, handle = symmetric(2 * block)
sent, sent_handle = flags(1)
taken, taken_handle = flags(1)
x = torch.randn(n, dtype=torch.float32, device="cuda")
y = torch.empty(n, dtype=torch.float32, device="cuda")
for call in range(3):
    ring[(1,)](x, handle.buffer_ptrs_dev, sent_handle.buffer_ptrs_dev, taken_handle.buffer_ptrs_dev, y, n, 2 * chunks * call,
               rank=handle.rank, world=handle.world_size, CHUNKS=chunks, BLOCK=block)
torch.testing.assert_close(y, everybody(x))
