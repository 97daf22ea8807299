# SPDX-License-Identifier: Apache-2.0
"""Events, lanes, and the path of a transfer.

Everything is an event at its own time; nothing is worked out ahead. Events are ordered by time, then class, then component,
then creation (docs/simulator.md, "Time"). A lane is a generator: it yields the time at which it goes on, or None if
something has to wake it.
"""
import heapq
from fractions import Fraction

from .data import Data
from .machine import Machine, span
from .ops import Ops
from .parts import ARRIVE, STEP, Engine, Fluid, Lane, Link, Ports, Queue


class Run(Ops, Data):
    def __init__(self, machine, plan, launches=1, depth=None):
        self.m = Machine(machine)
        self.plan, self.launches = plan, launches
        self.now, self.seq, self.heap = 0, 0, []
        self.nranks = plan["nranks"]
        self.pe = self.m.place(self.nranks)
        self.kinds = {b["name"]: b["kind"] for b in plan["bufs"]}
        self.shared = {b["name"] for b in plan["bufs"] if b["kind"] == "window" or b.get("symmetric")}
        self.cols = {b["name"]: b.get("cols", 0) for b in plan["bufs"]}
        assert all(self.kinds[b["name"]] == b["kind"] for b in plan["bufs"]), "two buffers of one name"
        self.signals = {s["name"]: s["kind"] for s in plan["signals"]}
        self.links, self.ports = {}, {}
        self.queues = [Queue(depth or c["depth"]) for c in plan["channels"]]
        self.credit_times = [self.credit_time(c) for c in plan["channels"]]
        self.cells = {}
        self.added = {}  # to shared cells, by launches that have ended
        self.totals = self.shared_totals()
        self.math_free = [0] * self.nranks
        self.math_busy = [0] * self.nranks
        self.math_last, self.math_at = [None] * self.nranks, [None] * self.nranks
        self.engines = []
        for rank in range(self.nranks):
            if self.m["dma.arb"] == "independent":
                data, comm = Engine(self, rank, 0, ["data"]), Engine(self, rank, 1, ["comm"])
            else:
                data = comm = Engine(self, rank, 0, ["data", "comm"])
            self.engines.append({"data": data, "comm": comm})
        self.fluid = Fluid(self) if self.m["links.mode"] == "fluid" else None
        self.transfers = self.messages = self.moves = self.polls = self.stalls = 0
        self.ties = 0  # messages that asked for a link, port or engine at the same instant: their order is not defined
        self.ends = [0] * self.nranks
        self.data_begin()
        self.active = [0] * self.nranks
        self.lanes = []
        for rank in range(self.nranks):
            for number in range(len(plan["ranks"][rank]["lanes"])):
                self.lanes.append(Lane(number * self.nranks + rank, rank, number))
        for rank in range(self.nranks):
            self.start_launch(rank, 0)
        while self.heap:
            self.now, _, _, _, call, args = heapq.heappop(self.heap)
            call(*args)

    def result(self):
        end = float("inf") if any(self.active) else max(self.ends)
        links = sorted((self.link_name(key), link.bytes, link.messages, link.busy(end))
                       for key, link in self.links.items() if link.messages)
        return {
            "deadlock": any(self.active), "time_ps": max(self.ends), "pe": self.pe, "end_ps": self.ends,
            "math_ps": self.math_busy,
            "dma_data_ps": [e["data"].busy["data"] for e in self.engines],
            "dma_comm_ps": [e["comm"].busy["comm"] for e in self.engines],
            "transfers": self.transfers, "messages": self.messages, "moves": self.moves, "polls": self.polls,
            "credit_stalls": self.stalls, "slots_used": max([q.used for q in self.queues], default=0),
            "links": links, "data_hash": self.data_hash(),
        }

    def link_name(self, key):
        m = self.m
        if m.flat:
            return f"switch->pe{key // 8}" if key % 8 else f"pe{key // 8}->switch"
        if key >= m.count * 8:
            sip, back = divmod(key - m.count * 8, 2)
            first = m.count // m.sips
            return f"pe{sip * first}->pe{(sip + (-1 if back else 1)) % m.sips * first}"
        return f"pe{key // 8}->pe{self.links[key].leads}"

    # Events and lanes.

    def at(self, time, kind, component, call, *args):
        assert time >= self.now
        self.seq += 1
        heapq.heappush(self.heap, (time, kind, component, self.seq, call, args))

    def wake(self, lane):
        if not lane.awake:
            lane.awake = True
            self.at(self.now, STEP, lane.index, self.step, lane)

    def step(self, lane):
        lane.awake = True
        for time in lane.program:
            if time is None:
                lane.awake = False
                return
            if time > self.now:
                self.at(time, STEP, lane.index, self.step, lane)
                return

    def start_launch(self, rank, launch):
        if launch == self.launches:
            return
        lanes = [lane for lane in self.lanes if lane.rank == rank]
        self.active[rank] = len(lanes)
        for lane in lanes:
            lane.launch, lane.counts, lane.awake = launch, {}, False
            lane.program = self.run_lane(lane)
            self.wake(lane)

    def end_lane(self, lane):
        rank = lane.rank
        self.active[rank] -= 1
        self.ends[rank] = self.now
        if self.active[rank]:
            return
        for cell, totals in self.totals.items():
            if cell[0] == rank:
                self.added[cell] = self.added.get(cell, 0) + totals[lane.launch % self.plan["period"]]
        self.start_launch(rank, lane.launch + 1)

    def run_lane(self, lane):
        yield self.now + self.m.ps("ccl.launch_ns")
        for op in self.plan["ranks"][lane.rank]["lanes"][lane.number]:
            yield self.now + self.m.int("pe.issue_ps")
            yield from self.settle_pending(lane, op)
            yield from getattr(self, "op_" + op["op"])(lane, op)
            if op["op"] in ("copy", "compute", "accumulate"):
                self.take_effect(lane, op)
        yield from self.drain(lane)
        self.end_lane(lane)

    def noticed(self, since):
        """The time at which a lane that is blocked since then notices what happens now."""
        if self.now == since:
            return since  # it has not waited
        if self.m["ipcq.backpressure"] == "sleep":
            return self.now + self.m.int("ipcq.wake_ps")
        poll = self.m.int("ipcq.poll_ps")
        looks = -(-(self.now - since) // poll)
        self.polls += looks + 1
        return since + looks * poll

    # Transfers.

    def engine_room(self, lane, name):
        engine = self.engines[lane.rank][name]
        while engine.full(name):
            engine.waiters.append(lane)
            yield None

    def hand_over(self, lane, name, x):
        m = self.m
        x.at = self.pe[lane.rank]
        x.engine_rate = max(m.dma_rate, m.mem_rate[x.source] if x.source and x.kind != "request" else 0)
        if x.kind in ("send", "write", "request"):
            x.protocol_setup, rate = m.protocol(x.engine_bytes)
            x.engine_rate = max(x.engine_rate, rate)
        x.rate = x.engine_rate
        if x.kind == "local":
            self.moves += 1
        else:
            self.transfers += 1
        self.engines[lane.rank][name].put(name, x)

    def port_of(self, pe, mem):
        key = self.m.memory(pe, mem)
        if key not in self.ports:
            # The numbers of components follow those of links, memory by memory.
            order = ["tcm", "sram", "hbm"].index(mem)
            self.ports[key] = Ports(self, self.m.ports[mem], self.m.count * 16 + order * self.m.count + key[1])
        return self.ports[key]

    def route(self, x, head):
        if x.at == x.to:
            self.reach(x, head)
        elif self.fluid:
            latency = sum(link[2] for link in self.m.path(x.at, x.to))
            self.at(head + latency, ARRIVE, 0, self.fluid.start, x)
        else:
            hop = self.m.hop(x.at, x.to)
            self.at(head, ARRIVE, hop[0], self.cross, x, hop)

    def cross(self, x, hop):
        key, level, latency, leads = hop
        link = self.links.setdefault(key, Link())
        link.leads = leads
        self.ties += link.last_head == self.now and (link.last_lane is not x.lane or x.kind == "credit")
        link.last_head, link.last_lane = self.now, x.lane
        x.rate = self.m.link_rate[level] if x.stored else max(x.rate, self.m.link_rate[level])
        held = span(x.bytes, x.rate)
        start = max(self.now, link.free)
        link.free = start + held
        link.held.append((start, link.free))
        link.bytes += x.bytes
        link.messages += 1
        x.at = leads
        if self.m["links.mode"] == "store-and-forward" and x.at != x.to:
            x.stored = True
            self.route(x, start + latency + held)
        else:
            self.route(x, start + latency)

    def target_rate(self, x):
        return self.m.mem_rate[x.target] * (2 if x.is_add else 1) if x.target else Fraction(0)

    def reach(self, x, head):
        """The head reaches the destination memory."""
        x.rate = max(x.rate, self.target_rate(x))
        if x.target and self.m.ports[x.target]:
            unit = self.port_of(x.to, x.target)
            self.at(head, ARRIVE, unit.component, self.target_port, x, unit)
        else:
            self.fill(x, head)

    def arrive_by_flow(self, x):
        """Fluid: its bytes were written as they came; a limited port is taken only now."""
        self.reach(x, self.now)

    def target_port(self, x, unit):
        self.fill(x, unit.take(self.now, span(x.bytes, x.rate), x.lane))

    def fill(self, x, start):
        latency = self.m.mem_lat[x.target] if x.target else 0
        there = start + latency + (0 if x.flowed else span(x.bytes, x.rate))
        if x.kind == "request":
            self.at(there, ARRIVE, x.lane.rank, self.answer, x)
        else:
            self.at(there, ARRIVE, x.lane.rank, self.nominally_there, x)

    def nominally_there(self, x):
        """The last byte arrives now, unless the engine has delayed it."""
        if x.in_engine:
            x.nominal = self.now
        else:
            self.deliver_at(x, self.now + x.delay)

    def deliver_at(self, x, time):
        if time == self.now:
            x.done(x)
        else:
            self.at(time, ARRIVE, x.lane.rank, x.done, x)

    def answer(self, x):
        """A request has arrived: the data goes back."""
        x.kind, x.bytes, x.target = "answer", x.engine_bytes, x.load_target
        x.to, x.stored, x.flowed = self.pe[x.lane.rank], False, False
        x.rate = max(self.m.dma_rate, self.m.mem_rate[x.source], self.m.protocol(x.bytes)[1])
        if self.m.ports[x.source]:
            unit = self.port_of(x.at, x.source)
            start = unit.take(self.now, span(x.bytes, self.m.mem_rate[x.source]), x.lane)
        else:
            start = self.now
        self.route(x, start + self.m.mem_lat[x.source])
