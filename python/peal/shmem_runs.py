# SPDX-License-Identifier: Apache-2.0
"""Does a recorded run of an OpenSHMEM program stand for all schedules? shmem.py asks this before it writes the recording.

It does if every value that the program got back is the same in all of them, or if the program does the same with every value that
could have come back. Races are the verifier's business; what may differ without one is

- what atomic operations on one word return and leave there, if nothing orders them: all their orders are computed, and the program
  is run again for each outcome, with these values (shmem/script.c);
- who has a lock first: the program is run again for each order;
- a word that is waited for and read, or an order that no other run can show: these are not decided, with their line.

Order is taken from barriers that all PEs are in and that no operation outlives: such a part of the run is an *epoch*. That is less
order than the program has, so more outcomes are tried than it can have, never fewer.
"""
from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

MAX_RUNS = 64
MAX_ORDERS = 5040
MAX_CHANGES = 100  # more have more orders than can be tried
MAX_STEPS = 100000
MAX_PAIRS = 4000
RESULT = re.compile(r"%(rax|eax|ax|al|ah)\b")
COMMUTE = ("add", "and", "or", "xor")


class Varies(Exception):
    """A value may differ from run to run; `pc` is where."""

    def __init__(self, pc: int, why: str) -> None:
        super().__init__(why)
        self.pc, self.why = pc, why


class Change:
    """One operation on a word that others may change too."""

    def __init__(self, pe: int, index: int, event: Any, kind: str, value: int) -> None:
        self.pe, self.index, self.pc, self.kind = pe, index, event.pc, kind
        self.ctx = event.args[0]
        self.value, self.compare, self.width = value, 0, 8
        self.old: Optional[int] = None  # what it found; None: that is not known
        self.blocks, self.fetch = False, None  # type: bool, Optional[int]

    def apply(self, old: int) -> int:
        mask = (1 << 8 * self.width) - 1
        new = {"add": old + self.value, "and": old & self.value, "or": old | self.value, "xor": old ^ self.value, "fetch": old,
               "swap": self.value, "compare_swap": self.value if old == self.compare & mask else old}[self.kind]
        return new & mask


class Choice:
    """A group of operations, or of locks, that nothing orders, and its outcomes."""

    def __init__(self, key: Tuple[Any, ...], pc: int, outcomes: List[Tuple[Any, ...]], actual: Any) -> None:
        self.key, self.pc, self.outcomes, self.actual = key, pc, outcomes, actual
        self.members: List[Any] = []


