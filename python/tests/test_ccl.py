# SPDX-License-Identifier: Apache-2.0
"""Kernels of ccl/ under host code in torch's form, and each call of `tl`, against numpy. Run with PEAL_LIBRARY=build/libpeal.so.0."""
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest

import numpy as np

import peal
import peal.ccl

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = os.path.join(HERE, "ccl", "ccl.yaml")


def opened(algorithm, **more):
    torch = peal.ccl.Torch(CONFIG, "mesh4x4", algorithm)
    torch.distributed.init_process_group(backend="ahbm", **more)
    return torch


def reduced(algorithm, size=-1, count=64):
    """The time of an all_reduce, whose data is checked."""
    torch = opened(algorithm, world_size=size)
    size = torch.distributed.get_world_size()
    given = np.random.default_rng(7).integers(0, 8, (size, count)).astype("f2")
    x = torch.zeros((size, count), dtype=torch.float16)
    assert x.copy_(torch.from_numpy(given)) is x
    torch.distributed.all_reduce(x)
    np.testing.assert_array_equal(x.numpy(), np.broadcast_to(given.sum(0), given.shape))
    return torch.distributed.runs[-1].time_ps


class Matrix(unittest.TestCase):
    """The original's golden matrix: each row's data is compared inside `reduced`."""

    def test_memories(self):
        tcm, sram, hbm = (reduced("ring_" + kind) for kind in ("tcm", "sram", "hbm"))
        self.assertTrue(tcm < sram < hbm, (tcm, sram, hbm))

    def test_ring(self):
        self.assertLess(reduced("ring", 8), reduced("ring", 16))

    def test_ring_has_the_machines_ranks(self):
        self.assertEqual(opened("ring").distributed.get_world_size(), 16)
        self.assertEqual(opened("ring_tcm").distributed.get_world_size(), 8)  # the configuration's
        self.assertEqual(opened("ring_tcm", world_size=5).distributed.get_world_size(), 5)

    def test_mesh(self):
        reduced("mesh")
        reduced("mesh", 16)

    def test_tree(self):
        reduced("tree")
        reduced("tree", 15)

    def test_slots_of_the_configuration(self):
        text = peal.record.record(CONFIG, 8)
        for line in ("machine ipcq.space=tcm", "machine ipcq.slots=4", "machine ipcq.slot_bytes=4096", "machine ipcq.backpressure=sleep"):
            self.assertIn(line, text.split("\n"))


class Configuration(unittest.TestCase):
    """What is wrong in a ccl.yaml is refused with its line, and with what was meant."""

    def refuses(self, text, why):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ccl.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(textwrap.dedent(text))
            with self.subTest(why), self.assertRaisesRegex(peal.record.Refused, why):
                peal.record.record(path, 2)

    def test_refusals(self):
        good = "algorithms:\n  ring: {module: ring}\n"
        self.refuses("defaults:\n  algorithm: ring\n  n_slot: 3\n" + good, "ccl.yaml:3: 'n_slot' is no key of the defaults; did you "
                     "mean 'n_slots'")
        self.refuses("default:\n  algorithm: ring\n" + good, "ccl.yaml:1: 'default' is no key of a configuration; did you mean "
                     "'defaults'")
        self.refuses("algorithm: ring\nalgorithms:\n  ring:\n    module: ring\n    bufer_kind: tcm\n",
                     "ccl.yaml:5: 'bufer_kind' is no key of algorithm 'ring'; did you mean 'buffer_kind'")
        self.refuses("algorithm: ring\nalgorithms:\n  ring: {modul: ring}\n", "ccl.yaml:3: 'modul' is no key .* did you mean 'module'")
        self.refuses("algorithm: rinf\n" + good, "there is no algorithm 'rinf'; did you mean 'ring'")
        self.refuses("algorithm: ring\nalgorithm: ring\n" + good, "ccl.yaml:2: 'algorithm' is there already")
        self.refuses("algorithm: ring\nalgorithms:\n  ring: {n_elem: 4}\n", "algorithm 'ring' names no module")
        self.refuses("algorithm: ring\n" + good, "ccl.yaml: algorithm 'ring': module 'ring' is not below")
        self.refuses("algorithm: ring\nalgorithms: ring\n", "'ring' is not the configuration")
        self.refuses("- algorithm\n", "ccl.yaml:1: 'key: value' is wanted")
        self.refuses("algorithm: ring\nalgorithms:\n  ring:\n    module: ring\n    buffers: {kinds: tcm}\n",
                     "ccl.yaml: 'kinds' is no key of buffers; did you mean 'kind'")

    def test_forms(self):
        kernel = os.path.join(HERE, "ccl")
        texts = []
        for text in ("algorithm: ring\nmodule: ring_allreduce\nbuffers: sram\nn_slots: 3\n",
                     "algorithm: ring\nalgorithms:\n  ring:\n    module: ring_allreduce\n    buffers:\n      kind: sram\n      n_slots: 3\n",
                     "algorithm: ring\nalgorithms:\n  ring: {module: ring_allreduce, buffer_kind: sram, n_slots: 3}\n"):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "ccl.yaml")
                shutil.copy(os.path.join(kernel, "ring_allreduce.py"), folder)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                texts.append(peal.record.record(path, 2).replace(folder, ""))
        self.assertEqual(texts[1:], texts[:1] * 2)
        self.assertIn("machine ipcq.space=sram", texts[0])

    def test_counts(self):
        path = os.path.join(HERE, "ccl", "ring_allreduce.py")
        self.assertIn("2 ranks and 0 elements of f16", peal.record.record(path, 2, 0))
        with self.assertRaisesRegex(peal.record.Refused, r"ring_allreduce.py:\d+: n_elem 10000000000000 of f32 are too many bytes"):
            peal.record.record(path, 2, 10 ** 13)


