/* SPDX-License-Identifier: Apache-2.0 */
/* The job: begin and end, failures, and what a PE may ask about itself and others. */
#include "job.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* There is one job per process: OpenSHMEM's functions have no handle for it. */
static struct {
    struct peal_comm *world;
    uint64_t *end; /* symmetric: 0, or 1 + the status that shmem_global_exit was given */
    int rank, size, threads;
    bool began, ended;
} job;

/* ---- failures ---- */

static void end_if_told(void)
{
    /* Partner: shmem_global_exit of any PE. */
    uint64_t end =
        job.end ? atomic_load_explicit((_Atomic uint64_t *)job.end, memory_order_acquire) : 0;
    if (end != 0)
        exit((int)(end - 1));
}

void peal_shmem_fail(const struct peal_shmem_call *call, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "peal: PE %d: %s: %s\n", job.rank, call->name, text);
    peal_shmem_log_failed(call, text);
    if (job.world)
        peal_comm_revoke(job.world);
    exit(1);
}

void peal_shmem_check(const struct peal_shmem_call *call, struct peal_comm *comm,
                      enum peal_status status)
{
    if (status == PEAL_OK)
        return;
    end_if_told();
    const char *why = peal_comm_error(comm);
    peal_shmem_fail(call, "%s", why[0] ? why : peal_status_text(status));
}

struct peal_comm *peal_shmem_world(const struct peal_shmem_call *call)
{
    if (!job.began)
        peal_shmem_fail(call, "shmem_init has not been called");
    if (!job.world)
        peal_shmem_fail(call, "shmem_finalize has been called");
    return job.world;
}

/* ---- begin and end ---- */

static int start(const struct peal_shmem_call *call, int requested, int *provided)
{
    if (job.began) {
        if (provided)
            *provided = job.threads;
        return 0;
    }
    int threads = requested < SHMEM_THREAD_MULTIPLE ? requested : SHMEM_THREAD_MULTIPLE;
    if (provided)
        *provided = threads;
    peal_shmem_threads_begin(threads == SHMEM_THREAD_MULTIPLE);
    /* OpenSHMEM promises progress of gets and atomics whatever their target does. */
    setenv("PEAL_PROGRESS", "thread", 0);
    enum peal_status status = peal_comm_open(NULL, &job.world);
    if (status != PEAL_OK)
        peal_shmem_fail(call, "%s", peal_comm_error(NULL));
    job.began = true;
    job.rank = (int)peal_comm_rank(job.world);
    job.size = (int)peal_comm_size(job.world);
    job.threads = threads;
    peal_shmem_log_begin(call, job.rank);
    void *end = NULL;
    peal_shmem_check(call, job.world, peal_symmetric_alloc(job.world, sizeof *job.end, &end));
    job.end = end;
    peal_shmem_memory_begin(call, job.world);
    peal_shmem_teams_begin(call, job.world);
    peal_shmem_sync(call, peal_shmem_team(call, SHMEM_TEAM_WORLD));
    return 0;
}

static void finish(const struct peal_shmem_call *call)
{
    if (!job.world)
        return;
    peal_shmem_quiet(call, SHMEM_CTX_DEFAULT);
    peal_shmem_sync(call, peal_shmem_team(call, SHMEM_TEAM_WORLD));
    peal_shmem_log_end(call);
    peal_shmem_teams_end();
    peal_shmem_memory_end();
    job.end = NULL;
    peal_comm_close(job.world);
    job.world = NULL;
}

void shmem_init(void)
{
    (void)start(HERE, SHMEM_THREAD_SINGLE, NULL);
}

int shmem_init_thread(int requested, int *provided)
{
    return start(HERE, requested, provided);
}

void shmem_query_thread(int *provided)
{
    *provided = job.threads;
}

void shmem_finalize(void)
{
    finish(HERE);
}

static void finish_at_exit(void)
{
    finish(&(const struct peal_shmem_call){"exit", NULL});
}

void start_pes(int npes)
{
    (void)npes;
    if (!job.began)
        atexit(finish_at_exit);
    (void)start(HERE, SHMEM_THREAD_SINGLE, NULL);
}

void shmem_global_exit(int status)
{
    struct peal_comm *world = peal_shmem_world(HERE);
    uint64_t end = 1 + (uint64_t)(unsigned char)status;
    peal_shmem_log(HERE,
                   "refuse the program ends here, before all PEs have come to shmem_finalize");
    (void)peal_shmem_enter(); /* and never leave: this process ends */
    for (uint32_t pe = 0; pe < (uint32_t)job.size; pe++)
        (void)peal_put(world, job.end, &end, sizeof end, pe);
    /* Wakes whoever waits: that call fails, and finds the word. */
    peal_comm_revoke(world);
    exit(status);
}

/* ---- questions ---- */

int shmem_my_pe(void)
{
    (void)peal_shmem_world(HERE);
    return job.rank;
}

int shmem_n_pes(void)
{
    (void)peal_shmem_world(HERE);
    return job.size;
}

int _my_pe(void)
{
    return job.rank;
}

int _num_pes(void)
{
    return job.size;
}

int shmem_pe_accessible(int pe)
{
    return pe >= 0 && pe < job.size;
}

int shmem_addr_accessible(const void *addr, int pe)
{
    (void)peal_shmem_world(HERE);
    LOCKED;
    return shmem_pe_accessible(pe) && peal_shmem_find(addr) != NULL;
}

static void *address_of(const struct peal_shmem_call *call, const void *dest, int pe)
{
    struct peal_comm *world = peal_shmem_world(call);
    LOCKED;
    void *at = peal_shmem_find(dest);
    if (!at || !shmem_pe_accessible(pe))
        return NULL;
    if (pe == job.rank)
        return (void *)(uintptr_t)dest;
    peal_shmem_log(call, "refuse memory of another PE is accessed directly");
    return peal_symmetric_at(world, at, (uint32_t)pe);
}

void *shmem_ptr(const void *dest, int pe)
{
    return address_of(HERE, dest, pe);
}

void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe)
{
    if (team == SHMEM_TEAM_INVALID)
        return NULL;
    const struct peal_shmem_team *of = peal_shmem_team(HERE, team);
    return pe >= 0 && pe < of->size ? address_of(HERE, dest, of->pes[pe]) : NULL;
}

void shmem_info_get_version(int *major, int *minor)
{
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
}

void shmem_info_get_name(char *name)
{
    snprintf(name, SHMEM_MAX_NAME_LEN, "%s", SHMEM_VENDOR_STRING);
}

/* For tools that count or record calls; there is nothing to control. */
void shmem_pcontrol(int level, ...)
{
    (void)level;
}

/* Caches are coherent. */
void shmem_clear_cache_inv(void)
{
}
void shmem_set_cache_inv(void)
{
}
void shmem_clear_cache_line_inv(void *dest)
{
    (void)dest;
}
void shmem_set_cache_line_inv(void *dest)
{
    (void)dest;
}
void shmem_udcflush(void)
{
}
void shmem_udcflush_line(void *dest)
{
    (void)dest;
}
