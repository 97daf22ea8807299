# SPDX-License-Identifier: Apache-2.0
"""Symmetric memory, and one-sided calls on it."""
from __future__ import annotations

import ctypes
from ctypes import c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Optional, Tuple

from ._library import SIZES, Buffer, dtype_number, function, new_array, numpy

_P, _OLD = c_void_p, ctypes.POINTER(c_uint64)
_alloc = function("peal_symmetric_alloc", [_P, c_size_t, ctypes.POINTER(_P)])
_release = function("peal_symmetric_free", [_P, _P])
_put = function("peal_put", [_P, _P, _P, c_uint64, c_uint32])
_get = function("peal_get", [_P, _P, _P, c_uint64, c_uint32])
_put_notify = function("peal_put_notify", [_P, _P, _P, c_uint64, _P, c_uint64, c_uint32])
_notify = function("peal_notify", [_P, _P, c_uint64, c_uint32])
_wait_until = function("peal_wait_until", [_P, _P, c_int, c_uint64])
_fetch_add = function("peal_fetch_add", [_P, _P, c_uint64, c_uint32, _OLD])
_compare_swap = function("peal_compare_swap", [_P, _P, c_uint64, c_uint64, c_uint32, _OLD])
_COMPARE = ("==", "!=", ">=", ">", "<=", "<")


class Symmetric:
    """Memory of the same size on every rank, which peers read and write: comm.symmetric(count, dtype), a collective call.

    `array` is this rank's copy. `at` is an element. Signals and words of atomics are elements of "u64" memory. A put is visible to
    a rank that has waited for a signal sent to it later, and to all after comm.quiet(); see peal/onesided.h.
    """

    def __init__(self, comm: Any, count: int, dtype: str) -> None:
        dtype_number(dtype)
        self._comm, self.dtype, self._size, self._count = comm, dtype, SIZES[dtype], count
        self._memory = c_void_p()
        comm._check(_alloc(comm._comm, count * self._size, ctypes.byref(self._memory)))
        cells = (ctypes.c_char * max(count * self._size, 1)).from_address(self._memory.value)
        if numpy is not None:
            self.array: Any = numpy.frombuffer(cells, dtype=new_array(0, dtype).dtype, count=count)
        else:
            self.array = memoryview(cells).cast("B").cast({1: "B", 2: "H", 4: "I", 8: "Q"}[self._size])

    def _at(self, at: int, size: int) -> int:
        if at < 0 or at * self._size + size > self._count * self._size:
            raise ValueError(f"element {at} and the {size} bytes from there on are not within {self._count} elements of {self.dtype}")
        return int(self._memory.value or 0) + at * self._size

    def _word(self, at: int) -> int:
        if self.dtype != "u64":
            raise ValueError("signals and atomic words are elements of memory of type u64")
        return self._at(at, self._size)

    def put(self, x: Any, rank: int, at: int = 0, signal: Optional[Tuple["Symmetric", int]] = None, add: int = 1) -> None:
        """Writes x to rank's copy; then adds to its signal, given as (memory, element)."""
        b = Buffer(x)
        if signal is None:
            self._comm._check(_put(self._comm._comm, self._at(at, b.bytes), b.address, b.bytes, rank))
        else:
            self._comm._check(_put_notify(self._comm._comm, self._at(at, b.bytes), b.address, b.bytes, signal[0]._word(signal[1]), add, rank))

    def get(self, rank: int, count: int, at: int = 0, out: Any = None) -> Any:
        """Reads elements of rank's copy."""
        out = new_array(count, self.dtype) if out is None else out
        b, size = Buffer(out, writable=True), count * self._size
        if b.bytes < size:
            raise ValueError(f"{count} elements do not fit into {b.bytes} bytes")
        self._comm._check(_get(self._comm._comm, b.address, self._at(at, size), size, rank))
        return out

    def notify(self, rank: int, at: int = 0, add: int = 1) -> None:
        self._comm._check(_notify(self._comm._comm, self._word(at), add, rank))

    def wait_until(self, compare: str, value: int, at: int = 0) -> None:
        """Until this rank's signal compares so: wait_until(">=", 3)."""
        self._comm._check(_wait_until(self._comm._comm, self._word(at), _COMPARE.index(compare), value))

    def fetch_add(self, rank: int, add: int, at: int = 0) -> int:
        old = c_uint64()
        self._comm._check(_fetch_add(self._comm._comm, self._word(at), add, rank, ctypes.byref(old)))
        return old.value

    def compare_swap(self, rank: int, expected: int, desired: int, at: int = 0) -> int:
        old = c_uint64()
        self._comm._check(_compare_swap(self._comm._comm, self._word(at), expected, desired, rank, ctypes.byref(old)))
        return old.value

    def free(self) -> None:
        """Collective. The array must not be used any more."""
        self._comm._check(_release(self._comm._comm, self._memory))
        self._memory, self.array = c_void_p(), None
