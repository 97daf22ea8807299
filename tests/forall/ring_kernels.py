# SPDX-License-Identifier: Apache-2.0
"""Ring kernels to attack with: right up to K ranks only, changed in one word, and random ones."""
import re

NEIGHBOURS = """
    let right = (rank + 1) % nranks
    let left = (rank - 1) % nranks
"""
# An allreduce by windows in five pieces, of which attacks replace one.
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
# Options that an attack needs to be one, by name.
OPTIONS = {"a result that is final for few": ["--op", "avg"]}

# Sends all before it receives: as many slots as K - 1 let K ranks pass.
ALL_AT_ONCE = """
    channel extra
    for s in 1 .. nranks { send x to (rank + 1) % nranks on extra }
    for s in 1 .. nranks { let got: T[n] = recv from (rank - 1) % nranks on extra }
""" + FORWARD


def mutate(rng, text):
    """One word of a ring changed, a line left out, or two lines swapped."""
    lines = re.sub(r"[ \t]*//[^\n]*", "", text).split("\n")
    body = [i for i, line in enumerate(lines[1:-2], 1) if line.strip() and line.count("{") == line.count("}") and
            not re.match(r"\s*(window|signal|private|channel)\b", line)]
    loops = [i for i, line in enumerate(lines) if " in 1 .. " in line]
    kind = rng.random()
    if kind < 0.15:
        lines[rng.choice(body)] = ""
    elif kind < 0.3:
        i = rng.choice([i for i in body if i + 1 in body] or body[:1])
        lines[i], lines[min(i + 1, len(lines) - 2)] = lines[min(i + 1, len(lines) - 2)], lines[i]
    elif kind < 0.4 and loops:
        i = rng.choice(loops)
        lines[i] = lines[i].replace("1 .. ", rng.choice(["0 .. ", "2 .. "])) if rng.random() < 0.5 else re.sub(
            r"1 \.\. (.*?) \{", lambda m: f"1 .. {m.group(1)} {rng.choice(['+', '-'])} 1 {{", lines[i])
    else:
        i = rng.choice(body)
        swaps = [(r"\bright\b", "left"), (r"\bleft\b", "right"), (r" \+ 1\b", ""), (r" - 1\b", ""), (r" - 1\b", " - 2"), (r" \+ 1\b", " + 2"),
                 (r"\bs\b", "(s - 1)"), (r"\bs\b", "(s + 1)"), (r"- s\b", "+ s"), (r">= (\w+)", r">= \1 - 1"), (r"\bc of\b", "rank of"),
                 (r"nranks - 1", "nranks"), (r"<=", "<"), (r"nranks > 1", "nranks > 2"), (r"final\(op, (.*)\)$", r"\1"), (r"\bbelow\b", "above"),
                 (r"op\((.*), (.*)\)$", r"op(\2, \1)"), (r"@left", ""), (r"@right", "@left"), (r"\bcur\b", "acc"), (r"\bx\b", "y")]
        fitting = [(a, b) for a, b in swaps if re.search(a, lines[i])]
        if fitting:
            pattern, to = rng.choice(fitting)
            lines[i] = re.sub(pattern, to, lines[i], count=1)
    return "\n".join(lines)


class Ring:
    """A random ring: each choice is right most of the time."""
    def __init__(self, rng):
        self.r = rng

    def pick(self, good, *others):
        return good if self.r.random() < 0.93 else self.r.choice(others)

    def windows(self):
        r, out = self.r, []
        step = r.choice([1, -1])
        next_, prior = ("right", "left") if step == 1 else ("left", "right")
        minus, plus = ("-", "+") if step == 1 else ("+", "-")
        closes = self.pick(True, False)
        phases = r.choice(["both", "both", "both", "gather"])
        out.append("    window part: T[n]\n    signal ready, taken" + NEIGHBOURS)
        out.append("    part = x\n" if phases == "both" else "    part[rank of nranks] = x\n")
        more = self.pick("", " - 1", " + 1")
        both = phases == "both"
        if both:
            operands = ["part@" + prior + "[c of nranks]", self.pick("part[c of nranks]", "x[c of nranks]", "x[rank of nranks]")]
            r.shuffle(operands)
            out.append(f"    for s in 1 .. nranks{more} {{\n        notify ready@{next_} += 1\n        wait ready >= {self.pick('s', 's - 1')}\n"
                       f"        let c = (rank {minus} s {minus} {self.pick('1', '2', '0')}) % nranks\n"
                       f"        part[c of nranks] = op({operands[0]}, {operands[1]})\n    }}\n")
        base = "nranks - 1 + s" if both else "s"
        waits = f"        notify ready@{next_} += 1\n        wait ready >= {self.pick(base, base + ' - 1')}\n"
        move = f"        part[c of nranks] = part@{prior}[c of nranks]\n"
        pieces = [f"        let c = (rank {minus} s{self.pick('', ' ' + plus + ' 1')}) % nranks\n", waits, move]
        out.append("    for s in 1 .. nranks {\n" + "".join(pieces) + "    }\n")
        ends = [f"    if nranks > 1 {{ notify taken@{prior} += 1 }}\n", "    y = final(op, part)\n" if both else "    y = part\n",
                "    if nranks > 1 { wait taken >= 1 }\n" if closes else ""]
        if r.random() < 0.2:
            ends[0], ends[1] = ends[1], ends[0]
        out += ends
        if not closes:
            out[0] = out[0].replace(", taken", "")
            out = [o for o in out if "taken" not in o]
        return both, "".join(out)

    def queues(self):
        r = self.r
        step = r.choice([1, -1])
        minus, plus = ("-", "+") if step == 1 else ("+", "-")
        to, from_ = f"(rank {plus} 1) % nranks", f"(rank {minus} 1) % nranks"
        if r.random() < 0.4:
            order = ["acc", "cur"]
            r.shuffle(order)
            return True, (f"    let acc = x\n    let cur = x\n    for s in 1 .. nranks{self.pick('', ' - 1', ' + 1')} {{\n        send {self.pick('cur', 'x', 'acc')} to {to}\n"
                          f"        cur = recv from {from_}\n        acc = op({order[0]}, {self.pick(order[1], 'acc', 'x')})\n    }}\n    y = final(op, acc)\n")
        late = self.pick("", " + 1")
        return True, (f"    private work: T[n]\n    work = x\n    for s in 1 .. nranks {{\n        send work[(rank {minus} s{late}) % nranks of nranks] to {to}\n"
                      f"        let c = (rank {minus} s {minus} {self.pick('1', '2')}) % nranks\n        work[c of nranks] = op(recv from {from_}, work[c of nranks])\n    }}\n"
                      f"    for s in 1 .. nranks {{\n        send work[(rank {minus} s {plus} {self.pick('1', '2')}) % nranks of nranks] to {to}\n"
                      f"        work[(rank {minus} s) % nranks of nranks] = recv from {from_}\n    }}\n    y = final(op, {self.pick('work', 'x')})\n")

    def text(self):
        reduces, body = self.windows() if self.r.random() < 0.6 else self.queues()
        if reduces:
            return f"kernel m(in x: T[n], out y: T[n], op: reduce) implements allreduce {{\n{body}}}\n"
        return f"kernel m(in x: T[part(rank, n, nranks)], out y: T[n]) implements allgather {{\n{body}}}\n"
