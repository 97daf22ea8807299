/* SPDX-License-Identifier: Apache-2.0 */
/* Span: a team whose ranks are on several hosts.
 *
 *   span.h       the endpoint of a process in the network, and what a team knows of its far ranks
 *   span.c       endpoints, segments, attaching teams
 *   control.c    what ranks report to each other besides data: failures, where they wait, that they
 *                leave
 *   near.h       the ranks of one host meet among themselves
 *   gather.c     survivors agree on who they are, through the endpoint that they already have
 *
 * Near and far. A rank on the same host is near: its window is mapped and used by load and store,
 * as in a team on one host. The window of a far rank is not mapped. In place of its control block
 * the team has a mirror in its own memory (team->controls[rank]), which the far rank fills in:
 *
 *   made, gates     at once, word by word: others wait for them (family.h)
 *   the rest        on request, all together: reports need it, calls do not
 *
 * The executor reaches everything else of a far window through the net (exec/far.h). What lies in
 * rank 0's window on one host lies in the window of the first rank of each host: where ranks sleep,
 * and the report of a failure. Cells lie in their owner's window.
 *
 * One endpoint serves a communicator and all that are made from it. It is used under its lock, by
 * any thread that waits or has something to send; callbacks of the net run under the lock too.
 */
#ifndef PEAL_RUN_SPAN_H
#define PEAL_RUN_SPAN_H

#include "run/net/net.h"
#include "run/team/team.h"

#include <pthread.h>

struct peal_endpoint;

/* Flag of a peal_net_accumulate: no other rank changes the memory meanwhile. */
enum { PEAL_SPAN_EXCLUSIVE = 1 };

/* A rank of a team, as the network knows it. */
struct peal_peer {
    uint32_t at;   /* its rank in the net */
    uint32_t node; /* its host, by number */
    /* Its segments: the window, and its mirrors of other ranks' control blocks. */
    uint32_t window, mirror;
};

/* What ranks exchange when a team is made. */
struct peal_span_hello {
    uint32_t status; /* enum peal_status: whether this rank could make its part */
    uint32_t window, mirror;
    int32_t pid;
    uint32_t cores;
    uint32_t layout; /* a hash: must be equal everywhere */
};

struct peal_span {
    struct peal_endpoint *endpoint;
    struct peal_span *next; /* of the endpoint's list */
    struct peal_team *team;
    uint64_t id; /* of the team, in control messages */
    uint32_t node, nodes;
    uint32_t *places; /* by rank: its host, numbered by first appearance; the placement of plans */
    struct peal_peer *peers; /* by rank of the team */
    uint8_t *far;            /* by rank: 1 if on another host */
    uint32_t window, mirror; /* own segments */
    char *mirrors;
    int mirrors_fd; /* for 'peal ps'; -1 in a team that was made from another */
    char *whole;    /* a second mapping of this rank's window, in one piece: what peers reach */
    /* Control messages that are still to be sent, by rank: see control.c. Under the lock. */
    uint32_t *dirty;
    uint8_t *unsent;
    uint32_t unsent_ranks; /* ranks to which something is to be sent */
    uint64_t sent_ns;      /* when this rank's status was last sent to the other hosts */
    bool lent;             /* in some call, ranks of other hosts have read this one's memory */
    bool retracted;        /* peers cannot reach the segments any more */
    /* By rank: when it was first asked for its status without an answer since; 0: it has
     * answered. */
    _Atomic uint64_t *asked_ns;
};

/* ---- endpoints ---- */

struct peal_endpoint *peal_endpoint_new(void);
/* The callbacks with which to open this endpoint's net. */
struct peal_net_events peal_endpoint_events(struct peal_endpoint *endpoint);
/* nodes[r]: the host of rank r of the net. */
enum peal_status peal_endpoint_use(struct peal_endpoint *endpoint, struct peal_net *net,
                                   const uint32_t *nodes);
/* Ends one user's hold; the last one closes the net. NULL is ignored. */
void peal_endpoint_drop(struct peal_endpoint *endpoint);
/* PEAL_PROGRESS=thread: a thread serves the net while no rank's thread does. */
enum peal_status peal_endpoint_serve(struct peal_endpoint *endpoint);
/* At the end of a call: the caller may not come back for long. What it has sent and no connection has taken yet is then sent by
 * a thread, which is started when that happens for the first time. */
void peal_span_depart(struct peal_span *span);

/* Locks the net and returns it; never NULL. */
struct peal_net *peal_endpoint_lock(struct peal_endpoint *endpoint);
void peal_endpoint_unlock(struct peal_endpoint *endpoint);
/* Exposes memory as a new segment and returns its number, which includes a generation. PEAL_NONE:
 * all numbers are in use, or the net refuses. Under the lock, both. */
uint32_t peal_endpoint_expose(struct peal_endpoint *endpoint, void *base, uint64_t bytes);
void peal_endpoint_retract(struct peal_endpoint *endpoint, uint32_t segment);
/* The host of a rank of the net. */
uint32_t peal_endpoint_node(const struct peal_endpoint *endpoint, uint32_t at);

/* ---- teams ---- */

/* Which endpoint a team uses, and where its ranks are. */
struct peal_span_options {
    struct peal_endpoint *endpoint;
    const uint32_t *members; /* ranks of the net, by rank of the team */
};