class Study:
    """What one run shows of its epochs, its words and its locks."""

    def __init__(self, program: Any, unused: Set[int]) -> None:
        self.program, self.unused = program, unused
        self.ends: List[List[int]] = []  # per PE: the number of the synchronisation that ends each epoch
        self.epochs = self.find_epochs()
        self.groups: Dict[Tuple[int, Tuple[int, int], int], List[Change]] = {}
        self.locks: Dict[Tuple[Tuple[int, int], int], List[Tuple[int, int, int]]] = {}
        self.orders_after: Dict[int, List[Tuple[int, str]]] = {}  # per PE: fences and quiets: index, context
        for pe in range(len(program.events)):
            self.find_changes(pe)
        self.reads: Dict[Tuple[int, Tuple[int, int]], List[Tuple[int, int]]] = {}  # word: epoch and place
        self.find_reads()
        self.sees_loads = any(event.args[1:] == ["plain"] for events in program.events for event in events if event.kind == "stack")

    def find_epochs(self) -> List[List[int]]:
        """The epoch of each event of each PE."""
        everyone = [str(pe) for pe in range(len(self.program.events))]
        closed: List[List[Tuple[int, int, bool]]] = []
        for events in self.program.events:
            under_way, syncs, found = set(), 0, []  # type: Set[str], int, List[Tuple[int, int, bool]]
            for i, event in enumerate(events):
                if event.kind in ("put", "signal") or (event.kind == "get" and event.number(5)) or (
                        event.kind == "atomic" and not self.blocks(event)):
                    under_way.add(event.args[0])
                elif event.kind == "quiet":
                    under_way.discard(event.args[0])
                    if self.program.ends_all(event):
                        under_way.clear()
                elif event.kind == "sync":
                    if event.args == everyone:
                        found.append((i, syncs, not under_way and events[i - 1].kind != "collective"))
                    syncs += 1
            closed.append(found)
        whole = [all(ends) for ends in zip(*[[is_end for _, _, is_end in found] for found in closed])]
        epochs = []
        for events, found in zip(self.program.events, closed):
            ends = [(i, number) for (i, number, _), is_end in zip(found, whole) if is_end]
            self.ends.append([number for _, number in ends])
            places, epoch = [i for i, _ in ends], 0
            row = []
            for i in range(len(events)):
                row.append(epoch)
                if epoch < len(places) and places[epoch] == i:
                    epoch += 1
            epochs.append(row)
        return epochs

    @staticmethod
    def known(word: str) -> Optional[int]:
        return int(word) if word != "-" else None

    @staticmethod
    def blocks(event: Any) -> bool:
        return event.args[6] in ("0xffffffffffffffff", "-")

    def find_changes(self, pe: int) -> None:
        program, fetches, locks = self.program, 0, 0
        self.orders_after[pe] = []
        for i, event in enumerate(program.events[pe]):
            epoch = self.epochs[pe][i]
            if event.kind in ("fence", "quiet"):
                self.orders_after[pe].append((i, event.args[0]))
            elif event.kind == "atomic":
                change = Change(pe, i, event, event.args[4], int(event.args[5]))
                change.width, change.compare, change.old = event.number(3), int(event.args[8]), self.known(event.args[9])
                change.blocks = self.blocks(event)
                if event.args[6] not in ("(nil)", "-"):
                    change.fetch = fetches if not (change.blocks and event.pc in self.unused) else None
                    fetches += 1
                self.add(event.number(1), program.find(pe, event.number(2)), epoch, change)
            elif event.kind == "signal":
                kind = "add" if event.number(4) else "swap"
                self.add(event.number(1), program.find(pe, event.number(2)), epoch, Change(pe, i, event, kind, int(event.args[3])))
            elif event.kind == "put" and program.is_cell(pe, event.number(2), event.number(4)):
                self.add(event.number(1), program.find(pe, event.number(2)), epoch,
                         Change(pe, i, event, "swap", int(event.args[6])))
            elif event.kind == "lock":
                place = program.find(pe, event.number(0))
                self.locks.setdefault((place, epoch), []).append((pe, locks, event.pc))
                locks += 1

    def add(self, owner: int, place: Any, epoch: int, change: Change) -> None:
        if place:
            self.groups.setdefault((owner, place, epoch), []).append(change)

    def find_reads(self) -> None:
        """Where words that change are read by other means than atomic operations."""
        words: Dict[int, Set[int]] = {}
        for _, (segment, offset), _ in self.groups:
            words.setdefault(segment, set()).add(offset)
        for pe, events in enumerate(self.program.events if words else ()):
            for i, event in enumerate(events):
                if event.kind == "load":
                    owner, address, size = pe, event.number(0), event.number(1)
                elif event.kind in ("put", "get"):
                    owner, address, size = event.number(1) if event.kind == "get" else pe, event.number(3), event.number(4)
                elif event.kind == "collective":
                    owner, address, size = pe, event.number(3), event.number(4)
                else:
                    continue
                place = self.program.find(pe, address)
                for offset in words.get(place[0], ()) if place else ():
                    if place[1] < offset + 8 and offset < place[1] + size:
                        self.reads.setdefault((owner, (place[0], offset)), []).append((self.epochs[pe][i], event.pc))

    # ---- what may come out ----

    def before(self, first: Change, second: Change) -> bool:
        """Is one PE's operation ordered before its later one?"""
        return first.pe == second.pe and first.index < second.index and (first.blocks or any(
            first.index < i < second.index and ctx == first.ctx for i, ctx in self.orders_after[first.pe]))

    def orders(self, changes: List[Change]) -> Iterator[List[Change]]:
        if not changes:
            yield []
        for first in changes:
            rest = [change for change in changes if change is not first]
            if not any(self.before(other, first) for other in rest):
                for order in self.orders(rest):
                    yield [first, *order]

    def is_settled(self, changes: List[Change]) -> bool:
        """Is the word the same after them, in whichever order they come?"""
        kinds = {change.kind for change in changes if change.kind != "fetch"}
        if len(kinds) <= 1 and kinds <= set(COMMUTE):
            return True
        updates = [change for change in changes if change.kind != "fetch"]
        return all(self.before(a, b) or self.before(b, a) for i, a in enumerate(updates) for b in updates[i + 1:]) or (
            kinds == {"swap"} and len({change.value for change in updates}) == 1)

    def word(self, key: Tuple[int, Tuple[int, int], int]) -> Optional[Choice]:
        owner, place, epoch = key
        changes = self.groups[key]
        returns = [change for change in changes if change.fetch is not None]
        updates = [change for change in changes if change.kind != "fetch"]
        reads = self.reads.get((owner, place), [])
        later = not self.sees_loads or any(at > epoch for at, _ in reads) or any(k[:2] == key[:2] and k[2] > epoch for k in self.groups)
        settled = self.is_settled(changes)
        if not settled:
            for at, pc in reads:
                if at == epoch:
                    raise Varies(pc, "what is read depends on the order of atomic operations")
        if not updates or (settled or not later) and (not returns or len(changes) == 1):
            return None
        if len(changes) > MAX_CHANGES:
            raise Varies(changes[0].pc, f"the value depends on the order of {len(changes)} atomic operations, which has too many outcomes "
                         "to try")
        actual, outcomes = None, {}  # type: Any, Dict[Tuple[Any, ...], None]
        for number, order in enumerate(self.orders(changes)):
            if number == MAX_ORDERS:
                raise Varies(changes[0].pc, "the value depends on the order of atomic operations, which has too many outcomes to try")
            for start in {change.old for change in changes if change.old is not None}:
                if self.matches(order, start):
                    actual = start
        if actual is None:
            raise Varies(changes[0].pc, "the value depends on the order of other accesses")
        for order in self.orders(changes):
            outcomes[self.outcome(order, actual, later)] = None
        values = list(outcomes)
        choice = Choice(key, (returns or updates)[0].pc, values, self.seen(changes, actual, later, values))
        choice.members = changes
        return choice if len(values) > 1 else None

    @staticmethod
    def matches(order: List[Change], now: int) -> bool:
        for change in order:
            if change.old not in (now, None):
                return False
            now = change.apply(now)
        return True

    @staticmethod
    def outcome(order: List[Change], now: int, later: bool) -> Tuple[Any, ...]:
        values: Dict[Tuple[int, int], int] = {}
        for change in order:
            if change.fetch is not None:
                values[(change.pe, change.fetch)] = now
            now = change.apply(now)
        return (*sorted(values.items()), ("end", now if later else 0))

    def seen(self, changes: List[Change], start: int, later: bool, values: List[Tuple[Any, ...]]) -> Any:
        for order in self.orders(changes):
            if self.matches(order, start):
                return self.outcome(order, start, later)
        return values[0]

    def lock(self, key: Tuple[Tuple[int, int], int]) -> Optional[Choice]:
        """All ways in which the PEs can take turns."""
        takes = self.locks[key]
        counts: Dict[int, int] = {}
        for pe, _, _ in takes:
            counts[pe] = counts.get(pe, 0) + 1
        if len(counts) == 1:
            return None
        orders: List[Tuple[int, ...]] = [()]
        for _ in takes:
            orders = [(*order, pe) for order in orders for pe in counts if order.count(pe) < counts[pe]]
            if len(orders) > MAX_RUNS:
                raise Varies(takes[0][2], "what is read under the lock may differ, and there are too many orders to try")
        choice = Choice(("lock", *key), takes[0][2], list(orders), None)
        choice.members = takes
        return choice

    def choices(self) -> List[Choice]:
        """In the order of epochs: what is decided in one may change what is done in later ones."""
        found: List[Tuple[int, str, Optional[Choice]]] = []
        for group, changes in self.groups.items():
            place = group[1]
            if not any(self.program.is_cell_at(place, change.width) for change in changes):
                found.append((group[2], str(group), self.word(group)))
        for take in self.locks:
            found.append((take[1], str(take), self.lock(take)))
        return [choice for _, _, choice in sorted(found, key=lambda row: row[:2]) if choice]

    def check_cells(self) -> None:
        """Words that are waited for: other values would change the order itself, so that they are not tried."""
        for key, changes in self.groups.items():
            owner, place, epoch = key
            if not any(self.program.is_cell_at(place, change.width) for change in changes):
                continue
            for change in changes:
                if change.fetch is not None and len(changes) > 1:
                    raise Varies(change.pc, "the value of a word that is waited for may differ from run to run")
            if not self.is_settled(changes):
                for at, pc in self.reads.get((owner, place), []):
                    if at >= epoch:
                        raise Varies(pc, "the value of a word that is waited for depends on which change comes last")
        for pe, events in enumerate(self.program.events):
            for i, event in enumerate(events):
                returned = event.kind == "wait" and event.call == "shmem_signal_wait_until" and event.pc not in self.unused
                if event.kind == "poll" and event.number(2) == 2:
                    self.check_value(pe, i, event, "", 0)
                elif returned and event.args[2] != "==":
                    self.check_value(pe, i, event, event.args[2], int(event.args[3]))

    def check_value(self, pe: int, i: int, event: Any, relation: str, value: int) -> None:
        """One that a wait returned, or a loop of polls: is it the only one that could end it?"""
        place, epoch = self.program.find(pe, event.number(0)), self.epochs[pe][i]
        here = self.groups.get((pe, place, epoch), [])
        earlier = [c for key, changes in self.groups.items() if key[:2] == (pe, place) and key[2] < epoch for c in changes]
        every = here + earlier
        adds = all(change.kind == "add" and change.value >= 0 for change in every)
        single = len(here) == 1 and not earlier
        if not single and not (adds and relation in (">=", ">") and sum(c.value for c in every) == value + (relation == ">")):
            raise Varies(event.pc, "the signal's value may differ from run to run")


