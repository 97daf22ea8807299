/* SPDX-License-Identifier: Apache-2.0 */
/* How to wait: poll, then yield the core, then sleep; and check the peers meanwhile.
 *
 * A notify that finds no rank asleep makes no system call and needs no fence: it stores, then reads
 * the owner's `sleeping` word, and the processor may swap the two. The sleeper pays instead: it
 * sets the word, then makes every other thread of the group pass a barrier (membarrier), then polls
 * once more, then sleeps on `wake`. Either the notifier's store came before its barrier, and the
 * last poll sees it, or its read of `sleeping` comes after the barrier, and it wakes the sleeper.
 * Where the kernel has no such barrier, sleeps last at most a millisecond.
 *
 * Several long yields in a row mean that the core is shared with programs that compute. The more of
 * these there are, the longer each yield takes, while the kernel prefers a thread that has just
 * been woken. So the wait then sleeps at once, and so do the following waits, until it is time to
 * try a yield again. A single long yield proves nothing: the kernel may have given the core to
 * another session, which it does whether a rank yields or not.
 */
#ifndef PEAL_RUN_BACKOFF_H
#define PEAL_RUN_BACKOFF_H

#include "run/team/team.h"

#include <sched.h>
#include <sys/syscall.h>

struct peal_backoff {
    uint32_t polls;
    bool armed;      /* `sleeping` is set; poll once more, then sleep */
    bool crowded;    /* yields take long: sleep instead */
    uint32_t ticket; /* the futex's value when armed */
    uint64_t began_ns;
    uint64_t checked_ns;
    uint64_t max_sleep_ns; /* longest sleep; 0: no limit of the caller's */
    /* Says where this rank waits, for the doctor; called in the slow path only. */
    void (*describe)(void *context, struct peal_text *out);
    void *context;
    uint32_t stream; /* the call that waits: compared with the peers' */
    uint64_t seq;
    bool published; /* the wait text is in the control block */
    /* For peal_backoff_look: when the last look was, and the first since anything moved. */
    uint64_t looked_ns, first_ns;
    bool is_request; /* waits for a non-blocking call */
    /* It waits for a message from, or to, this peer; UINT32_MAX: from any. */
    bool is_message;
    uint32_t peer;
    /* Seen once; if it is seen again after one more poll, the wait fails: */
    bool deserted; /* no rank is left that the message could come from, or go to */
    bool informed; /* a peer has reported a failure */
    bool bereaved; /* a peer's process has ended, maybe after it did its part */
};

/* Processors that this process may use: PEAL_CORES, or what it is bound to. */
uint32_t peal_cores(void);
/* Chooses how ranks wait that share this many processors. All ranks of a team must pass the same
 * number, because algorithms are chosen by it. */
void peal_policy_choose(uint32_t size, uint32_t cores, struct peal_policy *out);
/* For ranks that share cores and are scheduled as separate sessions: a yield gives the core to a
 * peer only if this rank has had more than its share of time. Between ranks that only wait this
 * holds most of the time; otherwise they soon sleep. */
void peal_policy_part(struct peal_policy *policy);

/* Makes every thread of the group pass a barrier: what each stored before is seen, and what each
 * loads after sees what this one stored. False where the kernel has none such. */
bool peal_order_peers(const struct peal_policy *policy);

/* When the wait began; 0: it is too short to have been measured. */
uint64_t peal_backoff_since(const struct peal_backoff *pause);

/* Yields the core. Without the C library: with many ranks per core, every page that is touched
 * between two switches costs time. */
static inline void peal_yield(void)
{
#if defined(__x86_64__)
    long number = SYS_sched_yield;
    __asm__ volatile("syscall" : "+a"(number) : : "rcx", "r11", "memory");
#else
    sched_yield();
#endif
}

/* Time in a unit of the processor, read without touching memory where that is possible. */
static inline uint64_t peal_ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_ia32_rdtsc();
#else
    return peal_now_ns();
#endif
}

enum {
    PEAL_FAILURE_YIELDS = 8, /* between two reads of the failure word, before the clock is read */
    PEAL_LONG_TICKS =
        1000000 /* a long yield: 0.2 to 1 ms. Peers run for microseconds, other programs for ms */
};

/* A yield that ended now took this many ticks: decides for how long waits sleep at once. */
void peal_crowd_note(struct peal_crowd *crowd, uint64_t now_ns, uint64_t ticks);
/* Do waits still sleep at once? */
bool peal_crowd_lasts(struct peal_crowd *crowd, uint64_t now_ns);

/* A yield of this wait took long: this many ticks. */
void peal_backoff_crowd(struct peal_team *team, struct peal_backoff *pause, uint64_t ticks);
/* Yields, and notices if that took long. */
static inline void peal_backoff_yield(struct peal_team *team, struct peal_backoff *pause)
{
    uint64_t before = peal_ticks();
    peal_yield();
    uint64_t ticks = peal_ticks() - before;
    if (__builtin_expect(ticks >= PEAL_LONG_TICKS, 0))
        peal_backoff_crowd(team, pause, ticks);
    else if (__builtin_expect(team->crowd.score != 0, 0))
        team->crowd.score--;
}

/* How long a sleep of this wait lasts at most, in nanoseconds, if nothing ends it. */
uint64_t peal_backoff_longest_sleep(const struct peal_team *team, const struct peal_backoff *pause);

/* A step that does more than yield, or that checks the peers after it. */
enum peal_status peal_backoff_longer(struct peal_team *team, struct peal_backoff *pause);

/* Nothing could move: spend some time, then poll again if this returns PEAL_OK. */
static inline enum peal_status peal_backoff_step(struct peal_team *team, struct peal_backoff *pause)
{
    pause->polls++;
    if (pause->polls >= team->policy.quick_yields || pause->polls % PEAL_FAILURE_YIELDS == 0 ||
        pause->armed || team->policy.spins > 0 || team->crowd.until_ns != 0)
        return peal_backoff_longer(team, pause);
    peal_backoff_yield(team, pause); /* most waits end here */
    return PEAL_OK;
}
/* Nothing could move, and the caller will not wait: checks the peers now and then, so that a rank
 * that only tests requests sees them die. Time-outs count if `timed`. */
enum peal_status peal_backoff_look(struct peal_team *team, struct peal_backoff *pause, bool timed);
/* The caller stops waiting for a while: no rank needs to wake it. Its time-out goes on. */
void peal_backoff_leave(struct peal_team *team, struct peal_backoff *pause);
/* Something moved: starts over, and withdraws what was published. */
void peal_backoff_reset(struct peal_team *team, struct peal_backoff *pause);

static inline void peal_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* After a change that `rank` may wait for. */
static inline void peal_wake_if_sleeping(const struct peal_team *team, uint32_t rank)
{
    /* Relaxed, and after the change in program order: see above. The compiler barrier keeps it
     * there; partner: arm in backoff.c. */
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(
            atomic_load_explicit(&team->sleep_slots[rank].sleeping, memory_order_relaxed) != 0, 0))
        peal_team_wake(team, rank);
}

#endif
