/* SPDX-License-Identifier: Apache-2.0 */
/* See normal.h. The copy is changed in place, statement by statement in the order of the text, so
 * that `value` always has what a name stands for at this point. */
#include "verify/forall/normal.h"

#include "verify/forall/linear.h"
#include "verify/forall/words.h"

#include <stdlib.h>

enum { MAX_NODES = 1 << 18 };

struct normalizer {
    struct peal_module *module;
    struct peal_kernel *kernel;
    struct peal_expr **value; /* [slot] what a let or variable stands for here, or NULL */
    bool *followed;           /* [slot] variables whose assignments are all understood */
    bool *is_rank;            /* [slot] loop variables that are ranks */
    uint32_t nodes;
    bool even;      /* every rank has asserted that nranks divides the dimension */
    uint32_t depth; /* of loops and branches */
    bool rotations, failed;
    bool divided; /* see normal.h */
};

/* --- expressions ----------------------------------------------------------------------------- */

/* How many nodes a tree has; stops counting at MAX_NODES. */
static void count_nodes(const struct peal_expr *e, uint32_t *count)
{
    for (; e && *count < MAX_NODES; e = e->next) {
        ++*count;
        count_nodes(e->a, count);
        if (e->b)
            count_nodes(e->b, count);
        for (int i = 0; i < e->nslices; i++) {
            count_nodes(e->slices[i].a, count);
            count_nodes(e->slices[i].b, count);
        }
    }
}

/* Chains of names can grow to any size: there is a limit for all copies together. */
static struct peal_expr *copy_of(struct normalizer *n, const struct peal_expr *e)
{
    struct peal_expr *copy = NULL;
    count_nodes(e, &n->nodes);
    if (n->nodes < MAX_NODES)
        copy = peal_expr_copy(n->module, e);
    n->failed = n->failed || !copy;
    return copy;
}

static struct peal_expr *new_int(struct normalizer *n, const struct peal_expr *at, int64_t value)
{
    struct peal_expr *e = peal_expr_new(n->module, PEAL_EXPR_INT, at->pos);
    n->failed = n->failed || !e;
    if (!e)
        return NULL;
    e->type = (struct peal_type){.kind = PEAL_TYPE_INT};
    e->value = value;
    e->height = 1;
    return e;
}

static struct peal_expr *new_binary(struct normalizer *n, enum peal_int_op op, struct peal_expr *a,
                                    struct peal_expr *b)
{
    struct peal_expr *e = a && b ? peal_expr_new(n->module, PEAL_EXPR_BINARY, a->pos) : NULL;
    n->failed = n->failed || !e;
    if (!e)
        return NULL;
    e->type = (struct peal_type){.kind = PEAL_TYPE_INT};
    e->op = op;
    e->a = a;
    e->b = b;
    n->failed = n->failed || !peal_expr_measure(e);
    return e;
}

/* The expression of a sum: its first term that is added, then the others. */
static struct peal_expr *build_sum(struct normalizer *n, const struct linear *sum,
                                   const struct peal_expr *at)
{
    struct peal_expr *e = NULL;
    for (int negative = 0; negative < 2; negative++) {
        for (uint32_t i = 0; i < sum->nterms; i++) {
            const struct linear_term *t = &sum->terms[i];
            if (!t->factor || (t->factor < 0) != negative)
                continue;
            int64_t factor = t->factor < 0 ? -t->factor : t->factor;
            struct peal_expr *term = copy_of(n, t->atom);
            if (factor != 1)
                term = new_binary(n, PEAL_INT_MUL, new_int(n, at, factor), term);
            if (!e && negative)
                e = new_int(n, at, 0);
            e = e ? new_binary(n, negative ? PEAL_INT_SUB : PEAL_INT_ADD, e, term) : term;
        }
    }
    if (!e)
        return new_int(n, at, sum->one);
    if (sum->one > 0)
        e = new_binary(n, PEAL_INT_ADD, e, new_int(n, at, sum->one));
    else if (sum->one < 0)
        e = new_binary(n, PEAL_INT_SUB, e, new_int(n, at, -sum->one));
    return e;
}

/* Is it from 0 to nranks - 1, whatever the number of ranks? */
static bool is_rank(const struct normalizer *n, const struct peal_expr *e)
{
    return peal_word_is_builtin(e, PEAL_RANK) || peal_word_is_root(e) ||
           (e->kind == PEAL_EXPR_NAME && e->symbol && n->is_rank[e->symbol->slot]);
}

