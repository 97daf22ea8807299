/* SPDX-License-Identifier: Apache-2.0 */
/* ensures and requires: from clauses to the plan's promises.
 *
 * A clause is evaluated per rank, like any statement: conditions and loops around it decide whether
 * and with which integers. What remains is a term per range of elements. If the clause has an index
 * that stands for all elements, it is evaluated element by element; neighbours with the same term
 * become one promise. Where the index is only shifted (x[i + 1], and conditions such as i < n - 1),
 * the first and the last element are enough.
 */
#include "plan/make/maker.h"

#include <inttypes.h>
#include <math.h>

enum { VARIES = 1 << 16 }; /* a slope that is not known */

/* The elements that are being promised. */
struct promised_range {
    uint64_t first; /* of a row, in the buffer */
    uint64_t count; /* of that row */
    uint32_t row, rows;
};

static void set_index(struct instantiation *t, const struct peal_symbol *symbol, int64_t value)
{
    t->env[symbol->slot] = (struct binding){.bound = true, .value = value};
}

/* --- how an expression depends on the index --------------------------------------------------- */

static bool mentions(const struct peal_expr *e, const struct peal_symbol *index)
{
    if (!e)
        return false;
    if (e->kind == PEAL_EXPR_NAME)
        return e->symbol == index;
    for (int i = 0; i < e->nslices; i++) {
        if (mentions(e->slices[i].a, index) || mentions(e->slices[i].b, index))
            return true;
    }
    if (e->kind != PEAL_EXPR_CALL)
        return mentions(e->a, index) || mentions(e->b, index);
    for (const struct peal_expr *arg = e->a; arg; arg = arg->next) {
        if (mentions(arg, index))
            return true;
    }
    return false;
}

/* What the integer grows by when the index grows by one. */
static int slope(const struct peal_expr *e, const struct peal_symbol *index)
{
    if (!mentions(e, index))
        return 0;
    if (e->kind == PEAL_EXPR_NAME)
        return 1;
    if (e->kind != PEAL_EXPR_BINARY || (e->op != PEAL_INT_ADD && e->op != PEAL_INT_SUB))
        return VARIES;
    int a = slope(e->a, index), b = slope(e->b, index);
    if (a > 1 || a < -1 || b > 1 || b < -1)
        return VARIES;
    return e->op == PEAL_INT_ADD ? a + b : a - b;
}

/* Is its value at the next index the same term, with all elements one further? */
static bool shifts(const struct peal_expr *e, const struct peal_symbol *index)
{
    if (!e || e->type.kind == PEAL_TYPE_INT || e->type.kind == PEAL_TYPE_BOOL)
        return !mentions(e, index);
    if (e->kind == PEAL_EXPR_SLICE)
        return e->nslices == 1 && e->slices[0].kind == PEAL_SLICE_INDEX && e->a->type.dims == 1 &&
               slope(e->slices[0].a, index) == 1 && !mentions(e->a, index);
    if (e->kind == PEAL_EXPR_NAME || e->kind == PEAL_EXPR_AT)
        return false;
    if (e->kind != PEAL_EXPR_CALL)
        return shifts(e->a, index) && shifts(e->b, index);
    for (const struct peal_expr *arg = e->a; arg; arg = arg->next) {
        if (arg->type.kind != PEAL_TYPE_REDUCE && !shifts(arg, index))
            return false;
    }
    return true;
}

/* Narrows lo .. hi to where the condition may hold. False: within it, it must be asked of every
 * index. */
