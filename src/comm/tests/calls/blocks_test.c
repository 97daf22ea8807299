/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that lie anywhere in a rank's memory, in a different order on each rank, inputs and
 * outputs mixed: lists of separate tensors. */
#include "base/tests/unit.h"

#include <peal/peal.h>

#include <pthread.h>
#include <stdlib.h>

enum { RANKS = 3, PLACES = 2 * RANKS + 1 };

struct rank {
    struct peal_comm *comm;
    uint64_t n;
    int wrong; /* the line, or 0 */
};

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            me->wrong = __LINE__;                                                                  \
            free(memory);                                                                          \
            return NULL;                                                                           \
        }                                                                                          \
    } while (0)

static int64_t value(uint32_t rank, uint64_t block, uint64_t i)
{
    return (int64_t)(rank * 1000003 + block * 1009 + i);
}

static void fill(int64_t *memory, const uint64_t *offsets, uint32_t rank, uint64_t n)
{
    for (uint64_t q = 0; q < RANKS; q++) {
        for (uint64_t i = 0; i < n; i++)
            memory[offsets[q] + i] = value(rank, q, i);
    }
}

static void *run(void *context)
{
    struct rank *me = context;
    uint64_t n = me->n, counts[RANKS], in[RANKS], out[RANKS];
    uint32_t rank = peal_comm_rank(me->comm);
    int64_t *memory = calloc(PLACES * n, sizeof *memory);
    EXPECT(memory);
    for (uint32_t r = 0; r < RANKS; r++) { /* inputs and outputs alternate, rotated by rank */
        counts[r] = n;
        in[r] = 2 * ((r + rank) % RANKS) * n;
        out[r] = in[r] + n;
    }
    fill(memory, in, rank, n);
    int64_t *own = memory + out[1];
    EXPECT(peal_reduce_scatter_v(me->comm, memory, own, counts, in, PEAL_I64, PEAL_SUM) == PEAL_OK);
    for (uint64_t i = 0; i < n; i++) {
        int64_t sum = 0;
        for (uint32_t r = 0; r < RANKS; r++)
            sum += value(r, rank, i);
        EXPECT(own[i] == sum);
    }
    struct peal_blocks from = {counts, in}, to = {counts, out};
    EXPECT(peal_all_to_all_v(me->comm, memory, &from, memory, &to, PEAL_I64) == PEAL_OK);
    for (uint32_t r = 0; r < RANKS; r++) {
        for (uint64_t i = 0; i < n; i++) {
            EXPECT(memory[out[r] + i] == value(r, rank, i));
            EXPECT(memory[in[r] + i] == value(rank, r, i));
        }
    }
    /* Reaches one element into the preceding block: refused locally, before anything is sent. */
    EXPECT(peal_reduce_scatter_v(me->comm, memory, own - 1, counts, in, PEAL_I64, PEAL_SUM) ==
           PEAL_INVALID);
    out[0]--;
    EXPECT(peal_all_to_all_v(me->comm, memory, &from, memory, &to, PEAL_I64) == PEAL_INVALID);
    EXPECT(peal_barrier(me->comm) == PEAL_OK);
    free(memory);
    return NULL;
}

TEST(test_blocks_anywhere)
{
    static const uint64_t sizes[] = {2, 100, 70000};
    struct peal_comm *comms[RANKS];
    assert_int_equal(peal_comm_open_threads(RANKS, comms), PEAL_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct rank ranks[RANKS];
        pthread_t threads[RANKS];
        for (uint32_t r = 0; r < RANKS; r++) {
            ranks[r] = (struct rank){comms[r], sizes[i], 0};
            assert_int_equal(pthread_create(&threads[r], NULL, run, &ranks[r]), 0);
        }
        for (uint32_t r = 0; r < RANKS; r++)
            pthread_join(threads[r], NULL);
        for (uint32_t r = 0; r < RANKS; r++)
            assert_int_equal(ranks[r].wrong, 0);
    }
    for (uint32_t r = 0; r < RANKS; r++)
        peal_comm_close(comms[r]);
}

int main(void)
{
    return unit_run();
}
