# SPDX-License-Identifier: Apache-2.0
"""`triton` and `triton.language`: kernels run as Python, once per program of the grid, and what they do is recorded."""
from __future__ import annotations

import builtins
import dis
import functools
import operator
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from . import asm, core, data, spins
from .alike import Number
from .core import refuse
from .data import TYPES, DType, Tile, binary, cast, elementwise, opaque, tile
from .program import model, standin



# ---- constants ----

class constexpr:  # pylint: disable=invalid-name
    """A number, a type or a text that the compiler knows. Parameters with this annotation get it as it is."""

    def __new__(cls, value: Any = None) -> Any:
        return value


def _plain(value: Any) -> Any:
    """A number of Python, if the value is known."""
    return value.number() if isinstance(value, Tile) else value


# ---- kernels ----

class Range:
    """`range` in a kernel: its numbers are 32-bit, as in the compiled kernel."""

    def __init__(self, *bounds: Any, **_: Any) -> None:
        self.first, end, step = 0, _plain_number(bounds[0]), operator.index(bounds[2]) if len(bounds) > 2 else 1
        if len(bounds) > 1:
            self.first, end = end, _plain_number(bounds[1])
        self.numbers = builtins.range(*(bound.now() if isinstance(bound, Number) else bound for bound in (self.first, end)), step)
        if isinstance(self.first, Number) or isinstance(end, Number):
            self._keep(end)

    def _keep(self, end: Any) -> None:
        """Only programs that go round as often are like this one: that is so if these comparisons have the same answers."""
        forwards, turns = self.numbers.step > 0, len(self.numbers)
        for number in (self.first + self.numbers.step * turn for turn in (turns - 1, turns) if turn >= 0):
            if forwards:
                bool(number < end)
            else:
                bool(number > end)

    def __iter__(self) -> Iterator[Tile]:
        for turn in builtins.range(len(self.numbers)):
            yield tile(self.first + turn * self.numbers.step)

    def __len__(self) -> int:
        return len(self.numbers)


def _plain_number(value: Any) -> Any:
    """A whole number of Python, or one that differs from program to program."""
    known = value.known if isinstance(value, Tile) and not value.origin else None
    return known if isinstance(known, Number) else operator.index(value)


def _least(*values: Any) -> Any:
    return functools.reduce(minimum, values[0] if len(values) == 1 else values)


def _most(*values: Any) -> Any:
    return functools.reduce(maximum, values[0] if len(values) == 1 else values)


def _print(*_: Any, **__: Any) -> None:
    """Nothing is printed by a kernel that is recorded."""


_BUILTINS = {**vars(builtins), "range": Range, "min": _least, "max": _most, "print": _print, "__peal_arms": spins.Arms, "__peal_numbered": spins.Numbered}


HANDSHAKES: Dict[str, Callable[..., Any]] = {}  # functions, by module and name, whose text cannot be recorded and whose meaning is known


