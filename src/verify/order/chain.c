/* SPDX-License-Identifier: Apache-2.0 */
/* The links of a segment. See chain.h. */
#include "verify/order/chain.h"

#include <stdlib.h>
#include <string.h>

uint32_t *peal_chain_times(const struct program *p)
{
    struct run run;
    uint32_t *times = malloc((p->nsteps + 1) * sizeof *times);
    if (!times || !peal_run_init(&run, p)) {
        free(times);
        return NULL;
    }
    memset(times, 0xff, p->nsteps * sizeof *times);
    run.clock = times;
    run.counts = true;
    peal_run_go(&run);
    peal_run_release(&run);
    return times;
}

bool peal_chain_fits(const struct program *p, const uint32_t *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (p->accesses.at[entries[i]].kind == ACCESS_ACCUMULATE)
            return false;
    }
    return true;
}

/* An access, and how many steps of the execution come before it. */
struct timed {
    uint32_t time, access;
};

static int by_time(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->access > y->access) - (x->access < y->access);
}

/* Accesses that the execution does not reach come last, so that every thread's accesses stay in
 * program order. */
static uint32_t time_of(const struct program *p, const uint32_t *times, const struct access *a)
{
    if (a->step == 0)
        return 0;
    uint32_t time = times[p->threads[a->thread].first_step + a->step - 1];
    return time == UINT32_MAX ? time : time + 1;
}

/* State while the accesses are visited in the order of the execution. */
struct chain_walk {
    const struct access *accesses;
    struct chain_link *out;
    uint32_t count;
};

/* Accesses of one thread are in its program's order. */
static void link_two(struct chain_walk *w, uint32_t before, uint32_t after)
{
    if (w->accesses[before].thread != w->accesses[after].thread)
        w->out[w->count++] = (struct chain_link){before, after, 0};
}

static uint32_t link_all(struct chain_walk *w, const struct timed *list, uint32_t count)
{
    uint32_t write = PEAL_NONE, first_read = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t access = list[i].access;
        if (w->accesses[access].kind == ACCESS_READ) {
            if (write != PEAL_NONE)
                link_two(w, write, access);
            continue;
        }
        if (first_read == i && write != PEAL_NONE)
            link_two(w, write, access);
        for (uint32_t k = first_read; k < i; k++)
            link_two(w, list[k].access, access);
        write = access;
        first_read = i + 1;
    }
    return w->count;
}

uint32_t peal_chain_links(const struct program *p, const uint32_t *times, const uint32_t *entries,
                          uint32_t count, struct chain_link *out)
{
    struct timed *list = malloc(((size_t)count + 1) * sizeof *list);
    if (!list)
        return UINT32_MAX;
    for (uint32_t i = 0; i < count; i++)
        list[i] = (struct timed){time_of(p, times, &p->accesses.at[entries[i]]), entries[i]};
    qsort(list, count, sizeof *list, by_time);
    struct chain_walk w = {.accesses = p->accesses.at, .out = out};
    uint32_t links = link_all(&w, list, count);
    free(list);
    return links;
}

bool peal_chain_holds(const struct program *p, const struct chain_link *links, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (links[i].clock <= p->accesses.at[links[i].before].step)
            return false;
    }
    return true;
}
