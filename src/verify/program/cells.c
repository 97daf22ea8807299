/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a program, and the bases of shared ones.
 *
 * A signal of one cell per rank has nranks^2 cells, and a kernel with a root uses 2 * nranks of
 * them. All code that walks cells would cost the square, so one-writer cells get a number only if
 * some launch uses them. A bit per cell, and the number of bits before each 64, give that number.
 * Cells are numbered by signal, rank and index, used or not, so that all code that visits cells in
 * order meets them in the same order. Shared cells are all numbered, because the owner's total is
 * also compared for a cell that no step adds to. Raw cells are all numbered too: they are few, and
 * their first value may be unknown.
 */
#include "verify/program/program.h"

#include "base/base.h"
#include "verify/program/wires.h"

#include <string.h>

static uint8_t kind_of(const struct signal *signal)
{
    if (signal->kind == PEAL_SIGNAL_ONE_WRITER)
        return CELL_ONE_WRITER;
    return signal->kind == PEAL_SIGNAL_SHARED ? CELL_SHARED : CELL_RAW;
}

/* --- which cells are used -------------------------------------------------------------------- */

static void use(struct program *p, uint64_t place)
{
    p->places[place / 64].used |= UINT64_C(1) << place % 64;
}

/* unroll.c reports cells outside their signal as early faults. */
static void mark_op(struct program *p, uint32_t launch, const struct peal_op *op)
{
    const struct peal_plan *plan = p->plans[launch];
    uint32_t s = peal_op_signal(op);
    const struct signal *mine = &p->signals.at[p->signal_of[launch][s]];
    uint32_t index = peal_op_cell(plan, op, launch) - peal_plan_signals(plan)[s].first_cell;
    if (index >= mine->cells || op->sync.rank >= p->nranks)
        return;
    use(p, mine->first_cell + (uint64_t)op->sync.rank * mine->cells + index);
}

/* Has a launch of the same plan in the same phase been marked? */
static bool is_repeated(const struct program *p, uint32_t launch)
{
    for (uint32_t l = 0; l < launch; l++) {
        if (p->plans[l] == p->plans[launch] && (launch - l) % p->plans[l]->period == 0)
            return true;
    }
    return false;
}

static void mark_used(struct program *p)
{
    for (uint32_t l = 0; l < p->launches; l++) {
        const struct peal_op *op = peal_plan_ops(p->plans[l]);
        if (is_repeated(p, l))
            continue;
        for (uint64_t i = 0; i < p->plans[l]->ops.count; i++) {
            if (peal_op_is_sync(&op[i]))
                mark_op(p, l, &op[i]);
        }
    }
    for (uint32_t s = 0; s < p->signals.len; s++) {
        const struct signal *signal = &p->signals.at[s];
        if (signal->kind == PEAL_SIGNAL_ONE_WRITER)
            continue;
        for (uint64_t i = 0; i < (uint64_t)signal->cells * p->nranks; i++)
            use(p, signal->first_cell + i);
    }
}

/* Assigns the numbers; returns how many there are. */
static uint64_t count_used(struct program *p, uint64_t places)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < places / 64 + 1; i++) {
        p->places[i].first = n;
        n += (uint64_t)__builtin_popcountll(p->places[i].used);
    }
    return n;
}

/* --- making them ----------------------------------------------------------------------------- */

static uint32_t make_signals(struct program *p)
{
    uint32_t at = 0;
    for (uint32_t s = 0; s < p->signals.len; s++) {
        const struct signal *signal = &p->signals.at[s];
        uint64_t place = signal->first_cell;
        uint64_t end = place + (uint64_t)signal->cells * p->nranks;
        while (place < end) {
            uint64_t left = p->places[place / 64].used >> place % 64;
            if (!left) {
                place = (place / 64 + 1) * 64;
                continue;
            }
            place += (uint64_t)__builtin_ctzll(left);
            if (place >= end)
                break;
            uint64_t i = place++ - signal->first_cell;
            p->cells[at++] = (struct cell){
                .kind = kind_of(signal),
                .uninitialised = signal->kind == PEAL_SIGNAL_RAW_UNINITIALISED,
                .rank = (uint32_t)(i / signal->cells),
                .owner = s,
                .index = (uint32_t)(i % signal->cells),
            };
        }
    }
    return at;
}

