/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as text and as JSON. */
#include "plan/format/dump.h"

#include "base/base.h"
#include "plan/format/effects.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const kind_names[] = {"parameter", "window", "private", "tile"};
static const char *const dir_names[] = {"", "in", "out", "inout"};
static const char *const signal_names[] = {"one writer", "shared", "raw", "raw uninitialised"};

static void dump_phases(const struct peal_plan *plan, uint32_t at, uint64_t divide,
                        uint64_t subtract, struct peal_text *out)
{
    for (uint32_t i = 0; i < plan->period; i++)
        peal_text_printf(out, "%s%" PRIu64, i ? "|" : "",
                         (peal_plan_phases(plan)[at + i] - subtract) / divide);
}

static void dump_ref(const struct peal_plan *plan, uint32_t rank, const struct peal_op *op,
                     const struct peal_ref *ref, struct peal_text *out)
{
    uint64_t size = peal_dtype_size((enum peal_dtype)ref->dtype);
    if (ref->buf == PEAL_BUF_CONST) {
        if (peal_ref_is_unknown(ref))
            peal_text_printf(out, "%s(?)", peal_text_or_empty(peal_ref_function(plan, ref)));
        else
            peal_text_printf(out, "%g", peal_ref_value(ref));
        return;
    }
    if (ref->buf == PEAL_BUF_SLOT) {
        peal_text_printf(out, "slot(from %u, %u older)[%" PRIu64 " +: %" PRIu64 "]",
                         peal_plan_channels(plan)[ref->row].sender, ref->rank, ref->offset / size,
                         op->mem.rows * op->mem.count);
        return;
    }
    peal_text_puts(out, peal_plan_string(plan, peal_plan_bufs(plan)[ref->buf].name));
    if (ref->rank != rank)
        peal_text_printf(out, "@%u", ref->rank);
    peal_text_puts(out, "[");
    bool two_d = peal_plan_bufs(plan)[ref->buf].cols;
    if (two_d && (op->mem.rows > 1 || ref->row))
        peal_text_printf(out, "%u +: %u, ", ref->row, op->mem.rows);
    if (ref->phases != PEAL_NONE)
        dump_phases(plan, ref->phases, size, 0, out);
    else
        peal_text_printf(out, "%" PRIu64, ref->offset / size);
    uint64_t pitch = two_d ? 0 : ref->pitch;
    peal_text_printf(out, " +: %" PRIu64,
                     two_d || pitch ? op->mem.count : op->mem.count * op->mem.rows);
    if (pitch && op->mem.rows > 1)
        peal_text_printf(out, ", %u rows every %" PRIu64, op->mem.rows, pitch);
    peal_text_puts(out, "]");
}

static void dump_cell(const struct peal_plan *plan, uint32_t rank, const struct peal_op *op,
                      struct peal_text *out)
{
    const struct peal_signal *signal = &peal_plan_signals(plan)[peal_op_signal(op)];
    peal_text_puts(out, peal_plan_string(plan, signal->name));
    if (op->sync.phases != PEAL_NONE) {
        peal_text_puts(out, "[");
        dump_phases(plan, op->sync.phases, 1, signal->first_cell, out);
        peal_text_puts(out, "]");
    } else if (signal->cells != 1 || op->sync.cell != signal->first_cell) {
        peal_text_printf(out, "[%u]", op->sync.cell - signal->first_cell);
    }
    if (op->sync.rank != rank)
        peal_text_printf(out, "@%u", op->sync.rank);
}

void peal_plan_dump_order(const struct peal_op *op, struct peal_text *out)
{
    static const char *const orders[] = {"relaxed", "acquire", "release", "acq_rel"};
    static const char *const scopes[] = {"", " device", " block"};
    if (op->flags & PEAL_OP_FULL && peal_op_is_fence(op))
        peal_text_puts(out, " full");
    else if (peal_op_order(op) != (enum peal_order)peal_op_row(op)->order)
        peal_text_printf(out, " %s", orders[peal_op_order(op)]);
    peal_text_puts(out, scopes[peal_op_scope(op)]);
}

