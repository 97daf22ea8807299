# SPDX-License-Identifier: Apache-2.0
"""Generated MSCCL++ plans: every op name, both protocols, in place and not; correct by construction, or wrong."""
import copy
import json


class Plan:
    def __init__(self, collective, nranks, chunks, protocol="Simple", inplace=False, scratch=0, **more):
        """chunks: (input, output) of every gpu."""
        self.nranks = nranks
        self.top = {"name": collective, "collective": collective, "protocol": protocol, "inplace": inplace,
                    "reuse_resources": False, "use_double_scratch_buffer": False, "buffer_alignment": 16,
                    "num_threads_per_block": 1024, "min_message_size": 0, "max_message_size": 18446744073709551615,
                    "gpus": [], **more}
        for r in range(nranks):
            self.top["gpus"].append({"id": r, "input_chunks": chunks[0], "output_chunks": chunks[1], "scratch_chunks": scratch,
                                     "threadblocks": [], "channels": [], "remote_buffers": [], "semaphores": []})

    def gpu(self, r):
        return self.top["gpus"][r]

    def connect(self, kind="memory"):
        """A channel of that type between every two ranks; channel i of rank r goes to peers(r)[i]."""
        for r in range(self.nranks):
            self.gpu(r)["channels"].append({"channel_type": kind, "connected_to": self.peers(r)})

    def peers(self, r):
        return [q for q in range(self.nranks) if q != r]

    def remote(self, r, buf, kind="memory"):
        """Remote buffer `buf` of every peer; returns the first one's id."""
        first = len(self.gpu(r)["remote_buffers"])
        for q in self.peers(r):
            self.gpu(r)["remote_buffers"].append({"rank": q, "type": buf, "access_channel_types": [kind]})
        return first

    def block(self, r, kind="memory", channels=True, buffers=()):
        n = self.nranks - 1
        tb = {"id": len(self.gpu(r)["threadblocks"]), "ops": [],
              "channels": [{"channel_type": kind, "channel_ids": list(range(n))}] if channels else [],
              "remote_buffer_refs": [{"access_channel_type": kind, "remote_buffer_ids": list(buffers)}] if buffers else []}
        self.gpu(r)["threadblocks"].append(tb)
        return tb["ops"]

    def text(self):
        return json.dumps(self.top, indent=1)


def own(buf, index, size=1):
    return {"type": buf, "index": index, "size": size}


def at(buffer_id, index, size=1):
    return {"buffer_id": buffer_id, "index": index, "size": size}


def op(name, **keys):
    return {"name": name, **keys}


def signal(ids, name="signal", kind="memory"):
    return op(name, channel_type=kind, channel_ids=list(ids))


NOP = {"name": "nop"}


def put_allgather(p, inplace=False):
    """Every rank puts its chunk into every output and signals; a last wait for all makes it repeatable."""
    a = Plan("allgather", p, (1, p), inplace=inplace)
    a.connect()
    for r in range(p):
        first = a.remote(r, "o")
        ops, ids = a.block(r, buffers=range(first, first + p - 1)), range(p - 1)
        ops += [signal(ids), signal(ids, "wait"), NOP]
        if not inplace:
            ops.append(op("copy", src_buff=[own("i", 0)], dst_buff=[own("o", r)]))
        ops.append(op("put", channel_type="memory", channel_ids=list(ids), src_buff=[own("i", 0)] * (p - 1),
                      dst_buff=[at(i, r) for i in ids]))
        ops += [NOP, signal(ids), signal(ids, "wait")]
    return a


def early_copy(p, forwarded=False):
    """As put_allgather, but with a copy before relaxed signals, which publish what was written before the launch, but not the
    copy. `forwarded`: each rank reads its peers' copies."""
    a = put_allgather(p)
    for r in range(p):
        ops, ids = a.gpu(r)["threadblocks"][0]["ops"], range(p - 1)
        ops[0]["name"], ops[1]["name"] = "rlxsignal", "rlxwait"
        ops.insert(0, ops.pop(3))
        if forwarded:
            ops[4] = op("get", channel_type="memory", channel_ids=list(ids), src_buff=[at(i, q) for i, q in enumerate(a.peers(r))],
                        dst_buff=[own("o", q) for q in a.peers(r)])
    return a


