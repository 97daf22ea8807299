# SPDX-License-Identifier: Apache-2.0
"""A peer dies, hangs or calls something else: the exception says who, where and why. A peer on another host takes part as usual.

    /usr/bin/python3 torch/tests/faults.py WORLD_SIZE

After a death nothing is left: no process, no thread, no shared memory.
"""
import ctypes
import datetime
import gc
import glob
import os
import signal
import time

from common import dist, joined, ranks, torch, world_size


def threads():
    return sorted(os.listdir("/proc/self/task"))


def shared_maps(path="/proc/self/maps"):
    try:
        with open(path) as file:
            return sum("memfd:peal" in line for line in file)
    except OSError:  # it has ended, or belongs to another user
        return 0


def children():
    """Descendants of this process, without the helper process of multiprocessing."""
    found = []
    for task in glob.glob("/proc/self/task/*/children"):
        with open(task) as file:
            found += file.read().split()
    lines = [open(f"/proc/{pid}/cmdline", "rb").read().replace(b"\0", b" ").decode() for pid in found]
    return [line for line in lines if "resource_tracker" not in line]


def own_names():
    """Files in shared memory, without those of other programs."""
    return {name for name in os.listdir("/dev/shm") if "peal" in name or "torch" in name}


def is_async():
    return "async" in os.environ["PEAL_TEST_KIND"]


def waited(function, *args, **more):
    """Makes the call, or starts it and waits for it, depending on the kind of test."""
    work = function(*args, async_op=is_async(), **more)
    if work:
        work.wait()


def failing(call):
    """Repeats the call until it raises; returns the message."""
    for _ in range(100000):
        try:
            call()
        except RuntimeError as error:
            return " ".join(str(error).split())  # reports have several lines
    raise AssertionError("nobody noticed")


def killed(rank, world, folder):
    """Rank 1 kills itself; the others raise, end their group, and have no more threads and memory than before."""
    torch.set_num_threads(1)
    before = threads()
    joined(rank, world, folder, "kill")
    group = dist.new_group()
    x = torch.ones(1000)
    for _ in range(50):
        dist.all_reduce(x, group=group)
    with open(f"{folder}/pid{rank}.txt", "w") as file:
        file.write(str(os.getpid()))
    assert shared_maps() > 0
    if rank == 1:
        with open(f"{folder}/when.txt", "w") as file:
            file.write(repr(time.monotonic()))
        os.kill(os.getpid(), signal.SIGKILL)
    if "message" in os.environ["PEAL_TEST_KIND"]:
        text = failing(lambda: dist.recv(x, 1, group=group))
    else:
        text = failing(lambda: waited(dist.all_reduce, x, group=group))
    noticed = time.monotonic()
    del group
    dist.destroy_process_group()
    gc.collect()
    assert shared_maps() == 0, "memory left"
    assert threads() == before, (threads(), before)
    with open(f"{folder}/text{rank}.txt", "w") as file:
        file.write(f"{noticed!r} {text}")


def survives_a_death(world, kind):
    os.environ["PEAL_TEST_KIND"] = kind
    named = own_names()
    texts = ranks(killed, world, join=False)
    slowest = 0
    for rank in range(world):
        if rank != 1:
            when, text = texts[f"text{rank}"].split(" ", 1)
            slowest = max(slowest, float(when) - float(texts["when"]))
            what = "recv" if "message" in kind else "allreduce"
            assert f"peal {what} failed on rank {rank} of {world}: " in text, text
            assert "rank 1" in text and "is dead" in text, text
    pids = [int(texts[f"pid{rank}"]) for rank in range(world)]
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids), "a process is left"
    assert sum(shared_maps(path) for path in glob.glob(f"/proc/{os.getpid()}/task/*/maps")) == 0
    assert not children(), f"a process is left: {children()}"
    assert own_names() <= named, "a name in /dev/shm is left"
    print(f"ok killed{kind}: {world - 1} raised after at most {slowest:.3f} s; no process, thread or memory left", flush=True)


def disagrees(rank, world, folder):
    """Rank 1 broadcasts where the others reduce."""
    joined(rank, world, folder, "other", timeout=datetime.timedelta(seconds=600))
    x = torch.ones(1000)
    dist.all_reduce(x)
    text = failing((lambda: waited(dist.broadcast, x, 0)) if rank == 1 else (lambda: waited(dist.all_reduce, x)))
    with open(f"{folder}/{rank}.txt", "w") as file:
        file.write(text)
    dist.destroy_process_group()


