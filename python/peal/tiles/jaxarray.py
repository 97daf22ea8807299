# SPDX-License-Identifier: Apache-2.0
"""Arrays of the jax stand-in: what is known is a numpy array, everything else is an Array, whose elements only the plan has.

An Array is a view of memory of its rank: an address, a shape and strides in bytes. What is done to it is an op of the lane in
progress, or of the device's lane where no kernel runs: elementwise functions that Peal can compute by their names, everything else as
an opaque op. Numbers that the program knows (ranks, sizes, constants) stay with numpy.
"""
from __future__ import annotations

import itertools
import math
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy

from . import core

MAX_PIECES = 1 << 16    # ops of one operation
MAX_UNROLLED = 64       # parts of a reduction, and rows that are repeated, that are ops of their own
Shape = Tuple[int, ...]


# ---- types ----

class Extended:
    """A type that numpy does not have. Known elements are kept as float32 or int32."""

    def __init__(self, name: str, peal: str, itemsize: int, kept: Any) -> None:
        self.name, self.peal, self.itemsize, self.kept = name, peal, itemsize, numpy.dtype(kept)
        self.kind = self.kept.kind

    def __call__(self, value: Any = 0) -> Any:
        return value.astype(self) if isinstance(value, Array) else self.kept.type(value)

    def __eq__(self, other: Any) -> bool:
        return self is other or other == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def type(self) -> Extended:
        return self

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


EXTENDED = {name: Extended(name, peal, 1 if peal[:2] in ("f8", "i8", "u8") else 2, "float32" if peal[0] in "fb" else "int32") for name,
            peal in (
    ("bfloat16", "bf16"), ("float8_e4m3fn", "f8e4m3"), ("float8_e4m3b11fnuz", "f8e4m3"), ("float8_e5m2", "f8e5m2"), ("int4", "i8"),
    ("uint4", "u8"))}
NAMES = {"float16": "f16", "float32": "f32", "float64": "f64", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32",
         "uint32": "u32", "int64": "i64", "uint64": "u64", "bool": "u8"}
NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}  # jax's types by default


def dtype_of(given: Any) -> Any:
    """numpy's type, or one of EXTENDED, for whatever names a type."""
    if isinstance(given, Extended):
        return given
    if isinstance(given, str) and given in EXTENDED:
        return EXTENDED[given]
    found = given if isinstance(given, type) else getattr(given, "dtype", given)
    if isinstance(found, Extended):
        return found
    if found is None:
        return numpy.dtype("float32")
    found = numpy.dtype(found)
    return numpy.dtype(NARROW.get(found.name, found.name))


def peal_name(dtype: Any) -> str:
    found = dtype.peal if isinstance(dtype, Extended) else NAMES.get(dtype.name)
    if found is None:
        raise core.refuse(f"'{dtype}' is not a type that Peal has")
    return found


def kept(dtype: Any) -> Any:
    """The numpy type in which known elements are kept."""
    return dtype.kept if isinstance(dtype, Extended) else dtype


def promote(operands: Iterable[Any]) -> Any:
    """The type of what is computed of these: Python's numbers follow the arrays."""
    strong, weak = [], []
    for one in operands:
        if isinstance(one, (bool, int, float)) and not isinstance(one, numpy.generic):
            weak.append(one)
        else:
            strong.append(dtype_of(one))
    extended = [one for one in strong if isinstance(one, Extended)]
    if extended:
        wider = [one for one in strong if not isinstance(one, Extended) and one.kind == "f" and one.itemsize >= 2]
        if wider or len(set(extended)) > 1:
            return numpy.dtype("float32")
        return extended[0]
    if not strong:
        return dtype_of(numpy.result_type(*weak))
    best = numpy.dtype(numpy.result_type(*strong))
    if any(one.kind == "f" for one in strong) and any(one.kind in "iu" for one in strong):
        best = max((one for one in strong if one.kind == "f"), key=lambda one: one.itemsize)
    if best.kind in "iub" and any(isinstance(one, float) for one in weak):
        best = numpy.dtype("float32")
    if best.kind == "b" and any(type(one) is int for one in weak):
        best = numpy.dtype("int32")
    return numpy.dtype(NARROW.get(best.name, best.name))


def known(value: Any, dtype: Any = None) -> Any:
    """A numpy result as jax has it: narrow types, and arrays with `.at`. dtype: the type that it should have."""
    if isinstance(value, (list, tuple)):
        return type(value)(known(one, dtype) for one in value)
    if not isinstance(value, (numpy.ndarray, numpy.generic)):
        return value
    if dtype is not None:
        value = value.astype(kept(dtype))
    if value.dtype.name in NARROW:
        value = value.astype(NARROW[value.dtype.name])
    if isinstance(dtype, Extended):
        found = numpy.asarray(value).view(Known)
        found.extended = dtype
        return found
    return value.view(Known) if isinstance(value, numpy.ndarray) and value.ndim else value[()]


# ---- pieces of memory ----

def dense(shape: Sequence[int], itemsize: int) -> Shape:
    """Strides in bytes."""
    found, stride = [], itemsize
    for size in reversed(shape):
        found.append(stride)
        stride *= max(size, 1)
    return tuple(reversed(found))


