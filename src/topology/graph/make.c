/* SPDX-License-Identifier: Apache-2.0 */
/* Generators, level by level: an instance of a level is made when the level above asks for a member,
 * so that PEs are numbered in the order of the groups that they are in.
 */
#include "topology/graph/make.h"

#include "topology/graph/route.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct make {
    struct peal_graph *graph;
    const struct peal_make_level *levels;
    uint32_t count;
    uint32_t members[PEAL_GRAPH_MAX_LEVELS];   /* made so far, for names */
    uint32_t instances[PEAL_GRAPH_MAX_LEVELS]; /* likewise, for sizes */
};

/* The ends of all members of one instance: those of member m are ends[first[m]] up to first[m + 1].
 * The instance's own switches are what the level above may join. */
struct made_part {
    const struct peal_make_level *level;
    uint32_t group; /* around it, or PEAL_GRAPH_NONE */
    uint32_t members;
    PEAL_VEC(uint32_t) ends;
    PEAL_VEC(uint32_t) first;
    PEAL_VEC(uint32_t) hubs;
};

typedef PEAL_VEC(uint32_t) node_list;

static void out_of_memory(struct make *m)
{
    if (m->graph->status == PEAL_OK)
        m->graph->status = PEAL_NO_MEMORY;
}

static void add_end(struct make *m, struct made_part *in, uint32_t node)
{
    if (!peal_vec_push(&in->ends, node))
        out_of_memory(m);
}

static void join(struct make *m, uint32_t from, uint32_t to, const struct peal_graph_link *like)
{
    struct peal_graph_link link = *like;
    if (m->graph->status != PEAL_OK)
        return;
    link.from = from;
    link.to = to;
    peal_graph_add_both(m->graph, &link);
}

/* A node of this instance: "node3.rail1", or "rail1" where nothing is around it. */
static uint32_t add_node(struct make *m, const struct made_part *in,
                         const struct peal_graph_node *like, enum peal_node_kind kind,
                         const char *what)
{
    char name[2 * PEAL_GRAPH_MAX_NAME];
    const char *around = in->group == PEAL_GRAPH_NONE || m->graph->status != PEAL_OK
                             ? ""
                             : m->graph->groups.at[in->group].name;
    snprintf(name, sizeof name, "%s%s%s", around, *around ? "." : "", what);
    struct peal_graph_node node = *like;
    node.name = name;
    node.kind = kind;
    node.group = in->group;
    node.pos = in->level->pos;
    return peal_graph_add_node(m->graph, &node);
}

static uint32_t add_hub(struct make *m, struct made_part *in, const char *word, uint32_t number)
{
    char name[64];
    const char *own = in->level->hub.name;
    snprintf(name, sizeof name, "%s%u", own ? own : word, number);
    if (number == UINT32_MAX)
        snprintf(name, sizeof name, "%s", own ? own : word);
    uint32_t node = add_node(m, in, &in->level->hub, PEAL_NODE_SWITCH, name);
    if (!peal_vec_push(&in->hubs, node))
        out_of_memory(m);
    return node;
}

/* End i of one member to end i of the other. */
static void join_members(struct make *m, const struct made_part *in, uint32_t a, uint32_t b)
{
    uint32_t na = in->first.at[a + 1] - in->first.at[a], nb = in->first.at[b + 1] - in->first.at[b];
    for (uint32_t i = 0; i < na && i < nb && m->graph->status == PEAL_OK; i++)
        join(m, in->ends.at[in->first.at[a] + i], in->ends.at[in->first.at[b] + i],
             &in->level->link);
}

static void make_grid(struct make *m, const struct made_part *in)
{
    const struct peal_make_level *level = in->level;
    for (uint32_t a = 0; a < in->members && m->graph->status == PEAL_OK; a++) {
        uint32_t stride = 1;
        for (uint32_t d = 0; d < level->ndims; stride *= level->dims[d++]) {
            uint32_t n = level->dims[d], at = a / stride % n;
            if (at + 1 < n)
                join_members(m, in, a, a + stride);
            else if (n > 2 && level->kind == PEAL_MAKE_TORUS)
                join_members(m, in, a, a - at * stride);
        }
    }
}

