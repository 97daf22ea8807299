# SPDX-License-Identifier: Apache-2.0
"""Devices, meshes and sharded arrays of the jax stand-in.

A program is run once per rank. `jax.devices()` are all ranks; `shard_map` calls its body for this rank's device only, with this rank's
parts of the arrays, and what comes out is known to be of this device only.
"""
from __future__ import annotations

import contextlib
import functools
import linecache
import math
import re
import types
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy

from . import core, jaxarray, pallas, pallas_copies, pallas_memory, program
from .jaxarray import Array, as_int, dtype_of, known, loaded
from .trees import PartitionSpec, flatten, leaves, spec_leaves


# ---- devices and meshes ----

class Device:
    platform, device_kind, num_cores, process_index, core_on_chip, slice_index = "tpu", "TPU v5p", 1, 0, 0, 0

    def __init__(self, number: int) -> None:
        self.id = self.local_hardware_id = number
        columns = 2 if not core.rank().recording.ranks % 2 else 1
        self.coords = (number // columns, number % columns, 0)

    def __repr__(self) -> str:
        return f"TpuDevice(id={self.id})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return self.id


def devices(*_: Any) -> List[Device]:
    return [Device(i) for i in range(core.rank().recording.ranks)]


class Mesh:
    """Devices along named axes."""

    def __init__(self, device_grid: Any, axis_names: Any, **_: Any) -> None:
        grid = numpy.asarray(device_grid, dtype=object)
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if grid.ndim != len(self.axis_names):
            raise ValueError(f"Mesh requires the ndim of its first argument ({grid.ndim}) to equal the number of axis names "
                             f"({len(self.axis_names)})")
        self.devices = grid
        self.axis_types = tuple("auto" for _ in self.axis_names)

    shape = property(lambda self: dict(zip(self.axis_names, self.devices.shape)))
    size = property(lambda self: self.devices.size)
    abstract_mesh = property(lambda self: self)
    device_ids = property(lambda self: numpy.vectorize(lambda one: one.id)(self.devices))
    empty = False

    def update(self, **_: Any) -> Mesh:
        return self

    def coordinates(self, rank: int) -> Optional[Tuple[int, ...]]:
        """Where a rank's device is; None: nowhere."""
        for at in numpy.ndindex(*self.devices.shape):
            if self.devices[at].id == rank:
                return at
        return None

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Mesh) and self.axis_names == other.axis_names and (self.devices == other.devices).all()

    def __hash__(self) -> int:
        return hash(self.axis_names)

    def __enter__(self) -> Mesh:
        pallas_memory.state().setdefault("set", []).append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        pallas_memory.state()["set"].pop()


def make_mesh(axis_shapes: Sequence[int], axis_names: Sequence[str], *_: Any, devices: Any = None,
              **__: Any) -> Mesh:  # pylint: disable=redefined-outer-name
    return Mesh(create_device_mesh(axis_shapes, devices), axis_names)


def create_device_mesh(shape: Sequence[int], given: Any = None, **_: Any) -> Any:
    found = list(numpy.asarray(given, dtype=object).flat) if given is not None else devices()
    count = math.prod(shape)
    if count > len(found):
        raise ValueError(f"Number of devices {len(found)} must be >= the product of mesh_shape {tuple(shape)}")
    return numpy.asarray(found[:count], dtype=object).reshape([as_int(n) for n in shape])


@contextlib.contextmanager
def set_mesh(mesh: Mesh) -> Any:
    with mesh:
        yield mesh


def current_mesh(arrays: Any = ()) -> Mesh:
    """That of jax.set_mesh, or else on which the arrays are."""
    found = [*(one.mesh for one in leaves(arrays) if isinstance(one, Sharded) and one.mesh), *pallas_memory.state().get("set", ())]
    if not found:
        raise core.refuse("no mesh: neither shard_map, jax.set_mesh nor the arrays name one")
    return found[-1]


class NamedSharding:
    def __init__(self, mesh: Mesh, spec: Any, **_: Any) -> None:
        self.mesh, self.spec = mesh, spec

    def shard_shape(self, shape: Sequence[int]) -> Tuple[int, ...]:
        return part_of(shape, self.spec, self.mesh, None)[0]


def axes_of(part: Any) -> List[Any]:
    return [] if part is None else list(part) if isinstance(part, (tuple, list)) else [part]


