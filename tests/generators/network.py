# SPDX-License-Identifier: Apache-2.0
"""Random kernels of three ranks and a few ops each, in which the order of a network matters."""

RANKS, CELLS, ELEMENTS = 3, 4, 4


def chain_of(rnd, ranks):
    """Rank a puts to c and notifies b, which notifies c; perhaps with a flush, or a notify to c itself. It has cells of its own."""
    a, b, c = ranks
    flush = f"flush to {c} " if rnd.random() < 0.3 else ""
    word = f"notify u[2]@{c} += 1 " if rnd.random() < 0.5 else ""
    heard = "wait u[2] >= 1 " if word and rnd.random() < 0.5 else ""
    return ["    signal u[3]", "    if nranks > 100 { notify u[0] += 1 wait u[0] >= 1 }",
            f"    if rank == {a} {{ w@{c}[0 +: 2] = x[0 +: 2] {word}{flush}notify u[0]@{b} += 1 }}",
            f"    if rank == {b} {{ wait u[0] >= 1 notify u[1]@{c} += 1 }}",
            f"    if rank == {c} {{ wait u[1] >= 1 {heard}y[0 +: 2] = w[0 +: 2] }}"]


def text_of(rnd):
    """A few ops on every rank: puts, gets, accumulates, notifies, waits, flushes. A cell has one writing rank."""
    lines = ["kernel k(in x: T[4], out y: T[4]) {", "    window w: T[4]", f"    signal s[{RANKS * CELLS}], t",
             "    if nranks > 100 { notify t@0 += 1 wait t >= 1 wait s[0] >= 1 notify s[0] += 1 y = x w = x }"]
    counts = {}
    ranks = rnd.sample(range(RANKS), RANKS)
    if rnd.random() < 0.5:
        lines += chain_of(rnd, ranks)
    for rank in range(RANKS):
        lines.append(f"    if rank == {rank} {{")
        for _ in range(rnd.randint(0, 4)):
            peer, first = rnd.randrange(RANKS), rnd.randrange(ELEMENTS)
            part = f"[{first} +: {rnd.randint(1, ELEMENTS - first)}]"
            kind = rnd.choice(["put", "put", "get", "add", "notify", "notify", "notify", "wait", "wait", "wait", "flush"])
            if kind == "put":
                lines.append(f"        w@{peer}{part} = x{part}")
            elif kind == "get":
                lines.append(f"        y{part} = w@{peer}{part}")
            elif kind == "add":
                lines.append(f"        w@{peer}{part} += x{part}")
            elif kind == "notify":
                cell = rank * CELLS + rnd.randrange(CELLS)
                counts[peer, cell] = counts.get((peer, cell), 0) + 1
                lines.append(f"        notify s[{cell}]@{peer} += 1")
            elif kind == "wait":
                lines.append(f"        WAIT {rank}")
            else:
                lines.append(f"        flush to {peer}")
        lines.append("    }")
    lines.append("}")
    # Most waits are for a cell that is notified, so that few kernels deadlock.
    for i, line in enumerate(lines):
        if "WAIT" not in line:
            continue
        rank = int(line.split()[1])
        known = [(cell, count) for (peer, cell), count in counts.items() if peer == rank]
        cell, count = rnd.choice(known) if known and rnd.random() < 0.95 else (rnd.randrange(RANKS * CELLS), 1)
        lines[i] = f"        wait s[{cell}] >= {rnd.randint(1, count)}" if known else "        y = x"
    return "\n".join(lines) + "\n"
