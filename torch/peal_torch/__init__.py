# SPDX-License-Identifier: Apache-2.0
"""The backend "peal" of torch.distributed.

    import torch.distributed as dist
    import peal_torch
    dist.init_process_group("peal")

Importing registers the backend for CPU tensors. Collectives run inline; PEAL_TORCH_ASYNC=1 or set_async(True) before a
group is made gives it a progress thread, so that async_op=True overlaps with the caller.
"""
import os

import torch
import torch.distributed as _dist

from . import _C
from .backend import backend_of
from .ddp import BucketHook
from .simulate import simulate, simulated_time

__all__ = ["BucketHook", "register_free", "set_async", "simulate", "simulated_time", "symmetric"]

_async = os.environ.get("PEAL_TORCH_ASYNC", "0") not in ("", "0")


def set_async(on):
    """Groups made from now on have a progress thread, or not."""
    global _async
    _async = bool(on)


def symmetric(tensor, group=None):
    """Moves the tensor's storage, and so all views of it, to memory that all ranks of the group can address.

    Collectives on it then need one copy less. Collective: all ranks call it in the same order with storages of one size.
    The memory is given back when the group has been destroyed and the storage is gone. Returns the tensor.
    """
    _C.symmetric(backend_of(group), tensor)
    return tensor


def _create(store, rank, size, timeout):
    return _C.create(store, rank, size, timeout, _async)


def _register(name, create):
    if hasattr(_dist.Backend, name.upper()):
        return
    if int(torch.__version__.split(".")[0]) >= 2:
        _dist.Backend.register_backend(name, create, devices=["cpu"])
    else:
        _dist.Backend.register_backend(name, create)


def register_free():
    """Registers "peal_free", a backend that does nothing: what torch itself takes for a call. For measuring only."""
    _register("peal_free", lambda store, rank, size, timeout: _C.create_free(rank, size))


_register("peal", _create)
