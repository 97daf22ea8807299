/* SPDX-License-Identifier: Apache-2.0 */
/* A task becomes a block: written once, then put into the queues of its members, all or none.
 *
 * Blocks lie one after the other in a ring of shared memory, each in one piece, and are freed in
 * the order of their ids as tasks end (wait.c): there is no allocator that could fail halfway. A
 * submit that finds no space waits for the oldest task, or returns PEAL_PENDING if the caller does
 * not want to wait. Everything that can be wrong with a task is found before its block is begun, so
 * that no queue ever holds half a task.
 *
 * The order of tasks is decided here, by bytes: each part of a task gets the number of tasks of its
 * worker's other queue that must be done first (order.c), and workers only compare numbers.
 * docs/host.md has the argument why that never deadlocks. A worker that has died takes no part: for
 * the host's own tasks its part is ended here, so that domains can still be closed. */
#include "driver/hosts/hosts.h"
#include "driver/state/state.h"

#include "comm/comm.h"

#include <stdio.h>
#include <string.h>

enum { RETIRE_EVERY = 512 };

/* Bytes of a block: its head and the tables after it, each at a multiple of 8. */
static uint64_t block_bytes(const struct peal_host_block *like, uint64_t ints)
{
    uint64_t bytes = sizeof *like;
    bytes += like->nargs * sizeof(struct peal_host_arg);
    bytes += like->members * sizeof(struct peal_host_part);
    bytes += (uint64_t)like->members * like->nargs * sizeof(struct peal_host_place);
    bytes += like->ndims * (sizeof(struct peal_dim) + 64);
    bytes += ints * sizeof(int64_t);
    return peal_size_align(bytes, 64);
}

/* Is there space for a block of that size? *at: where, in a count of bytes that does not wrap. */
static bool has_room(const struct peal_host *host, uint64_t bytes, uint64_t *at)
{
    uint64_t offset = host->block_head % PEAL_HOST_BLOCK_BYTES;
    *at = host->block_head;
    if (offset + bytes > PEAL_HOST_BLOCK_BYTES)
        *at += PEAL_HOST_BLOCK_BYTES - offset;
    return *at + bytes - host->block_tail <= PEAL_HOST_BLOCK_BYTES &&
           host->next_id - host->oldest < PEAL_MOST_QUEUED;
}

static enum peal_status make_room(struct peal_host *host, uint64_t bytes, bool may_wait,
                                  uint64_t *at)
{
    if (bytes > PEAL_HOST_BLOCK_BYTES / 4)
        return peal_host_fail(host, PEAL_NO_MEMORY, "a task of %llu bytes of arguments",
                              (unsigned long long)bytes);
    if (host->next_id - host->oldest >= RETIRE_EVERY && host->next_id % RETIRE_EVERY == 0)
        peal_host_retire(host);
    while (!has_room(host, bytes, at)) {
        peal_host_retire(host);
        if (has_room(host, bytes, at))
            break;
        if (!may_wait)
            return PEAL_PENDING;
        peal_host_wait_oldest(host);
    }
    return PEAL_OK;
}

/* A block with its tables laid out, not yet in any queue. */
static struct peal_host_block *new_block(struct peal_host *host, uint64_t at,
                                         const struct peal_host_block *like, uint64_t bytes)
{
    struct peal_host_block *block =
        (struct peal_host_block *)(host->shared->blocks + at % PEAL_HOST_BLOCK_BYTES);
    *block = *like;
    block->id = host->next_id;
    block->bytes = bytes;
    block->args = (struct peal_host_arg *)(block + 1);
    block->parts = (struct peal_host_part *)(block->args + block->nargs);
    block->places = (struct peal_host_place *)(block->parts + block->members);
    block->dims = (struct peal_dim *)(block->places + (uint64_t)block->members * block->nargs);
    host->block_head = at + bytes;
    host->block_ends[block->id % PEAL_MOST_QUEUED] = host->block_head;
    host->held[block->id % PEAL_MOST_QUEUED] = block;
    /* relaxed: workers learn of the task by the queue, and the host is the only reader */
    atomic_store_explicit(&host->shared->states[block->id % PEAL_HOST_STATES], 0,
                          memory_order_relaxed);
    return block;
}

