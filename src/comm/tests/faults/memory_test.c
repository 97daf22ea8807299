/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a rank takes, whatever it calls: shared memory, measured by the windows' files,
 * and its own memory for plans. */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4, POOL_KIB = 512, MESSAGE = 4 << 20 };

/* The limit that peal.h states, in bytes: blocking, non-blocking, messages; and pages for control
 * blocks. */
static const uint64_t bound =
    (4 + 4 * 2) * (POOL_KIB << 10) + RANKS * ((256 << 10) + 8192) + (64 << 10);

/* Every collective with every root, blocking and four at once. */
static int call_all(struct peal_comm *comm, char *x, char *y, uint64_t n)
{
    struct peal_request *requests[4];
    for (uint32_t root = 0; root < RANKS; root++) {
        EXPECT(peal_broadcast(comm, x, n, PEAL_F32, root) == PEAL_OK);
        EXPECT(peal_reduce(comm, x, y, n, PEAL_F32, PEAL_SUM, root) == PEAL_OK);
        EXPECT(peal_gather(comm, x, y, n / RANKS, PEAL_F32, root) == PEAL_OK);
        EXPECT(peal_scatter(comm, x, y, n / RANKS, PEAL_F32, root) == PEAL_OK);
    }
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_F32, PEAL_SUM) == PEAL_OK);
    EXPECT(peal_allgather(comm, x, y, n / RANKS, PEAL_F32) == PEAL_OK);
    EXPECT(peal_reduce_scatter(comm, x, y, n / RANKS, PEAL_F32, PEAL_SUM) == PEAL_OK);
    EXPECT(peal_all_to_all(comm, x, y, n / RANKS, PEAL_F32) == PEAL_OK);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    EXPECT(peal_ireduce_scatter(comm, x, y, n / RANKS, PEAL_F32, PEAL_SUM, &requests[0]) ==
           PEAL_OK);
    EXPECT(peal_iall_to_all(comm, x, y + MESSAGE, n / RANKS, PEAL_F32, &requests[1]) == PEAL_OK);
    EXPECT(peal_iallreduce(comm, x, y + 2 * MESSAGE, n, PEAL_F32, PEAL_SUM, &requests[2]) ==
           PEAL_OK);
    EXPECT(peal_ibroadcast(comm, y + 3 * MESSAGE, n, PEAL_F32, 1, &requests[3]) == PEAL_OK);
    for (int i = 0; i < 4; i++)
        EXPECT(peal_request_wait(requests[i]) == PEAL_OK);
    return 0;
}

static int check_rank(struct peal_comm *comm, const void *context)
{
    (void)context;
    char *x = calloc(1, 4 * MESSAGE), *y = calloc(1, 4 * MESSAGE);
    EXPECT(x && y);
    for (uint64_t bytes = 4; bytes <= MESSAGE; bytes *= 4)
        EXPECT(call_all(comm, x, y, bytes / 4) == 0);
    struct children_files before = children_open_files();
    if (peal_comm_rank(comm) == 0)
        printf("%llu KiB, of at most %llu\n", (unsigned long long)before.largest >> 10,
               (unsigned long long)bound >> 10);
    EXPECT(before.windows == RANKS);
    EXPECT(before.largest <= bound);
    /* Communicators that are closed leave nothing. */
    for (int i = 0; i < 20; i++) {
        struct peal_comm *part;
        EXPECT(peal_comm_split(comm, i % 2, 0, &part) == PEAL_OK);
        EXPECT(call_all(part, x, y, 4096) == 0);
        peal_comm_close(part);
    }
    struct children_files after = children_open_files();
    EXPECT(after.largest <= bound);
    EXPECT(before.windows == after.windows);
    free(x);
    free(y);
    return 0;
}

/* ---- plans ---- */

/* The limits that docs/runtime.md states: plans of collectives, and those of one user kernel. The
 * last plan may exceed them. */
enum { PLANS = 16 << 20, VERSIONS = 8 << 20, SPARE = 1 << 20 };

