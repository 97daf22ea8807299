/* SPDX-License-Identifier: Apache-2.0 */
/* Copying a program, and inserting steps into the copy. edit_lines.c has the other changes.
 *
 * The copy owns its steps, cells, initial values, threads with their `enter` and `leave`, accesses,
 * memory and bases. Everything else (plans, signals, channels, names) is the original's, which must
 * outlive it.
 *
 * Insertions are queued by their *place* in a thread, a number that counts the beginnings of
 * launches, their ops and their ends, and that no insertion changes: so they can be queued in any
 * order, and accesses, `enter` and `leave` are moved by how many insertions come at or before their
 * own place. Several steps of one op have one place, and nothing is inserted between them.
 */
#include "verify/advice/edit.h"

#include "verify/decide/decide.h"

#include <stdlib.h>
#include <string.h>

static void *copy_of(const void *at, size_t count, size_t extra, size_t size)
{
    char *copy = calloc(count + extra + 1, size);
    if (copy && count)
        memcpy(copy, at, count * size);
    return copy;
}

/* Extends the table of bases for more cells. */
static int64_t *copy_base(const struct program *p, uint32_t cells)
{
    uint64_t wide = p->ncells + (uint64_t)cells;
    int64_t *base = calloc((p->launches + 1) * wide + 1, sizeof *base);
    if (!base)
        return NULL;
    for (uint32_t l = 0; l <= p->launches; l++)
        memcpy(base + l * wide, p->base + (uint64_t)l * p->ncells, p->ncells * sizeof *base);
    return base;
}

bool peal_edit_begin(struct edit *e, const struct program *p, uint32_t cells)
{
    *e = (struct edit){.p = *p};
    struct program *q = &e->p;
    q->ncells = p->ncells + cells;
    q->steps = copy_of(p->steps, p->nsteps, 0, sizeof *p->steps);
    q->step_op = copy_of(p->step_op, p->nsteps, 0, sizeof *p->step_op);
    q->cells = copy_of(p->cells, p->ncells, cells, sizeof *p->cells);
    q->initial = copy_of(p->initial, p->ncells, cells, sizeof *p->initial);
    q->threads = copy_of(p->threads, p->nthreads, 0, sizeof *p->threads);
    if (q->threads)
        q->threads[0].enter = NULL; /* the marks of p are not the copy's to free */
    q->accesses.at = copy_of(p->accesses.at, p->accesses.len, 0, sizeof *p->accesses.at);
    q->memory.at = copy_of(p->memory.at, p->memory.len, 0, sizeof *p->memory.at);
    q->accesses.cap = p->accesses.len;
    if (p->base)
        q->base = copy_base(p, cells);
    e->failed = !q->steps || !q->step_op || !q->cells || !q->initial || !q->threads ||
                !q->accesses.at || !q->memory.at || (p->base && !q->base);
    if (e->failed)
        return false;
    uint32_t *marks = calloc((size_t)p->nthreads * p->launches * 2 + 1, sizeof *marks);
    if (!marks) {
        e->failed = true;
        return false;
    }
    for (uint32_t t = 0; t < p->nthreads; t++) {
        q->threads[t].enter = marks + (size_t)t * p->launches * 2;
        q->threads[t].leave = q->threads[t].enter + p->launches;
        memcpy(q->threads[t].enter, p->threads[t].enter, p->launches * sizeof *marks);
        memcpy(q->threads[t].leave, p->threads[t].leave, p->launches * sizeof *marks);
    }
    for (uint32_t c = p->ncells; c < q->ncells; c++)
        q->cells[c] =
            (struct cell){.kind = CELL_JOIN}; /* its count continues from launch to launch */
    return true;
}

void peal_edit_end(struct edit *e)
{
    struct program *q = &e->p;
    if (q->threads && q->nthreads)
        free(q->threads[0].enter);
    free(q->steps);
    free(q->step_op);
    free(q->cells);
    free(q->initial);
    free(q->threads);
    free(q->accesses.at);
    free(q->memory.at);
    free(q->base);
    peal_vec_release(&e->insertions);
}

/* Places in a thread, in order: the beginning of a launch, its ops, its end. A launch without ops
 * has a beginning and an end too. */
static uint64_t place_of_entry(const struct thread *t, uint32_t launch)
{
    return ((uint64_t)t->first_op[launch] + launch) * 2;
}

static uint64_t place_of_op(uint32_t launch, uint32_t op)
{
    return ((uint64_t)op + launch) * 2 + 2;
}

static uint64_t place_of_end(const struct thread *t, uint32_t launch)
{
    return ((uint64_t)t->first_op[launch + 1] + launch) * 2 + 1;
}

void peal_edit_insert(struct edit *e, struct insertion insertion)
{
    const struct thread *t = &e->p.threads[insertion.thread];
    if (insertion.op != PEAL_NONE && insertion.op >= t->first_op[insertion.launch + 1])
        insertion.op = PEAL_NONE;
    if (insertion.op == PEAL_NONE)
        insertion.place = place_of_end(t, insertion.launch);
    else
        insertion.place = place_of_op(insertion.launch, insertion.op);
    insertion.number = e->insertions.len;
    if (!peal_vec_push(&e->insertions, insertion))
        e->failed = true;
}

/* Sorts by thread, then by place. Insertions at one place keep the order in which they were
 * queued. */
