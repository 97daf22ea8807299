/* SPDX-License-Identifier: Apache-2.0 */
/* The builder of graphs: every limit and every rule of graph.h is checked here, so that readers of
 * files and generators need not.
 */
#include "topology/graph/graph.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REACH_WORK (UINT64_C(1) << 32)

static const char *const kind_names[] = {"pe", "switch", "nic", "memory"};

const char *peal_node_kind_name(enum peal_node_kind kind)
{
    return kind_names[kind];
}

struct peal_graph *peal_graph_new(struct peal_diags *diags)
{
    struct peal_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return NULL;
    peal_arena_init(&graph->arena, PEAL_GRAPH_MAX_BYTES);
    peal_intern_init(&graph->words, &graph->arena);
    graph->diags = diags;
    return graph;
}

void peal_graph_free(struct peal_graph *graph)
{
    if (!graph)
        return;
    peal_vec_release(&graph->nodes);
    peal_vec_release(&graph->links);
    peal_vec_release(&graph->groups);
    peal_vec_release(&graph->ways);
    peal_vec_release(&graph->steps);
    peal_index_release(&graph->by_name);
    peal_intern_release(&graph->words);
    peal_arena_release(&graph->arena);
    free(graph->out);
    free(graph->first_out);
    free(graph->in);
    free(graph->first_in);
    free(graph);
}

static void fail(struct peal_graph *graph, enum peal_status status)
{
    if (graph->status == PEAL_OK)
        graph->status = status;
}

void peal_graph_refuse(struct peal_graph *graph, struct peal_pos pos, const char *format, ...)
{
    va_list args;
    if (graph->status != PEAL_OK)
        return;
    va_start(args, format);
    if (graph->diags)
        peal_diag_add(graph->diags, PEAL_ERROR, pos, format, args);
    va_end(args);
    fail(graph, PEAL_INVALID);
}

static const char *word(struct peal_graph *graph, const char *text)
{
    const char *copy = peal_intern_text(&graph->words, text, strlen(text));
    if (!copy)
        fail(graph, PEAL_NO_MEMORY);
    return copy;
}

/* The number of the level of that name. */
static uint32_t find_level(struct peal_graph *graph, const char *name)
{
    const char *text = word(graph, name);
    for (uint32_t i = 0; text && i < graph->levels; i++) {
        if (graph->level_names[i] == text)
            return i;
    }
    if (text && graph->levels == PEAL_GRAPH_MAX_LEVELS)
        peal_graph_refuse(graph, (struct peal_pos){0}, "more than %d levels",
                          PEAL_GRAPH_MAX_LEVELS);
    if (graph->status != PEAL_OK)
        return PEAL_GRAPH_NONE;
    graph->level_names[graph->levels] = text;
    return graph->levels++;
}

uint32_t peal_graph_add_group(struct peal_graph *graph, uint32_t parent, const char *level,
                              const char *name)
{
    if (graph->status != PEAL_OK)
        return PEAL_GRAPH_NONE;
    assert((parent == PEAL_GRAPH_NONE || parent < graph->groups.len) && "parents are added first");
    struct peal_graph_group group = {.name = word(graph, name), .parent = parent};
    group.level = find_level(graph, level);
    if (graph->status == PEAL_OK && parent != PEAL_GRAPH_NONE &&
        graph->groups.at[parent].level >= group.level)
        peal_graph_refuse(graph, (struct peal_pos){0}, "level '%s' is inside '%s', and around it",
                          level, graph->level_names[graph->groups.at[parent].level]);
    if (graph->groups.len == PEAL_GRAPH_MAX_GROUPS)
        peal_graph_refuse(graph, (struct peal_pos){0}, "more than %d groups",
                          PEAL_GRAPH_MAX_GROUPS);
    if (graph->status == PEAL_OK && !peal_vec_push(&graph->groups, group))
        fail(graph, PEAL_NO_MEMORY);
    if (graph->status != PEAL_OK)
        return PEAL_GRAPH_NONE;
    return (uint32_t)graph->groups.len - 1;
}

static uint64_t hash_name(const char *name)
{
    return peal_hash_bytes(name, strlen(name), 0);
}