class JITFunction:
    """A kernel, or a function that kernels call."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn
        for step in dis.get_instructions(fn.__code__):
            if step.opname == "STORE_GLOBAL":
                raise refuse(f"the kernel '{fn.__name__}' sets '{step.argval}', which is not its own")
        self.arg_names = list(fn.__code__.co_varnames[:fn.__code__.co_argcount + fn.__code__.co_kwonlyargcount])
        annotations = getattr(fn, "__annotations__", {})
        self.constants = {name for name, given in annotations.items() if given is constexpr or "constexpr" in str(given)}
        defaults = fn.__defaults__ or ()
        names = fn.__code__.co_varnames[:fn.__code__.co_argcount]
        self.defaults = {**dict(zip(names[len(names) - len(defaults):], defaults)), **(fn.__kwdefaults__ or {})}
        code, closure = fn.__code__, fn.__closure__
        arms = spins.with_arms(fn)
        if arms is not None and set(arms.co_freevars) <= set(code.co_freevars):
            closure = tuple((closure or ())[code.co_freevars.index(name)] for name in arms.co_freevars)
            code = arms
        self.body = types.FunctionType(code, _Globals(fn.__globals__), fn.__name__, fn.__defaults__, closure)
        self.body.__kwdefaults__ = fn.__kwdefaults__
        self.body = HANDSHAKES.get(f"{fn.__module__}.{fn.__name__}", self.body)
        self.params = [types.SimpleNamespace(name=name, num=number, is_constexpr=name in self.constants)
                       for number, name in enumerate(self.arg_names)]

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Called by another kernel: the same program goes on."""
        if core.rank().lane is None:
            raise refuse(f"the kernel '{self.__name__}' is called without a grid")
        return self.body(*args, **named)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self.run, grid=grid, warmup=False)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **named: Any) -> Any:
        """A launch."""
        options = {name: named.pop(name) for name in list(named) if name not in self.arg_names and name in LAUNCH_OPTIONS}
        bound = dict(zip(self.arg_names, args))
        for name, value in named.items():
            if name not in self.arg_names:
                raise refuse(f"the kernel '{self.__name__}' has no parameter '{name}'")
            bound[name] = value
        if len(args) > len(self.arg_names):
            raise refuse(f"the kernel '{self.__name__}' has {len(self.arg_names)} parameters, and {len(args)} arguments are given")
        for name in self.arg_names:
            if name not in bound and name not in self.defaults:
                raise refuse(f"nothing is given for the parameter '{name}' of the kernel '{self.__name__}'")
        meta = {**self.defaults, **bound}
        shape = grid(meta) if callable(grid) else grid
        if not warmup:
            _launch(self, bound, shape, options)
        return Compiled(self, options)

    def warmup(self, *args: Any, grid: Any, **named: Any) -> Any:
        return self.run(*args, grid=grid, warmup=True, **named)


LAUNCH_OPTIONS = {"num_warps", "num_stages", "num_ctas", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "maxnreg", "enable_fp_fusion",
                  "launch_cooperative_grid", "launch_pdl", "extern_libs", "debug", "stream", "device", "allow_flush_denorm", "num_consumer_groups",
                  "num_buffers_warp_spec", "matrix_core_version", "instrumentation_mode", "cluster_dims", "ctas_per_cga", "warp_size"}


class _Globals(dict):  # type: ignore[type-arg]
    """The globals of a kernel: those of its module, as they are when it runs, with Triton's `range`, `min` and `max`."""

    def __init__(self, of: Dict[str, Any]) -> None:
        super().__init__(__builtins__=_BUILTINS, __name__=of.get("__name__", ""))
        self.of = of

    def __missing__(self, name: str) -> Any:
        found = self.of[name]
        if isinstance(found, types.ModuleType) and found.__name__ in NO_KERNELS:
            raise refuse(f"a kernel uses the module '{found.__name__}', of which no kernel can be compiled")
        return found


# What differs from run to run, or acts on the host.
NO_KERNELS = {"random", "time", "datetime", "os", "sys", "threading", "subprocess", "socket", "numpy", "numpy.random", "secrets", "uuid", "io"}


class Compiled:
    """What a launch returns: a compiled kernel, of which there is none."""

    def __init__(self, kernel: JITFunction, options: Dict[str, Any]) -> None:
        self.name, self.asm, self.metadata = kernel.__name__, {}, types.SimpleNamespace(**options, name=kernel.__name__, shared=0)
        self.n_regs, self.n_spills, self.n_max_threads = 64, 0, 1024

    def _init_handles(self) -> None:
        """Nothing is compiled."""


def _argument(value: Any, is_constant: bool) -> Any:
    if is_constant or value is None or isinstance(value, (str, DType, JITFunction, Tile)) or callable(value) and not hasattr(value, "data_ptr"):
        return value
    if isinstance(value, TensorDescriptor):
        return value
    if isinstance(value, (tuple, list)):
        return type(value)(_argument(one, False) for one in value) if type(value) in (tuple, list) else value  # pylint: disable=unidiomatic-typecheck
    return tile(value)


def grid_of(shape: Any) -> Tuple[int, int, int]:
    sizes = tuple(operator.index(_plain(size)) for size in (shape if isinstance(shape, (tuple, list)) else (shape,)))
    if not 1 <= len(sizes) <= 3 or any(size < 0 for size in sizes):
        raise refuse(f"{shape!r} is no grid")
    return (*sizes, 1, 1, 1)[:3]  # type: ignore[return-value]


MAX_PROGRAMS = 65536


