/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a report: where each rank is, whatever it waits in, which rank delays the others, and
 * for how long; in lines of 80 columns. Ranks are threads. */
#include "base/tests/unit.h"
#include "comm/core/communicator.h"

#include <peal/peal.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RANKS = 4 };

/* What a rank does when it comes to the place where the job stops. */
enum act { STAYS_OUT, RECEIVES, STARTS, CALLS, SENDS };

struct rank {
    pthread_t thread;
    struct peal_comm *comm;
    enum act act;
    sem_t *out, *seen; /* posted by every rank that stays out, and that has the report */
    _Atomic uint32_t polls;
    enum peal_status status;
    char report[4000];
};

static const struct {
    int line;
    enum act acts[RANKS];
    uint32_t culprit;
    const char *said[RANKS]; /* of each rank, in the report */
} rows[] = {
    {__LINE__,
     {RECEIVES, STARTS, STAYS_OUT, CALLS},
     2,
     {"in recv from any rank, tag 3, 0 of 4 bytes, for ",
      "in wait for non-blocking call 1, allreduce of 1000 f32, sum: kernel 'allreduce",
      "outside any call, after its call 1 (barrier), for ",
      "in call 2, allreduce of 1000 f32, sum: kernel 'allreduce"}},
    {__LINE__,
     {STARTS, STARTS, STARTS, STAYS_OUT},
     3,
     {"in wait for non-blocking call 1", "in wait for non-blocking call 1",
      "in wait for non-blocking call 1", "outside any call"}},
    {__LINE__,
     {STAYS_OUT, SENDS, CALLS, CALLS},
     0,
     {"outside any call", "in send to rank 0, tag 3, ", "in call 2, allreduce",
      "in call 2, allreduce"}},
    {__LINE__, /* no single rank is to blame: these calls do not match */
     {CALLS, STARTS, CALLS, STARTS},
     RANKS,
     {"in call 2, allreduce", "in wait for non-blocking call 1", "in call 2, allreduce",
      "in wait for non-blocking call 1"}},
};

static void count_poll(void *argument)
{
    atomic_fetch_add(&((struct rank *)argument)->polls, 1); /* partner: poll_again */
}

static void *run_rank(void *argument)
{
    struct rank *me = argument;
    static float x[1000], letter[1 << 20]; /* more than a mailbox holds */
    float y[1000], word;
    struct peal_request *request = NULL;
    me->status = peal_barrier(me->comm);
    peal_comm_set_idle(me->comm, count_poll, me);
    switch (me->status == PEAL_OK ? me->act : STAYS_OUT) {
    case RECEIVES:
        me->status = peal_recv(me->comm, &word, 4, PEAL_ANY_SOURCE, 3, NULL, NULL);
        break;
    case STARTS:
        me->status = peal_iallreduce(me->comm, x, y, 1000, PEAL_F32, PEAL_SUM, &request);
        if (me->status == PEAL_OK)
            me->status = peal_request_wait(request);
        break;
    case CALLS:
        me->status = peal_allreduce(me->comm, x, y, 1000, PEAL_F32, PEAL_SUM);
        break;
    case SENDS:
        me->status = peal_send(me->comm, letter, sizeof letter, 0, 3);
        break;
    default:
        sem_post(me->out);
        for (int i = 0; i < RANKS - 1; i++)
            sem_wait(me->seen);
        me->status = peal_barrier(me->comm);
    }
    snprintf(me->report, sizeof me->report, "%s", peal_comm_error(me->comm));
    sem_post(me->seen);
    return NULL;
}

/* Runs of blanks and line ends become one blank: it does not matter where a line was broken. */
static void join_lines(char *text)
{
    char *out = text;
    for (const char *at = text; *at; at++) {
        bool blank = *at == ' ' || *at == '\n';
        if (!blank || (out > text && out[-1] != ' '))
            *out++ = blank ? ' ' : *at;
    }
    *out = '\0';
}

