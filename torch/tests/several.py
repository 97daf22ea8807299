# SPDX-License-Identifier: Apache-2.0
"""Runs tests in processes that are forked from this one, which has imported torch.

    /usr/bin/python3 torch/tests/several.py NAME:WORLD_SIZE ... [-- NAME:WORLD_SIZE ...]

Lists that are separated by -- run concurrently, so that tests which mostly wait take no extra time.
"""
import importlib
import os
import sys
import traceback

import common  # noqa: F401 (torch, and where the package is)


def start(function, *args):
    """Forks a process that runs the function and exits; returns its id."""
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
    """One after another, each in a process of its own."""
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
