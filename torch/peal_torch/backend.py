# SPDX-License-Identifier: Apache-2.0
"""Finds the Peal backend of a process group.

A process group of torch 2 has a backend for each kind of device, and with TORCH_DISTRIBUTED_DEBUG=DETAIL each backend is wrapped
in one that checks calls.
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
