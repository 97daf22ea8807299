/* SPDX-License-Identifier: Apache-2.0 */
/* MSCCL++ tree -> model: the plan and its gpus. Blocks and ops are in read_ops.c. */
#include "import/mscclpp/read.h"

#include <stdarg.h>
#include <string.h>

struct peal_pos peal_mpp_pos(const struct mpp_reader *r, const struct json *node)
{
    return (struct peal_pos){r->import->source, node->line, node->col, 0};
}

void peal_mpp_refuse(struct mpp_reader *r, const struct json *node, const char *format, ...)
{
    va_list args;
    if (r->failed)
        return;
    r->failed = true;
    va_start(args, format);
    peal_diag_add(r->diags, PEAL_ERROR, peal_mpp_pos(r, node), format, args);
    va_end(args);
}

void *peal_mpp_take(struct mpp_reader *r, uint64_t count, size_t size)
{
    void *at = peal_arena_alloc(&r->import->arena, (count ? count : 1) * size);
    if (!at) {
        r->failed = true;
        r->status = PEAL_NO_MEMORY;
    }
    return at;
}

const struct json *peal_mpp_get(const struct json *object, const char *name, const char *older)
{
    const struct json *member = peal_json_get(object, name);
    return member || !older ? member : peal_json_get(object, older);
}

static const char *kind_name(enum json_kind kind)
{
    static const char *const names[] = {"an object", "an array", "a text",
                                        "a number",  "a bool",   "null"};
    return names[kind];
}

const struct json *peal_mpp_need(struct mpp_reader *r, const struct json *object, const char *name,
                                 const char *older, enum json_kind kind)
{
    if (r->failed)
        return NULL;
    const struct json *member = peal_mpp_get(object, name, older);
    if (!member)
        peal_mpp_refuse(r, object, "there is no '%s'", name);
    else if (member->kind != kind)
        peal_mpp_refuse(r, member, "'%s' is %s; %s is wanted", name, kind_name(member->kind),
                        kind_name(kind));
    return r->failed ? NULL : member;
}

int64_t peal_mpp_value(struct mpp_reader *r, const struct json *node, int64_t lo, int64_t hi)
{
    if (r->failed)
        return lo;
    bool good =
        node->kind == JSON_NUMBER && node->is_integer && node->number >= lo && node->number <= hi;
    if (!good)
        peal_mpp_refuse(r, node, "a whole number from %lld to %lld is wanted", (long long)lo,
                        (long long)hi);
    return good ? node->number : lo;
}

int64_t peal_mpp_int(struct mpp_reader *r, const struct json *object, const char *name,
                     const char *older, int64_t lo, int64_t hi, int64_t otherwise)
{
    if (r->failed)
        return lo;
    const struct json *member = peal_mpp_get(object, name, older);
    if (!member && otherwise < lo)
        peal_mpp_refuse(r, object, "there is no '%s'", name);
    return member ? peal_mpp_value(r, member, lo, hi) : otherwise;
}

enum mscclpp_channel_type peal_mpp_channel_type(struct mpp_reader *r, const struct json *node)
{
    static const struct {
        const char *name;
        enum mscclpp_channel_type type;
    } known[] = {{"memory", MPP_MEMORY},  {"sm", MPP_MEMORY},     {"port", MPP_PORT},
                 {"proxy", MPP_PORT},     {"switch", MPP_SWITCH}, {"nvls", MPP_SWITCH},
                 {"none", MPP_NO_CHANNEL}};
    for (size_t i = 0; node->kind == JSON_STRING && i < sizeof known / sizeof *known; i++) {
        if (strcmp(node->text, known[i].name) == 0)
            return known[i].type;
    }
    peal_mpp_refuse(r, node, "a type of channel is wanted: memory, port, switch or none");
    return MPP_NO_CHANNEL;
}

uint8_t peal_mpp_buffer(struct mpp_reader *r, const struct json *node)
{
    static const char letters[] = "ios";
    bool one = node->kind == JSON_STRING && strlen(node->text) == 1;
    const char *at = one ? strchr(letters, node->text[0]) : NULL;
    if (!at)
        peal_mpp_refuse(r, node, "a buffer is wanted: i, o or s");
    return at ? (uint8_t)(at - letters) : 0;
}

/* --- a gpu ----------------------------------------------------------------------------------- */

static void read_groups(struct mpp_reader *r, const struct json *channel, struct mscclpp_gpu *gpu)
{
    const struct json *groups = peal_mpp_need(r, channel, "rank_groups", NULL, JSON_ARRAY);
    const struct json *buffer = peal_mpp_need(r, channel, "buffer_type", NULL, JSON_STRING);
    for (const struct json *g = groups && buffer ? groups->first : NULL; g && !r->failed;
         g = g->next) {
        const struct json *ranks = peal_mpp_need(r, g, "ranks", NULL, JSON_ARRAY);
        if (!ranks)
            return;
        struct mscclpp_group *group = &gpu->groups[gpu->ngroups++];
        group->buffer = peal_mpp_buffer(r, buffer);
        group->ranks = peal_mpp_take(r, ranks->count, sizeof *group->ranks);
        for (const struct json *n = ranks->first; n && !r->failed; n = n->next)
            group->ranks[group->nranks++] =
                (uint32_t)peal_mpp_value(r, n, 0, (int64_t)r->plan->nranks - 1);
        if (!r->failed && group->nranks == 0)
            peal_mpp_refuse(r, ranks, "a group without ranks");
    }
}

