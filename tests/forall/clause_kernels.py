# SPDX-License-Identifier: Apache-2.0
"""Kernels with contracts of their own, for attacks on proofs for every number of ranks.

CLAUSES: name -> (class, text): as new users write them; each must be proved for all. NEVER: name -> text: must not.
random_clause(rng): a kernel and an ensures that is right, or differs a little, in either of the two.
"""
import re

NEAR = "    let left = (rank - 1) % nranks\n    let right = (rank + 1) % nranks\n"
MEET = "    for p in peers { notify here[rank]@p += 1 }\n    for p in peers { wait here[p] >= 1 }\n"
PART = "    for p in peers { notify gone[rank]@p += 1 }\n    for p in peers { wait gone[p] >= 1 }\n"
OPEN = "    window w: T[n]\n    signal here[nranks], gone[nranks]\n    w = x\n" + MEET
STEP = "        send cur to right\n        cur = recv from left\n"

CLAUSES = {
    "a halo over windows": ("halo", f"""kernel a(in x: T[n], out y: T[n + 2]) {{
    requires n >= 1
{NEAR}    ensures y[i] == x[i - 1] where i >= 1 and i <= n
    ensures y[0] == x@left[n - 1]
    ensures y[n + 1] == x@right[0]
    window edge: T[2]
    signal here[2], done[2]
    edge[0] = x[0]
    edge[1] = x[n - 1]
    y[1 +: n] = x
    notify here[1]@left += 1
    notify here[0]@right += 1
    wait here[0] >= 1
    wait here[1] >= 1
    y[0] = edge@left[1]
    y[n + 1] = edge@right[0]
    notify done[1]@left += 1
    notify done[0]@right += 1
    wait done[0] >= 1
    wait done[1] >= 1
}}
"""),
    "a halo over messages": ("halo", f"""kernel a(in x: T[n], out y: T[n + 4]) {{
    requires n >= 2
{NEAR}    ensures y[i] == x[i - 2] where i >= 2 and i < n + 2
    ensures y[i] == x@left[n - 2 + i] where i < 2
    ensures y[i] == x@right[i - n - 2] where i >= n + 2
    send x[0 +: 2] to left
    send x[n - 2 +: 2] to right
    y[2 +: n] = x
    y[n + 2 +: 2] = recv from right
    y[0 +: 2] = recv from left
}}
"""),
    "a rotation, posted before it is sent": ("halo", f"""kernel a(in x: T[n], out y: T[n]) {{
{NEAR}    ensures y[i] == x@left[i]
    let f: T[n] = recv_async from left
    send x to right
    wait f
    y = f
}}
"""),
    "three hops": ("halo", f"""kernel a(in x: T[n], out y: T[n]) {{
    requires nranks >= 2
{NEAR}    ensures y[i] == x@((rank - 3) % nranks)[i]
    let cur = x
    for k in 0 .. 3 {{
{STEP}    }}
    y = cur
}}
"""),
    "a stencil": ("halo", f"""kernel a(in x: T[n], out y: T[n]) {{
    requires n >= 2
{NEAR}    ensures y[i] == x[i - 1] + x[i + 1] where i >= 1 and i < n - 1
    ensures y[0] == x@left[n - 1] + x[1]
    ensures y[n - 1] == x[n - 2] + x@right[0]
    send x[0 +: 1] to left
    send x[n - 1 +: 1] to right
    y[1 +: n - 2] = x[0 +: n - 2] + x[2 +: n - 2]
    let hi: T[1] = recv from right
    let lo: T[1] = recv from left
    y[0 +: 1] = lo + x[1 +: 1]
    y[n - 1 +: 1] = x[n - 2 +: 1] + hi
}}
"""),
    "neighbours in turns of launches": ("halo", f"""kernel a(in x: T[n], out y: T[n]) {{
{NEAR}    ensures y[i] == x@left[i]
    window w: T[2, n]
    signal here
    w[launch mod 2] = x
    notify here@right += 1
    wait here >= 1
    y = w@left[launch mod 2]
    signal gone
    notify gone@left += 1
    wait gone >= 1
}}
"""),
    "a sum over all": ("mesh", f"""kernel a(in x: T[n], out y: T[n]) {{
    ensures y[i] == sum(q in 0 .. nranks: x@q[i])
{OPEN}    let acc = x
    for p in peers {{ acc = sum(acc, w@p) }}
    y = acc
{PART}}}
"""),
    "a sum over the others": ("mesh", f"""kernel a(in x: T[n], out y: T[n]) {{
    requires nranks >= 2
    ensures y[i] == sum(q in 0 .. nranks where q != rank: x@q[i]) where rank != 0
    ensures y[i] == x[i] where rank == 0
{OPEN}    let acc = w@0
    for q in 1 .. nranks {{ if q != rank and rank != 0 {{ acc = sum(acc, w@q) }} }}
    y = acc
{PART}}}
"""),
    "everything from everyone": ("mesh", f"""kernel a(in x: T[n], out y: T[nranks * n]) {{
    ensures y[i] == x@(i / n)[i % n]
{OPEN}    for q in 0 .. nranks {{ y[q * n +: n] = w@q }}
{PART}}}
"""),
    "rows from everyone": ("mesh", """kernel a(in x: T[nranks, n], out y: T[nranks, n]) {
    ensures y[q] == x@q[rank]
    for p in peers { send x[p] to p }
    y[rank] = x[rank]
    for p in peers { y[p] = recv from p }
}
"""),
    "slots from everyone": ("mesh", f"""kernel a(in x: T[nranks * n], out y: T[nranks * n]) {{
    ensures y[i] == x@(i / n)[rank * n + i % n]
    window w: T[nranks * n]
    signal here[nranks], gone[nranks]
    w = x
{MEET}    for q in 0 .. nranks {{ y[q * n +: n] = w@q[rank * n +: n] }}
{PART}}}
"""),
    "a broadcast over messages": ("mesh", """kernel a(in x: T[n], out y: T[n], root: int) {
    requires root < nranks
    ensures y[i] == x@root[i]
    if rank == root {
        for p in peers { send x to p }
        y = x
    } else {
        y = recv from root
    }
}
"""),
    "halves from two roots": ("mesh", f"""kernel a(in x: T[n], out y: T[n], root: int) {{
    let other = nranks - 1
    ensures y[0 of 2] == x@root[0 of 2]
    ensures y[1 of 2] == x@other[1 of 2]
{OPEN}    y[0 of 2] = w@root[0 of 2]
    y[1 of 2] = w@other[1 of 2]
{PART}}}
"""),
    "parts of all": ("mesh", f"""kernel a(in x: T[n], out y: T[n]) {{
    for q in 0 .. nranks {{ ensures y[q of nranks] == x@q[q of nranks] }}
{OPEN}    for q in 0 .. nranks {{ y[q of nranks] = w@q[q of nranks] }}
{PART}}}
"""),
    "in place": ("mesh", f"""kernel a(inout t: T[n]) {{
    ensures t[i] == max(q in 0 .. nranks: old(t@q[i]))
    window w: T[n]
    signal here[nranks], gone[nranks]
    w = t
{MEET}    let acc = t
    for p in peers {{ acc = max(acc, w@p) }}
    t = acc
{PART}}}
"""),
    "two phases of messages, in place": ("mesh", """kernel a(inout t: T[n], op: reduce) implements allreduce {
    ensures t[i] == final(op, op(q in 0 .. nranks: old(t@q[i])))
    for p in peers { send t[p of nranks] to p }
    let acc = t[rank of nranks]
    for p in peers { acc = op(acc, recv from p) }
    acc = final(op, acc)
    t[rank of nranks] = acc
    for p in peers { send acc to p }
    for p in peers { t[p of nranks] = recv from p }
}
"""),
    "a sum round the ring": ("ring", f"""kernel a(in v: T[n], out total: T[n]) {{
    ensures total[i] == sum(q in 0 .. nranks: v@q[i])
{NEAR}    let cur = v
    let acc = v
    for s in 1 .. nranks {{
{STEP}        acc = sum(acc, cur)
    }}
    total = acc
}}
"""),
    "a sum round the ring, posted before it is sent": ("ring", f"""kernel a(in x: T[n], out y: T[n]) {{
    ensures y[i] == sum(q in 0 .. nranks: x@q[i])
{NEAR}    let cur = x
    let acc = x
    for s in 1 .. nranks {{
        let f: T[n] = recv_async from left
        send cur to right
        wait f
        cur = f
        acc = sum(acc, cur)
    }}
    y = acc
}}
"""),
    "a call of the library's ring, in place": ("ring", """kernel a(inout g: T[n]) {
    ensures g[i] == max(q in 0 .. nranks: old(g@q[i]))
    g = allreduce(g, max, ring)
}
"""),
    "parts round the ring, in place": ("ring", f"""kernel a(inout t: T[n], op: reduce) {{
    ensures t[i] == final(op, op(q in 0 .. nranks: old(t@q[i])))
{NEAR}    for s in 0 .. nranks - 1 {{
        send t[(rank - s) % nranks of nranks] to right
        t[(rank - s - 1) % nranks of nranks] = op(t[(rank - s - 1) % nranks of nranks], recv from left)
    }}
    for s in 0 .. nranks - 1 {{
        send t[(rank + 1 - s) % nranks of nranks] to right
        t[(rank - s) % nranks of nranks] = recv from left
    }}
    t = final(op, t)
}}
"""),
    "slots round the ring": ("ring", f"""kernel a(in x: T[n], out y: T[nranks * n]) {{
    requires n >= 1
    ensures y[i] == x@(i / n)[i % n]
{NEAR}    y[rank * n +: n] = x
    for s in 0 .. nranks - 1 {{
        send y[((rank - s) % nranks) * n +: n] to right
        y[((rank - s - 1) % nranks) * n +: n] = recv from left
    }}
}}
"""),
    "sums of slots round the ring": ("ring", f"""kernel a(in x: T[nranks * n], out y: T[n]) {{
    ensures y[i] == sum(q in 0 .. nranks: x@q[rank * n + i])
{NEAR}    let acc = x[((rank - 1) % nranks) * n +: n]
    for s in 1 .. nranks {{
        send acc to right
        acc = recv from left
        acc = sum(acc, x[((rank - s - 1) % nranks) * n +: n])
    }}
    y = acc
}}
"""),
}

