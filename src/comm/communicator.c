/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: opening, closing, what they say about themselves.
 *
 * All ranks open or none does. Each rank makes its own part as far as it can, reports to the team
 * how that went (peal_team_join), and only then returns: if one rank has failed, all ranks return
 * its status.
 *
 * A communicator owns its team, engine, plans, rules and symmetric memory; closing frees them and
 * waits for no rank. What remains is a struct whose team is closed, so that a use after closing
 * returns a status. It is freed when 16 others have been closed and all its requests have been
 * freed. */
#include "comm/core/communicator.h"

#include "comm/choice/from_file.h"
#include "comm/core/arguments.h"
#include "comm/core/growth.h"
#include "comm/core/reductions.h"
#include "comm/hosts/meeting.h"
#include "comm/core/backend.h"
#include "comm/simulated/platform.h"
#include "comm/watch/watch.h"
#include "run/run.h"
#include "verify/verify.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The reason why the last open in this thread failed: there is no communicator to keep it. */
static _Thread_local char open_error[1024];

static enum peal_status fail_open(enum peal_status status, struct peal_text *why)
{
    snprintf(open_error, sizeof open_error, "%s",
             why->len > 0 ? peal_text_get(why) : peal_status_text(status));
    peal_text_release(why);
    return status;
}

enum peal_status peal_comm_fail(struct peal_comm *comm, enum peal_status status, const char *format,
                                ...)
{
    va_list args;
    va_start(args, format);
    comm->error.len = 0;
    peal_text_vprintf(&comm->error, format, args);
    va_end(args);
    return status;
}

enum peal_status peal_comm_check(struct peal_comm *comm)
{
    if (!comm)
        return PEAL_INVALID;
    if (__builtin_expect(peal_team_is_forked(comm->team), 0))
        return peal_comm_fail(
            comm, PEAL_INVALID,
            "this process was forked from rank %u and is not a rank itself: it can "
            "only close its copy",
            comm->team->rank);
    if (__builtin_expect(comm->team->idling, 0))
        return peal_comm_fail(comm, PEAL_INVALID, "called by the communicator's own idle function");
    enum peal_status failed = peal_team_failure(comm->team);
    if (__builtin_expect(failed != PEAL_OK, 0)) {
        peal_comm_fail(comm, PEAL_CLOSED, "%s", peal_text_get(&comm->team->error));
        peal_symmetric_isolate(comm);
        return failed == PEAL_REVOKED ? PEAL_REVOKED : PEAL_CLOSED;
    }
    peal_team_assist(comm->team);
    return PEAL_OK;
}

enum peal_status peal_comm_end(struct peal_comm *comm, enum peal_status status)
{
    if (__builtin_expect(status != PEAL_OK && comm->team->failed != PEAL_OK, 0)) {
        peal_comm_fail(comm, status, "%s", peal_text_get(&comm->team->error));
        peal_team_settle(comm->team);
        peal_symmetric_isolate(comm);
    }
    return status;
}

void peal_comm_forget(struct peal_comm *comm)
{
    for (uint32_t c = 0; c < PEAL_CALL_COUNT; c++) {
        comm->memos[c].image = NULL;
        comm->memos[c].repeats = false;
    }
}

/* Those of the communicator and of all memos, touched unless they may be left unused. */
static struct peal_bound *new_bounds(struct peal_comm *comm)
{
    size_t each = 2 * (size_t)comm->team->size + 2, bytes = each * sizeof *comm->bounds;
    bool lazy = comm->team->lazy;
    struct peal_bound *all =
        lazy ? calloc(1 + PEAL_CALL_COUNT, bytes) : malloc((1 + PEAL_CALL_COUNT) * bytes);
    if (!all)
        return NULL;
    if (!lazy)
        memset(all, 0, (1 + PEAL_CALL_COUNT) * bytes);
    for (uint32_t c = 0; c < PEAL_CALL_COUNT; c++)
        comm->memos[c].bounds = all + (1 + c) * each;
    return all;
}

/* A constant of the machine that takes milliseconds to find: asked for once per process, when its
 * first communicator is opened. Relaxed: two threads that ask at once get the same answer. */
