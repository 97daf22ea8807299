# SPDX-License-Identifier: Apache-2.0
"""jax, jax.numpy, jax.lax and the rest of what programs around Pallas kernels use.

A program is run once per rank. `jax.devices()` are all ranks; `shard_map` calls its body for this rank's device only, with this rank's parts of
the arrays, and what comes out is known to be of this device only. XLA's own collectives order nothing here, and their results
are not known.
"""
from __future__ import annotations

import contextlib
import dataclasses
import functools
import linecache
import math
import re
import types
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy

from . import core, jaxarray, pallas, program
from .jaxarray import Array, AnyArray, EXTENDED, as_int, call, dtype_of, known, loaded
from .pallas import Ref, refused


# ---- trees ----

def is_named_tuple(tree: Any) -> bool:
    return isinstance(tree, tuple) and hasattr(tree, "_fields")


def children(tree: Any) -> Optional[List[Tuple[Any, Any]]]:
    """Keys and parts of a tree; None: it is a leaf."""
    if isinstance(tree, dict):
        return [(key, tree[key]) for key in sorted(tree)]
    if isinstance(tree, (list, tuple)) and not isinstance(tree, PartitionSpec):
        return list(enumerate(tree))
    if tree is None:
        return []
    if type(tree) in NODES:
        parts, _ = NODES[type(tree)][0](tree)
        return list(enumerate(parts))
    return None