def get_allreduce(p, relaxed=False, reducer="rre"):
    """Reads its own part of every rank's input, reduces it, and puts the result into every output; in place."""
    a = Plan("allreduce", p, (p, p), inplace=True)
    a.connect()
    for r in range(p):
        first = a.remote(r, "i")
        ops, ids = a.block(r, buffers=range(first, first + p - 1)), range(p - 1)
        ops += [signal(ids, "rlxsignal" if relaxed else "signal"), signal(ids, "rlxwait" if relaxed else "wait"), NOP]
        sources = [own("i", r)] + [at(i, r) for i in ids]
        if reducer == "rre":
            ops.append(op("rre", channel_type="memory", src_buff=sources, dst_buff=[own("i", r)]))
            ops.append(op("put", channel_type="memory", channel_ids=list(ids), src_buff=[own("i", r)] * (p - 1),
                          dst_buff=[at(i, r) for i in ids]))
        else:
            ops.append(op("rres", channel_type="memory", src_buff=sources, dst_buff=[own("i", r)] + [at(i, r) for i in ids]))
        ops += [NOP, signal(ids), signal(ids, "wait")]
    return a


def packet_allreduce(p, copies=False):
    """Each rank sends its parts as packets into scratch, reduces, and sends the result as packets; double scratch."""
    a = Plan("allreduce", p, (p, p), "LL", inplace=True, scratch=2 * p, use_double_scratch_buffer=True)
    for r in range(p):
        first = a.remote(r, "s")
        ops, ids = a.block(r, channels=False, buffers=range(first, first + p - 1)), range(p - 1)
        peers = a.peers(r)
        ops.append(op("ppkt", channel_type="memory", src_buff=[own("i", q) for q in peers], dst_buff=[at(i, r) for i in ids]))
        sources = [own("i", r)] + [own("s", q) for q in peers]
        if copies:
            ops.append(op("recspkt", channel_type="memory", src_buff=sources,
                          dst_buff=[own("i", r), own("s", p + r)] + [at(i, p + r) for i in ids]))
        else:
            ops.append(op("respkt", channel_type="memory", src_buff=sources, dst_buff=[own("i", r)] + [at(i, p + r) for i in ids]))
        for q in peers:
            ops.append(op("upkt", src_buff=[own("s", p + q)], dst_buff=[own("i", q)]))
    return a


def relay_broadcast(p):
    """Rank 0 makes packets, sends them to rank 1, which sends them on, and so on; every rank unpacks them."""
    a = Plan("broadcast", p, (1, 1), "LL", scratch=1, use_double_scratch_buffer=True)
    for r in range(p):
        first = a.remote(r, "s")
        ops = a.block(r, channels=False, buffers=range(first, first + p - 1))
        nxt = [a.peers(r).index(r + 1)] if r + 1 < p else []
        if r == 0:
            ops.append(op("cpkt", src_buff=[own("i", 0)], dst_buff=[own("s", 0)]))
        if nxt:
            ops.append(op("rppkt", channel_type="memory", src_buff=[own("s", 0)], dst_buff=[at(nxt[0], 0)]))
        ops.append(op("upkt", src_buff=[own("s", 0)], dst_buff=[own("o", 0)]))
    return a


def port_alltoall(p, flush=True, name="put"):
    """Puts through port channels, by a proxy: the block goes on at once, and flushes before it ends."""
    a = Plan("alltoall", p, (p, p))
    a.connect("port")
    for r in range(p):
        first = a.remote(r, "o", "port")
        ops, ids = a.block(r, "port", buffers=range(first, first + p - 1)), range(p - 1)
        peers = a.peers(r)
        ops += [signal(ids, kind="port"), signal(ids, "wait", "port")]
        ops.append(op(name, channel_type="port", channel_ids=list(ids), src_buff=[own("i", q) for q in peers],
                      dst_buff=[at(i, r) for i in ids]))
        if name == "put":
            ops.append(signal(ids, kind="port"))
        if flush and name != "pwsf":
            ops.append(signal(ids, "flush", "port"))
        ops.append(op("copy", src_buff=[own("i", r)], dst_buff=[own("o", r)]))
        ops.append(signal(ids, "wait", "port"))
    return a


def switch_allreduce(p):
    """The switch reduces and stores a part for every rank."""
    a = Plan("allreduce", p, (p, p), inplace=True)
    a.connect()
    for r in range(p):
        a.gpu(r)["channels"].append({"channel_type": "switch", "buffer_type": "i",
                                     "rank_groups": [{"size": p, "ranks": list(range(p))}]})
        ops, ids = a.block(r), range(p - 1)
        a.gpu(r)["threadblocks"][-1]["channels"].append({"channel_type": "switch", "channel_ids": [0]})
        ops += [signal(ids), signal(ids, "wait"), NOP]
        ops.append(op("glres", channel_type="switch", src_buff=[{"switch_channel_id": 0, "index": r, "size": 1}],
                      dst_buff=[{"switch_channel_id": 0, "index": r, "size": 1}]))
        ops += [NOP, signal(ids), signal(ids, "wait")]
    return a


