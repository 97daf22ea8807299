/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: opening, closing, what they say about themselves. */
#include "comm/communicator.h"

#include "comm/arguments.h"
#include "comm/env.h"
#include "comm/growth.h"
#include "comm/simulated/platform.h"
#include "comm/rules.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (__builtin_expect(peal_team_failure(comm->team) != PEAL_OK, 0)) {
        peal_comm_fail(comm, PEAL_CLOSED, "%s", peal_text_get(&comm->team->error));
        peal_symmetric_isolate(comm);
        return PEAL_CLOSED;
    }
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

/* PEAL_ALGO="allreduce=ring,broadcast=flat". What is not understood is an error: a forced
 * algorithm that is not taken would be worse. */
static enum peal_status force_from_env(struct peal_comm *comm)
{
    const char *text = getenv("PEAL_ALGO");
    char copy[512];
    if (!text)
        return PEAL_OK;
    if (strlen(text) >= sizeof copy)
        return peal_comm_fail(comm, PEAL_INVALID, "PEAL_ALGO has more than %zu bytes",
                              sizeof copy - 1);
    snprintf(copy, sizeof copy, "%s", text);
    char *rest = copy;
    for (char *item; (item = strsep(&rest, ",")) != NULL;) {
        char *algo = strchr(item, '=');
        if (item[0] == '\0')
            continue;
        if (!algo)
            return peal_comm_fail(comm, PEAL_INVALID, "PEAL_ALGO: '%s' is not COLLECTIVE=ALGO",
                                  item);
        *algo++ = '\0';
        enum peal_status status = peal_comm_set_algo(comm, item, algo);
        if (status != PEAL_OK)
            return status;
    }
    return PEAL_OK;
}

/* Those of the communicator and of all memos, touched. */
static struct peal_bound *new_bounds(struct peal_comm *comm)
{
    size_t each = 2 * (size_t)comm->team->size + 2, bytes = each * sizeof *comm->bounds;
    struct peal_bound *all = malloc((1 + PEAL_CALL_COUNT) * bytes);
    if (!all)
        return NULL;
    memset(all, 0, (1 + PEAL_CALL_COUNT) * bytes);
    for (uint32_t c = 0; c < PEAL_CALL_COUNT; c++)
        comm->memos[c].bounds = all + (1 + c) * each;
    return all;
}

enum peal_status peal_comm_new(struct peal_team *team, struct peal_comm **out)
{
    struct peal_comm *comm = calloc(1, sizeof *comm);
    if (!comm) {
        peal_team_close(team);
        return PEAL_NO_MEMORY;
    }
    comm->team = team;
    peal_plans_init(&comm->plans, team);
    comm->bounds = new_bounds(comm);
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
    if (status == PEAL_OK && (!comm->bounds || !comm->words))
        status = PEAL_NO_MEMORY;
    if (status == PEAL_OK)
        status = force_from_env(comm);
    if (status == PEAL_OK)
        status = peal_plans_open(&comm->plans, &comm->error);
    if (status == PEAL_OK)
        peal_arguments_prepare(comm);
    if (status != PEAL_OK) {
        snprintf(open_error, sizeof open_error, "%s", peal_text_get(&comm->error));
        peal_comm_close(comm);
        return status;
    }
    *out = comm;
    return PEAL_OK;
}

static uint32_t default_timeout(uint32_t given)
{
    const char *text = getenv("PEAL_TIMEOUT_MS");
    if (given != 0)
        return given;
    return text && text[0] ? (uint32_t)strtoul(text, NULL, 10) : 60000;
}

/* Rank 0: reads where the others are, because those on another host could not even connect to say
 * so. Leaves a line in `verdict` if one is elsewhere. */
static enum peal_status compare_hosts(const struct peal_open *how, const char *name,
                                      const char *own, char verdict[static 160],
                                      struct peal_text *why)
{
    for (uint32_t r = 1; r < how->size; r++) {
        char key[96], host[112];
        size_t len = 0;
        snprintf(key, sizeof key, "peal-host-%.60s-%u", name, r);
        if (how->store->get(how->store->context, key, host, sizeof host - 1, &len) != 0 ||
            len >= sizeof host) {
            peal_text_printf(why, "the store did not give the host of rank %u", r);
            return PEAL_SYSTEM;
        }
        host[len] = '\0';
        if (strcmp(host, own) != 0) {
            snprintf(verdict, 160, "!rank %u is on another host ('%.*s', not '%.*s')", r,
                     (int)strcspn(host, " "), host, (int)strcspn(own, " "), own);
            return PEAL_OK;
        }
    }
    return PEAL_OK;
}

/* Agrees on an unguessable job name through a store: rank 0 makes it, once all others have told
 * their hosts; a '!' and a reason instead of the name refuses everyone. */
