# SPDX-License-Identifier: Apache-2.0
"""Values of tile kernels: what is known from ranks and sizes, and what is only in memory.

A Tile is *known* (a number for all elements, an Affine, or an array) or *data*: elements in private memory of the lane, in a Store,
of which nothing but its place is known. Addresses, masks and indices are known; what they are computed from must be, too. Data is moved
and computed by recorded ops.

An Affine is base + sum(stride[d] * index[d]): ranges, blocks of pointers. It keeps large tiles cheap: only masks that cut a tile are
arrays.
"""
from __future__ import annotations

import math
import operator
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import core
from .alike import Number
from .core import Lane, Span, refuse
from ..record import SIZES, short_name

MAX_PARTS = 4096       # ops for one access: more is no tile
MAX_ELEMENTS = 1 << 24


# ---- types ----

class DType:
    """A type of elements, as Triton names it, or a pointer to one."""

    def __init__(self, name: str, peal: str, kind: str, bits: int, number: Any, element: Optional[DType] = None) -> None:
        self.name, self.peal, self.kind, self.primitive_bitwidth, self.number = name, peal, kind, bits, number
        self.element_ty = element
        self.itemsize = max(bits // 8, 1)

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, DType) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __call__(self, value: Any) -> Tile:
        return cast(tile(value), self)

    def to(self, *_: Any) -> None:
        raise refuse(f"'{self.name}' is a type")

    @property
    def scalar(self) -> DType:
        return self

    @property
    def type(self) -> DType:
        return self

    @property
    def int_bitwidth(self) -> int:
        return self.primitive_bitwidth

    def is_ptr(self) -> bool:
        return self.kind == "p"

    def is_floating(self) -> bool:
        return self.kind == "f"

    def is_int(self) -> bool:
        return self.kind in "iub"

    def is_block(self) -> bool:
        return False

    def is_int_signed(self) -> bool:
        return self.kind == "i"

    def is_int_unsigned(self) -> bool:
        return self.kind == "u"

    def is_bool(self) -> bool:
        return self.kind == "b"

    def _is(name: str) -> Callable[[DType], bool]:  # type: ignore[misc] # pylint: disable=no-self-argument
        return lambda self: self.name == name

    is_fp8 = lambda self: self.name.startswith("fp8")  # noqa: E731
    is_fp16, is_bf16, is_fp32, is_fp64 = _is("fp16"), _is("bf16"), _is("fp32"), _is("fp64")
    is_int1, is_int8, is_int16, is_int32, is_int64 = _is("int1"), _is("int8"), _is("int16"), _is("int32"), _is("int64")
    is_uint8, is_uint32, is_uint64 = _is("uint8"), _is("uint32"), _is("uint64")
    del _is


TYPES: Dict[str, DType] = {row[0]: DType(*row) for row in (
    ("int1", "u8", "b", 1, np.bool_),
    ("int8", "i8", "i", 8, np.int8), ("int16", "i16", "i", 16, np.int16), ("int32", "i32", "i", 32, np.int32),
    ("int64", "i64", "i", 64, np.int64), ("uint8", "u8", "u", 8, np.uint8), ("uint16", "u16", "u", 16, np.uint16),
    ("uint32", "u32", "u", 32, np.uint32), ("uint64", "u64", "u", 64, np.uint64),
    ("fp8e4nv", "f8e4m3", "f", 8, np.float32), ("fp8e5", "f8e5m2", "f", 8, np.float32),
    ("fp16", "f16", "f", 16, np.float16), ("bf16", "bf16", "f", 16, np.float32), ("fp32", "f32", "f", 32, np.float32),
    ("fp64", "f64", "f", 64, np.float64))}
INT1, INT32, INT64, FP32 = TYPES["int1"], TYPES["int32"], TYPES["int64"], TYPES["fp32"]
_BY_PEAL = {dtype.peal: dtype for name, dtype in TYPES.items() if name != "int1"}
_pointers: Dict[str, DType] = {}
RANGES = {name: (-(1 << t.primitive_bitwidth - 1), (1 << t.primitive_bitwidth - 1) - 1) if t.kind == "i" else
          (0, (1 << t.primitive_bitwidth) - 1) for name, t in TYPES.items() if t.kind in "iub"}


def dtype_of(given: Any) -> DType:
    """The type that anything names: a DType, torch's, numpy's or jax' types, a string."""
    if isinstance(given, DType):
        return given
    name = str(getattr(given, "name", None) or getattr(given, "__name__", None) or given)
    if name.startswith("*"):
        return pointer_type(dtype_of(name[1:]))
    name = name.rsplit(".", maxsplit=1)[-1]
    if name in TYPES:
        return TYPES[name]
    if name in ("bool", "bool_", "i1"):
        return INT1
    found = _BY_PEAL.get(short_name(name) or "")
    if found is None:
        raise refuse(f"'{given}' is not a type that Peal has")
    return found


def dtype_name(given: Any) -> str:
    """Peal's name of a type."""
    return dtype_of(given).peal


def pointer_type(element: Any, *_: Any) -> DType:
    element = dtype_of(element)
    name = f"pointer<{element.name}>"
    if name not in _pointers:
        _pointers[name] = DType(name, "u64", "p", 64, np.int64, element)
    return _pointers[name]


# ---- what is known ----

class Affine(NamedTuple):
    base: int
    strides: Tuple[int, ...]


Known = Union[int, float, bool, Affine, np.ndarray]


def numel(shape: Sequence[int]) -> int:
    return math.prod(shape)


def bounds(known: Known, shape: Sequence[int]) -> Tuple[Any, Any]:
    """The least and the largest value."""
    if isinstance(known, Affine):
        low = high = known.base
        for size, stride in zip(shape, known.strides):
            if stride > 0:
                high += stride * (size - 1)
            else:
                low += stride * (size - 1)
        return low, high
    if isinstance(known, np.ndarray):
        return (known.min(), known.max()) if known.size else (0, 0)
    return known, known


def array(known: Known, shape: Sequence[int], number: Any) -> np.ndarray:
    """All values, as an array of that shape."""
    if isinstance(known, np.ndarray):
        return known
    if isinstance(known, Affine):
        out = np.full((1,) * len(shape), int(known.base), dtype=np.int64)
        for axis, (size, stride) in enumerate(zip(shape, known.strides)):
            if stride:
                view = [1] * len(shape)
                view[axis] = size
                out = out + (np.arange(size, dtype=np.int64) * stride).reshape(view)
        return np.broadcast_to(out, shape).astype(number)
    return np.full(shape, int(known) if isinstance(known, Number) else known, dtype=number)


# ---- values in memory ----

class Store:
    """Memory of a value: `count` elements of a lane's private memory."""
    __slots__ = ("lane", "address", "count", "peal", "valid", "fill")

    def __init__(self, lane: Lane, count: int, peal: str) -> None:
        if count > MAX_ELEMENTS:
            raise refuse(f"a tile of {count} elements: at most {MAX_ELEMENTS} are possible")
        self.lane, self.count, self.peal = lane, count, peal
        self.address = lane.scratch(count, peal)
        self.valid: Optional[np.ndarray] = None  # which elements are there; None: all
        self.fill: Any = None                    # the number that the others are; None: nothing is known of them

    def __del__(self) -> None:
        if hasattr(self, "address"):
            self.lane.release(self.address, self.count, self.peal)

    def spans(self, which: Optional[np.ndarray] = None) -> List[Span]:
        """The elements that are there, of those that `which` says."""
        mask = self.valid if which is None else which if self.valid is None else self.valid & which
        if mask is None:
            return [Span(self.peal, self.address, self.count)]
        at = np.flatnonzero(mask)
        return [part.memory for part in fold(at * SIZES[self.peal] + self.address, self.peal)] if at.size else []


