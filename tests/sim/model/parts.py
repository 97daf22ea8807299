# SPDX-License-Identifier: Apache-2.0
"""Transfers and what they pass through: DMA engines, memory ports, links, queues; and links as flows."""
from collections import deque
from fractions import Fraction
from math import ceil

from .machine import span

# Classes of events, in their order.
FREE, ARRIVE, STEP = 0, 1, 2


class Transfer:
    """A message from a PE to a PE, or a copy between the memories of one."""

    def __init__(self, kind, lane, nbytes, source, target, to):
        self.kind, self.lane, self.bytes = kind, lane, nbytes
        self.source, self.target, self.to = source, target, to
        self.at = None
        self.rate = Fraction(0)  # the largest ps/B so far
        self.stored = False  # in a router's buffer: links before it no longer limit its speed
        self.flowed = False  # fluid: the time of its bytes has been counted
        self.is_add = False
        self.engine_bytes = nbytes
        self.protocol_setup = 0
        self.in_engine = False
        self.delay = 0  # of its last byte, caused by arbitration
        self.nominal = None  # its arrival without that delay
        self.done = None  # called when it has arrived
        self.left = None  # called when the engine has read all of it


class Engine:
    """A DMA engine with one channel, or the two that share it."""

    def __init__(self, run, rank, number, names):
        self.run, self.rank, self.component = run, rank, 2 * rank + number
        self.names = names
        self.queues = {name: deque() for name in names}
        self.begun = {name: False for name in names}
        self.left = {}
        self.granted = None
        self.turn = names[0]
        self.grant = 0
        self.busy = dict.fromkeys(names, 0)
        self.waiters = []
        self.last = self.last_lane = None

    def full(self, name):
        return len(self.queues[name]) - self.begun[name] >= self.run.m.int("dma.queue")

    def put(self, name, x):
        queue = self.queues[name]
        self.run.ties += self.last == self.run.now and self.last_lane is not x.lane
        self.last, self.last_lane = self.run.now, x.lane
        queue.append(x)
        x.in_engine = True
        if len(queue) > 1:
            return
        self.left[name] = x.engine_bytes
        if self.granted is None:
            self.next()
        elif self.granted != name:
            self.cut()

    def cut(self):
        """The other channel asks: the one that is served stops after the current packet."""
        packet = self.run.m.int("dma.packet_bytes")
        rate = self.queues[self.granted][0].engine_rate
        if self.size <= packet or rate == 0:
            return
        elapsed = 0 if self.base is None else max(0, self.run.now - self.base)
        packets = 1
        while span(packets * packet, rate) < elapsed:
            packets += 1
        if packets * packet < self.size:
            self.size = packets * packet
            if self.base is not None:
                self.schedule()

    def next(self):
        m = self.run.m
        want = "comm" if m["dma.arb"] == "priority" else self.turn
        names = [n for n in self.names if self.queues[n]]
        if not names:
            return
        name = want if want in names else names[0]
        self.granted = name
        self.turn = [n for n in self.names if n != name][0] if len(self.names) == 2 else name
        self.since = self.run.now
        self.size = self.left[name]
        if len(names) == 2:
            self.size = min(self.size, m.int("dma.packet_bytes"))
        if self.begun[name]:
            self.base = self.run.now
            self.schedule()
            return
        self.begun[name] = True
        waiters, self.waiters = self.waiters, []
        for lane in sorted(waiters, key=lambda lane: lane.index):
            self.run.wake(lane)
        x = self.queues[name][0]
        setup = 0 if x.kind == "notify" else m.int("dma.setup_ps") + x.protocol_setup
        self.base = None
        if x.source and m.ports[x.source] and x.kind != "request":
            unit = self.run.port_of(x.at, x.source)
            self.run.at(self.run.now + setup, ARRIVE, unit.component, self.source_port, x, unit)
        else:
            self.begin(x, self.run.now + setup)

    def source_port(self, x, unit):
        self.begin(x, unit.take(self.run.now, span(x.bytes, self.run.m.mem_rate[x.source]), x.lane))

    def begin(self, x, base):
        self.base = base
        x.nominal_end = base + span(x.engine_bytes, x.engine_rate)
        latency = self.run.m.mem_lat[x.source] if x.source and x.kind != "request" else 0
        self.schedule()
        self.run.route(x, base + latency)

    def schedule(self):
        self.grant += 1
        rate = self.queues[self.granted][0].engine_rate
        self.run.at(self.base + span(self.size, rate), FREE, self.component, self.ended, self.grant)

    def ended(self, grant):
        if grant != self.grant:
            return
        name = self.granted
        self.busy[name] += self.run.now - self.since
        self.left[name] -= self.size
        self.granted = None
        if self.left[name] == 0:
            x = self.queues[name].popleft()
            self.begun[name] = False
            if self.queues[name]:
                self.left[name] = self.queues[name][0].engine_bytes
            x.in_engine = False
            x.delay = self.run.now - x.nominal_end
            if x.left:
                x.left()
            if x.nominal is not None:
                self.run.deliver_at(x, x.nominal + x.delay)
        if self.granted is None:
            self.next()


