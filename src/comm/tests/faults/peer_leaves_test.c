/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that leave while others still need them: whatever the others wait for, and in whichever
 * way, they learn of it, and not by the time-out. Calls that are changed under way. */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- processes ---- */

/* Without address space the stack cannot grow either: it is grown beforehand. */
static void grow_stack(void)
{
    volatile char room[1 << 20];
    for (size_t i = 0; i < sizeof room; i += 4096)
        room[i] = 1;
}

/* Rank 1 takes part in a split until it has no address space left, and exits. */
static int split_without_one(struct peal_comm *comm, const void *context)
{
    (void)context;
    struct peal_comm *half = NULL, *smaller = NULL;
    if (peal_comm_rank(comm) == 1) {
        struct rlimit none = {1 << 20, 1 << 20};
        grow_stack();
        EXPECT(setrlimit(RLIMIT_AS, &none) == 0);
        EXPECT(peal_comm_dup(comm, &half) != PEAL_OK);
        _exit(0);
    }
    enum peal_status status = peal_comm_dup(comm, &half);
    EXPECT(status == PEAL_NO_MEMORY || status == PEAL_PEER_DEAD);
    EXPECT(strlen(peal_comm_error(comm)) > 10);
    status = peal_barrier(comm);
    EXPECT(status == PEAL_PEER_DEAD || status == PEAL_CLOSED);
    EXPECT(peal_comm_shrink(comm, &smaller) == PEAL_OK);
    EXPECT(peal_comm_size(smaller) == 2);
    EXPECT(peal_barrier(smaller) == PEAL_OK);
    peal_comm_close(smaller);
    return 0;
}

TEST(a_split_sees_a_rank_die)
{
    struct children group;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const uint32_t except = 1; /* the sanitizer itself may end it, for want of memory */
#else
    const uint32_t except = CHILDREN_NOBODY;
#endif
    children_start(&group, 3, split_without_one, NULL);
    assert_true(children_finish(&group, except));
    assert_true(children_left_nothing(group.job));
}

/* Called only while the rank waits. */
static void stop_waiting(void *comm)
{
    peal_comm_set_timeout(comm, 1);
}

/* Rank 1 is outside any call when rank 0 gives up a call, and unmaps its buffers. */
static int unmap_after_failure(struct peal_comm *comm, const void *context)
{
    enum { COUNT = 1 << 17 };
    (void)context;
    const size_t bytes = COUNT * sizeof(float);
    struct peal_comm *smaller = NULL;
    float *x = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    float *y = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(x != MAP_FAILED && y != MAP_FAILED);
    for (uint32_t i = 0; i < COUNT; i++)
        x[i] = 1;
    EXPECT(peal_allreduce(comm, x, y, COUNT, PEAL_F32, PEAL_SUM) ==
           PEAL_OK); /* they have what it needs */
    if (peal_comm_rank(comm) == 0) {
        peal_comm_set_idle(comm, stop_waiting, comm);
        EXPECT(peal_allreduce(comm, x, y, COUNT, PEAL_F32, PEAL_SUM) == PEAL_TIMEOUT);
        peal_comm_set_timeout(comm, CHILDREN_TIMEOUT_MS);
        EXPECT(munmap(x, bytes) == 0 && munmap(y, bytes) == 0);
        children_say_done();
    } else {
        children_wait_done(1);
        /* What rank 0 has sent may be all that this rank needs. */
        enum peal_status status = peal_allreduce(comm, x, y, COUNT, PEAL_F32, PEAL_SUM);
        for (uint32_t i = 0; i < COUNT && status == PEAL_OK; i++)
            EXPECT(y[i] == 2);
    }
    EXPECT(peal_comm_shrink(comm, &smaller) == PEAL_OK);
    EXPECT(peal_comm_size(smaller) == 2);
    EXPECT(peal_barrier(smaller) == PEAL_OK);
    peal_comm_close(smaller);
    return 0;
}

TEST(buffers_are_the_callers_after_a_failure)
{
    assert_true(children_run(2, unmap_after_failure, NULL));
    setenv("PEAL_NET_CRYPT", "1", 1);
    assert_true(children_run(2, unmap_after_failure, NULL));
    unsetenv("PEAL_NET_CRYPT");
}

