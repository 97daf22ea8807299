# SPDX-License-Identifier: Apache-2.0
"""Allreduce in Pallas, in one shot: every device sends its array to all others, and adds up what arrives. For small arrays.

All copies are under way at the same time, and each has a buffer and a receive semaphore of its own: the sum takes a part as soon as it is
there, whichever came first.
"""
import jax
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from pallas_common import at_distance, call, devices, enter, expected


def all_reduce(x_ref, o_ref, parts, send_sem, recv_sems):
    enter([at_distance(distance) for distance in range(1, devices)])
    copies = [pltpu.make_async_remote_copy(x_ref, parts.at[distance - 1], send_sem, recv_sems.at[distance - 1], device_id=(at_distance(distance),),
                                           device_id_type=pl.DeviceIdType.MESH) for distance in range(1, devices)]
    for copy in copies:
        copy.start()
    o_ref[...] = x_ref[...]
    for i, copy in enumerate(copies):
        copy.wait_recv()
        o_ref[...] += parts[i]
    for copy in copies:
        copy.wait_send()


DMA = pltpu.SemaphoreType.DMA
x = jax.random.normal(jax.random.key(0), (8 * devices, 128))
y = call(all_reduce, x, (8, 128), [pltpu.VMEM((max(devices - 1, 1), 8, 128), x.dtype), DMA, DMA((max(devices - 1, 1),))])
np.testing.assert_allclose(y, expected(lax.psum, x), rtol=1e-5)
