# SPDX-License-Identifier: Apache-2.0
"""The contents of memory: every op takes effect at the instant that docs/simulator.md says.

Inputs are small whole numbers. While all values are exact in their types, neither the order nor the width of arithmetic
changes a bit, and the outputs can be compared as bytes. A run with a larger value, or with a function that is not in
FUNCTIONS, is not compared (`inexact`). Nor is one in which two lanes touch the same bytes at the same instant and one of
them writes (`clash`): their order is not defined.
"""
import struct

from .machine import SIZES

EXACT = {"f16": 2048, "bf16": 256, "f32": 1 << 24, "f64": 1 << 53}
CODES = {"f16": "e", "f32": "f", "f64": "d", "i8": "b", "u8": "B", "i32": "i", "i64": "q"}


def fold(step):
    def apply(values):
        out = values[0]
        for value in values[1:]:
            out = step(out, value)
        return out
    return apply


FUNCTIONS = {
    "id": lambda v: v[0], "add": sum, "sub": lambda v: v[0] - v[1], "mul": fold(lambda a, b: a * b),
    "maximum": max, "minimum": min, "fma": lambda v: v[0] * v[1] + v[2], "neg": lambda v: -v[0],
}


def sample_input(rank, i):
    return 1 + (rank * 7 + i * 3) % 11 % 2


class Data:
    def data_begin(self):
        self.memory = {}  # (rank, buffer) -> {element: value}; 0 if missing
        self.inexact = self.clash = False
        self.touched, self.touched_at = [], None
        self.data_bufs = {b["name"]: b for b in self.plan["bufs"]}
        for name, buf in self.data_bufs.items():
            if buf["kind"] == "parameter" and buf["dir"] in ("in", "inout"):
                for rank in range(self.nranks):
                    first, last = self.inputs_of(buf, rank)
                    self.memory[rank, name] = {i: sample_input(rank, i - first) for i in range(first, last)}

    def inputs_of(self, buf, rank):
        """The elements that are inputs: all; in a gathering in place, the rank's own part."""
        params = [b for b in self.plan["bufs"] if b["kind"] == "parameter"]
        length = self.length(buf, rank)
        if len(params) > 1 or self.plan["contract"] not in ("allgather", "gather"):
            return 0, length
        return rank * length // self.nranks, (rank + 1) * length // self.nranks

    @staticmethod
    def length(buf, rank):
        return buf["lens"][rank] if "lens" in buf else buf["len"]

    def touch(self, lane, op):
        """Records the bytes that a lane touches at this instant."""
        if self.touched_at != self.now:
            self.touched, self.touched_at = [], self.now
        for place, start, end, writes in self.ranges(lane, op):
            if place[0] == "slot":
                continue
            for other, other_lane, other_start, other_end, other_writes in self.touched:
                if (place == other and lane is not other_lane and (writes or other_writes) and start < other_end
                        and other_start < end):
                    self.clash = True
            self.touched.append((place, lane, start, end, writes))

    def elements_of(self, lane, op, ref):
        """(array, indices) of an operand in memory."""
        offset = ref["offset"]
        if isinstance(offset, list):
            offset = offset[lane.launch % self.plan["period"]]
        size, cols = SIZES[ref["dtype"]], self.cols[ref["buf"]]
        first = offset // size
        rows = range(ref["row"], ref["row"] + op["rows"])
        cols = cols or ref.get("pitch", op["count"])
        return (self.memory.setdefault((ref["rank"], ref["buf"]), {}),
                [row * cols + first + i for row in rows for i in range(op["count"])])

    def read(self, lane, op, ref):
        if "const" in ref:
            return [ref["const"]] * self.elements(op)
        if "channel" in ref:
            payload = self.queues[ref["channel"]].held[ref["older"]].payload
            first = ref["offset"] // SIZES[ref["dtype"]]
            return payload[first:first + self.elements(op)]
        array, indices = self.elements_of(lane, op, ref)
        return [array.get(i, 0) for i in indices]

    def write(self, lane, op, ref, values):
        array, indices = self.elements_of(lane, op, ref)
        limit = EXACT.get(ref["dtype"], 1 << (8 * SIZES[ref["dtype"]] - 1))
        for i, value in zip(indices, values):
            if abs(value) >= limit or value != int(value):
                self.inexact = True
            array[i] = value

    def take_effect(self, lane, op):
        """A copy, compute or accumulate."""
        self.touch(lane, op)
        name = op.get("fn", "id")
        if name not in FUNCTIONS or op.get("divisor", 0) > 1:
            self.inexact = True
            return
        sources = [self.read(lane, op, src) for src in op["src"]]
        if op["op"] == "accumulate":
            sources.insert(0, self.read(lane, op, op["dst"]))
        values = [FUNCTIONS[name](operands) for operands in zip(*sources)]
        for dst in [op["dst"]] + op.get("also", []):
            self.write(lane, op, dst, values)

    def capture(self, lane, op, x):
        self.touch(lane, op)
        x.payload = self.read(lane, op, op["src"][0])

    def copy_payload(self, lane, op, x):
        self.touch(lane, op)
        self.write(lane, op, op["dst"], x.payload)

    def data_hash(self):
        """FNV-1a over the outputs; None if they cannot be compared."""
        if self.inexact or self.clash:
            return None
        value = 0xcbf29ce484222325
        for rank in range(self.nranks):
            for name, buf in self.data_bufs.items():
                if buf["kind"] != "parameter" or buf["dir"] not in ("out", "inout"):
                    continue
                if buf["dtype"] not in CODES:
                    return None
                array = self.memory.get((rank, name), {})
                for i in range(self.length(buf, rank)):
                    for byte in struct.pack("<" + CODES[buf["dtype"]], array.get(i, 0)):
                        value = (value ^ byte) * 0x100000001b3 % (1 << 64)
        return f"{value:016x}"
