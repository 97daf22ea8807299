/* SPDX-License-Identifier: Apache-2.0 */
/* The normal form of a text has the same plans, op for op. With rotations, loops over peers may
 * name them in another order. */
#include "verify/forall/normal.h"

#include "base/tests/unit.h"
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL: there is no plan. */
static char *plan_text(const struct peal_kernel *kernel, uint32_t nranks, int64_t count)
{
    struct peal_plan_request request = {.kernel = kernel,
                                        .count = count,
                                        .max_count = count ? count : 1,
                                        .invent = true,
                                        .bind = {.rank = PEAL_NONE,
                                                 .nranks = nranks,
                                                 .root = nranks / 2,
                                                 .dtype = PEAL_F32,
                                                 .reduce = PEAL_AVG,
                                                 .symmetric = true}};
    struct peal_diags diags;
    struct peal_plan *plan = NULL;
    struct peal_text out = {0};
    char *copy = NULL;
    peal_diags_init(&diags);
    if (peal_plan_make(&request, &diags, &plan) == PEAL_OK) {
        for (uint32_t r = 0; r < nranks; r++)
            peal_plan_dump(plan, r, &out);
        copy = strdup(peal_text_get(&out));
    }
    free(plan);
    peal_diags_release(&diags);
    peal_text_release(&out);
    return copy;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In place. */
static void sort_lines(char *text)
{
    size_t len = strlen(text), n = 0;
    char **lines = calloc(len + 1, sizeof *lines), *sorted = malloc(len + 2), *to = sorted;
    assert_non_null(lines);
    assert_non_null(sorted);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        lines[n++] = line;
    qsort(lines, n, sizeof *lines, compare_lines);
    for (size_t i = 0; i < n; i++)
        to += sprintf(to, "%s\n", lines[i]);
    *to = '\0';
    memcpy(text, sorted, strlen(sorted) + 1);
    free(lines);
    free(sorted);
}

/* How many plans were compared. */
static uint32_t compare(const struct peal_kernel *kernel, bool rotations)
{
    static const int64_t counts[] = {0, 5, 60};
    struct peal_normal normal;
    uint32_t compared = 0;
    assert_true(peal_normal_make(kernel, rotations, &normal));
    for (uint32_t nranks = 1; nranks <= 5; nranks++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            char *want = plan_text(kernel, nranks, counts[i]);
            char *have = plan_text(normal.kernel, nranks, counts[i]);
            assert_int_equal(want != NULL, have != NULL);
            if (want && have && rotations) {
                sort_lines(want);
                sort_lines(have);
            }
            if (want && have)
                assert_string_equal(want, have);
            compared += want != NULL;
            free(want);
            free(have);
        }
    }
    peal_normal_release(&normal);
    return compared;
}

static uint32_t compare_text(const char *text)
{
    struct peal_program *program = NULL;
    struct peal_diags diags;
    peal_diags_init(&diags);
    assert_int_equal(peal_program_text("k.peal", text, strlen(text), &diags, &program), PEAL_OK);
    const struct peal_kernel *kernel = peal_program_kernel(program, NULL, &diags);
    assert_non_null(kernel);
    uint32_t compared = compare(kernel, false) + compare(kernel, true);
    peal_program_close(program);
    peal_diags_release(&diags);
    return compared;
}

TEST(test_the_library_has_the_same_plans_in_normal_form)
{
    struct peal_program *library = NULL;
    struct peal_diags diags;
    uint32_t compared = 0;
    peal_diags_init(&diags);
    assert_int_equal(peal_program_open("allreduce_ring", &diags, &library), PEAL_OK);
    for (const struct peal_kernel *k = peal_program_module(library)->kernels; k; k = k->next) {
        const struct peal_kernel *kernel = peal_program_kernel(library, k->name, &diags);
        if (kernel)
            compared += compare(kernel, false) + compare(kernel, true);
    }
    assert_true(compared > 1000);
    peal_program_close(library);
    peal_diags_release(&diags);
}

