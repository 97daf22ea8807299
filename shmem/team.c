/* SPDX-License-Identifier: Apache-2.0 */
/* Teams and contexts.
 *
 * A team has a communicator for its collectives, and the numbers of its PEs in the world, because
 * puts and gets always go through the world's communicator. Teams are split from their parent. An
 * active set, the older form, is named by its members alone, in every call: they open a
 * communicator at the first, which is kept, and find each other by messages in the world. A context
 * is a team too, whose PE numbers its calls use; all contexts share one order of operations, which
 * is stricter than required. With several threads the team of the world has a communicator of its
 * own, because its collectives must not keep out the others' puts. */
#include "job.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct peal_shmem_team world, shared;
static struct peal_shmem_team *active_sets;
/* Of several threads: who opens an active set, and the communicator for that. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static struct peal_comm *meeting;

/* ---- teams ---- */

static bool init(struct peal_shmem_team *team, struct peal_comm *comm)
{
    team->comm = comm;
    team->size = (int)peal_comm_size(comm);
    team->rank = (int)peal_comm_rank(comm);
    team->pes = calloc((size_t)team->size, sizeof *team->pes);
    return team->pes != NULL;
}

/* Collective: the members' numbers in the world. */
static enum peal_status learn_members(struct peal_shmem_team *team)
{
    int32_t own = (int32_t)peal_comm_rank(world.comm);
    return peal_allgather(team->comm, &own, team->pes, 1, PEAL_I32);
}

static void release(struct peal_shmem_team *team)
{
    peal_comm_close(team->comm);
    free(team->pes);
}

struct peal_shmem_team *peal_shmem_team(const struct peal_shmem_call *call, shmem_team_t team)
{
    (void)peal_shmem_world(call);
    if (team == SHMEM_TEAM_INVALID)
        peal_shmem_fail(call, "SHMEM_TEAM_INVALID");
    if (team == SHMEM_TEAM_WORLD)
        return &world;
    return team == SHMEM_TEAM_SHARED ? &shared : team;
}

int shmem_team_my_pe(shmem_team_t team)
{
    return team == SHMEM_TEAM_INVALID ? -1 : peal_shmem_team(HERE, team)->rank;
}

int shmem_team_n_pes(shmem_team_t team)
{
    return team == SHMEM_TEAM_INVALID ? -1 : peal_shmem_team(HERE, team)->size;
}

int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t *config)
{
    if (team == SHMEM_TEAM_INVALID)
        return -1;
    if (config_mask & SHMEM_TEAM_NUM_CONTEXTS)
        config->num_contexts = peal_shmem_team(HERE, team)->contexts;
    return 0;
}

int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team)
{
    if (src_team == SHMEM_TEAM_INVALID || dest_team == SHMEM_TEAM_INVALID)
        return -1;
    const struct peal_shmem_team *from = peal_shmem_team(HERE, src_team);
    const struct peal_shmem_team *to = peal_shmem_team(HERE, dest_team);
    for (int pe = 0; pe < to->size; pe++) {
        if (src_pe >= 0 && src_pe < from->size && to->pes[pe] == from->pes[src_pe])
            return pe;
    }
    return -1;
}

/* Collective over the parent: PEs of one color become a team; a negative color gets none. */
static int split(const struct peal_shmem_call *call, struct peal_shmem_team *parent, int color,
                 int key, int contexts, shmem_team_t *out)
{
    struct peal_comm *comm = NULL;
    *out = SHMEM_TEAM_INVALID;
    peal_shmem_check(call, parent->comm, peal_comm_split(parent->comm, color, key, &comm));
    if (!comm)
        return 0;
    struct peal_shmem_team *team = calloc(1, sizeof *team);
    if (!team || !init(team, comm))
        peal_shmem_fail(call, "no memory for a team");
    team->contexts = contexts;
    peal_shmem_check(call, comm, learn_members(team));
    *out = team;
    return 0;
}

static int contexts_of(const shmem_team_config_t *config, long mask)
{
    return config && (mask & SHMEM_TEAM_NUM_CONTEXTS) ? config->num_contexts : 0;
}

int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size,
                             const shmem_team_config_t *config, long config_mask,
                             shmem_team_t *new_team)
{
    *new_team = SHMEM_TEAM_INVALID;
    if (parent == SHMEM_TEAM_INVALID)
        return -1;
    struct peal_shmem_team *of = peal_shmem_team(HERE, parent);
    int64_t last = start + (int64_t)stride * (size - 1);
    /* All PEs of the parent pass the same numbers, and so all or none come to the split. */
    if (start < 0 || start >= of->size || size < 1 || last < 0 || last >= of->size ||
        (stride == 0 && size > 1))
        return -1;
    int64_t from = of->rank - (int64_t)start;
    int64_t index = stride == 0 ? from : from / stride;
    bool is_member = index >= 0 && index < size && index * stride == from;
    return split(HERE, of, is_member ? 0 : -1, (int)index, contexts_of(config, config_mask),
                 new_team);
}

