# SPDX-License-Identifier: Apache-2.0
"""The ops, as generators that yield until their lane may go on."""
from fractions import Fraction

from .machine import SIZES, span
from .parts import FREE, STEP, Transfer

INF = float("inf")
# Functions that combine any number of operands, two at a time; all others take one step.
FOLDS = {"add", "mul", "maximum", "minimum", "and", "or", "xor"}
MAX_PENDING = 8
RELAXED, SET, EQUAL = 1, 4, 8  # flags of an op


class Pending:
    """Asynchronous computes and recvs: the lane goes on up to the first op that needs their result."""

    def copy_out(self, queue):
        """Copies messages that have arrived and have a recv; the queue's controller does it, without lane or engine."""
        m = self.m
        while queue.arrived and queue.expected and queue.expected[0].there:
            entry, x = queue.arrived.popleft(), queue.expected.popleft()
            op = entry["op"]
            mem, space = self.memory_of(op["dst"]), m["ipcq.space"]
            nbytes = self.elements(op) * SIZES[op["dst"]["dtype"]]
            copy = span(nbytes, max(m.mem_rate[mem], m.mem_rate[space])) + m.mem_lat[mem] + m.mem_lat[space]
            entry["end"] = self.now + (copy if nbytes else 0)
            self.at(entry["end"], STEP, entry["lane"].index, self.copied_out, entry["lane"], op, x)
            if entry["lane"].fence == "pending":
                self.wake(entry["lane"])

    def copied_out(self, lane, op, x):
        self.copy_payload(lane, op, x)
        self.give_back(op["channel"], x)

    def await_entry(self, lane, entry):
        while entry["end"] is None:
            lane.fence = "pending"
            yield None
        lane.fence = False
        if entry["end"] > self.now:
            yield entry["end"]
        lane.pending.remove(entry)

    def drain(self, lane):
        while lane.pending:
            yield from self.await_entry(lane, lane.pending[0])

    def pending_room(self, lane):
        if len(lane.pending) == MAX_PENDING:
            yield from self.await_entry(lane, lane.pending[0])

    def settle_pending(self, lane, op):
        if op["op"] in ("wait", "peek"):
            return
        if op["op"] == "notify":
            yield from self.drain(lane)
        for entry in list(lane.pending):
            if entry["end"] is not None and entry["end"] <= self.now:
                lane.pending.remove(entry)
            elif self.conflict(lane, entry["op"], op) or self.publishes(entry["op"], op):
                yield from self.await_entry(lane, entry)

    def ranges(self, lane, op):
        """(place, from, to, writes) of every operand."""
        refs = [(ref, True) for ref in ([op["dst"]] if "dst" in op else []) + op.get("also", [])]
        for ref, writes in refs + [(ref, False) for ref in op.get("src", [])]:
            if "channel" in ref:
                yield (("slot", ref["channel"]), 0, INF, writes)
            elif "buf" in ref and self.elements(op):
                size = SIZES[ref["dtype"]]
                offset = ref["offset"]
                if isinstance(offset, list):
                    offset = offset[lane.launch % self.plan["period"]]
                stride = (self.cols[ref["buf"]] or ref.get("pitch", op["count"])) * size
                start = ref["row"] * stride + offset
                yield ((ref["rank"], ref["buf"]), start, start + (op["rows"] - 1) * stride + op["count"] * size, writes)

    def publishes(self, earlier, later):
        """Whether `later` is a send or free, after which a peer may use memory that `earlier` works on."""
        refs = ([earlier["dst"]] if "dst" in earlier else []) + earlier.get("also", []) + earlier.get("src", [])
        return later["op"] in ("send", "free") and any(ref["buf"] in self.shared for ref in refs if "buf" in ref)

    def conflict(self, lane, earlier, later):
        if later["op"] == "recv_slot":
            return earlier["op"] == "recv" and earlier["channel"] == later["channel"]
        if later["op"] == "free":
            return any(place == ("slot", later["channel"]) for place, _, _, _ in self.ranges(lane, earlier))
        for place, start, end, writes in self.ranges(lane, earlier):
            for other, other_start, other_end, other_writes in self.ranges(lane, later):
                if (writes or other_writes) and place == other and start < other_end and other_start < end:
                    return True
        return False


