/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's thread: takes tasks from its queue in order, waits for the other queue as far as the
 * task requires, meets the other members, runs the task, and reports its end. */
#include "driver/hosts/hosts.h"
#include "driver/state/state.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Polls, then yields, then sleeps. Many workers share few cores, so polling is short. */
enum { POLLS = 200, YIELDS = 20, SLEEP_US = 50000 };

void peal_futex_wait(_Atomic uint32_t *word, uint32_t value, uint32_t microseconds)
{
    struct timespec limit = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

void peal_futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void peal_worker_push(struct peal_host_queue *queue, uint32_t pushed)
{
    /* seq_cst, with `idle`: either the worker sees the task, or this thread sees that it sleeps.
     * Releases the block; partner: wait_count */
    atomic_store(&queue->pushed, pushed);
    if (atomic_load(&queue->idle))
        peal_futex_wake(&queue->pushed);
}

static void pause_briefly(uint32_t round)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
    if (round >= POLLS)
        sched_yield();
}

/* Waits until this many tasks are in the queue, or done: one of a queue's two counters. */
static void wait_count(_Atomic uint32_t *count, _Atomic uint32_t *sleepers, uint32_t wanted)
{
    for (uint32_t round = 0; round < POLLS + YIELDS; round++) {
        /* acquire; partner: the release of the thread that counts */
        if ((int32_t)(atomic_load_explicit(count, memory_order_acquire) - wanted) >= 0)
            return;
        pause_briefly(round);
    }
    for (;;) {
        /* seq_cst, with the counter's: either the thread that counts sees that this one sleeps, or
         * this one sees the count. */
        atomic_fetch_add(sleepers, 1);
        uint32_t now = atomic_load(count);
        bool reached = (int32_t)(now - wanted) >= 0;
        if (!reached)
            peal_futex_wait(count, now, SLEEP_US);
        atomic_fetch_sub(sleepers, 1);
        if (reached)
            return;
    }
}

void peal_worker_report(struct peal_host_shared *shared, uint64_t task, uint32_t worker,
                        const char *text)
{
    uint32_t number = atomic_fetch_add(&shared->nreports, 1);
    struct peal_host_report *report = &shared->reports[number % PEAL_HOST_REPORTS];
    uint64_t none = 0;
    /* acquire; partner: take_report in wait.c, which has read the slot */
    if (!atomic_compare_exchange_strong_explicit(&report->task, &none, UINT64_MAX,
                                                 memory_order_acquire, memory_order_relaxed))
        return;
    report->worker = worker;
    snprintf(report->text, sizeof report->text, "%s", text);
    atomic_store_explicit(&report->task, task, memory_order_release); /* partner: wait.c */
}

void peal_worker_arrive(struct peal_host_block *block, uint32_t member, enum peal_status bad)
{
    uint32_t none = PEAL_OK;
    if (bad != PEAL_OK)
        atomic_compare_exchange_strong(&block->bad, &none, (uint32_t)bad);
    /* acq_rel: a thread that sees the bit sees `bad`; partner: meet */
    uint64_t before =
        atomic_fetch_or_explicit(&block->arrived, UINT64_C(1) << member, memory_order_acq_rel);
    atomic_fetch_add(&block->turn, 1);
    if ((before | UINT64_C(1) << member) == peal_host_all_members(block))
        peal_futex_wake(&block->turn);
}

/* Waits until all members have reached the task. Returns the same on all: whether it can run. */
static enum peal_status meet(struct peal_host_shared *shared, struct peal_host_block *block,
                             uint32_t member, enum peal_status bad)
{
    uint64_t all = peal_host_all_members(block);
    if (shared->away) /* the driver reports when all have arrived */
        peal_away_arrived(shared->away, block, member, bad);
    else
        peal_worker_arrive(block, member, bad);
    for (uint32_t round = 0;; round++) {
        uint32_t turn = atomic_load(&block->turn);
        /* acquire; partner: peal_worker_arrive, peal_away_apply */
        if (atomic_load_explicit(&block->arrived, memory_order_acquire) == all)
            break;
        if (round < POLLS + YIELDS)
            pause_briefly(round);
        else
            peal_futex_wait(&block->turn, turn, SLEEP_US);
    }
    return (enum peal_status)atomic_load_explicit(&block->bad, memory_order_acquire);
}

