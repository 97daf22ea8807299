/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all by lengths. Whatever length each link is given: a byte from u to v takes links of at least
 * the distance between them, and a link of capacity c takes c · T bytes, so
 *
 *   T >= M/N · (sum over pairs of ranks of their distance) / (sum over links of c · length)
 *
 * The best lengths are the dual of the linear program of routing, and make the bound equal to what the
 * best routing reaches. They are looked for as N. Garg and J. Könemann do (1998): everything takes the
 * shortest ways, links that are loaded more than others become longer, again and again. Lengths are whole
 * numbers, so that what they prove is exact, however they were found. The mean of all the routings so far
 * is a routing too: what it needs says how far the bound can be from the best one.
 */
#include "topology/bound/part.h"

#include <string.h>

#define MAX_WORK 3e7 /* of one search for lengths: links that are looked at */
#define ONE (UINT64_C(1) << 20)

struct length_search {
    struct peal_bound_finder *f;
    struct peal_ways ways;
    uint64_t *length;
    double *load, *sum, *below; /* of links: now, of all rounds; of nodes */
    uint64_t *best;
    /* The best bound: distance / size */
    peal_wide distance, size;
};

/* All ranks send one piece to every other one, on shortest ways. The sum of their distances. */
static peal_wide route(struct length_search *s)
{
    const struct peal_graph *graph = s->f->graph;
    peal_wide all = 0;
    memset(s->load, 0, graph->links.len * sizeof *s->load);
    for (uint32_t from = 0; from < graph->nodes.len; from++) {
        if (s->f->weight[from] == 0)
            continue;
        peal_ways_find(&s->ways, from);
        memset(s->below, 0, graph->nodes.len * sizeof *s->below);
        for (uint32_t i = s->ways.count; i-- > 1;) {
            uint32_t node = s->ways.settled[i], link = s->ways.over[node];
            peal_wide pieces = (peal_wide)s->f->weight[from] * s->f->weight[node];
            all += pieces * s->ways.distance[node];
            s->below[node] += (double)pieces;
            s->load[link] += s->below[node];
            s->below[graph->links.at[link].from] += s->below[node];
        }
    }
    return all;
}

static peal_wide size_of(const struct length_search *s)
{
    peal_wide size = 0;
    for (size_t i = 0; i < s->f->graph->links.len; i++)
        size += s->f->cuts->unit[i] * s->length[i];
    return size;
}

/* The largest time of a link for its load, divided by `rounds`. */
static double worst(const struct length_search *s, const double *load, double rounds)
{
    double most = 0;
    for (size_t i = 0; i < s->f->graph->links.len; i++) {
        double unit = (double)s->f->cuts->unit[i];
        if (unit > 0 && load[i] / unit > most)
            most = load[i] / unit;
    }
    return most / rounds;
}

/* Links become longer by their share of the heaviest load. */
static void stretch(struct length_search *s)
{
    double most = worst(s, s->load, 1), longest = 0, step = 0.1;
    size_t count = s->f->graph->links.len;
    double *next = s->below + s->f->graph->nodes.len;
    for (size_t i = 0; i < count; i++) {
        double unit = (double)s->f->cuts->unit[i];
        next[i] = (double)s->length[i];
        if (unit > 0 && most > 0)
            next[i] *= 1 + step * s->load[i] / unit / most;
        if (next[i] > longest)
            longest = next[i];
    }
    for (size_t i = 0; i < count; i++)
        s->length[i] = (uint64_t)(next[i] * ((double)ONE * 16 / longest));
}

/* At first each link is as long as it is slow. */
static void begin(struct length_search *s)
{
    double least = 0;
    for (size_t i = 0; i < s->f->graph->links.len; i++) {
        double unit = (double)s->f->cuts->unit[i];
        if (unit > 0 && (least == 0 || unit < least))
            least = unit;
    }
    for (size_t i = 0; i < s->f->graph->links.len; i++) {
        double unit = (double)s->f->cuts->unit[i];
        s->length[i] = unit > 0 ? (uint64_t)((double)ONE * 16 * (least / unit)) : 0;
    }
}

/* Is this round's bound the best so far? Numbers are compared as they are divided: rounded down. */
static void keep(struct length_search *s, peal_wide distance, peal_wide size)
{
    if (size == 0 || distance == 0)
        return;
    if (s->size && (double)distance / (double)size <= (double)s->distance / (double)s->size)
        return;
    s->distance = distance;
    s->size = size;
}

/* distance · scale / (N size), which may be rounded down: it is a bound all the same. */
static bool rate_of(const struct length_search *s, struct peal_rate *out)
{
    peal_wide distance = s->distance, size = s->size;
    while (distance >> 40 || size >> 40) {
        if (peal_bound_rate(s->f->cuts->scale, distance, s->f->ask->nranks, size, out))
            return true;
        distance >>= 1;
        size = (size + 1) >> 1;
        if (distance == 0)
            return false;
    }
    return peal_bound_rate(s->f->cuts->scale, distance, s->f->ask->nranks, size, out);
}

static void search(struct length_search *s, uint32_t rounds)
{
    const struct peal_bound_finder *f = s->f;
    struct peal_rate rate;
    double needed = 0;
    begin(s);
    for (uint32_t i = 1; i <= rounds; i++) {
        keep(s, route(s), size_of(s));
        for (size_t l = 0; l < f->graph->links.len; l++)
            s->sum[l] += s->load[l];
        double time = worst(s, s->sum, i);
        if (needed == 0 || time < needed)
            needed = time;
        stretch(s);
    }
    if (s->size == 0 || !rate_of(s, &rate))
        return;
    if (f->out->kind == PEAL_BOUND_NOTHING || peal_rate_compare(rate, f->out->per_byte) > 0) {
        f->out->kind = PEAL_BOUND_LENGTHS;
        f->out->per_byte = rate;
    }
    double reached = (double)f->out->per_byte.num / (double)f->out->per_byte.den;
    double gap = needed * (double)f->cuts->scale / f->ask->nranks / reached - 1;
    f->out->gap = gap > 0 ? (uint32_t)(1000 * gap) + 1 : 1;
}

enum peal_status peal_bound_lengths(struct peal_bound_finder *f)
{
    struct length_search s = {.f = f};
    size_t links = f->graph->links.len, nodes = f->graph->nodes.len;
    double rounds = MAX_WORK / ((double)f->ask->nranks * (double)(links + nodes));
    if (rounds < 1)
        return PEAL_OK;
    s.length = peal_arena_alloc(f->arena, links * sizeof *s.length);
    s.load = peal_arena_alloc(f->arena, links * sizeof *s.load);
    s.sum = peal_arena_alloc(f->arena, links * sizeof *s.sum);
    s.below = peal_arena_alloc(f->arena, (nodes + links) * sizeof *s.below);
    if (!s.length || !s.load || !s.sum || !s.below || !peal_ways_init(&s.ways, f))
        return PEAL_NO_MEMORY;
    s.ways.length = s.length;
    search(&s, rounds < 200 ? (uint32_t)rounds : 200);
    return PEAL_OK;
}
