/* SPDX-License-Identifier: Apache-2.0 */
/* See backoff.h. Everything here is the slow path: a wait that ends while polling never comes here.
 *
 * A wait goes through these states; something that moves takes it back to the first (reset):
 *
 *   quick yields   no clock is read; the failure word is examined every few yields
 *   timed yields   the clock runs; time-outs and dead peers are checked, the text for the doctor is written
 *   armed          `sleeping` is set and the peers have passed a barrier; the caller polls once more
 *   asleep         in the futex, for SLEEP_NS at most; then the same checks, and armed anew
 *
 * Who owns what. struct peal_backoff is the waiting function's own, on its stack or in a request.
 * The sleep slot is in shared memory: its rank alone writes `sleeping`, and every peer may add to
 * `wake`. What is learnt about other programs on the core (`crowd`) is the team's, and outlives the
 * wait.
 *
 * What never changes:
 *   - Between arm and sleep_armed the caller polls. Without that poll a notify that came before the
 *     barrier is lost until the sleep ends. peal_backoff_step therefore returns after arm, and
 *     sleeps at the next call.
 *   - Whoever leaves a wait disarms (reset, leave). A slot that stays armed costs the peers a
 *     system call per notify, and nothing else.
 *   - Sleeps are short even where wake-ups are certain, because a peer that died wakes no rank.
 *   - On several hosts peers cannot end a sleep by the futex: peal_span_sleep waits for the
 *     network.
 *
 * Why the sleeper pays and not the notifier: notifies are on the path of every call, and a fence
 * between the store and the load of `sleeping`, the obvious way, would make each of them wait until
 * its cache line has come. A rank that is about to sleep has the time.
 */
#include "run/wait/backoff.h"

#include "run/span/span.h"
#include "run/team/topo.h"
#include "run/wait/doctor.h"
#include "run/wait/own_core.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SLEEP_NS = 20000000,       /* at most, so that a dead peer is noticed */
    BLIND_SLEEP_NS = 1000000,  /* without membarrier a wake-up can be missed */
    CHECK_NS = 20000000,       /* between two looks at the peers */
    PUBLISH_NS = 5000000,      /* a wait this long is published for reports */
    IDLE_SLEEP_NS = 100000,    /* with an idle function, which is to be called again soon */
    SERVED_SLEEP_NS = 1000000, /* with a network to serve */
    ROUND_SPINS = 48,          /* polls: about as long as one or two context switches */
    QUICK_YIELDS = 64,
    MAX_RESTS = 16, /* yields' lengths between two tries whether they are short again */
    MAX_REST_NS = 500000000,
    LONG_SCORE = 8,  /* of a long yield: this many short ones cancel it */
    CROWD_SCORE = 16 /* from here on other programs are taken to compute on this core */
};

uint32_t peal_cores(void)
{
    const char *wish = getenv("PEAL_CORES");
    long given = wish ? strtol(wish, NULL, 10) : 0;
    if (given > 0 && given <= CPU_SETSIZE)
        return (uint32_t)given;
    if (peal_topo_described())
        return peal_topo_cores();
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int bound = CPU_COUNT(&set);
    /* A rank bound to one core still has the machine's other cores for its peers. */
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (bound <= 1 && online > 1)
        return (uint32_t)online;
    return bound > 0 ? (uint32_t)bound : 1;
}

/* Of AMD's the third-level cache has what left the second:
 * docs/decisions/0070-rings-longer-than-a-cache.md. */
static bool keeps_writes(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_is("amd");
#else
    return false;
#endif
}

