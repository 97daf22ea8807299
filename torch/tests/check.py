# SPDX-License-Identifier: Apache-2.0
"""Every operation that torch asks of a backend, compared with naive results on small tensors.

    /usr/bin/python3 torch/tests/check.py WORLD_SIZE
"""
import datetime

from common import FLOATS, INTEGERS, all_vectors, dist, joined, peal_torch, ranks, refused, say, torch, vector, world_size


def allreduce_of_every_type_and_operation(rank, world):
    ops = {
        dist.ReduceOp.SUM: lambda v: v.sum(0),
        dist.ReduceOp.PRODUCT: lambda v: v.prod(0),
        dist.ReduceOp.MIN: lambda v: v.min(0).values,
        dist.ReduceOp.MAX: lambda v: v.max(0).values,
    }
    for n in (0, 1, 7, 1000):
        for dtype in FLOATS + INTEGERS:
            for op, want in ops.items():
                x = vector(rank, n, dtype)
                dist.all_reduce(x, op)
                if n:
                    expected = want(all_vectors(world, n, dtype)).to(dtype)
                    assert torch.equal(x, expected), (dtype, op, n)
        for dtype in FLOATS:
            x = vector(rank, n, dtype)
            dist.all_reduce(x, dist.ReduceOp.AVG)
            if n:
                expected = (all_vectors(world, n, dtype).sum(0) / world).to(dtype)
                assert torch.allclose(x.double(), expected.double(), rtol=1e-2), dtype


def bitwise_and_bool(rank, world):
    x = torch.tensor([rank, 6, 1 << rank], dtype=torch.int32)
    y = x.clone()
    dist.all_reduce(x, dist.ReduceOp.BOR)
    dist.all_reduce(y, dist.ReduceOp.BAND)
    z = x.new_tensor([rank, 6, 5])
    dist.all_reduce(z, dist.ReduceOp.BXOR)
    either, both, odd = 0, -1, 0
    for r in range(world):
        either, both, odd = either | r, both & r, odd ^ r
    assert x.tolist() == [either, 6, (1 << world) - 1]
    assert y.tolist() == [both, 6, 0]
    assert z.tolist() == [odd, 6 * (world % 2), 5 * (world % 2)]
    b = torch.tensor([rank == 0, True, False])
    dist.all_reduce(b, dist.ReduceOp.SUM)
    assert b.tolist() == [True, True, False] and b.dtype == torch.bool


