/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of buffers a mesh may name.
 *
 * Whether two accesses overlap must depend on equality of ranks alone, for every count and every
 * number of ranks (but for parts that are empty, which overlap nothing). These forms have that
 * property, if all accesses to a buffer are whole or of one form:
 *
 *   x                                    whole
 *   x[r of nranks]                       the part of a rank
 *   x[r], x[r][0 +: m]                   a row of T[nranks, m]
 *   x[index * unit +: len]               a slot, and x[...][r of nranks] in it: index is made of
 *                                        `launch mod k` and ranks as digits: ((launch mod 2) *
 *                                        nranks + r); len is at most unit; the buffer has
 *                                        k * nranks * ... * unit elements
 *   x[0 +: len]                          a prefix: all of them overlap
 *
 * Lengths come from the kernel's one dimension; integer parameters such as `most` are only
 * distances, because a proof binds them to the count.
 */
#include "verify/forall/mesh.h"

#include <string.h>

static const char strange[] = "a part of a buffer that is neither whole, of one rank, nor a slot";

/* --- sizes ----------------------------------------------------------------------------------- */

static bool is_size(const struct mesh *m, const struct peal_expr *e)
{
    return e && e->kind == PEAL_EXPR_NAME && e->symbol && m->role[e->symbol->slot] == MESH_SIZE;
}

static bool is_dim(const struct peal_expr *e)
{
    return e && e->kind == PEAL_EXPR_NAME && e->symbol && e->symbol->kind == PEAL_SYMBOL_DIM;
}

static bool is_call(const struct peal_expr *e, enum peal_builtin builtin)
{
    return e && e->kind == PEAL_EXPR_CALL && e->builtin == builtin;
}

/* cdiv(n, nranks) */
static bool is_largest_part(const struct mesh *m, const struct peal_expr *e)
{
    (void)m;
    return is_call(e, PEAL_BUILTIN_CDIV) && is_dim(e->a) && e->a->next &&
           peal_mesh_is_nranks(e->a->next);
}

/* part(r, n, nranks) */
static bool is_part_length(struct mesh *m, const struct peal_expr *e)
{
    return is_call(e, PEAL_BUILTIN_PART) && peal_mesh_is_rank(m, e->a) && e->a->next &&
           is_dim(e->a->next) && e->a->next->next && peal_mesh_is_nranks(e->a->next->next);
}

/* Is len at most unit, by an assert or by definition? */
static bool fits(struct mesh *m, const struct peal_expr *len, const struct peal_expr *unit)
{
    if (!is_dim(len) && !is_part_length(m, len))
        return false;
    if (peal_mesh_same(len, unit))
        return true;
    const struct peal_expr *n = is_part_length(m, len) ? len->a->next : NULL;
    if (n && (peal_mesh_same(n, unit) || (is_largest_part(m, unit) && peal_mesh_same(n, unit->a))))
        return true;
    for (uint32_t i = 0; i < m->nasserts; i++) {
        const struct peal_expr *small = m->asserts[i]->a, *large = m->asserts[i]->b;
        if (!peal_mesh_same(large, unit))
            continue;
        if (peal_mesh_same(len, small) ||
            (n && is_largest_part(m, small) && peal_mesh_same(n, small->a)))
            return true;
        if (n && peal_mesh_same(n, small))
            return true;
    }
    return false;
}

/* A shape as a product: a number, a power of nranks, and one size. */
struct product {
    int64_t number;
    uint32_t ranks;
    const struct peal_expr *size;
    bool good;
};

static void multiply(struct mesh *m, const struct peal_expr *e, struct product *p)
{
    if (e->kind == PEAL_EXPR_BINARY && e->op == PEAL_INT_MUL) {
        multiply(m, e->a, p);
        multiply(m, e->b, p);
    } else if (e->kind == PEAL_EXPR_INT && e->value > 0 && e->value <= 64) {
        p->number *= e->value;
    } else if (peal_mesh_is_nranks(e)) {
        p->ranks++;
    } else {
        bool size = is_size(m, e) || is_largest_part(m, e) || is_part_length(m, e);
        p->good = p->good && size && !p->size && p->number <= 4096;
        p->size = e;
    }
}

