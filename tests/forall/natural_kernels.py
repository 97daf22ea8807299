# SPDX-License-Identifier: Apache-2.0
"""Kernels as new users write them: each is right, in one style or another, and proved for every number of ranks.

NATURAL: name -> (class, text).
"""

SYNC = """kernel sync() {
    signal s[nranks]
    for p in peers { notify s[rank]@p += 1 }
    for p in peers { wait s[p] >= 1 }
}
"""


def allreduce(body):
    return "kernel a(in x: T[n], out y: T[n], op: reduce) implements allreduce {" + body + "}\n"


NATURAL = {
    "a mesh by rotations": ("mesh", allreduce("""
    window stage: T[n]
    signal here[nranks], done[nranks]
    stage = x
    for i in 1 .. nranks {
        let peer = (rank + i) % nranks
        notify here[rank]@peer += 1
    }
    let acc = x
    for i in 1 .. nranks {
        let peer = (rank + i) % nranks
        wait here[peer] >= 1
        let other = stage@peer[0 +: n]
        acc = op(acc, other)
    }
    y = final(op, acc)
    for i in 0 .. nranks - 1 { notify done[rank]@((rank + nranks - i - 1) % nranks) += 1 }
    for i in 0 .. nranks - 1 { wait done[(rank + i + 1) % nranks] >= 1 }
""")),
    "a mesh of calls": ("mesh", SYNC + allreduce("""
    window stage: T[n]
    stage = x
    sync()
    let acc = stage@0
    for q in 1 .. nranks { acc = op(acc, stage@q) }
    y = final(op, acc)
    sync()
""")),
    "a mesh of calls of calls": ("mesh", SYNC + """kernel publish(in x: T[n], out w: window T[n]) {
    w = x
    sync()
}
kernel collect(in w: window T[n], out y: T[n], op: reduce) {
    let total = w@0[0 +: len(w)]
    for q in 1 .. nranks { total = op(total, w@q) }
    y = final(op, total)
    sync()
}
""" + allreduce("""
    window stage: T[n]
    publish(x, stage)
    collect(stage, y, op)
""")),
    "a mesh in two phases": ("mesh", SYNC + allreduce("""
    window w: T[n]
    let me = rank
    w = x
    sync()
    let mine = w[me of nranks]
    for p in peers { mine = op(mine, w@p[me of nranks]) }
    sync()
    w[me of nranks] = final(op, mine)
    sync()
    for q in 0 .. nranks { y[q of nranks] = w@q[q of nranks] }
    sync()
""")),
    "a mesh in two phases and two pieces": ("mesh", SYNC + allreduce("""
    window w: T[n]
    w = x
    sync()
    for j in 0 .. 2 {
        let mine = w[rank of nranks][j of 2]
        for p in peers { mine = op(mine, w@p[rank of nranks][j of 2]) }
        y[rank of nranks][j of 2] = final(op, mine)
    }
    sync()
    w[rank of nranks] = y[rank of nranks]
    sync()
    for p in peers { y[p of nranks] = w@p[p of nranks] }
    sync()
""")),
    "a mesh with two slots": ("mesh", allreduce("""
    window stage: T[2 * n]
    signal here[nranks]
    stage[(launch mod 2) * n +: n] = x
    for p in peers { notify here[rank]@p += 1 }
    for p in peers { wait here[p] >= 1 }
    let acc = stage@0[n * (launch mod 2) +: n]
    for q in 1 .. nranks { acc = op(acc, stage@q[(launch mod 2) * n +: n]) }
    y = final(op, acc)
""")),
    "a mesh with two rows": ("mesh", allreduce("""
    window stage: T[2, n]
    signal here[nranks]
    stage[launch mod 2] = x
    for p in peers { notify here[rank]@p += 1 }
    for p in peers { wait here[p] >= 1 }
    let acc = stage@0[launch mod 2]
    for q in 1 .. nranks { acc = op(acc, stage@q[launch mod 2]) }
    y = final(op, acc)
""")),
    "a mesh that pushes into two sets of slots": ("mesh", allreduce("""
    window inbox: T[2 * nranks * n]
    signal here[nranks]
    for p in peers { inbox@p[rank * n + (launch mod 2) * n * nranks +: n] = x }
    for p in peers { notify here[rank]@p += 1 }
    let acc = x
    for p in peers {
        wait here[p] >= 1
        acc = op(acc, inbox[((launch mod 2) * nranks + p) * n +: n])
    }
    y = final(op, acc)
""")),
    "a composite in place": ("mesh", """kernel step(inout g: window T[n]) {
    allreduce(g, sum)
}
"""),
    "a composite between copies": ("mesh", allreduce("""
    window w: T[n]
    w = x
    allreduce(w, op)
    y = w
""")),
    "two composites": ("mesh", """kernel two(inout a: window T[n], inout b: window T[n]) {
    allreduce(a, sum)
    allreduce(b, max)
    barrier()
}
"""),
    "a broadcast": ("mesh", """kernel b(in x: T[n], out y: T[n], root: int) implements broadcast {
    window buf: T[n]
    signal full[nranks], empty[nranks]
    let is_root = rank == root
    if is_root {
        buf = x
        for p in peers { notify full[rank]@p += 1 }
        y = x
        for p in peers { wait empty[p] >= 1 }
    } else {
        wait full[root] >= 1
        y = buf@root
        notify empty[rank]@root += 1
    }
}
"""),
    "a broadcast with two slots": ("mesh", """kernel b(in x: T[n], out y: T[n], root: int) implements broadcast {
    window buf: T[2 * n]
    signal full[nranks], empty[nranks]
    if rank == root {
        for p in peers { wait empty[p] >= 1 at launch - 2 }
        buf[(launch mod 2) * n +: n] = x
        for p in peers { notify full[rank]@p += 1 }
        y = x
    } else {
        wait full[root] >= 1
        y = buf@root[(launch mod 2) * n +: n]
    }
    for p in peers { notify empty[rank]@p += 1 }
}
"""),
    "an all-to-all of chunks": ("mesh", SYNC + """kernel a(in x: T[n], out y: T[n]) implements all_to_all {
    window buf: T[n]
    assert n % nranks == 0, "a chunk for each rank"
    let chunk = n / nranks
    sync()
    for i in 0 .. nranks {
        let peer = (rank + i) % nranks
        buf@peer[rank * chunk +: chunk] = x[peer * chunk +: chunk]
    }
    sync()
    y = buf
}
"""),
    "an all-to-all of parts": ("mesh", """kernel a(in x: T[n], out y: T[n]) implements all_to_all {
    window buf: T[n]
    signal arrived[nranks], ready[nranks]
    assert n % nranks == 0, "a part for each rank"
    for i in 1 .. nranks { notify ready[rank]@((rank + i) % nranks) += 1 }
    for i in 1 .. nranks {
        let to = (rank + i) % nranks
        wait ready[to] >= 1
        buf@to[rank of nranks] = x[to of nranks]
        notify arrived[rank]@to += 1
    }
    y[rank of nranks] = x[rank of nranks]
    for i in 1 .. nranks {
        let from = (rank - i) % nranks
        wait arrived[from] >= 1
        y[from of nranks] = buf[from of nranks]
    }
}
"""),
    "an allgather": ("mesh", SYNC + """kernel g(in x: T[n], out y: T[nranks * n]) implements allgather {
    window w: T[nranks * n]
    sync()
    for p in 0 .. nranks { w@p[n * rank +: n] = x }
    sync()
    y = w
}
"""),
    "a ring of pulls": ("ring", allreduce("""
    window part: T[n]
    signal ready, gone
    let next = (rank + 1) % nranks
    let prev = (rank + nranks - 1) % nranks
    part = x
    var round = 0
    for s in 0 .. nranks - 1 {
        round = round + 1
        notify ready@next += 1
        wait ready >= round
        let chunk = (rank + nranks - s - 2) % nranks
        let mine = part[chunk of nranks]
        let theirs = part@prev[chunk of nranks]
        part[chunk of nranks] = op(mine, theirs)
    }
    for s in 0 .. nranks - 1 {
        round = round + 1
        notify ready@next += 1
        wait ready >= round
        let chunk = (rank + nranks - s - 1) % nranks
        part[chunk of nranks] = part@prev[chunk of nranks]
    }
    notify ready@next += 1
    wait ready >= round + 1
    notify gone@prev += 1
    wait gone >= 1
    y = final(op, part)
""")),
    "a ring of pulls with two slots": ("ring", allreduce("""
    window part: T[2 * n]
    signal ready
    let next = (rank + 1) % nranks
    let prev = (rank + nranks - 1) % nranks
    part[(launch mod 2) * n +: n] = x
    var round = 0
    for s in 0 .. nranks - 1 {
        round = round + 1
        notify ready@next += 1
        wait ready >= round
        let chunk = (rank + nranks - s - 2) % nranks
        let mine = part[(launch mod 2) * n +: n][chunk of nranks]
        let theirs = part@prev[(launch mod 2) * n +: n][chunk of nranks]
        part[(launch mod 2) * n +: n][chunk of nranks] = op(mine, theirs)
    }
    for s in 0 .. nranks - 1 {
        round = round + 1
        notify ready@next += 1
        wait ready >= round
        let chunk = (rank + nranks - s - 1) % nranks
        part[(launch mod 2) * n +: n][chunk of nranks] = part@prev[(launch mod 2) * n +: n][chunk of nranks]
    }
    notify ready@next += 1
    wait ready >= round + 1
    y = final(op, part[(launch mod 2) * n +: n])
""")),
    "a ring of pulls with two rows": ("ring", allreduce("""
    window part: T[2, n]
    signal ready
    let next = (rank + 1) % nranks
    let prev = (rank + nranks - 1) % nranks
    part[launch mod 2] = x
    var round = 0
    for s in 0 .. nranks - 1 {
        round = round + 1
        notify ready@next += 1
        wait ready >= round
        let chunk = (rank + nranks - s - 2) % nranks
        let mine = part[launch mod 2][chunk of nranks]
        let theirs = part@prev[launch mod 2][chunk of nranks]
        part[launch mod 2][chunk of nranks] = op(mine, theirs)
    }
    for s in 0 .. nranks - 1 {
        round = round + 1
        notify ready@next += 1
        wait ready >= round
        let chunk = (rank + nranks - s - 1) % nranks
        part[launch mod 2][chunk of nranks] = part@prev[launch mod 2][chunk of nranks]
    }
    notify ready@next += 1
    wait ready >= round + 1
    y = final(op, part[launch mod 2])
""")),
    "a ring of two calls": ("ring", """kernel pass_on(inout part: window T[n], op: reduce) {
    signal ready
    let right = (rank + 1) % nranks
    let left = (rank - 1) % nranks
    for s in 1 .. nranks {
        notify ready@right += 1
        wait ready >= s
        let c = (rank - s - 1) % nranks
        part[c of nranks] = op(part[c of nranks], part@left[c of nranks])
    }
    notify ready@right += 1
    wait ready >= nranks
}
kernel spread(inout part: window T[n]) {
    signal ready, gone
    let right = (rank + 1) % nranks
    let left = (rank - 1) % nranks
    for s in 1 .. nranks {
        notify ready@right += 1
        wait ready >= s
        let c = (rank - s) % nranks
        part[c of nranks] = part@left[c of nranks]
    }
    notify gone@left += 1
    wait gone >= 1
}
""" + allreduce("""
    window part: T[n]
    part = x
    pass_on(part, op)
    spread(part)
    y = final(op, part)
""")),
    "a ring of messages": ("ring", allreduce("""
    let right = (rank + 1) % nranks
    let left = (rank - 1) % nranks
    private acc: T[n]
    acc = x
    for s in 0 .. nranks - 1 {
        let give = (rank - s) % nranks
        let take = (rank - s - 1) % nranks
        send acc[give of nranks] to right
        acc[take of nranks] = op(acc[take of nranks], recv from left)
    }
    for s in 0 .. nranks - 1 {
        let give = (rank + 1 - s) % nranks
        let take = (rank - s) % nranks
        send acc[give of nranks] to right
        acc[take of nranks] = recv from left
    }
    y = final(op, acc)
""")),
    "a ring that forwards": ("ring", allreduce("""
    let acc = x
    let cur = x
    for s in 1 .. nranks {
        send cur to (rank + 1) % nranks
        cur = recv from (rank - 1) % nranks
        acc = op(acc, cur)
    }
    y = final(op, acc)
""")),
}


