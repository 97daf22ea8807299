#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the WebAssembly build with the native command: all that --json says, except how long it took.

    compare.py PEAL FOLDER [PART]     FOLDER: where scripts/wasm builds; PART: verify, hazards, sim or texts

The whole library, all hazards and the museum at 2 to 8 ranks, proved, and simulated on four machines in turn; refused texts. Prints TAP, and
the processor time of both. Ends with 77 (skipped) without emscripten or node.
"""
import glob
import json
import os
import resource
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
sys.dont_write_bytecode = True
from cases import find_cases  # noqa: E402
from command import run  # noqa: E402
from tap import Tap  # noqa: E402

MACHINES = ["flat64", "mesh4x4", "torus8x8", "hosts2x4"]
RANKS = range(2, 9)
BROKEN = ["", "kernel", "kernel k(in x: T[n], out y: T[n]) { y = z }", "kernel k(out y: T[n]) { wait s >= 1 }",
          "// \u00e9\nkernel \u00e9() {}", "kernel k(in x: T[n], out y: T[n]) { y = x", "}" * 3000, "((" * 3000]


def native(peal, args):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run(peal, *args, cwd=TOP)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr, "ms": 1000 * spent}


class Module:
    """The WebAssembly build, in one process of node."""

    def __init__(self, folder):
        self.process = subprocess.Popen(["node", "--expose-gc", os.path.join(HERE, "batch.js"), folder], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, cwd=TOP)

    def run(self, args):
        self.process.stdin.write(json.dumps(args) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(one) for key, one in value.items() if key != "milliseconds"}
    if isinstance(value, list):
        return [without_times(one) for one in value]
    return value


def said(answer):
    try:
        return without_times(json.loads(answer["out"]))
    except ValueError:
        return answer["out"].rstrip("\n")


def difference(a, b, at=""):
    if isinstance(a, dict) and isinstance(b, dict):
        found = [difference(a.get(key), b.get(key), f"{at}.{key}") for key in sorted(set(a) | set(b))]
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        found = [difference(one, other, f"{at}[{i}]") for i, (one, other) in enumerate(zip(a, b))]
    else:
        return None if a == b else f"{at}: native {a!r:.300}, WebAssembly {b!r:.300}"
    return next((one for one in found if one), None)


class Comparison:
    def __init__(self, peal, folder):
        self.peal, self.tap, self.module = peal, Tap(), Module(folder)
        self.spent = {"native": 0.0, "WebAssembly": 0.0}

    def differ(self, args):
        """What differs, or None."""
        one, other = native(self.peal, args), self.module.run(args)
        self.spent["native"] += one["ms"]
        self.spent["WebAssembly"] += other["ms"]
        if one["code"] != other["code"]:
            return f"{' '.join(args)}: exit codes {one['code']} and {other['code']}: {other['out'][-500:]}{other['err'][-500:]}"
        found = difference(said(one), said(other)) or difference(one["err"].rstrip(), other["err"].rstrip(), "errors")
        return f"{' '.join(args)}: {found}" if found else None

    def check(self, name, commands):
        problems = [problem for problem in map(self.differ, commands) if problem]
        self.tap.check(name, not problems, *problems[:5])


def kernels(peal):
    return run(peal, "list", "--names").stdout.split()


def compare_verify(c):
    for name in kernels(c.peal):
        c.check(f"verify {name}", [["verify", name, "-n", "2..8", "--json", "--no-cache", "--jobs", "1"]])


def hazards():
    return sorted(glob.glob(os.path.join(TOP, "tests", "hazards", "*.peal")) + glob.glob(os.path.join(TOP, "museum", "*", "*.peal")))


def compare_sim(c):
    """On the machines in turn, each kernel on one."""
    for i, name in enumerate(kernels(c.peal) + [os.path.relpath(path, TOP) for path in hazards()]):
        machine = MACHINES[i % len(MACHINES)]
        c.check(f"sim {name} on {machine}", [["sim", name, "-n", str(n), "-m", machine, "--count", "1K", "--json"] for n in RANKS])


def compare_hazards(c):
    for path in hazards():
        file = os.path.relpath(path, TOP)
        cases = [text.split("=>")[0].split() for _, text in find_cases(path)]
        c.check(f"verify {file}", [["verify", file, "-n", "2..8", "--quick", "--json", "--no-cache", "--jobs", "1", *options] for options in cases or [[]]])


def compare_texts(c):
    folder = os.path.join(TOP, "build-wasm", "texts")
    os.makedirs(folder, exist_ok=True)
    for i, text in enumerate(BROKEN):
        path = os.path.join(folder, f"{i}.peal")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        file = os.path.relpath(path, TOP)
        c.check(f"text {i}", [["check", file], ["verify", file, "-n", "2"], ["sim", file, "-m", "flat64"], ["fmt", file]])
    shutil.rmtree(folder)


PARTS = {"verify": compare_verify, "hazards": compare_hazards, "sim": compare_sim, "texts": compare_texts}


def main():
    peal, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    if not shutil.which("emcc") or not shutil.which("node"):
        print("no emscripten or node: skipped")
        return 77
    subprocess.run([os.path.join(TOP, "scripts", "wasm"), folder], check=True, stdout=subprocess.DEVNULL)
    c = Comparison(peal, folder)
    for part in sys.argv[3:] or PARTS:
        PARTS[part](c)
    print("# processor time: " + ", ".join(f"{who} {ms / 1000:.1f} s" for who, ms in c.spent.items()))
    return c.tap.end()


sys.exit(main())
