# SPDX-License-Identifier: Apache-2.0
"""Where the author is, and what an op of a recording reads or writes. Positions are those of the author: the innermost frame that is not in
this package."""
from __future__ import annotations

import os
import sys
from typing import Any, Dict, NamedTuple, Optional, Tuple

from ..record import Refused, shown_file

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
OWN = {os.path.join(os.path.dirname(os.path.dirname(HERE)), "record.py"), "<peal>"}

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


def runs(frame: Any) -> bool:
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
