/* SPDX-License-Identifier: Apache-2.0 */
/* See take.h. */
#include "take.h"

#include "attach.h"
#include "fail.h"
#include "agree.h"
#include "job.h"
#include "judge.h"
#include "requests.h"
#include "speed.h"
#include "stats.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the following three */
static struct peal_mpi_comm *all;
static int keyval;
static bool has_keyval;

static _Atomic bool over;

PEAL_MPI_OWN_THREAD struct peal_mpi_recent peal_mpi_recent[PEAL_MPI_RECENT];
_Atomic uint64_t peal_mpi_frees = 1;
PEAL_MPI_OWN_THREAD struct peal_mpi_last peal_mpi_last;

/* True once MPI_Finalize has begun. */
static bool is_over(void)
{
    /* Relaxed: the thread that finalizes sets it, when no other may call the MPI any more. */
    return atomic_load_explicit(&over, memory_order_relaxed);
}

/* ---- communicators ---- */

void peal_mpi_comm_drop(struct peal_mpi_comm *state)
{
    /* Partner: the decrements of the other users; the last one sees what they did. */
    if (atomic_fetch_sub_explicit(&state->users, 1, memory_order_acq_rel) != 1)
        return;
    peal_mpi_detach(state);
    free(state);
}

static int copy_nothing(void *comm, int key, void *extra, void *value, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)value, (void)out;
    *flag = 0;
    return PEAL_MPI_SUCCESS;
}

/* Invalidates the cache of every thread. */
static void forget_recent(void)
{
    atomic_fetch_add_explicit(&peal_mpi_frees, 1, memory_order_relaxed); /* see peal_mpi_recall */
}

/* Called by the MPI when the program frees the communicator. */
static int forget(void *comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    struct peal_mpi_comm *state = value;
    pthread_mutex_lock(&lock);
    *state->link = state->next;
    if (state->next)
        state->next->link = state->link;
    pthread_mutex_unlock(&lock);
    forget_recent();
    peal_mpi_progress_end(state);
    state->comm = peal_mpi()->comm_self; /* pending requests report errors there */
    peal_mpi_comm_drop(state);
    return PEAL_MPI_SUCCESS;
}

/* Called when MPI_Finalize begins, because it belongs to an attribute of MPI_COMM_SELF. From here
 * on all calls go to the MPI, on all ranks: functions of other attributes may still make some. */
static int finish(void *comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    peal_mpi_requests_stop();
    peal_mpi_stats_print();
    atomic_store_explicit(&over, true, memory_order_relaxed); /* see is_over */
    forget_recent();
    pthread_mutex_lock(&lock);
    for (struct peal_mpi_comm *state = all; state; state = state->next) {
        peal_mpi_progress_end(state);
        peal_mpi_detach(state);
    }
    pthread_mutex_unlock(&lock);
    return PEAL_MPI_SUCCESS;
}

static bool make_keyvals(const struct peal_mpi_abi *abi)
{
    int finish_key;
    if (abi->pmpi.Comm_create_keyval(copy_nothing, forget, &keyval, NULL) != 0)
        return false;
    if (abi->pmpi.Comm_create_keyval(copy_nothing, finish, &finish_key, NULL) != 0)
        return false;
    return abi->pmpi.Comm_set_attr(abi->comm_self, finish_key, &all) == PEAL_MPI_SUCCESS;
}

/* Ranks that the program spawned or connected to may run without this library, and then would not
 * answer a message. All ranks of such a communicator find some that are in another world. */
static bool has_other_worlds(const struct peal_mpi_comm *state)
{
    int places[PEAL_MOST_RANKS];
    return !peal_mpi_find_in_world(state->comm, state->size, places);
}

