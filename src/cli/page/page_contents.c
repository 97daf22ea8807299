/* SPDX-License-Identifier: Apache-2.0 */
/* The replay behind page_contents.h: each op reads its operands as ranges, combines them and stores
 * the result.
 *
 * Memory and messages are lists of ranges with a text each (page_stretch.h), not bytes: a replay
 * costs as much as there are ranges, whatever their length. A buffer whose list is empty has not
 * been written yet. Inputs get new names in each launch (x, x', ...), when the rank first executes
 * an op of it.
 *
 * A channel's queue keeps the payloads of all its messages. `received` is the next one to take,
 * `freed` the first one whose slot is in use: an operand that is a slot counts from there.
 *
 * Only touched buffers are shown; others are replayed without being shown. The replay follows the
 * order of the calls and checks nothing. If memory runs out, the page fails, and the contents
 * stay incomplete.
 */
#include "cli/page/page_contents.h"
#include "cli/page/page_stretch.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 64 }; /* of an operand: further rows are not shown */

struct page_queue {
    struct peal_stretches *payloads;
    size_t len, cap;
    size_t received, freed;
};

struct peal_contents {
    struct peal_page *page;
    const struct peal_plan *plan;
    struct peal_stretches *memory; /* [rank * bufs + buf], in bytes; empty = nothing known yet */
    uint32_t *shown;               /* the same index: the page's memory, or PEAL_PAGE_NONE */
    bool *touched;
    struct page_queue *queues; /* per channel */
    uint64_t *launch;          /* per rank: the launch whose inputs are in memory */
    bool quiet;                /* the op being replayed is not a step itself */
};

struct peal_contents *peal_contents_new(struct peal_page *page, const struct peal_plan *plan)
{
    struct peal_contents *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    size_t places = (size_t)plan->nranks * plan->bufs.count + 1;
    c->page = page;
    c->plan = plan;
    c->memory = calloc(places, sizeof *c->memory);
    c->shown = calloc(places, sizeof *c->shown);
    c->touched = calloc(places, sizeof *c->touched);
    c->queues = calloc(plan->channels.count + 1, sizeof *c->queues);
    c->launch = calloc(plan->nranks, sizeof *c->launch);
    if (c->memory && c->shown && c->touched && c->queues && c->launch) {
        memset(c->shown, 0xff, places * sizeof *c->shown);
        return c;
    }
    peal_contents_free(c);
    return NULL;
}

void peal_contents_free(struct peal_contents *c)
{
    if (!c)
        return;
    if (c->memory) {
        for (size_t i = 0; i < (size_t)c->plan->nranks * c->plan->bufs.count; i++)
            free(c->memory[i].at);
    }
    if (c->queues) {
        for (size_t i = 0; i < c->plan->channels.count; i++) {
            for (size_t k = 0; k < c->queues[i].len; k++)
                free(c->queues[i].payloads[k].at);
            free(c->queues[i].payloads);
        }
    }
    free(c->memory);
    free(c->shown);
    free(c->touched);
    free(c->queues);
    free(c->launch);
    free(c);
}

static size_t place_of(const struct peal_contents *c, uint32_t rank, uint32_t buf)
{
    return (size_t)rank * c->plan->bufs.count + buf;
}

static bool is_memory(const struct peal_contents *c, const struct peal_ref *ref)
{
    return ref->buf < c->plan->bufs.count && ref->rank < c->plan->nranks;
}

/* The bytes of row `row` of an operand. Parameters are shown with the smallest row stride. */
static uint64_t row_start(const struct peal_contents *c, const struct peal_op *op,
                          const struct peal_ref *ref, uint32_t row, uint64_t launch)
{
    return peal_ref_start(c->plan, op, ref, launch, row);
}

static uint32_t rows_of(const struct peal_op *op)
{
    return peal_size_min(op->mem.rows, MAX_ROWS);
}

