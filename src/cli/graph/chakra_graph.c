/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of all ranks become tasks, in an order in which every dependency comes first.
 *
 * Tasks of a graph are ordered by the tensors that they touch. So a node that others wait for has a token, a
 * tensor of one element on its rank; whoever waits reads it into what it touches itself:
 *
 *   computation   join(token of each dependency, own token), then the time: cN(own token)
 *   collective    join(token, x) on all ranks of its group, x to y by a kernel, join(y, own token)
 *   message       a broadcast on two ranks; the sender's token does not wait for it
 *
 * Tokens are used again when nobody waits for them any more; tensors of messages and collectives, by the next
 * one of the same kind, size and ranks.
 */
#include "cli/graph/chakra.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
enum { MAX_COSTS = 3000, MAX_POOLS = 1000, MAX_DOMAINS = 1000 };

/* What a collective is in a graph, by the schema's number. */
static const struct chakra_kind {
    const char *kernel, *more; /* arguments after x and y */
    bool shard_x, shard_y;
} kinds[] = {
    {"allreduce_ring", ", sum", false, false},
    {"reduce_binomial", ", sum, 0", false, false},
    {"allgather_ring", "", true, false},
    {"gather_flat", ", 0", true, false},
    {"scatter_flat", ", 0", false, true},
    {"broadcast_binomial", ", 0", false, false},
    {"all_to_all_pairwise", "", false, false},
    {"reduce_scatter_ring", ", sum", false, true},
    {"reduce_scatter_ring", ", sum", false, true},
    {"allreduce_ring", ", sum", false, false}, /* a barrier: of one element a rank */
};
enum { KIND_BARRIER = 9, KIND_MESSAGE = 10, KINDS = 10 };
static const struct chakra_kind message_kind = {"broadcast_binomial", "", false, false};

/* One end of a message, or one rank of a collective. Equal keys belong together. */
struct chakra_end {
    const char *group; /* of a collective; a message: "" */
    uint32_t src, dst; /* of a message */
    int64_t tag;
    uint32_t seq; /* which one of this key on its rank */
    uint32_t rank, node;
    bool is_send;
};

/* Ends that belong together: ends[first] up to ends[first + count]. */
struct chakra_meeting {
    uint32_t first, count, arrived;
    bool silent; /* others' traces are missing: it takes no time */
};

struct chakra_pool {
    uint32_t domain, kind;
    uint64_t elements;
};

struct chakra_maker {
    struct peal_chakra *trace;
    struct peal_diags *diags;
    struct peal_text functions, domains, tensors, tasks;
    PEAL_VEC(struct chakra_end) ends;
    PEAL_VEC(struct chakra_meeting) meetings;
    PEAL_VEC(struct chakra_pool) pools;
    PEAL_VEC(uint64_t) costs;   /* microseconds */
    PEAL_VEC(uint32_t) members; /* of domains, one after the other */
    PEAL_VEC(uint32_t) first_member;
    PEAL_VEC(uint32_t) free_tokens[PEAL_CHAKRA_MAX_RANKS];
    uint32_t tokens[PEAL_CHAKRA_MAX_RANKS];
    uint32_t *rank, *waits, *refs, *token, *meeting; /* of each node */
    uint32_t *dependents, *first_dependent, *queue, *walk, *order, *implied;
    bool *finished, *taken; /* of each node: done; in the queue */
    uint32_t done, queued, loads, untimed, alone, outside, cycles;
    bool no_memory, failed;
};

static const struct peal_chakra_node *node_at(const struct chakra_maker *m, uint32_t i)
{
    return &m->trace->nodes.at[i];
}

/* A collective without a type is what launches one: a computation. */
static bool is_comm(const struct peal_chakra_node *node)
{
    return node->type >= PEAL_CHAKRA_SEND && (node->type != PEAL_CHAKRA_COLL || node->comm >= 0);
}

static void refuse(struct chakra_maker *m, uint32_t node, const char *why)
{
    if (!m->failed)
        peal_diag_error(m->diags, (struct peal_pos){0}, "rank %u, node %" PRIu64 " '%s': %s",
                        m->rank[node], node_at(m, node)->id, node_at(m, node)->name, why);
    m->failed = true;
}