NODES: Dict[type, Tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {}


def rebuilt(tree: Any, parts: Sequence[Any]) -> Any:
    if isinstance(tree, dict):
        return dict(zip(sorted(tree), parts))
    if is_named_tuple(tree):
        return type(tree)(*parts)
    if isinstance(tree, (list, tuple)):
        return type(tree)(parts)
    if type(tree) in NODES:
        return NODES[type(tree)][1](NODES[type(tree)][0](tree)[1], parts)
    return tree


def leaves(tree: Any, is_leaf: Any = None) -> List[Any]:
    if is_leaf is not None and is_leaf(tree):
        return [tree]
    found = children(tree)
    return [tree] if found is None else [leaf for _, part in found for leaf in leaves(part, is_leaf)]


def tree_map(function: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Any = None) -> Any:
    found = None if is_leaf is not None and is_leaf(tree) else children(tree)
    if found is None:
        return function(tree, *rest)
    others = [dict(children(one) or []) for one in rest]
    return rebuilt(tree, [tree_map(function, part, *[one[key] for one in others], is_leaf=is_leaf) for key, part in found])


def tree_map_named(function: Callable[[Any, Any], Any], tree: Any, path: Any) -> Any:
    """function(path, leaf); names of dictionaries are parts of the path."""
    found = children(tree)
    if found is None:
        return function(path, tree)
    return rebuilt(tree, [tree_map_named(function, part, (path, key)) for key, part in found])


def flatten(tree: Any, is_leaf: Any = None) -> Tuple[List[Any], Callable[[Sequence[Any]], Any]]:
    """Its leaves, and what makes the same tree of others."""
    found = leaves(tree, is_leaf)

    def unflatten(parts: Sequence[Any]) -> Any:
        left = iter(parts)
        return tree_map(lambda _: next(left), tree, is_leaf=is_leaf)
    return found, unflatten


def spec_leaves(specs: Any, tree: Any, default: Any) -> List[Any]:
    """One specification for every leaf of the tree; a specification above stands for all below."""
    if specs is pallas.no_block_spec or specs is None:
        return [default] * len(leaves(tree))
    found = children(specs)
    if found is None or isinstance(specs, PartitionSpec):
        return [specs] * len(leaves(tree))
    parts = children(tree)
    if parts is None and len(found) == 1:
        return spec_leaves(found[0][1], tree, default)
    if parts is None or len(parts) != len(found):
        raise core.refuse(f"{len(found)} specifications for {1 if parts is None else len(parts)} arrays")
    return [one for (_, spec), (_, part) in zip(found, parts) for one in spec_leaves(spec, part, default)]


class TreeDef:
    def __init__(self, unflatten: Callable[[Sequence[Any]], Any], count: int) -> None:
        self.unflatten, self.num_leaves = unflatten, count


def tree_flatten(tree: Any, is_leaf: Any = None) -> Tuple[List[Any], TreeDef]:
    found, unflatten = flatten(tree, is_leaf)
    return found, TreeDef(unflatten, len(found))


def register_dataclass(cls: Any, data_fields: Any = None, meta_fields: Any = None, **_: Any) -> Any:
    data = list(data_fields) if data_fields is not None else [one.name for one in dataclasses.fields(cls)]
    meta = list(meta_fields or [])
    NODES[cls] = (lambda one: ([getattr(one, name) for name in data], [getattr(one, name) for name in meta]),
                  lambda rest, parts: cls(**dict(zip(data, parts)), **dict(zip(meta, rest))))
    return cls


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


class PartitionSpec(tuple):
    def __new__(cls, *parts: Any, **_: Any) -> PartitionSpec:
        return super().__new__(cls, parts)


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
        pallas.state().setdefault("set", []).append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        pallas.state()["set"].pop()


def make_mesh(axis_shapes: Sequence[int], axis_names: Sequence[str], *_: Any, devices: Any = None, **__: Any) -> Mesh:  # pylint: disable=redefined-outer-name
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


def current_mesh() -> Mesh:
    found = pallas.state().get("set")
    if not found:
        raise core.refuse("no mesh: neither shard_map nor jax.set_mesh names one")
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
    for axes in reversed(pallas.state()["axes"]):
        if name in axes:
            return axes[name]
    raise core.refuse(f"axis '{name}' is not one of the mesh" + ("" if pallas.state()["axes"] else ": this is called outside of jax.shard_map"))


def shard_map(f: Any = None, *, mesh: Any = None, in_specs: Any = None, out_specs: Any = None, **_: Any) -> Any:
    if f is None:
        return lambda given: shard_map(given, mesh=mesh, in_specs=in_specs, out_specs=out_specs)

    @functools.wraps(f)
    def run(*arrays: Any) -> Any:
        where = mesh if mesh is not None else current_mesh()
        rank = core.rank().index
        at = where.coordinates(rank)
        names = pallas.parameter_names(f, len(arrays))
        flat, rebuild = flatten(tuple(arrays))
        specs = spec_leaves(in_specs, tuple(arrays), None) if in_specs is not None else [PartitionSpec()] * len(flat)
        labels = pallas.leaf_names(names, 0, [], list(arrays))
        if at is None:  # not a device of the mesh
            return Nothing()
        st = pallas.state()
        local = [part_for(array, spec, where, rank, label) for array, spec, label in zip(flat, specs, labels)]
        found = None
        count = repetitions(f)
        for number in range(count):
            if count > 1:
                found = None  # its memory is free for the next call
                core.rank().begin_call()
            if number and program.options().between == "barrier":
                core.rank().host().say(pallas.barrier_text(core.rank(), [device.id for device in where.devices.flat]))
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
    if not wanted or pallas.state()["meshes"] or pallas.state().setdefault("promised", False):
        return
    sources = [one for one in arguments if isinstance(one, Array) and isinstance(one.memory, core.Region)]
    results = [one for one in leaves(found) if isinstance(one, Array) and one.buffer is not None]
    if not sources or not results:
        raise core.refuse(f"'{wanted}' is to be shown, and the program's arrays do not say of what: peal.expect does")
    pallas.state()["promised"] = True
    program.implements(wanted, sources[0].memory, results[0].buffer.regions[rank.index])


def repetitions(f: Any) -> int:
    """How often the call is made: a program that calls it once stands for one that calls it again and again."""
    st, here = pallas.state(), program.world()
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


def trimmed(spec: Sequence[Any]) -> Tuple[Any, ...]:
    parts = [tuple(axes_of(one)) for one in spec]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def source(array: Sharded, name: str, shape: Sequence[int]) -> Array:
    """The caller's data, as this device has it."""
    region = pallas.input_region(array.label or name, math.prod(shape), array.dtype)
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


# ---- jit and the like ----

def jit(f: Any = None, **_: Any) -> Any:
    if f is None:
        return lambda given: jit(given)

    @functools.wraps(f)
    def run(*args: Any, **named: Any) -> Any:
        return f(*args, **named)
    run.lower = run.trace = lambda *_, **__: Lowered(run)  # type: ignore[attr-defined]
    return run


class Lowered:
    """What jit(f).lower(x) gives: it can be compiled, and called."""
    jaxpr = ""

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run = run

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.run(*args, **named)

    def compile(self, *_: Any, **__: Any) -> Lowered:
        return self

    def as_text(self, *_: Any, **__: Any) -> str:
        return ""
    lower = compile


class ShapeDtypeStruct:
    def __init__(self, shape: Any, dtype: Any, **named: Any) -> None:
        self.shape = tuple(as_int(n) for n in shape)
        self.dtype = dtype if isinstance(dtype, pallas.SemaphoreType) else dtype_of(dtype)
        self.sharding = named.get("sharding")

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        return ShapeDtypeStruct(**{"shape": self.shape, "dtype": self.dtype, **changes})


def eval_shape(f: Callable[..., Any], *args: Any, **named: Any) -> Any:
    del f, args, named
    raise core.refuse("jax.eval_shape is not recorded")


# ---- lax ----

def axis_index(name: Any) -> Any:
    return numpy.int32(axis_position(name)[0])


def axis_size(name: Any) -> int:
    return axis_position(name)[1]


def rem(a: Any, b: Any) -> Any:
    """The remainder of a division that truncates, as in C."""
    if isinstance(loaded(a), Array) or isinstance(loaded(b), Array):
        return call("fmod", a, b)
    return known(numpy.fmod(a, b)) if not isinstance(a, int) or not isinstance(b, int) else numpy.int32(math.fmod(a, b))


def div(a: Any, b: Any) -> Any:
    a, b = loaded(a), loaded(b)
    if isinstance(a, Array) or isinstance(b, Array):
        return call("true_divide" if jaxarray.kept(jaxarray.promote([a, b])).kind == "f" else "floor_divide", a, b)
    if numpy.asarray(a).dtype.kind == "f":
        return known(numpy.divide(a, b))
    return known(numpy.asarray(numpy.trunc(numpy.true_divide(a, b))).astype(numpy.result_type(a, b))[()])


def select(condition: Any, a: Any, b: Any) -> Any:
    condition = loaded(condition)
    if isinstance(condition, Array) or any(isinstance(loaded(one), Array) for one in (a, b)):
        return jaxarray.where(condition, loaded(a), loaded(b))
    return known(numpy.where(condition, a, b))


def cond(condition: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any, **_: Any) -> Any:
    return true_fun(*operands) if bool(loaded(condition)) else false_fun(*operands)


def switch(which: Any, branches: Sequence[Callable[..., Any]], *operands: Any, **_: Any) -> Any:
    return branches[min(max(as_int(loaded(which)), 0), len(branches) - 1)](*operands)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any, **_: Any) -> Any:
    value = init_val
    for i in range(as_int(loaded(lower)), as_int(loaded(upper))):
        value = body_fun(numpy.int32(i), value)
    return value


