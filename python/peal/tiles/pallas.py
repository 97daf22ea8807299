# SPDX-License-Identifier: Apache-2.0
"""jax.experimental.pallas and jax.experimental.pallas.tpu: kernels for TPUs, recorded.

A device is a rank. What its core does is one lane. The grid runs in sequence, and blocks are copied before and after the body.
"""
from __future__ import annotations

import functools
import inspect
import itertools
import math
import re
import types
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy

from . import core, jaxarray, pallas_tries, program
from .jaxarray import Array, dense, dtype_of
from .pallas_copies import (async_copy, async_remote_copy, begin_kernel, get_barrier_semaphore, make_async_copy, make_async_remote_copy,
                            semaphore_read, semaphore_signal, semaphore_wait, sync_copy)
from .pallas_memory import (Kernel, Ref, Storage, input_region, kernel, num_programs, program_id, select_ref, state, storage_for)
from .pallas_types import (DEVICE_MEMORY, Blocked, BlockSpec, CoreType, DeviceIdType, Element, GridDimensionSemantics, GridSpec, MemoryRef,
                           MemorySpace, Parameters, PrefetchScalarGridSpec, SemaphoreType, Slice, Squeezed, TensorCoreMesh, no_block_spec)
from .trees import flatten, leaves, spec_leaves, tree_map_named


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
    """An input or output of a call, or of a pipeline: an array, and the block of it that the body sees."""

    def __init__(self, k: Kernel, name: str, whole: Ref, spec: BlockSpec, writes: bool, index: Any) -> None:
        self.whole, self.spec, self.writes, self.name = whole, spec, writes, name
        space = spec.memory_space or MemorySpace.DEFAULT
        stays = whole.storage.space is MemorySpace.VMEM is space and spec.block_shape is None  # where an earlier kernel has put it
        self.direct = is_direct(spec) or stays
        self.ref: Any = None
        self.block: Optional[Tuple[int, ...]] = None
        if self.direct:
            if spec.block_shape is not None and tuple(spec.block_shape) != whole.shape:
                raise core.refuse(f"'{name}' has blocks of {tuple(spec.block_shape)} in {space.value} memory: "
                                  "only a whole array is possible there")
            self.ref = whole
            return
        dims = whole.shape if spec.block_shape is None else spec.block_shape
        if len(dims) != whole.ndim:
            raise core.refuse(f"'{name}' has {whole.ndim} dimensions, and blocks of {len(dims)}")
        self.squeezed = [one is None or isinstance(one, Squeezed) or one is Squeezed for one in dims]
        self.sizes = [1 if squeezed else jaxarray.as_int(getattr(one, "block_size", one)) for one, squeezed in zip(dims, self.squeezed)]
        self.by_element = [isinstance(one, Element) for one in dims]
        place = MemorySpace.VMEM if space is MemorySpace.DEFAULT else space
        self.local = storage_for((k.key, "block", index, k.core_index), name, place, self.sizes, whole.dtype)
        self.local.enter(k.lane)
        shape = [n for n, squeezed in zip(self.sizes, self.squeezed) if not squeezed]
        local = Ref.of(self.local)
        self.ref = local.view(shape, [s for s, squeezed in zip(local.strides, self.squeezed) if not squeezed])

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
        lengths = [max(min(size, total - start), 0) for size, total, start in zip(self.sizes, self.whole.shape, block)]
        if min([0, *block]) < 0 or 0 in lengths and 0 not in self.whole.shape:
            raise core.refuse(f"block {list(block)} of '{self.name}' is outside of its shape {list(self.whole.shape)}")
        outer = self.whole.narrowed(tuple(Slice(start, n) for start, n in zip(block, lengths)))
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


def memory_of(wanted: MemoryRef) -> MemorySpace:
    """Where an output is."""
    if isinstance(wanted.dtype, SemaphoreType):
        return MemorySpace.SEMAPHORE
    return MemorySpace.VMEM if wanted.memory_space is MemorySpace.VMEM else MemorySpace.HBM


def on_this_device(value: Any) -> Any:
    """An array, all of which this device has."""
    if isinstance(value, Array):
        return value.here() if value.is_global else value  # type: ignore[attr-defined]
    return numpy.asarray(value)


def on_device(value: Any, name: str, key: Any) -> Storage:
    """The memory of the device in which an operand is."""
    if isinstance(value, Ref):
        return value.storage
    if isinstance(value, Array) and value.is_global:
        value = on_this_device(value)
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
        pallas_tries.end(self.kernel)
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


