#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Random kernels under the order of a network: `peal verify --order pairwise` against a search of all executions.

    oracle.py PEAL SEED COUNT    prints TAP

The search reads the plan (`peal plan --json`) and follows the rules of docs/verifier.md; it shares nothing with the verifier. A
lane does its ops in order. An effect on a rank of another node is appended to the queue of that lane and rank, whose head may take
effect at any time. A flush waits until that queue is empty, a wait until its cell has the value. All reachable states are visited.
There is a race if, in some state, two different lanes or queues can move next and touch the same bytes, one of them writing (two
accumulates of one function may meet). A state in which some lane has not ended and nothing can move is a deadlock.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(FOLDER, "..", name) for name in ("generators", "lib")]
sys.dont_write_bytecode = True
import kernels  # noqa: E402
from tap import Tap  # noqa: E402

PEAL, SEED, COUNT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
RANKS = 3  # that kernels of the family `network` are written for


class Search:
    """All executions of a plan. An effect is (reads, writes, adds, cell): sets of (rank, buffer, byte), and (rank, cell, value)."""

    def __init__(self, plan, nodes, launches):
        self.nodes, self.programs, self.race, self.deadlock = nodes, [], False, False
        self.wires = {}
        for part in plan["ranks"]:
            for lane in part["lanes"]:
                self.programs.append(self.program(part["rank"], lane, launches))
        self.search()

    def away(self, a, b):
        return a != b and (self.nodes is None or self.nodes[a] != self.nodes[b])

    @staticmethod
    def touched(op, ref):
        size = 4
        return {(ref["rank"], ref["buf"], ref["offset"] + i) for i in range(op["count"] * size)}

    def program(self, rank, lane, launches):
        """A step per op: (effect, {target: effect that is queued for it}, what it waits for or None)."""
        number = len(self.programs)
        steps = []
        for launch in range(launches):
            counts = {}
            for op in lane:
                own = [set(), set(), set(), None]
                queued, wait = {}, None
                if op["op"] == "notify":
                    key = (op["rank"], (op["signal"], op["cell"]))
                    counts[key] = counts.get(key, 0) + op["value"]
                    change = key + ((launch, counts[key]),)
                    if self.away(rank, op["rank"]):
                        queued[op["rank"]] = [set(), set(), set(), change]
                    else:
                        own[3] = change
                elif op["op"] == "wait":
                    wait = ("cell", rank, (op["signal"], op["cell"]), (launch, op["value"]))
                elif op["op"] == "flush":
                    wait = ("flush", op["target"]) if self.away(rank, op["target"]) else None
                else:
                    for ref in op["src"]:
                        own[0] |= self.touched(op, ref)
                    for ref in [op["dst"]] + op.get("also", []):
                        column = 2 if op["op"] == "accumulate" else 1
                        if self.away(rank, ref["rank"]):
                            effect = queued.setdefault(ref["rank"], [set(), set(), set(), None])
                            effect[column] |= self.touched(op, ref)
                        else:
                            own[column] |= self.touched(op, ref)
                for target in queued:
                    self.wires.setdefault((number, target), len(self.wires))
                steps.append((own, queued, wait))
        return steps

    def actions(self, state):
        """The moves that are possible: (lane or queue, effect, next state). A state has, for each lane, the number of steps done, and
        for each queue the number of effects delivered."""
        at, delivered = state
        cells = {}
        issued = {wire: [] for wire in self.wires.values()}
        for number, program in enumerate(self.programs):
            for own, queued, _ in program[:at[number]]:
                if own[3]:
                    cells[own[3][:2]] = own[3][2]
                for target, effect in queued.items():
                    issued[self.wires[number, target]].append(effect)
        for wire, count in enumerate(delivered):
            for effect in issued[wire][:count]:
                if effect[3]:
                    cells[effect[3][:2]] = effect[3][2]
        found = []
        for number, program in enumerate(self.programs):
            if at[number] == len(program):
                continue
            own, _, wait = program[at[number]]
            if wait and wait[0] == "cell" and cells.get(wait[1:3], (-1, 0)) < wait[3]:
                continue
            if wait and wait[0] == "flush":
                wire = self.wires.get((number, wait[1]))
                if wire is not None and delivered[wire] < len(issued[wire]):
                    continue
            after = at[:number] + (at[number] + 1,) + at[number + 1:]
            found.append((("lane", number), own, (after, delivered)))
        for wire, count in enumerate(delivered):
            if count < len(issued[wire]):
                after = delivered[:wire] + (count + 1,) + delivered[wire + 1:]
                found.append((("wire", wire), issued[wire][count], (at, after)))
        return found

    @staticmethod
    def conflict(a, b):
        changes_a, changes_b = a[1] | a[2], b[1] | b[2]
        return bool(changes_a & b[0] or a[0] & changes_b or a[1] & changes_b or changes_a & b[1])

    def search(self):
        start = ((0,) * len(self.programs), (0,) * len(self.wires))
        seen, todo = {start}, [start]
        while todo:
            state = todo.pop()
            actions = self.actions(state)
            if not actions and any(at < len(p) for at, p in zip(state[0], self.programs)):
                self.deadlock = True
            for i, (_, effect, _) in enumerate(actions):
                self.race = self.race or any(self.conflict(effect, other[1]) for other in actions[:i])
            for _, _, after in actions:
                if after not in seen:
                    seen.add(after)
                    todo.append(after)


def verdict_of(path, options):
    command = [PEAL, "verify", path, "-n", str(RANKS), "--alone", "--no-cache", "--json"] + options
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    row = json.loads(ran.stdout)["answers"][0]["answer"]
    return row["verdict"], row.get("fault") or ""


def check(number, folder):
    rnd = random.Random(SEED * 1000003 + number)
    path = f"{folder}/k.peal"
    with open(path, "w", encoding="utf-8") as file:
        file.write(kernels.text("network", rnd))
    nodes = rnd.choice([None, [0, 1, 1], [0, 0, 1], [0, 1, 0], [0, 0, 0]])
    placed = ["--nodes", ",".join(map(str, nodes))] if nodes else []
    launches = rnd.choice([1, 1, 2])
    plan = subprocess.run([PEAL, "plan", path, "-n", str(RANKS), "--no-fuse", "--json"] + placed, stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    search = Search(json.loads(plan), nodes, launches)
    said = verdict_of(path, ["--launches", str(launches), "--order", "pairwise"] + placed)
    want = "deadlock" if search.deadlock else "race" if search.race else "none"
    got = said[1] if said[1] in ("deadlock", "race") else "none"
    strong = verdict_of(path, ["--launches", str(launches)] + placed) if want == "race" else said
    return want, got, strong[1], said


def main():
    print(f"# seed {SEED}")
    tap = Tap()
    tally, bad = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(COUNT):
            want, got, strong, said = check(number, folder)
            weaker = want == "race" and strong != "race"
            key = "race on networks only" if weaker else want
            tally[key] = tally.get(key, 0) + 1
            if want != got:
                bad.append(f"kernel {number} of seed {SEED}: the search finds {want}, peal says {said}")
    tap.check(f"{COUNT} random kernels: the verdict is what a search of all executions finds", not bad, *bad)
    both = tally.get("race on networks only", 0) > 0 and tally.get("none", 0) > 0
    tap.check(f"the kernels show it: {tally}", both)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
