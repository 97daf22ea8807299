# SPDX-License-Identifier: Apache-2.0
"""Kernels as Python functions: the function is called once, with values that record what is done to them.

    @peal.kernel(implements="allreduce")
    def ring(k, x: "in T[n]", y: "out T[n]", op: "reduce"):
        right, left = (k.rank + 1) % k.nranks, (k.rank - 1) % k.nranks
        acc, cur = k.let(x), k.let(x)
        for s in k.range(1, k.nranks):
            k.send(cur, right)
            cur[:] = k.recv(left)
            acc[:] = op(acc, cur)
        y[:] = k.final(op, acc)

    print(ring.text)                      the kernel in Peal's language: everything else works on that
    peal.verify(ring); peal.simulate(ring, ...); comm.set_algorithm("allreduce", ring)

The first parameter is the recorder. Annotations of the others are written as in the language (docs/language.md): "in T[n]",
"inout window T[n]", "f32[rows_x, cols_x]", "int", "int = 2 * n", "local int", "int[nranks]", "reduce". A Python `for` over
k.range or k.peers and a `with k.if_(...)` record a block; plain Python loops and branches are done while recording.
"""
from __future__ import annotations

import ast
import ctypes
import dis
import inspect
import re
import sys
from contextlib import contextmanager
from ctypes import c_bool, c_char_p, c_double, c_int64, c_size_t, c_uint, c_uint32, c_void_p
from typing import Any, Callable, Iterator, List, Optional, Union

from ._library import REDUCTIONS, PealError, function, text


class _Memory(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("elem", c_char_p), ("len", c_void_p), ("cols", c_void_p), ("dir", c_uint),
                ("window", c_bool), ("wide", c_bool)]


class _Sync(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("relaxed", c_bool), ("set", c_bool), ("equal", c_bool), ("back", c_uint32)]


class _Over(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("start", c_void_p), ("stop", c_void_p), ("where", c_void_p)]


class _Slice(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("a", c_void_p), ("b", c_void_p)]


_P, _S = c_void_p, c_char_p
_MEMORY, _SYNC = ctypes.POINTER(_Memory), ctypes.POINTER(_Sync)
_ALL, _INDEX, _RANGE, _PART = range(4)
# What each function takes after the builder; those that return an expression are followed by True.
_SIGNATURES = {
    "kernel": ([_S, _S], False), "doc": ([_S], False), "param": ([_S, _MEMORY], True), "int_param": ([_S, c_bool, _P], True),
    "ints_param": ([_S, c_bool, _P], True), "reduce_param": ([_S], True), "window": ([_S, _MEMORY], True),
    "private": ([_S, _MEMORY], True), "signal": ([_S, _S, _P], True), "channel": ([_S], True),
    "grid": ([_P, _P, c_bool], False), "tree": ([_P, _P], False), "int": ([c_int64], True), "real": ([c_double], True),
    "name": ([_S], True), "op": ([_S, _P, _P], True), "apply": ([_P, _P, _P], True), "index": ([_P, _P], True),
    "range": ([_P, _P, _P], True), "part": ([_P, _P, _P], True), "block": ([_P, _Slice, _Slice], True), "at": ([_P, _P], True),
    "launch": ([], True), "launch_mod": ([ctypes.c_int], True), "port": ([_S, _P], True), "recv": ([_P, _P], True), "recv_slot": ([_P, _P], True),
    "recv_async": ([_P, _P], True), "await": ([_P, _P], False), "peek": ([_P], True), "fetch_add": ([_P, _P], True),
    "compare_swap": ([_P, _P, _P], True), "let": ([_S, _MEMORY, _P], True), "var": ([_S, _P], True), "assign": ([_P, _P], False),
    "accumulate": ([_P, _P, _P, c_bool], False), "notify": ([_P, _P, _SYNC], False), "wait": ([_P, _P, _SYNC], False),
    "take": ([_P, _P, _P], False), "order": ([_S, _S], False), "fence": ([], False), "lane_block": ([_P], False),
    "send": ([_P, _P, _P], False), "flush": ([_P], False), "free": ([_P], False),
    "assert": ([_P, _S], False), "requires": ([_P], False), "ensures": ([_P, _P, _P], False),
    "reduced": ([_P, ctypes.POINTER(_Over), _P], True), "call_list": ([ctypes.POINTER(_P), c_size_t], True),
    "run_list": ([ctypes.POINTER(_P), c_size_t], False), "for": ([_S, _P, _P, _P], True), "for_peers": ([_S], True),
    "if": ([_P], False), "else": ([], False), "when": ([_P], False), "lane": ([], False), "lanes": ([_S, _P, _P], True),
    "end": ([], False)}
