# SPDX-License-Identifier: Apache-2.0
"""The stand-ins of iris and Triton-distributed: what each call is recorded as, and verdicts of small programs that use it."""
import os
import sys
import tempfile
import unittest

import tile_command
from peal.record import Refused
from peal.tiles import core, program

IRIS = """
import torch, triton, triton.language as tl
import iris
ctx = iris.iris(1 << 20)
rank, world, bases = ctx.get_rank(), ctx.get_num_ranks(), ctx.get_heap_bases()
"""
DIST = """
import torch, triton, triton.language as tl
import triton_dist, triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import tid, __syncthreads, ld, st, atomic_add, atomic_cas
import triton_dist.utils as U
group = U.initialize_distributed()
rank, world = group.rank(), group.size()
x, y = U.nvshmem_create_tensor((64,), torch.float32), U.nvshmem_create_tensor((64,), torch.float32)
flags = U.nvshmem_create_tensor((world,), torch.int64)
x.copy_(torch.randn(64, device="cuda"))
flags.fill_(0)
U.nvshmem_barrier_all_on_stream()
"""


def write(folder, text):
    path = os.path.join(folder, "run.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def record(text, ranks=2):
    with tempfile.TemporaryDirectory() as folder:
        return program.record(write(folder, text), ranks, program.Options("calls=1"))


def ops(text, rank=0):
    lines = text.split(f"\nrank {rank}\n")[1].split("\nrank ")[0].splitlines()
    return [line for line in lines if line and line.split()[0] not in ("at", "lane", "block", "note", "order", "join")]


def kernel(body, arguments="x, y, flags", threads=128):
    names = [name.strip() for name in arguments.split(",")]
    inside = "\n".join("    " + line for line in body.strip().splitlines())
    return (f"@triton_dist.jit\ndef kernel({arguments}, rank, world: tl.constexpr):\n{inside}\n"
            f"kernel[(1,)]({', '.join(names)}, rank, world, num_warps={threads // 32})\n")


class Iris(unittest.TestCase):
    def test_accesses_reach_the_same_place_of_a_peer(self):
        there = core.heap(1) - core.heap(0)
        text = record(IRIS + """
a = ctx.empty(8)
b = ctx.empty(8)
@triton.jit
def kernel(a, b, bases, rank: tl.constexpr):
    at = tl.arange(0, 8)
    iris.store(b + at, iris.load(a + at, rank, 1 - rank, bases), rank, 1 - rank, bases)
    iris.put(a + at, b + at, rank, 1 - rank, bases)
    iris.get(a + at, b + at, rank, 1 - rank, bases)
    iris.copy(a + at, b + at, rank, 1 - rank, rank, bases)
kernel[(1,)](a, b, bases, rank)
""")
        a, b = (int(line.split()[4], 0) for line in text.splitlines() if line.startswith(("region window a 0 ", "region window b 0 ")))
        copies = [[int(word.split("@")[1].split("*")[0], 0) for word in line.split()[1:]] for line in ops(text) if line.startswith("copy")]
        memory = [[one for one in copy if one < core.TILES][0] for copy in copies]
        self.assertEqual(memory, [a + there, b + there, a, b + there, a + there, b, a, b + there])

    def test_atomics_have_an_order_and_a_scope(self):
        text = record(IRIS + """
f = ctx.zeros(16, dtype=torch.int32)
@triton.jit
def kernel(f, bases, rank: tl.constexpr):
    iris.atomic_add(f, 1, rank, 1 - rank, bases, sem="release", scope="sys")
    iris.atomic_add(f + 1, 2, rank, 1 - rank, bases)
    iris.atomic_sub(f + 2, 3, rank, rank, bases, sem="relaxed", scope="sys")
    iris.atomic_xchg(f + 3, 4, rank, 1 - rank, bases, sem="release", scope="sys")
    while iris.atomic_cas(f + 4, 0, 1, rank, 1 - rank, bases, sem="acquire", scope="sys") != 0:
        pass
kernel[(1,)](f, bases, rank)
""")
        said = [" ".join([line.split()[0], *line.split()[3:]]) for line in ops(text) if line.split()[0] in ("notify", "take")]
        self.assertEqual(said, ["notify add 1 release system", "notify add 2 acq_rel device", "notify add -3 relaxed system",
                                "notify set 4 release system", "take 0 1 acquire system"])

    def test_a_barrier_orders_all_ranks(self):
        self.assertIn("host_barrier", record(IRIS + "a = ctx.ones(8)\nctx.barrier()\nb = a + a\nctx.barrier()\n"))


class Distributed(unittest.TestCase):
    def test_a_put_with_a_signal_is_a_lane(self):
        said = ops(record(DIST + kernel("shmem.putmem_signal_nbi_block(y, x, 256, flags + rank, 1, shmem.NVSHMEM_SIGNAL_SET, 1 - rank)")))
        moved = [line for line in said if line.startswith("copy") and f"{core.heap(1):#x}"[:6] in line]
        self.assertEqual(len(moved), 1)
        self.assertTrue(any(line.startswith("notify") and line.endswith("8 set 1 release system") for line in said))

    def test_threads_signal_ranks(self):
        body = "thread = tid(0)\nif thread < world and thread != rank:\n    shmem.signal_op(flags + rank, 5, shmem.NVSHMEM_SIGNAL_ADD, thread)\n__syncthreads()"
        said = [line for line in ops(record(DIST + kernel(body), 4)) if "add 5" in line]
        self.assertEqual([(int(line.split()[1], 0) - core.heap(0)) // core.HEAP_BYTES for line in said], [1, 2, 3])

    def test_each_thread_of_a_branch_has_a_lane(self):
        text = record(DIST + kernel("thread = tid(0)\nif thread < world:\n    while atomic_cas(dl.symm_at(flags, thread), 0, 1, 'sys', 'release') != 0:\n"
                                    "        pass\n__syncthreads()"), 3)
        own = text.split("\nrank 0\n")[1].split("\nrank ")[0]
        lanes = [part.splitlines()[0].split()[1] for part in own.split("\nlane ") if "\ntake " in part]
        self.assertEqual(lanes, ["p0.t0", "p0.t1", "p0.t2"])

    def test_waits(self):
        for body, wanted in (("shmem.signal_wait_until(flags, shmem.NVSHMEM_CMP_EQ, 3)", "== 3 acquire system"),
                             ("shmem.signal_wait_until(flags, shmem.NVSHMEM_CMP_GE, 3)", ">= 3 acquire system"),
                             ("dl.wait(flags, 1, 'gpu', 'acquire', waitValue=2)", "== 2 acquire device"),
                             ("while ld(flags, scope='sys', semantic='acquire') != 7:\n    pass", "== 7 acquire system")):
            with self.subTest(body):
                waits = [line for line in ops(record(DIST + kernel(body))) if line.startswith("wait") and line.endswith(wanted)]
                self.assertEqual(len(waits), 1)

    def test_a_wait_for_a_peers_signal_is_a_swap(self):
        self.assertTrue(any(line.startswith("take") and " 2 2 acquire" in line for line in ops(record(DIST + kernel(
            "token = dl.wait(dl.symm_at(flags, 1 - rank), 1, 'sys', 'acquire', waitValue=2)\nx = dl.consume_token(x, token)")))))

    def test_what_is_unknown_is_refused_where_it_is_called(self):
        for body in ("shmem.signal_wait_until(flags, shmem.NVSHMEM_CMP_LT, 3)", "shmem.broadcastmem_block(0, y, x, 256, 0)"):
            with self.subTest(body), self.assertRaises(Refused) as error:
                record(DIST + kernel(body))
            self.assertIn("run.py:16", str(error.exception))


@unittest.skipUnless(tile_command.COMMAND, "no command")
class Verdicts(unittest.TestCase):
    """A put, something that orders it, a signal, a wait, and a use of what came."""

    def verdict(self, text):
        answer = tile_command.run_text("verify", text, "-n", "2", "--calls", "1")
        return answer.verdicts().get(2, answer.said)

    PUT = "shmem.putmem_nbi_block(y, x, 256, 1 - rank)\n{}\nshmem.signal_op(flags + rank, 1, shmem.NVSHMEM_SIGNAL_SET, 1 - rank)\n"
    USE = ("shmem.signal_wait_until(flags + (1 - rank), shmem.NVSHMEM_CMP_EQ, 1)\n__syncthreads()\nat = tl.arange(0, 64)\n"
           "tl.store(x + at, tl.load(y + at))")

    def test_puts_are_ordered_by_fences(self):
        for between, wanted in (("shmem.fence()", "race"), ("shmem.quiet()", "proved"), ("pass", "race")):
            # Without quiet the source may not be written again; without fence the signal may come first.
            with self.subTest(between):
                self.assertEqual(self.verdict(DIST + kernel(self.PUT.format(between) + self.USE)), wanted)

    def test_threads_are_ordered_by_barriers(self):
        body = ("at = tl.arange(0, 64)\ntl.store(dl.symm_at(y, 1 - rank) + at, tl.load(x + at))\n{}\nif tid(0) == 0:\n"
                "    dl.notify(flags + rank, 1 - rank, signal=1, sig_op='set', comm_scope='intra_node')\n"
                "    shmem.signal_wait_until(flags + (1 - rank), shmem.NVSHMEM_CMP_EQ, 1)\n__syncthreads()\ntl.store(x + at, tl.load(y + at))")
        for between, wanted in (("__syncthreads()", "proved"), ("pass", "race")):
            with self.subTest(between):
                self.assertEqual(self.verdict(DIST + kernel(body.format(between))), wanted)

    def test_iris_flags(self):
        text = IRIS + """
a, f = ctx.empty(8), ctx.zeros(1, dtype=torch.int32)
given = torch.randn(8, device="cuda")
ctx.barrier()
@triton.jit
def kernel(given, a, f, bases, rank: tl.constexpr):
    at = tl.arange(0, 8)
    iris.store(a + at, tl.load(given + at), rank, 1 - rank, bases)
    iris.atomic_add(f, 1, rank, 1 - rank, bases, sem="SEM", scope="SCOPE")
    while iris.atomic_add(f, 0, rank, rank, bases, sem="acquire", scope="sys") < 1:
        pass
    tl.store(given + at, tl.load(a + at))
kernel[(1,)](given, a, f, bases, rank)
"""
        for sem, scope, wanted in (("release", "sys", "proved"), ("relaxed", "sys", "race"), ("release", "gpu", "race")):
            with self.subTest(f"{sem} {scope}"):
                self.assertEqual(self.verdict(text.replace("SEM", sem).replace("SCOPE", scope)), wanted)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
