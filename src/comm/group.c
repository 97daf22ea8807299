/* SPDX-License-Identifier: Apache-2.0 */
/* New communicators out of old ones: split, and shrink after a failure.
 *
 * A group has its communicator on all of its ranks or on none. So a split is two exchanges over the
 * old communicator. In the first, ranks announce which group they join and which place in their
 * windows they have reserved. Then each group makes its communicator. In the second exchange ranks
 * report how that ended. If one rank of a group has failed, all ranks of the group return its
 * status. The child shares the windows of its parent and opens no descriptor.
 *
 * A shrink cannot use calls of the old communicator, which has failed. The living ranks meet in
 * words of its control blocks (run/bootstrap/survivors.h), and repeat that if another rank dies
 * meanwhile. Shrinks have numbers of their own, because only some ranks may have counted the last
 * split.
 *
 * A split may reserve a twin of each new communicator. The only collective part of making a
 * communicator is that each rank learns the places of the others in their window files. So the
 * places of the twin are exchanged in the split, and peal_comm_twin does the rest when a rank first
 * needs the twin. A peer that needs it earlier can already write to its place, whose control block
 * and mailboxes exist. A rank that never needs the twin makes and closes it at the end, so that the
 * last rank gives the places back. */
#include "comm/core/env.h"
#include "comm/hosts/hosts.h"
#include "comm/simulated/platform.h"
#include "comm/watch/watch.h"

#include <stdio.h>
#include <stdlib.h>

/* What each rank announces at the beginning of a split: the group that it joins, and the place that
 * it has reserved for its window, or why it could not. */
struct group_ticket {
    int32_t color, key;
    uint32_t rank;
    uint32_t place, twin; /* twin: 0 = none is wanted */
    uint64_t status;
    char why[176];
};

static int compare_tickets(const void *a, const void *b)
{
    const struct group_ticket *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->rank < y->rank)
        return -1;
    return x->rank > y->rank;
}

/* This rank's group among all tickets, sorted; returns its size. */
static uint32_t select_group(struct group_ticket *tickets, uint32_t size, uint32_t rank,
                             uint32_t *self)
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

/* The name of a group, different for every group of every communicator, however often they are
 * split. */
static void name_group(const struct peal_comm *comm, uint64_t generation, const char *group,
                       char out[static PEAL_JOB_BYTES])
{
    char name[2 * PEAL_JOB_BYTES];
    snprintf(name, sizeof name, "%s.%llu.%s", comm->team->job, (unsigned long long)generation,
             group);
    peal_env_job(name, out);
}

/* How a rank's part of a split has ended. */
struct outcome {
    uint64_t status;
    struct peal_span_hello hello; /* of a group on several hosts */
    char why[160];
};

/* All ranks compare how it has ended: either all ranks of a group get its communicator or none
 * does. The old one stays usable. */
static enum peal_status agree_on_split(struct peal_comm *comm, const struct group_ticket *group,
                                       uint32_t size, enum peal_status status, const char *why,
                                       struct peal_span_hello *hellos)
{
    struct outcome own = {.status = status, .hello = hellos[0]}, all[PEAL_MOST_RANKS];
    snprintf(own.why, sizeof own.why, "%s", why);
    enum peal_status exchanged = peal_comm_exchange(comm, PEAL_CALL_SPLIT, &own, all, sizeof own);
    if (exchanged != PEAL_OK)
        return exchanged;
    for (uint32_t i = 0; i < size; i++)
        hellos[i] = all[group[i].rank].hello;
    for (uint32_t i = 0; i < size; i++) {
        if (own.status != PEAL_OK)
            break;
        own = all[group[i].rank];
    }
    own.why[sizeof own.why - 1] = '\0';
    if (own.status != PEAL_OK)
        peal_comm_fail(comm, (enum peal_status)own.status, "split: %s", own.why);
    return (enum peal_status)own.status;
}

/* If the parent is on a simulated machine, so is the new communicator. */
static enum peal_status begin_child(const struct peal_comm *parent, struct peal_team *team,
                                    struct peal_comm **out)
{
    struct peal_comm *comm = NULL;
    enum peal_status status = peal_comm_new(team, parent, &comm);
    if (status == PEAL_OK)
        status = peal_platform_again(parent->platform, comm);
    if (status != PEAL_OK) {
        peal_comm_close(comm);
        return status;
    }
    peal_watch_open(comm, parent);
    *out = comm;
    return PEAL_OK;
}

