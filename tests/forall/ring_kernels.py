# SPDX-License-Identifier: Apache-2.0
"""Ring kernels for attacks: right for up to K ranks only."""

NEIGHBOURS = """
    let right = (rank + 1) % nranks
    let left = (rank - 1) % nranks
"""
# The pieces of an allreduce by windows; each attack replaces one.
REDUCE = """    for s in 1 .. nranks {
        notify ready@right += 1
        wait ready >= s
        let c = (rank - s - 1) % nranks
        part[c of nranks] = op(part@left[c of nranks], part[c of nranks])
    }
"""
SPREAD = """    for s in 1 .. nranks {
        notify ready@right += 1
        wait ready >= nranks - 1 + s
        let c = (rank - s) % nranks
        part[c of nranks] = part@left[c of nranks]
    }
"""
START = "\n    window part: T[n]\n    signal ready, taken" + NEIGHBOURS + "    part = x\n"
CLOSE = """    if nranks > 1 { notify taken@left += 1 }
    y = final(op, part)
    if nranks > 1 { wait taken >= 1 }
"""

FORWARD = """
    let acc = x
    let cur = x
    for s in 1 .. nranks {
        send cur to (rank + 1) % nranks
        cur = recv from (rank - 1) % nranks
        acc = op(acc, cur)
    }
    y = final(op, acc)
"""

# Right while nranks <= K, wrong for K + 1.
LIMITS = {
    "a ring that reduces for few turns only": START + REDUCE.replace("1 .. nranks", "1 .. min(nranks, K)", 1) +
    SPREAD.replace("nranks - 1 + s", "min(nranks, K) - 1 + s") + CLOSE,
    "a ring that spreads for few turns only": START + REDUCE + SPREAD.replace("1 .. nranks", "1 .. min(nranks, K)", 1) + CLOSE,
    "a wait that late turns of a ring leave out": START + REDUCE.replace("wait ready >= s", "if s < K { wait ready >= s }") + SPREAD + CLOSE,
    "a threshold that late turns of a ring do not raise": START + REDUCE.replace(">= s", ">= min(s, K - 1)") + SPREAD + CLOSE,
    "a turn of a ring that is left out": START + REDUCE.replace("part[c of nranks] = ", "if s != K { part[c of nranks] = ", 1).replace(
        "part[c of nranks])\n", "part[c of nranks]) }\n") + SPREAD + CLOSE,
    "a ring that is left early by many ranks": START + REDUCE + SPREAD + CLOSE.replace("if nranks > 1 { wait", "if nranks <= K { wait"),
    "a distance that grows": START.replace("rank - 1", "rank - 1 - nranks / (K + 1)").replace("rank + 1", "rank + 1 + nranks / (K + 1)") +
    REDUCE + SPREAD + CLOSE,
    "a part that many ranks take wrongly": START + REDUCE + SPREAD.replace("rank - s)", "rank - s - nranks / (K + 1))") + CLOSE,
    "a table of cells in a ring": START.replace("ready, taken", "ready[K - 1], again, taken") + REDUCE.replace(
        "ready@right", "ready[s - 1]@right").replace("wait ready >= s", "wait ready[s - 1] >= 1") + SPREAD.replace(
        "ready@right", "again@right").replace("ready >= nranks - 1 + s", "again >= s") + CLOSE,
    "vectors that many ranks do not forward": FORWARD.replace("1 .. nranks", "1 .. min(nranks, K)"),
    "a turn of a forwarding ring that adds again": FORWARD.replace("acc = op(acc, cur)\n", "acc = op(acc, cur)\n"
                                                                   "        if s >= K { acc = op(acc, x) }\n"),
    "a result that is final for few": FORWARD.replace("y = final(op, acc)", "if nranks <= K { y = final(op, acc) } else { y = acc }"),
}
# Options without which an attack is right for any number of ranks, by name.
OPTIONS = {"a result that is final for few": ["--op", "avg"]}

# Sends all before it receives: K - 1 slots are enough for K ranks.
ALL_AT_ONCE = """
    channel extra
    for s in 1 .. nranks { send x to (rank + 1) % nranks on extra }
    for s in 1 .. nranks { let got: T[n] = recv from (rank - 1) % nranks on extra }
""" + FORWARD
