/* SPDX-License-Identifier: Apache-2.0 */
/* See canon.h. A form is a list of words, kept once: equal forms have equal numbers.
 *
 * A tree is flattened along one function: x0 + (x1 - x2) is the sum of x0, x1 and, negative, x2.
 * Trees share parts, so their nodes are visited once each, the highest number first (children come
 * before their parents), with the number of times that the part occurs in the whole.
 */
#include "verify/result/canon.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORK = 50000000, MAX_OPERANDS = 1 << 20 };

enum canon_kind {
    FORM_LEAF,
    FORM_NUMBER,
    FORM_DIVIDE,
    FORM_FN,
    FORM_SUM,
    FORM_MANY,
    FORM_SEQUENCE
};

/* A part of a flattened tree, or one of its operands (a form), and how often it occurs. */
struct occurrence {
    uint32_t at;
    uint64_t plus, minus;
};

struct flat {
    struct canon *c;
    enum peal_fn fn;
    bool sums, integer; /* along + and -; exact, modulo 2^64 */
    bool once;          /* an operand that occurs twice is the same as once */
    uint64_t number;    /* of an integer sum */
    PEAL_VEC(struct occurrence) open;
    PEAL_VEC(struct occurrence) operands;
};

static uint32_t form_of(struct canon *c, uint32_t node);

void peal_canon_release(struct canon *c)
{
    peal_vec_release(&c->known);
    peal_vec_release(&c->words);
    peal_vec_release(&c->forms);
    peal_index_release(&c->index);
}

static uint64_t hash_form(const void *canon, uint32_t row)
{
    const struct canon *c = canon;
    const struct canon_form *f = &c->forms.at[row];
    return peal_hash_bytes(c->words.at + f->first, f->count * sizeof *c->words.at, 0);
}

/* The number of the form whose words were added last, from `first` on. */
static uint32_t intern(struct canon *c, size_t first)
{
    struct canon_form form = {first, c->words.len - first};
    if (c->failed || !peal_index_reserve(&c->index, hash_form, c) ||
        !peal_vec_push(&c->forms, form)) {
        c->failed = true;
        return 0;
    }
    uint32_t row = (uint32_t)c->forms.len - 1;
    size_t at = peal_index_begin(&c->index, hash_form(c, row)), bytes = form.count * 8;
    for (; peal_index_is_used(&c->index, at); at = peal_index_next(&c->index, at)) {
        uint32_t other = peal_index_row(&c->index, at);
        const struct canon_form *f = &c->forms.at[other];
        if (f->count != form.count ||
            memcmp(c->words.at + f->first, c->words.at + first, bytes) != 0)
            continue;
        c->forms.len--;
        c->words.len = first;
        return other;
    }
    peal_index_put(&c->index, at, row);
    return row;
}

static void put(struct canon *c, uint64_t word)
{
    if (!peal_vec_push(&c->words, word))
        c->failed = true;
}

static const struct node *node_at(const struct canon *c, uint32_t node)
{
    const struct node *n = &c->values->nodes.at[node];
    while (n->kind == NODE_CONVERT || (n->kind == NODE_FN && n->fn == PEAL_FN_ID))
        n = &c->values->nodes.at[n->child[0]];
    return n;
}

static bool is_integer(const struct node *n)
{
    return peal_dtype_kind((enum peal_dtype)n->dtype) == PEAL_KIND_INT;
}

/* A whole number of an integer type. */
static bool is_whole(const struct node *n, uint64_t *out)
{
    double value;
    if (n->kind != NODE_CONST)
        return false;
    memcpy(&value, &n->word, sizeof value);
    if (value != floor(value) || fabs(value) > 0x1p53)
        return false;
    *out = (uint64_t)(int64_t)value;
    return true;
}

static bool applies(const struct node *n)
{
    return n->kind == NODE_FN || n->kind == NODE_CHANCE;
}

/* --- flattening ------------------------------------------------------------------------------ */

static bool is_sum(const struct node *n)
{
    if (!applies(n) || peal_dtype_is_record((enum peal_dtype)n->dtype))
        return false;
    return (n->fn == PEAL_FN_ADD && n->nchildren == 2) ||
           (n->fn == PEAL_FN_SUB && n->nchildren == 2) || n->fn == PEAL_FN_NEG;
}

/* A multiple of an integer: which operand is the number? -1: it is none. */
static int multiple_of(const struct canon *c, const struct node *n, uint64_t *number)
{
    if (!applies(n) || n->fn != PEAL_FN_MUL || n->nchildren != 2 || !is_integer(n))
        return -1;
    for (int i = 0; i < 2; i++) {
        if (is_whole(node_at(c, n->child[i]), number))
            return i;
    }
    return -1;
}

