/* SPDX-License-Identifier: Apache-2.0 */
/* See resize.h. */
#include "plan/format/resize.h"

#include "base/base.h"
#include "plan/format/effects.h"
#include "plan/format/hash.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 }; /* of scratch, as in finish.c */

enum peal_dtype peal_template_dtype(enum peal_dtype dtype)
{
    if (peal_dtype_is_narrow(dtype))
        return dtype;
    return PEAL_F32;
}

enum peal_reduction peal_template_reduce(enum peal_reduction reduce)
{
    if (peal_reduce_is_user(reduce))
        return reduce; /* its formula is part of the plan */
    return reduce == PEAL_AVG ? PEAL_AVG : PEAL_SUM;
}

static bool is_multiple(uint64_t value)
{
    return value % PEAL_TEMPLATE_COUNT == 0;
}

bool peal_plan_is_template(const struct peal_plan *plan)
{
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        const struct peal_op *op = &peal_plan_ops(plan)[i];
        if (peal_op_is_sync(op))
            continue;
        if (!is_multiple(op->mem.count) || peal_op_has_matrices(op) || peal_op_is_when(op) ||
            peal_op_is_number(op))
            return false;
    }
    for (uint64_t i = 0; i < plan->refs.count; i++) {
        const struct peal_ref *ref = &peal_plan_refs(plan)[i];
        if (ref->buf == PEAL_BUF_CONST)
            continue;
        for (uint32_t phase = 0; phase < plan->period; phase++) {
            if (!is_multiple(peal_ref_offset(plan, ref, phase)))
                return false;
        }
    }
    for (uint64_t i = 0; i < plan->bufs.count; i++) {
        if (!is_multiple(peal_plan_bufs(plan)[i].cols))
            return false;
    }
    for (uint64_t i = 0; i < plan->lens.count; i++) {
        if (!is_multiple(peal_plan_lens(plan)[i]))
            return false;
    }
    for (uint64_t i = 0; i < plan->params.count; i++) {
        if (peal_plan_params(plan)[i].is_local)
            return false;
    }
    return plan->clauses.count == 0; /* which depend on the count in their own way */
}

struct resizing {
    const struct peal_plan *from;
    const struct peal_plan_size *size;
    uint64_t was, is; /* bytes of an element of T */
};

static uint64_t elements(const struct resizing *r, uint64_t value)
{
    return value / PEAL_TEMPLATE_CAPACITY * r->size->capacity +
           value % PEAL_TEMPLATE_CAPACITY / PEAL_TEMPLATE_COUNT * r->size->count;
}

static uint64_t bytes(const struct resizing *r, uint64_t value, bool of_type)
{
    if (of_type)
        return elements(r, value / r->was) * r->is;
    return elements(r, value);
}

static uint8_t type_of(const struct resizing *r, uint8_t dtype)
{
    if (dtype == r->from->dtype)
        return (uint8_t)r->size->dtype;
    return dtype;
}

/* A table of the new block, to be written. */
#define TABLE(type, plan, table) ((type *)((char *)(plan) + (plan)->table.offset))

static void resize_ops(const struct resizing *r, struct peal_plan *plan)
{
    struct peal_op *ops = TABLE(struct peal_op, plan, ops);
    bool reduces = plan->reduce != PEAL_NONE;
    uint8_t was = 0;
    if (reduces)
        was = (uint8_t)peal_reduce_fn((enum peal_reduction)plan->reduce);
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        if (peal_op_is_sync(&ops[i]))
            continue;
        ops[i].mem.count = elements(r, ops[i].mem.count);
        ops[i].dtype = type_of(r, ops[i].dtype);
        if (reduces && ops[i].fn == was && (peal_op_applies(&ops[i])))
            ops[i].fn = (uint8_t)peal_reduce_fn(r->size->reduce);
    }
}