def while_loop(cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init_val: Any) -> Any:
    value = init_val
    while bool(loaded(cond_fun(value))):
        value = body_fun(value)
    return value


def scan(f: Callable[..., Any], init: Any, xs: Any = None, length: Any = None, reverse: bool = False, **_: Any) -> Any:
    count = as_int(length) if length is not None else leaves(xs)[0].shape[0]
    carry, ys = init, []
    for i in (reversed(range(count)) if reverse else range(count)):
        carry, y = f(carry, tree_map(lambda one, i=i: one[i], xs))
        ys.append(y)
    if reverse:
        ys.reverse()
    return carry, tree_map(lambda *parts: stacked(parts), *ys) if ys and ys[0] is not None else None


def stacked(parts: Sequence[Any]) -> Any:
    return numpy_call("stack", list(parts))


CONTRACTS = {"psum": "allreduce", "all_gather": "allgather", "psum_scatter": "reduce_scatter"}


def collective(name: str) -> Callable[..., Any]:
    """XLA's own: it orders nothing here, and its result is not known."""
    def run(x: Any, axis_name: Any, *args: Any, **named: Any) -> Any:
        size = axis_position(axis_name)[1]
        if name == "psum" and all(isinstance(one, (int, float)) for one in leaves(x)):
            return tree_map(lambda one: one * size, x)
        core.rank().recording.assume("xla_collectives", "that collectives of XLA in the program order nothing; their results are not known")

        def one_of(value: Any) -> Any:
            value = jaxarray.materialize(value)
            shape = list(value.shape)
            axis = named.get("axis", named.get("scatter_dimension", args[0] if args and isinstance(args[0], int) else 0))
            if name == "all_gather":
                if named.get("tiled"):
                    shape[axis] *= size
                else:
                    shape.insert(axis, size)
            elif name == "psum_scatter":
                if named.get("tiled"):
                    shape[axis] //= size
                else:
                    shape.pop(axis)
            elif name == "all_to_all":
                split_axis, concat_axis = [*args, named.get("split_axis"), named.get("concat_axis")][:2] if args else (
                    named["split_axis"], named["concat_axis"])
                if named.get("tiled"):
                    shape[split_axis] //= size
                    shape[concat_axis] *= size
            found = jaxarray.opaque(f"xla_{name}", [value], shape, value.dtype)
            if name in CONTRACTS and isinstance(value.memory, core.Region) and axis == 0 and not args:
                found.formula = (CONTRACTS[name], value.memory, size)
            return found
        return tree_map(one_of, x)
    return run


