/* SPDX-License-Identifier: Apache-2.0 */
/* Less usual types in collectives, with results computed here, with threads as ranks, here and on a
 * simulated machine. */
#include "comm/tests/threads_of.h"

#include <math.h>
#include <string.h>

enum { RANKS = 3, MAX_COUNT = 5000 };

static const size_t counts[] = {0, 1, 7, MAX_COUNT};

static void unsigned_integers_have_no_sign(struct peal_comm *comm, size_t n)
{
    uint32_t rank = peal_comm_rank(comm);
    static _Thread_local uint64_t x[MAX_COUNT], y[MAX_COUNT];
    static _Thread_local uint16_t a[MAX_COUNT], b[MAX_COUNT];
    static _Thread_local int16_t c[MAX_COUNT], d[MAX_COUNT];
    for (size_t i = 0; i < n; i++) {
        x[i] = i % RANKS == rank ? UINT64_MAX - i : i;
        a[i] = (uint16_t)(40000 + rank);
        c[i] = (int16_t)(rank == 1 ? -20000 : 100);
    }
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_U64, PEAL_MAX) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(y[i] == UINT64_MAX - i);
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_U64, PEAL_MIN) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(y[i] == i);
    EXPECT(peal_allreduce(comm, a, b, n, PEAL_U16, PEAL_SUM) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(b[i] == (uint16_t)(3 * 40000 + 3));
    EXPECT(peal_allreduce(comm, a, b, n, PEAL_U16, PEAL_MAX) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(b[i] == 40002);
    EXPECT(peal_reduce(comm, c, d, n, PEAL_I16, PEAL_MIN, 2) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(rank != 2 || d[i] == -20000);
}

static void bool_is_logic(struct peal_comm *comm, size_t n)
{
    uint32_t rank = peal_comm_rank(comm);
    static _Thread_local unsigned char x[MAX_COUNT], y[MAX_COUNT];
    for (size_t i = 0; i < n; i++)
        x[i] = (unsigned char)(i >> rank & 1 ? 0x40 + i % 3 : 0);
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_BOOL, PEAL_AND) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(y[i] == (i % 8 == 7));
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_BOOL, PEAL_OR) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(y[i] == (i % 8 != 0));
    EXPECT(peal_scan(comm, x, y, n, PEAL_BOOL, PEAL_XOR) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(rank != 2 || y[i] == (__builtin_popcount((unsigned)i % 8) & 1));
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_BOOL, PEAL_SUM) == PEAL_INVALID);
}

static void complex_numbers_multiply(struct peal_comm *comm, size_t n)
{
    uint32_t rank = peal_comm_rank(comm);
    static _Thread_local double x[MAX_COUNT][2], y[MAX_COUNT][2];
    for (size_t i = 0; i < n; i++) {
        x[i][0] = rank;
        x[i][1] = 1;
    }
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_CF64, PEAL_PROD) == PEAL_OK);
    for (size_t i = 0; i < n; i++) /* i (1 + i) (2 + i) */
        EXPECT(y[i][0] == -3 && y[i][1] == 1);
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_CF64, PEAL_AVG) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(y[i][0] == 1 && y[i][1] == 1);
    static _Thread_local float all[RANKS * MAX_COUNT][2], own[MAX_COUNT][2];
    for (size_t i = 0; i < n; i++) {
        own[i][0] = (float)i;
        own[i][1] = (float)rank;
    }
    EXPECT(peal_allgather(comm, own, all, n, PEAL_CF32) == PEAL_OK);
    for (size_t i = 0; i < RANKS * n; i++)
        EXPECT(all[i][0] == (float)(i % n) && all[i][1] == (float)(i / n));
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_CF64, PEAL_MAX) == PEAL_INVALID);
}

/* Sums of 8 bits are computed in f32 and rounded once, if the algorithm combines all ranks in one
 * step. */
static void small_floats_reduce_through_f32(struct peal_comm *comm, size_t n)
{
    uint32_t rank = peal_comm_rank(comm);
    static _Thread_local unsigned char x[MAX_COUNT], y[MAX_COUNT];
    static const unsigned char e4m3[RANKS] = {0x58, 0x38, 0x38}; /* 16, 1, 1 */
    static const unsigned char e5m2[RANKS] = {0x48, 0x3c, 0x3c}; /* 8, 1, 1 */
    static const unsigned char large[RANKS] = {0x7e, 0x7e, 0x00};
    EXPECT(peal_comm_set_algo(comm, "allreduce", "rows") == PEAL_OK);
    memset(x, e4m3[rank], n);
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_F8E4M3, PEAL_SUM) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(y[i] == 0x59); /* 18; 17 would have been rounded to 16 */
    memset(x, e5m2[rank], n);
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_F8E5M2, PEAL_SUM) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(y[i] == 0x49); /* 10 */
    memset(x, large[rank], n);
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_F8E4M3, PEAL_SUM) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(y[i] == 0x7f); /* 896 is too large */
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_F8E4M3, PEAL_MAX) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(y[i] == 0x7e);
    EXPECT(peal_comm_set_algo(comm, "allreduce", NULL) == PEAL_OK);
}

struct located {
    double value;
    int64_t index;
};

static void extremes_are_located(struct peal_comm *comm, size_t n)
{
    uint32_t rank = peal_comm_rank(comm);
    static _Thread_local struct located x[MAX_COUNT], y[MAX_COUNT];
    for (size_t i = 0; i < n; i++)
        x[i] = (struct located){(double)((i + rank) % RANKS), 100 - (int64_t)rank};
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_F64_I64, PEAL_MINLOC) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(y[i].value == 0 && y[i].index == 100 - (int64_t)((RANKS - i % RANKS) % RANKS));
    for (size_t i = 0; i < n; i++)
        x[i].value = 5; /* all values are equal: the lowest index wins */
    EXPECT(peal_reduce_scatter(comm, x, y, n / RANKS, PEAL_F64_I64, PEAL_MAXLOC) == PEAL_OK);
    for (size_t i = 0; i < n / RANKS; i++)
        EXPECT(y[i].value == 5 && y[i].index == 100 - (RANKS - 1));
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_F64_I64, PEAL_SUM) == PEAL_INVALID);
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_F64, PEAL_MINLOC) == PEAL_INVALID);
}

static void *rank_main(void *comm)
{
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        unsigned_integers_have_no_sign(comm, counts[c]);
        bool_is_logic(comm, counts[c]);
        complex_numbers_multiply(comm, counts[c]);
        if (peal_comm_simulated_ps(comm) == 0)
            small_floats_reduce_through_f32(comm, counts[c]);
        extremes_are_located(comm, counts[c]);
    }
    return NULL;
}

int main(void)
{
    threads_run(RANKS, rank_main);
    setenv("PEAL_PLATFORM", "sim:cube", 1);
    threads_run(RANKS, rank_main);
    printf("ok\n");
    return 0;
}
