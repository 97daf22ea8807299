/* SPDX-License-Identifier: Apache-2.0 */
/* A team: ranks that share windows, processes of one host or threads of one process; its failure,
 * and which ranks are still alive. bootstrap/ makes teams, wait/ has what is done about a failure.
 *
 *   shared.h  what lies in a window         topo.h  cores and binding
 *   memory/   shared memory without a name (window.h), the windows of all ranks that have met
 *             (windows.h), available memory (memory_limit.h), pages that exist before they are used
 *             (prefault.h)
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
    uint64_t mail;     /* mailboxes, one from each rank */
    uint64_t pools;    /* memory that contexts have from the beginning */
    uint64_t contexts; /* address space for more, context 0's first; mapped and populated as used */
    uint64_t span;     /* the largest size of a context there */
    uint64_t stride;   /* from one context's to the next one's */
    uint64_t bytes;    /* of all: where symmetric memory begins */
    uint64_t pool_bytes; /* of all pools: populated when opened, if they can have large pages ... */
    uint64_t unit;       /* ... otherwise only this much; limits are multiples of it */
};

/* A context's share of `bytes`. Blocking calls get the largest, as most programs make no others. */
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
/* The largest size of a context, unless one plan needs more. */
static inline uint64_t peal_layout_limit(const struct peal_layout *layout, uint32_t context)
{
    return context == 0 ? layout->unit * 4 : layout->unit * 2;
}

/* How long a wait polls and yields before it sleeps: see backoff.h. */
struct peal_policy {
    uint32_t spins;       /* polls before the first yield */
    uint32_t round_spins; /* polls after the first yield, with more ranks than cores; otherwise 0 */
    uint32_t quick_yields; /* before the clock is read */
    uint64_t yield_ns;     /* duration of yields before the first sleep */
    bool has_membarrier;   /* a sleeper can order itself against all notifiers */
    uint32_t cores;        /* that this process may use */
    bool keeps_writes; /* lines evicted from a core's caches go to a cache that peers read faster */
};

/* What this rank knows about other programs on its core: see backoff.h. */
struct peal_crowd {
    uint32_t score;    /* of long yields among the last ones */
    uint64_t until_ns; /* waits sleep at once until then; 0: they do not */
    uint64_t noted_ns; /* when a yield last took long */
    uint64_t rest_ns;  /* time that waits have slept since */
};

/* Largest size of the windows of a context: the limit of what a kernel can declare on a rank. */
enum { PEAL_CONTEXT_SPAN = PEAL_MOST_WINDOW_BYTES };

struct peal_windows; /* windows.h */
struct peal_span;

struct peal_team {
    uint32_t rank, size;
    int32_t pid;    /* of the process that opened it: a forked child is not a rank */
    uint32_t forks; /* peal_forks when it was opened */
    bool threads;
    bool quiet;
    bool lazy; /* made from another team: nothing is populated before it is used */
    char job[64];
    _Atomic uint32_t timeout_ms; /* any thread may change it: peal_team_timeout */
    uint32_t meet_ms;            /* for opening, and for making teams from this one */
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
    uint64_t *starts;      /* of its window in its file: offsets of the layout count from there */
    uint64_t *seen_ns;     /* when it was last seen alive: see remote.c */
    uint32_t *files;       /* its number in `windows` */
    uint32_t *places;      /* of its window in that file: windows.h */
    int *fds;              /* its file */
    int *pidfds;           /* its process; -1: none, or a thread */
    int32_t *pids;         /* its pid in this process's pid namespace; 0: none there */
    uint64_t core_left_ns; /* when this rank last left a core that it shared: own_core.h */
    uint32_t label;        /* the next of the control block's labels to be written */
    uint64_t heap_end;     /* of the window, in use by symmetric memory */
    struct peal_meeting *meeting; /* until peal_team_join; NULL: there is none */

    /* Of peal_comm_set_idle: called by a wait between polls, or NULL; whether it is being
     * called. */
    void (*idle)(void *context);
    void *idle_context;
    bool idling;
    /* Of peal_comm_set_interrupt: called now and then by a wait, or NULL. */
    int (*interrupted)(void *context);
    void *interrupted_context;

    enum peal_status failed; /* PEAL_OK while usable */
    struct peal_text error;
};

/* Number of forks in this process's ancestry since the first team was opened. */
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

/* The window of a rank of a team that was opened, mapped up to the end of the pools. In a team that
 * was made from another, only the control block is mapped there: use peal_team_map. */
static inline char *peal_team_window(const struct peal_team *team, uint32_t rank)
{
    return (char *)team->controls[rank];
}
/* Maps a part of a rank's window, beginning at a page; NULL: refused. */
char *peal_team_map(const struct peal_team *team, uint32_t rank, uint64_t offset, uint64_t bytes);
void peal_team_unmap(const struct peal_team *team, uint32_t rank, uint64_t offset, uint64_t bytes);

