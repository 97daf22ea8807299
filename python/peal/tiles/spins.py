# SPDX-License-Identifier: Apache-2.0
"""Signals: atomics, loads of flags, and loops that wait for them.

An atomic is written down when it happens, as what it is if nobody looks at its answer. If its answer is compared and a loop asks for the
comparison, the loop is a wait: it has to do nothing else, which is checked in its text, and the line of the last look becomes the wait.
Anything else that depends on the answer is refused.
"""
from __future__ import annotations

import ast
import copy
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import core, last
from .core import Lane, Span, refuse
from .data import COMPARISONS, INT1, MIRRORED, Tile, addresses_of, array, broadcast_to, cast, tile
from . import data

ORDERS = {None: "acq_rel", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel", "relaxed": "relaxed", "seq_cst": "seq_cst"}
SCOPES = {None: "device", "gpu": "device", "sys": "system", "cta": "block", "agent": "device", "system": "system", "device": "device",
          "block": "block", "workgroup": "block"}


class Cell:
    """What was done to signals to get a value: one of each element."""
    role = "cell"

    def __init__(self, kind: str, addresses: List[int], nbytes: int, old: int, new: int, order: str, scope: str) -> None:
        self.kind, self.addresses, self.nbytes, self.old, self.new, self.order, self.scope = kind, addresses, nbytes, old, new, order, scope
        self.lanes: List[Lane] = []
        self.lines: List[int] = []   # of the look, per element
        self.end: Optional[core.Mark] = None  # what was written down, after it
        self.place = core.place()
        self.how = "all"             # what a reduction of the elements makes of them

    def signature(self) -> Tuple[Any, ...]:
        return (self.kind, self.addresses, self.nbytes, self.old, self.new, self.order, self.scope, self.lanes, self.how)


# ---- doing something to a signal ----

def _pointers(pointers: Any) -> Tuple[Tile, int]:
    where = spread(tile(pointers))
    if not where.dtype.is_ptr():
        raise refuse(f"a {where.dtype} is used as the address of a signal")
    if where.known is None:
        raise refuse("data decides which signal is used; if its contents are known, give them by --input")
    data.steer(where)
    assert where.dtype.element_ty is not None
    return where, where.dtype.element_ty.itemsize


def _listed(where: Tile) -> List[Any]:
    """The addresses of signals; that of one may differ from program to program."""
    return addresses_of(where).tolist() if where.shape else [where.known]


def _order(sem: Any, scope: Any) -> Tuple[str, str]:
    sem, scope = getattr(sem, "value", sem), getattr(scope, "value", scope)
    if sem not in ORDERS:
        raise refuse(f"there is no order '{sem}': acquire, release, acq_rel and relaxed are known")
    if scope not in SCOPES:
        raise refuse(f"there is no scope '{scope}': cta, gpu and sys are known")
    recording = core.rank().recording
    return recording.tried("sem", ORDERS[sem]), recording.tried("scope", SCOPES[scope])


def _lane(element: int, several: bool, apart: bool) -> Lane:
    """Who does it. Atomics of the language: the program, whose threads meet before they release and after they acquire. Assembly
    (apart): a thread for each element of a tile; the thread that acts alone; or the first one."""
    lane = core.rank().lane
    if not isinstance(lane, core.Program):
        return core.current()
    alone = lane.acting()
    if alone is None and not apart:
        if lane.apart:
            return lane
        lane.rank.recording.assume("atomics", "that all threads of a program meet before an atomic of it that releases and after one that "
                                   "acquires, as Triton compiles them")
        return lane
    if several and alone is not None and len(alone) > 1:
        return lane.thread(alone[element % len(alone)])
    if several:
        lane.rank.recording.assume("elements", "that element k of a tile of signals is thread k's")
        return lane.thread(element)
    return lane.thread(alone[0] if alone else 0)


def _line(kind: str, address: int, nbytes: int, old: int, new: int, order: str, scope: str, lane: Lane) -> int:
    """The line of an op whose answer nobody looks at."""
    if kind == "load" or (kind in ("add", "or", "xor") and new == 0) or (kind == "cas" and old == new):
        lane.rank.is_looked_at(address, nbytes)
        return lane.read(Span("i64" if nbytes == 8 else "i32", address))
    if kind == "add":
        return lane.notify(address, nbytes, "add", new, order, scope)
    if kind == "set":
        return lane.notify(address, nbytes, "set", new, order, scope)
    recording = lane.rank.recording
    recording.is_set(address, None, lane.rank, None)
    if kind == "cas":
        recording.holds(address, {old, new}, f"a compare-and-swap from {old} to {new} without a loop")
        return lane.notify(address, nbytes, "set", new, order, scope)
    if kind == "or":
        recording.holds(address, {0, new}, f"an atomic 'or' with {new}")
        return lane.notify(address, nbytes, "set", new, order, scope)
    if kind == "and" and new == 0:
        return lane.notify(address, nbytes, "set", 0, order, scope)
    if kind == "max":
        _rises(lane, int(address), new)
        return lane.notify(address, nbytes, "set", new, order, scope)
    raise refuse(f"an atomic '{kind}' of a signal cannot be expressed")


def _rises(lane: Lane, address: int, new: int) -> None:
    """A maximum sets the signal, if one lane alone changes it and never to less than before."""
    recording = lane.rank.recording
    who, before = recording.maxima.setdefault(address, (lane, {0}))
    if who is not lane or new < max(before):
        raise refuse("an atomic maximum of a signal can be expressed if one program alone changes it, and to no less than before")
    before.add(new)
    recording.holds(address, before, "an atomic maximum")


def atomic(kind: str, pointers: Any, value: Any, compare: Any = 0, mask: Any = None, sem: Any = None, scope: Any = None,
           apart: bool = False) -> Tile:
    """kind: add, set, cas, max, min, and, or, xor. Of integers with known values it changes signals; of data, memory."""
    where, nbytes = _pointers(pointers)
    order, reach = _order(sem, scope)
    element = where.dtype.element_ty
    assert element is not None
    operand = spread(tile(value))
    shape = data.broadcast_shape(where.shape, operand.shape)
    chosen = data.mask_of(mask, shape)
    if operand.known is None or element.kind == "f" or (where.shape and nbytes not in (4, 8)):
        return _accumulate(kind, where, operand, chosen)
    data.steer(operand)
    operand = cast(operand, element)
    if not shape and chosen is None:
        old = int(cast(tile(compare), element))
        return _perform(kind, [where.known], nbytes, [old], [int(operand.known)], order, reach, Tile((), element), apart)  # type: ignore
    flat = addresses_of(broadcast_to(where, shape)).tolist()
    news = array(broadcast_to(operand, shape).known, shape, element.number).reshape(-1).tolist()  # type: ignore[arg-type]
    olds = array(broadcast_to(cast(tile(compare), element), shape).known, shape, element.number).reshape(-1).tolist()  # type: ignore[arg-type]
    if chosen is not None:
        flat, news, olds = ([x for x, keep in zip(list_, chosen) if keep] for list_ in (flat, news, olds))
    if len(flat) > 1024:
        return _accumulate(kind, where, operand, chosen)
    return _perform(kind, flat, nbytes, olds, news, order, reach, Tile(shape, element), apart)


def _perform(kind: str, flat: List[int], nbytes: int, olds: List[int], news: List[int], order: str, scope: str, out: Tile,
             apart: bool) -> Tile:
    several = bool(out.shape) and out.numel > 1
    cell = Cell(kind, flat, nbytes, olds[0] if olds else 0, news[0] if news else 0, order, scope)
    if len(news) > 1 and (len(set(news)) > 1 or len(set(olds)) > 1):
        cell.how = "different"
    for number, (address, old, new) in enumerate(zip(flat, olds, news)):
        lane = _lane(number, several, apart)
        cell.lines.append(_line(kind, address, nbytes, old, new, order, scope, lane))
        cell.lanes.append(lane)
    cell.end = core.rank().mark()
    out.link = cell
    return out


def load_flag(pointers: Any, order: str = "relaxed", scope: str = "system", mask: Any = None, apart: bool = False) -> Tile:
    """A look at signals: a volatile or ordered load."""
    where, nbytes = _pointers(pointers)
    element = where.dtype.element_ty
    assert element is not None
    flat = _listed(where)
    chosen = data.mask_of(mask, where.shape)
    if chosen is not None:
        flat = [address for address, keep in zip(flat, chosen) if keep]
    return _perform("load", flat, nbytes, [0] * len(flat), [0] * len(flat), order, scope, Tile(where.shape, element), apart)


def set_flag(pointers: Any, value: Any, order: str = "release", scope: str = "system", mask: Any = None) -> None:
    """An ordered store."""
    atomic("set", pointers, value, mask=mask, sem=order, scope=scope)


def wait_for(pointers: Any, relation: str, value: Any, order: str = "acquire", scope: str = "system", apart: bool = False) -> None:
    """A wait without a loop in the author's text. relation: >= == > !="""
    where, nbytes = _pointers(pointers)
    number = int(tile(value))
    for index, address in enumerate(_listed(where)):
        _lane(index, where.numel > 1, apart).wait(address, nbytes, relation, number, order, scope)


def take(pointers: Any, old: int, new: int, order: str = "acq_rel", scope: str = "system", apart: bool = False) -> None:
    """A loop of compare-and-swap until it succeeds."""
    where, nbytes = _pointers(pointers)
    for index, address in enumerate(_listed(where)):
        _lane(index, where.numel > 1, apart).take(address, nbytes, old, new, order, scope)


def order_of(sem: Any, scope: Any) -> Tuple[str, str]:
    """An order and a scope by the names that kernels use."""
    return _order(sem, scope)


def fence(sem: Any = "acq_rel", scope: Any = "gpu", apart: bool = False) -> None:
    order, reach = _order(sem, scope)
    _lane(0, False, apart).fence(order, reach)


def may_wait(value: Tile, where: Tile) -> None:
    """A plain load of one number: a loop may ask for it again and again. That the compiler keeps it in the loop is assumed."""
    assert where.dtype.element_ty is not None
    nbytes = where.dtype.element_ty.itemsize
    if nbytes in (4, 8):
        value.link = Cell("plain", _listed(where), nbytes, 0, 0, "relaxed", "system")
        value.cell.lanes, value.cell.lines = [core.current()], [core.rank().line_count() - 1]
        value.cell.end = core.rank().mark()


def _accumulate(kind: str, where: Tile, operand: Tile, mask: Any) -> Tile:
    """Atomics of data: element by element, in no order."""
    function = {"add": "add", "max": "maximum", "min": "minimum", "and": "and", "or": "or", "xor": "xor"}.get(kind)
    if function is None:
        raise refuse(f"an atomic '{kind}' of data")
    element = where.dtype.element_ty
    assert element is not None
    data.accumulate(function, where, cast(operand, element), mask)
    out = Tile(where.shape, element)
    out.link = Cell("data", [], element.itemsize, 0, 0, "relaxed", "device")
    return out


# ---- asking for the answer ----

class Condition:
    """A comparison of what a signal held with a number. A loop may ask for it."""
    role = "condition"

    def __init__(self, cell: Cell, relation: str, value: int, tile_: Tile) -> None:
        self.cell, self.relation, self.value, self.tile = cell, relation, value, tile_

    def inverted(self, of: Tile) -> Tile:
        opposite = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}[self.relation]
        return _conditional(Condition(self.cell, opposite, self.value, self.tile), of)

    def ask(self) -> bool:
        """The answer with which the loop goes on to what follows it, and the wait is written down. Before that it goes round once: it has to
        look at the same signal again, and do nothing else."""
        frame = core.author()
        loop = find_loop(frame) if frame is not None else None
        if loop is None:
            raise refuse("the value of a signal decides what the kernel does; only a loop that waits for it and does nothing else can "
                         "be recorded")
        if loop.problem:
            raise refuse(f"a loop that waits for a signal does something else: {loop.problem}")
        rank = core.rank()
        assert self.cell.end is not None
        if not rank.is_quiet_since(self.cell.end):
            raise refuse("a signal is looked at, something else is done, and then the loop that waits for it begins")
        if loop.looks:
            rank.recording.assume("together", "that signals which a loop waits for together keep what it waits for until it has found all of "
                                  f"them ({core.told(core.place())})")
            self._record(loop.leaves)
            return loop.leaves
        first, rank.waiting = rank.waiting, None
        if first is None or first[0] is not frame or first[1] is not loop.asked:
            rank.waiting = (frame, loop.asked, self.cell)
            return not loop.leaves
        self._same_as(first[2])
        rank.rewind(first[2].end)
        self.cell = first[2]
        self._record(loop.leaves)
        return loop.leaves

    def _same_as(self, first: Cell) -> None:
        """The second look is like the first, and nothing was done between them."""
        cell = self.cell
        if cell is first:
            raise refuse("a loop that waits for a signal does not look at it again")
        if cell.signature() != first.signature():
            raise refuse("a loop that waits for a signal looks at another one, or in another way, when it goes round")
        assert first.end is not None
        if not core.rank().is_quiet_since(first.end, cell.lines):
            raise refuse("a loop that waits for a signal does something else")

    def _record(self, holds: bool) -> None:
        cell, value = self.cell, self.value
        if not cell.lines:
            raise refuse("a loop waits for a signal that its mask leaves out")
        relation = self.relation if holds else {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}[self.relation]
        if cell.how not in ("all",):
            relation, value = _reduced(cell, relation, value)
        elif len(cell.addresses) > 1 and self.tile.shape == ():
            raise refuse("a loop that waits for several signals asks for something else than all of them")
        for lane, index, address in zip(cell.lanes, cell.lines, cell.addresses):
            lane.rank.recording.holds_no_more(address, cell.place)
            lane.replace(index, _waiting_line(cell, relation, value, address, lane))
            lane.weakly(cell.order, index)
        if cell.kind == "plain":
            self.tile.store = None  # nothing was loaded: the line became the wait
        if relation == "eq" and self.tile.numel == 1:
            self.tile.known, self.tile.link = value, None  # what the loop's variable holds afterwards


