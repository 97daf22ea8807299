/* SPDX-License-Identifier: Apache-2.0 */
/* MSCCL++ tree -> model: the plan and its gpus. Blocks and ops are in read_ops.c. */
#include "import/mscclpp/read.h"

#include <stdarg.h>
#include <string.h>

static struct peal_pos position_of(const struct mpp_reader *r, const struct peal_json_value *node)
{
    return (struct peal_pos){r->import->source, node->line, node->col, 0};
}

void peal_mpp_refuse(struct mpp_reader *r, const struct peal_json_value *node, const char *format,
                     ...)
{
    va_list args;
    if (r->failed)
        return;
    r->failed = true;
    va_start(args, format);
    peal_diag_add(r->diags, PEAL_ERROR, position_of(r, node), format, args);
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

const struct peal_json_value *peal_mpp_get(const struct peal_json_value *object, const char *name,
                                           const char *older)
{
    const struct peal_json_value *member = peal_json_get(object, name);
    if (member || !older)
        return member;
    return peal_json_get(object, older);
}

static const char *kind_name(enum peal_json_kind kind)
{
    static const char *const names[] = {"an object", "an array", "a text",
                                        "a number",  "a bool",   "null"};
    return names[kind];
}

const struct peal_json_value *peal_mpp_need(struct mpp_reader *r,
                                            const struct peal_json_value *object, const char *name,
                                            const char *older, enum peal_json_kind kind)
{
    if (r->failed)
        return NULL;
    const struct peal_json_value *member = peal_mpp_get(object, name, older);
    if (!member)
        peal_mpp_refuse(r, object, "there is no '%s'", name);
    else if (member->kind != kind)
        peal_mpp_refuse(r, member, "'%s' is %s; %s is wanted", name, kind_name(member->kind),
                        kind_name(kind));
    if (r->failed)
        return NULL;
    return member;
}

static void refuse_number(struct mpp_reader *r, const struct peal_json_value *node, int64_t lo,
                          int64_t hi)
{
    const char *name = "this";
    if (node->key)
        name = node->key;
    const char *found = kind_name(node->kind);
    if (node->kind == PEAL_JSON_NUMBER)
        found = node->text;
    if (hi < lo)
        peal_mpp_refuse(r, node, "'%s' is %s, but there is nothing of that kind to number", name,
                        found);
    else
        peal_mpp_refuse(r, node, "'%s' is %s; a whole number from %lld to %lld is wanted", name,
                        found, (long long)lo, (long long)hi);
}

int64_t peal_mpp_value(struct mpp_reader *r, const struct peal_json_value *node, int64_t lo,
                       int64_t hi)
{
    if (r->failed)
        return lo;
    bool good = node->kind == PEAL_JSON_NUMBER && node->is_integer && node->number >= lo &&
                node->number <= hi;
    if (!good)
        refuse_number(r, node, lo, hi);
    if (good)
        return node->number;
    return lo;
}

int64_t peal_mpp_int(struct mpp_reader *r, const struct peal_json_value *object, const char *name,
                     const char *older, int64_t lo, int64_t hi, int64_t otherwise)
{
    if (r->failed)
        return lo;
    const struct peal_json_value *member = peal_mpp_get(object, name, older);
    if (!member && otherwise < lo)
        peal_mpp_refuse(r, object, "there is no '%s'", name);
    if (member)
        return peal_mpp_value(r, member, lo, hi);
    return otherwise;
}

enum mscclpp_channel_type peal_mpp_channel_type(struct mpp_reader *r,
                                                const struct peal_json_value *node)
{
    static const struct {
        const char *name;
        enum mscclpp_channel_type type;
    } known[] = {{"memory", MPP_MEMORY},  {"sm", MPP_MEMORY},     {"port", MPP_PORT},
                 {"proxy", MPP_PORT},     {"switch", MPP_SWITCH}, {"nvls", MPP_SWITCH},
                 {"none", MPP_NO_CHANNEL}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (node->kind == PEAL_JSON_STRING && strcmp(node->text, known[i].name) == 0)
            return known[i].type;
    }
    peal_mpp_refuse(r, node, "a type of channel is wanted: memory, port, switch or none");
    return MPP_NO_CHANNEL;
}

uint8_t peal_mpp_buffer(struct mpp_reader *r, const struct peal_json_value *node)
{
    static const char letters[] = "ios";
    bool one = node->kind == PEAL_JSON_STRING && strlen(node->text) == 1;
    const char *at = NULL;
    if (one)
        at = strchr(letters, node->text[0]);
    if (!at)
        peal_mpp_refuse(r, node, "a buffer is wanted: i, o or s");
    if (at)
        return (uint8_t)(at - letters);
    return 0;
}

/* --- a gpu ----------------------------------------------------------------------------------- */

static void read_groups(struct mpp_reader *r, const struct peal_json_value *channel,
                        struct mscclpp_gpu *gpu)
{
    const struct peal_json_value *groups =
        peal_mpp_need(r, channel, "rank_groups", NULL, PEAL_JSON_ARRAY);
    const struct peal_json_value *buffer =
        peal_mpp_need(r, channel, "buffer_type", NULL, PEAL_JSON_STRING);
    if (!buffer)
        return;
    for (const struct peal_json_value *g = peal_json_first(groups); g && !r->failed; g = g->next) {
        const struct peal_json_value *ranks = peal_mpp_need(r, g, "ranks", NULL, PEAL_JSON_ARRAY);
        if (!ranks)
            return;
        struct mscclpp_group *group = &gpu->groups[gpu->ngroups++];
        group->buffer = peal_mpp_buffer(r, buffer);
        group->ranks = peal_mpp_take(r, ranks->count, sizeof *group->ranks);
        for (const struct peal_json_value *n = ranks->first; n && !r->failed; n = n->next) {
            group->ranks[group->nranks++] =
                (uint32_t)peal_mpp_value(r, n, 0, (int64_t)r->plan->nranks - 1);
        }
        if (!r->failed && group->nranks == 0)
            peal_mpp_refuse(r, ranks, "a group without ranks");
    }
}

static void read_peers(struct mpp_reader *r, const struct peal_json_value *channel,
                       enum mscclpp_channel_type type, struct mscclpp_gpu *gpu, uint32_t *orders)
{
    const struct peal_json_value *peers =
        peal_mpp_need(r, channel, "connected_to", "connectedTo", PEAL_JSON_ARRAY);
    uint8_t from = 0, to = 0;
    if (r->plan->older) {
        const struct peal_json_value *src =
            peal_mpp_need(r, channel, "srcbuff", NULL, PEAL_JSON_STRING);
        const struct peal_json_value *dst =
            peal_mpp_need(r, channel, "dstbuff", NULL, PEAL_JSON_STRING);
        if (src)
            from = peal_mpp_buffer(r, src);
        if (dst)
            to = peal_mpp_buffer(r, dst);
    }
    for (const struct peal_json_value *n = peal_json_first(peers); n && !r->failed; n = n->next) {
        uint32_t peer = (uint32_t)peal_mpp_value(r, n, 0, (int64_t)r->plan->nranks - 1);
        if (!r->failed && gpu == &r->plan->gpus[peer])
            peal_mpp_refuse(r, n, "a channel from gpu %u to itself", peer);
        gpu->channels[type][gpu->nchannels[type]++] =
            (struct mscclpp_channel){n->line, n->col, peer, orders[peer]++, from, to};
    }
}

/* The number of entries of all channels of the gpu: an upper limit. */
static uint64_t count_peers(const struct peal_json_value *list)
{
    uint64_t n = 0;
    for (const struct peal_json_value *c = list->first; c; c = c->next) {
        const struct peal_json_value *peers = peal_mpp_get(c, "connected_to", "connectedTo");
        const struct peal_json_value *groups = peal_json_get(c, "rank_groups");
        n += (peal_json_count(peers)) + (peal_json_count(groups));
    }
    return n;
}

static void read_channels(struct mpp_reader *r, const struct peal_json_value *node,
                          struct mscclpp_gpu *gpu)
{
    const struct peal_json_value *list = peal_json_get(node, "channels");
    if (!list)
        return;
    if (list->kind != PEAL_JSON_ARRAY) {
        peal_mpp_refuse(r, list, "'channels' is an array");
        return;
    }
    uint64_t capacity = count_peers(list);
    uint32_t *orders[MPP_CHANNEL_TYPES] = {NULL};
    for (int t = MPP_MEMORY; t <= MPP_PORT; t++) {
        gpu->channels[t] = peal_mpp_take(r, capacity, sizeof *gpu->channels[t]);
        orders[t] = calloc(r->plan->nranks, sizeof *orders[t]);
        r->failed = r->failed || !orders[t];
    }
    gpu->groups = peal_mpp_take(r, capacity, sizeof *gpu->groups);
    for (const struct peal_json_value *c = list->first; c && !r->failed; c = c->next) {
        const char *older = "type";
        if (peal_json_get(c, "ctype"))
            older = "ctype";
        const struct peal_json_value *type =
            peal_mpp_need(r, c, "channel_type", older, PEAL_JSON_STRING);
        if (!type)
            break;
        enum mscclpp_channel_type t = peal_mpp_channel_type(r, type);
        if (t == MPP_SWITCH && r->plan->older)
            peal_mpp_refuse(r, type, "switch channels of this older form are not read");
        else if (t == MPP_SWITCH)
            read_groups(r, c, gpu);
        else if (t != MPP_NO_CHANNEL)
            read_peers(r, c, t, gpu, orders[t]);
    }
    free(orders[MPP_MEMORY]);
    free(orders[MPP_PORT]);
}

static void read_semaphores(struct mpp_reader *r, const struct peal_json_value *node,
                            struct mscclpp_gpu *gpu)
{
    const struct peal_json_value *list = peal_json_get(node, "semaphores");
    if (!list || list->kind != PEAL_JSON_ARRAY)
        return;
    gpu->semaphores = peal_mpp_take(r, list->count, sizeof *gpu->semaphores);
    for (const struct peal_json_value *s = list->first; s && !r->failed; s = s->next) {
        gpu->semaphores[gpu->nsemaphores++] =
            peal_mpp_int(r, s, "init_value", NULL, 0, 1 << 20, -1);
    }
}

static int by_id(struct mpp_reader *r, const struct peal_json_value *list,
                 const struct peal_json_value **out, const char *element)
{
    int64_t at = 0;
    for (const struct peal_json_value *n = list->first; n && !r->failed; n = n->next, at++) {
        int64_t id = peal_mpp_int(r, n, "id", NULL, 0, (int64_t)list->count - 1, -1);
        if (id != at && !r->plan->disorder_line) {
            r->plan->disorder_line = n->line;
            r->plan->disorder_col = n->col;
        }
        if (!r->failed && out[id])
            peal_mpp_refuse(r, n, "a second %s %lld", element, (long long)id);
        if (!r->failed)
            out[id] = n;
    }
    return !r->failed;
}

static void read_gpu(struct mpp_reader *r, const struct peal_json_value *node, uint32_t rank)
{
    struct mscclpp_gpu *gpu = &r->plan->gpus[rank];
    gpu->line = node->line;
    gpu->col = node->col;
    gpu->input_chunks =
        (uint32_t)peal_mpp_int(r, node, "input_chunks", "inputChunks", 0, MPP_MAX_CHUNKS, -1);
    gpu->output_chunks =
        (uint32_t)peal_mpp_int(r, node, "output_chunks", "outputChunks", 0, MPP_MAX_CHUNKS, -1);
    gpu->scratch_chunks =
        (uint32_t)peal_mpp_int(r, node, "scratch_chunks", "scratchChunks", 0, MPP_MAX_CHUNKS, -1);
    /* Groups only matter if chunks differ in size, which they do not in plans read here. */
    const struct peal_json_value *groups = peal_json_get(node, "chunkGroups");
    if (groups && !r->failed)
        (void)peal_mpp_value(r, groups, 1, 1 << 20);
    read_channels(r, node, gpu);
    read_semaphores(r, node, gpu);
    const struct peal_json_value *blocks =
        peal_mpp_need(r, node, "threadblocks", NULL, PEAL_JSON_ARRAY);
    if (!blocks)
        return;
    if (blocks->count >= 16384) {
        peal_mpp_refuse(r, blocks, "a GPU has at most 16383 thread blocks");
        return;
    }
    const struct peal_json_value **sorted = peal_mpp_take(r, blocks->count, sizeof *sorted);
    gpu->tbs = peal_mpp_take(r, blocks->count, sizeof *gpu->tbs);
    if (r->failed || !by_id(r, blocks, sorted, "thread block"))
        return;
    for (uint32_t t = 0; t < blocks->count && !r->failed; t++) {
        if (r->plan->older)
            peal_mpp_read_older_block(r, sorted[t], rank, &gpu->tbs[t]);
        else
            peal_mpp_read_block(r, node, sorted[t], rank, &gpu->tbs[t]);
    }
    gpu->ntbs = blocks->count;
}

/* --- the plan -------------------------------------------------------------------------------- */

static const char *read_text(struct mpp_reader *r, const struct peal_json_value *root,
                             const char *name, const char *older)
{
    const struct peal_json_value *node = peal_mpp_need(r, root, name, older, PEAL_JSON_STRING);
    if (node)
        return node->text;
    return "";
}

/* In files of the first executors, channels name buffers. */
static bool is_older(const struct peal_json_value *root)
{
    const struct peal_json_value *gpus = peal_json_get(root, "gpus");
    for (const struct peal_json_value *g = peal_json_first(gpus); g; g = g->next) {
        const struct peal_json_value *channels = peal_json_get(g, "channels");
        if (channels && channels->first)
            return peal_json_get(channels->first, "srcbuff") != NULL;
    }
    return false;
}

/* "collective", or a misspelling that occurs in files. */
static const char *collective_key(const struct peal_json_value *root)
{
    static const char *const spellings[] = {"collective", "colletive", "colective"};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        if (peal_json_get(root, spellings[i]))
            return spellings[i];
    }
    return spellings[0];
}

