/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a counterexample: the data of an op, and one line of text made from that data alone,
 * such as "wait ready >= 2" or "x[0 +: 4] = add(x[0 +: 4], x@1[0 +: 4])". */
#include "verify/story/story.h"

#include <inttypes.h>
#include <string.h>

/* --- data ------------------------------------------------------------------------------------ */

static struct peal_verify_operand operand_of(const struct program *p, uint32_t launch,
                                             const struct peal_op *op, const struct peal_ref *ref,
                                             struct answer *a)
{
    const struct peal_plan *plan = p->plans[launch];
    struct peal_verify_operand out = {.rank = ref->rank, .rows = op->mem.rows};
    if (ref->buf == PEAL_BUF_CONST) {
        out.kind = PEAL_OPERAND_CONSTANT;
        out.constant = peal_ref_value(ref);
        return out;
    }
    out.first = peal_ref_offset(plan, ref, launch) / peal_dtype_size((enum peal_dtype)ref->dtype);
    out.count = op->mem.count;
    if (ref->buf == PEAL_BUF_SLOT) {
        out.kind = PEAL_OPERAND_SLOT;
        return out;
    }
    out.kind = PEAL_OPERAND_BUFFER;
    if (peal_plan_bufs(plan)[ref->buf].cols)
        out.row = ref->row;
    else if (ref->pitch && op->mem.rows > 1)
        out.pitch = ref->pitch;
    else {
        out.count *= op->mem.rows;
        out.rows = 1;
    }
    out.buf =
        peal_answer_text(a, "%s", peal_plan_string(plan, peal_plan_bufs(plan)[ref->buf].name));
    return out;
}

/* Order and scope, as in a text. */
static const char *ordering_of(const struct peal_op *op, struct answer *a)
{
    struct peal_text text = {0};
    peal_plan_dump_order(op, &text);
    const char *words = peal_answer_text(a, "%s", peal_text_get(&text));
    peal_text_release(&text);
    return words && *words == ' ' ? words + 1 : "";
}

static void fill_sync(const struct program *p, const struct peal_op *op, struct answer *a,
                      struct peal_verify_step *step)
{
    const struct peal_plan *plan = p->plans[step->launch];
    const struct peal_signal *signal = &peal_plan_signals(plan)[peal_op_signal(op)];
    step->signal = peal_answer_text(a, "%s", peal_plan_string(plan, signal->name));
    step->cells = signal->cells;
    step->cell_index = peal_op_cell(plan, op, step->launch) - signal->first_cell;
    step->cell_rank = op->sync.rank;
    step->value = op->sync.value;
    step->relaxed = op->flags & PEAL_OP_RELAXED;
    step->ordering = ordering_of(op, a);
    step->peeked = op->flags & PEAL_OP_HAS_REG;
    const struct peal_op *number =
        step->peeked ? peal_op_number_behind(plan, op, op->sync.reg) : NULL;
    if (number) {
        step->peeked = false;
        step->value = peal_wrap_add(step->value, peal_op_number(plan, number, step->launch));
    }
    if (peal_op_is_notify(op))
        step->relation = op->flags & PEAL_OP_SET ? "=" : "+=";
    else if (peal_op_is_wait(op))
        step->relation = op->flags & PEAL_OP_EQUAL ? "==" : ">=";
    else if (peal_op_swaps(op)) {
        step->relation = "from";
        step->value = peal_swap_expected(op->sync.value);
        step->desired = peal_swap_desired(op->sync.value);
    } else if (peal_op_is_atomic(op))
        step->relation = "+=";
    if (peal_op_is_wait(op) && !(op->flags & PEAL_OP_HAS_REG))
        step->back = op->sync.back;
}

void peal_story_fill(const struct program *p, const struct peal_op *op, struct answer *a,
                     struct peal_verify_step *step)
{
    const struct peal_plan *plan = p->plans[step->launch];
    step->kind = peal_op_info((enum peal_op_kind)op->kind)->name;
    step->peer = PEAL_NONE;
    if (peal_op_is_sync(op)) {
        fill_sync(p, op, a, step);
        return;
    }
    if (peal_op_is_fence(op))
        step->ordering = ordering_of(op, a);
    uint32_t n = peal_op_nrefs(op);
    struct peal_verify_operand *operands = peal_arena_alloc(&a->arena, (n + 1) * sizeof *operands);
    if (!operands) {
        a->failed = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct peal_op seen = peal_op_of_operand(op, i);
        operands[i] = operand_of(p, step->launch, &seen, peal_plan_refs(plan) + op->mem.ref + i, a);
        operands[i].writes = peal_op_writes(op, i);
    }
    step->operands = operands;
    step->noperands = n;
    if (peal_op_applies(op))
        step->function = peal_answer_text(a, "%s", peal_plan_fn_name(plan, op->fn));
    if (peal_op_is_own(op))
        step->function = step->kind;
    if (peal_op_is_compute(op) && op->mem.divisor > 1)
        step->divisor = op->mem.divisor;
    struct peal_effects effects = peal_op_effects(plan, op);
    step->peer = effects.peer;
    if (effects.channel != PEAL_NONE)
        step->channel = peal_answer_text(
            a, "%s", peal_plan_string(plan, peal_plan_channels(plan)[effects.channel].name));
}

