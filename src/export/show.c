/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as Peal text: every rank's ops written out. What the text cannot express (lengths of
 * windows per rank, the hardware's order of a sum, in place) is in comments. */
#include "export/export.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

struct printer {
    const struct peal_plan *plan;
    struct peal_text *out;
    uint32_t rank;
    int indent;
    PEAL_VEC(uint32_t) slots; /* pairs: channel, number of the tile */
    uint32_t tiles;
    uint32_t row; /* of an op whose rows are lines of their own */
    bool by_rows;
};

static void begin_line(struct printer *p)
{
    for (int i = 0; i < p->indent; i++)
        peal_text_puts(p->out, "    ");
}

static void put_name(struct printer *p, const char *name)
{
    if (!isalpha((unsigned char)*name))
        peal_text_puts(p->out, "plan_");
    for (; *name; name++)
        peal_text_printf(p->out, "%c", isalnum((unsigned char)*name) ? *name : '_');
}

/* "12", or with phases "12 + (launch mod 2) * 64". */
static void put_place(struct printer *p, uint64_t first, uint32_t phases, uint64_t unit,
                      uint64_t from)
{
    const struct peal_plan *plan = p->plan;
    if (phases == PEAL_NONE) {
        peal_text_printf(p->out, "%" PRIu64, first);
        return;
    }
    uint64_t zero = peal_plan_phases(plan)[phases] / unit - from;
    int64_t step = (int64_t)(peal_plan_phases(plan)[phases + 1] / unit - from) - (int64_t)zero;
    peal_text_printf(p->out, "%" PRIu64 " + (launch mod %u) * %" PRId64, zero, plan->period, step);
}

static void put_ref(struct printer *p, const struct peal_op *op, const struct peal_ref *ref)
{
    const struct peal_plan *plan = p->plan;
    uint64_t size = peal_dtype_size((enum peal_dtype)ref->dtype), first = ref->offset / size;
    uint64_t count = op->mem.count * (p->by_rows ? 1 : op->mem.rows);
    if (ref->buf == PEAL_BUF_CONST) {
        peal_text_printf(p->out, "%g", peal_ref_value(ref));
        return;
    }
    if (ref->buf == PEAL_BUF_SLOT) {
        uint32_t older = ref->rank;
        for (size_t i = 0; i < p->slots.len; i += 2) {
            if (p->slots.at[i] == ref->row && older-- == 0)
                peal_text_printf(p->out, "t%u", p->slots.at[i + 1]);
        }
        if (first)
            peal_text_printf(p->out, "[%" PRIu64 " +: %" PRIu64 "]", first, count);
        return;
    }
    first = peal_ref_start(plan, op, ref, 0, p->row) / size;
    put_name(p, peal_plan_string(plan, peal_plan_bufs(plan)[ref->buf].name));
    if (ref->rank != p->rank)
        peal_text_printf(p->out, "@%u", ref->rank);
    peal_text_puts(p->out, "[");
    put_place(p, first, ref->phases, size, 0);
    peal_text_printf(p->out, " +: %" PRIu64 "]", count);
}

static void put_cell(struct printer *p, const struct peal_op *op)
{
    const struct peal_signal *signal = &peal_plan_signals(p->plan)[peal_op_signal(op)];
    put_name(p, peal_plan_string(p->plan, signal->name));
    peal_text_puts(p->out, "[");
    put_place(p, op->sync.cell - signal->first_cell, op->sync.phases, 1, signal->first_cell);
    peal_text_puts(p->out, "]");
    if (op->sync.rank != p->rank)
        peal_text_printf(p->out, "@%u", op->sync.rank);
}

static void put_sync(struct printer *p, const struct peal_op *op)
{
    bool notify = peal_op_is_notify(op);
    peal_text_puts(p->out, notify ? "notify " : "wait ");
    if (peal_op_order(op) == PEAL_ORDER_NONE)
        peal_text_puts(p->out, "relaxed ");
    put_cell(p, op);
    const char *relation = op->flags & PEAL_OP_EQUAL ? "==" : ">=";
    if (notify)
        relation = op->flags & PEAL_OP_SET ? "=" : "+=";
    peal_text_printf(p->out, " %s %" PRId64, relation, op->sync.value);
    if (!notify && op->sync.back)
        peal_text_printf(p->out, " at launch - %u", op->sync.back);
}

static void put_channel(struct printer *p, const struct peal_op *op, const char *word, bool sends)
{
    const struct peal_channel *c = &peal_plan_channels(p->plan)[op->mem.channel];
    const char *name = peal_plan_string(p->plan, c->name);
    peal_text_printf(p->out, "%s %u", word, sends ? c->receiver : c->sender);
    if (*name) {
        peal_text_puts(p->out, " on ");
        put_name(p, name);
    }
}

