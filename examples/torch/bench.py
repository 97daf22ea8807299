# SPDX-License-Identifier: Apache-2.0
"""Times torch.distributed calls with "peal" and "gloo", alternating in one run.

    /usr/bin/python3 examples/torch/bench.py [--world 2,4,8] [--calls all_reduce,...] [--bytes 4,64K,1M,64M] [--json FILE]

Prints the median over repetitions of the slowest rank's time per call, Python included, and the ratio.
"""
import argparse
import json
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import peal_torch  # noqa: F401  registers the backend


def size(text):
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1].upper(), 1)
    return int(text[:-1] if unit > 1 else text) * unit


def call(name, group, n, world, rank):
    """A function that makes one call on float32 tensors; n elements in the large buffer."""
    part = max(1, n // world)
    x, whole, own = torch.ones(n), torch.ones(part * world), torch.ones(part)
    parts = list(whole.chunk(world))
    return {
        "all_reduce": lambda: dist.all_reduce(x, group=group),
        "all_gather": lambda: dist.all_gather(parts, own, group=group),
        "reduce_scatter": lambda: dist.reduce_scatter(own, parts, group=group),
        "broadcast": lambda: dist.broadcast(x, 0, group=group),
        "all_to_all": lambda: dist.all_to_all_single(whole, whole.clone(), group=group),
    }[name]


def timed(function, repetitions, group):
    dist.barrier(group=group)
    start = time.perf_counter()
    for _ in range(repetitions):
        function()
    return (time.perf_counter() - start) / repetitions


def run(rank, world, calls, sizes):
    """The rows of one rank: the same groups, tensors and order for both backends."""
    groups = {name: dist.new_group(backend=name) for name in ("peal", "gloo")}
    rows = []
    for name in calls:
        for count in sizes:
            times = {backend: [] for backend in groups}
            repetitions = max(1, min(200, (4 << 20) // max(count, 4096)))
            for round_ in range(7):
                for backend, group in groups.items():
                    try:
                        seconds = timed(call(name, group, max(1, count // 4), world, rank), repetitions, group)
                    except RuntimeError:  # gloo has no reduce_scatter, nor all_to_all in some versions
                        seconds = float("nan")
                    slowest = torch.tensor([seconds])
                    dist.all_reduce(slowest, dist.ReduceOp.MAX, group=groups["peal"])
                    if round_:
                        times[backend].append(slowest.item())
            rows.append({"call": name, "bytes": count, "world": world,
                         **{backend: statistics.median(t) * 1e6 for backend, t in times.items()}})
            if rank == 0:
                row = rows[-1]
                print(f"{name:15} {world:2} ranks {count:10} B  peal {row['peal']:10.1f} us  gloo {row['gloo']:10.1f} us  "
                      f"ratio {row['gloo'] / row['peal']:6.1f}", flush=True)
    return rows


def worker(rank, world, rendezvous, calls, sizes, out):
    torch.set_num_threads(1)
    dist.init_process_group("peal", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    rows = run(rank, world, calls, sizes)
    if rank == 0 and out:
        with open(out, "a") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", default="2,4")
    parser.add_argument("--calls", default="all_reduce,all_gather,reduce_scatter,broadcast,all_to_all")
    parser.add_argument("--bytes", default="4,64K,1M,64M")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    for ranks in arguments.world.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            mp.spawn(worker, nprocs=int(ranks), args=(int(ranks), os.path.join(scratch, "store"), arguments.calls.split(","),
                                                      [size(b) for b in arguments.bytes.split(",")], arguments.json))
