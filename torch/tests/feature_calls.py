# SPDX-License-Identifier: Apache-2.0
"""Features of features.py: collectives, messages, objects, groups."""
import datetime
import os

from common import dist, peal_torch, torch
from feature_table import FEATURES, Absent, feature, have, total

# ---- collectives ----

def _collective(name, body):
    """Makes two features: the call, and the call with async_op=True."""
    def sync(rank, world):
        body(lambda function, *args, **more: getattr(dist, function)(*args, **more), rank, world)

    def later(rank, world):
        body(lambda function, *args, **more: getattr(dist, function)(*args, async_op=True, **more).wait(), rank, world)

    FEATURES[name], FEATURES[name + "_async"] = sync, later


def _all_reduce(call, rank, world):
    x = torch.full((1000,), float(rank))
    call("all_reduce", x)
    assert x[0] == total(world)


def _broadcast(call, rank, world):
    x = torch.full((1000,), float(rank))
    call("broadcast", x, world - 1)
    assert x[0] == world - 1


def _reduce(call, rank, world):
    x = torch.full((1000,), float(rank))
    call("reduce", x, 0)
    assert rank or x[0] == total(world)


def _all_gather(call, rank, world):
    parts = [torch.empty(100) for _ in range(world)]
    call("all_gather", parts, torch.full((100,), float(rank)))
    assert all(part[0] == r for r, part in enumerate(parts))


def _all_gather_into_tensor(call, rank, world):
    out = torch.empty(world * 10)
    call("all_gather_into_tensor", out, torch.full((10,), float(rank)))
    assert torch.equal(out, torch.arange(world).repeat_interleave(10).float())


def _gather(call, rank, world):
    parts = [torch.empty(100) for _ in range(world)] if rank == 0 else None
    call("gather", torch.full((100,), float(rank)), parts, 0)
    assert rank or all(part[0] == r for r, part in enumerate(parts))


def _scatter(call, rank, world):
    out = torch.empty(10)
    call("scatter", out, [torch.full((10,), float(r)) for r in range(world)] if rank == 0 else None, 0)
    assert out[0] == rank


def _reduce_scatter(call, rank, world):
    out = torch.empty(10)
    call("reduce_scatter", out, [torch.full((10,), float(rank + r)) for r in range(world)])
    assert out[0] == total(world) + world * rank


def _reduce_scatter_tensor(call, rank, world):
    out = torch.empty(10)
    call("reduce_scatter_tensor", out, torch.arange(world).repeat_interleave(10).float())
    assert out[0] == world * rank


def _all_to_all(call, rank, world):
    out = [torch.empty(10) for _ in range(world)]
    call("all_to_all", out, [torch.full((10,), float(rank * world + r)) for r in range(world)])
    assert all(part[0] == r * world + rank for r, part in enumerate(out))


def _all_to_all_single(call, rank, world):
    out = torch.empty(world * 4)
    call("all_to_all_single", out, torch.arange(world).repeat_interleave(4).float())
    assert torch.equal(out, torch.full((world * 4,), float(rank)))


def _all_to_all_single_uneven(call, rank, world):
    sends = [(rank + q) % 3 for q in range(world)]
    out = torch.empty(sum(sends))
    data = torch.cat([torch.full((n,), float(10 * rank + q)) for q, n in enumerate(sends)])
    call("all_to_all_single", out, data, sends, sends)
    assert torch.equal(out, torch.cat([torch.full((n,), float(10 * q + rank)) for q, n in enumerate(sends)]))


def _all_reduce_coalesced(call, rank, world):
    lists = [torch.full((10,), float(rank)), torch.full((100,), 2.0 * rank)]
    call("all_reduce_coalesced", lists)
    assert lists[0][0] == total(world) and lists[1][0] == 2 * total(world)


def _barrier(call, rank, world):
    call("barrier")


def _all_reduce_sparse(call, rank, world):
    dense = torch.zeros(world + 1)
    dense[rank] = dense[world] = 1
    x = dense.to_sparse()
    call("all_reduce", x)
    assert torch.equal(x.to_dense(), torch.tensor([1.0] * world + [float(world)]))


for body in (_all_reduce, _broadcast, _reduce, _all_gather, _all_gather_into_tensor, _gather, _scatter, _reduce_scatter,
             _reduce_scatter_tensor, _all_to_all, _all_to_all_single, _all_to_all_single_uneven, _all_reduce_coalesced, _barrier,
             _all_reduce_sparse):
    _collective(body.__name__[1:], body)


def _reduces(dtype, operation):
    def run(rank, world):
        kind = getattr(torch, dtype, None)
        if kind is None:
            raise Absent(f"torch.{dtype}")
        x = torch.ones(16).to(kind)
        dist.all_reduce(x, getattr(dist.ReduceOp, operation))
        wanted = {"SUM": world, "AVG": 1, "PRODUCT": 1, "MAX": 1, "MIN": 1, "BOR": 1}[operation]
        if dtype == "bool":
            wanted = 1
        assert (torch.view_as_real(x)[0, 0] if x.is_complex() else x.to(torch.float32)[0]) == wanted
    return run


for dtype in ("float16", "bfloat16", "float64", "int8", "uint8", "int16", "int64", "bool", "complex64", "float8_e4m3fn", "float8_e5m2"):
    FEATURES[f"all_reduce_{dtype}"] = _reduces(dtype, "SUM")
