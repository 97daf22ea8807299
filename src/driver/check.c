/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the graph of held tasks: kernels by the verifier; the order of tasks by examining every
 * two that touch the same bytes, independently of order.c; that all tasks end, by following the
 * queues. */
#include "driver/state/state.h"

#include "verify/verify.h"

#include <string.h>

/* Values of variant->proved. */
enum { NOT_ASKED, REFUTED, UNDECIDED, PROVED, CLOSED };

static void prove(struct peal_host_variant *variant, struct peal_text *why)
{
    struct peal_verification *verification = NULL;
    struct peal_verify_options options = {0};
    variant->proved = UNDECIDED;
    if (peal_verify_plan(variant->plan, &options, &verification) != PEAL_OK)
        return;
    if (verification->verdict == PEAL_REFUTED)
        variant->proved = REFUTED;
    else if (verification->verdict == PEAL_PROVED)
        variant->proved = verification->reuse == PEAL_REUSE_CLOSED ? CLOSED : PROVED;
    if (verification->verdict != PEAL_PROVED)
        peal_verification_explain(verification, why);
    peal_verification_free(verification);
}

enum peal_status peal_check_variant(struct peal_host *host, uint64_t index)
{
    struct peal_host_variant *variant = &host->variants.at[index];
    struct peal_text why = {0};
    enum peal_status status = PEAL_OK;
    if (variant->proved == NOT_ASKED || variant->proved == REFUTED) /* again, for the message */
        prove(variant, &why);
    const char *name = peal_plan_string(variant->plan, variant->plan->kernel);
    if (variant->proved == REFUTED)
        status = peal_host_fail(host, PEAL_INVALID, "'%s' is refuted for these arguments: %s", name,
                                peal_text_get(&why));
    else if (variant->proved == UNDECIDED)
        status = peal_host_fail(host, PEAL_UNSUPPORTED,
                                "'%s' is neither proved nor refuted for these arguments", name);
    peal_text_release(&why);
    return status;
}

/* ---- order ---- */

/* One tensor argument of a held task on one worker. */
struct task_access {
    uint64_t begin, end;
    uint64_t task;
    uint64_t position;
    uint32_t queue;
    bool writes;
};

/* A worker's held tasks. */
struct look {
    struct peal_host *host;
    uint32_t worker;
    PEAL_VEC(struct task_access) list;
    uint64_t *after[PEAL_HOST_QUEUES]; /* by held position: what it, or an earlier one, waits for */
    uint64_t first[PEAL_HOST_QUEUES], count[PEAL_HOST_QUEUES];
};

static struct peal_host_block *held_at(const struct look *look, uint32_t queue, uint64_t position)
{
    return peal_host_ring_block(
        look->host->shared, *peal_host_ring_at(look->host->shared, look->worker, queue, position));
}

/* Collects what a queue's held tasks touch, and up to where each follows the other queue. */
static bool collect(struct look *look, uint32_t queue)
{
    uint64_t first = look->first[queue], after = 0;
    for (uint64_t i = 0; i < look->count[queue]; i++) {
        const struct peal_host_block *block = held_at(look, queue, first + i);
        uint32_t member = peal_host_member_of(block, look->worker);
        uint32_t own = block->parts[member].after;
        if (own > after)
            after = own;
        look->after[queue][i] = after;
        for (uint32_t a = 0; a < block->nargs; a++) {
            uint64_t at = peal_taint_address(block, member, a);
            uint64_t bytes = block->places[(size_t)member * block->nargs + a].touched;
            struct task_access access = {at,        at + bytes, block->id,
                                         first + i, queue,      block->args[a].dir & PEAL_DIR_OUT};
            if (block->args[a].kind == PEAL_TASK_TENSOR && bytes &&
                !peal_vec_push(&look->list, access))
                return false;
        }
    }
    return true;
}

static int by_begin(const void *a, const void *b)
{
    const struct task_access *x = a, *y = b;
    if (x->begin < y->begin)
        return -1;
    return x->begin > y->begin;
}

/* Does the later one run after the earlier one? In another queue it does if it, or a task before
 * it, waits for that one. */
static bool ordered(const struct look *look, const struct task_access *x,
                    const struct task_access *y)
{
    const struct task_access *early = x, *late = y;
    if (y->task < x->task) {
        early = y;
        late = x;
    }
    if (early->queue == late->queue)
        return true;
    uint64_t after = look->after[late->queue][late->position - look->first[late->queue]];
    return after > early->position;
}

static enum peal_status check_pairs(struct look *look)
{
    if (look->list.len)
        qsort(look->list.at, look->list.len, sizeof *look->list.at, by_begin);
    for (size_t i = 0; i < look->list.len; i++) {
        const struct task_access *x = &look->list.at[i];
        for (size_t j = i + 1; j < look->list.len && look->list.at[j].begin < x->end; j++) {
            const struct task_access *y = &look->list.at[j];
            if (x->task == y->task || !(x->writes || y->writes) || ordered(look, x, y))
                continue;
            return peal_host_fail(look->host, PEAL_INVALID,
                                  "tasks %llu and %llu touch the same bytes on worker %u, and "
                                  "nothing orders them",
                                  (unsigned long long)x->task, (unsigned long long)y->task,
                                  look->worker);
        }
    }
    return PEAL_OK;
}