static void describe_comm(const struct peal_mpi_abi *abi, struct peal_mpi_comm *state)
{
    int inter = 0, rank = 0, size = 0;
    abi->pmpi.Comm_test_inter(state->comm, &inter);
    abi->pmpi.Comm_rank(state->comm, &rank);
    abi->pmpi.Comm_size(state->comm, &size);
    state->rank = (uint32_t)rank;
    state->size = (uint32_t)size;
    state->phase = PEAL_MPI_NEW;
    if (inter)
        state->why = PEAL_MPI_INTER;
    else if (size < 2)
        state->why = PEAL_MPI_ALONE;
    else if (size > PEAL_MOST_RANKS)
        state->why = PEAL_MPI_LARGE;
    else if (has_other_worlds(state))
        state->why = PEAL_MPI_OTHER_WORLD;
    if (state->why != PEAL_MPI_TAKEN)
        state->phase = PEAL_MPI_REFUSED;
    peal_mpi_left_set(state);
}

static struct peal_mpi_comm *new_comm(const struct peal_mpi_abi *abi, void *comm)
{
    struct peal_mpi_comm *state = calloc(1, sizeof *state);
    if (!state) {
        /* Going on is not possible: the other ranks would wait for this one's settings. */
        fprintf(stderr, "libpeal_mpi: no memory for a communicator\n");
        abort();
    }
    state->comm = comm;
    atomic_init(&state->users, 1);
    describe_comm(abi, state);
    if (abi->pmpi.Comm_set_attr(comm, keyval, state) != PEAL_MPI_SUCCESS) {
        free(state);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    state->next = all;
    state->link = &all;
    if (all)
        all->link = &state->next;
    all = state;
    pthread_mutex_unlock(&lock);
    return state;
}

static __attribute__((noinline)) struct peal_mpi_comm *find_comm(const struct peal_mpi_abi *abi,
                                                                 void *comm)
{
    int is_up = 0, found = 0;
    if (comm == abi->comm_null || is_over())
        return NULL;
    abi->pmpi.Initialized(&is_up);
    if (!is_up)
        return NULL;
    pthread_mutex_lock(&lock);
    if (!has_keyval)
        has_keyval = make_keyvals(abi);
    pthread_mutex_unlock(&lock);
    struct peal_mpi_comm *state = NULL;
    if (!has_keyval || abi->pmpi.Comm_get_attr(comm, keyval, &state, &found) != PEAL_MPI_SUCCESS)
        return NULL;
    if (!found)
        state = new_comm(abi, comm);
    if (state)
        *peal_mpi_recent_at(comm) = (struct peal_mpi_recent){
            comm, state, atomic_load_explicit(&peal_mpi_frees, memory_order_relaxed)};
    return state;
}

/* NULL if all calls on it go to the MPI. */
static inline struct peal_mpi_comm *look_up(const struct peal_mpi_abi *abi, void *comm)
{
    struct peal_mpi_comm *recent = peal_mpi_recall(comm);
    return __builtin_expect(recent != NULL, 1) ? recent : find_comm(abi, comm);
}

/* ---- decisions ---- */

bool peal_mpi_is_left(enum peal_mpi_collective collective, const void *comm, int count,
                      const void *type)
{
    const struct peal_mpi_comm *state = peal_mpi_recall(comm);
    if (!state || state->left[collective] == 0)
        return false;
    const struct peal_mpi_type *known = peal_mpi_type_find(type);
    if (!known)
        return false;
    peal_mpi_last = (struct peal_mpi_last){
        comm, type, atomic_load_explicit(&peal_mpi_frees, memory_order_relaxed), state,
        known->bytes};
    return peal_mpi_is_left_again(collective, comm, count, type);
}

/* First what is known of the communicator, then the call itself. */
static enum peal_mpi_reason decide(struct peal_mpi_call *call)
{
    const struct peal_mpi_comm *state = call->state;
    if (state->phase == PEAL_MPI_REFUSED)
        return state->why;
    return peal_mpi_judge(call);
}

static bool wants_requests(const struct peal_mpi_comm *state)
{
    return state->phase == PEAL_MPI_ATTACHED && !state->requests && !state->requests_refused &&
           state->request_score > peal_mpi_settings()->attach;
}

/* Counts a call towards attaching. Until then, calls that Peal could take go to the MPI. */
static void count_call(struct peal_mpi_call *call)
{
    struct peal_mpi_comm *state = call->state;
    const struct peal_mpi_settings *settings = peal_mpi_settings();
    if (call->reason == PEAL_MPI_TAKEN && state->phase == PEAL_MPI_COUNTING) {
        state->score += peal_mpi_score(call);
        if (state->score > settings->attach) {
            peal_mpi_attach(state);
            call->reason = decide(call);
        }
        if (call->reason == PEAL_MPI_TAKEN && state->phase == PEAL_MPI_COUNTING)
            call->reason = PEAL_MPI_EARLY;
    }
    if (wants_requests(state))
        peal_mpi_attach_requests(state);
}

static int run_call(struct peal_mpi_call *call)
{
    struct peal_mpi_comm *state = call->state;
    struct peal_mpi_job job;
    enum peal_status status = peal_mpi_job_begin(&job, call);
    if (__builtin_expect(status != PEAL_OK, 0)) {
        /* Closing it tells the other ranks, which wait for this one. */
        int code = peal_mpi_fail(state, status, NULL);
        peal_comm_close(state->blocking);
        return code;
    }
    status = peal_mpi_job_run(&job, state->blocking);
    peal_mpi_job_end(&job, status);
    if (__builtin_expect(status != PEAL_OK, 0))
        return peal_mpi_fail(state, status, state->blocking);
    return PEAL_MPI_SUCCESS;
}

bool peal_mpi_take(struct peal_mpi_call *call, int *code)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    const struct peal_mpi_settings *settings = peal_mpi_settings();
    if (settings->stats)
        call->since_ns = peal_mpi_now_ns();
    call->comm = peal_mpi_handle(abi, call->comm);
    call->state = look_up(abi, call->comm);
    call->reason = PEAL_MPI_WRONG;
    if (!call->state)
        return false;
    if (__builtin_expect(call->state->failure, 0)) {
        *code = peal_mpi_fail(call->state, PEAL_CLOSED, call->state->blocking);
        return true;
    }
    if (__builtin_expect(call->state->phase == PEAL_MPI_NEW, 0))
        peal_mpi_agree(call->state);
    call->reason = decide(call);
    if (__builtin_expect(call->state->phase == PEAL_MPI_COUNTING || wants_requests(call->state), 0))
        count_call(call);
    if (__builtin_expect(settings->check, 0) && !peal_mpi_check(call, code))
        return true;
    if (call->reason != PEAL_MPI_TAKEN)
        return false;
    *code = run_call(call);
    if (settings->stats)
        peal_mpi_stats_add(call);
    return true;
}

