/* SPDX-License-Identifier: Apache-2.0 */
/* Does a kernel do the same with every root, except for a rotation of the ranks? Decided from its
 * text.
 *
 * roots.c compares the plans of all roots, op by op. Here no plan is made: the text is read once,
 * and every number in it is described by how it differs between rank q with root 0 and rank q + r
 * with root r, for all q and r at once (root_text.h). Suppose that every condition is the same on
 * both, that every peer is a rank that is rotated, and that every cell and every part of a buffer
 * follows its formula. Then the ops of rank q + r are those of rank q, carried by the rotation, in
 * the same order except for two kinds of loops:
 *
 *   for s in 0 .. nranks { notify ... }   the order in which a rank notifies or waits without doing
 *                                         anything in between: nothing outside the loop sees it
 *   acc = op(acc, ... q ...)              the order of a sum over all ranks
 *
 * docs/verifier-all-ranks.md, "One root for all", has the theorem. Statements that are not named
 * here mean "no": then the plans of all roots are made and proved.
 */
#include "verify/symmetry/root_text.h"

#include "verify/symmetry/roots.h"

#include <stdlib.h>
#include <string.h>

static bool read_block(struct root_text *t, const struct peal_stmt *s);

static bool is_name(const struct peal_expr *e, const struct peal_symbol *s)
{
    return e && e->kind == PEAL_EXPR_NAME && e->symbol == s;
}

/* A statement with an effect. False: some ranks would execute it and their images would not. */
static bool act(struct root_text *t, uint32_t effect)
{
    t->effects |= effect;
    return !t->dead;
}

/* --- named numbers ----------------------------------------------------------------- */

/* A variable is described by what all of its assignments have in common, wherever they are. */
static bool join_var(struct root_text *t, const struct peal_symbol *s, struct number value)
{
    struct number *v = &t->numbers[s->slot], joined = value;
    joined.known = false;
    joined.multiple = 1;
    if (t->is_var_seen[s->slot] && v->kind != joined.kind)
        joined.kind = NUMBER_UNRELATED;
    if (!t->is_var_seen[s->slot] || v->kind != joined.kind)
        t->changed = true;
    t->is_var_seen[s->slot] = true;
    *v = joined;
    return act(t, EFFECT_VAR);
}

static bool read_let(struct root_text *t, const struct peal_stmt *s)
{
    if (s->symbol->kind == PEAL_SYMBOL_TILE)
        return act(t, EFFECT_DATA) && peal_root_data(t, NULL, s->symbol, s->a);
    if (s->symbol->kind == PEAL_SYMBOL_VAR)
        return join_var(t, s->symbol, peal_root_number(t, s->a));
    if (s->symbol->kind != PEAL_SYMBOL_LET)
        return false;
    t->numbers[s->symbol->slot] = peal_root_number(t, s->a);
    return true;
}

static bool read_assign(struct root_text *t, const struct peal_stmt *s)
{
    if (s->a->kind == PEAL_EXPR_NAME && s->a->symbol && s->a->symbol->kind == PEAL_SYMBOL_VAR)
        return join_var(t, s->a->symbol, peal_root_number(t, s->b));
    return act(t, EFFECT_DATA) && peal_root_data(t, s->a, NULL, s->b);
}

/* --- sums over all ranks --------------------------------------------------------------------- */

/* Is `first` equal to `turn` with 0 in place of the loop's variable? */
static bool is_turn_zero(const struct peal_expr *first, const struct peal_expr *turn,
                         const struct peal_symbol *q)
{
    if (!first || !turn)
        return first == turn;
    if (is_name(turn, q))
        return first->kind == PEAL_EXPR_INT && first->value == 0;
    if (first->kind != turn->kind || first->op != turn->op || first->builtin != turn->builtin ||
        first->fn != turn->fn || first->reduce != turn->reduce || first->value != turn->value ||
        first->real != turn->real || first->symbol != turn->symbol ||
        first->nslices != turn->nslices)
        return false;
    for (int i = 0; i < first->nslices; i++) {
        const struct peal_slice *x = &first->slices[i], *y = &turn->slices[i];
        if (x->kind != y->kind || !is_turn_zero(x->a, y->a, q) || !is_turn_zero(x->b, y->b, q))
            return false;
    }
    if (first->kind == PEAL_EXPR_CALL) {
        const struct peal_expr *y = turn->a;
        for (const struct peal_expr *x = first->a; x; x = x->next) {
            if (!is_turn_zero(x, y, q))
                return false;
            y = y->next;
        }
        return !y;
    }
    bool swaps = first->kind == PEAL_EXPR_BINARY &&
                 (first->op == PEAL_INT_EQ || first->op == PEAL_INT_NE) &&
                 is_turn_zero(first->a, turn->b, q) && is_turn_zero(first->b, turn->a, q);
    return swaps || (is_turn_zero(first->a, turn->a, q) && is_turn_zero(first->b, turn->b, q));
}

