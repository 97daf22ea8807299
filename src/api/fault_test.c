/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong goes wrong the same way on every rank: dead, sleeping and disagreeing ranks,
 * wrong arguments, memory that is not there; and what goes on afterwards.
 *
 *   fault [kills [seed]]
 */
#include <peal/peal.h>

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static int kills = 10;
static uint64_t seed;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void pause_us(long us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

/* ---- ranks as processes ---- */

enum { MOST = 8 };

struct group {
    uint32_t size;
    pid_t pids[MOST];
    char job[64];
    struct counters *counters;
};

/* Shared by the ranks of a group and the test: nobody waits for a time, only for these. */
struct counters {
    _Atomic uint32_t open; /* ranks that have opened their communicator */
    _Atomic uint32_t done; /* ranks that have seen what they were to see */
};
static struct counters *counters; /* of the group that this process is a rank of */

static void wait_until_done(uint32_t ranks)
{
    while (atomic_load(&counters->done) < ranks) /* partner: the add of those who are */
        pause_us(1000);
}

/* Starts `size` ranks of body; its return value is the exit code, 0 = as it should be. The time-out
 * is long: opening may take its time on a machine with other work. */
static void start(struct group *group, uint32_t size, int (*body)(struct peal_comm *, const void *),
                  const void *context)
{
    static int number;
    group->size = size;
    snprintf(group->job, sizeof group->job, "fault-%d-%d", (int)getpid(), number++);
    group->counters = mmap(NULL, sizeof *group->counters, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(group->counters != MAP_FAILED);
    counters = group->counters;
    fflush(stdout);
    for (uint32_t r = 0; r < size; r++) {
        group->pids[r] = fork();
        if (group->pids[r] != 0)
            continue;
        struct peal_open how = {
            .rank = r, .size = size, .job = group->job, .timeout_ms = 60000, .quiet = 1};
        struct peal_comm *comm;
        if (peal_comm_open(&how, &comm) != PEAL_OK) {
            fprintf(stderr, "open: %s\n", peal_comm_error(NULL));
            _exit(99);
        }
        atomic_fetch_add(&counters->open, 1); /* partner: the loop before a kill */
        int code = body(comm, context);
        peal_comm_close(comm);
        _exit(code);
    }
}

/* True if all but `except` ended with 0. */
static bool all_right(const struct group *group, uint32_t except)
{
    bool right = true;
    for (uint32_t r = 0; r < group->size; r++) {
        int status = 0;
        waitpid(group->pids[r], &status, 0);
        if (r != except && status != 0) {
            fprintf(stderr, "rank %u ended with %x\n", r, (unsigned)status);
            right = false;
        }
    }
    munmap(group->counters, sizeof *group->counters);
    return right;
}

/* Nothing of a job has a name any more: no socket, no file in shared memory. */
static bool nothing_is_left(const char *job)
{
    char line[512];
    bool left = false;
    FILE *sockets = fopen("/proc/net/unix", "re");
    while (sockets && fgets(line, sizeof line, sockets))
        left |= strstr(line, job) != NULL;
    if (sockets)
        fclose(sockets);
    DIR *files = opendir("/dev/shm");
    for (struct dirent *entry; files && (entry = readdir(files)) != NULL;)
        left |= strstr(entry->d_name, "peal") != NULL;
    if (files)
        closedir(files);
    return !left;
}

/* A child says what it disliked and ends. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %u: not so: %s\n%s\n", __FILE__, __LINE__,                \
                    peal_comm_rank(comm), #condition, peal_comm_error(comm));                      \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

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
    /* A rank that notices only with its next call is told that the communicator is finished. */
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

static void survivors_of_a_killed_rank_report_it_and_go_on(void **state)
{
    (void)state;
    uint64_t random = seed;
    for (int i = 0; i < kills; i++) {
        struct group group;
        uint32_t size = 2 + (uint32_t)(next_random(&random) % 4);
        struct kill_plan plan = {.seed = next_random(&random) | 1,
                                 .victim = (uint32_t)(next_random(&random) % size)};
        start(&group, size, work_until_death, &plan);
        while (atomic_load(&group.counters->open) < size)
            pause_us(500);
        pause_us((long)(next_random(&random) % 20000));
        kill(group.pids[plan.victim], SIGKILL);
        if (!all_right(&group, plan.victim))
            fail_msg("kill %d, seed %llu", i, (unsigned long long)seed);
        assert_true(nothing_is_left(group.job));
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
    for (int i = 0; i < 20 && status == PEAL_OK; i++)
        status = peal_allreduce(comm, x, y, 100, PEAL_F32, PEAL_SUM);
    /* A rank that is behind may be told of the mismatch while it is still in here. */
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
        /* Rank 1 sends more to rank 0 than that expects. */
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
        if (odd)
            wait_until_done(2);
        peal_comm_set_timeout(comm, 300);
        status = peal_barrier(comm);
        wanted = odd ? PEAL_CLOSED : PEAL_TIMEOUT;
        EXPECT(strstr(peal_comm_error(comm), "outside any call") != NULL);
        atomic_fetch_add(&counters->done, 1); /* partner: wait_until_done */
    }
    /* Who had ended the call before the mismatch was seen is told at the next one. */
    if (status == PEAL_OK)
        status = peal_barrier(comm);
    EXPECT(status == wanted || status == PEAL_CLOSED);
    EXPECT(strlen(peal_comm_error(comm)) > 20);
    return 0;
}

static void calls_that_differ_fail_on_every_rank(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        struct group group;
        enum way copy = (enum way)way;
        start(&group, 3, disagree, &copy);
        if (!all_right(&group, UINT32_MAX))
            fail_msg("way %d", way);
    }
}

/* ---- waiting in slices ---- */

enum silence { SPEAKS_LATE, NEVER_SPEAKS, DIES };

/* Rank 0 receives in slices; rank 1 sends late, never, or is gone. */
static int receive_in_slices(struct peal_comm *comm, const void *context)
{
    enum silence kind = *(const enum silence *)context;
    int64_t value = 77, got_value = 0;
    if (peal_comm_rank(comm) == 1) {
        if (kind == DIES)
            raise(SIGKILL);
        if (kind == NEVER_SPEAKS)
            wait_until_done(1);
        pause_us(50000);
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
    for (; status == PEAL_PENDING; slices++)
        status = peal_request_wait_for(request, 500, &got, &sender);
    if (kind == SPEAKS_LATE) {
        EXPECT(status == PEAL_OK && got == sizeof value && got_value == value && sender == 1);
        EXPECT(slices > 1);
    } else {
        EXPECT(status == (kind == DIES ? PEAL_PEER_DEAD : PEAL_TIMEOUT));
    }
    atomic_fetch_add(&counters->done, 1); /* partner: wait_until_done */
    return 0;
}

static void waits_in_slices_see_messages_deaths_and_time_outs(void **state)
{
    (void)state;
    for (int kind = SPEAKS_LATE; kind <= DIES; kind++) {
        struct group group;
        enum silence copy = (enum silence)kind;
        start(&group, 2, receive_in_slices, &copy);
        if (!all_right(&group, kind == DIES ? 1 : UINT32_MAX))
            fail_msg("kind %d", kind);
    }
}

/* Many messages at once to one rank, larger than its mailbox and of all tags, and back. */
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

static void messages_under_way_at_once_stay_whole(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct group group;
        start(&group, 2, send_many_at_once, NULL);
        assert_true(all_right(&group, UINT32_MAX));
    }
}

/* ---- groups ---- */

static int split_twice(struct peal_comm *comm, const void *context)
{
    (void)context;
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    struct peal_comm *half, *others;
    EXPECT(peal_comm_split(comm, (int)rank % 2, -(int)rank, &half) == PEAL_OK);
    EXPECT(peal_comm_split(comm, rank == 0 ? -1 : 7, 0, &others) == PEAL_OK);
    EXPECT((rank == 0) == (others == NULL));
    int64_t mine = rank, sum = 0, expected = 0, members = 0;
    for (uint32_t r = rank % 2; r < size; r += 2) {
        expected += r;
        members++;
    }
    EXPECT(peal_comm_size(half) == members);
    for (int i = 0; i < 50; i++) {
        EXPECT(peal_allreduce(half, &mine, &sum, 1, PEAL_I64, PEAL_SUM) == PEAL_OK);
        EXPECT(sum == expected);
        EXPECT(!others || peal_barrier(others) == PEAL_OK);
    }
    int64_t first = rank; /* keys fall: the highest old rank is rank 0 now */
    EXPECT(peal_broadcast(half, &first, 1, PEAL_I64, 0) == PEAL_OK);
    EXPECT(first == (int64_t)(rank % 2 + 2 * (members - 1)));
    peal_comm_close(others);
    peal_comm_close(half);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    return 0;
}

static void groups_overlap_and_two_jobs_run_at_once(void **state)
{
    (void)state;
    struct group a, b;
    start(&a, 5, split_twice, NULL);
    start(&b, 4, split_twice, NULL);
    assert_true(all_right(&a, UINT32_MAX));
    assert_true(all_right(&b, UINT32_MAX));
}

/* ---- arguments and memory ---- */

static void wrong_arguments_are_refused_and_nothing_is_lost(void **state)
{
    (void)state;
    struct peal_comm *comm;
    struct peal_open alone = {.size = 1, .job = "alone", .quiet = 1};
    assert_int_equal(peal_comm_open(&alone, &comm), PEAL_OK);
    float x[64] = {1, 2, 3}, y[64];
    uint64_t counts[1] = {UINT64_MAX / 2};
    assert_int_equal(peal_allreduce(comm, x, x + 1, 32, PEAL_F32, PEAL_SUM), PEAL_INVALID);
    assert_non_null(strstr(peal_comm_error(comm), "overlap"));
    assert_int_equal(peal_allreduce(comm, NULL, y, 1, PEAL_F32, PEAL_SUM), PEAL_INVALID);
    assert_int_equal(peal_allreduce(comm, x, y, 1, (enum peal_dtype)99, PEAL_SUM), PEAL_INVALID);
    assert_int_equal(peal_allreduce(comm, x, y, 1, PEAL_F32, (enum peal_reduce)99), PEAL_INVALID);
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

static int launch_user_kernel(struct peal_comm *comm, const void *context)
{
    (void)context;
    static const char text[] = "kernel twice(in x: T[n], out y: T[n], k: int) {\n"
                               "    let right = (rank + 1) % nranks\n"
                               "    send x to right\n"
                               "    let t: T[n] = recv from (rank - 1) % nranks\n"
                               "    y = t + t\n"
                               "}\n";
    struct peal_user_kernel *kernel = NULL;
    EXPECT(peal_user_kernel_load(comm, "kernel bad( {", NULL, &kernel) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "kernel:1:") != NULL);
    EXPECT(peal_user_kernel_load(comm, text, NULL, &kernel) == PEAL_OK);
    float x[10], y[10];
    for (int i = 0; i < 10; i++)
        x[i] = (float)(100 * peal_comm_rank(comm) + (uint32_t)i);
    struct peal_arg args[3] = {{.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
                               {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y},
                               {.kind = PEAL_ARG_INT, .value = 3}};
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 2, NULL, 0) == PEAL_INVALID);
    struct peal_arg swapped[3] = {args[2], args[1], args[0]};
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, swapped, 3, NULL, 0) == PEAL_INVALID);
    for (int k = 0; k < 20; k++)
        EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 3, NULL, 0) == PEAL_OK);
    uint32_t size = peal_comm_size(comm), left = (peal_comm_rank(comm) + size - 1) % size;
    for (int i = 0; i < 10; i++)
        EXPECT(y[i] == (float)(2 * (100 * left + (uint32_t)i)));
    peal_user_kernel_free(kernel);
    /* Local values: each rank gives its own. */
    int64_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct peal_arg locals[4] = {args[0],
                                 args[1],
                                 {.kind = PEAL_ARG_INTS, .values = ones, .nvalues = size},
                                 {.kind = PEAL_ARG_INTS, .values = ones, .nvalues = size}};
    EXPECT(peal_user_kernel_load(comm, NULL, "all_to_all_v", &kernel) == PEAL_OK);
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, locals, 4, NULL, 0) == PEAL_OK);
    for (uint32_t q = 0; q < size; q++)
        EXPECT(y[q] == (float)(100 * q + peal_comm_rank(comm)));
    peal_user_kernel_free(kernel);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    return 0;
}

