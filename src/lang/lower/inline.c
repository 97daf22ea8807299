/* SPDX-License-Identifier: Apache-2.0 */
/* Pass "inline": a call is replaced by the body of the kernel it names.
 *
 *   before   allreduce(g, sum)
 *   after    scope allreduce_window {
 *                let n = len(g)
 *                signal arrived[nranks]          made here, because none was given
 *                for p in peers { notify arrived[rank]@p += 1 }
 *                ...
 *            }
 *
 * Needs: a deduced kernel; deduce has refused recursion. Keeps: types, unique names, dense slots.
 * Breaks: nothing. Buffers, signals and reduce operations are replaced by the arguments; integers
 * and dimensions become lets; everything else that the callee declares gets a name of its own. The
 * scope marks one instance of cells that start at logical 0.
 */
#include "lang/deduce/deduce.h"
#include "lang/lower/clone.h"
#include "lang/lower/lower.h"

#include <string.h>

/* Limits calls, including those within calls: a short text can ask for any number. */
enum { MAX_DEPTH = 64, MAX_CALLS = 4096 };

struct inliner {
    struct peal_module *module;
    struct peal_kernel *kernel;
    struct peal_diags *diags;
    struct peal_clone_names names;
    uint32_t calls; /* inlined so far */
    enum peal_status status;
};

static void run_out(struct inliner *in, struct peal_pos pos)
{
    if (in->status != PEAL_OK)
        return;
    in->status = PEAL_NO_MEMORY;
    peal_diag_error(in->diags, pos, "the lowered kernel is too large");
}

static struct peal_stmt *new_let(struct inliner *in, struct peal_clone *clone, const char *name,
                                 struct peal_pos pos, struct peal_expr *value)
{
    struct peal_symbol *symbol = peal_clone_add(clone, PEAL_SYMBOL_LET, name, pos);
    struct peal_stmt *let = peal_stmt_new(in->module, PEAL_STMT_LET, pos);
    if (!symbol || !let || !value) {
        clone->failed = true;
        return NULL;
    }
    symbol->type = (struct peal_type){.kind = PEAL_TYPE_INT};
    let->symbol = symbol;
    let->a = value;
    return let;
}

/* The extent of an argument along one dimension, as an expression over the caller's symbols. */
static struct peal_expr *extent_of(struct inliner *in, struct peal_clone *clone,
                                   const struct peal_expr *arg, int dim, int dims)
{
    if (dims == 2) { /* only a whole buffer defines rows and columns */
        const struct peal_symbol *s = NULL;
        if (arg->kind == PEAL_EXPR_NAME)
            s = arg->symbol;
        if (!s || !s->shape[1])
            return NULL;
        struct peal_clone same;
        if (!peal_clone_begin(&same, in->module, in->kernel, &in->names, in->kernel->nslots))
            return NULL;
        for (struct peal_symbol *k = in->kernel->symbols; k; k = k->next)
            same.map[k->slot].symbol = k;
        struct peal_expr *copy = peal_clone_expr(&same, s->shape[dim]);
        peal_clone_end(&same);
        return copy;
    }
    struct peal_expr *len = peal_expr_new(in->module, PEAL_EXPR_CALL, arg->pos);
    struct peal_clone same;
    if (!len || !peal_clone_begin(&same, in->module, in->kernel, &in->names, in->kernel->nslots))
        return NULL;
    for (struct peal_symbol *k = in->kernel->symbols; k; k = k->next)
        same.map[k->slot].symbol = k;
    len->name = peal_intern_text(&in->module->names, "len", 3);
    len->builtin = PEAL_BUILTIN_LEN;
    len->type = (struct peal_type){.kind = PEAL_TYPE_INT};
    len->a = peal_clone_expr(&same, arg);
    peal_clone_end(&same);
    (void)clone;
    if (!len->a || !peal_expr_measure(len))
        return NULL;
    return len;
}

/* A dimension of the callee is defined by the argument whose shape is just its name. */
static struct peal_stmt *bind_dim(struct inliner *in, struct peal_clone *clone,
                                  const struct peal_call_expr *call, const struct peal_symbol *dim,
                                  struct peal_pos pos)
{
    for (int i = 0; i < call->callee->nparams; i++) {
        const struct peal_symbol *param = call->callee->params[i];
        int dims = param->shape[1] ? 2 : 1;
        if (param->kind != PEAL_SYMBOL_BUFFER || !call->args[i])
            continue;
        for (int k = 0; k < dims; k++) {
            const struct peal_expr *shape = param->shape[k];
            if (!shape || shape->kind != PEAL_EXPR_NAME || shape->symbol != dim)
                continue;
            struct peal_expr *extent = extent_of(in, clone, call->args[i], k, dims);
            if (extent)
                return new_let(in, clone, dim->name, pos, extent);
        }
    }
    if (in->status == PEAL_OK) {
        in->status = PEAL_INVALID;
        peal_diag_error(in->diags, pos, "the arguments do not say what '%s' of '%s' is", dim->name,
                        call->callee->name);
        peal_diag_note(in->diags, dim->pos, "it is a dimension here");
    }
    return NULL;
}

/* The arguments of a call use the caller's symbols. Each parameter is mapped to its argument, or to
 * a let that holds it. Returns the lets. */
