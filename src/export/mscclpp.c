/* SPDX-License-Identifier: Apache-2.0 */
/* A plan with windows and one-writer signals as MSCCL++ JSON.
 *
 * A lane is a thread block. A cell that another rank notifies is a memory channel: the k-th cell
 * between two ranks is the k-th channel of both. Each of the executor's waits takes one signal, so
 * a wait for v becomes as many waits as are missing to v, and signals of a launch that no wait
 * takes are waited for at the lane's end. Cells between lanes of a rank are semaphores. Different
 * threads handle signals and data: a nop is needed wherever one follows the other.
 */
#include "export/writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPS = 64, MAX_CHANNELS = 16, MAX_REPEATS = 64 };

/* A cell that is used: which rank notifies it, which lane waits for it. */
struct cell {
    uint32_t writer;      /* rank, PEAL_NONE = none */
    uint32_t waiter_lane; /* lane of the rank, PEAL_NONE = none */
    uint32_t order;       /* among the cells between the two ranks, or the rank's semaphores */
    int64_t total, waited;
};

/* Numbers in the order of first use; grows like a PEAL_VEC. */
struct id_list {
    uint32_t *at;
    size_t len, cap;
};

struct writer {
    const struct peal_plan *plan;
    struct peal_diags *diags;
    struct peal_export_layout layout;
    struct peal_text *out;
    struct cell *cells;   /* [rank * cells + cell] */
    uint32_t *pairs;      /* [rank * nranks + rank] cells between two ranks, same both ways */
    uint32_t *semaphores; /* [rank] */
    uint32_t rank, lane;
    uint32_t nops;
    bool was_data, was_sync, failed;
    struct id_list channels;    /* channels that the block uses */
    struct id_list remotes;     /* rank * 3 + buffer: what the block accesses */
    struct id_list all_remotes; /* ... and what the gpu accesses */
    struct peal_text ops;
};

static void refuse(struct writer *w, const struct peal_op *op, const char *why)
{
    if (!w->failed)
        peal_export_refuse(w->plan, w->rank, op, w->diags, why);
    w->failed = true;
}

static struct cell *cell_of(struct writer *w, uint32_t rank, uint32_t cell)
{
    return &w->cells[(uint64_t)rank * w->plan->cells + cell];
}

/* --- which lane notifies which --------------------------------------------------------------- */

static void see_sync(struct writer *w, const struct peal_op *op)
{
    const struct peal_signal *signal = &peal_plan_signals(w->plan)[peal_op_signal(op)];
    if (signal->kind != PEAL_SIGNAL_ONE_WRITER || op->flags || op->sync.phases != PEAL_NONE ||
        op->kind == PEAL_OP_PEEK || (op->kind == PEAL_OP_WAIT && op->sync.back) ||
        op->sync.cell >= w->plan->cells) {
        refuse(w, op, "only one-writer signals of one launch, with += and >=");
        return;
    }
    struct cell *cell = cell_of(w, op->sync.rank, op->sync.cell);
    if (op->kind == PEAL_OP_NOTIFY) {
        cell->writer = w->rank;
        cell->total += op->sync.value;
        if (op->sync.value > MAX_REPEATS)
            refuse(w, op, "a signal adds 1 there");
    } else {
        if (cell->waiter_lane != PEAL_NONE && cell->waiter_lane != w->lane)
            refuse(w, op, "two lanes wait for one cell");
        cell->waiter_lane = w->lane;
    }
}