static void make_pairs(struct make *m, const struct made_part *in)
{
    for (uint32_t a = 0; a < in->members && m->graph->status == PEAL_OK; a++) {
        if (in->level->kind == PEAL_MAKE_RING && in->members > 1 && (a > 0 || in->members > 2))
            join_members(m, in, a, (a + 1) % in->members);
        else if (in->level->kind == PEAL_MAKE_RING && in->members > 1)
            join_members(m, in, a, a + 1);
        for (uint32_t b = a + 1; in->level->kind == PEAL_MAKE_FULL && b < in->members; b++)
            join_members(m, in, a, b);
    }
}

static void make_star(struct make *m, struct made_part *in)
{
    uint32_t hub = add_hub(m, in, "switch", UINT32_MAX);
    for (size_t i = 0; i < in->ends.len; i++)
        join(m, in->ends.at[i], hub, &in->level->link);
}

static void make_rails(struct make *m, struct made_part *in)
{
    uint32_t rails = 0;
    for (uint32_t a = 0; a < in->members; a++)
        rails = (uint32_t)peal_size_max(rails, in->first.at[a + 1] - in->first.at[a]);
    for (uint32_t i = 0; i < rails && m->graph->status == PEAL_OK; i++) {
        uint32_t hub = add_hub(m, in, "rail", i);
        for (uint32_t a = 0; a < in->members; a++) {
            if (in->first.at[a] + i < in->first.at[a + 1])
                join(m, in->ends.at[in->first.at[a] + i], hub, &in->level->link);
        }
    }
}

/* A tree of switches with `arity` links down. A switch of level l is known by the block of ends that
 * it is above, and by which of the switches above that block it is: `wide` of them. Each has a link
 * to `ups` switches of the next level. */
static void make_fat_tree(struct make *m, struct made_part *in)
{
    const struct peal_make_level *level = in->level;
    uint32_t below = (uint32_t)in->ends.len, wide = 1, arity = level->arity;
    uint32_t ups = (uint32_t)peal_size_max(arity / level->taper, 1);
    node_list last = {0};
    for (uint32_t number = 1; number == 1 || below > 1; number++) {
        uint32_t children = below < arity ? below : arity;
        uint32_t next_wide = number == 1 ? 1 : wide * ups;
        uint64_t blocks = below / children;
        size_t first = in->hubs.len;
        char word[16] = "leaf";
        if (below % children || blocks * next_wide > PEAL_GRAPH_MAX_NODES) {
            peal_graph_refuse(m->graph, level->pos,
                              "%zu ends and an arity of %u do not make a fat tree", in->ends.len,
                              arity);
            break;
        }
        if (number > 1)
            snprintf(word, sizeof word, number == 2 ? "spine" : "level%u.", number);
        for (uint32_t i = 0; i < blocks * next_wide && m->graph->status == PEAL_OK; i++)
            add_hub(m, in, word, i);
        if (m->graph->status != PEAL_OK)
            break;
        const uint32_t *hubs = in->hubs.at + first;
        for (uint32_t i = 0; number == 1 && i < below; i++)
            join(m, in->ends.at[i], hubs[i / children], &level->link);
        for (uint32_t i = 0; number > 1 && i < last.len; i++) {
            uint32_t block = i / wide / children, which = i % wide;
            for (uint32_t up = 0; up < ups; up++)
                join(m, last.at[i], hubs[block * next_wide + up * wide + which], &level->link);
        }
        last.len = 0;
        for (size_t i = first; i < in->hubs.len; i++)
            if (!peal_vec_push(&last, in->hubs.at[i]))
                out_of_memory(m);
        wide = next_wide;
        below = (uint32_t)blocks;
        if (m->graph->status != PEAL_OK)
            break;
    }
    peal_vec_release(&last);
}

