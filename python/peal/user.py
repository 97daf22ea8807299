# SPDX-License-Identifier: Apache-2.0
"""User kernels on a communicator."""
from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from numbers import Integral
from typing import Any, List, Optional

from ._library import Buffer, PealError, dtype_number, function, reduction_number, text


class _Arg(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("kind", c_int), ("data", c_void_p), ("bytes", c_uint64), ("stride", c_uint64),
                ("value", c_int64), ("values", c_void_p), ("nvalues", c_size_t), ("reduce", c_int)]


class _Dim(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_int64)]


class _PlanArgs(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("ranks", c_uint32), ("text", c_char_p), ("file", c_char_p), ("library", c_char_p),
                ("kernel", c_char_p), ("count", c_uint64), ("values", c_void_p), ("nvalues", c_size_t), ("dtype", c_int), ("op", c_int),
                ("root", c_uint32), ("in_place", c_int), ("depth", c_uint32), ("slot_bytes", c_uint64), ("error", c_char_p),
                ("error_cap", c_size_t)]


_load = function("peal_user_kernel_load", [c_void_p, c_char_p, c_char_p, ctypes.POINTER(c_void_p)])
_launch = function("peal_user_kernel_launch", [c_void_p, c_int, ctypes.POINTER(_Arg), c_size_t, ctypes.POINTER(_Dim), c_size_t])
_free = function("peal_user_kernel_free", [c_void_p], None)
_plan_open = function("peal_plan_open", [ctypes.POINTER(_PlanArgs), ctypes.POINTER(c_void_p)])
_plan_close = function("peal_plan_close", [c_void_p], None)
_load_plan = function("peal_user_kernel_load_plan", [c_void_p, c_void_p, ctypes.POINTER(c_void_p)])
_BUFFER, _INT, _INTS, _REDUCE = range(4)


def _argument(value: Any, dtype: Optional[str], kept: List[Any]) -> _Arg:
    arg = _Arg(struct_size=ctypes.sizeof(_Arg))
    if isinstance(value, str):
        arg.kind, arg.reduce = _REDUCE, reduction_number(value)
    elif isinstance(value, Integral):
        arg.kind, arg.value = _INT, int(value)
    elif isinstance(value, (list, tuple)):
        numbers = (c_int64 * max(len(value), 1))(*value)
        kept.append(numbers)
        arg.kind, arg.values, arg.nvalues = _INTS, ctypes.addressof(numbers), len(value)
    else:
        buffer = Buffer(getattr(value, "array", value), dtype, writable=True)
        kept.append(buffer)
        arg.kind, arg.data, arg.bytes = _BUFFER, buffer.address, buffer.bytes
    return arg


class UserKernel:
    """A kernel on a communicator: call it with its arguments, in the order of its parameters, on all ranks.

        add = comm.kernel(text)
        add(x, y, "sum")

    Buffers are arrays (numpy or anything with the buffer protocol), window parameters comm.symmetric(...); integers are ints,
    arrays of them lists; a reduce operation is its name. Dimensions follow from the buffers; others are given by name. Of a
    recording (peal.record) the arguments are its buffers.
    """

    def __init__(self, comm: Any, kernel: Any, name: Optional[str] = None) -> None:
        source, self._comm, self._kernel = str(kernel), comm, c_void_p()
        if source.startswith("peal recording "):
            self._load_recording(source)
            return
        is_text = "{" in source
        status = _load(comm._comm, text(source) if is_text else None, text(name) if is_text else text(source),
                       ctypes.byref(self._kernel))
        comm._check(status)

    def _load_recording(self, source: str) -> None:
        plan, why = c_void_p(), ctypes.create_string_buffer(4096)
        args = _PlanArgs(struct_size=ctypes.sizeof(_PlanArgs), ranks=self._comm.size, text=text(source), dtype=dtype_number("f32"),
                         error=ctypes.cast(why, c_char_p), error_cap=len(why))
        status = _plan_open(ctypes.byref(args), ctypes.byref(plan))
        if status:
            raise PealError(status, why.value.decode())
        try:
            self._comm._check(_load_plan(self._comm._comm, plan, ctypes.byref(self._kernel)))
        finally:
            _plan_close(plan)

    def __call__(self, *arguments: Any, dtype: Optional[str] = None, **dims: int) -> None:
        kept: List[Any] = []
        args = (_Arg * max(len(arguments), 1))(*[_argument(a, dtype, kept) for a in arguments])
        buffers = [k for k in kept if isinstance(k, Buffer)]
        given = dtype or (buffers[0].dtype if buffers else "f32")
        dim_array = (_Dim * max(len(dims), 1))(*[_Dim(text(key), value) for key, value in dims.items()])
        self._comm._check(_launch(self._kernel, dtype_number(given), args, len(arguments), dim_array, len(dims)))

    def close(self) -> None:
        if self._kernel:
            _free(self._kernel)
            self._kernel = c_void_p()

    def __enter__(self) -> "UserKernel":
        return self

    def __exit__(self, *details: Any) -> None:
        self.close()