static void see_all(struct writer *w)
{
    const struct peal_plan *plan = w->plan;
    uint64_t ncells = (uint64_t)plan->nranks * plan->cells;
    for (uint64_t i = 0; i < ncells; i++)
        w->cells[i].writer = w->cells[i].waiter_lane = PEAL_NONE;
    for (w->rank = 0; w->rank < plan->nranks; w->rank++) {
        for (w->lane = 0; w->lane < peal_plan_lane_count(plan, w->rank); w->lane++) {
            const struct peal_lane *lane = peal_plan_lane(plan, w->rank, w->lane);
            for (uint64_t i = 0; i < lane->ops; i++) {
                const struct peal_op *op = &peal_plan_ops(plan)[lane->first_op + i];
                if (peal_op_is_sync(op))
                    see_sync(w, op);
            }
        }
    }
    for (uint64_t i = 0; i < ncells; i++) {
        struct cell *cell = &w->cells[i];
        uint32_t owner = (uint32_t)(i / (plan->cells ? plan->cells : 1));
        if (cell->writer == PEAL_NONE || cell->waiter_lane == PEAL_NONE)
            continue;
        if (cell->writer == owner) {
            cell->order = w->semaphores[owner]++;
            continue;
        }
        cell->order = w->pairs[owner * plan->nranks + cell->writer]++;
        w->pairs[cell->writer * plan->nranks + owner]++;
    }
}

/* Channels of a rank are listed peer after peer. */
static uint32_t channel_id(const struct writer *w, uint32_t rank, uint32_t peer, uint32_t order)
{
    uint32_t id = order;
    for (uint32_t q = 0; q < peer; q++)
        id += w->pairs[rank * w->plan->nranks + q];
    return id;
}

/* --- ops ------------------------------------------------------------------------------------- */

static uint32_t index_of(struct writer *w, struct id_list *list, uint32_t value)
{
    for (uint32_t i = 0; i < list->len; i++) {
        if (list->at[i] == value)
            return i;
    }
    w->failed = w->failed || !peal_vec_push(list, value);
    if (list->len)
        return (uint32_t)list->len - 1;
    return 0;
}

static void begin_op(struct writer *w, bool data)
{
    bool joins;
    if (data)
        joins = w->was_sync;
    else
        joins = w->was_data;
    if (joins)
        peal_text_printf(&w->ops, "%s{\"name\": \"nop\"}", w->nops++ ? ",\n        " : "");
    w->was_data = data;
    w->was_sync = !data;
    if (w->nops++)
        peal_text_puts(&w->ops, ",\n        ");
}

static void put_operand(struct writer *w, const struct peal_ref *ref, uint64_t count)
{
    struct peal_chunk at = peal_export_layout_place(&w->layout, ref);
    uint32_t buffer = 2;
    if (at.buffer == 'i')
        buffer = 0;
    else if (at.buffer == 'o')
        buffer = 1;
    if (ref->rank == w->rank) {
        peal_text_printf(&w->ops, "{\"type\": \"%c\", ", at.buffer);
    } else {
        uint32_t id = index_of(w, &w->remotes, ref->rank * 3 + buffer);
        peal_text_printf(&w->ops, "{\"buffer_id\": %u, ", id);
    }
    peal_text_printf(&w->ops, "\"index\": %" PRIu64 ", \"size\": %" PRIu64 "}", at.index,
                     count / w->layout.chunk);
}

static void put_data(struct writer *w, const char *name, struct peal_ref dst,
                     const struct peal_ref *src, uint32_t nsrc, uint64_t count)
{
    begin_op(w, true);
    peal_text_printf(&w->ops, "{\"name\": \"%s\", \"channel_type\": \"memory\", \"src_buff\": [",
                     name);
    for (uint32_t i = 0; i < nsrc; i++) {
        if (i)
            peal_text_puts(&w->ops, ", ");
        put_operand(w, &src[i], count);
    }
    peal_text_puts(&w->ops, "], \"dst_buff\": [");
    put_operand(w, &dst, count);
    peal_text_puts(&w->ops, "]}");
}

