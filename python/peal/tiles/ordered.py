# SPDX-License-Identifier: Apache-2.0
"""Calls that overlap, and are proved for any number of them: copies that nobody waits for on their own rank go on while the next call
begins, so a call is no launch (calls.py). If all that call 1 does, on all ranks, comes before all that call 3 does, a proof of three calls is one
of any number of them: docs/tiles.md has the argument.

This writes the calls down with what asks for that order: every lane reads a *probe* of its rank where its part of call 1 ends, and every
rank writes the probes of all where call 3 begins. They do not race if, and only if, the one comes before the other. What the argument needs
besides is checked here, and refused if it is not so:

- the calls are equal, but for lanes of copies and values in flight, which each call has anew
- signals are added to and waited for with >=; what a call adds to one and takes from it is nothing in sum
- a rank takes from its own signals alone, and on lanes that go on from call to call
- no call writes what the caller gave, which the host puts where it is before the first one, and none reads zeros that nobody wrote
"""
from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import core
from .core import Recording, Refused, Region

SETTING = ("ordered", ("-", 0))
PROBE = "calls_probe"
ADDRESS = re.compile(r"@(0x[0-9a-f]+)")


class Op(NamedTuple):
    """A line of a call, with its lane and its place."""
    lane: str
    place: str
    words: Tuple[str, ...]


def _is_forked(name: str) -> bool:
    return name == "copy" or re.fullmatch(r"to\d+", name) is not None


def _ops(call: Sequence[str], names: Dict[str, str]) -> List[Op]:
    """What a call does. names: of lanes."""
    out: List[Op] = []
    lane = place = ""
    for text in call:
        for line in text.split("\n"):
            words = tuple(line.split())
            if not words or words[0][0] == "#" or words[0] == "block":
                continue
            if words[0] == "lane":
                lane = words[1]
                if len(words) > 2:
                    names[lane] = words[2]
            elif words[0] == "at":
                place = line
            else:
                out.append(Op(lane, place, words))
    return out


def _spans(words: Sequence[str], written: bool) -> Sequence[str]:
    """What an op on data writes, or reads."""
    if words[0] == "compute":
        end = words.index("<")
        return words[2:end] if written else words[end + 1:]
    if words[0] == "accumulate":
        return words[2:3] if written else words[3:]
    if words[0] == "copy":
        return words[1:2] if written else words[2:3]
    return words[1:2] if written == (words[0] == "write") and words[0] in ("read", "write") else ()


def _region(rank: Any, span: str) -> Optional[Region]:
    at = ADDRESS.search(span)
    return rank.find(int(at.group(1), 16)) if at else None


def _is_given(rank: Any, op: Op) -> bool:
    """Does the host put the caller's data where kernels find it?"""
    if op.words[0] != "copy":
        return False
    target, source = _region(rank, op.words[1]), _region(rank, op.words[2])
    return source is not None and source.kind in ("in", "inout") and target is not None and target.kind == "window"


def _alike(call: Sequence[Op], names: Dict[str, str]) -> List[Tuple[str, ...]]:
    """A call with its own lanes and values numbered in the order in which they come."""
    seen: Dict[str, str] = {}

    def number(what: str) -> str:
        return seen.setdefault(what, f"?{len(seen)}")

    def lane(one: str) -> str:
        return number(f"lane {one}") if _is_forked(names.get(one, "")) else one

    def value(at: Any) -> str:
        return "@" + (number(at.group(1)) if int(at.group(1), 16) >= core.TILES else at.group(1))
    return [(lane(op.lane), op.place, *([lane(one) for one in op.words] if op.words[0] == "order" else [ADDRESS.sub(value, word) for word in op.words]))
            for op in call]


def _check_signals(recording: Recording, rank: int, call: Sequence[Op], names: Dict[str, str], sums: Dict[str, int]) -> None:
    owner = recording.rank[rank]
    for lane, _, words in call:
        if words[0] == "notify":
            if words[3] != "add":
                raise Refused("a signal is set")
            sums[words[1]] = sums.get(words[1], 0) + int(words[4])
        if words[0] == "wait" and words[3] != ">=" or words[0] in ("take", "send", "recv", "flag_set", "flag_wait"):
            raise Refused("ranks wait in another way than for a sum")
        takes = words[0] == "wait" or words[0] == "notify" and int(words[4]) < 0
        region = owner.find(int(words[1], 16)) if takes else None
        if takes and (region is None or region.owner != rank or _is_forked(names.get(lane, ""))):
            raise Refused("a rank takes from another one's signal")