class Queues:
    """Sends, recvs, credits."""

    def credit_time(self, channel):
        m = self.m
        if m["credit.mode"] != "fast":
            return 0
        path = m.path(self.pe[channel["receiver"]], self.pe[channel["sender"]])
        narrowest = max((m.link_rate[link[1]] for link in path), default=Fraction(0))
        return sum(link[2] for link in path) + span(m.int("credit.bytes"), narrowest)

    def op_send(self, lane, op):
        m, number = self.m, op["channel"]
        queue, channel = self.queues[number], self.plan["channels"][number]
        yield from self.wait_for_writes(lane)
        while len(queue.ring) >= queue.depth:
            queue.sender, since = lane, self.now
            yield None
            self.stalls += 1
            yield self.noticed(since)
        yield from self.engine_room(lane, "comm")
        src = op["src"][0]
        nbytes = self.elements(op) * SIZES[src["dtype"]] + m.int("ipcq.header_bytes")
        x = Transfer("send", lane, nbytes, self.memory_of(src), m["ipcq.space"], self.pe[channel["receiver"]])
        x.there = x.freed = False
        self.capture(lane, op, x)
        x.done = lambda _: self.arrive(queue, x)
        queue.ring.append(x)
        queue.expected.append(x)
        queue.used = max(queue.used, len(queue.ring))
        self.messages += 1
        if m["pe.send_async"] == "true":
            self.hand_over(lane, "comm", x)
            return
        read = []

        def left():
            read.append(True)
            self.wake(lane)

        x.left = left
        self.hand_over(lane, "comm", x)
        while not read:
            yield None

    def arrive(self, queue, x):
        x.there = True
        if queue.receiver and queue.expected[0] is x:
            lane, queue.receiver = queue.receiver, None
            self.wake(lane)
        self.copy_out(queue)

    def message(self, lane, queue):
        if not queue.expected or not queue.expected[0].there:
            queue.receiver, since = lane, self.now
            yield None
            yield self.noticed(since)
        lane.message = queue.expected.popleft()

    def op_recv(self, lane, op):
        queue, dst = self.queues[op["channel"]], op["dst"]
        nbytes = self.elements(op) * SIZES[dst["dtype"]]
        if self.m["pe.recv_async"] == "true":
            yield from self.pending_room(lane)
            lane.pending.append({"op": op, "end": None, "posted": self.now, "lane": lane})
            queue.arrived.append(lane.pending[-1])
            self.copy_out(queue)
            return
        yield from self.message(lane, queue)
        x = lane.message
        yield from self.move(lane, nbytes, self.m["ipcq.space"], self.memory_of(dst))
        self.copied_out(lane, op, x)

    def op_recv_slot(self, lane, op):
        queue = self.queues[op["channel"]]
        yield from self.message(lane, queue)
        queue.held.append(lane.message)

    def op_free(self, lane, op):
        self.give_back(op["channel"], self.queues[op["channel"]].held.popleft())
        yield self.now

    def give_back(self, number, x):
        """The slot is free: its credit returns to the sender."""
        queue, channel = self.queues[number], self.plan["channels"][number]

        def back(_=None):
            x.freed = True
            while queue.ring and queue.ring[0].freed:
                queue.ring.pop(0)
            if queue.sender and len(queue.ring) < queue.depth:
                lane, queue.sender = queue.sender, None
                self.wake(lane)

        if self.m["credit.mode"] == "fabric":
            credit = Transfer("credit", x.lane, self.m.int("credit.bytes"), None, None, self.pe[channel["sender"]])
            credit.at, credit.done = self.pe[channel["receiver"]], back
            self.route(credit, self.now)
        else:
            self.at(self.now + self.credit_times[number], FREE, channel["sender"], back)