/* let acc = f(0); for q in 1 .. nranks { acc = op(acc, f(q)) }: the f(q), or NULL */
static const struct peal_expr *find_sum(struct root_text *t, const struct peal_stmt *let)
{
    const struct peal_stmt *loop = let->next;
    if (let->kind != PEAL_STMT_LET || let->symbol->kind != PEAL_SYMBOL_TILE || !loop ||
        loop->kind != PEAL_STMT_FOR || loop->c || loop->a->kind != PEAL_EXPR_INT ||
        loop->a->value != 1)
        return NULL;
    struct number end = peal_root_number(t, loop->b);
    const struct peal_stmt *add = loop->body;
    if (end.kind != NUMBER_SAME || !end.known || end.value != t->nranks || !add || add->next ||
        add->kind != PEAL_STMT_ASSIGN || !is_name(add->a, let->symbol))
        return NULL;
    const struct peal_expr *sum = add->b;
    if (sum->kind != PEAL_EXPR_CALL || sum->builtin != PEAL_BUILTIN_REDUCE ||
        !is_name(sum->a, let->symbol) || !sum->a->next || sum->a->next->next)
        return NULL;
    const struct peal_expr *turn = sum->a->next;
    return is_turn_zero(let->a, turn, loop->symbol) ? turn : NULL;
}

/* --- loops ----------------------------------------------------------------------------------- */

/* The state that reading a block changes, for a second attempt. */
struct attempt {
    struct number *numbers;
    struct formula *formulas;
    bool *is_var_seen;
    bool changed;
    uint32_t effects;
};

static bool save(const struct root_text *t, struct attempt *a)
{
    size_t n = t->kernel->nslots + 1u;
    *a = (struct attempt){.numbers = malloc(n * sizeof *a->numbers),
                          .formulas = malloc(n * sizeof *a->formulas),
                          .is_var_seen = malloc(n * sizeof *a->is_var_seen),
                          .changed = t->changed,
                          .effects = t->effects};
    if (!a->numbers || !a->formulas || !a->is_var_seen)
        return false;
    memcpy(a->numbers, t->numbers, n * sizeof *a->numbers);
    memcpy(a->formulas, t->formulas, n * sizeof *a->formulas);
    memcpy(a->is_var_seen, t->is_var_seen, n * sizeof *a->is_var_seen);
    return true;
}

static void restore(struct root_text *t, const struct attempt *a)
{
    size_t n = t->kernel->nslots + 1u;
    memcpy(t->numbers, a->numbers, n * sizeof *a->numbers);
    memcpy(t->formulas, a->formulas, n * sizeof *a->formulas);
    memcpy(t->is_var_seen, a->is_var_seen, n * sizeof *a->is_var_seen);
    t->changed = a->changed;
    t->effects = a->effects;
}

static void release(struct attempt *a)
{
    free(a->numbers);
    free(a->formulas);
    free(a->is_var_seen);
}

/* How often sums and differences of names and numbers name the variable. Anything else counts as
 * often. */
static uint32_t mentions(const struct peal_expr *e, const struct peal_symbol *s)
{
    enum { OFTEN = 2 };
    if (e->kind == PEAL_EXPR_NAME)
        return e->symbol == s;
    if (e->kind == PEAL_EXPR_INT)
        return 0;
    bool sum = e->kind == PEAL_EXPR_BINARY && (e->op == PEAL_INT_ADD || e->op == PEAL_INT_SUB);
    if (!sum)
        return OFTEN;
    uint32_t a = mentions(e->a, s), b = mentions(e->b, s);
    return a + b < OFTEN ? a + b : OFTEN;
}

/* Does it take each rank's number once while the variable does? */
static bool is_permutation(struct root_text *t, const struct peal_expr *e,
                           const struct peal_symbol *s)
{
    if (is_name(e, s))
        return true;
    return e->kind == PEAL_EXPR_BINARY && e->op == PEAL_INT_MOD &&
           peal_root_number(t, e).kind == NUMBER_RANK && mentions(e->a, s) == 1 &&
           e->b->kind == PEAL_EXPR_NAME && e->b->symbol != s;
}

static bool names(const struct peal_expr *e, const struct peal_symbol *s)
{
    if (!e)
        return false;
    if (e->kind == PEAL_EXPR_CALL) {
        for (const struct peal_expr *arg = e->a; arg; arg = arg->next) {
            if (names(arg, s))
                return true;
        }
        return false;
    }
    return is_name(e, s) || names(e->a, s) || names(e->b, s);
}

