/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between processes: waits in slices, many messages under way at once. */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <signal.h>
#include <stdint.h>

enum silence { SPEAKS_LATE, NEVER_SPEAKS, DIES };

/* The longest wait that can be requested is not cut to zero: the time-out comes first. */
static int wait_for_ever(struct peal_comm *comm, const void *context)
{
    static const uint64_t times[] = {UINT64_MAX, UINT64_MAX / 1000, UINT64_MAX / 1000 - 1};
    struct peal_request *request = NULL;
    char byte;
    peal_comm_set_timeout(comm, 100);
    EXPECT(peal_irecv(comm, &byte, 1, PEAL_ANY_SOURCE, 0, &request) == PEAL_OK);
    EXPECT(peal_request_wait_for(request, times[*(const int *)context], NULL, NULL) ==
           PEAL_TIMEOUT);
    return 0;
}

TEST(a_wait_for_any_time_ends_with_the_time_out)
{
    for (int i = 0; i < 3; i++) {
        assert_true(children_run(1, wait_for_ever, &i));
    }
}

/* Rank 0 receives in slices; rank 1 sends late, or never, or has exited. */
static int receive_in_slices(struct peal_comm *comm, const void *context)
{
    enum silence kind = *(const enum silence *)context;
    int64_t value = 77, got_value = 0;
    enum { SLICES = 5 };
    if (peal_comm_rank(comm) == 1) {
        if (kind == DIES)
            raise(SIGKILL);
        children_wait_done(1); /* a few slices have passed, or all of the time */
        if (kind == SPEAKS_LATE)
            EXPECT(peal_send(comm, &value, sizeof value, 0, 3) == PEAL_OK);
        return 0;
    }
    if (kind == NEVER_SPEAKS)
        peal_comm_set_timeout(comm, 200);
    struct peal_request *request = NULL;
    uint64_t got = 0, slices = 0;
    uint32_t sender = 9;
    EXPECT(peal_irecv(comm, &got_value, sizeof got_value, PEAL_ANY_SOURCE, 3, &request) == PEAL_OK);
    enum peal_status status = peal_request_wait_for(request, 0, &got, &sender);
    for (; status == PEAL_PENDING; slices++) {
        if (kind == SPEAKS_LATE && slices == SLICES)
            children_say_done();
        status = peal_request_wait_for(request, 500, &got, &sender);
    }
    if (kind == SPEAKS_LATE) {
        EXPECT(status == PEAL_OK && got == sizeof value && got_value == value && sender == 1);
        EXPECT(slices > SLICES);
    } else {
        EXPECT(status == (kind == DIES ? PEAL_PEER_DEAD : PEAL_TIMEOUT));
        children_say_done();
    }
    return 0;
}

TEST(waits_in_slices_see_messages_deaths_and_time_outs)
{
    for (int kind = SPEAKS_LATE; kind <= DIES; kind++) {
        struct children group;
        enum silence copy = (enum silence)kind;
        children_start(&group, 2, receive_in_slices, &copy);
        if (!children_finish(&group, kind == DIES ? 1 : CHILDREN_NOBODY))
            fail_msg("kind %d", kind);
    }
}

/* Many messages at once to one rank and back, with different tags, larger than its mailbox. */
static int send_many_at_once(struct peal_comm *comm, const void *context)
{
    enum { MANY = 6, ITEMS = 200000 };
    (void)context;
    uint32_t rank = peal_comm_rank(comm), peer = 1 - rank;
    static int32_t out[MANY][ITEMS], in[MANY][ITEMS];
    struct peal_request *sends[MANY], *recvs[MANY];
    for (int32_t m = 0; m < MANY; m++) {
        for (int32_t i = 0; i < ITEMS; i++)
            out[m][i] = (int32_t)rank * 1000000 + m * ITEMS + i;
        uint64_t bytes = m % 2 ? 4 : sizeof out[m];
        EXPECT(peal_isend(comm, out[m], bytes, peer, (uint32_t)m, &sends[m]) == PEAL_OK);
    }
    for (int m = MANY - 1; m >= 0; m--)
        EXPECT(peal_irecv(comm, in[m], sizeof in[m], peer, (uint32_t)m, &recvs[m]) == PEAL_OK);
    for (int m = 0; m < MANY; m++) {
        uint64_t got = 0;
        EXPECT(peal_request_wait_recv(recvs[m], &got, NULL) == PEAL_OK);
        EXPECT(got == (m % 2 ? 4 : sizeof out[m]));
        for (int32_t i = 0; i < (m % 2 ? 1 : ITEMS); i++)
            EXPECT(in[m][i] == (int32_t)peer * 1000000 + m * ITEMS + i);
        EXPECT(peal_request_wait(sends[m]) == PEAL_OK);
    }
    return 0;
}

TEST(messages_under_way_at_once_stay_whole)
{
    for (int i = 0; i < 3; i++) {
        assert_true(children_run(2, send_many_at_once, NULL));
    }
}

int main(void)
{
    return unit_run();
}
