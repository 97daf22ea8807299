# SPDX-License-Identifier: Apache-2.0
"""What would fix a Pallas kernel: changes that are tried while it is recorded. The command says which, at lines of a counterexample; what
was done is said in the author's words, as a note of the recording.

| kind    | at           | value       | what is tried                                                              |
|---------|--------------|-------------|----------------------------------------------------------------------------|
| wait    | a line       | S/HALF      | the copy of line S is waited for before it, not where the author does      |
| own     | -            | recv, both  | a semaphore for each copy, where copies of one line share one              |
| enter   | -            | all         | all devices meet on the barrier semaphore where kernels begin              |
| devices | a line       | first, each | all devices meet before it on a semaphore of their own, in each call or each time |
| amount  | a line       | N           | the wait there is for N; for 0: there is none                              |
| drain   | -            | all         | what semaphores still hold when a kernel ends is waited for                |
"""
from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from . import core, edits
from .pallas_memory import CELL, Kernel, Ref, Shared, Storage, kernel, state, storage_for
from .pallas_types import MemorySpace, SemaphoreType

NOWHERE: core.Place = ("-", 0)


class Copy(NamedTuple):
    """A copy that has started: where, and the halves of it that were not waited for."""
    copy: Any
    place: core.Place
    number: int         # among the copies with its semaphore
    pending: Set[str]


class Trial:
    """What is tried in one call of a kernel on one device."""

    def __init__(self, k: Kernel) -> None:
        self.kernel, self.tries = k, k.rank.recording.tries
        self.copies: List[Copy] = []
        self.early: Dict[int, List[Any]] = {}    # by the semaphore: waits that were done already, as for _say_early
        self.started: Dict[Tuple[str, int], int] = {}  # by the half and the semaphore
        self.taken: Dict[Tuple[str, int], int] = {}
        self.last: Optional[core.Place] = None
        self.busy = self.met = False

    def say(self, text: str) -> None:
        self.kernel.rank.recording.note("tried: " + text)

    # -- where the author comes to a line --

    def before(self, where: core.Place) -> bool:
        is_new, self.last = where != self.last, where
        if self.busy:
            return False
        self.busy = True
        try:
            return self._wait_before(where) or is_new and self._meet_before(where)
        finally:
            self.busy = False

    def _wait_before(self, where: core.Place) -> bool:
        wanted = self.tries.get(("wait", where))
        if wanted is None:
            return False
        line, _, half = wanted.partition("/")
        done = False
        count = sum(one.place == (where[0], int(line)) for one in self.copies)
        for one in self.copies:
            half_of = half if one.copy.is_remote else "recv"
            if one.place == (where[0], int(line)) and half_of in one.pending:
                sem, ref = one.copy.half(half_of)
                self.early.setdefault(self._address(sem), []).append((half_of, one, where, count > 1))
                one.copy.take(half_of)
                one.pending.discard(half_of)
                done = True
        return done

    def _meet_before(self, where: core.Place) -> bool:
        wanted = self.tries.get(("devices", where))
        if wanted is None or wanted == "first" and self.met:
            return False
        self.met = True
        box = storage_for(("tried", self.kernel.core_index), "tried", MemorySpace.SEMAPHORE, (), SemaphoreType.REGULAR)
        meet(self.kernel, box)
        self.say(f"a barrier of all devices, on a regular semaphore of its own, before {core.told(where)}"
                 + (", each time" if wanted == "each" else ""))
        return True

    # -- copies --

    @staticmethod
    def _address(sem: Ref) -> int:
        return sem.storage.regions[core.rank().index].address + sem.offset

    def starts(self, copy: Any) -> None:
        number = 0
        for half in copy.halves():
            key = half, self._address(copy.half(half)[0])
            number = self.started[key] = self.started.get(key, 0) + 1
        self.copies.append(Copy(copy, core.place(), number, set(copy.halves())))

    def semaphore(self, copy: Any, half: str, starts: bool) -> Ref:
        """The semaphore that is used: the author's, or one that only this copy has."""
        sem = copy.half(half)[0]
        wanted = self.tries.get(("own", NOWHERE))
        if wanted is None or wanted == "recv" != half or sem.dtype is not SemaphoreType.DMA:
            return sem
        key = half, self._address(sem)
        if starts:
            number = self.started[key]
        else:  # of a descriptor that was made anew: in the order of the starts
            mine = next((one for one in self.copies if one.copy is copy), None)
            self.taken[key] = self.taken.get(key, 0) + 1
            number = mine.number if mine else self.taken[key]
        if starts and number == 2:
            name = sem.name + (f"[{sem.offset // CELL}]" if sem.storage.shape else "")
            what = {"recv": "receive ", "send": "send "}[half] if copy.is_remote else ""
            self.say(f"a {what}semaphore of its own, not '{name}', for each copy that {core.told(core.place())} starts")
        return Ref.of(storage_for((sem.storage.key, "own", sem.offset, number), f"{sem.name}_{number}", MemorySpace.SEMAPHORE, (), sem.dtype))

    def is_done(self, copy: Any, half: str) -> bool:
        """Has this wait been done already?"""
        if self.busy:
            return False
        early = self.early.get(self._address(copy.half(half)[0]), [])
        for one in self.copies:
            if half in one.pending and (one.copy is copy or self._address(one.copy.half(half)[0]) == self._address(copy.half(half)[0])):
                one.pending.discard(half)
                break
        at = next((i for i, (other, *_) in enumerate(early) if other == half), None)
        if at is None:
            return False
        self.kernel.rank.recording.edits.append(edits.Moved(early[at][2], core.place()))
        self._say_early(*early.pop(at), f" and not at line {core.place()[1]}")
        return True

    def _say_early(self, half: str, one: Copy, where: core.Place, several: bool, instead: str = "") -> None:
        self.say(f"{one.copy.call(half)} of {'all copies' if several else 'the copy'} that {core.told(one.place)} starts, before "
                 f"{core.told(where)}{instead}")

    def end(self) -> None:
        for early in self.early.values():
            for one in early:
                self._say_early(*one)

    def amount(self, value: int) -> int:
        """How much the wait at the author's line is for."""
        wanted = self.tries.get(("amount", core.place()))
        if wanted is None:
            return value
        self.say(f"no wait at {core.told(core.place())}" if wanted == "0" else f"a wait for {wanted}, not {value}, at {core.told(core.place())}")
        return int(wanted)


