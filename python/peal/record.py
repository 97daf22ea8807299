# SPDX-License-Identifier: Apache-2.0
"""Tile kernels in Python, recorded as they are: kernel(t_ptr, n_elem, world_size, tl) is called once per rank with a `tl` that
writes down what the kernel does. The result is a recording (docs/record.md), which `peal verify`, `peal sim` and `peal run` read.

    peal.record.record("ring_allreduce.py", ranks=4)     the recording as text
    peal verify ring_allreduce.py -n 2..8                 the command does the same for each number of ranks

The file is a program of yours, and it runs: record only what you would run. It needs nothing but Python: this module imports
nothing of Peal, and the command runs it without the package.
"""
from __future__ import annotations

import argparse
import ast
import difflib
import faulthandler
import importlib.util
import inspect
import math
import os
import signal
import sys
import traceback
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple

SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
         "f8e4m3": 1, "f8e5m2": 1}
NAMES = {"fp16": "f16", "float16": "f16", "half": "f16", "bfloat16": "bf16", "fp32": "f32", "float32": "f32", "float": "f32",
         "fp64": "f64", "float64": "f64", "double": "f64", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16",
         "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64", "float8_e4m3fn": "f8e4m3", "float8e4nv": "f8e4m3",
         "fp8e4nv": "f8e4m3", "float8_e5m2": "f8e5m2", "float8e5": "f8e5m2", "fp8e5": "f8e5m2"}
DATA, SCRATCH = 0x1000_0000, 0x10_0000_0000  # addresses of the tensor and of tiles: any that are apart
GRAIN = 64
MAX_LINES = 1_000_000
SETTINGS = {"buffer_kind": "ipcq.space", "n_slots": "ipcq.slots", "slots": "ipcq.slots", "slot_size": "ipcq.slot_bytes",
            "slot_bytes": "ipcq.slot_bytes", "backpressure": "ipcq.backpressure", "credit_bytes": "credit.bytes",
            "credit_size": "credit.bytes"}
KEYS = {*SETTINGS, "buffers", "algorithm", "module", "topology", "n_elem", "dtype", "kernel", "implements", "world_size"}
PROGRAM_IMPORTS = {"triton", "torch", "iris", "triton_dist", "jax", "peal", "kraken"}
SYSTEM_PYTHON = "/usr/bin/python3"  # to which packages of the system belong
CONTRACT_NAMES = {"all_reduce": "allreduce", "all_gather": "allgather", "alltoall": "all_to_all"}
CONTRACTS = ("reduce_scatter", "all_to_all", "allreduce", "all_reduce", "allgather", "all_gather", "broadcast")


class Refused(Exception):
    """The kernel does what no plan can express; the text has its file and line."""


def shown_file(name: str) -> str:
    """A file's name as verdicts show it."""
    file = os.path.relpath(name)
    return name if file.startswith("..") else file


def _place() -> Tuple[str, int]:
    """The line of the kernel, or of what it calls, from which this module was entered."""
    frame = sys._getframe(1)  # pylint: disable=protected-access
    while frame and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return (shown_file(frame.f_code.co_filename), frame.f_lineno) if frame else ("", 0)


class Writer:
    """What one rank does: lines of a recording, each after its position in the author's file."""

    def __init__(self) -> None:
        self.lines: List[Any] = []
        self.last: Tuple[str, int] = ("", 0)

    def say(self, text: Any, place: Tuple[str, int]) -> int:
        """Adds a line; its index."""
        if place != self.last:
            self.lines.append(f"at {place[1]} {place[0]}")
            self.last = place
        self.lines.append(text)
        return len(self.lines) - 1

    def raw(self, text: str) -> None:
        """A line that needs no position."""
        self.lines.append(text)

    def forget(self) -> None:
        """The next line says its position again."""
        self.last = ("", 0)


def head(name: str, ranks: int, launches: int, contract: Optional[str], slots: Optional[int] = None) -> List[str]:
    """How a recording begins. contract: what follows the word `implements`."""
    lines = ["peal recording 1", f"ranks {ranks}", f"kernel {name}", f"launches {launches}"]
    if slots is not None:
        lines.append(f"slots {slots}")
    return lines + ([f"implements {contract}"] if contract else [])


