/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a ring kernel, read into a model.
 *
 * Statements outside loops are segments of one turn. A loop is a segment; if a condition in it
 * changes at a turn, the loop is read again as two segments. Whatever is not named here is refused,
 * so that a new kind of statement is outside the class at first.
 *
 * The body is read twice: the first time shows how buffers are divided and which lane writes them,
 * which the inputs and outputs around the second reading depend on. Where a window is written by a
 * neighbour it is read three times, since all accesses to it are then counted from its writer.
 */
#include "verify/forall/words.h"
#include "verify/ring/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SCALE = 6 };

bool peal_ring_refuse(struct ring_reader *r, struct peal_pos at, const char *why)
{
    if (!r->out->why[0]) {
        snprintf(r->out->why, sizeof r->out->why, "%s", why);
        r->out->at = at;
    }
    return false;
}

/* --- segments, ops and syncs ----------------------------------------------------------------- */

static bool open_segment(struct ring_reader *r, struct ring_affine first, struct ring_affine end,
                         bool single)
{
    struct ring_model *m = r->m;
    if (m->nsegments == RING_MAX_SEGMENTS)
        return peal_ring_refuse(r, m->kernel->pos, "more loops than are examined");
    m->segments[m->nsegments++] =
        (struct ring_segment){.lane = r->lane, .first = first, .end = end, .op = m->nops};
    r->single = single;
    return true;
}

static bool open_single(struct ring_reader *r)
{
    r->first = ring_number(0);
    r->end = ring_number(1);
    return open_segment(r, r->first, r->end, true);
}

struct ring_op *peal_ring_add_op(struct ring_reader *r, enum ring_kind kind, struct peal_pos at)
{
    struct ring_model *m = r->m;
    if (!r->in_loop && !r->single && !open_single(r))
        return NULL;
    if (m->nops == RING_MAX_OPS) {
        (void)peal_ring_refuse(r, at, "more operations than are examined");
        return NULL;
    }
    m->segments[m->nsegments - 1].ops++;
    m->ops[m->nops] = (struct ring_op){.kind = kind, .segment = m->nsegments - 1, .line = at.line};
    return &m->ops[m->nops++];
}

uint32_t peal_ring_sync(struct ring_reader *r, struct ring_sync sync, struct peal_pos at)
{
    struct ring_model *m = r->m;
    for (uint32_t i = 0; i < m->nsyncs; i++) {
        struct ring_sync *s = &m->syncs[i];
        if (s->symbol != sync.symbol || s->index != sync.index || s->channel != sync.channel)
            continue;
        if (s->channel && (s->shift != sync.shift || s->lane != r->lane))
            continue;
        if (!s->channel && s->call != r->call) {
            (void)peal_ring_refuse(r, at, "a signal of a call that is used elsewhere too");
            return PEAL_NONE;
        }
        if (s->lane != r->lane || (s->shift && sync.shift && s->shift != sync.shift)) {
            (void)peal_ring_refuse(r, at, "a cell that has two writers or that two lanes wait for");
            return PEAL_NONE;
        }
        s->shift = s->shift ? s->shift : sync.shift;
        return i;
    }
    if (m->nsyncs == RING_MAX_SYNCS) {
        (void)peal_ring_refuse(r, at, "more cells and channels than are examined");
        return PEAL_NONE;
    }
    sync.lane = r->lane;
    sync.call = r->call;
    m->syncs[m->nsyncs] = sync;
    return m->nsyncs++;
}

/* --- signals --------------------------------------------------------------------------------- */

