# SPDX-License-Identifier: Apache-2.0
"""Works and futures behave as Gloo's do on the installed torch: values, types and exceptions.

    /usr/bin/python3 torch/tests/alike.py WORLD_SIZE
"""
import datetime
import json
import os

from common import dist, ranks, torch, world_size

SHORT = datetime.timedelta(seconds=600)  # ends hangs only


def answer(ask):
    """The value, or the kind of exception: messages differ between backends."""
    try:
        return repr(ask())
    except RuntimeError as error:
        return "RuntimeError, timed out" if "imed out" in str(error) else "RuntimeError"
    except Exception as error:
        return type(error).__name__


def late(rank, world, folder, backend):
    """Rank 0 waits for a while without success, then the others join."""
    store, x = dist.FileStore(f"{folder}/late-{backend}", world), torch.ones(10)
    if rank == 0:
        work = dist.all_reduce(x, async_op=True)
        yield "wait with a time-out", lambda: work.wait(datetime.timedelta(milliseconds=50))
        yield "is_completed after it", work.is_completed
        yield "the others come", lambda: store.set("come", "yes")
    else:
        store.wait(["come"])
        work = dist.all_reduce(x, async_op=True)
    yield "wait again", lambda: work.wait(SHORT)
    yield "is_success", work.is_success
    yield "exception", work.exception
    yield "result", work.result
    yield "the group goes on", lambda: dist.all_reduce(x)


def asked(rank, world, folder, backend):
    x, parts = torch.ones(10), [torch.empty(10) for _ in range(world)]
    work = dist.all_reduce(x, async_op=True)
    yield "wait", work.wait
    yield "wait twice", work.wait
    yield "future", lambda: work.get_future().wait()
    yield "future is done", lambda: work.get_future().done()
    yield "source_rank", work.source_rank
    yield "synchronize", work.synchronize
    for name, other in (("barrier", dist.barrier(async_op=True)), ("broadcast", dist.broadcast(x, 0, async_op=True)),
                        ("all_gather", dist.all_gather(parts, x, async_op=True))):
        yield f"wait of {name}", other.wait
        yield f"result of {name}", other.result
        yield f"future of {name}", lambda: other.get_future().wait()
    if rank < 2:
        message = dist.isend(x, 1) if rank == 0 else dist.irecv(x, 0)
        yield "wait of a message", message.wait
        yield "is_completed of a message", message.is_completed
    yield "another type in the list", lambda: dist.all_gather(parts, torch.ones(10, dtype=torch.float64))
    yield "no such root", lambda: dist.broadcast(x, world)
    yield "no list for the root", lambda: dist.gather(x, None, rank)
    yield "the group goes on after that", lambda: dist.all_reduce(x)


def answers(rank, world, folder):
    backend = os.environ["PEAL_TEST_KIND"]
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(backend, init_method=f"file://{folder}/{backend}", rank=rank, world_size=world, timeout=SHORT)
    given = [(title, answer(ask)) for case in (late, asked) for title, ask in case(rank, world, folder, backend)]
    with open(f"{folder}/{rank}.txt", "w") as file:
        json.dump(given, file)
    store = dist.FileStore(f"{folder}/ended", world)
    store.set(str(rank), "yes")
    store.wait([str(r) for r in range(world)])
    os._exit(0)  # destroying a Gloo group may hang if the peer's has been destroyed before


def main(world):
    given = {}
    for backend in ("gloo", "peal"):
        os.environ["PEAL_TEST_KIND"] = backend
        given[backend] = ranks(answers, world, join=False)
    for rank in map(str, range(world)):
        gloo, peal = (json.loads(given[backend][rank]) for backend in ("gloo", "peal"))
        different = [f"{title}: {was} with Gloo, {now} with Peal" for (title, was), (_, now) in zip(gloo, peal) if was != now]
        assert len(gloo) == len(peal) and not different, f"rank {rank}: {different}"
    print(f"ok works answer as Gloo's: {len(gloo)} questions on the last rank", flush=True)


if __name__ == "__main__":
    main(world_size())
