# SPDX-License-Identifier: Apache-2.0
"""Host code as PyTorch users write it, over the kernel that a ccl.yaml names, on a modelled machine.

    torch = peal.ccl.Torch("ccl.yaml", machine="mesh4x4")
    torch.distributed.init_process_group(backend="peal")
    size = torch.distributed.get_world_size()
    x = torch.zeros((size, 64), dtype=torch.float16)
    x.copy_(torch.from_numpy(values))
    torch.distributed.all_reduce(x)
    x.numpy()

The kernel is recorded once for each shape (peal.record), then simulated with the tensor's data. One program drives all ranks: rank r
has the r-th of world_size equal parts of a tensor. In torch.multiprocessing.spawn each rank has a thread and tensors of its own.
`python3 -m peal.ccl HOST.py -c ccl.yaml -m mesh4x4` calls HOST.py's run(torch).
"""
from __future__ import annotations

import argparse
import ctypes
import os
import re
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import record as _record
from ._library import function
from .simulate import Simulation, simulate

try:
    import numpy
except ImportError as _error:  # pragma: no cover
    raise ImportError("peal.ccl needs numpy") from _error

TYPES = {"float16": "f16", "float32": "f32", "float64": "f64", "int8": "i8", "uint8": "u8", "int16": "i16", "int32": "i32",
         "int64": "i64"}
NAMES = {**{short: long for long, short in TYPES.items()}, "half": "float16", "float": "float32", "double": "float64",
         "short": "int16", "int": "int32", "long": "int64"}

_ranks = function("peal_simulate_ranks", [ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint32)])


def _numpy_type(given: Any) -> str:
    name = str(getattr(given, "name", given)).rsplit(".", maxsplit=1)[-1]
    name = NAMES.get(name, name)
    if name not in TYPES:
        raise TypeError(f"'{given}' is not a type of this host code; there are {', '.join(TYPES)}")
    return name


class Tensor:
    """An array of the host. Ranks have equal parts of it, or one has all of it."""

    def __init__(self, array: Any) -> None:
        self._array = array
        _numpy_type(array.dtype)

    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: str(self._array.dtype))
    device = "cpu"

    def numel(self) -> int:
        return int(self._array.size)

    def dim(self) -> int:
        return int(self._array.ndim)

    def size(self, axis: Optional[int] = None) -> Any:
        return self.shape if axis is None else self.shape[axis]

    def numpy(self) -> Any:
        return self._array

    def tolist(self) -> Any:
        return self._array.tolist()

    def item(self) -> Any:
        return self._array.item()

    def copy_(self, source: Any) -> Tensor:
        self._array[...] = _array_of(source).reshape(self.shape)
        return self

    def fill_(self, value: Any) -> Tensor:
        self._array[...] = value
        return self

    def zero_(self) -> Tensor:
        return self.fill_(0)

    def clone(self) -> Tensor:
        return Tensor(self._array.copy())

    def view(self, *shape: Any) -> Tensor:
        return Tensor(self._array.reshape(*shape))

    reshape = view

    def cpu(self) -> Tensor:
        return self

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, key: Any) -> Tensor:
        return Tensor(numpy.asarray(self._array[key]))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array[key] = _array_of(value)

    def __repr__(self) -> str:
        return f"tensor({self._array!r})"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Tensor.{name} is not of this host code (peal.ccl)")


def _array_of(value: Any) -> Any:
    return value.numpy() if isinstance(value, Tensor) else numpy.asarray(value)


class Work:
    """What an asynchronous call returns; the simulation is over by then."""

    def wait(self) -> bool:
        return True

    is_completed = wait


class ReduceOp:
    SUM, PRODUCT, MIN, MAX = "sum", "prod", "min", "max"


class Meeting:
    """Where the threads of spawn come together: the last one acts for all."""

    def __init__(self, size: int) -> None:
        self.size, self.turn, self.here, self.gone = size, 0, {}, None  # type: int, int, Dict[int, Any], Optional[str]
        self.changed = threading.Condition()

    def meet(self, rank: int, item: Any, act: Callable[[List[Any]], None]) -> None:
        with self.changed:
            turn = self.turn
            self.here[rank] = item
            if len(self.here) == self.size:
                items, self.here = [self.here[r] for r in range(self.size)], {}
                act(items)  # its error ends this thread, and leave() tells the others
                self.turn += 1
                self.changed.notify_all()
            self.changed.wait_for(lambda: self.turn != turn or self.gone)
            if self.turn == turn:
                raise RuntimeError(f"rank {rank} waits in a collective, and {self.gone}")

    def leave(self, why: str) -> None:
        with self.changed:
            self.gone = self.gone or why
            self.changed.notify_all()


