# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of tiles whose values are known, against numpy and exact integers: random expressions. Prints its seed."""
import os
import random
import unittest

import numpy as np

from peal.record import Refused
from peal.tiles import data, triton
from peal.tiles.data import TYPES

SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]
FLOATS = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}


def wrapped(values, name):
    """Exact integers, as the type has them."""
    bits, signed = int(name.lstrip("uint")), name[0] == "i"
    low = np.vectorize(lambda x: int(x) & ((1 << bits) - 1), otypes=[object])(values)
    return np.vectorize(lambda x: x - (1 << bits) if signed and x >> (bits - 1) else x, otypes=[object])(low)


def kind(name):
    return "f" if name in FLOATS else "b" if name == "int1" else "u" if name[0] == "u" else "i"


def width(name):
    return {"fp16": 16, "fp32": 32, "fp64": 64, "int1": 1}.get(name) or int(name.lstrip("uint"))


def common(a, b):
    """The type of a result: a float wins, then the wider one, then the one without a sign."""
    if (kind(a) == "f") != (kind(b) == "f"):
        return a if kind(a) == "f" else b
    if width(a) != width(b):
        return a if width(a) > width(b) else b
    return a if kind(a) == "u" else b


class Value:
    """A tile, and what is expected of it: exact integers (objects), or an array of its float type."""

    def __init__(self, tile, expected, name):
        self.tile, self.expected, self.name = tile, np.asarray(expected), name

    def as_type(self, name):
        """Its elements in another type."""
        if name in FLOATS:
            return self.expected.astype(FLOATS[name])
        if name == "int1":
            return self.expected.astype(bool).astype(object)
        if kind(self.name) == "f":
            return wrapped(np.trunc(self.expected.astype(np.float64)), name)
        return wrapped(self.expected, name)


def c_divide(a, b):
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def exactly(function, otypes=object):
    return np.vectorize(function, otypes=[otypes])


EXACT = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "//": c_divide, "%": lambda a, b: a - b * c_divide(a, b),
         "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
         "maximum": max, "minimum": min}
COMPARE = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b, ">": lambda a, b: a > b,
           ">=": lambda a, b: a >= b}
FLOAT = {"+": np.add, "-": np.subtract, "*": np.multiply, "maximum": np.fmax, "minimum": np.fmin}


def on_tiles(op, a, b):
    if op in ("maximum", "minimum"):
        return {"maximum": triton.maximum, "minimum": triton.minimum}[op](a, b)
    return eval(f"a {op} b", {"a": a, "b": b})  # pylint: disable=eval-used