static void write_copy(struct writer *w, const struct peal_op *op, struct peal_ref dst,
                       struct peal_ref src)
{
    bool to = dst.rank != w->rank, from = src.rank != w->rank;
    if (to && from) {
        refuse(w, op, "both sides are other ranks'");
        return;
    }
    struct peal_chunk a = peal_export_layout_place(&w->layout, &dst);
    struct peal_chunk b = peal_export_layout_place(&w->layout, &src);
    if (from && a.index != b.index) {
        refuse(w, op, "the executor's get swaps its offsets: only equal ones can be written");
        return;
    }
    const char *name = from ? "get" : "copy";
    if (to)
        name = "put";
    put_data(w, name, dst, &src, 1, op->mem.count);
}

/* Own operands first, as the executor takes them; then those of other ranks. */
static void write_compute(struct writer *w, const struct peal_op *op)
{
    enum { MAX_SOURCES = 256 };
    const struct peal_plan *plan = w->plan;
    struct peal_ref own[MAX_SOURCES + 1], others[MAX_SOURCES + 1], dst = *peal_op_dst(plan, op);
    uint32_t nown = 0, nothers = 0;
    bool reduces = plan->reduce < PEAL_REDUCTIONS &&
                   op->fn == peal_reduce_fn((enum peal_reduction)plan->reduce);
    if ((op->fn != PEAL_FN_ID && !reduces) || op->mem.divisor > 1 || op->mem.also ||
        op->mem.nsrc > MAX_SOURCES || dst.rank != w->rank) {
        refuse(w, op, "only the collective's own reduction, into one place of this rank");
        return;
    }
    for (uint32_t i = 0; i < op->mem.nsrc; i++) {
        struct peal_ref src = *peal_op_src(plan, op, i);
        if (src.rank == w->rank)
            own[nown++] = src;
        else
            others[nothers++] = src;
    }
    if (nown == 0) {
        write_copy(w, op, dst, others[0]);
        own[nown++] = dst;
        memmove(others, others + 1, --nothers * sizeof *others);
    } else if (nown > 1) {
        put_data(w, "re", dst, own, nown, op->mem.count);
        own[0] = dst;
    } else if (nothers == 0) {
        write_copy(w, op, dst, own[0]);
    }
    if (nothers && !w->failed) {
        memmove(others + 1, others, nothers * sizeof *others);
        others[0] = own[0];
        put_data(w, "rre", dst, others, nothers + 1, op->mem.count);
    }
}

static void put_signal(struct writer *w, const char *name, uint32_t channel)
{
    uint32_t at = index_of(w, &w->channels, channel);
    begin_op(w, false);
    peal_text_printf(&w->ops,
                     "{\"name\": \"%s\", \"channel_type\": \"memory\", \"channel_ids\": [%u]}",
                     name, at);
}

static void put_semaphore(struct writer *w, const char *name, uint32_t number)
{
    begin_op(w, false);
    peal_text_printf(&w->ops, "{\"name\": \"%s\", \"semaphore_ids\": [%u]}", name, number);
}

static void take_signals(struct writer *w, struct cell *cell, int64_t upto)
{
    for (; cell->waited < upto; cell->waited++) {
        if (cell->writer == w->rank)
            put_semaphore(w, "sem_acquire", cell->order);
        else
            put_signal(w, "wait", channel_id(w, w->rank, cell->writer, cell->order));
    }
}

static void write_sync(struct writer *w, const struct peal_op *op)
{
    struct cell *cell = cell_of(w, op->sync.rank, op->sync.cell);
    if (op->kind == PEAL_OP_WAIT) {
        if (op->sync.value > cell->total)
            refuse(w, op, "more is waited for than is ever signalled");
        else
            take_signals(w, cell, op->sync.value);
        return;
    }
    if (cell->waiter_lane == PEAL_NONE)
        return;
    for (int64_t i = 0; i < op->sync.value; i++) {
        if (op->sync.rank == w->rank)
            put_semaphore(w, "sem_release", cell->order);
        else
            put_signal(w, "signal", channel_id(w, w->rank, op->sync.rank, cell->order));
    }
}

