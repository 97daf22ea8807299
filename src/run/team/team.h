/* SPDX-License-Identifier: Apache-2.0 */
/* A team: ranks that share windows, processes of one host or threads of one process; its failure,
 * and which ranks are still alive.
 */
#ifndef PEAL_RUN_TEAM_H
#define PEAL_RUN_TEAM_H

#include "base/base.h"
#include "compute/compute.h"
#include "run/team/shared.h"

#include <peal/peal.h>
#include <stdbool.h>

/* Bytes of a window, and where its parts begin: a function of the number of ranks. */
struct peal_layout {
    uint64_t mail;       /* mailboxes, one from each rank */
    uint64_t pools;      /* what contexts have from the beginning */
    uint64_t contexts;   /* what the first context may have beyond; mapped and populated as used */
    uint64_t span;       /* the most that a context may have there */
    uint64_t stride;     /* from one context's to the next one's */
    uint64_t bytes;      /* of all: where symmetric memory begins */
    uint64_t pool_bytes; /* of all pools: populated when opened, if that can have large pages ... */
    uint64_t unit;       /* ... or so much of it; limits are multiples of this */
};

/* A context's part of something. Blocking calls get the most, as most programs make no others. */
static inline uint64_t peal_layout_share(uint64_t bytes, uint32_t context)
{
    return context == 0 ? bytes / 4 * 3 : bytes / 16;
}
/* Where the pool of a context begins. */
static inline uint64_t peal_layout_pool(const struct peal_layout *layout, uint32_t context)
{
    uint64_t before = context == 0 ? 0
                                   : peal_layout_share(layout->pool_bytes, 0) +
                                         (context - 1) * peal_layout_share(layout->pool_bytes, 1);
    return layout->pools + before;
}
/* The most a context ever has, unless one plan needs more. */
static inline uint64_t peal_layout_limit(const struct peal_layout *layout, uint32_t context)
{
    return context == 0 ? layout->unit * 4 : layout->unit * 2;
}

/* How patient a wait is: see backoff.h. */
struct peal_policy {
    uint32_t spins;        /* polls before the first yield */
    uint32_t round_spins;  /* polls after the first one, with more ranks than cores; otherwise 0 */
    uint32_t quick_yields; /* before the clock is read */
    uint64_t yield_ns;     /* yields before the first sleep */
    bool has_membarrier;   /* a sleeper can order itself against all notifiers */
    uint32_t cores;        /* that this process may use */
    bool keeps_writes; /* what leaves a core's caches is kept in one that its peers read faster */
};

/* What this rank knows about other programs on its core: see backoff.h. */
struct peal_crowd {
    uint32_t score;    /* of long yields among the last ones */
    uint64_t until_ns; /* waits sleep at once until then; 0: they do not */
    uint64_t noted_ns; /* when a yield last took long */
    uint64_t rest_ns;  /* how long waits have slept since */
};

/* What windows of a context may take: the most that a kernel can declare on a rank. */
enum { PEAL_CONTEXT_SPAN = PEAL_MOST_WINDOW_BYTES };
/* What opening takes on all ranks together. */
uint64_t peal_team_need(uint32_t size, bool threads);

struct peal_windows; /* windows.h */
struct peal_span;
struct peal_span_options;
struct peal_span_hello;

struct peal_team {
    uint32_t rank, size;
    int32_t pid;    /* of the process that opened it: a forked child is not a rank */
    uint32_t forks; /* peal_forks, then */
    bool threads;
    bool quiet;
    bool lazy; /* made from another team: nothing is populated before it is used */
    char job[64];
    _Atomic uint32_t timeout_ms; /* any thread may change it: peal_team_timeout */
    uint32_t meet_ms;            /* for opening, and what is made from this */
    uint32_t warn_ms;            /* without progress: a report is printed; 0: none is */
    struct peal_layout layout;
    struct peal_policy policy;
    struct peal_crowd crowd;
    const struct peal_compute *compute;
    struct peal_sleep_slot *sleep_slots; /* of each rank, in the first one's window */
    uint32_t first;               /* the lowest rank of this host: its window has what all share */
    struct peal_span *span;       /* ranks on other hosts: span.h; NULL: there are none */
    uint32_t reads;               /* enum peal_reads: what all ranks agreed on */
    struct peal_windows *windows; /* shared with the teams that this one was made from, or
                                     that were made from it: descriptors and mappings */
    /* Of each rank; one block, which begins with controls. */
    struct peal_control **controls; /* as mapped here; a mirror, if it is on another host */
    uint64_t
        *starts; /* where its window begins in its file: offsets of the layout count from there */
    uint64_t *seen_ns;            /* when it was last seen alive: see remote.c */
    uint32_t *files;              /* its number in `windows` */
    uint32_t *places;             /* of its window in that file: windows.h */
    int *fds;                     /* its file */
    int *pidfds;                  /* its process; -1: none, or a thread */
    int32_t *pids;                /* as this process's pid namespace has it, 0 = it has not */
    uint64_t spread_ns;           /* when this rank last left a core that it shared: own_core.h */
    uint32_t label;               /* of the control block's, the one to be written next */
    uint64_t heap_end;            /* of the window, in use by symmetric memory */
    struct peal_meeting *meeting; /* until peal_team_join; NULL: there is none */

