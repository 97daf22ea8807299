# SPDX-License-Identifier: Apache-2.0
"""iris: symmetric tensors of a heap, and the device functions that reach a peer's.

The host class and the device functions are stand-ins, because iris itself opens the device. What else the package `iris` has (collectives,
examples) is taken from the authors' text, if it is on the path.
"""
from __future__ import annotations

import os
import sys
import types
from typing import Any, Callable, Dict

import numpy

from . import core, data, program, spins, symm, tensor, torch
from .program import standin
from .tensor import DTYPES, FLOAT32, Tensor, empty, unpack
from . import triton as language

KINDS = {"add": "add", "sub": "sub", "xchg": "set", "xor": "xor", "and": "and", "or": "or", "min": "min", "max": "max"}  # as spins.atomic has them


class Iris:
    """What iris.iris() returns."""

    def __init__(self, heap_size: int = 1 << 30, *_: Any, **__: Any) -> None:
        rank = program.rank()
        self.cur_rank = self.gpu_id = rank.index
        self.num_ranks, self.heap_size, self.device = program.world_size(), heap_size, tensor.device("cuda")
        program.exchange(None)
        bases = [core.heap(one) for one in range(self.num_ranks)]
        self.heap_bases = empty((self.num_ranks,), DTYPES["uint64"], self.device, name="heap_bases")
        tensor.write_device(self.heap_bases, numpy.array(bases, numpy.uint64))
        self.heap_bases._storage.region.constant = True

    # ---- tensors ----

    def _new(self, size: Any, dtype: Any, zeroed: bool = False) -> Tensor:  # pylint: disable=redefined-outer-name
        return empty([int(one) for one in size], dtype, "cuda", True, zeroed)

    def zeros(self, *size: Any, dtype: Any = DTYPES["int32"], **_: Any) -> Tensor:
        return self._new(unpack(size), dtype, True)

    def empty(self, *size: Any, dtype: Any = FLOAT32, **_: Any) -> Tensor:
        return self._new(unpack(size), dtype)

    def full(self, size: Any, fill_value: Any, *_: Any, dtype: Any = DTYPES["int32"], **__: Any) -> Tensor:
        return self._new(size, dtype).fill_(fill_value)

    def ones(self, *size: Any, dtype: Any = FLOAT32, **_: Any) -> Tensor:
        return self._new(unpack(size), dtype).fill_(1)

    def randn(self, *size: Any, dtype: Any = FLOAT32, **_: Any) -> Tensor:
        return self._new(unpack(size), dtype).random_data_()

    rand = randn

    def uniform(self, size: Any, *_: Any, dtype: Any = FLOAT32, **__: Any) -> Tensor:
        return self.randn(size, dtype=dtype)

    def randint(self, *bounds: Any, dtype: Any = DTYPES["int64"], **named: Any) -> Tensor:
        size = next(one for one in (*bounds, named.get("size")) if isinstance(one, (tuple, list)))
        limits = [one for one in bounds if not isinstance(one, (tuple, list))] or [named["low"], named["high"]]
        return self._copy(torch.randint(*limits, tuple(size)), dtype)

    def arange(self, *bounds: Any, dtype: Any = None, **named: Any) -> Tensor:
        if named.get("end") is not None:
            bounds = (*(bounds or (named.get("start", 0),)), named["end"], named.get("step", 1))
        return self._copy(torch.arange(*bounds, dtype=dtype), None)

    def linspace(self, start: Any, end: Any, steps: Any, dtype: Any = FLOAT32, **_: Any) -> Tensor:
        return self._new(unpack((steps,)), dtype).random_data_()

    def zeros_like(self, other: Tensor, *_: Any, dtype: Any = None, **__: Any) -> Tensor:
        return self._new(other.shape, dtype or other.dtype, True)

    def empty_like(self, other: Tensor, *_: Any, dtype: Any = None, **__: Any) -> Tensor:
        return self._new(other.shape, dtype or other.dtype)

    def _copy(self, source: Tensor, dtype: Any) -> Tensor:
        return self._new(source.shape, dtype or source.dtype).copy_(source)

    as_symmetric = _copy

    # ---- ranks ----

    def get_heap_bases(self) -> Tensor:
        return self.heap_bases

    def get_rank(self) -> int:
        return self.cur_rank

    def get_num_ranks(self) -> int:
        return self.num_ranks

    def get_device(self) -> Any:
        return self.device

    def get_cu_count(self) -> int:
        return torch.SMS

    def barrier(self, *_: Any, **__: Any) -> None:
        torch.synchronize_streams()
        symm.barrier()

    device_barrier = barrier

    def broadcast(self, value: Any, source_rank: Any = 0) -> Any:
        """Both orders of the arguments have been in use: the rank is the small integer of rank's range."""
        if not isinstance(source_rank, int) or isinstance(value, int) and not isinstance(source_rank, int):
            value, source_rank = source_rank, value
        return program.exchange(value)[source_rank]

    def log(self, *_: Any) -> None:
        pass

    info = debug = warning = error = log_debug = log_stats = log