static void user_kernels_are_checked_and_launched(void **state)
{
    (void)state;
    struct group group;
    start(&group, 3, launch_user_kernel, NULL);
    assert_true(all_right(&group, UINT32_MAX));
}

/* ---- memory of other processes ---- */

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

static void memory_that_is_gone_is_an_error_on_every_rank(void **state)
{
    (void)state;
    struct group group;
    start(&group, 2, broadcast_nothing, NULL);
    assert_true(all_right(&group, UINT32_MAX));
}

/* ---- ranks that are bound differently ---- */

static int sum_with_other_cores(struct peal_comm *world, const void *job)
{
    static const uint64_t counts[] = {1, 4096, 16384, 100000};
    uint32_t rank = peal_comm_rank(world), size = peal_comm_size(world);
    setenv("PEAL_CORES", rank == 1 ? "2" : "64", 1);
    struct peal_open how = {.rank = rank, .size = size, .job = job, .timeout_ms = 60000};
    struct peal_comm *comm;
    if (peal_comm_open(&how, &comm) != PEAL_OK)
        return 1;
    int32_t *x = malloc(100000 * sizeof *x), *y = malloc(100000 * sizeof *y);
    int bad = !x || !y;
    for (size_t c = 0; !bad && c < sizeof counts / sizeof counts[0]; c++) {
        for (uint64_t i = 0; i < counts[c]; i++)
            x[i] = (int32_t)(i + rank);
        bad |= peal_allreduce(comm, x, y, counts[c], PEAL_I32, PEAL_SUM) != PEAL_OK;
        for (uint64_t i = 0; i < counts[c]; i++)
            bad |= y[i] != (int32_t)(size * i + size * (size - 1) / 2);
    }
    free(x);
    free(y);
    peal_comm_close(comm);
    return bad;
}

static void ranks_with_other_numbers_of_cores_choose_alike(void **state)
{
    (void)state;
    struct group group;
    char job[64];
    snprintf(job, sizeof job, "cores-%d", (int)getpid());
    start(&group, 4, sum_with_other_cores, job);
    assert_true(all_right(&group, MOST));
    assert_true(nothing_is_left(job));
}

int main(int argc, char **argv)
{
    kills = argc > 1 ? atoi(argv[1]) : kills;
    seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) | 1;
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_arguments_are_refused_and_nothing_is_lost),
        cmocka_unit_test(user_kernels_are_checked_and_launched),
        cmocka_unit_test(groups_overlap_and_two_jobs_run_at_once),
        cmocka_unit_test(waits_in_slices_see_messages_deaths_and_time_outs),
        cmocka_unit_test(messages_under_way_at_once_stay_whole),
        cmocka_unit_test(ranks_with_other_numbers_of_cores_choose_alike),
        cmocka_unit_test(calls_that_differ_fail_on_every_rank),
        cmocka_unit_test(memory_that_is_gone_is_an_error_on_every_rank),
        cmocka_unit_test(survivors_of_a_killed_rank_report_it_and_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