/* for s in 0 .. nranks { if s == p { ... } }: one iteration does something, whatever the order. */
static bool is_one_turn(struct root_text *t, const struct peal_stmt *loop)
{
    const struct peal_stmt *test = loop->body;
    if (!test || test->next || test->kind != PEAL_STMT_IF || test->other ||
        test->a->kind != PEAL_EXPR_BINARY || test->a->op != PEAL_INT_EQ)
        return false;
    const struct peal_expr *a = test->a->a, *b = test->a->b;
    return (is_permutation(t, a, loop->symbol) && !names(b, loop->symbol)) ||
           (is_permutation(t, b, loop->symbol) && !names(a, loop->symbol));
}

/* Its variable is a rank, and the images come in another order. */
static bool read_over_ranks(struct root_text *t, const struct peal_stmt *s)
{
    uint32_t before = t->effects;
    t->numbers[s->symbol->slot] = (struct number){NUMBER_RANK, false, 0, 1};
    bool once = is_one_turn(t, s);
    t->effects = 0;
    bool good = read_block(t, s->body);
    bool commutes = t->effects == 0 || t->effects == EFFECT_NOTIFY || t->effects == EFFECT_WAIT;
    t->effects |= before;
    return good && (once || commutes);
}

static bool read_for(struct root_text *t, const struct peal_stmt *s)
{
    struct number from = peal_root_number(t, s->a), to = peal_root_number(t, s->b);
    struct number step = peal_root_number_or_one(t, s->c);
    if (from.kind != NUMBER_SAME || to.kind != NUMBER_SAME || step.kind != NUMBER_SAME)
        return false;
    bool known = from.known && to.known && step.known && step.value == 1;
    if (known && from.value >= to.value)
        return true;
    if (known && from.value == to.value - 1) {
        t->numbers[s->symbol->slot] = from;
        return read_block(t, s->body);
    }
    struct attempt attempt;
    bool good = save(t, &attempt);
    if (good) {
        t->numbers[s->symbol->slot] = (struct number){NUMBER_SAME, false, 0, 1};
        good = read_block(t, s->body);
        if (!good && known && from.value == 0 && to.value == t->nranks) {
            restore(t, &attempt);
            good = read_over_ranks(t, s);
        }
    }
    release(&attempt);
    return good;
}

/* --- statements ------------------------------------------------------------------------------ */

static bool read_if(struct root_text *t, const struct peal_stmt *s)
{
    struct number test = peal_root_number(t, s->a);
    bool same = test.kind == NUMBER_SAME;
    if (same && test.known)
        return read_block(t, test.value ? s->body : s->other);
    t->dead += !same;
    bool good = read_block(t, s->body) && read_block(t, s->other);
    t->dead -= !same;
    return good;
}

static bool read_decl(struct root_text *t, const struct peal_symbol *s)
{
    for (int i = 0; i < 2; i++) {
        if (s->shape[i] && peal_root_number(t, s->shape[i]).kind != NUMBER_SAME)
            return false;
    }
    return s->kind == PEAL_SYMBOL_BUFFER ||
           (s->kind == PEAL_SYMBOL_SIGNAL && s->mode == PEAL_MODE_ONE_WRITER);
}

static bool read_params(struct root_text *t)
{
    for (int i = 0; i < t->kernel->nparams; i++) {
        const struct peal_symbol *s = t->kernel->params[i];
        if (s->kind == PEAL_SYMBOL_BUFFER && !read_decl(t, s))
            return false;
    }
    return true;
}

static bool read_sync(struct root_text *t, const struct peal_stmt *s)
{
    if (!peal_stmt_orders_fully(s) || s->is_set || s->is_equal)
        return false;
    return act(t, s->kind == PEAL_STMT_NOTIFY ? EFFECT_NOTIFY : EFFECT_WAIT) &&
           peal_root_number(t, s->b).kind == NUMBER_SAME && peal_root_cell(t, s->a);
}

static bool read_statement(struct root_text *t, const struct peal_stmt *s)
{
    switch (s->kind) {
    case PEAL_STMT_DECL:
        return !t->dead && read_decl(t, s->symbol);
    case PEAL_STMT_LET:
    case PEAL_STMT_VAR:
        return read_let(t, s);
    case PEAL_STMT_ASSIGN:
        return read_assign(t, s);
    case PEAL_STMT_NOTIFY:
    case PEAL_STMT_WAIT:
        return read_sync(t, s);
    case PEAL_STMT_FOR:
        return read_for(t, s);
    case PEAL_STMT_FOR_PEERS:
        t->numbers[s->symbol->slot] = (struct number){NUMBER_RANK, false, 0, 1};
        return read_block(t, s->body);
    case PEAL_STMT_IF:
        return read_if(t, s);
    case PEAL_STMT_ASSERT:
        return !t->dead && peal_root_number(t, s->a).kind == NUMBER_SAME;
    case PEAL_STMT_SCOPE:
        return read_block(t, s->body);
    default:
        return false;
    }
}