static uint64_t hash_row(const void *rows, uint32_t row)
{
    return hash_name(((const struct peal_graph_node *)rows)[row].name);
}

/* Where the name is in the index, or would be. Only in an index that has room. */
static size_t find_slot(const struct peal_graph *graph, const char *name)
{
    size_t at = peal_index_begin(&graph->by_name, hash_name(name));
    while (peal_index_is_used(&graph->by_name, at) &&
           strcmp(graph->nodes.at[peal_index_row(&graph->by_name, at)].name, name) != 0)
        at = peal_index_next(&graph->by_name, at);
    return at;
}

uint32_t peal_graph_find(const struct peal_graph *graph, const char *name)
{
    if (graph->by_name.cap == 0)
        return PEAL_GRAPH_NONE;
    size_t at = find_slot(graph, name);
    if (!peal_index_is_used(&graph->by_name, at))
        return PEAL_GRAPH_NONE;
    return peal_index_row(&graph->by_name, at);
}

/* Is there room for one more node of this kind, and is its name a good one? */
static bool may_add(struct peal_graph *graph, const struct peal_graph_node *node)
{
    size_t len = strlen(node->name);
    uint32_t before = peal_graph_find(graph, node->name);
    if (len == 0 || len > PEAL_GRAPH_MAX_NAME)
        peal_graph_refuse(graph, node->pos, "a node's name has 1 to %d bytes", PEAL_GRAPH_MAX_NAME);
    else if (before != PEAL_GRAPH_NONE)
        peal_graph_refuse(graph, node->pos, "there are two nodes '%s'", node->name);
    else if (graph->nodes.len == PEAL_GRAPH_MAX_NODES)
        peal_graph_refuse(graph, node->pos, "more than %d nodes", PEAL_GRAPH_MAX_NODES);
    else if (node->kind == PEAL_NODE_PE && graph->pes == PEAL_GRAPH_MAX_PES)
        peal_graph_refuse(graph, node->pos, "more than %d PEs", PEAL_GRAPH_MAX_PES);
    if (before != PEAL_GRAPH_NONE && graph->diags && graph->nodes.at[before].pos.line)
        peal_diag_note(graph->diags, graph->nodes.at[before].pos, "here for the first time");
    return graph->status == PEAL_OK;
}

uint32_t peal_graph_add_node(struct peal_graph *graph, const struct peal_graph_node *node)
{
    struct peal_graph_node copy = *node;
    if (graph->status != PEAL_OK || !may_add(graph, node))
        return PEAL_GRAPH_NONE;
    assert((node->group == PEAL_GRAPH_NONE || node->group < graph->groups.len) &&
           "groups are added first");
    copy.name = peal_arena_copy(&graph->arena, node->name, strlen(node->name));
    copy.ends |= node->kind == PEAL_NODE_MEMORY;
    if (!copy.name || !peal_index_reserve(&graph->by_name, hash_row, graph->nodes.at) ||
        !peal_vec_reserve(&graph->nodes, 1)) {
        fail(graph, PEAL_NO_MEMORY);
        return PEAL_GRAPH_NONE;
    }
    uint32_t id = (uint32_t)graph->nodes.len;
    peal_index_put(&graph->by_name, find_slot(graph, copy.name), id);
    graph->nodes.at[graph->nodes.len++] = copy;
    graph->pes += node->kind == PEAL_NODE_PE;
    return id;
}

uint32_t peal_graph_add_link(struct peal_graph *graph, const struct peal_graph_link *link)
{
    struct peal_graph_link copy = *link;
    if (graph->status != PEAL_OK)
        return PEAL_GRAPH_NONE;
    assert(link->from < graph->nodes.len && link->to < graph->nodes.len && link->rate.den);
    const char *name = graph->nodes.at[link->from].name;
    if (link->from == link->to)
        peal_graph_refuse(graph, link->pos, "'%s' has a link to itself", name);
    else if (link->lanes == 0 || link->lanes > PEAL_GRAPH_MAX_LANES)
        peal_graph_refuse(graph, link->pos, "a link has 1 to %d lanes, not %u",
                          PEAL_GRAPH_MAX_LANES, link->lanes);
    else if (!peal_rate_bundle(link->rate, link->lanes, &copy.rate))
        peal_graph_refuse(graph, link->pos, "the rate of %u lanes has too many digits",
                          link->lanes);
    else if (graph->links.len == PEAL_GRAPH_MAX_LINKS)
        peal_graph_refuse(graph, link->pos, "more than %d links", PEAL_GRAPH_MAX_LINKS);
    copy.kind = word(graph, link->kind ? link->kind : "link");
    if (graph->status == PEAL_OK && !peal_vec_push(&graph->links, copy))
        fail(graph, PEAL_NO_MEMORY);
    if (graph->status != PEAL_OK)
        return PEAL_GRAPH_NONE;
    return (uint32_t)graph->links.len - 1;
}