class Tile:
    """A value: known, or data in a Store; `index` says which element of the store each of its own is (None: in order)."""
    __slots__ = ("shape", "dtype", "known", "store", "index", "link", "origin")
    __array_priority__ = 1000

    def __init__(self, shape: Tuple[int, ...], dtype: DType, known: Optional[Known] = None, store: Optional[Store] = None,
                 index: Optional[np.ndarray] = None) -> None:
        self.shape, self.dtype, self.known, self.store, self.index = shape, dtype, known, store, index
        self.link: Any = None    # what spins.py knows of it: see `cell`, `condition` and `thread`
        self.origin: Tuple[Any, ...] = ()  # the memory that a known value was read from

    @property
    def cell(self) -> Any:
        """What was done to a signal to get it: spins.Cell"""
        return self.link if self.link is not None and self.link.role == "cell" else None

    @property
    def condition(self) -> Any:
        """A comparison of that: spins.Condition"""
        return self.link if self.link is not None and self.link.role == "condition" else None

    @property
    def thread(self) -> Any:
        """The number of a thread, or what is computed from it: spins.Thread"""
        return self.link if self.link is not None and self.link.role == "thread" else None

    # -- what Triton's tensors have --

    @property
    def type(self) -> Any:
        return BlockType(self.dtype, self.shape) if self.shape else self.dtype

    @property
    def T(self) -> Tile:  # pylint: disable=invalid-name
        return trans(self)

    @property
    def numel(self) -> int:
        return numel(self.shape)

    @property
    def value(self) -> Any:
        return self.number()

    def to(self, dtype: Any, fp_downcast_rounding: Any = None, bitcast: bool = False) -> Tile:
        return cast(self, dtype, bitcast=bitcast)

    def cast(self, dtype: Any, *_: Any, bitcast: bool = False) -> Tile:
        return cast(self, dtype, bitcast=bitcast)

    def reshape(self, *shape: Any) -> Tile:
        return reshape(self, _shape(shape))

    view = reshape

    def expand_dims(self, axis: int) -> Tile:
        return expand_dims(self, axis)

    def broadcast_to(self, *shape: Any) -> Tile:
        return broadcast_to(self, _shape(shape))

    def trans(self, *dims: int) -> Tile:
        return trans(self, *dims)

    permute = trans

    def is_known(self) -> bool:
        return self.known is not None

    def number(self) -> Any:
        """The number that it is, for Python."""
        if self.known is None:
            raise refuse(self._not_known())
        steer(self)
        if isinstance(self.known, Affine):
            if numel(self.shape) == 1:
                return int(self.known.base)
            raise refuse("a tile of several elements is used as one number")
        if isinstance(self.known, np.ndarray):
            if self.known.size != 1:
                raise refuse("a tile of several elements is used as one number")
            return self.known.reshape(-1)[0].item()
        return int(self.known) if isinstance(self.known, Number) else self.known

    def _not_known(self) -> str:
        if self.cell is not None:
            return ("the value of a signal decides what the kernel does; only a loop that waits for it and does nothing else can be "
                    "recorded")
        return "data decides what the kernel does; if its contents are known, give them by --input"

    def __bool__(self) -> bool:
        if self.condition is not None:
            return self.condition.ask()
        if self.thread is not None:
            return self.thread.ask(self)
        return bool(self.number())

    def __int__(self) -> int:
        return int(self.number())

    def __index__(self) -> int:
        value = self.number()
        if not isinstance(value, (int, bool)):
            raise refuse("a number with a fraction is used as an index")
        return int(value)

    def __float__(self) -> float:
        return float(self.number())

    def __hash__(self) -> int:
        return id(self)

    def __len__(self) -> int:
        if not self.shape:
            raise refuse("a number has no length")
        return self.shape[0]

    def __iter__(self) -> Any:
        raise refuse("a kernel cannot go through the elements of a tile")

    def __getitem__(self, key: Any) -> Tile:
        return subscript(self, key)

    def __repr__(self) -> str:
        return f"tile{list(self.shape)} of {self.dtype}" + (f" = {self.known}" if self.known is not None and not self.shape else "")

    # operators are set below


class BlockType:
    """The type of a tile, for kernels that ask."""

    def __init__(self, element: DType, shape: Tuple[int, ...]) -> None:
        self.scalar = self.element_ty = element
        self.shape = shape

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scalar, name)

    def is_block(self) -> bool:
        return True

    def get_block_shapes(self) -> Tuple[int, ...]:
        return self.shape


def _shape(given: Any) -> Tuple[int, ...]:
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        given = given[0]
    out = tuple(operator.index(size) for size in given)
    if any(size < 0 for size in out) or numel(out) > MAX_ELEMENTS:
        raise refuse(f"{list(out)} is not the shape of a tile")
    return out


shape_of = _shape


# ---- making values ----

_converters: List[Callable[[Any], Optional[Tile]]] = []


def tile(value: Any) -> Tile:
    """Anything that a kernel uses as a value: a tile, a number, a tensor (its address)."""
    if type(value) is Tile:  # pylint: disable=unidiomatic-typecheck
        return value
    if isinstance(value, bool):
        return Tile((), INT1, value)
    if isinstance(value, int):
        if -(1 << 31) <= value < 1 << 31:
            return Tile((), INT32, value)
        if value < 1 << 63:
            return Tile((), INT64, value)
        return Tile((), TYPES["uint64"], value)
    if isinstance(value, float):
        return Tile((), FP32, value)
    if isinstance(value, Number):
        return Tile((), INT32 if -(1 << 31) <= value < 1 << 31 else INT64, value)
    if isinstance(value, np.generic):
        return Tile((), dtype_of(value.dtype), value.item())
    if hasattr(value, "data_ptr"):
        return Tile((), pointer_type(value.dtype), int(value.data_ptr()))
    for convert in _converters:
        found = convert(value)
        if found is not None:
            return found
    if isinstance(getattr(value, "value", None), (int, float)):  # constexpr
        return tile(value.value)
    raise refuse(f"a {type(value).__name__} is used as a value")


def full(shape: Any, value: Any, dtype: Any) -> Tile:
    shape, dtype, one = _shape((shape,)) if not isinstance(shape, int) else (shape,), dtype_of(dtype), tile(value)
    if one.known is None:
        return broadcast_to(cast(one, dtype), shape)
    number = one.number()
    return Tile(shape, dtype, float(number) if dtype.kind == "f" else bool(number) if dtype.kind == "b" else int(number))


def arange(start: Any, end: Any) -> Tile:
    start, end = operator.index(start), operator.index(end)
    if end < start or end - start > MAX_ELEMENTS:
        raise refuse(f"a range from {start} to {end}")
    return Tile((end - start,), INT32, Affine(start, (1,)))


def steer(value: Tile) -> None:
    """A value that was read from memory decides something."""
    for region in value.origin:
        region.steer()


def merge_origin(out: Tile, *values: Tile) -> Tile:
    """A known value that was computed from others comes from the memory that they come from."""
    for value in values:
        if value.origin and value.origin is not out.origin:
            out.origin += tuple(region for region in value.origin if region not in out.origin)
    return out


def new_store(count: int, peal: str) -> Store:
    return Store(core.current(), count, peal)


def data(shape: Tuple[int, ...], dtype: DType) -> Tile:
    """A value in new memory that the caller writes."""
    return Tile(shape, dtype, store=new_store(numel(shape), dtype.peal))


# ---- address sets ----

class Part(NamedTuple):
    """Some elements of an access: where they are in memory, and where in the tile."""
    memory: Span
    tile: Span


def fold(addresses: np.ndarray, peal: str, slots: Optional[np.ndarray] = None) -> List[Part]:
    """Addresses of elements, in the order of the tile, as runs and strided rows. slots: the addresses of the same elements in a value."""
    count, size = len(addresses), SIZES[peal]
    if count == 0:
        return []
    other = addresses if slots is None else slots
    together = np.diff(addresses) == size
    if slots is not None:
        together &= np.diff(slots) == size
    if together.all():
        return [Part(Span(peal, int(addresses[0]), count), Span(peal, int(other[0]), count))]
    starts = np.concatenate(([0], np.flatnonzero(~together) + 1))
    lengths = np.diff(np.concatenate((starts, [count])))
    first, second = addresses[starts], other[starts]
    out: List[Part] = []
    at, runs = 0, len(starts)
    steps, tile_steps, same = np.diff(first), np.diff(second), np.diff(lengths) == 0
    alike = (np.diff(steps) == 0) & (np.diff(tile_steps) == 0) & same[1:]
    ends = np.flatnonzero(~alike)  # a row at k + 2 breaks the pattern
    while at < runs:
        rows, length = 1, int(lengths[at])
        step, tile_step = (int(steps[at]), int(tile_steps[at])) if at + 1 < runs else (0, 0)
        if at + 1 < runs and same[at] and step >= length * size and tile_step >= length * size:
            after = ends[np.searchsorted(ends, at)] if np.searchsorted(ends, at) < len(ends) else runs - 2
            rows = int(after) + 2 - at
        out.append(Part(Span(peal, int(first[at]), length, rows, step if rows > 1 else 0),
                        Span(peal, int(second[at]), length, rows, tile_step if rows > 1 else 0)))
        at += rows
        if len(out) > MAX_PARTS:
            raise refuse(f"one access to more than {MAX_PARTS} separate ranges of memory")
    return out