static bool clip(struct instantiation *t, const struct peal_expr *c,
                 const struct peal_symbol *index, int64_t *lo, int64_t *hi)
{
    if (!mentions(c, index)) {
        if (!peal_inst_bool(t, c))
            *hi = *lo;
        return true;
    }
    if (c->kind == PEAL_EXPR_BINARY && c->op == PEAL_INT_ANDAND) {
        bool first = clip(t, c->a, index, lo, hi), second = clip(t, c->b, index, lo, hi);
        return first && second;
    }
    if (c->kind != PEAL_EXPR_BINARY || c->op < PEAL_INT_EQ || c->op > PEAL_INT_GE)
        return false;
    int step = slope(c->a, index) - slope(c->b, index);
    if ((step != 1 && step != -1) || c->op == PEAL_INT_NE)
        return false;
    set_index(t, index, 0);
    int64_t a = peal_inst_int(t, c->a), b = peal_inst_int(t, c->b), edge;
    /* i + a < b, or a - i < b: i is compared with the edge. */
    bool good =
        step == 1 ? !__builtin_sub_overflow(b, a, &edge) : !__builtin_sub_overflow(a, b, &edge);
    if (!good || edge <= INT64_MIN + 1 || edge >= INT64_MAX - 1)
        return false;
    bool less = c->op == PEAL_INT_LT || c->op == PEAL_INT_LE;
    bool strict = c->op == PEAL_INT_LT || c->op == PEAL_INT_GT;
    if (c->op == PEAL_INT_EQ || less == (step == 1)) /* i below the edge */
        *hi = *hi < edge + !strict ? *hi : edge + !strict;
    if (c->op == PEAL_INT_EQ || less != (step == 1))
        *lo = *lo > edge + strict ? *lo : edge + strict;
    return true;
}

/* --- terms ----------------------------------------------------------------------------------- */

static uint32_t add_fn(struct instantiation *t, const struct peal_expr *e, enum peal_fn fn,
                       uint32_t a, uint32_t b)
{
    struct peal_promise_term term = {.kind = PEAL_TERM_FN, .fn = fn, .a = a, .b = b};
    enum peal_dtype dtype = peal_inst_dtype(t, e->type.elem);
    if (fn == PEAL_FN_SOFTMAX)
        peal_inst_fail(t, e->pos, "'softmax' is a function of rows and cannot stand in an ensures");
    if (t->status != PEAL_OK || !peal_inst_fn_takes(t, e->pos, fn, dtype) ||
        !peal_inst_step(t, e->pos))
        return 0;
    return peal_assembler_term(t->a, &term);
}

/* The symbol of a place, and the rank that it is on. */
static const struct peal_symbol *owner_of(struct instantiation *t, const struct peal_expr *e,
                                          uint32_t *rank)
{
    *rank = t->rank;
    for (; e->kind != PEAL_EXPR_NAME; e = e->a) {
        if (e->kind == PEAL_EXPR_AT)
            *rank = peal_inst_peer(t, e->b).rank;
    }
    return e->symbol;
}

/* A part of a parameter as that rank has it, whether the plan is in place or not. False: it is
 * outside, or there is none; reported. */
static bool find_part(struct instantiation *t, const struct peal_expr *e, struct part *out,
                      uint64_t *cols)
{
    uint32_t rank;
    const struct peal_symbol *symbol = owner_of(t, e, &rank);
    struct sizes sizes;
    if (t->status != PEAL_OK || !peal_inst_sizes_on(t, rank, symbol, &sizes))
        return false;
    struct binding own = t->env[symbol->slot];
    t->env[symbol->slot] = (struct binding){.bound = true,
                                            .buf = t->decls[symbol->slot],
                                            .dtype = own.dtype,
                                            .rows = sizes.rows,
                                            .cols = sizes.cols};
    bool found = peal_inst_part(t, e, out);
    t->env[symbol->slot] = own;
    if (!found)
        return false;
    if (out->ref.phases != PEAL_NONE)
        return peal_inst_fail(t, e->pos, "an ensures cannot depend on 'launch mod'");
    *cols = sizes.rows ? sizes.cols : 0;
    uint64_t rows = sizes.rows ? sizes.rows : 1;
    if (out->first > sizes.cols || out->count > sizes.cols - out->first || out->row > rows ||
        out->rows > rows - out->row)
        return peal_inst_fail(t, e->pos,
                              "%" PRIu64 " elements from %" PRIu64 " on are outside '%s', which "
                              "has %" PRIu64 " on rank %u",
                              out->count, out->first, symbol->name, sizes.len, rank);
    return true;
}

