# SPDX-License-Identifier: Apache-2.0
"""Hosts: one program places tensors on workers and submits tasks to them."""
from __future__ import annotations

import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from ._library import (DTYPES, PENDING, SIZES, STATUS, Buffer, PealError, dtype_number, function, new_array, numpy, reduction_number, text)

MOST_DIMS = 4
_TENSOR, _INT, _INTS, _REDUCE = range(4)
ON_WORKER, REPLICATED, SHARDED = range(3)
_AS_INTS = {"f16": "u16", "bf16": "u16"}  # where Python has no type of its own, its bits will do


class _Id(ctypes.Structure):
    _fields_ = [("id", c_uint64)]


class _FunctionArg(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("count", c_uint64), ("dtype", c_int), ("ndims", c_uint32), ("shape", c_uint64 * MOST_DIMS),
                ("value", c_int64), ("values", POINTER(c_int64))]


class _Call(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("worker", c_uint32), ("rank", c_uint32), ("size", c_uint32),
                ("args", POINTER(_FunctionArg)), ("nargs", c_size_t),
                ("error", c_void_p), ("error_cap", c_size_t)]


_Run = CFUNCTYPE(c_int, POINTER(_Call), c_void_p)


class _Function(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("name", c_char_p), ("run", _Run), ("context", c_void_p), ("parameters", c_char_p),
                ("cost_ps", c_uint64),
                ("cost", c_void_p)]


class _Open(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("workers", c_uint32), ("platform", c_char_p), ("memory", c_uint64),
                ("timeout_ms", c_uint32), ("record", c_int),
                ("hold", c_int), ("functions", POINTER(_Function)), ("nfunctions", c_size_t)]


class _BufferSpec(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("name", c_char_p), ("dtype", c_int), ("count", c_uint64)]


class _DomainSpec(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("name", c_char_p), ("workers", POINTER(c_uint32)), ("nworkers", c_size_t),
                ("buffers", POINTER(_BufferSpec)),
                ("nbuffers", c_size_t)]


class _TensorSpec(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("name", c_char_p), ("dtype", c_int), ("ndims", c_uint32),
                ("shape", c_uint64 * MOST_DIMS), ("place", c_int),
                ("worker", c_uint32), ("domain", _Id), ("shard_dim", c_uint32)]


class _TaskArg(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("kind", c_int), ("tensor", _Id), ("first", c_uint64), ("count", c_uint64), ("value", c_int64),
                ("values", POINTER(c_int64)), ("nvalues", c_size_t), ("reduce", c_int)]


class _Dim(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_int64)]


class _TaskSpec(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("name", c_char_p), ("work", _Id), ("worker", c_uint32), ("domain", _Id), ("everyone", c_int),
                ("args", POINTER(_TaskArg)), ("nargs", c_size_t), ("dims", POINTER(_Dim)), ("ndims", c_size_t)]


_STATS = ("submitted", "ended", "failed", "time_ps", "critical_ps", "compute_ps", "comm_ps", "overlap_ps", "math_ps", "dma_ps",
          "link_ps")


class _Stats(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in _STATS]


_P = c_void_p
_open = function("peal_host_open", [POINTER(_Open), POINTER(c_void_p)])
_close = function("peal_host_close", [_P], None)
_error = function("peal_host_error", [_P], c_char_p)
_workers = function("peal_host_workers", [_P], c_uint32)
_platform = function("peal_host_platform", [_P], c_char_p)
_pid = function("peal_host_pid", [_P, c_uint32], c_int64)
_domain_new = function("peal_domain_new", [_P, POINTER(_DomainSpec), POINTER(_Id)])
_domain_release = function("peal_domain_release", [_P, _Id])
_domain_tensor = function("peal_domain_tensor", [_P, _Id, c_char_p, POINTER(_Id)])
_tensor_new = function("peal_tensor_new", [_P, POINTER(_TensorSpec), POINTER(_Id)])
_tensor_free = function("peal_tensor_free", [_P, _Id])
_write = function("peal_tensor_write", [_P, _Id, _P, c_uint64])
_read = function("peal_tensor_read", [_P, _Id, _P, c_uint64])
_write_part = function("peal_tensor_write_part", [_P, _Id, c_uint32, _P, c_uint64])
_read_part = function("peal_tensor_read_part", [_P, _Id, c_uint32, _P, c_uint64])
_part_bytes = function("peal_tensor_part_bytes", [_P, _Id, c_uint32], c_uint64)
_declare = function("peal_host_reduction_declare", [_P, c_char_p, c_char_p, POINTER(c_int)])
_work_kernel = function("peal_work_kernel", [_P, c_char_p, c_char_p, POINTER(_Id)])
_work_function = function("peal_work_function", [_P, c_char_p, POINTER(_Id)])
_submit = function("peal_host_submit", [_P, POINTER(_TaskSpec), POINTER(_Id)])
_try_submit = function("peal_host_try_submit", [_P, POINTER(_TaskSpec), POINTER(_Id)])
_wait = function("peal_host_wait", [_P, _Id])
_test = function("peal_host_test", [_P, _Id])
_wait_tensor = function("peal_host_wait_tensor", [_P, _Id])
_wait_all = function("peal_host_wait_all", [_P])
_hold = function("peal_host_hold", [_P])
_go = function("peal_host_go", [_P])
_check = function("peal_host_check", [_P])
_stats = function("peal_host_stats", [_P, POINTER(_Stats), c_size_t])
_files = {kind: function("peal_host_write_" + kind, [_P, c_char_p]) for kind in ("trace", "graph", "path", "page")}


