# SPDX-License-Identifier: Apache-2.0
"""What the Pallas examples have in common: the mesh, neighbours, how devices enter a kernel together, how a kernel is called."""
import functools

import jax
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

P = jax.sharding.PartitionSpec
devices = jax.device_count()
mesh = jax.make_mesh((devices,), ("x",))


def at_distance(distance):
    """The device so far to the right along the ring."""
    return lax.rem(lax.axis_index("x") + distance + devices, devices)


def enter(peers):
    """Meets the peers, all of which meet this device. Twice: the barrier's semaphore is that of every call, and what it holds may come
    from a peer that is in the next call already; the second one is taken by all peers of this call."""
    def meet(sem):
        for peer in peers:
            pl.semaphore_signal(sem, device_id=(peer,), device_id_type=pl.DeviceIdType.MESH)
        pl.semaphore_wait(sem, len(peers))
    meet(pltpu.get_barrier_semaphore())
    pl.run_scoped(meet, pltpu.SemaphoreType.REGULAR)


def call(kernel, x, out_shape, scratch, space=pltpu.VMEM):
    """The kernel on every device, with its part of x: the parts of the result are put together along the first axis."""
    local = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(out_shape, x.dtype), in_specs=[pl.BlockSpec(memory_space=space)],
                           out_specs=pl.BlockSpec(memory_space=space), scratch_shapes=scratch,
                           compiler_params=pltpu.CompilerParams(collective_id=0))
    return jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))(x)


def expected(collective, x):
    """What XLA makes of x."""
    return jax.jit(jax.shard_map(functools.partial(collective, axis_name="x"), mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))(x)
