# SPDX-License-Identifier: Apache-2.0
"""What torch asks of a backend, checked on small tensors: one spawn of ranks, every operation, naive results.

    /usr/bin/python3 torch/tests/check.py WORLD_SIZE
"""
import ctypes
import datetime
import glob
import json
import os
import signal
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MACHINE = os.path.join(HERE, "..", "..", "machines", "exact.yaml")
sys.path.insert(0, os.environ.get("PEAL_TORCH", os.path.dirname(HERE)))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402

import peal_torch  # noqa: E402,F401

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.int8, torch.uint8, torch.int32, torch.int64)


def vector(rank, n, dtype):
    """Small whole numbers: every sum of them is exact in every type."""
    return ((torch.arange(n) * 7 + rank * 3) % 5 + 1).to(dtype)


def all_vectors(world, n, dtype):
    return torch.stack([vector(r, n, dtype).double() for r in range(world)])


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
    for dtype in (torch.float16, torch.bfloat16):
        torch.manual_seed(rank)
        x = torch.randn(5000).to(dtype)
        dist.all_reduce(x)
        parts = [torch.empty_like(x) for _ in range(world)]
        dist.all_gather(parts, x)
        assert all(torch.equal(part, x) for part in parts)
        exact = sum(torch.randn(5000, generator=torch.Generator().manual_seed(r)).to(dtype).float() for r in range(world))
        if peal_torch.simulated_time() == 0:
            assert torch.equal(exact.to(dtype), x), "accumulated in f32, rounded once"
        else:  # the machine's kernel may round at every hop, each to half a unit of the partial sum
            assert torch.allclose(exact, x.float(), rtol=0.02, atol=0.1)


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


def layouts(rank, world):
    x = torch.full((6, 4), float(rank))[:, ::2]
    dist.all_reduce(x)
    assert torch.equal(x, torch.full((6, 2), float(sum(range(world)))))
    for bad in (torch.ones(3).to_sparse(), torch.ones(3, dtype=torch.int16)):
        try:
            dist.all_reduce(bad)
            raise AssertionError("refused")
        except RuntimeError as error:
            assert "peal" in str(error), error


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


CASES = (allreduce_of_every_type_and_operation, bitwise_and_bool, sixteen_bit_sums_are_the_same_on_all_ranks,
         moving_collectives, all_to_all_even_and_uneven, messages, layouts, groups, asynchronous)


def worker(rank, world, rendezvous):
    for threaded in (False, True):
        peal_torch.set_async(threaded)
        dist.init_process_group("peal", init_method=f"file://{rendezvous}{int(threaded)}", rank=rank, world_size=world)
        assert dist.get_backend() == "peal"
        for case in CASES:
            case(rank, world)
            dist.barrier()
            if rank == 0:
                print(f"ok {case.__name__}{' with a progress thread' if threaded else ''}", flush=True)
        dist.destroy_process_group()


def survivor(rank, world, rendezvous, out):
    """Rank 1 kills itself in the middle; the others must raise, quickly, and say who it was."""
    dist.init_process_group("peal", init_method=f"file://{rendezvous}k", rank=rank, world_size=world)
    x = torch.ones(1000)
    for i in range(100):
        if rank == 1 and i == 50:
            os.kill(os.getpid(), signal.SIGKILL)
        start = time.monotonic()
        try:
            dist.all_reduce(x)
        except RuntimeError as error:
            with open(f"{out}{rank}", "w") as file:
                file.write(f"{time.monotonic() - start:.3f} {error}")
            return
    raise AssertionError("nobody noticed")


