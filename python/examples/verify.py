# SPDX-License-Identifier: Apache-2.0
"""A race that shows once in a thousand runs, as objects."""
import peal

TEXT = """kernel sum(in x: T[n], out y: T[n], op: reduce) implements allreduce {
    window slot: T[n]
    signal ready[nranks]
    slot = x
    for p in peers { notify ready[rank]@p += 1 }
    for p in peers { wait ready[p] >= 1 }
    let acc = slot@0
    for q in 1 .. nranks { acc = op(acc, slot@q) }
    y = acc
}"""
verdict = peal.verify(TEXT, ranks=2)
print(verdict.outcome, verdict.counterexample.fault)
for step in verdict.counterexample.steps:
    print(f"  launch {step.launch} rank {step.rank} line {step.line}: {step.text}{'   <--' if step.collides else ''}")