# Must not be proved for all: what a call asks for is no promise of the caller, and few elements are not all.
NEVER = {
    "at most four elements": f"""kernel a(in x: T[n], out y: T[n]) {{
    requires n <= 4
{NEAR}    ensures y[i] == x@left[i]
    send x to right
    y = recv from left
}}
""",
    "a call that wants two elements": """kernel pass(in a: T[m], out b: T[m]) {
    requires m >= 2
    b = a
}
kernel a(in x: T[n], out y: T[n]) {
    ensures y[i] == x[i]
    pass(x, y)
}
""",
    "a call in a ring that wants three ranks": f"""kernel step(in a: T[m], out b: T[m]) {{
    requires nranks >= 3
    b = a
}}
kernel a(in x: T[n], out y: T[n]) {{
    ensures y[i] == sum(q in 0 .. nranks: x@q[i])
    window z: T[n]
{NEAR}    step(x, z)
    let cur = x
    let acc = z
    for s in 1 .. nranks {{
{STEP}        acc = sum(acc, cur)
    }}
    y = acc
}}
""",
}


def peer(c):
    return "rank" if c == 0 else f"(rank {'+' if c > 0 else '-'} {abs(c)}) % nranks"


def plus(base, number):
    """A place: base and a number."""
    if not base:
        return str(number)
    return base if number == 0 else f"{base} {'+' if number > 0 else '-'} {abs(number)}"


