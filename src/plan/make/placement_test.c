/* SPDX-License-Identifier: Apache-2.0 */
/* Placements: what is derived from nodes, which forms are accepted, and what expressions mean. */
#include "plan/make/placement.h"

#include "lang/lang.h"
#include "plan/plan.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(seats_follow_rank_order)
{
    static const uint32_t nodes[] = {1, 0, 1, 1, 0};
    static const uint32_t seats[] = {0, 0, 1, 2, 1}, ranks[] = {1, 4, 0, 2, 3};
    struct peal_node_map p;
    assert_int_equal(peal_placement_init(&p, 5, nodes, NULL), PEAL_OK);
    assert_int_equal(p.nodes, 2);
    assert_int_equal(p.max_seats, 3);
    assert_int_equal(peal_placement_seats(&p, 0), 2);
    assert_int_equal(peal_placement_seats(&p, 1), 3);
    assert_memory_equal(p.seat, seats, sizeof seats);
    assert_memory_equal(p.ranks, ranks, sizeof ranks);
    peal_placement_release(&p);
    assert_int_equal(peal_placement_init(&p, 3, NULL, NULL), PEAL_OK);
    assert_int_equal(p.nodes, 1);
    assert_int_equal(p.max_seats, 3);
    peal_placement_release(&p);
}

TEST(gaps_are_refused)
{
    static const uint32_t gap[] = {0, 2, 2}, large[] = {0, 7, 0};
    struct peal_node_map p;
    assert_int_equal(peal_placement_init(&p, 3, gap, NULL), PEAL_INVALID);
    assert_int_equal(peal_placement_init(&p, 3, large, NULL), PEAL_INVALID);
    static const uint32_t nodes[] = {0, 0, 1}, cubes[] = {0, 2, 0}, second[] = {0, 0, 1};
    assert_int_equal(peal_placement_init(&p, 3, nodes, cubes), PEAL_INVALID);
    assert_int_equal(peal_placement_init(&p, 3, nodes, second), PEAL_INVALID);
}

