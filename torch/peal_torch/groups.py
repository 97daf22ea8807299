# SPDX-License-Identifier: Apache-2.0
"""new_group from the default group's communicator.

torch asks only the members of a new group to make it, through the store: that takes a meeting of its own, with descriptors and
memory. But all ranks call new_group, so where the default group is Peal's, the new communicator is split off first, and the
backend finds it ready. That is a meeting of all ranks; the one that torch 1 adds through the store, which sleeps for 10 ms at a
time, is left out then, as torch 2 leaves it out. So it is for the default group, where it would wait for ever on a store that has
served before.
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
    """Backends by kind of device; a bare name is for all."""
    text = str(backend).lower()
    return dict(part.split(":") for part in text.split(",")) if ":" in text else {"cpu": text}


def _is_ours(backend):
    return _parts(backend).get("cpu") == "peal"


def _members(given):
    """The ranks of the group to come, or None where it must be made in torch's own way, or is refused by torch."""
    if not _dist.is_initialized() or not _is_ours(_c10d.get_backend()) or given.get("use_local_synchronization"):
        return None
    if given.get("backend") is not None and not _is_ours(given["backend"]):
        return None
    size = _c10d._get_default_group().size()
    ranks = sorted(given["ranks"]) if given.get("ranks") else list(range(size))
    valid = len(set(ranks)) == len(ranks) and ranks[0] >= 0 and ranks[-1] < size
    return ranks if valid else None


class _Thread(threading.local):
    has_met = False  # all ranks have made the group that this thread is making


_thread = _Thread()


def _meeting(init_process_group):
    """The default group of Peal is made by all ranks together."""

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
    """Once."""
    _replace("new_group", _preparing)
    if _torch.__version__.startswith("1."):
        _replace("init_process_group", _meeting)
        _replace("_store_based_barrier", _unless_met)