static struct product product_of(struct mesh *m, const struct peal_expr *e)
{
    struct product p = {.number = 1, .good = true};
    multiply(m, e, &p);
    p.good = p.good && p.size;
    return p;
}

/* Is a whole access as long as the dimension, on every rank? */
static bool is_plain(struct mesh *m, const struct peal_symbol *s)
{
    if (s->type.dims == 2)
        return is_dim(s->shape[1]);
    struct product p = product_of(m, s->shape[0]);
    return p.good && p.number == 1 && (is_dim(p.size) || is_part_length(m, p.size));
}

static bool good_shape(struct mesh *m, const struct peal_symbol *s)
{
    if (!s->shape[0])
        return false;
    if (s->type.dims == 2)
        return s->shape[1] && peal_mesh_is_nranks(s->shape[0]) && is_size(m, s->shape[1]);
    return product_of(m, s->shape[0]).good;
}

/* --- slots ----------------------------------------------------------------------------------- */

/* Digits of base nranks after `launch mod k`: launch mod k, r, index * nranks + r. */
static bool read_index(struct mesh *m, const struct peal_expr *e, struct mesh_layout *out)
{
    if (e->kind == PEAL_EXPR_LAUNCH_MOD) {
        out->phases = e->value;
        return true;
    }
    if (e->kind == PEAL_EXPR_BINARY && e->op == PEAL_INT_MUL && peal_mesh_is_nranks(e->b)) {
        out->ranks++; /* the last digit is 0 */
        m->zero = true;
        return read_index(m, e->a, out);
    }
    if (e->kind == PEAL_EXPR_BINARY && e->op == PEAL_INT_ADD && peal_mesh_is_rank(m, e->b) &&
        e->a->kind == PEAL_EXPR_BINARY && e->a->op == PEAL_INT_MUL &&
        peal_mesh_is_nranks(e->a->b)) {
        out->ranks++;
        return read_index(m, e->a->a, out);
    }
    out->ranks++;
    return peal_mesh_is_rank(m, e);
}

/* x[index * unit +: len], where the buffer has as many slots of that length as there are
 * indices. */
static bool read_slot(struct mesh *m, const struct peal_symbol *s, const struct peal_slice *slice,
                      struct mesh_layout *out)
{
    const struct peal_expr *start = slice->a;
    struct product shape = product_of(m, s->shape[0]);
    if (start->kind == PEAL_EXPR_INT && start->value == 0) {
        out->cut =
            MESH_PREFIX; /* in place, a prefix of a parameter could overlap parts of another */
        return s->place != PEAL_PLACE_PARAM && shape.good && shape.number == 1 && !shape.ranks &&
               fits(m, slice->b, shape.size);
    }
    if (start->kind != PEAL_EXPR_BINARY || start->op != PEAL_INT_MUL)
        return false;
    *out = (struct mesh_layout){
        .cut = MESH_SLOTS, .phases = 1, .of = start->b, .prefixes = !is_dim(slice->b)};
    return (is_size(m, start->b) || is_largest_part(m, start->b)) && read_index(m, start->a, out) &&
           shape.good && shape.number == out->phases && shape.ranks == out->ranks &&
           peal_mesh_same(shape.size, start->b) && fits(m, slice->b, start->b);
}

/* --- forms ----------------------------------------------------------------------------------- */

/* One or two slices: [first][second]. */
struct chain {
    const struct peal_expr *slice[2]; /* outermost first */
    uint32_t count;
    const struct peal_symbol *buffer;
};