static bool read_block(struct root_text *t, const struct peal_stmt *s)
{
    while (s) {
        const struct peal_expr *turn = find_sum(t, s);
        if (turn) {
            t->numbers[s->next->symbol->slot] = (struct number){NUMBER_RANK, false, 0, 1};
            if (!act(t, EFFECT_DATA) || !peal_root_data(t, NULL, s->symbol, turn))
                return false;
            s = s->next->next;
            continue;
        }
        if (!read_statement(t, s))
            return false;
        s = s->next;
    }
    return true;
}

/* --- the whole kernel
 * ------------------------------------------------------------------------------- */

/* The contract's x and y, as instantiate finds them, and whether their parts move as it demands. */
static bool carries_contract(const struct root_text *t)
{
    const struct peal_kernel *k = t->kernel;
    const struct peal_symbol *x = NULL, *y = NULL;
    enum peal_contract contract;
    if (!k->implements)
        return true;
    if (!peal_contract_find(k->implements, strlen(k->implements), &contract))
        return false;
    for (int i = k->nparams; i-- > 0;) {
        const struct peal_symbol *s = k->params[i];
        if (s->kind == PEAL_SYMBOL_BUFFER && (s->dir & PEAL_DIR_IN))
            x = s;
        if (s->kind == PEAL_SYMBOL_BUFFER && (s->dir & PEAL_DIR_OUT))
            y = s;
    }
    if (!x || !y)
        return false;
    struct formula fx = t->formulas[x->slot], fy = t->formulas[y->slot];
    bool x_moves = fx.kind == FORMULA_MOVES, y_moves = fy.kind == FORMULA_MOVES;
    switch (contract) {
    case PEAL_CONTRACT_BROADCAST:
    case PEAL_CONTRACT_REDUCE:
        return x_moves == y_moves && (!x_moves || fx.unit == fy.unit);
    case PEAL_CONTRACT_GATHER:
        return !x_moves && y_moves;
    case PEAL_CONTRACT_SCATTER:
        return x_moves && !y_moves;
    default:
        return false;
    }
}

static bool takes(const struct peal_kernel *kernel, const struct peal_bind *bind)
{
    if (bind->in_place || kernel->nformulas || peal_reduce_is_user(bind->reduce))
        return false;
    if (bind->cubes)
        return false;
    if (bind->nodes) {
        for (uint32_t i = 0; i < bind->nranks; i++) {
            if (bind->nodes[i])
                return false;
        }
    }
    for (size_t i = 0; i < bind->nvalues; i++) {
        if (strcmp(bind->values[i].name, "root") == 0)
            return false;
    }
    for (const struct peal_symbol *s = kernel->symbols; s; s = s->next) {
        if (s->kind == PEAL_SYMBOL_INTS || s->is_local)
            return false;
    }
    return true;
}

bool peal_root_read(struct root_text *t, const struct peal_kernel *kernel,
                    const struct peal_bind *bind)
{
    size_t n = kernel->nslots + 1u;
    *t = (struct root_text){.kernel = kernel, .bind = bind, .nranks = bind->nranks};
    if (!takes(kernel, bind))
        return false;
    t->numbers = calloc(n, sizeof *t->numbers);
    t->formulas = calloc(n, sizeof *t->formulas);
    t->is_var_seen = calloc(n, sizeof *t->is_var_seen);
    if (!t->numbers || !t->formulas || !t->is_var_seen)
        return false;
    /* Repeated until nothing changes: a formula or a variable that is found late holds for what
     * came before. Each slot changes at most twice. */
    for (size_t i = 0; i < 2 * n + 2; i++) {
        t->changed = false;
        if (!read_params(t) || !read_block(t, kernel->body))
            return false;
        if (!t->changed)
            return carries_contract(t);
    }
    return false;
}

void peal_root_release(struct root_text *t)
{
    free(t->numbers);
    free(t->formulas);
    free(t->is_var_seen);
}

bool peal_symmetry_of_text(const struct peal_kernel *kernel, const struct peal_bind *bind)
{
    struct root_text t;
    bool good = peal_root_read(&t, kernel, bind);
    peal_root_release(&t);
    return good;
}
