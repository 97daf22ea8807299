# SPDX-License-Identifier: Apache-2.0
"""A naive interpreter of tile kernels: runs the pipes of all ranks in a random order, and keeps for each event which ones
must have come before it. Two conflicting events of which neither must come before the other are a race: some order of
the same events has them side by side. Nothing here is shared with the verifier.

By core, everything a rank does is one pipe. By pipe: S issues in the order of the text, so an event starts after all
events of S that precede it in the text; a pipe works in order; a drain of S waits for all that precedes it; the n-th
wait of a flag waits for its n-th set.
"""
from generate import WORDS, Layout, bind, events_of


class Program:
    def __init__(self, statements, ranks, by_pipe, zeroed):
        self.ranks, self.by_pipe = ranks, by_pipe
        self.layout = Layout(ranks)
        self.lanes, self.events = {}, []
        for rank in range(ranks):
            self.add_rank(rank, events_of(bind(statements, ranks), ranks, rank, self.layout))
        self.set_cells = {e.cell for e in self.events if e.kind == "notify" and e.how == "set"}
        self.conflicts = [(a, b) for i, a in enumerate(self.events) for b in self.events[:i]
                          if a.lane != b.lane and self.conflict(a, b)]
        self.initial = 0
        for rank in range(ranks):
            for region in ("x", "box") if zeroed else ("x",):
                self.initial |= ((1 << WORDS[region]) - 1) << self.layout.first[region, rank]

    def add_rank(self, rank, events):
        last_of_scalar, last_of = None, {}
        for e in events:
            if not self.by_pipe and e.kind in ("set", "get", "drain"):
                continue
            e.lane = (rank, e.pipe if self.by_pipe else "core")
            e.bit = len(self.events)
            e.issued = last_of_scalar
            e.drained = list(last_of.values()) if e.kind == "drain" else ()
            if e.pipe == "S":
                last_of_scalar = e.bit
            last_of[e.lane] = e.bit
            self.lanes.setdefault(e.lane, []).append(e)
            self.events.append(e)

    @staticmethod
    def conflict(a, b):
        return a.writes & (b.reads | b.writes | b.adds) or b.writes & (a.reads | a.adds) or \
            a.adds & b.reads or b.adds & a.reads


class Run:
    """One order of the events."""
    def __init__(self, program, rng, values=None):
        self.p, self.rng = program, rng
        self.before = {}  # event -> those that must precede it, as bits
        self.cells, self.touched, self.sets, self.gets = {}, {}, {}, {}
        self.written = program.initial
        self.uninitialised = False
        self.values = values

    def can(self, e):
        if e.issued is not None and e.issued not in self.before:
            return False
        if e.kind == "drain":
            return all(bit in self.before for bit in e.drained)
        if e.kind == "get":
            return len(self.sets.get((e.rank, e.flag), ())) > self.gets.get((e.rank, e.flag), 0)
        if e.kind == "wait":
            value = self.cells.get(e.cell, 0)
            return {"GE": value >= e.value, "EQ": value == e.value, "GT": value > e.value}[e.how]
        return True

    def must(self, e, lane_before):
        """The events that must precede it."""
        bits = [b for b in (lane_before, e.issued) if b is not None] + list(e.drained)
        if e.kind == "get":
            n = self.gets.get((e.rank, e.flag), 0)
            self.gets[e.rank, e.flag] = n + 1
            bits.append(self.sets[e.rank, e.flag][n])
        if e.kind == "set":
            self.sets.setdefault((e.rank, e.flag), []).append(e.bit)
        if e.cell is not None:
            # Two adds may change places, and an add may come later than a wait for "at least".
            for other in self.touched.setdefault(e.cell, []):
                if e.cell in self.p.set_cells or e.kind != other.kind and (e.kind == "wait" or other.how == "EQ"):
                    bits.append(other.bit)
            self.touched[e.cell].append(e)
        known = 0
        for b in bits:
            known |= self.before[b] | 1 << b
        return known

    def act(self, e):
        if e.kind == "notify":
            self.cells[e.cell] = e.value + (self.cells.get(e.cell, 0) if e.how == "add" else 0)
        if (e.reads | e.adds) & ~self.written:
            self.uninitialised = True
        self.written |= e.writes | e.adds
        if self.values is not None and e.do:
            self.compute(*e.do)

    def compute(self, do, dst, srcs):
        v = self.values
        got = [v[s[0]:s[0] + s[1]] for s in srcs]
        if do == "copy":
            result = got[0]
        elif do in ("add", "plus"):
            second = got[1] if do == "add" else v[dst[0]:dst[0] + dst[1]]
            result = [None if a is None or b is None else a + b for a, b in zip(got[0], second)]
        elif do == "relu":
            result = [None] * dst[1]
        else:
            result = [do] * dst[1]
        v[dst[0]:dst[0] + dst[1]] = result

    def go(self):
        """The faults that this order shows."""
        lanes = {lane: 0 for lane in self.p.lanes}
        order = list(lanes)
        self.rng.shuffle(order)
        ranked, uneven = self.rng.random() < 0.5, self.rng.random() < 0.5
        while True:
            ready = []
            for lane in order:
                events, at = self.p.lanes[lane], lanes[lane]
                if at < len(events) and self.can(events[at]):
                    ready.append(lane)
                    if ranked:
                        break
            if not ready:
                break
            lane = ready[0] if ranked else self.rng.choice(ready)
            if ranked and self.rng.random() < 0.1:
                self.rng.shuffle(order)
            for _ in range(4 if uneven else 1):
                events, at = self.p.lanes[lane], lanes[lane]
                if at == len(events) or not self.can(events[at]):
                    break
                e = events[at]
                self.before[e.bit] = self.must(e, events[at - 1].bit if at else None)
                self.act(e)
                lanes[lane] += 1
        faults = set()
        if any(at < len(self.p.lanes[lane]) for lane, at in lanes.items()):
            faults.add("deadlock")
        for a, b in self.p.conflicts:
            if a.bit in self.before and b.bit in self.before and \
                    not self.before[a.bit] >> b.bit & 1 and not self.before[b.bit] >> a.bit & 1:
                faults.add("race")
                break
        if self.uninitialised:
            faults.add("uninitialised read")
        return faults


def sum_is_right(program, rng):
    """Does every rank have the sum of all inputs in the first half of its output, in some complete order? Only for
    programs without races, whose results are the same in all orders."""
    values = [None] * program.layout.bits
    inputs = [[rng.randrange(1, 1 << 40) for _ in range(16)] for _ in range(program.ranks)]
    for rank in range(program.ranks):
        first = program.layout.first["x", rank]
        values[first:first + 16] = inputs[rank]
    Run(program, rng, values).go()
    expected = [sum(column) for column in zip(*inputs)]
    for rank in range(program.ranks):
        first = program.layout.first["y", rank]
        if values[first:first + 16] != expected:
            return False
    return True
