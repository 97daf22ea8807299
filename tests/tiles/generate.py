# SPDX-License-Identifier: Apache-2.0
"""Random programs of tile kernels: some transfers through slots and signals, more or less well synchronised."""

BLOCK, SLOTS, FLAGS = 4, 3, 6


def operand(rng):
    """Some elements of a slot: a mask, and how it is said."""
    return rng.choice([None, None, None, "at < 2", "at >= 2"])


class Generator:
    """One program: `text` for both sides."""

    def __init__(self, rng, ranks):
        self.rng, self.ranks, self.programs, self.calls = rng, ranks, rng.choice([1, 1, 2]), rng.choice([1, 2, 2])
        self.lines, self.kinds, self.counts = [], [rng.choice(["add", "set", "take"]) for _ in range(FLAGS)], {}
        self.epochs = rng.random() < 0.7
        for _ in range(rng.randrange(1, 5)):
            self.transfer()

    def place(self):
        return self.rng.randrange(self.ranks), self.rng.randrange(self.programs)

    def say(self, where, *lines):
        self.lines.append(f"    if RANK == {where[0]}:\n        if pid == {where[1]}:")
        self.lines += [f"            {line}" for line in lines]

    def access(self, where, owner, slot, writes):
        mask = operand(self.rng)
        at = f"peer(box, {owner}) + {slot * BLOCK} + at"
        masked = f", mask={mask}" if mask else ""
        mine = f"mine + {2 * BLOCK * where[1]} + at"
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
        if tell:
            self.say(source, tells)
        if hears:
            self.say(target, waits)

    def text(self):
        constants = "".join(f"PER{flag}_{rank} = {count}\n" for (flag, rank), count in sorted(self.counts.items()))
        return (constants + "\n@triton.jit\ndef kernel(box, flags, mine, EPOCH):\n    pid = tl.program_id(0)\n"
                f"    at = tl.arange(0, {BLOCK})\n" + "\n".join(self.lines) + "\n\n"
                f'box = Memory("inout", "box", {BLOCK * SLOTS}, "float32", shared=True)\n'
                f'flags = Memory("window", "flags", {FLAGS}, "int32", zeroed=True)\n'
                f'mine = Memory("inout", "mine", {2 * BLOCK * self.programs}, "float32")\n'
                f"for call in calls():\n    kernel[({self.programs},)](box, flags, mine, call{'' if self.epochs else ' * 0'})\n")
