# SPDX-License-Identifier: Apache-2.0
"""Calls that overlap: messages beside collectives, groups in threads, futures, forked ranks.

    /usr/bin/python3 torch/tests/threads.py WORLD_SIZE

None of these can pass by being fast: each deadlocks, and ends in a time-out, if one call waits where it must not.
"""
import datetime
import gc
import threading

from common import dist, joined, ranks, say, torch, world_size

SHORT = datetime.timedelta(seconds=600)  # ends hangs only


def recv_beside_collectives(rank, world, folder):
    """A thread waits in recv all the time, while collectives and other messages of the group go on."""
    joined(rank, world, folder, "beside", timeout=SHORT)
    late = torch.zeros(4)
    waiter = threading.Thread(target=lambda: dist.recv(late, (rank - 1) % world, tag=9))
    waiter.start()
    for i in range(20):
        x = torch.full((50,), float(rank))
        dist.all_reduce(x)
        assert x[0] == sum(range(world))
        work = dist.isend(torch.full((7,), float(i)), (rank + 1) % world, tag=1)
        y = torch.zeros(7)
        dist.recv(y, (rank - 1) % world, tag=1)
        work.wait()
        assert y[0] == i
    assert late[0] == 0 and waiter.is_alive()
    dist.barrier()
    dist.send(torch.full((4,), 5.0), (rank + 1) % world, tag=9)
    waiter.join()
    assert late[0] == 5
    dist.destroy_process_group()
    say(rank, "a recv that waits does not stop other calls")


def messages_have_futures(rank, world, folder):
    joined(rank, world, folder, "futures", timeout=SHORT)
    right, left = (rank + 1) % world, (rank - 1) % world
    y = torch.zeros(100000)
    receiving = dist.irecv(y, left)
    twice = [receiving.get_future(), receiving.get_future()]
    doubled = twice[0].then(lambda f: f.value()[0] * 2)
    sending = dist.isend(torch.full((100000,), float(rank)), right).get_future()
    assert torch.equal(doubled.wait(), torch.full((100000,), 2.0 * left))
    sending.wait()
    assert receiving.is_completed() and receiving.wait()
    assert receiving.get_future().wait()[0] is not None
    dist.barrier()
    dist.destroy_process_group()
    say(rank, "messages have futures")


def dropped_messages(rank, world, folder):
    """Works are dropped by a thread that holds the interpreter's lock, which the answering thread needs."""
    joined(rank, world, folder, "dropped", timeout=SHORT)
    right, left = (rank + 1) % world, (rank - 1) % world
    got = torch.zeros(2000000)

    def answer():
        dist.recv(got, left)

    thread = threading.Thread(target=answer)
    dist.isend(torch.full((2000000,), float(rank)), right)  # too large to have been sent at once
    gc.collect()
    thread.start()
    small = torch.zeros(1)
    for i in range(50):  # later messages do not interrupt it
        work = dist.isend(torch.full((1,), float(i)), right, tag=2)
        dist.recv(small, left, tag=2)
        work.wait()
        assert small[0] == i
    thread.join()
    assert torch.equal(got, torch.full((2000000,), float(left)))
    dist.barrier()
    dist.destroy_process_group()
    say(rank, "a message whose work was dropped still arrives")


def dropped_beside_a_wait(rank, world, folder):
    """Works are dropped while another thread, in recv, holds the communicator's lock most of the time: no message is lost."""
    joined(rank, world, folder, "lock", timeout=SHORT)
    right, left = (rank + 1) % world, (rank - 1) % world
    last, wrong = torch.zeros(4), []

    def answer():
        got = torch.zeros(3000)
        for i in range(200):
            dist.recv(got, left, tag=2)
            if not torch.equal(got, torch.full((3000,), float(i))):
                wrong.append(i)

    threads = [threading.Thread(target=lambda: dist.recv(last, left, tag=9)), threading.Thread(target=answer)]
    for thread in threads:
        thread.start()
    for i in range(200):
        dist.isend(torch.full((3000,), float(i)), right, tag=2)
    threads[1].join()
    assert not wrong and last[0] == 0 and threads[0].is_alive(), wrong
    dist.barrier()
    dist.send(torch.full((4,), 5.0), right, tag=9)
    threads[0].join()
    assert last[0] == 5
    dist.destroy_process_group()
    say(rank, "works dropped while another thread has the lock: all arrive, in order")


def groups_in_threads(rank, world, folder):
    joined(rank, world, folder, "groups", timeout=SHORT)
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
    say(rank, "three groups in three threads, in forked ranks")


def made_again(rank, world, folder):
    """Groups are destroyed and made again many times: no descriptors and no memory are lost."""
    counts = []
    for i in range(6):
        joined(rank, world, folder, f"again{i}", timeout=SHORT)
        x = torch.ones(1000)
        dist.all_reduce(x)
        assert x[0] == world
        dist.destroy_process_group()
        gc.collect()
        counts.append((open_files(), shared_maps()))
    assert counts[1:] == counts[:1] * 5 and counts[0][1] == 0, counts
    say(rank, "destroyed and made again six times, nothing left")


def open_files():
    import os
    return len(os.listdir("/proc/self/fd"))


def shared_maps():
    with open("/proc/self/maps") as file:
        return sum("memfd:peal" in line for line in file)


SPAWNED = (messages_have_futures,)
FORKED = (recv_beside_collectives, dropped_messages, dropped_beside_a_wait, groups_in_threads, made_again)

def main(world):
    torch.set_num_threads(1)
    for case in FORKED:
        ranks(case, world)
    for case in SPAWNED:
        ranks(case, world, "spawn")


if __name__ == "__main__":
    main(world_size())