static uint32_t input_term(struct instantiation *t, const struct peal_expr *e,
                           const struct promised_range *y)
{
    struct part p;
    uint64_t cols;
    if (!find_part(t, e, &p, &cols))
        return 0;
    struct part shape = {.rows = y->rows, .count = y->count};
    peal_inst_want_shape(t, e, &p, &shape);
    uint64_t element = (uint64_t)(p.row + y->row) * cols + p.first;
    struct peal_promise_term term = {.kind = PEAL_TERM_INPUT,
                                     .a = p.ref.rank,
                                     .b = p.ref.buf,
                                     .word = (int64_t)(element - y->first)};
    return t->status == PEAL_OK ? peal_assembler_term(t->a, &term) : 0;
}

static uint32_t const_term(struct instantiation *t, const struct peal_expr *e)
{
    struct peal_promise_term term = {.kind = PEAL_TERM_CONST, .a = PEAL_NONE, .b = PEAL_NONE};
    double value = peal_inst_scalar(t, e);
    if (t->status == PEAL_OK && e->type.kind == PEAL_TYPE_INT && fabs(value) > 0x1p53)
        peal_inst_fail(t, e->pos, "a number among data has at most 53 bits");
    memcpy(&term.word, &value, sizeof value);
    return t->status == PEAL_OK ? peal_assembler_term(t->a, &term) : 0;
}

static uint32_t term_of(struct instantiation *t, const struct peal_expr *e,
                        const struct promised_range *y);

/* op(q in a .. b where c: value), from the left. */
static uint32_t over_term(struct instantiation *t, const struct peal_expr *e,
                          const struct promised_range *y)
{
    const struct peal_expr *q = e->a, *value = q->next->next->next;
    int64_t lo = peal_inst_int(t, q->next), hi = peal_inst_int(t, q->next->next);
    enum peal_fn fn = peal_reduce_fn(peal_inst_reduce(t, e));
    uint32_t sum = PEAL_NONE;
    for (int64_t i = lo; i < hi && t->status == PEAL_OK; i++) {
        set_index(t, q->symbol, i);
        if (!peal_inst_step(t, e->pos) || (value->next && !peal_inst_bool(t, value->next)))
            continue;
        uint32_t one = term_of(t, value, y);
        sum = sum == PEAL_NONE ? one : add_fn(t, e, fn, sum, one);
    }
    if (sum == PEAL_NONE && t->status == PEAL_OK)
        peal_inst_fail(t, e->pos, "'%s' over nothing has no value", e->name);
    return t->status == PEAL_OK ? sum : 0;
}

static uint32_t call_term(struct instantiation *t, const struct peal_expr *e,
                          const struct promised_range *y)
{
    struct peal_promise_term divided = {
        .kind = PEAL_TERM_DIVIDE, .b = PEAL_NONE, .word = t->bind->nranks};
    enum peal_fn fn = e->fn;
    uint32_t sum;
    switch (e->builtin) {
    case PEAL_BUILTIN_OLD:
        return term_of(t, e->a, y);
    case PEAL_BUILTIN_OVER:
        return over_term(t, e, y);
    case PEAL_BUILTIN_FINAL:
        divided.a = term_of(t, e->a->next, y);
        if (peal_inst_reduce(t, e->a) != PEAL_AVG || t->bind->nranks == 1 || t->status != PEAL_OK)
            return divided.a;
        return peal_assembler_term(t->a, &divided);
    case PEAL_BUILTIN_REDUCE:
        fn = peal_reduce_fn(peal_inst_reduce(t, e));
        break;
    case PEAL_BUILTIN_FN:
        if (peal_fn_info(fn)->operands <= 2)
            break;
        /* fall through */
    default:
        peal_inst_fail(t, e->pos, "'%s' cannot stand in an ensures", e->name);
        return 0;
    }
    sum = term_of(t, e->a, y);
    if (!e->a->next)
        return add_fn(t, e, fn, sum, PEAL_NONE);
    for (const struct peal_expr *arg = e->a->next; arg && t->status == PEAL_OK; arg = arg->next)
        sum = add_fn(t, e, fn, sum, term_of(t, arg, y));
    return sum;
}

