/* SPDX-License-Identifier: Apache-2.0 */
/* Cells and parts of buffers on a rank and on its image under another root. See root_text.h. */
#include "verify/symmetry/root_text.h"

/* False: its cells or elements do not all follow one formula. */
static bool follow(struct root_text *t, const struct peal_symbol *symbol, struct formula formula)
{
    struct formula *f = &t->formulas[symbol->slot];
    if (formula.kind == FORMULA_UNSET)
        return true;
    if (f->kind == FORMULA_UNSET) {
        *f = formula;
        t->changed = true;
        return true;
    }
    return f->kind == formula.kind && (f->kind == FORMULA_STAYS || f->unit == formula.unit);
}

static bool is_known(struct number n)
{
    return n.kind == NUMBER_SAME && n.known;
}

static bool is_rank(struct root_text *t, const struct peal_expr *e)
{
    return e->kind != PEAL_EXPR_PORT && peal_root_number(t, e).kind == NUMBER_RANK;
}

/* --- cells ----------------------------------------------------------------------------------- */

bool peal_root_cell(struct root_text *t, const struct peal_expr *e)
{
    if (e->kind == PEAL_EXPR_AT)
        return is_rank(t, e->b) && peal_root_cell(t, e->a);
    if (e->kind == PEAL_EXPR_NAME)
        return follow(t, e->symbol, (struct formula){FORMULA_STAYS, 0});
    if (e->kind != PEAL_EXPR_SLICE || e->nslices != 1 || e->slices[0].kind != PEAL_SLICE_INDEX ||
        e->a->kind != PEAL_EXPR_NAME)
        return false;
    const struct peal_symbol *signal = e->a->symbol;
    struct number index = peal_root_number(t, e->slices[0].a);
    struct number cells = peal_root_number_or_one(t, signal->shape[0]);
    if (index.kind == NUMBER_SAME)
        return follow(t, signal, (struct formula){FORMULA_STAYS, 0});
    bool moves = index.kind == NUMBER_RANK || index.kind == NUMBER_ROW;
    return moves && is_known(cells) && cells.value % t->nranks == 0 &&
           follow(t, signal, (struct formula){FORMULA_MOVES, 1});
}

/* --- parts of buffers ------------------------------------------------------------------------ */

/* A part: `offset` and `len` count elements. */
struct place {
    const struct peal_symbol *symbol;
    struct formula formula; /* UNSET: it is the whole buffer, or one of its equal pieces */
    struct number offset, len;
    struct number total; /* elements of the buffer */
    struct number rows;  /* of what is left; only with has_rows */
    bool has_rows;
};

static struct number product(struct number a, struct number b)
{
    int64_t value;
    if (is_known(a) && is_known(b) && !__builtin_mul_overflow(a.value, b.value, &value))
        return peal_root_same(value);
    return (struct number){NUMBER_SAME, false, 0, 1};
}

static bool begin_place(struct root_text *t, const struct peal_symbol *s, struct place *out)
{
    struct number same = {NUMBER_SAME, false, 0, 1};
    *out = (struct place){
        .symbol = s, .offset = peal_root_same(0), .len = same, .total = same, .rows = same};
    if (s->kind == PEAL_SYMBOL_TILE)
        return true; /* its sizes are not known here */
    if (s->kind != PEAL_SYMBOL_BUFFER || !s->shape[0])
        return false;
    struct number first = peal_root_number(t, s->shape[0]);
    struct number second = peal_root_number_or_one(t, s->shape[1]);
    if (first.kind != NUMBER_SAME || second.kind != NUMBER_SAME)
        return false;
    out->total = product(first, second);
    out->has_rows = s->shape[1];
    out->rows = first;
    out->len = out->has_rows ? second : first;
    return true;
}

/* Part `index` of the whole, in parts of `unit` elements, moves. */
static bool move(const struct root_text *t, struct place *p, struct number index,
                 struct number unit)
{
    bool turns = index.kind == NUMBER_RANK || index.kind == NUMBER_ROW;
    bool whole = p->formula.kind == FORMULA_UNSET && p->offset.multiple == 0;
    int64_t group;
    if (!turns || !whole || !is_known(unit) || unit.value <= 0 || !is_known(p->total) ||
        __builtin_mul_overflow(unit.value, t->nranks, &group) || p->total.value % group != 0)
        return false;
    p->formula = (struct formula){FORMULA_MOVES, unit.value};
    p->len = unit;
    return true;
}

/* An access to a part that moves must stay inside it: what follows would be the next part. */
static bool fits(const struct place *p, struct number from, struct number len)
{
    return p->formula.kind != FORMULA_MOVES ||
           (is_known(from) && is_known(len) && is_known(p->len) && from.value >= 0 &&
            len.value >= 0 && len.value <= p->len.value && from.value <= p->len.value - len.value);
}

