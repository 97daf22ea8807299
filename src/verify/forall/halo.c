/* SPDX-License-Identifier: Apache-2.0 */
/* Is the text that of a halo? See docs/verifier-all-ranks.md, "Halos".
 *
 * All ranks execute the same statements once, and name each other by a fixed distance. The walk
 * shows that every wait and message needs a statement further up in the text, and finds what the
 * cutoffs are made of: how far an order, a value and an element can reach. Sizes and places are
 * sums of numbers and multiples of the one dimension, so that beyond some count no two of them
 * change their order. Whatever is not named here is refused.
 */
#include "verify/forall/halo_read.h"

#include "verify/forall/normal.h"

#include <stdlib.h>

/* --- who needs whom -------------------------------------------------------------------------- */

static struct halo_key *find_key(struct halo *h, struct peal_pos at, struct halo_key want)
{
    want.scope = want.channel ? 0 : h->scope;
    for (uint32_t i = 0; i < h->nkeys; i++) {
        struct halo_key *k = &h->keys[i];
        if (k->channel != want.channel || k->symbol != want.symbol || k->index != want.index)
            continue;
        if (want.channel && k->shift != want.shift)
            continue;
        if (k->scope == want.scope)
            return k;
        peal_halo_refuse(h, at, "a signal of a call that is used elsewhere too");
        return NULL;
    }
    if (h->nkeys == HALO_MAX_KEYS) {
        peal_halo_refuse(h, at, "more cells and channels than are examined");
        return NULL;
    }
    h->keys[h->nkeys] = want;
    return &h->keys[h->nkeys++];
}

/* s, s[2]: one cell. */
static bool read_cell(struct halo *h, const struct peal_expr *e, struct halo_key *out)
{
    const struct peal_expr *index = peal_word_index(e);
    const struct peal_expr *name = index ? e->a : e;
    bool signal =
        name->kind == PEAL_EXPR_NAME && name->symbol && name->symbol->kind == PEAL_SYMBOL_SIGNAL;
    if (!signal || (index && index->kind != PEAL_EXPR_INT) || (!index && name->symbol->shape[0]))
        return peal_halo_refuse(h, e->pos, "a cell that is not named by a number");
    *out = (struct halo_key){.symbol = name->symbol, .index = index ? index->value : 0};
    return true;
}

static bool read_notify(struct halo *h, const struct peal_stmt *s)
{
    struct halo_key want;
    int64_t shift = 0;
    if (!peal_word_is_plain_notify(s))
        return peal_halo_refuse(h, s->pos, "a notify that does not add a positive constant");
    if (s->a->kind != PEAL_EXPR_AT || !peal_halo_peer(h, s->a->b, &shift) ||
        !read_cell(h, s->a->a, &want))
        return peal_halo_refuse(h, s->pos, "a notify to a rank that is computed");
    want.shift = shift;
    if (h->few)
        return true;
    struct halo_key *k = find_key(h, s->pos, want);
    if (!k)
        return false;
    if (k->shift != shift)
        return peal_halo_refuse(h, s->pos, "a cell that two ranks notify");
    k->posts += s->b->value;
    return true;
}

static bool read_wait(struct halo *h, const struct peal_stmt *s)
{
    struct halo_key want;
    if (!peal_word_is_plain_wait(s))
        return peal_halo_refuse(h, s->pos, "a threshold that is not a constant");
    if (!read_cell(h, s->a, &want))
        return false;
    if (h->few)
        return true;
    struct halo_key *k = find_key(h, s->pos, want);
    if (!k)
        return false;
    h->takes++;
    if (k->posts < s->b->value)
        return peal_halo_refuse(h, s->pos,
                                "a wait may need a notify that does not come earlier in the text");
    return true;
}

static struct halo_key *find_channel(struct halo *h, struct peal_pos at,
                                     const struct peal_expr *name, int64_t shift)
{
    struct halo_key want = {.channel = true, .shift = shift, .symbol = name ? name->symbol : NULL};
    if (name && (name->kind != PEAL_EXPR_NAME || !name->symbol)) {
        peal_halo_refuse(h, at, "a channel that is computed");
        return NULL;
    }
    return find_key(h, at, want);
}

/* The next message of its channel, which is sent further up. */
static bool take_message(struct halo *h, const struct peal_expr *e, struct halo_key *k)
{
    if (h->few)
        return true;
    k->takes++;
    h->takes++;
    if (k->posts < k->takes)
        return peal_halo_refuse(h, e->pos,
                                "a recv may need a send that does not come earlier in the text");
    return true;
}

