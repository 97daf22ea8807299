/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of a plan, one line each, as calls of the operations in text/operations.cpp. read.c reads
 * these lines: whatever is added here must be added there. */
#include "export/pto/pto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct kernel_writer {
    const struct pto_window *window;
    const struct peal_plan *plan;
    struct peal_diags *diags;
    struct peal_text *out;
    int64_t *added;         /* like window->totals, for what has been written so far */
    uint64_t *sent, *taken; /* [channel] messages so far */
    uint64_t *given;        /* [channel] slots freed so far */
    uint32_t rank;
    const struct peal_op *op; /* being written */
    bool failed;
};

static void refuse(struct kernel_writer *w, const char *why)
{
    if (!w->failed)
        peal_export_refuse(w->plan, w->rank, w->op, w->diags, why);
    w->failed = true;
}

/* --- operands -------------------------------------------------------------------------------- */

static void put_operand(struct kernel_writer *w, const struct peal_ref *ref, uint32_t row)
{
    uint64_t size = peal_dtype_size((enum peal_dtype)w->plan->dtype);
    if (ref->dtype != w->plan->dtype) {
        refuse(w, "operands of one type only");
        return;
    }
    if (ref->buf == PEAL_BUF_CONST) {
        refuse(w, "constants cannot be operands");
        return;
    }
    if (ref->buf == PEAL_BUF_SLOT) {
        uint64_t message = w->given[ref->row] + ref->rank;
        peal_text_printf(w->out, "Slot(r, c%u, %" PRIu64 ", %" PRIu64 ")", ref->row, message,
                         ref->offset / size);
        return;
    }
    peal_text_printf(w->out, "At(r, %u, ", ref->rank);
    peal_pto_buf_name(w->plan, ref->buf, w->out);
    if (ref->phases == PEAL_NONE) {
        peal_text_printf(w->out, " + %" PRIu64 ")",
                         peal_ref_start(w->plan, w->op, ref, 0, row) / size);
        return;
    }
    peal_text_puts(w->out, " + Pick(r");
    for (uint32_t phase = 0; phase < w->plan->period; phase++)
        peal_text_printf(w->out, ", %" PRIu64,
                         peal_ref_start(w->plan, w->op, ref, phase, row) / size);
    peal_text_puts(w->out, "))");
}

static void end_line(struct kernel_writer *w)
{
    peal_text_puts(w->out, ");");
    if (w->op->pos != PEAL_NONE) {
        const struct peal_position *at = &peal_plan_positions(w->plan)[w->op->pos];
        peal_text_puts(w->out, " // ");
        for (const char *c = peal_plan_string(w->plan, at->source); *c; c++)
            peal_text_add(w->out, *c >= ' ' && *c != '\\' ? c : "_", 1);
        peal_text_printf(w->out, ":%u", at->line);
    }
    peal_text_puts(w->out, "\n");
}

/* --- data ------------------------------------------------------------------------------------ */

static const char *function_name(enum peal_fn fn)
{
    switch ((int)fn) {
    case PEAL_FN_ADD:
        return "Add";
    case PEAL_FN_MUL:
        return "Mul";
    case PEAL_FN_MAXIMUM:
        return "Max";
    case PEAL_FN_MINIMUM:
        return "Min";
    default:
        return NULL;
    }
}

static void put_copy(struct kernel_writer *w, const struct peal_ref *dst,
                     const struct peal_ref *src)
{
    for (uint32_t row = 0; row < w->op->mem.rows; row++) {
        peal_text_printf(w->out, "    Copy(%" PRIu64 ", ", w->op->mem.count);
        put_operand(w, dst, row);
        peal_text_puts(w->out, ", ");
        put_operand(w, src, row);
        end_line(w);
    }
}

/* `first` is a source before the op's own, or NULL. */
static void put_combine(struct kernel_writer *w, const struct peal_ref *first)
{
    const struct peal_op *op = w->op;
    const char *name = function_name((enum peal_fn)op->fn);
    if (!name) {
        refuse(w, "only sums, products, maxima and minima");
        return;
    }
    for (uint32_t row = 0; row < op->mem.rows; row++) {
        peal_text_printf(w->out, "    Combine<%s>(%" PRIu64 ", ", name, op->mem.count);
        put_operand(w, peal_op_dst(w->plan, op), row);
        if (first) {
            peal_text_puts(w->out, ", ");
            put_operand(w, first, row);
        }
        for (uint32_t i = 0; i < op->mem.nsrc; i++) {
            peal_text_puts(w->out, ", ");
            put_operand(w, peal_op_src(w->plan, op, i), row);
        }
        end_line(w);
    }
}