@dataclass
class Function:
    """A Python function that tasks may run, where workers are threads, simulated or on other hosts.

    It gets one argument per parameter: an array of the worker's part, an int, or a list of ints. parameters is a list of "in",
    "out", "inout", "int", "ints". cost_ps is what it takes on a simulated machine.
    """
    name: str
    run: Callable[..., None]
    parameters: Sequence[str]
    cost_ps: int = 0


def _python_args(call: _Call) -> List[Any]:
    values: List[Any] = []
    for i in range(call.nargs):
        arg = call.args[i]
        if arg.ndims:
            kind = DTYPES[arg.dtype]
            size = arg.count * SIZES[kind]
            memory: Any = (ctypes.c_char * max(size, 1)).from_address(arg.data) if size else bytearray()
            if numpy is not None:
                shape = tuple(arg.shape[d] for d in range(arg.ndims))
                values.append(numpy.frombuffer(memory, dtype=new_array(0, kind).dtype, count=arg.count).reshape(shape))
            else:
                values.append(memoryview(memory).cast("B"))
        elif arg.values:
            values.append([arg.values[k] for k in range(arg.count)])
        else:
            values.append(arg.value)
    return values


def _wrap(made: Function) -> Any:
    def run(call: Any, context: Any) -> int:
        try:
            made.run(*_python_args(call.contents))
            return 0
        except Exception as error:  # pylint: disable=broad-except
            words = f"{type(error).__name__}: {error}".encode()[:call.contents.error_cap - 1] + b"\0"
            ctypes.memmove(call.contents.error, words, len(words))
            return 1
    return _Run(run)


