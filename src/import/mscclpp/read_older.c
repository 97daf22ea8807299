/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of the first executors. There, channels name buffers, and ops name channels with offsets:
 *
 *   gpu      channels [{srcbuff, dstbuff, type, connectedTo}]; inputChunks, outputChunks, ...
 *   block    channels [{src, dst, ctype, cids}]: cids are numbers among the gpu's channels of that
 *            type and those two buffers
 *   op       ctype; cnt chunks of every operand;
 *            i_buff {src, dst} and i_cids [{id, off}]: read, or waited for; o_buff, o_cids:
 *            written, or signalled; ids are numbers among the block's channels of those two buffers
 *            srcbuff, srcoff, dstbuff, dstoff: one local place each; srcs [{buff, off}]: more
 *
 * A peer's side of a channel is its dst buffer. A nop is a barrier inside the block, whatever its
 * `deps` say. Packets go to halves of the scratch buffer in turn. `cpkt` reads packets there,
 * `tpkt` makes them: newer files call these upkt and cpkt. The model is the same as that of newer
 * files.
 */
#include "import/mscclpp/read.h"

#include <string.h>

/* The operands of an op, as its name determines them. */
enum shape {
    NOTHING,
    OUT_CHANNELS,     /* signal, flush */
    IN_CHANNELS,      /* wait */
    MOVES_OUT,        /* put: srcs to o_cids */
    MOVES_IN,         /* get: i_cids to dsts */
    LOCAL,            /* src to dst */
    REDUCES,          /* src and srcs to dst, then to o_cids if there are any */
    READS_AND_REDUCES /* src and i_cids to dst, then to o_cids if there are any */
};

static const struct known {
    const char *text;
    enum mscclpp_name name;
    enum shape shape;
} known[] = {
    {"nop", MPP_NOP, NOTHING},
    {"barrier", MPP_BARRIER, NOTHING},
    {"signal", MPP_SIGNAL, OUT_CHANNELS},
    {"rsignal", MPP_RELAXED_SIGNAL, OUT_CHANNELS},
    {"rlsignal", MPP_RELAXED_SIGNAL, OUT_CHANNELS},
    {"rlxsignal", MPP_RELAXED_SIGNAL, OUT_CHANNELS},
    {"flush", MPP_FLUSH, OUT_CHANNELS},
    {"wait", MPP_WAIT, IN_CHANNELS},
    {"rwait", MPP_RELAXED_WAIT, IN_CHANNELS},
    {"rlwait", MPP_RELAXED_WAIT, IN_CHANNELS},
    {"rlxwait", MPP_RELAXED_WAIT, IN_CHANNELS},
    {"put", MPP_PUT, MOVES_OUT},
    {"pws", MPP_PUT_SIGNAL, MOVES_OUT},
    {"pwsf", MPP_PUT_SIGNAL_FLUSH, MOVES_OUT},
    {"ppkt", MPP_PUT_PACKETS, MOVES_OUT},
    {"rppkt", MPP_READ_PUT_PACKETS, MOVES_OUT},
    {"get", MPP_GET, MOVES_IN},
    {"copy", MPP_COPY, LOCAL},
    {"cpy", MPP_COPY, LOCAL},
    {"cpkt", MPP_UNPACK_PACKETS, LOCAL},
    {"tpkt", MPP_COPY_PACKETS, LOCAL},
    {"re", MPP_REDUCE, REDUCES},
    {"rs", MPP_REDUCE_SEND, REDUCES},
    {"rpkt", MPP_REDUCE_PACKETS, REDUCES},
    {"rspkt", MPP_REDUCE_SEND_PACKETS, REDUCES},
    {"rrc", MPP_READ_REDUCE, READS_AND_REDUCES},
    {"rrcs", MPP_READ_REDUCE_SEND, READS_AND_REDUCES},
};

