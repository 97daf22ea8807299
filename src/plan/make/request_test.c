/* SPDX-License-Identifier: Apache-2.0 */
/* The binder: what is given, what the count binds, what is invented, and what is refused. */
#include "plan/make/request.h"

#include "lang/lang.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kernel_text[] =
    "kernel k(in x: T[rows, cols], out y: T[rows, cols], counts: int[nranks], shift: int,\n"
    "         local own: int, root: int) {\n"
    "    y = x\n"
    "}\n";

static struct peal_program *program;
static const struct peal_kernel *kernel;

static int load(void **state)
{
    (void)state;
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status =
        peal_program_text("k.peal", kernel_text, sizeof kernel_text - 1, &diags, &program);
    kernel = status == PEAL_OK ? peal_program_kernel(program, NULL, &diags) : NULL;
    if (!kernel) {
        struct peal_text text = {0};
        peal_diags_print(&diags, false, &text);
        fprintf(stderr, "%s\n", peal_text_get(&text));
        peal_text_release(&text);
    }
    peal_diags_release(&diags);
    return kernel ? 0 : 1;
}

static int unload(void **state)
{
    (void)state;
    peal_program_close(program);
    return 0;
}

static const struct peal_bind_value *find(const struct peal_bind *bind, const char *name)
{
    for (size_t i = 0; i < bind->nvalues; i++) {
        if (strcmp(bind->values[i].name, name) == 0)
            return &bind->values[i];
    }
    return NULL;
}

static const int64_t seven[] = {7}, of_three[] = {4, 5, 6};

TEST(test_given_values_win_and_the_count_binds_the_rest)
{
    const struct peal_bind_value given[] = {{"cols", seven, 1, true}, {"own", seven, 1, true}};
    struct peal_plan_request request = {.kernel = kernel, .given = given, .ngiven = 2, .count = 9};
    struct peal_arena arena;
    struct peal_diags diags;
    struct peal_bind bind;
    peal_arena_init(&arena, 0);
    peal_diags_init(&diags);
    request.bind.nranks = 3;
    assert_int_equal(peal_request_bind(&request, &arena, &diags, &bind), PEAL_OK);
    assert_int_equal(find(&bind, "cols")->values[0], 7);
    assert_int_equal(find(&bind, "rows")->values[0], 9);
    assert_null(find(&bind, "counts")); /* not given, and nothing is invented */
    assert_null(find(&bind, "shift"));
    for (int i = 0; i < 3; i++)
        assert_int_equal(find(&bind, "own")->values[i], 7); /* those of one rank serve all */
    peal_arena_release(&arena);
    peal_diags_release(&diags);
}

TEST(test_local_values_may_be_every_ranks)
{
    const struct peal_bind_value given[] = {{"own", of_three, 3, true}};
    struct peal_plan_request request = {.kernel = kernel, .given = given, .ngiven = 1};
    struct peal_arena arena;
    struct peal_diags diags;
    struct peal_bind bind;
    peal_arena_init(&arena, 0);
    peal_diags_init(&diags);
    request.bind.nranks = 3;
    assert_int_equal(peal_request_bind(&request, &arena, &diags, &bind), PEAL_OK);
    assert_int_equal(find(&bind, "own")->count, 1);
    assert_memory_equal(find(&bind, "own")->values, of_three, sizeof of_three);
    peal_arena_release(&arena);
    peal_diags_release(&diags);
}

TEST(test_counts_that_are_made_up_fill_the_count)
{
    for (uint32_t nranks = 1; nranks <= 9; nranks++) {
        for (int64_t count = 0; count < 40; count++) {
            struct peal_plan_request request = {.kernel = kernel, .count = count, .invent = true};
            struct peal_arena arena;
            struct peal_diags diags;
            struct peal_bind bind;
            int64_t sum = 0;
            peal_arena_init(&arena, 0);
            peal_diags_init(&diags);
            request.bind.nranks = nranks;
            assert_int_equal(peal_request_bind(&request, &arena, &diags, &bind), PEAL_OK);
            const struct peal_bind_value *counts = find(&bind, "counts");
            assert_int_equal(counts->count, nranks);
            for (uint32_t r = 0; r < nranks; r++) {
                assert_true(counts->values[r] >= 0);
                sum += counts->values[r];
            }
            assert_int_equal(sum, count);
            peal_arena_release(&arena);
            peal_diags_release(&diags);
        }
    }
}

TEST(test_unknown_names_are_refused)
{
    static const struct {
        int line;
        const char *name, *message;
    } rows[] = {
        {__LINE__, "shft", "kernel 'k' has no parameter 'shft'; did you mean 'shift'?"},
        {__LINE__, "x", "kernel 'k' has no parameter 'x'; it has: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct peal_bind_value given[] = {{rows[i].name, seven, 1, true}};
        struct peal_plan_request request = {.kernel = kernel, .given = given, .ngiven = 1};
        struct peal_diags diags;
        struct peal_plan *plan = NULL;
        peal_diags_init(&diags);
        request.bind.nranks = 2;
        request.bind.rank = PEAL_NONE;
        assert_int_equal(peal_plan_make(&request, &diags, &plan), PEAL_INVALID);
        assert_null(plan);
        assert_int_equal(diags.list.len, 1);
        const char *message = diags.list.at[0].message;
        if (strncmp(message, rows[i].message, strlen(rows[i].message)) != 0)
            fail_msg("line %d: %s", rows[i].line, message);
        peal_diags_release(&diags);
    }
}

int main(void)
{
    return unit_run_with(load, unload);
}
