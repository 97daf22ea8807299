/* SPDX-License-Identifier: Apache-2.0 */
/* Statements that move data between ranks through channels: send, recv, recv_slot, free; recv_async,
 * which becomes a recv where it is waited for, because a message travels into its slot without the
 * receiver. */
#include "plan/make/maker.h"

#include <inttypes.h>

static struct channel_use *use_of(struct instantiation *t, uint32_t channel)
{
    for (size_t i = 0; i < t->channel_uses.len; i++) {
        if (t->channel_uses.at[i].channel == channel)
            return &t->channel_uses.at[i];
    }
    if (!peal_vec_push(&t->channel_uses, ((struct channel_use){channel, 0, 0}))) {
        peal_inst_no_memory(t);
        return NULL;
    }
    return &t->channel_uses.at[t->channel_uses.len - 1];
}

/* Divides a payload into pieces of at most a slot: whole rows, or parts of the only row. Calls emit
 * for each. */
static void split(struct instantiation *t, const struct part *whole,
                  void (*emit)(struct instantiation *, uint32_t, const struct part *),
                  uint32_t channel)
{
    uint64_t size = peal_dtype_size(whole->ref.dtype), max_bytes = t->bind->slot_bytes;
    if (!max_bytes || whole->rows * whole->count * size <= max_bytes) {
        emit(t, channel, whole);
        return;
    }
    struct part piece = *whole;
    if (whole->rows == 1) {
        uint64_t step = max_bytes / size;
        if (!step) {
            peal_inst_fail(t, t->pos, "a slot of %" PRIu64 " bytes holds no element", max_bytes);
            return;
        }
        for (uint64_t at = 0; at < whole->count && t->status == PEAL_OK; at += step) {
            piece.ref = whole->ref;
            piece.count = peal_size_min(whole->count - at, step);
            if (whole->ref.phases != PEAL_NONE) {
                peal_inst_fail(t, t->pos, "a payload placed by 'launch mod' cannot be split");
                return;
            }
            piece.ref.offset += at * size;
            emit(t, channel, &piece);
        }
        return;
    }
    uint64_t step;
    if (whole->count)
        step = max_bytes / (whole->count * size);
    else
        step = whole->rows;
    if (!step || t->kinds.at[whole->ref.buf] != PEAL_BUF_PARAM) {
        peal_inst_fail(t, t->pos, "this payload cannot be split into slots of %" PRIu64 " bytes",
                       max_bytes);
        return;
    }
    for (uint32_t at = 0; at < whole->rows && t->status == PEAL_OK; at += (uint32_t)step) {
        piece.ref.row = whole->ref.row + at;
        piece.rows = (uint32_t)peal_size_min(whole->rows - at, step);
        emit(t, channel, &piece);
    }
}

static void emit_send(struct instantiation *t, uint32_t channel, const struct part *src)
{
    struct peal_op *op = peal_inst_mem_op(t, PEAL_OP_SEND, &src->ref, 1, src);
    if (op)
        op->mem.channel = channel;
}

static void emit_recv(struct instantiation *t, uint32_t channel, const struct part *dst)
{
    struct peal_op *op = peal_inst_mem_op(t, PEAL_OP_RECV, &dst->ref, 1, dst);
    if (op)
        op->mem.channel = channel;
}

/* The name of a channel; unnamed ones have the empty string. */
static const char *channel_name(const struct peal_expr *e)
{
    if (!e)
        return "";
    if (e->symbol)
        return e->symbol->name;
    return e->name;
}

/* The channel that a statement names. A loop returns to the same few. */
static uint32_t channel_of(struct instantiation *t, const struct peal_expr *name, uint32_t sender,
                           uint32_t port, uint32_t receiver)
{
    size_t slot = ((uintptr_t)name / sizeof(struct peal_expr) + sender * 3 + receiver) % 64;
    struct known_channel *known = &t->known_channels[slot];
    if (known->name != name || known->sender != sender || known->receiver != receiver ||
        known->port != port || !known->is_set)
        *known = (struct known_channel){
            name,
            sender,
            receiver,
            port,
            peal_assembler_channel(t->a, channel_name(name), sender, port, receiver),
            true};
    return known->channel;
}

