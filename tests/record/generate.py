# SPDX-License-Identifier: Apache-2.0
"""Random tile kernels: each is C++ text, and the events that each rank should do according to the description of the
machine in docs/record.md. Nothing here is shared with the recording headers or the verifier.

A statement is a tuple; `peer` is a distance: rank + distance, modulo the number of ranks, or "d" inside of a loop over
all other ranks. Memory is counted in words of four bytes.
"""
WORDS = {"x": 32, "y": 32, "box": 48, "core": 64}
CELLS = 8
ARGS = "in x: f32[32], out y: f32[32], window box: f32[48], window sig: 64 zeroed, nranks, ctx"
PIPES = ("S", "V", "MTE2", "MTE3")

PRELUDE = """#include <pto/pto-inst.hpp>
#include "pto/comm/pto_comm_inst.hpp"
#include "platform_comm/comm_context.h"
#include "tensor.h"
using namespace pto;
template <int N> using Row = GlobalTensor<float, Shape<1, 1, 1, 1, N>, Stride<N, N, N, N, 1>>;
template <int N> struct At : Tile<TileType::Vec, float, 1, N> {
    At(int word) { TASSIGN(*this, word * 4); }
};
struct Rank {
    float *x, *y, *box;
    int32_t *sig;
    int P, me;
    CommContext *ctx;
    Rank(int64_t *args) : x(memory(args[0])), y(memory(args[1])), box(memory(args[2])), sig((int32_t *)memory(args[3])),
        P((int)args[4]), ctx((CommContext *)args[5]) { me = (int)ctx->rankId; }
    static float *memory(int64_t a) { return (float *)((ChipTensor *)a)->buffer.addr; }
    template <typename T> T *at(T *mine, int distance) const {
        return (T *)((uint64_t)mine - ctx->windowsIn[me] + ctx->windowsIn[(me + distance) % P]);
    }
};
"""


def place(memory):
    region, peer, word = memory
    return f"k.{region} + {word}" if peer == 0 else f"k.at(k.{region} + {word}, {peer})"


def text_of(s):
    """A statement in C++."""
    kind = s[0]
    if kind == "peers":
        return "for (int d = 1; d < k.P; d++) {\n" + "".join(text_of(t) for t in s[1]) + "}\n"
    if kind == "only":
        return f"if (k.me == {s[1]}) {{\n" + "".join(text_of(t) for t in s[2]) + "}\n"
    if kind == "load":
        return f"{{ At<{s[1]}> t({s[2]}); Row<{s[1]}> g({place(s[3])}); TLOAD(t, g); }}\n"
    if kind == "store":
        atomic = "<AtomicType::AtomicAdd>" if s[4] else ""
        return f"{{ At<{s[1]}> t({s[3]}); Row<{s[1]}> g({place(s[2])}); TSTORE{atomic}(g, t); }}\n"
    if kind == "add":
        return f"{{ At<{s[1]}> t({s[2]}), a({s[3]}), b({s[4]}); TADD(t, a, b); }}\n"
    if kind == "relu":
        return f"{{ At<{s[1]}> t({s[2]}), a({s[3]}); TRELU(t, a); }}\n"
    if kind == "fill":
        return f"{{ At<{s[1]}> t({s[2]}); TEXPANDS(t, {s[3]}); }}\n"
    if kind in ("put", "get"):
        atomic = "<AtomicType::AtomicAdd>" if s[5] else ""
        name = "TPUT" if kind == "put" else "TGET"
        return (f"{{ At<{s[6]}> t({s[2]}); Row<{s[1]}> to({place(s[3])}), from({place(s[4])}); "
                f"comm::{name}{atomic}(to, from, t); }}\n")
    if kind == "scalar":
        return f"*(volatile float *)({place(s[1])}) = {s[2]};\n"
    if kind in ("set_flag", "wait_flag"):
        return f"{kind}(PIPE_{s[1]}, PIPE_{s[2]}, {s[3]});\n"
    if kind == "barrier":
        return f"pipe_barrier(PIPE_{s[1]});\n"
    if kind == "notify":
        how = "Set" if s[4] else "AtomicAdd"
        return f"{{ comm::Signal c({place(('sig', s[2], s[1]))}); comm::TNOTIFY(c, {s[3]}, comm::NotifyOp::{how}); }}\n"
    what = f"comm::Signal c({place(('sig', 0, s[1]))});"
    value = {"all": "k.P - 1", "all-1": "k.P - 2"}.get(s[2], s[2])
    if kind == "wait":
        return f"{{ {what} comm::TWAIT(c, {value}, comm::WaitCmp::{s[3]}); }}\n"
    assert kind == "test"
    return f"{{ {what} while (!comm::TTEST(c, {value}, comm::WaitCmp::{s[3]})) {{}} }}\n"


def kernel_text(name, statements):
    body = "".join(text_of(s) for s in statements)
    return f'extern "C" void {name}(int64_t *args) {{\nRank k(args);\n{body}}}\n'


