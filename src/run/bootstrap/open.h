/* SPDX-License-Identifier: Apache-2.0 */
/* How a team begins and ends. Ranks that have nothing in common yet open one (open.c): they meet
 * (rendezvous.h, at a door that other users cannot use: door.h; near.h: those of one host among
 * several). Ranks of a team derive another over the same windows (derive.c), also those that remain
 * after a failure (survivors.h). team_make.h: what both ways share. */
#ifndef PEAL_RUN_OPEN_H
#define PEAL_RUN_OPEN_H

#include "run/team/team.h"

struct peal_span_options;
struct peal_span_hello;

/* Bytes that opening takes on all ranks together. */
uint64_t peal_team_need(uint32_t size, bool threads);

struct peal_team_options {
    uint32_t rank, size;
    const char *job;
    uint32_t timeout_ms; /* of calls; 0: never */
    uint32_t meet_ms;    /* of meetings */
    bool quiet;
    /* Whether a rank will not come: see rendezvous.h. */
    int (*gone)(void *context, uint32_t rank, struct peal_text *ended);
    void *context;
    /* NULL: one host. Otherwise where the ranks are, and (out) what the others have to know of this
     * one; peal_team_meet_far must follow. */
    const struct peal_span_options *span;
    struct peal_span_hello *hello;
};

/* Collective over a rendezvous. `why` gets a line on failure. Then comes peal_team_join. */
enum peal_status peal_team_open(const struct peal_team_options *options, struct peal_text *why,
                                struct peal_team **out);
/* Of a team on several hosts: completes it with the hellos of all ranks, by rank. */
enum peal_status peal_team_meet_far(struct peal_team *team, const struct peal_span_hello *all,
                                    struct peal_text *why);
/* Collective: reports that this rank has all it needs (or, by `status` and `reason`, that it does
 * not), and learns the same of the others. PEAL_OK if all have; otherwise one status for all and,
 * in `why`, the reason of the first that does not. */
enum peal_status peal_team_join(struct peal_team *team, enum peal_status status, const char *reason,
                                struct peal_text *why);
/* `size` teams in this process, teams[r] for rank r. `why` (may be NULL) gets a line on failure. */
enum peal_status peal_team_open_threads(uint32_t size, uint32_t timeout_ms, struct peal_text *why,
                                        struct peal_team **teams);

/* Some ranks of a team, which are to form a team of their own over the same windows. */
struct peal_team_group {
    uint32_t rank, size;
    const uint32_t *ranks;  /* of each, in the old team */
    const uint32_t *places; /* of each: what it has reserved */
    const char *job;
    const struct peal_span_options *span; /* as in peal_team_options */
    struct peal_span_hello *hello;
};
/* First each rank reserves a place for its window, on its own; the caller passes its number to the
 * others. `life` is what peers see until this rank makes the team. `why` gets a line on failure.
 * The place may be given up if no rank goes on to peal_team_derive. */
enum peal_status peal_team_reserve(struct peal_team *team, enum peal_life life, uint32_t *place,
                                   struct peal_text *why);
void peal_team_give_up(struct peal_team *team, uint32_t place);
/* Then the team, when all places are known. No rank may use it before all have made it, on which
 * the callers agree through the old team; only messages may be sent before, which wait in the
 * mailboxes of PEAL_LIFE_KEPT. On failure the place is lost: peers may be using it. */
enum peal_status peal_team_derive(struct peal_team *old, const struct peal_team_group *group,
                                  struct peal_text *why, struct peal_team **out);

/* In a child that was forked after opening: only frees the child's memory; the other ranks do not
 * notice. NULL is ignored. */
void peal_team_close(struct peal_team *team);

#endif
