/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators on several hosts: opening, parts, shrinking.
 *
 * Who owns what. The endpoint (this process's end of the network) is counted: the team holds it,
 * and with it every team that is derived from that one. Opening drops its own count at the end.
 * `meet` is the caller's.
 *
 * What never changes. Opening is a sequence of meetings of all ranks: secret, addresses
 * (peal_net_open), and an account of each rank's status after its team and after its communicator.
 * No rank returns success before it has seen that every rank has succeeded; the lowest rank that
 * failed gives its reason to all.
 *
 * Why shrinking does not meet through the launcher's service: that may be gone, and it knows
 * nothing of dead ranks. The ranks that are left gather over the old network instead, in which a
 * rank counts as gone when its process or host is known to have ended, or when it has closed the
 * communicator. */
#include "comm/hosts/hosts.h"

#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum peal_status peal_hosts_compare(struct peal_meet *meet, uint32_t *nodes, bool *several,
                                    struct peal_text *why)
{
    enum peal_status status = peal_meet_nodes(meet, nodes, why);
    if (status != PEAL_OK)
        return status;
    *several = false;
    for (uint32_t r = 0; r < meet->size; r++)
        *several |= nodes[r] != nodes[0];
    return PEAL_OK;
}

/* ---- the network ---- */

static bool wants_thread(void)
{
    const char *wish = getenv("PEAL_PROGRESS");
    return wish && strcmp(wish, "thread") == 0;
}

/* Ranks that read different tables would take different algorithms. Rules of one host do not matter here. */
static void name_table(char *out, size_t cap)
{
    struct peal_table_of_rules table = {0};
    char path[4096];
    uint64_t hash = 0;
    if (peal_tune_path(path, sizeof path))
        peal_rules_load(path, &table);
    for (size_t i = 0; i < table.count; i++) {
        const struct peal_rule *rule = &table.rules[i];
        if (rule->hosts == 0)
            continue;
        hash = peal_hash_u64(peal_algo_index(rule->algo), peal_hash_u64(rule->hosts, hash));
        hash = peal_hash_u64(rule->bytes, peal_hash_u64(rule->ranks, hash));
        hash = peal_hash_u64(rule->segment, hash);
    }
    peal_rules_release(&table);
    snprintf(out, cap, "table %016llx", (unsigned long long)hash);
}

static enum peal_status open_endpoint(struct peal_meet *meet, const uint32_t *nodes, bool quiet,
                                      struct peal_text *why, struct peal_endpoint **out)
{
    uint8_t secret[PEAL_NET_SECRET] = {0};
    enum peal_status status = peal_meet_secret(meet, quiet, secret, why);
    struct peal_endpoint *endpoint = status == PEAL_OK ? peal_endpoint_new() : NULL;
    if (status == PEAL_OK && !endpoint)
        status = PEAL_NO_MEMORY;
    if (status != PEAL_OK)
        return status;
    char table[32];
    name_table(table, sizeof table);
    struct peal_net_config config = {.rank = meet->rank,
                                     .size = meet->size,
                                     .job = meet->job,
                                     .secret = secret,
                                     .versions = {.tune = table},
                                     .events = peal_endpoint_events(endpoint)};
    struct peal_net *net = NULL;
    status = peal_net_open(&config, meet, why, &net);
    explicit_bzero(secret, sizeof secret);
    if (status == PEAL_OK)
        status = peal_endpoint_use(endpoint, net, nodes);
    if (status == PEAL_OK && wants_thread())
        status = peal_endpoint_serve(endpoint);
    if (status != PEAL_OK) {
        peal_endpoint_drop(endpoint);
        return status;
    }
    *out = endpoint;
    return PEAL_OK;
}

/* ---- opening ---- */

/* The status of a rank's opening so far, and its hello. */
struct account {
    struct peal_span_hello hello;
    uint32_t status;
    char why[220];
    uint64_t machine; /* peal_topo_machine */
};

/* All ranks give an account; the first that has failed gives its reason to all. */
static enum peal_status give_account(struct peal_meet *meet, struct account *own,
                                     enum peal_status status, const char *reason,
                                     struct account *all, struct peal_text *why)
{
    own->status = (uint32_t)status;
    snprintf(own->why, sizeof own->why, "%s", reason);
    enum peal_status gathered = peal_meet_gather(meet, own, sizeof *own, all, why);
    if (gathered != PEAL_OK)
        return gathered;
    for (uint32_t r = 0; r < meet->size; r++) {
        if (all[r].status == PEAL_OK)
            continue;
        all[r].why[sizeof all[r].why - 1] = '\0';
        why->len = 0;
        peal_text_printf(why, "rank %u: %s", r, all[r].why);
        return all[r].status <= PEAL_REVOKED ? (enum peal_status)all[r].status : PEAL_SYSTEM;
    }
    return PEAL_OK;
}

