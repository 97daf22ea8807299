# SPDX-License-Identifier: Apache-2.0
"""jax.experimental.pallas and jax.experimental.pallas.tpu: kernels for TPUs, recorded.

A device is a rank. What its core does is one lane; a copy that is started is a lane of its own, which begins after what the core has
done so far, and ends by signalling its semaphores. Semaphores are cells: a signal adds, a wait takes what it waited for. The grid
runs in sequence, and blocks are copied before and after the body.

Memory of a kernel (outputs, scratch, semaphores) is the same in every call of that kernel, on all devices at the same place. What a
peer may write is written by its owner when it enters the kernel, with contents that nobody knows: so a copy that
arrives before its target has entered is a race.
"""
from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import itertools
import math
import re
import types
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import numpy

from . import core, jaxarray, program
from .jaxarray import Array, dense, dtype_of, peal_name

CELL = 8                # bytes of a semaphore
MAX_SHADOW = 1 << 20    # elements whose numbers are followed


# ---- names that programs use ----

class MemorySpace(enum.Enum):
    ANY, DEFAULT, VMEM, VMEM_SHARED, SMEM, CMEM, HBM, HOST, SEMAPHORE = (
        "any", "default", "vmem", "vmem_shared", "smem", "cmem", "hbm", "host", "semaphore_mem")

    def __call__(self, shape: Any, dtype: Any = None) -> MemoryRef:
        return MemoryRef(tuple(jaxarray.as_int(n) for n in shape), dtype_of(dtype), self)

    def like(self, other: Any) -> MemoryRef:
        return self(other.shape, other.dtype)


DEVICE_MEMORY = (MemorySpace.ANY, MemorySpace.HBM, MemorySpace.HOST)


class SemaphoreType(enum.Enum):
    REGULAR, DMA, BARRIER = "regular", "dma", "barrier"

    def __call__(self, shape: Any = ()) -> MemoryRef:
        return MemoryRef((shape,) if isinstance(shape, (int, numpy.integer)) else tuple(shape), self, MemorySpace.SEMAPHORE)


class DeviceIdType(enum.Enum):
    MESH, LOGICAL = "mesh", "logical"


class CoreType(enum.Enum):
    TC, SC_SCALAR_SUBCORE, SC_VECTOR_SUBCORE = 0, 1, 2


class GridDimensionSemantics(enum.Enum):
    PARALLEL, CORE_PARALLEL, SUBCORE_PARALLEL, ARBITRARY = "parallel", "core_parallel", "subcore_parallel", "arbitrary"


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """Memory to be allocated."""
    shape: Tuple[int, ...]
    dtype: Any
    memory_space: Any


@dataclasses.dataclass(eq=False)
class BlockSpec:
    block_shape: Optional[Sequence[Any]] = None
    index_map: Optional[Callable[..., Any]] = None
    memory_space: Any = None
    pipeline_mode: Any = None

    def __post_init__(self) -> None:
        if callable(self.block_shape):  # an older order of the parameters
            self.block_shape, self.index_map = self.index_map, self.block_shape  # type: ignore[assignment]

    def replace(self, **changes: Any) -> BlockSpec:
        return dataclasses.replace(self, **changes)


no_block_spec = BlockSpec()


@dataclasses.dataclass
class GridSpec:
    grid: Any = ()
    in_specs: Any = no_block_spec
    out_specs: Any = no_block_spec
    scratch_shapes: Any = ()
    num_scalar_prefetch = 0


class PrefetchScalarGridSpec(GridSpec):
    def __init__(self, num_scalar_prefetch: int, grid: Any = (), in_specs: Any = no_block_spec, out_specs: Any = no_block_spec,
                 scratch_shapes: Any = ()) -> None:
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


