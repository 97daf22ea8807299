/* SPDX-License-Identifier: Apache-2.0 */
/* Span: a team whose ranks are on several hosts.
 *
 *   span.h       the endpoint of a process in the network, and what a team knows of its far ranks
 *   span.c       endpoints, segments, attaching teams
 *   control.c    what ranks report to each other beside data: failures, where they wait, that they leave
 *   near.h       the ranks of one host meet among themselves
 *   gather.c     survivors agree on who they are, through the endpoint they have already
 *
 * Near and far. A rank on the same host is near: its window is mapped and used by load and store, as
 * on one host. A far one has no mapping. What a team reads of a far rank's control block is a mirror of
 * it in private memory (team->controls has it at the rank's place), which the rank itself writes:
 *
 *   made, gates     at once, word by word: others wait for them (family.h)
 *   the rest        when it is asked for, as a whole: reports need it, calls do not
 *
 * Everything else of a far window is reached by the executor through the net (exec/far.h).
 * What lies in rank 0's window on one host lies in that of the first rank of each host: where ranks
 * sleep, and the report of a failure. Cells lie in their owner's own window.
 *
 * One endpoint serves a communicator and all that are made from it. It is used under its lock, by
 * whichever thread has something to send or waits; callbacks of the net run under it too.
 */
#ifndef PEAL_RUN_SPAN_H
#define PEAL_RUN_SPAN_H

#include "run/net/net.h"
#include "run/team/team.h"

#include <pthread.h>

struct peal_endpoint;

/* A rank of a team, as the network has it. */
struct peal_peer {
    uint32_t at;     /* its rank in the net */
    uint32_t node;   /* its host, by number */
    uint32_t window; /* its segments: the window, */
    uint32_t mirror; /* and its mirrors of others' control blocks */
};

/* What ranks exchange when a team is made. */
struct peal_span_hello {
    uint32_t status; /* enum peal_status: how far this rank has come */
    uint32_t window, mirror;
    int32_t pid;
    uint32_t cores;
    uint32_t layout; /* a hash: must be equal everywhere */
};

struct peal_span {
    struct peal_endpoint *endpoint;
    struct peal_span *next; /* of the endpoint's teams */
    struct peal_team *team;
    uint64_t id; /* of the team, in control messages */
    uint32_t node, nodes;
    uint32_t *places; /* the hosts of its ranks, numbered in their order: the placement of plans */
    struct peal_peer *peers; /* by rank of the team */
    uint8_t *far;            /* by rank: 1 if on another host */
    uint32_t window, mirror; /* own segments */
    char *mirrors;
    int mirrors_fd; /* for 'peal ps'; -1: only the communicator that was opened has it */
    char *whole;    /* this rank's window once more, in one piece: what peers reach */
    /* Control messages that are still to be sent, by rank: see control.c. Under the lock. */
    uint32_t *dirty;
    uint8_t *unsent;
    uint32_t unsent_ranks; /* ranks that something is to be sent to */
    uint64_t told_ns;      /* when the other hosts were last told of this rank */
    bool lent;             /* in some call, ranks of other hosts have read this one's memory */
    bool retracted;        /* the segments are closed, as the team has failed */
    _Atomic uint64_t
        *asked_ns; /* when each was first asked without an answer since; 0: it has answered */
};

/* ---- endpoints ---- */

struct peal_endpoint *peal_endpoint_new(void);
/* What the net of this endpoint calls; before it is opened. */
struct peal_net_events peal_endpoint_events(struct peal_endpoint *endpoint);
/* nodes[r]: the host of rank r of the net. */
enum peal_status peal_endpoint_use(struct peal_endpoint *endpoint, struct peal_net *net,
                                   const uint32_t *nodes);
/* Drops one user's hold; the last one closes the net. */
void peal_endpoint_drop(struct peal_endpoint *endpoint);
/* PEAL_PROGRESS=thread: a thread serves the net while no rank's thread does. */
enum peal_status peal_endpoint_serve(struct peal_endpoint *endpoint);

/* Locks the net and returns it; never NULL. */
struct peal_net *peal_endpoint_lock(struct peal_endpoint *endpoint);
void peal_endpoint_unlock(struct peal_endpoint *endpoint);
/* A number for a new segment, with its generation; PEAL_NONE: all are in use. Locked by the caller. */
uint32_t peal_endpoint_expose(struct peal_endpoint *endpoint, void *base, uint64_t bytes);
void peal_endpoint_retract(struct peal_endpoint *endpoint, uint32_t segment);
/* The host of a rank of the net. */
uint32_t peal_endpoint_node(const struct peal_endpoint *endpoint, uint32_t at);

/* ---- teams ---- */

struct peal_span_options {
    struct peal_endpoint *endpoint;
    const uint32_t *members; /* ranks of the net, by rank of the team */
};