static void check_report(size_t row, char *report)
{
    char mark[64];
    for (const char *line = report; *line; line += strcspn(line, "\n") + 1) {
        if (strcspn(line, "\n") > 80)
            fail_msg("row of line %d: a line is too long:\n%s", rows[row].line, report);
    }
    join_lines(report);
    for (uint32_t r = 0; r < RANKS; r++) {
        bool marked = r == rows[row].culprit;
        snprintf(mark, sizeof mark, "peal: rank %u:", r);
        if (rows[row].culprit == RANKS) /* then the report is of the rank that timed out first */
            marked = strncmp(report, mark, strlen(mark)) == 0;
        snprintf(mark, sizeof mark, "rank %u (pid", r);
        const char *at = strstr(report, mark);
        const char *words = at ? strchr(at, ')') + 2 : "";
        if ((strncmp(words, "<-- ", 4) == 0) != marked)
            fail_msg("row of line %d: the mark is wrong at rank %u:\n%s", rows[row].line, r,
                     report);
        words += marked ? 4 : 0;
        if (strncmp(words, rows[row].said[r], strlen(rows[row].said[r])) != 0)
            fail_msg("row of line %d: not said of rank %u: %s\n%s", rows[row].line, r,
                     rows[row].said[r], report);
    }
    bool two_kinds = strstr(report, "a blocking call does not match a non-blocking one") != NULL;
    if (two_kinds != (rows[row].culprit == RANKS))
        fail_msg("row of line %d: the headline is wrong:\n%s", rows[row].line, report);
    if (!two_kinds && !strstr(report, "s or more"))
        fail_msg("row of line %d: how long is not said:\n%s", rows[row].line, report);
}

/* ---- all ranks are where they will stay ---- */

static void pause_ms(void)
{
    nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static const struct peal_control *control_of(const struct peal_comm *comm)
{
    return comm->team->controls[peal_comm_rank(comm)];
}

/* The number of the text that says where each rank waits; false: one has none yet. */
static bool read_versions(const struct rank *ranks, uint32_t versions[RANKS])
{
    for (uint32_t r = 0; r < RANKS; r++) {
        const struct peal_control *control = control_of(ranks[r].comm);
        versions[r] = atomic_load(&control->wait_version); /* partner: put_wait */
        if (ranks[r].act != STAYS_OUT && atomic_load(&control->wait_text[0]) == 0)
            return false;
    }
    return true;
}

static void poll_again(const struct rank *ranks)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        uint32_t before = atomic_load(&ranks[r].polls); /* partner: count_poll */
        while (ranks[r].act != STAYS_OUT && atomic_load(&ranks[r].polls) - before < 2)
            pause_ms();
    }
}

/* Every rank waits and says where, and has then polled without finding anything to do. Nothing can
 * move any more: whatever a rank waits for comes from one of the others. */
static void settle(const struct rank *ranks)
{
    uint32_t before[RANKS], after[RANKS];
    for (;;) {
        if (read_versions(ranks, before)) {
            poll_again(ranks);
            if (read_versions(ranks, after) && memcmp(before, after, sizeof before) == 0)
                return;
        }
        pause_ms();
    }
}

/* The first rank that waits does so no longer. */
static void time_out_one(const struct rank *ranks)
{
    uint32_t r = 0;
    while (ranks[r].act == STAYS_OUT)
        r++;
    peal_comm_set_timeout(ranks[r].comm, 1);
}

TEST(everyone_is_told_where_everyone_waits)
{
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        struct peal_comm *comms[RANKS];
        struct rank ranks[RANKS];
        sem_t out, seen;
        sem_init(&out, 0, 0);
        sem_init(&seen, 0, 0);
        assert_int_equal(peal_comm_open_threads(RANKS, comms), PEAL_OK);
        for (uint32_t r = 0; r < RANKS; r++) {
            ranks[r] = (struct rank){
                .comm = comms[r], .act = rows[row].acts[r], .out = &out, .seen = &seen};
            assert_int_equal(pthread_create(&ranks[r].thread, NULL, run_rank, &ranks[r]), 0);
        }
        if (rows[row].culprit < RANKS)
            sem_wait(&out);
        settle(ranks);
        time_out_one(ranks);
        for (uint32_t r = 0; r < RANKS; r++)
            pthread_join(ranks[r].thread, NULL);
        for (uint32_t r = 0; r < RANKS; r++) {
            assert_int_equal(ranks[r].status,
                             ranks[r].act == STAYS_OUT ? PEAL_CLOSED : PEAL_TIMEOUT);
            assert_string_equal(ranks[r].report, ranks[0].report);
            peal_comm_close(comms[r]);
        }
        check_report(row, ranks[0].report);
        sem_destroy(&out);
        sem_destroy(&seen);
    }
}

/* A report about many ranks cannot list all of them, and says so. */
enum { MANY = 100, OUTSIDE = 97 };

static void *wait_for_all(void *argument)
{
    struct peal_comm *comm = argument;
    float x[10] = {0}, y[10];
    if (peal_comm_rank(comm) != OUTSIDE)
        (void)peal_allreduce(comm, x, y, 10, PEAL_F32, PEAL_SUM);
    return NULL;
}

