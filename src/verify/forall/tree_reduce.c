/* SPDX-License-Identifier: Apache-2.0 */
/* Is the text that of a reduction along a binomial tree? See docs/verifier-all-ranks.md,
 * "Reductions along trees".
 *
 * The tree is recognised by its text. With v = (rank - root) % nranks, the children are at distance
 * 2^k while 2^(k+1) divides v, and the parent is at distance -`above`: the loop over the children
 * leaves `above` at the lowest bit of v. Between a rank and a child, and between a rank and its
 * parent, there are notifies, waits and one move of the partial sum. Whatever is not named here is
 * refused.
 */
#include "verify/forall/tree.h"
#include "verify/forall/words.h"

struct reduce_tree {
    const struct peal_kernel *kernel;
    struct peal_forall *out;
    const struct peal_symbol *dim, *v, *sum, *above, *k;
    const struct peal_symbol *partner; /* the name of the child, then of the parent */
    const struct peal_symbol *window;  /* the buffer that carries the partial sum */
    bool has_loop;
    uint32_t reads, writes; /* of the partial sum, in the text */
};

static bool refuse(struct reduce_tree *t, struct peal_pos at, const char *why)
{
    return peal_word_refuse(t->out, at, why);
}

/* The child while the loop is read, and the parent after it. */
static bool is_partner(const struct reduce_tree *t, const struct peal_expr *e)
{
    if (peal_word_is_name(e, t->partner))
        return true;
    if (t->k)
        return peal_word_is_shifted(peal_word_distance(e, PEAL_INT_ADD), 1, t->k);
    return peal_word_is_name(peal_word_distance(e, PEAL_INT_SUB), t->above);
}

static bool read_sync(struct reduce_tree *t, const struct peal_stmt *s)
{
    if (s->kind == PEAL_STMT_WAIT) {
        if (peal_word_is_plain_wait(s) && is_partner(t, peal_word_index(s->a)))
            return true;
        return refuse(t, s->pos, "a wait that is not for a constant of the parent or a child");
    }
    const struct peal_expr *index = s->a->kind == PEAL_EXPR_AT ? peal_word_index(s->a->a) : NULL;
    if (peal_word_is_plain_notify(s) && peal_word_is_builtin(index, PEAL_RANK) &&
        is_partner(t, s->a->b))
        return true;
    return refuse(t, s->pos, "a notify that is not of its own cell at the parent or a child");
}

/* acc = op(acc, window@child) */
static bool is_addition(struct reduce_tree *t, const struct peal_stmt *s)
{
    const struct peal_expr *sum = s->b;
    if (!peal_word_is_name(s->a, t->sum) || sum->kind != PEAL_EXPR_CALL ||
        sum->builtin != PEAL_BUILTIN_REDUCE || !sum->symbol || !peal_word_is_name(sum->a, t->sum))
        return false;
    const struct peal_expr *from = sum->a->next;
    if (!from || from->next || from->kind != PEAL_EXPR_AT || !peal_word_is_vector(from->a) ||
        from->a->symbol->place != PEAL_PLACE_WINDOW || !is_partner(t, from->b))
        return false;
    t->window = from->a->symbol;
    t->reads++;
    return true;
}

/* What a rank does with one child, or with its parent. */
static bool read_edge(struct reduce_tree *t, const struct peal_stmt *s)
{
    t->partner = NULL;
    for (; s; s = s->next) {
        bool good = false;
        if (s->kind == PEAL_STMT_NOTIFY || s->kind == PEAL_STMT_WAIT) {
            if (!read_sync(t, s))
                return false;
            good = true;
        } else if (s->kind == PEAL_STMT_LET && s->symbol->kind == PEAL_SYMBOL_LET && !t->partner) {
            good = is_partner(t, s->a);
            t->partner = s->symbol;
        } else if (s->kind == PEAL_STMT_ASSIGN && t->k) {
            good = is_addition(t, s);
        } else if (s->kind == PEAL_STMT_ASSIGN) {
            good = peal_word_is_name(s->a, t->window) && peal_word_is_name(s->b, t->sum);
            t->writes++;
        }
        if (!good)
            return refuse(t, s->pos, "a statement that no edge of a tree of sums has");
    }
    t->partner = NULL;
    return true;
}

/* for k in 0 .. log2(nranks) + 1 { if v % (2 << k) == 0 { if v + (1 << k) < nranks { ... } above =
 * 2 << k } } */
