/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a schedule, step by step and launch by launch. See symbolic.h; symbolic_op.c has the ops.
 *
 * Who owns what. struct symbolic and everything in it live for one check; the answer belongs to the
 * caller. Nodes are never freed before the end, so that numbers of nodes can be kept anywhere.
 *
 * What never changes: the pieces of a location cover it without gaps, from element 0 to the longest
 * length of any launch. A thread stops at its limit, at a wait that does not hold, or when `done`
 * is set: after a fault, or without memory, every loop ends, and what was reported first stands.
 *
 * Why one thread after another, each as far as it can: which schedule is followed does not matter
 * here (symbolic.h), and long runs of one thread keep its memory in the cache.
 */
#include "verify/result/symbolic.h"

#include "verify/order/race.h"
#include "verify/program/sorted.h"

#include <stdlib.h>
#include <string.h>

void peal_symbolic_no_memory(struct symbolic *s)
{
    if (!s->done)
        peal_answer_give_up(s->a, "the memory limit was reached while computing values");
    s->done = true;
}

/* Sets a whole range to one node. */
static void fill(struct symbolic *s, uint32_t location, uint64_t lo, uint64_t hi, uint32_t node,
                 uint64_t index)
{
    struct piece piece = {lo, hi, index, node};
    if (lo < hi && !peal_pieces_put(&s->memory[location], &s->values, &piece, 1))
        peal_symbolic_no_memory(s);
}

/* --- launches and steps ---------------------------------------------------------------------- */

/* The caller provides its inputs, and its outputs hold nothing. In place, the memory that x and y
 * share holds x; if x is a part of y, it is filled in after the whole. */
static void enter(struct symbolic *s, uint32_t rank, uint32_t launch)
{
    const struct peal_plan *plan = s->p->plans[launch];
    for (int parts = 0; parts < 2; parts++) {
        for (uint32_t b = 0; b < plan->bufs.count; b++) {
            const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
            bool in = buf->dir & PEAL_DIR_IN;
            if (buf->kind != PEAL_BUF_PARAM)
                continue;
            uint64_t offset, len = peal_plan_len(plan, rank, b);
            uint32_t base = peal_contract_place(plan, b, rank, &offset);
            uint32_t m = s->p->memory_of[launch][b];
            uint32_t location = s->p->memory_of[launch][base] * s->p->nranks + rank;
            if ((base != b) != (parts == 1) || (base != b && b != plan->contract_in))
                continue;
            uint32_t node =
                in ? peal_value_input(&s->values, launch, rank, m, (enum peal_dtype)buf->dtype)
                   : s->undefined;
            fill(s, location, offset, offset + len, node, 0);
        }
    }
}

/* Is the wait's condition met? */
static bool passes(const struct symbolic *s, const struct step *step)
{
    return peal_program_enabled(s->p, s->thread, s->step[s->thread], s->regs[s->thread],
                                s->cell[step->cell]);
}

static void take(struct symbolic *s, const struct step *step)
{
    s->cell[step->cell] = peal_program_effect(s->p, s->thread, s->step[s->thread],
                                              s->regs[s->thread], s->cell[step->cell]);
    if (s->p->locks)
        peal_locked_step(s, s->p->threads[s->thread].first_step + s->step[s->thread]);
    s->step[s->thread]++;
}

/* Does the op have steps of its own? */
static bool has_steps(const struct peal_op *op)
{
    return !peal_op_is_data(op) && !peal_op_is_flush(op);
}

/* Takes steps that an edit inserted before the thread's next op, or at the end of its launch. */
static bool go_inserted(struct symbolic *s, bool at_end)
{
    uint32_t t = s->thread;
    const struct thread *th = &s->p->threads[t];
    while (s->step[t] < th->leave[s->launch[t]]) {
        const struct step *step = peal_program_step(s->p, t, s->step[t]);
        if (!(step->flags & STEP_INSERTED) || !(step->flags & STEP_AT_END) != !at_end ||
            (!at_end && s->p->step_op[th->first_step + s->step[t]] > s->op[t]))
            return true;
        if (s->step[t] >= s->limit[t] || !passes(s, step))
            return false;
        take(s, step);
    }
    return true;
}

