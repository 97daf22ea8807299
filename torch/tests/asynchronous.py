# SPDX-License-Identifier: Apache-2.0
"""async_op=True: the call returns at once and progresses by itself.

    /usr/bin/python3 torch/tests/asynchronous.py WORLD_SIZE

None of these can pass by being fast: each deadlocks, and ends in a time-out, if one call waits where it must not.
"""
import ctypes
import datetime
import gc
import os
import platform
import struct
import threading
import time

from common import dist, joined, ranks, say, torch, world_size

SHORT = datetime.timedelta(seconds=600)  # ends hangs only


def own_threads():
    return len(os.listdir("/proc/self/task"))


def settles(ask, wanted):
    """Waits until the threads are gone, which end a moment after their last call."""
    for _ in range(120000):
        if ask() == wanted:
            return
        time.sleep(0.005)
    raise AssertionError(f"{ask()} instead of {wanted}")


def send_between(rank, world):
    """Rank 0 issues a collective, then sends a message that rank 1 receives before it joins the collective."""
    x, y = torch.ones(1000), torch.full((200000,), 7.0)
    if rank == 0:
        work = dist.all_reduce(x, async_op=True)
        dist.send(y, 1)
        work.wait()
    else:
        if rank == 1:
            y.zero_()
            dist.recv(y, 0)
            assert y[0] == 7
        dist.all_reduce(x)
    assert x[0] == world


def store_between(rank, world):
    """The others join only after rank 0's call has returned."""
    store = dist.distributed_c10d._get_default_store()
    x = torch.full((50000,), float(rank + 1))
    if rank == 0:
        work = dist.broadcast(x, 0, async_op=True)
        store.set("went on", "yes")
    else:
        store.wait(["went on"])
        work = dist.broadcast(x, 0, async_op=True)
    assert work.wait() and work.is_completed()
    assert x[0] == 1


def opposite_order(rank, world):
    first, second = dist.new_group(), dist.new_group()
    groups = (first, second) if rank == 0 else (second, first)
    x = [torch.ones(1000), torch.ones(1000)]
    works = [dist.all_reduce(tensor, group=group, async_op=True) for tensor, group in zip(x, groups)]
    for work in works:
        work.wait()
    assert x[0][0] == x[1][0] == world
    dist.destroy_process_group(first)
    dist.destroy_process_group(second)


def polling(rank, world):
    x = torch.ones(1000)
    if rank != 0:
        time.sleep(0.05)
    work = dist.all_reduce(x, async_op=True)
    while not work.is_completed():
        pass
    assert x[0] == world
    work.wait()


def issue_order(rank, world):
    """Each call sees the results of those before it, synchronous or not."""
    x = torch.ones(3000)
    works = []
    for i in range(40):
        if i % 5 == 4:
            dist.all_reduce(x, dist.ReduceOp.MAX)
        else:
            works.append(dist.all_reduce(x, async_op=True))
            if i % 3 == rank % 3:
                works[-1].wait()
    dist.barrier()
    assert x[0] == float(world) ** 32 and all(work.is_completed() for work in works)


def kept_alive(rank, world):
    """The work keeps the tensors alive, of which the program has no other reference."""
    if rank != 0:
        time.sleep(0.05)
    works = [dist.all_reduce(torch.full((100000,), float(i + rank)), async_op=True) for i in range(5)]
    gc.collect()
    for i, work in enumerate(works):
        work.wait()
        assert torch.equal(work.result()[0], torch.full((100000,), float(sum(range(world)) + world * i)))


def callbacks(rank, world):
    """Callbacks run once, with the result, and may make calls of the same group, synchronous or not."""
    seen, nested = [], []
    x, y, z = torch.ones(500), torch.ones(500), torch.ones(500)

    def then(future):
        seen.append(float(future.value()[0][0]))
        dist.all_reduce(y)
        nested.append(dist.all_reduce(z, async_op=True))
        return future.value()[0].sum()

    late = torch.ones(1)
    if rank != 0:
        time.sleep(0.05)
    work = dist.all_reduce(x, async_op=True)
    total = work.get_future().then(then)
    work.wait()
    assert total.wait() == 500 * world
    nested[0].wait()
    assert seen == [world] and y[0] == z[0] == world
    dist.all_reduce(late)
    assert late[0] == world
    after = []
    work.get_future().then(lambda future: after.append(1)).wait()
    assert after == [1] and len(seen) == 1


def waits_for_itself(rank, world):
    """A callback waits for its own work."""
    x = torch.ones(10)
    work = dist.all_reduce(x, async_op=True)
    future = work.get_future().then(lambda _: work.wait())
    assert future.wait()


def late_waits(rank, world):
    """wait(timeout) raises, as with Gloo, and the call goes on; a later wait returns its result."""
    store = dist.distributed_c10d._get_default_store()
    x = torch.ones(1000)
    if rank == 0:
        work = dist.all_reduce(x, async_op=True)
        try:
            work.wait(datetime.timedelta(milliseconds=50))
            raise AssertionError("no time-out")
        except RuntimeError as error:
            assert "imed out" in str(error), error
        assert not work.is_completed()
        store.set("waited", "yes")
        work.wait(SHORT)
    else:
        store.wait(["waited"])
        dist.all_reduce(x)
    assert x[0] == world


