/* SPDX-License-Identifier: Apache-2.0 */
/* A rank is stopped before it reads a peer's memory, for longer than the peer waits. The peer's
 * call times out, and the peer uses its memory for something else. When the rank continues, the
 * peer's memory must not change, and the rank's call must fail. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/tests/unit.h"

#include <peal/peal.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1 << 18, NOT_USED = 0xEE, LONG_MS = 600000 };
enum collective { ALLREDUCE, BROADCAST, ALLGATHER, ALL_TO_ALL, REDUCE_SCATTER, COLLECTIVES };

static const char *const names[] = {"allreduce", "broadcast", "allgather", "all_to_all",
                                    "reduce_scatter"};
/* The algorithm that reads peers' memory, where it is not the usual one. */
static const char *const reads_by[] = {"read", "read", NULL, NULL, NULL};

/* Shared with the ranks. */
struct board {
    _Atomic int told;    /* rank 0's call has failed, its memory is used for something else */
    _Atomic int resumed; /* rank 1's call has ended */
    _Atomic int stopped;
    int status[2];
    uint64_t changed; /* bytes of rank 0's memory that have changed afterwards */
    uint64_t wrong;   /* wrong elements of rank 1's result */
};
static struct board *board;

/* Rank 0 waits as long as rank 1 needs to come to its read, and then no longer. */
static void stop_waiting(void *comm)
{
    if (atomic_load(&board->stopped))
        peal_comm_set_timeout(comm, 1);
}

/* The reads that are left until this process stops; 0: it does not. */
static int reads_left;

/* In place of the C library's, for the library under test too. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): its names are reserved. */
PEAL_API ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long nhere,
                                  const struct iovec *there, unsigned long nthere,
                                  unsigned long flags)
{
    if (reads_left > 0 && --reads_left == 0) {
        atomic_store(&board->stopped, 1);
        raise(SIGSTOP);
    }
    return syscall(SYS_process_vm_readv, pid, here, nhere, there, nthere, flags);
}

