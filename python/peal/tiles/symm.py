# SPDX-License-Identifier: Apache-2.0
"""torch.distributed, symmetric memory and torch.multiprocessing of the torch stand-in.

Collectives of Python objects are an exchange between the ranks of the recording. Collectives of tensors are an order on the streams:
what any rank did before comes before what any rank does after it; they read their inputs and write their outputs, and of sums, copies
and slices of inputs it is known what they hold (Storage.formula).
"""
from __future__ import annotations

import sys
import types
import unittest
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy

from . import core, program
from .program import standin
from .tensor import DTYPES, Formula, Storage, Tensor, device, dtype, empty, host_lane, unpack

SIGNAL_PAD_BYTES = 2048  # PyTorch's own default


class Group:
    """A process group: ranks of the recording, in order."""

    def __init__(self, ranks: Sequence[int], name: str) -> None:
        self.ranks, self.group_name, self.bound_device_id = list(ranks), name, None

    def rank(self) -> int:
        own = program.rank().index
        return self.ranks.index(own) if own in self.ranks else -1

    def size(self) -> int:
        return len(self.ranks)

    def name(self) -> str:
        return self.group_name

    def __hash__(self) -> int:
        return hash(self.group_name)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Group) and other.group_name == self.group_name


def _world() -> Group:
    return Group(range(program.world_size()), "0")


def _group(given: Any) -> Group:
    if isinstance(given, Group):
        return given
    return _groups().get(given, _world()) if given is not None else _world()


def _groups() -> Dict[str, Group]:
    return program.rank().state.setdefault("torch.groups", {})


def new_group(ranks: Optional[Sequence[int]] = None, *_: Any, **__: Any) -> Group:
    groups = _groups()
    made = Group(range(program.world_size()) if ranks is None else ranks, str(len(groups) + 1))
    groups[made.group_name] = made
    return made


def exchange(value: Any, group: Any = None) -> List[Any]:
    """What the members of the group give, in its order."""
    return program.exchange(value, _group(group).ranks)


def barrier(group: Any = None, *_: Any, blocks: bool = True, **__: Any) -> None:
    program.barrier(_group(group).ranks, blocks)


# ---- collectives of tensors ----

def _collective(name: str, outputs: Sequence[Tensor], inputs: Sequence[Tensor], group: Any,
                contract: Optional[str] = None) -> Any:
    """Known numbers are computed, other data is read and written; of inputs it is known which collective's result it is."""
    members = exchange([(_now(one), one._storage.holds() if one.nbytes == one._storage.nbytes else None) for one in inputs], group)
    on_device = any(one.is_cuda for one in [*outputs, *inputs])
    if on_device:
        barrier(group, blocks=False)
    known = [[array for array, _ in one] for one in members]
    if all(array is not None for one in known for array in one):
        for out, value in zip(outputs, _numbers(name, known, _group(group))):
            out.copy_(from_host(value, out))
        return _Work()
    if on_device:
        lane = host_lane()
        lane.compute(f"torch.distributed.{name}", [s for one in outputs for s in one.spans(False)], [s for one in inputs for s in one.spans(False)])
    for out in outputs:
        out._changed()
    held = [formula for one in members for _, formula in one]
    if contract and all(formula and not formula.contract for formula in held) and len(members) == program.world_size():
        outputs[0]._storage.hold(Formula(contract, held[_group(group).rank()].source))
    return _Work()


def _now(tensor: Tensor) -> Optional[Any]:
    """The numbers, as they are when ranks meet."""
    known = tensor.numbers()
    return None if known is None else known.copy()


def from_host(value: Any, like: Tensor) -> Tensor:
    made = empty(like.shape, like.dtype, "cpu")
    made.numbers()[...] = numpy.asarray(value).reshape(tuple(like.shape))
    return made


def _numbers(name: str, members: List[List[Any]], group: Group) -> List[Any]:
    me, first = group.rank(), [one[0] for one in members]
    if name in ("all_reduce", "reduce_scatter"):
        total = sum(first[1:], first[0])
        return [total if name == "all_reduce" else numpy.split(total, len(members))[me]]
    if name == "all_gather":
        return [numpy.concatenate([numpy.atleast_1d(one) for one in first])]
    if name == "all_gather_list":
        return first
    return [numpy.concatenate([numpy.split(one, len(members))[me] for one in first])]  # all_to_all