/* Times and phases of a launch number, as an expression: 2 * launch + 0|1. */
static void dump_number(const struct peal_plan *plan, const struct peal_op *op,
                        struct peal_text *out)
{
    int64_t times = (int64_t)op->mem.count;
    if (times != 0 && times != 1)
        peal_text_printf(out, "%" PRId64 " * ", times);
    peal_text_puts(out, times ? "launch" : "");
    if (op->mem.target == PEAL_NONE)
        return;
    peal_text_puts(out, times ? " + " : "");
    for (uint32_t i = 0; i < plan->period; i++)
        peal_text_printf(out, "%s%" PRId64, i ? "|" : "",
                         (int64_t)peal_plan_phases(plan)[op->mem.target + i]);
}

static void dump_reg(const struct peal_plan *plan, const struct peal_op *op, uint32_t reg,
                     struct peal_text *out)
{
    const struct peal_op *number = peal_op_number_behind(plan, op, reg);
    if (number)
        dump_number(plan, number, out);
    else
        peal_text_printf(out, "r%u", reg);
}

static void dump_sync(const struct peal_plan *plan, uint32_t rank, const struct peal_op *op,
                      struct peal_text *out)
{
    if (peal_op_fetches(op))
        peal_text_printf(out, "r%u = ", op->sync.reg);
    dump_cell(plan, rank, op, out);
    if (peal_op_swaps(op))
        peal_text_printf(out, " from %" PRId64 " to %" PRId64, peal_swap_expected(op->sync.value),
                         peal_swap_desired(op->sync.value));
    else if (peal_op_is_atomic(op))
        peal_text_printf(out, " += %" PRId64, op->sync.value);
    if (peal_op_is_peek(op) || peal_op_is_atomic(op)) {
        peal_plan_dump_order(op, out);
        return;
    }
    if (peal_op_is_notify(op))
        peal_text_puts(out, op->flags & PEAL_OP_SET ? " = " : " += ");
    else
        peal_text_puts(out, op->flags & PEAL_OP_EQUAL ? " == " : " >= ");
    if (op->flags & PEAL_OP_HAS_REG)
        dump_reg(plan, op, op->sync.reg, out);
    if (!(op->flags & PEAL_OP_HAS_REG) || op->sync.value)
        peal_text_printf(out, "%s%" PRId64, op->flags & PEAL_OP_HAS_REG ? " + " : "",
                         op->sync.value);
    if (peal_op_is_wait(op) && op->sync.back)
        peal_text_printf(out, " at launch - %u", op->sync.back);
    peal_plan_dump_order(op, out);
}

static void dump_channel(const struct peal_plan *plan, uint32_t rank, const struct peal_op *op,
                         struct peal_text *out)
{
    static const char *const ports[] = {"",      " by N",      " by S",    " by E",
                                        " by W", " by parent", " by child"};
    const struct peal_channel *c = &peal_plan_channels(plan)[op->mem.channel];
    bool sending = peal_op_sends(op);
    (void)rank;
    if (sending)
        peal_text_printf(out, " to %u", c->receiver);
    else
        peal_text_printf(out, " from %u", c->sender);
    uint32_t port = (uint32_t)peal_size_min(c->port, PEAL_PORT_CHILD);
    peal_text_puts(out, ports[port]);
    if (port == PEAL_PORT_CHILD)
        peal_text_printf(out, " %u", c->port - PEAL_PORT_CHILD);
    if (c->name)
        peal_text_printf(out, " on %s", peal_plan_string(plan, c->name));
}

static void dump_when(const struct peal_plan *plan, const struct peal_op *op, struct peal_text *out)
{
    dump_reg(plan, op, op->mem.rows, out);
    peal_text_printf(out, " %s %" PRId64, peal_relation_text((enum peal_relation)op->fn),
                     (int64_t)op->mem.count);
}

