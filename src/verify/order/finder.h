/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by race.c and demands.c: one search for races, and the clocks that it asks for. */
#ifndef PEAL_VERIFY_FINDER_H
#define PEAL_VERIFY_FINDER_H

#include "verify/order/race.h"

struct segment; /* race.c */
struct demand;  /* demands.c */

struct finder {
    struct program *p;
    struct race_report *out;
    struct peal_arena arena;
    bool symmetric;  /* what holds on rank 0 holds on all: only rank 0 is examined */
    uint32_t *times; /* [step] see chain.h; NULL: all pairs are asked about */
    PEAL_VEC(struct segment) segments;
    PEAL_VEC(struct clock_query) queries;
    bool failed;
};

struct demands {
    struct demand *at;
    uint64_t count;
};

static inline void *peal_finder_take(struct finder *f, uint64_t count, size_t size)
{
    void *at = count < SIZE_MAX / 64 ? peal_arena_alloc(&f->arena, count * size) : NULL;
    if (!at)
        f->failed = true;
    return at;
}

static inline void peal_finder_ask(struct finder *f, uint32_t of, uint32_t thread, uint32_t step,
                                   uint32_t *answer)
{
    if (!peal_vec_push(&f->queries, ((struct clock_query){of, thread, step, answer})))
        f->failed = true;
}

/* The conditions for closed, barrier and handed-over cells: their clocks are asked for. Judged when
 * all clocks have been answered. */
void peal_demands_ask(struct finder *f, struct demands out[3]);
void peal_demands_judge(const struct demands d[3], struct race_report *out);

#endif
