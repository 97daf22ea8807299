/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of recv_slot are freed after their last use.
 *
 *   recv_slot c          recv_slot c
 *   y = add(y, slot)  ->  y = add(y, slot)
 *   z = x                free c
 *                        z = x
 *
 * A channel's slots are freed in order, so a slot waits while an older one is in use. A slot that
 * is never used is freed at once.
 */
#include "plan/assemble/lane.h"

#include "base/base.h"

#include <stdlib.h>

/* A channel from which the lane receives slots. A plan may have a million channels, a lane a
 * thousand of them. */
struct used {
    uint32_t channel;
    uint32_t received; /* messages, in this launch */
    uint32_t freed;
};

struct slot {
    uint32_t channel;
    uint32_t message; /* its number on the channel */
    size_t receipt;   /* op index */
    size_t last_use;
    bool freed; /* freed by the author's text */
};

struct slots {
    PEAL_VEC(struct slot) list; /* in order of receipt */
    PEAL_VEC(struct used) used;
    struct peal_index index; /* of used, by channel */
};

static uint64_t hash_channel(uint32_t channel)
{
    return peal_hash_u64(channel, 7);
}

static uint64_t hash_used(const void *slots, uint32_t row)
{
    const struct slots *s = slots;
    return hash_channel(s->used.at[row].channel);
}

/* NULL: out of memory. Valid until the next call. */
static struct used *find_used(struct slots *s, uint32_t channel)
{
    if (!peal_index_reserve(&s->index, hash_used, s))
        return NULL;
    size_t at = peal_index_begin(&s->index, hash_channel(channel));
    for (; peal_index_is_used(&s->index, at); at = peal_index_next(&s->index, at)) {
        struct used *used = &s->used.at[peal_index_row(&s->index, at)];
        if (used->channel == channel)
            return used;
    }
    if (!peal_vec_push(&s->used, ((struct used){.channel = channel})))
        return NULL;
    peal_index_put(&s->index, at, (uint32_t)s->used.len - 1);
    return &s->used.at[s->used.len - 1];
}

static struct slot *find_slot(struct slots *s, uint32_t channel, uint32_t message)
{
    for (size_t i = s->list.len; i-- > 0;) {
        if (s->list.at[i].channel == channel && s->list.at[i].message == message)
            return &s->list.at[i];
    }
    return NULL;
}

static uint32_t ref_count(const struct peal_op *op)
{
    if (peal_op_is_sync(op))
        return 0;
    return peal_op_nrefs(op);
}

/* First pass: finds every slot, its last use, and whether the author frees it. */
static bool find_slots(struct slots *s, const struct peal_lane_ops *lane)
{
    for (size_t i = 0; i < lane->ops.len; i++) {
        const struct peal_op *op = &lane->ops.at[i];
        bool receives = peal_op_holds(op);
        if (receives || peal_op_is_free(op)) {
            struct used *used = find_used(s, op->mem.channel);
            if (!used)
                return false;
            struct slot slot = {op->mem.channel, used->received, i, i, false};
            if (receives && !peal_vec_push(&s->list, slot))
                return false;
            used->received += receives;
            struct slot *freed = receives ? NULL : find_slot(s, op->mem.channel, used->freed++);
            if (freed)
                freed->freed = true;
        }
        for (uint32_t k = 0; k < ref_count(op); k++) {
            const struct peal_ref *ref = &lane->refs.at[op->mem.ref + k];
            struct slot *slot = NULL;
            if (ref->buf == PEAL_BUF_SLOT)
                slot = find_slot(s, ref->row, ref->rank);
            if (slot)
                slot->last_use = i;
        }
    }
    for (size_t i = 0; i < s->used.len; i++)
        s->used.at[i].freed = 0;
    return true;
}

/* Frees what is due after op i: a channel's oldest slots whose last use has passed. */
static bool free_due(struct slots *s, size_t *first, size_t i, struct peal_lane_ops *out)
{
    for (size_t k = *first; k < s->list.len && s->list.at[k].receipt <= i; k++) {
        struct slot *slot = &s->list.at[k];
        if (slot->freed) {
            *first += k == *first;
            continue;
        }
        if (slot->last_use > i)
            continue;
        struct used *used = find_used(s, slot->channel);
        if (!used)
            return false;
        if (slot->message != used->freed) /* an older one is in use */
            continue;
        struct peal_op op = {.kind = PEAL_OP_FREE, .pos = out->ops.at[out->ops.len - 1].pos};
        op.mem.ref = (uint32_t)out->refs.len;
        op.mem.channel = slot->channel;
        if (!peal_vec_push(&out->ops, op))
            return false;
        slot->freed = true;
        used->freed++;
        *first += k == *first;
    }
    return true;
}

static bool rewrite(struct slots *s, struct peal_lane_ops *lane, struct peal_lane_ops *out)
{
    size_t first = 0; /* slots before this one are freed */
    for (size_t i = 0; i < lane->ops.len; i++) {
        struct peal_op op = lane->ops.at[i];
        struct used *used;
        for (uint32_t k = 0; k < ref_count(&op); k++) {
            struct peal_ref *ref = &lane->refs.at[op.mem.ref + k];
            if (ref->buf != PEAL_BUF_SLOT)
                continue;
            used = find_used(s, ref->row);
            if (!used)
                return false;
            ref->rank -= used->freed;
        }
        if (peal_op_is_free(&op)) {
            used = find_used(s, op.mem.channel);
            if (!used)
                return false;
            used->freed++;
        }
        if (!peal_vec_push(&out->ops, op) || !free_due(s, &first, i, out))
            return false;
    }
    return true;
}

static bool receives_in_slots(const struct peal_lane_ops *lane)
{
    for (size_t i = 0; i < lane->ops.len; i++) {
        if (peal_op_holds(&lane->ops.at[i]))
            return true;
    }
    return false;
}

bool peal_lane_insert_frees(struct peal_lane_ops *lane, struct peal_lane_ops *scratch)
{
    if (!receives_in_slots(lane))
        return true;
    struct slots s = {0};
    scratch->ops.len = 0;
    bool ok = find_slots(&s, lane) && rewrite(&s, lane, scratch);
    if (ok) { /* refs stay where they are; only the op list is new */
        struct peal_op *at = lane->ops.at;
        size_t cap = lane->ops.cap;
        lane->ops.at = scratch->ops.at;
        lane->ops.len = scratch->ops.len;
        lane->ops.cap = scratch->ops.cap;
        scratch->ops.at = at;
        scratch->ops.cap = cap;
        scratch->ops.len = 0;
    }
    peal_vec_release(&s.list);
    peal_vec_release(&s.used);
    peal_index_release(&s.index);
    return ok;
}

void peal_lane_ops_release(struct peal_lane_ops *lane)
{
    peal_vec_release(&lane->ops);
    peal_vec_release(&lane->refs);
}
