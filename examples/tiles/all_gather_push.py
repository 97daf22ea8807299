# SPDX-License-Identifier: Apache-2.0
"""All-gather by pushing: every rank writes its part to all ranks, then a flag for it, and waits for the flags of all parts.

The flags count calls, so nobody sets them back. Parts go to two boxes in turn: who is in a call has left the one before, and so nobody
still reads the box of the call before that.
"""
import torch
import torch.distributed as dist
import triton
import triton.language as tl
from common import flags, of_rank, symmetric, tell, wait


@triton.jit
def push(x, boxes, ready, y, n, call, rank: tl.constexpr, world: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    box = call % 2 * n * world
    part = tl.load(x + offsets, mask=mask)
    for step in range(world):
        peer = (rank + step) % world
        tl.store(of_rank(boxes, peer, tl.float32) + box + rank * n + offsets, part, mask=mask)
        tell(of_rank(ready, peer, tl.int32) + rank, call)
    for peer in range(world):
        wait(of_rank(ready, rank, tl.int32) + peer, call)
        theirs = tl.load(of_rank(boxes, rank, tl.float32) + box + peer * n + offsets, mask=mask)
        tl.store(y + peer * n + offsets, theirs, mask=mask)


dist.init_process_group("nccl")
n, block = 200, 256
world = dist.get_world_size()
boxes, handle = symmetric(2 * n * world)
ready, ready_handle = flags(world)
x = torch.randn(n, dtype=torch.float32, device="cuda")
y = torch.empty(n * world, dtype=torch.float32, device="cuda")
for call in range(1, 4):
    push[(1,)](x, handle.buffer_ptrs_dev, ready_handle.buffer_ptrs_dev, y, n, call, rank=handle.rank, world=world, BLOCK=block)
golden = torch.empty_like(y)
dist.all_gather_into_tensor(golden, x)
torch.testing.assert_close(y, golden)
