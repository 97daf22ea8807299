/* SPDX-License-Identifier: Apache-2.0 */
/* A team: ranks that share windows, processes of one host or threads of one process; its failure,
 * and which ranks are still alive.
 */
#ifndef PEAL_RUN_TEAM_H
#define PEAL_RUN_TEAM_H

#include "base/base.h"
#include "compute/compute.h"
#include "run/team/shared.h"

#include <stdbool.h>

/* Bytes of a window, and where its parts begin: a function of the number of ranks. */
struct peal_layout {
    uint64_t mail;       /* mailboxes, one from each rank */
    uint64_t pools;      /* what contexts have from the beginning */
    uint64_t contexts;   /* what the first context may have beyond */
    uint64_t span;       /* address space of that; memory only as used */
    uint64_t bytes;      /* of all: where symmetric memory begins in the file */
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
    uint32_t spins;       /* polls before the first yield */
    uint32_t round_spins; /* polls after the first one, with more ranks than cores; otherwise 0 */
    uint64_t yield_ns;    /* yields before the first sleep */
    bool has_membarrier;  /* a sleeper can order itself against all notifiers */
    uint32_t cores;       /* that this process may use */
};

/* What windows of a context may take: the most that a kernel can declare on a rank. */
enum { PEAL_CONTEXT_SPAN = 64 << 20 };
/* What opening takes on all ranks together. */
uint64_t peal_team_need(uint32_t size, bool threads);

/* Windows that threads of one process share; freed by the last. */
struct peal_shared_windows;

struct peal_team {
    uint32_t rank, size;
    int32_t pid; /* of the process that opened it: a forked child is no rank */
    bool threads;
    bool quiet;
    char job[64];
    _Atomic uint32_t timeout_ms; /* any thread may change it: peal_team_timeout */
    uint64_t generation;         /* counts splits and shrinks, for names */
    struct peal_layout layout;
    struct peal_policy policy;
    const struct peal_compute *compute;
    struct peal_control **controls;      /* of each rank, as mapped here: starts of the windows */
    struct peal_sleep_slot *sleep_slots; /* of each rank, in rank 0's window */
    int *fds;                            /* windows; NULL for threads */
    int *pidfds;                         /* -1 = none */
    int32_t *pids;                       /* NULL for threads */
    uint64_t *seen_ns; /* when each was last seen alive: see remote.c; NULL likewise */
    uint64_t *probe;   /* what peers try to read; NULL for threads */
    uint32_t reads;    /* enum peal_reads: what all ranks agreed on */
    struct peal_shared_windows *shared;
    uint64_t spread_ns; /* when this rank last left a core that it shared: own_core.h */
    uint32_t label;     /* of the control block's, the one to be written next */
    uint64_t heap_end;  /* bytes of the window file in use by symmetric memory */

    enum peal_status failed; /* PEAL_OK while usable */
    struct peal_text error;
};

static inline struct peal_control *peal_team_own(const struct peal_team *team)
{
    return team->controls[team->rank];
}

/* Milliseconds without progress; 0: for ever. */
static inline uint32_t peal_team_timeout(const struct peal_team *team)
{
    /* Relaxed: the number is all that is told. Partner: peal_comm_set_timeout. */
    return atomic_load_explicit(&team->timeout_ms, memory_order_relaxed);
}

static inline char *peal_team_window(const struct peal_team *team, uint32_t rank)
{
    return (char *)team->controls[rank];
}

struct peal_team_how {
    uint32_t rank, size;
    const char *job;
    uint32_t timeout_ms;
    bool quiet;
    /* For shrink: who may be missing. For it and split: who will not come. See rendezvous.h. */
    const uint8_t *optional;
    int (*gone)(void *context, uint32_t rank);
    void *context;
    uint32_t leader;
};

/* Collective over a rendezvous. `why` gets a line on failure. */
enum peal_status peal_team_open(const struct peal_team_how *how, struct peal_text *why,
                                struct peal_team **out);
/* `size` teams in this process, teams[r] for rank r. `why` (may be NULL) gets a line on failure. */
enum peal_status peal_team_open_threads(uint32_t size, uint32_t timeout_ms, struct peal_text *why,
                                        struct peal_team **teams);

/* Threads: lays a team ready for a rank of `team`. Whoever takes it first has it, the rank itself or
 * one that cleans up; NULL: there is none (any more). What nobody takes is closed with the last
 * rank's `team`. */