int shmem_team_split_2d(shmem_team_t parent, int xrange, const shmem_team_config_t *xaxis_config,
                        long xaxis_mask, shmem_team_t *xaxis_team,
                        const shmem_team_config_t *yaxis_config, long yaxis_mask,
                        shmem_team_t *yaxis_team)
{
    *xaxis_team = *yaxis_team = SHMEM_TEAM_INVALID;
    if (parent == SHMEM_TEAM_INVALID || xrange < 1)
        return -1;
    struct peal_shmem_team *of = peal_shmem_team(HERE, parent);
    int x = of->rank % xrange, y = of->rank / xrange;
    (void)split(HERE, of, y, x, contexts_of(xaxis_config, xaxis_mask), xaxis_team);
    return split(HERE, of, x, y, contexts_of(yaxis_config, yaxis_mask), yaxis_team);
}

void shmem_team_destroy(shmem_team_t team)
{
    if (team == SHMEM_TEAM_INVALID)
        return;
    if (team == SHMEM_TEAM_WORLD || team == SHMEM_TEAM_SHARED)
        peal_shmem_fail(HERE, "a predefined team cannot be destroyed");
    /* No member leaves before all have come. */
    peal_shmem_sync(HERE, team);
    release(team);
    free(team);
}

/* ---- active sets ---- */

/* The store by which members meet: a value goes to all of them as a message, whose tag is a hash of
 * the key, and begins with the key. */
enum { MAX_KEY = 256, MAX_VALUE = 1 << 17, TAG = 1u << 30 };

static uint32_t tag_of(const char *key)
{
    uint32_t hash = 2166136261u;
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 16777619u;
    return TAG | hash >> 2;
}

static int set(void *context, const char *key, const void *value, size_t len)
{
    const struct peal_shmem_team *team = context;
    char *message = calloc(1, MAX_KEY + len);
    if (!message || strlen(key) >= MAX_KEY || len > MAX_VALUE) {
        free(message);
        return -1;
    }
    memcpy(message, key, strlen(key));
    if (len > 0)
        memcpy(message + MAX_KEY, value, len);
    int failed = 0;
    for (int i = 0; i < team->size; i++)
        failed |= peal_send(meeting, message, MAX_KEY + len, (uint32_t)team->pes[i], tag_of(key)) !=
                  PEAL_OK;
    free(message);
    return failed;
}

static int get(void *context, const char *key, void *value, size_t cap, size_t *len)
{
    (void)context;
    uint64_t bytes = 0;
    char *message = calloc(1, MAX_KEY + MAX_VALUE);
    bool ok = message &&
              peal_recv(meeting, message, MAX_KEY + MAX_VALUE, PEAL_ANY_SOURCE, tag_of(key), &bytes,
                        NULL) == PEAL_OK &&
              bytes >= MAX_KEY && strcmp(message, key) == 0 && bytes - MAX_KEY <= cap;
    if (ok) {
        *len = bytes - MAX_KEY;
        memcpy(value, message + MAX_KEY, *len);
    }
    free(message);
    return ok ? 0 : -1;
}

static void open_set(const struct peal_shmem_call *call, struct peal_shmem_team *team)
{
    char job[64];
    struct peal_store store = {team, set, get};
    snprintf(job, sizeof job, "shmem-%ld-%ld-%d", team->first, team->log_stride, team->size);
    struct peal_open open = {.struct_size = sizeof open,
                             .size = (uint32_t)team->size,
                             .rank = (uint32_t)team->rank,
                             .job = job,
                             .store = &store};
    if (peal_comm_open(&open, &team->comm) != PEAL_OK)
        peal_shmem_fail(call, "%s", peal_comm_error(NULL));
}

static struct peal_shmem_team *make_set(const struct peal_shmem_call *call, int start,
                                        int log_stride, int size)
{
    if (start < 0 || log_stride < 0 || log_stride > 16 || size < 1 || size > world.size ||
        start + ((int64_t)(size - 1) << log_stride) >= world.size)
        peal_shmem_fail(call, "there is no active set of %d PEs from %d by 2^%d among %d", size,
                        start, log_stride, world.size);
    struct peal_shmem_team *team = calloc(1, sizeof *team);
    if (!team || !(team->pes = calloc((size_t)size, sizeof *team->pes)))
        peal_shmem_fail(call, "no memory for an active set");
    team->first = start;
    team->log_stride = log_stride;
    team->size = size;
    team->rank = -1;
    for (int i = 0; i < size; i++) {
        team->pes[i] = start + (i << log_stride);
        if (team->pes[i] == world.rank)
            team->rank = i;
    }
    if (team->rank < 0)
        peal_shmem_fail(call, "PE %d is not in the active set", world.rank);
    open_set(call, team);
    team->next = active_sets;
    active_sets = team;
    return team;
}

