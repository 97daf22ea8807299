/* SPDX-License-Identifier: Apache-2.0 */
/* Borderline uses, with threads as ranks: after closing, with overlapping blocks, after a failure.
 */
#include "base/tests/unit.h"

#include <peal/peal.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3 };

/* In a rank's body: prints the condition that does not hold, and ends the rank. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            return (void *)1;                                                                      \
        }                                                                                          \
    } while (0)

static void run_ranks(uint32_t size, void *(*body)(void *))
{
    struct peal_comm *comms[RANKS];
    pthread_t threads[RANKS];
    assert_true(size <= RANKS);
    assert_int_equal(peal_comm_open_threads(size, comms), PEAL_OK);
    for (uint32_t r = 0; r < size; r++)
        assert_int_equal(pthread_create(&threads[r], NULL, body, comms[r]), 0);
    for (uint32_t r = 0; r < size; r++) {
        void *wrong;
        pthread_join(threads[r], &wrong);
        assert_null(wrong);
    }
}

/* ---- after closing ---- */

static void *use_kernel_after_close(void *arg)
{
    static const char text[] = "kernel shift(in x: T[n], out y: T[n]) {\n"
                               "    send x to (rank + 1) % nranks\n"
                               "    y = recv from (rank - 1) % nranks\n"
                               "}\n";
    struct peal_comm *comm = arg;
    struct peal_user_kernel *kernel, *unused;
    float x = (float)peal_comm_rank(comm), y = -1;
    float left = (float)((peal_comm_rank(comm) + RANKS - 1) % RANKS);
    struct peal_arg args[2] = {{.kind = PEAL_ARG_BUFFER, .data = &x, .bytes = 4},
                               {.kind = PEAL_ARG_BUFFER, .data = &y, .bytes = 4}};
    EXPECT(peal_user_kernel_load(comm, text, NULL, &kernel) == PEAL_OK);
    EXPECT(peal_user_kernel_load(comm, text, NULL, &unused) == PEAL_OK);
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 2, NULL, 0) == PEAL_OK);
    EXPECT(y == left);
    peal_comm_close(comm);
    y = -1;
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 2, NULL, 0) == PEAL_CLOSED);
    EXPECT(peal_user_kernel_launch(unused, PEAL_F32, args, 2, NULL, 0) == PEAL_CLOSED);
    EXPECT(y == -1);
    peal_user_kernel_free(unused);
    peal_user_kernel_free(kernel);
    return NULL;
}

TEST(a_kernel_outlives_its_communicator_closed)
{
    run_ranks(RANKS, use_kernel_after_close);
}

/* Every function that takes a communicator, after it was closed. */
static void *use_after_close(void *arg)
{
    struct peal_comm *comm = arg, *out = NULL;
    struct peal_request *request = NULL, *calls = NULL, *letter = NULL;
    struct peal_user_kernel *kernel = NULL;
    float x[8] = {0}, y[8 * RANKS], word = 0;
    uint64_t counts[RANKS] = {1, 1, 1};
    struct peal_blocks blocks = {counts, NULL};
    void *memory = NULL;
    EXPECT(peal_barrier(comm) == PEAL_OK);
    if (peal_comm_rank(comm) == 0) { /* requests that can only be dropped */
        EXPECT(peal_iallreduce(comm, x, y, 8, PEAL_F32, PEAL_SUM, &calls) == PEAL_OK);
        EXPECT(peal_irecv(comm, &word, 4, 1, 9, &letter) == PEAL_OK);
    }
    peal_comm_close(comm);
    EXPECT(peal_barrier(comm) == PEAL_CLOSED);
    EXPECT(strcmp(peal_comm_error(comm), "the communicator was closed") == 0);
    EXPECT(peal_allreduce(comm, x, y, 8, PEAL_F32, PEAL_SUM) == PEAL_CLOSED);
    EXPECT(peal_iallreduce(comm, x, y, 8, PEAL_F32, PEAL_SUM, &request) == PEAL_CLOSED);
    EXPECT(peal_all_to_all_v(comm, x, &blocks, y, &blocks, PEAL_F32) == PEAL_CLOSED);
    EXPECT(peal_send(comm, x, 4, 1, 0) == PEAL_CLOSED);
    EXPECT(peal_irecv(comm, x, 4, PEAL_ANY_SOURCE, 0, &request) == PEAL_CLOSED);
    EXPECT(peal_comm_split(comm, 0, 0, &out) == PEAL_CLOSED);
    EXPECT(peal_comm_shrink(comm, &out) == PEAL_CLOSED);
    EXPECT(peal_symmetric_alloc(comm, 64, &memory) == PEAL_CLOSED);
    EXPECT(peal_symmetric_free(comm, x) == PEAL_CLOSED);
    EXPECT(peal_symmetric_at(comm, x, 0) == NULL);
    EXPECT(peal_user_kernel_load(comm, NULL, "allreduce_ring", &kernel) == PEAL_CLOSED);
    EXPECT(strstr(peal_comm_explain(comm, "allreduce", 8, 0), "closed") != NULL);
    EXPECT(peal_comm_rank(comm) == 0 && peal_comm_size(comm) == 0);
    peal_comm_set_timeout(comm, 7);
    peal_comm_close(comm); /* closing twice is harmless */
    EXPECT(!out && !request && !kernel && !memory);
    if (calls) {
        EXPECT(peal_request_test(calls) == PEAL_CLOSED);
        EXPECT(peal_request_wait(letter) == PEAL_CLOSED);
    }
    return NULL;
}

