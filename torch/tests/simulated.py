# SPDX-License-Identifier: Apache-2.0
"""torch.distributed on a simulated machine: results, one clock per rank, traces; large worlds as threads.

    /usr/bin/python3 torch/tests/simulated.py WORLD_SIZE
"""
import datetime
import glob
import json
import os
import subprocess
import sys
import threading

import check
from common import TOP, all_vectors, dist, joined, peal_torch, ranks, refused, say, torch, vector, world_size

MACHINE = os.path.join(TOP, "machines", "exact.yaml")


def uneven(rank, world):
    out = torch.empty(rank + 1)
    dist.reduce_scatter(out, [torch.full((r + 1,), float(rank)) for r in range(world)])
    assert torch.equal(out, torch.full((rank + 1,), float(sum(range(world)))))
    sends = [(rank + q) % 3 for q in range(world)]
    data = torch.cat([torch.full((n,), float(10 * rank + q)) for q, n in enumerate(sends)])
    out = torch.empty(sum(sends))
    dist.all_to_all_single(out, data, sends, sends)
    assert torch.equal(out, torch.cat([torch.full((n,), float(10 * q + rank)) for q, n in enumerate(sends)]))


def one_clock(world):
    """What a rank does in one group comes after what it did in another."""
    group = dist.new_group()
    before = peal_torch.simulated_time()
    assert peal_torch.simulated_time(group) == before > 0
    dist.all_reduce(torch.ones(100), group=group)
    between = peal_torch.simulated_time()
    assert peal_torch.simulated_time(group) == between > before
    dist.all_reduce(torch.ones(100))
    assert peal_torch.simulated_time(group) == peal_torch.simulated_time() > between
    dist.destroy_process_group(group)


def script(rank, world, folder):
    """A script as for the host: only the environment differs."""
    os.environ["PEAL_PLATFORM"] = "sim:" + MACHINE
    os.environ["PEAL_SIM_TRACE"] = folder
    joined(rank, world, folder, "sim")
    times = [peal_torch.simulated_time()]
    for case in (check.moving_collectives, check.sixteen_bit_sums_are_the_same_on_all_ranks, uneven):
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
    one_clock(world)
    dist.destroy_process_group()
    joined(rank, world, folder, "again")
    assert peal_torch.simulated_time() == 0, "a new world starts at 0"
    dist.destroy_process_group()
    if rank == 0:
        traces = glob.glob(os.path.join(folder, "peal-sim-*.json"))
        assert len(traces) == 2, traces
        name = max(traces, key=os.path.getsize)
        with open(name) as file:
            bars = json.load(file)
        whole = sum(bar["dur"] for bar in bars) * 1e-6
        assert whole >= times[-1] and bars[0]["ts"] == 0 and "allreduce" in {bar["name"] for bar in bars}, bars
        say(rank, f"simulated_time: {len(bars)} calls traced; 100000 float32 took {steps[-1] * 1e6:.3f} simulated us")


def threaded(rank, n):
    world = dist.get_world_size()
    assert dist.get_rank() == rank and dist.is_initialized() and dist.get_backend() == "peal"
    x = vector(rank, n, torch.float32)
    dist.all_reduce(x)
    assert torch.equal(x.double(), all_vectors(world, n, torch.float32).sum(0))
    first = peal_torch.simulated_time()
    uneven(rank, world)
    y = torch.full((3,), float(rank))
    dist.broadcast(y, world - 1)
    assert y[0] == world - 1
    dist.send(y, (rank + 1) % world) if rank % 2 == 0 else dist.recv(y, (rank - 1) % world)
    dist.barrier()
    return first, peal_torch.simulated_time()


def grouped(rank):
    """Rows and columns of a square, and overlapping pairs: every rank makes all groups, as with processes."""
    world = dist.get_world_size()
    side = int(world ** 0.5)
    for lists in ([[r * side + c for c in range(side)] for r in range(side)], [[r * side + c for r in range(side)] for c in range(side)],
                  [[r, r + 1] for r in range(world - 1)]):
        made = [dist.new_group(ranks) for ranks in lists]
        for group, ranks in zip(made, lists):
            if rank not in ranks:
                assert group is dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(group) == -1
                continue
            assert dist.get_rank(group) == ranks.index(rank) and dist.get_world_size(group) == len(ranks)
            before = peal_torch.simulated_time(group)
            x = torch.full((50,), float(rank))
            dist.all_reduce(x, group=group)
            assert torch.equal(x, torch.full((50,), float(sum(ranks)))) and peal_torch.simulated_time(group) > before
            dist.broadcast(x, ranks[-1], group=group)
            if rank == ranks[0]:
                dist.send(x, ranks[1], group=group)
            elif rank == ranks[1]:
                dist.recv(x, ranks[0], group=group)
            dist.destroy_process_group(group)
    refused(lambda: dist.new_group([0, 0]), "new_group")
    refused(lambda: dist.new_group([world]), "new_group")
    refused(lambda: dist.new_group(backend="gloo"), "new_group", "gloo")
    one_clock(world)
    return peal_torch.simulated_time(dist.new_group())