static bool read_children(struct reduce_tree *t, const struct peal_stmt *s)
{
    const struct peal_stmt *divides = s->body, *inside = NULL, *rise = NULL;
    bool range = t->v && t->sum && t->above && !t->has_loop && !s->c && peal_word_is_int(s->a, 0) &&
                 peal_word_is_height(s->b);
    bool outer = divides && !divides->next && divides->kind == PEAL_STMT_IF && !divides->other &&
                 peal_word_is_binary(divides->a, PEAL_INT_EQ) &&
                 peal_word_is_int(divides->a->b, 0) &&
                 peal_word_is_binary(divides->a->a, PEAL_INT_MOD) &&
                 peal_word_is_name(divides->a->a->a, t->v) &&
                 peal_word_is_shifted(divides->a->a->b, 2, s->symbol);
    if (outer) {
        inside = divides->body;
        rise = inside ? inside->next : NULL;
    }
    bool test = inside && inside->kind == PEAL_STMT_IF && !inside->other &&
                peal_word_is_binary(inside->a, PEAL_INT_LT) &&
                peal_word_is_builtin(inside->a->b, PEAL_NRANKS) &&
                peal_word_is_binary(inside->a->a, PEAL_INT_ADD) &&
                peal_word_is_name(inside->a->a->a, t->v) &&
                peal_word_is_shifted(inside->a->a->b, 1, s->symbol);
    bool rises = rise && !rise->next && rise->kind == PEAL_STMT_ASSIGN &&
                 peal_word_is_name(rise->a, t->above) &&
                 peal_word_is_shifted(rise->b, 2, s->symbol);
    if (!range || !test || !rises)
        return refuse(t, s->pos, "a loop that is not over the children in a tree of sums");
    t->k = s->symbol;
    t->has_loop = true;
    bool good = read_edge(t, inside->body);
    t->k = NULL;
    if (good && t->reads != 1)
        return refuse(t, s->pos, "a child's partial sum is not added exactly once");
    return good;
}

/* y = final(op, acc), or y = acc */
static bool is_result(const struct reduce_tree *t, const struct peal_stmt *s)
{
    if (!s || s->next || s->kind != PEAL_STMT_ASSIGN || !peal_word_is_vector(s->a) ||
        s->a->symbol->kind != PEAL_SYMBOL_BUFFER || s->a->symbol->place != PEAL_PLACE_PARAM)
        return false;
    const struct peal_expr *e = s->b;
    if (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_FINAL && e->a)
        e = e->a->next;
    return peal_word_is_name(e, t->sum);
}

/* if v == 0 { y = ... } else { what is done with the parent } */
static bool read_end(struct reduce_tree *t, const struct peal_stmt *s)
{
    bool test = t->has_loop && !t->writes && peal_word_is_binary(s->a, PEAL_INT_EQ) &&
                peal_word_is_name(s->a->a, t->v) && peal_word_is_int(s->a->b, 0);
    if (!test || !is_result(t, s->body) || !s->other)
        return refuse(t, s->a->pos, "a condition that is not about being the root of the sums");
    if (!read_edge(t, s->other))
        return false;
    if (t->writes != 1)
        return refuse(t, s->pos, "a partial sum is not handed over exactly once");
    return !s->next || refuse(t, s->next->pos, "a statement after the end of the tree");
}

static bool read_let(struct reduce_tree *t, const struct peal_stmt *s)
{
    if (s->symbol->kind == PEAL_SYMBOL_TILE && !t->sum && peal_word_is_vector(s->a) &&
        s->a->symbol->place == PEAL_PLACE_PARAM && s->a->symbol->kind == PEAL_SYMBOL_BUFFER)
        t->sum = s->symbol;
    else if (s->kind == PEAL_STMT_VAR && !t->above && peal_word_is_int(s->a, 1))
        t->above = s->symbol;
    else if (s->kind == PEAL_STMT_LET && !t->v &&
             peal_word_is_root(peal_word_distance(s->a, PEAL_INT_SUB)))
        t->v = s->symbol;
    else
        return refuse(t, s->pos, "a name that no tree of sums has");
    return !t->has_loop || refuse(t, s->pos, "a name after the loop over the children");
}

static bool read_decl(struct reduce_tree *t, const struct peal_stmt *s)
{
    const struct peal_symbol *d = s->symbol;
    bool signal = d->kind == PEAL_SYMBOL_SIGNAL && d->mode == PEAL_MODE_ONE_WRITER &&
                  peal_word_is_builtin(d->shape[0], PEAL_NRANKS);
    bool vector =
        d->kind == PEAL_SYMBOL_BUFFER && peal_word_is_name(d->shape[0], t->dim) && !d->shape[1];
    return signal || vector ||
           refuse(t, s->pos, "neither a vector nor a signal with a cell per rank");
}

static bool read_stmt(struct reduce_tree *t, const struct peal_stmt *s)
{
    switch (s->kind) {
    case PEAL_STMT_DECL:
        return read_decl(t, s);
    case PEAL_STMT_LET:
    case PEAL_STMT_VAR:
        return read_let(t, s);
    case PEAL_STMT_FOR:
        return read_children(t, s);
    case PEAL_STMT_IF:
        return read_end(t, s);
    default:
        return refuse(t, s->pos, "a statement that no tree of sums has");
    }
}

bool peal_tree_classify_reduce(const struct peal_kernel *kernel, struct peal_forall *out)
{
    struct reduce_tree t = {.kernel = kernel, .out = out};
    out->why[0] = '\0';
    if (!kernel->implements || strcmp(kernel->implements, "reduce") != 0)
        return refuse(&t, kernel->pos, "a tree of sums is followed for reduce only");
    if (!peal_tree_read_params(t.kernel, t.out, &t.dim))
        return false;
    for (const struct peal_stmt *s = kernel->body; s; s = s->next) {
        if (!read_stmt(&t, s))
            return false;
    }
    return t.writes == 1 || refuse(&t, kernel->pos, "a tree without an end");
}
