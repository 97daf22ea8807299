# SPDX-License-Identifier: Apache-2.0
"""Programs with tile kernels: what is known is computed as numpy computes it, accesses are all of the elements and no others, and what is
recorded is what the kernel does. Prints its seed."""
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np

import tile_command
from peal.record import SIZES, Refused
from peal.tiles import core, data, lanes, program
from peal.tiles.data import Affine, Tile

SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
HERE = os.path.dirname(os.path.abspath(__file__))

# What tests allocate memory with.
MEMORY = '''
import peal
import triton
import triton.language as tl
from peal.tiles import core, program
RANK, WORLD = core.rank().index, program.world_size()


class Memory:
    def __init__(self, kind, name, count, dtype, **flags):
        self.dtype = dtype
        size = {"float32": 4, "int32": 4, "int64": 8, "float16": 2, "uint8": 1}[dtype]
        self.region = core.rank().region(kind, name, count * size, dtype.replace("float", "f").replace("uint", "u").replace("int", "i"), **flags)

    def data_ptr(self):
        return self.region.address
'''


def elements(span):
    """All bytes where elements of a span begin, in order."""
    size = SIZES[span.dtype]
    return [span.address + row * span.stride + column * size for row in range(span.rows) for column in range(span.count)]


def record(text, ranks=2, settings=""):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(MEMORY + text)
        return program.record(path, ranks, program.Options(settings))


def ops(text, rank=0):
    """The ops of one rank, without positions."""
    lines = text.split(f"\nrank {rank}\n")[1].split("\nrank ")[0].splitlines()
    return [line for line in lines if line and line.split()[0] not in ("at", "lane", "block", "note", "fence", "call")]


class Addresses(unittest.TestCase):
    def test_parts_have_all_elements_and_no_others(self):
        rng = np.random.default_rng(SEED)
        for _ in range(300):
            rows, columns = rng.integers(1, 9), rng.integers(1, 9)
            stride = int(rng.integers(1, 12))
            grid = 4096 + 4 * (np.arange(rows)[:, None] * stride * rng.integers(1, 3) + np.arange(columns)[None, :])
            chosen = rng.random((rows, columns)) < rng.choice([0.3, 0.9, 1.1])
            addresses, slots = grid[chosen], (1 << 20) + 4 * np.flatnonzero(chosen.reshape(-1))
            if len(set(addresses.tolist())) < len(addresses):
                continue
            found = []
            for part in data.fold(addresses, "f32", slots):
                found += zip(elements(part.memory), elements(part.tile))
            self.assertEqual(sorted(found), sorted(zip(addresses.tolist(), slots.tolist())), f"seed {SEED}")

    def test_a_block_is_one_part(self):
        block = np.arange(16)[:, None] * 256 + np.arange(32)[None, :] * 4
        self.assertEqual(len(data.fold(block.reshape(-1), "f32", np.arange(512) * 4)), 1)

    def test_affine_tiles_are_arrays(self):
        rng = np.random.default_rng(SEED)
        for _ in range(500):
            shape = tuple(int(size) for size in rng.integers(1, 5, rng.integers(1, 4)))
            affine = Affine(int(rng.integers(-50, 50)), tuple(int(stride) for stride in rng.integers(-3, 4, len(shape))))
            expected = data.array(affine, shape, np.int32)
            left, other = Tile(shape, data.INT32, affine), int(rng.integers(1, 20))
            for name, function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("lt", np.less), ("ge", np.greater_equal),
                                   ("eq", np.equal)):
                result = data.binary(name, left, other)
                got = data.array(result.known, result.shape, result.dtype.number)
                self.assertTrue((got == function(expected, other)).all(), f"{name} of {affine}, seed {SEED}")
            for name in "floordiv", "mod":
                result = data.binary(name, left, other)
                quotient = np.trunc(expected / other).astype(np.int64)
                wanted = quotient if name == "floordiv" else expected - quotient * other
                self.assertTrue((data.array(result.known, result.shape, np.int32) == wanted).all(), f"{name} of {affine}, seed {SEED}")