def group_allgather(p):
    a = Plan("allgather", p, (1, p))
    a.connect()
    for r in range(p):
        a.gpu(r)["channels"].append({"channel_type": "switch", "buffer_type": "o",
                                     "rank_groups": [{"size": p, "ranks": list(range(p))}]})
        ops, ids = a.block(r), range(p - 1)
        a.gpu(r)["threadblocks"][-1]["channels"].append({"channel_type": "switch", "channel_ids": [0]})
        ops += [signal(ids), signal(ids, "wait"), NOP,
                op("gstore", channel_type="switch", src_buff=[own("i", 0)],
                   dst_buff=[{"switch_channel_id": 0, "index": r, "size": 1}]),
                NOP, signal(ids), signal(ids, "wait")]
    return a


def blocks_allreduce(p, barrier="barrier"):
    """Two blocks: one fetches every rank's input into scratch, the other reduces locally; joined by a barrier or a semaphore."""
    a = Plan("allreduce", p, (1, 1), scratch=p)
    a.connect()
    for r in range(p):
        first = a.remote(r, "i")
        ids = range(p - 1)
        one, two = a.block(r, buffers=range(first, first + p - 1)), a.block(r, channels=False)
        meet = op("barrier", barrier_id=3, num_threadblocks=2)
        one += [signal(ids), signal(ids, "wait"), NOP,
                op("get", channel_type="memory", src_buff=[at(i, 0) for i in ids], dst_buff=[own("s", q) for q in a.peers(r)]),
                NOP, signal(ids), signal(ids, "wait")]
        if barrier == "barrier":
            one.append(meet)
            two.append(meet)
        else:
            a.gpu(r)["semaphores"].append({"init_value": 0})
            one.append(op("sem_release", semaphore_ids=[0]))
            two += [op("sem_acquire", semaphore_ids=[0]), NOP]
        two.append(op("re", src_buff=[own("i", 0)] + [own("s", q) for q in a.peers(r)], dst_buff=[own("o", 0)]))
    return a


def pipeline_broadcast(p):
    """The root puts in units, with a signal for each; the others copy unit after unit."""
    a = Plan("broadcast", p, (1, 1), scratch=1)
    a.connect()
    for r in range(p):
        first = a.remote(r, "s")
        ops, ids = a.block(r, buffers=range(first, first + p - 1)), list(range(p - 1))
        root = [a.peers(r).index(0)] if r else []
        context = {"unit_size": 4096, "num_chunks": 1}
        if r == 0:
            ops += [signal(ids, "wait"),  NOP, op("pipeline", iter_context=context, ops=[
                op("put", channel_type="memory", channel_ids=ids, src_buff=[own("i", 0)] * (p - 1), dst_buff=[at(i, 0) for i in ids]),
                NOP, signal(ids)]), op("copy", src_buff=[own("i", 0)], dst_buff=[own("o", 0)])]
        else:
            ops += [signal(root), op("pipeline", iter_context=context, ops=[
                signal(root, "wait"), NOP, op("copy", src_buff=[own("s", 0)], dst_buff=[own("o", 0)])])]
    return a


def grouped_copy(sizes=(2, 2)):
    """Two blocks of a group make two copies in a row; if the sizes differ, so do their parts, and one block reads what the other writes."""
    a = Plan("allreduce", 1, (4, 4), scratch=4)
    a.top["collective"] = "custom"
    for t in range(2):
        ops = a.block(0, channels=False)
        part = {"tb_id": t, "tbg_size": 2}
        for c in range(0, 4, sizes[0]):
            ops.append(op("copy", tbg_info=part, src_buff=[own("i", c, sizes[0])], dst_buff=[own("s", c, sizes[0])]))
        for c in range(0, 4, sizes[1]):
            ops.append(op("copy", tbg_info=part, src_buff=[own("s", c, sizes[1])], dst_buff=[own("o", c, sizes[1])]))
    return a


def without(plan, name, which=0, block=None):
    """The plan without the which-th op of that name in every block, or in those of one number."""
    a = copy.deepcopy(plan)
    for gpu in a.top["gpus"]:
        for tb in gpu["threadblocks"]:
            if block is not None and tb["id"] != block:
                continue
            found = [i for i, o in enumerate(tb["ops"]) if o["name"] == name]
            if len(found) > which:
                del tb["ops"][found[which]]
    return a