/* Counts a call towards opening a communicator for requests. That happens in the next blocking
 * call, which must not be left to the MPI before. */
static void count_start(const struct peal_mpi_call *call)
{
    struct peal_mpi_comm *state = call->state;
    state->request_score += peal_mpi_score(call);
    if (wants_requests(state))
        memset(state->left, 0, sizeof state->left);
}

bool peal_mpi_take_start(struct peal_mpi_call *call)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    if (peal_mpi_settings()->stats)
        call->since_ns = peal_mpi_now_ns();
    call->starts = true;
    call->comm = peal_mpi_handle(abi, call->comm);
    call->state = look_up(abi, call->comm);
    call->reason = PEAL_MPI_WRONG;
    if (!call->state)
        return false;
    struct peal_mpi_comm *state = call->state;
    if (state->failure)
        return true; /* peal_mpi_request_start reports it */
    if (state->phase == PEAL_MPI_NEW) {
        call->reason = PEAL_MPI_EARLY;
        state->request_score++; /* without the size: nothing is known of the other ranks yet */
        return false;
    }
    call->reason = decide(call);
    if (call->reason == PEAL_MPI_TAKEN && !state->requests) {
        count_start(call);
        call->reason = state->requests_refused ? PEAL_MPI_NO_MEMORY : PEAL_MPI_EARLY;
    }
    peal_mpi_chain(call);
    return call->reason == PEAL_MPI_TAKEN;
}

int peal_mpi_passed(const struct peal_mpi_call *call, int code)
{
    if (__builtin_expect(peal_mpi_settings()->stats, 0))
        peal_mpi_stats_add(call);
    return code;
}
