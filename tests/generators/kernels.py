#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random kernels as text, for all tests.

    kernels.py FAMILY SEED COUNT FOLDER    writes COUNT texts

Kernels of a family have the same elements; each test takes the families that can break its rules. `text` makes one kernel. Every
text that is written is a function of SEED and its number.
"""
import os
import random
import sys

import crowd
import mesh
import network
import paths
import ring
import slots
import soup
import turns
import ways

FAMILIES = {
    "soup": lambda rng: soup.Kernel(rng).text(),
    "turns": lambda rng: turns.Turns(rng).text(),
    "paths": lambda rng: paths.Paths(rng).text(),
    "slots": slots.text,
    "mesh": lambda rng: mesh.Mesh(rng).text(),
    "ring": lambda rng: ring.Ring(rng).text(),
    "network": network.text_of,
    "broadcast": ways.broadcast,
    "allreduce": ways.allreduce,
    "lanes": ways.lanes,
    "crowd": crowd.text,
    "uneven": ways.uneven,
}


def text(family, rng):
    return FAMILIES[family](rng)


def main():
    family, seed, count, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    for i in range(count):
        with open(os.path.join(folder, f"{family}{i:06}.peal"), "w", encoding="utf-8") as file:
            file.write(text(family, random.Random(seed * 1000003 + i)))


if __name__ == "__main__":
    main()
