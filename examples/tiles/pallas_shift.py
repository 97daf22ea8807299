# SPDX-License-Identifier: Apache-2.0
"""A shift in Pallas: every device sends its array to its right neighbour, straight into the result of that kernel.

The neighbour must have entered the same call: before that the memory may belong to its last call. So devices meet, twice, because
the semaphore of the barrier is the same in all calls.
"""
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from pallas_common import at_distance, call, devices, enter


def shift(x_ref, o_ref, send_sem, recv_sem):
    enter([at_distance(-1), at_distance(1)])
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send_sem, recv_sem, device_id=(at_distance(1),), device_id_type=pl.DeviceIdType.MESH)
    copy.start()
    copy.wait()


x = jax.random.normal(jax.random.key(0), (8 * devices, 128))
y = call(shift, x, (8, 128), [pltpu.SemaphoreType.DMA] * 2, pl.ANY)
