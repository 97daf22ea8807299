/* SPDX-License-Identifier: Apache-2.0 */
/* A plan with channels as MSCCL XML.
 *
 * A thread block has one peer to send to, one to receive from, and one channel number. A lane that
 * fits is a block. Any other lane becomes a block per channel end, chained by dependencies so that
 * its order is kept. Waits for cells of this rank become dependencies on the step before the
 * notify. They name steps by their index in this file's lists until all are known, because steps
 * with several dependencies get nops in front of them.
 */
#include "export/writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCKS = 64, MAX_STEPS = 64, MAX_COUNT = 64, MAX_SLOTS = 64, MAX_DEPS = 8 };

/* A dependency: on a step of a block, or, with a cell other than PEAL_NONE, on the step before the
 * notify of that cell to `value`. */
struct dependency {
    uint32_t block, step, cell;
    int64_t value;
};

struct written_step {
    const char *type;
    struct peal_chunk src, dst;
    uint64_t cnt;
    struct dependency deps[MAX_DEPS];
    uint32_t ndeps, number; /* number: in the file, when nops are counted */
    bool published;
};

struct block {
    uint32_t send, recv, chan; /* peers, or PEAL_NONE */
    uint32_t channel;          /* for a block that is part of a split lane */
    bool sends;                /* ... and which end of it */
    PEAL_VEC(struct written_step) steps;
};

struct publication {
    uint32_t cell, block, step; /* step PEAL_NONE: nothing comes before it */
    int64_t value;
};

struct msccl_slot {
    uint64_t chunk;
    uint32_t channel, temp; /* temp: which of the lane's temporaries */
};

struct msccl_writer {
    const struct peal_plan *plan;
    struct peal_diags *diags;
    struct peal_export_layout layout;
    uint32_t *chan;       /* [channel] number among those between the same two ranks */
    uint64_t slot_chunks; /* largest payload */
    uint32_t rank, lane;
    PEAL_VEC(struct block) blocks; /* of the rank */
    PEAL_VEC(struct publication) publications;
    struct dependency pending[MAX_DEPS];
    uint32_t npending;
    uint32_t first_block, last_block; /* of the lane; last PEAL_NONE: it has no step yet */
    bool split, failed;
    struct msccl_slot slots[MAX_SLOTS]; /* received and not freed, oldest first */
    uint32_t nslots;
    uint32_t ntemps;    /* temporaries that the lane uses */
    uint64_t temporary; /* chunks of scratch after the plan's own */
};

static void refuse(struct msccl_writer *w, const struct peal_op *op, const char *why)
{
    if (!w->failed)
        peal_export_refuse(w->plan, w->rank, op, w->diags, why);
    w->failed = true;
}

/* --- blocks and steps ------------------------------------------------------------------------ */

static uint32_t add_block(struct msccl_writer *w, uint32_t channel, bool sends)
{
    struct block b = {.send = PEAL_NONE, .recv = PEAL_NONE, .channel = channel, .sends = sends};
    if (channel != PEAL_NONE) {
        const struct peal_channel *c = &peal_plan_channels(w->plan)[channel];
        b.chan = w->chan[channel];
        if (sends)
            b.send = c->receiver;
        else
            b.recv = c->sender;
    }
    w->failed = w->failed || !peal_vec_push(&w->blocks, b);
    return (uint32_t)w->blocks.len - 1;
}

/* The block for an op: that of the lane, or of the channel end if the lane is split. */
static uint32_t block_for(struct msccl_writer *w, uint32_t channel, bool sends)
{
    if (!w->split)
        return w->first_block;
    if (channel == PEAL_NONE && w->last_block != PEAL_NONE)
        return w->last_block;
    for (uint32_t b = w->first_block; b < w->blocks.len; b++) {
        if (w->blocks.at[b].channel == channel &&
            (channel == PEAL_NONE || w->blocks.at[b].sends == sends))
            return b;
    }
    return add_block(w, channel, sends);
}

static void depend(struct msccl_writer *w, struct dependency d)
{
    if (w->npending == MAX_DEPS) {
        peal_diag_error(w->diags, (struct peal_pos){0}, "a step of rank %u has more than %d waits",
                        w->rank, MAX_DEPS);
        w->failed = true;
        return;
    }
    w->pending[w->npending++] = d;
}

