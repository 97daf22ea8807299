# SPDX-License-Identifier: Apache-2.0
"""What Pallas programs name: memory spaces, kinds of semaphores, block and grid specifications, slices."""
from __future__ import annotations

import dataclasses
import enum
import types
from typing import Any, Callable, Optional, Sequence, Tuple

import numpy

from . import jaxarray
from .jaxarray import dtype_of


class MemorySpace(enum.Enum):
    ANY, DEFAULT, VMEM, VMEM_SHARED, SMEM, CMEM, HBM, HOST, SEMAPHORE = (
        "any", "default", "vmem", "vmem_shared", "smem", "cmem", "hbm", "host", "semaphore_mem")

    def __call__(self, shape: Any, dtype: Any = None) -> MemoryRef:
        return MemoryRef(tuple(jaxarray.as_int(n) for n in shape), dtype_of(dtype), self)

    def like(self, other: Any) -> MemoryRef:
        return self(other.shape, other.dtype)


DEVICE_MEMORY = (MemorySpace.ANY, MemorySpace.HBM, MemorySpace.HOST)


class SemaphoreType(enum.Enum):
    REGULAR, DMA, BARRIER = "regular", "dma", "barrier"

    def __call__(self, shape: Any = ()) -> MemoryRef:
        return MemoryRef((shape,) if isinstance(shape, (int, numpy.integer)) else tuple(shape), self, MemorySpace.SEMAPHORE)


class DeviceIdType(enum.Enum):
    MESH, LOGICAL = "mesh", "logical"


class CoreType(enum.Enum):
    TC, SC_SCALAR_SUBCORE, SC_VECTOR_SUBCORE = 0, 1, 2


class GridDimensionSemantics(enum.Enum):
    PARALLEL, CORE_PARALLEL, SUBCORE_PARALLEL, ARBITRARY = "parallel", "core_parallel", "subcore_parallel", "arbitrary"


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """Memory to be allocated."""
    shape: Tuple[int, ...]
    dtype: Any
    memory_space: Any


@dataclasses.dataclass(eq=False)
class BlockSpec:
    block_shape: Optional[Sequence[Any]] = None
    index_map: Optional[Callable[..., Any]] = None
    memory_space: Any = None
    pipeline_mode: Any = None

    def __post_init__(self) -> None:
        if callable(self.block_shape):  # an older order of the parameters
            self.block_shape, self.index_map = self.index_map, self.block_shape  # type: ignore[assignment]

    def replace(self, **changes: Any) -> BlockSpec:
        return dataclasses.replace(self, **changes)


no_block_spec = BlockSpec()


@dataclasses.dataclass
class GridSpec:
    grid: Any = ()
    in_specs: Any = no_block_spec
    out_specs: Any = no_block_spec
    scratch_shapes: Any = ()
    num_scalar_prefetch = 0


class PrefetchScalarGridSpec(GridSpec):
    def __init__(self, num_scalar_prefetch: int, grid: Any = (), in_specs: Any = no_block_spec, out_specs: Any = no_block_spec,
                 scratch_shapes: Any = ()) -> None:
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


class Parameters(types.SimpleNamespace):
    """CompilerParams and the like: what is not given is None."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def replace(self, **changes: Any) -> Parameters:
        return Parameters(**{**self.__dict__, **changes})


@dataclasses.dataclass(frozen=True)
class Element:
    block_size: int
    padding: Tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class Blocked:
    block_size: int


class Squeezed:
    pass


@dataclasses.dataclass
class TensorCoreMesh:
    """The cores of one device."""
    axis_name: Any = "core"
    num_cores: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.axis_name, (tuple, list)):
            (self.axis_name,) = self.axis_name
    shape = property(lambda self: {self.axis_name: self.num_cores})


class Slice:
    """pl.ds"""

    def __init__(self, start: Any, size: Any = None, stride: Any = 1) -> None:
        if size is None:
            start, size = 0, start
        self.start, self.size, self.stride = start, size, stride

    def peal_slice(self) -> Tuple[int, int, int]:
        return jaxarray.as_int(self.start), jaxarray.as_int(self.size), jaxarray.as_int(self.stride or 1)

    @classmethod
    def from_slice(cls, given: slice, size: int) -> Slice:
        start, stop, step = given.indices(size)
        return cls(start, len(range(start, stop, step)), step)
