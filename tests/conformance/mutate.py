#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every synchronisation of every library kernel is needed.

    mutate.py PEAL FILE.peal...      prints TAP, a line per kernel

Each `notify` and each `wait` is left out in turn, and each wait is made to pass at once (`>= 0`); the front end must
reject what is left, or the verifier refute it.
"""
import os
import re
import subprocess
import sys
import tempfile


def kernels(path):
    """The kernels of a file, comments left out: name, text."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"(?m)^\s*//.*\n", "", file.read())
    for part in re.split(r"(?m)^(?=kernel )", text)[1:]:
        yield re.match(r"kernel (\w+)", part).group(1), part


def mutants(text):
    """What is changed, and the text with that change."""
    for found in re.finditer(r"\b(notify|wait) [^}\n]*", text):
        before, after = text[:found.start()], text[found.end():]
        line = before.count("\n") + 1
        yield f"without line {line}: {found.group(0).strip()}", before + after
        if found.group(1) == "wait":
            weak = re.sub(r">= .*?(?= at launch|\s*$)", ">= 0", found.group(0))
            yield f"line {line} as: {weak.strip()}", before + weak + after


def verify(peal, path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    command = [peal, "verify", path, "-n", "2..5", "--count", "15,60", "--jobs", "1"]
    if "most: int)" in text:
        command += ["--set", "most=64"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def survives(peal, path, text):
    """Why a mutant is not caught, or None."""
    done = verify(peal, path, text)
    rejected = done.returncode == 3 and re.search(r"error: signal '\w+' is never", done.stderr)
    if done.returncode == 1 or rejected:
        return None
    return f"exit {done.returncode}: {(done.stdout + done.stderr).strip().splitlines()[-1:]}"


def main():
    peal, files = os.path.abspath(sys.argv[1]), sys.argv[2:]
    number = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mutant.peal")
        for name, text in (kernel for file in files for kernel in kernels(file)):
            number += 1
            # The unchanged kernel must be proved: otherwise anything would count as caught.
            original = verify(peal, path, text)
            problems = [] if original.returncode == 0 else [f"is not proved itself: exit {original.returncode}"]
            count = 0
            for what, mutant in mutants(text):
                count += 1
                why = survives(peal, path, mutant)
                if why:
                    problems.append(f"{what}: {why}")
            print(f"{'not ok' if problems else 'ok'} {number} - {name} ({count} mutants)")
            for problem in problems:
                print(f"# {problem}")
            failed += bool(problems)
    print(f"1..{number}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