class Ports:
    def __init__(self, run, count, component):
        self.run, self.free, self.component = run, [0] * count, component
        self.last = self.last_lane = None

    def take(self, now, held, lane):
        """Takes the port that is free first, now or when it becomes free. Returns that time."""
        self.run.ties += self.last == now and self.last_lane is not lane
        self.last, self.last_lane = now, lane
        i = self.free.index(min(self.free))
        start = max(now, self.free[i])
        self.free[i] = start + held
        return start


class Link:
    def __init__(self):
        self.free = self.bytes = self.messages = 0
        self.held = []  # (from, to) of each message
        self.flows = []  # fluid: (from, to, busy time)
        self.last_head = self.last_lane = None

    def busy(self, end):
        """The busy time up to the end of the run; what is in progress after that does not count."""
        flowed = [taken if end >= last else int(float(taken) * float(end - first) / float(last - first))
                  for first, last, taken in self.flows if end > first or end >= last]
        return sum(max(0, min(last, end) - first) for first, last in self.held) + sum(flowed)


class Queue:
    """A channel: messages in ring order until their credit is back."""

    def __init__(self, depth):
        self.depth = depth
        self.ring, self.arrived = [], deque()
        self.expected = deque()  # messages not received yet, in order
        self.held = deque()  # received in place, not freed
        self.sender = self.receiver = None  # lanes that wait
        self.used = 0


class Lane:
    def __init__(self, index, rank, number):
        self.index, self.rank, self.number = index, rank, number
        self.writes = []  # in progress: (rank written to, transfer)
        self.fence = None  # called when one of them arrives
        self.pending = []
        self.registers = {}
        self.program = None
        self.ended = False
        self.launch = 0
        self.wait = None  # (cell, condition, since)


class Fluid:
    """Messages as flows that share links max-min fairly, by weight; times are rounded up."""

    def __init__(self, run):
        self.run, self.flows, self.last, self.version = run, [], 0, 0

    def start(self, x):
        path = self.run.m.path(x.at, x.to)
        limit = max(x.rate, self.run.target_rate(x))
        latency = sum(link[2] for link in path)
        weight = Fraction(1)
        if self.run.m["links.fluid_weight"] == "latency" and latency:
            weight = Fraction(1, latency)
        for key, _, _, leads in path:
            link = self.run.links.setdefault(key, Link())
            link.leads = leads
            link.bytes += x.bytes
            link.messages += 1
        self.flows.append({"x": x, "path": path, "left": Fraction(x.bytes), "limit": limit, "weight": weight,
                           "rate": Fraction(0), "began": self.run.now})
        self.again(self.run.now)

    def again(self, time):
        self.version += 1
        self.run.at(time, STEP, 1 << 30, self.change, self.version)

    def change(self, version):
        if version != self.version:
            return
        elapsed, self.last = self.run.now - self.last, self.run.now
        flows, self.flows = self.flows, []
        for flow in flows:
            flow["left"] -= flow["left"] if flow["rate"] is None else flow["rate"] * elapsed
            if flow["left"] > 0:
                self.flows.append(flow)
        self.share()
        flows += [flow for flow in self.flows if flow["rate"] is None]
        self.flows = [flow for flow in self.flows if flow["rate"] is not None]
        for flow in flows:
            if not any(flow is other for other in self.flows):
                self.finish(flow)
        if self.flows:
            self.again(self.run.now + min(ceil(flow["left"] / flow["rate"]) for flow in self.flows))

    def finish(self, flow):
        x, m = flow["x"], self.run.m
        for key, level, _, _ in flow["path"]:
            self.run.links[key].flows.append((flow["began"], self.run.now, span(x.bytes, m.link_rate[level])))
        x.at, x.flowed = x.to, True
        x.rate = Fraction(0)
        self.run.arrive_by_flow(x)

    def share(self):
        """Max-min fair rates: all flows grow at the same speed (times their weight) until a link or a flow's own limit
        is reached; those are fixed, and the others grow on."""
        open_flows = list(self.flows)
        room = {}
        for flow in open_flows:
            for key, level, _, _ in flow["path"]:
                rate = self.run.m.link_rate[level]
                room[key] = 1 / rate if rate else None
        while open_flows:
            load = {}
            for flow in open_flows:
                for key, _, _, _ in flow["path"]:
                    load[key] = load.get(key, 0) + flow["weight"]
            levels = {key: room[key] / load[key] for key in load if room[key] is not None}
            limits = [1 / f["limit"] / f["weight"] for f in open_flows if f["limit"]]
            level = min(list(levels.values()) + limits, default=None)
            if level is None:
                for flow in open_flows:
                    flow["rate"] = None  # nothing limits it
                return
            still = []
            for flow in open_flows:
                own = flow["limit"] and 1 / flow["limit"] / flow["weight"] == level
                if own or any(levels.get(key) == level for key, _, _, _ in flow["path"]):
                    flow["rate"] = level * flow["weight"]
                    for key, _, _, _ in flow["path"]:
                        if room[key] is not None:
                            room[key] -= flow["rate"]
                else:
                    still.append(flow)
            open_flows = still