class Kernels(unittest.TestCase):
    def test_a_masked_tail(self):
        text = record('''
@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)

x, y = Memory("in", "x", 100, "float32"), Memory("out", "y", 100, "float32")
copy[(2,)](x, y, 100, BLOCK=64)
''', ranks=1)
        self.assertEqual([line.split("*", 1)[1].split()[0] for line in ops(text) if line.startswith("copy")], ["64", "64", "36", "36"])

    def test_a_tile_is_one_op(self):
        text = record('''
@triton.jit
def tile(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * 128 + tl.arange(0, BLOCK)[None, :]
    tl.store(y + at, tl.load(x + at) + 1.0)

x, y = Memory("in", "x", 128 * 128, "float32"), Memory("out", "y", 128 * 128, "float32")
tile[(1,)](x, y, BLOCK=16)
''', ranks=1)
        self.assertEqual(len(ops(text)), 3)
        self.assertIn("*16*16+512", ops(text)[0])

    def test_loops_that_wait(self):
        for wait, said in (
                ("while tl.atomic_add(f, 0, sem='acquire', scope='sys') < 2: pass", "wait {f} 4 >= 2 acquire system"),
                ("while tl.atomic_cas(f, 1, 0, sem='acquire', scope='sys') != 1: pass", "take {f} 4 1 0 acquire system"),
                ("while tl.load(f, volatile=True) != 3: pass", "wait {f} 4 == 3 relaxed system"),
                ("while not (tl.atomic_or(f, 0, sem='acquire') == 1): pass", "wait {f} 4 == 1 acquire device"),
                ("done = 0\n    while done == 0:\n        done = tl.atomic_cas(f, 1, 1, scope='sys')", "wait {f} 4 != 0 acquire system"),
                ("while True:\n        if tl.atomic_add(f, 0, scope='sys') >= 1:\n            break", "wait {f} 4 >= 1 acquire system"),
                ("while tl.atomic_xchg(f, 1, sem='acquire') == 1: pass", "take {f} 4 0 1 acquire device")):
            text = record(f'''
@triton.jit
def waits(f):
    {wait}
    tl.store(f + 4, 1)

f = Memory("window", "f", 8, "int32", zeroed=True)
waits[(1,)](f)
''', ranks=1)
            self.assertEqual(ops(text)[:-1], [said.format(f=hex(core.heap(0)))], wait)

    def test_warps_are_those_of_the_model(self):
        for model, threads in (("triton-nvidia", 8 * 32), ("triton-amd", 8 * 64)):
            text = record('''
@triton.jit
def count(f):
    threads = tl.inline_asm_elementwise("mov.u32 $0, %ntid.x;", "=r", [], dtype=tl.uint32, is_pure=True, pack=1)
    tl.atomic_xchg(f, threads)

f = Memory("window", "f", 1, "int32", zeroed=True)
count[(1,)](f, num_warps=8)
''', ranks=1, settings=f"model={model}")
            self.assertIn(f" set {threads} ", ops(text)[0])

    def test_threads_that_act_apart(self):
        text = record('''
@triton.jit
def tid():
    return tl.inline_asm_elementwise("mov.u32 $0, %tid.x;", "=r", [], dtype=tl.uint32, is_pure=True, pack=1)

@triton.jit
def put(p, v):
    tl.inline_asm_elementwise("st.global.release.sys.b32 [$1], $2;", "=r,l,r", [p, v], dtype=tl.int32, is_pure=False, pack=1)

@triton.jit
def apart(f):
    number = tid()
    if number == 0:
        put(f, 7)
    elif number < 3:
        put(f + number, 8)
    else:
        if number == 5:
            put(f + number, 9)
    tl.debug_barrier()
    tl.store(f + 6, 1)

f = Memory("window", "f", 8, "int32", zeroed=True)
apart[(1,)](f)
''', ranks=1)
        heap = core.heap(0)
        self.assertEqual([line for line in ops(text) if not line.startswith("order")],
                         [f"notify {heap + 4 * at:#x} 4 set {value} release system" for at, value in ((0, 7), (1, 8), (2, 8), (5, 9))]
                         + [f"write i32@{heap + 24:#x}*1 1.0"])
        self.assertEqual(sum(line.startswith("order") for line in ops(text)), 4 * 4)  # four threads, each of them a lane

    def test_what_cannot_be_recorded_has_a_line(self):
        for body, why in (
                ("if tl.atomic_add(f, 1) > 3: tl.store(f + 1, 1)", "run.py:20: the value of a signal decides"),
                ("n = 0\n    while tl.atomic_add(f, 0) < 2: n = n + 1", "counts 'n'"),
                ("tl.store(f + tl.load(f + 1), 1)", "run.py:20: data decides which address"),
                ("tl.store(f + 100, 1)", "run.py:20: rank 0 uses address"),
                ("tl.experimental_gather(f)", "run.py:20: triton.language.experimental_gather is not known")):
            with self.assertRaises(Refused, msg=body) as caught:
                record(f'''
@triton.jit
def kernel(f):
    {body}

f = Memory("window", "f", 8, "int32", zeroed=True)
kernel[(1,)](f)
''', ranks=1)
            self.assertIn(why, str(caught.exception))


