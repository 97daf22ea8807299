/* SPDX-License-Identifier: Apache-2.0 */
/* MSCCL++ tree -> model: a thread block and its ops. Resolves what an op names by its index in the
 * block's lists: channels, remote buffers, switch channels. */
#include "import/mscclpp/read.h"

#include <string.h>

const char *peal_mscclpp_name(enum mscclpp_name name)
{
    static const char *const names[] = {
#define OP(id, text, place) text,
        MSCCLPP_OPS(OP)
#undef OP
    };
    return names[name];
}

struct remote {
    uint32_t rank;
    uint8_t buffer;
};

/* The lists of one block. */
struct op_lists {
    struct mpp_reader *r;
    uint32_t rank;
    uint32_t *channels[MPP_CHANNEL_TYPES];
    uint32_t nchannels[MPP_CHANNEL_TYPES];
    struct remote *remotes[MPP_CHANNEL_TYPES];
    uint32_t nremotes[MPP_CHANNEL_TYPES];
};

static uint64_t count_all(const struct peal_json_value *list, const char *name, const char *older)
{
    uint64_t n = 0;
    for (const struct peal_json_value *c = peal_json_first(list); c; c = c->next) {
        const struct peal_json_value *ids = peal_mpp_get(c, name, older);
        n += peal_json_count(ids);
    }
    return n;
}

static void read_channel_ids(struct op_lists *l, const struct peal_json_value *block)
{
    struct mpp_reader *r = l->r;
    const struct mscclpp_gpu *gpu = &r->plan->gpus[l->rank];
    const struct peal_json_value *list = peal_json_get(block, "channels");
    uint64_t capacity = count_all(list, "channel_ids", "cids");
    for (int t = 0; t < MPP_CHANNEL_TYPES; t++)
        l->channels[t] = peal_mpp_take(r, capacity, sizeof *l->channels[t]);
    for (const struct peal_json_value *c = peal_json_first(list); c && !r->failed; c = c->next) {
        const struct peal_json_value *type =
            peal_mpp_need(r, c, "channel_type", "ctype", PEAL_JSON_STRING);
        const struct peal_json_value *ids =
            peal_mpp_need(r, c, "channel_ids", "cids", PEAL_JSON_ARRAY);
        if (r->failed)
            return;
        enum mscclpp_channel_type t = peal_mpp_channel_type(r, type);
        uint32_t there;
        if (t == MPP_SWITCH)
            there = gpu->ngroups;
        else
            there = gpu->nchannels[t];
        for (const struct peal_json_value *n = ids->first; n && !r->failed; n = n->next) {
            l->channels[t][l->nchannels[t]++] =
                (uint32_t)peal_mpp_value(r, n, 0, (int64_t)there - 1);
        }
    }
}

static void read_remotes(struct op_lists *l, const struct peal_json_value *gpu,
                         const struct peal_json_value *block)
{
    struct mpp_reader *r = l->r;
    const struct peal_json_value *all = peal_json_get(gpu, "remote_buffers");
    const struct peal_json_value *list = peal_json_get(block, "remote_buffer_refs");
    uint64_t capacity = count_all(list, "remote_buffer_ids", NULL);
    const struct peal_json_value **by_id = peal_mpp_take(r, peal_json_count(all), sizeof *by_id);
    uint32_t n = 0;
    for (int t = 0; t < MPP_CHANNEL_TYPES; t++)
        l->remotes[t] = peal_mpp_take(r, capacity, sizeof *l->remotes[t]);
    for (const struct peal_json_value *b = peal_json_first(all); b && !r->failed; b = b->next)
        by_id[n++] = b;
    for (const struct peal_json_value *c = peal_json_first(list); c && !r->failed; c = c->next) {
        const struct peal_json_value *type =
            peal_mpp_need(r, c, "access_channel_type", NULL, PEAL_JSON_STRING);
        const struct peal_json_value *ids =
            peal_mpp_need(r, c, "remote_buffer_ids", NULL, PEAL_JSON_ARRAY);
        if (r->failed)
            return;
        enum mscclpp_channel_type t = peal_mpp_channel_type(r, type);
        for (const struct peal_json_value *id = ids->first; id; id = id->next) {
            if (r->failed)
                return;
            if (n == 0) {
                peal_mpp_refuse(r, id, "the gpu has no remote buffers");
                return;
            }
            const struct peal_json_value *b = by_id[peal_mpp_value(r, id, 0, (int64_t)n - 1)];
            const struct peal_json_value *buffer =
                peal_mpp_need(r, b, "type", NULL, PEAL_JSON_STRING);
            struct remote remote = {
                (uint32_t)peal_mpp_int(r, b, "rank", NULL, 0, (int64_t)r->plan->nranks - 1, -1),
                buffer ? peal_mpp_buffer(r, buffer) : 0};
            l->remotes[t][l->nremotes[t]++] = remote;
        }
    }
}

