# SPDX-License-Identifier: Apache-2.0
"""Random broadcasts with a slot per launch of a period, in which a rank may be several launches ahead of others.

Flat or along a chain. Before a slot is written again, its writer waits `at launch - j` for all its readers, some of them, or none; a
reader notifies all ranks, the root, its left neighbour, or all but the root. Cells are indexed by their writer, or written by the
neighbour. Some statements are exchanged or left out. One in six is right for every root.
"""


def text(rng):
    period = rng.choice([2, 2, 2, 3])
    back = rng.choice([1, 2, 2, 3, period])
    by_index, chain = rng.random() < 0.7, rng.random() < 0.3

    def slot(peer=""):
        return f"slot{peer}[(launch mod {period}) * most +: n]"

    def guard():
        at = f"at launch - {back}"
        if not by_index:
            return rng.choice([f"wait done >= 1 {at}", ""])
        everyone = f"for p in peers {{ wait done[p] >= 1 {at} }}"
        return rng.choice([everyone] * 6 + [f"wait done[right] >= 1 {at}", f"for p in peers {{ if p != left {{ wait done[p] >= 1 {at} }} }}",
                                            f"for p in peers {{ wait done[p] >= 2 {at} }}", ""])

    def acknowledge():
        if not by_index:
            return rng.choice(["notify done@left += 1"] * 2 + ["if rank != root { notify done@left += 1 }"])
        return rng.choice(["for p in peers { notify done[rank]@p += 1 }"] * 4 +
                          ["if rank != root { notify done[rank]@root += 1 }", "notify done[rank]@left += 1",
                           "for p in peers { if p != root { notify done[rank]@p += 1 } }"])

    def disturb(lines):
        lines = [line for line in lines if line]
        if rng.random() < 0.25:
            i = rng.randrange(len(lines) - 1)
            lines[i], lines[i + 1] = lines[i + 1], lines[i]
        if rng.random() < 0.12:
            lines.pop(rng.randrange(len(lines)))
        return lines

    if chain:
        first = [guard(), f"{slot()} = x", "notify ready[rank]@right += 1", acknowledge(), "y = x"]
        other = ["wait ready[left] >= 1", guard(), f"{slot()} = {slot('@left')}", "if right != root { notify ready[rank]@right += 1 }",
                 acknowledge(), f"y = {slot()}"]
    else:
        first = [guard(), f"{slot()} = x", "for p in peers { notify ready[rank]@p += 1 }", acknowledge(), "y = x"]
        other = ["wait ready[root] >= 1", f"y = {slot('@root')}", acknowledge()]
    lines = [f"    window slot: T[{period} * most]", f"    signal ready[nranks], {'done[nranks]' if by_index else 'done'}",
             "    let right = (rank + 1) % nranks", "    let left = (rank - 1) % nranks", "    if rank == root {"]
    lines += ["        " + line for line in disturb(first)] + ["    } else {"] + ["        " + line for line in disturb(other)]
    head = "kernel k(in x: T[n], out y: T[n], root: int, most: int = n) implements broadcast {"
    return "\n".join([head] + lines + ["    }", "}"]) + "\n"
