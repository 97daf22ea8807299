/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong goes wrong the same way on every rank: dead, sleeping and disagreeing ranks,
 * wrong arguments, memory that is not there; and what goes on afterwards.
 *
 *   fault [kills [seed]]
 */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static int kills = 10;
static uint64_t seed;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- death ---- */

struct kill_plan {
    uint64_t seed;
    uint32_t victim;
};

static int work_until_death(struct peal_comm *comm, const void *context)
{
    const struct kill_plan *plan = context;
    uint64_t state = plan->seed;
    static float x[70000], y[8 * 70000];
    enum peal_status status = PEAL_OK;
    uint32_t size = peal_comm_size(comm);
    while (status == PEAL_OK) {
        uint64_t count = next_random(&state) % 5 == 0 ? 65537 : next_random(&state) % 300;
        uint32_t root = (uint32_t)(next_random(&state) % size);
        struct peal_request *request = NULL;
        switch (next_random(&state) % 6) {
        case 0:
            status = peal_allreduce(comm, x, y, count, PEAL_F32, PEAL_SUM);
            break;
        case 1:
            status = peal_broadcast(comm, x, count, PEAL_F32, root);
            break;
        case 2:
            status = peal_allgather(comm, x, y, count, PEAL_F32);
            break;
        case 3:
            status = peal_barrier(comm);
            break;
        case 4:
            status = peal_iallreduce(comm, x, y, count, PEAL_F32, PEAL_MAX, &request);
            if (status == PEAL_OK)
                status = peal_request_wait(request);
            break;
        default:
            status = peal_reduce(comm, x, y, count, PEAL_F32, PEAL_SUM, root);
        }
    }
    char name[32];
    snprintf(name, sizeof name, "rank %u (pid", plan->victim);
    /* A rank that notices only in its next call learns that the communicator is finished. */
    EXPECT(status == PEAL_PEER_DEAD || status == PEAL_CLOSED);
    EXPECT(strstr(peal_comm_error(comm), "is dead") != NULL);
    EXPECT(strstr(peal_comm_error(comm), name) != NULL);
    EXPECT(peal_barrier(comm) == PEAL_CLOSED);
    struct peal_comm *smaller;
    EXPECT(peal_comm_shrink(comm, &smaller) == PEAL_OK);
    EXPECT(peal_comm_size(smaller) == size - 1);
    int64_t one = 1, sum = 0;
    EXPECT(peal_allreduce(smaller, &one, &sum, 1, PEAL_I64, PEAL_SUM) == PEAL_OK);
    EXPECT(sum == (int64_t)size - 1);
    EXPECT(peal_barrier(smaller) == PEAL_OK);
    peal_comm_close(smaller);
    return 0;
}

TEST(survivors_of_a_killed_rank_report_it_and_go_on)
{
    uint64_t random = seed;
    for (int i = 0; i < kills; i++) {
        struct children group;
        uint32_t size = 2 + (uint32_t)(next_random(&random) % 4);
        struct kill_plan plan = {.seed = next_random(&random) | 1,
                                 .victim = (uint32_t)(next_random(&random) % size)};
        children_start(&group, size, work_until_death, &plan);
        children_wait_open(&group);
        children_pause_us((long)(next_random(&random) % 20000));
        kill(group.pids[plan.victim], SIGKILL);
        if (!children_finish(&group, plan.victim))
            fail_msg("kill %d, seed %llu", i, (unsigned long long)seed);
        assert_true(children_left_nothing(group.job));
    }
}

/* ---- disagreement and silence ---- */

enum way {
    WAY_COUNT,
    WAY_DTYPE,
    WAY_OP,
    WAY_ROOT,
    WAY_COLLECTIVE,
    WAY_BLOCKS,
    WAY_LEAVE,
    WAY_SLEEP,
    WAYS
};

static int disagree(struct peal_comm *comm, const void *context)
{
    enum way way = *(const enum way *)context;
    static float x[1000], y[4000];
    bool odd = peal_comm_rank(comm) == 1;
    enum peal_status status = PEAL_OK, wanted = PEAL_MISMATCH;
    for (int i = 0; i < 20; i++) {
        status = peal_allreduce(comm, x, y, 100, PEAL_F32, PEAL_SUM);
        if (status != PEAL_OK)
            break;
    }
    /* A slower rank may learn of the mismatch while it is still in this call. */
    EXPECT(status == PEAL_OK || (status == PEAL_MISMATCH && !odd));
    if (status != PEAL_OK)
        return 0;
    switch (way) {
    case WAY_COUNT:
        status = peal_allreduce(comm, x, y, odd ? 101 : 100, PEAL_F32, PEAL_SUM);
        break;
    case WAY_DTYPE:
        status = peal_allreduce(comm, x, y, 100, odd ? PEAL_I32 : PEAL_F32, PEAL_SUM);
        break;
    case WAY_OP:
        status = peal_allreduce(comm, x, y, 100, PEAL_F32, odd ? PEAL_MAX : PEAL_SUM);
        break;
    case WAY_ROOT:
        status = peal_reduce(comm, x, y, 100, PEAL_F32, PEAL_SUM, odd ? 1 : 0);
        break;
    case WAY_COLLECTIVE:
        status = odd ? peal_barrier(comm) : peal_allgather(comm, x, y, 100, PEAL_F32);
        break;
    case WAY_BLOCKS: {
        /* Rank 1 sends more to rank 0 than rank 0 expects. */
        uint64_t out[3] = {odd ? 8 : 7, 7, 7}, in[3] = {7, 7, 7};
        struct peal_blocks sends = {out, NULL}, takes = {in, NULL};
        status = peal_all_to_all_v(comm, x, &sends, y, &takes, PEAL_F32);
        EXPECT(status == PEAL_OK || strstr(peal_comm_error(comm), "sends 8 elements to rank 0"));
        break;
    }
    case WAY_LEAVE:
        if (odd)
            return 0;
        status = peal_barrier(comm);
        break;
    default:
        children_say_done();
        children_wait_done(odd ? 5 : 3); /* all have left the sums; the others have timed out */
        peal_comm_set_timeout(comm, 300);
        status = peal_barrier(comm);
        children_say_done();
        wanted = PEAL_TIMEOUT; /* a rank on another host may learn of it in its call, too */
        EXPECT(strstr(peal_comm_error(comm), "outside any call") ||
               strstr(peal_comm_error(comm), "not in a call"));
    }
    /* A rank whose call had ended before the mismatch was seen learns of it in the next one. */
    if (status == PEAL_OK)
        status = peal_barrier(comm);
    EXPECT(status == wanted || status == PEAL_CLOSED);
    EXPECT(strlen(peal_comm_error(comm)) > 20);
    return 0;
}

