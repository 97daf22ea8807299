#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every kernel of the library on real ranks, held to its contract by `peal run`.

    kernels.py PEAL quick|full    prints TAP: a line for each kernel

Processes and threads; odd counts; roots 0 and P-1; in types that are exact. `full` takes 2 to 16 ranks, `quick` two threads
and four processes, with root P-1.
"""
import subprocess
import sys

PEAL, HOW = sys.argv[1:3]
# Kernels whose parts are given, and what they are.
PARTS = {"allgather_v": ["counts"], "reduce_scatter_v": ["counts"], "gather_v": ["counts"], "scatter_v": ["counts"],
         "all_to_all_v": ["sends", "recvs"], "all_to_all_v_push": ["sends", "recvs"]}


def settings():
    if HOW == "quick":
        yield 2, "7", "f32", "sum"
        yield 4, "37", "i32", "max"
        return
    for ranks in range(2, 17):
        for count, dtype, op in (("0", "f64", "sum"), ("1", "i8", "xor"), ("7", "bf16", "avg"),
                                 (str(ranks - 1), "u8", "and"), (str(ranks + 1), "f16", "min"), ("256", "i64", "prod"),
                                 ("65537", "f32", "sum")):
            yield ranks, count, dtype, op


def modes(ranks):
    """Options: as processes, as threads."""
    if HOW == "quick":
        return [["--threads"] if ranks == 2 else []]
    return [[], ["--threads"]]


def commands(name):
    text = subprocess.run([PEAL, "show", name], stdout=subprocess.PIPE, text=True, check=True).stdout
    roots = "root: int" in text
    for ranks, count, dtype, op in settings():
        base = [PEAL, "run", name, "-n", str(ranks), "-l", "5", "-t", dtype]
        if "op: reduce" in text or "reduce)" in text:
            prefix = "implements scan" in text or "implements exscan" in text
            base += ["--op", "sum" if prefix and op == "avg" else op]
        if name in PARTS:
            # Blocks that are the same on every rank, so that what one sends another expects.
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
            ends = (ranks - 1,) if HOW == "quick" else (0, ranks - 1)
            for root in ends if roots else (None,):
                yield base + mode + (["--root", str(root)] if root is not None else [])


def check(name):
    done = 0
    for command in commands(name):
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300,
                             check=False)
        if ran.returncode != 0:
            # An assertion of the kernel's own (a grid, a power of two) is an answer too, and that its
            # windows are larger than what can be run (kernels for few bytes, with 16 ranks).
            refused = "assert" in ran.stderr or "declares windows of" in ran.stderr
            if refused or "ranks" in ran.stderr and "error:" in ran.stderr:
                continue
            return done, f"{' '.join(command[1:])}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
        done += 1
    return done, None if done else "it ran nowhere"


def main():
    names = subprocess.run([PEAL, "list", "--names"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    print(f"1..{len(names)}")
    bad = total = 0
    for number, name in enumerate(names, 1):
        done, why = check(name)
        total += done
        print(f"{'not ok' if why else 'ok'} {number} - {name}, {done} runs", flush=True)
        if why:
            bad += 1
            print("".join(f"# {line}\n" for line in why.splitlines()), end="", flush=True)
    print(f"# {total} runs")
    return bad > 0


sys.exit(main())