class Parameters(types.SimpleNamespace):
    """CompilerParams and the like: what is not given is None."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def replace(self, **changes: Any) -> Parameters:
        return Parameters(**{**self.__dict__, **changes})


@dataclasses.dataclass(frozen=True)
class Element:
    block_size: int
    padding: Tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class Blocked:
    block_size: int


class Squeezed:
    pass


@dataclasses.dataclass
class TensorCoreMesh:
    """The cores of one device."""
    axis_name: Any = "core"
    num_cores: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.axis_name, (tuple, list)):
            (self.axis_name,) = self.axis_name
    shape = property(lambda self: {self.axis_name: self.num_cores})


class Slice:
    """pl.ds"""

    def __init__(self, start: Any, size: Any = None, stride: Any = 1) -> None:
        if size is None:
            start, size = 0, start
        self.start, self.size, self.stride = start, size, stride

    def peal_slice(self) -> Tuple[int, int, int]:
        return jaxarray.as_int(self.start), jaxarray.as_int(self.size), jaxarray.as_int(self.stride or 1)

    @classmethod
    def from_slice(cls, given: slice, size: int) -> Slice:
        start, stop, step = given.indices(size)
        return cls(start, len(range(start, stop, step)), step)


# ---- memory ----

class Storage:
    """Memory of one name on all ranks, at the same place of each."""

    def __init__(self, recording: core.Recording, key: Any, name: str, space: MemorySpace, shape: Tuple[int, ...], dtype: Any) -> None:
        self.key, self.name, self.space, self.shape, self.dtype = key, name, space, shape, dtype
        semaphore = isinstance(dtype, SemaphoreType)
        self.itemsize = CELL if semaphore else dtype.itemsize
        self.peal = "i64" if semaphore else peal_name(dtype)
        self.name = name = common_name(name)
        self.regions = [rank.region("window", name, max(math.prod(shape), 1) * self.itemsize, self.peal, zeroed=semaphore)
                        for rank in recording.rank]
        self.reached = False                        # a peer writes there
        self.entries: List[Tuple[core.Rank, int]] = []  # where owners entered a kernel that has it, while no peer was known to write
        self.numbers: Dict[int, Tuple[Any, Any]] = {}   # of each rank: what it holds, and where that is known
        self.used_as_number: Optional[core.Place] = None
        self.users: Dict[int, Any] = {}             # of each rank: the array that is in it

    def whole(self, rank: int) -> core.Span:
        return core.Span(self.peal, self.regions[rank].address, max(math.prod(self.shape), 1))

    def enter(self, lane: core.Lane) -> None:
        """Its owner enters the kernel: whatever was in it is gone."""
        text = f"write {self.whole(lane.rank.index).text()}"
        if self.reached:
            lane.say(text)
        else:
            self.entries.append((lane.rank, lane.say(f"# {self.name} is memory of the kernel from here on")))

    def reach(self) -> None:
        """A peer writes there."""
        if self.reached:
            return
        self.reached = True
        for rank, line in self.entries:
            rank.writer.lines[line] = f"write {self.whole(rank.index).text()}"
        self.entries.clear()
        if self.used_as_number:
            raise core.refuse(f"'{self.name}' is written by a peer, and its numbers decide what happens at {core.told(self.used_as_number)}")

    # -- numbers --

    def follow(self, rank: int, contents: Any = None) -> None:
        """From now on it is known what numbers are in it: those that are given, or none yet."""
        if math.prod(self.shape) > MAX_SHADOW:
            return
        values = numpy.zeros(self.shape, jaxarray.kept(self.dtype))
        valid = numpy.zeros(self.shape, bool)
        if contents is not None:
            values[...] = contents
            valid[...] = True
        self.numbers[rank] = (values, valid)


class Ref:
    """A reference: a view of storage. Without a rank it is that of the rank in progress."""

    def __init__(self, storage: Storage, shape: Sequence[int], strides: Sequence[int], offset: int = 0, dtype: Any = None,
                 rank: Optional[int] = None) -> None:
        self.storage, self.shape, self.strides, self.offset = storage, tuple(shape), tuple(strides), offset
        self.dtype = storage.dtype if dtype is None else dtype
        self.rank = core.rank().index if rank is None else rank
        self.outside: Optional[str] = None  # it is beyond its memory: only its size may be used

    name = property(lambda self: self.storage.name)
    memory = None  # that of an array, which is loaded when it is used
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))

    @property
    def address(self) -> int:
        if self.outside:
            raise core.refuse(self.outside)
        return self.storage.regions[self.rank].address + self.offset
    memory_space = property(lambda self: self.storage.space)
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    at = property(lambda self: At(self))
    T = property(lambda self: self.transpose())
    weak_type = False

    @classmethod
    def of(cls, storage: Storage) -> Ref:
        return cls(storage, storage.shape, dense(storage.shape, storage.itemsize))

    def on(self, rank: int) -> Ref:
        found = Ref(self.storage, self.shape, self.strides, self.offset, self.dtype, rank)
        found.outside = self.outside
        return found

    def view(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0, outside: Optional[str] = None) -> Ref:
        found = Ref(self.storage, shape, strides, self.offset + offset, self.dtype, self.rank)
        found.outside = outside or self.outside
        return found

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Ref({self.name}, {list(self.shape)})"

    def __bool__(self) -> bool:
        return True

    def narrowed(self, key: Any) -> Ref:
        found = jaxarray.index(self, key)
        if found is None:
            raise core.refuse(f"'{self.name}' is indexed by an array: only numbers, slices and pl.ds are followed")
        return found

    # -- loads and stores --

    def is_semaphore(self) -> bool:
        return isinstance(self.dtype, SemaphoreType)

    def known(self) -> Optional[Tuple[Any, Any]]:
        """Views of the numbers that are in it, and of where they are known."""
        found = self.storage.numbers.get(self.rank)
        if found is None or self.dtype is not self.storage.dtype and self.dtype != self.storage.dtype:
            return None
        values, valid = found
        item, scale = self.storage.itemsize, values.dtype.itemsize
        at = self.offset // item
        return (numpy.ndarray(self.shape, values.dtype, values, at * scale, tuple(s // item * scale for s in self.strides)),
                numpy.ndarray(self.shape, bool, valid, at, tuple(s // item for s in self.strides)))

    def load_all(self) -> Any:
        """Its elements, read by the core."""
        if self.is_semaphore():
            raise core.refuse(f"semaphore '{self.name}' is read as data; pl.semaphore_read is for that")
        lane = jaxarray.device_lane()
        numbers = self.known()
        if numbers is not None and numbers[1].all():
            if self.storage.reached:
                raise core.refuse(f"the numbers of '{self.name}', which a peer writes, are not known in a recording")
            self.storage.used_as_number = core.place()
            for piece in jaxarray.spans(self):
                lane.read(piece)
            return jaxarray.known(numbers[0].copy())
        return jaxarray.load_view(lane, self)

    def __getitem__(self, key: Any) -> Any:
        return self.narrowed(key).load_all()

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self.narrowed(key)
        if target.is_semaphore():
            raise core.refuse(f"semaphore '{self.name}' is written as data")
        value = jaxarray.loaded(value)
        shape = value.shape if hasattr(value, "shape") else numpy.shape(value)
        if len(shape) > target.ndim or any(a not in (1, b) for a, b in zip(reversed(shape), reversed(target.shape))):
            raise core.refuse(f"an array of shape {list(shape)} is stored in '{self.name}' at a place of shape {list(target.shape)}")
        jaxarray.store(jaxarray.device_lane(), target, value)
        target.became(value)

    def became(self, value: Any) -> None:
        """The numbers are these now; an Array: nobody knows which."""
        numbers = self.known()
        if numbers is None:
            self.storage.numbers.pop(self.rank, None)
        elif isinstance(value, Array):
            numbers[1][...] = False
        else:
            numbers[0][...] = value
            numbers[1][...] = True

    def get(self, key: Any = Ellipsis) -> Any:
        return self[key]

    def set(self, value: Any) -> None:
        self[...] = value

    # -- other views --

    def reshape(self, *shape: Any) -> Ref:
        wanted = [jaxarray.as_int(n) for n in (shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)]
        if -1 in wanted:
            wanted[wanted.index(-1)] = self.size // max(math.prod(n for n in wanted if n != -1), 1)
        if math.prod(wanted) != self.size or dense(self.shape, self.dtype.itemsize) != self.strides:
            raise core.refuse(f"reshape of {jaxarray.shown(self)} to {wanted}")
        return self.view(wanted, dense(wanted, self.dtype.itemsize))

    def transpose(self, *axes: Any) -> Ref:
        return jaxarray.transpose(self, axes or None)

    def bitcast(self, dtype: Any) -> Ref:
        """Elements of another type: the second dimension from the end grows or shrinks, as on the TPU."""
        dtype = dtype_of(dtype)
        shape, old, new = list(self.shape), self.dtype.itemsize, dtype.itemsize
        if old != new:
            if self.ndim < 2 or dense(self.shape, old) != self.strides or shape[-2] * old % new:
                raise core.refuse(f"bitcast of {jaxarray.shown(self)} to {dtype}")
            shape[-2] = shape[-2] * old // new
            return Ref(self.storage, shape, dense(shape, new), self.offset, dtype, self.rank)
        return Ref(self.storage, shape, self.strides, self.offset, dtype, self.rank)


class At:
    def __init__(self, ref: Ref) -> None:
        self.ref = ref

    def __getitem__(self, key: Any) -> Ref:
        return self.ref.narrowed(key)


def select_ref(which: Any, *refs: Ref) -> Ref:
    return refs[jaxarray.as_int(which)]


# ---- the kernel in progress ----

class Shared:
    """What stand-ins of all ranks know together."""

    def __init__(self) -> None:
        self.storage: Dict[Any, List[Storage]] = {}
        self.communicates: Set[Any] = set()            # calls of kernels in which some rank reaches another one
        self.starts: Dict[Any, List[Tuple[core.Rank, int, List[int]]]] = {}
        self.inputs: Dict[Tuple[str, int], str] = {}   # names of the caller's data: the n-th of that name on each rank
        self.balance: Dict[Any, List[Any]] = {}        # of each semaphore in each call: added, taken, storage, place


def shared() -> Shared:
    recording = core.rank().recording
    found = recording.rank[0].state.get("pallas")
    if found is None:
        found = recording.rank[0].state["pallas"] = Shared()
        recording.at_end.append(lambda: check_balance(recording, found))
    return found


def common_name(wanted: str) -> str:
    """A name that is free on all ranks."""
    ranks, name, number = core.rank().recording.rank, wanted, 1
    while any(name in rank.names for rank in ranks):
        number += 1
        name = f"{wanted.rstrip('0123456789') or wanted}{number}"
    return name


def input_region(label: str, count: int, dtype: Any) -> core.Region:
    """Memory of the caller's data, of one name on all ranks."""
    rank, seen = core.rank(), state()["inputs"]
    seen[label] = seen.get(label, 0) + 1
    names = shared().inputs
    if (label, seen[label]) not in names:
        names[label, seen[label]] = common_name(label)
        for other in rank.recording.rank:
            if other is not rank:
                other.names.add(names[label, seen[label]])
    name = names[label, seen[label]]
    rank.names.discard(name)
    return rank.region("in", name, count * dtype.itemsize, peal_name(dtype))


def storage_for(key: Any, name: str, space: MemorySpace, shape: Sequence[int], dtype: Any, user: bool = False) -> Storage:
    """The memory of that key. With a user, one that no array of this rank is in."""
    shape = tuple(int(n) for n in shape)
    found = shared().storage.setdefault((key, space, shape, str(dtype)), [])
    rank = core.rank()
    for one in found:
        if not user or one.users.get(rank.index, lambda: None)() is None:
            return one
    found.append(Storage(rank.recording, key, name, space, shape, dtype))
    return found[-1]


