/* SPDX-License-Identifier: Apache-2.0 */
/* How to wait: poll, then yield the core, then sleep; and look after peers meanwhile.
 *
 * A notify that finds no rank asleep makes no system call and needs no fence: it stores, then reads
 * the owner's `sleeping` word, and the two may pass each other. The sleeper pays instead: it sets
 * the word, then makes every other thread of the group pass a barrier (membarrier), then polls once
 * more, then sleeps on `wake`. Either the notifier's store was before its barrier, and the last
 * poll sees it, or its read of `sleeping` comes after, and it wakes. Where the kernel has no such
 * barrier, sleeps last a millisecond at most.
 *
 * Yields that take long, one after the other, give the core to programs that compute. The more of those there
 * are, the longer each yield, while a sleeper is put ahead of them when it is woken. So the wait sleeps at
 * once, and so do the next ones, until it is time to try a yield again. A single long one says nothing: the
 * kernel may have given the core to another session, which it does whether a rank yields or not.
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
    uint64_t most_ns; /* of a sleep; 0: as long as sleeps last */
    /* Says where this rank waits, for the doctor; called in the slow path only. */
    void (*describe)(void *context, struct peal_text *out);
    void *context;
    uint32_t stream; /* the call that waits: compared with the peers' */
    uint64_t seq;
    bool published; /* the wait text is in the control block */
    /* Looks of ranks that do not stay: when the last one was, and the first since anything moved. */
    uint64_t looked_ns, first_ns;
    bool is_request; /* waits for a non-blocking call */
    /* A message: of, or for, this rank; UINT32_MAX: of any. */
    bool is_message;
    uint32_t peer;
    bool deserted; /* no rank is left that it could come from, or go to: once more, and it fails */
    bool informed; /* a peer has reported a failure: once more, and it fails */
    bool
        bereaved; /* a peer's process has ended, maybe after it did its part: once more, and it fails */
};

/* Processors that this process may use: PEAL_CORES, or what it is bound to. */
uint32_t peal_cores(void);
/* How ranks wait that share this many processors. All ranks of a team must be given the same number,
 * since algorithms are chosen by it. */
void peal_policy_choose(uint32_t size, uint32_t cores, struct peal_policy *out);
/* For ranks that share cores, and that the kernel schedules apart from each other: a yield gives the core to a
 * peer only if this rank has had more than its share. That holds most of the time between ranks that only
 * wait; where it does not, they sleep, soon. */
void peal_policy_part(struct peal_policy *policy);

/* Makes every thread of the group pass a barrier: what each stored before is seen, and what each
 * loads after sees what this one stored. False where the kernel has none such. */
bool peal_order_peers(const struct peal_policy *policy);

/* When the wait began; 0: it is too short to have been measured. */
uint64_t peal_backoff_since(const struct peal_backoff *pause);

/* Gives the core away. Not by the C library: with many ranks to a core, each page that is touched
 * between two switches is time. */
static inline void peal_yield(void)
{
#if defined(__x86_64__)
    long number = SYS_sched_yield;
    __asm__ volatile("syscall" : "+a"(number) : : "rcx", "r11", "memory");
#else
    sched_yield();
#endif
}

/* Time in a unit of the machine's, read without touching memory where it can be. */
static inline uint64_t peal_ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_ia32_rdtsc();
#else
    return peal_now_ns();
#endif
}

enum {
    PEAL_FAILURE_YIELDS = 8, /* between two looks at the failure word, before the clock is read */
    PEAL_LONG_TICKS =
        1000000 /* of a yield: 0.2 to 1 ms. Peers' turns are some us, others' some ms */
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

/* A step that is more than a yield, or whose yield is to be followed by a look around. */
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
/* Nothing could move, and the waiter has no time to stay: a look at the peers now and then, without
 * which a rank that only tests requests would not see them die. Time-outs count if `timed`. */
enum peal_status peal_backoff_look(struct peal_team *team, struct peal_backoff *pause, bool timed);
/* The waiter goes away for a while: no rank needs to wake it. Its time still counts. */
void peal_backoff_leave(struct peal_team *team, struct peal_backoff *pause);
/* Something moved: start over, taking back what was published. */
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