static void put_sources(struct printer *p, const struct peal_op *op)
{
    const struct peal_plan *plan = p->plan;
    bool reduces = peal_op_is_compute(op) && plan->reduce < PEAL_REDUCTIONS &&
                   op->fn == peal_reduce_fn((enum peal_reduction)plan->reduce);
    bool own = peal_op_is_own(op);
    bool plain = !own && (peal_op_is_copy(op) || op->fn == PEAL_FN_ID);
    if (own)
        peal_text_printf(p->out, "%s(", peal_op_info((enum peal_op_kind)op->kind)->name);
    else if (!plain)
        peal_text_printf(p->out, "%s(", reduces ? "op" : peal_fn_info((enum peal_fn)op->fn)->name);
    for (uint32_t i = 0; i < op->mem.nsrc; i++) {
        struct peal_op seen = peal_op_of_operand(op, 1 + i);
        if (i)
            peal_text_puts(p->out, ", ");
        put_ref(p, &seen, peal_op_src(plan, op, i));
    }
    if (!plain)
        peal_text_puts(p->out, ")");
}

static void put_message(struct printer *p, const struct peal_op *op)
{
    if (peal_op_sends(op)) {
        peal_text_puts(p->out, "send ");
        put_ref(p, op, peal_op_src(p->plan, op, 0));
        put_channel(p, op, " to", true);
    } else if (peal_op_is_recv(op)) {
        put_ref(p, op, peal_op_dst(p->plan, op));
        put_channel(p, op, " = recv from", false);
    } else {
        peal_text_printf(p->out, "let t%u: T[%" PRIu64 "]", p->tiles, op->mem.count);
        put_channel(p, op, " = recv_slot from", false);
        (void)peal_vec_push(&p->slots, op->mem.channel);
        (void)peal_vec_push(&p->slots, p->tiles++);
    }
}

static void put_free(struct printer *p, uint32_t channel)
{
    size_t i = 0;
    while (i < p->slots.len && p->slots.at[i] != channel)
        i += 2;
    if (i >= p->slots.len)
        return;
    peal_text_printf(p->out, "free t%u", p->slots.at[i + 1]);
    for (; i + 2 < p->slots.len; i++)
        p->slots.at[i] = p->slots.at[i + 2];
    p->slots.len -= 2;
}

static void put_one_op(struct printer *p, const struct peal_op *op)
{
    begin_line(p);
    if (peal_op_is_sync(op)) {
        put_sync(p, op);
    } else if (peal_op_is_flush(op)) {
        peal_text_printf(p->out, "flush to %u", op->mem.target);
    } else if (peal_op_is_free(op)) {
        put_free(p, op->mem.channel);
    } else if (peal_op_has_channel(op)) {
        put_message(p, op);
    } else {
        if (op->flags & PEAL_OP_EXCLUSIVE)
            peal_text_puts(p->out, "exclusive ");
        put_ref(p, op, peal_op_dst(p->plan, op));
        peal_text_puts(p->out, peal_op_accumulates(op) ? " op= " : " = ");
        if (peal_op_accumulates(op))
            put_ref(p, op, peal_op_src(p->plan, op, 0));
        else
            put_sources(p, op);
    }
    if (peal_op_is_compute(op) && (op->flags & PEAL_OP_UNORDERED))
        peal_text_puts(p->out, " // in the hardware's order");
    peal_text_puts(p->out, "\n");
    if (!peal_op_is_compute(op))
        return;
    for (uint32_t i = 0; i < op->mem.more_dsts; i++) {
        begin_line(p);
        put_ref(p, op, peal_op_more_dst(p->plan, op, i));
        peal_text_puts(p->out, " = ");
        put_ref(p, op, peal_op_dst(p->plan, op));
        peal_text_puts(p->out, "\n");
    }
}

/* Is there memory between the rows of an operand? */
static bool has_gaps(const struct peal_plan *plan, const struct peal_op *op)
{
    for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
        const struct peal_ref *ref = peal_plan_refs(plan) + op->mem.ref + i;
        if (peal_ref_stride(plan, op, ref) != op->mem.count)
            return true;
    }
    return false;
}

static void put_op(struct printer *p, const struct peal_op *op)
{
    p->by_rows = peal_op_is_elementwise(op) && op->mem.rows > 1 && has_gaps(p->plan, op);
    do
        put_one_op(p, op);
    while (p->by_rows && ++p->row < op->mem.rows);
    p->row = 0;
}

static void put_lane(struct printer *p, uint32_t lane)
{
    for (p->rank = 0; p->rank < p->plan->nranks; p->rank++) {
        if (lane >= peal_plan_lane_count(p->plan, p->rank))
            continue;
        const struct peal_lane *l = peal_plan_lane(p->plan, p->rank, lane);
        if (!l->ops)
            continue;
        begin_line(p);
        peal_text_printf(p->out, "if rank == %u {\n", p->rank);
        p->indent++;
        p->tiles = 0;
        p->slots.len = 0;
        for (uint64_t i = 0; i < l->ops; i++)
            put_op(p, &peal_plan_ops(p->plan)[l->first_op + i]);
        p->indent--;
        begin_line(p);
        peal_text_puts(p->out, "}\n");
    }
}

/* --- declarations ---------------------------------------------------------------------------- */