static void add_step(struct msccl_writer *w, uint32_t block, struct written_step step)
{
    if (w->failed)
        return;
    if (w->last_block != PEAL_NONE && w->last_block != block) {
        const struct block *before = &w->blocks.at[w->last_block];
        depend(w,
               (struct dependency){w->last_block, (uint32_t)before->steps.len - 1, PEAL_NONE, 0});
    }
    memcpy(step.deps, w->pending, sizeof step.deps);
    step.ndeps = w->npending;
    w->npending = 0;
    w->failed = w->failed || !peal_vec_push(&w->blocks.at[block].steps, step);
    w->last_block = block;
}

/* Adds it in pieces that fit the engine's counts. */
static void add_steps(struct msccl_writer *w, uint32_t block, struct written_step step)
{
    uint64_t left = step.cnt;
    while (left && !w->failed) {
        step.cnt = peal_size_min(left, MAX_COUNT);
        add_step(w, block, step);
        step.src.index += step.cnt;
        step.dst.index += step.cnt;
        left -= step.cnt;
    }
}

/* --- ops ------------------------------------------------------------------------------------- */

/* The slot of a channel that has this many older ones. nslots: there is none. */
static uint32_t find_slot(const struct msccl_writer *w, uint32_t channel, uint32_t older)
{
    for (uint32_t i = 0; i < w->nslots; i++) {
        if (w->slots[i].channel == channel && older-- == 0)
            return i;
    }
    return w->nslots;
}

/* A temporary that no slot uses. */
static uint32_t free_temp(const struct msccl_writer *w)
{
    bool taken[MAX_SLOTS] = {false};
    uint32_t temp = 0;
    for (uint32_t i = 0; i < w->nslots; i++)
        taken[w->slots[i].temp] = true;
    while (temp < MAX_SLOTS - 1 && taken[temp])
        temp++;
    return temp;
}

static struct peal_chunk place(struct msccl_writer *w, const struct peal_op *op,
                               const struct peal_ref *ref)
{
    if (ref->buf == PEAL_BUF_SLOT) {
        uint64_t size = peal_dtype_size((enum peal_dtype)w->plan->dtype);
        uint32_t at = find_slot(w, ref->row, ref->rank);
        if (at < w->nslots)
            return (struct peal_chunk){'s',
                                       w->slots[at].chunk + ref->offset / size / w->layout.chunk};
        refuse(w, op, "a slot is used that is not there");
        return (struct peal_chunk){'s', 0};
    }
    if (ref->rank != w->rank)
        refuse(w, op, "memory of another rank cannot be reached, only sent to");
    return peal_export_layout_place(&w->layout, ref);
}

static bool same(struct peal_chunk a, struct peal_chunk b)
{
    return a.buffer == b.buffer && a.index == b.index;
}

static void add_local(struct msccl_writer *w, const char *type, struct peal_chunk src,
                      struct peal_chunk dst, uint64_t cnt)
{
    if (strcmp(type, "cpy") == 0 && same(src, dst))
        return;
    add_steps(w, block_for(w, PEAL_NONE, false),
              (struct written_step){.type = type, .src = src, .dst = dst, .cnt = cnt});
}

static void write_compute(struct msccl_writer *w, const struct peal_op *op, uint64_t cnt)
{
    const struct peal_plan *plan = w->plan;
    struct peal_chunk dst = place(w, op, peal_op_dst(plan, op));
    uint32_t first = 0;
    bool copies = op->fn == PEAL_FN_ID && op->mem.nsrc == 1;
    bool reduces = plan->reduce < PEAL_REDUCTIONS &&
                   op->fn == peal_reduce_fn((enum peal_reduction)plan->reduce);
    if ((!copies && !reduces) || op->mem.divisor > 1) {
        refuse(w, op, "the engine only has the collective's own reduction");
        return;
    }
    /* An operand that is already in place comes first: dst = dst + src is the engine's only
     * reduction. */
    for (uint32_t i = 0; i < op->mem.nsrc; i++) {
        if (same(place(w, op, peal_op_src(plan, op, i)), dst))
            first = i;
    }
    add_local(w, "cpy", place(w, op, peal_op_src(plan, op, first)), dst, cnt);
    for (uint32_t i = 0; i < op->mem.nsrc && !w->failed; i++) {
        if (i != first)
            add_local(w, "re", place(w, op, peal_op_src(plan, op, i)), dst, cnt);
    }
    for (uint32_t i = 0; i < op->mem.more_dsts && !w->failed; i++)
        add_local(w, "cpy", dst, place(w, op, peal_op_more_dst(plan, op, i)), cnt);
}