static uint32_t term_of(struct instantiation *t, const struct peal_expr *e,
                        const struct promised_range *y)
{
    uint32_t a;
    e = peal_inst_chosen(t, e);
    if (t->status != PEAL_OK)
        return 0;
    if (e->type.kind == PEAL_TYPE_INT || e->type.kind == PEAL_TYPE_FLOAT)
        return const_term(t, e);
    switch (e->kind) {
    case PEAL_EXPR_UNARY:
        return add_fn(t, e, e->fn, term_of(t, e->a, y), PEAL_NONE);
    case PEAL_EXPR_BINARY:
        a = term_of(t, e->a, y);
        return add_fn(t, e, e->fn, a, term_of(t, e->b, y));
    case PEAL_EXPR_CALL:
        return call_term(t, e, y);
    default:
        return input_term(t, e, y);
    }
}

/* --- promises -------------------------------------------------------------------------------- */

static uint32_t clause_of(struct instantiation *t, const struct peal_stmt *s)
{
    struct peal_text text = {0};
    if (s->required)
        peal_text_puts(&text, s->name);
    else
        peal_print_ensured(s, &text);
    uint32_t clause =
        peal_assembler_clause(t->a, s->required, peal_text_get(&text), peal_inst_position(t));
    peal_text_release(&text);
    return clause;
}

/* Promises the place on the left, row by row; a single element stands for `count` of them. */
static void promise(struct instantiation *t, const struct peal_stmt *s, uint32_t clause,
                    uint64_t count)
{
    struct part p;
    uint64_t cols;
    if (!find_part(t, s->a, &p, &cols))
        return;
    for (uint32_t row = 0; row < p.rows && p.count && t->status == PEAL_OK; row++) {
        uint64_t first = (uint64_t)(p.row + row) * cols + p.first;
        struct promised_range y = {.first = first, .count = p.count, .row = row, .rows = p.rows};
        uint32_t term = term_of(t, s->b, &y);
        struct peal_promise made = {.rank = t->rank,
                                    .buf = p.ref.buf,
                                    .term = term,
                                    .clause = clause,
                                    .first = first,
                                    .count = count > 1 ? count : p.count};
        if (t->status == PEAL_OK && peal_inst_step(t, s->pos))
            peal_assembler_promise(t->a, &made);
    }
}

/* The range of the index: elements, or rows. */
static bool find_range(struct instantiation *t, const struct peal_stmt *s, int64_t *end)
{
    struct part whole;
    uint64_t cols;
    if (!find_part(t, s->a->a, &whole, &cols))
        return false;
    *end = (int64_t)(whole.dims == 2 ? whole.rows : whole.count);
    return true;
}

static void promise_range(struct instantiation *t, const struct peal_stmt *s, uint32_t clause)
{
    int64_t lo = 0, hi;
    bool ranges = true;
    if (!find_range(t, s, &hi))
        return;
    if (s->c)
        ranges = clip(t, s->c, s->symbol, &lo, &hi);
    if (ranges && hi - lo > 1 && s->a->a->type.dims == 1 && shifts(s->b, s->symbol)) {
        struct promised_range last = {.first = (uint64_t)hi - 1, .count = 1, .rows = 1};
        set_index(t, s->symbol, hi - 1);
        (void)term_of(t, s->b, &last); /* reports what is outside */
        set_index(t, s->symbol, lo);
        promise(t, s, clause, (uint64_t)(hi - lo));
        return;
    }
    for (int64_t i = lo; i < hi && t->status == PEAL_OK; i++) {
        set_index(t, s->symbol, i);
        if (!peal_inst_step(t, s->pos))
            return;
        if (!ranges && !peal_inst_bool(t, s->c))
            continue;
        promise(t, s, clause, 1);
    }
}

void peal_inst_ensures(struct instantiation *t, const struct peal_stmt *s)
{
    if (t->bind->rank != PEAL_NONE || t->on_lane || t->call)
        return; /* not of one rank alone, and not of a kernel that is called */
    uint32_t clause = clause_of(t, s);
    if (s->symbol)
        promise_range(t, s, clause);
    else if (!s->c || peal_inst_bool(t, s->c))
        promise(t, s, clause, 1);
}

void peal_inst_required(struct instantiation *t, const struct peal_stmt *s)
{
    if (t->bind->rank == PEAL_NONE && !t->on_lane && !t->call)
        (void)clause_of(t, s);
}