def grid_of_random_programs(rng):
    """A kernel whose statements depend on the number of the program in all ways."""
    def number(depth):
        if not depth or rng.random() < 0.2:
            return rng.choice(["pid", "pid", "tl.program_id(1)", "i", str(rng.randint(0, 9))])
        a, b = number(depth - 1), number(depth - 1)
        return rng.choice([f"({a} + {b})", f"({a} - {b})", f"({a} * {rng.randint(0, 5)})", f"({a} // {rng.randint(1, 7)})", f"({a} % {rng.randint(1, 7)})",
                           f"({a} << {rng.randint(0, 3)})", f"({a} >> {rng.randint(0, 3)})", f"({a} & {rng.choice([1, 3, 6])})", f"min({a}, {b})",
                           f"tl.maximum({a}, {b})", f"tl.cdiv({a}, {rng.randint(1, 5)})", f"tl.where({a} < {b}, {a}, {b})"])

    def place():
        return f"({number(2)} + 64) % 64"

    def statements(depth):
        out = []
        for _ in range(rng.randint(1, 3)):
            kind = rng.randrange(9)
            if kind < 2 and depth:
                head = rng.choice([f"if {number(2)} {rng.choice(['<', '>=', '==', '!='])} {number(1)}:", f"for i in range({number(1)}, {number(2)}, {rng.randint(1, 9)}):",
                                   f"for i in range({rng.randint(0, 3)}):"])
                out += [head, *("    " + line for line in statements(depth - 1))]
            elif kind < 4:
                out.append(f"tl.store(y + {place()} * 4 + tl.arange(0, 4), tl.load(x + {place()} * 4 + tl.arange(0, 4), mask=tl.arange(0, 4) + {number(1)} < {number(1)}))")
            elif kind < 6:
                out.append(f"tl.store(y + {place()}, tl.load(x + {place()}) + tl.load(x + {place()}))")
            elif kind == 6:
                out.append(f"tl.store(g + {place()}, {rng.choice([number(1), '5'])})")
            elif kind == 7:
                out.append(f"tl.atomic_{rng.choice(['add', 'xchg'])}(f + {place()}, {rng.choice([number(1), '1', '1'])}, sem='{rng.choice(['release', 'relaxed'])}')")
            else:
                out.append(rng.choice([f"while tl.atomic_cas(f + {place()}, 0, 1) != 0: pass", f"while tl.load(f + {place()}, volatile=True) < {number(1)}: pass",
                                       "tl.debug_barrier()"]))
        return out
    body = "\n    ".join(statements(2))
    grid = rng.choice([(12,), (5, 3), (2, 9), (40,)])
    return f"""
@triton.jit
def kernel(x, y, g, f):
    pid, i = tl.program_id(0), 0
    {body}

x, y = Memory("in", "x", 512, "float32"), Memory("window", "y", 512, "float32")
g, f = Memory("window", "g", 64, "int32"), Memory("window", "f", 64, "int32", zeroed=True)
for call in peal.calls():
    kernel[{grid}](x, y, g, f)
"""