def on_core(storage: Storage, core_at: Optional[int]) -> Storage:
    """The same memory on another core of the device: its key ends with the core."""
    if core_at is None or core_at == kernel().core_index or storage.space in DEVICE_MEMORY:
        return storage
    return storage_for((*storage.key[:-1], core_at), storage.name, storage.space, storage.shape, storage.dtype)


@dataclasses.dataclass
class Kernel:
    """A call of a kernel on one device, and where it is."""
    name: str
    key: Any                # the same on all devices, and in every call
    number: int             # of the call
    rank: core.Rank
    mesh: Any
    params: Any
    lane: core.Lane
    grid: Tuple[int, ...] = ()
    at: Tuple[int, ...] = ()
    cores: Optional[TensorCoreMesh] = None
    core_index: int = 0
    scoped: int = 0

    @property
    def call(self) -> Any:
        return (self.key, self.number)


def state() -> Dict[str, Any]:
    return core.rank().state.setdefault("jax", {"kernels": [], "meshes": [], "axes": [], "numbers": {}, "inputs": {}, "arrivals": {}, "started": 0})


def kernel() -> Kernel:
    found = state()["kernels"]
    if not found:
        raise core.refuse("this can be done in a Pallas kernel only")
    return found[-1]


def program_id(axis: int) -> Any:
    if not 0 <= axis < len(kernel().at):
        raise core.refuse(f"axis {axis} of a grid of {len(kernel().at)} dimensions")
    return numpy.int32(kernel().at[axis])


def num_programs(axis: int) -> Any:
    if not 0 <= axis < len(kernel().grid):
        raise core.refuse(f"axis {axis} of a grid of {len(kernel().grid)} dimensions")
    return kernel().grid[axis]