/* --- text ------------------------------------------------------------------------------------ */

static void put_operand(const struct peal_verify_step *s, const struct peal_verify_operand *o,
                        struct peal_text *out)
{
    if (o->kind == PEAL_OPERAND_CONSTANT) {
        peal_text_printf(out, "%g", o->constant);
        return;
    }
    peal_text_puts(out, o->kind == PEAL_OPERAND_SLOT ? "slot" : o->buf);
    if (o->kind == PEAL_OPERAND_BUFFER && o->rank != s->rank)
        peal_text_printf(out, "@%u", o->rank);
    if (o->pitch)
        peal_text_printf(out, "[%" PRIu64 " +: %" PRIu64 ", %u rows every %" PRIu64 "]", o->first,
                         o->count, o->rows, o->pitch);
    else if (o->rows > 1 || o->row > 0)
        peal_text_printf(out, "[%u +: %u, %" PRIu64 " +: %" PRIu64 "]", o->row, o->rows, o->first,
                         o->count);
    else
        peal_text_printf(out, "[%" PRIu64 " +: %" PRIu64 "]", o->first, o->count);
}

static void put_sync(const struct peal_verify_step *s, struct peal_text *out)
{
    bool ordered = s->ordering && *s->ordering;
    peal_text_printf(out, "%s %s%s%s", s->kind, ordered ? s->ordering : "", ordered ? " " : "",
                     s->signal);
    if (s->cells > 1 || s->cell_index > 0)
        peal_text_printf(out, "[%u]", s->cell_index);
    if (s->cell_rank != s->rank)
        peal_text_printf(out, "@%u", s->cell_rank);
    if (!s->relation)
        return;
    peal_text_printf(out, " %s %s%" PRId64, s->relation, s->peeked ? "peeked + " : "", s->value);
    if (strcmp(s->relation, "from") == 0)
        peal_text_printf(out, " to %" PRId64, s->desired);
    if (s->back)
        peal_text_printf(out, " at launch - %u", s->back);
}

/* Destinations, separated by commas; returns how many. */
static uint32_t put_destinations(const struct peal_verify_step *s, struct peal_text *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->noperands; i++) {
        if (!s->operands[i].writes)
            continue;
        peal_text_puts(out, n++ ? ", " : "");
        put_operand(s, &s->operands[i], out);
    }
    return n;
}

static void put_sources(const struct peal_verify_step *s, uint32_t sources, struct peal_text *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->noperands; i++) {
        if (s->operands[i].writes)
            continue;
        if (n == 4 && sources > 6) {
            peal_text_printf(out, ", ... %u more", sources - n);
            return;
        }
        peal_text_puts(out, n++ ? ", " : "");
        put_operand(s, &s->operands[i], out);
    }
}

static void put_data(const struct peal_verify_step *s, struct peal_text *out)
{
    /* A value that is stored unchanged is written without a function. */
    bool calls = s->function && strcmp(s->function, "id") != 0;
    bool accumulates = strcmp(s->kind, "accumulate") == 0;
    uint32_t written = put_destinations(s, out), sources = s->noperands - written;
    if (accumulates)
        peal_text_printf(out, " %s= ", s->function);
    else if (written)
        peal_text_puts(out, " = ");
    if (s->peer != PEAL_NONE)
        peal_text_printf(out, "%s%s", s->kind, sources ? " " : "");
    else if (calls && !accumulates)
        peal_text_printf(out, "%s(", s->function);
    put_sources(s, sources, out);
    if (calls && !accumulates)
        peal_text_puts(out, ")");
    if (s->divisor > 1)
        peal_text_printf(out, " / %u", s->divisor);
    if (s->peer == PEAL_NONE)
        return;
    bool away = strcmp(s->kind, "send") == 0 || strcmp(s->kind, "flush") == 0;
    peal_text_printf(out, " %s %u", away ? "to" : "from", s->peer);
    if (s->channel && *s->channel)
        peal_text_printf(out, " on %s", s->channel);
}

void peal_step_text(const struct peal_verify_step *s, struct peal_text *out)
{
    static const char *const boundaries[] = {
        [PEAL_BOUNDARY_CALLER_BEFORE] = "the caller uses its buffer before the launch",
        [PEAL_BOUNDARY_CALLER_AFTER] = "the caller uses its buffer after the launch",
        [PEAL_BOUNDARY_BARRIER_NOT_ENTERED] = "has not entered the barrier",
        [PEAL_BOUNDARY_BARRIER_LEFT] = "has left the barrier"};
    if (s->boundary != PEAL_BOUNDARY_NONE) {
        peal_text_puts(out, boundaries[s->boundary]);
        return;
    }
    if (s->signal)
        put_sync(s, out);
    else if (s->kind && s->ordering) /* a fence */
        peal_text_printf(out, "%s%s%s", s->kind, *s->ordering ? " " : "", s->ordering);
    else
        put_data(s, out);
    if (s->arrives)
        peal_text_puts(out, " (arrives)");
}
