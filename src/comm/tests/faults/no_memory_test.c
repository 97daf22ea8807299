/* SPDX-License-Identifier: Apache-2.0 */
/* No memory: when the system refuses memory for a window, at open, split or shrink, at a call or at a
 * symmetric allocation, every rank gets a status and a message, and nothing is lost. Ranks are
 * processes, and threads.
 *
 * Windows are files of the system's memory without a name; such a file system has no size of its
 * own that a test could use up without using up the machine. So the system is made to answer as a
 * full one does: from a chosen moment on, every request for memory of a file fails with ENOSPC. */
#include "base/tests/unit.h"
#include "comm/core/communicator.h"
#include "comm/tests/children.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, SKIP = 77 };

/* False if the system does not permit it. */
static bool install(struct sock_filter *filter, unsigned short count)
{
    struct sock_fprog program = {count, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* From here on fallocate fails in this thread. */
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

/* From here on this file cannot be mapped by this thread. */
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

/* Symmetric memory: refused on all ranks if one rank has none, and the communicator still works. */
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

/* Memory that all ranks have, but one rank cannot map: also refused on all ranks. */
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

/* Memory that is there for one rank, but not for all: refused before any rank takes any. */
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

/* A call has failed on rank 1: all ranks get the same reason, and the communicator is finished. A
 * rank whose call had ended learns of it in its next call, and a slower rank in the call before. */
static int check_end(struct peal_comm *comm, enum peal_status status, const char *words)
{
    bool poor = peal_comm_rank(comm) == 1 && strncmp(words, "rank 1", 6) == 0;
    EXPECT(status == PEAL_NO_MEMORY || (!poor && (status == PEAL_OK || status == PEAL_CLOSED)));
    if (status == PEAL_OK) {
        status = peal_barrier(comm);
        EXPECT(status == PEAL_NO_MEMORY || status == PEAL_CLOSED);
    }
    EXPECT(strstr(peal_comm_error(comm), words) != NULL);
    EXPECT(peal_barrier(comm) == PEAL_CLOSED);
    /* A call of several exchanges, which met the failure between two of them. */
    char one = 1, all[PEAL_MOST_RANKS];
    EXPECT(peal_comm_exchange(comm, PEAL_CALL_SPLIT, &one, all, 1) == PEAL_NO_MEMORY);
    EXPECT(strstr(peal_comm_error(comm), words) != NULL);
    return 0;
}

/* A call that needs more of the window than there is: fails on all ranks with one report. */
static int call(struct peal_comm *comm, const void *context)
{
    (void)context;
    enum { MAX_COUNT = 1 << 18 };
    float *x = calloc(MAX_COUNT, sizeof *x), *y = calloc(MAX_COUNT, sizeof *y);
    EXPECT(x && y);
    enum peal_status status = peal_allreduce(comm, x, y, 16, PEAL_F32, PEAL_SUM);
    if (peal_comm_rank(comm) == 1 && !fill_memory())
        return SKIP;
    for (uint64_t n = 16; n <= MAX_COUNT && status == PEAL_OK; n *= 2)
        status = peal_allreduce(comm, x, y, n, PEAL_F32, PEAL_SUM);
    EXPECT(check_end(comm, status, "rank 1: no memory for kernel 'allreduce") == 0);
    free(x);
    free(y);
    return 0;
}

/* The same while four calls are under way. */
static int call_at_once(struct peal_comm *comm, const void *context)
{
    (void)context;
    enum { MAX_COUNT = 1 << 18, CALLS = 4 };
    float *x = calloc(MAX_COUNT, sizeof *x), *y = calloc(CALLS * MAX_COUNT, sizeof *y);
    EXPECT(x && y);
    enum peal_status status = peal_barrier(comm);
    if (peal_comm_rank(comm) == 1 && !fill_memory())
        return SKIP;
    for (uint64_t n = 16; n <= MAX_COUNT; n *= 2) {
        struct peal_request *requests[CALLS];
        int started = 0;
        for (; started < CALLS; started++) {
            if (status == PEAL_OK)
                status = peal_iallreduce(comm, x, y + started * MAX_COUNT, n, PEAL_F32, PEAL_SUM,
                                         &requests[started]);
            if (status != PEAL_OK)
                break;
        }
        for (int i = 0; i < started; i++) {
            enum peal_status ended = peal_request_wait(requests[i]);
            status = ended != PEAL_OK ? ended : status;
        }
    }
    EXPECT(check_end(comm, status, "rank 1: no memory for kernel 'allreduce") == 0);
    free(x);
    free(y);
    return 0;
}

static int launch(struct peal_comm *comm, int64_t times, const char *words)
{
    static const char text[] = "kernel wide(in x: T[n], out y: T[n], k: int) {\n"
                               "    window room: T[n * k]\n"
                               "    signal here\n"
                               "    room[0 +: n] = x\n"
                               "    notify here@((rank + 1) % nranks) += 1\n"
                               "    wait here >= 1\n"
                               "    y = room[0 +: n]\n"
                               "}\n";
    struct peal_user_kernel *kernel = NULL;
    float x[1024] = {1}, y[1024];
    struct peal_arg args[3] = {{.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
                               {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y},
                               {.kind = PEAL_ARG_INT, .value = 1}};
    /* Rank 1 needs rank 0 only for its first launch: the other ranks may learn of the failure
     * before they load. */
    enum peal_status status = peal_user_kernel_load(comm, text, NULL, &kernel);
    if (status == PEAL_OK)
        status = peal_user_kernel_launch(kernel, PEAL_F32, args, 3, NULL, 0);
    if (times == 0 && peal_comm_rank(comm) == 1 && !fill_memory())
        return SKIP;
    args[2].value = times ? times : 256;
    if (status == PEAL_OK)
        status = peal_user_kernel_launch(kernel, PEAL_F32, args, 3, NULL, 0);
    EXPECT(check_end(comm, status, words) == 0);
    peal_user_kernel_free(kernel);
    return 0;
}

/* A user kernel with windows of a mebibyte. */
static int launch_without_memory(struct peal_comm *comm, const void *context)
{
    (void)context;
    return launch(comm, 0, "rank 1: no memory for kernel 'wide'");
}

/* The same with more memory than any window has. */
static int launch_too_much(struct peal_comm *comm, const void *context)
{
    (void)context;
    return launch(comm, 1 << 15,
                  "no memory for kernel 'wide', which needs 131073 KiB of the window;");
}

/* A new communicator: refused on all ranks, and the old one still works. */
static int split(struct peal_comm *comm, const void *context)
{
    (void)context;
    struct peal_comm *part = NULL;
    int64_t one = 1, sum = 0;
    EXPECT(peal_comm_split(comm, 0, 0, &part) == PEAL_OK);
    peal_comm_close(part);
    part = NULL;
    if (peal_comm_rank(comm) == 0 && !fill_memory())
        return SKIP;
    EXPECT(peal_comm_split(comm, 0, 0, &part) == PEAL_NO_MEMORY && !part);
    EXPECT(strstr(peal_comm_error(comm), "split: ") != NULL);
    EXPECT(strstr(peal_comm_error(comm), "rank 0: no room for a window") != NULL);
    enum peal_status status = peal_allreduce(comm, &one, &sum, 1, PEAL_I64, PEAL_SUM);
    EXPECT(status == PEAL_OK && sum == RANKS);
    return 0;
}

static int shrink(struct peal_comm *comm, const void *context)
{
    struct peal_comm *rest = NULL;
    int code = call(comm, context);
    if (code != 0)
        return code;
    EXPECT(peal_comm_shrink(comm, &rest) == PEAL_NO_MEMORY && !rest);
    EXPECT(strstr(peal_comm_error(comm), "shrink: rank 1: no room for a window") != NULL);
    return 0;
}

/* ---- processes and threads ---- */

static bool is_skip(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == SKIP;
}

static void run_processes(children_body *body)
{
    struct children ranks;
    children_start(&ranks, RANKS, body, NULL);
    bool right = children_finish(&ranks, CHILDREN_NOBODY);
    if (is_skip(ranks.status[0]) || is_skip(ranks.status[1])) {
        printf("skipped: this system has no seccomp filters\n");
        skip();
    }
    assert_true(right);
}

struct thread {
    pthread_t id;
    children_body *body;
    struct peal_comm *comm;
    int code;
};

static void *run_thread(void *argument)
{
    struct thread *thread = argument;
    thread->code = thread->body(thread->comm, NULL);
    return NULL;
}

/* In a process of its own: memory that a rank has filled stays filled. */
static void run_threads(children_body *body)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct peal_comm *comms[RANKS];
        struct thread threads[RANKS];
        int worst = 0;
        if (peal_comm_open_threads(RANKS, comms) != PEAL_OK)
            _exit(1);
        for (int r = 0; r < RANKS; r++) {
            threads[r] = (struct thread){.body = body, .comm = comms[r]};
            if (pthread_create(&threads[r].id, NULL, run_thread, &threads[r]) != 0)
                _exit(1);
        }
        for (int r = 0; r < RANKS; r++) {
            pthread_join(threads[r].id, NULL);
            worst = threads[r].code > worst ? threads[r].code : worst;
        }
        for (int r = 0; r < RANKS; r++)
            peal_comm_close(comms[r]);
        _exit(worst);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    if (is_skip(status))
        skip();
    assert_int_equal(status, 0);
}

static void run(children_body *body)
{
    setenv("PEAL_WINDOW_POOL", "64K", 1);
    run_processes(body);
    run_threads(body);
}

#define CASE(name, body)                                                                           \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        run(body);                                                                                 \
    }
CASE(symmetric_memory_is_refused_on_every_rank, allocate)
CASE(memory_for_one_is_no_memory_for_all, allocate_too_much)

/* Threads have one mapping for all. */
TEST(symmetric_memory_that_one_cannot_map_is_refused_on_every_rank)
{
    setenv("PEAL_WINDOW_POOL", "64K", 1);
    run_processes(map_in_vain);
}

CASE(a_call_without_memory_fails_on_every_rank, call)
CASE(calls_at_once_without_memory_fail_on_every_rank, call_at_once)
CASE(a_kernel_without_memory_fails_on_every_rank, launch_without_memory)
CASE(a_kernel_that_no_window_holds_fails_on_every_rank, launch_too_much)
CASE(a_split_without_memory_is_refused_on_every_rank, split)
CASE(a_shrink_without_memory_says_so_on_every_rank, shrink)

/* ---- opening ---- */

/* Rank `poor` has no memory, and all ranks get that reason. Returns the exit code of a rank. */
static int open_poorly(uint32_t rank, uint32_t size, uint32_t poor, const char *job)
{
    struct peal_open options = {
        .rank = rank, .size = size, .job = job, .timeout_ms = 600000, .quiet = 1};
    struct peal_comm *comm = NULL;
    char words[64];
    snprintf(words, sizeof words, "rank %u: cannot make a window of 64 KiB: ", poor);
    if (rank == poor && !fill_memory())
        return SKIP;
    enum peal_status status = peal_comm_open(&options, &comm);
    bool right = status == PEAL_NO_MEMORY && strstr(peal_comm_error(NULL), words) != NULL &&
                 strstr(peal_comm_error(NULL), strerror(ENOSPC)) != NULL;
    if (!right)
        fprintf(stderr, "rank %u: %s: %s\n", rank, peal_status_text(status), peal_comm_error(NULL));
    return right ? 0 : 1;
}

TEST(opening_without_memory_says_so_on_every_rank)
{
    static const struct {
        int line;
        uint32_t size, poor;
    } rows[] = {{__LINE__, 1, 0}, {__LINE__, RANKS, 0}, {__LINE__, RANKS, 1}};
    setenv("PEAL_WINDOW_POOL", "64K", 1);
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        pid_t pids[RANKS];
        int status, wrong = 0;
        char job[64];
        snprintf(job, sizeof job, "lack-open-%d-%zu", (int)getpid(), row);
        fflush(stdout);
        for (uint32_t r = 0; r < rows[row].size; r++) {
            pids[r] = fork();
            if (pids[r] == 0)
                _exit(open_poorly(r, rows[row].size, rows[row].poor, job));
        }
        for (uint32_t r = 0; r < rows[row].size; r++) {
            waitpid(pids[r], &status, 0);
            wrong = status != 0 && wrong == 0 ? status : wrong;
        }
        if (is_skip(wrong))
            skip();
        if (wrong)
            fail_msg("row of line %d", rows[row].line);
    }
}

