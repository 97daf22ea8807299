# SPDX-License-Identifier: Apache-2.0
"""Programs with tile kernels (Triton, Pallas), recorded: docs/tiles.md.

    core.py      what is recorded: memory, ranks, assumptions            data.py   values: known, or in memory
    lanes.py     programs, threads, streams, launches                    alike.py  programs of a grid that do the same
    spins.py     signals, and loops that wait for them                   asm.py    hand-shakes in inline assembly
    last.py      what the last one to arrive does
    program.py   runs a program once per rank, with stand-ins            triton.py the language of kernels
    statements.py  what is a call, if the program does not say so
    torch.py     torch, over tensor.py and symm.py (distributed)         iris.py, dist.py  iris, Triton-distributed
"""