class Stretch:
    """Elements of x on the rank at a distance, from a place near the start or the end, few of them or nearly all."""
    def __init__(self, rng):
        self.far = rng.choice([-2, -1, -1, 0, 1, 1, 2])
        self.long = rng.random() < 0.4
        low = rng.randint(0, 2)
        if self.long:
            cut = rng.randint(low, 3)
            self.start, self.len, self.needs, self.size = str(low), plus("n", -cut), max(cut, low), (1, -cut)
        else:
            few = rng.randint(1, 3)
            from_end = rng.random() < 0.5
            self.start = plus("n", -few - low) if from_end else str(low)
            self.len, self.needs, self.size = str(few), few + low, (0, few)

    def of(self, name):
        return f"{name}[{self.start} +: {self.len}]"


def by_window(rng, j, s):
    """Statements before the meeting, to read, and after it."""
    back, there = peer(-s.far), peer(s.far)
    if s.far == 0:
        return "", f"    y[AT{j} +: {s.len}] = {s.of('x')}\n", ""
    before = f"    notify here[{j}]@({back}) += 1\n"
    read = f"    wait here[{j}] >= 1\n    y[AT{j} +: {s.len}] = {s.of(f'w@({there})')}\n"
    after = f"    notify gone[{j}]@({there}) += 1\n    wait gone[{j}] >= 1\n"
    return before, read, after