def dot_general(a: Any, b: Any, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None, **_: Any) -> Any:
    a, b = loaded(a), loaded(b)
    (left, right), (batch_a, batch_b) = dimension_numbers
    shape = [a.shape[i] for i in batch_a] + [n for i, n in enumerate(a.shape) if i not in (*left, *batch_a)] + \
        [n for i, n in enumerate(b.shape) if i not in (*right, *batch_b)]
    if [a.shape[i] for i in left] != [b.shape[i] for i in right]:
        raise core.refuse(f"dot_general: {list(a.shape)} and {list(b.shape)} do not fit")
    return jaxarray.opaque("dot_general", [jaxarray.materialize(a), jaxarray.materialize(b)], shape,
                           dtype_of(preferred_element_type) if preferred_element_type is not None else jaxarray.promote([a, b]))


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, **_: Any) -> Any:
    line = numpy.arange(shape[dimension]).astype(jaxarray.kept(dtype_of(dtype)))
    return known(numpy.broadcast_to(line.reshape([-1 if i == dimension else 1 for i in range(len(shape))]), shape))


def dynamic_slice(x: Any, starts: Any, sizes: Any) -> Any:
    x = loaded(x)
    begin = [loaded(one) for one in starts]
    if any(isinstance(one, Array) for one in begin):
        return jaxarray.opaque("dynamic_slice", [jaxarray.materialize(x), *begin], sizes, x.dtype)
    at = [min(max(as_int(a), 0), n - size) for a, n, size in zip(begin, x.shape, sizes)]
    return x[tuple(slice(a, a + size) for a, size in zip(at, sizes))]


def dynamic_update_slice(x: Any, update: Any, starts: Any) -> Any:
    x, update = loaded(x), loaded(update)
    at = [min(max(as_int(a), 0), n - size) for a, n, size in zip(starts, x.shape, update.shape)]
    return jaxarray.Updates(x, tuple(slice(a, a + size) for a, size in zip(at, update.shape))).set(update)


