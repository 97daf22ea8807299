# SPDX-License-Identifier: Apache-2.0
"""A tensor-parallel MLP and a mixture of experts: the kernels of examples/layers.peal, against numpy."""
import pathlib

import numpy

import peal

TEXT = (pathlib.Path(__file__).parents[2] / "examples" / "layers.peal").read_text()
WORKERS, TOKENS, WIDTH, HIDDEN = 4, 6, 8, 16
random = numpy.random.default_rng(1)


def numbers(*shape):
    return random.integers(-2, 3, shape).astype("f4")


def layer(x, up, down):
    return numpy.maximum(x @ up, 0) @ down


with peal.Host(WORKERS, record=True) as host:
    x, up, down = numbers(TOKENS, WIDTH), numbers(WIDTH, HIDDEN), numbers(HIDDEN, WIDTH)
    y = host.tensor((TOKENS, WIDTH))
    host.submit(TEXT, host.tensor(x.shape).write(x), host.tensor(up.shape, shard=1).write(up),
                host.tensor(down.shape, shard=0).write(down), y, kernel="mlp")
    assert (y.read() == layer(x, up, down)).all()

    sends = random.integers(1, 4, (WORKERS, WORKERS))  # rows from worker to expert
    most = int(sends.sum(axis=1).max())
    rows, back = numbers(WORKERS, most, WIDTH), host.tensor((most, WIDTH))
    ups, downs = numbers(WORKERS, WIDTH, HIDDEN), numbers(WORKERS, HIDDEN, WIDTH)
    tensors = [host.tensor(part.shape[1:]) for part in (rows, ups, downs)]
    for tensor, part in zip(tensors, (rows, ups, downs)):
        for r in range(WORKERS):
            tensor.write(part[r], rank=r)
    host.submit(TEXT, *tensors, back, sends.ravel().tolist(), sends.T.ravel().tolist(), kernel="experts")
    for r in range(WORKERS):
        expert = numpy.repeat(numpy.arange(WORKERS), sends[r])
        want = numpy.array([layer(rows[r, i], ups[q], downs[q]) for i, q in enumerate(expert)])
        assert (back.read(rank=r).reshape(most, WIDTH)[:len(want)] == want).all()
    print(f"{host.platform}: mlp and experts right, {host.stats()['time_ps'] / 1e6:.3f} us")