def messages(rank, near, far):
    """Times of messages: 1 and 10000 floats to a near rank, and 1 float to a far one."""
    times = []
    for target, n in ((near, 1), (near, 10000), (far, 1)):
        dist.barrier()
        before = peal_torch.simulated_time()
        x = torch.full((n,), 7.0)
        if rank == 0:
            dist.send(x, target)
        elif rank == target:
            x.zero_()
            dist.recv(x, 0)
            assert torch.equal(x, torch.full((n,), 7.0))
        times.append(peal_torch.simulated_time() - before)
    return times


def late(rank, ended):
    """new_group's time-out applies to the new group."""
    group = dist.new_group(timeout=datetime.timedelta(seconds=5))
    if rank == 0:
        text = refused(lambda: dist.all_reduce(torch.ones(4), group=group), "Timed out", "rank 1")
        ended.set()
        return text
    ended.wait()


def disagrees(rank):
    call = (lambda: dist.broadcast(torch.ones(4), 0)) if rank == 1 else (lambda: dist.all_reduce(torch.ones(4)))
    refused(call, f"on rank {rank} of 4", "different calls", "rank 1 calls broadcast of 16 u8", "rank 0 calls allreduce of 4 f32")


def leaves(rank):
    if rank == 1:
        raise KeyError("one")
    dist.all_reduce(torch.ones(4))


def machine_worlds():
    """Without a number, the world is the machine's, or WORLD_SIZE's."""
    machine = os.path.join(TOP, "machines", "cube.yaml")
    assert peal_torch.simulate(None, lambda rank: dist.get_world_size(), machine) == [4] * 4
    assert peal_torch.world_size() is None and peal_torch.world_size(machine) == 4
    refused(lambda: peal_torch.simulate(None, leaves), "world_size")
    refused(lambda: peal_torch.world_size("cub"), "cub", "machine")
    code = "import os, peal_torch; print(os.environ['WORLD_SIZE'], peal_torch.world_size())"
    for given, want in (({}, "4 4"), ({"WORLD_SIZE": "3"}, "3 3")):
        environment = {**os.environ, "PEAL_PLATFORM": "sim:" + machine, **given}
        assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).strip() == want, given
    print("ok the world of the machine", flush=True)


def large_worlds():
    """The same times as with one process per rank, and in two runs."""
    machine = os.path.join(TOP, "machines", "torus8x8.yaml")
    results = [peal_torch.simulate(64, threaded, machine, args=(1000,)) for _ in range(2)]
    assert results[0] == results[1] and len(set(results[0])) == 1 and 0 < results[0][0][0] < results[0][0][1], results
    print(f"ok 64 ranks as threads: {results[0][0][1] * 1e6:.3f} simulated us, the same twice", flush=True)
    times = peal_torch.simulate(16, grouped, machine)
    assert len(set(times)) == 1 and times[0] > 0, times
    print("ok new_group among ranks that are threads", flush=True)
    world, near, far = 64, 1, 36
    times = peal_torch.simulate(world, messages, machine, args=(near, far))
    small, large, distant = times[near][0], times[near][1], times[far][2]
    assert 0 < small < distant < large and times[near][2] == times[far][0] == times[2][1] == 0, (small, large, distant)
    assert 0 < times[0][0] <= small, "the sender is done before the receiver"
    print(f"ok messages take simulated time: {small * 1e9:.0f} ns to the neighbour, {distant * 1e9:.0f} ns across", flush=True)
    text = refused(lambda: peal_torch.simulate(4, leaves, machine), "of 4 failed")
    assert not dist.is_initialized() and "PEAL_PLATFORM" not in os.environ, text
    refused(lambda: peal_torch.simulate(4, leaves, "/nowhere.yaml"), "peal", "/nowhere.yaml")
    print("ok a rank that leaves is named", flush=True)
    peal_torch.simulate(4, disagrees, machine)
    print("ok different calls are named", flush=True)
    peal_torch.simulate(2, late, machine, args=(threading.Event(),))
    print("ok new_group's time-out", flush=True)


def main(world):
    ranks(script, world)
    machine_worlds()
    large_worlds()


if __name__ == "__main__":
    main(world_size())