/* A channel of the block: its buffers, and its number among the gpu's of that type. */
struct entry {
    uint8_t type, src, dst;
    uint32_t number;
};

struct older {
    struct mpp_reader *r;
    uint32_t rank;
    struct entry *entries;
    uint32_t count;
};

static bool same_key(const struct entry *a, const struct entry *b)
{
    return a->type == b->type && a->src == b->src && a->dst == b->dst;
}

/* --- a block's channels ---------------------------------------------------------------------- */

static struct entry read_key(struct mpp_reader *r, const struct peal_json_value *node,
                             const char *type)
{
    struct entry key = {0};
    const struct peal_json_value *src = peal_mpp_need(r, node, "src", NULL, PEAL_JSON_STRING);
    const struct peal_json_value *dst = peal_mpp_need(r, node, "dst", NULL, PEAL_JSON_STRING);
    const struct peal_json_value *kind = NULL;
    if (type)
        kind = peal_mpp_need(r, node, type, NULL, PEAL_JSON_STRING);
    if (r->failed)
        return key;
    key.src = peal_mpp_buffer(r, src);
    key.dst = peal_mpp_buffer(r, dst);
    if (kind)
        key.type = (uint8_t)peal_mpp_channel_type(r, kind);
    else
        key.type = MPP_NO_CHANNEL;
    return key;
}

/* The number of the gpu's n-th channel with these buffers. PEAL_NONE: there is none. */
static uint32_t find_channel(const struct mscclpp_gpu *gpu, const struct entry *key, int64_t n)
{
    for (uint32_t i = 0; i < gpu->nchannels[key->type]; i++) {
        const struct mscclpp_channel *c = &gpu->channels[key->type][i];
        if (c->src == key->src && c->dst == key->dst && n-- == 0)
            return i;
    }
    return PEAL_NONE;
}

static void read_list(struct older *o, const struct peal_json_value *block)
{
    struct mpp_reader *r = o->r;
    const struct peal_json_value *list = peal_json_get(block, "channels");
    uint64_t capacity = 0;
    for (const struct peal_json_value *c = peal_json_first(list); c; c = c->next) {
        const struct peal_json_value *ids = peal_json_get(c, "cids");
        capacity += peal_json_count(ids);
    }
    o->entries = peal_mpp_take(r, capacity, sizeof *o->entries);
    for (const struct peal_json_value *c = peal_json_first(list); c && !r->failed; c = c->next) {
        struct entry key = read_key(r, c, "ctype");
        const struct peal_json_value *ids = peal_mpp_need(r, c, "cids", NULL, PEAL_JSON_ARRAY);
        if (!r->failed && key.type != MPP_MEMORY && key.type != MPP_PORT)
            peal_mpp_refuse(r, c, "switch channels of this older form are not read");
        if (r->failed)
            break;
        for (const struct peal_json_value *n = ids->first; n && !r->failed; n = n->next) {
            key.number = find_channel(&r->plan->gpus[o->rank], &key,
                                      peal_mpp_value(r, n, 0, MPP_MAX_CHUNKS));
            if (!r->failed && key.number == PEAL_NONE)
                peal_mpp_refuse(r, n, "the gpu has no such channel with these buffers");
            o->entries[o->count++] = key;
        }
    }
}

/* --- operands -------------------------------------------------------------------------------- */

