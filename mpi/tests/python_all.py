# SPDX-License-Identifier: Apache-2.0
"""Every collective of mpi4py: buffers, vectors and objects, blocking and not, various types, operations, roots and communicators.

Each result is compared with one computed here, and written to CHECK_FOLDER, to compare a plain run with one with Peal.
"""
import array
import functools
import os

from mpi4py import MPI

TYPES = "bhilqfdBHILQ"
NUMBERS = ((MPI.SUM, lambda a, b: a + b), (MPI.PROD, lambda a, b: a * b), (MPI.MAX, max), (MPI.MIN, min))
BITS = ((MPI.BAND, lambda a, b: a & b), (MPI.BOR, lambda a, b: a | b), (MPI.BXOR, lambda a, b: a ^ b),
        (MPI.LAND, lambda a, b: int(bool(a) and bool(b))), (MPI.LOR, lambda a, b: int(bool(a) or bool(b))),
        (MPI.LXOR, lambda a, b: int(bool(a) != bool(b))))
world = MPI.COMM_WORLD
lines, checks = [], 0


def equal(name, found, expected):
    global checks
    checks += 1
    lines.append(f"{world.rank} {name} {found}")
    if found != expected:
        raise SystemExit(f"rank {world.rank}: {name}: {found}, expected {expected}")


def call(comm, name, waits, *args, **named):
    """The blocking method, or the non-blocking one and a wait."""
    if not waits:
        getattr(comm, name)(*args, **named)
        return
    request = getattr(comm, "I" + name.lower() if name != "Reduce_scatter_block" else "Ireduce_scatter_block")(*args, **named)
    request.Wait()


def values(code, rank, count):
    """Small, so that products fit into every type."""
    return array.array(code, [(rank + i) % 3 + 1 for i in range(count)])


def fold(function, rows):
    return [functools.reduce(function, column) for column in zip(*rows)]


def reductions(comm, code, waits):
    me, n, count = comm.rank, comm.size, 7
    mine = values(code, me, count * n)
    everything = [values(code, r, count * n).tolist() for r in range(n)]
    operations = NUMBERS if code in "fd" else NUMBERS + BITS
    for number, (op, function) in enumerate(operations):
        name = f"{code} {number} {waits}"
        whole = fold(function, everything)
        out = array.array(code, [0] * count * n)
        call(comm, "Allreduce", waits, mine, out, op)
        equal(f"Allreduce {name}", out.tolist(), whole)
        again = array.array(code, mine)
        call(comm, "Allreduce", waits, MPI.IN_PLACE, again, op)
        equal(f"Allreduce in place {name}", again.tolist(), whole)
        for root in range(n):
            out = array.array(code, [0] * count * n)
            call(comm, "Reduce", waits, mine, out if me == root else None, op, root)
            equal(f"Reduce {name}", out.tolist(), whole if me == root else [0] * count * n)
        out = array.array(code, [0] * count)
        call(comm, "Reduce_scatter_block", waits, mine, out, op)
        equal(f"Reduce_scatter_block {name}", out.tolist(), whole[me * count:(me + 1) * count])
        call(comm, "Reduce_scatter", waits, mine, out, [count] * n, op)
        equal(f"Reduce_scatter {name}", out.tolist(), whole[me * count:(me + 1) * count])
        if op in (MPI.LAND, MPI.LOR, MPI.LXOR):
            continue  # the first rank's result of a scan is its unchanged input
        out = array.array(code, [0] * count * n)
        call(comm, "Scan", waits, mine, out, op)
        equal(f"Scan {name}", out.tolist(), fold(function, everything[:me + 1]))
        out = array.array(code, [0] * count * n)
        call(comm, "Exscan", waits, mine, out, op)
        if me > 0:
            equal(f"Exscan {name}", out.tolist(), fold(function, everything[:me]))


def moves(comm, code, waits):
    me, n, count = comm.rank, comm.size, 5
    mine, rows = values(code, me, count), [values(code, r, count).tolist() for r in range(n)]
    flat = [x for row in rows for x in row]
    for root in range(n):
        out = array.array(code, mine if me == root else [0] * count)
        call(comm, "Bcast", waits, out, root)
        equal(f"Bcast {code} {waits}", out.tolist(), rows[root])
        out = array.array(code, [0] * count * n)
        call(comm, "Gather", waits, mine, out if me == root else None, root)
        equal(f"Gather {code} {waits}", out.tolist(), flat if me == root else [0] * count * n)
        out = array.array(code, [0] * count)
        call(comm, "Scatter", waits, array.array(code, flat) if me == root else None, out, root)
        equal(f"Scatter {code} {waits}", out.tolist(), rows[me])
    out = array.array(code, [0] * count * n)
    call(comm, "Allgather", waits, mine, out)
    equal(f"Allgather {code} {waits}", out.tolist(), flat)
    send = array.array(code, [(me * n + r) % 100 for r in range(n) for _ in range(count)])
    out = array.array(code, [0] * count * n)
    call(comm, "Alltoall", waits, send, out)
    equal(f"Alltoall {code} {waits}", out.tolist(), [(r * n + me) % 100 for r in range(n) for _ in range(count)])
    call(comm, "Barrier", waits)


