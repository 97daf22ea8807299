# SPDX-License-Identifier: Apache-2.0
"""Random kernels whose ranks differ: channels or windows, lanes that are empty on some ranks, blocks of uneven sizes."""


def condition(r, name):
    """A condition that selects some ranks."""
    return r.choice([f"{name} % 2 == 1", f"{name} % 2 == 0", f"{name} % 3 == 1", f"{name} > {r.randint(0, 3)}",
                     f"{name} == {r.randint(1, 3)}", f"{name} < {r.randint(1, 3)}"])


def broadcast(r):
    """Each rank gets the root's vector through a channel, from one window or from another."""
    first = r.choice([1, 1, 2, 70000])
    by_channel, by_first = condition(r, "{p}"), condition(r, "{p}")
    late = "for p in peers { notify t@p += 1 }" if r.random() < 0.9 else ""
    end = "barrier()" if r.random() < 0.8 else ""
    return f"""kernel k(in x: T[n], out y: T[n], root: int) implements broadcast {{
    window w: T[n]
    window v: T[n]
    signal s
    signal t
    if rank == root {{
        y = x
        w = x
        for p in peers {{
            if {by_channel.format(p="p")} {{ send x to p }} else {{ notify s@p += {first} }}
        }}
        v = x
        {late}
    }} else {{
        if {by_channel.format(p="rank")} {{
            let got: T[n] = recv from root
            {"wait t >= 1" if late else ""}
            y = got
        }} else {{
            wait s >= {first}
            if {by_first.format(p="rank")} {{ y = w@root }} else {{ {"wait t >= 1" if late else ""}  y = v@root }}
        }}
    }}
    {end}
}}
"""


def allreduce(r):
    """Some ranks pass their vector to rank 0 through a channel, others through their window; the sum returns likewise."""
    up, down = condition(r, "{p}"), condition(r, "{p}")
    ready = "notify ready[rank]@0 += 1" if r.random() < 0.9 else "if rank > 1 { notify ready[rank]@0 += 1 }"
    end = "barrier()" if r.random() < 0.85 else ""
    return f"""kernel k(in x: T[n], out y: T[n], op: reduce) implements allreduce {{
    window w: T[n]
    signal ready[nranks]
    signal done
    if rank == 0 {{
        let acc = x
        for p in 1 .. nranks {{
            if {up.format(p="p")} {{
                acc = op(acc, recv from p)
            }} else {{
                wait ready[p] >= 1
                acc = op(acc, w@p)
            }}
        }}
        w = acc
        y = final(op, acc)
        for p in peers {{
            if {down.format(p="p")} {{ send acc to p }} else {{ notify done@p += 1 }}
        }}
    }} else {{
        if {up.format(p="rank")} {{ send x to 0 }} else {{
            w = x
            {ready}
        }}
        if {down.format(p="rank")} {{
            let got: T[n] = recv from 0
            y = final(op, got)
        }} else {{
            wait done >= 1
            let got: T[n] = w@0
            y = final(op, got)
        }}
    }}
    {end}
}}
"""


def lanes(r):
    """A broadcast in parts. Each rank distributes them over its lanes differently, so that some lanes are empty."""
    count, parts = r.choice([2, 3]), r.choice([1, 2, 3])
    spread = r.choice([f"select({condition(r, 'rank')}, h % {count}, 0)", f"(h + rank) % {count}",
                       f"select({condition(r, 'rank')}, {count - 1}, h % {count})"])
    by_channel = condition(r, "{p}") if r.random() < 0.6 else "{p} < 0"
    done = "notify done[" + str(parts) + " * rank + h]@root += 1"
    if r.random() < 0.2:
        done = "if rank > 1 { " + done + " }"
    early = r.random() < 0.15  # the part is announced before it is there
    put = ["w[h of {0}] = x[h of {0}]".format(parts), "for p in peers {{ if not ({0}) {{ notify s[h]@p += 1 }} }}".format(
        by_channel.format(p="p"))]
    first, second = put[::-1] if early else put
    return f"""kernel k(in x: T[n], out y: T[n], root: int) implements broadcast {{
    window w: T[n]
    signal s[{parts}]
    signal done[{parts} * nranks]
    channel c0, c1, c2
    lane i in 0 .. {count} {{
        for h in 0 .. {parts} {{
            if {spread} == i {{
                if rank == root {{
                    {first}
                    {second}
                    y[h of {parts}] = x[h of {parts}]
                    for p in peers {{
                        if {by_channel.format(p="p")} {{
                            if h == 0 {{ send x[h of {parts}] to p on c0 }}
                            if h == 1 {{ send x[h of {parts}] to p on c1 }}
                            if h == 2 {{ send x[h of {parts}] to p on c2 }}
                        }}
                    }}
                    for p in peers {{ wait done[{parts} * p + h] >= 1 }}
                }} else {{
                    if {by_channel.format(p="rank")} {{
                        if h == 0 {{ y[h of {parts}] = recv from root on c0 }}
                        if h == 1 {{ y[h of {parts}] = recv from root on c1 }}
                        if h == 2 {{ y[h of {parts}] = recv from root on c2 }}
                    }} else {{
                        wait s[h] >= 1
                        y[h of {parts}] = w@root[h of {parts}]
                    }}
                    {done}
                }}
            }}
        }}
    }}
}}
"""


def uneven(r):
    """Blocks whose sizes only their two ranks know, through channels or inboxes; empty ones may be left out."""
    by_channel = condition(r, "({p} + {q})") if r.random() < 0.7 else "{p} < 0"
    skips = r.random() < 0.5
    sent, received = ("sends[p] > 0", "recvs[p] > 0") if skips else ("sends[p] >= 0", "recvs[p] >= 0")
    if skips and r.random() < 0.3:
        received = "recvs[p] >= 0"  # waits for a block that is never sent
    end = "barrier()" if r.random() < 0.8 else ""
    there, here = by_channel.format(p="rank", q="p"), by_channel.format(p="p", q="rank")
    return f"""kernel k(in x: T[sum(sends)], out y: T[sum(recvs)], local sends: int[nranks], local recvs: int[nranks], most: int)
        implements all_to_all_v {{
    window inbox: T[nranks * most]
    signal ready[nranks]
    for p in peers {{
        if {sent} {{
            if {there} {{ send x[sum(sends, p) +: sends[p]] to p }} else {{
                inbox@p[rank * most +: sends[p]] = x[sum(sends, p) +: sends[p]]
                notify ready[rank]@p += 1
            }}
        }}
    }}
    y[sum(recvs, rank) +: recvs[rank]] = x[sum(sends, rank) +: sends[rank]]
    for p in peers {{
        if {received} {{
            if {here} {{ y[sum(recvs, p) +: recvs[p]] = recv from p }} else {{
                wait ready[p] >= 1
                y[sum(recvs, p) +: recvs[p]] = inbox[p * most +: recvs[p]]
            }}
        }}
    }}
    {end}
}}
"""
