# SPDX-License-Identifier: Apache-2.0
"""--fix of programs: a change that was tried, made in the author's file. Only changes of a line are: the rest is refused with a reason.

Places of the syntax tree count bytes, so texts are bytes here.
"""
from __future__ import annotations

import ast
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..record import Refused
from .core import Place

BETWEEN = "a barrier between calls"
LINES = {"meet": "a barrier in a kernel", "devices": "a barrier in a kernel", "enter": "a barrier where a kernel begins",
         "streams": "a meeting of all streams", "own": "a semaphore for each copy", "zero": "zeroing memory on all ranks"}


class Moved(NamedTuple):
    """A wait that was done before a line, not where the author has it."""
    before: Place
    wait: Place


class Drained(NamedTuple):
    """A half of a copy that nothing waits for."""
    start: Place
    half: str


class File:
    """A file of the author's, and what is replaced in it."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "rb") as file:
            self.text = file.read()
        self.tree = ast.parse(self.text, path)
        self.lines = self.text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.changes: List[Tuple[int, int, bytes]] = []

    def offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def span(self, node: Any) -> Tuple[int, int]:
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def replace(self, first: int, end: int, text: str) -> None:
        self.changes.append((first, end, text.encode()))

    def result(self) -> str:
        text = self.text
        for first, end, new in sorted(self.changes, reverse=True):
            text = text[:first] + new + text[end:]
        ast.parse(text, self.path)
        return text.decode()

    def calls(self, line: int) -> Iterator[ast.Call]:
        """The calls of methods and functions of modules at a line, inner ones first."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                 and node.lineno <= line <= (node.end_lineno or 0)]
        return iter(sorted(found, key=lambda node: (self.span(node)[1] - self.span(node)[0])))

    def block_of(self, line: int) -> Tuple[List[ast.stmt], int]:
        """The innermost block that has a statement there, and which one it is."""
        best: Optional[Tuple[List[ast.stmt], int]] = None
        size = 1 << 30
        for node in ast.walk(self.tree):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                for i, one in enumerate(block if isinstance(block, list) else ()):
                    if one.lineno <= line <= one.end_lineno and one.end_lineno - one.lineno < size:
                        best, size = (block, i), one.end_lineno - one.lineno
        if best is None:
            raise Refused(f"there is no statement at {self.path}:{line}")
        return best


def _argument(file: File, line: int, name: str, value: str) -> None:
    """sem= or scope= of an atomic."""
    for call in file.calls(line):
        if not call.func.attr.startswith("atomic_"):  # type: ignore[attr-defined]
            continue
        said = next((one.value for one in call.keywords if one.arg == name), None)
        if said is None:
            end = file.span(call)[1] - 1
            comma = "" if file.text[:end].rstrip().endswith((b",", b"(")) else ", "
            file.replace(end, end, f'{comma}{name}="{value}"')
        elif isinstance(said, ast.Constant):
            first, end = file.span(said)
            quote = file.text[first:first + 1].decode()
            file.replace(first, end, f"{quote}{value}{quote}")
        else:
            raise Refused(f"{name} is not a text at {file.path}:{line}")
        return
    raise Refused(f"no atomic is written at {file.path}:{line}")


def _relation(file: File, line: int) -> None:
    """A loop that ends at one value ends at that and every larger one."""
    for node in ast.walk(file.tree):
        if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not node.lineno <= line <= (node.end_lineno or 0):
            continue
        first, end = file.span(node.left)[1], file.span(node.comparators[0])[0]
        old = "!=" if isinstance(node.ops[0], ast.NotEq) else "==" if isinstance(node.ops[0], ast.Eq) else None
        asks_left = any(isinstance(part, ast.Call) for part in ast.walk(node.left))
        if old is None or old.encode() not in file.text[first:end]:
            continue
        new = {"!=": ("<", ">"), "==": (">=", "<=")}[old][not asks_left]
        file.replace(first, end, file.text[first:end].decode().replace(old, new))
        return
    raise Refused(f"no loop compares with '!=' or '==' at {file.path}:{line}")


def _remove(file: File, line: int) -> None:
    block, i = file.block_of(line)
    first, end = file.span(block[i])
    if len(block) == 1:
        file.replace(first, end, "pass")
    else:
        file.replace(file.starts[block[i].lineno - 1], file.starts[block[i].end_lineno or 0], "")


def _amount(file: File, line: int, value: str) -> None:
    """How much a wait is for; 0: it is not done."""
    call = next((one for one in file.calls(line) if one.func.attr in ("semaphore_wait", "wait", "wait_recv", "wait_send")), None)  # type: ignore[attr-defined]
    block, i = file.block_of(line)
    if call is None or not isinstance(block[i], ast.Expr):
        raise Refused(f"no wait is a statement at {file.path}:{line}")
    if value == "0":
        _remove(file, line)
        return
    said = next((one.value for one in call.keywords if one.arg == "value"), call.args[1] if len(call.args) > 1 else None)
    if call.func.attr != "semaphore_wait" or not isinstance(said, ast.Constant):  # type: ignore[attr-defined]
        raise Refused(f"the wait at {file.path}:{line} does not say a number")
    file.replace(*file.span(said), value)


def _move(file: File, moved: Moved) -> None:
    """A statement that waits comes before another one."""
    there, at = file.block_of(moved.before[1])
    here, which = file.block_of(moved.wait[1])
    if there is not here or not isinstance(here[which], ast.Expr) or here[which].lineno != here[which].end_lineno:
        raise Refused(f"the wait at {file.path}:{moved.wait[1]} is no statement beside line {moved.before[1]}")
    wait = here[which]
    file.replace(file.starts[wait.lineno - 1], file.starts[wait.lineno], "")
    start = file.starts[there[at].lineno - 1]
    file.replace(start, start, file.lines[wait.lineno - 1].decode())


def _drain(file: File, drained: Drained) -> None:
    """Where one half of a copy is waited for, both are."""
    other = {"send": "wait_recv", "recv": "wait_send"}.get(drained.half)
    if other is None:
        raise _lines_of_author("a wait that is missing")
    functions = [node for node in ast.walk(file.tree) if isinstance(node, ast.FunctionDef) and node.lineno <= drained.start[1] <= (node.end_lineno or 0)]
    found = [call for call in ast.walk(functions[-1] if functions else file.tree)
             if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == other]
    if len(found) != 1:
        raise _lines_of_author(f"a wait_{drained.half}() that is missing")
    end = file.span(found[0].func)[1]
    file.replace(end - len(other), end, "wait")


def _lines_of_author(what: str) -> Refused:
    return Refused(f"{what} takes lines that only its author can write")


def edited(tries: Dict[Tuple[str, Place], str], done: List[Any]) -> Tuple[str, str]:
    """The file with the change, and its text. done: what the recorder knows about where."""
    files: Dict[str, File] = {}

    def of(name: str) -> File:
        if name not in files:
            files[name] = File(name)
        return files[name]
    for (kind, (name, line)), what in tries.items():
        if kind in LINES:
            raise _lines_of_author(LINES[kind])
        if kind in ("sem", "scope"):
            _argument(of(name), line, kind, {"system": "sys"}.get(what, what))
        elif kind == "wait" and what == "ge":
            _relation(of(name), line)
        elif kind == "amount":
            _amount(of(name), line, what)
    for one in dict.fromkeys(done):
        if isinstance(one, Moved):
            _move(of(one.wait[0]), one)
        else:
            _drain(of(one.start[0]), one)
    if len(files) != 1:
        raise Refused("it is a change of several files") if files else _lines_of_author(BETWEEN)
    (file,) = files.values()
    return file.path, file.result()