def _launch(kernel: JITFunction, bound: Dict[str, Any], shape: Any, options: Dict[str, Any]) -> None:
    grid, rank = grid_of(shape), core.rank()
    if rank.lane is not None:
        raise refuse("a kernel launches a kernel")
    if grid[0] * grid[1] * grid[2] > MAX_PROGRAMS:
        raise refuse(f"a grid of {grid[0] * grid[1] * grid[2]} programs: at most {MAX_PROGRAMS} are possible")
    arguments = {name: _argument(value, name in kernel.constants) for name, value in bound.items()}
    warps = int(options.get("num_warps") or 4)
    rank.launch(kernel.__name__, grid, warps * model()["threads"]).run(lambda: kernel.body(**arguments))


def jit(fn: Any = None, **_: Any) -> Any:
    if fn is None:
        return JITFunction
    return fn if isinstance(fn, JITFunction) else JITFunction(fn)


class Config:
    def __init__(self, kwargs: Dict[str, Any], num_warps: int = 4, num_stages: int = 3, num_ctas: int = 1, maxnreg: Any = None,
                 pre_hook: Any = None, **_: Any) -> None:
        self.kwargs, self.num_warps, self.num_stages, self.num_ctas, self.maxnreg, self.pre_hook = (
            kwargs, num_warps, num_stages, num_ctas, maxnreg, pre_hook)

    def all_kwargs(self) -> Dict[str, Any]:
        return {**self.kwargs, "num_warps": self.num_warps, "num_stages": self.num_stages}


