# SPDX-License-Identifier: Apache-2.0
"""Calls that are alike: what a program does in each call, folded into one launch that is repeated.

Calls are alike with period p if, on every rank, each line of call k + p is the line of call k, but for the values of notifies and waits,
which differ by a number that is the same from each call to the one p calls later: the *epoch*, a value that rises. Then p calls are one
launch, in which such a value is V + T * launch. What a rank does in a launch ends before its next one begins, so each call has to end with a
meeting of all lanes of the rank, as calls on one stream do. The verifier knows the number of the launch, so a proof for any number of
launches is one for any number of calls that go on like those that were recorded (docs/tiles.md).
"""
from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional, Sequence

MAX_PERIOD = 3
Calls = Sequence[Sequence[str]]  # the lines of each call, of one rank


class Folded(NamedTuple):
    period: int
    rises: bool               # some values rise
    ranks: List[List[str]]    # what each rank does in a period


def fold(ranks: Sequence[Calls]) -> Optional[Folded]:
    """The calls of all ranks, if they are alike with a period that was seen twice."""
    if any(not lines or lines[-1] != "join" for calls in ranks for lines in calls):
        return None
    for period in range(1, min(MAX_PERIOD, len(ranks[0]) // 2) + 1):
        merged: List[List[str]] = []
        for calls in ranks:
            lines = _merge(list(_groups(calls, period)))
            if lines is None:
                break
            merged.append(lines)
        else:
            return Folded(period, any("*launch" in line for lines in merged for line in lines), merged)
    return None


def numbered(calls: Calls) -> Iterator[str]:
    """The lines of calls one after the other, each after its number."""
    for number, lines in enumerate(calls, 1):
        yield f"call {number}"
        yield from lines


def _groups(calls: Calls, period: int) -> Iterator[List[str]]:
    """Lines of `period` calls each; the last group may have fewer calls."""
    for first in range(0, len(calls), period):
        yield list(numbered(calls[first:first + period]))


def _merge(groups: Sequence[Sequence[str]]) -> Optional[List[str]]:
    first, whole = groups[0], [group for group in groups if len(group) == len(groups[0])]
    if len(whole) < len(groups) - 1 or len(groups[-1]) > len(first):
        return None  # only the last one may stop early
    out: List[str] = []
    for index, line in enumerate(first):
        same = [group[index] for group in groups if index < len(group)]
        if all(other == line for other in same):
            out.append(line)
            continue
        risen = _rise(same)
        if risen is None:
            return None
        out.append(risen)
    return out


def _rise(lines: Sequence[str]) -> Optional[str]:
    """One notify or wait with a value that rises by the same number from line to line."""
    words = [line.split() for line in lines]
    if words[0][0] not in ("notify", "wait") or any(each[:4] + each[5:] != words[0][:4] + words[0][5:] for each in words):
        return None
    values = [int(each[4]) for each in words]
    times = values[1] - values[0]
    if any(later - earlier != times for earlier, later in zip(values, values[1:])):
        return None
    return " ".join([*words[0][:4], f"{values[0]}+{times}*launch", *words[0][5:]])