/* r * unit, in either order: its index and unit */
static bool is_scaled(struct root_text *t, const struct peal_expr *e, struct number *index,
                      struct number *unit)
{
    *index = peal_root_number(t, e);
    *unit = peal_root_same(1);
    if (index->kind == NUMBER_RANK || index->kind == NUMBER_ROW)
        return true;
    if (e->kind != PEAL_EXPR_BINARY || e->op != PEAL_INT_MUL)
        return false;
    *index = peal_root_number(t, e->a);
    *unit = peal_root_number(t, e->b);
    if (index->kind == NUMBER_SAME) {
        struct number first = *index;
        *index = *unit;
        *unit = first;
    }
    return unit->kind == NUMBER_SAME && index->kind != NUMBER_SAME;
}

/* One of equal pieces: parts may move within it. */
static bool is_piece(const struct place *p, struct number from, struct number len)
{
    return p->offset.multiple == 0 && is_known(len) && len.value > 0 &&
           from.multiple % len.value == 0 && is_known(p->total) && p->total.value % len.value == 0;
}

static bool cut_range(struct root_text *t, const struct peal_slice *s, struct place *p)
{
    struct number from = peal_root_number(t, s->a), len = peal_root_same(1), index, unit;
    if (s->kind == PEAL_SLICE_RANGE)
        len = peal_root_number(t, s->b);
    if (len.kind != NUMBER_SAME)
        return false;
    if (from.kind == NUMBER_SAME) {
        if (!fits(p, from, len))
            return false;
        if (p->formula.kind == FORMULA_UNSET && !is_piece(p, from, len))
            p->formula.kind = FORMULA_STAYS;
        /* Offsets within offsets: only a number that divides all of them is kept. */
        p->offset = p->offset.multiple == 0 ? from : (struct number){NUMBER_SAME, false, 0, 1};
        p->len = len;
        return true;
    }
    if (!is_scaled(t, s->a, &index, &unit) || !move(t, p, index, unit) ||
        !fits(p, peal_root_same(0), len))
        return false;
    p->len = len;
    return true;
}

/* c of k: always inside. Only equal parts move. */
static bool cut_part(struct root_text *t, const struct peal_slice *s, struct place *p)
{
    struct number c = peal_root_number(t, s->a), k = peal_root_number(t, s->b);
    if (c.kind == NUMBER_SAME && k.kind == NUMBER_SAME) {
        bool equal = is_known(k) && k.value > 0 && is_known(p->len) && p->len.value % k.value == 0;
        if (p->formula.kind == FORMULA_UNSET)
            p->formula.kind = FORMULA_STAYS;
        p->len = equal ? peal_root_same(p->len.value / k.value)
                       : (struct number){NUMBER_SAME, false, 0, 1};
        p->offset = (struct number){NUMBER_SAME, false, 0, 1};
        return true;
    }
    bool per_rank = c.kind == NUMBER_RANK && is_known(k) && k.value == t->nranks;
    bool divides = is_known(p->len) && p->len.value > 0 && p->len.value % t->nranks == 0 &&
                   p->offset.multiple % p->len.value == 0 && is_known(p->total) &&
                   p->total.value % p->len.value == 0;
    if (!per_rank || !divides || p->formula.kind == FORMULA_MOVES)
        return false;
    p->formula = (struct formula){FORMULA_MOVES, p->len.value / t->nranks};
    p->len = peal_root_same(p->formula.unit);
    return true;
}

static bool cut_elements(struct root_text *t, const struct peal_slice *s, struct place *p)
{
    if (s->kind == PEAL_SLICE_ALL)
        return true;
    return s->kind == PEAL_SLICE_PART ? cut_part(t, s, p) : cut_range(t, s, p);
}

/* One row, selected by its number: the rest has elements. */
static bool cut_row(struct root_text *t, const struct peal_slice *s, struct place *p)
{
    struct number row = peal_root_number(t, s->a);
    if (s->kind != PEAL_SLICE_INDEX)
        return false;
    p->has_rows = false;
    if (row.kind == NUMBER_SAME) {
        p->formula.kind = FORMULA_STAYS;
        p->offset = (struct number){NUMBER_SAME, false, 0, 1};
        return true;
    }
    return move(t, p, row, p->len);
}