static uint64_t longest(const struct peal_plan *plan, uint32_t buf)
{
    uint64_t len = 0;
    for (uint32_t r = 0; r < plan->nranks; r++)
        len = peal_size_max(len, peal_plan_len(plan, r, buf));
    return len;
}

static void put_params(struct printer *p)
{
    static const char *const dirs[] = {"", "in ", "out ", "inout "};
    const struct peal_plan *plan = p->plan;
    const char *separator = "";
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        if (buf->kind != PEAL_BUF_PARAM || buf->alias != PEAL_NONE)
            continue; /* in place, there is one buffer */
        peal_text_printf(p->out, "%s%s%s: ", separator, dirs[buf->dir],
                         peal_plan_string(plan, buf->name));
        if (buf->flags & PEAL_BUF_SYMMETRIC)
            peal_text_puts(p->out, "window ");
        peal_text_printf(p->out, "T[%" PRIu64 "]", longest(plan, b));
        separator = ", ";
    }
    if (plan->reduce < PEAL_REDUCTIONS)
        peal_text_puts(p->out, ", op: reduce");
    if (plan->root < plan->nranks)
        peal_text_printf(p->out, ", root: int = %u", plan->root);
}

/* Finds which signals have both sides; the others are not declared. */
static bool *used_signals(const struct peal_plan *plan)
{
    bool *used = calloc(2 * plan->signals.count + 2, sizeof *used);
    if (!used)
        return NULL;
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        const struct peal_op *op = &peal_plan_ops(plan)[i];
        if (peal_op_is_sync(op))
            used[2 * peal_op_signal(op) + peal_op_is_notify(op)] = true;
    }
    return used;
}

/* Does an earlier channel have the same name? */
static bool is_declared(const struct peal_plan *plan, uint32_t channel)
{
    const struct peal_channel *channels = peal_plan_channels(plan);
    for (uint32_t k = 0; k < channel; k++) {
        if (channels[k].name == channels[channel].name)
            return true;
    }
    return false;
}

static void put_scratch(struct printer *p)
{
    static const char *const kinds[] = {"", "shared ", "raw ", "raw uninitialised "};
    const struct peal_plan *plan = p->plan;
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        if (buf->kind == PEAL_BUF_PARAM || longest(plan, b) == 0)
            continue;
        peal_text_printf(p->out, "    %s ", buf->kind == PEAL_BUF_WINDOW ? "window" : "private");
        put_name(p, peal_plan_string(plan, buf->name));
        peal_text_printf(p->out, ": T[%" PRIu64 "]\n", longest(plan, b));
    }
    bool *used = used_signals(plan);
    uint64_t nsignals = 0;
    if (used)
        nsignals = plan->signals.count;
    for (uint32_t i = 0; i < nsignals; i++) {
        const struct peal_signal *signal = &peal_plan_signals(plan)[i];
        if (!used[2 * i] && !used[2 * i + 1])
            continue;
        peal_text_printf(p->out, "    signal %s", kinds[signal->kind]);
        put_name(p, peal_plan_string(plan, signal->name));
        peal_text_printf(p->out, "[%u]\n", signal->cells);
    }
    free(used);
    for (uint32_t i = 0; i < plan->channels.count; i++) {
        const char *name = peal_plan_string(plan, peal_plan_channels(plan)[i].name);
        if (!*name || is_declared(plan, i))
            continue;
        peal_text_puts(p->out, "    channel ");
        put_name(p, name);
        peal_text_puts(p->out, "\n");
    }
}

void peal_plan_show(const struct peal_plan *plan, struct peal_text *out)
{
    struct printer p = {.plan = plan, .out = out, .indent = 1};
    uint32_t lanes = 1;
    for (uint32_t r = 0; r < plan->nranks; r++)
        lanes = peal_size_max(lanes, peal_plan_lane_count(plan, r));
    peal_text_printf(out, "// for %u ranks", plan->nranks);
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        if (peal_plan_bufs(plan)[b].alias != PEAL_NONE)
            peal_text_puts(out, ", in place");
    }
    if (plan->channels.count)
        peal_text_printf(out, ", channels of depth %u", peal_plan_channels(plan)[0].depth);
    peal_text_puts(out, "\nkernel ");
    put_name(&p, peal_plan_string(plan, plan->kernel));
    peal_text_puts(out, "(");
    put_params(&p);
    peal_text_puts(out, ")");
    if (plan->contract != PEAL_CONTRACT_NONE)
        peal_text_printf(out, " implements %s",
                         peal_contract_info((enum peal_contract)plan->contract)->name);
    peal_text_puts(out, " {\n");
    put_scratch(&p);
    for (uint32_t l = 0; l < lanes; l++) {
        if (lanes > 1) {
            peal_text_puts(out, "    lane {\n");
            p.indent = 2;
        }
        put_lane(&p, l);
        if (lanes > 1)
            peal_text_puts(out, "    }\n");
    }
    peal_text_puts(out, "}\n");
    peal_vec_release(&p.slots);
}
