/* SPDX-License-Identifier: Apache-2.0 */
/* Data of a ring's text: which places of which vectors an assignment, tile or send reads and
 * writes.
 *
 * A vector has the kernel's only dimension and is used whole or by parts, [c of nranks]; a slot has
 * cdiv(n, nranks) elements and holds one part, [0 +: part(c, n, nranks)]. Both sides of a move are
 * whole vectors or one part; if their buffers are divided into halves, thirds, ..., they are of the
 * same one. In place, one of the contract's parameters is read as the other, or as its own part of
 * it.
 */
#include "verify/forall/linear.h"
#include "verify/ring/read.h"

#include <string.h>

static bool is_tile(const struct peal_expr *e)
{
    return e->kind == PEAL_EXPR_NAME && e->symbol && e->symbol->kind == PEAL_SYMBOL_TILE;
}

/* base, base@p, and slices of them. */
struct read_place {
    const struct peal_symbol *symbol;
    int32_t shift;
    uint32_t sub, subs;
    uint32_t phases; /* 1: it is not chosen by the launch */
    uint32_t slots;  /* 1: it has one; otherwise: */
    struct ring_affine slot;
    bool whole, prefix;
    struct ring_affine part;
};

/* --- buffers --------------------------------------------------------------------------------- */

static bool is_call(const struct peal_expr *e, enum peal_builtin which)
{
    return e && e->kind == PEAL_EXPR_CALL && e->builtin == which;
}

/* part(c, n, nranks): its c, or NULL */
static const struct peal_expr *part_number(const struct ring_reader *r, const struct peal_expr *e)
{
    if (!is_call(e, PEAL_BUILTIN_PART) || !peal_ring_is_dim(r, e->a->next) ||
        !peal_ring_is_nranks(e->a->next->next))
        return NULL;
    return e->a;
}

static bool is_own_rank(struct ring_reader *r, const struct peal_expr *e)
{
    int32_t shift = 1;
    return peal_ring_peer(r, e, &shift) && shift == 0;
}

/* T[k * n], T[k, n] */
static bool has_phases(const struct ring_reader *r, const struct peal_symbol *s, uint32_t phases)
{
    const struct peal_expr *len = s->shape[0];
    bool own = s->type.elem.generic && s->place != PEAL_PLACE_PARAM;
    if (s->shape[1])
        return own && len->kind == PEAL_EXPR_INT && len->value == phases &&
               peal_ring_is_dim(r, s->shape[1]);
    if (!own || len->kind != PEAL_EXPR_BINARY || len->op != PEAL_INT_MUL)
        return false;
    const struct peal_expr *k = peal_ring_is_dim(r, len->b) ? len->a : len->b;
    const struct peal_expr *n = k == len->a ? len->b : len->a;
    return k->kind == PEAL_EXPR_INT && k->value == phases && peal_ring_is_dim(r, n);
}

static bool is_largest_part(const struct ring_reader *r, const struct peal_expr *e)
{
    return is_call(e, PEAL_BUILTIN_CDIV) && peal_ring_is_dim(r, e->a) &&
           peal_ring_is_nranks(e->a->next);
}

/* The space that T[k * m] or T[k, m] has k times: a vector, or a part; or NULL. */
static const struct peal_expr *slot_unit(const struct ring_reader *r, const struct peal_symbol *s,
                                         int64_t *slots)
{
    const struct peal_expr *k = s->shape[0], *unit = s->shape[1];
    if (!unit && k->kind == PEAL_EXPR_BINARY && k->op == PEAL_INT_MUL) {
        unit = k->b;
        k = k->a;
    }
    bool good = unit && k->kind == PEAL_EXPR_INT && k->value >= 2 && k->value <= 8 &&
                s->type.elem.generic && s->place != PEAL_PLACE_PARAM;
    good = good &&
           (peal_ring_is_dim(r, unit) || is_largest_part(r, unit) || peal_ring_is_unit(r, unit));
    *slots = good ? k->value : 1;
    return good ? unit : NULL;
}