# ---- on the device ----

def translate(pointer: Any, from_rank: Any, to_rank: Any, *_: Any, **__: Any) -> Any:
    """The same place of another rank's heap."""
    pointer = data.tile(pointer)
    there = data.cast(pointer, data.pointer_type("int8")) + (data.tile(to_rank) - data.tile(from_rank)) * core.HEAP_BYTES
    return data.cast(there, pointer.dtype)


def load(pointer: Any, to_rank: Any, from_rank: Any, heap_bases: Any, mask: Any = None, other: Any = None, cache_modifier: Any = None,
         volatile: bool = False, **_: Any) -> Any:
    return language.load(translate(pointer, to_rank, from_rank), mask=mask, other=other, cache_modifier=cache_modifier, volatile=volatile)


def store(pointer: Any, value: Any, from_rank: Any, to_rank: Any, heap_bases: Any, mask: Any = None, **_: Any) -> None:
    data.store(translate(pointer, from_rank, to_rank), value, mask=mask)


def get(from_ptr: Any, to_ptr: Any, from_rank: Any, to_rank: Any, heap_bases: Any, mask: Any = None, other: Any = None, **_: Any) -> None:
    data.store(to_ptr, data.load(translate(from_ptr, from_rank, to_rank), mask=mask, other=other), mask=mask)


def put(from_ptr: Any, to_ptr: Any, from_rank: Any, to_rank: Any, heap_bases: Any, mask: Any = None, other: Any = None, **_: Any) -> None:
    data.store(translate(to_ptr, from_rank, to_rank), data.load(from_ptr, mask=mask, other=other), mask=mask)


def copy(src_ptr: Any, dst_ptr: Any, from_rank: Any, to_rank: Any, cur_rank: Any, heap_bases: Any, mask: Any = None, other: Any = None,
         **_: Any) -> None:
    found = data.load(translate(src_ptr, cur_rank, from_rank), mask=mask, other=other)
    data.store(translate(dst_ptr, cur_rank, to_rank), found, mask=mask)


def atomic_cas(pointer: Any, cmp: Any, val: Any, from_rank: Any, to_rank: Any, heap_bases: Any, sem: Any = None, scope: Any = None) -> Any:
    return spins.atomic("cas", translate(pointer, from_rank, to_rank), val, cmp, sem=sem, scope=scope)


def _atomic(kind: str) -> Callable[..., Any]:
    def atomic(pointer: Any, val: Any, from_rank: Any, to_rank: Any, heap_bases: Any, mask: Any = None, sem: Any = None, scope: Any = None,
               **_: Any) -> Any:
        value = -data.tile(val) if kind == "sub" else val
        return spins.atomic("add" if kind == "sub" else kind, translate(pointer, from_rank, to_rank), value, mask=mask, sem=sem, scope=scope)
    return atomic


def do_bench(fn: Callable[[], Any], barrier_fn: Callable[[], Any] = lambda: None, preamble_fn: Callable[[], Any] = lambda: None, *_: Any,
             **__: Any) -> float:
    """As many calls as are to be recorded, with what the caller wants between them."""
    for _call in range(program.options().calls):
        barrier_fn()
        preamble_fn()
        barrier_fn()
        fn()
    barrier_fn()
    state = program.rank().state
    state["iris.benches"] = state.get("iris.benches", 0.0) + 1.0
    return state["iris.benches"]  # a time: no two are the same, because programs subtract them


def memset_tensor(target: Tensor, value: int) -> None:
    target.fill_(value)


def modules() -> Dict[str, types.ModuleType]:
    device = {"translate": translate, "load": load, "store": store, "get": get, "put": put, "copy": copy, "atomic_cas": atomic_cas,
              **{f"atomic_{name}": _atomic(kind) for name, kind in KINDS.items()}}
    top = standin("iris", Iris=Iris, iris=Iris, do_bench=do_bench, memset_tensor=memset_tensor, **device)
    inner = standin("iris.iris", Iris=Iris, iris=Iris, **device)
    util = standin("iris.util", do_bench=do_bench, memset_tensor=memset_tensor)
    top.util = util
    for one in sys.path:
        folder = os.path.join(one, "iris")
        if os.path.exists(os.path.join(folder, "__init__.py")):
            top.__path__ = [folder]
            break
    return {one.__name__: one for one in (top, inner, util)}
