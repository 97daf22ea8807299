/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: of integers, elementwise functions of data, and applied reduce operations.
 *
 * A name may mean several of them (`max` of integers, of data, and as a reduction). Which one is
 * meant is decided by how the first argument begins, before any argument is deduced: deducing twice
 * would report twice.
 */
#include "lang/deduce/deducer.h"

#include <string.h>

static const struct {
    const char *name;
    enum peal_builtin builtin;
    int min_args, max_args; /* max_args 0: any number */
} builtins[] = {
    {"min", PEAL_BUILTIN_MIN, 1, 0},
    {"max", PEAL_BUILTIN_MAX, 1, 0},
    {"cdiv", PEAL_BUILTIN_CDIV, 2, 2},
    {"log2", PEAL_BUILTIN_LOG2, 1, 1},
    {"part", PEAL_BUILTIN_PART, 3, 3},
    {"select", PEAL_BUILTIN_SELECT, 3, 3},
    {"sum", PEAL_BUILTIN_SUM, 1, 2},
    {"len", PEAL_BUILTIN_LEN, 1, 1},
    {"has", PEAL_BUILTIN_HAS, 1, 1},
    {"peer", PEAL_BUILTIN_PEER, 1, 1},
    {"fill", PEAL_BUILTIN_FILL, 2, 3},
    {"final", PEAL_BUILTIN_FINAL, 2, 2},
    {"at", PEAL_BUILTIN_AT, 2, 3},
    {"node_of", PEAL_BUILTIN_NODE_OF, 1, 1},
    {"fetch_add", PEAL_BUILTIN_FETCH_ADD, 2, 2},
    {"compare_swap", PEAL_BUILTIN_COMPARE_SWAP, 3, 3},
    {"seat_of", PEAL_BUILTIN_SEAT_OF, 1, 1},
    {"seats_of", PEAL_BUILTIN_SEATS_OF, 1, 1},
    {"program_id", PEAL_BUILTIN_PROGRAM_ID, 1, 2},
    {"num_programs", PEAL_BUILTIN_NUM_PROGRAMS, 1, 1},
};
enum { BUILTINS = sizeof builtins / sizeof *builtins, MAX_POLYS = 4 };

static int find_builtin(const char *name)
{
    for (int i = 0; i < BUILTINS; i++) {
        if (strcmp(builtins[i].name, name) == 0)
            return i;
    }
    return -1;
}

/* An op that is written as a function: its kind, or PEAL_OP_KIND_COUNT. */
static enum peal_op_kind find_own(const char *name)
{
    for (int kind = 0; kind < PEAL_OP_KIND_COUNT; kind++) {
        if (peal_op_rows[kind].work == PEAL_WORK_OWN &&
            strcmp(peal_op_info((enum peal_op_kind)kind)->name, name) == 0)
            return (enum peal_op_kind)kind;
    }
    return PEAL_OP_KIND_COUNT;
}

const char *peal_function_name(size_t i)
{
    if (i < BUILTINS)
        return builtins[i].name;
    i -= BUILTINS;
    for (int kind = 0; kind < PEAL_OP_KIND_COUNT; kind++) {
        const char *name = peal_op_info((enum peal_op_kind)kind)->name;
        if (peal_op_rows[kind].work == PEAL_WORK_OWN && find_builtin(name) < 0 && i-- == 0)
            return name;
    }
    return NULL;
}

bool peal_function_is_known(const char *name)
{
    return find_builtin(name) >= 0 || find_own(name) != PEAL_OP_KIND_COUNT;
}

void peal_deduce_reduce_takes(struct peal_deducer *d, struct peal_pos pos,
                              enum peal_reduction reduce, struct peal_elem elem)
{
    if (elem.generic)
        return;
    const struct peal_reduce_decl *user = NULL;
    if (peal_reduce_is_user(reduce))
        user = peal_deducer_decl(d, reduce);
    if (user ? peal_formula_takes(&user->formula, elem.dtype)
             : peal_reduce_takes(reduce, elem.dtype))
        return;
    if (user) {
        peal_deducer_error(d, pos, "reduction '%s' does not go with elements of %s", user->name,
                           peal_elem_text(elem));
        peal_deducer_note(d, user->pos, "it is declared here");
        return;
    }
    peal_deducer_error(d, pos, "reduce operation '%s' does not go with elements of %s",
                       peal_reduce_name(reduce), peal_elem_text(elem));
    peal_deducer_note(d, (struct peal_pos){0},
                      reduce == PEAL_AVG ? "avg is for floating point only"
                                         : "and, or, xor are for integers only");
}

