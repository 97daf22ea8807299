# SPDX-License-Identifier: Apache-2.0
"""Random kernels made of the elements of meshes."""


class Mesh:
    """A random kernel: waves of notifies, and data that moves between them."""
    def __init__(self, rng):
        self.r, self.lines, self.waves = rng, [], 0

    def put(self, text):
        self.lines.append("    " + text)

    def wave(self):
        self.waves += 1
        r, far = self.r, self.waves
        waits = far if r.random() < 0.9 else max(0, far - 1)
        kind = r.random()
        if kind < 0.7:
            self.put("for p in peers { notify s[rank]@p += 1 }")
            self.put(f"for p in peers {{ wait s[p] >= {waits} }}")
        elif kind < 0.85:
            self.put("for q in 0 .. nranks { if q != rank { notify s[rank]@q += 1 } }")
            self.put(f"for q in 0 .. nranks {{ if rank != q {{ wait s[q] >= {waits} }} }}")
        else:
            self.put("for p in peers { notify s[rank]@p += 1 }")
            self.put(f"if rank == 0 {{ for p in peers {{ wait s[p] >= {waits} }} }} else {{ wait s[0] >= {waits} }}")

    def move(self):
        r = self.r
        part = r.choice(["", "[rank of nranks]"])
        self.put(r.choice([
            "w = x", f"w{part} = x{part}", f"y{part} = w{part}", "for p in peers { v[p of nranks] = w@p[p of nranks] }",
            "for p in peers { w@p[rank of nranks] = x[rank of nranks] }", "for p in peers { y[p of nranks] = v@p[p of nranks] }",
            "y[rank of nranks] = v[rank of nranks]", "w = v", "v = w@0",
        ]))

    def total(self):
        r = self.r
        part = r.choice(["", "", "[rank of nranks]"])
        where = r.choice(["w", "w", "v"])
        self.put(f"let acc = {where}@0{part}")
        self.put(f"for q in 1 .. nranks {{ acc = op(acc, {where}@q{part}) }}")
        self.put(f"{r.choice(['y', 'y', 'v'])}{part} = final(op, acc)")

    def text(self):
        r = self.r
        self.put("window w: T[n]")
        self.put("window v: T[n]")
        self.put("signal s[nranks]")
        self.put("w = x" if r.random() < 0.8 else "v = x")
        self.wave()
        self.total()
        for _ in range(r.randint(0, 3)):
            r.choice([self.wave, self.move, self.wave])()
        if r.random() < 0.8:
            self.wave()
        body = "\n".join(self.lines)
        contract = " implements allreduce" if r.random() < 0.7 else ""
        return f"kernel m(in x: T[n], out y: T[n], op: reduce){contract} {{\n{body}\n}}\n"