def _reduced(cell: Cell, relation: str, value: int) -> Tuple[str, int]:
    if cell.how == "min" and relation in ("ge", "gt"):
        return relation, value
    if cell.how == "max" and relation == "eq" and value == 0:
        return relation, value
    raise refuse("a loop that waits for several signals asks for something else than all of them")


def _waiting_line(cell: Cell, relation: str, value: int, address: int, lane: Lane) -> str:
    kind, old, new, nbytes = cell.kind, cell.old, cell.new, cell.nbytes
    if kind == "plain":
        lane.rank.recording.assume("plain", f"that the compiler loads again in a loop that waits by a plain load ({core.told(core.place())})")
    reads = kind in ("load", "plain") or (kind in ("add", "or", "xor") and new == 0) or (kind == "cas" and old == new) or (
        kind == "and" and new == -1)
    lane.rank.is_cell(address, nbytes)
    suffix = f"{cell.order} {cell.scope}"
    if reads:
        order = {"release": "relaxed", "acq_rel": "acquire"}.get(cell.order, cell.order)
        return f"wait {address:#x} {nbytes} {_wait_relation(lane, address, nbytes, relation, value)} {order} {cell.scope}"
    recording = lane.rank.recording
    if kind == "cas" and (relation, value) == ("eq", old):
        return f"take {address:#x} {nbytes} {old} {new} {suffix}"
    if kind == "cas" and (relation, value) in (("ge", old), ("gt", old - 1)):
        recording.assume(f"swap {core.told(core.place())}", f"that a signal is never more than {old} where a loop waits for it to be at least that "
                         f"({core.told(core.place())})")
        return f"take {address:#x} {nbytes} {old} {new} {suffix}"
    if kind == "cas" and relation == "ne" and value == new:
        recording.holds(address, {old, new}, f"a loop of compare-and-swap from {old} to {new} that ends at anything but {new}")
        return f"take {address:#x} {nbytes} {old} {new} {suffix}"
    if kind == "set" and relation in ("eq", "ne"):
        before = value if relation == "eq" else None
        if relation == "ne" and value == new:
            before = 0 if new != 0 else 1
            recording.holds(address, {before, new}, f"a loop of exchanges with {new} that ends at anything but {new}")
        if before is not None and before != new:
            return f"take {address:#x} {nbytes} {before} {new} {suffix}"
    raise refuse(f"a loop that repeats an atomic '{kind}' until its answer is "
                 f"{ {'eq': '', 'ne': 'not ', 'ge': 'at least ', 'gt': 'more than ', 'lt': 'less than ', 'le': 'at most '}[relation]}{value}")


