/* SPDX-License-Identifier: Apache-2.0 */
/* Is a kernel's text a mesh?
 *
 * The walk knows of every integer whether it is a *rank* (rank, root, 0, a peer, the variable of a
 * loop over all ranks, a name for one of these) or a *size* (a dimension or an integer parameter),
 * and refuses what could make anything but equality of ranks matter: arithmetic on ranks, nranks
 * or a size in a condition, a threshold or an amount, other loops, lanes, raw cells, relaxed ops. The
 * threshold of a shared cell may have nranks: totals.c compares it with what is added. Every statement kind and expression kind that is not named is
 * refused, so that a new one is outside the class until it has been thought through.
 */
#include "verify/forall/mesh.h"

#include "verify/forall/linear.h"
#include "verify/forall/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool peal_mesh_refuse(struct mesh *m, struct peal_pos at, const char *why)
{
    if (!m->out->why[0]) {
        snprintf(m->out->why, sizeof m->out->why, "%s", why);
        m->out->at = at;
    }
    return false;
}

/* --- integers -------------------------------------------------------------------------------- */

bool peal_mesh_is_nranks(const struct peal_expr *e)
{
    return peal_word_is_builtin(e, PEAL_NRANKS);
}

/* nranks - 1, also as the end of a loop */
static bool is_last(const struct peal_expr *e)
{
    return peal_word_is_binary(e, PEAL_INT_SUB) && peal_mesh_is_nranks(e->a) &&
           peal_word_is_int(e->b, 1);
}

bool peal_mesh_is_rank(struct mesh *m, const struct peal_expr *e)
{
    if (!e)
        return false;
    if (is_last(e))
        return m->last = true;
    if (peal_word_is_int(e, 0))
        return m->zero = true;
    if (peal_word_is_root(e))
        return m->root = true;
    if (peal_word_is_builtin(e, PEAL_RANK))
        return true;
    if (m->split && peal_word_is_binary(e, PEAL_INT_DIV) && peal_word_is_name(e->a, m->index))
        return peal_linear_same(e->b, m->unit);
    return e->kind == PEAL_EXPR_NAME && e->symbol && m->role[e->symbol->slot] == MESH_RANK;
}

/* nranks == 1, nranks != 1, nranks > 1: are the first and the last rank the same? */
static bool is_alone(struct mesh *m, const struct peal_expr *e)
{
    bool alone = (e->op == PEAL_INT_EQ || e->op == PEAL_INT_NE || e->op == PEAL_INT_GT) &&
                 peal_mesh_is_nranks(e->a) && peal_word_is_int(e->b, 1);
    if (alone)
        m->zero = m->last = true;
    return alone;
}

/* Equality of ranks, and combinations of such conditions by `and`, `or`, `not`. */
bool peal_mesh_is_condition(struct mesh *m, const struct peal_expr *e)
{
    if (e->kind == PEAL_EXPR_UNARY && e->op == PEAL_INT_NOT)
        return peal_mesh_is_condition(m, e->a);
    if (e->kind != PEAL_EXPR_BINARY)
        return false;
    if (e->op == PEAL_INT_ANDAND || e->op == PEAL_INT_OROR)
        return peal_mesh_is_condition(m, e->a) && peal_mesh_is_condition(m, e->b);
    if (is_alone(m, e))
        return true;
    return (e->op == PEAL_INT_EQ || e->op == PEAL_INT_NE) && peal_mesh_is_rank(m, e->a) &&
           peal_mesh_is_rank(m, e->b);
}

/* The rank that a condition confines its statement to. */
static enum mesh_pin pin_of(const struct peal_expr *e)
{
    if (e->kind != PEAL_EXPR_BINARY)
        return MESH_ANY;
    if (e->op == PEAL_INT_ANDAND)
        return pin_of(e->a) != MESH_ANY ? pin_of(e->a) : pin_of(e->b);
    if (e->op != PEAL_INT_EQ)
        return MESH_ANY;
    const struct peal_expr *other = peal_word_is_builtin(e->a, PEAL_RANK) ? e->b : e->a;
    if (!peal_word_is_builtin(e->a, PEAL_RANK) && !peal_word_is_builtin(e->b, PEAL_RANK))
        return MESH_ANY;
    if (peal_word_is_int(other, 0))
        return MESH_ZERO;
    return peal_word_is_root(other) ? MESH_ROOT : MESH_ANY;
}