class _Wrapped:
    """A kernel whose parameters are completed before it is launched."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        self.arg_names, self.__name__ = fn.arg_names, fn.__name__

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["fn"], name)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self.run, grid=grid)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.fn(*args, **named)

    def run(self, *args: Any, grid: Any, **named: Any) -> Any:
        raise NotImplementedError


class Autotuner(_Wrapped):
    """The first configuration is the one that is recorded."""

    def __init__(self, fn: Any, configs: Sequence[Config], prune_configs_by: Any = None) -> None:
        super().__init__(fn)
        self.configs = list(configs) or [Config({})]
        del prune_configs_by

    def run(self, *args: Any, grid: Any, **named: Any) -> Any:
        config = self.configs[0]
        core.rank().recording.note(f"'{self.__name__}' with the first of its {len(self.configs)} configurations: "
                                   + ", ".join(f"{name}={value}" for name, value in config.kwargs.items()))
        given = {**config.all_kwargs(), **named}
        if config.pre_hook:
            config.pre_hook({**dict(zip(self.arg_names, args)), **given})
        return self.fn.run(*args, grid=grid, **given)


def autotune(configs: Sequence[Config], key: Any = None, prune_configs_by: Any = None, **_: Any) -> Callable[[Any], Autotuner]:
    del key
    return lambda fn: Autotuner(fn, configs, prune_configs_by)


class Heuristics(_Wrapped):
    def __init__(self, fn: Any, values: Dict[str, Callable[[Dict[str, Any]], Any]]) -> None:
        super().__init__(fn)
        self.values = values

    def run(self, *args: Any, grid: Any, **named: Any) -> Any:
        for name, make in self.values.items():
            named[name] = make({**dict(zip(self.arg_names, args)), **named})
        return self.fn.run(*args, grid=grid, **named)


def heuristics(values: Dict[str, Callable[[Dict[str, Any]], Any]]) -> Callable[[Any], Heuristics]:
    return lambda fn: Heuristics(fn, values)


# ---- the language: programs and shapes ----

def program_id(axis: Any) -> Tile:
    axis = operator.index(axis)
    if axis not in (0, 1, 2):
        raise refuse(f"there is no axis {axis}: 0, 1 and 2 are known")
    return tile(core.program().coordinate(axis))


def num_programs(axis: Any) -> Tile:
    axis = operator.index(axis)
    if axis not in (0, 1, 2):
        raise refuse(f"there is no axis {axis}: 0, 1 and 2 are known")
    return tile(core.program().grid[axis])


def zeros(shape: Any, dtype: Any) -> Tile:
    return data.full(shape, 0, dtype)


def zeros_like(x: Any) -> Tile:
    return data.full(tile(x).shape, 0, tile(x).dtype)


def cat(a: Any, b: Any, can_reorder: bool = False, dim: int = 0) -> Tile:
    del can_reorder
    return data.join([a, b], operator.index(dim))


def join(a: Any, b: Any) -> Tile:
    return data.join([data.expand_dims(a, -1), data.expand_dims(b, -1)], -1)


def split(a: Any) -> Tuple[Tile, Tile]:
    a = tile(a)
    if not a.shape or a.shape[-1] != 2:
        raise refuse("split takes a tile whose last dimension is 2")
    order = data.trans(a, len(a.shape) - 1, *range(len(a.shape) - 1))
    half = order.numel // 2
    flat = data.reshape(order, (order.numel,))
    return (data.reshape(data.elements(flat, np.arange(half)), a.shape[:-1]),
            data.reshape(data.elements(flat, np.arange(half, 2 * half)), a.shape[:-1]))


def interleave(a: Any, b: Any) -> Tile:
    joined = join(a, b)
    return data.reshape(joined, (*joined.shape[:-2], joined.shape[-2] * 2))


def cdiv(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return (tile(a) + tile(b) - 1) // tile(b)


def ravel(x: Any, **_: Any) -> Tile:
    return data.reshape(x, (tile(x).numel,))


def flip(x: Any, dim: Any = None) -> Tile:
    x = tile(x)
    axis = len(x.shape) - 1 if dim is None else operator.index(dim)
    index = np.flip(np.arange(x.numel).reshape(x.shape), axis).reshape(-1)
    return data.reshape(data.elements(x, index), x.shape)


def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> Tuple[Any, Any]:
    """Rows and columns, counted by groups of size_g rows."""
    ij = i * size_j + j
    size_gj = size_g * size_j
    group = ij // size_gj
    first = group * size_g
    size_g = minimum(size_i - first, size_g)
    ij = ij % size_gj
    return first + ij % size_g, ij // size_g


# ---- the language: arithmetic ----

def _two(name: str) -> Callable[..., Tile]:
    def function(a: Any, b: Any, *_: Any, **__: Any) -> Tile:
        return binary(name, a, b)
    return function


maximum, minimum = _two("maximum"), _two("minimum")


def _one(name: str) -> Callable[..., Tile]:
    return lambda x, *_, **__: data.unary(name, x)


def fma(x: Any, y: Any, z: Any) -> Tile:
    values = [tile(x), tile(y), tile(z)]
    if all(value.known is not None for value in values):
        return values[0] * values[1] + values[2]
    return elementwise("fma", *values)


def clamp(x: Any, low: Any, high: Any, *_: Any, **__: Any) -> Tile:
    if tile(x).known is not None:
        return minimum(maximum(x, low), high)
    return elementwise("clamp", x, low, high, dtype=tile(x).dtype)


def softmax(x: Any, dim: Any = None, **_: Any) -> Tile:
    x = tile(x)
    return opaque("softmax-rows", [x], x.shape, x.dtype)


def _reduction(name: str) -> Callable[..., Any]:
    def function(x: Any, axis: Any = None, return_indices: bool = False, *_: Any, keep_dims: bool = False, dtype: Any = None,
                 **__: Any) -> Any:
        if axis is not None:
            axis = operator.index(axis)
        found = data.reduce(name, x, axis, bool(keep_dims), dtype)
        if return_indices:
            return found, data.reduce("arg" + name, x, axis, bool(keep_dims))
        return found
    return function


def reduce(x: Any, axis: Any, combine_fn: Any, keep_dims: bool = False, **_: Any) -> Any:
    """A reduction by the author's function: what it reads is known, and not its result."""
    several = isinstance(x, tuple)
    values = [tile(one) for one in (x if several else (x,))]
    shape = values[0].shape
    axes = range(len(shape)) if axis is None else [operator.index(axis) % len(shape)]
    out = tuple(1 if at in axes else size for at, size in enumerate(shape)) if keep_dims else tuple(
        size for at, size in enumerate(shape) if at not in axes)
    del combine_fn
    found = tuple(opaque("reduce", values, out, value.dtype) for value in values)
    return found if several else found[0]


