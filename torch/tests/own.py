# SPDX-License-Identifier: Apache-2.0
"""Kernels of one's own behind torch's collectives, named by peal_torch.Options(algorithms=...).

    /usr/bin/python3 torch/tests/own.py WORLD_SIZE

The kernels are those of comm/own (src/comm/tests/own_test.c): every form of a kernel for every collective.
"""
import os
import subprocess

from common import dist, joined, peal_torch, ranks, refused, say, torch, world_size

PROGRAM = os.environ.get("PEAL_OWN_TEST")


def rows(world):
    return torch.stack([torch.arange(3 * world, dtype=torch.int32) + 100 * r for r in range(world)])


def allreduce(rank, world, group):
    x = rows(world)[rank].clone()
    dist.all_reduce(x, group=group)
    assert torch.equal(x, rows(world).sum(0).int())


def broadcast(rank, world, group):
    x = rows(world)[rank].clone()
    dist.broadcast(x, world - 1, group=group)
    assert torch.equal(x, rows(world)[world - 1])


def reduce(rank, world, group):
    x = rows(world)[rank].clone()
    dist.reduce(x, world - 1, group=group)
    if rank == world - 1:
        assert torch.equal(x, rows(world).sum(0).int())


def allgather(rank, world, group):
    out = torch.zeros(world * 3 * world, dtype=torch.int32)
    dist.all_gather_into_tensor(out, rows(world)[rank].clone(), group=group)
    assert torch.equal(out.view(world, -1), rows(world))


def gather(rank, world, group):
    parts = [torch.zeros(3 * world, dtype=torch.int32) for _ in range(world)] if rank == 0 else None
    dist.gather(rows(world)[rank].clone(), parts, 0, group=group)
    if rank == 0:
        assert torch.equal(torch.stack(parts), rows(world))


def scatter(rank, world, group):
    out, last = torch.zeros(3, dtype=torch.int32), world - 1
    dist.scatter(out, [part.clone() for part in rows(world)[last].view(world, 3)] if rank == last else None, last, group=group)
    assert torch.equal(out, rows(world)[last].view(world, 3)[rank])


def reduce_scatter(rank, world, group):
    out = torch.zeros(3, dtype=torch.int32)
    dist.reduce_scatter_tensor(out, rows(world)[rank].clone(), group=group)
    assert torch.equal(out, rows(world).sum(0).int().view(world, 3)[rank])


def all_to_all(rank, world, group):
    out = torch.zeros(3 * world, dtype=torch.int32)
    dist.all_to_all_single(out, rows(world)[rank].clone(), group=group)
    assert torch.equal(out.view(world, 3), rows(world).view(world, world, 3)[:, rank])


def barrier(rank, world, group):
    dist.barrier(group=group)


CALLS = {call.__name__: call for call in (allreduce, broadcast, reduce, allgather, gather, scatter, reduce_scatter, all_to_all, barrier)}


def run(rank, world, folder):
    joined(rank, world, folder, "store")
    files = sorted(os.listdir(os.path.join(folder, "kernels")))
    assert len(files) > 80, files
    for file in files:
        collective, form = file.split("-")
        if collective not in CALLS:
            continue  # torch has no scan
        options = peal_torch.Options(algorithms={collective: os.path.join(folder, "kernels", file)})
        if form.startswith("misses"):
            refused(lambda: dist.barrier(group=dist.new_group(pg_options=options)), "nothing in a call")
            continue
        group = dist.new_group(pg_options=options)
        try:
            for _ in range(2):
                CALLS[collective](rank, world, group)
        except Exception as error:
            raise AssertionError(file) from error
        dist.destroy_process_group(group)
    dist.destroy_process_group()


def wrong_kernel_is_noticed(rank, world, folder):
    """That a kernel takes the call at all: one that is not a sum."""
    path = os.path.join(folder, "twice.peal")
    if rank == 0:
        with open(path + ".part", "w") as file:
            file.write("kernel twice(inout t: T[n], op: reduce) implements allreduce { t = op(t, t) }\n")
        os.rename(path + ".part", path)
    joined(rank, world, folder, "other")
    dist.barrier()
    group = dist.new_group(pg_options=peal_torch.Options(algorithms={"allreduce": path}))
    x = torch.ones(4)
    dist.all_reduce(x, group=group)
    assert x.tolist() == [2.0] * 4, x
    dist.destroy_process_group()


def first(rank, world, folder):
    if rank == 0:
        os.mkdir(os.path.join(folder, "making"))
        subprocess.run([PROGRAM, "kernels", os.path.join(folder, "making")], check=True)
        os.rename(os.path.join(folder, "making"), os.path.join(folder, "kernels"))
    joined(rank, world, folder, "first")
    dist.barrier()
    dist.destroy_process_group()
    run(rank, world, folder)
    wrong_kernel_is_noticed(rank, world, folder)
    say(rank, f"kernels of one's own behind torch's collectives, {world} ranks")


def main(world):
    if PROGRAM is None:
        print("skipped: PEAL_OWN_TEST does not name the program that writes the kernels")
        return
    ranks(first, world)


if __name__ == "__main__":
    main(world_size())