static bool mentions(const struct peal_expr *e, const struct peal_symbol *symbol)
{
    for (; e; e = e->next) {
        if (e->kind == PEAL_EXPR_NAME && e->symbol == symbol)
            return true;
        for (int i = 0; i < e->nslices; i++) {
            if (mentions(e->slices[i].a, symbol) || mentions(e->slices[i].b, symbol))
                return true;
        }
        if (mentions(e->a, symbol) || mentions(e->b, symbol))
            return true;
    }
    return false;
}

/* Does it name the variables of all enclosing loops? */
static bool names_turn(const struct mesh *m, const struct peal_expr *e)
{
    for (uint32_t i = 0; i < m->depth; i++) {
        if (!mentions(e, m->loop[i]))
            return false;
    }
    return true;
}

/* --- signals --------------------------------------------------------------------------------- */

/* All that one statement sends and receives is in one block. */
static void note_sync(struct mesh *m, struct peal_pos at)
{
    if (m->noted)
        return;
    m->noted = true;
    if (m->nsyncs < MESH_MAX_SYNCS)
        m->syncs[m->nsyncs] =
            (struct mesh_sync){at.line, at.col, m->via, m->depth ? m->block : ++m->blocks};
    m->nsyncs++;
}

static bool is_signal(const struct peal_expr *e)
{
    return e && e->kind == PEAL_EXPR_NAME && e->symbol && e->symbol->kind == PEAL_SYMBOL_SIGNAL;
}

static bool is_cell_of(const struct peal_expr *e)
{
    return e->kind == PEAL_EXPR_SLICE && is_signal(e->a) && e->nslices == 1 &&
           e->slices[0].kind == PEAL_SLICE_INDEX && peal_mesh_is_nranks(e->a->symbol->shape[0]);
}

/* A call counts the cells that it uses from where it begins. So the cells of a signal are used in
 * one call only, or outside all calls. */
static bool is_at_home(struct mesh *m, const struct peal_stmt *s, const struct peal_symbol *signal)
{
    uint64_t here = m->via + 1;
    if (m->home[signal->slot] && m->home[signal->slot] != here)
        return peal_mesh_refuse(m, s->pos, "a signal of a call that is used elsewhere too");
    m->home[signal->slot] = here;
    return true;
}

static bool read_notify(struct mesh *m, const struct peal_stmt *s)
{
    const struct peal_expr *at = s->a, *cell = at->a;
    if (!peal_stmt_orders_fully(s) || s->is_set || s->b->kind != PEAL_EXPR_INT || s->b->value <= 0)
        return peal_mesh_refuse(m, s->pos, "a notify that does not add a positive constant");
    if (at->kind != PEAL_EXPR_AT || !peal_mesh_is_rank(m, at->b))
        return peal_mesh_refuse(m, s->pos, "a notify to a rank that is computed");
    if (!names_turn(m, at->b))
        return peal_mesh_refuse(m, s->pos, "a notify that a loop over ranks repeats");
    note_sync(m, s->pos);
    if (is_cell_of(cell)) {
        if (peal_word_is_builtin(cell->slices[0].a, PEAL_RANK))
            return is_at_home(m, s, cell->a->symbol);
        return peal_mesh_refuse(m, s->pos, "a cell that is not indexed by its writer");
    }
    if (!is_signal(cell) || cell->symbol->shape[0])
        return peal_mesh_refuse(m, s->pos,
                                "a cell that is neither indexed by its writer nor single");
    if (cell->symbol->mode == PEAL_MODE_SHARED)
        return is_at_home(m, s, cell->symbol);
    uint8_t *writer = &m->writer[cell->symbol->slot];
    if (m->pin == MESH_ANY || (*writer != MESH_ANY && *writer != (uint8_t)m->pin))
        return peal_mesh_refuse(m, s->pos,
                                "a single cell that is not written by rank 0 or root alone");
    *writer = (uint8_t)m->pin;
    return is_at_home(m, s, cell->symbol);
}

