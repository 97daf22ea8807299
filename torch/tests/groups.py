# SPDX-License-Identifier: Apache-2.0
"""Groups are cheap: hundreds of them need no descriptors, and little memory before their first use.

    /usr/bin/python3 torch/tests/groups.py WORLD_SIZE [GROUPS]
"""
import datetime
import os
import resource
import sys

from common import dist, joined, ranks, say, torch, world_size

DESCRIPTORS = 1024
MOST_KIB = {2: 1024, 8: 2048}  # per rank, of a group that has not been used


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def resident_kib():
    """Proportional: this rank's share of shared pages."""
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))


def use(group, rank, world, i):
    """A sum, and a message from each rank to the next, which is the group's first on every rank."""
    x = torch.full((100,), float(rank + i))
    dist.all_reduce(x, group=group)
    assert x[0] == sum(range(world)) + world * i
    y = torch.zeros(10)
    works = [dist.isend(torch.full((10,), float(i)), (rank + 1) % world, group=group),
             dist.irecv(y, (rank - 1) % world, group=group)]
    for work in works:
        work.wait()
    assert y[0] == i


def many(rank, world, folder):
    count = int(os.environ["PEAL_TEST_GROUPS"])
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    joined(rank, world, folder, "many", timeout=datetime.timedelta(seconds=600))
    use(dist.new_group(), rank, world, 1)
    dist.barrier()
    open_before, memory_before = descriptors(), resident_kib()
    groups = [dist.new_group() for _ in range(count)]
    dist.barrier()
    kib = (resident_kib() - memory_before) / count
    assert descriptors() == open_before, f"{descriptors()} descriptors, {open_before} before"
    assert kib <= MOST_KIB.get(world, 2048), f"{kib:.0f} KiB per rank for a group"
    dist.barrier()
    for i, group in enumerate(groups):
        use(group, rank, world, i)
    assert descriptors() <= open_before + 8, f"{descriptors()} descriptors, {open_before} before"
    say(rank, f"groups: {count} of {world} ranks with {descriptors()} of {DESCRIPTORS} descriptors, "
              f"{kib:.0f} KiB per rank for each before its use")
    del group, groups
    dist.destroy_process_group()


def first_message(rank, world, folder):
    """The first message of a group while one of its collectives is under way, between two of its ranks only."""
    joined(rank, world, folder, "first", timeout=datetime.timedelta(seconds=600))
    for kind in ("sent before the other rank has a communicator for it", "wanted first"):
        group = dist.new_group()
        x, y = torch.ones(10), torch.zeros(300000)
        work = None
        if rank == 0:
            work = dist.all_reduce(x, group=group, async_op=True)
            if kind.startswith("sent"):
                dist.send(torch.ones(300000), 1, group=group)
            else:
                dist.recv(y, 1, group=group)
        elif rank == 1:
            if kind.startswith("sent"):
                dist.recv(y, 0, group=group)
            else:
                dist.send(torch.ones(300000), 0, group=group)
        (work.wait() if work else dist.all_reduce(x, group=group))
        assert x[0] == world
        dist.destroy_process_group(group)
        say(rank, f"groups: a first message {kind}, beside a collective")
    dist.destroy_process_group()


def main(world):
    os.environ["PEAL_TEST_GROUPS"] = sys.argv[2] if __name__ == "__main__" and len(sys.argv) > 2 else "256"
    ranks(many, world)
    ranks(first_message, world)


if __name__ == "__main__":
    main(world_size())
