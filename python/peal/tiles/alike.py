# SPDX-License-Identifier: Apache-2.0
"""Programs of a grid that do the same: one is recorded, the others are written down from it with their own numbers.

While a program is recorded as a Pattern, its number along the longest axis of the grid is a Number: base + times * p. Sums, differences and
multiples of Numbers are Numbers. A comparison is answered as it is for this program, and narrows the range of p to those with the same answer;
whatever else asks for the number gets this program's, and narrows the range to it alone. So the text that was written down holds for
all p of the range, with the numbers of p in the place of the Numbers: nothing is assumed of what was not seen.

Lines name a Number, or a lane of the program, by a mark, which is filled in for each program. Memory of values stands where
the memory of the program before ends: a Number with a `tag`, the type of its elements.
"""
from __future__ import annotations

import copy
import operator
import re
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import numpy as np

if TYPE_CHECKING:
    from .lanes import Program

MARK = re.compile("\x01(\\d+)\x02")
FORMATS = {"": "%d", "#x": "%#x", "d": "%d", "r": "%d"}
TRIES = 4  # programs that no other one is like, after which a launch is recorded one by one

Form = Tuple[Any, ...]


class Pattern:
    """What one program does, as far as others do the same."""

    def __init__(self, at: int, end: int) -> None:
        self.at, self.low, self.high, self.is_open = at, 0, end - 1, True
        self.forms: List[Form] = []
        self.marks: Dict[Tuple[Form, str], str] = {}
        self.scratch: Dict[str, int] = {}    # where this program's memory of values begins, by type
        self.cells: List[Tuple[Any, int]] = []
        self.values: List[Tuple[Any, Optional[int], Optional[int]]] = []
        self.fills: List[Tuple[Any, int, float]] = []
        self.held: Dict[Tuple[int, int, Tuple[str, int]], Tuple[Set[int], str]] = {}
        self.threads: List[int] = []         # that have lanes of their own, in the order in which they got them

    def pin(self) -> None:
        """From here on it holds for this program alone."""
        self.low = self.high = self.at

    def mark(self, form: Form, spec: str = "") -> str:
        found = self.marks.get((form, spec))
        if found is None:
            found = self.marks[form, spec] = f"\x01{len(self.forms)}\x02"
            self.forms.append((FORMATS[spec] if len(form) == 3 else "%s", *form))
        return found

    def keep(self, base: int, times: int, relation: str, holds: bool) -> None:
        """Only programs for which base + times * p stands to 0 as it does here."""
        if relation in ("eq", "ne"):
            if holds == (relation == "eq"):
                self.pin()
                return
            relation, holds = "lt" if base + times * self.at < 0 else "gt", True
        if relation in ("gt", "ge"):
            base, times, relation = -base, -times, {"gt": "lt", "ge": "le"}[relation]
        most = -1 if relation == "lt" else 0  # base + times * p is at most that, or more
        if not holds:
            base, times, most = -base, -times, -most - 1
        if times > 0:
            self.high = min(self.high, (most - base) // times)
        else:
            self.low = max(self.low, -((most - base) // -times))


class Number:
    """base + times * p, and with a tag the address where the program's memory of values begins."""
    __slots__ = ("pattern", "base", "times", "tag")
    __array_ufunc__ = None  # numpy leaves operators to this class

    def __init__(self, pattern: Pattern, base: int, times: int, tag: str = "") -> None:
        self.pattern, self.base, self.times, self.tag = pattern, base, times, tag

    def _make(self, base: int, times: int, tag: str) -> Any:
        return Number(self.pattern, base, times, tag) if times or tag else base

    def now(self) -> int:
        """The number of the program that is recorded."""
        return self.base + self.times * self.pattern.at + (self.pattern.scratch[self.tag] if self.tag else 0)

    def __int__(self) -> int:
        if self.pattern.is_open:
            self.pattern.pin()
        return self.now()

    __index__ = __int__

    def __float__(self) -> float:
        return float(int(self))

    def __hash__(self) -> int:
        return hash(int(self))

    def __array__(self, dtype: Any = None, **_: Any) -> Any:
        return np.array(int(self), dtype=dtype)

    def __bool__(self) -> bool:
        return self != 0

    def __format__(self, spec: str) -> str:
        if not self.pattern.is_open:
            return format(self.now(), spec)
        return self.pattern.mark((self.base, self.times, self.tag), spec)

    def __repr__(self) -> str:
        return self.__format__("r") if self.pattern.is_open else repr(self.now())

    # -- what stays a Number --

    def __neg__(self) -> Any:
        return int(self) * -1 if self.tag else self._make(-self.base, -self.times, "")

    def __add__(self, other: Any) -> Any:
        if isinstance(other, (int, np.integer)):
            return self._make(self.base + int(other), self.times, self.tag)
        if type(other) is Number and other.pattern is self.pattern and not (self.tag and other.tag):  # pylint: disable=unidiomatic-typecheck
            return self._make(self.base + other.base, self.times + other.times, self.tag or other.tag)
        return int(self) + (int(other) if isinstance(other, Number) else other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, (int, np.integer)):
            return self._make(self.base - int(other), self.times, self.tag)
        if type(other) is Number and other.pattern is self.pattern and other.tag in ("", self.tag):  # pylint: disable=unidiomatic-typecheck
            return self._make(self.base - other.base, self.times - other.times, "" if other.tag else self.tag)
        return int(self) - (int(other) if isinstance(other, Number) else other)

    def __rsub__(self, other: Any) -> Any:
        if isinstance(other, (int, np.integer)) and not self.tag:
            return self._make(int(other) - self.base, -self.times, "")
        return other - int(self)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (int, np.integer)) and not self.tag:
            return self._make(self.base * int(other), self.times * int(other), "")
        return int(self) * (int(other) if isinstance(other, Number) else other)

    __rmul__ = __mul__

    def __lshift__(self, other: Any) -> Any:
        return self * (1 << other) if isinstance(other, int) and 0 <= other < 64 else int(self) << other

    def __floordiv__(self, other: Any) -> Any:
        """A multiple of the number, or the same for all programs of the range."""
        if not isinstance(other, (int, np.integer)) or other <= 0 or self.tag:
            return int(self) // other
        other = int(other)
        if self.base % other == self.times % other == 0:
            return self._make(self.base // other, self.times // other, "")
        quotient = self.now() // other
        if self.pattern.is_open:
            self.pattern.keep(self.base - quotient * other, self.times, "ge", True)
            self.pattern.keep(self.base - (quotient + 1) * other, self.times, "lt", True)
        return quotient

    def __mod__(self, other: Any) -> Any:
        if not isinstance(other, (int, np.integer)) or other <= 0 or self.tag:
            return int(self) % other
        return self - self // other * int(other)

    def __rshift__(self, other: Any) -> Any:
        return self // (1 << other) if isinstance(other, int) and 0 <= other < 64 else int(self) >> other

    def _compare(self, other: Any, relation: str) -> Any:
        test: Callable[[Any, Any], Any] = getattr(operator, relation)
        if not isinstance(other, (int, np.integer, Number)):
            return test(int(self), other)
        apart = self - other
        if not isinstance(apart, Number):
            return test(apart, 0)
        holds = test(apart.now(), 0)
        if apart.tag:
            return test(int(apart), 0)
        if self.pattern.is_open:
            self.pattern.keep(apart.base, apart.times, relation, holds)
        return holds


def _operators() -> None:
    def compared(name: str) -> Callable[[Number, Any], Any]:
        return lambda self, other: self._compare(other, name)  # pylint: disable=protected-access

    def pinned(function: Callable[[Any, Any], Any], swapped: bool) -> Callable[[Number, Any], Any]:
        return lambda self, other: function(other, int(self)) if swapped else function(int(self), int(other) if isinstance(other, Number) else other)
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Number, f"__{name}__", compared(name))
    for name, function in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor), ("truediv", operator.truediv), ("pow", operator.pow)):
        setattr(Number, f"__{name}__", pinned(function, False))
    for name, function in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor), ("truediv", operator.truediv),
                           ("floordiv", operator.floordiv), ("mod", operator.mod), ("lshift", operator.lshift), ("rshift", operator.rshift)):
        setattr(Number, f"__r{name}__", pinned(function, True))