def device_rank(device_id: Any, device_id_type: Any) -> Tuple[Optional[int], Optional[int]]:
    """The rank that is meant (None: this one), and the core of it (None: the same one)."""
    k = kernel()
    if device_id is None:
        return None, None
    if k.mesh is None:
        raise core.refuse("a kernel that reaches other devices is called outside of jax.shard_map")
    devices, names = k.mesh.devices, list(k.mesh.axis_names)
    core_at: Optional[int] = None
    if isinstance(device_id, dict):
        own = dict(zip(names, k.mesh.coordinates(k.rank.index)))
        for axis, value in device_id.items():
            axes = list(axis) if isinstance(axis, tuple) else [axis]
            rest = jaxarray.as_int(value)
            for one in reversed(axes):
                size = k.cores.num_cores if k.cores and one == k.cores.axis_name else dict(zip(names, devices.shape)).get(one)
                if size is None:
                    raise core.refuse(f"device_id names axis '{one}'; the mesh has {', '.join(names)}")
                digit, rest = (rest % size, rest // size) if len(axes) > 1 else (rest, 0)
                if k.cores and one == k.cores.axis_name:
                    core_at = digit
                else:
                    own[one] = digit
        where: Any = tuple(own[name] for name in names)
    elif device_id_type is DeviceIdType.LOGICAL:
        number = jaxarray.as_int(device_id)
        if not 0 <= number < devices.size:
            raise core.refuse(f"there is no device {number}: the mesh has {devices.size}")
        return devices.flat[number].id, None
    else:
        where = tuple(jaxarray.as_int(one) for one in (device_id if isinstance(device_id, (tuple, list)) else (device_id,)))
        if len(where) != len(names):
            raise core.refuse(f"device_id has {len(where)} numbers; the mesh has {len(names)} axes: {', '.join(names)}")
    for one, size, name in zip(where, devices.shape, names):
        if not 0 <= one < size:
            raise core.refuse(f"there is no device {one} on axis '{name}', which has {size}")
    return devices[where].id, core_at


def communicate() -> None:
    """The kernel reaches another device: unless it has a barrier of its own, one was inserted where it began."""
    k, known = kernel(), shared()
    if k.params.collective_id is not None or k.params.skip_device_barrier or k.call in known.communicates:
        return
    known.communicates.add(k.call)
    for rank, line, members in known.starts.pop(k.call, []):
        rank.writer.lines[line] = barrier_text(rank, members)


def barrier_text(rank: core.Rank, members: Sequence[int]) -> str:
    """All devices of the mesh meet: each adds one at every other, and takes one of each."""
    rank.recording.assume("pallas_barrier", "that Pallas inserts a barrier of all devices of the mesh where a kernel begins that reaches other devices and has "
                          "no collective_id")
    box = storage_for("device_barrier", "device_barrier", MemorySpace.SEMAPHORE, (rank.recording.ranks,), SemaphoreType.BARRIER)
    lines = []
    for other in members:
        if other != rank.index:
            lines.append(notify_text(rank.recording, box.regions[other].address + CELL * rank.index, 1))
    for other in members:
        if other != rank.index:
            own = box.regions[rank.index].address + CELL * other
            lines += [f"wait {own:#x} {CELL} >= 1 acquire system", notify_text(rank.recording, own, -1)]
    return "\n".join(lines) or "# a barrier of one device"


def notify_text(recording: core.Recording, address: int, value: int) -> str:
    recording.cells.add((address, CELL))
    return f"notify {address:#x} {CELL} add {value} release system"


def begin_kernel(k: Kernel) -> None:
    known = shared()
    if k.mesh is None or k.params.collective_id is not None or k.params.skip_device_barrier:
        return
    members = [device.id for device in k.mesh.devices.flat]
    if k.call in known.communicates:
        k.lane.say(barrier_text(k.rank, members))
    else:
        known.starts.setdefault(k.call, []).append((k.rank, k.lane.say("# the kernel begins"), members))


# ---- semaphores ----

def cell(sem: Any, rank: Optional[int] = None, core_at: Optional[int] = None) -> Tuple[int, Storage, int]:
    """Address of a single semaphore on a rank."""
    if not isinstance(sem, Ref) or not sem.is_semaphore():
        raise core.refuse("a semaphore is wanted here")
    if sem.shape and sem.size != 1:
        raise core.refuse(f"'{sem.name}' is {list(sem.shape)} semaphores: one is wanted, '{sem.name}.at[i]'")
    storage = on_core(sem.storage, core_at)
    return storage.regions[sem.rank if rank is None else rank].address + sem.offset, storage, sem.offset // CELL


def account(storage: Storage, number: int, rank: int, added: int, taken: int) -> None:
    k = kernel()
    entry = shared().balance.setdefault((k.call, id(storage), number, rank), [0, 0, storage, None, k.name])
    entry[0] += added
    entry[1] += taken
    entry[3] = core.place()


def check_balance(recording: core.Recording, known: Shared) -> None:
    """Semaphores must be zero when a kernel ends: what is left over is said as a wait that does not end."""
    left = {key: entry for key, entry in known.balance.items() if entry[0] > entry[1]}  # too many waits do not end anyway
    if not left:
        return
    (call, which, number, rank), (added, taken, storage, place, name) = min(left.items(), key=lambda item: (item[0][0][1], item[0][3]))
    shown = f"'{storage.name}'" if len(storage.shape) == 0 else f"'{storage.name}[{number}]'"
    recording.note(f"{shown} of rank {rank} holds {added - taken} when '{name}' ends, after {core.told(place)}: it was given {added} and waits took "
                   f"{taken}; Pallas wants 0, and a kernel that leaves more is shown as one that does not end")
    total = sum(entry[0] - entry[1] for key, entry in known.balance.items() if key[1:] == (which, number, rank))
    owner = recording.rank[rank]
    owner.writer.say(f"lane {owner.host().number}", place)
    owner.last_lane = None
    owner.writer.say(f"wait {storage.regions[rank].address + CELL * number:#x} {CELL} >= {total + 1} acquire system", place)


def semaphore_signal(sem: Any, inc: Any = 1, *, device_id: Any = None, device_id_type: Any = DeviceIdType.MESH, core_index: Any = None) -> None:
    k = kernel()
    rank, core_at = device_rank(device_id, device_id_type)
    core_at = jaxarray.as_int(core_index) if core_index is not None else core_at
    amount = jaxarray.as_int(inc)
    if isinstance(sem, Ref) and sem.dtype is SemaphoreType.DMA:
        raise core.refuse(f"'{sem.name}' is a DMA semaphore: only copies signal it")
    if amount < 0:
        raise core.refuse(f"a signal of {amount}: semaphores are raised by signals and lowered by waits")
    address, storage, number = cell(sem, rank, core_at)
    if rank is not None and rank != k.rank.index:
        communicate()
    if amount:
        k.lane.notify(address, CELL, "add", amount)
        account(storage, number, k.rank.index if rank is None else rank, amount, 0)


def semaphore_wait(sem: Any, value: Any = 1, *, decrement: bool = True) -> None:
    if isinstance(sem, Ref) and sem.dtype is SemaphoreType.DMA:
        raise core.refuse(f"'{sem.name}' is a DMA semaphore: the copies that signal it are waited for by their descriptors")
    take(sem, jaxarray.as_int(value), decrement)


def take(sem: Any, amount: int, decrement: bool = True) -> None:
    """Blocks until the semaphore of this core has that much, and takes it."""
    lane = kernel().lane
    address, storage, number = cell(sem)
    if amount > 0:
        lane.wait(address, CELL, ">=", amount)
        if decrement:
            lane.notify(address, CELL, "add", -amount)
            account(storage, number, kernel().rank.index, 0, amount)


def semaphore_read(sem: Any) -> Any:
    """A look at its value, which no recording knows."""
    address, _, _ = cell(sem)
    kernel().lane.read(core.Span("i64", address))
    return jaxarray.opaque("semaphore_read", [], (), numpy.dtype("int32"))


def get_barrier_semaphore() -> Ref:
    k = kernel()
    if k.params.collective_id is None:
        raise core.refuse("get_barrier_semaphore in a kernel without a collective_id in its CompilerParams")
    return Ref.of(storage_for(("barrier", k.params.collective_id, k.core_index), f"barrier_{k.params.collective_id}", MemorySpace.SEMAPHORE, (),
                              SemaphoreType.BARRIER))


# ---- copies ----

class AsyncCopy:
    """A descriptor: what is copied where, and which semaphores say so."""

    def __init__(self, src: Ref, dst: Ref, recv_sem: Any, send_sem: Any = None, device_id: Any = None,
                 device_id_type: Any = DeviceIdType.MESH) -> None:
        for one, what in ((src, "source"), (dst, "destination")):
            if not isinstance(one, Ref) or one.is_semaphore():
                raise core.refuse(f"the {what} of a copy is a {type(one).__name__}; a reference to memory is wanted")
        self.src_ref, self.dst_ref, self.dst_sem, self.src_sem = src, dst, recv_sem, send_sem
        self.device_id, self.device_id_type = device_id, device_id_type

    is_remote = property(lambda self: self.src_sem is not None)

    @staticmethod
    def amount(sem: Any, ref: Ref) -> int:
        """What a copy of that much gives: bytes for DMA semaphores, one for others."""
        return ref.nbytes if isinstance(sem, Ref) and sem.dtype is SemaphoreType.DMA else 1

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        src, dst = self.src_ref, self.dst_ref
        if src.shape != dst.shape or src.dtype != dst.dtype:
            raise core.refuse(f"a copy of {jaxarray.shown(src)}, {src.dtype}, to {jaxarray.shown(dst)}, {dst.dtype}")
        if self.is_remote:
            self._start_remote(add)
        else:
            self._start_local(add)

    def _start_local(self, add: bool) -> None:
        lane = kernel().lane.fork("copy")
        move(lane, self.dst_ref, self.src_ref, add)
        self._signal(lane, self.dst_sem, None, None, self.dst_ref)
        numbers = self.src_ref.known()
        if numbers is not None and numbers[1].all() and not add:
            self.dst_ref.became(numbers[0])
        else:
            self.dst_ref.became(jaxarray.Array(None, 0, (), self.dst_ref.dtype))

    def _start_remote(self, add: bool) -> None:
        """The source is read, which the send semaphore says; later the destination is written, which the receive semaphore of
        the target says."""
        k = kernel()
        rank, core_at = device_rank(self.device_id, self.device_id_type)
        assert rank is not None
        if rank != k.rank.index:
            communicate()
        target = self.dst_ref.on(rank)
        target.storage = on_core(target.storage, core_at)
        target.storage.reach()
        lane = k.lane.fork("copy")
        flight = in_flight(lane, self.src_ref)
        move(lane, flight, self.src_ref, False)
        self._signal(lane, self.src_sem, None, None, self.src_ref)
        if program.options().in_order_copies:
            k.rank.recording.assume("in_order_copies", "that copies from one device to the same other one arrive in the order in which they were started")
            arrivals = state()["arrivals"]
            if rank not in arrivals:
                arrivals[rank] = k.rank.new_lane(f"to{rank}", k.lane.block)
                arrivals[rank].stream = k.lane.stream
            arrivals[rank].after(lane)
            lane = arrivals[rank]
        else:
            k.rank.recording.note("remote copies arrive in any order")
        move(lane, target, flight, add)
        self._signal(lane, self.dst_sem, rank, core_at, self.dst_ref)

    def _signal(self, lane: core.Lane, sem: Any, rank: Optional[int], core_at: Optional[int], ref: Ref) -> None:
        address, storage, number = cell(sem, rank, core_at)
        amount = self.amount(sem, ref)
        if amount:
            lane.notify(address, CELL, "add", amount)
            account(storage, number, kernel().rank.index if rank is None else rank, amount, 0)

    def wait(self) -> None:
        if self.is_remote:
            self.wait_send()
        self.wait_recv()

    def wait_recv(self) -> None:
        take(self.dst_sem, self.amount(self.dst_sem, self.dst_ref))

    def wait_send(self) -> None:
        if not self.is_remote:
            raise core.refuse("wait_send of a copy within the device")
        take(self.src_sem, self.amount(self.src_sem, self.src_ref))


def move(lane: core.Lane, dst: Any, src: Any, add: bool) -> None:
    if not add:
        jaxarray.copy_view(lane, dst, src)
        return
    for offsets, count, rows, strides in jaxarray.pieces(dst.shape, [(dst.strides, dst.dtype.itemsize), (src.strides, src.dtype.itemsize)]):
        lane.accumulate("add", jaxarray.span(dst, offsets[0], count, rows, strides[0]), jaxarray.span(src, offsets[1], count, rows, strides[1]))


def in_flight(lane: core.Lane, ref: Ref) -> Array:
    """Memory for what has left its source and has not arrived: every copy has its own."""
    assert lane.stream is not None
    address = lane.stream.allocate(max(ref.size, 1), peal_name(ref.dtype))
    return Array(None, address, ref.shape, ref.dtype)


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any) -> AsyncCopy:
    return AsyncCopy(src_ref, dst_ref, sem)


def make_async_remote_copy(src_ref: Any, dst_ref: Any, send_sem: Any, recv_sem: Any, device_id: Any,
                           device_id_type: Any = DeviceIdType.MESH) -> AsyncCopy:
    return AsyncCopy(src_ref, dst_ref, recv_sem, send_sem, device_id, device_id_type)


