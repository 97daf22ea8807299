# SPDX-License-Identifier: Apache-2.0
"""Pallas kernels: what is recorded computes what numpy computes, each construct means what its verdict says, and what is not recorded is
refused at the author's line. Prints its seed."""
import os
import random
import re
import tempfile
import unittest
import unittest.mock

import numpy as np

import tile_command
from peal.record import SIZES, Refused
from peal.tiles import core, program

SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))

HEAD = '''
import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
P = jax.sharding.PartitionSpec
D = jax.device_count()
mesh = jax.make_mesh((D,), ("x",))
ANY, VMEM, SMEM, DMA, REGULAR = pl.ANY, pltpu.VMEM, pltpu.SMEM, pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
F32 = jnp.float32


def spec(space):
    return pl.BlockSpec(memory_space=space)


def call(kernel, *xs, out=(8, 128), dtype=F32, spaces=None, out_space=VMEM, scratch=(), params=None, specs=None, out_spec=P("x"), **named):
    """The kernel on every device, with a part of each array; in VMEM if not said otherwise."""
    body = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(out, dtype), in_specs=[spec(s) for s in spaces or [VMEM] * len(xs)],
                          out_specs=spec(out_space), scratch_shapes=scratch, compiler_params=params, **named)
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=specs or tuple(P("x") for _ in xs), out_specs=out_spec, check_vma=False))(*xs)


def data(*shape, dtype=F32):
    """An array of which every device has a part of that shape."""
    x = jax.random.normal(jax.random.key(0), (shape[0] * D, *shape[1:]), dtype=dtype)
    return x


def neighbours():
    me = lax.axis_index("x")
    return lax.rem(me + 1, D), lax.rem(me + D - 1, D)
'''


def record(text, ranks=2, settings="calls=1"):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(HEAD + text)
        return program.record(path, ranks, program.Options(settings))


def verdict(text, ranks=2, *options):
    """The word of the table that `peal verify` prints, and everything that it prints."""
    answer = tile_command.run_text("verify", HEAD + text, "-n", ranks, *options)
    return answer.verdicts().get(ranks, answer.err), answer.said


# ---- a recording, executed ----

TYPES = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i32": np.int32, "i64": np.int64, "i8": np.int8, "u8": np.uint8, "u32": np.uint32,
         "i16": np.int16, "u16": np.uint16}
FUNCTIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum, "minimum": np.minimum, "neg": np.negative,
             "abs": np.abs, "exp": np.exp, "sqrt": np.sqrt, "log": np.log, "tanh": np.tanh, "recip": np.reciprocal, "and": np.bitwise_and,
             "or": np.bitwise_or, "xor": np.bitwise_xor}


class Machine:
    """Memory and lanes of a recording; ops of all lanes in a random order."""

    def __init__(self, text, inputs, rng):
        self.memory, self.cells, self.done = {}, {}, {}
        self.lanes, self.rng, self.regions = {}, rng, {}
        rank = lane = None
        for line in text.splitlines():
            words = line.split()
            if not words or words[0] in ("peal", "ranks", "kernel", "launches", "note", "at", "block", "#", "implements"):
                continue
            if words[0] == "region":
                kind, name, owner, address, size, dtype = words[1], words[2], int(words[3]), int(words[4], 16), int(words[5]), words[6]
                data = np.zeros(size, np.uint8)
                if kind == "in" and name in inputs:
                    data[:] = np.frombuffer(np.ascontiguousarray(inputs[name][owner]).tobytes(), np.uint8)
                self.regions[name, owner] = (address, dtype, data)
                self.memory.setdefault(owner if kind in ("in", "private", "out") else None, []).append((address, data))
            elif words[0] == "rank":
                rank = int(words[1])
            elif words[0] == "lane":
                lane = int(words[1])
            elif words[0] == "order":  # the later lane waits until the earlier one has done so much
                key = (rank, int(words[2]))
                self.lanes.setdefault(key, []).append(("after", (rank, int(words[1])), len(self.lanes.get((rank, int(words[1])), []))))
            else:
                self.lanes.setdefault((rank, lane), []).append((line,))

    def view(self, rank, span):
        if "=" in span:
            dtype, value = span.split("=")
            return np.asarray(float(value)).astype(TYPES[dtype])
        dtype, rest = span.split("@")
        address, count, *rows = rest.split("*")
        address, count = int(address, 16), int(count)
        n, stride = (int(x) for x in rows[0].split("+")) if rows else (1, 0)
        for owner in (None, rank):
            for start, data in self.memory.get(owner, ()):
                if start <= address < start + len(data):
                    return np.ndarray((n, count), TYPES[dtype], data, address - start, (stride or count * SIZES[dtype], SIZES[dtype]))
        raise AssertionError(f"nothing is at {address:#x}")

    def can(self, op):
        if len(op) > 1:
            return self.done.get(op[1], 0) >= op[2]
        words = op[0].split()
        return words[0] != "wait" or self.cells.get(words[1], 0) >= int(words[4])

    def act(self, rank, op):
        if len(op) > 1:
            return
        words = op[0].split()
        if words[0] == "copy":
            dst, src = self.view(rank, words[1]), self.view(rank, words[2])
            dst[...] = src.reshape(dst.shape) if src.ndim else src
        elif words[0] == "accumulate":
            dst = self.view(rank, words[2])
            dst[...] = FUNCTIONS[words[1]](dst, self.view(rank, words[3]).reshape(dst.shape))
        elif words[0] == "compute":
            at = words.index("<")
            if words[1] in FUNCTIONS:
                dst = self.view(rank, words[2])
                values = [self.view(rank, one) for one in words[at + 1:]]
                dst[...] = FUNCTIONS[words[1]](*[one.reshape(dst.shape) if one.ndim else one for one in values]).astype(dst.dtype)
        elif words[0] == "notify":
            self.cells[words[1]] = self.cells.get(words[1], 0) + int(words[4])

    def run(self):
        while True:
            ready = [lane for lane, ops in self.lanes.items() if self.done.get(lane, 0) < len(ops) and self.can(ops[self.done.get(lane, 0)])]
            if not ready:
                break
            lane = self.rng.choice(ready)
            self.act(lane[0], self.lanes[lane][self.done.get(lane, 0)])
            self.done[lane] = self.done.get(lane, 0) + 1
        stuck = [lane for lane, ops in self.lanes.items() if self.done.get(lane, 0) < len(ops)]
        if stuck:
            raise AssertionError(f"lanes {stuck} are stuck")
        return self

    def result(self, name, owner, shape):
        _, dtype, data = self.regions[name, owner]
        return np.frombuffer(data.tobytes(), TYPES[dtype])[:int(np.prod(shape))].reshape(shape)


