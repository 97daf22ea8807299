/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that are written as functions (work OWN in base/tables/ops.def).
 *
 * matmul(a, b): two matrices whose inner lengths agree. Unlike the operands of elementwise
 * functions, they have shapes of their own, so neither can take its shape from the other.
 *
 * Elementwise ones: all operands have one shape, and all but masks one element type. */
#include "lang/deduce/deducer.h"

#include <assert.h>

/* One operand: a matrix with a shape of its own. Anything else is reported. */
static bool deduce_matrix(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    peal_deduce_expr(d, expr, out);
    if (peal_expr_is_empty(expr))
        return false;
    struct peal_shown text = peal_show_expr(expr);
    if (!peal_type_is_data(&expr->type)) {
        peal_deducer_error(d, expr->pos, "matmul takes two matrices, and '%s' is %s", text.text,
                           peal_type_text(&expr->type));
        return false;
    }
    if (expr->type.dims == 0) {
        peal_deducer_error(d, expr->pos, "the shape of '%s' is not known in a matmul", text.text);
        peal_deducer_note(d, (struct peal_pos){0},
                          "receive it into a tile first: let t: T[m, k] = recv ...");
        return false;
    }
    if (expr->type.dims != 2) {
        peal_deducer_error(d, expr->pos, "matmul takes two matrices, and '%s' has one dimension",
                           text.text);
        return false;
    }
    return true;
}

/* False after a report: columns of a and rows of b that are known to differ. */
static bool inner_fits(struct peal_deducer *d, const struct peal_expr *expr,
                       const struct peal_value *x, const struct peal_value *y)
{
    const struct peal_poly difference = peal_poly_add(&x->d[1], &y->d[0], -1);
    struct peal_shown a = peal_show_expr(expr->a), b = peal_show_expr(expr->a->next);
    int64_t more, columns, rows;
    if (!peal_poly_is_int(&difference, &more) || more == 0)
        return true;
    if (peal_poly_is_int(&x->d[1], &columns) && peal_poly_is_int(&y->d[0], &rows))
        peal_deducer_error(d, expr->a->next->pos,
                           "shapes do not match: '%s' has %lld columns and '%s' %lld rows", a.text,
                           (long long)columns, b.text, (long long)rows);
    else
        peal_deducer_error(d, expr->a->next->pos,
                           "shapes do not match: '%s' has %lld %s columns than '%s' has rows",
                           a.text, llabs((long long)more), more < 0 ? "fewer" : "more", b.text);
    return false;
}

static bool types_fit(struct peal_deducer *d, const struct peal_expr *expr)
{
    const struct peal_expr *operands[] = {expr->a, expr->a->next};
    for (int i = 0; i < 2; i++) {
        struct peal_elem elem = operands[i]->type.elem;
        if (elem.generic || peal_dtype_is_float(elem.dtype))
            continue;
        peal_deducer_error(d, operands[i]->pos, "function 'matmul' does not go with elements of %s",
                           peal_elem_text(elem));
        peal_deducer_note(d, (struct peal_pos){0}, "it is for floating point only");
        return false;
    }
    return true;
}

static void deduce_matmul(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    struct peal_expr *a = expr->a, *b = a->next;
    struct peal_value x, y;
    bool ok = deduce_matrix(d, a, &x);
    ok &= deduce_matrix(d, b, &y);
    if (!ok || !types_fit(d, expr) || !inner_fits(d, expr, &x, &y))
        return;
    expr->type = (struct peal_type){
        .kind = PEAL_TYPE_TILE,
        .elem = peal_elem_widen(peal_elem_join(a->type.elem, b->type.elem)),
        .dims = 2,
    };
    out->d[0] = x.d[0];
    out->d[1] = y.d[1];
}

/* A mask: data of the shape of the values, with elements that are zero or not. */
static bool mask_fits(struct peal_deducer *d, struct peal_expr *mask, const struct peal_mix *own,
                      const struct peal_mix *values)
{
    struct peal_elem elem = mask->type.elem;
    if (!elem.generic && peal_dtype_is_record(elem.dtype)) {
        peal_deducer_error(d, mask->pos, "'%s' is of %s, and a mask is of numbers or bool",
                           peal_show_expr(mask).text, peal_elem_text(elem));
        return false;
    }
    if (!own->first || !values->first)
        return true;
    if (own->type.dims != values->type.dims) {
        peal_deducer_error(d, mask->pos, "shapes do not match: '%s' has %d dimensions and '%s' %d",
                           peal_show_expr(mask).text, own->type.dims,
                           peal_show_expr(values->first).text, values->type.dims);
        return false;
    }
    return peal_deduce_fit(d, mask, &own->shape, values->first, &values->shape, own->type.dims);
}

enum { MAX_MASKS = 1 };

static void deduce_each(struct peal_deducer *d, struct peal_expr *expr, struct peal_elem elem,
                        struct peal_value *out)
{
    struct peal_mix values = {0}, masks[MAX_MASKS] = {{0}};
    const struct peal_mix *shape = &values;
    int nmasks = peal_op_facts(expr->own)->masks, i = 0;
    assert(nmasks <= MAX_MASKS);
    bool ok = true;
    for (struct peal_expr *arg = expr->a; arg; arg = arg->next, i++) {
        struct peal_value value;
        struct peal_mix *mix = i < nmasks ? &masks[i] : &values;
        peal_deduce_expr(d, arg, &value);
        peal_mix_add(d, mix, arg, &value);
        ok = ok && !mix->bad;
    }
    i = 0;
    for (struct peal_expr *arg = expr->a; ok && i < nmasks; arg = arg->next, i++) {
        ok = mask_fits(d, arg, &masks[i], &values);
        if (!shape->first && masks[i].first)
            shape = &masks[i];
    }
    if (!ok)
        return;
    expr->type = shape->type;
    expr->type.elem = values.any_data ? values.type.elem : elem;
    *out = shape->shape;
    struct peal_mix whole = *shape;
    whole.type = expr->type;
    for (struct peal_expr *arg = expr->a; arg; arg = arg->next)
        peal_mix_adopt(arg, &whole);
}

void peal_deduce_own(struct peal_deducer *d, struct peal_expr *expr, struct peal_elem elem,
                     struct peal_value *out)
{
    switch ((enum peal_op_shape)peal_op_facts(expr->own)->shape) {
    case PEAL_BY_MATRIX:
        deduce_matmul(d, expr, out);
        return;
    case PEAL_BY_EACH:
        deduce_each(d, expr, elem, out);
        return;
    case PEAL_BY_NONE:
        break;
    }
    assert(!"an op that is written as a function has a shape");
}
