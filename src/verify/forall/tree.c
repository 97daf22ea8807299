/* SPDX-License-Identifier: Apache-2.0 */
/* Is the text that of a broadcast along a binomial tree? See docs/verifier-all-ranks.md, "Trees".
 *
 * The tree is recognised by its text. With v = (rank - root) % nranks and bits = log2(2 * v + 1),
 * the parent is at distance -2^(bits - 1), and the children are at distance 2^k, for k from bits
 * on, while v + 2^k < nranks. Everything else in the text is about this rank, its parent or its
 * children. Whatever is not named here is refused.
 */
#include "verify/forall/tree.h"

#include "verify/forall/words.h"

#include <stdlib.h>

enum role { ROLE_ANY, ROLE_ROOT, ROLE_OTHER };
enum partner { PARTNER_NONE, PARTNER_PARENT, PARTNER_CHILD };

struct tree {
    const struct peal_kernel *kernel;
    struct peal_forall *out;
    const struct peal_symbol *v, *bits, *parent, *k, *dim;
    enum role role;
    bool in_children;
    bool waits_for_child; /* a wait for a child has been read */
    uint32_t reads;       /* places in the text where the parent's memory is read */
};

static bool refuse(struct tree *t, struct peal_pos at, const char *why)
{
    return peal_word_refuse(t->out, at, why);
}

/* --- integers -------------------------------------------------------------------------------- */

/* log2(2 * v + 1) */
static bool is_bits(const struct tree *t, const struct peal_expr *e)
{
    const struct peal_expr *sum = peal_word_is_log2(e) ? e->a : NULL;
    return peal_word_is_binary(sum, PEAL_INT_ADD) && peal_word_is_int(sum->b, 1) &&
           peal_word_is_binary(sum->a, PEAL_INT_MUL) && peal_word_is_int(sum->a->a, 2) &&
           peal_word_is_name(sum->a->b, t->v);
}

/* (rank - (1 << bits) / 2) % nranks */
static bool is_parent(const struct tree *t, const struct peal_expr *e)
{
    const struct peal_expr *far = peal_word_distance(e, PEAL_INT_SUB);
    return peal_word_is_binary(far, PEAL_INT_DIV) && peal_word_is_shifted(far->a, 1, t->bits) &&
           peal_word_is_int(far->b, 2);
}

/* (rank + (1 << k)) % nranks */
static bool is_child(const struct tree *t, const struct peal_expr *e)
{
    return t->in_children && peal_word_is_shifted(peal_word_distance(e, PEAL_INT_ADD), 1, t->k);
}

static enum partner partner_of(const struct tree *t, const struct peal_expr *e)
{
    if (t->role == ROLE_OTHER && (peal_word_is_name(e, t->parent) || is_parent(t, e)))
        return PARTNER_PARENT;
    return is_child(t, e) ? PARTNER_CHILD : PARTNER_NONE;
}

/* --- statements ------------------------------------------------------------------------------ */

static bool read_block(struct tree *t, const struct peal_stmt *s);

static bool read_notify(struct tree *t, const struct peal_stmt *s)
{
    const struct peal_expr *index = s->a->kind == PEAL_EXPR_AT ? peal_word_index(s->a->a) : NULL;
    if (!peal_word_is_plain_notify(s))
        return refuse(t, s->pos, "a notify that does not add a positive constant");
    if (!index || !peal_word_is_builtin(index, PEAL_RANK) || partner_of(t, s->a->b) == PARTNER_NONE)
        return refuse(t, s->pos, "a notify that is not of its own cell at the parent or a child");
    if (t->waits_for_child)
        return refuse(t, s->pos, "a notify after a wait for a child");
    return true;
}

static bool read_wait(struct tree *t, const struct peal_stmt *s)
{
    const struct peal_expr *index = peal_word_index(s->a);
    enum partner partner = index ? partner_of(t, index) : PARTNER_NONE;
    if (!peal_word_is_plain_wait(s))
        return refuse(t, s->pos, "a threshold that is not a constant");
    if (partner == PARTNER_NONE)
        return refuse(t, s->pos, "a wait that is not for the parent or a child");
    if (partner == PARTNER_PARENT && t->waits_for_child)
        return refuse(t, s->pos, "a wait for the parent after one for a child");
    t->waits_for_child = t->waits_for_child || partner == PARTNER_CHILD;
    return true;
}

