/* SPDX-License-Identifier: Apache-2.0 */
/* Which cuts a collective asks for, and the answer as a rate. */
#include "topology/bound/bound.h"

#include "topology/bound/part.h"

#include <assert.h>
#include <string.h>

static peal_wide gcd_wide(peal_wide a, peal_wide b)
{
    while (b) {
        peal_wide rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

bool peal_bound_rate(uint64_t scale, peal_wide amount, peal_wide shares, peal_wide capacity,
                     struct peal_rate *out)
{
    assert(scale > 0 && amount > 0 && shares > 0 && capacity > 0);
    peal_wide up[2] = {scale, amount}, down[2] = {shares, capacity};
    for (int i = 0; i < 4; i++) {
        peal_wide common = gcd_wide(up[i / 2], down[i % 2]);
        up[i / 2] /= common;
        down[i % 2] /= common;
    }
    peal_wide num, den;
    if (__builtin_mul_overflow(up[0], up[1], &num) ||
        __builtin_mul_overflow(down[0], down[1], &den) || num > UINT64_MAX || den > UINT64_MAX)
        return false;
    *out = (struct peal_rate){(uint64_t)num, (uint64_t)den};
    return true;
}

static enum peal_status too_large(const struct peal_bound_finder *f)
{
    peal_diag_error(f->diags, (struct peal_pos){0},
                    "the bound has too many digits: give the links' rates with fewer");
    return PEAL_UNSUPPORTED;
}

void peal_bound_take_cut(struct peal_bound_finder *f, const struct peal_cuts *cuts,
                         const bool *inside)
{
    struct peal_graph_bound *out = f->out;
    bool unlimited;
    out->kind = PEAL_BOUND_CUT;
    out->enters = cuts->reversed;
    out->ranks = out->links = 0;
    for (uint32_t n = 0; n < f->graph->nodes.len; n++) {
        out->inside[n] = inside[n];
        out->ranks += inside[n] ? f->weight[n] : 0;
    }
    for (size_t i = 0; i < f->graph->links.len; i++) {
        const struct peal_graph_link *link = &f->graph->links.at[i];
        uint32_t from = cuts->reversed ? link->to : link->from;
        uint32_t to = cuts->reversed ? link->from : link->to;
        out->links += cuts->unit[i] > 0 && inside[from] && !inside[to];
    }
    /* Too many digits: not the bound, only what is shown beside it. */
    if (!peal_bound_rate(cuts->scale, 1, 1, peal_cuts_capacity(cuts, inside, &unlimited), &out->at))
        out->at = (struct peal_rate){0, 1};
}

/* The smallest ratio of what leaves and what is inside, over `shares`: M/shares of each weight has to
 * leave. Keeps it if it is more than what is there. */
static enum peal_status try_cut(struct peal_bound_finder *f, struct peal_cuts *cuts,
                                const struct peal_cut_ask *ask, uint32_t shares)
{
    struct peal_cut cut = {.inside = peal_arena_alloc(f->arena, f->graph->nodes.len)};
    struct peal_rate rate;
    if (!cut.inside)
        return PEAL_NO_MEMORY;
    enum peal_status status = peal_cuts_find(cuts, ask, &cut);
    if (status != PEAL_OK || !cut.found)
        return status;
    if (cut.capacity == 0) {
        peal_diag_error(f->diags, (struct peal_pos){0}, "not every rank reaches every other one");
        return PEAL_INVALID;
    }
    if (!peal_bound_rate(cuts->scale, cut.weight, shares, cut.capacity, &rate))
        return too_large(f);
    if (f->out->kind != PEAL_BOUND_NOTHING && peal_rate_compare(rate, f->out->per_byte) <= 0)
        return PEAL_OK;
    f->out->per_byte = rate;
    peal_bound_take_cut(f, cuts, cut.inside);
    return PEAL_OK;
}

/* What weighs, and what is a target: every rank's node, or one of them. */
enum cut_side { ALL, ROOT, NEXT };

static enum peal_status find_cut(struct peal_bound_finder *f, struct peal_cuts *cuts,
                                 enum cut_side weighs, enum cut_side targets, uint32_t rank)
{
    size_t nodes = f->graph->nodes.len;
    uint32_t *weight = peal_arena_alloc(f->arena, nodes * sizeof *weight);
    bool *target = peal_arena_alloc(f->arena, nodes * sizeof *target);
    if (!weight || !target)
        return PEAL_NO_MEMORY;
    for (size_t n = 0; n < nodes; n++) {
        weight[n] = weighs == ALL ? f->weight[n] : 0;
        target[n] = targets == ALL && f->weight[n] > 0;
    }
    if (weighs == ROOT)
        weight[f->ask->pes[rank]] = 1;
    if (targets != ALL)
        target[f->ask->pes[rank + (targets == NEXT)]] = true;
    return try_cut(f, cuts, &(struct peal_cut_ask){weight, target},
                   weighs == ALL ? f->ask->nranks : 1);
}

/* Each rank's neighbours in number: a set with i and without some j > i has one without i + 1. */
static enum peal_status find_scan(struct peal_bound_finder *f)
{
    enum peal_status status = PEAL_OK;
    for (uint32_t i = 0; i + 1 < f->ask->nranks && status == PEAL_OK; i++) {
        if (f->ask->pes[i] != f->ask->pes[i + 1])
            status = find_cut(f, f->cuts, ROOT, NEXT, i);
    }
    return status;
}

static bool computes(const struct peal_graph *graph)
{
    for (size_t n = 0; n < graph->nodes.len; n++) {
        if (graph->nodes.at[n].reduces || graph->nodes.at[n].multicasts)
            return true;
    }
    return false;
}

/* The optimum of a reduce_scatter and an allgather, one after the other. */
static enum peal_status find_pair(struct peal_bound_finder *f, struct peal_cuts *back)
{
    struct peal_graph_bound whole = *f->out, half = {.inside = whole.inside};
    enum peal_status status = PEAL_OK;
    whole.inside = peal_arena_alloc(f->arena, f->graph->nodes.len);
    if (!whole.inside)
        return PEAL_NO_MEMORY;
    memcpy(whole.inside, half.inside, f->graph->nodes.len);
    struct peal_rate each[2] = {{0, 1}, {0, 1}};
    for (int i = 0; i < 2 && status == PEAL_OK; i++) {
        f->out->kind = PEAL_BOUND_NOTHING;
        status = find_cut(f, i ? back : f->cuts, ALL, ALL, 0);
        if (f->out->kind != PEAL_BOUND_NOTHING)
            each[i] = f->out->per_byte;
    }
    *f->out = whole;
    if (status != PEAL_OK)
        return status;
    peal_wide num = (peal_wide)each[0].num * each[1].den,
              den = (peal_wide)each[0].den * each[1].den;
    if (__builtin_add_overflow(num, (peal_wide)each[1].num * each[0].den, &num))
        return too_large(f);
    f->out->pair = (struct peal_rate){0, 1};
    if (num > 0 && !peal_bound_rate(1, num, 1, den, &f->out->pair))
        return too_large(f);
    /* The two are an allreduce. Their cuts alone can say less where a switch has more links out than in. */
    if (!f->out->in_switch && peal_rate_compare(f->out->pair, f->out->per_byte) < 0)
        f->out->pair = f->out->per_byte;
    return PEAL_OK;
}

static enum peal_status find_allreduce(struct peal_bound_finder *f, struct peal_cuts *back)
{
    enum peal_status status = find_cut(f, f->cuts, ROOT, ALL, 0);
    if (status == PEAL_OK)
        status = find_cut(f, back, ROOT, ALL, 0);
    f->out->in_switch = computes(f->graph);
    if (status == PEAL_OK && !f->out->in_switch)
        status = peal_bound_parts(f);
    if (status == PEAL_OK)
        status = find_pair(f, back);
    return status;
}

static enum peal_status find(struct peal_bound_finder *f, struct peal_cuts *back)
{
    enum peal_status status;
    switch (f->ask->contract) {
    case PEAL_CONTRACT_ALLREDUCE:
        return find_allreduce(f, back);
    case PEAL_CONTRACT_ALLGATHER:
        return find_cut(f, f->cuts, ALL, ALL, 0);
    case PEAL_CONTRACT_REDUCE_SCATTER:
        return find_cut(f, back, ALL, ALL, 0);
    case PEAL_CONTRACT_BROADCAST:
        return find_cut(f, f->cuts, ROOT, ALL, f->ask->root);
    case PEAL_CONTRACT_REDUCE:
        return find_cut(f, back, ROOT, ALL, f->ask->root);
    case PEAL_CONTRACT_GATHER:
        return find_cut(f, f->cuts, ALL, ROOT, f->ask->root);
    case PEAL_CONTRACT_SCATTER:
        return find_cut(f, back, ALL, ROOT, f->ask->root);
    case PEAL_CONTRACT_SCAN:
    case PEAL_CONTRACT_EXSCAN:
        return find_scan(f);
    case PEAL_CONTRACT_ALL_TO_ALL:
        status = peal_bound_sweep(f);
        return status == PEAL_OK ? peal_bound_lengths(f) : status;
    case PEAL_CONTRACT_ALL_TO_ALL_V: /* sizes are not known */
    case PEAL_CONTRACT_BARRIER:
    case PEAL_CONTRACT_NONE:
    case PEAL_CONTRACT_COUNT:
        break;
    }
    return PEAL_OK;
}

/* How many ranks each node has, and which nodes pass data on. */
static bool prepare(struct peal_bound_finder *f)
{
    size_t nodes = f->graph->nodes.len;
    f->weight = peal_arena_alloc(f->arena, nodes * sizeof *f->weight);
    f->used = peal_arena_alloc(f->arena, nodes * sizeof *f->used);
    f->out->inside = peal_arena_alloc(f->arena, nodes * sizeof *f->out->inside);
    if (!f->weight || !f->used || !f->out->inside)
        return false;
    for (uint32_t r = 0; r < f->ask->nranks; r++) {
        assert(f->ask->pes[r] < nodes);
        f->weight[f->ask->pes[r]]++;
    }
    for (size_t n = 0; n < nodes; n++)
        f->used[n] = f->weight[n] > 0 || !f->graph->nodes.at[n].ends;
    return true;
}

enum peal_status peal_graph_bound_find(const struct peal_graph_bound_ask *ask,
                                       struct peal_arena *arena, struct peal_diags *diags,
                                       struct peal_graph_bound *out)
{
    struct peal_cuts ahead = {0}, back = {0};
    struct peal_bound_finder f = {.ask = ask,
                                  .graph = ask->graph,
                                  .arena = arena,
                                  .diags = diags,
                                  .cuts = &ahead,
                                  .out = out};
    assert(ask->nranks > 0 && ask->root < ask->nranks);
    *out = (struct peal_graph_bound){.per_byte = {0, 1}, .pair = {0, 1}, .at = {0, 1}};
    if (!prepare(&f))
        return PEAL_NO_MEMORY;
    enum peal_status status = peal_cuts_init(&ahead, ask->graph, f.used, false, diags);
    if (status == PEAL_OK)
        status = peal_cuts_init(&back, ask->graph, f.used, true, diags);
    if (status == PEAL_OK && ask->nranks > 1)
        status = find(&f, &back);
    if (status == PEAL_OK)
        status = peal_bound_latency(&f);
    peal_cuts_release(&ahead);
    peal_cuts_release(&back);
    return status;
}

uint64_t peal_graph_bound_time(const struct peal_graph_bound *bound, uint64_t bytes)
{
    return peal_size_max(bound->latency, peal_rate_time(bound->per_byte, bytes));
}