static struct halo_key *read_channel(struct halo *h, const struct peal_expr *e)
{
    int64_t shift = 0;
    if (e->in_slot) {
        peal_halo_refuse(h, e->pos, "a recv_slot");
        return NULL;
    }
    return peal_halo_peer(h, e->a, &shift) ? find_channel(h, e->pos, e->b, -shift) : NULL;
}

/* --- data ------------------------------------------------------------------------------------ */

static bool read_value(struct halo *h, const struct peal_expr *e, bool clause, uint32_t *level);

static bool read_arguments(struct halo *h, const struct peal_expr *e, bool clause, uint32_t *level)
{
    for (; e; e = e->next) {
        if (!read_value(h, e, clause, level))
            return false;
    }
    return true;
}

static bool read_call(struct halo *h, const struct peal_expr *e, bool clause, uint32_t *level)
{
    int64_t bound;
    switch (e->builtin) {
    case PEAL_BUILTIN_OLD:
    case PEAL_BUILTIN_REDUCE:
        return read_arguments(h, e->a, clause, level);
    case PEAL_BUILTIN_FN:
        if (e->fn == PEAL_FN_SOFTMAX)
            break;
        return read_arguments(h, e->a, clause, level);
    case PEAL_BUILTIN_FILL:
        return read_value(h, e->a, clause, level) && !e->a->next->next &&
               peal_halo_size(h, e->a->next, &bound);
    case PEAL_BUILTIN_OVER:
        return peal_halo_refuse(h, e->pos,
                                "a reduction over ranks that are not at fixed distances");
    default:
        break;
    }
    return peal_halo_refuse(h, e->pos, "a function that is not one of elements");
}

/* In a clause, elements of all ranks' parameters; otherwise what can be read and received. */
static bool read_value(struct halo *h, const struct peal_expr *e, bool clause, uint32_t *level)
{
    const struct peal_symbol *symbol;
    if (e->kind == PEAL_EXPR_INT || e->kind == PEAL_EXPR_FLOAT)
        return true;
    if (peal_halo_is_place(e)) {
        if (!peal_halo_place(h, e, true, &symbol))
            return false;
        *level = *level < h->level[symbol->slot] ? h->level[symbol->slot] : *level;
        return true;
    }
    if (e->kind == PEAL_EXPR_RECV && !clause) {
        struct halo_key *k = read_channel(h, e);
        if (!k)
            return false;
        *level = *level < k->level ? k->level : *level;
        return take_message(h, e, k);
    }
    bool data = e->type.kind != PEAL_TYPE_INT && e->type.kind != PEAL_TYPE_BOOL;
    if (data && e->kind == PEAL_EXPR_UNARY)
        return read_value(h, e->a, clause, level);
    if (data && e->kind == PEAL_EXPR_BINARY)
        return read_value(h, e->a, clause, level) && read_value(h, e->b, clause, level);
    if (data && e->kind == PEAL_EXPR_CALL)
        return read_call(h, e, clause, level);
    return peal_halo_refuse(h, e->pos, "a number among data that is not a constant");
}

static void raise_level(struct halo *h, uint32_t *level, uint32_t to)
{
    if (h->few) /* of what it receives, nothing is known */
        to = h->highest + 1;
    *level = *level < to ? to : *level;
    h->highest = h->highest < to ? to : h->highest;
}

static bool read_assign(struct halo *h, const struct peal_stmt *s)
{
    const struct peal_symbol *symbol;
    uint32_t level = 0;
    if (!read_value(h, s->b, false, &level))
        return false;
    if (!peal_halo_is_place(s->a))
        return peal_halo_refuse(h, s->pos, "a variable that changes");
    if (!peal_halo_place(h, s->a, true, &symbol))
        return false;
    raise_level(h, &h->level[symbol->slot], level + 1);
    return true;
}

static bool read_let(struct halo *h, const struct peal_stmt *s)
{
    uint32_t level = 0;
    int64_t bound;
    if (s->symbol->kind != PEAL_SYMBOL_TILE)
        return peal_halo_refuse(h, s->pos, "a name for a number that is not at a fixed distance");
    if (s->typed && (!s->symbol->shape[0] || s->symbol->shape[1] ||
                     !peal_halo_size(h, s->symbol->shape[0], &bound)))
        return peal_halo_refuse(h, s->pos, "a tile of rows");
    if (!read_value(h, s->a, false, &level))
        return false;
    raise_level(h, &h->level[s->symbol->slot], level + 1);
    return true;
}