static void put_compute(struct kernel_writer *w)
{
    const struct peal_op *op = w->op;
    if (op->mem.divisor > 1) {
        refuse(w, "an average needs a division");
        return;
    }
    if (op->flags & PEAL_OP_OUTSIDE) {
        refuse(w, "it is a function outside the plan");
        return;
    }
    if (op->fn == PEAL_FN_ID)
        put_copy(w, peal_op_dst(w->plan, op), peal_op_src(w->plan, op, 0));
    else
        put_combine(w, NULL);
    for (uint32_t i = 0; i < op->mem.more_dsts; i++)
        put_copy(w, peal_op_more_dst(w->plan, op, i), peal_op_dst(w->plan, op));
}

static void put_accumulate(struct kernel_writer *w)
{
    if (w->op->flags & PEAL_OP_EXCLUSIVE)
        put_combine(w, peal_op_dst(w->plan, w->op));
    else
        refuse(w, "only an accumulate that is 'exclusive': the engine has no atomic one for all "
                  "functions");
}

/* --- messages -------------------------------------------------------------------------------- */

static void put_message(struct kernel_writer *w)
{
    const struct peal_op *op = w->op;
    uint32_t c = op->mem.channel;
    if (op->mem.rows > 1 && (peal_op_sends(op) || peal_op_is_recv(op))) {
        refuse(w, "a message is one row");
        return;
    }
    if (peal_op_sends(op)) {
        peal_text_printf(w->out, "    Send(r, c%u, %" PRIu64 ", %" PRIu64 ", ", c, w->sent[c]++,
                         op->mem.count);
        put_operand(w, peal_op_src(w->plan, op, 0), 0);
    } else if (peal_op_is_recv(op)) {
        if (w->given[c] != w->taken[c])
            refuse(w, "a message is received while an earlier one is still in its slot");
        peal_text_printf(w->out, "    Receive(r, c%u, %" PRIu64 ", %" PRIu64 ", ", c, w->taken[c]++,
                         op->mem.count);
        put_operand(w, peal_op_dst(w->plan, op), 0);
        w->given[c]++;
    } else if (peal_op_holds(op)) {
        peal_text_printf(w->out, "    Take(r, c%u, %" PRIu64, c, w->taken[c]++);
    } else {
        peal_text_printf(w->out, "    Give(r, c%u, %" PRIu64, c, w->given[c]++);
    }
    end_line(w);
}

/* --- cells ----------------------------------------------------------------------------------- */

/* What a notify adds in a phase; counts it. */
static int64_t count_notify(struct kernel_writer *w, uint32_t phase)
{
    const struct peal_op *op = w->op;
    const struct peal_plan *plan = w->plan;
    uint64_t cell = (uint64_t)op->sync.rank * plan->cells + peal_op_cell(plan, op, phase);
    int64_t *total = &w->added[cell * plan->period + phase];
    bool one = peal_plan_signals(plan)[peal_op_signal(op)].kind == PEAL_SIGNAL_ONE_WRITER;
    int64_t amount;
    if (one)
        amount = (int64_t)op->sync.after - *total;
    else
        amount = op->sync.value;
    *total += amount;
    return amount;
}

/* Is the awaited value ever added in the launch that is meant? */
static void check_wait(struct kernel_writer *w, uint32_t phase)
{
    uint32_t period = w->plan->period;
    uint32_t cell = peal_op_cell(w->plan, w->op, phase);
    uint32_t then = (phase + period - w->op->sync.back % period) % period;
    if (w->op->sync.value > peal_pto_total(w->window, w->rank, cell, then))
        refuse(w, "more is waited for than a launch ever adds");
}

static void put_sync_line(struct kernel_writer *w, uint32_t phase, int64_t amount)
{
    const struct peal_op *op = w->op;
    uint32_t cell = peal_op_cell(w->plan, op, phase);
    peal_text_puts(w->out, "    ");
    if (op->sync.phases != PEAL_NONE)
        peal_text_printf(w->out, "if (r.launch %% kPeriod == %u) ", phase);
    if (peal_op_is_notify(op)) {
        peal_text_printf(w->out, "Notify(r, %u, %u, %" PRId64, op->sync.rank, cell, amount);
    } else {
        peal_text_printf(w->out, "Wait(r, %u, %" PRId64 ", %u", cell, op->sync.value,
                         op->sync.back);
        for (uint32_t i = 0; i < w->plan->period; i++)
            peal_text_printf(w->out, ", %" PRId64, peal_pto_total(w->window, w->rank, cell, i));
    }
    end_line(w);
}

/* What a notify adds in every launch. */
static int64_t amount_of_notify(struct kernel_writer *w)
{
    int64_t amount = count_notify(w, 0);
    for (uint32_t phase = 1; phase < w->plan->period; phase++) {
        if (count_notify(w, phase) != amount)
            refuse(w, "it adds another amount in other launches");
    }
    return amount;
}

/* A cell that depends on the launch has a line for every phase. */
static void put_sync(struct kernel_writer *w)
{
    const struct peal_op *op = w->op;
    bool notifies = peal_op_is_notify(op);
    int64_t amount = notifies ? amount_of_notify(w) : op->sync.value;
    if (amount <= 0)
        return; /* adds nothing, or waits for nothing */
    for (uint32_t phase = 0; phase < w->plan->period; phase++) {
        if (!notifies)
            check_wait(w, phase);
        if (phase == 0 || op->sync.phases != PEAL_NONE)
            put_sync_line(w, phase, amount);
    }
}