/* By its declared length. */
static bool storage_of(struct ring_reader *r, const struct peal_symbol *s, uint32_t phases,
                       uint32_t slots, enum ring_storage *out)
{
    const struct peal_expr *len = s->shape[0];
    int64_t known = 1;
    if (slots > 1) {
        const struct peal_expr *unit = slot_unit(r, s, &known);
        *out = unit && peal_ring_is_dim(r, unit) ? RING_PARTS : RING_SLOT;
        return unit != NULL;
    }
    bool peers = s->place == PEAL_PLACE_PARAM && s->is_window;
    bool generic = s->type.elem.generic && !s->shape[1] && !peers;
    *out = peal_ring_is_dim(r, len) ? RING_PARTS : RING_SLOT;
    if (phases > 1) {
        *out = RING_PARTS;
        return has_phases(r, s, phases) ||
               peal_ring_refuse(r, s->pos, "a buffer that has not as many vectors as phases");
    }
    if (generic && *out == RING_PARTS)
        return true;
    bool slot = is_largest_part(r, len);
    if (generic && peal_ring_is_unit(r, len))
        return true;
    bool param = s->place == PEAL_PLACE_PARAM;
    if (generic && slot && !param)
        return true;
    if (generic && param && part_number(r, len) && is_own_rank(r, part_number(r, len)))
        return true;
    return peal_ring_refuse(r, s->pos, "a buffer that is neither a vector nor space for one part");
}

static uint32_t add_buffer(struct ring_reader *r, struct ring_buffer buffer, struct peal_pos at)
{
    struct ring_model *m = r->m;
    if (m->nbuffers == RING_MAX_BUFFERS) {
        (void)peal_ring_refuse(r, at, "more buffers than are examined");
        return PEAL_NONE;
    }
    buffer.lane = PEAL_NONE;
    buffer.slots = buffer.slots ? buffer.slots : 1;
    m->buffers[m->nbuffers] = buffer;
    return m->nbuffers++;
}

static uint32_t find_buffer(struct ring_reader *r, const struct read_place *p, uint32_t sub,
                            struct peal_pos at)
{
    struct ring_model *m = r->m;
    const struct peal_symbol *s = p->symbol;
    uint32_t subs = p->subs;
    for (uint32_t i = 0; i < m->nbuffers; i++) {
        const struct ring_buffer *b = &m->buffers[i];
        if (b->symbol != s)
            continue;
        if (b->subs != subs || b->phases != p->phases || b->slots != p->slots) {
            (void)peal_ring_refuse(r, at, "a buffer that is divided in two ways");
            return PEAL_NONE;
        }
        if (b->sub == sub)
            return i;
    }
    struct ring_buffer b = {.symbol = s,
                            .sub = sub,
                            .subs = subs,
                            .phases = p->phases,
                            .slots = p->slots,
                            .pushed = r->pushed[s->slot]};
    if (!storage_of(r, s, p->phases, p->slots, &b.storage))
        return PEAL_NONE;
    if (p->phases > 1 && m->phases > 1 && m->phases != p->phases) {
        (void)peal_ring_refuse(r, at, "buffers with different numbers of phases");
        return PEAL_NONE;
    }
    if (p->phases > 1)
        m->phases = p->phases;
    if (subs > 1 && b.storage == RING_SLOT) {
        (void)peal_ring_refuse(r, at, "a slot for one part that is divided again");
        return PEAL_NONE;
    }
    b.window = s->place == PEAL_PLACE_WINDOW;
    return add_buffer(r, b, at);
}

/* --- accesses -------------------------------------------------------------------------------- */