static void write_op(struct writer *w, const struct peal_op *op)
{
    if (peal_op_is_sync(op))
        write_sync(w, op);
    else if (op->kind == PEAL_OP_COPY)
        write_copy(w, op, *peal_op_dst(w->plan, op), *peal_op_src(w->plan, op, 0));
    else if (op->kind == PEAL_OP_COMPUTE)
        write_compute(w, op);
    else
        refuse(w, op, "the executor has windows and signals, no channels, accumulates or matmuls");
}

/* --- blocks and ranks ------------------------------------------------------------------------ */

static void put_ids(struct peal_text *out, const uint32_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        peal_text_printf(out, "%s%u", i ? ", " : "", at[i]);
}

static void write_lane(struct writer *w)
{
    const struct peal_plan *plan = w->plan;
    const struct peal_lane *lane = peal_plan_lane(plan, w->rank, w->lane);
    w->channels.len = w->remotes.len = 0;
    w->nops = 0;
    w->was_data = w->was_sync = false;
    w->ops.len = 0;
    for (uint64_t i = 0; i < lane->ops; i++) {
        if (w->failed)
            break;
        write_op(w, &peal_plan_ops(plan)[lane->first_op + i]);
    }
    for (uint32_t c = 0; c < plan->cells; c++) {
        if (w->failed)
            break;
        struct cell *cell = cell_of(w, w->rank, c);
        if (cell->writer != PEAL_NONE && cell->waiter_lane == w->lane)
            take_signals(w, cell, cell->total);
    }
    if (!w->failed && (w->nops > MAX_OPS || w->channels.len > MAX_CHANNELS)) {
        peal_diag_error(w->diags, (struct peal_pos){0},
                        "rank %u needs %u ops and %zu channels in a thread block; the executor has "
                        "%d and %d",
                        w->rank, w->nops, w->channels.len, MAX_OPS, MAX_CHANNELS);
        w->failed = true;
    }
    peal_text_printf(w->out, "%s\n      {\"id\": %u, \"ops\": [\n        ", w->lane ? "," : "",
                     w->lane);
    peal_text_add(w->out, peal_text_get(&w->ops), w->ops.len);
    peal_text_puts(w->out,
                   "],\n       \"channels\": [{\"channel_type\": \"memory\", \"channel_ids\": [");
    put_ids(w->out, w->channels.at, w->channels.len);
    peal_text_puts(w->out,
                   "]}],\n       \"remote_buffer_refs\": [{\"access_channel_type\": \"memory\", "
                   "\"remote_buffer_ids\": [");
    for (uint32_t i = 0; i < w->remotes.len; i++)
        peal_text_printf(w->out, "%s%u", i ? ", " : "",
                         index_of(w, &w->all_remotes, w->remotes.at[i]));
    peal_text_puts(w->out, "]}]}");
}