static void dump_mem(const struct peal_plan *plan, uint32_t rank, const struct peal_op *op,
                     struct peal_text *out)
{
    const struct peal_ref *dst = peal_op_dst(plan, op);
    uint32_t ndst = dst ? 1 : 0;
    if (dst)
        dump_ref(plan, rank, op, dst, out);
    for (uint32_t i = 0; i < op->mem.more_dsts; i++) {
        peal_text_puts(out, ", ");
        dump_ref(plan, rank, op, peal_op_more_dst(plan, op, i), out);
    }
    if (peal_op_accumulates(op))
        peal_text_printf(out, " %s=%s ", peal_plan_fn_name(plan, op->fn),
                         op->flags & PEAL_OP_EXCLUSIVE ? " exclusive" : "");
    else if (dst && !peal_op_is_recv(op))
        peal_text_puts(out, " <- ");
    bool applies = peal_op_is_compute(op) || peal_op_is_own(op);
    if (peal_op_is_compute(op))
        peal_text_puts(out, peal_plan_fn_name(plan, op->fn));
    if (applies)
        peal_text_puts(out, "(");
    for (uint32_t i = 0; i < op->mem.nsrc; i++) {
        struct peal_op seen = peal_op_of_operand(op, ndst + i);
        if (i)
            peal_text_puts(out, ", ");
        dump_ref(plan, rank, &seen, peal_op_src(plan, op, i), out);
    }
    if (applies)
        peal_text_puts(out, ")");
    if (peal_op_is_compute(op) && op->mem.divisor > 1)
        peal_text_printf(out, " / %u", op->mem.divisor);
    if (peal_op_holds(op))
        peal_text_printf(out, "%" PRIu64 " elements", op->mem.rows * op->mem.count);
    if (peal_op_is_flush(op))
        peal_text_printf(out, "to %u", op->mem.target);
    if (peal_op_is_when(op))
        dump_when(plan, op, out);
    if (peal_op_is_number(op)) {
        peal_text_printf(out, "r%u = ", op->mem.rows);
        dump_number(plan, op, out);
    }
    if (peal_op_has_channel(op))
        dump_channel(plan, rank, op, out);
}

void peal_plan_dump_op(const struct peal_plan *plan, uint32_t rank, const struct peal_op *op,
                       struct peal_text *out)
{
    peal_text_puts(out, peal_op_info((enum peal_op_kind)op->kind)->name);
    if (peal_op_is_fence(op)) {
        peal_plan_dump_order(op, out);
        return;
    }
    peal_text_puts(out, " ");
    if (peal_op_is_sync(op))
        dump_sync(plan, rank, op, out);
    else
        dump_mem(plan, rank, op, out);
}

static uint64_t rank_ops(const struct peal_plan *plan, uint32_t rank)
{
    uint64_t ops = 0;
    for (uint32_t l = 0; l < peal_plan_lane_count(plan, rank); l++)
        ops += peal_plan_lane(plan, rank, l)->ops;
    return ops;
}

static void dump_placement(const struct peal_plan *plan, struct peal_text *out)
{
    const int64_t *nodes = peal_plan_nodes(plan);
    peal_text_puts(out, "  node of rank 0, 1, ... =");
    for (uint32_t r = 0; r < peal_size_min(plan->nranks, 24); r++)
        peal_text_printf(out, " %" PRId64, nodes[r]);
    peal_text_puts(out, plan->nranks > 24 ? " ...\n" : "\n");
}

