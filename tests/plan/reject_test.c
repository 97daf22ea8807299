/* SPDX-License-Identifier: Apache-2.0 */
/* What instantiate refuses, and with which message; and plans that are made for one rank alone. */
#include "lang/lang.h"
#include "plan/plan.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    int line;
    const char *text; /* of one kernel */
    const char *message;
    uint32_t nranks;
    int64_t n;
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    struct peal_bind more; /* in_place, slot_bytes, ... */
};

/* The usual row: 4 elements of f32, summed. */
#define ON(ranks) .nranks = ranks, .n = 4, .dtype = PEAL_F32
#define RING "let right = (rank + 1) % nranks let left = (rank - 1) % nranks "

static const struct row rows[] = {
    {__LINE__, "kernel k(out y: T[n]) { y = 1 / 1 - 1 }", NULL, ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { let a = n / (n - 4) y = x }",
     "division by zero", ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { let a = n * 9223372036854775807 y = x }",
     "this overflows 64 bits", ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { y[0 +: 4] = x[n / 2 +: 4] }",
     "4 elements from 2 on are outside 4", ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { y[0 +: 2] = x[0 +: n / 2 + 1] }",
     "this has 3 elements where 2 are wanted", ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { y[n of 2] = x[0 of 2] }",
     "there is no part 4 of 2", ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n], op: reduce) { y = op(x, x) }",
     "'and' does not take f32", .nranks = 2, .n = 4, .dtype = PEAL_F32, .reduce = PEAL_AND},
    {__LINE__, "kernel k(in x: T[n], out y: T[n], op: reduce) { y = op(x, x) }",
     "'avg' does not take i32", .nranks = 2, .n = 4, .dtype = PEAL_I32, .reduce = PEAL_AVG},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { y = exp(x) }", "'exp' does not take i8",
     .nranks = 2, .n = 4, .dtype = PEAL_I8},
    {__LINE__, "kernel k(in x: T[n], out y: T[n], root: int) { y = x }",
     "root 7 is not a rank of 2", ON(2), .more = {.root = 7}},
    {__LINE__, "kernel k(in x: T[n], out y: T[n], most: int) { y = x }",
     "parameter 'most' has no value", ON(2)},
    {__LINE__,
     "kernel k(in x: T[n], out y: T[n]) { assert n < 4, \"n is too large for this\" y = x }",
     "n is too large for this", ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { requires n < 4 y = x }",
     "the caller must ensure: n < 4", ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { ensures y[i] == x[i + 1] y = x }",
     "1 elements from 4 on are outside 4", ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { ensures y[i] == x@(rank + i)[i] y = x }",
     "rank 2 does not exist", ON(2)},
    {__LINE__,
     "kernel k(in x: T[n], out y: T[n]) { ensures y[i] == sum(q in n .. n: x@q[i]) y = x }",
     "'sum' over nothing has no value", ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { ensures y[0 +: n / 2] == x y = x }",
     "this has 4 elements where 2 are wanted", ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { ensures y[i] == exp(x[i]) y = x }",
     "'exp' does not take i8", .nranks = 2, .n = 4, .dtype = PEAL_I8},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { ensures y == softmax(x) y = softmax(x) }",
     "'softmax' is a function of rows and cannot stand in an ensures", ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { ensures y[i] == x[i] where i < 9 y = x }", NULL,
     ON(2)},
    {__LINE__,
     "kernel k(in x: T[n], out y: T[n]) { " RING "window w: T[n] w@(rank + 1) = x y = x }",
     "rank 2 does not exist", ON(2)},
    {__LINE__,
     "kernel k(in x: T[n], out y: T[n]) { signal s[n] notify s[n / 2 * 2]@0 += 1 wait s[0] >= 0 y "
     "= x }",
     "cell 4 is outside a signal of 4 cells", ON(2)},
    {__LINE__,
     "kernel k(in x: T[n], out y: T[n]) { signal s for p in peers { notify s@p += 1 } wait s >= 1 "
     "y = x }",
     "cell 0 of signal 's' on rank 2 has two writers; a cell with several writers is declared "
     "'signal shared'",
     ON(3)},
    {__LINE__,
     "kernel k(in x: T[n], out y: T[n]) { signal s notify s@0 = 4294967296 wait s >= 0 y = x }",
     "the count of signal 's' leaves the range of 32 bits", ON(1)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { grid 2, 2 y = x }",
     "a grid of 2 x 2 does not have 3 ranks", ON(3)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { grid 1, nranks send x to E y = recv from W }",
     "no neighbour 'W' on a grid of 1 x 2", ON(2)},
    {__LINE__,
     "kernel k(in x: T[n], out y: T[n]) { grid 2, nranks / 2 torus let p = peer(W) y = x }",
     "no neighbour 'W' on a torus of 2 x 1", ON(2)},
    {__LINE__,
     "kernel k(in x: T[n], out y: T[n]) { tree 2 send x to child 1 y = recv from parent }",
     "no neighbour 'child 1' in a tree of 2 ranks", ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { for i in 0 .. 1 << 60 { let a = i } y = x }",
     "the kernel runs more than 4000 steps", ON(2), .more = {.max_ops = 1000}},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { for i in 0 .. 1 << 60 { y = x } }",
     "the plan would have more than 1000 ops", ON(2), .more = {.max_ops = 1000}},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { for i in 0 .. n step n - 4 { y = x } }",
     "a loop needs a step other than 0", ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { window w: T[n * 1000000000000000000] y = x }",
     "'w' cannot have 1 x 4000000000000000000 elements", ON(2)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { y = x }", "dimension 'n' cannot be -1",
     .nranks = 2, .n = -1, .dtype = PEAL_F32},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { y = x }", "0 ranks: a plan has 1 to 65536",
     ON(0)},
    {__LINE__, "kernel k(in x: T[n], out y: T[n]) { y = x }", "100000 ranks: a plan has 1 to 65536",
     ON(100000)},
    {__LINE__,
     "kernel k(in x: T[n], out y: T[n]) { " RING
     "send x to right let t: T[n] = recv_slot from left y = t }",
     "a payload of 16 bytes does not fit a slot of 8", ON(2), .more = {.slot_bytes = 8}},
    {__LINE__,
     "kernel k(in x: T[n], out y: T[n]) { " RING
     "send x to right let t: T[n] = recv_slot from left free t y = t }",
     "'t' was freed", ON(2)},
};