class Event:
    """What a pipe of a rank does: words that it reads, writes and adds to, as bit masks; a flag, a signal."""
    __slots__ = ("rank", "pipe", "kind", "reads", "writes", "adds", "do", "flag", "cell", "value", "how", "lane", "bit",
                 "issued", "drained")

    def __init__(self, rank, pipe, kind, **rest):
        self.rank, self.pipe, self.kind = rank, pipe, kind
        self.reads = self.writes = self.adds = 0
        self.do = self.flag = self.cell = self.value = self.how = None
        for key, value in rest.items():
            setattr(self, key, value)


class Layout:
    """Which bits a piece of memory of a rank is."""
    def __init__(self, ranks):
        self.first, bit = {}, 0
        for rank in range(ranks):
            for region, words in WORDS.items():
                self.first[region, rank] = bit
                bit += words
        self.bits = bit

    def words(self, region, rank, word, n):
        assert 0 <= word and word + n <= WORDS[region]
        return self.first[region, rank] + word, n


def mask(span):
    return ((1 << span[1]) - 1) << span[0]


def events_of(statements, ranks, rank, layout, d=None):
    """The events of a rank, in the order of the text."""
    def memory(m, n):
        region, peer, word = m
        return layout.words(region, (rank + (d if peer == "d" else peer)) % ranks, word, n)

    def core(word, n):
        return layout.words("core", rank, word, n)

    def data(pipe, do, dst, *srcs, adds=False):
        reads = 0
        for s in srcs:
            reads |= mask(s)
        e = Event(rank, pipe, "data", reads=reads, do=(do, dst, srcs))
        setattr(e, "adds" if adds else "writes", mask(dst))
        return e

    def flags(source, target, number):
        return [Event(rank, source, "set", flag=(source, target, number)),
                Event(rank, target, "get", flag=(source, target, number))]

    out = []
    for s in statements:
        kind = s[0]
        if kind == "peers":
            for distance in range(1, ranks):
                out += events_of(s[1], ranks, rank, layout, distance)
        elif kind == "only":
            out += events_of(s[2], ranks, rank, layout, d) if s[1] == rank else []
        elif kind == "load":
            out.append(data("MTE2", "copy", core(s[2], s[1]), memory(s[3], s[1])))
        elif kind == "store":
            out.append(data("MTE3", "plus" if s[4] else "copy", memory(s[2], s[1]), core(s[3], s[1]), adds=s[4]))
        elif kind == "add":
            out.append(data("V", "add", core(s[2], s[1]), core(s[3], s[1]), core(s[4], s[1])))
        elif kind == "relu":
            out.append(data("V", "relu", core(s[2], s[1]), core(s[3], s[1])))
        elif kind == "fill":
            out.append(data("V", s[3], core(s[2], s[1])))
        elif kind in ("put", "get"):
            to, source, done = memory(s[3], s[1]), memory(s[4], s[1]), 0
            while done < s[1]:
                n = min(s[6], s[1] - done)
                out.append(data("MTE2", "copy", core(s[2], n), (source[0] + done, n)))
                out += flags("MTE2", "MTE3", "own")
                out.append(data("MTE3", "plus" if s[5] else "copy", (to[0] + done, n), core(s[2], n), adds=s[5]))
                out += flags("MTE3", "MTE2", "own")
                done += n
        elif kind == "scalar":
            out.append(data("S", s[2], memory(s[1], 1)))
        elif kind == "set_flag":
            out.append(Event(rank, s[1], "set", flag=(s[1], s[2], s[3])))
        elif kind == "wait_flag":
            out.append(Event(rank, s[2], "get", flag=(s[1], s[2], s[3])))
        elif kind == "barrier":
            out += [Event(rank, "S", "drain")] if s[1] == "ALL" else []
        elif kind == "notify":
            peer = (rank + (d if s[2] == "d" else s[2])) % ranks
            out.append(Event(rank, "S", "notify", cell=(peer, s[1]), value=s[3], how="set" if s[4] else "add"))
            out.append(Event(rank, "S", "drain"))
        else:
            out.append(Event(rank, "S", "wait", cell=(rank, s[1]), value=s[2], how=s[3]))
    return out


# ---- generating ----

