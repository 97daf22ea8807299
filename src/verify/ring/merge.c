/* SPDX-License-Identifier: Apache-2.0 */
/* Cells that follow each other, as one.
 *
 * If all notifies and waits of cell B come after all those of cell A in the text, and both go the
 * same way, they are one cell that goes on counting: a rank that waits for n of B then knows that
 * its neighbour has made all notifies of A and n of B. Kernels that are made of calls have such
 * cells, one for each call, and an order round the ring may begin in one and end in the other.
 */
#include "verify/ring/model.h"

/* The first and last op on a sync. False: there is none. */
static bool find_ends(const struct ring_model *m, uint32_t sync, uint32_t *first, uint32_t *last)
{
    bool any = false;
    for (uint32_t i = 0; i < m->nops; i++) {
        const struct ring_op *op = &m->ops[i];
        if ((op->kind != RING_POST && op->kind != RING_TAKE) || op->sync != sync)
            continue;
        if (!any)
            *first = i;
        *last = i;
        any = true;
    }
    return any;
}

static bool follows(const struct ring_model *m, uint32_t a, uint32_t b)
{
    const struct ring_sync *x = &m->syncs[a], *y = &m->syncs[b];
    uint32_t first = 0, end = 0, next = 0, last = 0;
    if (x->channel || y->channel || x->lane != y->lane || x->shift != y->shift ||
        !find_ends(m, a, &first, &end) || !find_ends(m, b, &next, &last) || end >= next)
        return false;
    /* In one loop, turns of both would alternate. */
    const struct ring_segment *g = &m->segments[m->ops[end].segment];
    struct ring_affine turns = ring_add(g->end, g->first, -1);
    return m->ops[end].segment < m->ops[next].segment || (ring_is_number(turns) && turns.one == 1);
}

static void join(struct ring_model *m, uint32_t a, uint32_t b)
{
    struct ring_affine before = peal_ring_total(m, RING_POST, a);
    for (uint32_t i = 0; i < m->nops; i++) {
        struct ring_op *op = &m->ops[i];
        if ((op->kind != RING_POST && op->kind != RING_TAKE) || op->sync != b)
            continue;
        op->sync = a;
        if (op->kind == RING_TAKE)
            op->threshold = ring_add(op->threshold, before, 1);
    }
}

void peal_ring_merge(struct ring_model *m)
{
    for (uint32_t a = 0; a < m->nsyncs; a++) {
        for (uint32_t b = 0; b < m->nsyncs; b++) {
            if (a != b && follows(m, a, b)) {
                join(m, a, b);
                b = UINT32_MAX; /* from the first one again */
            }
        }
    }
}