    /* Of peal_comm_set_idle: what a wait does beside polling, or NULL; and whether it is doing
     * it. */
    void (*idle)(void *context);
    void *idle_context;
    bool idling;
    /* Of peal_comm_set_interrupt: asked now and then by a wait, or NULL. */
    int (*interrupted)(void *context);
    void *interrupted_context;

    enum peal_status failed; /* PEAL_OK while usable */
    struct peal_text error;
};

/* How often this process's line was forked since the first team was opened. */
extern _Atomic uint32_t peal_forks;
/* Is this a copy of the team, in a child that was forked from its rank? Relaxed: a child that sees
 * its own fork sees its own number. */
static inline bool peal_team_is_forked(const struct peal_team *team)
{
    return team->forks != atomic_load_explicit(&peal_forks, memory_order_relaxed);
}

static inline struct peal_control *peal_team_own(const struct peal_team *team)
{
    return team->controls[team->rank];
}

/* Milliseconds without progress; 0: for ever. */
static inline uint32_t peal_team_timeout(const struct peal_team *team)
{
    /* Relaxed: nothing but the number is passed on. Partner: peal_comm_set_timeout. */
    return atomic_load_explicit(&team->timeout_ms, memory_order_relaxed);
}

/* The window of a rank of a team that was opened, as mapped here up to the end of the pools. Of one
 * that was made from another there is the control block only: peal_team_map. */
static inline char *peal_team_window(const struct peal_team *team, uint32_t rank)
{
    return (char *)team->controls[rank];
}
/* Maps a part of a rank's window, beginning at a page; NULL: refused. */
char *peal_team_map(const struct peal_team *team, uint32_t rank, uint64_t offset, uint64_t bytes);
void peal_team_unmap(const struct peal_team *team, uint32_t rank, uint64_t offset, uint64_t bytes);

struct peal_team_options {
    uint32_t rank, size;
    const char *job;
    uint32_t timeout_ms; /* of calls; 0: never */
    uint32_t meet_ms;    /* of meetings */
    bool quiet;
    /* Who will not come: see rendezvous.h. */
    int (*gone)(void *context, uint32_t rank, struct peal_text *ended);
    void *context;
    /* Ranks are on several hosts: which, and what the others have to know of this one (out). Then
     * peal_team_meet_far follows. NULL: one host. */
    const struct peal_span_options *span;
    struct peal_span_hello *hello;
};

/* Collective over a rendezvous. `why` gets a line on failure. Then comes peal_team_join. */
enum peal_status peal_team_open(const struct peal_team_options *options, struct peal_text *why,
                                struct peal_team **out);
/* Of a team on several hosts: takes what all ranks have to know of each other, by rank. */
enum peal_status peal_team_meet_far(struct peal_team *team, const struct peal_span_hello *all,
                                    struct peal_text *why);
/* Collective: says that this rank has all it needs (or, by `status` and `reason`, that it has not),
 * and hears of the others. PEAL_OK if all have; otherwise the status of all and, in `why`, the
 * reason of the first that has not. */
enum peal_status peal_team_join(struct peal_team *team, enum peal_status status, const char *reason,
                                struct peal_text *why);
/* `size` teams in this process, teams[r] for rank r. `why` (may be NULL) gets a line on failure. */
enum peal_status peal_team_open_threads(uint32_t size, uint32_t timeout_ms, struct peal_text *why,
                                        struct peal_team **teams);

/* Some ranks of a team, which are to be a team of their own over the same windows. */
struct peal_team_group {
    uint32_t rank, size;
    const uint32_t *ranks;  /* of each, in the old team */
    const uint32_t *places; /* of each: what it has reserved */
    const char *job;
    const struct peal_span_options *span; /* as in peal_team_options */
    struct peal_span_hello *hello;
};
/* First each rank reserves a place for its window, on its own: its number is to be passed to the
 * others. `life` is what its peers see until it makes the team. `why` gets a line on failure. It
 * may be given up if no rank goes on to peal_team_derive. */
enum peal_status peal_team_reserve(struct peal_team *team, enum peal_life life, uint32_t *place,
                                   struct peal_text *why);
void peal_team_give_up(struct peal_team *team, uint32_t place);
/* Then the team, when all places are known. No rank may use it before all have made it, which the
 * callers agree on by the old one; but for messages, which wait in the mailboxes of PEAL_LIFE_KEPT.
 * On failure the place is used up: peers may be using it. */
enum peal_status peal_team_derive(struct peal_team *old, const struct peal_team_group *group,
                                  struct peal_text *why, struct peal_team **out);

/* In a child that was forked after opening: frees what is the child's, and says nothing to the
 * others. */
void peal_team_close(struct peal_team *team);
/* What a closed communicator has instead: no ranks, and failed for ever. */
struct peal_team *peal_team_closed(void);
static inline bool peal_team_is_closed(const struct peal_team *team)
{
    return team->size == 0;
}

