# SPDX-License-Identifier: Apache-2.0
"""An mpi4py program: objects and buffers, blocking and not, splits, in place. Writes its results to CHECK_FOLDER."""
import array
import os

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
lines = []


def say(name, value):
    lines.append(f"{name} rank {rank} {value}")


def collectives(comm, name):
    me, n = comm.rank, comm.size
    for i in range(30):
        say(f"{name} objects {i}", comm.allreduce({"a": me}.get("a") + i))
        say(f"{name} bcast {i}", comm.bcast(["x" * i, me] if me == i % n else None, root=i % n))
        say(f"{name} gather {i}", comm.gather((me, i), root=0))
        say(f"{name} allgather {i}", comm.allgather("y" * (me + i)))
        say(f"{name} alltoall {i}", comm.alltoall([me * 10 + r for r in range(n)]))
        send, recv = array.array("i", range(me, me + 50)), array.array("i", [0] * 50)
        comm.Allreduce(send, recv, MPI.SUM)
        say(f"{name} Allreduce {i}", recv.tolist())
        comm.Allreduce(MPI.IN_PLACE, recv, MPI.MAX)
        say(f"{name} in place {i}", recv.tolist())
        many = array.array("d", [0.0] * (10 * n))
        comm.Allgather([array.array("d", [me] * 10), MPI.DOUBLE], [many, MPI.DOUBLE])
        say(f"{name} Allgather {i}", many.tolist())
        request = comm.Iallreduce(send, recv, MPI.SUM)
        comm.Barrier()
        request.Wait()
        say(f"{name} Iallreduce {i}", recv.tolist())
        counts = [r + 1 for r in range(n)]
        parts = array.array("i", [0] * sum(counts))
        comm.Allgatherv(array.array("i", [me] * (me + 1)), [parts, (counts, None)])
        say(f"{name} Allgatherv {i}", parts.tolist())
        say(f"{name} scan {i}", comm.scan(me + 1))


collectives(world, "world")
half = world.Split(rank % 2, -rank)
collectives(half, "half")
half.Free()
with open(os.path.join(os.environ["CHECK_FOLDER"], str(rank)), "w", encoding="utf-8") as file:
    file.write("\n".join(lines) + "\n")
