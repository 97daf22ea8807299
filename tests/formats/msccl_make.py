# SPDX-License-Identifier: Apache-2.0
"""Generated MSCCL XML: every step type, every collective, in place and not."""


class Algo:
    def __init__(self, coll, nranks, nchunks, proto="Simple", inplace=0, outofplace=1, scratch=0, root=None, name=None):
        self.head = dict(name=name or coll, proto=proto, nchannels=1, nchunksperloop=nchunks, ngpus=nranks, coll=coll,
                         inplace=inplace, outofplace=outofplace, minBytes=0, maxBytes=0)
        if root is not None:
            self.head["root"] = root
        self.nranks, self.nchunks, self.scratch = nranks, nchunks, scratch
        self.blocks = [[] for _ in range(nranks)]

    def block(self, gpu, send=-1, recv=-1, chan=0):
        self.blocks[gpu].append({"send": send, "recv": recv, "chan": chan, "steps": []})
        self.head["nchannels"] = max(self.head["nchannels"], chan + 1)
        return len(self.blocks[gpu]) - 1

    def step(self, gpu, block, kind, src=("i", 0), dst=("o", 0), cnt=1, dep=None, hasdep=0):
        steps = self.blocks[gpu][block]["steps"]
        depid, deps = dep or (-1, -1)
        steps.append({"type": kind, "srcbuf": src[0], "srcoff": src[1], "dstbuf": dst[0], "dstoff": dst[1],
                      "cnt": 0 if kind == "nop" else cnt, "depid": depid, "deps": deps, "hasdep": hasdep})
        if dep:
            self.blocks[gpu][depid]["steps"][deps]["hasdep"] = 1
        return len(steps) - 1

    def text(self):
        def put(tag, attributes, end):
            return "<" + tag + "".join(f' {k}="{v}"' for k, v in attributes.items()) + end
        lines = [put("algo", self.head, ">")]
        for gpu, blocks in enumerate(self.blocks):
            lines.append("  " + put("gpu", {"id": gpu, "i_chunks": self.nchunks, "o_chunks": self.nchunks * self.nranks,
                                            "s_chunks": self.scratch}, ">"))
            for number, block in enumerate(blocks):
                lines.append("    " + put("tb", {"id": number, "send": block["send"], "recv": block["recv"],
                                                 "chan": block["chan"]}, ">"))
                for s, step in enumerate(block["steps"]):
                    lines.append("      " + put("step", {"s": s, **step}, "/>"))
                lines.append("    </tb>")
            lines.append("  </gpu>")
        return "\n".join(lines + ["</algo>"]) + "\n"


def ring_allreduce(p, proto="Simple", in_place=False):
    a = Algo("allreduce", p, p, proto, int(in_place), int(not in_place))
    out = "i" if in_place else "o"
    for r in range(p):
        b = a.block(r, (r + 1) % p, (r - 1) % p)
        a.step(r, b, "s", ("i", r))
        for k in range(1, p - 1):
            a.step(r, b, "rrs", ("i", (r - k) % p))
        last = (r + 1) % p
        a.step(r, b, "rrcs", ("i", last), (out, last))
        for k in range(1, p - 1):
            a.step(r, b, "rcs", dst=(out, (r + 1 - k) % p))
        a.step(r, b, "r", dst=(out, (r + 2) % p))
    return a


def pairs_allreduce(p):
    """Every rank sends each part to its owner, through scratch; a block for each peer, joined by dependencies."""
    a = Algo("allreduce", p, p, "LL", 0, 1, scratch=p)
    for r in range(p):
        peers = [(r + i) % p for i in range(1, p)]
        for q in peers:
            a.block(r, q, q)
        main = a.block(r)
        a.step(r, main, "cpy", ("i", r), ("o", r))
        for i, q in enumerate(peers):
            a.step(r, i, "s", ("i", q))
            a.step(r, i, "r", dst=("s", q))
        for i, q in enumerate(peers):
            a.step(r, main, "re", ("s", q), ("o", r), dep=(i, 1))
        done = len(a.blocks[r][main]["steps"]) - 1
        for i, q in enumerate(peers):
            a.step(r, i, "s", ("o", r), dep=(main, done))
            a.step(r, i, "r", dst=("o", q))
    return a


def rrc_allreduce(p):
    """As pairs_allreduce, but parts are added one after the other with rrc; a nop collects two dependencies."""
    a = Algo("allreduce", p, p, "LL128", 0, 1)
    for r in range(p):
        peers = [(r + i) % p for i in range(1, p)]
        for i, q in enumerate(peers):
            b = a.block(r, q, q)
            a.step(r, b, "s", ("i", q))
        own = a.block(r)
        a.step(r, own, "cpy", ("i", r), ("o", r), hasdep=1)
        for i, q in enumerate(peers):
            before = (own, 0) if i == 0 else (i - 1, 1)
            a.step(r, i, "rrc", ("o", r), ("o", r), dep=before)
        for i, q in enumerate(peers):
            a.step(r, i, "nop", dep=(len(peers) - 1, 1))
            a.step(r, i, "s", ("o", r), dep=(own, 0))
            a.step(r, i, "r", dst=("o", q))
    return a


