/* SPDX-License-Identifier: Apache-2.0 */
/* peal_comm_set_idle: a waiting rank does other work, and which functions it may call meanwhile.
 * peal_comm_set_interrupt: a waiting rank gives up at the program's request. */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The context of rank 0's idle function. */
struct visit {
    struct peal_comm *own, *other;
    struct peal_request *request;
    uint32_t calls;
    uint32_t depth, deepest;
    enum peal_status collective, again, started, wide, tested;
};

static void visit_idle(void *context)
{
    struct visit *visit = context;
    int64_t one = 1, sum = 0;
    visit->depth++;
    if (visit->depth > visit->deepest)
        visit->deepest = visit->depth;
    if (visit->calls++ == 0) {
        struct peal_request *none = NULL;
        void *memory = NULL;
        visit->collective = peal_barrier(visit->own);
        visit->again = peal_barrier(visit->own);
        visit->started = peal_ibarrier(visit->own, &none);
        visit->wide = peal_symmetric_alloc(visit->own, 4096, &memory);
        visit->tested = peal_request_test(visit->request);
        /* Rank 1 enters the barrier only after this. */
        if (peal_allreduce(visit->other, &one, &sum, 1, PEAL_I64, PEAL_SUM) != PEAL_OK || sum != 2)
            visit->depth = 100;
    }
    visit->depth--;
}

/* Rank 0 waits in a barrier, which rank 1 enters after the idle function of rank 0 has met it
 * elsewhere. */
static int wait_with_idle(struct peal_comm *comm, const void *context)
{
    (void)context;
    struct visit visit = {.own = comm};
    EXPECT(peal_comm_dup(comm, &visit.other) == PEAL_OK);
    EXPECT(peal_barrier(comm) == PEAL_OK); /* so that the next one is a repetition */
    EXPECT(peal_ibarrier(comm, &visit.request) == PEAL_OK);
    if (peal_comm_rank(comm) == 1) {
        int64_t one = 1, sum = 0;
        EXPECT(peal_allreduce(visit.other, &one, &sum, 1, PEAL_I64, PEAL_SUM) == PEAL_OK);
        EXPECT(peal_barrier(comm) == PEAL_OK);
        EXPECT(peal_request_wait(visit.request) == PEAL_OK);
        return 0;
    }
    peal_comm_set_idle(comm, visit_idle, &visit);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    EXPECT(visit.calls >= 1 && visit.deepest == 1 && visit.depth == 0);
    EXPECT(visit.collective == PEAL_INVALID && visit.again == PEAL_INVALID);
    EXPECT(visit.started == PEAL_INVALID && visit.wide == PEAL_INVALID);
    EXPECT(visit.tested == PEAL_OK || visit.tested == PEAL_PENDING);
    EXPECT(visit.tested == PEAL_OK || peal_request_wait(visit.request) == PEAL_OK);
    peal_comm_set_idle(comm, NULL, NULL);
    return 0;
}

TEST(a_waiting_rank_drives_what_its_peer_waits_for)
{
    assert_true(children_run(2, wait_with_idle, NULL));
}

enum { CALLS = 100 };

static void count_call(void *context)
{
    if (++*(uint32_t *)context == CALLS)
        children_say_done();
}

/* Rank 1 comes when rank 0's function has been called often, as it is again and again in a wait. */
static int wait_long(struct peal_comm *comm, const void *context)
{
    (void)context;
    uint32_t calls = 0;
    if (peal_comm_rank(comm) == 1) {
        children_wait_done(1);
        EXPECT(peal_barrier(comm) == PEAL_OK);
        return 0;
    }
    peal_comm_set_idle(comm, count_call, &calls);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    EXPECT(calls >= CALLS);
    peal_comm_set_idle(comm, NULL, NULL);
    peal_comm_close(comm);
    peal_comm_set_idle(comm, count_call, &calls); /* ignored */
    peal_comm_set_idle(NULL, count_call, &calls);
    return 0;
}

TEST(a_wait_calls_it_again_and_again)
{
    assert_true(children_run(2, wait_long, NULL));
}

static int third_time(void *context)
{
    return ++*(uint32_t *)context == 3;
}

/* Rank 0 is interrupted while it waits for rank 1, in a collective, then in a message on a new
 * communicator; rank 1 learns of it in its next call. */
static int give_up(struct peal_comm *comm, const void *context)
{
    (void)context;
    struct peal_comm *other;
    uint32_t calls = 0;
    char byte = 0;
    EXPECT(peal_comm_dup(comm, &other) == PEAL_OK);
    EXPECT(peal_barrier(other) == PEAL_OK);
    if (peal_comm_rank(comm) == 0) {
        peal_comm_set_interrupt(comm, third_time, &calls);
        EXPECT(peal_barrier(comm) == PEAL_REVOKED);
        EXPECT(calls == 3);
        calls = 0;
        peal_comm_set_interrupt(other, third_time, &calls);
        EXPECT(peal_recv(other, &byte, 1, 1, 1, NULL, NULL) == PEAL_REVOKED);
        EXPECT(calls == 3);
        peal_comm_set_interrupt(NULL, third_time, &calls);
    } else {
        EXPECT(peal_recv(other, &byte, 1, 0, 1, NULL, NULL) == PEAL_REVOKED);
        EXPECT(peal_barrier(comm) == PEAL_REVOKED);
        EXPECT(strstr(peal_comm_error(comm), "rank 0 has revoked the communicator"));
    }
    peal_comm_close(other);
    return 0;
}

TEST(an_interrupted_wait_ends_for_all_ranks)
{
    assert_true(children_run(2, give_up, NULL));
}

int main(void)
{
    return unit_run();
}
