/* SPDX-License-Identifier: Apache-2.0 */
/* Generators and routes: how long ways are, what links they share, and what is refused. */
#include "base/tests/unit.h"
#include "topology/graph/make.h"
#include "topology/graph/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct peal_graph_link LINK = {.rate = {20, 1}, .lat = 7, .lanes = 1};

static struct peal_graph *make(const struct peal_make_level *levels, uint32_t count)
{
    struct peal_graph *graph = peal_graph_new(NULL);
    peal_make_levels(graph, levels, count);
    assert_int_equal(peal_graph_finish(graph), PEAL_OK);
    return graph;
}

static uint32_t distance(struct peal_routes *routes, uint32_t from, uint32_t to)
{
    struct peal_route_cost cost;
    assert_true(peal_routes_cost(routes, from, to, &cost));
    return cost.links;
}

static uint32_t around(uint32_t a, uint32_t b, uint32_t n)
{
    uint32_t up = (b + n - a) % n;
    return up < n - up ? up : n - up;
}

TEST(goes_the_shorter_way_round_a_torus)
{
    const struct peal_make_level level = {.kind = PEAL_MAKE_TORUS,
                                          .name = "pe",
                                          .count = 60,
                                          .dims = {3, 4, 5},
                                          .ndims = 3,
                                          .link = LINK};
    struct peal_graph *graph = make(&level, 1);
    for (uint32_t rule = 0; rule <= PEAL_ROUTE_DIMENSION; rule++) {
        graph->rule = rule;
        struct peal_routes *routes = peal_routes_new(graph);
        for (uint32_t a = 0; a < 60; a++)
            for (uint32_t b = 0; b < 60; b++)
                assert_int_equal(distance(routes, a, b), around(a % 3, b % 3, 3) +
                                                             around(a / 3 % 4, b / 3 % 4, 4) +
                                                             around(a / 12, b / 12, 5));
        peal_routes_free(routes);
    }
    peal_graph_free(graph);
}

/* Every rank sends to the one `shift` further: how many ways share the link that most of them do. */
static uint32_t most_shared(const struct peal_graph *graph, uint32_t shift)
{
    struct peal_routes *routes = peal_routes_new(graph);
    uint32_t *uses = calloc(graph->links.len, sizeof *uses), most = 0;
    for (uint32_t from = 0; from < graph->pes; from++) {
        uint32_t to = (from + shift) % graph->pes;
        for (uint32_t at = from; at != to;) {
            uint32_t link = peal_routes_next(routes, from, at, to);
            at = graph->links.at[link].to;
            most = ++uses[link] > most ? uses[link] : most;
        }
    }
    free(uses);
    peal_routes_free(routes);
    return most;
}