def ring_allgather(p, in_place=False):
    a = Algo("allgather", p, p, "Simple", int(in_place), int(not in_place))
    for r in range(p):
        b = a.block(r, (r + 1) % p, (r - 1) % p)
        if not in_place:
            own = a.block(r)
            a.step(r, own, "cpy", ("i", 0), ("o", r))
        a.step(r, b, "s", ("i", 0))
        for k in range(1, p - 1):
            a.step(r, b, "rcs", dst=("o", (r - k) % p))
        a.step(r, b, "r", dst=("o", (r + 1) % p))
    return a


def ring_reducescatter(p, in_place=False):
    a = Algo("reducescatter", p, p, "LL", int(in_place), int(not in_place))
    for r in range(p):
        b = a.block(r, (r + 1) % p, (r - 1) % p)
        a.step(r, b, "s", ("i", (r - 1) % p))
        for k in range(2, p):
            a.step(r, b, "rrs", ("i", (r - k) % p))
        a.step(r, b, "rrc", ("i", r), ("o", 0))
    return a


def alltoall(p, cnt=1, proto="LL"):
    """Every rank sends `cnt` chunks at once before it receives: large calls need this depth."""
    a = Algo("alltoall", p, p * cnt, proto)
    for r in range(p):
        own = a.block(r)
        a.step(r, own, "cpy", ("i", r * cnt), ("o", r * cnt), cnt)
        for i in range(1, p):
            to, frm = (r + i) % p, (r - i) % p
            b = a.block(r, to, frm)
            a.step(r, b, "s", ("i", to * cnt), cnt=cnt)
            a.step(r, b, "r", dst=("o", frm * cnt), cnt=cnt)
    return a


def chain_broadcast(p, root=0, n=3, cnt=1):
    a = Algo("broadcast", p, n, "Simple", root=root)
    for r in range(p):
        v = (r - root) % p
        b = a.block(r, (r + 1) % p if v < p - 1 else -1, (r - 1) % p if v else -1)
        for c in range(0, n, cnt):
            if v == 0:
                a.step(r, b, "s", ("i", c), cnt=cnt)
            else:
                a.step(r, b, "rcs" if v < p - 1 else "r", dst=("o", c), cnt=cnt)
        if v == 0:
            a.step(r, b, "cpy", ("i", 0), ("o", 0), n)
    return a


def chain_reduce(p, root=0, n=2):
    a = Algo("reduce", p, n, "Simple", root=root)
    for r in range(p):
        v = (r - root) % p  # p - 1 begins, 0 is the root
        b = a.block(r, (r - 1) % p if v else -1, (r + 1) % p if v < p - 1 else -1)
        for c in range(n):
            if v == p - 1:
                a.step(r, b, "s", ("i", c))
            elif v:
                a.step(r, b, "rrs", ("i", c))
            else:
                a.step(r, b, "rrc", ("i", c), ("o", c))
    return a


def star_gather(p, root=0):
    a = Algo("gather", p, 1, "LL", root=root)
    for r in range(p):
        if r != root:
            a.step(r, a.block(r, root), "s", ("i", 0))
            a.step(root, a.block(root, -1, r), "r", dst=("o", r))
    a.step(root, a.block(root), "cpy", ("i", 0), ("o", root))
    return a


def star_scatter(p, root=0):
    a = Algo("scatter", p, 1, "LL128", root=root)
    for r in range(p):
        if r != root:
            a.step(root, a.block(root, r), "s", ("i", r))
            a.step(r, a.block(r, -1, root), "r", dst=("o", 0))
    a.step(root, a.block(root), "cpy", ("i", root), ("o", 0))
    return a


def eager(p, ahead, proto="Simple"):
    """Every rank sends `ahead` chunks to each peer before it receives any: needs that depth."""
    a = Algo("alltoall", p, p * ahead, proto)
    for r in range(p):
        for i in range(1, p):
            b = a.block(r, (r + i) % p, (r - i) % p)
            for c in range(ahead):
                a.step(r, b, "s", ("i", (r + i) % p * ahead + c))
            for c in range(ahead):
                a.step(r, b, "r", dst=("o", (r - i) % p * ahead + c))
        a.step(r, a.block(r), "cpy", ("i", r * ahead), ("o", r * ahead), ahead)
    return a


def all_good():
    """(name, algo, in place): files that are correct by construction."""
    for p in (2, 3, 4):
        yield f"ring_allreduce{p}", ring_allreduce(p), False
        yield f"ring_allreduce_in{p}", ring_allreduce(p, in_place=True), True
        yield f"pairs_allreduce{p}", pairs_allreduce(p), False
        yield f"rrc_allreduce{p}", rrc_allreduce(p), False
        yield f"ring_allgather{p}", ring_allgather(p), False
        yield f"ring_allgather_in{p}", ring_allgather(p, True), True
        yield f"ring_reducescatter{p}", ring_reducescatter(p), False
        yield f"ring_reducescatter_in{p}", ring_reducescatter(p, True), True
        yield f"alltoall{p}", alltoall(p), False
        yield f"alltoall_two{p}", alltoall(p, 2), False
        yield f"alltoall_pieces{p}", alltoall(p, 2, "Simple"), False
        yield f"broadcast{p}", chain_broadcast(p, p - 1), False
        yield f"broadcast_pieces{p}", chain_broadcast(p, p - 1, 6, 3), False
        yield f"reduce{p}", chain_reduce(p, 1), False
        yield f"gather{p}", star_gather(p, 1), False
        yield f"scatter{p}", star_scatter(p), False
    for proto, depth in (("Simple", 2), ("LL", 8), ("LL128", 8)):
        yield f"eager_{proto}_{depth}", eager(2, depth, proto), False