def _check_data(recording: Recording, rank: int, call: Sequence[Op], given: Set[str]) -> None:
    for op in call:
        for written in (True, False):
            for span in _spans(op.words, written):
                region = _region(recording.rank[rank], span)
                if region is not None and written and (region.kind in ("in", "inout") or region.name in given):
                    raise Refused(f"each call writes '{region.name}', which the caller gave")
                if region is not None and region.zeroed:
                    raise Refused(f"the first call finds zeros in '{region.name}'")


def _with_reads(call: Sequence[Op], probe: Region, names: Dict[str, str]) -> Iterator[str]:
    """The call, in which each lane reads the probe of its rank at the end: before its last signal, which is what says that it has ended."""
    last = {op.lane: at for at, op in enumerate(call)}
    for at, op in enumerate(call):
        read = [f"read i32@{probe.address:#x}*{probe.nbytes // 4}"] if last[op.lane] == at else []
        yield f"lane {op.lane} {names.get(op.lane, '')}".rstrip()
        yield op.place
        yield from [*read, " ".join(op.words)] if op.words[0] == "notify" else [" ".join(op.words), *read]


def _writes(rank: int, lane: str, probes: Sequence[Region]) -> Iterator[str]:
    yield f"lane {lane}"
    for probe in probes:
        yield f"write i32@{probe.address + 4 * rank:#x}*1 1"


def asked(recording: Recording, done: List[List[List[str]]]) -> List[List[List[str]]]:
    """What all ranks do, with the probes; or without, and a note why three calls do not tell of all."""
    try:
        done = _probed(recording, done)
        recording.note("tried: yes")
    except Refused as why:
        recording.note(f"tried: {why}")
    return done


def _difference(call: Sequence[Tuple[str, ...]], first: Sequence[Tuple[str, ...]]) -> str:
    """Where a call does something else than the first one: besides lines that only order lanes."""
    ops, others = ([op for op in ops if op[2] not in ("join", "order", "fence")] + [("", "")] for ops in (call, first))
    for one, other in zip(ops, others):
        if one != other:
            _, line, file = (one[1] or other[1]).split(maxsplit=2)
            return f"{file}:{line}"
    return "where lanes wait for each other"


def _probed(recording: Recording, done: Sequence[List[List[str]]]) -> List[List[List[str]]]:
    every: List[Tuple[List[List[Op]], Dict[str, str]]] = []
    given: Set[str] = set()
    for rank, parts in zip(recording.rank, done):
        names: Dict[str, str] = {}
        if len(parts) < 5 or _ops(parts[0], names):
            raise Refused("there are no three calls from the beginning")
        calls = [_ops(call, names) for call in parts[1:-1]]
        every.append((calls, names))
    sums: Dict[str, int] = {}
    firsts = []
    for rank, (calls, names) in zip(recording.rank, every):
        first = calls[0]
        if _alike(calls[1], names) != _alike(first, names):  # the host may give what it gives before the first call alone
            given.update(_region(rank, op.words[1]).name for op in first if _is_given(rank, op))  # type: ignore[union-attr]
            first = [op for op in first if not _is_given(rank, op)]
        for number, call in enumerate(calls[1:], 2):
            if _alike(call, names) != _alike(first, names):
                raise Refused(f"call {number} does not do what call 1 does: {_difference(_alike(call, names), _alike(first, names))}")
        firsts.append(first)
    for rank, (_, names), first in zip(recording.rank, every, firsts):
        _check_signals(recording, rank.index, first, names, sums)
        _check_data(recording, rank.index, first, given)
    if any(sums.values()):
        raise Refused("a call leaves signals that it does not take")
    probes = [rank.region("window", PROBE, 4 * recording.ranks, "i32", zeroed=True) for rank in recording.rank]
    out = []
    for rank, parts, (calls, names) in zip(recording.rank, done, every):
        begins = calls[2][0]
        if _is_forked(names.get(begins.lane, "")):
            raise Refused("a call does not begin on the lane of its rank")
        parts = [list(part) for part in parts]
        parts[1] = list(_with_reads(calls[0], probes[rank.index], names))
        parts[3] = [begins.place, *_writes(rank.index, begins.lane, probes), *parts[3]]
        out.append(parts)
    return out