static struct peal_expr *simplify_modulo(struct normalizer *n, struct peal_expr *e)
{
    struct linear sum = peal_linear_of(e->a, true);
    if (!sum.good)
        return e;
    peal_linear_pack(&sum);
    if (!sum.nterms && sum.one == 0)
        return new_int(n, e, 0);
    if (sum.nterms == 1 && sum.terms[0].factor == 1 && sum.one == 0 &&
        is_rank(n, sum.terms[0].atom))
        return copy_of(n, sum.terms[0].atom);
    e->a = build_sum(n, &sum, e);
    if (!n->failed)
        n->failed = !peal_expr_measure(e);
    return e;
}

static bool is_sum(const struct peal_expr *e)
{
    bool number = e->type.kind == PEAL_TYPE_INT;
    return number && ((e->kind == PEAL_EXPR_BINARY &&
                       (e->op == PEAL_INT_ADD || e->op == PEAL_INT_SUB || e->op == PEAL_INT_MUL)) ||
                      (e->kind == PEAL_EXPR_UNARY && e->op == PEAL_INT_NEG));
}

static struct peal_expr *simplify_sum(struct normalizer *n, struct peal_expr *e)
{
    struct linear sum = peal_linear_of(e, false);
    if (!sum.good)
        return e;
    peal_linear_pack(&sum);
    bool itself = sum.nterms == 1 && sum.terms[0].factor == 1 && !sum.one && sum.terms[0].atom == e;
    return itself ? e : build_sum(n, &sum, e);
}

/* --- lengths and slices ---------------------------------------------------------------------- */

/* The number of elements of a buffer or a part of one, if it is one expression; otherwise NULL. */
static struct peal_expr *length_of(struct normalizer *n, const struct peal_expr *e)
{
    if (e->kind == PEAL_EXPR_AT)
        return length_of(n, e->a);
    if (e->kind == PEAL_EXPR_NAME && e->symbol && e->symbol->kind == PEAL_SYMBOL_BUFFER &&
        e->symbol->shape[0] && !e->symbol->shape[1])
        return copy_of(n, e->symbol->shape[0]);
    if (e->kind != PEAL_EXPR_SLICE || e->nslices != 1)
        return NULL;
    const struct peal_slice *s = &e->slices[0];
    if (s->kind == PEAL_SLICE_RANGE)
        return copy_of(n, s->b);
    const struct peal_expr *row = e->a->kind == PEAL_EXPR_AT ? e->a->a : e->a;
    if (s->kind == PEAL_SLICE_INDEX && row->kind == PEAL_EXPR_NAME && row->symbol &&
        row->symbol->kind == PEAL_SYMBOL_BUFFER && row->symbol->shape[1])
        return copy_of(n, row->symbol->shape[1]);
    return NULL;
}

/* r in r * len or len * r, or 0 */
static struct peal_expr *factor_of(const struct peal_expr *e, const struct peal_expr *len)
{
    if (peal_word_is_int(e, 0))
        return (struct peal_expr *)e;
    if (!peal_word_is_binary(e, PEAL_INT_MUL))
        return NULL;
    if (peal_linear_same(e->b, len))
        return e->a;
    return peal_linear_same(e->a, len) ? e->b : NULL;
}

/* base[row, from +: len]: base[row][from +: len]; base[row, :]: base[row]. */
static struct peal_expr *split_slice(struct normalizer *n, struct peal_expr *e)
{
    if (e->nslices != 2 || e->slices[0].kind != PEAL_SLICE_INDEX ||
        (e->slices[1].kind != PEAL_SLICE_RANGE && e->slices[1].kind != PEAL_SLICE_PART &&
         e->slices[1].kind != PEAL_SLICE_ALL))
        return e;
    struct peal_expr *row = peal_expr_new(n->module, PEAL_EXPR_SLICE, e->pos);
    n->failed = n->failed || !row;
    if (!row)
        return NULL;
    struct peal_expr *next = e->next;
    *row = *e;
    row->next = NULL;
    row->nslices = 1;
    n->failed = n->failed || !peal_expr_measure(row);
    row->next = e->slices[1].kind == PEAL_SLICE_ALL ? next : NULL;
    if (e->slices[1].kind == PEAL_SLICE_ALL)
        return row;
    e->a = row;
    e->slices[0] = e->slices[1];
    e->nslices = 1;
    n->failed = n->failed || !peal_expr_measure(e);
    return e;
}

/* base[0 +: all of it]: the base. base[r * (n / nranks) +: n / nranks] of n elements, where nranks
 * divides n: base[r of nranks]. */
