# SPDX-License-Identifier: Apache-2.0
"""How tests of tile kernels run the command: on a program, in a folder of its own."""
import os
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

COMMAND = os.environ.get("PEAL_COMMAND")


class Answer(NamedTuple):
    """What the command said."""
    code: int
    out: str
    err: str
    files: dict  # that it wrote

    said = property(lambda self: self.out + self.err)
    folded = property(lambda self: re.sub(r"\s+", " ", self.said))
    fix = property(lambda self: next(iter(re.findall(r"fix: (.*?) \(tried at", self.folded)), ""))

    def verdicts(self):
        """By the number of ranks, of the table."""
        return {int(ranks): verdict for ranks, verdict in re.findall(r"^ +(\d+) +\d+ +([a-z][a-z ]*?)  ", self.out, re.M)}


def words(command, file, *options):
    return [COMMAND, command, *map(str, options), file, *(["--no-cache"] if command == "verify" else [])]


def environment(given=None):
    """This one, with the Python of the test and what is given; None takes a variable away."""
    return {name: value for name, value in {**os.environ, "PEAL_PYTHON": sys.executable, **(given or {})}.items() if value is not None}


def start(command, file, *options, folder, given=None):
    """The process of the command; what it says is one text."""
    return subprocess.Popen(words(command, file, *options), cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env=environment(given))


def run(command, file, *options, folder=None, given=None):
    """The command on a file of a folder."""
    before = set(os.listdir(folder)) if folder else set()
    done = subprocess.run(words(command, file, *options), cwd=folder, text=True, check=False, capture_output=True, timeout=600, env=environment(given))
    files = {}
    for name in set(os.listdir(folder)) - before if folder else ():
        if os.path.isfile(os.path.join(folder, name)):
            with open(os.path.join(folder, name), encoding="utf-8") as written:
                files[name] = written.read()
    return Answer(done.returncode, done.stdout, done.stderr, files)


def run_text(command, text, *options, name="run.py", changed=None, **more):
    """The command on a program of this text. changed: a list to which its text afterwards is added."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        answer = run(command, name, *options, folder=folder, **more)
        if changed is not None:
            with open(path, encoding="utf-8") as file:
                changed.append(file.read())
        return answer
