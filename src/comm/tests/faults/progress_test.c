/* SPDX-License-Identifier: Apache-2.0 */
/* What programs expect of requests and failures: a blocking call advances all requests of its
 * thread, starting is local, a communicator can be revoked from any thread, and waits warn before
 * they end. */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 100000, MANY = 40 };

static void run(uint32_t ranks, children_body *body, const void *context)
{
    assert_true(children_run(ranks, body, context));
}

/* One rank waits for the request first, the other makes the blocking call on the other
 * communicator. */
static int cross(struct peal_comm *comm, const void *context)
{
    const bool *messages = context;
    static float x[COUNT], y[COUNT];
    struct peal_comm *other;
    struct peal_request *request;
    float one = 1, sum = 0;
    uint32_t rank = peal_comm_rank(comm);
    EXPECT(peal_comm_dup(comm, &other) == PEAL_OK);
    if (!*messages)
        EXPECT(peal_iallreduce(comm, x, y, COUNT, PEAL_F32, PEAL_SUM, &request) == PEAL_OK);
    else if (rank == 0)
        EXPECT(peal_isend(comm, x, sizeof x, 1, 3, &request) == PEAL_OK);
    else
        EXPECT(peal_irecv(comm, y, sizeof y, 0, 3, &request) == PEAL_OK);
    if (rank != 0)
        EXPECT(peal_request_wait(request) == PEAL_OK);
    EXPECT(peal_allreduce(other, &one, &sum, 1, PEAL_F32, PEAL_SUM) == PEAL_OK);
    EXPECT(sum == (float)peal_comm_size(comm));
    if (rank == 0)
        EXPECT(peal_request_wait(request) == PEAL_OK);
    peal_comm_close(other);
    return 0;
}

TEST(a_blocking_call_moves_all_communicators)
{
    run(2, cross, &(bool){false});
    run(3, cross, &(bool){false});
    run(2, cross, &(bool){true});
}

/* With several hosts, the first two ranks are on one. Rank 0 leaves an allgather in which rank 2
 * reads its memory, and waits for rank 1 in a sub-communicator. Rank 1 gets there once rank 2 has
 * left the allgather. */
static int wait_in_a_part(struct peal_comm *comm, const void *context)
{
    (void)context;
    enum { ROUNDS = 20 };
    struct peal_comm *part;
    uint32_t rank = peal_comm_rank(comm), all[3];
    char byte = 7;
    EXPECT(peal_comm_split(comm, rank < 2 ? 0 : 1, 0, &part) == PEAL_OK);
    for (int i = 0; i < ROUNDS; i++) {
        EXPECT(peal_allgather(comm, &rank, all, 1, PEAL_U32) == PEAL_OK);
        EXPECT(all[0] == 0 && all[1] == 1 && all[2] == 2);
        if (rank == 1)
            EXPECT(peal_recv(comm, &byte, 1, 2, 1, NULL, NULL) == PEAL_OK);
        if (rank == 2)
            EXPECT(peal_send(comm, &byte, 1, 1, 1) == PEAL_OK);
        EXPECT(peal_barrier(part) == PEAL_OK);
    }
    peal_comm_close(part);
    return 0;
}

TEST(a_call_of_one_host_serves_other_hosts)
{
    setenv("PEAL_ALGO", "allgather=central", 1);
    run(3, wait_in_a_part, NULL);
    unsetenv("PEAL_ALGO");
}

/* Many requests are started before a message that the peer awaits first. */
static int start_many(struct peal_comm *comm, const void *context)
{
    (void)context;
    struct peal_request *requests[MANY];
    int32_t x[MANY], y[MANY];
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    char byte = 7;
    if (rank != 0)
        EXPECT(peal_recv(comm, &byte, 1, 0, 1, NULL, NULL) == PEAL_OK);
    for (int i = 0; i < MANY; i++) {
        x[i] = i + (int32_t)rank;
        EXPECT(peal_iallreduce(comm, &x[i], &y[i], 1, PEAL_I32, PEAL_SUM, &requests[i]) == PEAL_OK);
    }
    uint32_t receivers_end = rank == 0 ? size : 1;
    for (uint32_t r = 1; r < receivers_end; r++)
        EXPECT(peal_send(comm, &byte, 1, r, 1) == PEAL_OK);
    for (int i = MANY; i-- > 0;)
        EXPECT(peal_request_wait(requests[i]) == PEAL_OK);
    for (int i = 0; i < MANY; i++)
        EXPECT(y[i] == (int32_t)(size * (uint32_t)i + size * (size - 1) / 2));
    return 0;
}