static struct peal_expr *simplify_slice(struct normalizer *n, struct peal_expr *e)
{
    e = split_slice(n, e);
    struct peal_slice *s = e ? &e->slices[0] : NULL;
    if (!e || e->kind != PEAL_EXPR_SLICE || e->nslices != 1 || s->kind != PEAL_SLICE_RANGE)
        return e;
    struct peal_expr *len = length_of(n, e->a);
    if (len && peal_word_is_int(s->a, 0) && peal_linear_same(len, s->b))
        return e->a;
    struct peal_expr *r = factor_of(s->a, s->b);
    if (len && r && n->even && peal_word_is_even_part(s->b) && peal_linear_same(len, s->b->a)) {
        *s = (struct peal_slice){PEAL_SLICE_PART, r, s->b->b};
        n->failed = n->failed || !peal_expr_measure(e);
    }
    return e;
}

/* --- names ----------------------------------------------------------------------------------- */

static struct peal_expr *rewrite(struct normalizer *n, struct peal_expr *e);

static void rewrite_list(struct normalizer *n, struct peal_expr **first)
{
    for (struct peal_expr **at = first; *at && !n->failed; at = &(*at)->next) {
        struct peal_expr *next = (*at)->next, *new = rewrite(n, *at);
        if (!new)
            return;
        new->next = next;
        *at = new;
    }
}

static struct peal_expr *replace_name(struct normalizer *n, struct peal_expr *e)
{
    const struct peal_expr *value = e->symbol ? n->value[e->symbol->slot] : NULL;
    if (!value)
        return e;
    struct peal_expr *copy = copy_of(n, value);
    if (copy)
        copy->pos = e->pos;
    return copy;
}

/* NULL after a failure. The result is alone: `next` is the caller's. */
static struct peal_expr *rewrite(struct normalizer *n, struct peal_expr *e)
{
    if (n->failed || !e)
        return e;
    if (e->kind == PEAL_EXPR_NAME)
        return replace_name(n, e);
    if (e->kind == PEAL_EXPR_CALL) {
        rewrite_list(n, &e->a);
    } else {
        e->a = rewrite(n, e->a);
        e->b = rewrite(n, e->b);
    }
    for (int i = 0; i < e->nslices; i++) {
        e->slices[i].a = rewrite(n, e->slices[i].a);
        e->slices[i].b = rewrite(n, e->slices[i].b);
    }
    if (n->failed || !peal_expr_measure(e)) {
        n->failed = true;
        return NULL;
    }
    if (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_LEN) {
        struct peal_expr *len = length_of(n, e->a);
        return len ? len : e;
    }
    if (peal_word_is_binary(e, PEAL_INT_MOD) && peal_word_is_builtin(e->b, PEAL_NRANKS))
        return simplify_modulo(n, e);
    if (is_sum(e))
        return simplify_sum(n, e);
    return e->kind == PEAL_EXPR_SLICE ? simplify_slice(n, e) : e;
}

static void rewrite_shape(struct normalizer *n, struct peal_symbol *s)
{
    for (int i = 0; i < 2; i++)
        s->shape[i] = rewrite(n, s->shape[i]);
}

/* --- variables ------------------------------------------------------------------------------- */

/* How often a variable is assigned in a block and in the blocks within; *last is the last one that
 * is in the block itself. */
static uint32_t count_assigns(const struct peal_stmt *s, const struct peal_symbol *var,
                              const struct peal_stmt **last)
{
    uint32_t count = 0;
    const struct peal_stmt *inner = NULL;
    for (; s; s = s->next) {
        if (s->kind == PEAL_STMT_ASSIGN && peal_word_is_name(s->a, var)) {
            *last = s;
            count++;
        }
        count += count_assigns(s->body, var, &inner) + count_assigns(s->other, var, &inner);
    }
    return count;
}

/* v = v + number: the number. */
static bool counts_up(const struct peal_stmt *s, const struct peal_symbol *var, int64_t *by)
{
    struct linear sum = peal_linear_of(s->b, false);
    peal_linear_pack(&sum);
    if (!sum.good || sum.nterms != 1 || sum.terms[0].factor != 1 ||
        !peal_word_is_name(sum.terms[0].atom, var))
        return false;
    *by = sum.one;
    return true;
}

/* A loop counts a variable up if it is assigned once in a turn, in the loop's own block. */
static bool is_counted(const struct peal_stmt *loop, const struct peal_symbol *var, int64_t *by)
{
    const struct peal_stmt *last = NULL;
    return count_assigns(loop->body, var, &last) == 1 && last && counts_up(last, var, by);
}

