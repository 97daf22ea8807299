/* SPDX-License-Identifier: Apache-2.0 */
/* All queued tasks as one plan of all workers.
 *
 * Lanes. A rank of the plan is a worker. Its first lanes are its compute queue, the others its
 * communication queue: as many each as the kernels in that queue have lanes. A lane's ops are those
 * of its queue's tasks, one after the other.
 *
 * Order. If a part of a task must wait for the other queue, or for another lane of its own queue,
 * the lanes that it waits for notify a cell of the same rank after the task in question, and the
 * waiting lane waits for it. Only notifies that are waited for are made, so tasks that share
 * nothing cost no more together than alone.
 *
 * Memory. All tensors of a worker lie in its area, which is one parameter of the plan; so two tasks
 * that touch the same bytes name them alike. Every task has windows, cells and channels of its own.
 * Private scratch and tiles are shared with later tasks of the same kernel in the queue.
 *
 * A function is one compute op with PEAL_OP_OUTSIDE, whose count is its cost in picoseconds.
 */
#include "driver/worker_link.h"

#include "sim/sim.h"

#include <stdio.h>
#include <string.h>

enum { MAX_BUFS = 60000, MAX_SIGNALS = 60000 };

/* A kernel's scratch, made once: private buffers and tiles by variant. */
struct scratch {
    uint64_t variant;
    uint32_t queue;
    uint32_t *bufs; /* by the plan's buffers; PEAL_NONE: not scratch of this kind */
};

/* One task's own tables. */
struct instance {
    const struct peal_host_block *block;
    const struct peal_plan *plan; /* NULL: a function */
    uint32_t *bufs;               /* windows and scratch by the plan's buffers */
    uint32_t *signals;            /* by the plan's signals */
    uint32_t *channels;           /* by the plan's channels */
};

struct linker {
    struct peal_host *host;
    struct peal_assembler *a;
    struct peal_linked *out;
    struct instance *instances; /* by task, from `first` on */
    uint64_t first;             /* the oldest task's id */
    size_t count;
    PEAL_VEC(struct scratch) scratch;
    uint32_t memory;                  /* the buffer of areas */
    uint32_t lanes[PEAL_HOST_QUEUES]; /* of every rank */
    uint32_t order;                   /* the signal of lanes' progress: a cell per lane */
    uint32_t drain;                   /* a cell per lane that no task waits for */
    uint32_t nbufs, nsignals, nformulas;
    uint64_t nops; /* made so far */
    bool **needed; /* by queue index and held position: another task waits for this one */
    bool async, failed;
};

static uint64_t queue_first(const struct linker *l, uint32_t index)
{
    return l->out->first[index];
}

static uint64_t queue_count(const struct linker *l, uint32_t index)
{
    return l->out->count[index];
}

static struct instance *instance_at(const struct linker *l, uint32_t index, uint64_t i)
{
    uint64_t entry = *peal_host_ring_at(l->host->shared, index / PEAL_HOST_QUEUES,
                                        index % PEAL_HOST_QUEUES, queue_first(l, index) + i);
    return &l->instances[(entry >> PEAL_HOST_BLOCK_BITS) - l->first];
}

/* ---- tables ---- */

static uint32_t add_buf(struct linker *l, const struct peal_buf_spec *spec)
{
    if (++l->nbufs > MAX_BUFS)
        l->failed = true;
    if (l->failed)
        return 0;
    return peal_assembler_buf(l->a, spec);
}

static struct peal_buf_spec spec_of(const struct peal_plan *plan, uint32_t b, uint64_t len)
{
    const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
    return (struct peal_buf_spec){.name = peal_plan_string(plan, buf->name),
                                  .kind = (enum peal_buf_kind)buf->kind,
                                  .dtype = (enum peal_dtype)buf->dtype,
                                  .param = PEAL_NONE,
                                  .alias = PEAL_NONE,
                                  .cols = buf->cols,
                                  .len = len};
}

