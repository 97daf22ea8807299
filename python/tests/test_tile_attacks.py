# SPDX-License-Identifier: Apache-2.0
"""Kernels and programs that must not be proved: what a recording could get wrong without a word, and bad input. Each is refused with the author's
line, or found wrong by the verifier."""
import unittest

from peal.record import Refused
from test_tiles import MEMORY, record

TENSORS = '''
x, y = Memory("in", "x", 64, "float32", kept=True), Memory("out", "y", 64, "float32", kept=True)
box = Memory("window", "box", 64, "float32", zeroed=True)
f = Memory("window", "f", 16, "int32", zeroed=True)


@triton.jit
def far(p, r, kind: tl.constexpr):
    return (p.to(tl.int64) + (r - RANK) * core.HEAP_BYTES).to(tl.pointer_type(kind))


@triton.jit
def k(x, y, box, f):
    i = tl.arange(0, 16)
    other = (RANK + 1) % WORLD
'''
LINE = (MEMORY + TENSORS).count("\n") + 1  # of the body's first
TELL = 'tl.atomic_xchg(far(f, other, tl.int32), 1, sem="release", scope="sys")\n'
LOOK = 'tl.atomic_add(f, 0, sem="acquire", scope="sys")'


def kernel(body, host="k[(1,)](x, y, box, f)"):
    return TENSORS + "".join(f"    {line}\n" for line in body.splitlines()) + host + "\n"