static void free_slot(struct msccl_writer *w, uint32_t channel)
{
    uint32_t at = find_slot(w, channel, 0);
    if (at >= w->nslots)
        return;
    memmove(w->slots + at, w->slots + at + 1, (MAX_SLOTS - 1 - at) * sizeof *w->slots);
    w->nslots--;
}

static void write_message(struct msccl_writer *w, const struct peal_op *op, uint64_t cnt)
{
    const struct peal_plan *plan = w->plan;
    bool sends = peal_op_sends(op);
    uint32_t block = block_for(w, op->mem.channel, sends);
    struct written_step step = {
        .type = sends ? "s" : "r", .src = {'i', 0}, .dst = {'i', 0}, .cnt = cnt};
    if (cnt == 0) {
        refuse(w, op, "an empty message");
        return;
    }
    if (sends) {
        step.src = step.dst = place(w, op, peal_op_src(plan, op, 0));
    } else if (peal_op_is_recv(op)) {
        step.src = step.dst = place(w, op, peal_op_dst(plan, op));
    } else {
        if (w->nslots == MAX_SLOTS) {
            refuse(w, op, "more slots are held at once than there is room for");
            return;
        }
        uint32_t temp = free_temp(w);
        uint64_t at = w->layout.scratch_chunks + w->temporary + temp * w->slot_chunks;
        w->slots[w->nslots++] = (struct msccl_slot){at, op->mem.channel, temp};
        if (temp >= w->ntemps)
            w->ntemps = temp + 1;
        step.src = step.dst = (struct peal_chunk){'s', at};
    }
    add_steps(w, block, step);
}

static void write_notify(struct msccl_writer *w, const struct peal_op *op)
{
    const struct peal_signal *signal = &peal_plan_signals(w->plan)[peal_op_signal(op)];
    if (op->sync.rank != w->rank || signal->kind != PEAL_SIGNAL_ONE_WRITER) {
        refuse(w, op,
               "ranks have messages only, and blocks of a rank dependencies with one writer");
        return;
    }
    struct publication p = {op->sync.cell, w->last_block, PEAL_NONE, op->sync.after};
    if (w->last_block != PEAL_NONE)
        p.step = (uint32_t)w->blocks.at[w->last_block].steps.len - 1;
    w->failed = w->failed || !peal_vec_push(&w->publications, p);
}

static void write_wait(struct msccl_writer *w, const struct peal_op *op)
{
    if (op->sync.back || (op->flags & (PEAL_OP_EQUAL | PEAL_OP_HAS_REG)))
        refuse(w, op, "dependencies are of this launch and of the form '>='");
    else if (op->sync.value > 0)
        depend(w, (struct dependency){0, 0, op->sync.cell, op->sync.value});
}

static void write_op(struct msccl_writer *w, const struct peal_op *op)
{
    uint64_t cnt = 0;
    if (!peal_op_is_sync(op))
        cnt = op->mem.count / w->layout.chunk;
    if (peal_op_is_copy(op))
        add_local(w, "cpy", place(w, op, peal_op_src(w->plan, op, 0)),
                  place(w, op, peal_op_dst(w->plan, op)), cnt);
    else if (peal_op_is_compute(op))
        write_compute(w, op, cnt);
    else if (peal_op_has_message(op))
        write_message(w, op, cnt);
    else if (peal_op_is_free(op))
        free_slot(w, op->mem.channel);
    else if (peal_op_is_notify(op))
        write_notify(w, op);
    else if (peal_op_is_wait(op))
        write_wait(w, op);
    else
        refuse(w, op, "there is nothing like it in MSCCL");
}

/* --- lanes and ranks ------------------------------------------------------------------------- */

/* Can one block have all of the lane's channels? */
static bool fits_one_block(const struct msccl_writer *w, const struct peal_lane *lane,
                           uint32_t *send, uint32_t *recv)
{
    *send = *recv = PEAL_NONE;
    for (uint64_t i = 0; i < lane->ops; i++) {
        const struct peal_op *op = &peal_plan_ops(w->plan)[lane->first_op + i];
        if (!peal_op_has_message(op))
            continue;
        uint32_t *end = recv;
        if (peal_op_sends(op))
            end = send;
        if (*end != PEAL_NONE && *end != op->mem.channel)
            return false;
        *end = op->mem.channel;
    }
    return *send == PEAL_NONE || *recv == PEAL_NONE || w->chan[*send] == w->chan[*recv];
}