/* A multiple of nranks and a number, if the cell is shared. */
static bool is_total(struct mesh *m, const struct peal_stmt *s)
{
    struct linear sum = peal_linear_of(s->b, false);
    peal_linear_pack(&sum);
    bool ranks = sum.nterms == 1 && peal_mesh_is_nranks(sum.terms[0].atom);
    if (!is_signal(s->a) || s->a->symbol->mode != PEAL_MODE_SHARED)
        return false;
    m->shared = true;
    return sum.good && (ranks || !sum.nterms) && !s->back && peal_stmt_orders_fully(s) &&
           !s->is_equal;
}

static bool read_wait(struct mesh *m, const struct peal_stmt *s)
{
    if (is_total(m, s)) {
        if (m->depth)
            return peal_mesh_refuse(m, s->pos, "a wait that a loop over ranks repeats");
        note_sync(m, s->pos);
        return is_at_home(m, s, s->a->symbol);
    }
    if (is_signal(s->a) && s->a->symbol->mode == PEAL_MODE_SHARED)
        return peal_mesh_refuse(m, s->pos, "a wait for a part of what is added to a shared cell");
    if (!peal_stmt_orders_fully(s) || s->is_equal || s->b->kind != PEAL_EXPR_INT)
        return peal_mesh_refuse(m, s->pos, "a threshold that is not a constant");
    if (!names_turn(m, s->a))
        return peal_mesh_refuse(m, s->pos, "a wait that a loop over ranks repeats");
    note_sync(m, s->pos);
    if (is_signal(s->a) && !s->a->symbol->shape[0])
        return is_at_home(m, s, s->a->symbol);
    if (is_cell_of(s->a) && peal_mesh_is_rank(m, s->a->slices[0].a))
        return is_at_home(m, s, s->a->a->symbol);
    return peal_mesh_refuse(m, s->pos, "a wait for a cell that is not named by its writer");
}

/* --- data ------------------------------------------------------------------------------------ */

static bool is_tile(const struct peal_expr *e)
{
    return e->kind == PEAL_EXPR_NAME && e->symbol && e->symbol->kind == PEAL_SYMBOL_TILE;
}

static bool read_data(struct mesh *m, const struct peal_expr *e);

static bool read_arguments(struct mesh *m, const struct peal_expr *e)
{
    for (; e; e = e->next) {
        if (!read_data(m, e))
            return false;
    }
    return true;
}

static bool read_call(struct mesh *m, const struct peal_expr *e)
{
    switch (e->builtin) {
    case PEAL_BUILTIN_SELECT:
        if (!peal_mesh_is_condition(m, e->a))
            return peal_mesh_refuse(m, e->pos, "a choice that is not by equality of ranks");
        return read_arguments(m, e->a->next);
    case PEAL_BUILTIN_FINAL:
        return read_arguments(m, e->a->next);
    case PEAL_BUILTIN_REDUCE:
        return read_arguments(m, e->a);
    default:
        return peal_mesh_refuse(m, e->pos, "a function that is not a reduction");
    }
}

/* The channel of a pair of ranks has messages of one turn only. */
static bool read_recv(struct mesh *m, const struct peal_expr *e)
{
    if (!peal_mesh_is_rank(m, e->a))
        return peal_mesh_refuse(m, e->pos, "a message from a rank that is computed");
    if (!names_turn(m, e->a))
        return peal_mesh_refuse(m, e->pos, "a recv that a loop over ranks repeats");
    note_sync(m, m->at);
    m->remote++;
    return m->messages = true;
}

/* Does the block change the tile? */
static bool assigns(const struct peal_stmt *s, const struct peal_symbol *tile)
{
    for (; s; s = s->next) {
        const struct peal_expr *to = s->kind == PEAL_STMT_ASSIGN ? s->a : NULL;
        while (to && (to->kind == PEAL_EXPR_SLICE || to->kind == PEAL_EXPR_AT))
            to = to->a;
        if (peal_word_is_name(to, tile) || assigns(s->body, tile) || assigns(s->other, tile))
            return true;
    }
    return false;
}

