# SPDX-License-Identifier: Apache-2.0
"""The examples with tile kernels are proved, and each broken variant of examples/tiles/broken gets the verdict and the fix that are beside it."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import tile_command

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "tiles")


def broken():
    with open(os.path.join(EXAMPLES, "broken"), encoding="utf-8") as table:
        for line in table:
            if line.strip() and not line.startswith("#"):
                parts = [part.strip() for part in line.split("|")]
                file, edit, verdict, fix = parts[0], "|".join(parts[1:-2]), parts[-2], parts[-1]
                other = re.match(r"(\w+\.py): ", edit)
                verdict, _, ranks = verdict.partition(" at ")
                yield file, other.group(1) if other else file, edit[other.end():] if other else edit, verdict, int(ranks or 2), fix.strip("-")


class Examples(unittest.TestCase):
    def test_examples_are_proved(self):
        named = {file for file, *_ in broken()}
        files = {name for name in os.listdir(EXAMPLES) if name.endswith(".py") and not name.endswith("common.py")}
        self.assertEqual(files, named)
        for file in sorted(named):
            with self.subTest(file):
                answer = tile_command.run("verify", file, "-n", "2,4", folder=EXAMPLES)
                self.assertEqual(answer.verdicts(), {2: "proved", 4: "proved"}, answer.said)

    def test_broken_variants_are_refuted(self):
        for file, edited, edit, verdict, ranks, fix in broken():
            with self.subTest(f"{file}: {edit}"), tempfile.TemporaryDirectory() as folder:
                shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
                with open(os.path.join(folder, edited), encoding="utf-8") as text:
                    before = text.read()
                subprocess.run(["sed", "-i", edit, edited], cwd=folder, check=True)
                with open(os.path.join(folder, edited), encoding="utf-8") as text:
                    self.assertNotEqual(text.read(), before, "the edit changes nothing")
                answer = tile_command.run("verify", file, "-n", ranks, folder=folder)
                self.assertEqual(answer.verdicts(), {ranks: verdict}, answer.said)
                self.assertEqual(answer.fix, fix, answer.said)


if __name__ == "__main__":
    unittest.main()
