# SPDX-License-Identifier: Apache-2.0
"""Runs tests from one process that has imported torch: what they start is forked from it.

    /usr/bin/python3 torch/tests/several.py NAME:WORLD_SIZE ... [-- NAME:WORLD_SIZE ...]

Lists with -- between them are run beside each other: tests that mostly wait cost nothing then.
"""
import importlib
import os
import sys
import traceback

import common  # noqa: F401 (torch, and where the package is)


def start(function, *args):
    """A forked process in which the function is all that is run."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function(*args)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    return pid


def ended_well(pid):
    return os.waitpid(pid, 0)[1] == 0


def run(tests):
    """One after the other, each in a process of its own."""
    for test in tests:
        name, world = test.split(":")
        if not ended_well(start(importlib.import_module(name).main, int(world))):
            sys.exit(f"{test} failed")


def lists(arguments):
    found = [[]]
    for argument in arguments:
        if argument == "--":
            found.append([])
        else:
            found[-1].append(argument)
    return found


if __name__ == "__main__":
    pids = [start(run, tests) for tests in lists(sys.argv[1:])]
    sys.exit(0 if all([ended_well(pid) for pid in pids]) else 1)