/* Rank 0 never waits: it tests, or waits for zero time. */
static int test_until_told(struct peal_comm *comm, const void *context)
{
    bool tests = *(const bool *)context;
    if (peal_comm_rank(comm) == 1)
        _exit(0);
    struct peal_request *request;
    enum peal_status status = peal_ibarrier(comm, &request);
    EXPECT(status == PEAL_OK);
    do
        status = tests ? peal_request_test(request) : peal_request_wait_for(request, 0, NULL, NULL);
    while (status == PEAL_PENDING);
    EXPECT(status == PEAL_PEER_DEAD);
    EXPECT(!strstr(peal_comm_error(comm), "has not answered")); /* by its end, not by silence */
    return 0;
}

TEST(who_only_tests_sees_a_rank_die)
{
    for (int i = 0; i < 2; i++) {
        bool tests = i == 0;
        assert_true(children_run(2, test_until_told, &tests));
    }
}

/* Rank 0 sends in a sub-communicator, closes it, and exits. Rank 1 finds it dead in the parent, and
 * then receives: no rank needs the slots that it gives back. */
static int receive_from_the_dead(struct peal_comm *comm, const void *context)
{
    static const char text[] = "kernel pass(in x: T[n], out y: T[n]) {\n"
                               "    let got = x\n"
                               "    if rank == 0 { send x to 1 } else { got = recv from 0 }\n"
                               "    y = got\n"
                               "}\n";
    const int *ends = context;
    int32_t x[4] = {1, 2, 3, 4}, y[4] = {0};
    char byte;
    struct peal_comm *part = NULL;
    struct peal_user_kernel *kernel = NULL;
    struct peal_arg args[2] = {{.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
                               {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y}};
    EXPECT(peal_comm_dup(comm, &part) == PEAL_OK);
    EXPECT(peal_user_kernel_load(part, text, NULL, &kernel) == PEAL_OK);
    /* Once on all ranks, because the first call of a kind synchronises them. */
    EXPECT(peal_user_kernel_launch(kernel, PEAL_I32, args, 2, NULL, 0) == PEAL_OK);
    if (peal_comm_rank(comm) == 1) {
        close(ends[1]);
        EXPECT(read(ends[0], &byte, 1) == 0);
        EXPECT(peal_barrier(comm) == PEAL_PEER_DEAD);
        memset(y, 0, sizeof y);
    }
    EXPECT(peal_user_kernel_launch(kernel, PEAL_I32, args, 2, NULL, 0) == PEAL_OK);
    EXPECT(y[0] == 1 && y[3] == 4);
    peal_user_kernel_free(kernel);
    peal_comm_close(part);
    if (peal_comm_rank(comm) == 0)
        _exit(0);
    return 0;
}

TEST(what_the_dead_have_sent_is_received)
{
    struct children group;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    children_start(&group, 2, receive_from_the_dead, ends);
    close(ends[1]);
    assert_true(children_finish(&group, CHILDREN_NOBODY));
    close(ends[0]);
}

/* A rank closes a communicator that it has not used, before some others have made it, or have ever been connected to it. */
struct leaving {
    uint32_t rank;
    bool message; /* the others wait for a message of it */
};

static int leave_unused(struct peal_comm *comm, const void *context)
{
    const struct leaving *leaving = context;
    struct peal_comm *part = NULL;
    char byte;
    EXPECT(peal_comm_dup(comm, &part) == PEAL_OK);
    if (peal_comm_rank(comm) != leaving->rank) {
        enum peal_status status = leaving->message
                                      ? peal_recv(part, &byte, 1, leaving->rank, 1, NULL, NULL)
                                      : peal_barrier(part);
        EXPECT(status == PEAL_MISMATCH);
        EXPECT(strstr(peal_comm_error(part), "has closed the communicator before"));
    }
    peal_comm_close(part);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    return 0;
}

TEST(who_leaves_unconnected_is_not_waited_for)
{
    for (uint32_t i = 0; i < 4; i++) {
        struct leaving leaving = {i < 2 ? 0 : 3, i % 2 == 0};
        assert_true(children_run(4, leave_unused, &leaving));
    }
}

/* ---- closed too early: one thread has all communicators ---- */

static void open_both(struct peal_comm *comms[2])
{
    assert_int_equal(peal_comm_open_threads(2, comms), PEAL_OK);
}

TEST(a_dropped_request_fails_the_peers)
{
    struct peal_comm *comms[2];
    struct peal_request *kept, *dropped;
    open_both(comms);
    assert_int_equal(peal_ibarrier(comms[1], &dropped), PEAL_OK);
    peal_comm_close(comms[1]);
    assert_int_equal(peal_request_wait(dropped), PEAL_CLOSED);
    /* Rank 1 has done its part of the first call; it does not make the second. */
    enum peal_status status = peal_ibarrier(comms[0], &kept);
    if (status == PEAL_OK)
        status = peal_request_wait(kept);
    assert_true(status == PEAL_OK || status == PEAL_MISMATCH);
    peal_comm_close(comms[0]);

    int64_t x[4] = {1, 2, 3, 4}, y[4];
    open_both(comms);
    assert_int_equal(peal_ireduce(comms[0], x, NULL, 4, PEAL_I64, PEAL_SUM, 1, &kept), PEAL_OK);
    assert_int_equal(peal_request_test(kept), PEAL_PENDING);
    peal_comm_close(comms[1]);
    assert_int_equal(peal_request_wait(kept), PEAL_MISMATCH);
    peal_comm_close(comms[0]);

    /* Begun and dropped before its root has what it waits for, with a kernel in which other ranks
     * wait for the root. */
    open_both(comms);
    for (int i = 0; i < 2; i++)
        assert_int_equal(peal_comm_set_algo(comms[i], "reduce", "mesh"), PEAL_OK);
    assert_int_equal(peal_ireduce(comms[1], x, y, 4, PEAL_I64, PEAL_SUM, 1, &dropped), PEAL_OK);
    peal_comm_close(comms[1]);
    assert_int_equal(peal_request_wait(dropped), PEAL_CLOSED);
    assert_int_equal(peal_ireduce(comms[0], x, NULL, 4, PEAL_I64, PEAL_SUM, 1, &kept), PEAL_OK);
    assert_int_equal(peal_request_wait(kept), PEAL_MISMATCH);
    assert_non_null(strstr(peal_comm_error(comms[0]), "and dropped call 1"));
    peal_comm_close(comms[0]);
}

TEST(a_message_of_nobody_is_not_waited_for)
{
    static const uint32_t sources[] = {1, PEAL_ANY_SOURCE};
    for (size_t i = 0; i < 2; i++) {
        struct peal_comm *comms[2];
        int32_t word = 7, got = 0;
        uint32_t from = 9;
        open_both(comms);
        assert_int_equal(peal_send(comms[1], &word, 4, 0, 3), PEAL_OK);
        peal_comm_close(comms[1]);
        /* The message that was sent before still arrives. */
        assert_int_equal(peal_recv(comms[0], &got, 4, sources[i], 3, NULL, &from), PEAL_OK);
        assert_true(got == 7 && from == 1);
        assert_int_equal(peal_recv(comms[0], &got, 4, sources[i], 3, NULL, NULL), PEAL_MISMATCH);
        assert_non_null(strstr(peal_comm_error(comms[0]), "before a message"));
        peal_comm_close(comms[0]);
    }
}

/* ---- changed or mismatched calls under way ---- */

static void end_both(struct peal_request *requests[2], enum peal_status status[2])
{
    status[0] = status[1] = PEAL_PENDING;
    while (status[0] == PEAL_PENDING || status[1] == PEAL_PENDING) {
        for (int r = 0; r < 2; r++) {
            if (status[r] == PEAL_PENDING)
                status[r] = peal_request_test(requests[r]);
        }
    }
}

TEST(an_algorithm_is_the_one_of_the_start)
{
    struct peal_comm *comms[2];
    struct peal_request *requests[2];
    enum peal_status status[2];
    int32_t x[2][600], y[2][600];
    uint64_t counts[2] = {300, 300};
    struct peal_blocks blocks = {counts, NULL};
    open_both(comms);
    for (int turn = 0; turn < 4; turn++) {
        for (int r = 0; r < 2; r++) {
            for (int i = 0; i < 600; i++)
                x[r][i] = 1000 * r + i;
            assert_int_equal(
                peal_iall_to_all_v(comms[r], x[r], &blocks, y[r], &blocks, PEAL_I32, &requests[r]),
                PEAL_OK);
        }
        const char *algo = turn % 2 ? "rows" : "send";
        /* Rank 1 has exchanged its counts by now, rank 0 has not. */
        assert_int_equal(peal_comm_set_algo(comms[0], "all_to_all", algo), PEAL_OK);
        end_both(requests, status);
        assert_int_equal(peal_comm_set_algo(comms[1], "all_to_all", algo), PEAL_OK);
        for (int r = 0; r < 2; r++) {
            assert_int_equal(status[r], PEAL_OK);
            for (int i = 0; i < 600; i++)
                assert_int_equal(y[r][i], 1000 * (i / 300) + 300 * r + i % 300);
        }
    }
    peal_comm_close(comms[0]);
    peal_comm_close(comms[1]);
}

/* Rank 1 broadcasts while rank 0 expects its part of a scatter: the data arrives where rank 0 has
 * its cells, and must not be taken for them. */
TEST(data_of_another_call_is_no_signal)
{
    for (uint64_t count = 1; count < 3000; count += 1 + count / 4) {
        struct peal_comm *comms[2];
        struct peal_request *requests[2];
        enum peal_status status[2];
        uint16_t x[3000], y[3000] = {0};
        open_both(comms);
        for (int i = 0; i < 3000; i++)
            x[i] = (uint16_t)(0x3c00 + i);
        assert_int_equal(peal_ibroadcast(comms[1], x, count, PEAL_F16, 1, &requests[1]), PEAL_OK);
        assert_int_equal(peal_iscatter(comms[0], NULL, y, 42, PEAL_F16, 1, &requests[0]), PEAL_OK);
        while ((status[0] = peal_request_test(requests[0])) == PEAL_PENDING) {
        }
        if (status[0] == PEAL_OK)
            fail_msg("a scatter got a broadcast of %d elements", (int)count);
        assert_int_equal(status[0], PEAL_MISMATCH);
        (void)peal_request_wait(requests[1]);
        peal_comm_close(comms[0]);
        peal_comm_close(comms[1]);
    }
}

static void wait_both(struct peal_request *requests[2])
{
    enum peal_status status[2] = {PEAL_PENDING, PEAL_PENDING};
    while (status[0] == PEAL_PENDING || status[1] == PEAL_PENDING) {
        for (int r = 0; r < 2; r++) {
            if (status[r] == PEAL_PENDING)
                status[r] = peal_request_test(requests[r]);
        }
    }
    assert_int_equal(status[0], PEAL_OK);
    assert_int_equal(status[1], PEAL_OK);
}

/* A root does not wait: it has left the call that another rank did not make, and the two wait for
 * each other in different calls of different kinds. */
TEST(a_mismatch_is_found_after_it_was_passed)
{
    struct peal_comm *comms[2];
    struct peal_request *requests[3];
    int64_t x[8] = {0}, y[8];
    open_both(comms);
    for (int i = 0; i < 4; i++) { /* the first call of a kind is agreed on; these come later */
        struct peal_request *warm[2];
        for (int r = 0; r < 2; r++)
            assert_int_equal(peal_ibroadcast(comms[r], x, 4, PEAL_I64, 0, &warm[r]), PEAL_OK);
        wait_both(warm);
    }
    assert_int_equal(peal_iallreduce(comms[1], x, y, 3, PEAL_I64, PEAL_SUM, &requests[1]), PEAL_OK);
    assert_int_equal(peal_ibroadcast(comms[0], x, 4, PEAL_I64, 0, &requests[0]), PEAL_OK);
    assert_int_equal(peal_request_wait(requests[0]), PEAL_OK);
    assert_int_equal(peal_ibarrier(comms[0], &requests[2]), PEAL_OK);
    assert_int_equal(peal_request_wait(requests[2]), PEAL_MISMATCH);
    assert_int_equal(peal_request_wait(requests[1]), PEAL_MISMATCH);
    peal_comm_close(comms[0]);
    peal_comm_close(comms[1]);
}

static void *free_other(void *context)
{
    struct peal_comm *comm = context;
    void *memory[2];
    enum peal_status made = peal_symmetric_alloc(comm, 100, &memory[0]);
    if (made == PEAL_OK)
        made = peal_symmetric_alloc(comm, 100, &memory[1]);
    enum peal_status first = peal_symmetric_free(comm, memory[peal_comm_rank(comm)]);
    enum peal_status second = peal_symmetric_free(comm, memory[0]);
    return made == PEAL_OK && first == PEAL_MISMATCH && second == PEAL_OK ? NULL : context;
}

TEST(memory_is_freed_by_all_or_none)
{
    struct peal_comm *comms[2];
    pthread_t thread;
    void *wrong;
    open_both(comms);
    pthread_create(&thread, NULL, free_other, comms[1]);
    assert_null(free_other(comms[0]));
    pthread_join(thread, &wrong);
    assert_null(wrong);
    peal_comm_close(comms[0]);
    peal_comm_close(comms[1]);
}

int main(void)
{
    setenv("PEAL_WINDOW_POOL", "64K", 1);
    return unit_run();
}
