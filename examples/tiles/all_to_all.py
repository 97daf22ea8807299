# SPDX-License-Identifier: Apache-2.0
"""All-to-all: program p of a rank writes a part to rank p and a flag, waits for the part of rank p, and says that it has taken it.

One box per sender is enough: the next part is written when the receiver has taken the one before.
"""
import torch
import torch.distributed as dist
import triton
import triton.language as tl
from common import flags, of_rank, symmetric, tell, wait


@triton.jit
def exchange(x, boxes, ready, taken, y, n, call, rank: tl.constexpr, world: tl.constexpr, BLOCK: tl.constexpr):
    peer = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    wait(of_rank(taken, rank, tl.int32) + peer, call - 1)
    tl.store(of_rank(boxes, peer, tl.float32) + rank * n + offsets, tl.load(x + peer * n + offsets, mask=mask), mask=mask)
    tell(of_rank(ready, peer, tl.int32) + rank, call)
    wait(of_rank(ready, rank, tl.int32) + peer, call)
    tl.store(y + peer * n + offsets, tl.load(of_rank(boxes, rank, tl.float32) + peer * n + offsets, mask=mask), mask=mask)
    tell(of_rank(taken, peer, tl.int32) + rank, call)


dist.init_process_group("nccl")
n, block = 100, 128
world = dist.get_world_size()
boxes, handle = symmetric(n * world)
ready, ready_handle = flags(world)
taken, taken_handle = flags(world)
x = torch.randn(n * world, dtype=torch.float32, device="cuda")
y = torch.empty(n * world, dtype=torch.float32, device="cuda")
for call in range(1, 4):
    exchange[(world,)](x, handle.buffer_ptrs_dev, ready_handle.buffer_ptrs_dev, taken_handle.buffer_ptrs_dev, y, n, call, rank=handle.rank,
                       world=world, BLOCK=block)
golden = torch.empty_like(y)
dist.all_to_all_single(golden, x)
torch.testing.assert_close(y, golden)