# Of arrays a (8, 128), b (8, 128), c (128,) and i (8, 128) of int32: each is computed in a kernel, and by numpy.
EXPRESSIONS = [
    "a + b", "a - b * 2", "a / b", "-a", "abs(a)", "jnp.exp(a)", "jnp.sqrt(jnp.abs(a))", "jnp.maximum(a, b)", "jnp.minimum(a, 0.5)", "2 - a", "1.5 * a + b",
    "a + c", "c * b", "a[0] + b", "a + b[:, 0:1] * 0 + b", "jnp.tanh(a)", "(a + b).reshape(128, 8).reshape(8, 128)", "a.T.reshape(8, 128)",
    "jnp.concatenate([a[:3], b[3:]])", "jnp.concatenate([a[:, :64], b[:, 64:]], axis=1)", "jnp.stack([a, b])[1]", "jnp.sum(jnp.stack([a, b, a]), axis=0)",
    "jnp.max(jnp.stack([a, b]), axis=0)", "jnp.broadcast_to(c, (8, 128))", "jnp.where(True, a, b)", "jnp.where(np.arange(8)[:, None] < 0, a, b)",
    "a[::2].repeat(1) if False else a", "jnp.split(a, 2)[1][:, :].reshape(4, 128) + b[:4] + np.zeros((8, 128), np.float32)[:4]", "jnp.expand_dims(a, 0)[0]",
    "a[None, :, :][0]", "jnp.square(a)", "jnp.zeros_like(a) + b", "jnp.full((8, 128), 3.0, jnp.float32) * a", "i + 3", "i * i", "i & 7", "i ^ 1",
    "i.astype(jnp.float32) / 2", "a.astype(jnp.int32) + i", "jnp.swapaxes(jnp.swapaxes(a, 0, 1), 0, 1) + b", "jnp.pad(a[2:6, :], ((2, 2), (0, 0)))",
    "jnp.sum(a[:4], axis=0) + b", "lax.select(False, a, b)", "lax.max(a, b)", "lax.dynamic_slice(a, (2, 0), (4, 128)) + b[:4]", "a.at[2:4].set(1.0)",
    "a.at[0].add(b[0])", "jnp.moveaxis(a.reshape(2, 4, 128), 0, 1).reshape(8, 128)", "jnp.ones((8, 128), jnp.float32) - a", "a[7] * c", "a[3:4] + b",
    "jnp.minimum(jnp.maximum(a, -1), 1)", "lax.add(a, lax.mul(b, b))", "jnp.mean(jnp.stack([a, a]), axis=0) * 0 + a" if False else "a * 1.0"]

# Of numbers that are known: the stand-in's answer, and its type, against numpy's in jax's types.
KNOWN = ["jnp.arange(12).reshape(3, 4) * 2", "jnp.arange(5, dtype=jnp.float32) / 2", "lax.rem(jnp.int32(-7), 3)", "lax.div(jnp.int32(-7), jnp.int32(2))",
         "jnp.where(jnp.arange(4) > 1, 1, 0)", "jnp.cumsum(jnp.array([1, 2, 3]))", "jnp.logical_and(True, jnp.arange(3) == 1)", "jnp.array([1.5, 2.5]).astype(jnp.int32)",
         "jnp.zeros((2, 3))", "jnp.ones(4, jnp.int32) << 2", "lax.broadcasted_iota(jnp.int32, (2, 3), 1)", "jnp.sum(jnp.arange(10))", "jnp.max(jnp.array([1, 5, 2]))",
         "jnp.concatenate([jnp.arange(2), jnp.arange(3)])", "jnp.array([[1, 2], [3, 4]]) @ jnp.array([1, 1])", "jnp.clip(jnp.arange(6), 1, 4)"]
NUMPY_KNOWN = {"lax.rem(jnp.int32(-7), 3)": -1, "lax.div(jnp.int32(-7), jnp.int32(2))": -3, "lax.broadcasted_iota(jnp.int32, (2, 3), 1)": [[0, 1, 2], [0, 1, 2]]}