static bool part_index(struct ring_reader *r, const struct peal_expr *e, struct ring_affine *out)
{
    struct ring_int c = peal_ring_int(r, e);
    if (!c.known)
        return false;
    bool rank = !c.modular && c.own == 1 && ring_is_number(c.at) && !c.at.one;
    if (!rank && !(c.reduced && c.own == 1))
        return peal_ring_refuse(r, e->pos,
                                "a part that is not named by its distance from the rank");
    *out = c.at;
    return true;
}

/* x[(launch mod k) * n +: n] of T[k * n], x[launch mod k] of T[k, n]: the k, or 0 */
static uint32_t phases_of(const struct ring_reader *r, const struct peal_symbol *buffer,
                          const struct peal_slice *s)
{
    const struct peal_expr *phase = s->a;
    if (buffer->shape[1]) {
        bool row = s->kind == PEAL_SLICE_INDEX && phase->kind == PEAL_EXPR_LAUNCH;
        return row ? (uint32_t)phase->value : 0;
    }
    if (s->kind != PEAL_SLICE_RANGE || !peal_ring_is_dim(r, s->b) ||
        phase->kind != PEAL_EXPR_BINARY || phase->op != PEAL_INT_MUL)
        return 0;
    const struct peal_expr *n = peal_ring_is_dim(r, phase->b) ? phase->b : phase->a;
    phase = n == phase->b ? phase->a : phase->b;
    bool in_turn = peal_ring_is_dim(r, n) && phase->kind == PEAL_EXPR_LAUNCH;
    return in_turn ? (uint32_t)phase->value : 0;
}

/* A number, or e % k: which of the slots. */
static bool slot_number(struct ring_reader *r, const struct peal_expr *e, int64_t slots,
                        struct ring_affine *out)
{
    bool turns = e->kind == PEAL_EXPR_BINARY && e->op == PEAL_INT_MOD &&
                 e->b->kind == PEAL_EXPR_INT && e->b->value == slots;
    if (!turns && (e->kind != PEAL_EXPR_INT || e->value < 0 || e->value >= slots))
        return peal_ring_refuse(r, e->pos, "a slot that is neither a number nor one modulo all");
    struct ring_int number = peal_ring_int(r, turns ? e->a : e);
    if (!number.known)
        return false;
    if (number.own || number.modular)
        return peal_ring_refuse(r, e->pos, "a slot that depends on the rank");
    *out = number.at;
    return true;
}

/* f * unit: the f; NULL: it is not. */
static const struct peal_expr *slot_factor(const struct peal_expr *e, const struct peal_expr *unit)
{
    static const struct peal_expr zero = {.kind = PEAL_EXPR_INT};
    static const struct peal_expr one = {.kind = PEAL_EXPR_INT, .value = 1};
    if (e->kind == PEAL_EXPR_INT && e->value == 0)
        return &zero;
    if (peal_linear_same(e, unit))
        return &one;
    if (e->kind != PEAL_EXPR_BINARY || e->op != PEAL_INT_MUL)
        return NULL;
    if (peal_linear_same(e->b, unit))
        return e->a;
    return peal_linear_same(e->a, unit) ? e->b : NULL;
}

/* x[s % k] of T[k, m], x[(s % k) * m +: m] of T[k * m], and of these the first elements. False:
 * it is neither, or it is refused. */
static bool add_slot(struct ring_reader *r, const struct peal_slice *s, struct read_place *p)
{
    int64_t slots = 1;
    const struct peal_expr *unit = slot_unit(r, p->symbol, &slots), *number = NULL;
    if (!unit || p->slots > 1)
        return false;
    if (p->symbol->shape[1])
        number = s->kind == PEAL_SLICE_INDEX ? s->a : NULL;
    else if (s->kind == PEAL_SLICE_RANGE)
        number = slot_factor(s->a, unit);
    if (!number || !slot_number(r, number, slots, &p->slot))
        return false;
    p->slots = (uint32_t)slots;
    if (p->symbol->shape[1] || peal_linear_same(s->b, unit))
        return true;
    const struct peal_expr *part = part_number(r, s->b);
    p->whole = false;
    p->prefix = true;
    return part && part_index(r, part, &p->part);
}

