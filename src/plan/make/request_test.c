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
    const struct peal_bind_value given[] = {{"cols", seven, 1, true}, {"own", seven, 1, false}};
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
    const struct peal_bind_value given[] = {{"own", of_three, 3, false}};
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

/* A kernel of its own text. */
struct own_text {
    struct peal_program *program;
    const struct peal_kernel *kernel;
    struct peal_diags diags;
    struct peal_arena arena;
    struct peal_text why;
};

static void open_text(struct own_text *t, const char *text)
{
    *t = (struct own_text){0};
    peal_diags_init(&t->diags);
    peal_arena_init(&t->arena, 0);
    assert_int_equal(peal_program_text("text", text, strlen(text), &t->diags, &t->program),
                     PEAL_OK);
    t->kernel = peal_program_kernel(t->program, NULL, &t->diags);
    assert_non_null(t->kernel);
}

static void close_text(struct own_text *t)
{
    peal_program_close(t->program);
    peal_diags_release(&t->diags);
    peal_arena_release(&t->arena);
    peal_text_release(&t->why);
}

TEST(test_dimensions_follow_from_lengths)
{
    static const struct {
        int line;
        const char *shape;
        uint64_t elements, columns;
        int64_t rows, cols; /* -1: it does not follow */
    } rows[] = {
        {__LINE__, "cols", 12, 0, -1, 12},
        {__LINE__, "rows, cols", 12, 0, 3, 4},
        {__LINE__, "rows, cols", 12, 6, 2, 6},
        {__LINE__, "nranks, cols", 12, 0, -1, 4},
        {__LINE__, "rows, 6", 12, 0, 2, -1},
        {__LINE__, "cols + rows", 12, 0, -1, -1},
        {__LINE__, "cols", PEAL_ANY_LENGTH, 0, -1, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct own_text t;
        char text[256];
        snprintf(text, sizeof text, "kernel k(in x: T[%s], out y: T[cols, rows]) { y[0, 0] = 1 }",
                 rows[i].shape);
        open_text(&t, text);
        struct peal_plan_request request = {.kernel = t.kernel, .bind = {.nranks = 3}, .count = -1};
        struct peal_plan_arg args[2] = {
            {.kind = PEAL_GIVES_BUFFER, .elements = rows[i].elements, .columns = rows[i].columns},
            {.kind = PEAL_GIVES_NOTHING}};
        assert_int_equal(peal_request_take(&request, args, 2, &t.arena, &t.why), PEAL_OK);
        struct peal_bind bind;
        assert_int_equal(peal_request_bind(&request, &t.arena, &t.diags, &bind), PEAL_OK);
        const struct peal_bind_value *row = find(&bind, "rows"), *col = find(&bind, "cols");
        if ((row ? row->values[0] : -1) != rows[i].rows ||
            (col ? col->values[0] : -1) != rows[i].cols)
            fail_msg("line %d", rows[i].line);
        close_text(&t);
    }
}

TEST(test_arguments_of_another_kind_are_refused)
{
    struct own_text t;
    open_text(&t, "kernel k(in x: T[n], out y: T[n], a: int, b: int = 2) { y = x + a + b }");
    struct peal_plan_arg args[4] = {{.kind = PEAL_GIVES_BUFFER, .elements = 8},
                                    {.kind = PEAL_GIVES_BUFFER, .elements = 8},
                                    {.kind = PEAL_GIVES_INT, .values = seven, .nvalues = 1},
                                    {.kind = PEAL_GIVES_NOTHING}};
    const struct peal_bind_value dim = {"m", seven, 1, false};
    struct peal_plan_request request = {.kernel = t.kernel, .bind = {.nranks = 2}, .count = -1};
    struct peal_plan_request named = request, few = request, wrong = request, left = request;
    assert_int_equal(peal_request_take(&request, args, 4, &t.arena, &t.why), PEAL_OK);
    assert_int_equal(peal_request_take(&few, args, 3, &t.arena, &t.why), PEAL_OK);
    assert_int_equal(peal_request_take(&few, args, 2, &t.arena, &t.why), PEAL_INVALID);
    assert_string_equal(peal_text_get(&t.why), "'k' takes 4 arguments, not 2");
    t.why.len = 0;
    named.given = &dim;
    named.ngiven = 1;
    assert_int_equal(peal_request_take(&named, args, 4, &t.arena, &t.why), PEAL_INVALID);
    assert_string_equal(peal_text_get(&t.why), "'k' has no dimension 'm'");
    t.why.len = 0;
    args[2].kind = PEAL_GIVES_NOTHING;
    assert_int_equal(peal_request_take(&left, args, 4, &t.arena, &t.why), PEAL_INVALID);
    assert_string_equal(peal_text_get(&t.why), "parameter 'a' of 'k' has no argument");
    t.why.len = 0;
    args[2].kind = PEAL_GIVES_REDUCE;
    assert_int_equal(peal_request_take(&wrong, args, 4, &t.arena, &t.why), PEAL_INVALID);
    assert_string_equal(peal_text_get(&t.why),
                        "parameter 'a' of 'k' is an int, not a reduce operation");
    close_text(&t);
}

/* The value of a parameter in the plan of a count, beside launches of a larger one. */
static int64_t value_at(const struct peal_kernel *made_of, const char *name, int64_t count,
                        int64_t max_count)
{
    struct peal_plan_request request = {.kernel = made_of,
                                        .bind = {.nranks = 2, .rank = PEAL_NONE},
                                        .count = count,
                                        .max_count = max_count};
    struct peal_diags diags;
    struct peal_plan *plan = NULL;
    int64_t value = -1;
    peal_diags_init(&diags);
    assert_int_equal(peal_plan_make(&request, &diags, &plan), PEAL_OK);
    for (uint64_t i = 0; i < plan->params.count; i++) {
        const struct peal_param *param = &peal_plan_params(plan)[i];
        if (strcmp(peal_plan_string(plan, param->name), name) == 0)
            value = peal_plan_values(plan)[param->first];
    }
    free(plan);
    peal_diags_release(&diags);
    return value;
}

TEST(test_a_name_has_no_meaning_and_a_capacity_is_that_of_the_largest_count)
{
    struct own_text t;
    open_text(&t, "kernel k(in x: T[n], out y: T[n], most: int = 4, cap: int = n,\n"
                  "         capacity room: int = 2 * n + 1) { y = x + most + cap + room }");
    assert_int_equal(value_at(t.kernel, "most", 8, 0), 4);
    assert_int_equal(value_at(t.kernel, "most", 8, 20), 4);
    assert_int_equal(value_at(t.kernel, "cap", 8, 20), 8);
    assert_int_equal(value_at(t.kernel, "room", 8, 0), 17);
    assert_int_equal(value_at(t.kernel, "room", 8, 8), 17);
    assert_int_equal(value_at(t.kernel, "room", 8, 20), 41);
    close_text(&t);
}

int main(void)
{
    return unit_run_with(load, unload);
}