/* The channels that an op names and, if `operands` is not NULL, the peers' sides of them. */
static void read_cids(struct older *o, const struct peal_json_value *node, const char *buff,
                      const char *cids, struct mscclpp_op *op, struct mscclpp_operand *operands,
                      uint32_t *noperands)
{
    struct mpp_reader *r = o->r;
    const struct peal_json_value *where = peal_mpp_need(r, node, buff, NULL, PEAL_JSON_OBJECT);
    const struct peal_json_value *list = peal_mpp_need(r, node, cids, NULL, PEAL_JSON_ARRAY);
    if (r->failed)
        return;
    struct entry key = read_key(r, where, NULL);
    key.type = op->channel_type;
    uint32_t size = (uint32_t)peal_mpp_int(r, node, "cnt", NULL, 0, MPP_MAX_CHUNKS, 1);
    for (const struct peal_json_value *n = list->first; n && !r->failed; n = n->next) {
        int64_t id = peal_mpp_int(r, n, "id", NULL, 0, MPP_MAX_CHUNKS, -1);
        uint32_t at = 0;
        while (at < o->count && (!same_key(&o->entries[at], &key) || id-- > 0))
            at++;
        if (!r->failed && at == o->count)
            peal_mpp_refuse(r, n, "the thread block has no such channel with these buffers");
        if (r->failed)
            return;
        uint32_t number = o->entries[at].number;
        op->channels[op->nchannels++] = number;
        if (!operands)
            continue;
        operands[(*noperands)++] = (struct mscclpp_operand){
            .index = (uint32_t)peal_mpp_int(r, n, "off", NULL, 0, MPP_MAX_CHUNKS, -1),
            .size = size,
            .buffer = key.dst,
            .rank = r->plan->gpus[o->rank].channels[key.type][number].peer};
    }
}

static struct mscclpp_operand read_place(struct older *o, const struct peal_json_value *node,
                                         const char *buff, const char *off)
{
    struct mpp_reader *r = o->r;
    const struct peal_json_value *buffer = peal_mpp_need(r, node, buff, NULL, PEAL_JSON_STRING);
    return (struct mscclpp_operand){
        .index = (uint32_t)peal_mpp_int(r, node, off, NULL, 0, MPP_MAX_CHUNKS, -1),
        .size = (uint32_t)peal_mpp_int(r, node, "cnt", NULL, 0, MPP_MAX_CHUNKS, 1),
        .buffer = buffer ? peal_mpp_buffer(r, buffer) : 0,
        .rank = o->rank};
}

/* The places of `srcs` or `dsts`, each of the op's size. */
static void read_places(struct older *o, const struct peal_json_value *node, const char *name,
                        struct mscclpp_operand *out, uint32_t *count)
{
    struct mpp_reader *r = o->r;
    const struct peal_json_value *list = peal_mpp_need(r, node, name, NULL, PEAL_JSON_ARRAY);
    uint32_t size = (uint32_t)peal_mpp_int(r, node, "cnt", NULL, 0, MPP_MAX_CHUNKS, 1);
    for (const struct peal_json_value *n = peal_json_first(list); n && !r->failed; n = n->next) {
        out[*count] = read_place(o, n, "buff", "off");
        out[(*count)++].size = size;
    }
}

static uint64_t length_of(const struct peal_json_value *node, const char *name)
{
    const struct peal_json_value *list = peal_json_get(node, name);
    if (list && list->kind == PEAL_JSON_ARRAY)
        return list->count;
    return 0;
}

/* Where a put reads: `srcs`, or without it the single place at srcoff in the channel's own
 * buffer. */
static void read_sources_of_put(struct older *o, const struct peal_json_value *node,
                                struct mscclpp_op *op)
{
    if (peal_json_get(node, "srcs")) {
        read_places(o, node, "srcs", op->src, &op->nsrc);
        return;
    }
    struct mscclpp_operand place = read_place(o, node, "srcbuff", "srcoff");
    bool packets = op->name == MPP_PUT_PACKETS || op->name == MPP_READ_PUT_PACKETS;
    for (uint32_t i = 0; i < (packets ? 1 : op->ndst); i++)
        op->src[op->nsrc++] = place;
}