class Numpy(unittest.TestCase):
    """Data that is not known is computed by the plan as numpy computes it."""

    def compute(self, expression):
        rng = np.random.default_rng(SEED)
        a, b, c = (rng.uniform(-2, 2, shape).astype(np.float32) for shape in ((8, 128), (8, 128), (128,)))
        i = rng.integers(0, 100, (8, 128)).astype(np.int32)

        class Lax:
            select, max, add, mul = staticmethod(lambda c, x, y: x if c else y), np.maximum, np.add, np.multiply
            dynamic_slice = staticmethod(lambda x, at, size: x[tuple(slice(p, p + n) for p, n in zip(at, size))])

        class Updated(np.ndarray):
            @property
            def at(self):
                outer = self

                class Key:
                    def __getitem__(self, key):
                        def change(value, how):
                            new = np.array(outer)
                            new[key] = value if how is None else how(new[key], value)
                            return new
                        return type("U", (), {"set": staticmethod(lambda v: change(v, None)), "add": staticmethod(lambda v: change(v, np.add))})
                return Key()
        wanted = np.asarray(eval(expression, {"jnp": np, "np": np, "lax": Lax, "a": a.view(Updated), "b": b, "c": c, "i": i, "abs": abs}))
        wanted = wanted.astype({"float64": np.float32, "int64": np.int32}.get(wanted.dtype.name, wanted.dtype))
        dtype = "jnp.int32" if wanted.dtype == np.int32 else "F32"
        text = f'''
def kernel(a_ref, b_ref, c_ref, i_ref, o_ref):
    a, b, c, i = a_ref[...], b_ref[...], c_ref[...], i_ref[...]
    o_ref[...] = {expression}

f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct({wanted.shape}, {dtype}))
a = jax.random.normal(0, (8, 128))
b = jax.random.normal(0, (8, 128))
c = jax.random.normal(0, (128,))
i = jax.random.randint(0, (8, 128), 0, 9)
jax.shard_map(f, mesh=mesh, in_specs=P(), out_specs=P())(a, b, c, i)
'''
        machine = Machine(record(text, 1), {"a": [a], "b": [b], "c": [c], "i": [i]}, random.Random(SEED)).run()
        np.testing.assert_allclose(machine.result("o_ref_hbm", 0, wanted.shape), wanted, rtol=1e-6, err_msg=expression)

    def test_expressions(self):
        for expression in EXPRESSIONS:
            with self.subTest(expression):
                self.compute(expression)

    def test_random_expressions(self):
        rng = random.Random(SEED)

        def grow(depth):
            if depth == 0 or rng.random() < 0.15:
                return rng.choice(["a", "b", "c", "a[1]", "b[2:3]", "0.5", "a[:, :]", "jnp.abs(b)"])
            kind = rng.random()
            if kind < 0.6:
                return f"({grow(depth - 1)} {rng.choice(['+', '-', '*'])} {grow(depth - 1)})"
            if kind < 0.8:
                return f"jnp.{rng.choice(['maximum', 'minimum'])}({grow(depth - 1)}, {grow(depth - 1)})"
            return f"jnp.concatenate([({grow(depth - 1)} + a)[:4], ({grow(depth - 1)} + b)[4:]])"
        for _ in range(25):
            expression = f"a * 0 + {grow(3)}"
            with self.subTest(expression):
                self.compute(expression)

    def test_known_numbers(self):
        """They stay with numpy, in jax's types, and decide what happens."""
        checks = []
        for expression in KNOWN:
            value = NUMPY_KNOWN.get(expression)
            wanted = np.asarray(eval(expression, {"jnp": np}) if value is None else value)
            kind = {"float64": "float32", "int64": "int32"}.get(wanted.dtype.name, wanted.dtype.name)
            checks.append(f"check({expression!r}, {expression}, {wanted.tolist()!r}, {kind!r})")
        record('''
def check(text, value, wanted, kind):
    value = np.asarray(value)
    if value.tolist() != wanted or value.dtype.name not in (kind, "int64" if text.startswith("lax.") else kind):
        raise SystemExit(f"{text} is {value.tolist()} of {value.dtype}, and not {wanted} of {kind}")
''' + "\n".join(checks) + '''
call(lambda x, o: o.__setitem__(Ellipsis, x[...]), data(8, 128))
''')

    def test_collectives_give_what_they_should(self):
        """All devices, in a random order: a ring of copies that add up."""
        rng = np.random.default_rng(SEED)
        inputs = [rng.uniform(-1, 1, (8, 128)).astype(np.float32) for _ in range(4)]
        text = record(RING, 4, "calls=2")
        for seed in range(5):
            machine = Machine(text, {"x": inputs}, random.Random(SEED + seed)).run()
            for owner in range(4):
                np.testing.assert_allclose(machine.result("o_ref_hbm", owner, (8, 128)), sum(inputs), rtol=1e-5, atol=1e-5)


RING = '''
def ring(x_ref, o_ref, slots, send, recv, ready):
    right, left = neighbours()
    pl.semaphore_signal(ready, device_id=left)
    slots[0] = x_ref[...]
    o_ref[...] = x_ref[...]
    for step in range(D - 1):
        here, there = step % 2, (step + 1) % 2
        pl.semaphore_wait(ready)
        copy = pltpu.make_async_remote_copy(slots.at[here], slots.at[there], send, recv.at[there], device_id=(right,))
        copy.start()
        copy.wait()
        o_ref[...] += slots[there]
        if step < D - 2:
            pl.semaphore_signal(ready, device_id=left)


x = data(8, 128)
y = call(ring, x, scratch=[VMEM((2, 8, 128), F32), DMA, DMA((2,)), REGULAR])
'''

# Constructs: name, text, ranks, the verdict, and words that the answer has.
PERMUTE = '''
def kernel(x_ref, o_ref, send, recv):
    right, left = neighbours()
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send, recv, device_id=(right,), device_id_type=pl.DeviceIdType.MESH)
    copy.start()
    {waits}
    {after}

y = call(kernel, data(8, 128), scratch=[DMA, DMA], spaces=[{space}], out_space={space}{params})
'''