void peal_graph_add_both(struct peal_graph *graph, const struct peal_graph_link *link)
{
    struct peal_graph_link back = *link;
    back.from = link->to;
    back.to = link->from;
    peal_graph_add_link(graph, link);
    peal_graph_add_link(graph, &back);
}

uint32_t peal_graph_remove_links(struct peal_graph *graph, uint32_t a, uint32_t b)
{
    size_t kept = 0, before = graph->links.len;
    assert(!graph->out && "links are removed before finish");
    for (size_t i = 0; i < before; i++) {
        const struct peal_graph_link *link = &graph->links.at[i];
        bool joins = (link->from == a && link->to == b) || (link->from == b && link->to == a);
        if (!joins)
            graph->links.at[kept++] = *link;
    }
    graph->links.len = kept;
    return (uint32_t)(before - kept);
}

void peal_graph_add_way(struct peal_graph *graph, const uint32_t *nodes, uint32_t count,
                        struct peal_pos pos)
{
    if (graph->status != PEAL_OK)
        return;
    if (count < 2 || graph->nodes.at[nodes[0]].kind != PEAL_NODE_PE ||
        graph->nodes.at[nodes[count - 1]].kind != PEAL_NODE_PE) {
        peal_graph_refuse(graph, pos, "a way leads from one PE to another");
        return;
    }
    if (graph->steps.len + count > PEAL_GRAPH_MAX_STEPS) {
        peal_graph_refuse(graph, pos, "the ways have more than %d steps", PEAL_GRAPH_MAX_STEPS);
        return;
    }
    struct peal_graph_way way = {nodes[0], nodes[count - 1], (uint32_t)graph->steps.len, count,
                                 pos};
    if (!peal_vec_reserve(&graph->steps, count) || !peal_vec_push(&graph->ways, way)) {
        fail(graph, PEAL_NO_MEMORY);
        return;
    }
    memcpy(graph->steps.at + graph->steps.len, nodes, count * sizeof *nodes);
    graph->steps.len += count;
}

/* Numbers PEs first. */
static bool renumber(struct peal_graph *graph)
{
    size_t count = graph->nodes.len;
    uint32_t *number = malloc((count + 1) * sizeof *number);
    struct peal_graph_node *sorted = malloc((count + 1) * sizeof *sorted);
    bool good = number && sorted;
    uint32_t next_pe = 0, next_other = graph->pes;
    for (size_t i = 0; good && i < count; i++) {
        bool is_pe = graph->nodes.at[i].kind == PEAL_NODE_PE;
        number[i] = is_pe ? next_pe++ : next_other++;
        sorted[number[i]] = graph->nodes.at[i];
    }
    for (size_t i = 0; good && i < graph->links.len; i++) {
        graph->links.at[i].from = number[graph->links.at[i].from];
        graph->links.at[i].to = number[graph->links.at[i].to];
    }
    for (size_t i = 0; good && i < graph->ways.len; i++) {
        graph->ways.at[i].from = number[graph->ways.at[i].from];
        graph->ways.at[i].to = number[graph->ways.at[i].to];
    }
    for (size_t i = 0; good && i < graph->steps.len; i++)
        graph->steps.at[i] = number[graph->steps.at[i]];
    if (good) {
        memcpy(graph->nodes.at, sorted, count * sizeof *sorted);
        peal_index_clear(&graph->by_name);
        for (uint32_t i = 0; i < count; i++)
            peal_index_put(&graph->by_name, find_slot(graph, graph->nodes.at[i].name), i);
    }
    free(number);
    free(sorted);
    return good;
}