def part_of(shape: Sequence[int], spec: Any, mesh: Mesh, rank: Optional[int]) -> Tuple[Tuple[int, ...], List[slice]]:
    """The shape of a device's part of an array, and where it is."""
    sizes = mesh.shape
    at = dict(zip(mesh.axis_names, mesh.coordinates(rank) or ())) if rank is not None else {}
    parts, where = [], []
    spec = tuple(spec) if spec is not None else ()
    if len(spec) > len(shape):
        raise ValueError(f"a PartitionSpec of {len(spec)} parts for an array of {len(shape)} dimensions")
    for size, names in zip(shape, [*spec, *[None] * (len(shape) - len(spec))]):
        total, number = 1, 0
        for name in axes_of(names):
            total, number = total * sizes[name], number * sizes[name] + at.get(name, 0)
        if size % total:
            raise ValueError(f"a dimension of {size} elements cannot be divided among {total} devices")
        parts.append(size // total)
        where.append(slice(number * (size // total), (number + 1) * (size // total)))
    return tuple(parts), where


# ---- sharding ----

def axis_position(name: Any) -> Tuple[int, int]:
    """Of this device along an axis, or several together: its number, and how many there are."""
    if isinstance(name, (tuple, list)):
        number, total = 0, 1
        for one in name:
            at, size = axis_position(one)
            number, total = number * size + at, total * size
        return number, total
    for axes in reversed(pallas_memory.state()["axes"]):
        if name in axes:
            return axes[name]
    outside = "" if pallas_memory.state()["axes"] else ": this is called outside of jax.shard_map"
    raise core.refuse(f"axis '{name}' is not one of the mesh{outside}")


def shard_map(f: Any = None, *, mesh: Any = None, in_specs: Any = None, out_specs: Any = None, **_: Any) -> Any:
    if f is None:
        return lambda given: shard_map(given, mesh=mesh, in_specs=in_specs, out_specs=out_specs)

    @functools.wraps(f)
    def run(*arrays: Any) -> Any:
        where = mesh if mesh is not None else current_mesh(arrays)
        rank = core.rank().index
        at = where.coordinates(rank)
        names = pallas.parameter_names(f, len(arrays))
        flat, rebuild = flatten(tuple(arrays))
        specs = spec_leaves(in_specs, tuple(arrays), None) if in_specs is not None else [PartitionSpec()] * len(flat)
        labels = pallas.leaf_names(names, 0, [], list(arrays))
        if at is None:  # not a device of the mesh
            return Nothing()
        st = pallas_memory.state()
        local = [part_for(array, spec, where, rank, label) for array, spec, label in zip(flat, specs, labels)]
        found = None
        count = repetitions(f)
        for number in range(count):
            if count > 1:
                found = None  # its memory is free for the next call
                core.rank().begin_call()
            if number and program.options().between == "barrier":
                core.rank().host().say(pallas_copies.barrier_text(core.rank(), [device.id for device in where.devices.flat]))
            before = st["started"]
            st["meshes"].append(where)
            st["axes"].append({name: (i, size) for name, i, size in zip(where.axis_names, at, where.devices.shape)})
            try:
                found = f(*rebuild(local))
            finally:
                st["axes"].pop()
                st["meshes"].pop()
            if count > 1 and st["started"] == before:  # it calls no kernel: once is enough
                core.rank().calls.pop()
                break
            promise(local, found)
        outs, rebuild_out = flatten(found)
        out_list = spec_leaves(out_specs, found, None) if out_specs is not None else [PartitionSpec()] * len(outs)
        return rebuild_out([whole_of(one, spec, where) for one, spec in zip(outs, out_list)])
    return run


def promise(arguments: Sequence[Any], found: Any) -> None:
    """--implements: the first result is what that collective makes of the first argument."""
    wanted, rank = program.options().implements, core.rank()
    if not wanted or pallas_memory.state()["meshes"] or pallas_memory.state().setdefault("promised", False):
        return
    sources = [one for one in arguments if isinstance(one, Array) and isinstance(one.memory, core.Region)]
    results = [one for one in leaves(found) if isinstance(one, Array) and one.buffer is not None]
    if not sources or not results:
        raise core.refuse(f"'{wanted}' is to be shown, and the program's arrays do not say of what: peal.expect does")
    pallas_memory.state()["promised"] = True
    program.implements(wanted, sources[0].memory, results[0].buffer.regions[rank.index])


def repetitions(f: Any) -> int:
    """How often the call is made: a program that calls it once stands for one that calls it again and again."""
    st, here = pallas_memory.state(), program.world()
    code = pallas.body_of(f)[1]
    called = st.setdefault("called", set())
    if st["meshes"] or here.calls_used or code in called:
        return 1
    called.add(code)
    return here.options.calls


class Nothing:
    """What a device that is not in the mesh gets."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, _: Any) -> Nothing:
        return self

    def __call__(self, *_: Any, **__: Any) -> Nothing:
        return self

    def __iter__(self) -> Any:
        return iter([self] * 8)

    def _same(self, *_: Any) -> Nothing:
        return self
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _same

    def __format__(self, _: str) -> str:
        return "?"


def whole_of(part: Any, spec: Any, mesh: Mesh) -> Any:
    """The array of all devices of which this is one part."""
    if not isinstance(part, Array):
        if isinstance(part, (numpy.ndarray, numpy.generic, int, float)) and not any(axes_of(one) for one in (spec or ())):
            return part
        if not isinstance(part, numpy.ndarray):
            return part
        part = jaxarray.materialize(part)
    shape = list(part.shape)
    for axis, names in enumerate(tuple(spec or ())[:len(shape)]):
        shape[axis] *= math.prod(mesh.shape[name] for name in axes_of(names))
    found = Sharded(part, shape)
    found.spec, found.mesh = tuple(spec or ()), mesh
    return found


class Sharded(Array):
    """An array of all devices. Its memory is this rank's part; only a shard_map of the same kind may use it."""

    __slots__ = ("part", "spec", "mesh", "views", "label")

    def __init__(self, part: Array, shape: Sequence[int]) -> None:
        super().__init__(part.memory, part.address, shape, part.dtype, [0] * len(shape))
        self.part: Array = part
        self.spec: Any = None
        self.mesh: Any = None
        self.views: Dict[Any, Array] = {}
        self.label: Optional[str] = None

    def data_ptr(self) -> int:
        """Where this device's part is, for peal.expect and peal.of_ranks."""
        found = next(iter(self.views.values()), self.part)
        if isinstance(found.memory, Unmade):
            raise core.refuse(f"no device has been given '{self.label}' yet")
        return found.address

    def here(self) -> Array:
        """All of it on this device, for a kernel that is called outside of shard_map."""
        if self.spec is not None and self.part.shape == self.shape:
            return self.part
        if () not in self.views:
            self.views[()] = source(self, "x", self.shape)
        return self.views[()]

    addressable_shards = property(lambda self: [types.SimpleNamespace(data=self.part)])
    is_global = True

    def view(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Array:
        self.look()
        return data(shape, self.dtype)

    def data_like(self, shape: Sequence[int], dtype: Any) -> Array:
        return data(shape, dtype)

    def look(self) -> None:
        """XLA reads this device's part."""
        if not isinstance(self.part.memory, Unmade):
            for span in jaxarray.spans(self.part):
                core.rank().host().read(span)


def part_for(array: Any, spec: Any, mesh: Mesh, rank: int, name: str) -> Any:
    """This rank's part of an array."""
    array = loaded(array)
    if isinstance(array, Sharded):
        wanted, _ = part_of(array.shape, spec, mesh, rank)
        key = trimmed(tuple(spec or ()))
        if array.spec is not None and (trimmed(array.spec) == key or wanted == array.part.shape):
            return array.part
        if key not in array.views:
            array.views[key] = source(array, name, wanted)
        return array.views[key]
    if isinstance(array, Array):  # of this device alone
        return array
    if isinstance(array, (int, float, bool)):
        return array
    numbers = numpy.asarray(array)
    _, where = part_of(numbers.shape, spec, mesh, rank)
    return known(numbers[tuple(where)])


def device_put(x: Any, sharding: Any = None, *_: Any, **__: Any) -> Any:
    for one in leaves(x) if isinstance(sharding, NamedSharding) else ():
        if isinstance(one, Sharded) and one.mesh is None:
            one.mesh = sharding.mesh
    return x


def trimmed(spec: Sequence[Any]) -> Tuple[Any, ...]:
    parts = [tuple(axes_of(one)) for one in spec]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def source(array: Sharded, name: str, shape: Sequence[int]) -> Array:
    """The caller's data, as this device has it."""
    region = pallas_memory.input_region(array.label or name, math.prod(shape), array.dtype)
    return Array(region, region.address, shape, array.dtype)


class Unmade:
    """Memory of data that no device has been given yet."""


def data(shape: Any, dtype: Any) -> Sharded:
    """Data of the caller: of no device yet. Its name is what the author assigns it to."""
    shape = tuple(as_int(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,)))
    found = Sharded(Array(Unmade(), 0, shape, dtype_of(dtype)), shape)
    file, line = core.place()
    target = re.match(r"\s*(?:self\.)?([A-Za-z]\w*)\s*=[^=]", linecache.getline(file, line))
    found.label = target.group(1) if target else "x"
    return found