/* The first error's message, or NULL. There is a plan exactly if there is no error. */
static const char *instantiate(const struct row *row, struct peal_diags *diags,
                               struct peal_program **program)
{
    struct peal_plan *plan = NULL;
    enum peal_status status =
        peal_program_text("k.peal", row->text, strlen(row->text), diags, program);
    const struct peal_kernel *kernel =
        status == PEAL_OK ? peal_program_kernel(*program, "k", diags) : NULL;
    struct peal_bind_value n = {"n", &row->n, 1, false};
    struct peal_bind bind = row->more;
    bind.nranks = row->nranks;
    bind.rank = PEAL_NONE;
    bind.dtype = row->dtype;
    bind.reduce = row->reduce;
    bind.values = &n;
    bind.nvalues = 1;
    if (kernel)
        status = peal_instantiate(kernel, &bind, diags, &plan);
    assert_true((status == PEAL_OK) == (diags->errors == 0));
    assert_true((status == PEAL_OK) == (plan != NULL));
    free(plan);
    return diags->list.len ? diags->list.at[0].message : NULL;
}

TEST(impossible_plans_are_refused_with_a_message)
{
    int failures = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_diags diags;
        struct peal_program *program = NULL;
        peal_diags_init(&diags);
        const char *got = instantiate(&rows[i], &diags, &program);
        const char *want = rows[i].message;
        bool same = !got == !want && (!got || strcmp(got, want) == 0);
        if (!same)
            print_error("line %d: '%s' instead of '%s'\n", rows[i].line, peal_text_or_empty(got),
                        peal_text_or_empty(want));
        failures += !same;
        peal_program_close(program);
        peal_diags_release(&diags);
    }
    assert_int_equal(failures, 0);
}

static struct peal_plan *make_promises(struct peal_program **program, struct peal_diags *diags,
                                       uint32_t rank)
{
    static const char text[] = "kernel k(in x: T[n], out y: T[n]) { requires n > 1 "
                               "ensures y[i] == sum(q in 0 .. nranks: x@q[i]) * 2 where i < n - 1 "
                               "ensures y[n - 1] == x[0] y = x }";
    int64_t n = 4;
    struct peal_bind_value value = {"n", &n, 1, false};
    struct peal_bind bind = {
        .nranks = 3, .rank = rank, .dtype = PEAL_F32, .values = &value, .nvalues = 1};
    struct peal_plan *plan = NULL;
    assert_int_equal(peal_program_text("k.peal", text, strlen(text), diags, program), PEAL_OK);
    const struct peal_kernel *kernel = peal_program_kernel(*program, "k", diags);
    assert_int_equal(peal_instantiate(kernel, &bind, diags, &plan), PEAL_OK);
    return plan;
}