def _refuse(why: str) -> Refused:
    file, line = _place()
    return Refused(f"{file}:{line}: {why}")


def short_name(name: str) -> Optional[str]:
    """Peal's name of a type, by any name that it has elsewhere."""
    name = NAMES.get(name, name)
    return name if name in SIZES else None


def _dtype(given: Any) -> str:
    found = short_name(str(getattr(given, "name", given)).rsplit(".", maxsplit=1)[-1])
    if found is None:
        raise _refuse(f"'{given}' is not a type that Peal has")
    return found


def _count(shape: Any) -> int:
    parts = (shape,) if isinstance(shape, int) else tuple(shape)
    if not parts or any(not isinstance(part, int) or part < 0 for part in parts):
        raise _refuse(f"{shape!r} is not a shape")
    return math.prod(parts)


class Pointer:
    """An address of the rank's tensor, in bytes, as addresses are."""

    def __init__(self, address: int) -> None:
        self.address = address

    def __add__(self, offset: int) -> Pointer:
        if not isinstance(offset, int):
            raise _refuse("an address is moved by a number that the kernel does not know here")
        return Pointer(self.address + offset)

    __radd__ = __add__

    def __sub__(self, offset: int) -> Pointer:
        return self + -offset


class Handle:
    """A tile: a value that the kernel has, but does not see."""

    def __init__(self, tl: TL, shape: Any, dtype: str) -> None:
        self.tl, self.shape, self.dtype = tl, shape, dtype
        self.count = _count(shape)
        self.address = tl.allocate(self.count * SIZES[dtype])

    def __del__(self) -> None:
        if hasattr(self, "address"):
            self.tl.release(self.address, self.count * SIZES[self.dtype])

    def __str__(self) -> str:
        return f"{self.dtype}@{self.address:#x}*{self.count}"

    def __bool__(self, *_: Any) -> bool:
        raise _refuse("data decides what the kernel does next")

    __int__ = __float__ = __index__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __bool__  # type: ignore[assignment]
    __hash__ = object.__hash__

    def _binary(self, name: str, other: Any, swapped: bool = False) -> Handle:
        return self.tl.compute(name, *((other, self) if swapped else (self, other)))

    def __add__(self, other: Any) -> Handle:
        return self._binary("add", other)

    def __radd__(self, other: Any) -> Handle:
        return self._binary("add", other, True)

    def __sub__(self, other: Any) -> Handle:
        return self._binary("sub", other)

    def __rsub__(self, other: Any) -> Handle:
        return self._binary("sub", other, True)

    def __mul__(self, other: Any) -> Handle:
        return self._binary("mul", other)

    def __rmul__(self, other: Any) -> Handle:
        return self._binary("mul", other, True)

    def __truediv__(self, other: Any) -> Handle:
        return self._binary("div", other)

    def __rtruediv__(self, other: Any) -> Handle:
        return self._binary("div", other, True)

    def __neg__(self) -> Handle:
        return self.tl.compute("neg", self)


class Future:
    """A receive that was posted."""

    def __init__(self, peer: int, shape: Any, dtype: str, dst: Optional[Pointer]) -> None:
        self.peer, self.shape, self.dtype, self.dst = peer, shape, dtype, dst
        self.place = _place()
        self.value: Any = None