static void dump_head(const struct peal_plan *plan, uint32_t rank, struct peal_text *out)
{
    peal_text_printf(out, "plan %s: %u rank%s, %s", peal_plan_string(plan, plan->kernel),
                     plan->nranks, peal_text_plural(plan->nranks),
                     peal_dtype_name((enum peal_dtype)plan->dtype));
    if (plan->reduce != PEAL_NONE)
        peal_text_printf(out, ", %s", peal_plan_reduce_name(plan));
    if (plan->contract)
        peal_text_printf(out, ", implements %s",
                         peal_contract_info((enum peal_contract)plan->contract)->name);
    if (plan->period > 1)
        peal_text_printf(out, ", period %u", plan->period);
    peal_text_puts(out, "\n");
    for (uint64_t i = 0; i < plan->params.count; i++) {
        const struct peal_param *p = &peal_plan_params(plan)[i];
        if (i + 1 == plan->placement) {
            dump_placement(plan, out);
            continue;
        }
        const int64_t *values = peal_plan_values(plan) + p->first;
        if (p->is_local)
            values += (uint64_t)(rank - plan->rank_first) * p->count;
        peal_text_printf(out, "  %s%s =", p->is_local ? "local " : "",
                         peal_plan_string(plan, p->name));
        for (uint32_t k = 0; k < peal_size_min(p->count, 16); k++)
            peal_text_printf(out, " %" PRId64, values[k]);
        peal_text_puts(out, p->count > 16 ? " ...\n" : "\n");
    }
    for (uint64_t i = 0; i < plan->bufs.count; i++) {
        const struct peal_buf *b = &peal_plan_bufs(plan)[i];
        peal_text_printf(
            out, "  %s %s: %s[%" PRIu64 "]", kind_names[b->kind], peal_plan_string(plan, b->name),
            peal_dtype_name((enum peal_dtype)b->dtype), peal_plan_len(plan, rank, (uint32_t)i));
        if (b->kind == PEAL_BUF_PARAM)
            peal_text_printf(out, " %s", dir_names[b->dir]);
        if (b->flags & PEAL_BUF_SYMMETRIC)
            peal_text_puts(out, " symmetric");
        if (b->flags & PEAL_BUF_KEPT)
            peal_text_puts(out, " kept");
        if (b->alias != PEAL_NONE)
            peal_text_printf(out, " in %s",
                             peal_plan_string(plan, peal_plan_bufs(plan)[b->alias].name));
        peal_text_puts(out, "\n");
    }
    for (uint64_t i = 0; i < plan->signals.count; i++) {
        const struct peal_signal *s = &peal_plan_signals(plan)[i];
        peal_text_printf(out, "  signal %s: %u cell%s, %s\n", peal_plan_string(plan, s->name),
                         s->cells, peal_text_plural(s->cells), signal_names[s->kind]);
    }
    if (plan->channels.count)
        peal_text_printf(out, "  channels: %" PRIu64 ", %u slots of %" PRIu64 " bytes\n",
                         plan->channels.count, peal_plan_channels(plan)[0].depth,
                         peal_plan_channels(plan)[0].slot_bytes);
}

static void dump_rank(const struct peal_plan *plan, uint32_t rank, struct peal_text *out)
{
    for (uint32_t l = 0; l < peal_plan_lane_count(plan, rank); l++) {
        const struct peal_lane *lane = peal_plan_lane(plan, rank, l);
        peal_text_printf(out, "rank %u", rank);
        if (peal_plan_lane_count(plan, rank) > 1)
            peal_text_printf(out, " lane %u", l);
        if (lane->block)
            peal_text_printf(out, " block %u", lane->block - 1);
        peal_text_printf(out, ": %" PRIu64 " ops\n", lane->ops);
        for (uint64_t i = 0; i < lane->ops; i++) {
            const struct peal_op *op = &peal_plan_ops(plan)[lane->first_op + i];
            size_t start = out->len;
            peal_text_puts(out, "  ");
            peal_plan_dump_op(plan, rank, op, out);
            if (op->pos != PEAL_NONE) {
                const struct peal_position *p = &peal_plan_positions(plan)[op->pos];
                while (out->len - start < 48 && !out->failed)
                    peal_text_puts(out, " ");
                peal_text_printf(out, "  // %s:%u", peal_plan_string(plan, p->source), p->line);
            }
            peal_text_puts(out, "\n");
        }
    }
}

/* The ranks to print: one, or with PEAL_NONE all that the plan has. */
struct ranks {
    uint32_t first, end;
};

static struct ranks ranks_of(const struct peal_plan *plan, uint32_t rank)
{
    if (rank != PEAL_NONE)
        return (struct ranks){rank, rank + 1};
    return (struct ranks){plan->rank_first, plan->rank_first + plan->rank_count};
}