static enum peal_status meet_by_store(const struct peal_open *how, char job[static 64],
                                      struct peal_text *why)
{
    const struct peal_store *store = how->store;
    const char *name = how->job ? how->job : "";
    char key[96], own[112], made[161] = "";
    size_t len = 0;
    peal_host_identify(own);
    if (how->rank == 0) {
        enum peal_status status = compare_hosts(how, name, own, made, why);
        if (status != PEAL_OK)
            return status;
        if (made[0] == '\0')
            peal_job_make(made);
        len = strlen(made);
    } else {
        snprintf(key, sizeof key, "peal-host-%.60s-%u", name, how->rank);
        if (store->set(store->context, key, own, strlen(own)) != 0) {
            peal_text_puts(why, "the store refused to set the host's name");
            return PEAL_SYSTEM;
        }
    }
    snprintf(key, sizeof key, "peal-job-%.60s", name);
    int failed = how->rank == 0 ? store->set(store->context, key, made, len)
                                : store->get(store->context, key, made, sizeof made - 1, &len);
    if (failed != 0 || len >= sizeof made) {
        peal_text_puts(why, how->rank == 0 ? "the store refused to set the job's name"
                                           : "the store did not give the job's name");
        return PEAL_SYSTEM;
    }
    made[len] = '\0';
    if (made[0] == '!') {
        peal_text_printf(why, "%s; all ranks must be on one host", made + 1);
        return PEAL_UNSUPPORTED;
    }
    snprintf(job, 64, "%.63s", made);
    return PEAL_OK;
}

