# SPDX-License-Identifier: Apache-2.0
"""peal exec -n 4 -- python3 collectives.py"""
import numpy

import peal

with peal.Comm() as comm:
    total = comm.allreduce(numpy.full(8, comm.rank + 1, "f4"))
    parts = comm.allgather(numpy.array([comm.rank], "i4"))
    if comm.rank == 0:
        print("sum of all ranks", total[0], "ranks", parts.ravel())