static const char *reason_of(enum peal_status status, const struct peal_text *why)
{
    return why->len > 0 ? peal_text_get(why) : peal_status_text(status);
}

/* Several hosts may be one machine (PEAL_HOST, containers): its ranks get a core each across all of them. */
static void bind_core(const struct account *all, uint32_t rank, uint32_t size)
{
    uint32_t before = 0, mates = 0;
    for (uint32_t r = 0; r < size; r++) {
        bool same = all[r].machine == all[rank].machine;
        mates += same;
        before += same && r < rank;
    }
    peal_topo_bind(before, mates);
}

static enum peal_status open_team(struct peal_meet *meet, struct peal_endpoint *endpoint,
                                  const struct peal_team_options *options, struct account *all,
                                  struct peal_text *why, struct peal_team **out)
{
    uint32_t members[PEAL_MOST_RANKS];
    struct account own = {.machine = peal_topo_machine()};
    struct peal_text reason = {0};
    struct peal_span_hello hellos[PEAL_MOST_RANKS];
    struct peal_team_options far = *options;
    struct peal_span_options span = {endpoint, members};
    struct peal_team *team = NULL;
    for (uint32_t r = 0; r < options->size; r++)
        members[r] = r;
    far.span = &span;
    far.hello = &own.hello;
    enum peal_status status = peal_team_open(&far, &reason, &team);
    status = give_account(meet, &own, status, reason_of(status, &reason), all, why);
    peal_text_release(&reason);
    if (status == PEAL_OK) {
        for (uint32_t r = 0; r < options->size; r++)
            hellos[r] = all[r].hello;
        status = peal_team_meet_far(team, hellos, why);
    }
    if (status != PEAL_OK) {
        peal_team_close(team);
        return status;
    }
    bind_core(all, options->rank, options->size);
    *out = team;
    return PEAL_OK;
}

enum peal_status peal_hosts_open(struct peal_meet *meet, const uint32_t *nodes,
                                 const struct peal_team_options *options, struct peal_text *why,
                                 struct peal_comm **out)
{
    struct peal_endpoint *endpoint = NULL;
    struct account own = {0}, *all = calloc(meet->size, sizeof *all);
    if (!all)
        return PEAL_NO_MEMORY;
    /* Workers of a program on another host exchange it encrypted (driver/hosts). */
    bool quiet = getenv("PEAL_HOST_WORKER") != NULL;
    enum peal_status status = open_endpoint(meet, nodes, quiet, why, &endpoint);
    struct peal_team *team = NULL;
    struct peal_comm *comm = NULL;
    if (status == PEAL_OK)
        status = open_team(meet, endpoint, options, all, why, &team);
    if (status == PEAL_OK) {
        status = peal_comm_new(team, NULL, &comm);
        const char *reason = status == PEAL_OK ? "" : peal_comm_error(NULL);
        status = give_account(meet, &own, status, reason, all, why);
    }
    peal_endpoint_drop(endpoint); /* the team holds it */
    free(all);
    if (status != PEAL_OK) {
        peal_comm_close(comm);
        return status;
    }
    *out = comm;
    return PEAL_OK;
}

/* ---- parts ---- */

void peal_hosts_cut(const struct peal_team *parent, struct peal_hosts_part *part,
                    struct peal_team_group *group)
{
    bool several = false;
    if (parent->span) {
        for (uint32_t i = 0; i < group->size; i++) {
            several |= parent->span->far[group->ranks[i]] != 0;
            part->at[i] = parent->span->peers[group->ranks[i]].at;
        }
    }
    if (!several)
        return;
    part->span = (struct peal_span_options){parent->span->endpoint, part->at};
    group->span = &part->span;
    group->hello = &part->hello;
}

/* ---- shrinking ---- */

static int will_not_come(void *context, uint32_t rank, struct peal_text *reason)
{
    const struct peal_team *team = context;
    (void)reason;
    /* Partner: peal_team_close. */
    return peal_team_is_dead(team, rank) ||
           atomic_load_explicit(&team->controls[rank]->life, memory_order_acquire) ==
               PEAL_LIFE_LEFT;
}

