# SPDX-License-Identifier: Apache-2.0
"""The torch stand-in: views are numpy's, what is known is computed as numpy computes it, and what the host does to the device is recorded.
Prints its seed."""
import os
import random
import sys
import tempfile
import unittest

import numpy as np

from peal.record import Refused
from peal.tiles import core, program, tensor
from peal.tiles.tensor import DTYPES, Tensor, device, empty, from_numbers, restride

SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
HEAD = """
import torch, torch.distributed as dist, torch.distributed._symmetric_memory as symm_mem
import triton, triton.language as tl
"""


def record(text, ranks=2, settings="calls=1"):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(HEAD + text)
        return program.record(path, ranks, program.Options(settings))


def ops(text, rank=0):
    lines = text.split(f"\nrank {rank}\n")[1].split("\nrank ")[0].splitlines()
    return [line for line in lines if line and line.split()[0] not in ("at", "lane", "block", "note", "call")]


class World(unittest.TestCase):
    """Tensors outside of a program: with a rank to belong to."""

    def setUp(self):
        program._world = program.World("test.py", 2, program.Options())
        core.set_rank(program._world.recording.rank[0])

    def tearDown(self):
        core.set_rank(None)
        program._world = None


def random_view(rng, t, a):
    """A view of a tensor, and the same one of the array."""
    how = rng.randrange(6)
    if how == 0 and a.ndim:
        key = []
        for size in a.shape[:rng.randint(0, a.ndim)]:
            key.append(rng.choice([rng.randrange(size) if size else slice(None), slice(rng.randint(0, size), None, rng.randint(1, 2)), slice(None)]))
        if rng.random() < 0.3:
            key.insert(rng.randint(0, len(key)), None)
        if rng.random() < 0.2:
            key.append(Ellipsis)
        return t[tuple(key)], a[tuple(key)]
    if how == 1 and a.ndim:
        order = list(range(a.ndim))
        rng.shuffle(order)
        return t.permute(*order), a.transpose(order)
    if how == 2 and a.size:
        shape, left = [], a.size
        for factor in (2, 3, 5):
            while left % factor == 0 and rng.random() < 0.6:
                shape.append(factor)
                left //= factor
        shape.append(left)
        rng.shuffle(shape)
        return t.reshape(*shape), a.reshape(shape)
    if how == 3 and a.ndim and a.size:
        axis = rng.randrange(a.ndim)
        first = rng.randrange(a.shape[axis])
        length = rng.randint(1, a.shape[axis] - first)
        return t.narrow(axis, first, length), a[(slice(None),) * axis + (slice(first, first + length),)]
    if how == 4 and a.size:
        return t.unsqueeze(0).expand(2, *t.shape), np.broadcast_to(a, (2,) + a.shape)
    return t.flatten(), a.reshape(-1)


