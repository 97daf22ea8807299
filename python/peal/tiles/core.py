# SPDX-License-Identifier: Apache-2.0
"""What tile kernels in Python record: memory, ranks, what each of them does, and what is assumed.

A Recording is for one number of ranks. Each Rank has the lines of its own, in the order in which they were said (docs/record.md
has the form). The programs of a launch are lanes; launches of a stream follow each other, streams do not. Memory that all ranks reach
stands at the same offset of each rank's heap; everything else has addresses of its own too, so that an address says
which memory is meant, whoever uses it.

Positions are those of the author: the innermost frame that is not in this package.
"""
from __future__ import annotations

import bisect
import threading
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

import numpy as np

from ..record import SIZES, Refused, Writer, head
from . import statements
from .alike import Number, Pattern
from .calls import Folded, fold, numbered
from .last import Counters
from .lanes import Fill, Lane, Launch, Orders, Program, Stream
from .places import Place, Span, author, constant, place, refuse, told

HEAP = 0x10_0000_0000          # where rank 0's symmetric heap begins, and how far the heaps are apart
HEAP_BYTES = 0x40_0000_0000
LOCAL = 0x4000_0000_0000       # the same for memory that only its rank knows
TILES = 0x7000_0000_0000       # values of tiles, per stream and type
TILES_BYTES = 0x10_0000_0000
GRAIN = 256
GAP = 4096
MAX_OPS = 4_000_000


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
            for each in self.rank.recording.rank:
                each.changes += 1
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
        self.counters = Counters(self)
        self.pattern: Optional[Pattern] = None  # of the program in progress, if others may be like it
        self.changes = 0                     # of memory by kernels, for the first time
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
        if type(span.address) is Number and span.address.tag or span.address >= TILES:  # pylint: disable=unidiomatic-typecheck
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
        if type(address) is Number:  # pylint: disable=unidiomatic-typecheck
            address.pattern.cells.append((address, nbytes))
        else:
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
        self.counters.fill(region.address + offset, nbytes, value)
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
            writer.raw(f"lane {lane.said()} {lane.said('name')}")
            writer.raw(f"block {lane.said('block')}")
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

    def host_waited(self) -> None:
        """The host has waited for what its stream did last: that comes before what any stream is given from here on."""
        hub, others = self.host(), [stream for stream in self.streams.values() if stream.number != self.stream_number]
        if not any(stream.done or stream.forked for stream in others):
            self.stream().hub_ahead = True
            self.meet_all()
            return
        for stream in others:
            stream.meet().after(hub)
            stream.hub_ahead = True
        self.stream().hub_ahead = True

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
        self.finds_alike = True  # programs of a grid that do the same are recorded once
        self.dry = False  # kernels are launched and do nothing
        self.boxes = 0    # of barriers, at the ends of the heaps
        self.tries: Dict[Tuple[str, Place], str] = {}  # what is tried, whether it would fix the program: `sem` at a place is another one
        self.edits: List[Any] = []   # what edits.py has to know of changes that were tried
        self.on_line: Optional[Callable[[Place], bool]] = None  # of what is tried: did it do something before the line?
        self.asked = 1 << 30  # calls that the program makes: more may be recorded
        self.is_folded = False
        self.instrument: Optional[Callable[[Recording, List[List[List[str]]]], List[List[List[str]]]]] = None  # of all calls: ordered.py
        self.let_others_run: Optional[Callable[[Callable[[], bool]], None]] = None  # until something is so, or no rank can go on
        self.inputs: Dict[str, bytes] = {}  # --input, by the names of memory
        self.cells: Set[Tuple[int, int]] = set()
        self.values: Dict[int, Set[Optional[int]]] = {}  # what each signal is set to; None: it is added to
        self.maxima: Dict[int, Tuple[Lane, Set[int]]] = {}  # signals that atomic maxima change: who does, and to what
        self.held: Dict[Tuple[int, Place], Tuple[Set[int], str]] = {}

    def tried(self, kind: str, said: str) -> str:
        """What the author's line says, or what is tried there instead."""
        return self.tries.get((kind, place()), said) if self.tries else said

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def assume(self, key: str, text: str) -> None:
        """A named assumption, said once with the verdict."""
        self.assumed.setdefault(key, text)

    def is_set(self, address: int, value: Optional[int], by: Rank, adds: Optional[int] = 0) -> None:
        """A rank's kernel sets a signal, perhaps, to a value, or (None) changes it in another way: adds so much. adds None: it may."""
        if type(address) is Number:  # pylint: disable=unidiomatic-typecheck
            address.pattern.values.append((address, value, adds))
            return
        if adds is not None:
            self.values.setdefault(address, set()).add(value)
        region = by.find(address)
        if region is not None:
            region.rank.counters.change(address, value if adds is not None else None, adds or 0, by)

    def holds(self, address: int, values: Set[int], why: str) -> None:
        """An op means what was written down only if the signal never holds anything else; that is checked at the end."""
        if type(address) is Number:  # pylint: disable=unidiomatic-typecheck
            address.pattern.held[address.base, address.times, place()] = (values, why)
        else:
            self.held[address, place()] = (values, why)

    def holds_no_more(self, address: int, where: Place) -> None:
        """The op at that place has become another one, which means what it says."""
        if type(address) is Number:  # pylint: disable=unidiomatic-typecheck
            address.pattern.held.pop((address.base, address.times, where), None)
        else:
            self.held.pop((address, where), None)

    def _check_held(self) -> None:
        fills = [line for rank_ in self.rank for line in rank_.writer.lines if isinstance(line, Fill)] if self.held else []
        for (address, where), (values, why) in self.held.items():
            filled = {None if fill.value is None else int(fill.value) for fill in fills if fill.address <= address < fill.address + fill.nbytes}
            found = self.values.get(address, set()) | filled
            if not found <= {0, *values}:
                others = sorted(found - {0, None, *values})  # type: ignore[type-var]
                what = f"to {', '.join(map(str, others))}" if others else "in other ways"
                raise Refused(f"{told(where)}: {why} can be expressed if nothing else is in the signal, and it is set {what}, too")

    def contract(self, implements: str, input_: str, output: str, op: str = "sum", root: Optional[int] = None) -> None:
        self.promise = f"{implements} input {input_} output {output} op {op}" + ("" if root is None else f" root {root}")

    def host_barrier(self, rank: Rank, group: Optional[Sequence[int]] = None, blocks: bool = False) -> None:
        """All ranks of the group call it: what each did before comes before what any does after."""
        if ("streams", ("-", 0)) in self.tries:
            rank.meet_all()
        if self.meet("host_barrier", rank, rank.host, group):
            rank.stream().hub_ahead = True
            if blocks and len(rank.streams) > 1:
                rank.host_waited()

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
        for rank_ in self.rank:
            rank_.counters.check()
        self._settle_waits()
        self._tell_apart()
        for region in [region for rank_ in self.rank for region in rank_.regions]:
            region.zeroed |= region.name == self.tries.get(("zero", ("-", 0)))
        cells = self._all_cells()
        done = [[self._spelled(rank_.writer.lines[a:b], cells) for a, b in rank_.parts()] for rank_ in self.rank]
        if self.instrument is not None:
            done = self.instrument(self, done)
        folded = None if self.instrument else self._fold(done)
        self.is_folded = folded is not None
        calls = min(len(self.rank[0].calls), self.asked)
        if folded and any(parts[-1] for parts in done):
            self.note("what the program does after its calls is left out")
        if folded:
            self.assume("calls", f"that later calls go on like the {len(self.rank[0].calls)} that were recorded"
                        + (", with values of flags that rise as they do there" if folded.rises else ""))
        self._say_who_zeroes()
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
        """Are the calls of a rank alike, as far as they are recorded, or can they not be, because lanes go on? It is asked at the end of a call."""
        rank.end_call()
        if rank.writer.lines[-1:] != ["join"]:
            return True
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