static uint64_t core_cache(void)
{
    static _Atomic uint64_t known;
    uint64_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (!bytes) {
        bytes = peal_topo_core_cache();
        atomic_store_explicit(&known, bytes, memory_order_relaxed);
    }
    return bytes;
}

/* PEAL_VERIFY=1: no plan is launched that is not proved. */
static bool wants_proof(void)
{
    const char *wish = getenv("PEAL_VERIFY");
    return wish && wish[0] && strcmp(wish, "0") != 0;
}

static enum peal_status prove(const struct peal_plan *whole, struct peal_text *why)
{
    return peal_claim_check_plan(whole, NULL, why);
}

enum peal_status peal_comm_new(struct peal_team *team, const struct peal_comm *parent,
                               struct peal_comm **out)
{
    struct peal_comm *comm = calloc(1, sizeof *comm);
    if (!comm) {
        struct peal_text why = {0};
        (void)peal_team_join(team, PEAL_NO_MEMORY, peal_status_text(PEAL_NO_MEMORY), &why);
        peal_text_release(&why);
        peal_team_close(team);
        return PEAL_NO_MEMORY;
    }
    comm->team = team;
    comm->core_cache = core_cache();
    peal_plans_init(&comm->plans, team, wants_proof() ? prove : NULL);
    comm->bounds = new_bounds(comm);
    comm->backend = &peal_backend_host;
    comm->words = calloc(4 * (size_t)team->size, sizeof *comm->words);
    enum peal_status status = peal_calls_init(&comm->engine, team);
    char path[256];
    if (peal_tune_path(path, sizeof path)) {
        peal_rules_load(path, &comm->rules);
        if (comm->rules.bad_line && team->rank == 0 && !team->quiet)
            fprintf(stderr,
                    "peal: %s:%u: not a rule, left out (is this file of 'peal tune'? it can be "
                    "removed)\n",
                    path, comm->rules.bad_line);
    }
    if (status == PEAL_OK &&
        (!comm->bounds || !comm->words || !peal_reductions_inherit(comm, parent)))
        status = PEAL_NO_MEMORY;
    if (status == PEAL_OK)
        status = peal_env_force(comm);
    if (status == PEAL_OK)
        status = peal_plans_open(&comm->plans, parent ? &parent->plans : NULL, &comm->error);
    if (status == PEAL_OK)
        peal_arguments_prepare(comm);
    const char *reason = comm->error.len ? peal_text_get(&comm->error) : peal_status_text(status);
    struct peal_text why = {0};
    peal_text_puts(&why, status == PEAL_OK ? "" : reason);
    status = peal_team_join(team, status, reason, &why);
    if (status != PEAL_OK) {
        snprintf(open_error, sizeof open_error, "%s", peal_text_get(&why));
        peal_text_release(&why);
        peal_comm_close(comm);
        return status;
    }
    peal_text_release(&why);
    *out = comm;
    return PEAL_OK;
}

/* What was given, what the environment says, or `otherwise`. */
static uint32_t default_timeout(uint32_t given, uint32_t otherwise)
{
    const char *text = getenv("PEAL_TIMEOUT_MS");
    if (given != 0)
        return given;
    if (text && text[0])
        return (uint32_t)strtoul(text, NULL, 10);
    return otherwise;
}

enum { CALL_MS = 30 * 60 * 1000, MEET_MS = 60 * 1000 };

static uint32_t meeting_timeout(uint32_t given)
{
    uint32_t wish = default_timeout(given, MEET_MS);
    return wish != 0 ? wish : MEET_MS;
}

/* Of ranks that `peal exec` has started: one that has ended before it came is known to the
 * launcher. See peal_doctor_exit_text. */
static int has_ended(void *context, uint32_t rank, struct peal_text *reason)
{
    uint64_t word = 0;
    (void)context;
    if (pread(atoi(getenv("PEAL_STATUS_FD")), &word, sizeof word, rank * sizeof word) !=
            (ssize_t)sizeof word ||
        word == 0)
        return 0;
    if (reason)
        peal_doctor_exit_text((int32_t)(word >> 32), reason);
    return 1;
}