class Views(World):
    def test_views_are_those_of_numpy(self):
        print("SEED", SEED)
        rng = random.Random(SEED)
        for _ in range(600):
            a = np.arange(np.prod(shape := [rng.randint(1, 5) for _ in range(rng.randint(1, 4))])).reshape(shape).astype(np.int32)
            t = from_numbers(a, None, device("cpu"))
            for _ in range(rng.randint(1, 5)):
                t, a = random_view(rng, t, a)
                self.assertEqual(tuple(t.shape), a.shape)
                self.assertTrue((t.numbers() == a).all())
            self.check_spans(t)

    def check_spans(self, t):
        """Spans are the elements of the view and no others, each once."""
        there = Tensor(empty((4000,), DTYPES["int32"], "cuda")._storage, t.dtype, t.shape, t._strides, t._offset)
        base = there._storage.region.address
        numbers = np.arange(t._storage.nbytes // 4 or 1, dtype=np.int32)[t._offset // 4:]
        wanted = set(np.lib.stride_tricks.as_strided(numbers, tuple(t.shape), [4 * s for s in t._strides]).flat) if t.numel() else set()
        for ordered in (True, False):
            found = [(span.address - base + row * (span.stride or span.count * 4)) // 4 + i
                     for span in there.spans(ordered) for row in range(span.rows) for i in range(span.count)]
            self.assertEqual(len(found), len(set(found)))
            self.assertEqual(set(found), wanted)

    def test_a_reshape_copies_only_where_numpy_does(self):
        rng = random.Random(SEED + 1)
        for _ in range(600):
            a = np.zeros([rng.randint(1, 4) for _ in range(3)], np.int8).transpose(rng.sample(range(3), 3))
            shape = tuple(rng.sample([a.size, 1], 2)) if rng.random() < 0.5 else tuple(rng.sample(a.shape, 3))
            view = a.view()
            try:
                view.shape = shape
            except AttributeError:
                view = None
            self.assertEqual(restride(a.shape, a.strides, shape) is None, view is None, (a.shape, a.strides, shape))

    def test_integers_are_computed(self):
        t = from_numbers(np.arange(12, dtype=np.int64).reshape(3, 4), None, device("cuda"))
        self.assertEqual(((t * 2 + 1) % 5).sum().item(), int(((np.arange(12) * 2 + 1) % 5).sum()))
        self.assertEqual(t.max(dim=1)[1].tolist(), [3, 3, 3])
        self.assertEqual(t[t > 7].tolist(), [8, 9, 10, 11])
        self.assertEqual(tensor.compute("sub", 3, t)[0, 1].item(), 2)


class Host(unittest.TestCase):
    def test_copies_and_arithmetic_are_ops(self):
        said = ops(record("x = torch.randn(8, device='cuda')\ny = torch.empty(8, device='cuda')\ny.copy_(x)\nz = y * 2 + x\n"))
        self.assertEqual([line.split()[0] for line in said], ["copy", "compute", "compute"])
        self.assertIn("compute mul", said[1])

    def test_streams_are_ordered_by_events_only(self):
        text = """
s = torch.cuda.Stream()
x, y = torch.randn(8, device="cuda"), torch.empty(8, device="cuda")
y.copy_(x)
e = torch.cuda.Event()
e.record()
with torch.cuda.stream(s):
    {wait}
    x.copy_(y)
"""
        alone, ordered = (ops(record(text.format(wait=wait))) for wait in ("pass", "s.wait_event(e)"))
        self.assertEqual(sum(line.startswith("order") for line in ordered), 1 + sum(line.startswith("order") for line in alone))

    def test_programs_of_a_second_stream_begin_together(self):
        text = record("""
@triton.jit
def kernel(flag, x):
    if tl.program_id(0) == 0:
        while tl.atomic_add(flag, 0, sem="acquire", scope="sys") != 1: pass
    else:
        tl.atomic_add(flag, 1, sem="release", scope="sys")

s = torch.cuda.Stream()
x, flag = torch.ones(8, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda")
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    kernel[(2,)](flag, x)
""")
        said = [line.split()[0] for line in ops(text)]
        self.assertLess(len(said) - said[::-1].index("order"), said.index("wait") + 1)

    def test_tests_of_data_are_contracts_where_inputs_are_known(self):
        text = record("dist.init_process_group()\nx = torch.randn(8, device='cuda')\ny = torch.empty(8, device='cuda')\ny.copy_(x)\n"
                      "g = x.clone()\ndist.all_reduce(g)\ntorch.testing.assert_close(y, g)\n")
        self.assertIn("implements allreduce input x output y op sum", text)
        text = record("x = torch.randn(8, device='cuda')\ny = x * 2\nassert torch.allclose(x, y)\n")
        self.assertNotIn("implements", text)
        self.assertIn("is taken as passed", text)

    def test_ranks_exchange_objects(self):
        record("dist.init_process_group()\nfound = [None] * 3\ndist.all_gather_object(found, dist.get_rank() * 2)\nassert found == [0, 2, 4]\n"
               "t = torch.arange(3, device='cuda') + dist.get_rank()\ndist.all_reduce(t)\nassert t.tolist() == [3, 6, 9]\ntorch.randn(1, device='cuda').clone()\n", 3)

    def test_symmetric_memory_is_everywhere(self):
        said = record("dist.init_process_group()\nx = symm_mem.empty(8, device='cuda')\nh = symm_mem.rendezvous(x, dist.group.WORLD)\n"
                      "x.copy_(h.get_buffer(1 - h.rank, (8,), torch.float32))\nh.barrier()\n")
        self.assertIn(f"copy f32@{core.heap(0):#x}*8 f32@{core.heap(1):#x}*8", said)
        self.assertEqual(sum(line.startswith("take") for line in ops(said)), 2)

    def test_what_cannot_be_is_refused_with_the_line(self):
        for text, what in (("x = torch.randn(4, device='cuda')\nif x.sum() > 1:\n    pass\n", "run.py:5: data decides"),
                           ("torch.fft.rfft(None)\n", "run.py:4: torch.fft is not known"),
                           ("torch.multiprocessing.spawn(print, nprocs=3)\n", "run.py:4: the program starts 3 processes"),
                           ("torch.zeros(4).data_ptr()\n", "memory of the CPU"),
                           ("dist.init_process_group()\nif dist.get_rank():\n    dist.barrier()\n", "waits for")):
            with self.subTest(text), self.assertRaises(Refused) as error:
                record(text)
            self.assertIn(what, str(error.exception))


class Calls(unittest.TestCase):
    KERNEL = """
@triton.jit
def kernel(x, y, n: tl.constexpr):
    at = tl.arange(0, n)
    tl.store(y + at, tl.load(x + at))
x, y = torch.randn(8, device="cuda"), torch.empty(8, device="cuda")
"""

    def test_a_statement_that_launches_is_a_call(self):
        self.assertIn("\ncalls 3 period 1\n", record(self.KERNEL + "kernel[(1,)](x, y, 8)\n", settings="calls=3"))
        self.assertIn("\ncalls 3 period 0\n", record(self.KERNEL + "kernel[(1,)](x, torch.empty(8, device='cuda'), 8)\n", settings="calls=3"))

    IN_FUNCTIONS = [
        ("in main", "def main():\n    y = torch.zeros(8, device='cuda')\n    s = symm_mem.empty(8, dtype=torch.int32, device='cuda')\n"
                    "    kernel[(1,)](x, y, 8)\n    assert True\n\nif __name__ == '__main__':\n    main()\n"),
        ("what it returns", "def run(x, y):\n    return kernel[(1,)](x, y, 8)\n\ndef main():\n    s = symm_mem.empty(8, dtype=torch.int32, "
                            "device='cuda')\n    return run(x, torch.zeros(8, device='cuda'))\n\nmain()\n"),
        ("of a spawned rank", "def worker(rank, size):\n    s = symm_mem.empty(8, dtype=torch.int32, device='cuda')\n    with torch.no_grad():\n"
                              "        kernel[(1,)](x, y, 8)\n\ntorch.multiprocessing.spawn(worker, args=(2,), nprocs=2)\n"),
        ("memory that only the first call makes",
         "class Op:\n    s = None\n    def __call__(self, x):\n        if self.s is None:\n            self.s = symm_mem.empty(8, dtype=torch.int32, "
         "device='cuda')\n        kernel[(1,)](x, y, 8)\n\ndef main():\n    other = symm_mem.empty(8, device='cuda')\n    op = Op()\n    op(x)\n\nmain()\n"),
        ("an exception that is caught", "def main():\n    s = symm_mem.empty(8, dtype=torch.int32, device='cuda')\n    try:\n        dict()['x']\n"
                                        "    except KeyError:\n        pass\n    kernel[(1,)](x, y, 8)\n\nmain()\n")]

    def test_statements_of_functions_that_launch_are_calls(self):
        for what, text in self.IN_FUNCTIONS:
            with self.subTest(what):
                self.assertIn("\ncalls 3 period ", record(self.KERNEL + text, settings="calls=3"))

    def test_statements_that_make_symmetric_memory_each_time_are_no_calls(self):
        text = "def main():\n    s = symm_mem.empty(8, dtype=torch.int32, device='cuda'); kernel[(1,)](x, s, 8)\n\nmain()\n"
        self.assertIn("\ncalls 3 period ", record(self.KERNEL + text, settings="calls=3"))
        text = "def main():\n    kernel[(1,)](x, symm_mem.empty(8, dtype=torch.int32, device='cuda'), 8)\n\nmain()\n"
        self.assertIn("\ncalls 0 ", record(self.KERNEL + text, settings="calls=3"))

    def test_iterations_of_a_loop_of_the_program_are_its_calls(self):
        text = record(self.KERNEL + "for number in range(2):\n    kernel[(1,)](x, y, 8 - number)\n", settings="calls=3")
        self.assertIn("\ncalls 2 period 0\n", text)
        self.assertEqual(sum(line.startswith("copy") for line in ops(text)), 4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