/* What a closed communicator has instead: a team without ranks that has failed. */
struct peal_team *peal_team_closed(void);
static inline bool peal_team_is_closed(const struct peal_team *team)
{
    return team->size == 0;
}

/* Fails the team on every rank: the first to call it writes the report and prints it (unless
 * quiet); every rank gets its status and text. Returns the status of the first. */
enum peal_status peal_team_fail(struct peal_team *team, enum peal_status status, uint32_t culprit,
                                const struct peal_text *report);
/* Fails the team with PEAL_REVOKED, from any thread: team->failed and team->error, which belong to
 * the team's own thread, are not touched. */
void peal_team_revoke(const struct peal_team *team);
/* Passes a failure that a rank of another host has found to the ranks of this host. From any
 * thread. */
void peal_team_take_failure(const struct peal_team *team, uint64_t failure, const char *report);
/* Takes over a failure that a peer has found; PEAL_OK if there is none. */
enum peal_status peal_team_failure(struct peal_team *team);
/* True while no failure has reached this rank. */
static inline bool peal_team_is_well(const struct peal_team *team)
{
    /* Relaxed: the report is read by peal_team_failure, which acquires it. */
    return atomic_load_explicit(&peal_team_own(team)->failure, memory_order_relaxed) == 0;
}

/* Was the team revoked? */
static inline bool peal_team_is_revoked(const struct peal_team *team)
{
    /* Relaxed: as above. */
    uint64_t failure = atomic_load_explicit(&peal_team_own(team)->failure, memory_order_relaxed);
    return (failure & 0xff) == PEAL_REVOKED;
}

/* At the end of a call that may have used peers' memory, which their owners may use for something
 * else once their own calls have failed: PEAL_OK only if no rank had given up by the time of the
 * last access. Every failure is written into the first rank's block before any rank of its host
 * returns it; by then ranks of other hosts can no longer reach the memory of this host's ranks. */
enum peal_status peal_team_confirm(struct peal_team *team);

/* After a failure, when this rank has left its call: waits until its peers have left theirs,
 * without a limit. Threads load from each other's memory and store to it, and the caller may free
 * it next. A thread in a call checks for the failure while it waits, and everything else that it
 * does there ends by itself. For processes there is nothing to wait for: they only read each
 * other's memory, and the system reports memory that is gone.
 *
 * A rank publishes that it is in a call (life, moving), then checks that the team is well, then
 * moves data. The one that fails writes the failure, makes all threads pass a barrier, then checks
 * which ranks are in a call. So either it sees such a rank and waits for it, or that rank sees the
 * failure. */
void peal_team_settle(const struct peal_team *team);

/* True once the process of that rank has ended. Threads never do. */
bool peal_team_is_dead(const struct peal_team *team, uint32_t rank);
/* Wakes a rank that sleeps; see backoff.h for when to call it. */
void peal_team_wake(const struct peal_team *team, uint32_t rank);

/* Publishes which call this rank has reached. This function and the next two take the rank's own
 * block, which a call looks up once. */
static inline void peal_team_record(struct peal_control *own, uint32_t stream, uint64_t seq,
                                    uint64_t code, uint64_t count)
{
    struct peal_call_record *record = &own->history[stream][seq % PEAL_CALL_HISTORY];
    /* A reader (doctor.c) that acquires seq sees this call's words or those of a later call; it
     * reads seq again to find out. */
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
    /* The failure is checked after this: see peal_team_settle. */
    atomic_signal_fence(memory_order_seq_cst);
}
static inline void peal_team_leave(struct peal_control *own)
{
    /* Release: what was read of peers' memory was read before. Partner: peal_team_settle. */
    atomic_store_explicit(&own->life, PEAL_LIFE_OUTSIDE, memory_order_release);
}

/* A one-sided call begins. Relaxed: only the owner writes it, and reports read it. */
static inline void peal_team_count_onesided(struct peal_control *own, enum peal_onesided_kind kind)
{
    uint64_t count = atomic_load_explicit(&own->onesided, memory_order_relaxed) >> 8;
    atomic_store_explicit(&own->onesided, (count + 1) << 8 | kind, memory_order_relaxed);
}

/* A non-blocking call has ended. */
static inline void peal_team_count_ended(struct peal_team *team)
{
    struct peal_control *own = peal_team_own(team);
    uint64_t ended = atomic_load_explicit(&own->finished, memory_order_relaxed); /* ours */
    /* Release: a rank that sees it (peal_span_linger) sees a call that needs no peer any more. */
    atomic_store_explicit(&own->finished, ended + 1, memory_order_release);
}

/* The same around progress of non-blocking calls, inside or outside other calls; orders and
 * partners are those above. False: the team has failed, and nothing may be moved. Processes may go
 * on until this rank itself has taken over the failure; threads may not, since the program may free
 * their memory next. */
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
