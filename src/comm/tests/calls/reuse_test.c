/* SPDX-License-Identifier: Apache-2.0 */
/* A rank dies in a call that its peer is about to reach into, and another process gets its number:
 * the peer reports the death, and the stranger's memory stays as it was
 * (docs/decisions/0030-peers-read-and-do-not-write.md).
 *
 * Numbers are set in a namespace of process numbers, for which the test must be root. */
#include "base/tests/unit.h"

#include <peal/peal.h>

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1 << 18, SKIP = 77, RIGHT = 0, WRONG = 1 };

/* Shared by all: the progress of each process. */
struct progress {
    _Atomic int ready, go, calling; /* seq_cst: set by one, polled by the others */
};

static float vector[COUNT], sums[COUNT]; /* at the same addresses in all of them */

static void wait_for(_Atomic int *word, int value)
{
    while (atomic_load(word) < value)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void say_calling(void *context)
{
    atomic_store(&((struct progress *)context)->calling, 1);
}

static int run_rank(uint32_t rank, struct progress *p)
{
    struct peal_open options = {.rank = rank, .size = 2, .job = "reuse", .quiet = 1};
    struct peal_comm *comm;
    if (peal_comm_open(&options, &comm) != PEAL_OK ||
        peal_comm_set_algo(comm, "allreduce", "push") != PEAL_OK ||
        peal_allreduce(comm, vector, sums, COUNT, PEAL_F32, PEAL_SUM) != PEAL_OK)
        return WRONG;
    atomic_fetch_add(&p->ready, 1);
    if (rank == 0)
        wait_for(&p->go, 1);
    else
        peal_comm_set_idle(comm, say_calling, p); /* when it waits */
    enum peal_status status = peal_allreduce(comm, vector, sums, COUNT, PEAL_F32, PEAL_SUM);
    bool told = strstr(peal_comm_error(comm), "is dead") != NULL;
    if (status != PEAL_PEER_DEAD || !told)
        fprintf(stderr, "rank %u: %s: %s\n", rank, peal_status_text(status), peal_comm_error(comm));
    peal_comm_close(comm);
    return status == PEAL_PEER_DEAD && told ? RIGHT : WRONG;
}

/* Has memory at the same addresses as the dead rank, and exits when no rank will touch it any more.
 */
static int run_stranger(struct progress *p)
{
    for (int i = 0; i < COUNT; i++)
        vector[i] = sums[i] = 7;
    atomic_store(&p->go, 1);
    wait_for(&p->go, 2);
    for (int i = 0; i < COUNT; i++) {
        if (vector[i] != 7 || sums[i] != 7)
            return WRONG;
    }
    return RIGHT;
}

static bool set_last_pid(pid_t pid)
{
    FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "we");
    bool ok = file && fprintf(file, "%d", (int)pid) > 0;
    return file && fclose(file) == 0 && ok;
}

static int code_of(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : WRONG;
}

/* The first process of the namespace. */
static int run_namespace(void)
{
    struct progress *p =
        mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t ranks[2];
    if (p == MAP_FAILED)
        return WRONG;
    for (uint32_t r = 0; r < 2; r++) {
        ranks[r] = fork();
        if (ranks[r] == 0)
            _exit(run_rank(r, p));
    }
    wait_for(&p->ready, 2);
    wait_for(&p->calling, 1);
    kill(ranks[1], SIGKILL);
    waitpid(ranks[1], NULL, 0);
    bool can = set_last_pid(ranks[1] - 1);
    pid_t stranger = can ? fork() : -1;
    if (stranger == 0)
        _exit(run_stranger(p));
    if (stranger != ranks[1]) { /* not permitted, or another number: nothing to test */
        kill(ranks[0], SIGKILL);
        if (stranger > 0)
            kill(stranger, SIGKILL);
        return SKIP;
    }
    int seen = code_of(ranks[0]);
    atomic_store(&p->go, 2);
    int kept = code_of(stranger);
    return seen != RIGHT || kept != RIGHT ? WRONG : RIGHT;
}

TEST(a_number_that_comes_back_is_not_taken_for_the_rank)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWPID) != 0)
            _exit(SKIP);
        pid_t first = fork();
        if (first == 0)
            _exit(run_namespace());
        _exit(code_of(first));
    }
    int code = code_of(pid);
    if (code == SKIP) {
        printf("skipped: only root may set the numbers of processes\n");
        skip();
    }
    assert_int_equal(code, RIGHT);
}

int main(void)
{
    return unit_run();
}
