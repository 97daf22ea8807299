# SPDX-License-Identifier: Apache-2.0
"""What the examples have in common: how programs of several ranks meet, how a flag is set and waited for, symmetric memory."""
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import triton
import triton.language as tl


@triton.jit
def of_rank(table, rank, dtype: tl.constexpr):
    """The memory of a rank, by a table of addresses."""
    return tl.load(table.to(tl.pointer_type(tl.uint64)) + rank).to(tl.pointer_type(dtype))


@triton.jit
def meet(pads, rank: tl.constexpr, world: tl.constexpr):
    """Programs of the same number of all ranks meet. A flag for each pair of ranks: one sets it, the other takes it back."""
    first = tl.program_id(0) * world
    for peer in range(world):
        while tl.atomic_cas(of_rank(pads, peer, tl.uint32) + first + rank, 0, 1, sem="release", scope="sys") != 0:
            pass
    for peer in range(world):
        while tl.atomic_cas(of_rank(pads, rank, tl.uint32) + first + peer, 1, 0, sem="acquire", scope="sys") != 1:
            pass


@triton.jit
def tell(flag, value):
    """What this program did before is there for whoever sees the flag."""
    tl.atomic_xchg(flag, value, sem="release", scope="sys")


@triton.jit
def wait(flag, value):
    """Until the flag is at least the value: a peer may be further on."""
    while tl.atomic_add(flag, 0, sem="acquire", scope="sys") < value:
        pass


def symmetric(*shape, dtype=torch.float32):
    """A tensor that all ranks have, and its handle."""
    tensor = symm_mem.empty(*shape, dtype=dtype, device="cuda")
    return tensor, symm_mem.rendezvous(tensor, dist.group.WORLD)


def flags(count):
    """Flags of all ranks, zero on all of them when this returns."""
    tensor, handle = symmetric(count, dtype=torch.int32)
    tensor.zero_()
    dist.barrier()
    return tensor, handle


def everybody(x):
    """The sum of all ranks' x, by the library."""
    total = x.clone()
    dist.all_reduce(total)
    return total
