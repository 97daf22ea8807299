/* SPDX-License-Identifier: Apache-2.0 */
/* See parts.h. An instantiation whose lanes go to a visitor instead of the assembler, which still
 * collects the tables. */
#include "plan/make/parts.h"

#include "plan/assemble/assemble_internal.h"
#include "plan/make/maker.h"

#include <stdlib.h>

struct peal_parts {
    struct instantiation t;
    struct peal_bind bind;
    PEAL_VEC(uint32_t) lanes; /* of each rank that was walked; 0 = not yet */
    uint32_t lanes_seen;      /* of the rank being walked */
    bool any;                 /* some rank was walked */
    peal_part_visit *visit;
    void *visit_context;
};

static bool has_signals(const struct peal_kernel *kernel)
{
    for (const struct peal_symbol *s = kernel->symbols; s; s = s->next) {
        if (s->kind == PEAL_SYMBOL_SIGNAL)
            return true;
    }
    return false;
}

static bool on_lane(void *context, const struct peal_part_lane *lane)
{
    struct peal_parts *parts = context;
    parts->lanes_seen++;
    return parts->visit(parts->visit_context, lane);
}

enum peal_status peal_parts_open(const struct peal_kernel *kernel, const struct peal_bind *bind,
                                 struct peal_diags *diags, struct peal_parts **out)
{
    if (!peal_inst_check_bind(bind, kernel, diags))
        return PEAL_INVALID;
    if (has_signals(kernel) || !peal_inst_is_alone(kernel)) {
        peal_diag_error(diags, kernel->pos,
                        "the plan of '%s' can only be made as a whole: its ranks meet in signals",
                        kernel->name);
        return PEAL_UNSUPPORTED;
    }
    struct peal_parts *parts = calloc(1, sizeof *parts);
    if (!parts)
        return PEAL_NO_MEMORY;
    parts->bind = *bind;
    parts->bind.rank = PEAL_NONE;
    parts->t = (struct instantiation){.kernel = kernel,
                                      .bind = &parts->bind,
                                      .diags = diags,
                                      .on_lane = on_lane,
                                      .on_lane_context = parts};
    bool ok = peal_inst_acquire(&parts->t) && peal_vec_reserve(&parts->lanes, bind->nranks);
    if (!ok) {
        peal_parts_free(parts);
        return PEAL_NO_MEMORY;
    }
    /* Ops are not kept, so there may be more of them. */
    if (bind->max_ops)
        parts->t.max_ops = bind->max_ops;
    else
        parts->t.max_ops = peal_instantiate_max_streamed(bind->nranks);
    parts->t.max_steps = parts->t.max_ops * 4;
    for (uint32_t i = 0; i < bind->nranks; i++)
        parts->lanes.at[parts->lanes.len++] = 0;
    *out = parts;
    return PEAL_OK;
}

void peal_parts_free(struct peal_parts *parts)
{
    if (!parts)
        return;
    peal_assembler_free(parts->t.a);
    peal_inst_release(&parts->t);
    peal_vec_release(&parts->lanes);
    free(parts);
}

enum peal_status peal_parts_walk(struct peal_parts *parts, uint32_t rank, peal_part_visit *visit,
                                 void *context)
{
    struct peal_assembler *a = parts->t.a;
    assert(rank < parts->bind.nranks && parts->lanes.at[rank] == 0);
    parts->visit = visit;
    parts->visit_context = context;
    parts->lanes_seen = 0;
    parts->t.rank = rank;
    /* To the assembler, this is the only rank of its plan. */
    a->ranks.len = a->lanes.len = 0;
    a->header.rank_first = rank;
    a->header.rank_count = 1;
    peal_inst_walk_rank(&parts->t, !parts->any);
    parts->any = true;
    parts->lanes.at[rank] = parts->lanes_seen;
    if (parts->t.status == PEAL_OK && a->status != PEAL_OK) {
        parts->t.status = a->status;
        peal_diag_error(parts->t.diags, (struct peal_pos){0}, "%s", a->why ? a->why : "no memory");
    }
    return parts->t.status;
}

const struct peal_buf *peal_parts_bufs(const struct peal_parts *parts, uint32_t *count)
{
    *count = (uint32_t)parts->t.a->bufs.len;
    return parts->t.a->bufs.at;
}

uint32_t peal_parts_channel_count(const struct peal_parts *parts)
{
    return (uint32_t)parts->t.a->channels.len;
}

const char *peal_parts_position(const struct peal_parts *parts, const struct peal_op *op,
                                uint32_t *line, uint32_t *col)
{
    const struct peal_assembler *a = parts->t.a;
    if (op->pos >= a->positions.len)
        return NULL;
    const struct peal_position *pos = &a->positions.at[op->pos];
    *line = pos->line;
    *col = pos->col;
    return a->strings.at + pos->source;
}

static void join_channel(struct peal_channel *to, const struct peal_channel *from)
{
    if (from->sender_lane != UINT16_MAX)
        to->sender_lane = from->sender_lane;
    if (from->receiver_lane != UINT16_MAX)
        to->receiver_lane = from->receiver_lane;
    to->sends += from->sends;
    to->recvs += from->recvs;
}

enum peal_status peal_parts_join(struct peal_parts *parts, const struct peal_parts *other,
                                 uint32_t *map)
{
    struct peal_assembler *a = parts->t.a;
    const struct peal_assembler *b = other->t.a;
    for (size_t i = 0; i < b->channels.len && a->status == PEAL_OK; i++) {
        const struct peal_channel *c = &b->channels.at[i];
        map[i] =
            peal_assembler_channel(a, b->strings.at + c->name, c->sender, c->port, c->receiver);
        if (a->status == PEAL_OK)
            join_channel(&a->channels.at[map[i]], c);
    }
    for (size_t i = 0; i < b->own_lens.len; i++) {
        const struct own_len *own = &b->own_lens.at[i];
        peal_assembler_len(a, own->rank, own->buf, own->len);
    }
    for (uint32_t i = 0; i < peal_size_min(a->bufs.len, b->bufs.len); i++)
        peal_assembler_at_least(a, i, b->lens.at[i]);
    for (uint32_t i = 0; i < parts->bind.nranks; i++)
        parts->lanes.at[i] += other->lanes.at[i];
    return a->status;
}

enum peal_status peal_parts_end(struct peal_parts *parts, struct peal_plan **frame)
{
    struct peal_assembler *a = parts->t.a;
    struct peal_diags *diags = parts->t.diags;
    enum peal_status status = parts->t.status;
    a->ranks.len = a->lanes.len = 0;
    a->header.rank_first = 0;
    a->header.rank_count = parts->bind.nranks;
    for (uint32_t i = 0; i < parts->bind.nranks && status == PEAL_OK; i++) {
        assert(parts->lanes.at[i] > 0 && "every rank has been walked");
        peal_assembler_rank_begin(a, i);
        for (uint32_t lane = 1; lane < parts->lanes.at[i]; lane++)
            peal_assembler_lane_begin(a);
    }
    if (status == PEAL_OK) {
        parts->t.a = NULL;
        status = peal_assembler_finish(a, diags, frame);
    }
    peal_parts_free(parts);
    return status;
}
