# SPDX-License-Identifier: Apache-2.0
"""jax, jax.numpy, jax.lax and the rest of what programs around Pallas kernels use.

What is known is numpy's: the stand-in of jax.numpy calls numpy where it knows the operands. XLA's own collectives order nothing here, and
their results are not known.
"""
from __future__ import annotations

import contextlib
import functools
import math
import types
from typing import Any, Callable, Dict, Optional, Sequence

import numpy

from . import core, jaxarray, pallas, pallas_copies, pallas_memory, program
from .jaxarray import EXTENDED, AnyArray, Array, as_int, call, dtype_of, known, loaded
from .jaxmesh import (Device, Mesh, NamedSharding, Nothing, Sharded, axis_position, create_device_mesh, current_mesh, data, device_put, devices,
                      make_mesh, set_mesh, shard_map)
from .pallas import refused
from .pallas_copies import AsyncCopy
from .pallas_memory import Ref
from .trees import (NODES, PartitionSpec, TreeDef, leaves, register_dataclass, tree_flatten, tree_map)


# ---- jit and the like ----

def jit(f: Any = None, static_argnums: Any = None, static_argnames: Any = None, **_: Any) -> Any:
    if f is None:
        return lambda given: jit(given, static_argnums, static_argnames)
    fixed = static_argnums is not None or static_argnames is not None

    @functools.wraps(f)
    def run(*args: Any, **named: Any) -> Any:
        return f(*[numpy.int32(one) if type(one) is int and not fixed else one for one in args], **named)  # an array of no dimensions
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

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        return cls(x.shape, x.dtype)

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