FEATURES["all_reduce_avg"] = _reduces("float32", "AVG")
FEATURES["all_reduce_max"] = _reduces("float32", "MAX")
FEATURES["all_reduce_product"] = _reduces("int32", "PRODUCT")
FEATURES["all_reduce_bor"] = _reduces("int32", "BOR")


@feature
def all_gather_different_lengths(rank, world):
    parts = [torch.empty(r + 1) for r in range(world)]
    dist.all_gather(parts, torch.full((rank + 1,), float(rank)))
    assert all(torch.equal(part, torch.full((r + 1,), float(r))) for r, part in enumerate(parts))


@feature
def monitored_barrier(rank, world):
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=600))


@feature
def future_of_work(rank, world):
    x = torch.ones(10)
    assert dist.all_reduce(x, async_op=True).get_future().then(lambda f: f.value()[0].sum()).wait() == 10 * world


# ---- messages and objects ----

@feature
def send_recv(rank, world):
    x = torch.full((1000,), float(rank))
    if rank == 0:
        dist.send(x, 1)
    elif rank == 1:
        dist.recv(x, 0)
        assert x[0] == 0


@feature
def isend_irecv(rank, world):
    y = torch.empty(300000)
    works = [dist.isend(torch.full((300000,), float(rank)), (rank + 1) % world), dist.irecv(y, (rank - 1) % world)]
    for work in works:
        work.wait()
    assert y[0] == (rank - 1) % world


@feature
def recv_any_source(rank, world):
    if rank == 0:
        assert {dist.recv(torch.empty(1)) for _ in range(world - 1)} == set(range(1, world))
    else:
        dist.send(torch.ones(1), 0)


@feature
def batch_isend_irecv(rank, world):
    y = torch.empty(10)
    ops = [dist.P2POp(dist.isend, torch.full((10,), float(rank)), (rank + 1) % world), dist.P2POp(dist.irecv, y, (rank - 1) % world)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert y[0] == (rank - 1) % world


@feature
def tagged_messages(rank, world):
    right, left = (rank + 1) % world, (rank - 1) % world
    works = [dist.isend(torch.full((5,), float(tag)), right, tag=tag) for tag in (1, 2)]
    second, first = torch.empty(5), torch.empty(5)
    dist.recv(second, left, tag=2)
    dist.recv(first, left, tag=1)
    assert first[0] == 1 and second[0] == 2 and all(work.wait() is not False for work in works)


@feature
def send_object_list(rank, world):
    if not hasattr(dist, "send_object_list"):
        raise Absent("send_object_list")
    objects = [{"rank": 0}, "text"] if rank == 0 else [None, None]
    if rank == 0:
        dist.send_object_list(objects, 1)
    elif rank == 1:
        dist.recv_object_list(objects, 0)
        assert objects == [{"rank": 0}, "text"]


@feature
def all_gather_object(rank, world):
    out = [None] * world
    dist.all_gather_object(out, {"rank": rank, "text": "x" * rank})
    assert [entry["rank"] for entry in out] == list(range(world))


@feature
def broadcast_object_list(rank, world):
    out = [{"a": 1}, 2] if rank == 0 else [None, None]
    dist.broadcast_object_list(out, 0)
    assert out == [{"a": 1}, 2]


@feature
def gather_object(rank, world):
    out = [None] * world if rank == 0 else None
    dist.gather_object(rank, out, 0)
    assert rank or out == list(range(world))


@feature
def scatter_object_list(rank, world):
    out = [None]
    dist.scatter_object_list(out, list(range(world)) if rank == 0 else None, 0)
    assert out == [rank]


# ---- groups ----

@feature
def new_group(rank, world):
    lists = [sorted({r, (r + 1) % world}) for r in range(world)]
    groups = [dist.new_group(ranks) for ranks in lists]
    for ranks, group in zip(lists, groups):
        if rank in ranks:
            x = torch.ones(4)
            dist.all_reduce(x, group=group)
            assert x[0] == 2


@feature
def new_subgroups(rank, world):
    group, _ = dist.new_subgroups_by_enumeration([[r] for r in range(world)])
    x = torch.ones(4)
    dist.all_reduce(x, group=group)
    assert x[0] == 1


@feature
def destroyed_and_made_again(rank, world):
    store = dist.distributed_c10d._get_default_store()
    backend = dist.get_backend()
    dist.destroy_process_group()
    dist.init_process_group(backend, store=dist.PrefixStore("again", store), rank=rank, world_size=world)
    x = torch.ones(4)
    dist.all_reduce(x)
    assert x[0] == world


@feature
def cpu_and_cuda_backends(rank, world):
    if int(torch.__version__.split(".")[0]) < 2:
        raise Absent("a backend for each kind of device")
    group = dist.new_group(backend=f"cpu:{dist.get_backend()},cuda:gloo")
    x = torch.ones(4)
    dist.all_reduce(x, group=group)
    assert x[0] == world


@feature
def split_group(rank, world):
    pg = dist.distributed_c10d._get_default_group()
    if not hasattr(pg, "split_group"):
        raise Absent("ProcessGroup.split_group")
    made = pg.split_group([0, 1], timeout=datetime.timedelta(seconds=600), group_name="split")
    if rank < 2:
        x = torch.ones(4)
        made.allreduce([x]).wait()
        assert x[0] == 2


@feature
def debug_detail(rank, world):
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    have("torch.distributed", "set_debug_level_from_env")()
    group = dist.new_group()
    x = torch.ones(4)
    dist.all_reduce(x, group=group)
    assert x[0] == world
    if dist.get_backend() == "peal":
        peal_torch.symmetric(x, group)