static void check_fn_type(struct peal_deducer *d, const struct peal_expr *expr, enum peal_fn fn,
                          struct peal_elem elem)
{
    if (elem.generic || peal_fn_takes(fn, elem.dtype))
        return;
    peal_deducer_error(d, expr->pos, "function '%s' does not go with elements of %s", expr->name,
                       peal_elem_text(elem));
    peal_deducer_note(d, (struct peal_pos){0}, "it is for %s only",
                      peal_fn_types_text(peal_fn_info(fn)->types));
}

/* `max` is 0 for a function of any number of arguments. */
static void wrong_count(struct peal_deducer *d, const struct peal_expr *expr, int min, int max,
                        int count)
{
    const char *are = count == 1 ? "is" : "are";
    if (min == max)
        peal_deducer_error(d, expr->pos, "'%s' takes %d argument%s, and %d %s given", expr->name,
                           min, peal_text_plural(min), count, are);
    else if (max == 0)
        peal_deducer_error(d, expr->pos, "'%s' takes at least %d argument%s, and %d %s given",
                           expr->name, min, peal_text_plural(min), count, are);
    else
        peal_deducer_error(d, expr->pos, "'%s' takes %d or %d arguments, and %d %s given",
                           expr->name, min, max, count, are);
}

/* Data operands from `arg` on become one tile; `arithmetic`: the result is kept in f32. */
static void deduce_data(struct peal_deducer *d, struct peal_expr *expr, struct peal_expr *arg,
                        bool arithmetic, struct peal_value *out)
{
    struct peal_mix mix = {0};
    for (struct peal_expr *at = arg; at; at = at->next) {
        struct peal_value value;
        peal_deduce_expr(d, at, &value);
        peal_mix_add(d, &mix, at, &value);
    }
    if (mix.bad)
        return;
    if (!mix.any_data) {
        peal_deducer_error(d, expr->pos, "'%s' needs a buffer or tile among its arguments",
                           expr->name);
        return;
    }
    for (struct peal_expr *at = arg; at; at = at->next)
        peal_mix_adopt(at, &mix);
    expr->type = mix.type;
    if (arithmetic)
        expr->type.elem = peal_elem_widen(mix.type.elem);
    *out = mix.shape;
}

static int count_args(const struct peal_expr *expr)
{
    int count = 0;
    for (const struct peal_expr *arg = expr->a; arg; arg = arg->next)
        count++;
    return count;
}

/* op(a, b, ...) */
static void apply_reduce(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    int count = count_args(expr);
    expr->builtin = PEAL_BUILTIN_REDUCE;
    if (count < 2) {
        wrong_count(d, expr, 2, 0, count);
        return;
    }
    deduce_data(d, expr, expr->a, true, out);
    if (!peal_expr_is_empty(expr) && !expr->symbol)
        peal_deduce_reduce_takes(d, expr->pos, expr->reduce, expr->type.elem);
}

static void apply_fn(struct peal_deducer *d, struct peal_expr *expr, enum peal_fn fn,
                     struct peal_value *out)
{
    int wanted = peal_fn_info(fn)->operands;
    int count = count_args(expr);
    expr->builtin = PEAL_BUILTIN_FN;
    expr->fn = fn;
    if (wanted == 0 && count < 2) {
        wrong_count(d, expr, 2, 0, count);
        return;
    }
    if (wanted != 0 && count != wanted) {
        wrong_count(d, expr, wanted, wanted, count);
        return;
    }
    deduce_data(d, expr, expr->a, fn != PEAL_FN_ID, out);
    if (!peal_expr_is_empty(expr))
        check_fn_type(d, expr, fn, expr->type.elem);
}

static struct peal_elem default_elem(const struct peal_deducer *d);

static void apply_own(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    expr->builtin = PEAL_BUILTIN_OWN;
    expr->own = find_own(expr->name);
    int wanted = peal_op_facts(expr->own)->sources, count = count_args(expr);
    if (count != wanted)
        wrong_count(d, expr, wanted, wanted, count);
    else
        peal_deduce_own(d, expr, default_elem(d), out);
}

