# SPDX-License-Identifier: Apache-2.0
"""The backend "peal" of torch.distributed.

    import torch.distributed as dist
    import peal_torch
    dist.init_process_group("peal")

Importing registers the backend for CPU tensors.
"""
import atexit as _atexit
import os as _os
import warnings as _warnings

import torch as _torch
import torch.distributed as _dist

from . import _C, groups as _groups, waiting as _waiting
from .backend import backend_of as _backend_of
from .ddp import BucketHook
from .simulate import simulate, simulated_time, world_size

__all__ = ["BucketHook", "Options", "register_free", "set_async", "simulate", "simulated_time", "symmetric", "world_size"]


def _check_version():
    """libpeal's binary interface is stable within a minor version while the major version is 0, later within a major version."""
    headers, library = _C.headers_version, _C.library_version()
    same = headers // 100 == library // 100 if headers < 10000 else headers // 10000 == library // 10000
    if not same or library < headers:
        raise ImportError(f"peal_torch was built for libpeal {headers // 10000}.{headers // 100 % 100}.{headers % 100}, "
                          f"but libpeal {_C.library_version_text()} is loaded; build peal_torch again, or install that libpeal")


def Options(algorithms=None):
    """Options of a group, for pg_options of init_process_group and new_group.

    `algorithms`: the algorithm for each collective, with the names of `peal list`: {"allreduce": "ring"}.
    """
    return _C.Options(dict(algorithms or {}))


def set_async(on):
    """Deprecated, does nothing: async_op=True is always asynchronous."""
    _warnings.warn("peal_torch.set_async does nothing: async_op=True is always asynchronous", DeprecationWarning, stacklevel=2)


def symmetric(tensor, group=None):
    """Moves the tensor's storage, and so all views of it, to memory that all ranks of the group can address.

    Collectives on it then need one copy less. All ranks of the group must call this in the same order, with storages of equal size.
    The memory is freed when the group has been destroyed and the storage is gone. Returns the tensor.
    """
    _C.symmetric(_backend_of(group), tensor)
    return tensor


def _create(joining, options):
    if options is not None and not isinstance(options, _C.Options):
        raise TypeError(f"peal: pg_options must be peal_torch.Options(...), not {type(options).__name__}")
    return _C.create(joining.store, joining.group_rank, joining.group_size, joining.timeout,
                     list(joining.global_ranks_in_group), options)


def _register(name, create, **more):
    if hasattr(_dist.Backend, name.upper()):
        return
    if int(_torch.__version__.split(".")[0]) >= 2:
        more["devices"] = ["cpu"]
    _dist.Backend.register_backend(name, create, **more)


def register_free():
    """Registers "peal_free", a backend that does nothing, to measure what torch itself takes for a call."""
    _register("peal_free", lambda store, rank, size, timeout: _C.create_free(rank, size))


def _default_world_size():
    """On a simulated machine, env:// finds its number of ranks where no launcher has set WORLD_SIZE."""
    if "WORLD_SIZE" not in _os.environ and world_size() is not None:
        _os.environ["WORLD_SIZE"] = str(world_size())


_check_version()
_default_world_size()
_register("peal", _create, extended_api=True)
_waiting.install()
_groups.install()
_atexit.register(_C.at_exit)