/* Arrays of ints and names of dimensions follow the tables. */
static void fill_tables(struct peal_host_block *block, const struct peal_host_request *r)
{
    int64_t *ints = (int64_t *)(block->dims + block->ndims);
    memcpy(block->args, r->args, block->nargs * sizeof *block->args);
    memcpy(block->places, r->places, (size_t)block->members * block->nargs * sizeof *block->places);
    for (uint32_t a = 0; a < block->nargs; a++) {
        size_t all = block->args[a].nvalues * (size_t)(block->args[a].local ? block->members : 1);
        if (block->args[a].kind != PEAL_TASK_INTS || !all)
            continue;
        memcpy(ints, block->args[a].values, all * sizeof *ints);
        block->args[a].values = ints;
        ints += all;
    }
    char *names = (char *)ints;
    for (uint32_t i = 0; i < block->ndims; i++) {
        snprintf(names + i * 64, 64, "%s", r->dims[i].name);
        block->dims[i] = (struct peal_dim){names + i * 64, r->dims[i].value};
    }
}

/* Finds what a member must wait for in its other queue, and notes the task as the last to touch its
 * bytes. */
static void order_part(struct peal_host *host, struct peal_host_block *block, uint32_t member,
                       const struct peal_host_request *r)
{
    struct peal_host_part *part = &block->parts[member];
    uint32_t index = part->worker * PEAL_HOST_QUEUES + block->queue;
    uint64_t position = host->positions[index], after = 0;
    for (uint32_t a = 0; a < block->nargs; a++) {
        if (!r->tensors[a])
            continue;
        struct peal_host_piece *piece =
            (struct peal_host_piece *)peal_tensor_piece_on(r->tensors[a], part->worker);
        const struct peal_host_place *place = &block->places[(size_t)member * block->nargs + a];
        uint64_t wait = peal_order_touch(host, piece, place->at - piece->at, place->touched,
                                         block->args[a].dir & PEAL_DIR_OUT, block->queue, position);
        if (wait > after)
            after = wait;
    }
    part->position = (uint32_t)position;
    /* Nothing to wait for: the number of those that have ended already. */
    const struct peal_host_queue *other =
        &host->shared->queues[part->worker * PEAL_HOST_QUEUES + 1 - block->queue];
    part->after = (uint32_t)after;
    if (!after)
        part->after = atomic_load_explicit(&other->done, memory_order_relaxed); /* a hint */
}

static void push(struct peal_host *host, uint32_t index)
{
    uint32_t pushed = (uint32_t)host->positions[index];
    if (host->away)
        peal_away_push(host, index, pushed);
    else
        peal_worker_push(&host->shared->queues[index], pushed);
}

static void put(struct peal_host *host, struct peal_host_block *block)
{
    struct peal_host_shared *shared = host->shared;
    uint64_t offset = (uint64_t)((char *)block - shared->blocks) / 64;
    if (host->record)
        peal_history_submit(host, block);
    for (uint32_t m = 0; m < block->members; m++) {
        uint32_t index = block->parts[m].worker * PEAL_HOST_QUEUES + block->queue;
        uint64_t entry = block->id << PEAL_HOST_BLOCK_BITS | offset;
        *peal_host_ring_at(shared, block->parts[m].worker, block->queue, host->positions[index]) =
            entry;
        if (host->away)
            peal_away_task(host, block, m, entry);
        host->positions[index]++;
        if (!host->holding)
            push(host, index);
    }
    host->next_id++;
}

void peal_host_publish(struct peal_host *host)
{
    if (!host->holding)
        return;
    host->holding = false;
    pthread_mutex_lock(&host->mutex);
    for (uint32_t i = 0; i < host->workers * PEAL_HOST_QUEUES; i++)
        push(host, i);
    pthread_mutex_unlock(&host->mutex);
}