/* The new team over the windows of the old one, and a communicator around it. */
static enum peal_status make_child(struct peal_comm *comm, const struct peal_team_group *group,
                                   struct peal_text *why, struct peal_comm **out)
{
    struct peal_team *team = NULL;
    enum peal_status status = peal_team_derive(comm->team, group, why, &team);
    if (status != PEAL_OK)
        return status;
    status = begin_child(comm, team, out);
    if (status != PEAL_OK)
        peal_text_puts(why, peal_comm_error(NULL));
    return status;
}

/* The rank of the group that has no window; size: all have one. */
static uint32_t find_refusal(const struct group_ticket *group, uint32_t size)
{
    uint32_t i = 0;
    while (i < size && group[i].status == PEAL_OK)
        i++;
    return i;
}

/* A rank that wants a twin where this one does not, or the other way round; size: none. */
static uint32_t find_unlike(const struct group_ticket *group, uint32_t size, uint32_t self)
{
    uint32_t i = 0;
    while (i < size && (group[i].twin != 0) == (group[self].twin != 0))
        i++;
    return i;
}

/* The places of this rank for a communicator that is not made. */
static void give_up(struct peal_team *team, const struct group_ticket *own)
{
    if (own->status == PEAL_OK)
        peal_team_give_up(team, own->place);
    if (own->status == PEAL_OK && own->twin != 0)
        peal_team_give_up(team, own->twin);
}

static enum peal_status refuse_group(struct peal_comm *comm, struct group_ticket *group,
                                     uint32_t size, uint32_t self, struct peal_text *why)
{
    uint32_t refusal = find_refusal(group, size), unlike = find_unlike(group, size, self);
    if (refusal == size && unlike == size)
        return PEAL_OK;
    give_up(comm->team, &group[self]); /* no rank of the group goes on */
    if (refusal == size) {
        peal_text_printf(why, "ranks %u and %u do not agree on a twin", group[unlike].rank,
                         group[self].rank);
        return PEAL_MISMATCH;
    }
    group[refusal].why[sizeof group->why - 1] = '\0';
    peal_text_printf(why, "rank %u: %s", group[refusal].rank, group[refusal].why);
    return (enum peal_status)group[refusal].status;
}

/* Remembers where the twin of a new communicator is to be. */
static enum peal_status keep_twin(struct peal_comm *comm, struct peal_comm *child,
                                  const struct group_ticket *group, uint32_t size, uint32_t self,
                                  struct peal_text *why)
{
    if (group[self].twin == 0)
        return PEAL_OK;
    child->twin_places = calloc(size, sizeof *child->twin_places);
    if (!child->twin_places) {
        peal_team_give_up(comm->team, group[self].twin);
        peal_text_puts(why, "no memory for a communicator");
        return PEAL_NO_MEMORY;
    }
    for (uint32_t i = 0; i < size; i++)
        child->twin_places[i] = group[i].twin;
    return PEAL_OK;
}

static enum peal_status join_group(struct peal_comm *comm, struct group_ticket *group,
                                   uint32_t size, uint32_t self, struct peal_hosts_part *part,
                                   struct peal_text *why, struct peal_comm **out)
{
    uint32_t ranks[PEAL_MOST_RANKS], places[PEAL_MOST_RANKS];
    char job[PEAL_JOB_BYTES], first[16];
    enum peal_status status = refuse_group(comm, group, size, self, why);
    if (status != PEAL_OK)
        return status;
    for (uint32_t i = 0; i < size; i++) {
        ranks[i] = group[i].rank;
        places[i] = group[i].place;
    }
    snprintf(first, sizeof first, "%u", group[0].rank);
    name_group(comm, comm->generation, first, job);
    struct peal_team_group made = {
        .rank = self, .size = size, .ranks = ranks, .places = places, .job = job};
    peal_hosts_cut(comm->team, part, &made);
    status = make_child(comm, &made, why, out);
    if (status == PEAL_OK)
        return keep_twin(comm, *out, group, size, self, why);
    if (group[self].twin != 0)
        peal_team_give_up(comm->team, group[self].twin);
    return status;
}

