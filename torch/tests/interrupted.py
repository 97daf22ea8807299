# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, and a rank that raises and exits: waiting ranks raise, long before the time-out.

    /usr/bin/python3 torch/tests/interrupted.py WORLD_SIZE
"""
import datetime
import os
import signal
import time

from common import dist, joined, ranks, torch, world_size

LONG = datetime.timedelta(hours=1)


def note(folder, rank, text):
    with open(f"{folder}/{rank}.txt", "w") as file:
        file.write(" ".join(text.split()))


def waiting_calls():
    x = torch.ones(1000)

    def pending_then_sync():
        dist.all_reduce(x, async_op=True)
        dist.all_reduce(x)

    def made_by_the_thread():
        work = dist.all_reduce(x, async_op=True)
        time.sleep(0.1)  # for the group's thread to take the call; if it does not, the result must be the same
        work.wait()

    return {
        "all_reduce": lambda: dist.all_reduce(x),
        "async": lambda: dist.all_reduce(x, async_op=True).wait(),
        "async, which the thread has taken": made_by_the_thread,
        "async with a time-out": lambda: dist.all_reduce(x, async_op=True).wait(LONG),
        "sync after async": pending_then_sync,
        "recv": lambda: dist.recv(x, 1),
    }


def interrupted(rank, world, folder):
    """Rank 0 waits and is interrupted; the others join when it says so, and raise too while it is still alive."""
    kind = os.environ["PEAL_TEST_KIND"]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    joined(rank, world, folder, "interrupt", timeout=LONG)
    dist.barrier()
    store = dist.FileStore(f"{folder}/store", world)
    if rank == 0:
        signal.setitimer(signal.ITIMER_REAL, 0)
        began, child = time.monotonic(), None
        try:
            child = os.fork()
            if child == 0:  # interrupts its parent after that has waited for a while
                time.sleep(0.5)
                os.kill(os.getppid(), signal.SIGINT)
                os._exit(0)
            waiting_calls()[kind]()
            note(folder, rank, "nothing was raised")
        except KeyboardInterrupt:
            note(folder, rank, f"interrupted {time.monotonic() - began:.2f}")
        os.waitpid(child, 0)
        store.set("over", "yes")
        if kind != "recv":
            store.wait([f"noted {peer}" for peer in range(1, world)])
        os._exit(0)  # as if Python ended, with calls under way
    store.wait(["over"])
    try:
        dist.all_reduce(torch.ones(1000))
        note(folder, rank, "ended")
    except RuntimeError as error:
        note(folder, rank, str(error))
    store.set(f"noted {rank}", "yes")
    os._exit(0)


def raises(rank, world, folder):
    """Rank 1 raises and exits while the others are in a call."""
    joined(rank, world, folder, "raise", timeout=LONG)
    dist.barrier()
    if rank == 1:
        return  # its groups end with the process
    try:
        if os.environ["PEAL_TEST_KIND"] == "async":
            dist.all_reduce(torch.ones(1000), async_op=True).wait()
        else:
            dist.all_reduce(torch.ones(1000))
        note(folder, rank, "nothing was raised")
    except RuntimeError as error:
        note(folder, rank, str(error))


def main(world):
    for kind in waiting_calls():
        os.environ["PEAL_TEST_KIND"] = kind
        texts = ranks(interrupted, world, join=False)
        assert texts["0"].startswith("interrupted"), (kind, texts)
        assert all(texts[str(peer)] != "ended" for peer in range(1, world)), (kind, texts)
        print(f"ok Ctrl-C in {kind}: {texts['0']} s after it began; a peer: {texts['1'][:100]}", flush=True)
    for kind in ("sync", "async"):
        os.environ["PEAL_TEST_KIND"] = kind
        texts = ranks(raises, world, join=False)
        assert "different calls" not in texts["0"] and "rank 1" in texts["0"], texts
        print(f"ok rank 1 left, {kind}: {texts['0'][:160]}", flush=True)


if __name__ == "__main__":
    main(world_size())
