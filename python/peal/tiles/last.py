# SPDX-License-Identifier: Apache-2.0
"""`if ANSWER == NUMBER:` of an atomic that counts arrivals: whoever arrives as that number does what is inside.

Which program that is, is open. So what is inside is a lane of its own, which waits until as many have arrived, in the order that the atomic asks
for; it is recorded for each program that arrives, and has to be the same for all. That lane may do more than the program whose place it takes: what
the program did before is not before it unless the atomic acquires, and what the program does afterwards does not wait for it. So nothing is proved that is
not so.

Whether anybody arrives as that number is counted: what the counter holds when the launch begins is known, or it is refused, and so is how often
this rank's programs add 1 to it. Where nobody does, what is inside does not happen.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Set, Tuple

from .lanes import Fill, Orders, Program, Stream
from .places import Place, place, refuse, told
from ..record import SIZES, Refused

if TYPE_CHECKING:
    from .core import Rank

Key = Tuple[int, int]  # a counter, and the number of the arrival


class Inside(NamedTuple):
    """What the program that arrives as a number does."""
    lane: Program
    lines: List[Any]
    used: Dict[str, int]  # memory of values of the stream, before
    nbytes: int
    reset: Optional[int]
    place: Place

    def text(self) -> List[Any]:
        return [(line.address, line.nbytes, line.value) if isinstance(line, Fill) else line for line in self.lines]


class Arrival:
    """A program comes to the `if`."""

    def __init__(self, rank: Rank, address: int, nbytes: int, number: int, order: str, scope: str) -> None:
        self.rank, self.key, self.nbytes = rank, (address, number), nbytes
        program, counters, writer = rank.lane, rank.counters, rank.writer
        if not isinstance(program, Program) or counters.inside is not None or counters.owner(address) is not rank:
            raise refuse("the answer of an atomic decides what the kernel does, within what another one decides, or on another rank")
        if rank.pattern is not None:  # from here on the program is recorded for itself
            rank.pattern.pin()
            rank.pattern.is_open, rank.pattern = False, None
        assert program.stream is not None
        self.program, self.stream = program, program.stream
        self.before = rank.last_lane, writer.last, dict(program.stream.used)
        known = counters.found.get(self.key)
        if known is not None:
            program.stream.used = dict(known.used)
        self.used, self.start = dict(program.stream.used), len(writer.lines)
        rank.lane = self.lane = counters.lane(self.key, program.stream)
        counters.inside, counters.reset = address, None
        self.lane.begin(program.own_index, program.grid, program.threads)
        acquires = order in ("acquire", "acq_rel", "seq_cst")
        self.lane.wait(address, nbytes, ">=", number + 1, "acquire" if acquires else "relaxed", scope)

    def leave(self, is_done: bool) -> None:
        rank, counters, writer = self.rank, self.rank.counters, self.rank.writer
        if is_done:
            self.lane.end()
        lines: List[Any] = []
        for line in writer.lines[self.start:]:
            lines.extend(line) if isinstance(line, Orders) else lines.append(line)
        del writer.lines[self.start:]
        own, reset = self.stream.used, counters.reset
        rank.lane, counters.inside = self.program, None
        rank.last_lane, writer.last, self.stream.used = self.before
        if not is_done:
            return
        made = Inside(self.lane, lines, self.used, self.nbytes, reset, place())
        known = counters.found.setdefault(self.key, made)
        if known is made:
            self.stream.used = own
        elif known.text() != made.text() or known.reset != reset:
            raise refuse("what the one that arrives at this number does differs from program to program")


class Counters:
    """What is known of the numbers in the signals of a rank."""

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self.base: Dict[int, Optional[int]] = {}           # what a signal was set to last ...
        self.fills: List[Tuple[int, int, Optional[int]]] = []  # ... or a range of memory
        self.added: Dict[int, int] = {}                     # how often 1 was added since then
        self.now: Dict[int, int] = {}                       # and in the launch in progress
        self.streams: Dict[int, Optional[Stream]] = {}      # whose programs did that
        self.odd: Set[int] = set()                          # signals that are changed in other ways
        self.inside: Optional[int] = None                   # the counter, while what is inside is recorded
        self.reset: Optional[int] = None                    # that sets the counter to it
        self.lanes: Dict[Key, Program] = {}
        self.found: Dict[Key, Inside] = {}                  # of the launch in progress
        self.asked: Dict[int, Place] = {}

    def owner(self, address: int) -> Optional[Rank]:
        region = self.rank.find(address)
        return None if region is None else region.rank

    def lane(self, key: Key, stream: Stream) -> Program:
        if key not in self.lanes:
            lane = self.rank.new_lane(f"last{len(self.lanes)}", None, Program)
            assert isinstance(lane, Program)
            self.lanes[key], lane.stream = lane, stream
        return self.lanes[key]

    def change(self, address: int, value: Optional[int], adds: int, by: Rank) -> None:
        """A kernel sets a signal, or (None) changes it in another way: adds so much."""
        if self.inside is not None:
            if address != self.inside or by is not self.rank or value is None:
                self.odd.add(address)
            self.reset = value if address == self.inside else self.reset
        elif by is not self.rank or (value is not None and address in self.now) or (value is None and adds != 1):
            self.odd.add(address)
        elif value is not None:
            self.base[address] = value
            self.added.pop(address, None)
        else:
            self.added[address] = self.added.get(address, 0) + 1
            self.now[address] = self.now.get(address, 0) + 1
            stream = by.lane.stream if by.lane is not None else None
            if self.streams.setdefault(address, stream) is not stream:
                self.odd.add(address)

    def fill(self, address: int, nbytes: int, value: Optional[float]) -> None:
        """A range of memory is filled."""
        inside = [one for one in {*self.added, *self.base} if address <= one < address + nbytes]
        for one in inside:
            if one in self.now or self.inside is not None:
                self.odd.add(one)
            self.added.pop(one, None)
            self.base.pop(one, None)
        if self.inside is not None and address <= self.inside < address + nbytes:
            self.odd.add(self.inside)
        self.fills.append((address, nbytes, None if value is None else int(value)))

    def _at_first(self, address: int) -> Optional[int]:
        """What the signal held when the launch in progress began."""
        held: Optional[int] = None
        if address in self.base:
            held = self.base[address]
        else:
            region = self.rank.find(address)
            held = 0 if region is not None and region.zeroed else None
            for first, nbytes, value in self.fills:
                held = value if first <= address < first + nbytes else held
        return None if held is None else held + self.added.get(address, 0) - self.now.get(address, 0)

    def settle(self, stream: Stream) -> None:
        """The launch ends: who arrived as the number did what is inside."""
        rank = self.rank
        for (address, number), one in self.found.items():
            first, total = self._at_first(address), self.now.get(address, 0)
            self.asked[address] = one.place
            if first is None:
                raise Refused(f"{told(one.place)}: who arrives as number {number} is not known, because nothing says what the counter holds at first")
            if not first <= number < first + total:
                continue
            if one.reset is not None and number != first + total - 1:
                raise Refused(f"{told(one.place)}: the counter is set back when {first + total - 1 - number} more arrive in the same launch")
            if stream.hub_ahead:
                one.lane.after(stream.programs[0])
            for line in one.lines:
                rank.writer.lines.append(self._set_back(line, address, one, number + 1))
            rank.last_lane = None
            rank.writer.forget()
            stream.forked.append(one.lane)
            if one.reset is not None:
                self.base[address] = one.reset
                self.added.pop(address, None)
        self.found.clear()
        self.now.clear()

    @staticmethod
    def _set_back(line: Any, address: int, one: Inside, held: int) -> Any:
        """The counter is set: that is to add, because it is known what it holds."""
        words = line.split() if isinstance(line, str) else [""]
        change = (one.reset or 0) - held
        if words[0] == "notify" and words[3] == "set" and int(words[1], 0) == address:
            return " ".join([*words[:3], "add", str(change), *words[5:]])
        if words[0] == "write" and words[1] == f"{words[1].split('@')[0]}@{address:#x}*1" and SIZES[words[1].split('@')[0]] == one.nbytes:
            return f"notify {address:#x} {one.nbytes} add {change} relaxed system"
        return line

    def check(self) -> None:
        """At the end: nothing else changed the counters."""
        for address, where in self.asked.items():
            if address in self.odd:
                raise Refused(f"{told(where)}: who arrives as this number is not known, because the counter is also changed in other ways, "
                              "by other ranks or from several streams")