/* The group is on several hosts, and each rank has sent the others its addresses. */
static enum peal_status meet_far(struct peal_comm *comm, struct peal_comm *child,
                                 const struct peal_span_hello *hellos)
{
    struct peal_text why = {0};
    enum peal_status status = peal_team_meet_far(child->team, hellos, &why);
    if (status != PEAL_OK)
        peal_comm_fail(comm, status, "split: %s", peal_text_get(&why));
    peal_text_release(&why);
    child->engine.spins = child->team->policy.spins;
    return status;
}

/* Can a rank make the twin alone? Not with ranks on other hosts, which must connect, and not on a
 * simulated machine, which one rank owns: there the twin is made with the split. */
static bool can_wait_for_twin(const struct peal_comm *comm)
{
    return !comm->team->span && !comm->platform;
}

static struct group_ticket write_ticket(struct peal_comm *comm, int color, int key, bool twin)
{
    struct group_ticket own = {
        .color = color < 0 ? -1 : color, .key = key, .rank = comm->team->rank};
    struct peal_text why = {0};
    if (color < 0)
        return own;
    own.status = peal_team_reserve(comm->team, PEAL_LIFE_OPENING, &own.place, &why);
    if (own.status == PEAL_OK && twin) {
        own.status = peal_team_reserve(comm->team, PEAL_LIFE_KEPT, &own.twin, &why);
        if (own.status != PEAL_OK)
            peal_team_give_up(comm->team, own.place);
    }
    snprintf(own.why, sizeof own.why, "%s", peal_text_get(&why));
    peal_text_release(&why);
    return own;
}

/* One meeting; with room for a twin if wanted. */
static enum peal_status split(struct peal_comm *comm, int color, int key, bool twin,
                              struct peal_comm **out)
{
    struct group_ticket own = write_ticket(comm, color, key, twin);
    struct group_ticket tickets[PEAL_MOST_RANKS];
    struct peal_text why = {0};
    enum peal_status status = peal_comm_exchange(comm, PEAL_CALL_SPLIT, &own, tickets, sizeof own);
    if (status != PEAL_OK) /* the places are used up: some may have got their numbers */
        return status;
    comm->generation++;
    uint32_t self = 0, size = 0;
    if (color >= 0)
        size = select_group(tickets, comm->team->size, comm->team->rank, &self);
    struct peal_comm *child = NULL;
    struct peal_hosts_part part = {.hello = {0}};
    struct peal_span_hello hellos[PEAL_MOST_RANKS];
    if (size > 0)
        status = join_group(comm, tickets, size, self, &part, &why, &child);
    hellos[0] = part.hello;
    status = agree_on_split(comm, tickets, size, status, peal_text_get(&why), hellos);
    if (status == PEAL_OK && child && child->team->span)
        status = meet_far(comm, child, hellos);
    peal_text_release(&why);
    if (status != PEAL_OK) {
        peal_comm_close(child);
        return status;
    }
    *out = child;
    return PEAL_OK;
}

enum peal_status peal_comm_split(struct peal_comm *comm, int color, int key, struct peal_comm **out)
{
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK || !out)
        return status != PEAL_OK ? status : PEAL_INVALID;
    return split(comm, color, key, false, out);
}

enum peal_status peal_comm_split_twin(struct peal_comm *comm, int color, int key,
                                      struct peal_comm **out)
{
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK || !out)
        return status != PEAL_OK ? status : PEAL_INVALID;
    bool later = can_wait_for_twin(comm);
    struct peal_comm *child = NULL;
    status = split(comm, color, key, later, &child);
    if (status == PEAL_OK && child && !later) {
        status = split(child, 0, 0, false, &child->twin);
        if (status != PEAL_OK) {
            peal_comm_fail(comm, status, "%s", peal_comm_error(child));
            peal_comm_close(child);
        }
    }
    if (status == PEAL_OK)
        *out = child;
    return status;
}

/* Makes the team of the twin, once. Touches nothing that calls on the communicator change. */
static enum peal_status derive_twin(struct peal_comm *comm, struct peal_text *why,
                                    struct peal_team **out)
{
    uint32_t ranks[PEAL_MOST_RANKS];
    char job[PEAL_JOB_BYTES];
    for (uint32_t r = 0; r < comm->team->size; r++)
        ranks[r] = r;
    name_group(comm, 0, "twin", job);
    struct peal_team_group group = {.rank = comm->team->rank,
                                    .size = comm->team->size,
                                    .ranks = ranks,
                                    .places = comm->twin_places,
                                    .job = job};
    return peal_team_derive(comm->team, &group, why, out);
}