def permute(waits="copy.wait()", after="pass", space="ANY", params=""):
    return PERMUTE.format(waits=waits, after=after, space=space, params=params)


PIPELINE = '''
def kernel(x_ref, o_ref, slots, send, recv):
    right, left = neighbours()
    copy = pltpu.make_async_remote_copy(x_ref, slots, send, recv, device_id=(right,))
    copy.start()
    {after}

    def add(block_ref, own_ref, sum_ref):
        assert block_ref.shape == (8, 128) and pl.num_programs(1) == 2
        sum_ref[...] = block_ref[...] + own_ref[...]
    block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    pltpu.emit_pipeline(add, grid=(1, 2), in_specs=[block, block], out_specs=block)(slots, x_ref, o_ref)
    {before}

call(kernel, data(8, 256), out=(8, 256), spaces=[ANY], out_space=ANY, scratch=[pltpu.HBM((8, 256), F32), DMA, DMA])
'''

PASSED = '''
def start(x, same, o, sem):
    pltpu.make_async_copy(x, o, sem).start()

def done(x, o, sem, same):
    pltpu.{wait}

def f(x):
    x, o, sem = pl.pallas_call(start, in_specs=[spec(ANY)], out_specs=(spec(ANY), spec({space}), spec(pltpu.SEMAPHORE)), input_output_aliases={{0: 0}},
                               out_shape=(jax.ShapeDtypeStruct.like(x), {space}(x.shape, x.dtype), DMA(())))(x)
    return pl.pallas_call(done, in_specs=[spec(ANY), spec({space}), spec(pltpu.SEMAPHORE)], out_specs=spec({space}), input_output_aliases={{1: 0}},
                          out_shape={space}(x.shape, x.dtype))(x, o, sem)

jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(data(8, 128))
'''

SHARED = '''
def kernel(x_ref, o_ref, buf, sem):
    one = pltpu.async_copy(x_ref.at[0:4], buf.at[0:4], sem)
    two = pltpu.async_copy(x_ref.at[4:8], buf.at[4:8], sem)
    one.wait()
    {early}
    two.wait()
    {late}

call(kernel, data(8, 128), scratch=[VMEM((8, 128), F32), DMA])
'''

