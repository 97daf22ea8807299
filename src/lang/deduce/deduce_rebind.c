/* SPDX-License-Identifier: Apache-2.0 */
/* A collective whose result is assigned, rewritten as the call it means, before names are known.
 *
 *   g = allreduce(g, s, sum)      allreduce(g, s, sum)         the result replaces what it was made of
 *   y = allreduce(x, sum, ring)   allreduce(x, y, sum, ring)   the kernel has an input and an output
 *   w = allreduce(x, sum)         w = x                        w is a window: the kernel works there
 *                                 allreduce(w, sum)
 *   w = allgather(x)              w[rank of nranks] = x        likewise: its input is a part
 *                                 allgather(w)
 *   y = allreduce(x, s, sum)      allreduce(x, y, s, sum, staged)     y is private
 *   allgather(y)                  allgather(y[rank of nranks], y, staged)
 */
#include "lang/deduce/deducer.h"

#include <string.h>

static bool same_expr(const struct peal_expr *x, const struct peal_expr *y)
{
    if (!x || !y)
        return x == y;
    if (x->kind == PEAL_EXPR_RECV || x->kind != y->kind || x->value != y->value ||
        x->name != y->name || x->op != y->op || x->nslices != y->nslices)
        return false;
    for (int i = 0; i < x->nslices; i++) {
        if (x->slices[i].kind != y->slices[i].kind || !same_expr(x->slices[i].a, y->slices[i].a) ||
            !same_expr(x->slices[i].b, y->slices[i].b))
            return false;
    }
    /* Arguments of a function are a list; operands of everything else have no next. */
    const struct peal_expr *a = x->a;
    const struct peal_expr *b = y->a;
    for (; a && b; a = a->next, b = b->next) {
        if (!same_expr(a, b))
            return false;
    }
    return a == b && same_expr(x->b, y->b);
}

static bool is_function(const struct peal_deducer *d, const struct peal_kernel *kernel,
                        const char *name)
{
    enum peal_fn fn;
    enum peal_reduction reduce;
    for (int i = 0; i < kernel->nparams; i++) {
        if (strcmp(kernel->params[i]->name, name) == 0)
            return true;
    }
    return peal_function_is_known(name) || peal_fn_find(name, strlen(name), &fn) ||
           peal_deducer_reduction(d, name, &reduce);
}

static int buffers_of(const struct peal_kernel *kernel)
{
    int count = 0;
    for (int i = 0; i < kernel->nparams; i++)
        count += kernel->params[i]->kind == PEAL_SYMBOL_BUFFER;
    return count;
}

static struct peal_expr *new_name(struct peal_deducer *d, const char *name, struct peal_pos pos)
{
    struct peal_expr *expr = peal_expr_new(d->module, PEAL_EXPR_NAME, pos);
    if (expr)
        expr->name = peal_intern_text(&d->module->names, name, strlen(name));
    if (!expr || !expr->name || !peal_expr_measure(expr)) {
        d->no_memory = true;
        return NULL;
    }
    return expr;
}

/* place[rank of nranks] */
static struct peal_expr *own_part(struct peal_deducer *d, struct peal_expr *place)
{
    struct peal_expr *part = peal_expr_new(d->module, PEAL_EXPR_SLICE, place->pos);
    if (!part) {
        d->no_memory = true;
        return NULL;
    }
    part->a = place;
    part->nslices = 1;
    part->slices[0] = (struct peal_slice){PEAL_SLICE_PART, new_name(d, "rank", place->pos),
                                          new_name(d, "nranks", place->pos)};
    if (d->no_memory || peal_expr_measure(part))
        return part;
    peal_deducer_error(d, place->pos, "the expression is nested too deep");
    return NULL;
}

/* The parameter or scratch that a place is, or is a part of; NULL: something else. */
static const struct peal_symbol *find_buffer(const struct peal_kernel *kernel,
                                             const struct peal_expr *place)
{
    const struct peal_symbol *found = NULL;
    while (place->kind == PEAL_EXPR_SLICE)
        place = place->a;
    if (place->kind != PEAL_EXPR_NAME)
        return NULL;
    for (int i = 0; i < kernel->nparams && !found; i++) {
        if (strcmp(kernel->params[i]->name, place->name) == 0)
            found = kernel->params[i];
    }
    for (const struct peal_stmt *s = kernel->body; s && !found; s = s->next) {
        if (s->kind == PEAL_STMT_DECL && strcmp(s->symbol->name, place->name) == 0)
            found = s->symbol;
    }
    if (!found || found->kind != PEAL_SYMBOL_BUFFER)
        return NULL;
    return found;
}

/* The default works on a window, in place. Not there: the data goes through one of the callee's. */
static bool is_staged(const struct peal_kernel *kernel, const struct peal_stmt *call,
                      const struct peal_kernel *callee, const struct peal_expr *place,
                      bool leaves_part)
{
    const struct peal_symbol *buffer = find_buffer(kernel, place);
    return peal_deduce_is_default(call, callee) && buffers_of(callee) == 1 &&
           callee->params[0]->is_window && buffer && (leaves_part || !buffer->is_window);
}

