/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in which values come back that may or may not be the same in all schedules, by name; shmem/tests/run knows the verdict
 * of each. Three PEs; PE 0 is the one whose way depends on the value, if any does. */
#include <shmem.h>
#include <stdio.h>
#include <string.h>

static int data, counter, word, guarded, late, flag;
static uint64_t signal_word;
static long lock;
static const char *name;
static int me;

static int is(const char *what)
{
    return strcmp(name, what) == 0;
}

/* What the value decides. */
static void act(int value)
{
    if (value)
        shmem_int_p(&data, value, 1);
}

static void fetches(void)
{
    int old = 0;
    if (is("fetch order steers"))
        act(shmem_int_atomic_fetch_inc(&counter, 0) == 2 && me == 0);
    if (is("fetch order printed"))
        printf("%d\n", shmem_int_atomic_fetch_inc(&counter, 0));
    if (is("fetch dropped"))
        (void)shmem_int_atomic_fetch_add(&counter, 3, 0);
    if (is("fetch alone steers") && me == 0)
        act(shmem_int_atomic_fetch_add(&counter, 5, 0) == 0);
    if (is("nbi fetch steers")) {
        static int got;
        shmem_int_atomic_fetch_add_nbi(&got, &counter, 1, 0);
        shmem_quiet();
        act(me == 0 && got == 2);
    }
    if (is("address")) {
        static int slots[3];
        old = shmem_int_atomic_fetch_inc(&counter, 0);
        slots[old] = 1;
        shmem_barrier_all();
        shmem_int_p(&slots[0], 2, (me + 1) % 3);
    }
    if (is("no barrier")) { /* what PE 1 adds may come after the synchronisation */
        static int other;
        if (me == 1) {
            shmem_int_atomic_add(&counter, 1, 0);
            printf("%d\n", shmem_int_atomic_fetch_add(&other, 1, 1));
        }
        shmem_sync_all();
        act(me == 0 && shmem_int_atomic_fetch(&counter, 0) == 0);
    }
    if (is("swap steers"))
        act(shmem_int_atomic_swap(&word, me + 1, 0) == 3 && me == 0);
    if (is("compare steers"))
        act(shmem_int_atomic_compare_swap(&word, 0, me + 1, 0) != 0 && me == 0);
    if (is("passed on")) { /* the value goes to PE 2, and decides there */
        static int mail;
        old = shmem_int_atomic_fetch_inc(&counter, 0);
        if (me == 1)
            shmem_int_p(&mail, old, 2);
        shmem_barrier_all();
        act(me == 2 && mail == 2);
    }
    if (is("chained")) { /* the second word's change is the first one's value */
        old = shmem_int_atomic_fetch_inc(&counter, 0);
        shmem_int_atomic_set(&word, old, 1);
        shmem_barrier_all();
        act(me == 1 && word == 2);
    }
}

static void sets(void)
{
    if (is("set order steers") || is("set order printed"))
        shmem_int_atomic_set(&word, me + 1, 0);
    if (is("add order"))
        shmem_int_atomic_add(&word, me + 1, 0);
    if (is("add and set"))
        me == 1 ? shmem_int_atomic_set(&word, 10, 0) : shmem_int_atomic_add(&word, 1, 0);
    shmem_barrier_all();
    if (is("set order steers") || is("add and set"))
        act(me == 0 && word == 2);
    if (is("set order printed"))
        printf("%d\n", word);
    if (is("add order"))
        act(me == 0 && word == 6);
    if (is("get steers")) {
        shmem_int_p(&word, me + 1, 0);
        act(shmem_int_g(&word, 0) == 3 && me == 0);
    }
}

