# SPDX-License-Identifier: Apache-2.0
"""Wrong: every rank receives before it sends."""


def kernel(t_ptr, tl):
    tile = tl.recv("W")
    tl.send("E", tile)
    tl.store(t_ptr, tile)