static enum peal_status check_worker(struct peal_host *host, uint32_t worker)
{
    struct look look = {.host = host, .worker = worker};
    bool ok = true;
    for (uint32_t q = 0; q < PEAL_HOST_QUEUES && ok; q++) {
        uint32_t index = worker * PEAL_HOST_QUEUES + q;
        uint32_t pushed = atomic_load(&host->shared->queues[index].pushed);
        look.count[q] = (uint32_t)host->positions[index] - pushed;
        look.first[q] = host->positions[index] - look.count[q];
        look.after[q] = calloc(look.count[q] + 1, sizeof *look.after[q]);
        ok = look.after[q] && collect(&look, q);
    }
    enum peal_status status;
    if (ok)
        status = check_pairs(&look);
    else
        status = peal_host_fail(host, PEAL_NO_MEMORY, "no memory for the check");
    for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++)
        free(look.after[q]);
    peal_vec_release(&look.list);
    return status;
}

/* ---- cycles ---- */

/* Follows the queues as workers do, without running anything. */
struct check_walk {
    struct peal_host *host;
    uint64_t *done; /* by queue */
};

static bool can_start(const struct check_walk *walk, const struct peal_host_block *block)
{
    for (uint32_t m = 0; m < block->members; m++) {
        const struct peal_host_part *part = &block->parts[m];
        uint64_t *done = &walk->done[part->worker * PEAL_HOST_QUEUES];
        uint64_t other = done[1 - block->queue];
        if ((uint32_t)done[block->queue] != part->position ||
            (int32_t)((uint32_t)other - part->after) < 0)
            return false;
    }
    return true;
}

static void finish(struct check_walk *walk, const struct peal_host_block *block)
{
    for (uint32_t m = 0; m < block->members; m++)
        walk->done[block->parts[m].worker * PEAL_HOST_QUEUES + block->queue]++;
}

/* In order of submission, every task must be able to start when those before it have ended. */
static enum peal_status check_cycles(struct peal_host *host)
{
    uint32_t queues = host->workers * PEAL_HOST_QUEUES;
    struct check_walk walk = {host, calloc(queues, sizeof *walk.done)};
    enum peal_status status = PEAL_OK;
    if (!walk.done)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for the check");
    uint64_t first = host->next_id;
    for (uint32_t i = 0; i < queues; i++) {
        uint32_t pushed = atomic_load(&host->shared->queues[i].pushed);
        uint32_t held = (uint32_t)host->positions[i] - pushed;
        walk.done[i] = host->positions[i] - held;
        uint64_t entry = *peal_host_ring_at(host->shared, i / 2, i % 2, walk.done[i]);
        if (held && entry >> PEAL_HOST_BLOCK_BITS < first)
            first = entry >> PEAL_HOST_BLOCK_BITS;
    }
    for (uint64_t id = first; id < host->next_id && status == PEAL_OK; id++) {
        const struct peal_host_block *block = host->held[id % PEAL_MOST_QUEUED];
        if (can_start(&walk, block))
            finish(&walk, block);
        else
            status = peal_host_fail(host, PEAL_INVALID,
                                    "task %llu, '%s', waits for a task that waits for it",
                                    (unsigned long long)id, block->name);
    }
    free(walk.done);
    return status;
}

/* ---- kernels ---- */

/* Different kernels on one domain's buffers must all be closed: otherwise a rank that is still in
 * one of them may reach into memory that the next one uses. */
static enum peal_status check_sharing(struct peal_host *host, const struct peal_host_block *block,
                                      uint64_t *user)
{
    for (uint32_t a = 0; a < block->nargs; a++) {
        uint32_t symmetric = block->args[a].symmetric;
        if (!symmetric || block->kind != PEAL_HOST_RUN_KERNEL)
            continue;
        uint64_t before = user[symmetric - 1];
        user[symmetric - 1] = block->variant + 1;
        if (!before || before == block->variant + 1)
            continue;
        const struct peal_host_variant *x = &host->variants.at[before - 1];
        const struct peal_host_variant *y = &host->variants.at[block->variant];
        const struct peal_host_variant *open = x;
        if (x->proved == CLOSED)
            open = y;
        if (open->proved != CLOSED)
            return peal_host_fail(host, PEAL_INVALID,
                                  "kernel '%s' shares its domain's buffers with another one and is "
                                  "not closed: a rank may still be in it when the other begins",
                                  peal_plan_string(open->plan, open->plan->kernel));
    }
    return PEAL_OK;
}

static enum peal_status check_kernels(struct peal_host *host)
{
    uint64_t *user = calloc(PEAL_HOST_MAX_DOMAINS, sizeof *user);
    enum peal_status status = PEAL_OK;
    if (!user)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for the check");
    for (uint64_t id = host->oldest; id < host->next_id && status == PEAL_OK; id++) {
        const struct peal_host_block *block = host->held[id % PEAL_MOST_QUEUED];
        if (block->kind != PEAL_HOST_RUN_KERNEL)
            continue;
        status = peal_check_variant(host, block->variant);
        if (status == PEAL_OK)
            status = check_sharing(host, block, user);
    }
    free(user);
    return status;
}

enum peal_status peal_host_check(struct peal_host *host)
{
    enum peal_status status = peal_host_enter(host);
    if (status != PEAL_OK)
        return status;
    if (!host->holding)
        return peal_host_fail(host, PEAL_INVALID, "nothing is held: peal_host_hold comes first");
    peal_host_retire(host);
    for (uint32_t w = 0; w < host->workers && status == PEAL_OK; w++)
        status = check_worker(host, w);
    if (status == PEAL_OK)
        status = check_cycles(host);
    if (status == PEAL_OK)
        status = check_kernels(host);
    return status;
}

enum peal_status peal_host_hold(struct peal_host *host)
{
    enum peal_status status = peal_host_enter(host);
    if (status == PEAL_OK)
        host->holding = true;
    return status;
}

enum peal_status peal_host_go(struct peal_host *host)
{
    enum peal_status status = peal_host_enter(host);
    if (status == PEAL_OK && host->verify && host->holding)
        status = peal_host_check(host);
    if (status == PEAL_OK)
        peal_host_publish(host);
    return status;
}
