/* SPDX-License-Identifier: Apache-2.0 */
/* No mesh gets stuck, for any number of ranks, if the blocks of its text can be numbered.
 *
 * A block is a notify, wait or message outside loops, or all of those in one outermost loop. A plan
 * shows which blocks follow each other on some rank, and which block's notify each wait needs: the
 * first that reaches its threshold, and for a shared cell the last of each rank up to a block. A recv
 * needs the send of its message, a send the slot that is given back `depth` messages before it, if
 * that is in the same launch. If this graph has no cycle, number the blocks along it. Suppose ranks
 * are stuck, and take one at the least launch and block number: the notify that it waits for is in
 * an earlier launch, or in a block of a smaller number, which its writer has not passed; so the
 * writer is stuck at a smaller number. All cases of equal and different ranks occur in the given
 * plan, so the graph is that of every number of ranks.
 */
#include "verify/forall/mesh.h"

#include <stdlib.h>
#include <string.h>

struct graph {
    const struct mesh_view *v;
    bool *edge; /* [from * n + to] */
    uint32_t n;
};

/* --- blocks ---------------------------------------------------------------------------------- */

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
static uint32_t block_of(const struct mesh_view *g, const struct peal_op *op, uint32_t now)
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

/* How often a channel is used, by one launch. */
struct channel_uses {
    uint32_t sends, recvs, holds, frees;
};

/* Which send, recv or free of its channel is it, and is the op in a block? A slot is given back where
 * it was used last, after the block before. */
static bool name_op(struct mesh_view *v, uint64_t i, uint32_t *now, struct channel_uses *uses)
{
    const struct peal_op *op = &peal_plan_ops(v->plan)[i];
    if (!peal_op_is_sync(op) && !peal_op_has_channel(op))
        return true;
    if (peal_op_has_channel(op)) {
        struct channel_uses *c = &uses[op->mem.channel];
        uint32_t *count = &c->holds;
        if (peal_op_sends(op))
            count = &c->sends;
        else if (peal_op_is_free(op))
            count = &c->frees;
        else if (peal_op_is_recv(op))
            count = &c->recvs;
        v->nth[i] = ++*count;
    }
    if (!peal_op_is_free(op))
        *now = block_of(v, op, *now);
    v->block[i] = *now;
    return *now != 0;
}

/* Every message is received, in one way, and its slot given back. */
static bool is_emptied(const struct channel_uses *c)
{
    return c->sends == c->recvs + c->holds && c->frees == c->holds && (!c->recvs || !c->holds);
}

bool peal_mesh_view(struct mesh_view *v, const struct mesh *m, const struct peal_plan *plan,
                    const struct mesh_totals *totals)
{
    *v = (struct mesh_view){.m = m, .plan = plan, .totals = totals};
    v->block = calloc(plan->ops.count + 1, sizeof *v->block);
    v->nth = calloc(plan->ops.count + 1, sizeof *v->nth);
    struct channel_uses *uses = calloc(plan->channels.count + 1, sizeof *uses);
    bool good = v->block && v->nth && uses;
    for (uint32_t r = 0; r < plan->nranks && good; r++) {
        const struct peal_lane *lane = peal_plan_lane(plan, r, 0);
        uint32_t now = 0;
        good = peal_plan_lane_count(plan, r) == 1;
        for (uint64_t i = lane->first_op; i < lane->first_op + lane->ops && good; i++)
            good = name_op(v, i, &now, uses);
    }
    for (uint64_t i = 0; i < plan->channels.count && good; i++)
        good = is_emptied(&uses[i]);
    free(uses);
    return good;
}

void peal_mesh_release_view(struct mesh_view *v)
{
    free(v->block);
    free(v->nth);
}

/* --- what is waited for ---------------------------------------------------------------------- */

/* Does op k give what the wait i needs: the first notify that reaches its count; all that is added to
 * a shared cell up to a block? */