/* [c * n +: n] of T[nranks * n]: the c, or NULL */
static const struct peal_expr *unit_number(const struct ring_reader *r, const struct peal_slice *s)
{
    const struct peal_expr *e = s->a;
    if (!peal_ring_is_unit(r, s->b) || e->kind != PEAL_EXPR_BINARY || e->op != PEAL_INT_MUL)
        return NULL;
    if (peal_ring_is_unit(r, e->b))
        return e->a;
    return peal_ring_is_unit(r, e->a) ? e->b : NULL;
}

static bool add_slice(struct ring_reader *r, const struct peal_expr *e, struct read_place *p)
{
    const struct peal_slice *s = &e->slices[0];
    if (e->nslices != 1 || !p->whole)
        return peal_ring_refuse(r, e->pos, "a part of a part");
    uint32_t phases = phases_of(r, p->symbol, s);
    if (phases > 1 && p->phases == 1 && p->subs == 1) {
        p->phases = phases;
        return true;
    }
    if (p->phases == 1 && p->subs == 1 && add_slot(r, s, p))
        return true;
    if (s->kind == PEAL_SLICE_PART && peal_ring_is_nranks(s->b)) {
        p->whole = false;
        return part_index(r, s->a, &p->part);
    }
    if (s->kind == PEAL_SLICE_PART) {
        struct ring_int c = peal_ring_int(r, s->a), k = peal_ring_int(r, s->b);
        bool fixed = c.known && k.known && !c.own && !k.own && ring_is_number(c.at) &&
                     ring_is_number(k.at) && !c.modular && !k.modular;
        if (!fixed || k.at.one < 2 || k.at.one > 8 || c.at.one < 0 || c.at.one >= k.at.one ||
            p->subs != 1)
            return peal_ring_refuse(r, e->pos, "a part that is neither of nranks nor of a number");
        p->sub = (uint32_t)c.at.one;
        p->subs = (uint32_t)k.at.one;
        return true;
    }
    const struct peal_expr *number = s->kind == PEAL_SLICE_RANGE ? unit_number(r, s) : NULL;
    if (number && peal_ring_is_dim(r, p->symbol->shape[0])) {
        p->whole = false;
        return part_index(r, number, &p->part);
    }
    bool start = s->kind == PEAL_SLICE_RANGE && s->a->kind == PEAL_EXPR_INT && s->a->value == 0;
    number = start ? part_number(r, s->b) : NULL;
    if (!number)
        return peal_ring_refuse(r, e->pos, "a part that is neither [c of nranks] nor a slot's");
    p->whole = false;
    p->prefix = true;
    return part_index(r, number, &p->part);
}

static bool read_place(struct ring_reader *r, const struct peal_expr *e, struct read_place *p)
{
    switch (e->kind) {
    case PEAL_EXPR_NAME:
        if (!e->symbol || e->symbol->kind != PEAL_SYMBOL_BUFFER)
            break;
        *p = (struct read_place){
            .symbol = e->symbol, .subs = 1, .phases = 1, .slots = 1, .whole = true};
        return true;
    case PEAL_EXPR_AT:
        return read_place(r, e->a, p) && peal_ring_peer(r, e->b, &p->shift);
    case PEAL_EXPR_SLICE:
        return read_place(r, e->a, p) && add_slice(r, e, p);
    default:
        break;
    }
    return peal_ring_refuse(r, e->pos, "an operand that is not a part of a vector");
}

