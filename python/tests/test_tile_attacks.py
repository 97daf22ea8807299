# SPDX-License-Identifier: Apache-2.0
"""Kernels and programs that must not be proved: what a recording could get wrong without a word, and bad input. Each is refused with the author's
line, or found wrong by the verifier."""
import io
import os
import signal
import tempfile
import time
import unittest
from unittest import mock

import tile_command
from peal.record import Refused
from peal.tiles import core
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
                (f"while {LOOK} < 0.5:\n    pass", 0, "which has a fraction"),
                (f"while {LOOK}.to(tl.int8) != 1:\n    pass", 0, "as data, as a int8"),
                (f"while {LOOK}.to(tl.int1) != 1:\n    pass", 0, "as data, as a int1"),
                ("while tl.atomic_add(f, 0, mask=RANK == 1) != 1:\n    pass", 0, "that its mask leaves out"),
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

    def test_masks_and_types_of_atomics(self):
        for body, none in (("tl.atomic_add(f, 1, mask=RANK == 0)", True), ("tl.atomic_add(f + i, 1, mask=i < RANK)", False),
                           ("tl.atomic_xchg(f, 1, mask=RANK == 5)", True), ("tl.atomic_add(box, 1.0, mask=RANK == 0)", True)):
            ranks = record(kernel(body)).split("\nrank ")[1:]
            self.assertEqual([("notify" in text or "accumulate" in text) for text in ranks],
                             [False, False] if "5" in body else [True, False] if none else [False, True], body)
        self.assertIn(" set -2147483648 ", record(kernel("tl.atomic_xchg(f, 2147483648)")))

    def test_what_the_host_puts_into_flags(self):
        for value in 0, 1, 5:
            text = kernel("while tl.atomic_add(f, 0, sem='acquire') == 1:\n    pass\ntl.atomic_xchg(f, 1)",
                          f"k[(1,)](x, y, box, f)\ncore.rank().host_write(f.region, 0, 64, {value})\nk[(1,)](x, y, box, f)")
            if value < 2:
                self.assertIn("== 0", record(text))
            else:
                with self.assertRaisesRegex(Refused, "ends when a signal is not 1 can be expressed if nothing else is in the signal, and it is set to 5"):
                    record(text)

    def test_single_swaps_bits_and_maxima(self):
        for body, why in (("tl.atomic_cas(f, 0, 1)", ""), ("tl.atomic_cas(f, 0, 1)\ntl.atomic_xchg(f, 2)", "a compare-and-swap from 0 to 1 without a loop"),
                          ("tl.atomic_cas(f, 0, 1)\ntl.atomic_add(f, 1)", "set in other ways"), ("tl.atomic_or(f, 4)", ""),
                          ("tl.atomic_or(f, 4)\ntl.atomic_or(f, 2)", "an atomic 'or' with"), ("tl.atomic_max(f, 3)", ""),
                          ("tl.atomic_max(f, 3)\ntl.atomic_max(f, 4)", "to no less than before"), ("tl.atomic_max(f, 3)\ntl.atomic_max(f, 3)", ""),
                          ("tl.atomic_max(f, 3)\ntl.atomic_add(f, 2)", "set in other ways"), ("tl.atomic_max(far(f, other, tl.int32), 3)", ""),
                          ("tl.atomic_max(far(f, 0, tl.int32), 3)", "if one program alone changes it")):
            with self.subTest(body):
                if why:
                    with self.assertRaisesRegex(Refused, why):
                        record(kernel(body))
                else:
                    self.assertIn("notify", record(kernel(body)))

    def test_answers_that_are_stored(self):
        self.assertIn("what an atomic answered is stored at", record(kernel("tl.store(f + 1, tl.atomic_add(f, 1))")))

    def test_what_is_imported_and_not_used(self):
        text = ("import os\nfrom triton_dist.language.smem_ops import allocate_smem\nfrom triton_dist.language.tma import cp_async\n"
                "assert os.environ['TORCHELASTIC_RUN_ID'] and triton.compiler.compiler.triton_key() == ''\nprint('once')\n")
        with mock.patch("sys.stdout", new=io.StringIO()) as said:
            self.assertIn("\nrank 1\n", record(text + kernel("tl.store(y, 1.0)")))
        self.assertEqual(said.getvalue(), "once\n" * 2)  # by each rank, and not by the first run
        with self.assertRaisesRegex(Refused, "smem_ops.allocate_smem is not known"):
            record(text + kernel("allocate_smem(16)"))

    def test_of_bits(self):
        self.refused("tl.store(y + i, tl.load(x + i).to(tl.float16, bitcast=True))", 0, "different sizes")
        text = record(kernel("tl.store(y + i, tl.load(x + i).to(tl.float16).to(tl.bfloat16, bitcast=True).to(tl.float32))"))
        self.assertIn("compute bits", text)
        self.assertIn("i32=1.0", record(kernel("tl.store(f + i, tl.load(x + i, mask=i < 4, other=1.5).to(tl.int32))")))

    @mock.patch.object(core, "MAX_OPS", 20000)
    def test_what_no_kernel_is(self):
        for text, why in (
                ("import time\n" + kernel("tl.store(y + int(time.time()) % 2, 1.0)"), "uses the module 'time'"),
                ("COUNT = 0\n" + kernel("global COUNT\nCOUNT = 1\ntl.store(y, 1.0)"), "the kernel 'k' sets 'COUNT'"),
                (kernel("k[(1,)](x, y, box, f)"), "a kernel launches a kernel"),
                (kernel("tl.store(y, 1.0)", "k[(1 << 20,)](x, y, box, f)"), "a grid of 1048576 programs"),
                (kernel("tl.store(y, 1.0)", "k[(-1,)](x, y, box, f)"), "is no grid"),
                (kernel("tl.store(y, 1.0)", "k[(1, 1, 1, 1)](x, y, box, f)"), "is no grid"),
                (kernel("tl.store(y, 1.0)", "k(x, y, box, f)"), "called without a grid"),
                (kernel("tl.store(y, 1.0)", "k[(1,)](x, y, box)"), "nothing is given for the parameter 'f'"),
                (kernel("tl.store(y, 1.0)", "k[(0,)](x, y, box, f)"), "launches no kernel"),
                (kernel("tl.store(y + tl.arange(0, 1 << 25), 1.0)"), "a range from 0 to"),
                (kernel("while True:\n    tl.store(y, 1.0)"), "a loop without end"),
                (kernel("tl.store(y, 1.0)", "import threading\nt = threading.Thread(target=lambda: k[(1,)](x, y, box, f))\nt.start()\nt.join()\n"
                        "k[(1,)](x, y, box, f)"), "and by no other"),
                (kernel("tl.store(y, 1.0)", "if RANK == 0: program.barrier()\nk[(1,)](x, y, box, f)\nprogram.barrier()"), "never comes: rank 1 has ended"),
                (kernel("tl.store(y, 1.0)", "k[(1,)](x, y, box, f)\nif RANK: raise SystemExit(0)\nprogram.barrier()"), "never comes: rank 1 has ended")):
            with self.subTest(text[-100:]), self.assertRaisesRegex(Refused, why.replace("(", "[(]")) as caught:
                record(text)
            self.assertIn("run.py:", str(caught.exception)) if "launches no" not in why else None