def _wait_relation(lane: Lane, address: int, nbytes: int, relation: str, value: int) -> str:
    if relation == "eq":
        relation = lane.rank.recording.tried("wait", relation)
    if relation in ("ge", "gt", "eq"):
        return f"{ {'ge': '>=', 'gt': '>', 'eq': '=='}[relation]} {value}"
    if relation == "ne" and value == 0:
        return "!= 0"
    if relation == "ne":
        lane.rank.recording.holds(address, {0, value} if value == 1 else {0, 1, value},
                                  f"a loop that ends when a signal is not {value}")
        if value == 1:
            return "== 0"
    if relation in ("lt", "le"):
        top = value - (relation == "lt")
        if top == 0:
            return "== 0"
    raise refuse("a loop that waits until a signal is " + {"lt": "less than", "le": "at most", "ne": "not"}[relation] + f" {value}")


def compare(name: str, a: Tile, b: Tile) -> Optional[Tile]:
    """A comparison with the answer of a signal; None: it is ordinary data."""
    if any(value.cell is not None and value.cell.kind == "data" for value in (a, b)):
        raise refuse("the answer of an atomic on data decides something, or is used as data")
    signal, other, relation = (a, b, name) if a.cell is not None or a.condition is not None else (b, a, MIRRORED.get(name, name))
    if signal.condition is not None:
        return _of_condition(name, signal, other)
    if other.known is None or name not in COMPARISONS:
        if signal.store is not None:
            return None
        if name in ("and", "add", "sub", "or") and other.known is not None and not isinstance(other.known, tuple) and other.known in (0, False):
            return signal if name != "and" else None
        raise refuse("the answer of an atomic or a signal is used as data")
    data.steer(other)
    if isinstance(other.known, (data.Affine, data.np.ndarray)):
        raise refuse("signals are compared with different numbers in one step")
    value = int(other.known)  # type: ignore[arg-type]
    if value != other.known:
        raise refuse(f"a signal is compared with {other.known}, which has a fraction")
    return _conditional(Condition(signal.cell, relation, value, signal), Tile(data.broadcast_shape(a.shape, b.shape), INT1))