/* Executes the op of a thread that stands before its steps. False: it blocks. */
static bool go_op(struct symbolic *s, const struct peal_op *op)
{
    uint32_t t = s->thread;
    if (!go_inserted(s, false))
        return false;
    if (s->p->threads[t].is_silent && s->p->threads[t].is_silent[s->op[t]]) {
        s->op[t]++;
        return true;
    }
    bool done = peal_program_done(s->p, t, s->step[t], s->regs[t]);
    if (has_steps(op)) {
        const struct step *step = peal_program_step(s->p, t, s->step[t]);
        if (s->step[t] >= s->limit[t] || !passes(s, step))
            return false;
        take(s, step);
        if (peal_op_has_channel(op))
            peal_symbolic_execute(s, op);
        if (peal_op_has_message(op) && !peal_op_holds(op))
            take(s, step + 1);
    } else if (!peal_op_is_flush(op) && done) {
        peal_symbolic_execute(s, op);
    }
    s->op[t]++;
    return true;
}

/* Takes a fork or join step if the thread stands before one. */
static bool go_edge(struct symbolic *s)
{
    uint32_t t = s->thread;
    const struct step *step = peal_program_step(s->p, t, s->step[t]);
    if (s->step[t] >= s->limit[t] || !passes(s, step))
        return false;
    take(s, step);
    return true;
}

static void leave(struct symbolic *s, uint32_t rank, uint32_t launch)
{
    peal_contract_leave(s, rank, launch);
    peal_promise_leave(s, rank, launch);
}

/* Executes the rest of the launch that the thread is in. False: it blocks on the way. */
static bool go_launch(struct symbolic *s)
{
    uint32_t t = s->thread, l = s->launch[t];
    const struct thread *th = &s->p->threads[t];
    bool lanes = s->p->thread_of_rank[th->rank + 1] - s->p->thread_of_rank[th->rank] > 1;
    if (lanes && s->step[t] == th->enter[l] && s->op[t] == th->first_op[l]) {
        if (th->lane == 0)
            enter(s, th->rank, l);
        if (!go_edge(s))
            return false;
    }
    while (!s->done && s->op[t] < th->first_op[l + 1]) {
        uint32_t launch;
        if (!go_op(s, peal_program_op(s->p, t, s->op[t], &launch)))
            return false;
    }
    if (s->done || !go_inserted(s, true) || (lanes && !go_edge(s)))
        return false;
    if (th->lane == 0 && s->text)
        peal_text_leave(s, th->rank, l);
    else if (th->lane == 0 && !s->watched)
        leave(s, th->rank, l);
    s->launch[t]++;
    if (!lanes && s->launch[t] < s->until)
        enter(s, th->rank, s->launch[t]);
    return true;
}

/* Runs one thread as far as it can go. True: it moved. */
static bool go_thread(struct symbolic *s)
{
    uint32_t t = s->thread, step = s->step[t], op = s->op[t], launch = s->launch[t];
    while (!s->done && s->launch[t] < s->until && go_launch(s))
        ;
    return s->step[t] != step || s->op[t] != op || s->launch[t] != launch;
}

/* Memory that no rank has written. A buffer is as long as in the launch where it is longest. */
static bool init_memory(struct symbolic *s)
{
    const struct program *p = s->p;
    for (uint32_t l = 0; l < p->launches; l++) {
        const struct peal_plan *plan = p->plans[l];
        for (uint32_t i = 0; i < plan->bufs.count * p->nranks; i++) {
            uint32_t b = i / p->nranks, r = i % p->nranks;
            uint64_t offset;
            /* An input that is a part of the output may reach beyond it, if that is too short. */
            uint32_t base = peal_contract_place(plan, b, r, &offset);
            struct pieces *pieces = &s->memory[p->memory_of[l][base] * p->nranks + r];
            uint64_t len = offset + peal_plan_len(plan, r, b);
            const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
            uint32_t node = s->undefined;
            if (len <= (pieces->list.len ? pieces->list.at[0].hi : 0))
                continue;
            pieces->list.len = 0;
            /* What the caller leaves alone it has written before any rank enters. */
            if ((buf->flags & PEAL_BUF_KEPT) && (buf->dir & PEAL_DIR_IN))
                node = peal_value_input(&s->values, 0, r, p->memory_of[l][b],
                                        (enum peal_dtype)buf->dtype);
            if (buf->flags & PEAL_BUF_ZEROED)
                node = peal_value_make(
                    &s->values,
                    (struct node){.kind = NODE_CONST, .dtype = buf->dtype, .child = {1}});
            if (node == NO_NODE || !peal_vec_push(&pieces->list, ((struct piece){0, len, 0, node})))
                return false;
        }
    }
    return true;
}

