/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a rank's window:
 *
 *   cells, 64 bytes each: those of the plan, then two for each channel
 *   buffers of the plan, each aligned to 64 bytes: parameters, windows, private, tiles
 *   slots of channels
 *
 * It is the same on every rank, so that a peer's place follows from the start of its window.
 */
#include "export/pto/pto.h"

#include <stdlib.h>
#include <string.h>

int64_t peal_pto_total(const struct pto_window *w, uint32_t rank, uint32_t cell, uint32_t phase)
{
    return w->totals[((uint64_t)rank * w->plan->cells + cell) * w->plan->period + phase];
}

static const char *why_not_sync(const struct peal_plan *plan, const struct peal_op *op)
{
    uint32_t kind = peal_plan_signals(plan)[peal_op_signal(op)].kind;
    if (peal_op_fetches(op) || (op->flags & PEAL_OP_HAS_REG))
        return "cells cannot be read without waiting";
    if (peal_op_is_atomic(op))
        return "cells cannot be read and changed in one step";
    if (kind > PEAL_SIGNAL_SHARED)
        return "a cell cannot keep its value between launches, since waits count on from launch to "
               "launch";
    if (peal_op_is_wait(op) && (op->flags & PEAL_OP_EQUAL))
        return "a wait is for at least a value, not for exactly one";
    if (peal_op_is_notify(op) && kind == PEAL_SIGNAL_SHARED &&
        ((op->flags & PEAL_OP_SET) || op->sync.value < 0))
        return "a cell can only be added to";
    return NULL;
}

/* What a notify adds. One-writer cells carry the resulting count, whether it was added or set. */
static bool add_notify(struct pto_window *w, uint32_t rank, const struct peal_op *op,
                       struct peal_diags *diags)
{
    const struct peal_plan *plan = w->plan;
    bool one = peal_plan_signals(plan)[peal_op_signal(op)].kind == PEAL_SIGNAL_ONE_WRITER;
    for (uint32_t phase = 0; phase < plan->period; phase++) {
        uint32_t cell = peal_op_cell(plan, op, phase);
        int64_t *total =
            &w->totals[((uint64_t)op->sync.rank * plan->cells + cell) * plan->period + phase];
        int64_t added;
        if (one)
            added = (int64_t)op->sync.after - *total;
        else
            added = op->sync.value;
        if (added < 0 || added > INT32_MAX || *total > INT32_MAX - added) {
            peal_export_refuse(plan, rank, op, diags, "a cell is a 32-bit counter that only rises");
            return false;
        }
        *total += added;
    }
    return true;
}

static bool see_op(struct pto_window *w, uint32_t rank, const struct peal_op *op,
                   struct peal_diags *diags)
{
    if (!peal_op_is_sync(op))
        return true;
    const char *why = why_not_sync(w->plan, op);
    if (why) {
        peal_export_refuse(w->plan, rank, op, diags, why);
        return false;
    }
    return !peal_op_is_notify(op) || add_notify(w, rank, op, diags);
}

static bool see_ops(struct pto_window *w, struct peal_diags *diags)
{
    const struct peal_plan *plan = w->plan;
    for (uint32_t r = 0; r < plan->nranks; r++) {
        uint32_t lanes = peal_plan_lane_count(plan, r);
        if (lanes > w->blocks)
            w->blocks = lanes;
        for (uint32_t l = 0; l < lanes; l++) {
            const struct peal_lane *lane = peal_plan_lane(plan, r, l);
            for (uint64_t i = 0; i < lane->ops; i++) {
                if (!see_op(w, r, &peal_plan_ops(plan)[lane->first_op + i], diags))
                    return false;
            }
        }
    }
    return true;
}

static uint64_t round_up(uint64_t elements, uint64_t size)
{
    uint64_t line = PTO_LINE / size;
    return (elements + line - 1) / line * line;
}

static void place_buffers(struct pto_window *w, uint64_t size)
{
    const struct peal_plan *plan = w->plan;
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        uint64_t len = 0;
        for (uint32_t r = 0; r < plan->nranks; r++)
            len = peal_size_max(len, peal_plan_len(plan, r, b));
        w->start[b] = w->elements;
        w->elements = round_up(w->elements + len, size);
    }
}