/* Links by one of their ends: a counting sort, which keeps their order. */
static bool sort_links(const struct peal_graph *graph, bool by_source, uint32_t **out_links,
                       uint32_t **out_first)
{
    size_t nodes = graph->nodes.len, count = graph->links.len;
    uint32_t *first = calloc(nodes + 2, sizeof *first);
    uint32_t *links = malloc((count + 1) * sizeof *links);
    *out_links = links;
    *out_first = first;
    if (!first || !links)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct peal_graph_link *link = &graph->links.at[i];
        first[(by_source ? link->from : link->to) + 2]++;
    }
    for (size_t n = 2; n < nodes + 2; n++)
        first[n] += first[n - 1];
    for (uint32_t i = 0; i < count; i++) {
        const struct peal_graph_link *link = &graph->links.at[i];
        links[first[(by_source ? link->from : link->to) + 1]++] = i;
    }
    return true;
}

/* Who is reached from a node. What ends paths is reached, and nothing beyond it. */
struct reach {
    const struct peal_graph *graph;
    uint32_t *list;
    bool *seen;
};

/* The first PE that `from` does not reach along links (or that does not reach it), or
 * PEAL_GRAPH_NONE. */
static uint32_t find_missing(const struct reach *r, uint32_t from, bool forward)
{
    const struct peal_graph *graph = r->graph;
    const uint32_t *links = forward ? graph->out : graph->in;
    const uint32_t *first = forward ? graph->first_out : graph->first_in;
    uint32_t count = 0;
    memset(r->seen, 0, graph->nodes.len * sizeof *r->seen);
    r->seen[from] = true;
    r->list[count++] = from;
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && graph->nodes.at[r->list[i]].ends)
            continue;
        for (uint32_t l = first[r->list[i]]; l < first[r->list[i] + 1]; l++) {
            const struct peal_graph_link *link = &graph->links.at[links[l]];
            uint32_t next = forward ? link->to : link->from;
            if (!r->seen[next])
                r->list[count++] = next;
            r->seen[next] = true;
        }
    }
    for (uint32_t pe = 0; pe < graph->pes; pe++) {
        if (!r->seen[pe])
            return pe;
    }
    return PEAL_GRAPH_NONE;
}

static void refuse_way(struct peal_graph *graph, uint32_t from, uint32_t to)
{
    uint32_t at = graph->nodes.at[to].pos.line ? to : from;
    peal_graph_refuse(graph, graph->nodes.at[at].pos, "no way leads from '%s' to '%s'",
                      graph->nodes.at[from].name, graph->nodes.at[to].name);
}

/* A node that forwards: PE 0, or what its first such link leads to. */
static uint32_t find_middle(const struct peal_graph *graph)
{
    if (!graph->nodes.at[0].ends)
        return 0;
    for (uint32_t l = graph->first_out[0]; l < graph->first_out[1]; l++) {
        uint32_t to = graph->links.at[graph->out[l]].to;
        if (!graph->nodes.at[to].ends)
            return to;
    }
    return PEAL_GRAPH_NONE;
}

/* If a node in the middle reaches every PE and is reached by every PE, so does every PE. Otherwise
 * each is tried. */
static void check_reach(struct peal_graph *graph, const struct reach *r)
{
    uint32_t middle = find_middle(graph), to = PEAL_GRAPH_NONE;
    if (middle != PEAL_GRAPH_NONE && find_missing(r, middle, true) == PEAL_GRAPH_NONE &&
        find_missing(r, middle, false) == PEAL_GRAPH_NONE)
        return;
    if ((uint64_t)graph->pes * (graph->nodes.len + graph->links.len) > MAX_REACH_WORK)
        peal_graph_refuse(graph, (struct peal_pos){0},
                          "some PEs may not reach others: too many nodes to try all of them");
    for (uint32_t pe = 0; pe < graph->pes && graph->status == PEAL_OK; pe++) {
        to = find_missing(r, pe, true);
        if (to != PEAL_GRAPH_NONE)
            refuse_way(graph, pe, to);
    }
}