def _affine_parts(known: Affine, shape: Sequence[int], peal: str, base: int) -> Optional[List[Part]]:
    """The parts of a whole tile with affine addresses; None: it takes arrays."""
    size = SIZES[peal]
    dims = [(extent, stride) for extent, stride in zip(shape, known.strides) if extent != 1]
    if any(stride <= 0 for _, stride in dims):
        return None
    merged: List[Tuple[int, int]] = []
    for extent, stride in reversed(dims):
        if merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    if not merged:
        merged = [(1, size)]
    if merged[0][1] != size:
        merged.insert(0, (1, size))
    if len(merged) > 2 or (len(merged) == 2 and merged[1][1] < merged[0][0] * size):
        return None
    count, (rows, stride) = merged[0][0], merged[1] if len(merged) == 2 else (1, 0)
    return [Part(Span(peal, known.base, count, rows, stride), Span(peal, base, count * rows))]


# ---- loads and stores ----

def mask_of(mask: Any, shape: Tuple[int, ...]) -> Optional[np.ndarray]:
    """None: all. A mask that is known, as a flat array."""
    if mask is None:
        return None
    mask = tile(mask)
    if mask.known is None:
        raise refuse("data decides which elements are used; if its contents are known, give them by --input")
    steer(mask)
    mask = broadcast_to(mask, shape)
    if not isinstance(mask.known, (Affine, np.ndarray)):
        return None if mask.known else np.zeros(numel(shape), dtype=bool)
    flat = array(mask.known, shape, np.bool_).reshape(-1).astype(bool)
    return None if flat.all() else flat


def _addresses(pointers: Any) -> Tile:
    pointers = tile(pointers)
    if pointers.thread is not None:
        from . import spins
        pointers = spins.spread(pointers)
    if not pointers.dtype.is_ptr():
        raise refuse(f"a {pointers.dtype} is used as an address")
    if pointers.known is None:
        raise refuse("data decides which address is used; if its contents are known, give them by --input")
    steer(pointers)
    return pointers


def _whole(number: Any) -> Any:
    """A whole number, which may differ from program to program."""
    return number if isinstance(number, Number) else int(number)


def addresses_of(pointers: Tile) -> np.ndarray:
    """All addresses, flat."""
    if not pointers.shape:
        return np.array([int(pointers.known)], dtype=np.int64)  # type: ignore[arg-type]
    return array(pointers.known, pointers.shape, np.int64).reshape(-1)  # type: ignore[arg-type]


def _check(first: int, last: int) -> None:
    """Both ends are in one piece of memory."""
    rank = core.rank()
    region = rank.at(first, 1)
    if last > region.address + region.nbytes:
        rank.at(first, last - first)


def _parts(pointers: Tile, mask: Optional[np.ndarray], store: Store, index: Optional[np.ndarray]) -> List[Part]:
    """Which memory goes with which elements of the store."""
    peal, size = store.peal, SIZES[store.peal]
    known, shape = pointers.known, pointers.shape
    if not isinstance(known, (Affine, np.ndarray)):
        known = Affine(known, (0,) * len(shape))  # type: ignore[arg-type]
    if mask is None and index is None and isinstance(known, Affine):
        parts = _affine_parts(known, shape, peal, store.address)
        if parts is not None:
            return parts
    addresses = array(known, shape, np.int64).reshape(-1)
    slots = np.arange(addresses.size, dtype=np.int64) if index is None else index
    if mask is not None:
        addresses, slots = addresses[mask], slots[mask]
    return fold(addresses, peal, slots * size + store.address)


def load(pointers: Any, mask: Any = None, other: Any = None) -> Tile:
    """The elements at the addresses. Integers that the host is known to have put there are known: then the load is a read."""
    pointers = _addresses(pointers)
    element = pointers.dtype.element_ty
    assert element is not None
    if not pointers.shape and mask is None and element.kind in "iu":
        number = _constant_number(pointers.known, element)  # type: ignore[arg-type]
        if number is not None:
            return Tile((), element, number)
    chosen = mask_of(mask, pointers.shape)
    if element.kind != "f":
        found = _load_contents(pointers, chosen, other, element)
        if found is not None:
            return found
    out = data(pointers.shape, element)
    store = out.store
    assert store is not None
    if chosen is not None:
        store.valid = chosen
        if other is not None:
            filler = tile(other)
            store.fill = filler.number() if filler.known is not None and not isinstance(filler.known, (Affine, np.ndarray)) else None
    if chosen is None and not isinstance(pointers.known, np.ndarray):
        known = pointers.known if isinstance(pointers.known, Affine) else Affine(_whole(pointers.known), (0,) * len(pointers.shape))
        if any(stride <= 0 and extent != 1 for extent, stride in zip(pointers.shape, known.strides)):
            return _load_repeated(pointers, known, element)
        order = sorted(range(len(known.strides)), key=lambda axis: -known.strides[axis])
        if order != list(range(len(order))):  # in the order of memory, seen transposed
            inner = Tile(tuple(pointers.shape[axis] for axis in order), pointers.dtype,
                         Affine(known.base, tuple(known.strides[axis] for axis in order)))
            return trans(load(inner), *(order.index(axis) for axis in range(len(order))))
    parts = _parts(pointers, chosen, store, None)
    lane, rank = core.current(), core.rank()
    for part in parts:
        span = part.memory
        rank.at(span.address, _extent(span))
        lane.copy(part.tile, span)
    return out


def _constant_number(address: int, element: DType) -> Optional[int]:
    """An entry of a table that nobody changes."""
    region, size = core.rank().find(address), element.itemsize
    if region is None or not region.constant or region.contents is None:
        return None
    offset = address - region.address
    if offset % size or offset + size > region.nbytes:
        return None
    return int.from_bytes(region.contents[offset:offset + size].tobytes(), "little", signed=element.kind == "i")


def _extent(span: Span) -> int:
    return (span.rows - 1) * span.stride + span.count * SIZES[span.dtype]


def _load_repeated(pointers: Tile, known: Affine, element: DType) -> Tile:
    """Some addresses are used by several elements: each is loaded once."""
    shape = tuple(1 if stride <= 0 else size for size, stride in zip(pointers.shape, known.strides))
    if any(stride < 0 for stride in known.strides):
        flat = addresses_of(pointers)
        unique, index = np.unique(flat, return_inverse=True)
        once = load(Tile((len(unique),), pointers.dtype, unique))
        return Tile(pointers.shape, element, store=once.store, index=index.reshape(-1))
    return broadcast_to(load(Tile(shape, pointers.dtype, known)), pointers.shape)


