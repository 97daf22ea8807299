# SPDX-License-Identifier: Apache-2.0
"""Allgather in Pallas, along a ring: every device passes on what it has received.

Each step has a receive semaphore of its own: a fast neighbour may have sent the next part before this one has arrived, and a semaphore says
how much came, not what.
"""
import jax
import numpy as np
from jax import lax
from jax.experimental.pallas import tpu as pltpu
from jax.experimental import pallas as pl
from pallas_common import at_distance, call, devices, enter, expected


def all_gather(x_ref, o_ref, copy_sem, send_sem, recv_sems):
    me, left, right = at_distance(0), at_distance(-1), at_distance(1)
    enter([left, right])
    own = pltpu.make_async_copy(x_ref, o_ref.at[me], copy_sem)
    own.start()
    own.wait()
    for step in range(devices - 1):
        part = at_distance(-step)
        copy = pltpu.make_async_remote_copy(o_ref.at[part], o_ref.at[part], send_sem, recv_sems.at[step], device_id=(right,),
                                            device_id_type=pl.DeviceIdType.MESH)
        copy.start()
        copy.wait()


DMA = pltpu.SemaphoreType.DMA
x = jax.random.normal(jax.random.key(0), (8 * devices, 128))
y = call(all_gather, x, (devices, 8, 128), [DMA, DMA, DMA((max(devices - 1, 1),))], pl.ANY)
np.testing.assert_allclose(y, expected(lax.all_gather, x))
