/* SPDX-License-Identifier: Apache-2.0 */
/* See flush.h. Lanes are walked twice, to count and to write. Tables other than lanes and ops are
 * copied unchanged. */
#include "plan/format/flush.h"

#include "plan/format/effects.h"
#include "plan/format/hash.h"

#include <stdlib.h>
#include <string.h>

struct flusher {
    const struct peal_plan *plan;
    uint32_t rank;     /* of the lane being walked */
    bool *dirty;       /* [rank] this lane has put something there that may not have arrived */
    uint32_t *targets; /* dirty ones, in the order of first puts */
    uint32_t ntargets;
    struct peal_op *ops; /* where to write; NULL while counting */
    uint64_t len;        /* ops written so far */
};

static bool are_separate(const struct flusher *f, uint32_t a, uint32_t b)
{
    const int64_t *nodes = peal_plan_nodes(f->plan);
    if (a == b)
        return false;
    return !nodes || nodes[a] != nodes[b];
}

static void put_op(struct flusher *f, const struct peal_op *op)
{
    if (f->ops)
        f->ops[f->len] = *op;
    f->len++;
}

static void flush_to(struct flusher *f, uint32_t target, uint32_t pos)
{
    struct peal_op op = {.kind = PEAL_OP_FLUSH, .pos = pos, .mem = {.target = target}};
    put_op(f, &op);
    f->dirty[target] = false;
}

/* Flushes all dirty targets except one. */
static void flush_all_but(struct flusher *f, uint32_t kept, uint32_t pos)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < f->ntargets; i++) {
        uint32_t target = f->targets[i];
        if (!f->dirty[target])
            continue;
        if (target == kept)
            f->targets[left++] = target;
        else
            flush_to(f, target, pos);
    }
    f->ntargets = left;
}

static bool is_memory(const struct peal_ref *ref)
{
    return ref->buf < PEAL_BUF_SLOT;
}

static void note_put(struct flusher *f, uint32_t target)
{
    if (f->dirty[target])
        return;
    f->dirty[target] = true;
    f->targets[f->ntargets++] = target;
}

static void forget(struct flusher *f, uint32_t target)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < f->ntargets; i++) {
        if (f->targets[i] != target)
            f->targets[left++] = f->targets[i];
    }
    f->ntargets = left;
}

/* What the op reads of a rank that puts are under way to must have arrived there; what it writes
 * on another host is under way after it. */
static void walk_memory(struct flusher *f, const struct peal_op *op)
{
    const struct peal_ref *refs = peal_plan_refs(f->plan);
    struct peal_access access;
    for (uint32_t i = 0; peal_op_access(refs, op, i, &access); i++) {
        uint32_t target = access.ref->rank;
        if (access.effect == PEAL_EFFECT_READ && is_memory(access.ref) && f->dirty[target]) {
            flush_to(f, target, op->pos);
            forget(f, target);
        }
    }
    put_op(f, op);
    for (uint32_t i = 0; peal_op_access(refs, op, i, &access); i++) {
        if (access.effect != PEAL_EFFECT_READ && is_memory(access.ref) &&
            are_separate(f, f->rank, access.ref->rank))
            note_put(f, access.ref->rank);
    }
}

static void walk_op(struct flusher *f, const struct peal_op *op)
{
    struct peal_effects effects = peal_op_effects(f->plan, op);
    if (effects.order & PEAL_ORDER_RELEASE)
        flush_all_but(f, are_separate(f, f->rank, effects.peer) ? effects.peer : PEAL_NONE,
                      op->pos);
    /* Both ways through a `when` must leave nothing that has not arrived. */
    if (peal_op_is_when(op) || peal_op_is_end(op))
        flush_all_but(f, PEAL_NONE, op->pos);
    if (peal_op_is_flush(op)) {
        f->dirty[effects.peer] = false;
        forget(f, effects.peer);
    }
    walk_memory(f, op);
}

static void walk_lane(struct flusher *f, const struct peal_lane *lane, bool has_others)
{
    const struct peal_op *op = peal_plan_ops(f->plan) + lane->first_op;
    uint32_t last = PEAL_NONE;
    for (uint64_t i = 0; i < lane->ops; i++) {
        walk_op(f, &op[i]);
        last = op[i].pos;
    }
    if (has_others)
        flush_all_but(f, PEAL_NONE, last);
    for (uint32_t i = 0; i < f->ntargets; i++)
        f->dirty[f->targets[i]] = false;
    f->ntargets = 0;
}

/* All lanes; `lanes` gets their new places, or is NULL. */
static void walk_plan(struct flusher *f, struct peal_lane *lanes)
{
    const struct peal_plan *plan = f->plan;
    f->len = 0;
    for (uint32_t r = 0; r < plan->rank_count; r++) {
        const struct peal_rank_part *part = &peal_plan_ranks(plan)[r];
        f->rank = plan->rank_first + r;
        for (uint32_t l = part->first_lane; l < part->first_lane + part->lanes; l++) {
            uint64_t first = f->len;
            walk_lane(f, &peal_plan_lanes(plan)[l], part->lanes > 1);
            if (lanes) {
                lanes[l].first_op = first;
                lanes[l].ops = f->len - first;
            }
        }
    }
}

/* Everything after the ops moves by `more` bytes, a multiple of 16. */
static void move_tables(struct peal_plan *plan, uint64_t behind, uint64_t more)
{
    static_assert(offsetof(struct peal_plan, strings) + sizeof plan->strings == sizeof *plan,
                  "tables are the last members of the header");
    for (struct peal_table *table = &plan->ranks; table <= &plan->strings; table++) {
        if (table->offset >= behind)
            table->offset += more;
    }
    plan->block_len += more;
}

static struct peal_plan *with_flushes(struct flusher *f)
{
    const struct peal_plan *plan = f->plan;
    walk_plan(f, NULL);
    uint64_t end = plan->ops.offset + plan->ops.count * sizeof(struct peal_op);
    uint64_t more = (f->len - plan->ops.count) * sizeof(struct peal_op);
    char *block = calloc(1, plan->block_len + more);
    if (!block)
        return NULL;
    memcpy(block, plan, end);
    memcpy(block + end + more, (const char *)plan + end, plan->block_len - end);
    struct peal_plan *made = (struct peal_plan *)(void *)block;
    made->ops.count = f->len;
    move_tables(made, end, more);
    f->ops = (struct peal_op *)(void *)(block + made->ops.offset);
    walk_plan(f, (struct peal_lane *)(void *)(block + made->lanes.offset));
    made->hash = peal_plan_hash(made);
    return made;
}

enum peal_status peal_plan_flush(struct peal_plan **plan)
{
    struct flusher f = {.plan = *plan};
    struct peal_plan *made = NULL;
    f.dirty = calloc(f.plan->nranks, sizeof *f.dirty);
    f.targets = calloc(f.plan->nranks, sizeof *f.targets);
    if (f.dirty && f.targets)
        made = with_flushes(&f);
    free(f.dirty);
    free(f.targets);
    free(*plan);
    *plan = made;
    return made ? PEAL_OK : PEAL_NO_MEMORY;
}
