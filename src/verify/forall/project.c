/* SPDX-License-Identifier: Apache-2.0 */
/* The plan for P ranks, restricted to some of them, against the plan for that many.
 *
 * Kept are the notifies, waits and messages between ranks that are kept: for a notify, these are the
 * rank that makes it and the owner of the cell; for a wait, the owner and the writer; for a message,
 * sender and receiver. What a shared cell counts depends on the number of ranks (totals.c). The text of a mesh
 * implies that they are those of the smaller plan, op for op. This file compares plans, so that a
 * mistake in reading texts or in instantiate is found.
 */
#include "verify/forall/mesh.h"

#include <string.h>

/* The number of a rank among those kept, or PEAL_NONE. */
static uint32_t number_of(const uint32_t *keep, uint32_t n, uint32_t rank)
{
    for (uint32_t i = 0; i < n; i++) {
        if (keep[i] == rank)
            return i;
    }
    return PEAL_NONE;
}

struct project_view {
    const struct peal_plan *plan;
    const uint32_t *keep; /* NULL: all */
    uint32_t nkeep;
    const struct peal_op *op, *end;
    uint32_t rank;
};

static uint32_t seen_as(const struct project_view *v, uint32_t rank)
{
    return v->keep ? number_of(v->keep, v->nkeep, rank) : rank;
}

/* The next op that is kept, with its cell's owner and, where there is a cell per rank, its
 * index. */
struct seen {
    const struct peal_op *op;
    uint32_t owner, index, signal;
    bool counts;      /* value and after are the same for any number of ranks */
    const char *name; /* of a channel */
};

/* A message: its peer is the owner. */
static bool see_message(struct project_view *v, struct seen *out)
{
    const struct peal_channel *c = &peal_plan_channels(v->plan)[v->op->mem.channel];
    uint32_t peer = peal_op_sends(v->op) ? c->receiver : c->sender;
    *out = (struct seen){
        v->op, seen_as(v, peer), c->port, 0, false, peal_plan_string(v->plan, c->name)};
    return out->owner != PEAL_NONE;
}

static bool next(struct project_view *v, struct seen *out)
{
    for (; v->op < v->end; v->op++) {
        if (peal_op_has_message(v->op) && see_message(v, out)) {
            v->op++;
            return true;
        }
        if (!peal_op_is_sync(v->op))
            continue;
        uint32_t s = peal_op_signal(v->op);
        const struct peal_signal *signal = &peal_plan_signals(v->plan)[s];
        uint32_t index = v->op->sync.cell - signal->first_cell;
        bool per_rank = signal->cells == v->plan->nranks;
        *out = (struct seen){
            v->op, seen_as(v, v->op->sync.rank),       per_rank ? seen_as(v, index) : index,
            s,     signal->kind != PEAL_SIGNAL_SHARED, ""};
        if (out->owner == PEAL_NONE || (per_rank && out->index == PEAL_NONE))
            continue;
        v->op++;
        return true;
    }
    return false;
}

static bool same(const struct seen *a, const struct seen *b)
{
    if (a->op->kind != b->op->kind || a->op->flags != b->op->flags || a->signal != b->signal ||
        a->owner != b->owner || a->index != b->index || strcmp(a->name, b->name) != 0)
        return false;
    if (!peal_op_is_sync(a->op))
        return true;
    return a->op->sync.phases == PEAL_NONE && b->op->sync.phases == PEAL_NONE &&
           (!a->counts ||
            (a->op->sync.value == b->op->sync.value && a->op->sync.after == b->op->sync.after));
}

static struct project_view view_of(const struct peal_plan *plan, uint32_t rank)
{
    const struct peal_lane *lane = peal_plan_lane(plan, rank, 0);
    const struct peal_op *op = peal_plan_ops(plan) + lane->first_op;
    return (struct project_view){.plan = plan, .op = op, .end = op + lane->ops, .rank = rank};
}

bool peal_mesh_projects(const struct peal_plan *whole, const struct peal_plan *part,
                        const uint32_t *keep)
{
    if (whole->signals.count != part->signals.count)
        return false;
    for (uint32_t i = 0; i < part->nranks; i++) {
        if (peal_plan_lane_count(whole, keep[i]) != 1 || peal_plan_lane_count(part, i) != 1)
            return false;
        struct project_view a = view_of(whole, keep[i]), b = view_of(part, i);
        a.keep = keep;
        a.nkeep = part->nranks;
        struct seen x, y;
        for (;;) {
            bool one = next(&a, &x), two = next(&b, &y);
            if (one != two || (one && !same(&x, &y)))
                return false;
            if (!one)
                break;
        }
    }
    return true;
}