def dynamic_slice_in_dim(x: Any, start: Any, size: int, axis: int = 0) -> Any:
    return dynamic_slice(x, [start if i == axis % x.ndim else 0 for i in range(x.ndim)],
                         [size if i == axis % x.ndim else n for i, n in enumerate(x.shape)])


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
        return known(getattr(numpy, "zeros" if name == "empty" else name)(shape, *value,
                                                                          dtype=jaxarray.kept(wanted) if wanted is not None else None),
                     wanted)
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
    names = {"max": "maximum", "min": "minimum", "sub": "subtract", "mul": "multiply", "neg": "negative", "pow": "power", "eq": "equal",
             "ne": "not_equal",
             "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "shift_left": "left_shift",
             "shift_right_logical": "right_shift", "shift_right_arithmetic": "right_shift", "integer_pow": "power",
             "concatenate": "concatenate",
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
        int32=numpy.int32, uint32=numpy.uint32, int8=numpy.int8, uint8=numpy.uint8, int16=numpy.int16, uint16=numpy.uint16,
        int64=numpy.int64,
        float64=numpy.float64, bool_=numpy.bool_, floating=numpy.floating, integer=numpy.integer, inexact=numpy.inexact, inf=numpy.inf,
        nan=numpy.nan,
        newaxis=None, pi=numpy.pi, issubdtype=issubdtype, finfo=finfo, iinfo=numpy.iinfo,
        promote_types=lambda a, b: jaxarray.promote([dtype_of(a), dtype_of(b)]),
        result_type=lambda *args: jaxarray.promote(args), allclose=tested(numpy.allclose), array_equal=tested(numpy.array_equal),
        linalg=module("jax.numpy.linalg", norm=functools.partial(numpy_norm)), isscalar=numpy.isscalar,
        astype=lambda x, dtype: loaded(x).astype(dtype),
        square=lambda x: numpy_call("multiply", x, x), unsignedinteger=numpy.unsignedinteger, signedinteger=numpy.signedinteger,
        **{name: creation(name) for name in ("zeros", "ones", "empty", "full")})
    lax.__dict__.update(
        axis_index=axis_index, axis_size=axis_size, rem=rem, div=div, select=select, cond=cond, switch=switch, fori_loop=fori_loop,
        while_loop=while_loop,
        scan=scan, map=lambda f, xs: scan(lambda c, x: (c, f(x)), None, xs)[1], dot_general=dot_general, broadcasted_iota=broadcasted_iota,
        iota=lambda dtype, size: known(numpy.arange(size).astype(jaxarray.kept(dtype_of(dtype)))), dynamic_slice=dynamic_slice,
        dynamic_update_slice=dynamic_update_slice, dynamic_index_in_dim=dynamic_index, broadcast_in_dim=broadcast_in_dim, top_k=top_k,
        dynamic_slice_in_dim=dynamic_slice_in_dim,
        bitcast_convert_type=bitcast_convert_type, convert_element_type=lambda x, dtype: loaded(x).astype(dtype), stop_gradient=lambda x: x,
        select_n=lambda which, *cases: select(which, cases[1], cases[0]),
        broadcast=lambda x, sizes: numpy_call("broadcast_to", x, (*sizes, *x.shape)),
        with_sharding_constraint=lambda x, *_: x, optimization_barrier=lambda x: x,
        Precision=pallas.Parameters(HIGHEST=2, HIGH=1, DEFAULT=0),
        DotDimensionNumbers=Any, axis_types=None, pvary=lambda x, *_: x,
        expand_dims=lambda x, axes: numpy_call("expand_dims", x, tuple(axes)),
        logistic=same_shape("logistic"), rsqrt=same_shape("rsqrt"), erf=same_shape("erf"),
        **{name: collective(name) for name in ("psum", "pmax", "pmin", "pmean", "ppermute", "all_gather", "psum_scatter", "all_to_all",
                                               "pshuffle")})
    tree = module("jax.tree", map=tree_map, leaves=leaves, flatten=tree_flatten,
                  unflatten=lambda definition, parts: definition.unflatten(parts),
                  structure=lambda one: tree_flatten(one)[1], all=lambda one: all(leaves(one)), reduce=functools.reduce)
    tree_util = module("jax.tree_util", tree_map=tree_map, tree_leaves=leaves, tree_flatten=tree_flatten,
                       register_dataclass=register_dataclass,
                       tree_unflatten=lambda definition, parts: definition.unflatten(parts),
                       tree_structure=lambda one: tree_flatten(one)[1],
                       register_pytree_node_class=lambda cls: NODES.setdefault(cls,
                                                                               (lambda one: one.tree_flatten(),
                                                                                cls.tree_unflatten)) and cls,
                       register_static=lambda cls: cls, Partial=functools.partial, PyTreeDef=TreeDef)
    sharding = module("jax.sharding", Mesh=Mesh, PartitionSpec=PartitionSpec, NamedSharding=NamedSharding, AbstractMesh=Mesh,
                      Sharding=NamedSharding,
                      AxisType=pallas.Parameters(Auto="auto", Explicit="explicit", Manual="manual"), set_mesh=set_mesh, use_mesh=set_mesh,
                      use_abstract_mesh=set_mesh,
                      AbstractDevice=pallas.Parameters,
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
               "primitives": module("jax._src.pallas.mosaic.primitives", AsyncCopyDescriptor=AsyncCopy)}
    inner.pallas, private["pallas"].mosaic, private["mosaic"].primitives = private.values()  # type: ignore[attr-defined]
    dtypes = module("jax.dtypes", issubdtype=issubdtype, itemsize_bits=lambda dtype: dtype_of(dtype).itemsize * 8,
                    bfloat16=EXTENDED["bfloat16"],
                    bit_width=lambda dtype: dtype_of(dtype).itemsize * 8, canonicalize_dtype=dtype_of)
    for name in ("assert_allclose", "assert_array_equal", "assert_array_almost_equal"):
        if not hasattr(getattr(numpy.testing, name), "__wrapped__"):
            setattr(numpy.testing, name, tested(getattr(numpy.testing, name)))
    found = pallas.modules()
    names = {**{one.__name__: one for one in private.values()}, "jax.numpy": jnp, "jax.lax": lax, "jax.tree": tree,
             "jax.tree_util": tree_util, "jax.sharding": sharding, "jax.random": random,
             "jax.nn": nn, "jax.experimental": experimental, "jax.experimental.mesh_utils": mesh_utils,
             "jax.experimental.shard_map": shard_module,
             "jax.core": core_module, "jax.debug": debug, "jax._src": inner, "jax._src.dtypes": source_dtypes,
             "jax._src.shard_map": shard_module,
             "jax.dtypes": dtypes, "jax.config": config, **found}
    jax = module(
        "jax", jit=jit, shard_map=shard_map, make_mesh=make_mesh, devices=devices, local_devices=devices,
        device_count=lambda *_: len(devices()),
        local_device_count=lambda *_: len(devices()), process_index=lambda: 0, process_count=lambda: 1, default_backend=lambda: "tpu",
        device_put=device_put, device_get=lambda x: x, block_until_ready=lambda x: x, Array=AnyArray,
        ShapeDtypeStruct=ShapeDtypeStruct,
        P=PartitionSpec, NamedSharding=NamedSharding, Mesh=Mesh, named_scope=named_scope, named_call=lambda f, **_: f, set_mesh=set_mesh,
        typeof=lambda x: ShapeDtypeStruct(x.shape, x.dtype), new_ref=pallas.new_ref, freeze=pallas.freeze, eval_shape=eval_shape,
        vmap=refused("jax.vmap"),
        grad=refused("jax.grad"), Device=Device, Ref=Ref, ensure_compile_time_eval=nothing, checkpoint=lambda f, **_: f,
        disable_jit=nothing,
        default_matmul_precision=nothing, transfer_guard=nothing,
        **{name.split(".")[1]: one for name, one in names.items() if name.count(".") == 1},
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
        return isinstance(a, jaxarray.Extended) and isinstance(b, type) and numpy.issubdtype(a.kept, b) and b not in (numpy.float32,
                                                                                                                      numpy.int32)
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
