# SPDX-License-Identifier: Apache-2.0
"""The rules of the engines' own readers, after their public sources: RCCL's reader of XML, which is not an XML parser, and the
keys, types and orders that MSCCL++'s executor relies on."""
import json


class Refused(Exception):
    pass


def rccl_elements(text):
    """[(name, attributes, "open", "close" or "single")], read character by character as RCCL does."""
    at, out = 0, []

    def token(value_allowed):
        """(name, value or None, the character that ended it)"""
        nonlocal at
        name = ""
        while True:
            c = text[at]
            at += 1
            if c == "=":
                if not value_allowed:
                    raise Refused("a value after an element's name")
                if text[at] != '"':
                    raise Refused("no double quote")
                end = text.index('"', at + 1)
                value, at = text[at + 1:end], end + 2
                if len(value) > 255:
                    raise Refused("too long")
                return name, value, text[end + 1]
            if c in " >/\n\r":
                return name, None, c
            name += c

    while True:
        while at < len(text) and text[at] in " \n\r":
            at += 1
        if at == len(text):
            return out
        if text[at] != "<":
            raise Refused(f"'<' expected, got {text[at]!r}")
        at += 1
        name, _, last = token(False)
        if name.startswith("!--"):
            at = text.index("-->", at - 1) + 3
            continue
        if name == "" and last == "/":
            name, _, last = token(False)
            if last != ">":
                raise Refused("a closing tag does not end")
            out.append((name, {}, "close"))
            continue
        attributes, count = {}, 0
        while last == " ":
            key, value, last = token(True)
            count += 1
            if count <= 16 and key not in attributes:
                attributes[key] = value
        kind = "open"
        if last == "/":
            kind = "single"
            last = token(False)[2]
        if last != ">":
            raise Refused(f"'>' expected, got {last!r}")
        out.append((name, attributes, kind))


STEP = ("s", "srcoff", "srcbuf", "dstoff", "dstbuf", "cnt", "type", "depid", "deps", "hasdep")
NEEDED = {"algo": ("nchunksperloop", "nchannels", "ngpus", "proto", "coll", "minBytes", "maxBytes", "inplace", "outofplace"),
          "gpu": ("id", "i_chunks", "o_chunks", "s_chunks"), "tb": ("id", "recv", "send", "chan"), "step": STEP}
COLLECTIVES = ("reduce", "broadcast", "allreduce", "reducescatter", "allgather", "send", "recv", "gather", "scatter", "alltoall",
               "alltoallv")


def rccl_loads(text):
    """Raises Refused, or returns the elements."""
    elements, stack, blocks, steps = rccl_elements(text), [], {}, {}
    for name, attributes, kind in elements:
        if kind == "close":
            if stack.pop() != name:
                raise Refused(f"{name} closes another element")
            continue
        missing = [key for key in NEEDED.get(name, ()) if attributes.get(key) is None]
        if missing:
            raise Refused(f"{name} has no {missing}")
        if name == "algo" and attributes["coll"] not in COLLECTIVES:
            raise Refused(attributes["coll"])
        if name == "gpu":
            gpu, wants = attributes, False
            blocks[gpu["id"]] = 0
            sizes = {"i": int(gpu["i_chunks"]), "o": int(gpu["o_chunks"]), "s": int(gpu["s_chunks"])}
        if name == "tb":
            if int(attributes["id"]) != blocks[gpu["id"]] or blocks[gpu["id"]] >= 64:
                raise Refused("thread blocks have gaps, or are too many")
            blocks[gpu["id"]] += 1
            steps, wants, block = 0, False, attributes
            if gpu["id"] in (block["send"], block["recv"]):
                raise Refused("a block talks to its own gpu")
        if name == "step":
            step(attributes, block, sizes, steps, wants)
            wants = attributes["type"] == "nop" and (wants or int(attributes["depid"]) >= 0)
            steps += 1
        if kind == "open":
            stack.append(name)
    if stack:
        raise Refused("an element has no end")
    return elements