/* s, or s[i] with a number i. */
static bool read_cell(struct ring_reader *r, const struct peal_expr *e, struct ring_sync *out)
{
    const struct peal_expr *name = e->kind == PEAL_EXPR_SLICE ? e->a : e;
    *out = (struct ring_sync){.message = PEAL_NONE};
    if (name->kind != PEAL_EXPR_NAME || !name->symbol || name->symbol->kind != PEAL_SYMBOL_SIGNAL)
        return peal_ring_refuse(r, e->pos, "a cell that is not named by a number");
    out->symbol = name->symbol;
    bool array = name->symbol->shape[0] != NULL;
    if (name == e && !array)
        return true;
    if (name == e || e->nslices != 1 || e->slices[0].kind != PEAL_SLICE_INDEX)
        return peal_ring_refuse(r, e->pos, "a cell that is not named by a number");
    struct ring_int size = peal_ring_int(r, name->symbol->shape[0]);
    struct ring_int index = size.known ? peal_ring_int(r, e->slices[0].a) : size;
    if (!index.known)
        return false;
    bool fixed = !index.own && !index.modular && ring_is_number(index.at) && !size.own &&
                 !size.modular && ring_is_number(size.at);
    if (!fixed || index.at.one < 0 || index.at.one >= size.at.one)
        return peal_ring_refuse(r, e->pos, "a cell that is not named by a number");
    out->index = (uint32_t)index.at.one;
    return true;
}

static bool read_notify(struct ring_reader *r, const struct peal_stmt *s)
{
    struct ring_sync sync;
    int32_t shift = 0;
    if (!peal_stmt_orders_fully(s) || s->is_set || s->b->kind != PEAL_EXPR_INT || s->b->value != 1)
        return peal_ring_refuse(r, s->pos, "a notify that does not add 1");
    if (s->a->kind != PEAL_EXPR_AT || !read_cell(r, s->a->a, &sync) ||
        !peal_ring_peer(r, s->a->b, &shift))
        return peal_ring_refuse(r, s->pos, "a notify of this rank");
    if (!shift)
        return peal_ring_refuse(r, s->pos, "a notify of this rank");
    sync.shift = shift;
    uint32_t found = peal_ring_sync(r, sync, s->pos);
    struct ring_op *op = found == PEAL_NONE ? NULL : peal_ring_add_op(r, RING_POST, s->pos);
    if (!op)
        return false;
    op->sync = found;
    return true;
}

static bool read_wait(struct ring_reader *r, const struct peal_stmt *s)
{
    struct ring_sync sync;
    if (!peal_stmt_orders_fully(s) || s->is_equal || s->back)
        return peal_ring_refuse(r, s->pos, "a wait that is not for >= in its own launch");
    struct ring_int threshold = peal_ring_int(r, s->b);
    if (!threshold.known || !read_cell(r, s->a, &sync))
        return false;
    if (threshold.own || threshold.modular)
        return peal_ring_refuse(r, s->pos, "a threshold that depends on the rank");
    uint32_t found = peal_ring_sync(r, sync, s->pos);
    struct ring_op *op = found == PEAL_NONE ? NULL : peal_ring_add_op(r, RING_TAKE, s->pos);
    if (!op)
        return false;
    op->sync = found;
    op->threshold = threshold.at;
    return true;
}

/* --- statements ------------------------------------------------------------------------------ */

static bool read_block(struct ring_reader *r, const struct peal_stmt *s);

/* Reads the turns from first to end; again in two pieces if a condition changes in between. */
static bool read_turns(struct ring_reader *r, const struct peal_stmt *s, struct ring_affine first,
                       struct ring_affine end)
{
    struct ring_model *m = r->m;
    uint32_t segments = m->nsegments, ops = m->nops;
    r->first = first;
    r->end = end;
    r->cut = false;
    if (!open_segment(r, first, end, false))
        return false;
    if (read_block(r, s->body))
        return true;
    if (!r->cut)
        return false;
    struct ring_affine at = r->at;
    m->nsegments = segments;
    m->nops = ops;
    return read_turns(r, s, first, at) && read_turns(r, s, at, end);
}