/* The ranks that are left. */
struct rest {
    const struct peal_team *old;
    uint32_t members[PEAL_MOST_RANKS], at[PEAL_MOST_RANKS]; /* old ranks, and those of the net */
    uint32_t places[PEAL_MOST_RANKS];                       /* of their windows */
    uint32_t size, self;
};

static int is_missing(void *context, uint32_t member, struct peal_text *reason)
{
    const struct rest *rest = context;
    peal_span_progress(rest->old->span); /* others may still be gathering */
    return will_not_come((void *)(uintptr_t)rest->old, rest->members[member], reason);
}

/* The ranks that are left find out which they are. */
static enum peal_status find_rest(struct peal_team *old, uint64_t id, uint32_t place,
                                  struct peal_text *why, struct rest *out)
{
    uint32_t at[PEAL_MOST_RANKS];
    uint8_t came[PEAL_MOST_RANKS] = {0};
    uint32_t places[PEAL_MOST_RANKS];
    for (uint32_t r = 0; r < old->size; r++)
        at[r] = old->span->peers[r].at;
    struct peal_span_gather gather = {.endpoint = old->span->endpoint,
                                      .id = id,
                                      .members = at,
                                      .size = old->size,
                                      .self = old->rank,
                                      .bytes = sizeof place,
                                      .timeout_ms = old->meet_ms,
                                      .gone = will_not_come,
                                      .context = old,
                                      .optional = true};
    enum peal_status status = peal_span_gather(&gather, &place, places, came);
    if (status == PEAL_TIMEOUT)
        peal_text_printf(why, "the others did not come in time");
    if (status != PEAL_OK)
        return status;
    if (!came[old->rank]) {
        peal_text_printf(why, "the others took this rank for dead, and have gone on without it");
        return PEAL_SYSTEM;
    }
    *out = (struct rest){.old = old};
    for (uint32_t r = 0; r < old->size; r++) {
        if (!came[r])
            continue;
        out->self = r == old->rank ? out->size : out->self;
        out->at[out->size] = at[r];
        out->places[out->size] = places[r];
        out->members[out->size++] = r;
    }
    return PEAL_OK;
}

/* Exchanges the hellos of the ranks that are left, and the status of each. */
static enum peal_status meet_rest(struct peal_team *team, struct rest *rest, uint64_t id,
                                  enum peal_status status, struct peal_span_hello *own,
                                  struct peal_text *why)
{
    struct peal_span_hello all[PEAL_MOST_RANKS];
    uint8_t came[PEAL_MOST_RANKS];
    struct peal_span_gather gather = {.endpoint = rest->old->span->endpoint,
                                      .id = id,
                                      .members = rest->at,
                                      .size = rest->size,
                                      .self = rest->self,
                                      .bytes = sizeof *own,
                                      .timeout_ms = rest->old->meet_ms,
                                      .gone = is_missing,
                                      .context = rest};
    own->status = (uint32_t)status;
    enum peal_status met = peal_span_gather(&gather, own, all, came);
    if (status != PEAL_OK || met != PEAL_OK)
        return status != PEAL_OK ? status : met;
    for (uint32_t r = 0; r < rest->size; r++) {
        if (all[r].status == PEAL_OK)
            continue;
        peal_text_printf(why, "rank %u could not take part", rest->members[r]);
        return PEAL_SYSTEM;
    }
    return team && team->span ? peal_team_meet_far(team, all, why) : PEAL_OK;
}

enum peal_status peal_hosts_shrink(struct peal_comm *comm, const char *job, struct peal_text *why,
                                   struct peal_team **out)
{
    struct peal_team *old = comm->team, *team = NULL;
    uint64_t id = peal_hash_bytes(job, strlen(job), 2);
    uint32_t place = 0;
    struct rest rest;
    struct peal_hosts_part part = {.hello = {0}};
    enum peal_status status = peal_team_reserve(old, PEAL_LIFE_OPENING, &place, why);
    if (status == PEAL_OK)
        status = find_rest(old, id, place, why, &rest);
    if (status != PEAL_OK)
        return status;
    struct peal_team_group group = {.rank = rest.self,
                                    .size = rest.size,
                                    .ranks = rest.members,
                                    .places = rest.places,
                                    .job = job};
    peal_hosts_cut(old, &part, &group);
    status = peal_team_derive(old, &group, why, &team);
    status = meet_rest(team, &rest, peal_hash_u64(1, id), status, &part.hello, why);
    peal_team_depart(old); /* others may still need what this rank has sent */
    if (status != PEAL_OK) {
        peal_team_close(team);
        return status;
    }
    *out = team;
    return PEAL_OK;
}