OLD_NAMES = {"rre": "rrc", "rres": "rrcs", "res": "rs", "respkt": "rspkt", "repkt": "rpkt", "upkt": "cpkt", "cpkt": "tpkt",
             "rlxsignal": "rlsignal", "rlxwait": "rlwait"}
OLD_TYPES = {"memory": "sm", "port": "proxy"}


def older_op(o, tb, gpu, plan, key):
    """The op in the form of the first executors; a list, because some of their ops take one source only."""
    kind, rank = o.get("channel_type"), gpu["id"]
    buff = {"src": key[0], "dst": key[1]}
    new = {"name": OLD_NAMES.get(o["name"], o["name"]), "cnt": 1}
    if kind:
        new["ctype"] = OLD_TYPES[kind]
    src, dst = o.get("src_buff", []), o.get("dst_buff", [])
    remotes = [gpu["remote_buffers"][i] for ref in tb["remote_buffer_refs"] for i in ref["remote_buffer_ids"]]

    def cids(operands):
        return [{"id": plan.peers(rank).index(remotes[x["buffer_id"]]["rank"]), "off": x["index"]} for x in operands if "buffer_id" in x]

    def places(operands):
        return [{"buff": x["type"], "off": x["index"]} for x in operands if "type" in x]

    if o["name"] in ("signal", "rlxsignal", "flush"):
        new.update(o_buff=buff, o_cids=[{"id": i, "off": 0} for i in o["channel_ids"]])
    elif o["name"] in ("wait", "rlxwait"):
        new.update(i_buff=buff, i_cids=[{"id": i, "off": 0} for i in o["channel_ids"]])
    elif o["name"] == "barrier":
        new.update(barrier_id=o["barrier_id"], nthread_blocks=o["num_threadblocks"])
    elif o["name"] in ("put", "pws", "pwsf"):
        new.update(o_buff=buff, o_cids=cids(dst), srcs=places(src))
    elif o["name"] == "ppkt":
        return [dict(new, o_buff=buff, o_cids=cids([to]), srcbuff=one["type"], srcoff=one["index"]) for one, to in zip(src, dst)]
    elif o["name"] == "get":
        new.update(i_buff=buff, i_cids=cids(src), dsts=places(dst))
    elif src:
        new.update(srcbuff=src[0]["type"], srcoff=src[0]["index"], dstbuff=dst[0]["type"], dstoff=dst[0]["index"])
        if cids(src):
            new.update(i_buff=buff, i_cids=cids(src))
        elif len(src) > 1 or o["name"] == "re":
            new["srcs"] = places(src[1:])
        if cids(dst):
            new.update(o_buff=buff, o_cids=cids(dst))
    return [new]


def older(plan, src, dst):
    """The plan in the form of the first executors, with all channels between these two buffers."""
    old = copy.deepcopy(plan)
    old.top["colletive"] = old.top.pop("collective")
    for key in ("reuse_resources", "use_double_scratch_buffer", "buffer_alignment"):
        old.top.pop(key)
    for gpu, new in zip(plan.top["gpus"], old.top["gpus"]):
        for name in ("input", "output", "scratch"):
            new[name + "Chunks"] = new.pop(name + "_chunks")
        new.update(chunkGroups=1, channels=[])
        kinds = [c["channel_type"] for c in gpu["channels"]] or ["memory"]
        for kind in kinds:
            new["channels"].append({"srcbuff": src, "dstbuff": dst, "type": OLD_TYPES[kind], "connectedTo": plan.peers(gpu["id"])})
        del new["remote_buffers"], new["semaphores"]
        for tb, block in zip(gpu["threadblocks"], new["threadblocks"]):
            block["ops"] = [n for o in tb["ops"] for n in older_op(o, tb, gpu, plan, (src, dst))]
            block["channels"] = [{"src": src, "dst": dst, "ctype": OLD_TYPES[kinds[0]], "cids": list(range(plan.nranks - 1))}]
            del block["remote_buffer_refs"]
    return old


