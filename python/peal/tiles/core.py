# SPDX-License-Identifier: Apache-2.0
"""What tile kernels in Python record: memory, lanes, the ops of each lane, and what is assumed.

A Recording is for one number of ranks. Each Rank has the lines of its own, in the order in which they were said (docs/record.md
has the form). The programs of a launch are lanes; launches of a stream follow each other, streams do not. Memory that all ranks reach
stands at the same offset of each rank's heap; everything else has addresses of its own too, so that an address says
which memory is meant, whoever uses it.

Positions are those of the author: the innermost frame that is not in this package.
"""
from __future__ import annotations

import bisect
import os
import sys
import threading
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

import numpy as np

from ..record import SIZES, Refused, Writer, head, shown_file
from . import statements
from .calls import Folded, fold, numbered

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
OWN = {os.path.join(os.path.dirname(os.path.dirname(HERE)), "record.py"), "<peal>"}
HEAP = 0x10_0000_0000          # where rank 0's symmetric heap begins, and how far the heaps are apart
HEAP_BYTES = 0x40_0000_0000
LOCAL = 0x4000_0000_0000       # the same for memory that only its rank knows
TILES = 0x7000_0000_0000       # values of tiles, per stream and type
TILES_BYTES = 0x10_0000_0000
GRAIN = 256
GAP = 4096
MAX_OPS = 4_000_000

Place = Tuple[str, int]
_files: Dict[str, Optional[str]] = {}  # of code: how its file is shown; None: it is this package's


def _shown(name: str) -> Optional[str]:
    own = name in OWN or name.startswith((HERE, "<frozen ", "<__array_function__"))
    _files[name] = None if own else shown_file(name)
    return _files[name]


def author() -> Any:
    """The author's frame: the innermost one that is not in this package."""
    frame = sys._getframe(1)  # pylint: disable=protected-access
    while frame is not None:
        name = frame.f_code.co_filename
        if (_files[name] if name in _files else _shown(name)) is not None:
            return frame
        frame = frame.f_back
    return None


def place() -> Place:
    """The author's file and line."""
    frame = author()
    return (_files[frame.f_code.co_filename] or "", frame.f_lineno) if frame else ("", 0)


def refuse(why: str) -> Refused:
    """To be raised: what no plan can express, with the author's file and line."""
    file, line = place()
    return Refused(f"{file}:{line}: {why}" if line else why)


def told(where: Place) -> str:
    return f"{where[0]}:{where[1]}"


def _runs(frame: Any) -> bool:
    """Has the function not returned yet?"""
    above = sys._getframe(2)  # pylint: disable=protected-access
    while above is not None and above is not frame:
        above = above.f_back
    return above is frame


# ---- spans ----

class Span(NamedTuple):
    """What an op reads or writes: rows of count elements, `stride` bytes apart (0: without gaps); or a number."""
    dtype: str
    address: int
    count: int = 1
    rows: int = 1
    stride: int = 0
    value: Optional[float] = None

    def text(self) -> str:
        if self.value is not None:
            return f"{self.dtype}={self.value!r}"
        if self.rows == 1:
            return f"{self.dtype}@{self.address:#x}*{self.count}"
        return f"{self.dtype}@{self.address:#x}*{self.count}*{self.rows}+{self.stride}"


def constant(dtype: str, value: float) -> Span:
    return Span(dtype, 0, value=float(value))


# ---- memory ----

class Region:
    """Memory of one rank: a tensor, a window, a table."""

    def __init__(self, rank: Rank, kind: str, name: str, address: int, nbytes: int, dtype: str) -> None:
        self.rank, self.kind, self.name, self.address, self.nbytes, self.dtype = rank, kind, name, address, nbytes, dtype
        self.zeroed = self.kept = self.shared = False
        self.contents: Any = None   # numpy bytes that the host is known to have put there
        self.constant = False       # nobody ever writes it: reading it is no op
        self.given = False          # --input says what is in it: it may decide what the kernel does
        self.steers: Optional[Place] = None
        self.changed: Optional[Place] = None  # by a kernel

    @property
    def owner(self) -> int:
        return self.rank.index

    def line(self) -> str:
        flags = "".join(f" {flag}" for flag in ("zeroed", "shared", "kept") if getattr(self, flag))
        return f"region {self.kind} {self.name} {self.owner} {self.address:#x} {max(self.nbytes, 1)} {self.dtype}{flags}"

    def change(self) -> None:
        """A kernel writes there: the host's contents are no longer what is in it."""
        if self.changed is None:
            self.changed = place()
            if self.constant:
                raise refuse(f"the kernel writes to '{self.name}', which the host made and which does not change")
            if self.steers:
                raise refuse(f"the kernel writes to '{self.name}', whose contents decide what it does at {told(self.steers)}")
            self.contents = None

    def steer(self) -> None:
        """Its contents decide what the kernel does."""
        if self.constant or self.steers:
            return
        if self.changed:
            raise refuse(f"the value of '{self.name}' decides what the kernel does, and it is written at {told(self.changed)}")
        self.steers = place()
        self.rank.recording.note(f"for the given contents of '{self.name}', which decide what the kernel does at {told(self.steers)}")


