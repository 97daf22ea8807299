/* SPDX-License-Identifier: Apache-2.0 */
/* Every family of functions, with every type of its table, against what a naive program expects.
 * Started by `peal exec` with an even number of ranks; every PE checks what it can see, and says what
 * is wrong. */
#include <complex.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 7, MOST_PES = 16 };

static int me, npes, failures;
static int every = 1; /* of the types: every so-many-th is tested */

/* Asked for each type of a table, in the same order on all PEs. */
static int is_chosen(void)
{
    static int asked;
    return asked++ % every == 0;
}

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("PE %d: line %d: %s\n", me, __LINE__, #condition);                              \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)
/* In functions made by a macro, whose lines are all the same. */
#define EXPECT_OF(name, condition)                                                                 \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("PE %d: %s: %s\n", me, #name, #condition);                                      \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static int right(void)
{
    return (me + 1) % npes;
}

static int left(void)
{
    return (me + npes - 1) % npes;
}

/* ---- puts and gets: a value tells its PE and its place ---- */

static uint64_t signal_word;

#define X(A, NAME, T)                                                                              \
    static T NAME##_there[4 * COUNT], NAME##_here[4 * COUNT];                                      \
    static void NAME##_fill(T *to, int pe)                                                         \
    {                                                                                              \
        for (int i = 0; i < 4 * COUNT; i++)                                                        \
            to[i] = (T)(10 * pe + i % 10);                                                         \
    }                                                                                              \
    static void NAME##_begin(void)                                                                 \
    {                                                                                              \
        shmem_barrier_all();                                                                       \
        memset(NAME##_there, 0, sizeof NAME##_there);                                              \
        NAME##_fill(NAME##_here, me);                                                              \
        signal_word = 0;                                                                           \
        shmem_barrier_all();                                                                       \
    }                                                                                              \
    static int NAME##_has(const T *at, int count, int step, int pe)                                \
    {                                                                                              \
        for (int i = 0; i < count; i++) {                                                          \
            if (at[i * step] != (T)(10 * pe + i))                                                  \
                return 0;                                                                          \
        }                                                                                          \
        return 1;                                                                                  \
    }                                                                                              \
    static void NAME##_moves(shmem_ctx_t ctx)                                                      \
    {                                                                                              \
        T *there = NAME##_there, *here = NAME##_here;                                              \
        NAME##_begin();                                                                            \
        shmem_##NAME##_put(there, here, COUNT, right());                                           \
        shmem_ctx_##NAME##_put_nbi(ctx, there + COUNT, here, COUNT, right());                      \
        shmem_##NAME##_p(there + 2 * COUNT, here[3], right());                                     \
        shmem_barrier_all();                                                                       \
        EXPECT_OF(NAME, NAME##_has(there, COUNT, 1, left()));                                      \
        EXPECT_OF(NAME, NAME##_has(there + COUNT, COUNT, 1, left()));                              \
        EXPECT_OF(NAME, there[2 * COUNT] == (T)(10 * left() + 3));                                 \
        EXPECT_OF(NAME, there[2 * COUNT + 1] == 0);                                                \
        NAME##_begin();                                                                            \
        shmem_ctx_##NAME##_get(ctx, there, here, COUNT, left());                                   \
        shmem_##NAME##_get_nbi(there + COUNT, here, COUNT, right());                               \
        shmem_ctx_quiet(ctx);                                                                      \
        shmem_quiet();                                                                             \
        EXPECT_OF(NAME, NAME##_has(there, COUNT, 1, left()));                                      \
        EXPECT_OF(NAME, NAME##_has(there + COUNT, COUNT, 1, right()));                             \
        EXPECT_OF(NAME, shmem_ctx_##NAME##_g(ctx, here + 4, right()) == (T)(10 * right() + 4));    \
        NAME##_begin();                                                                            \
        shmem_##NAME##_iput(there, here, 2, 1, COUNT, right());                                    \
        shmem_barrier_all();                                                                       \
        EXPECT_OF(NAME, NAME##_has(there, COUNT, 2, left()) && there[1] == 0);                     \
        shmem_##NAME##_iget(here, there, 1, 2, COUNT, me);                                         \
        EXPECT_OF(NAME, NAME##_has(here, COUNT, 1, left()));                                       \
        NAME##_begin();                                                                            \
        shmem_##NAME##_put_signal(there, here, COUNT, &signal_word, 5, SHMEM_SIGNAL_ADD, right()); \
        shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 5);                                    \
        EXPECT_OF(NAME, NAME##_has(there, COUNT, 1, left()));                                      \
        shmem_sync_all();                                                                          \
        shmem_ctx_##NAME##_put_signal_nbi(ctx, there + COUNT, here, COUNT, &signal_word, 9,        \
                                          SHMEM_SIGNAL_SET, right());                              \
        EXPECT_OF(NAME, shmem_signal_wait_until(&signal_word, SHMEM_CMP_GT, 5) == 9);              \
        EXPECT_OF(NAME, NAME##_has(there + COUNT, COUNT, 1, left()));                              \
    }
PEAL_SHMEM_RMA(X, )
#undef X

#define X(A, BITS, BYTES)                                                                          \
    static void moves_##BITS(void)                                                                 \
    {                                                                                              \
        static char there[COUNT * BYTES * 3], here[COUNT * BYTES * 3];                             \
        shmem_barrier_all();                                                                       \
        memset(there, -1, sizeof there);                                                           \
        memset(here, 1 + me, sizeof here);                                                         \
        shmem_barrier_all();                                                                       \
        shmem_put##BITS(there, here, COUNT, right());                                              \
        shmem_iput##BITS(there + COUNT * BYTES, here, 2, 1, COUNT, right());                       \
        shmem_barrier_all();                                                                       \
        for (int i = 0; i < COUNT * BYTES; i++)                                                    \
            EXPECT_OF(put##BITS, there[i] == 1 + left());                                          \
        for (int i = 0; i < 2 * COUNT * BYTES; i++)                                                \
            EXPECT_OF(iput##BITS,                                                                  \
                      there[COUNT * BYTES + i] == (i / BYTES % 2 == 0 ? 1 + left() : -1));         \
        shmem_get##BITS(there, here, COUNT, right());                                              \
        EXPECT_OF(get##BITS, there[COUNT * BYTES - 1] == 1 + right());                             \
    }
PEAL_SHMEM_SIZES(X, )
#undef X

static void test_moves(void)
{
    shmem_ctx_t ctx;
    EXPECT(shmem_ctx_create(SHMEM_CTX_SERIALIZED, &ctx) == 0);
#define X(A, NAME, T)                                                                              \
    if (is_chosen())                                                                               \
        NAME##_moves(ctx);
    PEAL_SHMEM_RMA(X, )
#undef X
#define X(A, BITS, BYTES) moves_##BITS();
    PEAL_SHMEM_SIZES(X, )
#undef X
    shmem_ctx_destroy(ctx);
    static char bytes[3];
    shmem_putmem(bytes, "ab", 3, right());
    shmem_barrier_all();
    EXPECT(strcmp(bytes, "ab") == 0);
}

/* ---- atomic operations: all PEs on the words of PE 0 ---- */

#define X(A, NAME, T)                                                                              \
    static void NAME##_atomics(shmem_ctx_t ctx)                                                    \
    {                                                                                              \
        static T word[8];                                                                          \
        T last = 0, next = 0;                                                                      \
        shmem_barrier_all();                                                                       \
        memset(word, 0, sizeof word);                                                              \
        shmem_barrier_all();                                                                       \
        for (int i = 0; i < COUNT; i++) {                                                          \
            shmem_##NAME##_atomic_add(&word[0], (T)(me + 1), 0);                                   \
            shmem_ctx_##NAME##_atomic_inc(ctx, &word[1], 0);                                       \
            T seen = shmem_##NAME##_atomic_fetch_inc(&word[2], 0);                                 \
            EXPECT_OF(NAME, i == 0 || seen > last);                                                \
            last = seen;                                                                           \
            shmem_ctx_##NAME##_atomic_fetch_add_nbi(ctx, &next, &word[3], 2, 0);                   \
            shmem_quiet();                                                                         \
            EXPECT_OF(NAME, next % 2 == 0 && next < (T)(2 * COUNT * npes));                        \
            while (shmem_##NAME##_atomic_compare_swap(&word[4], 0, (T)(me + 1), 0) != 0)           \
                continue;                                                                          \
            EXPECT_OF(NAME, shmem_##NAME##_atomic_swap(&word[4], 0, 0) == (T)(me + 1));            \
        }                                                                                          \
        shmem_barrier_all();                                                                       \
        EXPECT_OF(NAME,                                                                            \
                  shmem_##NAME##_atomic_fetch(&word[0], 0) == (T)(COUNT * npes * (npes + 1) / 2)); \
        EXPECT_OF(NAME, shmem_##NAME##_g(&word[1], 0) == (T)(COUNT * npes));                       \
        EXPECT_OF(NAME, shmem_##NAME##_g(&word[2], 0) == (T)(COUNT * npes));                       \
        EXPECT_OF(NAME, shmem_##NAME##_g(&word[3], 0) == (T)(2 * COUNT * npes));                   \
        shmem_##NAME##_atomic_set(&word[5], (T)(me + 40), right());                                \
        shmem_barrier_all();                                                                       \
        EXPECT_OF(NAME, word[5] == (T)(left() + 40));                                              \
    }
PEAL_SHMEM_AMO(X, )
#undef X

#define X(A, NAME, T)                                                                              \
    static void NAME##_bits(void)                                                                  \
    {                                                                                              \
        static T word[3];                                                                          \
        shmem_barrier_all();                                                                       \
        word[0] = 0;                                                                               \
        word[1] = (T)-1;                                                                           \
        word[2] = (T)0x55;                                                                         \
        shmem_barrier_all();                                                                       \
        shmem_##NAME##_atomic_or(&word[0], (T)1 << me, 0);                                         \
        T old = shmem_##NAME##_atomic_fetch_and(&word[1], (T) ~((T)1 << me), 0);                   \
        EXPECT_OF(NAME, (old >> me & 1) == 1);                                                     \
        shmem_##NAME##_atomic_xor(&word[2], (T)3 << (8 + 2 * me), 0);                              \
        shmem_barrier_all();                                                                       \
        T all = (T)(((T)1 << npes) - 1), pairs = (T)(((T)1 << 2 * npes) - 1);                      \
        EXPECT_OF(NAME, shmem_##NAME##_g(&word[0], 0) == all);                                     \
        EXPECT_OF(NAME, shmem_##NAME##_g(&word[1], 0) == (T)~all);                                 \
        EXPECT_OF(NAME, shmem_##NAME##_g(&word[2], 0) == (T)(0x55 ^ pairs << 8));                  \
    }
PEAL_SHMEM_BITWISE_AMO(X, )
#undef X

static void test_atomics(void)
{
    shmem_ctx_t ctx;
    EXPECT(shmem_ctx_create(0, &ctx) == 0);
#define X(A, NAME, T)                                                                              \
    if (is_chosen())                                                                               \
        NAME##_atomics(ctx);
    PEAL_SHMEM_AMO(X, )
#undef X
#define X(A, NAME, T)                                                                              \
    if (is_chosen())                                                                               \
        NAME##_bits();
    PEAL_SHMEM_BITWISE_AMO(X, )
#undef X
    shmem_ctx_destroy(ctx);
    static double real;
    shmem_double_atomic_set(&real, me + 0.5, right());
    shmem_barrier_all();
    EXPECT(shmem_double_atomic_swap(&real, 7.25, me) == left() + 0.5);
    EXPECT(shmem_double_atomic_fetch(&real, me) == 7.25);
    static long old_names;
    shmem_long_add(&old_names, 3, 0);
    shmem_long_inc(&old_names, 0);
    shmem_barrier_all();
    EXPECT(shmem_long_fetch(&old_names, 0) == 4L * npes);
}

static void test_locks(void)
{
    static long lock;
    static long counter;
    for (int i = 0; i < 20; i++) {
        if (i % 2 == 0)
            shmem_set_lock(&lock);
        else
            while (shmem_test_lock(&lock) != 0)
                continue;
        /* Not atomic by itself. */
        long now = shmem_long_g(&counter, 0);
        shmem_long_p(&counter, now + 1, 0);
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    EXPECT(shmem_long_g(&counter, 0) == 20L * npes);
}

/* ---- waits and tests ---- */

#define X(A, NAME, T)                                                                              \
    static void NAME##_waits(void)                                                                 \
    {                                                                                              \
        static T words[MOST_PES];                                                                  \
        int status[MOST_PES] = {0};                                                                \
        size_t indices[MOST_PES], n = (size_t)npes;                                                \
        T values[MOST_PES];                                                                        \
        shmem_barrier_all();                                                                       \
        memset(words, 0, sizeof words);                                                            \
        shmem_barrier_all();                                                                       \
        EXPECT_OF(NAME, shmem_##NAME##_test(words, SHMEM_CMP_EQ, 0));                              \
        EXPECT_OF(NAME, !shmem_##NAME##_test_all(words, n, NULL, SHMEM_CMP_LT, 0));                \
        EXPECT_OF(NAME, shmem_##NAME##_test_any(words, n, NULL, SHMEM_CMP_GE, 100) == SIZE_MAX);   \
        shmem_barrier_all();                                                                       \
        for (int pe = 0; pe < npes; pe++)                                                          \
            shmem_##NAME##_p(&words[me], (T)(me + 1), pe);                                         \
        shmem_##NAME##_wait_until(&words[right()], SHMEM_CMP_NE, 0);                               \
        EXPECT_OF(NAME, words[right()] == (T)(right() + 1));                                       \
        for (size_t left_over = n; left_over > 0; left_over--) {                                   \
            size_t i = shmem_##NAME##_wait_until_any(words, n, status, SHMEM_CMP_GT, 0);           \
            EXPECT_OF(NAME, i < n && status[i] == 0);                                              \
            status[i % MOST_PES] = 1;                                                              \
        }                                                                                          \
        EXPECT_OF(NAME,                                                                            \
                  shmem_##NAME##_wait_until_any(words, n, status, SHMEM_CMP_GT, 0) == SIZE_MAX);   \
        shmem_##NAME##_wait_until_all(words, n, NULL, SHMEM_CMP_GE, 1);                            \
        EXPECT_OF(NAME, shmem_##NAME##_wait_until_some(words, n, indices, NULL, SHMEM_CMP_LE,      \
                                                       (T)npes) == n);                             \
        EXPECT_OF(NAME, indices[n - 1] == n - 1);                                                  \
        for (int i = 0; i < npes; i++)                                                             \
            values[i] = (T)(i + 1);                                                                \
        shmem_##NAME##_wait_until_all_vector(words, n, NULL, SHMEM_CMP_EQ, values);                \
        EXPECT_OF(NAME, shmem_##NAME##_test_all_vector(words, n, NULL, SHMEM_CMP_EQ, values));     \
        values[0] = 9;                                                                             \
        EXPECT_OF(NAME, !shmem_##NAME##_test_all_vector(words, n, NULL, SHMEM_CMP_EQ, values));    \
        EXPECT_OF(NAME, shmem_##NAME##_test_some_vector(words, n, indices, NULL, SHMEM_CMP_EQ,     \
                                                        values) == n - 1);                         \
        for (size_t i = 1; i < n; i++) { /* each has its turn */                                   \
            size_t any = shmem_##NAME##_test_any_vector(words, n, NULL, SHMEM_CMP_EQ, values);     \
            EXPECT_OF(NAME, any >= 1 && any < n && status[any] == 1);                              \
            status[any % MOST_PES] = 2;                                                            \
        }                                                                                          \
    }
PEAL_SHMEM_WAITS(X, )
#undef X

static void test_waits(void)
{
#define X(A, NAME, T)                                                                              \
    if (is_chosen())                                                                               \
        NAME##_waits();
    PEAL_SHMEM_WAITS(X, )
#undef X
    /* Comparisons of signed words are signed. */
    static int below;
    shmem_int_p(&below, -3, right());
    shmem_int_wait_until(&below, SHMEM_CMP_LT, 0);
    EXPECT(below == -3);
}

/* ---- collectives ---- */

#define X(A, NAME, T)                                                                              \
    static void NAME##_collectives(shmem_team_t team, int rank, int size)                          \
    {                                                                                              \
        static T from[MOST_PES * COUNT], to[MOST_PES * MOST_PES * COUNT];                          \
        int root = size - 1;                                                                       \
        for (int i = 0; i < COUNT * size; i++)                                                     \
            from[i] = (T)(rank * 5 + i % 9);                                                       \
        memset(to, 0, sizeof to);                                                                  \
        EXPECT_OF(NAME, shmem_##NAME##_broadcast(team, to, from, COUNT, root) == 0);               \
        for (int i = 0; i < COUNT; i++)                                                            \
            EXPECT_OF(NAME, to[i] == (T)(root * 5 + i % 9));                                       \
        shmem_team_sync(team);                                                                     \
        EXPECT_OF(NAME, shmem_##NAME##_fcollect(team, to, from, COUNT) == 0);                      \
        for (int i = 0; i < COUNT * size; i++)                                                     \
            EXPECT_OF(NAME, to[i] == (T)(i / COUNT * 5 + i % COUNT % 9));                          \
        shmem_team_sync(team);                                                                     \
        EXPECT_OF(NAME, shmem_##NAME##_collect(team, to, from, (size_t)rank) == 0);                \
        for (int pe = 0, at = 0; pe < size; pe++) {                                                \
            for (int i = 0; i < pe; i++, at++)                                                     \
                EXPECT_OF(NAME, to[at] == (T)(pe * 5 + i % 9));                                    \
        }                                                                                          \
        shmem_team_sync(team);                                                                     \
        EXPECT_OF(NAME, shmem_##NAME##_alltoall(team, to, from, COUNT) == 0);                      \
        for (int i = 0; i < COUNT * size; i++)                                                     \
            EXPECT_OF(NAME, to[i] == (T)(i / COUNT * 5 + (rank * COUNT + i % COUNT) % 9));         \
        shmem_team_sync(team);                                                                     \
        memset(to, 0, sizeof to);                                                                  \
        EXPECT_OF(NAME, shmem_##NAME##_alltoalls(team, to, from, 2, 1, COUNT) == 0);               \
        for (int i = 0; i < COUNT * size; i++)                                                     \
            EXPECT_OF(NAME, to[2 * i] == (T)(i / COUNT * 5 + (rank * COUNT + i % COUNT) % 9));     \
        EXPECT_OF(NAME, to[1] == 0);                                                               \
        shmem_team_sync(team);                                                                     \
    }
PEAL_SHMEM_RMA(X, )
#undef X

/* Of the numbers 1 + rank, in place and not. */
#define REDUCES(OP, NAME, T)                                                                       \
    static void NAME##_##OP(shmem_team_t team, int rank, int size)                                 \
    {                                                                                              \
        static T from[COUNT], to[COUNT];                                                           \
        T expected = 1;                                                                            \
        for (int pe = 1; pe < size; pe++)                                                          \
            expected = (T)OP##_of(expected, (T)(pe + 1));                                          \
        for (int i = 0; i < COUNT; i++)                                                            \
            from[i] = (T)(rank + 1);                                                               \
        EXPECT_OF(NAME##_##OP, shmem_##NAME##_##OP##_reduce(team, to, from, COUNT) == 0);          \
        shmem_team_sync(team);                                                                     \
        EXPECT_OF(NAME##_##OP, shmem_##NAME##_##OP##_reduce(team, from, from, COUNT) == 0);        \
        for (int i = 0; i < COUNT; i++)                                                            \
            EXPECT_OF(NAME##_##OP, to[i] == expected && from[i] == expected);                      \
        shmem_team_sync(team);                                                                     \
    }
#define and_of(a, b) ((a) & (b))
#define or_of(a, b) ((a) | (b))
#define xor_of(a, b) ((a) ^ (b))
#define max_of(a, b) ((a) > (b) ? (a) : (b))
#define min_of(a, b) ((a) < (b) ? (a) : (b))
#define sum_of(a, b) ((a) + (b))
#define prod_of(a, b) ((a) * (b))
PEAL_SHMEM_INTEGERS(REDUCES, and)
PEAL_SHMEM_INTEGERS(REDUCES, or)
PEAL_SHMEM_INTEGERS(REDUCES, xor)
PEAL_SHMEM_RMA(REDUCES, max)
PEAL_SHMEM_RMA(REDUCES, min)
PEAL_SHMEM_NUMBERS(REDUCES, sum)
PEAL_SHMEM_NUMBERS(REDUCES, prod)

static void test_collectives(shmem_team_t team)
{
    int rank = shmem_team_my_pe(team), size = shmem_team_n_pes(team);
#define X(A, NAME, T)                                                                              \
    if (is_chosen())                                                                               \
        NAME##_collectives(team, rank, size);
    PEAL_SHMEM_RMA(X, )
#undef X
#define X(OP, NAME, T)                                                                             \
    if (is_chosen())                                                                               \
        NAME##_##OP(team, rank, size);
    PEAL_SHMEM_INTEGERS(X, and)
    PEAL_SHMEM_INTEGERS(X, or)
    PEAL_SHMEM_INTEGERS(X, xor)
    PEAL_SHMEM_RMA(X, max)
    PEAL_SHMEM_RMA(X, min)
    PEAL_SHMEM_NUMBERS(X, sum)
    PEAL_SHMEM_NUMBERS(X, prod)
#undef X
}

/* The PEs start, start + 2, ... of the world, in the older form. */
static void test_active_set(int start, int log_stride, int size)
{
    static int from[COUNT * MOST_PES], to[2 * COUNT * MOST_PES];
    static int sums[COUNT], work[COUNT];
    static long sync[SHMEM_REDUCE_SYNC_SIZE];
    static long double wide[2], widework[2];
    int rank = (me - start) >> log_stride;
    if (me < start || (me - start) % (1 << log_stride) != 0 || rank >= size)
        return;
    for (int i = 0; i < COUNT * size; i++)
        from[i] = 100 * rank + i;
    shmem_barrier(start, log_stride, size, sync);
    memset(to, -1, sizeof to);
    shmem_broadcast32(to, from, COUNT, 0, start, log_stride, size, sync);
    for (int i = 0; i < COUNT; i++)
        EXPECT(to[i] == (rank == 0 ? -1 : i)); /* the root's is not written */
    (shmem_sync)(start, log_stride, size, sync);
    shmem_fcollect32(to, from, COUNT, start, log_stride, size, sync);
    for (int i = 0; i < COUNT * size; i++)
        EXPECT(to[i] == i / COUNT * 100 + i % COUNT);
    shmem_sync(start, log_stride, size, sync);
    shmem_collect32(to, from, (size_t)rank + 1, start, log_stride, size, sync);
    for (int pe = 0, at = 0; pe < size; pe++) {
        for (int i = 0; i <= pe; i++, at++)
            EXPECT(to[at] == 100 * pe + i);
    }
    shmem_sync(start, log_stride, size, sync);
    shmem_alltoall32(to, from, COUNT, start, log_stride, size, sync);
    EXPECT(to[COUNT * (size - 1)] == 100 * (size - 1) + rank * COUNT);
    shmem_sync(start, log_stride, size, sync);
    shmem_alltoalls32(to, from, 2, 1, COUNT, start, log_stride, size, sync);
    EXPECT(to[2 * COUNT * (size - 1)] == 100 * (size - 1) + rank * COUNT);
    shmem_int_sum_to_all(sums, from, COUNT, start, log_stride, size, work, sync);
    for (int i = 0; i < COUNT; i++)
        EXPECT(sums[i] == 100 * size * (size - 1) / 2 + i * size);
    wide[0] = rank + 0.5L;
    shmem_longdouble_max_to_all(wide + 1, wide, 1, start, log_stride, size, widework, sync);
    EXPECT(wide[1] == size - 1 + 0.5L);
}

static void test_teams(void)
{
    shmem_team_t odd, x, y, none;
    shmem_team_config_t config = {.num_contexts = 3}, read;
    EXPECT(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me);
    EXPECT(shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes + 1, NULL, 0, &none) != 0);
    EXPECT(none == SHMEM_TEAM_INVALID);
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, npes / 2, &config,
                                    SHMEM_TEAM_NUM_CONTEXTS, &odd) == 0);
    EXPECT((odd != SHMEM_TEAM_INVALID) == (me % 2 == 1));
    if (odd != SHMEM_TEAM_INVALID) {
        EXPECT(shmem_team_my_pe(odd) == me / 2);
        EXPECT(shmem_team_translate_pe(odd, 0, SHMEM_TEAM_WORLD) == 1);
        EXPECT(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, odd) == -1);
        EXPECT(shmem_team_get_config(odd, SHMEM_TEAM_NUM_CONTEXTS, &read) == 0);
        EXPECT(read.num_contexts == 3);
        test_collectives(odd);
        /* PE numbers of a context are those of its team. */
        static int word;
        shmem_ctx_t ctx;
        shmem_team_t back;
        EXPECT(shmem_team_create_ctx(odd, 0, &ctx) == 0);
        EXPECT(shmem_ctx_get_team(ctx, &back) == 0 && back == odd);
        shmem_ctx_int_p(ctx, &word, me, (shmem_team_my_pe(odd) + 1) % shmem_team_n_pes(odd));
        shmem_ctx_quiet(ctx);
        shmem_sync(odd);
        EXPECT(word % 2 == 1 && word == (me + npes - 2) % npes);
        shmem_ctx_destroy(ctx);
        shmem_team_destroy(odd);
    }
    EXPECT(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &x, NULL, 0, &y) == 0);
    EXPECT(shmem_team_my_pe(x) == me % 2 && shmem_team_my_pe(y) == me / 2);
    EXPECT(shmem_team_translate_pe(y, 0, SHMEM_TEAM_WORLD) == me % 2);
    shmem_team_destroy(x);
    shmem_team_destroy(y);
    EXPECT(shmem_team_n_pes(SHMEM_TEAM_SHARED) >= 1);
    EXPECT(shmem_team_translate_pe(SHMEM_TEAM_WORLD, me, SHMEM_TEAM_SHARED) >= 0);
}

/* ---- memory ---- */

static void test_memory(void)
{
    static int variable;
    int local = 0;
    int *first = shmem_malloc(100), *second = shmem_malloc(1 << 10);
    EXPECT(first && second && shmem_malloc(0) == NULL);
    EXPECT(shmem_addr_accessible(first, right()) && shmem_addr_accessible(&variable, right()));
    EXPECT(!shmem_addr_accessible(&local, right()));
    EXPECT(!shmem_pe_accessible(npes) && shmem_ptr(first, me) == first);
    EXPECT(!shmem_team_ptr(SHMEM_TEAM_WORLD, first, npes) &&
           !shmem_team_ptr(SHMEM_TEAM_INVALID, first, 0));
    EXPECT(shmem_team_ptr(SHMEM_TEAM_SHARED, first, shmem_team_my_pe(SHMEM_TEAM_SHARED)) == first);
    int *direct = shmem_ptr(first, right()); /* NULL on another host */
    if (direct)
        *direct = 1000 + me;
    else
        shmem_int_p(first, 1000 + me, right());
    shmem_barrier_all();
    EXPECT(first[0] == 1000 + left());
    int *grown = shmem_realloc(first, 1 << 20);
    EXPECT(grown && grown[0] == 1000 + left());
    shmem_free(second);
    second = shmem_calloc(300, 4);
    for (int i = 0; i < 300; i++)
        EXPECT(second[i] == 0);
    char *aligned = shmem_align(1 << 15, 10);
    EXPECT(aligned && (uintptr_t)aligned % (1 << 15) == 0);
    /* More than a piece of the heap. */
    char *large = shmem_malloc(40 << 20);
    EXPECT(large);
    shmem_char_p(large + (40 << 20) - 1, (char)(me + 1), right());
    shmem_barrier_all();
    EXPECT(large[(40 << 20) - 1] == left() + 1);
    /* A block that was freed is found again. */
    shmem_free(large);
    EXPECT(shmem_malloc(40 << 20) == large);
    shmem_free(large);
    shmem_free(aligned);
    shmem_free(second);
    shmem_free(grown);
}

/* A child has variables of its own. */
static void test_fork(void)
{
    static int variable = 1;
    pid_t child = fork();
    if (child == 0) {
        variable = 2;
        _exit(variable == 2 ? 0 : 1);
    }
    int status = 1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(variable == 1);
}

/* ---- generic forms: the same functions, chosen by type ---- */

static void test_generic(void)
{
    static long word, words[4];
    static unsigned flags;
    shmem_p(&word, (long)me, right());
    shmem_barrier_all();
    EXPECT(word == left() && shmem_g(&word, me) == left());
    shmem_put(SHMEM_CTX_DEFAULT, words, &word, 1, right());
    shmem_barrier_all();
    EXPECT(words[0] == (left() + npes - 1) % npes);
    shmem_atomic_add(&words[1], 2, 0);
    shmem_atomic_or(&flags, 1u << me, 0);
    shmem_barrier_all();
    EXPECT(shmem_atomic_fetch(SHMEM_CTX_DEFAULT, &words[1], 0) == 2L * npes);
    EXPECT(shmem_g(&flags, 0) == (1u << npes) - 1);
    shmem_wait_until(&words[1], SHMEM_CMP_GE, 0);
    (shmem_wait_until)(&words[1], SHMEM_CMP_GE, 0); /* of earlier versions: a function, of longs */
    shmem_wait(&words[1], 2L * npes + 1);
    words[2] = me;
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &words[3], &words[2], 1);
    EXPECT(words[3] == (long)npes * (npes - 1) / 2);
}

/* families [EVERY] */
int main(int argc, char **argv)
{
    if (argc > 1)
        every = atoi(argv[1]);
    int major, minor, provided;
    char name[SHMEM_MAX_NAME_LEN];
    EXPECT(shmem_init_thread(SHMEM_THREAD_SERIALIZED, &provided) == 0);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    EXPECT(provided == SHMEM_THREAD_SERIALIZED);
    shmem_info_get_version(&major, &minor);
    shmem_info_get_name(name);
    EXPECT(major == 1 && minor == 5 && name[0]);
    test_memory();
    test_fork();
    test_moves();
    test_atomics();
    test_locks();
    test_waits();
    test_collectives(SHMEM_TEAM_WORLD);
    test_teams();
    test_active_set(0, 0, npes);
    test_active_set(1, 1, npes / 2);
    test_active_set(npes - 1, 0, 1);
    test_generic();
    shmem_finalize();
    if (failures == 0 && me == 0)
        puts("all families as expected");
    return failures != 0;
}