static void read_peers(struct mpp_reader *r, const struct json *channel,
                       enum mscclpp_channel_type type, struct mscclpp_gpu *gpu, uint32_t *orders)
{
    const struct json *peers = peal_mpp_need(r, channel, "connected_to", "connectedTo", JSON_ARRAY);
    for (const struct json *n = peers ? peers->first : NULL; n && !r->failed; n = n->next) {
        uint32_t peer = (uint32_t)peal_mpp_value(r, n, 0, (int64_t)r->plan->nranks - 1);
        if (!r->failed && gpu == &r->plan->gpus[peer])
            peal_mpp_refuse(r, n, "a channel from gpu %u to itself", peer);
        gpu->channels[type][gpu->nchannels[type]++] =
            (struct mscclpp_channel){n->line, n->col, peer, orders[peer]++};
    }
}

/* How many entries all channels of the gpu have: what is taken at most. */
static uint64_t count_peers(const struct json *list)
{
    uint64_t n = 0;
    for (const struct json *c = list->first; c; c = c->next) {
        const struct json *peers = peal_mpp_get(c, "connected_to", "connectedTo");
        const struct json *groups = peal_json_get(c, "rank_groups");
        n += (peers ? peers->count : 0) + (groups ? groups->count : 0);
    }
    return n;
}

static void read_channels(struct mpp_reader *r, const struct json *node, struct mscclpp_gpu *gpu)
{
    const struct json *list = peal_json_get(node, "channels");
    if (!list)
        return;
    if (list->kind != JSON_ARRAY) {
        peal_mpp_refuse(r, list, "'channels' is an array");
        return;
    }
    uint64_t most = count_peers(list);
    uint32_t *orders[MPP_CHANNEL_TYPES] = {NULL};
    for (int t = MPP_MEMORY; t <= MPP_PORT; t++) {
        gpu->channels[t] = peal_mpp_take(r, most, sizeof *gpu->channels[t]);
        orders[t] = calloc(r->plan->nranks, sizeof *orders[t]);
        r->failed = r->failed || !orders[t];
    }
    gpu->groups = peal_mpp_take(r, most, sizeof *gpu->groups);
    for (const struct json *c = list->first; c && !r->failed; c = c->next) {
        const struct json *type = peal_mpp_need(r, c, "channel_type", "type", JSON_STRING);
        if (!type)
            break;
        enum mscclpp_channel_type t = peal_mpp_channel_type(r, type);
        if (t == MPP_SWITCH)
            read_groups(r, c, gpu);
        else if (t != MPP_NO_CHANNEL)
            read_peers(r, c, t, gpu, orders[t]);
    }
    free(orders[MPP_MEMORY]);
    free(orders[MPP_PORT]);
}

static void read_semaphores(struct mpp_reader *r, const struct json *node, struct mscclpp_gpu *gpu)
{
    const struct json *list = peal_json_get(node, "semaphores");
    if (!list || list->kind != JSON_ARRAY)
        return;
    gpu->semaphores = peal_mpp_take(r, list->count, sizeof *gpu->semaphores);
    for (const struct json *s = list->first; s && !r->failed; s = s->next)
        gpu->semaphores[gpu->nsemaphores++] =
            peal_mpp_int(r, s, "init_value", NULL, 0, 1 << 20, -1);
}

static int by_id(struct mpp_reader *r, const struct json *list, const struct json **out,
                 const char *what)
{
    for (const struct json *n = list->first; n && !r->failed; n = n->next) {
        int64_t id = peal_mpp_int(r, n, "id", NULL, 0, (int64_t)list->count - 1, -1);
        if (!r->failed && out[id])
            peal_mpp_refuse(r, n, "a second %s %lld", what, (long long)id);
        if (!r->failed)
            out[id] = n;
    }
    return !r->failed;
}

