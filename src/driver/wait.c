/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of tasks: the host waits for tasks, keeps the errors of failed ones, and releases what tasks
 * used. Tasks are retired oldest first; their blocks are then reused. */
#include "driver/hosts/hosts.h"
#include "driver/state/state.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { POLLS = 2000, SLEEP_US = 50000, MAX_TEXTS = 1024 };

static bool is_done(const struct peal_host *host, uint32_t worker, uint32_t queue, uint64_t count)
{
    const struct peal_host_queue *q = &host->shared->queues[worker * PEAL_HOST_QUEUES + queue];
    /* acquire; partner: the worker's loop, or the simulator */
    return (int32_t)(atomic_load_explicit(&q->done, memory_order_acquire) - (uint32_t)count) >= 0;
}

enum peal_status peal_host_wait_position(struct peal_host *host, uint32_t worker, uint32_t queue,
                                         uint64_t count)
{
    struct peal_host_queue *q = &host->shared->queues[worker * PEAL_HOST_QUEUES + queue];
    peal_host_publish(host);
    if (host->simulated && !is_done(host, worker, queue, count))
        return peal_simulated_flush(host);
    for (uint32_t round = 0; round < POLLS; round++) {
        if (is_done(host, worker, queue, count))
            return PEAL_OK;
        if (round % 16 == 15)
            sched_yield();
    }
    while (!is_done(host, worker, queue, count)) {
        atomic_fetch_add(&q->waited, 1); /* seq_cst, with `done`: see wait_count in worker.c */
        uint32_t now = atomic_load(&q->done);
        if ((int32_t)(now - (uint32_t)count) < 0)
            peal_futex_wait(&q->done, now, SLEEP_US);
        atomic_fetch_sub(&q->waited, 1);
    }
    return PEAL_OK;
}

/* ---- failures ---- */

/* The error text that a worker wrote, or NULL. */
static const struct peal_host_report *find_report(const struct peal_host *host, uint64_t id)
{
    for (uint32_t i = 0; i < PEAL_HOST_REPORTS; i++) {
        const struct peal_host_report *report = &host->shared->reports[i];
        /* acquire; partner: peal_worker_report */
        if (atomic_load_explicit(&report->task, memory_order_acquire) == id)
            return report;
    }
    return NULL;
}

/* Frees what workers wrote about a task. */
static void free_reports(struct peal_host *host, uint64_t id)
{
    for (uint32_t i = 0; i < PEAL_HOST_REPORTS; i++) {
        _Atomic uint64_t *task = &host->shared->reports[i].task;
        if (atomic_load_explicit(task, memory_order_acquire) == id)
            atomic_store_explicit(task, 0, memory_order_release); /* partner: peal_worker_report */
    }
}

static const struct peal_host_failure *find_failure(const struct peal_host *host, uint64_t id)
{
    return peal_row_find(host->failures.at, host->failures.len, sizeof *host->failures.at, id);
}

static char *describe_first(const struct peal_host *host, uint64_t id, enum peal_status status);

static char *describe(const struct peal_host *host, const struct peal_host_block *block,
                      enum peal_status status)
{
    const struct peal_host_report *report = find_report(host, block->id);
    uint64_t cause = atomic_load(&block->cause);
    char *first = cause ? describe_first(host, cause, status) : NULL;
    char text[2 * PEAL_HOST_REPORT_BYTES];
    int len = snprintf(text, sizeof text, "task %llu, '%s', ", (unsigned long long)block->id,
                       block->name);
    char *rest = text + len;
    size_t cap = sizeof text - (size_t)len;
    if (first)
        snprintf(rest, cap, "was not run, because it depends on %s", first);
    else if (cause)
        snprintf(rest, cap, "was not run, because it depends on task %llu, which failed: %s",
                 (unsigned long long)cause, peal_status_text(status));
    else if (report)
        snprintf(rest, cap, "failed on worker %u (%s): %s", report->worker,
                 peal_status_text(status), report->text);
    else
        snprintf(rest, cap, "failed: %s", peal_status_text(status));
    free(first);
    return strdup(text);
}

/* The text of a task that failed because of no other; NULL: no longer kept. */
static char *describe_first(const struct peal_host *host, uint64_t id, enum peal_status status)
{
    const struct peal_host_failure *failure = find_failure(host, id);
    if (id >= host->oldest)
        return describe(host, host->held[id % PEAL_MOST_QUEUED], status);
    return failure && failure->text ? strdup(failure->text) : NULL;
}

/* The texts of the last failures are kept, of those with a cause and of the causes. */
static void drop_texts(struct peal_host *host, bool caused)
{
    while (host->texts_kept[caused] > MAX_TEXTS) {
        struct peal_host_failure *old = &host->failures.at[host->texts_from[caused]++];
        if (!old->text || (old->cause != 0) != caused)
            continue;
        free(old->text);
        old->text = NULL;
        host->texts_kept[caused]--;
    }
}

static void note_failure(struct peal_host *host, const struct peal_host_block *block,
                         enum peal_status status)
{
    struct peal_host_failure failure = {block->id, status, atomic_load(&block->cause),
                                        describe(host, block, status)};
    free_reports(host, block->id);
    if (host->failures.len == host->reported) {
        free(host->first_text);
        host->first_text = failure.text ? strdup(failure.text) : NULL;
    }
    if (!peal_vec_push(&host->failures, failure)) {
        free(failure.text);
        return;
    }
    host->texts_kept[failure.cause != 0] += failure.text != NULL;
    drop_texts(host, failure.cause != 0);
}

static enum peal_status failure_status(struct peal_host *host, uint64_t id)
{
    const struct peal_host_failure *failure = find_failure(host, id);
    if (!failure)
        return PEAL_OK;
    return failure->status;
}

