/* SPDX-License-Identifier: Apache-2.0 */
/* When yields take long, waits sleep instead, and try yields again later and later. */
#include "base/tests/unit.h"
#include "run/wait/backoff.h"
#include "run/bootstrap/open.h"

#include <stddef.h>
#include <stdlib.h>

enum { RANKS = 2, NEVER = 0 };
static const uint64_t ms = 1000000;

TEST(test_tries_again_later_and_later)
{
    struct peal_crowd crowd = {0};
    const uint64_t took = 3 * ms;
    uint64_t now = 1000 * ms, rest = 0;
    for (int i = 0; i < 10; i++) {
        peal_crowd_note(&crowd, now, took);
        uint64_t next = crowd.until_ns - now;
        uint64_t grown = i < 5 ? 2 * rest : rest;
        assert_int_equal(next, i == 0 ? took : grown);
        rest = next;
        assert_true(peal_crowd_lasts(&crowd, now + rest - 1));
        now += rest + took; /* the try */
        assert_false(peal_crowd_lasts(&crowd, now));
        assert_int_equal(crowd.until_ns, 0);
    }
    /* Not for ever, however long a yield takes. */
    peal_crowd_note(&crowd, now, 5000 * ms);
    assert_true(crowd.rest_ns < 1000 * ms);
    /* After a long time without long yields, it starts over. */
    peal_crowd_note(&crowd, now + 100000 * ms, took);
    assert_int_equal(crowd.rest_ns, took);
}

/* Choices for another machine can be tried on this one. */
TEST(test_cores_are_those_of_the_machine_that_is_described)
{
    unsetenv("PEAL_CORES");
    setenv("HWLOC_SYNTHETIC", "pack:2 core:48 pu:2", 1);
    assert_int_equal(peal_cores(), 96);
    setenv("PEAL_CORES", "3", 1);
    assert_int_equal(peal_cores(), 3);
    unsetenv("PEAL_CORES");
    unsetenv("HWLOC_SYNTHETIC");
}

static bool sleeps(const struct peal_team *team)
{
    return atomic_load(&team->sleep_slots[team->rank].sleeping) != 0;
}

/* Steps until the rank is about to sleep; the step after that would. */
static uint32_t steps_to_sleep(struct peal_team *team, struct peal_backoff *pause)
{
    uint32_t steps = 0;
    do {
        assert_int_equal(peal_backoff_step(team, pause), PEAL_OK);
        steps++;
    } while (!sleeps(team));
    return steps;
}

TEST(test_sleeps_at_once_when_crowded)
{
    struct peal_team *teams[RANKS];
    assert_int_equal(peal_team_open_threads(RANKS, NEVER, NULL, teams), PEAL_OK);
    struct peal_team *team = teams[0];
    struct peal_backoff pause = {0};

    /* One long yield of this wait may be chance. After two, the next step prepares to sleep. */
    assert_int_equal(peal_backoff_step(team, &pause), PEAL_OK);
    team->crowd = (struct peal_crowd){0};
    peal_backoff_crowd(team, &pause, PEAL_LONG_TICKS);
    assert_true(!pause.crowded && team->crowd.until_ns == 0);
    peal_backoff_crowd(team, &pause, PEAL_LONG_TICKS);
    assert_int_equal(steps_to_sleep(team, &pause), 1);
    assert_true(peal_backoff_since(&pause) != 0);
    assert_int_equal(peal_backoff_step(team, &pause), PEAL_OK); /* sleeps 20 ms at most */
    assert_int_equal(steps_to_sleep(team, &pause), 1);
    peal_backoff_reset(team, &pause);
    assert_false(sleeps(team));

    /* So does the first one of the next wait, while that lasts. */
    team->crowd.until_ns = UINT64_MAX;
    assert_int_equal(steps_to_sleep(team, &pause), 1);
    peal_backoff_reset(team, &pause);

    /* When it is over, a wait yields first. */
    team->crowd = (struct peal_crowd){.until_ns = 1};
    assert_int_equal(peal_backoff_step(team, &pause), PEAL_OK);
    assert_false(sleeps(team));
    peal_backoff_reset(team, &pause);
    for (uint32_t r = 0; r < RANKS; r++)
        peal_team_close(teams[r]);
}

static void do_nothing(void *context)
{
    (void)context;
}

/* An idle function is called again soon, even if nothing wakes the rank. */
TEST(test_sleeps_briefly_with_an_idle_function)
{
    struct peal_team *teams[RANKS];
    struct peal_backoff pause = {0}, brief = {.max_sleep_ns = 50000};
    assert_int_equal(peal_team_open_threads(RANKS, NEVER, NULL, teams), PEAL_OK);
    assert_true(peal_backoff_longest_sleep(teams[0], &pause) >= ms);
    assert_int_equal(peal_backoff_longest_sleep(teams[0], &brief), 50000);
    teams[0]->idle = do_nothing;
    assert_int_equal(peal_backoff_longest_sleep(teams[0], &pause), 100000);
    assert_int_equal(peal_backoff_longest_sleep(teams[0], &brief), 50000);
    for (uint32_t r = 0; r < RANKS; r++)
        peal_team_close(teams[r]);
}

int main(void)
{
    return unit_run();
}