static bool read_data(struct mesh *m, const struct peal_expr *e)
{
    switch (e->kind) {
    case PEAL_EXPR_RECV:
        return read_recv(m, e);
    case PEAL_EXPR_NAME:
        if (!is_tile(e))
            return peal_mesh_region(m, e);
        /* What a loop carries from one iteration to the next is a sum, which no iteration reads. */
        if (m->born[e->symbol->slot] < m->depth &&
            assigns(m->turns[m->born[e->symbol->slot]], e->symbol))
            return peal_mesh_refuse(m, e->pos, "a tile that a loop over ranks reads and changes");
        return true;
    case PEAL_EXPR_SLICE:
    case PEAL_EXPR_AT:
        return peal_mesh_region(m, e);
    case PEAL_EXPR_CALL:
        return read_call(m, e);
    default:
        return peal_mesh_refuse(m, e->pos,
                                "an operand that is neither a part of a buffer, a tile "
                                "nor a reduction of them");
    }
}

/* --- statements ------------------------------------------------------------------------------ */

static bool read_block(struct mesh *m, const struct peal_stmt *s);

bool peal_mesh_is_over_ranks(struct mesh *m, const struct peal_expr *from,
                             const struct peal_expr *to)
{
    bool good = from->kind == PEAL_EXPR_INT && (from->value == 0 || from->value == 1);
    if (!good || (!peal_mesh_is_nranks(to) && !is_last(to)))
        return false;
    m->zero = m->zero || from->value == 1;
    m->last = m->last || is_last(to);
    return true;
}

static bool read_loop(struct mesh *m, const struct peal_stmt *s)
{
    if (s->kind == PEAL_STMT_FOR && (s->c || !peal_mesh_is_over_ranks(m, s->a, s->b)))
        return peal_mesh_refuse(m, s->pos, "a loop that is not over peers or all ranks");
    if (m->depth == MESH_MAX_DEPTH)
        return peal_mesh_refuse(m, s->pos, "more than two nested loops over ranks");
    m->role[s->symbol->slot] = MESH_RANK;
    if (m->depth == 0)
        m->block = ++m->blocks;
    m->turns[m->depth] = s->body;
    m->loop[m->depth++] = s->symbol;
    m->max_depth = m->depth > m->max_depth ? m->depth : m->max_depth;
    bool good = read_block(m, s->body);
    m->depth--;
    return good;
}

static bool read_if(struct mesh *m, const struct peal_stmt *s)
{
    enum mesh_pin before = m->pin, pin;
    if (!peal_mesh_is_condition(m, s->a))
        return peal_mesh_refuse(m, s->a->pos, "a condition that is not equality of ranks");
    pin = pin_of(s->a);
    if (pin != MESH_ANY)
        m->pin = pin;
    m->conditions++;
    bool good = read_block(m, s->body);
    m->pin = before;
    good = good && (!s->other || read_block(m, s->other));
    m->conditions--;
    return good;
}

static bool is_size(const struct mesh *m, const struct peal_expr *e)
{
    return e->kind == PEAL_EXPR_NAME && e->symbol && m->role[e->symbol->slot] == MESH_SIZE;
}

/* Bounds of sizes: n <= most, cdiv(n, nranks) <= most. One in a branch or a loop is not believed:
 * some rank, or the only one, may not execute it. */
static bool read_assert(struct mesh *m, const struct peal_stmt *s)
{
    const struct peal_expr *e = s->a, *n = e->a;
    if (s->required && !m->conditions && !m->depth && !m->via && peal_mesh_requires(m, e))
        return true;
    if (peal_word_is_even(e)) {
        if (m->conditions || m->depth)
            return peal_mesh_refuse(m, s->pos, "an assert that some ranks do not execute");
        return m->even = true;
    }
    bool order = e->kind == PEAL_EXPR_BINARY && e->op == PEAL_INT_LE && is_size(m, e->b);
    if (order && n->kind == PEAL_EXPR_CALL && n->builtin == PEAL_BUILTIN_CDIV && n->a->next &&
        peal_mesh_is_nranks(n->a->next))
        n = n->a;
    if (!order || !is_size(m, n) || m->nasserts == MESH_MAX_ASSERTS)
        return peal_mesh_refuse(m, s->pos, "an assert that does not bound one size by another");
    if (!m->conditions && !m->depth)
        m->asserts[m->nasserts++] = e;
    return true;
}

static bool read_let(struct mesh *m, const struct peal_stmt *s)
{
    if (s->symbol->kind == PEAL_SYMBOL_TILE) {
        m->born[s->symbol->slot] = (uint8_t)m->depth;
        return read_data(m, s->a);
    }
    if (s->symbol->kind != PEAL_SYMBOL_LET || !peal_mesh_is_rank(m, s->a))
        return peal_mesh_refuse(m, s->pos, "a name for a number that is not a rank");
    m->role[s->symbol->slot] = MESH_RANK;
    return true;
}