/* call(x, rest) becomes call(x, y, rest, staged). */
static void stage(struct peal_deducer *d, struct peal_stmt *call, struct peal_expr *y)
{
    struct peal_expr *algorithm = new_name(d, "staged", call->pos);
    struct peal_expr *x = call->args;
    if (!algorithm)
        return;
    if (y) {
        y->next = x->next;
        x->next = y;
    }
    while (x->next)
        x = x->next;
    x->next = algorithm;
}

/* The same where x and y are one buffer, or one is the other's own part. */
static void stage_in_place(struct peal_deducer *d, struct peal_stmt *call,
                           enum peal_in_place shared)
{
    struct peal_expr *x = call->args, *rest = x->next;
    struct peal_expr *y = peal_expr_copy(d->module, x);
    if (!y) {
        d->no_memory = true;
        return;
    }
    x->next = NULL;
    if (shared == PEAL_IN_PLACE_IN_IS_PART)
        x = own_part(d, x);
    if (shared == PEAL_IN_PLACE_OUT_IS_PART)
        y = own_part(d, y);
    if (!x || !y)
        return;
    call->args = x;
    x->next = rest;
    stage(d, call, y);
}

/* The kernel works in place, in another place than its input: first a copy, then the call. */
static void copy_first(struct peal_deducer *d, struct peal_stmt *stmt, struct peal_expr *x,
                       enum peal_in_place shared)
{
    struct peal_stmt *call = peal_stmt_new(d->module, PEAL_STMT_CALL, stmt->pos);
    struct peal_expr *y = peal_expr_copy(d->module, stmt->a);
    if (!call || !y) {
        d->no_memory = true;
        return;
    }
    call->name = stmt->b->name;
    call->args = y;
    y->next = x->next;
    x->next = NULL;
    call->next = stmt->next;
    stmt->next = call;
    stmt->b = x;
    if (shared == PEAL_IN_PLACE_IN_IS_PART)
        stmt->a = own_part(d, stmt->a);
}

static enum peal_in_place shared_by(const struct peal_kernel *callee)
{
    enum peal_contract contract = PEAL_CONTRACT_NONE;
    if (callee->implements)
        peal_contract_find(callee->implements, strlen(callee->implements), &contract);
    return peal_contract_info(contract)->in_place;
}

static void rebind(struct peal_deducer *d, const struct peal_kernel *kernel, struct peal_stmt *stmt)
{
    struct peal_expr *value = stmt->b;
    if (value->kind != PEAL_EXPR_CALL || !value->a || is_function(d, kernel, value->name))
        return;
    struct peal_stmt call = *stmt;
    call.kind = PEAL_STMT_CALL;
    call.name = value->name;
    call.args = value->a;
    const struct peal_kernel *callee = peal_deduce_callee(d, &call);
    if (!callee)
        return; /* an unknown function */
    struct peal_expr *x = value->a;
    bool in_place = same_expr(stmt->a, x);
    bool has_output = buffers_of(callee) > 1;
    enum peal_in_place shared = shared_by(callee);
    bool leaves_part = !in_place && shared == PEAL_IN_PLACE_OUT_IS_PART;
    bool staged = is_staged(kernel, &call, callee, stmt->a, leaves_part);
    if (!in_place && !has_output && !staged) {
        copy_first(d, stmt, x, shared);
        return;
    }
    struct peal_expr *y = stmt->a;
    stmt->kind = PEAL_STMT_CALL;
    stmt->name = value->name;
    stmt->args = x;
    stmt->a = stmt->b = NULL;
    if (staged && in_place) {
        stage_in_place(d, stmt, shared);
    } else if (staged) {
        stage(d, stmt, y);
    } else if (!in_place) {
        y->next = x->next;
        x->next = y;
    }
}

/* allreduce(x, sum), allreduce(x, y, sum) */
static void complete(struct peal_deducer *d, const struct peal_kernel *kernel,
                     struct peal_stmt *stmt)
{
    const struct peal_kernel *callee = peal_deduce_callee(d, stmt);
    if (!callee || !stmt->args || !is_staged(kernel, stmt, callee, stmt->args, false))
        return;
    if (stmt->args->next && find_buffer(kernel, stmt->args->next))
        stage(d, stmt, NULL);
    else
        stage_in_place(d, stmt, shared_by(callee));
}

void peal_deduce_rebinds(struct peal_deducer *d, const struct peal_kernel *kernel,
                         struct peal_stmt *stmt)
{
    for (; stmt; stmt = stmt->next) {
        if (!peal_deducer_goes_on(d))
            break;
        peal_deduce_rebinds(d, kernel, stmt->body);
        peal_deduce_rebinds(d, kernel, stmt->other);
        if (stmt->kind == PEAL_STMT_ASSIGN)
            rebind(d, kernel, stmt);
        else if (stmt->kind == PEAL_STMT_CALL)
            complete(d, kernel, stmt);
    }
}