def every_collective(rank, world):
    """All collectives are pending at once, and are then waited for in the opposite order."""
    n = 1000
    works = []

    def issue(name, *args, **more):
        works.append(getattr(dist, name)(*args, async_op=True, **more))

    one, all_, parts = torch.full((n,), float(rank)), torch.empty(n * world), [torch.empty(n) for _ in range(world)]
    summed, rooted, mine, to_all = one.clone(), one.clone(), torch.empty(n), torch.empty(n * world)
    copied, collected = one.clone(), [torch.empty(n) for _ in range(world)]
    issue("all_reduce", summed)
    issue("broadcast", copied, world - 1)
    issue("reduce", rooted, 0)
    issue("all_gather", parts, one)
    issue("all_gather_into_tensor", all_, one)
    issue("reduce_scatter_tensor", mine, torch.arange(world).repeat_interleave(n).float())
    issue("all_to_all_single", to_all, torch.arange(world).repeat_interleave(n).float())
    issue("gather", one, collected if rank == 0 else None, 0)
    issue("barrier")
    for work in reversed(works):
        work.wait()
    total = float(sum(range(world)))
    assert summed[0] == total and copied[0] == world - 1 and mine[0] == world * rank
    assert all(part[0] == r for r, part in enumerate(parts)) and torch.equal(torch.cat(parts), all_)
    assert torch.equal(to_all, torch.full((n * world,), float(rank)))
    assert rank or (rooted[0] == total and torch.equal(torch.cat(collected), all_))


def no_thread_when_idle(rank, world):
    """Synchronous calls start no thread; that of asynchronous calls ends."""
    settles(own_threads, before_any_call)
    for _ in range(20):
        dist.all_reduce(torch.ones(10))
        assert own_threads() == before_any_call
    for _ in range(20):
        dist.all_reduce(torch.ones(10), async_op=True).wait()
    settles(own_threads, before_any_call)


def turn_us(thread):
    """How long the kernel lets a thread compute before others have its core; 0 where the kernel does not say."""
    number = {"x86_64": 315, "aarch64": 275}.get(platform.machine())
    room = ctypes.create_string_buffer(48)
    if number is None or ctypes.CDLL(None).syscall(number, thread, room, len(room), 0) != 0:
        return 0
    return struct.unpack("IIQiIQQQ", room.raw)[5] // 1000


def short_turns(rank, world):
    """The thread that makes a call asks for short turns, also one that another such thread has started, because the first call
    has callbacks. The program's own thread keeps its own."""
    store = dist.distributed_c10d._get_default_store()
    x, y, own = torch.ones(1000), torch.ones(1000), turn_us(0)
    if rank == 0:
        first = dist.all_reduce(y, async_op=True)
        future = first.get_future().then(lambda _: 1)
        work = dist.all_reduce(x, async_op=True)
        store.set("both queued", "yes")
        future.wait()
        if own > 100:
            settles(lambda: 100 in [turn_us(int(thread)) for thread in os.listdir("/proc/self/task")], True)
        store.set("short turns", "yes")
        work.wait()
    else:
        store.wait(["both queued"])
        dist.all_reduce(y)
        store.wait(["short turns"])
        dist.all_reduce(x)
    assert x[0] == y[0] == world and turn_us(0) == own


CASES = (send_between, store_between, opposite_order, polling, issue_order, kept_alive, callbacks, waits_for_itself, late_waits,
         every_collective, short_turns, no_thread_when_idle)
before_any_call = 0


def every_case(rank, world, folder):
    global before_any_call
    torch.set_num_threads(1)
    joined(rank, world, folder, "async", timeout=SHORT)
    dist.barrier()
    before_any_call = own_threads()
    for case in CASES:
        case(rank, world)
        dist.barrier()
        say(rank, f"async: {case.__name__}")
    dist.destroy_process_group()


def destroyed_while_pending(rank, world, folder):
    """Calls that the program has not waited for are made before the group ends."""
    joined(rank, world, folder, "destroyed", timeout=SHORT)
    x = [torch.ones(1000) for _ in range(10)]
    if rank == 0:
        time.sleep(0.05)
    for tensor in x:
        dist.all_reduce(tensor, async_op=True)
    dist.destroy_process_group()
    gc.collect()
    assert all(tensor[0] == world for tensor in x)
    say(rank, "async: destroyed while calls are pending")


def forked_while_pending(rank, world, folder):
    """A forked child is not a rank: its calls are refused, and it ends although its parent's call is pending."""
    joined(rank, world, folder, "forked", timeout=SHORT)
    store = dist.distributed_c10d._get_default_store()
    x = torch.ones(1000)
    if rank == 0:
        work = dist.all_reduce(x, async_op=True)
        child = os.fork()
        if child == 0:
            try:
                dist.all_reduce(torch.ones(2))
            except RuntimeError as error:
                dist.destroy_process_group()
                gc.collect()
                os._exit(0 if "forked" in str(error) else 3)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        store.set("forked", "yes")
        work.wait()
    else:
        store.wait(["forked"])
        dist.all_reduce(x)
    assert x[0] == world
    dist.destroy_process_group()
    say(rank, "async: forked while a call is pending")


def ends_while_pending(rank, world, folder):
    """The program ends with calls that the peers never join: the process still exits, with code 0."""
    joined(rank, world, folder, "ends", timeout=SHORT)
    store = dist.FileStore(f"{folder}/ended", world)
    if rank == 0:
        dist.all_reduce(torch.ones(1000), async_op=True)
        got = torch.zeros(5)
        future = dist.irecv(got, 1).get_future()
        future.then(lambda _: None)
        threading.Timer(0, lambda: None).start()
        store.set("issued", "yes")
    else:
        store.wait(["issued"])
    say(rank, "async: the program ends while calls are pending")


def main(world):
    torch.set_num_threads(1)
    ranks(every_case, world)
    for case in (destroyed_while_pending, forked_while_pending, ends_while_pending):
        ranks(case, world)


if __name__ == "__main__":
    main(world_size())
