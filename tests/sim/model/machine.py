# SPDX-License-Identifier: Apache-2.0
"""Machine files, the places of PEs, and the paths between them."""
from fractions import Fraction
from math import ceil

SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i32": 4, "i64": 8}

DEFAULTS = {
    "topology.flat": "0", "topology.sips": "1", "topology.cubes": ["1", "1"], "topology.wrap.pe": "none",
    "topology.wrap.cube": "none", "topology.wrap.sip": "none", "topology.routes": "auto", "links.mode": "cut-through",
    "links.fluid_weight": "equal", "ipcq.slots": "4", "ipcq.slot_bytes": "65536", "ipcq.header_bytes": "0",
    "ipcq.space": "tcm", "ipcq.backpressure": "sleep", "ipcq.poll_ps": "1000", "ipcq.wake_ps": "0",
    "dma.setup_ps": "0", "dma.arb": "independent", "dma.packet_bytes": "4096", "dma.queue": "16",
    "credit.mode": "fast", "credit.bytes": "16", "math.setup_ps": "0", "math.products": "0",
    "signal.order": "windows", "signal.delay_ns": "0", "signal.delay_pair": ["1", "1"], "pe.issue_ps": "0", "pe.math_async": "false",
    "pe.send_async": "true", "pe.recv_async": "false", "signal.notify_bytes": "16", "signal.request_bytes": "16",
    "place.param": "tcm", "place.window": "tcm", "place.private": "tcm", "place.tile": "tcm",
    "ccl.algorithm": "ring", "ccl.launch_ns": "0", "ccl.ranks": "auto", "ccl.embed": "snake", "data.mode": "full",
}
for _mem, _per in (("tcm", "pe"), ("sram", "cube"), ("hbm", "cube")):
    DEFAULTS.update({f"mem.{_mem}.lat_ns": "0", f"mem.{_mem}.ports": "0", f"mem.{_mem}.per": _per})
# Hosts are not modelled here.
DEFAULTS.update({f"host.{_key}_GBps": "none" for _key in ("copy", "fetch", "reduce", "push", "kernel")})
DEFAULTS.update({"host.kernel_ns": "0", "host.op_ns": "0", "host.params": "shared", "host.cores": "0", "host.switch_ns": "0"})
PROTOCOLS = ("ll", "ll128", "simple")
for _name in PROTOCOLS:
    DEFAULTS.update({f"protocol.{_name}.lat_ns": "0", f"protocol.{_name}.bw_GBps": ".inf",
                     f"protocol.{_name}.ramp_ns": "0", f"protocol.{_name}.ramp_bytes": "0"})
    if _name != "simple":
        DEFAULTS[f"protocol.{_name}.to_bytes"] = "0"
for _type in SIZES:
    DEFAULTS[f"math.lanes.{_type}"] = "0"
del DEFAULTS["math.lanes.f32"]


def _flow(text, at):
    """A value in flow style from text[at]: (value, end)."""
    while text[at] == " ":
        at += 1
    if text[at] == "[":
        out, at = [], at + 1
        while text[at] != "]":
            value, at = _flow(text, at)
            out.append(value)
            at += text[at] == ","
        return out, at + 1
    if text[at] == "{":
        out, at = {}, at + 1
        while text[at] != "}":
            colon = text.index(":", at)
            out[text[at:colon].strip(" ,")], at = _flow(text, colon + 1)
            while text[at] in " ,":
                at += 1
        return out, at + 1
    end = at
    while end < len(text) and text[end] not in ",]}":
        end += 1
    return text[at:end].strip(), end


def _flatten(tree, path, out):
    for key, value in tree.items():
        if isinstance(value, dict):
            _flatten(value, path + key + ".", out)
        else:
            out[path + key] = value