TEST(starting_is_local)
{
    run(2, start_many, NULL);
    run(4, start_many, NULL);
}

/* A communicator is handed to another thread, with requests under way on both. */
struct handed {
    struct peal_comm *comm;
    enum peal_status status;
};

static void *finish_handed(void *argument)
{
    struct handed *handed = argument;
    int32_t one = 1, sum = 0;
    for (int i = 0; i < 200; i++) {
        struct peal_request *request;
        handed->status = peal_iallreduce(handed->comm, &one, &sum, 1, PEAL_I32, PEAL_SUM, &request);
        if (handed->status == PEAL_OK)
            handed->status = peal_request_wait(request);
        if (handed->status != PEAL_OK)
            break;
    }
    return NULL;
}

static int hand_over(struct peal_comm *comm, const void *context)
{
    (void)context;
    struct handed handed = {.status = PEAL_OK};
    struct peal_request *request;
    int32_t one = 1, sum = 0;
    EXPECT(peal_comm_dup(comm, &handed.comm) == PEAL_OK);
    EXPECT(peal_iallreduce(handed.comm, &one, &sum, 1, PEAL_I32, PEAL_SUM, &request) == PEAL_OK);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    EXPECT(peal_request_wait(request) == PEAL_OK);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, finish_handed, &handed) == 0);
    for (int i = 0; i < 200; i++) {
        EXPECT(peal_iallreduce(comm, &one, &sum, 1, PEAL_I32, PEAL_SUM, &request) == PEAL_OK);
        EXPECT(peal_barrier(comm) == PEAL_OK);
        EXPECT(peal_request_wait(request) == PEAL_OK);
    }
    pthread_join(thread, NULL);
    EXPECT(handed.status == PEAL_OK);
    peal_comm_close(handed.comm);
    return 0;
}

TEST(a_communicator_may_be_handed_on)
{
    run(2, hand_over, NULL);
}

/* ---- revoke ---- */

/* Rank 0 revokes and shrinks while rank 1 is in no call: rank 1 learns of it in its next call. */
static int revoke_from_outside(struct peal_comm *comm, const void *context)
{
    (void)context;
    struct peal_comm *again = NULL;
    if (peal_comm_rank(comm) == 0) {
        peal_comm_revoke(comm);
        children_say_done();
    } else {
        children_wait_done(1);
        EXPECT(peal_barrier(comm) == PEAL_REVOKED);
    }
    EXPECT(peal_comm_shrink(comm, &again) == PEAL_OK);
    EXPECT(peal_comm_size(again) == 2);
    EXPECT(peal_barrier(again) == PEAL_OK);
    peal_comm_close(again);
    return 0;
}

TEST(a_rank_outside_hears_in_its_next_call)
{
    run(2, revoke_from_outside, NULL);
}

static void *revoke_soon(void *comm)
{
    children_wait_done(1);
    peal_comm_revoke(comm);
    return NULL;
}

static void say_once(void *context)
{
    bool *said = context;
    if (!*said)
        children_say_done();
    *said = true;
}

/* Rank 0 waits for a message that never comes; its other thread revokes. */
static int end_by_thread(struct peal_comm *comm, const void *context)
{
    (void)context;
    char byte;
    uint32_t rank = peal_comm_rank(comm);
    pthread_t thread;
    bool said = false;
    if (rank == 0) {
        EXPECT(pthread_create(&thread, NULL, revoke_soon, comm) == 0);
        peal_comm_set_idle(comm, say_once, &said); /* when it waits */
        EXPECT(peal_recv(comm, &byte, 1, 1, 1, NULL, NULL) == PEAL_REVOKED);
        pthread_join(thread, NULL);
    } else {
        EXPECT(peal_barrier(comm) == PEAL_REVOKED);
    }
    EXPECT(strstr(peal_comm_error(comm), "rank 0 has revoked the communicator"));
    EXPECT(peal_barrier(comm) == PEAL_REVOKED);
    struct peal_comm *left;
    EXPECT(peal_comm_shrink(comm, &left) == PEAL_OK);
    EXPECT(peal_comm_size(left) == peal_comm_size(comm));
    EXPECT(peal_barrier(left) == PEAL_OK);
    peal_comm_close(left);
    return 0;
}

