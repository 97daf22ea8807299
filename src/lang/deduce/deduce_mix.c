/* SPDX-License-Identifier: Apache-2.0 */
/* Operands that must fit together: element types, dimensions, lengths.
 *
 * Some operands have no shape or element type of their own: `recv from p` takes both, `fill(v, n)`
 * the element type, from the operands beside it or from the place it is stored to.
 */
#include "lang/deduce/deducer.h"

struct peal_elem peal_elem_widen(struct peal_elem elem)
{
    elem.wide = elem.wide || elem.generic || peal_dtype_is_narrow(elem.dtype);
    return elem;
}

const char *peal_elem_text(struct peal_elem elem)
{
    return elem.generic ? "T" : peal_dtype_name(elem.dtype);
}

/* Whether T mixes with a fixed type is decided when T is known. Floating-point types mix, others
 * must be equal. */
static bool elems_fit(struct peal_elem a, struct peal_elem b)
{
    if (a.generic || b.generic || a.dtype == b.dtype)
        return true;
    return peal_dtype_is_float(a.dtype) && peal_dtype_is_float(b.dtype);
}

struct peal_elem peal_elem_join(struct peal_elem a, struct peal_elem b)
{
    struct peal_elem out = a;
    if (!a.generic && (b.generic || peal_dtype_size(b.dtype) > peal_dtype_size(a.dtype)))
        out = b;
    out.wide = a.wide || b.wide;
    return out;
}

bool peal_deduce_fit(struct peal_deducer *d, const struct peal_expr *a, const struct peal_value *x,
                     const struct peal_expr *b, const struct peal_value *y, int dims)
{
    for (int i = 0; i < dims; i++) {
        const struct peal_poly difference = peal_poly_add(&x->d[i], &y->d[i], -1);
        static const char *const units[] = {"element", "row", "column"};
        const char *unit = units[dims == 1 ? 0 : i + 1];
        int64_t more;
        int64_t left;
        int64_t right;
        if (!peal_poly_is_int(&difference, &more) || more == 0)
            continue;
        struct peal_shown first = peal_show_expr(a);
        struct peal_shown second = peal_show_expr(b);
        if (peal_poly_is_int(&x->d[i], &left) && peal_poly_is_int(&y->d[i], &right))
            peal_deducer_error(
                d, b->pos, "shapes do not match: '%s' has %lld %s%s and '%s' has %lld", first.text,
                (long long)left, unit, peal_text_plural(left), second.text, (long long)right);
        else
            peal_deducer_error(d, b->pos, "shapes do not match: '%s' has %lld %s%s %s than '%s'",
                               first.text, llabs((long long)more), unit,
                               peal_text_plural(llabs((long long)more)),
                               more < 0 ? "fewer" : "more", second.text);
        return false;
    }
    return true;
}

/* recv and fill, and functions of nothing else. */
static bool is_open(const struct peal_expr *expr)
{
    if (expr->kind == PEAL_EXPR_RECV)
        return true;
    if (expr->kind == PEAL_EXPR_CALL) {
        if (expr->builtin == PEAL_BUILTIN_FILL)
            return true;
        if (expr->builtin == PEAL_BUILTIN_OWN && peal_op_facts(expr->own)->shape == PEAL_BY_MATRIX)
            return false;
        for (const struct peal_expr *arg = expr->a; arg; arg = arg->next) {
            if (peal_type_is_data(&arg->type) && !is_open(arg))
                return false;
        }
        return true;
    }
    if (expr->kind == PEAL_EXPR_UNARY || expr->kind == PEAL_EXPR_BINARY)
        return (!peal_type_is_data(&expr->a->type) || is_open(expr->a)) &&
               (!expr->b || !peal_type_is_data(&expr->b->type) || is_open(expr->b));
    return false;
}

