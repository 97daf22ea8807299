# SPDX-License-Identifier: Apache-2.0
"""What the PEs of an OpenSHMEM program did, made a recording (docs/record.md): `peal record` calls this after the run.

    python3 shmem.py record PRELOAD FOLDER OUT PEAL exec -n P PROGRAM ARGUMENT...
                                        FOLDER/run has the events of each PE: pe0, pe1, ... (shmem/log.c writes them). The command
                                        runs the program again, if that is needed (shmem_runs.py)
    python3 shmem.py cc LIBRARY INCLUDE ARGUMENT...
                                        the compiler, with the flags that report loads and stores (`peal cc`)

A PE is lane 0 of its rank. An operation that has not ended when its call returns has a lane of its own: it begins after its call,
ends before the next quiet of its context, and is ordered with others of its PE by nothing else but fences. A blocking put reads its
source in lane 0 and writes in its own lane; a get does both in lane 0; the non-blocking forms do both in their own. Words that
some PE waits for are signals, and what changes them notifies. Atomic operations on other words are atomic additions, whatever they
are: they race with plain accesses and with nothing else. A barrier is a signal from every member to every other one.

What a recording of one run cannot show is refused with its line: which of several words came first, a test that is not repeated.
"""
from __future__ import annotations

import functools
import operator
import os
import shutil
import signal as signals
import subprocess
import sys
import tempfile
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

try:
    from . import shmem_runs
except ImportError:  # the command has both as files in one folder
    import shmem_runs  # type: ignore[no-redef]

SYMMETRIC, SYNC, ORDER = 1 << 56, 2 << 56, 3 << 56
MAX_LANES = 250
BARRIERS = ("barrier", "finalize", "alloc", "align", "free", "exit")  # in the names of calls
# Atomic operations are atomic with others of the same type and team: each such domain is a function of its own in the recording.
FUNCTIONS = ("add", "maximum", "minimum", "and", "or", "xor")
TYPES = {"int32": "int", "uint32": "uint", "longlong": "long", "int64": "long", "ptrdiff": "long", "ulonglong": "ulong",
         "uint64": "ulong", "size": "ulong"}
PAGE = 4096
RELATIONS = (">=", "==", ">", "!=")
HOLDS: Dict[str, Callable[[int, int], bool]] = {">=": operator.ge, "==": operator.eq, ">": operator.gt, "!=": operator.ne,
                                                "<": operator.lt, "<=": operator.le}
MAX_SECONDS = 60  # of one more run


class Event:
    """One line of a PE's events."""

    def __init__(self, line: str) -> None:
        words = line.split()
        self.pc, self.call, self.kind, self.args = int(words[0], 16), words[1], words[2], words[3:]

    def number(self, i: int) -> int:
        text = self.args[i]
        return 0 if text == "(nil)" else int(text, 0)


class Operation:
    """One that may still be under way."""

    def __init__(self, lane: int, ctx: str, pe: int, is_get: bool) -> None:
        self.lane, self.ctx, self.pe, self.is_get, self.fenced = lane, ctx, pe, is_get, False
        self.ranges: Optional[List[Tuple[int, int]]] = None  # of plain puts that share a lane