/* Every assignment is outside loops and branches, or counts up in one loop from a .. b. */
static bool can_follow(const struct peal_stmt *s, const struct peal_symbol *var)
{
    const struct peal_stmt *last = NULL;
    int64_t by;
    for (; s; s = s->next) {
        uint32_t inside = count_assigns(s->body, var, &last) + count_assigns(s->other, var, &last);
        bool good = s->kind == PEAL_STMT_FOR
                        ? !s->c && is_counted(s, var, &by)
                        : s->kind == PEAL_STMT_SCOPE && can_follow(s->body, var);
        if (inside && !good)
            return false;
    }
    return true;
}

/* --- loops ----------------------------------------------------------------------------------- */

static void rewrite_block(struct normalizer *n, struct peal_stmt **first);

/* The turns of a loop as a sum: b - a, if it is at least 0 for every number of ranks. */
static bool turns_of(const struct peal_stmt *s, struct linear *out)
{
    struct linear a = peal_linear_of(s->a, false), b = peal_linear_of(s->b, false);
    *out = peal_linear_add(&b, &a, -1);
    peal_linear_pack(out);
    if (!out->good || s->c)
        return false;
    if (!out->nterms)
        return out->one >= 0;
    return out->nterms == 1 && peal_word_is_builtin(out->terms[0].atom, PEAL_NRANKS) &&
           out->terms[0].factor > 0 && out->terms[0].factor + out->one >= 0;
}

/* start + by * turns */
static struct peal_expr *advance(struct normalizer *n, const struct peal_expr *start, int64_t by,
                                 const struct linear *turns)
{
    struct linear at = peal_linear_of(start, false);
    at = peal_linear_add(&at, turns, by);
    peal_linear_pack(&at);
    if (!at.good) {
        n->failed = true;
        return NULL;
    }
    return build_sum(n, &at, start);
}

struct counted {
    const struct peal_symbol *var;
    struct peal_expr *start;
    int64_t by;
};

/* Before the body: what the counted variables are at the start of turn i. */
static uint32_t begin_counting(struct normalizer *n, struct peal_stmt *s, struct counted *out,
                               uint32_t max)
{
    uint32_t count = 0;
    for (struct peal_symbol *v = n->kernel->symbols; v; v = v->next) {
        const struct peal_stmt *last = NULL;
        if (v->kind != PEAL_SYMBOL_VAR || !count_assigns(s->body, v, &last))
            continue;
        int64_t by = 0;
        struct linear turns;
        struct peal_expr *start = n->value[v->slot];
        n->value[v->slot] = NULL;
        /* Assignments of variables that are not followed stay, and no value is known from here on. */
        if (!n->followed[v->slot] || !start || count == max || s->kind != PEAL_STMT_FOR ||
            !is_counted(s, v, &by) || !turns_of(s, &turns)) {
            n->followed[v->slot] = false;
            continue;
        }
        struct peal_expr name = {.kind = PEAL_EXPR_NAME,
                                 .symbol = s->symbol,
                                 .height = 1,
                                 .type = {.kind = PEAL_TYPE_INT},
                                 .pos = s->pos};
        struct linear turn = peal_linear_of(&name, false), first = peal_linear_of(s->a, false);
        turn = peal_linear_add(&turn, &first, -1);
        n->value[v->slot] = advance(n, start, by, &turn);
        out[count++] = (struct counted){v, start, by};
    }
    return count;
}

static void end_counting(struct normalizer *n, const struct peal_stmt *s,
                         const struct counted *counted, uint32_t count)
{
    struct linear turns;
    bool known = turns_of(s, &turns);
    for (uint32_t i = 0; i < count; i++)
        n->value[counted[i].var->slot] =
            known ? advance(n, counted[i].start, counted[i].by, &turns) : NULL;
}

/* --- rotations ------------------------------------------------------------------------------- */

/* What is known of the uses of a loop's variable: all as (rank + sign * i + shift) % nranks. */
struct loop_rotation {
    const struct peal_symbol *i;
    int64_t sign, shift;
    uint32_t seen; /* such uses */
    uint32_t uses; /* all */
    bool good;
};

