# SPDX-License-Identifier: Apache-2.0
"""An interpreter of MSCCL XML, written from the format's description alone: it shares no code with Peal.

judge(text, ...) runs the file for two launches back to back with vector clocks and values. Every FIFO has one sender and one
receiver and every flag one writer, so happens-before does not depend on the schedule, and one run finds all races. A step of
several chunks is one message in small calls and a message per chunk in large ones: both are run. Returns "proved" or the first
fault: "deadlock", "race", "bounds", "uninitialised", "result", "channel".
"""
import collections
import xml.etree.ElementTree as tree

from clocks import Clocks, Fault

SENDS = {"s", "rcs", "rrs", "rrcs"}
RECEIVES = {"r", "rcs", "rrs", "rrc", "rrcs"}
DEPTH = {"Simple": 2, "LL": 8, "LL128": 8}


def cut(step, index, pieces):
    """The parts that a step is done in; `index` is its number in its block."""
    step, cnt = dict(step, index=index), int(step["cnt"])
    if not pieces or cnt < 2 or step["type"] not in SENDS | RECEIVES:
        return [step]
    parts = [dict(step, cnt="1", srcoff=str(int(step["srcoff"]) + i), dstoff=str(int(step["dstoff"]) + i), hasdep="0", depid="-1")
             for i in range(cnt)]
    parts[0]["depid"], parts[-1]["hasdep"] = step["depid"], step["hasdep"]
    return parts


class Block:
    def __init__(self, gpu, node, pieces):
        self.gpu, self.id = gpu, int(node.get("id"))
        self.send, self.recv, self.chan = int(node.get("send")), int(node.get("recv")), int(node.get("chan"))
        steps = sorted((dict(s.attrib) for s in node), key=lambda s: int(s["s"]))
        self.steps = [part for i, step in enumerate(steps) for part in cut(step, i, pieces)]


