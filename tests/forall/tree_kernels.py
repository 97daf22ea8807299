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


def mutate(rng, text):
    """One word changed, a line left out, or two lines swapped."""
    lines = re.sub(r"[ \t]*//[^\n]*", "", text).split("\n")
    whole = [i for i, line in enumerate(lines[1:-2], 1) if line.strip() and line.count("{") == line.count("}") and
             not re.match(r"\s*(window|signal|private)\b", line)]
    i, kind = rng.choice(whole), rng.random()
    if kind < 0.25:
        lines[i] = ""
    elif kind < 0.5:
        lines[i], lines[i + 1] = lines[i + 1], lines[i]
    else:
        swaps = [(r">= 1", ">= 0"), (r"\+= 1", "+= 2"), (r"slot@\w+", "slot"), (r"= slot\b", "= x"), (r"\bready\b", "taken"), (r"\btaken\b", "ready"),
                 (r"1 << k", "2 << k"), (r" \+ 1\b", ""), (r"slot = x", "slot = y"), (r"@parent_rank", "@root"), (r"y = slot", "slot = x")]
        fitting = [(a, b) for a, b in swaps if re.search(a, lines[i])]
        if fitting:
            pattern, to = rng.choice(fitting)
            lines[i] = re.sub(pattern, to, lines[i], count=1)
    return "\n".join(lines)