_build = {name: function("peal_build_" + name, [_P] + types, _P if returns else None)
          for name, (types, returns) in _SIGNATURES.items()}
_new = function("peal_builder_new", [], _P)
_free = function("peal_builder_free", [_P], None)
_text = function("peal_builder_text", [_P], _P)
_error = function("peal_builder_error", [_P], _S)
_c_free = ctypes.CDLL(None).free
_c_free.argtypes, _c_free.restype = [_P], None

_NAMES = {"rank", "nranks", "node", "nodes", "seat", "seats", "max_seats", "row", "col", "rows", "cols", "nchildren"}
_EXPRESSIONS = {"int", "real", "name", "op", "apply", "index", "range", "part", "block", "at", "launch", "launch_mod", "port", "recv",
                "recv_slot", "recv_async", "reduced", "peek", "fetch_add", "compare_swap", "call_list"}
_PORTS = {"N", "S", "E", "W", "parent", "child"}
_DIRECTIONS = {"": 0, "in": 1, "out": 2, "inout": 3}


class Value:
    """An integer, a place in memory, a tile or a signal of the kernel that is being recorded."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, k: "Recorder", handle: Optional[int]) -> None:
        self._k, self._handle = k, handle

    def _op(self, op: str, a: Any, b: Any) -> "Value":
        return self._k._make("op", text(op), a, b)

    def __add__(self, other: Any) -> "Value":
        return self._op("+", self, other)

    def __radd__(self, other: Any) -> "Value":
        return self._op("+", other, self)

    def __sub__(self, other: Any) -> "Value":
        return self._op("-", self, other)

    def __rsub__(self, other: Any) -> "Value":
        return self._op("-", other, self)

    def __mul__(self, other: Any) -> "Value":
        return self._op("*", self, other)

    def __rmul__(self, other: Any) -> "Value":
        return self._op("*", other, self)

    def __truediv__(self, other: Any) -> "Value":
        return self._op("/", self, other)

    def __rtruediv__(self, other: Any) -> "Value":
        return self._op("/", other, self)

    __floordiv__, __rfloordiv__ = __truediv__, __rtruediv__

    def __mod__(self, other: Any) -> "Value":
        return self._op("%", self, other)

    def __rmod__(self, other: Any) -> "Value":
        return self._op("%", other, self)

    def __and__(self, other: Any) -> "Value":
        return self._op("&", self, other)

    def __or__(self, other: Any) -> "Value":
        return self._op("|", self, other)

    def __xor__(self, other: Any) -> "Value":
        return self._op("^", self, other)

    def __lshift__(self, other: Any) -> "Value":
        return self._op("<<", self, other)

    def __rshift__(self, other: Any) -> "Value":
        return self._op(">>", self, other)

    def __neg__(self) -> "Value":
        return self._op("-", self, None)

    def __eq__(self, other: Any) -> "Value":  # type: ignore[override]
        return self._op("==", self, other)

    def __ne__(self, other: Any) -> "Value":  # type: ignore[override]
        return self._op("!=", self, other)

    def __lt__(self, other: Any) -> "Value":
        return self._op("<", self, other)

    def __le__(self, other: Any) -> "Value":
        return self._op("<=", self, other)

    def __gt__(self, other: Any) -> "Value":
        return self._op(">", self, other)

    def __ge__(self, other: Any) -> "Value":
        return self._op(">=", self, other)

    def __bool__(self) -> bool:
        raise TypeError("what a rank finds is not known while a kernel is recorded: write 'with k.if_(condition):', "
                        "k.select(condition, a, b), k.and_(a, b)")

    def __iter__(self) -> Any:
        raise TypeError("a kernel's value cannot be iterated: write 'for i in k.range(n):'")

    def __call__(self, *operands: Any) -> "Value":
        """A reduce parameter applied to data."""
        result = operands[0]
        for operand in operands[1:]:
            result = self._k._make("apply", self, result, operand)
        return result

    def __matmul__(self, peer: Any) -> "Value":
        """x @ p: rank p's copy."""
        return self._k._make("at", self, peer)

    def _slice(self, key: Any) -> _Slice:
        h = self._k._use
        if isinstance(key, Part):
            return _Slice(_PART, h(key.c), h(key.k))
        if not isinstance(key, slice):
            return _Slice(_INDEX, h(key), None)
        if key.step is not None:
            raise TypeError("a part has no step")
        if key.start is None and key.stop is None:
            return _Slice(_ALL, None, None)
        if key.stop is None:
            raise TypeError("a part has an end: x[a:b]")
        start = 0 if key.start is None else key.start
        from_begin = isinstance(start, int) and start == 0
        return _Slice(_RANGE, h(start), h(key.stop if from_begin else key.stop - start))

    def __getitem__(self, key: Any) -> "Value":
        """x[i], x[a:b], x[k.part(c, of)]; of two dimensions m[rows, columns]. x[:] is x."""
        if isinstance(key, tuple):
            return self._k._make("block", self, self._slice(key[0]), self._slice(key[1]))
        s = self._slice(key)
        if s.kind == _ALL:
            return self
        names = {_INDEX: "index", _RANGE: "range", _PART: "part"}
        return self._k._make(names[s.kind], self, *([s.a] if s.kind == _INDEX else [s.a, s.b]))

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(value, _Done):
            self._k._do("assign", self[key], value)

    def __iadd__(self, value: Any) -> "Value":
        """place += value: an atomic accumulate into memory, as in the language."""
        self._k.accumulate(self, value)
        return _Done(self._k, self._handle)