enum peal_status peal_comm_open(const struct peal_open *options, struct peal_comm **out)
{
    static const struct peal_open none = {0};
    struct peal_text why = {0};
    struct peal_env env = {0};
    struct peal_open known;
    options = options ? options : &none;
    size_t given = peal_growth_size(options->struct_size, PEAL_OPEN_FIRST_BYTES);
    if (!peal_growth_read(&known, sizeof known, options, given)) {
        peal_text_printf(&why,
                         "this libpeal %s is older than the program: it does not know every option "
                         "that the program sets",
                         peal_version_text());
        return fail_open(PEAL_UNSUPPORTED, &why);
    }
    options = &known;
    if (!out) {
        peal_text_puts(&why, "no place for the communicator");
        return fail_open(PEAL_INVALID, &why);
    }
    enum peal_status status = peal_env_check(&why);
    if (status != PEAL_OK)
        return fail_open(status, &why);
    struct peal_meet *meet = NULL;
    uint32_t nodes[PEAL_MOST_RANKS];
    status =
        peal_meeting_find(options, meeting_timeout(options->timeout_ms), &env, &meet, nodes, &why);
    if (status != PEAL_OK)
        return fail_open(status, &why);
    struct peal_team_options team_options = {.rank = env.rank,
                                             .size = env.size,
                                             .job = env.job,
                                             .timeout_ms =
                                                 default_timeout(options->timeout_ms, CALL_MS),
                                             .meet_ms = meeting_timeout(options->timeout_ms),
                                             .quiet = options->quiet != 0};
    if (options->size == 0 && getenv("PEAL_RANK") && getenv("PEAL_STATUS_FD"))
        team_options.gone = has_ended;
    if (env.rank == 0)
        peal_watch_forget_trace(env.job);
    struct peal_team *team;
    struct peal_comm *comm;
    if (meet) {
        status = peal_hosts_open(meet, nodes, &team_options, &why, &comm);
        peal_meet_close(meet);
        if (status != PEAL_OK)
            return fail_open(status, &why);
        peal_text_release(&why);
    } else {
        status = peal_team_open(&team_options, &why, &team);
        if (status != PEAL_OK)
            return fail_open(status, &why);
        peal_text_release(&why);
        status = peal_comm_new(team, NULL, &comm);
        if (status != PEAL_OK)
            return status;
    }
    status = peal_platform_open(comm, options->clock);
    if (status != PEAL_OK) {
        snprintf(open_error, sizeof open_error, "%s", peal_comm_error(comm));
        peal_comm_close(comm);
        return status;
    }
    peal_watch_open(comm, NULL);
    *out = comm;
    return PEAL_OK;
}

enum peal_status peal_comm_open_threads(uint32_t size, struct peal_comm **comms)
{
    struct peal_text why = {0};
    if (!comms || size == 0) {
        peal_text_puts(&why, comms ? "no ranks" : "no place for the communicators");
        return fail_open(PEAL_INVALID, &why);
    }
    if (size > PEAL_MOST_RANKS) {
        peal_text_printf(&why, "%u ranks; at most %d are supported", size, PEAL_MOST_RANKS);
        return fail_open(PEAL_UNSUPPORTED, &why);
    }
    struct peal_team *teams[PEAL_MOST_RANKS];
    enum peal_status status = peal_env_check(&why);
    if (status != PEAL_OK)
        return fail_open(status, &why);
    status = peal_team_open_threads(size, default_timeout(0, CALL_MS), &why, teams);
    if (status != PEAL_OK)
        return fail_open(status, &why);
    uint32_t made = 0;
    for (; made < size; made++) {
        status = peal_comm_new(teams[made], NULL, &comms[made]);
        if (status != PEAL_OK) {
            peal_text_puts(&why, open_error);
            goto close; /* its team is closed already */
        }
    }
    status = peal_platform_open_threads(size, comms);
    if (status != PEAL_OK) {
        peal_text_puts(&why, peal_comm_error(comms[0]));
        goto close;
    }
    for (uint32_t r = 0; r < size; r++)
        peal_watch_open(comms[r], NULL);
    return PEAL_OK;
close:
    for (uint32_t r = 0; r < made; r++)
        peal_comm_close(comms[r]);
    for (uint32_t r = made + 1; r < size; r++)
        peal_team_close(teams[r]);
    return fail_open(status, &why);
}

