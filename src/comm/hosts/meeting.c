/* SPDX-License-Identifier: Apache-2.0 */
/* Who this rank is, and by which service it meets the others if they are on several hosts. */
#include "comm/hosts/meeting.h"

#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a store of the caller's ---- */

/* The host of this process: PEAL_HOST, or the system's identity. */
static void identify(char out[static 112])
{
    const char *told = getenv("PEAL_HOST");
    if (told && told[0])
        snprintf(out, 112, "%.100s", told);
    else
        peal_host_identify(out);
}

static bool is_same_host(const char *a, const char *b)
{
    const char *told = getenv("PEAL_HOST");
    return told && told[0] ? strcmp(a, b) == 0 : peal_host_may_be(a, b);
}

/* Called by rank 0: are all ranks on its host? */
static enum peal_status compare_hosts(const struct peal_open *options, const char *name,
                                      const char *own, bool *several, struct peal_text *why)
{
    *several = false;
    for (uint32_t r = 1; r < options->size; r++) {
        char key[96], host[112];
        size_t len = 0;
        snprintf(key, sizeof key, "peal-host-%.60s-%u", name, r);
        if (options->store->get(options->store->context, key, host, sizeof host - 1, &len) != 0 ||
            len >= sizeof host) {
            peal_text_printf(why, "the store did not give the host of rank %u", r);
            return PEAL_SYSTEM;
        }
        host[len] = '\0';
        *several |= !is_same_host(host, own);
    }
    return PEAL_OK;
}

/* Agrees on an unguessable job name through a store: rank 0 makes it, once all others have stored
 * their hosts; a leading '@' means that there are several hosts. */
static enum peal_status meet_by_store(const struct peal_open *options, char job[static 64],
                                      bool *several, struct peal_text *why)
{
    const struct peal_store *store = options->store;
    const char *name = options->job ? options->job : "";
    char key[96], own[112], made[64] = "";
    size_t len = 0;
    identify(own);
    if (options->rank == 0) {
        enum peal_status status = compare_hosts(options, name, own, several, why);
        if (status != PEAL_OK)
            return status;
        made[0] = '@';
        peal_job_make(made + *several);
        len = strlen(made);
    } else {
        snprintf(key, sizeof key, "peal-host-%.60s-%u", name, options->rank);
        if (store->set(store->context, key, own, strlen(own)) != 0) {
            peal_text_puts(why, "the store refused to set the host's name");
            return PEAL_SYSTEM;
        }
    }
    snprintf(key, sizeof key, "peal-job-%.60s", name);
    int failed = options->rank == 0 ? store->set(store->context, key, made, len)
                                    : store->get(store->context, key, made, sizeof made - 1, &len);
    if (failed != 0 || len >= sizeof made) {
        peal_text_puts(why, options->rank == 0 ? "the store refused to set the job's name"
                                               : "the store did not give the job's name");
        return PEAL_SYSTEM;
    }
    made[len] = '\0';
    *several = made[0] == '@';
    snprintf(job, 64, "%s", made + *several);
    return PEAL_OK;
}

/* The caller's store as meetings use one. */
static bool set_in_store(void *context, const char *name, const void *bytes, size_t len)
{
    const struct peal_store *store = context;
    return store->set(store->context, name, bytes, len) == 0;
}

static int64_t get_from_store(void *context, const char *name, void *out, size_t cap,
                              uint32_t timeout_ms)
{
    const struct peal_store *store = context;
    size_t len = 0;
    (void)timeout_ms; /* the store has its own */
    return store->get(store->context, name, out, cap, &len) == 0 ? (int64_t)len : -1;
}

static enum peal_status open_store(const struct peal_open *options, const char *job,
                                   uint32_t meet_ms, struct peal_meet **out)
{
    struct peal_meet_store store = {(void *)(uintptr_t)options->store, set_in_store,
                                    get_from_store};
    return peal_meet_open_store(&store, job, options->rank, options->size, meet_ms, out);
}

/* ---- a launcher's service ---- */

/* The ranks of a launcher are, or may be, on several hosts: its service knows rank and size. */
static enum peal_status open_service(uint32_t meet_ms, struct peal_env *env, struct peal_meet **out,
                                     struct peal_text *why)
{
    enum peal_status status = peal_meet_open(meet_ms, why, out);
    if (status != PEAL_OK)
        return status;
    env->rank = (*out)->rank;
    env->size = (*out)->size;
    return PEAL_OK;
}

/* ---- who and where ---- */

static enum peal_status identify_rank(const struct peal_open *options, uint32_t meet_ms,
                                      struct peal_env *env, struct peal_meet **meet,
                                      struct peal_text *why)
{
    bool several = false;
    enum peal_status status = PEAL_OK;
    if (options->size == 0) {
        status = peal_env_read(env, why);
        if (status == PEAL_OK && options->job)
            peal_env_job(options->job, env->job);
        if (status == PEAL_OK && env->hosts)
            status = open_service(meet_ms, env, meet, why);
        return status;
    }
    *env = (struct peal_env){.rank = options->rank, .size = options->size};
    peal_env_job(options->job ? options->job : "", env->job);
    if (options->rank >= options->size) {
        peal_text_printf(why, "rank %u of %u ranks", options->rank, options->size);
        return PEAL_INVALID;
    }
    if (options->store) {
        status = meet_by_store(options, env->job, &several, why);
        return status == PEAL_OK && several ? open_store(options, env->job, meet_ms, meet) : status;
    }
    if (!options->job && options->size > 1) {
        peal_text_puts(why, "a job name or a store is needed to find the other ranks");
        return PEAL_INVALID;
    }
    return PEAL_OK;
}

enum peal_status peal_meeting_find(const struct peal_open *options, uint32_t meet_ms,
                                   struct peal_env *env, struct peal_meet **meet, uint32_t *nodes,
                                   struct peal_text *why)
{
    bool several = false;
    *meet = NULL;
    enum peal_status status = identify_rank(options, meet_ms, env, meet, why);
    if (status == PEAL_OK && env->size > PEAL_MOST_RANKS) {
        peal_text_printf(why, "%u ranks; at most %d are supported", env->size, PEAL_MOST_RANKS);
        status = PEAL_UNSUPPORTED;
    }
    if (status == PEAL_OK && *meet)
        status = peal_hosts_compare(*meet, nodes, &several, why);
    if (status != PEAL_OK || !several) {
        peal_meet_close(*meet);
        *meet = NULL;
    }
    return status;
}