def run_grid(body: Any, name: Optional[str], out_shape: Any, spec: Any, aliases: Dict[int, int], params: Any,
             operands: Sequence[Any]) -> Any:
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
            (k.key, "out", i), outside[len(arrays) + i],
            memory_of(wanted), wanted.shape, wanted.dtype, user=True))
        results[-1].is_passed = isinstance(wanted.dtype, SemaphoreType)
    with Running(k):
        for i, storage in enumerate(results):
            if i not in aliases.values() and not isinstance(storage.dtype, SemaphoreType):
                storage.enter(k.lane)
        scalars = [scalar_ref(k, names[i], inputs[i]) for i in range(prefetched)]
        blocks = [Operand(k, names[prefetched + i], Ref.of(storage), one, False, i)
                  for i, (storage, one) in enumerate(zip(inputs[prefetched:], in_specs))]
        made = [Operand(k, names[len(arrays) + i], Ref.of(storage), one, True, -1 - i)
                for i, (storage, one) in enumerate(zip(results, out_specs))]
        first = len(operands) + (len(out_shape) if isinstance(out_shape, (tuple, list)) else 1)
        scratch, named = make_scratch(k, body, first, spec.scratch_shapes, tree_map_named)
        begin_kernel(k)
        seen = rebuild_operands([*scalars, *(one.ref for one in blocks)])
        out_refs = rebuild([one.ref for one in made])
        out_refs = tuple(out_refs) if isinstance(out_refs, (tuple, list)) else (out_refs,)
        run_steps(k, blocks, made, scalars, lambda: body(*seen, *out_refs, *scratch, **named))
    return rebuild([semaphores_out(one) if isinstance(one.dtype, SemaphoreType) else output(one) for one in results])


def run_steps(k: Kernel, blocks: Sequence[Operand], made: Sequence[Operand], scalars: Sequence[Any], body: Callable[[], Any]) -> None:
    """The grid, in sequence."""
    steps = list(itertools.product(*(range(n) for n in k.grid)))
    if len(steps) > 1 and any(not one.direct for one in [*blocks, *made]):
        k.rank.recording.assume("pallas_blocks", "that blocks of a grid are copied before and after the body, not beside it")
    for at, following in zip(steps, [*steps[1:], None]):
        k.at = at
        for one in [*blocks, *made]:
            one.fetch(k, at, scalars)
        body()
        for one in made:
            one.write_back(k, following, scalars)


def emit_pipeline(body: Any, *, grid: Any, in_specs: Any = (), out_specs: Any = (), **_: Any) -> Callable[..., None]:
    """A grid within a kernel, over blocks of references."""
    def run(*refs: Any, scratches: Any = (), **others: Any) -> None:
        if any(value is not None for value in others.values()):
            raise core.refuse(f"emit_pipeline with {', '.join(sorted(others))} is not recorded")
        k, code = kernel(), body_of(body)[1]
        ins = leaves(in_specs)
        specs = ins + leaves(out_specs)
        if len(specs) != len(refs):
            raise core.refuse(f"a pipeline of {len(specs)} specifications is given {len(refs)} references")
        names = parameter_names(body, len(refs))
        parts = [Operand(k, name, ref, spec, i >= len(ins), ("pipeline", code, i))
                 for i, (name, ref, spec) in enumerate(zip(names, refs, specs))]
        outside = k.grid, k.at
        k.grid = normal_grid(grid)
        try:
            run_steps(k, parts[:len(ins)], parts[len(ins):], (), lambda: body(*[one.ref for one in parts], *scratches))
        finally:
            k.grid, k.at = outside
    return run


def semaphores_out(storage: Storage) -> Ref:
    return Ref.of(storage)


def leaf_names(names: List[str], prefetch: int, operands: Sequence[Any], trees: Sequence[Any]) -> List[str]:
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


