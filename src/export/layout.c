/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of a plan as input, output and scratch of an engine; see writer.h. */
#include "export/writer.h"

#include <inttypes.h>
#include <stdlib.h>

void peal_export_refuse(const struct peal_plan *plan, uint32_t rank, const struct peal_op *op,
                        struct peal_diags *diags, const char *why)
{
    struct peal_text text = {0};
    peal_plan_dump_op(plan, rank, op, &text);
    if (op->pos != PEAL_NONE) {
        const struct peal_position *at = &peal_plan_positions(plan)[op->pos];
        peal_diag_error(diags, (struct peal_pos){0}, "%s:%u:%u: '%s' of rank %u: %s",
                        peal_plan_string(plan, at->source), at->line, at->col, peal_text_get(&text),
                        rank, why);
    } else {
        peal_diag_error(diags, (struct peal_pos){0}, "'%s' of rank %u: %s", peal_text_get(&text),
                        rank, why);
    }
    peal_text_release(&text);
}

void peal_export_copy_buffers(const struct peal_plan *plan, struct peal_assembler *to)
{
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        struct peal_buf_spec spec = {
            .name = peal_plan_string(plan, buf->name),
            .kind = (enum peal_buf_kind)buf->kind,
            .dir = (enum peal_buf_dir)buf->dir,
            .dtype = (enum peal_dtype)buf->dtype,
            .flags = buf->flags & PEAL_BUF_SYMMETRIC,
            .param = buf->param,
            .alias = buf->alias,
            .cols = buf->cols,
            .lane = buf->lane,
        };
        (void)peal_assembler_buf(to, &spec);
        for (uint32_t r = 0; r < plan->nranks; r++)
            peal_assembler_len(to, r, b, peal_plan_len(plan, r, b));
    }
}

static const char *why_not_ref(const struct peal_plan *plan, const struct peal_op *op,
                               const struct peal_ref *ref)
{
    if (ref->buf == PEAL_BUF_CONST)
        return "constants cannot be operands";
    if (ref->dtype != plan->dtype)
        return "all operands have one type there";
    if (ref->phases != PEAL_NONE)
        return "places cannot depend on the launch";
    if (op->mem.rows > 1)
        return "operands have one dimension";
    return NULL;
}

/* Rows of parameters have no gaps there. */
static uint64_t first_element(const struct peal_plan *plan, const struct peal_ref *ref)
{
    uint64_t first = ref->offset / peal_dtype_size((enum peal_dtype)plan->dtype);
    if (ref->buf < plan->bufs.count)
        first += (uint64_t)ref->row * peal_plan_bufs(plan)[ref->buf].cols;
    return first;
}

static bool see_op(struct peal_export_layout *l, uint32_t rank, const struct peal_op *op,
                   struct peal_diags *diags)
{
    const struct peal_plan *plan = l->plan;
    if (peal_op_is_sync(op) && op->sync.phases != PEAL_NONE) {
        peal_export_refuse(plan, rank, op, diags, "cells cannot depend on the launch");
        return false;
    }
    if (peal_op_is_sync(op) || peal_op_is_free(op))
        return true;
    l->chunk = peal_size_gcd(l->chunk, op->mem.count);
    for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
        const struct peal_ref *ref = peal_plan_refs(plan) + op->mem.ref + i;
        const char *why = why_not_ref(plan, op, ref);
        if (why) {
            peal_export_refuse(plan, rank, op, diags, why);
            return false;
        }
        l->chunk = peal_size_gcd(l->chunk, first_element(plan, ref));
    }
    return true;
}

/* The number of elements of rank 0's side of the collective; 0 if it has none. */
static uint64_t side_len(const struct peal_plan *plan, uint32_t buf)
{
    if (buf >= plan->bufs.count)
        return 0;
    return peal_plan_len(plan, 0, buf);
}