def _load_contents(pointers: Tile, mask: Optional[np.ndarray], other: Any, element: DType) -> Optional[Tile]:
    """What the host put there, if it is known and no kernel has changed it: addresses, tables, and integers of memory that only
    this rank has. Others may be signals."""
    rank = core.rank()
    low, _ = bounds(pointers.known, pointers.shape)  # type: ignore[arg-type]
    region = rank.find(_whole(low))
    if region is None or region.contents is None or not (region.constant or region.given or element.primitive_bitwidth == 64 or
                                                         (region.kind == "in" and not region.shared)):
        return None
    addresses = addresses_of(pointers)
    used = addresses if mask is None else addresses[mask]
    if used.size == 0:
        return None
    rank.at(int(used.min()), int(used.max() - used.min()) + element.itemsize)
    values = np.zeros(addresses.size, dtype=element.number)
    offsets = used - region.address
    if (offsets % element.itemsize).any():
        return None
    table = region.contents[:region.nbytes // element.itemsize * element.itemsize].view(element.number)
    values[slice(None) if mask is None else mask] = table[offsets // element.itemsize]
    if mask is not None:
        values[~mask] = tile(other).number() if other is not None else 0
    if not region.constant:
        for part in fold(np.unique(used), element.peal):
            core.current().read(part.memory)
    out = Tile(pointers.shape, element, values.reshape(pointers.shape) if pointers.shape else values[0].item())
    out.origin = () if region.constant else (region,)
    return out


def store(pointers: Any, value: Any, mask: Any = None) -> None:
    """Writes elements to the addresses."""
    pointers = _addresses(pointers)
    element = pointers.dtype.element_ty
    assert element is not None
    value = tile(value)
    shape = broadcast_shape(pointers.shape, value.shape)
    pointers = broadcast_to(pointers, shape)
    if value.cell is None or value.store is not None:
        value = cast(value, element)
    value = broadcast_to(value, shape)
    chosen = mask_of(mask, shape)
    lane = core.current()
    if value.known is not None:
        _store_known(lane, pointers, value, chosen, element)
        return
    source = value
    if source.store is None:  # the answer of an atomic or a signal: some number
        for part in fold(np.unique(addresses_of(pointers)[slice(None) if chosen is None else chosen]), element.peal):
            lane.rank.recording.note(f"what an atomic answered is stored at {core.told(core.place())}: which number that is, is not judged")
            lane.compute("answer", [part.memory], [])
        return
    held = source.store
    if held.valid is None and (held.count == source.numel or source.index is not None):
        for part in _parts(_once(pointers, chosen), chosen, held, source.index):
            lane.copy(part.memory, part.tile)
        return
    _once(pointers, chosen)
    index = np.arange(source.numel) if source.index is None else source.index
    every = np.ones(source.numel, dtype=bool) if chosen is None else chosen
    there = every if held.valid is None else every & held.valid[index]
    for part in _parts(pointers, None if there.all() else there, held, source.index):
        lane.copy(part.memory, part.tile)
    rest = every & ~there
    if rest.any():
        _store_missing(lane, pointers, rest, held)


def _once(pointers: Tile, mask: Optional[np.ndarray]) -> Tile:
    """Several elements are written to one address: which is last, nobody knows."""
    assert pointers.dtype.element_ty is not None
    size, known = pointers.dtype.element_ty.itemsize, pointers.known
    if pointers.numel > 1 and not (isinstance(known, Affine) and _apart(known, pointers.shape, size)):
        flat = addresses_of(pointers)
        flat = np.sort(flat if mask is None else flat[mask])
        if (np.diff(flat) < size).any():
            raise refuse("several elements of a tile are stored to one address")
    return pointers


def _apart(known: Affine, shape: Sequence[int], size: int) -> bool:
    """Can it be seen without looking at each that elements are at addresses of their own?"""
    reach = size
    for stride, extent in sorted((abs(stride), extent) for stride, extent in zip(known.strides, shape) if extent > 1):
        if stride < reach:
            return False
        reach += stride * (extent - 1)
    return True


def _store_missing(lane: Lane, pointers: Tile, rest: np.ndarray, held: Store) -> None:
    """Elements that the load left out: `other`, or something that is not known."""
    for part in fold(addresses_of(pointers)[rest], held.peal):
        if held.fill is not None:
            lane.copy(part.memory, core.constant(held.peal, held.fill))
        else:
            lane.compute("masked-out", [part.memory], [])


def accumulate(function: str, pointers: Tile, value: Tile, mask: Optional[np.ndarray]) -> None:
    """An atomic of data, element by element."""
    shape = broadcast_shape(pointers.shape, value.shape)
    pointers, value = broadcast_to(pointers, shape), broadcast_to(value, shape)
    lane = core.current()
    if value.known is not None:
        steer(value)
        if isinstance(value.known, (Affine, np.ndarray)):
            raise refuse("an atomic adds different known numbers to the elements of a tile")
        flat = addresses_of(_once(pointers, mask))
        element = pointers.dtype.element_ty
        assert element is not None
        for part in fold(np.sort(flat if mask is None else flat[mask]), element.peal):
            lane.accumulate(function, part.memory, core.constant(element.peal, float(value.known)))
        return
    if value.store is None:
        raise refuse("the answer of an atomic or a signal is used as data")
    for part in _parts(_once(pointers, mask), mask, value.store, value.index):
        lane.accumulate(function, part.memory, part.tile)


def fold_numbers(name: str, a: Any, b: Any) -> np.ndarray:
    """An operator on plain numbers and arrays of them."""
    return np.asarray(_LAZY[name](np.asarray(a), np.asarray(b)))


def _store_known(lane: Lane, pointers: Tile, value: Tile, mask: Optional[np.ndarray], element: DType) -> None:
    steer(value)
    addresses = addresses_of(pointers) if isinstance(pointers.known, np.ndarray) or mask is not None else None
    known = value.known
    if not isinstance(known, (Affine, np.ndarray)):
        number = float(known)  # type: ignore[arg-type]
        spans: List[Span]
        if addresses is None:
            affine = pointers.known if isinstance(pointers.known, Affine) else Affine(_whole(pointers.known), (0,) * len(pointers.shape))
            parts = _affine_parts(_without_repeats(affine, pointers.shape), _reduced(affine, pointers.shape), element.peal, 0)
            spans = [part.memory for part in parts] if parts is not None else [
                part.memory for part in fold(np.unique(addresses_of(pointers)), element.peal)]
        else:
            spans = [part.memory for part in fold(np.unique(addresses if mask is None else addresses[mask]), element.peal)]
        for span in spans:
            if span.count == 1 and span.rows == 1:
                lane.write(span, number)
            else:
                lane.fill(span, number)
        return
    flat, values = addresses_of(_once(pointers, mask)), array(known, value.shape, element.number).reshape(-1)
    if mask is not None:
        flat, values = flat[mask], values[mask]
    if flat.size <= 64:
        for address, number in zip(flat.tolist(), values.tolist()):
            lane.write(Span(element.peal, address), float(number))
        return
    for part in fold(np.sort(flat), element.peal):
        lane.compute("numbers", [part.memory], [])


def _without_repeats(known: Affine, shape: Sequence[int]) -> Affine:
    return Affine(known.base, tuple(stride for stride in known.strides if stride != 0))


def _reduced(known: Affine, shape: Sequence[int]) -> Tuple[int, ...]:
    return tuple(size for size, stride in zip(shape, known.strides) if stride != 0)


def copy(destination: Any, source: Any, mask: Any = None) -> None:
    """Memory to memory, element by element, without a value between: what an engine does."""
    destination, source = _addresses(destination), _addresses(source)
    shape = broadcast_shape(destination.shape, source.shape)
    chosen = mask_of(mask, shape)
    element = destination.dtype.element_ty
    assert element is not None
    to, of = addresses_of(broadcast_to(destination, shape)), addresses_of(broadcast_to(source, shape))
    if chosen is not None:
        to, of = to[chosen], of[chosen]
    if to.size > 1 and (np.diff(np.sort(to)) < element.itemsize).any():
        raise refuse("several elements are copied to one address")
    rank, lane = core.rank(), core.current()
    for part in fold(to, element.peal, of):
        rank.at(part.tile.address, _extent(part.tile))
        lane.copy(part.memory, part.tile)


# ---- shapes ----

def broadcast_shape(a: Tuple[int, ...], b: Tuple[int, ...]) -> Tuple[int, ...]:
    if a == b:
        return a
    if len(a) < len(b):
        a = (1,) * (len(b) - len(a)) + a
    elif len(b) < len(a):
        b = (1,) * (len(a) - len(b)) + b
    out = []
    for x, y in zip(a, b):
        if x != y and 1 not in (x, y):
            raise refuse(f"tiles of shapes {list(a)} and {list(b)} do not go together")
        out.append(y if x == 1 else x)
    return tuple(out)


def _indices(value: Tile) -> np.ndarray:
    index = np.arange(value.numel) if value.index is None else value.index
    return index.reshape(value.shape)


def _like(value: Tile, shape: Tuple[int, ...], known: Optional[Known], index: Optional[np.ndarray]) -> Tile:
    """The same elements in another arrangement."""
    out = Tile(shape, value.dtype, known, value.store, index)
    out.origin, out.link = value.origin, value.link
    return out


def broadcast_to(value: Any, shape: Any) -> Tile:
    value = tile(value)
    if value.shape == shape:
        return value
    shape = _shape((shape,))
    if broadcast_shape(value.shape, shape) != shape:
        raise refuse(f"a tile of shape {list(value.shape)} is broadcast to {list(shape)}")
    known = value.known
    if known is not None:
        if isinstance(known, Affine):
            missing = len(shape) - len(value.shape)
            own = (1,) * missing + value.shape
            strides = (0,) * missing + known.strides
            known = Affine(known.base, tuple(0 if size == 1 else stride for size, stride in zip(own, strides)))
        elif isinstance(known, np.ndarray):
            known = np.broadcast_to(known, shape)
        return _like(value, shape, known, None)
    if value.store is None:
        return _like(value, shape, None, None)
    if numel(shape) == value.numel:
        return _like(value, shape, None, value.index)
    return _like(value, shape, None, np.broadcast_to(_indices(value), shape).reshape(-1))


def reshape(value: Any, shape: Any) -> Tile:
    value = tile(value)
    shape = _shape((shape,))
    if numel(shape) != value.numel:
        raise refuse(f"a tile of shape {list(value.shape)} is reshaped to {list(shape)}")
    known = value.known
    if isinstance(known, Affine):
        split = _reshape_affine(known, value.shape, shape)
        known = split if split is not None else array(known, value.shape, np.int64).astype(value.dtype.number).reshape(shape)
    elif isinstance(known, np.ndarray):
        known = known.reshape(shape)
    return _like(value, shape, known, value.index)


def _reshape_affine(known: Affine, old: Tuple[int, ...], new: Tuple[int, ...]) -> Optional[Affine]:
    dims = [(size, stride) for size, stride in zip(old, known.strides) if size != 1]
    kept = [size for size in new if size != 1]
    if [size for size, _ in dims] != kept:
        return None
    strides = iter([stride for _, stride in dims])
    return Affine(known.base, tuple(0 if size == 1 else next(strides) for size in new))


def expand_dims(value: Any, axis: Any) -> Tile:
    value = tile(value)
    shape = list(value.shape)
    for one in sorted([axis] if isinstance(axis, int) else axis):
        shape.insert(one if one >= 0 else len(shape) + 1 + one, 1)
    return reshape(value, tuple(shape))


def subscript(value: Tile, key: Any) -> Tile:
    """x[:, None], x[None, :]; nothing else is an element in a tile language."""
    keys = key if isinstance(key, tuple) else (key,)
    if not all(one is None or (isinstance(one, slice) and one == slice(None)) for one in keys):
        raise refuse("an element of a tile is taken: kernels have [:, None] and [None, :]")
    if sum(one is not None for one in keys) > len(value.shape):
        raise refuse(f"{len(keys)} indices for a tile of shape {list(value.shape)}")
    shape, old = [], list(value.shape)
    for one in keys:
        shape.append(1 if one is None else old.pop(0))
    return reshape(value, tuple(shape + old))


def trans(value: Any, *dims: Any) -> Tile:
    value = tile(value)
    if len(dims) == 1 and isinstance(dims[0], (list, tuple)):
        dims = tuple(dims[0])
    order = tuple(operator.index(d) for d in dims) or tuple(reversed(range(len(value.shape))))
    if sorted(order) != list(range(len(value.shape))):
        raise refuse(f"dimensions {list(order)} of a tile of shape {list(value.shape)}")
    shape, known = tuple(value.shape[axis] for axis in order), value.known
    if isinstance(known, Affine):
        known = Affine(known.base, tuple(known.strides[axis] for axis in order))
    elif isinstance(known, np.ndarray):
        known = known.transpose(order)
    if value.known is not None or value.store is None:
        return _like(value, shape, known, None)
    return _like(value, shape, None, _indices(value).transpose(order).reshape(-1))


def join(values: Sequence[Tile], axis: int) -> Tile:
    """Tiles side by side along an axis that all have."""
    values = [tile(value) for value in values]
    shape = list(values[0].shape)
    shape[axis] = sum(value.shape[axis] for value in values)
    if all(value.known is not None for value in values):
        known = np.concatenate([array(value.known, value.shape, value.dtype.number) for value in values], axis)  # type: ignore[arg-type]
        return merge_origin(Tile(tuple(shape), values[0].dtype, known), *values)
    out = data(tuple(shape), values[0].dtype)
    slots, at = np.arange(out.numel).reshape(shape), 0
    assert out.store is not None
    for value in values:
        where = [slice(None)] * len(shape)
        where[axis] = slice(at, at + value.shape[axis])
        at += value.shape[axis]
        _fill(out.store, slots[tuple(where)].reshape(-1), value)
    return out


def _fill(target: Store, slots: np.ndarray, value: Tile) -> None:
    """Writes a value to elements of a store."""
    lane, size = core.current(), SIZES[target.peal]
    if value.known is not None:
        steer(value)
        if isinstance(value.known, (Affine, np.ndarray)):
            for part in fold(np.sort(slots) * size + target.address, target.peal):
                lane.compute("numbers", [part.memory], [])
        else:
            for part in fold(np.sort(slots) * size + target.address, target.peal):
                lane.copy(part.memory, core.constant(target.peal, float(value.known)))
        return
    if value.store is None:
        raise refuse("the answer of an atomic or a signal is used as data")
    index = np.arange(value.numel) if value.index is None else value.index
    held = value.store
    if held.valid is not None:
        there = held.valid[index]
        if held.fill is not None:
            _fill(target, slots[~there], Tile((int((~there).sum()),), value.dtype, held.fill))
        else:
            if target.valid is None:
                target.valid = np.ones(target.count, dtype=bool)
            target.valid[slots[~there]] = False
        slots, index = slots[there], index[there]
    for part in fold(slots * size + target.address, target.peal, index * size + held.address):
        lane.copy(part.memory, part.tile)


# ---- types of results ----

def promote(a: Tile, b: Tile, numbers: Tuple[bool, bool] = (False, False)) -> DType:
    """The type of a result. numbers: which of both is a plain number of Python, which takes the other's type."""
    x, y = a.dtype, b.dtype
    if x is y:
        return x
    if numbers[1] and not numbers[0] and _takes(x, b):
        return x
    if numbers[0] and not numbers[1] and _takes(y, a):
        return y
    if x.kind == "f" or y.kind == "f":
        if x.kind != "f":
            return y
        if y.kind != "f":
            return x
        if x.primitive_bitwidth == y.primitive_bitwidth:
            return FP32 if x.name != y.name else x
        return x if x.primitive_bitwidth > y.primitive_bitwidth else y
    if x.primitive_bitwidth == y.primitive_bitwidth:
        return x if x.kind == "u" else y
    return x if x.primitive_bitwidth > y.primitive_bitwidth else y


def _takes(dtype: DType, number: Tile) -> bool:
    """Does a plain number become one of this type?"""
    if dtype.kind == "f":
        return True
    return number.dtype.kind != "f" and dtype.kind in "iu" and RANGES[dtype.name][0] <= number.known <= RANGES[dtype.name][1]  # type: ignore


def cast(value: Any, dtype: Any, bitcast: bool = False) -> Tile:
    value, dtype = tile(value), dtype_of(dtype)
    old = value.dtype
    if old == dtype:
        return value
    if bitcast and old.primitive_bitwidth != dtype.primitive_bitwidth:
        raise refuse(f"the bits of a {old} as a {dtype}: they have different sizes")
    if value.thread is not None or value.cell is not None and value.store is None:
        if value.cell is not None and (dtype.kind not in "iu" or dtype.primitive_bitwidth < old.primitive_bitwidth):
            raise refuse(f"the answer of an atomic or a signal is used as data, as a {dtype}")
        out = _like(value, value.shape, value.known, value.index)
        out.dtype = dtype
        return out
    if value.known is not None:
        return merge_origin(Tile(value.shape, dtype, _cast_known(value, dtype, bitcast)), value)
    if dtype.is_ptr() or old.is_ptr():
        raise refuse("data becomes an address; if its contents are known, give them by --input")
    source = value
    held = source.store
    if held is None:
        raise refuse("the answer of an atomic or a signal is used as data")
    out = Tile(source.shape, dtype, index=source.index)
    out.store = Store(core.current(), held.count, dtype.peal)
    out.store.valid = held.valid
    out.store.fill = None if held.fill is None else _cast_known(Tile((), old, held.fill), dtype, bitcast)
    lane = core.current()
    for span in held.spans():
        to = span._replace(dtype=dtype.peal, address=out.store.address + (span.address - held.address) // SIZES[held.peal] * SIZES[dtype.peal],
                           stride=span.stride // SIZES[held.peal] * SIZES[dtype.peal])
        if bitcast and old.peal != dtype.peal:
            lane.compute("bits", [to], [span])
        elif dtype.kind == "b":
            lane.compute("is-not-zero", [to], [span])
        else:
            lane.copy(to, span)
    return out


def _cast_known(value: Tile, dtype: DType, bitcast: bool) -> Known:
    known, old = value.known, value.dtype
    if bitcast and old.kind == "f" or bitcast and dtype.kind == "f":
        return array(known, value.shape, old.number).view(dtype.number)  # type: ignore[arg-type]
    if dtype.kind in "p" or (dtype.kind in "iu" and old.kind in "iubp"):
        if dtype.kind == "p" or old.kind == "p":
            return known if not isinstance(known, np.ndarray) else known.astype(np.int64 if dtype.kind != "u" else dtype.number)  # type: ignore[return-value]
        low, high = bounds(known, value.shape)  # type: ignore[arg-type]
        least, most = RANGES[dtype.name]
        if isinstance(known, np.ndarray):
            return known.astype(dtype.number)
        if least <= low and high <= most:
            return int(known) if isinstance(known, bool) else known  # type: ignore[return-value]
        if isinstance(known, Affine):
            return array(known, value.shape, np.int64).astype(dtype.number)
        return _wrap(int(known), dtype)  # type: ignore[arg-type]
    if isinstance(known, (Affine, np.ndarray)):
        return array(known, value.shape, old.number).astype(dtype.number)
    if dtype.kind == "f":
        return _rounded(known, dtype)  # type: ignore[arg-type]
    if dtype.kind == "b":
        return bool(known)
    return _wrap(int(known), dtype)  # type: ignore[arg-type]


def _rounded(number: float, dtype: DType) -> float:
    """A number, as the type has it."""
    with np.errstate(all="ignore"):
        return dtype.number(number).item()


def _wrap(number: int, dtype: DType) -> int:
    least, most = RANGES[dtype.name]
    if least <= number <= most:
        return number
    number &= (1 << dtype.primitive_bitwidth) - 1
    return number - (1 << dtype.primitive_bitwidth) if number > most else number


# ---- arithmetic ----

def _truncated_div(a: Any, b: Any) -> Any:
    if isinstance(a, Number) and isinstance(b, int) and b > 0 and a >= 0:
        return a // b
    a, b = (int(one) if isinstance(one, Number) else one for one in (a, b))
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            raise refuse("division by zero")
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    if np.any(np.asarray(b) == 0):
        raise refuse("division by zero")
    quotient = np.asarray(a) // np.asarray(b)
    return quotient + ((quotient * b != a) & ((np.asarray(a) < 0) != (np.asarray(b) < 0)))


def _truncated_mod(a: Any, b: Any) -> Any:
    return a - b * _truncated_div(a, b)


def _larger(a: Any, b: Any) -> Any:
    return (a if a >= b else b) if isinstance(a, (int, Number)) and isinstance(b, (int, Number)) else np.fmax(a, b)


def _smaller(a: Any, b: Any) -> Any:
    return (a if a <= b else b) if isinstance(a, (int, Number)) and isinstance(b, (int, Number)) else np.fmin(a, b)


def _shift_right(a: Any, b: Any) -> Any:
    return a >> b


def _divide(a: Any, b: Any) -> Any:
    if isinstance(b, (int, float)) and b == 0:
        return math.copysign(math.inf, a) if a else math.nan
    return a / b


_LAZY: Dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": _divide, "floordiv": _truncated_div, "mod": _truncated_mod,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "shl": operator.lshift, "shr": _shift_right,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "maximum": _larger, "minimum": _smaller}
COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne"}
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_WHOLE = {int, Number}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) or (type(value) is not Tile and isinstance(getattr(value, "value", None), (int, float)))


def binary(name: str, left: Any, right: Any) -> Tile:
    """An operator of two values."""
    a = left if type(left) is Tile else tile(left)  # pylint: disable=unidiomatic-typecheck
    b = right if type(right) is Tile else tile(right)  # pylint: disable=unidiomatic-typecheck
    if a.link is not None or b.link is not None:
        found = _odd(name, a, b)
        if found is not None:
            return found
    if a.dtype.kind == "p" or b.dtype.kind == "p":
        return _pointer(name, a, b)
    dtype = promote(a, b, (_is_number(left), _is_number(right)))
    if name == "div" and dtype.kind != "f":
        dtype = FP32
    if a.known is not None and b.known is not None:
        if a.dtype is not dtype or b.dtype is not dtype:
            a, b = cast(a, dtype), cast(b, dtype)
        out = _fold_known(name, a, b, dtype)
        return merge_origin(out, a, b) if a.origin or b.origin else out
    if name in COMPARISONS:
        return _opaque_pair(name, a, b, INT1)
    if name in ("floordiv", "mod", "shl", "shr") and dtype.kind != "f":
        return _opaque_pair(name, a, b, dtype)
    if name == "floordiv" or name == "mod":
        return _opaque_pair(name, a, b, dtype)
    return elementwise(name, a, b, dtype=dtype)


def _odd(name: str, a: Tile, b: Tile) -> Optional[Tile]:
    """An operator of what is neither known nor data: threads and signals. None: it is data as well."""
    if a.thread is not None or b.thread is not None:
        return (a.thread or b.thread).combine(name, a, b)
    from . import spins
    return spins.compare(name, a, b)


def _pointer(name: str, a: Tile, b: Tile) -> Tile:
    """Pointers move by elements; two of them differ by elements."""
    if type(a.known) is int and type(b.known) is int and name == "add" and not a.shape and not b.shape and b.dtype.kind != "p":  # pylint: disable=unidiomatic-typecheck
        out = Tile((), a.dtype, a.known + b.known * a.dtype.element_ty.itemsize)  # type: ignore[union-attr]
        return merge_origin(out, a, b) if a.origin or b.origin else out
    if a.known is None or b.known is None:
        raise refuse("data decides which address is used; if its contents are known, give them by --input")
    if name in COMPARISONS:
        return merge_origin(_fold_known(name, a, b, INT64), a, b)
    if a.dtype.kind == "p" and b.dtype.kind == "p":
        if name != "sub" or a.dtype != b.dtype:
            raise refuse(f"'{name}' of two addresses")
        bytes_between = _fold_known("sub", a, b, INT64)
        assert a.dtype.element_ty is not None
        return merge_origin(_fold_known("floordiv", bytes_between, tile(a.dtype.element_ty.itemsize), INT64), a, b)
    if name not in ("add", "sub") or (name == "sub" and b.dtype.kind == "p"):
        raise refuse(f"'{name}' of an address")
    pointers, offset = (a, b) if a.dtype.kind == "p" else (b, a)
    if offset.dtype.kind == "f":
        raise refuse("an address is moved by a number with a fraction")
    size = pointers.dtype.element_ty.itemsize  # type: ignore[union-attr]
    if name == "sub":
        size = -size
    known, base = offset.known, pointers.known
    shape = a.shape if a.shape == b.shape else broadcast_shape(a.shape, b.shape)
    if isinstance(known, np.ndarray) or isinstance(base, np.ndarray):
        moved = array(broadcast_to(offset, shape).known, shape, np.int64).astype(np.int64)  # type: ignore[arg-type]
        result: Known = array(broadcast_to(pointers, shape).known, shape, np.int64) + moved * size  # type: ignore[arg-type]
    elif type(known) is Affine or type(base) is Affine:  # pylint: disable=unidiomatic-typecheck
        result = _add_affine(broadcast_to(pointers, shape).known, broadcast_to(offset, shape).known, size)
    else:
        result = base + known * size  # type: ignore[operator]
    out = Tile(shape, pointers.dtype, result)
    return merge_origin(out, a, b) if a.origin or b.origin else out


def _add_affine(x: Any, y: Any, times: int = 1) -> Affine:
    """x + y * times, of which one is an Affine and the other that or a number."""
    if type(x) is not Affine:  # pylint: disable=unidiomatic-typecheck
        return Affine(x + y.base * times, y.strides if times == 1 else tuple([stride * times for stride in y.strides]))
    if type(y) is not Affine:  # pylint: disable=unidiomatic-typecheck
        return Affine(x.base + y * times, x.strides)
    return Affine(x.base + y.base * times, tuple([one + other * times for one, other in zip(x.strides, y.strides)]))


def _fold_known(name: str, a: Tile, b: Tile, dtype: DType) -> Tile:
    """Both are known: so is the result, of type dtype (comparisons: int1)."""
    x, y = a.known, b.known
    out_type = INT1 if name in COMPARISONS else dtype
    shape = a.shape if a.shape == b.shape else broadcast_shape(a.shape, b.shape)
    if type(x) in _WHOLE and type(y) in _WHOLE and dtype.kind != "f":  # pylint: disable=unidiomatic-typecheck
        result = _LAZY[name](x, y)
        return Tile(shape, out_type, result if out_type is INT1 else _wrap(result, out_type))
    plain = not isinstance(x, (Affine, np.ndarray)), not isinstance(y, (Affine, np.ndarray))
    if all(plain):
        if dtype.kind == "f":
            with np.errstate(all="ignore"):
                return Tile(shape, out_type, _LAZY[name](dtype.number(x), dtype.number(y)).item())
        result = _LAZY[name](x, y)
        return Tile(shape, out_type, _wrap(int(result), out_type) if out_type.kind in "iu" else result)
    if dtype.kind in "iup":
        affine = _fold_affine(name, broadcast_to(a, shape), broadcast_to(b, shape), shape)
        if affine is not None:
            if isinstance(affine, Affine) and out_type.kind in "iu":
                low, high = bounds(affine, shape)
                least, most = RANGES[out_type.name]
                if low < least or high > most:
                    inside = Affine(_wrap(affine.base, INT64), tuple(_wrap(stride, INT64) for stride in affine.strides))
                    affine = array(inside, shape, np.int64).astype(out_type.number)
            return Tile(shape, out_type, affine)
    number = dtype.number
    with np.errstate(all="ignore"):
        left = array(broadcast_to(a, shape).known, shape, a.dtype.number).astype(number)  # type: ignore[arg-type]
        right = array(broadcast_to(b, shape).known, shape, b.dtype.number).astype(number)  # type: ignore[arg-type]
        result = _LAZY[name](left, right)
    if not isinstance(result, np.ndarray):
        result = np.asarray(result)
    if out_type.kind == "b":
        result = result.astype(bool)
        if result.size and (result.all() or not result.any()):
            return Tile(shape, out_type, bool(result.flat[0]))
    return Tile(shape, out_type, result.astype(out_type.number))


def _fold_affine(name: str, a: Tile, b: Tile, shape: Tuple[int, ...]) -> Optional[Known]:
    """Without arrays, where that is possible."""
    x, y = a.known, b.known
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) or isinstance(x, float) or isinstance(y, float):
        return None
    if name in ("add", "sub") and (type(x) is Affine or type(y) is Affine):  # pylint: disable=unidiomatic-typecheck
        return _add_affine(x, y, 1 if name == "add" else -1)
    zero = (0,) * len(shape)
    left = x if isinstance(x, Affine) else Affine(_whole(x), zero)
    right = y if isinstance(y, Affine) else Affine(_whole(y), zero)
    if name == "mul" and not any(right.strides):
        return Affine(left.base * right.base, tuple(stride * right.base for stride in left.strides))
    if name == "mul" and not any(left.strides):
        return Affine(right.base * left.base, tuple(stride * left.base for stride in right.strides))
    if name in COMPARISONS:
        return _compare_bounds(name, bounds(left, shape), bounds(right, shape))
    if name in ("floordiv", "mod") and not any(right.strides) and right.base > 0:
        low, high = bounds(left, shape)
        if low >= 0 and low // right.base == high // right.base:
            quotient = low // right.base
            return Affine(quotient, zero) if name == "floordiv" else Affine(left.base - quotient * right.base, left.strides)
    return None


def _compare_bounds(name: str, a: Tuple[int, int], b: Tuple[int, int]) -> Optional[bool]:
    """A comparison that is the same for all elements."""
    if name in ("gt", "ge", "ne"):
        opposite = _compare_bounds({"gt": "le", "ge": "lt", "ne": "eq"}[name], a, b)
        return None if opposite is None else not opposite
    if name == "lt":
        return True if a[1] < b[0] else False if a[0] >= b[1] else None
    if name == "le":
        return True if a[1] <= b[0] else False if a[0] > b[1] else None
    if a[1] < b[0] or b[1] < a[0]:
        return False
    return True if a[0] == a[1] == b[0] == b[1] else None


# ---- arithmetic of data ----

def elementwise(function: str, *operands: Any, dtype: Optional[DType] = None) -> Tile:
    """A function of Peal's, element by element, of data and numbers; all of type dtype."""
    values = [tile(value) for value in operands]
    if dtype is None:
        dtype = values[0].dtype
        for value in values[1:]:
            dtype = promote(Tile((), dtype), value)
    shape = values[0].shape
    for value in values[1:]:
        shape = broadcast_shape(shape, value.shape)
    values = [cast(value, dtype) for value in values]
    for value in values:
        steer(value)
    alias = _identity(function, values, shape)
    if alias is not None:
        return alias
    layout = _common_layout(values, shape)
    if layout is None:
        return opaque(function, values, shape, dtype)
    held, index = layout
    out = Tile(shape, dtype, index=index)
    out.store = target = Store(core.current(), held.count, dtype.peal)
    _merge_valid(target, [value.store for value in values if value.store is not None], function, values)
    lane = core.current()
    for span in target.spans():
        shift = span.address - target.address
        sources = [core.constant(dtype.peal, float(value.known)) if value.store is None else  # type: ignore[arg-type]
                   span._replace(address=value.store.address + shift) for value in values]
        lane.compute(function, [span], sources)
    return out


def _identity(function: str, values: List[Tile], shape: Tuple[int, ...]) -> Optional[Tile]:
    """x + 0 and x * 1 are x."""
    if len(values) != 2 or function not in ("add", "mul", "sub"):
        return None
    neutral = 1 if function == "mul" else 0
    for value, other, second in ((values[0], values[1], False), (values[1], values[0], True)):
        if value.known is None or isinstance(value.known, (Affine, np.ndarray)) or value.known != neutral or other.shape != shape:
            continue
        if function == "sub" and not second:
            continue
        if other.dtype.kind == "f" and function == "add":
            core.rank().recording.assume("zero", "that a sum may begin with its first term: 0 + x is taken as x, also where x is -0")
        return other if second else _like(other, shape, None, other.index)
    return None


def _common_layout(values: List[Tile], shape: Tuple[int, ...]) -> Optional[Tuple[Store, Optional[np.ndarray]]]:
    """The arrangement of elements that all data has; None: they differ, or a number differs from element to element."""
    first: Optional[Tile] = None
    for value in values:
        if value.known is not None:
            if isinstance(value.known, (Affine, np.ndarray)):
                return None
            continue
        if value.store is None:
            raise refuse("the answer of an atomic or a signal is used as data")
        if value.numel != numel(shape):
            return None
        if first is None:
            first = value
        elif value.store.count != first.store.count or not _same_index(value.index, first.index):  # type: ignore[union-attr]
            return None
    assert first is not None and first.store is not None
    return first.store, first.index


def _same_index(a: Optional[np.ndarray], b: Optional[np.ndarray]) -> bool:
    return a is b or (a is not None and b is not None and len(a) == len(b) and bool((a == b).all()))


def _merge_valid(target: Store, stores: List[Store], function: str, values: List[Tile]) -> None:
    """An element is there if it is in all operands. If each has a number for the others, so has the result."""
    masks = [store.valid for store in stores if store.valid is not None]
    if not masks:
        return
    valid = masks[0]
    for mask in masks[1:]:
        valid = valid & mask
    target.valid = valid
    fills = [value.known if value.store is None else value.store.fill for value in values]
    same = all(store.valid is not None and (store.valid is valid or bool((store.valid == valid).all())) for store in stores)
    if same and all(fill is not None for fill in fills) and len(fills) == 2 and function in _LAZY:
        dtype = values[0].dtype
        target.fill = _fold_known(function, Tile((), dtype, fills[0]), Tile((), dtype, fills[1]), dtype).known


def _opaque_pair(name: str, a: Tile, b: Tile, dtype: DType) -> Tile:
    return opaque(name, [a, b], broadcast_shape(a.shape, b.shape), dtype)


def opaque(name: str, inputs: Iterable[Any], shape: Any, dtype: Any) -> Tile:
    """A function whose result is not known: it reads its inputs and writes its result."""
    out = data(_shape((shape,)), dtype_of(dtype))
    sources: List[Span] = []
    for value in inputs:
        value = tile(value)
        if value.known is not None:
            continue
        if value.store is None:
            raise refuse("the answer of an atomic or a signal is used as data")
        for span in value.store.spans():
            if span not in sources:
                sources.append(span)
    lane = core.current()
    assert out.store is not None
    target = out.store.spans()
    while len(sources) > 48:  # what one line can name
        lane.compute("part-of-" + name, target, sources[:40])
        sources = sources[40:] + target
    lane.compute("tile-" + name, target, sources)
    return out


def where(condition: Any, a: Any, b: Any) -> Tile:
    """Elements of a where the condition is true, of b elsewhere."""
    chosen, x, y = tile(condition), tile(a), tile(b)
    shape = broadcast_shape(broadcast_shape(chosen.shape, x.shape), y.shape)
    dtype = x.dtype if x.dtype.kind == "p" else promote(x, y, (_is_number(a), _is_number(b)))
    x, y = cast(x, dtype), cast(y, dtype)
    if chosen.known is None:
        return opaque("where", [chosen, x, y], shape, dtype)
    mask = mask_of(chosen, shape)
    if mask is None or not mask.any():
        return broadcast_to(x if mask is None else y, shape)
    x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    if x.known is not None and y.known is not None:
        known = np.where(mask.reshape(shape), array(x.known, shape, dtype.number), array(y.known, shape, dtype.number))
        return merge_origin(Tile(shape, dtype, known), chosen, x, y)
    out = data(shape, dtype)
    assert out.store is not None
    for value, which in (x, mask), (y, ~mask):
        slots = np.flatnonzero(which)
        _fill(out.store, slots, elements(value, slots))
    return out


def elements(value: Tile, at: np.ndarray) -> Tile:
    """Some elements, flat."""
    known = value.known
    if isinstance(known, (Affine, np.ndarray)):
        known = array(known, value.shape, value.dtype.number).reshape(-1)[at]
    index = None if value.known is not None else (np.arange(value.numel) if value.index is None else value.index)[at]
    return _like(value, (len(at),), known, index)


def unary(name: str, operand: Any) -> Tile:
    """neg, abs, exp, log, sqrt, ...: Peal's functions of one operand."""
    value = tile(operand)
    if name == "neg" and value.known is not None and value.dtype.kind in "iu":
        return binary("sub", Tile((), value.dtype, 0), value)
    if value.known is not None:
        steer(value)
        with np.errstate(all="ignore"):
            numbers = array(value.known, value.shape, value.dtype.number)
            if value.dtype.kind in "iub" and name not in ("neg", "abs"):
                numbers = numbers.astype(np.float32)
            result = UNARY[name](numbers)
        dtype = value.dtype if value.dtype.kind == "f" or name in ("neg", "abs") else FP32
        return merge_origin(Tile(value.shape, dtype, result if isinstance(value.known, (Affine, np.ndarray)) else
                                  result.reshape(-1)[0].item()), value)
    if value.cell is not None:
        raise refuse("the answer of an atomic or a signal is used as data")
    if name in ELEMENTARY:
        return elementwise(name, value)
    return opaque(name, [value], value.shape, value.dtype)


UNARY: Dict[str, Callable[[Any], Any]] = {
    "neg": np.negative, "abs": np.abs, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil,
    "exp2": np.exp2, "log2": np.log2, "sin": np.sin, "cos": np.cos, "recip": lambda x: 1 / x, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x), "erf": np.vectorize(math.erf, otypes=[np.float32])}