/* Words that a plain YAML text may have. */
static void put_name(struct peal_text *out, const char *name)
{
    for (int i = 0; name[i] && i < 60; i++) {
        bool plain =
            strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./", name[i]);
        peal_text_printf(out, "%c", plain ? name[i] : '_');
    }
}

static uint32_t take_token(struct chakra_maker *m, uint32_t node)
{
    uint32_t rank = m->rank[node];
    if (m->free_tokens[rank].len)
        return m->token[node] = m->free_tokens[rank].at[--m->free_tokens[rank].len];
    peal_text_printf(&m->tensors, "  t%u_%u: {shape: [1], worker: %u}\n", rank, m->tokens[rank],
                     rank);
    return m->token[node] = m->tokens[rank]++;
}

static void drop_token(struct chakra_maker *m, uint32_t node)
{
    uint32_t rank = m->rank[node];
    m->no_memory |= !peal_vec_push(&m->free_tokens[rank], m->token[node]);
    m->token[node] = NONE;
}

/* Marks what the node's dependencies waited for themselves: the node need not wait for that. */
static void mark_implied(struct chakra_maker *m, uint32_t node)
{
    const struct peal_chakra_node *n = node_at(m, node);
    for (uint32_t d = n->first_dep; d < n->first_dep + n->ndeps; d++) {
        uint64_t dep = m->trace->deps.at[d];
        if (dep == UINT64_MAX || !m->finished[dep])
            continue;
        const struct peal_chakra_node *other = node_at(m, (uint32_t)dep);
        for (uint32_t e = other->first_dep; e < other->first_dep + other->ndeps; e++) {
            uint64_t before = m->trace->deps.at[e];
            if (before != UINT64_MAX && m->finished[before] && m->order[before] < m->order[dep])
                m->implied[before] = node + 1;
        }
    }
}

/* The dependencies' tokens are read into the tensor that follows. */
static void put_joins(struct chakra_maker *m, uint32_t node, const char *into)
{
    const struct peal_chakra_node *n = node_at(m, node);
    mark_implied(m, node);
    for (uint32_t d = n->first_dep; d < n->first_dep + n->ndeps; d++) {
        uint64_t dep = m->trace->deps.at[d];
        if (dep == UINT64_MAX)
            continue;
        m->cycles += !m->finished[dep];
        if (m->finished[dep] && m->implied[dep] != node + 1) {
            peal_text_printf(&m->tasks, "  - {run: join, worker: %u, args: [t%u_%u, %s]}\n",
                             m->rank[node], m->rank[node], m->token[dep], into);
            m->implied[dep] = node + 1; /* once is enough */
        }
        if (--m->refs[dep] == 0 && m->finished[dep])
            drop_token(m, (uint32_t)dep);
    }
}

static const char *token_name(const struct chakra_maker *m, uint32_t node, char name[32])
{
    snprintf(name, 32, "t%u_%u", m->rank[node], m->token[node]);
    return name;
}

/* The function that takes so long. */
static void need_cost(struct chakra_maker *m, uint32_t node, uint64_t micros)
{
    for (size_t i = 0; i < m->costs.len; i++) {
        if (m->costs.at[i] == micros)
            return;
    }
    if (m->costs.len == MAX_COSTS)
        refuse(m, node, "more than 3000 different durations");
    else if (micros > UINT64_MAX / 1000000)
        refuse(m, node, "its duration is too large");
    else if (!peal_vec_push(&m->costs, micros))
        m->no_memory = true;
    else
        peal_text_printf(&m->functions,
                         "  c%" PRIu64 ": {parameters: \"inout\", cost_ps: %" PRIu64 "}\n", micros,
                         micros * 1000000);
}

