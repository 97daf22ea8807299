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
    "layers of composites": ("mesh", """kernel layers(inout g: window T[n]) {
    for i in 0 .. 3 { allreduce(g, sum) }
}
"""),
    "calls in a loop": ("mesh", SYNC + allreduce("""
    window w: T[n]
    private own: T[n]
    own = x
    for i in 0 .. 2 {
        w = own
        sync()
        let acc = own
        for p in peers { acc = op(acc, w@p) }
        y = final(op, acc)
        sync()
    }
    for i in 0 .. 3 { sync() }
""")),
    "a mesh of messages": ("mesh", allreduce("""
    for p in peers { send x to p }
    let acc = x
    for p in peers { acc = op(acc, recv from p) }
    y = final(op, acc)
""")),
    "a mesh of messages in two phases": ("mesh", allreduce("""
    channel parts, sums
    for p in peers { send x[p of nranks] to p on parts }
    let mine = x[rank of nranks]
    for i in 1 .. nranks { mine = op(mine, recv from (rank - i) % nranks on parts) }
    y[rank of nranks] = final(op, mine)
    for p in peers { send y[rank of nranks] to p on sums }
    for p in peers { y[p of nranks] = recv from p on sums }
""")),
    "an all-to-all of messages": ("mesh", """kernel a(in x: T[n], out y: T[n]) implements all_to_all {
    assert n % nranks == 0, "a part for each rank"
    y[rank of nranks] = x[rank of nranks]
    for q in 0 .. nranks { if q != rank { send x[q of nranks] to q } }
    for q in 0 .. nranks { if q != rank { y[q of nranks] = recv from q } }
}
"""),
    "an all-to-all in turns": ("mesh", """kernel a(in x: T[n], out y: T[n]) implements all_to_all {
    assert n % nranks == 0, "a part for each rank"
    y[rank of nranks] = x[rank of nranks]
    for i in 1 .. nranks {
        let to = (rank + i) % nranks
        let from = (rank + nranks - i) % nranks
        send x[to of nranks] to to
        y[from of nranks] = recv from from
    }
}
"""),
    "an allreduce in turns": ("mesh", allreduce("""
    let acc = x
    for i in 0 .. nranks - 1 {
        send x to (rank - i - 1) % nranks
        let got: T[n] = recv from (rank + i + 1) % nranks
        acc = op(acc, got)
    }
    y = final(op, acc)
""")),
    "a broadcast of messages": ("mesh", """kernel b(in x: T[n], out y: T[n], root: int) implements broadcast {
    if rank == root {
        for p in peers { send x to p }
        y = x
    } else {
        y = recv from root
    }
}
"""),
    "a gather of messages": ("mesh", """kernel g(in x: T[n], out y: T[nranks * n], root: int) implements gather {
    if rank == root {
        for q in 0 .. nranks {
            if q == rank { y[q * n +: n] = x } else { y[q * n +: n] = recv from q }
        }
    } else {
        send x to root
    }
}
"""),
    "a mesh that counts": ("mesh", allreduce("""
    window w: T[n]
    signal shared ready, done
    w = x
    for p in peers { notify ready@p += 1 }
    wait ready >= nranks - 1
    let acc = x
    for p in peers { acc = op(acc, w@p) }
    y = final(op, acc)
    for p in peers { notify done@p += 1 }
    wait done >= nranks - 1
""")),
    "a broadcast that counts": ("mesh", """kernel b(in x: T[n], out y: T[n], root: int) implements broadcast {
    window w: T[n]
    signal go[nranks]
    signal shared done
    if rank == root {
        w = x
        for p in peers { notify go[rank]@p += 1 }
        y = x
        wait done >= nranks - 1
    } else {
        wait go[root] >= 1
        y = w@root
        notify done@root += 1
    }
}
"""),
    "a central counter": ("mesh", allreduce("""
    window w: T[nranks * n]
    window sum: T[n]
    signal shared here, left
    signal go, over
    w@0[rank * n +: n] = x
    notify here@0 += 1
    if rank == 0 {
        wait here >= nranks
        let acc = w[0 +: n]
        for q in 1 .. nranks { acc = op(acc, w[q * n +: n]) }
        sum = final(op, acc)
        for p in peers { notify go@p += 1 }
    } else {
        wait go >= 1
    }
    y = sum@0
    notify left@0 += 1
    if rank == 0 {
        wait left >= nranks
        for p in peers { notify over@p += 1 }
    } else {
        wait over >= 1
    }
""")),
    "a ring that pushes through two slots": ("ring", """kernel ring(in x: T[n], out y: T[n], op: reduce) implements allreduce {
    let right = (rank + 1) % nranks
    let left = (rank - 1) % nranks
    let m = cdiv(n, nranks)
    window slot: T[2, m]
    signal ready, taken
    private acc: T[n]
    acc = x
    for s in 0 .. nranks - 1 {
        let out_part = (rank - s) % nranks
        let in_part = (rank - s - 1) % nranks
        if s >= 2 { wait taken >= s - 1 }
        slot@right[s % 2, 0 +: part(out_part, n, nranks)] = acc[out_part of nranks]
        notify ready@right += 1
        wait ready >= s + 1
        acc[in_part of nranks] = op(acc[in_part of nranks], slot[s % 2, 0 +: part(in_part, n, nranks)])
        notify taken@left += 1
    }
    for s in 0 .. nranks - 1 {
        let t = nranks - 1 + s
        let out_part = (rank + 1 - s) % nranks
        let in_part = (rank - s) % nranks
        if t >= 2 { wait taken >= t - 1 }
        slot@right[t % 2, 0 +: part(out_part, n, nranks)] = acc[out_part of nranks]
        notify ready@right += 1
        wait ready >= t + 1
        acc[in_part of nranks] = slot[t % 2, 0 +: part(in_part, n, nranks)]
        notify taken@left += 1
    }
    wait taken >= 2 * nranks - 2
    y = final(op, acc)
}
"""),
    "a ring that pulls through two slots": ("ring", """kernel ring(in x: T[n], out y: T[n], op: reduce) implements allreduce {
    let right = (rank + 1) % nranks
    let left = (rank - 1) % nranks
    window slot: T[2 * n]
    signal ready, taken
    slot[0 +: n] = x
    notify ready@right += 1
    let acc = x
    for s in 1 .. nranks {
        wait ready >= s
        if s >= 2 { wait taken >= s - 1 }
        slot[(s % 2) * n +: n] = slot@left[((s - 1) % 2) * n +: n]
        notify taken@left += 1
        notify ready@right += 1
        acc = op(acc, slot[(s % 2) * n +: n])
    }
    wait taken >= nranks - 1
    wait ready >= nranks
    y = final(op, acc)
}
"""),
    "a ring that pushes parts home": ("ring", """kernel ring(in x: T[n], out y: T[n], op: reduce) implements allreduce {
    window inbox: T[n]
    window result: T[n]
    signal came, done
    let next = (rank + 1) % nranks
    let c0 = rank
    private acc: T[n]
    acc = x
    for s in 1 .. nranks {
        let c = (rank - s + 1) % nranks
        let d = (rank - s) % nranks
        inbox@next[c of nranks] = acc[c of nranks]
        notify came@next += 1
        wait came >= s
        acc[d of nranks] = op(inbox[d of nranks], acc[d of nranks])
    }
    for s in 1 .. nranks {
        let c = (rank - s + 2) % nranks
        let d = (rank - s + 1) % nranks
        result@next[c of nranks] = acc[c of nranks]
        notify came@next += 1
        wait came >= nranks - 1 + s
        acc[d of nranks] = result[d of nranks]
    }
    y = final(op, acc)
    notify done@((rank - 1) % nranks) += 1
    wait done >= 1
}
"""),
    "a ring that pushes whole vectors through three slots": ("ring", """kernel ring(in x: T[n], out y: T[n], op: reduce) implements allreduce {
    window slot: T[3 * n]
    signal full, free
    let next = (rank + 1) % nranks
    let prev = (rank - 1) % nranks
    let acc = x
    let cur = x
    for s in 0 .. nranks - 1 {
        if s >= 3 { wait free >= s - 2 }
        slot@next[(s % 3) * n +: n] = cur
        notify full@next += 1
        wait full >= s + 1
        cur = slot[(s % 3) * n +: n]
        notify free@prev += 1
        acc = op(acc, cur)
    }
    wait free >= nranks - 1
    y = final(op, acc)
}
"""),
    "a reduce-scatter that pushes": ("ring", """kernel scatter(in x: T[n], out y: T[part(rank, n, nranks)], op: reduce) implements reduce_scatter {
    window slot: T[2, cdiv(n, nranks)]
    signal full, free
    let next = (rank + 1) % nranks
    let prev = (rank - 1) % nranks
    private part_sum: T[n]
    part_sum = x
    for s in 1 .. nranks {
        let give = (rank - s) % nranks
        let get = (rank - s - 1) % nranks
        if s >= 3 { wait free >= s - 2 }
        slot@next[(s - 1) % 2][0 +: part(give, n, nranks)] = part_sum[give of nranks]
        notify full@next += 1
        wait full >= s
        part_sum[get of nranks] = op(slot[(s - 1) % 2][0 +: part(get, n, nranks)], part_sum[get of nranks])
        notify free@prev += 1
    }
    y = final(op, part_sum[rank of nranks])
    wait free >= nranks - 1
}
"""),
    "an all-to-all of parts by length": ("mesh", """kernel a2a(in x: T[n], out y: T[nranks * part(rank, n, nranks)]) implements all_to_all {
    window src: T[n]
    signal ready[nranks], done[nranks]
    let m = part(rank, n, nranks)
    src = x
    for p in peers { notify ready[rank]@p += 1 }
    for p in peers { wait ready[p] >= 1 }
    for q in 0 .. nranks { y[q * m +: m] = src@q[rank of nranks] }
    for p in peers { notify done[rank]@p += 1 }
    for p in peers { wait done[p] >= 1 }
}
"""),
    "a mesh of chunks through two slots": ("mesh", """kernel mesh(in x: T[n], out y: T[n], op: reduce) implements allreduce {
    window slot: T[2, n]
    signal ready[nranks], done[nranks]
    for k in 0 .. 4 {
        if k >= 2 { for p in peers { wait done[p] >= k - 1 } }
        slot[k % 2, 0 +: part(k, n, 4)] = x[k of 4]
        for p in peers { notify ready[rank]@p += 1 }
        for p in peers { wait ready[p] >= k + 1 }
        let acc = slot@0[k % 2, 0 +: part(k, n, 4)]
        for q in 1 .. nranks { acc = op(acc, slot@q[k % 2, 0 +: part(k, n, 4)]) }
        y[k of 4] = final(op, acc)
        for p in peers { notify done[rank]@p += 1 }
    }
    for p in peers { wait done[p] >= 4 }
}
"""),
    "a mesh of chunks through two sets of slots": ("mesh", """kernel mesh(in x: T[n], out y: T[n], op: reduce) implements allreduce {
    window slot: T[2 * nranks * cdiv(n, 3)]
    signal came[nranks], gone[nranks]
    let m = cdiv(n, 3)
    for k in 0 .. 3 {
        let len = part(k, n, 3)
        if k > 1 { for p in peers { wait gone[p] >= k - 1 } }
        for p in 0 .. nranks { slot@p[((k % 2) * nranks + rank) * m +: len] = x[k of 3] }
        for p in peers { notify came[rank]@p += 1 }
        for p in peers { wait came[p] >= k + 1 }
        let acc = slot[((k % 2) * nranks) * m +: len]
        for q in 1 .. nranks { acc = op(acc, slot[((k % 2) * nranks + q) * m +: len]) }
        y[k of 3] = final(op, acc)
        for p in peers { notify gone[rank]@p += 1 }
    }
    for p in peers { wait gone[p] >= 3 }
}
"""),
    "a broadcast of chunks through two slots": ("mesh", """kernel bcast(in x: T[n], out y: T[n], root: int) implements broadcast {
    window buf: T[2, n]
    signal ready[nranks], taken[nranks]
    for k in 0 .. 8 {
        if rank == root {
            if k >= 2 { for p in peers { wait taken[p] >= k - 1 } }
            buf[k % 2, 0 +: part(k, n, 8)] = x[k of 8]
            for p in peers { notify ready[rank]@p += 1 }
            y[k of 8] = x[k of 8]
        } else {
            wait ready[root] >= k + 1
            y[k of 8] = buf@root[k % 2, 0 +: part(k, n, 8)]
            notify taken[rank]@root += 1
        }
    }
    if rank == root { for p in peers { wait taken[p] >= 8 } }
}
"""),
    "an all-to-all in turns with a first one": ("mesh", """kernel a2a(in x: T[n], out y: T[n]) implements all_to_all {
    assert n % nranks == 0, "n is a multiple of nranks"
    let m = n / nranks
    for s in 0 .. nranks {
        let to = (rank + s) % nranks
        let from = (rank - s) % nranks
        if s == 0 { y[rank * m +: m] = x[rank * m +: m] } else {
            send x[to * m +: m] to to
            y[from * m +: m] = recv from from
        }
    }
}
"""),
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
        return "sync()" if rng.random() < 0.8 else f"for k in 0 .. {rng.choice([1, 2, 3, 'nranks'])} {{ sync() }}"
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