/* select(condition, a, b): ints or data. Only the chosen side is evaluated later. */
static void deduce_select(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    struct peal_expr *a = expr->a->next;
    struct peal_expr *b = a->next;
    bool ok = peal_deduce_bool(d, expr->a, "the condition of select");
    struct peal_value x;
    struct peal_value y;
    peal_deduce_expr(d, a, &x);
    peal_deduce_expr(d, b, &y);
    if (!ok || peal_expr_is_empty(a) || peal_expr_is_empty(b))
        return;
    if (a->type.kind == PEAL_TYPE_INT && b->type.kind == PEAL_TYPE_INT) {
        expr->type.kind = PEAL_TYPE_INT;
        return;
    }
    struct peal_mix mix = {0};
    peal_mix_add(d, &mix, a, &x);
    peal_mix_add(d, &mix, b, &y);
    if (mix.bad)
        return;
    if (!peal_type_is_data(&a->type) || !peal_type_is_data(&b->type)) {
        peal_deducer_error(d, expr->pos,
                           "select chooses between two integers or between data, not "
                           "between %s and %s",
                           peal_type_text(&a->type), peal_type_text(&b->type));
        return;
    }
    peal_mix_adopt(a, &mix);
    peal_mix_adopt(b, &mix);
    expr->type = mix.type;
    *out = mix.shape;
}

static void deduce_final(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    struct peal_value value;
    peal_deduce_expr(d, expr->a, &value);
    if (!peal_expr_is_empty(expr->a) && expr->a->type.kind != PEAL_TYPE_REDUCE) {
        peal_deducer_error(d, expr->a->pos, "'%s' is %s, not a reduce operation",
                           peal_show_expr(expr->a).text, peal_type_text(&expr->a->type));
        return;
    }
    if (peal_expr_is_empty(expr->a))
        return;
    deduce_data(d, expr, expr->a->next, true, out);
    if (!peal_expr_is_empty(expr) && !expr->a->symbol)
        peal_deduce_reduce_takes(d, expr->a->pos, expr->a->reduce, expr->type.elem);
}

/* If the kernel has no T, a fill has the type of the first buffer. */
static struct peal_elem default_elem(const struct peal_deducer *d)
{
    if (d->has_generic)
        return (struct peal_elem){.generic = true};
    for (int i = 0; i < d->kernel->nparams; i++) {
        if (d->kernel->params[i]->kind == PEAL_SYMBOL_BUFFER)
            return d->kernel->params[i]->type.elem;
    }
    return (struct peal_elem){.generic = true};
}

static void deduce_fill(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    struct peal_value value;
    peal_deduce_expr(d, expr->a, &value);
    bool ok = expr->a->type.kind == PEAL_TYPE_INT || expr->a->type.kind == PEAL_TYPE_FLOAT;
    if (!ok && !peal_expr_is_empty(expr->a))
        peal_deducer_error(d, expr->a->pos, "fill takes a number, and '%s' is %s",
                           peal_show_expr(expr->a).text, peal_type_text(&expr->a->type));
    int dims = 0;
    for (struct peal_expr *arg = expr->a->next; arg; arg = arg->next)
        ok &= peal_deduce_int(d, arg, "a length", &out->d[dims++]);
    if (ok)
        expr->type =
            (struct peal_type){.kind = PEAL_TYPE_TILE, .elem = default_elem(d), .dims = dims};
}

static void deduce_port_function(struct peal_deducer *d, struct peal_expr *expr)
{
    if (expr->a->kind != PEAL_EXPR_PORT) {
        peal_deducer_error(d, expr->a->pos, "'%s' takes a port: N S E W, parent or child i",
                           expr->name);
        return;
    }
    peal_deduce_peer(d, expr->a);
    expr->type.kind = expr->builtin == PEAL_BUILTIN_HAS ? PEAL_TYPE_BOOL : PEAL_TYPE_INT;
    if (expr->builtin == PEAL_BUILTIN_PEER && expr->a->value == PEAL_PORT_CHILD && !expr->a->a)
        expr->type.kind = PEAL_TYPE_NONE;
}

static void deduce_len(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    struct peal_value value;
    peal_deduce_expr(d, expr->a, &value);
    if (peal_expr_is_empty(expr->a))
        return;
    if (!peal_type_is_data(&expr->a->type) || expr->a->type.dims == 0) {
        peal_deducer_error(d, expr->a->pos, "'%s' has no length", peal_show_expr(expr->a).text);
        return;
    }
    expr->type.kind = PEAL_TYPE_INT;
    if (expr->a->type.dims == 2)
        out->d[0] = peal_poly_mul(&value.d[0], &value.d[1]);
    else
        out->d[0] = value.d[0];
}