static void read_gpu(struct mpp_reader *r, const struct json *node, uint32_t rank)
{
    enum { MOST_CHUNKS = 1 << 20 };
    struct mscclpp_gpu *gpu = &r->plan->gpus[rank];
    gpu->line = node->line;
    gpu->col = node->col;
    gpu->input_chunks =
        (uint32_t)peal_mpp_int(r, node, "input_chunks", "inputChunks", 0, MOST_CHUNKS, -1);
    gpu->output_chunks =
        (uint32_t)peal_mpp_int(r, node, "output_chunks", "outputChunks", 0, MOST_CHUNKS, -1);
    gpu->scratch_chunks =
        (uint32_t)peal_mpp_int(r, node, "scratch_chunks", "scratchChunks", 0, MOST_CHUNKS, -1);
    const struct json *groups = peal_json_get(node, "chunkGroups");
    if (groups && peal_mpp_value(r, groups, 1, 1 << 20) != 1)
        peal_mpp_refuse(r, groups, "chunk groups are of an older executor and are not read");
    read_channels(r, node, gpu);
    read_semaphores(r, node, gpu);
    const struct json *blocks = peal_mpp_need(r, node, "threadblocks", NULL, JSON_ARRAY);
    if (!blocks)
        return;
    if (blocks->count >= 16384) {
        peal_mpp_refuse(r, blocks, "too many thread blocks");
        return;
    }
    const struct json **sorted = peal_mpp_take(r, blocks->count, sizeof *sorted);
    gpu->tbs = peal_mpp_take(r, blocks->count, sizeof *gpu->tbs);
    if (r->failed || !by_id(r, blocks, sorted, "thread block"))
        return;
    for (uint32_t t = 0; t < blocks->count && !r->failed; t++)
        peal_mpp_read_block(r, node, sorted[t], rank, &gpu->tbs[t]);
    gpu->ntbs = blocks->count;
}

/* --- the plan -------------------------------------------------------------------------------- */

static const char *read_text(struct mpp_reader *r, const struct json *root, const char *name,
                             const char *older)
{
    const struct json *node = peal_mpp_need(r, root, name, older, JSON_STRING);
    return node ? node->text : "";
}

static void read_head(struct mpp_reader *r, const struct json *root)
{
    struct peal_import_facts *facts = &r->import->facts;
    struct mscclpp_plan *plan = r->plan;
    const struct json *name = peal_json_get(root, "name");
    facts->name = name && name->kind == JSON_STRING ? name->text : "plan";
    facts->collective = read_text(r, root, "collective", "colective");
    facts->protocol = read_text(r, root, "protocol", NULL);
    const struct json *inplace = peal_mpp_need(r, root, "inplace", NULL, JSON_BOOL);
    if (r->failed)
        return;
    if (!peal_import_contract(facts->collective, &facts->contract))
        peal_mpp_refuse(r, peal_mpp_get(root, "collective", "colective"),
                        "unknown collective '%.40s'", facts->collective);
    plan->packets = strcmp(facts->protocol, "LL") == 0;
    if (!plan->packets && strcmp(facts->protocol, "Simple") != 0)
        peal_mpp_refuse(r, peal_json_get(root, "protocol"),
                        "protocol '%.40s'; there are Simple and LL", facts->protocol);
    facts->in_place = inplace->number;
    facts->out_of_place = !inplace->number;
    const struct json *twice = peal_json_get(root, "use_double_scratch_buffer");
    const struct json *reuse = peal_json_get(root, "reuse_resources");
    plan->double_scratch = twice && twice->kind == JSON_BOOL && twice->number;
    plan->reuse_resources = reuse && reuse->kind == JSON_BOOL && reuse->number;
    plan->alignment = (uint32_t)peal_mpp_int(r, root, "buffer_alignment", NULL, 1, 1 << 20, 16);
    plan->threads =
        (uint32_t)peal_mpp_int(r, root, "num_threads_per_block", NULL, 1, 1 << 20, 1024);
    plan->min_bytes = (uint64_t)peal_mpp_int(r, root, "min_message_size", NULL, 0, INT64_MAX, 0);
    const struct json *most = peal_json_get(root, "max_message_size");
    bool fits = most && most->kind == JSON_NUMBER && most->is_integer && most->number >= 0;
    plan->max_bytes = fits ? (uint64_t)most->number : UINT64_MAX; /* 2^64 - 1 is what files have */
}

enum peal_status peal_mscclpp_read(struct peal_import *import, struct peal_diags *diags)
{
    struct mpp_reader r = {.import = import, .diags = diags, .status = PEAL_OK};
    const struct json *root = peal_json_read(import, diags, &r.status);
    if (!root)
        return r.status == PEAL_OK ? PEAL_INVALID : r.status;
    r.plan = peal_mpp_take(&r, 1, sizeof *r.plan);
    if (r.failed)
        return r.status;
    r.plan->line = root->line;
    r.plan->col = root->col;
    read_head(&r, root);
    const struct json *gpus = peal_mpp_need(&r, root, "gpus", NULL, JSON_ARRAY);
    if (gpus && (gpus->count == 0 || gpus->count > PEAL_PLAN_MAX_RANKS))
        peal_mpp_refuse(&r, gpus, "from 1 to %d gpus are wanted", PEAL_PLAN_MAX_RANKS);
    if (!r.failed) {
        const struct json **sorted = peal_mpp_take(&r, gpus->count, sizeof *sorted);
        r.plan->gpus = peal_mpp_take(&r, gpus->count, sizeof *r.plan->gpus);
        r.plan->nranks = gpus->count;
        import->facts.nranks = gpus->count;
        if (!r.failed && by_id(&r, gpus, sorted, "gpu")) {
            for (uint32_t g = 0; g < gpus->count && !r.failed; g++)
                read_gpu(&r, sorted[g], g);
        }
    }
    if (r.failed)
        return r.status == PEAL_OK ? PEAL_INVALID : r.status;
    import->mscclpp = r.plan;
    return PEAL_OK;
}
