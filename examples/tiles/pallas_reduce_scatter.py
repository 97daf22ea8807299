# SPDX-License-Identifier: Apache-2.0
"""Reduce-scatter in Pallas, along a ring, with two buffers in turn: partial sums travel to the right, and every device adds its own part.

What arrives goes into the buffer that is not being sent. That one is free when the send of the step before is done, and a credit tells the
neighbour so: without it a fast neighbour overwrites what has not left yet.
"""
import jax
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from pallas_common import at_distance, call, devices, enter, expected


def reduce_scatter(x_ref, o_ref, sums, send_sem, recv_sem, credit):
    left, right = at_distance(-1), at_distance(1)
    enter([left, right])
    sums[0] = x_ref[at_distance(-1)]
    for step in range(devices - 1):
        mine, next_one = step % 2, (step + 1) % 2
        if step > 0:
            pl.semaphore_wait(credit)
        copy = pltpu.make_async_remote_copy(sums.at[mine], sums.at[next_one], send_sem, recv_sem, device_id=(right,),
                                            device_id_type=pl.DeviceIdType.MESH)
        copy.start()
        copy.wait()
        if step < devices - 2:
            pl.semaphore_signal(credit, device_id=(left,), device_id_type=pl.DeviceIdType.MESH)
        sums[next_one] += x_ref[at_distance(-step - 2)]
    o_ref[...] = sums[(devices - 1) % 2]


DMA = pltpu.SemaphoreType.DMA
x = jax.random.normal(jax.random.key(0), (devices * devices, 8, 128))
y = call(reduce_scatter, x, (8, 128), [pltpu.VMEM((2, 8, 128), x.dtype), DMA, DMA, pltpu.SemaphoreType.REGULAR])
np.testing.assert_allclose(y, expected(lax.psum_scatter, x), rtol=1e-5)