static bool read_send(struct halo *h, const struct peal_stmt *s)
{
    uint32_t level = 0;
    int64_t shift = 0;
    if (!read_value(h, s->a, false, &level) || !peal_halo_peer(h, s->b, &shift))
        return false;
    struct halo_key *k = find_channel(h, s->pos, s->c, shift);
    if (!k)
        return false;
    h->out->messages = true;
    if (h->few)
        return true;
    k->posts++;
    h->takes++; /* it may wait for a free slot */
    halo_raise(&h->ahead, k->posts - k->takes);
    raise_level(h, &k->level, level + 1);
    return true;
}

/* --- clauses --------------------------------------------------------------------------------- */

/* Comparisons of the clause's index with places. */
static bool read_where(struct halo *h, const struct peal_expr *e)
{
    int64_t a = 0, b = 0, up = 0, down = 0;
    if (e->kind == PEAL_EXPR_UNARY && e->op == PEAL_INT_NOT)
        return read_where(h, e->a);
    if (peal_word_is_binary(e, PEAL_INT_ANDAND) || peal_word_is_binary(e, PEAL_INT_OROR))
        return read_where(h, e->a) && read_where(h, e->b);
    bool good = e->kind == PEAL_EXPR_BINARY && e->op >= PEAL_INT_EQ && e->op <= PEAL_INT_GE &&
                peal_halo_affine(h, e->a, &a, &up) && peal_halo_affine(h, e->b, &b, &down);
    if (!good || up - down > 1 || up - down < -1)
        return peal_halo_refuse(h, e->pos,
                                "a condition that does not compare the index with a place");
    halo_raise(&h->most, a + b + 1);
    return true;
}

static bool read_ensures(struct halo *h, const struct peal_stmt *s)
{
    const struct peal_symbol *symbol;
    uint32_t level = 0;
    h->index = s->symbol;
    h->clause = true;
    if (s->symbol && s->a->kind == PEAL_EXPR_SLICE && s->a->a->type.dims == 2)
        return peal_halo_refuse(h, s->pos, "a clause about rows");
    bool good = (!s->c || read_where(h, s->c)) && peal_halo_place(h, s->a, false, &symbol) &&
                read_value(h, s->b, true, &level);
    h->index = NULL;
    h->clause = false;
    return good;
}

/* Least numbers for the dimension, or for the number of ranks. */
static bool read_promise(struct halo *h, const struct peal_expr *e)
{
    int64_t bound = 0, slope = 0;
    bool holds;
    if (peal_word_is_binary(e, PEAL_INT_ANDAND))
        return read_promise(h, e->a) && read_promise(h, e->b);
    bool compares = peal_word_is_binary(e, PEAL_INT_GT) || peal_word_is_binary(e, PEAL_INT_GE) ||
                    peal_word_is_binary(e, PEAL_INT_NE);
    if (compares && peal_word_is_builtin(e->a, PEAL_NRANKS))
        return peal_halo_condition(h, e, &holds);
    if (!compares || !peal_word_is_name(e->a, h->dim) || !peal_halo_affine(h, e->b, &bound, &slope))
        return peal_halo_refuse(h, e->pos,
                                "a promise that does not bound the count, or the number of "
                                "ranks, from below");
    halo_raise(&h->most, bound + 1);
    return true;
}

/* --- statements ------------------------------------------------------------------------------ */

static bool read_block(struct halo *h, const struct peal_stmt *s);

static bool read_decl(struct halo *h, const struct peal_stmt *s)
{
    const struct peal_symbol *symbol = s->symbol;
    int64_t bound;
    if (symbol->kind == PEAL_SYMBOL_SIGNAL)
        return symbol->mode == PEAL_MODE_ONE_WRITER ||
               peal_halo_refuse(h, s->pos, "a signal that is shared or raw");
    if (symbol->kind == PEAL_SYMBOL_CHANNEL)
        return true;
    return peal_halo_size(h, symbol->shape[0], &bound) &&
           (symbol->type.dims < 2 || peal_halo_size(h, symbol->shape[1], &bound));
}

static bool read_scope(struct halo *h, const struct peal_stmt *s)
{
    uint32_t outer = h->scope;
    h->scope = ++h->scopes;
    bool good = read_block(h, s->body);
    h->scope = outer;
    return good;
}

/* Many ranks take one branch. The other one is that of few, which are proved one by one. */
static bool read_if(struct halo *h, const struct peal_stmt *s)
{
    bool holds, few = h->few;
    if (!peal_halo_condition(h, s->a, &holds) || !read_block(h, holds ? s->body : s->other))
        return false;
    h->few = true;
    bool good = read_block(h, holds ? s->other : s->body);
    h->few = few;
    return good;
}