/* rank + sign * i + shift: the operand of % nranks */
static bool is_rotation(const struct peal_expr *e, const struct peal_symbol *i, int64_t *sign,
                        int64_t *shift)
{
    if (!peal_word_is_binary(e, PEAL_INT_MOD) || !peal_word_is_builtin(e->b, PEAL_NRANKS))
        return false;
    struct linear sum = peal_linear_of(e->a, true);
    peal_linear_pack(&sum);
    int64_t own = 0;
    *sign = 0;
    *shift = sum.one;
    for (uint32_t k = 0; k < sum.nterms; k++) {
        const struct linear_term *t = &sum.terms[k];
        if (peal_word_is_builtin(t->atom, PEAL_RANK))
            own = t->factor;
        else if (peal_word_is_name(t->atom, i))
            *sign = t->factor;
        else
            return false;
    }
    return sum.good && own == 1 && (*sign == 1 || *sign == -1);
}

static void look_at(struct peal_expr *e, void *opaque)
{
    struct loop_rotation *r = opaque;
    int64_t sign, shift;
    r->uses += peal_word_is_name(e, r->i);
    if (!is_rotation(e, r->i, &sign, &shift))
        return;
    r->good = r->good && (!r->seen || (sign == r->sign && shift == r->shift));
    r->sign = sign;
    r->shift = shift;
    r->seen++;
}

static void look_at_block(struct peal_stmt *s, struct loop_rotation *r)
{
    for (; s; s = s->next) {
        peal_stmt_walk_exprs(s, look_at, r);
        look_at_block(s->body, r);
        look_at_block(s->other, r);
    }
}

/* In place: the node itself becomes the name. */
static void put_name(struct peal_expr *e, void *opaque)
{
    const struct loop_rotation *r = opaque;
    int64_t sign, shift;
    if (!is_rotation(e, r->i, &sign, &shift))
        return;
    e->kind = PEAL_EXPR_NAME;
    e->name = r->i->name;
    e->symbol = (struct peal_symbol *)r->i;
    e->a = e->b = NULL;
    e->height = 1;
}

static void put_name_in_block(struct peal_stmt *s, struct loop_rotation *r)
{
    for (; s; s = s->next) {
        peal_stmt_walk_exprs(s, put_name, r);
        put_name_in_block(s->body, r);
        put_name_in_block(s->other, r);
    }
}

/* for i in a .. b, with b - a = nranks - 1 (or nranks) turns that name the peers (all ranks) as
 * rotations: a loop over peers (over all ranks). */
static void turn_into_peers(struct normalizer *n, struct peal_stmt *s)
{
    struct loop_rotation r = {.i = s->symbol, .good = true};
    struct linear first = peal_linear_of(s->a, false), turns;
    if (s->c || !turns_of(s, &turns) || turns.nterms != 1 || turns.terms[0].factor != 1)
        return;
    peal_linear_pack(&first);
    look_at_block(s->body, &r);
    /* Each rotation names the variable once; there are no other uses. */
    if (!r.good || !r.seen || r.uses != r.seen || !first.good || first.nterms)
        return;
    int64_t nearest = r.sign * first.one + r.shift;
    bool peers = turns.one == -1 && nearest == r.sign;
    bool all = turns.one == 0;
    if (!peers && !all)
        return;
    put_name_in_block(s->body, &r);
    if (peers) {
        s->kind = PEAL_STMT_FOR_PEERS;
        s->a = s->b = NULL;
        return;
    }
    s->b = copy_of(n, turns.terms[0].atom);
    s->a = new_int(n, s->b, 0);
}

/* --- exchanges ------------------------------------------------------------------------------- */

static void find_recv(struct peal_expr *e, void *found)
{
    *(bool *)found = *(bool *)found || e->kind == PEAL_EXPR_RECV;
}

struct mention {
    const struct peal_symbol *symbol; /* NULL: any parameter */
    bool found;
};

static void find_mention(struct peal_expr *e, void *opaque)
{
    struct mention *m = opaque;
    bool param = e->kind == PEAL_EXPR_NAME && e->symbol && e->symbol->kind == PEAL_SYMBOL_BUFFER &&
                 e->symbol->place == PEAL_PLACE_PARAM;
    m->found = m->found || (m->symbol ? peal_word_is_name(e, m->symbol) : param);
}

static bool sends_from(struct peal_stmt *send, const struct peal_stmt *end,
                       const struct peal_symbol *symbol)
{
    struct mention m = {.symbol = symbol};
    for (; send != end; send = send->next)
        peal_expr_walk(send->a, find_mention, &m);
    return m.found;
}