TEST(a_closed_communicator_says_so)
{
    for (int i = 0; i < 8; i++) /* more closed communicators than are remembered */
        run_ranks(RANKS, use_after_close);
    assert_int_equal(peal_barrier(NULL), PEAL_INVALID);
    assert_int_equal(peal_comm_size(NULL), 0);
    assert_int_equal(peal_comm_set_algo(NULL, "allreduce", "ring"), PEAL_INVALID);
    peal_comm_set_timeout(NULL, 1);
    peal_comm_close(NULL);
}

/* ---- blocks that overlap ---- */

static const struct {
    int line;
    uint64_t counts[RANKS], send[RANKS], recv[RANKS]; /* the same counts in both directions */
    int64_t recv_from;                                /* elements from x to y */
    enum peal_status wanted;
} overlaps[] = {
    {__LINE__, {2, 2, 2}, {0, 2, 4}, {0, 2, 4}, 64, PEAL_OK},
    {__LINE__, {2, 2, 2}, {0, 2, 4}, {0, 1, 4}, 64, PEAL_INVALID}, /* two received overlap */
    {__LINE__, {2, 2, 2}, {0, 2, 4}, {4, 4, 0}, 64, PEAL_INVALID}, /* ... wholly */
    {__LINE__, {2, 0, 2}, {0, 2, 4}, {0, 1, 2}, 64, PEAL_OK},      /* an empty one does not */
    {__LINE__, {2, 2, 2}, {0, 1, 0}, {0, 2, 4}, 64, PEAL_OK},      /* sent twice: only read */
    {__LINE__, {2, 2, 2}, {0, 2, 4}, {0, 2, 4}, 5, PEAL_INVALID},  /* sent and received */
    {__LINE__, {1, 1, 1}, {0, 2, 4}, {0, 2, 4}, 1, PEAL_OK},       /* between each other */
    {__LINE__, {1, 1, 1}, {0, 2, 4}, {0, 2, 4}, 2, PEAL_INVALID},
};

/* Counts of row i for what `rank` exchanges with `peer`: symmetric, so that both sides agree. */
static uint64_t count_of(size_t row, uint32_t rank, uint32_t peer)
{
    if (overlaps[row].counts[0] == overlaps[row].counts[1])
        return overlaps[row].counts[0];
    return rank == 1 || peer == 1 ? 0 : 2;
}

static void *exchange_overlapping(void *arg)
{
    struct peal_comm *comm = arg;
    uint32_t rank = peal_comm_rank(comm);
    for (size_t row = 0; row < sizeof overlaps / sizeof *overlaps; row++) {
        int32_t memory[96];
        uint64_t counts[RANKS];
        for (int i = 0; i < 96; i++)
            memory[i] = (int32_t)rank * 1000 + i;
        for (uint32_t q = 0; q < RANKS; q++)
            counts[q] = count_of(row, rank, q);
        struct peal_blocks out = {counts, overlaps[row].send}, in = {counts, overlaps[row].recv};
        int32_t *x = memory, *y = memory + overlaps[row].recv_from;
        enum peal_status status = peal_all_to_all_v(comm, x, &out, y, &in, PEAL_I32);
        if (status != overlaps[row].wanted)
            fprintf(stderr, "row of line %d: %s\n", overlaps[row].line, peal_status_text(status));
        EXPECT(status == overlaps[row].wanted);
        for (uint32_t q = 0; q < RANKS && status == PEAL_OK; q++) {
            for (uint64_t i = 0; i < counts[q]; i++)
                EXPECT(y[overlaps[row].recv[q] + i] ==
                       (int32_t)(q * 1000 + overlaps[row].send[rank] + i));
        }
        EXPECT(peal_barrier(comm) == PEAL_OK); /* refused, and the communicator still works */
    }
    peal_comm_close(comm);
    return NULL;
}

TEST(blocks_that_overlap_are_refused_or_right)
{
    run_ranks(RANKS, exchange_overlapping);
}

/* ---- after a failure ---- */