/* Adds [from, from + bytes) of the list as operand elements, beginning with `first`. */
static void read_bytes(struct peal_contents *c, const struct peal_stretches *list, uint64_t from,
                       uint64_t bytes, struct peal_stretch like, struct peal_stretches *out)
{
    uint64_t at = from, size = like.size;
    for (size_t i = 0; i < list->len; i++) {
        if (at >= from + bytes)
            break;
        uint64_t end = list->at[i].first + list->at[i].count;
        if (end <= at || list->at[i].first >= from + bytes)
            continue;
        struct peal_stretch part = peal_stretch_clip(list->at[i], at, from + bytes, 1);
        if (part.first > at) /* a gap: never written */
            peal_stretches_add(c->page, out,
                               (struct peal_stretch){.first = like.first + (at - from) / size,
                                                     .count = (part.first - at) / size,
                                                     .size = like.size});
        at = part.first + part.count;
        part.first = like.first + (part.first - from) / size;
        part.count = part.count / size;
        peal_stretches_add(c->page, out, part);
    }
    if (at < from + bytes) /* everything past the known ranges was never written */
        peal_stretches_add(c->page, out,
                           (struct peal_stretch){.first = like.first + (at - from) / size,
                                                 .count = (from + bytes - at) / size,
                                                 .size = like.size});
}

/* A payload is kept in operand elements, so an offset into it is in elements too. */
static void read_payload(struct peal_contents *c, const struct peal_stretches *payload,
                         uint64_t skip, uint64_t total, struct peal_stretches *out)
{
    if (!payload)
        return;
    for (size_t i = 0; i < payload->len; i++) {
        uint64_t end = payload->at[i].first + payload->at[i].count;
        if (end <= skip || payload->at[i].first >= skip + total)
            continue;
        struct peal_stretch part =
            peal_stretch_clip(payload->at[i], skip, skip + total, payload->at[i].size);
        part.first -= skip;
        peal_stretches_add(c->page, out, part);
    }
}

static const struct peal_stretches *find_slot(const struct peal_contents *c,
                                              const struct peal_ref *ref)
{
    const struct page_queue *queue = &c->queues[ref->row];
    size_t at = queue->freed + ref->rank;
    if (at < queue->len)
        return &queue->payloads[at];
    return NULL;
}

static void read_operand(struct peal_contents *c, const struct peal_op *op,
                         const struct peal_ref *ref, uint64_t launch, struct peal_stretches *out)
{
    uint32_t size = (uint32_t)peal_dtype_size((enum peal_dtype)ref->dtype);
    uint64_t total = op->mem.count * op->mem.rows;
    if (ref->buf == PEAL_BUF_CONST) {
        struct peal_stretch stretch = {.count = total, .size = size};
        stretch.text = peal_page_printf(c->page, "%g", peal_ref_value(ref));
        peal_stretches_add(c->page, out, stretch);
    } else if (ref->buf == PEAL_BUF_SLOT) {
        read_payload(c, find_slot(c, ref), ref->offset / size, total, out);
    } else if (is_memory(c, ref)) {
        const struct peal_stretches *list = &c->memory[place_of(c, ref->rank, ref->buf)];
        for (uint32_t row = 0; row < rows_of(op); row++)
            read_bytes(c, list, row_start(c, op, ref, row, launch), op->mem.count * size,
                       (struct peal_stretch){.first = row * op->mem.count, .size = size}, out);
    }
}

static void show_change(struct peal_contents *c, size_t place, const struct peal_stretch *stretch)
{
    if (c->shown[place] == PEAL_PAGE_NONE)
        return;
    uint32_t text = peal_stretch_text(c->page, stretch, stretch->count / stretch->size,
                                      stretch->first / stretch->size);
    peal_page_change_memory(c->page, c->shown[place], stretch->first,
                            stretch->first + stretch->count, peal_page_get(c->page, text),
                            c->quiet);
}

/* Stores operand ranges in the op's destination. */
static void write_operand(struct peal_contents *c, const struct peal_op *op,
                          const struct peal_ref *ref, uint64_t launch,
                          const struct peal_stretches *values)
{
    if (!is_memory(c, ref))
        return;
    size_t place = place_of(c, ref->rank, ref->buf);
    uint32_t size = (uint32_t)peal_dtype_size((enum peal_dtype)ref->dtype);
    size_t nvalues = peal_size_min(values->len, PEAL_MAX_STRETCHES);
    for (uint32_t row = 0; row < rows_of(op); row++) {
        uint64_t start = row_start(c, op, ref, row, launch), first = row * op->mem.count;
        for (size_t i = 0; i < nvalues; i++) {
            const struct peal_stretch *value = &values->at[i];
            if (value->first + value->count <= first || value->first >= first + op->mem.count)
                continue;
            struct peal_stretch stretch =
                peal_stretch_clip(*value, first, first + op->mem.count, value->size);
            stretch.first = start + (stretch.first - first) * size;
            stretch.count *= size;
            stretch.size = size;
            peal_stretches_put(c->page, &c->memory[place], stretch);
            show_change(c, place, &stretch);
        }
    }
}

