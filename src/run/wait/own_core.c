/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes the core of this rank, and moves if a peer is on the same core. See own_core.h. */
#include "run/wait/own_core.h"

#include "run/wait/backoff.h"

#include <sched.h>

enum { REST_NS = 500000 }; /* between two moves: peers' words may be old, and moving costs time */

/* Removes the cores that peers have published from `mask`. True if one of them is `core`. */
static bool leave_out_peers(const struct peal_team *team, uint32_t core, cpu_set_t *mask)
{
    bool shares = false;
    for (uint32_t r = 0; r < team->size; r++) {
        /* Relaxed: a hint. Partner: the store in peal_own_core_seek. */
        uint32_t said = atomic_load_explicit(&team->sleep_slots[r].core, memory_order_relaxed);
        if (r == team->rank || said == 0)
            continue;
        shares |= said - 1 == core;
        if (mask && said - 1 < CPU_SETSIZE)
            CPU_CLR(said - 1, mask);
    }
    return shares;
}

/* The first core of `mask` after `core`, so that ranks of several teams do not all choose the
 * same. */
static bool next_core(const cpu_set_t *mask, uint32_t core, uint32_t *out)
{
    for (uint32_t i = 1; i < CPU_SETSIZE; i++) {
        uint32_t next = (core + i) % CPU_SETSIZE;
        if (CPU_ISSET(next, mask)) {
            *out = next;
            return true;
        }
    }
    return false;
}

/* Moves this thread, then allows the kernel the same cores as before. */
static void move(struct peal_team *team, uint32_t core)
{
    cpu_set_t allowed, free, one;
    uint32_t target;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    free = allowed;
    leave_out_peers(team, core, &free);
    if (!next_core(&free, core, &target))
        return;
    CPU_ZERO(&one);
    CPU_SET(target, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        return;
    (void)sched_setaffinity(0, sizeof allowed, &allowed);
    atomic_store_explicit(&team->sleep_slots[team->rank].core, target + 1, memory_order_relaxed);
}

void peal_own_core_seek(struct peal_team *team)
{
    int core = sched_getcpu();
    if (core < 0)
        return;
    /* Relaxed: a hint. Partner: leave_out_peers. */
    atomic_store_explicit(&team->sleep_slots[team->rank].core, (uint32_t)core + 1,
                          memory_order_relaxed);
    if (!leave_out_peers(team, (uint32_t)core, NULL))
        return;
    uint64_t now = peal_now_ns();
    if (now - team->core_left_ns < REST_NS)
        return;
    team->core_left_ns = now;
    move(team, (uint32_t)core);
}