def _conditional(condition: Condition, shape_of: Tile) -> Tile:
    out = Tile(shape_of.shape, INT1)
    out.link = condition
    return out


def _of_condition(name: str, signal: Tile, other: Tile) -> Tile:
    """(x == 1) == 0, (x == 1) & True"""
    if other.known is not None and isinstance(other.known, (bool, int)):
        truth = bool(other.known)
        if (name == "eq" and truth) or (name == "ne" and not truth) or (name == "and" and truth) or (name == "or" and not truth):
            return signal
        if name in ("eq", "ne", "xor"):
            return signal.condition.inverted(signal)
    raise refuse("conditions of signals are combined")


def reduce(name: str, value: Tile) -> Tile:
    """All signals of a tile at once: tl.min(...) >= 1"""
    if name not in ("min", "max") or value.cell.how != "all":
        raise refuse(f"'{name}' of signals")
    out = Tile((), value.dtype)
    out.link = Cell(value.cell.kind, value.cell.addresses, value.cell.nbytes, value.cell.old, value.cell.new, value.cell.order, value.cell.scope)
    out.cell.lanes, out.cell.lines, out.cell.end = value.cell.lanes, value.cell.lines, value.cell.end
    out.cell.how = name if len(value.cell.addresses) > 1 else "all"
    return out