static bool read_for(struct ring_reader *r, const struct peal_stmt *s)
{
    if (r->in_loop || s->c)
        return peal_ring_refuse(r, s->pos, "a nested loop, or one with a step");
    struct ring_int first = peal_ring_int(r, s->a), end = peal_ring_int(r, s->b);
    if (!first.known || !end.known)
        return false;
    if (first.own || first.modular || end.own || end.modular)
        return peal_ring_refuse(r, s->pos, "a loop that depends on the rank");
    struct ring_affine turns = ring_add(end.at, first.at, -1);
    if (peal_ring_not_above(r->m, turns))
        return true;
    if (!peal_ring_above(r->m, turns))
        return peal_ring_refuse(r, s->pos, "a loop that is empty for some numbers of ranks");
    r->names[s->symbol->slot] = (struct ring_int){.known = true, .at = {.turn = 1}};
    r->in_loop = true;
    bool good = read_turns(r, s, first.at, end.at);
    r->in_loop = r->single = false;
    r->first = ring_number(0);
    r->end = ring_number(1);
    return good;
}

static bool read_if(struct ring_reader *r, const struct peal_stmt *s)
{
    int holds = peal_ring_condition(r, s->a);
    if (holds < 0)
        return false;
    return read_block(r, holds ? s->body : s->other);
}

static bool read_let(struct ring_reader *r, const struct peal_stmt *s)
{
    if (s->symbol->kind == PEAL_SYMBOL_TILE)
        return peal_ring_let_tile(r, s);
    if (s->symbol->kind != PEAL_SYMBOL_LET || s->symbol->type.kind != PEAL_TYPE_INT)
        return peal_ring_refuse(r, s->pos, "a name for what is neither data nor a number");
    r->names[s->symbol->slot] = peal_ring_int(r, s->a);
    return r->names[s->symbol->slot].known;
}

static bool read_decl(struct ring_reader *r, const struct peal_stmt *s)
{
    if (s->symbol->kind == PEAL_SYMBOL_SIGNAL && s->symbol->mode != PEAL_MODE_ONE_WRITER)
        return peal_ring_refuse(r, s->pos, "a signal that is shared or raw");
    return true;
}

/* A call counts the cells that it uses from where it begins, so it has cells of its own. */
static bool read_call(struct ring_reader *r, const struct peal_stmt *s)
{
    if (r->in_loop)
        return peal_ring_refuse(r, s->pos, "a call inside a loop");
    uint32_t outer = r->call;
    r->call = ++r->calls;
    bool good = read_block(r, s->body);
    r->call = outer;
    return good;
}

/* n >= 1, nranks >= 2: what few ranks and counts may lack, and many have. */
static bool read_assert(struct ring_reader *r, const struct peal_stmt *s)
{
    int64_t least = 0;
    if (!s->required || r->in_loop || r->call || !peal_word_is_floor(s->a, &least))
        return peal_ring_refuse(r, s->pos, "an assert, or a promise about more than n >= 1");
    bool ranks = peal_ring_is_nranks(s->a->a);
    int64_t *known = ranks ? &r->out->least_ranks : &r->out->least_count;
    *known = *known < least ? least : *known;
    r->m->least_count = r->out->least_count;
    return true;
}

static bool read_statement(struct ring_reader *r, const struct peal_stmt *s)
{
    switch (s->kind) {
    case PEAL_STMT_DECL:
        return read_decl(r, s);
    case PEAL_STMT_LET:
        return read_let(r, s);
    case PEAL_STMT_ASSIGN:
        return peal_ring_assign(r, s);
    case PEAL_STMT_NOTIFY:
        return read_notify(r, s);
    case PEAL_STMT_WAIT:
        return read_wait(r, s);
    case PEAL_STMT_SEND:
        return peal_ring_send(r, s);
    case PEAL_STMT_FOR:
        return read_for(r, s);
    case PEAL_STMT_IF:
        return read_if(r, s);
    case PEAL_STMT_SCOPE:
        return read_call(r, s);
    case PEAL_STMT_ENSURES: /* read_clause.c has read it */
        return true;
    case PEAL_STMT_ASSERT:
        return read_assert(r, s);
    case PEAL_STMT_POST:
    case PEAL_STMT_AWAIT:
        return peal_ring_refuse(r, s->pos, "a recv_async: write a recv where it is waited for");
    default:
        return peal_ring_refuse(r, s->pos,
                                "a statement that no ring has: a variable, an "
                                "accumulate, a grid, a tree or lanes in lanes");
    }
}

