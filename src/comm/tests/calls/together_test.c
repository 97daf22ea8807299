/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are threads leave a failed call together: a rank that fails does not come back while a peer
 * still reads its memory, which the caller may free next.
 *
 * The reader is stopped in the middle of a copy: the page that it copies to is closed, and the
 * handler of the fault opens it when the owner of the data has given up and has come back, or has
 * not for a while. */
#include "base/tests/unit.h"
#include "comm/core/communicator.h"

#include <peal/peal.h>

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { COUNT = 16 << 10, BYTES = COUNT * 4, TIMEOUT_MS = 50, PARKED_MS = 200 };

/* What the two ranks do. The owner has started a broadcast, or is in the launch of a kernel. */
enum act { WAITS, WAITS_A_LITTLE, TESTS, RECEIVES, MEETS, LAUNCHES };

static const struct {
    int line;
    enum act owner, reader;
} rows[] = {
    {__LINE__, WAITS, WAITS},    {__LINE__, WAITS, RECEIVES},       {__LINE__, WAITS, TESTS},
    {__LINE__, RECEIVES, WAITS}, {__LINE__, WAITS_A_LITTLE, WAITS}, {__LINE__, MEETS, WAITS},
    {__LINE__, WAITS, MEETS},    {__LINE__, LAUNCHES, LAUNCHES},
};

static const char text[] = "kernel take(in x: window T[n], out y: T[n]) {\n"
                           "    signal ready, done\n"
                           "    if rank == 0 { notify ready@1 += 1 }\n"
                           "    if rank == 0 { wait done >= 1 }\n"
                           "    if rank == 1 { wait ready >= 1 }\n"
                           "    if rank == 1 { y = x@0 }\n"
                           "    if rank == 1 { notify done@0 += 1 }\n"
                           "}\n";

/* Of the one test that runs: a signal handler takes no argument of the program's. */
static struct {
    char *page;             /* where the reader copies to */
    struct peal_team *team; /* the owner's */
    _Atomic bool parked;    /* the reader is in the handler */
    _Atomic bool returned;  /* the owner's call has returned */
    _Atomic bool early;     /* ... while the reader was there */
} stage;

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void park(int number, siginfo_t *info, void *context)
{
    (void)context;
    char *at = info->si_addr;
    if (at < stage.page || at >= stage.page + BYTES) {
        signal(number, SIG_DFL); /* a real fault */
        return;
    }
    atomic_store(&stage.parked, true); /* partners: the owner's wait for it, stop_waiting */
    while (peal_team_is_well(stage.team) && !atomic_load(&stage.returned))
        pause_ms(1);
    for (int i = 0; i < PARKED_MS; i++) {
        if (atomic_load(&stage.returned)) { /* partner: run_owner */
            atomic_store(&stage.early, true);
            break;
        }
        pause_ms(1);
    }
    mprotect(stage.page, BYTES, PROT_READ | PROT_WRITE);
}

struct rank {
    struct peal_comm *comm;
    enum act act;
    sem_t *started; /* the reader has begun */
    enum peal_status status;
};

static enum peal_status launch(struct peal_comm *comm, void *x, void *y)
{
    struct peal_user_kernel *kernel = NULL;
    struct peal_arg args[2] = {{.kind = PEAL_ARG_BUFFER, .data = x, .bytes = BYTES},
                               {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = BYTES}};
    enum peal_status status = peal_user_kernel_load(comm, text, NULL, &kernel);
    if (status == PEAL_OK)
        status = peal_user_kernel_launch(kernel, PEAL_F32, args, 2, NULL, 0);
    peal_user_kernel_free(kernel);
    return status;
}

static enum peal_status do_act(struct peal_comm *comm, enum act act, struct peal_request *request)
{
    enum peal_status status = PEAL_PENDING;
    uint32_t peer = 1 - peal_comm_rank(comm);
    float word;
    switch (act) {
    case WAITS_A_LITTLE:
        while (status == PEAL_PENDING)
            status = peal_request_wait_for(request, 1000, NULL, NULL);
        return status;
    case TESTS:
        while (status == PEAL_PENDING)
            status = peal_request_test(request);
        return status;
    case RECEIVES:
        status = peal_recv(comm, &word, 4, peer, 3, NULL, NULL);
        break;
    case MEETS:
        status = peal_barrier(comm);
        break;
    default:
        return peal_request_wait(request);
    }
    (void)peal_request_wait(request);
    return status;
}