CONSTRUCTS = [
    ("a copy that is waited for", permute(), 3, "proved", "that Pallas inserts a barrier"),
    ("in vector memory", permute(space="VMEM"), 3, "proved", ""),
    ("no wait for the sent half", permute("copy.wait_recv()"), 2, "deadlock", "'send' of rank 0 holds 4096 when 'kernel' ends"),
    ("no wait for the received half", permute("copy.wait_send()"), 2, "deadlock", "'recv' of rank 0 holds 4096 when 'kernel' ends"),
    ("the result is used before it is there", permute(after="pass", waits="o_ref[0:1] = x_ref[0:1]; copy.wait()", space="VMEM"), 2, "race", "of 'o_ref'"),
    ("the source is used after wait_send", permute("copy.wait_send(); x_ref[...] = jnp.zeros_like(x_ref); copy.wait_recv()", space="VMEM"), 2, "proved", ""),
    ("the source is used before wait_send", permute("copy.wait_recv(); x_ref[...] = jnp.zeros_like(x_ref); copy.wait_send()", space="VMEM"), 2, "race", ""),
    ("no barrier where a kernel begins", permute(params=", params=pltpu.CompilerParams(skip_device_barrier=True)"), 2, "race", "o_ref"),
    ("waits twice", permute("copy.wait(); copy.wait_recv()"), 2, "deadlock", ""),
    ("a local copy is used before its wait", '''
def kernel(x_ref, o_ref, buf, sem):
    copy = pltpu.make_async_copy(x_ref, buf, sem)
    copy.start()
    o_ref[...] = buf[...]
    copy.wait()

call(kernel, data(8, 128), scratch=[VMEM((8, 128), F32), DMA])
''', 1, "race", "of 'buf'"),
    ("a local copy", '''
def kernel(x_ref, o_ref, buf, sem):
    pltpu.async_copy(x_ref, buf, sem).wait()
    o_ref[...] = buf[...] + 1.0

call(kernel, data(8, 128), scratch=[VMEM((8, 128), F32), DMA])
''', 1, "proved", ""),
    ("one semaphore for two copies", SHARED.format(early="o_ref[0:4] = buf[0:4]", late="o_ref[4:8] = buf[4:8]"), 1, "race", "of 'buf'"),
    ("one semaphore for two copies, both waited for", SHARED.format(early="pass", late="o_ref[...] = buf[...]"), 1, "proved", ""),
    ("two copies to one device, one semaphore", '''
def kernel(x_ref, o_ref, send, recv):
    right, left = neighbours()
    one = pltpu.async_remote_copy(x_ref.at[0:4], o_ref.at[0:4], send, recv, right)
    two = pltpu.async_remote_copy(x_ref.at[4:8], o_ref.at[4:8], send, recv, right)
    one.wait()
    o_ref[0:4] = o_ref[0:4] + 1.0
    two.wait()

call(kernel, data(8, 128), scratch=[DMA, DMA])
''', 2, "race", "remote copies arrive in any order"),
    ("a signal too many", '''
def kernel(x_ref, o_ref, sem):
    pl.semaphore_signal(sem, 2)
    pl.semaphore_wait(sem)
    o_ref[...] = x_ref[...]

call(kernel, data(8, 128), scratch=[REGULAR])
''', 1, "deadlock", "holds 1 when 'kernel' ends"),
    ("a signal too few", '''
def kernel(x_ref, o_ref, sem):
    pl.semaphore_signal(sem, device_id=neighbours()[0])
    pl.semaphore_wait(sem, 2)
    o_ref[...] = x_ref[...]

call(kernel, data(8, 128), scratch=[REGULAR])
''', 2, "deadlock", ""),
    ("a wait that takes nothing", '''
def kernel(x_ref, o_ref, sem):
    pl.semaphore_signal(sem)
    pl.semaphore_wait(sem, 1, decrement=False)
    pl.semaphore_wait(sem, 1)
    o_ref[...] = x_ref[...]

call(kernel, data(8, 128), scratch=[REGULAR])
''', 1, "proved", ""),
    ("memory that nobody wrote", '''
def kernel(x_ref, o_ref, buf):
    o_ref[...] = buf[...]

call(kernel, data(8, 128), scratch=[VMEM((8, 128), F32)])
''', 1, "uninitialised read", "buf"),
    ("an axis, and the whole mesh", '''
mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))

def kernel(x_ref, o_ref, send, recv):
    other = 1 - lax.axis_index("b")
    pltpu.async_remote_copy(x_ref, o_ref, send, recv, device_id={"b": other}).wait()
    assert lax.axis_size(("a", "b")) == 4 and lax.axis_index(("a", "b")) == lax.axis_index("a") * 2 + lax.axis_index("b")

call(kernel, jax.random.normal(0, (16, 256)), scratch=[DMA, DMA], specs=(P("a", "b"),), out_spec=P("a", "b"))
''', 4, "proved", ""),
    ("a device by its number", '''
def kernel(x_ref, o_ref, send, recv):
    pltpu.async_remote_copy(x_ref, o_ref, send, recv, device_id=neighbours()[0], device_id_type=pl.DeviceIdType.LOGICAL).wait()

call(kernel, data(8, 128), scratch=[DMA, DMA])
''', 3, "proved", ""),
    ("only some devices send", '''
def kernel(x_ref, o_ref, send, recv):
    me = lax.axis_index("x")
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send, recv, device_id=1)

    @pl.when(me == 0)
    def _():
        copy.start()
        copy.wait_send()
        o_ref[...] = x_ref[...]

    @pl.when(me == 1)
    def _():
        copy.wait_recv()

    @pl.when(me > 1)
    def _():
        o_ref[...] = x_ref[...]

call(kernel, data(8, 128), scratch=[DMA, DMA])
''', 4, "proved", ""),
    ("loops", '''
def kernel(x_ref, o_ref, acc):
    acc[...] = jnp.zeros_like(acc)

    def add(i, carry):
        acc[i] = x_ref[i] + carry
        return carry + 1
    assert lax.fori_loop(0, 4, add, 0) == 4

    @pl.loop(4, 8)
    def _(i):
        acc[i] = x_ref[i]
    assert lax.while_loop(lambda n: n < 5, lambda n: n + 2, 0) == 6
    assert lax.cond(lax.axis_index("x") >= 0, lambda: 1, lambda: 2) == 1
    assert lax.switch(1, [lambda: 0, lambda: 7]) == 7
    carry, ys = lax.scan(lambda c, x: (c + x, c), 0, jnp.arange(4))
    assert carry == 6 and ys.tolist() == [0, 0, 1, 3]
    o_ref[...] = acc[...]

call(kernel, data(8, 128), scratch=[VMEM((8, 128), F32)])
''', 2, "proved", ""),
    ("a grid with blocks", '''
def kernel(x_ref, o_ref, acc):
    i, j = pl.program_id(0), pl.program_id(1)
    assert x_ref.shape == (8, 128) and pl.num_programs(1) == 2

    @pl.when(j == 0)
    def _():
        acc[...] = jnp.zeros_like(acc)
    acc[...] += x_ref[...]

    @pl.when(j == 1)
    def _():
        o_ref[...] = acc[...]

f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16, 128), F32), grid=(2, 2), in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
                   out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, 0)), scratch_shapes=[VMEM((8, 128), F32)])
jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(data(16, 256))
''', 2, "proved", "that blocks of a grid are copied before and after the body"),
    ("a pipeline within a kernel", PIPELINE.format(after="copy.wait()", before=""), 2, "proved", ""),
    ("a pipeline before its data is there", PIPELINE.format(before="copy.wait()", after=""), 2, "race", "of 'slots'"),
    ("prefetched scalars steer", '''
def kernel(order, x_ref, o_ref):
    @pl.when(order[pl.program_id(0)] >= 0)
    def _():
        o_ref[...] = x_ref[...]

f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16, 128), F32), grid_spec=pltpu.PrefetchScalarGridSpec(
    num_scalar_prefetch=1, grid=(2,), in_specs=[pl.BlockSpec((8, 128), lambda i, order: (order[i], 0))],
    out_specs=pl.BlockSpec((8, 128), lambda i, order: (i, 0))))
jax.shard_map(f, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(jnp.array([1, 0], jnp.int32), data(16, 128))
''', 2, "proved", "for the given numbers of 'order'"),
    ("scalar memory", '''
def kernel(n_ref, x_ref, o_ref, counter):
    counter[0] = n_ref[0] + 1

    @pl.when(counter[0] == 4)
    def _():
        o_ref[...] = x_ref[...]

f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), F32), in_specs=[spec(SMEM), spec(VMEM)], out_specs=spec(VMEM),
                   scratch_shapes=[SMEM((1,), jnp.int32)])
jax.shard_map(f, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(jnp.array([3], jnp.int32), data(8, 128))
''', 2, "proved", ""),
    ("scoped memory", '''
def kernel(x_ref, o_ref):
    def body(buf, sems, extra):
        pltpu.async_copy(x_ref, buf, sems.at[1]).wait()
        pltpu.sync_copy(buf, o_ref)
        extra[...] = buf[0:1]
    pl.run_scoped(body, VMEM((8, 128), F32), DMA((2,)), extra=VMEM((1, 128), F32))

call(kernel, data(8, 128))
''', 2, "proved", ""),
    ("scratch in a dictionary", '''
def kernel(x_ref, o_ref, s):
    pltpu.async_copy(x_ref, s["buf"], s["sem"]).wait()
    o_ref[...] = s["buf"][...]

call(kernel, data(8, 128), scratch=({"buf": VMEM((8, 128), F32), "sem": DMA},))
''', 2, "proved", ""),
    ("an operand that is also the result", '''
def kernel(x_ref, o_ref):
    o_ref[...] += 1.0

call(kernel, data(8, 128), input_output_aliases={0: 0}, spaces=[ANY], out_space=ANY)
''', 2, "proved", ""),
    ("two cores", '''
cores = pltpu.TensorCoreMesh(axis_name="core", num_cores=2)

@functools.partial(pl.kernel, out_type=jax.ShapeDtypeStruct((8, 128), F32), mesh=cores, scratch_types=[VMEM((4, 128), F32), DMA])
def kernel(x_ref, o_ref, buf, sem):
    half = pl.ds(lax.axis_index("core") * 4, 4)
    pltpu.async_copy(x_ref.at[half], buf, sem).wait()
    pltpu.sync_copy(buf, o_ref.at[half])

jax.shard_map(kernel, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(data(8, 128))
''', 2, "proved", ""),
    ("two cores that write one place", '''
cores = pltpu.TensorCoreMesh(axis_name="core", num_cores=2)

@functools.partial(pl.kernel, out_type=jax.ShapeDtypeStruct((8, 128), F32), mesh=cores)
def kernel(x_ref, o_ref):
    pltpu.sync_copy(x_ref, o_ref)

jax.shard_map(kernel, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(data(8, 128))
''', 1, "race", "lanes 0 and 1 of rank 0"),
    ("cores that wait for each other", '''
cores = pltpu.TensorCoreMesh(axis_name="core", num_cores=2)

def f(x):
    x_ref, o_ref = jax.new_ref(x), jax.new_ref(jnp.empty_like(x))

    @pl.core_map(cores)
    def _():
        def body(sem):
            me = lax.axis_index("core")

            @pl.when(me == 0)
            def _():
                pltpu.sync_copy(x_ref, o_ref)
                pl.semaphore_signal(sem, 1, device_id={"core": 1})

            @pl.when(me == 1)
            def _():
                pl.semaphore_wait(sem, 1)
                pltpu.sync_copy(x_ref, o_ref)
        pl.run_scoped(body, REGULAR)
    return jax.freeze(o_ref)

jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(data(8, 128))
''', 2, "proved", ""),
    ("a barrier of neighbours, once, at four devices", "BARRIER(False)", 4, "proved", ""),
    ("a barrier of neighbours, once, at five devices", "BARRIER(False)", 5, "race", ""),
    ("a barrier of neighbours, twice, at five devices", "BARRIER(True)", 5, "proved", ""),
    ("semaphores as values", '''
def make(sem):
    pass

def use(x_ref, sem, o_ref):
    pl.semaphore_signal(sem, device_id=neighbours()[0])
    pl.semaphore_wait(sem)
    o_ref[...] = x_ref[...]

def f(x):
    sem = pl.pallas_call(make, in_specs=[], out_specs=spec(pltpu.SEMAPHORE), out_shape=REGULAR(()))()
    return pl.pallas_call(use, in_specs=[spec(VMEM), spec(pltpu.SEMAPHORE)], out_specs=spec(VMEM), out_shape=jax.ShapeDtypeStruct((8, 128), F32))(x, sem)

jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(data(8, 128))
''', 2, "proved", ""),
    ("a copy that one kernel starts, and another one waits for", PASSED.format(space="pl.ANY", wait="make_async_copy(x, o, sem).wait()"), 2, "proved", ""),
    ("the same into vector memory", PASSED.format(space="VMEM", wait="make_async_copy(x, o, sem).wait()"), 2, "proved", ""),
    ("a copy that no kernel waits for", PASSED.format(space="pl.ANY", wait="touch(o)"), 2, "deadlock", "'sem' of rank 0 holds 12288"),
    ("a kernel outside of shard_map", '''
f = jax.jit(lambda x, n: pl.pallas_call(lambda x, o: o.__setitem__(Ellipsis, x[...] * n[None]), out_shape=jax.ShapeDtypeStruct.like(x))(x))
f(jax.random.normal(jax.random.key(0), (8, 128)), 2)
''', 2, "proved", ""),
    ("the mesh of the array", '''
x = jax.device_put(data(8, 128), jax.sharding.NamedSharding(mesh, P("x")))
kernel = pl.pallas_call(lambda x, o, s, r: pltpu.async_remote_copy(x, o, s, r, neighbours()[0]).wait(), scratch_shapes=[DMA, DMA],
                        out_shape=jax.ShapeDtypeStruct((8, 128), F32), in_specs=[spec(ANY)], out_specs=spec(ANY))
jax.shard_map(kernel, in_specs=P("x"), out_specs=P("x"))(x)
''', 3, "proved", ""),
    ("two kernels, one after the other", '''
def f(x):
    one = pl.pallas_call(lambda x, o: o.__setitem__(Ellipsis, x[...] + 1.0), out_shape=jax.ShapeDtypeStruct((8, 128), F32))(x)
    return pl.pallas_call(lambda x, o: o.__setitem__(Ellipsis, x[...] * 2.0), out_shape=jax.ShapeDtypeStruct((8, 128), F32))(one * 2)

jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(data(8, 128))
''', 2, "proved", ""),
    ("fewer devices than ranks", '''
mesh = jax.sharding.Mesh(jax.devices()[:2], ["x"])

def kernel(x_ref, o_ref, send, recv):
    pltpu.async_remote_copy(x_ref, o_ref, send, recv, 1 - lax.axis_index("x")).wait()

y = call(kernel, jax.random.normal(0, (16, 128)), scratch=[DMA, DMA])
print(y[0] + 1)
''', 3, "proved", ""),
    ("a copy that adds", '''
def kernel(x_ref, o_ref, sem):
    o_ref[...] = x_ref[...]
    pltpu.make_async_copy(x_ref, o_ref, sem).start(add=True)
    pltpu.make_async_copy(x_ref, o_ref, sem).wait()

call(kernel, data(8, 128), scratch=[DMA])
''', 1, "proved", ""),
    ("the size of what is beyond may be waited for", '''
def kernel(x_ref, o_ref, sem):
    pltpu.async_copy(x_ref, o_ref, sem)
    pltpu.async_copy(x_ref.at[0:4], o_ref.at[0:4], sem) if False else None
    pltpu.make_async_copy(x_ref.at[pl.ds(0, 8)], o_ref.at[pl.ds(4, 8)], sem).wait()

call(kernel, data(8, 128), scratch=[DMA])
''', 1, "proved", ""),
]