static bool read_block(struct ring_reader *r, const struct peal_stmt *s)
{
    for (; s; s = s->next) {
        if (!read_statement(r, s))
            return false;
    }
    return true;
}

/* --- lanes ----------------------------------------------------------------------------------- */

static const struct peal_stmt *first_lane(const struct peal_kernel *kernel)
{
    const struct peal_stmt *s = kernel->body;
    while (s && s->kind != PEAL_STMT_LANE)
        s = s->next;
    return s;
}

/* One lane of the kernel, with its inputs before it and its outputs after it. */
static bool read_lane(struct ring_reader *r, const struct peal_stmt *body, bool ends)
{
    r->single = false;
    r->first = ring_number(0);
    r->end = ring_number(1);
    if (!ends)
        return read_block(r, body);
    if (!peal_ring_inputs(r) || !read_block(r, body))
        return false;
    r->single = false;
    return peal_ring_outputs(r);
}

/* A number that does not depend on the number of ranks. */
static bool fixed_int(struct ring_reader *r, const struct peal_expr *e, int64_t *out)
{
    struct ring_int v = peal_ring_int(r, e);
    if (!v.known)
        return false;
    if (v.own || v.modular || !ring_is_number(v.at))
        return peal_ring_refuse(r, e->pos, "a number of lanes that is not fixed");
    *out = v.at.one;
    return true;
}

static bool read_lane_statement(struct ring_reader *r, const struct peal_stmt *s, bool ends)
{
    int64_t from = 0, to = 1;
    if (s->symbol && (!fixed_int(r, s->a, &from) || !fixed_int(r, s->b, &to)))
        return false;
    for (int64_t i = from; i < to; i++) {
        if (r->lane == RING_MAX_LANES)
            return peal_ring_refuse(r, s->pos, "more lanes than are examined");
        if (s->symbol)
            r->names[s->symbol->slot] = (struct ring_int){.known = true, .at = ring_number(i)};
        /* Every lane has its own tiles. */
        memset(r->tiles, 0, (r->m->kernel->nslots + 1u) * sizeof *r->tiles);
        if (!read_lane(r, s->body, ends))
            return false;
        r->lane++;
    }
    return true;
}

static bool read_body(struct ring_reader *r, bool ends)
{
    const struct peal_kernel *k = r->m->kernel;
    r->m->nops = r->m->nsegments = r->lane = r->call = r->calls = 0;
    r->m->lanes = 1;
    if (!first_lane(k))
        return read_lane(r, k->body, ends);
    for (const struct peal_stmt *s = k->body; s; s = s->next) {
        bool quiet = s->kind == PEAL_STMT_DECL || s->kind == PEAL_STMT_ENSURES ||
                     (s->kind == PEAL_STMT_LET && s->symbol->kind == PEAL_SYMBOL_LET);
        if (!quiet && s->kind != PEAL_STMT_LANE)
            return peal_ring_refuse(r, s->pos, "a statement beside lanes");
        if (!(quiet ? read_statement(r, s) : read_lane_statement(r, s, ends)))
            return false;
    }
    r->m->lanes = r->lane;
    return true;
}

/* --- kernels --------------------------------------------------------------------------------- */

static void find_nranks(struct peal_expr *e, void *found)
{
    *(bool *)found = *(bool *)found || peal_ring_is_nranks(e);
}

/* Only what depends on the number of ranks: `s % 2` may say which slot a turn uses. */
static void find_divisor(struct peal_expr *e, void *opaque)
{
    int64_t *scale = opaque, k = e->b && e->b->kind == PEAL_EXPR_INT ? e->b->value : 0;
    bool divides = e->kind == PEAL_EXPR_BINARY && (e->op == PEAL_INT_DIV || e->op == PEAL_INT_MOD);
    bool ranks = false;
    if (divides)
        peal_expr_walk(e->a, find_nranks, &ranks);
    if (!ranks || k <= 1 || *scale == 0)
        return;
    int64_t a = *scale, b = k;
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    *scale = *scale / a > MAX_SCALE / k ? 0 : *scale / a * k;
}