# ---- the text of loops ----

class Loop(NamedTuple):
    leaves: bool             # the answer with which the loop ends
    problem: Optional[str]   # what it does besides waiting
    asked: ast.AST           # the part of its condition that is asked for
    looks: bool              # it waits for several signals, each of which its condition looks at


_trees: Dict[str, Optional[ast.AST]] = {}
_loops: Dict[Tuple[Any, int], Optional[Loop]] = {}  # by code and instruction


def _tree(name: str) -> Optional[ast.AST]:
    if name not in _trees:
        try:
            with open(name, encoding="utf-8") as file:
                _trees[name] = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError):
            _trees[name] = None
        if _trees[name] is not None:
            for parent in ast.walk(_trees[name]):  # type: ignore[arg-type]
                for child in ast.iter_child_nodes(parent):
                    child.parent = parent  # type: ignore[attr-defined]
    return _trees[name]


def _position(frame: Any) -> Tuple[int, int]:
    """Line and column of what the frame does; column -1: not known."""
    if hasattr(frame.f_code, "co_positions"):
        for number, (line, _, column, _) in enumerate(frame.f_code.co_positions()):
            if number == frame.f_lasti // 2 and line is not None and column is not None:
                return line, column
    return frame.f_lineno, -1


def _holds(node: ast.AST, line: int, column: int) -> bool:
    if not node.lineno <= line <= node.end_lineno:  # type: ignore[attr-defined]
        return False
    if column < 0:
        return True
    return (node.lineno, node.col_offset) <= (line, column) < (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def find_loop(frame: Any) -> Optional[Loop]:
    """The loop whose condition the frame asks for: `while CONDITION`, or `if CONDITION: break` in one without end."""
    key = (frame.f_code, frame.f_lasti)
    if key not in _loops:
        _loops[key] = _search(frame.f_code.co_filename, *_position(frame))
    return _loops[key]


def _search(name: str, line: int, column: int) -> Optional[Loop]:
    tree = _tree(name)
    best: Optional[Any] = None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.While, ast.If)) and _holds(node.test, line, column):
            best = node if best is None or node.lineno >= best.lineno else best
    if best is None:
        return None
    leaf, negated, looks = _leaf(best.test, line, column)
    if leaf is None:
        return None
    if isinstance(best, ast.While):
        leaves, body = negated, best.body
    else:
        loop = getattr(best, "parent", None)
        if not isinstance(loop, ast.While) or best not in loop.body or not isinstance(loop.test, ast.Constant) or not loop.test.value:
            return None
        if len(best.body) != 1 or not isinstance(best.body[0], ast.Break) or best.orelse:
            return None
        leaves, body = not negated, [one for one in loop.body if one is not best]
    if looks and not all(isinstance(one, (ast.Pass, ast.Continue)) for one in body):
        return None
    return Loop(leaves, _problem(body), leaf, looks)