static bool read_statement(struct halo *h, const struct peal_stmt *s)
{
    switch (s->kind) {
    case PEAL_STMT_DECL:
        return read_decl(h, s);
    case PEAL_STMT_LET:
        return read_let(h, s);
    case PEAL_STMT_ASSIGN:
        return read_assign(h, s);
    case PEAL_STMT_NOTIFY:
        return read_notify(h, s);
    case PEAL_STMT_WAIT:
        return read_wait(h, s);
    case PEAL_STMT_SEND:
        return read_send(h, s);
    case PEAL_STMT_IF:
        return read_if(h, s);
    case PEAL_STMT_ASSERT:
        return s->required && !h->scope ? read_promise(h, s->a)
                                        : peal_halo_refuse(h, s->pos, "an assert in a halo");
    case PEAL_STMT_ENSURES:
        return read_ensures(h, s);
    case PEAL_STMT_SCOPE:
        return read_scope(h, s);
    case PEAL_STMT_FOR:
    case PEAL_STMT_FOR_PEERS:
        return peal_halo_refuse(h, s->pos, "a loop whose number of turns is not in the text");
    case PEAL_STMT_POST:
    case PEAL_STMT_AWAIT:
        return peal_halo_refuse(h, s->pos, "a recv_async: write a recv where it is waited for");
    default:
        return peal_halo_refuse(h, s->pos, "a statement of no class");
    }
}

static bool read_block(struct halo *h, const struct peal_stmt *s)
{
    for (; s; s = s->next) {
        if (!read_statement(h, s))
            return false;
    }
    return true;
}

static bool read_params(struct halo *h)
{
    const struct peal_kernel *k = h->kernel;
    int64_t bound;
    if (k->implements)
        return peal_halo_refuse(h, k->pos, "a collective, whose result depends on all ranks");
    for (const struct peal_symbol *s = k->symbols; s; s = s->next) {
        if (s->kind == PEAL_SYMBOL_INT || s->kind == PEAL_SYMBOL_INTS ||
            (s->kind == PEAL_SYMBOL_DIM && h->dim))
            return peal_halo_refuse(h, s->pos, "a number that the caller gives, besides one count");
        if (s->kind == PEAL_SYMBOL_DIM)
            h->dim = s;
    }
    for (int i = 0; i < k->nparams; i++) {
        const struct peal_symbol *s = k->params[i];
        if (s->kind != PEAL_SYMBOL_BUFFER)
            continue;
        if (!peal_halo_size(h, s->shape[0], &bound) ||
            (s->type.dims == 2 && !peal_halo_size(h, s->shape[1], &bound)))
            return false;
    }
    return true;
}

/* How many messages are received as are sent, and what few ranks and counts stand for all. */
static bool finish(struct halo *h)
{
    struct peal_forall *out = h->out;
    int64_t period = h->kernel->period > 1 ? h->kernel->period : 1;
    for (uint32_t i = 0; i < h->nkeys; i++) {
        if (h->keys[i].channel && h->keys[i].posts != h->keys[i].takes)
            return peal_halo_refuse(h, h->kernel->pos, "a channel with more sends than recvs");
    }
    int64_t cutoff = (period + 1) * h->takes * h->far + 2 * h->far + 1;
    halo_raise(&cutoff, h->takes * h->far + h->said + 1);
    halo_raise(&cutoff, h->ranks + 2);
    int64_t count = 2 * h->most * (2 * (int64_t)h->highest + 1) + 1;
    if (cutoff > HALO_MAX_RANKS || count > HALO_MAX_COUNT)
        return peal_halo_refuse(h, h->kernel->pos,
                                "more ranks matter at once than can be verified");
    out->cutoff = (uint32_t)(cutoff < 2 ? 2 : cutoff);
    out->least = count;
    out->ahead = h->ahead;
    out->in = PEAL_FORALL_HALO;
    return true;
}

bool peal_halo_classify(const struct peal_kernel *kernel, struct peal_forall *out)
{
    struct peal_normal normal;
    struct halo h = {.out = out, .most = 1};
    *out = (struct peal_forall){0};
    if (!peal_normal_make(kernel, true, &normal))
        return peal_word_refuse(out, kernel->pos, "a text that is too large to be examined");
    h.kernel = normal.kernel;
    h.level = calloc(h.kernel->nslots + 1u, sizeof *h.level);
    bool good = h.level;
    if (!good)
        (void)peal_halo_refuse(&h, kernel->pos, "out of memory");
    good = good && read_params(&h) && read_block(&h, h.kernel->body) && finish(&h);
    free(h.level);
    peal_normal_release(&normal);
    return good;
}