static bool read_source(struct tree *t, const struct peal_expr *e)
{
    if (peal_word_is_vector(e))
        return true;
    bool remote = e->kind == PEAL_EXPR_AT && peal_word_is_vector(e->a) &&
                  partner_of(t, e->b) == PARTNER_PARENT;
    if (!remote)
        return refuse(t, e->pos, "an operand that is neither a whole vector nor the parent's");
    if (t->reads++)
        return refuse(t, e->pos, "a second place where the parent's memory is read");
    return true;
}

static bool read_assign(struct tree *t, const struct peal_stmt *s)
{
    if (t->in_children)
        return refuse(t, s->pos, "data that moves once per child");
    if (!peal_word_is_vector(s->a))
        return refuse(t, s->pos, "a place that is not a whole vector of this rank");
    return read_source(t, s->b);
}

static bool read_let(struct tree *t, const struct peal_stmt *s)
{
    const struct peal_expr *far = peal_word_distance(s->a, PEAL_INT_SUB);
    if (s->symbol->kind == PEAL_SYMBOL_TILE && !t->in_children)
        return read_source(t, s->a);
    if (!t->v && peal_word_is_root(far))
        t->v = s->symbol;
    else if (t->v && !t->bits && is_bits(t, s->a))
        t->bits = s->symbol;
    else if (t->bits && t->role == ROLE_OTHER && is_parent(t, s->a))
        t->parent = s->symbol;
    else
        return refuse(t, s->pos, "a name for a number that no binomial tree has");
    return true;
}

/* v == 0 or v != 0; such conditions are not nested. */
static bool read_if(struct tree *t, const struct peal_stmt *s)
{
    bool equal = peal_word_is_binary(s->a, PEAL_INT_EQ);
    if ((!equal && !peal_word_is_binary(s->a, PEAL_INT_NE)) || !peal_word_is_name(s->a->a, t->v) ||
        !peal_word_is_int(s->a->b, 0) || t->role != ROLE_ANY || t->in_children)
        return refuse(t, s->a->pos, "a condition that is not about being the root");
    t->role = equal ? ROLE_ROOT : ROLE_OTHER;
    bool good = read_block(t, s->body);
    t->role = equal ? ROLE_OTHER : ROLE_ROOT;
    good = good && read_block(t, s->other);
    t->role = ROLE_ANY;
    return good;
}

/* for k in bits .. log2(nranks) + 1 { if v + (1 << k) < nranks { ... } } */
static bool read_children(struct tree *t, const struct peal_stmt *s)
{
    const struct peal_stmt *test = s->body;
    bool range = t->bits && !s->c && peal_word_is_name(s->a, t->bits) && peal_word_is_height(s->b);
    bool single = test && !test->next && test->kind == PEAL_STMT_IF && !test->other;
    const struct peal_expr *less = single ? test->a : NULL;
    bool inside =
        peal_word_is_binary(less, PEAL_INT_LT) && peal_word_is_builtin(less->b, PEAL_NRANKS) &&
        peal_word_is_binary(less->a, PEAL_INT_ADD) && peal_word_is_name(less->a->a, t->v) &&
        peal_word_is_shifted(less->a->b, 1, s->symbol);
    if (!range || !inside || t->in_children || t->role != ROLE_ANY)
        return refuse(t, s->pos, "a loop that is not over the children in a binomial tree");
    t->k = s->symbol;
    t->in_children = true;
    bool good = read_block(t, test->body);
    t->in_children = false;
    return good;
}

static bool is_dim(const struct tree *t, const struct peal_expr *e)
{
    return peal_word_is_name(e, t->dim);
}

static bool read_decl(struct tree *t, const struct peal_stmt *s)
{
    const struct peal_symbol *d = s->symbol;
    bool signal = d->kind == PEAL_SYMBOL_SIGNAL && d->mode == PEAL_MODE_ONE_WRITER &&
                  peal_word_is_builtin(d->shape[0], PEAL_NRANKS);
    bool vector = d->kind == PEAL_SYMBOL_BUFFER && is_dim(t, d->shape[0]) && !d->shape[1];
    return signal || vector ||
           refuse(t, s->pos, "neither a vector nor a signal with a cell per rank");
}

static bool read_statement(struct tree *t, const struct peal_stmt *s)
{
    switch (s->kind) {
    case PEAL_STMT_DECL:
        return read_decl(t, s);
    case PEAL_STMT_LET:
        return read_let(t, s);
    case PEAL_STMT_ASSIGN:
        return read_assign(t, s);
    case PEAL_STMT_NOTIFY:
        return read_notify(t, s);
    case PEAL_STMT_WAIT:
        return read_wait(t, s);
    case PEAL_STMT_IF:
        return read_if(t, s);
    case PEAL_STMT_FOR:
        return read_children(t, s);
    default:
        return refuse(t, s->pos, "a statement that no tree has");
    }
}

