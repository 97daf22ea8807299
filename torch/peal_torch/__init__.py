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

_async = os.environ.get("PEAL_TORCH_ASYNC", "0") not in ("", "0")


def set_async(on):
    """Groups made from now on have a progress thread, or not."""
    global _async
    _async = bool(on)


def simulated_time(group=None):
    """Seconds that the group's collectives have taken on the simulated machine (PEAL_PLATFORM=sim:FILE.yaml); 0 without."""
    if group is None:
        group = _dist.distributed_c10d._get_default_group()
    return _C.simulated_ps(group) * 1e-12


def _create(store, rank, size, timeout):
    return _C.create(store, rank, size, timeout, _async)


def _register():
    name = "PEAL"
    if hasattr(_dist.Backend, name):
        return
    major = int(torch.__version__.split(".")[0])
    if major >= 2:
        _dist.Backend.register_backend("peal", _create, devices=["cpu"])
    else:
        _dist.Backend.register_backend("peal", _create)


_register()