void peal_worker_end(struct peal_host_shared *shared, struct peal_host_block *block,
                     uint32_t member, enum peal_status status)
{
    uint32_t none = PEAL_OK;
    uint64_t id = block->id, all = peal_host_all_members(block);
    if (status != PEAL_OK)
        atomic_compare_exchange_strong(&block->status, &none, (uint32_t)status);
    /* acq_rel: the last one sees all members' status, times and data, and releases them below */
    uint64_t before =
        atomic_fetch_or_explicit(&block->ended, UINT64_C(1) << member, memory_order_acq_rel);
    if ((before | UINT64_C(1) << member) != all)
        return;
    uint32_t result = atomic_load_explicit(&block->status, memory_order_acquire);
    /* seq_cst, as the two below: either the host sees the state, or this thread sees that it waits.
     * From here on the block may be reused. */
    atomic_store(&shared->states[id % PEAL_HOST_STATES], (uint8_t)(1 + result));
    atomic_fetch_add(&shared->ended, 1);
    if (atomic_load(&shared->waiting))
        peal_futex_wake(&shared->ended);
}

static bool runs(const struct peal_host_block *block)
{
    return block->kind == PEAL_HOST_RUN_KERNEL || block->kind == PEAL_HOST_RUN_FUNCTION;
}

static enum peal_status run_task(struct peal_host_shared *shared, struct peal_launcher *launcher,
                                 struct peal_host_block *block, uint32_t member,
                                 struct peal_text *why)
{
    uint64_t culprit = 0;
    enum peal_status status = peal_taint_inputs(shared, block, member, &culprit);
    bool tainted = status != PEAL_OK;
    uint64_t none = 0;
    if (tainted)
        atomic_compare_exchange_strong(&block->cause, &none, culprit);
    /* Members do not meet for functions and for closing. */
    bool together = block->members > 1 && block->kind != PEAL_HOST_CLOSE_DOMAIN &&
                    block->kind != PEAL_HOST_RUN_FUNCTION;
    if (together)
        status = meet(shared, block, member, status);
    if (tainted)
        peal_text_printf(why, "it depends on task %llu, which failed", (unsigned long long)culprit);
    else if (status != PEAL_OK)
        peal_text_printf(why, "another member of its domain is dead, or reads what a failed task "
                              "was to write");
    block->parts[member].start = peal_now_ns();
    if (status == PEAL_OK) {
        peal_host_in_task(runs(block));
        status = peal_launcher_run(launcher, block, member, why);
        peal_host_in_task(false);
    }
    block->parts[member].end = peal_now_ns();
    peal_taint_outputs(shared, block, member, status);
    return status;
}

/* Reports the end of a task. Its block may be reused afterwards. */
static void end_task(struct peal_host_shared *shared, struct peal_host_block *block,
                     uint32_t member, enum peal_status status, const char *why)
{
    if (status != PEAL_OK && atomic_load(&block->cause) == 0)
        peal_worker_report(shared, block->id, block->parts[member].worker, why);
    peal_worker_end(shared, block, member, status);
}

/* The same report for a driver on another host, which is sent when the task counts as done. */
static struct peal_away_head report_of(const struct peal_host_shared *shared,
                                       const struct peal_host_block *block, uint32_t member,
                                       enum peal_status status)
{
    return (struct peal_away_head){.id = block->id,
                                   .block = (uint64_t)((const char *)block - shared->blocks),
                                   .start = block->parts[member].start,
                                   .end = block->parts[member].end,
                                   .at = atomic_load(&block->cause),
                                   .member = member,
                                   .status = (uint32_t)status};
}

void *peal_worker_run(void *argument)
{
    struct peal_host_thread thread = *(struct peal_host_thread *)argument;
    struct peal_host_shared *shared = thread.shared;
    struct peal_host_queue *queues = &shared->queues[thread.worker * PEAL_HOST_QUEUES];
    struct peal_host_queue *queue = &queues[thread.queue], *other = &queues[1 - thread.queue];
    struct peal_launcher *launcher = peal_launcher_new(shared, thread.worker, thread.queue);
    bool stop = false;
    free(argument);
    for (uint32_t head = 0; !stop; head++) {
        wait_count(&queue->pushed, &queue->idle, head + 1);
        uint64_t entry = *peal_host_ring_at(shared, thread.worker, thread.queue, head);
        struct peal_host_block *block = peal_host_ring_block(shared, entry);
        uint32_t member = peal_host_member_of(block, thread.worker);
        struct peal_text why = {0};
        enum peal_status status = PEAL_OK;
        stop = block->kind == PEAL_HOST_STOP;
        wait_count(&other->done, &other->waited, block->parts[member].after);
        if (!stop)
            status = run_task(shared, launcher, block, member, &why);
        struct peal_away_head report = report_of(shared, block, member, status);
        if (!shared->away)
            end_task(shared, block, member, status, peal_text_get(&why));
        /* seq_cst, with `waited`: see wait_count. Releases what the task wrote. */
        atomic_store(&queue->done, head + 1);
        if (atomic_load(&queue->waited))
            peal_futex_wake(&queue->done);
        report.count = head + 1;
        if (shared->away)
            peal_away_ended(shared->away, &report, peal_text_get(&why));
        peal_text_release(&why);
    }
    peal_launcher_free(launcher);
    return NULL;
}
