# SPDX-License-Identifier: Apache-2.0
"""Host code of a user: it knows torch, and nothing of Peal."""
import numpy


def run(torch):
    torch.distributed.init_process_group(backend="ahbm")
    size = torch.distributed.get_world_size()
    values = numpy.arange(size * 64, dtype="f2").reshape(size, 64) % 32
    x = torch.zeros((size, 64), dtype=torch.float16, name="x")
    x.copy_(torch.from_numpy(values))
    torch.distributed.all_reduce(x, op="sum")
    assert (x.numpy() == values.sum(0)).all()
