/* SPDX-License-Identifier: Apache-2.0 */
/* See lanes.h. Takes time linear in the steps, and in the groups times those that are unlike all
 * before them, of which only a few are remembered: a group that is like a forgotten one stands for
 * itself.
 *
 * The program is only read. What is found is a statement about the steps that it was found for.
 */
#include "verify/order/lanes.h"

#include <stdlib.h>
#include <string.h>

/* Below this, lazy runs are cheaper than the search. */
enum { MANY_LANES = 8, MAX_UNLIKE = 64 };

static bool has_many(const struct program *p)
{
    for (uint32_t r = 0; r < p->nranks; r++) {
        if (p->thread_of_rank[r + 1] - p->thread_of_rank[r] >= MANY_LANES)
            return !p->plain;
    }
    return false;
}

/* Does the step join its thread to others that have steps on its cell? */
static bool has_cell(const struct step *s)
{
    return s->kind != STEP_NOP && s->kind != STEP_WHEN;
}

/* Does the cell join nothing, and stay where it is when groups are exchanged? */
static bool is_fixed(const struct lane_groups *g, uint32_t cell)
{
    const struct program *p = g->p;
    return p->cells[cell].kind == CELL_FORK || p->cells[cell].kind == CELL_JOIN ||
           g->users[cell] > p->nranks + MANY_LANES;
}

/* How many threads have steps on each cell. */
static bool count_users(struct lane_groups *g)
{
    const struct program *p = g->p;
    uint32_t *last = calloc(p->ncells + 1u, sizeof *last);
    g->users = calloc(p->ncells + 1u, sizeof *g->users);
    for (uint32_t t = 0; t < p->nthreads && last && g->users; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = &g->steps[p->threads[t].first_step + i];
            if (has_cell(s) && last[s->cell] != t + 1) {
                last[s->cell] = t + 1;
                g->users[s->cell]++;
            }
        }
    }
    bool good = last && g->users;
    free(last);
    return good;
}

/* --- groups ---------------------------------------------------------------------------------- */

static uint32_t root_of(uint32_t *parent, uint32_t t)
{
    while (parent[t] != t) {
        parent[t] = parent[parent[t]];
        t = parent[t];
    }
    return t;
}

/* Joins threads with a common cell; the root of a set is its first thread. */
static bool join_threads(const struct lane_groups *g, uint32_t *parent)
{
    const struct program *p = g->p;
    uint32_t *user = calloc(p->ncells + 1u, sizeof *user);
    if (!user)
        return false;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        parent[t] = t;
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = &g->steps[p->threads[t].first_step + i];
            if (!has_cell(s) || is_fixed(g, s->cell))
                continue;
            uint32_t a = root_of(parent, t),
                     b = user[s->cell] ? root_of(parent, user[s->cell] - 1) : a;
            parent[a > b ? a : b] = a > b ? b : a;
            user[s->cell] = t + 1;
        }
    }
    free(user);
    return true;
}

/* Numbers the groups by their first threads, and lists their members. */
static void list_members(struct lane_groups *g, uint32_t *parent)
{
    uint32_t n = g->p->nthreads;
    for (uint32_t t = 0; t < n; t++) {
        uint32_t root = root_of(parent, t);
        g->group[t] = root == t ? g->ngroups++ : g->group[root];
        g->place[t] = g->first[g->group[t] + 1]++;
    }
    for (uint32_t i = 0; i < g->ngroups; i++)
        g->first[i + 1] += g->first[i];
    for (uint32_t t = 0; t < n; t++)
        g->members[g->first[g->group[t]] + g->place[t]] = t;
}

/* --- equal ones ------------------------------------------------------------------------------ */

struct exchange {
    const struct lane_groups *g;
    uint32_t *image, *origin; /* [cell] + 1; 0: not known yet */
};

static bool exchange_cell(struct exchange *x, uint32_t from, uint32_t to)
{
    const struct program *p = x->g->p;
    const struct cell *a = &p->cells[from], *b = &p->cells[to];
    if (x->image[from] || x->origin[to])
        return x->image[from] == to + 1 && x->origin[to] == from + 1;
    if (a->kind != b->kind || a->uninitialised != b->uninitialised || a->relaxed != b->relaxed ||
        a->scoped != b->scoped || a->sets != b->sets || a->adds != b->adds ||
        p->initial[from] != p->initial[to] || (is_fixed(x->g, from) && from != to))
        return false;
    x->image[from] = to + 1;
    x->origin[to] = from + 1;
    return true;
}

