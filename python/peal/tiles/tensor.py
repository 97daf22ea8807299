# SPDX-License-Identifier: Apache-2.0
"""Tensors of the torch stand-in: ranges of one rank's made-up addresses, with a type, a shape and strides.

What a tensor holds is known as numbers where the program says it (`torch.zeros`, `torch.tensor`, arithmetic of integers); otherwise it is
the caller's data, or what some operation left there. What the host does to memory of the device is an operation on the current
stream, with the author's line. Memory of the CPU is the program's own and in no plan.

What the host writes before any rank has launched a kernel is the state in which the program begins if a barrier of all ranks
follows (Storage.begin); otherwise it is an operation that a peer's kernel can meet.
"""
from __future__ import annotations

import itertools
import linecache
import math
import re
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from ..record import SIZES
from . import core, program

KEPT_BYTES = 1 << 24  # contents of larger tensors are not kept as numbers
Shape = Tuple[int, ...]


class dtype:  # pylint: disable=invalid-name
    """A type of elements: `peal` is Peal's name for it, `numpy` the type in which known elements are kept, or None."""

    def __init__(self, name: str, peal: str, kept: Optional[str]) -> None:
        self.name, self.peal, self.itemsize = name, peal, SIZES[peal]
        self.numpy = numpy.dtype(kept) if kept else None
        self.is_floating_point = "float" in name
        self.is_signed = not name.startswith(("uint", "bool"))
        self.is_complex = False

    def __repr__(self) -> str:
        return f"torch.{self.name}"


DTYPES = {name: dtype(name, peal, kept) for name, peal, kept in (
    ("float32", "f32", "float32"), ("float64", "f64", "float64"), ("float16", "f16", "float16"), ("bfloat16", "bf16", None),
    ("float8_e4m3fn", "f8e4m3", None), ("float8_e4m3fnuz", "f8e4m3", None), ("float8_e5m2", "f8e5m2", None),
    ("float8_e5m2fnuz", "f8e5m2", None), ("int8", "i8", "int8"), ("int16", "i16", "int16"), ("int32", "i32", "int32"),
    ("int64", "i64", "int64"), ("uint8", "u8", "uint8"), ("uint16", "u16", "uint16"), ("uint32", "u32", "uint32"),
    ("uint64", "u64", "uint64"), ("bool", "u8", "bool"))}
FLOAT32, INT64, BOOL = DTYPES["float32"], DTYPES["int64"], DTYPES["bool"]
OF_NUMPY = {str(one.numpy): one for one in DTYPES.values() if one.numpy is not None}


class device:  # pylint: disable=invalid-name
    """'cpu', 'cuda' or 'cuda:N'; N is the rank that owns the memory."""

    def __init__(self, given: Any = "cuda", index: Optional[int] = None) -> None:
        if isinstance(given, device):
            given, index = given.type, given.index
        if isinstance(given, int):
            given, index = "cuda", given
        self.type, _, number = str(given).partition(":")
        if self.type in ("hip", "xpu", "meta"):
            self.type = "cuda"
        own = program.rank().index if self.type == "cuda" else None
        self.index = int(number) if number else index if index is not None else own

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type='{self.type}', index={self.index})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, (device, str)) and str(self) == str(device(other))

    def __hash__(self) -> int:
        return hash(str(self))


class Unknown:
    """A number that the host took out of data: it can be printed and computed with, and decides nothing."""

    def _same(self, *_: Any) -> Unknown:
        return self

    def _decides(self, *_: Any) -> Any:
        raise core.refuse("data decides what the program does next")

    def _compared(self, _: Any) -> Any:
        """In an assertion of the program it is a test of data; elsewhere it decides something."""
        frame = core.author()
        if frame is not None and linecache.getline(frame.f_code.co_filename, frame.f_lineno).split()[:1] == ["assert"]:
            return passed(True)
        return self._decides()

    def __str__(self) -> str:
        return "?"

    def __format__(self, spec: str) -> str:
        return "?"

    __repr__ = __str__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = __abs__ = __round__ = _same
    __pow__ = __float__ = _same
    __bool__ = __int__ = __index__ = _decides
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _compared  # type: ignore[assignment]
    __hash__ = object.__hash__


GENERIC = {"tensor", "t", "out", "output", "buf", "buffer", "result", "ret", "sub_buffer", "new_tensor", "made"}


def name_of_target(fallback: str) -> str:
    """The name that the author gives to what is being made: the left side of the assignment that made it, or, if that says nothing, of
    one that called it."""
    frame, found = core.author(), []
    while frame is not None:
        match = re.match(r"\s*(?:self\.|ctx\.)?([A-Za-z]\w*)\s*(?::[^=()]*|,[^=()]*)?=[^=]", linecache.getline(frame.f_code.co_filename, frame.f_lineno))
        if match and match.group(1) not in GENERIC:
            return match.group(1)
        found += [match.group(1)] if match else []
        frame = frame.f_back
    return found[0] if found else fallback


