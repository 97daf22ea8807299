/* SPDX-License-Identifier: Apache-2.0 */
/* Every collective once, with blocks of one size and of different sizes, each result checked.
 *
 *   cc -o collectives collectives.c $(pkg-config --cflags --libs peal)
 *   peal exec -n 4 -- ./collectives
 */
#include <peal/peal.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_RANKS = 16, BLOCK = 3 };

struct rank {
    struct peal_comm *comm;
    uint32_t rank, size;
};

/* Rank r's element i: different for all, so that a result shows where it comes from. */
static int32_t value(uint32_t r, uint64_t i)
{
    return (int32_t)(1000 * r + i);
}

static void want(const struct rank *me, const char *call, enum peal_status status, bool right)
{
    if (status == PEAL_OK && right)
        return;
    fprintf(stderr, "rank %u: %s: %s: %s\n", me->rank, call, peal_status_text(status),
            peal_comm_error(me->comm));
    exit(1);
}

static void even_blocks(const struct rank *me)
{
    int32_t send[MAX_RANKS * BLOCK], recv[MAX_RANKS * BLOCK], one[BLOCK];
    uint32_t last = me->size - 1, sum_of_ranks = me->size * last / 2;
    for (uint32_t i = 0; i < me->size * BLOCK; i++)
        send[i] = value(me->rank, i);

    enum peal_status s = peal_allgather(me->comm, send, recv, BLOCK, PEAL_I32);
    want(me, "allgather", s, recv[last * BLOCK + 2] == value(last, 2));
    s = peal_all_to_all(me->comm, send, recv, BLOCK, PEAL_I32);
    want(me, "all_to_all", s, recv[last * BLOCK] == value(last, me->rank * BLOCK));
    s = peal_reduce_scatter(me->comm, send, one, BLOCK, PEAL_I32, PEAL_MAX);
    want(me, "reduce_scatter", s, one[1] == value(last, me->rank * BLOCK + 1));
    s = peal_reduce(me->comm, send, one, 1, PEAL_I32, PEAL_SUM, last);
    want(me, "reduce", s, me->rank != last || one[0] == (int32_t)(1000 * sum_of_ranks));
    s = peal_gather(me->comm, send, recv, BLOCK, PEAL_I32, 0);
    want(me, "gather", s, me->rank != 0 || recv[last * BLOCK] == value(last, 0));
    s = peal_scatter(me->comm, send, one, BLOCK, PEAL_I32, 0);
    want(me, "scatter", s, one[0] == value(0, me->rank * BLOCK));
    s = peal_broadcast(me->comm, one, BLOCK, PEAL_I32, last);
    want(me, "broadcast", s, one[2] == value(0, last * BLOCK + 2));
    want(me, "barrier", peal_barrier(me->comm), true);
}

/* Rank r's block has r + 1 elements. */
static void uneven_blocks(const struct rank *me)
{
    int32_t send[MAX_RANKS * MAX_RANKS], recv[MAX_RANKS * MAX_RANKS];
    uint64_t counts[MAX_RANKS], mine[MAX_RANKS];
    uint32_t last = me->size - 1, place = last * me->size / 2; /* where the last block begins */
    for (uint32_t r = 0; r < me->size; r++) {
        counts[r] = r + 1;
        mine[r] = me->rank + 1;
    }
    for (uint32_t i = 0; i < MAX_RANKS * MAX_RANKS; i++)
        send[i] = value(me->rank, i);

    enum peal_status s = peal_allgather_v(me->comm, send, recv, counts, NULL, PEAL_I32);
    want(me, "allgather_v", s, recv[place + last] == value(last, last));
    s = peal_gather_v(me->comm, send, recv, counts, NULL, PEAL_I32, last);
    want(me, "gather_v", s, me->rank != last || recv[place] == value(last, 0));
    s = peal_scatter_v(me->comm, send, recv, counts, NULL, PEAL_I32, 0);
    want(me, "scatter_v", s, recv[0] == value(0, me->rank * (me->rank + 1) / 2));
    s = peal_reduce_scatter_v(me->comm, send, recv, counts, NULL, PEAL_I32, PEAL_MIN);
    want(me, "reduce_scatter_v", s, recv[0] == value(0, me->rank * (me->rank + 1) / 2));
    /* This rank sends counts[q] elements to rank q; every rank sends rank + 1 elements to this
     * one. */
    struct peal_blocks to = {counts, NULL}, from = {mine, NULL};
    s = peal_all_to_all_v(me->comm, send, &to, recv, &from, PEAL_I32);
    want(me, "all_to_all_v", s,
         recv[last * (me->rank + 1)] == value(last, me->rank * (me->rank + 1) / 2));
}

int main(void)
{
    struct rank me;
    if (peal_comm_open(NULL, &me.comm) != PEAL_OK) {
        fprintf(stderr, "cannot join: %s\n", peal_comm_error(NULL));
        return 1;
    }
    me.rank = peal_comm_rank(me.comm);
    me.size = peal_comm_size(me.comm);
    if (me.size > MAX_RANKS) {
        fprintf(stderr, "at most %d ranks\n", MAX_RANKS);
        return 2;
    }
    even_blocks(&me);
    uneven_blocks(&me);
    printf("rank %u: all right\n", me.rank);
    peal_comm_close(me.comm);
    return 0;
}
