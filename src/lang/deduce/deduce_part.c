/* SPDX-License-Identifier: Apache-2.0 */
/* Parts: x[...] and x@p, their shapes, and indices that cannot be right. */
#include "lang/deduce/deducer.h"

#include <stdio.h>

struct peal_symbol *peal_place_symbol(const struct peal_expr *expr)
{
    while (expr->kind == PEAL_EXPR_SLICE || expr->kind == PEAL_EXPR_AT)
        expr = expr->a;
    if (expr->kind != PEAL_EXPR_NAME)
        return NULL;
    return expr->symbol;
}

bool peal_place_is_remote(const struct peal_expr *expr)
{
    while (expr->kind == PEAL_EXPR_SLICE) /* a place has at most one '@' */
        expr = expr->a;
    return expr->kind == PEAL_EXPR_AT;
}

/* Reports that `place` is outside, if `room` (what is left beyond it) is known to be negative. */
static bool check_room(struct peal_deducer *d, const struct peal_expr *place,
                       const struct peal_poly *room, const struct peal_expr *base)
{
    int64_t left;
    if (!peal_poly_is_int(room, &left) || left >= 0)
        return true;
    const struct peal_symbol *symbol = peal_place_symbol(base);
    peal_deducer_error(d, place->pos, "'%s' is out of range by %lld", peal_show_expr(place).text,
                       (long long)-left);
    if (symbol)
        peal_deducer_note(d, symbol->pos, "'%s' is declared here", symbol->name);
    return false;
}

static bool check_not_negative(struct peal_deducer *d, const struct peal_expr *expr,
                               const struct peal_poly *value, const char *role)
{
    int64_t number;
    if (!peal_poly_is_int(value, &number) || number >= 0)
        return true;
    peal_deducer_error(d, expr->pos, "%s of %lld is out of range", role, (long long)number);
    return false;
}

/* c of k: reports numbers that are known to be wrong, and finds the length of the part. */
static struct peal_poly part_length(struct peal_deducer *d, const struct peal_slice *slice,
                                    const struct peal_poly *c, const struct peal_poly *length,
                                    const struct peal_poly *k)
{
    int64_t index;
    int64_t parts;
    bool has_parts = peal_poly_is_int(k, &parts);
    if (has_parts && parts < 1) {
        peal_deducer_error(d, slice->b->pos, "%lld parts: there must be at least one",
                           (long long)parts);
        return peal_poly_unknown();
    }
    const struct peal_poly room = peal_poly_add(k, c, -1);
    int64_t beyond;
    if (peal_poly_is_int(&room, &beyond) && beyond < 1) {
        peal_deducer_error(d, slice->a->pos, "part '%s of %s' is out of range: parts count from 0",
                           peal_show_expr(slice->a).text, peal_show_expr(slice->b).text);
        return peal_poly_unknown();
    }
    int64_t n;
    if (has_parts && parts == 1)
        return *length;
    enum { SMALL = 1 << 30 }; /* so that the products fit */
    if (has_parts && parts < SMALL && peal_poly_is_int(c, &index) && peal_poly_is_int(length, &n) &&
        n >= 0 && n < SMALL)
        return peal_poly_int((index + 1) * n / parts - index * n / parts);
    const struct peal_poly args[] = {*c, *length, *k};
    return peal_deduce_opaque(d, "part", args, 3);
}

/* One slice of a dimension of `length`. out[0]: the length of the part, out[1]: its index or
 * start. */
static bool deduce_slice(struct peal_deducer *d, const struct peal_expr *expr, int which,
                         const struct peal_poly *length, struct peal_poly out[2])
{
    const struct peal_slice *slice = &expr->slices[which];
    struct peal_poly a;
    struct peal_poly b = peal_poly_int(1);
    out[0] = *length;
    if (slice->kind == PEAL_SLICE_ALL)
        return true;
    bool outer = d->launch_ok;
    d->launch_ok = true; /* an address: the plan keeps it per phase */
    bool ok = peal_deduce_int(d, slice->a, "an index", &a);
    d->launch_ok = false;
    if (slice->b)
        ok &= peal_deduce_int(
            d, slice->b, slice->kind == PEAL_SLICE_PART ? "the number of parts" : "a length", &b);
    d->launch_ok = outer;
    if (!ok || !check_not_negative(d, slice->a, &a, "an index"))
        return false;
    out[1] = a;
    if (slice->kind == PEAL_SLICE_PART) {
        out[0] = part_length(d, slice, &a, length, &b);
        return true;
    }
    out[0] = b;
    if (slice->b && !check_not_negative(d, slice->b, &b, "a length"))
        return false;
    struct peal_poly room = peal_poly_add(length, &a, -1);
    room = peal_poly_add(&room, &b, -1);
    return check_room(d, expr, &room, expr->a);
}

/* x[...] of a buffer or tile. An index of a matrix selects one row, which has one dimension. */
static void slice_data(struct peal_deducer *d, struct peal_expr *expr,
                       const struct peal_value *base, struct peal_value *out)
{
    const struct peal_type *type = &expr->a->type;
    if (expr->nslices > type->dims) {
        peal_deducer_error(d, expr->pos, "'%s' has one dimension, and two slices are given",
                           peal_show_expr(expr->a).text);
        return;
    }
    struct peal_poly lengths[2] = {base->d[0], base->d[1]};
    for (int i = 0; i < expr->nslices; i++) {
        struct peal_poly part[2];
        if (!deduce_slice(d, expr, i, &base->d[i], part))
            return;
        lengths[i] = part[0];
    }
    expr->type = *type;
    out->d[0] = lengths[0];
    out->d[1] = lengths[1];
    if (type->dims == 2 && expr->slices[0].kind == PEAL_SLICE_INDEX) {
        expr->type.dims = 1;
        out->d[0] = lengths[1];
        out->d[1] = peal_poly_unknown();
    }
}

