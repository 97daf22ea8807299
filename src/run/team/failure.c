/* SPDX-License-Identifier: Apache-2.0 */
/* How a team fails: once, for all its ranks, with one report. */
#include "run/team/team.h"

#include "base/base.h"
#include "run/call/backoff.h"
#include "run/span/span.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WINNER_SHIFT = 40 }; /* in the failure word */

/* Is that rank where it may load from peers' memory? */
static bool is_moving(const struct peal_team *team, uint32_t rank)
{
    const struct peal_control *control = team->controls[rank];
    /* Acquire: what the peer read in its call it read before. Partners: peal_team_leave and
     * peal_team_move_end. */
    return atomic_load_explicit(&control->life, memory_order_acquire) == PEAL_LIFE_INSIDE ||
           atomic_load_explicit(&control->moving, memory_order_acquire) != 0;
}

void peal_team_settle(const struct peal_team *team)
{
    const struct timespec moment = {0, 1000000};
    if (!team->threads)
        return;
    if (!peal_order_peers(&team->policy))
        nanosleep(&moment, NULL); /* stores are long since where they go */
    for (uint32_t r = 0; r < team->size; r++) {
        while (r != team->rank && is_moving(team, r))
            nanosleep(&moment, NULL);
    }
}

static void copy_report(struct peal_team *team, struct peal_control *first, uint32_t winner)
{
    enum { LIMIT_MS = 20000 };
    /* The winner is formatting: microseconds, or as long as others keep it from the core. One that
     * died leaves the report unwritten. */
    for (int i = 0; i < LIMIT_MS; i++) {
        bool gone = winner < team->size && peal_team_is_dead(team, winner);
        /* Partner: the release in peal_team_fail. */
        if (atomic_load_explicit(&first->report_done, memory_order_acquire) || gone)
            break;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    char text[PEAL_REPORT_WORDS * 8];
    for (int i = 0; i < PEAL_REPORT_WORDS; i++) {
        uint64_t word = atomic_load_explicit(&first->report_text[i], memory_order_relaxed);
        memcpy(text + i * 8, &word, 8);
    }
    text[sizeof text - 1] = '\0';
    team->error.len = 0;
    peal_text_puts(&team->error, text);
    if (text[0] == '\0') /* it died before, or had no memory for it */
        peal_text_printf(&team->error, "peal: rank %u has failed, and has left no report: %s\n",
                         winner, peal_status_text(team->failed));
}

enum peal_status peal_team_failure(struct peal_team *team)
{
    /* Partner: the compare and swap in peal_team_fail. */
    uint64_t failure = atomic_load_explicit(&peal_team_own(team)->failure, memory_order_acquire);
    if (failure == 0)
        return PEAL_OK;
    if (team->failed == PEAL_OK) {
        team->failed = (enum peal_status)(failure & 0xff);
        copy_report(team, team->controls[team->first],
                    (uint32_t)(failure >> WINNER_SHIFT) & 0xffff);
        if (team->span)
            peal_span_retract(team->span);
        atomic_thread_fence(memory_order_seq_cst); /* as at the end of peal_team_fail */
    }
    return team->failed;
}

enum peal_status peal_team_confirm(struct peal_team *team)
{
    /* The accesses come before the look. Partner: the compare and swap in peal_team_fail, which
     * comes before the owner's next use of its memory. */
    atomic_thread_fence(memory_order_acquire);
    uint64_t failure =
        atomic_load_explicit(&team->controls[team->first]->failure, memory_order_acquire);
    if (__builtin_expect(failure == 0, 1))
        return PEAL_OK;
    uint64_t none = 0;
    (void)atomic_compare_exchange_strong_explicit(&peal_team_own(team)->failure, &none, failure,
                                                  memory_order_acq_rel, memory_order_acquire);
    return peal_team_failure(team);
}

/* The report, where all ranks find it. */
static void write_report(struct peal_control *first, const char *report)
{
    char text[PEAL_REPORT_WORDS * 8] = {0};
    snprintf(text, sizeof text, "%s", report);
    for (int i = 0; i < PEAL_REPORT_WORDS; i++) {
        uint64_t word;
        memcpy(&word, text + i * 8, 8);
        atomic_store_explicit(&first->report_text[i], word, memory_order_relaxed);
    }
    /* Partner: copy_report. */
    atomic_store_explicit(&first->report_done, 1, memory_order_release);
}

/* The first rank's block has the failure: copies it to all others, and wakes them. */
static void spread_failure(const struct peal_team *team, uint64_t value)
{
    for (uint32_t r = 0; r < team->size; r++) {
        uint64_t none = 0;
        /* Release, partner: peal_team_failure on rank r. */
        (void)atomic_compare_exchange_strong_explicit(&team->controls[r]->failure, &none, value,
                                                      memory_order_acq_rel, memory_order_acquire);
        peal_team_wake(team, r);
    }
    /* Before anything that the caller does next. Partner: peal_team_confirm. */
    atomic_thread_fence(memory_order_seq_cst);
}

void peal_team_revoke(const struct peal_team *team)
{
    uint64_t none = 0;
    uint64_t value =
        (uint64_t)PEAL_REVOKED | (uint64_t)team->rank << 8 | (uint64_t)team->rank << WINNER_SHIFT;
    struct peal_control *first = team->controls[team->first];
    /* As in peal_team_fail. */
    if (atomic_compare_exchange_strong_explicit(&first->failure, &none, value, memory_order_acq_rel,
                                                memory_order_acquire)) {
        char text[64];
        snprintf(text, sizeof text, "peal: rank %u has revoked the communicator\n", team->rank);
        write_report(first, text);
    } else {
        value = none;
    }
    spread_failure(team, value);
    if (team->span)
        peal_span_announce(team->span);
}

void peal_team_take_failure(const struct peal_team *team, uint64_t failure, const char *report)
{
    uint64_t none = 0;
    struct peal_control *first = team->controls[team->first];
    if (failure == 0)
        return;
    /* As in peal_team_fail: of several ranks that hear of it, one writes the report. */
    if (atomic_compare_exchange_strong_explicit(&first->failure, &none, failure,
                                                memory_order_acq_rel, memory_order_acquire))
        write_report(first, report);
    else
        failure = none;
    spread_failure(team, failure);
}

enum peal_status peal_team_fail(struct peal_team *team, enum peal_status status, uint32_t culprit,
                                const struct peal_text *report)
{
    uint64_t none = 0;
    uint64_t value =
        (uint64_t)status | (uint64_t)culprit << 8 | (uint64_t)team->rank << WINNER_SHIFT;
    struct peal_control *first = team->controls[team->first];
    /* acq_rel: the winner's report comes after; a loser sees who won. */
    bool won = atomic_compare_exchange_strong_explicit(&first->failure, &none, value,
                                                       memory_order_acq_rel, memory_order_acquire);
    if (!won)
        value = none;
    if (won) {
        struct peal_text folded = {0};
        peal_text_puts(&folded, peal_text_get(report));
        peal_text_fold(&folded, 0, 6, PEAL_TEXT_WIDTH);
        write_report(first, peal_text_get(&folded));
        if (!team->quiet)
            fprintf(stderr, "%s", peal_text_get(&folded));
        peal_text_release(&folded);
    }
    spread_failure(team, value);
    if (team->span && won)
        peal_span_announce(team->span);
    return peal_team_failure(team);
}
