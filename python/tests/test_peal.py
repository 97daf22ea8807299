# SPDX-License-Identifier: Apache-2.0
"""The package against numpy: collectives, simulations, proofs, hosts. Run with PEAL_LIBRARY=build/libpeal.so.0."""
import array
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import peal  # noqa: E402
from peal import _library  # noqa: E402

RACY = """
kernel racy(in x: T[n], out y: T[n], op: reduce) implements allreduce {
    window slot: T[n]
    signal ready[nranks]
    slot = x
    for p in peers { notify ready[rank]@p += 1 }
    for p in peers { wait ready[p] >= 1 }
    let acc = slot@0
    for q in 1 .. nranks { acc = op(acc, slot@q) }
    y = acc
}
"""


def in_threads(size, body):
    """body(comm) on every rank; returns what they returned."""
    comms, results, errors = peal.Comm.threads(size), [None] * size, []

    def run(rank):
        try:
            results[rank] = body(comms[rank])
        except BaseException as error:  # pylint: disable=broad-except
            errors.append(error)
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for comm in comms:
        comm.close()
    if errors:
        raise errors[0]
    return results


def a_process(rank, size, job, queue):
    with peal.Comm(size, rank, job) as comm:
        queue.put(float(comm.allreduce(np.full(8, rank + 1, "f4"))[3]))


SMOOTH = "reduce smooth(a, b) = a / 2 + b"


class Collectives(unittest.TestCase):
    def test_every_collective(self):
        size = 3

        def body(comm):
            r = comm.rank
            x = np.arange(6, dtype="f4") + 100 * r
            full = np.arange(6, dtype="f4") * size + 300
            comm.barrier()
            np.testing.assert_array_equal(comm.allreduce(x), full)
            np.testing.assert_array_equal(comm.allreduce(x, "max"), np.arange(6) + 200)
            np.testing.assert_array_equal(comm.allreduce(x, SMOOTH), np.arange(6) * 1.75 + 250)
            got = comm.reduce(x, root=1)
            self.assertTrue((got == full).all() if r == 1 else got is None)
            b = x.copy()
            comm.broadcast(b, root=2)
            np.testing.assert_array_equal(b, np.arange(6) + 200)
            np.testing.assert_array_equal(comm.allgather(x)[1], np.arange(6) + 100)
            np.testing.assert_array_equal(comm.reduce_scatter(x), full[2 * r:2 * r + 2])
            got = comm.gather(x, root=0)
            self.assertTrue(got is None if r else (got[2] == np.arange(6) + 200).all())
            part = np.zeros(2, "f4")
            comm.scatter(full if r == 0 else None, part, root=0, dtype="f32")
            np.testing.assert_array_equal(part, full[2 * r:2 * r + 2])
            np.testing.assert_array_equal(comm.all_to_all(x)[4:6], np.arange(2) + 2 * r + 200)
            counts = [1, 2, 3]
            np.testing.assert_array_equal(comm.allgather_v(x[:counts[r]].copy(), counts), [0, 100, 101, 200, 201, 202])
            request = comm.allreduce(x, request=True)
            np.testing.assert_array_equal(request.wait(), full)
            if r == 0:
                comm.send(x, 1, tag=5)
            elif r == 1:
                into = np.zeros(6, "f4")
                self.assertEqual(comm.recv(into, 0, 5), (24, 0))
                np.testing.assert_array_equal(into, np.arange(6))
            half = comm.split(0 if r < 2 else -1)
            if half:
                self.assertEqual(half.size, 2)
                half.close()
            return True
        self.assertEqual(in_threads(size, body), [True] * size)

    def test_buffer_protocol(self):
        def body(comm):
            return list(comm.allreduce(array.array("d", [1.5, comm.rank])))
        self.assertEqual(in_threads(2, body), [[3.0, 1.0]] * 2)

    def test_processes(self):
        context = multiprocessing.get_context("spawn")
        queue, job = context.Queue(), f"python-{os.getpid()}"
        children = [context.Process(target=a_process, args=(rank, 2, job, queue)) for rank in range(2)]
        for child in children:
            child.start()
        self.assertEqual([queue.get(timeout=1500) for _ in children], [3.0, 3.0])
        for child in children:
            child.join()

    def test_wrong_calls(self):
        with peal.Comm.threads(1)[0] as comm:
            with self.assertRaises(ValueError):
                comm.allreduce(np.zeros(4, "f4,i8"))
            with self.assertRaises(ValueError):
                comm.allreduce(np.zeros(4, "f4"), op="median")
            with self.assertRaises(peal.PealError) as caught:
                comm.broadcast(np.zeros(4, "f4"), root=7)
            self.assertEqual(caught.exception.status, "invalid")

    def test_scans_and_pairs(self):
        def body(comm):
            x = np.full(5, comm.rank + 1, "i4")
            up_to = (comm.rank + 1) * (comm.rank + 2) // 2
            np.testing.assert_array_equal(comm.scan(x), np.full(5, up_to))
            np.testing.assert_array_equal(comm.exscan(x), np.full(5, up_to - comm.rank - 1))
            pair = np.array([((comm.rank * 2) % 3, comm.rank)], [("value", "f8"), ("index", "i8")])
            return comm.allreduce(pair, "maxloc").tolist()
        self.assertEqual(in_threads(3, body), [[(2.0, 1)]] * 3)

    def test_revoked(self):
        def body(comm):
            if comm.rank == 0:
                comm.revoke()
            with self.assertRaises(peal.PealError) as caught:
                for _ in range(1000):
                    comm.barrier()
            return caught.exception.status
        self.assertEqual(in_threads(3, body), ["revoked"] * 3)