static int compare_ways(const void *a, const void *b)
{
    const struct peal_graph_way *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* The first link from one node to another, or PEAL_GRAPH_NONE. */
static uint32_t find_link(const struct peal_graph *graph, uint32_t from, uint32_t to)
{
    for (uint32_t l = graph->first_out[from]; l < graph->first_out[from + 1]; l++) {
        if (graph->links.at[graph->out[l]].to == to)
            return graph->out[l];
    }
    return PEAL_GRAPH_NONE;
}

/* Nodes become links. `seen` has the number of the last way that came to a node, from 1. */
static void resolve_way(struct peal_graph *graph, size_t number, uint32_t *seen)
{
    struct peal_graph_way *way = &graph->ways.at[number];
    uint32_t *steps = graph->steps.at + way->first;
    for (uint32_t i = 0; i < way->count && graph->status == PEAL_OK; i++) {
        uint32_t node = steps[i];
        const char *name = graph->nodes.at[node].name;
        if (seen[node] == number + 1)
            peal_graph_refuse(graph, way->pos, "the way comes to '%s' twice", name);
        seen[node] = (uint32_t)number + 1;
        if (i > 0 && i + 1 < way->count && graph->nodes.at[node].ends)
            peal_graph_refuse(graph, way->pos, "nothing passes through '%s'", name);
        if (i + 1 == way->count)
            break;
        steps[i] = find_link(graph, node, steps[i + 1]);
        if (steps[i] == PEAL_GRAPH_NONE)
            peal_graph_refuse(graph, way->pos, "no link leads from '%s' to '%s'", name,
                              graph->nodes.at[steps[i + 1]].name);
    }
    way->count--;
}

static void resolve_ways(struct peal_graph *graph)
{
    uint32_t *seen = calloc(graph->nodes.len, sizeof *seen);
    if (!seen) {
        fail(graph, PEAL_NO_MEMORY);
        return;
    }
    for (size_t i = 0; i < graph->ways.len; i++)
        resolve_way(graph, i, seen);
    free(seen);
    if (graph->ways.len)
        qsort(graph->ways.at, graph->ways.len, sizeof *graph->ways.at, compare_ways);
    for (size_t i = 1; i < graph->ways.len; i++) {
        const struct peal_graph_way *way = &graph->ways.at[i];
        if (compare_ways(way - 1, way) == 0)
            peal_graph_refuse(graph, way->pos, "there are two ways from '%s' to '%s'",
                              graph->nodes.at[way->from].name, graph->nodes.at[way->to].name);
    }
}

static void number_links(struct peal_graph *graph)
{
    uint32_t any = 0;
    for (size_t i = 0; i < graph->links.len; i++)
        any |= graph->links.at[i].order;
    for (uint32_t i = 0; i < graph->links.len && !any; i++)
        graph->links.at[i].order = i;
}

enum peal_status peal_graph_finish(struct peal_graph *graph)
{
    struct reach reach = {.graph = graph};
    assert(!graph->out && "finished once");
    if (graph->status == PEAL_OK && graph->pes == 0)
        peal_graph_refuse(graph, (struct peal_pos){0}, "the machine has no PE");
    if (graph->status != PEAL_OK)
        goto end;
    reach.list = malloc(graph->nodes.len * sizeof *reach.list);
    reach.seen = malloc(graph->nodes.len * sizeof *reach.seen);
    if (!reach.list || !reach.seen || !renumber(graph) ||
        !sort_links(graph, true, &graph->out, &graph->first_out) ||
        !sort_links(graph, false, &graph->in, &graph->first_in))
        fail(graph, PEAL_NO_MEMORY);
    else
        check_reach(graph, &reach);
    if (graph->status == PEAL_OK) {
        number_links(graph);
        resolve_ways(graph);
    }
    free(reach.list);
    free(reach.seen);
end:
    graph->diags = NULL;
    return graph->status;
}

uint32_t peal_graph_group_at(const struct peal_graph *graph, uint32_t node, uint32_t level)
{
    uint32_t group = graph->nodes.at[node].group;
    while (group != PEAL_GRAPH_NONE && graph->groups.at[group].level > level)
        group = graph->groups.at[group].parent;
    if (group == PEAL_GRAPH_NONE || graph->groups.at[group].level != level)
        return PEAL_GRAPH_NONE;
    return group;
}