static void read_head(struct mpp_reader *r, const struct peal_json_value *root)
{
    struct peal_import_facts *facts = &r->import->facts;
    struct mscclpp_plan *plan = r->plan;
    const struct peal_json_value *name = peal_json_get(root, "name");
    if (name && name->kind == PEAL_JSON_STRING)
        facts->name = name->text;
    else
        facts->name = "plan";
    plan->older = is_older(root);
    facts->collective = read_text(r, root, "collective", collective_key(root));
    facts->protocol = read_text(r, root, "protocol", NULL);
    const struct peal_json_value *inplace = peal_mpp_need(r, root, "inplace", NULL, PEAL_JSON_BOOL);
    if (r->failed)
        return;
    if (!peal_import_contract(facts->collective, &facts->contract))
        peal_mpp_refuse(r, peal_json_get(root, collective_key(root)), "unknown collective '%.40s'",
                        facts->collective);
    plan->packets = strcmp(facts->protocol, "LL") == 0;
    if (!plan->packets && strcmp(facts->protocol, "Simple") != 0)
        peal_mpp_refuse(r, peal_json_get(root, "protocol"),
                        "protocol '%.40s'; there are Simple and LL", facts->protocol);
    facts->in_place = inplace->number;
    facts->out_of_place = !inplace->number;
    const struct peal_json_value *twice = peal_json_get(root, "use_double_scratch_buffer");
    plan->double_scratch = twice && twice->kind == PEAL_JSON_BOOL && twice->number;
    if (plan->older)
        plan->double_scratch = plan->packets;
    plan->alignment = (uint32_t)peal_mpp_int(r, root, "buffer_alignment", NULL, 1, 1 << 20, 16);
    plan->threads =
        (uint32_t)peal_mpp_int(r, root, "num_threads_per_block", NULL, 1, 1 << 20, 1024);
    plan->min_bytes = (uint64_t)peal_mpp_int(r, root, "min_message_size", NULL, 0, INT64_MAX, 0);
    const struct peal_json_value *capacity = peal_json_get(root, "max_message_size");
    bool fits = capacity && capacity->kind == PEAL_JSON_NUMBER && capacity->is_integer &&
                capacity->number >= 0;
    if (fits)
        plan->max_bytes = (uint64_t)capacity->number;
    else
        plan->max_bytes = UINT64_MAX; /* files have 2^64 - 1 */
}

