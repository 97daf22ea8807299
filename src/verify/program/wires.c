/* SPDX-License-Identifier: Apache-2.0 */
/* Wires. See wires.h. Items are collected while the lanes are walked, and sorted by wire
 * afterwards, because the steps and accesses of a thread must be contiguous. */
#include "verify/program/wires.h"

#include <stdlib.h>

bool peal_wires_separate(const struct program *p, uint32_t launch, uint32_t a, uint32_t b)
{
    if (!p->pairwise || a == b || a >= p->nranks || b >= p->nranks)
        return false;
    const int64_t *nodes = peal_plan_nodes(p->plans[launch]);
    return !nodes || nodes[a] != nodes[b];
}

uint64_t peal_wires_thread_count(const struct program *p, uint64_t lanes)
{
    return p->pairwise ? lanes * p->nranks : 0;
}

static uint32_t issued_cell(const struct program *p, uint64_t wire)
{
    return p->wire_cells + 2 * (uint32_t)wire;
}

void peal_wires_make_cells(struct program *p, uint32_t first)
{
    p->wire_cells = first;
    if (!p->pairwise)
        return;
    for (uint64_t wire = 0; wire < (uint64_t)p->nlanes * p->nranks; wire++) {
        uint32_t lane = (uint32_t)(wire / p->nranks), target = (uint32_t)(wire % p->nranks);
        p->cells[first++] = (struct cell){.kind = CELL_ISSUED, .rank = target, .owner = lane};
        p->cells[first++] = (struct cell){.kind = CELL_ARRIVED, .rank = target, .owner = lane};
    }
    p->wires.at = peal_program_take(p, (uint64_t)p->nlanes * p->nranks, sizeof *p->wires.at);
}

bool peal_wires_put(struct program *p, uint32_t thread, uint32_t target, struct wire_item item)
{
    uint32_t number = thread * p->nranks + target;
    struct wire *wire = &p->wires.at[number];
    bool is_new = wire->last_op != item.op + 1;
    if (is_new)
        wire->issued++;
    wire->last_op = item.op + 1;
    wire->items++;
    item.wire = number;
    item.number = wire->issued;
    if (!peal_vec_push(&p->wires.items, item))
        peal_program_fail(p, PEAL_NO_MEMORY, "out of memory");
    return is_new;
}

struct step peal_wires_issue(const struct program *p, uint32_t thread, uint32_t target)
{
    uint64_t wire = (uint64_t)thread * p->nranks + target;
    return (struct step){.cell = issued_cell(p, wire), .kind = STEP_ADD, .value = 1};
}

struct step peal_wires_flush(const struct program *p, uint32_t thread, uint32_t target)
{
    uint64_t wire = (uint64_t)thread * p->nranks + target;
    return (struct step){
        .cell = issued_cell(p, wire) + 1, .kind = STEP_WAIT, .value = p->wires.at[wire].issued};
}

/* State while the steps of one wire's thread are written. */
struct writer {
    struct program *p;
    uint32_t thread;
    uint64_t end, cap;
};

static void add_step(struct writer *w, struct step step, uint32_t op)
{
    struct program *p = w->p;
    if (w->end >= w->cap) {
        peal_program_fail(p, PEAL_NO_MEMORY,
                          "there are more steps than were counted: please report this kernel");
        return;
    }
    p->steps[w->end] = step;
    p->step_op[w->end] = op;
    w->end++;
}

static uint32_t steps_so_far(const struct writer *w)
{
    return (uint32_t)(w->end - w->p->threads[w->thread].first_step);
}

static void carry(struct writer *w, const struct wire_item *item)
{
    struct program *p = w->p;
    if (!item->is_access) {
        add_step(w, item->step, item->op);
        return;
    }
    struct access access = item->access;
    access.thread = w->thread;
    access.step = steps_so_far(w);
    if (!peal_vec_push(&p->accesses, access))
        peal_program_fail(p, PEAL_NO_MEMORY, "out of memory");
}

/* The items of one wire, in order. */
static void write_wire(struct writer *w, const struct wire_item *const *items, uint32_t count)
{
    struct program *p = w->p;
    struct thread *t = &p->threads[w->thread];
    uint32_t issued = issued_cell(p, items[0]->wire), lane = items[0]->wire / p->nranks;
    *t = (struct thread){.rank = p->threads[lane].rank,
                         .lane = p->threads[lane].lane,
                         .first_step = w->end,
                         .nregs = p->threads[lane].nregs,
                         .is_wire = true,
                         .first_op = p->threads[lane].first_op};
    t->enter = peal_program_take(p, p->launches, sizeof *t->enter);
    t->leave = peal_program_take(p, p->launches, sizeof *t->leave);
    uint32_t i = 0;
    for (uint32_t launch = 0; launch < p->launches && p->status == PEAL_OK; launch++) {
        t->enter[launch] = steps_so_far(w);
        while (i < count && items[i]->launch == launch && p->status == PEAL_OK) {
            uint32_t number = items[i]->number;
            add_step(w, (struct step){.cell = issued, .kind = STEP_WAIT, .value = number},
                     PEAL_NONE);
            for (; i < count && items[i]->number == number; i++)
                carry(w, items[i]);
            add_step(w, (struct step){.cell = issued + 1, .kind = STEP_ADD, .value = 1}, PEAL_NONE);
        }
        t->leave[launch] = steps_so_far(w);
    }
    t->nsteps = steps_so_far(w);
}

uint64_t peal_wires_unroll(struct program *p, uint64_t end, uint64_t cap)
{
    struct writer w = {.p = p, .end = end, .cap = cap};
    if (!p->pairwise || p->wires.items.len == 0)
        return end;
    uint64_t wires = (uint64_t)p->nlanes * p->nranks;
    const struct wire_item **sorted = calloc(p->wires.items.len, sizeof *sorted);
    uint64_t *first = calloc(wires + 2, sizeof *first);
    if (!sorted || !first)
        peal_program_fail(p, PEAL_NO_MEMORY, "out of memory");
    for (uint64_t i = 0; i < wires && p->status == PEAL_OK; i++)
        first[i + 2] = first[i + 1] + p->wires.at[i].items;
    for (size_t i = 0; i < p->wires.items.len && p->status == PEAL_OK; i++) {
        const struct wire_item *item = &p->wires.items.at[i];
        sorted[first[item->wire + 1]++] = item;
    }
    for (uint64_t i = 0; i < wires && p->status == PEAL_OK; i++) {
        if (p->wires.at[i].items == 0)
            continue;
        w.thread = p->nthreads++;
        write_wire(&w, sorted + first[i], p->wires.at[i].items);
    }
    free(sorted);
    free(first);
    return w.end;
}