const char *peal_host_failure_text(struct peal_host *host, uint64_t id)
{
    const struct peal_host_failure *failure = find_failure(host, id);
    if (!failure)
        return "";
    if (!failure->text)
        return "it failed; its message is no longer kept";
    return failure->text;
}

/* ---- ends ---- */

static uint8_t state_of(const struct peal_host *host, uint64_t id)
{
    /* seq_cst: with `waiting`, see wait_until_ended; acquires what the task wrote */
    return atomic_load(&host->shared->states[id % PEAL_HOST_STATES]);
}

void peal_host_retire(struct peal_host *host)
{
    while (host->oldest < host->next_id) {
        uint8_t state = state_of(host, host->oldest);
        if (!state)
            break;
        struct peal_host_block *block = host->held[host->oldest % PEAL_MOST_QUEUED];
        enum peal_status status = (enum peal_status)(state - 1);
        if (status != PEAL_OK)
            note_failure(host, block, status);
        if (host->record)
            peal_history_end(host, block, status);
        host->block_tail = host->block_ends[host->oldest % PEAL_MOST_QUEUED];
        host->oldest++;
    }
    peal_host_collect_frees(host);
}

/* A task that was submitted and has not ended. Retired tasks have. */
static bool is_pending(const struct peal_host *host, uint64_t id)
{
    return id >= host->oldest && id < host->next_id && !state_of(host, id);
}

static void wait_until_ended(struct peal_host *host, uint64_t id)
{
    peal_host_publish(host);
    if (host->simulated && is_pending(host, id))
        peal_simulated_flush(host);
    for (uint32_t round = 0; round < POLLS; round++) {
        if (!is_pending(host, id))
            return;
        if (round % 16 == 15)
            sched_yield();
    }
    while (is_pending(host, id)) {
        uint32_t now = atomic_load(&host->shared->ended);
        atomic_store(&host->shared->waiting, 1); /* seq_cst; partner: peal_worker_end */
        if (!state_of(host, id))
            peal_futex_wait(&host->shared->ended, now, SLEEP_US);
        atomic_store(&host->shared->waiting, 0);
    }
}

void peal_host_wait_oldest(struct peal_host *host)
{
    wait_until_ended(host, host->oldest);
    peal_host_retire(host);
}

/* One task, which need not be the oldest. */
enum peal_status peal_host_wait_id(struct peal_host *host, uint64_t id)
{
    wait_until_ended(host, id);
    if (id < host->oldest)
        return failure_status(host, id);
    return (enum peal_status)(state_of(host, id) - 1);
}

static enum peal_status check_task(struct peal_host *host, struct peal_task task, uint64_t *id)
{
    enum peal_status status = peal_host_enter(host);
    if (status != PEAL_OK)
        return status;
    *id = task.id & ((UINT64_C(1) << 48) - 1);
    if (task.id >> 48 != host->number && task.id)
        return peal_host_fail(host, PEAL_INVALID, "this task belongs to another host");
    if (*id == 0 || *id >= host->next_id)
        return peal_host_fail(host, PEAL_INVALID, "there is no such task");
    return PEAL_OK;
}

/* The error text of a task that has failed. */
static enum peal_status report(struct peal_host *host, uint64_t id, enum peal_status status)
{
    if (status == PEAL_OK)
        return PEAL_OK;
    peal_host_retire(host);
    if (id < host->oldest)
        return peal_host_fail(host, status, "%s", peal_host_failure_text(host, id));
    char *text = describe(host, host->held[id % PEAL_MOST_QUEUED], status);
    peal_host_fail(host, status, "%s", text ? text : peal_status_text(status));
    free(text);
    return status;
}

enum peal_status peal_host_wait(struct peal_host *host, struct peal_task task)
{
    uint64_t id = 0;
    enum peal_status status = check_task(host, task, &id);
    if (status == PEAL_OK)
        return report(host, id, peal_host_wait_id(host, id));
    return status;
}

enum peal_status peal_host_test(struct peal_host *host, struct peal_task task)
{
    uint64_t id = 0;
    enum peal_status status = check_task(host, task, &id);
    if (status != PEAL_OK)
        return status;
    if (id >= host->oldest && !state_of(host, id))
        return PEAL_PENDING;
    return report(host, id, peal_host_wait_id(host, id));
}

enum peal_status peal_host_wait_all(struct peal_host *host)
{
    enum peal_status status = peal_host_enter(host);
    if (status != PEAL_OK)
        return status;
    peal_host_publish(host);
    if (host->simulated)
        status = peal_simulated_flush(host);
    while (status == PEAL_OK && host->oldest < host->next_id)
        peal_host_wait_oldest(host);
    if (status != PEAL_OK || host->reported == host->failures.len)
        return status;
    status = host->failures.at[host->reported].status;
    host->reported = host->failures.len;
    return peal_host_fail(host, status, "%s",
                          host->first_text ? host->first_text : peal_status_text(status));
}

void peal_host_collect_frees(struct peal_host *host)
{
    size_t kept = 0;
    for (size_t i = 0; i < host->frees.len; i++) {
        struct peal_host_pending_free *gone = &host->frees.at[i];
        bool used = false;
        for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++)
            used |= gone->last[q] && !is_done(host, gone->worker, q, gone->last[q]);
        if (used) {
            host->frees.at[kept++] = *gone;
            continue;
        }
        peal_taint_clear(&host->shared->of_worker[gone->worker], gone->at, gone->at + gone->bytes);
        if (host->away)
            peal_away_clean(host, gone->worker, gone->at, gone->at + gone->bytes);
        peal_area_give(&host->areas[gone->worker], gone->at, gone->bytes);
    }
    host->frees.len = kept;
}
