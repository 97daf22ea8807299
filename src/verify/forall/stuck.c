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
    uint32_t *block; /* [op] of notifies and waits */
    bool *edge;      /* [from * n + to] */
    uint32_t n;
};

/* The calls that an op was inlined by; 0: none. */
static uint64_t via_of(const struct peal_plan *plan, const struct peal_position *at)
{
    if (at->via == PEAL_NONE)
        return 0;
    const struct peal_position *call = &peal_plan_positions(plan)[at->via];
    return mesh_via(call->line, call->col, via_of(plan, call));
}

/* The block of a sync op that follows one of block `now` on its rank, or 0. Where the text has a
 * place several times (a loop with a fixed number of turns), a rank stays in its block if it can,
 * and otherwise goes on to the next one. */
static uint32_t block_of(const struct graph *g, const struct peal_op *op, uint32_t now)
{
    if (op->pos == PEAL_NONE)
        return 0;
    const struct peal_position *at = &peal_plan_positions(g->plan)[op->pos];
    uint64_t via = via_of(g->plan, at);
    uint32_t later = 0;
    for (uint32_t i = 0; i < g->m->nsyncs; i++) {
        const struct mesh_sync *s = &g->m->syncs[i];
        if (s->line != at->line || s->col != at->col || s->via != via)
            continue;
        if (s->block == now)
            return now;
        if (s->block > now && (!later || s->block < later))
            later = s->block;
    }
    return later;
}

/* False: an op is in no block. */
static bool name_blocks(struct graph *g, uint32_t rank)
{
    const struct peal_lane *lane = peal_plan_lane(g->plan, rank, 0);
    const struct peal_op *op = peal_plan_ops(g->plan);
    uint32_t now = 0;
    for (uint64_t i = lane->first_op; i < lane->first_op + lane->ops; i++) {
        if (!peal_op_is_sync(&op[i]))
            continue;
        now = block_of(g, &op[i], now);
        if (!now)
            return false;
        g->block[i] = now;
    }
    return true;
}

/* The first notify of the cell, in program order of the rank that makes it, that reaches the count:
 * its block, or 0. */
static uint32_t find_notify(const struct graph *g, const struct peal_op *wait)
{
    const struct peal_op *op = peal_plan_ops(g->plan);
    for (uint64_t i = 0; i < g->plan->ops.count; i++) {
        if (peal_op_is_notify(&op[i]) && op[i].sync.rank == wait->sync.rank &&
            op[i].sync.cell == wait->sync.cell && (int64_t)op[i].sync.after >= wait->sync.value)
            return g->block[i];
    }
    return 0;
}

static bool add_rank(struct graph *g, uint32_t rank)
{
    const struct peal_lane *lane = peal_plan_lane(g->plan, rank, 0);
    const struct peal_op *op = peal_plan_ops(g->plan);
    uint32_t before = 0;
    for (uint64_t i = lane->first_op; i < lane->first_op + lane->ops; i++) {
        if (!peal_op_is_sync(&op[i]))
            continue;
        uint32_t block = g->block[i];
        if (before && before != block)
            g->edge[(size_t)before * g->n + block] = true;
        before = block;
        if (!peal_op_is_wait(&op[i]) || op[i].sync.back || op[i].sync.value <= 0)
            continue;
        uint32_t from = find_notify(g, &op[i]);
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
    g.block = calloc(plan->ops.count + 1, sizeof *g.block);
    bool earlier = g.edge && g.block;
    for (uint32_t r = 0; r < plan->nranks && earlier; r++)
        earlier = peal_plan_lane_count(plan, r) == 1 && name_blocks(&g, r);
    for (uint32_t r = 0; r < plan->nranks && earlier; r++)
        earlier = add_rank(&g, r);
    earlier = earlier && has_no_cycle(&g);
    free(g.edge);
    free(g.block);
    return earlier;
}