/* The owner waits as long as the reader needs to come to its copy. */
static void stop_waiting(void *comm)
{
    if (atomic_load(&stage.parked)) /* partner: park */
        peal_comm_set_timeout(comm, TIMEOUT_MS);
}

static void *run_owner(void *argument)
{
    struct rank *me = argument;
    struct peal_request *request = NULL;
    float *x = calloc(1, BYTES), *y = malloc(BYTES);
    void *symmetric = NULL;
    me->status = peal_comm_set_algo(me->comm, "broadcast", "read");
    if (me->status == PEAL_OK)
        me->status = peal_symmetric_alloc(me->comm, BYTES, &symmetric);
    sem_wait(me->started);
    if (me->act == LAUNCHES) {
        peal_comm_set_idle(me->comm, stop_waiting, me->comm);
        me->status = launch(me->comm, symmetric, y);
    } else {
        if (me->status == PEAL_OK)
            me->status = peal_ibroadcast(me->comm, x, COUNT, PEAL_F32, 0, &request);
        while (me->status == PEAL_OK && !atomic_load(&stage.parked)) /* partner: park */
            pause_ms(1);
        peal_comm_set_timeout(me->comm, TIMEOUT_MS);
        if (me->status == PEAL_OK)
            me->status = do_act(me->comm, me->act, request);
    }
    atomic_store(&stage.returned, true); /* partner: park */
    free(x);
    free(y);
    return NULL;
}

static void *run_reader(void *argument)
{
    struct rank *me = argument;
    struct peal_request *request = NULL;
    void *symmetric = NULL;
    me->status = peal_comm_set_algo(me->comm, "broadcast", "read");
    if (me->status == PEAL_OK)
        me->status = peal_symmetric_alloc(me->comm, BYTES, &symmetric);
    if (me->status == PEAL_OK && me->act != LAUNCHES)
        me->status = peal_ibroadcast(me->comm, stage.page, COUNT, PEAL_F32, 0, &request);
    sem_post(me->started);
    if (me->status == PEAL_OK)
        me->status = me->act == LAUNCHES ? launch(me->comm, symmetric, stage.page)
                                         : do_act(me->comm, me->act, request);
    return NULL;
}

static void run_row(size_t row)
{
    struct peal_comm *comms[2];
    pthread_t threads[2];
    sem_t started;
    stage.page = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(stage.page != MAP_FAILED);
    atomic_store(&stage.parked, false);
    atomic_store(&stage.returned, false);
    atomic_store(&stage.early, false);
    sem_init(&started, 0, 0);
    assert_int_equal(peal_comm_open_threads(2, comms), PEAL_OK);
    stage.team = comms[0]->team;
    struct rank owner = {.comm = comms[0], .act = rows[row].owner, .started = &started};
    struct rank reader = {.comm = comms[1], .act = rows[row].reader, .started = &started};
    assert_int_equal(pthread_create(&threads[0], NULL, run_owner, &owner), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, run_reader, &reader), 0);
    for (int r = 0; r < 2; r++)
        pthread_join(threads[r], NULL);
    if (atomic_load(&stage.early))
        fail_msg("row of line %d: the owner came back (%s) while its memory was read",
                 rows[row].line, peal_status_text(owner.status));
    if (owner.status != PEAL_TIMEOUT)
        fail_msg("row of line %d: owner: %s: %s", rows[row].line, peal_status_text(owner.status),
                 peal_comm_error(comms[0]));
    for (int r = 0; r < 2; r++)
        peal_comm_close(comms[r]);
    sem_destroy(&started);
    munmap(stage.page, BYTES);
}

TEST(nobody_leaves_while_its_memory_is_read)
{
    struct sigaction action = {.sa_sigaction = park, .sa_flags = SA_SIGINFO}, before;
    sigaction(SIGSEGV, &action, &before);
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        run_row(row);
    sigaction(SIGSEGV, &before, NULL);
}

int main(void)
{
    return unit_run();
}
