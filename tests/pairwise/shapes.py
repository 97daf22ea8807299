#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The two-level kernels: proved under the order of a network, and refuted if any piece of their synchronisation is left out.

    shapes.py PEAL TEXT quick|full [KERNEL]    prints TAP; TEXT is kernels/nodes.peal; KERNEL: only that one

Shapes: 2 to 4 nodes of 1 to 8 seats, even and uneven, also with the ranks of nodes interleaved. Counts: 0, fewer than ranks, around
a multiple, and more. Kernels that cut a launch into pieces or shards are proved with several and with one. A mutant is the text with
one wait that passes at once, or without one notify or send; it must be refuted on some shape. A kernel that only calls another has
no mutants.
"""
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(FOLDER, "..", name) for name in ("generators", "lib")]
sys.dont_write_bytecode = True
from mutants import without_notifies, without_sends, without_waits  # noqa: E402
from tap import Tap  # noqa: E402

PEAL, TEXT, EXTENT = sys.argv[1:4]
MUTANT_SHAPES = ["2x2", "3x2", "2+3", "3+1+2"]


def shapes():
    if EXTENT == "quick":
        return ["4", "2x1", "2x2", "3+1", "1+4+2", "0,1,1,0,2", "2x8"]
    even = [f"{nodes}x{seats}" for nodes in (2, 3, 4) for seats in range(1, 9)]
    two = [f"{a}+{b}" for a, b in itertools.product((1, 2, 3, 5, 8), repeat=2) if a != b]
    more = ["1+2+3", "3+2+1", "5+1+4", "8+1+1", "1+1+8", "2+3+4+1", "1+4+1+8", "7+8+6+5", "0,1,0,1", "0,1,2,0,1,2",
            "0,1,1,1,0,2,2", "0,0,1,2,1,0,3,3"]
    return even + two + more


def counts(shape):
    ranks = ranks_of(shape)
    if EXTENT == "quick":
        return f"0,{ranks + 1}"
    return f"0,1,{ranks - 1},{ranks},{ranks + 1},{3 * ranks + 2},64"


def ranks_of(shape):
    if "x" in shape:
        nodes, seats = shape.split("x")
        return int(nodes) * int(seats)
    return shape.count(",") + 1 if "," in shape else sum(map(int, shape.split("+")))


def verify(path, kernel, shape, given, settings=()):
    command = [PEAL, "verify", path, "-k", kernel, "--nodes", shape, "-c", given, "--order", "pairwise", "--no-cache", "--json"]
    command += [word for setting in settings for word in ("-s", setting)]
    # With many ranks, sequences of all pairs of roots and counts take minutes: --alone leaves them out.
    command += ["--alone"] if ranks_of(shape) > 8 else []
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return ran.returncode, ran.stdout


def settings_of(text, kernel):
    """The default, and other values of `pieces` or `shards`."""
    line = text[text.index(f"kernel {kernel}("):].split("\n", 1)[0]
    return [()] + [(f"{name}={value}",) for name, value in (("pieces", 3), ("shards", 1)) if f"{name}: int" in line]


def prove(text, kernel):
    for shape, settings in itertools.product(shapes(), settings_of(text, kernel)):
        code, out = verify(TEXT, kernel, shape, counts(shape), settings)
        if code != 0:
            return f"{kernel} on {shape} {' '.join(settings)} ends with {code}\n{out}"
        reuses = {answer["answer"]["reuse"] for answer in json.loads(out)["answers"]
                  if "answer" in answer and answer["sequence"] is None}
        if not reuses <= {"repeatable", "closed"} and ranks_of(shape) > 1:
            return f"{kernel} on {shape} cannot be launched again\n{out}"
    return None


def mutants(text, kernel):
    """(what is left out, the text without it) for each wait, notify and send of the kernel."""
    text = re.sub(r"//[^\n]*", "", text)
    start = text.index(f"kernel {kernel}(")
    end = text.find("\nkernel ", start)
    body = text[start:end if end > 0 else len(text)]
    for wait, changed in itertools.chain(without_waits(body), without_notifies(body), without_sends(body)):
        yield wait, text[:start] + changed + text[start + len(body):]


def calls_only(text, kernel):
    start = text.index(f"kernel {kernel}(")
    return re.fullmatch(r"[^\n]*\{\n +\w+_nodes\([^\n]*\)\n", text[start:text.index("}\n", start)]) is not None


def refute(text, kernel, folder):
    number, survivors = 0, []
    for wait, mutant in mutants(text, kernel):
        number += 1
        path = f"{folder}/mutant.peal"
        with open(path, "w", encoding="utf-8") as file:
            file.write(mutant)
        if not any(verify(path, kernel, shape, "0,7,12")[0] == 1 for shape in MUTANT_SHAPES):
            survivors.append(wait)
    return number, survivors


def main():
    with open(TEXT, encoding="utf-8") as file:
        text = file.read()
    kernels = [name for name in re.findall(r"^kernel (\w+)", text, re.M) if len(sys.argv) < 5 or sys.argv[4] == name]
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        for kernel in kernels:
            why = prove(text, kernel)
            tap.check(f"{kernel} is proved on {len(shapes())} shapes", not why, why)
            waits, survivors = refute(text, kernel, folder)
            good = not survivors and (waits or calls_only(text, kernel))
            tap.check(f"{kernel} is refuted without any of its {waits} waits and notifies", good,
                      *[f"it is proved without '{wait}'" for wait in survivors])
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