TEST(opening_threads_without_memory_says_so)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct peal_comm *comms[RANKS];
        if (!fill_memory())
            _exit(SKIP);
        bool right = peal_comm_open_threads(RANKS, comms) == PEAL_NO_MEMORY &&
                     strstr(peal_comm_error(NULL), "cannot make a window of") != NULL &&
                     strstr(peal_comm_error(NULL), strerror(ENOSPC)) != NULL;
        if (!right)
            fprintf(stderr, "%s\n", peal_comm_error(NULL));
        _exit(right ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    if (is_skip(status))
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_without_memory_says_so_on_every_rank),
        cmocka_unit_test(opening_threads_without_memory_says_so),
        cmocka_unit_test(symmetric_memory_is_refused_on_every_rank),
        cmocka_unit_test(symmetric_memory_that_one_cannot_map_is_refused_on_every_rank),
        cmocka_unit_test(memory_for_one_is_no_memory_for_all),
        cmocka_unit_test(a_call_without_memory_fails_on_every_rank),
        cmocka_unit_test(calls_at_once_without_memory_fail_on_every_rank),
        cmocka_unit_test(a_kernel_without_memory_fails_on_every_rank),
        cmocka_unit_test(a_kernel_that_no_window_holds_fails_on_every_rank),
        cmocka_unit_test(a_split_without_memory_is_refused_on_every_rank),
        cmocka_unit_test(a_shrink_without_memory_says_so_on_every_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