static void put_computation(struct chakra_maker *m, uint32_t node)
{
    const struct peal_chakra_node *n = node_at(m, node);
    char own[32];
    bool computes = n->type == PEAL_CHAKRA_COMP || (n->type == PEAL_CHAKRA_COLL && !is_comm(n));
    uint64_t micros = computes ? n->duration : 0;
    m->loads += n->type == PEAL_CHAKRA_LOAD || n->type == PEAL_CHAKRA_STORE;
    m->untimed += computes && micros == 0;
    take_token(m, node);
    put_joins(m, node, token_name(m, node, own));
    if (micros > 0) {
        need_cost(m, node, micros);
        peal_text_printf(&m->tasks,
                         "  - {run: c%" PRIu64 ", worker: %u, args: [%s], name: ", micros,
                         m->rank[node], own);
        put_name(&m->tasks, *n->name ? n->name : "compute");
        peal_text_puts(&m->tasks, "}\n");
    }
    if (m->refs[node] == 0)
        drop_token(m, node);
}

/* The number of the domain of these ends' ranks. */
static uint32_t find_domain(struct chakra_maker *m, const struct chakra_meeting *meeting)
{
    const struct chakra_end *ends = &m->ends.at[meeting->first];
    for (uint32_t d = 0; d + 1 < m->first_member.len; d++) {
        uint32_t first = m->first_member.at[d], count = m->first_member.at[d + 1] - first, i = 0;
        while (count == meeting->count && i < count && m->members.at[first + i] == ends[i].rank)
            i++;
        if (count == meeting->count && i == count)
            return d;
    }
    if (m->first_member.len == 0)
        m->no_memory |= !peal_vec_push(&m->first_member, 0);
    peal_text_printf(&m->domains, "  d%zu: [", m->first_member.len - 1);
    for (uint32_t i = 0; i < meeting->count && !m->no_memory; i++) {
        m->no_memory |= !peal_vec_push(&m->members, ends[i].rank);
        peal_text_printf(&m->domains, "%s%u", i ? ", " : "", ends[i].rank);
    }
    peal_text_puts(&m->domains, "]\n");
    m->no_memory |= !peal_vec_push(&m->first_member, (uint32_t)m->members.len);
    if (m->first_member.len > MAX_DOMAINS)
        refuse(m, ends[0].node, "more than 1000 different groups of ranks communicate");
    return (uint32_t)m->first_member.len - 2;
}

/* The number of the tensors x and y of that kind and size. */
static uint32_t find_pool(struct chakra_maker *m, const struct chakra_pool *pool, uint32_t node,
                          const struct chakra_kind *kind)
{
    for (uint32_t i = 0; i < m->pools.len; i++) {
        const struct chakra_pool *other = &m->pools.at[i];
        if (other->domain == pool->domain && other->kind == pool->kind &&
            other->elements == pool->elements)
            return i;
    }
    if (m->pools.len == MAX_POOLS)
        refuse(m, node, "messages of more than 1000 sizes and groups");
    m->no_memory |= !peal_vec_push(&m->pools, *pool);
    for (int y = 0; y < 2; y++)
        peal_text_printf(&m->tensors, "  %c%zu: {shape: [%" PRIu64 "], on: d%u%s}\n", y ? 'y' : 'x',
                         m->pools.len - 1, pool->elements, pool->domain,
                         (y ? kind->shard_y : kind->shard_x) ? ", shard: 0" : "");
    return (uint32_t)m->pools.len - 1;
}

static const struct chakra_kind *kind_of(const struct peal_chakra_node *node, uint32_t *number)
{
    *number = KIND_MESSAGE;
    if (node->type != PEAL_CHAKRA_COLL)
        return &message_kind;
    *number = (uint32_t)node->comm;
    return node->comm >= 0 && node->comm < KINDS ? &kinds[node->comm] : NULL;
}

