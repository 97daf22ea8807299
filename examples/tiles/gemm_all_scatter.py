# SPDX-License-Identifier: Apache-2.0
"""A product of matrices whose columns are shared out: each rank computes its own columns of C, writes every tile to all ranks as soon as it
is there, and adds one to the tile's flag. A second kernel on a second stream uses the rows whose tiles have come.
"""
import torch
import torch.distributed as dist
import triton
import triton.language as tl
from common import flags, of_rank, symmetric


@triton.jit
def produce(a, b, cs, done, M, N, K, rank: tl.constexpr, world: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A tile of this rank's columns of C, to all ranks."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    rows, columns, inner = row + tl.arange(0, BM), column + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        right = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(left, right, total)
    place = rows[:, None] * (N * world) + (rank * N + columns)[None, :]
    for peer in range(world):
        tl.store(of_rank(cs, peer, tl.float32) + place, total)
        tl.atomic_add(of_rank(done, peer, tl.int32) + tl.program_id(0), 1, sem="release", scope="sys")


@triton.jit
def consume(c, done, y, columns: tl.constexpr, tiles, BM: tl.constexpr):
    """Rows of the whole C, as soon as all tiles of all ranks are there."""
    while tl.atomic_add(done + tl.program_id(0), 0, sem="acquire", scope="sys") < tiles:
        pass
    at = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None] * columns + tl.arange(0, columns)[None, :]
    tl.store(y + at, tl.load(c + at) * 2)


dist.init_process_group("nccl")
M, N, K, BM, BN, BK = 32, 32, 32, 16, 16, 16
world = dist.get_world_size()
c, handle = symmetric(M, N * world)
done, done_handle = flags(M // BM)
a = torch.randn(M, K, dtype=torch.float32, device="cuda")
b = torch.randn(K, N, dtype=torch.float32, device="cuda")
y = torch.empty(M, N * world, dtype=torch.float32, device="cuda")
consumer = torch.cuda.Stream()
for call in range(1, 4):
    produce[(M // BM, N // BN)](a, b, handle.buffer_ptrs_dev, done_handle.buffer_ptrs_dev, M, N, K, rank=handle.rank, world=world, BM=BM, BN=BN,
                                BK=BK)
    with torch.cuda.stream(consumer):
        consume[(M // BM,)](c, done, y, N * world, call * world * (N // BN), BM)
    torch.cuda.synchronize()
    dist.barrier()
