# SPDX-License-Identifier: Apache-2.0
"""A kernel of your own behind torch's all_reduce: examples/put.peal, told in docs/author-guide.md.

    python3 examples/torch/own_kernel.py 2
"""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

KERNEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "put.peal")


def run(rank, world, folder):
    import peal_torch
    options = peal_torch.Options(algorithms={"allreduce": KERNEL})
    dist.init_process_group("peal", init_method=f"file://{folder}/store", rank=rank, world_size=world, pg_options=options)
    for n in (0, 1, 1000):
        x = torch.full((n,), float(rank + 1))
        dist.all_reduce(x)
        assert torch.equal(x, torch.full((n,), world * (world + 1) / 2)), x
    if rank == 0:
        print(f"all_reduce by put.peal on {world} ranks: right")
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="peal-own-") as store:
        ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 2
        mp.spawn(run, args=(ranks, store), nprocs=ranks)