enum peal_status peal_mscclpp_read(struct peal_import *import, struct peal_diags *diags)
{
    struct mpp_reader r = {.import = import, .diags = diags, .status = PEAL_OK};
    struct peal_json_value *root = NULL;
    r.status = peal_json_read(import->source, &import->arena, diags, &root);
    if (!root)
        return r.status;
    r.plan = peal_mpp_take(&r, 1, sizeof *r.plan);
    if (r.failed)
        return r.status;
    r.plan->line = root->line;
    r.plan->col = root->col;
    read_head(&r, root);
    const struct peal_json_value *gpus = peal_mpp_need(&r, root, "gpus", NULL, PEAL_JSON_ARRAY);
    if (gpus && (gpus->count == 0 || gpus->count > PEAL_PLAN_MAX_RANKS))
        peal_mpp_refuse(&r, gpus, "from 1 to %d gpus are wanted", PEAL_PLAN_MAX_RANKS);
    if (!r.failed) {
        const struct peal_json_value **sorted = peal_mpp_take(&r, gpus->count, sizeof *sorted);
        r.plan->gpus = peal_mpp_take(&r, gpus->count, sizeof *r.plan->gpus);
        r.plan->nranks = gpus->count;
        import->facts.nranks = gpus->count;
        if (!r.failed && by_id(&r, gpus, sorted, "gpu")) {
            for (uint32_t g = 0; g < gpus->count && !r.failed; g++)
                read_gpu(&r, sorted[g], g);
        }
    }
    if (r.failed) {
        if (r.status == PEAL_OK)
            return PEAL_INVALID;
        return r.status;
    }
    import->mscclpp = r.plan;
    return PEAL_OK;
}
