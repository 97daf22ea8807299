/* SPDX-License-Identifier: Apache-2.0 */
/* User kernels whose structure depends on the rank: channels, signals, windows and lanes that only
 * some ranks have, and local counts. What is proved must run right. */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { N = 600 };

static enum peal_status launch(struct peal_comm *comm, const char *text, const float *x, float *y,
                               struct peal_arg third)
{
    struct peal_user_kernel *kernel;
    enum peal_status status = peal_user_kernel_load(comm, text, NULL, &kernel);
    if (status != PEAL_OK)
        return status;
    struct peal_arg args[3] = {
        {.kind = PEAL_ARG_BUFFER, .data = (void *)(uintptr_t)x, .bytes = N * sizeof *x},
        {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = N * sizeof *y},
        third};
    for (int i = 0; i < 5 && status == PEAL_OK; i++) {
        memset(y, 0, N * sizeof *y);
        status = peal_user_kernel_launch(kernel, PEAL_F32, args,
                                         third.nvalues || third.value ? 3 : 2, NULL, 0);
    }
    peal_user_kernel_free(kernel);
    return status;
}

/* Odd ranks get the root's vector by a channel, even ones from its window. */
static const char mixed[] =
    "kernel mixed(in x: T[n], out y: T[n]) {\n"
    "    window w: T[n]\n"
    "    signal s\n"
    "    if rank == 0 {\n"
    "        y = x\n"
    "        w = x\n"
    "        for p in peers { if p % 2 == 1 { send x to p } else { notify s@p += 1 } }\n"
    "    } else { if rank % 2 == 1 { y = recv from 0 } else { wait s >= 1  y = w@0 } }\n"
    "    barrier()\n"
    "}\n";

static int some_have_channels(struct peal_comm *comm, const void *context)
{
    float x[N], y[N];
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    for (int i = 0; i < N; i++)
        x[i] = (float)(1000 * rank + (uint32_t)i);
    EXPECT(launch(comm, context, x, y, (struct peal_arg){0}) == PEAL_OK);
    for (int i = 0; i < N; i++)
        EXPECT(y[i] == (float)i);
    /* The calls that follow are not disturbed by the place of the kernel's memory. */
    static const int counts[] = {1, 30, 300, N};
    for (int k = 0; k < 4; k++) {
        EXPECT(peal_allreduce(comm, x, y, (uint64_t)counts[k], PEAL_F32, PEAL_SUM) == PEAL_OK);
        for (int i = 0; i < counts[k]; i++)
            EXPECT(y[i] == (float)(1000 * size * (size - 1) / 2 + size * (uint32_t)i));
    }
    return 0;
}

/* Only two ranks have a channel. */
static const char pair[] = "kernel pair(in x: T[n], out y: T[n]) {\n"
                           "    y = x\n"
                           "    if rank == 0 { send x to 1 }\n"
                           "    if rank == 1 { y = recv from 0 }\n"
                           "}\n";

static int two_have_a_channel(struct peal_comm *comm, const void *context)
{
    (void)context;
    float x[N], y[N];
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    for (int i = 0; i < N; i++)
        x[i] = (float)(rank + 1);
    EXPECT(launch(comm, pair, x, y, (struct peal_arg){0}) == PEAL_OK);
    for (int i = 0; i < N; i++)
        EXPECT(y[i] == (rank == 1 ? 1.0f : (float)(rank + 1)));
    EXPECT(peal_allreduce(comm, x, y, N, PEAL_F32, PEAL_SUM) == PEAL_OK);
    for (int i = 0; i < N; i++)
        EXPECT(y[i] == (float)(size * (size + 1) / 2));
    return 0;
}

/* Counts in signals that exceed 16 bits on one rank only: all ranks must write cells alike. */
static const char large_count[] = "kernel count(in x: T[n], out y: T[n]) {\n"
                                  "    window w: T[n]\n"
                                  "    signal s, t\n"
                                  "    w = x\n"
                                  "    y = x\n"
                                  "    if rank == 0 { notify s@1 += 70000 }\n"
                                  "    if rank == 1 { wait s >= 70000  y = w@0 }\n"
                                  "    barrier()\n"
                                  "}\n";

static int one_counts_far(struct peal_comm *comm, const void *context)
{
    (void)context;
    float x[N], y[N];
    uint32_t rank = peal_comm_rank(comm);
    for (int i = 0; i < N; i++)
        x[i] = (float)(rank + 1);
    EXPECT(launch(comm, large_count, x, y, (struct peal_arg){0}) == PEAL_OK);
    for (int i = 0; i < N; i++)
        EXPECT(y[i] == (rank == 1 ? 1.0f : (float)(rank + 1)));
    return 0;
}

