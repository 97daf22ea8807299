/* SPDX-License-Identifier: Apache-2.0 */
/* A program that goes on after failures, for tests of faults across hosts.
 *
 * Makes calls of changing kinds and sizes and checks their results. When one fails, it prints why and
 * goes on with the ranks that are left. Lines, with T = CLOCK_MONOTONIC in ms:
 *
 *   ready                              once all ranks have made a call
 *   failed at T: STATUS: WORDS         a call failed; the first line of the report
 *   size N                             after a shrink
 *   wrong: WORDS                       a wrong result, or an open or shrink that failed
 *   done N                             at the end, after SIGTERM to any connected rank
 *
 * After SIGUSR1 its calls time out within a second, until the next shrink. */
#include <peal/peal.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_COUNT = 1 << 16, LONG_MS = 600000, SHORT_MS = 1000 };

static volatile sig_atomic_t ended;

static void on_end(int number)
{
    (void)number;
    ended = 1;
}

static struct peal_comm *volatile current; /* NULL while it is replaced */

static void on_hurry(int number)
{
    (void)number;
    peal_comm_set_timeout(current, SHORT_MS);
}

static unsigned long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000 + (unsigned long long)t.tv_nsec / 1000000;
}

static void complain(const char *call, const struct peal_comm *comm)
{
    printf("wrong: %s: %.300s\n", call, peal_comm_error(comm));
    fflush(stdout);
    exit(1);
}

static uint64_t count_of(uint64_t round)
{
    static const uint64_t counts[] = {1, 3, 256, 5000, MAX_COUNT, 40};
    return counts[round % (sizeof counts / sizeof *counts)];
}

/* An allreduce or a broadcast, whose result follows from the round. */
static enum peal_status call(struct peal_comm *comm, uint64_t round, int64_t *x, int64_t *y)
{
    int64_t size = peal_comm_size(comm), rank = peal_comm_rank(comm), mark = (int64_t)round;
    uint64_t count = count_of(round), root = round % (uint64_t)size;
    enum peal_status status;
    for (uint64_t i = 0; i < count; i++)
        x[i] = mark + rank + (int64_t)i;
    if (round % 3 == 1) {
        status = peal_broadcast(comm, x, count, PEAL_I64, (uint32_t)root);
        if (status != PEAL_OK)
            return status;
        for (uint64_t i = 0; i < count; i++) {
            if (x[i] != mark + (int64_t)root + (int64_t)i)
                complain("a broadcast", NULL);
        }
        return PEAL_OK;
    }
    status = peal_allreduce(comm, x, y, count, PEAL_I64, PEAL_SUM);
    if (status != PEAL_OK)
        return status;
    for (uint64_t i = 0; i < count; i++) {
        if (y[i] != size * (mark + (int64_t)i) + size * (size - 1) / 2)
            complain("an allreduce", NULL);
    }
    return PEAL_OK;
}

/* Makes calls until one fails, or until any rank has been asked to end, on which all agree. */
static enum peal_status run(struct peal_comm *comm, int64_t *x, int64_t *y, uint64_t *round)
{
    for (;;) {
        uint8_t ends = (uint8_t)ended, any = 0;
        enum peal_status status = peal_allreduce(comm, &ends, &any, 1, PEAL_U8, PEAL_MAX);
        if (status == PEAL_OK && any)
            return PEAL_OK;
        if (status == PEAL_OK)
            status = call(comm, *round, x, y);
        if (status != PEAL_OK)
            return status;
        if ((*round)++ == 0) {
            printf("ready\n");
            fflush(stdout);
        }
    }
}

int main(void)
{
    struct peal_comm *comm = NULL;
    int64_t *x = malloc(MAX_COUNT * sizeof *x), *y = malloc(MAX_COUNT * sizeof *y);
    uint64_t round = 0;
    enum peal_status status;
    signal(SIGTERM, on_end);
    signal(SIGUSR1, on_hurry);
    if (!x || !y || peal_comm_open(NULL, &comm) != PEAL_OK)
        complain("open", NULL);
    peal_comm_set_timeout(comm, LONG_MS); /* of calls; opening has its own time-out */
    current = comm;
    while ((status = run(comm, x, y, &round)) != PEAL_OK) {
        struct peal_comm *smaller = NULL;
        const char *words = peal_comm_error(comm);
        printf("failed at %llu: %s: %.*s\n", now_ms(), peal_status_text(status),
               (int)strcspn(words, "\n"), words);
        fflush(stdout);
        current = NULL;
        if (peal_comm_shrink(comm, &smaller) != PEAL_OK)
            complain("shrink", comm);
        peal_comm_close(comm);
        comm = smaller;
        peal_comm_set_timeout(comm, LONG_MS);
        current = comm;
        printf("size %u\n", peal_comm_size(comm));
        fflush(stdout);
        /* Ranks may have failed in different rounds. Not 0, which would print "ready" again. */
        round = 1;
    }
    printf("done %u\n", peal_comm_size(comm));
    current = NULL;
    peal_comm_close(comm);
    free(x);
    free(y);
    return 0;
}
