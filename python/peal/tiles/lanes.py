# SPDX-License-Identifier: Apache-2.0
"""Lanes: the programs of launches, their threads, and the streams on which launches follow each other. What a lane does is written down in
order, as lines of its rank."""
from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from ..record import SIZES, OutOfTime
from .alike import TRIES, Number, Pattern, Template
from .places import Place, Span, constant, runs

if TYPE_CHECKING:
    from .core import Rank


# ---- what becomes lines at the end ----

class Orders(List[str]):
    """A place among the lines where orders between lanes are added later, when it is known that they matter."""

    def __init__(self, current: Optional[Lane]) -> None:
        super().__init__()
        self.current = current  # the lane that lines after this belong to

    def add_in(self, lane: Lane, text: str) -> None:
        """A line of some lane."""
        self.append(f"lane {lane.said()} {lane.said('name')}")
        self.append(text)
        if self.current is not None:
            self.append(f"lane {self.current.said()}")

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
        self.role = -1                          # which thread of its program it is; -1: all of them
        self.free: Dict[Tuple[str, int], List[int]] = {}
        self.stream: Optional[Stream] = None
        self.begun = False
        self.program: Optional[Program] = None  # that it belongs to
        self.opened = self.closes = False       # does its part of the launch begin, or end, with a fence that matters?
        self.first = True                       # has it done nothing in the launch, and heard of nothing?
        self.weak: List[int] = []               # lines of reads of signals that do not acquire, with nothing after them that could matter

    def said(self, what: str = "number") -> str:
        """Its number, name or block, in a line: of a program that others may be like, to be filled in."""
        pattern = self.rank.pattern
        if pattern is not None and self.program is not None and self.program is self.rank.lane:
            return pattern.mark((self.role, what))
        return str(getattr(self, what))

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
        if type(span.address) is Number:  # pylint: disable=unidiomatic-typecheck
            span.address.pattern.fills.append((span.address, span.count * SIZES[span.dtype], value))
        else:
            self.rank.at(span.address).rank.counters.fill(span.address, span.count * SIZES[span.dtype], value)
        return self.say(Fill(span.address, span.count * SIZES[span.dtype], value, span.dtype, False))

    def write(self, span: Span, value: Optional[float] = None) -> int:
        self.rank.wrote(span)
        if value is not None and span.dtype[0] in "iu" and span.count == span.rows == 1:
            self.rank.recording.is_set(span.address, int(value), self.rank)
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
        self.rank.recording.is_set(address, value if change == "set" else None, self.rank, value)
        return self.say(f"notify {address:#x} {nbytes} {change} {value} {order} {scope}")

    def wait(self, address: int, nbytes: int, relation: str, value: int, order: str = "acquire", scope: str = "system") -> int:
        order = {"release": "relaxed", "acq_rel": "acquire"}.get(order, order)
        self.rank.is_cell(address, nbytes)
        return self.weakly(order, self.say(f"wait {address:#x} {nbytes} {relation} {value} {order} {scope}"))

    def take(self, address: int, nbytes: int, old: int, new: int, order: str = "acq_rel", scope: str = "system") -> int:
        self.rank.is_cell(address, nbytes)
        self.rank.recording.is_set(address, new, self.rank)
        self.rank.recording.is_set(address, None, self.rank, None)
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
            self.say(f"order {other.said()} {self.said()}")

    def fork(self, name: str) -> Lane:
        """A new lane that starts after what this one has done so far; in the same block."""
        lane = self.rank.new_lane(name, self.block)
        lane.stream = self.stream
        if self.stream:
            self.stream.forked.append(lane)
        lane.after(self)
        return lane

    def flag_set(self, to: Lane, number: int) -> None:
        self.say(f"flag_set {self.said()} {to.said()} {number}")

    def flag_wait(self, source: Lane, number: int) -> None:
        self.say(f"flag_wait {source.said()} {self.said()} {number}")

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
        self.own_index = 0
        self.grid: Tuple[int, int, int] = (1, 1, 1)
        self.threads = 128
        self.has_met = False                # all programs of this number, because that is tried
        self.apart: Dict[int, Lane] = {}    # threads with lanes of their own
        self.opening = self.met = Orders(None)  # where the launch began, and where the last barrier was
        self.program = self
        self.branches: List[Tuple[Any, Tuple[int, int], Set[int]]] = []  # in progress: the frame (None: until it is taken away), its lines, the threads in it

    def begin(self, index: int, grid: Tuple[int, int, int], threads: int) -> None:
        self.own_index, self.grid, self.threads, self.has_met = index, grid, threads, False
        self.branches.clear()
        self.rank.last_lane = None  # what it does begins with its name and its place, as that of other programs
        self.rank.writer.forget()
        for lane in (self, *self.apart.values()):
            lane.free.clear()
            lane.begun = lane.opened = lane.closes = False
            lane.first = True
            lane.weak.clear()
        self._meet()
        self.opening = self.met

    @property
    def index(self) -> int:
        """Its number. Who asks does not do what other programs do."""
        if self.rank.pattern is not None:
            self.rank.pattern.pin()
        return self.own_index

    def coordinate(self, axis: int) -> Any:
        """Its number along an axis of the grid."""
        place = coordinates(self.own_index, self.grid)[axis]
        if self.rank.pattern is not None and axis == longest(self.grid):
            return Number(self.rank.pattern, 0, 1)
        return place

    def _meet(self) -> None:
        self.met = Orders(self.rank.last_lane)
        self.rank.writer.raw(self.met)

    def open(self, lane: Lane) -> None:
        """The lane's part of the launch begins with a fence."""
        if lane is not self:
            self.opening.append(f"order {self.said()} {lane.said()}")
        self.opening.add_in(lane, "fence acq_rel system")
        self.leans()

    def leans(self) -> None:
        self.rank.recording.assume("launches", "that a launch begins and ends with a fence for the whole system, as launches of a stream do")

    def lane_of(self, number: int) -> Lane:
        lane = self.apart.get(number)
        if lane is None:
            lane = self.apart[number] = self.rank.new_lane(f"{self.name}.t{number}", self.block)
            lane.stream, lane.program, lane.role = self.stream, self, number
        return lane

    def thread(self, number: int) -> Lane:
        """The lane of one thread: it follows what the program did before its last barrier, not what all threads did since."""
        lane = self.lane_of(number)
        if not lane.begun:
            lane.begun = True
            self.met.append(f"order {self.said()} {lane.said()}")
            if self.rank.pattern is not None and number not in self.rank.pattern.threads:
                self.rank.pattern.threads.append(number)
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
            if frame is None or (first <= frame.f_lineno <= last and runs(frame)):
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

    def allocate(self, count: int, dtype: str) -> Any:
        at, pattern = self.used.get(dtype, 0), self.rank.pattern
        self.used[dtype] = at + -(-count * SIZES[dtype] // 64) * 64
        where = self.rank.values_region(self.number, dtype)
        if self.used[dtype] > where.nbytes:
            where.nbytes = self.used[dtype]
        if pattern is None:
            return where.address + at
        first = pattern.scratch.setdefault(dtype, where.address + at)
        return Number(pattern, where.address + at - first, 0, dtype)

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


Grid = Tuple[int, int, int]


def longest(grid: Grid) -> int:
    """The axis with most programs."""
    return max(range(3), key=lambda axis: grid[axis])


def coordinates(index: int, grid: Grid) -> Tuple[int, int, int]:
    return index % grid[0], index // grid[0] % grid[1], index // (grid[0] * grid[1])


class Launch:
    """One launch of a kernel: its programs, one after the other."""

    def __init__(self, stream: Stream, name: str, grid: Grid, threads: int) -> None:
        self.stream, self.name, self.grid, self.threads = stream, name, grid, threads
        self.axis = longest(grid)
        # Programs that others may be like, by their coordinates on the other axes.
        self.found: Dict[Tuple[int, ...], List[Template]] = {}
        self.alone = 0  # programs in a row that no other one is like

    def run(self, body: Callable[[], Any]) -> None:
        """What each program does is the body."""
        stream, rank = self.stream, self.stream.rank
        rank.launches.append((tuple(rank.statements), self.name, tuple(rank.loops)))
        if rank.recording.dry:
            return
        hub = stream.meet()
        if stream.hub_ahead and len(rank.streams) == 1:
            rank.say(hub, "join")
            stream.hub_ahead = False
        stream.used.clear()
        total = self.grid[0] * self.grid[1] * self.grid[2]
        before = rank.lane
        for index in range(1, total if stream.hub_ahead else 1):  # all of them first: none comes after what the hub's lane does as a program
            stream.program(index).after(hub)
        for index in range(total):
            program = stream.program(index)
            rank.lane = program
            try:
                self._program(program, index, body)
            finally:
                rank.lane = before
        rank.counters.settle(stream)
        stream.hub_ahead = False
        stream.done = total

    def _program(self, program: Program, index: int, body: Callable[[], Any]) -> None:
        place = coordinates(index, self.grid)
        at, others = place[self.axis], place[:self.axis] + place[self.axis + 1:]
        for template in self.found.get(others, ()):
            if template.low <= at <= template.high and template.changes == program.rank.changes:
                template.write(program, at)
                return
        rank = program.rank
        if rank.recording.tries or rank.recording.on_line or not rank.recording.finds_alike or self.grid[self.axis] < 4 or self.alone == TRIES:
            self._record(program, index, body)
            return
        first, used, changes = len(rank.writer.lines), dict(self.stream.used), rank.changes
        rank.pattern = pattern = Pattern(at, self.grid[self.axis])
        try:
            self._record(program, index, body)
        except OutOfTime:
            raise
        except Exception:  # pylint: disable=broad-except # what it is about is said better without marks
            rank.pattern, pattern.is_open, rank.waiting = None, False, None
            del rank.writer.lines[first:]
            self.stream.used = used
            self._record(program, index, body)
            return
        finally:
            rank.pattern, pattern.is_open = None, False
        template = Template(program, pattern, first, changes)
        is_alone = pattern.low == pattern.high
        self.alone = self.alone + 1 if is_alone else 0
        if not is_alone:
            self.found.setdefault(others, []).append(template)

    def _record(self, program: Program, index: int, body: Callable[[], Any]) -> None:
        program.begin(index, self.grid, self.threads)
        body()
        program.end()
