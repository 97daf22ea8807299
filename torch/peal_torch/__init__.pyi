# SPDX-License-Identifier: Apache-2.0
import datetime
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar

import torch
from torch.distributed import ProcessGroup

from ._C import Options as _Options

__all__ = ["BucketHook", "Options", "register_free", "set_async", "simulate", "simulated_time", "symmetric"]

_Result = TypeVar("_Result")

class BucketHook:
    group: ProcessGroup
    seen: Dict[Any, int]
    def __init__(self, group: Optional[ProcessGroup] = ...) -> None: ...
    @staticmethod
    def reduce(hook: "BucketHook", bucket: Any) -> "torch.futures.Future[torch.Tensor]": ...

def Options(algorithms: Optional[Mapping[str, str]] = ...) -> _Options: ...
def register_free() -> None: ...
def set_async(on: bool) -> None: ...
def simulate(world_size: int, function: Callable[..., _Result], machine: Optional[str] = ..., args: Sequence[Any] = ...,
             timeout: datetime.timedelta = ...) -> List[_Result]: ...
def simulated_time(group: Optional[ProcessGroup] = ...) -> float: ...
def symmetric(tensor: torch.Tensor, group: Optional[ProcessGroup] = ...) -> torch.Tensor: ...