/* Ends the team's life on every rank: the first to call it writes the report and prints it (unless
 * quiet); every rank gets its status and text. Returns the status that holds. */
enum peal_status peal_team_fail(struct peal_team *team, enum peal_status status, uint32_t culprit,
                                const struct peal_text *report);
/* Ends the team's life with PEAL_REVOKED, from any thread: what the team's own thread knows of a
 * failure is not touched. */
void peal_team_revoke(const struct peal_team *team);
/* A failure that a rank of another host has found, for the ranks of this one. From any thread. */
void peal_team_take_failure(const struct peal_team *team, uint64_t failure, const char *report);
/* Takes over a failure that a peer has found; PEAL_OK if there is none. */
enum peal_status peal_team_failure(struct peal_team *team);
/* True while no failure has reached this rank. */
static inline bool peal_team_is_well(const struct peal_team *team)
{
    /* Relaxed: what follows a failure is for peal_team_failure, which acquires it. */
    return atomic_load_explicit(&peal_team_own(team)->failure, memory_order_relaxed) == 0;
}

/* Is it that the team was revoked? */
static inline bool peal_team_is_revoked(const struct peal_team *team)
{
    /* Relaxed: as above. */
    uint64_t failure = atomic_load_explicit(&peal_team_own(team)->failure, memory_order_relaxed);
    return (failure & 0xff) == PEAL_REVOKED;
}

/* At the end of a call that may have used peers' memory, whose owner may use it for something else
 * once its own call has failed: PEAL_OK only if no rank had given up by the time of the last
 * access. Every failure is written into the first rank's block before any rank of its host returns
 * it; ranks of other hosts are refused this one's memory by then. */
enum peal_status peal_team_confirm(struct peal_team *team);

/* After a failure, when this rank has left its call: waits until its peers have left theirs,
 * however long that takes. Threads load from each other's memory and store to it, and the caller
 * may free it next; a thread in a call looks at the failure while it waits, and everything else
 * that it does there ends by itself. Processes only read each other's memory, and the system says
 * if it is gone.
 *
 * A rank says that it is in a call (life, moving), then looks whether the team is well, then moves
 * data. The one that fails writes the failure, makes all threads pass a barrier, then looks which
 * rank is in a call. So either it sees that rank and waits for it, or that rank sees the
 * failure. */
void peal_team_settle(const struct peal_team *team);

/* True once the process of that rank has ended. Threads never do. */
bool peal_team_is_dead(const struct peal_team *team, uint32_t rank);
/* Wakes a rank that sleeps; see backoff.h for when to call it. */
void peal_team_wake(const struct peal_team *team, uint32_t rank);

/* What call this rank has come to, for its peers. These three take the rank's own block, which a
 * call looks up once. */
static inline void peal_team_record(struct peal_control *own, uint32_t stream, uint64_t seq,
                                    uint64_t code, uint64_t count)
{
    struct peal_call_record *record = &own->history[stream][seq % PEAL_CALL_HISTORY];
    /* A reader (doctor.c) that sees seq by acquire sees what belongs to it, or a later call's,
     * and reads seq again. */
    atomic_store_explicit(&record->seq, 0, memory_order_release);
    atomic_store_explicit(&record->code, code, memory_order_release);
    atomic_store_explicit(&record->count, count, memory_order_release);
    atomic_store_explicit(&record->seq, seq, memory_order_release);
    atomic_store_explicit(&own->calls[stream], seq, memory_order_release);
}

/* Before and after every call. */
static inline void peal_team_enter(struct peal_control *own, uint32_t stream)
{
    atomic_store_explicit(&own->stream, stream, memory_order_relaxed); /* for reports only */
    atomic_store_explicit(&own->life, PEAL_LIFE_INSIDE, memory_order_relaxed);
    /* Keeps the look at the failure behind it: see peal_team_settle. */
    atomic_signal_fence(memory_order_seq_cst);
}
static inline void peal_team_leave(struct peal_control *own)
{
    /* Release: what was read of peers' memory was read before. Partner: peal_team_settle. */
    atomic_store_explicit(&own->life, PEAL_LIFE_OUTSIDE, memory_order_release);
}

/* A non-blocking call has ended. */
static inline void peal_team_count_ended(struct peal_team *team)
{
    struct peal_control *own = peal_team_own(team);
    uint64_t ended = atomic_load_explicit(&own->finished, memory_order_relaxed); /* ours */
    /* Release: a rank that sees it (peal_span_linger) sees a call that needs no peer any more. */
    atomic_store_explicit(&own->finished, ended + 1, memory_order_release);
}

/* The same around moving calls that are under way, which is done in no call or in any: as above,
 * orders and partners. False: the team has failed, and nothing may be moved: by this rank's
 * account, or by that of any where ranks are threads, whose memory the program may free next. */
static inline bool peal_team_move_begin(struct peal_team *team)
{
    atomic_store_explicit(&peal_team_own(team)->moving, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    return peal_team_is_well(team) || (!team->threads && team->failed == PEAL_OK);
}
static inline void peal_team_move_end(struct peal_team *team)
{
    atomic_store_explicit(&peal_team_own(team)->moving, 0, memory_order_release);
}

#endif