static void wait_for(const _Atomic int *word)
{
    while (atomic_load(word) == 0)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static enum peal_status call(struct peal_comm *comm, enum collective collective, float *x, float *y)
{
    switch (collective) {
    case ALLREDUCE:
        return peal_allreduce(comm, x, y, COUNT, PEAL_F32, PEAL_SUM);
    case BROADCAST:
        return peal_broadcast(comm, y, COUNT, PEAL_F32, 0);
    case ALLGATHER:
        return peal_allgather(comm, x, y, COUNT / 2, PEAL_F32);
    case ALL_TO_ALL:
        return peal_all_to_all(comm, x, y, COUNT / 2, PEAL_F32);
    default:
        return peal_reduce_scatter(comm, x, y, COUNT / 2, PEAL_F32, PEAL_SUM);
    }
}

static int rank_body(uint32_t rank, const char *job, enum collective collective, int reads)
{
    struct peal_open options = {
        .size = 2, .rank = rank, .job = job, .quiet = 1, .timeout_ms = LONG_MS};
    struct peal_comm *comm;
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    if (!x || !y || peal_comm_open(&options, &comm) != PEAL_OK)
        return 1;
    for (int i = 0; i < COUNT; i++)
        x[i] = y[i] = 1;
    if (peal_barrier(comm) != PEAL_OK ||
        (reads_by[collective] &&
         peal_comm_set_algo(comm, names[collective], reads_by[collective]) != PEAL_OK))
        return 2;
    if (rank == 0)
        peal_comm_set_idle(comm, stop_waiting, comm);
    else
        reads_left = reads;
    board->status[rank] = (int)call(comm, collective, x, y);
    if (rank == 1) {
        bool reduces = collective == ALLREDUCE || collective == REDUCE_SCATTER;
        uint64_t length = collective == REDUCE_SCATTER ? COUNT / 2 : COUNT;
        for (uint64_t i = 0; i < length; i++)
            board->wrong += y[i] != (reduces ? 2.0f : 1.0f);
        atomic_store(&board->resumed, 1);
        return 0;
    }
    peal_comm_close(comm);
    memset(x, NOT_USED, COUNT * sizeof *x);
    memset(y, NOT_USED, COUNT * sizeof *y);
    atomic_store(&board->told, 1);
    wait_for(&board->resumed);
    for (uint64_t i = 0; i < COUNT * sizeof *y; i++) {
        board->changed += ((unsigned char *)x)[i] != NOT_USED;
        board->changed += ((unsigned char *)y)[i] != NOT_USED;
    }
    return 0;
}

/* Stops rank 1 before its n-th read; false: it has fewer. */
static bool stop_in_read(enum collective collective, int reads)
{
    char job[48];
    pid_t pids[2];
    int status;
    memset(board, 0, sizeof *board);
    snprintf(job, sizeof job, "late-%d-%d-%d", (int)getpid(), (int)collective, reads);
    for (uint32_t r = 0; r < 2; r++) {
        pids[r] = fork();
        assert_true(pids[r] >= 0);
        if (pids[r] == 0)
            _exit(rank_body(r, job, collective, reads));
    }
    assert_int_equal(waitpid(pids[1], &status, WUNTRACED), pids[1]);
    bool stopped = WIFSTOPPED(status);
    if (stopped) {
        wait_for(&board->told);
        kill(pids[1], SIGCONT);
        assert_int_equal(waitpid(pids[1], &status, 0), pids[1]);
    }
    assert_int_equal(status, 0);
    if (!stopped) {
        kill(pids[0],
             SIGKILL); /* its call succeeded, and it waits for something that will not come */
        waitpid(pids[0], &status, 0);
        return false;
    }
    assert_int_equal(waitpid(pids[0], &status, 0), pids[0]);
    assert_int_equal(status, 0);
    return true;
}

TEST(a_stopped_rank_harms_nobody)
{
    int stops = 0;
    for (enum collective collective = ALLREDUCE; collective < COLLECTIVES; collective++) {
        for (int reads = 1; reads <= 3 && stop_in_read(collective, reads); reads++) {
            stops++;
            if (board->status[0] != PEAL_TIMEOUT)
                fail_msg("%s, read %d: rank 0: %s", names[collective], reads,
                         peal_status_text((enum peal_status)board->status[0]));
            if (board->changed > 0)
                fail_msg("%s, read %d: %llu bytes of rank 0 were written after its call",
                         names[collective], reads, (unsigned long long)board->changed);
            if (board->status[1] == PEAL_OK)
                fail_msg("%s, read %d: rank 1 ended well, with %llu elements wrong",
                         names[collective], reads, (unsigned long long)board->wrong);
        }
    }
    if (stops == 0) { /* processes may not read each other here, and everything is staged */
        print_message("peers' memory cannot be read on this system\n");
        skip();
    }
}

/* ---- symmetric memory ---- */

enum { BYTES = 1 << 16 };

static int symmetric_body(uint32_t rank, const char *job)
{
    struct peal_open options = {
        .size = 2, .rank = rank, .job = job, .quiet = 1, .timeout_ms = LONG_MS};
    struct peal_comm *comm;
    void *memory;
    if (peal_comm_open(&options, &comm) != PEAL_OK ||
        peal_symmetric_alloc(comm, BYTES, &memory) != PEAL_OK)
        return 1;
    memset(memory, NOT_USED, BYTES);
    unsigned char *others = peal_symmetric_at(comm, memory, 0);
    if (peal_barrier(comm) != PEAL_OK)
        return 2;
    if (rank == 1) { /* does not make the call, and stores when the other has given up */
        wait_for(&board->told);
        memset(others, 1, BYTES);
        atomic_store(&board->resumed, 1);
        return 0;
    }
    peal_comm_set_timeout(comm, 200);
    if (peal_allreduce(comm, memory, memory, BYTES / 4, PEAL_F32, PEAL_SUM) != PEAL_TIMEOUT)
        return 3;
    atomic_store(&board->told, 1);
    wait_for(&board->resumed);
    for (int i = 0; i < BYTES; i++) {
        if (((unsigned char *)memory)[i] != NOT_USED)
            return 4;
    }
    peal_comm_close(comm);
    return 0;
}

TEST(symmetric_memory_is_the_owners_after_a_failure)
{
    char job[48];
    memset(board, 0, sizeof *board);
    snprintf(job, sizeof job, "late-symmetric-%d", (int)getpid());
    for (uint32_t r = 0; r < 2; r++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            _exit(symmetric_body(r, job));
    }
    for (int i = 0; i < 2; i++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_rank_harms_nobody),
        cmocka_unit_test(symmetric_memory_is_the_owners_after_a_failure)};
    return cmocka_run_group_tests_name("late", tests, NULL, NULL);
}