class Alike(unittest.TestCase):
    """Programs that do the same are written down from one of them: as if each had been recorded."""

    def both(self, text, ranks=2):
        found, first = [], core.Recording.__init__
        for alike in (True, False):
            def made(recording, *args, alike=alike):
                first(recording, *args)
                recording.finds_alike = alike
            with unittest.mock.patch.object(core.Recording, "__init__", made):
                try:
                    found.append(re.sub(r"\S*/(?=run\.py)", "", record(text, ranks, "calls=2")))
                except Refused as error:
                    found.append(re.sub(r"\S*/(?=run\.py)", "", str(error)))
        self.assertEqual(*found, f"seed {SEED}\n{text}")
        return found[0]

    def test_random_programs(self):
        rng, fine = random.Random(SEED), 0
        for _ in range(50):
            fine += "\nrank 1\n" in self.both(grid_of_random_programs(rng))
        self.assertGreater(fine, 15)

    def test_programs_of_the_other_tests(self):
        for text in (PUSH.replace("[(2,)]", "[(19,)]").replace("100", "1200").replace("4 * WORLD", "20 * WORLD"), BLOCKS, HANDSHAKE.replace("[(1,)]", "[(6,)]")):
            self.assertIn("\nrank 1\n", self.both(text))

    def test_most_programs_are_not_run(self):
        text = PUSH.replace("[(2,)]", "[(190,)]").replace("100", "12000").replace("4 * WORLD", "190 * WORLD")
        ran, record_one = [], lanes.Launch._record
        with unittest.mock.patch.object(lanes.Launch, "_record", lambda *args: ran.append(1) or record_one(*args)):
            record(text, 2, "calls=2")
        self.assertLess(len(ran), 20)  # of 760: the first one, which changes what memory is, the next, and the tail


HANDSHAKE = '''
@triton.jit
def thread_number():
    return tl.inline_asm_elementwise("mov.u32 $0, %tid.x;", "=r", [], dtype=tl.uint32, is_pure=True, pack=1)

@triton.jit
def meet(pads, wide: tl.constexpr, before: tl.constexpr, after: tl.constexpr):
    others = tl.arange(0, WORLD)
    far = tl.load(pads + others).to(tl.pointer_type(tl.int32)) + RANK
    near = tl.load(pads + RANK).to(tl.pointer_type(tl.int32)) + others
    if before:
        tl.debug_barrier()
    if thread_number() < wide:
        tl.inline_asm_elementwise(f"""
            {{
                .reg .pred %p<1>;
                again: atom.global.sys.{"release" if before else "relaxed"}.cas.b32 $0, [$1], 0, 1;
                setp.ne.u32 %p0, $0, 0;
                @%p0 bra again;
            }}""", "=r,l", [far], dtype=tl.int32, is_pure=False, pack=1)
        tl.inline_asm_elementwise(f"""
            {{
                .reg .pred %p<1>;
                again: atom.global.sys.{"acquire" if after else "relaxed"}.cas.b32 $0, [$1], 1, 0;
                setp.eq.u32 %p0, $0, 1;
                @!%p0 bra again;
            }}""", "=r,l", [near], dtype=tl.int32, is_pure=False, pack=1)
    if after:
        tl.debug_barrier()

@triton.jit
def one_shot(boxes, pads, x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mine = tl.load(boxes + RANK).to(tl.pointer_type(tl.float32))
    tl.store(mine + at, tl.load(x + at))
    meet(pads, WORLD, FIRST, True)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for r in tl.static_range(WORLD):
        total += tl.load(tl.load(boxes + r).to(tl.pointer_type(tl.float32)) + at)
    tl.store(y + at, total)
    meet(pads, WORLD, True, False)

def table(memory):
    import numpy
    out = Memory("window", "table", WORLD, "int64")
    first = memory.region.address - RANK * core.HEAP_BYTES
    out.region.contents = (first + numpy.arange(WORLD, dtype=numpy.int64) * core.HEAP_BYTES).view(numpy.uint8)
    out.region.constant = True
    return out

FIRST = True
x, y = Memory("in", "x", 64, "float32", kept=True), Memory("out", "y", 64, "float32", kept=True)
box, pad = Memory("window", "box", 64, "float32"), Memory("window", "pad", WORLD, "int32", zeroed=True)
boxes, pads = table(box), table(pad)
peal.expect(y, sum(peal.of_ranks(x)))
for call in peal.calls():
    one_shot[(1,)](boxes, pads, x, y, BLOCK=64)
'''