static uint32_t recv_channel(struct instantiation *t, const struct peal_expr *e)
{
    struct peer peer = peal_inst_peer(t, e->a);
    if (t->status != PEAL_OK)
        return 0;
    return channel_of(t, e->b, peer.rank, peer.incoming_port, t->rank);
}

static void emit_message(struct instantiation *t, uint32_t channel, const struct part *dst,
                         enum peal_dtype wire)
{
    if (wire == dst->ref.dtype) {
        split(t, dst, emit_recv, channel);
        return;
    }
    struct part tile = peal_inst_tile(t, NULL, wire, dst);
    if (t->status == PEAL_OK) {
        split(t, &tile, emit_recv, channel);
        peal_inst_move(t, dst, &tile, 0);
    }
}

/* Messages come in order: first those receives of the channel that were posted before `end`. */
static void receive_posted(struct instantiation *t, uint32_t channel, size_t end)
{
    for (size_t i = 0; i < end && t->status == PEAL_OK; i++) {
        struct posted *p = &t->posted.at[i];
        if (p->channel != channel || p->is_received)
            continue;
        struct part tile;
        peal_inst_tile_part(t, &t->env[p->symbol->slot], &tile);
        emit_message(t, channel, &tile, peal_inst_wire_dtype(t, p->e));
        p->is_received = true;
    }
}

void peal_inst_post(struct instantiation *t, const struct peal_stmt *s)
{
    const struct peal_symbol *symbol = s->symbol;
    if (s->b)
        symbol = s->b->symbol;
    for (size_t i = 0; i < t->posted.len; i++) {
        if (t->posted.at[i].symbol == symbol) {
            peal_inst_fail(t, s->pos, "'%s' is still to be waited for", symbol->name);
            return;
        }
    }
    if (!s->b)
        peal_inst_post_tile(t, s);
    uint32_t channel = recv_channel(t, s->a);
    if (t->status != PEAL_OK)
        return;
    t->env[symbol->slot].is_posted = true;
    if (!peal_vec_push(&t->posted, ((struct posted){symbol, s->a, channel, false})))
        peal_inst_no_memory(t);
}

void peal_inst_await(struct instantiation *t, const struct peal_stmt *s)
{
    const struct peal_symbol *symbol = s->a->symbol;
    struct binding *b = &t->env[symbol->slot];
    size_t at = 0;
    while (at < t->posted.len && t->posted.at[at].symbol != symbol)
        at++;
    if (at == t->posted.len) {
        peal_inst_fail(t, s->pos, "'%s' is waited for without a recv_async", symbol->name);
        return;
    }
    struct posted posted = t->posted.at[at];
    struct part tile, place;
    peal_inst_tile_part(t, b, &tile);
    if (s->b && peal_inst_part(t, s->b, &place))
        peal_inst_want_shape(t, s->b, &place, &tile);
    receive_posted(t, posted.channel, at);
    if (t->status != PEAL_OK)
        return;
    if (!posted.is_received)
        emit_message(t, posted.channel, s->b ? &place : &tile, peal_inst_wire_dtype(t, posted.e));
    else if (s->b)
        peal_inst_move(t, &place, &tile, 0);
    b->is_posted = s->b != NULL;
    for (size_t i = at + 1; i < t->posted.len; i++)
        t->posted.at[i - 1] = t->posted.at[i];
    t->posted.len--;
}

