# SPDX-License-Identifier: Apache-2.0
"""'peal verify --fix' of programs: a change of a line is made, the changed program is proved, and the file as it was is kept; any other change
is refused with its reason."""
import os
import tempfile
import unittest

import tile_command
from peal.record import Refused
from peal.tiles import edits
from test_pallas import HEAD
from test_tile_answers import PUSH, line_of

SHIFT = HEAD + '''
def kernel(x_ref, o_ref, buf, send, recv):
    right, left = neighbours()
    copy = pltpu.make_async_remote_copy(x_ref, buf, send, recv, device_id=right)
    copy.start()
    copy.wait()  # the wait
    o_ref[...] = buf[...]  # the use

call(kernel, data(8, 128), scratch=[VMEM((8, 128), F32), DMA, DMA])
'''


class Edits(unittest.TestCase):
    """Of texts: what is tried, and the line that becomes of it."""

    def edit(self, text, kind, what, line=1, done=()):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            tries = {(kind, (path, line)): what} if kind else {}
            return edits.edited(tries, [one._replace(**{name: (path, getattr(one, name)) for name in one._fields if name != "half"})
                                        for one in done])[1]

    def test_a_line_changes(self):
        for text, kind, what, wanted in (
                ("tl.atomic_add(p, 1, sem='relaxed')", "sem", "release", "tl.atomic_add(p, 1, sem='release')"),
                ("tl.atomic_add(p, 1)", "scope", "system", 'tl.atomic_add(p, 1, scope="sys")'),
                ("tl.atomic_add(p, 1, )", "scope", "system", 'tl.atomic_add(p, 1, scope="sys")'),
                ("x = tl.max(tl.atomic_add(q(p), 1))  # é", "scope", "system", 'x = tl.max(tl.atomic_add(q(p), 1, scope="sys"))  # é'),
                ("é = tl.atomic_add(p, 1, sem=\"relaxed\")", "sem", "acquire", "é = tl.atomic_add(p, 1, sem=\"acquire\")"),
                ("while tl.atomic_add(p, 0) != n: pass", "wait", "ge", "while tl.atomic_add(p, 0) < n: pass"),
                ("while n != tl.atomic_add(p, 0): pass", "wait", "ge", "while n > tl.atomic_add(p, 0): pass"),
                ("while not tl.load(p) == n: pass", "wait", "ge", "while not tl.load(p) >= n: pass"),
                ("pl.semaphore_wait(s, 2)", "amount", "1", "pl.semaphore_wait(s, 1)"),
                ("pl.semaphore_wait(s, value=2)", "amount", "1", "pl.semaphore_wait(s, value=1)"),
                ("copy.wait()\nx = 1", "amount", "0", "x = 1"),
                ("if x:\n    copy.wait()\n", "amount", "0", "if x:\n    pass\n")):
            self.assertEqual(self.edit(text, kind, what, text[:text.find("wait()")].count("\n") + 1 if kind == "amount" else 1), wanted)

    def test_a_wait_moves(self):
        text = "def f():\n    a()\n    # why\n    use(x)  # here\n    b()\n    c.wait()  # é\n    d()\n"
        self.assertEqual(self.edit(text, None, "", done=[edits.Moved(4, 6)]),
                         "def f():\n    a()\n    # why\n    c.wait()  # é\n    use(x)  # here\n    b()\n    d()\n")
        with self.assertRaisesRegex(Refused, "is no statement beside line 1"):
            self.edit("use(x)\nif y:\n    c.wait()\n", None, "", done=[edits.Moved(1, 3)])

    def test_both_halves_are_waited_for(self):
        text = "def g():\n    c.wait_recv()\ndef f():\n    c.start()\n    c.wait_recv()\n"
        self.assertEqual(self.edit(text, None, "", done=[edits.Drained(4, "send")]), "def g():\n    c.wait_recv()\ndef f():\n    c.start()\n    c.wait()\n")
        with self.assertRaisesRegex(Refused, "a line that only its author can place|lines that only its author can write"):
            self.edit(text, None, "", done=[edits.Drained(4, "recv")])

    def test_what_is_no_change_of_a_line_is_refused(self):
        for text, kind, what, why in (
                ("f(p)", "sem", "release", "no atomic is written at"), ("tl.atomic_add(p, 1, sem=order)", "sem", "release", "sem is not a text"),
                ("wait(p, n)", "wait", "ge", "no loop compares"), ("x = 1", "meet", "programs", "a barrier in a kernel takes lines"),
                ("x = 1", "own", "both", "a semaphore for each copy takes lines"), (" ", None, "", "a barrier between calls takes lines"),
                ("x = copy.wait()", "amount", "0", "no wait is a statement")):
            with self.assertRaisesRegex(Refused, why):
                self.edit(text, kind, what)


