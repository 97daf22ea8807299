# SPDX-License-Identifier: Apache-2.0
"""One kernel on a modelled machine, with arrays as data."""
from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Dict, List, Optional, Sequence

from ._library import REDUCTIONS, Buffer, PealError, dtype_number, function, reduction_number, text


class _Arg(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("kind", c_int), ("data", c_void_p), ("bytes", c_uint64), ("value", c_int64), ("values", c_void_p),
                ("nvalues", c_size_t), ("reduce", c_int)]


class _Dim(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_int64)]


class _Simulate(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("text", c_char_p), ("name", c_char_p), ("machine", c_char_p), ("ranks", c_uint32),
                ("dtype", c_int), ("args", ctypes.POINTER(_Arg)), ("nargs", c_size_t), ("dims", ctypes.POINTER(_Dim)),
                ("ndims", c_size_t), ("in_place", c_int), ("launches", c_uint32), ("rank_ps", ctypes.POINTER(c_uint64)),
                ("error", c_char_p), ("error_cap", c_size_t), ("reduction", c_char_p)]


_CAUSES = ("issue", "latency", "serial", "queue", "credit", "memory", "math", "wake")


class _Simulated(ctypes.Structure):
    _fields_ = [("time_ps", c_uint64)] + [(cause + "_ps", c_uint64) for cause in _CAUSES] + [
        (name, c_uint64) for name in ("messages", "transfers", "bytes", "credit_stalls", "events", "hash")]


_simulate = function("peal_simulate", [ctypes.POINTER(_Simulate), ctypes.POINTER(_Simulated), c_size_t])
_BUFFER, _INT, _INTS, _REDUCE = range(4)


@dataclass
class Simulation:
    """What a run on a machine took. Times are picoseconds; `causes` add up to `time_ps`."""
    time_ps: int
    causes: Dict[str, int]
    rank_ps: List[int]
    messages: int
    transfers: int
    bytes: int
    credit_stalls: int
    events: int
    hash: int

    @property
    def seconds(self) -> float:
        return self.time_ps * 1e-12


def _argument(value: Any, ranks: int, dtype: Optional[str], kept: List[Any]) -> _Arg:
    if isinstance(value, str):
        return _Arg(kind=_REDUCE, reduce=reduction_number(value) if value in REDUCTIONS else 0)
    if isinstance(value, Integral):
        return _Arg(kind=_INT, value=int(value))
    if isinstance(value, (list, tuple)) and all(isinstance(v, Integral) for v in value):
        numbers = (c_int64 * max(len(value), 1))(*value)
        kept.append(numbers)
        return _Arg(kind=_INTS, values=ctypes.addressof(numbers), nvalues=len(value))
    buffers = [Buffer(part, dtype, writable=True) for part in value]
    if len(buffers) != ranks or len({b.bytes for b in buffers}) != 1:
        raise ValueError(f"a buffer argument is {ranks} arrays of one size, one per rank")
    addresses = (c_void_p * ranks)(*[b.address for b in buffers])
    kept += [buffers, addresses]
    return _Arg(kind=_BUFFER, data=ctypes.addressof(addresses), bytes=buffers[0].bytes)


def simulate(kernel: Any, *args: Any, machine: str, ranks: int, dtype: str = "f32", dims: Optional[Dict[str, int]] = None,
             name: Optional[str] = None, in_place: bool = False, launches: int = 1) -> Simulation:
    """Runs a kernel on a machine (a file, or a built-in's name such as "mesh4x4").

    kernel is Peal text, a recording (peal.record), a traced function, or the name of a library kernel. args are in the order of its
    parameters: a sequence of arrays, one per rank (read and written in place), an int, a list of ints, or an operation: "sum", a user-defined reduction such as
    "reduce mine(a, b) = a / 2 + b", or the name of one that the text declares.

        x = numpy.ones((4, 256), "f4"); y = numpy.zeros_like(x)
        peal.simulate("allreduce_ring", x, y, "sum", machine="mesh4x4", ranks=4).time_ps
    """
    if _simulate is None:
        raise PealError(7, "this libpeal has no peal_simulate")
    kept: List[Any] = []
    kernel = str(kernel)
    is_text = "{" in kernel or kernel.startswith("peal recording")
    list_of = (_Arg * max(len(args), 1))(*[_argument(a, ranks, dtype if _is_bf16(dtype) else None, kept) for a in args])
    user = [a for a in args if isinstance(a, str) and a not in REDUCTIONS]
    given = [_Dim(text(key), value) for key, value in (dims or {}).items()]
    dim_array = (_Dim * max(len(given), 1))(*given)
    rank_ps = (c_uint64 * max(ranks, 1))()
    error = ctypes.create_string_buffer(4096)
    what = _Simulate(ctypes.sizeof(_Simulate), text(kernel) if is_text else None, text(name) if is_text else text(kernel),
                     text(machine), ranks, dtype_number(dtype), list_of, len(args), dim_array, len(given), int(in_place), launches,
                     rank_ps, ctypes.cast(error, c_char_p), len(error), text(user[-1]) if user else None)
    out = _Simulated()
    status = _simulate(ctypes.byref(what), ctypes.byref(out), ctypes.sizeof(out))
    if status:
        raise PealError(status, error.value.decode(errors="replace"))
    return Simulation(out.time_ps, {cause: getattr(out, cause + "_ps") for cause in _CAUSES}, list(rank_ps[:ranks]), out.messages,
                      out.transfers, out.bytes, out.credit_stalls, out.events, out.hash)


def _is_bf16(dtype: str) -> bool:
    return dtype == "bf16"  # which the buffer protocol has no format for