/* Cuts a location that no rank has written yet where its accesses will cut it. */
static bool cut_location(struct symbolic *s, uint32_t location, const uint32_t *order, uint32_t n)
{
    struct pieces *pieces = &s->memory[location];
    uint8_t dtype = s->p->memory.at[location / s->p->nranks].dtype;
    uint64_t size = peal_dtype_size((enum peal_dtype)dtype), end = pieces->list.at[0].hi;
    uint64_t *points = malloc((2 * (size_t)n + 2) * sizeof *points);
    size_t count = 0;
    if (!points)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        points[count++] = s->p->accesses.at[order[i]].lo / size;
        points[count++] = s->p->accesses.at[order[i]].hi / size;
    }
    points[count++] = end;
    qsort(points, count, sizeof *points, peal_sorted_compare);
    uint64_t lo = 0;
    bool good = false;
    uint32_t before = pieces->list.at[0].node;
    pieces->list.len = 0;
    for (size_t i = 0; i < count; i++) {
        if (points[i] <= lo || points[i] > end)
            continue;
        if (!peal_vec_push(&pieces->list, ((struct piece){lo, points[i], lo, before})))
            goto free_points;
        lo = points[i];
    }
    good = true;
free_points:
    free(points);
    return good;
}

/* A list of pieces is an array, and every new cut moves what follows it. If many ranks write to one
 * buffer, each its own parts, that would cost the square: those buffers are cut beforehand. */
static bool cut_memory(struct symbolic *s)
{
    enum { MANY = 1 << 14 };
    const struct program *p = s->p;
    uint32_t *first = NULL, *order = NULL;
    if (p->accesses.len < MANY)
        return true;
    bool good = peal_access_by_location(p, &first, &order);
    for (size_t l = 0; l < p->memory.len * p->nranks; l++) {
        uint32_t n = good ? first[l + 1] - first[l] : 0;
        if (n >= MANY && s->memory[l].list.len)
            good = cut_location(s, (uint32_t)l, order + first[l], n);
    }
    free(first);
    free(order);
    return good;
}

static bool init(struct symbolic *s, struct program *p, const struct symbolic_run *run,
                 struct answer *a)
{
    *s = (struct symbolic){.p = p,
                           .a = a,
                           .unordered = run->unordered,
                           .text = run->text,
                           .watched = run->watched,
                           .scheduled = run->schedule != NULL,
                           .until = p->launches};
    struct peal_arena *arena = &a->arena;
    size_t locations = p->memory.len * p->nranks, threads = p->nthreads;
    peal_values_init(&s->values, run->max_bytes / 96);
    s->values.as_written = run->text != NULL;
    s->undefined = peal_value_make(&s->values, (struct node){.kind = NODE_UNDEFINED});
    s->memory = calloc(locations + 1, sizeof *s->memory);
    s->queues = calloc(p->channels.len + 1, sizeof *s->queues);
    while (s->kept < p->launches && s->kept < p->plans[0]->period &&
           p->plans[s->kept] == p->plans[0])
        s->kept++;
    s->outputs = calloc((size_t)s->kept * p->nranks, sizeof *s->outputs);
    s->cell = malloc((p->ncells + 1u) * sizeof *s->cell);
    s->step = peal_arena_alloc(arena, threads * sizeof *s->step);
    s->op = peal_arena_alloc(arena, threads * sizeof *s->op);
    s->launch = peal_arena_alloc(arena, threads * sizeof *s->launch);
    s->regs = peal_arena_alloc(arena, threads * sizeof *s->regs);
    s->limit = peal_arena_alloc(arena, threads * sizeof *s->limit);
    if (!s->limit || !s->memory || !s->queues || !s->outputs || !s->cell || !s->step || !s->op ||
        !s->launch || !s->regs || s->undefined == NO_NODE)
        return false;
    memcpy(s->cell, p->initial, p->ncells * sizeof *s->cell);
    for (uint32_t t = 0; t < threads; t++) {
        s->regs[t] = peal_arena_alloc(arena, (p->threads[t].nregs + 1u) * sizeof(int64_t));
        if (!s->regs[t])
            return false;
        s->limit[t] = run->schedule ? 0 : UINT32_MAX;
    }
    return init_memory(s) && cut_memory(s);
}

