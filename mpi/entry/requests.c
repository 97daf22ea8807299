/* SPDX-License-Identifier: Apache-2.0 */
/* See requests.h. */
#include "requests.h"

#include "fail.h"
#include "job.h"
#include "stats.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum {
    MAX_UNDER_WAY = 4,    /* per communicator, in Peal */
    LEAST_NAP_NS = 50000, /* of the thread, between two rounds of tests */
    MAX_NAP_NS = 1000000,
    LINGER_NAPS = 100 /* after the last request, before the thread ends */
};

struct entry {
    struct entry *next;
    struct peal_mpi_comm *state;
    struct peal_mpi_job job;
    struct peal_request *request; /* NULL: not started yet, or ended */
    bool started, ended;
    enum peal_status status; /* once it has ended */
    char handle[8];          /* the MPI's request */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *first, **tail = &first; /* in the order of the calls */
static _Atomic uint32_t pending;
static bool has_thread, stopping;
static pthread_t thread;

uint32_t peal_mpi_requests_pending(void)
{
    /* Relaxed: a thread that waits for a request has started it, or was given it by the one that
     * has. */
    return atomic_load_explicit(&pending, memory_order_relaxed);
}

/* ---- progress; the caller holds the lock ---- */

static uint32_t count_under_way(const struct peal_mpi_comm *state)
{
    uint32_t count = 0;
    for (const struct entry *entry = first; entry; entry = entry->next)
        count += entry->state == state && entry->started && !entry->ended;
    return count;
}

static void end_entry(struct entry *entry, enum peal_status status)
{
    entry->ended = true;
    entry->request = NULL;
    entry->status = status;
}

/* Starts an entry if there is room, unless an earlier one of its communicator still waits for
 * room. */
static void start_entry(struct entry *entry)
{
    for (const struct entry *before = first; before != entry; before = before->next) {
        if (before->state == entry->state && !before->started)
            return;
    }
    if (count_under_way(entry->state) >= MAX_UNDER_WAY)
        return;
    entry->started = true;
    enum peal_status status =
        peal_mpi_job_start(&entry->job, entry->state->requests, &entry->request);
    if (status != PEAL_OK)
        end_entry(entry, status);
}

static void progress_all(void)
{
    for (struct entry *entry = first; entry; entry = entry->next) {
        if (!entry->started)
            start_entry(entry);
        if (!entry->started || entry->ended)
            continue;
        enum peal_status status = peal_request_test(entry->request);
        if (status != PEAL_PENDING)
            end_entry(entry, status);
    }
}

void peal_mpi_requests_progress(void)
{
    if (peal_mpi_requests_pending() == 0 || pthread_mutex_trylock(&lock) != 0)
        return;
    progress_all();
    pthread_mutex_unlock(&lock);
}

/* ---- completion, in threads of the program ---- */

/* Removes the first entry that has ended from the list; NULL: there is none. */
static struct entry *take_ended(void)
{
    for (struct entry **link = &first; *link; link = &(*link)->next) {
        struct entry *entry = *link;
        if (!entry->ended)
            continue;
        *link = entry->next;
        if (tail == &entry->next)
            tail = link;
        return entry;
    }
    return NULL;
}

static int complete(struct entry *entry)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    int code = PEAL_MPI_SUCCESS;
    peal_mpi_job_end(&entry->job, entry->status);
    if (entry->status != PEAL_OK)
        code = peal_mpi_fail(entry->state, entry->status, entry->state->requests);
    abi->pmpi.Grequest_complete(peal_mpi_load(abi, entry->handle));
    peal_mpi_comm_drop(entry->state);
    free(entry);
    /* Relaxed: see peal_mpi_requests_pending. */
    atomic_fetch_sub_explicit(&pending, 1, memory_order_relaxed);
    return code;
}