/* What a statement behind the sends writes: a buffer or tile that no send reads, in place neither. */
static bool writes_elsewhere(const struct normalizer *n, struct peal_stmt *sends,
                             const struct peal_stmt *s, const struct peal_stmt *end)
{
    const struct peal_expr *to = s->a;
    if (s->kind == PEAL_STMT_LET)
        return s->symbol->kind == PEAL_SYMBOL_TILE;
    if (s->kind != PEAL_STMT_ASSIGN)
        return false;
    while (to->kind == PEAL_EXPR_SLICE)
        to = to->a;
    if (to->kind != PEAL_EXPR_NAME || !to->symbol || sends_from(sends, end, to->symbol))
        return false;
    bool param = to->symbol->kind == PEAL_SYMBOL_BUFFER && to->symbol->place == PEAL_PLACE_PARAM;
    return !param || !sends_from(sends, end, NULL) || !peal_forall_may_be_in_place(n->kernel);
}

/* for i { send ... to (rank + i); ... recv from (rank - i) ... }: the sends in a loop of their own, and
 * the rest in one behind it. Every rank does all turns, and what is sent in a turn does not depend on
 * what is received. */
static void divide_exchange(struct normalizer *n, struct peal_stmt *s)
{
    struct loop_rotation to = {.i = s->symbol, .good = true}, from = to;
    struct peal_stmt *rest = s->body, *last = NULL;
    bool good = !n->depth && !s->c, receives = false;
    for (; rest && rest->kind == PEAL_STMT_SEND; rest = rest->next) {
        peal_stmt_walk_exprs(rest, look_at, &to);
        peal_stmt_walk_exprs(rest, find_recv, &receives);
        last = rest;
    }
    if (!last || !rest || receives || !good)
        return;
    for (struct peal_stmt *r = rest; r && good; r = r->next) {
        peal_stmt_walk_exprs(r, look_at, &from);
        good = writes_elsewhere(n, s->body, r, rest);
    }
    if (!good || !to.good || !from.good || !to.seen || !from.seen || to.uses != to.seen ||
        from.uses != from.seen || from.sign != -to.sign || from.shift != -to.shift)
        return;
    struct peal_stmt *second = peal_stmt_new(n->module, s->kind, s->pos);
    n->failed = n->failed || !second;
    if (n->failed)
        return;
    *second = *s;
    second->a = copy_of(n, s->a);
    second->b = copy_of(n, s->b);
    second->body = rest;
    last->next = NULL;
    s->next = second;
    n->divided = true;
}

/* --- loops with a fixed number of turns --------------------------------------------------------- */

static struct peal_stmt *copy_block(struct normalizer *n, const struct peal_stmt *s)
{
    struct peal_stmt *first = NULL, **tail = &first;
    for (; s && !n->failed; s = s->next) {
        struct peal_stmt *copy = peal_stmt_new(n->module, s->kind, s->pos);
        n->failed = n->failed || !copy || ++n->nodes >= MAX_NODES;
        if (n->failed)
            return NULL;
        *copy = *s;
        copy->next = NULL;
        copy->a = s->a ? copy_of(n, s->a) : NULL;
        copy->b = s->b ? copy_of(n, s->b) : NULL;
        copy->c = s->c ? copy_of(n, s->c) : NULL;
        copy->body = copy_block(n, s->body);
        copy->other = copy_block(n, s->other);
        *tail = copy;
        tail = &copy->next;
    }
    return first;
}

/* for j in 0 .. 4 { ... }: the body four times, with what j is in each. Calls in it too: the cells of
 * a call go on counting, by what the calls before have added. */
static bool unroll(struct normalizer *n, struct peal_stmt **at)
{
    enum { MAX_TURNS = 8 };
    struct peal_stmt *loop = *at, *next = loop->next, **tail = at;
    if (loop->kind != PEAL_STMT_FOR || loop->c || loop->a->kind != PEAL_EXPR_INT ||
        loop->b->kind != PEAL_EXPR_INT)
        return false;
    int64_t from = loop->a->value, to = loop->b->value;
    if (from < 0 || to - from > MAX_TURNS)
        return false;
    *tail = NULL;
    for (int64_t j = from; j < to && !n->failed; j++) {
        struct peal_stmt *turn = copy_block(n, loop->body);
        n->value[loop->symbol->slot] = new_int(n, loop->a, j);
        rewrite_block(n, &turn);
        *tail = turn;
        while (*tail)
            tail = &(*tail)->next;
    }
    n->value[loop->symbol->slot] = NULL;
    *tail = next;
    return true;
}

/* --- the first turn --------------------------------------------------------------------------- */

