# SPDX-License-Identifier: Apache-2.0
"""How well async_op=True overlaps: all_reduce beside a sleep and beside computing, with "peal" and "gloo" in one run.

    /usr/bin/python3 examples/torch/overlap.py [--world 2] [--bytes 1M,16M] [--rounds 5]

A sleep stands for computing on a device, which leaves the cores free: the best possible time is the longer of the two. Computing
keeps the caller's core busy: the best possible time is the processor time of call and computing on all ranks, divided by the number
of cores. "one after the other" is a synchronous call followed by the computing. neighbour.py measures other programs on the machine.
"""
import argparse
import os
import statistics
import time

import launch
import torch
import torch.distributed as dist

import peal_torch  # noqa: F401


def size(text):
    unit = {"K": 1 << 10, "M": 1 << 20}.get(text[-1].upper(), 1)
    return int(text[:-1] if unit > 1 else text) * unit


def spin(seconds):
    """Uses this much processor time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def over_ranks(value, op):
    x = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(x, op)
    return x.item()


def timed(function):
    """Seconds of the slowest rank, and processor time of all."""
    dist.barrier()
    start, processor = time.perf_counter(), time.process_time()
    function()
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    return over_ranks(seconds, dist.ReduceOp.MAX), over_ranks(processor, dist.ReduceOp.SUM)


def medians(function, rounds):
    return [statistics.median(values) for values in zip(*(timed(function) for _ in range(rounds)))]


def overlapped(x, group, work):
    pending = dist.all_reduce(x, group=group, async_op=True)
    work()
    pending.wait()


def one_after_the_other(x, group, work):
    dist.all_reduce(x, group=group)
    work()


def run(rank, world, count, groups, options):
    rounds = options.rounds
    cores = len(os.sched_getaffinity(0))
    x = torch.ones(count // 4)
    for name, group in groups.items():
        for _ in range(3):
            dist.all_reduce(x, group=group)
        alone, processor = medians(lambda: dist.all_reduce(x, group=group), rounds)
        asleep, _ = medians(lambda: time.sleep(alone), rounds)  # longer than asked for, by the kernel
        slept, _ = medians(lambda: overlapped(x, group, lambda: time.sleep(alone)), rounds)
        computed, used = medians(lambda: overlapped(x, group, lambda: spin(alone)), rounds)
        after, _ = medians(lambda: one_after_the_other(x, group, lambda: spin(alone)), rounds)
        best = max(alone, (processor + world * alone) / cores)
        if rank == 0:
            print(f"{name:5} {count:9} B  all_reduce {alone * 1e3:7.2f} ms; with a sleep as long {slept * 1e3:7.2f} ms "
                  f"({slept / max(alone, asleep):.2f} of the longer); with computing as long {computed * 1e3:7.2f} ms "
                  f"({computed / best:.2f} of the processor time / {cores}), one after the other {after * 1e3:7.2f} ms", flush=True)
            launch.keep(options, "overlap", backend=name, world=world, bytes=count, alone_ms=alone * 1e3, asleep_ms=asleep * 1e3,
                        sleep_ms=slept * 1e3, compute_ms=computed * 1e3, best_ms=best * 1e3, used_ms=used * 1e3, after_ms=after * 1e3)


def worker(rank, world, rendezvous, options):
    torch.set_num_threads(1)
    dist.init_process_group("peal", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    groups = {name: dist.new_group(backend=name) for name in ("peal", "gloo")}
    for count in map(size, options.bytes.split(",")):
        run(rank, world, count, groups, options)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", default="2")
    parser.add_argument("--bytes", default="1M,16M")
    parser.add_argument("--rounds", type=int, default=5)
    launch.add_options(parser)
    arguments = parser.parse_args()
    launch.start(worker, arguments.world, arguments)