PUSH = '''
@triton.jit
def push(x, y, box, flags, n, apart: tl.constexpr, EPOCH: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    mine = tl.load(x + at, mask=inside)
    for r in range(WORLD):
        far = (r - RANK) * apart
        tl.store((box.to(tl.int64) + far).to(tl.pointer_type(tl.float32)) + RANK * n + at, mine, mask=inside)
        tl.atomic_xchg((flags.to(tl.int64) + far).to(tl.pointer_type(tl.int32)) + pid * WORLD + RANK, EPOCH, sem="release", scope="sys")
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for r in range(WORLD):
        while tl.atomic_add(flags + pid * WORLD + r, 0, sem=SEM, scope="sys") < EPOCH:
            pass
        total += tl.load(box + r * n + at, mask=inside)
    tl.store(y + at, total, mask=inside)

SEM = "acquire"
x, y = Memory("in", "x", 100, "float32", kept=True), Memory("out", "y", 100, "float32", kept=True)
box, flags = Memory("window", "box", 100 * WORLD, "float32"), Memory("window", "flags", 4 * WORLD, "int32", zeroed=True)
peal.expect(y, sum(peal.of_ranks(x)))
for call in peal.calls():
    push[(2,)](x, y, box, flags, 100, core.HEAP_BYTES, call + 1, BLOCK=64)
'''

# The same for blocks of a matrix: rows with gaps between them.
BLOCKS = PUSH.replace("at = pid * BLOCK + tl.arange(0, BLOCK)", "at = tl.arange(0, 4)[:, None] * 24 + pid * 12 + tl.arange(0, 12)[None, :]").replace(
    "((BLOCK,)", "((4, 12)").replace("100", "96")


# The last program to arrive tells the neighbour.
LAST = '''
@triton.jit
def kernel(x, y, box, flags, count, P: tl.constexpr, EPOCH: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    far = ((RANK + 1) % WORLD - RANK) * core.HEAP_BYTES
    tl.store((box.to(tl.int64) + far).to(tl.pointer_type(tl.float32)) + at, tl.load(x + at))
    val = tl.atomic_add(count, 1, sem="acq_rel", scope="gpu")
    if val == P - 1:
        tl.atomic_xchg((flags.to(tl.int64) + far).to(tl.pointer_type(tl.int32)), EPOCH, sem="release", scope="sys")
        tl.store(count, 0)
    while tl.atomic_add(flags, 0, sem="acquire", scope="sys") < EPOCH:
        pass
    tl.store(y + at, tl.load(box + at))

x, y = Memory("in", "x", 80, "float32", kept=True), Memory("out", "y", 80, "float32", kept=True)
box, flags, count = Memory("window", "box", 80, "float32"), Memory("window", "flags", 4, "int32", zeroed=True), Memory("window", "count", 1, "int32", zeroed=True)
for call in peal.calls():
    kernel[(5,)](x, y, box, flags, count, 5, call + 1, BLOCK=16)
'''