class Simulations(unittest.TestCase):
    def test_operations(self):
        x = np.arange(12, dtype="f4").reshape(3, 4)
        y = np.zeros_like(x)
        peal.simulate("allreduce_mesh", x, y, SMOOTH, machine="mesh4x4", ranks=3)
        np.testing.assert_array_equal(y[1], (x[0] / 2 + x[1]) / 2 + x[2])
        peal.simulate("scan_relay", x, y, "sum", machine="mesh4x4", ranks=3)
        np.testing.assert_array_equal(y, np.cumsum(x, axis=0))
        pairs = np.zeros((3, 4), [("value", "f4"), ("index", "i4")])
        pairs["value"], pairs["index"] = (x * 5) % 7, np.arange(3)[:, None]
        least = np.zeros_like(pairs)
        peal.simulate("allreduce_ring", pairs, least, "minloc", machine="mesh4x4", ranks=3, dtype="f32_i32")
        np.testing.assert_array_equal(least["index"][2], np.argmin(pairs["value"], axis=0))
        with self.assertRaisesRegex(peal.PealError, "no reduction 'none'"):
            peal.simulate("allreduce_ring", x, y, "none", machine="mesh4x4", ranks=3)

    def test_data_and_time(self):
        x = np.arange(4 * 256, dtype="f4").reshape(4, 256)
        y = np.zeros_like(x)
        run = peal.simulate("allreduce_ring", x, y, "sum", machine="mesh4x4", ranks=4)
        np.testing.assert_array_equal(y, np.broadcast_to(x.sum(axis=0), y.shape))
        self.assertGreater(run.time_ps, 0)
        self.assertEqual(sum(run.causes.values()), run.time_ps)
        self.assertEqual(max(run.rank_ps), run.time_ps)
        again = peal.simulate("allreduce_ring", x, y, "sum", machine="mesh4x4", ranks=4)
        self.assertEqual(again.hash, run.hash)

    def test_in_place(self):
        x = np.ones((4, 64), "f4")
        y = np.zeros_like(x)
        peal.simulate("allreduce_ring", x, x, "sum", machine="mesh4x4", ranks=4, in_place=True)
        np.testing.assert_array_equal(x, 4)
        for kernel, args, in_place, words in (
                ("allreduce_ring", (x, y, "sum"), True, "the same data"),
                ("allreduce_ring", (x, x, "sum"), False, "overlaps"),
                ("all_to_all_pull", (x, x), True, "no in-place plan")):
            with self.assertRaisesRegex(peal.PealError, words):
                peal.simulate(kernel, *args, machine="mesh4x4", ranks=4, in_place=in_place)
        np.testing.assert_array_equal(x, 4)

    def test_text_and_errors(self):
        kernel = "kernel twice(in x: T[n], out y: T[n]) { y = x + x }"
        x, y = np.ones((2, 8), "f8"), np.zeros((2, 8), "f8")
        peal.simulate(kernel, x, y, machine="mesh4x4", ranks=2, dtype="f64")
        np.testing.assert_array_equal(y, 2 * x)
        for arguments, words in (((x,), "takes 2 arguments"), ((x, y[:, :4].copy()), "needs 64 bytes")):
            with self.assertRaises(peal.PealError) as caught:
                peal.simulate(kernel, *arguments, machine="mesh4x4", ranks=2, dtype="f64")
            self.assertIn(words, str(caught.exception))
        with self.assertRaises(peal.PealError):
            peal.simulate(kernel, x, y, machine="no_such_machine", ranks=2, dtype="f64")