static uint32_t make_channels(struct program *p, uint32_t at)
{
    for (uint32_t c = 0; c < p->channels.len; c++) {
        struct channel *ch = &p->channels.at[c];
        ch->sent = at;
        p->cells[at++] = (struct cell){.kind = CELL_SENT, .rank = ch->receiver, .owner = c};
        ch->freed = at;
        p->cells[at++] = (struct cell){.kind = CELL_FREED, .rank = ch->sender, .owner = c};
    }
    return at;
}

/* Forks and joins come last. */
static void make_edges(struct program *p)
{
    uint32_t at = p->ncells - 2 * p->nranks;
    for (uint32_t r = 0; r < p->nranks; r++) {
        p->cells[at++] = (struct cell){.kind = CELL_FORK, .rank = r};
        p->cells[at++] = (struct cell){.kind = CELL_JOIN, .rank = r};
    }
}

void peal_program_make_cells(struct program *p)
{
    uint64_t places = 0;
    for (uint32_t s = 0; s < p->signals.len; s++) {
        p->signals.at[s].first_cell = places;
        places += (uint64_t)p->signals.at[s].cells * p->nranks;
    }
    if (places >= UINT32_MAX / 2) {
        peal_program_fail(p, PEAL_NO_MEMORY, "a proof covers at most 2147483646 cells");
        return;
    }
    p->places = peal_program_take(p, places / 64 + 1, sizeof *p->places);
    if (p->status != PEAL_OK)
        return;
    mark_used(p);
    uint64_t n = count_used(p, places) + 2 * p->channels.len + 2 * (uint64_t)p->nranks;
    n += 2 * peal_wires_thread_count(p, p->nlanes);
    if (n >= UINT32_MAX / 2) {
        peal_program_fail(p, PEAL_NO_MEMORY, "a proof covers at most 2147483646 cells");
        return;
    }
    p->ncells = (uint32_t)n;
    p->cells = peal_program_take(p, n, sizeof *p->cells);
    p->initial = peal_program_take(p, n, sizeof *p->initial);
    if (p->status != PEAL_OK)
        return;
    uint32_t at = make_channels(p, make_signals(p));
    peal_wires_make_cells(p, at);
    make_edges(p);
}

/* --- bases ----------------------------------------------------------------------------------- */

static void add_totals(struct program *p, uint32_t launch, uint32_t s, int64_t *next)
{
    const struct peal_plan *plan = p->plans[launch];
    const struct peal_signal *signal = &peal_plan_signals(plan)[s];
    const struct signal *mine = &p->signals.at[p->signal_of[launch][s]];
    for (uint32_t r = 0; r < p->nranks; r++) {
        for (uint32_t i = 0; i < signal->cells; i++) {
            int64_t *cell = &next[peal_program_cell(p, mine, r, i)];
            *cell = peal_wrap_add(*cell, peal_plan_total(plan, r, launch, signal, i));
        }
    }
}

void peal_program_make_bases(struct program *p)
{
    bool any = false;
    for (uint32_t s = 0; s < p->signals.len; s++)
        any = any || p->signals.at[s].kind == PEAL_SIGNAL_SHARED;
    if (!any)
        return;
    p->base = peal_program_take(p, (uint64_t)(p->launches + 1) * p->ncells, sizeof *p->base);
    for (uint32_t l = 0; l < p->launches && p->status == PEAL_OK; l++) {
        const struct peal_plan *plan = p->plans[l];
        int64_t *now = p->base + (uint64_t)l * p->ncells, *next = now + p->ncells;
        memcpy(next, now, p->ncells * sizeof *now);
        for (uint32_t s = 0; s < plan->signals.count; s++) {
            if (peal_plan_signals(plan)[s].kind == PEAL_SIGNAL_SHARED)
                add_totals(p, l, s, next);
        }
    }
}