/* counts[i], ready[i] */
static void index_array(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    const struct peal_type *type = &expr->a->type;
    const struct peal_symbol *symbol = peal_place_symbol(expr->a);
    if (type->kind == PEAL_TYPE_SIGNAL && type->dims == 0) {
        peal_deducer_error(d, expr->pos, "'%s' is one cell, not an array of cells",
                           peal_show_expr(expr->a).text);
        if (symbol)
            peal_deducer_note(d, symbol->pos, "it is declared here");
        return;
    }
    if (expr->nslices != 1 || expr->slices[0].kind != PEAL_SLICE_INDEX) {
        peal_deducer_error(d, expr->pos, "'%s' takes one index", peal_show_expr(expr->a).text);
        return;
    }
    const struct peal_poly *kept = NULL;
    if (symbol)
        kept = peal_deducer_fact(d, symbol)->shape[0];
    struct peal_poly length = peal_poly_unknown();
    if (kept)
        length = *kept;
    struct peal_poly part[2];
    if (!deduce_slice(d, expr, 0, &length, part))
        return;
    expr->type.kind = type->kind == PEAL_TYPE_INTS ? PEAL_TYPE_INT : PEAL_TYPE_SIGNAL;
    if (type->kind != PEAL_TYPE_INTS || !symbol)
        return;
    char text[24];
    snprintf(text, sizeof text, "s%u[]", symbol->slot);
    out->d[0] = peal_deduce_opaque(d, text, &part[1], 1);
}

static void deduce_slices(struct peal_deducer *d, struct peal_expr *expr,
                          const struct peal_value *base, struct peal_value *out)
{
    const struct peal_type *type = &expr->a->type;
    if (type->kind == PEAL_TYPE_NONE)
        return;
    if (type->kind == PEAL_TYPE_INTS || type->kind == PEAL_TYPE_SIGNAL)
        index_array(d, expr, out);
    else if (peal_type_is_data(type) && peal_place_symbol(expr->a))
        slice_data(d, expr, base, out);
    else if (peal_type_is_data(type))
        peal_deducer_error(d, expr->pos, "only a buffer or a tile with a name can be sliced");
    else
        peal_deducer_error(d, expr->pos, "'%s' is %s and has no parts",
                           peal_show_expr(expr->a).text, peal_type_text(type));
}

static void private_buffer(struct peal_deducer *d, const struct peal_expr *expr,
                           const struct peal_symbol *symbol)
{
    peal_deducer_error(d, expr->pos, "'%s' is private: peers can only address windows",
                       symbol->name);
    if (symbol->kind == PEAL_SYMBOL_TILE)
        peal_deducer_note(d, symbol->pos, "it is a tile, a value of this lane");
    else if (symbol->place == PEAL_PLACE_PARAM)
        peal_deducer_note(d, symbol->pos, "it is declared here; a window is '%s: window ...'",
                          symbol->name);
    else
        peal_deducer_note(d, symbol->pos, "it is declared here; a window is 'window %s: ...'",
                          symbol->name);
}

static void deduce_at(struct peal_deducer *d, struct peal_expr *expr, const struct peal_value *base,
                      struct peal_value *out)
{
    const struct peal_type *type = &expr->a->type;
    struct peal_poly peer;
    int64_t rank;
    bool outer = d->launch_ok;
    d->launch_ok = false;
    bool ok = peal_deduce_int(d, expr->b, "a peer", &peer);
    d->launch_ok = outer;
    if (type->kind == PEAL_TYPE_NONE || !ok)
        return;
    const struct peal_symbol *symbol = peal_place_symbol(expr->a);
    if (!symbol || (!peal_type_is_data(type) && type->kind != PEAL_TYPE_SIGNAL))
        peal_deducer_error(d, expr->pos, "'%s' is %s: only windows and signals have a peer's copy",
                           peal_show_expr(expr->a).text, peal_type_text(type));
    else if (peal_place_is_remote(expr->a))
        peal_deducer_error(d, expr->pos, "'%s' names a peer already", peal_show_expr(expr->a).text);
    else if (peal_type_is_data(type) && !type->is_window && !d->clause)
        private_buffer(d, expr, symbol);
    else if (peal_poly_is_int(&peer, &rank) && rank < 0)
        peal_deducer_error(d, expr->b->pos, "rank %lld does not exist", (long long)rank);
    else {
        expr->type = *type;
        *out = *base;
    }
}

void peal_deduce_part(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    struct peal_value base;
    peal_deduce_expr(d, expr->a, &base);
    if (expr->kind == PEAL_EXPR_AT)
        deduce_at(d, expr, &base, out);
    else
        deduce_slices(d, expr, &base, out);
}

struct variation {
    struct peal_deducer *d;
    bool found;
};

static void visit_name(struct peal_expr *expr, void *context)
{
    struct variation *variation = context;
    if (expr->kind == PEAL_EXPR_NAME && expr->symbol)
        variation->found |=
            expr->symbol->is_local || peal_deducer_fact(variation->d, expr->symbol)->varies;
    if (expr->kind == PEAL_EXPR_CALL)
        variation->found |= expr->builtin == PEAL_BUILTIN_HAS || expr->builtin == PEAL_BUILTIN_PEER;
}

bool peal_deduce_varies(struct peal_deducer *d, struct peal_expr *expr)
{
    struct variation variation = {d, false};
    peal_expr_walk(expr, visit_name, &variation);
    return variation.found && !d->no_memory;
}