class _Done(Value):
    """What += returns: the statement is recorded, and the assignment that Python makes of it is none."""


class Part:
    """c of k."""

    def __init__(self, c: Any, k: Any) -> None:
        self.c, self.k = c, k


def _assigned_name(depth: int) -> Optional[str]:
    """The name to which the caller's caller assigns the value that is being made, if it is a plain one."""
    frame = sys._getframe(depth)
    following = (i for i in dis.get_instructions(frame.f_code) if i.offset > frame.f_lasti and i.opname != "CACHE")
    first = next(following, None)
    return first.argval if first is not None and first.opname in ("STORE_FAST", "STORE_NAME", "STORE_DEREF") else None


class Recorder:
    """What a traced function is given as its first argument: the names and statements of the language."""

    def __init__(self) -> None:
        self._b = _new()
        self._dims: set = set()
        self._if_is_open = False  # its block is over, and an `else` may follow

    def __getattr__(self, name: str) -> Value:
        """rank, nranks, the placement, and the dimensions of parameters."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _NAMES or name in self.__dict__.get("_dims", ()):
            return self._make("name", text(name))
        raise AttributeError(f"a kernel has no '{name}': neither a dimension of its parameters nor a name of the language")

    def _use(self, value: Any) -> Optional[int]:
        if value is None or isinstance(value, Value):
            return None if value is None else value._handle
        if isinstance(value, bool):
            raise TypeError("True and False are no values of a kernel")
        if isinstance(value, int):
            return _build["int"](self._b, value)
        if isinstance(value, float):
            return _build["real"](self._b, value)
        if isinstance(value, str) and value in REDUCTIONS:
            return _build["name"](self._b, text(value))
        if isinstance(value, str):
            name, _, number = value.partition(" ")
            if name not in _PORTS or (number and not number.isdigit()):
                raise TypeError(f"{value!r} is neither a reduction nor a port (N, S, E, W, parent, 'child 0'): names and shapes "
                                "are values, such as k.nranks and k.n")
            return _build["port"](self._b, text(name), self._use(int(number)) if number else None)
        raise TypeError(f"{value!r} is no value of a kernel")

    def _make(self, name: str, *arguments: Any) -> Value:
        return Value(self, _build[name](self._b, *self._converted(name, arguments)))

    def _do(self, name: str, *arguments: Any) -> None:
        _build[name](self._b, *self._converted(name, arguments))

    def _converted(self, name: str, arguments: Any) -> List[Any]:
        """Python's values become expressions; handles that _slice made are passed on. A statement ends the `if` before it."""
        if name == "else":
            self._if_is_open = False
        elif name not in _EXPRESSIONS:
            self._flush()
        types = _SIGNATURES[name][0]
        raw = name in ("index", "range", "part")
        return [self._use(a) if kind is _P and not (raw and i) else a
                for i, (kind, a) in enumerate(zip(types, arguments))]

    def _memory(self, shape: Any, dtype: str, wide: bool = False, direction: int = 0, window: bool = False) -> _Memory:
        extents = shape if isinstance(shape, tuple) else (shape,)
        cols = self._use(extents[1]) if len(extents) == 2 else None
        return _Memory(ctypes.sizeof(_Memory), text(dtype), self._use(extents[0]), cols, direction, window, wide)

    # ---- declarations; names are those of the variables they are assigned to ----

    def window(self, *shape: Any, dtype: str = "T", wide: bool = False, name: Optional[str] = None) -> Value:
        """Scratch that peers can address."""
        memory = self._memory(shape, dtype, wide)
        return self._make("window", text(name or _assigned_name(2) or "w"), ctypes.byref(memory))

    def private(self, *shape: Any, dtype: str = "T", wide: bool = False, name: Optional[str] = None) -> Value:
        memory = self._memory(shape, dtype, wide)
        return self._make("private", text(name or _assigned_name(2) or "w"), ctypes.byref(memory))

    def signal(self, cells: Any = None, mode: Optional[str] = None, name: Optional[str] = None) -> Value:
        """cells None: one. mode: None (one writer), "shared", "raw", "raw uninitialised"."""
        return self._make("signal", text(name or _assigned_name(2) or "s"), text(mode), cells)

    def channel(self, name: Optional[str] = None) -> Value:
        return self._make("channel", text(name or _assigned_name(2) or "c"))

    def grid(self, rows: Any, cols: Any, torus: bool = False) -> None:
        self._do("grid", rows, cols, torus)

    def tree(self, arity: Any, root: Any = None) -> None:
        self._do("tree", arity, root)

    # ---- values ----

    def let(self, value: Any, *shape: Any, dtype: str = "T", wide: bool = False, name: Optional[str] = None) -> Value:
        """A name for a value. Data is copied to a tile, which later statements may change: t[:] = value. What is received needs a
        shape: k.let(k.recv(p), n)."""
        memory = ctypes.byref(self._memory(shape, dtype, wide)) if shape else None
        return self._make("let", text(name or _assigned_name(2) or "t"), memory, value)

    def var(self, value: Any, name: Optional[str] = None) -> Value:
        """An integer that later statements may change: v[:] = v + 1."""
        return self._make("var", text(name or _assigned_name(2) or "v"), value)

    def call(self, name: str, *arguments: Any) -> Value:
        """A function of the language by its name."""
        return self._make("call_list", *self._words(name, arguments))

    def run(self, name: Union[str, "Kernel"], *arguments: Any) -> None:
        """Calls a kernel or collective: k.run("allreduce", g, "sum")."""
        self._do("run_list", *self._words(name.name if isinstance(name, Kernel) else name, arguments))

    def _words(self, name: str, arguments: Any) -> Any:
        handles = [self._make("name", text(a)) if isinstance(a, str) and a not in REDUCTIONS else a for a in arguments]
        word = ctypes.create_string_buffer(name.encode())
        words = (c_void_p * (len(handles) + 1))(ctypes.addressof(word), *[self._use(h) for h in handles])
        self._kept = word
        return words, len(words)

    def part(self, c: Any, k: Any) -> Part:
        """x[k.part(c, of)]: x[c of k]."""
        return Part(c, k)

    def final(self, op: Any, value: Any) -> Value:
        return self.call("final", op, value)

    def fill(self, value: Any, *shape: Any) -> Value:
        return self.call("fill", value, *shape)

    def select(self, condition: Any, a: Any, b: Any) -> Value:
        return self.call("select", condition, a, b)

    def matmul(self, a: Any, b: Any) -> Value:
        return self.call("matmul", a, b)

    def min(self, *values: Any) -> Value:
        return self.call("min", *values)

    def max(self, *values: Any) -> Value:
        return self.call("max", *values)

    def cdiv(self, a: Any, b: Any) -> Value:
        return self.call("cdiv", a, b)

    def log2(self, a: Any) -> Value:
        return self.call("log2", a)

    def and_(self, a: Any, b: Any) -> Value:
        return self._make("op", text("and"), a, b)

    def or_(self, a: Any, b: Any) -> Value:
        return self._make("op", text("or"), a, b)

    def not_(self, a: Any) -> Value:
        return self._make("op", text("not"), a, None)

    def launch(self) -> Value:
        return self._make("launch")

    def launch_mod(self, k: int) -> Value:
        return self._make("launch_mod", k)

    def recv(self, peer: Any, on: Optional[Value] = None) -> Value:
        return self._make("recv", peer, on)

    def recv_slot(self, peer: Any, on: Optional[Value] = None) -> Value:
        return self._make("recv_slot", peer, on)

    def recv_async(self, peer: Any, on: Optional[Value] = None) -> Value:
        """f = k.let(k.recv_async(p), n) ... k.wait(f)"""
        return self._make("recv_async", peer, on)

    def peek(self, cell: Any) -> Value:
        return self._make("peek", cell)

    def fetch_add(self, cell: Any, amount: Any, order: Optional[str] = None, scope: Optional[str] = None) -> Value:
        self._order(order, scope)
        return self._make("fetch_add", cell, amount)

    def compare_swap(self, cell: Any, expected: Any, desired: Any, order: Optional[str] = None,
                     scope: Optional[str] = None) -> Value:
        self._order(order, scope)
        return self._make("compare_swap", cell, expected, desired)

    # ---- statements ----

    def accumulate(self, place: Value, value: Any, op: Any = None, exclusive: bool = False) -> None:
        self._do("accumulate", place, op, value, exclusive)

    def _order(self, order: Optional[str], scope: Optional[str]) -> None:
        if order is not None or scope is not None:
            self._do("order", text(order) if order else None, text(scope) if scope else None)

    def fence(self, order: Optional[str] = None, scope: Optional[str] = None) -> None:
        """Orders what this lane did before it and does after it, through relaxed operations on cells."""
        self._order(order, scope)
        self._do("fence")

    def notify(self, cell: Value, value: Any = 1, set: bool = False, relaxed: bool = False, order: Optional[str] = None,
               scope: Optional[str] = None) -> None:
        self._order(order, scope)
        sync = _Sync(ctypes.sizeof(_Sync), relaxed, set, False, 0)
        self._do("notify", cell, value, ctypes.byref(sync))

    def wait(self, cell: Value, value: Any = None, equal: bool = False, relaxed: bool = False, back: int = 0,
             into: Optional[Value] = None, order: Optional[str] = None, scope: Optional[str] = None) -> None:
        """Until a cell holds at least a value; without one, until what recv_async names has been received."""
        if value is None:
            if order is not None or scope is not None:
                raise ValueError("what recv_async names is waited for without an order")
            self._do("await", cell, into)
            return
        self._order(order, scope)
        sync = _Sync(ctypes.sizeof(_Sync), relaxed, False, equal, back)
        self._do("wait", cell, value, ctypes.byref(sync))

    def take(self, cell: Value, expected: Any, desired: Any, order: Optional[str] = None,
             scope: Optional[str] = None) -> None:
        self._order(order, scope)
        self._do("take", cell, expected, desired)

    def send(self, value: Any, peer: Any, on: Optional[Value] = None) -> None:
        self._do("send", value, peer, on)

    def flush(self, rank: Any) -> None:
        self._do("flush", rank)

    def free(self, tile: Value) -> None:
        self._do("free", tile)

    def require(self, condition: Any, message: str) -> None:
        """assert condition, message"""
        self._do("assert", condition, text(message))

    # ---- what the kernel promises (docs/contracts.md) ----

    def requires(self, condition: Any) -> None:
        """What the caller promises."""
        self._do("requires", condition)

    def ensures(self, place: Value, value: Any, where: Any = None) -> None:
        """What a part of a parameter holds at the end: i = k.each(); k.ensures(y[i], (x @ left)[i + 1], where=i < k.n - 1)."""
        self._do("ensures", place, value, where)

    def each(self, name: Optional[str] = None) -> Value:
        """An index that stands for all elements of the place of an ensures."""
        return self._make("name", text(name or _assigned_name(2) or "i"))

    def old(self, place: Value) -> Value:
        """What a parameter that the kernel changes held when the launch began."""
        return self.call("old", place)

    def reduced(self, op: Any, start: Any, stop: Any, value: Callable[[Value], Any],
                where: Optional[Callable[[Value], Any]] = None) -> Value:
        """In an ensures: k.reduced("sum", 0, k.nranks, lambda q: (x @ q)[i], where=lambda q: q != k.rank)."""
        name = next(iter(inspect.signature(value).parameters))
        each = self._make("name", text(name))
        chosen = self._use(where(each)) if where else None
        over = _Over(text(name), self._use(start), self._use(stop), chosen)
        return self._make("reduced", op, ctypes.byref(over), value(each))

    # ---- blocks ----

    def range(self, *bounds: Any, name: Optional[str] = None) -> Iterator[Value]:
        """for i in k.range(n), k.range(a, b), k.range(a, b, step): the body is recorded once."""
        start, stop, step = (0, bounds[0], None) if len(bounds) == 1 else (*bounds, None)[:3]
        name = name or _loop_name(2)

        def once() -> Iterator[Value]:
            variable = self._make("for", text(name), start, stop, step)
            try:
                yield variable
            finally:
                self._do("end")
        return once()

    @property
    def peers(self) -> Iterator[Value]:
        """for p in k.peers: all ranks but this one."""
        name = _loop_name(2)

        def once() -> Iterator[Value]:
            variable = self._make("for_peers", text(name))
            try:
                yield variable
            finally:
                self._do("end")
        return once()

    @contextmanager
    def _block(self, name: str, *arguments: Any) -> Iterator[Any]:
        yield self._make(name, *arguments) if _SIGNATURES[name][1] else self._do(name, *arguments)
        self._do("end")

    @contextmanager
    def if_(self, condition: Any) -> Iterator[None]:
        self._do("if", condition)
        yield
        self._end_if()

    @contextmanager
    def else_(self) -> Iterator[None]:
        """Directly after a `with k.if_(...)`."""
        self._do("else")
        yield
        self._do("end")

    def _end_if(self) -> None:
        self._flush()
        self._if_is_open = True

    def _flush(self) -> None:
        if self._if_is_open:
            self._if_is_open = False
            _build["end"](self._b)

    def when(self, condition: Any) -> Any:
        return self._block("when", condition)

    @contextmanager
    def lane(self, block: Any = None) -> Iterator[None]:
        """`block`: lanes of a rank with the same number are one block."""
        self._do("lane")
        if block is not None:
            self._do("lane_block", block)
        yield
        self._do("end")


