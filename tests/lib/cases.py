# SPDX-License-Identifier: Apache-2.0
"""Kernel files with `// WORD: TEXT` lines, each of which says what a command must find."""
import glob
import os
import re

from tap import Tap


def find_cases(path, words="case"):
    """[(word, text)]; words: a pattern."""
    with open(path, encoding="utf-8") as file:
        return re.findall(rf"^// ({words}): ?(.*)$", file.read(), re.M)


def check_files(script, files, check, *more, words="case"):
    """Prints TAP, a line for each of the files, or of those beside the script (`more`: and of these patterns); returns the exit code.

    check(path, word, text) returns or yields what is wrong.
    """
    tap = Tap()
    here = os.path.dirname(os.path.abspath(script))
    for path in files or [path for pattern in ("*.peal",) + more for path in sorted(glob.glob(os.path.join(here, pattern)))]:
        cases = find_cases(path, words)
        problems = [problem for word, text in cases for problem in check(path, word, text)]
        tap.check(os.path.relpath(path, here), cases and not problems, *problems or ["no case"])
    return tap.end()