class Signals:
    """Cells, notify, wait, peek."""

    def cell_of(self, lane, op):
        cell = op["cell"]
        if isinstance(cell, list):
            cell = cell[lane.launch % self.plan["period"]]
        return (op["rank"], op["signal"], cell)

    def shared_totals(self):
        totals = {}
        for part in self.plan["ranks"]:
            for op in (op for lane in part["lanes"] for op in lane if op["op"] == "notify"):
                if self.signals[op["signal"]] != "shared":
                    continue
                for phase in range(self.plan["period"]):
                    cell = op["cell"][phase] if isinstance(op["cell"], list) else op["cell"]
                    row = totals.setdefault((op["rank"], op["signal"], cell), [0] * self.plan["period"])
                    row[phase] += op["value"]
        return totals

    def amount(self, lane, op):
        return op["value"] + (lane.registers[op["reg"]] if "reg" in op else 0)

    def op_notify(self, lane, op):
        relaxed, sets = op["flags"] & RELAXED, op["flags"] & SET
        own = op["rank"] == lane.rank
        if not relaxed:
            yield from self.wait_for_writes(lane, None if own else op["rank"])
        yield from self.engine_room(lane, "data")
        cell, launch = self.cell_of(lane, op), lane.launch
        value = self.amount(lane, op)
        one_writer = self.signals[op["signal"]] == "one writer"
        if one_writer:
            value = lane.counts[cell] = value if sets else lane.counts.get(cell, 0) + value
        x = Transfer("notify", lane, 0 if own else self.m.int("signal.notify_bytes"), None, None, self.pe[op["rank"]])
        before = [] if relaxed else [write for rank, write in lane.writes if rank == op["rank"]]

        def change(_=None):
            in_progress = [write for write in before if any(write is other for _, other in lane.writes)]
            if in_progress:  # a notify is never visible before writes to the same rank
                in_progress[0].followers.append(change)
                return
            if one_writer:
                self.cells[cell] = (launch, value)
            elif sets:
                self.cells[cell] = value
            else:
                self.cells[cell] = self.cells.get(cell, 0) + value
            for other in self.lanes:
                if other.wait and other.wait[0] == cell and self.holds(other, other.wait[1]):
                    other.wait = None
                    self.wake(other)

        x.done = change
        self.hand_over(lane, "data", x)

    def logical(self, lane, cell, launch):
        kind, value = self.signals[cell[1]], self.cells.get(cell, 0)
        if kind == "one writer":
            written, count = value or (-1, 0)
            return 0 if written < launch else INF if written > launch else count
        if kind == "shared":
            value -= self.added.get(cell, 0)
            for earlier in range(launch, lane.launch):
                value += self.totals[cell][earlier % self.plan["period"]]
        return value

    def holds(self, lane, op):
        launch = lane.launch - op.get("back", 0)
        if launch < 0:
            return True
        value = self.logical(lane, self.cell_of(lane, op), launch)
        return value == self.amount(lane, op) if op["flags"] & EQUAL else value >= self.amount(lane, op)

    def op_wait(self, lane, op):
        if not self.holds(lane, op):
            since = self.now
            lane.wait = (self.cell_of(lane, op), op)
            yield None
            yield self.noticed(since)

    def op_peek(self, lane, op):
        lane.registers[op["reg"]] = self.logical(lane, self.cell_of(lane, op), lane.launch)
        yield self.now