class Tensor:
    """Memory on the workers. Tensor[first:end] as a task's argument is that part of each member's part."""

    def __init__(self, host: "Host", handle: _Id, shape: tuple, dtype: str) -> None:
        self.host, self._id, self.shape, self.dtype = host, handle, shape, dtype
        self._first = self._count = 0

    def __getitem__(self, part: slice) -> "Tensor":
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise ValueError("a part of a tensor is tensor[first:end], elements without gaps")
        view = Tensor(self.host, self._id, self.shape, self.dtype)
        view._first = part.start or 0
        if view._first < 0 or (part.stop is not None and part.stop <= view._first):
            raise ValueError(f"tensor[{part.start}:{part.stop}] has no elements: parts have different lengths, so count from 0")
        view._count = (part.stop - view._first) if part.stop is not None else 0
        return view

    def write(self, data: Any, rank: Optional[int] = None) -> "Tensor":
        """The whole tensor from an array; or one member's part."""
        b = Buffer(data, "u8")
        if b.format and b.format not in ("u8", "i8", self.dtype, _AS_INTS.get(self.dtype, "")):
            raise ValueError(f"the data is of {b.format}, the tensor of {self.dtype}")
        if rank is None:
            self.host._check(_write(self.host._host, self._id, b.address, b.bytes))
        else:
            self.host._check(_write_part(self.host._host, self._id, rank, b.address, b.bytes))
        return self

    def read(self, rank: Optional[int] = None) -> Any:
        """The whole tensor as an array (of replicas, the first); or one member's part, flat."""
        if rank is None:
            data = new_array(self.shape, self.dtype)
            b = Buffer(data, "u8", writable=True)
            self.host._check(_read(self.host._host, self._id, b.address, b.bytes))
            return data
        data = new_array(_part_bytes(self.host._host, self._id, rank) // SIZES[self.dtype], self.dtype)
        b = Buffer(data, "u8", writable=True)
        self.host._check(_read_part(self.host._host, self._id, rank, b.address, b.bytes))
        return data

    def wait(self) -> None:
        self.host._check(_wait_tensor(self.host._host, self._id))

    def free(self) -> None:
        self.host._check(_tensor_free(self.host._host, self._id))


class Domain:
    """A group of workers; rank r is workers[r]."""

    def __init__(self, host: "Host", handle: _Id, buffers: Dict[str, tuple]) -> None:
        self.host, self._id, self._buffers = host, handle, buffers

    def tensor(self, name: str) -> Tensor:
        """One of its symmetric buffers."""
        out = _Id()
        self.host._check(_domain_tensor(self.host._host, self._id, text(name), ctypes.byref(out)))
        dtype, count = self._buffers[name]
        return Tensor(self.host, out, (count,), dtype)

    def release(self) -> None:
        self.host._check(_domain_release(self.host._host, self._id))


class Task:
    def __init__(self, host: "Host", handle: _Id) -> None:
        self.host, self._id = host, handle

    def wait(self) -> None:
        """Blocks until it has ended; raises PealError if it failed."""
        self.host._check(_wait(self.host._host, self._id))

    def done(self) -> bool:
        status = _test(self.host._host, self._id)
        if status == PENDING:
            return False
        self.host._check(status)
        return True


class Host:
    """Workers that this program drives: processes, threads, or PEs of a modelled machine.

        with peal.Host(4) as host:
            x = host.tensor((256,)).write(numpy.ones(256, "f4"))
            host.submit("allreduce_ring", x, x, "sum")
            print(x.read())

    platform is "native", "native:threads", "hosts:a:2,b:2" or "sim:MACHINE"; PEAL_PLATFORM in the environment wins.
    Without a number of workers, a modelled machine has as many as it is made for.
    """

    def __init__(self, workers: int = 0, platform: Optional[str] = None, memory: int = 0, timeout_ms: int = 0, record: bool = False,
                 functions: Sequence[Function] = ()) -> None:
        self._host: Any = None
        runs_on = os.environ.get("PEAL_PLATFORM") or platform or "native"
        if functions and runs_on in ("native", "native:processes"):
            raise ValueError("Python functions run where workers are threads or simulated: platform='native:threads'")
        self._callbacks = [_wrap(f) for f in functions]
        table = (_Function * max(len(functions), 1))(*[
            _Function(ctypes.sizeof(_Function), text(f.name), callback, None, text(",".join(f.parameters)), f.cost_ps, None)
            for f, callback in zip(functions, self._callbacks)])
        how = _Open(ctypes.sizeof(_Open), workers, text(platform), memory, timeout_ms, int(record), 0, table, len(functions))
        out = c_void_p()
        status = _open(ctypes.byref(how), ctypes.byref(out))
        if status:
            raise PealError(status, (_error(None) or b"").decode(errors="replace"))
        self._host, self._table, self.workers = out, table, int(_workers(out))
        self._functions = {f.name for f in functions} | {"matmul"}
        self._works: Dict[tuple, _Id] = {}

    def _check(self, status: int) -> None:
        if status and self._host is None:
            raise PealError(STATUS.index("closed"), "the host is closed")
        if status:
            raise PealError(status, (_error(self._host) or b"").decode(errors="replace"))

    def close(self) -> None:
        """Waits for all tasks and ends the workers."""
        if self._host is not None:
            _close(self._host)
            self._host = None

    def __enter__(self) -> "Host":
        return self

    def __exit__(self, *details: Any) -> None:
        self.close()

    @property
    def platform(self) -> str:
        return _platform(self._host).decode()

    def pid(self, worker: int) -> int:
        return _pid(self._host, worker)

    def domain(self, workers: Sequence[int], name: Optional[str] = None, buffers: Optional[Dict[str, tuple]] = None) -> Domain:
        """A domain of these workers; buffers: name -> (dtype, count)."""
        members = (c_uint32 * max(len(workers), 1))(*workers)
        named = buffers or {}
        rows = [_BufferSpec(ctypes.sizeof(_BufferSpec), text(key), dtype_number(d), n) for key, (d, n) in named.items()]
        table = (_BufferSpec * max(len(named), 1))(*rows)
        spec = _DomainSpec(ctypes.sizeof(_DomainSpec), text(name), members, len(workers), table, len(named))
        out = _Id()
        self._check(_domain_new(self._host, ctypes.byref(spec), ctypes.byref(out)))
        return Domain(self, out, named)

    def tensor(self, shape: Union[int, Sequence[int]], dtype: str = "f32", worker: Optional[int] = None,
               shard: Optional[int] = None, domain: Optional[Domain] = None, name: Optional[str] = None) -> Tensor:
        """On one worker, or replicated over a domain (all workers by default), or cut along dimension `shard`."""
        extents = (shape,) if isinstance(shape, int) else tuple(shape)
        place = ON_WORKER if worker is not None else SHARDED if shard is not None else REPLICATED
        spec = _TensorSpec(ctypes.sizeof(_TensorSpec), text(name), dtype_number(dtype), len(extents),
                           (c_uint64 * MOST_DIMS)(*extents[:MOST_DIMS]), place,
                           worker or 0, domain._id if domain else _Id(0), shard or 0)
        out = _Id()
        self._check(_tensor_new(self._host, ctypes.byref(spec), ctypes.byref(out)))
        return Tensor(self, out, extents, dtype)

    def _work(self, work: str, kernel: Optional[str]) -> _Id:
        key = (work, kernel)
        if key not in self._works:
            out = _Id()
            if work in self._functions:
                self._check(_work_function(self._host, text(work), ctypes.byref(out)))
            elif "{" in work:
                self._check(_work_kernel(self._host, text(work), text(kernel), ctypes.byref(out)))
            else:
                self._check(_work_kernel(self._host, None, text(work), ctypes.byref(out)))
            self._works[key] = out
        return self._works[key]

    def _operation(self, op: str) -> int:
        """Of a name, or of a user-defined reduction such as "reduce mine(a, b) = a / 2 + b"."""
        if "(" not in op:
            return reduction_number(op)
        out = c_int()
        self._check(_declare(self._host, text(op), None, ctypes.byref(out)))
        return out.value

    def _spec(self, work: str, args: Sequence[Any], worker: Optional[int], domain: Optional[Domain], kernel: Optional[str],
              name: Optional[str], dims: Optional[Dict[str, int]]) -> Tuple[_TaskSpec, List[Any]]:
        """The task as the library takes it, and what must live until it was taken."""
        kept: List[Any] = []
        list_of = (_TaskArg * max(len(args), 1))()
        for i, value in enumerate(args):
            if isinstance(value, Tensor):
                list_of[i] = _TaskArg(kind=_TENSOR, tensor=value._id, first=value._first, count=value._count)
            elif isinstance(value, str):
                list_of[i] = _TaskArg(kind=_REDUCE, reduce=self._operation(value))
            elif isinstance(value, Integral):
                list_of[i] = _TaskArg(kind=_INT, value=int(value))
            else:
                if not hasattr(value, "__len__"):
                    raise TypeError(f"argument {i} is a tensor, an int, a list of ints or an operation, not {value!r}")
                numbers = (c_int64 * max(len(value), 1))(*value)
                kept.append(numbers)
                list_of[i] = _TaskArg(kind=_INTS, values=numbers, nvalues=len(value))
        given = [_Dim(text(key), value) for key, value in (dims or {}).items()]
        dim_array = (_Dim * max(len(given), 1))(*given)
        spec = _TaskSpec(ctypes.sizeof(_TaskSpec), text(name), self._work(work, kernel), worker or 0, domain._id if domain else _Id(0),
                         int(worker is None and domain is None), list_of, len(args), dim_array, len(given))
        return spec, kept

    def submit(self, work: str, *args: Any, worker: Optional[int] = None, domain: Optional[Domain] = None,
               kernel: Optional[str] = None, name: Optional[str] = None, dims: Optional[Dict[str, int]] = None) -> Task:
        """Queues a task: a library kernel's name, Peal text, or a function's name; on a worker, a domain, or everyone.

        args: tensors (or parts of them), ints, lists of ints, operations such as "sum" or "reduce mine(a, b) = a / 2 + b".
        """
        spec, _kept = self._spec(work, args, worker, domain, kernel, name, dims)
        out = _Id()
        self._check(_submit(self._host, ctypes.byref(spec), ctypes.byref(out)))
        return Task(self, out)

    def try_submit(self, work: str, *args: Any, worker: Optional[int] = None, domain: Optional[Domain] = None,
                   kernel: Optional[str] = None, name: Optional[str] = None,
                   dims: Optional[Dict[str, int]] = None) -> Optional[Task]:
        """As submit(), but None, with nothing queued, where that would wait because too many tasks are under way."""
        spec, _kept = self._spec(work, args, worker, domain, kernel, name, dims)
        out = _Id()
        status = _try_submit(self._host, ctypes.byref(spec), ctypes.byref(out))
        if status == PENDING:
            return None
        self._check(status)
        return Task(self, out)

    def wait(self) -> None:
        """Waits for everything; raises PealError for the first task that failed since the last call."""
        self._check(_wait_all(self._host))

    def hold(self) -> None:
        """Tasks are recorded and not started, until go()."""
        self._check(_hold(self._host))

    def go(self) -> None:
        self._check(_go(self._host))

    def check(self) -> None:
        """Proves the held graph; raises PealError with what is wrong."""
        self._check(_check(self._host))

    def stats(self) -> Dict[str, int]:
        out = _Stats()
        self._check(_stats(self._host, ctypes.byref(out), ctypes.sizeof(out)))
        return {name: getattr(out, name) for name in _STATS}

    def write(self, kind: str, path: str) -> None:
        """A file about the recorded tasks: "trace", "graph", "path" or "page"."""
        if kind not in _files:
            raise ValueError(f"there is no file '{kind}': " + ", ".join(_files))
        self._check(_files[kind](self._host, text(path)))
