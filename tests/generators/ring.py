# SPDX-License-Identifier: Apache-2.0
"""Random rings, through windows and through channels."""

NEIGHBOURS = """
    let right = (rank + 1) % nranks
    let left = (rank - 1) % nranks
"""


class Ring:
    """A random ring, in which each choice is right with high probability."""
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
