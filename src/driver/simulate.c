/* SPDX-License-Identifier: Apache-2.0 */
/* A host on a modelled machine. Tasks stay in their queues until the program waits. Then all queued
 * tasks become one plan (link.c), which runs on the machine: first its time is simulated, then its
 * data is replayed, and functions are called when the replay reaches them. Tasks that are submitted
 * later start when all of the plan has ended: a simulated host always waits for everything. */
#include "driver/worker_link.h"

#include "sim/sim.h"

#include <string.h>

struct batch {
    struct peal_host *host;
    struct peal_linked linked;
    struct peal_sim *sim;
    enum peal_status *results; /* of functions, by task from the oldest on */
};

/* The part that an op of the plan belongs to; NULL: none. Parts are in order of their ops. */
static const struct peal_linked_part *part_of(const struct batch *batch, uint64_t op)
{
    size_t low = 0, high = batch->linked.parts.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct peal_linked_part *part = &batch->linked.parts.at[middle];
        if (part->first_op + part->ops <= op)
            low = middle + 1;
        else
            high = middle;
    }
    bool inside = low < batch->linked.parts.len && batch->linked.parts.at[low].first_op <= op;
    if (!inside)
        return NULL;
    return &batch->linked.parts.at[low];
}

static struct peal_host_block *block_of(const struct batch *batch, uint64_t id)
{
    return batch->host->held[id % PEAL_MOST_QUEUED];
}

/* The replay has reached a function. */
static void call_function(void *context, uint64_t op)
{
    struct batch *batch = context;
    const struct peal_linked_part *part = part_of(batch, op);
    struct peal_text why = {0};
    struct peal_host_block *block = block_of(batch, part->task);
    peal_host_in_task(true);
    enum peal_status status = peal_launch_function(batch->host->shared, block, part->member, &why);
    peal_host_in_task(false);
    if (status != PEAL_OK) {
        batch->results[part->task - batch->host->oldest] = status;
        peal_worker_report(batch->host->shared, part->task, block->parts[part->member].worker,
                           peal_text_get(&why));
    }
    peal_text_release(&why);
}

/* ---- times ---- */

static void note_times(struct batch *batch)
{
    struct peal_sim_log log;
    struct peal_host *host = batch->host;
    peal_sim_log(batch->sim, &log);
    for (uint64_t i = 0; i < log.nops; i++) {
        const struct peal_linked_part *part = part_of(batch, log.ops[i].op);
        if (!part)
            continue;
        struct peal_host_part *times = &block_of(batch, part->task)->parts[part->member];
        uint64_t start = host->time + log.ops[i].start, end = host->time + log.ops[i].end;
        if (!times->end || start < times->start)
            times->start = start;
        if (end > times->end)
            times->end = end;
    }
}

static void note_usage(struct batch *batch)
{
    struct peal_host *host = batch->host;
    uint64_t busiest = 0;
    for (uint32_t w = 0; w < host->workers; w++) {
        struct peal_sim_rank_stats rank;
        peal_sim_rank(batch->sim, w, &rank);
        host->math_ps += rank.math_busy;
        host->dma_ps += rank.dma_busy[0] + rank.dma_busy[1];
    }
    for (uint32_t i = 0; i < peal_sim_link_count(batch->sim); i++) {
        struct peal_sim_link_stats link;
        peal_sim_link(batch->sim, i, &link);
        busiest = peal_size_max(busiest, link.busy);
    }
    host->link_ps += busiest;
}

/* ---- ends ---- */

/* In order of submission: what a failed function should have written is tainted, and tasks that
 * read it fail. */
static void end_task(struct batch *batch, uint64_t id)
{
    struct peal_host *host = batch->host;
    struct peal_host_shared *shared = host->shared;
    struct peal_host_block *block = block_of(batch, id);
    enum peal_status status = batch->results[id - host->oldest];
    uint64_t culprit = 0;
    for (uint32_t m = 0; m < block->members && status == PEAL_OK; m++) {
        status = peal_taint_inputs(shared, block, m, &culprit);
        if (status != PEAL_OK)
            atomic_store(&block->cause, culprit);
    }
    for (uint32_t m = 0; m < block->members; m++)
        peal_taint_outputs(shared, block, m, status);
    /* seq_cst as in peal_worker_end; only the host's thread reads it */
    atomic_store(&shared->states[id % PEAL_HOST_STATES], (uint8_t)(1 + status));
}

static void end_tasks(struct batch *batch, enum peal_status status)
{
    struct peal_host *host = batch->host;
    for (uint64_t id = host->oldest; id < host->next_id; id++) {
        if (status != PEAL_OK)
            batch->results[id - host->oldest] = status;
        end_task(batch, id);
    }
    for (uint32_t i = 0; i < host->workers * PEAL_HOST_QUEUES; i++) {
        atomic_store(&host->shared->queues[i].pushed, (uint32_t)host->positions[i]);
        atomic_store(&host->shared->queues[i].done, (uint32_t)host->positions[i]);
    }
}

static enum peal_status launch(struct batch *batch)
{
    struct peal_host *host = batch->host;
    void **buffers = calloc(host->workers + 1u, sizeof *buffers);
    struct peal_sim_options options = {.data = PEAL_SIM_DATA_FULL,
                                       .log = host->record,
                                       .outside = call_function,
                                       .outside_context = batch};
    struct peal_diags diags;
    if (!buffers)
        return PEAL_NO_MEMORY;
    for (uint32_t w = 0; w < host->workers; w++)
        buffers[w] = host->areas[w].base;
    struct peal_sim_args args = {.buffers = buffers};
    peal_diags_init(&diags);
    struct peal_sim_turns turns = {&options, &args, 1};
    enum peal_status status =
        peal_sim_run_plan(host->machine, batch->linked.plan, &turns, &diags, &batch->sim);
    struct peal_text why = {0};
    if (status == PEAL_OK && peal_sim_deadlock(batch->sim)) {
        peal_sim_deadlock_print(batch->sim, &why);
        status = peal_host_fail(host, PEAL_TIMEOUT, "the machine is deadlocked: %s",
                                peal_text_get(&why));
    } else if (status != PEAL_OK) {
        peal_diags_quote(&diags, &why);
        peal_host_fail(host, status, "the machine cannot run the tasks: %s", peal_text_get(&why));
    }
    if (status == PEAL_OK)
        status = peal_sim_sync(batch->sim);
    peal_text_release(&why);
    peal_diags_release(&diags);
    free(buffers);
    return status;
}

enum peal_status peal_simulated_flush(struct peal_host *host)
{
    struct batch batch = {.host = host};
    if (host->oldest == host->next_id)
        return PEAL_OK;
    peal_host_publish(host);
    peal_host_retire(host);
    size_t count = (size_t)(host->next_id - host->oldest);
    if (count == 0)
        return PEAL_OK;
    batch.results = calloc(count, sizeof *batch.results);
    if (!batch.results)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for the queued tasks");
    enum peal_status status = peal_link(host, &batch.linked);
    if (status == PEAL_OK)
        status = launch(&batch);
    if (batch.sim && status == PEAL_OK) {
        if (host->record)
            note_times(&batch);
        note_usage(&batch);
        host->time += peal_sim_stats(batch.sim)->time;
    }
    end_tasks(&batch, status);
    peal_sim_free(batch.sim);
    peal_linked_release(&batch.linked);
    free(batch.results);
    peal_host_retire(host);
    return status;
}
