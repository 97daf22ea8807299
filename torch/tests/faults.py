# SPDX-License-Identifier: Apache-2.0
"""A peer dies, hangs, calls something else or is on another host: an exception that says who, where and why.

    /usr/bin/python3 torch/tests/faults.py WORLD_SIZE

After a death nothing is left: no process, no thread, no shared memory.
"""
import ctypes
import datetime
import gc
import glob
import os
import signal
import sys
import time

from common import dist, joined, peal_torch, ranks, torch


def threads():
    return sorted(os.listdir("/proc/self/task"))


def shared_maps(path="/proc/self/maps"):
    try:
        with open(path) as file:
            return sum("memfd:peal" in line for line in file)
    except OSError:  # gone, or somebody else's
        return 0


def children():
    """Processes below this one, but for the helper that multiprocessing keeps."""
    found = []
    for task in glob.glob("/proc/self/task/*/children"):
        with open(task) as file:
            found += file.read().split()
    return [pid for pid in found if b"resource_tracker" not in open(f"/proc/{pid}/cmdline", "rb").read()]


def failing(call):
    """Runs it until it raises; its words."""
    for _ in range(100000):
        try:
            call()
        except RuntimeError as error:
            return " ".join(str(error).split())  # reports are broken into lines
    raise AssertionError("nobody noticed")


def killed(rank, world, folder):
    """Rank 1 kills itself; the others raise, end their group, and have as many threads and as little memory as before."""
    torch.set_num_threads(1)
    peal_torch.set_async("async" in os.environ["PEAL_TEST_KIND"])
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
        text = failing(lambda: dist.all_reduce(x, group=group))
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
    named = set(os.listdir("/dev/shm"))
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
    assert not children(), "a process is left"
    assert set(os.listdir("/dev/shm")) <= named, "a name in /dev/shm is left"
    assert slowest < 1, f"noticed after {slowest} s"
    print(f"ok killed{kind}: {world - 1} raised after at most {slowest:.3f} s; no process, thread or memory left", flush=True)


def disagrees(rank, world, folder):
    """Rank 1 broadcasts where the others reduce."""
    joined(rank, world, folder, "other", timeout=datetime.timedelta(seconds=60))
    x = torch.ones(1000)
    dist.all_reduce(x)
    text = failing((lambda: dist.broadcast(x, 0)) if rank == 1 else (lambda: dist.all_reduce(x)))
    with open(f"{folder}/{rank}.txt", "w") as file:
        file.write(text)
    dist.destroy_process_group()


def hangs(rank, world, folder):
    """Rank 1 does not come."""
    joined(rank, world, folder, "hang", timeout=datetime.timedelta(seconds=1))
    store = dist.FileStore(f"{folder}/ended", world)
    x = torch.ones(1000)
    dist.all_reduce(x)
    if rank != 1:
        with open(f"{folder}/{rank}.txt", "w") as file:
            file.write(failing(lambda: dist.all_reduce(x)))
        store.add("ended", 1)
    else:
        while store.add("ended", 0) < world - 1:
            time.sleep(0.02)
    dist.destroy_process_group()


def become_another_host(folder):
    """This process sees another host name and another boot id; False without the right to do so."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, new_uts = 0x00020000, 0x04000000
    private, bind = 0x4000 | 0x40000, 0x1000
    boot = f"{folder}/boot_id"
    with open(boot, "w") as file:
        file.write("00000000-0000-4000-8000-000000000000\n")
    return (libc.unshare(new_mounts | new_uts) == 0 and libc.sethostname(b"elsewhere", 9) == 0
            and libc.mount(None, b"/", None, private, None) == 0
            and libc.mount(boot.encode(), b"/proc/sys/kernel/random/boot_id", None, bind, None) == 0)


def elsewhere(rank, world, folder):
    """Rank 1 is on another host: every rank is refused, in words, and at once."""
    if rank == 1 and not become_another_host(folder):
        with open(f"{folder}/no.txt", "w") as file:
            file.write("no right to make namespaces")
    try:
        joined(rank, world, folder, "host", timeout=datetime.timedelta(seconds=20))
    except RuntimeError as error:
        with open(f"{folder}/{rank}.txt", "w") as file:
            file.write(" ".join(str(error).split()))  # reports are broken into lines


def main(world):
    for kind in ("", ", in a message", ", async"):
        survives_a_death(world, kind)
    texts = ranks(disagrees, world)
    for rank in range(world):
        text = texts[str(rank)]
        assert f"failed on rank {rank} of {world}: " in text and "different calls" in text, text
    told = [text for text in texts.values() if "rank 1" in text and "broadcast of 4000 u8" in text and "allreduce of 1000 f32" in text]
    assert len(told) == world, texts
    print("ok different calls: every rank raised, with both calls", flush=True)
    texts = ranks(hangs, world)
    for rank in range(world):
        if rank != 1:
            text = texts[str(rank)]
            assert f"peal allreduce failed on rank {rank} of {world}: Timed out" in text, text
            assert "rank 1" in text and "<-- outside any call" in text and "allreduce of 1000 f32" in text, text
    print("ok hangs: the others raised and named rank 1", flush=True)
    texts = ranks(elsewhere, world)
    if "no" in texts:
        print("skipped: another host needs the right to make namespaces")
        return
    for rank in range(world):
        assert "rank 1 is on another host ('elsewhere'" in texts[str(rank)], texts
    print("ok another host: " + texts["0"].splitlines()[0], flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
