/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank permutations carry the steps of a program onto themselves.
 *
 * A group is checked by its generators: one rotation, or one exclusive or for each bit. For a
 * generator g, thread t and its image are walked side by side. Kinds, flags, registers and values
 * must be equal, launches must begin and end at the same steps, and the cells of the two walks must
 * give a bijection between cells of one kind and one initial value. Physical values are compared,
 * so that counts from other launches' totals are compared as well.
 *
 * The program is only read. A struct symmetry is two numbers and refers to nothing: it is a
 * statement about the steps that it was found for, and must not be used after steps were changed.
 * So it is never kept; it is found where it is needed, which costs about as much as one lazy run.
 *
 * What never changes: only SYMMETRY_ROTATE and SYMMETRY_XOR exist, because exactly one member of
 * each takes a given rank to rank 0, and lanes keep their number. "Carry to rank 0" is then a
 * formula, needs no table of permutations, and gives a query one image. If memory runs out, or in
 * any doubt, the answer is SYMMETRY_NONE: the plain analysis, which is slower and gives the same
 * verdict.
 *
 * Why not general graph automorphisms: finding them is hard, and collectives that are symmetric at
 * all are rings, meshes of all ranks, or exchanges by bits. Why compare steps and not the kernel's
 * text: docs/decisions/0024-symmetry-is-checked-on-programs.md.
 */
#include "verify/order/symmetry.h"

#include <stdlib.h>
#include <string.h>

/* One permutation of the ranks. */
struct generator {
    enum symmetry_kind kind;
    uint32_t by, nranks;
};

struct carrier {
    const struct program *p;
    const struct step *steps;
    uint32_t *image; /* [cell] + 1, 0 = not known yet */
    uint32_t *origin;
};

static uint32_t image_of_rank(const struct generator *g, uint32_t rank)
{
    return g->kind == SYMMETRY_ROTATE ? (rank + g->by) % g->nranks : rank ^ g->by;
}

/* Cells that are always used together are the same cell, or two that look alike. */
static bool carry_cell(struct carrier *c, uint32_t from, uint32_t to)
{
    if (c->image[from] || c->origin[to])
        return c->image[from] == to + 1 && c->origin[to] == from + 1;
    const struct cell *a = &c->p->cells[from], *b = &c->p->cells[to];
    if (a->kind != b->kind || a->uninitialised != b->uninitialised ||
        c->p->initial[from] != c->p->initial[to])
        return false;
    c->image[from] = to + 1;
    c->origin[to] = from + 1;
    return true;
}

static bool same_outline(const struct program *p, const struct thread *t, const struct thread *u)
{
    if (t->nsteps != u->nsteps || t->lane != u->lane || t->nregs != u->nregs)
        return false;
    for (uint32_t l = 0; l < p->launches; l++) {
        if (t->enter[l] != u->enter[l] || t->leave[l] != u->leave[l])
            return false;
    }
    return true;
}

static bool carry_thread(struct carrier *c, uint32_t from, uint32_t to)
{
    const struct thread *t = &c->p->threads[from], *u = &c->p->threads[to];
    if (!same_outline(c->p, t, u))
        return false;
    const struct step *a = c->steps + t->first_step, *b = c->steps + u->first_step;
    for (uint32_t i = 0; i < t->nsteps; i++) {
        if (a[i].kind != b[i].kind || a[i].flags != b[i].flags || a[i].reg != b[i].reg ||
            a[i].value != b[i].value || !carry_cell(c, a[i].cell, b[i].cell))
            return false;
    }
    return true;
}

static bool carries(struct carrier *c, const struct generator *g)
{
    const struct program *p = c->p;
    memset(c->image, 0, p->ncells * sizeof *c->image);
    memset(c->origin, 0, p->ncells * sizeof *c->origin);
    for (uint32_t r = 0; r < p->nranks; r++) {
        uint32_t q = image_of_rank(g, r), first = p->thread_of_rank[r];
        uint32_t lanes = p->thread_of_rank[r + 1] - first;
        if (lanes != p->thread_of_rank[q + 1] - p->thread_of_rank[q])
            return false;
        for (uint32_t lane = 0; lane < lanes; lane++) {
            if (!carry_thread(c, first + lane, p->thread_of_rank[q] + lane))
                return false;
        }
    }
    return true;
}

static bool is_group(struct carrier *c, enum symmetry_kind kind)
{
    uint32_t n = c->p->nranks;
    if (kind == SYMMETRY_ROTATE)
        return carries(c, &(struct generator){kind, 1, n});
    if (n & (n - 1))
        return false;
    for (uint32_t bit = 1; bit < n; bit <<= 1) {
        if (!carries(c, &(struct generator){kind, bit, n}))
            return false;
    }
    return true;
}

struct symmetry peal_symmetry_find(const struct program *p, const struct step *steps)
{
    struct symmetry found = {SYMMETRY_NONE, p->nranks};
    struct carrier c = {.p = p, .steps = steps};
    if (p->plain || p->nranks < 2)
        return found;
    c.image = malloc((p->ncells + 1u) * sizeof *c.image);
    c.origin = malloc((p->ncells + 1u) * sizeof *c.origin);
    if (c.image && c.origin) {
        if (is_group(&c, SYMMETRY_ROTATE))
            found.kind = SYMMETRY_ROTATE;
        else if (is_group(&c, SYMMETRY_XOR))
            found.kind = SYMMETRY_XOR;
    }
    free(c.image);
    free(c.origin);
    return found;
}

void peal_symmetry_carry(const struct program *p, const struct symmetry *s,
                         struct clock_query *queries, uint64_t count)
{
    if (s->kind == SYMMETRY_NONE)
        return;
    for (uint64_t i = 0; i < count; i++) {
        struct clock_query *q = &queries[i];
        uint32_t from = p->threads[q->of].rank;
        q->of = peal_symmetry_thread(s, p, from, q->of);
        q->thread = peal_symmetry_thread(s, p, from, q->thread);
    }
}
