/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that waits on a peer's core leaves it, unless it has nowhere to go or has just moved. */
#include "base/tests/unit.h"
#include "run/wait/own_core.h"
#include "run/bootstrap/open.h"

#include <sched.h>
#include <stddef.h>

enum { RANKS = 2 };

static uint32_t said(const struct peal_team *team)
{
    return atomic_load(&team->sleep_slots[team->rank].core);
}

static void bind_to(uint32_t core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

TEST(test_moves_away_from_a_peer)
{
    struct peal_team *teams[RANKS];
    cpu_set_t before, after;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    if (CPU_COUNT(&before) < 2)
        skip();
    assert_int_equal(peal_team_open_threads(RANKS, 1000, NULL, teams), PEAL_OK);
    peal_own_core_seek(teams[0]);
    uint32_t first = said(teams[0]);
    assert_true(first > 0 && CPU_ISSET(first - 1, &before));

    /* The only core it may use: it stays. */
    bind_to(first - 1);
    atomic_store(&teams[1]->sleep_slots[1].core, first);
    peal_own_core_seek(teams[0]);
    assert_int_equal(said(teams[0]), first);

    /* If there are others, it moves to one of them, and may use the same cores as before. */
    teams[0]->core_left_ns = 0;
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    peal_own_core_seek(teams[1]); /* as the peer, which publishes this thread's core */
    uint32_t shared = said(teams[1]);
    peal_own_core_seek(teams[0]);
    assert_int_not_equal(said(teams[0]), shared);
    assert_true(CPU_ISSET(said(teams[0]) - 1, &before));
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));

    /* Not twice in a row: what peers have published may be old. */
    uint64_t moved = teams[0]->core_left_ns;
    atomic_store(&teams[1]->sleep_slots[1].core, (uint32_t)sched_getcpu() + 1);
    peal_own_core_seek(teams[0]);
    assert_true(teams[0]->core_left_ns == moved || teams[0]->core_left_ns - moved >= 500000);
    for (uint32_t r = 0; r < RANKS; r++)
        peal_team_close(teams[r]);
}

int main(void)
{
    return unit_run();
}
