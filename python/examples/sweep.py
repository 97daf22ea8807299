# SPDX-License-Identifier: Apache-2.0
"""A sweep, cell by cell: which allreduce is fastest on a mesh of 16 PEs, by size. Writes sweep.svg."""
# %% What is compared
import math
import sys

import numpy

import peal

MACHINE, RANKS = "mesh4x4", 16
KERNELS = ["allreduce_mesh", "allreduce_ring", "allreduce_chunked", "allreduce_tree"]
SIZES = [4 ** k * 16 for k in range(6)]  # elements of f32

# %% Every kernel at every size
times = {}
for kernel in KERNELS:
    for count in SIZES:
        x, y = numpy.ones((RANKS, count), "f4"), numpy.zeros((RANKS, count), "f4")
        times[kernel, count] = peal.simulate(kernel, x, y, "sum", machine=MACHINE, ranks=RANKS).time_ps / 1e6
        assert (y == RANKS).all()

# %% A table
print("elements", *[f"{kernel:>18}" for kernel in KERNELS])
for count in SIZES:
    print(f"{count:8}", *[f"{times[kernel, count]:15.3f} us" for kernel in KERNELS])

# %% A picture, both axes logarithmic
low, high = math.log(min(times.values())), math.log(max(times.values()))


def place(count, time):
    x = 60 + 480 * math.log(count / SIZES[0]) / math.log(SIZES[-1] / SIZES[0])
    return x, 320 - 280 * (math.log(time) - low) / (high - low or 1)


lines = []
for number, kernel in enumerate(KERNELS):
    points = " ".join("%.1f,%.1f" % place(count, times[kernel, count]) for count in SIZES)
    colour = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd"][number % 4]
    lines.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>')
    lines.append(f'<text x="560" y="{40 + 18 * number}" fill="{colour}">{kernel}</text>')
path = sys.argv[1] if len(sys.argv) > 1 else "sweep.svg"
with open(path, "w", encoding="utf-8") as file:
    file.write('<svg xmlns="http://www.w3.org/2000/svg" width="720" height="360" font-family="sans-serif" font-size="12">'
               f'<text x="60" y="350">elements, {SIZES[0]} to {SIZES[-1]}; time, {math.exp(low):.2f} to {math.exp(high):.2f} us</text>'
               + "".join(lines) + "</svg>\n")
print("wrote", path)