enum peal_status peal_comm_open(const struct peal_open *how, struct peal_comm **out)
{
    static const struct peal_open none = {0};
    struct peal_text why = {0};
    struct peal_env env = {0};
    struct peal_open known;
    how = how ? how : &none;
    size_t given = how->struct_size ? how->struct_size : PEAL_OPEN_FIRST_BYTES;
    if (!peal_growth_read(&known, sizeof known, how, given)) {
        peal_text_printf(&why, "this libpeal %s does not know all that the program asks for",
                         peal_version_text());
        return fail_open(PEAL_UNSUPPORTED, &why);
    }
    how = &known;
    if (!out) {
        peal_text_puts(&why, "no place for the communicator");
        return fail_open(PEAL_INVALID, &why);
    }
    enum peal_status status = peal_env_check(&why);
    if (status != PEAL_OK)
        return fail_open(status, &why);
    if (how->size == 0) {
        status = peal_env_read(&env, &why);
        if (status == PEAL_OK && how->job)
            peal_env_job(how->job, env.job);
    } else {
        env = (struct peal_env){.rank = how->rank, .size = how->size};
        peal_env_job(how->job ? how->job : "", env.job);
        if (how->rank >= how->size) {
            peal_text_printf(&why, "rank %u of %u ranks", how->rank, how->size);
            status = PEAL_INVALID;
        } else if (how->store) {
            status = meet_by_store(how, env.job, &why);
        } else if (!how->job && how->size > 1) {
            peal_text_puts(&why, "a job name or a store is needed to find the other ranks");
            status = PEAL_INVALID;
        }
    }
    if (status == PEAL_OK && env.size > PEAL_MOST_RANKS) {
        peal_text_printf(&why, "%u ranks; at most %d are supported", env.size, PEAL_MOST_RANKS);
        status = PEAL_UNSUPPORTED;
    }
    if (status != PEAL_OK)
        return fail_open(status, &why);
    struct peal_team_how team_how = {.rank = env.rank,
                                     .size = env.size,
                                     .job = env.job,
                                     .timeout_ms = default_timeout(how->timeout_ms),
                                     .quiet = how->quiet != 0};
    struct peal_team *team;
    status = peal_team_open(&team_how, &why, &team);
    if (status != PEAL_OK)
        return fail_open(status, &why);
    peal_text_release(&why);
    struct peal_comm *comm;
    status = peal_comm_new(team, &comm);
    if (status != PEAL_OK)
        return status;
    status = peal_platform_open(comm, how->clock, &comm->platform);
    if (status != PEAL_OK) {
        snprintf(open_error, sizeof open_error, "%s", peal_comm_error(comm));
        peal_comm_close(comm);
        return status;
    }
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
    status = peal_team_open_threads(size, default_timeout(0), &why, teams);
    uint32_t made = 0;
    while (status == PEAL_OK && made < size) {
        status = peal_comm_new(teams[made], &comms[made]);
        made++;
    }
    if (status == PEAL_OK) {
        status = peal_platform_open_threads(size, comms);
        if (status == PEAL_OK)
            return PEAL_OK;
        peal_text_puts(&why, peal_comm_error(comms[0]));
        for (uint32_t r = 0; r < size; r++)
            peal_comm_close(comms[r]);
        return fail_open(status, &why);
    }
    for (uint32_t r = 0; r + 1 < made; r++)
        peal_comm_close(comms[r]);
    for (uint32_t r = made; made > 0 && r < size; r++)
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

/* What is left of a closed communicator says so to whoever still uses it, until as many others have
 * been closed as there are places here. */
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
    peal_user_kernels_detach(comm);
    peal_platform_close(comm->platform);
    peal_symmetric_release(comm);
    peal_calls_release(&comm->engine);
    peal_plans_release(&comm->plans);
    peal_rules_release(&comm->rules);
    peal_team_close(comm->team);
    free(comm->bounds);
    free(comm->words);
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

const char *peal_comm_error(const struct peal_comm *comm)
{
    return comm ? peal_text_get(&comm->error) : open_error;
}

static uint32_t find_collective(const char *name)
{
    for (uint32_t c = PEAL_CALL_BARRIER; c <= PEAL_CALL_ALL_TO_ALL; c++) {
        if (strcmp(peal_collective_name(c), name) == 0)
            return c;
    }
    return PEAL_CALL_NONE;
}

static enum peal_status refuse_algo(struct peal_comm *comm, uint32_t collective, const char *algo)
{
    size_t count;
    const struct peal_algo *all = peal_algos(&count);
    const char *before = " ";
    peal_comm_fail(comm, PEAL_INVALID, "%s has no algorithm '%s'; it has",
                   peal_collective_name(collective), algo);
    for (size_t i = 0; i < count; i++) {
        if (all[i].collective == collective) {
            peal_text_printf(&comm->error, "%s%s", before, all[i].name);
            before = ", ";
        }
    }
    return PEAL_INVALID;
}

enum peal_status peal_comm_set_algo(struct peal_comm *comm, const char *collective,
                                    const char *algo)
{
    if (!comm)
        return PEAL_INVALID;
    uint32_t c = collective ? find_collective(collective) : PEAL_CALL_NONE;
    if (c == PEAL_CALL_NONE)
        return peal_comm_fail(comm, PEAL_INVALID, "there is no collective '%s'",
                              collective ? collective : "");
    const struct peal_algo *found = algo && algo[0] ? peal_algo_find(c, algo) : NULL;
    if (algo && algo[0] && !found)
        return refuse_algo(comm, c, algo);
    comm->forced[c] = found;
    peal_comm_forget(comm);
    return PEAL_OK;
}

enum peal_status peal_comm_use_rule(struct peal_comm *comm, const struct peal_rule *rule)
{
    struct peal_rule *copy = rule ? malloc(sizeof *copy) : NULL;
    if (rule && !copy)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a rule");
    if (copy)
        *copy = *rule;
    peal_rules_release(&comm->rules);
    comm->rules.rules = copy;
    comm->rules.count = copy ? 1 : 0;
    peal_comm_forget(comm);
    return PEAL_OK;
}

void peal_comm_wish(const struct peal_comm *comm, struct peal_wish *out)
{
    *out = (struct peal_wish){.ranks = comm->team->size,
                              .cores = comm->team->policy.cores,
                              .reads = peal_remote_agree(comm->team),
                              .writes = comm->team->threads};
}

const char *peal_comm_explain(struct peal_comm *comm, const char *collective, uint64_t bytes,
                              int symmetric)
{
    if (!comm || !collective)
        return "";
    uint32_t c = find_collective(collective);
    comm->explained.len = 0;
    if (peal_team_is_closed(comm->team)) {
        peal_text_puts(&comm->explained, peal_text_get(&comm->team->error));
        return peal_text_get(&comm->explained);
    }
    if (c == PEAL_CALL_NONE) {
        peal_text_printf(&comm->explained, "there is no collective '%s'", collective);
        return peal_text_get(&comm->explained);
    }
    struct peal_wish wish;
    peal_comm_wish(comm, &wish);
    wish.collective = c;
    wish.bytes = bytes;
    wish.symmetric = symmetric != 0;
    struct peal_choice choice = peal_choose(&comm->rules, comm->forced[c], &wish);
    char size[24], segment[24];
    peal_text_printf(&comm->explained,
                     "%s of %s bytes on %u ranks and %u cores: '%s' (%s), segments of %s bytes: %s",
                     collective, peal_size_format(bytes, size), comm->team->size,
                     comm->team->policy.cores, choice.algo->name, choice.algo->kernel,
                     peal_size_format(choice.segment, segment), choice.why);
    wish.in_place = true;
    const struct peal_algo *in_place = peal_choose(&comm->rules, comm->forced[c], &wish).algo;
    if (in_place != choice.algo)
        peal_text_printf(&comm->explained, "; in place '%s' (%s)", in_place->name,
                         in_place->kernel);
    if (!wish.reads)
        peal_text_puts(&comm->explained, "; peers' private memory cannot be read, so it is staged");
    if (choice.tuned)
        peal_text_printf(&comm->explained, " (%s)", comm->rules.path);
    return peal_text_get(&comm->explained);
}

uint64_t peal_comm_simulated_ps(const struct peal_comm *comm)
{
    return comm ? peal_platform_time(comm->platform) : 0;
}