def async_copy(src_ref: Any, dst_ref: Any, sem: Any, *, priority: int = 0, add: bool = False) -> AsyncCopy:
    found = make_async_copy(src_ref, dst_ref, sem)
    found.start(priority, add=add)
    return found


def async_remote_copy(src_ref: Any, dst_ref: Any, send_sem: Any, recv_sem: Any, device_id: Any,
                      device_id_type: Any = DeviceIdType.MESH) -> AsyncCopy:
    found = make_async_remote_copy(src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type)
    found.start()
    return found


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """A copy that is waited for at once, by a semaphore that nothing else uses: done by the core."""
    from .jax import leaves  # pylint: disable=import-outside-toplevel,cyclic-import
    for src, dst in zip(leaves(src_ref), leaves(dst_ref)):
        if src.shape != dst.shape or src.dtype != dst.dtype:
            raise core.refuse(f"a copy of {jaxarray.shown(src)}, {src.dtype}, to {jaxarray.shown(dst)}, {dst.dtype}")
        numbers = src.known()
        move(jaxarray.device_lane(), dst, src, add)
        dst.became(numbers[0] if numbers is not None and numbers[1].all() and not add else Array(None, 0, (), dst.dtype))


# ---- scratch ----

def allocate(key: Any, name: str, wanted: Any, lane: core.Lane) -> Ref:
    """Memory of a kernel, from a MemoryRef, a SemaphoreType or anything with a shape and a type."""
    if isinstance(wanted, SemaphoreType):
        wanted = wanted()
    if not hasattr(wanted, "shape") or not hasattr(wanted, "dtype"):
        raise core.refuse(f"'{name}' is to be a {type(wanted).__name__}; memory or semaphores are wanted")
    space = getattr(wanted, "memory_space", None) or MemorySpace.VMEM
    dtype = wanted.dtype if isinstance(wanted.dtype, SemaphoreType) else dtype_of(wanted.dtype)
    storage = storage_for(key, name, space, wanted.shape, dtype)
    if not isinstance(dtype, SemaphoreType):
        storage.enter(lane)
        if space is MemorySpace.SMEM:
            storage.follow(lane.rank.index)
    return Ref.of(storage)


def leaf_name(name: str, path: Any) -> str:
    """Of a part of a parameter: the key in a dictionary, or the parameter's name and the number."""
    inner, last = path if isinstance(path, tuple) else (None, None)
    if last is None:
        return name
    return re.sub(r"\W", "_", last) if isinstance(last, str) else f"{leaf_name(name, inner)}_{last}"


