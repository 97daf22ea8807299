# SPDX-License-Identifier: Apache-2.0
"""Proofs: a kernel over all schedules, the counterexample as objects."""
from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Union

from . import command
from ._library import REDUCTIONS, PealError, dtype_number, function, reduction_number, text


class _Value(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("values", POINTER(c_int64)), ("count", c_size_t)]


class _Args(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("text", c_char_p), ("file", c_char_p), ("library", c_char_p), ("kernel", c_char_p),
                ("ranks", POINTER(c_uint32)), ("nranks", c_size_t), ("counts", POINTER(c_uint64)), ("ncounts", c_size_t),
                ("values", POINTER(_Value)), ("nvalues", c_size_t), ("dtype", c_int), ("op", c_int), ("root", c_uint32),
                ("in_place", c_int), ("depth", c_uint32), ("slot_bytes", c_uint64), ("launches", c_uint32), ("alone", c_int),
                ("max_states", c_uint64), ("max_bytes", c_uint64), ("threads", c_uint32), ("advice", c_int), ("cache", c_char_p),
                ("nodes", POINTER(c_uint32)), ("nnodes", c_size_t), ("pairwise", c_int), ("reduction", c_char_p)]


class _Place(ctypes.Structure):
    _fields_ = [("file", c_char_p), ("line", c_uint32), ("col", c_uint32), ("len", c_uint32)]


class _Step(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("launch", c_uint32), ("rank", c_uint32), ("lane", c_uint32), ("op", c_uint32),
                ("kind", c_char_p), ("text", c_char_p), ("place", _Place), ("signal", c_char_p), ("index", c_uint32),
                ("cell_rank", c_uint32), ("before", c_int64), ("after", c_int64), ("value", c_int64), ("waits_for", c_uint32),
                ("collides", c_int), ("blocked", c_int), ("operands", c_void_p), ("noperands", c_size_t)]


class _Access(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("step", c_uint32), ("writes", c_int), ("buffer", c_char_p), ("rank", c_uint32),
                ("first_byte", c_uint64), ("bytes", c_uint64), ("first_element", c_uint64), ("elements", c_uint64)]


class _Counterexample(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("fault", c_int), ("why", c_char_p), ("nranks", c_uint32), ("launches", c_uint32),
                ("count", c_uint64), ("sequence", c_char_p), ("steps", POINTER(POINTER(_Step))), ("nsteps", c_size_t),
                ("accesses", POINTER(POINTER(_Access))), ("naccesses", c_size_t), ("waits", c_void_p), ("nwaits", c_size_t),
                ("wrong", c_void_p)]


class _Verdict(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("outcome", c_int), ("why", c_char_p), ("text", c_char_p),
                ("counterexample", POINTER(_Counterexample)), ("errors", c_void_p), ("nerrors", c_size_t), ("kernel", c_char_p),
                ("proved", c_uint64), ("refuted", c_uint64), ("undecided", c_uint64), ("no_plan", c_uint64),
                ("sequences", c_uint64), ("all_sequences", c_uint64), ("two_only", c_int), ("max_launches", c_uint32),
                ("reuse", c_int), ("bits", c_int), ("least_depth", c_uint32), ("ops", c_uint64), ("milliseconds", c_double),
                ("operations", c_uint32)]


_verify = function("peal_verify", [POINTER(_Args), POINTER(POINTER(_Verdict))])
_free = function("peal_verdict_free", [POINTER(_Verdict)], None)
_outcome = function("peal_outcome_name", [c_int], c_char_p)
_fault = function("peal_fault_name", [c_int], c_char_p)
_reuse = function("peal_reuse_name", [c_int], c_char_p)


def _str(value: Optional[bytes]) -> str:
    return (value or b"").decode(errors="replace")


@dataclass
class Step:
    """One step of a counterexample; steps are in an order in which they can happen."""
    launch: int
    rank: int
    lane: int
    kind: str
    text: str
    file: str
    line: int
    col: int
    collides: bool
    blocked: bool


@dataclass
class Access:
    """One of the accesses that collide: bytes of rank `rank`'s copy of a buffer."""
    step: int
    writes: bool
    buffer: str
    rank: int
    first_byte: int
    bytes: int


@dataclass
class Counterexample:
    fault: str
    why: str
    ranks: int
    launches: int
    steps: List[Step] = field(default_factory=list)
    accesses: List[Access] = field(default_factory=list)


@dataclass
class Verdict:
    """outcome is "proved", "refuted" or "not decided"; text explains it."""
    outcome: str
    why: str
    text: str
    kernel: str
    reuse: str
    plans: int
    milliseconds: float
    counterexample: Optional[Counterexample] = None
    bits: str = "unknown"  # of ranks with the same result: "same", "different"
    least_depth: int = 0  # the fewest slots per channel that are enough; 0: it has no channels
    all_ranks: Optional[Dict[str, Any]] = None  # ranks="all": class, cutoff, why, line, instead, ...
    operations: Sequence[str] = ()  # of a kernel that takes one from its caller: those for which it is proved

    def __bool__(self) -> bool:
        return self.outcome == "proved"