void peal_team_give(struct peal_team *team, uint32_t rank, struct peal_team *gift);
struct peal_team *peal_team_take(struct peal_team *team, uint32_t rank);
/* In a child that was forked after opening: frees what is the child's, and tells nobody. */
void peal_team_close(struct peal_team *team);
/* What a closed communicator has instead: no ranks, and failed for ever. */
struct peal_team *peal_team_closed(void);
static inline bool peal_team_is_closed(const struct peal_team *team)
{
    return team->size == 0;
}

/* Ends the team's life on every rank: the first to call it writes the report and prints it (unless
 * quiet); everybody gets its status and text. Returns the status that holds. */
enum peal_status peal_team_fail(struct peal_team *team, enum peal_status status, uint32_t culprit,
                                const struct peal_text *report);
/* Takes over a failure that a peer has found; PEAL_OK if there is none. */
enum peal_status peal_team_failure(struct peal_team *team);
/* True while there is none that this rank has been told of. */
static inline bool peal_team_is_well(const struct peal_team *team)
{
    /* Relaxed: what follows a failure is for peal_team_failure, which acquires it. */
    return atomic_load_explicit(&peal_team_own(team)->failure, memory_order_relaxed) == 0;
}

/* At the end of a call that may have used peers' memory, whose owner may use it for something else
 * once its own call has failed: PEAL_OK only if nobody had given up by the time of the last access.
 * Every failure is written into rank 0's block before any rank returns it. */
enum peal_status peal_team_confirm(struct peal_team *team);

/* After a failure, when this rank has left its call: waits until its peers have left theirs, however
 * long that takes. Threads load from each other's memory and store to it, and the caller may free it
 * next; a thread in a call looks at the failure while it waits, and everything else that it does there
 * ends by itself. Processes only read each other's memory, and the system says if it is gone.
 *
 * A rank says that it is in a call (life, moving), then looks whether the team is well, then moves
 * data. The one that fails writes the failure, makes all threads pass a barrier, then looks who is
 * in a call. So either it sees that rank and waits for it, or that rank sees the failure. */
void peal_team_settle(const struct peal_team *team);

/* True once the process of that rank has ended. Threads never do. */
bool peal_team_is_dead(const struct peal_team *team, uint32_t rank);
/* Wakes a rank that sleeps; see backoff.h for when to call it. */
void peal_team_wake(const struct peal_team *team, uint32_t rank);

/* What this rank is doing, for its peers: before and after every call. */
static inline void peal_team_enter(struct peal_team *team, uint32_t stream, uint64_t seq,
                                   uint64_t what, uint64_t count)
{
    struct peal_control *own = peal_team_own(team);
    struct peal_call_record *record = &own->history[stream][seq % PEAL_CALL_HISTORY];
    /* A reader (doctor.c) that sees seq by acquire sees what belongs to it, or a later call's,
     * and reads seq again. */
    atomic_store_explicit(&record->seq, 0, memory_order_release);
    atomic_store_explicit(&record->what, what, memory_order_release);
    atomic_store_explicit(&record->count, count, memory_order_release);
    atomic_store_explicit(&record->seq, seq, memory_order_release);
    atomic_store_explicit(&own->calls[stream], seq, memory_order_release);
    atomic_store_explicit(&own->stream, stream, memory_order_relaxed); /* for reports only */
    atomic_store_explicit(&own->life, PEAL_LIFE_INSIDE, memory_order_relaxed);
    /* Keeps the look at the failure behind it: see peal_team_settle. */
    atomic_signal_fence(memory_order_seq_cst);
}
static inline void peal_team_leave(struct peal_team *team)
{
    /* Release: what was read of peers' memory was read before. Partner: peal_team_settle. */
    atomic_store_explicit(&peal_team_own(team)->life, PEAL_LIFE_OUTSIDE, memory_order_release);
}

/* The same around moving calls that are under way, which is done in no call or in any: as above,
 * orders and partners. False: the team has failed, and nothing may be moved. */
static inline bool peal_team_move_begin(struct peal_team *team)
{
    atomic_store_explicit(&peal_team_own(team)->moving, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    return peal_team_is_well(team);
}
static inline void peal_team_move_end(struct peal_team *team)
{
    atomic_store_explicit(&peal_team_own(team)->moving, 0, memory_order_release);
}

#endif
