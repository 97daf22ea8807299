# SPDX-License-Identifier: Apache-2.0
"""A tensor-parallel layer; PEAL_PLATFORM=sim:mesh4x4 runs the same on a modelled machine."""
import numpy

import peal

with peal.Host(4, record=True) as host:
    x, a = numpy.ones((8, 16), "f4"), numpy.ones((16, 64), "f4")
    tx, ta = host.tensor((8, 16)).write(x), host.tensor((16, 64), shard=1).write(a)
    tb, h = host.tensor((64, 16), shard=0).write(numpy.ones((64, 16), "f4")), host.tensor((8, 64), shard=1)
    part, y = host.tensor((8, 16)), host.tensor((8, 16))
    host.submit("matmul", tx, ta, h, 0)          # columns
    host.submit("matmul", h, tb, part, 0)        # rows
    host.submit("allreduce_ring", part, y, "sum")
    print(host.platform, y.read()[0, 0], "=", 16 * 64, f"{host.stats()['critical_ps'] / 1e6:.3f} us")