TEST(calls_that_differ_fail_on_every_rank)
{
    for (int way = 0; way < WAYS; way++) {
        struct children group;
        enum way copy = (enum way)way;
        children_start(&group, 3, disagree, &copy);
        if (!children_finish(&group, CHILDREN_NOBODY))
            fail_msg("way %d", way);
    }
}

/* ---- arguments and memory ---- */

TEST(wrong_arguments_are_refused_and_nothing_is_lost)
{
    struct peal_comm *comm;
    struct peal_open alone = {.size = 1, .job = "alone", .quiet = 1};
    assert_int_equal(peal_comm_open(&alone, &comm), PEAL_OK);
    float x[64] = {1, 2, 3}, y[64];
    uint64_t counts[1] = {UINT64_MAX / 2};
    assert_int_equal(peal_allreduce(comm, x, x + 1, 32, PEAL_F32, PEAL_SUM), PEAL_INVALID);
    assert_non_null(strstr(peal_comm_error(comm), "overlap"));
    assert_int_equal(peal_allreduce(comm, NULL, y, 1, PEAL_F32, PEAL_SUM), PEAL_INVALID);
    assert_int_equal(peal_allreduce(comm, x, y, 1, (enum peal_dtype)99, PEAL_SUM), PEAL_INVALID);
    assert_int_equal(peal_allreduce(comm, x, y, 1, PEAL_F32, (enum peal_reduction)99),
                     PEAL_INVALID);
    assert_int_equal(peal_allreduce(comm, x, y, 1, PEAL_F32, PEAL_XOR), PEAL_INVALID);
    assert_int_equal(peal_allreduce(comm, x, y, 1, PEAL_I64, PEAL_AVG), PEAL_INVALID);
    assert_int_equal(peal_broadcast(comm, x, 1, PEAL_F32, 1), PEAL_INVALID);
    assert_int_equal(peal_allreduce(comm, x, y, UINT64_MAX, PEAL_F32, PEAL_SUM), PEAL_INVALID);
    assert_int_equal(peal_allgather_v(comm, x, y, counts, NULL, PEAL_F64), PEAL_INVALID);
    assert_int_equal(peal_allgather_v(comm, x, y, NULL, NULL, PEAL_F64), PEAL_INVALID);
    assert_int_equal(peal_send(comm, x, 4, 3, 0), PEAL_INVALID);
    assert_int_equal(peal_comm_set_algo(comm, "allreduce", "magic"), PEAL_INVALID);
    void *memory = NULL;
    assert_int_equal(peal_symmetric_alloc(comm, SIZE_MAX, &memory), PEAL_NO_MEMORY);
    assert_int_equal(peal_symmetric_alloc(comm, (size_t)1 << 45, &memory), PEAL_NO_MEMORY);
    assert_int_equal(peal_symmetric_alloc(comm, 100, &memory), PEAL_OK);
    assert_int_equal(peal_symmetric_free(comm, y), PEAL_INVALID);
    assert_int_equal(peal_symmetric_free(comm, memory), PEAL_OK);
    assert_int_equal(peal_allreduce(comm, x, y, 3, PEAL_F32, PEAL_SUM), PEAL_OK);
    assert_true(y[2] == 3);
    assert_int_equal(peal_allreduce(comm, x, y, 0, PEAL_F32, PEAL_SUM), PEAL_OK);
    peal_comm_close(comm);
}

static int broadcast_nothing(struct peal_comm *comm, const void *context)
{
    (void)context;
    enum { BYTES = 1 << 20 };
    void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(at != MAP_FAILED);
    EXPECT(peal_comm_set_algo(comm, "broadcast", "read") == PEAL_OK);
    if (!strstr(peal_comm_explain(comm, "broadcast", BYTES, 0), "broadcast_read"))
        return 0; /* processes may not read each other here */
    EXPECT(peal_broadcast(comm, at, BYTES, PEAL_U8, 0) == PEAL_OK);
    if (peal_comm_rank(comm) == 0)
        munmap(at, BYTES);
    EXPECT(peal_broadcast(comm, at, BYTES, PEAL_U8, 0) == PEAL_SYSTEM);
    EXPECT(strstr(peal_comm_error(comm), "cannot reach the memory of rank 0") != NULL);
    return 0;
}

TEST(memory_that_is_gone_is_an_error_on_every_rank)
{
    assert_true(children_run(2, broadcast_nothing, NULL));
}

int main(int argc, char **argv)
{
    kills = argc > 1 ? atoi(argv[1]) : kills;
    seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) | 1;
    printf("seed %llu\n", (unsigned long long)seed);
    return unit_run();
}