/* The length of a scratch buffer on the rank where it is longest: it has that length on all. */
static uint64_t longest(const struct peal_plan *plan, uint32_t b)
{
    uint64_t maximum = 0;
    for (uint32_t r = 0; r < plan->nranks; r++) {
        uint64_t len = peal_plan_len(plan, r, b);
        if (len > maximum)
            maximum = len;
    }
    return maximum;
}

static uint32_t *find_scratch(struct linker *l, const struct instance *instance)
{
    const struct peal_plan *plan = instance->plan;
    const struct peal_buf *bufs = peal_plan_bufs(plan);
    struct scratch made = {.variant = instance->block->variant, .queue = instance->block->queue};
    for (size_t i = 0; i < l->scratch.len; i++) {
        if (l->scratch.at[i].variant == made.variant && l->scratch.at[i].queue == made.queue)
            return l->scratch.at[i].bufs;
    }
    made.bufs = calloc(plan->bufs.count + 1, sizeof *made.bufs);
    if (!made.bufs || !peal_vec_push(&l->scratch, made)) {
        free(made.bufs);
        l->failed = true;
        return NULL;
    }
    uint32_t base = 0;
    if (made.queue == PEAL_HOST_COMM)
        base = l->lanes[PEAL_HOST_COMPUTE];
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        struct peal_buf_spec spec = spec_of(plan, b, longest(plan, b));
        spec.lane = base + bufs[b].lane;
        if (bufs[b].kind == PEAL_BUF_PRIVATE || bufs[b].kind == PEAL_BUF_TILE)
            made.bufs[b] = add_buf(l, &spec);
    }
    return made.bufs;
}

static void make_instance(struct linker *l, struct instance *instance)
{
    const struct peal_host_block *block = instance->block;
    if (block->kind != PEAL_HOST_RUN_KERNEL)
        return;
    const struct peal_plan *plan = instance->plan = l->host->variants.at[block->variant].plan;
    const struct peal_channel *channels = peal_plan_channels(plan);
    const struct peal_signal *signals = peal_plan_signals(plan);
    const uint32_t *scratch = find_scratch(l, instance);
    instance->bufs = calloc(plan->bufs.count + 1, sizeof *instance->bufs);
    instance->signals = calloc(plan->signals.count + 1, sizeof *instance->signals);
    instance->channels = calloc(plan->channels.count + 1, sizeof *instance->channels);
    l->failed |= !scratch || !instance->bufs || !instance->signals || !instance->channels;
    for (uint32_t b = 0; b < plan->bufs.count && !l->failed; b++) {
        struct peal_buf_spec spec = spec_of(plan, b, longest(plan, b));
        instance->bufs[b] = scratch[b];
        if (spec.kind == PEAL_BUF_WINDOW)
            instance->bufs[b] = add_buf(l, &spec);
    }
    for (uint32_t s = 0; s < plan->signals.count && !l->failed; s++) {
        l->failed = ++l->nsignals > MAX_SIGNALS;
        instance->signals[s] =
            peal_assembler_signal(l->a, peal_plan_string(plan, signals[s].name),
                                  (enum peal_signal_kind)signals[s].kind, signals[s].cells);
    }
    char name[32];
    snprintf(name, sizeof name, "task%llu", (unsigned long long)block->id);
    for (uint32_t c = 0; c < plan->channels.count && !l->failed; c++) {
        instance->channels[c] =
            peal_assembler_channel(l->a, name, block->parts[channels[c].sender].worker, c,
                                   block->parts[channels[c].receiver].worker);
    }
}

/* ---- ops ---- */

/* Where a parameter of the kernel begins, in the worker's area. */
static uint64_t param_offset(const struct linker *l, const struct instance *instance,
                             uint32_t param, uint32_t member)
{
    const struct peal_host_block *block = instance->block;
    uint32_t a = 0, seen = 0, worker = block->parts[member].worker;
    for (; a < block->nargs; a++) {
        if (block->args[a].kind == PEAL_TASK_TENSOR && seen++ == param)
            break;
    }
    uint64_t at = block->places[(size_t)member * block->nargs + a].at;
    uint32_t symmetric = block->args[a].symmetric;
    if (symmetric)
        at += (uint64_t)(uintptr_t)l->host->shared->domains[symmetric - 1].bases[worker];
    return at - (uint64_t)(uintptr_t)l->host->areas[worker].base;
}