@unittest.skipUnless(tile_command.COMMAND, "PEAL_COMMAND is not set")
class Commands(unittest.TestCase):
    """Programs that harm the process that records them: an error with the line, and nothing left behind."""

    def start(self, folder, host, body="tl.store(y + i, 1.0)", name="run.py", **environment):
        os.makedirs(os.path.join(folder, "tmp"))
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(MEMORY + kernel(body, host))
        return tile_command.start("verify", name, "-n", "2", "--calls", "1", folder=folder, given={"TMPDIR": os.path.join(folder, "tmp"), **environment})

    def nothing_is_left(self, folder):
        """A process of its own tidies up after the command has ended, however it ended."""
        for _ in range(100):
            left = os.listdir(os.path.join(folder, "tmp"))
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    left += [pid] if os.path.realpath(f"/proc/{pid}/cwd") == os.path.realpath(folder) else []
                except OSError:
                    continue  # it has ended
            if not left:
                return
            time.sleep(0.1)
        self.fail(f"left behind: {left}")

    def test_programs(self):
        line = LINE + 1  # of the host's first
        for host, why in (
                ("def (:", f"run.py:{line}: SyntaxError"), ("1 / 0", f"run.py:{line}: ZeroDivisionError"), ("exit(3)", f"run.py:{line}: "),
                ("def g(): g()\ng()", f"run.py:{line}: RecursionError"), ("import os; os._exit(0)", "it ended its own process"),
                ("import os; os.abort()", "run.py\", line " + str(line)), ("a = bytearray(1 << 40)", f"run.py:{line}: MemoryError"),
                ("while True: pass", f"run.py:{line}: the time for recording is over here"), ("import nothing_like_it", f"run.py:{line}: ModuleNotFoundError"),
                ("raise KeyboardInterrupt", f"run.py:{line}: KeyboardInterrupt"),
                ("import os, time\nif os.fork() == 0: time.sleep(1000)\nk[(1,)](x, y, box, f)", "proved"),
                ("for _ in range(100000): print('flood' * 20)\nk[(1,)](x, y, box, f)", "proved"),
                ("import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\nk[(1,)](x, y, box, f)", "proved")):
            with self.subTest(host), tempfile.TemporaryDirectory() as folder:
                with self.start(folder, host, PEAL_RECORD_SECONDS="3" if "while" in host else "30") as process:
                    said = process.communicate(timeout=1500)[0]
                self.assertIn(why, said[-4000:])
                self.assertEqual(process.returncode == 0, why == "proved", said[-4000:])
                self.nothing_is_left(folder)

    def test_a_missing_program(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, why in ("nothing.py", "No such file or directory"), (".", None):
                done = tile_command.run("verify", name, folder=folder)
                self.assertNotIn("Error", done.err)
                self.assertIn(why or "", done.err)
                self.assertNotEqual(done.code, 0)

    def test_names_that_are_not_ascii(self):
        with tempfile.TemporaryDirectory(suffix="-größe 数") as folder:
            with self.start(folder, "k[(1,)](x, y, box, f)", "tl.store(y + 999, 1.0)", name="läuft 数.py") as process:
                said = process.communicate(timeout=1500)[0]
            self.assertIn(f"läuft 数.py:{LINE}: rank 0 uses ", said)
            self.nothing_is_left(folder)

    def test_being_ended(self):
        for number in signal.SIGINT, signal.SIGTERM:
            with self.subTest(number), tempfile.TemporaryDirectory() as folder:
                with self.start(folder, "open('started', 'w').close()\nwhile True: pass") as process:
                    for _ in range(600):
                        if os.path.exists(os.path.join(folder, "started")):
                            break
                        time.sleep(0.1)
                    process.send_signal(number)
                    process.communicate(timeout=1500)
                self.assertNotEqual(process.returncode, 0)
                self.nothing_is_left(folder)


if __name__ == "__main__":
    unittest.main()