def associative_scan(x: Any, axis: Any, combine_fn: Any, reverse: bool = False, **_: Any) -> Any:
    del axis, combine_fn, reverse
    values = [tile(one) for one in (x if isinstance(x, tuple) else (x,))]
    found = tuple(opaque("scan", values, value.shape, value.dtype) for value in values)
    return found if isinstance(x, tuple) else found[0]


def cumsum(x: Any, axis: Any = 0, reverse: bool = False, **_: Any) -> Tile:
    x = tile(x)
    if x.known is None:
        return opaque("cumsum", [x], x.shape, x.dtype)
    numbers = data.array(x.known, x.shape, x.dtype.number)
    axis = operator.index(axis)
    total = np.flip(np.cumsum(np.flip(numbers, axis), axis), axis) if reverse else np.cumsum(numbers, axis)
    return data.merge_origin(Tile(x.shape, x.dtype, total.astype(x.dtype.number)), x)


def cumprod(x: Any, axis: Any = 0, reverse: bool = False, **_: Any) -> Tile:
    del axis, reverse
    return opaque("cumprod", [tile(x)], tile(x).shape, tile(x).dtype)


def sort(x: Any, *_: Any, **__: Any) -> Tile:
    return opaque("sort", [tile(x)], tile(x).shape, tile(x).dtype)


def histogram(x: Any, num_bins: Any, **_: Any) -> Tile:
    return opaque("histogram", [tile(x)], (operator.index(num_bins),), data.INT32)


def gather(x: Any, index: Any, axis: Any, **_: Any) -> Tile:
    del axis
    return opaque("gather", [tile(x), tile(index)], tile(index).shape, tile(x).dtype)


def dot(a: Any, b: Any, acc: Any = None, *_: Any, out_dtype: Any = None, **__: Any) -> Tile:
    return data.dot(a, b, acc, out_dtype)


def dot_scaled(lhs: Any, lhs_scale: Any, lhs_format: Any, rhs: Any, rhs_scale: Any, rhs_format: Any, acc: Any = None, *_: Any,
               out_dtype: Any = None, **__: Any) -> Tile:
    del lhs_format, rhs_format
    left, right = tile(lhs), tile(rhs)
    shape = (*left.shape[:-1], right.shape[-1])
    inputs = [left, right, *(one for one in (lhs_scale, rhs_scale, acc) if one is not None)]
    return opaque("dot", inputs, shape, out_dtype or data.FP32)


def rand(seed: Any, offset: Any, *_: Any, **__: Any) -> Tile:
    del seed
    return opaque("random", [tile(offset)], tile(offset).shape, data.FP32)


# ---- the language: memory ----

_VOLATILE = (".cv",)


def load(pointer: Any, mask: Any = None, other: Any = None, boundary_check: Any = (), padding_option: Any = "", cache_modifier: Any = "",
         eviction_policy: Any = "", volatile: Any = False) -> Tile:
    """A load of a tile; of one volatile number, a look at a signal."""
    del eviction_policy
    if isinstance(pointer, BlockPointer):
        return pointer.load(boundary_check, padding_option)
    where = tile(pointer)
    looks = bool(_plain(volatile)) or cache_modifier in _VOLATILE
    element = where.dtype.element_ty
    if element is None:
        raise refuse(f"a {where.dtype} is used as an address")
    if looks and element.kind in "iu" and where.numel <= 1024:
        return spins.load_flag(where, mask=mask)
    out = data.load(where, mask, other)
    if not where.shape and element.kind in "iu" and out.known is None:
        spins.may_wait(out, where)
    return out


def store(pointer: Any, value: Any, mask: Any = None, boundary_check: Any = (), cache_modifier: Any = "", eviction_policy: Any = "") -> None:
    del eviction_policy, cache_modifier
    if isinstance(pointer, BlockPointer):
        pointer.store(value, boundary_check)
        return
    data.store(pointer, value, mask)