TEST(forms_are_read_and_shown)
{
    static const struct {
        int line;
        const char *text, *shown; /* NULL: refused */
        uint32_t nranks;
        const char *error;
    } rows[] = {
        {__LINE__, "5+3", "5+3", 8, NULL},
        {__LINE__, "2x4", "2x4", 8, NULL},
        {__LINE__, "4+4", "2x4", 8, NULL},
        {__LINE__, "6", "6", 6, NULL},
        {__LINE__, "1x6", "6", 6, NULL},
        {__LINE__, "0,1,1,0", "0,1,1,0", 4, NULL},
        {__LINE__, "0,0,1", "2+1", 3, NULL},
        {__LINE__, "65536x1", "65536x1", 65536, NULL},
        {__LINE__, "65536x2", NULL, 0, "more than 65536 ranks"},
        {__LINE__, "99999999999999999999", NULL, 0, "is not a placement"},
        {__LINE__, "", NULL, 0, "is not a placement"},
        {__LINE__, "5+", NULL, 0, "is not a placement"},
        {__LINE__, "+5", NULL, 0, "is not a placement"},
        {__LINE__, "5+0", NULL, 0, "has no ranks"},
        {__LINE__, "0x4", NULL, 0, "is not a placement"},
        {__LINE__, "4x0", NULL, 0, "has no ranks"},
        {__LINE__, "2x4x1", "2x4x1", 8, NULL},
        {__LINE__, "1x2x3", "1x2x3", 6, NULL},
        {__LINE__, "2x1x3", "2x3", 6, NULL},
        {__LINE__, "2x4x0", NULL, 0, "is not a placement"},
        {__LINE__, "2x4x1x1", NULL, 0, "is not a placement"},
        {__LINE__, "0,2", NULL, 0, "without gaps"},
        {__LINE__, "0,", NULL, 0, "is not a placement"},
        {__LINE__, "a", NULL, 0, "is not a placement"},
        {__LINE__, "-1+2", NULL, 0, "is not a placement"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_arena arena;
        struct peal_text text = {0}, error = {0};
        struct peal_places places = {0};
        peal_arena_init(&arena, 0);
        bool good = peal_placement_parse(rows[i].text, &arena, &places, &error);
        if (good)
            peal_placement_show(&places, &text);
        bool right = good == !rows[i].error;
        if (right && good)
            right =
                places.nranks == rows[i].nranks && strcmp(peal_text_get(&text), rows[i].shown) == 0;
        if (right && !good)
            right = strstr(peal_text_get(&error), rows[i].error) != NULL;
        if (!right)
            fail_msg("line %d: '%s': '%s' '%s'", rows[i].line, rows[i].text, peal_text_get(&text),
                     peal_text_get(&error));
        peal_text_release(&text);
        peal_text_release(&error);
        peal_arena_release(&arena);
    }
}

/* One element per rank shows the value of an expression there. */
static void check_expression(int line, const char *expression, const uint32_t *nodes,
                             const uint32_t *cubes, const double *want)
{
    enum { RANKS = 4 };
    char source[512];
    int len = snprintf(source, sizeof source, "kernel k(out y: f64[64]) { y = 0\n  y[%s] = 1 }\n",
                       expression);
    struct peal_diags diags;
    struct peal_program *program = NULL;
    struct peal_plan *plan = NULL;
    peal_diags_init(&diags);
    assert_int_equal(peal_program_text("k.peal", source, (size_t)len, &diags, &program), PEAL_OK);
    const struct peal_kernel *kernel = peal_program_kernel(program, NULL, &diags);
    struct peal_plan_request request = {.kernel = kernel,
                                        .bind = {.nranks = RANKS,
                                                 .rank = PEAL_NONE,
                                                 .dtype = PEAL_F64,
                                                 .nodes = nodes,
                                                 .cubes = cubes,
                                                 .no_fuse = true}};
    enum peal_status status = peal_plan_make(&request, &diags, &plan);
    for (uint32_t r = 0; r < RANKS && want; r++) {
        const struct peal_lane *lane = peal_plan_lane(plan, r, 0);
        const struct peal_op *op = peal_plan_ops(plan) + lane->first_op + lane->ops - 1;
        if (peal_op_dst(plan, op)->offset != 8 * (uint64_t)want[r])
            fail_msg("line %d: '%s' on rank %u is %llu", line, expression, r,
                     (unsigned long long)peal_op_dst(plan, op)->offset / 8);
    }
    if (!want && status != PEAL_INVALID)
        fail_msg("line %d: '%s' is not refused", line, expression);
    free(plan);
    peal_program_close(program);
    peal_diags_release(&diags);
}

TEST(expressions_mean_what_the_document_says)
{
    static const uint32_t nodes[] = {0, 1, 1, 1}, mixed[] = {0, 1, 1, 0}, gap[] = {0, 2, 2, 2};
    static const struct {
        int line;
        const char *expression;
        const uint32_t *nodes;
        double want[4];
        bool refused;
    } rows[] = {
        {__LINE__, "node", nodes, {0, 1, 1, 1}, false},
        {__LINE__, "seat", nodes, {0, 0, 1, 2}, false},
        {__LINE__, "seats", nodes, {1, 3, 3, 3}, false},
        {__LINE__, "nodes", nodes, {2, 2, 2, 2}, false},
        {__LINE__, "max_seats", nodes, {3, 3, 3, 3}, false},
        {__LINE__, "at(1, seat % 3)", nodes, {1, 1, 2, 3}, false},
        {__LINE__, "at(1, 1)", mixed, {2, 2, 2, 2}, false},
        {__LINE__, "at(0, 1)", mixed, {3, 3, 3, 3}, false},
        {__LINE__, "node_of(nranks - 1)", mixed, {0, 0, 0, 0}, false},
        {__LINE__, "seat_of((rank + 1) % nranks)", mixed, {0, 1, 1, 0}, false},
        {__LINE__, "seats_of(1 - node)", nodes, {3, 1, 1, 1}, false},
        {__LINE__, "at(node, seat)", mixed, {0, 1, 2, 3}, false},
        {__LINE__, "node * 8 + seat", NULL, {0, 1, 2, 3}, false},
        {__LINE__, "nodes * 8 + seats", NULL, {12, 12, 12, 12}, false},
        {__LINE__, "at(0, 1)", nodes, {0}, true},
        {__LINE__, "at(2, 0)", nodes, {0}, true},
        {__LINE__, "at(-1, 0)", nodes, {0}, true},
        {__LINE__, "node_of(nranks)", nodes, {0}, true},
        {__LINE__, "seat_of(-1)", nodes, {0}, true},
        {__LINE__, "seats_of(2)", nodes, {0}, true},
        {__LINE__, "0", gap, {0}, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_expression(rows[i].line, rows[i].expression, rows[i].nodes, NULL,
                         rows[i].refused ? NULL : rows[i].want);
}

TEST(program_ids_follow_the_levels)
{
    static const uint32_t one[] = {0, 0, 0, 0}, two[] = {0, 0, 1, 1}, cubes[] = {0, 1, 1, 0},
                          of_two[] = {0, 1, 1, 0}, gap[] = {0, 2, 0, 0};
    static const struct {
        int line;
        const char *expression;
        const uint32_t *nodes, *cubes;
        double want[4];
        bool refused;
    } rows[] = {
        {__LINE__, "program_id(0)", NULL, NULL, {0, 1, 2, 3}, false},
        {__LINE__, "program_id(1) + 4 * program_id(2)", NULL, NULL, {0, 0, 0, 0}, false},
        {__LINE__, "num_programs(0)", NULL, NULL, {4, 4, 4, 4}, false},
        {__LINE__, "program_id(0)", one, cubes, {0, 0, 1, 1}, false},
        {__LINE__, "program_id(1)", one, cubes, {0, 1, 1, 0}, false},
        {__LINE__, "program_id(2)", two, of_two, {0, 0, 1, 1}, false},
        {__LINE__, "program_id(0, 3 - rank)", one, cubes, {1, 1, 0, 0}, false},
        {__LINE__, "num_programs(0) + 8 * num_programs(1)", one, cubes, {18, 18, 18, 18}, false},
        {__LINE__, "num_programs(2)", two, of_two, {2, 2, 2, 2}, false},
        {__LINE__,
         "at(program_id(2), program_id(1), program_id(0))",
         two,
         of_two,
         {0, 1, 2, 3},
         false},
        {__LINE__, "at(0, 1, 1)", one, cubes, {2, 2, 2, 2}, false},
        {__LINE__, "at(1, 1, 0)", two, of_two, {2, 2, 2, 2}, false},
        {__LINE__, "at(0, 2, 0)", one, cubes, {0}, true},
        {__LINE__, "at(0, 9, 0)", one, cubes, {0}, true},
        {__LINE__, "at(0, 0, 2)", one, cubes, {0}, true},
        {__LINE__, "at(0, 0, -1)", one, cubes, {0}, true},
        {__LINE__, "program_id(3)", one, cubes, {0}, true},
        {__LINE__, "num_programs(-1)", one, cubes, {0}, true},
        {__LINE__, "program_id(0, 4)", one, cubes, {0}, true},
        {__LINE__, "0", one, gap, {0}, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_expression(rows[i].line, rows[i].expression, rows[i].nodes, rows[i].cubes,
                         rows[i].refused ? NULL : rows[i].want);
}

static struct peal_plan *plan_of(const struct peal_kernel *kernel, const uint32_t *nodes,
                                 uint32_t rank)
{
    struct peal_plan *plan = NULL;
    struct peal_diags diags;
    struct peal_plan_request request = {
        .kernel = kernel,
        .bind = {.nranks = 4, .rank = rank, .dtype = PEAL_F32, .nodes = nodes},
        .count = 8};
    peal_diags_init(&diags);
    assert_int_equal(peal_plan_make(&request, &diags, &plan), PEAL_OK);
    peal_diags_release(&diags);
    return plan;
}

TEST(a_plan_carries_its_placement)
{
    static const uint32_t one[] = {0, 0, 0, 0}, two[] = {0, 0, 1, 1};
    struct peal_diags diags;
    struct peal_program *program = NULL;
    peal_diags_init(&diags);
    assert_int_equal(peal_program_builtin("allreduce_ring", &diags, &program), PEAL_OK);
    const struct peal_kernel *kernel = peal_program_kernel(program, NULL, &diags);
    struct peal_plan *none = plan_of(kernel, NULL, PEAL_NONE),
                     *same = plan_of(kernel, one, PEAL_NONE),
                     *half = plan_of(kernel, two, PEAL_NONE), *part = plan_of(kernel, two, 3);
    assert_null(peal_plan_nodes(none));
    assert_int_equal(peal_plan_nodes(half)[3], 1);
    assert_int_equal(peal_plan_nodes(part)[3], 1);
    assert_true(none->hash != same->hash && same->hash != half->hash);
    const char *why = NULL;
    assert_true(peal_plan_check(half, half->block_len, &why));
    half->placement = 100;
    assert_false(peal_plan_check(half, half->block_len, &why));
    free(none);
    free(same);
    free(half);
    free(part);
    peal_program_close(program);
    peal_diags_release(&diags);
}

int main(void)
{
    return unit_run();
}