TEST(a_report_of_many_ranks_names_the_one_that_matters)
{
    struct peal_comm *comms[MANY];
    pthread_t threads[MANY];
    setenv("PEAL_WINDOW_POOL", "64K", 1);
    assert_int_equal(peal_comm_open_threads(MANY, comms), PEAL_OK);
    unsetenv("PEAL_WINDOW_POOL");
    for (uint32_t r = 0; r < MANY; r++)
        assert_int_equal(pthread_create(&threads[r], NULL, wait_for_all, comms[r]), 0);
    for (uint32_t r = 0; r < MANY; r++) {
        while (r != OUTSIDE && atomic_load(&control_of(comms[r])->life) != PEAL_LIFE_INSIDE)
            pause_ms();
    }
    peal_comm_set_timeout(comms[0], 1);
    for (uint32_t r = 0; r < MANY; r++)
        pthread_join(threads[r], NULL);
    const char *report = peal_comm_error(comms[0]);
    assert_non_null(strstr(report, "rank 97 (pid"));
    assert_non_null(strstr(report, "<-- outside any call"));
    const char *more = strstr(report, " more ranks");
    assert_non_null(more);
    assert_true(report[strlen(report) - 1] == '\n');
    for (uint32_t r = 0; r < MANY; r++)
        peal_comm_close(comms[r]);
}

/* ---- user kernels ---- */

static const char text[] = "kernel meet(in x: T[n], out y: T[n], k: int, op: reduce) {\n"
                           "    signal here\n"
                           "    y = op(x, x)\n"
                           "    notify here@((rank + 1) % nranks) += k\n"
                           "    wait here >= k\n"
                           "}\n";

static const struct {
    int line;
    int64_t ks[2];       /* of each rank; 0: it does not launch */
    uint32_t timeout_ms; /* of a rank that waits for nobody; the others are not to time out */
    const char *words[3];
} launches[] = {
    {__LINE__,
     {3, 0},
     100,
     {"rank 0: no progress", "in call 1, kernel 'meet' of f32, k = 3, n = 10, op = max: kernel",
      "to be notified by rank 1"}},
    {__LINE__,
     {3, 4},
     0,
     {"mismatch in call 1: rank ", " calls kernel 'meet' of f32, k = 3, n = 10, op = max",
      " calls kernel 'meet' of f32, k = 4, n = 10, op = max"}},
};

struct launcher {
    struct peal_comm *comm;
    int64_t k;
    uint32_t timeout_ms;
};

static void *launch(void *argument)
{
    const struct launcher *me = argument;
    struct peal_user_kernel *kernel = NULL;
    float x[10] = {0}, y[10];
    struct peal_arg args[4] = {{.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
                               {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y},
                               {.kind = PEAL_ARG_INT, .value = me->k},
                               {.kind = PEAL_ARG_REDUCE, .reduce = PEAL_MAX}};
    peal_comm_set_timeout(me->comm, me->timeout_ms);
    if (me->k > 0 && peal_user_kernel_load(me->comm, text, NULL, &kernel) == PEAL_OK)
        (void)peal_user_kernel_launch(kernel, PEAL_F32, args, 4, NULL, 0);
    peal_user_kernel_free(kernel);
    return NULL;
}

TEST(a_kernel_is_called_by_its_name_and_arguments)
{
    for (size_t row = 0; row < sizeof launches / sizeof *launches; row++) {
        struct peal_comm *comms[2];
        pthread_t threads[2];
        struct launcher ranks[2];
        char report[4000];
        assert_int_equal(peal_comm_open_threads(2, comms), PEAL_OK);
        for (int r = 0; r < 2; r++) {
            ranks[r] = (struct launcher){comms[r], launches[row].ks[r], launches[row].timeout_ms};
            assert_int_equal(pthread_create(&threads[r], NULL, launch, &ranks[r]), 0);
        }
        for (int r = 0; r < 2; r++)
            pthread_join(threads[r], NULL);
        snprintf(report, sizeof report, "%s", peal_comm_error(comms[0]));
        join_lines(report);
        for (int i = 0; i < 3; i++) {
            if (!strstr(report, launches[row].words[i]))
                fail_msg("row of line %d: not said: %s\n%s", launches[row].line,
                         launches[row].words[i], report);
        }
        assert_null(strstr(report, "arguments"));
        for (int r = 0; r < 2; r++)
            peal_comm_close(comms[r]);
    }
}

int main(void)
{
    return unit_run();
}
