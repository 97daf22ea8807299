/* SPDX-License-Identifier: Apache-2.0 */
/* Are the accesses of all locations the same up to the group?
 *
 * The accesses to a location (a buffer on a rank) divide it into pieces. A piece is described by
 * the classes of the accesses that cover it: which thread accesses, between which steps, in which
 * launch, and how. Lengths are not part of it, and neither is the order of ops between two steps:
 * races depend on neither. Each location's pieces, with every thread replaced by its image under
 * the member that takes the location's rank to rank 0, must be those of the location on rank 0,
 * each as often. Then two accesses overlap iff their images do, for every member.
 *
 * Pieces are sorted by a hash and then compared class by class: equal hashes of unequal pieces can
 * only lead to the plain analysis.
 *
 * The vectors of struct cutter and of the two covers are reused from location to location. The
 * cover of rank 0 stays while those of the other ranks of the same buffer are compared with it, so
 * locations must come buffer by buffer, rank 0 first. Why pieces and not accesses one by one: ranks
 * divide the same bytes differently when a count does not divide by the number of ranks, and the
 * parts may differ in length even if the order of accesses does not.
 */
#include "verify/order/symmetry.h"

#include "verify/order/race.h"
#include "verify/program/sorted.h"

#include <stdlib.h>
#include <string.h>

/* What matters about an access for races and closedness. */
struct class
{
    uint32_t thread, step, launch;
    uint32_t effect; /* kind, fn, dtype */
};

struct piece_key {
    uint64_t hash;
    uint32_t first, count; /* classes */
};

/* One location's pieces. The vectors are reused from location to location. */
struct cover {
    PEAL_VEC(struct class) classes;
    PEAL_VEC(struct piece_key) pieces;
};

struct cutter {
    const struct program *p;
    const struct symmetry *s;
    const uint32_t *order; /* the location's accesses */
    uint32_t count, rank;
    PEAL_VEC(uint64_t) points;  /* sorted, each once */
    PEAL_VEC(uint32_t) entries; /* accesses by piece */
    PEAL_VEC(uint32_t) first;   /* [piece + 1] in entries */
    struct peal_index index;    /* of points, until they are sorted */
    bool failed;
};

static int by_hash(const void *a, const void *b)
{
    const struct piece_key *x = a, *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static int by_class(const void *a, const void *b)
{
    const struct class *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->launch != y->launch)
        return x->launch < y->launch ? -1 : 1;
    return (x->effect > y->effect) - (x->effect < y->effect);
}

/* --- pieces of one location ------------------------------------------------------------------ */

static uint64_t hash_point(const void *cutter, uint32_t row)
{
    return peal_hash_u64(((const struct cutter *)cutter)->points.at[row], 3);
}

static void add_point(struct cutter *c, uint64_t value)
{
    if (c->points.len >= PEAL_NONE - 1 || !peal_index_reserve(&c->index, hash_point, c)) {
        c->failed = true;
        return;
    }
    size_t at = peal_index_begin(&c->index, peal_hash_u64(value, 3));
    for (; peal_index_is_used(&c->index, at); at = peal_index_next(&c->index, at)) {
        if (c->points.at[peal_index_row(&c->index, at)] == value)
            return;
    }
    if (peal_vec_push(&c->points, value))
        peal_index_put(&c->index, at, (uint32_t)c->points.len - 1);
    else
        c->failed = true;
}

static void find_points(struct cutter *c)
{
    c->points.len = 0;
    peal_index_clear(&c->index);
    for (uint32_t i = 0; i < c->count && !c->failed; i++) {
        const struct access *a = &c->p->accesses.at[c->order[i]];
        add_point(c, a->lo);
        if (!c->failed)
            add_point(c, a->hi);
    }
    if (c->points.len)
        qsort(c->points.at, c->points.len, sizeof *c->points.at, peal_sorted_compare);
}

