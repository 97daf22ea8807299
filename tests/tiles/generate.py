# SPDX-License-Identifier: Apache-2.0
"""Random programs of tile kernels: some transfers through slots and signals, more or less well synchronised, on one stream or two.

Signals are atomics of the language, or hand-shakes in assembly, with barriers around them or without."""

BLOCK, SLOTS, FLAGS = 4, 3, 6
LOOP = '"{ .reg .pred p; .reg .u32 t; again: %s; %s bra again; %s }"'


def assembly(text, pointer, value):
    return f'tl.inline_asm_elementwise({text}, "=r,l,r", [{pointer}, {value}], dtype=tl.int32, is_pure=False, pack=1)'


def tell_in_assembly(rng, kind, order):
    if kind == "take":
        return LOOP % (f"atom.global.{order}.sys.cas.b32 t, [$1], 0, $2; setp.ne.u32 p, t, 0", "@p", "")
    fence, order = rng.choice([("", order)] * 3 + [("fence.acq_rel.sys; ", "relaxed")])
    if kind == "set" and order != "acq_rel" and rng.random() < 0.6:
        return f'"{fence}st.global.{order}.sys.b32 [$1], $2;"'
    if kind == "set":
        return f'"{fence}atom.exch.{order}.sys.global.b32 $0, [$1], $2;"'
    return f'"{fence}red.{order}.sys.global.add.s32 [$1], $2;"' if rng.random() < 0.6 else f'"{fence}atom.add.{order}.sys.global.u32 $0, [$1], $2;"'


def wait_in_assembly(rng, kind, order):
    if kind == "take":
        return LOOP % (f"atom.global.sys.{order}.cas.b32 t, [$1], $2, 0; setp.eq.u32 p, t, $2", "@!p", "")
    fence, order = rng.choice([("", order)] * 3 + [("fence.acq_rel.sys;", "relaxed")])
    compare, guard = rng.choice([("lt", "@p"), ("ge", "@!p")])
    look = f"atom.add.{order}.sys.global.u32 t, [$1], 0" if order == "acq_rel" else f"ld.{order}.sys.global.u32 t, [$1]"
    return LOOP % (f"{look}; setp.{compare}.u32 p, t, $2", guard, fence)


def operand(rng):
    """Some elements of a slot: a mask, and how it is said."""
    return rng.choice([None, None, None, "at < 2", "at >= 2"])


