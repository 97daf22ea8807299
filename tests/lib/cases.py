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


def check_files(script, files, check, words="case"):
    """Prints TAP, a line for each of the files, or of those beside the script; returns the exit code.

    check(path, word, text) returns or yields what is wrong.
    """
    tap = Tap()
    for path in files or sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(script)), "*.peal"))):
        cases = find_cases(path, words)
        problems = [problem for word, text in cases for problem in check(path, word, text)]
        tap.check(os.path.basename(path), cases and not problems, *problems or ["no case"])
    return tap.end()
