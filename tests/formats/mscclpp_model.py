# SPDX-License-Identifier: Apache-2.0
"""An interpreter of MSCCL++ plans, written from the format's description alone: it shares no code with Peal.

Of the format it knows memory channels, plain data, nop, barrier and semaphores. A thread block is two lanes: threads that
signal and wait, and threads that move data; a nop or a barrier joins them. judge(plan) runs two launches back to back with
vector clocks and values. Signals of a channel have one writer and are taken in order, so happens-before does not depend on the
schedule, and one run finds all races. The caller of a rank owns its input and output between launches.
"""
import collections

from clocks import Clocks, Fault

SYNC = {"signal", "wait", "rlxsignal", "rlxwait", "sem_acquire", "sem_release"}


class Machine(Clocks):
    def __init__(self, top, launches=2):
        self.top, self.gpus, self.launches = top, top["gpus"], launches
        self.n, self.in_place = len(top["gpus"]), top["inplace"]
        self.blocks = [(r, t) for r, g in enumerate(self.gpus) for t in range(len(g["threadblocks"]))]
        # The clocks: data and sync lane of every block, then the callers.
        self.lanes = [(b, kind) for b in self.blocks for kind in ("data", "sync")]
        self.callers = {r: len(self.lanes) + r for r in range(self.n)}
        super().__init__(len(self.lanes) + self.n)
        self.pairs = {}
        for r, g in enumerate(self.gpus):
            seen = collections.Counter()
            for c, peer in enumerate(self.peers_of(r)):
                self.pairs[r, peer, seen[peer]] = c
                seen[peer] += 1

    def peers_of(self, r):
        return [p for c in self.gpus[r]["channels"] if c["channel_type"] == "memory" for p in c["connected_to"]]

    def other_end(self, r, channel):
        peers = self.peers_of(r)
        peer = peers[channel]
        return self.pairs.get((peer, r, peers[:channel].count(peer))), peer

    def place(self, r, buf, index):
        gpu = self.gpus[r]
        if index >= {"i": gpu["input_chunks"], "o": gpu["output_chunks"], "s": gpu["scratch_chunks"]}[buf]:
            raise Fault("bounds")
        if self.in_place and buf != "s":
            part = gpu["input_chunks"] if self.top["collective"] == "allgather" and buf == "i" else 0
            return r, "x", index + part * r
        return r, buf, index

    def cells(self, r, t, operand):
        tb = self.gpus[r]["threadblocks"][t]
        rank, buf = r, operand.get("type")
        if "buffer_id" in operand:
            ids = [i for ref in tb["remote_buffer_refs"] for i in ref["remote_buffer_ids"]]
            remote = self.gpus[r]["remote_buffers"][ids[operand["buffer_id"]]]
            rank, buf = remote["rank"], remote["type"]
        return [self.place(rank, buf, operand["index"] + i) for i in range(operand["size"])]

    # --- ops

    def data(self, lane, r, t, op):
        src = [self.cells(r, t, o) for o in op["src_buff"]]
        dst = [self.cells(r, t, o) for o in op["dst_buff"]]
        if op["name"] in ("put", "get", "copy"):
            for a, b in zip(src, dst):
                for x, y in zip(a, b):
                    self.store(lane, y, self.load(lane, x))
            return
        for i in range(len(src[0])):
            total = collections.Counter()
            for cells in src:
                total += self.load(lane, cells[i])
            for cells in dst:
                self.store(lane, cells[i], total)

    def sync(self, lane, r, t, op, launch):
        """False: it has to wait."""
        name = op["name"]
        if name == "sem_release":
            for s in op["semaphore_ids"]:
                self.released[r, s].append(self.tick(lane))
            return True
        if name == "sem_acquire":
            for s in op["semaphore_ids"]:
                if self.acquired[r, s] >= len(self.released[r, s]):
                    return False
                self.join(lane, self.released[r, s][self.acquired[r, s]])
                self.acquired[r, s] += 1
            return True
        own = [i for c in self.gpus[r]["threadblocks"][t]["channels"] if c["channel_type"] == "memory" for i in c["channel_ids"]]
        done = self.waiting.setdefault(lane, 0)
        for i in op["channel_ids"][done:]:
            back, peer = self.other_end(r, own[i])
            if "signal" in name:
                self.signals[peer, back].append(self.tick(lane))
                self.writers[peer, back].add(lane)
            else:
                if self.waited[r, own[i]] >= len(self.signals[r, own[i]]):
                    return False
                self.join(lane, self.signals[r, own[i]][self.waited[r, own[i]]])
                self.waited[r, own[i]] += 1
                self.waiters[r, own[i]].add(lane)
            self.waiting[lane] += 1
        self.waiting[lane] = 0
        return True

    def step(self, lane):
        (r, t), kind = self.lanes[lane]
        ops = self.gpus[r]["threadblocks"][t]["ops"]
        launch, at = self.at[lane]
        op = ops[at]
        if op["name"] in ("nop", "barrier"):
            joined = op.get("num_threadblocks", 1) if op["name"] == "barrier" else 1
            meeting = self.meetings[("b", r, op.get("barrier_id"), self.times[lane, op["barrier_id"]])
                                    if op["name"] == "barrier" else ("n", r, t, launch, at)]
            if lane not in meeting:
                meeting[lane] = self.tick(lane)
            if len(meeting) < 2 * joined:
                return False
            for clock in list(meeting.values()):
                self.join(lane, clock)
            if op["name"] == "barrier":
                self.times[lane, op["barrier_id"]] += 1
        elif (op["name"] in SYNC) != (kind == "sync"):
            pass
        elif kind == "data":
            self.data(lane, r, t, op)
        elif not self.sync(lane, r, t, op, launch):
            return False
        self.tick(lane)
        self.at[lane] = (launch, at + 1)
        return True

    # --- launches

    def sides(self, r):
        gpu = self.gpus[r]
        return ([self.place(r, "i", c) for c in range(gpu["input_chunks"])], [self.place(r, "o", c) for c in range(gpu["output_chunks"])])

    def enter(self, r):
        inputs, outputs = self.sides(r)
        lane = self.callers[r]
        for key in outputs:
            self.access(lane, key, True)
            if key not in inputs:
                self.memory.pop(key, None)
        for c, key in enumerate(inputs):
            self.store(lane, key, collections.Counter({(r, c): 1}))
        clock = self.tick(lane)
        for i, ((rank, _), _) in enumerate(self.lanes):
            if rank == r:
                self.join(i, clock)

    def expected(self, r, c):
        n, kind = self.n, self.top["collective"]
        if kind == "allreduce":
            return collections.Counter({(q, c): 1 for q in range(n)})
        if kind == "allgather":
            own = self.gpus[r]["input_chunks"]
            return collections.Counter({(c // own, c % own): 1})
        if kind == "alltoall":
            own = self.gpus[r]["input_chunks"] // n
            return collections.Counter({(c // own, r * own + c % own): 1})
        return None

    def leave(self, r):
        lane = self.callers[r]
        for i, ((rank, _), _) in enumerate(self.lanes):
            if rank == r:
                self.join(lane, self.clock[i])
        for c, key in enumerate(self.sides(r)[1]):
            want = self.expected(r, c)
            self.access(lane, key, False)
            if want is not None and self.memory.get(key) != want:
                self.wrong = True

    def run(self):
        fresh = collections.defaultdict
        self.wrong = False
        self.signals, self.waited = fresh(list), collections.Counter()
        self.released, self.acquired = fresh(list), collections.Counter()
        self.writers, self.waiters = fresh(set), fresh(set)
        self.meetings, self.times, self.waiting = fresh(dict), collections.Counter(), {}
        self.at = [(0, 0)] * len(self.lanes)
        launch = {r: 0 for r in range(self.n)}
        for r in launch:
            self.enter(r)
        moved = True
        while moved:
            moved = False
            for i, ((r, t), _) in enumerate(self.lanes):
                ops = self.gpus[r]["threadblocks"][t]["ops"]
                while launch[r] < self.launches and self.at[i][1] < len(ops) and self.step(i):
                    moved = True
            for r in launch:
                own = [i for i, ((q, _), _) in enumerate(self.lanes) if q == r]
                over = all(self.at[i][1] >= len(self.gpus[r]["threadblocks"][self.lanes[i][0][1]]["ops"]) for i in own)
                if launch[r] < self.launches and over:
                    self.leave(r)
                    launch[r] += 1
                    moved = True
                    for i in own:
                        self.at[i] = (launch[r], 0)
                    if launch[r] < self.launches:
                        self.enter(r)
        if any(count < self.launches for count in launch.values()):
            raise Fault("deadlock")
        if any(len(users) > 1 for users in (*self.writers.values(), *self.waiters.values())):
            raise Fault("unclear")
        if any(len(self.signals[key]) != self.waited[key] for key in set(self.signals) | set(self.waited)):
            raise Fault("unclear")  # signals accumulate over launches: more launches may show more
        if self.wrong:
            raise Fault("result")


def judge(top):
    try:
        Machine(top).run()
    except Fault as fault:
        return str(fault)
    except KeyError:
        return "unclear"
    return "proved"