static void write_lane(struct msccl_writer *w)
{
    const struct peal_lane *lane = peal_plan_lane(w->plan, w->rank, w->lane);
    uint32_t send, recv;
    w->split = !fits_one_block(w, lane, &send, &recv);
    w->first_block = (uint32_t)w->blocks.len;
    w->last_block = PEAL_NONE;
    w->npending = w->nslots = 0;
    w->ntemps = 0;
    if (!w->split && lane->ops) {
        uint32_t b = add_block(w, send != PEAL_NONE ? send : recv, send != PEAL_NONE);
        if (!w->failed && send != PEAL_NONE && recv != PEAL_NONE)
            w->blocks.at[b].recv = peal_plan_channels(w->plan)[recv].sender;
    }
    for (uint64_t i = 0; i < lane->ops && !w->failed; i++)
        write_op(w, &peal_plan_ops(w->plan)[lane->first_op + i]);
    w->temporary += (uint64_t)w->ntemps * w->slot_chunks;
}

/* The step that a wait for a cell depends on. False: it depends on none. */
static bool resolve(const struct msccl_writer *w, struct dependency *d)
{
    if (d->cell == PEAL_NONE)
        return true;
    for (size_t i = 0; i < w->publications.len; i++) {
        const struct publication *p = &w->publications.at[i];
        if (p->cell != d->cell || p->value < d->value)
            continue;
        d->block = p->block;
        d->step = p->step;
        return p->step != PEAL_NONE;
    }
    return false;
}

/* Keeps dependencies on other blocks only, named by steps; then counts nops. */
static void settle(struct msccl_writer *w)
{
    for (uint32_t b = 0; b < w->blocks.len; b++) {
        struct block *block = &w->blocks.at[b];
        uint32_t number = 0;
        for (size_t s = 0; s < block->steps.len; s++) {
            struct written_step *step = &block->steps.at[s];
            uint32_t kept = 0;
            for (uint32_t i = 0; i < step->ndeps; i++) {
                if (resolve(w, &step->deps[i]) && step->deps[i].block != b)
                    step->deps[kept++] = step->deps[i];
            }
            step->ndeps = kept;
            if (kept > 1)
                number += kept - 1;
            step->number = number++;
        }
        if (number > MAX_STEPS) {
            peal_diag_error(w->diags, (struct peal_pos){0},
                            "rank %u needs %u steps in a thread block; the engine has %d", w->rank,
                            number, MAX_STEPS);
            w->failed = true;
        }
    }
    for (uint32_t b = 0; b < w->blocks.len; b++) {
        for (size_t s = 0; s < w->blocks.at[b].steps.len; s++) {
            const struct written_step *step = &w->blocks.at[b].steps.at[s];
            for (uint32_t i = 0; i < step->ndeps; i++)
                w->blocks.at[step->deps[i].block].steps.at[step->deps[i].step].published = true;
        }
    }
    if (w->blocks.len > MAX_BLOCKS) {
        peal_diag_error(w->diags, (struct peal_pos){0},
                        "rank %u needs %zu thread blocks; the engine has %d", w->rank,
                        w->blocks.len, MAX_BLOCKS);
        w->failed = true;
    }
}

static void put_step(const struct msccl_writer *w, uint32_t number, const struct written_step *step,
                     const struct dependency *d, bool nop, struct peal_text *out)
{
    int depid = -1, deps = -1;
    if (d) {
        depid = (int)d->block;
        deps = (int)w->blocks.at[d->block].steps.at[d->step].number;
    }
    static const struct written_step nothing = {
        .type = "nop", .src = {.buffer = 'i'}, .dst = {.buffer = 'i'}};
    if (nop)
        step = &nothing;
    peal_text_printf(out,
                     "      <step s=\"%u\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%" PRIu64
                     "\" dstbuf=\"%c\" dstoff=\"%" PRIu64 "\" cnt=\"%" PRIu64
                     "\" depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n",
                     number, step->type, step->src.buffer, step->src.index, step->dst.buffer,
                     step->dst.index, step->cnt, depid, deps, step->published);
}