@unittest.skipUnless(tile_command.COMMAND, "the command is not built")
class Fixes(unittest.TestCase):
    def fix(self, text, *options):
        changed = []
        answer = tile_command.run_text("verify", text, "-n", "2,3", "--fix", *options, changed=changed)
        return answer, changed[0]

    def test_a_change_of_a_line_is_made_and_proved(self):
        for whole, right, wrong, words in (
                (PUSH, 'sem="release", scope="sys")  # the signal', 'sem="relaxed", scope="sys")  # the signal', "sem='release' at"),
                (PUSH, 'scope="sys")  # the signal', 'scope="gpu")  # the signal', "scope='sys' at"),
                (PUSH, "< epoch:  # the wait", "!= epoch:  # the wait", "a loop that ends at '>='"),
                (SHIFT, "copy.wait()  # the wait", "copy.wait_recv()  # the wait", "wait_send() of the copy")):
            broken = whole.replace(right, wrong)
            answer, after = self.fix(broken)
            self.assertEqual(after, whole, answer.said)
            self.assertEqual(answer.files, {"run.py.orig": broken})
            self.assertIn(words, answer.fix)
            for line in ("--- run.py", f"-{broken.splitlines()[line_of(whole, right.split('#')[-1]) - 1]}", "+++ run.py",
                         "run.py: fixed; the file as it was is run.py.orig"):
                self.assertIn(line, answer.out)

    def test_a_wait_comes_before_the_use(self):
        wait, use = (next(line for line in SHIFT.splitlines(True) if mark in line) for mark in ("# the wait", "# the use"))
        answer, after = self.fix(SHIFT.replace(wait + use, use + wait))
        self.assertEqual(after, SHIFT, answer.said)
        self.assertIn(f"wait_recv() of the copy that run.py:{line_of(SHIFT, 'copy.start()')} starts, before run.py:{line_of(SHIFT, '# the wait')} "
                      f"and not at line {line_of(SHIFT, '# the use')}", answer.fix)

    def test_other_changes_are_refused(self):
        one_box = PUSH.replace("call % 2", "0")
        for text, why in ((one_box, "not changed: a barrier between calls takes lines that only its author can write"),
                          (PUSH.replace("total += ", "total = "), "not changed: no change that was tried proves it"),
                          (SHIFT.replace("DMA])", "DMA], params=pltpu.CompilerParams(skip_device_barrier=True))"),
                           "not changed: a barrier in a kernel takes lines that only its author can write")):
            answer, after = self.fix(text)
            self.assertEqual((after, answer.files), (text, {}), answer.said)
            self.assertIn("run.py: " + why, answer.folded)

    def test_nothing_to_fix(self):
        answer, after = self.fix(PUSH)
        self.assertEqual((answer.code, after, answer.files), (0, PUSH, {}), answer.said)

    def test_a_kernel_of_tl_is_not_changed(self):
        text = 'def kernel(t_ptr, n_elem, world_size, tl):\n    x = tl.load(t_ptr, shape=(8,), dtype="f16")\n    tl.recv(dir="W", shape=(8,), dtype="f16")\n'
        answer, after = self.fix(text)
        self.assertEqual((after, answer.files), (text, {}), answer.said)
        self.assertIn("--fix is for programs that call their kernels", answer.folded)


if __name__ == "__main__":
    unittest.main()