bool peal_export_layout_find(const struct peal_plan *plan, struct peal_diags *diags,
                             struct peal_export_layout *out)
{
    *out = (struct peal_export_layout){.plan = plan};
    uint64_t x = side_len(plan, plan->contract_in);
    uint64_t y = side_len(plan, plan->contract_out);
    if (!peal_export_layout_collective(plan)) {
        if (plan->contract == PEAL_CONTRACT_NONE)
            peal_diag_error(diags, (struct peal_pos){0},
                            "'%s' implements no collective, and the engine runs nothing else; "
                            "'kernel %s(...) implements allreduce' says which one it is",
                            peal_plan_string(plan, plan->kernel),
                            peal_plan_string(plan, plan->kernel));
        else
            peal_diag_error(diags, (struct peal_pos){0}, "the engine has no collective for '%s'",
                            peal_contract_info((enum peal_contract)plan->contract)->name);
        return false;
    }
    bool rooted = peal_contract_parts_on_root((enum peal_contract)plan->contract);
    if (rooted && plan->contract_in == plan->contract_out) {
        peal_diag_error(diags, (struct peal_pos){0},
                        "a gather or scatter in one buffer: the engine has two");
        return false;
    }
    out->chunk = peal_size_gcd(x, y);
    for (uint32_t r = 0; r < plan->nranks; r++) {
        for (uint32_t n = 0; n < peal_plan_lane_count(plan, r); n++) {
            const struct peal_lane *lane = peal_plan_lane(plan, r, n);
            for (uint64_t i = 0; i < lane->ops; i++) {
                if (!see_op(out, r, &peal_plan_ops(plan)[lane->first_op + i], diags))
                    return false;
            }
        }
    }
    out->scratch = calloc(plan->bufs.count + 1, sizeof *out->scratch);
    if (!out->scratch)
        return false;
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        uint64_t len = 0;
        if (buf->kind == PEAL_BUF_PARAM) {
            bool known = b == plan->contract_in || b == plan->contract_out;
            out->in_place = out->in_place || buf->alias != PEAL_NONE;
            if (!known) {
                peal_diag_error(diags, (struct peal_pos){0},
                                "parameter '%s' is neither the input nor the output",
                                peal_plan_string(plan, buf->name));
                return false;
            }
            continue;
        }
        for (uint32_t r = 0; r < plan->nranks; r++)
            len = peal_size_max(len, peal_plan_len(plan, r, b));
        out->scratch[b] = out->scratch_chunks;
        if (out->chunk)
            out->scratch_chunks += (len + out->chunk - 1) / out->chunk;
    }
    out->in_place = out->in_place || plan->contract_in == plan->contract_out;
    if (out->chunk == 0)
        peal_diag_error(diags, (struct peal_pos){0}, "there is nothing to move: the count is 0");
    return out->chunk != 0;
}

void peal_export_layout_release(struct peal_export_layout *layout)
{
    free(layout->scratch);
}

struct peal_chunk peal_export_layout_place(const struct peal_export_layout *l,
                                           const struct peal_ref *ref)
{
    uint64_t index = first_element(l->plan, ref) / l->chunk;
    bool gathers = l->plan->contract == PEAL_CONTRACT_ALLGATHER; /* of one buffer: all of it is y */
    if (ref->buf == l->plan->contract_in && !(gathers && ref->buf == l->plan->contract_out))
        return (struct peal_chunk){'i', index};
    if (ref->buf == l->plan->contract_out)
        return (struct peal_chunk){'o', index};
    return (struct peal_chunk){'s', index + l->scratch[ref->buf]};
}

const char *peal_export_layout_collective(const struct peal_plan *plan)
{
    static const char *const names[] = {
        [PEAL_CONTRACT_ALLREDUCE] = "allreduce",
        [PEAL_CONTRACT_ALLGATHER] = "allgather",
        [PEAL_CONTRACT_REDUCE_SCATTER] = "reducescatter",
        [PEAL_CONTRACT_BROADCAST] = "broadcast",
        [PEAL_CONTRACT_REDUCE] = "reduce",
        [PEAL_CONTRACT_GATHER] = "gather",
        [PEAL_CONTRACT_SCATTER] = "scatter",
        [PEAL_CONTRACT_ALL_TO_ALL] = "alltoall",
    };
    if (plan->contract >= sizeof names / sizeof *names)
        return NULL;
    return names[plan->contract];
}