class Machine(Clocks):
    def __init__(self, text, in_place, depth=None, launches=2, pieces=False):
        algo = tree.fromstring(text)
        self.coll, self.nranks = algo.get("coll"), int(algo.get("ngpus"))
        self.nchunks, self.in_place = int(algo.get("nchunksperloop")), in_place
        self.depth, self.launches = depth or DEPTH[algo.get("proto")], launches
        self.root = int(algo.get("root", 0))
        self.scratch = {int(g.get("id")): int(g.get("s_chunks")) for g in algo}
        self.blocks = [Block(int(g.get("id")), b, pieces) for g in algo for b in sorted(g, key=lambda b: int(b.get("id")))]
        self.index = {(b.gpu, b.id): i for i, b in enumerate(self.blocks)}
        super().__init__(len(self.blocks))
        n, p = self.nchunks, self.nranks
        if self.coll in ("allgather", "reducescatter", "alltoall"):
            self.x = n // p if self.coll == "allgather" else n
            self.y = n // p if self.coll == "reducescatter" else n
        elif self.coll == "gather":
            self.x, self.y = n, n * p
        elif self.coll == "scatter":
            self.x, self.y = n * p, n
        else:
            self.x = self.y = n
        ends = collections.defaultdict(set)
        for i, b in enumerate(self.blocks):
            for s in b.steps:
                if s["type"] in SENDS:
                    ends["s", b.gpu, b.send, b.chan].add(i)
                if s["type"] in RECEIVES:
                    ends["r", b.recv, b.gpu, b.chan].add(i)
        if any(len(users) > 1 for users in ends.values()):
            raise Fault("channel")

    def place(self, gpu, buf, off):
        """A chunk's memory, in place or not."""
        if off < 0 or off >= {"i": self.x, "o": self.y, "s": self.scratch[gpu]}[buf]:
            raise Fault("bounds")
        at_root = self.coll not in ("gather", "scatter") or gpu == self.root
        if self.in_place and buf != "s" and at_root:
            if self.coll in ("allgather", "gather"):
                return ("o", gpu, off + (gpu * self.x if buf == "i" else 0))
            if self.coll in ("reducescatter", "scatter"):
                return ("i", gpu, off + (gpu * self.y if buf == "o" else 0))
            return ("i", gpu, off)
        return (buf, gpu, off)

    def load_side(self, block, s, side):
        """The chunks of a step's source or destination."""
        gpu, first = self.blocks[block].gpu, int(s[side + "off"])
        return [self.load(block, self.place(gpu, s[side + "buf"], first + i)) for i in range(int(s["cnt"]))]

    def store_dst(self, block, s, values):
        for i, value in enumerate(values):
            self.store(block, self.place(self.blocks[block].gpu, s["dstbuf"], int(s["dstoff"]) + i), value)

    def step(self, block):
        """Runs the next part of a step of the block; False: it has to wait."""
        b, (launch, number, phase) = self.blocks[block], self.at[block]
        s = b.steps[number]
        kind, cnt = s["type"], int(s["cnt"])
        if phase == 0 and int(s["depid"]) >= 0:
            other = self.index[b.gpu, int(s["depid"])]
            found = [clock for (flag, clock) in self.flags[other, launch] if flag >= int(s["deps"])]
            if not found:
                return False
            self.join(block, found[0])
        if phase == 0 and kind in RECEIVES:
            fifo = (b.recv, b.gpu, b.chan)
            if self.received[fifo] >= len(self.sent[fifo]):
                return False
            values, clock = self.sent[fifo][self.received[fifo]]
            self.received[fifo] += 1
            self.join(block, clock)
            if len(values) != cnt:
                raise Fault("channel")
            if "rr" in kind:
                values = [a + v for a, v in zip(self.load_side(block, s, "src"), values)]
            if kind in ("r", "rcs", "rrc", "rrcs"):
                self.store_dst(block, s, values)
            self.held[block] = values
        if kind in SENDS:
            fifo = (b.gpu, b.send, b.chan)
            number_sent = len(self.sent[fifo])
            if number_sent >= self.depth + len(self.freed[fifo]):
                self.at[block] = (launch, number, 1 if kind in RECEIVES else 0)
                return False
            if number_sent >= self.depth:
                self.join(block, self.freed[fifo][number_sent - self.depth])
            values = self.held[block] if kind in RECEIVES else self.load_side(block, s, "src")
            self.sent[fifo].append((values, self.tick(block)))
        if kind in RECEIVES:
            self.freed[b.recv, b.gpu, b.chan].append(self.tick(block))
        if kind == "cpy":
            self.store_dst(block, s, self.load_side(block, s, "src"))
        if kind == "re":
            mine, other = self.load_side(block, s, "dst"), self.load_side(block, s, "src")
            self.store_dst(block, s, [a + v for a, v in zip(mine, other)])
        clock = self.tick(block)
        if s["hasdep"] == "1":
            self.flags[block, launch].append((s["index"], clock))
        self.at[block] = (launch, number + 1, 0)
        return True

    def enter(self, gpu):
        for c in range(self.x):
            self.memory[self.place(gpu, "i", c)] = collections.Counter({(gpu, c): 1})
        if not self.in_place:
            for c in range(self.y):
                self.memory.pop(("o", gpu, c), None)

    def expected(self, gpu, c):
        p, n = self.nranks, self.nchunks
        every = collections.Counter({(r, c): 1 for r in range(p)})
        return {"allreduce": lambda: every,
                "reduce": lambda: every if gpu == self.root else None,
                "broadcast": lambda: collections.Counter({(self.root, c): 1}),
                "allgather": lambda: collections.Counter({(c // self.x, c % self.x): 1}),
                "gather": lambda: collections.Counter({(c // n, c % n): 1}) if gpu == self.root else None,
                "reducescatter": lambda: collections.Counter({(r, gpu * self.y + c): 1 for r in range(p)}),
                "scatter": lambda: collections.Counter({(self.root, gpu * n + c): 1}),
                "alltoall": lambda: collections.Counter({(c // (n // p), gpu * (n // p) + c % (n // p)): 1}),
                }[self.coll]()

    def leave(self, gpu):
        for c in range(self.y if self.coll != "custom" else 0):
            want = self.expected(gpu, c)
            if want is not None and self.memory.get(self.place(gpu, "o", c)) != want:
                raise Fault("result")

    def run(self):
        n = len(self.blocks)
        self.held = {}
        self.sent, self.freed = collections.defaultdict(list), collections.defaultdict(list)
        self.received, self.flags = collections.Counter(), collections.defaultdict(list)
        self.at = [(0, 0, 0)] * n
        launch = {g: 0 for g in range(self.nranks)}
        wrong = None
        for g in launch:
            self.enter(g)
        moved = True
        while moved:
            moved = False
            for i, b in enumerate(self.blocks):
                while self.at[i][0] == launch[b.gpu] and launch[b.gpu] < self.launches and \
                        self.at[i][1] < len(b.steps) and self.step(i):
                    moved = True
            for g in launch:
                own = [i for i, b in enumerate(self.blocks) if b.gpu == g]
                if launch[g] < self.launches and all(self.at[i][1] >= len(self.blocks[i].steps) for i in own):
                    try:
                        self.leave(g)
                    except Fault as fault:
                        wrong = wrong or fault
                    launch[g] += 1
                    moved = True
                    for i in own:
                        for k in own:
                            self.join(i, self.clock[k])
                    for i in own:
                        self.at[i] = (launch[g], 0, 0)
                    if launch[g] < self.launches:
                        self.enter(g)
        if any(count < self.launches for count in launch.values()):
            raise Fault("deadlock")
        if any(len(sent) != self.received[fifo] for fifo, sent in self.sent.items()):
            raise Fault("channel")
        if wrong:
            raise wrong


def judge(text, in_place, depth=None):
    try:
        Machine(text, in_place, depth).run()
        Machine(text, in_place, depth, pieces=True).run()
    except Fault as fault:
        return str(fault)
    return "proved"
