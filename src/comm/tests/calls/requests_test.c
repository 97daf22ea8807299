/* SPDX-License-Identifier: Apache-2.0 */
/* Several requests at once, messages in both directions, and messages that are probed first; on
 * this host or, if a machine is named, on a simulated one. */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, LARGE = 300000 };

/* A ring in which all send at once, more than mailboxes hold. */
static int shift(struct peal_comm *comm, const void *context)
{
    (void)context;
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    static int32_t sent[LARGE], got[LARGE + 1];
    for (int32_t i = 0; i < LARGE; i++)
        sent[i] = (int32_t)rank + 10 * i;
    for (uint32_t tag = 0; tag < 3; tag++) {
        uint64_t items = tag == 0 ? LARGE : tag - 1;
        struct peal_message out = {
            .data = sent, .bytes = items * 4, .rank = (rank + 1) % size, .tag = tag};
        struct peal_message in = {.data = got,
                                  .bytes = sizeof got,
                                  .rank = tag ? PEAL_ANY_SOURCE : (rank - 1 + size) % size,
                                  .tag = tag};
        EXPECT(peal_sendrecv(comm, &out, &in) == PEAL_OK);
        EXPECT(in.bytes == items * 4 && in.rank == (rank - 1 + size) % size);
        for (uint64_t i = 0; i < items; i++)
            EXPECT(got[i] == (int32_t)(in.rank + 10 * i));
    }
    struct peal_message out = {.data = sent, .bytes = 4, .rank = size, .tag = 0},
                        in = {.data = got, .bytes = 4};
    EXPECT(peal_sendrecv(comm, &out, &in) == PEAL_INVALID);
    out.struct_size = 1000; /* a program of a later version */
    EXPECT(peal_sendrecv(comm, &out, &in) == PEAL_UNSUPPORTED);
    out.struct_size = sizeof out;
    out.rank = rank;
    in.rank = size;
    EXPECT(peal_sendrecv(comm, &out, &in) == PEAL_INVALID);
    EXPECT(peal_sendrecv(comm, NULL, &in) == PEAL_INVALID);
    in.rank = rank; /* nothing of the refused messages was sent */
    in.bytes = sizeof got;
    out.bytes = 8;
    EXPECT(peal_sendrecv(comm, &out, &in) == PEAL_OK && in.bytes == 8);
    return 0;
}

/* Rank 0 probes a message before it allocates memory for it. */
static int probe(struct peal_comm *comm, const void *context)
{
    (void)context;
    uint32_t rank = peal_comm_rank(comm), sender = 99;
    uint64_t bytes = 99, got;
    static char data[LARGE];
    if (rank == 0) {
        EXPECT(peal_iprobe(comm, 1, 77, &bytes, &sender) == PEAL_PENDING && bytes == 99);
        for (uint32_t r = 1; r < RANKS; r++) {
            EXPECT(peal_probe(comm, r, 5, &bytes, &sender) == PEAL_OK);
            EXPECT(bytes == LARGE - r && sender == r);
            EXPECT(peal_probe(comm, PEAL_ANY_SOURCE, 6, NULL, &sender) == PEAL_OK);
            EXPECT(peal_iprobe(comm, sender, 6, &bytes, NULL) == PEAL_OK && bytes == sender);
            EXPECT(peal_recv(comm, data, bytes, sender, 6, &got, NULL) == PEAL_OK);
            EXPECT(got == sender && data[0] == (char)('a' + sender));
            EXPECT(peal_recv(comm, data, sizeof data, r, 5, &got, NULL) == PEAL_OK);
            EXPECT(got == LARGE - r && data[got - 1] == (char)('a' + r));
        }
        EXPECT(peal_iprobe(comm, PEAL_ANY_SOURCE, 5, &bytes, &sender) == PEAL_PENDING);
        EXPECT(peal_probe(comm, RANKS, 5, &bytes, &sender) == PEAL_INVALID);
        EXPECT(peal_probe(comm, 0, UINT32_MAX, &bytes, &sender) == PEAL_INVALID);
    } else {
        memset(data, 'a' + (int)rank, sizeof data);
        EXPECT(peal_send(comm, data, LARGE - rank, 0, 5) == PEAL_OK);
        EXPECT(peal_send(comm, data, rank, 0, 6) == PEAL_OK);
    }
    EXPECT(peal_barrier(comm) == PEAL_OK);
    return 0;
}