# ---- runs ----

def outline(program: Any) -> List[List[Tuple[Any, ...]]]:
    """What each PE did, without values and without addresses that differ from run to run."""
    rows = []
    for pe, events in enumerate(program.events):
        contexts: Dict[str, int] = {}
        stack = next((event.number(0) for event in events if event.kind == "stack"), 0)
        heap: List[int] = []

        def place(word: str, pe: int = pe, stack: int = stack, heap: List[int] = heap) -> Any:
            if not word.startswith("0x"):
                return word
            address = int(word, 16)
            found = program.find(pe, address)
            if found or address > 1 << 62:
                return found or word
            if abs(address - stack) < 1 << 23:
                return "stack", address - stack
            heap.append(address)
            return "heap", address - heap[0]
        row = []
        for event in events:
            if event.kind in ("memory", "stack"):
                row.append((event.pc, event.kind, len(event.args)))
                continue
            count = {"put": 6, "get": 6, "atomic": 5}.get(event.kind, len(event.args))
            if event.kind == "put" and program.is_cell(pe, event.number(2), event.number(4)):
                count = 7
            elif event.kind == "store" and not program.is_cell(pe, event.number(0), event.number(1)):
                count = 2
            elif event.kind == "atomic" and program.is_cell(pe, event.number(2), event.number(3)):
                count = 6
            args = event.args[:count]
            has_context = event.kind in ("put", "get", "signal", "atomic", "quiet", "fence")
            if has_context:
                row.append((contexts.setdefault(args[0], len(contexts)),))
            row.append((event.pc, event.kind, *(place(word) for word in args[has_context:])))
        rows.append(row)
    return rows