class Generator:
    """One program: `text` for both sides."""

    def __init__(self, rng, ranks):
        self.rng, self.ranks, self.programs, self.calls = rng, ranks, rng.choice([1, 1, 2]), rng.choice([1, 2, 2])
        self.streams, self.barriers = rng.choice([1, 1, 2]), rng.choice([0.7, 0.95, 1])
        self.lines, self.kinds, self.counts = [[] for _ in range(self.streams)], [rng.choice(["add", "set", "take"]) for _ in range(FLAGS)], {}
        self.epochs = rng.random() < 0.7
        self.lax = False  # may a thread act before what its program waited for, as the verifier sees it?
        for _ in range(rng.randrange(1, 5)):
            self.transfer()
        self.before = rng.choice([[]] + [["other.wait_stream(torch.cuda.current_stream())"]] * 2)
        self.between = rng.choice([[], [], ["done.record()", "other.wait_event(done)"], ["torch.cuda.current_stream().synchronize()"]])
        self.after = rng.choice([[], ["torch.cuda.current_stream().wait_stream(other)"], ["done.record(other)", "done.wait()"],
                                 ["done.record(other)", "torch.cuda.current_stream().wait_event(done)"], ["torch.cuda.synchronize()"]])

    def place(self):
        """A rank, a program, a stream."""
        return self.rng.randrange(self.ranks), self.rng.randrange(self.programs), self.rng.randrange(self.streams)

    def say(self, where, *lines):
        self.lines[where[2]].append(f"    if RANK == {where[0]}:\n        if pid == {where[1]}:")
        self.lines[where[2]] += [f"            {line}" for line in lines]

    def access(self, where, owner, slot, writes):
        mask = operand(self.rng)
        at = f"peer(box, {owner}) + {slot * BLOCK} + at"
        masked = f", mask={mask}" if mask else ""
        mine = f"mine + {2 * BLOCK * (where[1] + self.programs * where[2])} + at"
        self.say(where, f"tl.store({at}, tl.load({mine}){masked})" if writes else f"tl.store({mine} + {BLOCK}, tl.load({at}{masked}){masked})")

    def transfer(self):
        """Somebody writes a slot and tells somebody else, who reads it and perhaps says so."""
        rng = self.rng
        writer, reader, slot = self.place(), self.place(), rng.randrange(SLOTS)
        owner = rng.choice([writer[0], reader[0]])
        self.access(writer, owner, slot, True)
        if rng.random() < 0.85:
            self.hand_over(writer, reader)
        self.access(reader, owner, slot, False)
        if rng.random() < 0.7:
            self.hand_over(reader, writer)

    def hand_over(self, source, target):
        """A signal, and the wait for it; each may be missing, or too weak."""
        rng = self.rng
        flag = rng.randrange(FLAGS)
        kind, key = self.kinds[flag], (flag, target[0])
        count = self.counts[key] = self.counts.get(key, 0) + 1
        release = rng.choice(["release"] * 7 + ["acq_rel", "relaxed"])
        acquire = rng.choice(["acquire"] * 7 + ["acq_rel", "relaxed"])
        there, here = f"peer(flags, {target[0]}) + {flag}", f"flags + {flag}"
        tell, hears = rng.random() < 0.93, rng.random() < 0.93
        if kind == "take":
            tells = f'while tl.atomic_cas({there}, 0, 1, sem="{release}", scope="sys") != 0: pass'
            waits = f'while tl.atomic_cas({here}, 1, 0, sem="{acquire}", scope="sys") != 1: pass'
        else:
            tells = f'tl.atomic_add({there}, 1, sem="{release}", scope="sys")' if kind == "add" else (
                f'tl.atomic_xchg({there}, EPOCH * PER{key[0]}_{key[1]} + {count}, sem="{release}", scope="sys")')
            waits = f'while tl.atomic_add({here}, 0, sem="{acquire}", scope="sys") < EPOCH * PER{key[0]}_{key[1]} + {count}: pass'
        value = "1" if kind != "set" else f"EPOCH * PER{key[0]}_{key[1]} + {count}"
        until = "1" if kind == "take" else f"EPOCH * PER{key[0]}_{key[1]} + {count}"
        if tell:
            self.say(source, *(self.apart(tell_in_assembly(rng, kind, release), there, value) if rng.random() < 0.3 else [tells]))
        if hears:
            self.say(target, *(self.apart(wait_in_assembly(rng, kind, acquire), here, until) if rng.random() < 0.3 else [waits]))

    def apart(self, text, pointer, value):
        """Assembly between barriers, or without one of them."""
        before, after = (["tl.debug_barrier()"] if self.rng.random() < self.barriers else [] for _ in range(2))
        self.lax = self.lax or not before
        return [*before, assembly(text, pointer, value), *after]

    def text(self):
        constants = "".join(f"PER{flag}_{rank} = {count}\n" for (flag, rank), count in sorted(self.counts.items()))
        kernels = "".join(f"\n@triton.jit\ndef kernel{stream}(box, flags, mine, EPOCH):\n    pid = tl.program_id(0)\n"
                          f"    at = tl.arange(0, {BLOCK})\n" + "\n".join(lines) + "\n\n" for stream, lines in enumerate(self.lines))
        launches = [f"kernel{stream}[({self.programs},)](box, flags, mine, call{'' if self.epochs else ' * 0'})" for stream in range(self.streams)]
        host = launches
        if self.streams == 2:
            host = [*self.before, launches[0], *self.between, "with torch.cuda.stream(other):", f"    {launches[1]}", *self.after]
        return (constants + kernels +
                f'box = Memory("inout", "box", {BLOCK * SLOTS}, "float32", shared=True)\n'
                f'flags = Memory("window", "flags", {FLAGS}, "int32", zeroed=True)\n'
                f'mine = Memory("inout", "mine", {2 * BLOCK * self.programs * self.streams}, "float32")\n'
                + "other, done = torch.cuda.Stream(), torch.cuda.Event()\n" * (self.streams - 1) + "for call in calls():\n"
                + "".join(f"    {line}\n" for line in host))