static struct peal_ref link_ref(struct linker *l, const struct instance *instance,
                                const struct peal_op *op, struct peal_ref ref)
{
    const struct peal_plan *plan = instance->plan;
    if (ref.buf == PEAL_BUF_CONST)
        return ref;
    if (ref.buf == PEAL_BUF_SLOT) {
        ref.row = instance->channels[ref.row];
        return ref;
    }
    const struct peal_buf *buf = &peal_plan_bufs(plan)[ref.buf];
    uint32_t member = ref.rank;
    ref.offset = peal_ref_offset(plan, &ref, 0);
    ref.phases = PEAL_NONE;
    ref.rank = instance->block->parts[member].worker;
    if (buf->kind != PEAL_BUF_PARAM) {
        ref.buf = (uint16_t)instance->bufs[ref.buf];
        return ref;
    }
    ref.offset =
        param_offset(l, instance, buf->param, member) + peal_ref_start(plan, op, &ref, 0, 0);
    if (buf->cols) /* the areas have one dimension */
        ref.pitch = op->mem.rows > 1 ? buf->cols : 0;
    ref.buf = (uint16_t)l->memory;
    return ref;
}

static void link_sync(struct linker *l, const struct instance *instance, const struct peal_op *op,
                      uint32_t first_reg)
{
    const struct peal_signal *signals = peal_plan_signals(instance->plan);
    uint32_t s = peal_op_signal(op),
             index = peal_op_cell(instance->plan, op, 0) - signals[s].first_cell;
    uint32_t signal = instance->signals[s];
    struct peal_op linked = *op;
    bool one_writer = peal_op_is_notify(op) && signals[s].kind == PEAL_SIGNAL_ONE_WRITER;
    linked.fn = (uint8_t)signal;
    linked.dtype = (uint8_t)(signal >> 8);
    linked.pos = PEAL_NONE;
    linked.sync.cell = peal_assembler_cell(l->a, signal, index);
    linked.sync.rank = instance->block->parts[op->sync.rank].worker;
    linked.sync.phases = PEAL_NONE;
    if (one_writer)
        linked.sync.after = 0; /* counted again */
    else if (peal_op_fetches(op) || (op->flags & PEAL_OP_HAS_REG))
        linked.sync.reg = (uint16_t)(first_reg + op->sync.reg);
    peal_assembler_append(l->a, &linked, NULL);
    l->nops++;
}

/* Every plan has its own numbers of formulas: finds the formula's number here. */
static bool link_formula(struct linker *l, const struct peal_plan *plan, struct peal_op *op)
{
    const struct peal_formula *formula = peal_plan_formula(plan, op->fn);
    uint32_t i = peal_formula_find(peal_assembler_formulas(l->a), l->nformulas, formula);
    if (i == PEAL_FORMULAS)
        return false;
    if (i == l->nformulas) {
        peal_assembler_formula(l->a, formula);
        l->nformulas++;
    }
    op->fn = (uint8_t)(PEAL_FN_USER + i);
    return true;
}

/* Every instance is the first launch of cells and buffers of its own. */
static void link_number(struct linker *l, const struct peal_plan *plan, struct peal_op *op,
                        uint32_t first_reg)
{
    uint64_t number = (uint64_t)peal_op_number(plan, op, 0);
    op->mem.rows += first_reg;
    op->mem.count = 0;
    op->mem.target = peal_assembler_phases(l->a, &number);
}