/* Very many counts, types and operations. */
static int call_many_counts(struct peal_comm *comm, char *x, char *y)
{
    for (uint64_t i = 0; i < 5000; i++) { /* more plans than are kept */
        uint64_t n = 1 + i * 37 % 9973;
        enum peal_dtype dtype = (enum peal_dtype)(i % (PEAL_I64 + 1));
        enum peal_reduction reduce = i % 3 ? PEAL_SUM : PEAL_MAX;
        uint32_t root = (uint32_t)(i / 7 % RANKS);
        switch (i % 5) {
        case 0:
            EXPECT(peal_allreduce(comm, x, y, n, dtype, reduce) == PEAL_OK);
            break;
        case 1:
            EXPECT(peal_reduce(comm, x, y, n * 8, dtype, reduce, root) == PEAL_OK);
            break;
        case 2:
            EXPECT(peal_broadcast(comm, x, n * 4, dtype, root) == PEAL_OK);
            break;
        case 3:
            EXPECT(peal_all_to_all(comm, x, y, n, dtype) == PEAL_OK);
            break;
        default:
            EXPECT(peal_allreduce(comm, y, y, n * 16, dtype, reduce) == PEAL_OK);
        }
    }
    return 0;
}

/* A kernel with local values, which differ at every launch. */
static int launch_many_versions(struct peal_comm *comm)
{
    static const char text[] = "kernel some(in x: i64[n], out y: i64[n], local k: int) {\n"
                               "    signal ready\n"
                               "    y = x\n"
                               "    for i in 0 .. k { notify ready@((rank + 1) % nranks) += 1 }\n"
                               "    notify ready@((rank + 1) % nranks) += 1\n"
                               "    wait ready >= 1\n"
                               "    y[0 +: min(k, n)] = x[0 +: min(k, n)]\n"
                               "}\n";
    struct peal_user_kernel *kernel;
    int64_t x[4] = {1, 2, 3, 4}, y[4];
    EXPECT(peal_user_kernel_load(comm, text, NULL, &kernel) == PEAL_OK);
    for (int64_t i = 0; i < 700; i++) {
        struct peal_arg args[3] = {
            {.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
            {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y},
            {.kind = PEAL_ARG_INT, .value = (i * 5 + peal_comm_rank(comm)) % 701}};
        memset(y, 0, sizeof y);
        EXPECT(peal_user_kernel_launch(kernel, PEAL_I64, args, 3, NULL, 0) == PEAL_OK);
        EXPECT(memcmp(x, y, sizeof x) == 0);
    }
    return kernel ? 0 : 1; /* not freed: its memory is measured */
}

static int check_plans(struct peal_comm *comm, const void *context)
{
    (void)context;
    char *x = calloc(1, MESSAGE), *y = calloc(1, MESSAGE);
    EXPECT(x && y);
    /* Signed: memory that opening needed may be freed meanwhile. */
    int64_t before = (int64_t)mallinfo2().uordblks;
    EXPECT(call_many_counts(comm, x, y) == 0);
    int64_t counts = (int64_t)mallinfo2().uordblks - before;
    before = (int64_t)mallinfo2().uordblks;
    EXPECT(launch_many_versions(comm) == 0);
    int64_t versions = (int64_t)mallinfo2().uordblks - before;
    if (peal_comm_rank(comm) == 0)
        printf("plans: %" PRId64 " KiB, of at most %d; of a kernel: %" PRId64
               " KiB, of at most %d\n",
               counts / 1024, PLANS >> 10, versions / 1024, VERSIONS >> 10);
    EXPECT(counts <= PLANS + SPARE && versions <= VERSIONS + SPARE);
    free(x);
    free(y);
    return 0;
}

static void run_ranks(children_body *check)
{
    char pool[32];
    snprintf(pool, sizeof pool, "%dK", POOL_KIB);
    setenv("PEAL_WINDOW_POOL", pool, 1);
    assert_true(children_run(RANKS, check, NULL));
}

TEST(a_window_stays_within_what_is_stated)
{
    run_ranks(check_rank);
}

TEST(plans_stay_within_what_is_stated)
{
    run_ranks(check_plans);
}

int main(void)
{
    return unit_run();
}