/* In place, the parameter that stands for this one, and which part of it. */
static bool redirect(struct ring_reader *r, const struct peal_expr *e, struct read_place *p)
{
    enum peal_in_place kind = peal_contract_info(r->m->contract)->in_place;
    if (!r->m->in_place)
        return true;
    bool same = kind == PEAL_IN_PLACE_SAME && p->symbol == r->y;
    bool in = kind == PEAL_IN_PLACE_IN_IS_PART && p->symbol == r->x;
    bool out = kind == PEAL_IN_PLACE_OUT_IS_PART && p->symbol == r->y;
    if (same)
        p->symbol = r->x;
    if (!in && !out)
        return true;
    if (!p->whole && !p->prefix)
        return peal_ring_refuse(r, e->pos, "a part of a part");
    if (p->prefix && (!ring_is_number(p->part) || p->part.one))
        return peal_ring_refuse(r, e->pos, "a part other than the rank's own");
    p->symbol = in ? r->y : r->x;
    p->whole = p->prefix = false;
    p->part = ring_number(0);
    return true;
}

static bool read_access(struct ring_reader *r, const struct peal_expr *e, struct ring_access *out)
{
    struct read_place p = {0};
    if (!read_place(r, e, &p) || !redirect(r, e, &p))
        return false;
    uint32_t b = find_buffer(r, &p, p.sub, e->pos);
    if (b == PEAL_NONE)
        return false;
    const struct ring_buffer *buffer = &r->m->buffers[b];
    *out = (struct ring_access){.buffer = b,
                                .shift = p.shift - buffer->pushed,
                                .part = p.part,
                                .named = !p.whole,
                                .slot = p.slot};
    if (p.shift && !buffer->window)
        return peal_ring_refuse(r, e->pos, "memory of another rank that is not a window");
    if (p.prefix != (buffer->storage == RING_SLOT) && !p.whole)
        return peal_ring_refuse(r, e->pos, "a part that is not divided like its buffer");
    if (buffer->storage == RING_PARTS) {
        out->whole = p.whole;
        return true;
    }
    /* A parameter of a part's length holds its own part. */
    out->named = true;
    if (p.whole && r->m->units && p.symbol->place != PEAL_PLACE_PARAM) {
        out->named = false; /* whichever part was put there */
        return true;
    }
    if (p.whole && p.symbol->place != PEAL_PLACE_PARAM)
        return peal_ring_refuse(r, e->pos, "all of a slot, of which a part may be unused");
    bool own = ring_is_number(out->part) && !out->part.one;
    if (p.symbol->place == PEAL_PLACE_PARAM && !own)
        return peal_ring_refuse(r, e->pos, "a part other than the rank's own");
    return true;
}

/* --- moves ----------------------------------------------------------------------------------- */

static uint32_t find_channel(struct ring_reader *r, const struct peal_expr *channel, int32_t shift,
                             struct peal_pos at)
{
    struct ring_sync sync = {.symbol = channel ? channel->symbol : NULL,
                             .shift = shift,
                             .channel = true,
                             .message = PEAL_NONE};
    if (!shift) {
        (void)peal_ring_refuse(r, at, "a message to this rank");
        return PEAL_NONE;
    }
    return peal_ring_sync(r, sync, at);
}

/* Takes the next message; the source is its content. */
static bool read_recv(struct ring_reader *r, const struct peal_expr *e, struct ring_access *out)
{
    int32_t from = 0;
    if (e->in_slot)
        return peal_ring_refuse(r, e->pos, "a message that is used in its slot");
    if (!peal_ring_peer(r, e->a, &from))
        return false;
    uint32_t sync = find_channel(r, e->b, -from, e->pos);
    if (sync == PEAL_NONE)
        return false;
    uint32_t message = r->m->syncs[sync].message;
    if (message == PEAL_NONE)
        return peal_ring_refuse(r, e->pos, "a message that no send before it in the text has made");
    struct ring_op *take = peal_ring_add_op(r, RING_TAKE, e->pos);
    if (!take)
        return false;
    take->sync = sync;
    *out = (struct ring_access){.buffer = message, .whole = r->m->buffers[message].whole};
    return true;
}

