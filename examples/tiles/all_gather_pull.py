# SPDX-License-Identifier: Apache-2.0
"""All-gather by pulling: every rank says that its part is there, and reads the parts of all ranks.

A rank may be one call ahead of a peer, never two: it waits for the peer in each call. So two boxes in turn are enough, and a flag
may be one more than what is waited for.
"""
import torch
import torch.distributed as dist
import triton
import triton.language as tl
from common import flags, of_rank, symmetric, tell, wait


@triton.jit
def pull(x, boxes, ready, y, n, call, rank: tl.constexpr, world: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    box = call % 2 * n
    tl.store(of_rank(boxes, rank, tl.float32) + box + offsets, tl.load(x + offsets, mask=mask), mask=mask)
    for peer in range(world):
        tell(of_rank(ready, peer, tl.int32) + rank, call)
    for step in range(world):
        peer = (rank + step) % world
        wait(of_rank(ready, rank, tl.int32) + peer, call)
        theirs = tl.load(of_rank(boxes, peer, tl.float32) + box + offsets, mask=mask)
        tl.store(y + peer * n + offsets, theirs, mask=mask)


dist.init_process_group("nccl")
n, block = 200, 256
world = dist.get_world_size()
boxes, handle = symmetric(2 * n)
ready, ready_handle = flags(world)
x = torch.randn(n, dtype=torch.float32, device="cuda")
y = torch.empty(n * world, dtype=torch.float32, device="cuda")
for call in range(1, 4):
    pull[(1,)](x, handle.buffer_ptrs_dev, ready_handle.buffer_ptrs_dev, y, n, call, rank=handle.rank, world=world, BLOCK=block)
golden = torch.empty_like(y)
dist.all_gather_into_tensor(golden, x)
torch.testing.assert_close(y, golden)
