/* SPDX-License-Identifier: Apache-2.0 */
/* Meetings that fail: every rank that has come learns of it at once, with the same text, whether it
 * was admitted already or still waits at the leader's socket. Ranks are threads here. */
#include "base/tests/unit.h"
#include "run/bootstrap/rendezvous.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 4, ROUNDS = 4, TIMEOUT_MS = 600000 };

static const struct {
    int line;
    uint32_t ranks[RANKS];   /* the rank that each claims to be; the first one leads */
    uint32_t expects;        /* number of ranks that rank 1 expects */
    uint32_t refuses;        /* rank that has no window; RANKS: none */
    enum peal_status status; /* expected on all */
    const char *words;       /* expected in the text of all */
} rows[] = {
    {__LINE__, {0, 1, 2, 3}, RANKS, RANKS, PEAL_OK, ""},
    {__LINE__, {0, 1, 2, 3}, 5, RANKS, PEAL_INVALID, "rank 1 expects 5 ranks, rank 0 expects 4"},
    {__LINE__, {0, 1, 1, 3}, RANKS, RANKS, PEAL_INVALID, "rank 1 came twice or does not exist"},
    {__LINE__, {0, 1, 2, 7}, RANKS, RANKS, PEAL_INVALID, "rank 7 came twice or does not exist"},
    {__LINE__, {0, 1, 2, 3}, RANKS, 1, PEAL_NO_MEMORY, "rank 1: the shop is out of windows"},
    {__LINE__, {0, 1, 2, 3}, RANKS, 0, PEAL_NO_MEMORY, "rank 0: the shop is out of windows"},
};

struct rank {
    pthread_t thread;
    struct peal_rendezvous meet;
    enum peal_status status;
    struct peal_text why;
    uint32_t count; /* of members in the meeting */
};

static void *meet(void *argument)
{
    struct rank *me = argument;
    struct peal_meeting meeting = {0};
    me->status = peal_rendezvous_meet(&me->meet, &me->why, &meeting);
    me->count = meeting.count;
    peal_meeting_release(&meeting);
    return NULL;
}

static void run_row(size_t row, const char *job)
{
    struct rank ranks[RANKS];
    for (uint32_t i = 0; i < RANKS; i++) {
        uint32_t number = rows[row].ranks[i];
        ranks[i] = (struct rank){.meet = {.job = job,
                                          .rank = number,
                                          .size = number == 1 ? rows[row].expects : RANKS,
                                          .timeout_ms = TIMEOUT_MS,
                                          .window = -1}};
        if (number == rows[row].refuses) {
            ranks[i].meet.refusal = PEAL_NO_MEMORY;
            ranks[i].meet.reason = "the shop is out of windows";
        } else {
            ranks[i].meet.window = memfd_create("peal-meeting", MFD_CLOEXEC);
        }
    }
    for (uint32_t i = RANKS; i-- > 0;) /* the leader last: the others wait for it */
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, meet, &ranks[i]), 0);
    for (uint32_t i = 0; i < RANKS; i++)
        pthread_join(ranks[i].thread, NULL);
    for (uint32_t i = 0; i < RANKS; i++) {
        const char *words = peal_text_get(&ranks[i].why);
        if (ranks[i].status != rows[row].status || strcmp(words, rows[row].words) != 0)
            fail_msg("row of line %d: rank %u: %s: %s", rows[row].line, ranks[i].meet.rank,
                     peal_status_text(ranks[i].status), words);
        assert_int_equal(ranks[i].count, rows[row].status == PEAL_OK ? RANKS : 0);
        peal_text_release(&ranks[i].why);
        if (ranks[i].meet.window >= 0)
            close(ranks[i].meet.window);
    }
}

TEST(everyone_hears_why_a_meeting_fails)
{
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        for (int round = 0; round < ROUNDS; round++) { /* ranks come in another order each time */
            char job[64];
            snprintf(job, sizeof job, "meeting-test-%d-%zu-%d", (int)getpid(), row, round);
            run_row(row, job);
        }
    }
}

/* A rank that cannot take part and finds no other does not wait for the whole time-out. */
TEST(a_refusal_that_no_rank_receives_ends)
{
    struct peal_text why = {0};
    struct peal_meeting meeting = {0};
    char job[64];
    snprintf(job, sizeof job, "meeting-test-%d-alone", (int)getpid());
    struct peal_rendezvous meet = {.job = job,
                                   .rank = 0,
                                   .size = 1,
                                   .timeout_ms = TIMEOUT_MS,
                                   .window = -1,
                                   .refusal = PEAL_NO_MEMORY,
                                   .reason = "none"};
    assert_int_equal(peal_rendezvous_meet(&meet, &why, &meeting), PEAL_NO_MEMORY);
    assert_string_equal(peal_text_get(&why), "rank 0: none");
    peal_text_release(&why);
}

int main(void)
{
    return unit_run();
}