class Orders(List[str]):
    """A place among the lines where orders between lanes are added later, when it is known that they matter."""

    def __init__(self, current: Optional[Lane]) -> None:
        super().__init__()
        self.current = current  # the lane that lines after this belong to

    def add_in(self, lane: Lane, text: str) -> None:
        """A line of some lane."""
        self.append(f"lane {lane.number} {lane.name}")
        self.append(text)
        if self.current is not None:
            self.append(f"lane {self.current.number}")

    def lines(self, _: Sequence[Tuple[int, int]]) -> Iterator[str]:
        return iter(self)


class Fill:
    """Memory is filled with a number, or (None) with something that is not known. What is a signal is known only at the end: a signal is
    set, other bytes are written. The host releases what was before; a kernel's store of a number orders nothing."""

    def __init__(self, address: int, nbytes: int, value: Optional[float], dtype: str, is_host: bool) -> None:
        self.address, self.nbytes, self.value, self.dtype, self.is_host = address, nbytes, value, dtype, is_host

    def lines(self, cells: Sequence[Tuple[int, int]]) -> Iterator[str]:
        """cells: address and size of the recording's signals, sorted."""
        at, end = self.address, self.address + self.nbytes
        size = SIZES[self.dtype]
        for address, nbytes in cells[bisect.bisect_left(cells, (at, 0)):bisect.bisect_left(cells, (end, 0))]:
            yield from self._data(at, address, size)
            value = int(self.value or 0)
            yield f"notify {address:#x} {nbytes} set {value} release" if self.is_host else f"write i{8 * nbytes}@{address:#x}*1 {value}"
            at = address + nbytes
        yield from self._data(at, end, size)

    def _data(self, at: int, end: int, size: int) -> Iterator[str]:
        if end - at < size:
            return
        span = Span(self.dtype, at, (end - at) // size)
        # Unknown new data stands for the same name in a contract: it is written over itself.
        yield f"copy {span.text()} {span.text() if self.value is None else constant(self.dtype, self.value).text()}"


# ---- lanes ----

class Lane:
    """One thread of control of a rank. What it does is written down in order."""

    def __init__(self, rank: Rank, number: int, name: str, block: int) -> None:
        self.rank, self.number, self.name, self.block = rank, number, name, block
        self.free: Dict[Tuple[str, int], List[int]] = {}
        self.stream: Optional[Stream] = None
        self.begun = False
        self.program: Optional[Program] = None  # that it belongs to
        self.opened = self.closes = False       # does its part of the launch begin, or end, with a fence that matters?
        self.first = True                       # has it done nothing in the launch, and heard of nothing?
        self.weak: List[int] = []               # lines of reads of signals that do not acquire, with nothing after them that could matter

    # -- data --

    def copy(self, dst: Span, src: Span) -> int:
        self.rank.wrote(dst)
        return self.use(f"copy {dst.text()} {src.text()}")

    def compute(self, function: str, dsts: Sequence[Span], srcs: Sequence[Span]) -> int:
        for dst in dsts:
            self.rank.wrote(dst)
        return self.use(f"compute {function} {' '.join([d.text() for d in dsts])} < {' '.join([s.text() for s in srcs])}")

    def accumulate(self, function: str, dst: Span, src: Span) -> int:
        self.rank.wrote(dst)
        return self.use(f"accumulate {function} {dst.text()} {src.text()}")

    def read(self, span: Span) -> int:
        return self.use(f"read {span.text()}")

    def fill(self, span: Span, value: float) -> int:
        """A store of one number everywhere, perhaps to signals."""
        self.rank.wrote(span)
        if span.rows > 1 or span.dtype[0] not in "iu":
            return self.say(f"copy {span.text()} {constant(span.dtype, value).text()}")
        return self.say(Fill(span.address, span.count * SIZES[span.dtype], value, span.dtype, False))

    def write(self, span: Span, value: Optional[float] = None) -> int:
        self.rank.wrote(span)
        if value is not None and span.dtype[0] in "iu" and span.count == span.rows == 1:
            self.rank.recording.values.setdefault(span.address, set()).add(int(value))
        return self.use(f"write {span.text()}" + ("" if value is None else f" {value!r}"))

    def use(self, text: str) -> int:
        """An op on data."""
        if self.rank.waiting is None:
            self.first = False
            if self.weak:
                self.settle()
        return self.rank.say(self, text)

    # -- signals --

    def notify(self, address: int, nbytes: int, change: str, value: int, order: str = "release", scope: str = "system") -> int:
        """change: add or set. A set does not acquire: said as the weaker order."""
        order = self.strengthen(order)
        if change == "set":
            order = {"acquire": "relaxed", "acq_rel": "release"}.get(order, order)
        self.rank.is_cell(address, nbytes)
        self.rank.recording.values.setdefault(address, set()).add(value if change == "set" else None)
        return self.say(f"notify {address:#x} {nbytes} {change} {value} {order} {scope}")

    def wait(self, address: int, nbytes: int, relation: str, value: int, order: str = "acquire", scope: str = "system") -> int:
        order = {"release": "relaxed", "acq_rel": "acquire"}.get(order, order)
        self.rank.is_cell(address, nbytes)
        return self.weakly(order, self.say(f"wait {address:#x} {nbytes} {relation} {value} {order} {scope}"))

    def take(self, address: int, nbytes: int, old: int, new: int, order: str = "acq_rel", scope: str = "system") -> int:
        self.rank.is_cell(address, nbytes)
        self.rank.recording.values.setdefault(address, set()).add(new)
        order = self.strengthen(order, False)
        return self.weakly(order, self.say(f"take {address:#x} {nbytes} {old} {new} {order} {scope}"))

    def fence(self, order: str = "acq_rel", scope: str = "system") -> int:
        return self.say(f"fence {order} {scope}")

    def strengthen(self, order: str, fenced: bool = True) -> str:
        """The order of an op that changes a signal: a launch begins with a fence, so that what was before it is released by the first op of
        a lane. Where that op is not the first one, the fence is written down (of swaps, which rarely carry that far, it is left out: that
        proves no more)."""
        if self.rank.waiting is not None:
            return order
        if order in ("release", "acq_rel", "seq_cst"):
            if self.weak:
                self.settle()
        elif order == "relaxed" and self.program is not None:
            if self.first and self.program.met is self.program.opening:
                self.program.leans()
                order = "release"
            elif fenced and not self.opened:
                self.opened = True
                self.program.open(self)
        self.first = False
        return order

    def weakly(self, order: str, line: int) -> int:
        """The line is a read of a signal: if it does not acquire, the fence at the end of the launch does."""
        if self.rank.waiting is not None:
            return line
        self.first = False
        if order in ("relaxed", "release"):
            self.weak.append(line)
        return line

    def settle(self) -> None:
        """Something follows reads that do not acquire: that they do at the end of the launch takes a fence there."""
        lines = self.rank.writer.lines
        self.closes |= any(" relaxed" in lines[line] for line in self.weak)
        self.weak.clear()

    def finish(self) -> None:
        """The end of its part of a launch."""
        assert self.program is not None
        if self.closes:
            self.program.leans()
            self.fence("acq_rel", "system")
            return
        lines = self.rank.writer.lines
        for line in self.weak:
            self.program.leans()
            lines[line] = lines[line].replace(" relaxed ", " acquire ").replace(" release ", " acq_rel ")

    # -- order --

    def after(self, other: Lane) -> None:
        """What the other lane has done so far comes before what this one does from here on."""
        if other is not self:
            self.say(f"order {other.number} {self.number}")

    def fork(self, name: str) -> Lane:
        """A new lane that starts after what this one has done so far; in the same block."""
        lane = self.rank.new_lane(name, self.block)
        lane.stream = self.stream
        if self.stream:
            self.stream.forked.append(lane)
        lane.after(self)
        return lane

    def flag_set(self, to: Lane, number: int) -> None:
        self.say(f"flag_set {self.number} {to.number} {number}")

    def flag_wait(self, source: Lane, number: int) -> None:
        self.say(f"flag_wait {source.number} {self.number} {number}")

    # -- text --

    def say(self, text: Any) -> int:
        """Adds a line, or what becomes lines; its index among the lines of the rank."""
        return self.rank.say(self, text)

    def replace(self, index: int, text: str) -> None:
        self.rank.writer.lines[index] = text

    # -- memory of values --

    def scratch(self, count: int, dtype: str) -> int:
        """Memory for a value of the lane. Freed memory is used again for values of the same size and type."""
        free = self.free.get((dtype, count))
        if free:
            return free.pop()
        assert self.stream is not None
        return self.stream.allocate(count, dtype)

    def release(self, address: int, count: int, dtype: str) -> None:
        self.free.setdefault((dtype, count), []).append(address)


class Program(Lane):
    """One program of a launch. Its threads act together, unless they communicate apart: then each is a lane of its own."""

    def __init__(self, rank: Rank, number: int, name: str, block: int) -> None:
        super().__init__(rank, number, name, block)
        self.index = 0
        self.grid: Tuple[int, int, int] = (1, 1, 1)
        self.threads = 128
        self.has_met = False                # all programs of this number, because that is tried
        self.apart: Dict[int, Lane] = {}    # threads with lanes of their own
        self.opening = self.met = Orders(None)  # where the launch began, and where the last barrier was
        self.program = self
        self.branches: List[Tuple[Any, Tuple[int, int], Set[int]]] = []  # in progress: the frame (None: until it is taken away), its lines, the threads in it

    def begin(self, index: int, grid: Tuple[int, int, int], threads: int) -> None:
        self.index, self.grid, self.threads, self.has_met = index, grid, threads, False
        self.branches.clear()
        for lane in (self, *self.apart.values()):
            lane.begun = lane.opened = lane.closes = False
            lane.first = True
            lane.weak.clear()
        self._meet()
        self.opening = self.met

    def _meet(self) -> None:
        self.met = Orders(self.rank.last_lane)
        self.rank.writer.raw(self.met)

    def open(self, lane: Lane) -> None:
        """The lane's part of the launch begins with a fence."""
        if lane is not self:
            self.opening.append(f"order {self.number} {lane.number}")
        self.opening.add_in(lane, "fence acq_rel system")
        self.leans()

    def leans(self) -> None:
        self.rank.recording.assume("launches", "that a launch begins and ends with a fence for the whole system, as launches of a stream do")

    def thread(self, number: int) -> Lane:
        """The lane of one thread: it follows what the program did before its last barrier, not what all threads did since."""
        lane = self.apart.get(number)
        if lane is None:
            lane = self.apart[number] = self.rank.new_lane(f"{self.name}.t{number}", self.block)
            lane.stream, lane.program = self.stream, self
        if not lane.begun:
            lane.begun = True
            self.met.append(f"order {self.number} {lane.number}")
        return lane

    def enter(self, frame: Any, inside: Tuple[int, int], threads: Set[int]) -> None:
        """What the frame does in these lines is done by these threads."""
        self.branches.append((frame, inside, threads))

    def leave(self, frame: Any, inside: Tuple[int, int]) -> None:
        """The frame comes to these lines anew."""
        self.branches = [one for one in self.branches if one[:2] != (frame, inside)]

    def acting(self) -> Optional[List[int]]:
        """The threads that are in the branch in progress; None: all."""
        while self.branches:
            frame, (first, last), threads = self.branches[-1]
            if frame is None or (first <= frame.f_lineno <= last and _runs(frame)):
                return sorted(threads)
            self.branches.pop()
        return None

    def barrier(self) -> None:
        """All threads of the program meet."""
        begun = [lane for lane in self.apart.values() if lane.begun]
        for lane in begun:
            lane.settle()
            self.after(lane)
        self.settle()
        for lane in begun:
            lane.after(self)
        self._meet()

    def end(self) -> None:
        self.branches.clear()
        begun = [lane for lane in self.apart.values() if lane.begun]
        for lane in (self, *begun):
            lane.finish()
        for lane in begun:
            self.after(lane)


class Stream:
    """Launches that follow each other on one rank."""

    def __init__(self, rank: Rank, number: int) -> None:
        self.rank, self.number = rank, number
        self.programs: List[Program] = []
        self.forked: List[Lane] = []
        self.used: Dict[str, int] = {}   # bytes of values, by type
        self.done = 0                    # lanes of the last launch that nothing was ordered after yet
        self.hub_ahead = False           # lane 0 did something that other lanes have not seen

    def program(self, index: int) -> Program:
        while len(self.programs) <= index:
            name = f"p{len(self.programs)}" if self.number == 0 else f"s{self.number}p{len(self.programs)}"
            lane = self.rank.new_lane(name, None, Program)
            assert isinstance(lane, Program)
            lane.stream = self
            self.programs.append(lane)
        return self.programs[index]

    def allocate(self, count: int, dtype: str) -> int:
        at = self.used.get(dtype, 0)
        self.used[dtype] = at + -(-count * SIZES[dtype] // 64) * 64
        where = self.rank.values_region(self.number, dtype)
        if self.used[dtype] > where.nbytes:
            where.nbytes = self.used[dtype]
        return where.address + at

    def meet(self) -> Program:
        """All that the stream did so far comes before what follows; the lane that goes on."""
        hub = self.program(0)
        if self.done and len(self.rank.streams) == 1:
            self.rank.say(hub, "join")
        elif self.done:
            for lane in [*self.programs[1:self.done], *self.forked]:
                hub.after(lane)
            self.hub_ahead = True
        self.done = 0
        self.forked.clear()
        return hub


class Launch:
    """One launch of a kernel. Iterating gives its programs one after the other."""

    def __init__(self, stream: Stream, name: str, grid: Tuple[int, int, int], threads: int) -> None:
        self.stream, self.name, self.grid, self.threads = stream, name, grid, threads

    def __iter__(self) -> Iterator[Program]:
        stream, rank = self.stream, self.stream.rank
        rank.launches.append((tuple(rank.statements), self.name, tuple(rank.loops)))
        if rank.recording.dry:
            return
        total = self.grid[0] * self.grid[1] * self.grid[2]
        hub = stream.meet()
        if stream.hub_ahead and len(rank.streams) == 1:
            rank.say(hub, "join")
            stream.hub_ahead = False
        stream.used.clear()
        previous = rank.lane
        for index in range(total):
            program = stream.program(index)
            if stream.hub_ahead and index:
                program.after(hub)
            program.free.clear()
            program.begin(index, self.grid, self.threads)
            rank.lane = program
            try:
                yield program
            finally:
                rank.lane = previous
            program.end()
        stream.hub_ahead = False
        stream.done = total


# ---- ranks ----

class Mark(NamedTuple):
    """A place in what a rank wrote down."""
    lines: int
    place: Place
    lane: Optional[Lane]
    met: Optional[Orders]


class Rank:
    """One rank: its memory, its streams and what it did."""

    def __init__(self, recording: Recording, index: int) -> None:
        self.recording, self.index = recording, index
        self.writer = Writer()
        self.regions: List[Region] = []
        self.starts: List[int] = []          # addresses of `regions`, sorted
        self.heap_used = self.local_used = self.symmetric = 0
        self.lanes = 0
        self.lane: Optional[Lane] = None     # in progress
        self.streams: Dict[int, Stream] = {}
        self.stream_number = 0
        self.calls: List[int] = []           # where each call begins among the lines
        self.calls_end: Optional[int] = None  # and what follows the last one
        self.made: List[Region] = []         # in order
        self.made_before: List[int] = []     # each call: how many regions
        self.state: Dict[str, Any] = {}      # of stand-ins, by their name
        self.last_lane: Optional[Lane] = None
        self.found: Optional[Region] = None
        self.names: Set[str] = set()
        self.statements: List[Tuple[int, int]] = []  # of the program, in progress
        self.loops: List[statements.Loop] = []       # of the host, in progress
        self.launches: List[statements.Launch] = []
        self.symmetric_by: List[statements.Path] = []  # what made symmetric memory
        self.freed: Dict[Tuple[bool, int, str], List[Region]] = {}
        self.waiting: Any = None             # a loop while it goes round once more: its frame, what it asks for, its first look

    # -- memory --

    def region(self, kind: str, name: str, nbytes: int, dtype: str, zeroed: bool = False, kept: bool = False,
               contents: Any = None) -> Region:
        """New memory. Of kind `window` it is at the same offset of every rank's heap, if all ranks ask for the same in order. What was
        freed before is used again, as allocators do."""
        if not 0 <= nbytes < HEAP_BYTES >> 4:
            raise refuse(f"'{name}' has {nbytes} bytes")
        size = -(-(2 * nbytes + GAP) // GRAIN) * GRAIN  # an index beyond the end is in no other memory
        freed = self.freed.get((kind == "window", nbytes, dtype))
        if freed:
            again = freed.pop(0)
            again.contents = contents
            return again
        if kind == "window":
            self.symmetric_by.append(tuple(self.statements))
            address = heap(self.index) + self.heap_used
            self.heap_used += size
        else:
            address = LOCAL + self.index * HEAP_BYTES + self.local_used
            self.local_used += size
        while name in self.names:
            name = _next_name(name)
        self.names.add(name)
        region = Region(self, kind, name, address, nbytes, dtype)
        self.made.append(region)
        region.zeroed, region.kept, region.contents = zeroed, kept, contents
        self._add(region)
        if name in self.recording.inputs:
            self._give(region, self.recording.inputs[name])
        return region

    def _give(self, region: Region, given: bytes) -> None:
        """What --input says is in it: the contents of all ranks one after the other, or the same for each."""
        if len(given) not in (region.nbytes, region.nbytes * self.recording.ranks):
            raise refuse(f"--input {region.name}: {len(given)} bytes are given, and it has {region.nbytes}")
        start = self.index * region.nbytes if len(given) > region.nbytes else 0
        region.contents, region.given, region.zeroed = np.frombuffer(given, np.uint8, region.nbytes, start), True, False
        region.kind, region.shared, region.kept = "inout", True, True

    def free(self, region: Region) -> None:
        """Nobody on the host has it any more."""
        self.freed.setdefault((region.address < LOCAL, region.nbytes, region.dtype), []).append(region)

    def _add(self, region: Region) -> None:
        at = bisect.bisect_left(self.starts, region.address)
        self.starts.insert(at, region.address)
        self.regions.insert(at, region)

    def values_region(self, stream: int, dtype: str) -> Region:
        """Where values of tiles are, of one stream and type."""
        name = f"tile_{dtype}" if stream == 0 else f"tile{stream}_{dtype}"
        number = stream * len(SIZES) + list(SIZES).index(dtype)
        address = TILES + (self.index * 64 + number) * TILES_BYTES
        at = bisect.bisect_left(self.starts, address)
        if at < len(self.starts) and self.starts[at] == address:
            return self.regions[at]
        if stream > 3:
            raise refuse("kernels on more than four streams")
        region = Region(self, "private", name, address, 0, dtype)
        self._add(region)
        return region

    def find(self, address: int) -> Optional[Region]:
        """The memory that has the address: this rank's, or what it can reach."""
        found = self.found
        if found is not None and 0 <= address - found.address < max(found.nbytes, 1):
            return found
        owner: Rank = self
        if HEAP <= address < HEAP + self.recording.ranks * HEAP_BYTES:
            owner = self.recording.rank[(address - HEAP) // HEAP_BYTES]
        at = bisect.bisect_right(owner.starts, address) - 1
        if at < 0 or address - owner.starts[at] >= max(owner.regions[at].nbytes, 1):
            return None
        self.found = owner.regions[at]
        return self.found

    def at(self, address: int, nbytes: int = 1) -> Region:
        """The same; refused if it is nowhere, or ends beyond its memory."""
        region = self.find(address)
        if region is None and self.recording.let_others_run is not None:
            self.recording.let_others_run(lambda: self.find(address) is not None)  # the owner is not yet there
            region = self.find(address)
        if region is None:
            raise refuse(f"rank {self.index} uses address {address:#x}, which is in no memory of the program{self._near(address)}")
        if address + nbytes > region.address + region.nbytes:
            raise refuse(f"rank {self.index} uses bytes {address - region.address} to {address + nbytes - region.address - 1} of "
                         f"'{region.name}' on rank {region.owner}, which has {region.nbytes}")
        return region

    def _near(self, address: int) -> str:
        for rank in self.recording.rank:
            at = bisect.bisect_right(rank.starts, address) - 1
            if at >= 0 and address - rank.starts[at] < 4 * rank.regions[at].nbytes:
                region = rank.regions[at]
                return f": it is {address - region.address - region.nbytes} bytes after the end of '{region.name}' of rank {rank.index}"
        return ""

    def wrote(self, span: Span) -> None:
        """Something is written there by a kernel."""
        if span.address >= TILES:
            return
        nbytes = (span.rows - 1) * span.stride + span.count * SIZES[span.dtype] if span.stride else (
            span.rows * span.count * SIZES[span.dtype])
        region = self.at(span.address, nbytes)
        if region.changed is None:
            region.change()

    def is_cell(self, address: int, nbytes: int) -> None:
        if nbytes not in (4, 8):
            raise refuse(f"a signal of {nbytes} bytes: 4 or 8 are possible")
        region = self.at(address, nbytes)
        if region.changed is None:
            region.change()
        region.kind = "window"  # wherever the program put it: programs of the rank reach it
        self.recording.cells.add((address, nbytes))

    def host_write(self, region: Region, offset: int, nbytes: int, value: Optional[float], dtype: Optional[str] = None) -> None:
        """The host writes a number there, or something that is not known (None). Before the first op it is how memory begins."""
        if self.is_fresh():
            if value is None or value != 0:
                region.kind, region.shared, region.kept, region.zeroed = "inout", True, True, False
            else:
                region.zeroed = True
            return
        hub = self.host()
        self.say(hub, Fill(region.address + offset, nbytes, value, dtype or region.dtype, True))
        self.stream().hub_ahead = True

    def is_fresh(self) -> bool:
        """Has nothing happened yet? What the host does now is how things begin."""
        return not self.writer.lines and not self.calls

    def is_looked_at(self, address: int, nbytes: int) -> None:
        """A signal, perhaps: its value is looked at."""
        self.at(address, nbytes)

    def mark(self) -> Mark:
        """How far the writing has come."""
        met = self.lane.met if isinstance(self.lane, Program) else None
        return Mark(len(self.writer.lines), self.writer.last, self.last_lane, met)

    def is_quiet_since(self, mark: Mark, but: Sequence[int] = ()) -> bool:
        """Was nothing written down since then, but these lines?"""
        lines = self.writer.lines
        return all(isinstance(lines[at], Orders) or at in but or str(lines[at]).startswith(("at ", "lane ", "block "))
                   for at in range(mark.lines, len(lines)))

    def rewind(self, mark: Mark) -> None:
        """Forgets what was written since then."""
        del self.writer.lines[mark.lines:]
        self.writer.last, self.last_lane = mark.place, mark.lane
        if isinstance(self.lane, Program) and mark.met is not None:
            self.lane.met = mark.met

    def line_count(self) -> int:
        return len(self.writer.lines)

    # -- lanes --

    def new_lane(self, name: str, block: Optional[int], make: Callable[..., Lane] = Lane) -> Lane:
        lane = make(self, self.lanes, name, self.lanes if block is None else block)
        self.lanes += 1
        return lane

    def stream(self, number: Optional[int] = None) -> Stream:
        number = self.stream_number if number is None else number
        if number not in self.streams:
            self.streams[number] = Stream(self, number)
        return self.streams[number]

    def launch(self, name: str, grid: Union[int, Tuple[int, int, int]] = 1, threads: int = 128, stream: Optional[int] = None) -> Launch:
        """A launch of a kernel on a stream; iterate over its programs."""
        shape = (grid, 1, 1) if isinstance(grid, int) else grid
        return Launch(self.stream(stream), name, shape, threads)

    def host(self, stream: Optional[int] = None) -> Lane:
        """The lane of what the host does on a stream, after all that is there so far."""
        return self.stream(stream).meet()

    # -- text --

    def say(self, lane: Lane, text: Any) -> int:
        writer = self.writer
        if lane is not self.last_lane:
            self.last_lane = lane
            writer.raw(f"lane {lane.number} {lane.name}")
            writer.raw(f"block {lane.block}")
        if len(writer.lines) > MAX_OPS // self.recording.ranks:
            raise refuse(f"rank {self.index} does more than {MAX_OPS // self.recording.ranks} operations: a loop without end?")
        where = place()
        if self.recording.tries and isinstance(lane, Program) and ("meet", where) in self.recording.tries and (
                not lane.has_met):
            self._meet_before(lane)
            return self.say(lane, text)
        if self.recording.on_line is not None and self.recording.on_line(where):
            return self.say(lane, text)
        return writer.say(text, where)

    def _meet_before(self, program: Program) -> None:
        """Tried: programs of the same number meet before what each first does at the line."""
        program.has_met = True
        program.barrier()
        self.recording.meet(f"meet_{program.number}", self, lambda: program)
        program.barrier()

    def parts(self) -> List[Tuple[int, int]]:
        """The lines before the first call, of each call, and after the last one."""
        if not self.calls:
            return [(0, 0), (0, len(self.writer.lines)), (0, 0)]
        at = [0, *self.calls, self.calls_end or len(self.writer.lines), len(self.writer.lines)]
        return list(zip(at, at[1:]))

    def begin_call(self) -> None:
        """What follows is one more call: it begins as the first one does, so that calls can be compared."""
        self.end_call()
        self.calls.append(len(self.writer.lines))
        self.made_before.append(len(self.made))

    def meet_all(self) -> None:
        """What all streams did comes before what follows on any of them."""
        if any(stream.done or stream.hub_ahead for stream in self.streams.values()):
            self.say(self.stream(0).program(0), "join")
        for stream in self.streams.values():
            stream.done, stream.hub_ahead = 0, False
            stream.forked.clear()

    def end_call(self) -> None:
        """With one stream, or if that is tried, a call comes before the next one on all lanes."""
        if len(self.streams) == 1 or ("streams", ("-", 0)) in self.recording.tries:
            self.meet_all()
        self.last_lane = None
        self.writer.forget()

    def end_calls(self) -> None:
        """The last call has ended, as those before it did."""
        self.end_call()
        self.calls_end = len(self.writer.lines)


def _next_name(name: str) -> str:
    stem = name.rstrip("0123456789")
    return f"{stem}{int(name[len(stem):] or 1) + 1}"


def heap(rank: int) -> int:
    """Where the symmetric heap of a rank begins."""
    return HEAP + rank * HEAP_BYTES


# ---- the whole ----

class Recording:
    """What all ranks did, for one number of ranks."""

    def __init__(self, ranks: int, name: str) -> None:
        self.ranks, self.name = ranks, name
        self.rank = [Rank(self, index) for index in range(ranks)]
        self.notes: List[str] = []
        self.assumed: Dict[str, str] = {}
        self.promise: Optional[str] = None
        self.at_end: List[Callable[[], None]] = []  # what stand-ins have to say when all ranks are done
        self.dry = False  # kernels are launched and do nothing
        self.boxes = 0    # of barriers, at the ends of the heaps
        self.tries: Dict[Tuple[str, Place], str] = {}  # what is tried, whether it would fix the program: `sem` at a place is another one
        self.edits: List[Any] = []   # what edits.py has to know of changes that were tried
        self.on_line: Optional[Callable[[Place], bool]] = None  # of what is tried: did it do something before the line?
        self.asked = 1 << 30  # calls that the verdict is for, if they are not alike
        self.let_others_run: Optional[Callable[[Callable[[], bool]], None]] = None  # until something is so, or no rank can go on
        self.inputs: Dict[str, bytes] = {}  # --input, by the names of memory
        self.cells: Set[Tuple[int, int]] = set()
        self.values: Dict[int, Set[Optional[int]]] = {}  # what each signal is set to; None: it is added to
        self.held: List[Tuple[int, Set[int], str, Place]] = []

    def tried(self, kind: str, said: str) -> str:
        """What the author's line says, or what is tried there instead."""
        return self.tries.get((kind, place()), said) if self.tries else said

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def assume(self, key: str, text: str) -> None:
        """A named assumption, said once with the verdict."""
        self.assumed.setdefault(key, text)

    def holds(self, address: int, nbytes: int, values: Set[int], why: str) -> None:
        """An op means what was written down only if the signal never holds anything else; that is checked at the end."""
        del nbytes
        self.held.append((address, values, why, place()))

    def _check_held(self) -> None:
        fills = [line for rank_ in self.rank for line in rank_.writer.lines if isinstance(line, Fill)] if self.held else []
        for address, values, why, where in self.held:
            filled = {None if fill.value is None else int(fill.value) for fill in fills if fill.address <= address < fill.address + fill.nbytes}
            if not self.values.get(address, set()) | filled <= {0, *values}:
                numbers = ", ".join(str(value) for value in sorted({0, *values}))
                self.assume(f"holds {told(where)}", f"that {why} finds nothing but {numbers} there ({told(where)})")

    def contract(self, implements: str, input_: str, output: str, op: str = "sum", root: Optional[int] = None) -> None:
        self.promise = f"{implements} input {input_} output {output} op {op}" + ("" if root is None else f" root {root}")

    def host_barrier(self, rank: Rank, group: Optional[Sequence[int]] = None) -> None:
        """All ranks of the group call it: what each did before comes before what any does after."""
        if ("streams", ("-", 0)) in self.tries:
            rank.meet_all()
        if self.meet("host_barrier", rank, rank.host, group):
            rank.stream().hub_ahead = True

    def meet(self, name: str, rank: Rank, lane: Callable[[], Lane], group: Optional[Sequence[int]] = None) -> bool:
        """A lane of each rank of the group meets the others; False: there are none. Credits: each adds one at all others, and takes one of
        each; so the same ops do for every call."""
        others = [other for other in self.rank if other is not rank and (group is None or other.index in group)]
        if not others:
            return False
        if name not in rank.state:
            self.boxes += 1
            for each in self.rank:
                region = Region(each, "window", name, heap(each.index) + HEAP_BYTES - 0x10000 * self.boxes, 4 * self.ranks, "i32")
                region.zeroed = True
                each._add(region)  # pylint: disable=protected-access
                each.state[name] = region
        own, box = lane(), rank.state[name]
        for other in others:
            own.notify(other.state[name].address + 4 * rank.index, 4, "add", 1)
        for other in others:
            own.wait(box.address + 4 * other.index, 4, ">=", 1)
            own.notify(box.address + 4 * other.index, 4, "add", -1)
        return True

    def text(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        self.on_line = None
        for check in self.at_end:
            check()
        self._check_held()
        self._settle_waits()
        self._tell_apart()
        for region in [region for rank_ in self.rank for region in rank_.regions]:
            region.zeroed |= region.name == self.tries.get(("zero", ("-", 0)))
        cells = self._all_cells()
        done = [[self._spelled(rank_.writer.lines[a:b], cells) for a, b in rank_.parts()] for rank_ in self.rank]
        folded = self._fold(done)
        calls = min(len(self.rank[0].calls), self.asked)
        if folded and any(parts[-1] for parts in done):
            self.note("what the program does after its calls is left out")
        if folded:
            self.assume("calls", f"that later calls go on like the {len(self.rank[0].calls)} that were recorded"
                        + (", with values of flags that rise as they do there" if folded.rises else ""))
        self._say_who_zeroes()
        if not folded:
            self._promise_of(calls)
        yield from head(self.name, self.ranks, 0 if folded else 1, self.promise)
        yield f"calls {calls} period {folded.period if folded else 0}"
        for text in [*self.notes, *(f"assumes {text}" for text in self.assumed.values())]:
            yield f"note {text}"
        for rank in self.rank:
            for region in rank.regions:
                yield region.line()
        for rank, parts in zip(self.rank, done):
            yield f"rank {rank.index}"
            if folded:
                lines = folded.ranks[rank.index]
                yield from lines[:-1] if lines[-1:] == ["join"] else lines  # a launch ends with that
            else:
                yield from parts[0]
                yield from numbered(parts[1:calls + 1]) if calls else parts[1]
                yield "call 0"
                yield from parts[-1]

    def _promise_of(self, calls: int) -> None:
        """Memory that each call makes anew is promised as the last call that is shown made it."""
        rank_, words = self.rank[0], (self.promise or "").split()
        if not words or len(rank_.calls) <= calls:
            return
        for at in (2, 4):  # NAME input REGION output REGION
            number = next((number for number, region in enumerate(rank_.made) if region.name == words[at]), 0)
            call = bisect.bisect_right(rank_.made_before, number) - 1
            if call >= calls:
                there = rank_.made[rank_.made_before[calls - 1] + number - rank_.made_before[call]]
                for each in self.rank:
                    for region in each.regions:
                        if region.name == there.name:
                            region.kind, region.shared, region.kept, region.zeroed = "out" if at == 4 else "inout", True, True, False
                words[at] = there.name
        self.promise = " ".join(words)

    def _say_who_zeroes(self) -> None:
        starts = sorted(address for address, _ in self.cells)

        def has_signals(region: Region) -> bool:
            at = bisect.bisect_left(starts, region.address)
            return at < len(starts) and starts[at] < region.address + region.nbytes
        names = sorted({region.name for rank_ in self.rank for region in rank_.regions
                        if region.zeroed and region.name != "host_barrier" and has_signals(region)})
        if names:
            self.assume("zeroed", f"that {', '.join(repr(name) for name in names)} {'is' if len(names) == 1 else 'are'} zero on all ranks "
                        "before a kernel starts on any")

    def _fold(self, done: List[List[List[str]]]) -> Optional[Folded]:
        """All calls as one launch that is repeated, if they are alike."""
        if any(parts[0] for parts in done) or not self.rank[0].calls:
            return None
        return fold([parts[1:-1] for parts in done])

    def alike(self, rank: Rank) -> bool:
        """Are the calls of a rank alike, as far as they are recorded? It is asked at the end of a call."""
        rank.end_call()
        at = [*rank.calls, len(rank.writer.lines)]
        cells = self._all_cells()
        found = fold([[self._spelled(rank.writer.lines[a:b], cells) for a, b in zip(at, at[1:])]])
        return found is not None

    def _settle_waits(self) -> None:
        """Waits for a signal that is not 0, and that is only ever set to 0 and one other number, are waits for that number. A wait for a number
        of a peer's signal is a swap of it for itself, which may be anywhere."""
        for rank_ in self.rank:
            lines = rank_.writer.lines
            for at, line in enumerate(lines):
                if not isinstance(line, str) or not line.startswith("wait "):
                    continue
                _, address, nbytes, relation, value, how = line.split(maxsplit=5)
                if (relation, value) == ("!=", "0"):
                    values = self.values.get(int(address, 0), {None}) - {0}
                    if len(values) <= 1 and None not in values:
                        relation, value = "==", str(max(values, default=1))
                region = rank_.find(int(address, 0))
                if relation == "==" and region is not None and region.owner != rank_.index:
                    lines[at] = f"take {address} {nbytes} {value} {value} {how}"
                else:
                    lines[at] = f"wait {address} {nbytes} {relation} {value} {how}"

    def _all_cells(self) -> List[Tuple[int, int]]:
        """Address and size of all signals. Bytes that are a signal of one rank are signals of all that have them under this name."""
        found: Dict[str, Set[Tuple[int, int]]] = {}
        for address, nbytes in self.cells:
            for rank_ in self.rank:
                region = rank_.find(address)
                if region is not None:
                    found.setdefault(region.name, set()).add((address - region.address, nbytes))
                    break
        return sorted((region.address + offset, nbytes) for rank_ in self.rank for region in rank_.regions
                      for offset, nbytes in found.get(region.name, ()) if offset + nbytes <= region.nbytes)

    def _tell_apart(self) -> None:
        """What ranks have under one name is one thing only if it is alike on all of them; otherwise it gets names of its own."""
        alike: Dict[str, Any] = {}
        for region in [region for rank_ in self.rank for region in rank_.regions]:
            name, what = region.name, (region.kind, region.zeroed, region.shared, region.kept)
            while alike.setdefault(region.name, what) != what:
                region.name = _next_name(region.name) if region.name != name else f"{name}_2"

    @staticmethod
    def _spelled(lines: Sequence[Any], cells: Sequence[Tuple[int, int]]) -> List[str]:
        out: List[str] = []
        for line in lines:
            if isinstance(line, str):
                out.append(line)
            else:
                out.extend(line.lines(cells))
        return out


# ---- the rank in progress ----

class _Current(threading.local):
    rank: Optional[Rank] = None


_current = _Current()


def set_rank(rank: Optional[Rank]) -> None:
    _current.rank = rank


def rank() -> Rank:
    """The rank of this thread."""
    if _current.rank is None:
        raise refuse("this is done by the threads of a program that 'peal record' or 'peal verify' runs, one for each rank, and by no other")
    return _current.rank


def current() -> Lane:
    """The lane in progress: the program of a launch."""
    lane = _current.rank.lane if _current.rank else None
    if lane is None:
        raise refuse("this can be done in a kernel only")
    if isinstance(lane, Program) and lane.branches:
        acting = lane.acting()
        if acting:
            return lane.thread(acting[0])
    return lane


def program() -> Program:
    lane = _current.rank.lane if _current.rank else None
    if not isinstance(lane, Program):
        raise refuse("this can be done in a program of a grid only")
    return lane
