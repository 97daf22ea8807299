# SPDX-License-Identifier: Apache-2.0
"""Communicators: collectives between processes or threads, on arrays."""
from __future__ import annotations

import ctypes
import os
import tempfile
from ctypes import c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, List, Optional, Sequence

from ._library import (PENDING, Buffer, PealError, dtype_number, function, new_array, reduction_number, text)
from .onesided import Symmetric
from .user import UserKernel

ANY_SOURCE = 0xFFFFFFFF


class _Open(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("size", c_uint32), ("rank", c_uint32), ("job", c_char_p), ("store", c_void_p),
                ("timeout_ms", c_uint32), ("quiet", c_int), ("clock", c_void_p)]


class _Blocks(ctypes.Structure):
    _fields_ = [("counts", c_void_p), ("offsets", c_void_p)]


_P = c_void_p
_open = function("peal_comm_open", [c_void_p, ctypes.POINTER(c_void_p)])
_declare_reduction = function("peal_reduction_declare", [c_void_p, c_char_p, c_char_p, ctypes.POINTER(c_int)])
_open_threads = function("peal_comm_open_threads", [c_uint32, ctypes.POINTER(c_void_p)])
_split = function("peal_comm_split", [_P, c_int, c_int, ctypes.POINTER(c_void_p)])
_dup = function("peal_comm_dup", [_P, ctypes.POINTER(c_void_p)])
_shrink = function("peal_comm_shrink", [_P, ctypes.POINTER(c_void_p)])
_revoke = function("peal_comm_revoke", [_P])
_close = function("peal_comm_close", [_P], None)
_rank = function("peal_comm_rank", [_P], c_uint32)
_size = function("peal_comm_size", [_P], c_uint32)
_set_timeout = function("peal_comm_set_timeout", [_P, c_uint32], None)
_set_algo = function("peal_comm_set_algo", [_P, c_char_p, c_char_p])
_explain = function("peal_comm_explain", [_P, c_char_p, c_uint64, c_int], c_char_p)
_error = function("peal_comm_error", [_P], c_char_p)
_fence = function("peal_fence", [_P])
_quiet = function("peal_quiet", [_P])
_simulated_ps = function("peal_comm_simulated_ps", [_P], c_uint64)
_test = function("peal_request_test", [_P])
_wait = function("peal_request_wait", [_P])
_send = function("peal_send", [_P, _P, c_uint64, c_uint32, c_uint32])
_recv = function("peal_recv", [_P, _P, c_uint64, c_uint32, c_uint32, ctypes.POINTER(c_uint64), ctypes.POINTER(c_uint32)])

# What follows comm and the buffers, in each collective: c count, d dtype, o operation, r root.
_KINDS = {"barrier": (0, ""), "allreduce": (2, "cdo"), "reduce": (2, "cdor"), "broadcast": (1, "cdr"), "allgather": (2, "cd"),
          "reduce_scatter": (2, "cdo"), "gather": (2, "cdr"), "scatter": (2, "cdr"), "all_to_all": (2, "cd"),
          "scan": (2, "cdo"), "exscan": (2, "cdo"),
          "allgather_v": (2, "Cd"), "reduce_scatter_v": (2, "Cdo"), "gather_v": (2, "Cdr"), "scatter_v": (2, "Cdr")}
_TYPES = {"c": [c_uint64], "C": [_P, _P], "d": [c_int], "o": [c_int], "r": [c_uint32]}


def _declare(prefix: str) -> dict:
    table = {}
    for name, (buffers, rest) in _KINDS.items():
        types = [_P] * (1 + buffers) + [t for letter in rest for t in _TYPES[letter]]
        if prefix == "peal_i":
            types.append(ctypes.POINTER(c_void_p))
        table[name] = function(prefix + name, types)
    return table


_blocking, _starting = _declare("peal_"), _declare("peal_i")
_all_to_all_v = function("peal_all_to_all_v", [_P, _P, ctypes.POINTER(_Blocks), _P, ctypes.POINTER(_Blocks), c_int])


def _words(comm: Any) -> str:
    return (_error(comm) or b"").decode(errors="replace")


def _counts(values: Sequence[int]) -> Any:
    return (c_uint64 * max(len(values), 1))(*values)


