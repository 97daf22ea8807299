/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as text and as JSON. */
#include "plan/dump.h"

#include "base/base.h"

#include <inttypes.h>

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
    if (op->mem.rows > 1 || ref->row)
        peal_text_printf(out, "%u +: %u, ", ref->row, op->mem.rows);
    if (ref->phases != PEAL_NONE)
        dump_phases(plan, ref->phases, size, 0, out);
    else
        peal_text_printf(out, "%" PRIu64, ref->offset / size);
    peal_text_printf(out, " +: %" PRIu64 "]", op->mem.count);
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

static void dump_sync(const struct peal_plan *plan, uint32_t rank, const struct peal_op *op,
                      struct peal_text *out)
{
    if (op->kind == PEAL_OP_PEEK)
        peal_text_printf(out, "r%u = ", op->sync.reg);
    dump_cell(plan, rank, op, out);
    if (op->kind == PEAL_OP_PEEK)
        return;
    if (op->kind == PEAL_OP_NOTIFY)
        peal_text_puts(out, op->flags & PEAL_OP_SET ? " = " : " += ");
    else
        peal_text_puts(out, op->flags & PEAL_OP_EQUAL ? " == " : " >= ");
    if (op->flags & PEAL_OP_HAS_REG)
        peal_text_printf(out, "r%u + ", op->sync.reg);
    peal_text_printf(out, "%" PRId64, op->sync.value);
    if (op->kind == PEAL_OP_WAIT && op->sync.back)
        peal_text_printf(out, " at launch - %u", op->sync.back);
    if (op->flags & PEAL_OP_RELAXED)
        peal_text_puts(out, " relaxed");
}

static void dump_channel(const struct peal_plan *plan, uint32_t rank, const struct peal_op *op,
                         struct peal_text *out)
{
    static const char *const ports[] = {"",      " by N",      " by S",    " by E",
                                        " by W", " by parent", " by child"};
    const struct peal_channel *c = &peal_plan_channels(plan)[op->mem.channel];
    bool sending = op->kind == PEAL_OP_SEND;
    (void)rank;
    peal_text_printf(out, "%s %u", sending ? " to" : " from", sending ? c->receiver : c->sender);
    uint32_t port = c->port < PEAL_PORT_CHILD ? c->port : PEAL_PORT_CHILD;
    peal_text_puts(out, ports[port]);
    if (port == PEAL_PORT_CHILD)
        peal_text_printf(out, " %u", c->port - PEAL_PORT_CHILD);
    if (c->name)
        peal_text_printf(out, " on %s", peal_plan_string(plan, c->name));
}

static void dump_mem(const struct peal_plan *plan, uint32_t rank, const struct peal_op *op,
                     struct peal_text *out)
{
    const struct peal_ref *dst = peal_op_dst(plan, op);
    if (dst)
        dump_ref(plan, rank, op, dst, out);
    for (uint32_t i = 0; i < op->mem.also; i++) {
        peal_text_puts(out, ", ");
        dump_ref(plan, rank, op, peal_op_also(plan, op, i), out);
    }
    if (op->kind == PEAL_OP_ACCUMULATE)
        peal_text_printf(out, " %s=%s ", peal_fn_info((enum peal_fn)op->fn)->name,
                         op->flags & PEAL_OP_EXCLUSIVE ? " exclusive" : "");
    else if (dst && op->kind != PEAL_OP_RECV)
        peal_text_puts(out, " <- ");
    if (op->kind == PEAL_OP_COMPUTE)
        peal_text_printf(out, "%s(", peal_fn_info((enum peal_fn)op->fn)->name);
    for (uint32_t i = 0; i < op->mem.nsrc; i++) {
        peal_text_puts(out, i ? ", " : "");
        dump_ref(plan, rank, op, peal_op_src(plan, op, i), out);
    }
    if (op->kind == PEAL_OP_COMPUTE)
        peal_text_puts(out, ")");
    if (op->kind == PEAL_OP_COMPUTE && op->mem.divisor > 1)
        peal_text_printf(out, " / %u", op->mem.divisor);
    if (op->kind == PEAL_OP_RECV_SLOT)
        peal_text_printf(out, "%" PRIu64 " elements", op->mem.rows * op->mem.count);
    if (op->kind >= PEAL_OP_SEND)
        dump_channel(plan, rank, op, out);
}