void peal_plan_dump(const struct peal_plan *plan, uint32_t rank, struct peal_text *out)
{
    struct ranks ranks = ranks_of(plan, rank);
    dump_head(plan, ranks.first, out);
    for (uint32_t r = ranks.first; r < ranks.end; r++)
        dump_rank(plan, r, out);
}

static void json_ref(const struct peal_plan *plan, const struct peal_ref *ref,
                     struct peal_json *json)
{
    peal_json_object(json);
    if (ref->buf == PEAL_BUF_CONST) {
        peal_json_put_real(json, "const", peal_ref_value(ref));
    } else if (ref->buf == PEAL_BUF_SLOT) {
        peal_json_put_uint(json, "channel", ref->row);
        peal_json_put_uint(json, "older", ref->rank);
        peal_json_put_string(json, "dtype", peal_dtype_name((enum peal_dtype)ref->dtype));
        peal_json_put_uint(json, "offset", ref->offset);
    } else {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[ref->buf];
        peal_json_put_string(json, "buf", peal_plan_string(plan, buf->name));
        peal_json_put_uint(json, "rank", ref->rank);
        peal_json_put_uint(json, "row", buf->cols ? ref->row : 0);
        if (!buf->cols && ref->pitch)
            peal_json_put_uint(json, "pitch", ref->pitch);
        peal_json_put_string(json, "dtype", peal_dtype_name((enum peal_dtype)ref->dtype));
        peal_json_key(json, "offset");
        if (ref->phases == PEAL_NONE) {
            peal_json_uint(json, ref->offset);
        } else {
            peal_json_array(json);
            for (uint32_t i = 0; i < plan->period; i++)
                peal_json_uint(json, peal_plan_phases(plan)[ref->phases + i]);
            peal_json_array_end(json);
        }
    }
    peal_json_object_end(json);
}

/* A number within its signal, or one per phase. */
static void json_cell(const struct peal_plan *plan, const struct peal_op *op,
                      struct peal_json *json)
{
    uint32_t first = peal_plan_signals(plan)[peal_op_signal(op)].first_cell;
    peal_json_key(json, "cell");
    if (op->sync.phases == PEAL_NONE) {
        peal_json_uint(json, op->sync.cell - first);
        return;
    }
    peal_json_array(json);
    for (uint32_t i = 0; i < plan->period; i++)
        peal_json_uint(json, peal_op_cell(plan, op, i) - first);
    peal_json_array_end(json);
}

static void json_sync(const struct peal_plan *plan, const struct peal_op *op,
                      struct peal_json *json)
{
    const struct peal_signal *signal = &peal_plan_signals(plan)[peal_op_signal(op)];
    peal_json_put_string(json, "signal", peal_plan_string(plan, signal->name));
    json_cell(plan, op, json);
    peal_json_put_uint(json, "rank", op->sync.rank);
    if (peal_op_swaps(op)) {
        peal_json_put_int(json, "expected", peal_swap_expected(op->sync.value));
        peal_json_put_int(json, "desired", peal_swap_desired(op->sync.value));
    } else {
        peal_json_put_int(json, "value", op->sync.value);
    }
    peal_json_put_uint(json, "flags", op->flags);
    if (peal_op_fetches(op) || op->flags & PEAL_OP_HAS_REG)
        peal_json_put_uint(json, "reg", op->sync.reg);
    if (peal_op_is_wait(op) && op->sync.back)
        peal_json_put_uint(json, "back", op->sync.back);
}

