/* SPDX-License-Identifier: Apache-2.0 */
/* New communicators out of old ones: split, and shrink after a failure. */
#include "comm/env.h"
#include "comm/simulated/platform.h"

#include <stdio.h>
#include <stdlib.h>

struct ticket {
    int32_t color, key;
    uint32_t rank;
    uint32_t pad;
};

static int compare_tickets(const void *a, const void *b)
{
    const struct ticket *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The own group among all tickets, sorted; returns its size. */
static uint32_t select_group(struct ticket *tickets, uint32_t size, uint32_t rank, uint32_t *self)
{
    int32_t color = tickets[rank].color;
    uint32_t n = 0;
    for (uint32_t r = 0; r < size; r++) {
        if (tickets[r].color == color)
            tickets[n++] = tickets[r];
    }
    qsort(tickets, n, sizeof *tickets, compare_tickets);
    for (uint32_t i = 0; i < n; i++) {
        if (tickets[i].rank == rank)
            *self = i;
    }
    return n;
}

/* What a group's first rank tells the others of the teams that it has made. */
struct handout {
    uint64_t status;
    char why[176];
};

/* The group's first rank makes the teams and lays them ready for all. */
static void make_teams(struct peal_comm *comm, const struct ticket *group, uint32_t size,
                       struct handout *out)
{
    struct peal_team *teams[PEAL_MOST_RANKS];
    struct peal_text why = {0};
    out->status = peal_team_open_threads(size, peal_team_timeout(comm->team), true, &why, teams);
    snprintf(out->why, sizeof out->why, "%s", peal_text_get(&why));
    peal_text_release(&why);
    for (uint32_t i = 0; i < size && out->status == PEAL_OK; i++)
        peal_team_give(comm->team, group[i].rank, teams[i]);
}

static enum peal_status split_threads(struct peal_comm *comm, const struct ticket *group,
                                      uint32_t size, uint32_t self, struct peal_team **out)
{
    struct handout own = {0}, all[PEAL_MOST_RANKS];
    if (size > 0 && self == 0)
        make_teams(comm, group, size, &own);
    enum peal_status status = peal_comm_exchange(comm, PEAL_CALL_SPLIT, &own, all, sizeof own);
    if (status != PEAL_OK) {
        /* Some may have theirs already: the others are seen to have left. */
        for (uint32_t i = 0; i < size; i++) {
            if (self == 0 || self == i)
                peal_team_close(peal_team_take(comm->team, group[i].rank));
        }
        return status;
    }
    const struct handout *given = size > 0 ? &all[group[0].rank] : &own;
    if (given->status != PEAL_OK)
        return peal_comm_fail(comm, (enum peal_status)given->status, "split: %s", given->why);
    *out = size > 0 ? peal_team_take(comm->team, comm->team->rank) : NULL;
    return size == 0 || *out
               ? PEAL_OK
               : peal_comm_fail(comm, PEAL_CLOSED, "split: the communicator has failed");
}

/* The name by which a group of a communicator meets: another one for every group of every
 * communicator, however deep. */
static void name_group(const struct peal_comm *comm, uint64_t generation, const char *group,
                       char out[static PEAL_JOB_BYTES])
{
    char name[2 * PEAL_JOB_BYTES];
    snprintf(name, sizeof name, "%s.%llu.%s", comm->team->job, (unsigned long long)generation,
             group);
    peal_env_job(name, out);
}

static int will_not_come(void *context, uint32_t rank, struct peal_text *how)
{
    const struct peal_team *team = context;
    (void)how;
    /* Partner: peal_team_close. */
    return peal_team_is_dead(team, rank) ||
           atomic_load_explicit(&team->controls[rank]->life, memory_order_acquire) ==
               PEAL_LIFE_LEFT;
}

/* A split under way: who of the group will not come? Whoever has died or left, or has gone on to
 * compare how it ended; and once the old communicator has failed, anyone, because its exchange may have
 * failed where others' did not. */
struct splitting {
    struct peal_team *team;
    const struct ticket *group;
    uint64_t seq; /* of the call in which the groups were made */
};

static int will_not_split(void *context, uint32_t rank, struct peal_text *how)
{
    const struct splitting *splitting = context;
    uint32_t old = splitting->group[rank].rank;
    /* Acquire; partner: peal_team_record. */
    uint64_t seq = atomic_load_explicit(&splitting->team->controls[old]->calls[0],
                                        memory_order_acquire);
    return peal_team_failure(splitting->team) != PEAL_OK || seq > splitting->seq ||
           will_not_come(splitting->team, old, how);
}

static enum peal_status split_processes(struct peal_comm *comm, const struct ticket *group,
                                        uint32_t size, uint32_t self, struct peal_text *why,
                                        struct peal_team **out)
{
    char job[PEAL_JOB_BYTES], first[16];
    struct splitting splitting = {comm->team, group, comm->engine.seqs[0]};
    snprintf(first, sizeof first, "%u", group[0].rank);
    name_group(comm, comm->generation, first, job);
    struct peal_team_how how = {.rank = self,
                                .size = size,
                                .job = job,
                                .timeout_ms = peal_team_timeout(comm->team),
                                .meet_ms = comm->team->meet_ms,
                                .lazy = true,
                                .quiet = comm->team->quiet,
                                .gone = will_not_split,
                                .context = &splitting};
    return peal_team_open(&how, why, out);
}

/* How a rank's part of a split has ended. */
struct outcome {
    uint64_t status;
    char why[184];
};

/* Is a the better word about what went wrong? That a rank did not come follows from its own trouble. */
static bool says_more(enum peal_status a, enum peal_status b)
{
    bool follows = b == PEAL_PEER_DEAD || b == PEAL_TIMEOUT;
    return a != PEAL_OK && (b == PEAL_OK || (follows && a != PEAL_PEER_DEAD && a != PEAL_TIMEOUT));
}

/* All ranks compare how it has ended: a group has its communicator on all of its ranks or on none, and
 * the old one goes on in any case. */
static enum peal_status agree_on_split(struct peal_comm *comm, const struct ticket *group,
                                       uint32_t size, enum peal_status status, const char *why)
{
    struct outcome own = {.status = status}, all[PEAL_MOST_RANKS];
    snprintf(own.why, sizeof own.why, "%s", why);
    enum peal_status exchanged = peal_comm_exchange(comm, PEAL_CALL_SPLIT, &own, all, sizeof own);
    if (exchanged != PEAL_OK)
        return exchanged;
    for (uint32_t i = 0; i < size; i++) {
        const struct outcome *its = &all[group[i].rank];
        if (!says_more((enum peal_status)its->status, (enum peal_status)own.status))
            continue;
        own = *its;
    }
    own.why[sizeof own.why - 1] = '\0';
    if (own.status != PEAL_OK)
        peal_comm_fail(comm, (enum peal_status)own.status, "split: %s", own.why);
    return (enum peal_status)own.status;
}

/* On a simulated machine the new communicator is there too. */
static enum peal_status begin_child(const struct peal_comm *parent, struct peal_team *team,
                                    struct peal_comm **out)
{
    struct peal_comm *comm = NULL;
    team->quiet = parent->team->quiet;
    enum peal_status status = peal_comm_new(team, &comm);
    if (status == PEAL_OK)
        status = peal_platform_again(parent->platform, comm, &comm->platform);
    if (status != PEAL_OK) {
        peal_comm_close(comm);
        return status;
    }
    *out = comm;
    return PEAL_OK;
}

enum peal_status peal_comm_split(struct peal_comm *comm, int color, int key, struct peal_comm **out)
{
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK || !out)
        return status != PEAL_OK ? status : PEAL_INVALID;
    struct ticket own = {.color = color < 0 ? -1 : color, .key = key, .rank = comm->team->rank};
    struct ticket tickets[PEAL_MOST_RANKS];
    status = peal_comm_exchange(comm, PEAL_CALL_SPLIT, &own, tickets, sizeof own);
    if (status != PEAL_OK)
        return status;
    comm->generation++;
    uint32_t self = 0;
    uint32_t size = select_group(tickets, comm->team->size, comm->team->rank, &self);
    if (color < 0)
        size = 0;
    struct peal_team *team = NULL;
    struct peal_comm *child = NULL;
    struct peal_text why = {0};
    if (comm->team->threads)
        status = split_threads(comm, tickets, size, self, &team);
    else if (size > 0)
        status = split_processes(comm, tickets, size, self, &why, &team);
    if (comm->team->threads && status != PEAL_OK)
        return status; /* of all */
    if (status == PEAL_OK && size > 0) {
        status = begin_child(comm, team, &child);
        peal_text_puts(&why, status == PEAL_OK ? "" : peal_comm_error(NULL));
    }
    status = agree_on_split(comm, tickets, size, status, peal_text_get(&why));
    peal_text_release(&why);
    if (status != PEAL_OK) {
        peal_comm_close(child);
        return status;
    }
    *out = child;
    return PEAL_OK;
}