static bool read_decl(struct mesh *m, const struct peal_stmt *s)
{
    const struct peal_symbol *symbol = s->symbol;
    if (symbol->kind == PEAL_SYMBOL_BUFFER || symbol->kind == PEAL_SYMBOL_CHANNEL)
        return true;
    m->nsignals++;
    if (symbol->mode == PEAL_MODE_SHARED)
        return !symbol->shape[0] || peal_mesh_refuse(m, s->pos, "an array of shared cells");
    if (symbol->kind != PEAL_SYMBOL_SIGNAL || symbol->mode != PEAL_MODE_ONE_WRITER)
        return peal_mesh_refuse(m, s->pos, "a signal that is raw");
    return true;
}

/* t = op(t, ...): the order of iterations only affects the order of a sum. */
static bool read_sum(struct mesh *m, const struct peal_stmt *s)
{
    const struct peal_expr *sum = s->b;
    if (sum->kind != PEAL_EXPR_CALL || sum->builtin != PEAL_BUILTIN_REDUCE || !is_tile(sum->a) ||
        sum->a->symbol != s->a->symbol)
        return peal_mesh_refuse(m, s->pos,
                                "a tile whose value is that of the last iteration over ranks");
    return read_arguments(m, sum->a->next);
}

/* In a loop over ranks every iteration writes a place of its own, or adds to a sum. */
static bool read_assign(struct mesh *m, const struct peal_stmt *s)
{
    if (is_tile(s->a) && m->born[s->a->symbol->slot] != m->depth)
        return read_sum(m, s);
    if (!is_tile(s->a) && !peal_mesh_is_empty(s->a) && !names_turn(m, s->a))
        return peal_mesh_refuse(m, s->pos,
                                "a place whose value is that of the last iteration over ranks");
    return (is_tile(s->a) || peal_mesh_region(m, s->a)) && read_data(m, s->b);
}

static bool read_send(struct mesh *m, const struct peal_stmt *s)
{
    if (!peal_mesh_is_rank(m, s->b))
        return peal_mesh_refuse(m, s->pos, "a message to a rank that is computed");
    if (!names_turn(m, s->b))
        return peal_mesh_refuse(m, s->pos, "a send that a loop over ranks repeats");
    note_sync(m, s->pos);
    m->messages = true;
    return read_data(m, s->a);
}

/* A statement that no mesh has. */
static const char *name_of(const struct peal_stmt *s)
{
    switch (s->kind) {
    case PEAL_STMT_POST:
    case PEAL_STMT_AWAIT:
        return "a recv_async: write a recv where it is waited for";
    case PEAL_STMT_LANE:
        return "lanes, which a mesh has not";
    case PEAL_STMT_VAR:
        return "a variable that no loop counts up";
    case PEAL_STMT_ACCUMULATE:
        return "an accumulate into memory";
    case PEAL_STMT_GRID:
    case PEAL_STMT_TREE:
        return "a grid or a tree";
    default:
        return "a statement of no class";
    }
}

static bool read_call_statement(struct mesh *m, const struct peal_stmt *s)
{
    uint64_t outer = m->via;
    if (m->depth)
        return peal_mesh_refuse(m, s->pos, "a call inside a loop over ranks");
    m->via = mesh_via(s->pos.line, s->pos.col, outer);
    bool good = read_block(m, s->body);
    m->via = outer;
    return good;
}

static bool read_statement(struct mesh *m, const struct peal_stmt *s)
{
    m->at = s->pos;
    m->noted = false;
    switch (s->kind) {
    case PEAL_STMT_DECL:
        return read_decl(m, s);
    case PEAL_STMT_LET:
        return read_let(m, s);
    case PEAL_STMT_ASSIGN:
        return read_assign(m, s);
    case PEAL_STMT_NOTIFY:
        return read_notify(m, s);
    case PEAL_STMT_WAIT:
        return read_wait(m, s);
    case PEAL_STMT_SEND:
        return read_send(m, s);
    case PEAL_STMT_FOR:
    case PEAL_STMT_FOR_PEERS:
        return read_loop(m, s);
    case PEAL_STMT_IF:
        return read_if(m, s);
    case PEAL_STMT_ASSERT:
        return read_assert(m, s);
    case PEAL_STMT_SCOPE:
        return read_call_statement(m, s);
    case PEAL_STMT_ENSURES:
        return peal_mesh_ensures(m, s);
    default:
        return peal_mesh_refuse(m, s->pos, name_of(s));
    }
}