BARRIER = '''
def kernel(x_ref, o_ref, send, recv):
    right, left = neighbours()
    sem = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(sem, device_id=left)
    pl.semaphore_signal(sem, device_id=right)
    pl.semaphore_wait(sem, 2)
    if {twice}:
        @functools.partial(pl.run_scoped, again=REGULAR)
        def _(again):
            pl.semaphore_signal(again, device_id=left)
            pl.semaphore_signal(again, device_id=right)
            pl.semaphore_wait(again, 2)
    pltpu.async_remote_copy(x_ref, o_ref, send, recv, right).wait()

call(kernel, data(8, 128), scratch=[DMA, DMA], spaces=[ANY], out_space=ANY, params=pltpu.CompilerParams(collective_id=0))
'''


@unittest.skipUnless(tile_command.COMMAND, "the command is not built")
class Constructs(unittest.TestCase):
    def test_each_means_what_its_verdict_says(self):
        for name, text, ranks, wanted, words in CONSTRUCTS:
            if text.startswith("BARRIER"):
                text = BARRIER.format(twice=text == "BARRIER(True)")
            with self.subTest(name):
                found, said = verdict(text, ranks)
                self.assertEqual(found, wanted, said)
                self.assertIn(words, re.sub(r"\s+", " ", said))

    def test_copies_that_arrive_in_order(self):
        text = next(text for name, text, *_ in CONSTRUCTS if name == "two copies to one device, one semaphore")
        found, said = verdict(text, 2, "--in-order-copies")
        self.assertEqual(found, "proved", said)
        self.assertIn("that copies from one device to the same other one arrive in the order", re.sub(r"\s+", " ", said))

    def test_calls(self):
        """The race needs a second call."""
        for calls, wanted in (1, "proved"), (2, "race"), (3, "race"):
            self.assertEqual(verdict(BARRIER.format(twice=False), 5, "--calls", str(calls))[0], wanted)
        self.assertEqual(verdict(BARRIER.format(twice=False), 5, "--between", "barrier")[0], "proved")

    def test_any_number_of_calls(self):
        """Three calls tell of all where all of the first comes before all of the third."""
        twice = BARRIER.format(twice=True)
        grows = next(text for name, text, *_ in CONSTRUCTS if name == "an operand that is also the result")
        for text, ranks, words in (
                (RING, 4, "proved for any number of calls"),
                (permute(), 4, "proved for any number of calls"),      # Pallas has inserted a barrier of all devices
                (twice, 4, "proved for any number of calls"),
                (twice, 9, "for 3 calls only: part of a call may go on when the one after the next begins"),  # neighbours meet, twice each call
                (grows, 2, "for 3 calls only: each call writes 'x_ref"),
                ("state = [0]\n" + permute(after="state[0] += 1; o_ref[0:1] = x_ref[0:1] * state[0]", space="VMEM"), 2, "for 3 calls only: call")):
            found, said = verdict(text, ranks)
            self.assertEqual(found, "proved", said)
            self.assertIn(words, re.sub(r"\s+", " ", said))
        for words in ("assumed: that later calls go on like the 3 that were recorded",):
            self.assertIn(words, re.sub(r"\s+", " ", verdict(RING, 2)[1]))

    def test_contracts(self):
        text = RING.replace("F32 =", "").replace("x = data(8, 128)", "x = data(8, 128, dtype=jnp.int32)").replace(
            "VMEM((2, 8, 128), F32)", "VMEM((2, 8, 128), jnp.int32)").replace("call(ring, x,", "call(ring, x, dtype=jnp.int32,")
        for wanted, change in (("proved", None), ("wrong result", ("+= slots[there]", "+= slots[there] * 2"))):
            changed = text.replace(*change) if change else text
            self.assertEqual(verdict(changed, 4, "--implements", "allreduce")[0], wanted)
            compared = "np.testing.assert_array_equal(y, jax.shard_map(lambda v: lax.psum(v, 'x'), mesh=mesh, in_specs=P('x'), out_specs=P('x'))(x))\n"
            found, said = verdict(changed + compared, 4)
            self.assertEqual(found, wanted, said)
            self.assertEqual(verdict(changed + "import peal\npeal.expect(y, sum(peal.of_ranks(x)))\n", 4)[0], wanted)


    def test_a_kernel_runs(self):
        """On ranks of this host, with data, as any plan."""
        done = tile_command.run_text("run", HEAD + RING + "np.testing.assert_allclose(y, jax.shard_map(lambda v: lax.psum(v, 'x'), mesh=mesh, in_specs=P('x'), "
                      "out_specs=P('x'))(x))\n", "-n", 3, "--launches", 2)
        self.assertIn("allreduce: right", done.out, done.err)


