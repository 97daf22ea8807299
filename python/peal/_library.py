# SPDX-License-Identifier: Apache-2.0
"""The shared library, its status codes and types, and buffers of Python as addresses."""
from __future__ import annotations

import array
import ctypes
import ctypes.util
import os
from typing import Any, Optional, Sequence

try:
    import numpy
except ImportError:  # everything works without it, results are then array.array
    numpy = None  # type: ignore[assignment]

STATUS = ("ok", "invalid", "no_memory", "system", "timeout", "peer_dead", "mismatch", "unsupported", "closed", "pending",
          "revoked")
PENDING = STATUS.index("pending")
DTYPES = ("f16", "bf16", "f32", "f64", "i8", "u8", "i32", "i64", "i16", "u16", "u32", "u64", "bool", "f8e4m3", "f8e5m2", "cf32",
          "cf64", "f32_i32", "f64_i64", "i32_i32", "i64_i64")
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i32": 4, "i64": 8, "i16": 2, "u16": 2, "u32": 4, "u64": 8,
         "bool": 1, "f8e4m3": 1, "f8e5m2": 1, "cf32": 8, "cf64": 16, "f32_i32": 8, "f64_i64": 16,
         "i32_i32": 8, "i64_i64": 16}
REDUCTIONS = ("sum", "prod", "max", "min", "avg", "and", "or", "xor", "minloc", "maxloc")
_FORMATS = {"e": "f16", "f": "f32", "d": "f64", "b": "i8", "B": "u8", "i": "i32", "l": "i64", "q": "i64", "h": "i16", "H": "u16",
            "I": "u32", "L": "u64", "Q": "u64", "?": "bool", "Zf": "cf32", "Zd": "cf64", "c": "u8"}
_CODES = {"f32": "f", "f64": "d", "i8": "b", "u8": "B", "i32": "i", "i64": "q", "f16": "H", "bf16": "H", "i16": "h", "u16": "H",
          "u32": "I", "u64": "Q", "bool": "B", "f8e4m3": "B", "f8e5m2": "B", "cf32": "f", "cf64": "d",
          "f32_i32": "B", "f64_i64": "B", "i32_i32": "B", "i64_i64": "B"}
_NUMPY = {"f16": "float16", "f32": "float32", "f64": "float64", "i8": "int8", "u8": "uint8", "i32": "int32", "i64": "int64",
          "bf16": "uint16", "i16": "int16", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool", "f8e4m3": "uint8",
          "f8e5m2": "uint8", "cf32": "complex64", "cf64": "complex128"}
# Values with an index: structures of two fields.
_PAIRS = {("f4", "i4"): "f32_i32", ("f8", "i8"): "f64_i64", ("i4", "i4"): "i32_i32", ("i8", "i8"): "i64_i64"}
_NUMPY.update({name: [("value", value), ("index", index)] for (value, index), name in _PAIRS.items()})


class PealError(RuntimeError):
    """A call of the library that failed. `status` is one of peal.STATUS; the text says why."""

    def __init__(self, status: int, text: str) -> None:
        self.status = STATUS[status] if status < len(STATUS) else str(status)
        super().__init__(text or self.status)


def _load() -> ctypes.CDLL:
    asked = os.environ.get("PEAL_LIBRARY")
    names = [asked] if asked else ["libpeal.so.0", "libpeal.so", ctypes.util.find_library("peal")]
    problems = []
    for name in names:
        if not name:
            continue
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            problems.append(str(error))
    raise ImportError("libpeal was not found; install it, or set PEAL_LIBRARY to its path: " + "; ".join(problems))


lib = _load()


def function(name: str, arguments: Sequence[Any], result: Any = ctypes.c_int) -> Any:
    """A function of the library with its C types; None if this version has none of that name."""
    try:
        found = getattr(lib, name)
    except AttributeError:
        return None
    found.argtypes = list(arguments)
    found.restype = result
    return found


def text(value: Optional[str]) -> Optional[bytes]:
    return None if value is None else value.encode()


def dtype_number(name: str) -> int:
    if name not in DTYPES:
        raise ValueError(f"there is no data type '{name}': " + ", ".join(DTYPES))
    return DTYPES.index(name)


def reduction_number(name: str) -> int:
    if name not in REDUCTIONS:
        raise ValueError(f"there is no operation '{name}': " + ", ".join(REDUCTIONS))
    return REDUCTIONS.index(name)


def _pair(value: Any) -> str:
    fields = getattr(getattr(value, "dtype", None), "fields", None) or {}
    kinds = [(place, kind.str.lstrip("<=|")) for kind, place in (f[:2] for f in fields.values())]
    packed = len(kinds) == 2 and value.dtype.itemsize == sum(kind.itemsize for kind, _ in (f[:2] for f in fields.values()))
    return _PAIRS.get(tuple(kind for _, kind in sorted(kinds)), "") if packed else ""


class Buffer:
    """Memory of an object with the buffer protocol: address, element type, count. Keeps the object alive."""

    def __init__(self, value: Any, dtype: Optional[str] = None, writable: bool = False) -> None:
        view = memoryview(value)
        if not view.c_contiguous:
            raise ValueError("the buffer is not contiguous")
        if writable and view.readonly:
            raise ValueError("the buffer is read-only")
        self.owner, self.bytes, self.shape = value, view.nbytes, view.shape
        self.format = _FORMATS.get(view.format.lstrip("@=<"), "") or _pair(value)
        self.dtype = dtype or self.format
        if not self.dtype:
            raise ValueError(f"elements of format '{view.format}' have no data type: pass dtype=")
        self.count = self.bytes // SIZES[self.dtype]
        if self.bytes == 0:
            self.address = 0
        elif numpy is not None:
            is_array = isinstance(value, numpy.ndarray)  # memoryview casts no structures
            self._array = value.reshape(-1).view(numpy.uint8) if is_array else numpy.frombuffer(view.cast("B"), dtype=numpy.uint8)
            self.address = self._array.ctypes.data
        elif view.readonly:
            self._array = (ctypes.c_char * self.bytes).from_buffer_copy(view.cast("B"))
            self.address = ctypes.addressof(self._array)
        else:
            self._array = (ctypes.c_char * self.bytes).from_buffer(view.cast("B"))
            self.address = ctypes.addressof(self._array)


def new_array(shape: Any, dtype: str) -> Any:
    """A zeroed array: numpy's if there is one, otherwise a flat array.array."""
    if numpy is not None:
        return numpy.zeros(shape, dtype=_NUMPY[dtype])
    count = 1
    for extent in (shape if isinstance(shape, (tuple, list)) else (shape,)):
        count *= extent
    return array.array(_CODES[dtype], bytes(count * SIZES[dtype]))