static void read_operand(struct op_lists *l, const struct peal_json_value *node,
                         const struct mscclpp_op *op, struct mscclpp_operand *out)
{
    struct mpp_reader *r = l->r;
    const struct peal_json_value *type = peal_json_get(node, "type");
    const struct peal_json_value *id = peal_json_get(node, "buffer_id");
    const struct peal_json_value *group = peal_json_get(node, "switch_channel_id");
    out->rank = l->rank;
    out->index = (uint32_t)peal_mpp_int(r, node, "index", NULL, 0, MPP_MAX_CHUNKS, -1);
    out->size = (uint32_t)peal_mpp_int(r, node, "size", NULL, 0, MPP_MAX_CHUNKS, -1);
    if (r->failed)
        return;
    if (!!type + !!id + !!group != 1) {
        peal_mpp_refuse(r, node, "one of 'type', 'buffer_id' and 'switch_channel_id' is wanted");
    } else if (type) {
        out->buffer = peal_mpp_buffer(r, type);
    } else if (id) {
        uint8_t t = op->channel_type == MPP_PORT ? MPP_PORT : MPP_MEMORY;
        if (l->nremotes[t] == 0)
            peal_mpp_refuse(r, id, "the thread block refers to no remote buffers");
        else {
            const struct remote *remote =
                &l->remotes[t][peal_mpp_value(r, id, 0, (int64_t)l->nremotes[t] - 1)];
            out->rank = remote->rank;
            out->buffer = remote->buffer;
        }
    } else if (l->nchannels[MPP_SWITCH] == 0) {
        peal_mpp_refuse(r, group, "the thread block has no switch channels");
    } else {
        int64_t at = peal_mpp_value(r, group, 0, (int64_t)l->nchannels[MPP_SWITCH] - 1);
        out->is_group = true;
        out->group = l->channels[MPP_SWITCH][at];
        out->buffer = r->plan->gpus[l->rank].groups[out->group].buffer;
    }
}

static struct mscclpp_operand *read_operands(struct op_lists *l, const struct peal_json_value *node,
                                             const char *name, const struct mscclpp_op *op,
                                             uint32_t *count)
{
    struct mpp_reader *r = l->r;
    const struct peal_json_value *list = peal_json_get(node, name);
    if (!list)
        return NULL;
    if (list->kind != PEAL_JSON_ARRAY) {
        peal_mpp_refuse(r, list, "'%s' is an array", name);
        return NULL;
    }
    struct mscclpp_operand *out = peal_mpp_take(r, list->count, sizeof *out);
    for (const struct peal_json_value *n = list->first; n && !r->failed; n = n->next)
        read_operand(l, n, op, &out[(*count)++]);
    return out;
}

/* Numbers of a list, each below `most`, mapped through `through` unless that is NULL. */
static uint32_t *read_ids(struct mpp_reader *r, const struct peal_json_value *list,
                          uint32_t capacity, const uint32_t *through, uint32_t *count)
{
    if (list->kind != PEAL_JSON_ARRAY) {
        peal_mpp_refuse(r, list, "an array is wanted");
        return NULL;
    }
    uint32_t *out = peal_mpp_take(r, list->count, sizeof *out);
    for (const struct peal_json_value *n = list->first; n && !r->failed; n = n->next) {
        if (capacity == 0) {
            peal_mpp_refuse(r, n, "there are none of that kind");
            return out;
        }
        uint32_t id = (uint32_t)peal_mpp_value(r, n, 0, (int64_t)capacity - 1);
        if (through)
            out[(*count)++] = through[id];
        else
            out[(*count)++] = id;
    }
    return out;
}

static uint8_t read_name(struct mpp_reader *r, const struct peal_json_value *op)
{
    static const struct {
        const char *older;
        enum mscclpp_name name;
    } aliases[] = {{"cpy", MPP_COPY},
                   {"rs", MPP_REDUCE_SEND},
                   {"rspkt", MPP_REDUCE_SEND_PACKETS},
                   {"rpkt", MPP_REDUCE_PACKETS},
                   {"rrc", MPP_READ_REDUCE},
                   {"rrcs", MPP_READ_REDUCE_SEND},
                   {"rsignal", MPP_RELAXED_SIGNAL},
                   {"rwait", MPP_RELAXED_WAIT},
                   {"rlsignal", MPP_RELAXED_SIGNAL},
                   {"rlwait", MPP_RELAXED_WAIT}};
    const struct peal_json_value *name = peal_mpp_need(r, op, "name", NULL, PEAL_JSON_STRING);
    for (int i = 0; i < MPP_NAMES; i++) {
        if (name && strcmp(name->text, peal_mscclpp_name((uint8_t)i)) == 0)
            return (uint8_t)i;
    }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (name && strcmp(name->text, aliases[i].older) == 0)
            return (uint8_t)aliases[i].name;
    }
    if (name)
        peal_mpp_refuse(r, name, "unknown op '%.40s'", name->text);
    return MPP_NOP;
}

/* Members that only former executors had, and whose meaning is not in the file. */
static void refuse_older(struct mpp_reader *r, const struct peal_json_value *node)
{
    static const char *const gone[] = {"i_cids", "o_cids", "i_buff", "o_buff", "deps", "srcs"};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        const struct peal_json_value *member = peal_json_get(node, gone[i]);
        if (member)
            peal_mpp_refuse(
                r, member,
                "'%s' is of an older executor, whose channels name buffers; those of this "
                "file do not",
                gone[i]);
    }
}