/* i == 0, i < 1 (true in the first turn), or i != 0, i > 0, i >= 1 (false in it) */
static bool asks_for_first(const struct peal_stmt *s, const struct peal_symbol *i, bool *first)
{
    const struct peal_expr *e = s->kind == PEAL_STMT_IF ? s->a : NULL;
    if (!e || e->kind != PEAL_EXPR_BINARY || !peal_word_is_name(e->a, i))
        return false;
    bool none = peal_word_is_int(e->b, 0), one = peal_word_is_int(e->b, 1);
    *first = (e->op == PEAL_INT_EQ && none) || (e->op == PEAL_INT_LT && one);
    return *first || ((e->op == PEAL_INT_NE || e->op == PEAL_INT_GT) && none) ||
           (e->op == PEAL_INT_GE && one);
}

/* Replaces conditions that ask for the first turn by what they choose in it, or later. */
static void choose_turn(struct peal_stmt **at, const struct peal_symbol *i, bool in_first)
{
    bool first;
    while (*at) {
        struct peal_stmt *s = *at;
        if (!asks_for_first(s, i, &first)) {
            at = &s->next;
            continue;
        }
        struct peal_stmt **tail = at;
        *at = first == in_first ? s->body : s->other;
        while (*tail)
            tail = &(*tail)->next;
        *tail = s->next;
    }
}

/* for i in 0 .. nranks { if i == 0 { A } else { B } }: A with 0 for i, then for i in 1 .. nranks { B }.
 * There is a first turn, whatever the number of ranks. */
static bool peel(struct normalizer *n, struct peal_stmt **at)
{
    struct peal_stmt *loop = *at;
    bool first, asked = false;
    if (loop->c || !peal_word_is_int(loop->a, 0) || !peal_word_is_builtin(loop->b, PEAL_NRANKS))
        return false;
    for (struct peal_stmt *s = loop->body; s; s = s->next)
        asked = asked || asks_for_first(s, loop->symbol, &first);
    struct peal_stmt *turn = asked ? copy_block(n, loop->body) : NULL;
    if (!turn || n->failed)
        return false;
    choose_turn(&turn, loop->symbol, true);
    choose_turn(&loop->body, loop->symbol, false);
    n->value[loop->symbol->slot] = new_int(n, loop->a, 0);
    rewrite_block(n, &turn);
    n->value[loop->symbol->slot] = NULL;
    loop->a = new_int(n, loop->a, 1);
    *at = turn;
    while (*at)
        at = &(*at)->next;
    *at = loop;
    return true;
}

/* --- statements ------------------------------------------------------------------------------ */

static bool is_over_ranks(const struct peal_stmt *s)
{
    if (s->kind == PEAL_STMT_FOR_PEERS)
        return true;
    return (peal_word_is_int(s->a, 0) || peal_word_is_int(s->a, 1)) && !s->c &&
           peal_word_is_builtin(s->b, PEAL_NRANKS);
}

static void rewrite_loop(struct normalizer *n, struct peal_stmt *s)
{
    enum { MAX_COUNTED = 8 };
    struct counted counted[MAX_COUNTED];
    s->a = rewrite(n, s->a);
    s->b = rewrite(n, s->b);
    s->c = rewrite(n, s->c);
    if (n->failed)
        return;
    uint32_t count = begin_counting(n, s, counted, MAX_COUNTED);
    n->is_rank[s->symbol->slot] = is_over_ranks(s);
    n->depth++;
    rewrite_block(n, &s->body);
    n->depth--;
    if (n->failed)
        return;
    if (s->kind == PEAL_STMT_FOR)
        end_counting(n, s, counted, count);
    if (n->rotations && s->kind == PEAL_STMT_FOR) {
        divide_exchange(n, s);
        turn_into_peers(n, s);
    }
}

static void find_variable(struct peal_expr *e, void *found)
{
    if (e->kind == PEAL_EXPR_NAME && e->symbol && e->symbol->kind == PEAL_SYMBOL_VAR)
        *(bool *)found = true;
}

/* True: the statement is replaced by nothing. */
static bool rewrite_name(struct normalizer *n, struct peal_stmt *s)
{
    bool number = s->symbol->type.kind == PEAL_TYPE_INT || s->symbol->type.kind == PEAL_TYPE_BOOL;
    bool let = s->kind == PEAL_STMT_LET && s->symbol->kind == PEAL_SYMBOL_LET && number;
    bool var = s->symbol->kind == PEAL_SYMBOL_VAR && n->followed[s->symbol->slot];
    s->a = rewrite(n, s->a);
    if (s->typed)
        rewrite_shape(n, s->symbol);
    if (n->failed || (!let && !var))
        return false;
    bool changes = false; /* a variable that is not followed may have another value later */
    peal_expr_walk(s->a, find_variable, &changes);
    if (changes)
        return false;
    n->value[s->symbol->slot] = s->a;
    return true;
}