def _read(c: _Counterexample) -> Counterexample:
    result = Counterexample(_str(_fault(c.fault)), _str(c.why), c.nranks, c.launches)
    for i in range(c.nsteps):
        s = c.steps[i].contents
        result.steps.append(Step(s.launch, s.rank, s.lane, _str(s.kind), _str(s.text), _str(s.place.file), s.place.line,
                                 s.place.col, bool(s.collides), bool(s.blocked)))
    for i in range(c.naccesses):
        a = c.accesses[i].contents
        result.accesses.append(Access(a.step, bool(a.writes), _str(a.buffer), a.rank, a.first_byte, a.bytes))
    return result


_BITS = ("unknown", "same", "different")
_SHOWN_BITS = {"same": "same", "differ": "different", "different": "different"}


def _verify_all(kernel: str, name: Optional[str], counts: Any, values: Optional[Dict[str, int]], **options: Any) -> Verdict:
    if counts is not None or values:
        raise ValueError("a proof for all ranks is for all counts: leave counts and values out")
    found = command.verify_all(kernel, name, **options)
    every = found["all_ranks"]
    answers = [entry["answer"] for entry in found["answers"]]
    last = answers[-1] if answers else {}
    outcome = {"proved": "proved", "refuted": "refuted"}.get(found["verdict"], "not decided")
    why = every.get("why") or next((a["why"] for a in answers if a["why"]), None) or ""
    return Verdict(outcome, why, f"{found['kernel']}: {every['verdict']}", found["kernel"], last.get("reuse") or "none", len(answers),
                   sum(a["milliseconds"] for a in answers), None, _SHOWN_BITS.get(last.get("bits") or "", "unknown"),
                   max((a["least_depth"] for a in answers), default=0), every, tuple(found["operations"]))


def verify(kernel: Any, ranks: Union[int, str, Sequence[int], None] = None, counts: Union[int, Sequence[int], None] = None,
           dtype: str = "f32", op: str = "sum", values: Optional[Dict[str, int]] = None, name: Optional[str] = None,
           advice: bool = False, depth: int = 0, launches: int = 0, in_place: bool = False, root: int = 0, pairwise: bool = False,
           nodes: Optional[Sequence[int]] = None) -> Verdict:
    """Proves a kernel (Peal text, a traced function, or a library kernel's name) over all schedules, or refutes it.

        verdict = peal.verify(text, ranks=range(2, 9))
        if not verdict: print(verdict.counterexample.why)

    ranks="all" asks for every number of ranks, which the command `peal` decides; the verdict's all_ranks says how.
    ranks, counts: one or several; None: 2 to 5 and 8 ranks, and for P of them 0, 1, P - 1, P, P + 1, 3P + 2 and 256P elements.
    op: an operation's name (a kernel that is proved for sum is also tried with max, and avg if it divides), or a user-defined reduction: "reduce mine(a, b) = a / 2 + b", or the name of one that the text declares.
    """
    if _verify is None:
        raise PealError(7, "this libpeal has no peal_verify")
    kernel = str(kernel)
    if ranks == "all":
        return _verify_all(kernel, name, counts, values, dtype=dtype, op=None if op == "sum" else op, depth=depth or None, advice=advice,
                           launches=launches or None, in_place=in_place)
    if isinstance(ranks, str):
        raise ValueError("ranks is a number, several, or \"all\"")
    numbers = [ranks] if isinstance(ranks, int) else list(ranks or ())
    sizes = [counts] if isinstance(counts, int) else list(counts or ())
    rank_array = (c_uint32 * max(len(numbers), 1))(*numbers)
    count_array = (c_uint64 * max(len(sizes), 1))(*sizes)
    single = [(c_int64 * 1)(v) for v in (values or {}).values()]
    given = [_Value(text(key), cells, 1) for key, cells in zip(values or {}, single)]
    value_array = (_Value * max(len(given), 1))(*given)
    args = _Args(struct_size=ctypes.sizeof(_Args), ranks=rank_array, nranks=len(numbers), counts=count_array, ncounts=len(sizes),
                 values=value_array, nvalues=len(given), dtype=dtype_number(dtype), advice=int(advice),
                 depth=depth, launches=launches, in_place=int(in_place), root=root, pairwise=int(pairwise))
    if nodes is not None:
        node_array = (c_uint32 * max(len(nodes), 1))(*nodes)
        args.nodes, args.nnodes = node_array, len(nodes)
    if op in REDUCTIONS:
        args.op = reduction_number(op)
    else:
        args.reduction = text(op)
    if "{" in kernel:
        args.text, args.kernel = text(kernel), text(name)
    else:
        args.library = text(kernel)
    out = POINTER(_Verdict)()
    status = _verify(ctypes.byref(args), ctypes.byref(out))
    if not out:
        raise PealError(status, "the kernel cannot be verified")
    try:
        v = out.contents
        if status:
            raise PealError(status, _str(v.text) or _str(v.why))
        found = _read(v.counterexample.contents) if v.counterexample else None
        return Verdict(_str(_outcome(v.outcome)), _str(v.why), _str(v.text), _str(v.kernel), _str(_reuse(v.reuse)),
                       v.proved + v.refuted + v.undecided, v.milliseconds, found, _BITS[v.bits], v.least_depth, None,
                       tuple(op for op in REDUCTIONS if v.operations >> reduction_number(op) & 1))
    finally:
        _free(out)
