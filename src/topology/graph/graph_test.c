/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: numbering, indices, and every error of the builder. */
#include "base/tests/unit.h"
#include "topology/graph/graph.h"

#include <stdio.h>
#include <string.h>

static uint32_t node(struct peal_graph *g, const char *name, enum peal_node_kind kind)
{
    return peal_graph_add_node(
        g, &(struct peal_graph_node){.name = name, .kind = kind, .group = PEAL_GRAPH_NONE});
}

static void both(struct peal_graph *g, uint32_t a, uint32_t b, uint32_t lanes)
{
    peal_graph_add_both(g, &(struct peal_graph_link){
                               .from = a, .to = b, .rate = {20, 1}, .lat = 7, .lanes = lanes});
}

TEST(numbers_pes_first_and_indexes_links)
{
    struct peal_graph *g = peal_graph_new(NULL);
    uint32_t s = node(g, "switch", PEAL_NODE_SWITCH);
    uint32_t box = peal_graph_add_group(g, PEAL_GRAPH_NONE, "box", "box0");
    uint32_t half = peal_graph_add_group(g, box, "half", "half1");
    uint32_t a = node(g, "a", PEAL_NODE_PE);
    uint32_t b = peal_graph_add_node(
        g, &(struct peal_graph_node){.name = "b", .kind = PEAL_NODE_PE, .group = half});
    both(g, a, s, 4);
    both(g, s, b, 1);
    assert_int_equal(peal_graph_finish(g), PEAL_OK);
    assert_int_equal(g->pes, 2);
    assert_int_equal(peal_graph_find(g, "a"), 0);
    assert_int_equal(peal_graph_find(g, "b"), 1);
    assert_int_equal(peal_graph_find(g, "switch"), 2);
    assert_int_equal(peal_graph_find(g, "c"), PEAL_GRAPH_NONE);
    assert_int_equal(g->first_out[3] - g->first_out[2], 2);
    assert_int_equal(g->out[g->first_out[2]], 1);
    assert_int_equal(g->in[g->first_in[1]], 2);
    assert_int_equal(g->links.at[0].rate.num, 5); /* four lanes of 20 ps per byte */
    assert_int_equal(peal_graph_group_at(g, 1, 0), box);
    assert_int_equal(peal_graph_group_at(g, 1, 1), half);
    assert_int_equal(peal_graph_group_at(g, 0, 1), PEAL_GRAPH_NONE);
    assert_string_equal(g->level_names[1], "half");
    peal_graph_free(g);
}

static void no_pe(struct peal_graph *g)
{
    node(g, "s", PEAL_NODE_SWITCH);
}

static void two_of_a_name(struct peal_graph *g)
{
    node(g, "a", PEAL_NODE_PE);
    node(g, "a", PEAL_NODE_PE);
}

/* The first error counts. */
static void an_error_of_the_caller(struct peal_graph *g)
{
    peal_graph_refuse(g, (struct peal_pos){0}, "a %s is odd", peal_node_kind_name(PEAL_NODE_NIC));
    two_of_a_name(g);
}

static void no_lanes(struct peal_graph *g)
{
    both(g, node(g, "a", PEAL_NODE_PE), node(g, "b", PEAL_NODE_PE), 0);
}

static void a_link_to_itself(struct peal_graph *g)
{
    uint32_t a = node(g, "a", PEAL_NODE_PE);
    both(g, a, a, 1);
}

static void one_way_only(struct peal_graph *g)
{
    uint32_t a = node(g, "a", PEAL_NODE_PE), b = node(g, "b", PEAL_NODE_PE);
    peal_graph_add_link(g,
                        &(struct peal_graph_link){.from = a, .to = b, .rate = {1, 1}, .lanes = 1});
}

/* a - m - b, and nothing passes through m. */
static void through_what_ends(struct peal_graph *g)
{
    uint32_t m = peal_graph_add_node(
        g, &(struct peal_graph_node){
               .name = "m", .kind = PEAL_NODE_PE, .group = PEAL_GRAPH_NONE, .ends = true});
    both(g, node(g, "a", PEAL_NODE_PE), m, 1);
    both(g, m, node(g, "b", PEAL_NODE_PE), 1);
}

static void too_many_pes(struct peal_graph *g)
{
    char name[16];
    for (int i = 0; i <= PEAL_GRAPH_MAX_PES; i++) {
        snprintf(name, sizeof name, "pe%d", i);
        node(g, name, PEAL_NODE_PE);
    }
}

static void levels_both_ways(struct peal_graph *g)
{
    uint32_t a = peal_graph_add_group(g, PEAL_GRAPH_NONE, "a", "a0");
    peal_graph_add_group(g, peal_graph_add_group(g, a, "b", "b0"), "a", "a1");
}

TEST(refuses_bad_graphs)
{
    static const struct {
        int line;
        void (*build)(struct peal_graph *g);
        const char *message;
    } rows[] = {
        {__LINE__, no_pe, "the machine has no PE"},
        {__LINE__, two_of_a_name, "there are two nodes 'a'"},
        {__LINE__, an_error_of_the_caller, "a nic is odd"},
        {__LINE__, no_lanes, "a link has 1 to 65536 lanes, not 0"},
        {__LINE__, a_link_to_itself, "'a' has a link to itself"},
        {__LINE__, one_way_only, "no way leads from 'b' to 'a'"},
        {__LINE__, through_what_ends, "no way leads from 'a' to 'b'"},
        {__LINE__, too_many_pes, "more than 65536 PEs"},
        {__LINE__, levels_both_ways, "level 'a' is inside 'b', and around it"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_diags diags;
        peal_diags_init(&diags);
        struct peal_graph *g = peal_graph_new(&diags);
        rows[i].build(g);
        enum peal_status status = peal_graph_finish(g);
        if (status != PEAL_INVALID || diags.errors != 1 ||
            strcmp(diags.list.at[0].message, rows[i].message) != 0)
            fail_msg("line %d: status %d, %s", rows[i].line, (int)status,
                     diags.list.len ? diags.list.at[0].message : "no message");
        peal_graph_free(g);
        peal_diags_release(&diags);
    }
}

int main(void)
{
    return unit_run();
}