static void link_lane(struct linker *l, const struct instance *instance, uint32_t member,
                      uint32_t lane)
{
    const struct peal_plan *plan = instance->plan;
    const struct peal_lane *source = peal_plan_lane(plan, member, lane);
    uint32_t first_reg = 0;
    for (uint32_t i = 0; i < source->regs; i++) {
        uint32_t reg = peal_assembler_reg(l->a);
        if (i == 0)
            first_reg = reg;
    }
    for (uint64_t i = 0; i < source->ops && !l->failed; i++) {
        struct peal_op op = peal_plan_ops(plan)[source->first_op + i];
        struct peal_ref small[8], *refs = small;
        if (peal_op_is_sync(&op)) {
            link_sync(l, instance, &op, first_reg);
            continue;
        }
        uint32_t n = peal_op_nrefs(&op);
        if (n > 8)
            refs = malloc(n * sizeof *refs);
        l->failed |= !refs;
        for (uint32_t r = 0; r < n && !l->failed; r++) {
            struct peal_op seen = peal_op_of_operand(&op, r);
            refs[r] = link_ref(l, instance, &seen, peal_plan_refs(plan)[op.mem.ref + r]);
        }
        if (peal_op_has_channel(&op))
            op.mem.channel = instance->channels[op.mem.channel];
        else if (peal_op_is_flush(&op))
            op.mem.target = instance->block->parts[op.mem.target].worker;
        else if (peal_op_is_when(&op))
            op.mem.rows += first_reg;
        else if (peal_op_is_number(&op))
            link_number(l, plan, &op, first_reg);
        op.pos = PEAL_NONE;
        l->failed |= peal_op_applies(&op) && peal_fn_is_user(op.fn) && !link_formula(l, plan, &op);
        if (!l->failed)
            peal_assembler_append(l->a, &op, refs);
        l->nops++;
        if (refs != small)
            free(refs);
    }
}

static void link_function(struct linker *l, const struct instance *instance, uint32_t member)
{
    struct peal_host_block *block = (struct peal_host_block *)instance->block;
    const struct peal_function *function = l->host->shared->works[block->work].function;
    struct peal_function_arg args[PEAL_MOST_ARGS];
    char error[8];
    struct peal_function_call call = peal_launch_call(l->host->shared, block, member, args);
    call.error = error;
    call.error_cap = sizeof error;
    for (uint32_t a = 0; a < block->nargs; a++)
        args[a].data = NULL;
    uint64_t cost;
    if (function->cost)
        cost = function->cost(&call, function->context);
    else
        cost = function->cost_ps;
    struct peal_op op = {.kind = PEAL_OP_COMPUTE,
                         .fn = PEAL_FN_ID,
                         .flags = PEAL_OP_OUTSIDE,
                         .dtype = PEAL_U8,
                         .pos = PEAL_NONE,
                         .mem = {.count = cost ? cost : 1, .rows = 1, .divisor = 1}};
    struct peal_ref none = peal_ref_const(0, PEAL_U8);
    peal_assembler_append(l->a, &op, &none);
    l->nops++;
}

/* ---- lanes ---- */

static uint32_t lane_of(const struct linker *l, uint32_t queue, uint32_t lane)
{
    if (queue == PEAL_HOST_COMM)
        return l->lanes[PEAL_HOST_COMPUTE] + lane;
    return lane;
}

/* Marks the tasks of the other queue for which tasks of this queue wait; and all tasks of this
 * queue, if it has several lanes. */
static void mark_needed(struct linker *l, uint32_t index)
{
    uint32_t other = index ^ 1, worker = index / PEAL_HOST_QUEUES;
    bool several = l->lanes[index % PEAL_HOST_QUEUES] > 1;
    for (uint64_t i = 0; i < queue_count(l, index); i++) {
        const struct peal_host_block *block = instance_at(l, index, i)->block;
        uint32_t member = peal_host_member_of(block, worker);
        int64_t after = (int32_t)(block->parts[member].after - (uint32_t)queue_first(l, other));
        if (after > 0)
            l->needed[other][after - 1] = true;
        if (several)
            l->needed[index][i] = true;
    }
}

struct cursor {
    uint64_t waited[PEAL_HOST_QUEUES]; /* tasks of each queue for which this lane has waited */
    int64_t counts[PEAL_HOST_QUEUES];  /* notifies of each lane of the queue up to there */
};

