# SPDX-License-Identifier: Apache-2.0
"""torch.distributed on a simulated machine: its clock, and large worlds in one process.

A script runs on it unchanged with PEAL_PLATFORM=sim:FILE.yaml, one process per rank. For worlds that are too large for that,
simulate() runs a function in one thread per rank, each with its own default group.
"""
import contextlib
import datetime
import os
import threading

import torch
import torch.distributed as _dist
from torch.distributed import distributed_c10d as _c10d

from . import _C
from .backend import backend_of


def simulated_time(group=None):
    """This rank's clock on the simulated machine (PEAL_PLATFORM=sim:FILE.yaml), in seconds; 0 on the host.

    A rank has one clock for all its groups, which starts at 0 with the first of them. After a collective it is the same on all ranks
    of the group; a message only advances the clocks of its sender and receiver. `group` selects the platform, if there are several.
    """
    return _C.simulated_ps(backend_of(group)) * 1e-12


_TORCH_2 = int(torch.__version__.split(".")[0]) >= 2


class _World(threading.local):
    group = None  # the thread's default group
    made = ()     # all groups of the thread


def _wrapped(backend, name):
    """The process group of a backend: torch 1 does not distinguish them."""
    if not _TORCH_2:
        return backend
    group = _c10d.ProcessGroup(_dist.HashStore(), backend.rank(), backend.size())
    kind = _c10d.ProcessGroup.BackendType.CUSTOM
    group._set_default_backend(kind)
    group._register_backend(torch.device("cpu"), kind, backend)
    group._set_group_name(name)
    return group


def _tables():
    """torch's tables of groups."""
    names = ("_pg_map", "_pg_names", "_pg_group_ranks") + (("_pg_backend_config",) if _TORCH_2 else ())
    return [getattr(_c10d, name) for name in names]


def _register(world, group, ranks, name):
    """Registers a group as torch does."""
    values = [("peal", None), name, {rank: i for i, rank in enumerate(ranks)}, "cpu:peal"]
    for table, value in zip(_tables(), values):
        table[group] = value
    world.made = world.made + (group,)


def _forget(world, group):
    for table in _tables():
        table.pop(group, None)
    world.made = tuple(other for other in world.made if other is not group)


def _new_group(world, ranks=None, timeout=None, backend=None, pg_options=None, **more):
    """new_group for ranks that are threads: splits the communicator of the default group."""
    everyone = _c10d._get_default_group()
    size, own = everyone.size(), everyone.rank()
    if backend not in (None, "peal"):
        raise RuntimeError(f"new_group: ranks that are threads have the backend 'peal' only, not '{backend}'")
    ranks = list(range(size)) if ranks is None else sorted(ranks)
    if len(set(ranks)) != len(ranks) or any(not 0 <= rank < size for rank in ranks):
        raise RuntimeError(f"new_group: ranks are different ones of 0 to {size - 1}, not {ranks}")
    backend = _C.split(backend_of(everyone), own in ranks, timeout or datetime.timedelta(0))  # 0: that of the default group
    if backend is None:
        return _c10d.GroupMember.NON_GROUP_MEMBER
    name = f"simulated {own}, {len(world.made)}"
    group = _wrapped(backend, name)
    _register(world, group, ranks, name)
    return group


def _destroy(world, group=None):
    if group is _c10d.GroupMember.NON_GROUP_MEMBER:
        return
    if group is not None and group is not world.group:
        if group not in world.made:
            raise RuntimeError("destroy_process_group: not a group of this rank")
        return _forget(world, group)
    for other in world.made:
        _forget(world, other)
    world.group = None


def _patched_member(world):
    """1.13 keeps the default group in a class."""

    class Member(type(_c10d.GroupMember)):
        WORLD = property(lambda cls: world.group)

    class GroupMember(_c10d.GroupMember, metaclass=Member):
        pass

    return "GroupMember", GroupMember


def _patched_world(world):
    """2.x keeps it in an object."""

    class World(type(_c10d._world)):
        default_pg = property(lambda self: world.group)

    return "_world", World()


def _patched(world):
    """Makes the functions of torch.distributed find the default group of the calling thread."""

    def new_group(*args, **kwargs):
        return _new_group(world, *args, **kwargs)

    def destroy(*args, **kwargs):
        return _destroy(world, *args, **kwargs)

    name, value = _patched_world(world) if _TORCH_2 else _patched_member(world)
    stack = contextlib.ExitStack()
    for module, name, value in ((_c10d, name, value), (_c10d, "new_group", new_group),
                                (_dist, "new_group", new_group), (_c10d, "destroy_process_group", destroy),
                                (_dist, "destroy_process_group", destroy)):
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


def world_size(machine=None):
    """The number of ranks: WORLD_SIZE, or as many as the machine is made for (`machine`, or that of PEAL_PLATFORM); None without either."""
    given = os.environ.get("WORLD_SIZE")
    platform = os.environ.get("PEAL_PLATFORM", "")
    machine = machine or (platform[4:] if platform.startswith("sim:") else None)
    if given or not machine:
        return int(given) if given else None
    return _C.machine_ranks(machine)


_world_size = world_size  # the function, where an argument has its name


def simulate(world_size, function, machine=None, args=(), timeout=datetime.timedelta(minutes=30)):
    """Runs function(rank, *args) in `world_size` threads of this process, on a simulated machine; None: as many as world_size() says.

    In these, torch.distributed works as after init_process_group: get_rank, all_reduce, send, new_group, ... `machine` is the machine
    file; None: that of PEAL_PLATFORM, or this host itself. `timeout` is that of the default group, and of other groups unless
    new_group is given one. Returns the list of results, or raises the first exception of a rank. The threads share Python's
    interpreter and torch's random state.
    """
    if _dist.is_initialized():
        raise RuntimeError("simulate: destroy the default group first")
    if world_size is None:
        world_size = _world_size(machine)
    if world_size is None:
        raise ValueError("simulate: without a machine there must be a world_size")
    with _platform(machine):
        groups = _C.create_threads(world_size, timeout)
    world, results, failures = _World(), [None] * world_size, []

    def run(rank):
        backend, group = groups[rank], None
        groups[rank] = None  # this thread is then the only owner: the group ends with it
        try:
            _C.join(backend)
            group, backend = _wrapped(backend, f"simulated {rank}"), None
            _register(world, group, range(world_size), f"simulated {rank}")
            world.group = group
            results[rank] = function(rank, *args)
        except BaseException as error:
            failures.append((rank, error))
        finally:
            _destroy(world)
            group = backend = None  # the traceback of an error keeps this frame alive

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
