/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads of each PE call at once. Threads wait for what other threads of the same PE have yet
 * to do, in waits and in collectives: a library that keeps one out while another waits would hang. It
 * also counts its puts by the names for profilers. Started with an even number of PEs. */
#include <pshmem.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 50, MOST_PES = 16 };

static int me, npes, failures;
static atomic_long puts_made;
static long board[THREADS][MOST_PES], count, guarded, lock, ping[THREADS], sums[THREADS], ones = 1;
static uint64_t arrived[THREADS];
static shmem_team_t teams[THREADS];
static shmem_ctx_t contexts[THREADS];

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("PE %d: line %d: %s\n", me, __LINE__, #condition);                              \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

/* Takes the place of the library's. */
void shmem_long_p(long *dest, long value, int pe)
{
    atomic_fetch_add_explicit(&puts_made, 1, memory_order_relaxed); /* a counter */
    pshmem_long_p(dest, value, pe);
}

/* A word goes round the PEs and, on each, from thread to thread. */
static void hand_on(unsigned thread)
{
    for (long round = 1; round <= ROUNDS; round++) {
        if (thread > 0 || me > 0 || round > 1)
            shmem_long_wait_until(&ping[thread], SHMEM_CMP_GE,
                                  thread == 0 && me == 0 ? round - 1 : round);
        if (thread + 1 < THREADS)
            shmem_long_p(&ping[thread + 1], round, me);
        else
            shmem_long_p(&ping[0], round, (me + 1) % npes);
    }
}

/* All of them on the same words. */
static void contend(unsigned thread)
{
    for (int round = 0; round < ROUNDS; round++) {
        shmem_long_atomic_inc(&count, 0);
        shmem_ctx_long_put_nbi(contexts[thread], &board[thread][me], &ones, 1, (me + round) % npes);
        shmem_ctx_quiet(contexts[thread]);
        shmem_set_lock(&lock);
        shmem_long_p(&guarded, shmem_long_g(&guarded, 0) + 1, 0);
        shmem_clear_lock(&lock);
    }
}

/* The first thread alone is in a collective until the others have sent what its peers wait for. */
static void collect(unsigned thread)
{
    shmem_putmem_signal(&board[thread][me], &ones, sizeof ones, &arrived[thread], 1,
                        SHMEM_SIGNAL_ADD, (me + 1) % npes);
    if (thread == 0) {
        for (unsigned other = 1; other < THREADS; other++)
            shmem_signal_wait_until(&arrived[other], SHMEM_CMP_EQ, 1);
        shmem_barrier_all();
        long *memory = shmem_malloc(20 << 20); /* more than the heap has */
        EXPECT(memory && shmem_team_ptr(SHMEM_TEAM_WORLD, memory, me) == memory);
        shmem_free(memory);
    }
    for (int round = 0; round < ROUNDS; round++)
        EXPECT(shmem_long_sum_reduce(teams[thread], &sums[thread], &ones, 1) == 0 &&
               sums[thread] == npes);
}

static void *work(void *number)
{
    unsigned thread = (unsigned)(uintptr_t)number;
    hand_on(thread);
    contend(thread);
    collect(thread);
    return NULL;
}

int main(void)
{
    int provided;
    pthread_t threads[THREADS];
    EXPECT(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
    EXPECT(provided == SHMEM_THREAD_MULTIPLE);
    shmem_query_thread(&provided);
    EXPECT(provided == SHMEM_THREAD_MULTIPLE);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    for (unsigned i = 0; i < THREADS; i++) {
        EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &teams[i]) == 0);
        EXPECT(shmem_ctx_create(0, &contexts[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    shmem_barrier_all();
    EXPECT(puts_made == 2L * ROUNDS * THREADS);
    EXPECT(shmem_long_g(&count, 0) == (long)ROUNDS * THREADS * npes);
    EXPECT(shmem_long_g(&guarded, 0) == (long)ROUNDS * THREADS * npes);
    for (unsigned i = 0; i < THREADS; i++)
        shmem_ctx_destroy(contexts[i]);
    shmem_barrier(me / 2 * 2, 0, 2, NULL);
    shmem_finalize();
    return failures != 0;
}