enum peal_status peal_comm_twin(struct peal_comm *comm, struct peal_comm **out)
{
    if (!comm || !out || peal_team_is_closed(comm->team) || peal_team_is_forked(comm->team))
        return PEAL_INVALID;
    if (comm->twin) {
        *out = comm->twin;
        comm->twin = NULL;
        return PEAL_OK;
    }
    if (!comm->twin_places)
        return PEAL_INVALID;
    struct peal_text why = {0};
    struct peal_team *team = NULL;
    enum peal_status status = derive_twin(comm, &why, &team);
    peal_text_release(&why);
    if (status != PEAL_OK)
        return status;
    free(comm->twin_places); /* used up, even if there is no memory for the rest */
    comm->twin_places = NULL;
    return begin_child(comm, team, out);
}

void peal_comm_drop_twin(struct peal_comm *comm)
{
    struct peal_text why = {0};
    struct peal_team *team = NULL;
    bool unmade = comm->twin_places && !peal_team_is_forked(comm->team);
    if (unmade && derive_twin(comm, &why, &team) == PEAL_OK)
        peal_team_close(team);
    peal_text_release(&why);
    free(comm->twin_places);
    peal_comm_close(comm->twin);
}

enum peal_status peal_comm_dup(struct peal_comm *comm, struct peal_comm **out)
{
    return peal_comm_split(comm, 0, 0, out);
}

/* meet_survivors for ranks on several hosts. */
static enum peal_status shrink_far(struct peal_comm *comm, uint32_t turn, struct peal_text *why,
                                   struct peal_comm **out)
{
    char job[PEAL_JOB_BYTES];
    struct peal_team *team = NULL;
    name_group(comm, turn, "shrink", job);
    enum peal_status status = peal_hosts_shrink(comm, job, why, &team);
    if (status != PEAL_OK)
        return status;
    return begin_child(comm, team, out);
}

/* One meeting of those that are left. PEAL_PEER_DEAD on all of them: another one has died
 * meanwhile. */
static enum peal_status meet_survivors(struct peal_comm *comm, uint32_t turn, struct peal_text *why,
                                       struct peal_comm **out)
{
    struct peal_survivors survivors;
    char job[PEAL_JOB_BYTES];
    uint32_t place = 0;
    if (comm->team->span)
        return shrink_far(comm, turn, why, out);
    peal_text_printf(why, "rank %u: ", comm->team->rank);
    enum peal_status status = peal_team_reserve(comm->team, PEAL_LIFE_OPENING, &place, why);
    if (status == PEAL_OK)
        why->len = 0;
    status = peal_survivors_meet(comm->team, turn, place, status, why, &survivors);
    if (status != PEAL_OK)
        return status;
    name_group(comm, turn, "shrink", job);
    struct peal_team_group group = {.rank = survivors.rank,
                                    .size = survivors.size,
                                    .ranks = survivors.ranks,
                                    .places = survivors.places,
                                    .job = job};
    status = make_child(comm, &group, why, out);
    status = peal_survivors_agree(comm->team, turn, &survivors, status, why);
    if (status != PEAL_OK) {
        peal_comm_close(*out);
        *out = NULL;
    }
    return status;
}

/* Over the windows of the old communicator, which has failed. Its own numbers, not those of splits:
 * the last one may have counted on some ranks only. */
enum peal_status peal_comm_shrink(struct peal_comm *comm, struct peal_comm **out)
{
    if (!comm || !out)
        return PEAL_INVALID;
    if (peal_team_is_closed(comm->team) || peal_team_is_forked(comm->team))
        return peal_comm_check(comm);
    struct peal_text why = {0};
    struct peal_comm *child = NULL;
    enum peal_status status;
    do {
        why.len = 0;
        status = meet_survivors(comm, ++comm->shrinks, &why, &child);
    } while (status == PEAL_PEER_DEAD);
    if (status != PEAL_OK)
        peal_comm_fail(comm, status, "shrink: %s", peal_text_get(&why));
    peal_text_release(&why);
    if (status == PEAL_OK)
        *out = child;
    return status;
}