def older_cases():
    """Plans in the form of the first executors, with the verdicts of the newer form."""
    for p in (2, 3, 4):
        yield f"older_allgather{p}", older(put_allgather(p), "i", "o"), "proved"
        yield f"older_rrc{p}", older(get_allreduce(p), "i", "i"), "proved"
        yield f"older_relaxed{p}", older(get_allreduce(p, True), "i", "i"), "proved"
        yield f"older_rrcs{p}", older(get_allreduce(p, reducer="rres"), "i", "i"), "proved"
        yield f"older_packets{p}", older(packet_allreduce(p), "i", "s"), "proved"
        yield f"older_relay{p}", older(without(relay_broadcast(p), "rppkt"), "s", "s"), "refuted"
        yield f"older_blocks{p}", older(blocks_allreduce(p), "s", "i"), "proved"
        for name in ("put", "pws", "pwsf"):
            yield f"older_port_{name}{p}", older(port_alltoall(p, name=name), "i", "o"), "proved"
        yield f"older_no_nop{p}", older(without(put_allgather(p), "nop"), "i", "o"), "race"
        yield f"older_no_wait{p}", older(without(put_allgather(p), "wait"), "i", "o"), "refuted"
        yield f"older_no_barrier{p}", older(without(blocks_allreduce(p), "barrier"), "s", "i"), "race"
    wrong = older(put_allgather(2), "i", "o")
    wrong.gpu(0)["threadblocks"][0]["channels"][0]["dst"] = "s"
    yield "older_no_channel", wrong, "unreadable"
    wrong = older(put_allgather(2), "i", "o")
    wrong.gpu(0)["threadblocks"][0]["ops"][0]["o_cids"][0]["id"] = 7
    yield "older_no_id", wrong, "unreadable"
    wrong = older(put_allgather(2), "i", "o")
    wrong.gpu(0)["threadblocks"][0]["ops"][0]["name"] = "glres"
    yield "older_switch", wrong, "unreadable"


def cases():
    """(name, plan, verdict): proved, or a fault that it must have, or 'refuted' for any."""
    for p in (2, 3, 4):
        yield f"put_allgather{p}", put_allgather(p), "proved"
        yield f"put_allgather_in{p}", put_allgather(p, True), "proved"
        yield f"get_allreduce{p}", get_allreduce(p), "proved"
        yield f"relaxed_allreduce{p}", get_allreduce(p, True), "proved"
        yield f"early_copy{p}", early_copy(p), "proved"
        yield f"early_copy_forwarded{p}", early_copy(p, True), "race"
        yield f"rres_allreduce{p}", get_allreduce(p, reducer="rres"), "proved"
        yield f"packet_allreduce{p}", packet_allreduce(p), "proved"
        yield f"packet_copies{p}", packet_allreduce(p, True), "proved"
        yield f"relay_broadcast{p}", relay_broadcast(p), "refuted"  # nothing keeps rank 0 from being two launches ahead
        for name in ("put", "pws", "pwsf"):
            yield f"port_alltoall_{name}{p}", port_alltoall(p, name=name), "proved"
        yield f"port_without_flush{p}", port_alltoall(p, flush=False), "proved"  # the wait for the peers' signals follows it
        yield f"switch_allreduce{p}", switch_allreduce(p), "proved"
        yield f"group_allgather{p}", group_allgather(p), "proved"
        yield f"barrier_blocks{p}", blocks_allreduce(p), "proved"
        yield f"semaphore_blocks{p}", blocks_allreduce(p, "semaphore"), "proved"
        yield f"pipeline_broadcast{p}", pipeline_broadcast(p), "proved"
        # Ops left out.
        yield f"no_first_nop{p}", without(put_allgather(p), "nop"), "race"
        yield f"no_second_nop{p}", without(get_allreduce(p), "nop", 1), "race"
        yield f"no_wait{p}", without(put_allgather(p), "wait"), "refuted"
        yield f"no_signal{p}", without(put_allgather(p), "signal"), "refuted"
        yield f"no_barrier{p}", without(blocks_allreduce(p), "barrier"), "race"
        yield f"no_barrier_in_one{p}", without(blocks_allreduce(p), "barrier", 0, 0), "deadlock"
        yield f"no_acquire{p}", without(blocks_allreduce(p, "semaphore"), "sem_acquire"), "no plan"
        yield f"no_release{p}", without(blocks_allreduce(p, "semaphore"), "sem_release"), "deadlock"
        one = packet_allreduce(p)
        one.top["use_double_scratch_buffer"] = False
        yield f"single_scratch{p}", one, "proved"  # every rank's result says that it has read all packets
        other = packet_allreduce(p)
        other.gpu(0)["scratch_chunks"] = 2 * p - 1
        yield f"other_scratch{p}", other, "refuted"
    yield "grouped_even", grouped_copy(), "proved"
    yield "grouped_uneven", grouped_copy((4, 2)), "race"