static bool belongs(const struct flat *f, const struct node *n)
{
    uint64_t number;
    if (f->sums)
        return is_sum(n) || (f->integer && multiple_of(f->c, n, &number) >= 0);
    return applies(n) && (enum peal_fn)n->fn == f->fn && n->nchildren == 2;
}

static void add_up(struct flat *f, struct occurrence *to, uint64_t plus, uint64_t minus)
{
    bool lost = __builtin_add_overflow(to->plus, plus, &to->plus);
    lost |= __builtin_add_overflow(to->minus, minus, &to->minus);
    if (f->integer) {
        to->plus -= to->minus;
        to->minus = 0;
    } else if (lost) {
        f->c->failed = true;
    }
}

static void add_part(struct flat *f, uint32_t node, uint64_t plus, uint64_t minus)
{
    struct canon *c = f->c;
    const struct node *n = node_at(c, node);
    uint64_t number;
    if (f->sums && f->integer && is_whole(n, &number)) {
        f->number += number * (plus - minus);
        return;
    }
    if (!belongs(f, n)) {
        struct occurrence operand = {form_of(c, node), plus, minus};
        c->failed =
            c->failed || f->operands.len > MAX_OPERANDS || !peal_vec_push(&f->operands, operand);
        return;
    }
    uint32_t at = (uint32_t)(n - c->values->nodes.at);
    for (size_t i = 0; i < f->open.len; i++) {
        if (f->open.at[i].at == at) {
            add_up(f, &f->open.at[i], plus, minus);
            return;
        }
    }
    c->failed = c->failed || !peal_vec_push(&f->open, ((struct occurrence){at, plus, minus}));
}

static struct occurrence take_highest(struct flat *f)
{
    size_t best = 0;
    for (size_t i = 1; i < f->open.len; i++) {
        if (f->open.at[i].at > f->open.at[best].at)
            best = i;
    }
    f->c->work += f->open.len;
    struct occurrence taken = f->open.at[best];
    f->open.at[best] = f->open.at[--f->open.len];
    return taken;
}

static void open_part(struct flat *f, struct occurrence part)
{
    const struct node *n = &f->c->values->nodes.at[part.at];
    uint64_t number;
    if (f->sums && n->fn == PEAL_FN_MUL) {
        int i = multiple_of(f->c, n, &number);
        add_part(f, n->child[1 - i], (part.plus - part.minus) * number, 0);
        return;
    }
    bool negates = f->sums && n->fn == PEAL_FN_NEG;
    add_part(f, n->child[0], negates ? part.minus : part.plus, negates ? part.plus : part.minus);
    if (n->nchildren < 2)
        return;
    negates = f->sums && n->fn == PEAL_FN_SUB;
    add_part(f, n->child[1], negates ? part.minus : part.plus, negates ? part.plus : part.minus);
}

static int by_form(const void *a, const void *b)
{
    uint32_t x = ((const struct occurrence *)a)->at, y = ((const struct occurrence *)b)->at;
    return (x > y) - (x < y);
}

/* Joins equal operands, and drops those that an integer sum does not have after all. */
static void merge(struct flat *f)
{
    size_t n = 0;
    if (f->operands.len)
        qsort(f->operands.at, f->operands.len, sizeof *f->operands.at, by_form);
    for (size_t i = 0; i < f->operands.len; i++) {
        struct occurrence *o = &f->operands.at[i];
        if (n && f->operands.at[n - 1].at == o->at)
            add_up(f, &f->operands.at[n - 1], o->plus, o->minus);
        else
            f->operands.at[n++] = *o;
    }
    f->operands.len = n;
    n = 0;
    for (size_t i = 0; i < f->operands.len; i++) {
        struct occurrence o = f->operands.at[i];
        if (f->sums && f->integer) {
            o.plus -= o.minus;
            o.minus = 0;
        }
        if (f->once)
            o.plus = 1;
        if (o.plus || o.minus)
            f->operands.at[n++] = o;
    }
    f->operands.len = n;
}

static bool takes_once(enum peal_fn fn)
{
    return fn == PEAL_FN_MAXIMUM || fn == PEAL_FN_MINIMUM || fn == PEAL_FN_AND ||
           fn == PEAL_FN_OR || fn == PEAL_FN_MINLOC || fn == PEAL_FN_MAXLOC;
}