def dynamic_index(x: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    x = loaded(x)
    at = tuple(slice(as_int(index), as_int(index) + 1) if i == axis % x.ndim else slice(None) for i in range(x.ndim))
    found = x[at]
    return found if keepdims else numpy_call("squeeze", found, axis)


def broadcast_in_dim(x: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: Any) -> Any:
    x = loaded(x)
    old = x.shape if hasattr(x, "shape") else ()
    middle = [old[list(broadcast_dimensions).index(i)] if i in broadcast_dimensions else 1 for i in range(len(shape))]
    return numpy_call("broadcast_to", numpy_call("reshape", x, middle), shape)


def bitcast_convert_type(x: Any, dtype: Any) -> Any:
    x, dtype = loaded(x), dtype_of(dtype)
    if not isinstance(x, Array):
        return known(numpy.asarray(x).view(dtype))
    shape = list(x.shape)
    if dtype.itemsize < x.dtype.itemsize:
        shape.append(x.dtype.itemsize // dtype.itemsize)
    elif dtype.itemsize > x.dtype.itemsize:
        shape.pop()
    return jaxarray.opaque("bitcast", [x], shape, dtype)


def top_k(x: Any, k: int, **_: Any) -> Any:
    x = jaxarray.materialize(x)
    shape = [*x.shape[:-1], k]
    return [jaxarray.opaque("top_k", [x], shape, x.dtype), jaxarray.opaque("top_k", [x], shape, numpy.dtype("int32"))]


# ---- numpy ----

def is_data(one: Any) -> bool:
    return isinstance(one, (Array, Ref, Nothing)) or isinstance(one, (list, tuple)) and any(is_data(part) for part in one)


def numpy_call(name: str, *args: Any, **named: Any) -> Any:
    """jax.numpy's function: numpy's if everything is known."""
    if any(isinstance(one, Nothing) for one in args):
        return Nothing()
    if is_data(args) or is_data(list(named.values())):
        return call(name, *args, **named)
    function = getattr(numpy, {"concat": "concatenate", "astype": "asarray", "acos": "arccos", "pow": "power"}.get(name, name), None)
    if function is None or not callable(function):
        raise core.refuse(f"jax.numpy.{name} is not known")
    wanted = named.pop("dtype", None) or named.pop("preferred_element_type", None)
    for ignored in ("precision", "out_sharding", "total_repeat_length"):
        named.pop(ignored, None)
    if name == "astype":
        args, wanted = args[:1], args[1]
    found = function(*args, **named)
    return known(numpy.asarray(found), dtype_of(wanted)) if wanted is not None else known(found)


def tested(function: Callable[..., Any]) -> Callable[..., Any]:
    """A test of data, by which the program looks at its own results: against a collective of XLA it is a contract."""
    @functools.wraps(function)
    def run(*args: Any, **named: Any) -> Any:
        if not is_data(args):
            return function(*args, **named)
        if not promised(args[:2]):
            file, line = core.place()
            core.rank().recording.note(f"the program's own test of data at {file}:{line} is taken as passed")
        return True
    return run


def promised(pair: Sequence[Any]) -> bool:
    """Is one what a kernel gave, and the other one what a collective of XLA gives?"""
    parts = [one.part if isinstance(one, Sharded) else one for one in pair]
    made = [one for one in parts if isinstance(one, Array) and one.buffer is not None]
    wanted = [one for one in parts if isinstance(one, Array) and one.formula is not None]
    if len(made) != 1 or len(wanted) != 1:
        return False
    contract, region, size = wanted[0].formula
    count = region.nbytes // made[0].dtype.itemsize
    if made[0].size * (size if contract == "reduce_scatter" else 1) != count * (size if contract == "allgather" else 1):
        return False
    program.implements(contract, region, made[0].buffer.regions[core.rank().index])
    return True


def creation(name: str) -> Callable[..., Any]:
    def run(shape: Any, *args: Any, dtype: Any = None, **_: Any) -> Any:
        value = args[:1] if name == "full" else ()
        if dtype is None and len(args) > len(value):
            dtype = args[len(value)]
        if value and isinstance(loaded(value[0]), Array):
            filled = loaded(value[0])
            return jaxarray.broadcast_to(filled if dtype is None else filled.astype(dtype), shape)
        wanted = dtype_of(dtype) if dtype is not None or name != "full" else None
        shape = tuple(as_int(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,)))
        return known(getattr(numpy, "zeros" if name == "empty" else name)(shape, *value, dtype=jaxarray.kept(wanted) if wanted is not None else None), wanted)
    return run


class NumpyModule(types.ModuleType):
    """jax.numpy: what is not written here is numpy's, where numpy knows the operands."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if not hasattr(numpy, name) and name not in jaxarray.SHAPES:
            raise core.refuse(f"jax.numpy.{name} is not known")
        found = getattr(numpy, name, None)
        if found is not None and not callable(found) or isinstance(found, type):
            return found
        return functools.partial(numpy_call, name)


class LaxModule(types.ModuleType):
    """jax.lax: what is not written here has numpy's name."""
    names = {"max": "maximum", "min": "minimum", "sub": "subtract", "mul": "multiply", "neg": "negative", "pow": "power", "eq": "equal", "ne": "not_equal",
             "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "shift_left": "left_shift",
             "shift_right_logical": "right_shift", "shift_right_arithmetic": "right_shift", "integer_pow": "power", "concatenate": "concatenate",
             "erf": "tanh", "rsqrt": "reciprocal"}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        wanted = self.names.get(name, name)
        if not hasattr(numpy, wanted):
            raise core.refuse(f"jax.lax.{name} is not known")
        return functools.partial(numpy_call, wanted)


def same_shape(name: str, function: Optional[Callable[[Any], Any]] = None) -> Callable[..., Any]:
    """A function of jax.nn."""
    def run(x: Any, *_: Any, **__: Any) -> Any:
        x = loaded(x)
        if not isinstance(x, Array) and function is not None:
            return known(function(x))
        x = jaxarray.materialize(x)
        return jaxarray.opaque(name, [x], x.shape, x.dtype)
    return run


def random_data(position: int, default: Any = "float32") -> Callable[..., Any]:
    """jax.random's arrays: data of the caller, whose shape is that argument."""
    def run(*args: Any, shape: Any = None, dtype: Any = None, **_: Any) -> Any:
        if shape is None:
            shape = args[position] if len(args) > position else ()
        if dtype is None:
            types_ = [one for one in args[position + 1:] if not isinstance(one, (int, float))]
            dtype = types_[0] if types_ else default
        return data(shape, dtype)
    return run


# ---- the modules ----

def _modules() -> Dict[str, types.ModuleType]:
    module = program.standin
    jnp, lax = NumpyModule("jax.numpy"), LaxModule("jax.lax")
    jnp.__dict__.update(
        {name: EXTENDED[name] for name in EXTENDED}, ndarray=AnyArray, dtype=dtype_of, float32=numpy.float32, float16=numpy.float16,
        int32=numpy.int32, uint32=numpy.uint32, int8=numpy.int8, uint8=numpy.uint8, int16=numpy.int16, uint16=numpy.uint16, int64=numpy.int64,
        float64=numpy.float64, bool_=numpy.bool_, floating=numpy.floating, integer=numpy.integer, inexact=numpy.inexact, inf=numpy.inf, nan=numpy.nan,
        newaxis=None, pi=numpy.pi, issubdtype=issubdtype, finfo=finfo, iinfo=numpy.iinfo, promote_types=lambda a, b: jaxarray.promote([dtype_of(a), dtype_of(b)]),
        result_type=lambda *args: jaxarray.promote(args), allclose=tested(numpy.allclose), array_equal=tested(numpy.array_equal),
        linalg=module("jax.numpy.linalg", norm=functools.partial(numpy_norm)), isscalar=numpy.isscalar, astype=lambda x, dtype: loaded(x).astype(dtype),
        square=lambda x: numpy_call("multiply", x, x), unsignedinteger=numpy.unsignedinteger, signedinteger=numpy.signedinteger,
        **{name: creation(name) for name in ("zeros", "ones", "empty", "full")})
    lax.__dict__.update(
        axis_index=axis_index, axis_size=axis_size, rem=rem, div=div, select=select, cond=cond, switch=switch, fori_loop=fori_loop, while_loop=while_loop,
        scan=scan, map=lambda f, xs: scan(lambda c, x: (c, f(x)), None, xs)[1], dot_general=dot_general, broadcasted_iota=broadcasted_iota,
        iota=lambda dtype, size: known(numpy.arange(size).astype(jaxarray.kept(dtype_of(dtype)))), dynamic_slice=dynamic_slice,
        dynamic_update_slice=dynamic_update_slice, dynamic_index_in_dim=dynamic_index, broadcast_in_dim=broadcast_in_dim, top_k=top_k,
        dynamic_slice_in_dim=lambda x, start, size, axis=0: dynamic_slice(x, [start if i == axis % x.ndim else 0 for i in range(x.ndim)],
                                                                         [size if i == axis % x.ndim else n for i, n in enumerate(x.shape)]),
        bitcast_convert_type=bitcast_convert_type, convert_element_type=lambda x, dtype: loaded(x).astype(dtype), stop_gradient=lambda x: x,
        select_n=lambda which, *cases: select(which, cases[1], cases[0]), broadcast=lambda x, sizes: numpy_call("broadcast_to", x, (*sizes, *x.shape)),
        with_sharding_constraint=lambda x, *_: x, optimization_barrier=lambda x: x, Precision=pallas.Parameters(HIGHEST=2, HIGH=1, DEFAULT=0),
        DotDimensionNumbers=Any, axis_types=None, pvary=lambda x, *_: x, expand_dims=lambda x, axes: numpy_call("expand_dims", x, tuple(axes)),
        logistic=same_shape("logistic"), rsqrt=same_shape("rsqrt"), erf=same_shape("erf"),
        **{name: collective(name) for name in ("psum", "pmax", "pmin", "pmean", "ppermute", "all_gather", "psum_scatter", "all_to_all", "pshuffle")})
    tree = module("jax.tree", map=tree_map, leaves=leaves, flatten=tree_flatten, unflatten=lambda definition, parts: definition.unflatten(parts),
                  structure=lambda one: tree_flatten(one)[1], all=lambda one: all(leaves(one)), reduce=functools.reduce)
    tree_util = module("jax.tree_util", tree_map=tree_map, tree_leaves=leaves, tree_flatten=tree_flatten, register_dataclass=register_dataclass,
                       tree_unflatten=lambda definition, parts: definition.unflatten(parts), tree_structure=lambda one: tree_flatten(one)[1],
                       register_pytree_node_class=lambda cls: NODES.setdefault(cls, (lambda one: one.tree_flatten(), cls.tree_unflatten)) and cls,
                       register_static=lambda cls: cls, Partial=functools.partial, PyTreeDef=TreeDef)
    sharding = module("jax.sharding", Mesh=Mesh, PartitionSpec=PartitionSpec, NamedSharding=NamedSharding, AbstractMesh=Mesh, Sharding=NamedSharding,
                      AxisType=pallas.Parameters(Auto="auto", Explicit="explicit", Manual="manual"), set_mesh=set_mesh, use_mesh=set_mesh,
                      get_abstract_mesh=lambda: current_mesh(), SingleDeviceSharding=pallas.Parameters, ManualAxisType=pallas.Parameters)
    random = module("jax.random", key=lambda *_, **__: "key", PRNGKey=lambda *_, **__: "key", split=lambda key, num=2: ["key"] * num,
                    fold_in=lambda *_: "key", uniform=random_data(1), normal=random_data(1), randint=random_data(1, "int32"),
                    truncated_normal=random_data(3), bernoulli=random_data(2, "bool"), permutation=lambda _, x: data(
                        (x,) if isinstance(x, int) else x.shape, "int32" if isinstance(x, int) else x.dtype), bits=random_data(1, "uint32"))
    nn = module("jax.nn", relu=lambda x: numpy_call("maximum", x, 0), **{name: same_shape(name) for name in (
        "silu", "gelu", "sigmoid", "softmax", "swish", "softplus", "log_softmax", "tanh", "relu6", "leaky_relu")})
    mesh_utils = module("jax.experimental.mesh_utils", create_device_mesh=create_device_mesh)
    shard_module = module("jax.experimental.shard_map", shard_map=shard_map)
    nothing = lambda *_, **__: contextlib.nullcontext()  # noqa: E731
    config = module("jax.config", update=lambda *_: None, parse_flags_with_absl=lambda: None, read=lambda *_: None)
    experimental = module("jax.experimental", mesh_utils=mesh_utils, shard_map=shard_module)
    core_module = module("jax.core", ShapedArray=ShapeDtypeStruct, Tracer=Array)
    debug = module("jax.debug", print=lambda *_, **__: None, callback=lambda *_, **__: None)
    source_dtypes = module("jax._src.dtypes", itemsize_bits=lambda dtype: dtype_of(dtype).itemsize * 8, issubdtype=issubdtype,
                           bit_width=lambda dtype: dtype_of(dtype).itemsize * 8, canonicalize_dtype=dtype_of)
    inner = module("jax._src", shard_map=shard_module, dtypes=source_dtypes)
    private = {"pallas": module("jax._src.pallas"), "mosaic": module("jax._src.pallas.mosaic"),
               "primitives": module("jax._src.pallas.mosaic.primitives", AsyncCopyDescriptor=pallas.AsyncCopy)}
    inner.pallas, private["pallas"].mosaic, private["mosaic"].primitives = private.values()  # type: ignore[attr-defined]
    dtypes = module("jax.dtypes", issubdtype=issubdtype, itemsize_bits=lambda dtype: dtype_of(dtype).itemsize * 8, bfloat16=EXTENDED["bfloat16"],
                    bit_width=lambda dtype: dtype_of(dtype).itemsize * 8, canonicalize_dtype=dtype_of)
    for name in ("assert_allclose", "assert_array_equal", "assert_array_almost_equal"):
        if not hasattr(getattr(numpy.testing, name), "__wrapped__"):
            setattr(numpy.testing, name, tested(getattr(numpy.testing, name)))
    found = pallas.modules()
    names = {**{one.__name__: one for one in private.values()}, "jax.numpy": jnp, "jax.lax": lax, "jax.tree": tree, "jax.tree_util": tree_util, "jax.sharding": sharding, "jax.random": random,
             "jax.nn": nn, "jax.experimental": experimental, "jax.experimental.mesh_utils": mesh_utils, "jax.experimental.shard_map": shard_module,
             "jax.core": core_module, "jax.debug": debug, "jax._src": inner, "jax._src.dtypes": source_dtypes, "jax._src.shard_map": shard_module,
             "jax.dtypes": dtypes, "jax.config": config, **found}
    jax = module(
        "jax", jit=jit, shard_map=shard_map, make_mesh=make_mesh, devices=devices, local_devices=devices, device_count=lambda *_: len(devices()),
        local_device_count=lambda *_: len(devices()), process_index=lambda: 0, process_count=lambda: 1, default_backend=lambda: "tpu",
        device_put=lambda x, *_, **__: x, device_get=lambda x: x, block_until_ready=lambda x: x, Array=AnyArray, ShapeDtypeStruct=ShapeDtypeStruct,
        P=PartitionSpec, NamedSharding=NamedSharding, Mesh=Mesh, named_scope=named_scope, named_call=lambda f, **_: f, set_mesh=set_mesh,
        typeof=lambda x: ShapeDtypeStruct(x.shape, x.dtype), new_ref=pallas.new_ref, freeze=pallas.freeze, eval_shape=eval_shape, vmap=refused("jax.vmap"),
        grad=refused("jax.grad"), Device=Device, Ref=Ref, ensure_compile_time_eval=nothing, checkpoint=lambda f, **_: f, disable_jit=nothing,
        default_matmul_precision=nothing, transfer_guard=nothing, **{name.split(".")[1]: one for name, one in names.items() if name.count(".") == 1},
        __version__="0.11.0")
    jax.__path__ = []  # type: ignore[attr-defined]
    for name in ("jax.experimental", "jax.experimental.pallas", "jax._src"):
        (names.get(name) or found[name]).__path__ = []  # type: ignore[attr-defined]
    experimental.__dict__["pallas"] = found["jax.experimental.pallas"]
    for name in ("tpu", "tpu_sc"):
        found["jax.experimental.pallas"].__dict__[name] = found[f"jax.experimental.pallas.{name}"]
    return {"jax": jax, **names}


def named_scope(_: str) -> Any:
    """A context, and a decorator."""
    class Scope(contextlib.ContextDecorator):
        def __enter__(self) -> Scope:
            return self

        def __exit__(self, *_: Any) -> None:
            pass
    return Scope()


def issubdtype(a: Any, b: Any) -> bool:
    if isinstance(a, jaxarray.Extended) or isinstance(b, jaxarray.Extended):
        if isinstance(a, jaxarray.Extended) and isinstance(b, jaxarray.Extended):
            return a == b
        return isinstance(a, jaxarray.Extended) and isinstance(b, type) and numpy.issubdtype(a.kept, b) and b not in (numpy.float32, numpy.int32)
    return bool(numpy.issubdtype(dtype_of(a) if not isinstance(a, type) else a, b))


class Limits:
    def __init__(self, name: str, top: float, bits: int, eps: float) -> None:
        self.dtype, self.max, self.min, self.bits, self.eps, self.tiny = name, top, -top, bits, eps, 2.0 ** -126


def finfo(dtype: Any) -> Any:
    found = dtype_of(dtype)
    if not isinstance(found, jaxarray.Extended):
        return numpy.finfo(found)
    return {"bf16": Limits("bfloat16", 3.3895313892515355e38, 16, 2.0 ** -7), "f8e4m3": Limits(found.name, 448.0, 8, 2.0 ** -3),
            "f8e5m2": Limits(found.name, 57344.0, 8, 2.0 ** -2)}[found.peal]


def numpy_norm(x: Any, *_: Any, **__: Any) -> Any:
    x = loaded(x)
    return numpy.linalg.norm(x) if not is_data(x) else jaxarray.opaque("norm", [x], (), x.dtype)


def modules() -> Dict[str, types.ModuleType]:
    """The stand-ins, by the names under which programs import them."""
    return _modules()
