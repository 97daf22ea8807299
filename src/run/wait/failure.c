/* SPDX-License-Identifier: Apache-2.0 */
/* How a team fails: once, for all its ranks, with one report.
 *
 * The first rank of the host has the decisive failure word. The rank that changes it from 0 wins
 * and writes the report beside it; then it copies the word into every rank's own block, where that
 * rank looks for it, and wakes the rank. Ranks that lose copy the winner's word instead of theirs.
 * On several hosts the winner also sends word and report to the other hosts, where they enter by
 * peal_team_take_failure. */
#include "run/team/team.h"

#include "base/base.h"
#include "run/span/span.h"
#include "run/wait/backoff.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WINNER_SHIFT = 40 }; /* in the failure word */

/* May that rank be using peers' memory? */
static bool is_moving(const struct peal_team *team, uint32_t rank)
{
    const struct peal_control *control = team->controls[rank];
    /* Acquire: the peer's accesses in its call come before. Partners: peal_team_leave and
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
        nanosleep(&moment, NULL); /* longer than any store takes to become visible */
    for (uint32_t r = 0; r < team->size; r++) {
        while (r != team->rank && is_moving(team, r))
            nanosleep(&moment, NULL);
    }
}

static void copy_report(struct peal_team *team, struct peal_control *first, uint32_t winner)
{
    enum { LIMIT_MS = 20000 };
    /* The winner is formatting the report: microseconds, or as long as it does not get a core. If
     * it has died, the report stays unwritten. */
    for (int i = 0; i < LIMIT_MS; i++) {
        bool gone = winner < team->size && peal_team_is_dead(team, winner);
        /* Partner: write_report. */
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
    if (text[0] == '\0') /* it died before it wrote one, or had no memory for it */
        peal_text_printf(&team->error, "peal: rank %u has failed, and has left no report: %s\n",
                         winner, peal_status_text(team->failed));
}

enum peal_status peal_team_failure(struct peal_team *team)
{
    /* Partner: the compare and swap in spread_failure. */
    uint64_t failure = atomic_load_explicit(&peal_team_own(team)->failure, memory_order_acquire);
    if (failure == 0)
        return PEAL_OK;
    if (team->failed == PEAL_OK) {
        team->failed = (enum peal_status)(failure & 0xff);
        copy_report(team, team->controls[team->first],
                    (uint32_t)(failure >> WINNER_SHIFT) & 0xffff);
        if (team->span)
            peal_span_retract(team->span);
        atomic_thread_fence(memory_order_seq_cst); /* as at the end of spread_failure */
    }
    return team->failed;
}

/* Sets a block's failure word unless it is set; returns the word that holds. *won: it is this one.
 * acq_rel: the winner's report comes after; a loser sees what the winner did before. Partners: each
 * other, and the loads of the word. */
static uint64_t claim(struct peal_control *control, uint64_t failure, bool *won)
{
    uint64_t found = 0;
    *won = atomic_compare_exchange_strong_explicit(&control->failure, &found, failure,
                                                   memory_order_acq_rel, memory_order_acquire);
    return *won ? failure : found;
}

enum peal_status peal_team_confirm(struct peal_team *team)
{
    /* The accesses come before this load. Partner: the compare and swap in claim, which comes
     * before the owner's next use of its memory. */
    atomic_thread_fence(memory_order_acquire);
    uint64_t failure =
        atomic_load_explicit(&team->controls[team->first]->failure, memory_order_acquire);
    if (__builtin_expect(failure == 0, 1))
        return PEAL_OK;
    bool won;
    (void)claim(peal_team_own(team), failure, &won);
    return peal_team_failure(team);
}

/* Writes the report where all ranks find it. */
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
static void spread_failure(const struct peal_team *team, uint64_t failure)
{
    for (uint32_t r = 0; r < team->size; r++) {
        bool won;
        (void)claim(team->controls[r], failure, &won); /* partner: peal_team_failure on rank r */
        peal_team_wake(team, r);
    }
    /* Before anything that the caller does next. Partner: peal_team_confirm. */
    atomic_thread_fence(memory_order_seq_cst);
}

static uint64_t failure_word(const struct peal_team *team, enum peal_status status,
                             uint32_t culprit)
{
    return (uint64_t)status | (uint64_t)culprit << 8 | (uint64_t)team->rank << WINNER_SHIFT;
}

void peal_team_revoke(const struct peal_team *team)
{
    struct peal_control *first = team->controls[team->first];
    bool won;
    uint64_t failure = claim(first, failure_word(team, PEAL_REVOKED, team->rank), &won);
    if (won) {
        char text[64];
        snprintf(text, sizeof text, "peal: rank %u has revoked the communicator\n", team->rank);
        write_report(first, text);
    }
    spread_failure(team, failure);
    if (team->span)
        peal_span_announce(team->span);
}

void peal_team_take_failure(const struct peal_team *team, uint64_t failure, const char *report)
{
    struct peal_control *first = team->controls[team->first];
    bool won;
    if (failure == 0)
        return;
    failure = claim(first, failure, &won);
    if (won) /* of several ranks that receive it, one writes the report */
        write_report(first, report);
    spread_failure(team, failure);
}

enum peal_status peal_team_fail(struct peal_team *team, enum peal_status status, uint32_t culprit,
                                const struct peal_text *report)
{
    struct peal_control *first = team->controls[team->first];
    bool won;
    uint64_t failure = claim(first, failure_word(team, status, culprit), &won);
    if (won) {
        struct peal_text folded = {0};
        peal_text_puts(&folded, peal_text_get(report));
        peal_text_fold(&folded, 0, 6, PEAL_TEXT_WIDTH);
        write_report(first, peal_text_get(&folded));
        if (!team->quiet)
            fprintf(stderr, "%s", peal_text_get(&folded));
        peal_text_release(&folded);
    }
    spread_failure(team, failure);
    if (team->span && won)
        peal_span_announce(team->span);
    return peal_team_failure(team);
}