static bool rewrite_assign(struct normalizer *n, struct peal_stmt *s)
{
    s->b = rewrite(n, s->b);
    bool var =
        s->a->kind == PEAL_EXPR_NAME && s->a->symbol && s->a->symbol->kind == PEAL_SYMBOL_VAR;
    if (!var) {
        s->a = rewrite(n, s->a);
        return false;
    }
    if (n->failed || !n->followed[s->a->symbol->slot])
        return false;
    bool changes = false;
    peal_expr_walk(s->b, find_variable, &changes);
    n->value[s->a->symbol->slot] = changes ? NULL : s->b;
    return !changes;
}

/* True: the statement is replaced by nothing. */
static bool rewrite_statement(struct normalizer *n, struct peal_stmt *s)
{
    switch (s->kind) {
    case PEAL_STMT_LET:
    case PEAL_STMT_VAR:
        return rewrite_name(n, s);
    case PEAL_STMT_ASSIGN:
        return rewrite_assign(n, s);
    case PEAL_STMT_DECL:
        rewrite_shape(n, s->symbol);
        return false;
    case PEAL_STMT_FOR:
    case PEAL_STMT_FOR_PEERS:
        rewrite_loop(n, s);
        return false;
    default:
        s->a = rewrite(n, s->a);
        s->b = rewrite(n, s->b);
        s->c = rewrite(n, s->c);
        if (n->failed)
            return false;
        n->even = n->even || (s->kind == PEAL_STMT_ASSERT && !n->depth && peal_word_is_even(s->a));
        n->depth += s->kind != PEAL_STMT_SCOPE;
        rewrite_block(n, &s->body);
        rewrite_block(n, &s->other);
        n->depth -= s->kind != PEAL_STMT_SCOPE;
        return false;
    }
}

static void rewrite_block(struct normalizer *n, struct peal_stmt **first)
{
    peal_normal_place_recvs(first);
    while (*first && !n->failed) {
        struct peal_stmt *after = (*first)->next;
        bool fixed = false;
        if (n->rotations && (*first)->kind == PEAL_STMT_FOR) {
            (*first)->a = rewrite(n, (*first)->a);
            (*first)->b = rewrite(n, (*first)->b);
            fixed = !n->failed && unroll(n, first);
            if (!fixed && !n->failed && peel(n, first)) {
                while ((*first)->next != after)
                    first = &(*first)->next;
            }
        }
        if (fixed) {
            while (*first != after)
                first = &(*first)->next;
        } else if (rewrite_statement(n, *first)) {
            *first = (*first)->next;
        } else {
            first = &(*first)->next;
        }
    }
}

/* --- kernels --------------------------------------------------------------------------------- */

static bool rewrite_kernel(struct normalizer *n)
{
    struct peal_kernel *k = n->kernel;
    struct peal_diags diags;
    size_t slots = k->nslots + 1u;
    n->value = calloc(slots, sizeof(struct peal_expr *));
    n->followed = calloc(slots, sizeof *n->followed);
    n->is_rank = calloc(slots, sizeof *n->is_rank);
    n->failed = !n->value || !n->followed || !n->is_rank;
    for (struct peal_symbol *s = k->symbols; s && !n->failed; s = s->next) {
        if (s->kind == PEAL_SYMBOL_VAR)
            n->followed[s->slot] = can_follow(k->body, s);
    }
    for (int i = 0; i < k->nparams && !n->failed; i++)
        rewrite_shape(n, k->params[i]);
    rewrite_block(n, &k->body);
    peal_diags_init(&diags);
    n->failed = n->failed || peal_lower_fold(n->module, k, &diags) != PEAL_OK;
    peal_diags_release(&diags);
    free(n->value);
    free(n->followed);
    free(n->is_rank);
    return !n->failed;
}

bool peal_normal_make(const struct peal_kernel *kernel, bool rotations, struct peal_normal *out)
{
    struct peal_diags diags;
    struct normalizer n = {.module = peal_module_new(), .rotations = rotations};
    peal_diags_init(&diags);
    bool good = n.module && peal_lower(kernel, n.module, NULL, &diags, &n.kernel) == PEAL_OK &&
                rewrite_kernel(&n);
    peal_diags_release(&diags);
    *out = (struct peal_normal){n.module, n.kernel, n.divided};
    if (!good)
        peal_normal_release(out);
    return good;
}

void peal_normal_release(struct peal_normal *normal)
{
    peal_module_free(normal->module);
    *normal = (struct peal_normal){0};
}