static int probe_of_the_dead(struct peal_comm *comm, const void *context)
{
    (void)context;
    if (peal_comm_rank(comm) == 1)
        raise(SIGKILL);
    EXPECT(peal_probe(comm, 1, 0, NULL, NULL) == PEAL_PEER_DEAD);
    return 0;
}

/* Requests of three communicators, waited for in a different order on each rank. */
static int wait_for_several(struct peal_comm *comm, const void *context)
{
    (void)context;
    enum { COMMS = 3 };
    struct peal_comm *comms[COMMS] = {comm};
    struct peal_request *requests[COMMS + 2] = {NULL};
    enum peal_status statuses[COMMS + 2];
    int64_t own = 1 + peal_comm_rank(comm), sums[COMMS] = {0};
    for (int c = 1; c < COMMS; c++)
        EXPECT(peal_comm_dup(comm, &comms[c]) == PEAL_OK);
    for (int round = 0; round < 20; round++) {
        for (int c = 0; c < COMMS; c++) {
            int at = (c + (int)peal_comm_rank(comm)) % COMMS; /* each rank in its own order */
            sums[at] = 0;
            EXPECT(peal_iallreduce(comms[at], &own, &sums[at], 1, PEAL_I64, PEAL_SUM,
                                   &requests[c + 1]) == PEAL_OK);
        }
        if (round % 3 == 0) {
            memset(statuses, 1, sizeof statuses);
            EXPECT(peal_request_wait_all(requests, COMMS + 2, statuses) == PEAL_OK);
            for (int i = 0; i < COMMS + 2; i++)
                EXPECT(statuses[i] == PEAL_OK && !requests[i]);
        } else if (round % 3 == 1) {
            enum peal_status status;
            while ((status = peal_request_test_all(requests, COMMS + 2, NULL)) == PEAL_PENDING)
                continue;
            EXPECT(status == PEAL_OK && !requests[1] && !requests[3]);
        } else {
            size_t index, seen = 0;
            for (int c = 0; c < COMMS; c++) {
                EXPECT(peal_request_wait_any(requests, COMMS + 2, &index) == PEAL_OK);
                EXPECT(index >= 1 && index <= COMMS && !requests[index]);
                seen |= (size_t)1 << index;
            }
            EXPECT(seen == 14);
            EXPECT(peal_request_wait_any(requests, COMMS + 2, &index) == PEAL_OK);
            EXPECT(index == COMMS + 2);
        }
        for (int c = 0; c < COMMS; c++)
            EXPECT(sums[c] == RANKS * (RANKS + 1) / 2);
    }
    EXPECT(peal_request_wait_all(NULL, 0, NULL) == PEAL_OK);
    EXPECT(peal_request_wait_all(NULL, 1, NULL) == PEAL_INVALID);
    EXPECT(peal_request_wait_any(requests, 1, NULL) == PEAL_INVALID);
    /* The request that fails is named, the others succeed. */
    char small, large[2] = {1, 2};
    uint32_t self = peal_comm_rank(comm);
    EXPECT(peal_irecv(comm, &small, 1, self, 1, &requests[0]) == PEAL_OK);
    EXPECT(peal_isend(comm, large, 2, self, 1, &requests[1]) == PEAL_OK);
    EXPECT(peal_request_wait_all(requests, 2, statuses) == PEAL_INVALID);
    EXPECT(statuses[0] == PEAL_INVALID && statuses[1] == PEAL_OK && !requests[0] && !requests[1]);
    for (int c = 1; c < COMMS; c++)
        peal_comm_close(comms[c]);
    return 0;
}

static void run(int (*body)(struct peal_comm *comm, const void *context), uint32_t dies)
{
    struct children group;
    children_start(&group, RANKS, body, NULL);
    assert_true(children_finish(&group, dies));
}

TEST(ranks_that_send_to_each_other_do_not_wait)
{
    run(shift, CHILDREN_NOBODY);
}

TEST(a_probe_leaves_the_message_where_it_is)
{
    run(probe, CHILDREN_NOBODY);
}

TEST(a_probe_for_the_dead_ends)
{
    run(probe_of_the_dead, 1);
}

TEST(requests_of_several_communicators_end_in_any_order)
{
    run(wait_for_several, CHILDREN_NOBODY);
}

TEST(the_same_on_a_simulated_machine)
{
    setenv("PEAL_PLATFORM", "sim:cube", 1);
    run(shift, CHILDREN_NOBODY);
    run(probe, CHILDREN_NOBODY);
    unsetenv("PEAL_PLATFORM");
}

int main(void)
{
    return unit_run();
}
