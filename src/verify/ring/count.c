/* SPDX-License-Identifier: Apache-2.0 */
/* How often a sync is posted or taken before an op: per segment, turns times ops in a turn. */
#include "verify/ring/model.h"

static int64_t in_turn(const struct ring_model *m, const struct ring_segment *g, uint32_t end,
                       enum ring_kind kind, uint32_t sync)
{
    int64_t n = 0;
    for (uint32_t i = g->op; i < end; i++)
        n += m->ops[i].kind == kind && m->ops[i].sync == sync;
    return n;
}

/* The sum over all earlier segments of the sync's lane. */
static struct ring_affine in_segments(const struct ring_model *m, uint32_t end, enum ring_kind kind,
                                      uint32_t sync)
{
    struct ring_affine sum = ring_number(0);
    for (uint32_t i = 0; i < end; i++) {
        const struct ring_segment *g = &m->segments[i];
        if (g->lane != m->syncs[sync].lane)
            continue;
        int64_t n = in_turn(m, g, g->op + g->ops, kind, sync);
        sum = ring_add(sum, ring_add(g->end, g->first, -1), n);
    }
    return sum;
}

struct ring_affine peal_ring_before(const struct ring_model *m, uint32_t op, enum ring_kind kind,
                                    uint32_t sync)
{
    const struct ring_segment *g = &m->segments[m->ops[op].segment];
    struct ring_affine turns = ring_add((struct ring_affine){.turn = 1}, g->first, -1);
    struct ring_affine sum = in_segments(m, m->ops[op].segment, kind, sync);
    sum = ring_add(sum, turns, in_turn(m, g, g->op + g->ops, kind, sync));
    return ring_add(sum, ring_number(in_turn(m, g, op, kind, sync)), 1);
}

struct ring_affine peal_ring_total(const struct ring_model *m, enum ring_kind kind, uint32_t sync)
{
    return in_segments(m, m->nsegments, kind, sync);
}
