# SPDX-License-Identifier: Apache-2.0
"""What new_group takes: time, memory and descriptors per group, with "peal" and with "gloo".

    /usr/bin/python3 examples/torch/group_bench.py [--world 2,8] [--groups 30]

Medians of the slowest rank; the groups are of all ranks, and not used. Memory: shared pages count as this rank's part of them.
"""
import argparse
import os
import statistics
import time

import launch
import torch
import torch.distributed as dist

import peal_torch  # noqa: F401


def resident_kib():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def timed_new_group(groups):
    dist.barrier()
    start = time.perf_counter()
    groups.append(dist.new_group())
    seconds = torch.tensor([time.perf_counter() - start], dtype=torch.float64)
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.item() * 1e3


def worker(rank, world, rendezvous, options):
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    for backend in ("peal", "gloo"):
        dist.init_process_group(backend, init_method=f"file://{rendezvous}-{backend}", rank=rank, world_size=world)
        groups = []
        timed_new_group(groups)
        memory, opened = resident_kib(), descriptors()
        times = [timed_new_group(groups) for _ in range(options.groups)]
        if rank == 0:
            kib, taken = (resident_kib() - memory) / options.groups, (descriptors() - opened) / options.groups
            print(f"{backend} {world} ranks: new_group {statistics.median(times):.2f} ms (slowest {max(times):.2f}), "
                  f"{kib:.0f} KiB and {taken:.1f} descriptors per rank", flush=True)
            launch.keep(options, "new_group", backend=backend, world=world, ms=statistics.median(times), kib=kib, descriptors=taken)
        dist.barrier()
        groups.clear()
        dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", default="2,8")
    parser.add_argument("--groups", type=int, default=30)
    launch.add_options(parser)
    arguments = parser.parse_args()
    launch.start(worker, arguments.world, arguments)
