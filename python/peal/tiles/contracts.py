# SPDX-License-Identifier: Apache-2.0
"""--implements: which tensors of a program a contract from outside is about.

`allreduce:x,y` names them, `allreduce:x` one that is changed in place. `allreduce` alone is clear if kernels read one tensor that none of them
writes, and write one that none of them reads; or if there is but one tensor.
"""
from __future__ import annotations

import re
from typing import Dict, Iterable, List, Optional, Set, Tuple

from ..record import CONTRACT_NAMES
from . import core
from .core import Rank, Recording, Refused, Region

ADDRESS = re.compile(r"@(0x[0-9a-f]+)")


def roles(recording: Recording) -> Tuple[List[str], List[str], List[str]]:
    """Names of the tensors that kernels only read, only write, and use both ways: those that hold data, not signals or tables."""
    reads: Set[str] = set()
    writes: Set[str] = set()
    for rank in recording.rank:
        seen: Dict[str, Optional[Region]] = {}
        for line in rank.writer.lines:
            words = line.split() if isinstance(line, str) else [""]
            if words[0] not in ("copy", "compute", "accumulate", "read", "write"):
                continue
            for name, is_written in _accesses(rank, words, seen):
                (writes if is_written else reads).add(name)
                if words[0] == "accumulate" and is_written:
                    reads.add(name)
    signals = {region.name for rank in recording.rank for region in rank.regions if any(
        region.address <= address < region.address + region.nbytes for address, _ in recording.cells)}
    return sorted(reads - writes - signals), sorted(writes - reads - signals), sorted(reads & writes - signals)


def _accesses(rank: Rank, words: List[str], seen: Dict[str, Optional[Region]]) -> Iterable[Tuple[str, bool]]:
    """The tensors of an op, and whether it writes them."""
    if words[0] == "compute":
        end = words.index("<")
        written, read = words[2:end], words[end + 1:]
    elif words[0] == "accumulate":
        written, read = words[2:3], words[3:]
    else:
        written, read = ([], words[1:2]) if words[0] == "read" else (words[1:2], words[2:])
    if words[0] == "copy" and written == read:
        return  # the host gave it new numbers
    for spans, is_written in (written, True), (read, False):
        for span in spans:
            address = ADDRESS.search(span)
            if address is None:
                continue
            if address.group(1) not in seen:
                seen[address.group(1)] = rank.find(int(address.group(1), 16))
            region = seen[address.group(1)]
            if region is not None and region.address < core.TILES:
                yield region.name, is_written


def choose(recording: Recording, wanted: str) -> Tuple[str, str, str]:
    """The contract, and the names of the input and the output."""
    name, _, tensors = wanted.partition(":")
    names = [one.strip() for one in tensors.split(",")] if tensors else []
    inputs, outputs, both = roles(recording)
    used = ", ".join(sorted(inputs + outputs + both))
    if len(names) > 2:
        raise Refused(f"--implements {wanted}: {name}:INPUT,OUTPUT is wanted, of {used}")
    for one in names:
        if one not in inputs + outputs + both:
            raise Refused(f"--implements {wanted}: the kernels use no tensor '{one}'; they use {used}")
    name = CONTRACT_NAMES.get(name, name)
    if names:
        return name, names[0], names[-1]
    if len(inputs) == 1 and len(outputs) == 1:
        return name, inputs[0], outputs[0]
    if not inputs and not outputs and len(both) == 1:
        return name, both[0], both[0]
    said = "; ".join(f"kernels {how} {', '.join(some)}" for how, some in (("only read", inputs), ("only write", outputs), ("read and write", both))
                     if some)
    raise Refused(f"--implements {name}: of which tensors? {said}. '--implements {name}:INPUT,OUTPUT' names them")