int peal_mpi_requests_complete(void)
{
    int code = PEAL_MPI_SUCCESS;
    if (pthread_mutex_trylock(&lock) != 0)
        return code;
    progress_all();
    for (struct entry *entry; (entry = take_ended()) != NULL;) {
        pthread_mutex_unlock(&lock); /* an error handler may call anything */
        int failed = complete(entry);
        if (failed)
            code = failed;
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* ---- waits that are not intercepted ---- */

/* A tool that calls PMPI_Wait bypasses this library. While Open MPI waits, it calls the functions
 * that are registered with its progress engine; that is an extension, which other MPIs do not have.
 * MPICH's extended generalized requests have a function for waits, too, but it is also called by
 * tests. */
typedef int register_progress(int (*progress)(void));

static pthread_once_t hook_once = PTHREAD_ONCE_INIT;

static int progress_hook(void)
{
    if (peal_mpi_requests_pending() > 0)
        peal_mpi_requests_complete();
    return 0;
}

static void set_hook(void)
{
    register_progress *hook = NULL;
    if (peal_mpi()->flavour == PEAL_MPI_OPEN)
        *(void **)&hook = peal_mpi_find("opal_progress_register");
    if (hook)
        hook(progress_hook);
}

/* ---- the thread ---- */

static void nap(long ns)
{
    struct timespec time = {0, ns};
    nanosleep(&time, NULL);
}

/* True if the thread is to end: it has had no request for a while. The caller holds the lock. */
static bool is_done(uint32_t idle)
{
    return stopping || (!first && idle >= LINGER_NAPS);
}

static void *look_after(void *unused)
{
    uint32_t idle = 0;
    long wait = LEAST_NAP_NS;
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!is_done(idle)) {
        bool any = first != NULL;
        progress_all();
        pthread_mutex_unlock(&lock);
        idle = any ? 0 : idle + 1;
        wait = wait * 2 < MAX_NAP_NS ? wait * 2 : MAX_NAP_NS;
        if (!any)
            wait = MAX_NAP_NS;
        nap(wait);
        pthread_mutex_lock(&lock);
    }
    has_thread = false;
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* The caller holds the lock. Signals are blocked in the thread, and so go to threads of the
 * program. */
static bool ensure_thread(void)
{
    sigset_t every, before;
    pthread_attr_t attributes;
    if (has_thread || stopping)
        return has_thread;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    has_thread = pthread_create(&thread, &attributes, look_after, NULL) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return has_thread;
}

void peal_mpi_requests_stop(void)
{
    pthread_mutex_lock(&lock);
    stopping = true;
    while (has_thread) {
        pthread_mutex_unlock(&lock);
        nap(LEAST_NAP_NS);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- starting ---- */

static int query(void *extra, void *status)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    (void)extra;
    abi->pmpi.Status_set_elements(status, abi->byte, 0);
    abi->pmpi.Status_set_cancelled(status, 0);
    return PEAL_MPI_SUCCESS;
}

static int ignore(void *extra)
{
    (void)extra;
    return PEAL_MPI_SUCCESS;
}

static int refuse_cancel(void *extra, int complete_already)
{
    (void)extra, (void)complete_already;
    return PEAL_MPI_SUCCESS;
}

bool peal_mpi_grequest_start(void *request)
{
    return peal_mpi()->pmpi.Grequest_start(query, ignore, refuse_cancel, NULL, request) ==
           PEAL_MPI_SUCCESS;
}

/* The call cannot be made here. Closing Peal's communicator tells the other ranks, which wait for
 * it. */
static int give_up(struct peal_mpi_comm *state, struct entry *entry)
{
    free(entry);
    int code = peal_mpi_fail(state, PEAL_NO_MEMORY, NULL);
    pthread_mutex_lock(&lock);
    peal_comm_close(state->requests);
    pthread_mutex_unlock(&lock);
    return code;
}

int peal_mpi_request_start(struct peal_mpi_call *call, void *request)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    struct peal_mpi_comm *state = call->state;
    struct entry *entry = calloc(1, sizeof *entry);
    if (state->failure) {
        free(entry);
        return peal_mpi_fail(state, PEAL_CLOSED, state->requests);
    }
    if (!entry || peal_mpi_job_begin(&entry->job, call) != PEAL_OK)
        return give_up(state, entry);
    pthread_once(&hook_once, set_hook);
    if (!peal_mpi_grequest_start(request)) {
        peal_mpi_job_end(&entry->job, PEAL_NO_MEMORY);
        return give_up(state, entry);
    }
    __builtin_memcpy(entry->handle, request, abi->int_handles ? 4 : 8);
    entry->state = state;
    /* Relaxed: the communicator still has its attribute, which counts as a user. */
    atomic_fetch_add_explicit(&state->users, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&pending, 1, memory_order_relaxed);
    pthread_mutex_lock(&lock);
    *tail = entry;
    tail = &entry->next;
    start_entry(entry);
    bool moving = ensure_thread();
    pthread_mutex_unlock(&lock);
    if (!moving)
        return give_up(state, NULL); /* without the thread, progress is not assured */
    if (peal_mpi_settings()->stats)
        peal_mpi_stats_add(call);
    return PEAL_MPI_SUCCESS;
}