/* The lane waits until all lanes of a queue have done that many tasks. */
static void follow(struct linker *l, struct cursor *at, uint32_t worker, uint32_t queue,
                   uint64_t done, uint32_t own)
{
    uint32_t index = worker * PEAL_HOST_QUEUES + queue;
    if (done <= at->waited[queue])
        return;
    for (uint64_t i = at->waited[queue]; i < done; i++)
        at->counts[queue] += l->needed[index][i];
    at->waited[queue] = done;
    for (uint32_t lane = 0; lane < l->lanes[queue]; lane++) {
        uint32_t cell = lane_of(l, queue, lane);
        if (cell == own)
            continue;
        peal_assembler_wait(l->a, l->order, cell, PEAL_NONE, at->counts[queue], 0);
        l->nops++;
    }
}

static void link_part(struct linker *l, struct cursor *at, uint32_t index, uint64_t i,
                      uint32_t lane)
{
    const struct instance *instance = instance_at(l, index, i);
    uint32_t worker = index / PEAL_HOST_QUEUES, queue = index % PEAL_HOST_QUEUES;
    uint32_t member = peal_host_member_of(instance->block, worker);
    uint32_t own = lane_of(l, queue, lane);
    uint32_t other = index ^ 1;
    int64_t after =
        (int32_t)(instance->block->parts[member].after - (uint32_t)queue_first(l, other));
    if (after > 0)
        follow(l, at, worker, 1 - queue, (uint64_t)after, own);
    if (l->lanes[queue] > 1)
        follow(l, at, worker, queue, i, own);
    uint64_t before = l->nops;
    if (instance->plan && lane < peal_plan_lane_count(instance->plan, member))
        link_lane(l, instance, member, lane);
    else if (!instance->plan && lane == 0 && instance->block->kind == PEAL_HOST_RUN_FUNCTION)
        link_function(l, instance, member);
    struct peal_linked_part part = {
        .task = instance->block->id, .member = member, .first_op = before, .ops = l->nops - before};
    l->failed |= !peal_vec_push(&l->out->parts, part);
    bool needed = l->needed[index][i];
    if (!needed && !l->async)
        return;
    /* Asynchronous ops end at a notify, even at one for which no task waits. */
    peal_assembler_notify(l->a, worker, needed ? l->order : l->drain, own, PEAL_NONE, 1, 0);
    l->nops++;
}

static void link_rank(struct linker *l, uint32_t worker)
{
    uint32_t lanes = l->lanes[0] + l->lanes[1];
    peal_assembler_rank_begin(l->a, worker);
    for (uint32_t i = 0; i < lanes && !l->failed; i++) {
        uint32_t queue = PEAL_HOST_COMPUTE, lane = i;
        if (i >= l->lanes[PEAL_HOST_COMPUTE]) { /* the other queue's lanes come after */
            queue = PEAL_HOST_COMM;
            lane = i - l->lanes[PEAL_HOST_COMPUTE];
        }
        uint32_t index = worker * PEAL_HOST_QUEUES + queue;
        struct cursor at = {0};
        if (i > 0)
            peal_assembler_lane_begin(l->a);
        for (uint64_t t = 0; t < queue_count(l, index) && !l->failed; t++)
            link_part(l, &at, index, t, lane);
    }
}

/* ---- all ---- */

static bool begin(struct linker *l)
{
    struct peal_host *host = l->host;
    uint32_t queues = host->workers * PEAL_HOST_QUEUES;
    l->needed = calloc(queues, sizeof *l->needed);
    l->out->first = calloc(queues, sizeof *l->out->first);
    l->out->count = calloc(queues, sizeof *l->out->count);
    l->first = host->oldest;
    l->count = (size_t)(host->next_id - host->oldest);
    l->instances = calloc(l->count + 1, sizeof *l->instances);
    if (!l->needed || !l->out->first || !l->out->count || !l->instances)
        return false;
    for (uint32_t i = 0; i < queues; i++) {
        uint32_t done = atomic_load(&host->shared->queues[i].done);
        l->out->count[i] = (uint32_t)host->positions[i] - done;
        l->out->first[i] = host->positions[i] - l->out->count[i];
        l->needed[i] = calloc(l->out->count[i] + 1, sizeof **l->needed);
        if (!l->needed[i])
            return false;
    }
    l->lanes[0] = l->lanes[1] = 1;
    for (size_t t = 0; t < l->count; t++) {
        const struct peal_host_block *block = host->held[(l->first + t) % PEAL_MOST_QUEUED];
        l->instances[t].block = block;
        if (block->kind != PEAL_HOST_RUN_KERNEL)
            continue;
        const struct peal_plan *plan = host->variants.at[block->variant].plan;
        for (uint32_t r = 0; r < plan->nranks; r++) {
            uint32_t lanes = peal_plan_lane_count(plan, r);
            if (lanes > l->lanes[block->queue])
                l->lanes[block->queue] = lanes;
        }
    }
    return true;
}

