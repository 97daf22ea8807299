# SPDX-License-Identifier: Apache-2.0
"""Binomial trees for attacks: right for few ranks only, or no binomial trees."""
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


# ---- sums along a tree ----

SUM_HEAD = """
    window wide slot: T[n]
    signal ready[nranks], taken[nranks]
    let v = (rank - root) % nranks
    let acc = x
    var above = 1
"""
SUM_CHILDREN = """    for k in 0 .. log2(nranks) + 1 {
        if v % (2 << k) == 0 {
            if v + (1 << k) < nranks {
                let child_rank = (rank + (1 << k)) % nranks
                wait ready[child_rank] >= 1
                acc = op(acc, slot@child_rank)
                notify taken[rank]@child_rank += 1
            }
            above = 2 << k
        }
    }
"""
SUM_END = """    if v == 0 {
        y = final(op, acc)
    } else {
        let parent_rank = (rank - above) % nranks
        slot = acc
        notify ready[rank]@parent_rank += 1
        wait taken[parent_rank] >= 1
    }
"""
SUM = SUM_HEAD + SUM_CHILDREN + SUM_END

SUMS = {
    "children that many ranks do not add": SUM.replace("log2(nranks) + 1 {", "min(log2(nranks) + 1, 4) {"),
    "children that are added twice from 16 ranks on": SUM.replace("acc = op(acc, slot@child_rank)", "acc = op(acc, slot@child_rank)\n"
                                                                  "                if k == 3 { acc = op(acc, slot@child_rank) }"),
    "a parent that the loop does not name": SUM.replace("above = 2 << k", "above = min(2 << k, 8)"),
    "a parent of another tree": SUM.replace("(rank - above)", "(rank - 1)"),
    "a sum that is handed over too early": SUM_HEAD + "    slot = acc\n" + SUM_CHILDREN + SUM_END.replace("        slot = acc\n", ""),
    "a wait for the launch before": SUM.replace("wait taken[parent_rank] >= 1", "wait taken[parent_rank] >= 1 at launch - 1"),
    "a child's answer before it is read": SUM.replace("                acc = op(acc, slot@child_rank)\n                notify taken[rank]@child_rank += 1\n",
                                                      "                notify taken[rank]@child_rank += 1\n                acc = op(acc, slot@child_rank)\n"),
    "a child that is not added": SUM.replace("                acc = op(acc, slot@child_rank)\n", "                if k != 4 { acc = op(acc, slot@child_rank) }\n"),
    "the child's own vector": SUM.replace("slot = acc", "slot = x"),
    "a sum that is changed after the loop": SUM_HEAD + SUM_CHILDREN + "    if nranks > 16 { acc = op(acc, x) }\n" + SUM_END,
    "a step of two": SUM.replace("log2(nranks) + 1 {", "log2(nranks) + 1 step 2 {"),
    "a count of its own": SUM.replace("v + (1 << k) < nranks", "v + (1 << k) < nranks and (nranks < 17 or k > 0)"),
}
# Right for up to K ranks.
SUM_LIMITS = {
    "a tree of K ranks": SUM.replace("v + (1 << k) < nranks", "v + (1 << k) < min(nranks, K)"),
    "a parent beyond K": SUM.replace("(rank - above)", "(rank - select(v < K, above, 0))"),
    "a sum without rank K": SUM.replace("        slot = acc\n", "        slot = select(v < K, acc, slot)\n"),
    "a child that is notified late": SUM.replace("                notify taken[rank]@child_rank += 1\n",
                                             "                if v + (1 << k) < K { notify taken[rank]@child_rank += 1 }\n"),
}


def sum_of(body):
    return f"kernel a(in x: T[n], out y: T[n], op: reduce, root: int) implements reduce {{{body}}}\n"


# ---- barriers in rounds ----

ROUNDS = """
    let steps = log2(2 * nranks - 1)
    signal here[steps]
    for k in 0 .. steps {
        notify here[k]@((rank + (1 << k)) % nranks) += 1
        wait here[k] >= 1
    }
"""
BARRIERS = {
    "four rounds": ROUNDS.replace("log2(2 * nranks - 1)", "min(log2(2 * nranks - 1), 4)"),
    "one round less": ROUNDS.replace("log2(2 * nranks - 1)", "log2(nranks)"),
    "distances that do not double": ROUNDS.replace("1 << k", "k + 1"),
    "distances that stop doubling": ROUNDS.replace("1 << k", "min(1 << k, 8)"),
    "the wait first": ROUNDS.replace("        notify here[k]@((rank + (1 << k)) % nranks) += 1\n        wait here[k] >= 1\n",
                                     "        wait here[k] >= 1\n        notify here[k]@((rank + (1 << k)) % nranks) += 1\n"),
    "a wait for nothing": ROUNDS.replace(">= 1", ">= 0"),
    "a wait for more": ROUNDS.replace(">= 1", ">= 2"),
    "a wait for the round of the launch before": ROUNDS.replace(">= 1", ">= 1 at launch - 1"),
    "a round that some leave out": ROUNDS.replace("        wait here[k] >= 1", "        if k != 4 { wait here[k] >= 1 }"),
    "one cell for all rounds": ROUNDS.replace("here[steps]", "here[steps + 1]").replace("here[k]", "here[k / 4]"),
}
BARRIER_LIMITS = {
    "no notify from rank K on": ROUNDS.replace("        notify here", "        if rank < K { notify here").replace(" += 1", " += 1 }"),
    "only itself beyond K": ROUNDS.replace("@((rank + (1 << k)) % nranks)",
                                               "@(select(nranks <= K, (rank + (1 << k)) % nranks, rank))"),
}


def barrier_of(body):
    return f"kernel a() implements barrier {{{body}}}\n"