static void json_data(const struct peal_plan *plan, const struct peal_op *op,
                      struct peal_json *json)
{
    if (peal_op_applies(op))
        peal_json_put_string(json, "fn", peal_plan_fn_name(plan, op->fn));
    if (peal_op_is_compute(op) && op->mem.divisor > 1)
        peal_json_put_uint(json, "divisor", op->mem.divisor);
    if (peal_op_is_flush(op)) {
        peal_json_put_uint(json, "target", op->mem.target);
        return;
    }
    if (peal_op_is_end(op))
        return;
    if (peal_op_is_fence(op)) {
        peal_json_put_uint(json, "flags", op->flags);
        return;
    }
    if (peal_op_is_when(op)) {
        peal_json_put_uint(json, "reg", op->mem.rows);
        peal_json_put_string(json, "relation", peal_relation_text((enum peal_relation)op->fn));
        peal_json_put_int(json, "value", (int64_t)op->mem.count);
        return;
    }
    if (peal_op_is_number(op)) {
        peal_json_put_uint(json, "reg", op->mem.rows);
        peal_json_put_int(json, "times", (int64_t)op->mem.count);
        if (op->mem.target != PEAL_NONE) {
            peal_json_put_array(json, "phases");
            for (uint32_t i = 0; i < plan->period; i++)
                peal_json_int(json, (int64_t)peal_plan_phases(plan)[op->mem.target + i]);
            peal_json_array_end(json);
        }
        return;
    }
    if (peal_op_has_matrices(op))
        peal_json_put_uint(json, "inner", op->mem.inner);
    if (peal_op_has_channel(op))
        peal_json_put_uint(json, "channel", op->mem.channel);
    peal_json_put_uint(json, "rows", op->mem.rows);
    peal_json_put_uint(json, "count", op->mem.count);
    const struct peal_ref *dst = peal_op_dst(plan, op);
    if (dst) {
        peal_json_key(json, "dst");
        json_ref(plan, dst, json);
    }
    if (op->mem.more_dsts) {
        peal_json_put_array(json, "also");
        for (uint32_t i = 0; i < op->mem.more_dsts; i++)
            json_ref(plan, peal_op_more_dst(plan, op, i), json);
        peal_json_array_end(json);
    }
    if (op->mem.nsrc) {
        peal_json_put_array(json, "src");
        for (uint32_t i = 0; i < op->mem.nsrc; i++)
            json_ref(plan, peal_op_src(plan, op, i), json);
        peal_json_array_end(json);
    }
}

static void json_op(const struct peal_plan *plan, const struct peal_op *op, struct peal_json *json)
{
    peal_json_break(json, 0);
    peal_json_object(json);
    peal_json_put_string(json, "op", peal_op_info((enum peal_op_kind)op->kind)->name);
    if (op->pos != PEAL_NONE) {
        const struct peal_position *p = &peal_plan_positions(plan)[op->pos];
        peal_json_put_string(json, "file", peal_plan_string(plan, p->source));
        peal_json_put_uint(json, "line", p->line);
    }
    if (peal_op_is_sync(op))
        json_sync(plan, op, json);
    else
        json_data(plan, op, json);
    peal_json_object_end(json);
}

/* The lengths of a buffer on every rank, where they differ. */
static void json_lens(const struct peal_plan *plan, uint32_t buf, struct peal_json *json)
{
    uint32_t first = plan->rank_first, same = 1;
    while (same < plan->rank_count &&
           peal_plan_len(plan, first + same, buf) == peal_plan_len(plan, first, buf))
        same++;
    if (same >= plan->rank_count)
        return;
    peal_json_put_array(json, "lens");
    for (uint32_t r = 0; r < plan->rank_count; r++)
        peal_json_uint(json, peal_plan_len(plan, first + r, buf));
    peal_json_array_end(json);
}