TEST(uses_each_link_of_a_fat_tree_once)
{
    static const struct {
        int line;
        uint32_t hosts, arity, taper, nodes, shared;
    } rows[] = {
        {__LINE__, 4, 8, 1, 5, 1},
        {__LINE__, 64, 8, 1, 64 + 8 + 8, 1},
        {__LINE__, 64, 4, 1, 64 + 3 * 16, 1},
        {__LINE__, 64, 8, 2, 64 + 8 + 4, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct peal_make_level level = {.kind = PEAL_MAKE_FAT_TREE,
                                              .name = "pe",
                                              .count = rows[i].hosts,
                                              .arity = rows[i].arity,
                                              .taper = rows[i].taper,
                                              .link = LINK};
        struct peal_graph *graph = make(&level, 1);
        uint32_t most = 0;
        assert_int_equal(peal_routes_check(graph, NULL), PEAL_OK);
        for (uint32_t shift = 1; shift < graph->pes; shift++) {
            uint32_t shared = most_shared(graph, shift);
            most = shared > most ? shared : most;
        }
        if (graph->nodes.len != rows[i].nodes || most != rows[i].shared)
            fail_msg("line %d: %zu nodes, a link is shared by %u", rows[i].line, graph->nodes.len,
                     most);
        peal_graph_free(graph);
    }
}

TEST(nests_levels_of_unequal_size)
{
    static const uint32_t sizes[] = {4, 2, 3};
    const struct peal_make_level levels[] = {
        {.kind = PEAL_MAKE_STAR,
         .name = "gpu",
         .count = 4,
         .sizes = sizes,
         .nsizes = 3,
         .link = LINK},
        {.kind = PEAL_MAKE_RAILS,
         .name = "node",
         .count = 3,
         .link = LINK,
         .has_nic = true,
         .nic_link = LINK},
    };
    struct peal_graph *graph = make(levels, 2);
    struct peal_routes *routes = peal_routes_new(graph);
    assert_int_equal(graph->pes, 9);
    /* 9 PEs, 9 NICs, a switch per node, 4 rails */
    assert_int_equal(graph->nodes.len, 9 + 9 + 3 + 4);
    assert_int_not_equal(peal_graph_find(graph, "node2.nic2"), PEAL_GRAPH_NONE);
    assert_int_equal(peal_graph_group_at(graph, 4, 0), 1);
    assert_int_equal(distance(routes, 0, 3), 2);
    assert_int_equal(distance(routes, 0, 4), 4); /* the same rail */
    assert_int_equal(distance(routes, 0, 5), 6);
    peal_routes_free(routes);
    peal_graph_free(graph);
}

TEST(joins_all_groups_of_a_dragonfly)
{
    const struct peal_make_level level = {.kind = PEAL_MAKE_DRAGONFLY,
                                          .name = "pe",
                                          .count = 2 * 4 * 9,
                                          .dims = {2, 4, 9},
                                          .ndims = 3,
                                          .link = LINK,
                                          .global_link = LINK};
    struct peal_graph *graph = make(&level, 1);
    struct peal_routes *routes = peal_routes_new(graph);
    uint32_t farthest = 0;
    /* ends, pairs in a group, pairs of groups; both ways */
    assert_int_equal(graph->links.len, 2 * (72 + 9 * 6 + 36));
    for (uint32_t a = 0; a < 72; a++)
        for (uint32_t b = 0; b < 72; b++)
            farthest = distance(routes, a, b) > farthest ? distance(routes, a, b) : farthest;
    assert_int_equal(farthest, 5);
    peal_routes_free(routes);
    peal_graph_free(graph);
}

static uint32_t pe(struct peal_graph *graph, const char *name)
{
    return peal_graph_add_node(
        graph,
        &(struct peal_graph_node){.name = name, .kind = PEAL_NODE_PE, .group = PEAL_GRAPH_NONE});
}

/* a - b - c - d - a, and a given way from a to b. */
static enum peal_status way(const char *path, char *said, uint32_t *links)
{
    struct peal_diags diags;
    peal_diags_init(&diags);
    struct peal_graph *graph = peal_graph_new(&diags);
    const char *const names[] = {"a", "b", "c", "d"};
    uint32_t nodes[8], count = 0;
    for (int i = 0; i < 4; i++)
        pe(graph, names[i]);
    for (uint32_t i = 0; i < 4; i++) {
        struct peal_graph_link link = LINK;
        link.from = i;
        link.to = (i + 1) % 4;
        peal_graph_add_both(graph, &link);
    }
    for (; path[count]; count++)
        nodes[count] = (uint32_t)(path[count] - 'a');
    peal_graph_add_way(graph, nodes, count, (struct peal_pos){0});
    enum peal_status status = peal_graph_finish(graph);
    snprintf(said, 100, "%s", diags.list.len ? diags.list.at[0].message : "");
    if (status == PEAL_OK) {
        struct peal_routes *routes = peal_routes_new(graph);
        *links = distance(routes, 0, 1);
        peal_routes_free(routes);
    }
    peal_graph_free(graph);
    peal_diags_release(&diags);
    return status;
}

TEST(takes_given_ways_and_refuses_those_that_loop)
{
    static const struct {
        int line;
        const char *path, *said;
        uint32_t links;
    } rows[] = {
        {__LINE__, "adcb", "", 3},
        {__LINE__, "adc", "", 1},
        {__LINE__, "adadcb", "the way comes to 'a' twice", 0},
        {__LINE__, "acb", "no link leads from 'a' to 'c'", 0},
        {__LINE__, "a", "a way leads from one PE to another", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char said[100];
        uint32_t links = 0;
        way(rows[i].path, said, &links);
        if (strcmp(said, rows[i].said) != 0 || links != rows[i].links)
            fail_msg("line %d: '%s', %u links", rows[i].line, said, links);
    }
}

int main(void)
{
    return unit_run();
}