def meet(k: Kernel, box: Storage) -> None:
    """All devices of the mesh signal each other's semaphore, and each waits for that many."""
    others = [device.id for device in k.mesh.devices.flat if device.id != k.rank.index] if k.mesh else []
    for other in others:
        k.lane.notify(box.regions[other].address, CELL, "add", 1)
    if others:
        own = box.regions[k.rank.index].address
        k.lane.wait(own, CELL, ">=", len(others))
        k.lane.notify(own, CELL, "add", -len(others))


def begin(k: Kernel, barrier: Callable[[], Ref]) -> None:
    """A kernel begins: is anything tried?"""
    recording = k.rank.recording
    if not recording.tries:
        return
    k.trial = Trial(k)
    recording.on_line = on_line
    if ("enter", NOWHERE) in recording.tries and k.params.collective_id is not None:
        k.trial.busy = True
        meet(k, barrier().storage)
        k.trial.busy = False
        k.trial.say(f"a barrier of all devices on get_barrier_semaphore() where '{k.name}' begins")


def on_line(where: core.Place) -> bool:
    kernels = state()["kernels"]
    trial = kernels[-1].trial if kernels else None
    return trial is not None and trial.before(where)


def end(k: Kernel) -> None:
    """A kernel ends: here waits for what semaphores still hold can be put."""
    if k.trial:
        k.trial.end()
    if ("drain", NOWHERE) in k.rank.recording.tries:
        ends = k.rank.recording.rank[0].state.setdefault("pallas_ends", {})
        ends[k.call, k.rank.index] = k.lane.say("# the kernel ends")


def drain(recording: core.Recording, known: Shared) -> bool:
    """Takes what is left over; is it tried?"""
    if ("drain", NOWHERE) not in recording.tries:
        return False
    ends = recording.rank[0].state.get("pallas_ends", {})
    for (call, _, number, rank), left in known.balance.items():
        line = ends.get((call, rank))
        over = left.added - left.taken
        if over <= 0 or line is None:
            continue
        address, lines = left.storage.regions[rank].address + CELL * number, recording.rank[rank].writer.lines
        lines[line] += (f"\nwait {address:#x} {CELL} >= {over} acquire system"
                        f"\nnotify {address:#x} {CELL} add {-over} release system")
        half, start, wait = left.copy
        recording.edits.append(edits.Drained(start, half))
        recording.note("tried: " + (f"{wait} of the copy that {core.told(start)} starts" if half else f"a semaphore_wait of {over}")
                       + f", on {left.name()}, before the kernel ends")
    return True