static bool read_source(struct ring_reader *r, const struct peal_expr *e, struct ring_access *out)
{
    if (e->kind == PEAL_EXPR_RECV)
        return read_recv(r, e, out);
    if (!is_tile(e))
        return read_access(r, e, out);
    uint32_t tile = r->tiles[e->symbol->slot];
    if (!tile)
        return peal_ring_refuse(r, e->pos, "a tile that has no value yet");
    *out = (struct ring_access){.buffer = tile - 1,
                                .whole = r->m->buffers[tile - 1].storage == RING_PARTS};
    return true;
}

/* The one reduction of the kernel: its parameter, or the one that its clause names. */
static bool is_reduction(const struct ring_reader *r, const struct peal_expr *e)
{
    if (r->op)
        return e->symbol == r->op;
    return r->sum && !e->symbol && e->reduce == r->sum->reduce;
}

/* The sources of a move: final(op, ...), op(a, b), or one. */
static bool read_value(struct ring_reader *r, const struct peal_expr *e, struct ring_op *move)
{
    if (is_call(e, PEAL_BUILTIN_FINAL) && !r->op && !e->a->symbol && e->a->reduce != PEAL_AVG)
        return read_value(r, e->a->next, move); /* nothing is divided */
    if (is_call(e, PEAL_BUILTIN_FINAL)) {
        if (move->final || !r->op || e->a->symbol != r->op)
            return peal_ring_refuse(r, e->pos, "a final that is not of the kernel's reduction");
        move->final = true;
        return read_value(r, e->a->next, move);
    }
    if (!is_call(e, PEAL_BUILTIN_REDUCE)) {
        move->nsources = 1;
        return read_source(r, e, &move->source[0]);
    }
    const struct peal_expr *a = e->a, *b = a ? a->next : NULL;
    if (!is_reduction(r, e) || !b || b->next)
        return peal_ring_refuse(r, e->pos, "a function that is not the reduction of two operands");
    if (a->kind == PEAL_EXPR_RECV && b->kind == PEAL_EXPR_RECV)
        return peal_ring_refuse(r, e->pos, "two messages in one expression");
    move->nsources = 2;
    return read_source(r, a, &move->source[0]) && read_source(r, b, &move->source[1]);
}

static bool has_message(const struct ring_model *m, const struct ring_op *move)
{
    for (uint32_t i = 0; i < move->nsources; i++) {
        if (m->buffers[move->source[i].buffer].storage == RING_MESSAGE)
            return true;
    }
    return false;
}

/* Either all operands are whole vectors, or all are one part, of vectors that are divided alike. */
static bool check_shapes(struct ring_reader *r, struct ring_op *move, struct peal_pos at)
{
    const struct ring_model *m = r->m;
    uint32_t sub = 0, subs = 0;
    bool reads_peer = false;
    for (uint32_t i = 0; i < move->nsources; i++) {
        const struct ring_access *a = &move->source[i];
        const struct ring_buffer *b = &m->buffers[a->buffer];
        if (a->whole != move->source[0].whole)
            return peal_ring_refuse(r, at, "a whole vector and a part in one expression");
        if (subs && (b->sub != sub || b->subs != subs))
            return peal_ring_refuse(r, at, "operands of different parts of buffers");
        sub = b->sub;
        subs = b->subs;
        reads_peer = reads_peer || a->shift;
    }
    if (reads_peer && has_message(m, move))
        return peal_ring_refuse(r, at, "a message and memory of another rank in one expression");
    move->whole = move->source[0].whole;
    return true;
}

/* The lane that writes a buffer is the only one to access it. */
static bool claim_buffer(struct ring_reader *r, uint32_t buffer, bool writes, struct peal_pos at)
{
    struct ring_buffer *b = &r->m->buffers[buffer];
    if (b->lane != PEAL_NONE && b->lane != r->lane)
        return peal_ring_refuse(r, at, "memory that two lanes use");
    if (writes)
        b->lane = r->lane;
    return true;
}