# What is not recorded: a kernel's body (or a whole program), and what is said, with the number of its line.
REFUSED = [
    ("@pl.when(x_ref[0, 0] > 0)\n    def _(): pass", "data decides what happens next"),
    ("o_ref[pl.ds(x_ref[0, 0].astype(jnp.int32), 1)] = x_ref[0:1]", "a number is wanted where only data is"),
    ("pltpu.emit_pipeline(lambda a: None, grid=(1,), in_specs=[spec(VMEM)])(x_ref, o_ref)", "a pipeline of 1 specifications is given 2"),
    ("pltpu.emit_pipeline_with_allocations(None)", "emit_pipeline_with_allocations is not known to Peal"),
    ("o_ref[9] = x_ref[0]", "index 9 of dimension 0 of 'o_ref' of shape [8, 128]"),
    ("o_ref[pl.ds(4, 8)] = x_ref[...]", "elements 4 to 11 of dimension 0 of 'o_ref'"),
    ("o_ref[0:4] = x_ref[...]", "an array of shape [8, 128] is stored in 'o_ref' at a place of shape [4, 128]"),
    ("pltpu.make_async_copy(x_ref, o_ref.at[0:4], dma).start()", "a copy of 'x_ref' of shape [8, 128]"),
    ("pl.semaphore_signal(dma)", "'dma' is a DMA semaphore: only copies signal it"),
    ("pl.semaphore_wait(dma)", "'dma' is a DMA semaphore"),
    ("pl.semaphore_signal(regular, -1)", "a signal of -1"),
    ("pl.semaphore_signal(regular, device_id=7)", "there is no device 7 on axis 'x', which has 2"),
    ("pl.semaphore_signal(regular, device_id={'z': 0})", "device_id names axis 'z'"),
    ("pl.semaphore_signal(regular, device_id=(0, 0))", "device_id has 2 numbers; the mesh has 1 axes"),
    ("pltpu.async_copy(x_ref, o_ref, sems)", "'sems' is [2] semaphores: one is wanted"),
    ("regular[...]", "pl.semaphore_read is for that"),
    ("pltpu.get_barrier_semaphore()", "without a collective_id"),
    ("pl.program_id(3)", "axis 3 of a grid of 0 dimensions"),
    ("lax.axis_index('nowhere')", "axis 'nowhere' is not one of the mesh"),
    ("pltpu.make_async_copy(x_ref, o_ref, dma).wait_send()", "wait_send of a copy within the device"),
    ("pltpu.make_async_copy(x_ref[...], o_ref, dma)", "the source of a copy is a Array"),
    ("pl.something_new()", "jax.experimental.pallas.something_new is not known to Peal"),
    ("jnp.no_such_function(x_ref[...])", "jax.numpy.no_such_function is not known"),
    ("np.asarray(x_ref[...])", "not known in a recording"),
    ("jax.vmap(lambda v: v)(x_ref[...])", "jax.vmap is not recorded"),
]


