/* SPDX-License-Identifier: Apache-2.0 */
/* Which plans may be launched in any order with others of their kind. See compose.h. */
#include "verify/order/compose.h"

#include <stdlib.h>

/* One plan, at least twice, whose launches do not differ. */
static bool repeats_one_plan(const struct program *p)
{
    for (uint32_t l = 0; l < p->launches; l++) {
        if (p->plans[l] != p->plans[0])
            return false;
    }
    return p->launches > 1 && p->plans[0]->period == 1;
}

static bool looks_back(const struct peal_plan *plan)
{
    const struct peal_op *op = peal_plan_ops(plan);
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        if (op[i].kind == PEAL_OP_WAIT && op[i].sync.back > 0)
            return true;
    }
    return false;
}

/* Would this cell have the same writer in every plan that passes? */
static bool has_fixed_writer(const struct program *p, const struct cell *cell)
{
    if (cell->writer == PEAL_NONE)
        return true;
    if (cell->writer == MANY_WRITERS)
        return false;
    switch ((enum cell_kind)cell->kind) {
    case CELL_ONE_WRITER:
        return p->threads[cell->writer].rank == cell->index % p->nranks;
    case CELL_SENT: /* the only lane of the sender, and of the receiver */
    case CELL_FREED:
        return true;
    default:
        return false;
    }
}

static bool cells_have_fixed_writers(const struct program *p)
{
    for (uint32_t c = 0; c < p->ncells; c++) {
        if (p->cells[c].uninitialised || !has_fixed_writer(p, &p->cells[c]))
            return false;
    }
    return true;
}

/* Is every channel empty after every launch, all of its slots given back? */
static bool channels_are_left_empty(const struct program *p)
{
    uint64_t *freed = calloc(p->channels.len + 1, sizeof *freed);
    bool empty = freed;
    if (freed) {
        for (uint64_t i = 0; i < p->nsteps; i++) {
            const struct cell *cell = &p->cells[p->steps[i].cell];
            if (p->steps[i].kind == STEP_ADD && cell->kind == CELL_FREED)
                freed[cell->owner]++;
        }
    }
    for (size_t c = 0; c < p->channels.len; c++) {
        if (!empty)
            break;
        const struct channel *ch = &p->channels.at[c];
        empty = ch->nsent == ch->nreceived && ch->nsent == freed[c];
    }
    free(freed);
    return empty;
}

static bool channels_have_one_depth(const struct program *p)
{
    for (size_t c = 1; c < p->channels.len; c++) {
        if (p->channels.at[c].depth != p->channels.at[0].depth)
            return false;
    }
    return true;
}

bool peal_order_composes(const struct program *p)
{
    bool one_lane = p->nthreads == p->nranks;
    if (!p->monotone || p->has_relaxed || p->has_peeked || p->pairwise || !one_lane)
        return false;
    return repeats_one_plan(p) && !looks_back(p->plans[0]) && cells_have_fixed_writers(p) &&
           channels_have_one_depth(p) && channels_are_left_empty(p);
}
