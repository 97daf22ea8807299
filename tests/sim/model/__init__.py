# SPDX-License-Identifier: Apache-2.0
"""A second implementation of the simulator's machine model, written from docs/simulator.md: slow and plain, and sharing
nothing with src/sim. It reads a machine file and a plan as `peal plan --json` prints it, and works out what
`peal sim --json` prints: times, links, engines, counts, deadlock, a hash of the data.

    machine = read_machine(text, {"links.pe.lat_ns": "3"})
    Run(machine, json.loads(plan), launches=2).result()

    machine.py  machine files, the places of PEs and the paths between them
    parts.py    transfers, DMA engines, memory ports, flows
    ops.py      what each op does
    data.py     the contents of memory
    run.py      events, lanes, and the path of a transfer
"""
from .machine import Machine, read_machine  # noqa: F401
from .run import Run  # noqa: F401