def simulated(rank, world, rendezvous):
    """The same calls on a simulated machine: right, and simulated time is one clock for all ranks."""
    os.environ["PEAL_PLATFORM"] = "sim:" + os.path.abspath(MACHINE)
    os.environ["PEAL_SIM_TRACE"] = os.path.dirname(rendezvous)
    dist.init_process_group("peal", init_method=f"file://{rendezvous}s", rank=rank, world_size=world)
    times = [peal_torch.simulated_time()]
    for case in (moving_collectives, all_to_all_even_and_uneven, sixteen_bit_sums_are_the_same_on_all_ranks):
        case(rank, world)
        times.append(peal_torch.simulated_time())
    for n in (100, 100000):
        x = vector(rank, n, torch.float32)
        dist.all_reduce(x)
        assert torch.equal(x.double(), all_vectors(world, n, torch.float32).sum(0))
        times.append(peal_torch.simulated_time())
    steps = [later - now for now, later in zip(times, times[1:])]
    assert min(steps) > 0, times
    assert steps[-1] > steps[-2], "more bytes take longer"
    everyone = [None] * world
    dist.all_gather_object(everyone, times)
    assert all(one == times for one in everyone), everyone
    dist.destroy_process_group()
    if rank == 0:
        (name,) = glob.glob(os.path.join(os.environ["PEAL_SIM_TRACE"], "peal-sim-*.json"))
        with open(name) as file:
            bars = json.load(file)
        whole = sum(bar["dur"] for bar in bars) * 1e-6
        assert whole >= times[-1] and bars[0]["ts"] == 0 and "allreduce" in {bar["name"] for bar in bars}, bars
        print(f"ok simulated_time: {len(bars)} calls traced; 100000 float32 took {steps[-1] * 1e6:.3f} simulated us", flush=True)


def threads_and_forks(rank, world, rendezvous):
    """Several groups in several threads at once."""
    dist.init_process_group("peal", init_method=f"file://{rendezvous}t", rank=rank, world_size=world)
    many = [dist.new_group() for _ in range(3)]
    wrong = []

    def run(group, i):
        for j in range(50):
            x = torch.full((500,), float(rank + i + j))
            dist.all_reduce(x, group=group)
            if not torch.equal(x, torch.full((500,), float(sum(range(world)) + world * (i + j)))):
                wrong.append((i, j))

    threads = [threading.Thread(target=run, args=(group, i)) for i, group in enumerate(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    dist.destroy_process_group()
    if rank == 0:
        print("ok three groups in three threads, in forked ranks", flush=True)


def stranger(rank, world, rendezvous, out):
    """Rank 1 is on a host of another name and network: every rank is refused, in words, and at once."""
    if rank == 1:
        libc = ctypes.CDLL(None, use_errno=True)
        new_uts, new_net = 0x04000000, 0x40000000
        if libc.unshare(new_uts | new_net) != 0 or libc.sethostname(b"elsewhere", 9) != 0:
            open(f"{out}-no", "w").close()
            dist.FileStore(f"{rendezvous}h", world)  # the others time out
            return
    start = time.monotonic()
    try:
        dist.init_process_group("peal", init_method=f"file://{rendezvous}h", rank=rank, world_size=world,
                                timeout=datetime.timedelta(seconds=10))
    except RuntimeError as error:
        with open(f"{out}{rank}", "w") as file:
            file.write(f"{time.monotonic() - start:.3f} {error}")
        return
    raise AssertionError("joined")


def refuses_other_hosts(world, folder):
    mp.spawn(stranger, args=(world, folder + "/r", folder + "/host"), nprocs=world)
    if os.path.exists(f"{folder}/host-no"):
        print("skipped: another host needs the right to make namespaces")
        return
    for rank in range(world):
        text = open(f"{folder}/host{rank}").read()
        assert "rank 1 is on another host ('elsewhere'" in text, text
        assert float(text.split()[0]) < 8, text
    print("ok refuses_other_hosts: " + text.splitlines()[0].split(" ", 1)[1])


def main(world):
    with tempfile.TemporaryDirectory(prefix="peal-torch-") as folder:
        mp.spawn(worker, args=(world, folder + "/r"), nprocs=world)
        mp.spawn(simulated, args=(world, folder + "/r"), nprocs=world)
        mp.start_processes(threads_and_forks, args=(world, folder + "/r"), nprocs=world, start_method="fork")
        refuses_other_hosts(world, folder)
        context = mp.spawn(survivor, args=(world, folder + "/r", folder + "/out"), nprocs=world, join=False)
        for process in context.processes:
            process.join(60)
        for rank in range(world):
            if rank != 1:
                text = open(f"{folder}/out{rank}").read()
                seconds = float(text.split()[0])
                assert "rank 1" in text, text
                print(f"ok rank {rank} raised after {seconds:.3f} s: {text.splitlines()[0][6:]}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