_operators()


# ---- what was written down, for other programs ----

class Text:
    """Lines with marks."""

    def __init__(self, lines: Sequence[str], forms: Sequence[Form]) -> None:
        parts = MARK.split("\n".join(lines))
        self.which = [int(part) for part in parts[1::2]]
        self.form = "".join(forms[int(part)][0] if at % 2 else part.replace("%", "%%") for at, part in enumerate(parts))

    def lines(self, values: Sequence[Any]) -> List[str]:
        return (self.form % tuple([values[at] for at in self.which])).split("\n")


class Template:
    """What a program did, for those that do the same."""

    def __init__(self, program: Program, pattern: Pattern, first: int, changes: int) -> None:
        rank, lines = program.rank, program.rank.writer.lines
        self.pattern, self.low, self.high, self.changes = pattern, pattern.low, pattern.high, changes
        self.place, self.role = rank.writer.last, rank.last_lane.role if rank.last_lane is not None else None
        self.used: List[Tuple[str, int]] = []  # memory of values, by type
        for dtype, start in pattern.scratch.items():
            self.used.append((dtype, program.stream.used[dtype] - (start - rank.values_region(program.stream.number, dtype).address)))
        self.parts: List[Any] = []
        plain: List[str] = []
        for line in [*lines[first:], None]:
            if isinstance(line, str):
                plain.append(line)
                continue
            if plain:
                self.parts.append(Text(plain, pattern.forms))
                plain = []
            if line:  # an Orders without a line says nothing
                self.parts.append(Text(line, pattern.forms) if isinstance(line, list) else line)
        del lines[first:]
        self._write(program, pattern.at, dict(pattern.scratch))

    def write(self, program: Program, at: int) -> None:
        """Another program does the same."""
        stream, scratch = program.stream, {}
        for dtype, nbytes in self.used:
            where, begins = program.rank.values_region(stream.number, dtype), stream.used.get(dtype, 0)
            scratch[dtype] = where.address + begins
            stream.used[dtype] = begins + nbytes
            where.nbytes = max(where.nbytes, begins + nbytes)
        for thread in self.pattern.threads:
            program.lane_of(thread)
        self._write(program, at, scratch)

    def _write(self, program: Program, at: int, scratch: Dict[str, int]) -> None:
        pattern, rank, lines = self.pattern, program.rank, program.rank.writer.lines

        def number(of: Any) -> int:
            return of if not isinstance(of, Number) else of.base + of.times * at + (scratch[of.tag] if of.tag else 0)
        values = [form[1] + form[2] * at + (scratch[form[3]] if form[3] else 0) if len(form) == 4 else
                  getattr(program if form[1] < 0 else program.apart[form[1]], form[2]) for form in pattern.forms]
        for part in self.parts:
            if isinstance(part, Text):
                lines.extend(part.lines(values))
            else:
                lines.append(copy.copy(part))  # a Fill
                lines[-1].address = number(part.address)
        rank.writer.last = self.place
        rank.last_lane = None if self.role is None else program if self.role < 0 else program.apart[self.role]
        rank.recording.cells.update([(number(address), nbytes) for address, nbytes in pattern.cells])
        for (base, times, place), (held, why) in pattern.held.items():
            rank.recording.held[base + times * at, place] = (held, why)
        for address, value, adds in pattern.values:
            rank.recording.is_set(number(address), value, rank, adds)
        for address, nbytes, filled in pattern.fills:
            rank.at(number(address)).rank.counters.fill(number(address), nbytes, filled)