def sixteen_bit_sums_are_the_same_on_all_ranks(rank, world):
    """Small and large tensors, which take different paths, in all_reduce, reduce and reduce_scatter."""
    simulated = peal_torch.simulated_time() > 0
    for dtype in (torch.float16, torch.bfloat16):
        for n in (50 * world, 2500 * world) + (() if simulated else (100000 * world,)):
            inputs = [torch.randn(n, generator=torch.Generator().manual_seed(r + n)).to(dtype) for r in range(world)]
            exact, added = sum(x.double() for x in inputs), sum(x.float() for x in inputs)

            def check(x, part=slice(None)):
                if simulated:  # the simulated kernel may round at every hop, each to half a unit of the partial sum
                    assert torch.allclose(exact[part].float(), x.float(), rtol=0.02, atol=0.1)
                else:  # the sum in f32 may itself be rounded, depending on the order of its terms
                    right = (x == exact[part].to(dtype)) | (x == added[part].to(dtype))
                    assert right.all(), "accumulated in f32, rounded once"

            x = inputs[rank].clone()
            dist.all_reduce(x)
            check(x)
            parts = [torch.empty_like(x) for _ in range(world)]
            dist.all_gather(parts, x)
            assert all(torch.equal(part, x) for part in parts)
            x = inputs[rank].clone()
            dist.reduce(x, world - 1)
            if rank == world - 1:
                check(x)
            out = torch.empty(n // world, dtype=dtype)
            dist.reduce_scatter(out, list(inputs[rank].chunk(world)))
            check(out, slice(rank * n // world, (rank + 1) * n // world))


def moving_collectives(rank, world):
    for root in range(world):
        x = vector(rank, 33, torch.int64)
        dist.broadcast(x, root)
        assert torch.equal(x, vector(root, 33, torch.int64))
        x = vector(rank, 33, torch.float32)
        dist.reduce(x, root)
        if rank == root:
            assert torch.equal(x.double(), all_vectors(world, 33, torch.float32).sum(0))
        parts = [torch.empty(5) for _ in range(world)] if rank == root else None
        dist.gather(torch.full((5,), float(rank)), parts, root)
        if rank == root:
            assert all(torch.equal(part, torch.full((5,), float(r))) for r, part in enumerate(parts))
        out = torch.empty(4)
        dist.scatter(out, [torch.full((4,), float(r)) for r in range(world)] if rank == root else None, root)
        assert torch.equal(out, torch.full((4,), float(rank)))
    flat = torch.empty(world * 3)
    dist.all_gather_into_tensor(flat, torch.full((3,), float(rank)))
    assert torch.equal(flat, torch.arange(world).repeat_interleave(3).float())
    out = torch.empty(6)
    dist.reduce_scatter(out, [torch.full((6,), float(rank + r)) for r in range(world)])
    assert torch.equal(out, torch.full((6,), float(sum(range(world)) + world * rank)))
    out = torch.empty(3)
    dist.reduce_scatter_tensor(out, torch.arange(world * 3).float())
    assert torch.equal(out, world * (torch.arange(3) + 3 * rank).float())


def large_lists(rank, world):
    """Blocks are received in place, whatever the order of the tensors in memory, even with the input between them."""
    n = 40000
    memory = torch.zeros((world + 1) * n)
    places = [(2 * i + rank) % (world + 1) for i in range(world + 1)] if world % 2 == 0 else list(range(world, -1, -1))
    parts = [memory[p * n:(p + 1) * n] for p in places]
    own = parts.pop(1)
    own.copy_(vector(rank, n, torch.float32))
    dist.all_gather(parts, own)
    assert all(torch.equal(part, vector(r, n, torch.float32)) for r, part in enumerate(parts))
    strided = [torch.zeros(n, 2)[:, 0] for _ in range(world)]
    dist.all_gather(strided, own)
    assert all(torch.equal(part, vector(r, n, torch.float32)) for r, part in enumerate(strided))
    for size in (n, 2 * n, 100):
        out = torch.empty(size)
        dist.reduce_scatter(out, [vector(rank + r, size, torch.float32) for r in range(world)])
        assert torch.equal(out, sum(vector(q + rank, size, torch.float32) for q in range(world)))
        same = vector(rank, size, torch.float32)
        dist.reduce_scatter(out, [same] * world)
        assert torch.equal(out, sum(vector(q, size, torch.float32) for q in range(world)))
        parts = [torch.zeros(size, 2)[:, 1] if r % 2 else torch.zeros(size) for r in range(world)]
        dist.all_to_all(parts, [same] * world)
        assert all(torch.equal(part, vector(r, size, torch.float32)) for r, part in enumerate(parts))
        dist.gather(same, parts if rank == world - 1 else None, world - 1)
        assert rank < world - 1 or all(torch.equal(p, vector(r, size, torch.float32)) for r, p in enumerate(parts))
        dist.scatter(out, [vector(r + 1, size, torch.float32) for r in range(world)] if rank == 0 else None, 0)
        assert torch.equal(out, vector(rank + 1, size, torch.float32))


def all_to_all_even_and_uneven(rank, world):
    out = torch.empty(world * 2)
    dist.all_to_all_single(out, torch.arange(world * 2).float() + 100 * rank)
    assert torch.equal(out, torch.cat([torch.arange(2 * rank, 2 * rank + 2) + 100.0 * r for r in range(world)]))
    sends = [(rank + q) % 3 for q in range(world)]
    recvs = [(rank + q) % 3 for q in range(world)]
    data = torch.cat([torch.full((n,), float(10 * rank + q)) for q, n in enumerate(sends)])
    out = torch.empty(sum(recvs))
    dist.all_to_all_single(out, data, recvs, sends)
    assert torch.equal(out, torch.cat([torch.full((n,), float(10 * q + rank)) for q, n in enumerate(recvs)]))
    outs = [torch.empty(q + 1) for q in range(world)]
    dist.all_to_all(outs, [torch.full((rank + 1,), float(rank * world + q)) for q in range(world)])
    assert all(torch.equal(o, torch.full((q + 1,), float(q * world + rank))) for q, o in enumerate(outs))


def messages(rank, world):
    right, left = (rank + 1) % world, (rank - 1) % world
    work = dist.isend(torch.full((100000,), float(rank)), right)
    got = torch.empty(100000)
    dist.irecv(got, left).wait()
    work.wait()
    assert torch.equal(got, torch.full((100000,), float(left)))
    if rank == 0:
        seen = set()
        for _ in range(world - 1):
            one = torch.empty(1)
            seen.add(dist.recv(one))
        assert seen == set(range(1, world))
    else:
        dist.send(torch.ones(1), 0)


def strided_and_empty_tensors(rank, world):
    """Every second column of a matrix, a transposed matrix, and empty tensors, in every call that takes them."""
    total = float(sum(range(world)))
    for make in (lambda v: torch.full((6, 4), v)[:, ::2], lambda v: torch.full((2, 6), v).t(), lambda v: torch.full((0, 3), v)):
        x = make(float(rank))
        dist.all_reduce(x)
        assert torch.equal(x, make(total))
        x = make(float(rank))
        dist.broadcast(x, world - 1)
        assert torch.equal(x, make(world - 1.0))
        x = make(float(rank))
        dist.reduce(x, 0)
        assert rank or torch.equal(x, make(total))
        parts = [make(-1.0) for _ in range(world)]
        dist.all_gather(parts, make(float(rank)))
        assert all(torch.equal(part, make(float(r))) for r, part in enumerate(parts))
        parts = [make(-1.0) for _ in range(world)] if rank == 0 else None
        dist.gather(make(float(rank)), parts, 0)
        assert rank or all(torch.equal(part, make(float(r))) for r, part in enumerate(parts))
        x = make(-1.0)
        dist.scatter(x, [make(float(r)) for r in range(world)] if rank == 0 else None, 0)
        assert torch.equal(x, make(float(rank)))
        x = make(-1.0)
        dist.reduce_scatter(x, [make(float(rank + r)) for r in range(world)])
        assert torch.equal(x, make(total + world * rank))
        parts = [make(-1.0) for _ in range(world)]
        dist.all_to_all(parts, [make(float(10 * rank + r)) for r in range(world)])
        assert all(torch.equal(part, make(10.0 * r + rank)) for r, part in enumerate(parts))
        lists = [make(float(rank)), make(2.0 * rank)]
        dist.all_reduce_coalesced(lists)
        assert torch.equal(lists[0], make(total)) and torch.equal(lists[1], make(2 * total))
        work = dist.isend(make(float(rank)), (rank + 1) % world)
        x = make(-1.0)
        dist.recv(x, (rank - 1) % world)
        work.wait()
        assert torch.equal(x, make(float((rank - 1) % world)))
    empty = torch.empty(0)
    dist.all_to_all_single(empty, torch.empty(0))
    dist.all_gather_into_tensor(empty, torch.empty(0))
    refused(lambda: dist.all_to_all_single(torch.ones(world, 4)[:, ::2], torch.ones(world, 2)), "contiguous")


def leaves_and_overlaps(rank, world):
    """Parameters are written in place, strided or not; tensors whose elements share memory can be inputs, not results."""
    leaf = torch.nn.Parameter(torch.full((2, 3), float(rank)))
    dist.all_reduce(leaf)
    dist.all_reduce(leaf.t())
    assert torch.equal(leaf, torch.full((2, 3), float(world * sum(range(world)))))
    wide = torch.full((1,), float(rank)).expand(5)
    refused(lambda: dist.all_reduce(wide), "peal allreduce", "clone()")
    refused(lambda: dist.all_gather([wide] * world, torch.ones(5)), "peal allgather", "clone()")
    refused(lambda: dist.scatter(wide, [torch.ones(5)] * world if rank == 0 else None, 0), "peal scatter", "clone()")
    refused(lambda: dist.irecv(wide, (rank + 1) % world), "peal recv", "clone()")
    got = wide if rank == 0 else torch.zeros(5)
    dist.broadcast(got, 0)
    assert torch.equal(got, torch.zeros(5))
    parts = [torch.empty(5) for _ in range(world)]
    dist.all_gather(parts, wide)
    assert all(torch.equal(part, torch.full((5,), float(r))) for r, part in enumerate(parts))


def every_type_moves(rank, world):
    for dtype in FLOATS + INTEGERS + (torch.int16, torch.bool, torch.complex64, torch.complex128):
        x = vector(rank, 9, torch.float32).to(dtype)
        y = x.clone()
        dist.broadcast(y, 0)
        assert torch.equal(y, vector(0, 9, torch.float32).to(dtype)), dtype
        parts = [torch.empty_like(x) for _ in range(world)]
        dist.all_gather(parts, x)
        assert all(torch.equal(p, vector(r, 9, torch.float32).to(dtype)) for r, p in enumerate(parts)), dtype
        dist.all_to_all(parts, [x] * world)
        assert all(torch.equal(p, vector(r, 9, torch.float32).to(dtype)) for r, p in enumerate(parts)), dtype


def refusals(rank, world):
    """Bad arguments are refused, with a message, on the rank that has them, and the group goes on."""
    Op = dist.ReduceOp
    refused(lambda: dist.all_reduce(torch.ones(3).to_sparse(), Op.MAX), "peal allreduce", "sparse", "summed")
    by = "peal " if torch.__version__.startswith("1.") else ""  # 2.x refuses these itself
    refused(lambda: dist.broadcast(torch.ones(3).to_sparse(), 0), by + "broadcast", by and "sparse")
    refused(lambda: dist.all_reduce(torch.ones(3, dtype=torch.complex64), Op.MAX), "complex")
    refused(lambda: dist.all_reduce(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)), by + "allreduce", by and "QInt8")
    refused(lambda: dist.all_reduce(torch.ones(3), Op.BAND), "peal allreduce", "integers")
    refused(lambda: dist.all_reduce(torch.ones(3, dtype=torch.int32), Op.AVG), "peal allreduce", "AVG")
    refused(lambda: dist.all_reduce(torch.ones(3, dtype=torch.bool), Op.AVG), "peal allreduce", "bool")
    refused(lambda: dist.all_gather_into_tensor(torch.ones(3 * world + 1), torch.ones(3)), "peal _allgather_base")
    splits = [1] * world
    refused(lambda: dist.all_to_all_single(torch.ones(world), torch.ones(world + 1), splits, splits), "peal", "splits")
    x = torch.tensor([complex(rank, 1)])
    dist.all_reduce(x)  # torch passes it as pairs of reals
    assert x[0] == complex(sum(range(world)), world)


def sparse_sums(rank, world):
    """Every rank has values at indices of its own and at a common one; the last rank has none at all."""
    for dtype in (torch.float32, torch.int64):
        def make(r):
            if r == world - 1:
                return torch.zeros(world + 2, 3, dtype=dtype).to_sparse(1)
            dense = torch.zeros(world + 2, 3, dtype=dtype)
            dense[0], dense[r + 1] = r + 1, 5 - r
            return dense.to_sparse(1)

        x = make(rank)
        dist.all_reduce(x)
        assert x.is_sparse and torch.equal(x.to_dense(), sum(make(r).to_dense() for r in range(world)))
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        assert torch.equal(x.to_dense(), world * sum(make(r).to_dense() for r in range(world)))


def more_types(rank, world):
    kinds = [torch.int16, torch.complex64, torch.complex128]
    kinds += [getattr(torch, name) for name in ("float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64") if hasattr(torch, name)]
    backend = peal_torch._backend_of()
    for dtype in kinds:
        x = vector(rank, 100, torch.float32).to(dtype)
        backend.allreduce([x]).wait()
        wanted = sum(vector(r, 100, torch.float32) for r in range(world)).to(dtype)
        assert torch.equal(torch.view_as_real(x) if x.is_complex() else x.to(torch.float32),
                           torch.view_as_real(wanted) if x.is_complex() else wanted.to(torch.float32)), dtype


def gathered_lists_of_different_lengths(rank, world):
    for unit in (3, 30000):
        parts = [torch.empty(unit * (r + 1)) for r in range(world)]
        dist.all_gather(parts, torch.full((unit * (rank + 1),), float(rank)))
        assert all(torch.equal(part, torch.full((unit * (r + 1),), float(r))) for r, part in enumerate(parts))


def monitored_barriers(rank, world):
    """A barrier that all ranks pass, and one that the last rank misses, after which the group still works."""
    backend = peal_torch._backend_of()
    backend.monitored_barrier(datetime.timedelta(seconds=600))
    store = dist.distributed_c10d._get_default_store()
    store.add("ready", 1)
    while store.add("ready", 0) < world:
        pass
    if rank < world - 1:
        text = refused(lambda: backend.monitored_barrier(datetime.timedelta(seconds=5), True), "onitored")
        assert rank or f"Ranks {world - 1} failed to pass monitoredBarrier in 5000 ms" in text, text
        store.add("missed", 1)
    else:
        while store.add("missed", 0) < world - 1:
            pass
        refused(lambda: backend.monitored_barrier(datetime.timedelta(seconds=0.2)), "onitored")
    dist.barrier()
    backend.monitored_barrier(datetime.timedelta(seconds=600))


def options(rank, world):
    """Algorithms for one group; anything but Options is refused."""
    group = dist.new_group(pg_options=peal_torch.Options({"allreduce": "ring"}))
    x = torch.ones(1000)
    dist.all_reduce(x, group=group)
    assert x[0] == world
    refused(lambda: dist.new_group(pg_options=peal_torch.Options({"allreduce": "nonsense"})), "no algorithm 'nonsense'")
    dist.destroy_process_group(group)


def profiled(rank, world):
    """Profilers see the calls by name."""
    with torch.autograd.profiler.profile() as profile:
        dist.all_reduce(torch.ones(10))
        dist.broadcast(torch.ones(10), 0, async_op=True).wait()
    names = {event.name for event in profile.function_events}
    assert {"peal:all_reduce", "peal:broadcast"} <= names, names


def groups(rank, world):
    pairs = [dist.new_group([r, (r + 1) % world]) for r in range(world)] if world > 2 else [dist.new_group([0, 1])]
    for r, group in enumerate(pairs):
        if rank in (r, (r + 1) % world):
            x = torch.ones(3)
            dist.all_reduce(x, group=group)
            assert torch.equal(x, torch.full((3,), 2.0))


def asynchronous(rank, world):
    x = [torch.full((1000,), float(rank + i)) for i in range(20)]
    works = [dist.all_reduce(t, async_op=True) for t in x]
    for work in works:
        work.wait()
    assert all(torch.equal(t, torch.full((1000,), float(sum(range(world)) + world * i))) for i, t in enumerate(x))


def symmetric_tensors(rank, world):
    """Same results in symmetric memory; views follow their storage, and a tensor may outlive its group."""
    x = vector(rank, 40000, torch.float32)
    view = x[100:200]
    assert peal_torch.symmetric(x) is x and torch.equal(x, vector(rank, 40000, torch.float32))
    for op, want in ((dist.ReduceOp.SUM, lambda v: v.sum(0)), (dist.ReduceOp.MAX, lambda v: v.max(0).values)):
        x.copy_(vector(rank, 40000, torch.float32))
        dist.all_reduce(x, op)
        assert torch.equal(x.double(), want(all_vectors(world, 40000, torch.float32)))
    assert view.data_ptr() == x.data_ptr() + 400 and torch.equal(view, x[100:200])
    group = dist.new_group()
    kept = peal_torch.symmetric(torch.full((5,), float(rank)), group)
    dist.destroy_process_group(group)
    del group
    assert torch.equal(kept, torch.full((5,), float(rank)))
    kept.resize_(50000).fill_(1.0)


CASES = (allreduce_of_every_type_and_operation, bitwise_and_bool, sixteen_bit_sums_are_the_same_on_all_ranks,
         moving_collectives, large_lists, all_to_all_even_and_uneven, messages, strided_and_empty_tensors, leaves_and_overlaps,
         every_type_moves, refusals, sparse_sums, more_types, gathered_lists_of_different_lengths, monitored_barriers, options,
         profiled, groups, asynchronous, symmetric_tensors)


def every_call(rank, world, folder):
    """All cases twice: the group is destroyed and made again on the same store."""
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/check", world)
    for time in ("", ", made again"):
        dist.init_process_group("peal", store=store, rank=rank, world_size=world)
        assert dist.get_backend() == "peal"
        for case in CASES if not time else (moving_collectives, groups):
            case(rank, world)
            dist.barrier()
            say(rank, case.__name__ + time)
        dist.destroy_process_group()


def main(world):
    ranks(every_call, world)


if __name__ == "__main__":
    main(world_size())