class BlockPointer:
    """A block of a tensor, as make_block_ptr describes it."""

    def __init__(self, base: Tile, shape: List[Any], strides: List[Any], offsets: List[Any], block: List[int], order: Any) -> None:
        self.base, self.shape, self.strides, self.offsets, self.block, self.order = base, shape, strides, offsets, block, order
        assert base.dtype.element_ty is not None
        self.dtype = base.dtype.element_ty
        self.type = types.SimpleNamespace(element_ty=types.SimpleNamespace(element_ty=self.dtype, is_ptr=lambda: False))

    def advance(self, offsets: Sequence[Any]) -> BlockPointer:
        moved = [binary("add", old, new) for old, new in zip(self.offsets, offsets)]
        return BlockPointer(self.base, self.shape, self.strides, moved, self.block, self.order)

    def pointers(self) -> Tile:
        out = self.base
        for axis, size in enumerate(self.block):
            out = out + self._index(axis, size) * cast(self.strides[axis], data.INT64)
        return out

    def _index(self, axis: int, size: int) -> Tile:
        index = cast(self.offsets[axis], data.INT64) + data.arange(0, size)
        return data.reshape(index, tuple(size if at == axis else 1 for at in range(len(self.block))))

    def mask(self, boundary_check: Any) -> Any:
        out: Any = None
        for axis in boundary_check or ():
            axis = operator.index(axis)
            index = self._index(axis, self.block[axis])
            inside = (index < cast(self.shape[axis], data.INT64)) & (index >= 0)
            out = inside if out is None else out & inside
        return None if out is None else data.broadcast_to(out, tuple(self.block))

    def load(self, boundary_check: Any, padding_option: Any) -> Tile:
        other = {"zero": 0.0, "nan": float("nan")}.get(padding_option)
        return data.load(self.pointers(), self.mask(boundary_check), other)

    def store(self, value: Any, boundary_check: Any) -> None:
        data.store(self.pointers(), value, self.mask(boundary_check))


def make_block_ptr(base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any = None) -> BlockPointer:
    base = tile(base)
    if not base.dtype.is_ptr() or base.shape:
        raise refuse("the base of a block is an address")
    return BlockPointer(base, [tile(size) for size in shape], [tile(stride) for stride in strides], [tile(offset) for offset in offsets],
                        [operator.index(size) for size in block_shape], order)


class TensorDescriptor:
    """A block of a tensor at offsets that the kernel gives: loads outside are zero, stores outside are left out."""

    def __init__(self, base: Any, shape: Sequence[Any], strides: Sequence[Any], block_shape: Sequence[int], *_: Any, **__: Any) -> None:
        self.base, self.shape, self.strides, self.block_shape = base, list(shape), list(strides), [operator.index(one) for one in block_shape]

    @staticmethod
    def from_tensor(tensor: Any, block_shape: Sequence[int], *_: Any) -> TensorDescriptor:
        return TensorDescriptor(tensor, tensor.shape, tensor.stride(), block_shape)

    @property
    def block_type(self) -> data.BlockType:
        return data.BlockType(self.dtype, tuple(self.block_shape))

    @property
    def dtype(self) -> DType:
        return tile(self.base).dtype.element_ty  # type: ignore[return-value]

    def _block(self, offsets: Sequence[Any]) -> BlockPointer:
        return make_block_ptr(self.base, self.shape, self.strides, offsets, self.block_shape)

    def load(self, offsets: Sequence[Any]) -> Tile:
        return self._block(offsets).load(range(len(self.block_shape)), "zero")

    def store(self, offsets: Sequence[Any], value: Any) -> None:
        self._block(offsets).store(value, range(len(self.block_shape)))


def advance(base: BlockPointer, offsets: Any) -> BlockPointer:
    return base.advance(offsets)


def _atomic(kind: str) -> Callable[..., Tile]:
    def function(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None, **_: Any) -> Tile:
        return spins.atomic(kind, pointer, val, mask=mask, sem=sem, scope=scope)
    return function


def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None, **_: Any) -> Tile:
    return spins.atomic("cas", pointer, val, compare=cmp, sem=sem, scope=scope)


def debug_barrier() -> None:
    core.program().barrier()


# ---- the language: what only the compiler sees ----

def _same(x: Any, *_: Any, **__: Any) -> Any:
    return x


def _nothing(*_: Any, **__: Any) -> None:
    """Said to the compiler, or printed: nothing happens to memory."""


def static_assert(condition: Any, message: Any = "", *_: Any) -> None:
    if not condition:
        raise refuse(f"the kernel's static_assert fails{': ' + str(message) if message else ''}")