ELEMENTARY = {"neg", "abs", "exp", "log", "sqrt", "tanh", "recip", "sigmoid"}


def reduce(name: str, operand: Any, axis: Optional[int] = None, keep_dims: bool = False, dtype: Any = None) -> Tile:
    """sum, max, min, argmax, argmin, xor_sum, ...: along an axis or of all elements."""
    value = tile(operand)
    shape = list(value.shape)
    axes = list(range(len(shape))) if axis is None else [operator.index(axis) % max(len(shape), 1)]
    out_shape = tuple(1 if i in axes else size for i, size in enumerate(shape)) if keep_dims else tuple(
        size for i, size in enumerate(shape) if i not in axes)
    result = dtype_of(dtype) if dtype is not None else value.dtype
    if name in ("argmax", "argmin"):
        result = INT32
    elif name == "sum" and dtype is None and value.dtype.kind in "iub" and value.dtype.primitive_bitwidth < 32:
        result = INT32
    if value.cell is not None and value.store is None:
        from . import spins
        return spins.reduce(name, value)
    if value.known is not None:
        numbers = array(value.known, value.shape, value.dtype.number)
        found = REDUCTIONS[name](numbers, tuple(axes) if name not in ("argmax", "argmin") else axes[0])
        found = np.asarray(found).reshape(out_shape).astype(result.number)
        return merge_origin(Tile(out_shape, result, found if out_shape else found.item()), value)
    if numel(shape) == numel(out_shape) and name not in ("argmax", "argmin"):
        return reshape(cast(value, result), out_shape)
    return opaque(name, [value], out_shape, result)