static void show_access(struct peal_contents *c, const struct peal_op *op,
                        const struct peal_ref *ref, uint64_t launch, uint8_t kind,
                        const struct peal_contents_mark *marks, uint32_t nmarks)
{
    if (!is_memory(c, ref) || op->mem.count == 0)
        return;
    uint32_t memory = c->shown[place_of(c, ref->rank, ref->buf)];
    if (memory == PEAL_PAGE_NONE)
        return;
    uint64_t bytes = op->mem.count * peal_dtype_size((enum peal_dtype)ref->dtype);
    const char *name = peal_plan_string(c->plan, peal_plan_bufs(c->plan)[ref->buf].name);
    for (uint32_t row = 0; row < rows_of(op); row++) {
        uint64_t from = row_start(c, op, ref, row, launch), to = from + bytes;
        bool covered = false;
        for (uint32_t i = 0; i < nmarks; i++) {
            uint64_t end = marks[i].first_byte + marks[i].bytes;
            uint64_t low = peal_size_max(marks[i].first_byte, from);
            uint64_t high = peal_size_min(end, to);
            if (marks[i].rank != ref->rank || strcmp(marks[i].buf, name) != 0 || low >= high ||
                marks[i].writes != (kind != PEAL_ACCESS_READ))
                continue;
            peal_page_access(c->page,
                             (struct peal_page_access){memory, low, high, kind, PEAL_BAR_BAD});
            covered = covered || (low == from && high == to);
        }
        if (!covered)
            peal_page_access(c->page, (struct peal_page_access){memory, from, to, kind, 0});
    }
}

/* Inputs hold their own names; each launch has new ones: x, x', x''. */
static void fill_inputs(struct peal_contents *c, uint32_t rank, uint64_t launch)
{
    char primes[5] = "''''";
    primes[launch < 4 ? launch : 4] = '\0';
    for (uint32_t i = 0; i < c->plan->bufs.count; i++) {
        const struct peal_buf *buf = &peal_plan_bufs(c->plan)[i];
        if (buf->kind != PEAL_BUF_PARAM || !(buf->dir & PEAL_DIR_IN) || buf->alias != PEAL_NONE)
            continue;
        size_t place = place_of(c, rank, i);
        uint32_t size = (uint32_t)peal_dtype_size((enum peal_dtype)buf->dtype);
        struct peal_stretch stretch = {
            .count = peal_plan_len(c->plan, rank, i) * size, .size = size, .indexed = true};
        stretch.text = peal_page_printf(c->page, "%s%s@%u", peal_plan_string(c->plan, buf->name),
                                        primes, rank);
        if (!stretch.count)
            continue;
        peal_stretches_put(c->page, &c->memory[place], stretch);
        show_change(c, place, &stretch);
    }
}

void peal_contents_touch(struct peal_contents *c, const struct peal_op *op)
{
    if (!c)
        return;
    struct peal_access access;
    for (uint32_t i = 0; peal_op_access(peal_plan_refs(c->plan), op, i, &access); i++) {
        const struct peal_ref *ref = access.ref;
        if (is_memory(c, ref) && peal_plan_bufs(c->plan)[ref->buf].kind != PEAL_BUF_TILE)
            c->touched[place_of(c, ref->rank, ref->buf)] = true;
    }
}

void peal_contents_start(struct peal_contents *c)
{
    if (!c)
        return;
    for (uint32_t rank = 0; rank < c->plan->nranks; rank++) {
        for (uint32_t i = 0; i < c->plan->bufs.count; i++) {
            const struct peal_buf *buf = &peal_plan_bufs(c->plan)[i];
            size_t place = place_of(c, rank, i);
            uint32_t size = (uint32_t)peal_dtype_size((enum peal_dtype)buf->dtype);
            if (c->touched[place])
                c->shown[place] =
                    peal_page_memory(c->page, rank, peal_plan_string(c->plan, buf->name),
                                     peal_plan_len(c->plan, rank, i) * size, size);
        }
        fill_inputs(c, rank, 0);
    }
}

static void take_message(struct peal_contents *c, const struct peal_op *op, uint64_t launch)
{
    struct page_queue *queue = &c->queues[op->mem.channel];
    const struct peal_ref *dst = peal_op_dst(c->plan, op);
    queue->freed += peal_op_frees(op);
    if (!peal_op_receives(op))
        return;
    if (dst && queue->received < queue->len)
        write_operand(c, op, dst, launch, &queue->payloads[queue->received]);
    queue->received++;
}