def _script(study: Study, decided: Dict[Any, Any]) -> List[List[str]]:
    """One per PE; see shmem/script.c."""
    lines: List[List[str]] = [[] for _ in study.program.events]
    turns = 0
    for key, (outcome, _) in decided.items():
        if key[0] == "lock":
            took: Dict[int, List[int]] = {}
            for pe, number, _ in study.locks[key[1:]]:
                took.setdefault(pe, []).append(number)
            for turn, pe in enumerate(outcome):
                lines[pe].append(f"lock {took[pe].pop(0)} {turns} {turn}")
            turns += 1
            continue
        owner, (segment, offset), epoch = key
        for (pe, number), value in outcome[:-1]:
            lines[pe].append(f"fetch {number} {value}")
        if epoch < len(study.ends[owner]):
            width = max(change.width for change in study.groups[key])
            lines[owner].append(f"poke {study.ends[owner][epoch]} {segment} {offset} {width} {outcome[-1][1]}")
    return lines


# ---- what the atomic operations of this run have ordered ----

def _observed(changes: List[Change], now: int) -> Optional[List[Change]]:
    """An order of them, from this value, that explains what each of them found."""
    rows = [[change for change in changes if change.pe == pe] for pe in sorted({change.pe for change in changes})]
    ways, steps = [((0,) * len(rows), now, None)], 0  # type: List[Tuple[Tuple[int, ...], int, Any]], int
    while ways and steps < MAX_STEPS:
        places, now, last = ways.pop()
        steps += 1
        found = [(row, rows[row][at]) for row, at in enumerate(places) if at < len(rows[row]) and rows[row][at].old in (None, now)]
        same = [(row, change) for row, change in found if change.old is not None and change.apply(now) == now]
        for row, change in same[:1] or found:  # what changes nothing may come at once
            ways.append((places[:row] + (places[row] + 1,) + places[row + 1:], change.apply(now), (change, last)))
        if all(at == len(rows[row]) for row, at in enumerate(places)):
            order = []
            while last:
                change, last = last
                order.append(change)
            return order[::-1]
    return None