class Refusals(unittest.TestCase):
    def test_each_is_refused_at_its_line(self):
        for body, why in REFUSED:
            text = f'''
def kernel(x_ref, o_ref, dma, regular, sems):
    {body}

call(kernel, data(8, 128), scratch=[DMA, REGULAR, DMA((2,))])
'''
            with self.subTest(body):
                with self.assertRaises(Refused) as found:
                    record(text)
                self.assertIn(why, str(found.exception))
                line = HEAD.count("\n") + 3
                self.assertRegex(str(found.exception), rf"run\.py:({line}|{line + 1}): ")

    def test_a_loop_that_does_not_end(self):
        with unittest.mock.patch.object(core, "MAX_OPS", 20000), self.assertRaisesRegex(Refused, "a loop without end"):
            record('''
def kernel(x_ref, o_ref):
    lax.while_loop(lambda n: n >= 0, lambda n: (o_ref.__setitem__(0, x_ref[0]), n)[1], 0)

call(kernel, data(8, 128))
''', 4)

    def test_outside_of_what_it_is_for(self):
        for text, why in ((("pl.program_id(0)"), "in a Pallas kernel only"), ("lax.axis_index('x')", "called outside of jax.shard_map"),
                          ("import jax.experimental.pallas.mosaic_gpu", "is not known to Peal")):
            with self.assertRaises((Refused, ModuleNotFoundError)) as found:
                record(text + "\n")
            self.assertIn(why, str(found.exception))


if __name__ == "__main__":
    print("seed", SEED)
    unittest.main()
