/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of buffers a mesh may name.
 *
 * Whether two accesses overlap must depend on equality of ranks alone, for every count and every
 * number of ranks (but for parts that are empty, which overlap nothing). These forms have that
 * property, if all accesses to a buffer are whole or of one form:
 *
 *   x                                    whole
 *   x[r of nranks]                       the part of a rank, and x[...][i of k] in it, with
 *                                        numbers; or x[i of k] and x[i of k][r of nranks]
 *   x[index * unit +: len]               a slot, and x[...][r of nranks] in it: index is made of
 *                                        `launch mod k` (or a number below k) and ranks as digits:
 *                                        ((launch mod 2) * nranks + r); len is at most unit; the
 *                                        buffer has k * nranks * ... * unit elements
 *   x[index], x[index][0 +: len]         a row of T[k * nranks * ..., unit]: likewise
 *   x[0 +: len]                          a prefix: all of them overlap
 *
 * Lengths come from the kernel's one dimension; integer parameters such as `most` are only
 * distances, because a proof binds them to the count.
 */
#include "verify/forall/linear.h"
#include "verify/forall/mesh.h"
#include "verify/forall/words.h"

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

/* [i of k] with numbers: a piece. */
static bool is_piece_of(const struct peal_expr *i, const struct peal_expr *k)
{
    enum { MAX_PIECES = 8 };
    return i->kind == PEAL_EXPR_INT && k->kind == PEAL_EXPR_INT && k->value >= 1 &&
           k->value <= MAX_PIECES && i->value >= 0 && i->value < k->value;
}

/* part(i, n, k) */
static bool is_piece_length(const struct peal_expr *e)
{
    return is_call(e, PEAL_BUILTIN_PART) && e->a->next && is_dim(e->a->next) && e->a->next->next &&
           is_piece_of(e->a, e->a->next->next);
}

/* cdiv(n, k), which is at least part(i, n, k) */
static bool is_largest_piece(const struct peal_expr *e)
{
    return is_call(e, PEAL_BUILTIN_CDIV) && is_dim(e->a) && e->a->next &&
           e->a->next->kind == PEAL_EXPR_INT && e->a->next->value >= 1;
}

/* n / nranks, where nranks divides n */
static bool is_even_part(const struct mesh *m, const struct peal_expr *e)
{
    return m->even && e && peal_word_is_even_part(e);
}

static int64_t least_multiple(int64_t a, int64_t b)
{
    int64_t multiple = a;
    while (multiple % b)
        multiple += a;
    return multiple;
}

/* The proof needs counts that leave every rest when they are divided into this many pieces. */
static bool count_pieces(struct mesh *m, int64_t pieces)
{
    m->pieces = least_multiple(m->pieces, pieces);
    return m->pieces <= 24;
}

