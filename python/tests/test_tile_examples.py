# SPDX-License-Identifier: Apache-2.0
"""The examples with tile kernels are proved, and each broken variant of examples/tiles/broken gets the verdict that is beside it."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

COMMAND = os.environ["PEAL_COMMAND"]
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "tiles")


def verdicts(folder, file, ranks):
    """What 'peal verify' says, by the number of ranks."""
    done = subprocess.run([COMMAND, "verify", file, "-n", ranks, "--no-cache"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "PEAL_PYTHON": sys.executable}, text=True, check=False)
    rows = re.findall(r"^ +(\d+) +\d+  (\w+(?: \w+)?)  ", done.stdout, re.M)
    return {int(number): verdict for number, verdict in rows}, done.stdout


def broken():
    with open(os.path.join(EXAMPLES, "broken"), encoding="utf-8") as table:
        for line in table:
            if line.strip() and not line.startswith("#"):
                file, edit, verdict = (part.strip() for part in (line.split("|")[0], "|".join(line.split("|")[1:-1]), line.split("|")[-1]))
                other = re.match(r"(\w+\.py): ", edit)
                verdict, _, ranks = verdict.partition(" at ")
                yield file, other.group(1) if other else file, edit[other.end():] if other else edit, verdict, int(ranks or 2)


class Examples(unittest.TestCase):
    def test_examples_are_proved(self):
        named = {file for file, *_ in broken()}
        files = {name for name in os.listdir(EXAMPLES) if name.endswith(".py") and name != "common.py" and "jax" not in name}
        self.assertEqual(files & named, named)
        for file in sorted(named):
            with self.subTest(file):
                found, said = verdicts(EXAMPLES, file, "2,4")
                self.assertEqual(found, {2: "proved", 4: "proved"}, said)

    def test_broken_variants_are_refuted(self):
        for file, edited, edit, verdict, ranks in broken():
            with self.subTest(f"{file}: {edit}"), tempfile.TemporaryDirectory() as folder:
                shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
                with open(os.path.join(folder, edited), encoding="utf-8") as text:
                    before = text.read()
                subprocess.run(["sed", "-i", edit, edited], cwd=folder, check=True)
                with open(os.path.join(folder, edited), encoding="utf-8") as text:
                    self.assertNotEqual(text.read(), before, "the edit changes nothing")
                found, said = verdicts(folder, file, str(ranks))
                self.assertEqual(found, {ranks: verdict}, said)


if __name__ == "__main__":
    unittest.main()