/* recv_slot: the payload stays where it is; b becomes the tile that names it. */
void peal_inst_receive_in_slot(struct instantiation *t, const struct peal_expr *e,
                               enum peal_dtype wire, const struct part *shape, struct binding *b)
{
    uint32_t channel = recv_channel(t, e);
    struct channel_use *use = NULL;
    receive_posted(t, channel, t->posted.len);
    if (t->status == PEAL_OK)
        use = use_of(t, channel);
    struct peal_op *op = NULL;
    if (use)
        op = peal_inst_mem_op(t, PEAL_OP_RECV_SLOT, NULL, 0, shape);
    if (!op)
        return;
    uint64_t bytes = shape->rows * shape->count * peal_dtype_size(wire);
    if (t->bind->slot_bytes && bytes > t->bind->slot_bytes) {
        peal_inst_fail(t, e->pos, "a payload of %" PRIu64 " bytes does not fit a slot of %" PRIu64,
                       bytes, t->bind->slot_bytes);
        return;
    }
    op->mem.channel = channel;
    op->dtype = (uint8_t)wire;
    *b = (struct binding){
        .bound = true,
        .dtype = wire,
        .rows = shape->dims == 2 ? shape->rows : 0,
        .cols = shape->count,
        .in_slot = true,
        .channel = channel,
        .message = use->received++,
    };
}

/* What is sent is of type T: a wide destination gets it through a temporary. */
enum peal_dtype peal_inst_wire_dtype(const struct instantiation *t, const struct peal_expr *e)
{
    struct peal_elem elem = e->type.elem;
    elem.wide = false;
    return peal_inst_dtype(t, elem);
}

void peal_inst_receive(struct instantiation *t, const struct part *dst, const struct peal_expr *e)
{
    enum peal_dtype wire = peal_inst_wire_dtype(t, e);
    if (e->in_slot) {
        struct binding slot;
        peal_inst_receive_in_slot(t, e, wire, dst, &slot);
        if (t->status == PEAL_OK) {
            struct part src;
            peal_inst_tile_part(t, &slot, &src);
            peal_inst_move(t, dst, &src, 0);
        }
        return;
    }
    uint32_t channel = recv_channel(t, e);
    if (t->status != PEAL_OK)
        return;
    receive_posted(t, channel, t->posted.len);
    emit_message(t, channel, dst, wire);
}

void peal_inst_send(struct instantiation *t, const struct peal_stmt *s)
{
    struct part shape, src;
    const struct peal_expr *value = peal_inst_chosen(t, s->a);
    if (!peal_inst_shape(t, value, &shape)) {
        peal_inst_fail(t, s->a->pos, "the shape of what is sent is not known");
        return;
    }
    enum peal_dtype wire = peal_inst_wire_dtype(t, value);
    bool is_whole =
        value->type.kind != PEAL_TYPE_INT && shape.ref.dtype == wire && peal_inst_is_place(value);
    if (is_whole)
        src = shape;
    else
        src = peal_inst_operand(t, value, &shape, wire);
    if (t->status == PEAL_OK && src.ref.dtype != wire) {
        struct part tile = peal_inst_tile(t, NULL, wire, &shape);
        peal_inst_move(t, &tile, &src, 0);
        src = tile;
    }
    struct peer peer = peal_inst_peer(t, s->b);
    if (t->status != PEAL_OK)
        return;
    uint32_t channel = channel_of(t, s->c, t->rank, peer.port, peer.rank);
    split(t, &src, emit_send, channel);
}

void peal_inst_free(struct instantiation *t, const struct peal_stmt *s)
{
    struct binding *b = &t->env[s->a->symbol->slot];
    if (!b->bound || !b->in_slot || b->freed) {
        peal_inst_fail(t, s->pos, "'%s' is not in a slot", s->a->symbol->name);
        return;
    }
    struct channel_use *use = use_of(t, b->channel);
    if (!use)
        return;
    if (use->freed != b->message) {
        peal_inst_fail(t, s->pos, "slots of a channel are freed in order: an older one is in use");
        return;
    }
    use->freed++;
    b->freed = true;
    struct part none = {.rows = 0};
    struct peal_op *op = peal_inst_mem_op(t, PEAL_OP_FREE, NULL, 0, &none);
    if (op)
        op->mem.channel = b->channel;
}