/* sum(counts), sum(counts, k) */
static void deduce_sum(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    struct peal_value value;
    struct peal_poly first = peal_poly_int(-1); /* stands for "all" in the key */
    peal_deduce_expr(d, expr->a, &value);
    bool ok = expr->a->type.kind == PEAL_TYPE_INTS && expr->a->symbol;
    if (!ok && !peal_expr_is_empty(expr->a))
        peal_deducer_error(d, expr->a->pos,
                           "sum takes an array of integers or several data, and '%s' is %s",
                           peal_show_expr(expr->a).text, peal_type_text(&expr->a->type));
    if (expr->a->next)
        ok &= peal_deduce_int(d, expr->a->next, "a number of elements", &first);
    if (!ok)
        return;
    expr->type.kind = PEAL_TYPE_INT;
    const struct peal_poly array = peal_poly_int(expr->a->symbol->slot);
    const struct peal_poly args[] = {array, first};
    out->d[0] = peal_deduce_opaque(d, "sum", args, 2);
}

/* min max cdiv log2 part: integers to an integer. */
static void deduce_int_function(struct peal_deducer *d, struct peal_expr *expr,
                                struct peal_value *out)
{
    struct peal_poly polys[MAX_POLYS];
    int count = 0;
    bool ok = true;
    for (struct peal_expr *arg = expr->a; arg; arg = arg->next) {
        struct peal_poly poly;
        ok &= peal_deduce_int(d, arg, "an argument", &poly);
        if (count < MAX_POLYS)
            polys[count] = poly;
        count++;
    }
    if (!ok)
        return;
    expr->type.kind = PEAL_TYPE_INT;
    if (count <= MAX_POLYS)
        out->d[0] = peal_deduce_opaque(d, expr->name, polys, count);
}

static void deduce_builtin(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    switch (expr->builtin) {
    case PEAL_BUILTIN_SELECT:
        deduce_select(d, expr, out);
        break;
    case PEAL_BUILTIN_SUM:
        deduce_sum(d, expr, out);
        break;
    case PEAL_BUILTIN_LEN:
        deduce_len(d, expr, out);
        break;
    case PEAL_BUILTIN_HAS:
    case PEAL_BUILTIN_PEER:
        deduce_port_function(d, expr);
        break;
    case PEAL_BUILTIN_FILL:
        deduce_fill(d, expr, out);
        break;
    case PEAL_BUILTIN_FINAL:
        deduce_final(d, expr, out);
        break;
    case PEAL_BUILTIN_FETCH_ADD:
    case PEAL_BUILTIN_COMPARE_SWAP:
        peal_deduce_fetch(d, expr);
        break;
    default:
        deduce_int_function(d, expr, out);
    }
}

static void unknown_function(struct peal_deducer *d, const struct peal_expr *expr)
{
    const char *best = NULL;
    enum peal_contract contract;
    if (peal_contract_find(expr->name, strlen(expr->name), &contract)) {
        peal_deducer_error(d, expr->pos,
                           "the result of '%s' goes to memory, not into an expression", expr->name);
        peal_deducer_note(
            d, (struct peal_pos){0},
            "write y = %s(x, ...) or %s(x, ...) as a statement, y and x being buffers", expr->name,
            expr->name);
        return;
    }
    peal_deducer_error(d, expr->pos, "unknown function '%s'", expr->name);
    for (size_t i = 0; peal_function_name(i); i++)
        best = peal_nearer(expr->name, best, peal_function_name(i));
    for (int i = 0; i < PEAL_FN_COUNT; i++)
        best = peal_nearer(expr->name, best, peal_fn_info((enum peal_fn)i)->name);
    for (int i = 0; i < PEAL_REDUCTIONS; i++)
        best = peal_nearer(expr->name, best, peal_reduce_name((enum peal_reduction)i));
    for (const struct peal_reduce_decl *r = d->module->reductions; r; r = r->next)
        best = peal_nearer(expr->name, best, r->name);
    for (int i = 1; i < PEAL_CONTRACT_COUNT; i++)
        best = peal_nearer(expr->name, best, peal_contract_info((enum peal_contract)i)->name);
    if (best)
        peal_deducer_note(d, (struct peal_pos){0}, "did you mean '%s'?", best);
}