static void resize_refs(const struct resizing *r, struct peal_plan *plan)
{
    struct peal_ref *refs = TABLE(struct peal_ref, plan, refs);
    const uint64_t *old = peal_plan_phases(r->from);
    uint64_t *phases = TABLE(uint64_t, plan, phases);
    for (uint64_t i = 0; i < plan->refs.count; i++) {
        struct peal_ref *ref = &refs[i];
        uint8_t dtype;
        if (ref->buf < plan->bufs.count)
            dtype = peal_plan_bufs(r->from)[ref->buf].dtype;
        else
            dtype = ref->dtype;
        ref->dtype = type_of(r, ref->dtype);
        if (ref->buf == PEAL_BUF_CONST)
            continue;
        bool of_type = dtype == r->from->dtype;
        ref->offset = bytes(r, ref->offset, of_type);
        if (ref->phases == PEAL_NONE)
            continue;
        for (uint32_t k = 0; k < plan->period; k++)
            phases[ref->phases + k] = bytes(r, old[ref->phases + k], of_type);
    }
}

/* Lengths, rows, and the layout of scratch, as in finish.c. */
static void resize_bufs(const struct resizing *r, struct peal_plan *plan)
{
    struct peal_buf *bufs = TABLE(struct peal_buf, plan, bufs);
    uint64_t *lens = TABLE(uint64_t, plan, lens);
    for (uint64_t i = 0; i < plan->lens.count; i++)
        lens[i] = elements(r, lens[i]);
    plan->window_bytes = plan->private_bytes = 0;
    for (uint64_t b = 0; b < plan->bufs.count; b++) {
        bufs[b].dtype = type_of(r, bufs[b].dtype);
        bufs[b].cols = (uint32_t)elements(r, bufs[b].cols);
        if (bufs[b].kind == PEAL_BUF_PARAM)
            continue;
        uint64_t longest = 0, *end = bufs[b].kind == PEAL_BUF_WINDOW ? &plan->window_bytes
                                                                     : &plan->private_bytes;
        for (uint64_t i = b; i < plan->lens.count; i += plan->bufs.count) {
            if (lens[i] > longest)
                longest = lens[i];
        }
        bufs[b].offset = *end;
        *end = peal_size_align(*end + longest * peal_dtype_size((enum peal_dtype)bufs[b].dtype),
                               ALIGNMENT);
    }
}

void peal_plan_resize_into(const struct peal_plan *template, const struct peal_plan_size *size,
                           struct peal_plan *out)
{
    assert(peal_template_dtype(size->dtype) == (enum peal_dtype) template->dtype);
    memcpy(out, template, template->block_len);
    struct resizing r = {.from = template,
                         .size = size,
                         .was = peal_dtype_size((enum peal_dtype) template->dtype),
                         .is = peal_dtype_size(size->dtype)};
    resize_ops(&r, out);
    resize_refs(&r, out);
    resize_bufs(&r, out);
    struct peal_channel *channels = TABLE(struct peal_channel, out, channels);
    for (uint64_t i = 0; i < out->channels.count; i++) {
        channels[i].depth = size->channel_depth;
        channels[i].slot_bytes = size->slot_bytes;
    }
    int64_t *values = TABLE(int64_t, out, values);
    for (uint64_t i = 0; i < out->values.count; i++) {
        if (values[i] >= PEAL_TEMPLATE_COUNT)
            values[i] = (int64_t)elements(&r, (uint64_t)values[i]);
    }
    out->dtype = size->dtype;
    if (out->reduce != PEAL_NONE)
        out->reduce = size->reduce;
    out->hash = 0;
}

struct peal_plan *peal_plan_resize(const struct peal_plan *template,
                                   const struct peal_plan_size *size)
{
    struct peal_plan *plan = malloc(template->block_len);
    if (!plan)
        return NULL;
    peal_plan_resize_into(template, size, plan);
    plan->hash = peal_plan_hash(plan);
    return plan;
}