static struct peal_stmt *bind_args(struct inliner *in, struct peal_clone *clone,
                                   const struct peal_call_expr *call, struct peal_pos pos)
{
    struct peal_stmt *first = NULL, **tail = &first;
    for (const struct peal_symbol *s = call->callee->symbols; s; s = s->next) {
        if (s->kind != PEAL_SYMBOL_DIM)
            continue;
        struct peal_stmt *let = bind_dim(in, clone, call, s, pos);
        if (!let)
            return NULL;
        clone->map[s->slot].symbol = let->symbol;
        *tail = let;
        tail = &let->next;
    }
    for (int i = 0; i < call->callee->nparams && !clone->failed; i++) {
        const struct peal_symbol *param = call->callee->params[i];
        if (param->kind != PEAL_SYMBOL_INT) {
            clone->map[param->slot].expr = call->args[i];
            continue;
        }
        struct peal_expr *value = call->args[i];
        if (!value)
            value = peal_clone_expr(clone, param->initial);
        if (value)
            value->next = NULL;
        struct peal_stmt *let = new_let(in, clone, param->name, pos, value);
        if (!let)
            return NULL;
        clone->map[param->slot].symbol = let->symbol;
        *tail = let;
        tail = &let->next;
    }
    if (call->replaced)
        clone->map[call->replaced->slot].expr = call->signal;
    return first;
}

static bool has_lanes(const struct peal_kernel *kernel)
{
    for (const struct peal_stmt *s = kernel->body; s; s = s->next) {
        if (s->kind == PEAL_STMT_LANE)
            return true;
    }
    return false;
}

/* The least common multiple of two periods; 0 counts as 1. */
static int lcm(int a, int b)
{
    if (a <= 0)
        a = 1;
    if (b <= 0)
        b = 1;
    int multiple = a;
    while (multiple % b)
        multiple += a;
    return multiple;
}

/* If the callee uses a placement name, the caller may not have declared it. */
static bool check_placement(struct inliner *in, const struct peal_kernel *callee,
                            struct peal_pos pos)
{
    for (const struct peal_symbol *s = callee->symbols; s; s = s->next) {
        if (s->kind != PEAL_SYMBOL_BUILTIN || !peal_special_is_placement(s->value))
            continue;
        for (const struct peal_symbol *own = in->kernel->symbols; own; own = own->next) {
            if (own->kind == PEAL_SYMBOL_BUILTIN || strcmp(own->name, s->name) != 0)
                continue;
            in->status = PEAL_INVALID;
            peal_diag_error(in->diags, pos,
                            "'%s' uses the placement '%s', and '%s' declares a name of its own "
                            "like that",
                            callee->name, s->name, in->kernel->name);
            peal_diag_note(in->diags, own->pos, "give this one another name");
            return false;
        }
    }
    return true;
}

static void inline_calls(struct inliner *in, struct peal_stmt *body, int depth);

/* The call statement itself becomes the scope. */
static void inline_call(struct inliner *in, struct peal_stmt *stmt, int depth)
{
    struct peal_call_expr call = peal_call_bind(stmt);
    struct peal_clone clone;
    if (depth > MAX_DEPTH || has_lanes(call.callee)) {
        in->status = PEAL_INVALID;
        peal_diag_error(in->diags, stmt->pos,
                        depth > MAX_DEPTH
                            ? "'%s' is called too deep: at most 64 calls in each other"
                            : "'%s' has lanes and cannot be called",
                        call.callee->name);
        return;
    }
    if (++in->calls > MAX_CALLS) {
        in->status = PEAL_INVALID;
        peal_diag_error(in->diags, stmt->pos,
                        "'%s' makes more than %d calls of kernels, those within others counted",
                        in->kernel->name, MAX_CALLS);
        return;
    }
    if (!check_placement(in, call.callee, stmt->pos))
        return;
    if (!peal_clone_begin(&clone, in->module, in->kernel, &in->names, call.callee->nslots)) {
        peal_clone_end(&clone);
        run_out(in, stmt->pos);
        return;
    }
    struct peal_stmt *lets = bind_args(in, &clone, &call, stmt->pos);
    struct peal_stmt *body = NULL;
    if (in->status == PEAL_OK)
        body = peal_clone_body(&clone, call.callee->body);
    if (clone.failed)
        run_out(in, stmt->pos);
    peal_clone_end(&clone);
    if (in->status != PEAL_OK)
        return;
    struct peal_stmt **tail = &lets;
    while (*tail)
        tail = &(*tail)->next;
    *tail = body;
    in->kernel->period = lcm(in->kernel->period, call.callee->period);
    stmt->kind = PEAL_STMT_SCOPE;
    stmt->name = peal_intern_text(&in->module->names, call.callee->name, strlen(call.callee->name));
    stmt->args = NULL;
    stmt->callee = NULL;
    stmt->body = lets;
    inline_calls(in, stmt->body, depth + 1);
}

static void inline_calls(struct inliner *in, struct peal_stmt *body, int depth)
{
    for (struct peal_stmt *s = body; s && in->status == PEAL_OK; s = s->next) {
        if (s->kind == PEAL_STMT_CALL) {
            inline_call(in, s, depth);
        } else {
            inline_calls(in, s->body, depth);
            inline_calls(in, s->other, depth);
        }
    }
}

enum peal_status peal_lower_inline(struct peal_module *module, struct peal_kernel *kernel,
                                   struct peal_diags *diags)
{
    struct inliner in = {.module = module, .kernel = kernel, .diags = diags, .status = PEAL_OK};
    inline_calls(&in, kernel->body, 0);
    peal_clone_names_release(&in.names);
    return in.status;
}