static void locks(void)
{
    if (is("lock steers") || is("lock printed") || is("lock after")) {
        shmem_set_lock(&lock);
        guarded = shmem_int_g(&late, 0);
        shmem_int_p(&late, me + 1, 0);
        shmem_quiet();
        if (is("lock steers"))
            act(me == 0 && guarded == 2);
        shmem_clear_lock(&lock);
        shmem_barrier_all();
        printf("%d\n", guarded);
        if (is("lock after"))
            act(me == 0 && late == 2);
    }
    if (strncmp(name, "compare lock", 12) == 0) {
        while (shmem_int_atomic_compare_swap(&counter, 0, me + 1, 0) != 0)
            continue;
        shmem_int_p(&late, shmem_int_g(&late, 0) + 1, 0);
        if (!is("compare lock early"))
            shmem_quiet();
        shmem_int_atomic_set(&counter, 0, 0);
    }
    if (is("test_lock once") && shmem_test_lock(&lock) == 0) {
        act(me == 0);
        shmem_clear_lock(&lock);
    }
    if (is("test_lock loop")) {
        while (shmem_test_lock(&lock))
            continue;
        shmem_int_p(&late, me, 0);
        shmem_clear_lock(&lock);
    }
}

static void waits(void)
{
    if (me != 0 && (strncmp(name, "test ", 5) == 0 || strncmp(name, "poll", 4) == 0 ||
                    strncmp(name, "value", 5) == 0))
        shmem_int_put_signal(&data, &me, 0, &signal_word, 1, SHMEM_SIGNAL_ADD, 0);
    if (me == 1 && is("one poll"))
        shmem_int_put_signal(&data, &me, 1, &signal_word, 1, SHMEM_SIGNAL_ADD, 0);
    if (me != 0 && is("signals")) /* which nobody waits for: they are atomic with each other */
        shmem_int_put_signal(&data, &me, 0, &signal_word, 1, SHMEM_SIGNAL_ADD, 0);
    if (is("not zero")) {
        shmem_int_p(&flag, 100 + me, (me + 1) % shmem_n_pes());
        shmem_int_wait_until(&flag, SHMEM_CMP_NE, 0);
        printf("%d\n", flag);
    }
    if (is("negative") && me == 1)
        shmem_int_put_signal(&data, &me, 1, &signal_word, 1, SHMEM_SIGNAL_ADD, 0);
    if (is("negative") && me == 0) {
        shmem_int_p(&flag, -3, 1);
        shmem_signal_wait_until(&signal_word, SHMEM_CMP_GT, 0);
        printf("%d\n", data);
    }
    if (is("negative") && me == 1)
        shmem_int_wait_until(&flag, SHMEM_CMP_LE, -1);
    for (int round = 1; round <= 2 && is("set back"); round++) {
        if (me == 1) {
            shmem_int_p(&late, round, 0);
            shmem_fence();
            shmem_int_p(&flag, 1, 0);
        } else if (me == 0) {
            shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
            printf("%d\n", late);
            flag = 0;
        }
        shmem_barrier_all();
    }
    if (me != 0)
        return;
    if (is("one poll")) {
        while (shmem_signal_fetch(&signal_word) != 1)
            continue;
        printf("%d\n", data);
    }
    if (is("test once"))
        act(shmem_uint64_test(&signal_word, SHMEM_CMP_GE, 1));
    if (is("test loop"))
        while (!shmem_uint64_test(&signal_word, SHMEM_CMP_GE, 2))
            continue;
    if (is("test counted"))
        for (;;) {
            if (shmem_uint64_test(&signal_word, SHMEM_CMP_GE, 2))
                break;
            late++;
        }
    if (is("poll once"))
        act(shmem_signal_fetch(&signal_word) == 1);
    if (is("poll of two"))
        while (shmem_signal_fetch(&signal_word) < 1)
            continue;
    if (is("value steers"))
        act(shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, 1) == 2);
    if (is("value dropped"))
        shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, 1);
    if (is("value of all"))
        act(shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, 2) == 2);
}

int main(int argc, char **argv)
{
    name = argc > 1 ? argv[1] : "";
    shmem_init();
    me = shmem_my_pe();
    shmem_barrier_all();
    fetches();
    sets();
    locks();
    waits();
    shmem_barrier_all();
    printf("%d %d\n", data, counter);
    shmem_finalize();
    return 0;
}