class Formula(NamedTuple):
    """What the whole of a storage holds: what a collective makes of a tensor of all ranks, or (None) that tensor of this rank."""
    contract: Optional[str]
    source: core.Region


class Storage:
    """The memory behind tensors: a region of the device, or numbers of the CPU."""

    def __init__(self, nbytes: int, element: dtype, where: device, shared: bool = False, zeroed: bool = False, name: str = "") -> None:
        self.nbytes, self.shared, self.fresh = nbytes, shared, True  # fresh: the host has written nothing
        self.known: Optional[Any] = None  # bytes as numbers; no kernel may have written them
        self.region: Optional[core.Region] = None
        if where.type != "cpu":
            self.region = program.rank().region("window" if shared else "private", name or name_of_target("symmetric" if shared else "tensor"),
                                                nbytes, element.peal, zeroed=zeroed)
            self.region.shared = shared
        if nbytes <= KEPT_BYTES and (zeroed or where.type == "cpu"):
            self.known = numpy.zeros(nbytes, numpy.uint8)
        self.formula: Optional[Formula] = None

    @classmethod
    def of(cls, region: core.Region) -> Storage:
        """The memory of a region, which may be a peer's."""
        found = cls.__new__(cls)
        found.fresh = False
        found.nbytes, found.shared, found.known, found.region, found.formula = region.nbytes, True, None, region, None
        return found

    def holds(self) -> Optional[Formula]:
        """The formula, if no kernel has written there since."""
        return None if self.formula and self.region is not None and self.region.changed else self.formula

    def numbers(self) -> Optional[Any]:
        return None if self.region is not None and self.region.changed else self.known

    def forget(self) -> None:
        self.known = self.formula = None

    def hold(self, formula: Optional[Formula]) -> None:
        """An operation of the host has just put that there."""
        self.formula = formula
        if formula is not None and self.region is not None:
            self.region.changed = None