class Program:
    """All PEs, and what is known of all of them together."""

    def __init__(self, path: str, folder: str) -> None:
        self.path = path
        self.events: List[List[Event]] = []
        while os.path.exists(os.path.join(folder, f"pe{len(self.events)}")):
            lines: List[str] = []
            for name in (f"pe{len(self.events)}.child", f"pe{len(self.events)}"):
                if os.path.exists(os.path.join(folder, name)):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        lines += [line for line in file if line.count(" ") >= 2 and line.endswith("\n")]
            self.events.append([Event(line) for line in lines])
        self.has_ended = all(events and events[-1].kind == "end" for events in self.events)
        self.memory = [[(e.number(0), e.number(1)) for e in events if e.kind == "memory"] for events in self.events]
        self.is_direct = any(e.kind == "memory" and e.args[2:] == ["symmetric"] for events in self.events for e in events)
        self.teams: Dict[Tuple[int, ...], int] = {}
        self.cells: Set[Tuple[int, int, int]] = set()   # segment, offset, bytes: somebody waits there
        self.words: Dict[Tuple[int, int], int] = {}     # segment, offset: bytes of atomic words
        self.updated: Set[Tuple[int, int]] = set()
        self.domains: Dict[Tuple[int, int], List[Tuple[str, str]]] = {}
        self.barriers: Set[int] = set()  # places of barriers that are taken to complete other contexts too
        for pe, events in enumerate(self.events):
            for event in events:
                self.note(pe, event)
        for cell in self.cells:
            self.words.pop(cell[:2], None)
        self.values: Dict[Tuple[int, Tuple[int, int]], Set[Optional[int]]] = {}  # that words may get; None: they are added to
        for pe, events in enumerate(self.events):
            for event in events:
                self.note_value(pe, event)

    @functools.cached_property
    def lines(self) -> Dict[int, Tuple[str, int]]:
        """The file and line of each place: by addr2line, if it is there."""
        places = sorted({event.pc for events in self.events for event in events})
        tools = [tool for tool in ("addr2line", "eu-addr2line", "llvm-addr2line") if shutil.which(tool)]
        if not tools:
            print("peal: neither addr2line nor eu-addr2line is there (packages binutils, elfutils):\n  places have no file and line",
                  file=sys.stderr)
            return {}
        done = subprocess.run([tools[0], "-a", "-i", "-e", self.path], input="".join(f"{pc:#x}\n" for pc in places), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        lines: Dict[int, Tuple[str, int]] = {}
        pc = 0
        for text in done.stdout.splitlines():
            if text.startswith("0x"):
                pc = int(text.rstrip(":"), 16)
                continue
            # An inlined function's line, then that of its caller, and so on: the first that is not the system's.
            file, _, line = text.partition(" (")[0].rpartition(":")
            if line.isdigit() and int(line) > 0 and lines.get(pc, ("/usr/",))[0].startswith("/usr/"):
                file = os.path.normpath(file)
                short = os.path.relpath(file)
                lines[pc] = (file if short.startswith("..") else short, int(line))
        return lines

    def find(self, pe: int, address: int) -> Optional[Tuple[int, int]]:
        """Segment and offset, or None: it is local memory."""
        for segment, (base, size) in enumerate(self.memory[pe]):
            if base <= address < base + size:
                return segment, address - base
        return None

    def note(self, pe: int, event: Event) -> None:
        if event.kind in ("wait", "test", "loop") and event.args:
            place = self.find(pe, event.number(0))
            if place:
                self.cells.add((*place, event.number(1)))
        elif event.kind == "poll":
            place = self.find(pe, event.number(0))
            if place:
                self.cells.add((*place, 8))
        elif event.kind in ("lock", "unlock"):
            place = self.find(pe, event.number(0))
            if place:
                self.cells.add((*place, 8))
        elif event.kind in ("atomic", "signal"):
            place = self.find(pe, event.number(2))
            if place:
                self.words[place] = max(self.words.get(place, 0), event.number(3) if event.kind == "atomic" else 8)
                if event.kind == "signal" or event.args[4] != "fetch":
                    self.updated.add(place)
                if self.domain(event) not in self.domains.setdefault(place, []):
                    self.domains[place].append(self.domain(event))

    def note_value(self, pe: int, event: Event) -> None:
        owner, address, value = pe, 0, None  # type: int, int, Optional[str]
        if event.kind == "store" and event.args[2:]:
            address, value = event.number(0), event.args[2]
        elif event.kind == "put" and self.is_cell(pe, event.number(2), event.number(4)):
            owner, address, value = event.number(1), event.number(2), event.args[6]
        elif event.kind == "signal":
            owner, address, value = event.number(1), event.number(2), None if event.number(4) else event.args[3]
        elif event.kind == "atomic" and event.args[4] != "fetch":
            owner, address, value = event.number(1), event.number(2), event.args[5] if event.args[4] == "swap" else None
        place = self.find(pe, address) if address else None
        if place:
            self.values.setdefault((owner, place), set()).add(None if value is None else int(value))

    @functools.cached_property
    def reached(self) -> List[Set[Tuple[int, int]]]:
        """Of each PE: segments and words of 8 bytes that others may read or write."""
        found: List[Set[Tuple[int, int]]] = [set() for _ in self.events]
        for pe, events in enumerate(self.events):
            for i, event in enumerate(events):
                spans = []  # type: List[Tuple[int, int, int]]
                if event.kind in ("put", "get"):
                    spans = [(event.number(1), event.number(2 if event.kind == "put" else 3), event.number(4))]
                elif event.kind in ("atomic", "signal"):
                    spans = [(event.number(1), event.number(2), 8)]
                elif event.kind == "collective":
                    spans = [(int(member), event.number(1), event.number(2)) for member in events[i + 1].args]
                for owner, address, size in spans:
                    place = self.find(pe, address)
                    if place and owner != pe:
                        found[owner].update((place[0], word) for word in range(place[1] // 8, (place[1] + size + 7) // 8))
        return found

    def is_cell_at(self, place: Optional[Tuple[int, int]], size: int) -> bool:
        return place is not None and (*place, size) in self.cells

    def is_cell(self, pe: int, address: int, size: int) -> bool:
        return self.is_cell_at(self.find(pe, address), size)

    @staticmethod
    def ends_all(event: Event) -> bool:
        """Is this quiet a part of a barrier? It is taken to complete the operations of all contexts, as implementations do."""
        return any(word in event.call for word in BARRIERS)

    @staticmethod
    def domain(event: Event) -> Tuple[str, str]:
        if event.kind == "signal":
            return "signal", "world"
        name = event.call.replace("shmem_ctx_", "shmem_").split("_")[1]
        return TYPES.get(name, name), event.args[7]

    def at(self, pe: int, place: Tuple[int, int]) -> int:
        return SYMMETRIC + (pe << 48) + (place[0] << 40) + place[1]


class Translator:
    """One PE's events as calls of a recording."""

    def __init__(self, program: Program, pe: int, pairs: Sequence[Tuple[Any, Any]] = ()) -> None:
        self.program, self.pe, self.index = program, pe, 0
        # Signals from atomic operations to those that have found what these have left: by the number of the event, addresses.
        self.shows: Dict[int, List[int]] = {}
        self.finds: Dict[int, List[int]] = {}
        for number, (writer, reader) in enumerate(pairs):
            if writer.pe == pe:
                self.shows.setdefault(writer.index, []).append(ORDER + (reader.pe << 32) + 8 * number)
            if reader.pe == pe:
                self.finds.setdefault(reader.index, []).append(ORDER + (pe << 32) + 8 * number)
        self.npairs = len(pairs)
        self.out: List[str] = []
        self.lane, self.place = 0, -1
        self.operations: List[Operation] = []
        self.next_lane = 1
        self.episodes: Dict[int, int] = {}
        self.locals: Set[int] = set()   # pages
        self.seen: Set[Tuple[int, int, int]] = set()
        self.pending: Optional[Event] = None
        self.assumes: Set[int] = set()
        self.refused = False
        self.last_put = 0
        self.after = -1  # the next operation comes after all to this PE
        self.result: Optional[Tuple[int, int]] = None  # of the collective that a sync belongs to

    # ---- writing ----

    def say(self, lane: int, text: str) -> None:
        if lane != self.lane:
            self.out.append(f"lane {lane}")
            self.lane = lane
        self.out.append(text)

    def go_to(self, pc: int) -> None:
        if pc == self.place:
            return
        self.place = pc
        file, line = self.program.lines.get(pc, (None, 0))
        self.out.append(f"at {line} {file}" if file else "at 0")

    def refuse(self, why: str) -> None:
        if not self.refused:
            self.out.append(f"refuse {why}")
        self.refused = True

    # ---- memory ----

    def spans(self, pe: int, address: int, size: int) -> List[str]:
        """A range of this PE's addresses, on any PE, in parts: words of atomic operations keep their type."""
        place = self.program.find(self.pe, address)
        if place is None:
            self.locals.update(range(address // PAGE, (address + max(size, 1) - 1) // PAGE + 1))
            return [f"u8@{address:#x}*{size}"]
        segment, offset = place
        base, parts, at = self.program.at(pe, (segment, 0)), [], offset
        words = sorted((o, n) for (s, o), n in self.program.words.items() if s == segment and o < offset + size and o + n > offset)
        words += [(o, n) for s, o, n in self.program.cells if s == segment and o < offset + size and o + n > offset]
        for start, count in sorted(words):
            if start > at:
                parts.append(f"u8@{base + at:#x}*{start - at}")
            parts.append(f"i{8 * count}@{base + start:#x}*1")
            at = start + count
        if at < offset + size:
            parts.append(f"u8@{base + at:#x}*{offset + size - at}")
        return parts

    def read(self, lane: int, pe: int, address: int, size: int) -> None:
        for span in self.spans(pe, address, size):
            self.say(lane, f"read {span}")

    def write(self, lane: int, pe: int, address: int, size: int) -> None:
        for span in self.spans(pe, address, size):
            self.say(lane, f"write {span}")

    def cell(self, pe: int, address: int, size: int) -> Optional[int]:
        place = self.program.find(self.pe, address)
        return self.program.at(pe, place) if place and self.program.is_cell_at(place, size) else None

    # ---- operations under way ----

    def start(self, event: Event, pe: int, is_get: bool = False, plain: Optional[Tuple[int, int]] = None) -> int:
        """A lane for an operation that begins here."""
        ctx = event.args[0]
        for operation in self.operations:
            # Plain puts whose memory is apart are ordered by nothing and show nothing: they may share a lane.
            if plain and operation.ranges is not None and (operation.ctx, operation.pe, operation.fenced) == (ctx, pe, False) and \
                    all(plain[1] <= lo or hi <= plain[0] for lo, hi in operation.ranges):
                operation.ranges.append(plain)
                self.say(0, f"order 0 {operation.lane}")
                return operation.lane
        if self.next_lane > MAX_LANES:
            self.refuse(f"more than {MAX_LANES} operations are under way at once")
            return MAX_LANES
        operation = Operation(self.next_lane, ctx, pe, is_get)
        operation.ranges = [plain] if plain else None
        self.next_lane += 1
        self.say(0, f"order 0 {operation.lane}")
        for earlier in self.operations:
            if (earlier.fenced or (pe == self.after and not earlier.is_get)) and (earlier.ctx, earlier.pe) == (ctx, pe):
                self.say(0, f"order {earlier.lane} {operation.lane}")
        self.operations.append(operation)
        self.after = -1
        return operation.lane

    def quiet(self, event: Event) -> None:
        """Of one context. If a barrier completes others, the verdict says so."""
        ended = [o for o in self.operations if o.ctx == event.args[0] or self.program.ends_all(event)]
        for operation in ended:
            self.say(0, f"order {operation.lane} 0")
            if operation.ctx != event.args[0]:
                self.program.barriers.add(event.pc)
        self.operations = [o for o in self.operations if o not in ended]
        if not self.operations:
            self.next_lane = 1

    # ---- events ----

    def put(self, event: Event) -> None:
        pe, dest, source, size, nbi = (event.number(i) for i in range(1, 6))
        cell = self.cell(pe, dest, size)
        place = self.program.find(self.pe, dest)
        start = self.program.at(pe, place) if place else 0
        if not nbi:
            self.read(0, self.pe, source, size)
        lane = self.start(event, pe, plain=(start, start + size) if not nbi and cell is None else None)
        if nbi:
            self.read(lane, self.pe, source, size)
        if cell is not None:
            self.say(lane, f"notify {cell:#x} {size} set {event.args[6]}")
        else:
            self.write(lane, pe, dest, size)
        self.last_put = lane

    def get(self, event: Event) -> None:
        pe, dest, source, size, nbi = (event.number(i) for i in range(1, 6))
        lane = self.start(event, pe, is_get=True) if nbi else 0
        self.read(lane, pe, source, size)
        self.write(lane, self.pe, dest, size)

    def signal(self, event: Event) -> None:
        """Of the put before it."""
        pe, address = event.number(1), event.number(2)
        cell = self.cell(pe, address, 8)
        lane = self.last_put
        for operation in self.operations:
            if operation.lane == lane:
                operation.ranges = None  # it shows its put: no other may share its lane
        if cell is not None:
            self.say(lane, f"notify {cell:#x} 8 {'add' if event.number(4) else 'set'} {event.args[3]}")
        else:
            self.accumulate(lane, pe, address, event)
        self.show(lane)

    def show(self, lane: int) -> None:
        for signal in self.shows.get(self.index, ()):
            self.say(lane, f"notify {signal:#x} 8 add 1")

    def accumulate(self, lane: int, pe: int, address: int, event: Event) -> None:
        """An atomic change of a word that nobody waits for."""
        place = self.program.find(self.pe, address)
        if not place:
            return
        domain, width = self.program.domains[place].index(self.program.domain(event)), self.program.words[place]
        if domain >= len(FUNCTIONS):
            self.refuse("atomic operations of several types or teams on one word")
        else:
            self.say(lane, f"accumulate {FUNCTIONS[domain]} i{8 * width}@{self.program.at(pe, place):#x}*1 i{8 * width}=1")

    def atomic(self, event: Event) -> None:
        pe, address, width, change, value, fetch = (event.number(1), event.number(2), event.number(3), event.args[4],
                                                    event.args[5], event.args[6])
        blocks = fetch in ("0xffffffffffffffff", "-")
        lane = 0 if blocks else self.start(event, pe)
        cell = self.cell(pe, address, width)
        place = self.program.find(self.pe, address)
        for signal in self.finds.get(self.index, ()):
            self.say(lane, f"wait {signal:#x} 8 >= 1")
        if cell is not None:
            if change in ("add", "swap"):
                self.say(lane, f"notify {cell:#x} {width} {'add' if change == 'add' else 'set'} {value}")
            elif change == "fetch" and pe == self.pe:
                self.say(lane, f"read i{8 * width}@{cell:#x}*1")
            else:
                self.refuse(f"an atomic {change} of a word that a PE waits for")
        elif change == "fetch" and place not in self.program.updated:
            self.read(lane, pe, address, width)
        elif place and width != self.program.words[place]:  # not atomic with those of the whole word
            self.write(lane, pe, address, width)
        elif place:
            self.accumulate(lane, pe, address, event)
        self.show(lane)
        if not blocks and fetch != "(nil)":
            self.write(lane, self.pe, int(fetch, 0), width)

    def sync(self, event: Event) -> None:
        members = tuple(int(word) for word in event.args)
        team = self.program.teams.setdefault(members, len(self.program.teams))
        self.episodes[team] = episode = self.episodes.get(team, 0) + 1
        own = members.index(self.pe)
        for index, pe in enumerate(members):
            if pe != self.pe:
                self.say(0, f"notify {SYNC + (team << 32) + (pe << 16) + 8 * own:#x} 8 add 1")
        for index, pe in enumerate(members):
            if pe != self.pe:
                self.say(0, f"wait {SYNC + (team << 32) + (self.pe << 16) + 8 * index:#x} 8 >= {episode}")
        if self.result:
            self.write(0, self.pe, *self.result)
            self.result = None

    def collective(self, event: Event, members: Tuple[int, ...]) -> None:
        """Each member may write to the others' results as soon as it has come: a part of each, or all of it if it is the root.
        The last part of its own result comes when it leaves; all of it, in place, because its source has to be read first."""
        root, dest, dest_size, source, source_size = event.number(0), *(event.number(i) for i in range(1, 5))
        size, n, own = max(dest_size, source_size) if root >= 0 else dest_size, len(members), members.index(self.pe)
        if source_size:
            self.read(0, self.pe, source, source_size)
        self.result = (dest, dest_size) if dest_size else None
        for pe in members:
            if root >= 0 and self.pe == root and (pe != root or dest_size):
                self.write(0, pe, dest, size)
            elif root < 0 and dest != source and size * (own + 1) // n > size * own // n:
                self.write(0, pe, dest + size * own // n, size * (own + 1) // n - size * own // n)

    def wait(self, address: int, width: int, relation: str, value: int) -> None:
        place = self.program.find(self.pe, address)
        if not place:
            self.refuse("a wait for memory that is not symmetric")
            return
        values = self.program.values.get((self.pe, place), {None})
        met = [now for now in values if now is not None and HOLDS[relation](now, value)]
        if None not in values and len(met) == 1 and not HOLDS[relation](0, value):
            relation, value = "==", met[0]  # no other value that it gets ends the wait
        if width not in (4, 8) or relation not in RELATIONS or (relation == "!=" and value != 0):
            self.refuse(f"a wait for a word of {width} bytes {relation} {value}")
        else:
            self.say(0, f"wait {self.program.at(self.pe, place):#x} {width} {relation} {value}")

    def look(self, event: Event) -> None:
        """A test, or a look at a signal. The library lets the first one find nothing; if it is repeated with nothing in between, that
        is a loop, which is a wait."""
        again = event.kind == "loop" or (event.kind == "poll" and event.number(2) == 2)
        if self.pending and self.pending.pc != event.pc or (not again and not self.is_first(event)):
            self.refuse("the outcome depends on time, and it was not asked for again: a loop would be a wait")
            return
        self.pending = None if again else event
        if again and event.kind == "loop":
            self.wait(event.number(0), event.number(1), event.args[2], int(event.args[3]))
        elif again:
            self.wait(event.number(0), 8, ">=", event.number(1))
        if again:
            self.assumes.add(event.pc)

    @staticmethod
    def is_first(event: Event) -> bool:
        return event.number(2) == 1 if event.kind == "poll" else not event.args or event.number(4) == 0

    def access(self, event: Event) -> None:
        cell = self.cell(self.pe, event.number(0), event.number(1)) if event.args[2:] else None
        if cell is not None:
            self.say(0, f"notify {cell:#x} {event.args[1]} set {event.args[2]}")
            return
        key = (event.pc, event.number(0), event.number(1))
        if key in self.seen:
            return
        self.seen.add(key)
        (self.read if event.kind == "load" else self.write)(0, self.pe, event.number(0), event.number(1))

    def own_atomic(self, event: Event) -> None:
        """One of C or C++: no other PE may come to its word."""
        place = self.program.find(self.pe, event.number(0))
        words = range(place[1] // 8, (place[1] + event.number(1) + 7) // 8) if place else ()
        if not place or any((place[0], word) in self.program.reached[self.pe] for word in words):
            self.refuse("an atomic access of C or C++ to a word that others may access is not recorded: shmem_atomic_... and waits are")

    def lock(self, event: Event) -> None:
        place = self.program.find(self.pe, event.number(0))
        if place:
            at = self.program.at(0, place)
            self.say(0, f"take {at:#x} 8 0 1" if event.kind == "lock" else f"notify {at:#x} 8 set 0")

    def run(self) -> None:
        events = self.program.events[self.pe]
        refused = next((event for event in events if event.kind == "refuse"), None)
        if refused and (not events or events[-1].kind != "end"):
            self.go_to(refused.pc)
            self.refuse(" ".join(refused.args))
        elif not events or events[-1].kind != "end":
            if any(event.kind == "refuse" for others in self.program.events for event in others):
                self.refused = True  # that one ended them all, and says where
            else:
                self.refuse(f"PE {self.pe} did not come to shmem_finalize or peal_comm_close")
        for i, event in enumerate(events):
            if self.refused:
                break
            if event.kind in ("memory", "stack", "end"):
                continue
            if self.pending and event.pc == self.pending.pc and event.kind == "lock":
                self.assumes.add(event.pc)
                self.pending = None
            if self.pending and event.kind not in ("test", "loop", "poll"):
                self.go_to(self.pending.pc)
                self.refuse("the outcome depends on time, and it was not asked for again: a loop would be a wait")
                break
            self.go_to(event.pc)
            self.index = i
            if event.kind in ("load", "store"):
                self.access(event)
                continue
            self.seen.clear()
            if event.kind == "quiet":
                self.quiet(event)
            elif event.kind == "fence":
                for operation in self.operations:
                    operation.fenced |= operation.ctx == event.args[0] and not operation.is_get
            elif event.kind == "after":
                self.after = event.number(1)
            elif event.kind == "wait":
                self.wait(event.number(0), event.number(1), event.args[2], int(event.args[3]))
            elif event.kind in ("test", "loop", "poll"):
                self.look(event)
            elif event.kind in ("lock", "unlock"):
                self.lock(event)
            elif event.kind == "collective":
                self.collective(event, tuple(int(word) for word in events[i + 1].args))
            elif event.kind == "refuse":
                self.refuse(" ".join(event.args))
            else:
                {"put": self.put, "get": self.get, "signal": self.signal, "atomic": self.atomic, "sync": self.sync,
                 "own_atomic": self.own_atomic}[event.kind](event)


def _regions(program: Program, parts: List[Translator]) -> List[str]:
    out = []
    for pe, part in enumerate(parts):
        for segment, (_, size) in enumerate(program.memory[pe]):
            name = "symmetric" if program.is_direct else "variables" if segment == 0 else "heap"
            out.append(f"region window {name}{segment or ''} {pe} "
                       f"{program.at(pe, (segment, 0)):#x} {size} u8 zeroed")
        for members, team in program.teams.items():
            if pe in members:
                out.append(f"region window sync{team} {pe} {SYNC + (team << 32) + (pe << 16):#x} {8 * len(members)} i64 zeroed")
        if part.npairs:
            out.append(f"region window order {pe} {ORDER + (pe << 32):#x} {8 * part.npairs} i64 zeroed")
        pages, count = sorted(part.locals), 0
        for i, page in enumerate(pages):
            if i == 0 or pages[i - 1] != page - 1:
                end = page
                while end + 1 in part.locals:
                    end += 1
                out.append(f"region private local{count} {pe} {page * PAGE:#x} {(end + 1 - page) * PAGE} u8 zeroed")
                count += 1
    return out


class Runs:
    """Runs the program again, as a script for each PE says."""

    def __init__(self, preload: str, folder: str, command: List[str]) -> None:
        self.preload, self.folder, self.command, self.count = preload, folder, command, 0

    def again(self, scripts: List[List[str]]) -> Optional[Program]:
        """None: it did not end well."""
        self.count += 1
        events, script = os.path.join(self.folder, f"run{self.count}"), os.path.join(self.folder, f"script{self.count}")
        os.mkdir(events)
        os.mkdir(script)
        for pe, lines in enumerate(scripts):
            with open(os.path.join(script, f"pe{pe}"), "w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
        with open(os.path.join(script, "turns"), "wb") as turns:
            turns.write(bytes(PAGE))
        environment = {**os.environ, "LD_PRELOAD": self.preload, "PEAL_RECORD": events, "PEAL_RECORD_SCRIPT": script,
                       "PEAL_TIMEOUT_MS": "20000"}
        with subprocess.Popen(self.command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True) as process:
            try:
                code = process.wait(MAX_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signals.SIGKILL)
                return None
        program = Program(self.command[4], events) if code >= 0 else None
        shutil.rmtree(events)
        return program if program and program.has_ended else None


def how_it_ended(program: Program) -> List[str]:
    """For each PE that did not come to its end: where it was, and why. What was the cause comes before what followed from it."""
    ends = []
    for pe, events in enumerate(program.events):
        last = events[-1] if events else None
        if last and last.kind == "end":
            continue
        if not last:
            ends.append((0, f"PE {pe} ended before shmem_init"))
            continue
        number = last.number(0) if last.kind == "killed" else 0
        if number in (signals.SIGALRM, signals.SIGXCPU):
            order, what = 1, "was here when its time was over"
        elif number == signals.SIGTERM:
            order, what = 3, "was here when it was ended"
        elif number:
            order, what = 0, f"was killed here by signal {number} ({signals.strsignal(number)})"
        elif last.kind == "exited" and last.pc in program.lines:
            order, what = 0, "ended here, without shmem_finalize or peal_comm_close"
        elif last.kind == "failed":
            order, what = 2, f"{last.call}: {' '.join(last.args)}"
        else:
            last = next((event for event in reversed(events) if event.pc in program.lines), last)
            order, what = 1, f"came to no shmem_finalize or peal_comm_close; its last call was this {last.call}"
        place = next((event.pc for event in reversed(events) if event.pc in program.lines), last.pc)
        ends.append((order, "{}:{}: ".format(*program.lines[place]) * (place in program.lines) + f"PE {pe} {what}"))
    return [text for _, text in sorted(ends, key=lambda end: end[0])]


def translate(program: Program, runs: Runs) -> str:
    """The recording of the program's run."""
    path = runs.command[4]
    parts = [Translator(program, pe) for pe in range(len(program.events))]
    for part in parts:
        part.run()
    varies: Optional[shmem_runs.Varies] = None
    tried: Set[int] = set()
    if not any(part.refused for part in parts):
        try:
            tried = shmem_runs.explore(program, runs.again)
        except shmem_runs.Varies as error:
            varies = error
            # A race is one for certain only if what these operations have shown each other does not exclude it.
            pairs = shmem_runs.happened(program)
            parts = [Translator(program, pe, pairs or ()) for pe in range(len(program.events))]
            for part in parts:
                part.run()
            if pairs is None:
                parts[0].go_to(varies.pc)
                parts[0].refuse(varies.why)
    head = ["peal recording 1", f"ranks {len(parts)}", f"kernel {os.path.basename(path)}", "launches 1"]
    plain = any(event.kind == "stack" and event.args[1:] == ["plain"] for events in program.events for event in events)
    head.append("note one run of the program, with the arguments and inputs that it had")
    if plain:
        head.append("note loads and stores of the program were seen, those of libraries that it calls were not")
    else:
        head.append("note the program's own loads and stores were not seen (peal cc compiles it so that they are): this speaks of "
                    "its calls only")
    def where(pc: int) -> str:
        return "{}:{}".format(*program.lines.get(pc, ("?", 0)))
    for pc in sorted(tried if not varies else ()):
        head.append(f"note {where(pc)}: the value may differ from run to run; the program does the same with all that it can have "
                    f"({1 + runs.count} runs)")
    for pc in sorted(program.barriers):
        head.append(f"note {where(pc)}: a barrier is taken to complete the operations of all contexts; the standard promises that of "
                    "the default context")
    for pc in sorted(set().union(*(part.assumes for part in parts))):
        head.append(f"note {where(pc)}: taken as a wait; nothing else is assumed to end the loop earlier")
    body: List[str] = []
    for pe, part in enumerate(parts):
        body += [f"rank {pe}", *part.out]
    if varies:
        file, line = program.lines.get(varies.pc, ("", 0))
        body += [f"at {line} {file}" if file else "at 0", f"varies {varies.why}"]
    return "\n".join(head + _regions(program, parts) + body) + "\n"


def compile_program(library: str, include: str, arguments: List[str]) -> int:
    """Sources are compiled one by one and then linked, because the sanitizer's own library must not be linked."""
    sources = [a for a in arguments if a.endswith((".c", ".cc", ".cpp", ".cxx"))]
    compiler = os.environ.get("CXX", "c++") if any(not s.endswith(".c") for s in sources) else os.environ.get("CC", "cc")
    report = ["-g", "-fsanitize=thread", f"-I{include}", f"-I{include}/../../include", f"-I{library}"]  # the others: of a build folder
    link = [f"-L{library}", "-lpeal_shmem", f"-Wl,-rpath,{library}", "-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset"]
    if any(a in ("-c", "-S", "-E", "-fsyntax-only") for a in arguments):
        return subprocess.run([compiler, *report, *arguments], check=False).returncode
    own = [a for i, a in enumerate(arguments) if a not in sources and not a.startswith(("-o", "-l", "-L", "-Wl,")) and
           (i == 0 or arguments[i - 1] != "-o") and a.startswith("-")]
    with tempfile.TemporaryDirectory() as folder:
        objects = {}
        for i, source in enumerate(sources):
            objects[source] = os.path.join(folder, f"{i}.o")
            done = subprocess.run([compiler, *own, *report, "-c", source, "-o", objects[source]], check=False)
            if done.returncode:
                return done.returncode
        return subprocess.run([compiler, *(objects.get(a, a) for a in arguments), *link], check=False).returncode


def main(arguments: List[str]) -> int:
    if arguments[0] == "cc":
        return compile_program(arguments[1], arguments[2], arguments[3:])
    preload, folder, out = arguments[1:4]
    runs = Runs(preload, folder, arguments[4:])
    program = Program(runs.command[4], os.path.join(folder, "run"))
    if not program.has_ended and not any(event.kind == "refuse" for events in program.events for event in events):
        print("\n".join(how_it_ended(program)), file=sys.stderr)
        return 2
    text = translate(program, runs)
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