static bool gives_count(const struct mesh_view *v, uint64_t i, uint64_t k)
{
    const struct peal_op *wait = &peal_plan_ops(v->plan)[i], *op = &peal_plan_ops(v->plan)[k];
    if (!peal_op_is_notify(op) || op->sync.rank != wait->sync.rank ||
        op->sync.cell != wait->sync.cell)
        return false;
    if (mesh_is_shared(v, wait))
        return v->block[k] <= v->totals->until[v->block[i]];
    return (int64_t)op->sync.after >= wait->sync.value;
}

/* Does op k give what op i needs: a recv its message, a send a slot of this launch? */
static bool gives_message(const struct mesh_view *v, uint64_t i, uint64_t k)
{
    const struct peal_op *to = &peal_plan_ops(v->plan)[i], *op = &peal_plan_ops(v->plan)[k];
    if (!peal_op_has_channel(op) || op->mem.channel != to->mem.channel)
        return false;
    if (peal_op_receives(to))
        return peal_op_sends(op) && v->nth[k] == v->nth[i];
    uint32_t depth = peal_plan_channels(v->plan)[op->mem.channel].depth;
    return peal_op_sends(to) && peal_op_frees(op) && v->nth[k] + depth == v->nth[i];
}

uint32_t peal_mesh_need(const struct mesh_view *v, uint64_t i, uint32_t rank)
{
    const struct peal_op *op = &peal_plan_ops(v->plan)[i];
    const struct peal_lane *lane = peal_plan_lane(v->plan, rank, 0);
    bool waits = peal_op_is_wait(op) && !op->sync.back && op->sync.value > 0;
    uint32_t found = PEAL_NONE;
    if (!waits && !peal_op_has_channel(op))
        return PEAL_NONE;
    for (uint64_t k = lane->first_op; k < lane->first_op + lane->ops; k++) {
        if (!(waits ? gives_count(v, i, k) : gives_message(v, i, k)))
            continue;
        found = (uint32_t)k;
        if (!waits || !mesh_is_shared(v, op)) /* of a shared cell the last one */
            break;
    }
    return found;
}

/* --- the graph ------------------------------------------------------------------------------- */

/* Whatever op i needs is in another block. False: it is in the same, or there is none. */
static bool add_needs(struct graph *g, uint64_t i)
{
    const struct mesh_view *v = g->v;
    const struct peal_op *op = &peal_plan_ops(v->plan)[i];
    uint32_t block = v->block[i], found = 0;
    bool must = peal_op_is_wait(op) ? !op->sync.back && op->sync.value > 0 : peal_op_receives(op);
    for (uint32_t r = 0; r < v->plan->nranks; r++) {
        uint32_t k = peal_mesh_need(v, i, r);
        if (k == PEAL_NONE)
            continue;
        if (v->block[k] == block)
            return false;
        g->edge[(size_t)v->block[k] * g->n + block] = true;
        found++;
    }
    return found || !must;
}

static bool add_rank(struct graph *g, uint32_t rank)
{
    const struct mesh_view *v = g->v;
    const struct peal_lane *lane = peal_plan_lane(v->plan, rank, 0);
    uint32_t before = 0;
    for (uint64_t i = lane->first_op; i < lane->first_op + lane->ops; i++) {
        uint32_t block = v->block[i];
        if (!block)
            continue;
        if (before && before != block)
            g->edge[(size_t)before * g->n + block] = true;
        before = block;
        if (!add_needs(g, i))
            return false;
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

bool peal_mesh_waits_for_earlier(const struct mesh_view *v)
{
    struct graph g = {.v = v, .n = v->m->blocks + 1};
    g.edge = calloc((size_t)g.n * g.n, sizeof *g.edge);
    bool earlier = g.edge;
    for (uint32_t r = 0; r < v->plan->nranks && earlier; r++)
        earlier = add_rank(&g, r);
    earlier = earlier && has_no_cycle(&g);
    free(g.edge);
    return earlier;
}
