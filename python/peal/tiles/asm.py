# SPDX-License-Identifier: Apache-2.0
"""Inline assembly of kernels: the few hand-shakes of PTX that are known, by their instructions.

Every thread of the program executes it. With a tile of addresses, element k is thread k's; a single address is for the threads that come there.
"""
from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from . import core, data, spins
from .core import refuse
from .data import Tile, dtype_of, tile

ORDERS = ("relaxed", "acquire", "release", "acq_rel", "volatile", "weak", "mmio")
SCOPES = {"cta": "cta", "gpu": "gpu", "sys": "sys", "cluster": "gpu"}
IDENTITIES = {"%tid.x": "thread", "%tid.y": 0, "%tid.z": 0, "%ntid.x": "threads", "%ntid.y": 1, "%ntid.z": 1,
              "%laneid": "lane", "%warpid": "warp", "%ctaid.x": "p0", "%ctaid.y": "p1", "%ctaid.z": "p2",
              "%nctaid.x": "n0", "%nctaid.y": "n1", "%nctaid.z": "n2"}
COMPARISONS = {"eq": "==", "ge": ">=", "gt": ">", "ne": "!="}


class Instruction(NamedTuple):
    guard: str
    name: str
    parts: Tuple[str, ...]
    operands: Tuple[str, ...]


def _parse(text: str) -> Tuple[List[Instruction], Dict[str, int]]:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    out: List[Instruction] = []
    labels: Dict[str, int] = {}
    for statement in re.split(r"[;{}]", text):
        statement = statement.strip()
        label = re.match(r"([$%\w.]+)\s*:\s*", statement)
        while label:
            labels[label.group(1)] = len(out)
            statement = statement[label.end():].strip()
            label = re.match(r"([$%\w.]+)\s*:\s*", statement)
        if not statement or statement.startswith("."):
            continue
        found = re.match(r"(@!?%?[\w$]+\s+)?([\w.]+(?:::\w+)*)\s*(.*)$", statement, flags=re.S)
        if not found:
            raise refuse(f"inline assembly that is not known: '{statement}'")
        parts = found.group(2).replace("::", ".").split(".")
        operands = tuple(word.strip() for word in re.split(r",(?![^\[]*\])", found.group(3)) if word.strip())
        out.append(Instruction((found.group(1) or "").strip(), parts[0], tuple(parts[1:]), operands))
    return out, labels


def _order(one: Instruction, plain: str) -> Tuple[str, str]:
    order = next((part for part in one.parts if part in ORDERS), plain)
    scope = next((SCOPES[part] for part in one.parts if part in SCOPES), "sys" if order == "volatile" else "gpu")
    return {"volatile": "relaxed", "weak": "relaxed", "mmio": "relaxed"}.get(order, order), scope