def hangs(rank, world, folder):
    """Rank 1 does not make the call."""
    joined(rank, world, folder, "hang", timeout=datetime.timedelta(seconds=20))
    store = dist.FileStore(f"{folder}/ended", world)
    x = torch.ones(1000)
    dist.all_reduce(x)
    if rank != 1:
        with open(f"{folder}/{rank}.txt", "w") as file:
            file.write(failing(lambda: waited(dist.all_reduce, x)))
        store.add("ended", 1)
    else:
        while store.add("ended", 0) < world - 1:
            time.sleep(0.02)
    dist.destroy_process_group()


def elsewhere(rank, world, folder):
    """Rank 1 is told that it is on another host: data goes over the network."""
    if rank == 1:
        os.environ["PEAL_HOST"] = "elsewhere"
    joined(rank, world, folder, "host", timeout=datetime.timedelta(seconds=600))
    values = torch.full((1000,), float(rank + 1))
    dist.all_reduce(values)
    with open(f"{folder}/{rank}.txt", "w") as file:
        file.write(f"sum {values.min().item():g} {values.max().item():g}")
    dist.destroy_process_group()


def apart(rank, world, folder):
    """Rank 1 is in another network namespace of this host, which makes no difference."""
    new_network = 0x40000000
    if rank == 1 and ctypes.CDLL(None).unshare(new_network) != 0:
        with open(f"{folder}/no.txt", "w") as file:
            file.write("no right to make namespaces")
    joined(rank, world, folder, "apart", timeout=datetime.timedelta(seconds=600))
    x = torch.ones(1000)
    dist.all_reduce(x)
    assert x[0] == world
    dist.destroy_process_group()


def in_part(rank, world, folder):
    """A failure in a group of the last two ranks also reports their global ranks."""
    joined(rank, world, folder, "part", timeout=datetime.timedelta(seconds=600))
    members = [world - 2, world - 1]
    group = dist.new_group(members)
    if rank in members:
        x = torch.ones(100)
        text = failing((lambda: dist.broadcast(x, members[0], group=group)) if rank == members[0]
                       else (lambda: dist.all_reduce(x, group=group)))
        with open(f"{folder}/{rank}.txt", "w") as file:
            file.write(text)
    dist.destroy_process_group()


def all_see_different_calls(world, kind):
    os.environ["PEAL_TEST_KIND"] = kind
    texts = ranks(disagrees, world)
    for rank in range(world):
        text = texts[str(rank)]
        # A rank that comes later finds the communicator closed, with the same report.
        assert f"failed on rank {rank} of {world}: " in text and ("different calls" in text or "communicator is closed" in text), text
    both = [text for text in texts.values() if "rank 1" in text and "broadcast of 4000 u8" in text and "allreduce of 1000 f32" in text]
    assert len(both) == world, texts
    print(f"ok different calls{kind}: every rank raised, with both calls", flush=True)


def all_see_who_hangs(world, kind):
    os.environ["PEAL_TEST_KIND"] = kind
    texts = ranks(hangs, world)
    for rank in range(world):
        if rank != 1:
            text = texts[str(rank)]
            assert f"peal allreduce failed on rank {rank} of {world}: Timed out" in text, text
            assert "rank 1" in text and "<-- outside any call" in text and "allreduce of 1000 f32" in text, text
    print(f"ok hangs{kind}: the others raised and named rank 1", flush=True)


def main(world):
    for kind in ("", ", in a message", ", async"):
        survives_a_death(world, kind)
    for kind in ("", ", async"):
        all_see_different_calls(world, kind)
        all_see_who_hangs(world, kind)
    texts = ranks(in_part, world)
    names = f"they are the global ranks {world - 2}, {world - 1}"
    assert len(texts) == 2 and all((names in text) == (world > 2) for text in texts.values()), texts
    print("ok global ranks are named", flush=True)
    texts = ranks(apart, world)
    print("ok another network namespace" if "no" not in texts else "skipped: " + texts["no"], flush=True)
    texts = ranks(elsewhere, world)
    total = world * (world + 1) // 2
    for rank in range(world):
        assert texts[str(rank)] == f"sum {total} {total}", texts
    print("ok another host: " + texts["0"], flush=True)


if __name__ == "__main__":
    main(world_size())