/* Ranks of the team on this host, in order: their number, and this one's place among them. */
uint32_t peal_span_near(const struct peal_span_options *options, uint32_t size, uint32_t rank,
                        uint32_t *near);
/* Makes the team span hosts: its mirrors and segments. Its window is mapped already. `hello` gets what the
 * other ranks have to know. */
enum peal_status peal_span_attach(struct peal_team *team, const struct peal_span_options *options,
                                  struct peal_span_hello *hello);
/* Completes it with the hellos of all ranks. PEAL_MISMATCH and a line in `why` if one has another layout. */
enum peal_status peal_span_meet(struct peal_team *team, const struct peal_span_hello *all,
                                struct peal_text *why);
/* Leaves: the far ranks are notified. `forked`: in a child, which notifies no rank. */
void peal_span_detach(struct peal_team *team, bool forked);

/* Is that rank on another host? */
static inline bool peal_team_is_far(const struct peal_team *team, uint32_t rank)
{
    return team->span && team->span->far[rank];
}

/* Moves what can move of the network. What arrives does not count as progress of a call: questions
 * and answers of reports are among it. */
void peal_span_progress(struct peal_span *span);
/* Endpoints of this process. Ranks of other hosts may wait for any of them, so a wait, in whatever team, moves all.
 * Relaxed: only a hint whether to look. */
extern _Atomic uint32_t peal_endpoints;
/* All but that one, which may be NULL. */
void peal_endpoints_progress(const struct peal_endpoint *but);
static inline void peal_team_progress(const struct peal_team *team)
{
    uint32_t own = 0;
    if (team->span) {
        peal_span_progress(team->span);
        own = 1;
    }
    if (__builtin_expect(atomic_load_explicit(&peal_endpoints, memory_order_relaxed) > own, 0))
        peal_endpoints_progress(own ? team->span->endpoint : NULL);
}
/* Sleeps until something arrives, for a millisecond at most: near ranks cannot end this sleep. */
void peal_span_sleep(struct peal_span *span, uint64_t max_ns);
/* Has the process of a far rank ended, or its host? `why` may be NULL. */
bool peal_span_is_dead(struct peal_span *span, uint32_t rank, struct peal_text *why);

/* ---- control.c ---- */

/* A word of this rank's control block has changed that others wait for: `made` or `gates`. */
void peal_span_publish(struct peal_span *span, const _Atomic uint64_t *word);
/* This team has failed here: the far ranks are told, with the report. */
void peal_span_announce(struct peal_span *span);
/* Called in progress, under the lock: once per second one rank of each other host gets this rank's status, for
 * 'peal ps' there. */
void peal_span_tell(struct peal_span *span);
/* Asks all far ranks for their status; the answers go to their mirrors. */
void peal_span_ask(struct peal_span *span);
/* The same before a report; waits briefly for the answers. */
void peal_span_inquire(struct peal_span *span);
/* For how long that rank has not answered, in seconds; 0: it has. */
double peal_span_silence(const struct peal_span *span, uint32_t rank);
/* No peer reaches this team's memory any more: it has failed. */
void peal_span_retract(struct peal_span *span);

/* Before closing, if this rank's memory is read by others in calls that it has left: serves them until all have
 * left those calls, too. */
void peal_span_linger(struct peal_span *span, uint32_t limit_ms);

/* Within progress, under the lock. */
void peal_control_take(struct peal_endpoint *endpoint, uint32_t at, uint32_t kind,
                       const void *bytes, uint64_t len);
/* Reports to all far ranks that this one leaves; waits briefly for room. */
void peal_control_leave(struct peal_span *span);

/* ---- gather.c ---- */

struct peal_span_gather {
    struct peal_endpoint *endpoint;
    uint64_t id;             /* of this gathering: the same on all ranks, and used once */
    const uint32_t *members; /* ranks of the net */
    uint32_t size, self;
    uint32_t bytes; /* of each block; at most PEAL_SPAN_BLOCK */
    uint32_t timeout_ms;
    /* Will that member not come any more? */
    int (*gone)(void *context, uint32_t member, struct peal_text *ended);
    void *context;
    bool optional; /* those that will not come are not missed */
};
enum { PEAL_SPAN_BLOCK = 24, PEAL_SPAN_MEMBERS = 256 };

/* Every member contributes a block and gets the blocks of all that came; came[m] says who, the same on all of them.
 * A member that the others took for gone is told that it did not come. PEAL_PEER_DEAD: a member that is not
 * optional is gone. */
enum peal_status peal_span_gather(const struct peal_span_gather *gather, const void *own, void *all,
                                  uint8_t *came);
/* Keeps a message of a gathering until this rank takes part in it. */
void peal_gather_take(struct peal_endpoint *endpoint, uint32_t at, uint32_t kind, const void *bytes,
                      uint64_t len);

#endif