def _leaf(test: ast.AST, line: int, column: int) -> Tuple[Optional[ast.AST], bool, bool]:
    """The part of a condition that is asked for, whether it is negated there, and whether it is one of several looks at signals that all
    have to end the loop."""
    negated, node, several = False, test, False
    while True:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            negated, node = not negated, node.operand
        elif isinstance(node, ast.BoolOp):
            inside = [value for value in node.values if _holds(value, line, column)]
            if len(inside) != 1 or isinstance(node.op, ast.And) != negated or not all(_calls(value) for value in node.values):
                return None, False, False  # another part could end the loop, too
            node, several = inside[0], True
        elif any(isinstance(part, (ast.IfExp, ast.BoolOp, ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)) or
                 (isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not)) for part in ast.walk(node)):
            return None, False, False
        else:
            return node, negated, several


def _calls(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))


def _problem(body: List[Any]) -> Optional[str]:
    """What the loop does besides looking. Its statements may set names, from what the loop does not count."""
    assigned: Set[str] = set()
    every = {target.id for statement in body if isinstance(statement, ast.Assign) for target in statement.targets
             if isinstance(target, ast.Name)}
    for statement in body:
        if isinstance(statement, (ast.Pass, ast.Continue)) or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            continue
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            continue  # what it does is seen: nothing may be written down after the look
        if not isinstance(statement, ast.Assign) or not all(isinstance(target, ast.Name) for target in statement.targets):
            return f"line {statement.lineno} is no look at a signal"
        read = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        carried = sorted((read & every) - assigned)
        if carried:
            return f"line {statement.lineno} counts '{carried[0]}'"
        assigned |= {target.id for target in statement.targets}  # type: ignore[union-attr]
    return None


# ---- threads that act apart ----

class Thread:
    """The number of a thread of a program, or what is computed from it."""
    role = "thread"

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers  # for each thread of the program

    def combine(self, name: str, a: Tile, b: Tile) -> Tile:
        left, right = ((one.thread.numbers if one.thread is not None else _plain(one)) for one in (a, b))
        dtype = INT1 if name in COMPARISONS else data.INT32
        for pointer, other in ((a, b), (b, a)):
            if pointer.dtype.is_ptr() and name in ("add", "sub"):
                dtype, size = pointer.dtype, pointer.dtype.element_ty.itemsize  # type: ignore[union-attr]
                left, right = (left, right * size) if pointer is a else (left * size, right)
        out = Tile((), dtype)
        out.link = Thread(data.np.broadcast_to(data.fold_numbers(name, left, right), (core.program().threads,)))
        return out

    def ask(self, of: Tile) -> bool:
        """Some threads go one way, some the other. Those that go in do what is inside."""
        program, frame = core.program(), core.author()
        branch = _branch(frame)
        if branch is not None and branch.is_first:
            program.leave(frame, branch.inside)
        there = self.there(program)
        chosen = {number for number in there if self.numbers[number]}
        if not chosen or len(chosen) == len(there):
            return bool(chosen)
        if branch is None:
            raise refuse("the number of a thread decides what the kernel does, in a way that cannot be recorded")
        program.enter(frame, branch.inside, chosen)
        return True

    def there(self, program: core.Program) -> Sequence[int]:
        """The threads that come here."""
        acting = program.acting()
        return range(len(self.numbers)) if acting is None else acting


