#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The order of a network, clause by clause: kernels that are right by it, and kernels that rely on more.

    clauses.py PEAL CLAUSES.peal    prints TAP

The first word of a kernel's name is the verdict: `right` or `wrong`. The simulator must agree: with each pair of ranks delayed in
turn (`signal.delay_pair`), a right kernel gives the contract's data, and a wrong one other data for some pair, unless the simulator
keeps more order there than a network must (UNSEEN). On one node, a kernel that is wrong only by the network's order is proved.
"""
import itertools
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from tap import Tap  # noqa: E402

PEAL, TEXT = sys.argv[1:3]
ANYWHERE = {"wrong_release_then_get"}  # wrong in any memory
# In the simulator, puts of one pair keep their order however late they are, and sends wait for all writes of their lane.
UNSEEN = {"wrong_puts_of_two_lanes", "wrong_send_by_another_rank"}
RANKS = 3


def root_of(kernel):
    return 2 if "accumulate" in kernel else 0


def peal(*words):
    ran = subprocess.run([PEAL, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return ran.returncode, ran.stdout


def verdict(kernel, *words):
    code, out = peal("verify", TEXT, "-k", kernel, "-n", str(RANKS), "-c", "64", "-s", f"root={root_of(kernel)}", "--launches", "1", "--no-cache", *words)
    return {0: "right", 1: "wrong"}.get(code, f"exit code {code}"), out


def is_right(kernel, pair):
    """(whether the simulated data is right, the output)"""
    code, out = peal("sim", TEXT, "-k", kernel, "-m", "hosts2x4", "-n", str(RANKS), "-c", "64", "-s", f"root={root_of(kernel)}", "--set",
                     "signal.order=pairwise", "--set", f"signal.delay_pair=[{pair[0]},{pair[1]}]", "--set", "signal.delay_ns=90000", "--json")
    return out.startswith("{") and json.loads(out)["data"] == "right", f"exit code {code}\n{out}"


def check(kernel):
    wanted = kernel.split("_")[0]
    got, out = verdict(kernel, "--order", "pairwise")
    if got != wanted:
        return f"the verdict is {got}\n{out}"
    here, out = verdict(kernel)
    if (here == "wrong") != (kernel in ANYWHERE):
        return f"on one node the verdict is {here}\n{out}"
    here, out = verdict(kernel, "--order", "pairwise", "--nodes", "0,0,0")
    if (here == "wrong") != (kernel in ANYWHERE):
        return f"with all ranks on one node of a network, the verdict is {here}\n{out}"
    seen = [is_right(kernel, pair) for pair in itertools.permutations(range(RANKS), 2)]
    if wanted == "right" and not all(good for good, _ in seen):
        return "simulated data is wrong\n" + next(text for good, text in seen if not good)
    if wanted == "wrong" and all(good for good, _ in seen) != (kernel in UNSEEN):
        return "no delay shows the fault" if kernel not in UNSEEN else "a delay shows the fault now: take it out of UNSEEN"
    return None


def main():
    with open(TEXT, encoding="utf-8") as file:
        kernels = re.findall(r"^kernel (\w+)", file.read(), re.M)
    tap = Tap()
    for kernel in kernels:
        why = check(kernel)
        tap.check(kernel.replace("_", " "), not why, why)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
