/* SPDX-License-Identifier: Apache-2.0 */
/* See attach.h.
 *
 * Progress of the MPI: a rank that waits in Peal must let the MPI progress, because the peer it
 * waits for may itself be waiting for a message from this rank. Testing a generalized request that
 * never completes makes both MPIs progress on all communicators, and cannot match any message. Each
 * attached communicator has its own such request, so that no two threads test the same one.
 */
#include "attach.h"

#include "fail.h"
#include "requests.h"
#include "speed.h"
#include "stats.h"
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Communicators of a process that may be attached at once; each takes 8 MiB or more per rank. */
enum { MAX_ATTACHED = 32, JOB_BYTES = 48 };

static _Atomic uint32_t attached;

/* ---- one answer for all ranks ---- */

/* Replaces every word by the least of all ranks' words. */
static bool take_least(const struct peal_mpi_comm *state, uint64_t *words, int count)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    uint64_t least[8];
    if (abi->pmpi.Allreduce(words, least, count, abi->uint64, abi->op_min, state->comm) !=
        PEAL_MPI_SUCCESS)
        return false;
    memcpy(words, least, (size_t)count * sizeof *words);
    return true;
}

void peal_mpi_refuse(struct peal_mpi_comm *state, enum peal_mpi_reason why)
{
    state->phase = PEAL_MPI_REFUSED;
    state->why = why;
    peal_mpi_left_set(state);
    peal_mpi_stats_comm(state);
}

/* ---- progress of the MPI ---- */

static bool begin_progress(struct peal_mpi_comm *state)
{
    if (!state->has_progress)
        state->has_progress = peal_mpi_grequest_start(state->progress);
    return state->has_progress;
}

void peal_mpi_progress_end(struct peal_mpi_comm *state)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    char status[64];
    if (!state->has_progress)
        return;
    state->has_progress = false;
    peal_comm_set_idle(state->blocking, NULL, NULL);
    abi->pmpi.Grequest_complete(peal_mpi_load(abi, state->progress));
    abi->pmpi.Wait(state->progress, status);
}

static void drive_mpi(void *context)
{
    struct peal_mpi_comm *state = context;
    char status[64];
    int flag = 0;
    peal_mpi()->pmpi.Test(state->progress, &flag, status);
    peal_mpi_requests_progress();
}

/* ---- attaching ---- */

/* Two words that no other job is likely to have. */
static void fill_random(uint64_t words[static 2])
{
    if (getrandom(words, 2 * sizeof *words, 0) != 2 * sizeof *words)
        words[0] = words[1] = peal_mpi_now_ns() ^ (uint64_t)getpid() << 40;
}

/* This rank's part of opening; NULL if it fails here. */
static struct peal_comm *open_own(struct peal_mpi_comm *state, const char *job)
{
    struct peal_open options = {
        .struct_size = sizeof options, .size = state->size, .rank = state->rank, .job = job};
    struct peal_comm *comm = NULL;
    struct peal_mpi_store *store = NULL;
    if (state->spans && !peal_mpi_store_open(state, &store))
        return NULL;
    options.store = store ? peal_mpi_store_functions(store) : NULL;
    if (peal_comm_open(&options, &comm) != PEAL_OK)
        comm = NULL;
    peal_mpi_store_close(store);
    return comm;
}

/* Opens a Peal communicator on all ranks. NULL on all of them if one rank cannot. */
static struct peal_comm *open_together(struct peal_mpi_comm *state)
{
    char job[JOB_BYTES];
    /* Relaxed: threads that attach at the same time may exceed the limit by one. */
    uint64_t willing = begin_progress(state) &&
                       atomic_load_explicit(&attached, memory_order_relaxed) < MAX_ATTACHED;
    uint64_t words[3] = {willing, 0, 0};
    fill_random(words + 1);
    if (!take_least(state, words, 3) || !words[0])
        return NULL;
    snprintf(job, sizeof job, "mpi-%016llx%016llx", (unsigned long long)words[1],
             (unsigned long long)words[2]);
    struct peal_comm *comm = open_own(state, job);
    uint64_t all = comm != NULL;
    if (!take_least(state, &all, 1) || !all) {
        if (!comm && peal_mpi_settings()->stats)
            fprintf(stderr, "libpeal_mpi: rank %u: %s\n", state->rank, peal_comm_error(NULL));
        peal_comm_close(comm);
        return NULL;
    }
    atomic_fetch_add_explicit(&attached, 1, memory_order_relaxed);
    if (!getenv("PEAL_TIMEOUT_MS"))
        peal_comm_set_timeout(comm, 0); /* MPI has no time-outs */
    return comm;
}