def pieces(shape: Sequence[int], views: Sequence[Tuple[Sequence[int], int]]) -> Iterator[Tuple[Sequence[int], int, int, Sequence[int]]]:
    """Cuts elements of several views of one shape into the fewest (offsets, count, rows, strides) that ops can name.
    views: strides and size of an element, in bytes, of each."""
    dims: List[Tuple[int, List[int]]] = []
    for axis, size in enumerate(shape):
        if size == 0:
            return
        steps = [strides[axis] for strides, _ in views]
        if size == 1:
            continue
        if dims and all(outer == size * inner for outer, inner in zip(dims[-1][1], steps)):
            dims[-1] = (dims[-1][0] * size, steps)
        else:
            dims.append((size, steps))
    count, rows, row_strides = 1, 1, [0] * len(views)
    if dims and all(step == itemsize for step, (_, itemsize) in zip(dims[-1][1], views)):
        count = dims.pop()[0]
    if dims and all(step >= count * itemsize for step, (_, itemsize) in zip(dims[-1][1], views)):
        rows, row_strides = dims.pop()
    if math.prod(size for size, _ in dims) > MAX_PIECES:
        raise core.refuse(f"an access of shape {tuple(shape)} is in more than {MAX_PIECES} pieces")
    for at in itertools.product(*(range(size) for size, _ in dims)):
        yield [sum(i * steps[k] for i, (_, steps) in zip(at, dims)) for k in range(len(views))], count, rows, row_strides


def span(view: Any, offset: int, count: int, rows: int, stride: int) -> core.Span:
    pending = getattr(view.memory, "pending", None)
    if pending is not None:
        pending()
    return core.Span(peal_name(view.dtype), view.address + offset, count, rows, stride if rows > 1 else 0)


def copy_view(lane: core.Lane, dst: Any, src: Any) -> None:
    """dst and src have an address, a type, a shape and strides; the shapes are the same."""
    for offsets, count, rows, strides in pieces(dst.shape, [(dst.strides, dst.dtype.itemsize), (src.strides, src.dtype.itemsize)]):
        lane.copy(span(dst, offsets[0], count, rows, strides[0]), span(src, offsets[1], count, rows, strides[1]))


def when_used(lane: core.Lane, out: Array, say: Callable[[], List[str]]) -> Array:
    """A compiler leaves out what is not used, and so is this until somebody uses it: then its lines stand here."""
    written, at = lane.rank.writer.lines, lane.say("# a value that is not used")

    def use() -> None:
        out.memory.pending = None
        written[at] = "\n".join(say()) or "# nothing"
    out.memory.pending = use
    return out


def load_view(lane: core.Lane, src: Any) -> Array:
    """What is in memory now."""
    out = empty(src.shape, src.dtype)
    span(src, 0, 1, 1, 0)  # what is nowhere is refused here, used or not
    return when_used(lane, out, lambda: [
        f"copy {span(out, a, count, rows, to).text()} {span(src, b, count, rows, step).text()}"
        for (a, b), count, rows, (to, step) in pieces(src.shape, [(out.strides, out.dtype.itemsize), (src.strides, src.dtype.itemsize)])])


def spans(view: Any) -> List[core.Span]:
    """What an opaque op reads or writes; dimensions that only repeat elements are there once."""
    shape = [size for size, stride in zip(view.shape, view.strides) if stride or size == 0]
    strides = [stride for size, stride in zip(view.shape, view.strides) if stride or size == 0]
    return [span(view, offsets[0], count, rows, step[0])
            for offsets, count, rows, step in pieces(shape, [(strides, view.dtype.itemsize)])]


def device_lane() -> core.Lane:
    """Where ops go: the kernel in progress, or what XLA does on the device between kernels."""
    rank = core.rank()
    return rank.lane if rank.lane is not None else rank.host()


# ---- arrays ----

class Values:
    """Memory for the elements of an array, freed with its last view. What is to be said when it is first used: `pending`."""

    def __init__(self, count: int, dtype: Any) -> None:
        self.pending: Optional[Callable[[], None]] = None
        self.lane = core.rank().host()
        self.count, self.peal = max(count, 1), peal_name(dtype)
        self.address = self.lane.scratch(self.count, self.peal)

    def __del__(self) -> None:
        if hasattr(self, "address"):
            self.lane.release(self.address, self.count, self.peal)


class ArrayType(type):
    def __instancecheck__(cls, one: Any) -> bool:
        return type.__instancecheck__(cls, one) or (cls is AnyArray and isinstance(one, (numpy.ndarray, numpy.generic, Array)))


class AnyArray(metaclass=ArrayType):
    """jax.Array: known or not."""