static void json_bufs(const struct peal_plan *plan, uint32_t rank, struct peal_json *json)
{
    peal_json_put_array(json, "bufs");
    for (uint64_t i = 0; i < plan->bufs.count; i++) {
        const struct peal_buf *b = &peal_plan_bufs(plan)[i];
        peal_json_object(json);
        peal_json_put_string(json, "name", peal_plan_string(plan, b->name));
        peal_json_put_string(json, "kind", kind_names[b->kind]);
        peal_json_put_string(json, "dir", dir_names[b->dir]);
        peal_json_put_string(json, "dtype", peal_dtype_name((enum peal_dtype)b->dtype));
        peal_json_put_uint(json, "len", peal_plan_len(plan, rank, (uint32_t)i));
        json_lens(plan, (uint32_t)i, json);
        if (b->cols)
            peal_json_put_uint(json, "cols", b->cols);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
}

static void json_tables(const struct peal_plan *plan, uint32_t rank, struct peal_json *json)
{
    json_bufs(plan, rank, json);
    peal_json_put_array(json, "signals");
    for (uint64_t i = 0; i < plan->signals.count; i++) {
        const struct peal_signal *s = &peal_plan_signals(plan)[i];
        peal_json_object(json);
        peal_json_put_string(json, "name", peal_plan_string(plan, s->name));
        peal_json_put_string(json, "kind", signal_names[s->kind]);
        peal_json_put_uint(json, "cells", s->cells);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_put_array(json, "channels");
    for (uint64_t i = 0; i < plan->channels.count; i++) {
        const struct peal_channel *c = &peal_plan_channels(plan)[i];
        peal_json_object(json);
        peal_json_put_string(json, "name", peal_plan_string(plan, c->name));
        peal_json_put_uint(json, "sender", c->sender);
        peal_json_put_uint(json, "port", c->port);
        peal_json_put_uint(json, "receiver", c->receiver);
        peal_json_put_uint(json, "depth", c->depth);
        peal_json_put_uint(json, "slot_bytes", c->slot_bytes);
        peal_json_put_uint(json, "sends", c->sends);
        peal_json_put_uint(json, "recvs", c->recvs);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
}

static void json_rank(const struct peal_plan *plan, uint32_t rank, struct peal_json *json)
{
    peal_json_object(json);
    peal_json_put_uint(json, "rank", rank);
    peal_json_put_uint(json, "ops", rank_ops(plan, rank));
    bool has_blocks = false;
    for (uint32_t l = 0; l < peal_plan_lane_count(plan, rank); l++)
        has_blocks = has_blocks || peal_plan_lane(plan, rank, l)->block;
    if (has_blocks) {
        peal_json_put_array(json, "blocks");
        for (uint32_t l = 0; l < peal_plan_lane_count(plan, rank); l++)
            peal_json_int(json, (int64_t)peal_plan_lane(plan, rank, l)->block - 1);
        peal_json_array_end(json);
    }
    peal_json_put_array(json, "lanes");
    for (uint32_t l = 0; l < peal_plan_lane_count(plan, rank); l++) {
        const struct peal_lane *lane = peal_plan_lane(plan, rank, l);
        peal_json_array(json);
        for (uint64_t i = 0; i < lane->ops; i++)
            json_op(plan, &peal_plan_ops(plan)[lane->first_op + i], json);
        peal_json_array_end(json);
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
}

void peal_plan_dump_json(const struct peal_plan *plan, uint32_t rank, struct peal_text *out)
{
    struct ranks ranks = ranks_of(plan, rank);
    struct peal_json json;
    char hash[24];
    snprintf(hash, sizeof hash, "%016" PRIx64, plan->hash);
    peal_json_init(&json, out, 0);
    peal_json_object(&json);
    peal_json_put_string(&json, "kernel", peal_plan_string(plan, plan->kernel));
    peal_json_put_uint(&json, "nranks", plan->nranks);
    peal_json_put_string(&json, "dtype", peal_dtype_name((enum peal_dtype)plan->dtype));
    peal_json_put_uint(&json, "period", plan->period);
    peal_json_put_bool(&json, "monotone", plan->monotone);
    peal_json_put_string(&json, "contract",
                         peal_contract_info((enum peal_contract)plan->contract)->name);
    peal_json_put_string(&json, "hash", hash);
    json_tables(plan, ranks.first, &json);
    peal_json_put_array(&json, "ranks");
    for (uint32_t r = ranks.first; r < ranks.end; r++)
        json_rank(plan, r, &json);
    peal_json_array_end(&json);
    peal_json_object_end(&json);
    peal_text_puts(out, "\n");
}