static void put_rank(const struct msccl_writer *w, struct peal_text *out)
{
    const struct peal_plan *plan = w->plan;
    uint64_t scratch = w->layout.scratch_chunks + w->temporary;
    peal_text_printf(out,
                     "  <gpu id=\"%u\" i_chunks=\"%" PRIu64 "\" o_chunks=\"%" PRIu64
                     "\" s_chunks=\"%" PRIu64 "\">\n",
                     w->rank, peal_plan_len(plan, w->rank, plan->contract_in) / w->layout.chunk,
                     peal_plan_len(plan, w->rank, plan->contract_out) / w->layout.chunk, scratch);
    for (uint32_t b = 0; b < w->blocks.len; b++) {
        const struct block *block = &w->blocks.at[b];
        peal_text_printf(out, "    <tb id=\"%u\" send=\"%d\" recv=\"%d\" chan=\"%u\">\n", b,
                         (int)block->send, (int)block->recv, block->chan);
        for (size_t s = 0; s < block->steps.len; s++) {
            const struct written_step *step = &block->steps.at[s];
            for (uint32_t i = 0; i + 1 < step->ndeps; i++)
                put_step(w, step->number - (step->ndeps - 1 - i), step, &step->deps[i], true, out);
            put_step(w, step->number, step, step->ndeps ? &step->deps[step->ndeps - 1] : NULL,
                     false, out);
        }
        peal_text_puts(out, "    </tb>\n");
    }
    peal_text_puts(out, "  </gpu>\n");
}

static void drop_rank(struct msccl_writer *w)
{
    for (size_t b = 0; b < w->blocks.len; b++)
        peal_vec_release(&w->blocks.at[b].steps);
    w->blocks.len = 0;
    w->publications.len = 0;
}

static bool number_channels(struct msccl_writer *w)
{
    const struct peal_plan *plan = w->plan;
    const struct peal_channel *c = peal_plan_channels(plan);
    uint64_t size = peal_dtype_size((enum peal_dtype)plan->dtype);
    w->chan = calloc(plan->channels.count + 1, sizeof *w->chan);
    uint64_t nchannels = 0;
    if (w->chan)
        nchannels = plan->channels.count;
    for (uint64_t i = 0; i < nchannels; i++) {
        for (uint64_t k = 0; k < i; k++)
            w->chan[i] += c[k].sender == c[i].sender && c[k].receiver == c[i].receiver;
        uint64_t chunks = (c[i].slot_bytes / size + w->layout.chunk - 1) / w->layout.chunk;
        if (chunks > w->slot_chunks)
            w->slot_chunks = chunks;
    }
    return w->chan != NULL;
}

static void put_head(const struct msccl_writer *w, const char *proto, struct peal_text *out)
{
    const struct peal_plan *plan = w->plan;
    bool parts = plan->contract == PEAL_CONTRACT_REDUCE_SCATTER;
    uint32_t whole;
    if (parts)
        whole = plan->contract_in;
    else
        whole = plan->contract_out;
    uint32_t channels = 1;
    if (plan->contract == PEAL_CONTRACT_GATHER || plan->contract == PEAL_CONTRACT_ALL_TO_ALL)
        whole = plan->contract_in; /* a gather is divided by what one rank contributes */
    for (uint64_t i = 0; i < plan->channels.count; i++) {
        if (w->chan[i] + 1 > channels)
            channels = w->chan[i] + 1;
    }
    peal_text_puts(out, "<algo name=\"");
    peal_text_puts(out, peal_plan_string(plan, plan->kernel));
    peal_text_printf(out,
                     "\" proto=\"%s\" nchannels=\"%u\" nchunksperloop=\"%" PRIu64
                     "\" ngpus=\"%u\" coll=\"%s\" inplace=\"%d\" outofplace=\"%d\" minBytes=\"0\" "
                     "maxBytes=\"0\"",
                     proto, channels, peal_plan_len(plan, 0, whole) / w->layout.chunk, plan->nranks,
                     peal_export_layout_collective(plan), w->layout.in_place, !w->layout.in_place);
    if (plan->root < plan->nranks)
        peal_text_printf(out, " root=\"%u\"", plan->root);
    peal_text_puts(out, ">\n");
}

bool peal_msccl_write(const struct peal_plan *plan, const char *proto, struct peal_diags *diags,
                      struct peal_text *out)
{
    struct msccl_writer w = {.plan = plan, .diags = diags};
    w.failed = !peal_export_layout_find(plan, diags, &w.layout) || !number_channels(&w);
    if (!w.failed)
        put_head(&w, proto, out);
    for (w.rank = 0; w.rank < plan->nranks && !w.failed; w.rank++) {
        w.temporary = 0;
        for (w.lane = 0; w.lane < peal_plan_lane_count(plan, w.rank) && !w.failed; w.lane++)
            write_lane(&w);
        if (!w.failed)
            settle(&w);
        if (!w.failed)
            put_rank(&w, out);
        drop_rank(&w);
    }
    peal_text_puts(out, "</algo>\n");
    peal_vec_release(&w.blocks);
    peal_vec_release(&w.publications);
    peal_export_layout_release(&w.layout);
    free(w.chan);
    return !w.failed && !out->failed;
}