static bool unchain(struct mesh *m, const struct peal_expr *e, struct chain *c)
{
    const struct peal_expr *list[2];
    uint32_t n = 0;
    for (;; e = e->a) {
        if (e->kind == PEAL_EXPR_AT) {
            if (!peal_mesh_is_rank(m, e->b))
                return false;
            m->remote++;
        } else if (e->kind == PEAL_EXPR_SLICE && e->nslices == 1 && n < 2) {
            list[n++] = e;
        } else {
            break;
        }
    }
    if (e->kind != PEAL_EXPR_NAME || !e->symbol || e->symbol->kind != PEAL_SYMBOL_BUFFER)
        return false;
    c->buffer = e->symbol;
    c->count = n;
    for (uint32_t i = 0; i < n; i++)
        c->slice[i] = list[n - 1 - i];
    return true;
}

static bool is_part(struct mesh *m, const struct peal_slice *s)
{
    return s->kind == PEAL_SLICE_PART && peal_mesh_is_rank(m, s->a) && peal_mesh_is_nranks(s->b);
}

static bool read_first(struct mesh *m, const struct chain *c, struct mesh_layout *out)
{
    const struct peal_slice *s = &c->slice[0]->slices[0];
    *out = (struct mesh_layout){.cut = MESH_WHOLE, .phases = 1};
    if (c->buffer->type.dims == 2) {
        out->cut = MESH_ROWS;
        return s->kind == PEAL_SLICE_INDEX && peal_mesh_is_rank(m, s->a) &&
               (c->count > 1 || is_dim(c->buffer->shape[1]));
    }
    if (s->kind == PEAL_SLICE_PART) {
        out->cut = MESH_PARTS;
        return is_part(m, s);
    }
    return s->kind == PEAL_SLICE_RANGE && read_slot(m, c->buffer, s, out);
}

/* What may follow: the start of a row, or the part of a rank in a slot that holds a whole
 * vector. */
static bool read_second(struct mesh *m, const struct chain *c, struct mesh_layout *layout)
{
    const struct peal_slice *first = &c->slice[0]->slices[0], *s = &c->slice[1]->slices[0];
    if (layout->cut == MESH_ROWS)
        return s->kind == PEAL_SLICE_RANGE && s->a->kind == PEAL_EXPR_INT && s->a->value == 0 &&
               fits(m, s->b, c->buffer->shape[1]);
    layout->parts = true;
    return layout->cut == MESH_SLOTS && is_dim(first->b) && is_part(m, s);
}

static bool same_layout(const struct mesh_layout *a, const struct mesh_layout *b)
{
    return a->cut == b->cut && a->phases == b->phases && a->ranks == b->ranks &&
           peal_mesh_same(a->of, b->of);
}

bool peal_mesh_region(struct mesh *m, const struct peal_expr *e)
{
    struct chain c;
    struct mesh_layout layout = {.cut = MESH_WHOLE, .phases = 1};
    if (!unchain(m, e, &c))
        return peal_mesh_refuse(m, e->pos, strange);
    if (!good_shape(m, c.buffer))
        return peal_mesh_refuse(
            m, c.buffer->pos,
            "a buffer whose length is not a size per rank or per number of ranks");
    if (c.count > 0 && !read_first(m, &c, &layout))
        return peal_mesh_refuse(m, e->pos, strange);
    if (c.count > 1 && !read_second(m, &c, &layout))
        return peal_mesh_refuse(m, e->pos, strange);
    struct mesh_layout *known = &m->layout[c.buffer->slot];
    if (layout.cut == MESH_WHOLE)
        return is_plain(m, c.buffer) || peal_mesh_refuse(m, e->pos, strange);
    if (known->cut == MESH_WHOLE)
        *known = layout;
    known->prefixes = known->prefixes || layout.prefixes;
    known->parts = known->parts || layout.parts;
    if (!same_layout(known, &layout) || (known->prefixes && known->parts))
        return peal_mesh_refuse(m, e->pos, "a buffer that is divided in two ways");
    return true;
}
