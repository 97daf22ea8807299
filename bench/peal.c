/* SPDX-License-Identifier: Apache-2.0 */
/* The harness on Peal's public interface. It starts BENCH_RANKS ranks (BENCH_RANKS=2 bench-peal
 * allreduce) unless a launcher (peal exec) has started them. With BENCH_SYMMETRIC=1 the buffers are
 * symmetric memory. */
#include <peal/peal.h>

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct peal_comm *comm;
static uint64_t *counts, *offsets, *same, *places; /* of uneven blocks */

static void set_blocks(const struct bench_call *c)
{
    uint32_t size = peal_comm_size(comm), rank = peal_comm_rank(comm);
    if (!counts)
        counts = calloc(4 * (size_t)size, sizeof *counts);
    if (!counts)
        exit(1);
    offsets = counts + size;
    same = offsets + size;
    places = same + size;
    for (uint32_t r = 0; r < size; r++) {
        counts[r] = c->counts[r];
        offsets[r] = c->offsets[r];
        same[r] = c->counts[rank];
        places[r] = r * same[r];
    }
}

static void check(enum peal_status status)
{
    if (status != PEAL_OK) {
        fprintf(stderr, "peal: %s\n%s\n", peal_status_text(status), peal_comm_error(comm));
        exit(1);
    }
}

static void call(const struct bench_call *c)
{
    uint64_t block = c->count / peal_comm_size(comm);
    switch (c->collective) {
    case BENCH_ALLREDUCE:
        check(peal_allreduce(comm, c->send, c->recv, c->count, PEAL_F32, PEAL_SUM));
        break;
    case BENCH_ALLGATHER:
        check(peal_allgather(comm, c->send, c->recv, block, PEAL_F32));
        break;
    case BENCH_REDUCE_SCATTER:
        check(peal_reduce_scatter(comm, c->send, c->recv, block, PEAL_F32, PEAL_SUM));
        break;
    case BENCH_BROADCAST:
        check(peal_broadcast(comm, c->send, c->count, PEAL_F32, 0));
        break;
    case BENCH_ALL_TO_ALL:
        check(peal_all_to_all(comm, c->send, c->recv, block, PEAL_F32));
        break;
    case BENCH_REDUCE:
        check(peal_reduce(comm, c->send, c->recv, c->count, PEAL_F32, PEAL_SUM, 0));
        break;
    case BENCH_GATHER:
        check(peal_gather(comm, c->send, c->recv, block, PEAL_F32, 0));
        break;
    case BENCH_SCATTER:
        check(peal_scatter(comm, c->send, c->recv, block, PEAL_F32, 0));
        break;
    case BENCH_SCAN:
        check(peal_scan(comm, c->send, c->recv, c->count, PEAL_F32, PEAL_SUM));
        break;
    case BENCH_EXSCAN:
        check(peal_exscan(comm, c->send, c->recv, c->count, PEAL_F32, PEAL_SUM));
        break;
    case BENCH_ALLGATHER_V:
        check(peal_allgather_v(comm, c->send, c->recv, counts, offsets, PEAL_F32));
        break;
    case BENCH_REDUCE_SCATTER_V:
        check(peal_reduce_scatter_v(comm, c->send, c->recv, counts, offsets, PEAL_F32, PEAL_SUM));
        break;
    case BENCH_GATHER_V:
        check(peal_gather_v(comm, c->send, c->recv, counts, offsets, PEAL_F32, 0));
        break;
    case BENCH_SCATTER_V:
        check(peal_scatter_v(comm, c->send, c->recv, counts, offsets, PEAL_F32, 0));
        break;
    case BENCH_ALL_TO_ALL_V: {
        struct peal_blocks out = {counts, offsets}, in = {same, places};
        check(peal_all_to_all_v(comm, c->send, &out, c->recv, &in, PEAL_F32));
        break;
    }
    default:
        check(peal_barrier(comm));
    }
}

static void barrier(void)
{
    check(peal_barrier(comm));
}

static void maximum(double *values, int count)
{
    check(peal_allreduce(comm, values, values, (uint64_t)count, PEAL_F64, PEAL_MAX));
}

static void *symmetric(size_t bytes)
{
    void *at = NULL;
    check(peal_symmetric_alloc(comm, bytes, &at));
    return at;
}

int main(int argc, char **argv)
{
    const char *ranks = getenv("BENCH_RANKS"), *with_symmetric = getenv("BENCH_SYMMETRIC");
    bool uses_symmetric = with_symmetric && *with_symmetric == '1';
    int size = ranks ? atoi(ranks) : 2;
    char job[32];
    snprintf(job, sizeof job, "bench-%ld", (long)getpid());
    struct bench_library library = {.name = "peal",
                                    .size = size,
                                    .pin = true,
                                    .call = call,
                                    .barrier = barrier,
                                    .maximum = maximum,
                                    .prepare = set_blocks};
    if (uses_symmetric) {
        library.name = "peal, symmetric";
        library.alloc = symmetric;
    }
    bool launched = getenv("PEAL_RANK") != NULL;
    if (!launched)
        library.rank = bench_fork(size);
    struct peal_open options = {.size = (uint32_t)size, .rank = (uint32_t)library.rank, .job = job};
    check(peal_comm_open(launched ? NULL : &options, &comm));
    library.rank = (int)peal_comm_rank(comm);
    library.size = (int)peal_comm_size(comm);
    int status = bench_run(&library, argc, argv);
    check(peal_barrier(comm));
    peal_comm_close(comm);
    return status;
}
