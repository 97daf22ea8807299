/* SPDX-License-Identifier: Apache-2.0 */
/* Affine functions that fit what happens for a few numbers of ranks.
 *
 * Samples of a source are grouped by the writer of what it finds, samples of a value by the writers
 * of its sources; each group becomes one claim, on a box of turns and places. Coefficients are
 * small numbers, tried one after the other. Nothing here is trusted: the claims are checked for all
 * numbers of ranks.
 */
#include "verify/ring/guess.h"

#include <stdlib.h>
#include <string.h>

enum {
    FAMILIES = 4, /* values of h that are tried, starting with the least */
    MAX_CUTS = 2  /* of a group, one within the other */
};

enum target { WRITER_TURN, START, LENGTH, PART };

struct group {
    const struct ring_model *m;
    const struct ring_sample **at;
    size_t len;
};

static int64_t target_of(const struct ring_sample *s, enum target target)
{
    switch (target) {
    case WRITER_TURN:
        return s->writer_turn;
    case START:
        return s->start;
    case LENGTH:
        return s->length;
    default:
        return s->part;
    }
}

static int64_t ranks_of(const struct group *g, const struct ring_sample *s)
{
    return ring_at(ring_ranks(g->m), 0, 0, s->family);
}

/* For a reduction over all ranks, the first rank does not matter. */
static bool is_free(const struct group *g, const struct ring_sample *s, enum target target)
{
    return target == START && s->length == ranks_of(g, s);
}

static bool agrees(const struct group *g, const struct ring_sample *s, struct ring_affine f,
                   enum target target)
{
    int64_t off = ring_at(f, s->turn, s->place, s->family) - target_of(s, target);
    if (is_free(g, s, target) || off == 0)
        return true;
    return (target == START || target == PART) && off % ranks_of(g, s) == 0;
}

static bool fits(const struct group *g, struct ring_affine *f, enum target target)
{
    const struct ring_sample *first = NULL;
    for (size_t i = 0; i < g->len; i++) {
        const struct ring_sample *s = g->at[i];
        if (is_free(g, s, target))
            continue;
        if (!first) {
            first = s;
            f->one = 0;
            f->one = target_of(s, target) - ring_at(*f, s->turn, s->place, s->family);
        }
        if (!agrees(g, s, *f, target))
            return false;
    }
    return true;
}

/* 0, 1, -1, 2, -2, ... */
static int64_t nth(int64_t n)
{
    return n % 2 ? (n + 1) / 2 : -n / 2;
}

static bool fit(const struct group *g, enum target target, struct ring_affine *out)
{
    int64_t families = 4 * g->m->scale + 1;
    for (int64_t turn = 0; turn < 5; turn++) {
        for (int64_t place = 0; place < 5; place++) {
            for (int64_t family = 0; family < families; family++) {
                *out = (struct ring_affine){nth(turn), nth(place), nth(family), 0};
                if (fits(g, out, target))
                    return true;
            }
        }
    }
    return false;
}

/* --- boxes ----------------------------------------------------------------------------------- */

static int64_t coordinate(const struct ring_sample *s, bool place)
{
    return place ? s->place : s->turn;
}

/* The smallest or largest coordinate for one h. False: no sample has that h. */
static bool bound_at(const struct group *g, int64_t family, bool place, bool largest, int64_t *out)
{
    bool any = false;
    for (size_t i = 0; i < g->len; i++) {
        const struct ring_sample *s = g->at[i];
        if (s->family != family)
            continue;
        int64_t at = coordinate(s, place);
        if (!any || (largest ? at > *out : at < *out))
            *out = at;
        any = true;
    }
    return any;
}

/* With the least number of ranks, a group may have nothing in it yet. */
static bool fit_bound(const struct group *g, bool place, bool largest, struct ring_affine *out)
{
    int64_t h = g->m->least, end = h + FAMILIES, a = 0, b = 0;
    h += !bound_at(g, h, place, largest, &a);
    if (!bound_at(g, h, place, largest, &a) || !bound_at(g, h + 1, place, largest, &b))
        return false;
    *out = (struct ring_affine){.family = b - a, .one = a - (b - a) * h};
    for (int64_t i = h + 2; i < end; i++) {
        int64_t c = 0;
        if (!bound_at(g, i, place, largest, &c) || ring_at(*out, 0, 0, i) != c)
            return false;
    }
    if (largest)
        out->one++;
    return true;
}

static bool fit_box(const struct group *g, struct ring_box *out)
{
    return fit_bound(g, false, false, &out->turn) && fit_bound(g, false, true, &out->turn_end) &&
           fit_bound(g, true, false, &out->place) && fit_bound(g, true, true, &out->place_end);
}

/* --- groups ---------------------------------------------------------------------------------- */

static bool same_group(const struct ring_sample *a, const struct ring_sample *b)
{
    return a->op == b->op && a->source == b->source && a->writer == b->writer &&
           a->writers[0] == b->writers[0] && a->writers[1] == b->writers[1] && a->final == b->final;
}

static bool claim_origin(const struct group *g, struct ring_certificate *c)
{
    struct ring_origin o = {
        .op = g->at[0]->op, .source = g->at[0]->source, .writer = g->at[0]->writer};
    if (c->norigins == RING_MAX_CLAIMS || !fit_box(g, &o.box) || !fit(g, WRITER_TURN, &o.turn))
        return false;
    c->origins[c->norigins++] = o;
    return true;
}

