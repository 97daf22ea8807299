# SPDX-License-Identifier: Apache-2.0
"""Up a binary tree, and down again."""


def kernel(t_ptr, n_elem, world_size, tl):
    rank = tl.program_id(0)
    total = tl.load(t_ptr, shape=(n_elem,), dtype="f16")
    below = [name for place, name in enumerate(("child_left", "child_right"), 2 * rank + 1) if place < tl.num_programs(0)]
    for child in below:
        total = total + tl.recv(child, shape=(n_elem,), dtype="f16")
    if rank:
        tl.send("parent", total)
        total = tl.recv("parent", shape=(n_elem,), dtype="f16")
    for child in below:
        tl.send(child, total)
    tl.copy_to_dst(t_ptr, total)