/* Writes the ranks of the team that are on the host of `rank`, in order; returns their number. */
uint32_t peal_span_near(const struct peal_span_options *options, uint32_t size, uint32_t rank,
                        uint32_t *near);
/* Makes the team span hosts: its mirrors and segments. Its window must be mapped. `hello` gets what
 * the other ranks have to know. */
enum peal_status peal_span_attach(struct peal_team *team, const struct peal_span_options *options,
                                  struct peal_span_hello *hello);
/* Completes it with the hellos of all ranks. PEAL_MISMATCH and a line in `why` if one has another
 * layout. */
enum peal_status peal_span_meet(struct peal_team *team, const struct peal_span_hello *all,
                                struct peal_text *why);
/* Leaves: the far ranks are notified. `forked`: in a child, which notifies no rank. */
void peal_span_detach(struct peal_team *team, bool forked);

/* Is that rank on another host? */
static inline bool peal_team_is_far(const struct peal_team *team, uint32_t rank)
{
    return team->span && team->span->far[rank];
}

static inline void peal_team_depart(const struct peal_team *team)
{
    if (team->span)
        peal_span_depart(team->span);
}

/* Sends and receives what the network can without waiting. What arrives does not count as progress
 * of a call, since questions and answers for reports are part of it. */
void peal_span_progress(struct peal_span *span);
/* Number of endpoints of this process. Ranks of other hosts may wait for any of them, so every
 * wait, in any team, serves all. Relaxed: only a hint whether there are others. */
extern _Atomic uint32_t peal_endpoints;
/* Serves all endpoints but `except`, which may be NULL. */
void peal_endpoints_progress(const struct peal_endpoint *except);
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
/* The same in a call that does not wait: at most a fifth of the time of a thread that makes such calls in a loop. Ranks of other
 * hosts may wait for this one however it spends its time in Peal. */
void peal_endpoints_assist(const struct peal_team *team);
static inline void peal_team_assist(const struct peal_team *team)
{
    if (__builtin_expect(atomic_load_explicit(&peal_endpoints, memory_order_relaxed) > 0, 0))
        peal_endpoints_assist(team);
}
/* Sleeps until something arrives, for a millisecond at most, as near ranks cannot end this
 * sleep. */
void peal_span_sleep(struct peal_span *span, uint64_t max_ns);
/* Has a far rank's process or host ended? `why`, which may be NULL, gets the reason. */
bool peal_span_is_dead(struct peal_span *span, uint32_t rank, struct peal_text *why);

/* ---- control.c ---- */

/* Sends a word of this rank's control block, in `made` or `gates`, that has changed to all far
 * ranks. */
void peal_span_publish(struct peal_span *span, const _Atomic uint64_t *word);
/* Reports this team's failure to the far ranks. */
void peal_span_announce(struct peal_span *span);
/* Once per second: sends this rank's status to one rank of each other host, for 'peal ps' there.
 * Under the lock. */
void peal_span_send_status(struct peal_span *span);
/* Asks all far ranks for their status; the answers go to their mirrors. */
void peal_span_ask(struct peal_span *span);
/* The same before a report; waits briefly for the answers. */
void peal_span_inquire(struct peal_span *span);
/* For how many seconds that rank has not answered; 0: it has. */
double peal_span_silence(const struct peal_span *span, uint32_t rank);
/* Closes the segments: peers cannot reach this team's memory any more. */
void peal_span_retract(struct peal_span *span);

/* Before closing, if peers read this rank's memory in calls that it has left: serves them until
 * they have left those calls too. */
void peal_span_linger(struct peal_span *span, uint32_t limit_ms);

/* Takes a control message of rank `at` of the net. Within progress, under the lock. */
void peal_control_take(struct peal_endpoint *endpoint, uint32_t at, uint32_t kind,
                       const void *bytes, uint64_t len);
/* Reports to all far ranks that this one leaves; waits briefly for room. */
void peal_control_leave(struct peal_span *span);
/* The team is about to be taken from its endpoint's list: later questions about it are answered all the same. Under the
 * lock. */
void peal_control_keep(const struct peal_span *span);

/* ---- gather.c ---- */

struct peal_span_gather {
    struct peal_endpoint *endpoint;
    uint64_t id;             /* of this gathering: the same on all ranks, and used once */
    const uint32_t *members; /* ranks of the net */
    uint32_t size, self;
    uint32_t bytes; /* of each block; at most PEAL_SPAN_BLOCK */
    uint32_t timeout_ms;
    /* True if that member will not come any more. */
    int (*gone)(void *context, uint32_t member, struct peal_text *ended);
    void *context;
    bool optional; /* members may be gone; otherwise one that is gone fails the gathering */
};
enum { PEAL_SPAN_BLOCK = 24, PEAL_SPAN_MEMBERS = 256 };

/* Every member contributes a block and gets the blocks of all that came. came[m] says whether
 * member m came, and is the same on all of them; a member that the others took for gone finds
 * itself missing. PEAL_PEER_DEAD: a member is gone, and members are not optional. */
enum peal_status peal_span_gather(const struct peal_span_gather *gather, const void *own, void *all,
                                  uint8_t *came);
/* Keeps a message of a gathering until this rank takes part in it. */
void peal_gather_take(struct peal_endpoint *endpoint, uint32_t at, uint32_t kind, const void *bytes,
                      uint64_t len);

#endif