class Arms:
    """`if CONDITION: A else: B` where the condition may be of threads: some do A, others B."""

    def __init__(self, condition: Any) -> None:
        self.threads = condition.thread if isinstance(condition, Tile) else None
        self.truth = None if self.threads is not None else bool(condition)

    def arm(self, first: bool) -> Any:
        return _Arm(self, first)


class _Arm:
    def __init__(self, arms: Arms, first: bool) -> None:
        self.arms, self.first, self.pushed = arms, first, False

    def __enter__(self) -> bool:
        if self.arms.threads is None:
            return self.arms.truth is self.first
        program = core.program()
        there = self.arms.threads.there(program)
        mine = {number for number in there if bool(self.arms.threads.numbers[number]) is self.first}
        if mine and len(mine) < len(there):
            program.enter(None, (0, 0), mine)
            self.pushed = True
        return bool(mine)

    def __exit__(self, *_: Any) -> None:
        if self.pushed:
            branches = core.program().branches
            while branches and branches.pop()[0] is not None:
                continue


MAX_THREADS = 64  # that do something each for itself


def spread(value: Tile) -> Tile:
    """A value that differs from thread to thread, as a tile: an element for each thread that comes there."""
    if value.thread is None:
        return value
    acting = core.program().acting()
    numbers = data.np.asarray(value.thread.numbers)[acting if acting is not None else slice(None)]
    if len(set(numbers.tolist())) == 1:
        return Tile((), value.dtype, numbers[0].item())
    if len(numbers) > MAX_THREADS:
        raise refuse(f"{len(numbers)} threads use memory each for itself: at most {MAX_THREADS} are possible")
    return Tile((len(numbers),), value.dtype, numbers)


def _plain(value: Tile) -> Any:
    if value.known is None or isinstance(value.known, (data.Affine, data.np.ndarray)):
        raise refuse("the number of a thread is computed with a tile")
    return value.known


class Branch(NamedTuple):
    inside: Tuple[int, int]  # the lines of an `if`
    is_first: bool           # is the part of its condition that is asked for the first one?


def _branch(frame: Any) -> Optional[Branch]:
    """The `if` whose condition the frame asks for, if it has no other branch and all parts of the condition have to be true."""
    line, column = _position(frame)
    best: Optional[Any] = None
    tree = _tree(frame.f_code.co_filename)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.If) and _holds(node.test, line, column):
            best = node if best is None or node.lineno >= best.lineno else best
    if best is None or best.orelse or isinstance(best.test, ast.BoolOp) and isinstance(best.test.op, ast.Or):
        return None
    first = best.test.values[0] if isinstance(best.test, ast.BoolOp) else best.test
    return Branch((best.lineno, best.body[-1].end_lineno or best.body[-1].lineno), _holds(first, line, column))


def with_arms(fn: Any) -> Any:
    """The code of a kernel in which each `if ... else` is a pair of arms; None: it has none that could be of threads."""
    tree = _tree(fn.__code__.co_filename)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == fn.__name__ and
             node.lineno <= fn.__code__.co_firstlineno + len(node.decorator_list) and fn.__code__.co_firstlineno <= node.lineno] if tree else []
    if not found:
        return None
    words = {word.lower() for node in ast.walk(found[0]) for word in (getattr(node, "id", ""), getattr(node, "attr", ""))}
    threads = any(part in word for word in words for part in ("tid", "thread", "lane", "warp")) and any(
        isinstance(node, ast.If) and node.orelse for node in ast.walk(found[0]))
    last = {id(node) for node in ast.walk(found[0]) if any("atomic" in word for word in words) and _can_be_last(node, found[0])}
    if not threads and not last:
        return None
    memo: Dict[int, Any] = {}
    function = copy.deepcopy(found[0], memo)
    function.decorator_list = []
    _ArmsOf(threads, {id(memo[node]) for node in last}).visit(function)
    outer: List[Any] = [function]
    if fn.__code__.co_freevars:  # a function around it that has the names which it takes from outside
        names = ast.parse("def outer():\n" + "".join(f"    {name} = None\n" for name in fn.__code__.co_freevars))
        names.body[0].body.append(function)  # type: ignore[attr-defined]
        outer = names.body
    code = compile(ast.fix_missing_locations(ast.Module(outer, [])), fn.__code__.co_filename, "exec")
    while code.co_name != fn.__name__:
        code = next(part for part in code.co_consts if isinstance(part, type(code)) and part.co_name in ("outer", fn.__name__))
    return code