static bool claim_value(const struct group *g, struct ring_certificate *c)
{
    struct ring_value v = {.op = g->at[0]->op, .final = g->at[0]->final};
    if (c->nvalues == RING_MAX_CLAIMS || !fit_box(g, &v.box) || !fit(g, START, &v.start) ||
        !fit(g, LENGTH, &v.length) || !fit(g, PART, &v.part))
        return false;
    c->values[c->nvalues++] = v;
    return true;
}

/* One way to divide a group: what lies within `width` of the first or last place or turn. */
struct guess_cut {
    bool place, from_end;
    int64_t width;
};

static bool is_cut_off(const struct group *g, const struct ring_sample *s,
                       const struct guess_cut *cut)
{
    int64_t bound = 0, at = coordinate(s, cut->place);
    (void)bound_at(g, s->family, cut->place, cut->from_end, &bound);
    return cut->from_end ? at > bound - cut->width : at < bound + cut->width;
}

static bool claim_group(const struct group *g, bool origins, uint32_t cuts,
                        struct ring_certificate *out);

/* Both sides of a cut become claims; otherwise none does. */
static bool claim_sides(const struct group *g, const struct guess_cut *cut, bool origins,
                        uint32_t cuts, struct ring_certificate *out)
{
    uint32_t norigins = out->norigins, nvalues = out->nvalues;
    struct group side[2] = {{.m = g->m}, {.m = g->m}};
    bool good = true;
    for (int i = 0; i < 2; i++) {
        side[i].at = calloc(g->len + 1, sizeof *g->at);
        good = good && side[i].at;
    }
    for (size_t i = 0; good && i < g->len; i++) {
        struct group *to = &side[is_cut_off(g, g->at[i], cut)];
        to->at[to->len++] = g->at[i];
    }
    good = good && side[0].len && side[1].len && claim_group(&side[0], origins, cuts - 1, out) &&
           claim_group(&side[1], origins, cuts - 1, out);
    free(side[0].at);
    free(side[1].at);
    if (!good) {
        out->norigins = norigins;
        out->nvalues = nvalues;
    }
    return good;
}

/* What is not one affine function may be two: places are counted round the ring from this rank, so
 * that a loop may begin a place or two away from where the count begins. */
static bool claim_group(const struct group *g, bool origins, uint32_t cuts,
                        struct ring_certificate *out)
{
    if (origins ? claim_origin(g, out) : claim_value(g, out))
        return true;
    for (uint32_t i = 0; cuts && i < 8; i++) {
        struct guess_cut cut = {.place = !(i & 1), .from_end = i & 2, .width = 1 + (i >> 2)};
        if (claim_sides(g, &cut, origins, cuts, out))
            return true;
    }
    return false;
}

/* Each group once, in the order of their first samples. */
static bool claim_all(const struct ring_model *m, const struct ring_samples *samples, bool origins,
                      struct ring_certificate *out)
{
    bool *done = calloc(samples->len + 1, sizeof *done);
    struct group g = {.m = m, .at = calloc(samples->len + 1, sizeof *g.at)};
    bool good = false;
    if (!done || !g.at)
        goto free_both;
    for (size_t i = 0; i < samples->len; i++) {
        if (done[i])
            continue;
        g.len = 0;
        for (size_t j = i; j < samples->len; j++) {
            if (!same_group(&samples->at[i], &samples->at[j]))
                continue;
            g.at[g.len++] = &samples->at[j];
            done[j] = true;
        }
        if (!claim_group(&g, origins, MAX_CUTS, out))
            goto free_both;
    }
    good = true;
free_both:
    free(done);
    free(g.at);
    return good;
}

/* In a segment of one turn, which turn it is is known. */
static struct ring_affine in_only_turn(const struct ring_model *m, const struct ring_op *op,
                                       struct ring_affine a)
{
    const struct ring_segment *g = &m->segments[op->segment];
    struct ring_affine turns = ring_add(g->end, g->first, -1), turn = a;
    if (!ring_is_number(turns) || turns.one != 1)
        return a;
    a.turn = 0;
    return ring_add(a, g->first, turn.turn);
}

/* Does the nth take wait for n, and does its taker post for the (n + 1)th time after it? */
static bool is_chain(const struct ring_model *m, uint32_t sync)
{
    for (uint32_t i = 0; i < m->nops; i++) {
        const struct ring_op *op = &m->ops[i];
        if (op->kind != RING_TAKE || op->sync != sync)
            continue;
        struct ring_affine one = ring_number(1);
        struct ring_affine nth = ring_add(peal_ring_before(m, i, RING_TAKE, sync), one, 1);
        struct ring_affine off = in_only_turn(m, op, ring_add(nth, op->threshold, -1));
        struct ring_affine posts = peal_ring_before(m, i, RING_POST, sync);
        struct ring_affine late = in_only_turn(m, op, ring_add(op->threshold, posts, -1));
        if (!ring_is_number(off) || off.one || !ring_is_number(late) || late.one < 0)
            return false;
    }
    return true;
}

bool peal_ring_guess(const struct ring_model *m, struct ring_certificate *out, const char **why)
{
    struct ring_samples origins = {0}, values = {0};
    bool good = false;
    out->norigins = out->nvalues = 0;
    for (uint32_t i = 0; i < m->nsyncs; i++)
        out->chain[i] = is_chain(m, i);
    for (int64_t i = 0; i < FAMILIES; i++) {
        if (!peal_ring_trace(m, m->least + i, &origins, &values, why))
            goto free_samples;
    }
    good = claim_all(m, &origins, true, out) && claim_all(m, &values, false, out);
    if (!good)
        *why =
            "what is read and written is not an affine function of turn, place and number of ranks";
free_samples:
    free(origins.at);
    free(values.at);
    return good;
}