class Distributed:
    """torch.distributed, as far as a kernel of the configuration does it."""

    ReduceOp = ReduceOp

    def __init__(self, config: str, machine: str, algorithm: Optional[str]) -> None:
        self.config, self.machine, self.algorithm = config, machine, algorithm
        self.backend: Optional[str] = None
        self.size = 0
        self.own = threading.local()  # .rank and .meeting in a thread of spawn
        self.recordings: Dict[Tuple[Any, ...], str] = {}
        self.runs: List[Simulation] = []

    # ---- what host code calls ----

    def init_process_group(self, backend: str = "peal", init_method: Any = None, timeout: Any = None, world_size: int = -1,
                           rank: int = -1, **_: Any) -> None:
        size = world_size if world_size > 0 else self.default_size()
        meeting = getattr(self.own, "meeting", None)
        if meeting and meeting.size != size:
            raise ValueError(f"{meeting.size} processes are spawned for a world of {size}")
        if meeting and rank not in (-1, self.own.rank):
            raise ValueError(f"rank {rank} is given in the process of rank {self.own.rank}")
        self.backend, self.size = backend, size

    def default_size(self) -> int:
        ranks = ctypes.c_uint32()
        if _ranks is None or _ranks(self.machine.encode(), ctypes.byref(ranks)):
            raise ValueError(f"'{self.machine}' is not a machine")
        return _record.world_size(self.config, ranks.value, self.algorithm)

    def is_initialized(self) -> bool:
        return self.backend is not None

    is_available = staticmethod(lambda: True)

    def destroy_process_group(self, group: Any = None) -> None:
        self.meet(None, lambda _: None)
        self.backend = None if not hasattr(self.own, "meeting") else self.backend

    def get_world_size(self, group: Any = None) -> int:
        self.check(group)
        return self.size

    def get_rank(self, group: Any = None) -> int:
        self.check(group)
        return getattr(self.own, "rank", 0)

    def get_backend(self, group: Any = None) -> str:
        self.check(group)
        return str(self.backend)

    def barrier(self, group: Any = None, async_op: bool = False, device_ids: Any = None) -> Optional[Work]:
        self.check(group)
        self.meet(None, lambda _: None)
        return Work() if async_op else None

    def all_reduce(self, tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Optional[Work]:
        self.check(group)
        name = str(op).rsplit(".", maxsplit=1)[-1].lower()
        name = {"product": "prod"}.get(name, name)
        if not isinstance(tensor, Tensor):
            raise TypeError(f"all_reduce of a {type(tensor).__name__}; a tensor is wanted")
        self.meet((tensor, name), self.reduce)
        return Work() if async_op else None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"torch.distributed.{name} is not of this host code (peal.ccl): all_reduce and barrier are")

    # ---- how it is done ----

    def check(self, group: Any) -> None:
        if self.backend is None:
            raise RuntimeError("init_process_group comes first")
        if group is not None:
            raise ValueError("there is one group, of all ranks")

    def meet(self, item: Any, act: Callable[[List[Any]], None]) -> None:
        meeting = getattr(self.own, "meeting", None)
        if meeting:
            meeting.meet(self.own.rank, item, act)
        else:
            act([item])

    def reduce(self, calls: Sequence[Tuple[Tensor, str]]) -> None:
        """One launch: `calls` are those of all ranks, or one for all."""
        tensor, op = calls[0]
        if any(other.shape != tensor.shape or other.dtype != tensor.dtype or name != op for other, name in calls):
            raise ValueError("all_reduce: shape, type or operation are not the same on all ranks")
        if len(calls) == 1 and tensor.numel() % self.size:
            raise ValueError(f"{tensor.numel()} elements are not divided evenly among {self.size} ranks")
        whole = [numpy.ascontiguousarray(other.numpy()).reshape(-1) for other, _ in calls]
        parts = whole if len(calls) == self.size else list(whole[0].reshape(self.size, -1))
        text = self.recorded(parts[0].size, TYPES[tensor.dtype], op)
        self.runs.append(simulate(text, parts, machine=self.machine, ranks=self.size, dtype=TYPES[tensor.dtype]))
        for (other, _), data in zip(calls, whole):
            other.copy_(data)

    def recorded(self, count: int, dtype: str, op: str) -> str:
        key = (self.size, count, dtype, op)
        if key not in self.recordings:
            if op != "sum" and not _record.takes_op(self.config, self.algorithm):
                raise ValueError(f"all_reduce with {op}: the kernel of {self.config} does not take an 'op'")
            given = {"algorithm": self.algorithm} if self.algorithm else {}
            text = _record.record(self.config, self.size, count, dtype, op, given)
            found = re.search(r"^region inout t 0 \S+ \d+ (\S+)$", text, re.M)
            if found and found.group(1) != dtype:
                raise TypeError(f"the kernel of {self.config} works on {found.group(1)}, and the tensor is {dtype}")
            self.recordings[key] = text
        return self.recordings[key]