/* Between hosts, data may still be waiting in the sender's memory when it leaves a collective to
 * compute or to call MPI_Recv, so a thread has to send it. libpeal reads this variable when it
 * opens a communicator on several hosts; it is set here, before there are threads. */
__attribute__((constructor)) static void set_progress(void)
{
    setenv("PEAL_PROGRESS", "thread", 0);
}

void peal_mpi_attach(struct peal_mpi_comm *state)
{
    state->blocking = open_together(state);
    if (!state->blocking) {
        peal_mpi_refuse(state, PEAL_MPI_NO_MEMORY);
        return;
    }
    peal_comm_set_idle(state->blocking, drive_mpi, state);
    state->phase = PEAL_MPI_ATTACHED;
    peal_mpi_stats_comm(state);
}

void peal_mpi_attach_requests(struct peal_mpi_comm *state)
{
    state->requests = open_together(state);
    state->requests_refused = !state->requests;
    peal_mpi_left_set(state);
}

void peal_mpi_detach(struct peal_mpi_comm *state)
{
    uint32_t open = (state->blocking != NULL) + (state->requests != NULL);
    peal_comm_close(state->blocking);
    peal_comm_close(state->requests);
    state->blocking = state->requests = NULL;
    atomic_fetch_sub_explicit(&attached, open, memory_order_relaxed); /* as in open_together */
}

/* ---- PEAL_MPI_CHECK ---- */

void peal_mpi_chain(const struct peal_mpi_call *call)
{
    struct peal_mpi_comm *state = call->state;
    uint64_t words[4] = {call->collective, call->starts, call->reason, call->bytes};
    if (peal_mpi_settings()->check)
        state->chain = peal_mpi_hash(state->chain, words, sizeof words);
}

static void print_decisions(const struct peal_mpi_call *call, const uint64_t *words)
{
    fprintf(stderr, "libpeal_mpi: ranks have decided differently:\n");
    for (uint32_t r = 0; r < call->state->size; r++)
        fprintf(stderr, "  rank %u: %s of %llu bytes, %s, decisions so far %016llx\n", r,
                peal_mpi_collective_name((enum peal_mpi_collective)words[4 * r]),
                (unsigned long long)words[4 * r + 2],
                words[4 * r + 1] == PEAL_MPI_TAKEN ? "Peal" : "MPI",
                (unsigned long long)words[4 * r + 3]);
}

/* The decisions of all ranks, 4 words each. */
static bool are_equal(const uint64_t *words, uint32_t size)
{
    for (uint32_t r = 1; r < size; r++) {
        if (memcmp(words + 4 * r, words, 4 * sizeof *words) != 0)
            return false;
    }
    return true;
}

bool peal_mpi_check(struct peal_mpi_call *call, int *code)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    struct peal_mpi_comm *state = call->state;
    if (state->phase == PEAL_MPI_REFUSED && state->why != PEAL_MPI_NO_MEMORY)
        return true;
    peal_mpi_chain(call);
    uint64_t own[4] = {call->collective, call->reason, call->bytes, state->chain};
    uint64_t *words = calloc(4 * (size_t)state->size, sizeof *words);
    bool same = words && abi->pmpi.Allgather(own, 4, abi->uint64, words, 4, abi->uint64,
                                             state->comm) == PEAL_MPI_SUCCESS;
    if (same)
        same = are_equal(words, state->size);
    if (!same && words && state->rank == 0)
        print_decisions(call, words);
    free(words);
    if (!same)
        *code = peal_mpi_fail(state, PEAL_MISMATCH, NULL);
    return same;
}