static int by_place(const void *a, const void *b)
{
    const struct insertion *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static uint64_t place_of_access(const struct program *p, const struct access *a)
{
    const struct thread *t = &p->threads[a->thread];
    if (a->op == OP_CALLER_ENTERS || a->op == OP_BARRIER_ENTERED)
        return place_of_entry(t, a->launch);
    if (a->op == OP_CALLER_LEAVES || a->op == OP_BARRIER_LEFT)
        return place_of_end(t, a->launch);
    return place_of_op(a->launch, a->op);
}

/* How many insertions are for earlier threads, or for this thread at or before a place. The list is
 * sorted. */
static size_t count_until(const struct edit *e, uint32_t thread, uint64_t place)
{
    size_t lo = 0, hi = e->insertions.len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct insertion *x = &e->insertions.at[mid];
        if (x->thread < thread || (x->thread == thread && x->place <= place))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static size_t first_of(const struct edit *e, uint32_t thread)
{
    if (thread)
        return count_until(e, thread - 1, UINT64_MAX);
    return 0;
}

/* How many insertions of a thread are at or before a place. */
static uint32_t count_before(const struct edit *e, uint32_t thread, uint64_t place)
{
    return (uint32_t)(count_until(e, thread, place) - first_of(e, thread));
}

/* The place of a step: that of its op. A fork comes before the launch's ops, a join after them. */
static uint64_t place_of_step(const struct program *p, uint32_t thread, uint32_t i)
{
    const struct thread *t = &p->threads[thread];
    uint32_t op = p->step_op[t->first_step + i], launch = peal_program_step_launch(p, thread, i);
    if (op != PEAL_NONE && !(p->steps[t->first_step + i].flags & STEP_AT_END))
        return place_of_op(launch, op);
    if (op == PEAL_NONE && i == t->enter[launch])
        return place_of_entry(t, launch);
    return place_of_end(t, launch);
}

/* Copies the thread's steps, each after those inserted before it, starting at *end. */
static void insert_thread(struct edit *e, uint32_t thread, struct step *steps, uint32_t *ops,
                          uint64_t *end)
{
    struct program *p = &e->p;
    struct thread *t = &p->threads[thread];
    uint64_t first = *end;
    size_t x = first_of(e, thread), last = count_until(e, thread, UINT64_MAX);
    for (uint32_t i = 0; i <= t->nsteps; i++) {
        uint64_t place = UINT64_MAX;
        if (i < t->nsteps)
            place = place_of_step(p, thread, i);
        for (; x < last && e->insertions.at[x].place <= place; x++) {
            const struct insertion *in = &e->insertions.at[x];
            steps[*end] = in->step;
            steps[*end].flags |= STEP_INSERTED;
            ops[*end] = in->op;
            if (in->op == PEAL_NONE) { /* it belongs to the launch's last op */
                uint32_t ops_end = t->first_op[in->launch + 1];
                steps[*end].flags |= STEP_AT_END;
                if (ops_end)
                    ops[*end] = ops_end - 1;
                else
                    ops[*end] = 0;
            }
            ++*end;
        }
        if (i < t->nsteps) {
            steps[*end] = p->steps[t->first_step + i];
            ops[(*end)++] = p->step_op[t->first_step + i];
        }
    }
    for (uint32_t l = 0; l < p->launches; l++) {
        t->enter[l] += count_before(e, thread, place_of_entry(t, l));
        t->leave[l] += count_before(e, thread, place_of_end(t, l));
    }
    t->first_step = first;
    t->nsteps = (uint32_t)(*end - first);
}

bool peal_edit_apply(struct edit *e)
{
    struct program *p = &e->p;
    uint64_t total = p->nsteps + e->insertions.len, end = 0;
    struct step *steps = calloc(total + 1, sizeof *steps);
    uint32_t *ops = calloc(total + 1, sizeof *ops);
    if (!steps || !ops || e->failed) {
        free(steps);
        free(ops);
        e->failed = true;
        return false;
    }
    if (e->insertions.len)
        qsort(e->insertions.at, e->insertions.len, sizeof *e->insertions.at, by_place);
    for (size_t i = 0; i < p->accesses.len; i++) {
        struct access *a = &p->accesses.at[i];
        a->step += count_before(e, a->thread, place_of_access(p, a));
    }
    for (uint32_t t = 0; t < p->nthreads; t++)
        insert_thread(e, t, steps, ops, &end);
    if (end != total) { /* no advice is better than wrong advice */
        free(steps);
        free(ops);
        e->failed = true;
        return false;
    }
    free(p->steps);
    free(p->step_op);
    p->steps = steps;
    p->step_op = ops;
    p->nsteps = total;
    peal_program_classify(p);
    return p->status == PEAL_OK;
}

/* Does the verifier prove it, result included, with at least that reuse? */
static bool judge(struct program *p, const struct peal_verify_options *options,
                  enum peal_reuse reuse, uint32_t *needs)
{
    enum { MAX_STATES = 200000 };
    if (p->status != PEAL_OK || p->early.fault != PEAL_FAULT_NONE)
        return false;
    struct answer scratch = {0};
    struct peal_verify_options o = *options;
    o.no_story = true;
    if (o.max_states >= MAX_STATES)
        o.max_states = MAX_STATES;
    peal_arena_init(&scratch.arena, 0);
    peal_verify_decide(p, &o, &scratch);
    /* If more launches could refute it, this is no proof, unless exactly these launches were asked
     * for. */
    bool good = !scratch.failed && scratch.v.verdict == PEAL_PROVED && scratch.v.reuse >= reuse;
    *needs = 0;
    if (good && !options->launches && scratch.v.needs_launches > p->launches)
        *needs = scratch.v.needs_launches;
    peal_arena_release(&scratch.arena);
    return good && !*needs;
}

bool peal_edit_holds(struct edit *e, const struct peal_verify_options *options,
                     enum peal_reuse reuse)
{
    return !e->failed && judge(&e->p, options, reuse, &e->needs);
}
