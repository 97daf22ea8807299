# SPDX-License-Identifier: Apache-2.0
"""How much ranks and other programs on the machine slow each other down, with "peal" and with "gloo".

    /usr/bin/python3 examples/torch/neighbour.py [--world 2,4] [--neighbours 1,2] [--seconds 2]

A neighbour is a process that computes all the time; its speed beside idle ranks is 1. Then it is measured beside ranks that

    wait   all but rank 0 are in one all_reduce, which rank 0 joins at the end
    call   all make all_reduce of 4 KiB again and again, with some Python in between

The last figures are the times of such a call without and with the neighbours. A program that shares its core with another one that
always computes keeps half of its speed; if it keeps less, ranks spin too much.
"""
import argparse
import multiprocessing
import time

import launch
import torch
import torch.distributed as dist

import peal_torch  # noqa: F401


def count(until):
    steps, until = 0, until.value
    while time.perf_counter() < until:
        steps += 1
    return steps


def neighbour(begin, until, go_on, steps, index):
    """Counts in every period that begins with `begin`, until `go_on` is 0."""
    begin.wait()
    while True:
        begin.wait()
        if not go_on.value:
            return
        steps[index] = count(until)
        begin.wait()


class Neighbours:
    def __init__(self, number):
        self.begin = multiprocessing.Barrier(number + 1)
        self.until, self.go_on = multiprocessing.Value("d", 0), multiprocessing.Value("b", 1)
        self.steps = multiprocessing.Array("d", number)
        shared = (self.begin, self.until, self.go_on, self.steps)
        self.processes = [multiprocessing.Process(target=neighbour, args=(*shared, i), daemon=True) for i in range(number)]
        for process in self.processes:
            process.start()
        self.begin.wait()

    def start(self, seconds):
        self.until.value = time.perf_counter() + seconds
        self.begin.wait()

    def rate(self, seconds):
        """Steps per second in the period that has just ended."""
        self.begin.wait()
        return sum(self.steps) / seconds

    def end(self):
        self.go_on.value = 0
        self.begin.wait()
        for process in self.processes:
            process.join()


def wait_for(x, group, rank, seconds):
    if rank == 0:
        time.sleep(seconds)
    dist.all_reduce(x, group=group)


def calls_for(x, group, seconds):
    """Seconds per call. Rank 0 decides how many calls all ranks make."""
    start, calls, more = time.perf_counter(), 0, torch.ones(1)
    while more.item():
        for _ in range(20):
            dist.all_reduce(x, group=group)
            sum(range(300))
        calls += 20
        more.fill_(time.perf_counter() - start < seconds)
        dist.broadcast(more, 0, group=group)
    return (time.perf_counter() - start) / calls


def measure(rank, group, neighbours, seconds):
    """The neighbours' rates beside idle, waiting and calling ranks; seconds per call without and with them."""
    x, rates = torch.ones(1024), []
    quiet = calls_for(x, group, seconds / 2)
    for work in (lambda: time.sleep(seconds), lambda: wait_for(x, group, rank, seconds), lambda: calls_for(x, group, seconds)):
        dist.barrier()
        if rank == 0:
            neighbours.start(seconds)
        took = work()
        if rank == 0:
            rates.append(neighbours.rate(seconds))
    return rates, quiet, took


def worker(rank, world, rendezvous, options):
    torch.set_num_threads(1)
    dist.init_process_group("peal", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    groups = {name: dist.new_group(backend=name) for name in ("peal", "gloo")}
    for number in map(int, options.neighbours.split(",")):
        neighbours = Neighbours(number) if rank == 0 else None
        for name, group in groups.items():
            rates, quiet, took = measure(rank, group, neighbours, options.seconds)
            if rank == 0:
                print(f"{name:5} {world} ranks, {number} neighbours keep {rates[1] / rates[0]:.2f} beside ranks that wait, "
                      f"{rates[2] / rates[0]:.2f} beside ranks that call; a call {quiet * 1e6:.0f} us, with them {took * 1e6:.0f} us",
                      flush=True)
                launch.keep(options, "neighbour", backend=name, world=world, neighbours=number, beside_waits=rates[1] / rates[0],
                            beside_calls=rates[2] / rates[0], alone_us=quiet * 1e6, with_them_us=took * 1e6)
        if rank == 0:
            neighbours.end()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", default="2,4")
    parser.add_argument("--neighbours", default="1,2")
    parser.add_argument("--seconds", type=float, default=2)
    launch.add_options(parser)
    arguments = parser.parse_args()
    launch.start(worker, arguments.world, arguments)