def step(s, block, sizes, number, wants):
    kind = s["type"]
    if kind not in ("s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"):
        raise Refused(kind)
    if int(s["s"]) != number or number >= 64 or not 0 <= int(s["cnt"]) < 72 or s["hasdep"] not in ("0", "1"):
        raise Refused(f"step {s}")
    if wants and kind != "nop" and int(s["depid"]) < 0:
        raise Refused("the step after a nop does not wait itself")
    if kind in ("s", "rcs", "rrs", "rrcs") and int(block["send"]) < 0:
        raise Refused("no peer to send to")
    if kind in ("r", "rcs", "rrs", "rrc", "rrcs") and int(block["recv"]) < 0:
        raise Refused("no peer to receive from")
    for side in ("src", "dst"):
        if s[side + "buf"] not in sizes or int(s[side + "off"]) >= max(1, sizes[s[side + "buf"]]):
            raise Refused(f"{side} of {s}")


OPS = ("nop barrier put pws pwsf get copy signal wait flush re res rre rres ppkt rppkt respkt cpkt upkt repkt recpkt recspkt glres "
       "gstore rlxsignal rlxwait pipeline sem_acquire sem_release").split()
TYPES = ("memory", "port", "none", "switch")


def need(good, what):
    if not good:
        raise Refused(what)


def mscclpp_loads(text, input_bytes, output_bytes):
    """Raises Refused, or returns the plan."""
    plan = json.loads(text)
    for key, kind in (("name", str), ("collective", str), ("protocol", str), ("inplace", bool), ("gpus", list)):
        need(isinstance(plan[key], kind), key)
    align = plan.get("buffer_alignment", 16)
    for key in ("min_message_size", "max_message_size", "num_threads_per_block", "buffer_alignment"):
        need(isinstance(plan.get(key, 1), int) and 0 <= plan.get(key, 1) < 1 << 64, key)
    for rank, gpu in enumerate(plan["gpus"]):
        need(gpu["id"] == rank, "gpus are taken by their place")
        need(input_bytes % align == 0 and output_bytes % align == 0, "alignment")
        need((input_bytes // align) % gpu["input_chunks"] == 0 and (output_bytes // align) % gpu["output_chunks"] == 0, "chunks")
        need(input_bytes // gpu["input_chunks"] == output_bytes // gpu["output_chunks"], "sizes of chunks")
        need(isinstance(gpu["scratch_chunks"], int), "scratch")
        channels = {kind: [p for c in gpu["channels"] if c["channel_type"] == kind for p in c.get("connected_to", [])]
                    for kind in TYPES}
        for peers in channels.values():
            need(all(isinstance(p, int) and 0 <= p < len(plan["gpus"]) and p != rank for p in peers), "peers")
        for remote in gpu["remote_buffers"]:
            need(remote["type"] in "ios" and set(remote["access_channel_types"]) <= set(TYPES), "remote buffer")
        for place, block in enumerate(gpu["threadblocks"]):
            need(block["id"] == place, "blocks are taken by their place")
            own = {kind: [i for c in block["channels"] if c["channel_type"] == kind for i in c["channel_ids"]] for kind in TYPES}
            need(all(i < len(channels[kind]) for kind in TYPES for i in own[kind]), "channels of a block")
            remotes = [i for r in block.get("remote_buffer_refs", []) for i in r["remote_buffer_ids"]]
            need(all(i < len(gpu["remote_buffers"]) for i in remotes), "buffers of a block")
            need(len(block["ops"]) <= 64, "ops of a block")
            for op in block["ops"]:
                operation(op, own, remotes, gpu)
    return plan


def operation(op, own, remotes, gpu):
    need(op["name"] in OPS, op["name"])
    ids = op.get("channel_ids", [])
    need(len(ids) <= 16 and all(i < len(own[op["channel_type"]]) for i in ids), f"channels of {op}")
    need(all(i < len(gpu["semaphores"]) for i in op.get("semaphore_ids", [])), f"semaphores of {op}")
    chunks = {"i": gpu["input_chunks"], "o": gpu["output_chunks"], "s": gpu["scratch_chunks"]}
    for side in ("src_buff", "dst_buff"):
        for operand in op.get(side, []):
            need(("type" in operand) != ("buffer_id" in operand), f"operand of {op}")
            if "buffer_id" in operand:
                need(op.get("channel_type") == "memory" and operand["buffer_id"] < len(remotes), f"buffer of {op}")
            else:
                need(operand["index"] + operand["size"] <= chunks[operand["type"]], f"operand of {op}")