/* Each rank sends as many elements as its own count says, to the right; a count of 0 means no
 * channel. */
static const char local_counts[] =
    "kernel shift(in x: T[n], out y: T[n], local counts: int[nranks]) {\n"
    "    let right = (rank + 1) % nranks\n"
    "    let left = (rank - 1) % nranks\n"
    "    y = x\n"
    "    if counts[right] > 0 { send x[0 +: counts[right]] to right }\n"
    "    if counts[left] > 0 { y[0 +: counts[left]] = recv from left }\n"
    "}\n";

/* counts[right] of a rank is counts[left] of its right neighbour: 0 for every third pair. */
static int64_t sent_by(uint32_t rank)
{
    return rank % 3 == 0 ? 0 : 10 * (int64_t)rank;
}

static int counts_are_local(struct peal_comm *comm, const void *context)
{
    (void)context;
    float x[N], y[N];
    int64_t counts[CHILDREN_MAX] = {0};
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    uint32_t left = (rank + size - 1) % size;
    counts[(rank + 1) % size] = sent_by(rank);
    counts[left] = sent_by(left);
    for (int i = 0; i < N; i++)
        x[i] = (float)(rank + 1);
    EXPECT(launch(comm, local_counts, x, y,
                  (struct peal_arg){.kind = PEAL_ARG_INTS, .values = counts, .nvalues = size}) ==
           PEAL_OK);
    for (int i = 0; i < N; i++)
        EXPECT(y[i] == (i < sent_by(left) ? (float)(left + 1) : (float)(rank + 1)));
    return 0;
}

static void run(uint32_t ranks, children_body *body, const void *context)
{
    assert_true(children_run(ranks, body, context));
}

TEST(channels_on_some_ranks)
{
    for (uint32_t ranks = 2; ranks <= 5; ranks++)
        run(ranks, some_have_channels, mixed);
    run(2, two_have_a_channel, NULL);
    run(4, two_have_a_channel, NULL);
}

TEST(counts_on_some_ranks)
{
    run(3, one_counts_far, NULL);
    run(4, counts_are_local, NULL);
}

/* ---- PEAL_VERIFY=1 ---- */

/* Deadlocks if two ranks' counts differ: proved for some values, refuted for others. */
static int local_is_proved(struct peal_comm *comm, const void *context)
{
    (void)context;
    float x[N] = {0}, y[N];
    int64_t counts[CHILDREN_MAX] = {0};
    uint32_t size = peal_comm_size(comm);
    struct peal_arg third = {.kind = PEAL_ARG_INTS, .values = counts, .nvalues = size};
    for (uint32_t r = 0; r < size; r++)
        counts[r] = 4;
    EXPECT(launch(comm, local_counts, x, y, third) == PEAL_OK);
    if (peal_comm_rank(comm) == 1)
        counts[0] = 5; /* which rank 0 does not send */
    EXPECT(launch(comm, local_counts, x, y, third) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "cannot make a plan of 'shift'"));
    EXPECT(peal_barrier(comm) == PEAL_OK);
    return 0;
}

/* Two ranks write the same bytes: what is refuted is not run. */
static int race_is_refused(struct peal_comm *comm, const void *context)
{
    (void)context;
    static const char text[] = "kernel race(in x: T[n], out y: T[n]) {\n"
                               "    window w: T[n]\n"
                               "    w = x\n"
                               "    y = w@((rank + 1) % nranks)\n"
                               "}\n";
    float x[N] = {0}, y[N];
    EXPECT(launch(comm, text, x, y, (struct peal_arg){0}) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "race"));
    EXPECT(peal_barrier(comm) == PEAL_OK);
    return 0;
}

TEST(what_is_not_proved_is_not_run)
{
    setenv("PEAL_VERIFY", "1", 1);
    run(2, local_is_proved, NULL);
    run(3, local_is_proved, NULL);
    run(2, race_is_refused, NULL);
    unsetenv("PEAL_VERIFY");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(channels_on_some_ranks),
                                       cmocka_unit_test(counts_on_some_ranks),
                                       cmocka_unit_test(what_is_not_proved_is_not_run)};
    return cmocka_run_group_tests_name("part", tests, NULL, NULL);
}