@unittest.skipUnless(tile_command.COMMAND, "PEAL_COMMAND is not set")
class Verdicts(unittest.TestCase):
    def verdict(self, text, *options, command="verify"):
        return tile_command.run_text(command, MEMORY + text, *options)

    def test_a_push_allreduce(self):
        self.assertIn("3 proved", self.verdict(PUSH, "-n", "2,3,4", "--between", "barrier").out)
        self.assertIn("race", self.verdict(PUSH, "-n", "2").out)
        self.assertIn("race", self.verdict(PUSH.replace('"acquire"', '"relaxed"'), "-n", "2", "--between", "barrier").out)
        self.assertIn("wrong", self.verdict(PUSH.replace("total += ", "total = "), "-n", "2", "--between", "barrier").out)

    def test_rows_with_gaps_are_one_op(self):
        self.assertIn("3 proved", self.verdict(BLOCKS, "-n", "2,3,4", "--between", "barrier").out)
        self.assertIn("race", self.verdict(BLOCKS.replace("pid * 12", "pid * 11"), "-n", "2", "--between", "barrier").out)
        self.assertIn("wrong", self.verdict(BLOCKS.replace("tl.store(y + at, total", "tl.store(y + at, mine"), "-n", "2", "--between", "barrier").out)
        options = ("-n", "2", "--between", "barrier", "--calls", "1")
        plans = [self.verdict(text, *options, command="plan").out for text in (PUSH, BLOCKS)]
        self.assertEqual(*(plan.count(" <- ") for plan in plans))
        self.assertIn("y[12 +: 12, 4 rows every 24]", plans[1])
        self.assertIn("allreduce: right", self.verdict(BLOCKS, *options, command="run").out)
        self.assertIn("full: the result is what the contract says", self.verdict(BLOCKS, "-m", "mesh4x4", *options, command="sim").out)

    def test_the_last_one_to_arrive(self):
        again = "        tl.store(count, 0)\n"
        host = LAST.replace(again, "").replace("    kernel[", "    core.rank().host_write(count.region, 0, 4, 0)\n    kernel[")
        for text, answer in ((LAST, "proved for any number of calls"), (host, "proved"), (LAST.replace('"acq_rel"', '"release"'), "race"),
                             (LAST.replace('sem="release", scope="sys"', 'sem="relaxed", scope="sys"'), "race"), (LAST.replace(again, ""), "deadlock"),
                             (LAST.replace(again, "").replace("P - 1", "P - 2"), "race"), (LAST.replace("kernel[(5,)]", "kernel[(4,)]").replace(again, ""), "deadlock"),
                             (LAST.replace("if val ==", "if not val !="), "decides what the kernel does"),
                             (LAST.replace("EPOCH, sem", "EPOCH + pid, sem"), "differs from program to program"),
                             (LAST.replace('"count", 1, "int32", zeroed=True', '"count", 1, "int32"'), "nothing says what the counter holds"),
                             (LAST.replace("P - 1", "P - 2"), "the counter is set back when 1 more arrive"),
                             (LAST.replace("    val =", "    tl.atomic_add(count, 2, mask=pid == 3)\n    val ="), "also changed in other ways"),
                             (LAST.replace(again, again + "        at = 0\n"), "decides what the kernel does")):
            with self.subTest(answer):
                done = self.verdict(text, "-n", "3" if "proved" in answer else "2", "--between", "barrier")
                self.assertIn(answer, done.folded)

    def test_one_thread_does_it(self):
        apart = LAST.replace('val = tl.atomic_add(count, 1, sem="acq_rel", scope="gpu")', "if thread_number() == 5:").replace("    if val == P - 1:\n", "")
        apart = apart.replace("        tl.store(count, 0)\n", "").replace("[(5,)]", "[(1,)]").replace("80", "16")
        text = HANDSHAKE[:HANDSHAKE.index("@triton.jit\ndef meet")] + apart
        self.assertIn("race", self.verdict(text, "-n", "2", "--between", "barrier").out)  # thread 5 speaks for itself alone
        text = text.replace("    if thread_number", "    tl.debug_barrier()\n    if thread_number")
        self.assertIn("proved", self.verdict(text, "-n", "2", "--between", "barrier").out)

    def test_a_contract_from_outside(self):
        plain = PUSH.replace("peal.expect(y, sum(peal.of_ranks(x)))\n", "")
        for implements, answer in (("allreduce:x,y", "result: allreduce"), ("allreduce", "result: allreduce"), ("allgather:x,y", "refuted")):
            self.assertIn(answer, self.verdict(plain, "-n", "2", "--between", "barrier", "--implements", implements).out, implements)
        self.assertIn("they use box, x, y", self.verdict(plain, "-n", "2", "--implements", "allreduce:x,z").err)

    @unittest.skipUnless(os.path.realpath(sys.executable) == os.path.realpath("/usr/bin/python3") and hasattr(sys, "orig_argv"), "numpy is not the system's")
    def test_a_python_without_numpy_hands_on(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
            with open(os.path.join(folder, "run.py"), "w", encoding="utf-8") as file:
                file.write(MEMORY + PUSH)
            path, options = os.path.join(folder, "bin"), ("-n", "2", "--between", "barrier")
            ran = tile_command.run("verify", "run.py", *options, folder=folder, given={"PATH": path + ":" + os.environ["PATH"], "PEAL_PYTHON": None})
            self.assertIn("proved", ran.out, ran.err)
            ran = tile_command.run("verify", "run.py", *options, folder=folder, given={"PEAL_PYTHON": os.path.join(path, "python3")})
            self.assertIn("numpy is needed", ran.folded)

    def test_given_contents_decide(self):
        text = '''
@triton.jit
def route(x, box, where, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(box + tl.load(where + RANK) * BLOCK + at, tl.load(x + at))

x, box, where = Memory("in", "x", 8, "float32"), Memory("window", "box", 32, "float32"), Memory("window", "where", 2, "int32")
route[(1,)](x, box, where, BLOCK=8)
'''
        with tempfile.TemporaryDirectory() as folder:
            for numbers, answer in (((1, 3), "for the given contents of 'where'"), ((1, 9), "bytes after the end of 'box'"), ((1,), "4 bytes are given")):
                path = os.path.join(folder, "where.bin")
                with open(path, "wb") as file:
                    file.write(np.array(numbers, np.int32).tobytes())
                done = self.verdict(text, "-n", "2", "--input", f"where={path}")
                self.assertIn(answer, done.folded)
        self.assertIn("give them by --input", self.verdict(text, "-n", "2").err)

    def test_recordings_are_files(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "run.py"), "w", encoding="utf-8") as file:
                file.write(MEMORY + "import sys\nassert sys.argv[1:] == ['--size', '3']\n" + PUSH)
            done = subprocess.run([*tile_command.words("record", "run.py", "-n", "2", "--between", "barrier", "-o", "push.rec"), "--size", "3"],
                                  cwd=folder, text=True, check=False, capture_output=True, env=tile_command.environment())
            self.assertEqual(done.stdout, "push.rec: 2 ranks; peal verify push.rec proves it or shows what is wrong\n", done.stderr)
            self.assertIn("1 proved", tile_command.run("verify", "push.rec", folder=folder).out)
            self.assertEqual(sorted(os.listdir(folder)), ["push.rec", "run.py"])

    def test_a_hand_shake_in_assembly(self):
        proved = self.verdict(HANDSHAKE, "-n", "2")
        self.assertIn("proved", proved.out)
        self.assertIn("any number of calls", proved.out)
        self.assertIn("race", self.verdict(HANDSHAKE.replace("FIRST = True", "FIRST = False"), "-n", "2").out)
        self.assertIn("race", self.verdict(HANDSHAKE.replace("    meet(pads, WORLD, True, False)\n", ""), "-n", "2").out)
        self.assertIn("race", self.verdict(HANDSHAKE.replace("    if before:\n        tl.debug_barrier()\n", ""), "-n", "2").out)
        self.assertIn("race", self.verdict(HANDSHAKE.replace("    if after:\n        tl.debug_barrier()\n", ""), "-n", "2").out)


if __name__ == "__main__":
    print(f"seed {SEED}")
    unittest.main()
