/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of ranks that overlap, jobs side by side, ranks that may use different numbers of
 * cores. */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static int split_twice(struct peal_comm *comm, const void *context)
{
    (void)context;
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    struct peal_comm *half, *others;
    EXPECT(peal_comm_split(comm, (int)rank % 2, -(int)rank, &half) == PEAL_OK);
    EXPECT(peal_comm_split(comm, rank == 0 ? -1 : 7, 0, &others) == PEAL_OK);
    EXPECT((rank == 0) == (others == NULL));
    int64_t mine = rank, sum = 0, expected = 0, members = 0;
    for (uint32_t r = rank % 2; r < size; r += 2) {
        expected += r;
        members++;
    }
    EXPECT(peal_comm_size(half) == members);
    for (int i = 0; i < 50; i++) {
        EXPECT(peal_allreduce(half, &mine, &sum, 1, PEAL_I64, PEAL_SUM) == PEAL_OK);
        EXPECT(sum == expected);
        EXPECT(!others || peal_barrier(others) == PEAL_OK);
    }
    int64_t first = rank; /* keys fall: the highest old rank is rank 0 now */
    EXPECT(peal_broadcast(half, &first, 1, PEAL_I64, 0) == PEAL_OK);
    EXPECT(first == (int64_t)(rank % 2 + 2 * (members - 1)));
    peal_comm_close(others);
    peal_comm_close(half);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    return 0;
}

TEST(groups_overlap_and_two_jobs_run_at_once)
{
    struct children a, b;
    children_start(&a, 5, split_twice, NULL);
    children_start(&b, 4, split_twice, NULL);
    assert_true(children_finish(&a, CHILDREN_NOBODY));
    assert_true(children_finish(&b, CHILDREN_NOBODY));
}

/* Groups nested three deep: names of jobs grow, and groups that are made at the same time in
 * different places must not be confused. */
static int split_deep(struct peal_comm *world, const void *context)
{
    (void)context;
    enum { DEEP = 10 };
    struct peal_comm *comm = world, *levels[DEEP] = {NULL}, *half, *again;
    int64_t mine = peal_comm_rank(world), sum = 0;
    for (int i = 0; i < DEEP; i++) {
        EXPECT(peal_comm_dup(comm, &levels[i]) == PEAL_OK);
        comm = levels[i];
    }
    EXPECT(peal_comm_split(comm, (int)mine / 2, 0, &half) == PEAL_OK);
    for (int i = 0; i < 5; i++) {
        EXPECT(peal_comm_dup(half, &again) == PEAL_OK);
        EXPECT(peal_comm_size(again) == 2);
        EXPECT(peal_allreduce(again, &mine, &sum, 1, PEAL_I64, PEAL_SUM) == PEAL_OK);
        EXPECT(sum == (mine < 2 ? 1 : 5));
        peal_comm_close(again);
    }
    peal_comm_close(half);
    for (int i = DEEP; i-- > 0;)
        peal_comm_close(levels[i]);
    return 0;
}

TEST(groups_of_groups_keep_apart)
{
    assert_true(children_run(4, split_deep, NULL));
}

static int sum_with_other_cores(struct peal_comm *world, const void *job)
{
    static const uint64_t counts[] = {1, 4096, 16384, 100000};
    uint32_t rank = peal_comm_rank(world), size = peal_comm_size(world);
    setenv("PEAL_CORES", rank == 1 ? "2" : "64", 1);
    struct peal_open options = {
        .rank = rank, .size = size, .job = job, .timeout_ms = CHILDREN_TIMEOUT_MS};
    struct peal_comm *comm;
    if (peal_comm_open(&options, &comm) != PEAL_OK)
        return 1;
    int32_t *x = malloc(100000 * sizeof *x), *y = malloc(100000 * sizeof *y);
    if (!x || !y)
        return 1;
    int bad = 0;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (uint64_t i = 0; i < counts[c]; i++)
            x[i] = (int32_t)(i + rank);
        bad |= peal_allreduce(comm, x, y, counts[c], PEAL_I32, PEAL_SUM) != PEAL_OK;
        for (uint64_t i = 0; i < counts[c]; i++)
            bad |= y[i] != (int32_t)(size * i + size * (size - 1) / 2);
        if (bad)
            break;
    }
    free(x);
    free(y);
    peal_comm_close(comm);
    return bad;
}

TEST(ranks_with_other_numbers_of_cores_choose_alike)
{
    char job[64];
    snprintf(job, sizeof job, "cores-%d", (int)getpid());
    assert_true(children_run(4, sum_with_other_cores, job));
    assert_true(children_left_nothing(job));
}

/* A core each, even if the machine stands for several hosts. */
static int run_bound(struct peal_comm *comm, const void *context)
{
    cpu_set_t own, sets[2];
    (void)context;
    CPU_ZERO(&own);
    EXPECT(sched_getaffinity(0, sizeof own, &own) == 0);
    if (CPU_COUNT(&own) > 1)
        return 0; /* two threads of one core */
    EXPECT(peal_allgather(comm, &own, sets, sizeof own, PEAL_U8) == PEAL_OK);
    CPU_AND(&own, &sets[0], &sets[1]);
    EXPECT(CPU_COUNT(&own) == 0);
    return 0;
}

TEST(ranks_of_one_machine_get_a_core_each)
{
    struct children group;
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2)
        skip();
    setenv("PEAL_BIND", "core", 1);
    children_start(&group, 2, run_bound, NULL);
    unsetenv("PEAL_BIND");
    assert_true(children_finish(&group, CHILDREN_NOBODY));
}

/* Over several hosts every communicator needs segments of the network and addresses for its window.
 * When they run out, all ranks are refused alike, and the communicators that exist still work. */
static int dup_until_refused(struct peal_comm *comm, const void *context)
{
    enum { LIMIT = 1024 };
    static struct peal_comm *made[LIMIT];
    int64_t one = 1, sum = 0;
    int count = 0;
    enum peal_status status = PEAL_OK;
    (void)context;
    for (; count < LIMIT; count++) {
        status = peal_comm_dup(comm, &made[count]);
        if (status != PEAL_OK)
            break;
    }
    EXPECT(status == PEAL_NO_MEMORY && count > 0);
    EXPECT(peal_allreduce(made[count - 1], &one, &sum, 1, PEAL_I64, PEAL_SUM) == PEAL_OK);
    EXPECT(sum == 2);
    while (count > 0)
        peal_comm_close(made[--count]);
    return peal_barrier(comm) != PEAL_OK;
}

TEST(communicators_that_the_network_cannot_hold_are_refused)
{
    struct children ranks;
    if (!getenv("TEST_HOSTS"))
        skip();
    children_start(&ranks, 2, dup_until_refused, NULL);
    assert_true(children_finish(&ranks, CHILDREN_NOBODY));
}

int main(void)
{
    return unit_run();
}