class Multiprocessing:
    """torch.multiprocessing.spawn; the ranks are threads of this process."""

    def __init__(self, distributed: Distributed) -> None:
        self.distributed = distributed

    def spawn(self, fn: Callable[..., None], args: Sequence[Any] = (), nprocs: int = 1, join: bool = True) -> None:
        meeting, errors = Meeting(nprocs), []  # type: Meeting, List[Tuple[int, BaseException]]

        def work(rank: int) -> None:
            self.distributed.own.rank, self.distributed.own.meeting = rank, meeting
            try:
                fn(rank, *args)
                meeting.leave(f"rank {rank} has ended")
            except BaseException as error:  # pylint: disable=broad-except
                errors.append((rank, error))
                meeting.leave(f"rank {rank} has failed")
        if not join:
            raise ValueError("spawn(join=False) is not of this host code (peal.ccl)")
        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(nprocs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise RuntimeError(f"rank {errors[0][0]} of {nprocs} failed: {errors[0][1]}") from errors[0][1]


class Torch:
    """What host code uses as `torch`. name, device and dp of a new tensor have no meaning here."""

    Tensor = Tensor

    def __init__(self, config: str, machine: Optional[str] = None, algorithm: Optional[str] = None) -> None:
        platform = os.environ.get("PEAL_PLATFORM", "")
        machine = machine or (platform[4:] if platform.startswith("sim:") else None)
        if not machine:
            raise ValueError("a machine is needed: machine=NAME, or PEAL_PLATFORM=sim:NAME")
        self.distributed = Distributed(config, machine, algorithm)
        self.multiprocessing = Multiprocessing(self.distributed)
        for name in TYPES:
            setattr(self, name, name)

    def full(self, size: Any, value: Any, dtype: Any = "float32", name: Any = None, device: Any = None, dp: Any = None) -> Tensor:
        return Tensor(numpy.full(size, value, _numpy_type(dtype)))

    def zeros(self, *size: Any, **more: Any) -> Tensor:
        return self.full(size[0] if len(size) == 1 else size, 0, **more)

    empty = zeros

    def ones(self, *size: Any, **more: Any) -> Tensor:
        return self.full(size[0] if len(size) == 1 else size, 1, **more)

    def arange(self, *limits: Any, dtype: Any = "int64") -> Tensor:
        return Tensor(numpy.arange(*limits, dtype=_numpy_type(dtype)))

    def tensor(self, data: Any, dtype: Any = "float32", device: Any = None) -> Tensor:
        return Tensor(numpy.array(data, _numpy_type(dtype)))

    def from_numpy(self, array: Any) -> Tensor:
        return Tensor(array)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"torch.{name} is not of this host code (peal.ccl)")


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="peal.ccl", description="Runs the host code run(torch) of a file on a modelled machine.")
    parser.add_argument("file")
    parser.add_argument("-c", "--config", default="ccl.yaml")
    parser.add_argument("-m", "--machine")
    parser.add_argument("-a", "--algorithm")
    given = parser.parse_args(arguments)
    try:
        torch = Torch(given.config, given.machine, given.algorithm)
        _record.load(given.file).run(torch)
    except (_record.Refused, OSError) as error:
        print(f"peal: {error}", file=sys.stderr)
        return 2
    runs = torch.distributed.runs
    print(f"{len(runs)} launches, {sum(run.time_ps for run in runs) / 1e6:.3f} us on {torch.distributed.machine}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