static bool add_move(struct ring_reader *r, struct ring_op move, struct peal_pos at)
{
    const struct ring_model *m = r->m;
    const struct ring_buffer *dest = &m->buffers[move.dest.buffer];
    const struct ring_buffer *from = &m->buffers[move.source[0].buffer];
    if (move.dest.shift)
        return peal_ring_refuse(r, at, "a write to another rank's memory");
    if (move.dest.whole != move.whole || dest->sub != from->sub || dest->subs != from->subs)
        return peal_ring_refuse(r, at, "an assignment between parts that are not divided alike");
    for (uint32_t i = 0; i < move.nsources; i++) {
        if (!claim_buffer(r, move.source[i].buffer, false, at))
            return false;
    }
    if (!claim_buffer(r, move.dest.buffer, true, at))
        return false;
    struct ring_op *op = peal_ring_add_op(r, RING_MOVE, at);
    if (!op)
        return false;
    move.kind = op->kind;
    move.segment = op->segment;
    move.line = op->line;
    *op = move;
    return true;
}

/* The buffer of a tile takes the shape of the first value. */
static bool tile_of(struct ring_reader *r, const struct peal_symbol *s, const struct ring_op *move,
                    struct ring_access *out)
{
    const struct ring_buffer *from = &r->m->buffers[move->source[0].buffer];
    if (!r->tiles[s->slot]) {
        struct ring_buffer b = {.symbol = s,
                                .sub = from->sub,
                                .subs = from->subs,
                                .storage = move->whole ? RING_PARTS : RING_SLOT,
                                .tile = true};
        uint32_t made = add_buffer(r, b, s->pos);
        if (made == PEAL_NONE)
            return false;
        r->tiles[s->slot] = made + 1;
    }
    uint32_t tile = r->tiles[s->slot] - 1;
    *out = (struct ring_access){.buffer = tile, .whole = r->m->buffers[tile].storage == RING_PARTS};
    return true;
}

bool peal_ring_let_tile(struct ring_reader *r, const struct peal_stmt *s)
{
    struct ring_op move = {0};
    return read_value(r, s->a, &move) && check_shapes(r, &move, s->pos) &&
           tile_of(r, s->symbol, &move, &move.dest) && add_move(r, move, s->pos);
}

/* A window that a neighbour writes: what rank r writes is counted as its own. All ranks do the same, so
 * every rank still has one such vector, and what overlaps, or comes before what, is the same. */
static void note_push(struct ring_reader *r, const struct peal_expr *to)
{
    int32_t shift = 0;
    while (to->kind == PEAL_EXPR_SLICE)
        to = to->a;
    bool remote = to->kind == PEAL_EXPR_AT && to->a->kind == PEAL_EXPR_NAME && to->a->symbol &&
                  to->a->symbol->kind == PEAL_SYMBOL_BUFFER &&
                  to->a->symbol->place == PEAL_PLACE_WINDOW;
    if (!remote || r->pushed[to->a->symbol->slot] || !peal_ring_peer(r, to->b, &shift) || !shift)
        return;
    r->pushed[to->a->symbol->slot] = shift;
    r->again = true;
}

bool peal_ring_assign(struct ring_reader *r, const struct peal_stmt *s)
{
    struct ring_op move = {0};
    note_push(r, s->a);
    if (!read_value(r, s->b, &move) || !check_shapes(r, &move, s->pos))
        return false;
    bool good = is_tile(s->a) ? tile_of(r, s->a->symbol, &move, &move.dest)
                              : read_access(r, s->a, &move.dest);
    return good && add_move(r, move, s->pos);
}

