/* SPDX-License-Identifier: Apache-2.0 */
/* Extracts a part: the rank's lanes, ops and refs move to the front of their tables; tables with a
 * row per rank keep only that rank's. */
#include "plan/format/part.h"

#include "base/base.h"
#include "plan/format/effects.h"
#include "plan/format/hash.h"

#include <stdlib.h>
#include <string.h>

struct part_cutter {
    const struct peal_plan *from;
    struct peal_plan header;
    char *block; /* NULL while measuring */
    uint64_t end;
};

static void place(struct part_cutter *c, struct peal_table *table, const void *at, uint64_t count,
                  size_t element)
{
    c->end = peal_size_align(c->end, 16);
    *table = (struct peal_table){c->end, count};
    if (c->block && count)
        memcpy(c->block + c->end, at, count * element);
    c->end += count * element;
}

/* The rank's range in a table of rows per rank. */
static const void *own_row(const void *table, uint32_t index, uint64_t width, size_t element)
{
    return (const char *)table + (uint64_t)index * width * element;
}

static void place_all(struct part_cutter *c, uint32_t index)
{
    const struct peal_plan *p = c->from;
    struct peal_plan *h = &c->header;
    const struct peal_rank_part *part = &peal_plan_ranks(p)[index];
    const struct peal_lane *lane = peal_plan_lanes(p) + part->first_lane;
    const struct peal_lane *last = lane + part->lanes - 1;
    uint64_t nops = last->first_op + last->ops - lane->first_op;
    const struct peal_op *ops = peal_plan_ops(p) + lane->first_op;
    uint32_t first_ref = UINT32_MAX, end_ref = 0;
    for (uint64_t i = 0; i < nops; i++) {
        if (peal_op_is_sync(&ops[i]))
            continue;
        uint32_t n = peal_op_nrefs(&ops[i]);
        if (n && ops[i].mem.ref < first_ref)
            first_ref = ops[i].mem.ref;
        if (n && ops[i].mem.ref + n > end_ref)
            end_ref = ops[i].mem.ref + n;
    }
    if (first_ref > end_ref)
        first_ref = end_ref;
    c->end = sizeof *h;
    struct peal_rank_part own = {0, part->lanes};
    place(c, &h->ranks, &own, 1, sizeof own);
    place(c, &h->lanes, lane, part->lanes, sizeof *lane);
    place(c, &h->ops, ops, nops, sizeof *ops);
    place(c, &h->refs, peal_plan_refs(p) + first_ref, end_ref - first_ref, sizeof(struct peal_ref));
    place(c, &h->bufs, peal_plan_bufs(p), p->bufs.count, sizeof(struct peal_buf));
    place(c, &h->lens, own_row(peal_plan_lens(p), index, p->bufs.count, 8), p->bufs.count, 8);
    place(c, &h->signals, peal_plan_signals(p), p->signals.count, sizeof(struct peal_signal));
    uint64_t totals = (uint64_t)p->period * p->totals_stride;
    place(c, &h->totals, own_row(peal_plan_totals(p), index, totals, 8), totals, 8);
    place(c, &h->channels, peal_plan_channels(p), p->channels.count, sizeof(struct peal_channel));
    place(c, &h->phases, peal_plan_phases(p), p->phases.count, 8);
    place(c, &h->params, peal_plan_params(p), p->params.count, sizeof(struct peal_param));
    place(c, &h->values, peal_plan_values(p), p->values.count, 8);
    place(c, &h->formulas, peal_plan_formulas(p), p->formulas.count, sizeof(struct peal_formula));
    /* Promises are of all ranks together: a part has none. */
    place(c, &h->terms, NULL, 0, sizeof(struct peal_promise_term));
    place(c, &h->promises, NULL, 0, sizeof(struct peal_promise));
    place(c, &h->clauses, NULL, 0, sizeof(struct peal_clause));
    place(c, &h->positions, peal_plan_positions(p), p->positions.count,
          sizeof(struct peal_position));
    place(c, &h->strings, peal_plan_strings(p), p->strings.count, 1);
    h->block_len = peal_size_align(c->end, 16);
    if (!c->block)
        return;
    struct peal_lane *lanes = (struct peal_lane *)(c->block + h->lanes.offset);
    for (uint32_t i = part->lanes; i-- > 0;)
        lanes[i].first_op -= lane->first_op;
    struct peal_op *cut = (struct peal_op *)(c->block + h->ops.offset);
    for (uint64_t i = 0; i < nops; i++) {
        if (!peal_op_is_sync(&cut[i])) {
            if (cut[i].mem.ref >= first_ref)
                cut[i].mem.ref = cut[i].mem.ref - first_ref;
            else
                cut[i].mem.ref = 0;
        }
    }
    struct peal_param *params = (struct peal_param *)(c->block + h->params.offset);
    for (uint64_t i = 0; i < p->params.count; i++) {
        if (params[i].is_local)
            params[i].first += index * params[i].count;
    }
}

enum peal_status peal_plan_part(const struct peal_plan *plan, uint32_t rank, struct peal_plan **out)
{
    assert(rank - plan->rank_first < plan->rank_count);
    struct part_cutter c = {.from = plan, .header = *plan};
    c.header.rank_first = rank;
    c.header.rank_count = 1;
    place_all(&c, rank - plan->rank_first);
    c.block = calloc(1, c.header.block_len);
    if (!c.block)
        return PEAL_NO_MEMORY;
    place_all(&c, rank - plan->rank_first);
    memcpy(c.block, &c.header, sizeof c.header);
    *out = (struct peal_plan *)(void *)c.block;
    (*out)->hash = peal_plan_hash(*out);
    return PEAL_OK;
}
