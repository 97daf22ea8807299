# SPDX-License-Identifier: Apache-2.0
"""From a group to Peal's part of it: torch 2 wraps backends, one for each kind of device, in a process group."""
import torch
from torch.distributed import distributed_c10d as _c10d


def backend_of(group=None):
    group = group or _c10d._get_default_group()
    wraps = getattr(group, "_get_backend", None)
    return wraps(torch.device("cpu")) if wraps else group
