# SPDX-License-Identifier: Apache-2.0
"""Many lanes that do the same to pieces of their own, on cells of their own; sometimes one of them does not."""


def body(kind, rounds, cell, piece, leaves_out, count):
    """What a lane does: puts into the right neighbour's slot, and hears that it was read."""
    lines = []
    for number in range(rounds):
        least = 1 if kind == "raw " else number + 1
        take = ["notify {0} += -1"] if kind == "raw " else []
        lines += [f"slot@right[{piece} of {count}] = x[{piece} of {count}]", f"notify full[{cell}]@right += 1"]
        lines += [f"wait full[{cell}] >= {least}"] + [t.format(f"full[{cell}]") for t in take]
        lines += [f"y[{piece} of {count}] = slot[{piece} of {count}]"]
        if not leaves_out:
            lines += [f"notify empty[{cell}]@left += 1", f"wait empty[{cell}] >= {least}"]
            lines += [t.format(f"empty[{cell}]") for t in take]
    return "\n            ".join(lines)


def text(r):
    count, rounds, kind = r.choice([8, 9]), r.choice([1, 1, 2]), r.choice(["", "raw ", "shared "])
    odd = r.randrange(count)
    cell, piece = r.choice([("i", "i")] * 3 + [(f"(i + 1) % {count}", "i"), ("i", f"(i + 1) % {count}")])
    same = body(kind, rounds, "i", "i", r.random() < 0.15, count)
    other = body(kind, r.choice([rounds, rounds, 3 - rounds]), cell, piece, r.random() < 0.15, count)
    which = r.choice([f"i == {odd}", f"i == {odd} and rank == 0", f"i % 3 == {odd % 3}"])
    return f"""kernel k(in x: T[n], out y: T[n]) {{
    window slot: T[n]
    signal {kind}full[{count}], empty[{count}]
    let right = (rank + 1) % nranks
    let left = (rank + nranks - 1) % nranks
    lane i in 0 .. {count} {{
        if {which} {{
            {other}
        }} else {{
            {same}
        }}
    }}
}}
"""