REDUCTIONS: Dict[str, Callable[[np.ndarray, Any], Any]] = {
    "sum": lambda x, axes: x.sum(axis=axes), "max": lambda x, axes: x.max(axis=axes), "min": lambda x, axes: x.min(axis=axes),
    "argmax": lambda x, axis: x.argmax(axis=axis), "argmin": lambda x, axis: x.argmin(axis=axis),
    "xor_sum": lambda x, axes: np.bitwise_xor.reduce(x, axis=axes), "reduce_or": lambda x, axes: np.bitwise_or.reduce(x, axis=axes)}


def dot(a: Any, b: Any, acc: Any = None, dtype: Any = None) -> Tile:
    """A product of matrices: what it reads and writes is known."""
    x, y = tile(a), tile(b)
    if len(x.shape) < 2 or len(y.shape) < 2 or x.shape[-1] != y.shape[-2]:
        raise refuse(f"the product of tiles of shapes {list(x.shape)} and {list(y.shape)}")
    shape = (*x.shape[:-1], y.shape[-1])
    out = dtype_of(dtype) if dtype is not None else tile(acc).dtype if acc is not None else (
        INT32 if x.dtype.kind in "iu" else FP32)
    if x.known is not None and y.known is not None and (acc is None or tile(acc).known is not None):
        product = array(x.known, x.shape, x.dtype.number).astype(np.float64) @ array(y.known, y.shape, y.dtype.number).astype(np.float64)
        if acc is not None:
            product = product + array(tile(acc).known, shape, np.float64)  # type: ignore[arg-type]
        return merge_origin(Tile(shape, out, product.astype(out.number)), x, y, *([] if acc is None else [tile(acc)]))
    return opaque("dot", [x, y] + ([acc] if acc is not None else []), shape, out)