static void release(struct linker *l)
{
    uint32_t nneeded = l->needed ? l->host->workers * PEAL_HOST_QUEUES : 0;
    size_t ninstances = l->instances ? l->count : 0;
    for (uint32_t i = 0; i < nneeded; i++)
        free(l->needed[i]);
    free(l->needed);
    for (size_t t = 0; t < ninstances; t++) {
        free(l->instances[t].bufs);
        free(l->instances[t].signals);
        free(l->instances[t].channels);
    }
    free(l->instances);
    for (size_t i = 0; i < l->scratch.len; i++)
        free(l->scratch.at[i].bufs);
    peal_vec_release(&l->scratch);
}

enum peal_status peal_link(struct peal_host *host, struct peal_linked *out)
{
    struct linker *l = calloc(1, sizeof *l);
    struct peal_diags diags;
    enum peal_status status = PEAL_NO_MEMORY;
    const struct peal_machine_keys *keys = &host->machine->keys;
    *out = (struct peal_linked){0};
    if (!l)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for the queued tasks");
    l->host = host;
    l->out = out;
    l->async = keys->math_async || keys->recv_async;
    l->a = peal_assembler_new(host->workers, 0, host->workers);
    peal_diags_init(&diags);
    l->failed = !l->a || !begin(l);
    if (!l->failed) {
        uint32_t lanes = l->lanes[0] + l->lanes[1];
        struct peal_plan *header = peal_assembler_header(l->a);
        header->kernel = peal_assembler_string(l->a, "tasks");
        peal_assembler_channel_shape(l->a, (uint32_t)keys->slots, keys->slot_bytes);
        struct peal_buf_spec memory = {.name = "memory",
                                       .kind = PEAL_BUF_PARAM,
                                       .dir = PEAL_DIR_INOUT,
                                       .dtype = PEAL_U8,
                                       .flags = PEAL_BUF_SYMMETRIC,
                                       .alias = PEAL_NONE,
                                       .len = host->memory};
        l->memory = add_buf(l, &memory);
        l->order = peal_assembler_signal(l->a, "order", PEAL_SIGNAL_ONE_WRITER, lanes);
        l->drain = peal_assembler_signal(l->a, "drain", PEAL_SIGNAL_ONE_WRITER, lanes);
        for (uint32_t i = 0; i < host->workers * PEAL_HOST_QUEUES; i++)
            mark_needed(l, i);
        for (size_t t = 0; t < l->count; t++) {
            if (l->failed)
                break;
            make_instance(l, &l->instances[t]);
        }
        for (uint32_t w = 0; w < host->workers && !l->failed; w++)
            link_rank(l, w);
    }
    if (l->a && !l->failed)
        status = peal_assembler_finish(l->a, &diags, &out->plan);
    else
        peal_assembler_free(l->a);
    if (status != PEAL_OK) {
        struct peal_text why = {0};
        peal_diags_quote(&diags, &why);
        peal_host_fail(host, status, "the queued tasks make no plan: %s",
                       why.len ? peal_text_get(&why) : "they are too many, or there is no memory");
        peal_text_release(&why);
    }
    peal_diags_release(&diags);
    release(l);
    free(l);
    return status;
}

void peal_linked_release(struct peal_linked *linked)
{
    free(linked->plan);
    free(linked->first);
    free(linked->count);
    peal_vec_release(&linked->parts);
}
