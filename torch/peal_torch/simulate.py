# SPDX-License-Identifier: Apache-2.0
"""A simulated machine behind torch.distributed: its clock, and large worlds in one process.

A script runs on it unchanged with PEAL_PLATFORM=sim:FILE.yaml, one process a rank. For worlds that are too large for that,
simulate() runs the same function as threads of one process, each with a default group of its own.
"""
import contextlib
import datetime
import os
import threading

import torch
import torch.distributed as _dist
from torch.distributed import distributed_c10d as _c10d

from . import _C


def simulated_time(group=None):
    """Seconds that the group's collectives have taken on the simulated machine (PEAL_PLATFORM=sim:FILE.yaml); 0 without."""
    return _C.simulated_ps(group or _c10d._get_default_group()) * 1e-12


class _World(threading.local):
    group = None


def _patched(world):
    """The functions of torch.distributed look for the default group here: make it the thread's own."""

    class Member(type(_c10d.GroupMember)):
        WORLD = property(lambda cls: world.group)

    class GroupMember(_c10d.GroupMember, metaclass=Member):
        pass

    def no_new_group(*_args, **_kwargs):
        raise RuntimeError("new_group: ranks that are threads of one process have the default group only")

    stack = contextlib.ExitStack()
    for module, name, value in ((_c10d, "GroupMember", GroupMember), (_c10d, "new_group", no_new_group),
                                (_dist, "new_group", no_new_group)):
        stack.callback(setattr, module, name, getattr(module, name))
        setattr(module, name, value)
    return stack


@contextlib.contextmanager
def _platform(machine):
    before = os.environ.get("PEAL_PLATFORM")
    if machine is not None:
        os.environ["PEAL_PLATFORM"] = f"sim:{machine}"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("PEAL_PLATFORM", None)
        else:
            os.environ["PEAL_PLATFORM"] = before


def simulate(world_size, function, machine=None, args=(), timeout=datetime.timedelta(minutes=30)):
    """Runs function(rank, *args) as `world_size` threads of this process, on a simulated machine.

    Within it, torch.distributed works as after init_process_group: get_rank, all_reduce, send, ... (no new_group). `machine`
    is the machine file; None: what PEAL_PLATFORM says, or this host itself. Returns the list of results; the first
    exception of a rank is raised here. Threads share Python's interpreter and torch's random state.
    """
    if int(torch.__version__.split(".")[0]) >= 2:
        raise RuntimeError("simulate needs torch 1.13; with later versions run one process a rank")
    if _dist.is_initialized():
        raise RuntimeError("simulate: destroy the default group first")
    with _platform(machine):
        groups = _C.create_threads(world_size, timeout)
    world, results, failures = _World(), [None] * world_size, []

    def run(rank):
        group = groups[rank]
        groups[rank] = None  # the thread's alone: the others are told when it goes
        try:
            _C.join(group)
            _c10d._pg_map[group] = ("peal", None)
            _c10d._pg_names[group] = f"simulated {rank}"
            _c10d._pg_group_ranks[group] = {r: r for r in range(world_size)}
            world.group = group
            results[rank] = function(rank, *args)
        except BaseException as error:
            failures.append((rank, error))
        finally:
            world.group = None
            for table in (_c10d._pg_map, _c10d._pg_names, _c10d._pg_group_ranks):
                table.pop(group, None)
            group = None  # the traceback of an error keeps this frame

    with _patched(world):
        threads = [threading.Thread(target=run, args=(rank,), name=f"rank {rank}") for rank in range(world_size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        rank, error = failures[0]
        raise RuntimeError(f"rank {rank} of {world_size} failed") from error
    return results