class Ops(Pending, Queues, Signals):
    """Copies and computes; together with the base classes, all ops as methods op_NAME."""

    def memory_of(self, ref):
        if "const" in ref:
            return None
        if "channel" in ref:
            return self.m["ipcq.space"]
        kind = {"parameter": "param"}.get(self.kinds[ref["buf"]], self.kinds[ref["buf"]])
        return self.m["place." + kind]

    @staticmethod
    def is_far(lane, ref):
        return "buf" in ref and ref["rank"] != lane.rank

    @staticmethod
    def elements(op):
        return op["rows"] * op["count"]

    def move(self, lane, nbytes, source, target):
        if nbytes == 0:
            return
        yield from self.engine_room(lane, "data")
        x = Transfer("local", lane, nbytes, source, target, self.pe[lane.rank])
        yield from self.carry(lane, "data", x)

    def carry(self, lane, name, x):
        """Hands a transfer over, and waits until it has arrived."""
        there = []

        def done(_):
            there.append(True)
            self.wake(lane)

        x.done = done
        self.hand_over(lane, name, x)
        while not there:
            yield None

    def load(self, lane, op, target):
        """Loads all remote sources at the same time."""
        missing = []

        def done(x):
            missing.remove(x)
            self.wake(lane)

        for src in op["src"]:
            nbytes = self.elements(op) * SIZES[src["dtype"]] if self.is_far(lane, src) else 0
            if nbytes == 0:
                continue
            yield from self.engine_room(lane, "data")
            x = Transfer("request", lane, self.m.int("signal.request_bytes"), self.memory_of(src), None,
                         self.pe[src["rank"]])
            x.engine_bytes, x.load_target, x.done = nbytes, target, done
            missing.append(x)
            self.hand_over(lane, "data", x)
        while missing:
            yield None

    def store(self, lane, op, dst, source):
        yield from self.engine_room(lane, "data")
        nbytes = self.elements(op) * SIZES[dst["dtype"]]
        x = Transfer("write", lane, nbytes, source, self.memory_of(dst), self.pe[dst["rank"]])
        x.is_add = op["op"] == "accumulate"
        x.followers = []

        def done(_):
            lane.writes.remove((dst["rank"], x))
            self.wake_fence(lane)
            for notify in x.followers:
                notify()

        x.done = done
        lane.writes.append((dst["rank"], x))
        self.hand_over(lane, "data", x)

    def wake_fence(self, lane):
        if lane.fence:
            self.wake(lane)

    def wait_for_writes(self, lane, but=None):
        while any(rank != but for rank, _ in lane.writes):
            lane.fence = True
            yield None
        lane.fence = False

    # Ops.

    def op_copy(self, lane, op):
        src, dst, tile = op["src"][0], op["dst"], self.m["place.tile"]
        if self.elements(op) == 0:
            return
        far_src, far_dst = self.is_far(lane, src), self.is_far(lane, dst)
        if not far_src and not far_dst:
            yield from self.move(lane, self.elements(op) * SIZES[dst["dtype"]], self.memory_of(src), self.memory_of(dst))
            return
        if far_src:
            yield from self.load(lane, op, tile if far_dst else self.memory_of(dst))
        if far_dst:
            yield from self.store(lane, op, dst, tile if far_src else self.memory_of(src))

    def math_time(self, lane, op):
        m, n = self.m, self.elements(op)
        sources = len(op["src"])
        steps = sources - 1 if sources > 1 and op["fn"] in FOLDS else 1
        work = span(-(-n // m.lanes(op["dst"]["dtype"])) * steps, m.cycle)
        latency = 0
        for ref in [op["dst"]] + op.get("also", []) + op["src"]:
            mem = self.memory_of(ref)
            if mem is None or self.is_far(lane, ref):
                continue
            work = max(work, span(n * SIZES[ref["dtype"]], m.mem_rate[mem]))
            latency = max(latency, m.mem_lat[mem])
        return m.int("math.setup_ps") + work + latency

    def op_compute(self, lane, op):
        if self.elements(op) == 0:
            return
        tile = self.m["place.tile"]
        far = [ref for ref in [op["dst"]] + op.get("also", []) if self.is_far(lane, ref)]
        yield from self.load(lane, op, tile)
        if op["op"] == "accumulate" and far:
            # The remote memory combines.
            src = op["src"][0]
            yield from self.drain(lane)
            yield from self.store(lane, op, far[0], tile if self.is_far(lane, src) else self.memory_of(src))
            return
        if self.m["pe.math_async"] == "true":
            yield from self.pending_room(lane)
        self.ties += self.math_last[lane.rank] not in (None, lane) and self.math_at[lane.rank] == self.now
        self.math_last[lane.rank], self.math_at[lane.rank] = lane, self.now
        end = max(self.now, self.math_free[lane.rank]) + self.math_time(lane, op)
        self.math_busy[lane.rank] += end - max(self.now, self.math_free[lane.rank])
        self.math_free[lane.rank] = end
        if self.m["pe.math_async"] == "true":
            lane.pending.append({"op": op, "end": end})
        else:
            yield end
        if far:
            yield from self.drain(lane)
        for dst in far:
            yield from self.store(lane, op, dst, tile)

    op_accumulate = op_compute