void peal_plan_dump_op(const struct peal_plan *plan, uint32_t rank, const struct peal_op *op,
                       struct peal_text *out)
{
    peal_text_printf(out, "%s ", peal_op_info((enum peal_op_kind)op->kind)->name);
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

static void dump_head(const struct peal_plan *plan, uint32_t rank, struct peal_text *out)
{
    peal_text_printf(out, "plan %s: %u %s, %s", peal_plan_string(plan, plan->kernel), plan->nranks,
                     plan->nranks == 1 ? "rank" : "ranks",
                     peal_dtype_name((enum peal_dtype)plan->dtype));
    if (plan->reduce != PEAL_NONE)
        peal_text_printf(out, ", %s", peal_reduce_name((enum peal_reduction)plan->reduce));
    if (plan->contract)
        peal_text_printf(out, ", implements %s",
                         peal_contract_info((enum peal_contract)plan->contract)->name);
    if (plan->period > 1)
        peal_text_printf(out, ", period %u", plan->period);
    peal_text_puts(out, "\n");
    for (uint64_t i = 0; i < plan->params.count; i++) {
        const struct peal_param *p = &peal_plan_params(plan)[i];
        const int64_t *values = peal_plan_values(plan) + p->first;
        if (p->is_local)
            values += (uint64_t)(rank - plan->rank_first) * p->count;
        peal_text_printf(out, "  %s%s =", p->is_local ? "local " : "",
                         peal_plan_string(plan, p->name));
        for (uint32_t k = 0; k < p->count && k < 16; k++)
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
        if (b->alias != PEAL_NONE)
            peal_text_printf(out, " in %s",
                             peal_plan_string(plan, peal_plan_bufs(plan)[b->alias].name));
        peal_text_puts(out, "\n");
    }
    for (uint64_t i = 0; i < plan->signals.count; i++) {
        const struct peal_signal *s = &peal_plan_signals(plan)[i];
        peal_text_printf(out, "  signal %s: %u %s, %s\n", peal_plan_string(plan, s->name), s->cells,
                         s->cells == 1 ? "cell" : "cells", signal_names[s->kind]);
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

void peal_plan_dump(const struct peal_plan *plan, uint32_t rank, struct peal_text *out)
{
    uint32_t first = rank == PEAL_NONE ? plan->rank_first : rank;
    uint32_t end = rank == PEAL_NONE ? plan->rank_first + plan->rank_count : rank + 1;
    dump_head(plan, first, out);
    for (uint32_t r = first; r < end; r++)
        dump_rank(plan, r, out);
}

static void json_ref(const struct peal_plan *plan, const struct peal_ref *ref,
                     struct peal_text *out)
{
    if (ref->buf == PEAL_BUF_CONST) {
        peal_text_printf(out, "{\"const\":%.17g}", peal_ref_value(ref));
        return;
    }
    if (ref->buf == PEAL_BUF_SLOT) {
        peal_text_printf(
            out, "{\"channel\":%u,\"older\":%u,\"dtype\":\"%s\",\"offset\":%" PRIu64 "}", ref->row,
            ref->rank, peal_dtype_name((enum peal_dtype)ref->dtype), ref->offset);
        return;
    }
    peal_text_puts(out, "{\"buf\":");
    peal_text_json(out, peal_plan_string(plan, peal_plan_bufs(plan)[ref->buf].name));
    peal_text_printf(out, ",\"rank\":%u,\"row\":%u,\"dtype\":\"%s\",\"offset\":", ref->rank,
                     ref->row, peal_dtype_name((enum peal_dtype)ref->dtype));
    if (ref->phases == PEAL_NONE) {
        peal_text_printf(out, "%" PRIu64 "}", ref->offset);
        return;
    }
    for (uint32_t i = 0; i < plan->period; i++)
        peal_text_printf(out, "%s%" PRIu64, i ? "," : "[", peal_plan_phases(plan)[ref->phases + i]);
    peal_text_puts(out, "]}");
}

/* A number within its signal, or one per phase. */
static void json_cell(const struct peal_plan *plan, const struct peal_op *op, struct peal_text *out)
{
    uint32_t first = peal_plan_signals(plan)[peal_op_signal(op)].first_cell;
    peal_text_puts(out, ",\"cell\":");
    if (op->sync.phases == PEAL_NONE) {
        peal_text_printf(out, "%u", op->sync.cell - first);
        return;
    }
    for (uint32_t i = 0; i < plan->period; i++)
        peal_text_printf(out, "%s%u", i ? "," : "[", peal_op_cell(plan, op, i) - first);
    peal_text_puts(out, "]");
}

static void json_op(const struct peal_plan *plan, const struct peal_op *op, struct peal_text *out)
{
    peal_text_printf(out, "{\"op\":\"%s\"", peal_op_info((enum peal_op_kind)op->kind)->name);
    if (op->pos != PEAL_NONE) {
        const struct peal_position *p = &peal_plan_positions(plan)[op->pos];
        peal_text_puts(out, ",\"file\":");
        peal_text_json(out, peal_plan_string(plan, p->source));
        peal_text_printf(out, ",\"line\":%u", p->line);
    }
    if (peal_op_is_sync(op)) {
        const struct peal_signal *signal = &peal_plan_signals(plan)[peal_op_signal(op)];
        peal_text_puts(out, ",\"signal\":");
        peal_text_json(out, peal_plan_string(plan, signal->name));
        json_cell(plan, op, out);
        peal_text_printf(out, ",\"rank\":%u,\"value\":%" PRId64 ",\"flags\":%u", op->sync.rank,
                         op->sync.value, op->flags);
        if (op->kind == PEAL_OP_PEEK || op->flags & PEAL_OP_HAS_REG)
            peal_text_printf(out, ",\"reg\":%u", op->sync.reg);
        if (op->kind == PEAL_OP_WAIT && op->sync.back)
            peal_text_printf(out, ",\"back\":%u", op->sync.back);
    } else {
        if (op->kind == PEAL_OP_COMPUTE || op->kind == PEAL_OP_ACCUMULATE)
            peal_text_printf(out, ",\"fn\":\"%s\"", peal_fn_info((enum peal_fn)op->fn)->name);
        if (op->kind == PEAL_OP_COMPUTE && op->mem.divisor > 1)
            peal_text_printf(out, ",\"divisor\":%u", op->mem.divisor);
        if (op->kind >= PEAL_OP_SEND)
            peal_text_printf(out, ",\"channel\":%u", op->mem.channel);
        peal_text_printf(out, ",\"rows\":%u,\"count\":%" PRIu64, op->mem.rows, op->mem.count);
        const struct peal_ref *dst = peal_op_dst(plan, op);
        if (dst) {
            peal_text_puts(out, ",\"dst\":");
            json_ref(plan, dst, out);
        }
        for (uint32_t i = 0; i < op->mem.also; i++) {
            peal_text_puts(out, i ? "," : ",\"also\":[");
            json_ref(plan, peal_op_also(plan, op, i), out);
        }
        peal_text_puts(out, op->mem.also ? "]" : "");
        for (uint32_t i = 0; i < op->mem.nsrc; i++) {
            peal_text_puts(out, i ? "," : ",\"src\":[");
            json_ref(plan, peal_op_src(plan, op, i), out);
        }
        peal_text_puts(out, op->mem.nsrc ? "]" : "");
    }
    peal_text_puts(out, "}");
}

/* Lengths that differ between ranks: each of them. */
static void json_lens(const struct peal_plan *plan, uint32_t buf, struct peal_text *out)
{
    bool differ = false;
    for (uint32_t r = 1; r < plan->rank_count && !differ; r++)
        differ = peal_plan_len(plan, plan->rank_first + r, buf) !=
                 peal_plan_len(plan, plan->rank_first, buf);
    if (!differ)
        return;
    for (uint32_t r = 0; r < plan->rank_count; r++)
        peal_text_printf(out, "%s%" PRIu64, r ? "," : ",\"lens\":[",
                         peal_plan_len(plan, plan->rank_first + r, buf));
    peal_text_puts(out, "]");
}

static void json_tables(const struct peal_plan *plan, uint32_t rank, struct peal_text *out)
{
    peal_text_puts(out, ",\"bufs\":[");
    for (uint64_t i = 0; i < plan->bufs.count; i++) {
        const struct peal_buf *b = &peal_plan_bufs(plan)[i];
        peal_text_printf(out, "%s{\"name\":", i ? "," : "");
        peal_text_json(out, peal_plan_string(plan, b->name));
        peal_text_printf(out, ",\"kind\":\"%s\",\"dir\":\"%s\",\"dtype\":\"%s\",\"len\":%" PRIu64,
                         kind_names[b->kind], dir_names[b->dir],
                         peal_dtype_name((enum peal_dtype)b->dtype),
                         peal_plan_len(plan, rank, (uint32_t)i));
        if (b->cols)
            peal_text_printf(out, ",\"cols\":%u", b->cols);
        if (b->flags & PEAL_BUF_SYMMETRIC)
            peal_text_puts(out, ",\"symmetric\":true");
        json_lens(plan, (uint32_t)i, out);
        peal_text_puts(out, "}");
    }
    peal_text_puts(out, "],\"signals\":[");
    for (uint64_t i = 0; i < plan->signals.count; i++) {
        const struct peal_signal *s = &peal_plan_signals(plan)[i];
        peal_text_printf(out, "%s{\"name\":", i ? "," : "");
        peal_text_json(out, peal_plan_string(plan, s->name));
        peal_text_printf(out, ",\"kind\":\"%s\",\"cells\":%u}", signal_names[s->kind], s->cells);
    }
    peal_text_puts(out, "],\"channels\":[");
    for (uint64_t i = 0; i < plan->channels.count; i++) {
        const struct peal_channel *c = &peal_plan_channels(plan)[i];
        peal_text_printf(out, "%s{\"name\":", i ? "," : "");
        peal_text_json(out, peal_plan_string(plan, c->name));
        peal_text_printf(
            out,
            ",\"sender\":%u,\"port\":%u,\"receiver\":%u,\"depth\":%u,\"slot_bytes\":%" PRIu64
            ",\"sends\":%" PRIu64 ",\"recvs\":%" PRIu64 "}",
            c->sender, c->port, c->receiver, c->depth, c->slot_bytes, c->sends, c->recvs);
    }
    peal_text_puts(out, "]");
}

void peal_plan_dump_json(const struct peal_plan *plan, uint32_t rank, struct peal_text *out)
{
    uint32_t first = rank == PEAL_NONE ? plan->rank_first : rank;
    uint32_t end = rank == PEAL_NONE ? plan->rank_first + plan->rank_count : rank + 1;
    peal_text_puts(out, "{\"kernel\":");
    peal_text_json(out, peal_plan_string(plan, plan->kernel));
    peal_text_printf(out, ",\"nranks\":%u,\"dtype\":\"%s\",\"period\":%u,\"monotone\":%s",
                     plan->nranks, peal_dtype_name((enum peal_dtype)plan->dtype), plan->period,
                     plan->monotone ? "true" : "false");
    peal_text_printf(out, ",\"contract\":\"%s\",\"hash\":\"%016" PRIx64 "\"",
                     peal_contract_info((enum peal_contract)plan->contract)->name, plan->hash);
    json_tables(plan, first, out);
    peal_text_puts(out, ",\"ranks\":[");
    for (uint32_t r = first; r < end; r++) {
        peal_text_printf(out, "%s{\"rank\":%u,\"ops\":%" PRIu64 ",\"lanes\":[",
                         r > first ? "," : "", r, rank_ops(plan, r));
        for (uint32_t l = 0; l < peal_plan_lane_count(plan, r); l++) {
            const struct peal_lane *lane = peal_plan_lane(plan, r, l);
            peal_text_puts(out, l ? ",[" : "[");
            for (uint64_t i = 0; i < lane->ops; i++) {
                peal_text_puts(out, i ? ",\n" : "\n");
                json_op(plan, &peal_plan_ops(plan)[lane->first_op + i], out);
            }
            peal_text_puts(out, "]");
        }
        peal_text_puts(out, "]}");
    }
    peal_text_puts(out, "]}\n");
}