static void write_rank(struct writer *w)
{
    const struct peal_plan *plan = w->plan;
    uint64_t chunk = w->layout.chunk;
    uint64_t in = peal_plan_len(plan, w->rank, plan->contract_in);
    uint64_t to = peal_plan_len(plan, w->rank, plan->contract_out);
    if (plan->contract_in == plan->contract_out && plan->contract == PEAL_CONTRACT_ALLGATHER)
        in /= plan->nranks;
    if (plan->contract_in == plan->contract_out && plan->contract == PEAL_CONTRACT_REDUCE_SCATTER)
        to /= plan->nranks;
    w->all_remotes.len = 0;
    if (!in || !to) {
        peal_diag_error(w->diags, (struct peal_pos){0},
                        "rank %u has no %s: the executor divides by its number of chunks", w->rank,
                        in ? "output" : "input");
        w->failed = true;
        return;
    }
    peal_text_printf(w->out,
                     "%s\n    {\"id\": %u, \"input_chunks\": %" PRIu64
                     ", \"output_chunks\": %" PRIu64 ", \"scratch_chunks\": %" PRIu64
                     ",\n     \"threadblocks\": [",
                     w->rank ? "," : "", w->rank, in / chunk, to / chunk, w->layout.scratch_chunks);
    for (w->lane = 0; w->lane < peal_plan_lane_count(plan, w->rank); w->lane++) {
        if (w->failed)
            break;
        write_lane(w);
    }
    peal_text_puts(w->out,
                   "],\n     \"channels\": [{\"channel_type\": \"memory\", \"connected_to\": [");
    bool first = true;
    for (uint32_t q = 0; q < plan->nranks; q++) {
        for (uint32_t k = 0; k < w->pairs[w->rank * plan->nranks + q]; k++, first = false)
            peal_text_printf(w->out, "%s%u", first ? "" : ", ", q);
    }
    peal_text_puts(w->out, "]}],\n     \"remote_buffers\": [");
    for (uint32_t i = 0; i < w->all_remotes.len; i++)
        peal_text_printf(
            w->out, "%s{\"rank\": %u, \"type\": \"%c\", \"access_channel_types\": [\"memory\"]}",
            i ? ", " : "", w->all_remotes.at[i] / 3, "ios"[w->all_remotes.at[i] % 3]);
    peal_text_puts(w->out, "],\n     \"semaphores\": [");
    for (uint32_t i = 0; i < w->semaphores[w->rank]; i++)
        peal_text_printf(w->out, "%s{\"init_value\": 0}", i ? ", " : "");
    peal_text_puts(w->out, "]}");
}

static void put_head(struct writer *w)
{
    const struct peal_plan *plan = w->plan;
    uint64_t bytes = w->layout.chunk * peal_dtype_size((enum peal_dtype)plan->dtype), align = 16;
    while (bytes % align)
        align /= 2;
    peal_text_puts(w->out, "{\"name\": ");
    struct peal_json name;
    peal_json_init(&name, w->out, PEAL_JSON_ONE_LINE);
    peal_json_string(&name, peal_plan_string(plan, plan->kernel));
    peal_text_printf(w->out,
                     ", \"collective\": \"%s\", \"protocol\": \"Simple\", \"inplace\": %s,\n "
                     "\"reuse_resources\": false, \"use_double_scratch_buffer\": false, "
                     "\"buffer_alignment\": %" PRIu64 ",\n \"num_threads_per_block\": 1024, "
                     "\"min_message_size\": 0, \"max_message_size\": 18446744073709551615,\n "
                     "\"gpus\": [",
                     peal_export_layout_collective(plan), w->layout.in_place ? "true" : "false",
                     align);
}

bool peal_mscclpp_write(const struct peal_plan *plan, struct peal_diags *diags,
                        struct peal_text *out)
{
    struct writer w = {.plan = plan, .diags = diags, .out = out};
    w.cells = calloc((uint64_t)plan->nranks * plan->cells + 1, sizeof *w.cells);
    w.pairs = calloc((uint64_t)plan->nranks * plan->nranks, sizeof *w.pairs);
    w.semaphores = calloc(plan->nranks, sizeof *w.semaphores);
    w.failed =
        !w.cells || !w.pairs || !w.semaphores || !peal_export_layout_find(plan, diags, &w.layout);
    if (!w.failed)
        see_all(&w);
    if (!w.failed)
        put_head(&w);
    for (w.rank = 0; w.rank < plan->nranks; w.rank++) {
        if (w.failed)
            break;
        write_rank(&w);
    }
    peal_text_puts(out, "]}\n");
    peal_vec_release(&w.channels);
    peal_vec_release(&w.remotes);
    peal_vec_release(&w.all_remotes);
    peal_text_release(&w.ops);
    peal_export_layout_release(&w.layout);
    free(w.cells);
    free(w.pairs);
    free(w.semaphores);
    return !w.failed && !out->failed;
}