void peal_policy_choose(uint32_t size, uint32_t cores, struct peal_policy *out)
{
    out->cores = cores;
    out->keeps_writes = keeps_writes();
    bool fits = size <= cores;
    /* Without a core for each, the awaited rank needs this one more often than not: measured,
     * every poll before the first yield is lost. */
    out->spins = fits ? 2000 : 0;
    out->round_spins = fits ? 0 : ROUND_SPINS * ((size + cores - 1) / cores);
    out->quick_yields = QUICK_YIELDS;
    out->yield_ns = fits ? 2000000 : 1000000;
    out->has_membarrier =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void peal_policy_part(struct peal_policy *policy)
{
    policy->yield_ns = 0;
}

bool peal_order_peers(const struct peal_policy *policy)
{
    return policy->has_membarrier &&
           syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

static void arm(struct peal_team *team, struct peal_backoff *pause)
{
    struct peal_sleep_slot *own = &team->sleep_slots[team->rank];
    /* Relaxed: a rank that adds to it does so after its change; the value only has to be older than
     * the poll that follows. */
    pause->ticket = atomic_load_explicit(&own->wake, memory_order_relaxed);
    /* seq_cst with the barrier below; partner: peal_wake_if_sleeping. */
    atomic_store_explicit(&own->sleeping, 1, memory_order_seq_cst);
    (void)peal_order_peers(&team->policy);
    pause->armed = true;
}

static void disarm(struct peal_team *team, struct peal_backoff *pause)
{
    if (pause->armed)
        /* Relaxed: a late reader makes a needless wake-up, nothing else. */
        atomic_store_explicit(&team->sleep_slots[team->rank].sleeping, 0, memory_order_relaxed);
    pause->armed = false;
}

uint64_t peal_backoff_longest_sleep(const struct peal_team *team, const struct peal_backoff *pause)
{
    uint64_t longest = team->policy.has_membarrier ? SLEEP_NS : BLIND_SLEEP_NS;
    if (pause->max_sleep_ns != 0)
        longest = peal_size_min(longest, pause->max_sleep_ns);
    if (team->idle)
        longest = peal_size_min(longest, IDLE_SLEEP_NS);
    /* Relaxed: see span.h. What arrives ends only a span's sleep. */
    if (!team->span && atomic_load_explicit(&peal_endpoints, memory_order_relaxed) > 0)
        longest = peal_size_min(longest, SERVED_SLEEP_NS);
    return longest;
}

static void sleep_armed(struct peal_team *team, struct peal_backoff *pause)
{
    struct timespec longest = {0, (long)peal_backoff_longest_sleep(team, pause)};
    if (team->span) {
        peal_span_sleep(team->span, (uint64_t)longest.tv_nsec);
        disarm(team, pause);
        return;
    }
    syscall(SYS_futex, &team->sleep_slots[team->rank].wake, FUTEX_WAIT, pause->ticket, &longest,
            NULL, 0);
    disarm(team, pause);
}

uint64_t peal_backoff_since(const struct peal_backoff *pause)
{
    return pause->began_ns;
}

/* Not within itself: the function may test requests of this communicator. Its other calls are
 * refused, by peal_comm_check. */
static void run_idle(struct peal_team *team)
{
    if (!team->idle || team->idling)
        return;
    team->idling = true;
    team->idle(team->idle_context);
    team->idling = false;
}

/* ---- other programs on the cores ---- */

/* A try costs as much time as other programs take, so the next try comes after a multiple of that,
 * which grows each time. A tick is 0.2 to 1 ns, and is counted as one. */
void peal_crowd_note(struct peal_crowd *crowd, uint64_t now_ns, uint64_t ticks)
{
    bool again = now_ns - crowd->noted_ns < 2 * (crowd->rest_ns + ticks);
    uint64_t longest = peal_size_min(MAX_RESTS * ticks, MAX_REST_NS);
    uint64_t rest = peal_size_max(again ? 2 * crowd->rest_ns : 0, ticks);
    crowd->rest_ns = peal_size_min(rest, longest);
    crowd->noted_ns = now_ns;
    crowd->until_ns = now_ns + crowd->rest_ns;
}

bool peal_crowd_lasts(struct peal_crowd *crowd, uint64_t now_ns)
{
    if (now_ns >= crowd->until_ns)
        crowd->until_ns = 0;
    return crowd->until_ns != 0;
}

void peal_backoff_crowd(struct peal_team *team, struct peal_backoff *pause, uint64_t ticks)
{
    team->crowd.score += LONG_SCORE;
    if (team->span || team->crowd.score < CROWD_SCORE) /* peers of a span cannot end its sleeps */
        return;
    team->crowd.score = LONG_SCORE; /* when it tries again, one is enough */
    peal_crowd_note(&team->crowd, peal_now_ns(), ticks);
    pause->crowded = true;
    if (pause->polls < team->policy.quick_yields)
        pause->polls = team->policy.quick_yields - 1;
}

/* A failure that a peer has reported may concern another rank's wait, and what this rank waits for
 * may have arrived since its last poll. So the first look only makes the caller poll once more.
 * That poll sees everything that peers did before the report. */
static enum peal_status heard(struct peal_team *team, struct peal_backoff *pause)
{
    if (peal_team_is_well(team))
        return PEAL_OK;
    if (!pause->informed && !peal_team_is_revoked(team)) {
        pause->informed = true;
        return PEAL_OK;
    }
    return peal_team_failure(team);
}

/* Checks peers, clock and the program's own interrupt function during a wait of that length. */
static enum peal_status look_around(struct peal_team *team, struct peal_backoff *pause,
                                    uint64_t waited_ns)
{
    if (team->interrupted && team->interrupted(team->interrupted_context)) {
        peal_team_revoke(team);
        return peal_team_failure(team);
    }
    return peal_doctor_check(team, pause, waited_ns);
}

enum peal_status peal_backoff_longer(struct peal_team *team, struct peal_backoff *pause)
{
    uint32_t quick = team->policy.quick_yields;
    if (pause->polls == 1 && team->crowd.until_ns != 0 &&
        peal_crowd_lasts(&team->crowd, peal_now_ns())) {
        pause->crowded = true;
        pause->polls = quick;
    }
    if (pause->polls == 1 && team->policy.spins > 0)
        peal_own_core_seek(team);
    if (pause->polls >= quick || pause->polls % PEAL_FAILURE_YIELDS == 0)
        run_idle(team);
    if (pause->armed) {
        sleep_armed(team, pause);
    } else if (pause->polls < quick) {
        peal_backoff_yield(team, pause);
        return pause->polls % PEAL_FAILURE_YIELDS ? PEAL_OK : heard(team, pause);
    }
    uint64_t now = peal_now_ns();
    if (pause->polls == quick)
        pause->began_ns = pause->checked_ns = now;
    enum peal_status status = heard(team, pause);
    if (status != PEAL_OK || pause->informed)
        return status;
    if (now - pause->began_ns >= PUBLISH_NS && !pause->published) {
        pause->published = true;
        peal_doctor_publish(team, pause);
    }
    if (now - pause->checked_ns >= CHECK_NS || pause->bereaved) {
        pause->checked_ns = now;
        status = look_around(team, pause, now - pause->began_ns);
        if (status != PEAL_OK || pause->bereaved)
            return status;
    }
    if (!pause->crowded && now - pause->began_ns < team->policy.yield_ns)
        peal_backoff_yield(team, pause);
    else
        arm(team, pause);
    return PEAL_OK;
}

enum peal_status peal_backoff_look(struct peal_team *team, struct peal_backoff *pause, bool timed)
{
    enum peal_status status = heard(team, pause);
    uint64_t now = peal_now_ns();
    if (pause->first_ns == 0)
        pause->first_ns = pause->looked_ns = now;
    if (status != PEAL_OK || pause->informed ||
        (now - pause->looked_ns < CHECK_NS && !pause->bereaved))
        return status;
    pause->looked_ns = now;
    return look_around(team, pause, timed ? now - pause->first_ns : 0);
}

void peal_backoff_leave(struct peal_team *team, struct peal_backoff *pause)
{
    disarm(team, pause);
}

void peal_backoff_reset(struct peal_team *team, struct peal_backoff *pause)
{
    disarm(team, pause);
    if (pause->published)
        peal_doctor_unpublish(team);
    pause->published = pause->deserted = pause->bereaved = pause->crowded = false;
    pause->polls = 0;
    pause->began_ns = pause->first_ns = 0;
}