def by_message(rng, j, s):
    if s.far == 0:
        return by_window(rng, j, s)
    return f"    send {s.of('x')} to {peer(-s.far)}\n", f"    y[AT{j} +: {s.len}] = recv from {peer(s.far)}\n", ""


def random_halo(rng):
    """Stretches of neighbours' vectors, one behind the other in y."""
    stretches = [Stretch(rng) for _ in range(rng.randint(1, 3))]
    windows = rng.random() < 0.5
    whole, few, clauses, before, reads, after = 0, 0, "", "", "", ""
    for j, s in enumerate(stretches):
        at = plus("n" if whole == 1 else f"{whole} * n" if whole else "", few)
        one, two, three = (by_window if windows else by_message)(rng, j, s)
        before, reads, after = before + one, reads + two.replace(f"AT{j}", at), after + three
        far = s.far if rng.random() < 0.9 else s.far + rng.choice([-1, 1])
        off = rng.choice([0] * 12 + [-1, 1])
        clauses += (f"    ensures y[i] == x@({peer(far)})[{plus('i', off)} - ({at}) + {s.start}] where i >= {at} and "
                    f"i < {at} + {s.len}\n")
        whole, few = whole + s.size[0], few + s.size[1]
    total = plus(f"{whole} * n" if whole else "", few)
    need = max(s.needs for s in stretches) + rng.choice([0] * 9 + [-1])
    cells = len(stretches)
    decl = f"    window w: T[n]\n    signal here[{cells}], gone[{cells}]\n    w = x\n" if windows and "here" in before else ""
    return f"kernel a(in x: T[n], out y: T[{total}]) {{\n    requires n >= {max(need, 0)}\n{clauses}{decl}{before}{reads}{after}}}\n"


def random_hops(rng):
    """A vector that travels, and where a clause says that it comes from."""
    hops = [rng.choice([-1, 1, 1, 2]) for _ in range(rng.randint(1, 4))]
    body = "".join(f"    send cur to {peer(-h)}\n    cur = recv from {peer(h)}\n" for h in hops)
    sum_ = rng.random() < 0.3
    far = sum(hops) + rng.choice([0] * 6 + [-1, 1, 3])
    value = f"x@({peer(far)})[i]" if -4 <= far <= 4 else "x[i]"
    if sum_:
        body += "    cur = sum(cur, x)\n"
        value = f"sum({value}, x[i])"
    return (f"kernel a(in x: T[n], out y: T[n]) {{\n    requires nranks >= {rng.randint(1, 3)}\n    ensures y[i] == {value}\n"
            f"    let cur = x\n{body}    y = cur\n}}\n")


