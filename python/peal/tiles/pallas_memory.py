# SPDX-License-Identifier: Apache-2.0
"""Memory of Pallas kernels, which is the same in every call and at the same place on all devices, and references to it; the kernel that
a device is in, and what it is called with.

What a peer may write is written by its owner when it enters the kernel, with a number that no result should have in it: so a copy that
arrives before its target has entered is a race.
"""
from __future__ import annotations

import dataclasses
import math
import types
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import numpy

from ..record import shown_file
from . import core, jaxarray
from .jaxarray import Array, dense, dtype_of, peal_name
from .pallas_types import DEVICE_MEMORY, DeviceIdType, MemorySpace, SemaphoreType, TensorCoreMesh

CELL = 8                # bytes of a semaphore
POISON = 90             # what memory holds that its owner has entered with: a number that no result should have in it
MAX_SHADOW = 1 << 20    # elements whose numbers are followed


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
        self.is_passed = False                      # semaphores that one kernel gives to another

    def whole(self, rank: int) -> core.Span:
        return core.Span(self.peal, self.regions[rank].address, max(math.prod(self.shape), 1))

    def enter(self, lane: core.Lane) -> None:
        """Its owner enters the kernel: whatever was in it is gone. That is said of the line where the kernel is defined."""
        lane.say(f"# {self.name} is memory of the kernel from here on")
        code = kernel().key
        place = (shown_file(code.co_filename), code.co_firstlineno) if isinstance(code, types.CodeType) else core.place()
        line = lane.rank.writer.say(f"write {self.whole(lane.rank.index).text()} {POISON}" if self.reached else "# no peer writes there", place)
        if not self.reached:
            self.entries.append((lane.rank, line))

    def reach(self) -> None:
        """A peer writes there."""
        if self.reached:
            return
        self.reached = True
        for rank, line in self.entries:
            rank.writer.lines[line] = f"write {self.whole(rank.index).text()} {POISON}"
        self.entries.clear()
        if self.used_as_number:
            raise core.refuse(f"'{self.name}' is written by a peer, and its numbers decide what happens at "
                              f"{core.told(self.used_as_number)}")

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
        self.balance: Dict[Any, Any] = {}              # of each semaphore in each call: its account


def shared() -> Shared:
    recording = core.rank().recording
    found = recording.rank[0].state.get("pallas")
    if found is None:
        found = recording.rank[0].state["pallas"] = Shared()
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
    trial: Any = None       # what is tried in it, whether it would fix the program

    @property
    def call(self) -> Any:
        return (self.key, self.number)


def state() -> Dict[str, Any]:
    return core.rank().state.setdefault("jax", {"kernels": [], "meshes": [], "axes": [], "numbers": {}, "inputs": {}, "arrivals": {},
                                                "started": 0})


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