def device_assert(condition: Any, message: Any = "", *_: Any, **__: Any) -> None:
    condition = tile(condition)
    if condition.known is None:
        return
    low, _ = data.bounds(condition.known, condition.shape)
    if not low:
        raise refuse(f"the kernel's device_assert fails{': ' + str(message) if message else ''}")


class StaticRange:
    def __init__(self, *bounds: Any) -> None:
        self.numbers = builtins.range(*(operator.index(bound) for bound in bounds))

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers)


def language() -> Dict[str, Any]:
    """The names of triton.language."""
    names: Dict[str, Any] = {
        **{{"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "fp8e4nv": "float8e4nv",
            "fp8e5": "float8e5"}.get(name, name): dtype for name, dtype in TYPES.items()},
        "dtype": DType, "pointer_type": data.pointer_type, "constexpr": constexpr, "tensor": Tile, "block_type": data.BlockType,
        "program_id": program_id, "num_programs": num_programs, "arange": data.arange, "zeros": zeros, "zeros_like": zeros_like,
        "full": data.full, "cat": cat, "join": join, "split": split, "interleave": interleave, "cdiv": cdiv, "ravel": ravel, "flip": flip,
        "swizzle2d": swizzle2d, "where": data.where, "cast": lambda x, dtype, *_, bitcast=False, **__: cast(x, dtype, bool(bitcast)),
        "broadcast_to": lambda x, *shape: data.broadcast_to(x, data.shape_of(shape)), "broadcast": _broadcast,
        "reshape": lambda x, *shape, **_: data.reshape(x, data.shape_of(shape)), "view": lambda x, *shape: data.reshape(x, data.shape_of(shape)),
        "expand_dims": data.expand_dims, "trans": lambda x, *dims: data.trans(x, *dims), "permute": lambda x, *dims: data.trans(x, *dims),
        "maximum": maximum, "minimum": minimum, "fma": fma, "clamp": clamp, "softmax": softmax, "dot": dot, "dot_scaled": dot_scaled,
        "add": _two("add"), "sub": _two("sub"), "mul": _two("mul"), "fdiv": _two("div"), "div_rn": _two("div"),
        "sum": _reduction("sum"), "max": _reduction("max"), "min": _reduction("min"), "argmax": _reduction("argmax"),
        "argmin": _reduction("argmin"), "xor_sum": _reduction("xor_sum"), "reduce_or": _reduction("reduce_or"), "reduce": reduce,
        "associative_scan": associative_scan, "cumsum": cumsum, "cumprod": cumprod, "sort": sort, "histogram": histogram, "gather": gather,
        "rand": rand, "randn": rand, "load": load, "store": store, "make_block_ptr": make_block_ptr, "make_tensor_descriptor": TensorDescriptor, "advance": advance,
        "atomic_add": _atomic("add"), "atomic_xchg": _atomic("set"), "atomic_cas": atomic_cas, "atomic_max": _atomic("max"),
        "atomic_min": _atomic("min"), "atomic_and": _atomic("and"), "atomic_or": _atomic("or"), "atomic_xor": _atomic("xor"),
        "debug_barrier": debug_barrier, "inline_asm_elementwise": asm.inline, "multiple_of": _same, "max_contiguous": _same,
        "max_constancy": _same, "assume": _nothing, "static_assert": static_assert, "static_print": _nothing, "device_print": _nothing,
        "device_assert": device_assert, "constexpr_function": _same, "builtin": _same, "extern": _same, "must_use_result": _same, "range": Range, "static_range": StaticRange, "tuple": tuple, "PropagateNan": types.SimpleNamespace(NONE=0, ALL=1)}
    for name in ("exp", "log", "sqrt", "abs", "exp2", "log2", "sin", "cos", "rsqrt", "erf", "floor", "ceil", "sigmoid"):
        names[name] = _one(name)
    names["sqrt_rn"] = names["sqrt"]
    return names


def _broadcast(a: Any, b: Any) -> Tuple[Tile, Tile]:
    shape = data.broadcast_shape(tile(a).shape, tile(b).shape)
    return data.broadcast_to(a, shape), data.broadcast_to(b, shape)


