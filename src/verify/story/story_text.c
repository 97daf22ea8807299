/* SPDX-License-Identifier: Apache-2.0 */
/* One op as a line of a story: "wait ready >= 2", "x[0 +: 4] = add(x[0 +: 4], x@1[0 +: 4])". */
#include "verify/story/story.h"

#include <inttypes.h>

static void put_ref(const struct peal_plan *plan, uint32_t rank, const struct peal_op *op,
                    const struct peal_ref *ref, uint32_t launch, struct peal_text *out)
{
    if (ref->buf == PEAL_BUF_CONST) {
        peal_text_printf(out, "%g", peal_ref_value(ref));
        return;
    }
    uint64_t size = peal_dtype_size((enum peal_dtype)ref->dtype);
    uint64_t first = peal_ref_offset(plan, ref, launch) / size;
    if (ref->buf == PEAL_BUF_SLOT) {
        peal_text_puts(out, "slot");
    } else {
        peal_text_puts(out, peal_plan_string(plan, peal_plan_bufs(plan)[ref->buf].name));
        if (ref->rank != rank)
            peal_text_printf(out, "@%u", ref->rank);
    }
    if (op->mem.rows > 1 || ref->row > 0)
        peal_text_printf(out, "[%u +: %u, %" PRIu64 " +: %" PRIu64 "]", ref->row, op->mem.rows,
                         first, op->mem.count);
    else
        peal_text_printf(out, "[%" PRIu64 " +: %" PRIu64 "]", first, op->mem.count);
}

static void put_sync(const struct program *p, uint32_t launch, uint32_t rank,
                     const struct peal_op *op, struct peal_text *out)
{
    const struct peal_plan *plan = p->plans[launch];
    const struct peal_signal *signal = &peal_plan_signals(plan)[peal_op_signal(op)];
    uint32_t index = peal_op_cell(plan, op, launch) - signal->first_cell;
    peal_text_printf(out, "%s %s%s", peal_op_info((enum peal_op_kind)op->kind)->name,
                     (op->flags & PEAL_OP_RELAXED) ? "relaxed " : "",
                     peal_plan_string(plan, signal->name));
    if (signal->cells > 1 || index > 0)
        peal_text_printf(out, "[%u]", index);
    if (op->sync.rank != rank)
        peal_text_printf(out, "@%u", op->sync.rank);
    if (op->kind == PEAL_OP_PEEK)
        return;
    const char *relation = op->kind == PEAL_OP_NOTIFY    ? (op->flags & PEAL_OP_SET) ? "=" : "+="
                           : (op->flags & PEAL_OP_EQUAL) ? "=="
                                                         : ">=";
    peal_text_printf(out, " %s %s%" PRId64, relation,
                     (op->flags & PEAL_OP_HAS_REG) ? "peeked + " : "", op->sync.value);
    if (op->kind == PEAL_OP_WAIT && !(op->flags & PEAL_OP_HAS_REG) && op->sync.back)
        peal_text_printf(out, " at launch - %u", op->sync.back);
}

void peal_story_op_text(const struct program *p, uint32_t launch, uint32_t rank,
                        const struct peal_op *op, struct peal_text *out)
{
    const struct peal_plan *plan = p->plans[launch];
    if (peal_op_is_sync(op)) {
        put_sync(p, launch, rank, op, out);
        return;
    }
    const char *name = op->kind == PEAL_OP_COMPUTE || op->kind == PEAL_OP_ACCUMULATE
                           ? peal_fn_info((enum peal_fn)op->fn)->name
                           : peal_op_info((enum peal_op_kind)op->kind)->name;
    if (peal_op_has_dst(op)) {
        put_ref(plan, rank, op, peal_op_dst(plan, op), launch, out);
        for (uint32_t i = 0; i < op->mem.also; i++) {
            peal_text_puts(out, ", ");
            put_ref(plan, rank, op, peal_op_also(plan, op, i), launch, out);
        }
        peal_text_puts(out, op->kind == PEAL_OP_ACCUMULATE ? " " : " = ");
    }
    if (op->kind == PEAL_OP_ACCUMULATE)
        peal_text_printf(out, "%s= ", name);
    else if (op->kind != PEAL_OP_COPY)
        peal_text_printf(out, "%s%s", name,
                         op->kind == PEAL_OP_COMPUTE ? "("
                         : op->mem.nsrc              ? " "
                                                     : "");
    for (uint32_t i = 0; i < op->mem.nsrc; i++) {
        if (i == 4 && op->mem.nsrc > 6) {
            peal_text_printf(out, ", ... %u more", op->mem.nsrc - i);
            break;
        }
        peal_text_puts(out, i ? ", " : "");
        put_ref(plan, rank, op, peal_op_src(plan, op, i), launch, out);
    }
    if (op->kind == PEAL_OP_COMPUTE)
        peal_text_puts(out, ")");
    if (op->kind >= PEAL_OP_SEND) {
        const struct peal_channel *ch = &peal_plan_channels(plan)[op->mem.channel];
        bool sends = op->kind == PEAL_OP_SEND;
        peal_text_printf(out, " %s %u", sends ? "to" : "from", sends ? ch->receiver : ch->sender);
        if (ch->name)
            peal_text_printf(out, " on %s", peal_plan_string(plan, ch->name));
    }
}