static bool starts_with_data(struct peal_deducer *d, const struct peal_expr *expr);

/* Is it an op that is written as a function, rather than a function of that name? An op takes data
 * first. */
static bool is_own(struct peal_deducer *d, const struct peal_expr *expr)
{
    return find_own(expr->name) != PEAL_OP_KIND_COUNT &&
           (find_builtin(expr->name) < 0 || (expr->a && starts_with_data(d, expr->a)));
}

/* Some names are functions of both integers and data. The text of the first argument shows which
 * one is meant: of data if it starts with a buffer or tile, or is a recv. */
static bool starts_with_data(struct peal_deducer *d, const struct peal_expr *expr)
{
    while (expr) {
        switch (expr->kind) {
        case PEAL_EXPR_NAME: {
            const struct peal_symbol *symbol = peal_deducer_find(d, expr->name);
            return symbol && peal_type_is_data(&symbol->type);
        }
        case PEAL_EXPR_RECV:
            return true;
        case PEAL_EXPR_CALL: {
            if (expr->over)
                return true;
            const struct peal_symbol *symbol = peal_deducer_find(d, expr->name);
            if (symbol && symbol->kind == PEAL_SYMBOL_REDUCE)
                return true;
            int found = find_builtin(expr->name);
            enum peal_builtin builtin = PEAL_BUILTIN_FN;
            if (found >= 0)
                builtin = builtins[found].builtin;
            if (builtin == PEAL_BUILTIN_FN || builtin == PEAL_BUILTIN_FILL ||
                builtin == PEAL_BUILTIN_FINAL || is_own(d, expr))
                return true;
            if (builtin == PEAL_BUILTIN_LEN || builtin == PEAL_BUILTIN_HAS)
                return false;
            if (builtin == PEAL_BUILTIN_SELECT && expr->a)
                expr = expr->a->next;
            else
                expr = expr->a;
            break;
        }
        default:
            expr = expr->a;
        }
    }
    return false;
}

void peal_deduce_func(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    enum peal_fn fn;
    size_t len = strlen(expr->name);
    int found = find_builtin(expr->name);
    bool is_fn = peal_fn_find(expr->name, len, &fn);
    bool is_reduce = peal_deducer_reduction(d, expr->name, &expr->reduce);
    if (expr->over) {
        expr->symbol = is_reduce ? NULL : peal_deducer_find(d, expr->name);
        if (is_reduce || (expr->symbol && expr->symbol->kind == PEAL_SYMBOL_REDUCE))
            peal_deduce_over(d, expr, out);
        else
            peal_deducer_error(d, expr->pos, "'%s' is not a reduce operation", expr->name);
        return;
    }
    if (strcmp(expr->name, "old") == 0 && !peal_deducer_find(d, "old")) {
        peal_deduce_old(d, expr, out);
        return;
    }
    if (found >= 0 && (is_fn || is_reduce)) {
        for (const struct peal_expr *arg = expr->a; arg; arg = arg->next) {
            if (starts_with_data(d, arg)) {
                found = -1;
                break;
            }
        }
    }
    if (is_own(d, expr)) {
        apply_own(d, expr, out);
        return;
    }
    if (found >= 0) {
        int count = count_args(expr);
        expr->builtin = builtins[found].builtin;
        if (count < builtins[found].min_args ||
            (builtins[found].max_args && count > builtins[found].max_args))
            wrong_count(d, expr, builtins[found].min_args, builtins[found].max_args, count);
        else
            deduce_builtin(d, expr, out);
        return;
    }
    if (is_fn) {
        apply_fn(d, expr, fn, out);
        return;
    }
    if (is_reduce)
        expr->symbol = NULL;
    else
        expr->symbol = peal_deducer_find(d, expr->name);
    if (is_reduce || (expr->symbol && expr->symbol->kind == PEAL_SYMBOL_REDUCE)) {
        apply_reduce(d, expr, out);
    } else if (expr->symbol) {
        peal_deducer_error(d, expr->pos, "'%s' is %s, not a function", expr->name,
                           peal_type_text(&expr->symbol->type));
        peal_deducer_note(d, expr->symbol->pos, "it is declared here");
        expr->symbol = NULL;
    } else {
        unknown_function(d, expr);
    }
}
