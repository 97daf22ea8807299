# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of a bench: worker(rank, world_size, path of a file to meet by, options).

torch's MPI backend has to be started by mpirun, which then runs this program again for each rank.
"""
import json
import os
import subprocess
import sys
import tempfile

import torch
import torch.multiprocessing as mp

STORE = "PEAL_BENCH_STORE"


def add_options(parser):
    """The options of all benches."""
    parser.add_argument("--json", help="append the rows to this file, one JSON object per line")


def keep(options, bench, **row):
    """Appends a row to the file of --json, if there is one. For rank 0 only."""
    if options.json:
        with open(options.json, "a") as file:
            file.write(json.dumps({"bench": bench, "torch": torch.__version__, **row}) + "\n")


def start(worker, world_sizes, options, with_mpi=False):
    """Runs the worker with each number of ranks in turn."""
    if STORE in os.environ:  # mpirun has started this rank
        worker(int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"]), os.environ[STORE], options)
        return
    for ranks in map(int, world_sizes.split(",")):
        with tempfile.TemporaryDirectory() as scratch:
            store = os.path.join(scratch, "store")
            if not with_mpi:
                mp.spawn(worker, nprocs=ranks, args=(ranks, store, options))
                continue
            command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
            arguments = [sys.executable, "-W", "ignore", *sys.argv]
            subprocess.run(command + arguments, env={**os.environ, STORE: store}, check=True)