def _loop_name(depth: int) -> str:
    """The variable of the `for` whose iterable is being made."""
    frame = sys._getframe(depth)
    found = False
    for i in dis.get_instructions(frame.f_code):
        if i.offset <= frame.f_lasti:
            continue
        if i.opname == "FOR_ITER":
            found = True
        elif found and i.opname in ("STORE_FAST", "STORE_NAME", "STORE_DEREF"):
            return str(i.argval)
        elif found and i.opname != "CACHE":
            break
    return "i"


class _Names(dict):
    """The names of a shape that is written in an annotation: functions of the language, and dimensions."""

    def __init__(self, k: Recorder, known: dict) -> None:
        super().__init__()
        self._k, self._known = k, known

    def __missing__(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        if name in ("part", "cdiv", "min", "max", "log2", "sum", "select"):
            return lambda *arguments: self._k.call(name, *arguments)
        if name not in _NAMES:
            self._k._dims.add(name)
        return self._k._make("name", text(name))


_PARAM = re.compile(r"\s*(?:(inout|in|out|local)\s+)?(?:(window)\s+)?(\w+)\s*(?:\[(.*)\])?\s*(?:=(.*))?$", re.DOTALL)


def _parameter(k: Recorder, name: str, words: str, known: dict) -> Value:
    match = _PARAM.match(words)
    if not match:
        raise TypeError(f"the annotation of '{name}' is not a parameter of the language: {words!r}")
    first, window, kind, shape, initial = match.groups()
    names = _Names(k, known)

    def value(expression: str) -> Any:
        return eval(compile(ast.parse(expression.strip(), mode="eval"), words, "eval"), {"__builtins__": {}}, names)
    if kind == "reduce":
        return k._make("reduce_param", text(name))
    if kind == "int" and shape:
        return k._make("ints_param", text(name), first == "local", value(shape))
    if kind == "int":
        return k._make("int_param", text(name), first == "local", value(initial) if initial else None)
    if not shape or first == "local":
        raise TypeError(f"'{name}' has no shape: {words!r}")
    extents = value(f"({shape},)")
    memory = k._memory(extents, kind, False, _DIRECTIONS[first or ""], bool(window))
    return k._make("param", text(name), ctypes.byref(memory))


class Kernel:
    """A traced function: `text` is the kernel in Peal's language, `name` its name."""

    def __init__(self, body: Callable[..., Any], implements: Optional[str], uses: List["Kernel"]) -> None:
        self.name, self.__doc__ = body.__name__, body.__doc__
        k = Recorder()
        try:
            _build["kernel"](k._b, text(self.name), text(implements))
            if self.__doc__:
                _build["doc"](k._b, text(inspect.cleandoc(self.__doc__)))
            known: dict = {}
            parameters = list(inspect.signature(body).parameters.values())[1:]
            for parameter in parameters:
                words = parameter.annotation
                if not isinstance(words, str):
                    raise TypeError(f"parameter '{parameter.name}' needs an annotation such as \"in T[n]\"")
                if words[:1] in "'\"":  # quoted again by `from __future__ import annotations`
                    words = ast.literal_eval(words)
                known[parameter.name] = _parameter(k, parameter.name, words, known)
            body(k, *known.values())
            k._flush()
            made = _text(k._b)
            if not made:
                raise PealError(1, (_error(k._b) or b"").decode())
            own = ctypes.string_at(made).decode()
            _c_free(made)
        finally:
            _free(k._b)
        self.text = "\n".join([other.text for other in uses] + [own])

    def __str__(self) -> str:
        return self.text


def kernel(body: Optional[Callable[..., Any]] = None, *, implements: Optional[str] = None, uses: Any = ()) -> Any:
    """Makes a Kernel of a function; see the module's description. uses: kernels that k.run calls."""
    if body is not None:
        return Kernel(body, implements, list(uses))
    return lambda function_: Kernel(function_, implements, list(uses))