class Expressions:
    def __init__(self, rng):
        self.rng = rng

    def leaf(self, shape):
        rng, name = self.rng, self.rng.choice(INTEGERS + ["int32"] * 6 + ["fp32", "fp32", "fp16", "fp64"])
        if shape and len(shape) == 1 and rng.random() < 0.4:
            start = rng.randrange(0, 50)
            return Value(data.arange(start, start + shape[0]), np.arange(start, start + shape[0]).astype(object), "int32")
        if name in FLOATS:
            number = FLOATS[name](rng.randrange(-64, 65) / 8)
            return Value(data.full(shape, float(number), TYPES[name]), np.full(shape, number), name)
        low, high = (0, 1 << width(name)) if kind(name) == "u" else (-(1 << width(name) - 1), 1 << width(name) - 1)
        number = rng.choice([rng.randrange(low, high), rng.randrange(max(low, -20), min(high, 20)), low, high - 1, 0, 1])
        return Value(data.full(shape, number, TYPES[name]), np.full(shape, number, dtype=object), name)

    def make(self, depth, shape):
        rng = self.rng
        if depth == 0:
            return self.leaf(shape)
        what = rng.choice(["binary"] * 6 + ["compare", "where", "cast", "number", "shape", "shape", "neg", "reduce", "broadcast"])
        if what == "binary":
            return self.binary(self.make(depth - 1, shape), self.make(depth - 1, rng.choice([shape, shape, ()])))
        if what == "number":
            return self.with_number(self.make(depth - 1, shape))
        if what == "compare":
            a, b, op = self.make(depth - 1, shape), self.make(depth - 1, shape), rng.choice(list(COMPARE))
            name = common(a.name, b.name)
            expected = exactly(COMPARE[op], bool)(a.as_type(name), b.as_type(name)).astype(object)
            return Value(on_tiles(op, a.tile, b.tile), expected, "int1")
        if what == "where":
            chosen = self.make(depth - 1, shape)
            a, b = self.make(depth - 1, shape), self.make(depth - 1, shape)
            name = common(a.name, b.name)
            mask = chosen.expected.astype(bool)
            return Value(data.where(chosen.tile != 0, a.tile, b.tile), np.where(mask, a.as_type(name), b.as_type(name)), name)
        value = self.make(depth - 1, shape)
        if what == "cast":
            name = rng.choice(INTEGERS + list(FLOATS))
            if kind(value.name) == "f" and kind(name) != "f" and not self.fits(value, name):
                return value
            return Value(value.tile.to(TYPES[name]), value.as_type(name), name)
        if what == "neg" and value.name != "int1":
            return Value(-value.tile, -value.expected if value.name in FLOATS else wrapped(-value.expected, value.name), value.name)
        if what == "shape" and len(shape) == 1:
            return self.arranged(value, shape[0])
        if what == "reduce" and shape and value.name != "int1":
            return self.reduced(value, shape)
        if what == "broadcast" and len(shape) == 1 and shape[0] <= 8:
            other = self.make(depth - 1, shape)
            two = self.binary(Value(value.tile[:, None], value.expected[:, None], value.name), Value(other.tile[None, :], other.expected[None, :], other.name))
            return Value(triton.language()["max"](two.tile, 1), two.expected.max(axis=1), two.name) if two.name != "int1" else value
        return value

    @staticmethod
    def fits(value, name):
        low, high = (0, 1 << width(name)) if kind(name) == "u" else (-(1 << width(name) - 1), 1 << width(name) - 1)
        return bool(np.isfinite(value.expected.astype(np.float64)).all() and (value.expected > low).all() and (value.expected < high).all())

    def binary(self, a, b):
        name = common(a.name, b.name)
        if name == "int1":
            op = self.rng.choice(["&", "|", "^"])
            return Value(on_tiles(op, a.tile, b.tile), exactly(EXACT[op])(a.expected.astype(bool), b.expected.astype(bool)), name)
        if name in FLOATS:
            op = self.rng.choice(list(FLOAT))
            with np.errstate(all="ignore"):
                return Value(on_tiles(op, a.tile, b.tile), FLOAT[op](a.as_type(name), b.as_type(name)), name)
        op, left, right = self.rng.choice(list(EXACT)), a.as_type(name), b.as_type(name)
        if op in ("//", "%") and (not right.all() or kind(a.name) != kind(b.name)):
            op = "+"
        if op in ("<<", ">>") and (kind(a.name) != kind(b.name) or right.min() < 0 or right.max() >= width(name)):
            op = "-"
        return Value(on_tiles(op, a.tile, b.tile), wrapped(exactly(EXACT[op])(left, right), name), name)

    def with_number(self, a):
        """A plain number of Python takes the tile's type."""
        if kind(a.name) not in "iu":
            return a
        number, op, swapped = self.rng.randrange(1, 100), self.rng.choice(["+", "-", "*", "//", "%", "&", "|", "^"]), self.rng.random() < 0.3
        if swapped and op in ("//", "%"):
            op = "-"
        left, right = (np.asarray(number, dtype=object), a.expected) if swapped else (a.expected, np.asarray(number, dtype=object))
        result = on_tiles(op, number, a.tile) if swapped else on_tiles(op, a.tile, number)
        return Value(result, wrapped(exactly(EXACT[op])(left, right), a.name), a.name)

    def arranged(self, value, n):
        rows = self.rng.choice([r for r in range(1, n + 1) if n % r == 0])
        columns, how = n // rows, self.rng.randrange(4)
        square = Value(value.tile.reshape(rows, columns), value.expected.reshape(rows, columns), value.name)
        if how == 0:
            return Value(data.reshape(square.tile.T, (n,)), square.expected.T.reshape(-1), value.name)
        if how == 1:
            return Value(triton.flip(value.tile), value.expected[::-1], value.name)
        if how == 2 and n % 2 == 0:
            a, b = triton.split(value.tile.reshape(n // 2, 2))
            return Value(triton.interleave(b, a), np.stack([value.expected[1::2], value.expected[::2]], 1).reshape(-1), value.name)
        half = triton.cat(value.tile, value.tile)
        return Value(data.reshape(half, (2, n)).T.reshape(2 * n)[:] if n == 0 else data.elements(half, np.arange(n) + n // 2),
                     np.concatenate([value.expected] * 2)[n // 2:n // 2 + n], value.name)

    def reduced(self, value, shape):
        """A reduction, spread over the shape again."""
        names = triton.language()
        how = self.rng.choice(["max", "min", "cumsum"] + (["sum", "xor_sum"] if value.name not in FLOATS else []))
        if how == "cumsum":
            if value.name in FLOATS or width(value.name) < 32:
                return value
            return Value(names["cumsum"](value.tile, 0), wrapped(np.cumsum(value.expected, axis=0), value.name), value.name)
        tile, name = names[how](value.tile), value.name
        if how == "xor_sum":
            expected = np.bitwise_xor.reduce(value.expected.reshape(-1))
        elif how == "sum":
            name = "int32" if width(name) < 32 else name
            expected = wrapped(value.expected.sum(), name)
        else:
            expected = getattr(value.expected, how)()
        return Value(data.broadcast_to(tile, shape), np.broadcast_to(np.asarray(expected), shape), name)


class Values(unittest.TestCase):
    def check(self, value, text):
        self.assertIsNotNone(value.tile.known, text)
        self.assertEqual(value.tile.dtype.name, value.name, text)
        self.assertEqual(value.tile.shape, value.expected.shape, text)
        found = data.array(value.tile.known, value.tile.shape, value.tile.dtype.number)
        same = np.array_equal(found, value.expected.astype(FLOATS[value.name]), equal_nan=True) if value.name in FLOATS else (
            found.astype(object) == value.expected).all()
        self.assertTrue(same, f"{text}: {value.tile.dtype} {found.tolist()} and not {value.expected.tolist()}")

    def test_random_expressions(self):
        for number in range(4000):
            rng = random.Random(f"{SEED} {number}")
            shape = rng.choice([(), (1,), (4,), (8,), (16,), (2, 4), (4, 1)])
            with np.errstate(all="ignore"):
                self.check(Expressions(rng).make(rng.randrange(1, 5), shape), f"SEED={SEED}, expression {number}")

    def test_products(self):
        rng = np.random.default_rng(SEED)
        for _ in range(200):
            m, k, n = (int(size) for size in rng.integers(1, 9, 3))
            a, b = rng.integers(-20, 20, (m, k)), rng.integers(-20, 20, (k, n))
            made = data.dot(data.Tile((m, k), TYPES["int8"], a.astype(np.int8)), data.Tile((k, n), TYPES["int8"], b.astype(np.int8)))
            self.check(Value(made, (a @ b).astype(object), "int32"), f"SEED={SEED}")
            left, right = data.Tile((m, k), TYPES["fp32"], a.astype(np.float32)), data.Tile((k, n), TYPES["fp32"], b.astype(np.float32))
            self.check(Value(data.dot(left, right), (a @ b).astype(np.float32), "fp32"), f"SEED={SEED}")
        with self.assertRaises(Refused):
            data.dot(data.full((2, 3), 0.0, TYPES["fp32"]), data.full((2, 3), 0.0, TYPES["fp32"]))

    def test_what_has_no_value(self):
        one = data.full((4,), 1, TYPES["int32"])
        for make in (lambda: one // 0, lambda: one % data.full((4,), 0, TYPES["int32"]), lambda: data.arange(0, 4) // data.arange(0, 4),
                     lambda: data.arange(0, 4) + data.arange(0, 8), lambda: data.arange(8, 4), lambda: one.reshape(3), lambda: one[0],
                     lambda: data.broadcast_to(one, (3,)), lambda: data.full((1 << 30,), 0, TYPES["int8"])):
            with self.assertRaises(Refused):
                make()


if __name__ == "__main__":
    print(f"seed {SEED}")
    unittest.main()