# ---- operators of Tile ----

def _operator(name: str) -> Callable[[Tile, Any], Tile]:
    return lambda self, other: binary(name, self, other)


def _swapped(name: str) -> Callable[[Tile, Any], Tile]:
    return lambda self, other: binary(name, other, self)


for _method, _name in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div"), ("floordiv", "floordiv"), ("mod", "mod"),
                       ("and", "and"), ("or", "or"), ("xor", "xor"), ("lshift", "shl"), ("rshift", "shr")):
    setattr(Tile, f"__{_method}__", _operator(_name))
    setattr(Tile, f"__r{_method}__", _swapped(_name))
for _name in COMPARISONS:
    setattr(Tile, f"__{_name}__", _operator(_name))


def _invert(self: Tile) -> Tile:
    if self.dtype.kind == "b":
        return binary("eq", self, False) if self.condition is None else self.condition.inverted(self)
    return binary("xor", self, -1)


Tile.__neg__ = lambda self: unary("neg", self)  # type: ignore[attr-defined]
Tile.__pos__ = lambda self: self  # type: ignore[attr-defined]
Tile.__abs__ = lambda self: unary("abs", self)  # type: ignore[attr-defined]
Tile.__invert__ = _invert  # type: ignore[attr-defined]
Tile.logical_and = _operator("and")  # type: ignore[attr-defined]
Tile.logical_or = _operator("or")  # type: ignore[attr-defined]