TEST(clauses_become_ranges_over_shared_terms)
{
    struct peal_diags diags;
    struct peal_program *program = NULL;
    const char *why = NULL;
    peal_diags_init(&diags);
    struct peal_plan *plan = make_promises(&program, &diags, PEAL_NONE);
    assert_true(peal_plan_check(plan, plan->block_len, &why));
    assert_int_equal(plan->clauses.count, 3);
    assert_int_equal(plan->promises.count, 2 * 3); /* two ranges on each rank */
    /* x of three ranks, two sums, the number and the product; then x[0] of each, as it lies. */
    assert_int_equal(plan->terms.count, 3 + 2 + 2 + 3);
    const struct peal_promise *promise = &peal_plan_promises(plan)[2];
    assert_true(promise->rank == 1 && promise->first == 0 && promise->count == 3);
    assert_int_equal(peal_plan_first_promise(plan, 1), 2);

    struct peal_promise *made = (struct peal_promise *)((char *)plan + plan->promises.offset);
    struct peal_promise_term *terms =
        (struct peal_promise_term *)((char *)plan + plan->terms.offset);
    uint32_t *const fields[] = {&made[0].rank, &made[0].buf, &made[0].term, &made[0].clause,
                                &terms[0].a,   &terms[0].b,  &terms[2].a,   &terms[0].kind};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        uint32_t was = *fields[i];
        *fields[i] = 1000;
        assert_false(peal_plan_check(plan, plan->block_len, &why));
        *fields[i] = was;
    }
    made[0].count = UINT64_MAX;
    assert_false(peal_plan_check(plan, plan->block_len, &why));
    free(plan);
    peal_program_close(program);
    plan = make_promises(&program, &diags, 1);
    assert_true(plan->promises.count == 0 && plan->clauses.count == 0); /* of one rank: none */
    free(plan);
    peal_program_close(program);
    peal_diags_release(&diags);
}

TEST(one_rank_made_alone_has_the_ops_of_the_whole_plan)
{
    static const char *const kernels[] = {"allreduce_ring", "allreduce_small", "allreduce_chunked",
                                          "broadcast_binomial", "barrier_dissemination"};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        struct peal_diags diags;
        struct peal_program *program = NULL;
        struct peal_plan *whole = NULL;
        int64_t n = 37;
        struct peal_bind_value value = {"n", &n, 1, false};
        struct peal_bind bind = {
            .nranks = 5, .rank = PEAL_NONE, .dtype = PEAL_F32, .values = &value, .nvalues = 1};
        peal_diags_init(&diags);
        assert_int_equal(peal_program_open(kernels[i], &diags, &program), PEAL_OK);
        const struct peal_kernel *kernel = peal_program_kernel(program, NULL, &diags);
        assert_int_equal(peal_instantiate(kernel, &bind, &diags, &whole), PEAL_OK);
        for (bind.rank = 0; bind.rank < 5; bind.rank++) {
            struct peal_plan *part = NULL;
            assert_int_equal(peal_instantiate(kernel, &bind, &diags, &part), PEAL_OK);
            const struct peal_lane *a = peal_plan_lane(whole, bind.rank, 0);
            const struct peal_lane *b = peal_plan_lane(part, bind.rank, 0);
            assert_int_equal(a->ops, b->ops);
            for (uint64_t k = 0; k < a->ops; k++) {
                const struct peal_op *x = peal_plan_ops(whole) + a->first_op + k;
                const struct peal_op *y = peal_plan_ops(part) + b->first_op + k;
                assert_int_equal(x->kind, y->kind);
                if (peal_op_is_sync(x))
                    assert_memory_equal(&x->sync, &y->sync, sizeof x->sync);
                else
                    assert_int_equal(x->mem.count, y->mem.count);
            }
            free(part);
        }
        free(whole);
        peal_program_close(program);
        peal_diags_release(&diags);
    }
}

int main(void)
{
    return unit_run();
}