class Array:
    """Elements that are not known. `memory` keeps the memory; the address is that of the first element."""

    __slots__ = ("memory", "address", "shape", "strides", "dtype", "buffer", "formula", "__weakref__")
    is_global = False  # of all devices: what is done to it on the host is not recorded op by op
    __array_priority__ = 1000

    def __init__(self, memory: Any, address: int, shape: Sequence[int], dtype: Any, strides: Optional[Sequence[int]] = None) -> None:
        self.memory, self.address, self.shape, self.dtype = memory, address, tuple(shape), dtype
        self.strides = dense(self.shape, dtype.itemsize) if strides is None else tuple(strides)
        self.formula: Any = None  # the collective of XLA of which it is the result
        self.buffer: Any = None  # memory of the device that holds it as a whole: pallas.Storage

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    nbytes = property(lambda self: math.prod(self.shape) * self.dtype.itemsize)
    itemsize = property(lambda self: self.dtype.itemsize)
    T = property(lambda self: transpose(self))
    mT = property(lambda self: transpose(self, (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)))
    at = property(lambda self: Updates(self))
    sharding = property(lambda self: None)
    weak_type = False

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Array({list(self.shape)}, {self.dtype})"

    def __format__(self, spec: str) -> str:
        return "?" if not self.shape else repr(self)

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise core.refuse("data decides what happens next, and its value is not known in a recording")

    def __int__(self) -> int:
        raise core.refuse("a number is wanted where only data is: its value is not known in a recording")

    __index__ = __float__ = __complex__ = __int__  # type: ignore[assignment]

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise core.refuse("the values of an array that was computed on a device are not known in a recording")

    def __getitem__(self, key: Any) -> Array:
        found = index(self, key)
        return take(self, key) if found is None else found

    def view(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Array:
        found = Array(self.memory, self.address + offset, shape, self.dtype, strides)
        return found

    # -- methods of numpy and jax --

    def astype(self, dtype: Any, **_: Any) -> Array:
        dtype = dtype_of(dtype)
        return self if dtype == self.dtype else copied(self, dtype)

    def reshape(self, *shape: Any, **_: Any) -> Array:
        return reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Array:
        return transpose(self, (axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes) or None)

    def swapaxes(self, a: int, b: int) -> Array:
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        return transpose(self, order)

    def flatten(self, *_: Any) -> Array:
        return reshape(self, (-1,))

    ravel = flatten

    def squeeze(self, axis: Any = None) -> Array:
        axes = range(self.ndim) if axis is None else [a % self.ndim for a in ([axis] if isinstance(axis, int) else axis)]
        return self[tuple(0 if i in axes and size == 1 else slice(None) for i, size in enumerate(self.shape))]

    def copy(self) -> Array:
        return copied(self)

    def item(self, *_: Any) -> Any:
        return self.__int__()

    tolist = item

    def block_until_ready(self) -> Array:
        return self

    def is_deleted(self) -> bool:
        return False

    def delete(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in METHODS:
            return lambda *args, **named: call(name, self, *args, **named)
        raise AttributeError(f"an array of jax has no '{name}' that a recording knows")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        if method != "__call__" or named.get("out"):
            raise core.refuse(f"numpy.{ufunc.__name__}.{method} of an array whose values are not known in a recording")
        return call(ufunc.__name__, *inputs)

    def __array_function__(self, function: Any, _types: Any, args: Any, named: Any) -> Any:
        return call(function.__name__, *args, **named)


METHODS = ("sum", "max", "min", "mean", "prod", "any", "all", "argmax", "argmin", "std", "var", "cumsum", "dot", "clip", "round", "repeat",
           "take",
           "sort", "argsort", "conj", "real", "imag")


class Known(numpy.ndarray):
    """A numpy array with what jax adds. `extended`: the type that numpy does not have, of which these are the values."""

    extended: Any = None
    dtype = property(lambda self: self.extended or numpy.asarray(self).dtype)
    at = property(lambda self: Updates(self))
    sharding = property(lambda self: None)

    def block_until_ready(self) -> Known:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        if any(isinstance(one, Array) or hasattr(one, "load_all") for one in inputs):
            return call(ufunc.__name__, *inputs)
        plain = [one.view(numpy.ndarray) if isinstance(one, Known) else one for one in inputs]
        if "out" in named:
            named["out"] = tuple(one.view(numpy.ndarray) if isinstance(one, Known) else one for one in named["out"])
        found = getattr(ufunc, method)(*plain, **named)
        return typed(found, inputs) if method == "__call__" else found

    def __array_finalize__(self, source: Any) -> None:
        self.extended = getattr(source, "extended", None)

    def astype(self, dtype: Any, **_: Any) -> Any:  # type: ignore[override]
        return known(self.view(numpy.ndarray), dtype_of(dtype))


def typed(found: Any, operands: Sequence[Any]) -> Any:
    """What numpy computed of operands, some of which may be of a type that it does not have."""
    extended = promote([one for one in operands if isinstance(one, (numpy.ndarray, numpy.generic, int, float))])
    same = isinstance(extended, Extended) and numpy.asarray(found).dtype.kind == extended.kind
    return known(found, extended if same else None)


class Updates:
    """x.at[i].set(y) and the like: a changed copy."""

    def __init__(self, array: Any, key: Any = None) -> None:
        self.array, self.key = array, key

    def __getitem__(self, key: Any) -> Updates:
        return Updates(self.array, key)

    def _update(self, value: Any, function: Optional[str]) -> Any:
        if not isinstance(self.array, Array) and not isinstance(value, Array):
            found = numpy.array(self.array)
            {None: found.__setitem__, "add": numpy.ufunc.at.__get__(numpy.add)}[function](self.key, value)
            return known(found)
        out = copied(materialize(self.array))
        part = index(out, self.key)
        if part is None:
            return opaque("update", [out, value], out.shape, out.dtype)
        store(device_lane(), part, value if function is None else call(function, part, value))
        return out

    def set(self, value: Any, **_: Any) -> Any:
        return self._update(value, None)

    def add(self, value: Any, **_: Any) -> Any:
        return self._update(value, "add")

    def get(self, **_: Any) -> Any:
        return self.array[self.key]


def empty(shape: Sequence[int], dtype: Any) -> Array:
    memory = Values(math.prod(shape), dtype)
    return Array(memory, memory.address, shape, dtype)


def copied(array: Array, dtype: Any = None) -> Array:
    """A dense copy, converted if another type is wanted."""
    if array.is_global:
        return array.data_like(array.shape, dtype or array.dtype)
    out = empty(array.shape, dtype or array.dtype)
    if repeats_much(array):
        device_lane().compute("broadcast", spans(out), spans(array))
    else:
        copy_view(device_lane(), out, array)
    return out


def is_dense(array: Array) -> bool:
    wanted = dense(array.shape, array.dtype.itemsize)
    return all(size == 1 or a == b for size, a, b in zip(array.shape, array.strides, wanted))


def materialize(value: Any, dtype: Any = None) -> Array:
    """Known numbers in memory."""
    value = loaded(value)
    if isinstance(value, Array):
        return value if dtype is None or value.dtype == dtype else value.astype(dtype)
    numbers = numpy.asarray(value)
    out = empty(numbers.shape, dtype or dtype_of(numbers))
    store(device_lane(), out, numbers)
    return out


def store(lane: core.Lane, dst: Any, value: Any) -> None:
    """dst = value, broadcast and converted. dst is anything with an address, shape and strides."""
    value = loaded(value)
    if isinstance(value, Array):
        if value.shape != dst.shape:
            value = broadcast_to(value, dst.shape)
        if repeats_much(value):
            value = copied(value)
        copy_view(lane, dst, value)
        return
    numbers = numpy.broadcast_to(numpy.asarray(value), dst.shape)
    if not numbers.size:
        return
    first = numbers.flat[0]
    if (numbers == first).all():
        for offsets, count, rows, strides in pieces(dst.shape, [(dst.strides, dst.dtype.itemsize)]):
            lane.copy(span(dst, offsets[0], count, rows, strides[0]), core.constant(peal_name(dst.dtype), float(first)))
    elif numbers.size <= MAX_UNROLLED:
        for at in numpy.ndindex(*dst.shape):
            offset = sum(i * stride for i, stride in zip(at, dst.strides))
            lane.copy(span(dst, offset, 1, 1, 0), core.constant(peal_name(dst.dtype), float(numbers[at])))
    else:
        lane.compute("constants", spans(dst), [])


def loaded(value: Any) -> Any:
    """A reference that is used where an array is wanted is read."""
    return value.load_all() if hasattr(value, "load_all") else value


# ---- views ----

def as_int(value: Any) -> int:
    return value.__index__() if not isinstance(value, numpy.ndarray) else int(value)


def is_scalar_index(one: Any) -> bool:
    return isinstance(one, (int, numpy.integer)) or (isinstance(one, (numpy.ndarray, Array)) and one.shape == ())


def index(view: Any, key: Any) -> Any:
    """view[key] as a view, for integers, slices, `...` and None; None: it takes more. Made by view.view(shape, strides, offset)."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if not all(one is None or one is Ellipsis or isinstance(one, slice) or hasattr(one,
                                                                                   "peal_slice") or is_scalar_index(one) for one in keys):
        return None
    used = sum(one is not None and one is not Ellipsis for one in keys)
    if used > len(view.shape):
        raise core.refuse(f"{used} indices of {shown(view)}, which has {len(view.shape)} dimensions")
    if not any(one is Ellipsis for one in keys):
        keys.append(Ellipsis)
    at = next(i for i, one in enumerate(keys) if one is Ellipsis)
    keys[at:at + 1] = [slice(None)] * (len(view.shape) - used)
    shape: List[int] = []
    strides: List[int] = []
    offset, axis, outside = 0, 0, None
    for one in keys:
        if one is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = view.shape[axis], view.strides[axis]
        if isinstance(one, slice):
            parts = [None if part is None else as_int(part) for part in (one.start, one.stop, one.step)]
            start, stop, step = slice(*parts).indices(size)
            length = len(range(start, stop, step))
        elif hasattr(one, "peal_slice"):
            start, length, step = one.peal_slice()
            if start < 0 or length < 0 or length and start + (length - 1) * step >= size:
                outside = outside or f"elements {start} to {start + (length - 1) * step} of dimension {axis} of {shown(view)}"
        else:
            start, length, step = as_int(one), -1, 1
            if not -size <= start < size:
                outside = outside or f"index {start} of dimension {axis} of {shown(view)}"
            start += size if start < 0 else 0
        offset += start * stride if length else 0
        if length >= 0:
            shape.append(length)
            strides.append(stride * step)
        axis += 1
    if outside is None:
        return view.view(shape, strides, offset)
    if isinstance(view, Array):
        raise core.refuse(outside)
    return view.view(shape, strides, offset, outside)  # an error when its memory is used


def shown(view: Any) -> str:
    name = getattr(view, "name", "an array")
    return f"'{name}' of shape {list(view.shape)}" if name != "an array" else f"an array of shape {list(view.shape)}"


def reshape(array: Array, shape: Any) -> Array:
    wanted = [as_int(one) for one in (shape if isinstance(shape, (tuple, list)) else (shape,))]
    if -1 in wanted:
        wanted[wanted.index(-1)] = array.size // max(math.prod(one for one in wanted if one != -1), 1)
    if math.prod(wanted) != array.size:
        raise TypeError(f"cannot reshape array of shape {array.shape} into {tuple(wanted)}")
    source = array if is_dense(array) else copied(array)
    return same_memory(source, source.view(wanted, dense(wanted, source.dtype.itemsize)))


def same_memory(source: Array, view: Array) -> Array:
    """A view of all elements in order: it is in the same memory of the device."""
    view.buffer = source.buffer
    return view


def transpose(array: Any, axes: Any = None) -> Any:
    order = [axis % array.ndim for axis in axes] if axes is not None else list(reversed(range(array.ndim)))
    return array.view([array.shape[a] for a in order], [array.strides[a] for a in order])


def broadcast_to(array: Any, shape: Sequence[int]) -> Any:
    if not isinstance(array, Array):
        return known(numpy.broadcast_to(array, shape))
    if array.shape == tuple(shape):
        return array
    numpy.broadcast_to(numpy.empty((), "u1").reshape((1,) * array.ndim), shape)  # complains if there are too few dimensions
    lead = len(shape) - array.ndim
    if any(own not in (1, size) for own, size in zip(array.shape, shape[lead:])):
        raise ValueError(f"Incompatible shapes for broadcasting: {array.shape} and {tuple(shape)}")
    strides = [0] * lead + [0 if own == 1 and size != 1 else stride for own, size, stride in zip(array.shape, shape[lead:], array.strides)]
    return array.view(shape, strides)


def take(array: Array, key: Any) -> Array:
    """Indices that are arrays: what is read is known at most as a whole."""
    parts = key if isinstance(key, tuple) else (key,)
    places = [numpy.zeros(one.shape, int) if isinstance(one, Array) else
              numpy.arange(*one.as_range()) if hasattr(one, "as_range") else one for one in parts]
    shape = numpy.broadcast_to(numpy.zeros((), "u1"), array.shape)[tuple(places)].shape
    return opaque("gather", [array, *(one for one in parts if isinstance(one, Array))], shape, array.dtype)


# ---- functions ----

# numpy's name: Peal's. What is not here is opaque.
ELEMENTWISE = {"add": "add", "subtract": "sub", "multiply": "mul", "true_divide": "div", "divide": "div", "maximum": "maximum",
               "minimum": "minimum", "exp": "exp", "log": "log", "sqrt": "sqrt", "absolute": "abs", "abs": "abs", "negative": "neg",
               "reciprocal": "recip", "tanh": "tanh", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}
FLOAT_ONLY = {"true_divide", "divide", "exp", "log", "sqrt", "reciprocal", "tanh"}
TRUTHS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_not",
          "logical_xor", "isnan",
          "isinf", "isfinite", "any", "all", "isclose", "signbit"}
REDUCTIONS = {"sum": "add", "max": "maximum", "min": "minimum", "amax": "maximum", "amin": "minimum", "prod": "mul", "mean": None,
              "any": None,
              "all": None, "argmax": None, "argmin": None, "std": None, "var": None, "logsumexp": None}


def opaque(name: str, operands: Sequence[Any], shape: Sequence[int], dtype: Any) -> Array:
    """An op that reads the operands; of what it gives nothing is known but the shape."""
    out = empty(shape, dtype)
    arrays = [one for one in operands if isinstance(one, Array)]

    def say() -> List[str]:
        sources = [one.text() for array in arrays for one in spans(array)]
        return [f"compute {name} {' '.join([one.text() for one in spans(out)])} < {' '.join(sources)}"] if out.size else []
    return when_used(device_lane(), out, say)


def elementwise(name: str, operands: Sequence[Any], dtype: Any) -> Array:
    """A function that Peal has."""
    arrays = [one.astype(dtype) if isinstance(one, Array) else one for one in operands]
    shape = numpy.broadcast_shapes(*(numpy.shape(one) if not isinstance(one, Array) else one.shape for one in arrays))
    ready: List[Any] = []
    for one in arrays:
        if not isinstance(one, Array) and numpy.ndim(one) and numpy.size(one) != 1:
            one = materialize(one, dtype)
        if isinstance(one, Array):
            one = broadcast_to(one, shape)
            ready.append(copied(one) if repeats_much(one) else one)
        else:
            ready.append(float(numpy.asarray(one).reshape(())))
    out = empty(shape, dtype)
    views = [one for one in [out, *ready] if isinstance(one, Array)]
    lane = device_lane()
    for offsets, count, rows, strides in pieces(shape, [(one.strides, one.dtype.itemsize) for one in views]):
        made = [span(one, *part) for one, *part in zip(views, offsets, [count] * len(views), [rows] * len(views), strides)]
        sources, left = [], made[1:]
        for one in ready:
            sources.append(left.pop(0) if isinstance(one, Array) else core.constant(peal_name(dtype), one))
        lane.compute(name, made[:1], sources)
    return out


def repeats_much(array: Array) -> bool:
    """Is a repeated element, or row, better written out than recorded as one op per repetition?"""
    dims = [(size, stride) for size, stride in zip(array.shape, array.strides) if size > 1]
    if dims and not dims[-1][1]:
        return True
    return math.prod(size for size, stride in dims if not stride) > MAX_UNROLLED


def call(name: str, *operands: Any, **named: Any) -> Any:
    """A function of jax.numpy of which some operand is not known."""
    name = name.lstrip("_")
    if not name.endswith("_like"):
        operands = tuple(loaded(one) for one in operands)
    flat = [part for one in [*operands, *named.values()] for part in (one if isinstance(one, (list, tuple)) else [one])]
    of_all = [one for one in flat if isinstance(one, Array) and one.is_global]
    if of_all:
        return global_call(name, operands, named, flat, of_all)
    if name in SHAPES:
        return SHAPES[name](*operands, **named)
    if name in REDUCTIONS:
        return reduce(name, *operands, **named)
    if name == "where" or name == "select":
        return where(*operands)
    if name == "square":
        return call("multiply", operands[0], operands[0])
    arrays = [one for one in operands if isinstance(one, (Array, numpy.ndarray, numpy.generic, int, float))]
    dtype = promote(arrays)
    kind = kept(dtype).kind
    if name in ELEMENTWISE and not (kind == "b") and len(operands) <= 2 and not named:
        if name in FLOAT_ONLY and kind != "f":
            dtype = numpy.dtype("float32")
        return elementwise(ELEMENTWISE[name], operands, dtype)
    return guessed(name, operands, named, dtype)


MAX_TRIED = 1 << 22     # elements of what numpy is asked about


def matmul_shape(a: Shape, b: Shape) -> Shape:
    if not a or not b or a[-1] != b[-2 if len(b) > 1 else 0]:
        raise core.refuse(f"a product of matrices of shapes {list(a)} and {list(b)}")
    return (*numpy.broadcast_shapes(a[:-2], b[:-2]), *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


def dot_shape(a: Shape, b: Shape) -> Shape:
    if not a or not b:
        return a or b
    if a[-1] != b[-2 if len(b) > 1 else 0]:
        raise core.refuse(f"a product of arrays of shapes {list(a)} and {list(b)}")
    return (*a[:-1], *b[:-2], *(b[-1:] if len(b) > 1 else ()))


def einsum_shape(form: str, *shapes: Shape) -> Shape:
    left, arrow, right = form.replace(" ", "").partition("->")
    sizes: Dict[str, int] = {}
    for letters, shape in zip(left.split(","), shapes):
        if "." in letters or len(letters) != len(shape):
            raise core.refuse(f"einsum '{form}' of arrays of shapes {[list(one) for one in shapes]}")
        for letter, size in zip(letters, shape):
            if sizes.setdefault(letter, size) not in (size, 1):
                raise core.refuse(f"einsum '{form}' of arrays of shapes {[list(one) for one in shapes]}")
    if not arrow:
        right = "".join(sorted(letter for letter in sizes if left.count(letter) == 1))
    return tuple(sizes[letter] for letter in right)


def shape_of(one: Any) -> Shape:
    return one.shape if hasattr(one, "shape") else numpy.shape(one)


def shapes_of(name: str, operands: Sequence[Any], named: Dict[str, Any], dtype: Any) -> Any:
    """What a function of numpy gives, as arrays of that shape and type; or one of them."""
    function = getattr(numpy, name, None)
    if function is None:
        raise core.refuse(f"jax.numpy.{name} of data is not known")

    def stand_in(one: Any) -> Any:
        if isinstance(one, Array):
            return numpy.broadcast_to(numpy.zeros((), kept(one.dtype)), one.shape)
        return [stand_in(part) for part in one] if isinstance(one, (list, tuple)) else one
    if name in ("matmul", "dot", "einsum", "vdot", "inner"):
        arrays = [shape_of(one) if not isinstance(one, str) else one for one in operands]
        rule: Dict[str, Any] = {"matmul": matmul_shape, "dot": dot_shape, "einsum": einsum_shape, "inner": lambda a, b: (*a[:-1], *b[:-1]),
                                "vdot": lambda a, b: ()}
        return numpy.broadcast_to(numpy.zeros((), kept(dtype)), rule[name](*arrays))
    if isinstance(function, numpy.ufunc):
        value = function(*[numpy.zeros((), stand_in(one).dtype if isinstance(one,
                                                                             Array) else numpy.asarray(one).dtype) for one in operands])
        shape = numpy.broadcast_shapes(*(shape_of(one) for one in operands))
        return tuple(numpy.broadcast_to(one, shape) for one in value) if isinstance(value, tuple) else numpy.broadcast_to(value, shape)
    if sum(math.prod(shape_of(one)) for one in operands if isinstance(one, (Array, numpy.ndarray))) > MAX_TRIED:
        raise core.refuse(f"jax.numpy.{name} of data of this size: its shape is found by trying, for small data only")
    try:
        return function(*[stand_in(one) for one in operands], **{key: stand_in(one) for key, one in named.items()})
    except core.Refused:
        raise
    except Exception as error:  # pylint: disable=broad-except
        raise core.refuse(f"jax.numpy.{name}: {error}") from error


def global_call(name: str, operands: Sequence[Any], named: Dict[str, Any], flat: Sequence[Any], of_all: Sequence[Any]) -> Any:
    """A function of arrays of all devices: XLA reads them when the kernels before are done, and what it gives is data."""
    for one in of_all:
        one.look()
    if name in REDUCTIONS:
        array, = operands[:1]
        shape, dtype = reduced_shape(name, array, *operands[1:], **named)[:2]
        return of_all[0].data_like(shape, dtype)
    name = {"concat": "concatenate", "astype": "asarray", "select": "where"}.get(name, name)
    dtype = promote([one for one in flat if isinstance(one, (Array, numpy.ndarray, numpy.generic, int, float))])
    return guessed(name, operands, dict(named), dtype, of_all[0].data_like)


def guessed(name: str, operands: Sequence[Any], named: Dict[str, Any], dtype: Any, make: Any = None) -> Any:
    """Any other function that numpy has: its shape is numpy's."""
    wanted = named.pop("preferred_element_type", None) or named.pop("dtype", None)
    for ignored in ("precision", "out_sharding", "mode", "promote_integers"):
        named.pop(ignored, None)
    found = shapes_of(name, operands, named, dtype)
    sources = [one for operand in [*operands, *named.values()] for one in (operand if isinstance(operand, (list, tuple)) else [operand])]

    def result(one: Any) -> Any:
        own = numpy.asarray(one).dtype
        if wanted is not None:
            own = dtype_of(wanted)
        elif name in TRUTHS:
            own = numpy.dtype(bool)
        elif own.kind == kept(dtype).kind:
            own = dtype
        if make is not None:
            return make(numpy.shape(one), dtype_of(own))
        return opaque(name, sources, numpy.shape(one), dtype_of(own))
    return type(found)(result(one) for one in found) if isinstance(found, (list, tuple)) else result(found)


def where(condition: Any, a: Any = None, b: Any = None) -> Any:
    dtype = promote([one for one in (a, b) if one is not None])
    shape = numpy.broadcast_shapes(*(one.shape if isinstance(one, Array) else numpy.shape(one) for one in (condition, a, b)))
    if not isinstance(condition, Array):
        flags = numpy.asarray(condition)
        if flags.all() or not flags.any():
            chosen = a if flags.all() else b
            if isinstance(chosen, Array):
                return broadcast_to(chosen, shape).astype(dtype)
            return known(numpy.broadcast_to(numpy.asarray(chosen, kept(dtype)), shape))
    return opaque("where", [condition, a, b], shape, dtype)


def reduced_shape(name: str, array: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None, **_: Any) -> Tuple[List[int], Any,
                                                                                                                         List[int]]:
    axes = sorted({a % array.ndim for a in (range(array.ndim) if axis is None else [axis] if isinstance(axis,
                                                                                                        (int, numpy.integer)) else axis)})
    shape = [1 if i in axes else size for i, size in enumerate(array.shape) if keepdims or i not in axes]
    wanted = dtype_of(dtype) if dtype is not None else array.dtype
    if name.startswith("arg"):
        wanted = numpy.dtype("int32")
    elif name in TRUTHS:
        wanted = numpy.dtype(bool)
    elif wanted.kind == "b":
        wanted = numpy.dtype("int32")
    return shape, wanted, axes


def reduce(name: str, array: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None, **_: Any) -> Any:
    """Along leading axes that are short the parts are combined one by one, so that the result is known; otherwise it is opaque."""
    shape, wanted, axes = reduced_shape(name, array, axis, keepdims, dtype)
    function = REDUCTIONS[name]
    lengths = [array.shape[a] for a in axes]
    few = 0 < math.prod(lengths) <= MAX_UNROLLED and (array.ndim - 1 not in axes or array.size <= MAX_UNROLLED)
    if function and wanted.kind != "b" and few:
        total = None
        for at in itertools.product(*(range(n) for n in lengths)):
            part = array[tuple(at[axes.index(i)] if i in axes else slice(None) for i in range(array.ndim))]
            total = part.astype(wanted) if total is None else elementwise(function, [total, part], wanted)
        return reshape(total, shape)
    return opaque(name, [array], shape, wanted)


def concatenate(arrays: Sequence[Any], axis: int = 0, **_: Any) -> Any:
    arrays = [loaded(one) for one in arrays]
    dtype = promote(arrays)
    parts = [one if isinstance(one, Array) else numpy.asarray(one) for one in arrays]
    axis %= parts[0].ndim
    shape = list(parts[0].shape)
    shape[axis] = sum(one.shape[axis] for one in parts)
    out, at = empty(shape, dtype), 0
    for one in parts:
        where_ = tuple(slice(at, at + one.shape[axis]) if i == axis else slice(None) for i in range(len(shape)))
        store(device_lane(), index(out, where_), one)
        at += one.shape[axis]
    return out


def stack(arrays: Sequence[Any], axis: int = 0, **_: Any) -> Any:
    return concatenate([call("expand_dims", loaded(one), axis) if isinstance(loaded(one), Array) else numpy.expand_dims(one, axis)
                        for one in arrays], axis)


def expand_dims(array: Array, axis: Any) -> Array:
    axes = [axis] if isinstance(axis, int) else list(axis)
    total = array.ndim + len(axes)
    axes = [a % total for a in axes]
    left = iter(range(array.ndim))
    return array[tuple(None if i in axes else [slice(None), next(left)][0] for i in range(total))]


def split(array: Array, parts: Any, axis: int = 0) -> List[Array]:
    size = array.shape[axis]
    if isinstance(parts, (int, numpy.integer)):
        if size % parts:
            raise ValueError(f"array split does not result in an equal division: {size} into {parts}")
        ends = [size // parts * (i + 1) for i in range(parts)]
    else:
        ends = [*(as_int(one) for one in parts), size]
    starts = [0, *ends[:-1]]
    axis %= array.ndim
    return [index(array, tuple(slice(a, b) if i == axis else slice(None) for i in range(array.ndim))) for a, b in zip(starts, ends)]


def pad(array: Array, widths: Any, mode: str = "constant", constant_values: Any = 0, **_: Any) -> Array:
    widths = numpy.broadcast_to(numpy.asarray(widths), (array.ndim, 2))
    if mode != "constant" or (widths < 0).any():
        raise core.refuse(f"jax.numpy.pad with mode '{mode}' of data")
    shape = [size + int(a) + int(b) for size, (a, b) in zip(array.shape, widths)]
    out = empty(shape, array.dtype)
    store(device_lane(), out, numpy.asarray(constant_values))
    store(device_lane(), index(out, tuple(slice(int(a), int(a) + size) for size, (a, _) in zip(array.shape, widths))), array)
    return out


def _moved(ndim: int, source: Any, target: Any) -> List[int]:
    sources = [s % ndim for s in ([source] if isinstance(source, int) else source)]
    targets = [t % ndim for t in ([target] if isinstance(target, int) else target)]
    order = [i for i in range(ndim) if i not in sources]
    for to, what in sorted(zip(targets, sources)):
        order.insert(to, what)
    return order


def zeros_like(array: Any, dtype: Any = None, **_: Any) -> Any:
    wanted = dtype_of(dtype) if dtype is not None else array.dtype
    return known(numpy.zeros(array.shape, kept(wanted)), wanted)


def full_like(array: Any, value: Any, dtype: Any = None, **_: Any) -> Any:
    dtype = dtype_of(dtype) if dtype is not None else array.dtype
    if isinstance(value, Array):
        return broadcast_to(value, array.shape).astype(dtype)
    return known(numpy.full(array.shape, value, kept(dtype)), dtype)


def asarray(array: Any, dtype: Any = None, **_: Any) -> Any:
    return array if dtype is None else array.astype(dtype)


def matmul(a: Any, b: Any, **named: Any) -> Any:
    return guessed("matmul", [a, b], named, promote([a, b]))


SHAPES: Dict[str, Callable[..., Any]] = {
    "reshape": lambda a, *shape, **named: reshape(a, named.get("shape", shape[0] if shape and not isinstance(shape[0], int) else shape)),
    "transpose": transpose, "broadcast_to": broadcast_to, "expand_dims": expand_dims, "concatenate": concatenate, "concat": concatenate,
    "stack": stack, "split": split, "pad": pad, "squeeze": lambda a, axis=None: a.squeeze(axis), "ravel": lambda a, **_: a.flatten(),
    "swapaxes": lambda a, i, j: a.swapaxes(i, j), "moveaxis": lambda a, s, t: transpose(a, _moved(a.ndim, s, t)), "zeros_like": zeros_like,
    "empty_like": zeros_like, "ones_like": lambda a, dtype=None, **_: full_like(a, 1, dtype), "full_like": full_like, "asarray": asarray,
    "array": asarray,
    "astype": lambda a, dtype, **_: a.astype(dtype), "copy": lambda a, **_: copied(a), "matmul": matmul,
    "dot": lambda a, b, **k: guessed("dot", [a, b], k, promote([a, b])),
    "einsum": lambda form, *arrays, **named: guessed("einsum", [form, *arrays], named, promote(arrays)),
    "shape": lambda a: a.shape, "ndim": lambda a: a.ndim, "size": lambda a: a.size,
    "float_power": lambda a, b: guessed("power", [a, b], {}, promote([a, b])),
}


def _operators() -> None:
    def binary(name: str, swapped: bool) -> Callable[[Any, Any], Any]:
        return (lambda self, other: call(name, other, self)) if swapped else (lambda self, other: call(name, self, other))
    for symbol, name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
                         "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
                         "lshift": "left_shift", "rshift": "right_shift", "matmul": "matmul"}.items():
        setattr(Array, f"__{symbol}__", binary(name, False))
        setattr(Array, f"__r{symbol}__", binary(name, True))
    for symbol, name in {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
                         "ne": "not_equal"}.items():
        setattr(Array, f"__{symbol}__", binary(name, False))
    for symbol, name in {"neg": "negative", "abs": "absolute", "invert": "invert", "pos": "positive"}.items():
        setattr(Array, f"__{symbol}__", lambda self, name=name: call(name, self))


_operators()