static void *shrink_after_mismatch(void *arg)
{
    struct peal_comm *comm = arg, *again = NULL;
    uint32_t rank = peal_comm_rank(comm);
    int64_t one = 1, sum = 0;
    uint64_t count = rank == 1 ? 2 : 1;
    int64_t x[2] = {1, 1}, y[2];
    enum peal_status status = peal_allreduce(comm, x, y, count, PEAL_I64, PEAL_SUM);
    EXPECT(status == PEAL_MISMATCH || status == PEAL_CLOSED);
    if (rank == 2) { /* leaves instead */
        peal_comm_close(comm);
        return NULL;
    }
    EXPECT(peal_comm_shrink(comm, &again) == PEAL_OK);
    EXPECT(peal_comm_size(again) == RANKS - 1 && peal_comm_rank(again) == rank);
    for (int i = 0; i < 100; i++) {
        EXPECT(peal_allreduce(again, &one, &sum, 1, PEAL_I64, PEAL_SUM) == PEAL_OK);
        EXPECT(sum == RANKS - 1);
    }
    peal_comm_close(comm);
    peal_comm_close(again);
    return NULL;
}

TEST(threads_that_are_left_go_on)
{
    run_ranks(RANKS, shrink_after_mismatch);
}

/* ---- in place on some ranks only ---- */

enum { PLACES = 3, MAX_PLACED = 64 << 10 };
static const uint64_t placed[PLACES] = {1, 8 << 10, MAX_PLACED}; /* f32 */
static struct {
    uint64_t count;
    int kind; /* 0 allreduce, 1 allgather, 2 reduce_scatter, 3 and 4 the latter with uneven counts */
    bool symmetric;
} mixed;

static enum peal_status call_mixed(struct peal_comm *comm, float *x, float *y, bool in_place)
{
    uint32_t rank = peal_comm_rank(comm);
    uint64_t n = mixed.count, counts[RANKS] = {n, n, n};
    switch (mixed.kind) {
    case 0:
        return peal_allreduce(comm, in_place ? y : x, y, n, PEAL_F32, PEAL_SUM);
    case 1:
        return peal_allgather(comm, in_place ? y + rank * n : x, y, n, PEAL_F32);
    case 2:
        return peal_reduce_scatter(comm, x, in_place ? x + rank * n : y, n, PEAL_F32, PEAL_SUM);
    case 3:
        return peal_allgather_v(comm, in_place ? y + rank * n : x, y, counts, NULL, PEAL_F32);
    default:
        return peal_reduce_scatter_v(comm, x, in_place ? x + rank * n : y, counts, NULL, PEAL_F32,
                                     PEAL_SUM);
    }
}

static void *mix_places(void *arg)
{
    struct peal_comm *comm = arg;
    bool in_place = peal_comm_rank(comm) == 1, uneven = mixed.kind >= 3;
    uint64_t bytes = RANKS * MAX_PLACED * sizeof(float);
    void *x = NULL, *y = NULL;
    if (mixed.symmetric) {
        EXPECT(peal_symmetric_alloc(comm, bytes, &x) == PEAL_OK);
        EXPECT(peal_symmetric_alloc(comm, bytes, &y) == PEAL_OK);
    } else {
        x = calloc(1, bytes);
        y = calloc(1, bytes);
    }
    EXPECT(x && y);
    EXPECT(call_mixed(comm, x, y, false) == PEAL_OK); /* all ranks alike, in both ways */
    enum peal_status status = call_mixed(comm, x, y, true);
    /* A slower rank may learn of its peers' mismatch while it is still in this call. */
    EXPECT(status == PEAL_OK || (!uneven && status == PEAL_MISMATCH));
    if (status == PEAL_OK)
        status = call_mixed(comm, x, y, in_place);
    if (!uneven && status == PEAL_OK) /* its call had ended before a peer noticed */
        status = peal_barrier(comm);
    if (uneven ? status != PEAL_OK : status != PEAL_MISMATCH && status != PEAL_CLOSED)
        fprintf(stderr, "kind %d, %d elements: %s\n", mixed.kind, (int)mixed.count,
                peal_status_text(status));
    EXPECT(uneven ? status == PEAL_OK : status == PEAL_MISMATCH || status == PEAL_CLOSED);
    EXPECT(uneven || strstr(peal_comm_error(comm), "in place") != NULL);
    peal_comm_close(comm);
    if (!mixed.symmetric) {
        free(x);
        free(y);
    }
    return NULL;
}

TEST(in_place_on_some_ranks_is_refused_at_every_size)
{
    for (int kind = 0; kind < 5; kind++) {
        for (int i = 0; i < PLACES; i++) {
            for (int way = 0; way < 4; way++) {
                mixed.kind = kind;
                mixed.count = placed[i];
                mixed.symmetric = way % 2;
                run_ranks(way < 2 ? 2 : RANKS, mix_places);
            }
        }
    }
}

int main(void)
{
    return unit_run();
}
