# SPDX-License-Identifier: Apache-2.0
"""DDP with gradients in symmetric memory.

    model = DistributedDataParallel(network, process_group=group)
    model.register_comm_hook(peal_torch.BucketHook(group), peal_torch.BucketHook.reduce)
"""
import torch.distributed as _dist

from . import _C
from .backend import backend_of


class BucketHook:
    """Moves DDP's buckets to symmetric memory and averages them there in place.

    DDP replaces its buckets after the first step, so a bucket is moved when it is seen for the second time. Buckets are recognised
    by index, size and type, which are the same on all ranks.
    """

    def __init__(self, group=None):
        self.group = group or _dist.distributed_c10d._get_default_group()
        self.seen = {}  # (index, elements, type) -> 0 if seen once, else the address in symmetric memory

    @staticmethod
    def reduce(hook, bucket):
        buffer = bucket.buffer()
        key = (bucket.index(), buffer.numel(), buffer.dtype)
        if key not in hook.seen:
            hook.seen[key] = 0
        elif hook.seen[key] != buffer.data_ptr():
            _C.symmetric(backend_of(hook.group), buffer)
            hook.seen[key] = buffer.data_ptr()
        work = _dist.all_reduce(buffer, _dist.ReduceOp.AVG, group=hook.group, async_op=True)
        return work.get_future().then(lambda future: future.value()[0])