static void make_dragonfly(struct make *m, struct made_part *in)
{
    const struct peal_make_level *level = in->level;
    uint32_t ends = level->dims[0], routers = level->dims[1], groups = level->dims[2];
    uint32_t each = groups > 1 ? (groups - 2) / routers + 1 : 1; /* global links of a router */
    if (in->ends.len != (uint64_t)ends * routers * groups) {
        peal_graph_refuse(m->graph, level->pos, "a dragonfly of %u x %u x %u has not %zu ends",
                          ends, routers, groups, in->ends.len);
        return;
    }
    for (uint32_t i = 0; i < routers * groups && m->graph->status == PEAL_OK; i++)
        add_hub(m, in, "router", i);
    if (m->graph->status != PEAL_OK)
        return;
    const uint32_t *hubs = in->hubs.at;
    for (uint32_t i = 0; i < in->ends.len; i++)
        join(m, in->ends.at[i], hubs[i / ends], &level->link);
    for (uint32_t i = 0; i < routers * groups; i++)
        for (uint32_t j = i + 1; j % routers != 0; j++)
            join(m, hubs[i], hubs[j], &level->link);
    for (uint32_t a = 0; a < groups; a++)
        for (uint32_t b = a + 1; b < groups; b++)
            /* A group's links to the others go round its routers, `each` per router. */
            join(m, hubs[a * routers + (b - a - 1) / each],
                 hubs[b * routers + (groups - 1 - (b - a)) / each], &level->global_link);
}

static void make_links(struct make *m, struct made_part *in)
{
    switch (in->level->kind) {
    case PEAL_MAKE_MESH:
    case PEAL_MAKE_TORUS:
        make_grid(m, in);
        break;
    case PEAL_MAKE_FULL:
    case PEAL_MAKE_RING:
        make_pairs(m, in);
        break;
    case PEAL_MAKE_STAR:
        make_star(m, in);
        break;
    case PEAL_MAKE_RAILS:
        make_rails(m, in);
        break;
    case PEAL_MAKE_FAT_TREE:
        make_fat_tree(m, in);
        break;
    case PEAL_MAKE_DRAGONFLY:
        make_dragonfly(m, in);
        break;
    }
}

/* The ends of a group, as the level around it joins them. */
static void take_ends(struct make *m, const struct peal_make_level *around,
                      const struct made_part *group, struct made_part *in)
{
    size_t count = around->via == PEAL_MAKE_VIA_SWITCH ? group->hubs.len : group->ends.len;
    if (around->via == PEAL_MAKE_VIA_SWITCH && count == 0)
        peal_graph_refuse(m->graph, around->pos, "the groups that are joined have no switch");
    if (around->via == PEAL_MAKE_VIA_FIRST)
        count = 1;
    for (size_t i = 0; i < count && m->graph->status == PEAL_OK; i++)
        add_end(m, in, around->via == PEAL_MAKE_VIA_SWITCH ? group->hubs.at[i] : group->ends.at[i]);
}

/* Puts a NIC before each end of a member, which begins at `first`. */
static void add_nics(struct make *m, struct made_part *in, uint32_t first, uint32_t group)
{
    struct made_part around = {.level = in->level, .group = group};
    for (size_t i = first; i < in->ends.len && m->graph->status == PEAL_OK; i++) {
        char name[PEAL_GRAPH_MAX_NAME + 8];
        snprintf(name, sizeof name, "nic%zu", i - first);
        if (group == in->group)
            snprintf(name, sizeof name, "%s.nic", m->graph->nodes.at[in->ends.at[i]].name);
        uint32_t nic = add_node(m, &around, &in->level->nic, PEAL_NODE_NIC, name);
        join(m, in->ends.at[i], nic, &in->level->nic_link);
        in->ends.at[i] = nic;
    }
}