def kernel_on_mesh(body: Any = None, out_type: Any = (), *, mesh: Any = None, scratch_types: Any = (), compiler_params: Any = None,
                   name: Optional[str] = None,
                   out_shape: Any = None, scratch_shapes: Any = None, **_: Any) -> Any:
    """pl.kernel"""
    if body is None:
        return lambda given: kernel_on_mesh(given, out_type, mesh=mesh, scratch_types=scratch_types, compiler_params=compiler_params,
                                            name=name,
                                            out_shape=out_shape, scratch_shapes=scratch_shapes)
    out_type = out_type if out_shape is None else out_shape
    scratch_types = scratch_types if scratch_shapes is None else scratch_shapes

    def call(*operands: Any) -> Any:
        if isinstance(body, (tuple, list)):
            raise core.refuse("pl.kernel with several bodies: only one kernel on a TensorCoreMesh is recorded")
        own_name, code = body_of(body)
        k = start_kernel(name or own_name, code, compiler_params)
        outs, rebuild = flatten(out_type)
        names = parameter_names(body, len(operands) + len(outs))
        refs = [Ref.of(on_device(one, names[i], k.key)) for i, one in enumerate(operands)]
        results = [storage_for((k.key, "out", i), names[len(operands) + i], MemorySpace.HBM, as_memory(one).shape, as_memory(one).dtype,
                               user=True)
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


def core_map(mesh: Any, *, compiler_params: Any = None, name: Optional[str] = None, scratch_shapes: Any = (), **_: Any) -> Callable[[Any],
                                                                                                                                    None]:
    def run(body: Any) -> None:
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
    value = on_this_device(value)
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
        parts, rebuild = flatten(values)
        refs = []
        for i, one in enumerate(parts):
            ref = new_ref_for(("state", body_of(body)[1], i), one)
            refs.append(ref)
        body(rebuild(refs))
        return rebuild([freeze(ref) for ref in refs])
    return call


def new_ref_for(key: Any, value: Any) -> Ref:
    value = on_this_device(value)
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
        "DeviceIdType": DeviceIdType, "semaphore_signal": semaphore_signal, "semaphore_wait": semaphore_wait,
        "semaphore_read": semaphore_read,
        "MemorySpace": MemorySpace, "ANY": MemorySpace.ANY, "HOST": MemorySpace.HOST, "delay": lambda *_: None, "run_scoped": run_scoped,
        "CostEstimate": Parameters, "load": load, "store": store, "emit_pipeline": emit_pipeline, "CompilerParams": Parameters}
    pl = program.standin(
        "jax.experimental.pallas", **both, pallas_call=pallas_call, BlockSpec=BlockSpec, GridSpec=GridSpec, no_block_spec=no_block_spec,
        program_id=program_id, num_programs=num_programs, when=when, loop=loop, ds=Slice, dslice=Slice, Slice=Slice, cdiv=cdiv, swap=swap,
        dot=dot,
        align_to=lambda x, n: cdiv(x, n) * n, next_power_of_2=lambda n: 1 << max(n - 1, 0).bit_length(), with_scoped=with_scoped,
        core_map=core_map, kernel=kernel_on_mesh, run_state=run_state, select_ref=select_ref, Element=Element, Blocked=Blocked,
        Squeezed=Squeezed,
        squeezed=Squeezed(), Buffered=Parameters, MemoryRef=MemoryRef, multiple_of=lambda x, _: x, debug_print=lambda *_, **__: None,
        debug_check=lambda *_, **__: None, reciprocal=lambda x, **_: jaxarray.call("reciprocal", x),
        estimate_cost=lambda *_, **__: Parameters(),
        empty=lambda shape, dtype: jaxarray.known(numpy.zeros(shape, jaxarray.kept(dtype_of(dtype)))), semaphore=SemaphoreType.REGULAR,
        strides_from_shape=lambda shape: dense(shape, 1), broadcast_to=jaxarray.broadcast_to)
    tpu = program.standin(
        "jax.experimental.pallas.tpu", **both, PrefetchScalarGridSpec=PrefetchScalarGridSpec, SemaphoreType=SemaphoreType,
        make_async_copy=make_async_copy,
        make_async_remote_copy=make_async_remote_copy, async_copy=async_copy, async_remote_copy=async_remote_copy, sync_copy=sync_copy,
        get_barrier_semaphore=get_barrier_semaphore, TPUCompilerParams=Parameters, TPUMemorySpace=MemorySpace, InterpretParams=Parameters,
        VMEM=MemorySpace.VMEM, SMEM=MemorySpace.SMEM, HBM=MemorySpace.HBM, CMEM=MemorySpace.CMEM, SEMAPHORE=MemorySpace.SEMAPHORE,
        VMEM_SHARED=MemorySpace.VMEM_SHARED, CoreType=CoreType, GridDimensionSemantics=GridDimensionSemantics,
        PARALLEL=GridDimensionSemantics.PARALLEL,
        ARBITRARY=GridDimensionSemantics.ARBITRARY, CORE_PARALLEL=GridDimensionSemantics.CORE_PARALLEL, TensorCoreMesh=TensorCoreMesh,
        create_tensorcore_mesh=lambda axis_name, devices=None, num_cores=1: TensorCoreMesh(axis_name, num_cores or 1),
        get_tpu_info=tpu_info,
        bitcast=bitcast, roll=like("roll"), with_memory_space_constraint=lambda x, *_, **__: x, touch=lambda *_: None,
        prng_seed=lambda *_: None,
        semaphore=SemaphoreType.REGULAR, dma_semaphore=SemaphoreType.DMA,
        SideEffectType=Parameters(PURE=0, SIDE_EFFECTING=1, DATAFLOW_SIDE_EFFECTING=2),
        repeat=lambda x, n, axis: jaxarray.guessed("repeat", [x, n], {"axis": axis}, x.dtype), stochastic_round=like("stochastic_round"))
    return {"jax.experimental.pallas": pl, "jax.experimental.pallas.tpu": tpu,
            "jax.experimental.pallas.tpu_sc": program.standin("jax.experimental.pallas.tpu_sc")}