class Generator:
    def __init__(self, rng):
        self.rng = rng
        self.cell = 0

    def chance(self, p):
        return self.rng.random() < p

    def size(self):
        return self.rng.choice((4, 4, 8, 16))

    def tile(self, n):
        return self.rng.randrange(0, (WORDS["core"] - n) // 4 + 1) * 4

    def word(self, region, n):
        step = self.rng.choice((4, 4, 4, 2))
        return self.rng.randrange(0, (WORDS[region] - n) // step + 1) * step

    def peer(self):
        return self.rng.choice((0, 0, 1, 1, 2))

    def apart(self, n, other):
        """A tile that is `other`, or has nothing in common with it."""
        while True:
            t = self.tile(n)
            if t == other or t + n <= other or other + n <= t:
                return t

    def op(self):
        """A random operation on data."""
        n, r = self.size(), self.rng
        kind = r.choice(("load", "load", "store", "store", "add", "fill", "relu", "put", "get", "scalar"))
        box = ("box", self.peer(), self.word("box", n))
        if kind == "load":
            return ("load", n, self.tile(n), box if self.chance(0.6) else ("x", 0, self.word("x", n)))
        if kind == "store":
            to_box = self.chance(0.6)
            return ("store", n, box if to_box else ("y", 0, self.word("y", n)), self.tile(n), to_box and self.chance(0.2))
        if kind == "add":
            dst = self.tile(n)
            return ("add", n, dst, self.apart(n, dst), self.apart(n, dst))
        if kind == "relu":
            dst = self.tile(n)
            return ("relu", n, dst, self.apart(n, dst))
        if kind == "fill":
            return ("fill", n, self.tile(n), r.randrange(4))
        if kind == "scalar":
            return ("scalar", ("box", self.peer(), self.word("box", 1)), r.randrange(4))
        room = min(n, r.choice((4, 8, 16)))
        if kind == "put":
            return ("put", n, self.tile(room), box, ("x", 0, self.word("x", n)), self.chance(0.3), room)
        return ("get", n, self.tile(room), ("y", 0, self.word("y", n)), box, False, room)

    def flag(self):
        a, b = self.rng.sample(PIPES, 2)
        number = self.rng.randrange(2)
        return [("set_flag", a, b, number), ("wait_flag", a, b, number)]

    def between(self):
        """Something that may order two operations."""
        return self.rng.choice(([("barrier", "ALL")], [("barrier", "ALL")], self.flag(), self.flag(), [("barrier", "V")], []))

    def new_cell(self):
        self.cell = (self.cell + 1) % CELLS
        return self.cell

    def meeting(self):
        """All ranks tell each other, or a neighbour, and wait."""
        cell, r = self.new_cell(), self.rng
        wait = r.choice(("wait", "wait", "test"))
        how, more = r.choice((("GE", 0), ("GE", 0), ("EQ", 0), ("GT", -1)))
        if self.chance(0.5):
            told = [("notify", cell, r.choice((1, 2)), 1, how != "GT" and self.chance(0.2))]
            return told + [(wait, cell, 1 + more, how)]
        return [("peers", [("notify", cell, "d", 1, False)]), (wait, cell, "all" if more == 0 else "all-1", how)]

    def drop(self, statements, p):
        """Leaves out synchronisation here and there."""
        syncs = ("barrier", "set_flag", "wait_flag", "notify", "wait", "test")
        out = []
        for s in statements:
            if s[0] == "peers":
                s = ("peers", self.drop(s[1], p))
            if not (s[0] in syncs and self.chance(p)):
                out.append(s)
        return out

    def soup(self):
        out = [("fill", 16, t, 0) for t in range(0, 64, 16)] + [("barrier", "ALL")] if self.chance(0.8) else []
        for _ in range(self.rng.randrange(2, 7)):
            some = [self.op()] + self.between()
            if self.chance(0.15):
                some = [("only", self.rng.randrange(2), some)]
            out += some
            if self.chance(0.35):
                out += [("barrier", "ALL")] + self.meeting()
        return out

    def sum(self):
        """The sum of all vectors, in one of several ways."""
        r, n = self.rng, 16
        acc, other, slot = 0, r.choice((16, 32, 16, 32, 8)), r.choice((0, 16, 32))
        drain = [("barrier", "ALL")]

        def after(a, b):
            return drain if self.chance(0.3) else [("set_flag", a, b, 0), ("wait_flag", a, b, 0)]
        push = self.chance(0.4)
        out = [("load", n, acc, ("x", 0, 0))] + after("MTE2", "MTE3")
        cell = self.new_cell()
        if push: # into a slot of the receiver that is the sender's: two ranks only have two
            out += [("peers", [("store", n, ("box", "d", slot), acc, False)])]
        else:
            out += [("store", n, ("box", 0, slot), acc, False)]
        out += drain + [("peers", [("notify", cell, "d", 1, False)]), ("wait", cell, "all", "GE")]
        out += [("peers", [("load", n, other, ("box", 0 if push else "d", slot))] + after("MTE2", "V") +
                 [("add", n, acc, acc, other)] + after("V", "MTE2"))]
        out += after("V", "MTE3") + [("store", n, ("y", 0, 0), acc, False)]
        out += [("load", n, acc, ("x", 0, 0))] if self.chance(0.2) else []
        return out

    def kernel(self, mode):
        p = self.rng.choice((0, 0.03, 0.1))
        return self.drop(self.sum() if mode == "sum" else self.soup(), p)


def bind(statements, ranks):
    """Values of waits for all others."""
    out = []
    for s in statements:
        if s[0] in ("wait", "test") and isinstance(s[2], str):
            s = (s[0], s[1], ranks - 1 if s[2] == "all" else ranks - 2, s[3])
        out.append(s)
    return out