bool peal_ring_send(struct ring_reader *r, const struct peal_stmt *s)
{
    struct ring_op move = {0};
    int32_t to = 0;
    if (!peal_ring_peer(r, s->b, &to) || !read_value(r, s->a, &move) ||
        !check_shapes(r, &move, s->pos))
        return false;
    if (has_message(r->m, &move))
        return peal_ring_refuse(r, s->pos, "a message that is sent on without a name");
    uint32_t sync = find_channel(r, s->c, to, s->pos);
    if (sync == PEAL_NONE)
        return false;
    const struct ring_buffer *from = &r->m->buffers[move.source[0].buffer];
    if (r->m->syncs[sync].message == PEAL_NONE) {
        struct ring_buffer b = {.sub = from->sub,
                                .subs = from->subs,
                                .storage = RING_MESSAGE,
                                .whole = move.whole,
                                .sync = sync};
        uint32_t made = add_buffer(r, b, s->pos);
        if (made == PEAL_NONE)
            return false;
        r->m->syncs[sync].message = made;
    }
    uint32_t message = r->m->syncs[sync].message;
    move.dest = (struct ring_access){.buffer = message, .whole = r->m->buffers[message].whole};
    if (!add_move(r, move, s->pos))
        return false;
    struct ring_op *post = peal_ring_add_op(r, RING_POST, s->pos);
    if (!post)
        return false;
    post->sync = sync;
    return true;
}

/* --- parameters ------------------------------------------------------------------------------ */

/* Part `sub` of what stands for the parameter: all of it or, in place, its own part of the other
 * one. */
static bool param_access(struct ring_reader *r, const struct read_place *p, uint32_t sub,
                         struct ring_access *out)
{
    uint32_t b = find_buffer(r, p, sub, p->symbol->pos);
    if (b == PEAL_NONE)
        return false;
    bool whole = p->whole && r->m->buffers[b].storage == RING_PARTS;
    *out = (struct ring_access){.buffer = b, .whole = whole, .named = !whole};
    return true;
}

/* The buffer of the parameter, and into how many parts the text divides that buffer. */
static bool param_place(struct ring_reader *r, const struct peal_symbol *s, struct read_place *out)
{
    struct peal_expr name = {.kind = PEAL_EXPR_NAME, .pos = s->pos};
    *out = (struct read_place){.symbol = s, .subs = 1, .phases = 1, .slots = 1, .whole = true};
    if (!redirect(r, &name, out))
        return false;
    for (uint32_t i = 0; i < r->m->nbuffers; i++) {
        if (r->m->buffers[i].symbol == out->symbol)
            out->subs = r->m->buffers[i].subs;
    }
    if (out->subs > 1 && r->m->contract != PEAL_CONTRACT_ALLREDUCE)
        return peal_ring_refuse(r, s->pos,
                                "a parameter that is divided into a fixed number of parts");
    return true;
}

bool peal_ring_inputs(struct ring_reader *r)
{
    struct read_place p;
    if (!param_place(r, r->x, &p))
        return false;
    for (uint32_t sub = 0; sub < p.subs; sub++) {
        struct ring_access dest;
        if (!param_access(r, &p, sub, &dest))
            return false;
        struct ring_op *op = peal_ring_add_op(r, RING_INPUT, r->x->pos);
        if (!op)
            return false;
        op->dest = dest;
        op->whole = dest.whole;
    }
    return true;
}

bool peal_ring_outputs(struct ring_reader *r)
{
    struct read_place p;
    if (!param_place(r, r->y, &p))
        return false;
    for (uint32_t sub = 0; sub < p.subs; sub++) {
        struct ring_access from;
        if (!param_access(r, &p, sub, &from))
            return false;
        uint32_t writer = r->m->buffers[from.buffer].lane;
        if (writer == PEAL_NONE)
            return peal_ring_refuse(r, r->y->pos, "a part of the result that is never written");
        if (writer != r->lane)
            continue;
        struct ring_op *op = peal_ring_add_op(r, RING_OUTPUT, r->y->pos);
        if (!op)
            return false;
        op->source[0] = from;
        op->nsources = 1;
        op->whole = from.whole;
    }
    return true;
}