TEST(any_thread_may_revoke)
{
    peal_comm_revoke(NULL);
    run(3, end_by_thread, NULL);
}

/* ---- warnings ---- */

TEST(waits_warn_before_they_end)
{
    char path[] = "/tmp/peal-warn-XXXXXX", text[4096] = "";
    int file = mkstemp(path), saved = dup(2);
    assert_true(file >= 0 && saved >= 0);
    setenv("PEAL_WARN_MS", "100", 1);
    dup2(file, 2);
    pid_t pids[2];
    for (uint32_t rank = 0; rank < 2; rank++) {
        pids[rank] = fork();
        if (pids[rank] != 0)
            continue;
        struct peal_open options = {
            .size = 2, .rank = rank, .job = path, .timeout_ms = CHILDREN_TIMEOUT_MS};
        struct peal_comm *comm;
        if (peal_comm_open(&options, &comm) != PEAL_OK)
            _exit(1);
        char byte;
        while (rank == 1 && pread(file, &byte, 1, 0) != 1)
            children_pause_us(1000); /* arrives after rank 0 has warned */
        _exit(peal_barrier(comm) == PEAL_OK ? 0 : 2);
    }
    dup2(saved, 2);
    for (uint32_t rank = 0; rank < 2; rank++) {
        int status;
        assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
        assert_int_equal(status, 0);
    }
    unsetenv("PEAL_WARN_MS");
    assert_true(pread(file, text, sizeof text - 1, 0) > 0);
    unlink(path);
    assert_non_null(strstr(text, "warning: no progress for"));
    assert_non_null(strstr(text, "rank 1"));
}

/* Called on rank 0 before it checks its peer: lets the peer make its call and exit, and waits for
 * its exit. */
struct leaving {
    int go[2];
    int process; /* a descriptor of the peer's process */
};

static int let_peer_leave(void *context)
{
    struct leaving *leaving = context;
    struct pollfd end = {.fd = leaving->process, .events = POLLIN};
    if (leaving->go[1] >= 0 && write(leaving->go[1], "", 1) == 1)
        close(leaving->go[1]);
    leaving->go[1] = -1;
    return poll(&end, 1, -1) != 1;
}

enum { BLOCKING, REQUEST, MESSAGE, KINDS };

/* Sums in a blocking call or by a request, or passes rank 1's number to rank 0. */
static enum peal_status call_once(struct peal_comm *comm, int kind, int32_t *out)
{
    int32_t own = (int32_t)peal_comm_rank(comm);
    struct peal_request *request;
    enum peal_status status;
    if (kind == BLOCKING)
        return peal_allreduce(comm, &own, out, 1, PEAL_I32, PEAL_SUM);
    if (kind == MESSAGE)
        return own == 0 ? peal_recv(comm, out, sizeof *out, 1, 1, NULL, NULL)
                        : peal_send(comm, &own, sizeof own, 0, 1);
    status = peal_iallreduce(comm, &own, out, 1, PEAL_I32, PEAL_SUM, &request);
    return status == PEAL_OK ? peal_request_wait(request) : status;
}

