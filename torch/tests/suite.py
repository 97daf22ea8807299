# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own distributed suite, as the installed torch ships it, with the backend "peal".

    /usr/bin/python3 torch/tests/suite.py --world-size 2 [--list FILE] [--only NAME,...] [--gate gloo]
                                              [--fails FILE] [--out FILE.json]

Every test method becomes a row: passed, failed or skipped with its reason. The suite wants the package `expecttest`, which
is not everywhere: a stand-in with the three names it uses takes its place.
"""
import argparse
import fnmatch
import json
import os
import re
import sys
import tempfile
import time
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.environ.get("PEAL_TORCH", os.path.dirname(HERE)))


def stand_in_for_expecttest():
    try:
        import expecttest  # noqa: F401
    except ImportError:
        module = types.ModuleType("expecttest")
        module.ACCEPT = False

        class TestCase(unittest.TestCase):
            longMessage = True

        module.TestCase = TestCase
        sys.modules["expecttest"] = module


def environment():
    """The environment that the suite reads when it is imported, in the parent and in the ranks."""
    os.environ.setdefault("BACKEND", "peal")
    os.environ.setdefault("WORLD_SIZE", "2")
    os.environ.setdefault("TEMP_DIR", tempfile.mkdtemp(prefix="peal-suite-"))
    os.environ.setdefault("PYTORCH_TEST_WITH_SLOW", "0")
    for name in ("barrier", "test_dir", "init_dir"):
        os.makedirs(os.path.join(os.environ["TEMP_DIR"], name), exist_ok=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world-size", type=int, default=2)
    parser.add_argument("--only", default="", help="comma-separated names of tests, with * and ?")
    parser.add_argument("--list", help="a file with one name of a test a line")
    parser.add_argument("--gate", default="peal", help="which tests to skip is decided as for this backend: gloo, mpi")
    parser.add_argument("--fails", help="a file with tests that cannot pass, one a line, and why: all others must, and these not")
    parser.add_argument("--out", help="write the rows as JSON")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no test after that long")
    arguments = parser.parse_args()
    os.environ["WORLD_SIZE"] = str(arguments.world_size)
    os.environ["BACKEND"] = arguments.gate
    sys.argv = sys.argv[:1]  # torch reads it on import

environment()
stand_in_for_expecttest()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import peal_torch  # noqa: E402,F401
from torch.testing._internal import common_distributed  # noqa: E402

for feature in ("ddp", "subgroup", "plugin"):
    common_distributed.DistTestCases.backend_feature[feature].add("peal")

from torch.testing._internal.distributed import distributed_test  # noqa: E402

# Most skips are decided on import, by BACKEND; the tests themselves read it when they run.
distributed_test.BACKEND = os.environ["BACKEND"] = "peal"

if torch.__version__.startswith("1."):
    from torch.nn.parallel import _replicated_tensor_ddp_utils
    # The suite turns on DDP with replicated tensors, whose module does not import on Python 3.11 as Debian ships it.
    _replicated_tensor_ddp_utils._set_ddp_with_replicated_tensor = lambda on: None


class PealSuite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        # Forked, because spawned ranks would each import torch again.
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


class Rows(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.rows = []

    def note(self, test, verdict, reason=""):
        row = {"test": test._testMethodName, "verdict": verdict, "reason": reason}
        self.rows.append(row)
        print(f"{verdict:8} {row['test']}{'  ' + reason if reason else ''}", flush=True)

    def addSuccess(self, test):
        self.note(test, "passed")

    def addSkip(self, test, reason):
        self.note(test, "skipped", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed", last_line(self.failures[-1][1]))

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "failed", last_line(self.errors[-1][1]))


def last_line(text):
    """The last line that names an error: torch 2 adds advice after it."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (errors or lines or [""])[-1][:160]


def listed(path):
    """The names in a file, one per line, each with its reason after #."""
    with open(path) as file:
        return [line.split("#")[0].strip() for line in file if line.split("#")[0].strip()]


def names(arguments):
    every = unittest.TestLoader().getTestCaseNames(PealSuite)
    wanted = [name for text in arguments.only.split(",") if text for name in every if fnmatch.fnmatchcase(name, text)]
    if arguments.list:
        wanted += listed(arguments.list)
    unknown = [name for name in wanted if name not in every]
    if unknown:
        sys.exit("no such test: " + ", ".join(unknown))
    return wanted or every


def main(arguments):
    result = Rows()
    start = time.monotonic()
    for name in names(arguments):
        if time.monotonic() - start > arguments.seconds:
            print("stopped: out of time")
            break
        PealSuite(name).run(result)
    count = {verdict: sum(row["verdict"] == verdict for row in result.rows) for verdict in ("passed", "failed", "skipped")}
    for _, text in result.failures + result.errors:
        print(text, file=sys.stderr)
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump({"torch": torch.__version__, "world_size": arguments.world_size, "rows": result.rows}, file, indent=1)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    ran = {row["test"]: row["verdict"] for row in result.rows if row["verdict"] != "skipped"}
    known = {name for name in listed(arguments.fails) if name in ran} if arguments.fails else set()
    failed = {name for name, verdict in ran.items() if verdict == "failed"}
    for name in sorted(failed ^ known):
        print(f"{name} fails" if name in failed else f"{name} passes, but is listed as one that cannot")
    return 1 if failed ^ known else 0


if __name__ == "__main__":
    sys.exit(main(arguments))