TEST(test_names_variables_calls_and_loops_have_the_same_plans)
{
    static const char *const texts[] = {
        "kernel k(in x: T[n], out y: T[n]) {\n"
        "    window w: T[n]\n"
        "    signal s[nranks], t\n"
        "    let two = 1 + 1\n"
        "    let mine = (rank + nranks * two) % nranks\n"
        "    w[0 +: len(w)] = x[0 +: n]\n"
        "    for i in two - 1 .. nranks { notify s[mine]@((rank - i + nranks) % nranks) += 1 }\n"
        "    for i in 3 .. nranks + 2 { wait s[(rank + i - two) % nranks] >= 1 }\n"
        "    for i in 0 .. nranks { y[(rank + i) % nranks of nranks] = x[(i + rank) % nranks of "
        "nranks] }\n"
        "    var k = 3\n"
        "    k = k * 2 - 4\n"
        "    for i in 0 .. nranks - 1 {\n"
        "        let before = k\n"
        "        notify t@((rank + 1) % nranks) += 1\n"
        "        k = k + 1\n"
        "        wait t >= k - before + i\n"
        "    }\n"
        "    if k == nranks + 1 { y = x } else { y = w }\n"
        "}\n",
        "kernel part(in a: T[n], out b: T[n], c: int) {\n"
        "    assert n >= 0, \"never\"\n"
        "    var i = c\n"
        "    for j in 0 .. 3 { i = i + 1 b[j of 3] = a[j of 3] }\n"
        "    if i == c + 3 { b[c of 4] = a[c of 4] }\n"
        "}\n"
        "kernel k(in x: T[n], out y: T[n]) {\n"
        "    let half = n / 2\n"
        "    part(x, y, 2)\n"
        "    part(x[0 +: half], y[0 +: half], 3 - 2)\n"
        "    for j in 1 .. 4 { if j % 2 == 1 { y[j - 1 of 3] = x[3 - j of 3] } }\n"
        "}\n",
        "kernel k(in x: T[n], out y: T[n]) {\n"
        "    var k = 0\n"
        "    for i in 0 .. nranks { if i == rank { k = k + 1 } }\n"
        "    let a = k\n"
        "    k = 2\n"
        "    if a == 1 { y = x }\n"
        "    for i in 0 .. nranks - 1 { for j in 0 .. 2 { k = k + 1 } }\n"
        "    if k == 2 * nranks { y[0 of 2] = x[1 of 2] }\n"
        "}\n",
        /* posted receives: in order, so that they move to their waits; and out of order */
        "kernel k(in x: T[n], out y: T[n]) {\n"
        "    let left = (rank - 1) % nranks\n"
        "    let right = (rank + 1) % nranks\n"
        "    let f: T[n] = recv_async from left\n"
        "    let g: T[n] = recv_async from right\n"
        "    send x to right\n"
        "    send x to left\n"
        "    wait f\n"
        "    y = f\n"
        "    wait g\n"
        "    y = g\n"
        "}\n",
        "kernel k(in x: T[n], out y: T[n]) {\n"
        "    let left = (rank - 1) % nranks\n"
        "    let f: T[n] = recv_async from left\n"
        "    let g: T[n] = recv_async from left\n"
        "    send x to (rank + 1) % nranks\n"
        "    send y to (rank + 1) % nranks\n"
        "    wait g\n"
        "    y = g\n"
        "    wait f\n"
        "    y = f\n"
        "}\n",
        "kernel k(in x: T[n], out y: T[n]) {\n"
        "    let left = (rank - 1) % nranks\n"
        "    let f: T[n] = recv_async from left\n"
        "    send x to (rank + 1) % nranks\n"
        "    send y to (rank + 1) % nranks\n"
        "    if nranks > 1 { y = recv from left }\n"
        "    wait f\n"
        "    if nranks == 1 { y = recv from left }\n"
        "    y = f\n"
        "}\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_true(compare_text(texts[i]) > 3);
}

TEST(test_a_chain_of_names_that_would_grow_without_bound_is_given_up)
{
    struct peal_text text = {0};
    struct peal_program *program = NULL;
    struct peal_diags diags;
    struct peal_normal normal;
    peal_diags_init(&diags);
    peal_text_puts(&text, "kernel k(in x: T[n], out y: T[n]) {\n    let a0 = n\n");
    for (int i = 1; i < 40; i++)
        peal_text_printf(&text, "    let a%d = (a%d %% 7) * (a%d %% 5)\n", i, i - 1, i - 1);
    peal_text_puts(&text, "    if a39 == 0 { y = x }\n}\n");
    assert_int_equal(peal_program_text("k.peal", peal_text_get(&text), text.len, &diags, &program),
                     PEAL_OK);
    const struct peal_kernel *kernel = peal_program_kernel(program, NULL, &diags);
    assert_non_null(kernel);
    assert_false(peal_normal_make(kernel, true, &normal));
    peal_program_close(program);
    peal_diags_release(&diags);
    peal_text_release(&text);
}

int main(void)
{
    return unit_run();
}