enum peal_status peal_comm_dup(struct peal_comm *comm, struct peal_comm **out)
{
    return peal_comm_split(comm, 0, 0, out);
}

/* Threads meet as processes do: by the socket, each with windows of its own. */
enum peal_status peal_comm_shrink(struct peal_comm *comm, struct peal_comm **out)
{
    if (!comm || !out)
        return PEAL_INVALID;
    if (peal_team_is_closed(comm->team) || peal_team_is_forked(comm->team))
        return peal_comm_check(comm);
    struct peal_team *old = comm->team;
    uint8_t optional[PEAL_MOST_RANKS];
    for (uint32_t r = 0; r < old->size; r++)
        optional[r] = 1;
    char job[PEAL_JOB_BYTES];
    /* Not by the number of splits: the last one may have counted on some ranks only. */
    name_group(comm, comm->shrinks++, "shrink", job);
    struct peal_text why = {0};
    enum peal_status status = PEAL_PEER_DEAD;
    struct peal_team *team = NULL;
    /* The lowest living rank leads; when it dies too, the next one. */
    for (uint32_t leader = 0; leader < old->size && status == PEAL_PEER_DEAD; leader++) {
        if (leader != old->rank && will_not_come(old, leader, NULL))
            continue;
        why.len = 0;
        struct peal_team_how how = {.rank = old->rank,
                                    .size = old->size,
                                    .job = job,
                                    .timeout_ms = peal_team_timeout(old),
                                    .meet_ms = old->meet_ms,
                                    .quiet = old->quiet,
                                    .optional = optional,
                                    .gone = will_not_come,
                                    .context = old,
                                    .leader = leader};
        status = peal_team_open(&how, &why, &team);
    }
    if (status != PEAL_OK)
        peal_comm_fail(comm, status, "shrink: %s", peal_text_get(&why));
    peal_text_release(&why);
    return status == PEAL_OK ? begin_child(comm, team, out) : status;
}
