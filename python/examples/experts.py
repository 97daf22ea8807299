# SPDX-License-Identifier: Apache-2.0
"""A mixture-of-experts layer: rows travel to the workers of their experts and back."""
import numpy

import peal

DISPATCH = """kernel dispatch(in rows: T[sum(sends), width], out got: T[sum(recvs), width],
                local sends: int[nranks], local recvs: int[nranks]) {
    for p in peers { send rows[sum(sends, p) +: sends[p], :] to p }
    got[sum(recvs, rank) +: recvs[rank], :] = rows[sum(sends, rank) +: sends[rank], :]
    for p in peers { got[sum(recvs, p) +: recvs[p], :] = recv from p }
}"""
WORKERS, TOKENS, WIDTH = 4, 12, 8
# Token t of worker r goes to expert (t * t + r) % WORKERS; rows are packed by expert.
choice = numpy.sort(numpy.array([[(t * t + r) % WORKERS for t in range(TOKENS)] for r in range(WORKERS)]), axis=1)
sends = numpy.array([[int((choice[r] == q).sum()) for q in range(WORKERS)] for r in range(WORKERS)])

with peal.Host(WORKERS) as host:
    rows, back = host.tensor((TOKENS, WIDTH)), host.tensor((TOKENS, WIDTH))
    got, done = host.tensor((TOKENS * WORKERS, WIDTH)), host.tensor((TOKENS * WORKERS, WIDTH))
    expert = host.tensor((WIDTH, WIDTH))
    for r in range(WORKERS):
        rows.write(numpy.full((TOKENS, WIDTH), r + 1, "f4"), rank=r)
        expert.write(numpy.eye(WIDTH, dtype="f4") * (r + 1), rank=r)  # expert r multiplies by r + 1
    there, here = sends.ravel().tolist(), sends.T.ravel().tolist()
    host.submit(DISPATCH, rows, got, there, here)
    host.submit("matmul", got, expert, done, 0)
    host.submit(DISPATCH, done, back, here, there)
    for r in range(WORKERS):
        assert (back.read(rank=r).reshape(TOKENS, WIDTH) == ((choice[r] + 1) * (r + 1))[:, None]).all()
    print(f"{WORKERS * TOKENS} tokens through {WORKERS} experts on {host.platform}: right")
