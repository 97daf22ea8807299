#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every kernel of the library on real ranks; `peal run` compares results with its contract.

    kernels.py PEAL quick|full    prints TAP: a line for each kernel

`full` takes processes and threads, 2 to 16 ranks, odd counts, roots 0 and P-1, several types and reductions; `quick` two
threads and four processes, with root P-1.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from command import run  # noqa: E402
from tap import Tap  # noqa: E402

PEAL, QUICK = sys.argv[1], sys.argv[2] == "quick"
# Kernels with parameters for the lengths of blocks.
PARTS = {"allgather_v": ["counts"], "reduce_scatter_v": ["counts"], "gather_v": ["counts"], "scatter_v": ["counts"],
         "all_to_all_v": ["sends", "recvs"], "all_to_all_v_push": ["sends", "recvs"]}


def settings():
    if QUICK:
        yield 2, "7", "f32", "sum"
        yield 4, "37", "i32", "max"
        return
    for ranks in range(2, 17):
        for count, dtype, op in (("0", "f64", "sum"), ("1", "i8", "xor"), ("7", "bf16", "avg"),
                                 (str(ranks - 1), "u8", "and"), (str(ranks + 1), "f16", "min"), ("256", "i64", "prod"),
                                 ("65537", "f32", "sum")):
            yield ranks, count, dtype, op


def modes(ranks):
    """Options for ranks as processes and as threads."""
    if QUICK:
        return [["--threads"] if ranks == 2 else []]
    return [[], ["--threads"]]


def commands(name):
    text = run(PEAL, "show", name).stdout
    roots = "root: int" in text
    for ranks, count, dtype, op in settings():
        base = [PEAL, "run", name, "-n", str(ranks), "-l", "5", "-t", dtype]
        if "op: reduce" in text or "reduce)" in text:
            prefix = "implements scan" in text or "implements exscan" in text
            base += ["--op", "sum" if prefix and op == "avg" else op]
        if name in PARTS:
            # The same on every rank, so that senders and receivers agree.
            block = min(int(count), 999)
            even = len(PARTS[name]) == 2
            for part in PARTS[name]:
                values = [block if even else (block + r) % (block + 2) for r in range(ranks)]
                base += ["--set", f"{part}={','.join(map(str, values))}"]
            if name.endswith("push"):
                base += ["--set", "most=1000"]
        elif name == "all_to_all_window":
            base += ["-c", str(int(count) // ranks * ranks + ranks)]
        else:
            base += ["-c", count]
        for mode in modes(ranks):
            ends = (ranks - 1,) if QUICK else (0, ranks - 1)
            for root in ends if roots else (None,):
                yield base + mode + (["--root", str(root)] if root is not None else [])


def check(name):
    done = 0
    for command in commands(name):
        ran = run(*command, timeout=1500)
        if ran.returncode != 0:
            # A kernel may refuse a number of ranks by an assertion (a grid, a power of two), or because its windows
            # would be too large (kernels for few bytes, with 16 ranks).
            refused = "assert" in ran.stderr or "declares windows of" in ran.stderr
            if refused or "ranks" in ran.stderr and "error:" in ran.stderr:
                continue
            return done, f"{' '.join(command[1:])}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
        done += 1
    return done, None if done else "it ran nowhere"


def main():
    tap = Tap()
    for name in run(PEAL, "list", "--names").stdout.split():
        done, why = check(name)
        tap.check(f"{name}, {done} runs", not why, why)
    return tap.end()


sys.exit(main())