def _can_be_last(node: ast.AST, function: ast.AST) -> bool:
    """`if X == Y:` whose body sets no name that is used elsewhere, and does not leave."""
    if not isinstance(node, ast.If) or node.orelse or not isinstance(node.test, ast.Compare) or not isinstance(node.test.ops[0], ast.Eq) or (
            not isinstance(node.test.left, (ast.Name, ast.Call))):
        return False
    inside = [part for statement in node.body for part in ast.walk(statement)]
    if any(isinstance(part, (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.AugAssign, ast.Global, ast.Nonlocal)) for part in inside):
        return False
    those = {id(part) for part in inside}
    stored = {part.id for part in inside if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return not any(isinstance(part, ast.Name) and part.id in stored and id(part) not in those for part in ast.walk(function))


class Numbered:
    """`if ANSWER == NUMBER: A` where the answer may be that of an atomic which counts: who arrives as that number does A (last.py)."""

    def __init__(self, asked: Any) -> None:
        self.asked, self.arrival = asked, None

    def __enter__(self) -> Any:
        condition = self.asked.condition if isinstance(self.asked, Tile) else None
        cell = condition.cell if condition is not None else None
        if cell is None or condition.relation != "eq" or cell.kind != "add" or cell.new != 1 or len(cell.addresses) != 1 or core.rank().waiting:
            return self.asked
        # Who does not come last learns nothing of the others: that an atomic acquires matters to the one that does.
        lines, at = core.rank().writer.lines, cell.lines[0]
        lines[at] = lines[at].replace(" acq_rel ", " release ").replace(" acquire ", " relaxed ")
        self.arrival = last.Arrival(core.rank(), int(cell.addresses[0]), cell.nbytes, condition.value, cell.order, cell.scope)
        return True

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self.arrival is not None:
            self.arrival.leave(kind is None)


class _ArmsOf(ast.NodeTransformer):
    number = 0

    def __init__(self, threads: bool, last_ones: Set[int]) -> None:
        self.threads, self.last_ones = threads, last_ones

    def visit_If(self, node: ast.If) -> Any:  # pylint: disable=invalid-name
        self.generic_visit(node)
        if id(node) in self.last_ones:
            on = ast.Name("__on", ast.Load())
            made = ast.With([ast.withitem(ast.Call(ast.Name("__peal_numbered", ast.Load()), [node.test], []), ast.Name("__on", ast.Store()))],
                            [ast.If(on, node.body, [])])
            return _placed([made], node.test)[0]
        if not node.orelse or not self.threads:
            return node
        self.number += 1
        name = f"__arms{self.number}"
        out: List[Any] = [ast.Assign([ast.Name(name, ast.Store())], ast.Call(ast.Name("__peal_arms", ast.Load()), [node.test], []))]
        for first, body in (True, node.body), (False, node.orelse):
            call = ast.Call(ast.Attribute(ast.Name(name, ast.Load()), "arm", ast.Load()), [ast.Constant(first)], [])
            on = ast.Name("__on", ast.Load())
            out.append(ast.With([ast.withitem(call, ast.Name("__on", ast.Store()))], [ast.If(on, body, [])]))
        return _placed(out, node.test)


def _placed(made: List[Any], where: ast.AST) -> List[Any]:
    """What has no place in the text gets that of another node."""
    for one in made:
        for part in ast.walk(one):
            if isinstance(part, (ast.expr, ast.stmt)) and not hasattr(part, "lineno"):
                ast.copy_location(part, where)
    return made


__all__ = ["Cell", "Condition", "Thread", "atomic", "compare", "find_loop", "load_flag", "reduce", "set_flag", "take", "wait_for"]