static int answer_and_leave(struct peal_comm *comm, const void *context)
{
    struct leaving leaving = {.process = -1};
    int kind = *(const int *)context;
    int32_t pid = (int32_t)getpid(), sum = 0;
    char byte;
    memcpy(leaving.go, (const int *)context + 1, sizeof leaving.go);
    for (
        int i = 0; i < 8;
        i++) /* the first call of a kind synchronises the ranks, and so do the first few requests */
        EXPECT(call_once(comm, kind, &sum) == PEAL_OK);
    EXPECT(peal_broadcast(comm, &pid, 1, PEAL_I32, 1) == PEAL_OK);
    if (peal_comm_rank(comm) == 1) {
        EXPECT(read(leaving.go[0], &byte, 1) == 1);
        EXPECT(call_once(comm, kind, &sum) == PEAL_OK);
        _exit(0);
    }
    leaving.process = (int)syscall(SYS_pidfd_open, pid, 0);
    EXPECT(leaving.process >= 0);
    peal_comm_set_interrupt(comm, let_peer_leave, &leaving);
    sum = 0;
    EXPECT(call_once(comm, kind, &sum) == PEAL_OK);
    EXPECT(sum == 1);
    EXPECT(leaving.go[1] < 0); /* it had to wait */
    EXPECT(peal_barrier(comm) == PEAL_PEER_DEAD);
    return 0;
}

TEST(a_peer_that_has_answered_may_end)
{
    for (int kind = 0; kind < KINDS; kind++) {
        int given[3] = {kind};
        assert_int_equal(pipe(given + 1), 0);
        assert_true(children_run(2, answer_and_leave, given));
        close(given[1]);
        close(given[2]);
    }
}

/* Rank 1 passes its number on, by a broadcast or a message; rank 0 takes it. */
static enum peal_status pass_on(struct peal_comm *comm, int kind, int32_t *out)
{
    int32_t own = (int32_t)peal_comm_rank(comm);
    struct peal_request *request;
    enum peal_status status;
    *out = own;
    if (kind == BLOCKING)
        return peal_broadcast(comm, out, 1, PEAL_I32, 1);
    if (kind == MESSAGE)
        return call_once(comm, kind, out);
    status = peal_ibroadcast(comm, out, 1, PEAL_I32, 1, &request);
    return status == PEAL_OK ? peal_request_wait(request) : status;
}

/* Between two polls of rank 0, rank 1 does its part, then rank 2 gives up for another reason. */
static void let_others_act(void *context)
{
    bool *done = context;
    if (*done)
        return;
    *done = true;
    children_say_done();
    children_wait_done(3);
}

static int have_all_when_another_gives_up(struct peal_comm *comm, const void *context)
{
    int kind = *(const int *)context;
    int32_t got = -1;
    bool done = false;
    EXPECT(peal_comm_set_algo(comm, "broadcast", "direct") == PEAL_OK);
    for (int i = 0; i < 8; i++) {
        if (kind != MESSAGE || peal_comm_rank(comm) < 2)
            EXPECT(pass_on(comm, kind, &got) == PEAL_OK);
        EXPECT(peal_barrier(comm) == PEAL_OK);
    }
    if (peal_comm_rank(comm) == 0) {
        peal_comm_set_idle(comm, let_others_act, &done);
        EXPECT(pass_on(comm, kind, &got) == PEAL_OK);
        EXPECT(done && got == 1);
        /* Between hosts the report may come while this call waits. */
        enum peal_status next = peal_barrier(comm);
        EXPECT(next == PEAL_CLOSED || next == PEAL_TIMEOUT);
    } else if (peal_comm_rank(comm) == 1) {
        children_wait_done(1);
        EXPECT(pass_on(comm, kind, &got) == PEAL_OK);
        children_say_done();
        children_wait_done(3);
    } else {
        children_wait_done(2);
        peal_comm_set_timeout(comm, 1);
        EXPECT(peal_recv(comm, &got, sizeof got, 0, 9, NULL, NULL) == PEAL_TIMEOUT);
        children_say_done();
    }
    return 0;
}

TEST(a_rank_that_has_all_is_not_failed_by_others)
{
    for (int kind = 0; kind < KINDS; kind++) {
        assert_true(children_run(3, have_all_when_another_gives_up, &kind));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_has_all_is_not_failed_by_others),
        cmocka_unit_test(a_peer_that_has_answered_may_end),
        cmocka_unit_test(a_blocking_call_moves_all_communicators),
        cmocka_unit_test(a_call_of_one_host_serves_other_hosts),
        cmocka_unit_test(starting_is_local),
        cmocka_unit_test(a_communicator_may_be_handed_on),
        cmocka_unit_test(a_rank_outside_hears_in_its_next_call),
        cmocka_unit_test(any_thread_may_revoke),
        cmocka_unit_test(waits_warn_before_they_end)};
    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
