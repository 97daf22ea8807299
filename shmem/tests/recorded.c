/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for peal record, by name; shmem/tests/run knows the verdict of each. Two PEs. */
#include <shmem.h>
#include <stdio.h>
#include <string.h>

static int data, flag, counter, source = 1, sum, words[2];
static uint64_t signal_word;
static long lock;

static int is(const char *what, const char *name)
{
    return strcmp(what, name) == 0;
}

/* PE 0. */
static void send(const char *what)
{
    int local = 7, old = 0;
    if (is(what, "barrier") || is(what, "race") || is(what, "sync"))
        shmem_int_put(&data, &local, 1, 1);
    if (is(what, "nbi") || is(what, "nbi quiet"))
        shmem_int_put_nbi(&data, &local, 1, 1);
    if (is(what, "nbi quiet"))
        shmem_quiet();
    if (is(what, "nbi") || is(what, "nbi quiet"))
        local = 8;
    if (is(what, "signal"))
        shmem_int_put_signal(&data, &local, 1, &signal_word, 1, SHMEM_SIGNAL_ADD, 1);
    if (is(what, "fence") || is(what, "no fence"))
        shmem_int_put(&data, &local, 1, 1);
    if (is(what, "fence"))
        shmem_fence();
    if (is(what, "fence") || is(what, "no fence"))
        shmem_int_p(&flag, 1, 1);
    if (is(what, "steer")) {
        old = shmem_int_atomic_fetch_inc(&counter, 1);
        if (old == 0)
            shmem_int_put(&data, &local, 1, 1);
    }
    if (is(what, "put after reduce"))
        shmem_int_put(&sum, &local, 1, 1);
    if (is(what, "any")) {
        shmem_int_p(&words[0], 1, 1);
        shmem_int_p(&words[1], 1, 1);
    }
    if (is(what, "two sizes")) {
        shmem_uint64_atomic_add(&signal_word, 1, 1);
        shmem_int_atomic_add((int *)(void *)&signal_word, 1, 1);
    }
    if (is(what, "two types")) {
        shmem_int_atomic_add(&counter, 1, 1);
        shmem_float_atomic_set((float *)(void *)&counter, 1, 1);
    }
}

/* PE 1. */
static void receive(const char *what)
{
    if (is(what, "race"))
        printf("%d\n", data);
    if (is(what, "steer"))
        shmem_int_atomic_inc(&counter, 1);
    if (is(what, "signal"))
        shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, 1);
    if (is(what, "fence") || is(what, "no fence"))
        shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
    if (is(what, "signal") || is(what, "fence") || is(what, "no fence"))
        printf("%d\n", data);
    if (is(what, "any"))
        shmem_int_wait_until_any(words, 2, NULL, SHMEM_CMP_EQ, 1);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "barrier";
    shmem_init();
    int me = shmem_my_pe();
    if (is(what, "put after reduce"))
        shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &sum, &source, 1);
    if (strstr(what, "collect"))
        shmem_int_collect(SHMEM_TEAM_WORLD, words, &source, 1);
    if (is(what, "put after collect") && me == 0)
        shmem_int_p(&words[1], 5, 1);
    if (is(what, "in place"))
        shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &source, &source, 1);
    if (is(what, "atomics"))
        printf("%d\n", shmem_int_atomic_fetch_add(&counter, 1 + me, 0));
    if (is(what, "lock")) {
        shmem_set_lock(&lock);
        shmem_int_p(&counter, 1 + shmem_int_g(&counter, 0), 0);
        shmem_clear_lock(&lock);
    }
    if (me == 0)
        send(what);
    else
        receive(what);
    if (is(what, "sync"))
        shmem_sync_all();
    else
        shmem_barrier_all();
    printf("%d %d\n", data, sum);
    shmem_finalize();
    return 0;
}
