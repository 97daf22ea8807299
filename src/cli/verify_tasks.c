/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of `peal verify`: bind, instantiate, prove; two at a time on two cores. */
#include "cli/verify_tasks.h"

#include "base/hash.h"
#include "verify/cache.h"

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

/* Uneven parts of n elements, some of them empty; the same on every rank. */
static void make_counts(struct binder *b, const char *name, int64_t n)
{
    uint32_t p = b->task->nranks;
    int64_t *at = make_ints(b, p), left = n;
    for (uint32_t r = 0; at && r < p; r++) {
        int64_t most = 2 * n / p + 1;
        int64_t part = r % 3 == 1 ? 0 : (int64_t)(peal_hash_u64(r, 17) % (uint64_t)most);
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
        struct peal_ints ints;
        struct peal_text error = {0};
        if (peal_ints_parse(set->at[i].value, &b->task->arena, &ints, &error))
            bind_value(b, set->at[i].key, ints.at, ints.len);
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
        if (s->kind == PEAL_SYMBOL_DIM)
            bind_value(b, s->name, one, 1);
        else if (s->kind == PEAL_SYMBOL_INT && strcmp(s->name, "most") == 0)
            bind_value(b, s->name, one, 1);
        else if (s->kind == PEAL_SYMBOL_INTS && strcmp(s->name, "counts") == 0)
            make_counts(b, s->name, count);
        else if (s->kind == PEAL_SYMBOL_INTS && strcmp(s->name, "sends") == 0)
            make_blocks(b, s->name, count, false);
        else if (s->kind == PEAL_SYMBOL_INTS && strcmp(s->name, "recvs") == 0)
            make_blocks(b, s->name, count, true);
    }
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
        .lenient = true,               /* what is out of bounds is for the verifier to tell */
        .no_fuse = job->verify.advice, /* so that there is a place between any two lines */
        .channel_depth = (uint32_t)job->options->depth,
        .slot_bytes = job->options->slot_bytes,
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

/* All orders of `launches` launches of a and b that begin with a and have both. True: all proved.
 */
static bool verify_pair(struct peal_verify_job *job, struct peal_verify_task *task,
                        const struct variant *a, const struct variant *b)
{
    enum { MOST_LAUNCHES = 5 };
    uint32_t launches = peal_verify_launches(a->plan), other = peal_verify_launches(b->plan);
    launches = other > launches ? other : launches;
    launches = launches > MOST_LAUNCHES ? MOST_LAUNCHES : launches;
    for (uint32_t order = 1; order < 1u << (launches - 1); order++) {
        const struct peal_plan *plans[MOST_LAUNCHES];
        struct peal_text name = {0};
        for (uint32_t i = 0; i < launches; i++) {
            const struct variant *v = i > 0 && (order >> (i - 1) & 1) ? b : a;
            plans[i] = v->plan;
            peal_text_printf(&name, "%scount %lld root %lld", i ? ", then " : "",
                             (long long)v->count, (long long)v->root);
        }
        struct peal_verification *answer = NULL;
        task->status = peal_verify_sequence(plans, launches, &job->verify, &answer);
        if (task->status == PEAL_OK && answer->verdict == PEAL_PROVED) {
            task->proved++;
            peal_verification_free(answer);
            peal_text_release(&name);
            continue;
        }
        task->answer = answer;
        task->first = peal_arena_copy(&task->arena, peal_text_get(&name), name.len);
        peal_text_release(&name);
        return false;
    }
    return true;
}

static void verify_sequences(struct peal_verify_job *job, struct peal_verify_task *task)
{
    bool roots = has_root(job->kernel);
    size_t nroots = roots ? task->nranks : 1, n = job->ncounts * nroots;
    struct variant *v = calloc(n ? n : 1, sizeof *v);
    int64_t most = 1;
    bool good = v;
    for (size_t i = 0; i < job->ncounts; i++)
        most = job->counts[i] > most ? job->counts[i] : most;
    for (size_t i = 0; i < n && good; i++) {
        v[i].count = job->counts[i / nroots];
        v[i].root = roots ? (int64_t)(i % nroots) : job->options->root;
        v[i].plan = make_plan(job, task, v[i].count, v[i].root, most);
        /* A root or a count that the kernel's own assertions refuse is never launched. */
        good = v[i].plan || task->status == PEAL_INVALID;
        if (task->status == PEAL_INVALID) {
            peal_diags_release(&task->diags);
            peal_diags_init(&task->diags);
            task->status = PEAL_OK;
        }
    }
    for (size_t i = 0; i < n && good; i++) {
        for (size_t k = 0; k < n && good; k++) {
            /* Another root, or another count, not both: the pairs that differ in one thing. */
            bool same_root = v[i].root == v[k].root, same_count = v[i].count == v[k].count;
            if (i != k && v[i].plan && v[k].plan && (same_root || same_count))
                good = verify_pair(job, task, &v[i], &v[k]);
        }
    }
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

bool peal_verify_plan_tasks(struct peal_cli *cli, struct peal_verify_job *job, const int64_t *ranks,
                            size_t nranks)
{
    bool pairs = !job->no_sequences && (job->ncounts > 1 || has_root(job->kernel));
    job->tasks = peal_arena_alloc(cli->arena, nranks * (job->ncounts + 1) * sizeof *job->tasks);
    if (!job->tasks)
        return false;
    for (size_t i = 0; i < nranks; i++) {
        for (size_t k = 0; k < job->ncounts; k++)
            job->tasks[job->ntasks++] =
                (struct peal_verify_task){.nranks = (uint32_t)ranks[i], .count = job->counts[k]};
        if (pairs && ranks[i] > 1)
            job->tasks[job->ntasks++] =
                (struct peal_verify_task){.nranks = (uint32_t)ranks[i], .sequences = true};
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