class Tensor:  # pylint: disable=too-many-public-methods
    """A view of a storage. Strides are in elements, the offset in bytes."""

    requires_grad, grad, is_sparse, layout, names = False, None, False, "strided", None

    def __init__(self, storage: Storage, element: dtype, shape: Sequence[int], strides: Optional[Sequence[int]] = None, offset: int = 0,
                 where: Optional[device] = None) -> None:
        self._storage, self.dtype, self.shape, self._offset = storage, element, Size(shape), offset
        self._strides = tuple(strides) if strides is not None else dense(self.shape)
        self.device = where or device("cuda")

    # ---- what it is ----

    @property
    def ndim(self) -> int:
        return len(self.shape)

    is_cuda = property(lambda self: self.device.type != "cpu")
    is_cpu = property(lambda self: self.device.type == "cpu")
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.numel() * self.dtype.itemsize)
    data = property(lambda self: self, lambda self, other: self.__dict__.update(other.__dict__))
    T = property(lambda self: self.permute(*reversed(range(self.ndim))))
    mT = property(lambda self: self.transpose(-1, -2))

    def dim(self) -> int:
        return self.ndim

    def size(self, axis: Optional[int] = None) -> Any:
        return self.shape if axis is None else self.shape[axis]

    def stride(self, axis: Optional[int] = None) -> Any:
        return self._strides if axis is None else self._strides[axis]

    def numel(self) -> int:
        return math.prod(self.shape)

    nelement = numel

    def element_size(self) -> int:
        return self.dtype.itemsize

    def storage_offset(self) -> int:
        return self._offset // self.dtype.itemsize

    def untyped_storage(self) -> Storage:
        return self._storage

    def data_ptr(self) -> int:
        if self._storage.region is None:
            raise core.refuse("the address of memory of the CPU is wanted; no plan knows it")
        return self._storage.region.address + self._offset

    def is_contiguous(self, *_: Any, **__: Any) -> bool:
        return all(size == 1 or stride == wanted for size, stride, wanted in zip(self.shape, self._strides, dense(self.shape))) \
            or not self.numel()

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def get_device(self) -> int:
        return self.device.index if self.is_cuda else -1

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def __repr__(self) -> str:
        return f"tensor({list(self.shape)}, {self.dtype}, {self.device})"

    def __hash__(self) -> int:
        return id(self)

    # ---- numbers ----

    def numbers(self) -> Optional[Any]:
        """A numpy view of the elements, if they are known."""
        known = self._storage.numbers()
        if known is None or self.dtype.numpy is None:
            return None
        item = self.dtype.itemsize
        flat = known[self._offset:self._offset + (len(known) - self._offset) // item * item].view(self.dtype.numpy)
        return numpy.lib.stride_tricks.as_strided(flat, tuple(self.shape), tuple(stride * item for stride in self._strides))

    def _wanted(self) -> Any:
        found = self.numbers()
        if found is None:
            raise core.refuse("data decides what the program does next: the numbers of this tensor are not known")
        return found

    def numpy(self, **_: Any) -> Any:
        return self._wanted()

    def tolist(self) -> Any:
        return self._wanted().tolist()

    def item(self) -> Any:
        found = self.numbers()
        return Unknown() if found is None else found.item()

    def __int__(self) -> int:
        return int(self._wanted().item())

    __index__ = __int__

    def __float__(self) -> float:
        return float(self._wanted().item())

    def __bool__(self) -> bool:
        return bool(self._wanted().item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.numel() == 1 else repr(self)

    # ---- views ----

    def _view(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0, element: Optional[dtype] = None) -> Tensor:
        return Tensor(self._storage, element or self.dtype, shape, strides, self._offset + offset * self.dtype.itemsize, self.device)

    def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int = 0) -> Tensor:
        return Tensor(self._storage, self.dtype, size, stride, storage_offset * self.dtype.itemsize, self.device)

    def __getitem__(self, key: Any) -> Tensor:
        keys = list(key) if isinstance(key, tuple) else [key]
        if any(isinstance(one, (list, numpy.ndarray)) or isinstance(one, Tensor) and one.ndim for one in keys):
            return self._gather(keys)
        if any(one is Ellipsis for one in keys):
            at = next(i for i, one in enumerate(keys) if one is Ellipsis)
            keys[at:at + 1] = [slice(None)] * (self.ndim - sum(one is not None for one in keys) + 1)
        shape, strides, offset, axis = [], [], 0, 0
        for one in keys:
            if one is None:
                shape.append(1)
                strides.append(0)
                continue
            if axis >= self.ndim:
                raise IndexError(f"too many indices for a tensor of {self.ndim} dimensions")
            size, stride = self.shape[axis], self._strides[axis]
            axis += 1
            if isinstance(one, slice):
                first, last, step = one.indices(size)
                shape.append(len(range(first, last, step)))
                strides.append(stride * step)
                offset += first * stride
            else:
                index = int(one)
                if not -size <= index < size:
                    raise IndexError(f"index {index} is out of bounds for a dimension of {size}")
                offset += index % size * stride
        return self._view([*shape, *self.shape[axis:]], [*strides, *self._strides[axis:]], offset)

    def _gather(self, keys: List[Any]) -> Tensor:
        """Elements by a list of indices, or by a mask: a copy of each row."""
        known = [one._wanted() if isinstance(one, Tensor) else one for one in keys]
        own = self.numbers()
        if own is not None:
            return from_numbers(own[tuple(known)], self.dtype, self.device)
        if len(known) > 1:
            raise core.refuse("indices of several dimensions, of data that is not known")
        rows = numpy.arange(len(self))[known[0]]
        out = empty(rows.shape + tuple(self.shape[1:]), self.dtype, self.device)
        for to, row in zip(out.reshape(-1, *self.shape[1:]) if rows.size else [], rows.flat):
            to.copy_(self[int(row)])
        return out

    def __setitem__(self, key: Any, value: Any) -> None:
        own = self.numbers()
        wanted = value.numbers() if isinstance(value, Tensor) else value
        if self.is_cpu and own is not None and wanted is not None:
            parts = key if isinstance(key, tuple) else (key,)
            own[tuple(one._wanted() if isinstance(one, Tensor) else one for one in parts)] = wanted
            return
        if isinstance(key, Tensor) and key.dtype is BOOL:
            key = key.nonzero().flatten()
        if isinstance(key, Tensor) and key.ndim:
            for i, row in enumerate(key.tolist()):
                self[row] = value[i] if isinstance(value, Tensor) and value.ndim == self.ndim else value
            return
        target = self[key]
        target.copy_(value) if isinstance(value, Tensor) else target.fill_(value)  # pylint: disable=expression-not-assigned

    def view(self, *shape: Any) -> Tensor:
        if len(shape) == 1 and isinstance(shape[0], dtype):
            return self._retyped(shape[0])
        wanted = resolve(shape, self.numel())
        strides = restride(self.shape, self._strides, wanted)
        if strides is None:
            raise RuntimeError(f"view: {list(self.shape)} with strides {self._strides} is not a view of {list(wanted)}")
        return self._view(wanted, strides)

    def _retyped(self, element: dtype) -> Tensor:
        if element.itemsize == self.dtype.itemsize:
            return self._view(self.shape, self._strides, 0, element)
        if not self.is_contiguous() or not self.ndim:
            raise RuntimeError("view of another type: the tensor is not contiguous")
        last = self.shape[-1] * self.dtype.itemsize
        if last % element.itemsize:
            raise RuntimeError(f"view: {last} bytes are not a number of {element}")
        shape = (*self.shape[:-1], last // element.itemsize)
        return self._view(shape, dense(shape), 0, element)

    def reshape(self, *shape: Any) -> Tensor:
        wanted = resolve(shape, self.numel())
        strides = restride(self.shape, self._strides, wanted)
        return self._view(wanted, strides) if strides is not None else self.clone().view(wanted)

    def view_as(self, other: Tensor) -> Tensor:
        return self.view(other.shape)

    def flatten(self, start: int = 0, end: int = -1) -> Tensor:
        start, end = start % max(self.ndim, 1), end % max(self.ndim, 1)
        return self.reshape(*self.shape[:start], math.prod(self.shape[start:end + 1]), *self.shape[end + 1:])

    def permute(self, *axes: Any) -> Tensor:
        order = [axis % self.ndim for axis in unpack(axes)]
        return self._view([self.shape[a] for a in order], [self._strides[a] for a in order])

    def transpose(self, a: int, b: int) -> Tensor:
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        return self.permute(*order)

    def t(self) -> Tensor:
        return self.T

    def expand(self, *shape: Any) -> Tensor:
        wanted = list(unpack(shape))
        lead = len(wanted) - self.ndim
        strides = [0] * lead + [0 if size == 1 else stride for size, stride in zip(self.shape, self._strides)]
        wanted = [self.shape[i - lead] if size == -1 else size for i, size in enumerate(wanted)]
        for size, own in zip(wanted[lead:], self.shape):
            if own not in (1, size):
                raise RuntimeError(f"expand: {list(self.shape)} does not fit {wanted}")
        return self._view(wanted, strides)

    def expand_as(self, other: Tensor) -> Tensor:
        return self.expand(*other.shape)

    def squeeze(self, axis: Optional[int] = None) -> Tensor:
        axes = range(self.ndim) if axis is None else [axis % max(self.ndim, 1)]
        left = [i for i in range(self.ndim) if i not in axes or self.shape[i] != 1]
        return self._view([self.shape[i] for i in left], [self._strides[i] for i in left])

    def unsqueeze(self, axis: int) -> Tensor:
        return self[(slice(None),) * (axis % (self.ndim + 1)) + (None,)]

    def narrow(self, axis: int, start: int, length: int) -> Tensor:
        return self[(slice(None),) * (axis % self.ndim) + (slice(start, start + length),)]

    def select(self, axis: int, index: int) -> Tensor:
        return self[(slice(None),) * (axis % self.ndim) + (index,)]

    def unbind(self, axis: int = 0) -> Tuple[Tensor, ...]:
        return tuple(self.select(axis, i) for i in range(self.shape[axis]))

    def split(self, sizes: Any, dim: int = 0) -> Tuple[Tensor, ...]:  # pylint: disable=redefined-outer-name
        total = self.shape[dim]
        parts = [min(sizes, total - i) for i in range(0, total, sizes)] if isinstance(sizes, int) else list(sizes)
        starts = [0, *itertools.accumulate(parts)]
        return tuple(self.narrow(dim, start, part) for start, part in zip(starts, parts))

    def chunk(self, chunks: int, dim: int = 0) -> Tuple[Tensor, ...]:
        return self.split(-(-self.shape[dim] // chunks) or 1, dim)

    def detach(self) -> Tensor:
        return self

    def requires_grad_(self, *_: Any) -> Tensor:
        return self

    # ---- memory ----

    def spans(self, ordered: bool = True) -> List[core.Span]:
        """The elements as rows of the device's memory; those that an expanded dimension repeats are there once. Not `ordered`: in
        whatever order needs fewest rows."""
        dims = [(size, stride) for size, stride in zip(self.shape, self._strides) if size != 1 and stride]
        if not ordered:
            dims.sort(key=lambda dim: -dim[1])
        if not self.numel():
            return []
        rows: List[Tuple[int, int]] = []
        for size, stride in dims:
            if rows and rows[-1][1] == size * stride:
                rows[-1] = (rows[-1][0] * size, stride)
            else:
                rows.append((size, stride))
        inner = rows.pop()[0] if rows and rows[-1][1] == 1 else 1
        count, step = rows.pop() if rows else (1, 0)
        item = self.dtype.itemsize
        base = self.data_ptr()
        return [core.Span(self.dtype.peal, base + item * sum(i * stride for i, (_, stride) in zip(at, rows)), inner, count, item * step)
                for at in itertools.product(*(range(size) for size, _ in rows))]

    def _changed(self) -> None:
        """A write to the device that is not one of known numbers."""
        self._storage.forget()
        self._storage.fresh = False

    def fill_(self, value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return self.copy_(value.expand(*self.shape)) if value.numbers() is None else self.fill_(value.item())
        known = self.numbers()
        if known is not None:
            known[...] = value
        if self.is_cuda:
            write_device(self, value)
        return self

    def zero_(self) -> Tensor:
        return self.fill_(0)

    def copy_(self, source: Any, non_blocking: bool = False) -> Tensor:
        source = source if isinstance(source, Tensor) else from_numbers(numpy.asarray(source), None, device("cpu"))
        source = source.expand(*self.shape) if source.shape != self.shape else source
        known, own = source.numbers(), self.numbers()
        if known is not None and own is not None:
            own[...] = known
        if self.is_cpu:
            if known is None:
                self._storage.forget()
        elif source.is_cpu:
            write_device(self, None if known is None else known)
        else:
            formula = source._storage.holds() if source.nbytes == source._storage.nbytes else None
            self._changed()
            lane = host_lane()
            for to, what in pair_spans(self, source):
                lane.copy(to, what)
            self._storage.hold(formula if self.nbytes == self._storage.nbytes and source.dtype is self.dtype else None)
        return self

    def random_data_(self, *_: Any, **__: Any) -> Tensor:
        """normal_, uniform_ and the like: the caller's data."""
        self._storage.forget()
        if self.is_cuda:
            write_device(self, None)
        return self

    normal_ = uniform_ = random_ = exponential_ = random_data_

    def clone(self, **_: Any) -> Tensor:
        return empty(self.shape, self.dtype, self.device).copy_(self)

    def contiguous(self, **_: Any) -> Tensor:
        return self if self.is_contiguous() else self.clone()

    def to(self, *args: Any, **named: Any) -> Tensor:
        element, where = named.get("dtype", self.dtype), named.get("device", self.device)
        for one in args:
            if isinstance(one, dtype):
                element = one
            elif isinstance(one, (str, device, int)) and not isinstance(one, bool):
                where = one
            elif isinstance(one, Tensor):
                element, where = one.dtype, one.device
        where = device(where)
        if element is self.dtype and where == self.device:
            return self
        known = self.numbers()
        if known is not None and element.numpy is not None:
            return from_numbers(known.astype(element.numpy), element, where)
        out = empty(self.shape, element, where)
        if self.is_cuda and out.is_cpu:
            for span in self.spans():
                host_lane().read(span)
            out._storage.forget()
            return out
        return out.copy_(self)

    def cuda(self, *_: Any, **__: Any) -> Tensor:
        return self.to("cuda")

    def cpu(self) -> Tensor:
        return self.to("cpu")

    def type(self, element: Any = None) -> Any:
        return str(self.dtype) if element is None else self.to(element)

    def type_as(self, other: Tensor) -> Tensor:
        return self.to(other.dtype)

    def pin_memory(self) -> Tensor:
        return self

    # ---- arithmetic: of numbers, or recorded ----

    def __eq__(self, other: Any) -> Any:  # type: ignore[override]
        return compute("equal", self, other)

    def __ne__(self, other: Any) -> Any:  # type: ignore[override]
        return compute("not_equal", self, other)

    def sum(self, dim: Any = None, keepdim: bool = False, dtype: Any = None, **_: Any) -> Tensor:  # pylint: disable=redefined-outer-name
        return reduce("sum", self, dim, keepdim, dtype)

    def all(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        return reduce("all", self, dim, keepdim, BOOL)

    def any(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        return reduce("any", self, dim, keepdim, BOOL)

    def nonzero(self, as_tuple: bool = False) -> Any:
        known = self.numbers()
        if known is None and self.dtype is BOOL:  # where a test of data fails: nowhere, if it is taken as passed
            passed(False)
            return from_numbers(numpy.zeros((0, self.ndim)), INT64, self.device)
        found = numpy.nonzero(self._wanted())
        if as_tuple:
            return tuple(from_numbers(one, INT64, self.device) for one in found)
        return from_numbers(numpy.stack(found, 1), INT64, self.device)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("long", "int", "float", "double", "half", "bool", "bfloat16", "short", "byte"):
            element = DTYPES[{"long": "int64", "int": "int32", "float": "float32", "double": "float64", "half": "float16",
                              "short": "int16", "byte": "uint8"}.get(name, name)]
            return lambda *_, **__: self.to(element)
        if name.endswith("_") and name[:-1] in FUNCTIONS:
            return lambda *args, **named: self.copy_(compute(name[:-1], self, *args, **named))
        if name in FUNCTIONS:
            return lambda *args, **named: compute(name, self, *args, **named)
        if name in REDUCTIONS:
            return lambda dim=None, keepdim=False, **_: reduce(name, self, dim, keepdim, None)
        raise core.refuse(f"torch.Tensor.{name} is not known")


class Size(tuple):
    """torch.Size"""

    def numel(self) -> int:
        return math.prod(self)


# Functions of elements: what numpy calls them, and Peal's name for those that it can compute in proofs.
FUNCTIONS: Dict[str, Tuple[str, Optional[str]]] = {
    "add": ("add", "add"), "sub": ("subtract", "sub"), "mul": ("multiply", "mul"), "div": ("true_divide", "div"),
    "floor_divide": ("floor_divide", None), "remainder": ("remainder", None), "pow": ("power", None), "neg": ("negative", "neg"),
    "abs": ("abs", "abs"), "exp": ("exp", "exp"), "log": ("log", "log"), "sqrt": ("sqrt", "sqrt"), "maximum": ("maximum", "maximum"),
    "minimum": ("minimum", "minimum"), "equal": ("equal", None), "not_equal": ("not_equal", None), "less": ("less", None),
    "less_equal": ("less_equal", None), "greater": ("greater", None), "greater_equal": ("greater_equal", None),
    "bitwise_and": ("bitwise_and", None), "bitwise_or": ("bitwise_or", None), "bitwise_xor": ("bitwise_xor", None),
    "bitwise_not": ("invert", None), "bitwise_left_shift": ("left_shift", None), "bitwise_right_shift": ("right_shift", None),
    "logical_and": ("logical_and", None), "logical_or": ("logical_or", None), "logical_not": ("logical_not", None),
    "isclose": ("isclose", None), "isnan": ("isnan", None), "isinf": ("isinf", None), "square": ("square", None), "where": ("where", None),
    "matmul": ("matmul", None), "rsqrt": ("", None), "tanh": ("tanh", "tanh"), "sigmoid": ("", None), "relu": ("", None), "clamp": ("clip", None),
    "sin": ("sin", None), "cos": ("cos", None)}
ALIASES = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "mm": "matmul",
           "bmm": "matmul", "multiply": "mul", "divide": "div", "true_divide": "div", "subtract": "sub"}
FUNCTIONS.update({alias: FUNCTIONS[name] for alias, name in ALIASES.items()})
REDUCTIONS = ("max", "min", "mean", "prod", "cumsum", "argmax", "argmin", "norm", "softmax", "log_softmax", "var", "std")
TRUTHS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isclose", "isnan", "isinf", "logical_and",
          "logical_or", "logical_not", "eq", "ne", "lt", "le", "gt", "ge"}


def _operators() -> None:
    def make(name: str, swapped: bool) -> Callable[[Tensor, Any], Tensor]:
        return (lambda self, other: compute(name, other, self)) if swapped else (lambda self, other: compute(name, self, other))

    def in_place(name: str) -> Callable[[Tensor, Any], Tensor]:
        return lambda self, other: self.copy_(compute(name, self, other))
    for symbol, name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
                         "pow": "pow", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "matmul": "matmul",
                         "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}.items():
        setattr(Tensor, f"__{symbol}__", make(name, False))
        setattr(Tensor, f"__r{symbol}__", make(name, True))
        setattr(Tensor, f"__i{symbol}__", in_place(name))
    for symbol in ("lt", "le", "gt", "ge"):
        setattr(Tensor, f"__{symbol}__", make(symbol, False))
    for symbol, name in {"neg": "neg", "invert": "bitwise_not", "abs": "abs"}.items():
        setattr(Tensor, f"__{symbol}__", lambda self, name=name: compute(name, self))


_operators()


def _result_type(name: str, tensors: Sequence[Tensor], numbers: Sequence[Any]) -> dtype:
    if name in TRUTHS:
        return BOOL
    best = max((t.dtype for t in tensors), key=lambda d: (d.is_floating_point, d is not BOOL, d.itemsize))
    if not best.is_floating_point and (name in ("div", "divide", "true_divide", "exp", "log", "sqrt", "rsqrt")
                                       or any(isinstance(one, float) for one in numbers)):
        return FLOAT32
    return best


def compute(name: str, *operands: Any, **named: Any) -> Tensor:
    """A function of tensors: with numbers if they are known, otherwise an operation of the current stream."""
    tensors = [one for one in operands if isinstance(one, Tensor)]
    arrays = [one.numbers() if isinstance(one, Tensor) else one for one in operands]
    element = _result_type(name, tensors, [one for one in operands if not isinstance(one, Tensor)])
    where = next((t.device for t in tensors if t.is_cuda), tensors[0].device)
    theirs, ours = FUNCTIONS[name]
    if all(one is not None for one in arrays) and element.numpy is not None and theirs:
        named = {key: value for key, value in named.items() if key in ("rtol", "atol")}
        return from_numbers(numpy.asarray(getattr(numpy, theirs)(*arrays, **named)).astype(element.numpy), element, where)
    shapes = [numpy.empty(0).reshape(0) if isinstance(one, Unknown) else numpy.broadcast_to(numpy.float32(0), one.shape)
              if isinstance(one, Tensor) else 0.0 for one in operands]
    shape = _matmul_shape(tensors) if theirs == "matmul" else numpy.broadcast_shapes(*(getattr(s, "shape", ()) for s in shapes))
    out = empty(shape, element, where)
    out._storage.forget()
    if where.type != "cpu" and not (name in TRUTHS and not tensors[0].dtype.is_floating_point):  # a test of flags is no access to data
        same = all(one.shape == out.shape and one.dtype is element and one.is_contiguous() for one in tensors)
        record(ours if ours and same else f"torch.{name}", out, operands)
    return out


def _matmul_shape(tensors: Sequence[Tensor]) -> Shape:
    a, b = tensors
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise RuntimeError(f"matmul: {list(a.shape)} and {list(b.shape)} do not fit")
    lead = numpy.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    return (*lead, *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ()))


def reduce(name: str, tensor: Tensor, axis: Any, keepdim: bool, element: Optional[dtype]) -> Any:
    """Along one axis, or several, or all."""
    known = tensor.numbers()
    if name in ("max", "min") and isinstance(axis, Tensor):
        return compute(name + "imum", tensor, axis)
    same_shape = name in ("cumsum", "softmax", "log_softmax")
    wanted = element or (BOOL if name in ("all", "any") else INT64 if name.startswith("arg") else tensor.dtype)
    if name in ("sum", "cumsum", "prod") and element is None and not tensor.dtype.is_floating_point:
        wanted = INT64
    axes = tuple(range(tensor.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if known is not None and wanted.numpy is not None and hasattr(numpy, name):
        named = {} if same_shape else {"keepdims": keepdim}
        value = getattr(numpy, name)(known, axis=axis, **named)
        found = from_numbers(numpy.asarray(value).astype(wanted.numpy), wanted, tensor.device)
    else:
        left = [size if i not in {a % tensor.ndim for a in axes} or same_shape else 1 for i, size in enumerate(tensor.shape)
                if keepdim or same_shape or i not in {a % tensor.ndim for a in axes}]
        found = empty(left, wanted, tensor.device)
        found._storage.forget()
        if name in ("all", "any"):
            return Check(found, name == "all")
        if tensor.is_cuda:
            record(f"torch.{name}", found, [tensor])
    if name in ("max", "min") and axis is not None:
        return found, reduce("arg" + name, tensor, axis, keepdim, None)
    return found


class Check(Tensor):
    """The answer of a test of data that is not known: what the program hoped for, and the verdict says so."""

    def __init__(self, tensor: Tensor, hoped: bool) -> None:
        super().__init__(tensor._storage, BOOL, tensor.shape, tensor._strides, tensor._offset, tensor.device)
        self._hoped = hoped

    def __bool__(self) -> bool:
        return passed(self._hoped)

    def item(self) -> Any:
        return bool(self)

    def __invert__(self) -> Check:
        return Check(self, not self._hoped)


def passed(hoped: bool) -> bool:
    file, line = core.place()
    program.rank().recording.note(f"the program's own test of data at {file}:{line} is taken as passed")
    return hoped


def record(function: str, out: Tensor, operands: Iterable[Any]) -> None:
    sources = [span for one in operands for span in (one.spans(False) if isinstance(one, Tensor) and one.is_cuda else [])]
    if function in {ours for _, ours in FUNCTIONS.values()}:
        sources = [one.spans()[0] if isinstance(one, Tensor) else core.constant(out.dtype.peal, one) for one in operands]
    host_lane().compute(function, out.spans(), sources)


# ---- shapes ----

def dense(shape: Sequence[int]) -> Shape:
    return tuple(itertools.accumulate(reversed([*shape[1:], 1]), lambda a, b: a * max(b, 1)))[::-1] if len(shape) else ()


def unpack(shape: Sequence[Any]) -> Tuple[Any, ...]:
    return tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else tuple(shape)


def resolve(shape: Sequence[Any], numel: int) -> Shape:
    wanted = [int(one) for one in unpack(shape)]
    if -1 in wanted:
        wanted[wanted.index(-1)] = numel // max(math.prod(one for one in wanted if one != -1), 1)
    if math.prod(wanted) != numel:
        raise RuntimeError(f"shape {wanted} is invalid for {numel} elements")
    return tuple(wanted)


def restride(shape: Shape, strides: Shape, wanted: Shape) -> Optional[Shape]:
    """The strides of the same elements in another shape, or None: only a copy has them."""
    if not math.prod(shape):
        return dense(wanted)
    runs: List[Tuple[int, int]] = []  # (elements, stride) of dimensions that follow each other without gaps
    for size, stride in zip(shape, strides):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    found: List[int] = []
    left, stride = runs.pop() if runs else (1, 1)
    for size in reversed(wanted):
        if left == 1 and size != 1 and runs:
            left, stride = runs.pop()
        if size != 1 and left % size:
            return None
        found.append(stride)
        if size != 1:
            left, stride = left // size, stride * size
    return tuple(reversed(found))


# ---- making and writing ----

def empty(shape: Sequence[int], element: Optional[dtype] = None, where: Any = "cuda", shared: bool = False, zeroed: bool = False,
          name: str = "") -> Tensor:
    element, where = element or FLOAT32, device(where)
    storage = Storage(math.prod(shape) * element.itemsize, element, where, shared, zeroed, name)
    return Tensor(storage, element, shape, None, 0, where)


def from_numbers(array: Any, element: Optional[dtype], where: device) -> Tensor:
    """A tensor of its own with these contents."""
    array = numpy.asarray(array)
    element = element or OF_NUMPY.get(str(array.dtype)) or FLOAT32
    array = numpy.ascontiguousarray(array, element.numpy).reshape(array.shape)
    out = empty(array.shape, element, where)
    if where.type == "cpu":
        if element.numpy is not None and out._storage.known is not None:
            out.numbers()[...] = array
        else:
            out._storage.forget()
    else:
        write_device(out, array)
    return out


def write_device(tensor: Tensor, value: Any) -> None:
    """The host writes a number everywhere, an array of numbers, or (None) data of the caller."""
    storage, region, rank = tensor._storage, tensor._storage.region, program.rank()
    whole = tensor.nbytes == storage.nbytes
    is_first, storage.fresh = storage.fresh and whole and not storage.shared, False
    if (rank.launches or rank.calls) and not is_first:
        if numpy.isscalar(value) or value is None:
            for first, size in runs(tensor):
                rank.host_write(region, first, size, None if value is None else float(value), tensor.dtype.peal)
        else:
            for span in tensor.spans(False):
                host_lane().write(span)
    elif value is None:
        region.kind = "in"
        storage.formula = Formula(None, region) if whole else None
    elif numpy.isscalar(value) and not value and (whole or region.zeroed):
        region.zeroed = region.zeroed or whole
    elif numpy.isscalar(value) and tensor.dtype.is_floating_point:
        for span in tensor.spans():
            host_lane().write(span, float(value))
    else:
        region.kind = "in"
    if value is None or tensor.dtype.numpy is None:
        storage.known = None
        return
    if storage.known is None and whole and storage.nbytes <= KEPT_BYTES:
        storage.known = numpy.zeros(storage.nbytes, numpy.uint8)
    if storage.known is not None and tensor.numbers() is not None:
        tensor.numbers()[...] = value
        if not tensor.dtype.is_floating_point and numpy.any(value):
            region.contents = storage.known


def host_lane() -> core.Lane:
    """Where the host's operations on the device go: the current stream, after all that it has been given."""
    rank = program.rank()
    lane = rank.host()
    rank.stream().hub_ahead = True
    return lane


def runs(tensor: Tensor) -> Iterator[Tuple[int, int]]:
    """Offset and size of the tensor's bytes in its region."""
    item = tensor.dtype.itemsize
    for span in tensor.spans():
        first = span.address - tensor._storage.region.address
        if span.rows == 1 or span.stride == span.count * item:
            yield first, span.rows * span.count * item
        else:
            yield from ((first + row * span.stride, span.count * item) for row in range(span.rows))


def pair_spans(to: Tensor, source: Tensor) -> List[Tuple[core.Span, core.Span]]:
    """Spans of both tensors, one shape each: by whole tensors if that is possible, else row by row."""
    a, b = to.spans(), source.spans()
    if [(s.count, s.rows) for s in a] == [(s.count, s.rows) for s in b] or \
            len(a) == len(b) == 1 and a[0].count * a[0].rows == b[0].count * b[0].rows and 1 in (a[0].rows, b[0].rows):
        return list(zip(a, b))
    if to.ndim <= 1:
        raise core.refuse(f"a copy of {source!r} to {to!r}")
    return [pair for i in range(len(to)) for pair in pair_spans(to[i], source[i])]
