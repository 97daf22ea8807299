/* SPDX-License-Identifier: Apache-2.0 */
/* Taints: bytes that a failed task should have written. A task that reads some of them fails too;
 * one that overwrites them and succeeds removes the taint. So exactly the tasks fail that depend on
 * a failure, byte by byte. Taints are kept per worker, under a lock that its two threads and the
 * host hold for a few instructions. Usually there are no taints, and the lock is never taken. A
 * dead worker may leave its lock taken; the host does not read that worker's memory any more. */
#include "driver/state/state.h"

#include <sched.h>
#include <string.h>

uint64_t peal_taint_buffer(uint32_t symmetric, uint64_t offset)
{
    return UINT64_C(1) << 63 | (uint64_t)symmetric << 44 | offset;
}

uint64_t peal_taint_address(const struct peal_host_block *block, uint32_t member, uint32_t arg)
{
    uint64_t at = block->places[(size_t)member * block->nargs + arg].at;
    uint32_t symmetric = block->args[arg].symmetric;
    if (symmetric)
        return peal_taint_buffer(symmetric, at);
    return at;
}

static bool lock(struct peal_host_worker *worker)
{
    /* acquire: sees what the last holder wrote; partner: unlock */
    while (atomic_exchange_explicit(&worker->lock, 1, memory_order_acquire)) {
        if (atomic_load_explicit(&worker->dead, memory_order_acquire))
            return false;
        sched_yield();
    }
    return true;
}

static void unlock(struct peal_host_worker *worker)
{
    atomic_store_explicit(&worker->lock, 0, memory_order_release); /* partner: lock */
}

static bool any(struct peal_host_worker *worker)
{
    /* acquire; partner: the release in set_count. A task that must see a taint comes after its
     * maker in the queues, whose counters order both. */
    return atomic_load_explicit(&worker->ntaints, memory_order_acquire) > 0;
}

static void set_count(struct peal_host_worker *worker, uint32_t count)
{
    atomic_store_explicit(&worker->ntaints, count, memory_order_release); /* partner: any */
}

enum peal_status peal_taint_find(struct peal_host_worker *worker, uint64_t begin, uint64_t end,
                                 uint64_t *task)
{
    enum peal_status status = PEAL_OK;
    if (begin >= end || !any(worker))
        return PEAL_OK;
    if (!lock(worker))
        return PEAL_PEER_DEAD;
    uint32_t count = atomic_load_explicit(&worker->ntaints, memory_order_relaxed); /* locked */
    for (uint32_t i = 0; i < count && status == PEAL_OK; i++) {
        const struct peal_host_taint *taint = &worker->taints[i];
        if (taint->begin < end && begin < taint->end) {
            status = (enum peal_status)taint->status;
            *task = taint->task;
        }
    }
    unlock(worker);
    return status;
}

/* Under the lock. If the table is full, the last taint is widened to cover this one: some tasks
 * then fail that need not. */
static uint32_t put(struct peal_host_worker *worker, uint32_t count, struct peal_host_taint taint)
{
    if (count < PEAL_HOST_MAX_TAINTS) {
        worker->taints[count] = taint;
        return count + 1;
    }
    struct peal_host_taint *last = &worker->taints[count - 1];
    if (taint.begin < last->begin)
        last->begin = taint.begin;
    if (taint.end > last->end)
        last->end = taint.end;
    return count;
}

void peal_taint_clear(struct peal_host_worker *worker, uint64_t begin, uint64_t end)
{
    if (begin >= end || !any(worker) || !lock(worker))
        return;
    uint32_t count = atomic_load_explicit(&worker->ntaints, memory_order_relaxed); /* locked */
    for (uint32_t i = 0; i < count; i++) {
        struct peal_host_taint taint = worker->taints[i];
        if (taint.begin >= end || begin >= taint.end)
            continue;
        struct peal_host_taint rest = taint;
        worker->taints[i].end = begin;
        rest.begin = end;
        if (rest.begin < rest.end)
            count = put(worker, count, rest);
        if (worker->taints[i].begin >= worker->taints[i].end)
            worker->taints[i--] = worker->taints[--count];
    }
    set_count(worker, count);
    unlock(worker);
}

static void add_taint(struct peal_host_worker *worker, uint64_t begin, uint64_t end, uint64_t task,
                      enum peal_status status)
{
    if (begin >= end)
        return;
    peal_taint_clear(worker, begin, end);
    if (!lock(worker))
        return;
    uint32_t count = atomic_load_explicit(&worker->ntaints, memory_order_relaxed); /* locked */
    set_count(worker, put(worker, count, (struct peal_host_taint){begin, end, task, status}));
    unlock(worker);
}

static bool is_tensor(const struct peal_host_arg *arg, enum peal_buf_dir dir)
{
    return arg->kind == PEAL_TASK_TENSOR && (arg->dir & dir);
}

enum peal_status peal_taint_inputs(struct peal_host_shared *shared,
                                   const struct peal_host_block *block, uint32_t member,
                                   uint64_t *task)
{
    struct peal_host_worker *worker = &shared->of_worker[block->parts[member].worker];
    enum peal_status status = PEAL_OK;
    if (!any(worker))
        return PEAL_OK;
    for (uint32_t a = 0; a < block->nargs && status == PEAL_OK; a++) {
        uint64_t at = peal_taint_address(block, member, a);
        uint64_t bytes = block->places[(size_t)member * block->nargs + a].touched;
        if (is_tensor(&block->args[a], PEAL_DIR_IN))
            status = peal_taint_find(worker, at, at + bytes, task);
    }
    return status;
}

void peal_taint_outputs(struct peal_host_shared *shared, const struct peal_host_block *block,
                        uint32_t member, enum peal_status status)
{
    struct peal_host_worker *worker = &shared->of_worker[block->parts[member].worker];
    if (status == PEAL_OK && !any(worker))
        return;
    uint64_t cause = atomic_load(&block->cause), first = cause ? cause : block->id;
    for (uint32_t a = 0; a < block->nargs; a++) {
        uint64_t at = peal_taint_address(block, member, a);
        uint64_t end = at + block->places[(size_t)member * block->nargs + a].touched;
        if (!is_tensor(&block->args[a], PEAL_DIR_OUT))
            continue;
        if (status == PEAL_OK)
            peal_taint_clear(worker, at, end);
        else
            add_taint(worker, at, end, first, status);
    }
}
