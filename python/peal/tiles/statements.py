# SPDX-License-Identifier: Apache-2.0
"""What a program's calls are, if it does not say so: the statements that launch its kernels, in the file or in a function of it.

The program is compiled with marks. In a first run, in which kernels do nothing, they say by which statements kernels are launched and
symmetric memory is made: a statement's *path* has the statement of the file, then that of each function on the way to it. In the second run
the statements that launch are in a loop.

    main()              in the file: makes memory, so it is not repeated
      x = empty()       in main
      reduce(x, y)      in main: launches, makes no memory: this is repeated
        kernel[grid]    in reduce
"""
from __future__ import annotations

import ast
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

Path = Tuple[Tuple[int, int], ...]       # of each function, the line where it begins (0: the file), and the number of its statement
Loop = Tuple[int, int, int]              # of the host: line, which time it is entered, which iteration
Launch = Tuple[Path, str, Tuple[Loop, ...]]  # of the kernel of that name
NAMES = ("__peal_loop__", "__peal_statement__", "__peal_calls__")
KERNEL_MARKS = ("jit", "autotune", "heuristics")


class Repeated(NamedTuple):
    """What is a call of a program that does not say so."""
    function: int = 0  # the line where it begins; 0: the file
    first: int = 0     # its statements, which are repeated
    end: int = 0
    loop: Optional[Tuple[int, int]] = None   # or each iteration of a loop: its line, and which time it is entered


def parse(path: str) -> ast.Module:
    """The file as the main program: what is only for that stands at the level of the file."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    body: List[ast.stmt] = []
    for node in tree.body:
        is_main = isinstance(node, ast.If) and not node.orelse and "__name__" in {
            part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
        body += node.body if is_main else [node]  # type: ignore[attr-defined]
    tree.body = body
    return tree


def marked(path: str, repeated: Repeated, are_marked: bool) -> Any:
    """The code of the program. Loops are always marked."""
    tree = parse(path)
    marks = _Marks(repeated, are_marked)
    tree.body = marks.statements(0, [marks.visit(node) for node in tree.body])
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def choose(path: str, launches: Sequence[Sequence[Launch]], memory: Sequence[Path]) -> Repeated:
    """The statements that launch kernels: the outermost ones that make no symmetric memory. If a rank launches a kernel twice, the loop
    that does it. `launches`: of each rank."""
    if any(len({name for _, name, _ in each}) < len(each) for each in launches):
        loops = {_launching_loop(each) for each in launches}
        return Repeated(loop=loops.pop() if len(loops) == 1 else None)
    bodies = _bodies(parse(path))
    paths = [launch[0] for each in launches for launch in each]
    for depth in range(min(map(len, paths), default=0)):
        above, function = paths[0][:depth], paths[0][depth][0]
        if any(each[:depth] != above or each[depth][0] != function for each in paths):
            break
        first, end = min(each[depth][1] for each in paths), max(each[depth][1] for each in paths) + 1
        makes = any(each[:depth] == above and len(each) > depth and first <= each[depth][1] < end for each in memory)
        if not makes and _can_repeat(bodies[function][first:end]):
            return Repeated(function, first, end)
    return Repeated()


def _launching_loop(launches: Sequence[Launch]) -> Optional[Tuple[int, int]]:
    """The outermost loop that launches kernels in several iterations; None: there is none, or there are several."""
    found: Set[Tuple[int, int]] = set()
    for _, _, loops in launches:
        for depth, (line, times, _) in enumerate(loops):
            inside = {other[depth][2] for _, _, other in launches if len(other) > depth and other[depth][:2] == (line, times)}
            if len(inside) > 1:
                found.add((line, times))
                break
    return found.pop() if len(found) == 1 else None


def _bodies(tree: ast.Module) -> Dict[int, List[ast.stmt]]:
    bodies = {0: tree.body}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            bodies[node.lineno] = node.body
    return bodies


def _can_repeat(body: Sequence[ast.stmt]) -> bool:
    """No loops, which may be calls of their own, and nothing that leaves the function but at the end."""
    if any(isinstance(node, (ast.For, ast.While, ast.FunctionDef, ast.ClassDef)) for node in body):
        return False
    inner = [part for node in body for part in ast.walk(node) if isinstance(part, (ast.Return, ast.Yield, ast.YieldFrom, ast.Await))]
    return not inner or (len(inner) == 1 and inner[0] is body[-1])


def _is_kernel(node: ast.FunctionDef) -> bool:
    """By its decorators: the text of kernels stays as it is."""
    names = {getattr(part, "id", "") or getattr(part, "attr", "") for mark in node.decorator_list for part in ast.walk(mark)}
    return any(name in KERNEL_MARKS for name in names)


class _Marks(ast.NodeTransformer):
    """`for x in y` becomes `for x in __peal_loop__(y, line)`, and a statement that calls something stands in
    `for _ in __peal_statement__(function, number):`."""

    def __init__(self, repeated: Repeated, are_marked: bool) -> None:
        self.repeated, self.are_marked = repeated, are_marked

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        node.iter = _call(NAMES[0], node, [node.iter, ast.Constant(node.lineno)])
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if not _is_kernel(node):
            self.generic_visit(node)
            node.body = self.statements(node.lineno, node.body)
        return node

    def statements(self, function: int, body: List[ast.stmt]) -> List[ast.stmt]:
        if not self.are_marked:
            return body
        out = [_within(NAMES[1], node, [ast.Constant(function), ast.Constant(number)], [node]) if _may_launch(node) else node
               for number, node in enumerate(body)]
        here = self.repeated
        if not here.end or here.function != function:
            return out
        turn, after = out[here.first:here.end], []
        last = body[here.end - 1]
        if isinstance(last, ast.Return):  # is left after the last call
            value = ast.copy_location(ast.Assign([ast.Name("__peal_value__", ast.Store())], last.value or ast.Constant(None)), last)
            turn[-1] = _within(NAMES[1], last, [ast.Constant(function), ast.Constant(here.end - 1)], [value])
            after = [ast.copy_location(ast.Return(ast.Name("__peal_value__", ast.Load())), last)]
        return out[:here.first] + [_within(NAMES[2], body[here.first], [], turn)] + after + out[here.end:]


def _may_launch(node: ast.stmt) -> bool:
    plain = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)
    return not isinstance(node, plain) and any(isinstance(part, ast.Call) for part in ast.walk(node))


def _call(name: str, at: ast.stmt, arguments: List[ast.expr]) -> ast.expr:
    return ast.fix_missing_locations(ast.copy_location(ast.Call(ast.Name(name, ast.Load()), arguments, []), at))


def _within(name: str, at: ast.stmt, arguments: List[ast.expr], body: List[ast.stmt]) -> ast.stmt:
    loop = ast.For(ast.Name("__peal_turn__", ast.Store()), _call(name, at, arguments), body, [])
    return ast.copy_location(loop, at)