def random_mesh(rng):
    """What all give to all, and a clause about it."""
    some = ["rank", "0", "root", "nranks - 1"]
    one = rng.choice(some)
    skip = rng.choice([None, None, None] + some)
    low = rng.choice(["0", "0", "0", "1"])
    other = rng.choice([one] * 5 + some)
    where = rng.choice([skip] * 5 + [None] + some)
    first = rng.choice([low] * 6 + ["0", "1"])
    root = ", root: int"
    kind = rng.random()
    if kind < 0.4:
        clause = f"ensures y[i] == sum(x@({other})[i], sum(q in {first} .. nranks{f' where q != {where}' if where else ''}: x@q[i]))"
        clause += rng.choice(["", "", f" where rank != {rng.choice(some)}"])
        turn = "acc = sum(acc, w@q)"
        body = f"    let acc = w@({one})\n    for q in {low} .. nranks {{ {f'if q != {skip} {{ {turn} }}' if skip else turn} }}\n    y = acc\n"
        return f"kernel a(in x: T[n], out y: T[n]{root}) {{\n    requires nranks >= 3\n    {clause}\n{OPEN}{body}{PART}}}\n"
    if kind < 0.6:
        clause = f"ensures y[i] == x@({other})[i]" + rng.choice(["", f" where rank != {rng.choice(some)}"])
        return f"kernel a(in x: T[n], out y: T[n]{root}) {{\n    {clause}\n{OPEN}    y = w@({one})\n{PART}}}\n"
    if kind < 0.8:
        clause = rng.choice(["ensures y[i] == x@(i / n)[i % n]", f"ensures y[i] == x@({other})[i % n]",
                             f"ensures y[i] == select(i / n == {other}, x[i % n], x@(i / n)[i % n])"])
        turn = f"y[q * n +: n] = w@({rng.choice(['q', 'q', 'q', one])})"
        body = f"    for q in {low} .. nranks {{ {turn} }}\n" + ("    y[0 +: n] = w@0\n" if low == "1" else "")
        return f"kernel a(in x: T[n], out y: T[nranks * n]{root}) {{\n    {clause}\n{OPEN}{body}{PART}}}\n"
    at, get = rng.choice(["rank", "rank", "q", one]), rng.choice(["rank", "rank", "q", one])
    clause = f"ensures y[i] == x@(i / n)[({at.replace('q', '(i / n)')}) * n + i % n]"
    body = f"    for q in 0 .. nranks {{ y[q * n +: n] = w@q[({get}) * n +: n] }}\n"
    opened = OPEN.replace("T[n]", "T[nranks * n]")
    return f"kernel a(in x: T[nranks * n], out y: T[nranks * n]{root}) {{\n    {clause}\n{opened}{body}{PART}}}\n"


def random_ring(rng):
    """A vector or slots round the ring, with steps, starts and clauses that differ a little."""
    text = rng.choice([text for kind, text in CLAUSES.values() if kind == "ring"])
    for _ in range(rng.choice([0, 1, 1, 2])):
        places = list(re.finditer(r"rank - 1\b|rank \+ 1\b|rank - s - 1|rank - s\b|s in [01]|nranks - 1 \{|in 0 \.\. nranks|rank \* n", text))
        if not places:
            break
        spot = rng.choice(places)
        old = spot.group()
        new = rng.choice([old.replace("- 1", "- 2"), old.replace("+ 1", "- 1"), old.replace("rank", "rank + 1"), old.replace("0", "1"),
                          old.replace("1", "0"), old.replace("s - 1", "s")])
        text = text[:spot.start()] + new + text[spot.end():]
    return text


def random_clause(rng):
    return rng.choice([random_halo, random_halo, random_hops, random_mesh, random_mesh, random_ring])(rng)
