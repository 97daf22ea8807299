/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of `peal verify`: bind, instantiate, prove; two at a time on two cores. */
#include "cli/verify/verify_tasks.h"

#include "base/base.h"
#include "verify/verify.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- binding --------------------------------------------------------------------------------- */

struct binder {
    struct peal_verify_job *job;
    struct peal_verify_task *task;
    PEAL_VEC(struct peal_bind_value) values;
    int64_t *room; /* arrays made up for the kernel */
    bool failed;
};

static void bind_value(struct binder *b, const char *name, const int64_t *values, size_t count)
{
    if (!peal_vec_push(&b->values, ((struct peal_bind_value){name, values, count, true})))
        b->failed = true;
}

static int64_t *make_ints(struct binder *b, size_t count)
{
    int64_t *at = peal_arena_alloc(&b->task->arena, (count + 1) * sizeof *at);
    if (!at)
        b->failed = true;
    return at;
}

static bool is_bound(const struct binder *b, const char *name)
{
    for (size_t i = 0; i < b->values.len; i++) {
        if (strcmp(b->values.at[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Uneven parts of n elements, some of them empty, others for other n; the same on every rank. */
static void make_counts(struct binder *b, const char *name, int64_t n)
{
    uint32_t p = b->task->nranks;
    int64_t *at = make_ints(b, p), left = n;
    for (uint32_t r = 0; at && r < p; r++) {
        int64_t most = 2 * n / p + 1;
        bool empty = (r + (uint64_t)n) % 3 == 0;
        int64_t part = empty ? 0 : (int64_t)(peal_hash_u64(r, 17) % (uint64_t)most);
        at[r] = r + 1 == p || part > left ? left : part;
        left -= at[r];
    }
    if (at)
        bind_value(b, name, at, p);
}

/* A matrix of block sizes; recvs is sends seen from the other side. */
static void make_blocks(struct binder *b, const char *name, int64_t n, bool receives)
{
    uint32_t p = b->task->nranks;
    int64_t *at = make_ints(b, (size_t)p * p);
    for (uint32_t r = 0; at && r < p; r++) {
        for (uint32_t q = 0; q < p; q++) {
            uint64_t random =
                peal_hash_u64(receives ? (uint64_t)q * p + r : (uint64_t)r * p + q, 5);
            at[(size_t)r * p + q] =
                random % 4 == 0 ? 0 : (int64_t)((random >> 8) % (uint64_t)(n / p + 2));
        }
    }
    if (at)
        bind_value(b, name, at, p);
}

/* What the command line gives, then dimensions, then what can be made up for the rest. */
static void bind_all(struct binder *b, int64_t count, int64_t most)
{
    const struct peal_kernel *kernel = b->job->kernel;
    const struct peal_pairs *set = &b->job->options->set;
    for (size_t i = 0; i < set->len; i++) {
        struct peal_bind_value v;
        struct peal_text error = {0};
        if (peal_kernel_bind_pair(kernel, &set->at[i], b->task->nranks, &b->task->arena, &v,
                                  &error))
            bind_value(b, v.name, v.values, v.count);
        else
            peal_diag_error(&b->task->diags, (struct peal_pos){0}, "--set %s: %s", set->at[i].key,
                            peal_text_get(&error));
        peal_text_release(&error);
    }
    for (const struct peal_symbol *s = kernel->symbols; s && !b->failed; s = s->next) {
        if (is_bound(b, s->name))
            continue;
        int64_t *one = make_ints(b, 1);
        if (!one)
            return;
        *one = s->kind == PEAL_SYMBOL_DIM ? count : most;
        if (s->kind == PEAL_SYMBOL_DIM ||
            (s->kind == PEAL_SYMBOL_INT && strcmp(s->name, "most") == 0))
            bind_value(b, s->name, one, 1);
        else if (s->kind == PEAL_SYMBOL_INTS && strcmp(s->name, "counts") == 0)
            make_counts(b, s->name, count);
        else if (s->kind == PEAL_SYMBOL_INTS && strcmp(s->name, "sends") == 0)
            make_blocks(b, s->name, count, false);
        else if (s->kind == PEAL_SYMBOL_INTS && strcmp(s->name, "recvs") == 0)
            make_blocks(b, s->name, count, true);
    }
}

/* A plan that takes a good part of the memory limit by itself cannot be verified within it. */
static uint64_t most_ops(const struct peal_verify_job *job)
{
    enum { BYTES_AN_OP = 64, LEAST = 1 << 16 };
    uint64_t bytes = job->verify.most_bytes ? job->verify.most_bytes : UINT64_C(2) << 30;
    uint64_t ops = bytes / BYTES_AN_OP;
    return ops < LEAST ? LEAST : ops > UINT64_C(1) << 27 ? UINT64_C(1) << 27 : ops;
}

static struct peal_plan *make_plan(struct peal_verify_job *job, struct peal_verify_task *task,
                                   int64_t count, int64_t root, int64_t most)
{
    struct binder b = {.job = job, .task = task};
    struct peal_plan *plan = NULL;
    bind_all(&b, count, most);
    struct peal_bind bind = {
        .nranks = task->nranks,
        .rank = PEAL_NONE,
        .dtype = job->options->dtype,
        .reduce = job->options->reduce,
        .values = b.values.at,
        .nvalues = b.values.len,
        .root = root,
        .in_place = job->options->in_place,
        .symmetric = true,
        .lenient = true, /* what is out of bounds is for the verifier to tell */
        .no_fuse = job->no_fuse,
        .channel_depth = (uint32_t)job->options->depth,
        .slot_bytes = job->options->slot_bytes,
        .most_ops = most_ops(job),
    };
    if (b.failed)
        task->status = PEAL_NO_MEMORY;
    else if (task->diags.errors)
        task->status = PEAL_INVALID;
    else
        task->status = peal_instantiate(job->kernel, &bind, &task->diags, &plan);
    peal_vec_release(&b.values);
    return task->status == PEAL_OK ? plan : NULL;
}

/* --- one task -------------------------------------------------------------------------------- */

static void verify_alone(struct peal_verify_job *job, struct peal_verify_task *task)
{
    struct peal_plan *plan =
        make_plan(job, task, task->count, job->options->root, task->count ? task->count : 1);
    if (!plan)
        return;
    task->status = peal_verify_cached(plan, &job->verify, job->cache, &task->answer);
    if (task->answer && (task->answer->verdict != PEAL_PROVED || job->keep_plans))
        task->plan = plan;
    else
        free(plan);
}

static bool has_root(const struct peal_kernel *kernel)
{
    for (const struct peal_symbol *s = kernel->symbols; s; s = s->next) {
        if (s->kind == PEAL_SYMBOL_INT && strcmp(s->name, "root") == 0)
            return true;
    }
    return false;
}

/* A plan, and how people would call it. */
struct variant {
    struct peal_plan *plan;
    int64_t count, root;
};

enum {
    MOST_LAUNCHES = 3 * PEAL_PLAN_MAX_PERIOD, /* two periods, or three with `at launch - 15` */
    MOST_PAIRED = 17, /* of more launches there are too many orders: none of them is verified */
    MOST_AFTER = 64,
    MOST_THREES = 2000 /* sequences of three, where they are no proof anyway */
};

static uint32_t pair_launches(const struct variant *a, const struct variant *b)
{
    uint32_t one = peal_verify_launches(a->plan), two = peal_verify_launches(b->plan);
    uint32_t most = one > two ? one : two;
    assert(most <= MOST_LAUNCHES);
    return most;
}

/* Orders of so many launches of a and b that begin with a and have both. */
static uint64_t pair_orders(const struct variant *a, const struct variant *b)
{
    return (UINT64_C(1) << (pair_launches(a, b) - 1)) - 1;
}

/* Keeps the answer on a sequence that is not proved, and says what was launched. */
static void keep_answer(struct peal_verify_task *task, const struct variant *const *of, size_t n,
                        const struct peal_plan *const *plans, uint32_t launches,
                        struct peal_verification *answer)
{
    struct peal_text name = {0};
    for (uint32_t i = 0; i < launches; i++) {
        const struct variant *v = of[0];
        for (size_t k = 1; k < n; k++)
            v = plans[i] == of[k]->plan ? of[k] : v;
        peal_text_printf(&name, "%scount %lld root %lld", i ? ", then " : "", (long long)v->count,
                         (long long)v->root);
    }
    task->answer = answer;
    task->first = peal_arena_copy(&task->arena, peal_text_get(&name), name.len);
    peal_text_release(&name);
}

/* One order: bit i - 1 says that launch i is of b. Where launches that follow could show more, they
 * are of b, then once more of a. True: proved. */
static bool verify_order(struct peal_verify_job *job, struct peal_verify_task *task,
                         const struct variant *a, const struct variant *b, uint64_t order)
{
    const struct peal_plan *plans[MOST_LAUNCHES + MOST_AFTER];
    uint32_t launches = pair_launches(a, b), after = 0;
    struct peal_verify_options options = job->verify;
    options.advice = false;
    for (uint32_t i = 0; i < launches; i++)
        plans[i] = i > 0 && (order >> (i - 1) & 1) ? b->plan : a->plan;
    for (int pass = 0; pass < 3 && (pass == 0 || after); pass++) {
        struct peal_verification *answer = NULL;
        for (uint32_t i = 0; i < after; i++)
            plans[launches + i] = pass == 1 ? b->plan : a->plan;
        task->status = peal_verify_sequence(plans, launches + after, &options, &answer);
        bool reused = a != b || pass > 0 || (answer && answer->reuse >= task->reuse);
        if (task->status != PEAL_OK || answer->verdict != PEAL_PROVED || !reused) {
            if (task->status == PEAL_OK && job->verify.advice) {
                peal_verification_free(answer);
                task->status = peal_verify_sequence(plans, launches + after, &job->verify, &answer);
            }
            keep_answer(task, (const struct variant *[]){a, b}, 2, plans, launches + after, answer);
            return false;
        }
        if (pass == 0 && answer->needs_launches != PEAL_NONE && answer->needs_launches > launches)
            after = answer->needs_launches - launches;
        after = after > MOST_AFTER ? MOST_AFTER : after;
        task->two_only = task->two_only || !answer->in_order;
        peal_verification_free(answer);
    }
    return true;
}

/* All roots and counts that the kernel's own assertions allow; the others are never launched.
 * False: out of memory. */
static bool make_variants(struct peal_verify_job *job, struct peal_verify_task *task,
                          struct variant *v, size_t n, size_t nroots)
{
    int64_t most = 1;
    for (size_t i = 0; i < job->ncounts; i++)
        most = job->counts[i] > most ? job->counts[i] : most;
    for (size_t i = 0; i < n; i++) {
        v[i].count = job->counts[i / nroots];
        v[i].root = has_root(job->kernel) ? (int64_t)(i % nroots) : job->options->root;
        v[i].plan = make_plan(job, task, v[i].count, v[i].root, most);
        if (!v[i].plan && task->status != PEAL_INVALID)
            return false;
        if (task->status == PEAL_INVALID) {
            peal_diags_release(&task->diags);
            peal_diags_init(&task->diags);
            task->status = PEAL_OK;
        }
    }
    return true;
}

/* The same without what is left out. */
static bool cut_variants(const struct peal_verify_task *task, struct variant *v, size_t n)
{
    for (size_t i = 0; i < n && task->cut; i++) {
        struct peal_plan *whole = v[i].plan;
        v[i].plan = whole ? peal_cut_plan(whole, task->cut) : NULL;
        free(whole);
        if (whole && !v[i].plan)
            return false;
    }
    return true;
}

/* Every variant again and again, then every ordered pair of different ones: the sequences of pairs
 * and their cost are counted, and with `keep` above 0 one in keep is verified if it is of this
 * share. False: one is not proved. */
static bool walk_pairs(struct peal_verify_job *job, struct peal_verify_task *task,
                       const struct variant *v, size_t n, uint64_t keep, uint64_t *work)
{
    uint64_t number = 0;
    for (size_t i = 0; i < n && keep; i++) {
        bool mine = i % task->shares == task->share && v[i].plan;
        if (mine && !verify_order(job, task, &v[i], &v[i], 0))
            return false;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            if (i == k || !v[i].plan || !v[k].plan)
                continue;
            uint64_t orders = pair_orders(&v[i], &v[k]);
            task->all += keep ? 0 : orders;
            if (pair_launches(&v[i], &v[k]) > MOST_PAIRED)
                continue;
            uint64_t ops = v[i].plan->ops.count + v[k].plan->ops.count + 1;
            *work += orders * ops * pair_launches(&v[i], &v[k]) / 2 * task->nranks;
            for (uint64_t order = 1; order <= orders && keep; order++, number++) {
                /* Sampled by a hash, so that no pattern of pairs is left out as a whole. */
                bool mine = number % task->shares == task->share &&
                            (keep == 1 || peal_hash_u64(number / task->shares, 29) % keep == 0);
                if (mine && !verify_order(job, task, &v[i], &v[k], order))
                    return false;
                task->proved += mine;
            }
        }
    }
    return true;
}

/* Three in turn, the last of which may be the first again: a look for faults, where pairs do not
 * stand for more than two. */
static void walk_threes(struct peal_verify_job *job, struct peal_verify_task *task,
                        const struct variant *v, size_t n)
{
    uint64_t all = (uint64_t)n * n * n, keep = all / MOST_THREES / task->shares + 1;
    struct peal_verify_options options = job->verify;
    options.advice = false;
    for (uint64_t number = task->share; number < all; number += task->shares) {
        const struct variant *three[] = {&v[number / n / n], &v[number / n % n], &v[number % n]};
        const struct peal_plan *plans[] = {three[0]->plan, three[1]->plan, three[2]->plan};
        struct peal_verification *answer = NULL;
        if (!plans[0] || !plans[1] || !plans[2] || plans[0] == plans[1] || plans[1] == plans[2] ||
            peal_hash_u64(number, 31) % keep != 0)
            continue;
        task->status = peal_verify_sequence(plans, 3, &options, &answer);
        if (task->status != PEAL_OK || answer->verdict == PEAL_REFUTED) {
            keep_answer(task, three, 3, plans, 3, answer);
            return;
        }
        task->threes++;
        peal_verification_free(answer);
    }
}

static void verify_sequences(struct peal_verify_job *job, struct peal_verify_task *task)
{
    size_t nroots = has_root(job->kernel) ? task->nranks : 1, n = job->ncounts * nroots;
    struct variant *v = calloc(n ? n : 1, sizeof *v);
    uint64_t work = 0, again = 0;
    if (v && make_variants(job, task, v, n, nroots) && cut_variants(task, v, n)) {
        (void)walk_pairs(job, task, v, n, 0, &work);
        if (walk_pairs(job, task, v, n, work / PEAL_SEQUENCE_WORK + 1, &again) && task->two_only)
            walk_threes(job, task, v, n);
    } else {
        task->status = PEAL_NO_MEMORY;
    }
    if (task->share)
        task->all = 0;
    for (size_t i = 0; v && i < n; i++)
        free(v[i].plan);
    free(v);
}

/* --- threads --------------------------------------------------------------------------------- */

struct pool {
    struct peal_verify_job *job;
    atomic_size_t next;
};

static void *work(void *at)
{
    struct pool *pool = at;
    struct peal_verify_job *job = pool->job;
    for (;;) {
        /* Relaxed: only the number matters; pthread_join publishes what the tasks hold. */
        size_t i = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (i >= job->ntasks)
            return NULL;
        /* The largest last in the list, first in time: both threads then end together. */
        struct peal_verify_task *task = &job->tasks[job->ntasks - 1 - i];
        if (task->sequences)
            verify_sequences(job, task);
        else
            verify_alone(job, task);
        /* release: partner is the acquire of who reports what is finished */
        atomic_store_explicit(&task->finished, true, memory_order_release);
        if (job->done)
            job->done(job->done_with, task);
    }
}

bool peal_verify_plan_tasks(struct peal_cli *cli, struct peal_verify_job *job)
{
    bool pairs = !job->no_sequences && (job->ncounts > 1 || has_root(job->kernel));
    /* Many pairs are shared out, so that several threads have their part of them. */
    uint32_t shares = job->workers > 1 ? 2 * job->workers : 1;
    job->tasks =
        peal_arena_alloc(cli->arena, job->nranks * (job->ncounts + shares) * sizeof *job->tasks);
    if (!job->tasks)
        return false;
    for (size_t i = 0; i < job->nranks; i++) {
        for (size_t k = 0; k < job->ncounts; k++)
            job->tasks[job->ntasks++] = (struct peal_verify_task){.nranks = (uint32_t)job->ranks[i],
                                                                  .count = job->counts[k]};
        size_t variants = job->ncounts * (has_root(job->kernel) ? (size_t)job->ranks[i] : 1);
        uint32_t parts = variants > 8 ? shares : 1;
        for (uint32_t k = 0; k < parts && pairs && job->ranks[i] > 1; k++)
            job->tasks[job->ntasks++] = (struct peal_verify_task){
                .nranks = (uint32_t)job->ranks[i], .sequences = true, .share = k, .shares = parts};
    }
    for (size_t i = 0; i < job->ntasks; i++) {
        peal_arena_init(&job->tasks[i].arena, 0);
        peal_diags_init(&job->tasks[i].diags);
    }
    return true;
}

void peal_verify_run_tasks(struct peal_verify_job *job)
{
    enum { MOST_WORKERS = 64 };
    struct pool pool = {.job = job};
    pthread_t threads[MOST_WORKERS];
    bool started[MOST_WORKERS] = {false};
    uint32_t workers = job->workers > MOST_WORKERS ? MOST_WORKERS : job->workers;
    workers = workers > job->ntasks ? (uint32_t)job->ntasks : workers;
    for (uint32_t i = 1; i < workers; i++)
        started[i] = pthread_create(&threads[i], NULL, work, &pool) == 0;
    work(&pool);
    for (uint32_t i = 1; i < workers; i++) {
        if (started[i])
            pthread_join(threads[i], NULL);
    }
}

void peal_verify_free_tasks(struct peal_verify_job *job)
{
    for (size_t i = 0; i < job->ntasks; i++) {
        peal_verification_free(job->tasks[i].answer);
        free(job->tasks[i].plan);
        peal_diags_release(&job->tasks[i].diags);
        peal_arena_release(&job->tasks[i].arena);
    }
}