static void release(struct symbolic *s)
{
    if (s->memory) {
        for (size_t i = 0; i < s->p->memory.len * s->p->nranks; i++)
            peal_vec_release(&s->memory[i].list);
    }
    if (s->queues) {
        for (size_t i = 0; i < s->p->channels.len; i++) {
            for (size_t k = 0; k < s->queues[i].list.len; k++)
                peal_vec_release(&s->queues[i].list.at[k].pieces.list);
            peal_vec_release(&s->queues[i].list);
        }
    }
    if (s->outputs) {
        for (size_t i = 0; i < (size_t)s->kept * s->p->nranks; i++)
            peal_vec_release(&s->outputs[i].list);
    }
    free(s->memory);
    free(s->queues);
    free(s->outputs);
    free(s->cell);
    peal_vec_release(&s->scratch);
    peal_vec_release(&s->written);
    peal_vec_release(&s->reductions);
    peal_vec_release(&s->begins);
    for (uint32_t l = 0; s->terms && l < s->p->launches; l++)
        free(s->terms[l]);
    free(s->terms);
    peal_locked_release(s);
    peal_canon_release(&s->canon);
    peal_values_release(&s->values);
}

/* A step that is only the second half of an op (a send, a recv) has been executed with the
 * first. */
static void follow(struct symbolic *s, const struct schedule *schedule)
{
    for (s->thread = 0; s->thread < s->p->nthreads && !s->done; s->thread++)
        (void)go_thread(s);
    for (uint64_t i = 0; i < schedule->count && !s->done; i++) {
        s->thread = schedule->thread[i];
        s->limit[s->thread]++;
        (void)go_thread(s);
    }
}

static void run_to_the_end(struct symbolic *s)
{
    const struct program *p = s->p;
    for (uint32_t t = 0; t < p->nthreads; t++)
        s->limit[t] = UINT32_MAX;
    for (bool moved = true; moved;) {
        if (s->done)
            break;
        moved = false;
        for (s->thread = 0; s->thread < p->nthreads && !s->done; s->thread++)
            moved = go_thread(s) || moved;
    }
    for (uint32_t t = 0; t < p->nthreads && !s->done; t++) {
        if (s->launch[t] == s->until)
            continue;
        /* The caller has shown that this cannot happen: one of the two analyses is wrong. */
        peal_answer_give_up(
            s->a, peal_answer_text(s->a,
                                   "no schedule was found to stop short, but executing one for its "
                                   "values did, on rank %u: please report this kernel",
                                   p->threads[t].rank));
        s->done = true;
    }
}

static void forget_memory(struct symbolic *s)
{
    for (size_t i = 0; i < s->p->memory.len * s->p->nranks; i++) {
        for (size_t k = 0; k < s->memory[i].list.len; k++)
            s->memory[i].list.at[k].node = s->undefined;
    }
}

static void run_fresh(struct symbolic *s)
{
    const struct program *p = s->p;
    for (uint32_t l = 0; l < p->plans[0]->period; l++) {
        if (s->done)
            return;
        forget_memory(s);
        s->until = l + 1;
        for (uint32_t rank = 0; rank < p->nranks; rank++)
            enter(s, rank, l);
        run_to_the_end(s);
    }
}

void peal_symbolic_check(struct program *p, const struct symbolic_run *run, struct answer *a)
{
    struct symbolic s;
    if (!init(&s, p, run, a)) {
        peal_symbolic_no_memory(&s);
        release(&s);
        return;
    }
    if (run->fresh) {
        run_fresh(&s);
        release(&s);
        return;
    }
    for (uint32_t t = 0; t < p->nthreads; t++) {
        uint32_t rank = p->threads[t].rank;
        if (p->thread_of_rank[rank + 1] - p->thread_of_rank[rank] == 1)
            enter(&s, rank, 0);
    }
    for (uint32_t l = 0; l < p->launches; l++) {
        if (s.done || s.text || s.watched)
            break;
        if (l == 0 || p->plans[l] != p->plans[l - 1])
            peal_contract_lengths(&s, l);
    }
    if (run->schedule)
        follow(&s, run->schedule);
    if (!run->part)
        run_to_the_end(&s);
    if (!s.done && !run->part && !s.text && !s.watched)
        peal_contract_end(&s);
    release(&s);
}