/* Is len at most unit, by an assert or by definition? */
static bool fits(struct mesh *m, const struct peal_expr *len, const struct peal_expr *unit)
{
    if (is_even_part(m, len))
        return peal_linear_same(len, unit) || peal_linear_same(len->a, unit);
    if (is_piece_length(len) && !count_pieces(m, len->a->next->next->value))
        return false;
    if (is_piece_length(len) && is_largest_piece(unit))
        return peal_linear_same(len->a->next, unit->a) &&
               peal_linear_same(len->a->next->next, unit->a->next);
    if (is_piece_length(len))
        return peal_linear_same(len->a->next, unit);
    if (!is_dim(len) && !is_part_length(m, len))
        return false;
    if (peal_linear_same(len, unit))
        return true;
    const struct peal_expr *n = is_part_length(m, len) ? len->a->next : NULL;
    if (n &&
        (peal_linear_same(n, unit) || (is_largest_part(m, unit) && peal_linear_same(n, unit->a))))
        return true;
    for (uint32_t i = 0; i < m->nasserts; i++) {
        const struct peal_expr *small = m->asserts[i]->a, *large = m->asserts[i]->b;
        if (!peal_linear_same(large, unit))
            continue;
        if (peal_linear_same(len, small) ||
            (n && is_largest_part(m, small) && peal_linear_same(n, small->a)))
            return true;
        if (n && peal_linear_same(n, small))
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
        bool size = is_size(m, e) || is_largest_part(m, e) || is_part_length(m, e) ||
                    is_even_part(m, e) || is_largest_piece(e);
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
        return is_dim(s->shape[1]) && peal_mesh_is_nranks(s->shape[0]);
    struct product p = product_of(m, s->shape[0]);
    return p.good && p.number == 1 &&
           (is_dim(p.size) || is_part_length(m, p.size) || is_even_part(m, p.size));
}

/* The shape of a buffer: of T[k * nranks, m], that of T[k * nranks * m]. */
static struct product shape_of(struct mesh *m, const struct peal_symbol *s)
{
    struct product p = {.number = 1, .good = s->shape[0] != NULL};
    if (!p.good)
        return p;
    multiply(m, s->shape[0], &p);
    bool rows = s->type.dims == 2;
    if (rows) {
        p.good = p.good && !p.size && s->shape[1] &&
                 (is_size(m, s->shape[1]) || is_largest_part(m, s->shape[1]) ||
                  is_largest_piece(s->shape[1]));
        p.size = s->shape[1];
    }
    p.good = p.good && p.size;
    return p;
}

bool peal_mesh_shape(struct mesh *m, const struct peal_symbol *s, uint32_t *digits,
                     const struct peal_expr **unit)
{
    struct product p = shape_of(m, s);
    *digits = p.ranks;
    *unit = p.size;
    return p.good && p.number == 1;
}

/* --- slots ----------------------------------------------------------------------------------- */

/* number * nranks^ranks * (launch mod phases) * rank * unit; each of the last three may be
 * missing. */
struct monomial {
    int64_t number, phases;
    uint32_t ranks;
    const struct peal_expr *rank, *unit;
};

enum { MAX_MONOMIALS = 8 };

/* Where a slot begins, as a sum. */
struct slot_start {
    struct monomial at[MAX_MONOMIALS];
    uint32_t n;
    bool good;
};

static void add_monomial(struct slot_start *to, struct monomial one)
{
    if (to->n == MAX_MONOMIALS)
        to->good = false;
    else
        to->at[to->n++] = one;
}

static void add_products(struct slot_start *to, const struct slot_start *a,
                         const struct slot_start *b)
{
    to->good = to->good && a->good && b->good;
    for (uint32_t i = 0; i < a->n; i++) {
        for (uint32_t k = 0; k < b->n; k++) {
            const struct monomial *x = &a->at[i], *y = &b->at[k];
            bool twice = (x->phases && y->phases) || (x->rank && y->rank) || (x->unit && y->unit);
            struct monomial both = {.number = x->number * y->number,
                                    .phases = x->phases ? x->phases : y->phases,
                                    .ranks = x->ranks + y->ranks,
                                    .rank = x->rank ? x->rank : y->rank,
                                    .unit = x->unit ? x->unit : y->unit};
            to->good = to->good && !twice && x->number < 4096 && y->number < 4096;
            add_monomial(to, both);
        }
    }
}

static struct slot_start expand(struct mesh *m, const struct peal_expr *e)
{
    struct slot_start out = {.good = true};
    struct monomial one = {.number = 1};
    if (e->kind == PEAL_EXPR_BINARY && (e->op == PEAL_INT_ADD || e->op == PEAL_INT_MUL)) {
        struct slot_start a = expand(m, e->a), b = expand(m, e->b);
        struct slot_start unit = {.at = {one}, .n = 1, .good = true};
        if (e->op == PEAL_INT_MUL) {
            add_products(&out, &a, &b);
        } else {
            add_products(&out, &a, &unit);
            add_products(&out, &b, &unit);
        }
        return out;
    }
    if (e->kind == PEAL_EXPR_INT)
        one.number = e->value;
    else if (e->kind == PEAL_EXPR_LAUNCH)
        one.phases = e->value;
    else if (peal_mesh_is_nranks(e))
        one.ranks = 1;
    else if (is_size(m, e) || is_largest_part(m, e) || is_part_length(m, e) || is_even_part(m, e) ||
             is_largest_piece(e))
        one.unit = e;
    else if (peal_mesh_is_rank(m, e))
        one.rank = e;
    else
        out.good = false;
    out.good = out.good && one.number >= 0;
    if (one.number)
        add_monomial(&out, one);
    return out;
}

/* Is the sum the number of a slot: digits of base nranks, and before them `launch mod k` or a number
 * below k, where the buffer has exactly k * nranks^digits slots? Digits that are missing are 0. */
static bool read_digits(struct mesh *m, const struct slot_start *start, const struct product *shape)
{
    uint32_t digits = 0, found = 0;
    bool leading = false;
    if (!start->good || shape->ranks > 8)
        return false;
    for (uint32_t i = 0; i < start->n; i++) {
        const struct monomial *t = &start->at[i];
        if (!t->unit || !peal_linear_same(t->unit, shape->size))
            return false;
        if (t->rank && !t->phases && t->number == 1 && t->ranks < shape->ranks &&
            !(digits >> t->ranks & 1)) {
            digits |= 1u << t->ranks;
            found++;
            continue;
        }
        bool in_turn = t->phases == shape->number && t->number == 1;
        bool fixed = !t->phases && t->number < shape->number;
        if (leading || t->rank || t->ranks != shape->ranks || (!in_turn && !fixed))
            return false;
        leading = true;
    }
    m->zero = m->zero || found < shape->ranks;
    return true;
}

/* x[start +: len]: a slot, or a prefix of a buffer that has no slots. */
static bool read_slot(struct mesh *m, const struct peal_symbol *s, const struct peal_slice *slice,
                      struct mesh_layout *out)
{
    struct product shape = shape_of(m, s);
    if (!shape.good)
        return false;
    if (peal_word_is_int(slice->a, 0) && shape.number == 1 && !shape.ranks) {
        /* in place, a prefix of a parameter could overlap parts of another */
        out->cut = MESH_PREFIX;
        return s->place != PEAL_PLACE_PARAM && fits(m, slice->b, shape.size);
    }
    struct slot_start start = expand(m, slice->a);
    *out = (struct mesh_layout){.cut = MESH_SLOTS,
                                .phases = shape.number,
                                .ranks = shape.ranks,
                                .of = shape.size,
                                .pieces = 1,
                                .prefixes = !is_dim(slice->b)};
    return read_digits(m, &start, &shape) && fits(m, slice->b, shape.size);
}

/* x[index] of T[k * nranks, m] */
static bool read_row(struct mesh *m, const struct peal_symbol *s, const struct peal_expr *index,
                     struct mesh_layout *out)
{
    struct product shape = shape_of(m, s);
    if (!shape.good)
        return false;
    struct slot_start rows = expand(m, index), start = {.good = true};
    struct slot_start unit = {.at = {{.number = 1, .unit = shape.size}}, .n = 1, .good = true};
    add_products(&start, &rows, &unit);
    *out = (struct mesh_layout){.cut = MESH_SLOTS,
                                .phases = shape.number,
                                .ranks = shape.ranks,
                                .of = shape.size,
                                .pieces = 1};
    return read_digits(m, &start, &shape);
}

/* --- forms ----------------------------------------------------------------------------------- */

/* One or two slices: [first][second]. */
struct chain {
    const struct peal_expr *slice[2]; /* outermost first */
    uint32_t count;
    bool remote; /* memory of a rank that the text names */
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
            m->reaches = c->remote = true;
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

static bool is_piece(const struct peal_slice *s)
{
    return s->kind == PEAL_SLICE_PART && is_piece_of(s->a, s->b);
}

static bool set_pieces(struct mesh *m, int64_t pieces, struct mesh_layout *out)
{
    out->pieces = pieces;
    return count_pieces(m, pieces);
}

static bool read_first(struct mesh *m, const struct chain *c, struct mesh_layout *out)
{
    const struct peal_slice *s = &c->slice[0]->slices[0];
    *out = (struct mesh_layout){.cut = MESH_WHOLE, .phases = 1, .pieces = 1};
    if (c->buffer->type.dims == 2)
        return s->kind == PEAL_SLICE_INDEX && read_row(m, c->buffer, s->a, out) &&
               (c->count > 1 || is_dim(c->buffer->shape[1]));
    if (s->kind == PEAL_SLICE_PART) {
        out->cut = MESH_PARTS;
        out->inner = is_piece(s);
        if (out->inner)
            return set_pieces(m, s->b->value, out);
        return is_part(m, s);
    }
    return s->kind == PEAL_SLICE_RANGE && read_slot(m, c->buffer, s, out);
}

/* What may follow: the start of a row, the part of a rank in a slot that holds a whole vector, a
 * piece of a part, or a part of a piece. */
static bool read_second(struct mesh *m, const struct chain *c, struct mesh_layout *layout)
{
    const struct peal_slice *first = &c->slice[0]->slices[0], *s = &c->slice[1]->slices[0];
    bool row = c->buffer->type.dims == 2;
    if (layout->cut == MESH_PARTS && layout->inner)
        return is_part(m, s);
    if (layout->cut == MESH_PARTS)
        return is_piece(s) && set_pieces(m, s->b->value, layout);
    if (row && s->kind == PEAL_SLICE_RANGE) {
        layout->prefixes = !is_dim(s->b);
        return peal_word_is_int(s->a, 0) && fits(m, s->b, c->buffer->shape[1]);
    }
    layout->parts = true;
    return layout->cut == MESH_SLOTS && is_dim(row ? c->buffer->shape[1] : first->b) &&
           is_part(m, s);
}

static bool same_layout(const struct mesh_layout *a, const struct mesh_layout *b)
{
    bool pieces = a->pieces == b->pieces && a->inner == b->inner;
    bool some = !a->inner && !b->inner && (a->pieces == 1 || b->pieces == 1);
    return a->cut == b->cut && a->phases == b->phases && a->ranks == b->ranks && (pieces || some) &&
           (a->of == b->of || (a->of && b->of && peal_linear_same(a->of, b->of)));
}

bool peal_mesh_is_empty(const struct peal_expr *e)
{
    return e->kind == PEAL_EXPR_NAME && e->symbol && e->symbol->kind == PEAL_SYMBOL_BUFFER &&
           peal_word_is_int(e->symbol->shape[0], 0);
}

bool peal_mesh_region(struct mesh *m, const struct peal_expr *e)
{
    struct chain c = {.count = 0};
    struct mesh_layout layout = {.cut = MESH_WHOLE, .phases = 1, .pieces = 1};
    if (peal_mesh_is_empty(e))
        return true;
    if (!unchain(m, e, &c))
        return peal_mesh_refuse(m, e->pos,
                                e->kind == PEAL_EXPR_AT ||
                                        (e->kind == PEAL_EXPR_SLICE && e->a->kind == PEAL_EXPR_AT)
                                    ? "memory of a rank that is computed"
                                    : strange);
    if (!shape_of(m, c.buffer).good)
        return peal_mesh_refuse(
            m, c.buffer->pos,
            "a buffer whose length is not a size per rank or per number of ranks");
    if (c.count > 0 && !read_first(m, &c, &layout))
        return peal_mesh_refuse(m, e->pos, strange);
    if (c.count > 1 && !read_second(m, &c, &layout))
        return peal_mesh_refuse(m, e->pos, strange);
    /* As long as its own rank's part: slots of another rank's buffer begin elsewhere. */
    if (c.remote && layout.cut == MESH_SLOTS && is_part_length(m, layout.of))
        return peal_mesh_refuse(m, e->pos, strange);
    struct mesh_layout *known = &m->layout[c.buffer->slot];
    if (layout.cut == MESH_WHOLE)
        return is_plain(m, c.buffer) || peal_mesh_refuse(m, e->pos, strange);
    if (known->cut == MESH_WHOLE)
        *known = layout;
    if (known->pieces == 1 && same_layout(known, &layout))
        known->pieces = layout.pieces;
    known->prefixes = known->prefixes || layout.prefixes;
    known->parts = known->parts || layout.parts;
    if (!same_layout(known, &layout) || (known->prefixes && known->parts))
        return peal_mesh_refuse(m, e->pos, "a buffer that is divided in two ways");
    return true;
}
