/* SPDX-License-Identifier: Apache-2.0 */
/* No mesh gets stuck, for any number of ranks, if the blocks of its text can be numbered.
 *
 * A block is a notify or wait outside loops, or all of those in one outermost loop. A plan shows
 * which blocks follow each other on some rank, and which block's notify each wait needs: the first
 * that reaches its threshold. If this graph has no cycle, number the blocks along it. Suppose ranks
 * are stuck, and take one at the least launch and block number: the notify that it waits for is in
 * an earlier launch, or in a block of a smaller number, which its writer has not passed; so the
 * writer is stuck at a smaller number. All cases of equal and different ranks occur in the given
 * plan, so the graph is that of every number of ranks.
 */
#include "verify/forall/mesh.h"

#include <stdlib.h>
#include <string.h>

struct graph {
    const struct mesh *m;
    const struct peal_plan *plan;
    bool *edge; /* [from * n + to] */
    uint32_t n;
};

/* The block of a sync op, or 0. */
static uint32_t block_of(const struct graph *g, const struct peal_op *op)
{
    if (op->pos == PEAL_NONE)
        return 0;
    const struct peal_position *at = &peal_plan_positions(g->plan)[op->pos];
    if (at->via != PEAL_NONE)
        return 0;
    for (uint32_t i = 0; i < g->m->nsyncs; i++) {
        const struct mesh_sync *s = &g->m->syncs[i];
        if (s->line == at->line && s->col == at->col)
            return s->block;
    }
    return 0;
}

/* The first notify of the cell, in program order of the rank that makes it, that reaches the
 * count. */
static const struct peal_op *find_notify(const struct graph *g, const struct peal_op *wait)
{
    const struct peal_op *op = peal_plan_ops(g->plan);
    for (uint64_t i = 0; i < g->plan->ops.count; i++) {
        if (op[i].kind == PEAL_OP_NOTIFY && op[i].sync.rank == wait->sync.rank &&
            op[i].sync.cell == wait->sync.cell && (int64_t)op[i].sync.after >= wait->sync.value)
            return &op[i];
    }
    return NULL;
}

static bool add_rank(struct graph *g, uint32_t rank)
{
    const struct peal_lane *lane = peal_plan_lane(g->plan, rank, 0);
    const struct peal_op *op = peal_plan_ops(g->plan) + lane->first_op;
    uint32_t before = 0;
    for (uint64_t i = 0; i < lane->ops; i++) {
        if (!peal_op_is_sync(&op[i]))
            continue;
        uint32_t block = block_of(g, &op[i]);
        if (!block)
            return false;
        if (before && before != block)
            g->edge[(size_t)before * g->n + block] = true;
        before = block;
        if (op[i].kind != PEAL_OP_WAIT || op[i].sync.back || op[i].sync.value <= 0)
            continue;
        const struct peal_op *notify = find_notify(g, &op[i]);
        uint32_t from = notify ? block_of(g, notify) : 0;
        if (!from || from == block)
            return false;
        g->edge[(size_t)from * g->n + block] = true;
    }
    return true;
}

/* Does a block that is not gone lead to b? */
static bool has_predecessor(const struct graph *g, const bool *gone, uint32_t b)
{
    for (uint32_t a = 0; a < g->n; a++) {
        if (!gone[a] && g->edge[(size_t)a * g->n + b])
            return true;
    }
    return false;
}

/* Removes blocks that no other leads to until none is left. */
static bool has_no_cycle(const struct graph *g)
{
    bool *gone = calloc(g->n, sizeof *gone);
    uint32_t left = g->n;
    if (!gone)
        return false;
    for (uint32_t before = left + 1; left < before;) {
        before = left;
        for (uint32_t b = 0; b < g->n; b++) {
            if (gone[b] || has_predecessor(g, gone, b))
                continue;
            gone[b] = true;
            left--;
        }
    }
    free(gone);
    return left == 0;
}

bool peal_mesh_waits_for_earlier(const struct mesh *m, const struct peal_plan *plan)
{
    struct graph g = {.m = m, .plan = plan, .n = m->blocks + 1};
    g.edge = calloc((size_t)g.n * g.n, sizeof *g.edge);
    bool earlier = false;
    if (!g.edge)
        return false;
    for (uint32_t r = 0; r < plan->nranks; r++) {
        if (peal_plan_lane_count(plan, r) != 1 || !add_rank(&g, r))
            goto free_edges;
    }
    earlier = has_no_cycle(&g);
free_edges:
    free(g.edge);
    return earlier;
}