class TL:
    """What a kernel gets as `tl`, for one rank."""

    def __init__(self, rank: int, ranks: int, n_elem: int, dtype: str, neighbours: Callable[[str], Optional[int]],
                 levels: Sequence[int] = ()) -> None:
        self.rank, self.ranks, self.n_elem, self.dtype = rank, ranks, n_elem, dtype
        self.levels = tuple(levels) if levels and all(levels) else (ranks, 1)  # PEs of a cube, cubes of a SIP
        self.neighbours = neighbours
        self.writer = Writer()
        self.free: Dict[int, List[int]] = {}
        self.scratch = 0
        self.posted: Dict[int, List[Future]] = {}
        self.used_dtype: Optional[str] = None

    # ---- memory of tiles ----

    def allocate(self, size: int) -> int:
        size = -(-max(size, 1) // GRAIN) * GRAIN
        if self.free.get(size):
            return self.free[size].pop()
        self.scratch += size
        return SCRATCH + self.scratch - size

    def release(self, address: int, size: int) -> None:
        self.free.setdefault(-(-max(size, 1) // GRAIN) * GRAIN, []).append(address)

    # ---- writing down ----

    def say(self, text: str) -> None:
        if len(self.writer.lines) >= MAX_LINES:
            raise _refuse(f"rank {self.rank} does more than {MAX_LINES} operations: a loop without end?")
        self.writer.say(text, _place())

    def compute(self, name: str, *operands: Any) -> Handle:
        tiles = [o for o in operands if isinstance(o, Handle)]
        if not tiles:
            raise _refuse(f"'{name}' of numbers alone")
        texts = []
        for operand in operands:
            if isinstance(operand, Handle):
                if (operand.count, operand.dtype) != (tiles[0].count, tiles[0].dtype):
                    raise _refuse(f"'{name}' of {tiles[0].count} {tiles[0].dtype} and {operand.count} {operand.dtype}")
                texts.append(str(operand))
            elif isinstance(operand, (int, float)):
                texts.append(f"{tiles[0].dtype}={float(operand)!r}")
            else:
                raise _refuse(f"'{name}' of a {type(operand).__name__}")
        out = Handle(self, tiles[0].shape, tiles[0].dtype)
        self.say(f"compute {name} {out} < {' '.join(texts)}")
        return out

    def span(self, pointer: Pointer, count: int, dtype: str) -> str:
        self.used_dtype = self.used_dtype or dtype
        return f"{dtype}@{pointer.address:#x}*{count}"

    def peer(self, where: Any) -> int:
        """A direction's name, or a rank."""
        found = where if isinstance(where, int) else self.neighbours(str(where))
        if found is None or not 0 <= found < self.ranks:
            raise _refuse(f"rank {self.rank} has no neighbour {where!r}")
        return found

    # ---- what kernels call ----

    def program_id(self, axis: int = 0) -> int:
        pes, cubes = self.levels
        return (self.rank % pes, self.rank // pes % cubes, self.rank // (pes * cubes))[self.axis(axis)]

    def num_programs(self, axis: int = 0) -> int:
        pes, cubes = self.levels
        full = -(-self.ranks // pes)
        return (min(pes, self.ranks), min(cubes, full), -(-full // cubes))[self.axis(axis)]

    @staticmethod
    def axis(axis: int) -> int:
        if not isinstance(axis, int) or not 0 <= axis <= 2:
            raise ValueError(f"there is no axis {axis!r}: 0 is the PE, 1 the cube, 2 the SIP")
        return axis

    def cdiv(self, a: int, b: int) -> int:
        return -(-a // b)

    def load(self, ptr: Pointer, shape: Any = None, dtype: Any = None) -> Handle:
        tile = Handle(self, self.n_elem if shape is None else shape, _dtype(dtype or self.dtype))
        self.say(f"copy {tile} {self.span(self.pointer(ptr), tile.count, tile.dtype)}")
        return tile

    def store(self, ptr: Pointer, value: Handle) -> None:
        if not isinstance(value, Handle):
            raise _refuse(f"a {type(value).__name__} is stored; a tile is wanted")
        self.say(f"copy {self.span(self.pointer(ptr), value.count, value.dtype)} {value}")

    def copy_to_dst(self, dst: Pointer, src: Handle) -> None:
        self.store(dst, src) if isinstance(dst, Pointer) else self.store(src, dst)  # type: ignore[arg-type]

    def pointer(self, given: Any) -> Pointer:
        if not isinstance(given, Pointer):
            raise _refuse(f"a {type(given).__name__} is used as an address")
        return given

    def send(self, dir: Any, src: Any = None, shape: Any = None, dtype: Any = None) -> None:  # pylint: disable=redefined-builtin
        if isinstance(dir, (Handle, Pointer)):  # the data first
            dir, src = src, dir
        if isinstance(src, Pointer):
            src = self.load(src, shape, dtype)
        if not isinstance(src, Handle):
            raise _refuse(f"a {type(src).__name__} is sent; a tile is wanted")
        self.say(f"send {self.peer(dir)} {src}")

    def recv(self, dir: Any, shape: Any = None, dtype: Any = None,  # pylint: disable=redefined-builtin
             dst: Optional[Pointer] = None) -> Any:
        return self.wait(self.recv_async(dir, shape, dtype, dst))

    def recv_async(self, dir: Any, shape: Any = None, dtype: Any = None,  # pylint: disable=redefined-builtin
                   dst: Optional[Pointer] = None) -> Future:
        future = Future(self.peer(dir), self.n_elem if shape is None else shape, _dtype(dtype or self.dtype), dst)
        self.posted.setdefault(future.peer, []).append(future)
        return future

    def wait(self, future: Future) -> Any:
        """Messages of a queue come in the order in which receives were posted: earlier ones are taken first."""
        if not isinstance(future, Future):
            raise _refuse(f"a {type(future).__name__} is waited for; what recv_async returned is wanted")
        queue = self.posted.get(future.peer, [])
        while future in queue:
            first = queue.pop(0)
            tile = Handle(self, first.shape, first.dtype)
            self.say(f"recv {first.peer} {tile}")
            if first.dst is not None:
                self.store(first.dst, tile)
            first.value = tile
        return future.value

    def maximum(self, a: Any, b: Any) -> Handle:
        return self.compute("maximum", a, b)

    def minimum(self, a: Any, b: Any) -> Handle:
        return self.compute("minimum", a, b)

    def fma(self, a: Any, b: Any, c: Any) -> Handle:
        return self.compute("fma", a, b, c)

    def clamp(self, x: Any, lo: Any, hi: Any) -> Handle:
        return self.compute("clamp", x, lo, hi)

    def softmax(self, x: Handle, axis: int = -1) -> Handle:
        """Along the last axis: one op per row."""
        if not isinstance(x, Handle):
            raise _refuse(f"'softmax' of a {type(x).__name__}")
        shape = (x.shape,) if isinstance(x.shape, int) else tuple(x.shape)
        if axis not in (-1, len(shape) - 1):
            raise _refuse(f"softmax along axis {axis} of {len(shape)}; the last one is wanted")
        out = Handle(self, x.shape, x.dtype)
        row = shape[-1] * SIZES[x.dtype]
        for start in range(0, x.count * SIZES[x.dtype], row or 1):
            self.say(f"compute softmax {x.dtype}@{out.address + start:#x}*{shape[-1]} < "
                     f"{x.dtype}@{x.address + start:#x}*{shape[-1]}")
        return out

    def exp(self, x: Handle) -> Handle:
        return self.compute("exp", x)

    def log(self, x: Handle) -> Handle:
        return self.compute("log", x)

    def sqrt(self, x: Handle) -> Handle:
        return self.compute("sqrt", x)

    def abs(self, x: Handle) -> Handle:
        return self.compute("abs", x)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _refuse(f"tl.{name} is not known")

    def finish(self) -> None:
        for queue in self.posted.values():
            if queue:
                file, line = queue[0].place
                raise Refused(f"{file}:{line}: rank {self.rank} posts a receive from {queue[0].peer} and never waits for it")


# ---- neighbours ----

def _neighbours(module: Any, topology: str, rank: int, ranks: int) -> Callable[[str], Optional[int]]:
    """What directions mean: the module's own function `neighbors`, or the topology."""
    own = getattr(module, "neighbors", None) or getattr(module, "neighbours", None)
    if own:
        table = own(**{name: value for name, value in {"rank": rank, "world_size": ranks}.items()
                       if name in inspect.signature(own).parameters})
        return lambda where: table.get(where)
    columns = math.isqrt(ranks)
    if topology == "mesh" and columns * columns != ranks:
        raise Refused(f"a mesh of {ranks} ranks: their number has to be a square")
    row, column = divmod(rank, columns)
    tables: Dict[str, Dict[str, Optional[int]]] = {
        "none": {},
        "ring": {"E": (rank + 1) % ranks, "W": (rank - 1) % ranks},
        "mesh": {"E": row * columns + (column + 1) % columns, "W": row * columns + (column - 1) % columns,
                 "S": (row + 1) % columns * columns + column, "N": (row - 1) % columns * columns + column},
        "tree": {"parent": (rank - 1) // 2 if rank else None, "child_left": 2 * rank + 1, "child_right": 2 * rank + 2}}
    return lambda where: tables[topology].get(where)


def _topology(config: Dict[str, Any], path: str) -> str:
    given = str(config.get("topology", ""))
    for name in ("ring", "mesh", "tree", "none"):
        if given.startswith(name):
            return name
    if given:
        raise Refused(f"topology '{given}' is none of ring, mesh, tree, none")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if any(f"{quote}child_left{quote}" in text or f"{quote}parent{quote}" in text for quote in "'\""):
        return "tree"
    return "mesh" if any(f"{quote}N{quote}" in text for quote in "'\"") else "ring"


# ---- modules and configurations ----

def load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    if not spec or not spec.loader:
        raise Refused(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def _scalar(text: str) -> Any:
    text = text.strip()
    if text.startswith("{") and text.endswith("}"):
        parts = [part.partition(":") for part in text[1:-1].split(",") if part.strip()]
        return {key.strip(): _scalar(value) for key, _, value in parts}
    text = text.strip("'\"")
    return int(text) if text.lstrip("-").isdigit() else text


def read_config(path: str, algorithm: Optional[str] = None) -> Dict[str, Any]:
    """One algorithm of a ccl.yaml: its own keys, then the defaults. The file is two levels of `key: value` by indentation."""
    tree: Dict[str, Any] = {}
    stack: List[Tuple[int, Dict[str, Any]]] = [(-1, tree)]
    lines: Dict[Tuple[int, str], int] = {}  # of a key of a block
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            body = line.split("#")[0].rstrip()
            if not body.strip():
                continue
            indent = len(body) - len(body.lstrip())
            key, colon, value = body.strip().partition(":")
            if not colon or body.lstrip().startswith("- "):
                raise Refused(f"{path}:{number}: 'key: value' is wanted")
            while stack[-1][0] >= indent:
                stack.pop()
            block, key = stack[-1][1], key.strip()
            if key in block:
                raise Refused(f"{path}:{number}: '{key}' is there already")
            block[key] = _scalar(value) if value.strip() else {}
            lines[(id(block), key)] = number
            if isinstance(block[key], dict):
                lines.update({(id(block[key]), inner): number for inner in block[key]})
                stack.append((indent, block[key]))
    return _algorithm(path, algorithm, tree, lines)


def _near(word: Any, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(str(word), sorted(known), 1)
    return f"; did you mean '{found[0]}'?" if found else f"; there are {', '.join(sorted(known))}"


def _algorithm(path: str, algorithm: Optional[str], tree: Dict[str, Any], lines: Dict[Tuple[int, str], int]) -> Dict[str, Any]:
    def check(block: Dict[str, Any], known: Set[str], what: str) -> None:
        for key in block:
            if key not in known:
                raise Refused(f"{path}:{lines[(id(block), key)]}: '{key}' is no key of {what}{_near(key, known)}")
    check(tree, {"defaults", "algorithms"} | (KEYS if "defaults" not in tree else set()), "a configuration")
    defaults = tree.get("defaults") or {k: v for k, v in tree.items() if not isinstance(v, dict)}
    algorithms = tree.get("algorithms") or {}
    for block, what in (defaults, "the defaults"), (algorithms, "the configuration: 'algorithms' has a name for each"):
        if not isinstance(block, dict):
            raise Refused(f"{path}: {block!r} is not {what}")
    check(defaults, KEYS, "the defaults")
    name = algorithm or defaults.get("algorithm")
    own = algorithms.get(name)
    if not algorithms and "module" in defaults and name == defaults.get("algorithm"):
        own = {"module": defaults["module"]}  # a file of one algorithm
    if own is None:
        raise Refused(f"{path}: there is no algorithm '{name}'{_near(name, algorithms)}")
    if isinstance(own, dict):
        check(own, KEYS, f"algorithm '{name}'")
    if not isinstance(own, dict) or "module" not in own:
        raise Refused(f"{path}: algorithm '{name}' names no module")
    return _with_buffers({**defaults, **own, "algorithm": name}, path)


def _with_buffers(config: Dict[str, Any], path: str) -> Dict[str, Any]:
    """`buffers: sram`, or `buffers: {kind: sram, n_slots: 4, slot_size: 4096}`, for the keys themselves."""
    given = config.pop("buffers", {})
    more = {"buffer_kind" if key == "kind" else key: value for key, value in given.items()} if isinstance(given, dict) else {
        "buffer_kind": given}
    for key in more:
        if key not in SETTINGS:
            raise Refused(f"{path}: '{key}' is no key of buffers{_near(key, {'kind', *SETTINGS})}")
    return {**config, **more}


def world_size(path: str, fallback: int, algorithm: Optional[str] = None) -> int:
    """The number of ranks that a configuration asks for, or the fallback."""
    given = read_config(path, algorithm).get("world_size", fallback) if _is_config(path) else fallback
    if not isinstance(given, int) or given < 1:
        raise Refused(f"{path}: world_size is {given!r}; a number of ranks is wanted")
    return given


def _is_config(path: str) -> bool:
    return path.endswith((".yaml", ".yml"))


def _module_path(config: Dict[str, Any], source: str) -> str:
    """`module: package.sub.ring` or a file, searched beside the configuration `source`, with and without its first parts."""
    folder = os.path.dirname(os.path.abspath(source))
    name = str(config.get("module", ""))
    parts = name[:-3].split("/") if name.endswith(".py") else name.split(".")
    for skip in range(len(parts)):
        path = os.path.join(folder, *parts[skip:]) + ".py"
        if os.path.exists(path):
            return path
    raise Refused(f"{source}: algorithm '{config.get('algorithm')}': module '{name}' is not below {folder}")


def _arguments(module: Any, kernel: Callable[..., None], known: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
    """What the kernel is called with: what kernel_args returns after the address, and what it asks for by name."""
    names = list(inspect.signature(kernel).parameters)
    positional: List[Any] = [Pointer(DATA)]
    make = getattr(module, "kernel_args", None)
    if make:
        given = make(**{name: known[name] for name in inspect.signature(make).parameters if name in known})
        if isinstance(given, dict):
            known = {**known, **given}
        else:
            positional += list(given) if isinstance(given, (list, tuple)) else [given]
    named = {}
    for name in names[len(positional):]:
        if name in known:
            named[name] = known[name]
        elif inspect.signature(kernel).parameters[name].default is inspect.Parameter.empty:
            raise Refused(f"{inspect.getsourcefile(kernel)}:{kernel.__code__.co_firstlineno}: nothing is known for parameter "
                          f"'{name}'")
    return positional, named


def takes_op(path: str, algorithm: Optional[str] = None) -> bool:
    """Does the kernel ask which operation is meant? Otherwise it has its own."""
    config = {**read_config(path, algorithm)}
    module = load(_module_path(config, path))
    found = [getattr(module, name, None) for name in (str(config.get("kernel", "kernel")), "kernel_args")]
    return any("op" in inspect.signature(one).parameters for one in found if callable(one))


def _contract(config: Dict[str, Any], module: Any, path: str) -> Optional[str]:
    given = config.get("implements") or getattr(module, "IMPLEMENTS", None)
    names = [given] if given else [name for name in CONTRACTS if name in os.path.basename(path).lower()]
    if not names or names[0] == "none":
        return None
    return CONTRACT_NAMES.get(names[0], names[0])


def record(path: str, ranks: int, count: Optional[int] = None, dtype: str = "f32", op: str = "sum",
           config: Optional[Dict[str, Any]] = None, levels: Sequence[int] = ()) -> str:
    """The recording of a kernel's file, or of the algorithm that a ccl.yaml names, for one number of ranks.

    levels: how many PEs a cube has, and cubes a SIP, which program_id counts; without it all ranks are one cube.
    """
    config = config or {}
    if _is_config(path):
        config = {**read_config(path, config.get("algorithm")), **config}
        path = _module_path(config, path)
    count, dtype = int(config.get("n_elem", 256) if count is None else count), _dtype(config.get("dtype", dtype))
    module = load(path)
    kernel = getattr(module, str(config.get("kernel", "kernel")), None)
    if not callable(kernel):
        raise Refused(f"{path}: there is no function 'kernel'")
    if not 0 <= count * SIZES[dtype] <= SCRATCH - DATA:
        raise Refused(f"{inspect.getsourcefile(kernel)}:{kernel.__code__.co_firstlineno}: n_elem {count} of {dtype} are too many bytes; "
                      f"at most {SCRATCH - DATA} are possible")
    topology, scratch, body, used = _topology(config, path), 1, [], None
    for rank in range(ranks):
        tl = TL(rank, ranks, count, dtype, _neighbours(module, topology, rank, ranks), levels)
        positional, named = _arguments(module, kernel, {"n_elem": count, "world_size": ranks, "rank": rank, "op": op, "tl": tl})
        kernel(*positional, **named)
        tl.finish()
        body += [f"rank {rank}", *tl.writer.lines]
        scratch, used = max(scratch, tl.scratch), used or tl.used_dtype
    used = used or dtype
    contract = _contract(config, module, path)
    lines = head(os.path.splitext(os.path.basename(path))[0], ranks, 0, f"{contract} input t output t op {op}" if contract else None,
                 config.get("n_slots", config.get("slots")))
    for key, setting in SETTINGS.items():
        if key in config:
            lines.append(f"machine {setting}={config[key]}")
    lines.append(f"note recorded for {ranks} ranks and {count} elements of {used}: {topology}")
    for rank in range(ranks):
        lines.append(f"region inout t {rank} {DATA:#x} {count * SIZES[used]} {used}")
        lines.append(f"region private scratch {rank} {SCRATCH:#x} {scratch} {used}")
    return "\n".join(lines + body) + "\n"


def is_program(path: str) -> bool:
    """Does the file call its kernels itself? One that defines kernel(..., tl), or imports nothing that is stood in for, does not."""
    if _is_config(path):
        return False
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    imported = False
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "kernel" and any(one.arg == "tl" for one in node.args.args):
            return False
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [])
        imported = imported or any(name.partition(".")[0] in PROGRAM_IMPORTS for name in names)
    return imported


def _numbers(text: str) -> List[int]:
    return [int(part) for part in text.split(",") if part]


def _blame(error: BaseException, path: str) -> str:
    """What went wrong in the kernel, with its own line and not this module's."""
    frames = traceback.extract_tb(error.__traceback__)
    here = os.path.dirname(os.path.abspath(__file__)) + os.sep
    own = [(frame.filename, frame.lineno) for frame in frames if not os.path.abspath(frame.filename).startswith(here)
           and "importlib" not in frame.filename and not frame.filename.startswith("<")]
    if isinstance(error, SyntaxError) and error.filename:
        own.append((error.filename, error.lineno))
    place = f"{os.path.relpath(own[-1][0])}:{own[-1][1]}" if own else path
    what = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{place}: {type(error).__name__}" + (f": {what}" if what else "")


_busy: Optional[Callable[[], Any]] = None  # the frame that is running, if it is not this thread's


class OutOfTime(Refused):
    """A limit of time was reached."""


def _too_long(_: int, frame: Any) -> None:
    """The limits of time: said where the kernel is."""
    if _busy is not None:
        frame = _busy() or frame
    while frame and frame.f_back and frame.f_code.co_filename.startswith(os.path.dirname(__file__) + os.sep):
        frame = frame.f_back
    raise OutOfTime(f"{os.path.relpath(frame.f_code.co_filename)}:{frame.f_lineno}: the time for recording is over here: "
                    "a loop without end?")


def _no_settings(path: str, settings: str) -> None:
    for line in settings.splitlines():
        if line not in ("between=none", "model=auto"):
            name = line.partition("=")[0].replace("_", "-")
            raise Refused(f"{path}: --{name} is for programs that call their kernels")


def _find_numpy(path: str) -> None:
    """Where `python3` is not the system's and has no numpy, the system's may have it: then that one goes on."""
    if importlib.util.find_spec("numpy") is not None:
        return
    if "PEAL_PYTHON" not in os.environ and os.access(SYSTEM_PYTHON, os.X_OK) and hasattr(sys, "orig_argv"):
        os.environ["PEAL_PYTHON"] = SYSTEM_PYTHON
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.orig_argv[1:]])
    raise Refused(f"{path}: numpy is needed to record a program, and {sys.executable} has none (Debian: python3-numpy); "
                  "PEAL_PYTHON names another Python")


def _recorder(given: Any) -> Callable[[int, Optional[int]], str]:
    """What makes the recording for a number of ranks and a count."""
    global _busy  # pylint: disable=global-statement
    if not is_program(given.file):
        _no_settings(given.file, given.settings)
        return lambda ranks, count: record(given.file, ranks, count, given.dtype, given.op, levels=given.levels)
    _find_numpy(given.file)
    from .tiles import program
    options = program.Options(given.settings)
    _busy = program.running_frame

    def make(ranks: int, _: Optional[int]) -> str:
        text = program.record(given.file, ranks, options)
        if options.edit:
            _write_edit(given.folder, options)
        return text
    return make


def _write_edit(folder: str, options: Any) -> None:
    """The author's file with what is tried: its name in the first line. Or an empty line, and why there is none."""
    from .tiles import edits
    try:
        name, text = edits.edited(options.tries, options.edits)
    except Refused as why:
        name, text = "", str(why)
    with open(os.path.join(folder, "edited"), "w", encoding="utf-8", newline="") as file:
        file.write(f"{name}\n{text}")


def main(arguments: Optional[List[str]] = None) -> int:
    """Writes a recording for each number of ranks and each count into a folder, and prints their names."""
    parser = argparse.ArgumentParser(prog="peal.record")
    parser.add_argument("file")
    parser.add_argument("--ranks", type=_numbers, default=[])
    parser.add_argument("--fallback", type=_numbers, default=[4], help="numbers of ranks, if neither --ranks nor the file says it")
    parser.add_argument("--levels", type=_numbers, default=[])
    parser.add_argument("--counts", type=_numbers, default=[])
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--op", default="sum")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--settings", default="", help="of programs: lines of KEY=VALUE")
    given = parser.parse_args(arguments)
    faulthandler.enable(all_threads=False)  # a crash names the kernel's line
    signal.signal(signal.SIGXCPU, _too_long)
    signal.signal(signal.SIGALRM, _too_long)
    name, own = os.path.splitext(os.path.basename(given.file))[0], os.getpid()
    try:
        try:
            with open(given.file, "rb"):
                make = _recorder(given)
        except OSError as error:
            raise Refused(f"cannot read '{given.file}': {error.strerror}") from None
        for ranks in given.ranks or sorted({world_size(given.file, number) for number in given.fallback}):
            for count in given.counts or [None]:
                where = os.path.join(given.folder, f"{name}-{ranks}-{count or 'own'}.rec")
                text = make(ranks, count)
                if os.getpid() != own:  # the kernel has forked: one recording is enough
                    os._exit(0)
                with open(where, "w", encoding="utf-8") as file:
                    file.write(text)
                print(where)
    except Refused as error:
        print(f"peal: {error}", file=sys.stderr)
        return 2
    except BaseException as error:  # pylint: disable=broad-except
        print(f"peal: {_blame(error, given.file)}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