class Request:
    """A collective under way. Keep it until wait() or test() says that it has ended."""

    def __init__(self, comm: "Comm", handle: c_void_p, result: Any, kept: Any) -> None:
        self._comm, self._handle, self._kept, self.result = comm, handle, kept, result

    def wait(self) -> Any:
        """Blocks until it has ended; returns the result."""
        handle, self._handle = self._handle, None
        self._comm._check(_wait(handle))
        return self.result

    def test(self) -> bool:
        """True once it has ended."""
        if self._handle is None:
            return True
        status = _test(self._handle)
        if status == PENDING:
            return False
        self._handle = None
        self._comm._check(status)
        return True


class Comm:
    """A communicator: the ranks that make collective calls together.

    Comm() opens by what the launcher says (`peal exec`, torchrun, mpirun, srun); Comm(size=2, rank=0, job="name") says it
    itself. Input and output are numpy arrays or anything else with the buffer protocol; `out` is made where it is left out.
    """

    def __init__(self, size: int = 0, rank: int = 0, job: Optional[str] = None, timeout_ms: int = 0, quiet: bool = True,
                 _handle: Optional[c_void_p] = None) -> None:
        if _handle is not None:
            self._comm: Any = _handle
            return
        how = _Open(ctypes.sizeof(_Open), size, rank, text(job), None, timeout_ms, int(quiet), None)
        out = c_void_p()
        self._comm = None
        status = _open(ctypes.byref(how), ctypes.byref(out))
        if status:
            raise PealError(status, _words(None))
        self._comm = out

    @classmethod
    def threads(cls, size: int) -> List["Comm"]:
        """One communicator per rank, all in this process: each is for one thread."""
        out = (c_void_p * size)()
        status = _open_threads(size, out)
        if status:
            raise PealError(status, _words(None))
        return [cls(_handle=c_void_p(handle)) for handle in out]

    def _check(self, status: int) -> None:
        if status:
            raise PealError(status, _words(self._comm))

    def _made(self, make: Any, *arguments: Any) -> Optional["Comm"]:
        out = c_void_p()
        self._check(make(self._comm, *arguments, ctypes.byref(out)))
        return Comm(_handle=out) if out else None

    def split(self, color: int, key: int = 0) -> Optional["Comm"]:
        """Collective: ranks with the same color become a communicator; a negative one gets None."""
        return self._made(_split, color, key)

    def dup(self) -> "Comm":
        """Collective: the same ranks again, with calls of their own."""
        return self._made(_dup)  # type: ignore[return-value]

    def shrink(self) -> "Comm":
        """After a failure: the ranks that are left."""
        return self._made(_shrink)  # type: ignore[return-value]

    def revoke(self) -> None:
        """From any thread: every rank's call ends, with the status "revoked"; shrink() makes another communicator."""
        self._check(_revoke(self._comm))

    def close(self) -> None:
        if self._comm is not None:
            _close(self._comm)
            self._comm = None

    def __enter__(self) -> "Comm":
        return self

    def __exit__(self, *details: Any) -> None:
        self.close()

    @property
    def rank(self) -> int:
        return _rank(self._comm)

    @property
    def size(self) -> int:
        return _size(self._comm)

    @property
    def simulated_ps(self) -> int:
        """Simulated time so far, with PEAL_PLATFORM=sim:MACHINE; otherwise 0."""
        return _simulated_ps(self._comm)

    def set_timeout(self, milliseconds: int) -> None:
        _set_timeout(self._comm, milliseconds)

    def set_algorithm(self, collective: str, algorithm: Any) -> None:
        """Forces an algorithm: a name (see `peal list`), a file FILE.peal, or a kernel of one's own as Peal text or as a function
        that peal.kernel has traced. None gives the choice back."""
        words = None if algorithm is None else str(algorithm)
        if words is None or "{" not in words:
            self._check(_set_algo(self._comm, text(collective), text(words)))
            return
        with tempfile.TemporaryDirectory(prefix="peal-") as folder:
            path = os.path.join(folder, "kernel.peal")
            with open(path, "w", encoding="utf-8") as file:
                file.write(words)
            self._check(_set_algo(self._comm, text(collective), text(path)))

    def kernel(self, source: Any, name: Optional[str] = None) -> UserKernel:
        """A kernel to be launched on this communicator's ranks: Peal text, a traced function, a recording, or a library kernel's name."""
        return UserKernel(self, source, name)

    # ---- one-sided calls ----

    def symmetric(self, count: int, dtype: str = "f32") -> Symmetric:
        """Collective: memory that peers address."""
        return Symmetric(self, count, dtype)

    def fence(self) -> None:
        """Later puts and signals of this thread to each rank become visible after earlier ones."""
        self._check(_fence(self._comm))

    def quiet(self) -> None:
        """Waits until all puts and signals of this thread have arrived."""
        self._check(_quiet(self._comm))

    def explain(self, collective: str, size: int, symmetric: bool = False) -> str:
        """Which algorithm a call of that many bytes takes, and why."""
        return (_explain(self._comm, text(collective), size, int(symmetric)) or b"").decode()

    # ---- collectives ----

    def _call(self, name: str, send: Optional[Buffer], recv: Optional[Buffer], request: bool, result: Any, **values: Any) -> Any:
        buffers, rest = _KINDS[name]
        arguments: List[Any] = [self._comm]
        if buffers == 2:
            arguments.append(send.address if send else None)
        if buffers:
            arguments.append(recv.address if recv else None)
        kept: List[Any] = [send, recv]
        for letter in rest:
            if letter == "C":
                counts, offsets = _counts(values["counts"]), values.get("offsets")
                kept += [counts, _counts(offsets) if offsets is not None else None]
                arguments += [ctypes.cast(counts, c_void_p), ctypes.cast(kept[-1], c_void_p) if offsets is not None else None]
            else:
                arguments.append(values[letter])
        if not request:
            self._check(_blocking[name](*arguments))
            return result
        handle = c_void_p()
        self._check(_starting[name](*arguments, ctypes.byref(handle)))
        return Request(self, handle, result, kept)

    def _even(self, name: str, x: Any, out: Any, dtype: Optional[str], shape: Any, count: int, request: bool, has_out: bool = True,
              **values: Any) -> Any:
        send = Buffer(x, dtype) if x is not None else None
        kind = send.dtype if send else dtype
        if out is None and has_out:
            out = new_array(shape, kind or "f32")
        recv = Buffer(out, dtype, writable=True) if out is not None else None
        values["d"] = dtype_number((send or recv).dtype)  # type: ignore[union-attr]
        return self._call(name, send, recv, request, out, c=count, **values)

    def barrier(self) -> None:
        """No rank leaves before all have entered."""
        self._call("barrier", None, None, False, None)

    def _operation(self, op: str) -> int:
        """Of a name, or of a user-defined reduction such as "reduce mine(a, b) = a / 2 + b"."""
        if not isinstance(op, str):
            raise TypeError(f"an operation is named, as 'sum', and {type(op).__name__} is none: the output comes after it, or as out=")
        if "(" not in op:
            return reduction_number(op)
        out = c_int()
        self._check(_declare_reduction(self._comm, text(op), None, ctypes.byref(out)))
        return out.value

    def allreduce(self, x: Any, op: str = "sum", out: Any = None, dtype: Optional[str] = None, request: bool = False) -> Any:
        """The reduction over all ranks, on every rank. op is an operation's name or a user-defined reduction, "reduce mine(a, b) =
        a / 2 + b", which all ranks use in the same order. request=True starts it and returns a Request, here and below."""
        b = Buffer(x, dtype)
        return self._even("allreduce", x, out, dtype, b.shape, b.count, request, o=self._operation(op))

    def reduce(self, x: Any, op: str = "sum", root: int = 0, out: Any = None, dtype: Optional[str] = None,
               request: bool = False) -> Any:
        """The reduction on the root; None elsewhere."""
        b = Buffer(x, dtype)
        return self._even("reduce", x, out, dtype, b.shape, b.count, request, has_out=self.rank == root,
                          o=self._operation(op), r=root)

    def scan(self, x: Any, op: str = "sum", out: Any = None, dtype: Optional[str] = None, request: bool = False) -> Any:
        """The reduction over the ranks up to this one."""
        b = Buffer(x, dtype)
        return self._even("scan", x, out, dtype, b.shape, b.count, request, o=self._operation(op))

    def exscan(self, x: Any, op: str = "sum", out: Any = None, dtype: Optional[str] = None, request: bool = False) -> Any:
        """The reduction over the ranks before this one; rank 0's result is left alone: zeros in a new array."""
        b = Buffer(x, dtype)
        return self._even("exscan", x, out, dtype, b.shape, b.count, request, o=self._operation(op))

    def broadcast(self, x: Any, root: int = 0, dtype: Optional[str] = None, request: bool = False) -> Any:
        """x, in place: read on the root, written elsewhere."""
        b = Buffer(x, dtype, writable=True)
        return self._call("broadcast", None, b, request, x, c=b.count, d=dtype_number(b.dtype), r=root)

    def allgather(self, x: Any, out: Any = None, dtype: Optional[str] = None, request: bool = False) -> Any:
        """Everyone's x, rank after rank, on every rank."""
        b = Buffer(x, dtype)
        return self._even("allgather", x, out, dtype, (self.size, *b.shape), b.count, request)

    def reduce_scatter(self, x: Any, op: str = "sum", out: Any = None, dtype: Optional[str] = None, request: bool = False) -> Any:
        """Its own block of the reduction; x has a block per rank."""
        b = Buffer(x, dtype)
        count = b.count // self.size
        return self._even("reduce_scatter", x, out, dtype, (count,), count, request, o=self._operation(op))

    def gather(self, x: Any, root: int = 0, out: Any = None, dtype: Optional[str] = None, request: bool = False) -> Any:
        """Everyone's x on the root; None elsewhere."""
        b = Buffer(x, dtype)
        return self._even("gather", x, out, dtype, (self.size, *b.shape), b.count, request, has_out=self.rank == root, r=root)

    def scatter(self, x: Any, out: Any, root: int = 0, dtype: Optional[str] = None, request: bool = False) -> Any:
        """Block r of the root's x to rank r's out; x is None elsewhere."""
        b = Buffer(out, dtype, writable=True)
        return self._even("scatter", x, out, dtype, b.shape, b.count, request, r=root)

    def all_to_all(self, x: Any, out: Any = None, dtype: Optional[str] = None, request: bool = False) -> Any:
        """Block q of x goes to rank q; block q of the result comes from it."""
        b = Buffer(x, dtype)
        return self._even("all_to_all", x, out, dtype, b.shape, b.count // self.size, request)

    # ---- uneven counts: counts[r] elements are rank r's ----

    def allgather_v(self, x: Any, counts: Sequence[int], out: Any = None, offsets: Optional[Sequence[int]] = None,
                    dtype: Optional[str] = None, request: bool = False) -> Any:
        return self._even("allgather_v", x, out, dtype, (sum(counts),), 0, request, counts=counts, offsets=offsets)

    def reduce_scatter_v(self, x: Any, counts: Sequence[int], op: str = "sum", out: Any = None,
                         offsets: Optional[Sequence[int]] = None, dtype: Optional[str] = None, request: bool = False) -> Any:
        return self._even("reduce_scatter_v", x, out, dtype, (counts[self.rank],), 0, request, counts=counts, offsets=offsets,
                          o=self._operation(op))

    def gather_v(self, x: Any, counts: Sequence[int], root: int = 0, out: Any = None, offsets: Optional[Sequence[int]] = None,
                 dtype: Optional[str] = None, request: bool = False) -> Any:
        return self._even("gather_v", x, out, dtype, (sum(counts),), 0, request, has_out=self.rank == root, counts=counts,
                          offsets=offsets, r=root)

    def scatter_v(self, x: Any, counts: Sequence[int], out: Any, root: int = 0, offsets: Optional[Sequence[int]] = None,
                  dtype: Optional[str] = None, request: bool = False) -> Any:
        return self._even("scatter_v", x, out, dtype, None, 0, request, counts=counts, offsets=offsets, r=root)

    def all_to_all_v(self, x: Any, sends: Sequence[int], recvs: Sequence[int], out: Any = None, dtype: Optional[str] = None) -> Any:
        """sends[q] elements to rank q, recvs[q] from it."""
        b = Buffer(x, dtype)
        out = new_array((sum(recvs),), b.dtype) if out is None else out
        to = Buffer(out, dtype, writable=True)
        there, back = _counts(sends), _counts(recvs)
        a, c = _Blocks(ctypes.addressof(there), None), _Blocks(ctypes.addressof(back), None)
        self._check(_all_to_all_v(self._comm, b.address, ctypes.byref(a), to.address, ctypes.byref(c), dtype_number(b.dtype)))
        return out

    # ---- point to point ----

    def send(self, x: Any, to: int, tag: int = 0) -> None:
        b = Buffer(x, "u8")
        self._check(_send(self._comm, b.address, b.bytes, to, tag))

    def recv(self, out: Any, source: int = ANY_SOURCE, tag: int = 0) -> tuple:
        """Receives into out; returns how many bytes came, and from which rank."""
        b = Buffer(out, "u8", writable=True)
        got, sender = c_uint64(), c_uint32()
        self._check(_recv(self._comm, b.address, b.bytes, source, tag, ctypes.byref(got), ctypes.byref(sender)))
        return got.value, sender.value
