# SPDX-License-Identifier: Apache-2.0
"""From a group to Peal's part of it.

torch 2 wraps backends, one for each kind of device, in a process group; TORCH_DISTRIBUTED_DEBUG=DETAIL wraps each of them
in one that checks.
"""
import torch
from torch.distributed import distributed_c10d as _c10d


def backend_of(group=None):
    group = group or _c10d._get_default_group()
    choose = getattr(group, "_get_backend", None)
    backend = choose(torch.device("cpu")) if choose else group
    while hasattr(backend, "wrapped_pg"):
        backend = backend.wrapped_pg
    return backend