/* Accesses by piece: counted, then filled in. */
static void find_entries(struct cutter *c)
{
    size_t n = c->points.len;
    c->first.len = c->entries.len = 0;
    if (!peal_vec_reserve(&c->first, n + 2)) {
        c->failed = true;
        return;
    }
    memset(c->first.at, 0, (n + 2) * sizeof *c->first.at);
    for (uint32_t i = 0; i < c->count; i++) {
        const struct access *a = &c->p->accesses.at[c->order[i]];
        for (size_t k = peal_sorted_find(c->points.at, c->points.len, a->lo);
             c->points.at[k] < a->hi; k++)
            c->first.at[k + 2]++;
    }
    for (size_t k = 2; k < n + 2; k++)
        c->first.at[k] += c->first.at[k - 1];
    if (!peal_vec_reserve(&c->entries, c->first.at[n + 1] + 1)) {
        c->failed = true;
        return;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        const struct access *a = &c->p->accesses.at[c->order[i]];
        for (size_t k = peal_sorted_find(c->points.at, c->points.len, a->lo);
             c->points.at[k] < a->hi; k++)
            c->entries.at[c->first.at[k + 1]++] = c->order[i];
    }
}

static struct class class_of(const struct cutter *c, const struct access *a)
{
    return (struct class){peal_symmetry_thread(c->s, c->p, c->rank, a->thread), a->step, a->launch,
                          (uint32_t)a->kind | (uint32_t)a->fn << 8 | (uint32_t)a->dtype << 16};
}

/* The classes of a piece, sorted, each once. */
static void add_piece(struct cutter *c, size_t k, struct cover *out)
{
    struct piece_key key = {0, (uint32_t)out->classes.len, 0};
    uint32_t count = c->first.at[k + 1] - c->first.at[k];
    if (count == 0)
        return;
    if (!peal_vec_reserve(&out->classes, count)) {
        c->failed = true;
        return;
    }
    struct class *at = out->classes.at + key.first;
    for (uint32_t i = 0; i < count; i++)
        at[i] = class_of(c, &c->p->accesses.at[c->entries.at[c->first.at[k] + i]]);
    qsort(at, count, sizeof *at, by_class);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && by_class(&at[i], &at[key.count - 1]) == 0)
            continue;
        at[key.count++] = at[i];
        uint64_t who = peal_hash_u64((uint64_t)at[i].thread << 32 | at[i].step, key.hash);
        key.hash = peal_hash_u64((uint64_t)at[i].launch << 32 | at[i].effect, who);
    }
    out->classes.len += key.count;
    if (!peal_vec_push(&out->pieces, key))
        c->failed = true;
}

static void cover_location(struct cutter *c, struct cover *out)
{
    out->classes.len = out->pieces.len = 0;
    if (c->count == 0)
        return;
    find_points(c);
    if (!c->failed)
        find_entries(c);
    for (size_t k = 0; k + 1 < c->points.len && !c->failed; k++)
        add_piece(c, k, out);
    if (out->pieces.len)
        qsort(out->pieces.at, out->pieces.len, sizeof *out->pieces.at, by_hash);
}

static bool same_cover(const struct cover *a, const struct cover *b)
{
    if (a->pieces.len != b->pieces.len)
        return false;
    for (size_t i = 0; i < a->pieces.len; i++) {
        const struct piece_key *x = &a->pieces.at[i], *y = &b->pieces.at[i];
        if (x->hash != y->hash || x->count != y->count)
            return false;
        for (uint32_t k = 0; k < x->count; k++) {
            if (by_class(&a->classes.at[x->first + k], &b->classes.at[y->first + k]) != 0)
                return false;
        }
    }
    return true;
}

bool peal_symmetry_of_memory(const struct program *p, const struct symmetry *s)
{
    struct cutter c = {.p = p, .s = s};
    struct cover zero = {0}, other = {0};
    uint32_t *first = NULL, *order = NULL;
    bool same = false;
    if (s->kind == SYMMETRY_NONE || !peal_access_by_location(p, &first, &order))
        goto release;
    for (size_t l = 0; l < p->memory.len * p->nranks; l++) {
        c.rank = (uint32_t)(l % p->nranks);
        c.order = order + first[l];
        c.count = first[l + 1] - first[l];
        cover_location(&c, c.rank == 0 ? &zero : &other);
        if (c.failed || (c.rank != 0 && !same_cover(&zero, &other)))
            goto release;
    }
    same = true;
release:
    free(first);
    free(order);
    peal_index_release(&c.index);
    peal_vec_release(&c.points);
    peal_vec_release(&c.entries);
    peal_vec_release(&c.first);
    peal_vec_release(&zero.classes);
    peal_vec_release(&zero.pieces);
    peal_vec_release(&other.classes);
    peal_vec_release(&other.pieces);
    return same;
}
