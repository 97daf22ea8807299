# SPDX-License-Identifier: Apache-2.0
"""Times torch.distributed calls with "peal" and "gloo", alternating in one run.

    /usr/bin/python3 examples/torch/bench.py [--world 2,4,8] [--calls all_reduce,...] [--bytes 4,64K,1M,64M]
                                             [--rounds 7] [--seconds 0.05] [--symmetric] [--json FILE]

Prints the median over rounds of the slowest rank's time per call, Python included, and the ratios to Peal's. A round makes 2 to 500
calls, as many as fit into --seconds according to a first round, which is not counted. The size is that of the larger buffer. Lists
of tensors are separate tensors, as in programs.

"free" is a backend that does nothing: the time of torch itself. "copies" is the limit set by memory: all ranks at once copy and add,
in their own memory, what no algorithm can avoid, and do not communicate. --backends peal,gloo,mpi adds torch's MPI backend, if torch
is built with it and mpirun is installed. --symmetric adds Peal with tensors in symmetric memory. --between N runs about N
microseconds of Python between calls, as programs do, and subtracts them.
"""
import argparse
import statistics
import time

import launch
import torch
import torch.distributed as dist

import peal_torch

CALLS = "all_reduce,all_gather,reduce_scatter,broadcast,all_to_all"
BYTES = "4,64,1K,16K,64K,256K,1M,4M,16M,64M"


def size(text):
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1].upper(), 1)
    return int(text[:-1] if unit > 1 else text) * unit


class Buffers:
    """Float32 tensors of one size, the same for all backends."""

    def __init__(self, n, world):
        part = max(1, n // world)
        self.vector, self.whole, self.other = torch.ones(n), torch.ones(part * world), torch.ones(part * world)
        self.own, self.parts = torch.ones(part), [torch.ones(part) for _ in range(world)]
        self.peer = torch.ones(n)  # in place of the other ranks' memory

    def copies(self, name, rank):
        """What every rank has to read and write, whatever the algorithm."""
        part = self.own.numel()

        def add():
            for _ in range(len(self.parts) - 1):
                self.own.add_(self.peer[:part])

        def all_reduce():  # each rank adds up one part and copies the other sums
            add()
            self.vector[part:].copy_(self.peer[part:])

        def all_gather():
            for to in self.parts:
                to.copy_(self.peer[:part])

        return {
            "all_reduce": all_reduce,
            "all_gather": all_gather,
            "reduce_scatter": add,
            "broadcast": lambda: rank == 0 or self.vector.copy_(self.peer),
            "all_to_all": lambda: self.whole.copy_(self.other),
        }[name]

    def call(self, name, group):
        return {
            "all_reduce": lambda: dist.all_reduce(self.vector, group=group),
            "all_gather": lambda: dist.all_gather(self.parts, self.own, group=group),
            "reduce_scatter": lambda: dist.reduce_scatter(self.own, self.parts, group=group),
            "broadcast": lambda: dist.broadcast(self.vector, 0, group=group),
            "all_to_all": lambda: dist.all_to_all_single(self.whole, self.other, group=group),
        }[name]

    def symmetric(self, group):
        for tensor in (self.vector, self.whole, self.other, self.own):
            peal_torch.symmetric(tensor, group)
        return self


def some_python(steps):
    total = 0
    for i in range(steps):
        total += i
    return total


def steps_for(microseconds):
    """The number of steps of some_python that take this long."""
    if microseconds == 0:
        return 0
    start = time.perf_counter()
    some_python(100000)
    return int(microseconds * 1e-6 / (time.perf_counter() - start) * 100000)


def timed(function, repetitions, steps):
    """Seconds per call of the slowest rank; nan if the backend does not have the call. Ranks synchronise in the default group."""
    seconds = float("nan")
    try:
        function()  # not measured: caches are in the state that the previous backend left
        dist.barrier()
        start = time.perf_counter()
        for _ in range(repetitions):
            function()
            some_python(steps)
        seconds = (time.perf_counter() - start) / repetitions
    except RuntimeError:  # some versions of Gloo have no reduce_scatter
        pass
    slowest = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.item()


def run(rank, world, groups, options):
    """Measures all calls, with the same tensors for all backends."""
    steps = steps_for(options.between)
    for name in options.calls.split(","):
        for count in map(size, options.bytes.split(",")):
            n = max(1, count // 4)
            buffers = {backend: Buffers(n, world) for backend in ("peal", "symmetric") if backend in groups}
            if "symmetric" in groups:
                buffers["symmetric"].symmetric(groups["symmetric"])
            times = {backend: [] for backend in groups}
            repetitions = dict.fromkeys(groups, 2)
            for round_ in range(options.rounds + 1):  # the first warms up
                for backend, group in groups.items():
                    own = buffers.get(backend, buffers["peal"])
                    call = own.copies(name, rank) if backend == "copies" else own.call(name, group)
                    seconds = max(timed(call, repetitions[backend], steps) - options.between * 1e-6, 1e-9)
                    if round_:
                        times[backend].append(seconds * 1e6)
                    elif seconds > 0:  # not nan; the same on all ranks
                        repetitions[backend] = max(2, min(500, int(options.seconds / seconds)))
            if rank == 0:
                row = {"call": name, "bytes": count, "world": world, "between": options.between,
                       **{backend: statistics.median(t) for backend, t in times.items()}}
                launch.keep(options, "calls", **row)
                print(f"{name:15} {world:2} ranks {count:10} B  " +
                      "  ".join(f"{backend} {row[backend]:9.1f} us" for backend in groups) +
                      "".join(f"  {backend} / peal {row[backend] / row['peal']:6.1f}" for backend in ("gloo", "mpi", "copies") if backend in groups),
                      flush=True)


def worker(rank, world_size, rendezvous, options):
    torch.set_num_threads(1)
    peal_torch.register_free()
    dist.init_process_group("peal", init_method=f"file://{rendezvous}", rank=rank, world_size=world_size)
    names = {"peal": "peal", "gloo": "gloo", "mpi": "mpi", "free": "peal_free"}
    groups = {name: dist.new_group(backend=names[name]) if name != "copies" else None for name in options.backends.split(",")}
    if options.symmetric:
        groups["symmetric"] = dist.new_group(backend="peal")
    run(rank, world_size, groups, options)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", default="2")
    parser.add_argument("--calls", default=CALLS)
    parser.add_argument("--bytes", default=BYTES)
    parser.add_argument("--backends", default="peal,gloo,free,copies", help="peal among them")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.05, help="of a round's calls, about")
    parser.add_argument("--symmetric", action="store_true")
    parser.add_argument("--between", type=float, default=0, help="microseconds of Python between calls")
    launch.add_options(parser)
    arguments = parser.parse_args()
    launch.start(worker, arguments.world, arguments, "mpi" in arguments.backends.split(","))