static enum peal_status check_alive(struct peal_host *host, const uint32_t *workers, uint32_t count)
{
    for (uint32_t m = 0; m < count; m++) {
        /* acquire; partner: peal_host_note_death */
        if (atomic_load_explicit(&host->shared->of_worker[workers[m]].dead, memory_order_acquire))
            return peal_host_fail(host, PEAL_PEER_DEAD, "worker %u is dead", workers[m]);
    }
    return PEAL_OK;
}

static uint64_t count_ints(const struct peal_host_request *r)
{
    uint64_t count = 0;
    for (uint32_t a = 0; a < r->work->nparams; a++)
        count += r->args[a].nvalues * (uint64_t)(r->args[a].local ? r->members : 1);
    return count;
}

static enum peal_status queue_task(struct peal_host *host, const struct peal_host_request *r,
                                   bool may_wait)
{
    uint64_t at = 0, ints = count_ints(r);
    struct peal_host_block like = {.kind = r->work->function ? PEAL_HOST_RUN_FUNCTION
                                                             : PEAL_HOST_RUN_KERNEL,
                                   .queue = r->queue,
                                   .work = r->work_index,
                                   .domain = r->slot,
                                   .members = r->members,
                                   .nargs = r->work->nparams,
                                   .ndims = r->ndims,
                                   .dtype = (uint32_t)r->dtype,
                                   .variant = r->variant};
    uint64_t bytes = block_bytes(&like, ints);
    enum peal_status status = make_room(host, bytes, may_wait, &at);
    if (status != PEAL_OK)
        return status;
    pthread_mutex_lock(&host->mutex);
    status = check_alive(host, r->workers, r->members);
    if (status == PEAL_OK) {
        struct peal_host_block *block = new_block(host, at, &like, bytes);
        snprintf(block->name, sizeof block->name, "%s",
                 r->spec->name ? r->spec->name : r->work->name);
        fill_tables(block, r);
        host->before.len = 0;
        for (uint32_t m = 0; m < r->members; m++) {
            block->parts[m] = (struct peal_host_part){.worker = r->workers[m]};
            order_part(host, block, m, r);
        }
        put(host, block);
    }
    pthread_mutex_unlock(&host->mutex);
    return status;
}

static enum peal_status submit_known(struct peal_host *host, const struct peal_task_spec *spec,
                                     bool may_wait, struct peal_task *out)
{
    struct peal_host_request request;
    enum peal_status status = peal_host_enter(host);
    if (status != PEAL_OK)
        return status;
    if (!spec)
        return peal_host_fail(host, PEAL_INVALID, "no task, or one with fields that are not known");
    status = peal_host_request_make(host, spec, &request);
    if (status == PEAL_OK && request.domain && !request.work->function)
        status = peal_host_domain_ready(host, request.domain, request.queue);
    if (status == PEAL_OK)
        status = queue_task(host, &request, may_wait);
    if (status == PEAL_OK && out)
        out->id = (uint64_t)host->number << 48 | (host->next_id - 1);
    return status;
}

/* The same from a specification that may be of older or newer headers. */
static enum peal_status submit(struct peal_host *host, const struct peal_task_spec *spec,
                               bool may_wait, struct peal_task *out)
{
    void *made, *made_args = NULL;
    const struct peal_task_spec *known =
        peal_growth_view(spec, 1, PEAL_TASK_SPEC_FIRST_BYTES, sizeof *known, &made);
    if (!known)
        return submit_known(host, NULL, may_wait, out);
    struct peal_task_spec own = *known;
    free(made);
    own.args = peal_growth_view(own.args, own.nargs, PEAL_TASK_ARG_FIRST_BYTES, sizeof *own.args,
                                &made_args);
    enum peal_status status = submit_known(host, &own, may_wait, out);
    free(made_args);
    return status;
}