/* ---- closing ---- */

void peal_comm_drop(struct peal_comm *comm)
{
    /* Partner: the other users' decrements; the last one sees what they wrote. */
    if (atomic_fetch_sub_explicit(&comm->users, 1, memory_order_acq_rel) != 1)
        return;
    peal_text_release(&comm->error);
    peal_text_release(&comm->explained);
    free(comm);
}

/* Keeps a closed communicator, so that a use after closing returns PEAL_CLOSED, and lets go of the
 * one that was closed 16 before it. */
static void keep_closed(struct peal_comm *comm)
{
    enum { PLACES = 16 };
    static _Atomic(struct peal_comm *) places[PLACES];
    static _Atomic uint32_t next;
    /* Relaxed: any place will do. */
    uint32_t place = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % PLACES;
    /* acq_rel: partner is the exchange that finds this one here, and drops it. */
    comm = atomic_exchange_explicit(&places[place], comm, memory_order_acq_rel);
    if (comm)
        peal_comm_drop(comm);
}

void peal_comm_close(struct peal_comm *comm)
{
    if (!comm || peal_team_is_closed(comm->team))
        return;
    peal_comm_drop_twin(comm);
    for (uint32_t c = 0; c < PEAL_CALL_COUNT; c++)
        peal_from_file_drop(comm, c);
    peal_user_kernels_detach(comm);
    peal_platform_close(comm->platform);
    peal_symmetric_release(comm);
    peal_calls_release(&comm->engine);
    peal_watch_close(comm);
    peal_plans_release(&comm->plans);
    peal_rules_release(&comm->rules);
    peal_team_close(comm->team);
    free(comm->bounds);
    free(comm->words);
    free(comm->formulas);
    comm->formulas = NULL;
    comm->nformulas = 0;
    peal_text_release(&comm->error);
    peal_text_release(&comm->explained);
    uint32_t requests = comm->requests;
    memset(comm, 0, sizeof *comm);
    comm->team = comm->engine.team = comm->engine.mail.team = peal_team_closed();
    atomic_init(&comm->users, requests + 1);
    keep_closed(comm);
}

uint32_t peal_comm_rank(const struct peal_comm *comm)
{
    return comm ? comm->team->rank : 0;
}

uint32_t peal_comm_size(const struct peal_comm *comm)
{
    return comm ? comm->team->size : 0;
}

void peal_comm_set_timeout(struct peal_comm *comm, uint32_t timeout_ms)
{
    /* Relaxed; partner: peal_team_timeout. */
    if (!comm || peal_team_is_closed(comm->team))
        return;
    atomic_store_explicit(&comm->team->timeout_ms, timeout_ms, memory_order_relaxed);
}

void peal_comm_revoke(struct peal_comm *comm)
{
    if (comm && !peal_team_is_closed(comm->team) && !peal_team_is_forked(comm->team))
        peal_team_revoke(comm->team);
}

void peal_comm_set_idle(struct peal_comm *comm, void (*idle)(void *context), void *context)
{
    if (!comm || peal_team_is_closed(comm->team))
        return;
    comm->team->idle_context = context;
    comm->team->idle = idle;
}

void peal_comm_set_interrupt(struct peal_comm *comm, int (*interrupted)(void *context),
                             void *context)
{
    if (!comm || peal_team_is_closed(comm->team))
        return;
    comm->team->interrupted_context = context;
    comm->team->interrupted = interrupted;
}

const char *peal_comm_error(const struct peal_comm *comm)
{
    return comm ? peal_text_get(&comm->error) : open_error;
}

uint64_t peal_comm_simulated_ps(const struct peal_comm *comm)
{
    return comm ? peal_platform_time(comm->platform) : 0;
}