static void read_counts(struct op_lists *l, const struct peal_json_value *node,
                        struct mscclpp_op *op)
{
    struct mpp_reader *r = l->r;
    const struct peal_json_value *part = peal_json_get(node, "tbg_info");
    op->tbg_size = 1;
    if (part) {
        op->tbg_size = (uint32_t)peal_mpp_int(r, part, "tbg_size", NULL, 1, 1 << 16, 0);
        op->tb_id =
            (uint32_t)peal_mpp_int(r, part, "tb_id", NULL, 0, (int64_t)op->tbg_size - 1, -1);
    }
    if (op->name == MPP_BARRIER) {
        op->barrier = (uint32_t)peal_mpp_int(r, node, "barrier_id", NULL, 0, 4095, -1);
        op->blocks =
            (uint32_t)peal_mpp_int(r, node, "num_threadblocks", "nthread_blocks", 1, 1 << 16, 0);
    }
    const struct peal_json_value *reduce = peal_json_get(node, "reduce_op");
    if (reduce && (reduce->kind != PEAL_JSON_STRING ||
                   (strcmp(reduce->text, "sum") != 0 && strcmp(reduce->text, "min") != 0 &&
                    strcmp(reduce->text, "max") != 0)))
        peal_mpp_refuse(r, reduce, "a reduction is wanted: sum, min or max");
}

static void read_op(struct op_lists *l, const struct peal_json_value *node, struct mscclpp_op *op);

static void read_pipeline(struct op_lists *l, const struct peal_json_value *node,
                          struct mscclpp_op *op)
{
    struct mpp_reader *r = l->r;
    const struct peal_json_value *context =
        peal_mpp_need(r, node, "iter_context", NULL, PEAL_JSON_OBJECT);
    const struct peal_json_value *ops = peal_mpp_need(r, node, "ops", NULL, PEAL_JSON_ARRAY);
    if (r->failed)
        return;
    op->unit_bytes = (uint64_t)peal_mpp_int(r, context, "unit_size", NULL, 1, INT64_C(1) << 32, 0);
    op->unit_chunks = (uint32_t)peal_mpp_int(r, context, "num_chunks", NULL, 1, 1 << 20, 0);
    op->inner = peal_mpp_take(r, ops->count, sizeof *op->inner);
    for (const struct peal_json_value *n = ops->first; n && !r->failed; n = n->next) {
        read_op(l, n, &op->inner[op->ninner++]);
        if (!r->failed && op->inner[op->ninner - 1].name == MPP_PIPELINE)
            peal_mpp_refuse(r, n, "a pipeline inside a pipeline");
    }
}

static void read_op(struct op_lists *l, const struct peal_json_value *node, struct mscclpp_op *op)
{
    struct mpp_reader *r = l->r;
    const struct peal_json_value *type = peal_mpp_get(node, "channel_type", "ctype");
    const struct peal_json_value *ids = peal_mpp_get(node, "channel_ids", "cids");
    const struct peal_json_value *semaphores = peal_json_get(node, "semaphore_ids");
    op->line = node->line;
    op->col = node->col;
    op->name = read_name(r, node);
    refuse_older(r, node);
    if (type && !r->failed)
        op->channel_type = (uint8_t)peal_mpp_channel_type(r, type);
    if (ids && !r->failed)
        op->channels = read_ids(r, ids, l->nchannels[op->channel_type],
                                l->channels[op->channel_type], &op->nchannels);
    if (semaphores && !r->failed)
        op->semaphores =
            read_ids(r, semaphores, r->plan->gpus[l->rank].nsemaphores, NULL, &op->nsemaphores);
    if (r->failed)
        return;
    read_counts(l, node, op);
    op->src = read_operands(l, node, "src_buff", op, &op->nsrc);
    op->dst = read_operands(l, node, "dst_buff", op, &op->ndst);
    r->import->facts.steps++;
    if (op->name == MPP_PIPELINE && !r->failed)
        read_pipeline(l, node, op);
}

void peal_mpp_read_block(struct mpp_reader *r, const struct peal_json_value *gpu_node,
                         const struct peal_json_value *node, uint32_t rank, struct mscclpp_tb *out)
{
    struct op_lists l = {.r = r, .rank = rank};
    out->line = node->line;
    out->col = node->col;
    read_channel_ids(&l, node);
    out->channels = l.channels[MPP_MEMORY];
    out->nchannels = l.nchannels[MPP_MEMORY];
    read_remotes(&l, gpu_node, node);
    const struct peal_json_value *ops = peal_mpp_need(r, node, "ops", NULL, PEAL_JSON_ARRAY);
    if (!ops)
        return;
    out->ops = peal_mpp_take(r, ops->count, sizeof *out->ops);
    for (const struct peal_json_value *n = ops->first; n && !r->failed; n = n->next)
        read_op(&l, n, &out->ops[out->nops++]);
}