def a_total(rng, rounds, who="nranks - 1"):
    """What a shared cell is waited for: all that is added, or now and then something else."""
    if rng.random() < 0.85:
        return who if rounds == 1 else f"{rounds} * ({who})"
    return rng.choice(["nranks", "nranks - 2", "1", "2", "nranks / 2", "2 * nranks - 3", "2 * (nranks - 1)", "nranks + 1", "min(nranks - 1, 3)"])


def shared_barrier(rng, rounds, cells):
    """A barrier by a counter to which all add; `rounds`: how often each was used."""
    s = rng.choice(cells)
    rounds[s] = rounds.get(s, 0) + 1
    amount = rng.choice([1, 1, 1, 2])
    total = a_total(rng, rounds[s])
    if amount == 2 and rng.random() < 0.9:
        amount, total = 2, f"2 * ({total})"
    add = loop_over_peers(rng, f"notify {s}@PEER += {amount}")
    return f"{add}\n    wait {s} >= {total}"


def a_message(rng, value, channel, into):
    """Sends to all peers, then receives from all; now and then in another order, once more or once less."""
    on = f" on {channel}" if channel else ""
    give = loop_over_peers(rng, f"send {value} to PEER{on}")
    take = loop_over_peers(rng, into.replace("RECV", f"recv from PEER{on}"))
    return take + "\n    " + give if rng.random() < 0.05 else give + "\n    " + take