class Refusals(unittest.TestCase):
    """What is refused, and the line of the body where."""

    def refused(self, body, line, why, ranks=2):
        with self.subTest(body):
            with self.assertRaises(Refused) as caught:
                record(kernel(body), ranks=ranks)
            self.assertIn(f"run.py:{LINE + line}: ", str(caught.exception))
            self.assertIn(why, str(caught.exception))

    def test_loops_that_do_more_than_wait(self):
        for body, line, why in (
                (f"while {LOOK} < 1:\n    tl.store(y + i, 0.0)", 0, "does something else"),
                (f"while {LOOK} < 1:\n    tl.debug_barrier()\n    tl.atomic_add(f + 1, 1)", 0, "does something else"),
                (f"v = {LOOK}\nwhile v != 1:\n    pass", 1, "does not look at it again"),
                (f"v = {LOOK}\nwhile v != 1:\n    v = tl.atomic_add(f + 1, 0, sem='acquire', scope='sys')", 1, "looks at another one"),
                (f"v = {LOOK}\nwhile v != 1:\n    v = tl.atomic_add(f, 0, sem='relaxed', scope='sys')", 1, "or in another way"),
                (f"v = {LOOK}\ntl.store(y + i, 0.0)\nwhile v != 1:\n    v = {LOOK}", 2, "something else is done, and then"),
                (f"v = {LOOK}\nw = tl.atomic_add(f + 1, 0)\nwhile v != 1:\n    v = {LOOK}", 2, "something else is done, and then"),
                (f"w = tl.atomic_add(f + 1, 0)\nv = {LOOK}\nwhile v != 1 and w != 1:\n    v = {LOOK}", 2, "only a loop that waits"),
                (f"go = True\nv = {LOOK}\nwhile v != 1 and go:\n    v = {LOOK}\n    go = False", 2, "only a loop that waits"),
                (f"while {LOOK} != 1 and tl.atomic_add(f + 1, 0) != 1:\n    pass", 0, "only a loop that waits"),
                (f"while (1 if {LOOK} == 1 else 0) == 0:\n    pass", 0, "only a loop that waits"),
                (f"n = 0\nwhile {LOOK} != 1:\n    n += 1", 1, "does something else"),
                (f"for _ in range(100):\n    if {LOOK} == 1:\n        break", 1, "only a loop that waits"),
                (f"while True:\n    if {LOOK} == 1:\n        break\n    else:\n        tl.store(y, 1.0)", 1, "only a loop that waits"),
                (f"while True:\n    if {LOOK} == 1:\n        tl.store(y, 1.0)\n        break", 1, "only a loop that waits"),
                (f"if {LOOK} != 1:\n    tl.store(y, 1.0)", 0, "only a loop that waits"),
                ("while tl.atomic_add(f, 1) < 4:\n    pass", 0, "repeats an atomic 'add'"),
                ("while tl.atomic_add(box, 0.0) < 1.0:\n    pass", 0, "an atomic on data"),
                ("while tl.load(box) < 1.0:\n    pass", 0, "data decides")):
            self.refused(body, line, why)

    def test_answers_are_no_data(self):
        for body, line, why in (
                ("tl.store(y, tl.atomic_add(f, 1) * 2)", 0, "as data"),
                ("tl.store(y + tl.atomic_add(f, 1), 1.0)", 0, "data"),
                ("tl.store(y + i, 1.0, mask=tl.atomic_add(f, 1) == 0)", 0, "data decides"),
                ("tl.store(y + i, 1.0, mask=tl.load(x + i) > 0)", 0, "data decides"),
                ("tl.store(y, tl.where(tl.atomic_add(f, 1) == 0, 1.0, 2.0))", 0, "as data"),
                ("if tl.load(x) > 0:\n    tl.store(y, 1.0)", 0, "data decides"),
                ("for _ in range(tl.load(f)):\n    pass", 0, "the value of a signal decides")):
            self.refused(body, line, why)
        for body in "tl.store(y, tl.atomic_add(f, 1))", f"{TELL}v = tl.load(f)\nwhile v < 1:\n    v = tl.load(f)\ntl.store(y, v)":
            self.assertIn("compute answer", record(kernel(body)), body)  # any number

    def test_one_element_to_one_address(self):
        for body in ("tl.store(y + i % 4, tl.load(x + i))", "tl.store(y + i * 0, i)", "tl.store(y + i // 2, tl.load(x + i), mask=i < 3)",
                     "tl.store(y + i[:, None] * 2 + i[None, :], tl.load(x + i[:, None] + i[None, :] * 2))",
                     "tl.atomic_add(y + i * 0, 1.0)", "tl.atomic_add(y + i % 4, tl.load(x + i))"):
            self.refused(body, 0, "several elements of a tile are stored to one address")
        for body in ("tl.store(y + i % 4, tl.load(x + i), mask=i < 4)", "tl.store(y + i * 0, 1.0)", "tl.store(y + 15 - i, tl.load(x + i))",
                     "tl.store(y + i[:, None] + i[None, :], 0.0)"):
            record(kernel(body))

    def test_outside(self):
        for body in ("tl.store(box + 64, 1.0)", "tl.store(box - 1, 1.0)", "tl.load(box + 49 + i)", "tl.load(box + 64 + i)", "tl.load(f - 1)",
                     "tl.load(x - 16 + i)", "tl.atomic_add(f + 16, 1)", "tl.atomic_add(f - 1, 1)", "tl.load(far(box, WORLD, tl.float32))",
                     "tl.load(far(box, -1, tl.float32))", "tl.store(far(box, 7, tl.float32) + i, 1.0)", "tl.load(y + i * 5)",
                     "tl.store(y + i, 1.0, mask=i < 16 + 0 * i)\ntl.load(y + 1000000 + i)", "tl.load(tl.cast(0, tl.pointer_type(tl.float32)))",
                     "while tl.atomic_add(f + 16, 0) != 1:\n    pass", "tl.load(x + 60 + i, mask=i < 5)", "tl.load(far(y, other, tl.float32))"):
            self.refused(body, body.count("\n") if "while" not in body else 0, "rank 0 uses ")

    def test_what_is_not_supported(self):
        for body, why in (
                ("tl.inline_asm_elementwise('multimem.ld_reduce.global.add.f32 $0, [$1];', '=r,l', [x], dtype=tl.float32, is_pure=False, pack=1)", "multimem"),
                ("tl._experimental_descriptor_load(x, [0], [16], tl.float32)", "_experimental_descriptor_load is not known"),
                ("tl.nothing_like_it(x)", "triton.language.nothing_like_it is not known")):
            self.refused(body, 0, why)
        for text in "from triton.experimental import gluon", "import triton.experimental.gluon.language as gl":
            with self.assertRaisesRegex(ImportError, "triton.experimental"):
                record(text + "\n")

    def test_of_bits(self):
        self.refused("tl.store(y + i, tl.load(x + i).to(tl.float16, bitcast=True))", 0, "different sizes")
        text = record(kernel("tl.store(y + i, tl.load(x + i).to(tl.float16).to(tl.bfloat16, bitcast=True).to(tl.float32))"))
        self.assertIn("compute bits", text)
        self.assertIn("i32=1.0", record(kernel("tl.store(f + i, tl.load(x + i, mask=i < 4, other=1.5).to(tl.int32))")))


if __name__ == "__main__":
    unittest.main()