/* What a meeting is: the tensors x and y of that number, on the domain. False after a diagnostic. */
static const struct chakra_kind *find_tensors(struct chakra_maker *m,
                                              const struct chakra_meeting *meeting,
                                              uint32_t *domain, uint32_t *number)
{
    const struct chakra_end *ends = &m->ends.at[meeting->first];
    const struct peal_chakra_node *n = node_at(m, ends[0].node);
    struct chakra_pool pool = {0};
    const struct chakra_kind *kind = kind_of(n, &pool.kind);
    if (!kind || (n->size < 0 && pool.kind != KIND_BARRIER) || n->size > (int64_t)1 << 34) {
        refuse(m, ends[0].node,
               kind ? "its comm_size is missing or too large" : "an unknown comm_type");
        return NULL;
    }
    uint64_t bytes = pool.kind == KIND_BARRIER ? 4 : (uint64_t)n->size;
    pool.domain = *domain = find_domain(m, meeting);
    pool.elements = peal_size_max(1, (bytes + 3) / 4);
    if (pool.kind != KIND_MESSAGE)
        pool.elements = (pool.elements + meeting->count - 1) / meeting->count * meeting->count;
    *number = find_pool(m, &pool, ends[0].node, kind);
    return kind;
}

/* A send is over when it is posted: what follows it on its rank does not wait for the recv. */
static void put_send(struct chakra_maker *m, const struct chakra_meeting *meeting, uint32_t node)
{
    uint32_t domain, number;
    char own[32];
    if (!find_tensors(m, meeting, &domain, &number))
        return;
    take_token(m, node);
    put_joins(m, node, token_name(m, node, own));
    peal_text_printf(&m->tasks, "  - {run: join, worker: %u, args: [%s, x%u]}\n", m->rank[node],
                     own, number);
    if (m->refs[node] == 0)
        drop_token(m, node);
}

/* One task on the domain. Of a message, the sender has put what it waited for into x already. */
static void put_meeting(struct chakra_maker *m, const struct chakra_meeting *meeting)
{
    const struct chakra_end *ends = &m->ends.at[meeting->first];
    const struct peal_chakra_node *n = node_at(m, ends[0].node);
    uint32_t domain, number;
    char x[24], own[32];
    const struct chakra_kind *kind = find_tensors(m, meeting, &domain, &number);
    if (!kind)
        return;
    snprintf(x, sizeof x, "x%u", number);
    for (uint32_t i = 0; i < meeting->count; i++) {
        if (!ends[i].is_send)
            put_joins(m, ends[i].node, x);
    }
    peal_text_printf(&m->tasks, "  - {run: %s, on: d%u, args: [x%u, y%u%s", kind->kernel, domain,
                     number, number, kind->more);
    if (kind == &message_kind) /* the root is the sender */
        peal_text_printf(&m->tasks, ", %d", ends[0].is_send ? 0 : 1);
    peal_text_puts(&m->tasks, "], name: ");
    put_name(&m->tasks, *n->name ? n->name : "message");
    peal_text_puts(&m->tasks, "}\n");
    for (uint32_t i = 0; i < meeting->count; i++) {
        if (m->refs[ends[i].node] == 0 || ends[i].is_send)
            continue;
        take_token(m, ends[i].node);
        peal_text_printf(&m->tasks, "  - {run: join, worker: %u, args: [y%u, %s]}\n", ends[i].rank,
                         number, token_name(m, ends[i].node, own));
    }
}

static int compare_keys(const struct chakra_end *x, const struct chakra_end *y)
{
    int group = strcmp(x->group, y->group);
    if (group)
        return group;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    if (x->dst != y->dst)
        return x->dst < y->dst ? -1 : 1;
    return (x->tag > y->tag) - (x->tag < y->tag);
}