def off(rng, number):
    """The number, or now and then one that is wrong by one."""
    return number + (rng.choice([-1, 1]) if rng.random() < 0.06 else 0)


def loop_over_peers(rng, body):
    """A loop over the other ranks in one of many forms; `body` has PEER."""
    form = rng.randrange(6)
    if form == 0:
        return "for p in peers { " + body.replace("PEER", "p") + " }"
    if form == 1:
        return f"for q in {off(rng, 0)} .. nranks {{ if q != rank {{ " + body.replace("PEER", "q") + " } }" if rng.random() < 0.97 else \
            "for q in 0 .. nranks { " + body.replace("PEER", "q") + " }"
    first, sign = rng.randint(0, 3), rng.choice([1, -1])
    shift = 1 - first if sign == 1 else first - 1
    shift, turns = off(rng, shift), off(rng, -1)
    start = f"rank + {rng.choice(['', 'nranks + '])}{'i' if sign == 1 else '0 - i'}"
    start += f" + {shift}" if shift >= 0 else f" - {-shift}"
    if rng.random() < 0.2:
        start = f"({start}) % nranks + {rng.choice(['nranks', '2 * nranks', '0'])}"
    end = first + turns
    bound = f"nranks + {end}" if end >= 0 else f"nranks - {-end}"
    peer = f"({start}) % nranks"
    if form == 2:
        return f"for i in {first} .. {bound} {{ " + body.replace("PEER", f"({peer})") + " }"
    if form == 3:
        return f"for i in {first} .. {bound} {{ let peer = {peer} " + body.replace("PEER", "peer") + " }"
    if form == 4:
        return f"for i in {first} .. {bound} {{ let a = {start} let peer = a % nranks " + body.replace("PEER", "peer") + " }"
    return f"for i in {first} .. {bound} {{ let peer = {peer} if peer != rank {{ " + body.replace("PEER", "peer") + " } }"