struct peal_shmem_team *peal_shmem_active_set(const struct peal_shmem_call *call, int start,
                                              int log_stride, int size)
{
    (void)peal_shmem_world(call);
    if (start == 0 && log_stride == 0 && size == world.size)
        return &world;
    pthread_mutex_lock(&opening);
    struct peal_shmem_team *team = active_sets;
    while (team && (team->first != start || team->log_stride != log_stride || team->size != size))
        team = team->next;
    if (!team)
        team = make_set(call, start, log_stride, size);
    pthread_mutex_unlock(&opening);
    return team;
}

/* ---- contexts ---- */

struct context {
    struct peal_shmem_ctx handle;
    shmem_team_t team;
};

static shmem_team_t team_of(shmem_ctx_t ctx)
{
    return ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : ((struct context *)(void *)ctx)->team;
}

int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx)
{
    (void)options; /* which threads use it: one at a time, whatever they say */
    struct context *made = team == SHMEM_TEAM_INVALID ? NULL : calloc(1, sizeof *made);
    *ctx = SHMEM_CTX_INVALID;
    if (!made)
        return -1;
    made->team = team;
    *ctx = &made->handle;
    return 0;
}

int shmem_ctx_create(long options, shmem_ctx_t *ctx)
{
    return shmem_team_create_ctx(SHMEM_TEAM_WORLD, options, ctx);
}

int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team)
{
    *team = ctx == SHMEM_CTX_INVALID ? SHMEM_TEAM_INVALID : team_of(ctx);
    return ctx == SHMEM_CTX_INVALID ? -1 : 0;
}

void shmem_ctx_destroy(shmem_ctx_t ctx)
{
    if (ctx == SHMEM_CTX_INVALID)
        return;
    if (ctx == SHMEM_CTX_DEFAULT)
        peal_shmem_fail(HERE, "the default context cannot be destroyed");
    peal_shmem_quiet(HERE, ctx);
    free(ctx);
}

uint32_t peal_shmem_target(const struct peal_shmem_call *call, shmem_ctx_t ctx, int pe)
{
    if (ctx == SHMEM_CTX_INVALID)
        peal_shmem_fail(call, "SHMEM_CTX_INVALID");
    const struct peal_shmem_team *team = peal_shmem_team(call, team_of(ctx));
    if (pe < 0 || pe >= team->size)
        peal_shmem_fail(call, "there is no PE %d among %d", pe, team->size);
    return (uint32_t)team->pes[pe];
}

const char *peal_shmem_domain(shmem_ctx_t ctx)
{
    static _Thread_local char name[64];
    shmem_team_t team = team_of(ctx);
    if (team == SHMEM_TEAM_WORLD)
        return "world";
    if (team == SHMEM_TEAM_SHARED)
        return "shared";
    snprintf(name, sizeof name, "%d+%d*%d", team->pes[0], team->size,
             team->size > 1 ? team->pes[1] - team->pes[0] : 0);
    return name;
}

/* ---- begin and end ---- */

void peal_shmem_teams_begin(const struct peal_shmem_call *call, struct peal_comm *comm)
{
    struct peal_comm *near = NULL, *collectives = comm;
    meeting = comm;
    if (peal_shmem_is_multiple()) {
        peal_shmem_check(call, comm, peal_comm_dup(comm, &collectives));
        peal_shmem_check(call, comm, peal_comm_dup(comm, &meeting));
    }
    if (!init(&world, collectives))
        peal_shmem_fail(call, "no memory for a team");
    int host = -1; /* the first PE whose memory this one can address */
    void *probe = NULL;
    peal_shmem_check(call, comm, peal_symmetric_alloc(comm, 1, &probe));
    for (int pe = 0; pe < world.size; pe++) {
        world.pes[pe] = pe;
        if (host < 0 && peal_symmetric_at(comm, probe, (uint32_t)pe))
            host = pe;
    }
    peal_shmem_check(call, comm, peal_symmetric_free(comm, probe));
    peal_shmem_check(call, comm, peal_comm_split(comm, host, world.rank, &near));
    if (!init(&shared, near))
        peal_shmem_fail(call, "no memory for a team");
    peal_shmem_check(call, near, learn_members(&shared));
}

void peal_shmem_teams_end(void)
{
    while (active_sets) {
        struct peal_shmem_team *team = active_sets;
        active_sets = team->next;
        release(team);
        free(team);
    }
    release(&shared);
    if (peal_shmem_is_multiple()) {
        peal_comm_close(meeting);
        peal_comm_close(world.comm);
    }
    free(world.pes);
}