class HostCode(unittest.TestCase):
    def test_operations(self):
        for name, expected in (("SUM", np.sum), ("MAX", np.max), ("MIN", np.min), ("PRODUCT", np.prod)):
            torch = opened("any")
            given = np.arange(4 * 6, dtype="f4").reshape(4, 6) - 9
            x = torch.tensor(given)
            torch.distributed.all_reduce(x, op=getattr(torch.distributed.ReduceOp, name))
            np.testing.assert_array_equal(x.numpy()[2], expected(given, 0))

    def test_types(self):
        for dtype in ("float64", "int32", "int64", "float16"):
            torch = opened("any")
            x = torch.ones((4, 3), dtype=getattr(torch, dtype))
            self.assertIsInstance(torch.distributed.all_reduce(x, async_op=True).wait(), bool)
            self.assertEqual((x.dtype, x.tolist()), (dtype, [[4] * 3] * 4))

    def test_an_operation_that_the_kernel_does_not_take(self):
        torch = opened("ring_tcm")
        with self.assertRaisesRegex(ValueError, "does not take an 'op'"):
            torch.distributed.all_reduce(torch.zeros((8, 4), dtype="f16"), op="max")

    def test_a_type_that_the_kernel_does_not_have(self):
        torch = opened("ring_tcm")
        with self.assertRaisesRegex(TypeError, "works on f16, and the tensor is f32"):
            torch.distributed.all_reduce(torch.zeros(8, 4))

    def test_uneven(self):
        torch = opened("any")
        with self.assertRaisesRegex(ValueError, "5 elements are not divided evenly among 4 ranks"):
            torch.distributed.all_reduce(torch.zeros(5))

    def test_deadlock(self):
        torch = opened("late")
        with self.assertRaisesRegex(peal.PealError, "late_allreduce.py:6"):
            torch.distributed.all_reduce(torch.zeros(3, 4))

    def test_what_is_not_there(self):
        torch = opened("any")
        for reach in (lambda: torch.distributed.all_gather, lambda: torch.cat, lambda: torch.zeros(4).backward):
            with self.assertRaisesRegex(AttributeError, "is not of this host code"):
                reach()
        with self.assertRaisesRegex(RuntimeError, "init_process_group comes first"):
            peal.ccl.Torch(CONFIG, "mesh4x4").distributed.get_rank()
        with self.assertRaisesRegex(peal.record.Refused, "no algorithm 'none'"):
            opened("none")
        with self.assertRaisesRegex(ValueError, "is not a machine"):
            peal.ccl.Torch(CONFIG, "nowhere").distributed.init_process_group()

    def test_tensors(self):
        torch = opened("any")
        x = torch.arange(6).view(2, 3)
        y = x.clone().fill_(2)
        x[1] = y[1]
        self.assertEqual((x.tolist(), x.numel(), x.size(1), x.dim(), len(x)), ([[0, 1, 2], [2, 2, 2]], 6, 3, 2, 2))
        self.assertEqual((y.zero_()[0, 0].item(), torch.empty(2).shape, torch.full((2,), 3).tolist()), (0, (2,), [3, 3]))
        with self.assertRaises(ValueError):
            x.copy_(torch.zeros(5))

    def test_spawned(self):
        torch, seen = peal.ccl.Torch(CONFIG, "mesh4x4", "any"), {}

        def worker(rank, size):
            dist = torch.distributed
            dist.init_process_group("ahbm", rank=rank, world_size=size)
            x = torch.full((5,), rank + 1)
            for _ in range(3):
                dist.all_reduce(x)
            dist.barrier()
            seen[rank] = (dist.get_rank(), dist.get_world_size(), dist.get_backend(), x.tolist())
            dist.destroy_process_group()
        torch.multiprocessing.spawn(worker, args=(4,), nprocs=4)
        self.assertEqual(seen, {r: (r, 4, "ahbm", [160.0] * 5) for r in range(4)})
        self.assertEqual(len(torch.distributed.runs), 3)

    def test_a_spawned_rank_that_leaves_or_fails(self):
        torch = peal.ccl.Torch(CONFIG, "mesh4x4", "any")

        def leaves(rank):
            torch.distributed.init_process_group("ahbm", world_size=4)
            if rank:
                torch.distributed.barrier()
        with self.assertRaisesRegex(RuntimeError, "rank 0 has ended"):
            torch.multiprocessing.spawn(leaves, nprocs=4)

        def differs(rank):
            torch.distributed.init_process_group("ahbm", world_size=4)
            torch.distributed.all_reduce(torch.zeros(4 + (rank == 2)))
        with self.assertRaisesRegex(RuntimeError, "failed"):
            torch.multiprocessing.spawn(differs, nprocs=4)

    def test_a_host_file(self):
        command = [sys.executable, "-m", "peal.ccl", os.path.join(HERE, "ccl", "host.py"), "-c", CONFIG, "-m", "mesh4x4", "-a", "tree"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.assertRegex(said, r"^1 launches, [0-9.]+ us on mesh4x4\n$")


def ran(body, given, ranks=1, **more):
    """What a kernel with this body makes of the given data, one row per rank, on a machine."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a_kernel.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("def kernel(t_ptr, n_elem, world_size, tl):\n" + textwrap.indent(textwrap.dedent(body), "    "))
        text = peal.record.record(path, ranks, given.shape[1], "f32", **more)
    data = given.copy()
    peal.simulate(text, list(data), machine="mesh4x4", ranks=ranks)
    np.testing.assert_array_equal(on_this_host(text, given, ranks), data)  # what is simulated is what runs
    return data


def on_this_host(text, given, ranks):
    data = given.copy()

    def launch(comm, own):
        with comm, comm.kernel(text) as kernel:
            kernel(own)
    threads = [threading.Thread(target=launch, args=pair) for pair in zip(peal.Comm.threads(ranks), data)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return data


class Calls(unittest.TestCase):
    """Each call of `tl`, with data."""

    X = np.random.default_rng(3).uniform(0.5, 4, (3, 8)).astype("f4")

    def same(self, body, expected, ranks=1):
        np.testing.assert_allclose(ran(body, self.X[:ranks].copy(), ranks), expected, rtol=1e-6)

    def test_load_store_and_operators(self):
        x = self.X[:1]
        for text, expected in (("x + x", x + x), ("x - 1", x - 1), ("1 - x", 1 - x), ("x * 3", x * 3), ("2 * x", 2 * x), ("x / 4", x / 4),
                               ("1 / x", 1 / x), ("x * x - x / x", x * x - 1), ("1 + x", 1 + x), ("-x", -x)):
            with self.subTest(text):
                self.same(f"x = tl.load(t_ptr)\ntl.store(t_ptr, {text})", expected)

    def test_functions(self):
        x = self.X[:1]
        soft = np.exp(x - x.max())
        halves = (soft.reshape(2, 4) / soft.reshape(2, 4).sum(1, keepdims=True)).reshape(x.shape)
        for text, expected in (("tl.maximum(x, 2)", np.maximum(x, 2)), ("tl.minimum(x, 2)", np.minimum(x, 2)),
                               ("tl.maximum(x, x * 2)", x * 2), ("tl.fma(x, x, x)", x * x + x), ("tl.clamp(x, 1, 2)", np.clip(x, 1, 2)),
                               ("tl.softmax(x)", soft / soft.sum()), ("tl.softmax(tl.load(t_ptr, shape=(2, 4)))", halves), ("tl.exp(x)", np.exp(x)), ("tl.log(x)", np.log(x)),
                               ("tl.sqrt(x)", np.sqrt(x)), ("tl.abs(-x)", x)):
            with self.subTest(text):
                self.same(f"x = tl.load(t_ptr)\ntl.store(t_ptr, {text})", expected)

    def test_parts_of_a_tensor(self):
        x = self.X[:1]
        self.same("a = tl.load(t_ptr, shape=(4,))\nb = tl.load(t_ptr + 16, shape=(2, 2))\ntl.store(t_ptr + 16, a)\ntl.store(t_ptr, b)",
                  np.concatenate([x[:, 4:], x[:, :4]], 1))

    def test_programs(self):
        expected = self.X + np.array([[0], [1], [2]]) + 30 + 3
        self.same("tl.store(t_ptr, tl.load(t_ptr) + tl.program_id(0) + 10 * tl.num_programs(0) + tl.cdiv(n_elem, 3) "
                  "+ tl.program_id(1) + tl.num_programs(1) - 1)", expected, 3)

    def test_send_and_recv(self):
        self.same("tl.send('E', tl.load(t_ptr))\ntl.store(t_ptr, tl.recv('W'))", np.roll(self.X, 1, 0), 3)
        self.same("tl.send(dir='W', src=t_ptr)\ntl.recv(dir='E', dst=t_ptr)", np.roll(self.X, -1, 0), 3)

    def test_recv_async_and_wait(self):
        # two receives of one queue, waited for in the other order
        self.same("a, b = tl.recv_async('W'), tl.recv_async('W')\nx = tl.load(t_ptr)\ntl.send('E', x)\ntl.send('E', x * 10)\n"
                  "second = tl.wait(b)\ntl.store(t_ptr, second - tl.wait(a))", np.roll(self.X, 1, 0) * 9, 3)

    def test_copy_to_dst(self):
        self.same("x = tl.load(t_ptr, shape=(4,))\ntl.copy_to_dst(t_ptr + 16, x)", np.tile(self.X[:1, :4], 2))

    def test_refused_with_their_line(self):
        for body, why in (("tl.dot(1)", "2: tl.dot is not known"), ("tl.load(3)", "2: a int is used as an address"),
                          ("tl.store(t_ptr, 3)", "2: a int is stored"), ("tl.send('up', tl.load(t_ptr))", "2: rank 0 has no neighbour 'up'"),
                          ("if tl.load(t_ptr): pass", "2: data decides"),
                          ("if tl.load(t_ptr) == 3: pass", "2: data decides"), ("if 3 != tl.load(t_ptr): pass", "2: data decides"), ("tl.wait(3)", "2: a int is waited for"),
                          ("tl.load(t_ptr, shape=(-1,))", "2: .* is not a shape"), ("tl.load(t_ptr, dtype='f12')", "2: 'f12' is not a type"),
                          ("x = tl.load(t_ptr)\ny = tl.load(t_ptr, shape=3)\nx + y", "4: 'add' of 8 f32 and 3 f32"),
                          ("tl.softmax(tl.load(t_ptr), axis=1)", "2: softmax along axis 1 of 1"),
                          ("tl.maximum(1, 2)", "2: 'maximum' of numbers alone"), ("t_ptr + tl.load(t_ptr)", "2: an address is moved")):
            with self.subTest(body), self.assertRaisesRegex(peal.record.Refused, "a_kernel.py:" + why):
                ran(body + "\ntl.program_id(0)" if "if" not in body else body, self.X[:2], 2)


if __name__ == "__main__":
    unittest.main()