def random_exchange(rng):
    """Every rank sends and receives in each turn, most often at opposite distances; perhaps what it has received, or beside windows."""
    first, sign = rng.randint(0, 2), rng.choice([1, -1])

    def peer(way, wrong):
        shift = way * (1 - first) if way == sign or not wrong else way
        shift = off(rng, shift)
        return f"(rank {'+' if way > 0 else '-'} i + {rng.choice(['', 'nranks + '])}{shift}) % nranks" if shift >= 0 else \
            f"(rank {'+' if way > 0 else '-'} i - {-shift}) % nranks"
    to, back = peer(sign, False), peer(-sign if rng.random() < 0.9 else sign, rng.random() < 0.05)
    turns = f"for i in {first} .. nranks + {first - 1 if first else 0}" if first else f"for i in 0 .. nranks - {1 if rng.random() < 0.9 else 2}"
    extra = rng.choice([""] * 8 + ["window w: T[n]\n    w = x", "signal s[nranks]\n    for p in peers { notify s[rank]@p += 1 }\n    for p in peers { wait s[p] >= 1 }"])
    kind = rng.randrange(4)
    if kind == 0:
        body = f"{turns} {{ send {rng.choice(['x', 'x', 'x', 'acc', 'own'])} to {to} acc = op(acc, recv from {back}) }}"
        if rng.random() < 0.2:
            body = f"{turns} {{ acc = op(acc, recv from {back}) send x to {to} }}"
        if rng.random() < 0.2:
            body = f"if rank != 0 {{ {body} }} else {{ {body} }}"
        return f"kernel k(in x: T[n], out y: T[n], op: reduce) implements allreduce {{\n    {extra}\n    private own: T[n]\n    own = x\n" \
            f"    let acc = x\n    {body}\n    y = final(op, acc)\n}}\n"
    if kind == 1:
        body = f"{turns} {{ send x[{to} of nranks] to {to} y[{back} of nranks] = recv from {back} }}"
        return f"kernel k(in x: T[n], out y: T[n]) implements all_to_all {{\n    {extra}\n    assert n % nranks == 0, \"even\"\n" \
            f"    y[rank of nranks] = x[rank of nranks]\n    {body}\n}}\n"
    if kind == 2:
        body = f"{turns} {{ send {rng.choice(['x', 'y[rank of nranks]', 'y[' + to + ' of nranks]'])} to {to} y[{back} of nranks] = recv from {back} }}"
        return f"kernel k(in x: T[part(rank, n, nranks)], out y: T[n]) implements allgather {{\n    {extra}\n    y[rank of nranks] = x\n    {body}\n}}\n"
    body = f"""let acc = x[rank of nranks]
    {turns} {{ send x[{to} of nranks] to {to} acc = op(acc, recv from {back}) }}
    private z: T[n]
    z[rank of nranks] = final(op, acc)
    {turns} {{ send {rng.choice(['z[rank of nranks]'] * 5 + ['z[' + to + ' of nranks]'])} to {to} y[{back} of nranks] = recv from {back} }}
    y[rank of nranks] = z[rank of nranks]"""
    return f"kernel k(in x: T[n], out y: T[n], op: reduce) implements allreduce {{\n    {extra}\n    {body}\n}}\n"