enum peal_status peal_host_submit(struct peal_host *host, const struct peal_task_spec *spec,
                                  struct peal_task *out)
{
    return submit(host, spec, true, out);
}

enum peal_status peal_host_try_submit(struct peal_host *host, const struct peal_task_spec *spec,
                                      struct peal_task *out)
{
    return submit(host, spec, false, out);
}

/* ---- tasks of the host's own ---- */

static const char *const internal_names[] = {[PEAL_HOST_OPEN_DOMAIN] = "open domain",
                                             [PEAL_HOST_CLOSE_DOMAIN] = "close domain",
                                             [PEAL_HOST_COPY_IN] = "write buffer",
                                             [PEAL_HOST_COPY_OUT] = "read buffer",
                                             [PEAL_HOST_STOP] = "stop"};

static void fill_internal(struct peal_host *host, struct peal_host_block *block,
                          const struct peal_host_internal *task)
{
    for (uint32_t m = 0; m < task->members; m++) {
        uint32_t index = task->workers[m] * PEAL_HOST_QUEUES;
        struct peal_host_queue *other = &host->shared->queues[index + 1 - task->queue];
        block->parts[m] = (struct peal_host_part){
            .worker = task->workers[m],
            .position = (uint32_t)host->positions[index + task->queue],
            .after = atomic_load_explicit(&other->done, memory_order_relaxed)}; /* a hint */
        if (task->after && task->after[m])
            block->parts[m].after = (uint32_t)task->after[m];
    }
    for (uint32_t a = 0; a < block->nargs; a++) {
        block->args[a] = (struct peal_host_arg){.kind = PEAL_TASK_TENSOR};
        block->places[a] = task->places[a];
    }
    if (!block->nargs)
        return;
    block->args[0].symmetric = task->slot + 1;
    block->args[0].dir = task->writes ? PEAL_DIR_OUT : PEAL_DIR_IN;
    struct peal_host_part *part = &block->parts[0];
    uint64_t position = host->positions[part->worker * PEAL_HOST_QUEUES + block->queue];
    uint64_t after =
        peal_order_touch(host, task->piece, task->places[0].at - task->piece->at,
                         task->places[0].touched, task->writes, block->queue, position);
    if (after)
        part->after = (uint32_t)after;
}

enum peal_status peal_host_submit_internal(struct peal_host *host,
                                           const struct peal_host_internal *task, uint64_t *out)
{
    uint64_t at = 0;
    struct peal_host_block like = {.kind = task->kind,
                                   .queue = task->queue,
                                   .domain = task->slot,
                                   .members = task->members,
                                   .nargs = task->piece ? 2 : 0,
                                   .variant = UINT64_MAX};
    uint64_t bytes = block_bytes(&like, 0);
    enum peal_status status = make_room(host, bytes, true, &at);
    if (status != PEAL_OK)
        return status;
    pthread_mutex_lock(&host->mutex);
    struct peal_host_block *block = new_block(host, at, &like, bytes);
    snprintf(block->name, sizeof block->name, "%s", internal_names[task->kind]);
    fill_internal(host, block, task);
    put(host, block);
    if (out)
        *out = block->id;
    /* A dead worker's part ends here. */
    for (uint32_t m = 0; m < task->members; m++) {
        uint32_t worker = task->workers[m];
        if (!atomic_load_explicit(&host->shared->of_worker[worker].dead, memory_order_acquire))
            continue;
        struct peal_host_queue *queue =
            &host->shared->queues[worker * PEAL_HOST_QUEUES + task->queue];
        peal_worker_arrive(block, m, PEAL_PEER_DEAD);
        if (host->away)
            peal_away_meet(host, block);
        atomic_store(&queue->done, atomic_load(&queue->done) + 1);
        peal_worker_end(host->shared, block, m, PEAL_PEER_DEAD);
    }
    pthread_mutex_unlock(&host->mutex);
    return PEAL_OK;
}