static void read_operands(struct older *o, const struct peal_json_value *node, enum shape shape,
                          struct mscclpp_op *op)
{
    bool sends = peal_json_get(node, "o_cids") != NULL;
    switch (shape) {
    case OUT_CHANNELS:
        read_cids(o, node, "o_buff", "o_cids", op, NULL, NULL);
        break;
    case IN_CHANNELS:
        read_cids(o, node, "i_buff", "i_cids", op, NULL, NULL);
        break;
    case MOVES_OUT:
        read_cids(o, node, "o_buff", "o_cids", op, op->dst, &op->ndst);
        if (!o->r->failed)
            read_sources_of_put(o, node, op);
        break;
    case MOVES_IN:
        read_cids(o, node, "i_buff", "i_cids", op, op->src, &op->nsrc);
        read_places(o, node, "dsts", op->dst, &op->ndst);
        break;
    case LOCAL:
    case REDUCES:
    case READS_AND_REDUCES:
        op->src[op->nsrc++] = read_place(o, node, "srcbuff", "srcoff");
        op->dst[op->ndst++] = read_place(o, node, "dstbuff", "dstoff");
        if (shape == REDUCES)
            read_places(o, node, "srcs", op->src, &op->nsrc);
        if (shape == READS_AND_REDUCES)
            read_cids(o, node, "i_buff", "i_cids", op, op->src, &op->nsrc);
        if (shape != LOCAL && sends && op->name != MPP_READ_REDUCE)
            read_cids(o, node, "o_buff", "o_cids", op, op->dst, &op->ndst);
        break;
    case NOTHING:
        break;
    }
}

/* --- ops ------------------------------------------------------------------------------------- */

static const struct known *find_name(struct mpp_reader *r, const struct peal_json_value *node)
{
    const struct peal_json_value *name = peal_mpp_need(r, node, "name", NULL, PEAL_JSON_STRING);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (name && strcmp(name->text, known[i].text) == 0)
            return &known[i];
    }
    if (name)
        peal_mpp_refuse(r, name, "an older plan has no op '%.40s' that is read here", name->text);
    return NULL;
}

static void read_op(struct older *o, const struct peal_json_value *node, struct mscclpp_op *op)
{
    struct mpp_reader *r = o->r;
    const struct known *spelling = find_name(r, node);
    const struct peal_json_value *type = peal_json_get(node, "ctype");
    if (!spelling)
        return;
    op->line = node->line;
    op->col = node->col;
    op->name = (uint8_t)spelling->name;
    op->tbg_size = 1;
    if (type)
        op->channel_type = (uint8_t)peal_mpp_channel_type(r, type);
    if (spelling->name == MPP_BARRIER) {
        op->barrier = (uint32_t)peal_mpp_int(r, node, "barrier_id", NULL, 0, 4095, -1);
        op->blocks = (uint32_t)peal_mpp_int(r, node, "nthread_blocks", NULL, 1, 1 << 16, 0);
    }
    uint64_t in = length_of(node, "i_cids"), to = length_of(node, "o_cids");
    uint64_t capacity = 1 + in + to + length_of(node, "srcs") + length_of(node, "dsts");
    op->channels = peal_mpp_take(r, in + to, sizeof *op->channels);
    op->src = peal_mpp_take(r, capacity, sizeof *op->src);
    op->dst = peal_mpp_take(r, capacity, sizeof *op->dst);
    if (!r->failed)
        read_operands(o, node, spelling->shape, op);
    r->import->facts.steps++;
}

void peal_mpp_read_older_block(struct mpp_reader *r, const struct peal_json_value *node,
                               uint32_t rank, struct mscclpp_tb *out)
{
    struct older o = {.r = r, .rank = rank};
    out->line = node->line;
    out->col = node->col;
    read_list(&o, node);
    const struct peal_json_value *ops = peal_mpp_need(r, node, "ops", NULL, PEAL_JSON_ARRAY);
    if (!ops)
        return;
    out->ops = peal_mpp_take(r, ops->count, sizeof *out->ops);
    for (const struct peal_json_value *n = ops->first; n && !r->failed; n = n->next)
        read_op(&o, n, &out->ops[out->nops++]);
}
