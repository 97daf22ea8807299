# SPDX-License-Identifier: Apache-2.0
"""Binomial trees to attack with: right for few ranks, or for no tree at all."""
import re

HEAD = """
    window a: T[n]
    window b: T[n]
    window c: T[n]
    signal ready[nranks], taken[nranks]
    let v = (rank - root) % nranks
    let bits = log2(2 * v + 1)
"""
PARENT = "        let up = (rank - (1 << bits) / 2) % nranks\n        wait ready[up] >= 1\n"
CHILDREN = """    for k in bits .. log2(nranks) + 1 {
        if v + (1 << k) < nranks { notify ready[rank]@((rank + (1 << k)) % nranks) += 1 }
    }
"""
WAIT = """    for k in bits .. log2(nranks) + 1 {
        if v + (1 << k) < nranks { wait taken[(rank + (1 << k)) % nranks] >= 1 }
    }
"""
UP = "        notify taken[rank]@up += 1\n"
GOOD = HEAD + "    if v == 0 { a = x } else {\n" + PARENT + "        a = a@up\n" + UP + "    }\n" + CHILDREN + "    y = a\n" + WAIT

STRANGE = {
    "a value that is lost in the third generation": HEAD + "    if v == 0 {\n        a = x\n        b = x\n        c = x\n    } else {\n" + PARENT +
    "        a = b@up\n        b = c@up\n        c = x\n" + UP + "    }\n" + CHILDREN + "    y = a\n" + WAIT,
    "children that many ranks do not serve": re.sub(r"log2\(nranks\) \+ 1", "min(log2(nranks) + 1, 3)", GOOD),
    "children of another tree": GOOD.replace("in bits ..", "in bits + 1 ..", 1),
    "a wait for children before the notifies": HEAD + "    if v == 0 { a = x } else {\n" + PARENT + "        a = a@up\n    }\n" + WAIT + CHILDREN +
    "    if v != 0 {\n        let parent_rank = (rank - (1 << bits) / 2) % nranks\n        notify taken[rank]@parent_rank += 1\n    }\n    y = a\n",
    "a parent that is too near": GOOD.replace("(1 << bits) / 2", "(1 << bits) / 4"),
    "a rank of its own": GOOD.replace("y = a\n", "if rank != 9 { y = a }\n"),
    "no wait for the children": GOOD.replace(WAIT, ""),
}


def text_of(body):
    return f"kernel a(in x: T[n], out y: T[n], root: int) implements broadcast {{{body}}}\n"
