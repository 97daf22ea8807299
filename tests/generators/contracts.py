# SPDX-License-Identifier: Apache-2.0
"""Random kernels with contracts of their own, and what both mean.

A kernel puts a value of each element into its window, meets the others and combines windows into y. A contract says in other words
what y and t hold, or something that differs a little. Both are trees (tuples), which are printed as text and computed as loops over
lists of integers of 32 bits, with nothing of Peal in between: `kept` compares the two.

    number      ("int", k) ("i",) ("rank",) ("n",) ("P",) ("table", number) ("add"|"sub"|"mul"|"mod"|"div", number, number)
    value       ("at", buffer, peer, index) ("num", number) ("neg", value) ("+"|"-"|"*", value, value)
                ("max"|"min"|"sum"|"prod"|"xor", [values]) ("over", op, lo, hi, skip, value)  in which ("q",) is a number
"""

FOLDS = {"sum": lambda a, b: a + b, "prod": lambda a, b: a * b, "max": max, "min": min, "xor": lambda a, b: a ^ b}


def wrap(value):
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


# --- meaning ---------------------------------------------------------------------------------------------------------------------

def number(e, env):
    kind = e[0]
    if kind == "int":
        return e[1]
    if kind in ("i", "rank", "n", "P", "q"):
        return env[kind]
    if kind == "table":
        return env["table"][number(e[1], env)]
    a, b = number(e[1], env), number(e[2], env)
    return {"add": a + b, "sub": a - b, "mul": a * b, "mod": a % b if b else 0, "div": a // b if b else 0}[kind]


def value(e, env, data):
    kind = e[0]
    if kind == "at":
        return data[e[1]][number(e[2], env)][number(e[3], env)]
    if kind == "num":
        return wrap(number(e[1], env))
    if kind == "neg":
        return wrap(-value(e[1], env, data))
    if kind in "+-*":
        a, b = value(e[1], env, data), value(e[2], env, data)
        return wrap(a + b if kind == "+" else a - b if kind == "-" else a * b)
    if kind == "over":
        parts = [value(e[5], {**env, "q": q}, data) for q in range(number(e[2], env), number(e[3], env))
                 if e[4] is None or q != number(e[4], env)]
        kind = e[1]
    else:
        parts = [value(part, env, data) for part in e[1]]
    out = parts[0]
    for part in parts[1:]:
        out = wrap(FOLDS[kind](out, part))
    return out


# --- text ------------------------------------------------------------------------------------------------------------------------

def number_text(e):
    kind = e[0]
    if kind == "int":
        return str(e[1])
    if kind in ("i", "rank", "n", "q"):
        return kind
    if kind == "P":
        return "nranks"
    if kind == "table":
        return f"table[{number_text(e[1])}]"
    mark = {"add": "+", "sub": "-", "mul": "*", "mod": "%", "div": "/"}[kind]
    return f"({number_text(e[1])} {mark} {number_text(e[2])})"


def value_text(e, old=()):
    kind = e[0]
    if kind == "at":
        own = e[2] == ("rank",)
        text = f"{e[1]}[{number_text(e[3])}]" if own else f"{e[1]}@({number_text(e[2])})[{number_text(e[3])}]"
        return f"old({text})" if e[1] in old else text
    if kind == "num":
        return f"({number_text(e[1])})"
    if kind == "neg":
        return f"(-{value_text(e[1], old)})"
    if kind in "+-*":
        return f"({value_text(e[1], old)} {kind} {value_text(e[2], old)})"
    if kind == "over":
        skip = "" if e[4] is None else f" where q != {number_text(e[4])}"
        return f"{e[1]}(q in {number_text(e[2])} .. {number_text(e[3])}{skip}: {value_text(e[5], old)})"
    return f"{kind}({', '.join(value_text(part, old) for part in e[1])})"


# --- making --------------------------------------------------------------------------------------------------------------------------

RANK, I, N, P = ("rank",), ("i",), ("n",), ("P",)


class Maker:
    def __init__(self, r, ranks, count):
        self.r, self.ranks, self.count = r, ranks, count

    def peer(self):
        r = self.r
        return r.choice([RANK, ("mod", ("add", RANK, ("int", r.randint(1, 3))), P), ("mod", ("sub", RANK, ("int", 1)), P),
                         ("int", r.randrange(self.ranks)), ("table", RANK), ("table", ("mod", ("add", RANK, ("int", 1)), P))])

    def index(self):
        r = self.r
        return r.choice([I, I, ("sub", ("sub", N, ("int", 1)), I), ("mod", ("add", I, ("int", r.randint(1, 3))), N),
                         ("int", r.randrange(self.count)), ("sub", N, ("int", 1))])

    def local(self, peer, index):
        """What a rank puts into its window."""
        r, at = self.r, lambda buffer: ("at", buffer, peer, index)
        return r.choice([lambda: at("x"), lambda: at("x"), lambda: ("+", at("x"), at("z")), lambda: ("-", at("x"), at("t")),
                         lambda: ("*", at("x"), ("num", ("int", r.randint(2, 5)))), lambda: ("max", [at("x"), at("z")]),
                         lambda: ("+", ("*", at("z"), ("num", ("int", 3))), ("num", ("int", r.randint(1, 9))))])()

    def combined(self, depth=0):
        """A value of y, as a tree in which ("w", peer, index) is an element of a window."""
        r = self.r
        kind = r.random()
        if kind < 0.4 or depth > 1:
            return ("w", self.peer(), self.index())
        if kind < 0.65:
            skip = r.choice([None, None, RANK]) if self.ranks > 1 else None
            return ("fold", r.choice(list(FOLDS)), skip, self.index())
        if kind < 0.9:
            return (r.choice("+-"), self.combined(depth + 1), self.combined(depth + 1))
        return ("*", self.combined(depth + 1), ("num", ("int", r.randint(-2, 4))))

    def in_kernel(self, e):
        """The same with windows, ranks one after the other from the next one on."""
        if e[0] == "w":
            return ("at", "w", e[1], e[2])
        if e[0] == "fold":
            first = 1 if e[2] else self.r.randint(0, 1)
            ranks = [("mod", ("add", RANK, ("int", s)), P) for s in range(first, self.ranks + (0 if e[2] else first))]
            parts = [("at", "w", p, e[3]) for p in ranks]
            return parts[0] if len(parts) == 1 else (e[1], parts)
        return (e[0],) + tuple(self.in_kernel(part) if part[0] != "num" else part for part in e[1:])

    def in_contract(self, e, local):
        """The same in terms of parameters."""
        if e[0] == "w":
            return local(e[1], e[2])
        if e[0] == "fold":
            return ("over", e[1], ("int", 0), P, e[2], local(("q",), e[3]))
        return (e[0],) + tuple(self.in_contract(part, local) if part[0] != "num" else part for part in e[1:])

    def mutate(self, e):
        """Changes one thing somewhere in a tree of values and numbers."""
        r = self.r
        places = []

        def walk(node, path):
            if isinstance(node, list):
                for k, part in enumerate(node):
                    walk(part, path + [k])
            elif isinstance(node, tuple):
                if node and node[0] in ("at", "over", "+", "-", "*", "int", "max", "min", "sum"):
                    places.append(path)
                for k, part in enumerate(node):
                    if k:
                        walk(part, path + [k])

        def change(node):
            if node[0] == "int":
                return ("int", node[1] + 1 if node[1] <= 0 else node[1] + r.choice([-1, 1]))
            if node[0] == "at":
                return r.choice([("at", {"x": "z", "z": "x", "t": "x"}[node[1]], node[2], node[3]),
                                 ("at", node[1], RANK, node[3]), ("at", node[1], node[2], ("int", 0)),
                                 ("at", node[1], ("mod", ("add", node[2], ("int", 1)), P), node[3])])
            if node[0] == "over":
                return r.choice([("over", node[1], node[2], node[3], None, node[5]),
                                 ("over", r.choice(list(FOLDS)), *node[2:])])
            if node[0] in "+-*":
                return r.choice([("+",) + node[1:], (node[0], node[2], node[1])])
            return (r.choice(["max", "min", "sum"]), node[1])

        def rebuilt(node, path):
            if not path:
                return change(node)
            part = rebuilt(node[path[0]], path[1:])
            return type(node)([*node[:path[0]], part, *node[path[0] + 1:]])

        walk(e, [])
        return self.inside(rebuilt(e, r.choice(places))) if places else e

    def inside(self, e):
        """The same with every peer a rank and every index an element."""
        if isinstance(e, (tuple, list)) and e and e[0] == "at":
            peer = e[2] if e[2][0] in ("rank", "q") else ("mod", e[2], P)
            return ("at", e[1], peer, e[3] if e[3] == I else ("mod", e[3], N))
        return type(e)(map(self.inside, e)) if isinstance(e, (tuple, list)) else e


class Case:
    """kernel `name`: y by segments of elements, each perhaps by rank; t by one formula."""

    def __init__(self, r, name, ranks, count, table):
        m = Maker(r, ranks, count)
        self.name, self.ranks, self.count, self.table = name, ranks, count, table
        peer, index = ("PEER",), ("INDEX",)
        shape = m.local(peer, index)

        def local(p, i):
            def put(node):
                if node == peer:
                    return p
                if node == index:
                    return i
                return type(node)(map(put, node)) if isinstance(node, (tuple, list)) else node
            return put(shape)

        self.window = local(RANK, I)
        cut = r.choice([("int", 0), ("div", N, ("int", 2)), ("sub", N, ("int", 1)), ("int", 1)])
        self.segments = []  # (lo, hi, rank condition (mod, rest) or None, kernel value, contract value)
        for lo, hi in ((("int", 0), cut), (cut, N)):
            when = (2, r.randint(0, 1)) if r.random() < 0.3 else None
            for rest in ((when[1], 1 - when[1]) if when else (None,)):
                e = m.combined()
                self.segments.append((lo, hi, (2, rest) if when else None, m.in_kernel(e), m.in_contract(e, local)))
        self.t_value = ("+", ("*", ("at", "t", RANK, I), ("num", ("int", r.randint(1, 3)))), ("num", ("int", r.randint(0, 2))))
        self.t_contract = self.t_value
        self.partial = r.random() < 0.1  # the contract leaves a segment out
        if r.random() < 0.6:
            which = r.randrange(len(self.segments) + 1)
            if which == len(self.segments):
                self.t_contract = m.mutate(self.t_contract)
                return
            lo, hi, when, have, want = kept = self.segments[which]
            self.segments[which] = (lo, hi, when, have, m.mutate(want))
            try:
                self.broken(r, 1)
            except IndexError:  # a reduction over nothing
                self.segments[which] = kept

    def clauses(self):
        """(buffer, lo, hi, condition, value)"""
        out = [("y", lo, hi, when, want) for lo, hi, when, _, want in self.segments]
        if self.partial:
            out = out[1:]
        return out + [("t", ("int", 0), N, None, self.t_contract)]

    def text(self, r):
        out = [f"kernel {self.name}(in x: T[n], in z: T[n], inout t: T[n], out y: T[n], table: int[nranks]) {{",
               "    requires n > 0", "    requires table[rank] < nranks"]
        for buffer, lo, hi, when, want in self.clauses():
            where = [] if (lo, hi) == (("int", 0), N) else [f"i >= {number_text(lo)}", f"i < {number_text(hi)}"]
            text = f"ensures {buffer}[i] == {value_text(want, ('t',))}"
            if when and r.random() < 0.5:
                where.append(f"rank % {when[0]} == {when[1]}")
                when = None
            text += f" where {' and '.join(where)}" if where else ""
            out.append(f"    if rank % {when[0]} == {when[1]} {{ {text} }}" if when else f"    {text}")
        meet = lambda s: [f"    for p in peers {{ notify {s}[rank]@p += 1 }}", f"    for p in peers {{ wait {s}[p] >= 1 }}"]
        out += ["    window w: T[n]", "    signal here[nranks], done[nranks]",
                f"    for i in 0 .. n {{ w[i] = {value_text(self.window)} }}", *meet("here")]
        for lo, hi, when, have, _ in self.segments:
            text = f"for i in {number_text(lo)} .. {number_text(hi)} {{ y[i] = {value_text(have)} }}"
            out.append(f"    if rank % {when[0]} == {when[1]} {{ {text} }}" if when else f"    {text}")
        out += [f"    for i in 0 .. n {{ t[i] = {value_text(self.t_value)} }}", *meet("done"), "}", ""]
        return "\n".join(out)

    def broken(self, r, trials=30):
        """The elements (rank, buffer, element) that differ from the contract for some inputs."""
        found = set()
        for _ in range(trials):
            data = {b: [[r.randrange(-(1 << 31), 1 << 31) for _ in range(self.count)] for _ in range(self.ranks)] for b in "xzt"}
            env = lambda rank, i: {"rank": rank, "i": i, "n": self.count, "P": self.ranks, "table": self.table}
            data["w"] = [[value(self.window, env(k, i), data) for i in range(self.count)] for k in range(self.ranks)]
            for rank in range(self.ranks):
                holds = lambda when: not when or rank % when[0] == when[1]
                after = {"y": {}, "t": {}}
                for lo, hi, when, have, _ in self.segments:
                    for i in range(number(lo, env(rank, 0)), number(hi, env(rank, 0))) if holds(when) else ():
                        after["y"][i] = value(have, env(rank, i), data)
                for i in range(self.count):
                    after["t"][i] = value(self.t_value, env(rank, i), data)
                for buffer, lo, hi, when, want in self.clauses():
                    for i in range(number(lo, env(rank, 0)), number(hi, env(rank, 0))) if holds(when) else ():
                        if value(want, env(rank, i), data) != after[buffer][i]:
                            found.add((rank, buffer, i))
        return found
