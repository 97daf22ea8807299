/* SPDX-License-Identifier: Apache-2.0 */
/* Which cells are monotone, which threads write them, and small look-ups in the program.
 *
 * A cell is monotone if its value can never fall and only lower bounds of it are asked for: only
 * adds of 0 or more, or one writing thread whose values never fall in program order; waits with >=
 * only; no peek, no peeked amounts.
 *
 * A one-writer cell that changes its writer between launches counts as monotone if no writer's own
 * values fall. The launch is the high half of the value, so between two launches the value rises as
 * long as the writers come in the order of their launches. race.c demands that of every two
 * consecutive writers, and exploration checks every write (search.c).
 */
#include "verify/program/program.h"

#include <stdlib.h>
#include <string.h>

static void see_write(struct cell *cell, uint32_t thread, const struct step *s)
{
    if (cell->writer == PEAL_NONE)
        cell->writer = thread;
    else if (cell->writer != thread)
        cell->writer = MANY_WRITERS;
    if (s->kind == STEP_ADD || s->kind == STEP_FETCH_ADD)
        cell->adds = true;
    else
        cell->sets = true;
    if (s->flags & STEP_WEAK)
        cell->relaxed = true;
    if (peal_step_scope(s))
        cell->scoped = true;
    if (s->flags & STEP_HAS_REG)
        cell->falls = true;
}

/* Sums of amounts are computed in 64 bits. Amounts far below that limit cannot overflow in any
 * order. */
static bool amounts_fit(const struct program *p)
{
    uint64_t *sum = calloc(p->ncells + 1u, sizeof *sum);
    bool fit = false;
    if (!sum)
        return false;
    for (uint64_t i = 0; i < p->nsteps; i++) {
        const struct step *s = &p->steps[i];
        uint64_t size = s->value < 0 ? 0 - (uint64_t)s->value : (uint64_t)s->value;
        bool adds = s->kind <= STEP_WAIT_EQUAL || s->kind == STEP_FETCH_ADD;
        if (!adds || p->cells[s->cell].kind == CELL_ONE_WRITER)
            continue;
        if (size >= UINT64_C(1) << 56 || (sum[s->cell] += size) >= UINT64_C(1) << 58)
            goto free_sum;
    }
    fit = true;
free_sum:
    free(sum);
    return fit;
}

/* A thread's last value of a cell; threads are visited one after the other. */
struct last {
    uint32_t thread;
    int64_t value;
};

static void see_value(struct cell *cell, struct last *last, uint32_t thread, const struct step *s)
{
    int64_t before = last->thread == thread ? last->value : 0;
    bool falls = s->kind == STEP_SET ? s->value < before : s->value < 0;
    cell->falls = cell->falls || falls;
    last->value = s->kind == STEP_SET ? s->value : peal_wrap_add(before, s->value);
    last->thread = thread;
}

static void see_steps(struct program *p, struct last *last)
{
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = peal_program_step(p, t, i);
            struct cell *cell = &p->cells[s->cell];
            if (s->kind == STEP_WHEN || s->kind == STEP_NOP)
                continue;
            if (peal_step_writes(s))
                see_write(cell, t, s);
            if (s->kind == STEP_ADD || s->kind == STEP_SET)
                see_value(cell, &last[s->cell], t, s);
            /* A sum of amounts does not need the steps that a `when` may leave out, but a wait may
             * need them. */
            bool is_guarded = p->guards && p->guards[p->threads[t].first_step + t + i];
            if (peal_step_is_atomic(s) || is_guarded)
                cell->falls = true;
            if (s->kind == STEP_WAIT_EQUAL || s->kind == STEP_PEEK ||
                (s->kind == STEP_WAIT && (s->flags & STEP_HAS_REG)))
                cell->falls = true;
        }
    }
}

void peal_program_classify(struct program *p)
{
    p->monotone = true;
    p->not_monotone = NULL;
    if (!amounts_fit(p)) {
        p->status = PEAL_NO_MEMORY;
        p->why = "a cell gets, or is compared with, amounts that are too large to be followed";
        return;
    }
    struct last *last = calloc(p->ncells + 1u, sizeof *last);
    if (!last) {
        p->status = PEAL_NO_MEMORY;
        p->why = "out of memory";
        return;
    }
    for (uint32_t c = 0; c < p->ncells; c++) {
        struct cell *cell = &p->cells[c];
        cell->writer = PEAL_NONE;
        cell->falls = cell->sets = cell->adds = cell->relaxed = cell->handover = false;
        cell->scoped = false;
        last[c].thread = PEAL_NONE;
    }
    see_steps(p, last);
    for (uint32_t c = 0; c < p->ncells; c++) {
        struct cell *cell = &p->cells[c];
        if ((cell->uninitialised && cell->sets) || cell->by_launch)
            cell->falls = true;
        if (cell->writer == MANY_WRITERS && cell->sets) {
            if (cell->kind == CELL_ONE_WRITER)
                cell->handover = true;
            else
                cell->falls = true;
        }
        if (cell->falls && p->monotone) {
            p->monotone = false;
            p->not_monotone =
                "a cell may fall, is waited for with ==, is peeked, or has atomics with a result";
        }
    }
    free(last);
}

