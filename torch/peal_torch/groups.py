# SPDX-License-Identifier: Apache-2.0
"""Makes new groups from the communicator of the default group.

torch has the members of a new group meet through the store, which costs time, descriptors and memory. But all ranks call new_group.
So if the default group is Peal's, its communicator is split first, and the backend then uses the result.

torch 1 ends new_group and init_process_group with a barrier through the store, which sleeps 10 ms at a time, and for ever if a
default group is made for the second time on one store. Peal's ranks have met already, so this barrier is skipped, as in torch 2.
"""
import functools
import inspect
import sys
import threading

import torch as _torch
import torch.distributed as _dist
from torch.distributed import distributed_c10d as _c10d

from . import _C
from .backend import backend_of


def _parts(backend):
    """Backends by kind of device. A bare name is for all kinds."""
    text = str(backend).lower()
    return dict(part.split(":") for part in text.split(",")) if ":" in text else {"cpu": text}


def _is_ours(backend):
    return _parts(backend).get("cpu") == "peal"


def _members(given):
    """The ranks of the new group; None if torch has to make it, or will refuse it."""
    if not _dist.is_initialized() or not _is_ours(_c10d.get_backend()) or given.get("use_local_synchronization"):
        return None
    if given.get("backend") is not None and not _is_ours(given["backend"]):
        return None
    size = _c10d._get_default_group().size()
    ranks = sorted(given["ranks"]) if given.get("ranks") else list(range(size))
    valid = len(set(ranks)) == len(ranks) and ranks[0] >= 0 and ranks[-1] < size
    return ranks if valid else None


class _Thread(threading.local):
    has_met = False  # the ranks of the group that this thread is making have met


_thread = _Thread()


def _meeting(init_process_group):
    """Peal's ranks meet while they make the default group."""

    @functools.wraps(init_process_group)
    def call(backend, *args, **kwargs):
        _thread.has_met = _is_ours(backend)
        try:
            return init_process_group(backend, *args, **kwargs)
        finally:
            _thread.has_met = False

    return call


def _unless_met(barrier):
    @functools.wraps(barrier)
    def call(*args, **kwargs):
        if not _thread.has_met:
            barrier(*args, **kwargs)

    return call


def _preparing(new_group):
    signature = inspect.signature(new_group)

    @functools.wraps(new_group)
    def call(*args, **kwargs):
        members = _members(signature.bind(*args, **kwargs).arguments)
        if members is None:
            return new_group(*args, **kwargs)
        _C.prepare(backend_of(), members)
        _thread.has_met = True
        try:
            return new_group(*args, **kwargs)
        finally:
            _thread.has_met = False
            _C.forget_prepared()

    return call


def _replace(name, change):
    original = getattr(_c10d, name)
    changed = change(original)
    for module in (_c10d, _dist, sys.modules.get("torch.distributed.device_mesh")):
        if getattr(module, name, None) is original:
            setattr(module, name, changed)


def install():
    """To be called once."""
    _replace("new_group", _preparing)
    if _torch.__version__.startswith("1."):
        _replace("init_process_group", _meeting)
        _replace("_store_based_barrier", _unless_met)