static int compare_places(const void *a, const void *b)
{
    const struct chakra_end *x = a, *y = b;
    int keys = compare_keys(x, y);
    if (keys)
        return keys;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->is_send != y->is_send)
        return x->is_send ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static int compare_ends(const void *a, const void *b)
{
    const struct chakra_end *x = a, *y = b;
    int keys = compare_keys(x, y);
    if (keys)
        return keys;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void add_end(struct chakra_maker *m, uint32_t node)
{
    const struct peal_chakra_node *n = node_at(m, node);
    struct chakra_end end = {.group = "", .rank = m->rank[node], .node = node, .tag = n->tag};
    end.is_send = n->type == PEAL_CHAKRA_SEND;
    int64_t peer = end.is_send ? n->dst : n->src;
    if (n->type == PEAL_CHAKRA_COLL) {
        end.group = *n->group ? n->group : "all";
        end.src = end.dst = NONE;
        end.tag = 0;
    } else if (peer < 0 || peer >= m->trace->ranks || peer == end.rank) {
        refuse(m, node, "its peer is no other rank of the trace");
    } else {
        end.src = end.is_send ? end.rank : (uint32_t)peer;
        end.dst = end.is_send ? (uint32_t)peer : end.rank;
    }
    m->no_memory |= !peal_vec_push(&m->ends, end);
}

/* Numbers the ends of each key on each rank, and puts those of one number together. */
static void match(struct chakra_maker *m)
{
    for (uint32_t i = 0; i < m->trace->nodes.len && !m->no_memory && !m->failed; i++) {
        if (is_comm(node_at(m, i)))
            add_end(m, i);
    }
    if (m->failed || m->no_memory || m->ends.len == 0)
        return;
    qsort(m->ends.at, m->ends.len, sizeof *m->ends.at, compare_places);
    for (size_t i = 1; i < m->ends.len; i++) {
        struct chakra_end *end = &m->ends.at[i];
        bool same = compare_keys(end - 1, end) == 0 && end[-1].rank == end->rank &&
                    end[-1].is_send == end->is_send;
        end->seq = same ? end[-1].seq + 1 : 0;
    }
    qsort(m->ends.at, m->ends.len, sizeof *m->ends.at, compare_ends);
    for (uint32_t i = 0; i < m->ends.len && !m->no_memory; i++) {
        const struct chakra_end *end = &m->ends.at[i];
        bool joins = i > 0 && compare_keys(end - 1, end) == 0 && end[-1].seq == end->seq;
        if (!joins)
            m->no_memory |= !peal_vec_push(&m->meetings, (struct chakra_meeting){.first = i});
        if (m->no_memory)
            return;
        m->meetings.at[m->meetings.len - 1].count++;
        m->meeting[end->node] = (uint32_t)m->meetings.len - 1;
    }
}

/* Ranks of one collective agree on what it is; a message has two ends. */
static void check_meetings(struct chakra_maker *m)
{
    for (size_t i = 0; i < m->meetings.len && !m->failed; i++) {
        struct chakra_meeting *meeting = &m->meetings.at[i];
        const struct chakra_end *ends = &m->ends.at[meeting->first];
        const struct peal_chakra_node *first = node_at(m, ends[0].node);
        meeting->silent = meeting->count == 1;
        m->alone += meeting->silent;
        for (uint32_t e = 1; e < meeting->count; e++) {
            const struct peal_chakra_node *other = node_at(m, ends[e].node);
            if (first->size != other->size)
                refuse(m, ends[e].node, "its size is not that of its other ends");
            else if (first->type == PEAL_CHAKRA_COLL && first->comm != other->comm)
                refuse(m, ends[e].node, "other ranks of its group call another collective here");
        }
    }
}

/* Who waits for whom. */
static void link_nodes(struct chakra_maker *m)
{
    struct peal_chakra *trace = m->trace;
    for (uint32_t r = 0; r < trace->ranks; r++) {
        for (uint32_t i = trace->first[r]; i < trace->first[r + 1]; i++)
            m->rank[i] = r;
    }
    for (uint32_t i = 0; i < trace->nodes.len; i++) {
        const struct peal_chakra_node *n = node_at(m, i);
        m->token[i] = m->meeting[i] = NONE;
        for (uint32_t d = n->first_dep; d < n->first_dep + n->ndeps; d++) {
            if (trace->deps.at[d] == UINT64_MAX) {
                m->outside++;
                continue;
            }
            m->waits[i]++;
            m->refs[trace->deps.at[d]]++;
        }
    }
    for (uint32_t i = 0; i < trace->nodes.len; i++)
        m->first_dependent[i + 1] = m->first_dependent[i] + m->refs[i];
    uint32_t *fill = m->queue; /* not used yet */
    memcpy(fill, m->first_dependent, trace->nodes.len * sizeof *fill);
    for (uint32_t i = 0; i < trace->nodes.len; i++) {
        const struct peal_chakra_node *n = node_at(m, i);
        for (uint32_t d = n->first_dep; d < n->first_dep + n->ndeps; d++) {
            if (trace->deps.at[d] != UINT64_MAX)
                m->dependents[fill[trace->deps.at[d]]++] = i;
        }
    }
}

static void queue_node(struct chakra_maker *m, uint32_t node)
{
    m->taken[node] = true;
    m->queue[m->queued++] = node;
}

static void finish_node(struct chakra_maker *m, uint32_t node)
{
    m->order[node] = m->done++;
    m->finished[node] = true;
    for (uint32_t d = m->first_dependent[node]; d < m->first_dependent[node + 1]; d++) {
        uint32_t next = m->dependents[d];
        if (!m->taken[next] && --m->waits[next] == 0)
            queue_node(m, next);
    }
}

static void take_node(struct chakra_maker *m, uint32_t node)
{
    struct chakra_meeting *meeting =
        m->meeting[node] == NONE ? NULL : &m->meetings.at[m->meeting[node]];
    if (!meeting || meeting->silent) {
        put_computation(m, node);
        finish_node(m, node);
        return;
    }
    bool is_send = node_at(m, node)->type == PEAL_CHAKRA_SEND;
    if (is_send) {
        put_send(m, meeting, node);
        finish_node(m, node);
    }
    if (m->failed || ++meeting->arrived < meeting->count)
        return;
    put_meeting(m, meeting);
    for (uint32_t e = 0; e < meeting->count; e++) {
        if (!m->ends.at[meeting->first + e].is_send)
            finish_node(m, m->ends.at[meeting->first + e].node);
    }
}

/* A dependency of the node that is not done and waits itself, or NONE. */
static uint32_t find_waiting(const struct chakra_maker *m, uint32_t node)
{
    const struct peal_chakra_node *n = node_at(m, node);
    for (uint32_t d = n->first_dep; d < n->first_dep + n->ndeps; d++) {
        uint64_t dep = m->trace->deps.at[d];
        if (dep != UINT64_MAX && !m->finished[dep] && !m->taken[dep])
            return (uint32_t)dep;
    }
    return NONE;
}

/* Traces of real programs have nodes that wait for each other: one of them begins all the same. `walk` has a
 * number for each node: that of the walk that came to it. False: nobody waits for itself. */
static bool break_cycle(struct chakra_maker *m, uint32_t *walk)
{
    uint32_t count = (uint32_t)m->trace->nodes.len;
    memset(walk, 0, count * sizeof *walk);
    for (uint32_t start = 0; start < count; start++) {
        uint32_t node = start;
        if (m->taken[start])
            continue;
        while (node != NONE && walk[node] == 0) {
            walk[node] = start + 1;
            node = find_waiting(m, node);
        }
        if (node != NONE && walk[node] == start + 1) {
            queue_node(m, node);
            return true;
        }
    }
    return false;
}

static void schedule(struct chakra_maker *m)
{
    uint32_t count = (uint32_t)m->trace->nodes.len, next = 0;
    enum { MAX_CYCLES = 1000 };
    for (uint32_t i = 0; i < count; i++) {
        if (m->waits[i] == 0)
            queue_node(m, i);
    }
    do {
        for (; next < m->queued && !m->failed && !m->no_memory; next++)
            take_node(m, m->queue[next]);
    } while (m->done < count && !m->failed && !m->no_memory && m->cycles < MAX_CYCLES &&
             break_cycle(m, m->walk));
    for (uint32_t i = 0; i < count && m->done < count && !m->failed && !m->no_memory; i++) {
        if (!m->finished[i])
            refuse(m, i, "it can never begin: ranks meet in different orders, or in cycles");
    }
}

static void put_notes(const struct chakra_maker *m, struct peal_text *out)
{
    if (m->loads)
        peal_text_printf(out, "%u loads and stores of memory take no time: a graph has none\n",
                         m->loads);
    if (m->untimed)
        peal_text_printf(out, "%u computations have no duration and take no time\n", m->untimed);
    if (m->alone)
        peal_text_printf(out,
                         "%u messages or collectives take no time: the traces of their other ranks "
                         "are missing\n",
                         m->alone);
    if (m->cycles)
        peal_text_printf(out, "%u dependencies that close a cycle are left out\n", m->cycles);
    if (m->outside)
        peal_text_printf(out, "%u dependencies are on nodes that are not in the trace\n",
                         m->outside);
}

static void put_section(struct peal_text *out, const char *name, const struct peal_text *lines)
{
    if (lines->len)
        peal_text_printf(out, "%s:\n%s", name, peal_text_get(lines));
    out->failed |= lines->failed;
}

static bool allocate(struct chakra_maker *m)
{
    size_t nodes = m->trace->nodes.len + 1, deps = m->trace->deps.len + 1;
    m->rank = calloc(nodes, sizeof *m->rank);
    m->waits = calloc(nodes, sizeof *m->waits);
    m->refs = calloc(nodes, sizeof *m->refs);
    m->token = calloc(nodes, sizeof *m->token);
    m->meeting = calloc(nodes, sizeof *m->meeting);
    m->dependents = calloc(deps, sizeof *m->dependents);
    m->first_dependent = calloc(nodes, sizeof *m->first_dependent);
    m->queue = calloc(nodes, sizeof *m->queue);
    m->walk = calloc(nodes, sizeof *m->walk);
    m->order = calloc(nodes, sizeof *m->order);
    m->implied = calloc(nodes, sizeof *m->implied);
    m->finished = calloc(nodes, sizeof *m->finished);
    m->taken = calloc(nodes, sizeof *m->taken);
    return m->rank && m->waits && m->refs && m->token && m->meeting && m->dependents &&
           m->first_dependent && m->queue && m->walk && m->order && m->implied && m->finished &&
           m->taken;
}

static void release(struct chakra_maker *m)
{
    struct peal_text *const texts[] = {&m->functions, &m->domains, &m->tensors, &m->tasks};
    for (int i = 0; i < 4; i++)
        peal_text_release(texts[i]);
    peal_vec_release(&m->ends);
    peal_vec_release(&m->meetings);
    peal_vec_release(&m->pools);
    peal_vec_release(&m->costs);
    peal_vec_release(&m->members);
    peal_vec_release(&m->first_member);
    for (uint32_t r = 0; r < PEAL_CHAKRA_MAX_RANKS; r++)
        peal_vec_release(&m->free_tokens[r]);
    free(m->rank);
    free(m->waits);
    free(m->refs);
    free(m->token);
    free(m->meeting);
    free(m->dependents);
    free(m->first_dependent);
    free(m->queue);
    free(m->walk);
    free(m->order);
    free(m->implied);
    free(m->finished);
    free(m->taken);
    free(m);
}

enum peal_status peal_chakra_graph(struct peal_chakra *trace, struct peal_diags *diags,
                                   struct peal_text *out, struct peal_text *notes)
{
    struct chakra_maker *m = calloc(1, sizeof *m);
    if (!m)
        return PEAL_NO_MEMORY;
    m->trace = trace;
    m->diags = diags;
    m->no_memory = !allocate(m);
    if (!m->no_memory) {
        link_nodes(m);
        match(m);
        check_meetings(m);
    }
    if (!m->no_memory && !m->failed)
        schedule(m);
    peal_text_printf(out, "workers: %u\n", trace->ranks);
    put_section(out, "domains", &m->domains);
    peal_text_puts(out, "functions:\n  join: {parameters: \"in, inout\", cost_ps: 0}\n");
    peal_text_puts(out, peal_text_get(&m->functions));
    put_section(out, "tensors", &m->tensors);
    put_section(out, "tasks", &m->tasks);
    put_notes(m, notes);
    enum peal_status status = m->failed ? PEAL_INVALID : PEAL_OK;
    if (m->no_memory || out->failed)
        status = PEAL_NO_MEMORY;
    release(m);
    return status;
}