static uint32_t flatten(struct canon *c, uint32_t node, const struct node *n, bool sums)
{
    struct flat f = {.c = c,
                     .fn = (enum peal_fn)n->fn,
                     .sums = sums,
                     .integer = sums && is_integer(n),
                     .once = !sums && takes_once((enum peal_fn)n->fn)};
    add_part(&f, node, 1, 0);
    while (f.open.len && !c->failed) {
        if (++c->work > MAX_WORK)
            c->failed = true;
        else
            open_part(&f, take_highest(&f));
    }
    merge(&f);
    const struct occurrence *o = f.operands.at;
    uint32_t form = 0;
    if (!c->failed && f.operands.len == 1 && o->plus == 1 && o->minus == 0 && f.number == 0) {
        form = o->at;
    } else {
        size_t first = c->words.len;
        put(c, sums ? FORM_SUM : FORM_MANY);
        put(c, sums ? f.integer : (uint64_t)f.fn);
        put(c, f.number);
        for (size_t i = 0; i < f.operands.len; i++) {
            put(c, o[i].at);
            put(c, o[i].plus);
            put(c, o[i].minus);
        }
        form = intern(c, first);
    }
    peal_vec_release(&f.open);
    peal_vec_release(&f.operands);
    return form;
}

/* --- all kinds ------------------------------------------------------------------------------- */

/* The operands of a reduction that may be regrouped, and not reordered. */
static void list_sequence(struct canon *c, const struct node *top, uint32_t node, struct flat *to)
{
    const struct node *n = node_at(c, node);
    if (++c->work > MAX_WORK || to->operands.len > MAX_OPERANDS)
        c->failed = true;
    if (c->failed)
        return;
    if (applies(n) && n->fn == top->fn && n->nchildren == 2) {
        list_sequence(c, top, n->child[0], to);
        list_sequence(c, top, n->child[1], to);
        return;
    }
    struct occurrence operand = {form_of(c, node), 1, 0};
    c->failed = c->failed || !peal_vec_push(&to->operands, operand);
}

static uint32_t sequence(struct canon *c, uint32_t node, const struct node *n)
{
    struct flat f = {.c = c};
    list_sequence(c, n, node, &f);
    size_t first = c->words.len;
    put(c, FORM_SEQUENCE);
    put(c, n->fn);
    for (size_t i = 0; i < f.operands.len; i++)
        put(c, f.operands.at[i].at);
    peal_vec_release(&f.operands);
    return intern(c, first);
}

/* The function of its operands as they are. */
static uint32_t plain(struct canon *c, const struct node *n, bool commutes)
{
    uint64_t forms[3] = {0};
    for (uint32_t i = 0; i < n->nchildren; i++)
        forms[i] = form_of(c, n->child[i]);
    if (commutes && n->nchildren == 2 && forms[0] > forms[1]) {
        uint64_t form = forms[0];
        forms[0] = forms[1];
        forms[1] = form;
    }
    size_t first = c->words.len;
    put(c, n->kind == NODE_DIVIDE ? FORM_DIVIDE : FORM_FN);
    put(c, n->kind == NODE_DIVIDE ? n->word : n->fn);
    for (uint32_t i = 0; i < n->nchildren; i++)
        put(c, forms[i]);
    return intern(c, first);
}

static uint32_t leaf(struct canon *c, const struct node *n)
{
    size_t first = c->words.len;
    bool number = n->kind == NODE_CONST;
    put(c, number ? FORM_NUMBER : FORM_LEAF);
    put(c, number ? n->word : (uint64_t)(n - c->values->nodes.at));
    return intern(c, first);
}

static uint32_t function(struct canon *c, uint32_t node, const struct node *n)
{
    const struct peal_formula *formula = peal_plan_formula(c->plan, n->fn);
    uint64_t number;
    if (formula && n->nchildren == 2 && !peal_formula_is_free(formula)) {
        if (formula->flags & PEAL_FORMULA_ASSOCIATIVE)
            return sequence(c, node, n);
        return plain(c, n, formula->flags & PEAL_FORMULA_COMMUTATIVE);
    }
    if (is_sum(n) || multiple_of(c, n, &number) >= 0)
        return flatten(c, node, n, true);
    bool reduces = n->fn == PEAL_FN_ADD || n->fn == PEAL_FN_MUL || n->fn == PEAL_FN_XOR ||
                   takes_once((enum peal_fn)n->fn) || formula;
    if (reduces && n->nchildren == 2)
        return flatten(c, node, n, false);
    return plain(c, n, false);
}

static uint32_t form_of(struct canon *c, uint32_t node)
{
    while (c->known.len <= node && !c->failed)
        c->failed = !peal_vec_push(&c->known, 0);
    if (c->failed)
        return 0;
    if (c->known.at[node])
        return c->known.at[node] - 1;
    const struct node *n = node_at(c, node);
    uint32_t form;
    if (applies(n))
        form = function(c, node, n);
    else if (n->kind == NODE_DIVIDE)
        form = plain(c, n, false);
    else
        form = leaf(c, n);
    if (!c->failed)
        c->known.at[node] = form + 1;
    return form;
}

bool peal_canon_same(struct canon *c, uint32_t a, uint32_t b)
{
    if (a == b)
        return true;
    uint32_t x = form_of(c, a), y = form_of(c, b);
    return !c->failed && x == y;
}
