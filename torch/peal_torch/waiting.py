# SPDX-License-Identifier: Apache-2.0
"""Tells the backend which calls are synchronous, where torch does not.

The caller makes a call with async_op=False itself, without another thread. From torch 2.7 on, torch passes async_op to the
backend with every call. Earlier versions do so for some calls or none, so there torch's functions are replaced by wrappers that tell
the backend. Calls that bypass them count as asynchronous, which is correct, but slower. These versions also refuse
monitored_barrier for all backends but Gloo.
"""
import datetime
import functools
import inspect
import sys

import torch.distributed as _dist
from torch.distributed import distributed_c10d as _c10d

from . import _C
from .backend import backend_of

_NAMES = ("all_reduce", "all_reduce_coalesced", "broadcast", "reduce", "all_gather", "all_gather_coalesced",
          "all_gather_into_tensor", "_all_gather_base", "gather", "scatter", "reduce_scatter", "reduce_scatter_tensor",
          "_reduce_scatter_base", "all_to_all", "all_to_all_single", "barrier")

_UNSET = datetime.timedelta(milliseconds=-1)  # the group's own time-out


# The wrapper has the parameters of the function that it replaces: *args and **kwargs would add a tenth to a small call.
_TEXT = """
def call({parameters}):
    if async_op:
        return function({names})
    begin()
    try:
        return function({names})
    finally:
        end()
"""


def _telling(function):
    parameters = inspect.signature(function).parameters
    defaults = {f"default_of_{name}": one.default for name, one in parameters.items() if one.default is not one.empty}
    wanted = [f"{name}=default_of_{name}" if f"default_of_{name}" in defaults else name for name in parameters]
    passed = [f"{name}={name}" if one.kind is one.KEYWORD_ONLY else name for name, one in parameters.items()]
    names = {"function": function, "begin": _C.begin_inline, "end": _C.end_inline, **defaults}
    exec(_TEXT.format(parameters=", ".join(wanted), names=", ".join(passed)), names)
    return functools.wraps(function)(names["call"])


def _tell_dynamo(replaced):
    """torch.compile finds these functions by identity in a table."""
    functional = sys.modules.get("torch.distributed._functional_collectives")
    table = getattr(functional, "traceable_collective_remaps", None)
    if table is None:
        return
    for function, call in replaced.items():
        if function in table:
            table[call] = table[function]


def _with_monitored_barrier(function):
    """Before 2.7 or so, torch asks Gloo only."""

    @functools.wraps(function)
    def call(group=None, timeout=None, wait_all_ranks=False):
        group = group or _c10d._get_default_group()
        if _c10d._rank_not_in_group(group) or str(_c10d.get_backend(group)).lower() != "peal":
            return function(group, timeout, wait_all_ranks)
        return backend_of(group).monitored_barrier(_UNSET if timeout is None else timeout, wait_all_ranks=wait_all_ranks)

    return call


def install():
    """To be called once. Skips functions that this torch does not have."""
    if _C.has_async_flags:
        return
    for module in (_c10d, _dist):
        module.monitored_barrier = _with_monitored_barrier(module.monitored_barrier)
    replaced = {}
    for name in _NAMES:
        function = getattr(_c10d, name, None)
        if function is None or hasattr(function, "_peal_waits"):
            continue
        call = replaced[function] = _telling(function)
        call._peal_waits = True
        for module in (_c10d, _dist):
            if getattr(module, name, None) is function:
                setattr(module, name, call)
    _tell_dynamo(replaced)