static void find_divisors(struct peal_stmt *s, int64_t *scale)
{
    for (; s; s = s->next) {
        peal_stmt_walk_exprs(s, find_divisor, scale);
        find_divisors(s->body, scale);
        find_divisors(s->other, scale);
    }
}

int64_t peal_ring_scale(const struct peal_kernel *kernel)
{
    int64_t scale = 1;
    find_divisors(kernel->body, &scale);
    return scale;
}

/* nranks * n */
static bool has_units(const struct peal_expr *e)
{
    return e && e->kind == PEAL_EXPR_BINARY && e->op == PEAL_INT_MUL &&
           (peal_ring_is_nranks(e->a) || peal_ring_is_nranks(e->b));
}

static bool read_params(struct ring_reader *r)
{
    const struct peal_kernel *k = r->m->kernel;
    for (const struct peal_symbol *s = k->symbols; s; s = s->next) {
        bool other = s->kind == PEAL_SYMBOL_INT || s->kind == PEAL_SYMBOL_INTS || s->is_local;
        if (other || (s->kind == PEAL_SYMBOL_DIM && r->dim))
            return peal_ring_refuse(r, s->pos, "a number that the caller gives, besides one count");
        if (s->kind == PEAL_SYMBOL_DIM)
            r->dim = s;
        if (s->kind == PEAL_SYMBOL_REDUCE)
            r->op = s;
        bool param = s->kind == PEAL_SYMBOL_BUFFER && s->place == PEAL_PLACE_PARAM;
        if (param && (((s->dir & 1) && r->x) || ((s->dir & 2) && r->y)))
            return peal_ring_refuse(r, s->pos, "a second input or output");
        if (param && (s->dir & 1))
            r->x = s;
        if (param && (s->dir & 2))
            r->y = s;
        r->m->units = r->m->units || (param && has_units(s->shape[0]));
    }
    return r->x && r->y && r->dim
               ? true
               : peal_ring_refuse(r, k->pos, "no input, output and count to follow round a ring");
}

/* Does every cell have a writer, and does the nth recv take the nth message? */
static bool finish_syncs(struct ring_reader *r)
{
    struct ring_model *m = r->m;
    for (uint32_t i = 0; i < m->nops; i++) {
        struct ring_op *op = &m->ops[i];
        if (op->kind != RING_TAKE || !m->syncs[op->sync].channel)
            continue;
        op->threshold = ring_add(peal_ring_before(m, i, RING_TAKE, op->sync), ring_number(1), 1);
    }
    for (uint32_t i = 0; i < m->nsyncs; i++) {
        if (!m->syncs[i].shift)
            return peal_ring_refuse(r, m->kernel->pos, "a cell that is never notified");
    }
    return true;
}

bool peal_ring_read(struct ring_model *m, const struct peal_kernel *kernel, struct peal_forall *out)
{
    size_t slots = kernel->nslots + 1u;
    struct ring_reader r = {.m = m, .out = out};
    m->kernel = kernel;
    m->nbuffers = m->nsyncs = 0;
    m->units = false;
    m->least_count = 0;
    m->phases = 1;
    r.names = calloc(slots, sizeof *r.names);
    r.tiles = calloc(slots, sizeof *r.tiles);
    r.pushed = calloc(slots, sizeof *r.pushed);
    bool good = r.names && r.tiles && r.pushed;
    if (!good)
        (void)peal_ring_refuse(&r, kernel->pos, "out of memory");
    good = good && read_params(&r) && peal_ring_contract(&r) && read_body(&r, false);
    if (good && r.again) {
        memset(r.tiles, 0, slots * sizeof *r.tiles);
        m->nbuffers = m->nsyncs = 0;
        good = read_body(&r, false);
    }
    if (good)
        memset(r.tiles, 0, slots * sizeof *r.tiles);
    good = good && read_body(&r, true) && finish_syncs(&r);
    free(r.names);
    free(r.tiles);
    free(r.pushed);
    return good;
}