PRODUCTS = """
kernel products(in x: T[m, k], in w: T[k, n], in s: T[m, m], out y: T[m, n], out z: T[m, n], out row: T[1, n]) {
    window far: T[k, n]
    signal ready[nranks], taken[nranks]
    far = w
    for p in peers { notify ready[rank]@p += 1 }
    for p in peers { wait ready[p] >= 1 }
    y = matmul(x, far@((rank + 1) % nranks))
    for p in peers { notify taken[rank]@p += 1 }
    for p in peers { wait taken[p] >= 1 }
    z = matmul(s, matmul(x, w)) - 1
    z[:, 0 of 2] = matmul(s, z[:, 0 of 2])
    row = matmul(x[m - 1 +: 1], w)
}
"""


class Products(unittest.TestCase):
    """matmul in a kernel, random shapes: a machine and this host against numpy. Whole numbers: sums are exact in any order."""

    def expect(self, x, w, s, n):
        other = np.roll(w, -1, axis=0)
        z = s @ (x @ w) - 1
        z[:, :, :n // 2] = s @ z[:, :, :n // 2]
        return x @ other, z, x[:, -1:] @ w

    def test_simulated_and_here(self):
        random = np.random.default_rng(7)
        for turn in range(24):
            m, k, n = (int(v) for v in random.integers(1, 40 if turn % 6 == 0 else 7, 3))
            code = ["f4", "f8", "f2"][turn % 3]
            if code == "f2":  # products stay below 2048
                m = k = n = min(m, k, n, 2)
            dtype = {"f4": "f32", "f8": "f64", "f2": "f16"}[code]
            x, w, s = (random.integers(-2, 3, (2,) + shape).astype(code) for shape in ((m, k), (k, n), (m, m)))
            out = [np.zeros((2,) + shape, code) for shape in ((m, n), (m, n), (1, n))]
            want = self.expect(x, w, s, n)
            dims = {"m": m, "k": k, "n": n}
            peal.simulate(PRODUCTS, x, w, s, *out, machine="mesh4x4", ranks=2, dtype=dtype, dims=dims)
            for got, right in zip(out, want):
                self.assertTrue((got == right).all(), (turn, dims, dtype))
            with peal.Host(2, platform="native:threads") as host:
                tensors = [host.tensor(part.shape[1:], dtype=dtype) for part in (x, w, s)]
                for tensor, part in zip(tensors, (x, w, s)):
                    for r in range(2):
                        tensor.write(part[r], rank=r)
                results = [host.tensor(part.shape[1:], dtype=dtype) for part in out]
                host.submit(PRODUCTS, *tensors, *results)
                for result, right in zip(results, want):
                    for r in range(2):
                        self.assertTrue((result.read(rank=r).reshape(right.shape[1:]) == right[r]).all(), (turn, dims, dtype))


@unittest.skipUnless(_library.function("peal_verify", []), "this libpeal has no peal_verify")
class Proofs(unittest.TestCase):
    def test_proved(self):
        self.assertTrue(peal.verify("allreduce_ring", ranks=[2, 3]))

    def test_user_defined_reductions(self):
        self.assertTrue(peal.verify("allreduce_mesh", ranks=3, op=SMOOTH))
        self.assertFalse(peal.verify("allreduce_ring", ranks=3, op=SMOOTH))

    def test_refuted(self):
        plus = RACY.replace("op(acc, slot@q)", "acc + slot@q").replace("y = acc\n", """y = final(op, acc)
    for p in peers { notify ready[rank]@p += 1 }
    for p in peers { wait ready[p] >= 2 }
""")
        right = plus.replace("acc + slot@q", "op(acc, slot@q)")
        self.assertEqual(peal.verify(right, ranks=[2, 3]).operations, ("sum", "max", "avg"))
        self.assertEqual(peal.verify(right, ranks=2, op="min").operations, ("min",))
        for ranks in ([2, 3], "all"):
            self.assertEqual(peal.verify(plus, ranks=ranks).outcome, "refuted")
        verdict = peal.verify(RACY, ranks=2)
        self.assertFalse(verdict)
        self.assertEqual(verdict.counterexample.fault, "race")
        self.assertEqual(len(verdict.counterexample.accesses), 2)
        self.assertTrue(any(step.collides and step.line > 0 for step in verdict.counterexample.steps))

    def test_bad_text(self):
        with self.assertRaises(peal.PealError):
            peal.verify("kernel broken(in x: T[n]) { y = x }", ranks=2)


@peal.kernel(implements="allreduce")
def traced(k, x: "in T[n]", y: "out T[n]", op: "reduce"):
    """Every vector travels once round."""
    right = k.let((k.rank + 1) % k.nranks)
    left = k.let((k.rank - 1) % k.nranks)
    acc = k.let(x)
    cur = k.let(x)
    for s in k.range(1, k.nranks):
        k.send(cur, right)
        cur[:] = k.recv(left)
        acc[:] = op(acc, cur)
    y[:] = k.final(op, acc)


TRACED = """// Every vector travels once round.
kernel traced(in x: T[n], out y: T[n], op: reduce) implements allreduce {
    let right = (rank + 1) % nranks
    let left = (rank - 1) % nranks
    let acc = x
    let cur = x
    for s in 1 .. nranks {
        send cur to right
        cur = recv from left
        acc = op(acc, cur)
    }
    y = final(op, acc)
}
"""


class Traced(unittest.TestCase):
    """Python functions as kernels."""

    def test_text(self):
        self.assertEqual(traced.text, TRACED)
        self.assertEqual((traced.name, str(traced)), ("traced", TRACED))

    def test_contracts_of_ones_own(self):
        @peal.kernel
        def others(k, x: "in T[n]", y: "out T[n]", t: "inout T[n]", a: "int"):
            k.requires(a < k.nranks)
            i = k.each()
            k.ensures(y[i], k.reduced("sum", 0, k.nranks, lambda q: (x @ q)[i], where=lambda q: q != a))
            k.ensures(t[i], k.old(t[i]) + 1, where=i < k.n - 1)
            k.ensures(t[k.n - 1], k.old(t[k.n - 1]))
            for p in k.peers:
                k.send(x, p)
            acc = k.let(k.fill(0, k.n))
            with k.if_(a != k.rank):
                acc[:] = acc + x
            for q in k.peers:
                got = k.let(k.recv(q), k.n)
                with k.if_(q != a):
                    acc[:] = acc + got
            y[:] = acc
            t[0:k.n - 1] = t[0:k.n - 1] + 1
        for line in ("requires a < nranks", "ensures y[i] == sum(q in 0 .. nranks where q != a: x@q[i])",
                     "ensures t[i] == old(t[i]) + 1 where i < n - 1"):
            self.assertIn(line, others.text)
        verdict = peal.verify(others, ranks=[2, 3], counts=4, dtype="i32", values={"a": 1})
        self.assertTrue(verdict, verdict.text)
        wrong = others.text.replace("acc = acc + x", "acc = acc + x + x")
        self.assertIn("to ensure y[i] == sum(", peal.verify(wrong, ranks=3, counts=4, dtype="i32", values={"a": 1}).why)
        with self.assertRaisesRegex(TypeError, "'T.n.' is neither a reduction nor a port"):
            peal.kernel(lambda k: k.window("T[n]"))

    def test_an_array_is_no_operation(self):
        with peal.Comm(1) as comm, self.assertRaisesRegex(TypeError, "ndarray is none: the output comes after it"):
            comm.allreduce(np.ones(2), np.ones(2), "sum")

    def test_every_statement(self):
        @peal.kernel
        def every(k, g: "inout window T[n]", m: "f32[r, c]", counts: "int[nranks]", most: "int = 2 * n", here: "local int"):
            slot = k.window(k.nranks * k.n)
            mine = k.private(k.n, dtype="f32", wide=False)
            s = k.signal(k.nranks)
            all_ = k.signal(mode="shared")
            up = k.channel()
            k.require(most >= k.n, "room")
            for p in k.peers:
                (slot @ p)[k.part(k.rank, k.nranks)] = g
                k.notify(s[k.rank] @ p)
                k.notify(all_ @ p, 1)
            for q in k.range(1, k.nranks):
                k.wait(s[q % k.nranks], 1)
            k.wait(all_, k.nranks - 1)
            with k.if_(k.and_(k.rank == 0, here > counts[0])):
                g[0:2] += slot[0:2]
            with k.else_():
                m[:, 0] = 0.5
            i = k.var(3)
            i[:] = i + 1
            f = k.let(k.recv_async(k.rank, on=up), k.n)
            k.send(-g, k.rank, on=up)
            k.wait(f, into=g)
            mine[:] = k.select(k.rank > 1, g * 2, k.fill(0, k.n))
            g[:] = mine
            k.run("allreduce", g, "max")
        self.assertEqual(every.text, """kernel every(
        inout g: window T[n],
        m: f32[r, c],
        counts: int[nranks],
        most: int = 2 * n,
        local here: int) {
    window slot: T[nranks * n]
    private mine: f32[n]
    signal s[nranks]
    signal shared all_
    channel up
    assert most >= n, "room"
    for p in peers {
        slot@p[rank of nranks] = g
        notify s[rank]@p += 1
        notify all_@p += 1
    }
    for q in 1 .. nranks {
        wait s[q % nranks] >= 1
    }
    wait all_ >= nranks - 1
    if rank == 0 and here > counts[0] {
        g[0 +: 2] += slot[0 +: 2]
    } else {
        m[:, 0] = 0.5
    }
    var i = 3
    i = i + 1
    let f: T[n] = recv_async from rank on up
    send -g to rank on up
    wait f into g
    mine = select(rank > 1, g * 2, fill(0, n))
    g = mine
    allreduce(g, max)
}
""")

    def test_orders(self):
        @peal.kernel
        def orders(k, x: "inout T[n]"):
            s = k.signal(1)
            lock = k.signal(1, mode="raw")
            with k.lane(block=0):
                k.notify(s[0], 1, order="release", scope="block")
                k.fence("full", "device")
                k.take(lock[0], 0, 1, order="acquire")
            with k.lane(block=0):
                k.wait(s[0], 1, scope="block")
                k.let(k.fetch_add(lock[0], 1, order="relaxed"))
                k.fence()
                with k.when(k.launch() == 0):
                    k.wait(lock[0], 2 * k.launch() + 1)
        text = orders.text
        for line in ("lane block 0 {", "notify release block s[0] += 1", "fence full device", "take acquire lock[0] from 0 to 1",
                     "wait block s[0] >= 1", "fetch_add(relaxed lock[0], 1)", "        fence\n",
                     "when launch == 0 {", "wait lock[0] >= 2 * launch + 1"):
            self.assertIn(line, text)
        def mistaken(k, x: "inout T[n]"):
            k.fence("relaxed")
        with self.assertRaisesRegex(peal.PealError, "no order"):
            peal.kernel(mistaken)

    def test_mistakes(self):
        def branches(k, x: "inout T[n]"):
            if k.rank == 0:
                x[:] = 0
        def nameless(k, x: "inout T[n]"):
            x[:] = k.other
        def shapeless(k, x: "inout T"):
            x[:] = 0
        def deep(k, x: "inout T[n]"):
            for i in k.range(2):
                x[:] = k.launch_mod(9)
        for body, error, words in ((branches, TypeError, "k.if_"), (nameless, AttributeError, "no 'other'"),
                                   (shapeless, TypeError, "no shape"), (deep, peal.PealError, "launch mod")):
            with self.subTest(body.__name__), self.assertRaisesRegex(error, words):
                peal.kernel(body)

    def test_proved_simulated_exported(self):
        verdict = peal.verify(traced, ranks=[2, 3], counts=8)
        self.assertEqual((verdict.outcome, verdict.bits, verdict.least_depth), ("proved", "different", 1))
        self.assertEqual(peal.verify(RACY, ranks=3, depth=4, advice=True).outcome, "refuted")
        every = peal.verify(traced, ranks="all")
        self.assertEqual((every.outcome, every.all_ranks["class"]), ("proved", "ring"))
        undecided = peal.verify("allreduce_doubling", ranks="all")
        self.assertEqual(undecided.outcome, "not decided")
        self.assertTrue(undecided.all_ranks["line"] and undecided.all_ranks["instead"])
        x = np.arange(64, dtype="f4").reshape(4, 16)
        y = np.zeros_like(x)
        peal.simulate(traced, x, y, "sum", machine="mesh4x4", ranks=4)
        np.testing.assert_array_equal(y[2], x.sum(0))
        with tempfile.TemporaryDirectory() as folder:
            files = peal.export(traced, "msccl", 4, folder)
            self.assertEqual([os.path.basename(file) for file in files], ["traced.xml"])
            with self.assertRaisesRegex(peal.PealError, "msccl"):
                peal.export(traced, "nonesuch", 4, folder)


class Own(unittest.TestCase):
    """A kernel of one's own on a communicator, and in the place of a collective."""

    def test_launched(self):
        def body(comm):
            y = np.zeros(5, "i4")
            with comm.kernel(traced) as kernel:
                kernel(np.full(5, comm.rank + 1, "i4"), y, "max")
            g = comm.symmetric(4, "f64")
            g.array[:] = comm.rank
            with comm.kernel("allreduce_window") as kernel:
                kernel(g, "sum")
            total = float(g.array[3])
            comm.barrier()
            g.free()
            return int(y[4]), total
        self.assertEqual(in_threads(3, body), [(3, 3.0)] * 3)

    def test_one_sided(self):
        def body(comm):
            r, size = comm.rank, comm.size
            memory, words = comm.symmetric(4, "f32"), comm.symmetric(3, "u64")
            memory.put(np.full(4, r + 1, "f4"), (r + 1) % size, signal=(words, 0))
            words.wait_until(">=", 1)
            got = float(memory.array[2])
            words.notify(0, at=1)
            drawn = words.fetch_add(0, 1, at=2)
            comm.fence()
            comm.quiet()
            comm.barrier()
            swapped = words.compare_swap(0, size, 77, at=2) if r == 1 else None
            comm.barrier()
            seen = words.get(0, 3)
            with self.assertRaises(ValueError):
                memory.notify(0)
            with self.assertRaises(ValueError):
                memory.put(np.zeros(5, "f4"), 0)
            with self.assertRaises(peal.PealError):
                memory.put(np.zeros(4, "f4"), 99)
            comm.barrier()
            memory.free()
            words.free()
            return got, drawn, swapped, list(map(int, seen))
        results = in_threads(3, body)
        self.assertEqual([r[0] for r in results], [3.0, 1.0, 2.0])
        self.assertEqual(sorted(r[1] for r in results), [0, 1, 2])
        self.assertEqual(results[1][2], 3)
        self.assertTrue(all(r[3] == [1, 3, 77] for r in results))

    def check_calls(self, comm, collective):
        """Two calls of it on this rank, in numpy's words."""
        r, size = comm.rank, comm.size
        every = np.array([np.arange(3 * size) + 100 * q for q in range(size)], "i4")
        x, total, root = every[r].copy(), every.sum(0), size - 1
        for _ in range(2):
            if collective == "barrier":
                comm.barrier()
                continue
            if collective == "broadcast":
                got, want = comm.broadcast(x.copy(), root), every[root]
            elif collective in ("allreduce", "scan", "exscan"):
                got = getattr(comm, collective)(x)
                want = {"allreduce": total, "scan": every[:r + 1].sum(0), "exscan": every[:r].sum(0)}[collective]
            elif collective == "reduce":
                got, want = comm.reduce(x, root=root), total if r == root else None
            elif collective == "allgather":
                got, want = comm.allgather(x), every
            elif collective == "gather":
                got, want = comm.gather(x, root), every if r == root else None
            elif collective == "scatter":
                got, want = comm.scatter(x if r == root else None, np.zeros(3, "i4"), root, "i32"), every[root].reshape(size, 3)[r]
            elif collective == "reduce_scatter":
                got, want = comm.reduce_scatter(x), total.reshape(size, 3)[r]
            else:
                got, want = comm.all_to_all(x), every.reshape(size, size, 3)[:, r].reshape(-1)
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(x, every[r])

    @unittest.skipUnless("PEAL_OWN_TEST" in os.environ, "the kernels of comm/own are written by its program")
    def test_in_the_place_of_collectives(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([os.environ["PEAL_OWN_TEST"], "kernels", folder], check=True)
            files = sorted(os.listdir(folder))
            self.assertGreater(len(files), 100)

            def body(comm):
                for file in files:
                    collective, form = file.split("-")
                    with open(os.path.join(folder, file), encoding="utf-8") as text:
                        kernel = text.read()
                    if form.startswith("misses"):
                        with self.assertRaisesRegex(peal.PealError, "nothing in a call"):
                            comm.set_algorithm(collective, kernel)
                        continue
                    comm.set_algorithm(collective, kernel)
                    self.assertIn("of a file", comm.explain(collective, 12))
                    try:
                        self.check_calls(comm, collective)
                    except Exception as error:
                        raise AssertionError(file) from error
                    comm.set_algorithm(collective, None)
                return True
            for platform in ("native", "sim:mesh4x4"):
                with self.subTest(platform):
                    os.environ["PEAL_PLATFORM"] = platform
                    try:
                        self.assertEqual(in_threads(3, body), [True] * 3)
                    finally:
                        del os.environ["PEAL_PLATFORM"]


class Hosts(unittest.TestCase):
    PLATFORMS = ("native", "native:threads", "sim:mesh4x4")

    def test_tasks(self):
        for platform in self.PLATFORMS:
            with self.subTest(platform), peal.Host(4, platform, record=True) as host:
                data = np.arange(256, dtype="f4")
                x = host.tensor(256).write(data)
                y = host.tensor(256)
                host.submit("allreduce_ring", x, y, "sum")
                np.testing.assert_array_equal(y.read(), 4 * data)
                host.submit("allreduce_mesh", x, y, SMOOTH)
                np.testing.assert_array_equal(y.read(), 1.875 * data)
                s = host.tensor((8, 6), shard=0).write(np.arange(48, dtype="f4").reshape(8, 6))
                np.testing.assert_array_equal(s.read(rank=1), np.arange(12, 24))
                host.submit("kernel neg(inout x: T[n]) { x = 0.0 - x }", s[0:3])
                self.assertEqual(s.read()[2, 1], -13.0)
                pair = host.domain([3, 1], buffers={"g": ("f32", 16)})
                g = pair.tensor("g").write(np.ones(16, "f4"))
                host.submit("allreduce_window", g, "sum", domain=pair)
                self.assertEqual(g.read(rank=1)[5], 2.0)
                pair.release()
                self.assertGreater(host.stats()["time_ps"], 0)
                with tempfile.TemporaryDirectory() as folder:
                    host.write("trace", os.path.join(folder, "t.json"))

    def test_feed_forward(self):
        rng = np.random.default_rng(1)
        x, a, b = (rng.integers(-3, 4, shape).astype("f4") for shape in ((6, 8), (8, 16), (16, 8)))
        for platform in self.PLATFORMS:
            with self.subTest(platform), peal.Host(4, platform) as host:
                tx, ta = host.tensor((6, 8)).write(x), host.tensor((8, 16), shard=1).write(a)
                tb, th = host.tensor((16, 8), shard=0).write(b), host.tensor((6, 16), shard=1)
                part, y = host.tensor((6, 8)), host.tensor((6, 8))
                host.submit("matmul", tx, ta, th, 0)
                host.submit("kernel relu(inout h: T[n]) { h = max(h, 0.0) }", th)
                host.submit("matmul", th, tb, part, 0)
                host.submit("allreduce_ring", part, y, "sum")
                np.testing.assert_array_equal(y.read(), np.maximum(x @ a, 0) @ b)

    def test_functions_and_failures(self):
        def scale(x, factor):
            if factor == 0:
                raise ValueError("nothing is left")
            x *= factor
        functions = [peal.Function("scale", scale, ["inout", "int"], cost_ps=5000)]
        for platform in self.PLATFORMS[1:]:
            with self.subTest(platform), peal.Host(2, platform, functions=functions) as host:
                x = host.tensor((2, 3), worker=1).write(np.ones((2, 3), "f4"))
                host.submit("scale", x, 7, worker=1)
                np.testing.assert_array_equal(x.read(), np.full((2, 3), 7))
                task = host.submit("scale", x, 0, worker=1)
                with self.assertRaises(peal.PealError) as caught:
                    task.wait()
                self.assertIn("nothing is left", str(caught.exception))
                with self.assertRaises(peal.PealError):
                    x.read()
        with self.assertRaises(ValueError):
            peal.Host(2, "native", functions=functions)
        with peal.Host(platform="sim:mesh4x4") as host:
            self.assertEqual(host.workers, 16)

    def test_refusals(self):
        with peal.Host(2, "native:threads") as host:
            x, y = host.tensor(8), host.tensor(4)
            with self.assertRaises(peal.PealError) as caught:
                host.submit("allreduce_ring", x, y, "sum")
            self.assertIn("needs 8 elements", str(caught.exception))
            with self.assertRaises(peal.PealError):
                host.domain([0, 5])
            y.free()
            with self.assertRaises(peal.PealError) as caught:
                y.read()
            self.assertEqual(caught.exception.status, "closed")

    def test_parts_and_types(self):
        negate = "kernel negate(inout x: T[n]) { x = 0.0 - x }"
        for platform in self.PLATFORMS:
            with self.subTest(platform), peal.Host(2, platform) as host:
                x, y = host.tensor(8).write(np.ones(8, "f4")), host.tensor(8)
                for part in (slice(3, 3), slice(5, 3), slice(-2, None), slice(0, 8, 2), 2):
                    with self.assertRaises(ValueError):
                        x[part]  # pylint: disable=pointless-statement
                host.submit(negate, x[3:5])
                np.testing.assert_array_equal(x.read(), [1, 1, 1, -1, -1, 1, 1, 1])
                with self.assertRaisesRegex(ValueError, "of i32, the tensor of f32"):
                    x.write(np.ones(8, "i4"))
                host.submit("broadcast_flat", x, y, np.int64(1))
                self.assertIsNotNone(host.try_submit("broadcast_flat", y, x, 0))
                with self.assertRaisesRegex(TypeError, "not 1.5"):
                    host.submit("broadcast_flat", x, y, 1.5)
                with self.assertRaisesRegex(ValueError, "there is no file"):
                    host.write("picture", "none")
                for kind in ("i16", "u16", "u32", "u64", "cf32", "cf64", "bf16"):
                    z = host.tensor(4, dtype=kind)
                    z.write(z.read() + 1)
                    host.submit("kernel copy(in x: T[n], out y: T[n]) { y = x }", z[0:2], z[2:4])
                    np.testing.assert_array_equal(z.read(), [1] * 4)
            with self.assertRaisesRegex(peal.PealError, "the host is closed"):
                x.read()


if __name__ == "__main__":
    unittest.main(verbosity=2)