static bool read_block(struct tree *t, const struct peal_stmt *s)
{
    for (; s; s = s->next) {
        if (!read_statement(t, s))
            return false;
    }
    return true;
}

bool peal_tree_read_params(const struct peal_kernel *kernel, struct peal_forall *out,
                           const struct peal_symbol **dim)
{
    for (const struct peal_symbol *s = kernel->symbols; s; s = s->next) {
        if (s->kind == PEAL_SYMBOL_DIM && *dim)
            return peal_word_refuse(out, s->pos, "more than one dimension");
        if (s->kind == PEAL_SYMBOL_DIM)
            *dim = s;
    }
    for (const struct peal_symbol *s = kernel->symbols; s; s = s->next) {
        bool param = s->kind == PEAL_SYMBOL_BUFFER && s->place == PEAL_PLACE_PARAM;
        bool number = s->kind == PEAL_SYMBOL_INTS || s->is_local ||
                      (s->kind == PEAL_SYMBOL_INT && strcmp(s->name, "root") != 0);
        if (number)
            return peal_word_refuse(out, s->pos,
                                    "a number that the caller gives, besides count and root");
        if (param && (s->is_window || s->shape[1] || !peal_word_is_name(s->shape[0], *dim)))
            return peal_word_refuse(out, s->pos, "a parameter that is not a vector of this rank");
    }
    return true;
}

bool peal_tree_classify(const struct peal_kernel *kernel, struct peal_forall *out)
{
    struct tree t = {.kernel = kernel, .out = out};
    out->why[0] = '\0';
    if (!kernel->implements || strcmp(kernel->implements, "broadcast") != 0)
        return refuse(&t, kernel->pos, "a tree is followed for broadcast only");
    return peal_tree_read_params(t.kernel, t.out, &t.dim) && read_block(&t, kernel->body);
}

/* --- plans ----------------------------------------------------------------------------------- */

/* The parent's number, counted from the root; that of 0 is 0. Broadcasts clear the highest bit,
 * reductions the lowest. */
static uint32_t parent_number(const struct peal_plan *plan, uint32_t v)
{
    uint32_t power = 1;
    if (plan->contract == PEAL_CONTRACT_REDUCE)
        return v & (v - 1);
    while (power <= v / 2)
        power *= 2;
    return v ? v - power : 0;
}

static bool are_linked(const struct peal_plan *plan, uint32_t a, uint32_t b)
{
    uint32_t n = plan->nranks, v = (a + n - plan->root) % n, w = (b + n - plan->root) % n;
    return v != w && ((v && parent_number(plan, v) == w) || (w && parent_number(plan, w) == v));
}

static bool has_edges_only(const struct peal_plan *plan)
{
    for (uint32_t rank = 0; rank < plan->nranks; rank++) {
        const struct peal_lane *lane = peal_plan_lane(plan, rank, 0);
        const struct peal_op *op = peal_plan_ops(plan) + lane->first_op;
        if (peal_plan_lane_count(plan, rank) != 1)
            return false;
        for (uint64_t i = 0; i < lane->ops; i++) {
            if (!peal_op_is_sync(&op[i]))
                continue;
            const struct peal_signal *s = &peal_plan_signals(plan)[peal_op_signal(&op[i])];
            uint32_t cell = op[i].sync.cell - s->first_cell;
            bool notify = peal_op_is_notify(&op[i]) && cell == rank;
            if (!notify && !peal_op_is_wait(&op[i]))
                return false;
            if (!are_linked(plan, rank, notify ? op[i].sync.rank : cell))
                return false;
        }
    }
    return true;
}

bool peal_tree_matches(const struct peal_plan_request *request)
{
    static const uint32_t sizes[] = {9, 16, 21};
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        struct peal_plan_request r = *request;
        struct peal_plan *plan = NULL;
        struct peal_diags diags;
        r.count = 4;
        r.invent = true;
        r.bind.nranks = sizes[i / 2];
        r.bind.rank = PEAL_NONE;
        r.bind.root = i % 2 ? 3 : 0;
        peal_diags_init(&diags);
        bool good = peal_plan_make(&r, &diags, &plan) == PEAL_OK && has_edges_only(plan);
        peal_diags_release(&diags);
        free(plan);
        if (!good)
            return false;
    }
    return true;
}