def vectors(comm, code, waits):
    me, n = comm.rank, comm.size
    counts = [r + 1 for r in range(n)]
    places = [sum(counts[:r]) for r in range(n)]
    mine = array.array(code, [me + 1] * counts[me])
    whole = [r + 1 for r in range(n) for _ in range(counts[r])]
    out = array.array(code, [0] * sum(counts))
    call(comm, "Allgatherv", waits, mine, [out, (counts, places)])
    equal(f"Allgatherv {code} {waits}", out.tolist(), whole)
    for root in range(n):
        out = array.array(code, [0] * sum(counts))
        call(comm, "Gatherv", waits, mine, [out, (counts, places)] if me == root else None, root)
        equal(f"Gatherv {code} {waits}", out.tolist(), whole if me == root else [0] * sum(counts))
        out = array.array(code, [0] * counts[me])
        call(comm, "Scatterv", waits, [array.array(code, whole), (counts, places)] if me == root else None, out, root)
        equal(f"Scatterv {code} {waits}", out.tolist(), mine.tolist())
    send = array.array(code, [me * n + r for r in range(n) for _ in range(counts[r])])
    out = array.array(code, [0] * counts[me] * n)
    even = [counts[me]] * n
    call(comm, "Alltoallv", waits, [send, (counts, places)], [out, (even, [counts[me] * r for r in range(n)])])
    equal(f"Alltoallv {code} {waits}", out.tolist(), [r * n + me for r in range(n) for _ in range(counts[me])])
    item = MPI.DOUBLE if code == "d" else MPI.INT
    if code in "di":
        size = item.Get_size()
        out = array.array(code, [0] * counts[me] * n)
        call(comm, "Alltoallw", waits, [send, counts, [p * size for p in places], [item] * n],
             [out, even, [counts[me] * r * size for r in range(n)], [item] * n])
        equal(f"Alltoallw {code} {waits}", out.tolist(), [r * n + me for r in range(n) for _ in range(counts[me])])


def strided(comm, waits):
    me, n = comm.rank, comm.size
    vector = MPI.INT.Create_vector(4, 1, 2).Commit()
    data = array.array("i", [me * 10 + i for i in range(8)])
    out = array.array("i", [0] * 4 * n)
    call(comm, "Allgather", waits, [data, 1, vector], [out, 4, MPI.INT])
    equal(f"vector {waits}", out.tolist(), [r * 10 + i for r in range(n) for i in (0, 2, 4, 6)])
    vector.Free()


def objects(comm):
    me, n = comm.rank, comm.size
    equal("bcast", comm.bcast({"root": me, "text": "x" * 100} if me == n - 1 else None, root=n - 1)["root"], n - 1)
    equal("gather", comm.gather([me] * me, root=0), [[r] * r for r in range(n)] if me == 0 else None)
    equal("scatter", comm.scatter([(r, "y" * r) for r in range(n)] if me == 0 else None, root=0), (me, "y" * me))
    equal("allgather", comm.allgather(str(me) * 3), [str(r) * 3 for r in range(n)])
    equal("alltoall", comm.alltoall([(me, r) for r in range(n)]), [(r, me) for r in range(n)])
    equal("allreduce", comm.allreduce(me + 1), n * (n + 1) // 2)
    equal("reduce", comm.reduce([me], root=0), list(range(n)) if me == 0 else None)
    equal("scan", comm.scan(me), me * (me + 1) // 2)
    equal("exscan", comm.exscan(me), None if me == 0 else me * (me - 1) // 2)
    equal("maxloc", comm.allreduce((me % 2, me), MPI.MAXLOC)[0], min(n - 1, 1))


def run(comm):
    for waits in (False, True):
        for code in TYPES:
            reductions(comm, code, waits)
            moves(comm, code, waits)
            vectors(comm, code, waits)
        strided(comm, waits)
    objects(comm)


run(world)
for made in (world.Dup(), world.Split(world.rank % 2, -world.rank), world.Create_cart([world.size], [True])):
    run(made)
    made.Free()
with open(os.path.join(os.environ["CHECK_FOLDER"], str(world.rank)), "w", encoding="utf-8") as file:
    file.write("\n".join(lines) + f"\n{world.rank} {checks} checks\n")