static void put_op(struct kernel_writer *w)
{
    if (peal_op_is_sync(w->op))
        put_sync(w);
    else if (peal_op_is_copy(w->op))
        put_copy(w, peal_op_dst(w->plan, w->op), peal_op_src(w->plan, w->op, 0));
    else if (peal_op_is_compute(w->op))
        put_compute(w);
    else if (peal_op_accumulates(w->op))
        put_accumulate(w);
    else if (peal_op_has_channel(w->op))
        put_message(w);
    else
        refuse(w, "the engine's templates have nothing like it");
}

/* --- the file -------------------------------------------------------------------------------- */

static void put_channels(struct kernel_writer *w)
{
    for (uint32_t i = 0; i < w->plan->channels.count; i++) {
        const struct peal_channel *channel = &peal_plan_channels(w->plan)[i];
        const struct pto_channel *at = &w->window->channels[i];
        peal_text_printf(w->out,
                         "constexpr Channel c%u = {%u, %u, %u, %u, %u, %" PRIu64 ", %" PRIu64
                         ", %" PRIu64 "};\n",
                         i, channel->sender, channel->receiver, at->full, at->free, channel->depth,
                         channel->sends, at->slots, at->slot);
    }
}

static void put_blocks(struct kernel_writer *w)
{
    const struct peal_plan *plan = w->plan;
    for (w->rank = 0; w->rank < plan->nranks; w->rank++) {
        for (uint32_t l = 0; l < peal_plan_lane_count(plan, w->rank); l++) {
            const struct peal_lane *lane = peal_plan_lane(plan, w->rank, l);
            peal_text_printf(w->out, "\nAICORE inline void Rank%uBlock%u(const Run &r)\n{\n",
                             w->rank, l);
            if (!lane->ops)
                peal_text_puts(w->out, "    (void)r;\n");
            for (uint64_t i = 0; i < lane->ops && !w->failed; i++) {
                w->op = &peal_plan_ops(plan)[lane->first_op + i];
                put_op(w);
            }
            peal_text_puts(w->out, "    pipe_barrier(PIPE_ALL);\n}\n");
        }
    }
}

static void put_entrance(struct kernel_writer *w, const char *name)
{
    peal_text_puts(w->out, "\nAICORE inline void RunOne(const Run &r, int32_t block)\n{\n"
                           "    switch (r.rank * kBlocks + block) {\n");
    for (uint32_t r = 0; r < w->plan->nranks; r++) {
        for (uint32_t l = 0; l < peal_plan_lane_count(w->plan, r); l++)
            peal_text_printf(w->out, "    case %u:\n        Rank%uBlock%u(r);\n        break;\n",
                             r * w->window->blocks + l, r, l);
    }
    peal_text_printf(
        w->out,
        "    default:\n        break;\n    }\n}\n\n} // namespace\n\n"
        "#if defined(__CPU_SIM)\n"
        "void RunBlock(uint64_t *windows, int32_t rank, int32_t block, int64_t launch)\n{\n"
        "    RunOne(Run{windows, rank, launch}, block);\n}\n"
        "#else\n"
        "extern \"C\" __global__ AICORE void %s_kernel(__gm__ uint64_t *windows, int32_t rank, "
        "int64_t launch)\n{\n"
        "    RunOne(Run{windows, rank, launch}, static_cast<int32_t>(get_block_idx()));\n}\n\n"
        "void StartBlocks(uint64_t *windows, int32_t rank, int64_t launch, void *stream)\n{\n"
        "    %s_kernel<<<kBlocks, nullptr, stream>>>(windows, rank, launch);\n}\n"
        "#endif\n\n} // namespace pto_%s\n",
        name, name, name);
}

bool peal_pto_kernel(const struct pto_window *window, const char *name, struct peal_diags *diags,
                     struct peal_text *out)
{
    const struct peal_plan *plan = window->plan;
    uint64_t totals = (uint64_t)plan->nranks * plan->cells * plan->period;
    struct kernel_writer w = {.window = window, .plan = plan, .diags = diags, .out = out};
    w.added = calloc(totals + 1, sizeof *w.added);
    w.sent = calloc(3 * plan->channels.count + 1, sizeof *w.sent);
    if (w.added && w.sent) {
        w.taken = w.sent + plan->channels.count;
        w.given = w.taken + plan->channels.count;
        peal_pto_text("operations", name, out);
        peal_text_puts(out, "\n");
        put_channels(&w);
        put_blocks(&w);
        put_entrance(&w, name);
    } else {
        peal_diag_error(diags, (struct peal_pos){0}, "out of memory");
        w.failed = true;
    }
    free(w.added);
    free(w.sent);
    return !w.failed && !out->failed;
}