static bool exchange_thread(struct exchange *x, uint32_t from, uint32_t to)
{
    const struct program *p = x->g->p;
    const struct thread *t = &p->threads[from], *u = &p->threads[to];
    if (t->nsteps != u->nsteps || t->rank != u->rank || t->nregs != u->nregs ||
        t->is_wire != u->is_wire)
        return false;
    for (uint32_t l = 0; l < p->launches; l++) {
        if (t->enter[l] != u->enter[l] || t->leave[l] != u->leave[l])
            return false;
    }
    const struct step *a = x->g->steps + t->first_step, *b = x->g->steps + u->first_step;
    for (uint32_t i = 0; i < t->nsteps; i++) {
        if (a[i].kind != b[i].kind || a[i].flags != b[i].flags || a[i].reg != b[i].reg ||
            a[i].value != b[i].value ||
            (has_cell(&a[i]) && !exchange_cell(x, a[i].cell, b[i].cell)))
            return false;
    }
    return true;
}

static void forget_cells(struct exchange *x, uint32_t group)
{
    const struct lane_groups *g = x->g;
    for (uint32_t m = g->first[group]; m < g->first[group + 1]; m++) {
        const struct thread *t = &g->p->threads[g->members[m]];
        for (uint32_t i = 0; i < t->nsteps; i++)
            x->image[g->steps[t->first_step + i].cell] =
                x->origin[g->steps[t->first_step + i].cell] = 0;
    }
}

static bool is_equal(struct exchange *x, uint32_t a, uint32_t b)
{
    const struct lane_groups *g = x->g;
    uint32_t size = g->first[a + 1] - g->first[a];
    bool equal = g->first[b + 1] - g->first[b] == size;
    for (uint32_t i = 0; i < size && equal; i++)
        equal = exchange_thread(x, g->members[g->first[a] + i], g->members[g->first[b] + i]);
    forget_cells(x, a);
    forget_cells(x, b);
    return equal;
}

static bool find_equal(struct lane_groups *g)
{
    size_t cells = g->p->ncells + 1u;
    struct exchange x = {g, calloc(cells, sizeof *x.image), calloc(cells, sizeof *x.origin)};
    uint32_t unlike[MAX_UNLIKE], n = 0;
    bool good = x.image && x.origin;
    for (uint32_t i = 0; i < g->ngroups && good; i++) {
        uint32_t k = 0;
        while (k < n && !is_equal(&x, i, unlike[k]))
            k++;
        g->like[i] = k < n ? unlike[k] : i;
        if (k == n && n < MAX_UNLIKE)
            unlike[n++] = i;
    }
    free(x.image);
    free(x.origin);
    return good;
}

bool peal_lanes_find(struct lane_groups *g, const struct program *p, const struct step *steps)
{
    size_t n = p->nthreads + 2u;
    *g = (struct lane_groups){.p = p, .steps = steps};
    if (!has_many(p))
        return false;
    uint32_t *parent = malloc(n * sizeof *parent);
    g->group = calloc(n, sizeof *g->group);
    g->place = calloc(n, sizeof *g->place);
    g->first = calloc(n, sizeof *g->first);
    g->members = calloc(n, sizeof *g->members);
    g->like = calloc(n, sizeof *g->like);
    bool good = parent && g->group && g->place && g->first && g->members && g->like &&
                count_users(g) && join_threads(g, parent);
    if (good) {
        list_members(g, parent);
        good = find_equal(g);
    }
    free(parent);
    if (!good)
        peal_lanes_release(g);
    return good;
}

void peal_lanes_release(struct lane_groups *g)
{
    free(g->group);
    free(g->place);
    free(g->first);
    free(g->members);
    free(g->like);
    free(g->users);
    *g = (struct lane_groups){0};
}

/* --- using them ------------------------------------------------------------------------------ */

bool peal_lanes_stands(const struct lane_groups *g, uint32_t thread)
{
    return g->like[g->group[thread]] == g->group[thread];
}

/* The image of a thread when two groups are exchanged. */
static uint32_t image_of(const struct lane_groups *g, uint32_t a, uint32_t b, uint32_t thread)
{
    uint32_t own = g->group[thread], other = own;
    if (own == a)
        other = b;
    else if (own == b)
        other = a;
    return g->members[g->first[other] + g->place[thread]];
}

uint32_t peal_lanes_image(const struct lane_groups *g, uint32_t thread)
{
    uint32_t own = g->group[thread];
    return image_of(g, own, g->like[own], thread);
}

void peal_lanes_carry(const struct lane_groups *g, struct clock_query *queries, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t own = g->group[queries[i].of], like = g->like[own];
        queries[i].of = image_of(g, own, like, queries[i].of);
        queries[i].thread = image_of(g, own, like, queries[i].thread);
    }
}
