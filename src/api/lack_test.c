/* SPDX-License-Identifier: Apache-2.0 */
/* No memory: when the system refuses memory for a window, at open, at a call or at a symmetric
 * allocation, every rank gets a status and a message, and nothing is lost.
 *
 * Windows are files of the system's memory without a name; such a file system has no size of its
 * own that a test could use up without using up the machine. So the system is made to answer as a
 * full one does: from a chosen moment on, every request for memory of a file fails with ENOSPC. */
#include "api/children.h"
#include "api/comm.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 3, SKIP = 77 };

/* False if the system does not let us. */
static bool install(struct sock_filter *filter, unsigned short count)
{
    struct sock_fprog program = {count, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* From here on fallocate fails in this process. */
static bool fill_memory(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return install(filter, sizeof filter / sizeof *filter);
}

/* From here on this file cannot be mapped in this process. */
static bool close_file(int fd)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)fd, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return install(filter, sizeof filter / sizeof *filter);
}

/* Symmetric memory: refused everywhere if one rank has none, and the communicator goes on. */
static int allocate(struct peal_comm *comm, const void *context)
{
    (void)context;
    uint32_t rank = peal_comm_rank(comm);
    void *memory = NULL;
    int64_t one = 1, sum = 0;
    if (rank == 1 && !fill_memory())
        return SKIP;
    EXPECT(peal_symmetric_alloc(comm, 1 << 20, &memory) == PEAL_NO_MEMORY);
    EXPECT(strstr(peal_comm_error(comm), "rank 1 has no room for 1048576 bytes") != NULL);
    EXPECT(peal_allreduce(comm, &one, &sum, 1, PEAL_I64, PEAL_SUM) == PEAL_OK && sum == RANKS);
    return 0;
}

/* Memory that all have, and one rank cannot map: refused everywhere as well. */
static int map_in_vain(struct peal_comm *comm, const void *context)
{
    (void)context;
    void *memory = NULL;
    int64_t one = 1, sum = 0;
    if (peal_comm_rank(comm) == 1 && !close_file(comm->team->fds[2]))
        return SKIP;
    EXPECT(peal_symmetric_alloc(comm, 1 << 20, &memory) == PEAL_NO_MEMORY);
    EXPECT(strstr(peal_comm_error(comm), "rank 1 has no room for 1048576 bytes") != NULL);
    EXPECT(peal_allreduce(comm, &one, &sum, 1, PEAL_I64, PEAL_SUM) == PEAL_OK && sum == RANKS);
    return 0;
}

/* Memory that is there for one rank, and not for all: refused before anyone takes any. */
static int allocate_too_much(struct peal_comm *comm, const void *context)
{
    void *memory = NULL;
    int64_t one = 1, sum = 0;
    char line[128];
    unsigned long long kib = 0;
    (void)context;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "MemAvailable: %llu", &kib) != 1)
        continue;
    if (file)
        fclose(file);
    /* The same number on all ranks. */
    int64_t own = (int64_t)(kib / 10 * 6) << 10, bytes = 0;
    EXPECT(peal_allreduce(comm, &own, &bytes, 1, PEAL_I64, PEAL_MIN) == PEAL_OK);
    if (bytes == 0)
        return SKIP;
    EXPECT(peal_symmetric_alloc(comm, (size_t)bytes, &memory) == PEAL_NO_MEMORY);
    EXPECT(strstr(peal_comm_error(comm), "symmetric_alloc: 3 ranks need ") != NULL);
    EXPECT(peal_allreduce(comm, &one, &sum, 1, PEAL_I64, PEAL_SUM) == PEAL_OK && sum == RANKS);
    EXPECT(peal_symmetric_alloc(comm, 1 << 20, &memory) == PEAL_OK);
    return 0;
}

/* A call that needs more of the window than there is: fails on all ranks with one report. */
static int call(struct peal_comm *comm, const void *context)
{
    (void)context;
    uint32_t rank = peal_comm_rank(comm);
    static float x[1 << 18], y[1 << 18];
    enum peal_status status = peal_allreduce(comm, x, y, 16, PEAL_F32, PEAL_SUM);
    EXPECT(status == PEAL_OK);
    if (rank == 1 && !fill_memory())
        return SKIP;
    for (uint64_t n = 16; status == PEAL_OK && n <= 1 << 18; n *= 2)
        status = peal_allreduce(comm, x, y, n, PEAL_F32, PEAL_SUM);
    /* A rank that had ended the call is told with its next one. */
    EXPECT(status == PEAL_NO_MEMORY || (rank != 1 && status == PEAL_CLOSED));
    EXPECT(strstr(peal_comm_error(comm), "rank 1: no memory for kernel 'allreduce") != NULL);
    EXPECT(peal_barrier(comm) == PEAL_CLOSED);
    return 0;
}

static void run(children_body *body)
{
    struct children ranks;
    setenv("PEAL_WINDOW_POOL", "64K", 1);
    children_start(&ranks, RANKS, body, NULL);
    bool right = children_all_right(&ranks, CHILDREN_NOBODY);
    if (WIFEXITED(ranks.status[1]) && WEXITSTATUS(ranks.status[1]) == SKIP) {
        printf("skipped: this system has no seccomp filters\n");
        skip();
    }
    assert_true(right);
}

static void symmetric_memory_is_refused_on_every_rank(void **state)
{
    (void)state;
    run(allocate);
}

static void symmetric_memory_that_one_cannot_map_is_refused_on_every_rank(void **state)
{
    (void)state;
    run(map_in_vain);
}

static void memory_for_one_is_no_memory_for_all(void **state)
{
    (void)state;
    run(allocate_too_much);
}

static void a_call_without_memory_fails_on_every_rank(void **state)
{
    (void)state;
    run(call);
}

static void opening_without_memory_says_so(void **state)
{
    (void)state;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct peal_open how = {.rank = 0, .size = 1, .job = "lack-open", .quiet = 1};
        struct peal_comm *comm = NULL;
        if (!fill_memory())
            _exit(SKIP);
        bool right = peal_comm_open(&how, &comm) == PEAL_NO_MEMORY &&
                     strstr(peal_comm_error(NULL), "cannot make a window of") != NULL &&
                     strstr(peal_comm_error(NULL), strerror(ENOSPC)) != NULL;
        fprintf(stderr, "%s\n", peal_comm_error(NULL));
        _exit(right ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_without_memory_says_so),
        cmocka_unit_test(symmetric_memory_is_refused_on_every_rank),
        cmocka_unit_test(symmetric_memory_that_one_cannot_map_is_refused_on_every_rank),
        cmocka_unit_test(memory_for_one_is_no_memory_for_all),
        cmocka_unit_test(a_call_without_memory_fails_on_every_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