class _Block:
    """One piece of assembly in one program."""

    def __init__(self, text: str, args: Sequence[Any], outputs: int, types: Sequence[Any]) -> None:
        self.text, self.types = text, types
        self.values: Dict[str, Any] = {f"${outputs + number}": tile(arg) for number, arg in enumerate(args)}
        self.code, self.labels = _parse(text)
        self.outputs = outputs

    def run(self) -> List[Any]:
        at = 0
        while at < len(self.code):
            at = self.step(at)
        return [self.values.get(f"${number}", 0) for number in range(self.outputs)]

    def value(self, word: str) -> Any:
        word = word.strip()
        if word.startswith("["):
            inner = word.strip("[] ")
            base, plus, offset = inner.partition("+")
            where = self.values.get(base.strip())
            if where is None:
                raise self.unknown(word)
            where = tile(where)
            if not where.dtype.is_ptr():
                where = data.cast(where, data.pointer_type("uint8"))
            return data.binary("add", data.cast(where, data.pointer_type("uint8")), int(offset.strip(), 0)) if plus else where
        if word in self.values:
            return self.values[word]
        if re.fullmatch(r"-?(0[xX])?[0-9a-fA-F]+U?", word):
            return int(word.rstrip("U"), 0)
        raise self.unknown(word)

    def unknown(self, what: Any) -> core.Refused:
        if isinstance(what, Instruction):
            what = ".".join((what.name, *what.parts))
        if "multimem" in self.text:
            return refuse("inline assembly of multimem, which is not supported")
        return refuse(f"inline assembly that is not known: '{what}'")

    def step(self, at: int) -> int:
        one = self.code[at]
        if one.name == "mov" or one.name == "cvt":
            source = one.operands[1]
            self.values[one.operands[0]] = identity(source) if source in IDENTITIES else self.value(source)
        elif one.name in ("bar", "barrier"):
            core.program().barrier()
        elif one.name in ("membar", "fence"):
            if "proxy" in one.parts:
                raise self.unknown(one)
            scope = {"gl": "gpu"}.get(one.parts[-1], one.parts[-1]) if one.parts else "gpu"
            order = "acq_rel" if "acq_rel" in one.parts else "seq_cst"
            spins.fence(order, scope if scope in SCOPES else "gpu", apart=True)
        elif one.name in ("nanosleep", "pause", "ret", "discard", "prefetch", "prefetchu"):
            pass
        elif one.name in ("ld", "atom"):
            return self.look(at)
        elif one.name == "st" or one.name == "red":
            self.change(one)
        else:
            raise self.unknown(one)
        return at + 1

    def pointer(self, one: Instruction, word: str) -> Tile:
        bits = next((int(part[1:]) for part in one.parts if re.fullmatch(r"[bus](32|64)", part)), 0)
        if not bits:
            raise self.unknown(one)
        return data.cast(tile(self.value(word)), data.pointer_type(f"{'u' if 'u' in one.parts[-1] else ''}int{bits}"))

    def change(self, one: Instruction) -> None:
        where = self.pointer(one, one.operands[0])
        order, scope = _order(one, "relaxed")
        kind = "set" if one.name == "st" else next((part for part in one.parts if part in ("add", "max", "min", "and", "or", "xor")), "")
        if one.name == "st" and not any(part in ORDERS for part in one.parts):
            data.store(where, data.cast(tile(self.value(one.operands[1])), where.dtype.element_ty))
            return
        spins.atomic(kind, where, self.value(one.operands[1]), sem=order, scope=scope, apart=True)

    def look(self, at: int) -> int:
        """A load or an atomic: with a comparison and a branch back, a wait."""
        one = self.code[at]
        where = self.pointer(one, one.operands[1])
        order, scope = _order(one, "relaxed")
        loop = self.loop(at)
        if one.name == "ld":
            if loop is not None:
                end, relation, value = loop
                spins.wait_for(where, relation, value, *spins.order_of(order, scope), apart=True)
                return end
            if any(part in ORDERS for part in one.parts):
                self.values[one.operands[0]] = spins.load_flag(where, *spins.order_of(order, scope), apart=True)
            else:
                self.values[one.operands[0]] = data.load(where)
            return at + 1
        kind = next((part for part in one.parts if part in ("cas", "exch", "add", "max", "min", "and", "or", "xor")), "")
        numbers = [int(tile(self.value(word))) for word in one.operands[2:]]
        if loop is not None:
            end, relation, value = loop
            if kind == "cas" and relation == "==" and value == numbers[0]:
                if numbers[0] == numbers[1]:
                    spins.wait_for(where, "==", value, *spins.order_of(order, scope), apart=True)
                else:
                    spins.take(where, numbers[0], numbers[1], *spins.order_of(order, scope), apart=True)
                return end
            if kind in ("add", "or") and numbers[0] == 0:
                spins.wait_for(where, relation, value, *spins.order_of(order, scope), apart=True)
                return end
            raise self.unknown(one)
        if kind == "cas":
            self.values[one.operands[0]] = spins.atomic("cas", where, numbers[1], compare=numbers[0], sem=order, scope=scope, apart=True)
        elif kind:
            self.values[one.operands[0]] = spins.atomic("set" if kind == "exch" else kind, where, self.value(one.operands[2]), sem=order,
                                                        scope=scope, apart=True)
        else:
            raise self.unknown(one)
        return at + 1

    def loop(self, at: int) -> Optional[Tuple[int, str, int]]:
        """The comparison and the branch that make the instruction a wait: where it ends, and for what it waits."""
        starts = [label for label, where in self.labels.items() if where <= at]
        look = self.code[at].operands[0]
        after = [number for number in range(at + 1, len(self.code)) if self.code[number].name != "nanosleep"]
        if len(after) < 2:
            return None
        compare, branch = self.code[after[0]], self.code[after[1]]
        if compare.name != "setp" or branch.name != "bra" or compare.operands[1] != look or not branch.guard:
            return None
        relation = next((part for part in compare.parts if part in ("eq", "ne", "lt", "le", "gt", "ge")), "")
        value = int(tile(self.value(compare.operands[2])))
        goes_back = branch.operands[0] in starts
        stays = branch.guard.startswith("@!") != goes_back  # the loop goes on while the comparison is true
        if not goes_back:
            return None
        if stays:
            relation = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}[relation]
        if relation not in COMPARISONS:
            raise self.unknown(compare)
        return after[1] + 1, COMPARISONS[relation], value


def identity(word: str) -> Any:
    program, what = core.program(), IDENTITIES[word]
    if isinstance(what, int):
        return what
    if what == "threads":
        return program.threads
    if what[0] in "pn" and what[1:].isdigit():
        from . import triton
        return (triton.program_id if what[0] == "p" else triton.num_programs)(int(what[1:]))
    numbers = np.arange(program.threads)
    out = Tile((), data.INT32)
    out.link = spins.Thread(numbers if what == "thread" else numbers % 32 if what == "lane" else numbers // 32)
    return out


def inline(asm: Any, constraints: Any, args: Sequence[Any], dtype: Any, is_pure: Any = False, pack: Any = 1, **_: Any) -> Any:
    """tl.inline_asm_elementwise"""
    del is_pure, pack
    types = list(dtype) if isinstance(dtype, (tuple, list)) else [dtype]
    outputs = sum(part.strip().startswith("=") for part in str(constraints).split(","))
    found = _Block(str(asm), args, max(outputs, 1), types).run()
    out = tuple(_typed(value, kind) for value, kind in zip(found, types))
    return out if isinstance(dtype, (tuple, list)) else out[0]


def _typed(value: Any, kind: Any) -> Tile:
    value = tile(value)
    return value if value.thread is not None or value.cell is not None else data.cast(value, dtype_of(kind)) if (
        not value.dtype.is_ptr()) else value