static void send_message(struct peal_contents *c, const struct peal_op *op, uint64_t launch)
{
    struct peal_stretches payload = {0};
    read_operand(c, op, peal_op_src(c->plan, op, 0), launch, &payload);
    struct page_queue *queue = &c->queues[op->mem.channel];
    if (queue->len == queue->cap && !peal_vec_grow((void **)&queue->payloads, &queue->cap,
                                                   queue->len, 1, sizeof *queue->payloads)) {
        c->page->failed = true;
        free(payload.at);
        return;
    }
    queue->payloads[queue->len++] = payload;
}

/* The name of the function alone: the terms of a sum of products would fill pages. */
static void write_own(struct peal_contents *c, const struct peal_op *op, uint64_t launch)
{
    struct peal_stretches result = {0};
    struct peal_stretch whole = {.count = op->mem.count * op->mem.rows,
                                 .size = (uint32_t)peal_dtype_size((enum peal_dtype)op->dtype)};
    whole.text = peal_page_text(c->page, peal_op_info((enum peal_op_kind)op->kind)->name);
    peal_stretches_add(c->page, &result, whole);
    write_operand(c, op, peal_op_dst(c->plan, op), launch, &result);
    free(result.at);
}

/* copy, compute, accumulate. */
static void move_values(struct peal_contents *c, const struct peal_op *op, uint64_t launch)
{
    const struct peal_ref *dst = peal_op_dst(c->plan, op);
    bool updates = peal_op_accumulates(op);
    uint32_t count = op->mem.nsrc + (updates ? 1 : 0);
    struct peal_stretches *operands = calloc(count ? count : 1, sizeof *operands), result = {0};
    if (!operands) {
        c->page->failed = true;
        return;
    }
    if (updates)
        read_operand(c, op, dst, launch, &operands[0]);
    for (uint32_t i = 0; i < op->mem.nsrc; i++)
        read_operand(c, op, peal_op_src(c->plan, op, i), launch, &operands[i + (updates ? 1 : 0)]);
    if (peal_op_is_copy(op)) {
        write_operand(c, op, dst, launch, &operands[0]);
    } else if (count > 0) {
        peal_stretches_combine(c->page, op, operands, count, &result);
        write_operand(c, op, dst, launch, &result);
        for (uint32_t i = 0; i < op->mem.more_dsts; i++)
            write_operand(c, op, peal_op_more_dst(c->plan, op, i), launch, &result);
    }
    for (uint32_t i = 0; i < count; i++)
        free(operands[i].at);
    free(operands);
    free(result.at);
}

static void enter_launch(struct peal_contents *c, uint32_t rank, uint64_t launch)
{
    if (launch <= c->launch[rank])
        return;
    bool quiet = c->quiet;
    c->quiet = true;
    c->launch[rank] = launch;
    fill_inputs(c, rank, launch);
    c->quiet = quiet;
}

static void replay(struct peal_contents *c, const struct peal_op *op, uint64_t launch)
{
    if (peal_op_sends(op))
        send_message(c, op, launch);
    else if (peal_op_has_channel(op))
        take_message(c, op, launch);
    else if (peal_op_is_own(op))
        write_own(c, op, launch);
    else if (peal_op_is_data(op))
        move_values(c, op, launch);
}

void peal_contents_skip(struct peal_contents *c, uint32_t rank, uint64_t launch,
                        const struct peal_op *op)
{
    if (!c || c->page->failed)
        return;
    c->quiet = true;
    enter_launch(c, rank, launch);
    replay(c, op, launch);
    c->quiet = false;
}

void peal_contents_step(struct peal_contents *c, uint32_t rank, uint64_t launch,
                        const struct peal_op *op, const struct peal_contents_mark *marks,
                        uint32_t nmarks)
{
    if (!c || c->page->failed)
        return;
    enter_launch(c, rank, launch);
    struct peal_access access;
    for (uint32_t i = 0; peal_op_access(peal_plan_refs(c->plan), op, i, &access); i++) {
        enum peal_page_access_kind kind = PEAL_ACCESS_READ;
        if (access.effect != PEAL_EFFECT_READ)
            kind = peal_op_accumulates(op) ? PEAL_ACCESS_UPDATE : PEAL_ACCESS_WRITE;
        show_access(c, &access.shape, access.ref, launch, kind, marks, nmarks);
    }
    replay(c, op, launch);
}