/* 0.5 has no meaning among integers. */
static void check_real(struct peal_deducer *d, struct peal_mix *mix)
{
    if (!mix->first || !mix->real || mix->bad || mix->type.elem.generic ||
        peal_dtype_is_float(mix->type.elem.dtype) ||
        peal_dtype_kind(mix->type.elem.dtype) == PEAL_KIND_COMPLEX)
        return;
    peal_deducer_error(d, mix->real->pos, "'%s' is a floating-point number, and '%s' is of %s",
                       peal_show_expr(mix->real).text, peal_show_expr(mix->first).text,
                       peal_elem_text(mix->type.elem));
    mix->bad = true;
}

void peal_mix_add(struct peal_deducer *d, struct peal_mix *mix, struct peal_expr *expr,
                  const struct peal_value *value)
{
    const struct peal_type *type = &expr->type;
    if (type->kind == PEAL_TYPE_NONE) {
        mix->bad = true;
        return;
    }
    if (type->kind == PEAL_TYPE_FLOAT)
        mix->real = expr;
    if (type->kind == PEAL_TYPE_INT || type->kind == PEAL_TYPE_FLOAT) {
        check_real(d, mix);
        return; /* a number goes with every shape */
    }
    if (!peal_type_is_data(type)) {
        peal_deducer_error(d, expr->pos, "'%s' is %s, not data", peal_show_expr(expr).text,
                           peal_type_text(type));
        mix->bad = true;
        return;
    }
    mix->any_data = true;
    bool open = is_open(expr);
    if (!mix->first && (type->dims == 0 || open)) {
        /* keeps the type until a better one comes */
        bool elem_known = mix->type.kind == PEAL_TYPE_TILE;
        if (!elem_known || mix->type.dims == 0) {
            mix->type = *type;
            mix->shape = *value;
        }
        mix->type.kind = PEAL_TYPE_TILE;
        mix->type.is_window = false;
        return;
    }
    if (mix->first) {
        if (type->dims && type->dims != mix->type.dims) {
            static const char *const numbers[] = {"no", "one", "two"};
            peal_deducer_error(
                d, expr->pos, "shapes do not match: '%s' has %s dimension%s and '%s' has %s",
                peal_show_expr(mix->first).text, numbers[mix->type.dims],
                peal_text_plural(mix->type.dims), peal_show_expr(expr).text, numbers[type->dims]);
            mix->bad = true;
            return;
        }
        if (type->dims && !peal_deduce_fit(d, mix->first, &mix->shape, expr, value, type->dims))
            mix->bad = true;
        if (open)
            return;
        if (!elems_fit(mix->type.elem, type->elem)) {
            peal_deducer_error(d, expr->pos,
                               "element types do not match: '%s' is of %s and '%s' of %s",
                               peal_show_expr(mix->first).text, peal_elem_text(mix->type.elem),
                               peal_show_expr(expr).text, peal_elem_text(type->elem));
            mix->bad = true;
        }
        mix->type.elem = peal_elem_join(mix->type.elem, type->elem);
        return;
    }
    mix->first = expr;
    mix->type = *type;
    mix->type.kind = PEAL_TYPE_TILE;
    mix->type.is_window = false;
    mix->shape = *value;
    check_real(d, mix);
}

void peal_mix_adopt(struct peal_expr *expr, const struct peal_mix *mix)
{
    if (!peal_type_is_data(&expr->type) || mix->type.dims == 0 || !is_open(expr))
        return;
    bool computes = expr->type.elem.wide;
    expr->type.dims = mix->type.dims;
    expr->type.elem = mix->type.elem;
    expr->type.elem.wide = computes;
    if (expr->kind == PEAL_EXPR_CALL) {
        for (struct peal_expr *arg = expr->a; arg; arg = arg->next)
            peal_mix_adopt(arg, mix);
    } else if (expr->kind == PEAL_EXPR_UNARY || expr->kind == PEAL_EXPR_BINARY) {
        peal_mix_adopt(expr->a, mix);
        if (expr->b)
            peal_mix_adopt(expr->b, mix);
    }
}