def _can_happen(program: Any, pairs: List[Tuple[Change, Change]]) -> bool:
    """Does every PE come to its end, if each waits for what it has found and at synchronisations? Two words may each have an order
    that the other's excludes. Waits for signals are not looked at: with those it is not known."""
    needs: Dict[Tuple[int, int], List[Tuple[int, int]]] = {}
    for writer, reader in pairs:
        needs.setdefault((reader.pe, reader.index), []).append((writer.pe, writer.index))
    if pairs and any(event.kind in ("wait", "loop", "poll", "lock") for events in program.events for event in events):
        return False
    at, came, moved = [0] * len(program.events), {}, True  # type: List[int], Dict[Tuple[str, ...], Dict[str, Set[int]]], bool
    while moved:
        moved = False
        for pe, events in enumerate(program.events):
            while at[pe] < len(events) and all(at[other] > index for other, index in needs.get((pe, at[pe]), ())):
                event = events[at[pe]]
                if event.kind == "sync":
                    here = came.setdefault(tuple(event.args), {member: set() for member in event.args})
                    here[str(pe)].add(at[pe])
                    if any(len(others) < len(here[str(pe)]) for others in here.values()):
                        break
                at[pe] += 1
                moved = True
    return all(place == len(events) for place, events in zip(at, program.events))


def happened(program: Any) -> Optional[List[Tuple[Change, Change]]]:
    """Of a program that acts on what atomic operations return: which of them has found what another PE's has left. What follows
    from one run is then sure only after these. None: not known."""
    study, pairs = Study(program, set()), []  # type: Study, List[Tuple[Change, Change]]
    for (_, place, _), changes in study.groups.items():
        if any(program.is_cell_at(place, change.width) for change in changes) or all(change.old is None for change in changes):
            continue
        order: Optional[List[Change]] = None
        start = 0
        for start in sorted({change.old for change in changes if change.old is not None}):
            order = _observed(changes, start)
            if order:
                break
        if not order:
            return None
        writer: Optional[Change] = None
        for change in order:
            if writer and writer.pe != change.pe and change.old is not None:
                pairs.append((writer, change))
            if change.apply(start) != start or change.kind in ("swap", "add"):
                writer = change
            start = change.apply(start)
    return pairs if len(pairs) <= MAX_PAIRS and _can_happen(program, pairs) else None