static int64_t amount(const struct step *s, const int64_t *regs)
{
    return s->flags & STEP_HAS_REG ? peal_wrap_add(s->value, regs[s->reg]) : s->value;
}

bool peal_program_enabled(const struct program *p, uint32_t thread, uint32_t step,
                          const int64_t *regs, int64_t value)
{
    const struct step *s = peal_program_step(p, thread, step);
    if (!peal_program_done(p, thread, step, regs))
        return true;
    if (s->kind == STEP_TAKE)
        return value == peal_swap_expected(s->value);
    return peal_program_passes(p, s, value, amount(s, regs));
}

/* The op of a step. */
static const struct peal_op *op_of(const struct program *p, uint32_t thread, uint32_t step)
{
    uint32_t launch;
    return peal_program_op(p, thread, p->step_op[p->threads[thread].first_step + step], &launch);
}

int64_t peal_program_effect(const struct program *p, uint32_t thread, uint32_t step, int64_t *regs,
                            int64_t before)
{
    const struct step *s = peal_program_step(p, thread, step);
    bool done = peal_program_done(p, thread, step, regs);
    if (s->kind == STEP_WHEN) {
        const struct peal_op *op = op_of(p, thread, step);
        regs[s->reg] = done && peal_when_holds(op, regs[op->mem.rows]);
        return before;
    }
    if (!done)
        return before;
    int64_t by = amount(s, regs);
    if (peal_step_fetches(s))
        regs[s->reg] = s->kind == STEP_PEEK ? peal_program_peek(p, s, before) : before;
    switch ((enum step_kind)s->kind) {
    case STEP_ADD:
    case STEP_FETCH_ADD:
        return peal_wrap_add(before, by);
    case STEP_SET:
        return by;
    case STEP_COMPARE_SWAP:
    case STEP_TAKE:
        return peal_swap_after(s->value, before);
    default:
        return before;
    }
}

const struct peal_op *peal_program_op(const struct program *p, uint32_t thread, uint32_t op,
                                      uint32_t *launch)
{
    const struct thread *t = &p->threads[thread];
    uint32_t l = 0;
    while (l + 1 < p->launches && op >= t->first_op[l + 1])
        l++;
    *launch = l;
    const struct peal_lane *lane = peal_plan_lane(p->plans[l], t->rank, t->lane);
    return peal_plan_ops(p->plans[l]) + lane->first_op + (op - t->first_op[l]);
}

uint32_t peal_program_step_launch(const struct program *p, uint32_t thread, uint32_t step)
{
    const struct thread *t = &p->threads[thread];
    uint32_t l = 0;
    while (l + 1 < p->launches && step >= t->leave[l])
        l++;
    return l;
}

void peal_program_cell_name(const struct program *p, uint32_t c, struct peal_text *out)
{
    const struct cell *cell = &p->cells[c];
    if (peal_cell_is_signal(cell)) {
        const struct signal *signal = &p->signals.at[cell->owner];
        peal_text_puts(out, signal->name);
        if (signal->cells > 1)
            peal_text_printf(out, "[%u]", cell->index);
        peal_text_printf(out, "@%u", cell->rank);
    } else if (cell->kind <= CELL_FREED) {
        const struct channel *ch = &p->channels.at[cell->owner];
        peal_text_puts(out, cell->kind == CELL_SENT ? "messages" : "freed slots");
        if (*ch->name)
            peal_text_printf(out, " of '%s'", ch->name);
        peal_text_printf(out, " %u->%u", ch->sender, ch->receiver);
    } else if (cell->kind >= CELL_ISSUED) {
        peal_text_printf(out, "what rank %u has %s to rank %u", p->threads[cell->owner].rank,
                         cell->kind == CELL_ISSUED ? "put" : "delivered", cell->rank);
    } else {
        peal_text_printf(out, "%s of rank %u", cell->kind == CELL_FORK ? "start" : "end",
                         cell->rank);
    }
}

int64_t peal_program_logical(const struct program *p, uint32_t c, int64_t value, uint32_t launch)
{
    const struct cell *cell = &p->cells[c];
    if (cell->kind == CELL_ONE_WRITER) {
        int64_t epoch = value >> 32;
        if (epoch == (int64_t)launch + 1)
            return value & UINT32_MAX;
        return epoch > (int64_t)launch + 1 ? PEAL_VERIFY_LATER : 0;
    }
    if (cell->kind == CELL_SHARED)
        return value - p->base[(uint64_t)launch * p->ncells + c];
    return value;
}