def parameter_names(body: Any, count: int) -> List[str]:
    """The names that the kernel gives to its references."""
    try:
        found = inspect.signature(body).parameters.values()
    except (TypeError, ValueError):
        found = ()  # type: ignore[assignment]
    names = [one.name for one in found if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    rest = next((one.name for one in found if one.kind is one.VAR_POSITIONAL), "ref")
    return names[:count] + [f"{rest}_{i}" for i in range(len(names), count)]


def body_of(body: Any) -> Tuple[str, Any]:
    """A kernel's name, and its code, below functools.partial and wrappers."""
    name = None
    while True:
        if isinstance(body, functools.partial):
            body = body.func
        elif hasattr(body, "__wrapped__"):
            body = body.__wrapped__
        else:
            break
    name = getattr(body, "__name__", "kernel")
    return ("kernel" if name in ("_", "<lambda>") else name), getattr(body, "__code__", body)


def run_scoped(body: Callable[..., Any], *wanted: Any, collective_axes: Any = (), **named: Any) -> Any:
    from .jax import tree_map_named  # pylint: disable=import-outside-toplevel,cyclic-import
    k = kernel()
    del collective_axes
    code = body_of(body)[1]
    k.scoped += 1
    try:
        names = parameter_names(body, len(wanted))

        def make(name: str, path: Any, one: Any) -> Ref:
            return allocate((k.key, "scoped", code, k.scoped, path, k.core_index), leaf_name(name, path), one, k.lane)
        refs = [tree_map_named(functools.partial(make, name), one, i) for i, (name, one) in enumerate(zip(names, wanted))]
        return body(*refs, **{name: tree_map_named(functools.partial(make, name), one, name) for name, one in named.items()})
    finally:
        k.scoped -= 1


def with_scoped(*wanted: Any, collective_axes: Any = (), **named: Any) -> Callable[..., Any]:
    del collective_axes
    return lambda body: lambda *args, **kwargs: run_scoped(functools.partial(body, *args, **kwargs), *wanted, **named)


# ---- calls of kernels ----

def is_direct(spec: BlockSpec) -> bool:
    """Does the body see the memory of the device itself?"""
    return spec.memory_space in (*DEVICE_MEMORY, MemorySpace.SEMAPHORE)


class Operand:
    """An input or output of a call: memory of the device, and the block of it that the body sees."""

    def __init__(self, k: Kernel, name: str, storage: Storage, spec: BlockSpec, writes: bool, index: Any) -> None:
        self.storage, self.spec, self.writes, self.name = storage, spec, writes, name
        space = spec.memory_space or MemorySpace.DEFAULT
        self.direct = is_direct(spec)
        self.ref: Any = None
        self.block: Optional[Tuple[int, ...]] = None
        if self.direct:
            if spec.block_shape is not None and tuple(spec.block_shape) != storage.shape:
                raise core.refuse(f"'{name}' has blocks of {tuple(spec.block_shape)} in {space.value} memory: only a whole array is possible there")
            self.ref = Ref.of(storage)
            return
        dims = storage.shape if spec.block_shape is None else spec.block_shape
        if len(dims) != len(storage.shape):
            raise core.refuse(f"'{name}' has {len(storage.shape)} dimensions, and blocks of {len(dims)}")
        self.sizes = [1 if one is None or isinstance(one, Squeezed) or one is Squeezed else jaxarray.as_int(getattr(one, "block_size", one)) for one in dims]
        self.squeezed = [one is None or isinstance(one, Squeezed) or one is Squeezed for one in dims]
        self.by_element = [isinstance(one, Element) for one in dims]
        place = MemorySpace.VMEM if space is MemorySpace.DEFAULT else space
        self.local = storage_for((k.key, "block", index, k.core_index), name, place, self.sizes, storage.dtype)
        self.local.enter(k.lane)
        shape = [n for n, squeezed in zip(self.sizes, self.squeezed) if not squeezed]
        whole = Ref.of(self.local)
        self.ref = whole.view(shape, [s for s, squeezed in zip(whole.strides, self.squeezed) if not squeezed])

    def find_block(self, at: Sequence[int], scalars: Sequence[Any]) -> Tuple[int, ...]:
        if self.spec.index_map is None:
            return (0,) * len(self.sizes)
        found = self.spec.index_map(*[numpy.int32(i) for i in at], *scalars)
        found = found if isinstance(found, (tuple, list)) else (found,)
        if len(found) != len(self.sizes):
            raise core.refuse(f"the index map of '{self.name}' gives {len(found)} numbers for {len(self.sizes)} dimensions")
        return tuple(jaxarray.as_int(i) * (1 if by_element else size) for i, size, by_element in zip(found, self.sizes, self.by_element))

    def pair(self, block: Sequence[int]) -> Tuple[Ref, Ref]:
        """The part of the array that the block has, and of the block that the array has."""
        lengths = [max(min(size, total - start), 0) for size, total, start in zip(self.sizes, self.storage.shape, block)]
        if min([0, *block]) < 0 or 0 in lengths and 0 not in self.storage.shape:
            raise core.refuse(f"block {list(block)} of '{self.name}' is outside of its shape {list(self.storage.shape)}")
        outer = Ref.of(self.storage).narrowed(tuple(Slice(start, n) for start, n in zip(block, lengths)))
        return outer, Ref.of(self.local).narrowed(tuple(Slice(0, n) for n in lengths))

    def fetch(self, k: Kernel, at: Sequence[int], scalars: Sequence[Any]) -> None:
        if self.direct:
            return
        block = self.find_block(at, scalars)
        if block == self.block:
            return
        self.block = block
        if not self.writes:
            outer, inner = self.pair(block)
            jaxarray.copy_view(k.lane, inner, outer)
            self.local.numbers.pop(k.rank.index, None)
            numbers = outer.known()
            if self.local.space is MemorySpace.SMEM:
                self.local.follow(k.rank.index)
                inner.became(numbers[0] if numbers is not None and numbers[1].all() else Array(None, 0, (), inner.dtype))
        elif self.local.space is MemorySpace.SMEM:
            self.local.follow(k.rank.index)

    def write_back(self, k: Kernel, following: Optional[Sequence[int]], scalars: Sequence[Any]) -> None:
        """After the body, if the next one has another block."""
        if self.direct or not self.writes or following is not None and self.find_block(following, scalars) == self.block:
            return
        assert self.block is not None
        outer, inner = self.pair(self.block)
        jaxarray.copy_view(k.lane, outer, inner)


def normal_grid(grid: Any) -> Tuple[int, ...]:
    if grid is None:
        return ()
    return tuple(jaxarray.as_int(n) for n in (grid if isinstance(grid, (tuple, list)) else (grid,)))


def as_memory(wanted: Any) -> MemoryRef:
    """A type of an output."""
    if isinstance(wanted, SemaphoreType):
        return wanted()
    return MemoryRef(tuple(wanted.shape), wanted.dtype if isinstance(wanted.dtype, SemaphoreType) else dtype_of(wanted.dtype),
                     getattr(wanted, "memory_space", None))


def on_device(value: Any, name: str, key: Any) -> Storage:
    """The memory of the device in which an operand is."""
    if isinstance(value, Ref):
        return value.storage
    if isinstance(value, Array) and value.buffer is not None and value.buffer.shape == value.shape:
        return value.buffer
    rank = core.rank()
    value = value if isinstance(value, (Array, numpy.ndarray)) else numpy.asarray(value)
    dtype = dtype_of(value)
    storage = storage_for((key, "operand", name), name, MemorySpace.HBM, value.shape, dtype, user=True)
    lane = rank.host()
    target = Ref.of(storage)
    if isinstance(value, Array):
        jaxarray.copy_view(lane, target, value)
        value.buffer = storage
        storage.users[rank.index] = weakref.ref(value.memory) if value.memory is not None else lambda: None
    else:
        jaxarray.store(lane, target, numpy.asarray(value)) if value.size <= 1 else jaxarray.copy_view(lane, target, data_in(name, value))
        storage.follow(rank.index, value)
    return storage


def data_in(name: str, value: Any) -> Array:
    """The caller's data: in a plan its values are names."""
    dtype = dtype_of(value)
    made = state()["numbers"]  # by the array, which is kept so that no other one has its id
    if id(value) not in made:
        made[id(value)] = (value, input_region(name, math.prod(value.shape), dtype))
    region = made[id(value)][1]
    return Array(region, region.address, value.shape, dtype)


class Result:
    """Keeps the memory of an output while an array is in it."""


def output(storage: Storage) -> Array:
    rank = core.rank().index
    keeper = Result()
    storage.users[rank] = weakref.ref(keeper)
    found = Array(keeper, storage.regions[rank].address, storage.shape, storage.dtype)
    found.buffer = storage
    return found


def start_kernel(name: str, key: Any, params: Any) -> Kernel:
    rank, st = core.rank(), state()
    st["started"] += 1
    calls = st.setdefault("calls", {})
    calls[key] = calls.get(key, 0) + 1
    mesh = st["meshes"][-1] if st["meshes"] else None
    return Kernel(name, key, calls[key], rank, mesh, params if params is not None else Parameters(), rank.host())


class Running:
    """The kernel's lane is the one in progress."""

    def __init__(self, k: Kernel) -> None:
        self.kernel, self.previous = k, k.rank.lane

    def __enter__(self) -> Kernel:
        self.kernel.rank.lane = self.kernel.lane
        state()["kernels"].append(self.kernel)
        return self.kernel

    def __exit__(self, *_: Any) -> None:
        state()["kernels"].pop()
        self.kernel.rank.lane = self.previous


def pallas_call(kernel: Any = None, out_shape: Any = None, *, grid_spec: Any = None, grid: Any = (), in_specs: Any = no_block_spec,
                out_specs: Any = no_block_spec, scratch_shapes: Any = (), input_output_aliases: Any = None, compiler_params: Any = None,
                name: Optional[str] = None, **_: Any) -> Callable[..., Any]:
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    if isinstance(compiler_params, dict):
        compiler_params = Parameters(**compiler_params.get("mosaic", compiler_params))

    def call(*operands: Any) -> Any:
        return run_grid(kernel, name, out_shape, grid_spec, dict(input_output_aliases or {}), compiler_params, operands)
    return call


def run_grid(body: Any, name: Optional[str], out_shape: Any, spec: Any, aliases: Dict[int, int], params: Any, operands: Sequence[Any]) -> Any:
    from .jax import flatten, leaves, spec_leaves, tree_map_named  # pylint: disable=import-outside-toplevel,cyclic-import
    own_name, code = body_of(body)
    k = start_kernel(name or own_name, code, params)
    k.grid = normal_grid(spec.grid)
    outs, rebuild = flatten(out_shape)
    arrays, rebuild_operands = flatten(tuple(operands))
    prefetched = len(leaves(tuple(operands[:spec.num_scalar_prefetch])))
    trees = [*operands[spec.num_scalar_prefetch:], *(out_shape if isinstance(out_shape, (tuple, list)) else [out_shape])]
    names = leaf_names(parameter_names(body, 99), spec.num_scalar_prefetch, operands, trees)
    in_specs = spec_leaves(spec.in_specs, tuple(operands[spec.num_scalar_prefetch:]), BlockSpec())
    out_specs = spec_leaves(spec.out_specs, out_shape, BlockSpec())
    direct = [False] * prefetched + [is_direct(one) for one in [*in_specs, *out_specs]]
    outside = [name if seen else f"{name}_hbm" for name, seen in zip(names, direct)]
    inputs = [on_device(one, outside[i], k.key) for i, one in enumerate(arrays)]
    results: List[Storage] = []
    for i, one in enumerate(outs):
        wanted = as_memory(one)
        source = next((a for a, b in aliases.items() if b == i), None)
        results.append(inputs[source] if source is not None else storage_for(
            (k.key, "out", i), outside[len(arrays) + i], MemorySpace.SEMAPHORE if isinstance(wanted.dtype, SemaphoreType) else MemorySpace.HBM,
            wanted.shape, wanted.dtype, user=True))
    with Running(k):
        for i, storage in enumerate(results):
            if i not in aliases.values() and not isinstance(storage.dtype, SemaphoreType):
                storage.enter(k.lane)
        scalars = [scalar_ref(k, names[i], inputs[i]) for i in range(prefetched)]
        blocks = [Operand(k, names[prefetched + i], storage, one, False, i) for i, (storage, one) in enumerate(zip(inputs[prefetched:], in_specs))]
        made = [Operand(k, names[len(arrays) + i], storage, one, True, -1 - i) for i, (storage, one) in enumerate(zip(results, out_specs))]
        first = spec.num_scalar_prefetch + len(operands) - spec.num_scalar_prefetch + (len(out_shape) if isinstance(out_shape, (tuple, list)) else 1)
        scratch, named = make_scratch(k, body, first, spec.scratch_shapes, tree_map_named)
        begin_kernel(k)
        seen = rebuild_operands([*scalars, *(one.ref for one in blocks)])
        out_refs = rebuild([one.ref for one in made])
        out_refs = tuple(out_refs) if isinstance(out_refs, (tuple, list)) else (out_refs,)
        steps = list(itertools.product(*(range(n) for n in k.grid)))
        if len(steps) > 1 and any(not one.direct for one in [*blocks, *made]):
            k.rank.recording.assume("pallas_blocks", "that blocks of a grid are copied before and after the body, not beside it")
        for number, at in enumerate(steps):
            k.at = at
            following = steps[number + 1] if number + 1 < len(steps) else None
            for one in [*blocks, *made]:
                one.fetch(k, at, scalars)
            body(*seen, *out_refs, *scratch, **named)
            for one in made:
                one.write_back(k, following, scalars)
    return rebuild([semaphores_out(one) if isinstance(one.dtype, SemaphoreType) else output(one) for one in results])


def semaphores_out(storage: Storage) -> Ref:
    return Ref.of(storage)


def leaf_names(names: List[str], prefetch: int, operands: Sequence[Any], trees: Sequence[Any]) -> List[str]:
    from .jax import leaves  # pylint: disable=import-outside-toplevel,cyclic-import
    found = []
    for name, one in zip(names, [*operands[:prefetch], *trees]):
        parts = leaves(one)
        found += [name] if len(parts) == 1 else [f"{name}_{i}" for i in range(len(parts))]
    return found


def scalar_ref(k: Kernel, name: str, storage: Storage) -> Ref:
    """A prefetched operand: in scalar memory from the start."""
    local = storage_for((k.key, "scalars", name, k.core_index), name, MemorySpace.SMEM, storage.shape, storage.dtype)
    ref = Ref.of(local)
    jaxarray.copy_view(k.lane, ref, Ref.of(storage))
    numbers = storage.numbers.get(k.rank.index)
    if numbers is not None and numbers[1].all():
        local.follow(k.rank.index, numbers[0])
        k.rank.recording.note(f"for the given numbers of '{name}'")
    return ref


def make_scratch(k: Kernel, body: Any, first: int, shapes: Any, tree_map_named: Any) -> Tuple[List[Any], Dict[str, Any]]:
    def make(name: str, path: Any, one: Any) -> Ref:
        return allocate((k.key, "scratch", path, k.core_index), leaf_name(name, path), one, k.lane)
    if isinstance(shapes, dict):
        return [], {name: tree_map_named(functools.partial(make, name), one, name) for name, one in shapes.items()}
    shapes = list(shapes) if isinstance(shapes, (tuple, list)) else [shapes]
    names = parameter_names(body, 200)[first:]
    return [tree_map_named(functools.partial(make, name), one, i) for i, (name, one) in enumerate(zip(names, shapes))], {}


# ---- cores ----

def run_cores(k: Kernel, mesh: Any, body: Callable[[], Any]) -> None:
    """The body on every core of the device: lanes that run at the same time."""
    if not isinstance(mesh, TensorCoreMesh):
        raise core.refuse(f"a kernel on a {type(mesh).__name__}: only cores of a TensorCoreMesh are recorded")
    k.cores = mesh
    main = k.lane
    lanes = [main] + [k.rank.new_lane(f"core{i}", None) for i in range(1, mesh.num_cores)]
    for lane in lanes[1:]:
        lane.stream = main.stream
        lane.after(main)
    st = state()
    st["axes"].append({mesh.axis_name: (0, mesh.num_cores)})
    try:
        for i, lane in enumerate(lanes):
            k.lane, k.core_index = lane, i
            k.rank.lane = lane
            st["axes"][-1] = {mesh.axis_name: (i, mesh.num_cores)}
            body()
    finally:
        st["axes"].pop()
        k.lane, k.core_index = main, 0
        k.rank.lane = main
    for lane in lanes[1:]:
        main.after(lane)


def kernel_on_mesh(body: Any = None, out_type: Any = (), *, mesh: Any = None, scratch_types: Any = (), compiler_params: Any = None, name: Optional[str] = None,
                   out_shape: Any = None, scratch_shapes: Any = None, **_: Any) -> Any:
    """pl.kernel"""
    if body is None:
        return lambda given: kernel_on_mesh(given, out_type, mesh=mesh, scratch_types=scratch_types, compiler_params=compiler_params, name=name,
                                            out_shape=out_shape, scratch_shapes=scratch_shapes)
    out_type = out_type if out_shape is None else out_shape
    scratch_types = scratch_types if scratch_shapes is None else scratch_shapes

    def call(*operands: Any) -> Any:
        from .jax import flatten, tree_map_named  # pylint: disable=import-outside-toplevel,cyclic-import
        if isinstance(body, (tuple, list)):
            raise core.refuse("pl.kernel with several bodies: only one kernel on a TensorCoreMesh is recorded")
        own_name, code = body_of(body)
        k = start_kernel(name or own_name, code, compiler_params)
        outs, rebuild = flatten(out_type)
        names = parameter_names(body, len(operands) + len(outs))
        refs = [Ref.of(on_device(one, names[i], k.key)) for i, one in enumerate(operands)]
        results = [storage_for((k.key, "out", i), names[len(operands) + i], MemorySpace.HBM, as_memory(one).shape, as_memory(one).dtype, user=True)
                   for i, one in enumerate(outs)]
        with Running(k):
            for storage in results:
                storage.enter(k.lane)
            begin_kernel(k)

            def on_core() -> None:
                scratch, named = make_scratch(k, body, len(operands) + len(outs), scratch_types, tree_map_named)
                body(*refs, *[Ref.of(one) for one in results], *scratch, **named)
            run_cores(k, mesh, on_core)
        found = rebuild([output(one) for one in results])
        return found
    return call


def core_map(mesh: Any, *, compiler_params: Any = None, name: Optional[str] = None, scratch_shapes: Any = (), **_: Any) -> Callable[[Any], None]:
    def run(body: Any) -> None:
        from .jax import tree_map_named  # pylint: disable=import-outside-toplevel,cyclic-import
        own_name, code = body_of(body)
        k = start_kernel(name or own_name, code, compiler_params)
        with Running(k):
            begin_kernel(k)

            def on_core() -> None:
                scratch, named = make_scratch(k, body, 0, scratch_shapes, tree_map_named)
                body(*scratch, **named)
            run_cores(k, mesh, on_core)
    return run


def new_ref(value: Any, *, memory_space: Any = None) -> Ref:
    """A mutable array of the device."""
    del memory_space
    file, line = core.place()
    rank = core.rank()
    value = value if isinstance(value, Array) else numpy.asarray(value)
    storage = storage_for(("ref", file, line), "ref", MemorySpace.HBM, value.shape, dtype_of(value), user=True)
    ref = Ref.of(storage)
    keeper = Result()
    storage.users[rank.index] = weakref.ref(keeper)
    ref.keeper = keeper  # type: ignore[attr-defined]
    source = value if isinstance(value, Array) or value.size <= 1 or (value == value.flat[0]).all() else data_in("x", value)
    jaxarray.store(rank.host(), ref, source)
    return ref


def freeze(ref: Ref) -> Array:
    out = output(ref.storage)
    out.memory.ref = ref
    return out


def run_state(body: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(values: Any) -> Any:
        from .jax import flatten  # pylint: disable=import-outside-toplevel,cyclic-import
        parts, rebuild = flatten(values)
        refs = []
        for i, one in enumerate(parts):
            ref = new_ref_for(("state", body_of(body)[1], i), one)
            refs.append(ref)
        body(rebuild(refs))
        return rebuild([freeze(ref) for ref in refs])
    return call


def new_ref_for(key: Any, value: Any) -> Ref:
    value = value if isinstance(value, Array) else numpy.asarray(value)
    storage = storage_for(key, f"state_{key[-1]}", MemorySpace.HBM, value.shape, dtype_of(value), user=True)
    ref = Ref.of(storage)
    keeper = Result()
    storage.users[core.rank().index] = weakref.ref(keeper)
    ref.keeper = keeper  # type: ignore[attr-defined]
    jaxarray.store(core.rank().host(), ref, value)
    return ref


# ---- control ----

def when(condition: Any) -> Callable[[Callable[[], Any]], None]:
    def run(body: Callable[[], Any]) -> None:
        if bool(jaxarray.loaded(condition)):
            body()
    return run


def loop(lower: Any, upper: Any, *, init_carry: Any = None, step: Any = 1, unroll: Any = None) -> Callable[[Callable[..., Any]], Any]:
    del unroll

    def run(body: Callable[..., Any]) -> Any:
        carry = init_carry
        for i in range(jaxarray.as_int(lower), jaxarray.as_int(upper), jaxarray.as_int(step)):
            carry = body(numpy.int32(i)) if init_carry is None else body(numpy.int32(i), carry)
        return carry
    return run


def load(ref: Ref, key: Any = Ellipsis, *, mask: Any = None, other: Any = None, **_: Any) -> Any:
    if mask is not None:
        value = ref[key]
        return jaxarray.where(mask, value, 0 if other is None else other)
    return ref[key]


def store(ref: Ref, key: Any, value: Any = None, *, mask: Any = None, **_: Any) -> None:
    if value is None:
        key, value = Ellipsis, key
    if mask is not None:
        value = jaxarray.where(mask, value, ref[key])
    ref[key] = value


def swap(ref: Ref, key: Any, value: Any, **_: Any) -> Any:
    old = ref[key]
    ref[key] = value
    return old


def refused(name: str) -> Callable[..., Any]:
    def call(*_: Any, **__: Any) -> Any:
        raise core.refuse(f"{name} is not recorded")
    return call


def bitcast(value: Any, dtype: Any) -> Any:
    if isinstance(value, Ref):
        return value.bitcast(dtype)
    dtype = dtype_of(dtype)
    if not isinstance(value, Array):
        return jaxarray.known(numpy.asarray(value).view(dtype))
    shape = list(value.shape)
    if dtype.itemsize != value.dtype.itemsize:
        shape[-2] = shape[-2] * value.dtype.itemsize // dtype.itemsize
    return jaxarray.opaque("bitcast", [value], shape, dtype)


def like(name: str) -> Callable[..., Any]:
    """A function of an array that has its shape and type."""
    def call(value: Any, *_: Any, **__: Any) -> Any:
        value = jaxarray.materialize(value)
        return jaxarray.opaque(name, [value], value.shape, value.dtype)
    return call


def dot(a: Any, b: Any, trans_a: bool = False, trans_b: bool = False, **_: Any) -> Any:
    a, b = jaxarray.loaded(a), jaxarray.loaded(b)
    found = jaxarray.call("matmul", a.T if trans_a else a, b.T if trans_b else b, preferred_element_type=numpy.dtype("float32"))
    return found


def tpu_info() -> Parameters:
    return Parameters(chip_version="v5p", generation=5, num_cores=1, num_lanes=128, num_sublanes=8, mxu_column_size=128,
                      vmem_capacity_bytes=128 << 20, smem_capacity_bytes=1 << 20, hbm_capacity_bytes=95 << 30, sparse_core=None)


def cdiv(a: Any, b: Any) -> Any:
    return (a + b - 1) // b


def modules() -> Dict[str, types.ModuleType]:
    both = {
        "DeviceIdType": DeviceIdType, "semaphore_signal": semaphore_signal, "semaphore_wait": semaphore_wait, "semaphore_read": semaphore_read,
        "MemorySpace": MemorySpace, "ANY": MemorySpace.ANY, "HOST": MemorySpace.HOST, "delay": lambda *_: None, "run_scoped": run_scoped,
        "CostEstimate": Parameters, "load": load, "store": store, "emit_pipeline": refused("emit_pipeline"), "CompilerParams": Parameters}
    pl = program.standin(
        "jax.experimental.pallas", **both, pallas_call=pallas_call, BlockSpec=BlockSpec, GridSpec=GridSpec, no_block_spec=no_block_spec,
        program_id=program_id, num_programs=num_programs, when=when, loop=loop, ds=Slice, dslice=Slice, Slice=Slice, cdiv=cdiv, swap=swap, dot=dot,
        align_to=lambda x, n: cdiv(x, n) * n, next_power_of_2=lambda n: 1 << max(n - 1, 0).bit_length(), with_scoped=with_scoped,
        core_map=core_map, kernel=kernel_on_mesh, run_state=run_state, select_ref=select_ref, Element=Element, Blocked=Blocked, Squeezed=Squeezed,
        squeezed=Squeezed(), Buffered=Parameters, MemoryRef=MemoryRef, multiple_of=lambda x, _: x, debug_print=lambda *_, **__: None,
        debug_check=lambda *_, **__: None, reciprocal=lambda x, **_: jaxarray.call("reciprocal", x), estimate_cost=lambda *_, **__: Parameters(),
        empty=lambda shape, dtype: jaxarray.known(numpy.zeros(shape, jaxarray.kept(dtype_of(dtype)))), semaphore=SemaphoreType.REGULAR,
        strides_from_shape=lambda shape: dense(shape, 1), broadcast_to=jaxarray.broadcast_to)
    tpu = program.standin(
        "jax.experimental.pallas.tpu", **both, PrefetchScalarGridSpec=PrefetchScalarGridSpec, SemaphoreType=SemaphoreType, make_async_copy=make_async_copy,
        make_async_remote_copy=make_async_remote_copy, async_copy=async_copy, async_remote_copy=async_remote_copy, sync_copy=sync_copy,
        get_barrier_semaphore=get_barrier_semaphore, TPUCompilerParams=Parameters, TPUMemorySpace=MemorySpace, InterpretParams=Parameters,
        VMEM=MemorySpace.VMEM, SMEM=MemorySpace.SMEM, HBM=MemorySpace.HBM, CMEM=MemorySpace.CMEM, SEMAPHORE=MemorySpace.SEMAPHORE,
        VMEM_SHARED=MemorySpace.VMEM_SHARED, CoreType=CoreType, GridDimensionSemantics=GridDimensionSemantics, PARALLEL=GridDimensionSemantics.PARALLEL,
        ARBITRARY=GridDimensionSemantics.ARBITRARY, CORE_PARALLEL=GridDimensionSemantics.CORE_PARALLEL, TensorCoreMesh=TensorCoreMesh,
        create_tensorcore_mesh=lambda axis_name, devices=None, num_cores=1: TensorCoreMesh(axis_name, num_cores or 1), get_tpu_info=tpu_info,
        bitcast=bitcast, roll=like("roll"), with_memory_space_constraint=lambda x, *_, **__: x, touch=lambda *_: None, prng_seed=lambda *_: None,
        semaphore=SemaphoreType.REGULAR, dma_semaphore=SemaphoreType.DMA, SideEffectType=Parameters(PURE=0, SIDE_EFFECTING=1, DATAFLOW_SIDE_EFFECTING=2),
        repeat=lambda x, n, axis: jaxarray.guessed("repeat", [x, n], {"axis": axis}, x.dtype), stochastic_round=like("stochastic_round"))
    return {"jax.experimental.pallas": pl, "jax.experimental.pallas.tpu": tpu, "jax.experimental.pallas.tpu_sc": program.standin("jax.experimental.pallas.tpu_sc")}