static bool read_block(struct mesh *m, const struct peal_stmt *s)
{
    for (; s; s = s->next) {
        if (!read_statement(m, s))
            return false;
    }
    return true;
}

static bool read_params(struct mesh *m)
{
    const struct peal_kernel *k = m->kernel;
    uint32_t dims = 0;
    for (const struct peal_symbol *s = k->symbols; s; s = s->next) {
        if (s->kind == PEAL_SYMBOL_DIM && dims++)
            return peal_mesh_refuse(m, s->pos, "more than one dimension");
        if (s->kind == PEAL_SYMBOL_DIM)
            m->role[s->slot] = MESH_SIZE;
        if (s->kind == PEAL_SYMBOL_INTS || s->is_local)
            return peal_mesh_refuse(m, s->pos, "numbers given rank by rank");
        if (s->kind == PEAL_SYMBOL_INT && strcmp(s->name, "root") != 0)
            m->role[s->slot] = MESH_SIZE;
    }
    return true;
}

/* In place, one parameter is the other's memory: pieces must lie alike in both. */
static bool check_pieces(struct mesh *m)
{
    const struct mesh_layout *known = NULL;
    for (const struct peal_symbol *s = m->kernel->symbols; s; s = s->next) {
        const struct mesh_layout *layout = &m->layout[s->slot];
        if (m->by_rank[s->slot] && layout->cut == MESH_PARTS && layout->inner)
            return peal_mesh_refuse(m, s->pos, "a buffer that is divided in two ways");
        if (s->kind != PEAL_SYMBOL_BUFFER || s->place != PEAL_PLACE_PARAM ||
            layout->cut != MESH_PARTS)
            continue;
        bool alike = !known || (known->inner == layout->inner &&
                                (known->pieces == layout->pieces ||
                                 (!layout->inner && (known->pieces == 1 || layout->pieces == 1))));
        if (!alike)
            return peal_mesh_refuse(m, s->pos, "parameters that are divided in two ways");
        if (!known || known->pieces == 1)
            known = layout;
    }
    return true;
}

/* Where a loop was divided, ranks have nothing in common but channels, so that no order between them
 * matters but that of messages. */
static bool check_divided(struct mesh *m)
{
    if (m->normal.divided && (m->reaches || m->nsignals))
        return peal_mesh_refuse(
            m, m->kernel->pos,
            "sends and recvs in one loop beside memory of other ranks or signals");
    return true;
}

bool peal_mesh_read(struct mesh *m, const struct peal_kernel *kernel, struct peal_forall *out)
{
    *m = (struct mesh){.kernel = kernel, .out = out, .pieces = 1};
    if (!peal_normal_make(kernel, true, &m->normal))
        return peal_mesh_refuse(m, kernel->pos, "a text that is too large to be examined");
    m->kernel = kernel = m->normal.kernel;
    size_t slots = kernel->nslots + 1u;
    m->role = calloc(slots, sizeof *m->role);
    m->writer = calloc(slots, sizeof *m->writer);
    m->layout = calloc(slots, sizeof *m->layout);
    m->born = calloc(slots, sizeof *m->born);
    m->home = calloc(slots, sizeof *m->home);
    m->by_rank = calloc(slots, sizeof *m->by_rank);
    if (!m->by_rank || !m->role || !m->writer || !m->layout || !m->born || !m->home)
        return peal_mesh_refuse(m, (struct peal_pos){0}, "out of memory");
    if (!read_params(m) || !read_block(m, kernel->body) || !check_pieces(m) || !check_divided(m))
        return false;
    if (m->nsyncs > MESH_MAX_SYNCS)
        return peal_mesh_refuse(m, kernel->pos, "more notifies and waits than are examined");
    return true;
}

void peal_mesh_release(struct mesh *m)
{
    free(m->role);
    free(m->writer);
    free(m->born);
    free(m->home);
    free(m->by_rank);
    free(m->layout);
    peal_normal_release(&m->normal);
}
