/* SPDX-License-Identifier: Apache-2.0 */
/* A plan with windows and one-writer signals as MSCCL++ JSON.
 *
 * A lane is a thread block. A cell that another rank notifies is a memory channel: the k-th cell
 * between two ranks is the k-th channel of both. Each of the executor's waits takes one signal, so
 * a wait for v becomes one wait per signal up to v that no earlier wait has taken, and signals of a
 * launch that no wait takes are waited for at the lane's end. Cells between lanes of a rank are
 * semaphores. Different threads handle signals and data: a nop is needed wherever one follows the
 * other.
 */
#include "export/writer.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_OPS = 64, MAX_CHANNELS = 16, MAX_REPEATS = 64 };

/* Input, output and scratch, as the format names them. */
enum { BUFFERS = 3 };
static const char *const buffer_names[BUFFERS] = {"i", "o", "s"};

/* A cell that is used: which rank notifies it, which lane waits for it. */
struct used_cell {
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

struct mscclpp_writer {
    const struct peal_plan *plan;
    struct peal_diags *diags;
    struct peal_export_layout layout;
    struct used_cell *cells; /* [rank * cells + cell] */
    uint32_t *pairs;         /* [rank * nranks + rank] cells between two ranks, same both ways */
    uint32_t *semaphores;    /* [rank] */
    uint32_t rank, lane;
    uint32_t nops;
    bool was_data, was_sync, failed;
    struct id_list channels;    /* channels that the block uses */
    struct id_list remotes;     /* rank * BUFFERS + buffer: what the block accesses */
    struct id_list all_remotes; /* ... and what the gpu accesses */
    struct peal_json json;
};

static void refuse(struct mscclpp_writer *w, const struct peal_op *op, const char *why)
{
    if (!w->failed)
        peal_export_refuse(w->plan, w->rank, op, w->diags, why);
    w->failed = true;
}

static struct used_cell *cell_of(struct mscclpp_writer *w, uint32_t rank, uint32_t cell)
{
    return &w->cells[(uint64_t)rank * w->plan->cells + cell];
}

/* --- which lane notifies which --------------------------------------------------------------- */

static void see_sync(struct mscclpp_writer *w, const struct peal_op *op)
{
    const struct peal_signal *signal = &peal_plan_signals(w->plan)[peal_op_signal(op)];
    if (signal->kind != PEAL_SIGNAL_ONE_WRITER || op->flags || op->sync.phases != PEAL_NONE ||
        !(peal_op_is_notify(op) || peal_op_is_wait(op)) || (peal_op_is_wait(op) && op->sync.back) ||
        op->sync.cell >= w->plan->cells) {
        refuse(w, op, "only one-writer signals of one launch, with += and >=");
        return;
    }
    struct used_cell *cell = cell_of(w, op->sync.rank, op->sync.cell);
    if (peal_op_is_notify(op)) {
        cell->writer = w->rank;
        cell->total += op->sync.value;
        if (op->sync.value > MAX_REPEATS)
            refuse(w, op, "a notify of more than 64: the executor's signals add 1 each");
    } else {
        if (cell->waiter_lane != PEAL_NONE && cell->waiter_lane != w->lane)
            refuse(w, op, "two lanes wait for one cell");
        cell->waiter_lane = w->lane;
    }
}

static void see_all(struct mscclpp_writer *w)
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
        struct used_cell *cell = &w->cells[i];
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
static uint32_t channel_id(const struct mscclpp_writer *w, uint32_t rank, uint32_t peer,
                           uint32_t order)
{
    uint32_t id = order;
    for (uint32_t q = 0; q < peer; q++)
        id += w->pairs[rank * w->plan->nranks + q];
    return id;
}

/* --- ops ------------------------------------------------------------------------------------- */

static uint32_t index_of(struct mscclpp_writer *w, struct id_list *list, uint32_t value)
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

static void put_op(struct mscclpp_writer *w, const char *name)
{
    w->nops++;
    peal_json_break(&w->json, 8);
    peal_json_object(&w->json);
    peal_json_put_string(&w->json, "name", name);
}

/* The caller adds what the op needs, and ends the object. */
static void begin_op(struct mscclpp_writer *w, const char *name, bool data)
{
    bool joins = w->was_data;
    if (data)
        joins = w->was_sync;
    if (joins) {
        put_op(w, "nop");
        peal_json_object_end(&w->json);
    }
    w->was_data = data;
    w->was_sync = !data;
    put_op(w, name);
}

static void put_operand(struct mscclpp_writer *w, const struct peal_ref *ref, uint64_t count)
{
    struct peal_chunk at = peal_export_layout_place(&w->layout, ref);
    uint32_t buffer = 2;
    if (at.buffer == 'i')
        buffer = 0;
    else if (at.buffer == 'o')
        buffer = 1;
    peal_json_object(&w->json);
    if (ref->rank == w->rank)
        peal_json_put_string(&w->json, "type", buffer_names[buffer]);
    else
        peal_json_put_uint(&w->json, "buffer_id",
                           index_of(w, &w->remotes, ref->rank * BUFFERS + buffer));
    peal_json_put_uint(&w->json, "index", at.index);
    peal_json_put_uint(&w->json, "size", count / w->layout.chunk);
    peal_json_object_end(&w->json);
}

static void put_data(struct mscclpp_writer *w, const char *name, struct peal_ref dst,
                     const struct peal_ref *src, uint32_t nsrc, uint64_t count)
{
    begin_op(w, name, true);
    peal_json_put_string(&w->json, "channel_type", "memory");
    peal_json_put_array(&w->json, "src_buff");
    for (uint32_t i = 0; i < nsrc; i++)
        put_operand(w, &src[i], count);
    peal_json_array_end(&w->json);
    peal_json_put_array(&w->json, "dst_buff");
    put_operand(w, &dst, count);
    peal_json_array_end(&w->json);
    peal_json_object_end(&w->json);
}

static void write_copy(struct mscclpp_writer *w, const struct peal_op *op, struct peal_ref dst,
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
static void write_compute(struct mscclpp_writer *w, const struct peal_op *op)
{
    enum { MAX_SOURCES = 256 };
    const struct peal_plan *plan = w->plan;
    struct peal_ref own[MAX_SOURCES + 1], others[MAX_SOURCES + 1], dst = *peal_op_dst(plan, op);
    uint32_t nown = 0, nothers = 0;
    bool reduces = plan->reduce < PEAL_REDUCTIONS &&
                   op->fn == peal_reduce_fn((enum peal_reduction)plan->reduce);
    if ((op->fn != PEAL_FN_ID && !reduces) || op->mem.divisor > 1 || op->mem.more_dsts ||
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

static void put_ids(struct mscclpp_writer *w, const char *key, const uint32_t *ids, size_t count)
{
    peal_json_put_array(&w->json, key);
    for (size_t i = 0; i < count; i++)
        peal_json_uint(&w->json, ids[i]);
    peal_json_array_end(&w->json);
}

static void put_signal(struct mscclpp_writer *w, const char *name, uint32_t channel)
{
    uint32_t at = index_of(w, &w->channels, channel);
    begin_op(w, name, false);
    peal_json_put_string(&w->json, "channel_type", "memory");
    put_ids(w, "channel_ids", &at, 1);
    peal_json_object_end(&w->json);
}

static void put_semaphore(struct mscclpp_writer *w, const char *name, uint32_t number)
{
    begin_op(w, name, false);
    put_ids(w, "semaphore_ids", &number, 1);
    peal_json_object_end(&w->json);
}

static void take_signals(struct mscclpp_writer *w, struct used_cell *cell, int64_t upto)
{
    for (; cell->waited < upto; cell->waited++) {
        if (cell->writer == w->rank)
            put_semaphore(w, "sem_acquire", cell->order);
        else
            put_signal(w, "wait", channel_id(w, w->rank, cell->writer, cell->order));
    }
}

static void write_sync(struct mscclpp_writer *w, const struct peal_op *op)
{
    struct used_cell *cell = cell_of(w, op->sync.rank, op->sync.cell);
    if (peal_op_is_wait(op)) {
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

static void write_op(struct mscclpp_writer *w, const struct peal_op *op)
{
    if (peal_op_is_sync(op))
        write_sync(w, op);
    else if (peal_op_is_copy(op))
        write_copy(w, op, *peal_op_dst(w->plan, op), *peal_op_src(w->plan, op, 0));
    else if (peal_op_is_compute(op))
        write_compute(w, op);
    else
        refuse(w, op, "the executor has windows and signals, no channels, accumulates or matmuls");
}

/* --- blocks and ranks ------------------------------------------------------------------------ */

/* A list of one group, whose members share a way of access. */
static void begin_group(struct mscclpp_writer *w, unsigned indent, const char *key,
                        const char *access)
{
    peal_json_break(&w->json, indent);
    peal_json_put_array(&w->json, key);
    peal_json_object(&w->json);
    peal_json_put_string(&w->json, access, "memory");
}

static void end_group(struct mscclpp_writer *w)
{
    peal_json_object_end(&w->json);
    peal_json_array_end(&w->json);
}

static void write_lane(struct mscclpp_writer *w)
{
    const struct peal_plan *plan = w->plan;
    const struct peal_lane *lane = peal_plan_lane(plan, w->rank, w->lane);
    w->channels.len = w->remotes.len = 0;
    w->nops = 0;
    w->was_data = w->was_sync = false;
    peal_json_break(&w->json, 6);
    peal_json_object(&w->json);
    peal_json_put_uint(&w->json, "id", w->lane);
    peal_json_put_array(&w->json, "ops");
    for (uint64_t i = 0; i < lane->ops && !w->failed; i++)
        write_op(w, &peal_plan_ops(plan)[lane->first_op + i]);
    for (uint32_t c = 0; c < plan->cells && !w->failed; c++) {
        struct used_cell *cell = cell_of(w, w->rank, c);
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
    peal_json_array_end(&w->json);
    begin_group(w, 7, "channels", "channel_type");
    put_ids(w, "channel_ids", w->channels.at, w->channels.len);
    end_group(w);
    begin_group(w, 7, "remote_buffer_refs", "access_channel_type");
    peal_json_put_array(&w->json, "remote_buffer_ids");
    for (uint32_t i = 0; i < w->remotes.len; i++)
        peal_json_uint(&w->json, index_of(w, &w->all_remotes, w->remotes.at[i]));
    peal_json_array_end(&w->json);
    end_group(w);
    peal_json_object_end(&w->json);
}

/* What the rank shares with others: its channels, the buffers that it reaches, its semaphores. */
static void write_resources(struct mscclpp_writer *w)
{
    uint32_t nranks = w->plan->nranks;
    begin_group(w, 5, "channels", "channel_type");
    peal_json_put_array(&w->json, "connected_to");
    for (uint32_t q = 0; q < nranks; q++) {
        for (uint32_t k = 0; k < w->pairs[w->rank * nranks + q]; k++)
            peal_json_uint(&w->json, q);
    }
    peal_json_array_end(&w->json);
    end_group(w);
    peal_json_break(&w->json, 5);
    peal_json_put_array(&w->json, "remote_buffers");
    for (uint32_t i = 0; i < w->all_remotes.len; i++) {
        peal_json_object(&w->json);
        peal_json_put_uint(&w->json, "rank", w->all_remotes.at[i] / BUFFERS);
        peal_json_put_string(&w->json, "type", buffer_names[w->all_remotes.at[i] % BUFFERS]);
        peal_json_put_array(&w->json, "access_channel_types");
        peal_json_string(&w->json, "memory");
        peal_json_array_end(&w->json);
        peal_json_object_end(&w->json);
    }
    peal_json_array_end(&w->json);
    peal_json_break(&w->json, 5);
    peal_json_put_array(&w->json, "semaphores");
    for (uint32_t i = 0; i < w->semaphores[w->rank]; i++) {
        peal_json_object(&w->json);
        peal_json_put_uint(&w->json, "init_value", 0);
        peal_json_object_end(&w->json);
    }
    peal_json_array_end(&w->json);
}

static void write_rank(struct mscclpp_writer *w)
{
    const struct peal_plan *plan = w->plan;
    uint64_t chunk = w->layout.chunk;
    uint64_t input_len = peal_plan_len(plan, w->rank, plan->contract_in);
    uint64_t output_len = peal_plan_len(plan, w->rank, plan->contract_out);
    if (plan->contract_in == plan->contract_out && plan->contract == PEAL_CONTRACT_ALLGATHER)
        input_len /= plan->nranks;
    if (plan->contract_in == plan->contract_out && plan->contract == PEAL_CONTRACT_REDUCE_SCATTER)
        output_len /= plan->nranks;
    w->all_remotes.len = 0;
    if (!input_len || !output_len) {
        peal_diag_error(w->diags, (struct peal_pos){0},
                        "rank %u has no %s: the executor divides by its number of chunks", w->rank,
                        input_len ? "output" : "input");
        w->failed = true;
        return;
    }
    peal_json_break(&w->json, 4);
    peal_json_object(&w->json);
    peal_json_put_uint(&w->json, "id", w->rank);
    peal_json_put_uint(&w->json, "input_chunks", input_len / chunk);
    peal_json_put_uint(&w->json, "output_chunks", output_len / chunk);
    peal_json_put_uint(&w->json, "scratch_chunks", w->layout.scratch_chunks);
    peal_json_break(&w->json, 5);
    peal_json_put_array(&w->json, "threadblocks");
    for (w->lane = 0; w->lane < peal_plan_lane_count(plan, w->rank) && !w->failed; w->lane++)
        write_lane(w);
    peal_json_array_end(&w->json);
    write_resources(w);
    peal_json_object_end(&w->json);
}

static void put_head(struct mscclpp_writer *w)
{
    const struct peal_plan *plan = w->plan;
    uint64_t bytes = w->layout.chunk * peal_dtype_size((enum peal_dtype)plan->dtype), align = 16;
    while (bytes % align)
        align /= 2;
    peal_json_object(&w->json);
    peal_json_put_string(&w->json, "name", peal_plan_string(plan, plan->kernel));
    peal_json_put_string(&w->json, "collective", peal_export_layout_collective(plan));
    peal_json_put_string(&w->json, "protocol", "Simple");
    peal_json_put_bool(&w->json, "inplace", w->layout.in_place);
    peal_json_break(&w->json, 1);
    peal_json_put_bool(&w->json, "reuse_resources", false);
    peal_json_put_bool(&w->json, "use_double_scratch_buffer", false);
    peal_json_put_uint(&w->json, "buffer_alignment", align);
    peal_json_break(&w->json, 1);
    peal_json_put_uint(&w->json, "num_threads_per_block", 1024);
    peal_json_put_uint(&w->json, "min_message_size", 0);
    peal_json_put_uint(&w->json, "max_message_size", UINT64_MAX);
    peal_json_break(&w->json, 1);
    peal_json_put_array(&w->json, "gpus");
}

bool peal_mscclpp_write(const struct peal_plan *plan, struct peal_diags *diags,
                        struct peal_text *out)
{
    struct mscclpp_writer w = {.plan = plan, .diags = diags};
    peal_json_init(&w.json, out, PEAL_JSON_ONE_LINE);
    w.cells = calloc((uint64_t)plan->nranks * plan->cells + 1, sizeof *w.cells);
    w.pairs = calloc((uint64_t)plan->nranks * plan->nranks, sizeof *w.pairs);
    w.semaphores = calloc(plan->nranks, sizeof *w.semaphores);
    w.failed =
        !w.cells || !w.pairs || !w.semaphores || !peal_export_layout_find(plan, diags, &w.layout);
    if (!w.failed)
        see_all(&w);
    if (!w.failed)
        put_head(&w);
    for (w.rank = 0; w.rank < plan->nranks && !w.failed; w.rank++)
        write_rank(&w);
    if (!w.failed) {
        peal_json_array_end(&w.json);
        peal_json_object_end(&w.json);
        peal_text_puts(out, "\n");
    }
    peal_vec_release(&w.channels);
    peal_vec_release(&w.remotes);
    peal_vec_release(&w.all_remotes);
    peal_export_layout_release(&w.layout);
    free(w.cells);
    free(w.pairs);
    free(w.semaphores);
    return !w.failed && !out->failed;
}