static void place_channels(struct pto_window *w, uint64_t size)
{
    const struct peal_plan *plan = w->plan;
    for (uint32_t c = 0; c < plan->channels.count; c++) {
        const struct peal_channel *channel = &peal_plan_channels(plan)[c];
        uint64_t slot = round_up((channel->slot_bytes + size - 1) / size, size);
        w->channels[c] = (struct pto_channel){
            .full = w->cells, .free = w->cells + 1, .slots = w->elements, .slot = slot};
        w->cells += 2;
        w->elements += slot * channel->depth;
    }
}

/* Counts are 32 bits wide and continue from launch to launch. */
static int64_t count_launches(const struct pto_window *w)
{
    const struct peal_plan *plan = w->plan;
    int64_t maximum = 1;
    for (uint64_t i = 0; i < (uint64_t)plan->nranks * plan->cells; i++) {
        int64_t sum = 0;
        for (uint32_t phase = 0; phase < plan->period; phase++)
            sum += w->totals[i * plan->period + phase];
        if (sum > maximum)
            maximum = sum;
    }
    for (uint32_t c = 0; c < plan->channels.count; c++) {
        int64_t sends = (int64_t)peal_plan_channels(plan)[c].sends * plan->period;
        if (sends > maximum)
            maximum = sends;
    }
    return (INT32_MAX / maximum - 1) * (int64_t)plan->period;
}

static const char *why_not(const struct peal_plan *plan)
{
    if (!peal_pto_type((enum peal_dtype)plan->dtype))
        return "the engine's vector units compute with f32, f16, i32 and i16 only";
    if (plan->ops.count > PTO_MAX_OPS)
        return "the plan has more ops than one kernel should";
    for (uint32_t c = 0; c < plan->channels.count; c++) {
        const struct peal_channel *channel = &peal_plan_channels(plan)[c];
        if (channel->sends != channel->recvs)
            return "a channel's sends and receives differ";
    }
    return NULL;
}

bool peal_pto_window_init(const struct peal_plan *plan, struct peal_diags *diags,
                          struct pto_window *out)
{
    *out = (struct pto_window){.plan = plan, .cells = plan->cells};
    const char *why = why_not(plan);
    if (why) {
        peal_diag_error(diags, (struct peal_pos){0}, "%s", why);
        return false;
    }
    uint64_t totals = (uint64_t)plan->nranks * plan->cells * plan->period;
    out->start = calloc(plan->bufs.count + 1, sizeof *out->start);
    out->channels = calloc(plan->channels.count + 1, sizeof *out->channels);
    out->totals = calloc(totals + 1, sizeof *out->totals);
    if (!out->start || !out->channels || !out->totals) {
        peal_diag_error(diags, (struct peal_pos){0}, "out of memory");
        return false;
    }
    if (!see_ops(out, diags))
        return false;
    if (out->blocks > PTO_MAX_BLOCKS) {
        peal_diag_error(diags, (struct peal_pos){0},
                        "a rank has %u lanes; at most %d become blocks", out->blocks,
                        PTO_MAX_BLOCKS);
        return false;
    }
    uint64_t size = peal_dtype_size((enum peal_dtype)plan->dtype);
    place_buffers(out, size);
    place_channels(out, size);
    out->launches = count_launches(out);
    if (out->launches <= 0)
        peal_diag_error(diags, (struct peal_pos){0},
                        "cells are 32-bit counters: not even one "
                        "launch fits");
    return out->launches > 0;
}

void peal_pto_window_release(struct pto_window *window)
{
    free(window->start);
    free(window->channels);
    free(window->totals);
}

static void put_identifier(const char *text, struct peal_text *out)
{
    for (; *text; text++) {
        bool word = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                    (*text >= '0' && *text <= '9');
        peal_text_add(out, word ? text : "_", 1);
    }
}

void peal_pto_buf_name(const struct peal_plan *plan, uint32_t buf, struct peal_text *out)
{
    peal_text_printf(out, "b%u_", buf);
    put_identifier(peal_plan_string(plan, peal_plan_bufs(plan)[buf].name), out);
}

const char *peal_pto_type(enum peal_dtype dtype)
{
    switch ((int)dtype) {
    case PEAL_F32:
        return "float";
    case PEAL_F16:
        return "half";
    case PEAL_I32:
        return "int32_t";
    case PEAL_I16:
        return "int16_t";
    default:
        return NULL;
    }
}