static void release(struct made_part *in)
{
    peal_vec_release(&in->ends);
    peal_vec_release(&in->first);
    peal_vec_release(&in->hubs);
}

static void make_instance(struct make *m, uint32_t number, struct made_part *in);

static void make_member(struct make *m, uint32_t number, struct made_part *in)
{
    const struct peal_make_level *level = in->level;
    uint32_t first = (uint32_t)in->ends.len, group = in->group;
    char name[PEAL_GRAPH_MAX_NAME + 16];
    snprintf(name, sizeof name, "%s%u", level->name, m->members[number]++);
    if (number == 0) {
        add_end(m, in,
                peal_graph_add_node(m->graph, &(struct peal_graph_node){.name = name,
                                                                        .kind = PEAL_NODE_PE,
                                                                        .group = in->group,
                                                                        .pos = level->pos}));
    } else {
        struct made_part below = {.level = &m->levels[number - 1]};
        group = below.group = peal_graph_add_group(m->graph, in->group, level->name, name);
        make_instance(m, number - 1, &below);
        if (m->graph->status == PEAL_OK)
            take_ends(m, level, &below, in);
        release(&below);
    }
    if (level->has_nic && m->graph->status == PEAL_OK)
        add_nics(m, in, first, group);
}

static void make_instance(struct make *m, uint32_t number, struct made_part *in)
{
    const struct peal_make_level *level = in->level;
    uint32_t instance = m->instances[number]++;
    in->members = level->count;
    if (level->nsizes && instance >= level->nsizes) {
        peal_graph_refuse(m->graph, level->pos, "%u sizes, but there are more groups",
                          level->nsizes);
        return;
    }
    if (level->nsizes)
        in->members = level->sizes[instance];
    for (uint32_t i = 0; i < in->members && m->graph->status == PEAL_OK; i++) {
        if (!peal_vec_push(&in->first, (uint32_t)in->ends.len))
            out_of_memory(m);
        make_member(m, number, in);
    }
    if (!peal_vec_push(&in->first, (uint32_t)in->ends.len))
        out_of_memory(m);
    if (m->graph->status == PEAL_OK)
        make_links(m, in);
}

void peal_make_levels(struct peal_graph *graph, const struct peal_make_level *levels,
                      uint32_t count)
{
    struct make m = {.graph = graph, .levels = levels, .count = count};
    struct made_part top = {.level = &levels[count - 1], .group = PEAL_GRAPH_NONE};
    assert(count > 0 && count <= PEAL_GRAPH_MAX_LEVELS);
    graph->rule = PEAL_ROUTE_SHORTEST;
    bool is_grid = levels[0].kind == PEAL_MAKE_MESH || levels[0].kind == PEAL_MAKE_TORUS;
    for (uint32_t i = 0; i < count; i++) {
        if (levels[i].kind == PEAL_MAKE_FAT_TREE)
            graph->rule = PEAL_ROUTE_UP_DOWN;
    }
    make_instance(&m, count - 1, &top);
    for (uint32_t i = 0; i < count; i++) {
        if (graph->status == PEAL_OK && levels[i].nsizes > m.instances[i])
            peal_graph_refuse(graph, levels[i].pos, "%u sizes, but only %u groups",
                              levels[i].nsizes, m.instances[i]);
    }
    if (is_grid && count == 1 && !levels[0].has_nic) {
        graph->rule = PEAL_ROUTE_DIMENSION;
        graph->grid = (struct peal_grid){.dims = levels[0].ndims, .blocks = 1};
        for (uint32_t d = 0; d < levels[0].ndims; d++)
            graph->grid.dim[d] =
                (struct peal_grid_dim){.outer = 1,
                                       .inner = levels[0].dims[d],
                                       .wrap_inner = levels[0].kind == PEAL_MAKE_TORUS};
    }
    release(&top);
}