def random_crowd(rng):
    """Kernels of messages between all ranks, of counters that all add to, and of both; with a root or without."""
    if rng.random() < 0.25:
        return random_exchange(rng)
    kind, rounds, cells = rng.randrange(5), {}, rng.choice([["c"], ["c", "d"], ["c", "d", "e"]])
    named = rng.choice(["", "a"])
    head = f"    channel a, b\n    signal shared {', '.join(cells)}\n"
    if kind == 0:
        more = a_message(rng, "y", rng.choice(["", "b"]), "z = op(z, RECV)") if rng.random() < 0.2 else ""
        body = f"""    let acc = x
    {a_message(rng, 'x', named, 'acc = op(acc, RECV)')}
    y = final(op, acc)
    let z = x
    {more}
"""
    elif kind == 1:
        body = f"""    let mine = x[rank of nranks]
    {a_message(rng, rng.choice(['x[PEER of nranks]'] * 9 + ['x[rank of nranks]']), named, 'mine = op(mine, RECV)')}
    y[rank of nranks] = final(op, mine)
    {a_message(rng, 'y[rank of nranks]', rng.choice([named, 'b']), 'y[PEER of nranks] = RECV')}
"""
    elif kind == 2:
        barriers = [shared_barrier(rng, rounds, cells) for _ in range(2)]
        if rng.random() < 0.15:
            barriers[1] = ""
        mixed = a_message(rng, "x", named, "z = op(z, RECV)") if rng.random() < 0.2 else ""
        body = f"""    window w: T[n]
    w = x
    let z = x
    {barriers[0]}
    let acc = w
    {loop_over_peers(rng, 'acc = op(acc, w@PEER)')}
    y = final(op, acc)
    {mixed}
    {barriers[1]}
"""
    elif kind == 3:
        phases = rng.choice(["0", "(launch mod 2)"])
        at = f"({phases} * nranks + R) * n"
        first = shared_barrier(rng, rounds, cells) if phases == "0" or rng.random() < 0.3 else ""
        body = f"""    window w: T[{1 if phases == '0' else 2} * nranks * n]
    {first}
    {loop_over_peers(rng, f'w@PEER[{at.replace("R", "rank")} +: n] = x')}
    {shared_barrier(rng, rounds, cells)}
    let acc = x
    {loop_over_peers(rng, f'acc = op(acc, w[{at.replace("R", "PEER")} +: n])')}
    y = final(op, acc)
"""
    else:
        s, total = rng.choice(cells), a_total(rng, 1)
        way = rng.randrange(4)
        if way == 0:
            body = f"""    if rank == root {{
        {loop_over_peers(rng, 'send x to PEER')}
        y = x
        {rng.choice(['', f'wait {s} >= {total}'])}
    }} else {{
        y = recv from root
        notify {s}@root += 1
    }}
"""
        elif way == 1:
            body = f"""    window w: T[n]
    signal go[nranks]
    if rank == root {{
        w = x
        {loop_over_peers(rng, 'notify go[rank]@PEER += 1')}
        y = x
        wait {s} >= {total}
    }} else {{
        wait go[root] >= 1
        y = w@root
        {rng.choice(['', '', f'notify {s}@root += 1'])}
        notify {s}@root += 1
    }}
"""
        elif way == 2:
            body = f"""    window w: T[n]
    w@{rng.choice(['root', 'root', '0'])}[0 +: n] = x
    if rank == root {{
        for p in peers {{ send x to p }}
        y = x
    }} else {{
        y = recv from {rng.choice(['root', 'root', 'root', '0'])}
    }}
"""
        else:
            body = f"""    window w: T[n]
    if rank == root {{ w = x }}
    if rank == root {{ {loop_over_peers(rng, f'notify {s}@PEER += 1')} }} else {{ wait {s} >= {rng.choice(['1', '1', 'nranks - 1'])} }}
    y = w@root
    {loop_over_peers(rng, f'notify {rng.choice(cells)}@PEER += 1')}
    {rng.choice(['', f'wait {s} >= {total}'])}
"""
        return f"kernel k(in x: T[n], out y: T[n], root: int) implements broadcast {{\n{head}{body}}}\n"
    return f"kernel k(in x: T[n], out y: T[n], op: reduce) implements allreduce {{\n{head}{body}}}\n"