static bool find_place(struct root_text *t, const struct peal_expr *e, struct place *p)
{
    if (e->kind == PEAL_EXPR_NAME)
        return e->symbol && begin_place(t, e->symbol, p);
    if (e->kind != PEAL_EXPR_AT && e->kind != PEAL_EXPR_SLICE)
        return false;
    if (!find_place(t, e->a, p))
        return false;
    if (e->kind == PEAL_EXPR_AT)
        return is_rank(t, e->b);
    if (p->symbol->kind == PEAL_SYMBOL_TILE || e->nslices < 1)
        return false;
    if (!p->has_rows)
        return e->nslices == 1 && cut_elements(t, &e->slices[0], p);
    return cut_row(t, &e->slices[0], p) && (e->nslices == 1 || cut_elements(t, &e->slices[1], p));
}

/* --- ops ------------------------------------------------------------------------------------- */

/* An operand that is not selected by a rank's number. */
struct whole {
    const struct peal_symbol *symbol;
    struct number offset, len;
};

/* The operands of one statement correspond element by element. */
struct operands {
    bool has_part;          /* one of them is a part */
    struct formula formula; /* of those that are whole */
    struct whole wholes[16];
    uint32_t nwholes;
};

static bool add_operand(struct root_text *t, struct operands *o, const struct place *p)
{
    if (p->formula.kind != FORMULA_UNSET) {
        o->has_part = true;
        return follow(t, p->symbol, p->formula);
    }
    if (o->nwholes == sizeof o->wholes / sizeof *o->wholes)
        return false;
    if (o->formula.kind == FORMULA_UNSET)
        o->formula = t->formulas[p->symbol->slot];
    o->wholes[o->nwholes++] = (struct whole){p->symbol, p->offset, p->has_rows ? p->total : p->len};
    return true;
}

/* Does it consist of whole groups of parts? A tile is as long as the operands beside it. */
static bool has_groups(const struct root_text *t, const struct whole *w, int64_t unit)
{
    int64_t group;
    if (w->symbol->kind == PEAL_SYMBOL_TILE)
        return true;
    return !__builtin_mul_overflow(unit, t->nranks, &group) && is_known(w->len) &&
           w->len.value % group == 0 && w->offset.multiple % group == 0;
}

/* Elements of whole operands keep their places beside a part; otherwise all of them change places
 * alike. */
static bool settle(struct root_text *t, const struct operands *o)
{
    struct formula all = o->formula;
    if (o->has_part)
        all = (struct formula){FORMULA_STAYS, 0};
    for (uint32_t i = 0; i < o->nwholes; i++) {
        bool good = all.kind != FORMULA_MOVES || has_groups(t, &o->wholes[i], all.unit);
        if (!good || !follow(t, o->wholes[i].symbol, all))
            return false;
    }
    return true;
}

static bool read_operand(struct root_text *t, struct operands *o, const struct peal_expr *e);

static bool read_arguments(struct root_text *t, struct operands *o, const struct peal_expr *e)
{
    for (; e; e = e->next) {
        if (!read_operand(t, o, e))
            return false;
    }
    return true;
}

static bool read_call(struct root_text *t, struct operands *o, const struct peal_expr *e)
{
    struct number test;
    switch (e->builtin) {
    case PEAL_BUILTIN_SELECT:
        test = peal_root_number(t, e->a);
        if (test.kind != NUMBER_SAME)
            return false;
        if (test.known)
            return read_operand(t, o, test.value ? e->a->next : e->a->next->next);
        return read_arguments(t, o, e->a->next);
    case PEAL_BUILTIN_FINAL:
        return read_arguments(t, o, e->a->next);
    case PEAL_BUILTIN_REDUCE:
    case PEAL_BUILTIN_FN:
        return read_arguments(t, o, e->a);
    default:
        return false;
    }
}

static bool read_operand(struct root_text *t, struct operands *o, const struct peal_expr *e)
{
    struct place p;
    if (e->type.kind == PEAL_TYPE_INT)
        return peal_root_number(t, e).kind == NUMBER_SAME;
    switch (e->kind) {
    case PEAL_EXPR_FLOAT:
        return true;
    case PEAL_EXPR_NAME:
    case PEAL_EXPR_AT:
    case PEAL_EXPR_SLICE:
        return find_place(t, e, &p) && add_operand(t, o, &p);
    case PEAL_EXPR_UNARY:
        return read_operand(t, o, e->a);
    case PEAL_EXPR_BINARY:
        return read_operand(t, o, e->a) && read_operand(t, o, e->b);
    case PEAL_EXPR_CALL:
        return read_call(t, o, e);
    default:
        return false;
    }
}

bool peal_root_data(struct root_text *t, const struct peal_expr *dst,
                    const struct peal_symbol *tile, const struct peal_expr *value)
{
    struct operands o = {0};
    struct place p;
    if (tile) {
        if (!begin_place(t, tile, &p) || !add_operand(t, &o, &p))
            return false;
    } else if (!read_operand(t, &o, dst)) {
        return false;
    }
    return read_operand(t, &o, value) && settle(t, &o);
}
