# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the backend: the path of the package, data with exact sums, starting ranks."""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.environ.get("PEAL_TORCH", os.path.dirname(HERE)))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402

import peal_torch  # noqa: E402,F401

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.int8, torch.uint8, torch.int32, torch.int64)


def vector(rank, n, dtype):
    """Small whole numbers, whose sums are exact in every type."""
    return ((torch.arange(n) * 7 + rank * 3) % 5 + 1).to(dtype)


def all_vectors(world, n, dtype):
    return torch.stack([vector(r, n, dtype).double() for r in range(world)])


def refused(call, *words):
    """The message of the error that the call must raise, which contains these words."""
    try:
        call()
    except (RuntimeError, ValueError, TypeError) as error:
        text = str(error)
        assert all(word in text for word in words), text
        return text
    raise AssertionError("not refused: " + " ".join(words))


def joined(rank, world, folder, name, **more):
    """Makes the default group; the ranks meet in a file in `folder`."""
    dist.init_process_group("peal", init_method=f"file://{folder}/{name}", rank=rank, world_size=world, **more)


def world_size():
    """The command line's, of a test that is run by itself."""
    return int(sys.argv[1]) if len(sys.argv) > 1 else 2


def ranks(function, world, method="fork", join=True):
    """Runs function(rank, world, folder) in `world` processes and returns the texts that they wrote to NAME.txt in the folder, by name.
    They are forked, because spawned ranks would each import torch again."""
    with tempfile.TemporaryDirectory(prefix="peal-torch-") as folder:
        context = mp.start_processes(function, args=(world, folder), nprocs=world, join=join, start_method=method)
        if not join:
            for process in context.processes:
                process.join(1500)
                assert process.exitcode is not None, "a rank hangs"
        texts = {}
        for name in os.listdir(folder):
            if name.endswith(".txt"):
                with open(os.path.join(folder, name)) as file:
                    texts[name[:-4]] = file.read()
        return texts


def say(rank, text):
    if rank == 0:
        print("ok " + text, flush=True)