def read_machine(text, sets=None):
    """The keys of a machine file with their values as text, defaults filled in."""
    root = {}
    stack = [(-1, root)]
    for line in text.splitlines():
        line = line.split("#")[0].rstrip()
        if not line:
            continue
        depth = len(line) - len(line.lstrip())
        key, _, rest = line.strip().partition(":")
        while stack[-1][0] >= depth:
            stack.pop()
        if rest.strip():
            stack[-1][1][key] = _flow(rest, 0)[0]
        else:
            stack[-1][1][key] = {}
            stack.append((depth, stack[-1][1][key]))
    keys = dict(DEFAULTS)
    _flatten(root, "", keys)
    for key, value in (sets or {}).items():
        keys[key] = _flow(value, 0)[0]
    return keys


class Machine:
    """Keys as numbers: whole picoseconds, exact picoseconds per byte."""

    def __init__(self, keys):
        self.keys = keys
        self.flat = int(keys["topology.flat"])
        self.sips = int(keys["topology.sips"])
        self.cubes = [int(v) for v in keys["topology.cubes"]]
        self.pes = [int(v) for v in keys.get("topology.pes", ["1", "1"])]
        self.wrap = [keys[f"topology.wrap.{level}"] != "none" for level in ("pe", "cube", "sip")]
        self.count = self.flat or self.sips * self.cubes[0] * self.cubes[1] * self.pes[0] * self.pes[1]
        self.link_rate = {n: self.rate(f"links.{n}.bw_GBps") for n in ("pe", "cube", "sip", "flat")}
        self.link_lat = {n: self.ps(f"links.{n}.lat_ns") for n in ("pe", "cube", "sip", "flat")}
        self.mem_rate = {n: self.rate(f"mem.{n}.bw_GBps") for n in ("tcm", "sram", "hbm")}
        self.mem_lat = {n: self.ps(f"mem.{n}.lat_ns") for n in ("tcm", "sram", "hbm")}
        self.ports = {n: int(keys[f"mem.{n}.ports"]) for n in ("tcm", "sram", "hbm")}
        self.dma_rate = self.rate("dma.bw_GBps")
        self.cycle = self.rate("math.clock_GHz")

    def __getitem__(self, key):
        return self.keys[key]

    def int(self, key):
        return int(self.keys[key])

    def rate(self, key):
        value = self.keys.get(key)
        return Fraction(0) if value in (None, ".inf") else 1000 / Fraction(value)

    def ps(self, key):
        value = Fraction(self.keys.get(key, "0")) * 1000
        assert value.denominator == 1, key
        return int(value)

    def protocol(self, size):
        """What a message to another PE takes before its first byte, and its engine's rate at least."""
        name = next((n for n in PROTOCOLS[:2] if 0 < size <= self.int(f"protocol.{n}.to_bytes")), None)
        if name is None:
            name = next((n for n in PROTOCOLS[:2] if size == 0 and self.int(f"protocol.{n}.to_bytes")), "simple")
        ramp, half = self.ps(f"protocol.{name}.ramp_ns"), self.int(f"protocol.{name}.ramp_bytes")
        ramp = ceil(Fraction(ramp * size, size + half)) if size else 0
        return self.ps(f"protocol.{name}.lat_ns") + ramp, self.rate(f"protocol.{name}.bw_GBps")

    def lanes(self, dtype):
        own = self.int(f"math.lanes.{dtype}")
        return own or max(1, self.int("math.lanes.f32") * 4 // SIZES[dtype])

    # The place of a PE: (sip, (x, y)), where x and y are (cube, pe) along a row and a column.
    def node(self, pe):
        per_cube, per_sip = self.pes[0] * self.pes[1], self.cubes[0] * self.cubes[1]
        cube, i = divmod(pe, per_cube)
        sip, cube = divmod(cube, per_sip)
        x = (cube % self.cubes[0], i % self.pes[0])
        y = (cube // self.cubes[0], i // self.pes[0])
        return sip, (x, y)

    def pe_at(self, sip, x, y):
        cube = y[0] * self.cubes[0] + x[0]
        return ((sip * self.cubes[1] * self.cubes[0]) + cube) * self.pes[0] * self.pes[1] + y[1] * self.pes[0] + x[1]

    @staticmethod
    def direction(a, b, n, closed):
        if not closed:
            return 1 if b > a else -1
        return 1 if (b - a) % n <= (a - b) % n else -1

    def hop(self, at, to):
        """The next link of the path: (key, level, latency, its other end). Keys have the order of components."""
        if self.flat:
            if at == "switch":
                return (to * 8 + 1, "flat", 0, to)
            return (at * 8, "flat", self.link_lat["flat"], "switch")
        sip, here = self.node(at)
        to_sip, there = self.node(to)
        if sip != to_sip:
            first = self.pe_at(sip, (0, 0), (0, 0))
            if at == first:
                by = self.direction(sip, to_sip, self.sips, self.wrap[2])
                link = self.count * 8 + 2 * sip + (by < 0)
                return (link, "sip", self.link_lat["sip"], self.pe_at((sip + by) % self.sips, (0, 0), (0, 0)))
            there = self.node(first)[1]
        axis = 0 if here[0] != there[0] else 1
        (cube, pe), (to_cube, to_pe) = here[axis], there[axis]
        level = "pe"
        if cube != to_cube:
            by = self.direction(cube, to_cube, self.cubes[axis], self.wrap[1])
            to_pe = self.pes[axis] - 1 if by > 0 else 0
            if pe == to_pe:
                level = "cube"
        if level == "cube":
            place = ((cube + by) % self.cubes[axis], self.pes[axis] - 1 - pe)
        else:
            by = self.direction(pe, to_pe, self.pes[axis], self.wrap[0])
            place = (cube, (pe + by) % self.pes[axis])
        spot = list(here)
        spot[axis] = place
        port = 2 * axis + (by < 0) + (4 if level == "cube" else 0)
        return (at * 8 + port, level, self.link_lat[level], self.pe_at(sip, *spot))

    def path(self, at, to):
        out = []
        while at != to:
            link = self.hop(at, to)
            out.append(link)
            at = link[3]
        return out

    def place(self, nranks):
        """The PE of each rank."""
        embed, width, height = self["ccl.embed"], self.cubes[0] * self.pes[0], self.cubes[1] * self.pes[1]
        if self.flat or embed == "row_major":
            return list(range(nranks))
        snake = [(x if y % 2 == 0 else width - 1 - x, y) for y in range(height) for x in range(width)]
        walk = snake
        if embed == "ring" and height % 2 == 0 and width > 1:
            walk = [(width - x if y % 2 else x, y) for y in range(height) for x in range(1, width)]
            walk += [(0, y) for y in reversed(range(height))]
        elif embed == "ring" and width % 2 == 0 and height > 1:
            walk = [(x, height - y if x % 2 else y) for x in range(width) for y in range(1, height)]
            walk += [(x, 0) for x in reversed(range(width))]
        elif embed == "tree":
            walk = self.halves(0, 0, width, height)
        order = list(range(nranks))
        if embed == "tree":
            order = [0] * nranks
            for place, node in enumerate(self.in_order(0, nranks)):
                order[node] = place
        out = []
        for rank in range(nranks):
            sip, i = divmod(order[rank], width * height)
            x, y = walk[i]
            out.append(self.pe_at(sip, divmod(x, self.pes[0]), divmod(y, self.pes[1])))
        return out

    def halves(self, x, y, w, h):
        if w * h == 1:
            return [(x, y)]
        if w >= h:
            half = (w + 1) // 2
            return self.halves(x, y, half, h) + self.halves(x + half, y, w - half, h)
        half = (h + 1) // 2
        return self.halves(x, y, w, half) + self.halves(x, y + half, w, h - half)

    def in_order(self, node, n):
        if node < n:
            yield from self.in_order(2 * node + 1, n)
            yield node
            yield from self.in_order(2 * node + 2, n)

    def memory(self, pe, mem):
        """The memory of this kind that a PE uses: its own, or its cube's."""
        own = self.flat or self[f"mem.{mem}.per"] == "pe"
        return (mem, pe if own else pe // (self.pes[0] * self.pes[1]))


def span(nbytes, rate):
    return ceil(nbytes * rate)