def explore(program: Any, again: Callable[[List[List[str]]], Any]) -> Set[int]:
    """Runs the program for every outcome that it could have had. Returns the places whose value may differ; Varies: at one of them
    the program does something else then, or that cannot be found out."""
    unused = unused_results(program)
    first = Study(program, unused)
    first.check_cells()
    plain, runs, tried = None, 1, set()  # type: Any, int, Set[int]
    branches: List[Tuple[Dict[Any, Any], Study]] = [({}, first)]
    while branches:
        decided, study = branches.pop()
        choices = study.choices()
        for choice in choices:
            if choice.key in decided and decided[choice.key][1] != frozenset(choice.outcomes):
                raise Varies(choice.pc, "its value depends on other values that may differ")
        choice = next((choice for choice in choices if choice.key not in decided), None)
        for outcome in choice.outcomes if choice else ():
            tried.add(choice.pc)
            more = {**decided, choice.key: (outcome, frozenset(choice.outcomes))}
            if outcome == choice.actual:
                branches.append((more, study))
                continue
            runs += 1
            if runs > MAX_RUNS:
                raise Varies(choice.pc, f"the value may differ from run to run, and more than {MAX_RUNS} outcomes would have to be "
                             "tried")
            plain = plain or outline(program)
            other = again(_script(study, more))
            if other is None or outline(other) != plain:
                raise Varies(choice.pc, "the value may differ from run to run, and the program then does something else")
            branches.append((more, Study(other, unused)))
    return tried


# ---- results that nobody looks at ----

IMPLICIT = re.compile(r"^(i?mul|i?div|c[lwq]t[qdlo]|cwtl|cq[to]|cdq|stos|lods|scas|cmpxchg|xlat|syscall|cpuid|rdtsc|in|out|rep|sahf|lahf|lock|bnd|notrack)")
MOVES = re.compile(r"^(mov|lea|pop|cvtt?s)")


def _instructions(path: str) -> Dict[int, Tuple[str, str, int]]:
    """Address: name, operands, next address."""
    tool = shutil.which("objdump")
    text = subprocess.run([tool, "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=False).stdout if tool else ""
    found = re.findall(r"^\s*([0-9a-f]+):\s+(\S+)[ \t]*([^#<\n]*)", text, re.M)
    return {int(here[0], 16): (here[1], here[2].strip(), int(after[0], 16)) for here, after in zip(found, found[1:])}


def _is_dead(code: Dict[int, Tuple[str, str, int]], start: int) -> bool:
    """Is the register of results overwritten on every way from here before it is read?"""
    ways, seen = [start], set()  # type: List[int], Set[int]
    while ways:
        at = ways.pop()
        if at in seen:
            continue
        seen.add(at)
        name, operands, after = code.get(at, ("", "", 0))
        if name.startswith("call") and not RESULT.search(operands):
            continue
        if name.startswith("j"):
            if not re.fullmatch(r"[0-9a-f]+", operands):
                return False
            ways += [int(operands, 16)] + ([after] if name != "jmp" else [])
            continue
        if not name or name.startswith("ret") or IMPLICIT.match(name):
            return False
        if RESULT.search(operands):
            source, _, target = operands.rpartition(",")
            clears = name in ("xor", "sub") and source == target
            if target not in ("%rax", "%eax") or not (clears or MOVES.match(name) and not RESULT.search(source)):
                return False
            continue
        ways.append(after)
    return True


def unused_results(program: Any) -> Set[int]:
    """Places of calls whose result the program does not use: x86-64 only, and only with objdump."""
    places = {event.pc for events in program.events for event in events
              if event.call.startswith("shmem_") and (event.kind == "atomic" or event.call == "shmem_signal_wait_until")}
    code = _instructions(program.path) if places else {}
    return {pc for pc in places if pc + 1 in code and _is_dead(code, pc + 1)}