def a_barrier(rng, calls):
    """Waits for all peers, with cells of its own or by a call."""
    if rng.random() < 0.4:
        return "sync()"
    calls[0] += 1
    s = f"s{calls[0]}"
    if rng.random() < 0.1 and calls[0] > 1:
        s = "s1"
    return (f"{loop_over_peers(rng, f'notify {s}[rank]@PEER += 1')}\n    {loop_over_peers(rng, f'wait {s}[PEER] >= 1')}")


def random_kernel(rng):
    """An allreduce or all-to-all over windows in a random style; most are right, and some are wrong by one number or wait."""
    calls = [0]
    barriers = [a_barrier(rng, calls) for _ in range(4)]
    if rng.random() < 0.12:
        barriers[rng.randrange(4)] = ""
    phases = rng.choice([1, 1, 2])
    launch = "(launch mod 2)" if phases == 2 else "0"
    kind = rng.randrange(4)
    size = off(rng, 1) if rng.random() < 0.3 else 1
    if kind == 0:  # everyone reads everyone's copy
        window = f"T[{phases} * n]" if rng.random() < 0.6 else f"T[{phases}, n]"
        rows = "," in window
        here = (f"[{launch}]" if rows else f"[{launch} * n +: n]") if phases == 2 or rows or rng.random() < 0.5 else rng.choice(["", "[0 +: n]"])
        body = f"""    window w: {window}
    w{here} = x
    {barriers[0]}
    let acc = w{here}
    {loop_over_peers(rng, f'acc = op(acc, w@PEER{here})')}
    y = final(op, acc)
    {barriers[1] if phases == 1 or rng.random() < 0.5 else ''}
"""
    elif kind == 1:  # everyone writes into a slot of its own
        digits = rng.choice([f"({launch} * nranks + R) * n", f"R * n + {launch} * nranks * n", f"n * R + n * {launch} * nranks"])
        body = f"""    window w: T[{phases} * nranks * n]
    {barriers[0] if phases == 1 or rng.random() < 0.5 else ''}
    {loop_over_peers(rng, f'w@PEER[{digits.replace("R", "rank")} +: n] = x')}
    {barriers[1]}
    let acc = x
    {loop_over_peers(rng, f'acc = op(acc, w[{digits.replace("R", "PEER")} +: n])')}
    y = final(op, acc)
"""
    elif kind == 2:  # parts, perhaps in pieces
        pieces = rng.choice([1, 2, 3])
        piece = f"[j of {pieces}]" if pieces > 1 else ""
        before, after = (f"for j in 0 .. {off(rng, pieces)} {{ ", " }") if pieces > 1 else ("", "")
        body = f"""    window w: T[n], z: T[n]
    w = x
    {barriers[0]}
    {before}let acc = w[rank of nranks]{piece}
    {loop_over_peers(rng, f'acc = op(acc, w@PEER[rank of nranks]{piece})')}
    z[rank of nranks]{piece} = final(op, acc){after}
    {barriers[1]}
    y[rank of nranks] = z[rank of nranks]
    {loop_over_peers(rng, 'y[PEER of nranks] = z@PEER[PEER of nranks]')}
    {barriers[2]}
"""
    else:
        body = f"""    window w: T[n]
    assert n % nranks == 0, "even"
    let chunk = n / nranks
    {barriers[0]}
    {loop_over_peers(rng, 'w@PEER[rank * chunk +: chunk] = x[PEER * chunk +: chunk]')}
    {barriers[1]}
    y[chunk * rank +: chunk] = x[rank of nranks]
    {loop_over_peers(rng, 'y[PEER of nranks] = w[PEER * chunk +: chunk]')}
"""
    signals = "".join(f"    signal s{i + 1}[nranks]\n" for i in range(max(calls[0], size)))
    if kind == 3:
        return f"{SYNC}kernel k(in x: T[n], out y: T[n]) implements all_to_all {{\n{signals}{body}}}\n"
    return f"{SYNC}kernel k(in x: T[n], out y: T[n], op: reduce) implements allreduce {{\n{signals}{body}}}\n"