class _Work:
    """What an asynchronous collective returns: it is over."""

    def wait(self, *_: Any) -> bool:
        return True

    is_completed = wait


class ReduceOp:
    SUM, AVG, PRODUCT, MIN, MAX = "sum", "avg", "prod", "min", "max"


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    if op != ReduceOp.SUM:
        raise core.refuse(f"all_reduce of '{op}'")
    return _collective("all_reduce", [tensor], [tensor], group, "allreduce")


def all_gather_into_tensor(output: Tensor, tensor: Tensor, group: Any = None, async_op: bool = False) -> Any:
    return _collective("all_gather", [output], [tensor], group, "allgather")


def all_gather(outputs: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Any:
    return _collective("all_gather_list", outputs, [tensor], group)


def reduce_scatter_tensor(output: Tensor, tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    return _collective("reduce_scatter", [output], [tensor], group, "reduce_scatter")


def all_to_all_single(output: Tensor, tensor: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None,
                      async_op: bool = False) -> Any:
    if output_split_sizes or input_split_sizes:
        return _collective("all_to_all_of_parts", [output], [tensor], group) if tensor.numbers() is None else _uneven(
            output, tensor, output_split_sizes, input_split_sizes, group)
    return _collective("all_to_all", [output], [tensor], group, "all_to_all")


def _uneven(output: Tensor, tensor: Tensor, to: Any, of: Any, group: Any) -> Any:
    parts = numpy.split(tensor.numbers(), numpy.cumsum(of)[:-1])
    got = [one[_group(group).rank()] for one in exchange(parts, group)]
    output.copy_(from_host(numpy.concatenate(got), output))
    return _Work()


def broadcast(tensor: Tensor, src: int = 0, group: Any = None, async_op: bool = False) -> Any:
    value = exchange(_now(tensor), group)[_group(group).ranks.index(src)]
    if tensor.is_cuda:
        barrier(group, blocks=False)
    if value is not None:
        tensor.copy_(from_host(value, tensor))
    elif tensor.is_cuda:
        host_lane().compute("torch.distributed.broadcast", tensor.spans(), tensor.spans())
        tensor._changed()
    return _Work()


# ---- collectives of objects ----

def all_gather_object(found: List[Any], value: Any, group: Any = None) -> None:
    found[:] = exchange(value, group)


def broadcast_object_list(objects: List[Any], src: int = 0, group: Any = None, **_: Any) -> None:
    objects[:] = exchange(list(objects), group)[_group(group).ranks.index(src)]


def gather_object(value: Any, found: Optional[List[Any]] = None, dst: int = 0, group: Any = None) -> None:
    values = exchange(value, group)
    if found is not None:
        found[:] = values


# ---- symmetric memory ----

def table(name: str, values: Sequence[int]) -> int:
    """An array of pointers that nobody changes, in memory of this rank's device; its address."""
    region = program.rank().region("private", name, 8 * len(values), "u64", contents=numpy.array(values, numpy.uint64).view(numpy.uint8))
    region.constant = True
    return region.address


class Handle:
    """What rendezvous returns: the buffers and signal pads of all ranks."""
    multicast_ptr, offset = 0, 0

    def __init__(self, buffer: Tensor, group: Group) -> None:
        self._own, self.rank, self.world_size, self.group_name = buffer, group.rank(), group.size(), group.group_name
        self.buffer_size = buffer._storage.nbytes
        region = buffer._storage.region
        pad = program.rank().region("window", f"{region.name}_signals", program.rank().state.get("torch.signal_pad", SIGNAL_PAD_BYTES),
                                    "u32", zeroed=True)
        self.signal_pad_size = pad.nbytes
        places = exchange((region.address, pad.address, region.nbytes), group)
        if any(one[2] != region.nbytes for one in places):
            raise core.refuse("ranks rendezvous with buffers of different sizes")
        self.buffer_ptrs, self.signal_pad_ptrs = [one[0] for one in places], [one[1] for one in places]
        self.buffer_ptrs_dev, self.signal_pad_ptrs_dev = table("buffer_ptrs", self.buffer_ptrs), table("signal_pad_ptrs", self.signal_pad_ptrs)

    def _at(self, address: int, sizes: Sequence[int], element: dtype, offset: int) -> Tensor:
        storage = Storage.of(program.rank().find(address))
        return Tensor(storage, element, sizes, None, offset * element.itemsize)

    def get_buffer(self, rank: int, sizes: Sequence[int], dtype: Any, storage_offset: int = 0) -> Tensor:  # pylint: disable=redefined-outer-name
        return self._at(self.buffer_ptrs[rank], sizes, dtype, storage_offset)

    get_remote_tensor = get_buffer

    def get_signal_pad(self, rank: int, sizes: Sequence[int] = (), dtype: Any = None,  # pylint: disable=redefined-outer-name
                       storage_offset: int = 0) -> Tensor:
        element = dtype or DTYPES["uint32"]
        return self._at(self.signal_pad_ptrs[rank], sizes or (self.signal_pad_size // element.itemsize,), element, storage_offset)

    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        host_lane().take(self.signal_pad_ptrs[dst_rank] + 4 * (self.world_size * channel + self.rank), 4, 0, 1, "release")

    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        host_lane().take(self.signal_pad_ptrs[self.rank] + 4 * (self.world_size * channel + src_rank), 4, 1, 0, "acquire")

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        others = [rank for rank in range(self.world_size) if rank != self.rank]
        for other in others:
            self.put_signal(other, channel)
        for other in others:
            self.wait_signal(other, channel)

    def stream_write_value32(self, tensor: Tensor, offset: int, val: int) -> None:
        host_lane().notify(tensor.data_ptr() + 4 * offset, 4, "set", val, "release")

    def has_multicast_support(self, *_: Any) -> bool:
        return False


def symm_empty(*size: Any, dtype: Any = None, device: Any = None) -> Tensor:  # pylint: disable=redefined-outer-name
    return empty(unpack(size), dtype, "cuda", shared=True)


def rendezvous(tensor: Tensor, group: Any = None) -> Handle:
    found = tensor._storage.__dict__.setdefault("handles", {})
    key = _group(group).group_name
    if key not in found:
        found[key] = Handle(tensor, _group(group))
    return found[key]


def workspace(group_name: Any, min_size: int) -> Handle:
    """get_symm_mem_workspace: one buffer per group, made anew when a larger one is wanted."""
    found = program.rank().state.setdefault("torch.workspaces", {})
    key = _group(group_name).group_name
    if key not in found or found[key].buffer_size < min_size:
        found[key] = rendezvous(empty((min_size,), DTYPES["uint8"], "cuda", shared=True, name="workspace"), group_name)
    return found[key]


def backend_stream(*_: Any, **__: Any) -> Any:
    from .torch import Stream  # pylint: disable=import-outside-toplevel
    state = program.rank().state
    if "torch.backend" not in state:
        state["torch.backend"] = Stream()
    return state["torch.backend"]


# ---- starting ----

def spawn(function: Callable[..., Any], args: Sequence[Any] = (), nprocs: int = 1, **_: Any) -> None:
    """torch.multiprocessing.spawn: every rank of the recording runs the program, and calls the function for itself."""
    if nprocs != program.world_size():
        raise core.refuse(f"the program starts {nprocs} processes, and is recorded for {program.world_size()} ranks: use -n {nprocs}")
    function(program.rank().index, *args)


def init_process_group(*_: Any, world_size: int = -1, rank: int = -1, **__: Any) -> None:
    if world_size not in (-1, program.world_size()):
        raise core.refuse(f"the program wants {world_size} ranks, and is recorded for {program.world_size()}: use -n {world_size}")
    program.rank().state["torch.started"] = True


class TestCase(unittest.TestCase):
    """Tests of several processes: each rank of the recording runs them."""
    file_name = "store"
    rank = property(lambda self: program.rank().index)
    world_size = property(lambda self: program.world_size())

    def _spawn_processes(self) -> None:
        pass

    _spawn_threads = _spawn_processes

    def runTest(self) -> None:  # noqa: N802
        pass


def run_tests(caller: Optional[Dict[str, Any]] = None) -> None:
    for value in list((caller or sys._getframe(1).f_globals).values()):
        if isinstance(value, type) and issubclass(value, TestCase) and value is not TestCase:
            for name in unittest.defaultTestLoader.getTestCaseNames(value):
                case = value(name)
                case.setUp()
                getattr(case, name)()
                case.tearDown()


def test_harness() -> Dict[str, Any]:
    def keep(*_: Any, **__: Any) -> Any:
        return lambda function: function
    common = standin("torch.testing._internal.common_utils", TestCase=TestCase, run_tests=run_tests, parametrize=keep,
                    instantiate_parametrized_tests=lambda cls: cls, skipIfRocm=lambda f: f)
    processes = standin("torch.testing._internal.common_distributed", MultiProcessTestCase=TestCase, MultiProcContinousTest=TestCase,
                       skip_if_lt_x_gpu=keep)
    internal = standin("torch.testing._internal", common_utils=common, common_distributed=processes)
    return {one.__name__: one for one in (internal, common, processes)}


class _WorldMeta(type):
    WORLD = property(lambda cls: _world())


class _GroupNames(metaclass=_WorldMeta):
    """torch.distributed.group"""


def distributed() -> Any:
    """The module torch.distributed."""
    memory = standin(
        "torch.distributed._symmetric_memory", empty=symm_empty, rendezvous=rendezvous, get_symm_mem_workspace=workspace,
        enable_symm_mem_for_group=lambda *_: None, is_symm_mem_enabled_for_group=lambda *_: True, _get_backend_stream=backend_stream,
        set_backend=lambda *_: None, get_signal_pad_size=lambda: program.rank().state.get("torch.signal_pad", SIGNAL_PAD_BYTES),
        set_signal_pad_size=lambda size: program.rank().state.__setitem__("torch.signal_pad", size), _SymmetricMemory=Handle)
    c10d = standin("torch.distributed.distributed_c10d", _set_pg_timeout=lambda *_: None, _get_default_group=_world, ProcessGroup=Group,
                  _resolve_process_group=_group, _world=types.SimpleNamespace())
    functional = standin("torch.distributed._functional_collectives", all_gather_tensor=_functional_gather)
    return standin(
        "torch.distributed", init_process_group=init_process_group, is_initialized=lambda: program.rank().state.get("torch.started", False),
        is_available=lambda: True, is_nccl_available=lambda: True, get_rank=lambda group=None: _group(group).rank(), new_group=new_group,
        get_world_size=lambda group=None: _group(group).size(), get_backend=lambda *_: "nccl", barrier=barrier, ProcessGroup=Group,
        destroy_process_group=lambda *_: program.rank().state.__setitem__("torch.started", False), group=_GroupNames, GroupMember=_GroupNames,
        get_global_rank=lambda group, rank: _group(group).ranks[rank], get_group_rank=lambda group, rank: _group(group).ranks.index(rank),
        get_process_group_ranks=lambda group: list(_group(group).ranks), all_gather_object=all_gather_object, ReduceOp=ReduceOp,
        broadcast_object_list=broadcast_object_list, gather_object=gather_object, all_reduce=all_reduce, all_gather=all_gather,
        all_gather_into_tensor=all_gather_into_tensor, reduce_scatter_tensor=reduce_scatter_tensor, all_to_all_single=all_to_all_single,
        broadcast=broadcast, FileStore=lambda *_, **__: None, TCPStore=lambda *_, **__: None, HashStore=lambda *_: None, Work=_Work,
        _symmetric_memory=memory, distributed_c10d=c10d, _functional_collectives=functional)


def _functional_gather(tensor: Tensor, dim: int = 0, group: Any = None) -> Tensor:
    if dim:
        raise core.refuse("all_gather_tensor along another dimension than the first")
    out = empty((tensor.shape[0] * _group(group).size(), *tensor.shape[1:]), tensor.dtype, device("cuda"))
    all_gather_into_tensor(out, tensor, group)
    return out