def _first_bit(x: Any) -> Tile:
    """The place of the lowest bit that is set, from 1 on; 0: there is none."""
    x = tile(x)
    if x.known is None:
        return opaque("ffs", [x], x.shape, data.INT32)
    number = int(x)
    return tile((number & -number).bit_length())


def next_power_of_2(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


def modules() -> Dict[str, types.ModuleType]:
    names = language()
    math_names = {name: names[name] for name in ("exp", "log", "sqrt", "abs", "exp2", "log2", "sin", "cos", "rsqrt", "erf", "floor", "ceil",
                                                 "fma", "cdiv", "max", "min")}
    math_names.update(tanh=_one("tanh"), max=maximum, min=minimum, div_rn=names["div_rn"], sqrt_rn=names["sqrt"])
    out: Dict[str, types.ModuleType] = {}
    out["triton.language.math"] = standin("triton.language.math", **math_names)
    names["math"] = out["triton.language.math"]
    libdevice = standin("triton.language.extra.libdevice", **math_names, ffs=_first_bit)
    out["triton.language.extra.libdevice"] = libdevice
    for vendor in ("cuda", "hip"):
        out[f"triton.language.extra.{vendor}.libdevice"] = libdevice
        out[f"triton.language.extra.{vendor}"] = standin(
            f"triton.language.extra.{vendor}", libdevice=libdevice, globaltimer=lambda: opaque("clock", [], (), data.INT64),
            smid=lambda: opaque("place", [], (), data.INT32), num_warps=lambda: tile(core.program().threads // model()["threads"]),
            num_threads=lambda: tile(core.program().threads))
    out["triton.language.extra.cuda.utils"] = out["triton.language.extra.cuda"]
    names["extra"] = out["triton.language.extra"] = standin(
        "triton.language.extra", libdevice=libdevice, cuda=out["triton.language.extra.cuda"], hip=out["triton.language.extra.hip"])
    names["core"] = out["triton.language.core"] = standin("triton.language.core", **names)
    names["standard"] = out["triton.language.standard"] = standin("triton.language.standard", **names)
    tl = out["triton.language"] = standin("triton.language", **names)
    driver = types.SimpleNamespace(active=types.SimpleNamespace(
        get_current_device=lambda: core.rank().index, get_current_stream=lambda device=None: 0, get_device_properties=lambda device=None: {},
        utils=types.SimpleNamespace(get_device_properties=lambda device=None: {"multiprocessor_count": 132, "max_shared_mem": 232448,
                                                                               "max_num_regs": 65536, "warpSize": 32}),
        get_current_target=lambda: types.SimpleNamespace(backend="cuda", arch=90, warp_size=32)))
    out["triton.runtime.jit"] = standin("triton.runtime.jit", JITFunction=JITFunction)
    out["triton.runtime.driver"] = standin("triton.runtime.driver", driver=driver, active=driver.active)
    out["triton.runtime"] = standin("triton.runtime", JITFunction=JITFunction, driver=driver, jit=out["triton.runtime.jit"], Autotuner=Autotuner)
    out["triton.tools.tensor_descriptor"] = standin("triton.tools.tensor_descriptor", TensorDescriptor=TensorDescriptor)
    out["triton.tools"] = standin("triton.tools", tensor_descriptor=out["triton.tools.tensor_descriptor"])
    out["triton.compiler.compiler"] = standin("triton.compiler.compiler", triton_key=lambda: "")
    out["triton.compiler"] = standin("triton.compiler", compiler=out["triton.compiler.compiler"])
    out["triton.testing"] = standin("triton.testing", get_max_simd_tflops=lambda *_: 1.0, get_max_tensorcore_tflops=lambda *_: 1.0,
                                     get_dram_gbps=lambda *_: 1.0, do_bench=lambda fn, *_, **__: fn() and 0.0 or 0.0)
    out["triton"] = standin("triton", set_allocator=_nothing, jit=jit, autotune=autotune, heuristics=heuristics, Config=Config, cdiv=lambda a, b: -(-a // b),
                            next_power_of_2=next_power_of_2, language=tl, runtime=out["triton.runtime"], compiler=out["triton.compiler"], testing=out["triton.testing"],
                            JITFunction=JITFunction, __version__="3.4.0")
    return out
